//! perf shows of a thinned recording what it shows of the original if it limits callchains or
//! leaves out fields itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use perfdata_core::attr::{Attr, AttrFlags, BranchSampleType, EventType, SampleType};
use perfdata_core::record::{
    Body, BranchEntry, BranchFlags, BranchStack, CallchainContext, CpuMode, Record, Sample, Tid,
};
use perfdata_core::wire::List;
use perfdata_core::{Endian, Event, Recording as Model};
use perfdata_edit::thin::{StackSize, Thin, part};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::judge::{self, can_judge};
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Recording};
use perfdata_tests::skipped;
use perfdata_write::{FilePlan, FileWriter};

/// Returns the samples as perf prints them, sorted: perf delivers samples with deferred callchains
/// later than others.
fn printed(
    perf: &Perf,
    path: &Path,
    fields: &str,
    options: &[&str],
) -> Result<Vec<String>, String> {
    let mut command = perf.command();
    command
        .args(["script", "--no-inline", "--ns", "-F", fields])
        .args(options)
        .arg("-i")
        .arg(path);
    let said = perf::run(command).map_err(|error| error.to_string())?;
    if !said.success() {
        return Err(format!("{perf}: {}", said.stderr));
    }
    let has_chains = said.stdout.contains("\n\n");
    let separator = if has_chains { "\n\n" } else { "\n" };
    let samples = said
        .stdout
        .split(separator)
        .map(|text| text.trim().to_owned());
    let mut samples: Vec<String> = samples.filter(|sample| !sample.is_empty()).collect();
    samples.sort();
    Ok(samples)
}

fn same(what: &str, expected: &[String], found: &[String]) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let differs = expected.iter().zip(found).find(|(one, other)| one != other);
    Err(format!(
        "{what}: {} samples, then {}; the first to differ: {differs:?}",
        expected.len(),
        found.len()
    ))
}

/// Returns the parts of samples of all events.
fn parts_of(recording: &Recording) -> SampleType {
    let Ok(whole) = Whole::read_file(&recording.main_file()) else {
        return SampleType::default();
    };
    let events = whole.recording.events.iter();
    events.fold(SampleType(0), |all, event| all | event.attr.sample_type)
}

/// `perf script` of the output is `perf script --max-stack N` of the input.
#[test]
fn callchains_are_as_with_max_stack() {
    let mut recordings = recordings::fixtures();
    if perfdata_tests::is_thorough() {
        recordings.extend(recordings::shared());
    }
    recordings.retain(|recording| {
        !recording.is_damaged() && parts_of(recording).has(SampleType::CALLCHAIN)
    });
    recordings::check_all(&recordings, |recording| {
        // Frames that are unwound from stacks are no part of the callchain.
        let is_unwound = parts_of(recording).has(SampleType::STACK_USER);
        for perf in judge::panel(recording)? {
            for frames in ["1", "3", "5"] {
                let stage = Thin::new().max_stack(frames.parse().expect("a number"));
                let made = convert(&recording.path, None, vec![Box::new(stage)])
                    .map_err(|error| error.to_string())?;
                let limit = ["--max-stack", frames];
                let fields = "tid,time,event,ip";
                let expected = printed(perf, &recording.path, fields, &limit)?;
                let options: &[&str] = if is_unwound { &limit } else { &[] };
                let found = printed(perf, &made.path(), fields, options)?;
                same(&format!("{perf}, {frames} frames"), &expected, &found)?;
            }
        }
        Ok(())
    });
}

/// The recordings, the parts that are omitted, and fields that remain.
const OMITTED: [(&str, &str, &str); 8] = [
    ("6.1-x86_64-file-g", "callchain", "tid,time,event,period"),
    ("6.1-x86_64-file-g", "period", "tid,time,event,ip"),
    (
        "6.12-x86_64-pipe-dwarf",
        "ustack,uregs",
        "tid,time,event,period",
    ),
    (
        "6.1-i386-file-dwarf",
        "ustack,uregs,callchain",
        "tid,time,event",
    ),
    ("6.1-i386-file-tp-mixed", "raw", "comm,tid,time,event"),
    ("6.1-x86_64-file-group-S", "read", "comm,tid,time,event"),
    (
        "6.12-s390x-file-data-phys",
        "phys_addr",
        "comm,tid,time,event,addr,data_src",
    ),
    ("6.12-s390x-file-z-g", "callchain", "comm,tid,time,event"),
];

