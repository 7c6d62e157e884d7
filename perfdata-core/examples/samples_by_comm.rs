//! Counts the samples of each program, by the names that COMM and FORK records give to threads:
//!
//!     cargo run -p perfdata-core --example samples_by_comm -- perf.data

use std::{collections::HashMap, env, error::Error, fs::File, sync::Arc};

use perfdata_core::read::{ByTime, RecordingReader};
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_core::{Events, Result};

/// What is known of threads so far, and what was counted.
#[derive(Default)]
struct Programs {
    names: HashMap<u32, String>,
    samples: HashMap<String, u64>,
}

impl Programs {
    fn see(&mut self, raw: &RawRecord<'_>, events: &Events) -> Result<()> {
        // A sample is but looked at: that is quicker than decoding it.
        if raw.kind == RecordType::SAMPLE {
            let tid = events.glimpse(raw).and_then(|sample| sample.tid());
            let name = tid.and_then(|tid| self.names.get(&tid.tid));
            *self.samples.entry(name.map_or("?", String::as_str).to_owned()).or_default() += 1;
            return Ok(());
        }
        if !matches!(raw.kind, RecordType::COMM | RecordType::FORK) {
            return Ok(());
        }
        match Record::decode(raw, &events.layout_of(raw))?.body {
            Body::Comm(comm) => {
                self.names.insert(comm.tid, String::from_utf8_lossy(comm.comm.text()).into_owned());
            }
            // A thread has the name of the one that made it, until it gives itself another.
            Body::Fork(task) => {
                if let Some(name) = self.names.get(&task.ptid).cloned() {
                    self.names.insert(task.tid, name);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: samples_by_comm RECORDING")?;
    // Names change in time, and a stream is in order only within each CPU's part.
    let mut records = ByTime::new(RecordingReader::open(Arc::new(File::open(path)?))?);
    let mut programs = Programs::default();
    // The idle threads are never announced.
    programs.names.insert(0, "swapper".into());
    while let Some((raw, recording)) = records.next()? {
        programs.see(&raw, &recording.events)?;
    }
    let mut counts: Vec<_> = programs.samples.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (name, count) in counts {
        println!("{count:>8}  {name}");
    }
    Ok(())
}
