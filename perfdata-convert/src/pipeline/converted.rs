//! The recording that a conversion makes, to be read instead of written.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::read::{Chunk, Collector, Limits, RecordBatch, RecordSource, StreamItem, Tail};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Recording};

use super::chain::{ChainEnd, Step};
use super::chunk_queue::{BufferedChunk, ChunkKind, ChunkQueue};
use super::{Begun, Conversion, Form, Summary};
use crate::error::{Error, Result};
use crate::io::{BoxedSource, Input};
use crate::leftover::Leftover;

/// The records of an input after the stages of a conversion.
///
/// A reader that stops at an error of a stage sees the end of the recording:
/// [`Ending::check`] returns the error.
pub struct Converted {
    reader: BoxedSource,
    limits: Limits,
    writer: ChainEnd<ChunkQueue>,
    steps: Vec<Step>,
    /// The model after all stages.
    recording: Recording,
    container_layout: ContainerLayout,
    collector: Collector,
    expects_tracing_data: bool,
    is_finished: bool,
    unreadable: u64,
    /// Whether the first stage is that for directories.
    is_directory: bool,
    ending: Arc<Mutex<Ended>>,
}

/// How reading a [`Converted`] recording ended.
#[derive(Debug, Clone)]
pub struct Ending {
    ended: Arc<Mutex<Ended>>,
    /// The conversion before, to a temporary file.
    first: Option<Summary>,
}

#[derive(Debug, Default)]
struct Ended {
    error: Option<Error>,
    notes: Vec<String>,
    unreadable: Option<Leftover>,
}

fn locked(ending: &Mutex<Ended>) -> MutexGuard<'_, Ended> {
    ending.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Conversion {
    /// Returns the recording that the stages make of `input`, and how reading it will have ended.
    /// The container remains that of the input.
    ///
    /// # Errors
    /// The input cannot be read or converted.
    pub fn read(mut self, input: Input) -> Result<(Converted, Ending)> {
        let (ready, _) = self.prepare(input)?;
        let limits = ready.source.limits();
        let is_directory = ready.source.directory().is_some();
        let to = Form::of(ready.reader.recording(), ready.reader.container_layout()).container;
        let Begun {
            reader,
            recording,
            container_layout,
            steps,
            ..
        } = self.begin(ready, to)?;
        let ending = Arc::new(Mutex::default());
        let converted = Converted {
            reader,
            limits,
            writer: ChainEnd::new(ChunkQueue::default()),
            steps,
            recording,
            container_layout,
            collector: Collector::behind_head(limits),
            expects_tracing_data: false,
            is_finished: false,
            unreadable: 0,
            is_directory,
            ending: Arc::clone(&ending),
        };
        let ending = Ending {
            ended: ending,
            first: None,
        };
        Ok((converted, ending))
    }
}

impl Ending {
    /// Returns the ending of a recording that another conversion made first.
    #[must_use]
    pub fn after(self, first: Summary) -> Self {
        Ending {
            first: Some(first),
            ..self
        }
    }

    /// Checks that the stages processed all records. Returns their notes, and the bytes at the end
    /// of the input that are not a complete record.
    ///
    /// # Errors
    /// The error of a stage, which ended the recording; or there are corrupt bytes before the end.
    pub fn check(self) -> Result<(Vec<String>, Option<Leftover>)> {
        let mut ended = std::mem::take(&mut *locked(&self.ended));
        if let Some(error) = ended.error {
            return Err(error);
        }
        if let Some(first) = self.first {
            ended.notes.splice(0..0, first.notes);
        }
        if let Some(leftover) = &ended.unreadable {
            leftover.check()?;
        }
        Ok((ended.notes, ended.unreadable))
    }
}

impl Converted {
    /// Passes the next chunk of the input through the stages. Returns false at its end.
    fn advance(&mut self) -> Result<bool> {
        let Converted {
            reader,
            writer,
            steps,
            recording,
            unreadable,
            is_directory,
            ending,
            ..
        } = self;
        if let Some((chunk, _)) = reader.next_chunk()? {
            if let Chunk::Unreadable(bytes) = &chunk {
                *unreadable = unreadable.saturating_add(bytes.len() as u64);
            }
            writer.chain(steps).chunk(&chunk)?;
            return Ok(true);
        }
        writer.finish(steps, recording)?;
        // The first stage notes what a file would lack, but none is written.
        let notes = steps
            .iter()
            .skip(usize::from(*is_directory))
            .flat_map(|step| step.note().into_iter().chain(step.stage.notes()));
        let mut ended = locked(ending);
        ended.notes = notes.collect();
        ended.unreadable = Leftover::of(reader, *unreadable);
        Ok(false)
    }

    /// Adds the metadata in a part to the model.
    fn collect(&mut self, part: &BufferedChunk) -> perfdata_core::Result<()> {
        let bytes = self.writer.sink().bytes(part);
        let endian: Endian = self.recording.endian;
        let raw;
        let item = match part.kind {
            ChunkKind::Alone(kind) => {
                raw = RawRecord::first(bytes, endian, part.offset)?;
                self.expects_tracing_data = kind == RecordType::HEADER_TRACING_DATA;
                if !kind.is_metadata() {
                    return Ok(());
                }
                StreamItem::Record(raw)
            }
            ChunkKind::Payload if self.expects_tracing_data => StreamItem::Payload(bytes),
            _ => return Ok(()),
        };
        self.collector.item(&mut self.recording, &item)?;
        Ok(())
    }
}

impl RecordSource for Converted {
    fn recording(&self) -> &Recording {
        &self.recording
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn container_layout(&self) -> &ContainerLayout {
        &self.container_layout
    }

    fn next_chunk(&mut self) -> perfdata_core::Result<Option<(Chunk<'_>, &Recording)>> {
        let part = loop {
            let more = match self.writer.sink_mut().pop() {
                Ok(Some(part)) => break part,
                Ok(None) if self.is_finished => return Ok(None),
                Ok(None) => self.advance(),
                Err(error) => Err(error),
            };
            match more {
                Ok(has_more) => self.is_finished = !has_more,
                Err(error) => {
                    self.is_finished = true;
                    self.writer.sink_mut().clear();
                    locked(&self.ending).error = Some(error);
                }
            }
        };
        self.collect(&part)?;
        let bytes = self.writer.sink().bytes(&part);
        let chunk = match part.kind {
            ChunkKind::Records | ChunkKind::Alone(_) => Chunk::Records(RecordBatch::first(
                bytes,
                self.recording.endian,
                part.offset,
            )),
            ChunkKind::Payload => Chunk::Payload(bytes),
            ChunkKind::Unreadable => Chunk::Unreadable(bytes),
        };
        Ok(Some((chunk, &self.recording)))
    }

    /// Returns nothing: [`Ending::check`] decides whether the end of the input matters.
    fn damage(&self) -> Option<&perfdata_core::Error> {
        None
    }

    fn take_damage(&mut self) -> Option<perfdata_core::Error> {
        None
    }

    fn tail(&self) -> Option<Tail> {
        self.reader.tail()
    }
}

impl fmt::Debug for Converted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converted").finish_non_exhaustive()
    }
}
