//! A stream of any length is converted with the same small amount of memory.
//!
//! `PERFCONV_TEST_STREAM_MB` sets the length of the stream; the default is 64 MB.

use std::{
    env, fs,
    fs::File,
    io::{self, BufWriter, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use perfdata_tests::{
    convert::{Whole, perfconv},
    generate::{Generator, Mix},
    measure::peak,
    recordings,
    synth::{self, Buf, feature_system, file::Magic, kind, pipe::Pipe, record, user, zstd},
};

/// Maximum memory of the command in kilobytes, as measured by `/usr/bin/time -v`.
const LIMIT: u64 = 32 << 10;

fn length() -> u64 {
    let megabytes = env::var("PERFCONV_TEST_STREAM_MB")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(64);
    megabytes << 20
}

/// A stream that is generated while it is written: a head, then the same records repeatedly.
trait Stream {
    fn write(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// A real recording whose records are repeated.
struct Repeated {
    head: Vec<u8>,
    records: Vec<u8>,
}

impl Repeated {
    fn of(name: &str) -> Self {
        let bytes = fs::read(recordings::fixture(name).path).expect("a fixture");
        let Whole {
            mut stream,
            records_end,
            ..
        } = Whole::read(bytes.clone()).expect("a recording");
        let head = bytes[..bytes.len() - stream.len()].to_vec();
        stream.truncate(records_end);
        Repeated {
            head,
            records: stream,
        }
    }
}

impl Stream for Repeated {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        (0..length() / self.records.len() as u64).try_for_each(|_| out.write_all(&self.records))
    }
}

/// Compressed records, which are decompressed to find the times of samples.
struct Compressed;

impl Stream for Compressed {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let basic = synth::file::basic(false);
        let mut pipe = Pipe::new(false, Magic::V2).event(&basic.events[0]);
        pipe = pipe
            .feature(21, &[0; 16])
            .feature(27, &feature_system::compressed(Buf::new(false)).bytes);
        out.write_all(&pipe.terminator(32).bytes)?;
        let mut records = synth::file::basic_records(false, &basic.events[0]);
        records.retain(|case| case.kind < 64);
        let records = record::stream(&records).repeat(100);
        let mut packer = zstd::Stream::default();
        (0..length() / records.len() as u64).try_for_each(|_| {
            let body = user::compressed(Buf::new(false), kind::COMPRESSED, &packer.pack(&records));
            out.write_all(&record::frame(false, kind::COMPRESSED, 0, &body.bytes))
        })
    }
}

#[test]
fn memory_does_not_grow_with_the_stream() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, target) = (folder.path().join("input"), folder.path().join("output"));
    let plain = Repeated::of("7.2-x86_64-pipe-default");
    for (name, stream) in [
        ("plain", &plain as &(dyn Stream + Sync)),
        ("compressed", &Compressed),
    ] {
        let mut file = BufWriter::new(File::create(&input).expect("a temporary file"));
        stream
            .write(&mut file)
            .and_then(|()| file.flush())
            .expect("a temporary file");
        drop(file);

        let from_file = peak(pipe2file(&input, &target));
        report(name, "file", &input, &target, from_file);
        fs::remove_file(&input).expect("it was there");

        let mut command = pipe2file(Path::new("-"), &target);
        let (read, write) = io::pipe().expect("a pipe");
        command.stdin(read);
        let from_stream = thread::scope(|scope| {
            scope.spawn(move || {
                let mut out = BufWriter::with_capacity(1 << 16, write);
                stream
                    .write(&mut out)
                    .and_then(|()| out.flush())
                    .expect("perfconv reads to the end");
            });
            peak(command)
        });
        report(name, "stdin", &target, &target, from_stream);
    }
}

/// Recordings of several CPUs, which are sorted by rounds, with events that are the same and with
/// others: their IDs change.
#[test]
fn memory_does_not_grow_with_merged_recordings() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let make = |name: &str, mix: Mix, seed: u64, size: u64| {
        let mut generator = Generator::new(mix, size);
        generator.seed = seed;
        let file = File::create(path(name)).expect("a temporary file");
        generator.file(file).expect("a temporary file");
    };
    let half = length() / 2;
    make("callchains", Mix::Callchains, 1, half);
    make("other", Mix::Callchains, 2, half);
    make("events", Mix::Events, 3, half);
    make("compressed", Mix::Compressed, 4, half);
    for inputs in [
        ["callchains", "other"],
        ["callchains", "events"],
        ["compressed", "callchains"],
    ] {
        let mut command = perfconv();
        let inputs = inputs.map(path);
        command.args(["merge", "-q", "-f"]).args(&inputs);
        command.arg("-o").arg(path("merged"));
        let (status, peak, time) = peak(command);
        let size = fs::metadata(path("merged")).expect("it is there").len();
        eprintln!("{inputs:?}, {} MB: {peak} kB, {time:.1?}", size >> 20);
        assert!(status.success(), "{inputs:?}: {status}");
        assert!(size > length() - (length() >> 4), "{inputs:?}: {size}");
        assert!(
            peak > 0 && peak < LIMIT,
            "{inputs:?}: {peak} kB, not less than {LIMIT}"
        );
    }
}

