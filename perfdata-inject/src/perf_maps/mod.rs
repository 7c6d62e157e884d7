//! Adds the names in perf maps, which many just-in-time compilers write: `/tmp/perf-PID.map`
//! (tools/perf/Documentation/jit-interface.txt).
//!
//! perf reads such a file when it reports, on the machine that reports, for executable memory that
//! is no file. The recording does not contain the names. This stage writes them to ELF images, and
//! makes the mappings of this memory mappings of the images.

mod find;
mod functions;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::ElfMachine;
use perfdata_core::read::Limits;
use perfdata_core::record::{Body, MISC_MMAP_BUILD_ID, RawRecord, Record, RecordType};
use perfdata_core::wire::Text;
use perfdata_symbols::Reason;
use perfdata_symbols::machine::is_this_machine;

use super::build_ids::Sysroot;
use super::jit::folder::{Identity, ImageFolders};
use super::jit::image::{SymbolImage, Target};
use super::jit::ranges::Ranges;
use super::jit::target::target_of;
use super::jit::{FLAGS, Images};
use super::memory::{Memory, is_mapping};
use super::notes::Notes;
use find::PerfMapFolders;
use functions::Functions;
use perfdata_convert::count::number_of;
use perfdata_convert::error::Result;
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{Link, ReadsAhead, Requirements, Stage};

/// Approximate memory for a range of addresses in bytes.
const RANGE: u64 = 64;

/// Maximum number of processes in a note.
const MOST_SHOWN: usize = 10;

/// Replaces memory with generated code by images with the names in perf maps.
///
/// ```
/// use perfdata_convert::io::Output;
/// use perfdata_convert::pipeline::Conversion;
/// use perfdata_inject::jit::Images;
/// use perfdata_inject::perf_maps::PerfMaps;
/// # use std::path::Path;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let input = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-default.data");
/// # let (input, output) = (Path::new(input), folder.path().join("perf.named.data"));
/// let maps = PerfMaps::new(Images::In(output.with_extension("data.jit")))
///     // Where to look for perf-PID.map, if the recording comes from another machine.
///     .with_maps("maps".into());
/// let summary = Conversion::new(vec![Box::new(maps)])
///     .run(input, Output::create(&output, input, false)?)?;
/// summary.notes.iter().for_each(|note| println!("{note}"));
/// # assert_eq!(summary.notes.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PerfMaps {
    places: PerfMapFolders,
    images: ImageFolders,
    /// The executable memory of each process that is no file, over the whole recording.
    memory: BTreeMap<u32, Ranges>,
    /// The number of ranges in it.
    ranges: u64,
    /// The images of each process whose perf map was looked for, by their first addresses; `None`
    /// if there is none.
    made: HashMap<u32, Option<BTreeMap<u64, Made>>>,
    /// Whether the recording was made on this machine, since the first perf map.
    is_own: Option<bool>,
    notes: Notes,
    /// The processes without a perf map for memory that perf looks up in it.
    missing: BTreeSet<u32>,
}

/// An image.
#[derive(Debug)]
struct Made {
    /// The address after the last one.
    end: u64,
    path: PathBuf,
    identity: Identity,
}

impl PerfMaps {
    /// Returns a stage that writes images to `images`.
    pub fn new(images: Images) -> Self {
        PerfMaps {
            places: PerfMapFolders::default(),
            images: ImageFolders::new(images),
            memory: BTreeMap::new(),
            ranges: 0,
            made: HashMap::new(),
            is_own: None,
            notes: Notes::default(),
            missing: BTreeSet::new(),
        }
    }

    /// Returns the stage, which looks for perf maps in this file system instead of that of this
    /// machine.
    #[must_use]
    pub fn with_sysroot(mut self, sysroot: Sysroot) -> Self {
        self.places.sysroot = sysroot;
        self
    }

