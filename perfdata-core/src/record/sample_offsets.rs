//! Where the parts of a SAMPLE are that has not been decoded.
//!
//! Up to the callchain every part is one word, except the read value, whose length follows from its
//! counts. The offsets of these parts therefore follow from the attribute, and are computed once
//! for each event. Most samples contain nothing else, and can be converted to the other byte order
//! word by word.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "a few words, or places that were found in the record"
)]

use binrw::Endian;

use super::sample_view::SampleView;
use super::words::WORD;
use crate::attr::{ReadFormat, SampleType};
use crate::content::Rewriter;
use crate::decode_context::{BranchForm, DecodeContext};
use crate::record::{RawRecord, RecordHeader, RecordType, Sample};

/// The parts before READ in the order of a SAMPLE, one word each.
const WORDS: [SampleType; Sample::WORDS.len()] = Sample::WORDS;

/// Offsets of the parts of a SAMPLE of one event, in bytes from the start of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleOffsets {
    /// The parts of one word each, as in `WORDS`; 0 for absent parts.
    words: [u8; WORDS.len()],
    /// The offset after the parts of one word each, and the format of the read value there.
    pub(super) behind: usize,
    pub(super) read: Option<ReadFormat>,
    pub(super) has_callchain: bool,
    pub(super) has_raw: bool,
    /// Additional words of a branch stack, if there is one and only counted parts precede it.
    pub(super) branches: Option<BranchForm>,
    /// Number of user registers, if there are any and only parts of known sizes precede them, and
    /// whether the user stack follows them.
    pub(super) user_regs: Option<usize>,
    pub(super) has_user_stack: bool,
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
    /// `words` words of its callchain: the same bytes as decoding it, removing the rest and
    /// encoding it. Returns false and appends nothing if this requires decoding; see
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

    /// Passes the fields of `sample`, a whole record, to `rewriter`, and the words of its callchain
    /// to `chain`, and writes the new ones in place: the same as decoding it, passing it to
    /// `rewriter` and encoding it. Returns false and changes nothing if this requires decoding: if
    /// there are parts other than words and a callchain, or the counts do not match the size.
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

    /// Passes the fields of `sample` to `rewriter` as [`rewrite`](Self::rewrite) does, and ignores
    /// the new ones.
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

    /// Returns whether `sample`, a whole record, consists of parts of one word each and a
    /// callchain.
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
    pub(super) fn words_end(&self, sample: &RawRecord<'_>) -> Option<usize> {
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
        SampleView::new(*sample, self)
    }

    /// Returns the offset of a part of one word.
    #[inline]
    pub(super) fn place(&self, part: SampleType) -> Option<usize> {
        let at = WORDS.iter().position(|&word| word == part)?;
        self.words
            .get(at)
            .map(|&at| usize::from(at))
            .filter(|&at| at > 0)
    }

    /// Returns the size of the read value in bytes.
    #[inline]
    pub(super) fn read_len(&self, sample: &RawRecord<'_>) -> Option<usize> {
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
    pub(super) fn counters(&self, sample: &RawRecord<'_>) -> Option<CounterPlaces> {
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

impl SampleOffsets {
    /// Replaces each count in the read value of `sample`, a whole record, by the one that `count`
    /// returns for its event ID, if the value contains it, and the count.
    pub fn rewrite_counters(
        &self,
        sample: &mut [u8],
        endian: Endian,
        mut count: impl FnMut(Option<u64>, u64) -> u64,
    ) {
        fn record(bytes: &[u8], endian: Endian) -> RawRecord<'_> {
            RawRecord {
                offset: 0,
                kind: RecordType::SAMPLE,
                misc: 0,
                bytes,
                endian,
            }
        }
        let places = self.counters(&record(sample, endian)).unwrap_or_default();
        let mut at = places.first;
        for _ in 0..places.count {
            let id = places.to_id.and_then(|to_id| at.checked_add(to_id));
            let id = id.and_then(|at| record(sample, endian).word(at));
            let Some(value) = record(sample, endian).word(at) else {
                return;
            };
            let value = count(id, value);
            let bytes = match endian {
                Endian::Little => value.to_le_bytes(),
                Endian::Big => value.to_be_bytes(),
            };
            let end = at.saturating_add(WORD);
            if let Some(word) = sample.get_mut(at..end) {
                word.copy_from_slice(&bytes);
            }
            let Some(next) = at.checked_add(places.step) else {
                return;
            };
            at = next;
        }
    }
}

/// Where the counters of a read value are, in bytes.
#[derive(Default)]
pub(super) struct CounterPlaces {
    /// Offset of the first count.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Distance between two counts.
    pub(super) step: usize,
    /// Distance from a count to its event ID.
    pub(super) to_id: Option<usize>,
}

/// Returns the number of words of the times in a read value, and of each value with its additional
/// words.
fn read_words(format: ReadFormat) -> (usize, usize) {
    let has = |flag: ReadFormat| usize::from(format.has(flag));
    let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
    (times, 1 + has(ReadFormat::ID) + has(ReadFormat::LOST))
}
