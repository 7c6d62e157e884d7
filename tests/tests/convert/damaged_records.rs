//! Every conversion refuses damage among the records; only damage at the end may be discarded.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use perfdata_tests::convert::{Whole, perfconv};
use perfdata_tests::recordings::fixture;
use perfdata_tests::synth::file::Magic;
use perfdata_tests::synth::pipe::Pipe;
use perfdata_tests::synth::{self, Buf, dir, feature_system, kind, record, user, zstd};

/// Conversions other than copying, and whether their output is a pipe.
const CONVERSIONS: &[&[&str]] = &[
    &["pipe2file"],
    &["file2pipe"],
    &["--to", "dir"],
    &["--swap-endian"],
    &["--swap-endian", "--unknown", "keep"],
    &["--compress"],
    &["--decompress"],
    &["--compat", "6.1"],
    &["--build-ids=all", "--sysroot", "."],
    &["--drop", "HOSTNAME"],
    &["--set", "HOSTNAME=x"],
];

/// Returns the exit status, the messages and the output of a command.
fn run(mut command: Command) -> (Option<i32>, String, Vec<u8>) {
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("perfconv runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
        output.stdout,
    )
}

/// Returns the offset and size of each SAMPLE in the bytes of a recording.
fn samples(bytes: &[u8]) -> Vec<(usize, usize)> {
    let Whole {
        stream,
        records,
        records_end,
        container_layout,
        ..
    } = Whole::read(bytes.to_vec()).expect("a recording");
    let start = match container_layout {
        perfdata_core::container_layout::ContainerLayout::File(file) => {
            file.header.data.offset as usize
        }
        perfdata_core::container_layout::ContainerLayout::Pipe(_) => bytes.len() - stream.len(),
    };
    let ends = records
        .iter()
        .skip(1)
        .map(|record| record.0)
        .chain([records_end]);
    let all = records
        .iter()
        .zip(ends)
        .map(|(&(at, kind), end)| (kind.0, start + at, end - at));
    all.filter(|record| record.0 == kind::SAMPLE)
        .map(|(_, at, size)| (at, size))
        .collect()
}

fn with_size(bytes: &[u8], record: usize, size: u16) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[record + 6..record + 8].copy_from_slice(&size.to_le_bytes());
    bytes
}

/// Returns ways to damage the records of a recording, each with the offset of the resulting error.
fn damages(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>, usize)> {
    let samples = samples(bytes);
    let middle = samples[samples.len() / 2].0;
    let last = samples[samples.len() - 2].0;
    let mut garbage = bytes.to_vec();
    garbage[middle..middle + 40].copy_from_slice(&[0xa5; 40]);
    vec![
        ("a size of 0", with_size(bytes, middle, 0), middle),
        ("a size of 7", with_size(bytes, middle, 7), middle),
        (
            "a size beyond the end",
            with_size(bytes, middle, 60_000),
            middle,
        ),
        (
            "a size beyond the end near it",
            with_size(bytes, last, 60_000),
            last,
        ),
        ("garbage", garbage, middle),
    ]
}

