//! Makes a recording readable for a certain release of perf: `--compat`.
//!
//! The tables of records, features, flags and attribute sizes contain the release that introduced
//! each entry. Newer content is converted to its older form, if there is one. Newer flags are
//! cleared, newer records and features of their own are dropped, and everything else is refused.

mod forms;
mod records;

use std::collections::{BTreeMap, HashSet};

use perfdata_core::attr::{Attr, AttrFlags, BranchSampleType, ReadFormat, SampleType};
use perfdata_core::container_layout::{ContainerLayout, Part, PipeLayout, SlotContent};
use perfdata_core::describe::{Field, set_fields};
use perfdata_core::feature::{Compression, EventDesc, EventDescs, Feature, FeatureId, Section};
use perfdata_core::header::{FileHeader, FileSection};
use perfdata_core::record::{BranchFlags, DataSource, RawRecord, RecordType, TABLE};
use perfdata_core::{DecodeContext, Endian, Event, Events, Recording, Version};

use super::swap::Unknown;
use crate::error::{Error, Result, Step};
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage};
use crate::support::attributes::has_late_events;
use crate::support::text::escaped;
use forms::Forms;

/// Since this release, MMAP2 records may contain build IDs.
const MMAP2_BUILD_IDS: &str = "5.12";

/// Maximum number of names of records and features that are reported for each kind of change.
const MOST: usize = 1000;

/// Makes a recording readable for perf of one release.
pub struct Compat {
    version: Version,
    unknown: Unknown,
    /// The original and the converted events, and the resulting changes of their records.
    forms: Forms,
    /// Whether the events were read ahead, so that attributes in the stream only repeat them.
    has_late_events: bool,
    endian: Endian,
    is_pipe: bool,
    buffer: Vec<u8>,
    /// Names of objects whose build ID was already written.
    told: HashSet<Vec<u8>>,
    /// Whether records with measured data were dropped, and whether others remain.
    lacks_data: bool,
    has_data: bool,
    /// The number of changes, by kind of change and by item.
    report: BTreeMap<&'static str, BTreeMap<String, u64>>,
}

impl Compat {
    /// Returns a stage for perf of release `version`.
    pub fn new(version: Version) -> Self {
        Compat {
            version,
            unknown: Unknown::Error,
            forms: Forms::new(version),
            has_late_events: false,
            endian: Endian::Little,
            is_pipe: false,
            buffer: Vec::new(),
            told: HashSet::new(),
            lacks_data: false,
            has_data: false,
            report: BTreeMap::new(),
        }
    }

    /// Sets how to handle content that has no older form and would be missed: [`Unknown::Drop`]
    /// drops it, anything else refuses it.
    #[must_use]
    pub fn deciding(self, unknown: Unknown) -> Self {
        Compat { unknown, ..self }
    }

    /// Counts a change of a record or section.
    fn count(&mut self, what: &'static str, whom: String) {
        let report = self.report.entry(what).or_default();
        let whom = if report.len() < MOST || report.contains_key(&whom) {
            whom
        } else {
            "others".into()
        };
        *report.entry(whom).or_default() += 1;
    }

    fn knows_record(&self, kind: RecordType) -> bool {
        self.forms.knows(kind)
    }

    fn knows_feature(&self, id: FeatureId) -> bool {
        id.info().is_some_and(|info| self.version.has(info.since))
    }

    /// Returns whether perf of this release refuses records whose size is not a multiple of 8.
    fn demands_alignment(&self) -> bool {
        self.version.has("7.0")
    }

    /// Returns an error unless content that perf of this release does not know, and that would be
    /// missed, may be dropped.
    fn drops(&self, what: impl FnOnce() -> String) -> Result<()> {
        match self.unknown {
            Unknown::Drop => Ok(()),
            Unknown::Keep | Unknown::Error => {
                Err(Error::refused_without(what(), Step::Decide(Unknown::Drop)))
            }
        }
    }

    /// Returns the attribute in the form for this perf.
    fn attr(&self, attr: &Attr, name: &dyn Fn() -> String) -> Result<Attr> {
        let known = attr.known_in(self.version);
        let refused = |what: String| {
            Error::Refused(format!(
                "{}: perf {} cannot read it: {what}",
                name(),
                self.version
            ))
        };
        // The effect of an unnamed bit on records is not known.
        let kinds = attr.branch_sample_type.unwrap_or_default();
        let branches = if attr.sample_type.has(SampleType::BRANCH_STACK) {
            kinds.unknown()
        } else {
            0
        };
        let reads = if attr.sample_type.has(SampleType::READ) {
            attr.read_format.unknown()
        } else {
            0
        };
        for (field, bits) in [
            ("sample_type", attr.sample_type.unknown()),
            ("read_format", reads),
            ("branch_sample_type", branches),
        ] {
            if bits != 0 {
                return Err(refused(format!("{field} has the unknown bits {bits:#x}")));
            }
        }
        let is_deferred = |attr: &Attr| attr.flags.defer_callchain() | attr.flags.defer_output();
        if is_deferred(attr) > is_deferred(&known) {
            self.drops(|| {
                let what = "the user part of its callchains is in CALLCHAIN_DEFERRED records";
                format!("{}: perf {} cannot read it: {what}", name(), self.version)
            })?;
        }
        known
            .cut_to(Attr::size_in(self.version))
            .map_err(|error| refused(error.to_string()))
    }

