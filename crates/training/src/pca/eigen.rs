//! Eigenvectors of a symmetric matrix: post-processing, so any accuracy is sound; this one is that of double precision.
//!
//! Householder's reflections make the matrix tridiagonal, the implicit QL method makes it diagonal, and the vectors that are wanted are
//! carried back. Source: Golub and Van Loan, *Matrix Computations*, §8.3; Bowdler, Martin, Reinsch and Wilkinson, *The QR and QL
//! Algorithms for Symmetric Matrices*, 1968.

use crate::vector::vectorized;
use rayon::prelude::*;

/// Rows of a matrix that one thread works on at a time.
const ROWS: usize = 64;

/// Columns of the eigenvectors that one thread works on at a time: so many that they stay in cache.
const WIDTH: usize = 32;

/// Rotations that are collected before they are carried out.
const ROTATIONS: usize = 1 << 14;

/// Rounds of QL for one eigenvalue; two or three are usual.
const ROUNDS: usize = 64;

/// Eigenvectors of the `count` largest eigenvalues, largest first: row after row, each of length 1.
#[expect(clippy::cast_possible_truncation, reason = "single precision is what inputs are in")]
pub(super) fn largest(matrix: Vec<f64>, size: usize, count: usize) -> Vec<f32> {
    let (_, vectors) = decompose(matrix, size, count);
    vectors.into_iter().map(|x| x as f32).collect()
}

/// The `count` largest eigenvalues, largest first, and their vectors, row after row.
fn decompose(matrix: Vec<f64>, size: usize, count: usize) -> (Vec<f64>, Vec<f64>) {
    let mut tridiagonal = Tridiagonal::of(matrix, size);
    let panels = tridiagonal.diagonalize();
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&a, &b| tridiagonal.diagonal[b].total_cmp(&tridiagonal.diagonal[a]));
    order.truncate(count);
    let mut vectors = vec![0.0; count * size];
    vectors.par_chunks_mut(size.max(1)).zip(&order).for_each(|(vector, &row)| {
        for (part, panel) in vector.chunks_mut(WIDTH).zip(&panels) {
            part.copy_from_slice(&panel[row * part.len()..][..part.len()]);
        }
        tridiagonal.carry_back(vector);
    });
    (order.iter().map(|&i| tridiagonal.diagonal[i]).collect(), vectors)
}

/// `A = Q·T·Qᵀ` with a tridiagonal `T` and `Q` a product of reflections `I − 2·v·vᵀ`.
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Beside the diagonal; one more, which is 0.
    beside: Vec<f64>,
    /// The reflections in order; the one of step `j` acts on the numbers from `j + 1` on. Nothing where none was needed.
    reflections: Vec<Vec<f64>>,
}

impl Tridiagonal {
    fn of(mut a: Vec<f64>, size: usize) -> Self {
        let mut beside = vec![0.0; size];
        let mut reflections = Vec::with_capacity(size);
        for j in 0..size.saturating_sub(1) {
            let mut v = a[j * size + j + 1..(j + 1) * size].to_vec();
            let norm = dot(&v, &v).sqrt();
            // Away from zero, so that nothing cancels.
            let target = if v[0] > 0.0 { -norm } else { norm };
            let is_done = v[1..].iter().all(|&x| x == 0.0);
            beside[j] = if is_done { v[0] } else { target };
            if is_done {
                reflections.push(Vec::new());
                continue;
            }
            v[0] -= target;
            let norm = dot(&v, &v).sqrt();
            v.iter_mut().for_each(|x| *x /= norm);
            reflect(&mut a[(j + 1) * size..], size, j + 1, &v);
            reflections.push(v);
        }
        let diagonal = (0..size).map(|i| a[i * size + i]).collect();
        Self { diagonal, beside, reflections }
    }

