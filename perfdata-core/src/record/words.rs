//! Words of records: numbers of 64 bits, or pairs of numbers of 32 bits.

use binrw::Endian;

/// Bytes of a word.
pub(super) const WORD: usize = 8;

/// Words of a record, in order.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    pub(super) words: &'a [[u8; WORD]],
    pub(super) endian: Endian,
}

impl<'a> Words<'a> {
    /// Returns the words in the byte order of the record.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.words.as_flattened()
    }

    #[inline]
    fn value(&self, word: [u8; WORD]) -> u64 {
        if self.endian == Endian::Little {
            u64::from_le_bytes(word)
        } else {
            u64::from_be_bytes(word)
        }
    }

    /// Appends the words to `out`.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u64>) {
        let words = self.words.iter();
        match self.endian {
            Endian::Little => out.extend(words.map(|&word| u64::from_le_bytes(word))),
            Endian::Big => out.extend(words.map(|&word| u64::from_be_bytes(word))),
        }
    }

    /// Returns the word with index `at`.
    #[inline]
    pub fn get(&self, at: usize) -> Option<u64> {
        self.words.get(at).map(|&word| self.value(word))
    }

    /// Returns the same words without the last `count`.
    #[must_use]
    pub fn without_last(&self, count: usize) -> Self {
        let kept = self.words.len().saturating_sub(count);
        Words {
            words: self.words.get(..kept).unwrap_or_default(),
            endian: self.endian,
        }
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let (&word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(self.value(word))
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<u64> {
        self.words = self.words.get(n..).unwrap_or_default();
        self.next()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.words.len(), Some(self.words.len()))
    }
}

impl DoubleEndedIterator for Words<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<u64> {
        let (&word, rest) = self.words.split_last()?;
        self.words = rest;
        Some(self.value(word))
    }
}

impl ExactSizeIterator for Words<'_> {}

/// Returns the two numbers of a word that is a pair, in order.
#[inline]
pub(super) fn halves(word: u64, endian: Endian) -> (u32, u32) {
    let (low, high) = (word as u32, (word >> 32) as u32);
    if endian == Endian::Little {
        (low, high)
    } else {
        (high, low)
    }
}

/// Returns the word of two numbers, in order.
#[inline]
pub(super) fn word_of((first, second): (u32, u32), endian: Endian) -> u64 {
    let (low, high) = match endian {
        Endian::Little => (first, second),
        Endian::Big => (second, first),
    };
    u64::from(high) << 32 | u64::from(low)
}
