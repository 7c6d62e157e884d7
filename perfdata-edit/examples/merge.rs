//! Several recordings of one boot as one recording: all of it, or the samples of some times.
//!
//!     cargo run -p perfdata-convert --example merge -- merged.data 20%-30% one.data another.data
//!     cargo run -p perfdata-convert --example merge -- merged.data all one.data another.data

use perfdata_convert::io::{Input, Output};
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_core::header::ContainerKind;
use perfdata_edit::merge::{Merge, Merged};
use perfdata_edit::slice::{Select, Slice};
use std::{env, error::Error, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [output, times, paths @ ..] = &args[..] else {
        return Err("usage: merge OUTPUT TIMES INPUT...".into());
    };
    let all: Vec<&Path> = paths.iter().map(Path::new).collect();
    let output = Output::create_beside(output.as_ref(), &all, true)?;
    let mut inputs = Vec::new();
    for path in all {
        inputs.push((path.display().to_string(), Input::open(path)?));
    }
    let merged: Merged = Merge::default().open(inputs)?;
    for note in &merged.notes {
        eprintln!("{note}");
    }

    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    if times != "all" {
        let mut select = Select::default();
        select.times = Some(times.parse()?);
        stages.push(Box::new(Slice::new(select)));
    }
    let conversion = Conversion::new(stages).to(ContainerKind::File);
    let summary = conversion.run_on(merged.input, output)?;
    println!("{} merged", summary.counts.short());
    Ok(())
}
