//! Reads single parts of a SAMPLE without decoding the rest.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "a few words, or places that were found in the record"
)]

use std::ops::Range;

use binrw::Endian;

use super::sample_offsets::{CounterPlaces, SampleOffsets};
use super::words::{WORD, Words, halves};
use crate::attr::SampleType;
use crate::record::{BranchEntry, BranchFlags, EventIds, RawRecord, RegsAbi, Tid};
use crate::recording::Events;

/// Where the parts of a SAMPLE are from which its user callchain is unwound, as offsets from the
/// start of the record, in bytes. See [`SampleView::user_parts`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserParts {
    /// CALLCHAIN: the number of words, and the words.
    pub callchain: Range<usize>,
    /// REGS_USER: the ABI, and the registers.
    pub regs: Range<usize>,
    /// STACK_USER: the size, the reserved space, and the number of copied bytes if the size is not
    /// 0.
    pub stack: Range<usize>,
}

/// A SAMPLE that is not decoded: each part is read in place on request. A part is `None` if the
/// event's attribute does not contain it, or the record ends before it.
#[derive(Debug, Clone, Copy)]
pub struct SampleView<'a> {
    sample: RawRecord<'a>,
    offsets: &'a SampleOffsets,
}

impl<'a> SampleView<'a> {
    /// Returns a view of a sample whose parts are at `offsets`.
    #[inline]
    pub(super) fn new(sample: RawRecord<'a>, offsets: &'a SampleOffsets) -> Self {
        SampleView { sample, offsets }
    }

    #[inline]
    fn word(&self, part: SampleType) -> Option<u64> {
        self.sample.word(self.offsets.place(part)?)
    }

    #[inline]
    fn pair(&self, part: SampleType) -> Option<(u32, u32)> {
        self.word(part).map(|word| halves(word, self.sample.endian))
    }

    /// Event ID at a fixed position.
    #[inline]
    pub fn identifier(&self) -> Option<u64> {
        self.word(SampleType::IDENTIFIER)
    }

    /// Instruction pointer.
    #[inline]
    pub fn ip(&self) -> Option<u64> {
        self.word(SampleType::IP)
    }

    /// Process and thread.
    #[inline]
    pub fn tid(&self) -> Option<Tid> {
        self.pair(SampleType::TID)
            .map(|(pid, tid)| Tid { pid, tid })
    }

    /// Nanoseconds on the recording's clock.
    #[inline]
    pub fn time(&self) -> Option<u64> {
        self.word(SampleType::TIME)
    }

    /// Data address.
    #[inline]
    pub fn addr(&self) -> Option<u64> {
        self.word(SampleType::ADDR)
    }

    /// Event ID.
    #[inline]
    pub fn id(&self) -> Option<u64> {
        self.word(SampleType::ID)
    }

    /// ID of the event's instance.
    #[inline]
    pub fn stream_id(&self) -> Option<u64> {
        self.word(SampleType::STREAM_ID)
    }

    /// CPU number.
    #[inline]
    pub fn cpu(&self) -> Option<u32> {
        self.pair(SampleType::CPU).map(|(cpu, _)| cpu)
    }

    /// Events since the last sample.
    #[inline]
    pub fn period(&self) -> Option<u64> {
        self.word(SampleType::PERIOD)
    }

