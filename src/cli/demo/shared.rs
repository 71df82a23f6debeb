//! The analyst's questions, asked of a ledger that everybody shares.

use super::analyst::Entry;
use super::{DELTA, EPSILON};
use crate::cli::ledger::{Open, random_word};
use crate::cli::output::shown_up;
use paygo_accounting::mechanism::ZcdpFields;
use paygo_accounting::wire::{FilterWords, Mechanism, Neighbors, Number};
use paygo_ledger::request::Ask;
use paygo_ledger::words::{Decision, NewDataset, Spend};
use paygo_ledger::{Name, Note, RequestId};
use std::path::Path;

/// Asks everything again there: the same rule decides the same.
pub(super) fn tell(log: &[Entry], at: &Path) -> anyhow::Result<String> {
    let open = Open::file(at, Name::new("analyst")?)?;
    let dataset = Name::new(format!("people-{}", random_word()?))?;
    let number = |text: &str| Some(Number::Decimal(text.to_owned()));
    let new = NewDataset {
        name: dataset.clone(),
        neighbors: Neighbors::AddRemove,
        privacy_unit: "person".to_owned(),
        filter: FilterWords { epsilon: number(EPSILON), delta: number(DELTA), ..FilterWords::default() },
        reading_delta: None,
        blocks: None,
    };
    open.ask(&(), new)?;
    let (mut admitted, mut spent) = (0, String::new());
    for (index, entry) in log.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "small integers")]
        let rho = 0.5 / (entry.noise * entry.noise) as f64;
        let answer = open.ask(
            &dataset,
            Spend {
                id: RequestId::new(format!("question-{}", index + 1))?,
                mechanism: Mechanism::Zcdp(ZcdpFields { rho: Number::Float(rho) }),
                blocks: None,
                note: Note::new(entry.question.clone()).ok(),
            },
        )?;
        admitted += usize::from(answer.decision == Decision::Admit);
        spent = answer.spent.values().map(|number| number.nearest("spent").map(shown_up)).collect::<Result<_, _>>()?;
    }
    let at = at.display();
    Ok(format!(
        "   asked of {at}: {admitted} admitted, {} refused; spent epsilon {spent} of {EPSILON} in dataset {dataset}\n   every decision \
         is durable, in a log that can be checked: paygo ledger --ledger {at} verify\n   look at it in a browser, and log in with the \
         token that is printed:\n   $ paygo serve --ledger {at}",
        log.len() - admitted
    ))
}
