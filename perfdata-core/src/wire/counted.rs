//! Lists that are preceded by their count.

use std::io::{Read, Seek, Write};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use super::{Element, read_list, short};
use crate::content::{Content, Rewrite, Rewriter};
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::values::{FromValues, Values};

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
