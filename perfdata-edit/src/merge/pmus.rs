//! The names of the dynamic event types of several recordings as one list.

use std::collections::HashMap;

use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, PmuMapping, Section};
use perfdata_core::wire::{Counted, HeaderString};

use super::checks::refused;
use perfdata_convert::error::Result;

/// The first dynamic event type (include/uapi/linux/perf_event.h, PERF_TYPE_MAX): the kernel
/// numbers the types from here on when PMUs are registered.
const DYNAMIC: u32 = 6;

/// Returns the names of the dynamic event types of a recording.
fn of(model: &Recording) -> Vec<PmuMapping> {
    match model.feature(FeatureId::PMU_MAPPINGS) {
        Some(Ok(Section {
            value: Feature::PmuMappings(pmus),
            ..
        })) => pmus.into_inner(),
        _ => Vec::new(),
    }
}

/// Adds the event types of a recording to those of the others, and returns those whose number
/// changes: the same PMU may have different numbers.
pub(super) fn unite(
    pmus: &mut Vec<PmuMapping>,
    name: &str,
    model: &Recording,
    are_machines: bool,
) -> Result<HashMap<u32, u32>> {
    let mut changes = HashMap::new();
    let own = of(model);
    if pmus.is_empty() && !are_machines {
        *pmus = own;
        return Ok(changes);
    }
    for pmu in &own {
        let same = pmus
            .iter()
            .find(|other| other.name.text() == pmu.name.text());
        let kind = match same {
            Some(same) => same.kind,
            None => {
                let is_taken = pmus.iter().any(|other| other.kind == pmu.kind);
                let next = pmus
                    .iter()
                    .map(|other| other.kind)
                    .max()
                    .unwrap_or(0)
                    .saturating_add(1);
                let kind = if is_taken { next } else { pmu.kind };
                pmus.push(PmuMapping {
                    kind,
                    name: HeaderString::new(pmu.name.text()),
                });
                kind
            }
        };
        if kind != pmu.kind && pmu.kind >= DYNAMIC {
            changes.insert(pmu.kind, kind);
        }
    }
    let nameless = model.events.iter().find(|event| {
        event.attr.kind.0 >= DYNAMIC && !own.iter().any(|pmu| pmu.kind == event.attr.kind.0)
    });
    match nameless {
        Some(event)
            if are_machines
                || (!own.is_empty() && pmus.iter().any(|pmu| pmu.kind == event.attr.kind.0)) =>
        {
            Err(refused(format!(
                "{name}: the event type {} has no name in PMU_MAPPINGS, so it cannot be compared with those of the other recordings",
                event.attr.kind.0
            )))
        }
        _ => Ok(changes),
    }
}

/// Returns the PMU_MAPPINGS section.
pub(super) fn mappings(pmus: Vec<PmuMapping>) -> Feature {
    Feature::PmuMappings(Counted::from(pmus))
}
