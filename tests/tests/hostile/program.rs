//! Tests with the program itself, for errors that only it shows, and for inputs that are too large
//! for a copy in memory.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Mutex,
    thread,
    time::Duration,
};

use perfdata_tests::{
    convert::perfconv,
    measure,
    synth::{
        self, Buf,
        attr::{Attr, Stamp, sample_type},
        feature_events::{EVENT_DESC, Event, event_desc},
        feature_system,
        file::Magic,
        kernel, kind,
        pipe::Pipe,
        record::{frame, misc},
        user,
    },
};

use crate::{
    commands::is_printable,
    directories,
    families::{Inputs, Names},
    is_thorough, seeds,
};

/// The name of this family.
pub const NAME: &str = "program";

/// Returns the size in bytes of a stream that would continue.
fn stream_len() -> usize {
    if is_thorough() { 64 << 20 } else { 8 << 20 }
}

/// Returns the decompressed size of a zstd bomb in bytes.
fn bomb_len() -> usize {
    if is_thorough() { 1 << 30 } else { 128 << 20 }
}

/// Maximum memory of the program in kilobytes, in addition to memory that grows with the metadata.
const MEMORY: u64 = 64 << 10;

/// Maximum memory for each byte of metadata: an event is stored with its layout and the offsets of
/// its samples' fields.
const METADATA: u64 = 8;

/// Maximum window of zstd, if the stream requests it: as much as `perf record -z22` uses.
const WINDOW: u64 = 128 << 10;

/// Runs the family, prints its figures, and returns the faults.
pub fn run() -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut faults = Vec::new();
    println!("\nthrough the program:");
    faults.extend(names(folder.path()));
    faults.extend(directories::run(folder.path()));
    faults.extend(bombs(folder.path()));
    faults.extend(streams(folder.path()));
    faults.extend(events(folder.path()));
    faults
}

/// Returns the command in a line in which OUT represents `output`.
fn of_line(line: &str, output: &Path) -> Command {
    let mut command = perfconv();
    command.args(line.split(' ').map(|word| {
        if word == "OUT" {
            output.as_os_str()
        } else {
            word.as_ref()
        }
    }));
    command
}

/// Tests a file of very many events, each with separate IDs.
fn events(folder: &Path) -> Vec<String> {
    const COUNT: u64 = 100_000;
    /// With quadratic time, it would take four times as long or more.
    const LONGEST: Duration = Duration::from_secs(10);
    let (input, output) = (folder.join("events.data"), folder.join("events.out"));
    let basic = synth::file::basic(false);
    let event = |n: u64| Event {
        ids: vec![n + 1],
        ..basic.events[0].clone()
    };
    let bytes = synth::file::File {
        events: (0..COUNT).map(event).collect(),
        ..basic.clone()
    }
    .bytes();
    fs::write(&input, &bytes).expect("a temporary file");
    let mut faults = Vec::new();
    for line in [
        "info",
        "verify",
        "convert --swap-endian -f -o OUT",
        "file2pipe -f -o OUT",
        "recover -f -o OUT",
    ] {
        let mut command = of_line(line, &output);
        command
            .arg(&input)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (status, peak, time) = measure::peak(command);
        println!("{peak:8} kB {time:8.1?}  {COUNT} events in a file: {line}");
        let most = MEMORY + 2 * METADATA * (bytes.len() as u64 >> 10);
        if status.code().is_none_or(|code| code > 1) || peak > most || time > LONGEST {
            faults.push(format!(
                "{COUNT} events in a file: {line}: {status}, {peak} kB, {time:?}"
            ));
        }
    }
    faults
}

