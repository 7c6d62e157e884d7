//! The times of the first and the last sample of a stream, including those in compressed records.

use std::sync::{Arc, Mutex, PoisonError};

use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{Feature, FeatureId, SampleTime};
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Chunk, Decompressor, Limits};
use perfdata_core::record::{RawRecord, RecordType};

use crate::error::Result;
use crate::pipeline::{Link, Requirements, Stage};

/// Collects the times of samples.
#[derive(Debug, Default)]
pub struct SampleTimes {
    range: Option<(u64, u64)>,
    decompressor: Option<Decompressor>,
    /// The number of events, and the offset of the time in the samples of all of them.
    place: (usize, Option<usize>),
}

impl SampleTimes {
    /// Processes a record of `recording` of any type. Compressed records are decompressed within
    /// `limits`.
    ///
    /// # Errors
    /// A compressed record cannot be decompressed.
    pub fn see(
        &mut self,
        record: &RawRecord<'_>,
        recording: &Recording,
        limits: Limits,
    ) -> perfdata_core::Result<()> {
        match record.kind {
            RecordType::SAMPLE => self.sample(record, recording),
            kind if kind.is_compressed() => {
                let mut inner = match self.decompressor.take() {
                    Some(decompressor) => decompressor,
                    None => Decompressor::of(recording, limits)?,
                };
                inner.push(record)?;
                while let Some(record) = inner.next()? {
                    if record.kind == RecordType::SAMPLE {
                        self.sample(&record, recording);
                    }
                }
                self.decompressor = Some(inner);
            }
            _ => {}
        }
        Ok(())
    }

    /// Processes a sample.
    #[inline]
    pub fn sample(&mut self, record: &RawRecord<'_>, recording: &Recording) {
        if self.place.0 != recording.events.len() {
            self.place = (recording.events.len(), recording.events.time_place());
        }
        // Most times are between others. Then it does not matter whether the event is known.
        if let (Some((first, last)), Some(place)) = (self.range, self.place.1)
            && let Some(time) = record.word(place)
            && (first..=last).contains(&time)
        {
            return;
        }
        self.extend(record, recording);
    }

    /// Adds a time that may be outside of the range.
    fn extend(&mut self, record: &RawRecord<'_>, recording: &Recording) {
        if let Some(time) = recording.events.sample_time(record) {
            let (first, last) = self.range.unwrap_or((time, time));
            self.range = Some((first.min(time), last.max(time)));
        }
    }

    /// Returns the earliest and the latest time so far, in nanoseconds on the recording's clock.
    pub fn range(&self) -> Option<SampleTime> {
        self.range.map(|(first, last)| SampleTime { first, last })
    }
}

/// Returns whether the recorder wrote a section with zeros for the times: that of a pipe is written
/// before the first sample.
pub(crate) fn are_unknown(recording: &Recording) -> bool {
    let section = recording.features.get(&FeatureId::SAMPLE_TIME);
    section.is_some_and(|section| section.iter().all(|&byte| byte == 0))
}

/// The times of the samples before the stages that may drop some.
type Before = Arc<Mutex<Option<SampleTime>>>;

/// Updates SAMPLE_TIME if stages may drop samples or change their times.
pub(crate) struct UpdateTimes {
    place: Position,
    times: SampleTimes,
    /// Whether the recording contains the times.
    is_wanted: bool,
}

enum Position {
    /// Before these stages.
    Before(Before),
    /// After these stages.
    After(Before),
    /// After these stages, if the input or the output is a pipe, where the times precede the first
    /// sample. As in a pipe of `perf record`, they become 0, which means unknown. A conversion to a
    /// file then determines them.
    Pipe,
}

impl UpdateTimes {
    /// Inserts such stages before and after those of `stages` that may drop samples.
    pub(crate) fn around(stages: &mut Vec<Box<dyn Stage>>, from: ContainerKind, to: ContainerKind) {
        let first = stages
            .iter()
            .position(|stage| !stage.requirements().keeps_samples);
        let last = stages
            .iter()
            .rposition(|stage| !stage.requirements().keeps_samples);
        let (Some(first), Some(last)) = (first, last) else {
            return;
        };
        let before = Before::default();
        let after = match (from, to) {
            (ContainerKind::File, ContainerKind::File) => {
                stages.insert(first, Self::new(Position::Before(before.clone())));
                last.saturating_add(2)
            }
            _ => last.saturating_add(1),
        };
        stages.insert(after, Self::after(before, from, to));
    }

    /// Inserts such a stage after those of `stages` that may drop samples. Others were dropped
    /// before all stages; `before` are the times of all samples of the input.
    pub(crate) fn behind(
        before: Option<SampleTime>,
        stages: &mut Vec<Box<dyn Stage>>,
        from: ContainerKind,
        to: ContainerKind,
    ) {
        let last = stages
            .iter()
            .rposition(|stage| !stage.requirements().keeps_samples);
        let after = last.map_or(0, |last| last.saturating_add(1));
        let before = Arc::new(Mutex::new(before));
        stages.insert(after, Self::after(before, from, to));
    }

    fn after(before: Before, from: ContainerKind, to: ContainerKind) -> Box<Self> {
        Self::new(match (from, to) {
            (ContainerKind::File, ContainerKind::File) => Position::After(before),
            _ => Position::Pipe,
        })
    }

    fn new(place: Position) -> Box<Self> {
        Box::new(UpdateTimes {
            place,
            times: SampleTimes::default(),
            is_wanted: false,
        })
    }
}

impl Stage for UpdateTimes {
    fn requirements(&self) -> Requirements {
        Requirements::none()
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        if !recording.features.contains_key(&FeatureId::SAMPLE_TIME) {
            return Ok(());
        }
        if let Position::Pipe = self.place {
            let unknown = Feature::SampleTime(SampleTime { first: 0, last: 0 });
            return Ok(recording.set_feature(FeatureId::SAMPLE_TIME, unknown)?);
        }
        self.is_wanted = true;
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        kind == RecordType::SAMPLE && self.is_wanted
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        let Chunk::Records(batch) = chunk else {
            return next.chunk(chunk);
        };
        if self.is_wanted {
            batch
                .iter()
                .try_for_each(|record| self.times.see(&record, next.recording(), next.limits()))?;
        }
        next.records(batch)
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if self.is_wanted {
            self.times.see(record, next.recording(), next.limits())?;
        }
        next.record(record)
    }

    fn finish(&mut self, recording: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        if !self.is_wanted {
            return Ok(());
        }
        let now = self.times.range();
        match &self.place {
            Position::Before(before) => {
                *before.lock().unwrap_or_else(PoisonError::into_inner) = now;
                Ok(())
            }
            Position::After(before)
                if *before.lock().unwrap_or_else(PoisonError::into_inner) != now =>
            {
                let times = now.unwrap_or(SampleTime { first: 0, last: 0 });
                Ok(recording.set_feature(FeatureId::SAMPLE_TIME, Feature::SampleTime(times))?)
            }
            Position::After(_) | Position::Pipe => Ok(()),
        }
    }
}
