//! An overview of a recording, as shown by `perfconv info`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use perfdata_core::container_layout::{ContainerLayout, FileLayout};
use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::feature::{Compression, Feature, FeatureId, SampleTime, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Head;
use perfdata_core::record::{RawRecord, RecordHeader, RecordType};
use perfdata_core::{DecodeContext, Endian, Recording};

use super::endian_name;
use super::facts::Facts;
use super::tallies::{Tallies, Tally};
use super::text::{TextLimits, Tree};
use perfdata_convert::count::Counts;
use perfdata_convert::error::Result;
use perfdata_convert::io::{Directory, Input};
use perfdata_convert::json::Json;
use perfdata_convert::leftover::Leftover;
use perfdata_convert::support::text::escaped;
use perfdata_convert::verify::wrong_end;
use perfdata_convert::walk::{Item, walk};
use perfdata_session::EventNames;

/// The result of one pass over a recording.
#[derive(Debug)]
#[non_exhaustive]
pub struct Overview {
    recording: Recording,
    container_layout: ContainerLayout,
    names: EventNames,
    /// The offset of each feature section in a pipe.
    sections: BTreeMap<FeatureId, u64>,
    counts: Counts,
    /// Records in the stream, by type.
    records: Tallies,
    /// Records inside compressed records.
    inner: Tallies,
    /// Bytes that follow records and are not part of their size.
    payload: u64,
    /// Bytes at the end that are not records.
    unreadable: u64,
    /// Whether the records are in several files.
    split: bool,
    facts: Facts,
    /// Whether the size of a record is not a multiple of 8.
    has_odd_sizes: bool,
    /// Damage that makes parts of the recording unreadable.
    damage: Vec<String>,
}

impl Overview {
    /// Reads `input` from start to end.
    ///
    /// # Errors
    /// The input cannot be read, or is not a recording.
    pub fn of(input: Input) -> Result<Self> {
        Self::observed(input, |_, _, _| {})
    }

    /// Reads `input`, and calls `observer` with each record and its index in the compressed record
    /// that contains it, if any.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn observed(
        input: Input,
        mut observer: impl FnMut(&RawRecord<'_>, Option<usize>, &Recording),
    ) -> Result<Self> {
        let written = input.written();
        let (mut reader, source) = input.reader_with(Head::Pass)?;
        let mut overview = Overview {
            recording: Recording::new(reader.recording().endian),
            container_layout: reader.container_layout().clone(),
            names: EventNames::default(),
            sections: BTreeMap::new(),
            counts: Counts::default(),
            records: Tallies::default(),
            inner: Tallies::default(),
            payload: 0,
            unreadable: 0,
            split: source.directory().is_some_and(Directory::is_split),
            facts: Facts::new(written),
            has_odd_sizes: false,
            damage: Vec::new(),
        };
        walk(&mut reader, |item, recording| {
            match item {
                Item::Records(batch, inner) => {
                    let mut samples = Tally::default();
                    for record in batch.iter() {
                        if record.kind == RecordType::SAMPLE {
                            samples.add(Tally::of(&record));
                            overview.facts.sample(&record, recording);
                        } else {
                            overview.see(&record, inner, recording);
                        }
                        observer(&record, inner, recording);
                    }
                    overview.facts.count(samples.count);
                    overview.add(RecordType::SAMPLE, samples, inner);
                }
                Item::Payload(bytes) => {
                    overview.payload = overview.payload.saturating_add(bytes.len() as u64)
                }
                Item::Unreadable(bytes) => {
                    overview.unreadable = overview.unreadable.saturating_add(bytes.len() as u64);
                }
                Item::Undecodable(error) => overview.damage.push(error.to_string()),
                Item::Pause { .. } => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        overview.facts.finish();
        if let Some(leftover) = Leftover::of(&reader, overview.unreadable) {
            overview.damage.push(leftover.to_string());
        }
        overview.recording = reader.recording().clone();
        overview.names.update(&overview.recording);
        if let ContainerLayout::File(file) = &overview.container_layout {
            overview.damage.extend(damage_of(file));
        }
        Ok(overview)
    }

    /// Counts records of a type, which are inside a compressed record if they have an index there.
    #[inline]
    fn add(&mut self, kind: RecordType, tally: Tally, inner: Option<usize>) {
        self.counts.add_all(kind, tally.count, inner);
        let tallies = match inner {
            None => &mut self.records,
            Some(_) => &mut self.inner,
        };
        tallies.add_all(kind, tally);
    }

    /// Processes a record that is not a sample.
    fn see(&mut self, record: &RawRecord<'_>, inner: Option<usize>, recording: &Recording) {
        self.add(record.kind, Tally::of(record), inner);
        self.facts.other(record, recording);
        let is_odd = !record.bytes.len().is_multiple_of(8) && !record.kind.is_compressed();
        self.has_odd_sizes |= is_odd;
        self.names.see(record);
        match record.kind {
            RecordType::HEADER_FEATURE => {
                // Behind the feature's number.
                self.sections.extend(record.feature().map(|id| {
                    (
                        id,
                        record.offset.saturating_add(RecordHeader::SIZE as u64 + 8),
                    )
                }));
            }
            RecordType::HEADER_TRACING_DATA => {
                let end = record.offset.saturating_add(record.bytes.len() as u64);
                self.sections.insert(FeatureId::TRACING_DATA, end);
            }
            _ => {}
        }
    }

    /// Returns the model of the recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns the layout of the container.
    pub fn container_layout(&self) -> &ContainerLayout {
        &self.container_layout
    }

    /// Returns the kind of the container; file mode for a directory.
    pub fn container(&self) -> ContainerKind {
        self.container_layout.container()
    }

    /// Returns the damage that makes parts of the recording unreadable.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// Returns the number of bytes in the stream: records, data that follow them, and bytes that
    /// are not records.
    pub fn stream_bytes(&self) -> u64 {
        self.records
            .total()
            .bytes
            .saturating_add(self.payload)
            .saturating_add(self.unreadable)
    }

    /// Returns whether the records are in several files of a directory.
    pub fn is_split(&self) -> bool {
        self.split
    }

    /// Returns whether perf 7.2 refuses the recording because of what older releases wrote: records
    /// whose size is not a multiple of 8, or the section COMPRESSED without compressed records, as
    /// `perf stat record` wrote it.
    pub fn is_refused_by_new_perf(&self) -> bool {
        let compressed = self.recording.feature(FeatureId::COMPRESSED);
        let is_empty = matches!(
            compressed,
            Some(Ok(Section {
                value: Feature::Compressed(Compression { mmap_len: 0, .. }),
                ..
            }))
        );
        self.has_odd_sizes || is_empty
    }

    /// Returns the numbers of records in the stream, by type.
    pub fn tallies(&self) -> &Tallies {
        &self.records
    }

    /// Returns the number of records of a type, including those in compressed records.
    pub fn count(&self, kind: RecordType) -> u64 {
        self.records
            .get(kind)
            .count
            .saturating_add(self.inner.get(kind).count)
    }

    /// Returns the numbers of records.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the times of the first and the last sample.
    pub fn sample_times(&self) -> Option<&SampleTime> {
        self.facts.times()
    }

    /// Returns the names of the events.
    pub fn event_names(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        (0..self.recording.events.len()).filter_map(|at| self.names.get(&self.recording, at))
    }

    /// Returns what the names of events follow from.
    pub fn names(&self) -> &EventNames {
        &self.names
    }

    /// Returns the version of perf in the recording.
    pub fn perf_version(&self) -> Option<String> {
        self.word(FeatureId::VERSION)
    }

    /// Returns the version of perf, the host name and the architecture, if the recording contains
    /// them.
    pub fn origin(&self) -> String {
        let part = |before: &str, id| self.word(id).map(|word| format!("{before}{word}"));
        let parts = [
            part("by perf ", FeatureId::VERSION),
            part("on ", FeatureId::HOSTNAME),
            part("for ", FeatureId::ARCH),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns the content of a feature section that consists of a single string.
    fn word(&self, id: FeatureId) -> Option<String> {
        match self.recording.feature(id)?.ok()?.value {
            Feature::Version(word) | Feature::Hostname(word) | Feature::Arch(word)
                if !word.text().is_empty() =>
            {
                Some(escaped(word.text()))
            }
            _ => None,
        }
    }

    /// Returns the offset of the section of a feature.
    fn offset(&self, id: FeatureId) -> Option<u64> {
        match &self.container_layout {
            ContainerLayout::File(file) => file
                .table
                .iter()
                .find(|entry| entry.0 == id)
                .map(|entry| entry.1.offset),
            ContainerLayout::Pipe(_) => self.sections.get(&id).copied(),
        }
    }

    fn section(&self, id: FeatureId) -> Option<perfdata_core::Result<Section>> {
        let offset = self.offset(id).unwrap_or(0);
        self.recording
            .feature(id)
            .map(|section| section.map_err(|e| e.within(offset)))
    }

    /// Returns the main facts about the recording as labels and texts.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let names: Vec<String> = self.event_names().map(|name| escaped(&name)).collect();
        self.facts.lines(&self.recording, &names)
    }

    /// Returns the report for people; `in_full` adds the fields of the header, and the fields of
    /// attributes that are 0.
    pub fn text(&self, in_full: bool) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{}, {}",
            self.container_layout.container(),
            endian_name(self.recording.endian)
        );
        let origin = self.origin();
        if !origin.is_empty() {
            let _ = writeln!(out, "made {origin}");
        }
        for (what, text) in self.facts() {
            let _ = writeln!(out, "{what}: {text}");
        }
        for damage in &self.damage {
            let _ = writeln!(out, "damaged: {damage}");
        }
        if in_full {
            let magic = escaped(self.recording.magic.bytes(self.recording.endian));
            let _ = writeln!(out, "magic: {magic}");
            if let ContainerLayout::File(file) = &self.container_layout {
                out.push_str(&Tree::of(&file.header, "header", 0));
            }
        }
        let _ = writeln!(out, "\nevents: {}", self.recording.events.len());
        for (at, event) in self.recording.events.iter().enumerate() {
            let name = self
                .names
                .get(&self.recording, at)
                .map(|name| escaped(&name))
                .unwrap_or_default();
            let rate = match (event.attr.frequency(), event.attr.period()) {
                (Some(frequency), _) => format!("{frequency} samples per second"),
                (None, Some(0)) => "counted".into(),
                (None, period) => format!("a sample every {}", period.unwrap_or(0)),
            };
            let _ = writeln!(out, "  {name}: {rate}");
            let mut tree = Tree::new(2, TextLimits::BRIEF);
            tree.zeros = in_full;
            event.attr.describe("", Style::Plain, &mut tree);
            event.ids.describe("ids", Style::Id, &mut tree);
            out.push_str(&tree.out);
        }
        let _ = writeln!(out, "\nfeatures: {}", self.recording.features.len());
        for (&id, bytes) in &self.recording.features {
            let _ = write!(out, "  {id}, {} bytes", bytes.len());
            let _ = self.offset(id).map(|offset| write!(out, " at {offset:#x}"));
            out.push('\n');
            match self.section(id) {
                Some(Ok(section)) => {
                    let mut tree = Tree::new(2, TextLimits::BRIEF);
                    describe_section(&section, "", &mut tree);
                    out.push_str(&tree.out);
                }
                Some(Err(error)) => {
                    let _ = writeln!(out, "    damaged: {error}");
                }
                None => {}
            }
        }
        self.records.text(&mut out, self.counts);
        if self.payload > 0 {
            let _ = writeln!(out, "  and {} bytes of payload after records", self.payload);
        }
        if self.counts.compressed > 0 {
            self.inner.text(&mut out, "inside compressed records");
        }
        out
    }

    /// Returns the report for programs.
    pub fn json(&self) -> String {
        self.json_of(None)
    }

    /// Returns the report for programs, with the name of the input.
    pub fn json_of(&self, input: Option<&Path>) -> String {
        let mut json = Json::pretty();
        json.object("");
        if let Some(input) = input {
            json.text("file", input.as_os_str().as_encoded_bytes());
        }
        json.text("container", self.container().to_string().as_bytes());
        json.text("byte_order", endian_name(self.recording.endian).as_bytes());
        json.text("magic", self.recording.magic.bytes(self.recording.endian));
        let names: Vec<Vec<u8>> = self.event_names().map(Cow::into_owned).collect();
        self.facts.json(&mut json, &self.recording, &names);
        if let ContainerLayout::File(file) = &self.container_layout {
            json.value("header", &file.header);
        }
        json_of_events(&mut json, &self.recording, &self.names);
        if !self.recording.event_types.is_empty() {
            json.value("event_types", &*self.recording.event_types);
        }
        json.list("features");
        for (&id, bytes) in &self.recording.features {
            json.object("");
            json.number("id", u64::from(id.0));
            if let Some(name) = id.name() {
                json.text("name", name.as_bytes());
            }
            if let Some(offset) = self.offset(id) {
                json.number("offset", offset);
            }
            json.number("size", bytes.len() as u64);
            match self.section(id) {
                Some(Ok(section)) => match empty_value(id, &section) {
                    Some(empty) => empty.describe("value", Style::Plain, &mut json),
                    None => describe_section(&section, "value", &mut json),
                },
                Some(Err(error)) => json.text("error", error.to_string().as_bytes()),
                None => {}
            }
            json.close();
        }
        json.close();
        self.counts.json(&mut json, "counts");
        self.records.json(&mut json, "records");
        json.number("payload_bytes", self.payload);
        self.inner.json(&mut json, "compressed_records");
        if let Some(times) = self.facts.times() {
            json.value("sample_time", times);
        }
        json.texts("damage", &self.damage);
        json.close();
        json.end_line();
        json.into_text()
    }
}

/// Describes the content of a section as `name`, and the bytes after it.
fn describe_section(section: &Section, name: &'static str, visitor: &mut dyn Visitor) {
    section.value.describe(name, Style::Plain, visitor);
    if !section.tail.is_empty() {
        visitor.leaf("tail", section.tail.len(), Leaf::Opaque(&section.tail));
    }
}

/// Returns the value of a section without any bytes for a feature that is a text or a list: an empty
/// one, which begins with a count of 0.
fn empty_value(id: FeatureId, section: &Section) -> Option<Feature> {
    if section.value != Feature::Empty {
        return None;
    }
    let context = DecodeContext::default();
    let empty = Section::decode(id, &[0; 4], Endian::Little, &context).ok()?;
    empty.tail.is_empty().then_some(empty.value)
}

/// Writes the events as the field `events`.
pub fn json_of_events(json: &mut Json, recording: &Recording, names: &EventNames) {
    json.list("events");
    for (at, event) in recording.events.iter().enumerate() {
        json.object("");
        if let Some(name) = names.get(recording, at) {
            json.text("name", &name);
        }
        match event.attr.frequency() {
            Some(frequency) => json.number("frequency", frequency),
            None => json.number("period", event.attr.sample_period),
        }
        json.value("attr", &event.attr);
        json.value("ids", &event.ids);
        json.close();
    }
    json.close();
}

/// Returns the damage in the layout of a file.
fn damage_of(file: &FileLayout) -> Vec<String> {
    let mut damage: Vec<String> = wrong_end(file).into_iter().collect();
    if file.unexplained {
        damage
            .push("the header declares feature sections, but the feature table is missing".into());
    }
    damage.extend(
        file.shared()
            .map(|(a, b)| format!("{} and {} share bytes", a.part, b.part)),
    );
    damage.extend(file.lost_sections().map(|(id, place)| {
        let is_outside = || "it is not inside the file".to_owned();
        let other = file
            .part_at(&place)
            .map_or_else(is_outside, |part| format!("it shares bytes with {part}"));
        format!("the section of feature {id} cannot be read: {other}")
    }));
    damage
}
