//! Every release and every recording: the result contains nothing that the release does not know.

use std::collections::BTreeSet;
use std::path::Path;

use perfdata_convert::io::Input;
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::Unknown;
use perfdata_convert::verify::Report;
use perfdata_core::Version;
use perfdata_core::attr::{AttrFlags, AuxAction, BranchSampleType, ReadFormat, SIZES, SampleType};
use perfdata_core::describe::Field;
use perfdata_core::feature;
use perfdata_core::record::{self, BranchFlags, Weights};
use perfdata_tests::convert::convert;
use perfdata_tests::is_thorough;
use perfdata_tests::recordings::{self, Container, Form, Recording};

use super::{all_recordings, check_known, version};

/// Returns every release in the tables.
fn releases() -> BTreeSet<Version> {
    let words: [&[Field]; 9] = [
        SampleType::FIELDS,
        ReadFormat::FIELDS,
        BranchSampleType::FIELDS,
        AttrFlags::FIELDS,
        AuxAction::FIELDS,
        record::AuxFlags::FIELDS,
        BranchFlags::FIELDS,
        Weights::FIELDS,
        record::DataSource::FIELDS,
    ];
    let misc = record::TABLE.iter().flat_map(|info| info.misc);
    let bits = words
        .into_iter()
        .flatten()
        .chain(misc)
        .map(|field| field.since);
    let records = record::TABLE.iter().map(|info| info.since);
    let features = feature::TABLE.iter().map(|info| info.since);
    let sizes = SIZES.iter().map(|(_, since)| *since);
    bits.chain(records)
        .chain(features)
        .chain(sizes)
        .map(version)
        .collect()
}

/// The result of `--compat` for any recording and any release is intact, and contains nothing that
/// the release does not know; otherwise the conversion is refused. Here, each recording is tested
/// with a few releases, and each release with some recordings; over many runs, all combinations are
/// tested.
#[test]
fn every_release_and_every_recording() {
    let releases: Vec<Version> = releases().into_iter().collect();
    assert!(releases.len() > 40, "{} releases", releases.len());
    let all = if is_thorough() {
        all_recordings()
    } else {
        recordings::fixtures()
    };
    let step = if is_thorough() { 1 } else { 13 };
    let is_clean = |path: &Path| {
        Input::open(path)
            .and_then(Report::of)
            .is_ok_and(|report| report.is_clean())
    };
    let is_single = |form| {
        matches!(
            form,
            Some(Form {
                container: Container::File | Container::Pipe,
                ..
            })
        )
    };
    let all: Vec<Recording> = all
        .into_iter()
        .filter(|recording| is_single(recording.form))
        .collect();
    recordings::check_all(&all, |recording| {
        if !is_clean(&recording.path) {
            return Ok(());
        }
        let name: usize = recording.name.bytes().map(usize::from).sum();
        for release in releases.iter().skip(name % step).step_by(step) {
            let stage = Compat::new(*release).deciding(Unknown::Drop);
            let made = match convert(&recording.path, None, vec![Box::new(stage)]) {
                Ok(made) => made,
                Err(error) => {
                    let why = error.to_string();
                    let is_known = [
                        "knows none of the recording's data records",
                        "cannot read it",
                    ]
                    .iter()
                    .any(|known| why.contains(known));
                    if is_known {
                        continue;
                    } else {
                        return Err(format!("for {release}: {why}"));
                    }
                }
            };
            let report = Input::open(&made.path())
                .and_then(Report::of)
                .map_err(|error| error.to_string())?;
            if !report.is_clean() {
                return Err(format!("for {release}: {}", report.text()));
            }
            check_known(&made.path(), *release).map_err(|why| format!("for {release}: {why}"))?;
            let again = convert(&made.path(), None, vec![Box::new(Compat::new(*release))]);
            if again
                .map_err(|error| format!("for {release}, again: {error}"))?
                .bytes()
                != made.bytes()
            {
                return Err(format!("for {release}: for it again it is another one"));
            }
            // The same with compressed records.
            let plain = convert(&made.path(), None, vec![Box::new(Decompress::default())]);
            let plain = plain.map_err(|error| error.to_string())?;
            check_known(&plain.path(), *release)
                .map_err(|why| format!("for {release}, compressed: {why}"))?;
        }
        Ok(())
    });
}
