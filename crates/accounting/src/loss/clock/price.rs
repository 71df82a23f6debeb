//! The price of a step: the least payment that was seen to be enough at every threshold.

use super::law::{Law, left_of, on_grid};
use super::line::{Coin, Line, Stretch};
use super::rest::Rest;
use paygo_numeric::elementary::{exp, ln, ln_up};
use paygo_numeric::rounding::mul_down;

/// A payment in steps that is so many times the ratio of the second moments is none.
const MOST_RATIO: f64 = 16.0;
/// Places in each spread, at first.
const FINENESS: f64 = 32.0;
/// Shares of the payment's spread that a line covers to either side of its middle.
const REACH: f64 = 1.5;
/// A candidate is enlarged by this beyond what it seemed to lack.
const MARGIN: f64 = 1.0 + 2e-5;
/// How near to the least payment a search comes.
const CLOSE: f64 = 2e-4;
/// Candidates for the same lines, and how often lines are drawn anew until a search is given up.
const CANDIDATES: usize = 24;
const DRAFTS: usize = 64;
/// Guesses until the middle is tried.
const PATIENCE: u32 = 3;
/// Most lines of a draft, and most places times frequencies of all of them.
const MOST_LINES: usize = 64;
const MOST_DRAWN: f64 = 4e6;
/// A payment of less changes no sum.
const UNIT: f64 = 1e-18;
/// Numbers that the search for one price adds up, and those for all prices of a mechanism: far more than they usually take.
const MOST_WORK: f64 = 2e7;
pub(super) const MOST_WORK_OF_ALL: f64 = 2e8;
/// What lies between places may be so much of a price until they are put closer.
const COARSE: f64 = 1e-3;
/// Tilts at which tails are bounded: from so many, times so much each.
const LEAST_TILT: f64 = 0.05;
const TILT_RATIO: f64 = 1.13;

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
    pub(super) fn of(self, b: f64) -> f64 {
        match self {
            Self::Fixed(eta) => eta,
            Self::Rate(rate) => mul_down(rate, b),
        }
    }
}

/// What a step is to be paid for with, and what is left after it.
#[derive(Clone, Debug)]
pub(super) struct Task<'a> {
    pub(super) rest: Rest<'a>,
    pub(super) coin: Coin<'a>,
    pub(super) allowance: Allowance,
}

/// One direction of a step: its law, and its moments for Chernoff's bound.
#[derive(Debug)]
pub(super) struct Direction {
    law: Law,
    /// λ, `ln E[e^{λL}]` rounded up.
    moments: Vec<(f64, f64)>,
}

