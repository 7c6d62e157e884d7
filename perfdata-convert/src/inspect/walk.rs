//! The loop over the records of an input for commands that look but write no recording: one pass, and into
//! compressed records.

use std::ops::ControlFlow;

use perfdata_core::Recording;
use perfdata_core::error::Problem;
use perfdata_core::read::{Chunk, Decompressor, RecordBatch, RecordSource, is_compressed};
use perfdata_core::record::RawRecord;

use crate::error::Result;

/// What a walk comes across.
#[derive(Debug)]
pub enum Item<'a> {
    /// A record of the stream.
    Record(RawRecord<'a>),
    /// A record inside a compressed one, whose offset it has, with its place among the records that came out of it.
    Inner(RawRecord<'a>, usize),
    /// A part of what follows the last record outside its size.
    Payload(&'a [u8]),
    /// Bytes at the end of the stream that are no records.
    Unreadable(&'a [u8]),
    /// What could not be decoded: compressed data, of which no more will be; the rest of a file of a directory; a
    /// metadata record of a pipe.
    Undecodable(perfdata_core::Error),
    /// What stands together has been shown: the model may grow.
    Pause {
        /// Whether what comes next may not be there yet.
        may_wait: bool,
    },
}

/// What a walk is told to do next.
pub type Flow = Result<ControlFlow<()>>;

/// Shows `see` everything behind the metadata that `reader` has read, with the model that knows what it means. The
/// model of a pipe grows on the way. Returns the number of bytes at the end of compressed data that make no whole
/// record.
///
/// # Errors
/// The input cannot be read, or an error of `see`.
pub fn walk(reader: &mut dyn RecordSource, mut see: impl FnMut(Item<'_>, &Recording) -> Flow) -> Result<usize> {
    let mut inner = Compressed::Untouched;
    loop {
        let (chunk, recording) = match reader.next_chunk() {
            Ok(Some(next)) => next,
            Ok(None) => break,
            Err(error) if error.is_io() || matches!(error.problem(), Problem::Limit { .. }) => return Err(error.into()),
            Err(error) => {
                if see(Item::Undecodable(error), reader.recording())?.is_break() {
                    break;
                }
                continue;
            }
        };
        let flow = match chunk {
            Chunk::Records(batch) => see_batch(&batch, recording, &mut inner, &mut see)?,
            Chunk::Payload(bytes) => see(Item::Payload(bytes), recording)?,
            Chunk::Unreadable(bytes) => see(Item::Unreadable(bytes), recording)?,
        };
        let may_wait = !reader.has_more_at_hand();
        if flow.is_break() || see(Item::Pause { may_wait }, reader.recording())?.is_break() {
            break;
        }
    }
    Ok(if let Compressed::Open(stream) = inner { stream.pending() } else { 0 })
}

fn see_batch(
    batch: &RecordBatch<'_>,
    recording: &Recording,
    inner: &mut Compressed,
    see: &mut impl FnMut(Item<'_>, &Recording) -> Flow,
) -> Flow {
    for record in batch.iter() {
        let mut flow = see(Item::Record(record), recording)?;
        if flow.is_continue() && is_compressed(record.kind) {
            flow = inner.look_into(&record, recording, see)?;
        }
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The compressed records of a stream, which hold one stream of their own.
enum Compressed {
    Untouched,
    Open(Decompressor),
    Broken,
}

impl Compressed {
    fn look_into(
        &mut self,
        record: &RawRecord<'_>,
        recording: &Recording,
        see: &mut impl FnMut(Item<'_>, &Recording) -> Flow,
    ) -> Flow {
        if let Compressed::Untouched = self {
            *self = Compressed::Open(Decompressor::of(recording)?);
        }
        let Compressed::Open(stream) = self else { return Ok(ControlFlow::Continue(())) };
        let mut next = stream.push(record);
        let mut place = 0;
        while next.is_ok() {
            match stream.next() {
                Ok(Some(record)) => {
                    if see(Item::Inner(record, place), recording)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    place += 1;
                }
                Ok(None) => return Ok(ControlFlow::Continue(())),
                Err(error) => next = Err(error),
            }
        }
        match next {
            Err(error) => {
                *self = Compressed::Broken;
                see(Item::Undecodable(error), recording)
            }
            Ok(()) => Ok(ControlFlow::Continue(())),
        }
    }
}
