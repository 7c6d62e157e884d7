//! Code that a program has copied to huge pages.
//!
//! Chrome, node, MySQL, `libhugetlbfs` and BOLT's `--hugify` copy the code of a file to anonymous
//! memory with huge pages, which they put in its place. The recording then says that this memory is
//! no file, so perf shows its functions as unknown. This stage makes such mappings those of the
//! file again, where [`perfdata_session::huge_pages`] knows it.
//!
//! Only memory in units of huge pages is considered. A JIT compiler could have code in memory that a
//! file was mapped to before, which the recording does not tell: therefore a user asks for this.

use std::collections::BTreeMap;

use perfdata_core::Recording;
use perfdata_core::record::{
    Body, CpuMode, Inode, MISC_MMAP_BUILD_ID, MappedBuildId, RawRecord, Record, RecordType,
    is_known_time,
};
use perfdata_core::wire::Text;
use perfdata_session::huge_pages::{file_under, is_in_huge_pages, is_in_place_of};
use perfdata_session::{AddressSpaces, Change, DsoId, DsoKind, Dsos, Mapped, Owner};

use crate::jit::FLAGS;
use crate::memory::{Memory, is_mapping};
use perfdata_convert::count::number_of;
use perfdata_convert::error::Result;
use perfdata_convert::pipeline::{Link, Requirements, Stage};

/// Maximum number of files in the notes.
const MOST_SHOWN: usize = 10;

/// Makes mappings of anonymous memory those of the files whose code is in it.
///
/// The records must be in the order of time: see `perfdata_edit::sort::Sort`.
#[derive(Debug, Default)]
pub struct HugePages {
    dsos: Dsos,
    /// How records describe the files of `dsos`.
    files: Vec<Described>,
    spaces: AddressSpaces<Option<MappedFile>>,
    /// Adjacent memory of one process in records that perf made of a running process, while what
    /// follows it is not known.
    waiting: Vec<(Memory, Vec<u8>)>,
    /// Number of mappings by file.
    deduced: BTreeMap<Vec<u8>, u64>,
}

/// A file that is mapped, and what is added to an address for its offset in the file.
type MappedFile = (DsoId, u64);

/// What a record says about a file.
#[derive(Debug, Clone)]
struct Described {
    name: Text,
    inode: Option<Inode>,
    build_id: Option<MappedBuildId>,
}

impl Described {
    fn of(body: &Body) -> Option<Self> {
        Some(match body {
            Body::Mmap(map) => Described {
                name: map.filename.clone(),
                inode: None,
                build_id: None,
            },
            Body::Mmap2(map) => Described {
                name: map.filename.clone(),
                inode: map.inode.clone(),
                build_id: map.build_id.clone(),
            },
            _ => return None,
        })
    }

    /// Makes a record one of this file.
    fn describe(&self, record: &mut Record, pgoff: u64) {
        match &mut record.body {
            Body::Mmap(map) => {
                map.pgoff = pgoff;
                map.filename = self.name.clone();
            }
            Body::Mmap2(map) => {
                map.pgoff = pgoff;
                map.filename = self.name.clone();
                // Without MAP_HUGETLB, which for perf means memory without a file.
                map.flags = map.flags.map(|_| FLAGS);
                if self.build_id.is_some() {
                    (map.inode, map.build_id) = (None, self.build_id.clone());
                    record.misc |= MISC_MMAP_BUILD_ID;
                } else if self.inode.is_some() {
                    (map.inode, map.build_id) = (self.inode.clone(), None);
                    record.misc &= !MISC_MMAP_BUILD_ID;
                }
            }
            _ => {}
        }
    }
}

impl HugePages {
    /// Returns the file in whose place the memory is, according to earlier mappings.
    fn under(&self, memory: &Memory) -> Option<MappedFile> {
        let space = self.spaces.space(owner(memory.pid)?)?;
        file_under(space, &(memory.start..memory.end), |file| file)
    }

    /// Returns whether the memory that waits is in the place of a file, whose mapping begins at
    /// `start`.
    fn is_before(&self, file: MappedFile, start: u64) -> bool {
        let (Some((first, _)), Some((last, _))) = (self.waiting.first(), self.waiting.last())
        else {
            return false;
        };
        let space = owner(first.pid).and_then(|owner| self.spaces.space(owner));
        last.end == start
            && space.is_some_and(|space| is_in_place_of(space, first.start, &file, |file| file))
    }

    /// Forwards the memory that waits, as mappings of `file` if there is one.
    fn release(&mut self, file: Option<MappedFile>, next: &mut Link<'_>) -> Result<()> {
        let endian = next.recording().endian;
        for (memory, bytes) in std::mem::take(&mut self.waiting) {
            let raw = RawRecord::first(&bytes, endian, 0)?;
            match file {
                Some(file) => self.deduce(&memory, file, &raw, next)?,
                None => next.record(&raw)?,
            }
        }
        Ok(())
    }

