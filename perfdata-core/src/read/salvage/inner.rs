//! The compressed records that can be believed.

use crate::error::{Error, Problem, Result};
use crate::read::decompress::Decompressor;
use crate::read::salvage::evidence::{Evidence, Verdict};
use crate::read::salvage::report::CompressedData;
use crate::record::RawRecord;
use crate::recording::Recording;

/// The stream in the compressed records.
#[derive(Debug, Default)]
pub(super) struct Zstd {
    stream: Option<Decompressor>,
    /// Whether a record was decoded and believed.
    is_there: bool,
    /// Whether something is missing before the next compressed record, so that it cannot be decoded.
    pub(super) is_lost: bool,
    /// Whether what was believed ends so that a new frame may follow.
    may_begin: bool,
    /// Where a record begins whose end is still to come.
    cut: Option<u64>,
    /// Where the last compressed record is that was believed.
    last: u64,
}

impl Zstd {
    /// What is known of the records so far.
    pub(super) fn data(&self) -> CompressedData {
        match self {
            Zstd { is_there: false, .. } => CompressedData::None,
            Zstd { cut: Some(offset), .. } => CompressedData::Cut(*offset),
            // perf writes what it has compressed to its end.
            Zstd { may_begin: false, last, .. } => CompressedData::Cut(*last),
            _ => CompressedData::Whole,
        }
    }

    /// Decodes a compressed record, and looks at the records in it.
    pub(super) fn take(&mut self, raw: &RawRecord<'_>, evidence: &mut Evidence, model: &Recording) -> Result<()> {
        if self.is_lost {
            let begins_anew = !self.is_there || (self.may_begin && Decompressor::begins_frame(raw)?);
            if !begins_anew {
                let what = "its data continues compressed data that is lost";
                return Err(Error::new(format!("{} record", raw.kind), Problem::Unknown(what.into())).at(raw.offset));
            }
            self.stream = None;
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(Decompressor::of(model)?),
        };
        stream.push(raw)?;
        let mut has_ended = false;
        // Nothing is learned from a record that is not believed in the end.
        let mut learned = *evidence;
        while let Some(record) = stream.next()? {
            has_ended = true;
            if learned.is_sure(&record, model) {
                continue;
            }
            let judgement = learned.judge(&record, model);
            // The kernel's ring buffers are compressed, and nothing else.
            let is_other = record.kind.info().is_none() && !record.kind.is_kernel();
            let is_odd = is_other
                || !record.bytes.len().is_multiple_of(8)
                || matches!(judgement.verdict, Verdict::Odd) && learned.is_regular(record.kind);
            if is_odd || learned.hides_others(&record, model) {
                let what = format!("a {} record in its data is not as others are", record.kind);
                return Err(Error::new(format!("{} record", raw.kind), Problem::Unknown(what.into())).at(raw.offset));
            }
            if let Verdict::Bad(why) = judgement.verdict {
                return Err(why);
            }
            learned.learn(&record, model, &judgement);
        }
        *evidence = learned;
        self.cut = match stream.pending() {
            0 => None,
            _ => self.cut.filter(|_| !has_ended).or(Some(raw.offset)),
        };
        self.may_begin = self.cut.is_none() && stream.is_between_blocks();
        self.is_there = true;
        self.last = raw.offset;
        self.is_lost = false;
        Ok(())
    }
}
