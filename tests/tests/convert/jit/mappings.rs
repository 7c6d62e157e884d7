//! The mappings of functions: where they are in the stream, and what they map.

use std::fs::{self};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::Endian as Order;
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_edit::sort::Sort;
use perfdata_inject::build_ids::{BuildIds, KnownBuildIds, Resolver, Select, Storage, Sysroot};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::synth::jitdump::{Dump, Header};
use perfdata_tests::told::Told::{Map, Sample as At};
use perfdata_tests::told::{MONOTONIC, made, shown};

use super::{Place, life, told};

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
                    // The recordings in pipes have no sections.
                    let is_added = |note: &&String| note.starts_with("added ");
                    let mut notes = summary.notes.clone();
                    notes.retain(|note| !is_added(&note));
                    assert_eq!(
                        notes,
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
        assert_eq!((map.prot, map.flags), (Some(5), Some(2)));
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
    let shown = shown(&place.path("out.data"));
    let times = shown.iter().filter(|line| *line != "round").map(|line| {
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
