//! The loop over the records of an input for commands that do not write a recording: one pass,
//! including the records inside of compressed records.

use std::ops::ControlFlow;

use perfdata_core::Recording;
use perfdata_core::error::Problem;
use perfdata_core::read::{Chunk, Decompressor, Limits, RecordBatch, RecordSource};
use perfdata_core::record::RawRecord;

use crate::error::Result;

/// An item that a walk finds.
#[derive(Debug)]
pub enum Item<'a> {
    /// Records of the stream, or one record inside of a compressed record, with the offset of the
    /// compressed record, and its index among the records that were decompressed from it.
    Records(RecordBatch<'a>, Option<usize>),
    /// A part of the data after the last record that its size does not include.
    Payload(&'a [u8]),
    /// Bytes at the end of the stream that are not records.
    Unreadable(&'a [u8]),
    /// An error about data that could not be decoded: compressed data, after which no more is
    /// decompressed; the rest of a file of a directory; a metadata record of a pipe.
    Undecodable(perfdata_core::Error),
    /// The end of a group of items: the model may grow.
    Pause {
        /// Whether the next item may not be available yet.
        may_wait: bool,
    },
}

/// The decision whether a walk continues.
pub type Flow = Result<ControlFlow<()>>;

/// Calls `see` for everything after the metadata that `reader` has read, with the model that
/// describes it. The model of a pipe grows during the walk. Returns the number of bytes at the end
/// of compressed data that are not a complete record.
///
/// # Errors
/// The input cannot be read, or `see` returns an error.
pub fn walk(
    reader: &mut dyn RecordSource,
    mut see: impl FnMut(Item<'_>, &Recording) -> Flow,
) -> Result<usize> {
    let mut inner = Compressed::Untouched(reader.limits());
    loop {
        let (chunk, recording) = match reader.next_chunk() {
            Ok(Some(next)) => next,
            Ok(None) => break,
            Err(error) if error.is_io() || matches!(error.problem(), Problem::Limit { .. }) => {
                return Err(error.into());
            }
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
    Ok(if let Compressed::Open(stream) = inner {
        stream.pending()
    } else {
        0
    })
}

fn see_batch(
    batch: &RecordBatch<'_>,
    recording: &Recording,
    inner: &mut Compressed,
    see: &mut impl FnMut(Item<'_>, &Recording) -> Flow,
) -> Flow {
    let flow = see(Item::Records(*batch, None), recording)?;
    match batch.only() {
        Some(record) if record.kind.is_compressed() && flow.is_continue() => {
            inner.look_into(&record, recording, see)
        }
        _ => Ok(flow),
    }
}

/// The compressed records of a stream, which contain a separate stream.
enum Compressed {
    /// With the limits within which they will be decompressed.
    Untouched(Limits),
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
        if let Compressed::Untouched(limits) = *self {
            *self = Compressed::Open(Decompressor::of(recording, limits)?);
        }
        let Compressed::Open(stream) = self else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut next = stream.push(record);
        let mut place = 0;
        while next.is_ok() {
            match stream.next() {
                Ok(Some(record)) => {
                    let item = Item::Records(RecordBatch::of(&record), Some(place));
                    if see(item, recording)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    place += 1;
                }
                Ok(None) => return Ok(ControlFlow::Continue(())),
                Err(error) => next = Err(error),
            }
        }
        match next {
            Err(error) if error.is_io() => Err(error.into()),
            Err(error) => {
                *self = Compressed::Broken;
                see(Item::Undecodable(error), recording)
            }
            Ok(()) => Ok(ControlFlow::Continue(())),
        }
    }
}
