//! The sum of clipped gradients: the one thing that is computed from the private examples, and never shown without noise.
//!
//! # What one example can do to the sum
//! In real arithmetic, no more than the clip norm. In single precision a little more, and the noise pays for it
//! ([`Summer::l2_sensitivity`]):
//! - What an example contributes depends on that example and the parameters alone, bit for bit ([`crate::model::Model`]; the rows of a
//!   matrix product do not know each other).
//! - Examples are added up in *chains*. An example comes to a chain by a coin of its own, tossed once for the whole run; so whatever
//!   the coins of the others are, they are as likely without it, and taking it away changes one chain. (Positions would not do: where a
//!   row is taken out of a file, all that follow move up.) Adding up L vectors of norm C in single precision is off by at most `L²/2·u·C`, once for each neighbor.
//! - Chains are added up in double precision, which is counted too: 10⁻⁶ of C for a million examples.
//! - Norms are taken larger than computed by [`NORM_MARGIN`], more than the error of computing them.

use crate::data::Examples;
use crate::model::{Chunk, Findings, MissingGradient, Model, Target};
use crate::vector::vectorized;
use paygo_accounting::params::OutOfDomain;
use paygo_accounting::secret::Secret;
use paygo_noise::{Source, coin};
use paygo_numeric::rounding::{add_up, mul_up, sqrt_up};
use rayon::prelude::*;
use std::sync::Arc;

/// Squared norms are multiplied by one more than this.
pub const NORM_MARGIN: f64 = 1.0 / 1024.0;

/// About how many gradients are added up in single precision: many for large models, where every chain is one more pass over all
/// parameters.
const fn chain_length(parameters: usize) -> usize {
    if parameters > 1 << 16 { 300 } else { 100 }
}

/// How many chains are added up at a time: enough for all threads, and more where a chain is little work.
fn waves(parameters: usize) -> usize {
    ((1 << 20) / parameters.max(1)).clamp(2 * rayon::current_num_threads(), 256)
}

/// How gradients are clipped, in the units of the gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct Clip {
    /// One for all parameters, or one for each layer.
    norms: Vec<f64>,
    by_layer: bool,
}

impl Clip {
    /// Each example's whole gradient to this norm.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not above 0 and finite.
    pub fn whole(clip_norm: f64) -> Result<Self, OutOfDomain> {
        Ok(Self { norms: vec![checked(clip_norm)?], by_layer: false })
    }

    /// Each layer of each example's gradient to this norm. An example can then do `clip_norm·√layers` in all (E12).
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not above 0 and finite, or there is no layer.
    pub fn by_layer(clip_norm: f64, layers: usize) -> Result<Self, OutOfDomain> {
        if layers == 0 {
            return Err(OutOfDomain::new("layers", layers, "at least one"));
        }
        Ok(Self { norms: vec![checked(clip_norm)?; layers], by_layer: true })
    }

    /// Whether layers are clipped one by one.
    #[must_use]
    pub const fn is_by_layer(&self) -> bool {
        self.by_layer
    }

    /// The norm of what one example adds, at most, in real arithmetic: the root of the sum of squares over layers, rounded up.
    #[must_use]
    pub fn norm(&self) -> f64 {
        if let [norm] = *self.norms {
            return norm;
        }
        // ROUNDING: up.
        sqrt_up(self.norms.iter().fold(0.0, |sum, &norm| add_up(sum, mul_up(norm, norm))))
    }

    /// By what each example is multiplied, `factors[group · rows + row]`, from its squared norms. An example with a norm that is no
    /// number gets 0 everywhere.
    fn factors(&self, rows: usize, norms: &[f64], factors: &mut Vec<f32>) {
        factors.clear();
        if self.by_layer {
            let limits = self.norms.iter().flat_map(|&limit| std::iter::repeat_n(limit, rows));
            factors.extend(norms.iter().zip(limits).map(|(&norm, limit)| factor(norm, limit)));
        } else {
            let whole: Vec<f32> = (0..rows).map(|row| factor(whole_norm(rows, norms, row), self.norms[0])).collect();
            for _ in 0..norms.len() / rows {
                factors.extend_from_slice(&whole);
            }
        }
    }
}

