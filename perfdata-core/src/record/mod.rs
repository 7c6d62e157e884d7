//! Records: the content of the data section of a file, or of a pipe.
//!
//! A [`RawRecord`] borrows the bytes of one record; [`Record`] is its typed form. All record types
//! are lines of one table, [`TABLE`].
//!
//! All structures have a default, whose numbers are 0 and whose texts are empty:
//!
//! ```
//! use perfdata_core::Endian;
//! use perfdata_core::record::{Body, Mmap, Record};
//! use perfdata_core::wire::Text;
//!
//! # fn main() -> perfdata_core::Result<()> {
//! let filename = Text::padded(b"/bin/true", 8);
//! let mmap = Mmap { pid: 7, tid: 7, addr: 0x1000, len: 0x1000, filename, ..Mmap::default() };
//! let bytes = Record::new(Body::Mmap(mmap)).encode(Endian::Little)?;
//! assert_eq!(bytes.len(), 8 + 32 + 16);
//! # Ok(())
//! # }
//! ```
//!
//! The kernel's records (1 to 63) are declared in include/uapi/linux/perf_event.h,
//! `enum perf_event_type`; perf's own (from 64 on) in tools/lib/perf/include/perf/event.h,
//! `enum perf_user_event_type`. The content of AUXTRACE_INFO is declared next to each decoder in
//! tools/perf/util, the content of the records of `perf sched stats` in schedstat-v15.h to -v17.h
//! next to event.h.

mod auxtrace;
mod auxtrace_info;
mod checked;
pub(crate) mod choice;
pub(crate) mod fixed;
mod kernel;
mod maps;
mod numbers;
mod parts;
mod raw_record;
mod registers;
mod sample;
mod sample_id;
mod sample_offsets;
mod sample_parts;
mod sample_template;
mod sample_view;
mod schedstat;
mod stat;
mod table;
mod user;
mod words;

pub use auxtrace::*;
pub use auxtrace_info::*;
pub use fixed::{FixedRecord, MappingView};
pub use kernel::*;
pub use maps::*;
pub use raw_record::{RawRecord, RecordHeader};
pub use registers::Registers;
pub use sample::Sample;
pub use sample_id::*;
pub use sample_offsets::SampleOffsets;
pub use sample_parts::*;
pub use sample_template::SampleTemplate;
pub use sample_view::{SampleView, UserParts};
pub use schedstat::*;
pub use stat::*;
pub use table::*;
pub use user::*;
pub use words::Words;

use binrw::Endian;

use crate::attr::SampleType;
use crate::content::{Content, Rewrite, Rewriter};
use crate::decode_context::DecodeContext;
use crate::describe::{self, Describe, Leaf, Opaque, Style, Visitor};
use crate::error::{Error, Result};
use crate::recording::Events;
use crate::wire::Wire;

/// Whether `time`, that of a record in nanoseconds, says when something happened: perf takes a
/// record whose time is 0 or all ones as it comes.
#[inline]
pub const fn is_known_time(time: u64) -> bool {
    time != 0 && time != u64::MAX
}

/// Returns whether something happened at `time`, that of a record in nanoseconds: it is known, and
/// not the time that perf gives to samples that it makes itself at the end of a recording with
/// `--off-cpu`, so that they come last (tools/perf/util/bpf_off_cpu.c, Linux 6.2).
#[inline]
pub const fn is_moment(time: u64) -> bool {
    const OFF_CPU: u64 = 0xffff_ffff_0000_0000;
    is_known_time(time) && time < OFF_CPU
}

/// A record with all its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Type, which determines the variant of `body`.
    pub kind: RecordType,
    /// CPU mode and flags.
    pub misc: u16,
    /// The fields.
    pub body: Body,
    /// Bytes after the last known field: fields of a longer, newer form of the record.
    pub tail: Vec<u8>,
    /// The trailer of kernel records.
    pub sample_id: Option<SampleId>,
}

impl Record {
    /// Returns a record with these fields, of their type; of type 0 if they are [`Body::Unknown`],
    /// whose type is not known. `misc` is 0, and there is no trailer.
    pub fn new(body: Body) -> Self {
        let kind = body.kind().unwrap_or_default();
        Record {
            kind,
            misc: 0,
            body,
            tail: Vec::new(),
            sample_id: None,
        }
    }

    /// Returns the record with this `misc`: CPU mode and flags.
    #[must_use]
    pub fn with_misc(self, misc: u16) -> Self {
        Record { misc, ..self }
    }

    /// Returns the record with this trailer.
    #[must_use]
    pub fn with_sample_id(self, sample_id: SampleId) -> Self {
        Record {
            sample_id: Some(sample_id),
            ..self
        }
    }

