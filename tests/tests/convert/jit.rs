//! The code of jitdumps is added: where and what, for dumps as runtimes write them and for damaged
//! ones.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::Deref;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use perfdata_convert::error::{Error, Step};
use perfdata_convert::pipeline::{Stage, Summary};
use perfdata_convert::stages::build_ids::{
    BuildIds, KnownBuildIds, Resolver, Select, Storage, Sysroot,
};
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::jit::Jit;
use perfdata_convert::stages::sort::Sort;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::Endian as Order;
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType, TimeConv};
use perfdata_tests::code_folder::CodeFolder;
use perfdata_tests::convert::{Whole, convert, perfconv};
use perfdata_tests::synth::jitdump::{Dump, Header};
use perfdata_tests::told::Told::{self, Conv, Map, Round, Sample as At};
use perfdata_tests::told::{MONOTONIC, made, shown};

/// A folder with dumps.
struct Place(CodeFolder);

impl Deref for Place {
    type Target = CodeFolder;
    fn deref(&self) -> &CodeFolder {
        &self.0
    }
}

impl Place {
    fn new() -> Self {
        Place(CodeFolder::new())
    }

    /// Returns the path as text, for records.
    fn name(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    fn dump(&self, name: &str, dump: Dump) {
        fs::write(self.path(name), dump.bytes()).expect("it is written");
    }

    fn stage(&self) -> Jit {
        Jit::new(self.destination()).synced(false)
    }

    /// Converts `input` with `jit` and further stages.
    fn convert(
        &self,
        input: &Path,
        to: Option<ContainerKind>,
        jit: impl FnOnce(Jit) -> Jit,
        more: Vec<Box<dyn Stage>>,
    ) -> Result<Summary, Error> {
        let jit = Box::new(jit(self.stage())) as Box<dyn Stage>;
        self.0
            .convert(input, to, [jit].into_iter().chain(more).collect())
    }

    /// Adds the code to a recording with these records; returns notes and records.
    fn with(&self, told: &[(u64, Told<'_>)]) -> (Vec<String>, Vec<String>) {
        self.converted(told, Box::new(self.stage()))
    }
}

/// Functions, a move, the reuse of an address, and the end of a runtime; records after the end are
/// not read.
fn life(big: bool) -> Dump {
    Dump::new(big, Header::of(5))
        .load(100, 0x1000, 1, "first", &[0x90; 16])
        .load(100, 0x1100, 2, "second", &[0xc3; 5])
        .unwinding(150, &[1; 12], &[2; 20], 32)
        .load(200, 0x1200, 3, "third", &[0x90; 5])
        .load(250, 0x1300, 4, "empty", &[])
        .moved(300, 0x1200, 0x8000, 5, 3)
        .load(400, 0x1000, 5, "first again", &[0x91; 16])
        .close(500)
        .load(600, 0x1000, 6, "never", &[0x92; 16])
}

/// What `life` tells, and the samples around it.
fn told(marker: &str) -> Vec<(u64, Told<'_>)> {
    vec![
        (10, Map(5, 0x40_0000, 0x1000, "/bin/runtime")),
        // Before the dump: perf keeps it, too.
        (20, Map(5, 0x1000, 0x10000, "//anon")),
        (90, Map(5, 0x70_0000, 0x1000, marker)),
        (101, At(5, 0x1000)),
        (0, Round),
        // Not in the order of time, as from another CPU.
        (301, At(5, 0x8000)),
        (160, At(5, 0x1100)),
        (200, At(5, 0x1200)),
        (0, Round),
        // The protection of the memory changes.
        (210, Map(5, 0x1000, 0x1000, "//anon")),
        (211, Map(5, 0x1204, 0x1000, "[anon:jit]")),
        (212, Map(5, 0x8000, 8, "/memfd:code (deleted)")),
        (213, Map(5, 0x8000, 8, "/dev/shm/code")),
        // Memory elsewhere, a file, another process, and the same dump again.
        (214, Map(5, 0x90_0000, 0x1000, "//anon")),
        (215, Map(5, 0x1000, 0x100, "/lib/mapped.so")),
        (216, Map(6, 0x1000, 0x1000, "//anon")),
        (217, Map(5, 0x71_0000, 0x1000, marker)),
        (399, At(5, 0x1001)),
        (0, Round),
    ]
}

const EXPECTED: [&str; 18] = [
    "10 5/5 0x400000+0x1000 @0x0 runtime",
    "20 5/5 0x1000+0x10000 @0x0 anon",
    "100 5/5 0x1000+0x10 @0x80 jitted-5-1.so",
    "100 5/5 0x1100+0x5 @0x80 jitted-5-2.so",
    "101 sample 0x1000",
    "round",
    "200 5/5 0x1200+0x28 @0x80 jitted-5-3.so",
    "300 5/5 0x8000+0x28 @0x80 jitted-5-3.so",
    "301 sample 0x8000",
    "160 sample 0x1100",
    "200 sample 0x1200",
    "round",
    "214 5/5 0x900000+0x1000 @0x0 anon",
    "215 5/5 0x1000+0x100 @0x0 mapped.so",
    "216 6/6 0x1000+0x1000 @0x0 anon",
    "399 sample 0x1001",
    "round",
    "400 5/5 0x1000+0x10 @0x80 jitted-5-5.so",
];

/// All containers, compressed records, and both byte orders of recording and dump.
#[test]
fn mappings_are_before_the_first_record_that_is_not_older() {
    let place = Place::new();
    let marker = place.name("jit-5.dump");
    let input = place.path("in.data");
    let expected = EXPECTED;
    for (order, big) in [
        (Order::Little, false),
        (Order::Big, true),
        (Order::Little, true),
        (Order::Big, false),
    ] {
        place.dump("jit-5.dump", life(big));
        made(&input, order, MONOTONIC, &told(&marker));
        for to in [ContainerKind::File, ContainerKind::Pipe] {
            let same = convert(&input, Some(to), Vec::new()).expect("it is converted");
            let packed = vec![Box::new(Compress::new(RecordType::COMPRESSED2, 1)) as _];
            let packed = convert(&input, Some(to), packed).expect("it is compressed");
            for input in [same.path(), packed.path()] {
                for to in [ContainerKind::File, ContainerKind::Pipe] {
                    let summary = place
                        .convert(&input, Some(to), |jit| jit, Vec::new())
                        .expect("it is converted");
                    let plain = vec![Box::new(Decompress::default()) as _];
                    let plain = convert(&place.path("out.data"), None, plain).expect("opened");
                    assert_eq!(shown(&plain.path()), expected, "{order:?} {big} {to}");
                    assert_eq!(
                        summary.notes,
                        [
                            format!("{marker}: 4 generated functions, 1 move"),
                            "4 mappings of memory dropped, which would hide generated code".into(),
                        ]
                    );
                }
            }
            let swap = vec![Box::new(Swap::new(Target::Other, Unknown::Error)) as _];
            place
                .convert(&same.path(), None, |jit| jit, swap)
                .expect("it is swapped");
            assert_eq!(
                shown(&place.path("out.data")),
                expected,
                "{order:?} {big} {to}"
            );
        }
        let names = [
            "jitted-5-1.so",
            "jitted-5-2.so",
            "jitted-5-3.so",
            "jitted-5-5.so",
        ];
        assert_eq!(place.images(), names);
        let image = fs::read(place.path("out.jit/jitted-5-1.so")).expect("an image");
        assert_eq!(
            image[5],
            if big { 2 } else { 1 },
            "the byte order of the dump"
        );
        let mode = fs::metadata(place.path("out.jit/jitted-5-1.so")).expect("an image");
        assert_eq!(mode.permissions().mode() & 0o777, 0o644);
    }
}

/// The record of a mapping is a copy of what it maps: name, size and inode, or build ID.
#[test]
fn mappings_name_their_images() {
    let place = Place::new();
    place.dump("jit-5.dump", life(false));
    let marker = place.name("jit-5.dump");
    let input = place.path("in.data");
    made(&input, Order::Little, MONOTONIC, &told(&marker));
    let maps = || {
        let whole = Whole::read_file(&place.path("out.data")).expect("a recording");
        let mut maps = Vec::new();
        for (at, _) in &whole.records {
            let raw = RawRecord::first(&whole.stream[*at..], Order::Little, 0).expect("a record");
            let layout = whole.recording.events.layout_of(&raw);
            let record = Record::decode(&raw, &layout).expect("a record");
            if let Body::Mmap2(map) = record.body
                && map.filename.to_string().contains("jitted")
            {
                maps.push((record.misc, map));
            }
        }
        (maps, whole.recording)
    };
    place
        .convert(&input, None, |jit| jit, Vec::new())
        .expect("it is converted");
    for (misc, map) in maps().0 {
        use std::os::unix::fs::MetadataExt;
        let path = map.filename.to_string();
        assert!(Path::new(&path).is_absolute(), "{path}");
        let meta = fs::metadata(&path).expect("the image");
        let inode = map.inode.expect("an inode");
        assert_eq!((misc, inode.ino, inode.ino_generation), (2, meta.ino(), 1));
        assert_eq!((map.prot, map.flags), (5, 2));
    }

    // Build IDs are in the mappings, and in the table if samples hit the images.
    let resolver = Resolver::new(KnownBuildIds::default(), Sysroot::default(), None);
    let build_ids = BuildIds::new(Select::Hit, Storage::Table, resolver);
    place
        .convert(
            &input,
            None,
            |jit| jit.with_build_ids(true),
            vec![Box::new(build_ids)],
        )
        .expect("it is converted");
    let (maps, recording) = maps();
    assert_eq!(maps.len(), 5);
    for (misc, map) in &maps {
        let id = map.build_id.as_ref().expect("a build ID");
        let image = fs::read(map.filename.to_string()).expect("an image");
        assert_eq!((*misc, id.build_id_size), (2 | 1 << 14, 20));
        let has = |part: &[u8]| image.windows(part.len()).any(|bytes| bytes == part);
        assert!(has(&[b"GNU\0", &id.build_id[..]].concat()));
    }
    let table = recording.feature(FeatureId::BUILD_ID).expect("a table");
    let Feature::BuildIds(table) = table.expect("a table").value else {
        panic!("not a table");
    };
    let mut names: Vec<String> = table
        .0
        .iter()
        .map(|e| e.build_id.filename.to_string())
        .collect();
    names.sort();
    let hit = ["jitted-5-1.so", "jitted-5-2.so", "jitted-5-3.so"];
    assert_eq!(names.len(), hit.len(), "{names:?}");
    assert!(
        names.iter().zip(hit).all(|(name, hit)| name.ends_with(hit)),
        "{names:?}"
    );
}

/// Sorting first leaves the mappings in order.
#[test]
fn a_sorted_recording_stays_sorted() {
    let place = Place::new();
    place.dump("jit-5.dump", life(false));
    let marker = place.name("jit-5.dump");
    let input = place.path("in.data");
    made(&input, Order::Little, MONOTONIC, &told(&marker));
    let sorted = convert(&input, None, vec![Box::new(Sort::new())]).expect("it is sorted");
    place
        .convert(&sorted.path(), None, |jit| jit, Vec::new())
        .expect("it is converted");
    let times = shown(&place.path("out.data")).into_iter().map(|line| {
        let time = line.split(' ').next().expect("a word");
        time.parse::<u64>().expect("a time")
    });
    let times: Vec<u64> = times.collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(
        times
            .iter()
            .filter(|time| [100, 200, 300, 400].contains(time))
            .count(),
        6
    );
}

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

/// Times are those of the recording's clock, or are converted to it.
#[test]
fn clocks_are_compared() {
    let place = Place::new();
    let marker = place.name("jit-5.dump");
    let input = place.path("in.data");
    let conv = TimeConv {
        time_shift: 1,
        time_mult: 1,
        time_zero: 50,
        short: None,
    };
    let told = |conv: Option<TimeConv>| {
        let first = conv.map(|conv| (0, Conv(conv)));
        let rest = [(90, Map(5, 0, 1, &marker)), (1000, At(5, 0x1000))];
        first.into_iter().chain(rest).collect::<Vec<_>>()
    };
    let dump = |flags| {
        let header = Header {
            flags,
            ..Header::of(5)
        };
        place.dump(
            "jit-5.dump",
            Dump::new(false, header).load(200, 0x1000, 1, "f", &[0x90; 4]),
        );
    };
    let run = |with: &dyn Fn(Jit) -> Jit| {
        let summary = place.convert(&input, None, with, Vec::new())?;
        Ok::<_, Error>((shown(&place.path("out.data")), summary.notes))
    };
    let mapped = |time| format!("{time} 5/5 0x1000+0x4 @0x80 jitted-5-1.so");

    dump(0);
    for clock in [None, Some(4)] {
        made(&input, Order::Little, clock, &told(None));
        let _ = fs::remove_file(place.path("out.data"));
        let error = run(&|jit| jit).expect_err("another clock");
        assert!(
            error
                .to_string()
                .contains("record with perf record -k mono"),
            "{error}"
        );
        assert!(
            matches!(error.step(), Some(Step::JitClockOffset)),
            "{error:?}"
        );
        assert!(error.is_refusal() && !place.path("out.data").exists());
        let (records, _) = run(&|jit| jit.with_clock_offset(-50)).expect("it is converted");
        assert_eq!(records[0], mapped(150));
    }
    // The dump is named with the clock of the counter, which the recording converts.
    dump(1);
    made(&input, Order::Big, None, &told(Some(conv.clone())));
    assert_eq!(run(&|jit| jit).expect("it is converted").0[0], mapped(150));
    made(&input, Order::Little, None, &told(None));
    let error = run(&|jit| jit).expect_err("no conversion");
    assert!(error.to_string().contains("no usable TIME_CONV"), "{error}");
    made(&input, Order::Little, MONOTONIC, &told(None));
    let (records, notes) = run(&|jit| jit).expect("it is converted");
    assert!(notes[0].contains("no usable TIME_CONV"), "{notes:?}");
    assert_eq!(records[0], "90 5/5 0x0+0x1 @0x0 jit-5.dump");
}

/// An image replaces a link of its name, and leaves alone what the link refers to. A conversion
/// that fails leaves no folder.
#[test]
fn images_are_never_written_through_links() {
    let place = Place::new();
    place.dump("jit-5.dump", life(false));
    let marker = place.name("jit-5.dump");
    let victim = place.path("victim");
    fs::write(&victim, "as it was").expect("a file");
    fs::create_dir(place.path("out.jit")).expect("a folder");
    symlink(&victim, place.path("out.jit/jitted-5-1.so")).expect("a link");
    fs::write(place.path("out.jit/other"), "kept").expect("a file");
    place.with(&told(&marker));
    assert_eq!(fs::read(&victim).expect("a file"), b"as it was");
    let image = fs::symlink_metadata(place.path("out.jit/jitted-5-1.so")).expect("an image");
    assert!(image.is_file());
    assert_eq!(
        fs::read(place.path("out.jit/other")).expect("a file"),
        b"kept"
    );

    let place = Place::new();
    place.dump("jit-5.dump", life(false));
    let marker = place.name("jit-5.dump");
    let input = place.path("in.data");
    made(&input, Order::Little, MONOTONIC, &told(&marker));
    let mut bytes = fs::read(&input).expect("a recording");
    // The size of the last mapping becomes too small for its fields.
    let at = bytes
        .windows(8)
        .rposition(|name| name == b"jit-5.du")
        .expect("its name");
    let header = bytes[..at]
        .windows(8)
        .rposition(|head| head[..6] == [10, 0, 0, 0, 2, 0]);
    let header = header.expect("its header");
    bytes[header + 6..header + 8].copy_from_slice(&16_u16.to_le_bytes());
    fs::write(&input, &bytes).expect("a file");
    place
        .convert(&input, None, |jit| jit, Vec::new())
        .expect_err("a corrupt record");
    assert!(!place.path("out.jit").exists() && !place.path("out.data").exists());
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

/// V8 adds the size of an ELF header to the addresses of its lines.
#[test]
fn lines_of_v8_are_moved() {
    let note = |first: u64, second: u64| {
        let place = Place::new();
        let header = Header {
            padding: 0xDEAD_BEEF,
            ..Header::of(5)
        };
        let dump = Dump::new(false, header)
            .lines(99, 0x1000, &[(0x1000 + first, 3, b"a.js")])
            .load(100, 0x1000, 1, "f", &[0x90; 0x80])
            .lines(101, 0x2000, &[(0x2000 + second, 3, b"a.js")])
            .load(102, 0x2000, 2, "g", &[0x90; 0x80]);
        place.dump("jit-5.dump", dump);
        let marker = place.name("jit-5.dump");
        let (notes, _) = place.with(&[(50, Map(5, 0, 1, &marker)), (900, At(5, 0x1000))]);
        notes.iter().any(|note| note.contains("V8"))
    };
    assert!(note(0x40, 0x41));
    // A line at the start of a function, also of a later one, is only possible without it.
    assert!(!note(0x40, 0) && !note(0x3f, 0x40));
}

#[test]
fn the_command_needs_a_place_for_images() {
    let place = Place::new();
    place.dump("jit-5.dump", life(false));
    let marker = place.name("jit-5.dump");
    made(
        &place.path("in.data"),
        Order::Little,
        MONOTONIC,
        &told(&marker),
    );
    let run = |words: &[&str]| {
        let mut command = perfconv();
        let output = command.args(words).current_dir(place.folder()).output();
        let output = output.expect("perfconv runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "-"]);
    assert!(status == Some(2) && said.contains("--jit-images"), "{said}");
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "/dev/null", "-f"]);
    assert!(status == Some(2) && said.contains("--jit-images"), "{said}");
    let (status, said) = run(&["convert", "-j", "in.data", "-o", "new.data"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(place.path("new.data.jit/jitted-5-1.so").is_file());
    fs::remove_file(place.path("new.data")).expect("the output");
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "new.data"]);
    assert!(
        status == Some(2) && said.contains("new.data.jit exists; --force"),
        "{said}"
    );
    let (status, _) = run(&["convert", "--jit", "in.data", "-o", "new.data", "-f"]);
    assert_eq!(status, Some(0));
    fs::create_dir(place.path("elsewhere")).expect("a folder");
    symlink("elsewhere", place.path("linked.data.jit")).expect("a link");
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "linked.data", "-f"]);
    assert!(
        status == Some(2) && said.contains("linked.data.jit is a link"),
        "{said}"
    );
    assert!(!place.path("linked.data").exists());
    let elsewhere = fs::read_dir(place.path("elsewhere")).expect("a folder");
    assert_eq!(elsewhere.count(), 0);
    let (status, said) = run(&["convert", "--jit", "--pid", "5", "in.data", "-o", "x.data"]);
    assert!(
        status == Some(2) && said.contains("and then select"),
        "{said}"
    );
    let (status, said) = run(&["split", "--by", "pid", "--jit", "in.data", "-o", "parts"]);
    assert!(
        status == Some(2) && said.contains("and then split"),
        "{said}"
    );
    let (status, said) = run(&["convert", "--jit-dir", ".", "in.data", "-o", "x.data"]);
    assert!(status == Some(2) && said.contains("--jit"), "{said}");
    // As perf inject: beside the dump.
    let (status, said) = run(&["inject", "-j", "-b", "-i", "in.data", "-o", "x.data"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(place.path("jitted-5-1.so").is_file());

    made(&place.path("in.data"), Order::Little, None, &told(&marker));
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "y.data"]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("-k mono; or name the difference with --jit-clock-offset"),
        "{said}"
    );
    let words = [
        "convert",
        "--jit",
        "--jit-clock-offset",
        "-5",
        "in.data",
        "-o",
        "y.data",
    ];
    assert_eq!(run(&words).0, Some(0));
}
