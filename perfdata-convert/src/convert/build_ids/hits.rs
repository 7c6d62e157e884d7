//! Which objects a recording's samples hit, or its processes map: what its records say of that.

use perfdata_core::read::{Decompressor, Limits};
use perfdata_core::record::{
    Body, CpuMode, MISC_COMM_EXEC, MISC_FORK_EXEC, MISC_MMAP_DATA, Mmap, Mmap2, RawRecord, Record, RecordType, Task,
};
use perfdata_core::{Events, Recording};

use super::follow::Follower;
use super::maps::{Change, Owner};
use super::moments::{Moment, Moments};
use super::objects::{Id, Kind, Machine, Object, Objects, classify};
use crate::error::Result;

/// Which objects get a build id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Select {
    /// Those that a sample falls into, by its instruction pointer or its callchain
    #[default]
    Hit,
    /// All that are mapped to be executed
    All,
}

/// Watches the records of a stream go by, those in compressed records included.
#[derive(Debug)]
pub struct Hits {
    select: Select,
    limits: Limits,
    objects: Objects,
    /// The last part of the stream.
    moments: Moments,
    follower: Follower,
    decompressor: Option<Decompressor>,
    /// Where the last record stands.
    last: u64,
}

impl Hits {
    /// Looks for the objects that `select` says, as far as `limits` go.
    pub fn new(select: Select, limits: Limits) -> Self {
        Hits {
            select,
            limits,
            objects: Objects::default(),
            moments: Moments::default(),
            follower: Follower::default(),
            decompressor: None,
            last: 0,
        }
    }

    /// Looks at a record of `recording`, whatever it is.
    ///
    /// # Errors
    /// A compressed record that cannot be decompressed, a mapping that cannot be read.
    pub fn see(&mut self, record: &RawRecord<'_>, recording: &Recording, events: &Events) -> Result<()> {
        match record.kind {
            RecordType::SAMPLE if self.select == Select::Hit => self.sample(record, events),
            RecordType::CALLCHAIN_DEFERRED if self.select == Select::Hit => self.deferred(record, events)?,
            RecordType::FINISHED_ROUND => self.moments.push(None, Moment::EndOfRound),
            RecordType::MMAP | RecordType::MMAP2 | RecordType::COMM | RecordType::FORK | RecordType::EXIT => {
                self.change(record, events)?;
            }
            RecordType::KSYMBOL if self.select == Select::Hit => self.change(record, events)?,
            RecordType::COMPRESSED | RecordType::COMPRESSED2 => {
                let mut inner = match self.decompressor.take() {
                    Some(decompressor) => decompressor,
                    None => Decompressor::of(recording)?,
                };
                inner.push(record)?;
                while let Some(record) = inner.next()? {
                    self.see(&record, recording, events)?;
                }
                self.decompressor = Some(inner);
            }
            _ => {}
        }
        self.last = record.offset;
        if self.moments.is_enough() {
            self.check_names()?;
            let moments = std::mem::take(&mut self.moments);
            self.moments = self.follower.take(moments, &self.limits).map_err(|e| e.at(self.last))?;
        }
        Ok(())
    }

    /// The objects, those first seen first.
    ///
    /// # Errors
    /// More is mapped than the limits grant.
    pub fn finish(self) -> Result<Vec<Object>> {
        self.check_names()?;
        let wanted = self.follower.finish(self.moments, &self.limits).map_err(|e| e.at(self.last))?;
        Ok(self.objects.into_vec(&wanted))
    }

    fn check_names(&self) -> Result<()> {
        let held = self.objects.held() as u64;
        Ok(self.limits.check_metadata("names of what is mapped", held).map_err(|e| e.at(self.last))?)
    }

    fn sample(&mut self, record: &RawRecord<'_>, events: &Events) {
        let Some(sample) = events.glimpse(record) else { return };
        let place = (CpuMode::of(record.misc), sample.tid().map_or(0, |tid| tid.pid));
        self.moments.push_sample(at(sample.time()), place, sample.ip(), sample.callchain());
    }

    /// The user part of a callchain that came later.
    fn deferred(&mut self, record: &RawRecord<'_>, events: &Events) -> Result<()> {
        let decoded = Record::decode(record, &events.layout_of(record))?;
        let Body::CallchainDeferred(chain) = decoded.body else { return Ok(()) };
        let Some(id) = decoded.sample_id else { return Ok(()) };
        let place = (CpuMode::USER, id.tid.map_or(0, |tid| tid.pid));
        self.moments.push_sample(at(id.time), place, None, chain.callchain.iter().copied());
        Ok(())
    }

