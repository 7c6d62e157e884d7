//! Adds build IDs of the files that a recording's samples hit, to analyse the recording on machines
//! without these files.
//!
//! A file contains them in the BUILD_ID section after the records, so one pass suffices. A pipe
//! must contain them before the first sample, so the recording is read twice (a stream through a
//! temporary file). The same applies if MMAP2 records contain the build IDs of only the objects
//! that samples hit.

mod follow;
mod hits;
mod known;
mod moments;
mod notes;
mod objects;
mod resolve;
mod sysroot;
mod timeline;
mod unhit;
mod watch;

pub use hits::Select;
pub use known::KnownBuildIds;
pub use resolve::Resolver;
pub use sysroot::Sysroot;

use std::collections::HashSet;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{BuildIdEntry, Feature, FeatureId, Section};
use perfdata_core::read::{Chunk, RecordBatch};
use perfdata_core::record::{
    Body, BuildId, MISC_BUILD_ID_SIZE, MISC_MMAP_BUILD_ID, MISC_MMAP_DATA, MappedBuildId,
    RawRecord, Record, RecordType,
};
use perfdata_core::wire::Text;
use perfdata_core::{Endian, Events, Recording};
use perfdata_session::{BuildId as Id, Dso, Machine, Mapped};

use notes::Notes;
use objects::{cpu_mode, is_object, shown};
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{
    CompressedRecords, Link, ReadsAhead, Requirements, Stage, each_part,
};
use watch::{BuildIdWatch, SeenObjects};

/// Where to store the build IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storage {
    /// In the BUILD_ID section, or in separate records of a pipe.
    Table,
    /// In the MMAP2 records of the objects, instead of their inodes.
    Mmap2,
}

/// Adds build IDs to a recording.
#[derive(Debug)]
pub struct BuildIds {
    select: Select,
    place: Storage,
    resolver: Resolver,
    watch: Option<BuildIdWatch>,
    /// The result of reading ahead.
    ahead: Option<SeenObjects>,
    /// The objects whose MMAP2 records are rewritten; `None` for all.
    names: Option<HashSet<(Machine, Vec<u8>)>>,
    /// Entries to insert before the first record of a pipe.
    first: Vec<BuildIdEntry>,
    /// Whether the input is a pipe, which contains build IDs as records; and its byte order.
    is_pipe: bool,
    endian: Endian,
    notes: Notes,
}

impl BuildIds {
    /// Returns a stage that adds the build IDs that `resolver` finds for the objects in `select`.
    pub fn new(select: Select, place: Storage, resolver: Resolver) -> Self {
        BuildIds {
            select,
            place,
            resolver,
            watch: None,
            ahead: None,
            names: None,
            first: Vec::new(),
            is_pipe: false,
            endian: Endian::NATIVE,
            notes: Notes::default(),
        }
    }

    /// Returns the entries for the objects in `seen`, and adds a note for each object without a
    /// build ID.
    fn entries(&mut self, seen: &SeenObjects) -> Result<Vec<BuildIdEntry>> {
        let mut entries = Vec::new();
        for object in seen.wanted() {
            if let Some(id) = self.find(object) {
                entries.push(entry(object, id)?);
            }
        }
        Ok(entries)
    }

    /// Returns the build ID of `object`, and adds a note about any problem.
    fn find(&mut self, object: &Dso) -> Option<Id> {
        match self.resolver.find(object) {
            Ok(id) => {
                if let Some(change) = self.resolver.change(object) {
                    self.notes.add(format!(
                        "{} has changed since the recording: {change}",
                        shown(object)
                    ));
                }
                Some(id)
            }
            Err(why) => {
                self.notes
                    .add(format!("no build ID for {}: {why}", shown(object)));
                None
            }
        }
    }

    /// Returns `record` with a build ID instead of the inode, if it maps a wanted object.
    fn rewrite(&mut self, record: &RawRecord<'_>, events: &Events) -> Result<Option<Vec<u8>>> {
        if record.kind != RecordType::MMAP2 || record.misc & MISC_MMAP_DATA != 0 {
            return Ok(None);
        }
        let mut decoded = Record::decode(record, &events.layout_of(record))?;
        let Body::Mmap2(map) = &mut decoded.body else {
            return Ok(None);
        };
        if map.build_id.is_some() {
            return Ok(None);
        }
        let dso = Mapped::of_mmap2(map, record.misc).dso;
        let is_wanted = || match &self.names {
            Some(names) => names.contains(&(dso.machine, dso.name.to_vec())),
            None => true,
        };
        if !is_object(&dso) || !is_wanted() {
            return Ok(None);
        }
        let object = dso.dso();
        let Some(id) = self.find(&object) else {
            return Ok(None);
        };
        let (build_id, build_id_size) = id.padded();
        map.inode = None;
        map.build_id = Some(MappedBuildId {
            build_id_size,
            reserved_1: 0,
            reserved_2: 0,
            build_id,
        });
        decoded.misc |= MISC_MMAP_BUILD_ID;
        Ok(Some(decoded.encode(record.endian)?))
    }

    /// Forwards entries as records.
    fn send(&self, entries: Vec<BuildIdEntry>, next: &mut Link<'_>) -> Result<()> {
        entries.into_iter().try_for_each(|entry| {
            let bytes = entry.to_record().encode(self.endian)?;
            next.record(&RawRecord::first(&bytes, self.endian, 0)?)
        })
    }
}

