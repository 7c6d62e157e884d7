//! The names in perf maps are added: which memory becomes an image, and which name each address
//! has.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::Path;

use perfdata_convert::io::Output;
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::Endian as Order;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Limits;
use perfdata_core::record::{Body, MISC_MMAP_BUILD_ID, RawRecord, Record, RecordType};
use perfdata_edit::slice::{Select, Slice};
use perfdata_inject::build_ids::Sysroot;
use perfdata_inject::jit::Jit;
use perfdata_inject::perf_maps::PerfMaps;
use perfdata_tests::code_folder::CodeFolder;
use perfdata_tests::convert::{Whole, convert, perfconv};
use perfdata_tests::synth::jitdump::{Dump, Header};
use perfdata_tests::told::Told::{self, Data, Map, OldMap, Round, Sample as At};
use perfdata_tests::told::{MONOTONIC, made, names, shown};

/// A folder with perf maps.
struct Place(CodeFolder);

impl Deref for Place {
    type Target = CodeFolder;
    fn deref(&self) -> &CodeFolder {
        &self.0
    }
}

impl Place {
    /// Returns a folder with the perf maps of these processes.
    fn with_maps(maps: &[(u32, &str)]) -> Self {
        let place = Place(CodeFolder::new());
        for (pid, text) in maps {
            fs::write(place.path(&format!("perf-{pid}.map")), text).expect("a map");
        }
        place
    }

    fn stage(&self) -> PerfMaps {
        PerfMaps::new(self.destination())
            .with_maps(self.folder().to_owned())
            .synced(false)
    }

    /// Adds the names to a recording with these records; returns notes and records.
    fn with(&self, told: &[(u64, Told<'_>)]) -> (Vec<String>, Vec<String>) {
        self.converted(told, Box::new(self.stage()))
    }
}

const MAP: &str = "10010 20 first\n11ff0 20 both areas\n7f0000000100 40 far\n400000 10 in a file\n";

fn told() -> Vec<(u64, Told<'static>)> {
    vec![
        (1, Map(5, 0x40_0000, 0x1000, "/bin/runtime")),
        (2, Map(5, 0x1_0000, 0x2000, "//anon")),
        (3, Data(5, 0x2_0000, 0x2000, "//anon")),
        (4, At(5, 0x1_0010)),
        (0, Round),
        // It is one image with the memory before it.
        (5, Map(5, 0x1_2000, 0x1000, "/memfd:doublemapper (deleted)")),
        (6, OldMap(5, 0x7f00_0000_0000, 0x1000, "[heap]")),
        (7, Map(5, 0x8000_0000, 0x1000, "//anon")),
        // No perf map exists.
        (8, Map(6, 0x1_0000, 0x1000, "//anon")),
        (9, At(5, 0x1_200f)),
        (10, At(5, 0x7f00_0000_013f)),
        (11, At(5, 0x40_0008)),
        (0, Round),
    ]
}

const EXPECTED: [&str; 12] = [
    "1 5/5 0x400000+0x1000 @0x0 runtime",
    "2 5/5 0x10000+0x2000 @0x0 perf-5-10000.so",
    "3 5/5 0x20000+0x2000 @0x0 anon",
    "4 sample 0x10010",
    "round",
    "5 5/5 0x12000+0x1000 @0x2000 perf-5-10000.so",
    "6 5/5 0x7f0000000000+0x1000 @0x0 perf-5-7f0000000000.so (MMAP)",
    "7 5/5 0x80000000+0x1000 @0x0 anon",
    "8 6/6 0x10000+0x1000 @0x0 anon",
    "9 sample 0x1200f",
    "10 sample 0x7f000000013f",
    "11 sample 0x400008",
];

#[test]
fn executable_memory_becomes_images() {
    let place = Place::with_maps(&[(5, MAP)]);
    let (notes, records) = place.with(&told());
    let expected: Vec<&str> = EXPECTED.into_iter().chain(["round"]).collect();
    assert_eq!(records, expected);
    assert_eq!(
        notes,
        [
            "DIR/perf-5.map: 3 symbols of process 5",
            "no perf map of process 6"
        ]
    );
    assert_eq!(
        place.images(),
        ["perf-5-10000.so", "perf-5-7f0000000000.so"]
    );
    let names = names(&place.path("out.data"));
    let names: Vec<(u64, &str)> = names.iter().map(|(at, name)| (*at, &**name)).collect();
    assert_eq!(
        names,
        [
            (0x1_0010, "first"),
            (0x1_200f, "both areas"),
            (0x7f00_0000_013f, "far"),
            (0x40_0008, ""),
        ]
    );
}

/// The same from files and streams of both byte orders, from compressed records and with other
/// conversions.
#[test]
fn every_container_gives_the_same() {
    let place = Place::with_maps(&[(5, MAP)]);
    let input = place.path("in.data");
    let swap = || Box::new(Swap::new(Target::Other, Unknown::Error)) as Box<dyn Stage>;
    for order in [Order::Little, Order::Big] {
        made(&input, order, MONOTONIC, &told());
        for (stages, from) in [
            (Vec::new(), ContainerKind::File),
            (Vec::new(), ContainerKind::Pipe),
            (
                vec![Box::new(Compress::new(RecordType::COMPRESSED2, 1)) as Box<dyn Stage>],
                ContainerKind::File,
            ),
        ] {
            let from = convert(&input, Some(from), stages).expect("it is converted");
            for to in [ContainerKind::File, ContainerKind::Pipe] {
                let maps = || Box::new(place.stage()) as Box<dyn Stage>;
                let stages = vec![
                    Box::new(Decompress::default()) as Box<dyn Stage>,
                    maps(),
                    swap(),
                    Box::new(Compress::new(RecordType::COMPRESSED2, 1)),
                ];
                place
                    .convert(&from.path(), Some(to), stages)
                    .expect("it is converted");
                let plain: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
                let plain = convert(&place.path("out.data"), None, plain).expect("plain records");
                let records = shown(&plain.path());
                assert_eq!(records.len(), EXPECTED.len() + 1, "{order:?} {to}");
                assert_eq!(records[..EXPECTED.len()], EXPECTED, "{order:?} {to}");
                assert_eq!(names(&place.path("out.data"))[1].1, "both areas");

                // Swapping before it is the same, except the byte order of the images.
                place
                    .convert(&from.path(), Some(to), vec![swap(), maps()])
                    .expect("it is converted");
                let plain: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
                let again = convert(&place.path("out.data"), None, plain).expect("plain records");
                assert_eq!(shown(&again.path()), records);
                assert_eq!(names(&place.path("out.data"))[1].1, "both areas");
            }
        }
    }
}

/// A stage before it that drops records.
#[test]
fn selected_samples_keep_their_names() {
    let place = Place::with_maps(&[(5, MAP)]);
    let input = place.path("in.data");
    made(&input, Order::Little, MONOTONIC, &told());
    let mut select = Select::default();
    select.pids = Some("5".parse().expect("a list"));
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Slice::new(select)), Box::new(place.stage())];
    let summary = place
        .convert(&input, None, stages)
        .expect("it is converted");
    assert_eq!(names(&place.path("out.data")).len(), 4);
    assert_eq!(names(&place.path("out.data"))[2].1, "far");
    assert!(!summary.notes.iter().any(|note| note.contains("process 6")));
}

