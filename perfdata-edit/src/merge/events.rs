//! The events of several recordings as one list.

use std::collections::{HashMap, HashSet};

use perfdata_core::attr::{Attr, EventType, SampleType};
use perfdata_core::describe::{Describe, Style, WireSize};
use perfdata_core::feature::{EventDescs, Feature, FeatureId, GroupDesc, PmuMapping, Section};
use perfdata_core::names::EventNames;
use perfdata_core::record::SampleId;
use perfdata_core::wire::{HeaderString, Wire};
use perfdata_core::{DecodeContext, Endian, Event, Events, Recording};

use super::changes::Changes;
use super::checks::refused;
use super::pmus;
use perfdata_convert::error::Result;

/// IDs that collide are renumbered from the next multiple of this number: IDs count from 1 since
/// the boot, so old and new ones stay apart.
const ID_STEP: u64 = 1 << 32;

/// The events of all recordings.
pub(super) struct UnitedEvents {
    /// The events, those of the first recording first.
    pub(super) events: Events,
    /// Their names, where known.
    pub(super) names: Vec<Option<HeaderString>>,
    /// The groups among them.
    pub(super) groups: Vec<GroupDesc>,
    /// The names of the dynamic event types.
    pub(super) pmus: Vec<PmuMapping>,
    /// What changes in the records of each recording.
    pub(super) changes: Vec<Changes>,
}

/// An event of one recording.
struct Own {
    attr: Attr,
    ids: Vec<u64>,
    name: Option<HeaderString>,
}

/// A group of events, or a single event.
struct Unit {
    /// The name of the group, if it is one.
    group: Option<HeaderString>,
    events: Vec<Own>,
}

impl Unit {
    /// Returns what is the same in equal units: the attributes, with IDENTIFIER.
    fn attrs(&self) -> Result<Vec<u8>> {
        let mut key = vec![u8::from(self.group.is_some())];
        for own in &self.events {
            with_identifier(&own.attr).encode_into(&mut key, Endian::Little)?;
        }
        Ok(key)
    }

    /// Returns the names of the events, if all have one.
    fn names(&self) -> UnitNames {
        let names = self.events.iter();
        names
            .map(|own| Some(own.name.as_ref()?.text().to_vec()))
            .collect()
    }
}

/// The names of the events of a unit.
type UnitNames = Option<Vec<Vec<u8>>>;

/// The units so far, by attributes and names. A unit without names is equal to one with any.
#[derive(Default)]
struct KnownUnits {
    units: HashMap<(Vec<u8>, UnitNames), Vec<usize>>,
    any_name: HashMap<Vec<u8>, Vec<usize>>,
}

impl KnownUnits {
    fn add(&mut self, unit: &Unit, at: usize) -> Result<()> {
        let attrs = unit.attrs()?;
        self.any_name.entry(attrs.clone()).or_default().push(at);
        let named = (attrs, unit.names());
        self.units.entry(named).or_default().push(at);
        Ok(())
    }

    /// Returns the first unit that is equal to `unit` and not in `taken`.
    fn find(&self, unit: &Unit, taken: &mut TakenUnits) -> Result<Option<usize>> {
        let attrs = unit.attrs()?;
        let Some(names) = unit.names() else {
            let all = self.any_name.get(&attrs);
            // No unit has this key by name.
            let any = (attrs, Some(Vec::new()));
            return Ok(all.and_then(|all| taken.first(any, all)));
        };
        let named = (attrs.clone(), Some(names));
        let found = self.units.get(&named);
        if let Some(at) = found.and_then(|all| taken.first(named, all)) {
            return Ok(Some(at));
        }
        let nameless = (attrs, None);
        let found = self.units.get(&nameless);
        Ok(found.and_then(|all| taken.first(nameless, all)))
    }
}

/// The units that a recording has found: two equal events of one recording stay two.
#[derive(Default)]
struct TakenUnits {
    units: HashSet<usize>,
    /// Number of units of each list that were looked at.
    from: HashMap<(Vec<u8>, UnitNames), usize>,
}

impl TakenUnits {
    fn first(&mut self, key: (Vec<u8>, UnitNames), all: &[usize]) -> Option<usize> {
        let from = self.from.entry(key).or_default();
        while let Some(&at) = all.get(*from) {
            *from = from.saturating_add(1);
            if self.units.insert(at) {
                return Some(at);
            }
        }
        None
    }
}

/// Returns the attribute with IDENTIFIER, which merging may add.
fn with_identifier(attr: &Attr) -> Attr {
    Attr {
        sample_type: attr.sample_type | SampleType::IDENTIFIER,
        ..attr.clone()
    }
}