    /// Makes it diagonal, by rotations of neighboring rows. The eigenvectors of `T` are what the rotations make of the rows of the
    /// identity; they are returned in panels of [`WIDTH`] columns.
    fn diagonalize(&mut self) -> Vec<Vec<f64>> {
        let (d, e) = (&mut self.diagonal, &mut self.beside);
        let size = d.len();
        let mut panels: Vec<Vec<f64>> = (0..size).step_by(WIDTH).map(|start| identity_panel(size, start)).collect();
        let mut rotations = Vec::with_capacity(ROTATIONS + size);
        for l in 0..size {
            for _ in 0..ROUNDS {
                let is_small = |m: &usize| e[*m].abs() <= f64::EPSILON * (d[*m].abs() + d[*m + 1].abs());
                let m = (l..size - 1).find(is_small).unwrap_or(size - 1);
                if m == l {
                    break;
                }
                let shift = (d[l + 1] - d[l]) / (2.0 * e[l]);
                let mut g = d[m] - d[l] + e[l] / (shift + shift.hypot(1.0).copysign(shift));
                let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
                let mut is_split = false;
                for i in (l..m).rev() {
                    let (f, b) = (s * e[i], c * e[i]);
                    let r = f.hypot(g);
                    e[i + 1] = r;
                    if r == 0.0 {
                        d[i + 1] -= p;
                        e[m] = 0.0;
                        is_split = true;
                        break;
                    }
                    (s, c) = (f / r, g / r);
                    let before = d[i + 1] - p;
                    let t = (d[i] - before) * s + 2.0 * c * b;
                    p = s * t;
                    d[i + 1] = before + p;
                    g = c * t - b;
                    rotations.push((i, c, s));
                }
                if !is_split {
                    d[l] -= p;
                    e[l] = g;
                    e[m] = 0.0;
                }
                if rotations.len() >= ROTATIONS {
                    rotate(&mut panels, size, &rotations);
                    rotations.clear();
                }
            }
        }
        rotate(&mut panels, size, &rotations);
        panels
    }

    /// An eigenvector of `A` from one of `T`.
    fn carry_back(&self, vector: &mut [f64]) {
        for (j, v) in self.reflections.iter().enumerate().rev() {
            if !v.is_empty() {
                let part = &mut vector[j + 1..];
                let twice = 2.0 * dot(part, v);
                subtract(part, twice, v);
            }
        }
    }
}

/// `A − v·wᵀ − w·vᵀ` with `w = 2(A·v − (vᵀ·A·v)·v)`: reflects from both sides. The rows are those that are reflected, and of each the
/// numbers from `start` on.
fn reflect(rows: &mut [f64], size: usize, start: usize, v: &[f64]) {
    let mut w = vec![0.0; v.len()];
    w.par_chunks_mut(ROWS).zip(rows.par_chunks(ROWS * size)).for_each(|(w, rows)| {
        for (w, row) in w.iter_mut().zip(rows.chunks_exact(size)) {
            *w = 2.0 * dot(&row[start..], v);
        }
    });
    let along = dot(&w, v);
    subtract(&mut w, along, v);
    let w = &w;
    rows.par_chunks_mut(ROWS * size).zip(v.par_chunks(ROWS).zip(w.par_chunks(ROWS))).for_each(|(rows, (vs, ws))| {
        vectorized(
            #[inline(always)]
            || {
                for (row, (vi, wi)) in rows.chunks_exact_mut(size).zip(vs.iter().zip(ws)) {
                    for (x, (v, w)) in row[start..].iter_mut().zip(v.iter().zip(w)) {
                        *x -= vi * w + wi * v;
                    }
                }
            },
        );
    });
}

/// Columns of the identity from `start` on.
fn identity_panel(size: usize, start: usize) -> Vec<f64> {
    let width = WIDTH.min(size - start);
    let mut panel = vec![0.0; size * width];
    for column in 0..width {
        panel[(start + column) * width + column] = 1.0;
    }
    panel
}

/// Carries out rotations of the rows `i` and `i + 1`, in order.
fn rotate(panels: &mut [Vec<f64>], size: usize, rotations: &[(usize, f64, f64)]) {
    panels.par_iter_mut().for_each(|panel| {
        let width = panel.len() / size;
        vectorized(
            #[inline(always)]
            || {
                for &(i, c, s) in rotations {
                    let (upper, lower) = panel[i * width..(i + 2) * width].split_at_mut(width);
                    for (x, y) in upper.iter_mut().zip(lower) {
                        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                    }
                }
            },
        );
    });
}