impl<'a> Direction {
    /// For clocks that stand between `least` and `most`.
    pub(super) fn new(law: Law, least: f64, most: f64) -> Self {
        let (mut tilt, last) = (on_grid(LEAST_TILT / most.sqrt()), 40.0 / least.sqrt());
        let mut moments = Vec::new();
        while tilt <= last {
            let moment = law.log_moment(tilt);
            if !moment.is_finite() {
                break;
            }
            moments.push((tilt, moment));
            tilt = on_grid(tilt * TILT_RATIO);
        }
        Self { law, moments }
    }

    /// From which threshold on the step with what is left is within the allowance, and the tilt that shows it.
    ///
    /// # Theorem
    /// `(1 − e^{x−l})₊ ≤ c·e^{λ(l−x)}` with `c = λ^λ/(λ+1)^{λ+1}`, hence `H(x) ≤ c·E[e^{λL}]·e^{−λx}`.
    fn end(&self, rest: &Rest<'_>, allowance: f64) -> Option<(f64, f64)> {
        let goal = ln(allowance);
        let at = |&(tilt, moment): &(f64, f64)| {
            let bend = tilt * ln(tilt) - (tilt + 1.0) * ln(tilt + 1.0);
            let left = rest.log_moment(tilt);
            let sum = moment + left + bend - goal;
            let slack = 1e-12 * (moment.abs() + left.abs() + 4.0 * tilt * ln_up(tilt + 2.0) + goal.abs());
            (((sum + slack) / tilt) * (1.0 + 1e-12), tilt)
        };
        let ends = self.moments.iter().map(at).filter(|(end, _)| !end.is_nan());
        ends.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(end, tilt)| (end.max(0.0), tilt))
    }

    /// Lines from threshold 0 to the end for a payment of about `b`.
    fn lines(&'a self, task: &Task<'a>, b: f64, allowance: f64, fineness: f64) -> Option<Vec<Line<'a>>> {
        // What is left after a payment in steps may be one of them more.
        let most_left = match task.coin {
            Coin::Noise => task.rest.clone(),
            Coin::Steps(law) => task.rest.and(0.0, Some((law, 1.0))),
        };
        let (end, steepest) = self.end(&most_left, allowance)?;
        let whole = match task.coin {
            Coin::Noise => task.rest.and(b, None),
            Coin::Steps(law) => task.rest.and(0.0, Some((law, b.ceil()))),
        };
        let spread = whole.shape(0.0).variance.sqrt();
        // Far below the mean of what is left and paid the tilt is negative; never too near 0 or −1.
        let apart = 0.5 / spread;
        let clear = |tilt: f64| {
            let tilt = if tilt.abs() < apart { tilt.signum() * apart } else { tilt };
            if tilt > 0.0 { on_grid(tilt).max(on_grid(apart)) } else { tilt }
        };
        let mut tilt = REACH / spread - 0.5;
        tilt = clear(if tilt < -apart { tilt } else { apart }).min(steepest);
        let mut from = 0.0;
        let mut lines = Vec::new();
        loop {
            let shape = whole.shape(tilt);
            let spread = shape.variance.sqrt();
            let reach = shape.mean + REACH * spread;
            let last = tilt >= steepest || reach >= end;
            let to = if last { end.max(from) } else { reach.max(from) };
            let stretch = Stretch { tilt, from, to, spread, fineness };
            lines.push(Line::new(&self.law, &task.rest, task.coin, 3.0 * b, stretch)?);
            if last {
                return Some(lines);
            }
            (from, tilt) = (to, clear(tilt + 2.0 * REACH / spread).min(steepest));
            let drawn: f64 = lines.iter().map(|line: &Line<'_>| line.work().0).sum();
            if lines.len() > MOST_LINES || drawn > MOST_DRAWN {
                return None;
            }
        }
    }

    /// The least payment that was seen to be enough; at most `most`, and not looked for below `least`. What it takes comes off the work that is
    /// left; when there is none the search ends where it is.
    pub(super) fn price(&'a self, task: &Task<'a>, (least, most): (f64, f64), left: &mut f64) -> Option<f64> {
        let allowance = |b: f64| left_of(task.allowance.of(b), self.law.lost * (1.0 + 1e-9));
        let unit = match task.coin {
            Coin::Noise => 1.0,
            Coin::Steps(law) => law.spread,
        };
        let spread = self.law.spread / unit;
        // Nobody would pay so much more in steps than the moments are apart.
        let most = match task.coin {
            Coin::Noise => most,
            Coin::Steps(_) => most.min(MOST_RATIO * spread * spread),
        };
        let mut search = Search::from(least.max(spread * spread), least);
        let (mut fineness, mut found, mut work) = (FINENESS, f64::INFINITY, left.min(MOST_WORK));
        let before = work;
        for _ in 0..DRAFTS {
            if work <= 0.0 {
                break;
            }
            if search.little.0 >= most * (1.0 - CLOSE) {
                break;
            }
            search.next = search.next.min(most);
            let b = search.next;
            // What is within the allowance of less than b is within that of b.
            let floor = 0.25 * b;
            let Some(lines) = allowance(floor).and_then(|allowance| self.lines(task, b, allowance, fineness)) else {
                search.saw(b, f64::INFINITY);
                continue;
            };
            let (each, drawn) =
                lines.iter().map(Line::work).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            work -= drawn;
            let mut coarse = false;
            for _ in 0..CANDIDATES {
                let b = search.next.min(most);
                if b < floor || b > 12.0 * floor || search.is_done() {
                    break;
                }
                let (mut short, mut between) = (f64::INFINITY, 0.0);
                if let Some(allowed) = allowance(b) {
                    let each = lines.iter().map(|line| line.shortfall(b, allowed));
                    (short, between) = each.fold((0.0, 0.0), |worst, one| if one.0 > worst.0 { one } else { worst });
                }
                search.saw(b, short);
                (coarse, work) = (between > COARSE, work - each);
            }
            found = found.min(search.enough.0);
            if search.is_done() {
                // Where a payment is as large as what is left, nobody will want to pay it.
                let dear = found > task.rest.noise && task.rest.steps.is_empty();
                if fineness >= 2.0 * FINENESS || !coarse || dear {
                    break;
                }
                (search, fineness) = (Search::from(found, least), 2.0 * fineness);
            }
        }
        *left -= before - work;
        (found <= most).then_some(found)
    }
}

