//! The kernels of several recordings: a recording can hold only one.

use std::collections::{BTreeMap, HashMap};

use perfdata_core::feature::{Feature, FeatureId, Section};

use super::changes::Moves;
use super::checks::{CheckedInput, differ, is_of_kernel, refused};
use super::survey::{KERNEL, KernelMap};
use super::{Align, Merge, checks};
use perfdata_convert::error::{Result, Step};
use perfdata_convert::support::text::escaped;

/// Returns the bytes as hexadecimal text.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the build ID of the kernel.
fn build_id(part: &CheckedInput<'_>) -> Option<Vec<u8>> {
    let of_map = part
        .survey
        .kernel
        .as_ref()
        .and_then(|map| map.build_id.clone());
    of_map.or_else(|| {
        let Some(Ok(Section {
            value: Feature::BuildIds(ids),
            ..
        })) = part.recording.feature(FeatureId::BUILD_ID)
        else {
            return None;
        };
        let kernel = ids.0.iter().find(|entry| {
            let name = entry.build_id.filename.text();
            let is_image = name
                .rsplit(|&byte| byte == b'/')
                .next()
                .is_some_and(|file| file.starts_with(b"vmlinux") || file.starts_with(b"vmlinuz"));
            is_of_kernel(entry.header.misc) && (name.starts_with(KERNEL) || is_image)
        })?;
        Some(kernel.build_id.id(kernel.header.misc).to_vec())
    })
}

/// Returns the addresses that move in each recording, so that all have the kernel of the first one
/// that has a kernel.
///
/// # Errors
/// The recordings are of different kernels, or of one kernel at different addresses without
/// permission to move it.
pub(super) fn moves(merge: &Merge, parts: &[CheckedInput<'_>]) -> Result<Vec<Moves>> {
    let mut all = vec![Moves::default(); parts.len()];
    // The kernel ID may be known of other recordings than the address.
    let mut known: Option<(&str, Vec<u8>)> = None;
    for part in parts {
        let Some(id) = build_id(part) else {
            continue;
        };
        match &known {
            None => known = Some((part.name, id)),
            Some((_, other)) if *other == id => {}
            Some((name, other)) => {
                let what = "the build ID of the kernel";
                return Err(differ(what, (name, &hex(other)), (part.name, &hex(&id))));
            }
        }
    }
    let Some((first, kernel)) = parts
        .iter()
        .find_map(|part| Some((part, part.survey.kernel.as_ref()?)))
    else {
        return Ok(all);
    };
    for (part, moves) in parts.iter().zip(&mut all) {
        let Some(own) = &part.survey.kernel else {
            continue;
        };
        if own.addr == kernel.addr {
            continue;
        }
        let shown = |map: &KernelMap| format!("{:#x}", map.addr);
        let error = differ(
            "the address of the kernel",
            (first.name, &shown(kernel)),
            (part.name, &shown(own)),
        );
        if !merge.rebase_kernel {
            let may = build_id(first).is_some() && build_id(first) == build_id(part);
            return Err(if may {
                error.with_step(Step::RebaseKernel)
            } else {
                error
            });
        }
        if build_id(first).is_none() || build_id(first) != build_id(part) {
            return Err(refused(format!(
                "{error}; whether it is the same kernel is not known: {} has no build ID of it",
                if build_id(first).is_none() {
                    first.name
                } else {
                    part.name
                }
            )));
        }
        if merge.align == Align::Boot && !checks::is_wall_clock(&part.recording.events) {
            return Err(refused(format!(
                "{error}: they are of different boots, whose clocks do not agree"
            ))
            .with_step(Step::InOrder));
        }
        *moves = moves_of(first, kernel, part, own)?;
    }
    Ok(all)
}

/// Returns the moves from the kernel `own` of `part` to `kernel` of `first`, module by module.
fn moves_of(
    first: &CheckedInput<'_>,
    kernel: &KernelMap,
    part: &CheckedInput<'_>,
    own: &KernelMap,
) -> Result<Moves> {
    let mut moves = Moves::default();
    let modules = &first.survey.modules;
    let by_name: HashMap<&[u8], &KernelMap> = modules
        .iter()
        .map(|module| (&*module.name, module))
        .collect();
    let by_addr: BTreeMap<u64, &KernelMap> =
        modules.iter().map(|module| (module.addr, module)).collect();
    for module in &part.survey.modules {
        match by_name.get(&*module.name) {
            Some(other) if other.len == module.len => {
                moves.add_module(module.addr, module.end(), other.addr);
            }
            Some(other) => {
                let name = escaped(&module.name);
                let shown = |map: &KernelMap| format!("{:#x}", map.len);
                return Err(differ(
                    &format!("the length of the module {name}"),
                    (first.name, &shown(other)),
                    (part.name, &shown(module)),
                ));
            }
            None => {
                let before = by_addr.range(..module.end()).next_back();
                let taken = before
                    .map(|(_, other)| other)
                    .filter(|other| module.addr < other.end());
                if let Some(other) = taken {
                    let (name, other_name) = (escaped(&module.name), escaped(&other.name));
                    return Err(refused(format!(
                        "the module {name} of {} is only in this recording, at {:#x}, where {} has {other_name}",
                        part.name, module.addr, first.name
                    )));
                }
                moves.add_module(module.addr, module.end(), module.addr);
            }
        }
    }
    moves.set_kernel(own.addr, own.end(), kernel.addr);
    Ok(moves)
}
