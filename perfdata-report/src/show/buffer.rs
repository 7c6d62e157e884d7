//! A text of many small pieces: fixed ones, digits, and others.

use perfdata_convert::support::digits::{self, ROOM};

/// Bytes of a fixed piece that are copied at a time.
const CHUNK: usize = 16;

/// A text that is written piece by piece. The bytes after it already exist, so that a piece is
/// copied in units of a fixed size, which is faster than copying it exactly.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    /// Length of the text, at most that of `bytes`.
    len: usize,
    /// The memory for texts of any length.
    spare: Vec<u8>,
}

/// A piece that is written many times.
#[derive(Debug, Default)]
pub struct Literal {
    chunks: Box<[[u8; CHUNK]]>,
    len: usize,
}

/// A number and its text. Many numbers are the same in the next record: those of threads, CPUs and
/// events.
#[derive(Debug)]
pub struct Known {
    number: u64,
    text: [u8; ROOM],
    len: usize,
}

impl Default for Known {
    fn default() -> Self {
        let mut text = [0; ROOM];
        let len = digits::decimal(&mut text, 0);
        let number = 0;
        Known { number, text, len }
    }
}

impl Literal {
    /// Returns a piece with this text.
    pub fn new(text: &[u8]) -> Self {
        let chunk = |text: &[u8]| {
            let mut chunk = [0; CHUNK];
            chunk
                .iter_mut()
                .zip(text)
                .for_each(|(to, from)| *to = *from);
            chunk
        };
        Literal {
            chunks: text.chunks(CHUNK).map(chunk).collect(),
            len: text.len(),
        }
    }

    /// Returns the number of bytes that must be [available](Buffer::reserve) to write it.
    pub fn room(&self) -> usize {
        self.chunks.as_flattened().len()
    }
}

impl Buffer {
    /// Returns the text.
    pub fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Makes the text empty, and keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Makes at least `room` bytes available after the text.
    #[inline]
    pub fn reserve(&mut self, room: usize) {
        let needed = self.len.saturating_add(room);
        if self.bytes.len() < needed {
            self.bytes
                .resize(needed.max(self.bytes.len().saturating_mul(2)), 0);
        }
    }

    /// Appends a piece. Nothing is written without enough [room](Self::reserve), as by the other
    /// functions for pieces.
    #[inline]
    pub fn literal(&mut self, literal: &Literal) {
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        let (places, _) = rest.as_chunks_mut::<CHUNK>();
        if literal.chunks.len() <= places.len() {
            for (place, chunk) in places.iter_mut().zip(&literal.chunks) {
                *place = *chunk;
            }
            self.len = self.len.saturating_add(literal.len);
        }
    }

    /// Appends a byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len = self.len.saturating_add(1);
        }
    }

    /// Appends a number in decimal digits, which is compared with the `known` one.
    #[inline]
    pub fn known_decimal(&mut self, number: u64, known: &mut Known) {
        if number != known.number {
            known.number = number;
            known.len = digits::decimal(&mut known.text, number);
        }
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        if let Some(place) = rest.first_chunk_mut() {
            *place = known.text;
            self.len = self.len.saturating_add(known.len);
        }
    }

    /// Appends a number in hexadecimal digits.
    #[inline]
    pub fn hexadecimal(&mut self, number: u64) {
        self.number(number, digits::hexadecimal);
    }

    #[inline]
    fn number(&mut self, number: u64, write: impl FnOnce(&mut [u8; ROOM], u64) -> usize) {
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        if let Some(place) = rest.first_chunk_mut() {
            self.len = self.len.saturating_add(write(place, number));
        }
    }

    /// Appends a number in 16 hexadecimal digits.
    #[inline]
    pub fn padded_hexadecimal(&mut self, number: u64) {
        self.number(number, digits::padded_hexadecimal);
    }

    /// Appends bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        if let Some(place) = rest.get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
            self.len = self.len.saturating_add(bytes.len());
        }
    }

    /// Has `write` append a text of any length.
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut text = std::mem::take(&mut self.spare);
        text.clear();
        write(&mut text);
        self.reserve(text.len());
        self.bytes(&text);
        self.spare = text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other() {
        let mut buffer = Buffer::default();
        let mut known = Known::default();
        let mut expected = String::new();
        for len in 0..40 {
            let text = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
                .get(..len)
                .unwrap();
            let literal = Literal::new(text.as_bytes());
            assert!(literal.room() >= len);
            buffer.reserve(literal.room() + 4 * ROOM + 2);
            buffer.literal(&literal);
            buffer.known_decimal(1 << len, &mut Known::default());
            buffer.byte(b' ');
            buffer.known_decimal(len as u64 / 10, &mut known);
            buffer.byte(b' ');
            buffer.hexadecimal(u64::MAX >> len);
            buffer.padded_hexadecimal(len as u64);
            buffer.append(|out| out.extend_from_slice(b"..."));
            expected.push_str(&format!(
                "{text}{} {} {:x}{len:016x}...",
                1_u64 << len,
                len / 10,
                u64::MAX >> len
            ));
        }
        assert_eq!(buffer.text(), expected.as_bytes());
        buffer.clear();
        assert_eq!(buffer.text(), b"");
    }

    #[test]
    fn without_room_nothing_is_written() {
        let mut buffer = Buffer::default();
        buffer.literal(&Literal::new(b"abc"));
        buffer.known_decimal(1, &mut Known::default());
        buffer.hexadecimal(1);
        buffer.padded_hexadecimal(1);
        buffer.byte(b'x');
        buffer.bytes(b"abc");
        assert_eq!(buffer.text(), b"");
    }
}
