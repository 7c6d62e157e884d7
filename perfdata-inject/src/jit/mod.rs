//! Adds the code that just-in-time compilers generated: images of its functions, and their
//! mappings, from the jitdumps that the recording names.
//!
//! A runtime maps its dump, so that the recording contains the name of the file. perf inject --jit
//! writes all mappings of a dump where that record was, and leaves sorting to the reader. This
//! stage writes each mapping before the first record of the stream that is not older. A reader
//! that sorts the records of one round at a time, as perf does, then finds it in time: the mapping
//! is not newer than a record of its own round, and everything after it in the stream that is older
//! than a previous round was there before.

mod clock;
mod dump;
mod find;
pub(super) mod folder;
pub(super) mod image;
pub(super) mod map;
mod queue;
pub(super) mod ranges;
pub(super) mod target;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::read::Limits;
use perfdata_core::record::{
    Body, CpuMode, Mmap2, RawRecord, Record, RecordType, SampleId, is_known_time,
};
use perfdata_core::wire::Text;
use perfdata_core::{DecodeContext, Events, Recording};

use crate::build_ids::Sysroot;
use crate::notes::Notes;
use clock::Clock;
pub use clock::JitClock;
use dump::{Copies, Dump, Targets};
use find::{Folders, Found, Marker, Missing};
pub use folder::Images;
use folder::{ImageFolders, image_name};
use map::Map;
use perfdata_convert::count::number_of;
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{Link, ReadsAhead, Requirements, Stage};
use queue::{Mapping, Queue};
use target::target_of;

/// `PROT_READ | PROT_EXEC`.
const PROT: u32 = 5;
/// `MAP_PRIVATE`.
pub(super) const FLAGS: u32 = 2;

/// Maximum number of dumps whose clocks are checked before anything is written.
const MOST_CHECKED: usize = 100;

/// Adds images and mappings of generated code.
///
/// ```
/// use perfdata_convert::io::Output;
/// use perfdata_convert::pipeline::Conversion;
/// use perfdata_inject::jit::{Images, Jit};
/// # use std::path::Path;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let input = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-default.data");
/// # let (input, output) = (Path::new(input), folder.path().join("perf.jit.data"));
/// let jit = Jit::new(Images::In(output.with_extension("data.jit")))
///     // Where to look for jit-PID.dump, if the recording comes from another machine.
///     .with_dumps("dumps".into());
/// let summary = Conversion::new(vec![Box::new(jit)])
///     .run(input, Output::create(&output, input, false)?)?;
/// summary.notes.iter().for_each(|note| println!("{note}"));
/// # assert_eq!(summary.notes.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Jit {
    folders: Folders,
    images: ImageFolders,
    clock: Clock,
    /// Whether records have times.
    is_timed: bool,
    dumps: Vec<Dump>,
    /// The dumps of each process.
    by_pid: HashMap<u32, Vec<usize>>,
    /// Processes that were looked for in the folder of dumps.
    asked: HashSet<u32>,
    /// Processes and names of all dumps, also of those that could not be read.
    known: HashSet<(u32, Vec<u8>)>,
    /// The size of these names in bytes.
    known_size: u64,
    /// Dumps whose headers are not written yet.
    waiting: Vec<(Marker, Option<SampleId>)>,
    queue: Queue,
    copies: Copies,
    notes: Notes,
    unread: Vec<Unread>,
    /// Numbers of markers that belong to another process, and of dropped mappings.
    inherited: u64,
    dropped: u64,
}

/// Dumps that cannot be read for one reason.
#[derive(Debug)]
struct Unread {
    /// The process of the first one, its name in the recording, and its path.
    pid: u32,
    name: String,
    path: String,
    why: String,
    /// Number of further ones.
    others: u64,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unread {
            pid,
            name,
            path,
            why,
            ..
        } = self;
        if self.others == 0 {
            return write!(
                f,
                "no generated code of process {pid}: {name} cannot be read: {path}: {why}"
            );
        }
        let others = number_of(self.others, "other");
        write!(
            f,
            "no generated code of process {pid} and {others}: {name} cannot be read: {path}: {why}, \
             and so those of the others"
        )
    }
}

impl Jit {
    /// Returns a stage that writes images to `images`.
    pub fn new(images: Images) -> Self {
        Jit {
            folders: Folders::default(),
            images: ImageFolders::new(images),
            clock: Clock::default(),
            is_timed: false,
            dumps: Vec::new(),
            by_pid: HashMap::new(),
            asked: HashSet::new(),
            known: HashSet::new(),
            known_size: 0,
            waiting: Vec::new(),
            queue: Queue::default(),
            copies: Copies::new(),
            notes: Notes::default(),
            unread: Vec::new(),
            inherited: 0,
            dropped: 0,
        }
    }

