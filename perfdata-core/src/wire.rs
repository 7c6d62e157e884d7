//! The building blocks of every structure: the `wire!` declaration, counted lists, strings and raw bytes.
//!
//! All reading happens inside a slice that holds the whole structure (a record's body, a feature section), so
//! that every count can be compared with the bytes that remain before anything is allocated.

use std::io::{Cursor, Read, Seek, Write};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use binrw::io::NoSeek;
use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::error::{Error, Result, WireError};
use crate::layout::Layout;

/// Declares a structure of the format: `pub struct Name { pub field: Type as Style, … }`, or
/// `pub struct Name(layout) { … }` where conditions depend on the [`Layout`]. One declaration gives the reader and
/// the writer (binrw) and the walk over the fields (`Describe`). A structure that is only ever part of another may
/// depend on something else: `pub struct Name(version: u32) { … }`.
///
/// Fields take what they depend on as arguments of their type (`args`, `args_raw`): binrw's `parse_with` does not go
/// through a declarative macro, whose hygiene keeps the names that it generates apart.
macro_rules! wire {
    ($(#[$meta:meta])* pub struct $name:ident ($layout:ident) { $($(#[$fmeta:meta])* pub $field:ident: $type:ty $(as $style:ident)?),* $(,)? }) => {
        #[binrw::binrw]
        $(#[$meta])*
        #[br(import_raw($layout: $crate::layout::Layout))]
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[$fmeta])* pub $field: $type),* }

        $crate::wire::wire!(@describe $name { $($field $($style)?),* });

        impl $crate::wire::Wire for $name {
            const NAME: &'static str = stringify!($name);
            fn read_wire(reader: &mut std::io::Cursor<&[u8]>, endian: binrw::Endian, layout: $crate::layout::Layout) -> binrw::BinResult<Self> {
                <Self as binrw::BinRead>::read_options(reader, endian, layout)
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* pub $field:ident: $type:ty $(as $style:ident)?),* $(,)? }) => {
        #[binrw::binrw]
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[$fmeta])* pub $field: $type),* }

        $crate::wire::wire!(@describe $name { $($field $($style)?),* });
        $crate::wire::wire_plain!($name);
    };
    ($(#[$meta:meta])* pub struct $name:ident ($args:ident: $argstype:ty) { $($(#[$fmeta:meta])* pub $field:ident: $type:ty $(as $style:ident)?),* $(,)? }) => {
        #[binrw::binrw]
        $(#[$meta])*
        #[br(import_raw($args: $argstype))]
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[$fmeta])* pub $field: $type),* }

        $crate::wire::wire!(@describe $name { $($field $($style)?),* });
    };
    (@describe $name:ident { $($field:ident $($style:ident)?),* }) => {
        impl $crate::describe::Describe for $name {
            fn describe(&self, name: &'static str, _: $crate::describe::Style, v: &mut dyn $crate::describe::Visitor) {
                v.begin(name);
                $($crate::describe::Describe::describe(&self.$field, stringify!($field), $crate::wire::wire!(@style $($style)?), v);)*
                v.end();
            }
        }
    };
    (@style) => { $crate::describe::Style::Plain };
    (@style $style:ident) => { $crate::describe::Style::$style };
}
pub(crate) use wire;

/// Makes types that need no layout usable as a whole body or section.
macro_rules! wire_plain {
    ($($name:ident),*) => { $(
        impl $crate::wire::Wire for $name {
            const NAME: &'static str = stringify!($name);
            fn read_wire(reader: &mut std::io::Cursor<&[u8]>, endian: binrw::Endian, _: $crate::layout::Layout) -> binrw::BinResult<Self> {
                <Self as binrw::BinRead>::read_options(reader, endian, ())
            }
        }
    )* };
}
pub(crate) use wire_plain;
wire_plain!(u32, u64, Str);

impl<C: Count, T: Element> Wire for Counted<C, T> {
    const NAME: &'static str = "list";
    fn read_wire(reader: &mut Cursor<&[u8]>, endian: Endian, _: Layout) -> BinResult<Self> {
        Self::read_options(reader, endian, ())
    }
}

