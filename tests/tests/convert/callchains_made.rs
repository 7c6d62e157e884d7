//! User stacks in recordings that are made for the test: with mappings that come later in the file
//! than in time, and with generated code.

use std::fs;
use std::path::Path;

use perfdata_convert::io::Output;
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::Endian as Order;
use perfdata_core::attr::{Attr, AttrFlags, EventType, SampleType};
use perfdata_core::record::{
    Body, CallchainContext, CpuMode, RawRecord, Record, RecordType, Regs, RegsAbi, Sample,
    SampleId, StackUser, Tid,
};
use perfdata_core::wire::{List, Rest};
use perfdata_inject::build_ids::{BuildIds, KnownBuildIds, Resolver, Select, Storage, Sysroot};
use perfdata_inject::callchains::Callchains;
use perfdata_inject::jit::{Images, Jit};
use perfdata_inject::perf_maps::PerfMaps;
use perfdata_symbols::Sources;
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::synth::jitdump::{Dump, Header};
use perfdata_tests::synth::object::object;
use perfdata_tests::told::{end_of_round, mapping, model, write};

const USER: u64 = CallchainContext::USER.0;

/// The stack pointer of all samples.
const SP: u64 = 0x7ffd_0000_1000;

/// The maximum size of the copy of a stack in bytes.
const STACK: u32 = 512;

