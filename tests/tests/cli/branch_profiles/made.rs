//! Recordings with branch stacks, made of the instructions that a program ran.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use perfdata_core::attr::{Attr, AttrFlags, BranchSampleType, EventType, SampleType};
use perfdata_core::feature::BuildIdEntry;
use perfdata_core::record::{
    Body, BranchEntry, BranchFlags, BranchStack, BuildId, Comm, CpuMode, Inode, MISC_COMM_EXEC,
    Mmap, Mmap2, Record, Sample, SampleId, Tid,
};
use perfdata_core::wire::{List, Text};
use perfdata_core::{Endian as Order, Event, Recording};
use perfdata_symbols::Elf;
use perfdata_tests::told::{end_of_round, write};

/// Number of branches in a sample, and between two samples.
const DEPTH: usize = 32;
const EVERY: usize = 7;

/// Where the processor enters and leaves the kernel.
const KERNEL: (u64, u64) = (0xffff_ffff_8180_0000, 0xffff_ffff_8180_0140);

/// The first address of the kernel's code.
pub const KERNEL_TEXT: u64 = 0xffff_ffff_8100_0000;

/// The name of the kernel's code.
pub const KERNEL_NAME: &[u8] = b"[kernel.kallsyms]_text";

/// How a program is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Whether branches into the kernel and out of it are recorded.
    has_kernel: bool,
    /// How many processes run the program, each at other addresses.
    processes: u32,
    /// Whether another event, without branch stacks, has samples.
    has_other_event: bool,
    /// How many threads of a process take turns.
    threads: u32,
}

impl Variant {
    pub const PLAIN: Variant = Variant {
        has_kernel: false,
        processes: 1,
        has_other_event: false,
        threads: 1,
    };

