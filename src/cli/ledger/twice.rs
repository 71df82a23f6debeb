//! Options that may stand before the command of a ledger or after it, and were given on both sides.

use super::Arguments;
use clap::Args as _;
use std::ffi::OsString;

/// clap takes the later of the two, which may not be the one that was meant.
///
/// # Errors
/// When an option of every ledger command was given twice.
pub(super) fn refuse() -> anyhow::Result<()> {
    let given: Vec<OsString> = std::env::args_os().take_while(|argument| argument != "--").collect();
    let command = Arguments::augment_args(clap::Command::new("ledger"));
    let global =
        command.get_arguments().filter(|argument| argument.is_global_set() && argument.get_action().takes_values());
    for name in global.filter_map(|argument| argument.get_long()) {
        anyhow::ensure!(times(name, &given) < 2, "--{name} is given twice; expected it once");
    }
    Ok(())
}

/// How often an option stands among arguments.
fn times(name: &str, given: &[OsString]) -> usize {
    let is = |argument: &&OsString| {
        let rest = argument.to_str().and_then(|argument| argument.strip_prefix("--")?.strip_prefix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    given.iter().filter(is).count()
}
