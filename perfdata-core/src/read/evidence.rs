//! How well bytes pass for a record of a recording: by type, size, alignment, fields, event id and time.

use crate::attr::SampleType;
use crate::error::Error;
use crate::feature::{FeatureId, Section};
use crate::layout::Layout;
use crate::record::{Body, CpuMode, HeaderFeature, RawRecord, Record, RecordHeader, RecordType, TABLE};
use crate::recording::Recording;

/// What is thought of a record.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It bears the id of an event, or a time near that of others.
    Sure,
    /// All fields fit, but nothing in it belongs to this recording alone.
    Likely,
    /// It can be read, but is not what the kernel or perf write today.
    Odd,
    /// It cannot be what it says.
    Bad(Error),
}

/// What the records so far have shown.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The lowest and the highest time.
    times: Option<(u64, u64)>,
    /// Whether records bear ids of the recording's events.
    knows_ids: bool,
    /// The types, a bit for each, of which there were records that are as they should be.
    regular: u128,
}

/// Nanoseconds that a record may be away from all others before its time speaks against it.
const NEAR: u64 = 3_600_000_000_000;

impl Evidence {
    /// Judges a whole record.
    pub(super) fn judge(&self, raw: &RawRecord<'_>, recording: &Recording) -> Verdict {
        let events = &recording.events;
        let layout = events.layout_of(raw);
        let record = match Record::decode(raw, &layout) {
            Ok(record) => record,
            Err(error) => return Verdict::Bad(error),
        };
        if let Body::HeaderFeature(feature) = &record.body
            && let Err(error) = section(feature, recording)
        {
            return Verdict::Bad(error.within(raw.offset.saturating_add(16)));
        }
        let tail_is_odd = match raw.kind {
            RecordType::SAMPLE => !record.tail.is_empty(),
            _ => record.tail.iter().any(|&byte| byte != 0),
        };
        // Nobody can read the kernel's records without an event.
        if !is_regular(raw) || tail_is_odd || (events.is_empty() && raw.kind.is_kernel()) {
            return Verdict::Odd;
        }
        if !raw.kind.is_kernel() || (raw.kind != RecordType::SAMPLE && !layout.sample_id_all) {
            return Verdict::Likely;
        }
        let near = self.is_near(raw, recording);
        let has_ids = events.iter().any(|event| !event.ids.is_empty());
        match events.id_of(raw).filter(|_| has_ids) {
            Some(0) => Verdict::Likely,
            Some(id) if events.by_id(id).is_none() && self.knows_ids => {
                let error = Error::invalid(format!("{} record", raw.kind), "id", id.to_string(), "the id of an event");
                Verdict::Bad(error.at(raw.offset))
            }
            Some(id) if events.by_id(id).is_none() => Verdict::Odd,
            Some(_) if near != Some(false) => Verdict::Sure,
            None if near == Some(true) => Verdict::Sure,
            _ => Verdict::Likely,
        }
    }

    /// Whether a record of this type should not be odd, since others are not.
    pub(super) fn is_regular(&self, kind: RecordType) -> bool {
        1_u128.checked_shl(kind.0).is_some_and(|bit| self.regular & bit != 0)
    }

    /// Learns from a record that is believed, for what `verdict` says.
    pub(super) fn learn(&mut self, raw: &RawRecord<'_>, recording: &Recording, verdict: &Verdict) {
        if let Verdict::Sure | Verdict::Likely = verdict {
            self.regular |= 1_u128.checked_shl(raw.kind.0).unwrap_or(0);
        }
        if !raw.kind.is_kernel() {
            return;
        }
        if let Some(time) = time(raw, recording) {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        self.knows_ids = self.knows_ids
            || recording.events.id_of(raw).is_some_and(|id| id != 0 && recording.events.by_id(id).is_some());
    }

    /// Whether the time of a record is near that of others, where that can be said.
    fn is_near(&self, raw: &RawRecord<'_>, recording: &Recording) -> Option<bool> {
        let time = time(raw, recording)?;
        let (first, last) = self.times?;
        Some(time >= first.saturating_sub(NEAR) && time <= last.saturating_add(NEAR))
    }
}

/// The time of a record, if it has one and it says something.
fn time(raw: &RawRecord<'_>, recording: &Recording) -> Option<u64> {
    let has_time = recording.events.layout_of(raw).sample_type.has(SampleType::TIME);
    recording.events.time(raw).filter(|&time| has_time && time != 0 && time != u64::MAX)
}

/// Whether type, size and `misc` are such as the kernel and perf write.
fn is_regular(raw: &RawRecord<'_>) -> bool {
    raw.kind.info().is_some()
        && (!raw.kind.is_kernel()
            || (raw.bytes.len().is_multiple_of(8) && CpuMode::of(raw.misc).0 <= CpuMode::GUEST_USER.0))
}

/// Whether the section in a record of a pipe can be read.
fn section(record: &HeaderFeature, recording: &Recording) -> Result<(), Error> {
    let Ok(id) = u32::try_from(record.feat_id) else { return Ok(()) };
    if record.section.0.is_empty() || id > FeatureId::END.0 {
        return Ok(());
    }
    let layout = Layout { nr_cpus_available: recording.nr_cpus_available(), ..Layout::default() };
    Section::decode(FeatureId(id), &record.section.0, recording.endian, &layout).map(drop)
}

/// Where the first header in `bytes` is that may be one of a known record; only that much of it is looked at.
pub(super) fn find_header(bytes: &[u8], endian: binrw::Endian) -> Option<usize> {
    let last = TABLE.last().map_or(0, |info| info.kind.0);
    bytes.windows(RecordHeader::SIZE).position(|header| {
        RecordHeader::parse(header, endian).is_some_and(|header| {
            header.kind.0 <= last && usize::from(header.size) >= RecordHeader::SIZE && header.kind.info().is_some()
        })
    })
}