/// Tests names with control sequences for terminals: in reports, in JSON, and in errors and
/// warnings.
fn names(folder: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    let (input, output) = (folder.join("names.data"), folder.join("out.data"));
    let lines = [
        "info",
        "info --json",
        "dump",
        "dump --json",
        "verify",
        "verify --json",
        "convert -o OUT -f",
        "convert --swap-endian -o OUT -f",
        "convert --build-ids=all --sysroot /proc/tty -o OUT -f",
    ];
    let mut runs = 0;
    for seed in seeds::synthetic() {
        for number in 0..Names.len() {
            fs::write(&input, Names.make(&seed, number).1).expect("a temporary file");
            for line in lines {
                let mut command = of_line(line, &output);
                let said = command
                    .arg(&input)
                    .stdin(Stdio::null())
                    .output()
                    .expect("perfconv runs");
                let what = format!("{}, names {number}: {line}", seed.name);
                runs += 1;
                for bytes in [&said.stdout, &said.stderr] {
                    match std::str::from_utf8(bytes) {
                        Ok(text) if is_printable(text) => {}
                        Ok(_) => faults.push(format!("{what}: control characters")),
                        Err(error) => faults.push(format!("{what}: {error}")),
                    }
                }
                if said.status.code().is_none_or(|code| code > 1) {
                    faults.push(format!("{what}: {}", said.status));
                }
                let is_json = line.ends_with("--json") && said.status.code() != Some(2);
                let values = serde_json::Deserializer::from_slice(&said.stdout)
                    .into_iter::<serde_json::Value>();
                if is_json && let Some(error) = values.filter_map(Result::err).next() {
                    faults.push(format!("{what}: no JSON: {error}"));
                }
            }
        }
    }
    println!("{runs:8} runs with names that a terminal would obey");
    faults
}

/// Tests compressed records with a huge decompressed size.
fn bombs(folder: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    let record = frame(false, 1000, 0, &[0; 65_520]);
    let zeros = vec![0; 1 << 20];
    for (what, content) in [("zeros", &zeros), ("records", &record)] {
        for (limit, mmap_len) in [
            ("", None),
            (" and a section that allows it", Some(u32::MAX)),
        ] {
            let input = folder.join("bomb.data");
            fs::write(&input, bomb(content, mmap_len)).expect("a temporary file");
            for line in [
                "info",
                "dump",
                "verify",
                "convert --decompress -f -o /dev/null",
            ] {
                let mut command = perfconv();
                command.args(line.split(' ')).arg(&input);
                command
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                let (status, peak, time) = measure::peak(command);
                println!("{peak:8} kB {time:8.1?}  a bomb of {what}{limit}: {line}");
                if status.code().is_none_or(|code| code > 1) || peak > MEMORY + WINDOW {
                    faults.push(format!(
                        "a bomb of {what}{limit}: {line}: {status}, {peak} kB"
                    ));
                }
            }
        }
    }
    faults
}

/// Returns a pipe with one compressed record that decompresses to repetitions of `content`.
fn bomb(content: &[u8], mmap_len: Option<u32>) -> Vec<u8> {
    let mut packer = zstd::stream::Encoder::new(Vec::new(), 1).expect("zstd starts");
    packer
        .long_distance_matching(true)
        .and_then(|()| packer.window_log(27))
        .expect("zstd takes it");
    for _ in 0..bomb_len() / content.len() {
        packer.write_all(content).expect("into memory");
    }
    let payload = packer.finish().expect("into memory");
    let basic = synth::file::basic(false);
    let mut pipe = Pipe::new(false, Magic::V2).event(&basic.events[0]);
    if let Some(mmap_len) = mmap_len {
        let mut section = feature_system::compressed(Buf::new(false)).bytes;
        section[16..].copy_from_slice(&mmap_len.to_le_bytes());
        pipe = pipe.feature(27, &section);
    }
    let mut bytes = pipe.terminator(32).bytes;
    // A record has at most 64 KiB: several contain the parts of the stream.
    for piece in payload.chunks(60_000) {
        let body = user::compressed(Buf::new(false), kind::COMPRESSED, piece);
        bytes.extend(frame(false, kind::COMPRESSED, 0, &body.bytes));
    }
    bytes
}

/// Commands that accept a stream and end.
const OF_STREAMS: [&str; 9] = [
    "info -",
    "dump -",
    "dump --json -",
    "verify -",
    "pipe2file - -f -o OUT",
    "convert --swap-endian - -f -o OUT",
    "convert --build-ids=all --sysroot /proc/tty - -f -o OUT",
    "inject -b --sysroot /proc/tty -f -o OUT -i -",
    "recover - -f -o OUT",
];

