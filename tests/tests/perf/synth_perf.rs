//! perf reads the recordings of the independent writer, with the same results in both byte orders.

use std::{
    fs,
    path::{Path, PathBuf},
};

use perfdata_tests::perf::{self, Output, Perf, Question};
use perfdata_tests::recordings::Endian;
use perfdata_tests::skipped;
use perfdata_tests::synth::feature_events::Event;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::{dir, feature, file, kind, pipe, record, sink};

/// A separate folder for each test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

fn is_big(perf: &Perf) -> bool {
    perf.endian == Endian::Big
}

/// Returns every record as perf parses it, without the hexadecimal dumps and the file's name.
fn dump(perf: &Perf, path: &Path) -> Output {
    let mut command = perf.command();
    command.args(["report", "-D", "-i"]).arg(path);
    let mut output = perf::run(command).expect("perf starts");
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a plain name");
    let is_hex = |line: &str| line.starts_with(".  ") && line.get(7..8) == Some(":");
    let lines = output.stdout.lines().filter(|line| !is_hex(line));
    output.stdout = lines
        .map(|line| line.replace(name, "FILE") + "\n")
        .collect();
    output
}

#[track_caller]
fn reads(perf: &Perf, question: Question, path: &Path, expected: &str) {
    let output = perf.ask(question, path).expect("perf starts");
    let name = path.display();
    assert!(
        output.success(),
        "{perf} does not read {name}: {}",
        output.stderr
    );
    assert!(
        output.stdout.contains(expected),
        "{perf} reads something else in {name}:\n{}",
        output.stdout
    );
}

/// Returns the perfs of both byte orders of a version that knows every record and feature of the
/// writer.
fn newest() -> Vec<&'static Perf> {
    let newest: Vec<_> = perf::all()
        .iter()
        .filter(|perf| perf.attr_size() >= 144)
        .collect();
    if newest.is_empty() {
        skipped::note("perf 7.0 or newer");
    }
    newest
}

#[test]
fn any_perf_reads_the_basic_file() {
    let folder = Folder::new();
    for perf in perf::all() {
        let path = folder.put("basic.data", &file::basic(is_big(perf)).bytes());
        reads(perf, Question::Header, &path, "nrcpus avail : 4");
        reads(perf, Question::Header, &path, "name = cpu-clock, ");
        reads(
            perf,
            Question::Script,
            &path,
            "PERF_RECORD_MMAP 4201/4202: [0x400000(0x2000) @ 0]: x /usr/bin/true",
        );
        reads(perf, Question::Script, &path, "cpu-clock:");
        reads(
            perf,
            Question::Script,
            &path,
            "PERF_RECORD_EXIT(4201:4202):(1:4202)",
        );
    }
}

/// Files in old forms, and with layouts of other tools.
#[test]
fn any_perf_reads_the_odd_forms_of_a_file() {
    let folder = Folder::new();
    for perf in perf::all() {
        let basic = || file::basic(is_big(perf));
        let forms = [
            (
                "v1",
                File {
                    magic: file::Magic::V1,
                    ..basic()
                },
            ),
            (
                "without-bitmap",
                File {
                    header_size: 72,
                    features: Vec::new(),
                    ..basic()
                },
            ),
            (
                "event-types",
                File {
                    event_types: vec![(1, "cpu-clock".into())],
                    ..basic()
                },
            ),
            (
                "hole",
                File {
                    hole: 4096,
                    ..basic()
                },
            ),
            (
                "gap-and-tail",
                File {
                    gap: vec![0xa5; 32],
                    tail: vec![0xa5; 7],
                    ..basic()
                },
            ),
        ];
        for (name, form) in forms {
            let path = folder.put(name, &form.bytes());
            reads(
                perf,
                Question::Script,
                &path,
                "PERF_RECORD_EXIT(4201:4202):(1:4202)",
            );
        }
        let mut unknown = basic();
        unknown.set_feature(60, b"from the future".to_vec());
        unknown.set_feature(130, b"from farther away".to_vec());
        let path = folder.put("unknown-features", &unknown.bytes());
        reads(perf, Question::Header, &path, "nrcpus avail : 4");
    }
}

/// perf's own implementations of both byte orders judge the twins: the output of a little-endian
/// perf for the little-endian recording is the same as that of a big-endian perf for the big-endian
/// recording.
#[test]
fn perfs_of_both_orders_say_the_same() {
    let folder = Folder::new();
    type Write = fn(bool) -> Vec<u8>;
    let recordings: [(&str, Write); 6] = [
        ("file", file::kitchen_sink),
        ("pipe", pipe::kitchen_sink),
        ("compressed-file", |big| {
            sink::compressed_file(big, kind::COMPRESSED).bytes()
        }),
        ("compressed2-file", |big| {
            sink::compressed_file(big, kind::COMPRESSED2).bytes()
        }),
        ("compressed-pipe", |big| {
            sink::compressed_pipe(big, kind::COMPRESSED).bytes
        }),
        ("compressed2-pipe", |big| {
            sink::compressed_pipe(big, kind::COMPRESSED2).bytes
        }),
    ];
    for (name, write) in recordings {
        let mut said = Vec::new();
        for perf in newest() {
            let path = folder.put(name, &write(is_big(perf)));
            let records = dump(perf, &path);
            assert!(
                records.success(),
                "{perf} does not read {name}: {}",
                records.stderr
            );
            // Each machine has different names of registers.
            let text = records
                .stdout
                .lines()
                .map(|line| match line.strip_prefix(".... ") {
                    Some(register) if register.contains(" 0x") => {
                        register.split("0x").last().unwrap_or_default()
                    }
                    _ => line,
                });
            let header = perf.ask(Question::Header, &path).expect("perf starts");
            assert!(
                header.success(),
                "{perf} does not read the header of {name}: {}",
                header.stderr
            );
            said.push((perf, text.collect::<Vec<_>>().join("\n"), header.stdout));
        }
        for pair in said.windows(2) {
            let [(one, records, header), (other, other_records, other_header)] = pair else {
                continue;
            };
            if let Some((line, other_line)) = records
                .lines()
                .zip(other_records.lines())
                .find(|(line, other)| line != other)
            {
                panic!("{name}:\n{one}: {line}\n{other}: {other_line}");
            }
            assert_eq!(
                records.len(),
                other_records.len(),
                "{name} by {one} and {other}"
            );
            assert_eq!(header, other_header, "{name} by {one} and {other}");
        }
    }
}