/// A record of process 7.
enum Told<'a> {
    /// A mapping with its first address, size, and name.
    Map(u64, u64, &'a str),
    /// A sample with its instruction pointer and the words on its stack.
    At(u64, &'a [u64]),
    Round,
}
use Told::{At, Map, Round};

/// Writes a recording of x86-64 with these records and their times.
fn made(path: &Path, is_timed: bool, told: &[(u64, Told<'_>)]) {
    let parts = [
        SampleType::IP,
        SampleType::TID,
        SampleType::CALLCHAIN,
        SampleType::REGS_USER,
        SampleType::STACK_USER,
    ];
    let mut sample_type = parts
        .into_iter()
        .fold(SampleType(0), |all, part| all | part);
    if is_timed {
        sample_type = sample_type | SampleType::TIME;
    }
    let flags = AttrFlags::default()
        .with_sample_id_all(true)
        .with_mmap2(true)
        .with_exclude_callchain_user(true)
        .with_use_clockid(true);
    let attr = Attr {
        kind: EventType::SOFTWARE,
        flags,
        sample_type,
        size: 96,
        config2: Some(0),
        branch_sample_type: Some(Default::default()),
        sample_regs_user: Some(1 << 6 | 1 << 7 | 1 << 8),
        sample_stack_user: Some(STACK),
        clockid: Some(1),
        ..Attr::default()
    };
    let recording = model(Order::Little, attr, vec![7]);
    let tid = Some(Tid { pid: 7, tid: 7 });
    let record = |(time, told): &(u64, Told<'_>)| {
        let time = is_timed.then_some(*time);
        match told {
            Map(addr, len, name) => Record::new(Body::Mmap2(mapping(7, *addr, *len, name)))
                .with_misc(CpuMode::USER.0)
                .with_sample_id(SampleId {
                    tid,
                    time,
                    ..SampleId::default()
                }),
            At(ip, words) => {
                let mut data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let copied = data.len() as u64;
                data.resize(STACK as usize, 0xee);
                let body = Sample {
                    ip: Some(*ip),
                    tid,
                    time,
                    callchain: Some(Vec::new().into()),
                    regs_user: Some(Regs {
                        abi: RegsAbi::BITS_64,
                        // The frame pointer, the stack pointer, the instruction pointer.
                        regs: List(vec![SP, SP, *ip]),
                    }),
                    stack_user: Some(StackUser {
                        size: STACK.into(),
                        data: Rest(data),
                        dyn_size: Some(copied),
                    }),
                    ..Sample::default()
                };
                Record::new(Body::Sample(body)).with_misc(CpuMode::USER.0)
            }
            Round => end_of_round(),
        }
    };
    write(path, &recording, told.iter().map(record));
}

/// Returns the callchains of all samples.
fn chains(path: &Path) -> Vec<Vec<u64>> {
    let whole = Whole::read_file(path).expect("a recording");
    let events = &whole.recording.events;
    let chain = |(at, _): &(usize, RecordType)| {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0);
        let raw = raw.expect("a record");
        match Record::decode(&raw, &events.layout_of(&raw))
            .expect("a record")
            .body
        {
            Body::Sample(sample) => {
                let words = sample.callchain.iter();
                Some(words.flat_map(|words| words.iter().copied()).collect())
            }
            _ => None,
        }
    };
    whole.records.iter().filter_map(chain).collect()
}

/// Uses objects whose build IDs are not recorded, as those of these recordings.
fn unverified() -> Box<dyn Stage> {
    let sources = Sources::default().with_caches(Vec::new());
    Box::new(Callchains::unwound(sources.with_unverified(true)))
}

/// The address of the object, of its first function, and of its third one, which has no caller.
const BASE: u64 = 0x5500_0000_0000;
const FIRST: u64 = BASE + 0x1000;
const OUTERMOST: u64 = BASE + 0x1020;

/// A sample sees the mappings of its time, wherever they are in the file.
#[test]
fn mappings_are_those_of_the_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("object");
    fs::write(&file, object()).expect("it is written");
    let name = file.to_str().expect("text");
    let stack = [OUTERMOST + 1];
    let complete = vec![USER, FIRST, OUTERMOST];
    let unknown = vec![USER, FIRST];
    let input = folder.path().join("in.data");
    let told = [
        (30, At(FIRST, &stack)),
        (10, At(FIRST, &stack)),
        (20, Map(BASE, 0x4000, name)),
        (50, At(FIRST, &stack)),
        (0, Round),
        (40, Map(BASE, 0x4000, "//anon")),
        (39, At(FIRST, &stack)),
    ];
    let expected = [&complete, &unknown, &unknown, &complete].map(Clone::clone);
    made(&input, true, &told);
    let result = convert(&input, None, vec![unverified()]).expect("converted");
    assert_eq!(chains(&result.path()), expected);
    let notes = result.summary.notes.join("\n");
    for part in [
        "4 user callchains unwound, 2 of them completely",
        "1 user callchain ends in memory that is not a file",
        "1 user callchain ends at an address where nothing is mapped",
    ] {
        assert!(notes.contains(part), "{notes}");
    }
    // The copy of the stack is in the order of the machine, whatever the order of the recording.
    let swap = Box::new(Swap::new(Target::Other, Unknown::Error));
    let swapped = convert(&input, None, vec![swap]).expect("converted");
    let result = convert(&swapped.path(), None, vec![unverified()]).expect("converted");
    assert_eq!(chains(&result.path()), expected);
    // Without times, records are in the order of the stream.
    made(&input, false, &told);
    let result = convert(&input, None, vec![unverified()]).expect("converted");
    assert_eq!(
        chains(&result.path()),
        [&unknown, &unknown, &complete, &unknown].map(Clone::clone)
    );
    // A file that the recording does not verify is only used on request.
    let verified = Box::new(Callchains::unwound(Sources::default()));
    let result = convert(&input, None, vec![verified]).expect("converted");
    assert!(chains(&result.path()).iter().all(|chain| *chain == unknown));
    let notes = result.summary.notes.join("\n");
    assert!(notes.contains("does not contain its build ID"), "{notes}");
}

/// Threads help with long callchains, and the result is the same as without them, also for the
/// short ones and the other records between them.
#[test]
fn long_callchains_are_unwound_by_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("object");
    fs::write(&file, object()).expect("it is written");
    let name = file.to_str().expect("text");
    let input = folder.path().join("in.data");
    let stack = [FIRST + 1; STACK as usize / 8];
    let words = |number: u64| match number {
        0..100 => stack.len(),
        number => number as usize % 60,
    };
    let mut told = vec![(1, Map(BASE, 0x4000, name))];
    for number in 0..400 {
        told.push((number + 2, At(FIRST, &stack[..words(number)])));
        if number % 50 == 7 {
            told.push((0, Round));
        }
    }
    made(&input, true, &told);
    let expected = (0..400).map(|number| {
        let mut chain = vec![FIRST; words(number) + 2];
        chain[0] = USER;
        chain
    });
    let expected: Vec<_> = expected.collect();
    let with = |threads| {
        let sources = Sources::default().with_caches(Vec::new());
        let stage = Callchains::unwound(sources.with_unverified(true)).with_threads(threads);
        convert(&input, None, vec![Box::new(stage)]).expect("converted")
    };
    let alone = with(1);
    assert_eq!(chains(&alone.path()), expected);
    for threads in [2, 5] {
        let made = with(threads);
        assert_eq!(made.bytes(), alone.bytes());
        assert_eq!(made.summary.notes, alone.summary.notes);
    }
}

