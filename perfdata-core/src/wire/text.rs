//! Text: NUL-terminated strings with several kinds of length and padding.

use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use super::{Counted, Extent, Rest, short};
use crate::content::{Content, Rewrite, Rewriter, rewrite_fixed_text, rewrite_text};
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::values::{FromValues, Values};

/// Returns the bytes before the first NUL.
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&b| b == 0).next().unwrap_or(bytes)
}

/// Declares string types that differ only in how their length is determined. A new text is padded
/// to a multiple of `align` bytes.
macro_rules! texts {
    ($($(#[$meta:meta])* $name:ident align $align:literal),* $(,)?) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $name(pub Vec<u8>);

        impl $name {
            /// Returns the text: the bytes before the first NUL, in the recording machine's
            /// encoding.
            pub fn text(&self) -> &[u8] {
                until_nul(&self.0)
            }
        }

        impl Rewrite for $name {
            const NEEDS_CONTENT: bool = true;
            fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
                rewrite_text(&mut self.0, $align, name, content, rewriter);
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
    /// A NUL-terminated string with all bytes after it up to the end of the structure: the padding
    /// to 8, which may contain stale bytes.
    Text align 8,
    /// A string preceded by its length as a `u32`: text, NUL and padding (perf rounds the length up
    /// to a multiple of 64).
    HeaderString align 64,
    /// A NUL-terminated string without padding; the value includes the NUL.
    CStr align 1,
}

impl Text {
    /// Returns `text` with a NUL and zeros up to a multiple of `align` bytes.
    pub fn padded(text: &[u8], align: usize) -> Self {
        let mut room = text.to_vec();
        room.resize(
            text.len().saturating_add(1).next_multiple_of(align.max(1)),
            0,
        );
        Text(room)
    }
}

impl HeaderString {
    /// Returns `text` with the padding of perf: text and NUL are rounded up to a multiple of 64
    /// bytes.
    pub fn new(text: &[u8]) -> Self {
        HeaderString(Text::padded(text, 64).0)
    }
}

impl CStr {
    /// Returns `text` with its NUL.
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

impl FromValues for Text {
    fn from_values(values: &mut dyn Values, name: &'static str, _: Style, (): ()) -> Self {
        Text(values.text(name, usize::MAX))
    }
}

impl Describe for Text {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, self.0.len(), Leaf::Text(&self.0));
    }
}

impl BinRead for HeaderString {
    type Args<'a> = ();
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (): ()) -> BinResult<Self> {
        Counted::<u32, u8>::read_options(reader, endian, ())
            .map(|room| HeaderString(room.into_inner()))
    }
}

impl BinWrite for HeaderString {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        let Ok(len) = u32::try_from(self.0.len()) else {
            return Err(short(writer, self.0.len() as u64, u64::from(u32::MAX)));
        };
        len.write_options(writer, endian, ())?;
        Ok(writer.write_all(&self.0)?)
    }
}

impl FromValues for HeaderString {
    fn from_values(values: &mut dyn Values, name: &'static str, _: Style, (): ()) -> Self {
        HeaderString::new(&values.text(name, usize::MAX))
    }
}

impl Describe for HeaderString {
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

impl FromValues for CStr {
    fn from_values(values: &mut dyn Values, name: &'static str, _: Style, (): ()) -> Self {
        CStr::new(&values.text(name, usize::MAX))
    }
}

impl Describe for CStr {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, self.0.len(), Leaf::Text(&self.0));
    }
}

/// A string in a field of fixed size; not always NUL-terminated.
#[binrw::binrw]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chars<const N: usize>(pub [u8; N]);

impl<const N: usize> Default for Chars<N> {
    fn default() -> Self {
        Chars([0; N])
    }
}

impl<const N: usize> Chars<N> {
    /// Returns the text: the bytes before the first NUL, or all bytes.
    pub fn text(&self) -> &[u8] {
        until_nul(&self.0)
    }
}

impl<const N: usize> FromValues for Chars<N> {
    fn from_values(values: &mut dyn Values, name: &'static str, _: Style, (): ()) -> Self {
        Chars(FromValues::from_values(values, name, Style::Text, ()))
    }
}

impl<const N: usize> Describe for Chars<N> {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, N, Leaf::Text(&self.0));
    }
}

impl<const N: usize> Rewrite for Chars<N> {
    const NEEDS_CONTENT: bool = true;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        rewrite_fixed_text(&mut self.0, name, content, rewriter);
    }
}
