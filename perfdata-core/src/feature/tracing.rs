//! Tracing data: stored by trace-cmd and perf to decode the payload of tracepoints
//! (tools/perf/util/trace-event-info.c, `tracing_data_get`; read by util/trace-event-read.c).
//!
//! Its header contains its own byte order, which stays the same when the recording is converted to
//! another byte order. Its length is not stored anywhere.

use std::borrow::Cow;
use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::codes::codes;
use crate::content::{Content, Rewrite, Rewriter};
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::error::{Result, WireError};
use crate::values::{FromValues, Values};
use crate::wire::{CStr, Count, Counted, Element, Wire, elements, until_nul, wire, wire_plain};

codes! {
    /// Byte order of the numbers in tracing data.
    pub struct ByteOrder: u8 {
        0 LITTLE "little",
        1 BIG "big",
    }
}

/// Constant bytes; the argument is the expected value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<const N: usize>(pub [u8; N]);

/// The start of tracing data.
const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";
/// The name of the layout of a page.
const HEADER_PAGE: &[u8; 12] = b"header_page\0";
/// The name of the layout of an event.
const HEADER_EVENT: &[u8; 13] = b"header_event\0";

impl Default for Word<10> {
    fn default() -> Self {
        Word(*MAGIC)
    }
}

impl Default for Word<12> {
    fn default() -> Self {
        Word(*HEADER_PAGE)
    }
}

impl Default for Word<13> {
    fn default() -> Self {
        Word(*HEADER_EVENT)
    }
}

impl<const N: usize> BinRead for Word<N> {
    type Args<'a> = (&'static [u8; N],);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (expected,): Self::Args<'_>,
    ) -> BinResult<Self> {
        let pos = reader.stream_position()?;
        let found = <[u8; N]>::read_options(reader, endian, ())?;
        let text = |bytes: &[u8]| format!("`{}`", bytes.escape_ascii());
        if found == *expected {
            Ok(Word(found))
        } else {
            Err(invalid(pos, text(&found), text(expected)))
        }
    }
}

fn invalid(pos: u64, found: String, expected: impl Into<Cow<'static, str>>) -> binrw::Error {
    binrw::Error::Custom {
        pos,
        err: Box::new(WireError::Invalid {
            found,
            expected: expected.into(),
        }),
    }
}

impl<const N: usize> BinWrite for Word<N> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, _: Endian, (): ()) -> BinResult<()> {
        Ok(writer.write_all(&self.0)?)
    }
}

impl<const N: usize> FromValues for Word<N> {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        _: Style,
        (expected,): Self::Args<'_>,
    ) -> Self {
        if values.text(name, N) != until_nul(expected) {
            values.refuse(format!(
                "{name} is not {}",
                until_nul(expected).escape_ascii()
            ));
        }
        Word(*expected)
    }
}

impl<const N: usize> Describe for Word<N> {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, N, Leaf::Text(&self.0));
    }
}

/// A constant has no content.
impl<const N: usize> Rewrite for Word<N> {
    const NEEDS_CONTENT: bool = false;
    fn rewrite(&mut self, _: &'static str, _: Content, _: &mut dyn Rewriter) {}
}

wire! {
    /// Header (`tracing_data_header`).
    pub struct TracingHeader {
        /// `17 08 44`, then `tracing`.
        #[br(args(MAGIC))]
        pub magic: Word<10>,
        /// `0.5`, since 4.16 `0.6`.
        pub version: CStr => Number,
        /// Byte order of all numbers that follow.
        pub byte_order: ByteOrder,
        /// Size of a `long` in bytes in the perf that recorded.
        pub long_size: u8 => Number,
    }
}

impl TracingHeader {
    /// Returns the byte order of the data that follows.
    fn endian(&self) -> Option<Endian> {
        match self.byte_order {
            ByteOrder::LITTLE => Some(Endian::Little),
            ByteOrder::BIG => Some(Endian::Big),
            _ => None,
        }
    }

    /// Returns whether command names follow at the end.
    fn has_saved_cmdlines(&self) -> bool {
        self.version
            .to_string()
            .parse::<f32>()
            .is_ok_and(|version| version >= 0.6)
    }
}

/// A file of tracefs, preceded by its size as a number of type `C`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct File<C>(pub Counted<C, u8>);

impl<C: Count> BinRead for File<C> {
    type Args<'a> = ();
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (): ()) -> BinResult<Self> {
        Counted::read_options(reader, endian, ()).map(File)
    }
}

