//! Cycle counts of any length.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "shifts by fewer than 64 bits, and sizes up to 10 bytes"
)]

use std::fmt;

use crate::error::BadPacket;

/// A number of cycles since the last CYC packet, in as many bytes as it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cyc {
    /// Number of cycles. Bits above the lowest 64 are lost.
    pub cycles: u64,
    /// Size of the packet in bytes, 1 to 10.
    size: u8,
}

impl Cyc {
    /// Largest size in bytes.
    const MAX_SIZE: u8 = 10;

    /// Returns the shortest packet.
    pub fn new(cycles: u64) -> Self {
        let mut size = 1;
        let mut rest = cycles >> 5;
        while rest != 0 {
            rest >>= 7;
            size += 1;
        }
        Cyc { cycles, size }
    }

    /// Returns the size of the packet in bytes.
    pub(crate) fn size(self) -> usize {
        self.size.into()
    }

    /// Decodes the packet at the start of `bytes`: bits 3 to 7 of the first byte, then bits 1 to 7
    /// of the others. Bit 2 or 0 says whether another byte follows.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BadPacket> {
        let (&first, rest) = bytes.split_first().ok_or(BadPacket::Truncated)?;
        let mut cyc = Cyc {
            cycles: u64::from(first >> 3),
            size: 1,
        };
        let mut continues = first & 4 != 0;
        let mut rest = rest.iter();
        while continues {
            if cyc.size == Cyc::MAX_SIZE {
                return Err(BadPacket::Unknown);
            }
            let &byte = rest.next().ok_or(BadPacket::Truncated)?;
            cyc.cycles |= u64::from(byte >> 1) << (7 * u32::from(cyc.size) - 2);
            cyc.size += 1;
            continues = byte & 1 != 0;
        }
        Ok(cyc)
    }

    /// Passes the fields to `visit`.
    pub(crate) fn fields(self, visit: &mut dyn FnMut(&'static str, u64, u32)) {
        visit("cycles", self.cycles, 64);
    }

    /// Appends the packet.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let more = |at: u8| u8::from(at + 1 < self.size);
        out.push((self.cycles as u8 & 0x1f) << 3 | more(0) << 2 | 3);
        for at in 1..self.size {
            let bits = self.cycles >> (7 * u32::from(at) - 2);
            out.push((bits as u8) << 1 | more(at));
        }
    }
}

/// The number in hexadecimal digits.
impl fmt::Display for Cyc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.cycles)
    }
}