/// Where a search for the least payment is.
struct Search {
    next: f64,
    /// The largest that was not seen to be enough, the least that was, and by which factor either fell short.
    little: (f64, f64),
    enough: (f64, f64),
    /// How steeply the shortfall falls with the payment, both as logarithms.
    slope: f64,
    last: (f64, f64),
    growth: f64,
    /// How far apart the two were when they last came together by half, as a logarithm, and how many candidates ago that was.
    apart: (f64, u32),
}

impl Search {
    /// From this payment on, of which less is not wanted.
    const fn from(next: f64, least: f64) -> Self {
        let none = (f64::INFINITY, 0.0);
        Self {
            next,
            little: (least * (1.0 - CLOSE), f64::INFINITY),
            enough: none,
            slope: 1.0,
            last: (0.0, 0.0),
            growth: 2.0,
            apart: (f64::INFINITY, 0),
        }
    }

    /// A candidate, and about the factor by which it fell short.
    fn saw(&mut self, b: f64, short: f64) {
        if short <= 1.0 {
            self.enough = if b < self.enough.0 { (b, short) } else { self.enough };
        } else if b > self.little.0 {
            self.little = (b, short);
        }
        let (before, short_before) = std::mem::replace(&mut self.last, (b, short));
        let slope = ln(short_before / short) / ln(b / before);
        if slope.is_finite() && slope > 0.0 {
            self.slope = slope.clamp(0.3, 60.0);
        }
        // To where it is just enough, if it goes on like this; twice as far at most.
        let share = if short.is_finite() { ln(short.max(1e-3)) / self.slope } else { 2.0 };
        let guess = b * exp(share.clamp(-0.7, 2.0)) * MARGIN;
        let (low, high) = (self.little.0, self.enough.0);
        let apart = ln(high / low);
        self.apart = if apart <= 0.5 * self.apart.0 { (apart, 0) } else { (self.apart.0, self.apart.1 + 1) };
        // Guesses that creep are worth less than the middle.
        let creeps = self.apart.1 >= PATIENCE && apart.is_finite();
        self.next = if !creeps && guess > low * (1.0 + 0.5 * CLOSE) && guess < high * (1.0 - 0.5 * CLOSE) {
            guess
        } else if high.is_finite() {
            (low * high).sqrt()
        } else {
            self.growth *= self.growth;
            low.max(b) * self.growth.min(1e6)
        };
    }

    /// Little more is to be gained: what was enough nearly was not, or a little less was not.
    fn is_done(&self) -> bool {
        let (enough, short) = self.enough;
        enough <= self.little.0 * (1.0 + 3.0 * CLOSE)
            || enough <= UNIT
            || (short > 0.0 && -ln(short) < 2.0 * CLOSE * self.slope)
    }
}
