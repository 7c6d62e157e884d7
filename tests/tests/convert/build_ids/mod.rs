//! Build IDs that a conversion adds: for the correct DSOs, from the correct files, and the same as
//! perf's.

mod order;
mod perf;
mod sources;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use perfdata_core::DecodeContext;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, BuildId, RawRecord, Record, RecordType};
use perfdata_inject::build_ids::{BuildIds, KnownBuildIds, Resolver, Select, Storage, Sysroot};
use perfdata_tests::convert::{Converted, Whole, convert};

/// Build IDs and names of their DSOs.
type Table = BTreeSet<(String, String)>;

/// Returns the stage for the options.
fn stage(select: Select, place: Storage, root: Option<&Path>, known: &str) -> BuildIds {
    let known = KnownBuildIds::parse(known).expect("the list is right");
    BuildIds::new(
        select,
        place,
        Resolver::new(known, Sysroot::new(root.map(PathBuf::from)), None),
    )
}

/// Converts `input` to the container `to`, and adds build IDs from files under `root`.
fn with_build_ids(
    input: &Path,
    to: Option<ContainerKind>,
    select: Select,
    root: Option<&Path>,
) -> Converted {
    convert(
        input,
        to,
        vec![Box::new(stage(select, Storage::Table, root, ""))],
    )
    .unwrap_or_else(|error| panic!("{}: {error}", input.display()))
}

/// Returns the contents of the BUILD_ID section of the recording at `path`, and of its build ID
/// records.
fn table(path: &Path) -> Table {
    let whole =
        Whole::read_file(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let row = |misc: u16, entry: &BuildId| {
        let id = entry
            .id(misc)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        (
            id,
            String::from_utf8_lossy(entry.filename.text()).into_owned(),
        )
    };
    let mut rows = Table::new();
    if let Some(Section {
        value: Feature::BuildIds(ids),
        ..
    }) = whole
        .recording
        .feature(FeatureId::BUILD_ID)
        .transpose()
        .expect("the section can be read")
    {
        rows.extend(
            ids.0
                .iter()
                .map(|entry| row(entry.header.misc, &entry.build_id)),
        );
    }
    for (at, _) in whole
        .records
        .iter()
        .filter(|(_, kind)| *kind == RecordType::HEADER_BUILD_ID)
    {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0)
            .expect("it was read before");
        if let Body::HeaderBuildId(entry) = Record::decode(&raw, &DecodeContext::default())
            .expect("it can be decoded")
            .body
        {
            rows.insert(row(raw.misc, &entry));
        }
    }
    rows
}

/// Returns a row of a table.
fn row(id: &str, name: &str) -> (String, String) {
    (id.to_owned(), name.to_owned())
}
