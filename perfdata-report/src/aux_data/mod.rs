//! Extracts the AUX data of a recording: the raw bytes of each CPU or thread into a separate file,
//! and an index with the other data that a decoder needs.
//!
//! The data follow AUXTRACE records, or are in samples. They are written to the files in order of
//! arrival. The index contains the position of each piece, and the fields of its record. Memory
//! does not grow with the recording: data for the index are in temporary files. Only if the pieces
//! of a queue are out of order, about 100 bytes per piece of this queue are in memory.

mod arrange;
mod index;
mod piece;
mod queue;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use perfdata_core::attr::SampleType;
use perfdata_core::record::{
    Auxtrace, AuxtraceInfo, Body, IdIndex, RawRecord, Record, RecordType, TimeConv,
};
use perfdata_core::spool::{StoredRecord, Writer};
use perfdata_core::{DecodeContext, Recording};

use arrange::Offsets;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{Input, Output, OutputDirectory};
use perfdata_convert::leftover::Leftover;
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::without_aux::WithoutAux;
use perfdata_convert::walk::{Item, walk};
use piece::Origin;
use queue::{Queue, QueueKey};

/// The result of an extraction.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Number of files with AUX data.
    pub queues: usize,
    /// Their total size in bytes.
    pub bytes: u64,
    /// Notes about the data for the user.
    pub notes: Vec<String>,
}

/// Maximum number of queues whose files are open at the same time.
const OPEN: usize = 64;

/// Maximum number of queues; perf opens fewer buffers.
const QUEUES: usize = 1 << 16;

/// The name of the index in a directory of AUX data.
pub const INDEX: &str = "index.json";

/// The extension of the files with AUX data.
pub const EXTENSION: &str = ".aux";

