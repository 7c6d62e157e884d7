//! Deferred callchains become part of their samples.
//!
//! Since 6.19 the kernel can leave the user part of a callchain for later (`perf record --call-graph fp,defer`): the
//! sample's chain ends with `PERF_CONTEXT_USER_DEFERRED` and a cookie, and a CALLCHAIN_DEFERRED record with that cookie
//! has the user part (kernel/events/core.c, `perf_event_deferred_output`). It comes after an unlimited number of other
//! records, or before its samples where another CPU's buffer was written first. Older perfs discard every chain with
//! such a marker.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::attr::Attr;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::read::{Chunk, Decompressor, Limits, is_compressed};
use perfdata_core::record::{Body, CallchainContext, CpuMode, RawRecord, Record, RecordType, Sample, deferred_cookie};
use perfdata_core::wire::Rest;
use perfdata_core::{Endian, Event, Layout, Recording};

use super::{CompressedRecords, Link, ReadsAhead, Requirements, Stage};
use crate::error::{Error, Result, Step};
use crate::io::InputSource;

/// Bytes of the largest record: a size of 16 bits, a multiple of 8.
const MAX_SIZE: usize = 65_528;

/// Joins CALLCHAIN_DEFERRED records to the samples that wait for them, and clears the flags that announce them. A sample
/// whose record is missing keeps what it has.
#[derive(Debug)]
pub struct MergeDeferred {
    /// Whether the recording is read ahead in any case, or only where it can be read twice.
    is_asked_for: bool,
    /// The user parts of callchains; nothing where there are none.
    chains: Option<Chains>,
    merged: u64,
    missing: u64,
    cut: u64,
    removed: u64,
}

impl MergeDeferred {
    /// A stage that merges; a stream is stored until its end is known.
    pub fn new() -> Self {
        MergeDeferred { is_asked_for: true, chains: None, merged: 0, missing: 0, cut: 0, removed: 0 }
    }

    /// A stage that merges where the input has deferred callchains and can be read twice, and changes nothing else.
    pub fn where_possible() -> Self {
        MergeDeferred { is_asked_for: false, ..MergeDeferred::new() }
    }

