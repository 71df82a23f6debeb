//! The sum of clipped gradients: the one thing that is computed from the private examples, and never shown without noise.
//!
//! # What one example can do to the sum
//! In real arithmetic, no more than the clip norm. In single precision a little more, and the noise pays for it
//! ([`Summer::l2_sensitivity`]):
//! - What an example contributes depends on that example and the parameters alone, bit for bit ([`crate::model::Model`]; the rows of a
//!   matrix product do not know each other).
//! - Examples are added up in *chains*, and taking one away changes one chain. Where neighbors have equally many examples, an example
//!   comes to a chain by its place in the batch, which is the same for both. Otherwise by a coin of its own, tossed once for the whole
//!   run; whatever the coins of the others are, they are as likely without it. (Places would not do: where a row is taken out of a
//!   file, all that follow move up. Where a chain gets longer than ever expected, the rest are added one by one.) Adding up L vectors of norm C in single precision is off by at most `L²/2·u·C`, once for each
//!   neighbor.
//! - Chains are added up in double precision, which is counted too: 10⁻⁶ of C for a million examples.
//! - Norms are taken larger than computed by [`NORM_MARGIN`], more than the error of computing them.

use crate::data::Examples;
use crate::model::{Chunk, Existing, Findings, MissingGradient, Model};
use crate::vector::vectorized;
use paygo_accounting::params::{Neighbors, OutOfDomain};
use paygo_accounting::secret::Secret;
use paygo_noise::{Source, coin};
use paygo_numeric::rounding::{add_up, mul_up, sqrt_up};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

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
        let groups = norms.len() / rows.max(1);
        factors.clear();
        if self.by_layer {
            factors.resize(norms.len(), 0.0);
            let each = factors.chunks_exact_mut(rows.max(1)).zip(norms.chunks_exact(rows.max(1)));
            each.zip(&self.norms).for_each(|((factors, norms), &limit)| write_factors(norms, limit, factors));
        } else {
            factors.resize(rows, 0.0);
            let whole: Vec<f64> = (0..rows).map(|row| whole_norm(rows, norms, row)).collect();
            write_factors(&whole, self.norms[0], factors);
            for _ in 1..groups {
                factors.extend_from_within(..rows);
            }
        }
    }
}

/// [`factor`] of each.
fn write_factors(norms: &[f64], limit: f64, factors: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            for (to, &norm) in factors.iter_mut().zip(norms) {
                *to = factor(norm, limit);
            }
        },
    );
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
    norms[row..].iter().step_by(rows).sum()
}

/// At most `limit/√norm`, and at most 1; 0 when the norm is no number.
#[inline(always)]
fn factor(norm: f64, limit: f64) -> f32 {
    let longest = (norm * (1.0 + NORM_MARGIN)).sqrt();
    // ROUNDING: to nearest; the margin is more than a unit roundoff.
    #[expect(clippy::cast_possible_truncation, reason = "single precision is what gradients are in")]
    let factor = if longest <= limit { 1.0 } else { (limit / longest) as f32 };
    // Below the normal numbers a roundoff is more than the margin.
    if norm.is_finite() && factor >= f32::MIN_POSITIVE { factor } else { 0.0 }
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
enum Share<'a> {
    None,
    Clip(&'a Clip),
    Personal(Personal<'a>),
}

impl<'a> Share<'a> {
    /// Takes the first `count` examples off.
    fn take(&mut self, count: usize) -> Share<'a> {
        match self {
            Self::None => Share::None,
            Self::Clip(clip) => Share::Clip(clip),
            Self::Personal(personal) => {
                let (spent, rest) = std::mem::take(&mut personal.spent).split_at_mut(count);
                personal.spent = rest;
                let sampled = personal.sampled.map(|sampled| {
                    let (first, rest) = sampled.split_at(count);
                    personal.sampled = Some(rest);
                    first
                });
                Share::Personal(Personal { spent, charge: personal.charge, sampled })
            }
        }
    }
}

/// What one chain came to. It depends on the data.
struct Chain {
    sum: Vec<f32>,
    /// Whether anything is in the sum: if not, its numbers are of another chain.
    mode: Existing,
    loss: f64,
    correct: usize,
}

impl Chain {
    const fn new() -> Self {
        Self { sum: Vec::new(), mode: Existing::Replace, loss: 0.0, correct: 0 }
    }

    /// A chunk is in the sum.
    fn count(&mut self, findings: &Findings) {
        self.mode = Existing::Add;
        let finite = |&loss: &f32| if loss.is_finite() { f64::from(loss) } else { 0.0 };
        self.loss += findings.losses.iter().map(finite).sum::<f64>();
        self.correct += findings.correct.iter().filter(|&&correct| correct).count();
    }
}

/// Adds up gradients, batch after batch, in memory that does not grow with the batch.
pub struct Summer<'a, M: ?Sized> {
    model: &'a M,
    examples: &'a Examples,
    /// The longest chain.
    longest: usize,
    /// Public: how many examples are in a batch, about.
    expected: usize,
    /// The chain of each example, by its coin; none where places do.
    chain_of: Option<Vec<u32>>,
    /// How many chains there are.
    chains: usize,
    /// A batch of everybody, once it has been asked for.
    everybody: Option<Everybody>,
    /// How many examples are worked on at a time, at most.
    rows: usize,
    /// One for each thread.
    scratches: Vec<Mutex<Scratch>>,
    /// Chains that are added up at a time.
    wave: Vec<Chain>,
    /// The sum of all chains but those that are still `pending`, the first so many of the wave.
    total: Vec<f64>,
    /// Whether nothing is in the total yet: its numbers are of another batch.
    first: bool,
    pending: usize,
}