    /// Decodes `raw`, which belongs to an event with `layout`.
    ///
    /// # Errors
    /// Fails if the body is too short for its fields, or a count exceeds it.
    pub fn decode(raw: &RawRecord<'_>, layout: &DecodeContext) -> Result<Self> {
        let whole = raw.body();
        let (body_len, trailer_len) = extents(raw, layout)?;
        let body = whole.get(..body_len).unwrap_or(whole);
        let layout = layout.of_body(raw, body);
        let (body, used) = decode_body(raw, body, layout)?;
        let trailer_at = whole.len().saturating_sub(trailer_len);
        let tail = whole.get(used..trailer_at).unwrap_or_default().to_vec();
        let sample_id = match whole.get(trailer_at..) {
            Some(bytes) if trailer_len > 0 => Some(
                SampleId::decode(bytes, raw.endian, layout)
                    .map_err(|e| raw.blame(e))?
                    .0,
            ),
            _ => None,
        };
        Ok(Record {
            kind: raw.kind,
            misc: raw.misc,
            body,
            tail,
            sample_id,
        })
    }

    /// Appends the record's bytes, with a computed size. All parts are written as they are. A
    /// reader decodes the record according to the event's attribute, so a [`Sample`] and a
    /// [`SampleId`] must have exactly the parts in `sample_type`, and `body` must match `kind`.
    /// [`encode_for`](Self::encode_for) ensures this.
    ///
    /// # Errors
    /// Fails if the record exceeds 65,535 bytes.
    pub fn encode_into(&self, out: &mut Vec<u8>, endian: Endian) -> Result<()> {
        let start = out.len();
        RecordHeader {
            kind: self.kind,
            misc: self.misc,
            size: 0,
        }
        .encode_into(out, endian)?;
        self.body.encode_into(out, endian)?;
        out.extend_from_slice(&self.tail);
        if let Some(id) = &self.sample_id {
            id.encode_into(out, endian)?;
        }
        let len = out.len().saturating_sub(start);
        let Ok(size) = u16::try_from(len) else {
            out.truncate(start);
            return Err(Error::invalid(
                format!("{} record", self.kind),
                "size",
                len.to_string(),
                "at most 65535",
            ));
        };
        RecordHeader::put_size(out.get_mut(start..).unwrap_or_default(), size, endian);
        Ok(())
    }

    /// Returns the first part of the record that might be wrong when it is encoded in another byte
    /// order than it was decoded in. The offset is relative to the record's header.
    pub fn opaque(&self) -> Option<Opaque> {
        let mut found = describe::opaque(self)?;
        found.offset = found.offset.saturating_add(RecordHeader::SIZE);
        Some(found)
    }

    /// Returns which event IDs the fields and the trailer of the record contain. A HEADER_ATTR
    /// record, which assigns IDs to an event, counts as having none; an ID of 0, as in records
    /// about the time before the recording, belongs to no particular event.
    pub fn event_ids(&self, events: &Events) -> EventIds {
        let mut ids = IdsOf {
            events,
            found: EventIds::default(),
        };
        if !matches!(self.body, Body::HeaderAttr(_)) && events.have_ids() {
            self.describe("", Style::Plain, &mut ids);
        }
        ids.found
    }

    /// Returns the record's bytes.
    ///
    /// # Errors
    /// Fails like [`encode_into`](Self::encode_into).
    pub fn encode(&self, endian: Endian) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.encode_into(&mut out, endian)?;
        Ok(out)
    }
}

impl Body {
    /// Returns the thread that a record is about, if it is about a thread or its mappings:
    /// [`RecordType::is_of_thread`].
    pub fn tid(&self) -> Option<Tid> {
        let (pid, tid) = match self {
            Body::Comm(record) => (record.pid, record.tid),
            Body::Fork(task) | Body::Exit(task) => (task.pid, task.tid),
            Body::Mmap(map) => (map.pid, map.tid),
            Body::Mmap2(map) => (map.pid, map.tid),
            Body::Namespaces(record) => (record.pid, record.tid),
            _ => return None,
        };
        Some(Tid { pid, tid })
    }
}

impl RecordType {
    /// Returns whether records of this type are about a thread or its mappings.
    #[inline]
    pub const fn is_of_thread(self) -> bool {
        matches!(
            self,
            RecordType::COMM
                | RecordType::FORK
                | RecordType::EXIT
                | RecordType::MMAP
                | RecordType::MMAP2
                | RecordType::NAMESPACES
        )
    }
}

/// The event IDs in a record; empty if the events have no IDs, which a single event does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventIds {
    /// Whether the record contains the ID of an event.
    pub known: bool,
    /// The last ID that belongs to no event.
    pub unknown: Option<u64>,
}