    /// Returns the counts in the read value, each with its event ID if the value contains it.
    pub fn counters(&self) -> impl Iterator<Item = (Option<u64>, u64)> + use<'a> {
        let sample = self.sample;
        let CounterPlaces {
            first,
            count,
            step,
            to_id,
        } = self.offsets.counters(&sample).unwrap_or_default();
        (0..count).map_while(move |number| {
            let at = first.checked_add(number.checked_mul(step)?)?;
            let id = match to_id {
                None => None,
                Some(to_id) => Some(sample.word(at.checked_add(to_id)?)?),
            };
            Some((id, sample.word(at)?))
        })
    }

    /// Returns the event IDs in the read value.
    fn read_ids(&self) -> impl Iterator<Item = u64> + use<'a> {
        let sample = self.sample;
        let places = self.offsets.counters(&sample);
        let ids = places.and_then(|places| {
            let first = places.first.checked_add(places.to_id?)?;
            Some((first, places.count, places.step))
        });
        let (first, count, step) = ids.unwrap_or_default();
        (0..count)
            .map_while(move |number| sample.word(first.checked_add(number.checked_mul(step)?)?))
    }

    /// Returns the words of the callchain, including its markers; no words if there is no
    /// callchain.
    #[inline]
    pub fn callchain(&self) -> Words<'a> {
        self.callchain_part().unwrap_or(Words {
            words: &[],
            endian: self.sample.endian,
        })
    }

    /// Returns the words of the callchain, including its markers; `None` if there is no callchain,
    /// or the record ends in it.
    #[inline]
    pub fn callchain_part(&self) -> Option<Words<'a>> {
        if !self.offsets.has_callchain {
            return None;
        }
        let bytes = self.callchain_bytes()?;
        Some(Words {
            words: bytes.as_chunks::<WORD>().0,
            endian: self.sample.endian,
        })
    }

    #[inline]
    fn callchain_bytes(&self) -> Option<&'a [u8]> {
        let at = self.counted_at()?;
        if !self.offsets.has_callchain {
            return Some(&[]);
        }
        let len = usize::try_from(self.sample.word(at)?).ok()?;
        self.sample
            .bytes
            .get(at + WORD..)?
            .get(..len.checked_mul(WORD)?)
    }

    /// Returns the offset after the read value.
    #[inline]
    fn counted_at(&self) -> Option<usize> {
        self.offsets
            .behind
            .checked_add(self.offsets.read_len(&self.sample)?)
    }

    /// Returns the offsets of the RAW data without their size, and of what is after them. Both are
    /// the same if there are none.
    #[inline]
    fn raw_range(&self) -> Option<Range<usize>> {
        let (sample, offsets) = (self.sample, self.offsets);
        let mut at = self.counted_at()?;
        if offsets.has_callchain {
            at = at
                .checked_add(WORD)?
                .checked_add(self.callchain_bytes()?.len())?;
        }
        if !offsets.has_raw {
            return Some(at..at);
        }
        let size = *sample.bytes.get(at..)?.first_chunk()?;
        let size = if sample.endian == Endian::Little {
            u32::from_le_bytes(size)
        } else {
            u32::from_be_bytes(size)
        };
        let start = at.checked_add(4)?;
        Some(start..start.checked_add(usize::try_from(size).ok()?)?)
    }

    /// Returns the offset after the RAW data.
    fn raw_end(&self) -> Option<usize> {
        Some(self.raw_range()?.end)
    }

    /// Returns the bytes of RAW: for tracepoints the data that TRACING_DATA describes, in its byte
    /// order. `None` if the sample has none, or must be decoded to find them.
    #[inline]
    pub fn raw(&self) -> Option<&'a [u8]> {
        let range = self.offsets.has_raw.then(|| self.raw_range())??;
        self.sample.bytes.get(range)
    }

    /// Returns the offsets of the callchain, the user registers and the user stack; `None` if one
    /// of them is absent, or the sample must be decoded to find them.
    pub fn user_parts(&self) -> Option<UserParts> {
        let (sample, offsets) = (self.sample, self.offsets);
        if !offsets.has_callchain || !offsets.has_user_stack {
            return None;
        }
        let registers = offsets.user_regs?;
        let size = |at| usize::try_from(sample.word(at)?).ok();
        let callchain = self.counted_at()?;
        let callchain_end = callchain
            .checked_add(WORD)?
            .checked_add(self.callchain_bytes()?.len())?;
        let mut regs = self.raw_end()?;
        if let Some(form) = offsets.branches {
            let count = size(regs)?;
            if count == 0 && form.hw_idx {
                return None;
            }
            let each = if form.counters { 4 } else { 3 };
            let words = count
                .checked_mul(each)?
                .checked_add(1 + usize::from(form.hw_idx))?;
            regs = regs.checked_add(words.checked_mul(WORD)?)?;
        }
        let registers = match RegsAbi(sample.word(regs)?) {
            RegsAbi::NONE => 0,
            _ => registers,
        };
        let stack = regs.checked_add(registers.checked_add(1)?.checked_mul(WORD)?)?;
        let copied = stack.checked_add(WORD)?.checked_add(size(stack)?)?;
        let end = match size(stack)? {
            0 => copied,
            _ => copied.checked_add(WORD)?,
        };
        (end <= sample.bytes.len()).then_some(UserParts {
            callchain: callchain..callchain_end,
            regs: regs..stack,
            stack: stack..end,
        })
    }

    /// Returns the words in a range of offsets from the start of the record; no words if the record
    /// ends before its end.
    pub fn words_at(&self, range: Range<usize>) -> Words<'a> {
        Words {
            words: self
                .sample
                .bytes
                .get(range)
                .unwrap_or_default()
                .as_chunks::<WORD>()
                .0,
            endian: self.sample.endian,
        }
    }

    /// Returns the entries of the branch stack, newest first; `None` if there is no branch stack,
    /// or the record ends in it.
    pub fn branches(&self) -> Option<impl ExactSizeIterator<Item = BranchEntry> + Clone + use<'a>> {
        let (sample, offsets) = (self.sample, self.offsets);
        let at = self.raw_end()?;
        let branches = offsets.branches?;
        let count = usize::try_from(sample.word(at)?).ok()?;
        // A count of 0 may be the only word.
        let before = if branches.hw_idx && count > 0 {
            2 * WORD
        } else {
            WORD
        };
        let entries = sample
            .bytes
            .get(at.checked_add(before)?..)?
            .get(..count.checked_mul(3 * WORD)?)?;
        let (entries, _) = entries.as_chunks::<{ 3 * WORD }>();
        Some(entries.iter().map(move |entry| {
            let mut words = Words {
                words: entry.as_chunks().0,
                endian: sample.endian,
            };
            let mut word = || words.next().unwrap_or_default();
            BranchEntry {
                from: word(),
                to: word(),
                flags: BranchFlags::from_wire(word(), sample.endian),
            }
        }))
    }

    /// Returns whether the sample consists entirely of words, counted words and RAW data. Decoding
    /// and encoding does not change such a sample.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.offsets.words_end(&self.sample).is_some()
    }

    /// Returns which event IDs the sample contains: see
    /// [`Record::event_ids`](super::Record::event_ids).
    #[inline]
    pub fn event_ids(&self, events: &Events) -> EventIds {
        let mut found = EventIds::default();
        if events.have_ids() {
            if let Some(id) = self.identifier() {
                found.add(id, events);
            }
            if let Some(id) = self.id() {
                found.add(id, events);
            }
            if self.offsets.read.is_some() {
                self.read_ids().for_each(|id| found.add(id, events));
            }
        }
        found
    }
}
