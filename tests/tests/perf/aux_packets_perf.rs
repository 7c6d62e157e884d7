//! The packets of traces are those of perf script -D.

use std::path::{Path, PathBuf};

use perfdata_convert::io::Input;
use perfdata_core::header::ContainerKind;
use perfdata_report::show::aux_packets::AuxPackets;
use perfdata_tests::convert::convert;
use perfdata_tests::generate::random::Random;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Endian, PerfVersion};
use perfdata_tests::synth::hardware_trace::{TraceKind, file};
use perfdata_tests::{skipped, traces};

/// Returns the lines about packets, and the sizes of traces.
fn lines(text: &str) -> Vec<&str> {
    let is_packet = |line: &&str| {
        line.starts_with(".  0") && line.as_bytes().get(11) == Some(&b':')
            || line.starts_with(". ... Intel")
            || line.starts_with(". ... ARM")
    };
    text.lines().filter(is_packet).collect()
}

fn own(path: &Path) -> String {
    let mut out = Vec::new();
    let input = Input::open(path).expect("a recording");
    let shown = AuxPackets::default().run(input, &mut out);
    shown.expect("the packets of the trace are known");
    String::from_utf8(out).expect("text")
}

/// Asserts that the packets are those that perf shows. Returns their number.
fn assert_same(perf: &Perf, path: &Path) -> usize {
    let mut command = perf.command();
    command.args(["script", "-D", "-i"]).arg(path);
    let theirs = perf::run(command).expect("perf can be started");
    let ours = own(path);
    let (ours, theirs) = (lines(&ours), lines(&theirs.stdout));
    let differing = ours
        .iter()
        .zip(&theirs)
        .position(|(one, other)| one != other);
    if let Some(at) = differing {
        panic!("{perf}: {}\n{}\n{}", path.display(), ours[at], theirs[at]);
    }
    assert_eq!(ours.len(), theirs.len(), "{perf}: {}", path.display());
    ours.len()
}

fn perfs(since: &str) -> Vec<&'static Perf> {
    let since: PerfVersion = since.parse().expect("a release");
    let all = perf::all().iter();
    let found: Vec<_> = all
        .filter(|perf| perf.endian == Endian::Little && perf.version >= since)
        .collect();
    if found.is_empty() {
        skipped::note(format!("perf {since} or newer"));
    }
    found
}

fn made(folder: &Path, name: &str, bytes: Vec<u8>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

#[test]
fn made_traces_of_intel() {
    let folder = tempfile::tempdir().expect("a folder");
    let random = &mut Random(1);
    let sound = vec![
        traces::intel_pt(random, 3000, false),
        traces::intel_pt(random, 900, false),
    ];
    let damaged = vec![
        traces::intel_pt(random, 200_000, true),
        vec![0x02; 16],
        Vec::new(),
    ];
    let in_samples = [
        traces::intel_pt(random, 3000, false),
        traces::intel_pt(random, 3000, true),
    ];
    let mut bts = vec![traces::intel_bts(random, 700), traces::intel_bts(random, 1)];
    bts.push([traces::intel_bts(random, 2), vec![7; 16]].concat());
    let files = [
        ("sound", file(false, TraceKind::INTEL_PT, &sound, &[])),
        ("damaged", file(false, TraceKind::INTEL_PT, &damaged, &[])),
        (
            "samples",
            file(false, TraceKind::INTEL_PT, &[], &in_samples),
        ),
        ("bts", file(false, TraceKind::INTEL_BTS, &bts, &[])),
    ];
    for (name, file) in files {
        let path = made(folder.path(), name, file.bytes());
        let pipe = convert(&path, Some(ContainerKind::Pipe), Vec::new()).expect("it is converted");
        for perf in perfs("6.1") {
            let count = assert_same(perf, &path);
            assert!(count > 100, "{name}");
        }
        // perf looks for the data of short pipes at the wrong place.
        let (text, of_pipe) = (own(&path), own(&pipe.path()));
        assert_eq!(lines(&text), lines(&of_pipe), "{name}");
    }
}

/// perf before 6.18 has fewer names of operations and events of Arm SPE.
#[test]
fn made_traces_of_arm() {
    let folder = tempfile::tempdir().expect("a folder");
    let random = &mut Random(2);
    let any = vec![
        traces::arm_spe(random, 100_000),
        traces::arm_spe(random, 100),
    ];
    let files = [("any", file(false, TraceKind::ARM_SPE, &any, &[]))];
    for (name, file) in files {
        let path = made(folder.path(), name, file.bytes());
        for perf in perfs("7.0") {
            assert!(assert_same(perf, &path) > 1000, "{name}");
        }
    }
}

/// Intel PT of real processors. perf 6.1 stops in the middle of the pipe.
#[test]
fn real_traces() {
    let mut count = 0;
    for recording in recordings::corpus() {
        if recording.name.contains("intel_pt") {
            for perf in perfs(if recording.name.contains("piped") {
                "6.12"
            } else {
                "6.1"
            }) {
                count += assert_same(perf, &recording.path);
            }
        }
    }
    if count == 0 {
        skipped::note("recordings of Intel PT and a perf");
    }
}
