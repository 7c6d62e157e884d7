//! `perfconv dump` shows the same information about every record as perf.

mod details;
mod perf_text;
mod perfs;
mod resolved;
mod sample;

use std::{fs, path::Path};

use perfdata_convert::io::Input;
use perfdata_report::show::dump::Dump;
use perfdata_tests::skipped;
use perfdata_tests::{
    convert::in_shell,
    is_thorough, judge, per_fixture, perf,
    recordings::{self, Endian, Recording},
    snapshot,
    synth::{file, kind, pipe, sink},
};
use serde_json::Value;

fn dump(path: &Path, dump: &Dump) -> Result<String, String> {
    let mut out = Vec::new();
    let input = Input::open(path).map_err(|error| error.to_string())?;
    dump.run(input, &mut out)
        .map_err(|error| error.to_string())?;
    String::from_utf8(out).map_err(|error| error.to_string())
}

/// Returns every record with its bytes.
fn records(path: &Path) -> Result<Vec<Value>, String> {
    let text = dump(path, &Dump::default().with_json(true).with_hex(true))?;
    let items = text
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{error}: {line}")));
    items
        .filter(|item| {
            item.as_ref()
                .map_or(true, |item: &Value| item.get("part").is_none())
        })
        .collect()
}

/// Snapshots of the dumps of small recordings, one of counts and one of samples that read a group.
/// `UPDATE_SNAPSHOTS=1` rewrites them.
#[test]
fn small_recordings_in_every_form() {
    let forms = [
        ("txt", Dump::default()),
        ("jsonl", Dump::default().with_json(true)),
        ("hex", Dump::default().with_hex(true)),
    ];
    for recording in ["6.1-i386-stat-record-I", "6.1-s390x-file-group-S"].map(recordings::fixture) {
        for (extension, form) in &forms {
            let path =
                recordings::root().join(format!("tests/snapshots/{}.{extension}", recording.name));
            snapshot::check(
                &path,
                &dump(&recording.path, form).expect("a fixture is readable"),
            );
        }
    }
}

/// Every byte of every record, and every byte outside of records, has a name.
#[test]
fn every_byte_is_shown() {
    recordings::check_all(&recordings::all(), |recording| {
        let form = Dump::default().with_json(true).with_hex(true);
        let text = match dump(&recording.main_file(), &form) {
            Err(error)
                if recording.name.starts_with("crashers/") && error.contains("at offset") =>
            {
                return Ok(());
            }
            other => other?,
        };
        for line in text.lines() {
            let item: Value =
                serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            let spans = item["spans"].as_array().ok_or("no bytes")?;
            let mut here = 0;
            for span in spans {
                if span["at"] != here || span["field"] == "" {
                    return Err(format!("{here} bytes into {item:#}"));
                }
                here += span["size"].as_u64().unwrap_or(0);
            }
            if item["size"] != here {
                return Err(format!("{here} bytes of {item:#}"));
            }
        }
        Ok(())
    });
}

#[test]
fn types_and_number_are_chosen() {
    let path = recordings::fixture("7.2-x86_64-file-z").path;
    let types = ["comm", "Mmap2", "9"].map(|name| Dump::type_of(name).expect("a type"));
    let form = Dump::default()
        .with_types(types.to_vec())
        .with_limit(Some(30));
    let text = dump(&path, &form).expect("a fixture is readable");
    let mut found: Vec<_> = text
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(found.len(), 30);
    found.sort();
    found.dedup();
    assert_eq!(found, ["COMM", "MMAP2", "SAMPLE"]);

    let error = Dump::type_of("MMAP3").expect_err("no type").to_string();
    assert!(
        error.contains("MMAP3") && error.contains("did you mean MMAP"),
        "{error}"
    );
    let error = Dump::type_of("nonsense").expect_err("no type").to_string();
    assert!(
        error.contains("nonsense") && error.contains("MMAP2") && error.contains("SCHEDSTAT_DOMAIN"),
        "{error}"
    );
}

per_fixture!(says_what_perf_says);

/// Compares with the perf that made the recording, or an equivalent one.
fn says_what_perf_says(recording: &Recording) -> Result<(), String> {
    // perf rejects some of its own recordings.
    if recording.script_text().is_none_or(|text| text.is_empty()) {
        return Ok(());
    }
    match judge::native(recording) {
        Some(perf) => perfs::compare_with_registers(perf, &recording.path),
        None => Ok(()),
    }
}