/// Maximum CPU time for a stream in a test build; with quadratic time it would take minutes.
const PROCESSOR: Duration = Duration::from_secs(40);

/// Tests streams whose head does not end or starts repeatedly, and streams in which records could
/// start everywhere.
fn streams(folder: &Path) -> Vec<String> {
    let basic = synth::file::basic(false);
    let event = &basic.events[0];
    let start = Pipe::new(false, Magic::V2).bytes;
    let of = |pipe: Pipe| pipe.bytes[16..].to_vec();
    let new = || Pipe::new(false, Magic::V2);
    let feature = || new().feature(3, &Buf::new(false).str("host").bytes);
    let name = || {
        new().record(
            kind::HEADER_EVENT_TYPE,
            0,
            user::event_type(Buf::new(false), 0, "a"),
        )
    };
    let round = |pipe: Pipe| pipe.record(kind::FINISHED_ROUND, 0, Buf::new(false));
    let header = |kind: u32, size: u16| Buf::new(false).u32(kind).u16(2).u16(size).bytes;
    let sample_type = event.attr.sample_type | sample_type::ID;
    let with_id = Event {
        attr: Attr {
            sample_type,
            ..event.attr.clone()
        },
        ..event.clone()
    };
    let heads: [(&str, Vec<u8>); 19] = [
        ("the same feature", of(feature())),
        ("events", of(new().event(event))),
        ("names of events", of(name())),
        ("ends of features", of(new().terminator(32))),
        ("tracing data", vec![0x17; 64]),
        ("features and rounds", of(round(feature()))),
        ("events and rounds", of(round(new().event(event)))),
        ("names of events and rounds", of(round(name()))),
        (
            "rounds and events that have names",
            of(round(new().event(event))),
        ),
        (
            "records of unknown types",
            (0..1000)
                .flat_map(|n| frame(false, 1000 + n, 0, &[]))
                .collect(),
        ),
        (
            "records of unknown types with a body",
            frame(false, 1000, 0, &[0; 8]),
        ),
        (
            "records of as many types",
            many(|n| frame(false, 1000 + n, 0, &[])),
        ),
        ("mappings of as many files", many(|n| mapped(event, n, n))),
        ("mappings of as many children", many(|n| child(event, n))),
        ("names of events that are not there", many(update)),
        (
            "samples of events that are not there",
            many(|n| sample(&with_id, n)),
        ),
        ("starts of small records", header(kind::COMM, 64)),
        ("starts of large records", header(kind::SAMPLE, 65_528)),
        (
            "noise",
            (0..1_u32 << 20)
                .map(|n| {
                    (n.wrapping_mul(n) >> 7)
                        .wrapping_mul(2_654_435_761)
                        .to_be_bytes()[0]
                })
                .collect(),
        ),
    ];
    let heads = heads.map(|(what, piece)| {
        let mut head = start.clone();
        if what.starts_with("starts") || what.starts_with("mappings") || what == "noise" {
            head.extend(of(new().event(event)));
        }
        if what.ends_with("that have names") {
            let descs: Vec<_> = (0..300)
                .map(|id| Event {
                    ids: vec![id],
                    ..event.clone()
                })
                .collect();
            head.extend(of(
                new().feature(EVENT_DESC, &event_desc(Buf::new(false), &descs).bytes)
            ));
        }
        if what == "tracing data" {
            let body = Buf::new(false).u32(u32::MAX).u32(0);
            head.extend(frame(false, kind::HEADER_TRACING_DATA, 0, &body.bytes));
        }
        (what, head, piece)
    });
    let left = Mutex::new(heads.into_iter().enumerate());
    let faults = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let next = || left.lock().expect("nobody panics with it").next();
                while let Some((number, (what, head, piece))) = next() {
                    let found = stream(
                        what,
                        &head,
                        &piece,
                        &folder.join(format!("stream{number}.out")),
                    );
                    faults.lock().expect("nobody panics with it").extend(found);
                }
            });
        }
    });
    faults.into_inner().expect("nobody panics with it")
}

