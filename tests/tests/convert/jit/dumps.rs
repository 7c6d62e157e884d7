//! How dumps are found, and what becomes of damaged ones.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::process::Stdio;

use perfdata_core::Endian as Order;
use perfdata_core::header::ContainerKind;
use perfdata_inject::build_ids::Sysroot;
use perfdata_inject::jit::Jit;
use perfdata_tests::convert::{convert, perfconv};
use perfdata_tests::synth::jitdump::{Dump, Header};
use perfdata_tests::told::Told::{Map, Round, Sample as At};
use perfdata_tests::told::{MONOTONIC, made, shown};

use super::{Place, life};

/// A missing dump, or a file that is none, is a note; the rest goes on.
#[test]
fn what_cannot_be_read_is_left_as_it_is() {
    let place = Place::new();
    place.dump("jit-5.dump", life(false));
    fs::write(
        place.path("jit-6.dump"),
        "not a dump, but longer than its header would be",
    )
    .expect("");
    fs::write(place.path("jit-7.dump"), "").expect("a file");
    fs::write(place.path("jit-8.dump"), &life(false).bytes()[..20]).expect("a file");
    fs::create_dir(place.path("jit-9.dump")).expect("a folder");
    let names = [
        "jit-4.dump",
        "jit-5.dump",
        "jit-6.dump",
        "jit-7.dump",
        "jit-8.dump",
        "jit-9.dump",
    ];
    let names = names.map(|name| place.name(name));
    let markers = names.iter().zip(4_u32..);
    let mut told: Vec<_> = markers
        .map(|(name, pid)| (50, Map(pid, 0, 1, name)))
        .collect();
    told.push((900, At(5, 0x1000)));
    let (notes, records) = place.with(&told);
    let dumps: Vec<&String> = records
        .iter()
        .filter(|line| line.ends_with(".dump"))
        .collect();
    assert_eq!(dumps.len(), 5, "{records:?}");
    assert_eq!(records.len(), 5 + 5 + 1, "{records:?}");
    let none = |pid| format!("no generated code of process {pid}: DIR/jit-{pid}.dump");
    assert_eq!(
        notes,
        [
            format!(
                "{} cannot be read: DIR/jit-4.dump: No such file or directory (os error 2)",
                none(4)
            ),
            format!(
                "{} cannot be read: DIR/jit-6.dump: at offset 0x0: jitdump header, field magic: found not , expected JiTD or DTiJ",
                none(6)
            ),
            format!(
                "{} cannot be read: DIR/jit-9.dump: not a regular file",
                none(9)
            ),
            format!("{} ends inside its header", none(7)),
            format!("{} ends inside its header", none(8)),
            "DIR/jit-5.dump: 4 generated functions, 1 move".into(),
        ]
    );

    // Without any dump, the records are those of the input, and there are no images.
    let place = Place::new();
    let (notes, records) = place.with(&[(50, Map(4, 0, 1, "/bin/true")), (900, At(5, 0x1000))]);
    assert_eq!(
        notes,
        ["the recording names no jitdump (jit-PID.dump): no code was added"]
    );
    assert_eq!(records, ["50 4/4 0x0+0x1 @0x0 true", "900 sample 0x1000"]);
    assert_eq!(place.images(), [""; 0]);
}

/// Dumps of a later version have one note for all.
#[test]
fn an_unknown_version_is_told_once() {
    let place = Place::new();
    let mut bytes = life(false).bytes();
    bytes[4] = 2;
    let told: Vec<_> = (4..9)
        .map(|pid| {
            let name = format!("jit-{pid}.dump");
            fs::write(place.path(&name), &bytes).expect("a file");
            (pid, place.name(&name))
        })
        .collect();
    let told = told.iter().map(|(pid, name)| (50, Map(*pid, 0, 1, name)));
    let told: Vec<_> = told.chain([(900, At(5, 0x1000))]).collect();
    assert_eq!(
        place.with(&told).0,
        [
            "no generated code of process 4 and 4 others: DIR/jit-4.dump cannot be read: \
             DIR/jit-4.dump: at offset 0x0: jitdump header, field version: found 2, expected 1, \
             and so those of the others"
        ]
    );
}

