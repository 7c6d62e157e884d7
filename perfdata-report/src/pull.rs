//! The records of an input for programs that request one after the other: those that
//! [`dump`](super::show::dump) shows, in the same order.

use std::sync::Arc;

use perfdata_core::error::Problem;
use perfdata_core::read::{Chunk, Decompressor, Head, RecordSource};
use perfdata_core::record::{RawRecord, RecordType, Registers};
use perfdata_core::{Endian, Error, Recording};
use perfdata_session::EventNames;

use perfdata_convert::error::Result;
use perfdata_convert::io::{BoxedSource, Input};
use perfdata_convert::leftover::Leftover;
use perfdata_convert::support::dispatch::CopyPolicy;

/// Maximum number of errors about damage that are kept.
const MOST_DAMAGE: usize = 16;

/// The state of a recording at some position.
#[derive(Debug, Clone)]
pub struct State {
    /// The model.
    pub recording: Recording,
    /// The names of its events.
    pub names: EventNames,
    /// The registers of the recorded machine, if it is known.
    pub registers: Option<&'static Registers>,
}

/// A copy of a record.
#[derive(Debug, Clone)]
pub struct RecordCopy {
    bytes: Box<[u8]>,
    offset: u64,
    endian: Endian,
    /// Index among the records of a compressed record, if it was in one.
    pub inner: Option<usize>,
    /// The state of the recording at this record. `None` if the state changes so often that copies
    /// would take too long: then the state is that of [`Pull::recording`] and [`Pull::names`] until
    /// the next record is requested.
    pub state: Option<Arc<State>>,
}

impl RecordCopy {
    /// Returns the record; `None` never, because only complete records are copied.
    pub fn raw(&self) -> Option<RawRecord<'_>> {
        RawRecord::first(&self.bytes, self.endian, self.offset).ok()
    }
}

/// Reads the records of an input, one at a time. Records inside of compressed records follow the
/// compressed record.
///
/// Memory is bounded: one block of the input, one block of decompressed data, and the model.
pub struct Pull {
    reader: BoxedSource,
    endian: Endian,
    /// The records of the last chunk. Those before `at` were returned.
    chunk: Vec<u8>,
    at: usize,
    /// Offset of the chunk in the input.
    offset: u64,
    zstd: Option<Decompressor>,
    /// Whether compressed data are corrupt, so that the rest cannot be decompressed.
    is_broken: bool,
    /// The index of the next record in a compressed record.
    inside: Option<usize>,
    tracker: Tracker,
    /// Bytes that are not records.
    unreadable: u64,
    damage: Vec<String>,
    is_finished: bool,
}

impl Pull {
    /// Opens `input`.
    ///
    /// # Errors
    /// The input is not a recording, or its metadata is corrupt.
    pub fn new(input: Input) -> Result<Self> {
        let (reader, _) = input.reader_with(Head::Pass)?;
        Ok(Pull {
            endian: reader.recording().endian,
            reader,
            chunk: Vec::new(),
            at: 0,
            offset: 0,
            zstd: None,
            is_broken: false,
            inside: None,
            tracker: Tracker::default(),
            unreadable: 0,
            damage: Vec::new(),
            is_finished: false,
        })
    }

    /// Returns the model, as far as the input was read.
    pub fn recording(&self) -> &Recording {
        self.reader.recording()
    }

    /// Returns the names of the events, as far as the input was read.
    pub fn names(&self) -> &EventNames {
        &self.tracker.names
    }

    /// Removes and returns the descriptions of damage that made parts of the recording unreadable.
    pub fn take_damage(&mut self) -> Vec<String> {
        std::mem::take(&mut self.damage)
    }

    /// Returns whether all records were returned.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Returns whether the next record was already read, and requires no read of the input.
    pub fn is_at_hand(&self) -> bool {
        self.inside.is_some() || self.at < self.chunk.len()
    }

