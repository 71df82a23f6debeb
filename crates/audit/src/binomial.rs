//! Exact limits of a probability from a count (Clopper and Pearson).

use paygo_numeric::elementary::{exp, ln, ln_1p};
use paygo_numeric::search::root;
use paygo_numeric::sums::{ln_binomial, log_sum_exp};

/// Limits that hold together with probability at least `1 − error`, whatever the true probability is.
///
/// # Panics
/// When there are more hits than trials.
#[must_use]
pub fn limits(hits: u64, trials: u64, error: f64) -> (f64, f64) {
    assert!(hits <= trials, "{hits} hits of {trials}");
    let target = ln(error / 2.0);
    // The tail at or beyond the count rises with p; find where it is half the error.
    let lower = if hits == 0 {
        0.0
    } else {
        root(1e-300, 1.0, |p| log_tail(hits, trials, p) - target).min(share(hits, trials))
    };
    // The other tail is the same with hits and misses exchanged.
    let upper = if hits == trials {
        1.0
    } else {
        1.0 - root(1e-300, 1.0, |p| log_tail(trials - hits, trials, p) - target).min(share(trials - hits, trials))
    };
    (lower, upper)
}

#[expect(clippy::cast_precision_loss, reason = "counts of paths")]
fn share(hits: u64, trials: u64) -> f64 {
    hits as f64 / trials as f64
}

/// `ln P(X ≥ k)` for `X` binomial; for searches.
fn log_tail(k: u64, n: u64, p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of paths")]
    let term = |j: u64| ln_binomial(n, j).middle() + j as f64 * ln(p) + (n - j) as f64 * ln_1p(-p);
    // Terms fall fast beyond the mean; from k on, sum until they no longer matter.
    let mut terms = vec![term(k)];
    let (mut log, mut largest) = (terms[0], terms[0]);
    let odds = ln(p) - ln_1p(-p);
    for j in k..n {
        log += ln(share(n - j, j + 1)) + odds;
        largest = largest.max(log);
        terms.push(log);
        if log < largest - 40.0 {
            break;
        }
    }
    log_sum_exp(&terms).min(0.0)
}

/// The probability of exactly `k` of `n`, for tests of the tests.
#[must_use]
pub fn density(k: u64, n: u64, p: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of paths")]
    let log = ln_binomial(n, k).middle() + k as f64 * ln(p) + (n - k) as f64 * ln_1p(-p);
    exp(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_known_counts() {
        // No hit in n trials: the upper limit is 1 − (error/2)^{1/n}.
        let (lower, upper) = limits(0, 100, 0.05);
        assert_eq!(lower, 0.0);
        assert!((upper - (1.0 - exp(ln(0.025) / 100.0))).abs() < 1e-9, "{upper}");
        // 10 of 20, 95 %: 0.27196 to 0.72804 in every table.
        let (lower, upper) = limits(10, 20, 0.05);
        assert!((lower - 0.271_96).abs() < 1e-5 && (upper - 0.728_04).abs() < 1e-5, "{lower} {upper}");
        assert_eq!(limits(20, 20, 0.05).1, 1.0);
    }

    /// Coverage by enumeration: at any p, the counts whose limits miss it have at most the stated probability.
    #[test]
    fn limits_cover_as_stated() {
        for p in [0.01, 0.05, 0.3] {
            let missed: f64 = (0..=200u64)
                .filter(|&k| {
                    let (lower, upper) = limits(k, 200, 0.01);
                    p < lower || p > upper
                })
                .map(|k| density(k, 200, p))
                .sum();
            assert!(missed <= 0.01 && missed > 1e-4, "{p} {missed}");
        }
    }
}
