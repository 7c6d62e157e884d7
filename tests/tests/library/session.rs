//! The session model, compared with perf's output for each recording when it was made, on a machine
//! of its byte order.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use perfdata_core::attr::{Attr, AttrFlags, BranchSampleType, SampleType};
use perfdata_core::error::Problem;
use perfdata_core::read::RecordSource;
use perfdata_core::read::{Limits, Options, RecordingReader};
use perfdata_core::record::{
    Body, BpfEvent, BpfEventType, BranchEntry, BranchFlags, BranchStack, BuildId, CallchainContext,
    CallchainDeferred, Comm, Cpu, CpuMode, EventUpdate, EventUpdateType, EventUpdateValue,
    HeaderAttr, Ksymbol, KsymbolFlags, KsymbolType, MISC_COMM_EXEC, MISC_MMAP_BUILD_ID,
    MISC_SWITCH_OUT, MappedBuildId, Mmap, Mmap2, NoBody, Record, RecordType, Sample, SampleId,
    Task, Tid,
};
use perfdata_core::wire::{List, Text, ToEnd};
use perfdata_core::{Endian, Result as CoreResult};
use perfdata_session::{Samples, Stacks};
use perfdata_tests::recordings::{self, Recording};
use perfdata_tests::script::{self, Line, Seen};

/// Number of occurrences of perf's choices, by reason.
static CHOICES: Mutex<BTreeMap<&str, usize>> = Mutex::new(BTreeMap::new());

fn met(choice: &'static str) {
    *CHOICES
        .lock()
        .expect("it does not panic")
        .entry(choice)
        .or_default() += 1;
}

/// Checks that every sample that perf printed has the same thread, time, name and addresses here.
fn check(recording: &Recording) -> Result<(), String> {
    let Some(text) = recording.script_text() else {
        return Ok(());
    };
    let expected = script::lines(&String::from_utf8_lossy(&text));
    if expected.is_empty() {
        return Ok(());
    }
    let (seen, result) = script::resolved(&recording.path);
    if let Err(error) = result
        && !recording.name.ends_with("-pipe-cut")
    {
        return Err(error);
    }
    let mut seen = script::by_time(seen, |(line, _)| (line.time, line.tid));
    let mut wrong = Vec::new();
    for line in &expected {
        let found = match seen.get_mut(&(line.time, line.tid)) {
            Some(found) if !found.is_empty() => found,
            // The first line of such a sample was compared before.
            Some(_) if recording.name.contains("-group-S") => {
                met("perf makes a sample of each counter that a sample reads");
                continue;
            }
            _ => {
                wrong.push(format!("no such sample: {line:?}"));
                continue;
            }
        };
        let at = found
            .iter()
            .position(|(ours, frames)| why_not(line, ours, frames).is_none());
        let (ours, frames) = found.remove(at.unwrap_or(0));
        let Some(why) = why_not(line, &ours, &frames) else {
            continue;
        };
        match choice(line, &ours, &frames, recording) {
            Some(choice) => met(choice),
            None => wrong.push(format!("{why}\n  {line:x?}\n  {ours:?}\n  {frames:x?}")),
        }
    }
    let left: usize = seen.values().map(Vec::len).sum();
    if left > 0 {
        wrong.push(format!("{left} samples are not in perf's text"));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let count = wrong.len();
    wrong.truncate(2);
    Err(format!(
        "{count} of {}:\n{}",
        expected.len(),
        wrong.join("\n")
    ))
}

/// Returns which field is different.
fn why_not(line: &Line, ours: &Line, frames: &[Seen]) -> Option<&'static str> {
    // perf 6.1 prints the offset in the file for user frames in callchains.
    let same =
        |(line, seen): (&(u64, _), &Seen)| line.0 == seen.address || Some(line.0) == seen.offset;
    if line.comm != ours.comm {
        Some("name")
    } else if line.pid.is_some() && line.pid != ours.pid
        || line.cpu.is_some() && line.cpu != ours.cpu
    {
        Some("process or CPU")
    } else if !line.frames.is_empty()
        && (line.frames.len() != frames.len() || !line.frames.iter().zip(frames).all(same))
    {
        Some("frames")
    } else {
        None
    }
}