/// A structure that is read from and written to bytes of either byte order.
pub trait Wire: Sized + Describe + for<'a> BinWrite<Args<'a> = ()> {
    /// The structure's name in this library.
    const NAME: &'static str;

    /// Reads the structure from the position of `reader`.
    fn read_wire(reader: &mut Cursor<&[u8]>, endian: Endian, layout: Layout) -> BinResult<Self>;

    /// Reads the structure from the start of `bytes` and returns it with the number of bytes that it took.
    ///
    /// # Errors
    /// Offsets are relative to `bytes`.
    fn decode(bytes: &[u8], endian: Endian, layout: Layout) -> Result<(Self, usize)> {
        let mut reader = Cursor::new(bytes);
        let value = Self::read_wire(&mut reader, endian, layout)
            .map_err(|e| Error::from_binrw(Self::NAME, bytes.len() as u64, e))?;
        let used = usize::try_from(reader.position()).unwrap_or(bytes.len()).min(bytes.len());
        Ok((value, used))
    }

    /// Appends the structure's bytes to `out`.
    ///
    /// # Errors
    /// A list too long for its count, a string too long for its room.
    fn encode_into(&self, out: &mut Vec<u8>, endian: Endian) -> Result<()> {
        self.write_options(&mut NoSeek::new(out), endian, ()).map_err(|e| Error::from_binrw(Self::NAME, 0, e))
    }

    /// The structure's bytes.
    ///
    /// # Errors
    /// As [`encode_into`](Self::encode_into).
    fn encode(&self, endian: Endian) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.encode_into(&mut out, endian)?;
        Ok(out)
    }
}

/// An element of a counted list.
pub trait Element: for<'a> BinRead<Args<'a> = ()> + for<'a> BinWrite<Args<'a> = ()> + Describe + 'static {
    /// Reads `count` elements; `remaining` bytes are there.
    fn read_many<R: Read + Seek>(reader: &mut R, endian: Endian, count: usize, remaining: u64) -> BinResult<Vec<Self>> {
        // Reserves no more than the input can fill, whatever an element takes in memory.
        let mut list = Vec::with_capacity(count.min(usize::try_from(remaining / 8).unwrap_or(0)));
        for _ in 0..count {
            list.push(Self::read_options(reader, endian, ())?);
        }
        Ok(list)
    }

    /// Writes all elements.
    fn write_many<W: Write + Seek>(list: &[Self], writer: &mut W, endian: Endian) -> BinResult<()> {
        list.iter().try_for_each(|item| item.write_options(writer, endian, ()))
    }

    /// Tells `visitor` all elements.
    fn describe_many(list: &[Self], name: &'static str, style: Style, visitor: &mut dyn Visitor) {
        list.describe(name, style, visitor);
    }
}

/// Implements [`Element`] for declared structures.
macro_rules! elements {
    ($($name:ty),*) => { $(impl $crate::wire::Element for $name {})* };
}
pub(crate) use elements;
elements!(u16, u32, Str, CStr);

impl<C: Count, T: Element> Element for Counted<C, T> {}

impl Element for u8 {
    fn read_many<R: Read + Seek>(reader: &mut R, _: Endian, count: usize, remaining: u64) -> BinResult<Vec<u8>> {
        read_exact(reader, count as u64, remaining)
    }

    fn write_many<W: Write + Seek>(list: &[u8], writer: &mut W, _: Endian) -> BinResult<()> {
        Ok(writer.write_all(list)?)
    }

    fn describe_many(list: &[u8], name: &'static str, style: Style, v: &mut dyn Visitor) {
        v.leaf(name, list.len(), Leaf::raw(list, style));
    }
}

/// Callchains, registers, ids: read and written as one block.
impl Element for u64 {
    fn read_many<R: Read + Seek>(reader: &mut R, endian: Endian, count: usize, remaining: u64) -> BinResult<Vec<u64>> {
        let bytes = read_exact(reader, (count as u64).saturating_mul(8), remaining)?;
        Ok(decode_words(&bytes, endian))
    }

