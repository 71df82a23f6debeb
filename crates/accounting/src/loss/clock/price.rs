//! The price of a step: the least payment that was seen to be enough at every threshold.

use super::law::{Law, left_of};
use super::line::{Line, Stretch};
use paygo_numeric::elementary::{ln, ln_up};
use paygo_numeric::rounding::mul_down;

/// Places in each spread, at first.
const FINENESS: f64 = 24.0;
/// Shares of the payment's spread that a line covers to either side of its middle.
const REACH: f64 = 1.5;
/// A candidate is enlarged by this beyond what it seemed to lack.
const MARGIN: f64 = 1.0 + 2e-5;
/// How near to the least payment a search comes.
const CLOSE: f64 = 1e-4;
/// Candidates for the same lines, and how often lines are drawn anew until a search is given up.
const CANDIDATES: usize = 24;
const DRAFTS: usize = 64;
/// Tilts at which tails are bounded: from so many, times so much each.
const LEAST_TILT: f64 = 0.05;
const TILT_RATIO: f64 = 1.12;

/// What of δ goes with a payment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Allowance {
    /// So much, whatever is paid.
    Fixed(f64),
    /// So much for a payment of 1.
    Rate(f64),
}

impl Allowance {
    /// For a payment, rounded down.
    fn of(self, b: f64) -> f64 {
        match self {
            Self::Fixed(eta) => eta,
            Self::Rate(rate) => mul_down(rate, b),
        }
    }
}

/// One direction of a step: its law, and its moments for Chernoff's bound.
#[derive(Debug)]
pub(super) struct Direction {
    law: Law,
    /// λ, `ln E[e^{λL}]` rounded up.
    moments: Vec<(f64, f64)>,
}

impl Direction {
    /// For clocks that stand between `least` and `most`.
    pub(super) fn new(law: Law, least: f64, most: f64) -> Self {
        let (mut tilt, last) = (LEAST_TILT / most.sqrt(), 40.0 / least.sqrt());
        let mut moments = Vec::new();
        while tilt <= last {
            let moment = law.log_moment(tilt);
            if !moment.is_finite() {
                break;
            }
            moments.push((tilt, moment));
            tilt *= TILT_RATIO;
        }
        Self { law, moments }
    }

    pub(super) fn spread(&self) -> f64 {
        self.law.spread
    }

    /// From which threshold on the step with the clock at `time` is within the allowance, and the tilt that shows it.
    ///
    /// # Theorem
    /// `(1 − e^{x−l})₊ ≤ c·e^{λ(l−x)}` with `c = λ^λ/(λ+1)^{λ+1}`, hence `H(x) ≤ c·E[e^{λL}]·e^{−λx}`.
    fn end(&self, time: f64, allowance: f64) -> Option<(f64, f64)> {
        let goal = ln(allowance);
        let at = |&(tilt, moment): &(f64, f64)| {
            let bend = tilt * ln(tilt) - (tilt + 1.0) * ln(tilt + 1.0);
            let sum = moment + 0.5 * time * tilt * (tilt + 1.0) + bend - goal;
            let slack =
                1e-12 * (moment.abs() + time * tilt * (tilt + 1.0) + 4.0 * tilt * ln_up(tilt + 2.0) + goal.abs());
            (((sum + slack) / tilt) * (1.0 + 1e-12), tilt)
        };
        let ends = self.moments.iter().map(at).filter(|(end, _)| !end.is_nan());
        ends.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(end, tilt)| (end.max(0.0), tilt))
    }

    /// Lines from threshold 0 to the end for a payment of about `b`.
    fn lines(&self, time: f64, b: f64, allowance: f64, fineness: f64) -> Option<Vec<Line>> {
        let (end, steepest) = self.end(time, allowance)?;
        let paid = time + b;
        let spread = paid.sqrt();
        // Far below the mean of the payment's law the tilt is negative; never too near 0 or −1.
        let apart = 0.5 / spread;
        let clear = |tilt: f64| if tilt.abs() < apart { tilt.signum() * apart } else { tilt };
        let mut tilt = (REACH / spread - 0.5).min(steepest);
        tilt = if tilt < -apart { tilt } else { apart.min(steepest) };
        let mut from = 0.0;
        let mut lines = Vec::new();
        loop {
            let reach = paid * (tilt + 0.5) + REACH * spread;
            let last = tilt >= steepest || reach >= end;
            let to = if last { end.max(from) } else { reach };
            lines.push(Line::new(&self.law, Stretch { time, paid, tilt, from, to, fineness })?);
            if last {
                return Some(lines);
            }
            (from, tilt) = (to, clear(tilt + 2.0 * REACH / spread).min(steepest));
        }
    }

    /// The least payment that was seen to be enough when `time` is left after the step; at most `most`, and at least `least`.
    pub(super) fn price(&self, time: f64, allowance: Allowance, (least, most): (f64, f64)) -> Option<f64> {
        let allowance = |b: f64| left_of(allowance.of(b), self.law.lost);
        let mut search = Search { next: least, least, seems_little: 0.0, enough: f64::INFINITY };
        let mut fineness = FINENESS;
        for _ in 0..DRAFTS {
            let b = search.next;
            // What is within the allowance of less than b is within that of b.
            let floor = 0.7 * b;
            let lines = allowance(floor).and_then(|allowance| self.lines(time, b, allowance, fineness));
            let Some(lines) = lines else {
                search.saw(b, f64::INFINITY);
                if search.seems_little > most {
                    return None;
                }
                continue;
            };
            for _ in 0..CANDIDATES {
                let b = search.next;
                if b < floor || b > 3.0 * floor || search.is_done() {
                    break;
                }
                let short = |allowed: f64| lines.iter().map(|line| line.shortfall(b, allowed)).fold(0.0, f64::max);
                search.saw(b, allowance(b).map_or(f64::INFINITY, short));
            }
            if search.seems_little > most {
                return None;
            }
            if search.is_done() {
                let found = search.enough;
                let coarse =
                    || allowance(found).is_some_and(|allowed| lines.iter().any(|line| line.is_coarse(found, allowed)));
                if found < floor || fineness >= 8.0 * FINENESS || !coarse() {
                    return (found <= most).then_some(found);
                }
                (search, fineness) = (Search { next: found, least, seems_little: 0.0, enough: found }, 2.0 * fineness);
            }
        }
        (search.enough <= most).then_some(search.enough)
    }
}

/// Where a search for the least payment is.
struct Search {
    next: f64,
    least: f64,
    /// The largest that was not seen to be enough, the least that was.
    seems_little: f64,
    enough: f64,
}

impl Search {
    /// A candidate, and about the factor by which it fell short.
    fn saw(&mut self, b: f64, short: f64) {
        if short <= 1.0 {
            self.enough = self.enough.min(b);
        } else {
            self.seems_little = self.seems_little.max(b);
        }
        // Where a tail decides, it falls steeply with the payment.
        let guess = b * if short.is_finite() { short.clamp(0.2, 2.0) } else { 8.0 } * MARGIN;
        let (low, high) = (self.seems_little.max(self.least * (1.0 - 2.0 * CLOSE)), self.enough);
        self.next = if guess > low * (1.0 + CLOSE) && guess < high * (1.0 - CLOSE) {
            guess
        } else if high.is_finite() {
            (low * high).sqrt()
        } else {
            low.max(b) * 8.0
        };
    }

    /// Little more is to be gained.
    fn is_done(&self) -> bool {
        self.enough <= self.seems_little.max(self.least) * (1.0 + 3.0 * CLOSE)
    }
}