#[test]
fn damage_among_records_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["6.1-x86_64-pipe-default", "6.1-x86_64-file-default"] {
        let whole = fs::read(fixture(name).path).expect("a fixture");
        let mut damages = damages(&whole);
        if name.contains("pipe") {
            let behind: Vec<u8> = (100..200).collect();
            damages.push((
                "garbage behind the records",
                [whole.clone(), behind].concat(),
                whole.len(),
            ));
        }
        for (what, bytes, offset) in damages {
            let input = folder.path().join("in.data");
            let output = folder.path().join("out.data");
            fs::write(&input, &bytes).expect("a file");
            for &conversion in CONVERSIONS {
                let is_copy = matches!(
                    (conversion[0], name.contains("pipe")),
                    ("pipe2file", false) | ("file2pipe", true)
                ) || (conversion == ["--to", "dir"] && !name.contains("pipe"));
                let mut command = perfconv();
                command
                    .current_dir(&folder)
                    .args(conversion)
                    .args(["-q", "in.data", "-o", "out.data"]);
                let (status, said, _) = run(command);
                if is_copy {
                    assert_eq!(status, Some(0), "{name}, {what}, {conversion:?}: {said}");
                    let written = if output.is_dir() {
                        output.join("data")
                    } else {
                        output.clone()
                    };
                    assert!(
                        fs::read(written).expect("an output") == bytes,
                        "{name}, {what}, {conversion:?}"
                    );
                } else {
                    assert_eq!(status, Some(1), "{name}, {what}, {conversion:?}: {said}");
                    assert!(
                        said.contains(&format!("offset {offset:#x}:")),
                        "{name}, {what}, {conversion:?}: {said}"
                    );
                    assert!(!output.exists(), "{name}, {what}, {conversion:?}");
                }
                let _ = fs::remove_dir_all(&output);
                let _ = fs::remove_file(&output);
            }
            // Nothing is written to standard output either, and the error suggests the next
            // command.
            let other = if name.contains("pipe") {
                "pipe2file"
            } else {
                "file2pipe"
            };
            let mut command = perfconv();
            command
                .current_dir(&folder)
                .args([other, "in.data", "-o", "-"]);
            let (status, said, written) = run(command);
            assert_eq!(
                (status, written.len()),
                (Some(1), 0),
                "{name}, {what}: {said}"
            );
            assert!(
                said.contains("perfconv: try: perfconv recover in.data -o"),
                "{name}, {what}: {said}"
            );
            // A copy contains everything.
            let mut command = perfconv();
            command
                .current_dir(&folder)
                .args(["-q", "in.data", "-o", "out.data"]);
            assert_eq!(run(command).0, Some(0));
            assert!(
                fs::read(&output).expect("a copy") == bytes,
                "{name}, {what}"
            );
            fs::remove_file(&output).expect("it is there");
            for (report, status) in [("verify", 1), ("info", 0)] {
                let mut command = perfconv();
                command.args([report]).arg(&input);
                let (found, said, text) = run(command);
                assert_eq!(found, Some(status), "{name}, {what}: {said}");
                let text = String::from_utf8_lossy(&text);
                assert!(
                    text.contains(&format!("{offset:#x}: ")) && text.contains(": corrupt; "),
                    "{what}: {text}"
                );
            }
        }
    }
}

#[test]
fn what_a_stream_ends_with_may_be_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = fs::read(fixture("6.1-x86_64-pipe-default").path).expect("a fixture");
    let text = b"[ perf record: Woken up 1 times to write data ]\n[ perf record: Captured and wrote 0.016 MB - ]\n";
    let last = samples(&whole).last().copied().expect("a sample").0;
    let tails = [
        (
            whole[..last + 20].to_vec(),
            "the last 20 bytes are an incomplete record",
            "the recording ends inside this record",
        ),
        (
            whole[..last + 5].to_vec(),
            "the last 5 bytes are an incomplete record",
            "the recording ends inside this record",
        ),
        (
            [&whole[..], text].concat(),
            "the last 95 bytes are messages of perf record",
            ": messages of perf record",
        ),
    ];
    for (bytes, warning, meaning) in tails {
        fs::write(folder.path().join("in.data"), &bytes).expect("a file");
        for &conversion in CONVERSIONS {
            let mut command = perfconv();
            command
                .current_dir(&folder)
                .args(conversion)
                .args(["in.data", "-o", "out.data"]);
            let (status, said, _) = run(command);
            assert_eq!(status, Some(0), "{conversion:?}: {said}");
            assert!(said.contains(warning), "{conversion:?}: {said}");
            let output = folder.path().join("out.data");
            let _ = fs::remove_dir_all(&output);
            let _ = fs::remove_file(&output);
        }
        let mut command = perfconv();
        command.current_dir(&folder).args(["verify", "in.data"]);
        let (status, _, text) = run(command);
        let text = String::from_utf8_lossy(&text);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains(meaning), "{text}");
    }
}

/// Returns a pipe with one compressed record that contains `records`.
fn compressed(records: &[u8]) -> Vec<u8> {
    let basic = synth::file::basic(false);
    let mut pipe = Pipe::new(false, Magic::V2).event(&basic.events[0]);
    pipe = pipe
        .feature(21, &[0; 16])
        .feature(27, &feature_system::compressed(Buf::new(false)).bytes);
    pipe = pipe.terminator(32);
    let body = user::compressed(
        Buf::new(false),
        kind::COMPRESSED,
        &zstd::Stream::default().pack(records),
    );
    [
        pipe.bytes,
        record::frame(false, kind::COMPRESSED, 0, &body.bytes),
    ]
    .concat()
}

