//! The least of zstd (RFC 8878) that makes a valid stream: raw blocks.

/// Packs data into one frame without an end mark, as perf does: it flushes after every record and
/// never ends the frame, so only the first record starts with the magic.
#[derive(Debug, Default)]
pub struct Stream {
    started: bool,
}

/// The most that a raw block can carry.
const BLOCK: usize = 128 << 10;

impl Stream {
    /// The bytes that decode to `data`, given what was packed before.
    pub fn pack(&mut self, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.started {
            self.started = true;
            out.extend(0xfd2f_b528u32.to_le_bytes());
            // No content size, no checksum, no dictionary; a window of 1 << (10 + 8) bytes.
            out.extend([0, 8 << 3]);
        }
        for chunk in data.chunks(BLOCK) {
            // Not the last block (bit 0), type raw (bits 1 and 2), size (21 bits).
            let header = (chunk.len() as u32) << 3;
            out.extend(&header.to_le_bytes()[..3]);
            out.extend(chunk);
        }
        out
    }
}