    /// Returns the stage, which looks for dumps in this file system first.
    #[must_use]
    pub fn with_sysroot(mut self, sysroot: Sysroot) -> Self {
        self.folders.sysroot = sysroot;
        self
    }

    /// Returns the stage, which also looks for dumps in this folder, by their names without the
    /// recorded folder, and for those of processes that map none.
    #[must_use]
    pub fn with_dumps(mut self, folder: PathBuf) -> Self {
        self.folders.dumps = Some(folder);
        self
    }

    /// Returns the stage, which adds `offset` nanoseconds to the times of all dumps, and does not
    /// check that they are of the clock of the recording.
    #[must_use]
    pub fn with_clock_offset(mut self, offset: i64) -> Self {
        self.clock.set_offset(offset);
        self
    }

    /// Returns the stage, which takes the times of all dumps for those of this clock, whatever their
    /// headers say.
    #[must_use]
    pub fn with_clock(mut self, clock: JitClock) -> Self {
        self.clock.set_clock_of_dumps(clock);
        self
    }

    /// Returns the stage, which writes the build IDs of images to the mapping records instead of
    /// inodes if `adds` is set. Otherwise, it does so if the recording contains such records.
    #[must_use]
    pub fn with_build_ids(mut self, adds: bool) -> Self {
        self.images.set_build_ids(adds);
        self
    }

    /// Returns the stage with `syncs`, which determines whether images survive a crash of the
    /// machine. The default is true.
    #[must_use]
    pub fn synced(mut self, syncs: bool) -> Self {
        self.images.set_synced(syncs);
        self
    }

    /// Processes the mapping of a dump. Returns whether the dump was read.
    fn announce(
        &mut self,
        marker: Marker,
        trailer: Option<SampleId>,
        next: &Link<'_>,
    ) -> Result<bool> {
        // The dump in the folder of dumps may be known without its mapping.
        let name = match self.folders.contains(&marker) {
            true => marker.base(),
            false => &marker.name,
        };
        let key = (marker.pid, name.to_vec());
        if self.known.contains(&key) {
            let mut dumps = self.by_pid.get(&marker.pid).into_iter().flatten();
            return Ok(dumps.next().is_some());
        }
        self.known_size += marker.name.len() as u64 + 64;
        next.limits()
            .check_metadata("names of jitdumps", self.known_size)?;
        self.known.insert(key);
        self.open(marker, trailer, next.recording(), next.limits())
    }

    /// Looks for the dump of a process in the folder of dumps when its first mapping is seen. With a
    /// sysroot, the dump that the process maps comes first, and it is not known yet.
    fn ask(&mut self, pid: u32, trailer: Option<SampleId>, next: &Link<'_>) -> Result<()> {
        let has_folder = self.folders.dumps.is_some() && self.folders.sysroot.is_own();
        if !has_folder || !self.asked.insert(pid) {
            return Ok(());
        }
        self.known_size += size_of::<u64>() as u64;
        next.limits()
            .check_metadata("names of jitdumps", self.known_size)?;
        match self.folders.dump_of(pid) {
            Some(marker) => self.announce(marker, trailer, next).map(drop),
            None => Ok(()),
        }
    }

    /// Opens the dump of `marker`, and reads what it contains. Returns whether it was read.
    fn open(
        &mut self,
        marker: Marker,
        trailer: Option<SampleId>,
        recording: &Recording,
        limits: Limits,
    ) -> Result<bool> {
        let found = match self.folders.find(&marker, limits) {
            Ok(found) => found,
            Err(Missing::Empty) => {
                self.waiting.push((marker, trailer));
                return Ok(false);
            }
            Err(Missing::Bad(path, why)) => {
                self.leave(Unread {
                    pid: marker.pid,
                    name: marker.shown(),
                    path,
                    why,
                    others: 0,
                });
                return Ok(false);
            }
        };
        if self.is_of_another(&marker, &found) {
            self.inherited += 1;
            return Ok(false);
        }
        let times = match self.clock.times(found.reader.header()) {
            Ok(times) => times,
            Err(why) => {
                let pid = marker.pid;
                let path = found.path.display();
                self.notes
                    .add(format!("no generated code of process {pid}: {path}: {why}"));
                return Ok(false);
            }
        };
        let folder = self.images.beside(&found.path)?;
        let machine = found.reader.header().elf_mach;
        let target = target_of(machine, found.reader.endian(), recording);
        let number = self.dumps.len();
        let mut dump = Dump::new(
            (number as u32, marker.pid),
            (found.path, folder),
            found.reader,
            found.names_process,
            target,
            times,
            trailer,
        );
        if dump.may_be_shifted()
            && let Ok(again) = self.folders.find(&marker, limits)
        {
            dump.check_shift(again.reader);
        }
        self.by_pid.entry(marker.pid).or_default().push(number);
        self.dumps.push(dump);
        self.read(limits)?;
        Ok(true)
    }