/// Returns the choice of perf that causes the difference.
fn choice(
    line: &Line,
    ours: &Line,
    frames: &[Seen],
    recording: &Recording,
) -> Option<&'static str> {
    let same =
        |(line, seen): (&(u64, _), &Seen)| line.0 == seen.address || Some(line.0) == seen.offset;
    if line.comm == format!(":{}", line.tid) {
        return Some("perf forgets the name of a thread that has ended");
    }
    let others = || line.frames.iter().zip(frames).filter(|pair| !same(*pair));
    if line.frames.len() == frames.len() && others().all(|(_, seen)| seen.before_exec.is_some()) {
        return Some("perf keeps what was mapped before exec");
    }
    if ours.comm.contains('\n') {
        return Some("a name of two lines");
    }
    if recording.name.contains("-defer") && line.comm != ours.comm {
        return Some("perf names threads at the time when a callchain comes later");
    }
    if ours.rest == script::USER_STACK
        && line.frames.len() >= frames.len()
        && line.frames.iter().zip(frames).all(same)
    {
        return Some("perf unwinds a copy of the user stack");
    }
    None
}

#[test]
fn perf_said_the_same() {
    recordings::check_all(&recordings::fixtures(), check);
    recordings::check_all(&recordings::shared(), check);
    eprintln!("{:#?}", CHOICES.lock().expect("it does not panic"));
}

/// A recording in pipe mode, which is written record by record. Each record's time is one more than
/// the previous one.
pub struct Stream {
    bytes: Vec<u8>,
    attr: Attr,
    time: u64,
}

pub const USUAL: u64 = SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::CPU.0
    | SampleType::CALLCHAIN.0;
const KERNEL: u64 = CallchainContext::KERNEL.0;
pub const USER: u64 = CallchainContext::USER.0;
const DEFERRED: u64 = CallchainContext::USER_DEFERRED.0;

impl Stream {
    pub fn new(sample_type: u64) -> Self {
        let flags = AttrFlags(0).with("sample_id_all", 1).expect("a flag");
        Self::of(Attr {
            size: 64,
            flags,
            sample_period: 3,
            sample_type: SampleType(sample_type),
            ..Attr::default()
        })
    }

    fn of(attr: Attr) -> Self {
        let bytes = [&b"PERFILE2"[..], &16_u64.to_le_bytes()].concat();
        let mut stream = Stream {
            bytes,
            attr: attr.clone(),
            time: 100,
        };
        stream.plain(
            Body::HeaderAttr(HeaderAttr {
                attr,
                ids: ToEnd(vec![7]),
            }),
            RecordType::HEADER_ATTR,
            0,
        );
        stream
    }

    fn plain(&mut self, body: Body, kind: RecordType, misc: u16) {
        let record = Record {
            kind,
            misc,
            body,
            tail: Vec::new(),
            sample_id: None,
        };
        record
            .encode_into(&mut self.bytes, Endian::Little)
            .expect("a record");
    }

    /// Adds a record of the kernel, for thread `tid` of process `pid` on CPU 1.
    fn add(&mut self, kind: RecordType, misc: u16, body: Body, (pid, tid): (u32, u32)) {
        self.time += 1;
        let has = |part| self.attr.sample_type.has(part);
        let sample_id = SampleId {
            tid: has(SampleType::TID).then_some(Tid { pid, tid }),
            time: Some(self.time),
            id: None,
            stream_id: None,
            cpu: Some(Cpu {
                cpu: 1,
                reserved: 0,
            }),
            identifier: None,
        };
        let record = Record {
            kind,
            misc,
            body,
            tail: Vec::new(),
            sample_id: Some(sample_id),
        };
        record
            .encode_into(&mut self.bytes, Endian::Little)
            .expect("a record");
    }

    pub fn comm(&mut self, pid: u32, tid: u32, name: impl AsRef<[u8]>, is_exec: bool) {
        let misc = if is_exec { MISC_COMM_EXEC } else { 0 };
        let comm = Comm {
            pid,
            tid,
            comm: Text::padded(name.as_ref(), 8),
        };
        self.add(RecordType::COMM, misc, Body::Comm(comm), (pid, tid));
    }

