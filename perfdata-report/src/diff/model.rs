//! Differences outside of the records: events and feature sections.

use std::collections::BTreeSet;

use perfdata_core::Recording;
use perfdata_core::describe::{Describe, Style, Visitor};
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::names::{DescribedNames, name_in};
use perfdata_core::record::{Body, BuildId, CpuMode, RawRecord, Record};

use super::{Difference, Found, Part, compare_fields};
use crate::show::paths::fields;
use crate::show::tallies::Tallies;
use crate::show::text::{Line, TextLimits};
use perfdata_convert::count::Counts;
use perfdata_convert::error::Result;
use perfdata_convert::support::text::{push_hex, quoted};
use perfdata_session::EventNames;

/// The result of reading a whole recording.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) recording: Option<Recording>,
    pub(super) names: EventNames,
    pub(super) container: Option<ContainerKind>,
    /// The numbers of records.
    pub(super) counts: Counts,
    /// The numbers of compared records, by type.
    pub(super) compared: Tallies,
    /// The names in the EVENT_DESC section, if it is before the first record.
    described: Option<DescribedNames>,
    /// The build IDs in records of a pipe.
    build_ids: Vec<Vec<(String, String)>>,
}

impl Side {
    /// Returns whether a record gives an event its name, and EVENT_DESC does not give it another
    /// one.
    pub(super) fn is_name(&mut self, raw: &RawRecord<'_>, recording: &Recording) -> bool {
        let Some((id, name)) = name_in(raw) else {
            return false;
        };
        let described = self
            .described
            .get_or_insert_with(|| DescribedNames::of(recording));
        match described.get(id) {
            Some(described) => described == name,
            None => recording.events.of_id(id).is_some(),
        }
    }

    /// Adds a build ID that a file would contain in its section.
    pub(super) fn see_build_id(&mut self, raw: &RawRecord<'_>, recording: &Recording) {
        if let Ok(record) = Record::decode(raw, &recording.events.layout_of(raw))
            && let Body::HeaderBuildId(build_id) = &record.body
        {
            self.build_ids.push(of_build_id(raw.misc, build_id));
        }
    }

    /// Returns all build IDs of the section and of records.
    fn all_build_ids(&self, recording: &Recording) -> Vec<(String, String)> {
        let of_section = match recording.feature(FeatureId::BUILD_ID) {
            Some(Ok(Section {
                value: Feature::BuildIds(ids),
                ..
            })) => ids
                .0
                .iter()
                .map(|entry| of_build_id(entry.header.misc, &entry.build_id))
                .collect(),
            _ => Vec::new(),
        };
        let all = of_section
            .into_iter()
            .chain(self.build_ids.iter().cloned())
            .enumerate();
        all.flat_map(|(at, id)| {
            id.into_iter()
                .map(move |(name, value)| (format!("[{at}].{name}"), value))
        })
        .collect()
    }
}

