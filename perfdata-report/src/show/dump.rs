//! The complete content of a recording in file order, as shown by `perfconv dump`.

use std::fmt::Write as _;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use perfdata_core::Recording;
use perfdata_core::container_layout::{ContainerLayout, FileLayout, Part, Region};
use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::header::{FileSection, PipeHeader};
use perfdata_core::read::{Head, RecordBatch};
use perfdata_core::record::{RecordType, Registers, TABLE};
use perfdata_core::wire::Wire;

use super::buffer::Buffer;
use super::forms::Forms;
use super::hex;
use super::part_name;
use super::record::Shown;
use perfdata_convert::count::Counts;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{BoxedSource, Input, InputSource};
use perfdata_convert::json::Json;
use perfdata_convert::leftover::Leftover;
use perfdata_convert::support::batch::{Batch, JobQueue, in_order};
use perfdata_convert::support::dispatch::{Dispatcher, Job, StateAt};
use perfdata_convert::support::suggest;
use perfdata_convert::walk::{Item, walk};

/// What to show, and the format.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Dump {
    /// Writes JSON instead of text.
    pub json: bool,
    /// Shows the bytes of every field, and the parts of the file other than records.
    pub hex: bool,
    /// Record types to show; empty for all types.
    pub types: Vec<RecordType>,
    /// Number of records of these types that are not shown, from the first one on.
    pub skip: u64,
    /// Maximum number of records to show.
    pub limit: Option<u64>,
}

impl Dump {
    /// Sets [`json`](Self::json).
    #[must_use]
    pub fn with_json(self, json: bool) -> Self {
        Dump { json, ..self }
    }

    /// Sets [`hex`](Self::hex).
    #[must_use]
    pub fn with_hex(self, hex: bool) -> Self {
        Dump { hex, ..self }
    }

    /// Sets [`types`](Self::types).
    #[must_use]
    pub fn with_types(self, types: Vec<RecordType>) -> Self {
        Dump { types, ..self }
    }

    /// Sets [`skip`](Self::skip).
    #[must_use]
    pub fn with_skip(self, skip: u64) -> Self {
        Dump { skip, ..self }
    }

    /// Sets [`limit`](Self::limit).
    #[must_use]
    pub fn with_limit(self, limit: Option<u64>) -> Self {
        Dump { limit, ..self }
    }

    /// Returns the record type with this name or number.
    ///
    /// # Errors
    /// No type has this name. The error lists the known types.
    pub fn type_of(name: &str) -> Result<RecordType> {
        let number = || name.parse().ok().map(RecordType);
        RecordType::by_name(name).or_else(number).ok_or_else(|| {
            let known: Vec<_> = TABLE.iter().map(|info| info.name).collect();
            Error::Usage(match suggest::nearest(name, known.iter().copied()) {
                Some(near) => format!("unknown record type {name}; did you mean {near}?"),
                None => format!(
                    "unknown record type {name}; known types: {}",
                    known.join(", ")
                ),
            })
        })
    }

    /// Writes `input` to `out`.
    ///
    /// # Errors
    /// The input cannot be read, or the output cannot be written.
    pub fn run(&self, input: Input, out: &mut dyn Write) -> Result<Dumped> {
        let (mut reader, source) = input.reader_with(Head::Pass)?;
        let mut printer = Printer { dump: self, out };
        let container_layout = reader.container_layout().clone();
        let model = reader.recording().clone();
        match &container_layout {
            ContainerLayout::File(file) if self.hex => {
                printer.parts(file, &model, &source, true)?
            }
            ContainerLayout::Pipe(_) if self.hex && self.types.is_empty() => {
                printer.pipe_header(&model)?
            }
            _ => {}
        }
        let spare = Spare::default();
        let take = |text: Buffer| {
            let written = printer.out.write_all(text.text());
            let mut text = text;
            text.clear();
            spare.texts.put(text);
            written.map_err(Error::io("standard output"))?;
            Ok(ControlFlow::Continue(()))
        };
        let text_of = |batch: &Batch, known: StateAt<'_>| self.text_of(batch, known, &spare);
        let work = |job: Job<_>| job.finish(text_of);
        let threads = reader.limits().threads();
        let Fed {
            counts,
            shown,
            mut damage,
            unreadable,
        } = in_order(
            threads,
            |intake| self.feed(&mut reader, intake, &spare),
            work,
            take,
        )?;
        damage
            .extend(Leftover::of(&reader, unreadable as u64).map(|leftover| leftover.to_string()));
        if let ContainerLayout::File(file) = &container_layout
            && self.hex
        {
            printer.parts(file, &model, &source, false)?;
        }
        Ok(Dumped {
            counts,
            shown,
            damage,
        })
    }
}