/// Size of a gap in bytes.
const FAR: u64 = 3 << 30;

/// Writes a file whose records are far after its attributes, with a hole between them.
fn far_away(path: &Path) {
    let whole = fs::read(recordings::fixture("6.1-x86_64-file-default").path).expect("a fixture");
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().expect("eight bytes"));
    let (data, size) = (word(40) as usize, word(48) as usize);
    let mut head = whole[..data].to_vec();
    head[40..48].copy_from_slice(&(data as u64 + FAR).to_le_bytes());
    let mut rest = whole[data..].to_vec();
    let entries = (rest.len() - size).min(
        16 * head[72..104]
            .iter()
            .map(|byte| byte.count_ones() as usize)
            .sum::<usize>(),
    );
    for entry in (size..size + entries).step_by(16) {
        let offset = u64::from_le_bytes(rest[entry..entry + 8].try_into().expect("eight bytes"));
        rest[entry..entry + 8].copy_from_slice(&(offset + FAR).to_le_bytes());
    }
    let mut file = File::create(path).expect("a temporary file");
    file.write_all(&head).expect("room");
    file.seek(SeekFrom::Start(data as u64 + FAR))
        .expect("a file");
    file.write_all(&rest).expect("room");
}

#[test]
fn memory_does_not_grow_with_gaps() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, target) = (folder.path().join("input"), folder.path().join("output"));
    far_away(&input);
    let out = ["-f", "-o", target.to_str().expect("a name")];
    let mut is_measured = false;
    for (args, more) in [
        (&["verify"] as &[&str], &[] as &[&str]),
        (&["info"], &[]),
        (&["dump", "--limit", "5"], &[]),
        (&[], &out),
        (&["--swap-endian"], &out),
        (&["--compress"], &out),
        (&["--set", "HOSTNAME=x"], &out),
        (&["file2pipe"], &out),
        (&["recover"], &out),
    ] {
        let mut command = perfconv();
        command
            .args(args)
            .arg(&input)
            .args(more)
            .stdout(Stdio::null())
            .stdin(Stdio::null());
        let (status, peak, time) = peak(command);
        eprintln!("{args:?}: {peak} kB, {time:.1?}");
        assert!(status.success(), "{args:?}: {status}");
        // The shortest run may be over before its memory is read.
        is_measured |= peak > 0;
        assert!(
            peak < COMPRESSING_LIMIT,
            "{args:?}: {peak} kB, not less than {COMPRESSING_LIMIT}"
        );
        if let Ok(meta) = fs::metadata(&target) {
            // The output also contains the hole.
            assert!(
                meta.blocks() * 512 < 64 << 20,
                "{args:?}: {} kB on the disk",
                meta.blocks() / 2
            );
            assert_eq!(meta.len() > FAR, !args.contains(&"file2pipe"), "{args:?}");
            fs::remove_file(&target).expect("it is there");
        }
    }
    assert!(is_measured);
}

/// Maximum memory for compression in kilobytes, with any number of processors.
const COMPRESSING_LIMIT: u64 = 64 << 10;

#[test]
fn memory_does_not_grow_with_the_level() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, target) = (folder.path().join("input"), folder.path().join("output"));
    let mut file = BufWriter::new(File::create(&input).expect("a temporary file"));
    Repeated::of("7.2-x86_64-pipe-default")
        .write(&mut file)
        .and_then(|()| file.flush())
        .expect("a temporary file");
    for level in [1, 3, 9, 13, 16, 19, 22] {
        let mut command = perfconv();
        command
            .args(["convert", "-q", "-f", &format!("--compress={level}")])
            .arg(&input)
            .arg("-o")
            .arg(&target);
        let (status, peak, time) = peak(command);
        eprintln!("level {level}: {peak} kB, {time:.1?}");
        assert!(status.success(), "level {level}: {status}");
        assert!(
            peak > 0 && peak < COMPRESSING_LIMIT,
            "level {level}: {peak} kB, not less than {COMPRESSING_LIMIT}"
        );
    }
}

fn pipe2file(input: &Path, target: &Path) -> Command {
    let mut command = perfconv();
    command
        .args(["pipe2file", "-q", "-f"])
        .arg(input)
        .arg("-o")
        .arg(target)
        .stdin(Stdio::null());
    command
}

fn report(
    name: &str,
    from: &str,
    input: &Path,
    target: &Path,
    (status, peak, time): (ExitStatus, u64, Duration),
) {
    assert!(status.success(), "{name} stream from {from}: {status}");
    let size = |path: &Path| fs::metadata(path).expect("it is there").len();
    eprintln!(
        "{name}, {} MB from {from}: {peak} kB, {time:.1?}",
        size(target) >> 20
    );
    assert!(
        size(target) > length() / 2 && size(target) <= size(input) + 4096,
        "{name} stream from {from}"
    );
    assert!(
        peak > 0 && peak < LIMIT,
        "{name} stream from {from}: {peak} kB of memory, not less than {LIMIT}"
    );
}
