//! The events of an export.

use std::vec;

use perfdata_core::attr::{Attr, EventType, SoftwareEvent};
use perfdata_session::Sample;

use crate::resolve::ResolvedSample;

/// An event that has samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub name: Box<[u8]>,
    /// Whether its periods are nanoseconds.
    pub is_time: bool,
}

/// The events that have samples, without dummy events.
#[derive(Debug, Default)]
pub(crate) struct Events(Vec<Event>);

impl Events {
    /// Returns the number of a sample's event; `None` for a dummy event. Events with the same name
    /// are one.
    pub fn of(&mut self, sample: &Sample<'_>) -> Option<u32> {
        self.named(sample.attr(), sample.event_name())
    }

    /// Returns what a sample counts: the number of its event and its weight, or that of each event
    /// whose counter it contains and that increased; nothing of dummy events.
    pub fn counted(&mut self, resolved: &ResolvedSample<'_>) -> Counted {
        let sample = &resolved.sample;
        // The leader of a group is the first event.
        let own = self.of(sample);
        let Some(counters) = resolved.counters else {
            return Counted {
                own: own.map(|event| (event, sample.weight())),
                counters: Vec::new().into_iter(),
            };
        };
        let recording = sample.recording();
        let increased = counters.iter().filter_map(|&(at, increase)| {
            let attr = recording.events.get(at).map(|event| &event.attr);
            let name = sample.session().name_of_event(recording, at);
            Some((self.named(attr, &name)?, increase))
        });
        let increased: Vec<(u32, u64)> = increased.collect();
        Counted {
            own: None,
            counters: increased.into_iter(),
        }
    }

    fn named(&mut self, attr: Option<&Attr>, name: &[u8]) -> Option<u32> {
        if is_dummy(attr) {
            return None;
        }
        let known = self.0.iter().position(|event| *event.name == *name);
        let at = known.unwrap_or_else(|| {
            self.0.push(Event {
                name: name.into(),
                is_time: attr.is_some_and(is_time),
            });
            self.0.len().saturating_sub(1)
        });
        u32::try_from(at).ok()
    }

    /// Returns the name of an event.
    pub fn name(&self, number: u32) -> &[u8] {
        let at = usize::try_from(number).ok();
        let event = at.and_then(|at| self.0.get(at));
        event.map(|event| &*event.name).unwrap_or_default()
    }

    /// Returns all events, by their numbers.
    pub fn list(&self) -> &[Event] {
        &self.0
    }
}

/// What a sample counts: the numbers of events, and how much of each.
#[derive(Debug)]
pub(crate) struct Counted {
    /// The sample's own event, if it contains no counters.
    pub own: Option<(u32, u64)>,
    counters: vec::IntoIter<(u32, u64)>,
}

impl Counted {
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Iterator for Counted {
    type Item = (u32, u64);

    fn next(&mut self) -> Option<(u32, u64)> {
        self.own.take().or_else(|| self.counters.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.counters.len().saturating_add(self.own.iter().len());
        (len, Some(len))
    }
}

impl ExactSizeIterator for Counted {}

/// Returns whether an event only provides side-band records.
pub(crate) fn is_dummy(attr: Option<&Attr>) -> bool {
    attr.is_some_and(|attr| is_software(attr, SoftwareEvent::DUMMY))
}

/// Returns whether the periods of an event are nanoseconds.
fn is_time(attr: &Attr) -> bool {
    is_software(attr, SoftwareEvent::CPU_CLOCK) || is_software(attr, SoftwareEvent::TASK_CLOCK)
}

/// Returns whether this is the software event.
pub(crate) fn is_software(attr: &Attr, event: SoftwareEvent) -> bool {
    attr.kind == EventType::SOFTWARE && attr.config == event.0
}
