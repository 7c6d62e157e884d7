//! The packets of a buffer, one after the other.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "places in the bytes in memory"
)]

use crate::error::BadPacket;
use crate::packet::{BlockItemSize, Packet};

/// The bytes of a PSB packet.
pub(crate) const PSB: [u8; 16] = [
    0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
];

/// Returns the position of the first PSB packet.
pub fn find_psb(bytes: &[u8]) -> Option<usize> {
    // A PSB packet contains one of two words at a multiple of 8 bytes.
    let words = bytes.chunks_exact(8).enumerate();
    let candidates = words.filter(|(_, word)| *word == &PSB[..8] || *word == &PSB[1..9]);
    for (number, _) in candidates {
        let start = (8 * number).saturating_sub(8);
        let near = bytes.get(start..(start + 32).min(bytes.len()))?;
        if let Some(at) = near.windows(PSB.len()).position(|packet| packet == PSB) {
            return Some(start + at);
        }
    }
    None
}

/// A packet of a stream, or a byte that is not the start of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketAt {
    /// Offset in the stream.
    pub offset: u64,
    /// Size in bytes; 1 for an error.
    pub size: usize,
    /// The packet.
    pub packet: Result<Packet, BadPacket>,
}

/// The packets of a buffer. After bytes that are no packet, it continues at the next byte, as
/// `perf script -D` does.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    rest: &'a [u8],
    offset: u64,
    block: Option<BlockItemSize>,
}

impl<'a> Packets<'a> {
    /// Returns the packets of `bytes`, which begin at `offset` in the stream.
    pub fn new(bytes: &'a [u8], offset: u64) -> Self {
        Packets::after(None, bytes, offset)
    }

    /// Returns the packets of `bytes`, which continue other bytes with [`block`](Self::block).
    pub fn after(block: Option<BlockItemSize>, bytes: &'a [u8], offset: u64) -> Self {
        Packets {
            rest: bytes,
            offset,
            block,
        }
    }

    /// Returns the size of the items of the open block.
    pub fn block(&self) -> Option<BlockItemSize> {
        self.block
    }

    /// Returns the bytes that are not yet decoded.
    pub fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the offset of the next packet in the stream.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Skips bytes up to the next PSB packet, or to the end. Returns whether there is one.
    pub fn resynchronize(&mut self) -> bool {
        let found = find_psb(self.rest);
        self.skip(found.unwrap_or(self.rest.len()));
        self.block = None;
        found.is_some()
    }

    fn skip(&mut self, size: usize) {
        self.rest = self.rest.get(size..).unwrap_or_default();
        self.offset = self.offset.wrapping_add(size as u64);
    }

    /// Decodes the next packet. With `may_continue`, an incomplete packet at the end remains
    /// undecoded; otherwise, its bytes are errors.
    pub fn decode(&mut self, may_continue: bool) -> Option<PacketAt> {
        if self.rest.is_empty() {
            return None;
        }
        let packet = Packet::first(self.rest, self.block);
        let size = match &packet {
            Ok(packet) => {
                self.block = packet.block_after(self.block);
                packet.size()
            }
            Err(BadPacket::Truncated) if may_continue => return None,
            Err(_) => 1,
        };
        let offset = self.offset;
        self.skip(size);
        Some(PacketAt {
            offset,
            size,
            packet,
        })
    }
}

impl Iterator for Packets<'_> {
    type Item = PacketAt;

    fn next(&mut self) -> Option<Self::Item> {
        self.decode(false)
    }
}