    pub const ALL: [(&'static str, Variant); 4] = [
        ("plain", Variant::PLAIN),
        (
            "kernel",
            Variant {
                has_kernel: true,
                has_other_event: true,
                ..Variant::PLAIN
            },
        ),
        (
            "processes",
            Variant {
                processes: 2,
                ..Variant::PLAIN
            },
        ),
        (
            "threads",
            Variant {
                threads: 3,
                ..Variant::PLAIN
            },
        ),
    ];
}

/// A file that is mapped: its first address, size, offset, whether it is code, and name.
#[derive(Debug, Clone)]
struct Mapped {
    start: u64,
    len: u64,
    offset: u64,
    is_code: bool,
    path: PathBuf,
}

/// A branch: its source and target, and whether the target was mispredicted.
type Branch = (u64, u64, bool);

/// A program that ran step by step.
#[derive(Debug, Clone)]
pub struct Traced {
    pub name: &'static str,
    maps: Vec<Mapped>,
    ips: Vec<u64>,
    image: Option<KernelImage>,
}

/// A file with code that runs in the kernel.
#[derive(Debug, Clone)]
pub enum KernelImage {
    Kernel(PathBuf),
    Module(PathBuf),
}

impl Traced {
    /// Reads what was written about the program `name` in `folder`.
    pub fn read(folder: &Path, name: &'static str) -> Self {
        let bytes = fs::read(folder.join(format!("{name}.ips"))).expect("addresses");
        let ips = bytes.as_chunks().0.iter().map(|ip| u64::from_le_bytes(*ip));
        let text = fs::read_to_string(folder.join(format!("{name}.ips.maps"))).expect("mappings");
        let maps = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = words.first()?.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            let path = words.get(5).filter(|path| path.starts_with('/'))?;
            Some(Mapped {
                start: number(start)?,
                len: number(end)? - number(start)?,
                offset: number(words[2])?,
                is_code: words[1].contains('x'),
                path: PathBuf::from(path),
            })
        });
        Traced {
            name,
            maps: maps.collect(),
            ips: ips.collect(),
            image: None,
        }
    }

    /// Returns the run of a program that does the same in the kernel.
    pub fn in_kernel(mut self, name: &'static str, image: KernelImage, loaded: u64) -> Self {
        self.name = name;
        self.maps.retain(|map| map.is_code && map.path.is_file());
        let [map] = self.maps.as_mut_slice() else {
            panic!("one object with code: {:?}", self.maps);
        };
        let distance = loaded - map.start;
        self.ips.retain(|&ip| ip - map.start < map.len);
        self.ips.iter_mut().for_each(|ip| *ip += distance);
        map.start = loaded;
        self.image = Some(image);
        self
    }

    /// Returns what the program is in the kernel, if it runs there.
    pub fn image(&self) -> Option<&KernelImage> {
        self.image.as_ref()
    }

    /// Returns the code in the kernel: its name, first address, size, and offset.
    fn kernel_maps(&self, variant: Variant) -> Vec<(&[u8], u64, u64, u64)> {
        let own = self.maps.first().map_or((0, 0), |map| (map.start, map.len));
        let kernel = |(start, len)| (KERNEL_NAME, start, len, start);
        match &self.image {
            Some(KernelImage::Kernel(_)) => vec![kernel(own)],
            Some(KernelImage::Module(path)) => {
                let (start, len) = own;
                vec![
                    kernel((KERNEL_TEXT, 16 << 20)),
                    (path.as_os_str().as_encoded_bytes(), start, len, 0),
                ]
            }
            None if variant.has_kernel => vec![kernel((KERNEL_TEXT, 16 << 20))],
            None => Vec::new(),
        }
    }

    /// Returns all branches, in their order.
    fn branches(&self, has_kernel: bool) -> Vec<Branch> {
        let files: HashMap<&Path, Vec<u8>> = self
            .maps
            .iter()
            .map(|map| (map.path.as_path(), fs::read(&map.path).unwrap_or_default()))
            .collect();
        let mut known: HashMap<u64, (u64, FlowControl)> = HashMap::new();
        let mut decode = |ip: u64| -> (u64, FlowControl) {
            *known.entry(ip).or_insert_with(|| {
                let map = self
                    .maps
                    .iter()
                    .find(|map| (map.start..map.start + map.len).contains(&ip));
                // The code of the vDSO is in no file.
                let Some(map) = map else {
                    return (0, FlowControl::Next);
                };
                let at = usize::try_from(ip - map.start + map.offset).expect("an offset");
                let code = &files[map.path.as_path()][at..];
                let code = &code[..code.len().min(16)];
                let instruction = Decoder::with_ip(64, code, ip, DecoderOptions::NONE).decode();
                (instruction.next_ip(), instruction.flow_control())
            })
        };
        let mut branches: Vec<(u64, u64)> = Vec::new();
        for pair in self.ips.windows(2) {
            let (ip, next) = (pair[0], pair[1]);
            let (after, flow) = decode(ip);
            match flow {
                _ if after == 0 => {}
                FlowControl::Next if next == after || next == ip => {}
                FlowControl::ConditionalBranch if next == after => {}
                FlowControl::Call if next == after => {
                    // A system call.
                    if has_kernel {
                        branches.extend([(ip, KERNEL.0), (KERNEL.1, next)]);
                    }
                }
                _ => branches.push((ip, next)),
            }
        }
        let missed = |at: usize| at.wrapping_mul(2_654_435_761).is_multiple_of(11);
        let branches = branches.into_iter().enumerate();
        branches
            .map(|(at, (from, to))| (from, to, missed(at)))
            .collect()
    }

    /// Returns the samples: the branches of each, newest first.
    fn samples(&self, has_kernel: bool) -> Vec<Vec<Branch>> {
        let all = self.branches(has_kernel);
        let ends = (DEPTH..all.len()).step_by(EVERY);
        let sample = |end: usize| all[end - DEPTH..end].iter().rev().copied().collect();
        ends.map(sample).collect()
    }

    /// Returns how many branches of the samples start or end in an object, and how many of them are
    /// mispredicted.
    pub fn branches_of(&self, variant: Variant, object: &str) -> (u64, u64) {
        let is_in = |address: u64| {
            self.maps.iter().any(|map| {
                let is_it = map.path.file_name().is_some_and(|name| name == object);
                is_it && map.is_code && (map.start..map.start + map.len).contains(&address)
            })
        };
        let samples = self.samples(variant.has_kernel);
        let branches = samples.iter().flatten();
        let own = branches.filter(|(from, to, _)| is_in(*from) || is_in(*to));
        own.fold((0, 0), |(all, missed), &(_, _, is_missed)| {
            (all + 1, missed + u64::from(is_missed))
        })
    }

    /// Writes the recording of a variant.
    pub fn record(&self, variant: Variant, path: &Path) {
        let kernel = self.kernel_maps(variant);
        let flags = AttrFlags::default()
            .with_sample_id_all(true)
            .with_mmap(true)
            .with_mmap2(true)
            .with_comm(true)
            .with_exclude_kernel(kernel.is_empty());
        let parts = [
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::IDENTIFIER,
            SampleType::PERIOD,
        ];
        let sample_type = parts
            .into_iter()
            .fold(SampleType(0), |all, part| all | part);
        let attr = |kind, sample_type| Attr {
            kind,
            flags,
            sample_type,
            size: 96,
            sample_period: 1000,
            config2: Some(0),
            branch_sample_type: Some(BranchSampleType(1 | 1 << 3)),
            sample_regs_user: Some(0),
            sample_stack_user: Some(0),
            clockid: Some(0),
            ..Attr::default()
        };
        let branches = attr(EventType::HARDWARE, sample_type | SampleType::BRANCH_STACK);
        // create_llvm_prof does not read the feature sections that `perf record` writes.
        let mut recording = Recording::new(Order::Little);
        recording.events.push(Event {
            attr: branches,
            ids: vec![7],
        });
        if variant.has_other_event {
            let attr = attr(EventType::SOFTWARE, sample_type);
            let event = Event { attr, ids: vec![8] };
            recording.events.push(event);
        }
        if let Some(KernelImage::Kernel(path)) = &self.image {
            let id = Elf::open(path).expect("an image").build_id();
            let build_id = BuildId {
                pid: Some(-1),
                build_id: id.expect("a build ID").padded().0,
                size: 20,
                filename: Text::padded(b"[kernel.kallsyms]", 8),
                ..BuildId::default()
            };
            let entry = BuildIdEntry::new(CpuMode::KERNEL.0, build_id);
            recording.add_build_ids(entry).expect("a section");
        }
        let mut records = Vec::new();
        let mut time = 1_000_000;
        for (name, start, len, pgoff) in kernel {
            let map = Mmap {
                pid: u32::MAX,
                tid: 0,
                addr: start,
                len,
                pgoff,
                filename: Text::padded(name, 8),
            };
            let trailer = SampleId {
                tid: Some(Tid {
                    pid: u32::MAX,
                    tid: 0,
                }),
                time: Some(0),
                identifier: Some(7),
                ..SampleId::default()
            };
            let record = Record::new(Body::Mmap(map)).with_misc(CpuMode::KERNEL.0);
            records.push(record.with_sample_id(trailer));
        }
        for process in 0..variant.processes {
            let pid = 1000 + process;
            // Only programs that are not position-independent always run at the same addresses.
            let is_movable = self.name != "static";
            let moved = if is_movable {
                u64::from(process) << 16
            } else {
                0
            };
            let task = Tid { pid, tid: pid };
            let trailer = |time| SampleId {
                tid: Some(task),
                time: Some(time),
                identifier: Some(7),
                ..SampleId::default()
            };
            let comm = Comm {
                pid,
                tid: pid,
                comm: Text::padded(self.name.as_bytes(), 8),
            };
            let comm = Record::new(Body::Comm(comm)).with_misc(MISC_COMM_EXEC);
            records.push(comm.with_sample_id(trailer(time)));
            let is_user = |map: &&Mapped| map.is_code && map.start >> 63 == 0;
            for map in self.maps.iter().filter(is_user) {
                time += 1;
                let map = Mmap2 {
                    pid,
                    tid: pid,
                    addr: map.start + moved,
                    len: map.len,
                    pgoff: map.offset,
                    inode: Some(Inode {
                        maj: 0,
                        min: 0,
                        ino: 0,
                        ino_generation: 0,
                    }),
                    build_id: None,
                    prot: Some(5),
                    flags: Some(2),
                    filename: Text::padded(map.path.as_os_str().as_encoded_bytes(), 8),
                };
                let record = Record::new(Body::Mmap2(map)).with_misc(CpuMode::USER.0);
                records.push(record.with_sample_id(trailer(time)));
            }
            for (at, sample) in self.samples(variant.has_kernel).iter().enumerate() {
                time += 1000;
                let entry = |&(from, to, is_missed): &Branch| {
                    let moved = |address: u64| match address >> 63 {
                        0 => address + moved,
                        _ => address,
                    };
                    BranchEntry {
                        from: moved(from),
                        to: moved(to),
                        flags: BranchFlags::default()
                            .with_mispred(is_missed)
                            .with_predicted(!is_missed),
                    }
                };
                let entries: Vec<BranchEntry> = sample.iter().map(entry).collect();
                let is_other = variant.has_other_event && at % 5 == 4;
                let thread = u32::try_from(at).expect("a number") % variant.threads;
                let task = Tid {
                    tid: pid + 500 * thread,
                    ..task
                };
                let ip = entries.first().map_or(0, |entry| entry.to);
                let mode = match ip >> 63 {
                    0 => CpuMode::USER,
                    _ => CpuMode::KERNEL,
                };
                let body = Sample {
                    identifier: Some(if is_other { 8 } else { 7 }),
                    ip: Some(ip),
                    tid: Some(task),
                    time: Some(time),
                    period: Some(1000),
                    branch_stack: (!is_other).then(|| BranchStack {
                        nr: entries.len() as u64,
                        hw_idx: None,
                        entries: List(entries),
                        counters: List(Vec::new()),
                    }),
                    ..Sample::default()
                };
                records.push(Record::new(Body::Sample(body)).with_misc(mode.0));
            }
            records.push(end_of_round());
        }
        write(path, &recording, records);
    }
}
