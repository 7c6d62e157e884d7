//! What a sample needs: its event, its thread, and the mappings at its addresses.

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{CpuMode, RecordType, SampleView, Tid, is_moment};
use perfdata_core::{Recording, Result};

use super::Session;
use crate::change::Owner;
use crate::dso::Machine;
use crate::ids::{CommId, MappingId, ThreadId};
use crate::mapping::Mapping;
use crate::sample::Sample;
use crate::space::Space;

/// The mappings that were hit, without duplicates.
#[derive(Debug, Default)]
pub(super) struct Mappings(pub(super) IndexSet<Mapping, RandomState>);

impl Mappings {
    pub(super) fn intern(&mut self, mapping: Mapping) -> MappingId {
        // `insert_full` would reserve memory in the table even for known mappings.
        let known = self.0.get_index_of(&mapping);
        MappingId::of(known.unwrap_or_else(|| self.0.insert_full(mapping).0))
    }
}

/// The name of an event, and the value of `Session::news` when it was determined.
#[derive(Debug, Default)]
pub(super) struct EventName {
    pub(super) name: Box<[u8]>,
    of: u64,
}

/// The resolved fields of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) event: usize,
    pub(crate) thread: ThreadId,
    pub(crate) comm: CommId,
}

impl Session {
    /// Resolves `record`, a SAMPLE, at its time. Returns `None` for other records, and if the
    /// sample's event is unknown. If the user callchain is deferred, the sample does not contain
    /// it; [`Samples`](crate::Samples) waits for it.
    ///
    /// # Errors
    /// The sample is truncated within its callchain, or there are more threads than the limits
    /// permit.
    pub fn sample<'a>(&'a mut self, record: RecordRef<'a>) -> Result<Option<Sample<'a>>> {
        let Some((taken, _)) = self.take(&record)? else {
            return Ok(None);
        };
        Ok(Sample::new(self, record, taken))
    }

    /// Counts `record`, a SAMPLE, and determines its event and thread.
    #[inline]
    pub(crate) fn take<'a>(
        &mut self,
        record: &RecordRef<'a>,
    ) -> Result<Option<(Taken, SampleView<'a>)>> {
        if record.kind != RecordType::SAMPLE {
            return Ok(None);
        }
        let events = &record.recording().events;
        let Some((event, sample_view)) = events.look(record) else {
            self.counts.unknown_event = self.counts.unknown_event.saturating_add(1);
            return Ok(None);
        };
        self.counts.samples = self.counts.samples.saturating_add(1);
        if self.has_news || events.len() != self.known_events {
            self.names.update(record.recording());
            (self.has_news, self.known_events, self.news) =
                (false, events.len(), self.news.saturating_add(1));
        }
        if self
            .event_names
            .get(event)
            .is_none_or(|known| known.of != self.news)
        {
            self.learn_name(record.recording(), event);
        }
        if self.began.is_none() {
            self.began = sample_view.time().filter(|&time| is_moment(time));
        }
        let threads = self.threads.list().len();
        let thread = match sample_view.tid() {
            Some(tid) => self.thread_of(Machine::HOST, &tid),
            None => match sample_view.cpu().and_then(|cpu| self.thread_on_cpu(cpu)) {
                Some(thread) => thread,
                None => self.thread_of(
                    Machine::HOST,
                    &Tid {
                        pid: u32::MAX,
                        tid: u32::MAX,
                    },
                ),
            },
        };
        if self.threads.list().len() > threads {
            self.check().map_err(|error| error.at(record.offset))?;
        }
        let known = self.threads.get(thread);
        if let Some(known) = known {
            self.removed.add(thread, known);
        }
        let comm = known.map_or(CommId::of(0), |thread| thread.comm);
        let taken = Taken {
            event,
            thread,
            comm,
        };
        Ok(Some((taken, sample_view)))
    }

    /// Updates the name of an event.
    #[cold]
    fn learn_name(&mut self, recording: &Recording, event: usize) {
        if self.event_names.len() <= event {
            self.event_names
                .resize_with(event.saturating_add(1), EventName::default);
        }
        let name = self
            .names
            .get(recording, event)
            .unwrap_or_default()
            .into_owned()
            .into_boxed_slice();
        if let Some(known) = self.event_names.get_mut(event) {
            *known = EventName {
                name,
                of: self.news,
            };
        }
    }

    /// Returns the mappings of the host's kernel.
    pub(crate) fn kernel(&self) -> &Space<Mapping> {
        self.spaces.kernel()
    }

    /// Returns the mappings of `thread` for code in `mode`, and perf's view of them if it differs.
    #[inline]
    pub(crate) fn space(
        &self,
        thread: ThreadId,
        mode: CpuMode,
    ) -> (Option<&Space<Mapping>>, Option<&Space<Mapping>>) {
        if mode == CpuMode::USER
            && let Some(&process) = self.processes.get(thread.index())
            && let (Some(space), overlaid) = self.spaces.of_process(process)
        {
            return (Some(space), overlaid);
        }
        let pid = self.threads.get(thread).map_or(0, |thread| thread.pid);
        (
            Owner::of(mode, pid).and_then(|owner| self.spaces.space(owner)),
            None,
        )
    }

    /// Returns the mapping at `address` in `space`.
    #[inline]
    pub(crate) fn find(&self, space: &Space<Mapping>, address: u64) -> Option<MappingId> {
        self.lookups.find(space, address, |mapping| {
            self.mappings.borrow_mut().intern(mapping)
        })
    }

    /// Returns the mapping that perf finds at an address without a mapping, and counts it.
    pub(crate) fn find_before_exec(
        &self,
        space: &Space<Mapping>,
        address: u64,
    ) -> Option<MappingId> {
        let found = self.find(space, address);
        if found.is_some() {
            self.before_exec
                .set(self.before_exec.get().saturating_add(1));
        }
        found
    }
}
