//! `perfconv diff` says what two recordings say differently, and nothing of how they say it.

use std::fs;

use clap::Parser;
use perfdata_convert::{
    cli::Cli,
    cmd::{self, Outcome},
    convert::{
        Stage,
        swap::{Swap, Target, Unknown},
    },
};
use perfdata_core::{
    header::ContainerKind,
    read::{Piece, RecordingReader},
    record::RecordType,
};
use perfdata_tests::{
    convert::{convert, differences},
    per_fixture,
    recordings::{self, Container, Form, Recording},
};

#[test]
fn a_recording_equals_itself() {
    recordings::check_all(&recordings::all(), |recording| {
        match differences(&recording.main_file(), &recording.main_file()) {
            Err(error) if recording.name.starts_with("crashers/") && error.contains("at offset") => Ok(()),
            Ok(lines) if lines.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

mod across_containers {
    perfdata_tests::per_fixture!(super::file_of_pipe);
}

/// A pipe that is cut: what is no record is not in the file.
const CUT: &str = "end of the records: only in A: ";

fn file_of_pipe(recording: &Recording) -> Result<(), String> {
    if !matches!(recording.form, Some(Form { container: Container::Pipe, .. })) {
        return Ok(());
    }
    let file = convert(&recording.path, Some(ContainerKind::File), Vec::new()).map_err(|error| error.to_string())?;
    let found = differences(&recording.path, &file.path())?;
    let cut = recording.name.ends_with("-pipe-cut");
    match &found[..] {
        [] if !cut => Ok(()),
        [end] if cut && end.starts_with(CUT) => Ok(()),
        found => Err(format!("{found:#?}")),
    }
}

per_fixture!(other_byte_order);

fn other_byte_order(recording: &Recording) -> Result<(), String> {
    let swap: Vec<Box<dyn Stage>> = vec![Box::new(Swap::new(Target::Other, Unknown::Error))];
    let swapped = convert(&recording.main_file(), None, swap).map_err(|error| error.to_string())?;
    let found = differences(&recording.main_file(), &swapped.path())?;
    // What is compressed is compressed anew, and the rest of a cut record is not the same in another byte order.
    let allowed = |line: &String| {
        line.starts_with("feature COMPRESSED: ratio ")
            || (recording.name.ends_with("-pipe-cut") && line.starts_with("end of the records:"))
    };
    if found.iter().all(allowed) { Ok(()) } else { Err(format!("{found:#?}")) }
}

/// The offset and size of the record number `number` of a type.
fn place(bytes: &[u8], kind: RecordType, number: usize) -> (usize, usize) {
    let mut reader = RecordingReader::open(bytes.to_vec()).expect("it is read");
    let mut left = number;
    while let Some(piece) = reader.next().expect("it is read") {
        if let Piece::Record(record) = piece
            && record.kind == kind
        {
            if left == 0 {
                return (usize::try_from(record.offset).expect("a small file"), record.bytes.len());
            }
            left -= 1;
        }
    }
    panic!("there are not {number} records of type {kind}");
}

/// What is found after `change` in the bytes of a fixture.
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
        // Behind the header, the instruction pointer; before it, the misc word.
        bytes[at + 8..at + 16].copy_from_slice(&0x1234_u64.to_le_bytes());
        bytes[at + 5] ^= 0x40;
    });
    let [misc, ip] = &found[..] else { panic!("{found:#?}") };
    assert!(misc.starts_with("SAMPLE record at ") && misc.contains(": misc "), "{misc}");
    assert!(misc.ends_with("|EXACT_IP"), "{misc}");
    assert!(ip.contains(": ip 0x") && ip.ends_with(" | 0x1234"), "{ip}");
}

#[test]
fn a_missing_record_is_told_alone() {
    let found = found_after(PIPE, |bytes| {
        let (at, size) = place(bytes, RecordType::SAMPLE, 3);
        bytes.drain(at..at + size);
    });
    assert!(matches!(&found[..], [only] if only.starts_with("SAMPLE record: only in A: at 0x")), "{found:#?}");
    let found = found_after(PIPE, |bytes| {
        let (at, size) = place(bytes, RecordType::MMAP2, 1);
        let copy = bytes[at..at + size].to_vec();
        bytes.splice(at..at, copy);
    });
    assert!(matches!(&found[..], [only] if only.starts_with("MMAP2 record: only in B: at 0x")), "{found:#?}");
}

#[test]
fn changed_metadata_are_told() {
    let found = found_after(PIPE, |bytes| {
        // The first record of a pipe is an attribute: type, size, config, and the period.
        bytes[16 + 8 + 16] ^= 1;
        let name = bytes.windows(8).position(|window| window == b"recorder").expect("the host's name");
        bytes[name] = b'R';
    });
    assert_eq!(found, ["event 0: attr.sample_period 499 | 498", r#"feature HOSTNAME: "recorder" | "Recorder""#]);
}

#[test]
fn the_exit_status_tells() {
    let run = |a: &str, b: &str| {
        let path = |name: &str| recordings::root().join("fixtures").join(name).display().to_string();
        let cli = Cli::try_parse_from(["perfconv", "diff", "--json", &path(a), &path(b)]).expect("right arguments");
        let mut out = Vec::new();
        (cmd::run(cli, &mut out), out)
    };
    let (one, other) = ("6.1-x86_64-pipe-stat.data", "6.1-s390x-pipe-stat.data");
    let (same, nothing) = run(one, one);
    assert_eq!((same.expect("both are read").exit_code(), nothing.len()), (0, 0));
    let (different, lines) = run(one, other);
    assert_eq!(different.expect("both are read"), Outcome::Found);
    assert_eq!(Outcome::Found.exit_code(), 1);
    for line in String::from_utf8(lines).expect("UTF-8").lines() {
        let difference: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(
            difference["what"].is_string() && (difference["a"].is_string() || difference["b"].is_string()),
            "{line}"
        );
    }
    // A text that is no recording, and a file that is not there.
    assert_eq!(run(one, "6.1-x86_64-pipe-stat.header.txt").0.expect_err("no recording").exit_code(), 2);
    assert_eq!(run("none.data", one).0.expect_err("no file").exit_code(), 2);
}