impl<C: Count> BinWrite for File<C> {
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

impl<C: Count> FromValues for File<C> {
    fn from_values(values: &mut dyn Values, name: &'static str, _: Style, (): ()) -> Self {
        File(FromValues::from_values(values, name, Style::Text, ()))
    }
}

impl<C: Count> Describe for File<C> {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.leaf(name, size_of::<C>(), Leaf::Count(self.0.len() as u64));
        v.leaf(name, self.0.len(), Leaf::Text(&self.0));
    }
}

impl<C: Count> Rewrite for File<C> {
    const NEEDS_CONTENT: bool = true;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        if let Some(new) = rewriter.text(name, &self.0, usize::MAX, content) {
            self.0 = new.into();
        }
    }
}

impl<C: Count> Element for File<C> {}

wire! {
    /// The recorded events of one subsystem (`record_event_files`).
    pub struct EventSystem {
        /// Subsystem: `sched`.
        pub name: CStr => EventName,
        /// `format` file of each event.
        pub formats: Counted<u32, File<u64>> => Format,
    }
}

elements!(EventSystem);

wire! {
    /// Everything after the header.
    pub struct TracingBody(saved_cmdlines: bool) {
        /// Page size of the recording machine in bytes.
        pub page_size: u32 => Number,
        /// The string `header_page`.
        #[br(args(HEADER_PAGE))]
        pub header_page_name: Word<12>,
        /// `events/header_page`: layout of a ring-buffer page (`record_header_files`).
        pub header_page: File<u64> => Format,
        /// The string `header_event`.
        #[br(args(HEADER_EVENT))]
        pub header_event_name: Word<13>,
        /// `events/header_event`: layout of a ring-buffer event.
        pub header_event: File<u64> => Format,
        /// `format` files of ftrace's own events (`record_ftrace_files`); empty in practice.
        pub ftrace_formats: Counted<u32, File<u64>> => Format,
        /// The other events, by subsystem.
        pub systems: Counted<u32, EventSystem>,
        /// /proc/kallsyms; empty since 4.5 (`record_proc_kallsyms`).
        pub kallsyms: File<u32> => KernelTable,
        /// `printk_formats`: addresses of format strings (`record_ftrace_printk`).
        pub printk_formats: File<u32> => KernelTable,
        /// `saved_cmdlines`: names of tasks (4.16, `record_saved_cmdline`).
        #[br(if(saved_cmdlines))]
        pub saved_cmdlines: Option<File<u64>> => KernelTable,
    }
}

/// Complete tracing data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TracingData {
    /// Header, which contains the byte order of the body.
    pub header: TracingHeader,
    /// Everything after the header.
    pub body: TracingBody,
}

impl BinRead for TracingData {
    type Args<'a> = ();
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (): ()) -> BinResult<Self> {
        let header = TracingHeader::read_options(reader, endian, ())?;
        let Some(own) = header.endian() else {
            // The byte order precedes the size of a long.
            let pos = reader.stream_position()?.saturating_sub(2);
            return Err(invalid(
                pos,
                format!("byte order {}", header.byte_order),
                "0 or 1",
            ));
        };
        let body = TracingBody::read_options(reader, own, header.has_saved_cmdlines())?;
        Ok(TracingData { header, body })
    }
}

impl BinWrite for TracingData {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        self.header.write_options(writer, endian, ())?;
        self.body
            .write_options(writer, self.header.endian().unwrap_or(endian), ())
    }
}

impl FromValues for TracingData {
    fn from_values(values: &mut dyn Values, name: &'static str, style: Style, (): ()) -> Self {
        values.begin(name);
        let header = TracingHeader::from_values(values, "header", style, ());
        let body = TracingBody::from_values(values, "body", style, header.has_saved_cmdlines());
        values.end();
        TracingData { header, body }
    }
}

impl Describe for TracingData {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        v.begin(name);
        self.header.describe("header", style, v);
        self.body.describe("body", style, v);
        v.end();
    }
}

impl Rewrite for TracingData {
    const NEEDS_CONTENT: bool = false;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        rewriter.begin(name);
        self.header.rewrite("header", content, rewriter);
        self.body.rewrite("body", content, rewriter);
        rewriter.end();
    }
}

wire_plain!(TracingData);

/// Returns the length in bytes of the tracing data at the start of `bytes`. Other bytes may follow
/// it.
///
/// # Errors
/// Fails if the tracing data is malformed or longer than `bytes`. Offsets are relative to `bytes`.
pub fn len(bytes: &[u8]) -> Result<usize> {
    TracingData::decode(bytes, Endian::Little, DecodeContext::default()).map(|(_, len)| len)
}
