//! A conversion of one's own: keeps the samples of a time range, and every record that is not a
//! sample.
//!
//!     cargo run -p perfdata-convert --example between -- perf.data 1000000000 2000000000 between.data

use perfdata_convert::io::Output;
use perfdata_convert::pipeline::{Conversion, Link, Stage};
use perfdata_core::record::RawRecord;
use std::{env, error::Error, path::PathBuf};

/// Drops samples outside a range of nanoseconds on the recording's clock.
struct Between(u64, u64);

impl Stage for Between {
    fn record(
        &mut self,
        record: &RawRecord<'_>,
        next: &mut Link<'_>,
    ) -> perfdata_convert::Result<()> {
        match next.recording().events.sample_time(record) {
            Some(time) if time < self.0 || time > self.1 => Ok(()),
            _ => next.record(record),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().skip(1).collect();
    let [input, from, to, output] = &args[..] else {
        return Err("usage: between INPUT FROM TO OUTPUT".into());
    };
    let (input, output) = (PathBuf::from(input), PathBuf::from(output));

    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Between(from.parse()?, to.parse()?))];
    let summary = Conversion::new(stages).run(&input, Output::create(&output, &input, false)?)?;
    println!("{} read", summary.counts.short());
    Ok(())
}
