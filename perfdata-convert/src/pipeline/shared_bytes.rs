//! Files whose parts share bytes, or with unreadable feature sections: which of these a conversion
//! can keep.

use std::fs::File;
use std::sync::Arc;

use perfdata_core::Recording;
use perfdata_core::container_layout::{ContainerLayout, FileLayout, Part};
use perfdata_core::feature::{BuildIdEntry, FeatureId};
use perfdata_core::header::{FileHeader, FileSection};
use perfdata_core::read::{Options, RecordingReader, Source, SourceReader};
use perfdata_core::record::RecordHeader;

use crate::error::{Error, Result, Step};
use crate::io::InputSource;
use crate::leftover::without_place;
use crate::support::os;

/// Refuses a file in which two parts share bytes: changing one of them also changes the other.
pub(super) fn check_parts(container_layout: &ContainerLayout) -> Result<()> {
    let ContainerLayout::File(file) = container_layout else {
        return Ok(());
    };
    let data = file.header.data;
    if let Some(end) = data
        .end()
        .filter(|&end| file.unexplained && data.size > 0 && end <= file.len)
    {
        let what = format!(
            "at offset {end:#x}: the header declares feature sections, but the feature table is missing: they would be lost"
        );
        return Err(Error::Refused(what).with_step(Step::Recover));
    }
    let FileHeader {
        attrs, attr_size, ..
    } = file.header;
    if attrs
        .size
        .checked_rem(attr_size)
        .is_none_or(|rest| rest != 0)
    {
        let FileSection { offset, size } = attrs;
        let what = format!(
            "at offset {offset:#x}: the size of the attributes ({size}) is not a multiple of the entry size ({attr_size})"
        );
        return Err(Error::Refused(what).with_step(Step::Recover));
    }
    let names = file.header.event_types;
    if names.size > 0 && file.place(Part::EventTypes).is_none() {
        let FileSection { offset, size } = names;
        let what = format!(
            "at offset {offset:#x}: the names of events ({size} bytes) are outside of the file and would be \
             overwritten"
        );
        return Err(Error::Refused(what).with_step(Step::Recover));
    }
    let Some((a, b)) = file.conflict() else {
        return Ok(());
    };
    let (FileSection { offset, size }, with) = (b.place, a.place);
    let what = format!(
        "at offset {offset:#x}: {} ({size} bytes) and {} ({} bytes at {:#x}) share bytes: neither can be converted \
         without changing the other",
        b.part, a.part, with.size, with.offset
    );
    Err(Error::Refused(what).with_step(Step::Recover))
}

/// Refuses a file with an unreadable feature section from which perf may still read data: it cannot
/// be converted. `recording` is the converted recording.
pub(super) fn check_lost(
    file: &FileLayout,
    recording: &Recording,
    source: &dyn Source,
) -> Result<()> {
    let lost = file
        .lost_sections()
        .filter(|(id, _)| !recording.features.contains_key(id));
    for (id, place) in lost.filter(|(_, place)| place.offset < file.len) {
        let bytes = bytes_at(source, place)?;
        if says_something(id, &bytes, file, recording) {
            return Err(cannot_be_kept(id, place, &bytes, recording));
        }
    }
    Ok(())
}

/// Refuses `output` if perf would read an unreadable section differently than in the input, whose
/// layout is `file`. `recording` is the written recording.
pub(super) fn check_kept(
    file: &FileLayout,
    recording: &Recording,
    before: &Recording,
    source: &InputSource,
    output: &File,
) -> Result<()> {
    if file.lost_sections().next().is_none() && file.shared().next().is_none() {
        return Ok(());
    }
    let output = Arc::new(os::duplicate(output).map_err(Error::io("output"))?);
    let options = Options::default().with_limits(source.limits());
    let again = RecordingReader::open_with(output.clone(), options)?;
    let ContainerLayout::File(written) = again.container_layout() else {
        return Ok(());
    };
    for (id, place) in file
        .lost_sections()
        .filter(|(id, _)| !recording.features.contains_key(id))
    {
        let now = written
            .table
            .iter()
            .find(|entry| entry.0 == id)
            .map(|entry| entry.1)
            .unwrap_or_default();
        let bytes = bytes_at(&*output, now)?;
        let is_lost = written.place(Part::Feature(id)).is_none();
        if !is_lost || (now.offset < written.len && says_something(id, &bytes, written, recording))
        {
            return Err(cannot_be_kept(id, place, &bytes_at(source, place)?, before));
        }
    }
    let ids = recording
        .features
        .keys()
        .chain(again.recording().features.keys());
    for &id in ids {
        if recording.features.get(&id) != again.recording().features.get(&id) {
            let what =
                format!("feature {id} cannot be written to this file, whose parts share bytes");
            return Err(Error::Refused(what).with_step(Step::Recover));
        }
    }
    Ok(())
}

/// Returns whether perf may read data from an unreadable section. perf reads most sections beyond
/// their end. It reads build IDs one by one, up to the first unreadable one; perf inject overwrites
/// this section with attributes.
fn says_something(id: FeatureId, bytes: &[u8], file: &FileLayout, recording: &Recording) -> bool {
    let header = RecordHeader::parse(bytes, recording.endian);
    let is_void = header.is_none_or(|header| usize::from(header.size) < BuildIdEntry::FIXED);
    !(id == FeatureId::BUILD_ID && is_void && file.place(Part::Feature(id)).is_none())
}

fn cannot_be_kept(id: FeatureId, place: FileSection, bytes: &[u8], recording: &Recording) -> Error {
    let mut alone = Recording::new(recording.endian);
    alone.features.insert(id, bytes.to_vec());
    let why = match alone.feature(id) {
        Some(Err(error)) => without_place(&error),
        _ => "it shares its bytes with other parts".into(),
    };
    let FileSection { offset, size } = place;
    let what = format!(
        "at offset {offset:#x}: feature {id} ({size} bytes) cannot be read and cannot be copied unchanged: {why}"
    );
    Error::refused_without(what, Step::DropFeature(id))
}

/// Returns the bytes of a section, as far as the file contains them.
fn bytes_at(source: &dyn Source, place: FileSection) -> Result<Vec<u8>> {
    let len = source.len().map_err(Error::io("input"))?;
    let mut bytes = Vec::new();
    let place = FileSection {
        size: place.size.min(len.saturating_sub(place.offset)),
        ..place
    };
    std::io::Read::read_to_end(&mut SourceReader::new(source, place), &mut bytes)
        .map_err(Error::io("input"))?;
    Ok(bytes)
}
