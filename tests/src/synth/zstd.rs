//! A minimal subset of zstd (RFC 8878) that produces a valid stream: raw blocks.

/// Compresses data into one frame without an end, as perf does: it flushes after every record and
/// never ends the frame, so only the first record starts with the magic.
#[derive(Debug, Default)]
pub struct Stream {
    started: bool,
}

/// The maximum size of a raw block in bytes.
const BLOCK: usize = 128 << 10;

impl Stream {
    /// Returns the bytes that decode to `data`, after the data of previous calls.
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn zstd_decodes_what_was_packed() {
        let data: Vec<u8> = (0..BLOCK + 1000).map(|n| (n % 251) as u8).collect();
        let mut stream = Stream::default();
        let mut packed = stream.pack(b"first");
        packed.extend(stream.pack(&data));
        // The frame has no end: the decoder returns the data, then an error.
        let mut decoder = zstd::stream::read::Decoder::new(&packed[..]).expect("a frame");
        let mut decoded = vec![0; 5 + data.len()];
        decoder.read_exact(&mut decoded).expect("all data");
        assert!(decoded.starts_with(b"first") && decoded.ends_with(&data));
    }
}