fn checked(clip_norm: f64) -> Result<f64, OutOfDomain> {
    // In single precision, with room for sums.
    if (1e-12..=1e12).contains(&clip_norm) {
        Ok(clip_norm)
    } else {
        Err(OutOfDomain::new("clip_norm", clip_norm, "1e-12 <= clip_norm <= 1e12"))
    }
}

/// The squared norm of a row over all groups.
fn whole_norm(rows: usize, norms: &[f64], row: usize) -> f64 {
    norms.iter().skip(row).step_by(rows).sum()
}

/// At most `limit/√norm`, and at most 1; 0 when the norm is no number.
fn factor(norm: f64, limit: f64) -> f32 {
    if !norm.is_finite() {
        return 0.0;
    }
    let norm = (norm * (1.0 + NORM_MARGIN)).sqrt();
    // ROUNDING: to nearest; the margin is more than a unit roundoff.
    #[expect(clippy::cast_possible_truncation, reason = "single precision is what gradients are in")]
    if norm <= limit { 1.0 } else { (limit / norm) as f32 }
}

/// How the gradients of a batch are scaled before they are added.
pub enum Scaling<'a> {
    /// Not at all: not private.
    None,
    /// Clipped.
    Clip(&'a Clip),
    /// To what each person's own budget allows.
    Personal(Personal<'a>),
}

/// A budget for each example of a batch, in its order.
pub struct Personal<'a> {
    /// What each has spent; is moved.
    pub spent: &'a mut [u32],
    /// From what an example has spent and its squared norm: what it has spent then, and its factor.
    pub charge: &'a (dyn Fn(u32, f64) -> (u32, f32) + Sync),
    /// Whose gradients are added. The others pay all the same: they might have been.
    pub sampled: Option<&'a [bool]>,
}

/// The part of a [`Scaling`] that belongs to a chain or a chunk.
enum Part<'a> {
    None,
    Clip(&'a Clip),
    Personal(Personal<'a>),
}

impl<'a> Part<'a> {
    /// Takes the first `count` examples off.
    fn take(&mut self, count: usize) -> Part<'a> {
        match self {
            Self::None => Part::None,
            Self::Clip(clip) => Part::Clip(clip),
            Self::Personal(personal) => {
                let (spent, rest) = std::mem::take(&mut personal.spent).split_at_mut(count);
                personal.spent = rest;
                let sampled = personal.sampled.map(|sampled| {
                    let (first, rest) = sampled.split_at(count);
                    personal.sampled = Some(rest);
                    first
                });
                Part::Personal(Personal { spent, charge: personal.charge, sampled })
            }
        }
    }
}

/// What belongs to one chain while it is added up.
struct Workspace {
    inputs: Vec<f32>,
    labels: Vec<u32>,
    memory: Vec<f32>,
    findings: Findings,
    norms: Vec<f64>,
    factors: Vec<f32>,
    sum: Vec<f32>,
    /// Whether the sum is of this chain.
    mode: Target,
    loss: f64,
    correct: usize,
}

/// Adds up gradients, batch after batch, in memory that does not grow with the batch.
pub struct Summer<'a, M: ?Sized> {
    model: &'a M,
    examples: &'a Examples,
    /// The longest chain.
    longest: usize,
    /// Public: how many examples are in a batch, about.
    expected: usize,
    /// The chain of each example.
    chain_of: Vec<u32>,
    /// How many chains there are.
    chains: usize,
    /// The order of a batch of everybody, once it has been asked for.
    order_of_all: Arc<Vec<u32>>,
    /// How many examples are worked on at a time.
    rows: usize,
    workspaces: Vec<Workspace>,
    /// The sum of all chains but those that are still in `pending` workspaces.
    total: Vec<f64>,
    /// Whether nothing is in the total yet: its numbers are of another batch.
    first: bool,
    /// How many workspaces hold a chain that is not in the total yet.
    pending: usize,
}

/// What a batch came to. It depends on the data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BatchFindings {
    /// The sum of the losses.
    pub loss: f64,
    /// How many labels were predicted.
    pub correct: usize,
    /// How many examples there were.
    pub count: usize,
}

