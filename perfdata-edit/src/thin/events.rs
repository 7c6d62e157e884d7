//! The events before and after thinning, and what of them cannot be omitted.

use perfdata_core::attr::{Attr, BranchSampleType, EventType, SampleType};
use perfdata_core::names::EventNames;
use perfdata_core::record::{ReadValue, SampleId};
use perfdata_core::{DecodeContext, Event, Events, Recording};

use super::StackSize;
use super::parts::{list, words};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::support::attributes::changed_events;
use perfdata_convert::support::suggest;
use perfdata_convert::support::text::escaped;

/// The parts that readers need, and for what. Without IP, perf script (6.1 to 7.2) refuses to show
/// samples; without TID, it shows them without comm and without the mappings of their process.
const NEEDED: [(SampleType, &str); 3] = [
    (SampleType::TIME, "readers order the records by their times"),
    (
        SampleType::IP,
        "readers find the function of a sample by it",
    ),
    (
        SampleType::TID,
        "readers find the comm and the mappings of a sample by it",
    ),
];

/// The original and the thinned events, and the resulting changes of their records.
#[derive(Debug, Default)]
pub(super) struct Changes {
    from: Events,
    to: Events,
    /// The changes of each event, and of any event.
    each: Vec<EventChange>,
    any: EventChange,
}

/// The changes of the records of an event.
#[derive(Debug, Clone, Copy, Default)]
struct EventChange {
    /// Its samples have other parts, its other records other trailers, its READ records one value
    /// instead of a group.
    layout: bool,
    trailer: bool,
    ungroup: bool,
    /// Its samples have callchains and user stacks.
    chain: bool,
    stack: bool,
}

impl EventChange {
    fn of(from: &Attr, to: &Attr) -> Self {
        let has = |part| to.sample_type.has(part);
        let trailer_len = |attr: &Attr| DecodeContext::of_attr(attr).trailer_len();
        EventChange {
            layout: from.sample_type != to.sample_type,
            trailer: SampleId::len(from.sample_type) != SampleId::len(to.sample_type)
                && trailer_len(from) > 0,
            ungroup: from.read_format != to.read_format,
            chain: has(SampleType::CALLCHAIN),
            stack: has(SampleType::STACK_USER),
        }
    }

    fn or(self, other: EventChange) -> Self {
        EventChange {
            layout: self.layout | other.layout,
            trailer: self.trailer | other.trailer,
            ungroup: self.ungroup | other.ungroup,
            chain: self.chain | other.chain,
            stack: self.stack | other.stack,
        }
    }
}

impl Changes {
    /// Returns the changes of `from`, whose attributes `thin` changes.
    pub(super) fn new(from: &Events, thin: impl Fn(&Attr) -> Attr) -> Self {
        let to = changed_events(from, &thin);
        let pairs = from.iter().zip(to.iter());
        let each: Vec<EventChange> = pairs
            .map(|(from, to)| EventChange::of(&from.attr, &to.attr))
            .collect();
        Changes {
            any: each
                .iter()
                .copied()
                .fold(EventChange::default(), EventChange::or),
            each,
            from: from.clone(),
            to,
        }
    }

    pub(super) fn from(&self) -> &Events {
        &self.from
    }

    pub(super) fn to(&self) -> &Events {
        &self.to
    }

    fn of(&self, event: usize) -> EventChange {
        self.each.get(event).copied().unwrap_or_default()
    }

    /// Returns the parts of the event's samples after the stage.
    pub(super) fn parts(&self, event: usize) -> SampleType {
        self.to
            .get(event)
            .map(|event| event.attr.sample_type)
            .unwrap_or_default()
    }

    /// Returns whether samples of the event lose parts.
    pub(super) fn changes_layout(&self, event: usize) -> bool {
        self.of(event).layout
    }

    /// Returns whether other records of the event lose parts of their trailers.
    pub(super) fn changes_trailer(&self, event: usize) -> bool {
        self.of(event).trailer
    }

    /// Returns whether any trailer changes.
    pub(super) fn changes_trailers(&self) -> bool {
        self.any.trailer
    }

    /// Returns whether READ records of the event change, or those of any event.
    pub(super) fn ungroups(&self, event: usize) -> bool {
        self.of(event).ungroup
    }

    pub(super) fn ungroup(&self) -> bool {
        self.any.ungroup
    }

    /// Returns whether samples of the event have user stacks after the stage.
    pub(super) fn keeps_stack(&self, event: usize) -> bool {
        self.of(event).stack
    }

    /// Returns whether any sample may change.
    pub(super) fn changes_samples(
        &self,
        max_stack: Option<u32>,
        stack_size: Option<StackSize>,
    ) -> bool {
        self.any.layout
            || (max_stack.is_some() && self.any.chain)
            || (stack_size.is_some() && self.any.stack)
    }
}

