//! Whether a model lets one example see another, found out with made-up examples on the machine that trains.

use super::{Chunk, Existing, Findings, MissingGradient, Model};

/// Whether made-up examples have the same norms and gradients, bit for bit, alone and in chunks of up to `most`. What the privacy of
/// training rests on is promised by [`Model`]; kernels differ from machine to machine, so it is looked at.
pub(crate) fn examples_are_independent<M: Model + ?Sized>(
    model: &M,
    parameters: &[f32],
    most: usize,
) -> Result<bool, MissingGradient> {
    let length = model.input().len();
    #[expect(clippy::cast_precision_loss, reason = "made up")]
    let inputs: Vec<f32> = (0..most * length).map(|i| ((i * 7919) % 1009) as f32 / 1009.0).collect();
    let labels: Vec<u32> = (0..most).map(|i| u32::try_from(i % model.classes()).unwrap_or(0)).collect();
    let chunk = |rows: std::ops::Range<usize>| {
        Chunk::new(&inputs[rows.start * length..rows.end * length], &labels[rows.start..rows.end])
    };
    for rows in [1, 2, 3, 5, 8, 17, most].into_iter().filter(|&rows| rows <= most) {
        // The last of the chunk, in company and alone.
        let together = last_of(model, parameters, chunk(0..rows))?;
        let alone = last_of(model, parameters, chunk(rows - 1..rows))?;
        if together != alone {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The squared norms and the gradient of the last example of a chunk.
fn last_of<M: Model + ?Sized>(
    model: &M,
    parameters: &[f32],
    chunk: Chunk<'_>,
) -> Result<(Vec<f64>, Vec<f32>), MissingGradient> {
    let (rows, groups) = (chunk.labels.len(), model.groups());
    let (mut memory, mut norms) = (vec![0.0; model.memory(rows)], vec![0.0; groups * rows]);
    let (mut factors, mut gradient) = (vec![0.0; groups * rows], vec![0.0; model.parameters()]);
    model.examine(parameters, chunk, &mut memory, &mut Findings::default())?;
    model.squared_norms(chunk, &mut memory, &mut norms);
    let of_last = |numbers: usize| numbers % rows == rows - 1;
    factors.iter_mut().enumerate().filter(|(at, _)| of_last(*at)).for_each(|(_, factor)| *factor = 1.0);
    model.add_gradients(chunk, &mut memory, Some(&factors), &mut gradient, Existing::Replace);
    let norms = norms.into_iter().enumerate().filter(|(at, _)| of_last(*at)).map(|(_, norm)| norm).collect();
    Ok((norms, gradient))
}
