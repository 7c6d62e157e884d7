//! A conversion of one's own: keeps the first samples of a recording and everything that is no sample.
//!
//!     cargo run -p perfdata-convert --example first_samples -- perf.data 100 first.data

use std::{env, error::Error, path::PathBuf};

use perfdata_convert::convert::decompress::Decompress;
use perfdata_convert::convert::{Conversion, Link, Stage};
use perfdata_convert::io::Output;
use perfdata_core::record::{RawRecord, RecordType};

/// Lets `left` more samples pass.
struct FirstSamples {
    left: u64,
}

impl Stage for FirstSamples {
    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> perfdata_convert::Result<()> {
        if record.kind == RecordType::SAMPLE {
            match self.left.checked_sub(1) {
                Some(left) => self.left = left,
                None => return Ok(()),
            }
        }
        next.record(record)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: first_samples INPUT COUNT OUTPUT";
    let mut args = env::args_os().skip(1);
    let input = PathBuf::from(args.next().ok_or(usage)?);
    let count = args.next().and_then(|count| count.to_str()?.parse().ok()).ok_or(usage)?;
    let output = PathBuf::from(args.next().ok_or(usage)?);

    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default()), Box::new(FirstSamples { left: count })];
    let summary = Conversion { stages, to: None }.run(&input, Output::create(&output, &input, false)?)?;
    println!("{} read", summary.counts.short());
    Ok(())
}
