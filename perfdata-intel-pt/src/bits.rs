//! Fields of a packet: bits of its bytes, which are one little-endian number.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "computed by the compiler of constants, except shifts by fewer than 128 bits"
)]

/// The bits of a packet that never change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Size in bytes, up to 16.
    pub(crate) size: usize,
    /// The bits of the header.
    mask: u128,
    value: u128,
}

/// How bytes compare with the shape of a packet.
pub(crate) enum Comparison {
    Equal,
    /// As far as there are bytes.
    Prefix,
    Different,
}

const fn ones(count: u32) -> u128 {
    if count == 128 {
        u128::MAX
    } else {
        (1 << count) - 1
    }
}

impl Shape {
    /// Returns the shape of a packet whose first bytes are `header`, except for the bits of
    /// `fields`. The compiler checks that each bit behind the header belongs to one field.
    pub(crate) const fn new(size: usize, header: &[u8], fields: &[(u32, u32)]) -> Self {
        let (mut value, mut at) = (0, header.len());
        while at > 0 {
            at -= 1;
            value = value << 8 | header[at] as u128;
        }
        let (mut used, mut at) = (0, 0);
        while at < fields.len() {
            let bits = ones(fields[at].1 - fields[at].0) << fields[at].0;
            assert!(used & bits == 0, "two fields have the same bit");
            used |= bits;
            at += 1;
        }
        let mask = ones(8 * header.len() as u32) & !used;
        assert!(mask | used == ones(8 * size as u32), "a bit is in no field");
        assert!(value & used == 0, "the header sets a bit of a field");
        Shape { size, mask, value }
    }

    /// Compares the first `len` bytes, which are `word`.
    #[inline]
    pub(crate) fn compare(&self, word: u128, len: usize) -> Comparison {
        let known = if len < self.size {
            ones(8 * len as u32)
        } else {
            u128::MAX
        };
        if (word ^ self.value) & self.mask & known != 0 {
            Comparison::Different
        } else if len < self.size {
            Comparison::Prefix
        } else {
            Comparison::Equal
        }
    }

    /// Appends the packet whose fields have these bits.
    pub(crate) fn write(&self, fields: u128, out: &mut Vec<u8>) {
        let word = self.value | fields & !self.mask;
        out.extend(word.to_le_bytes().iter().take(self.size));
    }
}

/// Returns the first 16 bytes as a number; 0 for those behind the end.
#[inline]
pub(crate) fn word(bytes: &[u8]) -> u128 {
    match bytes.first_chunk() {
        Some(whole) => u128::from_le_bytes(*whole),
        None => bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u128::from(byte)),
    }
}

/// Returns the bits `from` up to `to`, at most 64.
#[inline]
pub(crate) const fn bits(word: u128, from: u32, to: u32) -> u64 {
    (word >> from & ones(to - from)) as u64
}

/// A type of fields.
pub(crate) trait FieldBits: Copy {
    fn from_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;
}

impl FieldBits for bool {
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }

    fn to_bits(self) -> u64 {
        self.into()
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl FieldBits for $type {
            fn from_bits(bits: u64) -> Self {
                bits as $type
            }

            fn to_bits(self) -> u64 {
                self.into()
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

/// Returns a field, placed at its bits `from` up to `to`.
#[inline]
pub(crate) fn place(field: impl FieldBits, from: u32, to: u32) -> u128 {
    (u128::from(field.to_bits()) & ones(to - from)) << from
}
