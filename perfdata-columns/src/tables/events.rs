//! The table `events`.

use perfdata_core::read::RecordSource;
use perfdata_session::Samples;
use perfdata_session::names::EventNames;

use super::{SideTables, names_of};
use crate::rows::Cell;
use crate::schema::Table;

/// The number of samples of each event, and the sum of their periods.
#[derive(Debug, Default)]
pub(super) struct EventCounts(Vec<(u64, u64)>);

impl EventCounts {
    /// Counts a row of the event with this index.
    pub fn see(&mut self, event: usize, weight: u64) {
        if self.0.len() <= event {
            self.0.resize(event.saturating_add(1), (0, 0));
        }
        if let Some((samples, period)) = self.0.get_mut(event) {
            *samples = samples.saturating_add(1);
            *period = period.saturating_add(weight);
        }
    }
}

/// Adds the events of a recording.
pub(super) fn push<S: RecordSource>(
    samples: &Samples<S>,
    counts: &EventCounts,
    side: &mut SideTables,
) {
    let recording = samples.recording();
    let names = EventNames::of(recording);
    for (index, event) in recording.events.iter().enumerate() {
        let attr = &event.attr;
        let (count, period) = counts.0.get(index).copied().unwrap_or_default();
        // The name that the samples have, which records may have changed.
        let seen = samples.session().event_name(index);
        let named = names.get(recording, index);
        let name = match seen {
            b"" => named.as_deref().unwrap_or_default(),
            seen => seen,
        };
        let ids: Vec<i64> = event.ids.iter().map(|id| id.cast_signed()).collect();
        let flags = names_of(recording, index);
        side.push(
            &Table::Events,
            &[
                i64::try_from(index).ok().into(),
                Cell::Name(name),
                Cell::Int(attr.kind.0.into()),
                attr.kind.name().into(),
                attr.config.into(),
                attr.config1.into(),
                attr.config2.into(),
                attr.period().into(),
                attr.frequency().into(),
                attr.sample_type.0.into(),
                attr.read_format.0.into(),
                Cell::Texts(&flags),
                Cell::Int(i64::try_from(attr.flags.precise_ip()).unwrap_or_default()),
                Cell::Ints(&ids),
                count.into(),
                period.into(),
            ],
        );
    }
}