impl EventIds {
    #[inline]
    fn add(&mut self, id: u64, events: &Events) {
        match events.of_id(id) {
            None => self.unknown = Some(id),
            Some(_) => self.known |= id != 0,
        }
    }
}

/// Searches for event IDs.
struct IdsOf<'a> {
    events: &'a Events,
    found: EventIds,
}

impl Visitor for IdsOf<'_> {
    fn begin(&mut self, _: &'static str) {}
    fn begin_list(&mut self, _: &'static str, _: usize) {}
    fn end(&mut self) {}
    fn words(&mut self, name: &'static str, words: &[u64], style: Style) {
        if style == Style::Id {
            words
                .iter()
                .for_each(|&word| self.leaf(name, size_of::<u64>(), Leaf::Uint(word, style)));
        }
    }
    fn leaf(&mut self, _: &'static str, _: usize, value: Leaf<'_>) {
        if let Leaf::Uint(id, Style::Id) = value {
            self.found.add(id, self.events);
        }
    }
}

/// Returns the size in bytes of the body of `raw` and of its trailer, between which other bytes may
/// remain. Every kernel record except SAMPLE has a trailer if its attribute requires it. The build
/// IDs that perf inject writes since 6.12 always have one: their size, a multiple of 8,
/// distinguishes them from older ones, and the values of the trailer distinguish it from zeros
/// after the name.
fn extents(raw: &RawRecord<'_>, layout: &DecodeContext) -> Result<(usize, usize)> {
    let len = raw.body().len();
    let trailer = match raw.kind {
        RecordType::SAMPLE => 0,
        // Unknown types probably have a trailer, too.
        kind if kind.is_kernel() && (kind.info().is_some() || layout.trailer_len() <= len) => {
            layout.trailer_len()
        }
        RecordType::HEADER_BUILD_ID if len.is_multiple_of(8) => {
            let body = BuildId::aligned_len(raw.body()).unwrap_or(len).min(len);
            let trailer = SampleId::len(layout.sample_type);
            let is_filling = raw
                .body()
                .get(body..)
                .unwrap_or_default()
                .iter()
                .all(|&byte| byte == 0);
            return Ok(if body.saturating_add(trailer) == len && !is_filling {
                (body, trailer)
            } else {
                (len, 0)
            });
        }
        _ => 0,
    };
    match len.checked_sub(trailer) {
        Some(body) => Ok((body, trailer)),
        None => Err(raw.blame(Error::truncated("", trailer as u64, len as u64).field("sample_id"))),
    }
}

/// Decodes a body and returns the number of bytes used. Only a SAMPLE whose branch stack does not
/// have the announced form can be decoded in several ways; the one that uses all bytes is correct.
fn decode_body(raw: &RawRecord<'_>, bytes: &[u8], layout: DecodeContext) -> Result<(Body, usize)> {
    if raw.kind != RecordType::SAMPLE {
        return Body::decode(raw.kind, bytes, raw.endian, layout).map_err(|e| raw.blame(e));
    }
    let decode = |layout| match Sample::decode(bytes, raw.endian, layout) {
        Ok((sample, used)) => Ok((Body::Sample(sample), used)),
        Err(error) => Err(raw.blame(error)),
    };
    let sample_type = layout.placed_parts();
    if let Some(sample) = Sample::of_words(bytes, raw.endian, sample_type) {
        return Ok((Body::Sample(sample), bytes.len()));
    }
    let layout = DecodeContext {
        sample_type,
        ..layout
    };
    if !sample_type.has(SampleType::BRANCH_STACK) {
        return decode(layout);
    }
    let first = decode(layout);
    let exact =
        |result: &Result<(Body, usize)>| matches!(result, Ok((_, used)) if *used == bytes.len());
    if exact(&first) {
        return first;
    }
    let others = layout.branch_form.candidates().into_iter().skip(1);
    others
        .map(|branch_form| {
            decode(DecodeContext {
                branch_form,
                ..layout
            })
        })
        .find(exact)
        .unwrap_or(first)
}

impl Describe for Record {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.begin(name);
        self.body.describe("", Style::Plain, v);
        if !self.tail.is_empty() {
            v.leaf("tail", self.tail.len(), Leaf::Opaque(&self.tail));
        }
        self.sample_id.describe("sample_id", Style::Plain, v);
        v.end();
    }
}

impl Rewrite for Record {
    const NEEDS_CONTENT: bool = false;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        rewriter.begin(name);
        self.body.rewrite("", content, rewriter);
        if !self.tail.is_empty() {
            rewriter.bytes("tail", &mut self.tail, Content::Unknown);
        }
        self.sample_id.rewrite("sample_id", content, rewriter);
        rewriter.end();
    }
}