impl<'a, M: Model + ?Sized> Summer<'a, M> {
    /// For batches of about `expected` examples, a public number. Tosses each example's coin.
    #[must_use]
    pub fn new(model: &'a M, examples: &'a Examples, expected: usize, source: &mut Source) -> Self {
        // As many chains for every thread.
        let chains = expected.div_ceil(chain_length(model.parameters())).next_multiple_of(rayon::current_num_threads());
        // So long that a sampled chain is practically never longer: twelve deviations.
        let mean = expected.div_ceil(chains);
        let longest = mean + 12 * mean.isqrt() + 12;
        // As many examples at a time as stay in cache, between 8 and a chain.
        let each = model.memory(64).div_ceil(64) + model.input().len();
        let rows = (CHUNK_NUMBERS / each).clamp(8, 512);
        Self {
            model,
            examples,
            longest,
            expected,
            chain_of: coins(examples.len(), chains, source),
            chains,
            order_of_all: Arc::default(),
            rows,
            workspaces: (0..waves(model.parameters())).map(|_| Workspace::new()).collect(),
            total: vec![0.0; model.parameters()],
            first: true,
            pending: 0,
        }
    }

    /// Adds up the scaled gradients of a batch, given by positions in increasing order. The sum stays inside until noise is added to it.
    ///
    /// # Errors
    /// [`MissingGradient`] when the model does not say what a gradient is.
    pub fn add_up(
        &mut self,
        parameters: &[f32],
        batch: &[u32],
        scaling: Scaling<'_>,
    ) -> Result<Secret<BatchFindings>, MissingGradient> {
        let order = self.order(batch);
        let positions: Vec<u32> = order.iter().map(|&at| batch[at as usize]).collect();
        // Accounts in the order of the chains, and back again at the end.
        let mut moved = Vec::new();
        let mut sampled = Vec::new();
        let (mut rest, back) = match scaling {
            Scaling::None => (Part::None, None),
            Scaling::Clip(clip) => (Part::Clip(clip), None),
            Scaling::Personal(personal) => {
                moved.extend(order.iter().map(|&at| personal.spent[at as usize]));
                sampled.extend(order.iter().map(|&at| personal.sampled.is_none_or(|sampled| sampled[at as usize])));
                let part = Personal { spent: &mut moved, charge: personal.charge, sampled: Some(&sampled) };
                (Part::Personal(part), Some(personal.spent))
            }
        };
        let longest = self.longest;
        let mut chains: Vec<(&[u32], Part<'_>)> = positions
            .chunk_by(|&a, &b| self.chain_of[a as usize] == self.chain_of[b as usize])
            .flat_map(|chain| chain.chunks(longest))
            .map(|chain| (chain, rest.take(chain.len())))
            .collect();
        let (model, examples, rows) = (self.model, self.examples, self.rows);
        let mut found = BatchFindings { count: batch.len(), ..BatchFindings::default() };
        (self.first, self.pending) = (true, 0);
        for chains in chains.chunks_mut(self.workspaces.len()) {
            self.absorb();
            self.pending = chains.len();
            let workspaces = &mut self.workspaces[..chains.len()];
            workspaces.par_iter_mut().zip(chains).try_for_each(|(workspace, (chain, part))| {
                workspace.chain(model, examples, rows, parameters, chain, part)
            })?;
            let workspaces = &*workspaces;
            found.loss += workspaces.iter().map(|workspace| workspace.loss).sum::<f64>();
            found.correct += workspaces.iter().map(|workspace| workspace.correct).sum::<usize>();
        }
        if let Some(spent) = back {
            order.iter().zip(moved).for_each(|(&at, share)| spent[at as usize] = share);
        }
        Ok(Secret::new(found))
    }

    /// The places of a batch, chain by chain; within a chain in the order of the batch.
    fn order(&mut self, batch: &[u32]) -> Arc<Vec<u32>> {
        // A batch of everybody has the same order every time.
        if batch.len() < self.chain_of.len() {
            return Arc::new(self.fresh_order(batch));
        }
        if self.order_of_all.len() < batch.len() {
            self.order_of_all = Arc::new(self.fresh_order(batch));
        }
        Arc::clone(&self.order_of_all)
    }

    fn fresh_order(&self, batch: &[u32]) -> Vec<u32> {
        let mut starts = vec![0u32; self.chains + 1];
        for &index in batch {
            starts[self.chain_of[index as usize] as usize + 1] += 1;
        }
        for chain in 0..self.chains {
            starts[chain + 1] += starts[chain];
        }
        let mut order = vec![0; batch.len()];
        for (at, &index) in (0..).zip(batch) {
            let next = &mut starts[self.chain_of[index as usize] as usize];
            order[*next as usize] = at;
            *next += 1;
        }
        order
    }

    /// What single precision can add to what one example does to the sum, relative to the clip norm.
    ///
    /// Adding up L numbers rounds each of them as often as it is deep in the tree of additions, in all at most `(L − 1)(L + 2)/2` times;
    /// two neighbors, so twice that many unit roundoffs, and a little for everything smaller.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of examples")]
    pub fn margin(&self) -> f64 {
        let longest = self.longest as f64 + 2.0;
        // The chains themselves, one after another, in double precision: each addition is off by a roundoff of at most the whole sum.
        let chains = (self.chains as f64 + 1.0) * (self.expected as f64 + 1.0) * 4.0 * f64::EPSILON;
        longest * longest / f64::from(1 << 24) * (1.0 + 1.0 / 32.0) + chains
    }

    /// By how much one example can change the computed sum: [`Clip::norm`] and [`Summer::margin`], rounded up. Noise is relative to
    /// this.
    #[must_use]
    pub fn l2_sensitivity(&self, clip: &Clip) -> f64 {
        mul_up(clip.norm(), add_up(1.0, self.margin()))
    }

    /// Adds the pending chains to the total.
    fn absorb(&mut self) {
        if self.pending == 0 {
            return;
        }
        let (workspaces, first) = (&self.workspaces[..self.pending], self.first);
        self.total.par_chunks_mut(BLOCK).enumerate().for_each(|(block, total)| {
            if first {
                total.fill(0.0);
            }
            add_chains(workspaces, block, total);
        });
        (self.first, self.pending) = (false, 0);
    }

    /// The sum, block by block, for several threads at once.
    pub(crate) fn blocks(&self) -> impl IndexedParallelIterator<Item = Vec<f64>> + '_ {
        let (workspaces, first) = (&self.workspaces[..self.pending], self.first);
        self.total.par_chunks(BLOCK).enumerate().map(move |(block, total)| {
            let mut sum = if first { vec![0.0; total.len()] } else { total.to_vec() };
            add_chains(workspaces, block, &mut sum);
            sum
        })
    }

