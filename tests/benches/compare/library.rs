//! Reading all records, and the callchains of all samples, with libraries.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use perfdata_core::read::{ByTime, Piece, RecordingReader};
use perfdata_core::record::{Body, Record};

/// Reads the recording at `path` in the way called `how`, and prints what it read, so that nothing of it is optimised
/// away and all ways can be seen to read the same.
pub fn read(how: &str, path: &Path) -> Result<(), Box<dyn Error>> {
    let Sum { records, samples, addresses } = match how {
        "linux-perf-data" => linux_perf_data(path)?,
        "file" => in_file_order(path)?,
        "time" => by_time(path)?,
        _ => return Err("no such way".into()),
    };
    println!("{records} records, {samples} samples, addresses {addresses:#x}");
    Ok(())
}

#[derive(Default)]
struct Sum {
    records: u64,
    samples: u64,
    addresses: u64,
}

impl Sum {
    fn add(&mut self, words: impl Iterator<Item = u64>) {
        self.samples += 1;
        self.addresses = words.fold(self.addresses, u64::wrapping_add);
    }
}

fn in_file_order(path: &Path) -> Result<Sum, Box<dyn Error>> {
    let mut reader = RecordingReader::open(Arc::new(File::open(path)?))?;
    let mut sum = Sum::default();
    while let Some((piece, recording)) = reader.next_with_model()? {
        let Piece::Record(raw) = piece else { continue };
        sum.records += 1;
        let record = Record::decode(&raw, &recording.events.layout_of(&raw))?;
        if let Body::Sample(sample) = record.body {
            sum.add(sample.callchain.iter().flat_map(|chain| chain.iter().copied()));
        }
    }
    Ok(sum)
}

fn by_time(path: &Path) -> Result<Sum, Box<dyn Error>> {
    let mut reader = ByTime::new(RecordingReader::open(Arc::new(File::open(path)?))?);
    let mut sum = Sum::default();
    while let Some((raw, recording)) = reader.next()? {
        sum.records += 1;
        let record = Record::decode(&raw, &recording.events.layout_of(&raw))?;
        if let Body::Sample(sample) = record.body {
            sum.add(sample.callchain.iter().flat_map(|chain| chain.iter().copied()));
        }
    }
    Ok(sum)
}

fn linux_perf_data(path: &Path) -> Result<Sum, Box<dyn Error>> {
    use linux_perf_data::linux_perf_event_reader::EventRecord;
    use linux_perf_data::{PerfFileReader, PerfFileRecord};

    let PerfFileReader { mut perf_file, mut record_iter } =
        PerfFileReader::parse_file(BufReader::new(File::open(path)?))?;
    let mut sum = Sum::default();
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        sum.records += 1;
        let PerfFileRecord::EventRecord { record, .. } = record else { continue };
        if let EventRecord::Sample(sample) = record.parse()? {
            let chain = sample.callchain;
            let words = chain.iter().flat_map(|chain| (0..chain.len()).filter_map(|at| chain.get(at)));
            sum.add(words);
        }
    }
    Ok(sum)
}