    /// The sample with its whole callchain; nothing where it does not wait for a part of it.
    fn merge(&mut self, raw: &RawRecord<'_>, recording: &Recording) -> Result<Option<Record>> {
        let Some(chains) = &self.chains else { return Ok(None) };
        if recording.events.sample_view(raw).and_then(|sample| deferred_cookie(sample.callchain())).is_none() {
            return Ok(None);
        }
        let mut record = Record::decode(raw, &recording.events.layout_of(raw))?;
        let Body::Sample(sample) = &mut record.body else { return Ok(None) };
        let Some((kernel, cookie)) = sample.callchain.as_ref().and_then(|words| is_deferred(words)) else {
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
        // The two words of marker and cookie are in the record's size.
        let others = raw.bytes.len().saturating_sub((kernel.len().saturating_add(2)).saturating_mul(8));
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

/// A chain without the marker at its end, and the cookie of what is to come.
fn is_deferred(words: &[u64]) -> Option<(&[u64], u64)> {
    let cookie = deferred_cookie(words.iter().copied())?;
    Some((words.get(..words.len().checked_sub(2)?)?, cookie))
}

/// The user part of a chain that never came: where the sample itself was, if that was in user space.
fn leaf(raw: &RawRecord<'_>, sample: &Sample) -> Vec<u64> {
    match sample.ip {
        Some(ip) if CpuMode::of(raw.misc) == CpuMode::USER => vec![CallchainContext::USER.0, ip],
        _ => Vec::new(),
    }
}

/// The user parts of callchains by thread and cookie. Most occur more than once, and are held once.
#[derive(Debug)]
struct Chains {
    limits: Limits,
    by_key: HashMap<(Option<u32>, u64), usize, RandomState>,
    numbers: HashMap<Box<[u64]>, usize, RandomState>,
    all: Vec<Box<[u64]>>,
    /// Bytes held.
    held: u64,
}

impl Chains {
    fn new(limits: Limits) -> Self {
        Chains { limits, by_key: HashMap::default(), numbers: HashMap::default(), all: Vec::new(), held: 0 }
    }

    /// Takes a record of `recording`. Of several with the same key the first one counts.
    fn see(&mut self, raw: &RawRecord<'_>, recording: &Recording) -> Result<()> {
        if raw.kind != RecordType::CALLCHAIN_DEFERRED {
            return Ok(());
        }
        let record = Record::decode(raw, &recording.events.layout_of(raw))?;
        let tid = record.sample_id.as_ref().and_then(|trailer| trailer.tid.as_ref()).map(|task| task.tid);
        let Body::CallchainDeferred(deferred) = record.body else { return Ok(()) };
        let words: Box<[u64]> = deferred.callchain.iter().copied().collect();
        let mut size = size_of::<((Option<u32>, u64), usize)>() as u64;
        let number = match self.numbers.get(&words) {
            Some(&number) => number,
            None => {
                let number = self.all.len();
                size = size.saturating_add((words.len() as u64).saturating_mul(16)).saturating_add(48);
                self.all.push(words.clone());
                self.numbers.insert(words, number);
                number
            }
        };
        self.held = self.held.saturating_add(size);
        self.limits.check_metadata("deferred callchains", self.held)?;
        self.by_key.entry((tid, deferred.cookie)).or_insert(number);
        Ok(())
    }

    /// The user part with a cookie, of thread `tid` or of a record that does not name its thread.
    fn find(&self, tid: Option<u32>, cookie: u64) -> Option<&[u64]> {
        let number = self.by_key.get(&(tid, cookie)).or_else(|| self.by_key.get(&(None, cookie)))?;
        self.all.get(*number).map(|words| &**words)
    }
}

/// Whether an event has its user callchains come later, or has them in its buffer.
fn defers(attr: &Attr) -> bool {
    attr.flags.defer_callchain() | attr.flags.defer_output() != 0
}

/// Clears the flags of deferred callchains.
fn clear(attr: &mut Attr) {
    for flag in ["defer_callchain", "defer_output"] {
        attr.flags = attr.flags.with(flag, 0).unwrap_or(attr.flags);
    }
}

/// An EVENT_DESC section without the flags.
fn clear_descs(bytes: &[u8], endian: Endian) -> Result<Vec<u8>> {
    let mut section = match Section::decode(FeatureId::EVENT_DESC, bytes, endian, &Layout::default()) {
        Ok(section) => section,
        // One that is damaged stays so.
        Err(_) => return Ok(bytes.to_vec()),
    };
    if let Feature::EventDescs(descs) = &mut section.value {
        for desc in &mut descs.events.0 {
            clear(&mut desc.attr.0);
        }
    }
    Ok(section.encode(endian)?)
}

impl Stage for MergeDeferred {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            all_records: self.is_asked_for,
            may_refuse: true,
            reads_ahead: if self.is_asked_for { ReadsAhead::Always } else { ReadsAhead::IfSeekable },
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
        let Some(mut reader) = source.reopen()? else {
            let what = "the user part of its callchains is in records of its own (CALLCHAIN_DEFERRED), which can be merged \
                        only in a file: store the stream first";
            return Err(Error::Refused(what.into()).with_step(Step::MergeDeferred));
        };
        let mut chains = Chains::new(recording.limits);
        let mut decompressor = None;
        while let Some((chunk, now)) = reader.next_chunk()? {
            let Chunk::Records(batch) = chunk else { continue };
            let now = if now.events.is_empty() { recording } else { now };
            for raw in batch.iter() {
                if !is_compressed(raw.kind) {
                    chains.see(&raw, now)?;
                    continue;
                }
                let inner = match &mut decompressor {
                    Some(inner) => inner,
                    none => none.insert(Decompressor::of(now)?),
                };
                inner.push(&raw)?;
                while let Some(raw) = inner.next()? {
                    chains.see(&raw, now)?;
                }
            }
        }
        self.chains = Some(chains);
        Ok(())
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        if self.chains.is_none() {
            return Ok(());
        }
        let cleared = recording.events.iter().map(|event| {
            let mut event = Event { attr: event.attr.clone(), ids: event.ids.clone() };
            clear(&mut event.attr);
            event
        });
        recording.events = cleared.collect();
        if let Some(bytes) = recording.features.get_mut(&FeatureId::EVENT_DESC.0) {
            *bytes = clear_descs(bytes, recording.endian)?;
        }
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        let changed =
            [RecordType::SAMPLE, RecordType::CALLCHAIN_DEFERRED, RecordType::HEADER_ATTR, RecordType::HEADER_FEATURE];
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
                Some(record) => next.write(&record),
                None => next.record(raw),
            },
            _ => {
                let mut record = Record::decode(raw, &Layout::default())?;
                match &mut record.body {
                    Body::HeaderAttr(body) => clear(&mut body.attr),
                    Body::HeaderFeature(body) if body.feat_id == u64::from(FeatureId::EVENT_DESC.0) => {
                        body.section = Rest(clear_descs(&body.section.0, raw.endian)?);
                    }
                    _ => return next.record(raw),
                }
                let bytes = record.encode(raw.endian)?;
                next.record(&RawRecord { bytes: &bytes, ..*raw })
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let Some(_) = &self.chains else { return Vec::new() };
        let count = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let mut notes =
            vec![format!("{} merged from {}", count(self.merged, "callchain"), count(self.removed, "deferred record"))];
        if self.missing > 0 {
            let samples = count(self.missing, "sample");
            notes.push(format!("{samples} without the user part of the callchain: the recording does not have it"));
        }
        if self.cut > 0 {
            notes.push(format!("{} cut: a record has {MAX_SIZE} bytes at most", count(self.cut, "callchain")));
        }
        notes
    }
}