    pub fn fork(&mut self, pid: u32, tid: u32, ppid: u32, ptid: u32) {
        let task = Task {
            pid,
            ppid,
            tid,
            ptid,
            time: self.time,
        };
        self.add(RecordType::FORK, 0, Body::Fork(task), (ppid, ptid));
    }

    fn exit(&mut self, pid: u32, tid: u32) {
        let task = Task {
            pid,
            ppid: pid,
            tid,
            ptid: tid,
            time: self.time,
        };
        self.add(RecordType::EXIT, 0, Body::Exit(task), (pid, tid));
    }

    pub fn map(
        &mut self,
        mode: CpuMode,
        pid: u32,
        addr: u64,
        len: u64,
        pgoff: u64,
        name: impl AsRef<[u8]>,
    ) {
        let filename = Text::padded(name.as_ref(), 8);
        let map = Mmap {
            pid,
            tid: pid,
            addr,
            len,
            pgoff,
            filename,
        };
        self.add(RecordType::MMAP, mode.0, Body::Mmap(map), (pid, pid));
    }

    fn symbol(&mut self, addr: u64, name: &str, flags: KsymbolFlags) {
        let name = Text::padded(name.as_bytes(), 8);
        let symbol = Ksymbol {
            addr,
            len: 0x100,
            ksym_type: KsymbolType::BPF,
            flags,
            name,
        };
        self.add(RecordType::KSYMBOL, 0, Body::Ksymbol(symbol), (0, 0));
    }

    pub fn sample(&mut self, mode: CpuMode, (pid, tid): (u32, u32), chain: &[u64]) {
        self.sample_with(mode, (pid, tid), chain, None);
    }

    fn sample_with(
        &mut self,
        mode: CpuMode,
        (pid, tid): (u32, u32),
        chain: &[u64],
        stack: Option<BranchStack>,
    ) {
        self.time += 1;
        let has = |part| self.attr.sample_type.has(part);
        let ip = chain
            .iter()
            .find(|word| CallchainContext::of(**word).is_none())
            .copied()
            .unwrap_or(0x10);
        let sample = Sample {
            ip: Some(ip),
            tid: has(SampleType::TID).then_some(Tid { pid, tid }),
            time: Some(self.time),
            cpu: Some(Cpu {
                cpu: 1,
                reserved: 0,
            }),
            callchain: has(SampleType::CALLCHAIN).then(|| chain.to_vec().into()),
            branch_stack: stack,
            ..Sample::default()
        };
        self.plain(Body::Sample(sample), RecordType::SAMPLE, mode.0);
    }

    pub fn samples(self, limits: Limits) -> Samples<impl RecordSource> {
        let reader = RecordingReader::open_with(self.bytes, Options::default().with_limits(limits));
        Samples::new(reader.expect("a recording")).expect("a session")
    }

    /// Returns each sample as `NAME frame frame`.
    fn lines(self) -> Vec<String> {
        let mut samples = self.samples(Limits::default());
        let mut lines = Vec::new();
        while let Some(sample) = samples.next().expect("it is sound") {
            let mut line = String::from_utf8_lossy(sample.comm()).into_owned();
            for frame in sample.frames() {
                line += &match frame.dso().zip(frame.offset()) {
                    Some((dso, offset)) => {
                        format!(" {}+{offset:x}", String::from_utf8_lossy(&dso.name))
                    }
                    None => format!(" {:x}", frame.address),
                };
            }
            lines.push(line);
        }
        lines
    }
}

#[test]
fn threads_have_names() {
    let mut s = Stream::new(USUAL);
    s.sample(CpuMode::KERNEL, (0, 0), &[]);
    s.sample(CpuMode::USER, (5, 5), &[]);
    s.comm(5, 5, "shell", false);
    s.sample(CpuMode::USER, (5, 5), &[]);
    s.fork(6, 6, 5, 5);
    s.sample(CpuMode::USER, (6, 6), &[]);
    s.fork(6, 7, 6, 6);
    s.comm(6, 6, "sort", true);
    s.sample(CpuMode::USER, (6, 6), &[]);
    s.sample(CpuMode::USER, (6, 7), &[]);
    s.exit(6, 7);
    s.sample(CpuMode::USER, (6, 7), &[]);
    // The thread ID is reused by a thread of another process.
    s.fork(9, 7, 8, 8);
    s.sample(CpuMode::USER, (9, 7), &[]);
    s.sample(CpuMode::USER, (u32::MAX, u32::MAX), &[]);
    let names = [
        "swapper", ":5", "shell", "shell", "sort", "shell", "shell", ":7", ":-1",
    ];
    assert_eq!(s.lines(), names.map(|name| format!("{name} 10")));
}

