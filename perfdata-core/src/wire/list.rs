//! Lists: preceded by their count, with a count elsewhere, or up to the end.

use std::io::{Read, Seek, Write};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use super::{CStr, HeaderString, read_exact, remaining, short};
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

/// A number that counts elements or bytes.
pub trait Count:
    for<'a> BinRead<Args<'a> = ()>
    + for<'a> BinWrite<Args<'a> = ()>
    + TryFrom<usize>
    + Into<u64>
    + 'static
{
}
impl Count for u8 {}
impl Count for u16 {}
impl Count for u32 {}
impl Count for u64 {}

/// A list preceded by its length: a count of type `C`, then that many `T`.
pub struct Counted<C, T> {
    items: Vec<T>,
    count: PhantomData<C>,
}

impl<C, T> From<Vec<T>> for Counted<C, T> {
    fn from(items: Vec<T>) -> Self {
        Counted {
            items,
            count: PhantomData,
        }
    }
}

impl<C, T> Counted<C, T> {
    /// Returns the elements, without their count.
    pub fn into_inner(self) -> Vec<T> {
        self.items
    }
}

impl<C, T> Default for Counted<C, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<C, T: Clone> Clone for Counted<C, T> {
    fn clone(&self) -> Self {
        self.items.clone().into()
    }
}

impl<C, T: PartialEq> PartialEq for Counted<C, T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<C, T: std::fmt::Debug> std::fmt::Debug for Counted<C, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.items.fmt(f)
    }
}

impl<C, T> Deref for Counted<C, T> {
    type Target = Vec<T>;
    fn deref(&self) -> &Vec<T> {
        &self.items
    }
}

impl<C, T> DerefMut for Counted<C, T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.items
    }
}

impl<C: Count, T: Element> BinRead for Counted<C, T> {
    type Args<'a> = ();
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (): ()) -> BinResult<Self> {
        let count = C::read_options(reader, endian, ())?.into();
        read_list(reader, endian, count).map(Into::into)
    }
}

impl<C: Count, T: Element> BinWrite for Counted<C, T> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        let Ok(count) = C::try_from(self.len()) else {
            let bits = u32::try_from(size_of::<C>()).unwrap_or(8).saturating_mul(8);
            return Err(short(
                writer,
                self.len() as u64,
                u64::MAX
                    .checked_shr(u64::BITS.saturating_sub(bits))
                    .unwrap_or(0),
            ));
        };
        count.write_options(writer, endian, ())?;
        T::write_many(self, writer, endian)
    }
}

impl<C: Count, T: Element> FromValues for Counted<C, T> {
    fn from_values(values: &mut dyn Values, name: &'static str, style: Style, (): ()) -> Self {
        let items = T::many_from_values(values, name, style, None);
        if C::try_from(items.len()).is_err() {
            values.refuse(format!(
                "{} elements do not fit in a {}-byte count",
                items.len(),
                size_of::<C>()
            ));
        }
        items.into()
    }
}

impl<C, T: Element> Describe for Counted<C, T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        v.leaf(name, size_of::<C>(), Leaf::Count(self.len() as u64));
        T::describe_many(self, name, style, v);
    }
}

impl<C, T: Element> Rewrite for Counted<C, T> {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        T::rewrite_many(&mut self.items, name, content, rewriter);
    }
}

/// Declares lists that are not preceded by their count.
macro_rules! lists {
    ($($(#[$meta:meta])* $name:ident),*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name<T>(pub Vec<T>);

        impl<T> Deref for $name<T> {
            type Target = Vec<T>;
            fn deref(&self) -> &Vec<T> {
                &self.0
            }
        }

        impl<T> DerefMut for $name<T> {
            fn deref_mut(&mut self) -> &mut Vec<T> {
                &mut self.0
            }
        }
    )* };
}

lists! {
    /// Elements whose count is elsewhere in the structure: the argument.
    List,
    /// Elements that themselves need the layout (or other arguments). Their count is elsewhere in
    /// the structure.
    ContextList,
    /// Such elements up to the end of the structure's bytes, each at least as long as a given
    /// number of bytes; fewer bytes remain after the list.
    ContextToEnd,
    /// Elements up to the end of the structure's bytes, of the given wire size; the bytes of an
    /// incomplete element remain after the list.
    ToEnd
}

impl<T: Element> BinRead for List<T> {
    type Args<'a> = (u64,);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (count,): (u64,),
    ) -> BinResult<Self> {
        read_list(reader, endian, count).map(List)
    }
}