/// Returns the fields of a build ID, both for a record and for the section.
fn of_build_id(misc: u16, build_id: &BuildId) -> Vec<(String, String)> {
    let mut id = String::new();
    push_hex(&mut id, build_id.id(misc));
    let mode = CpuMode::of(misc).to_string();
    let pid = build_id.pid.unwrap_or(-1).to_string();
    let file = quoted(build_id.filename.text());
    [("mode", mode), ("pid", pid), ("id", id), ("filename", file)]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// Reports the differences between the models. `across`: one recording is a pipe, the other a file.
pub(super) fn compare(a: &Side, b: &Side, across: bool, found: &mut Found<'_>) -> Result<()> {
    let (Some(model_a), Some(model_b)) = (&a.recording, &b.recording) else {
        return Ok(());
    };
    let (mut names_a, mut names_b) = (a.names.clone(), b.names.clone());
    names_a.update(model_a);
    names_b.update(model_b);
    found.part = Part::Event;
    for at in 0..model_a.events.len().max(model_b.events.len()) {
        let described = |model: &Recording, names: &EventNames| {
            let event = model.events.get(at)?;
            let mut all = vec![(
                "name".to_owned(),
                quoted(&names.get(model, at).unwrap_or_default()),
            )];
            all.extend(fields(&Named("attr", &event.attr)));
            all.extend(fields(&Named("ids", &event.ids)));
            Some(all)
        };
        let what = format!("event {at}");
        match (described(model_a, &names_a), described(model_b, &names_b)) {
            (Some(a), Some(b)) => compare_fields(&what, &a, &b, found)?,
            (a, b) => {
                let name = |side: Option<Vec<(String, String)>>| {
                    side.and_then(|all| Some(all.first()?.1.clone()))
                };
                found.tell(Difference {
                    what,
                    field: String::new(),
                    a: name(a),
                    b: name(b),
                })?;
            }
        }
    }
    found.part = Part::Feature;
    if across {
        compare_fields(
            "build ids",
            &a.all_build_ids(model_a),
            &b.all_build_ids(model_b),
            found,
        )?;
    }
    let ids: BTreeSet<FeatureId> = model_a
        .features
        .keys()
        .chain(model_b.features.keys())
        .copied()
        .collect();
    for id in ids
        .into_iter()
        .filter(|&id| !across || !is_derived(id, model_a, model_b))
    {
        compare_feature(id, model_a, model_b, found)?;
    }
    Ok(())
}

/// Returns whether the content of a file's section is elsewhere in a pipe, or is missing there.
fn is_derived(id: FeatureId, a: &Recording, b: &Recording) -> bool {
    match id {
        // Flags that perf cannot send through a pipe, and the index with offsets in the file.
        FeatureId::STAT | FeatureId::BRANCH_STACK | FeatureId::AUXTRACE => true,
        // Compared with the records of the pipe.
        FeatureId::BUILD_ID => true,
        // Names and attributes are compared with those of the events.
        FeatureId::EVENT_DESC => !a.features.contains_key(&id) || !b.features.contains_key(&id),
        _ => false,
    }
}

fn compare_feature(
    id: FeatureId,
    a: &Recording,
    b: &Recording,
    found: &mut Found<'_>,
) -> Result<()> {
    let (bytes_a, bytes_b) = (a.features.get(&id), b.features.get(&id));
    let read = |model: &Recording| {
        model
            .feature(id)
            .and_then(perfdata_core::Result::ok)
            .map(without_places)
    };
    if (a.endian == b.endian
        && bytes_a == bytes_b
        && a.nr_cpus_available() == b.nr_cpus_available())
        || says_nothing(&read(a))
        || says_nothing(&read(b))
    {
        return Ok(());
    }
    let what = format!("feature {id}");
    match (read(a), read(b)) {
        (Some(a), Some(b)) if a == b => Ok(()),
        (Some(a), Some(b)) => {
            let described = |section: &Section| {
                let mut all = fields(&section.value);
                if !section.tail.is_empty() {
                    let mut tail = String::new();
                    push_hex(&mut tail, &section.tail);
                    all.push(("tail".to_owned(), tail));
                }
                all
            };
            compare_fields(&what, &described(&a), &described(&b), found)
        }
        (section_a, section_b) => {
            let text = |bytes: Option<&Vec<u8>>, section: Option<Section>| {
                let bytes = bytes?;
                let Some(section) = section else {
                    return Some(format!("{} bytes, damaged", bytes.len()));
                };
                let mut line = Line::new(TextLimits::BRIEF);
                section.value.describe("", Style::Plain, &mut line);
                Some(line.out)
            };
            let (a, b) = (text(bytes_a, section_a), text(bytes_b, section_b));
            if a == b && bytes_a == bytes_b {
                return Ok(());
            }
            found.tell(Difference {
                what,
                field: String::new(),
                a,
                b,
            })
        }
    }
}

/// Returns whether the section is a SAMPLE_TIME of zeros, which was written before there were
/// samples.
fn says_nothing(section: &Option<Section>) -> bool {
    matches!(section, Some(Section { value: Feature::SampleTime(times), .. }) if (times.first, times.last) == (0, 0))
}

/// Returns the section without the offsets of records in the file.
fn without_places(mut section: Section) -> Section {
    if let Feature::AuxtraceIndex(index) = &mut section.value {
        index.iter_mut().for_each(|entry| entry.file_offset = 0);
    }
    section
}

/// A value with a name before its fields.
struct Named<'a, T: ?Sized>(&'static str, &'a T);

impl<T: Describe + ?Sized> Describe for Named<'_, T> {
    fn describe(&self, _: &'static str, style: Style, visitor: &mut dyn Visitor) {
        self.1.describe(self.0, style, visitor);
    }
}