#[test]
fn addresses_have_files() {
    let mut s = Stream::new(USUAL);
    s.map(
        CpuMode::KERNEL,
        u32::MAX,
        0xffff_0000,
        0x1000,
        0xffff_0100,
        "[kernel.kallsyms]_text",
    );
    s.map(
        CpuMode::KERNEL,
        u32::MAX,
        0xffff_8000,
        0x1000,
        0,
        "/lib/modules/6.1/ext4.ko",
    );
    s.map(CpuMode::USER, 5, 0x1000, 0x3000, 0x400, "/bin/a");
    s.map(CpuMode::USER, 5, 0x7000, 0x1000, 0x9000, "[vdso]");
    s.fork(6, 6, 5, 5);
    // A part of it is replaced by another file, only in the child.
    s.map(CpuMode::USER, 6, 0x2000, 0x1000, 0, "/bin/b (deleted)");
    let chain = [
        KERNEL,
        0xffff_0180,
        0xffff_8010,
        0xfffe_0000,
        USER,
        0x1010,
        0x2010,
        0x3010,
        0x7010,
        0x4000,
    ];
    s.sample(CpuMode::KERNEL, (5, 5), &chain);
    s.sample(CpuMode::KERNEL, (6, 6), &chain);
    // Addresses are interpreted only in their context.
    s.sample(CpuMode::USER, (5, 5), &[USER, 0xffff_0180, KERNEL, 0x1010]);
    // A new program has none of these mappings, and neither has a thread of the old one.
    s.comm(5, 5, "new", true);
    s.map(CpuMode::USER, 5, 0x3000, 0x1000, 0, "/bin/c");
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1010, 0x3010]);
    let kernel = "[kernel.kallsyms]+80 /lib/modules/6.1/ext4.ko+10 fffe0000";
    assert_eq!(
        s.lines(),
        [
            format!(":5 {kernel} /bin/a+410 /bin/a+1410 /bin/a+2410 [vdso]+10 4000"),
            format!(":6 {kernel} /bin/a+410 /bin/b (deleted)+10 /bin/a+2410 [vdso]+10 4000"),
            ":5 ffff0180 1010".to_owned(),
            "new 1010 /bin/c+10".to_owned(),
        ]
    );
}

/// If perf would show another mapping, the session returns it, too.
#[test]
fn programs_before_exec_are_remembered() {
    let mut s = Stream::new(USUAL);
    s.map(CpuMode::USER, 5, 0x1000, 0x1000, 0, "/bin/a");
    s.comm(5, 5, "b", true);
    s.map(CpuMode::USER, 5, 0x8000, 0x1000, 0, "/bin/b");
    s.comm(5, 5, "c", true);
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1010, 0x8010, 0x9000]);
    let mut samples = s.samples(Limits::default());
    let sample = samples.next().expect("it is sound").expect("a sample");
    let before = sample
        .frames()
        .map(|frame| frame.dso_before_exec().map(|dso| dso.name.to_vec()));
    assert_eq!(
        before.collect::<Vec<_>>(),
        [Some(b"/bin/a".to_vec()), Some(b"/bin/b".to_vec()), None]
    );
    assert!(sample.frames().all(|frame| frame.dso().is_none()));
    assert_eq!(
        samples.session().counts().before_exec,
        4,
        "two for each time that they were asked for"
    );
}

#[test]
fn kernel_symbols_come_and_go() {
    let mut s = Stream::new(USUAL);
    let chain = [KERNEL, 0xc010];
    s.symbol(0xc000, "bpf_prog_1", KsymbolFlags(0));
    s.sample(CpuMode::KERNEL, (5, 5), &chain);
    s.symbol(0xc000, "bpf_prog_1", KsymbolFlags::UNREGISTER);
    s.sample(CpuMode::KERNEL, (5, 5), &chain);
    s.map(CpuMode::KERNEL, u32::MAX, 0xc000, 0x1000, 0, "[module]");
    s.symbol(0xc000, "bpf_prog_1", KsymbolFlags::UNREGISTER);
    s.sample(CpuMode::KERNEL, (5, 5), &chain);
    assert_eq!(s.lines(), [":5 bpf_prog_1+10", ":5 c010", ":5 [module]+10"]);
}