    /// Forwards a record of memory as one of a file.
    fn deduce(
        &mut self,
        memory: &Memory,
        file: MappedFile,
        raw: &RawRecord<'_>,
        next: &mut Link<'_>,
    ) -> Result<()> {
        let events = &next.recording().events;
        let mut record = Record::decode(raw, &events.layout_of(raw))?;
        let Some(described) = self.files.get(file.0.index()) else {
            return next.record(raw);
        };
        described.describe(&mut record, memory.start.wrapping_add(file.1));
        let name = described.name.text().to_vec();
        let count = self.deduced.entry(name).or_default();
        *count = count.saturating_add(1);
        if let Some(owner) = owner(memory.pid) {
            self.spaces.apply(Change::Map {
                owner,
                range: (memory.start, memory.end),
                what: Some(file),
            });
        }
        next.write(&record)
    }

    /// Returns what a mapping is of, and remembers how its record describes the file.
    fn file_of(&mut self, mapped: &Mapped<'_>, body: &Body) -> Option<MappedFile> {
        if mapped.dso.kind != DsoKind::File {
            return None;
        }
        let dso = self.dsos.intern(&mapped.dso);
        if dso.index() >= self.files.len()
            && let Some(described) = Described::of(body)
        {
            self.files.push(described);
        }
        Some((dso, mapped.pgoff.wrapping_sub(mapped.start)))
    }

    fn mapping(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let recording = next.recording();
        let record = Record::decode(raw, &recording.events.layout_of(raw))?;
        let is_read = recording
            .events
            .time(raw)
            .is_none_or(|time| !is_known_time(time));
        let Some(change) = Change::of(&record) else {
            return next.record(raw);
        };
        let memory =
            Memory::of(&record).filter(|memory| is_in_huge_pages(&(memory.start..memory.end)));
        if let Some(memory) = memory {
            if let Some(file) = self.under(&memory) {
                self.release(None, next)?;
                return self.deduce(&memory, file, raw, next);
            }
            self.spaces.apply(change.with(|_| None));
            let follows = self
                .waiting
                .last()
                .is_none_or(|(last, _)| last.pid == memory.pid && last.end == memory.start);
            if !follows || !is_read {
                self.release(None, next)?;
            }
            if !is_read {
                return next.record(raw);
            }
            self.waiting.push((memory, raw.bytes.to_vec()));
            let held = self.waiting.iter().map(|(_, bytes)| bytes.len() as u64);
            return Ok(next.limits().check_metadata("mappings", held.sum())?);
        }
        let mut file = None;
        let change = change.with(|mapped| {
            file = self.file_of(&mapped, &record.body);
            (file, mapped.start)
        });
        let known = match &change {
            Change::Map {
                owner: whose,
                what: (Some(file), start),
                ..
            } => self
                .waiting
                .first()
                .filter(|(memory, _)| owner(memory.pid) == Some(*whose))
                .and_then(|_| self.is_before(*file, *start).then_some(*file)),
            _ => None,
        };
        self.release(known, next)?;
        self.spaces.apply(change.with(|(file, _)| file));
        next.record(raw)
    }
}

/// Returns the owner of a process's memory.
fn owner(pid: u32) -> Option<Owner> {
    Owner::of(CpuMode::USER, pid)
}

impl Stage for HugePages {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            all_records: true,
            ..Requirements::none()
        }
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if is_mapping(raw.kind) {
            self.mapping(raw, next)?;
            let held = self.spaces.held().saturating_add(self.dsos.held());
            return Ok(next.limits().check_metadata("mappings", held as u64)?);
        }
        self.release(None, next)?;
        if Change::affects_processes(raw.kind) {
            let record = Record::decode(raw, &next.recording().events.layout_of(raw))?;
            if let Some(change) = Change::of(&record) {
                self.spaces.apply(change.with(|_| None));
            }
        }
        next.record(raw)
    }

    fn wants(&self, kind: RecordType) -> bool {
        !self.waiting.is_empty() || Change::affects_processes(kind)
    }

    fn finish(&mut self, _: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.release(None, next)
    }

    fn notes(&self) -> Vec<String> {
        if self.deduced.is_empty() {
            return vec!["no executable memory is in the place of a file".into()];
        }
        let shown = self.deduced.iter().take(MOST_SHOWN);
        let mut notes: Vec<String> = shown
            .map(|(name, count)| {
                let name = String::from_utf8_lossy(name);
                format!(
                    "{name}: {} with its code on huge pages",
                    number_of(*count, "mapping")
                )
            })
            .collect();
        if let Some(more) = self
            .deduced
            .len()
            .checked_sub(MOST_SHOWN)
            .filter(|&more| more > 0)
        {
            notes.push(format!(
                "{} with code on huge pages",
                number_of(more as u64, "more file")
            ));
        }
        notes
    }
}