    /// Notes a dump that cannot be read. Dumps with the same reason, such as a version that is not known,
    /// are one note.
    fn leave(&mut self, dump: Unread) {
        let is_full = self.unread.len() >= Notes::MOST;
        let same = self.unread.iter_mut().find(|known| known.why == dump.why);
        match same {
            Some(known) => known.others = known.others.saturating_add(1),
            None if is_full => self.notes.add(dump.to_string()),
            None => self.unread.push(dump),
        }
    }

    /// Returns whether a dump belongs to another process, from which the process of `marker`
    /// inherited the mapping. A process in a PID namespace has another number there.
    fn is_of_another(&self, marker: &Marker, found: &Found) -> bool {
        let is_claimed = |dump: &Dump| {
            dump.path == found.path
                && dump.pid != marker.pid
                && (dump.names_process || !found.is_same_file)
        };
        !found.names_process && self.dumps.iter().any(is_claimed)
    }

    /// Reads what has been added to the dumps.
    fn read(&mut self, limits: Limits) -> Result<()> {
        let Jit {
            dumps,
            images,
            queue,
            copies,
            ..
        } = self;
        let mut to = Targets {
            folders: images,
            queue,
            copies,
            limits,
        };
        dumps.iter_mut().try_for_each(|dump| dump.read(&mut to))
    }

    /// Reads what has been added to the dumps, also to those that were empty.
    fn read_all(&mut self, recording: &Recording, limits: Limits) -> Result<()> {
        for (marker, trailer) in std::mem::take(&mut self.waiting) {
            self.open(marker, trailer, recording, limits)?;
        }
        self.read(limits)
    }

    /// Writes the mappings that are not newer than `time`.
    fn write(&mut self, time: u64, next: &mut Link<'_>) -> Result<()> {
        while let Some((time, mapping)) = self.queue.pop(time) {
            if let Some(record) = self.mapping_record(time, &mapping) {
                next.write(&record)?;
            }
        }
        Ok(())
    }

    fn mapping_record(&self, time: u64, mapping: &Mapping) -> Option<Record> {
        let dump = self.dumps.get(mapping.dump as usize)?;
        let function = dump.functions.get(mapping.function as usize)?;
        let name = image_name(dump.pid, function.index, function.copy);
        let path = dump.folder.join(name);
        let (misc, inode, build_id) = function.identity.in_mmap2();
        let body = Body::Mmap2(Mmap2 {
            pid: dump.pid,
            tid: mapping.tid,
            addr: mapping.start,
            len: mapping.len,
            pgoff: dump.target.text_offset(),
            inode,
            build_id,
            prot: Some(PROT),
            flags: Some(FLAGS),
            filename: Text::padded(path.as_os_str().as_encoded_bytes(), 8),
        });
        let record = Record::new(body).with_misc(CpuMode::USER.0 | misc);
        let Some(mut trailer) = dump.trailer.clone() else {
            return Some(record);
        };
        if let Some(task) = &mut trailer.tid {
            (task.pid, task.tid) = (dump.pid, mapping.tid);
        }
        if let Some(own) = &mut trailer.time {
            *own = time;
        }
        Some(record.with_sample_id(trailer))
    }

    /// Returns whether a mapping hides generated code: memory of a process whose dump was read,
    /// without a file, at the addresses of functions. The kernel writes it when a runtime changes
    /// the protection of its memory, which contains the functions before and after.
    fn hides_code(&self, map: &Map<'_>) -> bool {
        map.is_memory
            && self.by_pid.get(&map.pid).is_some_and(|dumps| {
                dumps
                    .iter()
                    .filter_map(|&dump| self.dumps.get(dump))
                    .any(|dump| dump.ranges.overlaps(map.start, map.end))
            })
    }

    fn see_time_conv(&mut self, raw: &RawRecord<'_>) {
        let layout = DecodeContext::default();
        // A record that cannot be decoded is as good as none.
        if let Ok(Record {
            body: Body::TimeConv(conv),
            ..
        }) = Record::decode(raw, &layout)
        {
            self.clock.convert_with(conv);
        }
    }
}