/// The name of a program's symbol contains its tag, and another record contains the ID of the
/// program with this tag.
#[test]
fn bpf_programs_have_numbers() {
    let mut s = Stream::new(USUAL);
    let load = |kind| {
        let tag = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0];
        Body::BpfEvent(BpfEvent {
            kind,
            flags: 0,
            id: 77,
            tag,
        })
    };
    s.symbol(0xc000, "bpf_prog_123456789abcdef0_name", KsymbolFlags(0));
    s.add(
        RecordType::BPF_EVENT,
        0,
        load(BpfEventType::PROG_LOAD),
        (0, 0),
    );
    s.symbol(0xd000, "bpf_prog_0000000000000001_other", KsymbolFlags(0));
    s.symbol(0xe000, "bpf_trampoline_1", KsymbolFlags(0));
    s.add(
        RecordType::BPF_EVENT,
        0,
        load(BpfEventType::PROG_UNLOAD),
        (0, 0),
    );
    s.sample(CpuMode::KERNEL, (5, 5), &[KERNEL, 0xc010, 0xd010, 0xe010]);
    let mut samples = s.samples(Limits::default());
    let sample = samples.next().expect("it is sound").expect("a sample");
    let programs = sample
        .frames()
        .map(|frame| sample.session().bpf_program(frame.dso_id()?));
    assert_eq!(programs.collect::<Vec<_>>(), [Some(77), None, None]);
    assert_eq!(samples.session().counts().bpf_programs, 1);
}

/// The name in the recording is used as soon as it is read.
#[test]
fn events_have_names() {
    let mut s = Stream::new(USUAL);
    s.sample(CpuMode::USER, (5, 5), &[]);
    let update = EventUpdateValue::Name(Text::padded(b"mine", 8));
    let update = Body::EventUpdate(EventUpdate {
        kind: EventUpdateType::NAME,
        id: 7,
        update,
    });
    s.plain(update, RecordType::EVENT_UPDATE, 0);
    s.sample(CpuMode::USER, (5, 5), &[]);
    s.sample(CpuMode::USER, (5, 5), &[]);
    let mut samples = s.samples(Limits::default());
    let mut names = Vec::new();
    while let Some(sample) = samples.next().expect("it is sound") {
        names.push(String::from_utf8_lossy(sample.event_name()).into_owned());
    }
    // Records of perf have no time, and are processed in the round that contains them.
    assert_eq!(names, ["mine"; 3]);
}

/// Mappings that are never hit are discarded with their process.
#[test]
fn memory_does_not_grow_with_what_is_not_hit() {
    let held = |count: u32| {
        let mut s = Stream::new(USUAL);
        for pid in 10..10 + count {
            s.fork(pid, pid, 1, 1);
            for at in 0..10 {
                s.map(
                    CpuMode::USER,
                    pid,
                    u64::from(pid) << 24 | at << 12,
                    0x1000,
                    0,
                    "/bin/a",
                );
            }
            s.exit(pid, pid);
        }
        s.sample(CpuMode::USER, (9, 9), &[]);
        let (result, _, held) = walk(s, Limits::default());
        result.expect("it is within the limits");
        held
    };
    let (some, more) = (held(3000), held(9000));
    // The entry of a thread is never discarded.
    assert!(
        (more - some) / 6000 < 256,
        "{} bytes for each process",
        (more - some) / 6000
    );
}

