//! Every kind of error: the message and the exit status.
//!
//! `UPDATE_SNAPSHOTS=1` rewrites `tests/snapshots/errors.txt`.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use perfdata_tests::skipped;
use perfdata_tests::{
    convert, perf, recordings, snapshot,
    synth::{
        buf::Buf,
        file::{self, Magic},
        kind,
        pipe::{Pipe, TERMINATOR},
    },
};

/// Command lines that fail, by cause. `#` starts the name of a cause.
const CASES: &str = "\
# The input cannot be opened
info nowhere.data
nowhere.data
inof
inof good.data
good.data out.data
convert good.data out.data
info folder
pipe2file - -o out.data
verify
diff nowhere.data good.data
good.data -o out.data --build-ids --sysroot nowhere
inject -b -i good.data -o out.data --vmlinux nowhere
# The input cannot be read
info /proc/self/mem
# The input is no recording
info empty.data
info text.data
info json.data
info program.data
--swap-endian packed.gz -o out.data
info 'packed two.xz'
good.data -o - --set-raw HOSTNAME=nowhere
diff good.data text.data
diff packed.gz good.data
info archive.tar
info archive.tgz
info profile.pb.gz
info trace.dat
info simple.data
info firefox.json
verify text.data packed.gz
info - < <(cat packed.gz)
info < <(cat archive.tgz)
--swap-endian - -o out.data < <(cat trace.dat)
info - < <(cat text.data)
diff good.data - < <(cat archive.tar)
# The input ends too early
info short-header.data
info short-attribute.data
info short-pipe.data
file2pipe short-attribute.data -o out.data
# The input is damaged
--swap-endian damaged.data -o out.data
--build-ids=all damaged.data -o out.data
--decompress not-zstd.data -o out.data
# The input asks for too much
--decompress bomb.data -o out.data
--decompress window.data -o out.data
info --max-metadata 100 good.data
dump --max-metadata 100 start.data
# A meaning is needed that nobody knows
--swap-endian unknown.data -o out.data
--swap-endian --unknown error unknown.data -o out.data
# The recording lacks what the conversion needs
pipe2file nothing.data -o out.data
--swap-endian - -o out.data < <(cat late.data)
--decompress cut.data -o out.data
--compress unfinished.data -o out.data
--mmap2-build-ids compressed.data -o out.data
# The container has no room
--to pipe large.data -o out.data
# The output is refused
good.data -o good.data
good.data -o text.data
-q good.data -o text.data
good.data -o folder
good.data -o nowhere/out.data
good.data -o /dev/full
file2pipe good.data -o /dev/full
# The options make no sense
good.data --to
--to files good.data -o out.data
--endian middle good.data -o out.data
--swap-endian --endian big good.data -o out.data
--compress=99 good.data -o out.data
--compress --decompress good.data -o out.data
--compat new good.data -o out.data
--compat 5.1 --compress good.data -o out.data
pipe2file --to pipe good.data -o out.data
--sysroot / good.data -o out.data
--build-ids --known-build-ids nonsense good.data -o out.data
--set HOSTNAME good.data -o out.data
--set HOSTNAM=x good.data -o out.data
--set NRCPUS=many good.data -o out.data
--set BUILD_ID=x good.data -o out.data
--set HOSTNAME=x --drop HOSTNAME good.data -o out.data
--drop 4711 good.data -o out.data
inject --itrace=k -i good.data -o out.data
inject --strip -i good.data -o out.data
inject --vm-time-correlation -i good.data -o out.data
dump --type SAMPEL good.data
dump --type nonsense good.data
dump --limit many good.data
info --max-metadata many good.data
info --max-window-log 99 good.data
-o out.data info good.data
man inof
completions tcsh
";

