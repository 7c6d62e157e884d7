//! A look at the parts of a SAMPLE that say where it was taken, without decoding the rest.
//!
//! Up to the callchain every part is one word, but for the read value, whose length its counts tell. So the places of
//! these parts follow from the attribute, and are computed once for each event. Most samples have nothing else, and can
//! be put into the other byte order word by word.

#![allow(clippy::arithmetic_side_effects, reason = "a few words, or places that were found in the record")]

use binrw::Endian;

use crate::attr::{ReadFormat, SampleType};
use crate::layout::Layout;
use crate::record::{RawRecord, RecordHeader, Tid};

/// The parts before READ in the order of a SAMPLE, one word each.
pub(super) const WORDS: [SampleType; 9] = [
    SampleType::IDENTIFIER,
    SampleType::IP,
    SampleType::TID,
    SampleType::TIME,
    SampleType::ADDR,
    SampleType::ID,
    SampleType::STREAM_ID,
    SampleType::CPU,
    SampleType::PERIOD,
];

/// The parts of one word that are two numbers of 4 bytes.
const PAIRS: [SampleType; 2] = [SampleType::TID, SampleType::CPU];

/// The parts behind those of one word, in their order, that the other byte order of a SAMPLE can be told of by counts
/// alone.
const COUNTED: [SampleType; 3] = [SampleType::READ, SampleType::CALLCHAIN, SampleType::RAW];

/// Bytes of a word.
const WORD: usize = 8;

/// Where the parts of a SAMPLE of one event stand, in bytes from the start of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleOffsets {
    ip: Option<usize>,
    tid: Option<usize>,
    time: Option<usize>,
    /// The place behind the parts of one word each, and what makes the read value that stands there longer.
    behind: usize,
    read: Option<ReadFormat>,
    has_callchain: bool,
    has_raw: bool,
    /// Words that are pairs, a bit each, and whether there is nothing but words and counted parts.
    pairs: u32,
    is_plain: bool,
}

impl SampleOffsets {
    /// The offsets in samples with `layout`.
    pub fn of(layout: &Layout) -> Self {
        let parts = layout.placed_parts();
        let count = |words: &[SampleType]| words.iter().filter(|&&part| parts.has(part)).count();
        let place = |part: SampleType| {
            let before = WORDS.split(|&word| word == part).next().unwrap_or_default();
            parts.has(part).then(|| RecordHeader::SIZE + WORD * count(before))
        };
        SampleOffsets {
            ip: place(SampleType::IP),
            tid: place(SampleType::TID),
            time: place(SampleType::TIME),
            behind: RecordHeader::SIZE + WORD * count(&WORDS),
            read: parts.has(SampleType::READ).then_some(layout.read_format),
            has_callchain: parts.has(SampleType::CALLCHAIN),
            has_raw: parts.has(SampleType::RAW),
            pairs: PAIRS.iter().filter_map(|&part| place(part)).fold(0, |all, at| all | 1 << (at / WORD - 1)),
            // What is behind the parts that surely stand where they should has no place.
            is_plain: parts == layout.sample_type
                && WORDS.iter().chain(&COUNTED).fold(parts.0, |rest, part| rest & !part.0) == 0,
        }
    }

    /// Appends `sample` in the other byte order to `out`: the bytes that decoding it and encoding it in the other order
    /// gives. False, and nothing appended, where that takes decoding: parts of another kind than words, counted words
    /// and RAW data, or counts that do not make its size.
    pub fn swap_into(&self, sample: &RawRecord<'_>, out: &mut Vec<u8>) -> bool {
        let Some(words) = self.words_end(sample).filter(|_| self.is_plain) else { return false };
        let start = out.len();
        out.extend_from_slice(sample.bytes);
        let copy = out.get_mut(start..).unwrap_or_default();
        let (header, rest) = copy.split_at_mut_checked(RecordHeader::SIZE).unwrap_or_default();
        let (words, raw) = rest.split_at_mut_checked(words - RecordHeader::SIZE).unwrap_or_default();
        for number in [0..4, 4..6, 6..8] {
            header.get_mut(number).unwrap_or_default().reverse();
        }
        for word in words.as_chunks_mut::<WORD>().0 {
            *word = u64::from_ne_bytes(*word).swap_bytes().to_ne_bytes();
        }
        for (at, word) in words.as_chunks_mut::<WORD>().0.iter_mut().take(WORDS.len()).enumerate() {
            if self.pairs >> at & 1 == 1 {
                word.rotate_left(4);
            }
        }
        raw.get_mut(..4).unwrap_or_default().reverse();
        true
    }