#[test]
fn callchains_that_come_later_are_joined() {
    let later = |cookie| {
        let chain = CallchainDeferred {
            cookie,
            callchain: vec![0x1010, 0x1020].into(),
        };
        Body::CallchainDeferred(chain)
    };
    let mut s = Stream::new(USUAL);
    s.map(CpuMode::USER, 5, 0x1000, 0x1000, 0, "/bin/a");
    s.comm(5, 5, "then", false);
    s.sample(CpuMode::KERNEL, (5, 5), &[KERNEL, 0xf0, DEFERRED, 1]);
    s.sample(CpuMode::KERNEL, (5, 5), &[KERNEL, 0xf1, DEFERRED, 2]);
    s.sample(CpuMode::KERNEL, (6, 6), &[KERNEL, 0xf2, DEFERRED, 2]);
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1000]);
    s.comm(5, 5, "now", false);
    s.sample(CpuMode::KERNEL, (5, 5), &[DEFERRED, 2]);
    s.add(RecordType::CALLCHAIN_DEFERRED, 2, later(2), (5, 5));
    s.add(RecordType::CALLCHAIN_DEFERRED, 2, later(2), (5, 5));
    let mut samples = s.samples(Limits::default());
    let mut found = Vec::new();
    while let Some(sample) = samples.next().expect("it is sound") {
        let addresses: Vec<u64> = sample.frames().map(|frame| frame.address).collect();
        found.push((
            String::from_utf8_lossy(sample.comm()).into_owned(),
            addresses,
            sample.is_incomplete(),
        ));
    }
    let expected = [
        ("then", vec![0x1000], false),
        ("then", vec![0xf0], true),
        ("then", vec![0xf1, 0x1010, 0x1020], false),
        ("now", vec![0x1010, 0x1020], false),
        (":6", vec![0xf2], true),
    ];
    assert_eq!(
        found,
        expected.map(|(name, addresses, incomplete)| (name.to_owned(), addresses, incomplete))
    );
    let counts = samples.session().counts();
    assert_eq!(
        (
            counts.samples,
            counts.deferred,
            counts.never_deferred,
            counts.unclaimed
        ),
        (5, 2, 2, 1)
    );
}

/// Where a program entered the kernel is not a return address.
#[test]
fn the_first_address_in_each_mode_is_no_return_address() {
    let mut s = Stream::new(USUAL);
    s.map(CpuMode::USER, 5, 0x1000, 0x1000, 0, "/bin/a");
    let callchain = [KERNEL, 0xf0, 0xf1, USER, 0x1010, 0x1020];
    s.sample(CpuMode::KERNEL, (5, 5), &callchain);
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1010, 0x1020]);
    let mut samples = s.samples(Limits::default());
    let mut found: Vec<Vec<bool>> = Vec::new();
    while let Some(sample) = samples.next().expect("it is sound") {
        found.push(sample.frames().map(|frame| frame.is_return).collect());
    }
    assert_eq!(found, [vec![false, true, false, true], vec![false, true]]);
}

/// `--call-graph lbr`: the kernel's frames are from the callchain, those of user space from the
/// branch stack.
#[test]
fn branches_are_callchains_with_lbr() {
    let stack = || {
        let branch = |from, to| BranchEntry {
            from,
            to,
            flags: BranchFlags(0),
        };
        let entries = vec![branch(0x1020, 0x1010), branch(0x1040, 0x1030)];
        BranchStack {
            nr: 2,
            hw_idx: None,
            entries: List(entries),
            counters: List(Vec::new()),
        }
    };
    for (is_lbr, expected) in [
        (true, vec![0xf0, 0x1010, 0x1020, 0x1040]),
        (false, vec![0xf0, 0x1000]),
    ] {
        let flags = AttrFlags(0).with("sample_id_all", 1).expect("a flag");
        let attr = Attr {
            size: 80,
            flags,
            sample_type: SampleType(USUAL | SampleType::BRANCH_STACK.0),
            config2: Some(0),
            branch_sample_type: Some(if is_lbr {
                BranchSampleType::CALL_STACK
            } else {
                BranchSampleType::ANY
            }),
            ..Attr::default()
        };
        let mut s = Stream::of(attr);
        s.sample_with(
            CpuMode::KERNEL,
            (5, 5),
            &[KERNEL, 0xf0, USER, 0x1000],
            Some(stack()),
        );
        let mut samples = s.samples(Limits::default());
        let sample = samples.next().expect("it is sound").expect("a sample");
        assert_eq!(
            sample
                .frames()
                .map(|frame| frame.address)
                .collect::<Vec<_>>(),
            expected
        );
        let branches: Vec<_> = sample
            .branches()
            .map(|branch| (branch.from.address, branch.to.address))
            .collect();
        assert_eq!(branches, [(0x1020, 0x1010), (0x1040, 0x1030)]);
    }
}

