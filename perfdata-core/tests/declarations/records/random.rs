//! Random bytes: a record is rejected or encoded as the same bytes, without a panic.
//!
//! `PERFCONV_RANDOM_RECORDS` is the number of records of each type to try.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use perfdata_core::attr::{ReadFormat, SampleType};
use perfdata_core::decode_context::BranchForm;
use perfdata_core::record::{RecordHeader, RecordType, TABLE};
use perfdata_core::{DecodeContext, Endian};

use crate::records::{check, values};

/// Number of records of each type if the environment does not set it.
const DEFAULT: u64 = 20_000;

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end.max(1)
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns a number that is likely to break counts and sizes.
    fn number(&mut self, len: usize) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << self.below(64),
            3 => u64::MAX >> self.below(64),
            4 => len as u64 / 8,
            5 => len as u64,
            6 => self.below(32) as u64,
            _ => self.next(),
        }
    }

    /// Returns some bits, often none or few.
    fn bits(&mut self) -> u64 {
        match self.below(3) {
            0 => 0,
            1 => self.next() & self.next() & self.next(),
            _ => self.next(),
        }
    }

    fn layout(&mut self) -> DecodeContext {
        let parts = if self.once_in(8) {
            u64::MAX
        } else {
            SampleType::KNOWN.0
        };
        let words = if self.once_in(8) {
            u64::MAX
        } else {
            ReadFormat::KNOWN.0
        };
        DecodeContext::default()
            .with_sample_type(SampleType(self.bits() & parts))
            .with_read_format(ReadFormat(self.bits() & words))
            .with_sample_regs_user(self.bits() & 0xff)
            .with_sample_regs_intr(self.bits() & 0xff)
            .with_sample_id_all(self.once_in(2))
            .with_branch_form(BranchForm {
                hw_idx: self.once_in(2),
                counters: self.once_in(2),
            })
    }

    /// Damages `bytes` after the header.
    fn mutate(&mut self, bytes: &mut Vec<u8>, endian: Endian) {
        for _ in 0..=self.below(3) {
            let len = bytes.len();
            let at = RecordHeader::SIZE + self.below(len.saturating_sub(RecordHeader::SIZE));
            match self.below(6) {
                0 => bytes.truncate(at.min(len)),
                1 => bytes.extend((0..self.below(24)).map(|_| self.next() as u8)),
                2 => bytes.resize(len + self.below(24), 0),
                3 if at < len => bytes[at] ^= 1 << self.below(8),
                _ => {
                    let width = 1 << self.below(4);
                    let number = self.number(len);
                    let digits = if endian == Endian::Little {
                        number.to_le_bytes()
                    } else {
                        number.to_be_bytes()
                    };
                    let digits = if endian == Endian::Little {
                        &digits[..width]
                    } else {
                        &digits[8 - width..]
                    };
                    // The offset of most counts is a multiple of their size.
                    let at = if self.once_in(4) {
                        at
                    } else {
                        at & !(width - 1)
                    };
                    if let Some(room) = bytes
                        .get_mut(at.max(RecordHeader::SIZE)..)
                        .and_then(|b| b.get_mut(..width))
                    {
                        room.copy_from_slice(digits);
                    }
                }
            }
        }
    }
}

fn set_header(bytes: &mut [u8], kind: RecordType, misc: u16, endian: Endian) {
    let size = u16::try_from(bytes.len()).expect("records here are short");
    let big = [
        &kind.0.to_be_bytes()[..],
        &misc.to_be_bytes(),
        &size.to_be_bytes(),
    ]
    .concat();
    let little = [
        &kind.0.to_le_bytes()[..],
        &misc.to_le_bytes(),
        &size.to_le_bytes(),
    ]
    .concat();
    bytes[..RecordHeader::SIZE].copy_from_slice(if endian == Endian::Little {
        &little
    } else {
        &big
    });
}

/// Tries `count` records of one type and returns how many were decoded.
fn try_type(kind: RecordType, count: u64) -> u64 {
    let seeds: Vec<_> = values::all()
        .into_iter()
        .filter(|case| case.record.kind == kind)
        .collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ u64::from(kind.0) << 32);
    let mut read = 0;
    let mut bytes = Vec::new();
    for _ in 0..count {
        let endian = if random.once_in(2) {
            Endian::Little
        } else {
            Endian::Big
        };
        let seed = seeds.get(random.below(seeds.len() + 1));
        let mut layout = random.layout();
        let mut misc = random.next() as u16;
        bytes.clear();
        match seed {
            Some(seed) => {
                bytes.extend_from_slice(seed.bytes(endian));
                if !random.once_in(8) {
                    (layout, misc) = (seed.layout, seed.record.misc);
                }
                random.mutate(&mut bytes, endian);
            }
            None => {
                let len = random.below(160);
                let dense = random.once_in(2);
                bytes.resize(RecordHeader::SIZE, 0);
                bytes.extend((0..len).map(|_| {
                    if dense || random.once_in(6) {
                        random.next() as u8
                    } else {
                        0
                    }
                }));
            }
        }
        set_header(&mut bytes, kind, misc, endian);
        let result = catch_unwind(AssertUnwindSafe(|| check::record(&bytes, endian, &layout)));
        read += u64::from(
            result
                .unwrap_or_else(|panic| {
                    eprintln!("{endian:?}, {layout:?}: {bytes:02x?}");
                    resume_unwind(panic)
                })
                .is_ok(),
        );
    }
    read
}

#[test]
fn random_records_are_refused_or_kept() {
    let count = match std::env::var("PERFCONV_RANDOM_RECORDS") {
        Ok(count) => count.parse().expect("PERFCONV_RANDOM_RECORDS is a number"),
        Err(_) => DEFAULT,
    };
    let unknown = [RecordType(40), RecordType(99)];
    for kind in TABLE.iter().map(|info| info.kind).chain(unknown) {
        let read = try_type(kind, count);
        println!("{kind}: {read} of {count} read");
        assert!(
            read > count / 20,
            "{kind}: {read} of {count} are too few to prove anything"
        );
    }
    let load =
        |number: &std::sync::atomic::AtomicU64| number.load(std::sync::atomic::Ordering::Relaxed);
    let fixed = load(&check::FIXED);
    let samples = load(&check::SWAPPED).saturating_sub(fixed);
    assert!(
        samples > count / 20 && fixed > count / 20,
        "{samples} samples and {fixed} other records swapped without decoding are too few to prove anything"
    );
}
