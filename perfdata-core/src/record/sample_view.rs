//! Reads single parts of a SAMPLE without decoding the rest.
//!
//! Up to the callchain every part is one word, except the read value, whose length follows from its
//! counts. The offsets of these parts therefore follow from the attribute, and are computed once
//! for each event. Most samples contain nothing else, and can be converted to the other byte order
//! word by word.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "a few words, or places that were found in the record"
)]

use std::ops::Range;

use binrw::Endian;

use crate::attr::{ReadFormat, SampleType};
use crate::content::Rewriter;
use crate::decode_context::{BranchForm, DecodeContext};
use crate::record::{
    BranchEntry, BranchFlags, EventIds, RawRecord, RecordHeader, RecordType, RegsAbi, Sample, Tid,
};
use crate::recording::Events;

/// The parts before READ in the order of a SAMPLE, one word each.
const WORDS: [SampleType; Sample::WORDS.len()] = Sample::WORDS;

/// Bytes of a word.
const WORD: usize = 8;

/// Offsets of the parts of a SAMPLE of one event, in bytes from the start of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleOffsets {
    /// The parts of one word each, as in `WORDS`; 0 for absent parts.
    words: [u8; WORDS.len()],
    /// The offset after the parts of one word each, and the format of the read value there.
    behind: usize,
    read: Option<ReadFormat>,
    has_callchain: bool,
    has_raw: bool,
    /// Additional words of a branch stack, if there is one and only counted parts precede it.
    branches: Option<BranchForm>,
    /// Number of user registers, if there are any and only parts of known sizes precede them, and
    /// whether the user stack follows them.
    user_regs: Option<usize>,
    has_user_stack: bool,
    /// Words that are pairs, one bit each, and whether there are only words and counted parts.
    pairs: u32,
    is_plain: bool,
}

impl SampleOffsets {
    /// Returns the offsets in samples with `layout`.
    pub fn of(layout: &DecodeContext) -> Self {
        let parts = layout.placed_parts();
        let mut behind = RecordHeader::SIZE;
        let words = WORDS.map(|part| {
            let at = if parts.has(part) { behind } else { 0 };
            behind += if parts.has(part) { WORD } else { 0 };
            u8::try_from(at).unwrap_or(0)
        });
        let pairs = WORDS
            .iter()
            .zip(words)
            .filter(|(part, at)| Sample::PAIRS.has(**part) && *at > 0);
        SampleOffsets {
            words,
            behind,
            read: parts.has(SampleType::READ).then_some(layout.read_format),
            has_callchain: parts.has(SampleType::CALLCHAIN),
            has_raw: parts.has(SampleType::RAW),
            branches: parts
                .has(SampleType::BRANCH_STACK)
                .then_some(layout.branch_form),
            user_regs: parts
                .has(SampleType::REGS_USER)
                .then(|| usize::try_from(layout.sample_regs_user.count_ones()).unwrap_or(0)),
            has_user_stack: parts.has(SampleType::STACK_USER),
            pairs: pairs.fold(0, |all, (_, at)| all | 1 << (usize::from(at) / WORD - 1)),
            // Parts after those whose position is certain have no known offset.
            is_plain: parts == layout.sample_type
                && WORDS
                    .iter()
                    .chain(&Sample::COUNTED)
                    .fold(parts.0, |rest, part| rest & !part.0)
                    == 0,
        }
    }

    /// Appends `sample` in the other byte order to `out`: the same bytes as decoding it and
    /// encoding it in the other byte order. Returns false and appends nothing if this requires
    /// decoding: if there are parts other than words, counted words and RAW data, or the counts do
    /// not match the size.
    pub fn swap_into(&self, sample: &RawRecord<'_>, out: &mut Vec<u8>) -> bool {
        let Some(words) = self.words_end(sample) else {
            return false;
        };
        let start = out.len();
        out.extend_from_slice(sample.bytes);
        let copy = out.get_mut(start..).unwrap_or_default();
        let (header, rest) = copy
            .split_at_mut_checked(RecordHeader::SIZE)
            .unwrap_or_default();
        let (words, raw) = rest
            .split_at_mut_checked(words - RecordHeader::SIZE)
            .unwrap_or_default();
        for number in [0..4, 4..6, 6..8] {
            header.get_mut(number).unwrap_or_default().reverse();
        }
        for word in words.as_chunks_mut::<WORD>().0 {
            *word = u64::from_ne_bytes(*word).swap_bytes().to_ne_bytes();
        }
        let words = words.as_chunks_mut::<WORD>().0;
        let mut pairs = self.pairs;
        while pairs != 0 {
            let at = usize::try_from(pairs.trailing_zeros()).unwrap_or(usize::MAX);
            if let Some(word) = words.get_mut(at) {
                *word = u64::from_ne_bytes(*word).rotate_left(32).to_ne_bytes();
            }
            pairs &= pairs - 1;
        }
        raw.get_mut(..4).unwrap_or_default().reverse();
        true
    }