impl<T: Element> BinWrite for List<T> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        T::write_many(&self.0, writer, endian)
    }
}

impl<T: Element> FromValues for List<T> {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        (count,): (u64,),
    ) -> Self {
        List(T::many_from_values(values, name, style, Some(count)))
    }
}

impl<T: Element> Describe for List<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        T::describe_many(&self.0, name, style, v);
    }
}

impl<T: Element> Rewrite for List<T> {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        T::rewrite_many(&mut self.0, name, content, rewriter);
    }
}

impl<T: BinRead> BinRead for ContextList<T>
where
    for<'a> T::Args<'a>: Clone,
{
    type Args<'a> = (u64, T::Args<'a>);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (count, args): Self::Args<'_>,
    ) -> BinResult<Self> {
        let remaining = remaining(reader)?;
        if count > remaining {
            return Err(short(reader, count, remaining));
        }
        (0..count)
            .map(|_| T::read_options(reader, endian, args.clone()))
            .collect::<BinResult<_>>()
            .map(ContextList)
    }
}

impl<T: FromValues> FromValues for ContextList<T>
where
    for<'a> T::Args<'a>: Clone,
{
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        (count, args): Self::Args<'_>,
    ) -> Self {
        ContextList(list_of(values, name, Some(count), |values| {
            T::from_values(values, "", style, args.clone())
        }))
    }
}

impl<T: FromValues> FromValues for ContextToEnd<T>
where
    for<'a> T::Args<'a>: Clone,
{
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        (_, args): Self::Args<'_>,
    ) -> Self {
        ContextToEnd(list_of(values, name, None, |values| {
            T::from_values(values, "", style, args.clone())
        }))
    }
}

impl<T: BinRead> BinRead for ContextToEnd<T>
where
    for<'a> T::Args<'a>: Clone,
{
    /// Minimum size of an element in bytes, and the arguments of each element.
    type Args<'a> = (u64, T::Args<'a>);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (least, args): Self::Args<'_>,
    ) -> BinResult<Self> {
        let mut list = Vec::new();
        while remaining(reader)? >= least.max(1) {
            list.push(T::read_options(reader, endian, args.clone())?);
        }
        Ok(ContextToEnd(list))
    }
}

/// Common implementations of lists whose elements need arguments.
macro_rules! layout_lists {
    ($($name:ident),*) => { $(
        impl<T: for<'a> BinWrite<Args<'a> = ()>> BinWrite for $name<T> {
            type Args<'a> = ();
            fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
                self.0.iter().try_for_each(|item| item.write_options(writer, endian, ()))
            }
        }

        impl<T: Describe> Describe for $name<T> {
            fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
                self.0.describe(name, style, v);
            }
        }

        impl<T: Rewrite> Rewrite for $name<T> {
            const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
            fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
                self.0.rewrite(name, content, rewriter);
            }
        }
    )* };
}
layout_lists!(ContextList, ContextToEnd);

impl<T: Element> BinRead for ToEnd<T> {
    /// Wire size of one element in bytes.
    type Args<'a> = (u64,);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (size,): (u64,),
    ) -> BinResult<Self> {
        let count = remaining(reader)?.checked_div(size).unwrap_or(0);
        read_list(reader, endian, count).map(ToEnd)
    }
}

impl<T: Element> BinWrite for ToEnd<T> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        T::write_many(&self.0, writer, endian)
    }
}

impl<T: Element> FromValues for ToEnd<T> {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        (_,): (u64,),
    ) -> Self {
        ToEnd(T::many_from_values(values, name, style, None))
    }
}

impl<T: Element> Describe for ToEnd<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        T::describe_many(&self.0, name, style, v);
    }
}

impl<T: Element> Rewrite for ToEnd<T> {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        T::rewrite_many(&mut self.0, name, content, rewriter);
    }
}