/// Unites the events of recordings with these names. Events with equal attributes become one; the
/// IDs of a recording are renumbered if one of them belongs to another event, or, with
/// `ids_are_apart`, is used at all.
///
/// # Errors
/// A recording has several events but their IDs are at different places, or a dynamic event type
/// has no name.
pub(super) fn unite(
    models: &[(&str, &Recording)],
    ids_are_apart: bool,
    are_machines: bool,
) -> Result<UnitedEvents> {
    let size = models
        .iter()
        .flat_map(|(_, model)| model.events.iter())
        .map(|event| wire_size(&event.attr))
        .max()
        .unwrap_or(0);
    let mut pmus: Vec<PmuMapping> = Vec::new();
    let mut units: Vec<Unit> = Vec::new();
    let mut known = KnownUnits::default();
    let mut changes = vec![Changes::default(); models.len()];
    // The united event of each ID, and of each event of each recording.
    let mut owner: HashMap<u64, (usize, usize)> = HashMap::new();
    let mut most = 0;
    // The unit of the first event of each recording.
    let mut homes = Vec::with_capacity(models.len());
    for (&(name, model), change) in models.iter().zip(&mut changes) {
        let types = pmus::unite(&mut pmus, name, model, are_machines)?;
        change.has_other_types = !types.is_empty();
        let own = units_of(model, size, &types)?;
        let mut added = units.len();
        let mut taken = TakenUnits::default();
        let mut places = Vec::with_capacity(own.len());
        for unit in &own {
            places.push(match known.find(unit, &mut taken)? {
                Some(at) => at,
                None => {
                    added = added.saturating_add(1);
                    added.saturating_sub(1)
                }
            });
        }
        homes.push(places.first().copied());
        let collides = own.iter().zip(&places).any(|(unit, &at)| {
            unit.events.iter().enumerate().any(|(within, event)| {
                event.ids.iter().any(|id| {
                    owner
                        .get(id)
                        .is_some_and(|&owner| ids_are_apart || owner != (at, within))
                })
            })
        });
        if collides {
            change.ids = (most / ID_STEP).saturating_add(1).saturating_mul(ID_STEP);
        }
        for (unit, at) in own.into_iter().zip(places) {
            let is_new = at >= units.len();
            let mut unit = unit;
            for (within, event) in unit.events.iter_mut().enumerate() {
                for id in &mut event.ids {
                    *id = if *id == 0 {
                        0
                    } else {
                        id.wrapping_add(change.ids)
                    };
                    most = most.max(*id);
                }
                // An ID may also be in another recording, of which both are parts.
                event
                    .ids
                    .retain(|&id| owner.insert(id, (at, within)).is_none());
            }
            if is_new {
                known.add(&unit, at)?;
                units.push(unit);
            } else if let Some(found) = units.get_mut(at) {
                for (to, from) in found.events.iter_mut().zip(unit.events) {
                    to.ids.extend(from.ids);
                    to.name = to.name.take().or(from.name);
                }
            }
        }
    }
    let mut groups = Vec::new();
    let mut all = Vec::new();
    let mut starts = Vec::with_capacity(units.len());
    for unit in units {
        starts.push(all.len());
        if let Some(name) = unit.group {
            groups.push(GroupDesc {
                name,
                leader_idx: u32::try_from(all.len()).unwrap_or(u32::MAX),
                nr_members: u32::try_from(unit.events.len()).unwrap_or(u32::MAX),
            });
        }
        all.extend(unit.events);
    }
    let homes = homes
        .into_iter()
        .map(|unit| starts.get(unit?).copied())
        .collect::<Vec<_>>();
    identify(models, &mut all, &homes, &mut changes, most)?;
    let (events, names) = all
        .into_iter()
        .map(|own| {
            (
                Event {
                    attr: own.attr,
                    ids: own.ids,
                },
                own.name,
            )
        })
        .unzip::<_, _, Vec<_>, Vec<_>>();
    let events: Events = events.into_iter().collect();
    name_zero(models, &events, &mut changes);
    Ok(UnitedEvents {
        events,
        names,
        groups,
        pmus,
        changes,
    })
}

/// Adds IDENTIFIER where records could not be told apart without it: perf requires the ID at the
/// same place in the records of all events (tools/perf/util/evlist.c, evlist__valid_sample_type).
fn identify(
    models: &[(&str, &Recording)],
    all: &mut [Own],
    homes: &[Option<usize>],
    changes: &mut [Changes],
    most: u64,
) -> Result<()> {
    let attrs = || models.iter().flat_map(|(_, model)| model.events.iter());
    let has_identifier = |attr: &Attr| attr.sample_type.has(SampleType::IDENTIFIER);
    let places: HashSet<_> = attrs().map(|event| Events::id_place(&event.attr)).collect();
    let is_mixed = attrs().any(|event| has_identifier(&event.attr))
        && attrs().any(|event| !has_identifier(&event.attr));
    let lacks_ids = all.iter().any(|own| own.ids.is_empty());
    let is_needed = if all.len() > 1 {
        places.len() > 1 || places.contains(&None) || lacks_ids || is_mixed
    } else {
        is_mixed
    };
    if !is_needed {
        return Ok(());
    }
    let mut next = most;
    for own in all.iter_mut() {
        own.attr = with_identifier(&own.attr);
        if own.ids.is_empty() {
            next = next.saturating_add(1);
            own.ids.push(next);
        }
    }
    for ((&(name, model), change), home) in models.iter().zip(changes).zip(homes) {
        let with = model
            .events
            .iter()
            .filter(|event| has_identifier(&event.attr))
            .count();
        if with != 0 && with != model.events.len() {
            return Err(refused(format!(
                "{name}: {with} of {} events have IDENTIFIER in their records, so the event of a record is not certain",
                model.events.len()
            )));
        }
        change.adds_identifier = with == 0;
        let [event] = &*model.events else {
            continue;
        };
        let home = home.and_then(|home| all.get(home));
        let id = match event.ids.first() {
            Some(&id) => Some(change.id_of(id)),
            None => {
                change.only_id = home.and_then(|own| own.ids.first().copied());
                change.only_id
            }
        };
        if Events::id_place(&event.attr).is_none() {
            change.record_id = id;
        }
    }
    Ok(())
}

