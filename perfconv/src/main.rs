//! The `perfconv` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(perfconv::process::run(std::env::args_os()))
}
