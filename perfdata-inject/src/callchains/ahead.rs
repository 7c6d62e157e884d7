//! The mappings of a whole recording, which are read before its samples are unwound.

use std::cell::Cell;
use std::ops::Range;

use perfdata_core::read::Limits;
use perfdata_core::record::{
    Body, CpuMode, RawRecord, Record, RecordType, Registers, is_known_time,
};
use perfdata_core::{Events, Recording};
use perfdata_session::{
    AddressSpaceHistory, BuildIdTable, Change, Dso, DsoId, DsoKind, Dsos, Machine, Mapped, Owner,
    Space,
};
use perfdata_symbols::{FetchAhead, KernelMapping, ObjectFinder, Sources, fetch_objects};
use perfdata_unwind::{At, MappedObject, Maps, ObjectId, Objects, is_object};

use crate::jit::map::is_memory;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::InputSource;

/// A mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MappedPiece {
    dso: DsoId,
    start: u64,
    pgoff: u64,
}

/// When the DSOs were mapped.
#[derive(Debug, Default)]
struct MapTimes {
    /// The time of the first mapping of each DSO.
    times: Vec<Option<u64>>,
    /// The first known time: DSOs that were mapped before the recording have none.
    start: Option<u64>,
}

impl MapTimes {
    fn add(&mut self, dso: DsoId, time: Option<u64>) {
        self.start = self.start.or(time);
        if self.times.len() <= dso.index() {
            self.times.resize(dso.index().saturating_add(1), None);
        }
        if let Some(known) = self.times.get_mut(dso.index()) {
            *known = known.or(time);
        }
    }

    /// Returns when the DSO with an index was mapped.
    fn of(&self, dso: usize) -> Option<u64> {
        self.times.get(dso).copied().flatten().or(self.start)
    }
}

/// What a recording contains that its samples need.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Type of the first compressed record.
    pub(super) compressed: Option<RecordType>,
    pub(super) objects: Objects,
    pub(super) registers: &'static Registers,
    dsos: Dsos,
    build_ids: BuildIdTable,
    /// The object of each DSO; `None` if it is not a file.
    pub(super) ids: Vec<Option<ObjectId>>,
    history: AddressSpaceHistory<MappedPiece>,
    /// Whether the records have times.
    is_timed: bool,
    /// Without times, the number of changes so far.
    changes: u64,
    has_generated_code: bool,
}

impl Ahead {
    /// Reads an input to its end. `recording` is the model before the first record; if all
    /// attributes of a stream come later, it has their events nevertheless.
    ///
    /// # Errors
    /// The input cannot be read or decompressed, or only once; or its machine is not known.
    pub(super) fn read(
        source: &InputSource,
        recording: &Recording,
        sources: Sources,
        has_generated_code: bool,
    ) -> Result<Self> {
        let Some(mut reader) = source.reopen()? else {
            let what = "user stacks cannot be unwound in this stream, because it can be read only once: \
                        write it to a file first";
            return Err(Error::Refused(what.into()));
        };
        let limits = source.limits();
        let are_late = reader.recording().events.is_empty();
        let is_timed = are_timed(&recording.events);
        let mut build_ids = BuildIdTable::of(recording)?;
        let mut dsos = Dsos::default();
        let mut history = AddressSpaceHistory::default();
        let mut times = MapTimes::default();
        let mut kernel: Option<(Dso, KernelMapping)> = None;
        // Samples with copies of stacks are most of the bytes, and are not needed.
        let is_needed = |kind| {
            Change::affects_processes(kind) && is_timed || kind == RecordType::HEADER_BUILD_ID
        };
        let ending = source.read_records_of(&mut *reader, is_needed, |raw, now| {
            let events = match are_late {
                true => &recording.events,
                false => &now.events,
            };
            let record = Record::decode(raw, &events.layout_of(raw))?;
            if let Body::HeaderBuildId(entry) = &record.body {
                build_ids.add(record.misc, entry);
            }
            let is_added_later = |mapped: &Mapped<'_>| has_generated_code && is_memory(&mapped.dso);
            if let Some(change) = Change::of(&record).filter(|change| match change {
                Change::Map { what, .. } => !is_added_later(what),
                _ => true,
            }) {
                let time = time_of(&record);
                let change = change.with(|mapped| {
                    let dso = &mapped.dso;
                    if dso.kind == DsoKind::Kernel && dso.machine == Machine::HOST {
                        kernel.get_or_insert_with(|| (dso.dso(), KernelMapping::of(&mapped)));
                    }
                    let piece = piece(&mapped, &mut dsos);
                    times.add(piece.dso, time);
                    piece
                });
                history.add(time, change);
            }
            let held = history.held().saturating_add(dsos.held());
            let held = held.saturating_add(build_ids.held());
            Ok(limits
                .check_metadata("mappings", held as u64)
                .map_err(|error| error.at(raw.offset))?)
        })?;
        let known = reader.recording();
        let Some(registers) = Registers::of(known).or_else(|| Registers::of(recording)) else {
            let what = "user stacks cannot be unwound: the recording does not contain its architecture \
                        (feature E_MACHINE or ARCH)";
            return Err(Error::Refused(what.into()));
        };
        fetch_objects(&sources, known, FetchAhead::Code)?;
        let mut finder = ObjectFinder::new(sources, known);
        if let Some((dso, mapping)) = kernel {
            finder = finder.with_kernel(mapping, build_ids.find(&dso));
        }
        let mut objects = Objects::new(finder);
        let ids = dsos.list().iter().enumerate();
        let ids = ids
            .map(|(at, dso)| {
                let is_object = is_object(dso);
                let build_id = build_ids.find(dso);
                is_object.then(|| objects.add(dso.clone(), build_id, times.of(at)))?
            })
            .collect();
        Ok(Ahead {
            compressed: ending.compressed,
            objects,
            registers,
            dsos,
            build_ids,
            ids,
            history,
            is_timed,
            changes: 0,
            has_generated_code,
        })
    }