fn mmap2s(path: &Path) -> Vec<(u16, perfdata_core::record::Mmap2)> {
    let whole = Whole::read_file(path).expect("a recording");
    let events = &whole.recording.events;
    let maps = whole.records.iter().filter_map(|(at, _)| {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).ok()?;
        let record = Record::decode(&raw, &events.layout_of(&raw)).expect("a record");
        match record.body {
            Body::Mmap2(map) => Some((record.misc, map)),
            _ => None,
        }
    });
    maps.collect()
}

/// Mapping records identify images by inode, or by build ID if it is requested.
#[test]
fn images_are_identified() {
    use std::os::unix::fs::MetadataExt;

    let place = Place::with_maps(&[(5, MAP)]);
    place.with(&told());
    let image = fs::metadata(place.path("out.jit/perf-5-10000.so")).expect("an image");
    let (misc, map) = &mmap2s(&place.path("out.data"))[1];
    assert_eq!(
        (misc & MISC_MMAP_BUILD_ID, map.prot, map.flags),
        (0, Some(5), Some(2))
    );
    let inode = map.inode.as_ref().expect("an inode");
    assert_eq!(inode.ino, image.ino());

    let stage = place.stage().with_build_ids(true);
    place
        .convert(&place.path("in.data"), None, vec![Box::new(stage)])
        .expect("it is converted");
    let maps = mmap2s(&place.path("out.data"));
    let (misc, map) = &maps[1];
    assert_ne!(misc & MISC_MMAP_BUILD_ID, 0);
    let id = map.build_id.as_ref().expect("a build ID").build_id;
    let image = fs::read(place.path("out.jit/perf-5-10000.so")).expect("an image");
    assert!(image.windows(20).any(|bytes| bytes == id));
    // The other mappings keep their inodes.
    assert_eq!(maps[0].0 & MISC_MMAP_BUILD_ID, 0);
}

