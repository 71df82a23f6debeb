//! How much noise a question gets: said as such, as a share of everybody's budget, or as the accuracy that is wanted.

use anyhow::Context;
use paygo_accounting::individual::FULL;
use paygo_analysis::{Layout, NoiseStd, Probability, Query, Settings, Statistic};
use paygo_numeric::normal;

/// What noise may depend on: what people may spend, and the probability of an interval. Nothing of the data.
pub(super) struct Sizing<'a> {
    pub(super) settings: &'a Settings,
    pub(super) confidence: Probability,
}

/// The noise of one question, as it was asked for.
#[derive(Clone, Debug)]
pub(super) enum Wanted<'a> {
    /// This standard deviation.
    Std(f64),
    /// As little as costs nobody more than this share of their budget: `5 %`.
    Spend(&'a str),
    /// As much as keeps half an interval within this.
    Within(f64),
}

impl Wanted<'_> {
    /// The standard deviation for a question that `build` makes from it.
    pub(super) fn noise_std(
        &self,
        sizing: &Sizing<'_>,
        statistic: &Statistic,
        build: impl Fn(NoiseStd) -> anyhow::Result<Query>,
    ) -> anyhow::Result<NoiseStd> {
        Ok(match *self {
            Self::Std(noise) => NoiseStd::new(noise)?,
            Self::Spend(share) => for_share(share, sizing.settings, build)?,
            Self::Within(half) => for_accuracy(half, statistic, sizing.confidence)?,
        })
    }
}

/// The least noise of four digits with which the question costs nobody more than a share of their budget, in the worst case.
fn for_share(
    text: &str,
    settings: &Settings,
    build: impl Fn(NoiseStd) -> anyhow::Result<Query>,
) -> anyhow::Result<NoiseStd> {
    let number = text.trim().strip_suffix('%').map(|percent| percent.trim().parse::<f64>().map(|p| p / 100.0));
    let share = number.unwrap_or_else(|| text.trim().parse()).ok().filter(|share| 0.0 < *share && *share <= 1.0);
    let share = share.with_context(|| {
        format!("spend = {text} is not a share; expected above 0 and at most 1, such as \"5 %\" or 0.05")
    })?;
    // ROUNDING: the share down; the noise up.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most FULL")]
    let most = (share * f64::from(FULL)).floor() as u64;
    let fits = |noise: f64| -> bool {
        let cost = || -> anyhow::Result<u64> {
            let layout = Layout::new(vec![build(NoiseStd::new(noise)?)?], None)?;
            let each = settings.tiers.iter().map(|tier| Ok(layout.worst_case(&tier.budget.budget()?)?));
            each.collect::<anyhow::Result<Vec<_>>>().map(|costs| costs.into_iter().max().unwrap_or(u64::MAX))
        };
        // Noise so small that nothing can be laid out is too little.
        cost().is_ok_and(|cost| cost <= most)
    };
    let enough = (-60..60).map(|k| 2f64.powi(k)).find(|&noise| fits(noise));
    let high = enough.with_context(|| format!("no noise makes this cost at most {text} of a budget"))?;
    let (mut low, mut high) = (0.5 * high, high);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        *(if fits(middle) { &mut high } else { &mut low }) = middle;
    }
    let rounded = four_digits(high, f64::ceil);
    Ok(NoiseStd::new(if fits(rounded) { rounded } else { high })?)
}

/// The most noise of four digits with which half an interval is at most `half`.
fn for_accuracy(half: f64, statistic: &Statistic, confidence: Probability) -> anyhow::Result<NoiseStd> {
    match statistic {
        Statistic::People | Statistic::Rows(_) | Statistic::Sum(..) | Statistic::Histogram(..) => {}
        Statistic::Mean(..) | Statistic::Quantile(..) => anyhow::bail!(
            "within goes with counts, sums and histograms: how wide the interval of a mean or a quantile is depends on the \
             answer\nhint: --spend \"5 %\", and --dry-run to see what it costs"
        ),
    }
    anyhow::ensure!(0.0 < half && half < f64::INFINITY, "within = {half} is outside its domain; expected 0 < within");
    // A discrete Gaussian lies within one step of a continuous one, and a step is less than 2⁻¹⁸ of the noise.
    let reach = normal::quantile(0.5 + confidence.get() / 2.0) + 2f64.powi(-18);
    Ok(NoiseStd::new(four_digits(half / reach, f64::floor))?)
}

/// Four significant digits.
fn four_digits(x: f64, round: impl Fn(f64) -> f64) -> f64 {
    few_digits(x, 4, round)
}

/// So many significant digits.
pub(super) fn few_digits(x: f64, count: i32, round: impl Fn(f64) -> f64) -> f64 {
    let exponent = format!("{x:e}").split('e').nth(1).and_then(|e| e.parse::<i32>().ok()).unwrap_or(0);
    let digits = round(x * 10f64.powi(count - 1 - exponent));
    format!("{digits}e{}", exponent + 1 - count).parse().unwrap_or(x)
}
