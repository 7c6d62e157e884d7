//! The model of several recordings that are merged.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Problem, Result};
use crate::feature::{EventDescs, Feature, FeatureId, SampleTime, Section};
use crate::recording::{Event, Events, Recording};
use crate::wire::HeaderString;

/// The IDs that change in a recording: old and new.
pub(super) type Ids = HashMap<u64, u64>;

/// Merges the models of several recordings, and returns the event IDs that change in each.
///
/// # Errors
/// The recordings differ in byte order, or the event of a record would be ambiguous.
pub(super) fn unite(models: &[&Recording]) -> Result<(Recording, Vec<Ids>)> {
    let Some((&first, others)) = models.split_first() else {
        return Err(refused("there is no recording to merge"));
    };
    if others.iter().any(|other| other.endian != first.endian) {
        return Err(refused(
            "the recordings differ in byte order: convert them to one first",
        ));
    }
    if models.iter().any(|model| model.events.is_empty()) {
        return Err(refused(
            "a recording has no attributes before its first record",
        ));
    }
    let mut united = first.clone();
    if others.is_empty() {
        return Ok((united, vec![Ids::new()]));
    }
    let mut events = first.events.clone().into_vec();
    let mut used: HashSet<u64> = events
        .iter()
        .flat_map(|event| event.ids.iter().copied())
        .collect();
    // Starts after the largest ID, so that a new ID is not an ID of a later recording.
    let all = models
        .iter()
        .flat_map(|model| model.events.iter())
        .flat_map(|event| event.ids.iter().copied());
    let mut unused = all.max().unwrap_or(0);
    let mut maps = vec![Ids::new()];
    for model in others {
        let mut map = Ids::new();
        // Events of this recording are only matched with events of earlier ones.
        let before = events.len();
        for event in model.events.iter() {
            let own = events
                .get(..before)
                .unwrap_or_default()
                .iter()
                .position(|other| other.attr == event.attr);
            let shared = own
                .and_then(|own| events.get(own))
                .map(|own| own.ids.as_slice())
                .unwrap_or_default();
            let ids = event
                .ids
                .iter()
                .filter(|id| !shared.contains(id))
                .map(|&id| {
                    if used.insert(id) {
                        return id;
                    }
                    unused = unused.wrapping_add(1);
                    used.insert(unused);
                    map.insert(id, unused);
                    unused
                });
            let ids: Vec<u64> = ids.collect();
            match own.and_then(|own| events.get_mut(own)) {
                Some(own) => own.ids.extend(ids),
                None => events.push(Event {
                    attr: event.attr.clone(),
                    ids,
                }),
            }
        }
        maps.push(map);
    }
    united.events = events.into_iter().collect();
    check_layouts(&united.events)?;
    unite_features(&mut united, models)?;
    Ok((united, maps))
}

/// Checks that each record identifies its event: all records contain an ID, at the same position.
fn check_layouts(events: &Events) -> Result<()> {
    if events.len() < 2 {
        return Ok(());
    }
    if events.iter().any(|event| event.ids.is_empty()) {
        return Err(refused(
            "an event has no IDs: its records could not be told from those of the others",
        ));
    }
    let places: HashSet<_> = events
        .iter()
        .map(|event| Events::id_place(&event.attr))
        .collect();
    let trailers: HashSet<_> = events
        .iter()
        .map(|event| event.attr.flags.sample_id_all())
        .collect();
    if places.len() > 1 || trailers.len() > 1 || places.contains(&None) {
        return Err(refused(
            "the records of the recordings have the event ID at different places",
        ));
    }
    Ok(())
}

/// Updates the features that describe events and samples for all recordings. Removes those that
/// describe the container.
fn unite_features(united: &mut Recording, models: &[&Recording]) -> Result<()> {
    for id in [
        FeatureId::COMPRESSED,
        FeatureId::AUXTRACE,
        FeatureId::DIR_FORMAT,
    ] {
        united.features.remove(&id);
    }
    let times = models
        .iter()
        .map(|model| match model.feature(FeatureId::SAMPLE_TIME) {
            // perf record does not know the times if it writes a pipe.
            Some(Ok(Section {
                value: Feature::SampleTime(time),
                ..
            })) if time.last != 0 => Some(time),
            _ => None,
        });
    let times = times.collect::<Option<Vec<SampleTime>>>();
    united.features.remove(&FeatureId::SAMPLE_TIME);
    if let Some(times) = times {
        let first = times.iter().map(|time| time.first).min().unwrap_or(0);
        let last = times.iter().map(|time| time.last).max().unwrap_or(0);
        united.set_feature(
            FeatureId::SAMPLE_TIME,
            Feature::SampleTime(SampleTime { first, last }),
        )?;
    }
    united.features.remove(&FeatureId::EVENT_DESC);
    let names = united
        .events
        .iter()
        .map(|event| models.iter().find_map(|model| name(model, event)));
    let Some(names) = names.collect::<Option<Vec<HeaderString>>>() else {
        return Ok(());
    };
    let descs = united
        .events
        .iter()
        .zip(names)
        .map(|(event, name)| (event.attr.clone(), name, event.ids.clone()));
    if let Some(descs) = EventDescs::new(descs.collect()) {
        united.set_feature(FeatureId::EVENT_DESC, Feature::EventDescs(descs))?;
    }
    Ok(())
}

/// Returns the name of an event, if it is an event of `model` and the recording contains its name.
fn name(model: &Recording, event: &Event) -> Option<HeaderString> {
    let Some(Ok(Section {
        value: Feature::EventDescs(descs),
        ..
    })) = model.feature(FeatureId::EVENT_DESC)
    else {
        return None;
    };
    let at = model.events.iter().position(|own| own.attr == event.attr)?;
    descs
        .of_event(&descs.by_first_id(), &model.events, at)
        .map(|desc| desc.name.clone())
}

fn refused(why: &'static str) -> Error {
    Error::new("recordings", Problem::Unknown(why.into()))
}