/// Lengths that lie, unknown functions, and a dump that ends inside a record, after a header that
/// is longer than known.
#[test]
fn damaged_records_are_skipped() {
    let place = Place::new();
    let header = Header {
        size: 56,
        ..Header::of(5)
    };
    let dump = Dump::new(false, header)
        .load_of_size(100, 0x1000, 1, "long", &[0x90; 12], 0x10000)
        .load(101, 0x2000, 2, "good", &[0x90; 12])
        .moved(102, 0x3000, 0x4000, 12, 77)
        .moved(103, 0x2000, 0x4000, 13, 2)
        .unwinding(104, &[1; 4], &[2; 4], 1 << 40)
        .load(105, u64::MAX - 3, 3, "wraps", &[0x90; 12])
        .record(99, 106, |buf| buf.u64(1))
        .load(107, 0x5000, 2, "good again", &[0x90; 12])
        .load(108, 0x6000, 4, "cut", &[0x90; 12]);
    let mut bytes = dump.bytes();
    bytes.truncate(bytes.len() - 1);
    fs::write(place.path("jit-5.dump"), &bytes).expect("a file");
    let marker = place.name("jit-5.dump");
    let (notes, records) = place.with(&[(50, Map(5, 0, 1, &marker)), (900, At(5, 0x2000))]);
    assert_eq!(
        records,
        [
            "101 5/5 0x2000+0xc @0x80 jitted-5-2.so",
            "107 5/5 0x5000+0xc @0x80 jitted-5-2-1.so",
            "900 sample 0x2000",
        ]
    );
    assert_eq!(place.images(), ["jitted-5-2-1.so", "jitted-5-2.so"]);
    let last = bytes.len() - (16 + 40 + 4 + 12 - 1);
    assert_eq!(
        notes,
        [
            "DIR/jit-5.dump: 2 generated functions".to_owned(),
            "DIR/jit-5.dump: skipped 5 records: at offset 0x70: jitdump record CODE_LOAD, field code: 65536 bytes needed, 17 available".into(),
            format!("DIR/jit-5.dump: the last record is incomplete, at offset {last:#x}"),
        ]
    );
}

/// A dump of a process in a PID namespace; a process that inherited the mapping of its parent; and
/// dumps that were moved.
#[test]
fn dumps_are_found() {
    let place = Place::new();
    let in_container = Dump::new(false, Header::of(1)).load(100, 0x1000, 1, "f", &[0x90; 4]);
    place.dump("jit-1.dump", in_container);
    let marker = place.name("jit-1.dump");
    let (notes, records) = place.with(&[
        (50, Map(5793, 0, 1, &marker)),
        (60, Map(5794, 0, 1, &marker)),
        (900, At(5793, 0x1000)),
    ]);
    assert_eq!(
        records[1],
        "100 5793/5793 0x1000+0x4 @0x80 jitted-5793-1.so"
    );
    assert_eq!(
        notes,
        [
            "DIR/jit-1.dump: 1 generated function",
            "1 mapping of jitdumps not used: the process inherited the dump of another one",
        ]
    );

    let place = Place::new();
    fs::create_dir_all(place.path("root/tmp")).expect("a folder");
    fs::create_dir(place.path("dumps")).expect("a folder");
    let dump = |name: &str| Dump::new(false, Header::of(5)).load(100, 0x1000, 1, name, &[0x90; 4]);
    place.dump("root/tmp/jit-5.dump", dump("of_root"));
    place.dump("dumps/jit-5.dump", dump("of_folder"));
    let input = place.path("in.data");
    let told = [(50, Map(5, 0, 1, "/tmp/jit-5.dump")), (900, At(5, 0x1000))];
    made(&input, Order::Little, MONOTONIC, &told);
    let name_of = |with: &dyn Fn(Jit) -> Jit| {
        let done = place.convert(&input, None, with, Vec::new());
        done.expect("it is converted");
        let image = fs::read(place.path("out.jit/jitted-5-1.so")).expect("an image");
        let text = String::from_utf8_lossy(&image).into_owned();
        ["of_root", "of_folder"].map(|name| text.contains(name))
    };
    let root = || Sysroot::new(Some(place.path("root")));
    let dumps = || place.path("dumps");
    assert_eq!(name_of(&|jit| jit.with_dumps(dumps())), [false, true]);
    assert_eq!(name_of(&|jit| jit.with_sysroot(root())), [true, false]);
    assert_eq!(
        name_of(&|jit| jit.with_dumps(dumps()).with_sysroot(root())),
        [true, false]
    );

    // The process need not map its dump.
    let unmapped = [
        (50, Map(5, 0x40_0000, 1, "/bin/mono")),
        (900, At(5, 0x1000)),
    ];
    made(&input, Order::Little, MONOTONIC, &unmapped);
    assert_eq!(name_of(&|jit| jit.with_dumps(dumps())), [false, true]);
    let elsewhere = [
        (50, Map(6, 0x40_0000, 1, "/bin/mono")),
        (900, At(6, 0x1000)),
    ];
    made(&input, Order::Little, MONOTONIC, &elsewhere);
    let done = place.convert(&input, None, |jit| jit.with_dumps(dumps()), Vec::new());
    let notes = done.expect("it is converted").notes;
    assert!(notes[0].contains("names no jitdump"), "{notes:?}");
    // If it does, the dump is used once.
    let both = [
        (50, Map(5, 0x40_0000, 1, "/bin/mono")),
        (60, Map(5, 0, 1, "/tmp/jit-5.dump")),
        (900, At(5, 0x1000)),
    ];
    made(&input, Order::Little, MONOTONIC, &both);
    let done = place.convert(&input, None, |jit| jit.with_dumps(dumps()), Vec::new());
    let notes = done.expect("it is converted").notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].ends_with("dumps/jit-5.dump: 1 generated function"),
        "{notes:?}"
    );
    made(&input, Order::Little, MONOTONIC, &told);

    // Links to dumps are followed; those of the other file system stay inside of it.
    for (dump, kept, link) in [
        ("root/tmp/jit-5.dump", "root/kept", "/kept"),
        ("dumps/jit-5.dump", "dumps/kept", "kept"),
    ] {
        fs::rename(place.path(dump), place.path(kept)).expect("another name");
        symlink(link, place.path(dump)).expect("a link");
    }
    assert_eq!(name_of(&|jit| jit.with_dumps(dumps())), [false, true]);
    assert_eq!(name_of(&|jit| jit.with_sysroot(root())), [true, false]);
}

