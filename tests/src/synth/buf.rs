//! A growing byte buffer with a byte order.

use super::bits::Bits;

/// A buffer for output in one byte order. Every method appends bytes and returns the buffer, so
/// that a layout reads as one expression in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buf {
    /// Whether the most significant byte comes first.
    pub big: bool,
    /// The bytes written so far.
    pub bytes: Vec<u8>,
}

/// One method per integer or float type.
macro_rules! numbers {
    ($($name:ident)*) => {$(
        #[doc = concat!("Appends one `", stringify!($name), "`.")]
        pub fn $name(self, value: $name) -> Self {
            let bytes = if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
            self.bytes(&bytes)
        }
    )*};
}

impl Buf {
    /// Returns an empty buffer.
    pub fn new(big: bool) -> Self {
        Buf {
            big,
            bytes: Vec::new(),
        }
    }

    numbers!(u8 u16 u32 u64 i32 f64);

    /// Appends several `u32`.
    pub fn u32s(self, values: &[u32]) -> Self {
        self.each(values, |buf, value| buf.u32(*value))
    }

    /// Appends several `u64`.
    pub fn u64s(self, values: &[u64]) -> Self {
        self.each(values, |buf, value| buf.u64(*value))
    }

    /// Appends bytes that have no byte order.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends `count` zero bytes.
    pub fn zeros(mut self, count: usize) -> Self {
        self.bytes.resize(self.bytes.len() + count, 0);
        self
    }

    /// Appends zero bytes until the length is a multiple of `align`.
    pub fn pad(mut self, align: usize) -> Self {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(align), 0);
        self
    }

    /// Appends bytes, then zeros up to a total of `room` bytes.
    pub fn room(self, bytes: &[u8], room: usize) -> Self {
        assert!(
            bytes.len() <= room,
            "{} bytes do not fit into {room}",
            bytes.len()
        );
        self.bytes(bytes).zeros(room - bytes.len())
    }

    /// Appends a record's string: NUL-terminated, with zeros to the next multiple of 8.
    pub fn text(self, text: &str) -> Self {
        self.room(text.as_bytes(), (text.len() + 1).next_multiple_of(8))
    }

    /// Appends a record's string whose padding contains stale bytes instead of zeros.
    pub fn text_stale(self, text: &str) -> Self {
        let room = (text.len() + 1).next_multiple_of(8);
        let stale = vec![0xa5; room - text.len() - 1];
        self.bytes(text.as_bytes()).u8(0).bytes(&stale)
    }

    /// Appends a feature section's string as perf writes it: a `u32` length, then the text with
    /// zeros up to that length, a multiple of 64 (header.c: do_write_string).
    pub fn str(self, text: &str) -> Self {
        self.str_in(text, (text.len() + 1).next_multiple_of(64))
    }

    /// Appends a feature section's string in `room` bytes (other writers round to 8, or not at
    /// all).
    pub fn str_in(self, text: &str, room: usize) -> Self {
        self.u32(u32::try_from(room).expect("short string"))
            .room(text.as_bytes(), room)
    }

    /// Appends a word of bit-fields, with the positions for this byte order.
    pub fn bits(self, bits: &Bits) -> Self {
        let word = bits.word(self.big);
        match bits.width() {
            32 => self.u32(u32::try_from(word).expect("32-bit word")),
            _ => self.u64(word),
        }
    }

    /// Appends each item in turn.
    pub fn each<T>(self, items: &[T], put: impl FnMut(Self, &T) -> Self) -> Self {
        items.iter().fold(self, put)
    }

    /// Appends the output of `put`, to keep an expression together.
    pub fn with(self, put: impl FnOnce(Self) -> Self) -> Self {
        put(self)
    }

    /// Returns the number of bytes written so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Returns the length as the `u64` that precedes an array.
pub fn count<T>(items: &[T]) -> u64 {
    items.len() as u64
}

/// Returns the length as the `u32` that precedes an array of a feature section.
pub fn count32<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).expect("short array")
}

/// Returns `length` bytes, which are not zero and different from their neighbours: the content of
/// an island. A conversion that swaps it changes it.
pub fn island(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 % 251 + 1) as u8).collect()
}
