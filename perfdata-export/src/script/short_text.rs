//! Short texts that are put together in an array: copying constant numbers of bytes takes a fraction of
//! the time that it takes to append to a `Vec`.

use super::numbers::{short_hex, short_number};

/// Size of the array in bytes. The longest text is a branch: two addresses, and words.
const MOST: usize = 128;

/// A text of at most [`MOST`] bytes. What does not fit is left out.
pub(super) struct ShortText {
    bytes: [u8; MOST],
    len: usize,
}

impl ShortText {
    pub fn new() -> Self {
        ShortText {
            bytes: [0; MOST],
            len: 0,
        }
    }

    /// Begins a new text.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends the first `len` of these bytes.
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        if let Some(place) = room.first_chunk_mut() {
            *place = *bytes;
            self.len = self.len.saturating_add(len);
        }
    }

    /// Appends bytes.
    #[inline(always)]
    pub fn push<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.put(bytes, N);
    }

    /// Appends a word.
    pub fn push_word(&mut self, word: &str) {
        word.bytes().for_each(|byte| self.push(&[byte]));
    }

    /// Appends a number as `%lx`.
    #[inline(always)]
    pub fn push_hex(&mut self, number: u64) {
        let (digits, len) = short_hex(number);
        self.put(&digits, len);
    }

    /// Appends a number as `%u`.
    #[inline(always)]
    pub fn push_number(&mut self, number: u64) {
        if number >= 10_000 {
            return self.push_word(&number.to_string());
        }
        let (digits, len) = short_number(number);
        self.put(&digits, len);
    }

    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