#[test]
fn switches_tell_threads() {
    let mut s =
        Stream::new(SampleType::IP.0 | SampleType::TID.0 | SampleType::TIME.0 | SampleType::CPU.0);
    s.add(RecordType::SWITCH, 0, Body::Switch(NoBody {}), (5, 6));
    s.sample(CpuMode::USER, (1, 1), &[]);
    let mut samples = s.samples(Limits::default());
    assert!(samples.next().expect("it is sound").is_some());
    let on_cpu = samples
        .session()
        .thread_on_cpu(1)
        .and_then(|id| samples.session().thread(id))
        .cloned();
    assert_eq!(on_cpu.map(|thread| (thread.pid, thread.tid)), Some((5, 6)));

    let mut s =
        Stream::new(SampleType::IP.0 | SampleType::TID.0 | SampleType::TIME.0 | SampleType::CPU.0);
    s.add(RecordType::SWITCH, 0, Body::Switch(NoBody {}), (5, 6));
    s.add(
        RecordType::SWITCH,
        MISC_SWITCH_OUT,
        Body::Switch(NoBody {}),
        (5, 6),
    );
    s.sample(CpuMode::USER, (1, 1), &[]);
    let mut samples = s.samples(Limits::default());
    assert!(samples.next().expect("it is sound").is_some());
    assert_eq!(samples.session().thread_on_cpu(1), None);
}

/// The build ID of a mapping takes precedence over that of the table.
#[test]
fn build_ids_have_an_order() {
    let mut s = Stream::new(USUAL);
    for name in ["/bin/a", "/bin/b"] {
        let filename = Text::padded(name.as_bytes(), 64);
        let id = BuildId {
            pid: Some(-1),
            build_id: [1; 20],
            size: 20,
            reserved_1: 0,
            reserved_2: 0,
            filename,
        };
        s.plain(
            Body::HeaderBuildId(id),
            RecordType::HEADER_BUILD_ID,
            CpuMode::USER.0,
        );
    }
    let mut build_id = [0; 20];
    build_id[..4].fill(2);
    let map = Mmap2 {
        pid: 5,
        tid: 5,
        addr: 0x1000,
        len: 0x1000,
        pgoff: 0,
        inode: None,
        build_id: Some(MappedBuildId {
            build_id_size: 4,
            reserved_1: 0,
            reserved_2: 0,
            build_id,
        }),
        prot: 5,
        flags: 2,
        filename: Text::padded(b"/bin/a", 8),
    };
    s.add(
        RecordType::MMAP2,
        MISC_MMAP_BUILD_ID | CpuMode::USER.0,
        Body::Mmap2(map),
        (5, 5),
    );
    s.map(CpuMode::USER, 5, 0x2000, 0x1000, 0, "/bin/b");
    s.map(CpuMode::USER, 5, 0x3000, 0x1000, 0, "/bin/c");
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1010, 0x2010, 0x3010]);
    let mut samples = s.samples(Limits::default());
    let sample = samples.next().expect("it is sound").expect("a sample");
    let ids: Vec<_> = sample
        .frames()
        .map(|frame| frame.build_id().map(|id| id.to_string()))
        .collect();
    assert_eq!(
        ids,
        [Some("02020202".to_owned()), Some("01".repeat(20)), None]
    );
    let mapping = sample
        .frames()
        .next()
        .and_then(|frame| frame.mapping())
        .expect("a mapping");
    assert_eq!(
        (mapping.prot, mapping.flags, mapping.is_executable),
        (Some(5), Some(2), true)
    );
    assert_eq!(sample.weight(), 3);
}

