//! Why bytes are no packet.

use std::fmt;

/// Why the bytes at some place of a stream are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BadPacket {
    /// The bytes end before the packet does.
    Truncated,
    /// No packet begins with these bytes.
    Unknown,
}

impl fmt::Display for BadPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadPacket::Truncated => "the packet of Intel PT is incomplete",
            BadPacket::Unknown => "no packet of Intel PT begins with these bytes",
        })
    }
}

impl std::error::Error for BadPacket {}