/// Returns `.eh_frame` and `.eh_frame_hdr` of a function of 0x20 bytes at 0x80 of its image. Its
/// caller is above it on the stack, unless it is the outermost one.
fn unwinding(is_outermost: bool) -> (Vec<u8>, Vec<u8>) {
    // The section follows the code.
    let address = 0xa0_i32;
    let mut frames = 20_u32.to_le_bytes().to_vec();
    frames.extend(b"\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0");
    let entry = frames.len() as i32;
    frames.extend(20_u32.to_le_bytes());
    frames.extend((entry + 4).to_le_bytes());
    frames.extend((0x80 - (address + entry + 8)).to_le_bytes());
    frames.extend([0x20, 0, 0, 0, 0]);
    frames.extend(if is_outermost { [0x07, 16] } else { [0, 0] });
    frames.resize(entry as usize + 24, 0);
    let header_at = address + frames.len() as i32;
    let mut header = b"\x01\x1b\x03\x3b".to_vec();
    header.extend((address - (header_at + 4)).to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend((0x80 - header_at).to_le_bytes());
    header.extend((address + entry - header_at).to_le_bytes());
    (frames, header)
}

/// Generated code, its build IDs, callchains through it and compression in one pass are the same as
/// one after the other.
#[test]
fn generated_code_is_unwound_in_the_same_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let dump = folder.path().join("jit-7.dump");
    let with = |dump: Dump, time, address, index, is_outermost| {
        let (frames, header) = unwinding(is_outermost);
        let size = 0x20 + frames.len() as u64 + header.len() as u64;
        let dump = dump.unwinding(time, &frames, &header, size);
        dump.load(time, address, index, "function", &[0x90; 0x20])
    };
    let dumped = with(Dump::new(false, Header::of(7)), 15, 0x10000, 1, false);
    let dumped = with(dumped, 25, 0x20000, 2, true);
    fs::write(&dump, dumped.close(90).bytes()).expect("it is written");
    let input = folder.path().join("in.data");
    let stack = [0x20011];
    made(
        &input,
        true,
        &[
            (1, Map(0x10000, 0x20000, "//anon")),
            (5, Map(0x7000_0000, 0x1000, dump.to_str().expect("text"))),
            (18, At(0x10008, &stack)),
            (30, At(0x10008, &stack)),
            (35, Map(0x10000, 0x20000, "//anon")),
            (0, Round),
            (40, At(0x10000, &stack)),
        ],
    );
    let jit = || -> Box<dyn Stage> {
        let images = Images::In(folder.path().join("images"));
        Box::new(Jit::new(images).synced(false).with_build_ids(true))
    };
    let sources = || Sources::default().with_caches(Vec::new());
    let callchains = |has_code| -> Box<dyn Stage> {
        Box::new(Callchains::unwound(sources()).with_generated_code(has_code))
    };
    let build_ids = || -> Box<dyn Stage> {
        let resolver = Resolver::new(KnownBuildIds::default(), Sysroot::default(), None);
        Box::new(BuildIds::new(Select::Hit, Storage::Table, resolver))
    };
    let compress = || -> Box<dyn Stage> { Box::new(Compress::new(RecordType::COMPRESSED2, 1)) };
    let run = |from: &Path, to: &str, stages: Vec<Box<dyn Stage>>| {
        let to = folder.path().join(to);
        let output = Output::create(&to, from, true).expect("an output");
        let summary = Conversion::new(stages)
            .run(from, output.synced(false))
            .expect("converted");
        (to, summary.notes)
    };
    let (once, notes) = run(
        &input,
        "once.data",
        vec![jit(), callchains(true), build_ids(), compress()],
    );
    let (named, _) = run(&input, "named.data", vec![jit()]);
    let (unwound, _) = run(&named, "unwound.data", vec![callchains(false)]);
    let (known, _) = run(&unwound, "known.data", vec![build_ids()]);
    let (steps, _) = run(&known, "steps.data", vec![compress()]);
    let (plain, _) = run(
        &input,
        "plain.data",
        vec![jit(), callchains(true), build_ids()],
    );
    let complete = |pc| vec![USER, pc, 0x20010];
    // The caller's code was generated after the first sample.
    let expected = [complete(0x10008), complete(0x10008), complete(0x10000)];
    assert_eq!(chains(&plain), expected, "{notes:?}");
    assert_eq!(chains(&known), expected);
    let bytes = |path| fs::read(path).expect("a file");
    assert!(bytes(&once) == bytes(&steps), "one pass and steps");
    assert!(
        bytes(&plain) == bytes(&known),
        "one pass and steps, not compressed"
    );
    let notes = notes.join("\n");
    assert!(
        notes.contains("3 user callchains unwound, 2 of them completely"),
        "{notes}"
    );
}

