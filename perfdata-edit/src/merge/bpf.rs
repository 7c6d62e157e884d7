//! The BPF programs and types of several recordings as one.

use std::collections::{BTreeMap, HashSet};

use perfdata_core::feature::{BpfInfo, BpfProgram, Btf, Feature, FeatureId, Section};
use perfdata_core::wire::{Counted, Wire};
use perfdata_core::{Endian, Recording};

use super::changes::Changes;
use super::checks::{CheckedInput, refused};
use super::features::set_unless_equal;
use perfdata_convert::error::Result;

/// Unites the programs and types by their IDs.
///
/// # Errors
/// Two recordings have different programs or types with one ID.
pub(super) fn unite(
    parts: &[CheckedInput<'_>],
    changes: &[Changes],
    recording: &mut Recording,
) -> Result<()> {
    let mut programs: BTreeMap<u32, (&str, BpfProgram)> = BTreeMap::new();
    // Programs in a form that has no ID.
    let mut others: Vec<BpfProgram> = Vec::new();
    let mut known: HashSet<Vec<u8>> = HashSet::new();
    let mut types: BTreeMap<u32, (&str, Btf)> = BTreeMap::new();
    for (part, change) in parts.iter().zip(changes) {
        if let Some(Ok(Section {
            value: Feature::BpfProgInfo(own),
            ..
        })) = part.recording.feature(FeatureId::BPF_PROG_INFO)
        {
            for mut program in own.into_inner() {
                let BpfInfo::Known(info) = &mut program.info else {
                    if known.insert(program.encode(Endian::Little)?) {
                        others.push(program);
                    }
                    continue;
                };
                info.id = info.id.wrapping_add(change.bpf);
                if info.btf_id != 0 {
                    info.btf_id = info.btf_id.wrapping_add(change.bpf);
                }
                let id = info.id;
                match programs.get(&id) {
                    None => drop(programs.insert(id, (part.name, program))),
                    Some((_, known)) if without_counts(known) == without_counts(&program) => {}
                    Some((name, _)) => return Err(contradiction("program", id, name, part.name)),
                }
            }
        }
        if let Some(Ok(Section {
            value: Feature::BpfBtf(own),
            ..
        })) = part.recording.feature(FeatureId::BPF_BTF)
        {
            for mut btf in own.into_inner() {
                btf.id = btf.id.wrapping_add(change.bpf);
                match types.get(&btf.id) {
                    None => drop(types.insert(btf.id, (part.name, btf))),
                    Some((_, known)) if *known == btf => {}
                    Some((name, _)) => {
                        return Err(contradiction("type information", btf.id, name, part.name));
                    }
                }
            }
        }
    }
    let programs: Vec<BpfProgram> = programs
        .into_values()
        .map(|(_, program)| program)
        .chain(others)
        .collect();
    if !programs.is_empty() {
        let value = Feature::BpfProgInfo(Counted::from(programs));
        set_unless_equal(recording, FeatureId::BPF_PROG_INFO, value)?;
    }
    let types: Vec<Btf> = types.into_values().map(|(_, btf)| btf).collect();
    if !types.is_empty() {
        let value = Feature::BpfBtf(Counted::from(types));
        set_unless_equal(recording, FeatureId::BPF_BTF, value)?;
    }
    Ok(())
}

fn contradiction(what: &str, id: u32, a: &str, b: &str) -> perfdata_convert::error::Error {
    refused(format!(
        "the BPF {what} with the ID {id} differs between {a} and {b}"
    ))
}

/// Returns the program without the numbers that count its runs.
fn without_counts(program: &BpfProgram) -> BpfProgram {
    let mut program = program.clone();
    if let BpfInfo::Known(info) = &mut program.info {
        info.run_time_ns = 0;
        info.run_cnt = 0;
        info.recursion_misses = info.recursion_misses.map(|_| 0);
    }
    program
}
