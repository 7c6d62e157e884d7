//! One record as text, as JSON, and with its bytes.

use std::borrow::Cow;
use std::fmt::Write as _;

use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::record::{Body, RawRecord, Record, RecordHeader, Registers, Regs, RegsAbi};
use perfdata_core::wire::Wire;
use perfdata_core::{DecodeContext, Recording};

use super::hex;
use super::misc_names;
use super::text::Line;
use perfdata_convert::json::Json;
use perfdata_convert::support::text::{push_hex, quoted};
use perfdata_session::EventNames;

/// A record, with the data of its recording that describe it.
pub struct Shown<'a> {
    raw: RawRecord<'a>,
    /// Index among the records of a compressed record, if it was in one.
    inner: Option<usize>,
    recording: &'a Recording,
    names: &'a EventNames,
    record: perfdata_core::Result<Record>,
    /// The section in a HEADER_FEATURE record.
    section: Option<Section>,
    /// The registers of the recorded machine.
    registers: Option<&'static Registers>,
}

impl<'a> Shown<'a> {
    /// Decodes `raw`. `names` must be up to date with `recording`.
    pub fn new(
        raw: &RawRecord<'a>,
        inner: Option<usize>,
        recording: &'a Recording,
        names: &'a EventNames,
    ) -> Self {
        let record = Record::decode(raw, &recording.events.layout_of(raw));
        let section = record
            .as_ref()
            .ok()
            .and_then(|record| section_of(record, raw, recording));
        Shown {
            raw: *raw,
            inner,
            recording,
            names,
            record,
            section,
            registers: None,
        }
    }

    /// Adds the names of the `registers`.
    pub fn with_registers(self, registers: Option<&'static Registers>) -> Self {
        Shown { registers, ..self }
    }

    /// Describes the fields to `visitor`. `place` determines where the names of registers appear.
    fn describe_named(&self, record: &Record, place: NamesAt, visitor: &mut dyn Visitor) {
        let names = self.register_names(record);
        if place == NamesAt::Nowhere || names.iter().all(|(_, names)| names.is_empty()) {
            return self.describe(record, visitor);
        }
        self.describe(
            record,
            &mut WithRegisters {
                visitor,
                place,
                names,
                depth: 0,
                inside: None,
            },
        );
    }

    /// Returns the fields of a sample that contain registers, and the names of the registers.
    fn register_names(&self, record: &Record) -> [(&'static str, Vec<&'static str>); 2] {
        let (Body::Sample(sample), Some(registers)) = (&record.body, self.registers) else {
            return Default::default();
        };
        let layout = self.recording.events.layout_of(&self.raw);
        let names = |regs: &Option<Regs>, mask| match regs {
            Some(Regs { abi, regs }) if *abi != RegsAbi::NONE => {
                let names = registers
                    .names(mask, *abi)
                    .map(|name| name.unwrap_or(NO_NAME));
                names.take(regs.len()).collect()
            }
            _ => Vec::new(),
        };
        [
            (
                "regs_user",
                names(&sample.regs_user, layout.sample_regs_user),
            ),
            (
                "regs_intr",
                names(&sample.regs_intr, layout.sample_regs_intr),
            ),
        ]
    }

