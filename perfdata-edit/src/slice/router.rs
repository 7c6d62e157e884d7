//! The second pass over a recording: passes each record to the parts that contain it.

use std::sync::Arc;

use perfdata_core::Recording;
use perfdata_core::attr::SampleType;
use perfdata_core::read::RecordBatch;
use perfdata_core::record::{Body, RawRecord, RecordType};

use super::aux_cuts::{self, AuxCuts, Cut};
use super::counters::{self, SlicedCounters};
use super::decisions::{Decisions, PartKey, SHARED};
use super::survey;
use perfdata_convert::error::Result;
use perfdata_convert::io::{Gaps, InputSource};
use perfdata_convert::pipeline::to_parts::{self, Outlets, PartNumber};

/// Where a record goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Nowhere,
    Part(PartNumber),
    /// To the parts that need it.
    Shared,
    /// Its content or position matters.
    Special,
}

/// Passes the records of a recording to its parts. Receives all records, without compression.
#[derive(Debug)]
pub(super) struct Router {
    decisions: Arc<Decisions>,
    cuts: AuxCuts,
    /// Whether the recording has samples with counter values.
    has_counters: bool,
    counters: SlicedCounters,
    /// Number of records so far, and of those that are not samples.
    number: u64,
    ordinal: u64,
    /// Number of records since the last FINISHED_ROUND record, and of those of each part.
    in_round: u64,
    kept_in_round: Vec<u64>,
    /// Number of gaps of the input so far.
    gaps: usize,
    /// Number of AUXTRACE records so far.
    traces: u64,
    /// The parts that contain the last record with a payload, what they keep of the payload, and
    /// the offset of its next bytes.
    receivers: Vec<(PartNumber, Cut)>,
    cut_at: u64,
}

impl Router {
    /// Returns a router for the parts in `decisions`. Reads AUX data in `source`.
    ///
    /// # Errors
    /// As [`AuxCuts::of`].
    pub(crate) fn new(
        decisions: Arc<Decisions>,
        source: &InputSource,
        recording: &Recording,
    ) -> Result<Self> {
        let spans = decisions.parts.iter().map(|part| part.span);
        let cuts = match spans.collect::<Option<Vec<_>>>() {
            Some(mut spans) if decisions.has_aux_data => {
                if !decisions.has_own_spans() {
                    spans.truncate(1);
                }
                AuxCuts::of(source, recording, spans)?
            }
            _ => AuxCuts::default(),
        };
        let has_counters = |sample_type: SampleType| sample_type.has(SampleType::READ);
        let mut events = recording.events.iter();
        Ok(Router {
            cuts,
            has_counters: events.any(|event| has_counters(event.attr.sample_type)),
            counters: SlicedCounters::default(),
            number: 0,
            ordinal: 0,
            // The first round is kept even if it is empty.
            in_round: 1,
            kept_in_round: vec![1; decisions.parts.len()],
            gaps: 0,
            traces: 0,
            receivers: Vec::new(),
            cut_at: 0,
            decisions,
        })
    }

    /// Returns whether the recording has samples with counter values.
    pub(super) fn has_counters(&self) -> bool {
        self.has_counters
    }

    /// Returns whether `part` needs all AUX data.
    pub(super) fn has_all_aux_data(&self, part: PartNumber) -> bool {
        self.cuts.are_none(self.decisions.span_of(part))
    }

    /// Returns a note for the user, if the values of counters changed.
    pub(crate) fn note(&self) -> Option<String> {
        self.counters.note()
    }

    /// Returns the records that the only part does not contain and that it may not receive. The
    /// values of counters need all samples.
    pub(super) fn gaps(&self) -> Option<&Gaps> {
        let gaps = &self.decisions.gaps;
        (!self.has_counters && !gaps.is_empty()).then_some(gaps)
    }

    /// Counts the records of the gaps before a record at `offset`.
    #[inline]
    fn pass_gaps(&mut self, offset: u64) {
        while let Some(gap) = self.decisions.gaps.as_slice().get(self.gaps)
            && gap.place.offset < offset
            && self.gaps().is_some()
        {
            self.number = self.number.saturating_add(gap.records);
            self.in_round = self.in_round.saturating_add(gap.records);
            self.gaps = self.gaps.saturating_add(1);
        }
    }

