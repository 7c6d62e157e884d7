//! For how much of the weight of samples the function is known.

use std::collections::{BTreeMap, HashMap};

use perfdata_core::Recording;
use perfdata_session::{DsoKind, Sample, Session};
use perfdata_symbols::Unresolved;

use crate::resolve::ResolvedFrame;
use crate::resolver::is_guest;
use crate::tables::{Module, Tables};

/// For how much of the weight of an event's samples the function of the innermost frame is known.
/// Samples without frames, and those of guests, are not part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedWeight {
    /// The name of the event.
    pub event: Vec<u8>,
    /// Number of samples.
    pub samples: u64,
    /// Number of samples whose function is not known.
    pub unnamed: u64,
    /// The weight of all samples in units of the event.
    pub total: u64,
    /// The weight of the samples whose function is known.
    pub named: u64,
    /// The objects at the other innermost frames, those with the most weight first: their index in
    /// [`Report::unresolved`](crate::Report::unresolved), and the weight. Addresses at which nothing
    /// was mapped belong to none.
    pub missing: Vec<(usize, u64)>,
}

impl NamedWeight {
    /// Returns a weight in percent of the total, rounded down.
    pub fn percent(&self, weight: u64) -> u64 {
        let percent = u128::from(weight).saturating_mul(100);
        let percent = percent.checked_div(u128::from(self.total)).unwrap_or(100);
        u64::try_from(percent).unwrap_or(100).min(100)
    }
}

/// The weights of an event.
#[derive(Debug, Clone, Default)]
struct EventWeights {
    samples: u64,
    unnamed: u64,
    total: u64,
    named: u64,
    /// The weight without a function, by the numbers of the modules.
    missing: Vec<u64>,
}

impl EventWeights {
    /// Adds those of other samples, except for the modules without a function.
    fn add(&mut self, other: &EventWeights) {
        self.samples = self.samples.saturating_add(other.samples);
        self.unnamed = self.unnamed.saturating_add(other.unnamed);
        self.total = self.total.saturating_add(other.total);
        self.named = self.named.saturating_add(other.named);
    }
}

/// The weights of all events.
#[derive(Debug, Default)]
pub(crate) struct InnermostWeights {
    events: Vec<EventWeights>,
}

impl InnermostWeights {
    /// Adds a sample with its innermost frame.
    #[inline]
    pub fn add(&mut self, sample: &Sample<'_>, innermost: &ResolvedFrame) {
        if is_guest(innermost.mode) {
            return;
        }
        let event = sample.event();
        if event >= self.events.len() {
            self.events
                .resize_with(event.saturating_add(1), EventWeights::default);
        }
        let Some(weights) = self.events.get_mut(event) else {
            return;
        };
        let weight = sample.weight();
        weights.samples = weights.samples.saturating_add(1);
        weights.total = weights.total.saturating_add(weight);
        if innermost.function.is_some() {
            weights.named = weights.named.saturating_add(weight);
            return;
        }
        weights.unnamed = weights.unnamed.saturating_add(1);
        let Some(module) = innermost.module.and_then(|id| usize::try_from(id.0).ok()) else {
            return;
        };
        if module >= weights.missing.len() {
            weights.missing.resize(module.saturating_add(1), 0);
        }
        if let Some(missing) = weights.missing.get_mut(module) {
            *missing = missing.saturating_add(weight);
        }
    }
}

/// Returns the weights of the events with samples in all parts of the samples, each with the tables of its
/// modules. `unresolved` are the objects without all names.
pub(crate) fn named_weights<'a>(
    parts: impl Iterator<Item = (&'a InnermostWeights, &'a Tables)>,
    session: &Session,
    recording: &Recording,
    unresolved: &[Unresolved],
) -> Vec<NamedWeight> {
    let mut numbers = HashMap::new();
    for (at, object) in unresolved.iter().enumerate() {
        // Of several processes with generated code, the first one has the most addresses.
        numbers.entry(key(object.kind, &object.name)).or_insert(at);
    }
    let number = |module: &Module| numbers.get(&key(module.kind, &module.name)).copied();
    let mut events: BTreeMap<usize, (EventWeights, HashMap<usize, u64>)> = BTreeMap::new();
    for (weights, tables) in parts {
        let of_events = weights.events.iter().enumerate();
        for (event, weights) in of_events.filter(|(_, weights)| weights.samples > 0) {
            let (sums, missing) = events.entry(event).or_default();
            sums.add(weights);
            for (module, &weight) in tables.modules().iter().zip(&weights.missing) {
                if let Some(at) = number(module).filter(|_| weight > 0) {
                    let sum = missing.entry(at).or_default();
                    *sum = sum.saturating_add(weight);
                }
            }
        }
    }
    let events = events.into_iter().map(|(event, (weights, missing))| {
        let mut missing: Vec<(usize, u64)> = missing.into_iter().collect();
        missing.sort_by_key(|&(at, weight)| (u64::MAX.saturating_sub(weight), at));
        NamedWeight {
            event: session.name_of_event(recording, event).into_owned(),
            samples: weights.samples,
            unnamed: weights.unnamed,
            total: weights.total,
            named: weights.named,
            missing,
        }
    });
    events.collect()
}

/// Returns what modules and objects without names have in common. Modules with generated code have the
/// name of the list of its functions.
fn key(kind: DsoKind, name: &[u8]) -> (DsoKind, &[u8]) {
    match kind {
        DsoKind::Anonymous => (kind, b""),
        _ => (kind, name),
    }
}
