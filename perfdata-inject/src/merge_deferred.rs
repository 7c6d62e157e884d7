//! Merges deferred callchains into their samples.
//!
//! Since 6.19, the kernel can record the user part of a callchain later
//! (`perf record --call-graph fp,defer`). The callchain of the sample then ends with
//! `PERF_CONTEXT_USER_DEFERRED` and a cookie. A CALLCHAIN_DEFERRED record with the same cookie
//! contains the user part (kernel/events/core.c, `perf_event_deferred_output`). It follows after
//! any number of other records, or precedes its samples if the buffer of another CPU was written
//! first. Older versions of perf discard every callchain with this marker.

mod early;

use perfdata_core::Recording;
use perfdata_core::attr::Attr;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::record::{
    Body, CallchainContext, CpuMode, RawRecord, Record, RecordType, Sample, deferred_cookie,
};

use early::EarlyMappings;
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{CompressedRecords, Link, ReadsAhead, Requirements, Stage};
use perfdata_convert::support::attributes::{change_head, changed_events, changed_record};
use perfdata_convert::support::deferred_chains::{Chains, defers};

/// Maximum size of a record in bytes: a 16-bit size that is a multiple of 8.
const MAX_SIZE: usize = 65_528;

/// Joins CALLCHAIN_DEFERRED records with their samples, and clears the flags that announce them. A
/// sample without such a record keeps its own part of the callchain.
///
/// The frames come from the input: stages that change callchains, such as
/// `Thin`, must come later.
#[derive(Debug)]
pub struct MergeDeferred {
    /// Whether to read the recording ahead in any case, or only if it can be read twice.
    is_asked_for: bool,
    /// The user parts of callchains; `None` if there are none.
    chains: Option<Chains>,
    /// The mappings of frames that the samples precede.
    early: EarlyMappings,
    merged: u64,
    mapped: u64,
    missing: u64,
    cut: u64,
    removed: u64,
}

impl MergeDeferred {
    /// Returns a stage that merges. A stream is stored until its end.
    pub fn new() -> Self {
        MergeDeferred {
            is_asked_for: true,
            chains: None,
            early: EarlyMappings::default(),
            merged: 0,
            mapped: 0,
            missing: 0,
            cut: 0,
            removed: 0,
        }
    }

    /// Returns a stage that merges if the input has deferred callchains and can be read twice;
    /// otherwise, it changes nothing.
    pub fn where_possible() -> Self {
        MergeDeferred {
            is_asked_for: false,
            ..MergeDeferred::new()
        }
    }

    /// Writes the mappings of deferred frames of a sample that the recording has only after it, at
    /// the time of the sample. perf resolves deferred frames when their record comes, but those of
    /// a sample at its own time.
    fn map_early(&mut self, sample: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let events = &next.recording().events;
        let Some(view) = events.sample_view(sample) else {
            return Ok(());
        };
        let key = view
            .tid()
            .map(|task| task.tid)
            .zip(deferred_cookie(view.callchain()));
        let Some((tid, cookie)) = key else {
            return Ok(());
        };
        for bytes in self.early.take((Some(tid), cookie)) {
            let raw = RawRecord::first(&bytes, sample.endian, sample.offset)?;
            let mut mapping = Record::decode(&raw, &events.layout_of(&raw))?;
            if let Some(trailer) = &mut mapping.sample_id {
                trailer.time = view.time();
                next.write(&mapping)?;
                self.mapped += 1;
            }
        }
        Ok(())
    }

    /// Returns the sample with its complete callchain; `None` if it has no deferred part.
    fn merge(&mut self, raw: &RawRecord<'_>, recording: &Recording) -> Result<Option<Record>> {
        let Some(chains) = &self.chains else {
            return Ok(None);
        };
        if recording
            .events
            .sample_view(raw)
            .and_then(|sample| deferred_cookie(sample.callchain()))
            .is_none()
        {
            return Ok(None);
        }
        let mut record = Record::decode(raw, &recording.events.layout_of(raw))?;
        let Body::Sample(sample) = &mut record.body else {
            return Ok(None);
        };
        let Some((kernel, cookie)) = sample
            .callchain
            .as_ref()
            .and_then(|words| is_deferred(words))
        else {
            return Ok(None);
        };
        let mut words = kernel.to_vec();
        match chains.find(sample.tid.as_ref().map(|task| task.tid), cookie) {
            Some(user) => {
                words.push(CallchainContext::USER.0);
                words.extend_from_slice(user);
                self.merged += 1;
            }
            None => {
                words.extend(leaf(raw, sample));
                self.missing += 1;
            }
        }
        // The size of the record includes the marker and the cookie.
        let others = raw
            .bytes
            .len()
            .saturating_sub((kernel.len().saturating_add(2)).saturating_mul(8));
        let room = MAX_SIZE.saturating_sub(others) / 8;
        if words.len() > room {
            words.truncate(room);
            self.cut += 1;
        }
        sample.callchain = Some(words.into());
        Ok(Some(record))
    }
}

