//! A look at the parts of a SAMPLE that say where it was taken, without decoding the rest.
//!
//! Up to the callchain every part is one word, but for the read value, whose length its counts tell. So the places of
//! these parts follow from the attribute, and are computed once for each event.

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
        }
    }

    /// The parts of `sample`, as far as it has them.
    #[inline]
    pub fn look<'a>(&self, sample: &RawRecord<'a>) -> Glimpse<'a> {
        Glimpse {
            ip: self.ip.and_then(|at| sample.word(at)),
            tid: self.tid.and_then(|at| sample.tid(at)),
            time: self.time.and_then(|at| sample.word(at)),
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