    fn write_many<W: Write + Seek>(list: &[u64], writer: &mut W, endian: Endian) -> BinResult<()> {
        let mut block = [0; 1024];
        for words in list.chunks(block.len() / 8) {
            for (bytes, word) in block.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *bytes = if endian == Endian::Little { word.to_le_bytes() } else { word.to_be_bytes() };
            }
            writer.write_all(block.get(..words.len() * 8).unwrap_or(&block))?;
        }
        Ok(())
    }
}

/// The numbers in `bytes`; bytes that make no whole number are left out.
pub fn decode_words(bytes: &[u8], endian: Endian) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    match endian {
        Endian::Little => words.iter().map(|w| u64::from_le_bytes(*w)).collect(),
        Endian::Big => words.iter().map(|w| u64::from_be_bytes(*w)).collect(),
    }
}

/// The bytes of `words`.
pub fn encode_words(words: &[u64], endian: Endian) -> Vec<u8> {
    let bytes = |word: &u64| if endian == Endian::Little { word.to_le_bytes() } else { word.to_be_bytes() };
    words.iter().flat_map(bytes).collect()
}

/// Bytes between the reader's position and its end.
pub(crate) fn remaining<R: Read + Seek>(reader: &mut R) -> BinResult<u64> {
    let here = reader.stream_position()?;
    let end = reader.seek(std::io::SeekFrom::End(0))?;
    reader.seek(std::io::SeekFrom::Start(here))?;
    Ok(end.saturating_sub(here))
}

fn short<R: Seek>(reader: &mut R, needed: u64, available: u64) -> binrw::Error {
    let pos = reader.stream_position().unwrap_or(0);
    binrw::Error::Custom { pos, err: Box::new(WireError::Short { needed, available }) }
}

/// Exactly `len` bytes, once it is known that they are there.
pub(crate) fn read_exact<R: Read + Seek>(reader: &mut R, len: u64, remaining: u64) -> BinResult<Vec<u8>> {
    let size = usize::try_from(len).ok().filter(|_| len <= remaining);
    let Some(size) = size else { return Err(short(reader, len, remaining)) };
    let mut bytes = vec![0; size];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// `count` elements, `count` being a number from the input.
pub(crate) fn read_list<T: Element, R: Read + Seek>(reader: &mut R, endian: Endian, count: u64) -> BinResult<Vec<T>> {
    let remaining = remaining(reader)?;
    // Every element takes a byte or more.
    let size = usize::try_from(count).ok().filter(|_| count <= remaining);
    let Some(size) = size else { return Err(short(reader, count, remaining)) };
    T::read_many(reader, endian, size, remaining)
}

/// A number that counts elements or bytes.
pub trait Count:
    for<'a> BinRead<Args<'a> = ()> + for<'a> BinWrite<Args<'a> = ()> + TryFrom<usize> + Into<u64> + 'static
{
}
impl Count for u8 {}
impl Count for u16 {}
impl Count for u32 {}
impl Count for u64 {}

/// A list with its length in front: a count of type `C`, then that many `T`.
pub struct Counted<C, T> {
    items: Vec<T>,
    count: PhantomData<C>,
}

impl<C, T> From<Vec<T>> for Counted<C, T> {
    fn from(items: Vec<T>) -> Self {
        Counted { items, count: PhantomData }
    }
}

impl<C, T> Counted<C, T> {
    /// The elements, without their count.
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
    fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
        let Ok(count) = C::try_from(self.len()) else {
            return Err(short(writer, self.len() as u64, u64::MAX >> (64 - 8 * size_of::<C>())));
        };
        count.write_options(writer, endian, ())?;
        T::write_many(self, writer, endian)
    }
}

impl<C, T: Element> Describe for Counted<C, T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        v.leaf(name, size_of::<C>(), Leaf::Count(self.len() as u64));
        T::describe_many(self, name, style, v);
    }
}

