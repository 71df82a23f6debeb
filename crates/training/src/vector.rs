//! Loops over slices, compiled for the vector units that the machine has.

pub(crate) use paygo_matrix::vectorized;
use paygo_matrix::{Existing, squared_norms};

/// `‖x‖²`: relative error below 2·10⁻⁵.
pub(crate) fn squared_norm(x: &[f32]) -> f64 {
    let mut norm = 0.0;
    squared_norms(x, x.len().max(1), |_, found| norm = found);
    norm
}

/// All bits of a number, or none where the factor is 0: 0 times what is no number would be no number. As much work for either.
#[inline(always)]
const fn mask(factor: f32) -> u32 {
    if factor == 0.0 { 0 } else { u32::MAX }
}

/// Rows whose factor is 0 become 0, whatever was in them.
pub(crate) fn silence_rows(matrix: &mut [f32], columns: usize, factors: &[f32]) {
    vectorized(
        #[inline(always)]
        || {
            for (row, &factor) in matrix.chunks_exact_mut(columns).zip(factors) {
                let mask = mask(factor);
                for number in row {
                    *number = f32::from_bits(number.to_bits() & mask);
                }
            }
        },
    );
}

/// Multiplies each row by its factor; by 0, whatever it is, to 0.
pub(crate) fn scale_rows(matrix: &mut [f32], columns: usize, factors: &[f32]) {
    vectorized(
        #[inline(always)]
        || {
            for (row, &factor) in matrix.chunks_exact_mut(columns).zip(factors) {
                let mask = mask(factor);
                for number in row {
                    *number = f32::from_bits((factor * *number).to_bits() & mask);
                }
            }
        },
    );
}

/// Whatever is no number, or infinite, becomes 0: as much work whether there is one or not.
pub(crate) fn make_finite(numbers: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            for number in numbers {
                *number = if number.is_finite() { *number } else { 0.0 };
            }
        },
    );
}

/// Writes each row, multiplied by its factor; by 0, whatever it is, as 0.
pub(crate) fn write_scaled_rows(target: &mut [f32], matrix: &[f32], factors: &[f32]) {
    vectorized(
        #[inline(always)]
        || {
            let columns = matrix.len() / factors.len().max(1);
            let rows = target.chunks_exact_mut(columns).zip(matrix.chunks_exact(columns));
            for ((target, row), &factor) in rows.zip(factors) {
                let mask = mask(factor);
                for (target, number) in target.iter_mut().zip(row) {
                    *target = f32::from_bits((factor * number).to_bits() & mask);
                }
            }
        },
    );
}

/// Adds up the rows.
pub(crate) fn add_rows(target: &mut [f32], matrix: &[f32], mode: Existing) {
    vectorized(
        #[inline(always)]
        || {
            if mode == Existing::Replace {
                target.fill(0.0);
            }
            for row in matrix.chunks_exact(target.len()) {
                for (target, number) in target.iter_mut().zip(row) {
                    *target += number;
                }
            }
        },
    );
}

/// Writes the same row again and again.
pub(crate) fn fill_rows(matrix: &mut [f32], row: &[f32]) {
    let mut done = row.len().min(matrix.len());
    matrix[..done].copy_from_slice(&row[..done]);
    // What is there is copied behind itself.
    while done < matrix.len() {
        let more = done.min(matrix.len() - done);
        matrix.copy_within(..more, done);
        done += more;
    }
}

/// Copies `count` lines of `length` numbers, which lie at fixed distances.
#[inline(always)]
pub(crate) fn copy_lines(
    target: &mut [f32],
    apart: usize,
    source: &[f32],
    source_apart: usize,
    length: usize,
    count: usize,
) {
    /// Lines too short to be worth a call are copied as arrays.
    #[inline(always)]
    fn short<const LENGTH: usize>(target: &mut [f32], apart: usize, source: &[f32], source_apart: usize, count: usize) {
        for index in 0..count {
            let line: [f32; LENGTH] = source[index * source_apart..][..LENGTH].try_into().expect("a line");
            target[index * apart..][..LENGTH].copy_from_slice(&line);
        }
    }
    match length {
        3 => short::<3>(target, apart, source, source_apart, count),
        5 => short::<5>(target, apart, source, source_apart, count),
        8 => short::<8>(target, apart, source, source_apart, count),
        9 => short::<9>(target, apart, source, source_apart, count),
        16 => short::<16>(target, apart, source, source_apart, count),
        48 => short::<48>(target, apart, source, source_apart, count),
        64 => short::<64>(target, apart, source, source_apart, count),
        _ => {
            for index in 0..count {
                target[index * apart..][..length].copy_from_slice(&source[index * source_apart..][..length]);
            }
        }
    }
}

/// Adds up the rows, each multiplied by its factor; by 0, whatever it is, to nothing.
pub(crate) fn add_scaled_rows(target: &mut [f32], matrix: &[f32], factors: &[f32], mode: Existing) {
    vectorized(
        #[inline(always)]
        || {
            if mode == Existing::Replace {
                target.fill(0.0);
            }
            for (row, &factor) in matrix.chunks_exact(target.len()).zip(factors) {
                let mask = mask(factor);
                for (target, number) in target.iter_mut().zip(row) {
                    *target += f32::from_bits((factor * number).to_bits() & mask);
                }
            }
        },
    );
}

/// The hyperbolic tangent, `1 − 2/(e^{2x} + 1)`, without branches: off by less than 3·10⁻⁷. Keeps a NaN.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    // Beyond 9 it is 1 in single precision.
    let y = 2.0 * x.clamp(-9.0, 9.0);
    // e^y = 2^k·e^r with |r| ≤ ln 2/2; the magic number rounds, and its last bits are k.
    const MAGIC: f32 = 12_582_912.0;
    let rounded = y * std::f32::consts::LOG2_E + MAGIC;
    let r = y - (rounded - MAGIC) * std::f32::consts::LN_2;
    let mut power = 1.0 / 720.0;
    for factorial in [120.0, 24.0, 6.0, 2.0, 1.0, 1.0] {
        power = power * r + 1.0 / factorial;
    }
    let scale = f32::from_bits(rounded.to_bits().wrapping_sub(MAGIC.to_bits()).wrapping_add(127) << 23);
    let tanh = 1.0 - 2.0 / (power * scale + 1.0);
    if x.is_nan() { x } else { tanh }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_agrees_with_the_library() {
        for step in -32_000i16..=32_000 {
            let x = f32::from(step) / 2000.0;
            assert!((tanh(x) - x.tanh()).abs() < 4e-7, "{x}: {} {}", tanh(x), x.tanh());
        }
        assert!((tanh(f32::INFINITY) - 1.0).abs() < 4e-7 && (tanh(f32::NEG_INFINITY) + 1.0).abs() < 4e-7);
        assert!(tanh(f32::NAN).is_nan());
        assert!(tanh(0.0).abs() < 1e-7);
    }
}