    /// Returns the name of the event that the record belongs to, according to its ID. Records
    /// without an ID have a name only if there is a single event.
    pub fn event(&self) -> Option<Cow<'_, [u8]>> {
        let event = match &self.record {
            _ if self.raw.kind.is_kernel() => named_event(&self.raw, self.recording),
            Ok(record) => first_id(record).and_then(|id| event_of(id, self.recording)),
            Err(_) => None,
        };
        self.names.get(self.recording, event?)
    }

    /// Describes the fields without the record's header to `visitor`.
    fn describe(&self, record: &Record, visitor: &mut dyn Visitor) {
        match (&record.body, &self.section) {
            (Body::HeaderFeature(feature), Some(section)) => {
                let name = u32::try_from(feature.feat_id)
                    .ok()
                    .and_then(|id| FeatureId(id).name());
                visitor.leaf(
                    "feat_id",
                    size_of_val(&feature.feat_id),
                    Leaf::Code(feature.feat_id, name, FeatureId::NAMES),
                );
                section.value.describe("section", Style::Plain, visitor);
                if !section.tail.is_empty() {
                    visitor.leaf("tail", section.tail.len(), Leaf::Opaque(&section.tail));
                }
            }
            (body, _) => body.describe("", Style::Plain, visitor),
        }
        if !record.tail.is_empty() {
            visitor.leaf("tail", record.tail.len(), Leaf::Opaque(&record.tail));
        }
    }

    /// Describes the fields without the record's header and its trailer to `visitor`, as
    /// [`json`](Self::json) shows them in `fields`. The names of registers follow the registers.
    ///
    /// # Errors
    /// The record cannot be decoded.
    pub fn describe_fields(&self, visitor: &mut dyn Visitor) -> Result<(), &perfdata_core::Error> {
        let record = self.record.as_ref()?;
        self.describe_named(record, NamesAt::Beside, visitor);
        Ok(())
    }

    /// Appends the record on one line.
    pub fn text(&self, out: &mut String) {
        self.title(out);
        out.push(':');
        match &self.record {
            Ok(record) => {
                let event = |id| {
                    self.names
                        .get(self.recording, event_of(id, self.recording)?)
                };
                let mut line = Line::with_events(std::mem::take(out), &event);
                self.describe_named(record, NamesAt::Each, &mut line);
                record
                    .sample_id
                    .describe("sample_id", Style::Plain, &mut line);
                *out = line.out;
            }
            Err(error) => {
                let _ = write!(out, " undecodable=\"{error}\" bytes=");
                push_hex(out, self.raw.body());
            }
        }
        out.push('\n');
    }

    /// Appends offset, type, size, misc and event.
    fn title(&self, out: &mut String) {
        let _ = write!(out, "{:#x}", self.raw.offset);
        if let Some(place) = self.inner {
            let _ = write!(out, "[{place}]");
        }
        let misc = misc_names(self.raw.kind, self.raw.misc);
        let misc = if misc.is_empty() {
            "0".to_owned()
        } else {
            misc.join("|")
        };
        let _ = write!(
            out,
            " {} size={} misc={misc}",
            self.raw.kind,
            self.raw.bytes.len()
        );
        if let Some(name) = self.event() {
            let _ = write!(out, " event={}", quoted(&name));
        }
    }

    /// Appends the record on one line, followed by its bytes.
    pub fn hex(&self, out: &mut String) {
        self.title(out);
        if let Err(error) = &self.record {
            let _ = write!(out, " undecodable=\"{error}\"");
        }
        out.push('\n');
        let offset = if self.inner.is_some() {
            None
        } else {
            Some(self.raw.offset)
        };
        hex::each_span(
            |v| self.describe_all(NamesAt::Each, v),
            |span| hex::push_text(out, &span, self.raw.bytes, offset),
        );
    }

    /// Returns the record, if it can be decoded.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref().ok()
    }

    /// Writes the record as an object without its bytes.
    pub(super) fn write_json(&self, out: &mut impl RecordWriter) {
        out.json().object("");
        self.write_fields(out);
        out.json().close();
    }

    /// Writes the record as an object, with its bytes if `with_bytes` is set.
    pub fn json(&self, json: &mut Json, with_bytes: bool) {
        json.object("");
        self.write_fields(json);
        if with_bytes {
            hex::push_json(
                json,
                |v| self.describe_all(NamesAt::Nowhere, v),
                self.raw.bytes,
                |_| {},
            );
        }
        json.close();
    }

    /// Writes the fields of the record's object.
    pub fn json_fields(&self, json: &mut Json) {
        self.write_fields(json);
    }

    fn write_fields(&self, out: &mut impl RecordWriter) {
        let head = |out: &mut _, number: HeadNumber| {
            let value = number.of(&self.raw, self.inner);
            RecordWriter::head_number(out, number, value);
        };
        head(out, HeadNumber::Offset);
        if self.inner.is_some() {
            head(out, HeadNumber::Inner);
        }
        out.json().value("type", &self.raw.kind);
        head(out, HeadNumber::Size);
        let json = out.json();
        let misc = misc_names(self.raw.kind, self.raw.misc);
        json.texts("misc", misc.iter().map(|name| name.as_bytes()));
        if let Some(name) = self.event() {
            json.text("event", &name);
        }
        match &self.record {
            Ok(record) => {
                json.object("fields");
                self.describe_named(record, NamesAt::Beside, out);
                out.json().close();
                record.sample_id.describe("sample_id", Style::Plain, out);
            }
            Err(error) => {
                json.text("error", error.to_string().as_bytes());
                let mut bytes = String::new();
                push_hex(&mut bytes, self.raw.body());
                json.text("bytes", bytes.as_bytes());
            }
        }
    }

    /// Describes all fields to `visitor`.
    fn describe_all(&self, names: NamesAt, visitor: &mut dyn Visitor) {
        let header = self.raw.bytes.get(..RecordHeader::SIZE).unwrap_or_default();
        if let Ok((header, _)) =
            RecordHeader::decode(header, self.raw.endian, DecodeContext::default())
        {
            header.describe("header", Style::Plain, visitor);
        }
        match &self.record {
            Ok(record) => {
                self.describe_named(record, names, visitor);
                record
                    .sample_id
                    .describe("sample_id", Style::Plain, visitor);
            }
            Err(_) => visitor.leaf(
                "bytes",
                self.raw.body().len(),
                Leaf::Opaque(self.raw.body()),
            ),
        }
    }
}