/// A recorder and its runtime still run: the dump grows while the stream is read.
#[test]
fn a_live_stream_follows_its_dump() {
    let place = Place::new();
    let marker = place.name("jit-5.dump");
    let input = place.path("in.data");
    let told = [
        (90, Map(5, 0, 1, &marker)),
        (0, Round),
        (200, At(5, 0x1000)),
        (0, Round),
        (400, At(5, 0x2000)),
    ];
    made(&input, Order::Little, MONOTONIC, &told);
    let stream = convert(&input, Some(ContainerKind::Pipe), Vec::new()).expect("a stream");
    let stream = stream.bytes();
    let ends: Vec<usize> = stream
        .windows(8)
        .enumerate()
        .filter(|(_, bytes)| *bytes == [68, 0, 0, 0, 0, 0, 8, 0])
        .map(|(at, _)| at)
        .collect();
    assert_eq!(ends.len(), 2);
    let dump = Dump::new(false, Header::of(5)).load(100, 0x1000, 1, "first", &[0x90; 16]);
    let second = dump.clone().load(300, 0x2000, 2, "second", &[0x90; 16]);
    let (first, second) = (dump.bytes(), second.bytes());

    let mut file = File::create(place.path("jit-5.dump")).expect("a file");
    let mut child = perfconv()
        .args([
            "convert",
            "-q",
            "--jit",
            "--jit-images",
            "images",
            "-",
            "-o",
            "-",
        ])
        .current_dir(place.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("perfconv runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut write = |part: &[u8]| stdin.write_all(part).expect("it is read");
    // Up to the first round, the dump is empty, or its first record incomplete.
    write(&stream[..ends[0]]);
    file.write_all(&first[..first.len() - 1]).expect("a file");
    file.write_all(&first[first.len() - 1..]).expect("a file");
    write(&stream[ends[0]..ends[1]]);
    file.write_all(&second[first.len()..]).expect("a file");
    write(&stream[ends[1]..]);
    drop(stdin);
    let mut out = Vec::new();
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_to_end(&mut out)
        .expect("bytes");
    assert!(child.wait().expect("it ends").success());
    fs::write(place.path("out.data"), out).expect("a file");
    let records = shown(&place.path("out.data"));
    let records: Vec<&str> = records
        .iter()
        .map(|line| &**line)
        // Whether the header was there in time decides about the record that announces the dump.
        .filter(|line| !line.ends_with("jit-5.dump"))
        .collect();
    assert_eq!(
        records,
        [
            "round",
            "100 5/5 0x1000+0x10 @0x80 jitted-5-1.so",
            "200 sample 0x1000",
            "round",
            "300 5/5 0x2000+0x10 @0x80 jitted-5-2.so",
            "400 sample 0x2000",
        ]
    );
}
