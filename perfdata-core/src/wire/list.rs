//! Lists that are not preceded by their count: it is elsewhere, or they extend to the end.

use std::io::{Read, Seek, Write};
use std::ops::{Deref, DerefMut};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use super::{Element, read_list, remaining, short};
use crate::content::{Content, Rewrite, Rewriter};
use crate::describe::{Describe, Style, Visitor};
use crate::values::{FromValues, Values, list_of};

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

/// Common implementations of lists whose elements need no arguments.
macro_rules! element_lists {
    ($($name:ident),*) => { $(
        impl<T: Element> BinWrite for $name<T> {
            type Args<'a> = ();
            fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
                T::write_many(&self.0, writer, endian)
            }
        }

        impl<T: Element> Describe for $name<T> {
            fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
                T::describe_many(&self.0, name, style, v);
            }
        }

        impl<T: Element> Rewrite for $name<T> {
            const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
            fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
                T::rewrite_many(&mut self.0, name, content, rewriter);
            }
        }
    )* };
}
element_lists!(List, ToEnd);

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