#[test]
fn missing_and_damaged_maps_are_notes() {
    let map = |pid| (1, Map(pid, 0x1000, 0x1000, "//anon"));
    let place = Place::with_maps(&[
        (1, "rubbish\n1000 10 good\n\n1010 x\n"),
        (2, ""),
        (3, "9000 10 outside\n"),
    ]);
    fs::create_dir(place.path("perf-4.map")).expect("a folder");
    let told: Vec<_> = (1..=6).map(map).collect();
    let (notes, records) = place.with(&told);
    assert_eq!(
        notes,
        [
            "DIR/perf-1.map: 1 symbol of process 1",
            "DIR/perf-1.map: skipped 2 lines without START SIZE NAME",
            "DIR/perf-2.map: 0 symbols of process 2",
            "DIR/perf-3.map: 0 symbols of process 3",
            "no names of process 4: DIR/perf-4.map: not a regular file",
            "no perf map of processes 5, 6",
        ]
    );
    let images = records.iter().filter(|line| line.ends_with(".so"));
    assert_eq!(images.count(), 1, "{records:?}");
    assert_eq!(place.images(), ["perf-1-1000.so"]);

    // Memory of every process, and a program in memory.
    let (notes, _) = place.with(&[
        (1, Map(7, 0xffff_ffff_ff60_0000, 0x1000, "[vsyscall]")),
        (2, Map(7, 0x5000, 0x1000, "/memfd:program (deleted)")),
    ]);
    let nothing = ["no perf map was read: no process has executable memory without a file"];
    assert_eq!(notes, nothing);
    let (notes, _) = place.with(&[(1, At(1, 0x1000))]);
    assert_eq!(notes, nothing);
}

/// Without a folder, a recording of another machine gets no names of processes of this one.
#[test]
fn other_machines_have_other_processes() {
    let place = Place::with_maps(&[]);
    let own = format!("/tmp/perf-{}.map", std::process::id());
    fs::write(&own, "1000 10 own\n").expect("a map");
    let input = place.path("in.data");
    made(
        &input,
        Order::Little,
        MONOTONIC,
        &[(1, Map(std::process::id(), 0x1000, 0x1000, "//anon"))],
    );
    let maps = || PerfMaps::new(place.destination()).synced(false);
    let summary = place.convert(&input, None, vec![Box::new(maps())]);
    let notes = summary.expect("it is converted").notes;
    assert!(notes[0].contains("not made on this machine"), "{notes:?}");
    assert!(!place.path("out.jit").exists());
    // The files of the other machine.
    fs::create_dir_all(place.path("root/tmp")).expect("a folder");
    let map = place.path("root").join(&own[1..]);
    fs::write(map, "1000 10 other\n").expect("a map");
    let stage = maps().with_sysroot(Sysroot::new(Some(place.path("root"))));
    place
        .convert(&input, None, vec![Box::new(stage)])
        .expect("it is converted");
    assert_eq!(place.images().len(), 1);
    fs::remove_file(own).expect("it exists");
}

/// Where both contain an address, the jitdump has its name, since the function was loaded.
#[test]
fn dumps_have_precedence() {
    let place = Place::with_maps(&[(5, "1000 10 name in the map\n1800 10 only in the map\n")]);
    let dump =
        Dump::new(false, Header::of(5)).load(100, 0x1000, 1, "name in the dump", &[0x90; 16]);
    fs::write(place.path("jit-5.dump"), dump.bytes()).expect("a dump");
    let marker = place.path("jit-5.dump");
    let told = [
        (1, Map(5, 0x1000, 0x1000, "//anon")),
        (2, Map(5, 0x9000, 0x1000, marker.to_str().expect("text"))),
        (3, At(5, 0x1000)),
        (200, At(5, 0x1000)),
        (201, At(5, 0x1800)),
    ];
    let input = place.path("in.data");
    made(&input, Order::Little, MONOTONIC, &told);
    let jit = Jit::new(place.destination()).synced(false);
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(jit), Box::new(place.stage())];
    place
        .convert(&input, None, stages)
        .expect("it is converted");
    let found: Vec<String> = names(&place.path("out.data"))
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(
        found,
        ["name in the map", "name in the dump", "only in the map"]
    );
    assert_eq!(place.images(), ["jitted-5-1.so", "perf-5-1000.so"]);
}