/// The order of a batch of everybody, which is the same every time; and the examples in that order, where they are not too many to be
/// stored twice.
struct Everybody {
    order: Arc<Vec<u32>>,
    examples: Option<Examples>,
}

/// About how many numbers are stored twice at most.
const TWICE: usize = 1 << 23;

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
    /// For batches of about `expected` examples, a public number. Tosses each example's coin where neighbors differ in number.
    #[must_use]
    pub fn new(
        model: &'a M,
        examples: &'a Examples,
        expected: usize,
        neighbors: Neighbors,
        source: &mut Source,
    ) -> Self {
        // As many chains for every thread.
        let chains = expected.div_ceil(chain_length(model.parameters())).next_multiple_of(rayon::current_num_threads());
        let mean = expected.div_ceil(chains).max(1);
        let chain_of = match neighbors {
            Neighbors::AddRemove => Some(coins(examples.len(), chains, source)),
            Neighbors::ZeroOut | Neighbors::ReplaceOne => None,
        };
        // Coins: so long that a chain is practically never longer, twelve deviations.
        let longest = if chain_of.is_some() { mean + 12 * mean.isqrt() + 12 } else { mean };
        // As many examples at a time as stay in cache; or as make the parameters, which pass through it for every chunk, worth it.
        let each = model.memory(64).div_ceil(64) + model.input().len();
        let rows = (CHUNK_NUMBERS.max(2 * model.parameters()) / each).clamp(8, 512);
        Self {
            model,
            examples,
            longest,
            expected,
            chain_of,
            chains,
            everybody: None,
            rows,
            scratches: (0..rayon::current_num_threads()).map(|_| Mutex::default()).collect(),
            wave: (0..waves(model.parameters())).map(|_| Chain::new()).collect(),
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
        let everybody = batch.len() == self.examples.len();
        let order = self.order(batch);
        let positions: Cow<'_, [u32]> = match &order {
            Some(order) => order.iter().map(|&at| batch[at as usize]).collect(),
            None => batch.into(),
        };
        // Accounts in the order of the chains, and back again at the end.
        let mut moved = Vec::new();
        let mut sampled = Vec::new();
        let mut back = None;
        let mut rest = match (scaling, &order) {
            (Scaling::None, _) => Share::None,
            (Scaling::Clip(clip), _) => Share::Clip(clip),
            (Scaling::Personal(personal), None) => Share::Personal(personal),
            (Scaling::Personal(personal), Some(order)) => {
                moved.extend(order.iter().map(|&at| personal.spent[at as usize]));
                sampled.extend(order.iter().map(|&at| personal.sampled.is_none_or(|sampled| sampled[at as usize])));
                back = Some((personal.spent, order));
                Share::Personal(Personal { spent: &mut moved, charge: personal.charge, sampled: Some(&sampled) })
            }
        };
        let mut chains: Vec<(Range<usize>, Share<'_>)> =
            self.cut(&positions).into_iter().map(|chain| (chain.clone(), rest.take(chain.len()))).collect();
        let mut found = BatchFindings { count: batch.len(), ..BatchFindings::default() };
        (self.first, self.pending) = (true, 0);
        for chains in chains.chunks_mut(self.wave.len()) {
            self.absorb();
            self.pending = chains.len();
            let arranged = match &order {
                None => Some(self.examples),
                Some(_) => self.everybody.as_ref().and_then(|everybody| everybody.examples.as_ref()),
            };
            let rows = match arranged.filter(|_| everybody) {
                Some(examples) => Rows::Arranged(examples),
                None => Rows::Listed(self.examples, &positions),
            };
            let (task, scratches) = (Task { model: self.model, parameters, rows, most: self.rows }, &self.scratches);
            let wave = &mut self.wave[..chains.len()];
            wave.par_iter_mut().zip(chains).try_for_each(|(chain, (range, part))| {
                // Every thread has its own, so nobody waits; after a panic, what is left in it is written over.
                let scratch = &scratches[rayon::current_thread_index().unwrap_or(0) % scratches.len()];
                let mut scratch = scratch.lock().unwrap_or_else(PoisonError::into_inner);
                task.chain(&mut scratch, range.clone(), part, chain)
            })?;
            found.loss += wave.iter().map(|chain| chain.loss).sum::<f64>();
            found.correct += wave.iter().map(|chain| chain.correct).sum::<usize>();
        }
        if let Some((spent, order)) = back {
            order.iter().zip(moved).for_each(|(&at, share)| spent[at as usize] = share);
        }
        Ok(Secret::new(found))
    }

    /// Where the chains of a batch begin and end, whose positions come chain by chain.
    fn cut(&self, positions: &[u32]) -> Vec<Range<usize>> {
        // Without coins all are of one kind, and are cut at the same places.
        let same =
            |&a: &u32, &b: &u32| self.chain_of.as_ref().is_none_or(|chain| chain[a as usize] == chain[b as usize]);
        let (longest, coins) = (self.longest, self.chain_of.is_some());
        let mut start = 0;
        positions
            .chunk_by(same)
            .flat_map(|chain| {
                let (first, others) = chain.split_at(longest.min(chain.len()));
                // Of a chain by coins that is too long, each further example is one of its own: taking one away then changes two chains,
                // however many there are.
                std::iter::once(first).chain(others.chunks(if coins { 1 } else { longest }))
            })
            .map(|chain| {
                start += chain.len();
                start - chain.len()..start
            })
            .collect()
    }

    /// The places of a batch, chain by chain, within a chain in the order of the batch; none where they stay as they are.
    fn order(&mut self, batch: &[u32]) -> Option<Arc<Vec<u32>>> {
        let chain_of = self.chain_of.as_ref()?;
        // A batch of everybody has the same order every time.
        if batch.len() < self.examples.len() {
            return Some(Arc::new(sorted(batch, chain_of, self.chains)));
        }
        let everybody = self.everybody.get_or_insert_with(|| {
            let order = sorted(batch, chain_of, self.chains);
            let numbers = self.examples.len() * self.examples.shape().len();
            let examples = (numbers <= TWICE).then(|| {
                let order: Vec<usize> = order.iter().map(|&at| at as usize).collect();
                self.examples.select(&order)
            });
            Everybody { order: Arc::new(order), examples }
        });
        Some(Arc::clone(&everybody.order))
    }

    /// How many examples are worked on at a time, at most.
    pub(crate) const fn rows_at_a_time(&self) -> usize {
        self.rows
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
        // Where places do, how many examples there are is public, and a batch may be all of them, most multiplied by 0.
        let most = if self.chain_of.is_some() { 0 } else { self.examples.len().div_ceil(self.longest) };
        let chains = (self.chains.max(most) as f64 + 1.0) * (self.expected as f64 + 1.0) * 4.0 * f64::EPSILON;
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
        let (chains, first) = (&self.wave[..self.pending], self.first);
        self.total.par_chunks_mut(BLOCK).enumerate().for_each(|(block, total)| {
            add_chains(chains, first, block * BLOCK, total);
        });
        (self.first, self.pending) = (false, 0);
    }

    /// Writes the numbers of the sum from a position on.
    pub(crate) fn part(&self, start: usize, part: &mut [f64]) {
        if !self.first {
            part.copy_from_slice(&self.total[start..][..part.len()]);
        }
        add_chains(&self.wave[..self.pending], self.first, start, part);
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

/// The places of a batch, chain by chain.
fn sorted(batch: &[u32], chain_of: &[u32], chains: usize) -> Vec<u32> {
    let mut starts = vec![0u32; chains + 1];
    for &index in batch {
        starts[chain_of[index as usize] as usize + 1] += 1;
    }
    for chain in 0..chains {
        starts[chain + 1] += starts[chain];
    }
    let mut order = vec![0; batch.len()];
    for (at, &index) in (0..).zip(batch) {
        let next = &mut starts[chain_of[index as usize] as usize];
        order[*next as usize] = at;
        *next += 1;
    }
    order
}

/// Adds the sums of chains, in order and from a position on, to a part of the total; or to nothing, if this is the first.
fn add_chains(chains: &[Chain], first: bool, start: usize, total: &mut [f64]) {
    vectorized(
        #[inline(always)]
        || {
            let mut rest = chains;
            if first {
                if let Some((one, others)) = chains.split_first() {
                    for (total, &number) in total.iter_mut().zip(&one.sum[start..]) {
                        *total = f64::from(number);
                    }
                    rest = others;
                } else {
                    total.fill(0.0);
                }
            }
            for chain in rest {
                for (total, &number) in total.iter_mut().zip(&chain.sum[start..]) {
                    *total += f64::from(number);
                }
            }
        },
    );
}

/// Numbers that are worked on at a time where a long vector is split among threads.
const BLOCK: usize = 1 << 12;

/// About how many numbers a chunk of examples may keep.
const CHUNK_NUMBERS: usize = 1 << 17;

/// Where the examples of a batch lie, in the order of their chains.
enum Rows<'a> {
    /// At these positions.
    Listed(&'a Examples, &'a [u32]),
    /// One after another.
    Arranged(&'a Examples),
}

impl Rows<'_> {
    /// Those in a range, brought together if need be.
    fn chunk<'a>(&'a self, range: Range<usize>, gathered: &'a mut OwnChunk) -> Chunk<'a> {
        match *self {
            Rows::Arranged(examples) => examples.chunk(range),
            Rows::Listed(examples, positions) => {
                let OwnChunk { inputs, labels, squared_norms } = gathered;
                inputs.clear();
                labels.clear();
                squared_norms.clear();
                for &position in &positions[range] {
                    let position = position as usize;
                    inputs.extend_from_slice(examples.input(position));
                    labels.push(examples.label(position));
                    squared_norms.push(examples.squared_norm(position));
                }
                Chunk { inputs, labels, squared_norms: Some(squared_norms) }
            }
        }
    }
}

/// What a thread needs to work on a chunk. What is in it is of no importance.
#[derive(Default)]
struct Scratch {
    gathered: OwnChunk,
    work: Work,
}

/// The examples of a chunk.
#[derive(Default)]
struct OwnChunk {
    inputs: Vec<f32>,
    labels: Vec<u32>,
    squared_norms: Vec<f64>,
}

#[derive(Default)]
struct Work {
    memory: Vec<f32>,
    findings: Findings,
    norms: Vec<f64>,
    factors: Vec<f32>,
}

/// One batch.
struct Task<'a, M: ?Sized> {
    model: &'a M,
    parameters: &'a [f32],
    rows: Rows<'a>,
    /// How many examples are worked on at a time, at most.
    most: usize,
}

