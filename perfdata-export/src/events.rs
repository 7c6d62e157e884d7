//! The events of an export.

use std::vec;

use perfdata_core::attr::{Attr, EventType, SoftwareEvent};
use perfdata_session::Sample;

use crate::resolve::ResolvedSample;
use crate::text::push_text;

/// An event that has samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub name: Box<[u8]>,
    /// Whether its periods are nanoseconds.
    pub is_time: bool,
    /// Whether its periods are those in which threads were off the CPU.
    pub is_off_cpu: bool,
    /// Number of samples that count it.
    pub samples: u64,
    /// The number of its recording, and the index of its first attribute there.
    rank: (u32, usize),
}

impl Event {
    fn order(&self) -> (bool, (u32, usize)) {
        (self.samples == 0, self.rank)
    }

    /// Returns a weight with its unit: `12.50 ms` or `120 page-faults`.
    pub fn amount(&self, weight: u64) -> String {
        if !self.is_time {
            let mut text = format!("{weight} ");
            push_text(&mut text, &self.name);
            return text;
        }
        let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)];
        let unit = units.iter().find(|(_, size)| weight as f64 >= *size);
        match unit {
            Some((unit, size)) => format!("{:.2} {unit}", weight as f64 / size),
            None => format!("{weight} ns"),
        }
    }
}

/// The events that have samples, without dummy events. They are numbered in the order of their first
/// samples; [`sort`](Self::sort) numbers them in the order of the attributes.
#[derive(Debug, Default)]
pub(crate) struct Events {
    list: Vec<Event>,
    recording: u32,
}

impl Events {
    /// Returns the number of a sample's event; `None` for a dummy event. Events with the same name
    /// are one.
    pub fn of(&mut self, sample: &Sample<'_>) -> Option<u32> {
        self.named(sample, sample.attr(), sample.event_name())
    }

    /// Returns what a sample counts: the number of its event and its weight, or that of each event
    /// whose counter it contains and that increased; nothing of dummy events.
    pub fn counted(&mut self, resolved: &ResolvedSample<'_>) -> Counted {
        let sample = &resolved.sample;
        // The leader of a group is the first event.
        let own = self.of(sample);
        let Some(counters) = resolved.counters else {
            own.into_iter().for_each(|event| self.count(event));
            return Counted {
                own: own.map(|event| (event, sample.weight())),
                counters: Vec::new().into_iter(),
            };
        };
        let recording = sample.recording();
        let increased = counters.iter().filter_map(|&(at, increase)| {
            let attr = recording.events.get(at).map(|event| &event.attr);
            let name = sample.session().name_of_event(recording, at);
            Some((self.named(sample, attr, &name)?, increase))
        });
        let increased: Vec<(u32, u64)> = increased.collect();
        for &(event, _) in &increased {
            self.count(event);
        }
        Counted {
            own: None,
            counters: increased.into_iter(),
        }
    }

    /// Counts a sample of an event.
    fn count(&mut self, event: u32) {
        let at = usize::try_from(event).ok();
        if let Some(event) = at.and_then(|at| self.list.get_mut(at)) {
            event.samples = event.samples.saturating_add(1);
        }
    }

    fn named(&mut self, sample: &Sample<'_>, attr: Option<&Attr>, name: &[u8]) -> Option<u32> {
        if is_dummy(attr) {
            return None;
        }
        let known = self.list.iter().position(|event| *event.name == *name);
        let at = known.unwrap_or_else(|| {
            let (session, recording) = (sample.session(), sample.recording());
            let mut names = 0..recording.events.len();
            let first = names.position(|at| *session.name_of_event(recording, at) == *name);
            self.list.push(Event {
                name: name.into(),
                is_time: attr.is_some_and(|attr| is_time(attr) || is_off_cpu(attr, name)),
                is_off_cpu: attr.is_some_and(|attr| is_off_cpu(attr, name)),
                samples: 0,
                rank: (self.recording, first.unwrap_or(usize::MAX)),
            });
            self.list.len().saturating_sub(1)
        });
        u32::try_from(at).ok()
    }

