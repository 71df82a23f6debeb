//! One round, from a question to its answers: gather, decide, charge, and only then draw.

use crate::accounts::{Accounts, Charged};
use crate::answer::{Answer, answers};
use crate::layout::Layout;
use crate::person::Salt;
use crate::query::Probability;
use crate::round::{Exhausted, RoundError, check_columns, decide, gather_all, people};
use crate::settings::{Mode, Settings};
use crate::table::{Progress, Table};
use paygo_accounting::individual::FULL;
use paygo_accounting::secret::Secret;
use paygo_noise::Source;
use std::path::Path;

/// How to ask.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// What happens to people whose budget does not cover the round.
    pub exhausted: Exhausted,
    /// Whether people may have joined or left since the accounts were made.
    pub people_changed: bool,
    /// With what probability the truth lies in an interval.
    pub confidence: Probability,
}

/// Left out when the budget is used up; the people as they were; 95 %.
impl Default for Manner {
    fn default() -> Self {
        let confidence = Probability::NINETY_FIVE_PERCENT;
        Self { exhausted: Exhausted::default(), people_changed: false, confidence }
    }
}

/// The answers of a round, and what is public about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// One for each query, and one for the active count if it was asked for.
    pub answers: Vec<Answer>,
    /// Whether everybody has certainly taken part in every round so far: public, because it follows from the questions alone.
    pub everyone: bool,
    /// The sum of the worst cases of all rounds so far, as a fraction of a budget: public.
    pub worst_case: f64,
}

/// Opens the accounts of a table, or makes them when there are none; without a path they end with the process.
///
/// # Errors
/// [`RoundError`] when the table or the accounts cannot be read, or the accounts have other settings.
pub fn open_accounts(
    path: Option<&Path>,
    table: &Table,
    settings: &Settings,
    progress: Progress<'_>,
) -> Result<Accounts, RoundError> {
    if let Some(path) = path.filter(|path| path.exists()) {
        return Ok(Accounts::open(path, Some(settings))?);
    }
    // A budget that cannot be is said before anything is read.
    for tier in &settings.tiers {
        tier.budget.budget().map_err(crate::accounts::AccountsError::from)?;
    }
    let salt = Salt::random()?;
    let people = people(table, settings, &salt, progress)?;
    Ok(Accounts::create(path, settings.clone(), salt, &people)?)
}

/// Asks. The charge is on disk before any noise is drawn; when this fails, nothing was released.
///
/// # Errors
/// [`RoundError::Refused`] in the worst-case mode when the budget does not cover the worst case, decided before the table is
/// read; otherwise whatever is wrong with the table or the accounts.
pub fn ask(
    table: &Table,
    layout: &Layout,
    accounts: &mut Accounts,
    manner: Manner,
    source: &mut Source,
    progress: Progress<'_>,
) -> Result<Answers, RoundError> {
    check_columns(table, layout, &accounts.settings().person)?;
    let mut worst_case = 0;
    for budget in accounts.budgets() {
        worst_case = worst_case.max(layout.worst_case(budget)?);
    }
    if accounts.settings().mode == Mode::WorstCase && accounts.worst_case().saturating_add(worst_case) > u64::from(FULL)
    {
        return Err(RoundError::Refused);
    }
    if manner.people_changed {
        let (salt, settings) = (accounts.salt(), accounts.settings().clone());
        let mut newcomers = people(table, &settings, &salt, &|_| ())?;
        newcomers.retain(|&(key, _)| accounts.find(key).is_none());
        if !newcomers.is_empty() {
            accounts.enroll(&newcomers)?;
        }
    }
    let gathered = gather_all(table, layout, accounts, progress)?;
    if gathered.has_strangers() || !(manner.people_changed || gathered.same_people(accounts)) {
        return Err(RoundError::OtherPeople);
    }
    let decided = decide(gathered, layout, accounts, manner.exhausted)?;
    let charged = accounts.charge(&decided.shares, worst_case)?;
    let noisy = draw(charged, decided.totals, layout, source);
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let worst_case = accounts.worst_case() as f64 / f64::from(FULL);
    Ok(Answers {
        answers: answers(layout, &noisy, manner.confidence),
        everyone: accounts.worst_case() <= u64::from(FULL),
        worst_case,
    })
}

/// One charge, one draw for each coordinate. The totals stop being secret here.
fn draw(_charged: Charged, totals: Secret<Vec<i64>>, layout: &Layout, source: &mut Source) -> Vec<i64> {
    let noisy = |(total, &field): (&i64, &usize)| total.wrapping_add(layout.fields[field].noise.draw(source));
    totals.expose().iter().zip(&layout.field_of).map(noisy).collect()
}