impl Changes {
    /// Returns an error if `omitted` contains a part that no event has, or if readers of
    /// `recording` could not do without one of the `dropped` parts. `cuts`: the stage cuts user
    /// stacks.
    pub(super) fn check(
        &self,
        recording: &Recording,
        omitted: SampleType,
        dropped: SampleType,
        cuts: bool,
    ) -> Result<()> {
        self.check_present(omitted)?;
        let refused = |part: SampleType, why: &str| {
            Err(Error::Refused(format!(
                "{} cannot be omitted: {why}",
                list(part)
            )))
        };
        let names = EventNames::of(recording);
        let name = |at: usize| match names.get(recording, at) {
            Some(name) => format!("event {at} ({})", escaped(&name)),
            None => format!("event {at}"),
        };
        for (at, (from, to)) in self.from.iter().zip(self.to.iter()).enumerate() {
            let (from, to) = (&from.attr, &to.attr);
            let lost = SampleType(from.sample_type.0 & !to.sample_type.0);
            if (dropped.0 != 0 || (cuts && to.sample_type.has(SampleType::STACK_USER)))
                && let Some((field, bits)) = unknown(from)
            {
                return Err(Error::Refused(format!(
                    "{}: {field} has the unknown bits {bits:#x}, so it is not known which bytes of its samples belong \
                     to a part",
                    name(at)
                )));
            }
            if let Some((part, why)) = NEEDED.iter().find(|(part, _)| lost.has(*part)) {
                return refused(*part, why);
            }
            if lost.has(SampleType::REGS_USER) && to.sample_type.has(SampleType::STACK_USER) {
                let why = "the user stack can only be unwound with the registers";
                return refused(SampleType::REGS_USER, &format!("{why}: omit ustack, too"));
            }
        }
        if dropped.has(SampleType::RAW) && self.has_only_tracepoints() {
            let why = "perf report shows the fields of tracepoints, and crashes without them if there are no other events";
            return refused(SampleType::RAW, why);
        }
        if dropped.0 != 0 && !self.to.agree_on_ids() {
            return match self.ids_in(dropped) {
                Some(part) => refused(
                    part,
                    &format!(
                        "readers find the event of a record by it, and there are {} events",
                        self.from.len()
                    ),
                ),
                None => Err(Error::Refused(
                    "parts cannot be omitted: the events would have their IDs at different places in the records"
                        .into(),
                )),
            };
        }
        Ok(())
    }

    /// Returns whether every event is a tracepoint with fields (tools/perf/util/sort.c,
    /// get_default_sort_order, 7.2).
    fn has_only_tracepoints(&self) -> bool {
        let is_one = |event: &Event| {
            event.attr.kind == EventType::TRACEPOINT && event.attr.sample_type.has(SampleType::RAW)
        };
        !self.from.is_empty() && self.from.iter().all(is_one)
    }

    /// Returns the part among `dropped` with the ID of an event that has no other ID.
    fn ids_in(&self, dropped: SampleType) -> Option<SampleType> {
        let ids = SampleType::IDENTIFIER | SampleType::ID;
        let is_left = |event: &Event| event.attr.sample_type.0 & ids.0 != 0;
        let mut pairs = self.from.iter().zip(self.to.iter());
        let (from, _) = pairs.find(|(from, to)| is_left(from) && !is_left(to))?;
        Some(SampleType(from.attr.sample_type.0 & dropped.0 & ids.0))
    }

    /// Returns an error if no event has one of the parts.
    fn check_present(&self, omitted: SampleType) -> Result<()> {
        let all = self
            .from
            .iter()
            .fold(SampleType(0), |all, event| all | event.attr.sample_type);
        let known = SampleType(all.0 & SampleType::KNOWN.0);
        let there: Vec<String> = words(known).collect();
        for word in words(omitted) {
            if there.contains(&word) || (word == "weight" && known.has(SampleType::WEIGHT_STRUCT)) {
                continue;
            }
            return Err(Error::Refused(format!(
                "the samples of no event have the part {word}{}; they have {}",
                suggest::hint(&word, there.iter().map(String::as_str)),
                if there.is_empty() {
                    "none".to_owned()
                } else {
                    there.join(", ")
                }
            )));
        }
        Ok(())
    }
}

/// Returns the field of an attribute with bits that may add data to samples in a form that is not
/// known, and these bits.
fn unknown(attr: &Attr) -> Option<(&'static str, u64)> {
    let kinds: BranchSampleType = attr.branch_sample_type.unwrap_or_default();
    let of = |part, bits| {
        if attr.sample_type.has(part) { bits } else { 0 }
    };
    [
        ("sample_type", attr.sample_type.unknown()),
        (
            "read_format",
            of(SampleType::READ, attr.read_format.unknown()),
        ),
        (
            "branch_sample_type",
            of(SampleType::BRANCH_STACK, kinds.unknown()),
        ),
    ]
    .into_iter()
    .find(|(_, bits)| *bits != 0)
}

/// Converts the values of a group to the value of the event `id`, or of the leader.
pub(super) fn read_value(read: &mut ReadValue, id: Option<u64>) {
    if read.nr.take().is_none() {
        return;
    }
    let values = std::mem::take(&mut read.values.0);
    let own = values.iter().find(|value| id.is_some() && value.id == id);
    let own = own.or(values.first());
    read.value = Some(own.map_or(0, |own| own.value));
    read.id = own.and_then(|own| own.id);
    read.lost = own.and_then(|own| own.lost);
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::record::GroupValue;
    use perfdata_core::wire::ContextList;

    #[test]
    fn a_group_becomes_the_value_of_the_event() {
        let value = |value, id| GroupValue {
            value,
            id: Some(id),
            lost: Some(value + 1),
        };
        let group = ReadValue {
            value: None,
            nr: Some(2),
            time_enabled: Some(5),
            time_running: None,
            id: None,
            lost: None,
            values: ContextList(vec![value(10, 1), value(20, 2)]),
        };
        for (id, expected) in [(Some(2), 20), (Some(3), 10), (None, 10)] {
            let mut read = group.clone();
            read_value(&mut read, id);
            assert_eq!((read.value, read.nr), (Some(expected), None));
            assert_eq!(
                (read.lost, read.time_enabled),
                (Some(expected + 1), Some(5))
            );
            assert!(read.values.0.is_empty());
            let once = read.clone();
            read_value(&mut read, id);
            assert_eq!(read, once);
        }
    }
}