#[test]
fn callchains_become_numbers() {
    let mut s = Stream::new(USUAL);
    s.map(CpuMode::USER, 5, 0x1000, 0x1000, 0, "/bin/a");
    for chain in [
        &[USER, 0x1010, 0x1020, 0x1030][..],
        &[USER, 0x1011, 0x1020, 0x1030],
        &[USER, 0x1020, 0x1030],
    ] {
        s.sample(CpuMode::USER, (5, 5), chain);
        s.sample(CpuMode::USER, (5, 5), chain);
    }
    let mut samples = s.samples(Limits::default());
    let mut stacks = Stacks::new(Limits::default());
    let mut ids = Vec::new();
    while let Some(sample) = samples.next().expect("it is sound") {
        let id = stacks
            .intern(sample.frames())
            .expect("there is room")
            .expect("frames");
        assert!(
            stacks
                .frames(id)
                .map(|stack| stack.address)
                .eq(sample.frames().map(|frame| frame.address))
        );
        ids.push(id);
    }
    assert_eq!((ids[0], ids[2], ids[4]), (ids[1], ids[3], ids[5]));
    assert_eq!(
        stacks.get(ids[0]).and_then(|stack| stack.parent),
        stacks.get(ids[2]).and_then(|stack| stack.parent)
    );
    // 1030; 1020 called by it, twice: as a caller and as a leaf; 1010 and 1011.
    assert_eq!(stacks.list().len(), 5);
}

/// Returns streams that are designed to be slow, with a size and four times this size: mappings
/// over mappings, forks of forks that each map a file, thread IDs that are reused, kernel symbols
/// that are added and removed.
fn hostile(number: usize, size: u64) -> Stream {
    let mut s = Stream::new(USUAL);
    for at in 0..size {
        let pid = u32::try_from(at % 50_000).expect("a small number") + 1;
        match number {
            0 => s.map(
                CpuMode::USER,
                5,
                (at * 7919) % (1 << 40),
                1 << 30,
                0,
                "/bin/a",
            ),
            1 => s.map(CpuMode::USER, 5, at << 12, 0x1000, 0, "/bin/a"),
            2 => {
                s.fork(pid + 1, pid + 1, pid, pid);
                s.map(CpuMode::USER, pid + 1, at << 12, 0x1000, 0, "/bin/a");
            }
            3 => {
                s.fork(6, 6, 5, 5);
                s.exit(6, 6);
            }
            4 => {
                s.symbol(at << 8, "bpf_prog", KsymbolFlags(0));
                s.symbol((at / 2) << 8, "bpf_prog", KsymbolFlags::UNREGISTER);
            }
            _ => {
                // Times decrease.
                s.time = (1 << 40) - 3 * at;
                s.comm(pid, pid, "x", at % 3 == 0);
            }
        }
        if at % 8 == 0 {
            s.sample(
                CpuMode::KERNEL,
                (pid, pid),
                &[KERNEL, at << 8, USER, at << 12, (at / 2) << 12, 0x10],
            );
        }
    }
    s
}

fn walk(stream: Stream, limits: Limits) -> (CoreResult<()>, Duration, usize) {
    let mut samples = stream.samples(limits);
    let start = Instant::now();
    let mut run = || -> CoreResult<()> {
        while let Some(sample) = samples.next()? {
            assert!(sample.frames().count() < 10);
        }
        Ok(())
    };
    let result = run();
    (result, start.elapsed(), samples.session().held())
}

#[test]
fn hostile_streams_take_linear_time() {
    for number in 0..6 {
        let time = |size| {
            let (result, time, _) = walk(hostile(number, size), Limits::default());
            result.expect("it is within the limits");
            time
        };
        let mut ratios = Vec::new();
        // The machine may be busy with other tasks.
        for _ in 0..20 {
            let (small, large) = (time(10_000), time(40_000));
            ratios.push(large.as_secs_f64() / small.as_secs_f64().max(0.001));
            if ratios.last().is_some_and(|ratio| *ratio < 10.0) {
                break;
            }
        }
        assert!(
            ratios.last().is_some_and(|ratio| *ratio < 10.0),
            "stream {number}: {ratios:?} times as long"
        );
    }
}

/// The memory stays within the limits, and the error names the exceeded one.
#[test]
fn hostile_streams_stay_within_the_limits() {
    let limits = Limits::default().with_max_metadata(1 << 20);
    let mut refused = 0;
    for number in 0..6 {
        let (result, _, held) = walk(hostile(number, 40_000), limits);
        assert!(held < 2 << 20, "stream {number}: {held} bytes");
        if let Err(error) = result {
            assert!(
                matches!(
                    error.problem(),
                    Problem::Limit {
                        name: "max-metadata",
                        ..
                    }
                ),
                "{error}"
            );
            refused += 1;
        }
    }
    assert!(refused >= 4, "{refused} of 6");
}
