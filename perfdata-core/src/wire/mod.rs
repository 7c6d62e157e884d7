//! The building blocks of every structure: the `wire!` declaration, counted lists, strings and raw
//! bytes.
//!
//! All reading takes place in a slice that contains the whole structure (a record's body, a feature
//! section). Therefore every count can be compared with the remaining bytes before memory is
//! allocated.

mod counted;
mod element;
mod list;
mod text;

pub use counted::*;
pub use element::*;
pub use list::*;
pub use text::*;

use std::io::{Cursor, Read, Seek, Write};
use std::ops::{Deref, DerefMut};

use binrw::io::NoSeek;
use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::content::{Content, Rewrite, Rewriter};
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Style, Visitor};
use crate::error::{Error, Result, WireError};
use crate::values::{FromValues, Values};

/// Declares a structure of the format: `pub struct Name { pub field: Type as Style, … }`, or
/// `pub struct Name(layout) { … }` if conditions depend on the [`DecodeContext`]. One declaration
/// generates the reader and the writer (binrw), the visit of the fields (`Describe`), its inverse
/// (`FromValues`) and their replacement (`Rewrite`). A structure that is always part of another may
/// depend on something else: `pub struct Name(version: u32) { … }`.
///
/// What a field contains in regard to who may see it follows its type and style: `lost: u64 =>
/// Number`, unless the style implies it. See [`content`](crate::content).
///
/// Fields receive these values as arguments of their type (`args`, `args_raw`): binrw's
/// `parse_with` does not work inside a declarative macro, because of the hygiene of the names that
/// it generates.
macro_rules! wire {
    ($(#[$meta:meta])* pub struct $name:ident ($layout:ident) $(=> $all:ident)? { $($(#[$($fmeta:tt)*])* pub $field:ident: $type:ty $(as $style:ident)? $(=> $content:ident)?),* $(,)? }) => {
        $crate::wire::wire! {
            $(#[$meta])*
            pub struct $name ($layout: $crate::decode_context::DecodeContext) $(=> $all)? { $($(#[$($fmeta)*])* pub $field: $type $(as $style)? $(=> $content)?),* }
        }

        impl $crate::wire::Wire for $name {
            const NAME: &'static str = stringify!($name);
            fn read_wire(reader: &mut std::io::Cursor<&[u8]>, endian: binrw::Endian, layout: $crate::decode_context::DecodeContext) -> binrw::BinResult<Self> {
                <Self as binrw::BinRead>::read_options(reader, endian, layout)
            }
            fn wire_from_values(values: &mut dyn $crate::values::Values, layout: $crate::decode_context::DecodeContext, name: &'static str) -> Self {
                $crate::values::FromValues::from_values(values, name, $crate::describe::Style::Plain, layout)
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident $(=> $all:ident)? { $($(#[$($fmeta:tt)*])* pub $field:ident: $type:ty $(as $style:ident)? $(=> $content:ident)?),* $(,)? }) => {
        #[binrw::binrw]
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name { $($(#[$($fmeta)*])* pub $field: $type),* }

        $crate::wire::wire!(@views $name [$($all)?] (_args: ()) { $(($($style)?) ($($content)?) $field: $type, $(#[$($fmeta)*])*;)* });
        $crate::wire::wire_plain!($name);
    };
    ($(#[$meta:meta])* pub struct $name:ident ($args:ident: $argstype:ty) $(=> $all:ident)? { $($(#[$($fmeta:tt)*])* pub $field:ident: $type:ty $(as $style:ident)? $(=> $content:ident)?),* $(,)? }) => {
        #[binrw::binrw]
        $(#[$meta])*
        #[br(import_raw($args: $argstype))]
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name { $($(#[$($fmeta)*])* pub $field: $type),* }

        $crate::wire::wire!(@views $name [$($all)?] ($args: $argstype) { $(($($style)?) ($($content)?) $field: $type, $(#[$($fmeta)*])*;)* });
    };
    (@views $name:ident $all:tt ($args:ident: $argstype:ty) { $(($($style:ident)?) ($($content:ident)?) $field:ident: $type:ty, $(#[$($fmeta:tt)*])*;)* }) => {
        impl $crate::describe::Describe for $name {
            fn describe(&self, name: &'static str, _: $crate::describe::Style, v: &mut dyn $crate::describe::Visitor) {
                v.begin(name);
                $($crate::describe::Describe::describe(&self.$field, $crate::describe::field_name(stringify!($field)), $crate::wire::wire!(@style $($style)?), v);)*
                v.end();
            }
        }

        $(const _: () = {
            let content = $crate::wire::wire!(@content ($($content)?) ($($style)?) $all);
            assert!(
                content.is_some() || !<$type as $crate::content::Rewrite>::NEEDS_CONTENT,
                concat!("the content of `", stringify!($name), "::", stringify!($field), "` is not declared: append `=> Content`")
            );
        };)*
        const _: () = $crate::wire::wire!(@all $all);

        impl $crate::content::Rewrite for $name {
            const NEEDS_CONTENT: bool = false;
            #[inline]
            fn rewrite(&mut self, name: &'static str, _: $crate::content::Content, rewriter: &mut dyn $crate::content::Rewriter) {
                rewriter.begin(name);
                $($crate::content::Rewrite::rewrite(
                    &mut self.$field,
                    $crate::describe::field_name(stringify!($field)),
                    const { $crate::wire::or_fields($crate::wire::wire!(@content ($($content)?) ($($style)?) $all)) },
                    rewriter,
                );)*
                rewriter.end();
            }
        }

        impl $crate::values::FromValues for $name {
            fn from_values(values: &mut dyn $crate::values::Values, name: &'static str, _: $crate::describe::Style, $args: $argstype) -> Self {
                let _ = &$args;
                values.begin(name);
                $(let $field: $type = $crate::wire::wire!(@value (values, $field, $type, $crate::wire::wire!(@style $($style)?)) $(#[$($fmeta)*])*);)*
                values.end();
                $name { $($field),* }
            }
        }
    };
    // binrw's attributes of a field apply to decoding it and to making it from values.
    (@value $to:tt #[br(if($condition:expr) $(, $($args:tt)*)?)] $($rest:tt)*) => {
        if $condition { $crate::wire::wire!(@value $to #[br($($($args)*)?)]) } else { Default::default() }
    };
    (@value $to:tt #[br(args($($args:expr),*))] $($rest:tt)*) => { $crate::wire::wire!(@from $to ($($args,)*)) };
    (@value $to:tt #[br(args_raw = $args:expr)] $($rest:tt)*) => { $crate::wire::wire!(@from $to $args) };
    (@value $to:tt #[$($other:tt)*] $($rest:tt)*) => { $crate::wire::wire!(@value $to $($rest)*) };
    (@value $to:tt) => { $crate::wire::wire!(@from $to Default::default()) };
    (@from ($values:ident, $field:ident, $type:ty, $style:expr) $args:expr) => {
        <$type as $crate::values::FromValues>::from_values($values, $crate::describe::field_name(stringify!($field)), $style, $args)
    };
    (@style) => { $crate::describe::Style::Plain };
    (@style $style:ident) => { $crate::describe::Style::$style };
    // What a field declares has precedence over what its style implies, and this over the content
    // of the structure.
    (@content ($content:ident) $style:tt $all:tt) => { Some($crate::content::Content::$content) };
    (@content () ($style:ident) []) => { $crate::describe::Style::$style.content() };
    (@content () ($style:ident) [$all:ident]) => {
        match $crate::describe::Style::$style.content() {
            None => Some($crate::content::Content::$all),
            content => content,
        }
    };
    (@content () () [$all:ident]) => { Some($crate::content::Content::$all) };
    (@content () () []) => { None::<$crate::content::Content> };
    (@all []) => { () };
    (@all [$all:ident]) => { assert!($crate::content::Content::$all.is_private(), "all fields would be published") };
}
pub(crate) use wire;

/// Makes types that do not need a layout usable as a whole body or section.
macro_rules! wire_plain {
    ($($name:ident),*) => { $(
        impl $crate::wire::Wire for $name {
            const NAME: &'static str = stringify!($name);
            fn read_wire(reader: &mut std::io::Cursor<&[u8]>, endian: binrw::Endian, _: $crate::decode_context::DecodeContext) -> binrw::BinResult<Self> {
                <Self as binrw::BinRead>::read_options(reader, endian, ())
            }
            fn wire_from_values(values: &mut dyn $crate::values::Values, _: $crate::decode_context::DecodeContext, name: &'static str) -> Self {
                $crate::values::FromValues::from_values(values, name, $crate::describe::Style::Plain, ())
            }
        }
    )* };
}
pub(crate) use wire_plain;
wire_plain!(u32, u64, HeaderString);

/// Returns the content of a field that declares none because its type implies it.
pub(crate) const fn or_fields(content: Option<Content>) -> Content {
    match content {
        Some(content) => content,
        None => Content::Fields,
    }
}

/// Exceeds the size of every structure with a fixed space.
const MOST_FILLED: u64 = 1 << 20;

/// A structure that can be read and written in both byte orders. In its default, numbers are 0, and
/// texts and lists are empty: a program sets the fields that it knows, and `..Default::default()`.
pub trait Wire: Sized + Default + Describe + Rewrite + for<'a> BinWrite<Args<'a> = ()> {
    /// The structure's name in this library.
    const NAME: &'static str;

    /// Reads the structure from the position of `reader`.
    fn read_wire(
        reader: &mut Cursor<&[u8]>,
        endian: Endian,
        layout: DecodeContext,
    ) -> BinResult<Self>;

    /// Makes the structure from the values of its fields, as [`FromValues`] does.
    fn wire_from_values(values: &mut dyn Values, layout: DecodeContext, name: &'static str)
    -> Self;

    /// Reads the structure from the start of `bytes`, and returns it with the number of bytes read.
    ///
    /// # Errors
    /// Offsets are relative to `bytes`.
    // Values are large, and would be copied from function to function.
    #[inline(always)]
    fn decode(bytes: &[u8], endian: Endian, layout: DecodeContext) -> Result<(Self, usize)> {
        let mut reader = Cursor::new(bytes);
        let value = Self::read_wire(&mut reader, endian, layout)
            .map_err(|e| Error::from_binrw(Self::NAME, bytes.len() as u64, e))?;
        let used = usize::try_from(reader.position())
            .unwrap_or(bytes.len())
            .min(bytes.len());
        Ok((value, used))
    }

    /// Appends the structure's bytes to `out`.
    ///
    /// # Errors
    /// Fails if a list is too long for its count or a string is too long for its field.
    fn encode_into(&self, out: &mut Vec<u8>, endian: Endian) -> Result<()> {
        self.write_options(&mut NoSeek::new(out), endian, ())
            .map_err(|e| Error::from_binrw(Self::NAME, 0, e))
    }

    /// Returns the structure's bytes.
    ///
    /// # Errors
    /// As [`encode_into`](Self::encode_into).
    fn encode(&self, endian: Endian) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.encode_into(&mut out, endian)?;
        Ok(out)
    }

    /// Returns the structure with zeros after its text or fields, in a space of `layout.len` bytes.
    ///
    /// # Errors
    /// The structure's content exceeds the space, or cannot fill it.
    fn filled(&self, layout: DecodeContext) -> Result<Self> {
        let endian = Endian::Little;
        let mut bytes = self.encode(endian)?;
        let room = usize::try_from(layout.len).unwrap_or(usize::MAX);
        let needed = bytes.len();
        if needed <= room && layout.len <= MOST_FILLED {
            bytes.resize(room, 0);
            let (value, used) = Self::decode(&bytes, endian, layout)?;
            if used == room {
                return Ok(value);
            }
        }
        Err(Error::invalid(
            Self::NAME,
            "size",
            layout.len.to_string(),
            format!("{needed}, its content"),
        ))
    }
}

impl<C: Count, T: Element> Wire for Counted<C, T> {
    const NAME: &'static str = "list";
    fn read_wire(reader: &mut Cursor<&[u8]>, endian: Endian, _: DecodeContext) -> BinResult<Self> {
        Self::read_options(reader, endian, ())
    }
    fn wire_from_values(values: &mut dyn Values, _: DecodeContext, name: &'static str) -> Self {
        Self::from_values(values, name, Style::Plain, ())
    }
}

/// Returns the number of bytes between the reader's position and its end.
pub(crate) fn remaining<R: Read + Seek>(reader: &mut R) -> BinResult<u64> {
    let here = reader.stream_position()?;
    let end = reader.seek(std::io::SeekFrom::End(0))?;
    reader.seek(std::io::SeekFrom::Start(here))?;
    Ok(end.saturating_sub(here))
}

fn short<R: Seek>(reader: &mut R, needed: u64, available: u64) -> binrw::Error {
    let pos = reader.stream_position().unwrap_or(0);
    binrw::Error::Custom {
        pos,
        err: Box::new(WireError::Short { needed, available }),
    }
}

/// Reads exactly `len` bytes, after a check that they are available.
pub(crate) fn read_exact<R: Read + Seek>(
    reader: &mut R,
    len: u64,
    remaining: u64,
) -> BinResult<Vec<u8>> {
    let size = usize::try_from(len).ok().filter(|_| len <= remaining);
    let Some(size) = size else {
        return Err(short(reader, len, remaining));
    };
    let mut bytes = vec![0; size];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A structure in a space of a given size. It ends at the end of the space, regardless of the data
/// after it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounded<T>(pub T);

impl<T> Deref for Bounded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Bounded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Wire> BinRead for Bounded<T> {
    /// Size of the space in bytes, and the structure's layout.
    type Args<'a> = (u64, DecodeContext);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (len, layout): (u64, DecodeContext),
    ) -> BinResult<Self> {
        let pos = reader.stream_position()?;
        let remaining = remaining(reader)?;
        let bytes = read_exact(reader, len, remaining)?;
        let invalid = |err| binrw::Error::Custom {
            pos,
            err: Box::new(err),
        };
        match T::decode(&bytes, endian, DecodeContext { len, ..layout }) {
            Ok((value, used)) if used == bytes.len() => Ok(Bounded(value)),
            Ok((_, used)) => Err(invalid(
                Error::invalid(
                    T::NAME,
                    "size",
                    len.to_string(),
                    format!("{used}, its content"),
                )
                .at(0),
            )),
            Err(error) => Err(invalid(error)),
        }
    }
}

impl<T: Wire> BinWrite for Bounded<T> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        self.0.write_options(writer, endian, ())
    }
}

impl<T: Describe> Describe for Bounded<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        self.0.describe(name, style, v);
    }
}

impl<T: Rewrite> Rewrite for Bounded<T> {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        self.0.rewrite(name, content, rewriter);
    }
}

/// Fills the rest of the space with zeros.
impl<T: Wire> FromValues for Bounded<T> {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        _: Style,
        (len, layout): (u64, DecodeContext),
    ) -> Self {
        let layout = DecodeContext { len, ..layout };
        let value = T::wire_from_values(values, layout, name);
        match value.filled(layout) {
            Ok(value) => Bounded(value),
            Err(error) => {
                values.refuse(error.to_string());
                Bounded(value)
            }
        }
    }
}

/// The number of raw bytes in a field.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub enum Extent {
    /// All up to the end of the structure's bytes.
    #[default]
    ToEnd,
    /// This many bytes.
    Bytes(u64),
    /// Up to this offset in the structure.
    UpTo(u64),
}

/// Raw bytes, up to the end of the structure unless its [`Extent`] specifies otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rest(pub Vec<u8>);

impl BinRead for Rest {
    type Args<'a> = Extent;
    fn read_options<R: Read + Seek>(reader: &mut R, _: Endian, extent: Extent) -> BinResult<Self> {
        let here = reader.stream_position()?;
        let remaining = remaining(reader)?;
        let len = match extent {
            Extent::ToEnd => remaining,
            Extent::Bytes(len) => len,
            Extent::UpTo(end) => end.saturating_sub(here),
        };
        read_exact(reader, len, remaining).map(Rest)
    }
}

impl FromValues for Rest {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        extent: Extent,
    ) -> Self {
        /// Maximum size of padding in bytes.
        const MOST: u64 = u16::MAX as u64;
        Rest(match (style, extent) {
            (Style::Pad, Extent::Bytes(len)) => {
                vec![0; usize::try_from(len.min(MOST)).unwrap_or(0)]
            }
            (Style::Pad, _) => Vec::new(),
            _ if !values.has(name) => Vec::new(),
            (Style::Text, _) => values.text(name, usize::MAX),
            _ => values.bytes(name, None),
        })
    }
}

impl BinWrite for Rest {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, _: Endian, (): ()) -> BinResult<()> {
        Ok(writer.write_all(&self.0)?)
    }
}

impl Describe for Rest {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        if !self.0.is_empty() {
            u8::describe_many(&self.0, name, style, v);
        }
    }
}

impl Rewrite for Rest {
    const NEEDS_CONTENT: bool = true;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        u8::rewrite_many(&mut self.0, name, content, rewriter);
    }
}