    /// Counts the flags of `old` that are cleared in `new`.
    fn count_flags(&mut self, old: &Attr, new: &Attr) {
        let kinds = |attr: &Attr| attr.branch_sample_type.unwrap_or_default().0;
        let actions = |attr: &Attr| u64::from(attr.aux_action.unwrap_or_default().0);
        let words: [(u64, u64, &'static [Field]); 5] = [
            (old.sample_type.0, new.sample_type.0, SampleType::FIELDS),
            (old.read_format.0, new.read_format.0, ReadFormat::FIELDS),
            (kinds(old), kinds(new), BranchSampleType::FIELDS),
            (old.flags.0, new.flags.0, AttrFlags::FIELDS),
            (
                actions(old),
                actions(new),
                perfdata_core::attr::AuxAction::FIELDS,
            ),
        ];
        for (old, new, fields) in words {
            for (name, _) in set_fields(old & !new, fields) {
                self.count("dropped event flags and their data", name.to_owned());
            }
        }
    }

    fn convert_events(&mut self, recording: &mut Recording) -> Result<()> {
        let names: Vec<String> = match recording.feature(FeatureId::EVENT_DESC) {
            Some(Ok(Section {
                value: Feature::EventDescs(descs),
                ..
            })) => descs
                .events
                .0
                .iter()
                .map(|event| escaped(event.name.text()))
                .collect(),
            _ => Vec::new(),
        };
        let from = recording.events.clone();
        recording.events = self.converted(&from, &names)?;
        if !from.is_empty() {
            self.forms.set(&from, &recording.events);
        }
        // Events that appear later are counted at that time.
        if !self.has_late_events {
            for (old, new) in from.iter().zip(recording.events.iter()) {
                self.count_flags(&old.attr, &new.attr);
            }
        }
        Ok(())
    }

    fn converted(&self, events: &Events, names: &[String]) -> Result<Events> {
        let convert = |(at, event): (usize, &Event)| {
            let name = || match names.get(at) {
                Some(name) => format!("event {at} ({name})"),
                None => format!("event {at}"),
            };
            Ok(Event {
                attr: self.attr(&event.attr, &name)?,
                ids: event.ids.clone(),
            })
        };
        events.iter().enumerate().map(convert).collect()
    }

    /// Returns the section in the form for this perf; `None` to drop it.
    fn section(&mut self, id: FeatureId, bytes: &[u8], endian: Endian) -> Result<Option<Vec<u8>>> {
        if !self.knows_feature(id) {
            self.count("dropped features", id.to_string());
            return Ok(None);
        }
        let section = match id {
            FeatureId::EVENT_DESC | FeatureId::COMPRESSED => {
                Section::decode(id, bytes, endian, &DecodeContext::default())
            }
            _ if bytes.is_empty() => Section::decode(id, bytes, endian, &DecodeContext::default()),
            _ => return Ok(Some(bytes.to_vec())),
        };
        let Ok(section) = section else {
            return Ok(Some(bytes.to_vec()));
        };
        match section.value {
            // perf stat writes the section without compressing anything, and later releases of it
            // refuse the section.
            Feature::Compressed(Compression { mmap_len: 0, .. }) => {
                self.count(
                    "dropped features, because nothing is compressed",
                    id.to_string(),
                );
                Ok(None)
            }
            // The recorder had nothing to write.
            Feature::Empty => {
                self.count("dropped features, because they are empty", id.to_string());
                Ok(None)
            }
            Feature::EventDescs(descs) => {
                let (mut events, mut is_same) = (Vec::new(), true);
                for EventDesc {
                    attr, name, ids, ..
                } in descs.events.0
                {
                    let new = self.attr(&attr, &|| {
                        format!("EVENT_DESC, event {}", escaped(name.text()))
                    })?;
                    is_same &= new == *attr;
                    events.push((new, name, ids.0));
                }
                if is_same {
                    return Ok(Some(bytes.to_vec()));
                }
                let descs = EventDescs::new(events).ok_or_else(|| {
                    Error::Refused("EVENT_DESC has attributes of several sizes".into())
                })?;
                let section = Section {
                    id,
                    value: Feature::EventDescs(descs),
                    tail: Vec::new(),
                };
                Ok(Some(section.encode(endian)?))
            }
            _ => Ok(Some(bytes.to_vec())),
        }
    }

    /// Converts the head of a pipe: sets the number at the end of the features, and removes
    /// overwritten records.
    fn convert_head(&self, head: &mut PipeLayout) {
        head.slots
            .retain(|slot| !matches!(slot.content, SlotContent::Verbatim(_)));
        for slot in &mut head.slots {
            if let SlotContent::EndOfFeatures(id) = &mut slot.content {
                *id = u64::from(FeatureId::end_in(self.version).0);
            }
        }
    }

    /// Returns whether there are fields or flags that this perf does not know, so that events and
    /// their records may change.
    fn changes_events(&self) -> bool {
        let words = [
            SampleType::FIELDS,
            ReadFormat::FIELDS,
            BranchSampleType::FIELDS,
            AttrFlags::FIELDS,
            BranchFlags::FIELDS,
            DataSource::FIELDS,
        ];
        words
            .into_iter()
            .flatten()
            .any(|field| !self.version.has(field.since))
    }

    /// Returns whether compressed records may contain something that this perf does not know.
    fn opens(&self, kind: RecordType) -> bool {
        let is_new = |kind: RecordType| kind.is_kernel() && !self.knows_record(kind);
        !self.knows_record(kind)
            || !self.version.has(MMAP2_BUILD_IDS)
            || self.forms.have_changes()
            || TABLE.iter().any(|info| is_new(info.kind))
    }
}

/// Forwards all records in `bytes`, which were at `offset`.
fn give(mut bytes: &[u8], endian: Endian, offset: u64, next: &mut Link<'_>) -> Result<()> {
    while !bytes.is_empty() {
        let record = RawRecord::first(bytes, endian, offset)?;
        next.record(&record)?;
        bytes = bytes.get(record.bytes.len()..).unwrap_or_default();
    }
    Ok(())
}

/// Returns whether records of this type contain measured data, and not only metadata of the
/// recording.
fn is_data(kind: RecordType) -> bool {
    let of_tool = [
        RecordType::AUXTRACE,
        RecordType::STAT,
        RecordType::STAT_ROUND,
        RecordType::SCHEDSTAT_CPU,
        RecordType::SCHEDSTAT_DOMAIN,
    ];
    kind.is_kernel() || kind.is_compressed() || of_tool.contains(&kind)
}

impl Stage for Compat {
    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        let known = || {
            [kind, RecordType::COMPRESSED]
                .into_iter()
                .find(|&kind| self.knows_record(kind))
        };
        match self.opens(kind) {
            true => known().map_or(CompressedRecords::Plain, CompressedRecords::Opened),
            false => CompressedRecords::AsTheyAre,
        }
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: self.changes_events(),
            may_refuse: true,
            keeps_samples: self.unknown != Unknown::Drop,
            end_of_features: Some(FeatureId::end_in(self.version)),
            ..Requirements::none()
        }
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        self.endian = recording.endian;
        self.has_late_events = has_late_events(recording, container_layout);
        self.convert_events(recording)?;
        let damaged: Vec<FeatureId> = match container_layout {
            ContainerLayout::File(file) => {
                // Sections that another stage has removed still have a position in the layout.
                let is_lost = |id: &FeatureId| {
                    file.place(Part::Feature(*id)).is_none() && !recording.features.contains_key(id)
                };
                file.table
                    .iter()
                    .map(|(id, _)| *id)
                    .filter(is_lost)
                    .collect()
            }
            ContainerLayout::Pipe(_) => Vec::new(),
        };
        for (id, bytes) in std::mem::take(&mut recording.features) {
            if let Some(section) = self.section(id, &bytes, recording.endian)? {
                recording.features.insert(id, section);
            }
        }
        match container_layout {
            ContainerLayout::Pipe(head) => {
                self.is_pipe = true;
                self.convert_head(head);
            }
            ContainerLayout::File(file) => {
                // If the attribute section does not consist exactly of the readable attributes,
                // another entry size would result in another number of attributes.
                let FileHeader {
                    attrs, attr_size, ..
                } = &mut file.header;
                if Some(attrs.size) == attr_size.checked_mul(recording.events.len() as u64) {
                    *attr_size = (*attr_size)
                        .min(u64::from(Attr::size_in(self.version)) + FileSection::SIZE);
                }
                // Unreadable sections, such as those of perf inject: perf stops at them.
                for (id, place) in std::mem::take(&mut file.table) {
                    if recording.features.contains_key(&id) || !damaged.contains(&id) {
                        file.table.push((id, place));
                    } else {
                        self.count("dropped features, because they are corrupt", id.to_string());
                    }
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        self.convert(raw, &mut bytes)?;
        self.has_data |= !bytes.is_empty() && is_data(raw.kind);
        give(&bytes, self.endian, raw.offset, next)?;
        self.buffer = bytes;
        Ok(())
    }

    fn finish(&mut self, _: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        if self.lacks_data && !self.has_data {
            let what = format!(
                "perf {} knows none of the recording's data records",
                self.version
            );
            return Err(Error::Refused(what));
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let whom = |(whom, count): (&String, &u64)| match count {
            1 => whom.clone(),
            _ => format!("{whom} ({count})"),
        };
        let line = |(what, those): (&&str, &BTreeMap<String, u64>)| {
            format!(
                "for perf {}: {what}: {}",
                self.version,
                those.iter().map(whom).collect::<Vec<_>>().join(", ")
            )
        };
        self.report.iter().map(line).collect()
    }
}