/// Returns the entry for `object`, in the format of perf since 6.12.
fn entry(object: &Dso, id: Id) -> Result<BuildIdEntry> {
    let (build_id, size) = id.padded();
    let filename = Text::padded(&object.name, 8);
    let pid = Some(object.machine.0);
    let build_id = BuildId {
        pid,
        build_id,
        size,
        reserved_1: 0,
        reserved_2: 0,
        filename,
    };
    BuildIdEntry::new(cpu_mode(object).0 | MISC_BUILD_ID_SIZE, build_id).ok_or_else(|| {
        Error::Refused(format!(
            "{}: the name is too long for the BUILD_ID section",
            shown(object)
        ))
    })
}

/// Adds `entries` to those in the BUILD_ID section, which remain unchanged. If the existing entries
/// have no process IDs, like those of perf before 2.6.35, the new ones have none either.
fn add(recording: &mut Recording, entries: Vec<BuildIdEntry>) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let has_pid = match recording.feature(FeatureId::BUILD_ID).transpose()? {
        Some(Section {
            value: Feature::BuildIds(ids),
            ..
        }) => ids
            .0
            .first()
            .is_none_or(|entry| entry.build_id.pid.is_some()),
        _ => true,
    };
    let entries = entries.into_iter().filter_map(|entry| {
        let BuildIdEntry { header, build_id } = entry;
        let pid = build_id.pid.filter(|_| has_pid);
        BuildIdEntry::new(header.misc, BuildId { pid, ..build_id.0 })
    });
    recording.add_build_ids(entries)?;
    Ok(())
}

impl Stage for BuildIds {
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn requirements(&self) -> Requirements {
        let reads_ahead = match self.place {
            Storage::Table => ReadsAhead::IntoPipe,
            Storage::Mmap2 if self.select == Select::Hit => ReadsAhead::Always,
            Storage::Mmap2 => ReadsAhead::Never,
        };
        Requirements {
            events_first: true,
            all_records: true,
            reads_ahead,
            ..Requirements::none()
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        let Some(mut reader) = source.reopen()? else {
            return Ok(());
        };
        let mut watch = BuildIdWatch::new(self.select, recording, reader.container_layout())?;
        while let Some((chunk, _)) = reader.next_chunk()? {
            watch.chunk(&chunk, source.limits())?;
        }
        // A pipe may contain the metadata about its machine only at its end.
        self.resolver.learn(watch.model());
        self.ahead = Some(watch.finish(source.limits())?);
        Ok(())
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        self.is_pipe = matches!(container_layout, ContainerLayout::Pipe(_));
        self.endian = recording.endian;
        match (self.place, self.ahead.take()) {
            (Storage::Table, Some(seen)) => {
                let entries = self.entries(&seen)?;
                match self.is_pipe {
                    true => self.first = entries,
                    false => add(recording, entries)?,
                }
            }
            (_, ahead) => {
                self.names = ahead.as_ref().map(SeenObjects::names);
                if self.names.is_none() {
                    self.resolver.learn(recording);
                }
                self.watch = Some(BuildIdWatch::new(self.select, recording, container_layout)?);
            }
        }
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        let is_rewritten =
            self.place == Storage::Mmap2 && (kind == RecordType::MMAP2 || kind.is_compressed());
        !self.first.is_empty() || (is_rewritten && self.watch.is_some())
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        match (chunk, &mut self.watch) {
            (Chunk::Records(_), Some(watch)) if self.place == Storage::Table => {
                watch.chunk(chunk, next.limits())?;
                if self.first.is_empty() {
                    return next.chunk(chunk);
                }
            }
            (Chunk::Payload(_), Some(watch)) => watch.chunk(chunk, next.limits())?,
            _ => {}
        }
        match chunk {
            Chunk::Records(batch) => each_part(self, batch, next),
            Chunk::Payload(_) | Chunk::Unreadable(_) => next.chunk(chunk),
        }
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            self.send(first, next)?;
        }
        // After reading ahead, the records need not be processed again.
        let Some(mut watch) = self.watch.take() else {
            return next.record(record);
        };
        let rewritten = match self.place {
            Storage::Table => {
                watch.chunk(&Chunk::Records(RecordBatch::of(record)), next.limits())?;
                None
            }
            Storage::Mmap2 if record.kind.is_compressed() => {
                let what = "the MMAP2 records are compressed: build IDs cannot be added to them";
                return Err(Error::refused_without(what, Step::Decompress));
            }
            Storage::Mmap2 => self.rewrite(record, watch.events())?,
        };
        self.watch = Some(watch);
        match rewritten {
            Some(bytes) => next.record(&RawRecord {
                offset: record.offset,
                ..RawRecord::first(&bytes, record.endian, 0)?
            }),
            None => next.record(record),
        }
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        let first = std::mem::take(&mut self.first);
        self.send(first, next)?;
        let Some(watch) = self.watch.take().filter(|_| self.place == Storage::Table) else {
            return Ok(());
        };
        self.resolver.learn(watch.model());
        let entries = self.entries(&watch.finish(next.limits())?)?;
        // The stage that converts a pipe to a file moves the records to the section.
        if self.is_pipe {
            self.send(entries, next)
        } else {
            add(recording, entries)
        }
    }

    fn notes(&self) -> Vec<String> {
        self.notes.all()
    }
}