/// Names of generated code in perf maps, callchains through it and compression in one pass are the
/// same as one after the other. A perf map contains no call frame information, but frame pointers
/// lead through the code.
#[test]
fn named_code_is_unwound_in_the_same_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = "10000 40 function\n10080 80 caller\n";
    fs::write(folder.path().join("perf-7.map"), map).expect("it is written");
    let input = folder.path().join("in.data");
    // The saved frame pointer, and the return address.
    let stack = [0, 0x10090];
    made(
        &input,
        true,
        &[
            (1, Map(0x10000, 0x1000, "//anon")),
            (18, At(0x10008, &stack)),
            (0, Round),
            (20, Map(0x10000, 0x2000, "//anon")),
            (40, At(0x10010, &stack)),
        ],
    );
    let maps = || -> Box<dyn Stage> {
        let maps = PerfMaps::new(Images::In(folder.path().join("images")));
        let maps = maps.with_maps(folder.path().to_owned());
        Box::new(maps.synced(false).with_build_ids(true))
    };
    let compress = || -> Box<dyn Stage> { Box::new(Compress::new(RecordType::COMPRESSED2, 1)) };
    let run = |from: &Path, to: &str, stages: Vec<Box<dyn Stage>>| {
        let to = folder.path().join(to);
        let output = Output::create(&to, from, true).expect("an output");
        Conversion::new(stages)
            .run(from, output.synced(false))
            .expect("converted");
        to
    };
    for follows_frame_pointers in [false, true] {
        let callchains = || -> Box<dyn Stage> {
            let sources = Sources::default().with_caches(Vec::new());
            let stage = Callchains::unwound(sources);
            Box::new(stage.with_frame_pointers(follows_frame_pointers))
        };
        let once = run(&input, "once.data", vec![maps(), callchains(), compress()]);
        let plain = run(&input, "plain.data", vec![maps(), callchains()]);
        let named = run(&input, "named.data", vec![maps()]);
        let unwound = run(&named, "unwound.data", vec![callchains()]);
        let steps = run(&unwound, "steps.data", vec![compress()]);
        let chain = |pc| match follows_frame_pointers {
            true => vec![USER, pc, 0x1008f],
            false => vec![USER, pc],
        };
        assert_eq!(chains(&plain), [chain(0x10008), chain(0x10010)]);
        let bytes = |path| fs::read(path).expect("a file");
        assert!(bytes(&plain) == bytes(&unwound), "one pass and steps");
        assert!(
            bytes(&once) == bytes(&steps),
            "one pass and steps, compressed"
        );
    }
}
