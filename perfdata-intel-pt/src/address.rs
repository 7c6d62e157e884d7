//! Compressed addresses, in packets TIP, TIP.PGE, TIP.PGD and FUP.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "shifts by constants, and sizes up to 9 bytes"
)]

use std::fmt;

use crate::error::BadPacket;

/// The address of a packet as the packet contains it: the bytes in which it differs from the
/// address in the packet before ("last IP"), or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompressedIp {
    /// There is no address: it is outside of what is traced.
    Suppressed,
    /// Bits 0 to 15.
    Low16(u16),
    /// Bits 0 to 31.
    Low32(u32),
    /// Bits 0 to 47; those above are equal to bit 47.
    SignExtended(u64),
    /// Bits 0 to 47.
    Low48(u64),
    /// The whole address.
    Full(u64),
}

/// Bits 0 to 47.
const LOW_48: u64 = (1 << 48) - 1;

impl CompressedIp {
    /// Returns the shortest form of an address after `last`, the address before. A form of 6 bytes
    /// is sign-extended.
    pub fn after(last: u64, ip: u64) -> Self {
        let is_canonical = (ip << 16) as i64 >> 16 == ip as i64;
        let changed = ip ^ last;
        if changed <= 0xffff {
            CompressedIp::Low16(ip as u16)
        } else if changed <= 0xffff_ffff {
            CompressedIp::Low32(ip as u32)
        } else if is_canonical {
            CompressedIp::SignExtended(ip & LOW_48)
        } else if changed <= LOW_48 {
            CompressedIp::Low48(ip & LOW_48)
        } else {
            CompressedIp::Full(ip)
        }
    }

    /// Returns the address, where `last` is the address before; `None` if there is none, and `last`
    /// remains what it is.
    pub fn resolve(self, last: u64) -> Option<u64> {
        Some(match self {
            CompressedIp::Suppressed => return None,
            CompressedIp::Low16(low) => last & !0xffff | u64::from(low),
            CompressedIp::Low32(low) => last & !0xffff_ffff | u64::from(low),
            CompressedIp::SignExtended(low) => ((low << 16) as i64 >> 16) as u64,
            CompressedIp::Low48(low) => last & !LOW_48 | low & LOW_48,
            CompressedIp::Full(ip) => ip,
        })
    }

    /// Returns the bytes of the address that the packet contains, as a number.
    pub fn payload(self) -> u64 {
        match self {
            CompressedIp::Suppressed => 0,
            CompressedIp::Low16(low) => low.into(),
            CompressedIp::Low32(low) => low.into(),
            CompressedIp::SignExtended(low) | CompressedIp::Low48(low) => low & LOW_48,
            CompressedIp::Full(ip) => ip,
        }
    }

    /// Returns the field IPBytes, and the number of bytes.
    fn form(self) -> (u8, usize) {
        match self {
            CompressedIp::Suppressed => (0, 0),
            CompressedIp::Low16(_) => (1, 2),
            CompressedIp::Low32(_) => (2, 4),
            CompressedIp::SignExtended(_) => (3, 6),
            CompressedIp::Low48(_) => (4, 6),
            CompressedIp::Full(_) => (6, 8),
        }
    }

    /// Returns the number of bytes of the address that the packet contains.
    pub(crate) fn payload_size(self) -> usize {
        self.form().1
    }

    /// Returns the size of a packet in bytes.
    pub(crate) fn size(self) -> usize {
        1 + self.form().1
    }

    /// Decodes the address of the packet at the start of `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BadPacket> {
        let (&header, rest) = bytes.split_first().ok_or(BadPacket::Truncated)?;
        let low = |size: usize| {
            let mut word = [0; 8];
            let found = rest.get(..size).ok_or(BadPacket::Truncated)?;
            word.iter_mut()
                .zip(found)
                .for_each(|(to, from)| *to = *from);
            Ok(u64::from_le_bytes(word))
        };
        Ok(match header >> 5 {
            0 => CompressedIp::Suppressed,
            1 => CompressedIp::Low16(low(2)? as u16),
            2 => CompressedIp::Low32(low(4)? as u32),
            3 => CompressedIp::SignExtended(low(6)?),
            4 => CompressedIp::Low48(low(6)?),
            6 => CompressedIp::Full(low(8)?),
            _ => return Err(BadPacket::Unknown),
        })
    }

    /// Appends the packet whose header has these low bits.
    pub(crate) fn write(self, header: u8, out: &mut Vec<u8>) {
        let (form, size) = self.form();
        out.push(form << 5 | header);
        out.extend(self.payload().to_le_bytes().iter().take(size));
    }
}

/// The bytes of the packet, as `perf script -D` prints them.
impl fmt::Display for CompressedIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompressedIp::Suppressed => f.write_str("no ip"),
            other => write!(f, "{:#x}", other.payload()),
        }
    }
}