    /// Appends `sample` to `out` with only those of its parts that are in `parts`, and with at most
    /// `words` words of its callchain: the same bytes as decoding it, removing the rest and encoding
    /// it. Returns false and appends nothing if this requires decoding; see
    /// [`swap_into`](Self::swap_into).
    pub fn keep_into(
        &self,
        sample: &RawRecord<'_>,
        parts: SampleType,
        words: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let (Some(end), Some(read)) = (self.words_end(sample), self.read_len(sample)) else {
            return false;
        };
        let start = out.len();
        let bytes = |from: usize, len: usize| {
            let rest = sample.bytes.get(from..).unwrap_or_default();
            rest.get(..len).unwrap_or(rest)
        };
        out.extend_from_slice(bytes(0, RecordHeader::SIZE));
        for part in WORDS.into_iter().filter(|part| parts.has(*part)) {
            if let Some(at) = self.place(part) {
                out.extend_from_slice(bytes(at, WORD));
            }
        }
        if parts.has(SampleType::READ) {
            out.extend_from_slice(bytes(self.behind, read));
        }
        if self.has_callchain && parts.has(SampleType::CALLCHAIN) {
            let at = self.behind.saturating_add(read);
            let count = (end.saturating_sub(at) / WORD).saturating_sub(1).min(words);
            let number = count as u64;
            out.extend(if sample.endian == Endian::Little {
                number.to_le_bytes()
            } else {
                number.to_be_bytes()
            });
            let first = at.saturating_add(WORD);
            out.extend_from_slice(bytes(first, count.saturating_mul(WORD)));
        }
        if parts.has(SampleType::RAW) {
            out.extend_from_slice(bytes(end, usize::MAX));
        }
        let copy = out.get_mut(start..).unwrap_or_default();
        // It is not larger than the sample.
        let size = u16::try_from(copy.len()).unwrap_or(u16::MAX);
        RecordHeader::put_size(copy, size, sample.endian);
        true
    }

    /// Passes the fields of `sample`, a whole record, to `rewriter`, and the words of its callchain to
    /// `chain`, and writes the new ones in place: the same as decoding it, passing it to `rewriter`
    /// and encoding it. Returns false and changes nothing if this requires decoding: if there are
    /// parts other than words and a callchain, or the counts do not match the size.
    #[inline]
    pub fn rewrite<R: Rewriter>(
        &self,
        sample: &mut [u8],
        endian: Endian,
        rewriter: &mut R,
        chain: impl FnOnce(&mut R, &mut [[u8; WORD]]),
    ) -> bool {
        if !self.consists_of_numbers(sample, endian) {
            return false;
        }
        let (head, rest) = sample.split_at_mut_checked(self.behind).unwrap_or_default();
        Sample::rewrite_words(head, &self.words, endian, rewriter);
        if self.has_callchain {
            let words = rest.get_mut(WORD..).unwrap_or_default().as_chunks_mut().0;
            chain(rewriter, words);
        }
        true
    }

    /// Passes the fields of `sample` to `rewriter` as [`rewrite`](Self::rewrite) does, and ignores the
    /// new ones.
    #[inline]
    pub fn inspect<R: Rewriter>(
        &self,
        sample: &[u8],
        endian: Endian,
        rewriter: &mut R,
        chain: impl FnOnce(&mut R, &[[u8; WORD]]),
    ) -> bool {
        if !self.consists_of_numbers(sample, endian) {
            return false;
        }
        let (head, rest) = sample.split_at_checked(self.behind).unwrap_or_default();
        Sample::inspect_words(head, &self.words, endian, rewriter);
        if self.has_callchain {
            chain(rewriter, rest.get(WORD..).unwrap_or_default().as_chunks().0);
        }
        true
    }

    /// Returns whether `sample`, a whole record, consists of parts of one word each and a callchain.
    #[inline]
    fn consists_of_numbers(&self, sample: &[u8], endian: Endian) -> bool {
        let raw = RawRecord {
            offset: 0,
            kind: RecordType::SAMPLE,
            misc: 0,
            bytes: sample,
            endian,
        };
        self.read.is_none() && !self.has_raw && self.words_end(&raw).is_some()
    }

    /// Returns the end of the words of `sample` as an offset from its start, if only RAW data
    /// follows them.
    #[inline]
    fn words_end(&self, sample: &RawRecord<'_>) -> Option<usize> {
        if !self.is_plain {
            return None;
        }
        let mut end = self.behind.checked_add(self.read_len(sample)?)?;
        if self.has_callchain {
            let words = usize::try_from(sample.word(end)?).ok()?;
            end = words.checked_add(1)?.checked_mul(WORD)?.checked_add(end)?;
        }
        let len = sample.bytes.len();
        if !self.has_raw {
            return (end == len).then_some(end);
        }
        let size = *sample.bytes.get(end..)?.first_chunk()?;
        let size = if sample.endian == Endian::Little {
            u32::from_le_bytes(size)
        } else {
            u32::from_be_bytes(size)
        };
        (len.checked_sub(end + 4)? == usize::try_from(size).ok()?).then_some(end)
    }