    /// Processes several records.
    pub(crate) fn records(
        &mut self,
        batch: &RecordBatch<'_>,
        outlets: &mut (impl Outlets + ?Sized),
    ) -> Result<()> {
        self.pass_gaps(batch.offset());
        let mut rest = *batch;
        while !rest.is_empty() {
            let mut to = To::Special;
            let mut count = 0u64;
            let run = rest.take_while(|record| {
                let next = self.to(record.kind, self.number.saturating_add(count));
                if count == 0 {
                    to = next;
                } else if next != to || to == To::Special {
                    return false;
                }
                count = count.saturating_add(1);
                true
            });
            self.run(to, &run, outlets)?;
        }
        Ok(())
    }

    /// Processes a record.
    pub(crate) fn record(
        &mut self,
        record: &RawRecord<'_>,
        outlets: &mut (impl Outlets + ?Sized),
    ) -> Result<()> {
        self.pass_gaps(record.offset);
        let to = self.to(record.kind, self.number);
        self.run(to, &RecordBatch::of(record), outlets)
    }

    /// Processes a part of the payload of the last record.
    pub(crate) fn payload(
        &mut self,
        bytes: &[u8],
        outlets: &mut (impl Outlets + ?Sized),
    ) -> Result<()> {
        for &(part, cut) in &self.receivers {
            outlets.payload(part, cut.of(self.cut_at, bytes))?;
        }
        self.cut_at = self.cut_at.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Returns where the record with this number goes.
    #[inline]
    fn to(&self, kind: RecordType, number: u64) -> To {
        let is_special = match kind {
            RecordType::SAMPLE => self.has_counters,
            RecordType::FINISHED_ROUND => true,
            kind => kind.is_metadata() || kind.has_payload(),
        };
        if is_special {
            return To::Special;
        }
        match self.decisions.part_of(number) {
            None => To::Nowhere,
            Some(SHARED) => To::Shared,
            Some(_) if self.decisions.also_of(number).next().is_some() => To::Special,
            Some(part) => To::Part(part),
        }
    }

    /// Processes records that go to the same place.
    fn run(
        &mut self,
        to: To,
        run: &RecordBatch<'_>,
        outlets: &mut (impl Outlets + ?Sized),
    ) -> Result<()> {
        match to {
            To::Special => {
                for record in run.iter() {
                    outlets.at(record.offset);
                    self.special(&record, outlets)?;
                }
                return Ok(());
            }
            To::Shared => {
                for record in run.iter() {
                    let ordinal = self.ordinal;
                    self.count(record.kind);
                    self.in_round = self.in_round.saturating_add(1);
                    for part in outlets.parts() {
                        if self.decisions.has(part, ordinal) {
                            self.keep(part, 1);
                            outlets.record(part, &record)?;
                        }
                    }
                }
                return Ok(());
            }
            To::Nowhere | To::Part(_) => {}
        }
        let count = run.len() as u64;
        self.number = self.number.saturating_add(count);
        if self.decisions.is_divided() {
            let others = run
                .iter()
                .filter(|record| record.kind != RecordType::SAMPLE);
            self.ordinal = self.ordinal.saturating_add(others.count() as u64);
        }
        self.in_round = self.in_round.saturating_add(count);
        if let To::Part(part) = to
            && outlets.parts().contains(&part)
        {
            self.keep(part, count);
            outlets.records(part, run)?;
        }
        Ok(())
    }

    /// Counts a record.
    fn count(&mut self, kind: RecordType) {
        self.number = self.number.saturating_add(1);
        self.ordinal = self
            .ordinal
            .saturating_add(u64::from(kind != RecordType::SAMPLE));
    }

    /// Notes that `part` contains records of this round.
    fn keep(&mut self, part: PartNumber, count: u64) {
        if let Some(kept) = self.kept_in_round.get_mut(usize::from(part)) {
            *kept = kept.saturating_add(count);
        }
    }

    /// Processes a record whose content or position matters.
    fn special(
        &mut self,
        record: &RawRecord<'_>,
        outlets: &mut (impl Outlets + ?Sized),
    ) -> Result<()> {
        let number = self.number;
        let ordinal = self.ordinal;
        self.count(record.kind);
        self.receivers.clear();
        match record.kind {
            RecordType::SAMPLE => return self.sample(record, number, outlets),
            RecordType::FINISHED_ROUND => return self.end_round(record, outlets),
            RecordType::HEADER_BUILD_ID => {
                let decoded = survey::decode(record, outlets.recording())?;
                for part in outlets.parts() {
                    let is_left_out = match &decoded.body {
                        Body::HeaderBuildId(entry) => {
                            self.decisions.is_left_out(part, entry.filename.text())
                        }
                        _ => false,
                    };
                    if !is_left_out {
                        outlets.record(part, record)?;
                    }
                }
            }
            RecordType::AUXTRACE => {
                let trace = self.traces;
                (self.traces, self.cut_at) = (trace.saturating_add(1), 0);
                if self.decisions.part_of(number).is_none() {
                    return Ok(());
                }
                for part in outlets.parts() {
                    if self.decisions.has(part, ordinal) {
                        self.trace(record, trace, part, outlets)?;
                    }
                }
            }
            _ => {
                self.cut_at = 0;
                for part in outlets.parts() {
                    outlets.record(part, record)?;
                    self.receivers.push((part, Cut::WHOLE));
                }
            }
        }
        Ok(())
    }

    /// Processes a FINISHED_ROUND record. A round of which nothing is left only delays perf.
    fn end_round(
        &mut self,
        record: &RawRecord<'_>,
        outlets: &mut (impl Outlets + ?Sized),
    ) -> Result<()> {
        let all = std::mem::take(&mut self.in_round);
        for part in outlets.parts() {
            let kept = self.kept_in_round.get_mut(usize::from(part));
            let kept = kept.map_or(0, std::mem::take);
            if kept > 0 || all == 0 {
                outlets.record(part, record)?;
            }
        }
        Ok(())
    }

    /// Processes an AUXTRACE record of a part.
    fn trace(
        &mut self,
        record: &RawRecord<'_>,
        number: u64,
        part: PartNumber,
        outlets: &mut (impl Outlets + ?Sized),
    ) -> Result<()> {
        let cut = self.cuts.get(self.decisions.span_of(part), number);
        if cut.len == 0 {
            return Ok(());
        }
        self.receivers.push((part, cut));
        if cut == Cut::WHOLE {
            return outlets.record(part, record);
        }
        let mut decoded = survey::decode(record, outlets.recording())?;
        if let Body::Auxtrace(trace) = &mut decoded.body {
            *trace = aux_cuts::apply(trace, cut);
        }
        outlets.write(part, &decoded)
    }

    /// Processes a sample of a recording with counter values, or one of several parts.
    fn sample(
        &mut self,
        record: &RawRecord<'_>,
        number: u64,
        outlets: &mut (impl Outlets + ?Sized),
    ) -> Result<()> {
        let decisions = self.decisions.clone();
        self.in_round = self.in_round.saturating_add(1);
        // A sample of an unknown event is in one part, too.
        let recording = outlets.recording();
        let event = recording.events.look(record).map(|(event, _)| event);
        let event = event.filter(|_| self.has_counters);
        let is_inherited = event.map(|event| counters::is_inherited(event, &recording.events));
        let own = decisions.part_of(number);
        for part in own.into_iter().chain(decisions.also_of(number)) {
            let is_written = outlets.parts().contains(&part);
            if is_written {
                self.keep(part, 1);
            }
            let mut changed = None;
            if let Some(is_inherited) = is_inherited {
                let mut decoded = survey::decode(record, outlets.recording())?;
                if let Body::Sample(sample) = &mut decoded.body
                    && self.counters.set_for(sample, is_inherited, part)
                {
                    changed = Some(decoded);
                }
                let held = self.counters.held() as u64;
                outlets.limits().check_metadata("counters", held)?;
            }
            match changed {
                _ if !is_written => {}
                Some(changed) => outlets.write(part, &changed)?,
                None => outlets.record(part, record)?,
            }
        }
        if let Some(is_inherited) = is_inherited
            && let Some((_, view)) = outlets.recording().events.look(record)
        {
            self.counters.pass(&view, is_inherited);
        }
        Ok(())
    }
}

impl Decisions {
    /// Returns whether each part needs AUX data of another time.
    fn has_own_spans(&self) -> bool {
        let first = self.parts.first();
        first.is_some_and(|part| matches!(part.key, PartKey::Interval(..)))
    }

    /// Returns the index of the time of which `part` needs AUX data.
    fn span_of(&self, part: PartNumber) -> usize {
        match self.has_own_spans() {
            true => usize::from(part),
            false => 0,
        }
    }
}

impl to_parts::Router for Router {
    fn record(&mut self, record: &RawRecord<'_>, outlets: &mut dyn Outlets) -> Result<()> {
        Router::record(self, record, outlets)
    }

    fn records(&mut self, batch: &RecordBatch<'_>, outlets: &mut dyn Outlets) -> Result<()> {
        Router::records(self, batch, outlets)
    }

    fn payload(&mut self, bytes: &[u8], outlets: &mut dyn Outlets) -> Result<()> {
        Router::payload(self, bytes, outlets)
    }

    fn note(&self) -> Option<String> {
        Router::note(self)
    }
}