impl<M: Model + ?Sized> Task<'_, M> {
    /// Adds up the examples in this range of the rows.
    fn chain(
        &self,
        scratch: &mut Scratch,
        range: Range<usize>,
        part: &mut Share<'_>,
        chain: &mut Chain,
    ) -> Result<(), MissingGradient> {
        chain.sum.resize(self.parameters.len(), 0.0);
        (chain.mode, chain.loss, chain.correct) = (Existing::Replace, 0.0, 0);
        // Chunks of the same size.
        let size = range.len().div_ceil(range.len().div_ceil(self.most).max(1)).max(1);
        for start in range.clone().step_by(size) {
            let range = start..range.end.min(start + size);
            let mut part = part.take(range.len());
            let chunk = self.rows.chunk(range, &mut scratch.gathered);
            self.chunk(&mut scratch.work, chunk, &mut part, chain)?;
        }
        if chain.mode == Existing::Replace {
            chain.sum.fill(0.0);
        }
        Ok(())
    }

    fn chunk(
        &self,
        work: &mut Work,
        chunk: Chunk<'_>,
        part: &mut Share<'_>,
        chain: &mut Chain,
    ) -> Result<(), MissingGradient> {
        let rows = chunk.labels.len();
        let Work { memory, findings, norms, factors } = work;
        let memory = at_least(memory, self.model.memory(rows));
        self.model.examine(self.parameters, chunk, memory, findings)?;
        if matches!(part, Share::None) {
            self.model.add_gradients(chunk, memory, None, &mut chain.sum, chain.mode);
        } else {
            let norms = at_least(norms, self.model.groups() * rows);
            self.model.squared_norms(chunk, memory, norms);
            match part {
                Share::None => {}
                Share::Clip(clip) => clip.factors(rows, norms, factors),
                Share::Personal(personal) => personal.factors(rows, norms, factors),
            }
            // A gradient that is no number contributes nothing, and is as much work as any other: time does not tell.
            silence_the_infinite(rows, norms, factors);
            self.model.add_gradients(chunk, memory, Some(factors), &mut chain.sum, chain.mode);
        }
        chain.count(findings);
        Ok(())
    }
}

/// Whose norm over all groups is no number gets the factor 0 in each of them.
fn silence_the_infinite(rows: usize, norms: &[f64], factors: &mut [f32]) {
    for row in 0..rows {
        let finite = whole_norm(rows, norms, row).is_finite();
        factors[row..].iter_mut().step_by(rows).for_each(|factor| *factor = if finite { *factor } else { 0.0 });
    }
}

/// The first so many numbers, whatever they are, of memory that grows but does not shrink.
fn at_least<T: Copy + Default>(memory: &mut Vec<T>, length: usize) -> &mut [T] {
    if memory.len() < length {
        memory.resize(length, T::default());
    }
    &mut memory[..length]
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