    /// Where the words of `sample` end, counted from its start, if it ends there, or with RAW data behind them.
    #[inline]
    fn words_end(&self, sample: &RawRecord<'_>) -> Option<usize> {
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
        let size = if sample.endian == Endian::Little { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
        (len.checked_sub(end + 4)? == usize::try_from(size).ok()?).then_some(end)
    }

    /// The time of `sample`, if it has one.
    #[inline]
    pub fn time(&self, sample: &RawRecord<'_>) -> Option<u64> {
        sample.word(self.time?)
    }

    /// The parts of `sample`, as far as it has them.
    #[inline]
    pub fn look<'a>(&self, sample: &RawRecord<'a>) -> Glimpse<'a> {
        Glimpse {
            ip: self.ip.and_then(|at| sample.word(at)),
            tid: self.tid.and_then(|at| sample.tid(at)),
            time: self.time(sample),
            callchain: if self.has_callchain { self.callchain(sample) } else { &[] },
            endian: sample.endian,
        }
    }

    fn callchain<'a>(&self, sample: &RawRecord<'a>) -> &'a [u8] {
        let words = || {
            let at = self.behind.checked_add(self.read_len(sample)?)?;
            let len = usize::try_from(sample.word(at)?).ok()?.checked_mul(WORD)?;
            sample.bytes.get(at + WORD..)?.get(..len)
        };
        words().unwrap_or_default()
    }

    /// Bytes of the read value.
    fn read_len(&self, sample: &RawRecord<'_>) -> Option<usize> {
        let Some(format) = self.read else { return Some(0) };
        let has = |flag: ReadFormat| usize::from(format.has(flag));
        let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
        let value = 1 + has(ReadFormat::ID) + has(ReadFormat::LOST);
        let words = match format.has(ReadFormat::GROUP) {
            true => usize::try_from(sample.word(self.behind)?).ok()?.checked_mul(value)?.checked_add(1 + times)?,
            false => value + times,
        };
        words.checked_mul(WORD)
    }
}

/// What a glance at a SAMPLE gives.
#[derive(Debug, Clone)]
pub struct Glimpse<'a> {
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Process and thread.
    pub tid: Option<Tid>,
    /// Nanoseconds on the recording's clock.
    pub time: Option<u64>,
    callchain: &'a [u8],
    endian: Endian,
}

impl Glimpse<'_> {
    /// The words of the callchain, its markers included; none where there is no callchain.
    #[inline]
    pub fn callchain(&self) -> impl ExactSizeIterator<Item = u64> {
        let endian = self.endian;
        self.callchain.as_chunks::<WORD>().0.iter().map(move |&word| match endian {
            Endian::Little => u64::from_le_bytes(word),
            Endian::Big => u64::from_be_bytes(word),
        })
    }
}

impl RawRecord<'_> {
    /// Process and thread at `at` bytes from the start of the record.
    #[inline]
    fn tid(&self, at: usize) -> Option<Tid> {
        let &[a, b, c, d, e, f, g, h] = self.bytes.get(at..)?.first_chunk()?;
        let number = if self.endian == Endian::Little { u32::from_le_bytes } else { u32::from_be_bytes };
        Some(Tid { pid: number([a, b, c, d]), tid: number([e, f, g, h]) })
    }
}
