//! The numbers for charts of a recording: sizes of its parts, and events over time.

use std::collections::BTreeMap;

use perfdata_core::Recording;
use perfdata_core::container_layout::{ContainerLayout, Part, Region};
use perfdata_core::header::PipeHeader;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};

use super::bins::Bins;
use super::overview::Overview;
use super::part_name;
use perfdata_convert::error::Result;
use perfdata_convert::io::Input;

/// A mapped object.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Mapping {
    /// Size of the largest mapping of the object in bytes.
    pub bytes: u64,
    /// Number of times that it was mapped.
    pub count: u64,
}

/// A part of the file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Room {
    /// Its index among the parts.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// Whether it contains the records.
    pub is_records: bool,
    /// Its offset in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl Room {
    /// Returns the number of its colour and shade. The records always have the first one.
    pub(super) fn look(&self) -> usize {
        if self.is_records { 0 } else { self.number + 1 }
    }
}

/// Maximum number of mapped objects in memory; the largest ones are kept.
const MAPPINGS: usize = 4096;

/// The result of one pass over a recording, with charts.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChartData {
    /// The result without charts.
    pub overview: Overview,
    /// Bytes of records by type, by position in the stream.
    pub space: Bins<RecordType>,
    /// Samples by event, over time.
    pub events: Bins<Option<usize>>,
    /// Samples by CPU, over time.
    pub cpus: Bins<Option<u32>>,
    /// Number of samples without a time, which no chart contains.
    pub timeless: u64,
    mappings: BTreeMap<Vec<u8>, Mapping>,
}

impl ChartData {
    /// Reads `input` from start to end.
    ///
    /// # Errors
    /// As [`Overview::of`].
    pub fn of(input: Input) -> Result<Self> {
        let mut survey = Charts::default();
        let overview = Overview::observed(input, |record, inner, recording| {
            survey.see(record, inner, recording)
        })?;
        let Charts {
            space,
            events,
            cpus,
            timeless,
            mappings,
        } = survey;
        Ok(ChartData {
            overview,
            space,
            events,
            cpus,
            timeless,
            mappings,
        })
    }

    /// Returns the size of the recording in bytes.
    pub fn size(&self) -> u64 {
        match self.overview.container_layout() {
            ContainerLayout::File(file) => file.len,
            ContainerLayout::Pipe(_) => {
                PipeHeader::SIZE.saturating_add(self.overview.stream_bytes())
            }
        }
    }

    /// Returns the parts of the recording, in order.
    pub fn rooms(&self) -> Vec<Room> {
        match self.overview.container_layout() {
            ContainerLayout::File(file) => {
                let room = |(number, region): (usize, &Region)| Room {
                    number,
                    name: part_name(region.part),
                    is_records: region.part == Part::Data,
                    offset: region.place.offset,
                    size: region.place.size,
                };
                file.regions.iter().enumerate().map(room).collect()
            }
            ContainerLayout::Pipe(_) => {
                let header = PipeHeader::SIZE;
                let room = |part, offset, end: u64| Room {
                    number: 0,
                    name: part_name(part),
                    is_records: part == Part::Data,
                    offset,
                    size: end.saturating_sub(offset),
                };
                vec![
                    room(Part::Header, 0, header),
                    room(Part::Data, header, self.size()),
                ]
            }
        }
    }

    /// Returns the mapped objects, the largest first.
    pub fn mappings(&self) -> Vec<(&[u8], Mapping)> {
        let mut all: Vec<_> = self
            .mappings
            .iter()
            .map(|(name, mapping)| (&name[..], *mapping))
            .collect();
        all.sort_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then(a.0.cmp(b.0)));
        all
    }
}

/// The data collected during the pass.
#[derive(Debug, Default)]
struct Charts {
    space: Bins<RecordType>,
    events: Bins<Option<usize>>,
    cpus: Bins<Option<u32>>,
    timeless: u64,
    mappings: BTreeMap<Vec<u8>, Mapping>,
}

impl Charts {
    fn see(&mut self, raw: &RawRecord<'_>, inner: Option<usize>, recording: &Recording) {
        if inner.is_none() {
            self.space.add(raw.kind, raw.offset, raw.bytes.len() as u64);
        }
        match raw.kind {
            RecordType::SAMPLE => {
                let events = &recording.events;
                let Some(time) = events.sample_time(raw) else {
                    self.timeless = self.timeless.saturating_add(1);
                    return;
                };
                self.events.add(events.of_record(raw), time, 1);
                let cpu = Record::decode(raw, &events.layout_of(raw))
                    .ok()
                    .and_then(|record| match record.body {
                        Body::Sample(sample) => Some(sample.cpu?.cpu),
                        _ => None,
                    });
                self.cpus.add(cpu, time, 1);
            }
            RecordType::MMAP | RecordType::MMAP2 => {
                let Ok(record) = Record::decode(raw, &recording.events.layout_of(raw)) else {
                    return;
                };
                match record.body {
                    Body::Mmap(map) => self.map(map.filename.text(), map.len),
                    Body::Mmap2(map) => self.map(map.filename.text(), map.len),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, name: &[u8], bytes: u64) {
        if !self.mappings.contains_key(name) {
            if self.mappings.len() >= 2 * MAPPINGS {
                let mut sizes: Vec<u64> = self
                    .mappings
                    .values()
                    .map(|mapping| mapping.bytes)
                    .collect();
                sizes.sort_unstable();
                let median = sizes.get(MAPPINGS).copied().unwrap_or(0);
                self.mappings.retain(|_, mapping| mapping.bytes > median);
            }
            self.mappings.insert(name.to_vec(), Mapping::default());
        }
        if let Some(mapping) = self.mappings.get_mut(name) {
            mapping.bytes = mapping.bytes.max(bytes);
            mapping.count = mapping.count.saturating_add(1);
        }
    }
}
