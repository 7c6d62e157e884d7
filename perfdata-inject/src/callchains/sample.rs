//! Rewriting of one sample.

use std::ops::Range;

use perfdata_core::record::{Body, CallchainContext, RawRecord, Record, RecordHeader};
use perfdata_core::{Endian, Events};
use perfdata_unwind::{Outcome, Unwinder, UserStack};

use super::ahead::ProcessMaps;
use super::batch::Job;
use super::worker::Shared;
use perfdata_convert::error::Result;

/// Default maximum of the words of a callchain, with context markers: as many as in those that perf
/// inject writes (tools/perf/util/callchain.h, PERF_MAX_STACK_DEPTH, Linux 7.2).
pub(super) const MOST_WORDS: usize = 126;

/// Maximum size of a record in bytes: a 16-bit size that is a multiple of 8.
const MAX_SIZE: usize = 65_528;

/// Bytes of a word.
const WORD: usize = 8;

/// The maximum length of a callchain.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    /// Of all words.
    Words(usize),
    /// Of the user frames.
    Frames(u32),
}

/// Memory that is used for one sample after the other.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    registers: Vec<u64>,
    frames: Vec<u64>,
}

impl Buffers {
    /// Returns the number of words that were added to the callchain of the last sample.
    pub(super) fn frames(&self) -> usize {
        self.frames.len()
    }
}

/// Replaces the user stacks of samples, one after the other.
pub(super) struct Rewriter<'a> {
    pub(super) shared: &'a Shared,
    pub(super) unwinder: &'a mut Unwinder,
    pub(super) buffers: &'a mut Buffers,
}

impl Rewriter<'_> {
    /// Appends a sample with its user callchain instead of the user stack to `out`.
    ///
    /// # Errors
    /// The sample is corrupt.
    pub(super) fn unwind(
        &mut self,
        raw: &RawRecord<'_>,
        job: &Job,
        out: &mut Vec<u8>,
    ) -> Result<Outcome> {
        let shared = self.shared;
        let layout = shared.from.layout_of(raw);
        let mask = layout.sample_regs_user;
        let Some(view) = shared.from.sample_view(raw) else {
            return self.unwind_decoded(raw, job, out);
        };
        let Some(parts) = view.user_parts() else {
            return self.unwind_decoded(raw, job, out);
        };
        let registers = &mut self.buffers.registers;
        let user = UserStack::of_view(&view, &parts, raw.bytes, mask, registers);
        // All bytes of the record except those of the parts that are replaced.
        let others = raw.bytes.len().saturating_sub(
            parts
                .callchain
                .len()
                .saturating_add(parts.regs.len())
                .saturating_add(parts.stack.len()),
        );
        let recorded = view.callchain();
        let (kept, outcome) = self.chain(recorded.clone(), others, user, job);
        let start = out.len();
        let bytes = |range: Range<usize>| raw.bytes.get(range).unwrap_or_default();
        out.extend_from_slice(bytes(0..parts.callchain.start));
        let added = self.buffers.frames.iter().copied();
        put(out, (kept.saturating_add(added.len())) as u64, raw.endian);
        for word in recorded.take(kept).chain(added) {
            put(out, word, raw.endian);
        }
        out.extend_from_slice(bytes(parts.callchain.end..parts.regs.start));
        out.extend_from_slice(bytes(parts.stack.end..raw.bytes.len()));
        put_size(out.get_mut(start..).unwrap_or_default(), raw.endian);
        Ok(outcome)
    }

    /// As [`unwind`](Self::unwind), for samples whose parts are only found by decoding them.
    #[cold]
    fn unwind_decoded(
        &mut self,
        raw: &RawRecord<'_>,
        job: &Job,
        out: &mut Vec<u8>,
    ) -> Result<Outcome> {
        let shared = self.shared;
        let layout = shared.from.layout_of(raw);
        let mut record = Record::decode(raw, &layout)?;
        let Body::Sample(sample) = &mut record.body else {
            out.extend_from_slice(raw.bytes);
            return Ok(Outcome::NoRegisters);
        };
        let mask = layout.sample_regs_user;
        let user = UserStack::of_decoded(sample, mask, &mut self.buffers.registers);
        let registers = self.buffers.registers.len();
        let data = sample.stack_user.as_ref();
        let data = data.map_or(0, |stack| stack.data.0.len());
        let recorded: Vec<u64> = sample
            .callchain
            .iter()
            .flat_map(|words| words.iter().copied())
            .collect();
        let replaced = [1, recorded.len(), 1, registers, 2, data / WORD];
        let replaced = replaced
            .into_iter()
            .fold(0, usize::saturating_add)
            .saturating_mul(WORD);
        let others = raw.bytes.len().saturating_sub(replaced);
        let words = recorded.iter().copied();
        let (kept, outcome) = self.chain(words.clone(), others, user, job);
        let words: Vec<u64> = words
            .take(kept)
            .chain(self.buffers.frames.iter().copied())
            .collect();
        sample.callchain = Some(words.into());
        write(&record, raw, &shared.to, out)?;
        Ok(outcome)
    }

    /// Puts the words that follow the recorded ones into the buffer of frames. Returns the number
    /// of recorded words that are kept, and what was done.
    fn chain(
        &mut self,
        recorded: impl Iterator<Item = u64> + Clone,
        others: usize,
        user: UserStack<'_>,
        job: &Job,
    ) -> (usize, Outcome) {
        let shared = self.shared;
        let Buffers { registers, frames } = &mut *self.buffers;
        frames.clear();
        let len = recorded.clone().count();
        let task = match user.task(shared.registers, registers) {
            Ok(task) => task,
            Err(outcome) => return (len, outcome),
        };
        // The words up to the marker of user frames, if the kernel has recorded some.
        let marker = recorded
            .clone()
            .position(|word| word == CallchainContext::USER.0);
        let kept = marker.unwrap_or(len);
        let room = MAX_SIZE.saturating_sub(others) / WORD;
        let room = room.saturating_sub(kept.saturating_add(2));
        let most = match shared.limit {
            Limit::Words(words) => words.saturating_sub(kept.saturating_add(1)),
            Limit::Frames(frames) => usize::try_from(frames).unwrap_or(usize::MAX),
        };
        let most = most.min(room);
        if most == 0 {
            return (len, Outcome::Full);
        }
        let maps = ProcessMaps::new(job.space.as_ref(), &shared.ids);
        frames.push(CallchainContext::USER.0);
        let end = self
            .unwinder
            .unwind(&task, &maps, &shared.objects, most, frames);
        if frames.len() == 1 {
            frames.clear();
            return (len, Outcome::Unwound(end));
        }
        (kept, Outcome::Unwound(end))
    }
}

