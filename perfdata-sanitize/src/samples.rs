//! New values for samples in place, without decoding them: nearly all records of a recording.

use perfdata_core::read::{RecordBatch, Records};
use perfdata_core::record::{CpuMode, RawRecord, RecordHeader, RecordType};
use perfdata_core::{Endian, Events};

use super::state::State;
use super::{Sanitize, state_of};
use perfdata_convert::error::Result;
use perfdata_convert::pipeline::{Link, Stage};

impl Sanitize {
    /// Appends a sample with new values to `out`, without decoding it. Returns false if this is not
    /// possible.
    pub(super) fn append(&mut self, raw: &RawRecord<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let Some(event) = self.event_of(raw) else {
            return Ok(false);
        };
        let start = out.len();
        let parts = |events: &Events| events.get(event).map(|event| event.attr.sample_type);
        let (Some(from), Some(to)) = (parts(&self.from), parts(&self.to)) else {
            return Ok(false);
        };
        if from == to {
            out.extend_from_slice(raw.bytes);
        } else if !self.from.keep_sample(raw, to, usize::MAX, out) {
            return Ok(false);
        }
        let sample = out.get_mut(start..).unwrap_or_default();
        let is_done = self.in_place(event, raw.misc, sample, raw.endian)?;
        if !is_done {
            out.truncate(start);
        }
        Ok(is_done)
    }

    /// Returns the event of a sample, unless the record must be decoded.
    #[inline]
    fn event_of(&self, raw: &RawRecord<'_>) -> Option<usize> {
        if raw.kind != RecordType::SAMPLE || raw.misc & !self.flags != 0 {
            return None;
        }
        self.from.of_record(raw)
    }

    /// Gives new values to a sample that has the parts of the output. Returns false and changes
    /// nothing if the sample must be decoded.
    #[inline]
    fn in_place(
        &mut self,
        event: usize,
        misc: u16,
        sample: &mut [u8],
        endian: Endian,
    ) -> Result<bool> {
        let state = state_of(&mut self.state)?;
        state.enter(CpuMode::of(misc));
        let chain = |state: &mut State, words: &mut [[u8; 8]]| state.chain(words, endian);
        Ok(self.to.rewrite_sample(event, sample, endian, state, chain))
    }

    /// Gives new values to the samples among the records at the start of `bytes`, of which all
    /// parts stay, up to the first other record. Returns their size in bytes and their number.
    fn samples_at_start(&mut self, bytes: &mut [u8], endian: Endian) -> Result<(usize, usize)> {
        let (mut len, mut count) = (0, 0);
        while let Some(rest) = bytes.get_mut(len..)
            && let Some(header) = RecordHeader::parse(rest, endian)
        {
            let size = usize::from(header.size).max(RecordHeader::SIZE);
            let Some(bytes) = rest.get_mut(..size) else {
                break;
            };
            let event = self.event_of(&RawRecord {
                offset: 0,
                kind: header.kind,
                misc: header.misc,
                bytes,
                endian,
            });
            let Some(event) = event else { break };
            if !self.in_place(event, header.misc, bytes, endian)? {
                break;
            }
            len = len.saturating_add(size);
            count = usize::saturating_add(count, 1);
        }
        Ok((len, count))
    }

    /// Forwards the records of a batch, if all parts of all samples stay.
    pub(super) fn copied(&mut self, batch: &RecordBatch<'_>, next: &mut Link<'_>) -> Result<()> {
        let (endian, original) = (batch.endian(), batch.bytes());
        let mut bytes = std::mem::take(&mut self.samples);
        bytes.clear();
        bytes.extend_from_slice(original);
        let mut at = 0_usize;
        while at < original.len() {
            let offset = batch.offset().saturating_add(at as u64);
            next.at(offset);
            let rest = bytes.get_mut(at..).unwrap_or_default();
            let (len, count) = self.samples_at_start(rest, endian)?;
            if count > 0 {
                let samples = rest.get(..len).unwrap_or_default();
                next.records(&RecordBatch::new(samples, count, endian, offset))?;
                at = at.saturating_add(len);
                continue;
            }
            let other = original.get(at..).unwrap_or_default();
            let Some(raw) = Records::of(other, endian, offset).next() else {
                break;
            };
            self.record(&raw, next)?;
            at = at.saturating_add(raw.bytes.len());
        }
        self.samples = bytes;
        Ok(())
    }

    /// Forwards samples with new values, the first of which was at `offset`.
    pub(super) fn give(
        &self,
        bytes: &mut Vec<u8>,
        endian: Endian,
        offset: u64,
        next: &mut Link<'_>,
    ) -> Result<()> {
        if !bytes.is_empty() {
            next.records(&RecordBatch::first(bytes, endian, offset))?;
            bytes.clear();
        }
        Ok(())
    }
}