/// A number of a record as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadNumber {
    Offset,
    Inner,
    Size,
}

impl HeadNumber {
    /// Returns the name of the field.
    pub(super) fn name(self) -> &'static str {
        match self {
            HeadNumber::Offset => "offset",
            HeadNumber::Inner => "inner",
            HeadNumber::Size => "size",
        }
    }

    /// Returns the number of a record.
    #[inline]
    pub(super) fn of(self, raw: &RawRecord<'_>, inner: Option<usize>) -> u64 {
        match self {
            HeadNumber::Offset => raw.offset,
            HeadNumber::Inner => inner.unwrap_or_default() as u64,
            HeadNumber::Size => raw.bytes.len() as u64,
        }
    }
}

/// Receives a record as JSON.
pub(super) trait RecordWriter: Visitor {
    /// Returns what writes everything but the values of the record.
    fn json(&mut self) -> &mut Json;
    /// Writes a number of the record as a whole.
    fn head_number(&mut self, number: HeadNumber, value: u64);
}

impl RecordWriter for Json {
    fn json(&mut self) -> &mut Json {
        self
    }

    fn head_number(&mut self, number: HeadNumber, value: u64) {
        self.leaf(
            number.name(),
            size_of_val(&value),
            Leaf::Uint(value, Style::Plain),
        );
    }
}

/// Returns the event that a kernel record belongs to, according to its ID. Records without an ID
/// belong to an event only if there is a single one.
#[inline]
pub(super) fn named_event(raw: &RawRecord<'_>, recording: &Recording) -> Option<usize> {
    let events = &recording.events;
    match events.id_of(raw) {
        Some(id) => event_of(id, recording),
        None => (events.len() == 1).then_some(0),
    }
}

/// Returns the index of the event with this ID. Records about the time before the recording have ID
/// 0 and no event.
#[inline]
fn event_of(id: u64, recording: &Recording) -> Option<usize> {
    recording.events.of_id(id).filter(|_| id != 0)
}

