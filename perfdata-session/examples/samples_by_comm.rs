//! Counts the samples of each program by the names that threads have at the time of the samples:
//!
//!     cargo run -p perfdata-session --example samples_by_comm -- perf.data

#![allow(clippy::arithmetic_side_effects, reason = "numbers of an example")]

use std::{collections::BTreeMap, env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os()
        .nth(1)
        .ok_or("usage: samples_by_comm RECORDING")?;
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    let mut samples = perfdata_session::open(path)?;
    while let Some(sample) = samples.next()? {
        *counts.entry(sample.comm_id()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(comm, count)| (u64::MAX - count, samples.session().comm(comm)));
    for (comm, count) in counts {
        println!(
            "{count:>8}  {}",
            String::from_utf8_lossy(samples.session().comm(comm))
        );
    }
    Ok(())
}
