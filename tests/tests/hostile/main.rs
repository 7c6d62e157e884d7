//! The hostile suite: damaged and malicious recordings through every command. Nothing may panic, abort, hang, take
//! memory out of proportion, print what a terminal would obey, or fail without saying where.
//!
//! Every input is read and written in memory; a sample of them goes through the commands, too.
//!
//! ```text
//! cargo test -p perfdata-tests --test hostile
//! PERFCONV_TEST_ALL=1 cargo test --release -p perfdata-tests --test hostile    commands with all of them
//! cargo test -p perfdata-tests --test hostile -- flip                inputs of families with that in their names
//! ```
//!
//! The inputs run in processes of their own, one for each processor, so that an abort or a hang is an answer like any
//! other: the process that started them says at which input they ended.

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

/// Damaged and malicious recordings through every command.
#[derive(Debug, Parser)]
struct Options {
    /// Only families with one of these in their names
    names: Vec<String>,
    /// Run a share of the inputs: K/N
    #[arg(long, hide = true)]
    worker: Option<String>,
    /// Where a worker says which input it is at
    #[arg(long, hide = true, requires = "worker")]
    progress: Option<std::path::PathBuf>,
    /// Known to every other suite: nothing is captured here
    #[arg(long, hide = true)]
    nocapture: bool,
    /// Known to every other suite: here is but one test
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
    if options.names.is_empty() || options.names.iter().any(|name| program::NAME.contains(name.as_str())) {
        faults.extend(program::run());
    }
    if faults.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nfailed:\n{}", faults.join("\n"));
    ExitCode::FAILURE
}
