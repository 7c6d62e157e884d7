//! Records that a kernel or recorder wrote in a layout of its own, in that of Linux.
//!
//! The driver adds this stage to every conversion except an exact copy: perf misreads these
//! records, and a conversion may remove what else tells how to read them, such as the release of
//! the kernel or the attribute of an event.

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{Feature, FeatureId, SampleTime, Section};
use perfdata_core::read::Chunk;
use perfdata_core::record::{
    Body, HeaderTracingData, MISC_MMAP_BUILD_ID, MISC_MMAP_DATA, RawRecord, Record, RecordHeader,
    RecordType,
};
use perfdata_core::version::Version;
use perfdata_core::{DecodeContext, Event, Recording};

use super::sample_times::{SampleTimes, are_unknown};
use crate::count::number_of;
use crate::error::{Error, Result};
use crate::io::InputSource;
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage, compression, each_part};
use crate::verify::{lacks_tracing_data, unread_build_ids};

/// The release of Linux since which MMAP2 records contain `prot` and `flags`.
const PROTECTION: &str = "3.16";

/// `PROT_EXEC`, which is the same on all machines.
const PROT_EXEC: u32 = 4;

/// Rewrites records of vendors' layouts.
#[derive(Debug)]
pub(crate) struct StandardLayout {
    /// Whether compressed records are opened.
    opens: bool,
    /// The tracing data in a record of a file, which has a section for them, or becomes a pipe.
    tracing_data: Option<Vec<u8>>,
    /// Whether MMAP2 records may lack `prot` and `flags`.
    adds_protection: bool,
    /// Number of MMAP2 records that got `prot` and `flags`.
    mappings: u64,
    /// Number of MMAP2 records whose misc announced a build ID, although they have an inode.
    false_build_ids: u64,
    /// The note about bytes of the BUILD_ID section that are no entries.
    unread_build_ids: Option<String>,
    /// The times of the samples, if they were read ahead.
    times: Option<SampleTime>,
}

/// What a pass over the compressed records found.
#[derive(Debug, Default)]
struct Ahead {
    /// Whether MMAP2 records announce a build ID, but have an inode.
    has_false_build_ids: bool,
    /// The times of the samples.
    times: Option<SampleTime>,
}

impl StandardLayout {
    /// Returns the stage for a recording.
    ///
    /// # Errors
    /// The input cannot be read.
    pub(crate) fn of(
        source: &InputSource,
        layout: &ContainerLayout,
        recording: &Recording,
    ) -> Result<Self> {
        let tracing_data = match layout {
            ContainerLayout::File(_) if lacks_tracing_data(recording) => {
                contained_tracing_data(source)?
            }
            _ => None,
        };
        let release = release(recording);
        let is_old = release.is_some_and(|release| !release.has(PROTECTION));
        let ahead = match !is_old && Self::reads_ahead(recording) {
            true => Ahead::of(source, recording)?,
            false => Ahead::default(),
        };
        Ok(StandardLayout {
            opens: is_old || ahead.has_false_build_ids,
            tracing_data,
            adds_protection: is_old || release.is_none(),
            mappings: 0,
            false_build_ids: 0,
            unread_build_ids: None,
            times: ahead.times,
        })
    }

    /// Returns the times of all samples of the input, if they are known already.
    pub(crate) fn times(&self) -> Option<&SampleTime> {
        self.times.as_ref()
    }

    /// Returns whether the compressed records are searched before a conversion.
    pub(crate) fn reads_ahead(recording: &Recording) -> bool {
        let may_lie =
            |event: &Event| event.attr.flags.mmap2() != 0 && event.attr.flags.build_id() == 0;
        let events = &recording.events;
        compression(recording).is_some() && (events.is_empty() || events.iter().any(may_lie))
    }

    /// Adds the tracing data to the model.
    pub(crate) fn add_tracing_data(&self, recording: &mut Recording) {
        if let Some(data) = &self.tracing_data {
            let features = &mut recording.features;
            features.insert(FeatureId::TRACING_DATA, data.clone());
        }
    }

    /// Clears the bit of an MMAP2 record that announces a build ID, but has an inode.
    fn mapping(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if !next.recording().events.has_false_build_id(raw) {
            return self.protection(raw, next);
        }
        self.false_build_ids = self.false_build_ids.saturating_add(1);
        let misc = raw.misc & !MISC_MMAP_BUILD_ID;
        let mut bytes = raw.bytes.to_vec();
        RecordHeader::put_misc(&mut bytes, misc, raw.endian);
        let bytes = &bytes;
        self.protection(
            &RawRecord {
                misc,
                bytes,
                ..*raw
            },
            next,
        )
    }

