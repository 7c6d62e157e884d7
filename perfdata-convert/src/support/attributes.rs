//! Changes of attributes, wherever a recording contains them: in its events, in the EVENT_DESC
//! section, and in the records of a pipe.

use perfdata_core::attr::Attr;
use perfdata_core::container_layout::{ContainerLayout, SlotContent};
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::record::{Body, RawRecord, Record};
use perfdata_core::wire::Rest;
use perfdata_core::{DecodeContext, Endian, Event, Events, Recording};

use crate::error::Result;
use crate::stages::to_file::has_attrs;

/// Returns the events with changed attributes.
pub fn changed_events(events: &Events, change: &dyn Fn(&Attr) -> Attr) -> Events {
    let changed = |event: &Event| Event {
        attr: change(&event.attr),
        ids: event.ids.clone(),
    };
    events.iter().map(changed).collect()
}

/// Returns whether the events were read ahead: those of a stream without attributes at its start,
/// in which attributes only repeat them.
pub fn has_late_events(recording: &Recording, container_layout: &ContainerLayout) -> bool {
    !recording.events.is_empty() && !has_attrs(container_layout)
}

/// Changes the attributes in the metadata before the first record, except for those of the events.
pub fn change_head(
    recording: &mut Recording,
    container_layout: &mut ContainerLayout,
    change: &dyn Fn(&Attr) -> Attr,
) -> Result<()> {
    let endian = recording.endian;
    if let Some(bytes) = recording.features.get_mut(&FeatureId::EVENT_DESC)
        && let Some(new) = changed_section(FeatureId::EVENT_DESC, bytes, endian, change)?
    {
        *bytes = new;
    }
    if let ContainerLayout::Pipe(head) = container_layout {
        for slot in &mut head.slots {
            if let SlotContent::Verbatim(bytes) = &mut slot.content {
                let raw = RawRecord::first(bytes, endian, 0)?;
                let size = raw.bytes.len();
                if let Some(mut new) = changed_record(&raw, change)? {
                    new.extend_from_slice(bytes.get(size..).unwrap_or_default());
                    *bytes = new;
                }
            }
        }
    }
    Ok(())
}

/// Returns a section with changed attributes; `None` if it does not change, or is damaged.
fn changed_section(
    id: FeatureId,
    bytes: &[u8],
    endian: Endian,
    change: &dyn Fn(&Attr) -> Attr,
) -> Result<Option<Vec<u8>>> {
    if id != FeatureId::EVENT_DESC {
        return Ok(None);
    }
    let Ok(mut section) = Section::decode(id, bytes, endian, &DecodeContext::default()) else {
        return Ok(None);
    };
    let mut is_same = true;
    if let Feature::EventDescs(descs) = &mut section.value {
        for desc in &mut descs.events.0 {
            let new = change(&desc.attr.0);
            is_same &= new == desc.attr.0;
            desc.attr.0 = new;
        }
    }
    Ok(if is_same {
        None
    } else {
        Some(section.encode(endian)?)
    })
}

/// Returns a metadata record with changed attributes; `None` if it does not change.
pub fn changed_record(
    raw: &RawRecord<'_>,
    change: &dyn Fn(&Attr) -> Attr,
) -> Result<Option<Vec<u8>>> {
    let mut record = Record::decode(raw, &DecodeContext::default())?;
    match &mut record.body {
        Body::HeaderAttr(body) => {
            let new = change(&body.attr);
            if new == body.attr {
                return Ok(None);
            }
            body.attr = new;
        }
        Body::HeaderFeature(body) => {
            let Ok(id) = u32::try_from(body.feat_id) else {
                return Ok(None);
            };
            match changed_section(FeatureId(id), &body.section.0, raw.endian, change)? {
                Some(bytes) => body.section = Rest(bytes),
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    }
    Ok(Some(record.encode(raw.endian)?))
}
