//! Limits of the resources that a recording may request, and the options that raise them.

use std::{fs, io::Write, path::PathBuf, process::Stdio};

use perfdata_tests::{
    convert, perf,
    synth::{
        attr::Stamp,
        buf::Buf,
        file::{self, Magic},
        kernel, kind,
        pipe::{Pipe, TERMINATOR},
        record::misc,
        user,
    },
};

fn start() -> Pipe {
    Pipe::new(false, Magic::V2).event(&file::basic(false).events[0])
}

fn with_compressed(data: &[u8]) -> Vec<u8> {
    let body = user::compressed(Buf::new(false), kind::COMPRESSED, data);
    start()
        .terminator(TERMINATOR)
        .record(kind::COMPRESSED, 0, body)
        .bytes
}

/// Returns a record that decompresses to 128 MiB of COMM records.
fn bomb() -> Vec<u8> {
    let comm = [&3_u32.to_le_bytes()[..], &[0, 0, 0, 0x40], &[0; 0x3ff8]].concat();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 19).expect("zstd");
    (0..1 << 13)
        .try_for_each(|_| encoder.write_all(&comm))
        .expect("zstd");
    with_compressed(&encoder.finish().expect("zstd"))
}

/// Returns an empty frame with a window of 256 MiB.
fn window() -> Vec<u8> {
    with_compressed(&[0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3, 1, 0, 0])
}

/// Returns attributes of more than 1 MiB, in a pipe and in a file.
fn events() -> [Vec<u8>; 2] {
    let event = file::basic(false).events[0].clone();
    let pipe = (0..10_000)
        .fold(Pipe::new(false, Magic::V2), |pipe, _| pipe.event(&event))
        .terminator(TERMINATOR);
    let mut file = file::basic(false);
    file.events = vec![event; 10_000];
    [pipe.bytes, file.bytes()]
}

/// Returns mappings at many addresses, and mappings of many files at one address.
fn mappings() -> [Vec<u8>; 2] {
    let basic = file::basic(false);
    let event = &basic.events[0];
    let map = |pipe: Pipe, at: u64, name: &str| {
        let mut body = kernel::mmap(Buf::new(false), (1, 1), [at << 16, 0x1000, 0], name).bytes;
        body.extend(event.attr.trailer(false, &Stamp::SOME));
        pipe.record(
            kind::MMAP,
            misc::USER,
            Buf {
                big: false,
                bytes: body,
            },
        )
    };
    let places = (0..50_000).fold(start(), |pipe, at| map(pipe, at, "/usr/lib/a.so"));
    let files = (0..20_000).fold(start(), |pipe, at| {
        map(pipe, 0, &format!("/usr/lib/{at}.so"))
    });
    [
        places.terminator(TERMINATOR).bytes,
        files.terminator(TERMINATOR).bytes,
    ]
}

struct Room(tempfile::TempDir);

impl Room {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command line, in which IN is the input and OUT the output.
    fn run(&self, line: &str) -> (Option<i32>, String) {
        let mut command = convert::perfconv();
        command.args(line.split(' ').map(|word| match word {
            "IN" => self.path("in").into_os_string(),
            "OUT" => self.path("out").into_os_string(),
            word => word.into(),
        }));
        command.stdin(Stdio::null());
        let output = perf::run(command).expect("perfconv can be started");
        (
            output.status.and_then(|status| status.code()),
            output.stderr,
        )
    }
}

/// Checks that a command refuses the input and names the option, and that it succeeds with the
/// option.
fn check(input: &[u8], lines: &[&str], limit: &str, option: &str) {
    let room = Room(tempfile::tempdir().expect("a temporary folder"));
    fs::write(room.path("in"), input).expect("a temporary file");
    for line in lines {
        let (status, said) = room.run(&format!("{line}{limit}"));
        assert_eq!(status, Some(1), "{line}{limit}: {said}");
        assert!(
            said.contains("at offset ") && said.contains(option),
            "{line}{limit}: {said}"
        );
        assert!(
            !room.path("out").exists(),
            "{line}{limit}: there is an output"
        );
        // The suggested command succeeds.
        let more = said
            .rsplit_once(option)
            .and_then(|(_, rest)| rest.split_whitespace().next());
        let granted = format!("{line} {option} {}", more.expect("the option has a value"));
        let (status, said) = room.run(&granted);
        assert_eq!(status, Some(0), "{granted}: {said}");
        let _ = fs::remove_file(room.path("out"));
    }
}

#[test]
fn a_compressed_record_decodes_to_more_if_that_is_granted() {
    check(
        &bomb(),
        &["convert --decompress IN -o OUT"],
        "",
        "--max-decompressed",
    );
}

#[test]
fn a_window_is_larger_if_that_is_granted() {
    check(
        &window(),
        &["convert --decompress IN -o OUT"],
        "",
        "--max-window-log",
    );
}

#[test]
fn metadata_are_more_if_that_is_granted() {
    let lines = ["info IN", "dump IN", "convert IN -o OUT"];
    for input in events() {
        check(&input, &lines, " --max-metadata 512K", "--max-metadata");
    }
}

#[test]
fn more_may_be_mapped_if_that_is_granted() {
    for input in mappings() {
        check(
            &input,
            &["inject -b --sysroot /proc/tty -i IN -o OUT"],
            " --max-metadata 1M",
            "--max-metadata",
        );
    }
}

/// A file given in an option may be infinite.
#[test]
fn a_file_beside_the_recording_is_bounded_too() {
    let room = Room(tempfile::tempdir().expect("a temporary folder"));
    fs::write(room.path("in"), file::basic(false).bytes()).expect("a temporary file");
    let lines = [
        "convert IN -o OUT --max-metadata 1M --set-raw HOSTNAME=/dev/zero",
        "convert IN -o OUT --build-ids --known-build-ids file:///dev/zero",
    ];
    for line in lines {
        let (status, said) = room.run(line);
        assert_eq!(status, Some(2), "{line}: {said}");
        assert!(
            said.contains("/dev/zero: there are more than "),
            "{line}: {said}"
        );
        assert!(!room.path("out").exists(), "{line}: there is an output");
    }
}

/// Commands that only read do not exceed the limit either.
#[test]
fn who_looks_hears_of_the_limit() {
    let room = Room(tempfile::tempdir().expect("a temporary folder"));
    for (input, limit) in [
        (bomb(), "max-decompressed of 67108864"),
        (window(), "max-window-log of 27"),
    ] {
        fs::write(room.path("in"), input).expect("a temporary file");
        let (_, said) = room.run("dump --type LOST IN");
        assert!(said.contains(limit), "{said}");
    }
}
