//! Exact coins. Source: Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential Privacy*, arXiv:2004.00010, §5.
//!
//! Integers only: every probability is exactly what it says, given uniform bits.

use crate::source::Source;

/// A uniform integer in `0..n`, by rejection. For `n ≥ 1`.
pub fn below(n: u128, source: &mut Source) -> u128 {
    if n <= 1 {
        return 0;
    }
    let bits = u128::BITS - (n - 1).leading_zeros();
    loop {
        let mut draw = u128::from(source.bits());
        if bits > 64 {
            draw |= u128::from(source.bits()) << 64;
        }
        let draw = draw & (u128::MAX >> (u128::BITS - bits));
        if draw < n {
            return draw;
        }
    }
}

/// Heads with probability `numerator/denominator`, at most 1.
pub fn heads(numerator: u128, denominator: u128, source: &mut Source) -> bool {
    below(denominator, source) < numerator
}

/// Heads with probability `e^{−numerator/denominator}` (Algorithm 1).
///
/// # Panics
/// When the denominator is 0 or above 2¹⁰⁰: it is multiplied by the number of rounds, and there are never 2²⁸ of them.
pub fn heads_exp(numerator: u128, denominator: u128, source: &mut Source) -> bool {
    assert!((1..=1 << 100).contains(&denominator), "a denominator of {denominator}");
    // e^{−γ} = e^{−1}·…·e^{−1}·e^{−(γ − ⌊γ⌋)}.
    for _ in 0..numerator / denominator {
        if !heads_exp_of_at_most_one(1, 1, source) {
            return false;
        }
    }
    heads_exp_of_at_most_one(numerator % denominator, denominator, source)
}

/// For `γ = n/d ≤ 1`: toss coins of probability γ/1, γ/2, γ/3, … until tails; heads if their number is odd.
fn heads_exp_of_at_most_one(n: u128, d: u128, source: &mut Source) -> bool {
    let mut k: u128 = 1;
    while heads(n, d * k, source) {
        k += 1;
    }
    k % 2 == 1
}