impl Stage for Jit {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            all_records: true,
            reads_ahead: ReadsAhead::IfSeekable,
            ..Requirements::none()
        }
    }

    /// Refuses a recording of another clock before anything is written.
    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        self.clock.learn(&recording.events);
        if self.clock.suits_nanoseconds() {
            return Ok(());
        }
        let limits = source.limits();
        let mut seen = HashSet::new();
        let mut refused = None;
        let is_needed = |kind| {
            matches!(
                kind,
                RecordType::TIME_CONV | RecordType::MMAP | RecordType::MMAP2
            )
        };
        source.each_record_of(recording, is_needed, |raw, now| {
            match raw.kind {
                RecordType::TIME_CONV => self.see_time_conv(raw),
                RecordType::MMAP | RecordType::MMAP2 if refused.is_none() => {
                    let record = Record::decode(raw, &now.events.layout_of(raw))?;
                    let Some(map) = Map::of(&record) else {
                        return Ok(());
                    };
                    if !map.is_host {
                        return Ok(());
                    }
                    let marker = match Marker::is_dump(map.name) {
                        true => map.marker(),
                        false if self.folders.sysroot.is_own() && self.asked.insert(map.pid) => {
                            let Some(marker) = self.folders.dump_of(map.pid) else {
                                return Ok(());
                            };
                            marker
                        }
                        false => return Ok(()),
                    };
                    if seen.len() < MOST_CHECKED
                        && seen.insert(marker.clone())
                        && let Ok(found) = self.folders.find(&marker, limits)
                        && let Err(why) = self.clock.times(found.reader.header())
                    {
                        refused = Some(format!("{}: {why}", found.path.display()));
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        self.asked.clear();
        match refused {
            Some(why) => Err(Error::Refused(why).with_step(Step::JitClockOffset)),
            None => Ok(()),
        }
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        self.clock.learn(&recording.events);
        self.images.see_events(&recording.events);
        self.is_timed = has_times(&recording.events);
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        let is_read = [RecordType::MMAP, RecordType::MMAP2, RecordType::TIME_CONV].contains(&kind);
        let reads = !self.dumps.is_empty() || !self.waiting.is_empty();
        is_read
            || kind == RecordType::FINISHED_ROUND && reads
            || kind.is_kernel() && !self.queue.is_empty()
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let recording = next.recording();
        if !self.queue.is_empty()
            && let Some(time) = recording
                .events
                .time(raw)
                .filter(|&time| is_known_time(time))
        {
            self.write(time, next)?;
        }
        match raw.kind {
            // A runtime that still runs has added to its dump.
            RecordType::FINISHED_ROUND => self.read_all(recording, next.limits())?,
            RecordType::TIME_CONV => self.see_time_conv(raw),
            RecordType::MMAP | RecordType::MMAP2 => {
                let record = Record::decode(raw, &recording.events.layout_of(raw))?;
                self.images.see_mapping(&record);
                let Some(map) = Map::of(&record).filter(|map| map.is_host) else {
                    return next.record(raw);
                };
                let is_dump = Marker::is_dump(map.name);
                if !is_dump {
                    self.ask(map.pid, record.sample_id.clone(), next)?;
                }
                if is_dump {
                    let marker = map.marker();
                    if self.announce(marker, record.sample_id, next)? {
                        // Without times, a reader processes records in the order of the stream.
                        return if self.is_timed {
                            Ok(())
                        } else {
                            self.write(u64::MAX, next)
                        };
                    }
                } else if self.hides_code(&map) {
                    self.dropped += 1;
                    return Ok(());
                }
            }
            _ => {}
        }
        next.record(raw)
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.read_all(recording, next.limits())?;
        self.write(u64::MAX, next)?;
        for (marker, _) in std::mem::take(&mut self.waiting) {
            let (name, pid) = (marker.shown(), marker.pid);
            self.notes.add(format!(
                "no generated code of process {pid}: {name} ends inside its header"
            ));
        }
        self.images.keep()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Notes = self.unread.iter().map(Unread::to_string).collect();
        notes.append(self.notes.clone());
        notes.append(self.dumps.iter().flat_map(Dump::notes).collect());
        let mut notes = notes.all("jitdumps");
        if self.inherited > 0 {
            notes.push(format!(
                "{} of jitdumps not used: the process inherited the dump of another one",
                number_of(self.inherited, "mapping")
            ));
        }
        if self.dropped > 0 {
            notes.push(format!(
                "{} of memory dropped, which would hide generated code",
                number_of(self.dropped, "mapping")
            ));
        }
        if notes.is_empty() {
            notes.push("the recording names no jitdump (jit-PID.dump): no code was added".into());
        }
        notes
    }
}

/// Returns whether records have times, by which readers sort them.
fn has_times(events: &Events) -> bool {
    use perfdata_core::attr::SampleType;
    let mut events = events.iter();
    events.any(|event| event.attr.sample_type.has(SampleType::TIME))
}