    /// Returns the stage, which looks for perf maps in this folder before the one of the sysroot,
    /// and not in that of this machine.
    #[must_use]
    pub fn with_maps(mut self, folder: PathBuf) -> Self {
        self.places.maps = Some(folder);
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

    /// Adds memory of a process.
    fn add(&mut self, memory: &Memory, limits: Limits) -> Result<()> {
        let ranges = self.memory.entry(memory.pid).or_default();
        let before = ranges.len();
        ranges.add(memory.start, memory.end);
        // A process needs memory, too.
        let new = u64::from(before == 0) + ranges.len() as u64;
        self.ranges = (self.ranges + new).saturating_sub(before as u64);
        let held = self.ranges.saturating_mul(RANGE);
        Ok(limits.check_metadata("memory of processes", held)?)
    }

    /// Writes the images of process `pid`, and returns them by their first addresses; `None` if it
    /// has no perf map.
    fn make(
        &mut self,
        pid: u32,
        recording: &Recording,
        limits: Limits,
    ) -> Result<Option<BTreeMap<u64, Made>>> {
        let mut made = BTreeMap::new();
        if self.places.is_own()
            && !*self
                .is_own
                .get_or_insert_with(|| is_this_machine(recording))
        {
            return Ok(None);
        }
        let (path, text) = match self.places.find(pid) {
            Ok(found) => found,
            Err(Reason::NoPerfMap) => return Ok(None),
            Err(why) => {
                self.notes.add(format!("no names of process {pid}: {why}"));
                return Ok(Some(made));
            }
        };
        let functions = match Functions::of(&text, limits) {
            Ok(functions) => functions,
            Err(why) => {
                let path = path.display();
                self.notes
                    .add(format!("no names of process {pid}: {path}: {why}"));
                return Ok(Some(made));
            }
        };
        let shown = path.display();
        let target = target_of(ElfMachine::NONE, recording.endian, recording);
        let mut names = 0;
        for (start, end) in self
            .memory
            .get(&pid)
            .iter()
            .flat_map(|memory| memory.iter())
        {
            let symbols = functions.inside(start, end);
            if symbols.is_empty() {
                continue;
            }
            let image = SymbolImage {
                target,
                size: end - start,
                symbols: &symbols,
            };
            let written = match fits(target, start, end).then(|| image.write()).flatten() {
                Some(written) => written,
                None => {
                    let what = format!(
                        "{shown}: no names from {start:#x} to {end:#x}: too large for an ELF file of this machine"
                    );
                    self.notes.add(what);
                    continue;
                }
            };
            let folder = self.images.beside(&path)?;
            let path = folder.join(format!("perf-{pid}-{start:x}.so"));
            let identity = self.images.write(&path, &written)?;
            names += symbols.len() as u64;
            made.insert(
                start,
                Made {
                    end,
                    path,
                    identity,
                },
            );
        }
        self.notes.add(format!(
            "{shown}: {} of process {pid}",
            number_of(names, "symbol")
        ));
        if functions.skipped > 0 {
            self.notes.add(format!(
                "{shown}: skipped {} without START SIZE NAME",
                number_of(functions.skipped, "line")
            ));
        }
        Ok(Some(made))
    }

    /// Returns a record that maps an image instead of the memory in `record`; `None` if there is no
    /// image.
    fn mapped(&self, memory: &Memory, record: Record) -> Option<Record> {
        let images = self.made.get(&memory.pid)?.as_ref()?;
        let (start, image) = images.range(..=memory.start).next_back()?;
        if memory.end > image.end {
            return None;
        }
        let offset = memory.start - start;
        let name = Text::padded(image.path.as_os_str().as_encoded_bytes(), 8);
        let mut record = record;
        match &mut record.body {
            Body::Mmap(map) => {
                map.pgoff = offset;
                map.filename = name;
            }
            Body::Mmap2(map) => {
                map.pgoff = offset;
                map.filename = name;
                // Without MAP_HUGETLB, which for perf means memory without a file.
                map.flags = Some(FLAGS);
                let (misc, inode, build_id) = image.identity.in_mmap2();
                (map.inode, map.build_id) = (inode, build_id);
                record.misc = record.misc & !MISC_MMAP_BUILD_ID | misc;
            }
            _ => return None,
        }
        Some(record)
    }
}

/// Returns whether memory is in the address space of a machine.
fn fits(target: Target, start: u64, end: u64) -> bool {
    start <= end && end <= target.max_address().saturating_add(1)
}

impl Stage for PerfMaps {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            all_records: true,
            reads_ahead: ReadsAhead::Always,
            ..Requirements::none()
        }
    }

    /// Collects the memory of the whole recording: each range becomes one image. Perf maps are read
    /// after the end of a stream, when runtimes have written all lines.
    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        let limits = source.limits();
        source.each_record_of(recording, is_mapping, |raw, now| {
            let record = Record::decode(raw, &now.events.layout_of(raw))?;
            if let Some(memory) = Memory::of(&record) {
                self.add(&memory, limits)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        self.images.see_events(&recording.events);
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        is_mapping(kind)
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let recording = next.recording();
        let record = Record::decode(raw, &recording.events.layout_of(raw))?;
        self.images.see_mapping(&record);
        let Some(memory) = Memory::of(&record) else {
            return next.record(raw);
        };
        if !self.made.contains_key(&memory.pid) {
            let made = self.make(memory.pid, recording, next.limits())?;
            self.made.insert(memory.pid, made);
        }
        if memory.is_anonymous && self.made.get(&memory.pid).is_some_and(Option::is_none) {
            self.missing.insert(memory.pid);
        }
        match self.mapped(&memory, record) {
            Some(record) => next.write(&record),
            None => next.record(raw),
        }
    }

    fn finish(&mut self, _: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        self.images.keep()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.all("perf maps");
        if !self.missing.is_empty() {
            let mut shown: Vec<String> = self
                .missing
                .iter()
                .take(MOST_SHOWN)
                .map(u32::to_string)
                .collect();
            if self.missing.len() > MOST_SHOWN {
                shown.push("…".into());
            }
            let processes = if shown.len() == 1 {
                "process"
            } else {
                "processes"
            };
            let why = match self.is_own {
                Some(false) => {
                    ": the recording was not made on this machine; --perf-maps=DIR names a directory with perf maps"
                }
                _ => "",
            };
            notes.push(format!(
                "no perf map of {processes} {}{why}",
                shown.join(", ")
            ));
        }
        if self.missing.is_empty() && self.made.values().all(Option::is_none) {
            notes.push(
                "no perf map was read: no process has executable memory without a file".into(),
            );
        }
        notes
    }
}