    /// Returns the next record for which `wanted` is true; `None` if there is none in the data that
    /// were read, or at the [end](Self::is_finished). So a program can pause between reads.
    ///
    /// # Errors
    /// The input cannot be read, or exceeds a limit.
    pub fn next(&mut self, wanted: impl Fn(RecordType) -> bool) -> Result<Option<RecordCopy>> {
        loop {
            if let Some(place) = self.inside {
                match self.decompressed(place, &wanted)? {
                    Some(found) => return Ok(Some(found)),
                    None => continue,
                }
            }
            let rest = self.chunk.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                if !self.is_finished {
                    self.fill()?;
                }
                return Ok(None);
            }
            // A chunk consists of complete records.
            let offset = self.offset.saturating_add(self.at as u64);
            let Ok(record) = RawRecord::first(rest, self.endian, offset) else {
                self.at = self.chunk.len();
                continue;
            };
            self.at = self.at.saturating_add(record.bytes.len());
            let recording = self.reader.recording();
            self.tracker.see(&record, recording);
            let found = wanted(record.kind).then(|| self.tracker.copy(&record, recording, None));
            if record.kind.is_compressed() && !self.is_broken {
                let limits = self.reader.limits();
                let zstd = match self.zstd.take() {
                    Some(zstd) => zstd,
                    None => Decompressor::of(self.reader.recording(), limits)?,
                };
                match self.zstd.insert(zstd).push(&record) {
                    Ok(()) => self.inside = Some(0),
                    Err(error) => self.broken(error),
                }
            }
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Returns the next record in a compressed record, if it is wanted.
    fn decompressed(
        &mut self,
        place: usize,
        wanted: impl Fn(RecordType) -> bool,
    ) -> Result<Option<RecordCopy>> {
        self.inside = None;
        let next = self.zstd.as_mut().map_or(Ok(None), Decompressor::next);
        match next {
            Ok(Some(record)) => {
                self.inside = Some(place.saturating_add(1));
                let recording = self.reader.recording();
                self.tracker.see(&record, recording);
                let copy = |tracker: &mut Tracker| tracker.copy(&record, recording, Some(place));
                Ok(wanted(record.kind).then(|| copy(&mut self.tracker)))
            }
            Ok(None) => Ok(None),
            Err(error) if error.is_io() => Err(error.into()),
            Err(error) => {
                self.broken(error);
                Ok(None)
            }
        }
    }

    /// Notes that the rest of the compressed data is lost.
    fn broken(&mut self, error: Error) {
        (self.is_broken, self.inside) = (true, None);
        self.note(error.to_string());
    }

    fn note(&mut self, damage: String) {
        if self.damage.len() < MOST_DAMAGE {
            self.damage.push(damage);
        }
    }

    /// Reads the next chunk.
    fn fill(&mut self) -> Result<()> {
        (self.at, self.offset) = (0, 0);
        self.chunk.clear();
        match self.reader.next_chunk() {
            Ok(Some((Chunk::Records(batch), _))) => {
                self.chunk.extend_from_slice(batch.bytes());
                self.offset = batch.offset();
            }
            Ok(Some((Chunk::Payload(bytes), _))) => {
                // It may be tracing data.
                self.tracker.policy.change(bytes.len());
            }
            Ok(Some((Chunk::Unreadable(bytes), _))) => {
                self.unreadable = self.unreadable.saturating_add(bytes.len() as u64);
            }
            Ok(None) => {
                self.is_finished = true;
                let leftover = Leftover::of(&self.reader, self.unreadable);
                if let Some(leftover) = leftover {
                    self.note(leftover.to_string());
                }
            }
            Err(error) if error.is_io() || matches!(error.problem(), Problem::Limit { .. }) => {
                return Err(error.into());
            }
            Err(error) => self.note(error.to_string()),
        }
        Ok(())
    }
}

/// Keeps the state of the recording up to date.
#[derive(Default)]
struct Tracker {
    names: EventNames,
    /// The last copy of the state.
    state: Option<Arc<State>>,
    policy: CopyPolicy,
}

impl Tracker {
    /// Processes the effects of a record on others.
    fn see(&mut self, record: &RawRecord<'_>, recording: &Recording) {
        self.policy.see(record, recording);
        self.names.see(record);
    }

    /// Returns a copy of a record with the state.
    fn copy(
        &mut self,
        record: &RawRecord<'_>,
        recording: &Recording,
        inner: Option<usize>,
    ) -> RecordCopy {
        let is_metadata = record.kind.is_metadata();
        let suffices = |state: &Arc<State>| {
            let policy = &self.policy;
            policy.suffices(&state.recording, recording, is_metadata)
        };
        let state = match &self.state {
            Some(state) if suffices(state) => Some(Arc::clone(state)),
            Some(_) if !self.policy.is_affordable() => {
                self.names.update(recording);
                None
            }
            _ => {
                self.names.update(recording);
                let state = Arc::new(State {
                    recording: recording.clone(),
                    names: self.names.clone(),
                    registers: Registers::of(recording),
                });
                self.policy.copied();
                Some(Arc::clone(self.state.insert(state)))
            }
        };
        RecordCopy {
            bytes: record.bytes.into(),
            offset: record.offset,
            endian: record.endian,
            inner,
            state,
        }
    }
}
