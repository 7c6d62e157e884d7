//! The events of an export.

use perfdata_core::attr::{Attr, EventType, SoftwareEvent};
use perfdata_session::Sample;

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
        let attr = sample.attr();
        if is_dummy(attr) {
            return None;
        }
        let name = sample.event_name();
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

    /// Returns all events, by their numbers.
    pub fn list(&self) -> &[Event] {
        &self.0
    }
}

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