/// The result of [`Dump::run`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Dumped {
    /// The records of the recording; with a limit, only those up to the last one shown.
    pub counts: Counts,
    /// Number of records shown, including those inside compressed records and metadata.
    pub shown: u64,
    /// Damage that makes parts of the recording unreadable.
    pub damage: Vec<String>,
}

/// The state after all records were submitted.
struct Fed {
    counts: Counts,
    shown: u64,
    damage: Vec<String>,
    /// Bytes that are not records.
    unreadable: usize,
}

impl Dump {
    /// Submits all selected records.
    fn feed(
        &self,
        reader: &mut BoxedSource,
        intake: &mut JobQueue<'_, Job<Buffer>>,
        spare: &Spare,
    ) -> Result<Fed> {
        let text_of = |batch: &Batch, known: StateAt<'_>| self.text_of(batch, known, spare);
        let mut feed = Dispatcher::new(reader.recording().endian, intake, text_of);
        let (mut counts, mut shown) = (Counts::default(), 0_u64);
        let (mut damage, mut unreadable) = (Vec::new(), 0);
        let (mut skipped, mut left) = (0, self.limit);
        walk(reader, |item, recording| {
            let (batch, inner) = match item {
                Item::Records(batch, inner) => (batch, inner),
                Item::Payload(bytes) => {
                    feed.see_payload(bytes.len());
                    return Ok(ControlFlow::Continue(()));
                }
                Item::Unreadable(bytes) => {
                    unreadable += bytes.len();
                    return Ok(ControlFlow::Continue(()));
                }
                Item::Undecodable(error) => {
                    damage.push(error.to_string());
                    return Ok(ControlFlow::Continue(()));
                }
                // The reader of a live stream sees the available records without delay.
                Item::Pause { may_wait: true } => return Ok(feed.hand_in(recording)),
                Item::Pause { .. } => return Ok(feed.pause(recording)),
            };
            if self.types.is_empty() && self.skip == 0 && self.limit.is_none() {
                for record in batch.iter() {
                    counts.add_at(record.kind, inner);
                    shown = shown.saturating_add(1);
                }
                return Ok(feed.take(batch, inner, recording));
            }
            for record in batch.iter() {
                if left == Some(0) || feed.see(&record, recording).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                counts.add_at(record.kind, inner);
                if !self.types.is_empty() && !self.types.contains(&record.kind) {
                    continue;
                }
                if skipped < self.skip {
                    skipped += 1;
                    continue;
                }
                left = left.map(|left| left - 1);
                shown = shown.saturating_add(1);
                let flow = feed.push(&RecordBatch::of(&record), inner, recording);
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let _ = feed.hand_in(reader.recording());
        Ok(Fed {
            counts,
            shown,
            damage,
            unreadable,
        })
    }

    /// Returns the output for a batch of records, in memory from `spare`.
    fn text_of(&self, batch: &Batch, known: StateAt<'_>, spare: &Spare) -> Buffer {
        let StateAt {
            recording, names, ..
        } = known;
        let registers = Registers::of(recording);
        let mut text = spare.texts.take();
        let shown =
            |raw: &_, inner| Shown::new(raw, inner, recording, names).with_registers(registers);
        if self.json && !self.hex {
            let mut forms = spare.forms.take();
            forms.belong_to(known.version);
            for (records, inner) in batch.runs() {
                for raw in records {
                    forms.write(&raw, inner, recording, &mut text, || shown(&raw, inner));
                }
            }
            spare.forms.put(forms);
            return text;
        }
        for (raw, inner) in batch.records() {
            let shown = shown(&raw, inner);
            text.append(|out| match (self.json, self.hex) {
                (true, _) => {
                    let mut json = Json::compact_in(std::mem::take(out));
                    shown.json(&mut json, true);
                    json.end_line();
                    *out = json.out;
                }
                (false, is_hex) => {
                    let mut line = String::from_utf8(std::mem::take(out)).unwrap_or_default();
                    match is_hex {
                        true => shown.hex(&mut line),
                        false => shown.text(&mut line),
                    }
                    *out = line.into_bytes();
                }
            });
        }
        text
    }
}

/// What the threads use again: the memory of texts that were written, and forms of records.
#[derive(Debug, Default)]
struct Spare {
    texts: Pool<Buffer>,
    forms: Pool<Forms>,
}

/// Values that nothing uses at the moment.
#[derive(Debug, Default)]
struct Pool<T>(Mutex<Vec<T>>);

impl<T: Default> Pool<T> {
    fn take(&self) -> T {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spare.pop().unwrap_or_default()
    }

    fn put(&self, value: T) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(value);
    }
}

/// Bytes of a gap that are shown at a time. A gap may be larger than memory.
const GAP: u64 = 1 << 20;

/// Bytes of output that are collected before they are written.
const BLOCK: usize = 64 << 10;

struct Printer<'a> {
    dump: &'a Dump,
    out: &'a mut dyn Write,
}

impl Printer<'_> {
    fn write(&mut self, text: &[u8]) -> Result<()> {
        self.out
            .write_all(text)
            .map_err(Error::io("standard output"))
    }