/// Declares lists whose count does not stand in front of them.
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
    /// Elements whose count stands elsewhere in the structure: the argument.
    List,
    /// Elements that need the layout (or other arguments) themselves; their count stands elsewhere in the structure.
    LayoutList,
    /// Such elements up to the end of the structure's bytes, each taking a given number of bytes or more; fewer stay
    /// behind the list.
    LayoutToEnd,
    /// Elements up to the end of the structure's bytes, of the given wire size; bytes that make no whole element stay
    /// behind the list.
    ToEnd
}

impl<T: Element> BinRead for List<T> {
    type Args<'a> = (u64,);
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (count,): (u64,)) -> BinResult<Self> {
        read_list(reader, endian, count).map(List)
    }
}

impl<T: Element> BinWrite for List<T> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
        T::write_many(&self.0, writer, endian)
    }
}

impl<T: Element> Describe for List<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        T::describe_many(&self.0, name, style, v);
    }
}

impl<T: BinRead> BinRead for LayoutList<T>
where
    for<'a> T::Args<'a>: Clone,
{
    type Args<'a> = (u64, T::Args<'a>);
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (count, args): Self::Args<'_>) -> BinResult<Self> {
        let remaining = remaining(reader)?;
        if count > remaining {
            return Err(short(reader, count, remaining));
        }
        (0..count).map(|_| T::read_options(reader, endian, args.clone())).collect::<BinResult<_>>().map(LayoutList)
    }
}

impl<T: BinRead> BinRead for LayoutToEnd<T>
where
    for<'a> T::Args<'a>: Clone,
{
    /// The fewest bytes of an element, and what each needs.
    type Args<'a> = (u64, T::Args<'a>);
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (least, args): Self::Args<'_>) -> BinResult<Self> {
        let mut list = Vec::new();
        while remaining(reader)? >= least.max(1) {
            list.push(T::read_options(reader, endian, args.clone())?);
        }
        Ok(LayoutToEnd(list))
    }
}

/// What lists with elements of their own needs have in common.
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
    )* };
}
layout_lists!(LayoutList, LayoutToEnd);

impl<T: Element> BinRead for ToEnd<T> {
    /// Wire size of one element in bytes.
    type Args<'a> = (u64,);
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (size,): (u64,)) -> BinResult<Self> {
        let count = remaining(reader)?.checked_div(size).unwrap_or(0);
        read_list(reader, endian, count).map(ToEnd)
    }
}

impl<T: Element> BinWrite for ToEnd<T> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
        T::write_many(&self.0, writer, endian)
    }
}

impl<T: Element> Describe for ToEnd<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        T::describe_many(&self.0, name, style, v);
    }
}

/// A structure in a room of given size: it ends where the room ends, whatever lies behind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Room<T>(pub T);

impl<T> Deref for Room<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Room<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Wire> BinRead for Room<T> {
    /// Bytes of the room, and the structure's layout.
    type Args<'a> = (u64, Layout);
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (len, layout): (u64, Layout)) -> BinResult<Self> {
        let pos = reader.stream_position()?;
        let remaining = remaining(reader)?;
        let bytes = read_exact(reader, len, remaining)?;
        let invalid = |err| binrw::Error::Custom { pos, err: Box::new(err) };
        match T::decode(&bytes, endian, Layout { len, ..layout }) {
            Ok((value, used)) if used == bytes.len() => Ok(Room(value)),
            Ok((_, used)) => {
                Err(invalid(Error::invalid(T::NAME, "size", len.to_string(), format!("{used}, its content")).at(0)))
            }
            Err(error) => Err(invalid(error)),
        }
    }
}

impl<T: Wire> BinWrite for Room<T> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
        self.0.write_options(writer, endian, ())
    }
}

impl<T: Describe> Describe for Room<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        self.0.describe(name, style, v);
    }
}

/// How many raw bytes a field has.
#[derive(Debug, Clone, Copy, Default)]
pub enum Extent {
    /// All up to the end of the structure's bytes.
    #[default]
    ToEnd,
    /// This many bytes.
    Bytes(u64),
    /// Up to this offset in the structure.
    UpTo(u64),
}