/// A failed conversion leaves no images in a folder that it created.
#[test]
fn images_of_failed_conversions_are_removed() {
    let place = Place::with_maps(&[(5, MAP)]);
    let input = place.path("in.data");
    made(&input, Order::Little, MONOTONIC, &told());
    let mut bytes = fs::read(&input).expect("a recording");
    // The last sample becomes a record of an unknown type, which cannot be swapped.
    let sample = bytes
        .windows(6)
        .rposition(|head| head == [9, 0, 0, 0, 2, 0]);
    let at = sample.expect("a sample");
    bytes[at..at + 4].copy_from_slice(&60_u32.to_le_bytes());
    fs::write(&input, &bytes).expect("a file");
    let stages: Vec<Box<dyn Stage>> = vec![
        Box::new(place.stage()),
        Box::new(Swap::new(Target::Other, Unknown::Error)),
    ];
    place
        .convert(&input, None, stages)
        .expect_err("an unknown record");
    assert!(!place.path("out.jit").exists() && !place.path("out.data").exists());
}

/// Every address has the name in the last line that contains it, whatever the order, size and
/// overlap of the lines.
#[test]
fn the_last_line_has_the_name() {
    let mut state = 7_u64;
    let mut next = |most: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % most
    };
    for _ in 0..20 {
        let lines: Vec<(u64, u64)> = (0..60)
            .map(|_| (0xf80 + next(0x2100), next(0x40) * next(8)))
            .collect();
        let text: String = lines
            .iter()
            .enumerate()
            .map(|(number, (start, size))| format!("{start:x} {size:x} line {number}\n"))
            .collect();
        let place = Place::with_maps(&[(5, &text)]);
        let mut told = vec![
            (1, Map(5, 0x1000, 0x1000, "//anon")),
            (1, Map(5, 0x2000, 0x1000, "//anon")),
        ];
        told.extend((0x1000..0x3000).step_by(3).map(|at| (2, At(5, at))));
        place.with(&told);
        let last: BTreeMap<u64, usize> = lines
            .iter()
            .enumerate()
            .flat_map(|(number, &(start, size))| {
                (start..start + size.max(1)).map(move |at| (at, number))
            })
            .collect();
        for (at, name) in names(&place.path("out.data")) {
            let expected = last.get(&at).map(|line| format!("line {line}"));
            assert_eq!(name, expected.unwrap_or_default(), "{at:#x} of {text}");
        }
    }
}

/// The names exceed the limit for data in memory.
#[test]
fn memory_is_limited() {
    let text: String = (0..10_000)
        .map(|at| format!("{:x} 1 f\n", at * 2))
        .collect();
    let place = Place::with_maps(&[(5, &text)]);
    let input = place.path("in.data");
    made(&input, Order::Little, MONOTONIC, &told());
    let limits = Limits::default().with_max_metadata(1 << 16);
    let source = perfdata_convert::io::Input::open(&input)
        .expect("a recording")
        .limited_by(limits);
    let output = Output::create(&place.path("out.data"), &input, true).expect("a file");
    let summary = Conversion::new(vec![Box::new(place.stage())])
        .run_on(source, output.synced(false))
        .expect("it is converted");
    assert!(summary.notes[0].contains("max-metadata"), "{summary:?}");
    assert!(place.images().is_empty());
}

/// The command: where images are, and what it refuses.
#[test]
fn the_command_takes_the_option() {
    let place = Place::with_maps(&[(5, MAP)]);
    let input = place.path("in.data");
    made(&input, Order::Little, MONOTONIC, &told());
    let option = format!("--perf-maps={}", place.folder().display());
    let run = |args: &[&str]| {
        let output = perfconv()
            .current_dir(place.folder())
            .args(args)
            .arg(&option)
            .output()
            .expect("perfconv can be started");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), stderr)
    };
    assert_eq!(
        run(&["convert", "-q", "in.data", "-o", "a"]),
        (Some(0), String::new())
    );
    assert!(place.path("a.jit/perf-5-10000.so").exists());
    fs::remove_file(place.path("a")).expect("a recording");
    let (status, stderr) = run(&["convert", "in.data", "-o", "a", "--jit"]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("a.jit exists"), "{stderr}");
    let inject = [
        "inject",
        "-q",
        "-i",
        "in.data",
        "-o",
        "b",
        "--jit-images",
        "c",
        "-b",
    ];
    assert_eq!(run(&inject).0, Some(0));
    assert!(place.path("c/perf-5-10000.so").exists());
    let (status, stderr) = run(&["split", "in.data", "-o", "parts", "--by", "pid"]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("split it"), "{stderr}");
    let (status, stderr) = run(&["convert", "in.data", "-o", "-"]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("--jit-images"), "{stderr}");
}
