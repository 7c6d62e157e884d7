//! `perfconv diff` shows different contents of two recordings, and ignores different
//! representations.

use std::fs;

use clap::Parser;
use perfconv::cli::Cli;
use perfconv::cmd::{self, Outcome};
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::{
    header::ContainerKind,
    read::{RecordingReader, StreamItem},
    record::RecordType,
};
use perfdata_tests::{
    convert::{convert, differences, in_shell},
    per_fixture,
    recordings::{self, Container, Form, Recording},
};

#[test]
fn a_recording_equals_itself() {
    recordings::check_all(&recordings::all(), |recording| {
        match differences(&recording.main_file(), &recording.main_file()) {
            Err(error)
                if recording.name.starts_with("crashers/") && error.contains("at offset") =>
            {
                Ok(())
            }
            Ok(lines) if lines.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

mod across_containers {
    perfdata_tests::per_fixture!(super::file_of_pipe);
}

/// The difference for a truncated pipe: bytes that are not a record are not in the file.
const CUT: &str = "end of the records: only in A: ";

fn file_of_pipe(recording: &Recording) -> Result<(), String> {
    if !matches!(
        recording.form,
        Some(Form {
            container: Container::Pipe,
            ..
        })
    ) {
        return Ok(());
    }
    let file = convert(&recording.path, Some(ContainerKind::File), Vec::new())
        .map_err(|error| error.to_string())?;
    let mut found = differences(&recording.path, &file.path())?;
    // Readers of files rely on these.
    found.retain(|line| !is_added(line));
    let cut = recording.name.ends_with("-pipe-cut");
    match &found[..] {
        [] if !cut => Ok(()),
        [end] if cut && end.starts_with(CUT) => Ok(()),
        found => Err(format!("{found:#?}")),
    }
}

/// Returns whether a difference is a section that a written file gets, because readers rely on it.
fn is_added(difference: &str) -> bool {
    let mut sections = ["HOSTNAME", "ARCH", "EVENT_DESC"].into_iter();
    sections.any(|id| difference.starts_with(&format!("feature {id}: only in B: ")))
}

per_fixture!(other_byte_order);

fn other_byte_order(recording: &Recording) -> Result<(), String> {
    let swap: Vec<Box<dyn Stage>> = vec![Box::new(Swap::new(Target::Other, Unknown::Error))];
    let swapped = match convert(&recording.main_file(), None, swap) {
        // perf inject overwrote the section with attributes.
        Err(error) if error.to_string().contains("cannot be read") => return Ok(()),
        other => other.map_err(|error| error.to_string())?,
    };
    let found = differences(&recording.main_file(), &swapped.path())?;
    // Compressed data is compressed again, and the rest of a truncated record is different in the
    // other byte order.
    let allowed = |line: &String| {
        line.starts_with("feature COMPRESSED: ratio ")
            || is_added(line)
            || (recording.name.ends_with("-pipe-cut") && line.starts_with("end of the records:"))
    };
    if found.iter().all(allowed) {
        Ok(())
    } else {
        Err(format!("{found:#?}"))
    }
}

/// Returns the offset and size of the record with this number among those of a type.
fn place(bytes: &[u8], kind: RecordType, number: usize) -> (usize, usize) {
    let mut reader = RecordingReader::open(bytes.to_vec()).expect("it is read");
    let mut left = number;
    while let Some(item) = reader.next().expect("it is read") {
        if let StreamItem::Record(record) = item
            && record.kind == kind
        {
            if left == 0 {
                return (
                    usize::try_from(record.offset).expect("a small file"),
                    record.bytes.len(),
                );
            }
            left -= 1;
        }
    }
    panic!("there are not {number} records of type {kind}");
}

/// Returns the differences after `change` of the bytes of a fixture.
fn found_after(name: &str, change: impl Fn(&mut Vec<u8>)) -> Vec<String> {
    let original = recordings::fixture(name).path;
    let mut bytes = fs::read(&original).expect("a fixture");
    change(&mut bytes);
    let changed = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(changed.path(), bytes).expect("it can be written");
    differences(&original, changed.path()).expect("both are read")
}

const PIPE: &str = "6.1-x86_64-pipe-default";

#[test]
fn a_changed_field_is_told() {
    let found = found_after(PIPE, |bytes| {
        let (at, _) = place(bytes, RecordType::SAMPLE, 3);
        // The instruction pointer follows the header; the misc word is in the header.
        bytes[at + 8..at + 16].copy_from_slice(&0x1234_u64.to_le_bytes());
        bytes[at + 5] ^= 0x40;
    });
    let [misc, ip] = &found[..] else {
        panic!("{found:#?}")
    };
    assert!(
        misc.starts_with("SAMPLE record at ") && misc.contains(": misc "),
        "{misc}"
    );
    assert!(misc.ends_with("|EXACT_IP"), "{misc}");
    assert!(ip.contains(": ip 0x") && ip.ends_with(" | 0x1234"), "{ip}");
}

#[test]
fn a_missing_record_is_told_alone() {
    let found = found_after(PIPE, |bytes| {
        let (at, size) = place(bytes, RecordType::SAMPLE, 3);
        bytes.drain(at..at + size);
    });
    assert!(
        matches!(&found[..], [only] if only.starts_with("SAMPLE record: only in A: at 0x")),
        "{found:#?}"
    );
    let found = found_after(PIPE, |bytes| {
        let (at, size) = place(bytes, RecordType::MMAP2, 1);
        let copy = bytes[at..at + size].to_vec();
        bytes.splice(at..at, copy);
    });
    assert!(
        matches!(&found[..], [only] if only.starts_with("MMAP2 record: only in B: at 0x")),
        "{found:#?}"
    );
}

#[test]
fn changed_metadata_are_told() {
    let found = found_after(PIPE, |bytes| {
        // The first record of a pipe is an attribute: type, size, config, and the period.
        bytes[16 + 8 + 16] ^= 1;
        let name = bytes
            .windows(8)
            .position(|window| window == b"recorder")
            .expect("the host's name");
        bytes[name] = b'R';
    });
    assert_eq!(
        found,
        [
            "event 0: attr.sample_period 499 | 498",
            r#"feature HOSTNAME: "recorder" | "Recorder""#
        ]
    );
}

#[test]
fn the_exit_status_tells() {
    let run = |a: &str, b: &str| {
        let path = |name: &str| {
            recordings::root()
                .join("fixtures")
                .join(name)
                .display()
                .to_string()
        };
        let cli = Cli::try_parse_from(["perfconv", "diff", "--json", &path(a), &path(b)])
            .expect("right arguments");
        let mut out = Vec::new();
        (cmd::run(cli, &mut out), out)
    };
    let (one, other) = ("6.1-x86_64-pipe-stat.data", "6.1-s390x-pipe-stat.data");
    let (same, nothing) = run(one, one);
    assert_eq!(
        (same.expect("both are read").exit_code(), nothing.len()),
        (0, 0)
    );
    let (different, lines) = run(one, other);
    assert_eq!(different.expect("both are read"), Outcome::Found);
    assert_eq!(Outcome::Found.exit_code(), 1);
    for line in String::from_utf8(lines).expect("UTF-8").lines() {
        let difference: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(
            difference["what"].is_string()
                && (difference["a"].is_string() || difference["b"].is_string()),
            "{line}"
        );
    }
    // A text that is no recording, and a file that is not there.
    assert!(
        !run(one, "6.1-x86_64-pipe-stat.header.txt")
            .0
            .expect_err("no recording")
            .is_refusal()
    );
    assert!(!run("none.data", one).0.expect_err("no file").is_refusal());
}

/// Returns the output of `perfconv diff` for two recordings in the folder that contains them, and
/// the exit status.
fn said(words: &str) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, fixture) in [
        ("pipe.data", PIPE),
        ("other.data", "7.2-x86_64-pipe-default"),
    ] {
        std::os::unix::fs::symlink(recordings::fixture(fixture).path, folder.path().join(name))
            .expect("a link");
    }
    let edit = "perfconv -q --set HOSTNAME=x --drop CMDLINE pipe.data -o edited.data;";
    let output = in_shell(folder.path(), &format!("{edit} perfconv diff {words}"));
    assert_eq!(output.stderr, "", "{words}");
    (
        output.stdout,
        output.status.and_then(|status| status.code()),
    )
}

#[test]
fn numbers_come_before_records() {
    let (text, status) = said("pipe.data other.data");
    assert_eq!(status, Some(1));
    let place = |start: &str| {
        let found = text.lines().position(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line starts with {start:?}: {text}"))
    };
    let places = [
        "A: pipe.data: pipe, ",
        "B: other.data: pipe, ",
        "feature ",
        "event 0: ",
        "records ",
        "  MMAP2 ",
        "  all types ",
    ];
    let places: Vec<_> = places.into_iter().map(place).collect();
    assert!(places.is_sorted(), "{places:?}: {text}");
    let first = text
        .lines()
        .position(|line| line.contains(" record at ") || line.contains(" record: only in "));
    assert!(first > places.last().copied(), "{text}");
}

#[test]
fn what_is_left_out_is_counted() {
    let records = |text: &str| {
        text.lines()
            .filter(|line| line.contains(" record at ") || line.contains(" record: only"))
            .count()
    };
    let more = |text: &str| {
        let line = text
            .lines()
            .find(|line| line.ends_with(" of records not shown: --limit 0 shows all"))?;
        line.split(' ').next()?.parse::<usize>().ok()
    };
    let (all, _) = said("--limit 0 pipe.data other.data");
    let total = records(&all);
    assert!(total > 200 && more(&all).is_none(), "{total}");
    for (words, shown) in [("", 100), ("--limit 7", 7)] {
        let (text, status) = said(&format!("{words} pipe.data other.data"));
        assert_eq!(
            (records(&text), more(&text), status),
            (shown, Some(total - shown), Some(1))
        );
    }
    // A program receives all differences, or the number of omitted ones.
    let (lines, _) = said("--json pipe.data other.data");
    let all = lines.lines().count();
    let (lines, _) = said("--json --limit 3 pipe.data other.data");
    let last: serde_json::Value = lines
        .lines()
        .last()
        .and_then(|line| serde_json::from_str(line).ok())
        .expect("JSON");
    assert_eq!(
        last["left_out"],
        all - (lines.lines().count() - 1),
        "{lines}"
    );
}

#[test]
fn numbers_alone() {
    let (text, status) = said("--stat pipe.data pipe.data");
    assert!(
        status == Some(0) && text.contains("  all types") && !text.contains(" record at "),
        "{text}"
    );
    let (text, status) = said("--stat pipe.data edited.data");
    assert_eq!(status, Some(1));
    assert!(
        text.contains("\nfeature HOSTNAME: 1 difference\nfeature CMDLINE: 1 difference\n"),
        "{text}"
    );
    let (text, _) = said("--stat --json pipe.data other.data");
    let stat: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let sum = |name: &str| -> u64 {
        stat["records"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| row[name].as_u64())
            .sum()
    };
    for name in ["a", "b", "changed", "only_in_a", "only_in_b"] {
        assert_eq!(stat["total"][name], sum(name), "{name}: {text}");
    }
    // Items in both recordings are the same or have changed.
    assert_eq!(
        sum("a") - sum("only_in_a"),
        sum("b") - sum("only_in_b"),
        "{text}"
    );
    assert_eq!(stat["a"]["counts"]["records"], 260);
}

#[test]
fn the_status_alone() {
    for words in ["-q", "--brief", "-q --json", "-q --stat"] {
        assert_eq!(
            said(&format!("{words} pipe.data pipe.data")),
            (String::new(), Some(0)),
            "{words}"
        );
        assert_eq!(
            said(&format!("{words} pipe.data edited.data")),
            (String::new(), Some(1)),
            "{words}"
        );
        assert_eq!(
            said(&format!("{words} pipe.data other.data")),
            (String::new(), Some(1)),
            "{words}"
        );
    }
    assert_eq!(said("pipe.data pipe.data"), (String::new(), Some(0)));
}

#[test]
fn verify_says_nothing_where_nothing_is_wanted() {
    for (name, status) in [("7.2-x86_64-file-crashed", 1), (PIPE, 0)] {
        for form in ["", "--json"] {
            let path = recordings::fixture(name).path;
            let output = in_shell(
                recordings::root(),
                &format!("perfconv verify -q {form} {}", path.display()),
            );
            assert_eq!(
                (&*output.stdout, &*output.stderr),
                ("", ""),
                "{name} {form}"
            );
            assert_eq!(
                output.status.and_then(|ended| ended.code()),
                Some(status),
                "{name} {form}"
            );
        }
    }
}
