//! Determines from the records which objects the samples hit, or the processes map.

use perfdata_core::read::{Decompressor, Limits};
use perfdata_core::record::{Body, CpuMode, RawRecord, Record, RecordType, is_known_time};
use perfdata_core::{Events, Recording};
use perfdata_session::{Change, Dso, DsoKind, Dsos, Mapped};

use super::follow::Follower;
use super::moments::Moments;
use super::objects::{ObjectId, Wanted, is_object, wanted_of};
use perfdata_convert::error::Result;

/// Which objects get a build id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Select {
    /// Objects that a sample hits with its instruction pointer or its callchain
    #[default]
    Hit,
    /// All objects with an executable mapping
    All,
}

/// Reads the records of a stream, including those in compressed records.
#[derive(Debug)]
pub struct Hits {
    select: Select,
    dsos: Dsos,
    /// The objects that are wanted even if no sample hits them.
    wanted: Wanted,
    /// The last part of the stream.
    moments: Moments,
    follower: Follower,
    decompressor: Option<Decompressor>,
    /// The offset of the last record.
    last: u64,
}

impl Hits {
    /// Returns a search for the objects in `select`.
    pub fn new(select: Select) -> Self {
        Hits {
            select,
            dsos: Dsos::default(),
            wanted: Wanted::default(),
            moments: Moments::default(),
            follower: Follower::default(),
            decompressor: None,
            last: 0,
        }
    }

    /// Processes a record of `recording` of any type, within `limits`.
    ///
    /// # Errors
    /// A compressed record cannot be decompressed, or a mapping cannot be read.
    pub fn see(
        &mut self,
        record: &RawRecord<'_>,
        recording: &Recording,
        events: &Events,
        limits: Limits,
    ) -> Result<()> {
        match record.kind {
            RecordType::SAMPLE if self.select == Select::Hit => self.sample(record, events),
            RecordType::CALLCHAIN_DEFERRED if self.select == Select::Hit => {
                self.deferred(record, events)?
            }
            RecordType::FINISHED_ROUND if self.select == Select::Hit => self.moments.end_round(),
            kind if Change::affects_processes(kind) => self.change(record, events)?,
            RecordType::KSYMBOL if self.select == Select::Hit => self.change(record, events)?,
            kind if kind.is_compressed() => {
                let mut inner = match self.decompressor.take() {
                    Some(decompressor) => decompressor,
                    None => Decompressor::of(recording, limits)?,
                };
                inner.push(record)?;
                while let Some(record) = inner.next()? {
                    self.see(&record, recording, events, limits)?;
                }
                self.decompressor = Some(inner);
            }
            _ => {}
        }
        self.last = record.offset;
        if self.moments.is_enough() {
            self.check_names(limits)?;
            let moments = std::mem::take(&mut self.moments);
            self.moments = self
                .follower
                .take(moments, &limits)
                .map_err(|e| e.at(self.last))?;
        }
        Ok(())
    }

    /// Returns the wanted objects, in order of appearance.
    ///
    /// # Errors
    /// The mappings exceed the limits.
    pub fn finish(self, limits: Limits) -> Result<Vec<Dso>> {
        self.check_names(limits)?;
        let wanted = self
            .follower
            .finish(self.moments, &limits)
            .map_err(|e| e.at(self.last))?;
        Ok(wanted_of(self.dsos, &self.wanted, &wanted))
    }

    fn check_names(&self, limits: Limits) -> Result<()> {
        let held = self.dsos.held() as u64;
        Ok(limits
            .check_metadata("names of mappings", held)
            .map_err(|e| e.at(self.last))?)
    }

    fn sample(&mut self, record: &RawRecord<'_>, events: &Events) {
        let Some(sample) = events.sample_view(record) else {
            return;
        };
        let place = (
            CpuMode::of(record.misc),
            sample.tid().map_or(0, |tid| tid.pid),
        );
        self.moments.push_sample(at(sample.time()), place, |words| {
            words.extend(sample.ip());
            sample.callchain().append_to(words);
        });
    }

    /// Processes the user part of a callchain that was deferred.
    fn deferred(&mut self, record: &RawRecord<'_>, events: &Events) -> Result<()> {
        let decoded = Record::decode(record, &events.layout_of(record))?;
        let Body::CallchainDeferred(chain) = decoded.body else {
            return Ok(());
        };
        let Some(id) = decoded.sample_id else {
            return Ok(());
        };
        let place = (CpuMode::USER, id.tid.map_or(0, |tid| tid.pid));
        self.moments.push_sample(at(id.time), place, |words| {
            words.extend_from_slice(&chain.callchain)
        });
        Ok(())
    }

    /// Processes a record that may change mappings. If all objects are wanted, it does not matter
    /// which mappings there are at what time.
    fn change(&mut self, record: &RawRecord<'_>, events: &Events) -> Result<()> {
        let is_followed = self.select == Select::Hit;
        if let Some(change) = Change::in_place(record, events) {
            let change = change.map(|change| change.with(|mapped| self.object(&mapped)));
            if let Some(change) = change.filter(|_| is_followed) {
                let time = at(events.time(record));
                self.moments.push_change(time, change);
            }
            return Ok(());
        }
        let decoded = Record::decode(record, &events.layout_of(record))?;
        let change = Change::of(&decoded);
        let change = change.map(|change| change.with(|mapped| self.object(&mapped)));
        if let Some(change) = change.filter(|_| is_followed) {
            let time = decoded.sample_id.and_then(|id| at(id.time));
            self.moments.push_change(time, change);
        }
        Ok(())
    }

    /// Returns the mapped object, if it is executable.
    fn object(&mut self, mapped: &Mapped<'_>) -> Option<ObjectId> {
        if !mapped.is_executable || !is_object(&mapped.dso) {
            return None;
        }
        let object = self.dsos.intern(&mapped.dso);
        // perf lists the vDSO whether a sample hits it or not.
        let is_vdso = matches!(mapped.dso.kind, DsoKind::Vdso | DsoKind::Vdso32);
        if is_vdso || self.select == Select::All {
            self.wanted.add(object);
        }
        Some(object)
    }
}

/// Returns the time of a record. perf's synthesized records about the time before the recording
/// have none, or 0.
fn at(time: Option<u64>) -> Option<u64> {
    time.filter(|&time| is_known_time(time))
}
