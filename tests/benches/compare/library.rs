//! Reads all records, and the callchains of all samples, with libraries.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use perfdata_core::Events;
use perfdata_core::read::{Chunk, RecordingReader};
use perfdata_core::record::{RawRecord, Record, Tid};

/// Reads the recording at `path` with the method `how`, and prints a summary, so that the compiler
/// cannot remove any of the work, and to show that all methods read the same data.
pub fn read(how: &str, path: &Path) -> Result<(), Box<dyn Error>> {
    let Sum {
        records,
        samples,
        sum,
    } = match how {
        "linux-perf-data" => linux_perf_data(path)?,
        "file" => in_file_order(path)?,
        "time" => by_time(path)?,
        "session" => resolved(path)?,
        _ => return Err("no such way".into()),
    };
    println!("{records} records, {samples} samples, sum {sum:#x}");
    Ok(())
}

#[derive(Default)]
struct Sum {
    records: u64,
    samples: u64,
    /// Sum of all numbers of all samples.
    sum: u64,
}

impl Sum {
    /// Reads samples in place, as linux-perf-data does, and decodes other records.
    fn see(&mut self, record: &RawRecord<'_>, events: &Events) -> Result<(), Box<dyn Error>> {
        self.records += 1;
        match events.sample_view(record) {
            Some(sample) => {
                let parts = [
                    sample.ip(),
                    sample.time(),
                    sample.addr(),
                    sample.id(),
                    sample.period(),
                ];
                let task = sample.tid().map(|Tid { pid, tid }| (pid, tid));
                self.add(parts, task, sample.cpu(), sample.callchain());
            }
            None => drop(Record::decode(record, &events.layout_of(record))?),
        }
        Ok(())
    }

    /// Adds the fields of one sample.
    fn add(
        &mut self,
        parts: [Option<u64>; 5],
        task: Option<(u32, u32)>,
        cpu: Option<u32>,
        callchain: impl Iterator<Item = u64>,
    ) {
        self.samples += 1;
        let (pid, tid) = task.unwrap_or_default();
        let numbers = [pid, tid, cpu.unwrap_or_default()].map(u64::from);
        let words = parts.into_iter().flatten().chain(numbers);
        self.sum = callchain.fold(words.fold(self.sum, u64::wrapping_add), u64::wrapping_add);
    }
}

fn in_file_order(path: &Path) -> Result<Sum, Box<dyn Error>> {
    let mut reader = RecordingReader::open(Arc::new(File::open(path)?))?;
    let mut sum = Sum::default();
    while let Some((chunk, recording)) = reader.next_chunk()? {
        let Chunk::Records(batch) = chunk else {
            continue;
        };
        batch
            .iter()
            .try_for_each(|record| sum.see(&record, &recording.events))?;
    }
    Ok(sum)
}

fn by_time(path: &Path) -> Result<Sum, Box<dyn Error>> {
    let mut reader = perfdata_core::open(path)?.by_time();
    let mut sum = Sum::default();
    while let Some(record) = reader.next()? {
        sum.see(&record, &record.recording().events)?;
    }
    Ok(sum)
}

/// Resolves every frame. The offset and the ID of its mapping replace the address in the sum.
fn resolved(path: &Path) -> Result<Sum, Box<dyn Error>> {
    let mut samples = perfdata_session::open(path)?;
    let (mut sum, mut others) = (Sum::default(), 0);
    while let Some(sample) = samples.next_with(|_| others += 1)? {
        sum.records += 1;
        let parts = [None, sample.time(), None, None, Some(sample.weight())];
        let names = sample.comm_id().index() as u64 + sample.event() as u64;
        let frames = sample.frames().map(|frame| {
            let place = frame
                .mapping
                .zip(frame.offset())
                .map(|(id, offset)| offset.wrapping_add(id.index() as u64));
            place.unwrap_or(frame.address)
        });
        sum.add(
            parts,
            sample.tid().map(|Tid { pid, tid }| (pid, tid)),
            sample.cpu(),
            frames,
        );
        sum.sum = sum.sum.wrapping_add(names);
    }
    sum.records += others;
    Ok(sum)
}

fn linux_perf_data(path: &Path) -> Result<Sum, Box<dyn Error>> {
    use linux_perf_data::linux_perf_event_reader::EventRecord;
    use linux_perf_data::{PerfFileReader, PerfFileRecord};

    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = PerfFileReader::parse_file(BufReader::new(File::open(path)?))?;
    let mut sum = Sum::default();
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        sum.records += 1;
        let PerfFileRecord::EventRecord { record, .. } = record else {
            continue;
        };
        if let EventRecord::Sample(sample) = record.parse()? {
            let parts = [
                sample.ip,
                sample.timestamp,
                sample.addr,
                sample.id,
                sample.period,
            ];
            let task = sample
                .pid
                .zip(sample.tid)
                .map(|(pid, tid)| (pid.cast_unsigned(), tid.cast_unsigned()));
            let chain = sample.callchain.iter();
            let words = chain.flat_map(|chain| (0..chain.len()).filter_map(|at| chain.get(at)));
            sum.add(parts, task, sample.cpu, words);
        }
    }
    Ok(sum)
}
