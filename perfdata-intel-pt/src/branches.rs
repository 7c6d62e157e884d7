//! Conditional branches, in packets of 1 or 8 bytes.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "shifts by fewer than 64 bits"
)]

use std::fmt;

use crate::bits;
use crate::error::BadPacket;

/// Conditional branches and compressed returns: taken or not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tnt {
    /// A bit for each branch, 1 if it is taken. The last one is bit 0; above the first one is a
    /// bit that is 1, the stop bit. Only a corrupt packet of 8 bytes has none.
    payload: u64,
    is_long: bool,
}

impl Tnt {
    /// Maximum number of branches in a packet of one byte.
    pub const SHORT: u32 = 6;

    /// Maximum number of branches in a packet of 8 bytes.
    pub const LONG: u32 = 47;

    /// The first bytes of a packet of 8 bytes.
    const HEADER: [u8; 2] = [0x02, 0xa3];

    /// Returns a packet with these branches, the first one first; `None` if there are none, or more
    /// than [`LONG`](Self::LONG). It has one byte if that is enough.
    pub fn new(branches: &[bool]) -> Option<Self> {
        let count = u32::try_from(branches.len()).ok()?;
        let add = |payload: u64, &taken: &bool| payload << 1 | u64::from(taken);
        (1..=Tnt::LONG).contains(&count).then(|| Tnt {
            payload: branches.iter().fold(1, add),
            is_long: count > Tnt::SHORT,
        })
    }

    /// Returns the number of branches.
    #[inline]
    pub fn count(&self) -> u32 {
        self.payload.checked_ilog2().unwrap_or(0)
    }

    /// Returns the branches, a bit for each, 1 if it is taken. The last one is bit 0.
    #[inline]
    pub fn bits(&self) -> u64 {
        self.payload & !(1 << self.count())
    }

    /// Returns whether each branch is taken, the first one first.
    pub fn branches(&self) -> impl Iterator<Item = bool> {
        let bits = self.payload;
        (0..self.count()).rev().map(move |at| bits >> at & 1 == 1)
    }

    /// Returns the packet of one byte, if this is one.
    #[inline]
    pub(crate) fn short(first: u8) -> Option<Self> {
        (first & 1 == 0 && first > 2).then_some(Tnt {
            payload: u64::from(first >> 1),
            is_long: false,
        })
    }

    /// Decodes the packet of 8 bytes at the start of `bytes`, if this is one.
    pub(crate) fn long(bytes: &[u8]) -> Option<Result<Self, BadPacket>> {
        bytes
            .starts_with(&Tnt::HEADER)
            .then(|| match bytes.first_chunk() {
                Some(whole) => Ok(Tnt {
                    payload: bits::bits(u64::from_le_bytes(*whole).into(), 16, 64),
                    is_long: true,
                }),
                None => Err(BadPacket::Truncated),
            })
    }

    /// Returns the size of the packet in bytes.
    pub(crate) fn size(self) -> usize {
        if self.is_long { 8 } else { 1 }
    }

    /// Appends the packet.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        if self.is_long {
            out.extend(Tnt::HEADER);
            out.extend(self.payload.to_le_bytes().iter().take(6));
        } else {
            out.push((self.payload << 1) as u8);
        }
    }

    /// Passes the fields to `visit`.
    pub(crate) fn fields(self, visit: &mut dyn FnMut(&'static str, u64, u32)) {
        visit("count", self.count().into(), 6);
        visit("bits", self.bits(), 47);
    }
}

/// A letter for each branch, `T` or `N`, and their number.
impl fmt::Display for Tnt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.branches()
            .try_for_each(|taken| f.write_str(if taken { "T" } else { "N" }))?;
        write!(f, " ({})", self.count())
    }
}