/// Returns as many different records as fit into a stream.
fn many(record: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let mut all = Vec::new();
    for number in 0.. {
        if all.len() >= stream_len() {
            break;
        }
        all.extend(record(number));
    }
    all
}

/// Returns a file that is mapped into a process.
fn mapped(event: &Event, pid: u32, number: u32) -> Vec<u8> {
    let name = format!("/usr/lib/{number}.so");
    let mut body = kernel::mmap(
        Buf::new(false),
        (pid, pid),
        [u64::from(number) << 16, 0x1000, 0],
        &name,
    )
    .bytes;
    body.extend(event.attr.trailer(
        false,
        &Stamp {
            pid,
            tid: pid,
            ..Stamp::SOME
        },
    ));
    frame(false, kind::MMAP, misc::USER, &body)
}

/// Returns a child of a process with many mappings, which maps another file.
fn child(event: &Event, number: u32) -> Vec<u8> {
    let Some(pid) = number.checked_sub(10_000) else {
        return mapped(event, 1, number);
    };
    let body = kernel::fork(Buf::new(false), (pid, pid), (1, 1), 0).bytes;
    let trailer = event.attr.trailer(
        false,
        &Stamp {
            pid,
            tid: pid,
            ..Stamp::SOME
        },
    );
    [
        frame(false, kind::FORK, 0, &[body, trailer].concat()),
        mapped(event, pid, number),
    ]
    .concat()
}

/// Returns a sample of an event that does not exist, after many samples of existing events.
fn sample(event: &Event, number: u32) -> Vec<u8> {
    if number < 30_000 {
        return frame(
            false,
            kind::HEADER_ATTR,
            0,
            &user::header_attr(Buf::new(false), &event.attr, &event.ids).bytes,
        );
    }
    let words = [0x40_1234, 1, u64::from(number), 7, 0, 1];
    frame(
        false,
        kind::SAMPLE,
        misc::USER,
        &Buf::new(false).u64s(&words).bytes,
    )
}

/// Returns the name of an event that does not exist.
fn update(number: u32) -> Vec<u8> {
    let body = Buf::new(false)
        .u64(2)
        .u64(u64::from(number) + 1000)
        .text("a");
    frame(false, kind::EVENT_UPDATE, 0, &body.bytes)
}

/// Tests a stream of `head` and repetitions of `piece`.
fn stream(what: &str, head: &[u8], piece: &[u8], output: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    for line in OF_STREAMS {
        let mut command = of_line(line, output);
        let (read, write) = io::pipe().expect("a pipe");
        command
            .stdin(read)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (status, peak, time) = thread::scope(|scope| {
            scope.spawn(|| feed(File::from(std::os::fd::OwnedFd::from(write)), head, piece));
            measure::peak(command)
        });
        println!(
            "{peak:8} kB {time:8.1?}  {} MB of {what} in a pipe: {line}",
            stream_len() >> 20
        );
        // If a stream is read several times, there is a model each time.
        let models = match line {
            _ if line.starts_with("recover") => 3,
            _ if line.contains("--sysroot") => 2,
            _ => 1,
        };
        let most = MEMORY + models * METADATA * (stream_len() as u64 >> 10);
        let longest = PROCESSOR * u32::try_from(stream_len() >> 23).unwrap_or(1);
        if status.code().is_none_or(|code| code > 1) || peak > most || time > longest {
            faults.push(format!(
                "{what} in a pipe: {line}: {status}, {peak} kB, {time:?}"
            ));
        }
    }
    faults
}

/// Writes until the size is reached, or nobody reads any more.
fn feed(mut to: File, head: &[u8], piece: &[u8]) {
    let block = piece.repeat((1 << 16) / piece.len() + 1);
    let mut written = head.len();
    let mut result = to.write_all(head);
    while result.is_ok() && written < stream_len() {
        result = to.write_all(&block);
        written += block.len();
    }
}