/// A dot product in eight lanes.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    vectorized(
        #[inline(always)]
        || {
            let mut lanes = [0.0; 8];
            let ((xs, x), (ys, y)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
            for (x, y) in xs.iter().zip(ys) {
                for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
                    *lane += x * y;
                }
            }
            lanes.iter().sum::<f64>() + x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>()
        },
    )
}

/// `x −= factor·y`.
fn subtract(x: &mut [f64], factor: f64, y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x -= factor * y);
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
mod tests {
    use super::*;
    use crate::noise::standard_normals;
    use paygo_noise::Source;

    fn symmetric(size: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        (0..size * size).map(|at| entry((at / size).min(at % size), (at / size).max(at % size))).collect()
    }

    /// The largest eigenvalues are those expected, vectors are of length 1 and orthogonal, and `A·v = λ·v`.
    #[track_caller]
    fn check(matrix: &[f64], size: usize, count: usize, expect: Option<&[f64]>) {
        let (values, vectors) = decompose(matrix.to_vec(), size, count);
        assert_eq!((values.len(), vectors.len()), (count, count * size));
        let scale = matrix.iter().map(|x| x * x).sum::<f64>().sqrt();
        for (i, (v, value)) in vectors.chunks_exact(size).zip(&values).enumerate() {
            for (j, other) in vectors.chunks_exact(size).enumerate() {
                let expect = if i == j { 1.0 } else { 0.0 };
                assert!((dot(v, other) - expect).abs() < 1e-11, "{size} {i} {j}: {}", dot(v, other));
            }
            for (row, x) in matrix.chunks_exact(size).zip(v) {
                assert!((dot(row, v) - value * x).abs() <= 1e-12 * scale, "{size} {i}");
            }
        }
        assert!(values.is_sorted_by(|a, b| a >= b));
        if let Some(expect) = expect {
            assert!(values.iter().zip(expect).all(|(a, b)| (a - b).abs() <= 1e-12 * scale), "{values:?} {expect:?}");
        }
        if count == size {
            let trace: f64 = (0..size).map(|i| matrix[i * size + i]).sum();
            assert!((values.iter().sum::<f64>() - trace).abs() <= 1e-11 * scale.max(1e-300), "{size}");
        }
    }

    #[test]
    fn known_matrices() {
        check(&[3.0], 1, 1, Some(&[3.0]));
        check(&[2.0, 1.0, 1.0, 2.0], 2, 2, Some(&[3.0, 1.0]));
        check(&[0.0; 25], 5, 3, Some(&[0.0; 3]));
        for size in [2, 7, 33, 100] {
            let identity = symmetric(size, |i, j| f64::from(i == j));
            check(&identity, size, size, Some(&vec![1.0; size]));
            // Largest, not farthest from zero.
            let diagonal = symmetric(size, |i, j| if i == j { 1.0 - i as f64 } else { 0.0 });
            check(&diagonal, size, 2, Some(&[1.0, 0.0]));
            // Of rank one.
            check(&symmetric(size, |_, _| 1.0), size, 2, Some(&[size as f64, 0.0]));
            // A path: 2·cos(kπ/(n + 1)).
            let path = symmetric(size, |i, j| f64::from(i + 1 == j));
            let values: Vec<f64> =
                (1..=size).map(|k| 2.0 * (k as f64 * std::f64::consts::PI / (size as f64 + 1.0)).cos()).collect();
            check(&path, size, size, Some(&values));
        }
    }

    #[test]
    fn random_matrices() {
        let mut source = Source::insecure_from_seed(31);
        for size in [3, 8, 31, 64, 65, 150] {
            let mut numbers = vec![0.0; size * size];
            standard_normals(&mut source, &mut numbers);
            let matrix = symmetric(size, |i, j| numbers[i * size + j]);
            check(&matrix, size, size, None);
            check(&matrix, size, 2, None);
            // Two blocks that do not touch, one a million times the other, and equal eigenvalues within one.
            let blocks = symmetric(size, |i, j| match (i < size / 2, j < size / 2) {
                (true, true) => 1e6 * numbers[i * size + j],
                (false, false) => f64::from(i == j),
                (true, false) | (false, true) => 0.0,
            });
            check(&blocks, size, size, None);
        }
    }
}
