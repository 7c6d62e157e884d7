//! Prints the events of a recording and all its records with their fields:
//!
//!     cargo run -p perfdata-core --example print -- perf.data

use std::{env, error::Error, fs::File, sync::Arc};

use perfdata_core::read::{Piece, RecordingReader};
use perfdata_core::record::Record;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: print RECORDING")?;
    let mut reader = RecordingReader::open(Arc::new(File::open(path)?))?;
    for event in reader.recording().events.iter() {
        println!("event of kind {}, config {:#x}, {} ids", event.attr.kind, event.attr.config, event.ids.len());
    }
    // A pipe may bring attributes late, so the model comes with each piece.
    while let Some((piece, recording)) = reader.next_with_model()? {
        let Piece::Record(raw) = piece else { continue };
        let record = Record::decode(&raw, &recording.events.layout_of(&raw))?;
        println!("{:#x} {} {:?}", raw.offset, raw.kind, record.body);
    }
    match reader.damage() {
        Some(damage) => Err(damage.to_string().into()),
        None => Ok(()),
    }
}
