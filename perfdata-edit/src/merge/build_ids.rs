//! The tables of build IDs of several recordings as one.

use std::collections::{HashMap, HashSet};

use perfdata_core::Recording;
use perfdata_core::feature::{BuildIdEntry, BuildIds, Feature, FeatureId, Section};
use perfdata_core::record::CpuMode;

use super::changes::Changes;
use super::checks::CheckedInput;
use super::features::set_unless_equal;
use perfdata_convert::error::Result;
use perfdata_convert::support::text::escaped;

/// What an entry is about: process (of a guest), CPU mode, and file.
type BuildIdKey = (Option<i32>, u16, Vec<u8>);

/// Unites the tables. A file with different build IDs is left out: the table knows files by name
/// only.
///
/// # Errors
/// The table cannot be encoded.
pub(super) fn unite(
    parts: &[CheckedInput<'_>],
    changes: &[Changes],
    recording: &mut Recording,
    notes: &mut Vec<String>,
) -> Result<()> {
    let mut entries: Vec<(BuildIdKey, BuildIdEntry)> = Vec::new();
    let mut known: HashMap<BuildIdKey, Vec<u8>> = HashMap::new();
    let mut contradictory: HashSet<BuildIdKey> = HashSet::new();
    let mut has_table = false;
    for (part, change) in parts.iter().zip(changes) {
        let Some(Ok(Section {
            value: Feature::BuildIds(table),
            ..
        })) = part.recording.feature(FeatureId::BUILD_ID)
        else {
            continue;
        };
        has_table = true;
        for mut entry in table.0 {
            if let Some(pid) = entry.build_id.pid.filter(|&pid| pid > 0) {
                let new = change.pid_of(u64::from(pid.unsigned_abs()), size_of::<u32>());
                entry.build_id.pid = i32::try_from(new).ok().or(Some(pid));
            }
            let misc = entry.header.misc;
            let key = (
                entry.build_id.pid,
                CpuMode::of(misc).0,
                entry.build_id.filename.text().to_vec(),
            );
            let id = entry.build_id.id(misc).to_vec();
            match known.get(&key) {
                None => {
                    known.insert(key.clone(), id);
                    entries.push((key, entry));
                }
                Some(other) if *other == id => {}
                Some(_) => drop(contradictory.insert(key)),
            }
        }
    }
    if !has_table {
        return Ok(());
    }
    if !contradictory.is_empty() {
        let mut names: Vec<String> = contradictory
            .iter()
            .map(|(.., name)| escaped(name))
            .collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(3);
        names.truncate(3);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        notes.push(format!(
            "left out the build IDs of files that differ between the recordings: {}{more}; build IDs in MMAP2 records would be kept",
            names.join(", ")
        ));
    }
    let kept = entries
        .into_iter()
        .filter(|(key, _)| !contradictory.contains(key))
        .map(|(_, entry)| entry);
    let table = Feature::BuildIds(BuildIds(kept.collect()));
    set_unless_equal(recording, FeatureId::BUILD_ID, table)
}
