//! The container of a file: header, attributes, and the offsets and sizes of all parts.

use std::collections::HashMap;

use perfdata_core::Recording;
use perfdata_core::attr::Attr;
use perfdata_core::container_layout::{FileLayout, Part};
use perfdata_core::header::{FileHeader, FileSection};
use perfdata_core::wire::Wire;

use super::{Report, Severity, difference};
use crate::count::number_of;
use crate::error::Result;
use crate::io::InputSource;

/// Checks everything in `file` except records and features.
pub(super) fn check(
    report: &mut Report,
    file: &FileLayout,
    recording: &Recording,
    source: &InputSource,
) -> Result<()> {
    let header = source.bytes(file.place(Part::Header).unwrap_or_default())?;
    if let Some(what) = difference(&header, &file.header.encode(recording.endian)?) {
        report.add(Severity::Error, 0, format!("file header: {what}"));
    }
    check_attrs(report, file, recording, source)?;
    check_ids(report, file, recording);
    check_places(report, file);
    for region in file
        .regions
        .iter()
        .filter(|region| region.part == Part::Gap)
    {
        let FileSection { offset, size } = region.place;
        if !source.is_zero(region.place)? {
            report.add(Severity::Note, offset, number_of(size, "unreferenced byte"));
        }
    }
    Ok(())
}

fn check_attrs(
    report: &mut Report,
    file: &FileLayout,
    recording: &Recording,
    source: &InputSource,
) -> Result<()> {
    let place = file.header.attrs;
    let entry_size = file.header.attr_size;
    if !place.size.is_multiple_of(entry_size) {
        let meaning = format!(
            "attrs section: its size ({} bytes) is not a multiple of the entry size ({entry_size})",
            place.size
        );
        report.add(Severity::Error, place.offset, meaning);
    }
    let mut offset = place.offset;
    for (event, ids) in recording.events.iter().zip(&file.ids) {
        let found = source.bytes(FileSection {
            offset,
            size: entry_size,
        })?;
        let mut again = event.attr.encode(recording.endian)?;
        ids.encode_into(&mut again, recording.endian)?;
        if let Some(what) = difference(&found, &again) {
            report.add(Severity::Error, offset, format!("attribute: {what}"));
        }
        let own = u64::from(event.attr.own_size()) + FileSection::SIZE;
        if own != entry_size {
            let meaning = format!(
                "attribute: size {}, but {} bytes according to the header",
                own - 16,
                entry_size - 16
            );
            report.add(Severity::Warning, offset, meaning);
        }
        if event.attr.own_size() > Attr::KNOWN_SIZE {
            report.add(
                Severity::Note,
                offset,
                "attribute: has newer fields, which are not known by name",
            );
        }
        offset = offset.saturating_add(entry_size);
    }
    Ok(())
}

fn check_ids(report: &mut Report, file: &FileLayout, recording: &Recording) {
    let mut owners = HashMap::new();
    for ((at, event), place) in recording.events.iter().enumerate().zip(&file.ids) {
        for &id in &event.ids {
            if owners.insert(id, at).is_some_and(|other| other != at) {
                report.add(
                    Severity::Error,
                    place.offset,
                    format!("event ID {id} belongs to two events"),
                );
            }
        }
    }
}

/// Returns an error message if the size of the data section in the header is wrong.
pub fn wrong_end(file: &FileLayout) -> Option<String> {
    let data = file.header.data;
    if data.size == 0 {
        Some("the recording is unfinished: the size of the records in the header is 0".into())
    } else if data.end().is_none_or(|end| end > file.len) {
        Some(format!(
            "the size of the records in the header ({} bytes) exceeds the file",
            data.size
        ))
    } else {
        None
    }
}

fn check_places(report: &mut Report, file: &FileLayout) {
    let data = file.header.data;
    if data.size == 0 && file.place(Part::Data).is_none_or(|place| place.size == 0) {
        report.add(Severity::Warning, 48, "there are no records");
    } else if let Some(what) = wrong_end(file) {
        report.add(Severity::Error, 48, what);
    }
    if file.unexplained {
        report.add(
            Severity::Error,
            FileHeader::OLD_SIZE,
            "the header declares feature sections, but the feature table is missing",
        );
    }
    if file.header.event_types.size > 0 && file.place(Part::EventTypes).is_none() {
        report.add(
            Severity::Error,
            56,
            "the names of events are not at the offset in the header",
        );
    }
    for (a, b) in file.shared() {
        report.add(
            Severity::Error,
            b.place.offset,
            format!("{} and {} share bytes", a.part, b.part),
        );
    }
    for (id, place) in file.lost_sections() {
        let lost = Part::Feature(id);
        let meaning = match file.part_at(&place) {
            Some(other) => format!("{lost} and {other} share bytes"),
            None => format!("{lost}: its {} bytes are not inside the file", place.size),
        };
        report.add(Severity::Error, place.offset, meaning);
    }
}