    /// The sum without noise. It depends on the data.
    #[must_use]
    pub fn total(&mut self) -> Secret<&[f64]> {
        self.absorb();
        if std::mem::take(&mut self.first) {
            self.total.fill(0.0);
        }
        Secret::new(&self.total)
    }
}

/// A uniform number below `chains` for each example.
fn coins(examples: usize, chains: usize, source: &mut Source) -> Vec<u32> {
    let chain = |source: &mut Source| coin::below(chains as u128, source);
    (0..examples).map(|_| u32::try_from(chain(source)).unwrap_or(u32::MAX)).collect()
}

/// Adds the sums of chains, in order, to a block of the total.
fn add_chains(workspaces: &[Workspace], block: usize, total: &mut [f64]) {
    vectorized(
        #[inline(always)]
        || {
            for workspace in workspaces {
                for (total, &number) in total.iter_mut().zip(&workspace.sum[block * BLOCK..]) {
                    *total += f64::from(number);
                }
            }
        },
    );
}

/// Numbers that are worked on at a time where a long vector is split among threads.
pub(crate) const BLOCK: usize = 1 << 12;

/// About how many numbers a chunk of examples may keep.
const CHUNK_NUMBERS: usize = 1 << 21;

impl Workspace {
    fn new() -> Self {
        Self {
            inputs: Vec::new(),
            labels: Vec::new(),
            memory: Vec::new(),
            findings: Findings::default(),
            norms: Vec::new(),
            factors: Vec::new(),
            sum: Vec::new(),
            mode: Target::Replace,
            loss: 0.0,
            correct: 0,
        }
    }

    fn chain<M: Model + ?Sized>(
        &mut self,
        model: &M,
        examples: &Examples,
        rows: usize,
        parameters: &[f32],
        chain: &[u32],
        part: &mut Part<'_>,
    ) -> Result<(), MissingGradient> {
        self.sum.resize(parameters.len(), 0.0);
        self.mode = Target::Replace;
        (self.loss, self.correct) = (0.0, 0);
        for indices in chain.chunks(rows) {
            self.gather(examples, indices);
            self.chunk(model, parameters, &mut part.take(indices.len()))?;
        }
        if self.mode == Target::Replace {
            self.sum.fill(0.0);
        }
        Ok(())
    }

