//! Elements of lists, which are read and written one by one or as one block.

use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use super::{CStr, Count, Counted, HeaderString, read_exact, remaining, short};
use crate::content::{Content, Rewrite, Rewriter};
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::values::{FromValues, Values, list_of};

/// An element of a counted list.
pub trait Element:
    for<'a> BinRead<Args<'a> = ()>
    + for<'a> BinWrite<Args<'a> = ()>
    + Describe
    + FromValues
    + Rewrite
    + 'static
{
    /// Reads `count` elements; `remaining` bytes are available.
    fn read_many<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        count: usize,
        remaining: u64,
    ) -> BinResult<Vec<Self>> {
        // Allocates no more memory than the size of the input, regardless of the wire size of an
        // element.
        let room = usize::try_from(remaining)
            .unwrap_or(0)
            .checked_div(size_of::<Self>().max(1))
            .unwrap_or(0);
        let mut list = Vec::with_capacity(count.min(room));
        for _ in 0..count {
            list.push(Self::read_options(reader, endian, ())?);
        }
        Ok(list)
    }

    /// Writes all elements.
    fn write_many<W: Write + Seek>(list: &[Self], writer: &mut W, endian: Endian) -> BinResult<()> {
        list.iter()
            .try_for_each(|item| item.write_options(writer, endian, ()))
    }

    /// Passes all elements to `visitor`.
    fn describe_many(list: &[Self], name: &'static str, style: Style, visitor: &mut dyn Visitor) {
        list.describe(name, style, visitor);
    }

    /// Passes all elements to `rewriter`.
    fn rewrite_many(
        list: &mut [Self],
        name: &'static str,
        content: Content,
        rewriter: &mut dyn Rewriter,
    ) {
        list.rewrite(name, content, rewriter);
    }

    /// Makes all elements; there should be `count` of them, if the count is known.
    fn many_from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        count: Option<u64>,
    ) -> Vec<Self> {
        list_of(values, name, count, |values| {
            Self::from_values(values, "", style, ())
        })
    }
}

/// Implements [`Element`] for declared structures.
macro_rules! elements {
    ($($name:ty),*) => { $(impl $crate::wire::Element for $name {})* };
}
pub(crate) use elements;
elements!(u16, u32, HeaderString, CStr);

impl<C: Count, T: Element> Element for Counted<C, T> {}

impl Element for u8 {
    fn read_many<R: Read + Seek>(
        reader: &mut R,
        _: Endian,
        count: usize,
        remaining: u64,
    ) -> BinResult<Vec<u8>> {
        read_exact(reader, count as u64, remaining)
    }

    fn write_many<W: Write + Seek>(list: &[u8], writer: &mut W, _: Endian) -> BinResult<()> {
        Ok(writer.write_all(list)?)
    }

    fn describe_many(list: &[u8], name: &'static str, style: Style, v: &mut dyn Visitor) {
        v.leaf(name, list.len(), Leaf::raw(list, style));
    }

    fn rewrite_many(
        list: &mut [u8],
        name: &'static str,
        content: Content,
        rewriter: &mut dyn Rewriter,
    ) {
        if !list.is_empty() {
            rewriter.bytes(name, list, content);
        }
    }

    fn many_from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        count: Option<u64>,
    ) -> Vec<u8> {
        if style == Style::Text {
            return values.text(name, usize::MAX);
        }
        values.bytes(name, count.and_then(|count| usize::try_from(count).ok()))
    }
}

/// Callchains, registers, IDs: read and written as one block.
impl Element for u64 {
    fn read_many<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        count: usize,
        remaining: u64,
    ) -> BinResult<Vec<u64>> {
        let len = (count as u64).saturating_mul(8);
        if len > remaining {
            return Err(short(reader, len, remaining));
        }
        let mut list = Vec::with_capacity(count);
        let mut block = [[0; 8]; 32];
        while list.len() < count {
            let part = block.len().min(count.saturating_sub(list.len()));
            let words = block.get_mut(..part).unwrap_or_default();
            reader.read_exact(words.as_flattened_mut())?;
            match endian {
                Endian::Little => list.extend(words.iter().map(|word| u64::from_le_bytes(*word))),
                Endian::Big => list.extend(words.iter().map(|word| u64::from_be_bytes(*word))),
            }
        }
        Ok(list)
    }

    fn describe_many(list: &[u64], name: &'static str, style: Style, v: &mut dyn Visitor) {
        v.words(name, list, style);
    }

    fn rewrite_many(
        list: &mut [u64],
        name: &'static str,
        content: Content,
        rewriter: &mut dyn Rewriter,
    ) {
        rewriter.words(name, list, content);
    }

    fn write_many<W: Write + Seek>(list: &[u64], writer: &mut W, endian: Endian) -> BinResult<()> {
        let mut block = [0; 1024];
        for words in list.chunks(block.len() / 8) {
            for (bytes, word) in block.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *bytes = if endian == Endian::Little {
                    word.to_le_bytes()
                } else {
                    word.to_be_bytes()
                };
            }
            writer.write_all(block.get(..words.len().saturating_mul(8)).unwrap_or(&block))?;
        }
        Ok(())
    }
}

/// Returns the numbers in `bytes`; ignores an incomplete number at the end.
pub fn decode_words(bytes: &[u8], endian: Endian) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    match endian {
        Endian::Little => words.iter().map(|w| u64::from_le_bytes(*w)).collect(),
        Endian::Big => words.iter().map(|w| u64::from_be_bytes(*w)).collect(),
    }
}

/// Returns the bytes of `words`.
pub fn encode_words(words: &[u64], endian: Endian) -> Vec<u8> {
    let bytes = |word: &u64| {
        if endian == Endian::Little {
            word.to_le_bytes()
        } else {
            word.to_be_bytes()
        }
    };
    words.iter().flat_map(bytes).collect()
}

/// Reads `count` elements. `count` is a number from the input.
pub(crate) fn read_list<T: Element, R: Read + Seek>(
    reader: &mut R,
    endian: Endian,
    count: u64,
) -> BinResult<Vec<T>> {
    let remaining = remaining(reader)?;
    // Every element has at least one byte.
    let size = usize::try_from(count).ok().filter(|_| count <= remaining);
    let Some(size) = size else {
        return Err(short(reader, count, remaining));
    };
    T::read_many(reader, endian, size, remaining)
}
