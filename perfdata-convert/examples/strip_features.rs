//! Leaves out all feature sections but those that are named, and says which went. A file keeps an
//! empty HOSTNAME. Compressed records become plain, since they could not be read without their
//! section:
//!
//!     cargo run -p perfdata-convert --example strip_features -- perf.data bare.data ARCH EVENT_DESC

use std::{env, error::Error, path::PathBuf};

use perfdata_convert::io::{Input, Output};
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::edit::{Change, Edit};

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: strip_features INPUT OUTPUT [FEATURE]…";
    let mut args = env::args_os().skip(1);
    let input = PathBuf::from(args.next().ok_or(usage)?);
    let output = PathBuf::from(args.next().ok_or(usage)?);
    let kept: Vec<String> = args.filter_map(|name| name.into_string().ok()).collect();

    let (reader, _) = Input::open(&input)?.reader()?;
    let there = reader.recording().features.keys().map(|id| id.to_string());
    let gone: Vec<String> = there.filter(|name| !kept.contains(name)).collect();

    let changes = gone.iter().map(|name| (name.clone(), Change::Drop));
    let stages: Vec<Box<dyn Stage>> = vec![
        Box::new(Decompress::default()),
        Box::new(Edit::new(changes)?),
    ];
    Conversion::new(stages).run(&input, Output::create(&output, &input, false)?)?;
    println!("{}", gone.join(" "));
    Ok(())
}