    fn gather(&mut self, examples: &Examples, indices: &[u32]) {
        self.inputs.clear();
        self.labels.clear();
        for &index in indices {
            self.inputs.extend_from_slice(examples.input(index as usize));
            self.labels.push(examples.label(index as usize));
        }
    }

    fn chunk<M: Model + ?Sized>(
        &mut self,
        model: &M,
        parameters: &[f32],
        part: &mut Part<'_>,
    ) -> Result<(), MissingGradient> {
        let rows = self.labels.len();
        self.memory.resize(model.memory(rows), 0.0);
        let chunk = Chunk { inputs: &self.inputs, labels: &self.labels };
        model.examine(parameters, chunk, &mut self.memory, &mut self.findings)?;
        if matches!(part, Part::None) {
            model.add_gradients(chunk, &mut self.memory, None, &mut self.sum, self.mode);
        } else {
            self.norms.clear();
            self.norms.resize(model.groups() * rows, 0.0);
            model.squared_norms(chunk, &mut self.memory, &mut self.norms);
            match part {
                Part::None => {}
                Part::Clip(clip) => clip.factors(rows, &self.norms, &mut self.factors),
                Part::Personal(personal) => personal.factors(rows, &self.norms, &mut self.factors),
            }
            // A gradient that is no number contributes nothing. Multiplying it by zero would keep the NaN, so the chunk is done again
            // without it; whoever pays has paid.
            let finite: Vec<bool> = (0..rows).map(|row| whole_norm(rows, &self.norms, row).is_finite()).collect();
            if finite.contains(&false) {
                return self.without_the_infinite(model, parameters, &finite);
            }
            model.add_gradients(chunk, &mut self.memory, Some(&self.factors), &mut self.sum, self.mode);
        }
        self.mode = Target::Add;
        self.loss += self.findings.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
        self.correct += self.findings.correct.iter().filter(|&&correct| correct).count();
        Ok(())
    }

    /// The chunk again, with the same factors, without examples whose gradient is no number.
    fn without_the_infinite<M: Model + ?Sized>(
        &mut self,
        model: &M,
        parameters: &[f32],
        finite: &[bool],
    ) -> Result<(), MissingGradient> {
        let (rows, length) = (finite.len(), model.input().len());
        let mut keep = finite.iter().cycle();
        self.factors.retain(|_| keep.next() == Some(&true));
        let kept = |row: &usize| finite[*row];
        self.inputs =
            (0..rows).filter(kept).flat_map(|row| &self.inputs[row * length..(row + 1) * length]).copied().collect();
        self.labels = (0..rows).filter(kept).map(|row| self.labels[row]).collect();
        if self.labels.is_empty() {
            return Ok(());
        }
        self.memory.resize(model.memory(self.labels.len()), 0.0);
        let chunk = Chunk { inputs: &self.inputs, labels: &self.labels };
        model.examine(parameters, chunk, &mut self.memory, &mut self.findings)?;
        // Some layers write gradients down while they find their norms.
        self.norms.truncate(model.groups() * self.labels.len());
        model.squared_norms(chunk, &mut self.memory, &mut self.norms);
        model.add_gradients(chunk, &mut self.memory, Some(&self.factors), &mut self.sum, self.mode);
        self.mode = Target::Add;
        self.loss += self.findings.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
        self.correct += self.findings.correct.iter().filter(|&&correct| correct).count();
        Ok(())
    }
}

impl Personal<'_> {
    fn factors(&mut self, rows: usize, norms: &[f64], factors: &mut Vec<f32>) {
        let groups = norms.len() / rows;
        factors.clear();
        for (row, spent) in self.spent.iter_mut().enumerate() {
            let norm = whole_norm(rows, norms, row) * (1.0 + NORM_MARGIN);
            let (then, factor) = (self.charge)(*spent, norm);
            *spent = then;
            factors.push(if self.sampled.is_none_or(|sampled| sampled[row]) { factor } else { 0.0 });
        }
        for _ in 1..groups {
            factors.extend_from_within(..rows);
        }
    }
}