    fn pipe_header(&mut self, model: &Recording) -> Result<()> {
        let header = PipeHeader {
            magic: model.magic,
            size: PipeHeader::SIZE,
        };
        let bytes = header.encode(model.endian)?;
        self.part("header", 0, &bytes, |v| {
            header.describe("", Style::Plain, v)
        })
    }

    /// Shows the parts of a file before or after its records; none if the user selected record
    /// types.
    fn parts(
        &mut self,
        file: &FileLayout,
        model: &Recording,
        source: &InputSource,
        before: bool,
    ) -> Result<()> {
        if !self.dump.types.is_empty() {
            return Ok(());
        }
        let data = file
            .regions
            .iter()
            .position(|region| region.part == Part::Data)
            .unwrap_or(file.regions.len());
        let (front, behind) = file
            .regions
            .split_at_checked(data)
            .unwrap_or((&file.regions, &[]));
        for region in if before { front } else { behind } {
            let Region { part, mut place } = *region;
            while part == Part::Gap && place.size > GAP {
                self.region(
                    &Region {
                        part,
                        place: FileSection { size: GAP, ..place },
                    },
                    file,
                    model,
                    source,
                )?;
                place = FileSection {
                    offset: place.offset.saturating_add(GAP),
                    size: place.size - GAP,
                };
            }
            self.region(&Region { part, place }, file, model, source)?;
        }
        Ok(())
    }

    fn region(
        &mut self,
        region: &Region,
        file: &FileLayout,
        model: &Recording,
        source: &InputSource,
    ) -> Result<()> {
        let Region { part, place } = *region;
        if part == Part::Data {
            return Ok(());
        }
        let bytes = source.bytes(place)?;
        let opaque = |v: &mut dyn Visitor| v.leaf("bytes", bytes.len(), Leaf::Opaque(&bytes));
        self.part(&part_name(part), place.offset, &bytes, |v| match part {
            Part::Header => file.header.describe("", Style::Plain, v),
            Part::Ids(event) => match model.events.get(event) {
                Some(event) => event.ids.describe("ids", Style::Id, v),
                None => opaque(v),
            },
            Part::Attrs => {
                v.begin_list("attrs", model.events.len());
                for (event, ids) in model.events.iter().zip(&file.ids) {
                    v.begin("");
                    event.attr.describe("attr", Style::Plain, v);
                    ids.describe("ids", Style::Plain, v);
                    v.end();
                }
                v.end();
            }
            Part::EventTypes => model.event_types.describe("event_types", Style::Plain, v),
            Part::FeatureTable => {
                for (id, place) in &file.table {
                    place.describe(id.name().unwrap_or("unknown"), Style::Plain, v);
                }
            }
            Part::Feature(id) => match model.feature(id) {
                Some(Ok(section)) => section.describe("", Style::Plain, v),
                _ => opaque(v),
            },
            Part::Data | Part::Gap => opaque(v),
        })
    }

    /// Shows a part that is not a record.
    fn part(
        &mut self,
        title: &str,
        offset: u64,
        bytes: &[u8],
        describe: impl Fn(&mut dyn Visitor),
    ) -> Result<()> {
        let is_json = self.dump.json;
        let mut result = Ok(());
        // Returns whether the text was written.
        let mut flush = |text: &[u8]| {
            let is_due = text.len() >= BLOCK && result.is_ok();
            if is_due {
                result = self.write(text);
            }
            is_due
        };
        let rest = if is_json {
            let mut json = Json::compact();
            json.object("");
            json.number("offset", offset);
            json.text("part", title.as_bytes());
            json.number("size", bytes.len() as u64);
            hex::push_json(&mut json, describe, bytes, |json| {
                if flush(&json.out) {
                    json.out.clear();
                }
            });
            json.close();
            json.end_line();
            json.out
        } else {
            let mut text = String::new();
            let _ = writeln!(text, "{offset:#x} {title}, {} bytes", bytes.len());
            hex::each_span(describe, |span| {
                hex::push_text(&mut text, &span, bytes, Some(offset));
                if flush(text.as_bytes()) {
                    text.clear();
                }
            });
            text.into_bytes()
        };
        result?;
        self.write(&rest)
    }
}
