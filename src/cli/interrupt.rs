//! Ctrl-C, and the signals that ask a process to end (SIGTERM, SIGHUP). While nothing is charged, one ends it at once; after that the first
//! is a request, and the second ends it at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The exit code of what was interrupted, as shells say it.
pub(crate) const EXIT: u8 = 130;

/// What a signal does.
enum State {
    EndsAtOnce,
    IsARequest,
    WasARequest,
}

static STATE: Mutex<State> = Mutex::new(State::EndsAtOnce);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal ends the process with the exit code of what was interrupted.
pub(crate) fn listen() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        // Held to the end of the process: whoever wants to defer it waits, so that nothing is charged any more.
        let mut state = state();
        match *state {
            State::EndsAtOnce => eprintln!("interrupted: nothing was charged"),
            State::IsARequest => {
                *state = State::WasARequest;
                return;
            }
            State::WasARequest => {}
        }
        std::process::exit(i32::from(EXIT));
    })?;
    Ok(())
}

/// From now on, because there is something to be stored or given back, a first signal is only a request.
pub(crate) fn defer() {
    *state() = State::IsARequest;
}

/// Whether somebody asked to end.
pub(crate) fn requested() -> bool {
    matches!(*state(), State::WasARequest)
}
