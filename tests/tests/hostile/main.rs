//! The hostile suite: damaged and malicious recordings with every command. No command may panic,
//! abort, hang, use disproportionate memory, print control sequences to a terminal, or fail without
//! a position.
//!
//! Every input is read and written in memory; a sample of the inputs is also passed to the
//! commands.
//!
//! ```text
//! cargo test -p perfdata-tests --test hostile
//! PERFCONV_TEST_ALL=1 cargo test --release -p perfdata-tests --test hostile    commands with all of them
//! cargo test -p perfdata-tests --test hostile -- flip                inputs of families with that in their names
//! ```
//!
//! The inputs are processed in separate processes, one for each processor, so that an abort or a
//! hang is a result like any other: the parent process reports the input at which a process ended.

mod commands;
mod directories;
mod families;
mod fields;
mod figures;
mod memory;
mod program;
mod seeds;
mod supervisor;
mod worker;

use std::process::ExitCode;

use clap::Parser;
use perfdata_tests::is_thorough;

/// Damaged and malicious recordings with every command.
#[derive(Debug, Parser)]
struct Options {
    /// Only families with one of these in their names
    names: Vec<String>,
    /// Run a share of the inputs: K/N
    #[arg(long, hide = true)]
    worker: Option<String>,
    /// File to which a worker writes its current input
    #[arg(long, hide = true, requires = "worker")]
    progress: Option<std::path::PathBuf>,
    /// Accepted like in every other suite, without effect: nothing is captured here
    #[arg(long, hide = true)]
    nocapture: bool,
    /// Accepted like in every other suite: there is only one test here
    #[arg(long, hide = true)]
    list: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.list {
        return ExitCode::SUCCESS;
    }
    if let (Some(share), Some(progress)) = (&options.worker, &options.progress) {
        worker::run(share, progress, &options.names);
        return ExitCode::SUCCESS;
    }
    let mut faults = supervisor::run(&options.names);
    if options.names.is_empty()
        || options
            .names
            .iter()
            .any(|name| program::NAME.contains(name.as_str()))
    {
        faults.extend(program::run());
    }
    if faults.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nfailed:\n{}", faults.join("\n"));
    ExitCode::FAILURE
}