impl Default for MergeDeferred {
    fn default() -> Self {
        MergeDeferred::new()
    }
}

/// Returns a callchain without the marker at its end, and the cookie of the deferred part.
fn is_deferred(words: &[u64]) -> Option<(&[u64], u64)> {
    let cookie = deferred_cookie(words.iter().copied())?;
    Some((words.get(..words.len().checked_sub(2)?)?, cookie))
}

/// Returns the replacement for a missing user part: the instruction pointer of the sample, if it is
/// in user space.
fn leaf(raw: &RawRecord<'_>, sample: &Sample) -> Vec<u64> {
    match sample.ip {
        Some(ip) if CpuMode::of(raw.misc) == CpuMode::USER => vec![CallchainContext::USER.0, ip],
        _ => Vec::new(),
    }
}

/// Returns an attribute without the flags of deferred callchains.
fn cleared(attr: &Attr) -> Attr {
    let mut attr = attr.clone();
    for flag in ["defer_callchain", "defer_output"] {
        attr.flags = attr.flags.with(flag, 0).unwrap_or(attr.flags);
    }
    attr
}

impl Stage for MergeDeferred {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            all_records: self.is_asked_for,
            may_refuse: true,
            reads_ahead: if self.is_asked_for {
                ReadsAhead::Always
            } else {
                ReadsAhead::IfSeekable
            },
            ..Requirements::none()
        }
    }

    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        match self.chains {
            Some(_) => CompressedRecords::Opened(kind),
            None => CompressedRecords::AsTheyAre,
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        if !recording.events.iter().any(|event| defers(&event.attr)) {
            return Ok(());
        }
        let mut chains = Chains::new(source.limits());
        let is_chain = |kind| kind == RecordType::CALLCHAIN_DEFERRED;
        if !source.each_record_of(recording, is_chain, |raw, now| chains.see(raw, now))? {
            let what = "deferred callchains (CALLCHAIN_DEFERRED) cannot be merged in this stream: write it to a file first";
            return Err(Error::Refused(what.into()).with_step(Step::MergeDeferred));
        }
        self.chains = Some(chains);
        if let Some(reader) = source.reopen()? {
            self.early = EarlyMappings::read(reader, source.limits())?;
        }
        Ok(())
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        if self.chains.is_none() {
            return Ok(());
        }
        recording.events = changed_events(&recording.events, &cleared);
        change_head(recording, container_layout, &cleared)
    }

    fn wants(&self, kind: RecordType) -> bool {
        let changed = [
            RecordType::SAMPLE,
            RecordType::CALLCHAIN_DEFERRED,
            RecordType::HEADER_ATTR,
            RecordType::HEADER_FEATURE,
        ];
        self.chains.is_some() && changed.contains(&kind)
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if self.chains.is_none() {
            return next.record(raw);
        }
        match raw.kind {
            RecordType::CALLCHAIN_DEFERRED => {
                self.removed += 1;
                Ok(())
            }
            RecordType::SAMPLE => match self.merge(raw, next.recording())? {
                Some(record) => {
                    self.map_early(raw, next)?;
                    next.write(&record)
                }
                None => next.record(raw),
            },
            _ => match changed_record(raw, &cleared)? {
                Some(bytes) => next.record(&RawRecord {
                    bytes: &bytes,
                    ..*raw
                }),
                None => next.record(raw),
            },
        }
    }

    fn notes(&self) -> Vec<String> {
        let Some(_) = &self.chains else {
            return Vec::new();
        };
        let count = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let mut notes = vec![format!(
            "{} merged from {}",
            count(self.merged, "callchain"),
            count(self.removed, "deferred record")
        )];
        if self.mapped > 0 {
            notes.push(format!(
                "{} copied to before samples whose deferred frames they contain",
                count(self.mapped, "mapping")
            ));
        }
        if self.missing > 0 {
            let samples = count(self.missing, "sample");
            notes.push(format!("{samples} without the user part of the callchain: the recording does not contain it"));
        }
        if self.cut > 0 {
            notes.push(format!(
                "{} truncated: the maximum size of a record is {MAX_SIZE} bytes",
                count(self.cut, "callchain")
            ));
        }
        notes
    }
}
