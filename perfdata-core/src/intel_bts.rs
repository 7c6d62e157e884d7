//! The trace of the Intel Branch Trace Store (BTS): the AUX data of an event of the PMU `intel_bts`
//! (tools/perf/util/intel-bts.c, Linux 7.1; Intel SDM, volume 3, chapter "Debug, Branch Profile,
//! TSC, and Intel Resource Director Technology Features", "BTS and DS Save Area").
//!
//! The processor writes a record of 24 bytes for each taken branch, interrupt and exception. All
//! numbers are little-endian.

use std::fmt;

/// A branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BtsRecord {
    /// Address of the instruction that branches; 0 if tracing starts at `to`.
    pub from: u64,
    /// Address to which it branches; 0 if tracing ends at `from`.
    pub to: u64,
    /// Flags.
    pub flags: u64,
}

impl BtsRecord {
    /// Size in bytes.
    pub const SIZE: usize = 24;

    /// The bit of [`flags`](Self::flags) of a branch that was predicted.
    pub const PREDICTED: u64 = 1 << 4;

    /// Decodes the record at the start of `bytes`; `None` if it is incomplete.
    pub fn first(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = bytes.get(at..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        Some(BtsRecord {
            from: word(0)?,
            to: word(8)?,
            flags: word(16)?,
        })
    }

    /// Returns the bytes of the record.
    pub fn bytes(&self) -> Vec<u8> {
        let words = [self.from, self.to, self.flags];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Returns whether the branch was predicted.
    pub fn is_predicted(&self) -> bool {
        self.flags & BtsRecord::PREDICTED != 0
    }
}

/// The text of `perf script -D`.
impl fmt::Display for BtsRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prediction = if self.is_predicted() { "pred" } else { "miss" };
        write!(f, "{:x} -> {:x} {prediction}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_bytes() {
        let record = BtsRecord {
            from: 0x40_1000,
            to: 0xffff_8000_0000_0010,
            flags: BtsRecord::PREDICTED,
        };
        let bytes = [
            0x00, 0x10, 0x40, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0x80, 0xff, 0xff, 0x10, 0, 0, 0, 0,
            0, 0, 0,
        ];
        assert_eq!(record.bytes(), bytes);
        assert_eq!(BtsRecord::first(&bytes), Some(record));
        assert_eq!(BtsRecord::first(&bytes[..23]), None);
        assert_eq!(record.to_string(), "401000 -> ffff800000000010 pred");
        let missed = BtsRecord { flags: 0, ..record };
        assert_eq!(missed.to_string(), "401000 -> ffff800000000010 miss");
    }
}
