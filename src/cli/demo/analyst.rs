//! An analyst who decides after each answer what to ask next, and how precisely.
//!
//! The task: the median income of each region, by halving an interval. One noisy count says on which side of the middle the
//! median lies. If the answer is clear, the next question may be rough; if it is not, the same question is asked again with
//! half the noise. Neither the number of questions nor their noise is known in advance.

use super::people::{Person, REGIONS};
use paygo_accounting::charge::Unpriced;
use paygo_accounting::filter::{Clock, Decision, Filter};
use paygo_accounting::odometer::{Odometer, VilleMixture};
use paygo_accounting::params::Neighbors;
use paygo_noise::{DiscreteGaussian, Ratio, Release, Source};

/// Noise of a first, rough question, and of the most precise one, as standard deviations of a count.
pub(super) const ROUGHEST: u64 = 160;
pub(super) const FINEST: u64 = 20;
/// Intervals narrower than this are an answer.
const NARROW: i64 = 600;

/// One request, and what became of it.
pub(super) struct Entry {
    pub(super) question: String,
    pub(super) noise: u64,
    /// The noisy count; `None` when it was refused.
    pub(super) answer: Option<i64>,
    /// What the filter had spent after it, and what the odometer read.
    pub(super) spent: f64,
    pub(super) reading: f64,
}

pub(super) struct Analyst<'a> {
    pub(super) people: &'a [Person],
    pub(super) filter: Filter<Clock>,
    pub(super) odometer: Odometer<VilleMixture>,
    pub(super) source: Source,
    pub(super) log: Vec<Entry>,
}

/// What the analyst learned about one region.
pub(super) enum Median {
    Between(i64, i64),
    /// The budget ended first.
    Unfinished(i64, i64),
}

impl Analyst<'_> {
    /// A noisy count, if the budget allows it: decide, then observe, then draw.
    fn count(&mut self, question: &str, noise: u64, of: impl Fn(&Person) -> bool) -> anyhow::Result<Option<i64>> {
        // One person more or less changes a count by one.
        let release = Release::gaussian(DiscreteGaussian { variance: Ratio::new(noise * noise, 1)? }, 1)?;
        let cost = release.cost(Neighbors::AddRemove)?;
        let answer = match self.filter.request(&cost)? {
            Decision::Admitted(permit) => {
                let charge = self.odometer.price(&cost).map_err(|error: Unpriced| anyhow::anyhow!(error))?;
                self.odometer.observe(&charge)?;
                let count = i64::try_from(self.people.iter().filter(|person| of(person)).count())?;
                release.draw(permit, &mut self.source, &[count])?.first().copied()
            }
            Decision::Refused(_) => None,
        };
        self.log.push(Entry {
            question: question.to_owned(),
            noise,
            answer,
            spent: self.filter.meters().first().map_or(f64::INFINITY, |meter| meter.spent.to_f64_up()),
            reading: self.odometer.reading().get(),
        });
        Ok(answer)
    }

    /// A noisy count that tries rougher noise when the budget refuses.
    fn count_or_rougher(
        &mut self,
        question: &str,
        noise: u64,
        of: impl Fn(&Person) -> bool,
    ) -> anyhow::Result<Option<(i64, u64)>> {
        let mut noise = noise;
        while noise <= ROUGHEST {
            if let Some(answer) = self.count(question, noise, &of)? {
                return Ok(Some((answer, noise)));
            }
            noise *= 2;
        }
        Ok(None)
    }

    /// The median income of a region, as far as the budget goes.
    pub(super) fn median(&mut self, region: usize) -> anyhow::Result<Median> {
        let name = REGIONS[region];
        let (mut low, mut high) = (0i64, 120_000i64);
        let all =
            self.count_or_rougher(&format!("people in {name}"), ROUGHEST / 2, |person| person.region == region)?;
        let Some((all, _)) = all else { return Ok(Median::Unfinished(low, high)) };
        let mut noise = ROUGHEST;
        while high - low > NARROW {
            let middle = low + (high - low) / 2;
            let question = format!("people in {name} who earn more than {middle}");
            let above = |person: &Person| person.region == region && person.income > middle;
            let Some((answer, used)) = self.count_or_rougher(&question, noise, above)? else {
                return Ok(Median::Unfinished(low, high));
            };
            let lead = answer - all / 2;
            let clear = lead.unsigned_abs() > 3 * used;
            if !clear && used > FINEST {
                noise = (used / 2).max(FINEST); // Too close to call: look again, more closely.
                continue;
            }
            if lead > 0 {
                low = middle
            } else {
                high = middle
            }
            noise = if clear { ROUGHEST } else { used };
        }
        Ok(Median::Between(low, high))
    }
}