/// perf's name for a register without a name.
const NO_NAME: &str = "unknown";

/// Where the names of registers appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamesAt {
    /// With each value.
    Each,
    /// In a separate list next to the values.
    Beside,
    /// Nowhere.
    Nowhere,
}

/// Forwards the fields of a sample to a visitor, and adds the names of its registers.
struct WithRegisters<'a> {
    visitor: &'a mut dyn Visitor,
    place: NamesAt,
    names: [(&'static str, Vec<&'static str>); 2],
    /// Number of enclosing structures and lists.
    depth: usize,
    /// The index of the enclosing field with registers, and its depth.
    inside: Option<(usize, usize)>,
}

impl Visitor for WithRegisters<'_> {
    fn begin(&mut self, name: &'static str) {
        self.depth = self.depth.saturating_add(1);
        if let Some(at) = self.names.iter().position(|(field, _)| *field == name) {
            self.inside = Some((at, self.depth));
        }
        self.visitor.begin(name);
    }

    fn begin_list(&mut self, name: &'static str, len: usize) {
        self.depth = self.depth.saturating_add(1);
        self.visitor.begin_list(name, len);
    }

    fn end(&mut self) {
        self.inside = self.inside.filter(|(_, depth)| *depth < self.depth);
        self.depth = self.depth.saturating_sub(1);
        self.visitor.end();
    }

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        self.visitor.leaf(name, size, value);
    }

    fn words(&mut self, name: &'static str, words: &[u64], style: Style) {
        let names = self
            .inside
            .and_then(|(at, _)| self.names.get(at))
            .map(|(_, names)| names.as_slice());
        let Some(names) = names.filter(|names| names.len() == words.len()) else {
            return self.visitor.words(name, words, style);
        };
        match self.place {
            NamesAt::Each => {
                self.visitor.begin_list(name, words.len());
                for (&word, name) in words.iter().zip(names) {
                    self.visitor
                        .leaf(name, size_of::<u64>(), Leaf::Uint(word, style));
                }
                self.visitor.end();
            }
            NamesAt::Beside => {
                self.visitor.words(name, words, style);
                self.visitor.begin_list("names", names.len());
                names
                    .iter()
                    .for_each(|name| self.visitor.leaf("", 0, Leaf::Text(name.as_bytes())));
                self.visitor.end();
            }
            NamesAt::Nowhere => self.visitor.words(name, words, style),
        }
    }
}

/// Returns the feature section in a HEADER_FEATURE record, if it can be decoded.
fn section_of(record: &Record, raw: &RawRecord<'_>, recording: &Recording) -> Option<Section> {
    let Body::HeaderFeature(feature) = &record.body else {
        return None;
    };
    let id = FeatureId(u32::try_from(feature.feat_id).ok()?);
    id.info()?;
    let layout = DecodeContext::default().with_nr_cpus_available(recording.nr_cpus_available());
    Section::decode(id, &feature.section.0, raw.endian, &layout).ok()
}

/// Returns the first event ID among the fields of a record; fields in lists are ignored.
fn first_id(record: &Record) -> Option<u64> {
    #[derive(Default)]
    struct Finder {
        lists: usize,
        open: Vec<bool>,
        found: Option<u64>,
    }
    impl Visitor for Finder {
        fn begin(&mut self, _: &'static str) {
            self.open.push(false);
        }
        fn begin_list(&mut self, _: &'static str, _: usize) {
            self.open.push(true);
            self.lists += 1;
        }
        fn end(&mut self) {
            self.lists -= usize::from(self.open.pop() == Some(true));
        }
        fn leaf(&mut self, _: &'static str, _: usize, value: Leaf<'_>) {
            if let (0, None, Leaf::Uint(id, Style::Id)) = (self.lists, self.found, value) {
                self.found = Some(id);
            }
        }
    }
    let mut finder = Finder::default();
    record.body.describe("", Style::Plain, &mut finder);
    finder.found
}