#[test]
fn damage_in_compressed_data_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cases = synth::file::basic_records(false, &synth::file::basic(false).events[0]);
    cases.retain(|case| case.kind == kind::SAMPLE);
    let records = record::stream(&cases).repeat(20);
    let size = usize::from(u16::from_le_bytes([records[6], records[7]]));
    let near_the_end = (0..)
        .map(|n| n * size)
        .take_while(|at| at + 5 * size < records.len())
        .last()
        .expect("records");
    assert_eq!(
        u16::from_le_bytes([records[near_the_end + 6], records[near_the_end + 7]]),
        size as u16
    );
    for (what, records, is_damage) in [
        ("a size of 0", with_size(&records, 10 * size, 0), true),
        (
            "a size beyond the end",
            with_size(&records, near_the_end, 60_000),
            true,
        ),
        (
            "a record that is cut",
            records[..records.len() - 8].to_vec(),
            false,
        ),
    ] {
        fs::write(folder.path().join("in.data"), compressed(&records)).expect("a file");
        for conversion in [
            &["--decompress"] as &[&str],
            &["--compress"],
            &["--swap-endian"],
            &["--to", "file"],
        ] {
            let mut command = perfconv();
            command
                .current_dir(&folder)
                .args(conversion)
                .args(["in.data", "-o", "out.data"]);
            let (status, said, _) = run(command);
            let output = folder.path().join("out.data");
            // Nothing is lost if compressed records are preserved.
            let is_refused = is_damage && (conversion != ["--to", "file"] || what == "a size of 0");
            assert_eq!(
                status,
                Some(i32::from(is_refused)),
                "{what}, {conversion:?}: {said}"
            );
            assert_eq!(output.exists(), !is_refused, "{what}, {conversion:?}");
            assert_eq!(
                said.contains("perfconv: try: perfconv recover"),
                is_refused,
                "{what}, {conversion:?}: {said}"
            );
            let _ = fs::remove_file(&output);
        }
    }
}

#[test]
fn damage_in_a_directory_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for compressed in [false, true] {
        let input = folder.path().join("in.dir");
        fs::create_dir(&input).expect("a folder");
        for (name, mut bytes) in dir::files(false, compressed) {
            if name == "data.1" {
                // The second record.
                let second = usize::from(u16::from_le_bytes([bytes[6], bytes[7]]));
                bytes = with_size(&bytes, second, 0);
            }
            fs::write(input.join(name), bytes).expect("a file");
        }
        for conversion in [
            &["--to", "file"] as &[&str],
            &["--to", "pipe"],
            &["--to", "dir", "--swap-endian"],
        ] {
            let mut command = perfconv();
            command
                .current_dir(&folder)
                .args(conversion)
                .args(["-q", "in.dir", "-o", "out.data"]);
            let (status, said, _) = run(command);
            assert_eq!(status, Some(1), "{conversion:?}: {said}");
            assert!(
                said.contains("data.1: ") && said.contains("offset 0x"),
                "{conversion:?}: {said}"
            );
            assert!(!folder.path().join("out.data").exists());
        }
        fs::remove_dir_all(Path::new(&input)).expect("it is there");
    }
}

/// An AUXTRACE record with an excessive size would include the following records in its data.
#[test]
fn records_taken_for_aux_data_are_missed() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = fs::read(fixture("6.1-x86_64-pipe-default").path).expect("a fixture");
    let middle = samples(&whole)[100].0;
    let auxtrace = |size: u64| {
        let body = [size, 0, 0]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .chain([0; 16])
            .collect::<Vec<u8>>();
        record::frame(false, kind::AUXTRACE, 0, &body)
    };
    for (size, behind, what) in [
        (1 << 20, &whole[middle..], "the records are corrupt here"),
        // In a file, readers would not know where the data ends either.
        (
            1 << 20,
            &[0x55; 9000],
            "the recording ends inside this record: a file cannot contain it",
        ),
    ] {
        let bytes = [&whole[..middle], &auxtrace(size), behind].concat();
        fs::write(folder.path().join("in.data"), &bytes).expect("a file");
        let mut command = perfconv();
        command
            .current_dir(&folder)
            .args(["pipe2file", "-f", "in.data", "-o", "out.data"]);
        let (found, said, _) = run(command);
        assert_eq!(found, Some(1), "{said}");
        assert!(
            said.contains(what) && said.contains("perfconv: try: perfconv recover in.data"),
            "{said}"
        );
        // If a block of AUX data is truncated, the rest can be extracted.
        let is_cut = what.contains("ends inside");
        let mut command = perfconv();
        command
            .current_dir(&folder)
            .args(["extract-aux", "in.data", "-o", "aux"]);
        let (found, said, _) = run(command);
        assert_eq!(found, Some(i32::from(!is_cut)), "{said}");
        assert_eq!(folder.path().join("aux").exists(), is_cut, "{said}");
    }
}