/// Gives records with the ID 0 that of an event of their recording, if trailers differ between the
/// events: readers take them for records of the first event.
fn name_zero(models: &[(&str, &Recording)], events: &Events, changes: &mut [Changes]) {
    let parts = |attr: &Attr| SampleId::parts_of(attr.sample_type);
    let all: HashSet<u64> = events.iter().map(|event| parts(&event.attr).0).collect();
    if all.len() < 2 {
        return;
    }
    for ((_, model), change) in models.iter().zip(changes) {
        let Some(own) = model.events.first() else {
            continue;
        };
        change.id_for_zero = match own.ids.first() {
            Some(&id) => Some(change.id_of(id)),
            None => change.only_id,
        };
    }
}

/// Returns the groups and events of a recording, with attributes of `size` bytes, and their types
/// replaced.
fn units_of(model: &Recording, size: usize, types: &HashMap<u32, u32>) -> Result<Vec<Unit>> {
    let names = names_of(model);
    let groups = match model.feature(FeatureId::GROUP_DESC) {
        Some(Ok(Section {
            value: Feature::GroupDescs(groups),
            ..
        })) => groups.into_inner(),
        _ => Vec::new(),
    };
    let groups: HashMap<u32, GroupDesc> = groups
        .into_iter()
        .map(|group| (group.leader_idx, group))
        .collect();
    let mut units: Vec<Unit> = Vec::new();
    // Number of further events of the last group.
    let mut rest = 0_u32;
    for ((at, event), name) in model.events.iter().enumerate().zip(names) {
        let mut attr = grown(&event.attr, size)?;
        if let Some(&kind) = types.get(&attr.kind.0) {
            attr.kind = EventType(kind);
        }
        let own = Own {
            attr,
            ids: event.ids.clone(),
            name,
        };
        if let Some(last) = units.last_mut().filter(|_| rest > 0) {
            last.events.push(own);
            rest = rest.saturating_sub(1);
            continue;
        }
        let group = u32::try_from(at).ok().and_then(|at| groups.get(&at));
        rest = group.map_or(0, |group| group.nr_members.saturating_sub(1));
        units.push(Unit {
            group: group.map(|group| group.name.clone()),
            events: vec![own],
        });
    }
    Ok(units)
}

/// Returns the names of the events in EVENT_DESC; without it, no names.
fn names_of(model: &Recording) -> Vec<Option<HeaderString>> {
    let Some(Ok(Section {
        value: Feature::EventDescs(descs),
        ..
    })) = model.feature(FeatureId::EVENT_DESC)
    else {
        return vec![None; model.events.len()];
    };
    let by_first_id = descs.by_first_id();
    (0..model.events.len())
        .map(|at| {
            let desc = descs.of_event(&by_first_id, &model.events, at)?;
            Some(HeaderString::new(desc.name.text()))
        })
        .collect()
}

/// Returns the EVENT_DESC section for `events`, if any event has a name. perf's own name is used
/// for an event without one.
pub(super) fn described(
    recording: &Recording,
    names: Vec<Option<HeaderString>>,
) -> Option<EventDescs> {
    names.iter().flatten().next()?;
    let own = EventNames::of(recording);
    let descs = recording
        .events
        .iter()
        .zip(names)
        .enumerate()
        .map(|(at, (event, name))| {
            let name = name.or_else(|| {
                let name = own.get(recording, at)?;
                Some(HeaderString::new(&name))
            })?;
            Some((event.attr.clone(), name, event.ids.clone()))
        });
    EventDescs::new(descs.collect::<Option<_>>()?)
}

fn wire_size(attr: &Attr) -> usize {
    let mut size = WireSize::default();
    attr.describe("", Style::Plain, &mut size);
    size.0
}

/// Returns the attribute with zeros up to `size` bytes.
fn grown(attr: &Attr, size: usize) -> Result<Attr> {
    let mut bytes = attr.encode(Endian::Little)?;
    if bytes.len() >= size {
        return Ok(attr.clone());
    }
    bytes.resize(size, 0);
    let room = u32::try_from(size).unwrap_or(u32::MAX);
    let context = DecodeContext::default().with_attr_room(room);
    let (mut attr, _) = Attr::decode(&bytes, Endian::Little, context)?;
    attr.size = room;
    Ok(attr)
}
