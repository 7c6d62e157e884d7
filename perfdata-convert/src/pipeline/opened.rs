//! Open inputs, and what is read ahead of a conversion.

use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Chunk, Tail};
use perfdata_core::{Events, Recording};

use super::Stage;
use crate::error::{Error, Result};
use crate::io::{BoxedSource, Input, InputSource, Size};
use crate::leftover::Leftover;

/// An open input.
pub(super) struct Opened {
    pub(super) reader: BoxedSource,
    pub(super) source: InputSource,
    pub(super) size: Size,
    /// The model before the first record, with the events that were read ahead.
    pub(super) recording: Recording,
    /// Whether events were read ahead, because the attributes come after the first record.
    pub(super) has_late_events: bool,
}

impl Opened {
    /// Opens an input. With `events_first`, all events are known.
    pub(super) fn new(input: Input, events_first: bool) -> Result<Self> {
        let size = input.size();
        let (reader, source) = input.reader()?;
        let mut recording = reader.recording().clone();
        let has_late_events = recording.events.is_empty() && events_first;
        if has_late_events {
            recording.events = late_events(&source).map_err(Error::of_records)?;
        }
        Ok(Opened {
            reader,
            source,
            size,
            recording,
            has_late_events,
        })
    }

    /// Opens an input. A stream for which `reads_twice` returns true is stored in a temporary file
    /// first.
    pub(super) fn seekable_if(
        input: Input,
        events_first: bool,
        reads_twice: impl FnOnce(&Self) -> bool,
    ) -> Result<Self> {
        let (input, rewind) = input.rewindable();
        let opened = Self::new(input, events_first)?;
        let Some(rewind) = rewind else {
            return Ok(opened);
        };
        if !reads_twice(&opened) {
            rewind.release();
            return Ok(opened);
        }
        drop(opened);
        Self::new(rewind.into_seekable()?, events_first)
    }
}

/// Lets the stages read the input ahead, each without the records that earlier ones drop.
pub(super) fn look_ahead(
    stages: &mut [Box<dyn Stage>],
    source: &InputSource,
    recording: &Recording,
    to: ContainerKind,
) -> Result<()> {
    let mut filtered: Option<InputSource> = None;
    for stage in stages {
        let source = filtered.as_ref().unwrap_or(source);
        if stage.requirements().reads_ahead_for(to) {
            stage.look_ahead(source, recording)?;
        }
        if let Some(filter) = stage.selection().filter {
            let source = source.filtered(filter);
            filtered = Some(source);
        }
    }
    Ok(())
}

/// An open input, and the container of the output.
pub(super) struct Ready {
    pub(super) reader: BoxedSource,
    pub(super) source: InputSource,
    pub(super) to: ContainerKind,
    /// The model before the first record, with the events that were read ahead.
    pub(super) recording: Recording,
    /// Whether events were read ahead, because the attributes come after the first record.
    pub(super) has_late_events: bool,
    /// Whether all records are only moved to the output, whose container may be another one.
    pub(super) is_moved: bool,
    /// Number of records that `reader` does not return.
    pub(super) skipped: u64,
}

impl Ready {
    /// Returns the number of threads for reading and writing. Records that are only moved are
    /// written by the thread that reads them: passing them to another one takes as much CPU time as
    /// writing them.
    pub(super) fn writers(&self) -> usize {
        if self.is_moved {
            1
        } else {
            self.source.limits().threads()
        }
    }
}

/// Refuses corrupt records before anything is written, if the input can be read twice.
pub(super) fn check_ahead(source: &InputSource) -> Result<()> {
    let Some(mut reader) = source.reopen()? else {
        return Ok(());
    };
    let mut unreadable = 0;
    while let Some((chunk, _)) = reader.next_chunk()?.filter(|_| unreadable <= Tail::MOST) {
        if let Chunk::Unreadable(bytes) = chunk {
            unreadable += bytes.len() as u64;
        }
    }
    Leftover::of(&reader, unreadable).map_or(Ok(()), |leftover| leftover.check())
}

/// Reads ahead the events of a pipe whose attributes come after the first record.
pub(super) fn late_events(source: &InputSource) -> Result<Events> {
    let Some(mut reader) = source.reopen()? else {
        let what = "the attributes are not at the start of the stream: write it to a file first";
        return Err(Error::Refused(what.into()));
    };
    while reader.next_chunk()?.is_some() {}
    Ok(reader.recording().events.clone())
}

/// Returns an open input without its reader, and the model before the first record.
///
/// # Errors
/// As [`Input::reader`].
pub fn opened(input: Input) -> Result<(InputSource, Recording)> {
    let Opened {
        source, recording, ..
    } = Opened::new(input, true)?;
    Ok((source, recording))
}
