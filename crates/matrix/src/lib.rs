//! Matrices of single-precision numbers, as views of slices, and their product.
//!
//! `gemm` is as fast as the machine and takes raw pointers. Here is its only call, behind views whose bounds are checked. Products with
//! few columns, which leave most of its lanes empty, are written out.

mod narrow;
mod rows;

pub use narrow::squared_norms;
pub use rows::{RowsKnowEachOther, check_rows};

/// Runs a loop with the widest instructions of this machine.
#[inline(always)]
pub fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    thread_local! {
        static MACHINE: pulp::Arch = pulp::Arch::new();
    }
    MACHINE.with(|machine| *machine).dispatch(work)
}

/// A matrix that is read: `rows × columns` numbers of a slice, at the given distances.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    numbers: &'a [f32],
    rows: usize,
    columns: usize,
    row_distance: usize,
    column_distance: usize,
}

impl<'a> View<'a> {
    /// Row after row.
    ///
    /// # Panics
    /// When the slice does not have exactly `rows · columns` numbers.
    #[must_use]
    pub fn new(numbers: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(rows.checked_mul(columns), Some(numbers.len()), "a matrix of {rows} rows and {columns} columns");
        Self { numbers, rows, columns, row_distance: columns, column_distance: 1 }
    }

    /// Rows and columns exchanged; nothing is moved.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self {
            numbers: self.numbers,
            rows: self.columns,
            columns: self.rows,
            row_distance: self.column_distance,
            column_distance: self.row_distance,
        }
    }
}

/// What happens to the numbers that are in the target already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// They are replaced; whatever they were, NaN included, is gone.
    Replace,
    /// The product is added to them.
    Add,
}

/// Longest run of numbers that `gemm` adds up in one go, whatever the shapes.
const RUN: usize = 512;

/// Up to this many results `gemm` may take another kernel, which adds up in another order.
const SMALL: usize = 256;

/// `target = left · right`, or `target += left · right`; the target is written row after row. One thread.
///
/// What a row of the left matrix becomes does not depend on the other rows, nor on how many there are, in any bit.
///
/// # Panics
/// When the shapes do not fit.
pub fn multiply(target: &mut [f32], mode: Existing, left: View<'_>, right: View<'_>) {
    let (m, k, n) = (left.rows, left.columns, right.columns);
    assert_eq!(k, right.rows, "the inner sizes of a product");
    assert_eq!(m.checked_mul(n), Some(target.len()), "the target of a product");
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if mode == Existing::Replace {
            target.fill(0.0);
        }
        return;
    }
    if n <= narrow::COLUMNS {
        return narrow::multiply(target, mode, left, right);
    }
    let horizontal = m * n <= SMALL && left.column_distance == 1 && right.row_distance == 1;
    if (m == 1 || horizontal) && n > 1 {
        // In company, a few rows are rows like any other.
        let rows = (SMALL / n + 1).max(2).max(m);
        let mut company = vec![0.0; rows * k];
        for (i, row) in company.chunks_exact_mut(k).take(m).enumerate() {
            for (j, number) in row.iter_mut().enumerate() {
                *number = left.numbers[i * left.row_distance + j * left.column_distance];
            }
        }
        let mut all = vec![0.0; rows * n];
        all[..m * n].copy_from_slice(target);
        in_runs(&mut all, mode, View::new(&company, rows, k), right);
        target.copy_from_slice(&all[..m * n]);
    } else {
        in_runs(target, mode, left, right);
    }
}

/// Products of at most [`RUN`] terms, added up in order.
#[expect(unsafe_code, reason = "gemm takes pointers")]
fn in_runs(target: &mut [f32], mode: Existing, left: View<'_>, right: View<'_>) {
    let (m, k, n) = (left.rows, left.columns, right.columns);
    assert!(k == right.rows && m * n == target.len() && m * n * k > 0, "checked before");
    let distance = |length: usize| isize::try_from(length).expect("a slice is shorter than isize::MAX");
    for start in (0..k).step_by(RUN) {
        let run = RUN.min(k - start);
        let (a, b) = (&left.numbers[start * left.column_distance..], &right.numbers[start * right.row_distance..]);
        // SAFETY: every element that is touched lies in its slice. A view has rows · columns numbers, one of its distances is 1
        // and the other the length of a stored row, so the largest index is rows · columns − 1, of which the offset of `start`
        // was taken off; the target has m · n numbers, and is borrowed alone, so it overlaps nothing. It is read only when the
        // product is added to it.
        unsafe {
            gemm::gemm(
                m,
                n,
                run,
                target.as_mut_ptr(),
                1,
                distance(n),
                mode == Existing::Add || start > 0,
                a.as_ptr(),
                distance(left.column_distance),
                distance(left.row_distance),
                b.as_ptr(),
                distance(right.column_distance),
                distance(right.row_distance),
                1.0f32,
                1.0f32,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::numbers;

    #[test]
    fn products_agree_with_the_definition() {
        for (m, k, n) in [
            (1, 1, 1),
            (3, 5, 2),
            (1, 7, 9),
            (17, 33, 65),
            (4, 0, 3),
            (0, 2, 2),
            (64, 10, 1),
            (33, 105, 2),
            (105, 33, 3),
            (5, 70, 4),
        ] {
            let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
            // Every way of storing them.
            let transpose = |x: &[f32], rows: usize, columns: usize| -> Vec<f32> {
                (0..rows * columns).map(|i| x[(i % rows) * columns + i / rows]).collect()
            };
            let (at, bt) = (transpose(&a, m, k), transpose(&b, k, n));
            let views = [
                (View::new(&a, m, k), View::new(&b, k, n)),
                (View::new(&at, k, m).transposed(), View::new(&bt, n, k).transposed()),
            ];
            for (left, right) in views {
                for mode in [Existing::Replace, Existing::Add] {
                    let before = if mode == Existing::Add { 2.0 } else { f32::NAN };
                    let mut target = vec![before; m * n];
                    multiply(&mut target, mode, left, right);
                    for (i, &found) in target.iter().enumerate() {
                        let exact: f64 =
                            (0..k).map(|j| f64::from(a[i / n * k + j]) * f64::from(b[j * n + i % n])).sum();
                        let start = if mode == Existing::Add { 2.0 } else { 0.0 };
                        assert!((f64::from(found) - exact - start).abs() < 1e-5, "{m} {k} {n} {found} {exact}");
                    }
                }
            }
        }
    }

    /// In rows of any length: what single precision cannot square is not finite, and what vanishes there does not.
    #[test]
    fn norms_of_what_is_tiny_or_huge() {
        for columns in 1..=20 {
            for (number, expected) in [(1e-30f32, 1e-60), (3e38, f64::INFINITY), (2.0, 4.0)] {
                let mut row = vec![0.0; columns];
                row[columns - 1] = number;
                squared_norms(&row, columns, |_, norm| {
                    assert!((norm / expected - 1.0).abs() < 1e-5 || norm == expected, "{columns} {number} {norm}");
                });
            }
        }
    }

    #[test]
    #[should_panic(expected = "the inner sizes")]
    fn shapes_must_fit() {
        let a = [0.0; 6];
        multiply(&mut [0.0; 4], Existing::Replace, View::new(&a, 2, 3), View::new(&a[..4], 2, 2));
    }
}