/// All available recordings except those that a fuzzer made, for which perf does no checks.
/// Recordings of an unknown perf are compared with the oldest perf that reads them: newer ones omit
/// old records that are short, and CPUs that the reading machine does not have.
#[test]
fn says_what_perf_says_of_all() {
    if !is_thorough() {
        skipped::note(skipped::TEST_ALL);
        return;
    }
    let mut recordings = recordings::shared();
    recordings.extend(recordings::corpus());
    recordings.retain(|recording| !recording.name.starts_with("crashers/"));
    recordings::check_all(&recordings, |recording| {
        if recording.recorder.is_some() {
            return says_what_perf_says(recording);
        }
        let judges = judge::judges(recording)?;
        let oldest = judges.into_iter().min_by_key(|perf| perf.version);
        oldest.map_or(Ok(()), |perf| perfs::compare(perf, &recording.path))
    });
}

/// The independent writer's recordings contain items that no available recording has: a record of
/// every type, samples with every field, AUX data.
#[test]
fn says_what_perf_says_of_everything() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    type Write = fn(bool) -> Vec<u8>;
    let recordings: [(&str, Write); 4] = [
        ("file", file::kitchen_sink),
        ("pipe", pipe::kitchen_sink),
        ("compressed", |big| {
            sink::compressed_file(big, kind::COMPRESSED).bytes()
        }),
        ("compressed2", |big| {
            sink::compressed_pipe(big, kind::COMPRESSED2).bytes
        }),
    ];
    for perf in perf::all().iter().filter(|perf| perf.attr_size() >= 144) {
        for (name, write) in recordings {
            let path = folder.path().join(name);
            fs::write(&path, write(perf.endian == Endian::Big)).expect("a temporary file");
            perfs::compare(perf, &path).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// `enum perf_callchain_context` of include/uapi/linux/perf_event.h.
const CONTEXTS: [(&str, i64); 7] = [
    ("PERF_CONTEXT_HV", -32),
    ("PERF_CONTEXT_KERNEL", -128),
    ("PERF_CONTEXT_USER", -512),
    ("PERF_CONTEXT_USER_DEFERRED", -640),
    ("PERF_CONTEXT_GUEST", -2048),
    ("PERF_CONTEXT_GUEST_KERNEL", -2176),
    ("PERF_CONTEXT_GUEST_USER", -2560),
];

/// Returns the output of the command for the samples and deferred callchains of a recording.
fn chains(path: &Path, form: &str) -> Vec<String> {
    let types = "--type SAMPLE --type CALLCHAIN_DEFERRED";
    let output = in_shell(
        recordings::root(),
        &format!("perfconv dump {form} {types} {}", path.display()),
    );
    assert_eq!(output.stderr, "", "{}", path.display());
    output.stdout.lines().map(str::to_owned).collect()
}

fn word(value: &Value) -> u64 {
    let digits = value
        .as_str()
        .and_then(|text| text.strip_prefix("0x"))
        .expect("a number in hexadecimal");
    u64::from_str_radix(digits, 16).expect("a number in hexadecimal")
}

#[test]
fn markers_in_callchains_have_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let everything = folder.path().join("everything.data");
    fs::write(&everything, file::kitchen_sink(false)).expect("a temporary file");
    let fixtures = [
        "6.1-x86_64-file-g",
        "6.1-s390x-file-g",
        "7.2-x86_64-file-defer",
    ];
    let fixtures = fixtures.map(|name| recordings::fixture(name).path);
    let mut seen = std::collections::BTreeSet::new();
    for path in fixtures.into_iter().chain([everything]) {
        let (lines, objects) = (chains(&path, ""), chains(&path, "--json"));
        assert!(
            !objects.is_empty() && lines.len() == objects.len(),
            "{}",
            path.display()
        );
        for (line, object) in lines.iter().zip(&objects) {
            let object: Value = serde_json::from_str(object).expect("JSON");
            let fields = &object["fields"];
            let markers = |value: &Value| {
                CONTEXTS
                    .iter()
                    .find(|(_, context)| context.cast_unsigned() == word(value))
                    .map(|(name, _)| *name)
            };
            let chain = fields["callchain"].as_array().into_iter().flatten();
            let expected: Vec<(u64, &str)> = (0..)
                .zip(chain.map(markers))
                .filter_map(|(at, name)| Some((at, name?)))
                .collect();
            let found = fields["callchain_contexts"]
                .as_array()
                .into_iter()
                .flatten();
            let found: Vec<(u64, &str)> = found
                .filter_map(|context| Some((context["at"].as_u64()?, context["name"].as_str()?)))
                .collect();
            assert_eq!(found, expected, "{object}");
            for (name, context) in CONTEXTS {
                assert!(
                    !line.contains(&format!("{:#x}", context.cast_unsigned())) || found.is_empty(),
                    "{line}"
                );
                let is_there = found.iter().any(|(_, found)| *found == name);
                assert!(
                    !is_there
                        || line.contains(&format!("{name} "))
                        || line.contains(&format!("{name}]")),
                    "{line}"
                );
            }
            seen.extend(found.into_iter().map(|(_, name)| name.to_owned()));
        }
    }
    for name in [
        "PERF_CONTEXT_KERNEL",
        "PERF_CONTEXT_USER",
        "PERF_CONTEXT_USER_DEFERRED",
    ] {
        assert!(seen.contains(name), "{seen:?}");
    }
}

#[test]
fn registers_have_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // The fixture, the field with its registers, and the names of the instruction pointer and the
    // stack pointer.
    let cases = [
        ("6.1-x86_64-file-user-regs", "regs_user", "IP", "SP"),
        ("6.12-x86_64-file-intr-regs", "regs_intr", "IP", "SP"),
        ("6.12-aarch64-file-user-regs", "regs_user", "pc", "sp"),
        ("6.1-s390x-file-intr-regs", "regs_intr", "PC", "R15"),
        ("7.2-s390x-file-user-regs", "regs_user", "PC", "R15"),
    ];
    for (name, field, ip, sp) in cases {
        let path = recordings::fixture(name).path;
        let (lines, objects) = (chains(&path, ""), chains(&path, "--json"));
        let mut compared = 0;
        for (line, object) in lines.iter().zip(&objects) {
            let object: Value = serde_json::from_str(object).expect("JSON");
            let regs = &object["fields"][field];
            let Some(values) = regs["regs"].as_array().filter(|values| !values.is_empty()) else {
                continue;
            };
            let names: Vec<&str> = regs["names"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            assert_eq!(names.len(), values.len(), "{name}: {object}");
            assert!(
                names.contains(&ip) && names.contains(&sp) && !names.contains(&"unknown"),
                "{name}: {names:?}"
            );
            for (register, value) in names.iter().zip(values) {
                assert!(
                    line.contains(&format!("{register}={}", value.as_str().expect("text"))),
                    "{name}: {line}"
                );
            }
            // For registers at the interrupt, the instruction pointer is that of the sample.
            let at = names
                .iter()
                .position(|register| *register == ip)
                .expect("it is there");
            if field == "regs_intr" {
                assert_eq!(values[at], object["fields"]["ip"], "{name}: {object}");
            }
            compared += 1;
        }
        assert!(compared > 0, "{name}");
    }
    // The recording does not identify the machine.
    let nameless = folder.path().join("nameless.data");
    let path = recordings::fixture(cases[0].0).path;
    let output = in_shell(
        folder.path(),
        &format!(
            "perfconv -q --drop ARCH {} -o {}",
            path.display(),
            nameless.display()
        ),
    );
    assert!(output.success(), "{output:?}");
    let objects = chains(&nameless, "--json").concat();
    assert!(
        objects.contains("\"regs\":[") && !objects.contains("\"names\""),
        "{objects}"
    );
}

/// `--skip` and `--limit` show a part of what is shown without them.
#[test]
fn a_part_of_the_records() {
    for name in ["6.1-x86_64-pipe-z", "6.1-s390x-file-g"] {
        let path = recordings::fixture(name).path;
        let lines = |options: &str, input: &str| {
            let command = format!("perfconv dump -q {options} {input}");
            let output = in_shell(recordings::root(), &command);
            assert!(output.success(), "{}", output.stderr);
            let lines: Vec<_> = output.stdout.lines().map(str::to_owned).collect();
            lines
        };
        let input = path.display().to_string();
        for options in [
            "--json",
            "--json --type SAMPLE,COMM",
            "",
            "--resolved --json",
        ] {
            let all = lines(options, &input);
            assert!(all.len() > 40, "{name} {options}: {}", all.len());
            let part = lines(&format!("{options} --skip 7 --limit 30"), &input);
            assert_eq!(part, all[7..37], "{name} {options}");
            let end = lines(&format!("{options} --skip {}", all.len() - 2), &input);
            assert_eq!(end, all[all.len() - 2..], "{name} {options}");
            let none = lines(&format!("{options} --skip {}", all.len()), &input);
            assert!(none.is_empty(), "{name} {options}: {none:?}");
        }
    }
}