/// Raw bytes, up to the end of the structure's bytes where its [`Extent`] says nothing else.
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

/// The bytes before the first NUL.
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&b| b == 0).next().unwrap_or(bytes)
}

/// Declares string types that differ only in how their room is found.
macro_rules! texts {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $name(pub Vec<u8>);

        impl $name {
            /// The text: the bytes before the first NUL, in the recording machine's encoding.
            pub fn text(&self) -> &[u8] {
                until_nul(&self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&String::from_utf8_lossy(self.text()))
            }
        }
    )* };
}

texts! {
    /// A NUL-terminated string with everything behind it up to the end of the structure's bytes: the padding to 8,
    /// which may hold stale bytes.
    Text,
    /// A string with its room in front as a `u32`: text, NUL and filling (perf rounds the room up to 64).
    Str,
    /// A NUL-terminated string without padding; kept here with its NUL.
    CStr,
}

impl Text {
    /// `text` with a NUL and zeros up to a multiple of `align` bytes.
    pub fn padded(text: &[u8], align: usize) -> Self {
        let mut room = text.to_vec();
        room.resize((text.len() + 1).next_multiple_of(align.max(1)), 0);
        Text(room)
    }
}

impl Str {
    /// `text` in the room that perf gives it: text and NUL rounded up to 64 bytes.
    pub fn new(text: &[u8]) -> Self {
        Str(Text::padded(text, 64).0)
    }
}

impl CStr {
    /// `text` with its NUL.
    pub fn new(text: &[u8]) -> Self {
        CStr(Text::padded(text, 1).0)
    }
}

impl BinRead for Text {
    type Args<'a> = ();
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (): ()) -> BinResult<Self> {
        Rest::read_options(reader, endian, Extent::ToEnd).map(|rest| Text(rest.0))
    }
}

impl BinWrite for Text {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, _: Endian, (): ()) -> BinResult<()> {
        Ok(writer.write_all(&self.0)?)
    }
}

impl Describe for Text {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, self.0.len(), Leaf::Text(&self.0));
    }
}

impl BinRead for Str {
    type Args<'a> = ();
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (): ()) -> BinResult<Self> {
        Counted::<u32, u8>::read_options(reader, endian, ()).map(|room| Str(room.into_inner()))
    }
}

impl BinWrite for Str {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
        let Ok(len) = u32::try_from(self.0.len()) else {
            return Err(short(writer, self.0.len() as u64, u64::from(u32::MAX)));
        };
        len.write_options(writer, endian, ())?;
        Ok(writer.write_all(&self.0)?)
    }
}

impl Describe for Str {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, 4, Leaf::Count(self.0.len() as u64));
        v.leaf(name, self.0.len(), Leaf::Text(&self.0));
    }
}

impl BinRead for CStr {
    type Args<'a> = ();
    fn read_options<R: Read + Seek>(reader: &mut R, _: Endian, (): ()) -> BinResult<Self> {
        let mut bytes = Vec::new();
        loop {
            let mut byte = [0];
            reader.read_exact(&mut byte)?;
            bytes.push(byte[0]);
            if byte[0] == 0 {
                return Ok(CStr(bytes));
            }
        }
    }
}

impl BinWrite for CStr {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, _: Endian, (): ()) -> BinResult<()> {
        Ok(writer.write_all(&self.0)?)
    }
}

impl Describe for CStr {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, self.0.len(), Leaf::Text(&self.0));
    }
}

/// A string in a room of fixed size; not always terminated.
#[binrw::binrw]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chars<const N: usize>(pub [u8; N]);

impl<const N: usize> Chars<N> {
    /// The text: the bytes before the first NUL, or all.
    pub fn text(&self) -> &[u8] {
        until_nul(&self.0)
    }
}

impl<const N: usize> Describe for Chars<N> {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, N, Leaf::Text(&self.0));
    }
}