    /// Returns a view of `sample`.
    #[inline]
    pub fn look<'a>(&'a self, sample: &RawRecord<'a>) -> SampleView<'a> {
        SampleView {
            sample: *sample,
            offsets: self,
        }
    }

    /// Returns the offset of a part of one word.
    #[inline]
    fn place(&self, part: SampleType) -> Option<usize> {
        let at = WORDS.iter().position(|&word| word == part)?;
        self.words
            .get(at)
            .map(|&at| usize::from(at))
            .filter(|&at| at > 0)
    }

    /// Returns the size of the read value in bytes.
    #[inline]
    fn read_len(&self, sample: &RawRecord<'_>) -> Option<usize> {
        let Some(format) = self.read else {
            return Some(0);
        };
        let (times, value) = read_words(format);
        let words = match format.has(ReadFormat::GROUP) {
            true => usize::try_from(sample.word(self.behind)?)
                .ok()?
                .checked_mul(value)?
                .checked_add(1 + times)?,
            false => value + times,
        };
        words.checked_mul(WORD)
    }

    /// Returns where the counters of the read value are.
    fn counters(&self, sample: &RawRecord<'_>) -> Option<CounterPlaces> {
        let format = self.read?;
        let (times, value) = read_words(format);
        // A group starts with the number of its counters. Otherwise, the times are between the
        // count and its ID.
        let (before, count, to_id) = match format.has(ReadFormat::GROUP) {
            true => (
                times + 1,
                usize::try_from(sample.word(self.behind)?).ok()?,
                1,
            ),
            false => (0, 1, times + 1),
        };
        Some(CounterPlaces {
            first: self.behind.checked_add(before * WORD)?,
            count,
            step: value * WORD,
            to_id: format.has(ReadFormat::ID).then_some(to_id * WORD),
        })
    }
}

/// Where the counters of a read value are, in bytes.
#[derive(Default)]
struct CounterPlaces {
    /// Offset of the first count.
    first: usize,
    count: usize,
    /// Distance between two counts.
    step: usize,
    /// Distance from a count to its event ID.
    to_id: Option<usize>,
}

/// Returns the number of words of the times in a read value, and of each value with its additional
/// words.
fn read_words(format: ReadFormat) -> (usize, usize) {
    let has = |flag: ReadFormat| usize::from(format.has(flag));
    let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
    (times, 1 + has(ReadFormat::ID) + has(ReadFormat::LOST))
}

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
        let bytes = self
            .callchain_bytes()
            .filter(|_| self.offsets.has_callchain)?;
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

    /// Returns the offsets of the callchain, the user registers and the user stack; `None` if one of
    /// them is absent, or the sample must be decoded to find them.
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
        let words = Words {
            words: entries.as_chunks::<WORD>().0,
            endian: sample.endian,
        };
        Some((0..count).map(move |number| {
            let mut entry = words.clone().skip(3 * number);
            let mut word = || entry.next().unwrap_or_default();
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

/// Words of a record, in order.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    words: &'a [[u8; WORD]],
    endian: Endian,
}

impl Words<'_> {
    #[inline]
    fn value(&self, word: [u8; WORD]) -> u64 {
        if self.endian == Endian::Little {
            u64::from_le_bytes(word)
        } else {
            u64::from_be_bytes(word)
        }
    }

    /// Returns the word with index `at`.
    #[inline]
    pub fn get(&self, at: usize) -> Option<u64> {
        self.words.get(at).map(|&word| self.value(word))
    }

    /// Returns the same words without the last `count`.
    #[must_use]
    pub fn without_last(&self, count: usize) -> Self {
        let kept = self.words.len().saturating_sub(count);
        Words {
            words: self.words.get(..kept).unwrap_or_default(),
            endian: self.endian,
        }
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let (&word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(self.value(word))
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<u64> {
        self.words = self.words.get(n..).unwrap_or_default();
        self.next()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.words.len(), Some(self.words.len()))
    }
}

impl DoubleEndedIterator for Words<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<u64> {
        let (&word, rest) = self.words.split_last()?;
        self.words = rest;
        Some(self.value(word))
    }
}

impl ExactSizeIterator for Words<'_> {}

/// Returns the two numbers of a word that is a pair, in order.
#[inline]
pub(super) fn halves(word: u64, endian: Endian) -> (u32, u32) {
    let (low, high) = (word as u32, (word >> 32) as u32);
    if endian == Endian::Little {
        (low, high)
    } else {
        (high, low)
    }
}

/// Returns the word of two numbers, in order.
#[inline]
pub(super) fn word_of((first, second): (u32, u32), endian: Endian) -> u64 {
    let (low, high) = match endian {
        Endian::Little => (first, second),
        Endian::Big => (second, first),
    };
    u64::from(high) << 32 | u64::from(low)
}