/// Appends a sample without user registers and user stack to `out`.
///
/// # Errors
/// The sample is corrupt.
pub(super) fn without_stack(
    raw: &RawRecord<'_>,
    from: &Events,
    to: &Events,
    out: &mut Vec<u8>,
) -> Result<()> {
    let parts = from.sample_view(raw).and_then(|view| view.user_parts());
    let Some(parts) = parts else {
        let record = Record::decode(raw, &from.layout_of(raw))?;
        return write(&record, raw, to, out);
    };
    let start = out.len();
    let bytes = |range: Range<usize>| raw.bytes.get(range).unwrap_or_default();
    out.extend_from_slice(bytes(0..parts.regs.start));
    out.extend_from_slice(bytes(parts.stack.end..raw.bytes.len()));
    put_size(out.get_mut(start..).unwrap_or_default(), raw.endian);
    Ok(())
}

/// Appends a decoded sample to `out`, with the parts that its event has in `to`.
fn write(record: &Record, raw: &RawRecord<'_>, to: &Events, out: &mut Vec<u8>) -> Result<()> {
    let event = to.of_record(raw).unwrap_or(0);
    let mut record = record.clone();
    if let (Body::Sample(sample), Some(event)) = (&mut record.body, to.get(event)) {
        sample.keep_parts(event.attr.sample_type);
    }
    let bytes = record
        .encode_for(to, raw.endian)
        .map_err(|error| error.within(raw.offset))?;
    out.extend_from_slice(&bytes);
    Ok(())
}

/// Sets the size of a record to that of its bytes.
fn put_size(record: &mut [u8], endian: Endian) {
    let size = u16::try_from(record.len()).unwrap_or(u16::MAX);
    RecordHeader::put_size(record, size, endian);
}

fn put(out: &mut Vec<u8>, word: u64, endian: Endian) {
    out.extend_from_slice(&match endian {
        Endian::Little => word.to_le_bytes(),
        Endian::Big => word.to_be_bytes(),
    });
}
