//! The `paygo` command. Data goes to standard output, everything else to standard error; exit 0 done, 1 refused,
//! 2 usage or fault.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
