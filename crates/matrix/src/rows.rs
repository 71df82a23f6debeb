//! Whether the rows of a product know each other, found out on the machine that computes it.
//!
//! Training relies on it: whether somebody's example is in a batch must not change what another's becomes, in any bit. Which kernel
//! multiplies depends on the machine, so that it holds where this was built says nothing about where it runs.

use crate::{Existing, View, multiply};

/// On this machine, what a row of a product becomes depends on the rows beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsKnowEachOther {
    /// How many rows were multiplied when a row became another.
    pub rows: usize,
    /// How long they are.
    pub length: usize,
    /// How many columns the other matrix has.
    pub columns: usize,
}

impl std::fmt::Display for RowsKnowEachOther {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rows, length, columns } = self;
        write!(
            f,
            "on this machine the rows of a matrix product depend on each other ({rows} × {length} times {length} × {columns})"
        )
    }
}

impl std::error::Error for RowsKnowEachOther {}

/// Rows of these lengths with so many columns: of layers that are wide, narrow, long, short, and of convolutions.
const SHAPES: [(usize, usize); 9] =
    [(784, 64), (60, 100), (64, 16), (256, 32), (32, 10), (105, 2), (105, 1), (1000, 10), (700, 3)];

/// Multiplies matrices of many shapes by parts and as a whole, and compares every bit: some milliseconds.
///
/// # Errors
/// [`RowsKnowEachOther`], with the first shape that differs.
pub fn check_rows() -> Result<(), RowsKnowEachOther> {
    check(&SHAPES, &[1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 40], multiply)
}

/// The same for any product and any shapes, and for the first and the last so many rows of as many as the most.
fn check(
    shapes: &[(usize, usize)],
    rows: &[usize],
    multiply: impl Fn(&mut [f32], Existing, View<'_>, View<'_>),
) -> Result<(), RowsKnowEachOther> {
    let most = rows.iter().copied().max().unwrap_or(0);
    for &(length, columns) in shapes {
        let (a, b) = (numbers(most * length, 3), numbers(length * columns, 4));
        let rights = [View::new(&b, length, columns), View::new(&b, columns, length).transposed()];
        for right in rights {
            let product = |rows: std::ops::Range<usize>| {
                let mut target = vec![0.5; rows.len() * columns];
                let left = View::new(&a[rows.start * length..rows.end * length], rows.len(), length);
                multiply(&mut target, Existing::Add, left, right);
                target
            };
            let all = product(0..most);
            for &rows in rows {
                let (first, last) = (product(0..rows), product(most - rows..most));
                if first != all[..rows * columns] || last != all[(most - rows) * columns..] {
                    return Err(RowsKnowEachOther { rows, length, columns });
                }
            }
        }
    }
    Ok(())
}

/// Numbers between −1/2 and 1/2, made up.
pub(crate) fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        #[expect(clippy::cast_possible_truncation, reason = "24 bits")]
        let number = (f64::from(state >> 8) / f64::from(1 << 24) - 0.5) as f32;
        number
    };
    (0..count).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_do_not_know_each_other() {
        let shapes = [
            (784, 1000),
            (60, 100),
            (64, 16),
            (256, 32),
            (32, 10),
            (105, 2),
            (105, 1),
            (1000, 10),
            (9, 10),
            (25, 32),
            (700, 3),
        ];
        let rows: Vec<usize> = (1..=130).collect();
        assert_eq!(check(&shapes, &rows, multiply), Ok(()));
        assert_eq!(check_rows(), Ok(()));
    }

    /// A product that adds up in another order where there are few rows, as some kernels do, is found out.
    #[test]
    fn a_product_whose_rows_know_each_other_is_found_out() {
        let faulty = |target: &mut [f32], mode: Existing, left: View<'_>, right: View<'_>| {
            multiply(target, mode, left, right);
            if target.len() < 64 {
                target[0] = target[0].next_up();
            }
        };
        let found = check(&SHAPES, &[1, 8, 40], faulty).expect_err("found out");
        assert!(found.rows * found.columns < 64, "{found}");
        assert!(found.to_string().starts_with("on this machine"), "{found}");
    }
}