/// perf shows the other fields as before, `perf report` reads the output, and the header differs
/// only in the attributes.
#[test]
fn other_fields_stay() {
    for (name, list, fields) in OMITTED {
        let recording = recordings::fixture(name);
        let parts = list.split(',').map(|word| part(word).expect("a part"));
        let stage = Thin::new().omit(parts.fold(SampleType(0), |all, part| all | part));
        let made = convert(&recording.path, None, vec![Box::new(stage)]).expect("it is thinned");
        for perf in perf::all() {
            if !can_judge(perf, &recording).expect("perf runs") {
                continue;
            }
            let of = |path: &Path| {
                printed(perf, path, fields, &["-G"]).unwrap_or_else(|why| panic!("{name}: {why}"))
            };
            let of = |path: &Path| -> Vec<String> {
                // The period of a group member is a difference of READ values.
                of(path)
                    .into_iter()
                    .filter(|line| list != "read" || line.contains("cpu-clock"))
                    .collect()
            };
            if let Err(why) = same(name, &of(&recording.path), &of(&made.path())) {
                panic!("{perf}: {why}");
            }
            let ask = |words: &[&str], path: &Path| {
                let mut command = perf.command();
                command.args(words).arg("-i").arg(path);
                let said = perf::run(command).expect("perf starts");
                assert!(said.success(), "{perf}: {name}: {words:?}: {}", said.stderr);
                said.stdout
            };
            ask(&["report", "--stdio"], &made.path());
            let header = |path: &Path| -> Vec<String> {
                let changing = [
                    "# event : ",
                    "# captured on",
                    "# data size",
                    "# feat offset",
                    "# compressed : Zstd",
                ];
                let text = ask(&["report", "--header-only", "-I"], path);
                let is_same = |line: &&str| !changing.iter().any(|start| line.starts_with(start));
                text.lines().filter(is_same).map(str::to_owned).collect()
            };
            assert_eq!(
                header(&recording.path),
                header(&made.path()),
                "{perf}: {name}"
            );
        }
    }
}

/// Records on this machine, whose stacks perf can unwind.
fn record(perf: &Perf, folder: &Path) -> Option<std::path::PathBuf> {
    let path = folder.join("dwarf.data");
    let mut command: Command = perf.command();
    command
        .args(["record", "-q", "-e", "cpu-clock", "-F", "999"])
        .args(["--call-graph", "dwarf,8192", "-o"])
        .arg(&path)
        .args([
            "--",
            "sh",
            "-c",
            "for i in 1 2 3; do ls -R /etc /usr/lib; done > /dev/null 2>&1",
        ]);
    let said = perf::run(command).ok()?;
    (said.success() && fs::metadata(&path).is_ok_and(|file| file.len() > 0)).then_some(path)
}

/// Without unused space, perf unwinds the same frames; of shorter stacks, perf 7.2 unwinds the
/// first of them.
#[test]
fn stacks_are_unwound_as_before() {
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(path) = record(recorder, folder.path()) else {
        return skipped::note("a perf that may record user stacks");
    };
    let fields = "tid,time,event,ip";
    let thin = |size| {
        let stage = Thin::new().stack_size(size);
        convert(&path, None, vec![Box::new(stage)]).expect("it is thinned")
    };
    let (unused, short) = (thin(StackSize::Dumped), thin(StackSize::AtMost(1024)));
    for perf in perf::all()
        .iter()
        .filter(|perf| !perf.name.ends_with("-s390x"))
    {
        let Ok(before) = printed(perf, &path, fields, &[]) else {
            continue;
        };
        let after = printed(perf, &unused.path(), fields, &[]).expect("perf reads it");
        same(perf.name, &before, &after).unwrap_or_else(|why| panic!("{why}"));
        if perf.version.major < 7 {
            continue;
        }
        let after = printed(perf, &short.path(), fields, &[]).expect("perf reads it");
        assert_eq!(before.len(), after.len());
        let whole: BTreeSet<&str> = before.iter().map(String::as_str).collect();
        let is_start = |cut: &String| whole.iter().any(|whole| whole.starts_with(cut.as_str()));
        let other = after.iter().find(|sample| !is_start(sample));
        assert_eq!(other, None, "no start of a callchain");
    }
}

