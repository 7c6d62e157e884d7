//! Offsets of the counts, sizes and offsets in a recording, found from the declarations instead of
//! a manual list.

use std::{collections::BTreeMap, sync::Arc};

use perfdata_core::{
    DecodeContext, Endian, Recording,
    attr::Attr,
    container_layout::{ContainerLayout, FileLayout, Part},
    describe::{Describe, Leaf, Style},
    feature::{FeatureId, Section},
    header::{FileHeader, FileSection},
    read::{Head, Options, RecordingReader, StreamItem},
    record::{RawRecord, Record, RecordHeader, RecordType},
    wire::Wire,
};
use perfdata_report::show::paths::Paths;
use perfdata_tests::convert;

/// A number that is a count, a size or an offset.
#[derive(Clone, Debug)]
pub struct Spot {
    /// Structure and field; list elements without their indexes.
    pub name: String,
    /// Offset from the start of the recording in bytes.
    pub at: usize,
    /// Size in bytes.
    pub size: usize,
}

/// Parts of the names of such numbers that are not declared as counts.
const LENGTHS: [&str; 6] = ["size", "len", "nr", "num", "count", "offset"];

/// Number of spots with the same name that are used: the first ones, because all are read by the
/// same code.
const OF_ONE_NAME: usize = 2;

/// Returns the spots of a recording. Of spots with the same name in structures with the same name,
/// only the first [`OF_ONE_NAME`].
pub fn spots(bytes: &[u8]) -> Vec<Spot> {
    let mut found = Found::default();
    let Ok(reader) = convert::open(bytes.to_vec()) else {
        return Vec::new();
    };
    let model = reader.recording().clone();
    if let ContainerLayout::File(file) = reader.container_layout() {
        found.of_file(bytes, file, &model);
    }
    // From the start, because a pipe's metadata are also records.
    let Ok(mut records) = RecordingReader::open_with(
        Arc::new(bytes.to_vec()),
        Options::default().with_head(Head::Pass),
    ) else {
        return found.spots;
    };
    while let Ok(Some(item)) = records.next() {
        if let StreamItem::Record(raw) = item {
            found.of_record(&raw, &model);
        }
    }
    found.spots
}

#[derive(Default)]
struct Found {
    spots: Vec<Spot>,
    known: BTreeMap<String, usize>,
}

impl Found {
    fn add(&mut self, name: String, at: usize, size: usize) {
        let known = self.known.entry(name.clone()).or_default();
        *known += 1;
        if *known <= OF_ONE_NAME {
            self.spots.push(Spot { name, at, size });
        }
    }

    /// Adds the spots in `value`, which starts at `base`.
    fn of_value(&mut self, structure: &str, base: usize, value: &dyn Describe) {
        let mut at = base;
        value.describe(
            "",
            Style::Plain,
            &mut Paths::new(|path: &str, size, leaf: Leaf<'_>| {
                let last = path.rsplit('.').next().unwrap_or(path);
                let is_number = matches!(leaf, Leaf::Uint(..))
                    && LENGTHS.iter().any(|word| last.contains(word));
                if (is_number || matches!(leaf, Leaf::Count(_))) && size > 0 {
                    let count = if is_number { "" } else { ".len()" };
                    self.add(
                        format!("{structure} {}{count}", without_places(path)),
                        at,
                        size,
                    );
                }
                at += size;
            }),
        );
    }

    fn of_file(&mut self, bytes: &[u8], file: &FileLayout, recording: &Recording) {
        let endian = recording.endian;
        if let Ok((header, _)) = FileHeader::decode(bytes, endian, DecodeContext::default()) {
            self.of_value("file header", 0, &header);
        }
        let entry = usize::try_from(file.header.attr_size).unwrap_or(usize::MAX);
        let attrs = slice(bytes, file.header.attrs);
        let room = u32::try_from(file.header.attr_size - FileSection::SIZE).unwrap_or(u32::MAX);
        let layout = DecodeContext::default().with_attr_room(room);
        let mut at = start(file.header.attrs);
        for attr in attrs.chunks_exact(entry) {
            if let Ok((value, used)) = Attr::decode(attr, endian, layout) {
                self.of_value("attribute", at, &value);
                self.of_section(
                    "place of ids",
                    at + used,
                    attr.get(used..).unwrap_or_default(),
                    endian,
                );
            }
            at += entry;
        }
        if let Some(table) = file.place(Part::FeatureTable) {
            for (number, (entry, (id, _))) in
                slice(bytes, table).chunks(16).zip(&file.table).enumerate()
            {
                let name = format!("place of {}", *id);
                self.of_section(&name, start(table) + 16 * number, entry, endian);
            }
        }
        for region in &file.regions {
            if let Part::Feature(id) = region.part
                && let Some(Ok(section)) = recording.feature(id)
            {
                self.of_value(&format!("feature {id}"), start(region.place), &section);
            }
        }
    }

    fn of_section(&mut self, name: &str, at: usize, bytes: &[u8], endian: Endian) {
        if let Ok((section, _)) = FileSection::decode(bytes, endian, DecodeContext::default()) {
            self.of_value(name, at, &section);
        }
    }

    fn of_record(&mut self, raw: &RawRecord<'_>, model: &Recording) {
        let at = usize::try_from(raw.offset).unwrap_or(usize::MAX);
        let name = format!("{} record", raw.kind);
        self.add(format!("{name} header.size"), at + 6, 2);
        let body = at + RecordHeader::SIZE;
        if let Ok(record) = Record::decode(raw, &model.events.layout_of(raw)) {
            self.of_value(&name, body, &record);
        }
        if raw.kind == RecordType::HEADER_FEATURE
            && let Some(id) = raw
                .word(RecordHeader::SIZE)
                .and_then(|id| u32::try_from(id).ok())
            && let Some(section) = raw.bytes.get(RecordHeader::SIZE + 8..)
        {
            let layout = DecodeContext::default().with_nr_cpus_available(model.nr_cpus_available());
            if let Ok(section) = Section::decode(FeatureId(id), section, raw.endian, &layout) {
                self.of_value(&format!("feature {}", FeatureId(id)), body + 8, &section);
            }
        }
    }
}

fn start(place: FileSection) -> usize {
    usize::try_from(place.offset).unwrap_or(usize::MAX)
}

fn slice(bytes: &[u8], place: FileSection) -> &[u8] {
    let end = place
        .end()
        .and_then(|end| usize::try_from(end).ok())
        .unwrap_or(usize::MAX);
    bytes.get(start(place)..end).unwrap_or_default()
}

/// Replaces `cpus[3].core_id` by `cpus[].core_id`.
fn without_places(path: &str) -> String {
    path.chars().filter(|c| !c.is_ascii_digit()).collect()
}
