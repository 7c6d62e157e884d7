//! The plausible compressed records.

use crate::error::{Error, Problem, Result};
use crate::read::decompress::Decompressor;
use crate::read::limits::Limits;
use crate::read::salvage::evidence::{Evidence, Verdict};
use crate::read::salvage::report::CompressedData;
use crate::record::RawRecord;
use crate::recording::Recording;

/// The stream in the compressed records.
#[derive(Debug)]
pub(super) struct Zstd {
    limits: Limits,
    stream: Option<Decompressor>,
    /// Whether a record was decompressed and accepted.
    is_there: bool,
    /// Whether data before the next compressed record is missing, so that it cannot be
    /// decompressed.
    pub(super) is_lost: bool,
    /// Whether the accepted data ends at a point where a new frame may follow.
    may_begin: bool,
    /// Offset of the compressed record in which a still incomplete record starts.
    cut: Option<u64>,
    /// Offset of the last accepted compressed record.
    last: u64,
}

impl Zstd {
    /// Returns an empty stream, which is decompressed within `limits`.
    pub(super) fn new(limits: Limits) -> Self {
        Zstd {
            limits,
            stream: None,
            is_there: false,
            is_lost: false,
            may_begin: false,
            cut: None,
            last: 0,
        }
    }

    /// Returns the findings about the records so far.
    pub(super) fn data(&self) -> CompressedData {
        match self {
            Zstd {
                is_there: false, ..
            } => CompressedData::None,
            Zstd {
                cut: Some(offset), ..
            } => CompressedData::Cut(*offset),
            // perf always writes its compressed data completely.
            Zstd {
                may_begin: false,
                last,
                ..
            } => CompressedData::Cut(*last),
            _ => CompressedData::Whole,
        }
    }

    /// Decompresses a compressed record and examines the records in it.
    pub(super) fn take(
        &mut self,
        raw: &RawRecord<'_>,
        evidence: &mut Evidence,
        model: &Recording,
    ) -> Result<()> {
        if self.is_lost {
            let begins_anew =
                !self.is_there || (self.may_begin && Decompressor::begins_frame(raw)?);
            if !begins_anew {
                let what = "its data continues compressed data that is lost";
                return Err(Error::new(
                    format!("{} record", raw.kind),
                    Problem::Unknown(what.into()),
                )
                .at(raw.offset));
            }
            self.stream = None;
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(Decompressor::of(model, self.limits)?),
        };
        stream.push(raw)?;
        let mut has_ended = false;
        // Nothing is learned from a record that is finally rejected.
        let mut learned = *evidence;
        while let Some(record) = stream.next()? {
            has_ended = true;
            if learned.is_sure(&record, model) {
                continue;
            }
            let judgement = learned.judge(&record, model);
            // perf compresses only the kernel's ring buffers.
            let is_other = record.kind.info().is_none() && !record.kind.is_kernel();
            let is_odd = is_other
                || !record.bytes.len().is_multiple_of(8)
                || matches!(judgement.verdict, Verdict::Odd) && learned.is_regular(record.kind);
            if is_odd || learned.hides_others(&record, model) {
                let what = format!("it contains an implausible {} record", record.kind);
                return Err(Error::new(
                    format!("{} record", raw.kind),
                    Problem::Unknown(what.into()),
                )
                .at(raw.offset));
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