/// Writes the AUX data of `input` and their index to the empty folder `dir`.
///
/// # Errors
/// The input cannot be read or has no AUX data, or the folder cannot be written.
pub fn extract(input: Input, dir: &Path) -> Result<Report> {
    let (mut reader, _) = input.reader()?;
    let file = tempfile::tempfile_in(dir).map_err(Error::io(dir))?;
    let mut extraction = Extraction {
        dir: dir.to_owned(),
        queues: Vec::new(),
        by_key: HashMap::new(),
        ids: HashMap::new(),
        open: 0,
        payload: None,
        info: None,
        time_conv: None,
        sideband: Writer::new(file),
        damage: Vec::new(),
    };
    let mut unreadable = 0_u64;
    walk(&mut reader, |item, recording| {
        match item {
            Item::Records(batch, _) => batch
                .iter()
                .try_for_each(|record| extraction.record(&record, recording))?,
            Item::Payload(bytes) => extraction.payload(bytes)?,
            Item::Unreadable(bytes) => unreadable = unreadable.saturating_add(bytes.len() as u64),
            // The index could not show which data are missing.
            Item::Undecodable(error) => return Err(Error::from(error).of_records()),
            Item::Pause { .. } => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(leftover) = Leftover::of(&reader, unreadable) {
        leftover.check()?;
        extraction.damage.push(leftover.to_string());
    }
    extraction.finish(reader.recording())
}

/// The outputs of an extraction. They become visible together.
#[non_exhaustive]
pub struct ExtractAux {
    /// The directory of the AUX data and their index.
    pub directory: OutputDirectory,
    /// The recording without AUX data; by default, it is not written.
    pub sideband: Option<Output>,
}

impl ExtractAux {
    /// Returns an extraction into `directory`.
    pub fn new(directory: OutputDirectory) -> Self {
        ExtractAux {
            directory,
            sideband: None,
        }
    }

    /// Sets [`sideband`](Self::sideband).
    #[must_use]
    pub fn with_sideband(self, sideband: Option<Output>) -> Self {
        ExtractAux { sideband, ..self }
    }

    /// Extracts the AUX data of `input`.
    ///
    /// # Errors
    /// As [`extract`]; or an output cannot be written. In this case, there is no output.
    pub fn run(self, input: Input) -> Result<Report> {
        let ExtractAux {
            directory,
            sideband,
        } = self;
        let Some(sideband) = sideband else {
            let report = directory.write(|folder| extract(input, folder))?;
            directory.finish()?;
            return Ok(report);
        };
        let input = input.into_seekable()?;
        let again = input.again();
        let mut report = directory.write(|folder| extract(input, folder))?;
        if let Some(input) = again {
            let stages: Vec<Box<dyn Stage>> = vec![Box::new(WithoutAux::default())];
            let conversion = Conversion::new(stages);
            let sideband = sideband.dated(input.modified());
            let (complete, summary) = sideband.complete(|file| conversion.run_into(input, file))?;
            if complete.is_direct() {
                // This may take long.
                complete.publish()?;
                directory.finish()?;
            } else {
                directory.finish_beside(complete)?;
            }
            report.notes.splice(0..0, summary.notes);
        }
        Ok(report)
    }
}

struct Extraction {
    dir: PathBuf,
    queues: Vec<Queue>,
    by_key: HashMap<QueueKey, usize>,
    /// The buffer of each event ID.
    ids: HashMap<u64, QueueKey>,
    /// Number of queues with open files.
    open: usize,
    /// The queue of the current payload.
    payload: Option<usize>,
    info: Option<AuxtraceInfo>,
    time_conv: Option<TimeConv>,
    /// Records for the index.
    sideband: Writer,
    damage: Vec<String>,
}

impl Extraction {
    fn record(&mut self, record: &RawRecord<'_>, recording: &Recording) -> Result<()> {
        self.payload = None;
        match record.kind {
            RecordType::AUXTRACE => {
                let body: Auxtrace = record.decode_body(DecodeContext::default())?;
                let queue = self.begin(
                    QueueKey {
                        idx: body.idx,
                        cpu: body.cpu,
                        tid: body.tid,
                    },
                    record.offset,
                    Origin::of_record(&body),
                )?;
                self.payload = Some(queue);
            }
            RecordType::SAMPLE => self.sample(record, recording)?,
            RecordType::AUXTRACE_INFO | RecordType::TIME_CONV => {
                match Record::decode(record, &DecodeContext::default())?.body {
                    Body::AuxtraceInfo(info) => self.info = Some(info),
                    Body::TimeConv(conversion) => self.time_conv = Some(conversion),
                    _ => {}
                }
            }
            RecordType::ID_INDEX => {
                let layout = DecodeContext::default().with_len(record.body().len() as u64);
                let index: IdIndex = record.decode_body(layout)?;
                // A number that needs more than 32 bits means "none", like -1.
                let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
                let key = |idx, cpu, tid| QueueKey {
                    idx: number(idx),
                    cpu: number(cpu),
                    tid: number(tid),
                };
                self.ids.extend(
                    index
                        .entries
                        .iter()
                        .map(|e| (e.id, key(e.idx, e.cpu, e.tid))),
                );
            }
            kind if index::is_wanted(kind) => StoredRecord::store(0, record, &mut self.sideband)
                .map_err(Error::io("temporary file"))?,
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, record: &RawRecord<'_>, recording: &Recording) -> Result<()> {
        let layout = recording.events.layout_of(record);
        if !layout.sample_type.has(SampleType::AUX) {
            return Ok(());
        }
        let Body::Sample(sample) = Record::decode(record, &layout)?.body else {
            return Ok(());
        };
        let Some(data) = sample.aux.as_ref().filter(|data| !data.is_empty()) else {
            return Ok(());
        };
        let queue = self.begin(
            self.queue_of(&sample),
            record.offset,
            Origin::of_sample(&sample),
        )?;
        self.write(queue, data)
    }

    /// Returns the buffer of a sample's AUX data: the buffer of its event, or else of its CPU or
    /// thread.
    fn queue_of(&self, sample: &perfdata_core::record::Sample) -> QueueKey {
        let id = sample.identifier.or(sample.id);
        if let Some(key) = id.and_then(|id| self.ids.get(&id)) {
            return *key;
        }
        let cpu = sample.cpu.as_ref().map(|cpu| cpu.cpu);
        let tid = sample
            .tid
            .as_ref()
            .map(|tid| tid.tid)
            .filter(|_| cpu.is_none());
        QueueKey {
            idx: u32::MAX,
            cpu: cpu.unwrap_or(u32::MAX),
            tid: tid.unwrap_or(u32::MAX),
        }
    }

    /// Begins a piece of the queue `key`, and returns the index of the queue.
    fn begin(&mut self, key: QueueKey, record: u64, origin: Origin) -> Result<usize> {
        let next = self.queues.len();
        let at = *self.by_key.entry(key).or_insert(next);
        if at == next {
            if next == QUEUES {
                return Err(Error::Refused(format!(
                    "the recording has AUX data of more than {QUEUES} buffers, which is the maximum"
                )));
            }
            self.queues.push(Queue::new(key, &self.dir, next));
        }
        let is_open = self.queues.get(at).is_some_and(Queue::is_open);
        if !is_open && self.open == OPEN {
            self.queues.iter_mut().try_for_each(Queue::close)?;
            self.open = 0;
        }
        self.open += usize::from(!is_open);
        if let Some(queue) = self.queues.get_mut(at) {
            queue.begin(record, origin)?;
        }
        Ok(at)
    }

    fn payload(&mut self, bytes: &[u8]) -> Result<()> {
        self.payload
            .map_or(Ok(()), |queue| self.write(queue, bytes))
    }

    fn write(&mut self, queue: usize, bytes: &[u8]) -> Result<()> {
        self.queues
            .get_mut(queue)
            .map_or(Ok(()), |queue| queue.write(bytes))
    }

    /// Returns the file name of each queue: type of trace, CPU and thread, and the number of the
    /// buffer if these are not unique.
    fn names(&self) -> Vec<String> {
        let kind = match &self.info {
            Some(info) => info
                .kind
                .name()
                .map_or_else(|| format!("type{}", info.kind.0), str::to_owned),
            None => "unknown".to_owned(),
        };
        let mut taken = HashSet::new();
        let name = |queue: &Queue| {
            let QueueKey { idx, cpu, tid } = queue.key;
            let part = |name: &str, number: u32| {
                if number == u32::MAX {
                    String::new()
                } else {
                    format!("-{name}{number}")
                }
            };
            let mut name = format!("{kind}{}{}", part("cpu", cpu), part("tid", tid));
            if name == kind || taken.contains(&name) {
                name.push_str(&part("buffer", idx));
            }
            taken.insert(name.clone());
            name + EXTENSION
        };
        self.queues.iter().map(name).collect()
    }

    fn finish(mut self, recording: &Recording) -> Result<Report> {
        if self.queues.is_empty() {
            return Err(Error::Refused("the recording has no AUX data".into()));
        }
        let names = self.names();
        let offsets = Offsets::of(self.info.as_ref());
        let queues = std::mem::take(&mut self.queues)
            .into_iter()
            .zip(names)
            .collect();
        index::write(self, recording, offsets, queues)
    }
}