    /// A record that may change what is mapped.
    fn change(&mut self, record: &RawRecord<'_>, events: &Events) -> Result<()> {
        let mode = CpuMode::of(record.misc);
        let decoded = Record::decode(record, &events.layout_of(record))?;
        let is_guest = matches!(mode, CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER);
        let process = |pid: u32| if is_guest { Owner::GuestProcess(pid) } else { Owner::Process(pid) };
        let change = match decoded.body {
            Body::Mmap(map) => self.map(Mapping::from(map), record.misc),
            Body::Mmap2(map) => self.map(Mapping::from(map), record.misc),
            Body::Comm(comm) if record.misc & MISC_COMM_EXEC != 0 => Some(Change::Exec(process(comm.pid))),
            // Threads share their process's address space; perf synthesizes FORK for processes with mappings of
            // their own, and marks it.
            Body::Fork(Task { pid, ppid, .. }) if pid != ppid && record.misc & MISC_FORK_EXEC == 0 => {
                Some(Change::Fork { child: process(pid), parent: process(ppid) })
            }
            Body::Exit(Task { pid, tid, .. }) if pid == tid => Some(Change::Exit(process(pid))),
            Body::Ksymbol(symbol) => Some(Change::Map {
                owner: Owner::Kernel(Machine::HOST),
                range: (symbol.addr, symbol.addr.saturating_add(u64::from(symbol.len))),
                object: None,
            }),
            _ => None,
        };
        if let Some(change) = change {
            let time = decoded.sample_id.and_then(|id| at(id.time));
            self.moments.push(time, Moment::Change(change));
        }
        Ok(())
    }

    fn map(&mut self, map: Mapping, misc: u16) -> Option<Change> {
        let mode = CpuMode::of(misc);
        let executable = misc & MISC_MMAP_DATA == 0;
        let owner = Owner::of(mode, map.pid)?;
        let object = object_of(&map, mode).filter(|_| executable).map(|object| self.objects.intern(object));
        // perf lists what the kernel maps into every process whether a sample hits it or not.
        let kind = classify(&map.name, mode, map.end()).map(|(kind, _)| kind);
        let is_vdso = matches!(kind, Some(Kind::Vdso | Kind::Vdso32));
        if let Some(object) = object.filter(|_| is_vdso || self.select == Select::All) {
            self.objects.want(object);
        }
        Some(Change::Map { owner, range: (map.addr, map.end()), object })
    }
}

/// What the two records of a mapping say.
pub struct Mapping {
    pid: u32,
    addr: u64,
    len: u64,
    name: Vec<u8>,
    id: Option<Id>,
    inode: Option<perfdata_core::record::Inode>,
}

impl Mapping {
    /// The address behind it.
    fn end(&self) -> u64 {
        if self.len == 0 { u64::MAX } else { self.addr.saturating_add(self.len) }
    }
}

impl From<Mmap> for Mapping {
    fn from(map: Mmap) -> Self {
        let Mmap { pid, addr, len, filename, .. } = map;
        Mapping { pid, addr, len, name: filename.text().to_vec(), id: None, inode: None }
    }
}

impl From<Mmap2> for Mapping {
    fn from(map: Mmap2) -> Self {
        let Mmap2 { pid, addr, len, filename, inode, build_id, .. } = map;
        let id = build_id.and_then(|id| Id::new(id.build_id.get(..usize::from(id.build_id_size))?));
        Mapping { pid, addr, len, name: filename.text().to_vec(), id, inode }
    }
}

/// The object that a record in `mode` maps, if it is one.
pub fn object_of(map: &Mapping, mode: CpuMode) -> Option<Object> {
    let (kind, name) = classify(&map.name, mode, map.end())?;
    let machine = match Owner::of(mode, map.pid)? {
        Owner::Kernel(machine) => machine,
        Owner::Process(_) => Machine::HOST,
        Owner::GuestProcess(_) => Machine::DEFAULT_GUEST,
    };
    let inode = map.inode.clone().filter(|inode| kind == Kind::File && inode.ino != 0);
    Some(Object { machine, kind, name: name.to_vec(), id: map.id, inode, wanted: false })
}

/// The time of a record; perf's own records of what was there before have none, or 0.
fn at(time: Option<u64>) -> Option<u64> {
    time.filter(|&time| time != 0 && time != u64::MAX)
}