#[test]
fn perf_reads_directories() {
    let folder = Folder::new();
    for perf in newest() {
        for compressed in [false, true] {
            let name = format!("{}-{compressed}", perf.name);
            fs::create_dir(folder.0.path().join(&name)).expect("a temporary folder");
            for (file, bytes) in dir::files(is_big(perf), compressed) {
                folder.put(&format!("{name}/{file}"), &bytes);
            }
            let output = perf
                .ask(Question::Script, &folder.0.path().join(&name))
                .expect("perf starts");
            assert!(output.success(), "{perf}: {}", output.stderr);
            // One in each of the three files.
            assert_eq!(
                output.stdout.matches("PERF_RECORD_EXIT").count(),
                3,
                "{perf}:\n{}",
                output.stdout
            );
        }
    }
}

/// Sections that perf does not print, or rejects for valid reasons.
const NOT_SHOWN: [&str; 4] = [
    "COMPRESSED of perf stat",
    "DIR_FORMAT",
    "GROUP_DESC",
    "EVENT_DESC empty",
];

#[test]
fn perf_reads_every_feature() {
    let folder = Folder::new();
    for perf in newest().into_iter().filter(|perf| !is_big(perf)) {
        for case in feature::cases(false)
            .iter()
            .filter(|case| !NOT_SHOWN.contains(&case.name.as_str()))
        {
            let mut file = file::basic(false);
            let (available, online) = case.cpus;
            file.set_feature(7, [available.to_le_bytes(), online.to_le_bytes()].concat());
            file.set_feature(case.bit, case.section.clone());
            let path = folder.put("feature.data", &file.bytes());
            let output = perf.ask(Question::Header, &path).expect("perf starts");
            assert!(
                output.success() && output.stderr.is_empty(),
                "{perf}, {}: {}",
                case.name,
                output.stderr
            );
        }
    }
}

/// Each record in a separate file. Some records need data that such a file does not contain, some
/// have a form that only older perfs read, and some exceed limits of perf.
#[test]
fn perf_reads_every_record() {
    let refused = [
        "HEADER_ATTR of 152",
        "HEADER_TRACING_DATA of 12",
        // perf expects the data after the record.
        "HEADER_TRACING_DATA of simpleperf",
        "CPU_MAP not padded",
        "SAMPLE READ, empty group",
        // perf interprets the first field after the stack as the index.
        "SAMPLE BRANCH_STACK none",
        "SAMPLE BRANCH_STACK counters",
        "SAMPLE BRANCH_STACK hw_idx and counters",
        // Features that require other features before them.
        "HEADER_FEATURE COMPRESSED",
        "HEADER_FEATURE CPU_TOPOLOGY",
        "HEADER_FEATURE CPU_DOMAIN_INFO",
        "HEADER_FEATURE EVENT_DESC empty",
        "HEADER_FEATURE GROUP_DESC",
        "HEADER_FEATURE terminator 32",
        "COMPRESSED",
    ];
    // Records of 100 bytes, which perf 7.2 does not read any more.
    let unaligned = |name: &str| name.starts_with("HEADER_BUILD_ID") && name.contains(" before ");
    // perf cannot determine the events of these values.
    let nameless =
        |name: &str, read_format: u64| name.starts_with("SAMPLE READ") && read_format & 4 == 0;
    let folder = Folder::new();
    for perf in newest().into_iter().filter(|perf| !is_big(perf)) {
        for case in record::cases(false) {
            let refused = refused.iter().any(|name| case.name.starts_with(name));
            if refused
                || unaligned(&case.name)
                || nameless(&case.name, case.attr.read_format)
                || case.kind == kind::AUXTRACE
            {
                continue;
            }
            let events = vec![Event {
                name: "event".into(),
                attr: case.attr.clone(),
                ids: vec![1001, 1002],
            }];
            let mut file = File::new(false, events);
            file.data = record::stream(std::slice::from_ref(&case));
            file.set_feature(7, [4, 0, 0, 0, 4, 0, 0, 0].to_vec());
            let path = folder.put("record.data", &file.bytes());
            let output = dump(perf, &path);
            let complaints = [
                "processing failed",
                "failed to process",
                "can't parse",
                "not 8-byte aligned",
            ];
            let failed = complaints
                .iter()
                .any(|complaint| output.stderr.contains(complaint));
            assert!(
                output.success() && !failed,
                "{perf}, {}: {}",
                case.name,
                output.stderr
            );
            assert!(
                output.stdout.contains("PERF_RECORD_"),
                "{perf}, {}: {}",
                case.name,
                output.stdout
            );
        }
    }
}
