//! Events that a stage adds to a recording.

use perfdata_core::attr::{Attr, AttrFlags, AuxAction, BranchSampleType, ReadFormat};
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{EventDescs, Feature, FeatureId, Section};
use perfdata_core::names::name_records;
use perfdata_core::wire::{HeaderString, Rest};
use perfdata_core::{Event, Events, Recording};

use perfdata_convert::error::Result;

/// Returns an attribute of the size of `other`, with the same read format and the same excluded
/// contexts, and nothing else.
pub(crate) fn plain(other: &Attr) -> Attr {
    let is_set = |field: u64| field != 0;
    let flags = AttrFlags::default()
        .with_exclude_user(is_set(other.flags.exclude_user()))
        .with_exclude_kernel(is_set(other.flags.exclude_kernel()))
        .with_exclude_hv(is_set(other.flags.exclude_hv()))
        .with_exclude_host(is_set(other.flags.exclude_host()))
        .with_exclude_guest(is_set(other.flags.exclude_guest()))
        .with_sample_id_all(is_set(other.flags.sample_id_all()));
    Attr {
        size: other.size,
        read_format: ReadFormat(other.read_format.0),
        flags,
        config2: other.config2.map(|_| 0),
        branch_sample_type: other
            .branch_sample_type
            .map(|_| BranchSampleType::default()),
        sample_regs_user: other.sample_regs_user.map(|_| 0),
        sample_stack_user: other.sample_stack_user.map(|_| 0),
        clockid: other.clockid.map(|_| 0),
        sample_regs_intr: other.sample_regs_intr.map(|_| 0),
        aux_watermark: other.aux_watermark.map(|_| 0),
        sample_max_stack: other.sample_max_stack.map(|_| 0),
        reserved_2: other.reserved_2.map(|_| 0),
        aux_sample_size: other.aux_sample_size.map(|_| 0),
        aux_action: other.aux_action.map(|_| AuxAction::default()),
        sig_data: other.sig_data.map(|_| 0),
        config3: other.config3.map(|_| 0),
        config4: other.config4.map(|_| 0),
        tail: Rest(vec![0; other.tail.0.len()]),
        ..Attr::default()
    }
}

/// Returns the first ID from `id` on that no event has. It is not 0.
pub(crate) fn free_id(events: &Events, mut id: u64) -> u64 {
    while id == 0 || events.of_id_strict(id).is_some() {
        id = id.wrapping_add(1);
    }
    id
}

/// Adds the names of new events to EVENT_DESC. Returns the EVENT_UPDATE records with the names
/// that must precede the samples: perf reads the names of a pipe from these records only.
pub(crate) fn describe(
    recording: &mut Recording,
    container_layout: &ContainerLayout,
    new: &[(Event, Vec<u8>)],
) -> Result<Vec<Vec<u8>>> {
    let is_described = in_section(recording, new)?;
    if is_described && !matches!(container_layout, ContainerLayout::Pipe(_)) {
        return Ok(Vec::new());
    }
    let names = new
        .iter()
        .filter_map(|(event, name)| Some((*event.ids.first()?, name.clone())));
    let names: Vec<_> = names.collect();
    Ok(name_records(&names, recording.endian))
}

/// Adds the new events to EVENT_DESC. Returns false if there is no readable section of these
/// events.
fn in_section(recording: &mut Recording, new: &[(Event, Vec<u8>)]) -> Result<bool> {
    let Some(Ok(Section {
        value: Feature::EventDescs(descs),
        ..
    })) = recording.feature(FeatureId::EVENT_DESC)
    else {
        return Ok(false);
    };
    let known = descs.events.0.into_iter();
    let known = known.map(|desc| (desc.attr.0, desc.name, desc.ids.0));
    let added = new.iter().map(|(event, name)| {
        (
            event.attr.clone(),
            HeaderString::new(name),
            event.ids.clone(),
        )
    });
    let Some(all) = EventDescs::new(known.chain(added).collect()) else {
        return Ok(false);
    };
    recording.set_feature(FeatureId::EVENT_DESC, Feature::EventDescs(all))?;
    Ok(true)
}