fn fill(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).expect("a file can be written")
    };
    let link = |name: &str, fixture: &str| {
        symlink(recordings::fixture(fixture).path, folder.join(name)).expect("a link can be made");
    };
    let read = |fixture: &str| fs::read(recordings::fixture(fixture).path).expect("a fixture");
    fs::create_dir(folder.join("folder")).expect("a folder can be made");
    link("unfinished.data", "7.2-x86_64-file-crashed");
    link("compressed.data", "7.2-x86_64-file-z");
    let file = read("6.1-x86_64-file-default");
    write("good.data", &file);
    write("empty.data", b"");
    write(
        "text.data",
        b"swapper     0 [000]  10.467: cpu-clock: ffffffff81a\n",
    );
    write("json.data", b"{\"linux-perf-json-version\": 1}\n");
    write("program.data", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    write(
        "packed.gz",
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x0b\x70\x0d\x72\xf3",
    );
    let mut tar = vec![0; 512];
    tar[..11].copy_from_slice(b"good.data\0\0");
    tar[257..262].copy_from_slice(b"ustar");
    let gzip = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes)
            .and_then(|()| gzip.finish())
            .expect("gzip")
    };
    write("archive.tar", &tar);
    write("archive.tgz", &gzip(&tar));
    write(
        "profile.pb.gz",
        &gzip(&[0x0a, 4, 0x08, 1, 0x10, 2, 0x0a, 4, 0x08, 3]),
    );
    write("trace.dat", b"\x17\x08\x44tracing6\0\0\x08");
    write("simple.data", b"SIMPLEPERF\x01\0");
    write("firefox.json", b"{\"meta\":{\"interval\":1}}");
    write(
        "packed two.xz",
        b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0\x21\x01",
    );
    write("big.bin", &[0x55; 70_000]);
    write("cut.data", &file[..9000]);
    write("short-header.data", &file[..60]);
    write("short-attribute.data", &file[..150]);
    write("short-pipe.data", &read("6.1-x86_64-pipe-default")[..10]);

    let event = &file::basic(false).events[0];
    let start = || {
        Pipe::new(false, Magic::V2)
            .event(event)
            .terminator(TERMINATOR)
    };
    let buf = || Buf::new(false);
    write(
        "nothing.data",
        &Pipe::new(false, Magic::V2)
            .record(kind::COMM, 0, buf().u64(0).u64(0))
            .bytes,
    );
    write(
        "damaged.data",
        &start().record(kind::MMAP2, 0, buf().u64(1)).bytes,
    );
    write("unknown.data", &start().record(4711, 0, buf().u64(1)).bytes);
    write(
        "late.data",
        &Pipe::new(false, Magic::V2)
            .record(kind::COMM, 0, buf().u64(0).u64(0))
            .event(event)
            .bytes,
    );
    write(
        "not-zstd.data",
        &start()
            .record(kind::COMPRESSED, 0, buf().bytes(&[0x55; 104]))
            .bytes,
    );
    let comm = [3_u32.to_le_bytes(), [0, 0, 0, 0x40]].concat();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 19).expect("zstd");
    for _ in 0..1 << 14 {
        encoder
            .write_all(&comm)
            .and_then(|()| encoder.write_all(&[0; 0x3ff8]))
            .expect("zstd");
    }
    let bomb = encoder.finish().expect("zstd");
    let line = "-q --set-raw CMDLINE=big.bin good.data -o large.data";
    let output = run(folder, line);
    assert!(output.success(), "perfconv {line}: {}", output.stderr);
    write("start.data", &start().bytes);
    // Neither content size nor checksum; a window of 1 GiB, one empty last block.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3, 1, 0, 0];
    write(
        "window.data",
        &start()
            .record(kind::COMPRESSED, 0, buf().bytes(&window).pad(8))
            .bytes,
    );
    write(
        "bomb.data",
        &start()
            .record(kind::COMPRESSED, 0, buf().bytes(&bomb).pad(8))
            .bytes,
    );
}

/// Runs `perfconv line` in a shell in `folder`.
fn run(folder: &Path, line: &str) -> perf::Output {
    convert::in_shell(folder, &format!("perfconv {line}"))
}

#[test]
fn every_error_says_what_where_and_what_next() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let before = fs::read_dir(&folder).expect("the folder").count();
    let mut text =
        String::from("What perfconv says when it fails, on standard error, and its exit status.\n");
    for line in CASES.lines() {
        if line.starts_with('#') {
            writeln!(text, "\n{line}").expect("writing to a string");
            continue;
        }
        let output = run(folder.path(), line);
        let status = output
            .status
            .and_then(|status| status.code())
            .expect("no signal");
        assert!(matches!(status, 1 | 2), "perfconv {line}: {status}");
        assert_eq!(output.stdout, "", "perfconv {line}");
        writeln!(
            text,
            "\n$ perfconv {line}\n{}exit status {status}",
            output.stderr
        )
        .expect("writing to a string");
        assert_eq!(
            fs::read_dir(&folder).expect("the folder").count(),
            before,
            "perfconv {line} left something behind"
        );
    }
    snapshot::check(
        &recordings::root().join("tests/snapshots/errors.txt"),
        &text,
    );
}

/// The commands after `try:` have the promised effect.
#[test]
fn what_is_to_be_tried_works() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let mut tried = 0;
    for line in [
        "--swap-endian unknown.data -o out.data",
        "--mmap2-build-ids compressed.data -o out.data",
        "--to pipe large.data -o out.data",
        "--compress unfinished.data -o out.data",
        "good.data -o text.data",
        "--sysroot / good.data -o out.data",
        "--swap-endian 'packed again.gz' -o out.data",
    ] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let good = fs::read(folder.path().join("good.data")).expect("a file");
        let packed = gzip
            .write_all(&good)
            .and_then(|()| gzip.finish())
            .expect("gzip");
        fs::write(folder.path().join("packed again.gz"), packed).expect("a file can be written");
        let said = run(folder.path(), line).stderr;
        let next = said
            .lines()
            .find_map(|line| line.strip_prefix("perfconv: try: "));
        let next = next.unwrap_or_else(|| panic!("perfconv {line} has no way out: {said}"));
        let output = run(folder.path(), &format!("--version; {next}"));
        assert!(output.success(), "{next}: {}", output.stderr);
        fs::remove_file(folder.path().join("out.data")).ok();
        tried += 1;
    }
    assert_eq!(tried, 7);
}

/// perf record as root creates recordings that other users cannot read.
#[test]
fn the_recording_of_another_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret.data");
    fs::write(&path, b"PERFILE2").expect("a file can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("the mode can be set");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("the mode can be set");
    // root can read all files.
    let root = fs::File::open(&path).is_ok();
    let said = run(
        folder.path(),
        if root {
            "--version; setpriv --reuid=65534 perfconv info secret.data"
        } else {
            "info secret.data"
        },
    );
    if !said.stderr.contains("secret.data") {
        skipped::note("root, to run as another user");
        return;
    }
    let expected = "perfconv: error: secret.data: Permission denied (os error 13)\n\
                    perfconv: try: sudo cat secret.data | perfconv info -\n";
    assert_eq!(said.stderr, expected);
}
