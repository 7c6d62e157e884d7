//! The round-trip regression suite: converts real recordings with every conversion and back, makes
//! three checks each time, and prints a table of the results.
//!
//! ```text
//! cargo test -p perfdata-tests --test roundtrip                     fixtures, and PERFCONV_RECORDINGS
//! cargo test -p perfdata-tests --test roundtrip -- --perf all       perf judges everything (some minutes)
//! cargo test -p perfdata-tests --test roundtrip -- 7.2-s390x        recordings with that in their name
//! ```

mod checks;
mod table;
mod ways;

use std::{process::ExitCode, sync::Mutex, time::Instant};

use clap::{Parser, ValueEnum};
use perfdata_tests::{
    perf,
    recordings::{self, Recording},
};

use checks::Judge;
use table::Table;
use ways::{WAYS, Way};

/// Every recording with every conversion and back, and the results.
#[derive(Debug, Parser)]
struct Options {
    /// Only recordings with one of these in their names
    names: Vec<String>,
    /// What perf judges if the bytes are not identical
    #[arg(long, value_enum, default_value_t = Ask::Some)]
    perf: Ask,
    /// Only the recordings of the repository
    #[arg(long)]
    fixtures: bool,
    /// Accepted like in every other suite, without effect: nothing is captured here
    #[arg(long, hide = true)]
    nocapture: bool,
    /// Accepted like in every other suite: there is only one test here
    #[arg(long, hide = true)]
    list: bool,
}

/// The recordings that perf judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ask {
    /// None
    None,
    /// Fixtures of machines like this one: a perf of another machine is emulated, and slow
    Some,
    /// All
    All,
}

impl Ask {
    /// Returns the judge of the conversions of `recording`, or the reason why there is none.
    fn judge(self, recording: &Recording) -> Result<Judge, &'static str> {
        let judge = Judge::of(recording).ok_or("no perf that judges it")?;
        let is_fixture = recording.is_fixture();
        match self {
            Ask::None => Err("--perf none"),
            Ask::Some if !is_fixture => Err("it is outside of fixtures/: --perf all asks"),
            Ask::Some if judge.is_emulated() => Err("its perf is emulated: --perf all asks"),
            _ => Ok(judge),
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.list {
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    let mut all = if options.fixtures {
        recordings::fixtures()
    } else {
        recordings::all()
    };
    all.retain(|recording| {
        options.names.is_empty()
            || options
                .names
                .iter()
                .any(|name| recording.name.contains(name.as_str()))
    });
    let jobs: Vec<(&Recording, &Way)> = all
        .iter()
        .flat_map(|recording| WAYS.iter().map(move |way| (recording, way)))
        .collect();
    let table = Mutex::new(Table::default());
    recordings::in_parallel(&jobs, |&(recording, way)| {
        let row = way.check(recording, options.perf.judge(recording));
        table
            .lock()
            .expect("entering a row does not panic")
            .enter(recording, way, row);
    });
    let table = table.into_inner().expect("as above");
    let perfs: Vec<String> = perf::all().iter().map(ToString::to_string).collect();
    print!("{table}");
    println!(
        "{} recordings, perf {:?}: {}",
        all.len(),
        options.perf,
        perfs.join(", ")
    );
    println!("{:.0?}", start.elapsed());
    if table.has_failed() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