    /// Adds `prot` and `flags` to an MMAP2 record that lacks them.
    fn protection(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let events = &next.recording().events;
        let lacks_them = || {
            let mapping = events.fixed_record(raw).and_then(|fixed| fixed.mapping());
            mapping.is_some_and(|mapping| mapping.prot_flags.is_none())
        };
        if !self.adds_protection || !lacks_them() {
            return next.record(raw);
        }
        let mut record = Record::decode(raw, &events.layout_of(raw))?;
        if let Body::Mmap2(map) = &mut record.body {
            // The kernel tells whether the mapping is executable, and nothing else.
            let is_data = record.misc & MISC_MMAP_DATA != 0;
            map.prot = Some(if is_data { 0 } else { PROT_EXEC });
            map.flags = Some(0);
            self.mappings = self.mappings.saturating_add(1);
        }
        next.write(&record)
    }
}

impl Ahead {
    fn of(source: &InputSource, recording: &Recording) -> Result<Ahead> {
        let mut ahead = Ahead::default();
        let mut times = are_unknown(recording).then(SampleTimes::default);
        let is_wanted = |kind| kind == RecordType::MMAP2 || kind == RecordType::SAMPLE;
        let read = source.each_record_of(recording, is_wanted, |raw, now| {
            match &mut times {
                Some(times) if raw.kind == RecordType::SAMPLE => times.sample(raw, now),
                _ => ahead.has_false_build_ids |= now.events.has_false_build_id(raw),
            }
            Ok(())
        });
        match read {
            Ok(true) => ahead.times = times.and_then(|times| times.range()),
            Ok(false) => {}
            // The conversion finds corrupt data again, and knows better what to do about them.
            Err(Error::Read(error)) if !error.is_io() => {}
            Err(error) => return Err(error),
        }
        Ok(ahead)
    }
}

/// Returns the release of the recorded kernel, if the recording contains it.
fn release(recording: &Recording) -> Option<Version> {
    match recording.feature(FeatureId::OSRELEASE) {
        Some(Ok(Section {
            value: Feature::OsRelease(text),
            ..
        })) => std::str::from_utf8(text.text()).ok()?.parse().ok(),
        _ => None,
    }
}

/// Returns the tracing data in a record before all records that are not metadata.
fn contained_tracing_data(source: &InputSource) -> Result<Option<Vec<u8>>> {
    let Some(mut reader) = source.reopen()? else {
        return Ok(None);
    };
    while let Some((Chunk::Records(batch), recording)) = reader.next_chunk()? {
        match batch.only().filter(|record| record.kind.is_metadata()) {
            Some(record) if contains_tracing_data(&record) => {
                return Ok(recording.features.get(&FeatureId::TRACING_DATA).cloned());
            }
            Some(_) => {}
            None => break,
        }
    }
    Ok(None)
}

/// Returns whether it is a record that announces tracing data and contains them.
fn contains_tracing_data(raw: &RawRecord<'_>) -> bool {
    let layout = DecodeContext::default().with_len(raw.body().len() as u64);
    let body = || raw.decode_body::<HeaderTracingData>(layout);
    raw.kind == RecordType::HEADER_TRACING_DATA && body().is_ok_and(|body| body.data.is_some())
}

impl Stage for StandardLayout {
    fn requirements(&self) -> Requirements {
        Requirements::none()
    }

    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        match self.opens {
            true => CompressedRecords::Opened(kind),
            false => CompressedRecords::AsTheyAre,
        }
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        self.add_tracing_data(recording);
        if let Some(Ok(section)) = recording.feature(FeatureId::BUILD_ID) {
            self.unread_build_ids = unread_build_ids(&section);
        }
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        matches!(kind, RecordType::MMAP2 | RecordType::HEADER_TRACING_DATA)
    }

    /// Forwards batches whole in which nothing can change: nearly all are like that.
    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        let Chunk::Records(batch) = chunk else {
            return next.chunk(chunk);
        };
        let may_change = |raw: RawRecord<'_>| match raw.kind {
            RecordType::MMAP2 => self.adds_protection || raw.misc & MISC_MMAP_BUILD_ID != 0,
            kind => self.wants(kind),
        };
        match batch.iter().any(may_change) {
            true => each_part(self, batch, next),
            false => next.records(batch),
        }
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        match raw.kind {
            RecordType::MMAP2 => self.mapping(raw, next),
            _ if self.tracing_data.is_some() && contains_tracing_data(raw) => Ok(()),
            _ => next.record(raw),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.mappings > 0 {
            let mappings = number_of(self.mappings, "MMAP2 record");
            notes.push(format!(
                "{mappings} of an older kernel got the fields prot and flags"
            ));
        }
        if self.false_build_ids > 0 {
            let mappings = number_of(self.false_build_ids, "MMAP2 record");
            notes.push(format!(
                "{mappings} with an inode lost the flag MMAP_BUILD_ID, which the kernel sets while \
                 another recorder requests build IDs"
            ));
        }
        notes.extend(self.unread_build_ids.clone());
        notes
    }
}