    /// Returns an event.
    pub fn get(&self, number: u32) -> Option<&Event> {
        self.list.get(usize::try_from(number).ok()?)
    }

    /// Returns the name of an event.
    pub fn name(&self, number: u32) -> &[u8] {
        let event = self.get(number);
        event.map(|event| &*event.name).unwrap_or_default()
    }

    /// Returns all events, by their numbers.
    pub fn list(&self) -> &[Event] {
        &self.list
    }

    /// Returns whether exactly one event counts what ran on the CPU, and is a clock.
    pub fn have_one_clock(&self) -> bool {
        let mut on_cpu = self.list.iter().filter(|event| !event.is_off_cpu);
        matches!((on_cpu.next(), on_cpu.next()), (Some(event), None) if event.is_time)
    }

    /// Returns the names of the events that have samples, and their numbers of samples, in the order
    /// of the attributes.
    pub fn with_samples(&self) -> Vec<(&[u8], u64)> {
        let mut list: Vec<&Event> = self.list.iter().collect();
        list.retain(|event| event.samples > 0);
        list.sort_by_key(|event| event.order());
        let names = list.iter().map(|event| (&*event.name, event.samples));
        names.collect()
    }

    /// Returns an empty list for the samples of the recording with a number, from 0.
    pub fn of_recording(recording: u32) -> Self {
        Events {
            list: Vec::new(),
            recording,
        }
    }

    /// Returns the events with their numbers of samples since the last call.
    pub fn take_samples(&mut self) -> Self {
        let list = self.list.clone();
        for event in &mut self.list {
            event.samples = 0;
        }
        Events {
            list,
            recording: self.recording,
        }
    }

    /// Adds the events of another part of the samples. Returns the number of each of them.
    pub fn join(&mut self, part: Events) -> Vec<u32> {
        let numbers = part.list.into_iter().map(|event| {
            let known = self
                .list
                .iter_mut()
                .position(|known| known.name == event.name);
            let at = known.unwrap_or(self.list.len());
            match self.list.get_mut(at) {
                Some(known) => known.samples = known.samples.saturating_add(event.samples),
                None => self.list.push(event),
            }
            u32::try_from(at).unwrap_or(u32::MAX)
        });
        numbers.collect()
    }

    /// Returns whether an event precedes another one in the command line of `perf record`: in the
    /// order of the attributes, those without samples last.
    pub fn precedes(&self, event: u32, other: u32) -> bool {
        let rank = |event| self.get(event).map(Event::order);
        rank(event) < rank(other)
    }

    /// Numbers the events as [`precedes`](Self::precedes) orders them. Returns the new number of each
    /// old one.
    pub fn sort(&mut self) -> Vec<u32> {
        let list = std::mem::take(&mut self.list);
        let mut sorted: Vec<(usize, Event)> = list.into_iter().enumerate().collect();
        sorted.sort_by_key(|(_, event)| event.order());
        let mut numbers = vec![0; sorted.len()];
        for (new, (old, event)) in (0_u32..).zip(sorted) {
            if let Some(number) = numbers.get_mut(old) {
                *number = new;
            }
            self.list.push(event);
        }
        numbers
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

/// Returns whether an event is that of `perf record --off-cpu`.
fn is_off_cpu(attr: &Attr, name: &[u8]) -> bool {
    is_software(attr, SoftwareEvent::BPF_OUTPUT) && name == b"offcpu-time"
}

/// Returns whether the periods of an event are those of a clock.
fn is_time(attr: &Attr) -> bool {
    is_software(attr, SoftwareEvent::CPU_CLOCK) || is_software(attr, SoftwareEvent::TASK_CLOCK)
}

/// Returns whether this is the software event.
pub(crate) fn is_software(attr: &Attr, event: SoftwareEvent) -> bool {
    attr.kind == EventType::SOFTWARE && attr.config == event.0
}