    /// Returns whether records of this type must be seen in the stream, too.
    pub(super) fn wants(&self, kind: RecordType) -> bool {
        match self.is_timed {
            true => self.has_generated_code && matches!(kind, RecordType::MMAP | RecordType::MMAP2),
            false => Change::affects_processes(kind),
        }
    }

    /// Processes a record of the stream that changes mappings. With times, it only adds mappings
    /// that the input does not contain: a previous stage has inserted them.
    ///
    /// # Errors
    /// The record is corrupt, or the mappings exceed the limits.
    pub(super) fn see(
        &mut self,
        raw: &RawRecord<'_>,
        events: &Events,
        limits: Limits,
    ) -> Result<()> {
        let record = Record::decode(raw, &events.layout_of(raw))?;
        let Some(change) = Change::of(&record) else {
            return Ok(());
        };
        let known = self.dsos.list().len();
        let change = change.with(|mapped| piece(&mapped, &mut self.dsos));
        for dso in self.dsos.list().get(known..).unwrap_or_default() {
            let is_object = is_object(dso);
            let dso = dso.clone();
            let id = is_object.then(|| match self.is_timed {
                true => self.objects.add_written(dso),
                false => {
                    let build_id = self.build_ids.find(&dso);
                    self.objects.add(dso, build_id, None)
                }
            });
            self.ids.push(id.flatten());
        }
        if !self.is_timed {
            self.changes = self.changes.saturating_add(1);
            self.history.add(Some(self.changes), change);
        } else if let Change::Map { owner, range, what } = change {
            let time = time_of(&record);
            let space = self.history.at(owner, time.unwrap_or(0));
            let found = space.and_then(|space| space.find(range.0));
            if found.is_none_or(|(_, found)| found != what) {
                self.history.add(time, change);
            }
        }
        let held = self.history.held().saturating_add(self.dsos.held());
        Ok(limits
            .check_metadata("mappings", held as u64)
            .map_err(|error| error.at(raw.offset))?)
    }

    /// Returns the mappings of a process for a sample with `misc` at `time`; `None` for guests.
    pub(super) fn space(
        &mut self,
        misc: u16,
        pid: u32,
        time: Option<u64>,
    ) -> Option<Space<MappedPiece>> {
        if Machine::of(CpuMode::of(misc)).is_guest() {
            return None;
        }
        let time = match self.is_timed {
            true => time.unwrap_or(u64::MAX),
            false => self.changes,
        };
        self.history.at(Owner::Process(Machine::HOST, pid), time)
    }
}

/// The mappings of a process.
pub(super) struct ProcessMaps<'a> {
    space: Option<&'a Space<MappedPiece>>,
    /// The object of each DSO; `None` if it is not a file.
    ids: &'a [Option<ObjectId>],
    /// The last mapping that was found: that of the next frame is often the same.
    last: Cell<(u64, u64, At)>,
}

impl<'a> ProcessMaps<'a> {
    /// Returns the mappings in `space`. `ids` contains the object of each DSO; `None` if it is not
    /// a file.
    pub(super) fn new(space: Option<&'a Space<MappedPiece>>, ids: &'a [Option<ObjectId>]) -> Self {
        ProcessMaps {
            space,
            ids,
            last: Cell::new((0, 0, At::Nothing)),
        }
    }

    fn find(&self, address: u64) -> Option<(Range<u64>, At)> {
        let (range, piece) = self.space?.find(address)?;
        let MappedPiece { dso, start, pgoff } = piece;
        let at = match self.ids.get(dso.index()).copied().flatten() {
            Some(object) => At::Object(MappedObject {
                object,
                start,
                pgoff,
            }),
            None => At::Anonymous,
        };
        Some((range, at))
    }
}

impl Maps for ProcessMaps<'_> {
    #[inline]
    fn at(&self, address: u64) -> At {
        let (start, end, last) = self.last.get();
        if start <= address && address < end {
            return last;
        }
        let Some((range, at)) = self.find(address) else {
            return At::Nothing;
        };
        self.last.set((range.start, range.end, at));
        at
    }
}

fn piece(mapped: &Mapped<'_>, dsos: &mut Dsos) -> MappedPiece {
    MappedPiece {
        dso: dsos.intern(&mapped.dso),
        start: mapped.start,
        pgoff: mapped.pgoff,
    }
}

/// Returns the time of a record, if it is known.
fn time_of(record: &Record) -> Option<u64> {
    let time = record.sample_id.as_ref().and_then(|id| id.time);
    time.filter(|&time| is_known_time(time))
}

/// Returns whether all records have times.
fn are_timed(events: &Events) -> bool {
    use perfdata_core::attr::SampleType;
    let is_timed = |event: &perfdata_core::Event| {
        event.attr.flags.sample_id_all() == 1 && event.attr.sample_type.has(SampleType::TIME)
    };
    events.iter().all(is_timed)
}