/// A recording of `perf record --call-graph lbr`: the branch stack continues the kernel's part.
fn with_branches(path: &Path) {
    let parts = [
        SampleType::IP,
        SampleType::TID,
        SampleType::TIME,
        SampleType::CALLCHAIN,
        SampleType::BRANCH_STACK,
    ];
    let attr = Attr {
        kind: EventType::SOFTWARE,
        size: 80,
        config2: Some(0),
        branch_sample_type: Some(BranchSampleType::USER | BranchSampleType::CALL_STACK),
        flags: AttrFlags::default().with_sample_id_all(true),
        sample_type: parts
            .into_iter()
            .fold(SampleType(0), |all, part| all | part),
        ..Attr::default()
    };
    let mut recording = Model::new(Endian::Little);
    recording.events.push(Event { attr, ids: vec![7] });
    let file = fs::File::create(path).expect("a file");
    let gaps: Vec<u8> = Vec::new();
    let mut writer =
        FileWriter::begin(file, FilePlan::standard(), &recording, &gaps).expect("a writer");
    let (kernel, user) = (CallchainContext::KERNEL.0, CallchainContext::USER.0);
    let entry = |from| BranchEntry {
        from,
        to: from + 8,
        flags: BranchFlags::default(),
    };
    let chain = [
        kernel,
        0xffff_ffff_8100_0010,
        0xffff_ffff_8100_0020,
        user,
        0x1010,
        0x1020,
    ];
    let sample = Sample {
        ip: Some(0xffff_ffff_8100_0010),
        tid: Some(Tid { pid: 1, tid: 1 }),
        time: Some(1_000),
        callchain: Some(chain.to_vec().into()),
        branch_stack: Some(BranchStack {
            nr: 3,
            hw_idx: None,
            entries: List([0x2010, 0x2020, 0x2030].map(entry).to_vec()),
            counters: List(Vec::new()),
        }),
        ..Sample::default()
    };
    let record = Record::new(Body::Sample(sample)).with_misc(CpuMode::KERNEL.0);
    writer.write(&record).expect("it is written");
    writer.finish(&recording).expect("a file");
}

/// perf counts the words before the marker of the user part, and then shows either the branch stack
/// or the frames: a cut callchain has the same effect, except where the last frame is the first of
/// the user part.
#[test]
fn branch_stacks_continue_callchains_as_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lbr.data");
    with_branches(&path);
    for perf in perf::all()
        .iter()
        .filter(|perf| perf.endian == recordings::Endian::Little)
    {
        let frames = |path: &Path, options: &[&str]| {
            printed(perf, path, "time,event,ip", options).expect("perf reads it")
        };
        let whole = frames(&path, &[]);
        assert!(whole.concat().contains("2030"), "{perf}: {whole:?}");
        for most in ["1", "2", "3", "4", "5"] {
            let stage = Thin::new().max_stack(most.parse().expect("a number"));
            let made = convert(&path, None, vec![Box::new(stage)]).expect("it is thinned");
            let limit = ["--max-stack", most];
            let expected = frames(&path, &limit);
            assert_eq!(expected, frames(&made.path(), &limit), "{perf}: {most}");
            if most != "3" {
                assert_eq!(expected, frames(&made.path(), &[]), "{perf}: {most}");
            }
        }
    }
}
