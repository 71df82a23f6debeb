//! Ctrl-C, and the signals that ask a process to end (SIGTERM, SIGHUP): the first is a request, the second ends it at once.

use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of what was interrupted, as shells say it.
pub(crate) const EXIT: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on a first signal only sets a flag; a second one is not waited for.
pub(crate) fn listen() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(EXIT));
        }
    })?;
    Ok(())
}

/// Whether somebody asked to end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
