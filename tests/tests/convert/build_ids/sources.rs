//! Sources of build IDs: files of every class and byte order, debug files, data from the user and
//! from the recording.

use std::fs;
use std::io::Write;
use std::path::Path;

use perfdata_core::Endian;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::wire::{HeaderString, Wire};
use perfdata_inject::build_ids::{Select, Storage};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::recordings::fixtures_dir;
use perfdata_tests::synth::attr::sample_type::{CALLCHAIN, IP, TID, TIME};
use perfdata_tests::synth::feature_events::Event;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::kernel::{Object, mmap2};
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::{Attr, Stamp, kind};
use tempfile::TempDir;

use super::{Table, row, stage, table, with_build_ids};

/// The contents of the notes in `fixtures/elf`, as printed by readelf.
const LITTLE64: &str = "a97db156fc5bf1a77eb1ffe87ce7ce355ffe9881";
const LITTLE32: &str = "29a46f54bae157fc57dbe845759f4f22";
const BIG64: &str = "7ffa45ad556b8a0980c129f67cf152a6cb20a19d";
const BIG32: &str = "a698ecf9c46c2d6f79bd1a57e1a1cb77ebb44ac2";
const LINKED_LITTLE64: &str = "8645d9d38383d4da425b36c29eccd9c968e394e1";
const LINKED_BIG32: &str = "61ea55658d658413135152893997bb7d92af1ca9";

/// Returns a folder with `fixtures/elf` as `/opt`, and a recording with a sample in each of `names`
/// there.
fn machine(names: &[&str]) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("root/opt")).unwrap();
    for entry in fs::read_dir(fixtures_dir().join("elf")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(
            entry.path(),
            folder.path().join("root/opt").join(entry.file_name()),
        )
        .unwrap();
    }
    let path = folder.path().join("recorded.data");
    fs::write(&path, recording(false, names).bytes()).unwrap();
    (folder, path)
}

fn recording(big: bool, names: &[&str]) -> File {
    let attr = Attr::new(
        IP | TID | TIME | CALLCHAIN,
        "sample_id_all mmap mmap2 comm task comm_exec",
    );
    let event = Event {
        name: "cpu-clock".into(),
        attr: attr.clone(),
        ids: vec![1],
    };
    let mut s = Scribe::new(big, attr, Stamp::SOME);
    let task = s.stamp.task();
    for (at, name) in names.iter().enumerate() {
        let start = 0x10_0000 * (at as u64 + 1);
        let inode = Object::Inode(8, 1, 4711 + at as u64, 0);
        s.kernel("MMAP2", kind::MMAP2, misc::USER, |b| {
            mmap2(
                b,
                task,
                [start, 0x1000, 0],
                inode,
                [5, 2],
                &format!("/opt/{name}"),
            )
        });
        s.sample("", |sample| {
            (sample.ip, sample.callchain) = (start + 0x123, Vec::new())
        });
    }
    let mut file = File::new(big, vec![event]);
    file.data = stream(&s.cases);
    file
}

fn expected(rows: &[(&str, &str)]) -> Table {
    rows.iter()
        .map(|(id, name)| row(id, &format!("/opt/{name}")))
        .collect()
}

#[test]
fn both_classes_in_both_byte_orders() {
    let names = [
        "little64",
        "little32",
        "big64",
        "big32",
        "sectionless-little64",
    ];
    let (folder, path) = machine(&names);
    let made = with_build_ids(&path, None, Select::Hit, Some(&folder.path().join("root")));
    assert_eq!(made.summary.notes, [""; 0]);
    let ids = [LITTLE64, LITTLE32, BIG64, BIG32, LITTLE64];
    assert_eq!(
        table(&made.path()),
        expected(&ids.into_iter().zip(names).collect::<Vec<_>>())
    );
}

#[test]
fn debug_files_in_the_usual_places() {
    for place in ["opt", "opt/.debug", "usr/lib/debug/opt"] {
        let (folder, path) = machine(&["linked-little64", "linked-big32"]);
        let root = folder.path().join("root");
        fs::create_dir_all(root.join(place)).unwrap();
        for name in ["linked-little64.debug", "linked-big32.debug"] {
            fs::rename(root.join("opt").join(name), root.join(place).join(name)).unwrap();
        }
        let made = with_build_ids(&path, None, Select::Hit, Some(&root));
        let wanted = [
            (LINKED_LITTLE64, "linked-little64"),
            (LINKED_BIG32, "linked-big32"),
        ];
        assert_eq!(table(&made.path()), expected(&wanted), "{place}");
    }
}

#[test]
fn a_debug_file_must_be_the_right_one() {
    let (folder, path) = machine(&["linked-little64", "linked-big32", "plain-little64", "gone"]);
    let root = folder.path().join("root");
    let debug = root.join("opt/linked-little64.debug");
    let mut bytes = fs::read(&debug).unwrap();
    bytes.push(0);
    fs::write(debug, bytes).unwrap();
    let made = with_build_ids(&path, None, Select::Hit, Some(&root));
    assert_eq!(
        table(&made.path()),
        expected(&[(LINKED_BIG32, "linked-big32")])
    );
    let notes = &made.summary.notes;
    let said = |name: &str, why: &str| {
        let is_it = |note: &&String| {
            note.starts_with(&format!("no build ID for /opt/{name}: ")) && note.contains(why)
        };
        assert!(notes.iter().any(|note| is_it(&note)), "{name}: {notes:?}");
    };
    said("linked-little64", "CRC-32");
    said("plain-little64", "it has no build ID");
    said("gone", "No such file");
    assert_eq!(notes.len(), 3);
}

/// A correct debug file is found after an incorrect one.
#[test]
fn all_places_of_a_debug_file_are_tried() {
    let (folder, path) = machine(&["linked-little64"]);
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("usr/lib/debug/opt")).unwrap();
    let name = "linked-little64.debug";
    fs::rename(
        root.join("opt").join(name),
        root.join("usr/lib/debug/opt").join(name),
    )
    .unwrap();
    fs::write(root.join("opt").join(name), "another file").unwrap();
    let made = with_build_ids(&path, None, Select::Hit, Some(&root));
    assert_eq!(
        table(&made.path()),
        expected(&[(LINKED_LITTLE64, "linked-little64")])
    );
}

#[test]
fn the_user_knows_better_than_files() {
    let (folder, path) = machine(&["little64", "gone"]);
    let root = folder.path().join("root");
    let known =
        "00112233445566778899aabbccddeeff00112233 /opt/little64, abcdef /opt/gone,12 /opt/unmapped";
    let stage = stage(Select::Hit, Storage::Table, Some(&root), known);
    let made = convert(&path, None, vec![Box::new(stage)]).unwrap();
    let wanted = [
        ("00112233445566778899aabbccddeeff00112233", "little64"),
        ("abcdef", "gone"),
    ];
    assert_eq!(table(&made.path()), expected(&wanted));
}

/// Existing entries of the table are preserved byte for byte, before the added ones.
#[test]
fn nothing_told_is_lost() {
    use perfdata_tests::synth::build_id::{Entry, HOST, Room, section};
    for big in [false, true] {
        let (folder, path) = machine(&[]);
        let mut file = recording(big, &["little64", "big64"]);
        let entry = |name, room| Entry {
            misc: misc::USER,
            pid: HOST,
            build_id: &[0xaa; 20],
            size_byte: true,
            name,
            room,
        };
        let told = [
            entry("/opt/big64", Room::Name64),
            entry("/opt/of another time", Room::Name8),
        ];
        let section = section(big, &told);
        file.set_feature(2, section.clone());
        fs::write(&path, file.bytes()).unwrap();
        let made = with_build_ids(&path, None, Select::Hit, Some(&folder.path().join("root")));
        let other = "aa".repeat(20);
        let wanted = [
            (LITTLE64, "little64"),
            (&other, "big64"),
            (&other, "of another time"),
        ];
        assert_eq!(table(&made.path()), expected(&wanted));
        let whole = Whole::read_file(&made.path()).unwrap();
        assert!(whole.recording.features[&FeatureId::BUILD_ID].starts_with(&section));
        let again = with_build_ids(
            &made.path(),
            None,
            Select::Hit,
            Some(&folder.path().join("root")),
        );
        assert_eq!(again.bytes(), made.bytes(), "nothing is added twice");
    }
}

#[test]
fn build_ids_of_mappings_count_first() {
    let attr = Attr::new(
        IP | TID | TIME,
        "sample_id_all mmap mmap2 comm task comm_exec",
    );
    let event = Event {
        name: "cpu-clock".into(),
        attr: attr.clone(),
        ids: vec![1],
    };
    let mut s = Scribe::new(false, attr, Stamp::SOME);
    let task = s.stamp.task();
    for (start, id) in [(0x1000, [7; 20]), (0x2000, [8; 20])] {
        let flags = misc::USER | 1 << 14;
        let object = Object::BuildId(&id);
        s.kernel("", kind::MMAP2, flags, |b| {
            mmap2(b, task, [start, 0x1000, 0], object, [5, 2], "/opt/little64")
        });
        s.sample("", |sample| sample.ip = start);
    }
    let (folder, path) = machine(&[]);
    let mut file = File::new(false, vec![event]);
    file.data = stream(&s.cases);
    fs::write(&path, file.bytes()).unwrap();
    let made = with_build_ids(&path, None, Select::Hit, Some(&folder.path().join("root")));
    let wanted = [("07".repeat(20), "little64"), ("08".repeat(20), "little64")];
    assert_eq!(
        table(&made.path()),
        expected(&wanted.each_ref().map(|(id, name)| (id.as_str(), *name)))
    );
}

/// MMAP2 records with build IDs are preserved, and everything else is unchanged.
#[test]
fn build_ids_in_mappings() {
    let (folder, path) = machine(&["little64", "plain-little64", "little32"]);
    let root = folder.path().join("root");
    let before = Whole::read_file(&path).unwrap();
    for select in [Select::Hit, Select::All] {
        let made = convert(
            &path,
            None,
            vec![Box::new(stage(select, Storage::Mmap2, Some(&root), ""))],
        )
        .unwrap();
        let after = Whole::read_file(&made.path()).unwrap();
        let mut wanted = before.stream.clone();
        for (index, id) in [(0, LITTLE64), (4, LITTLE32)] {
            let at = before.records[index].0;
            let id: Vec<u8> = (0..id.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap())
                .collect();
            wanted[at + 5] |= 0x40;
            wanted[at + 40..at + 64].fill(0);
            wanted[at + 40] = id.len() as u8;
            wanted[at + 44..at + 44 + id.len()].copy_from_slice(&id);
        }
        assert_eq!(after.stream, wanted);
        assert_eq!(table(&made.path()), Table::new());
    }
}

/// Pipes contain them before the first sample.
#[test]
fn records_of_a_pipe() {
    use perfdata_tests::synth::pipe::Pipe;
    for big in [false, true] {
        let (folder, path) = machine(&[]);
        let file = recording(big, &["little64", "big32"]);
        let mut pipe = Pipe::new(big, file.magic).event(&file.events[0]);
        pipe.bytes.extend(&file.data);
        fs::write(&path, &pipe.bytes).unwrap();
        let wanted = expected(&[(LITTLE64, "little64"), (BIG32, "big32")]);
        let root = folder.path().join("root");
        let made = with_build_ids(&path, None, Select::Hit, Some(&root));
        assert_eq!(table(&made.path()), wanted);
        let whole = Whole::read_file(&made.path()).unwrap();
        assert!(whole.stream.ends_with(&file.data), "the other records stay");
        assert!(whole.records.iter().all(|(at, _)| at % 8 == 0));
        let made = with_build_ids(&path, Some(ContainerKind::File), Select::Hit, Some(&root));
        assert_eq!(table(&made.path()), wanted);
        assert_eq!(Whole::read_file(&made.path()).unwrap().stream, file.data);
    }
}

/// Every error in an ELF file results in a note, and the conversion continues.
#[test]
fn hostile_files() {
    let names = [
        "little64",
        "little32",
        "big64",
        "big32",
        "sectionless-little64",
        "linked-little64",
        "linked-big32",
    ];
    let (folder, path) = machine(&names);
    let opt = folder.path().join("root/opt");
    let good: Vec<(&str, Vec<u8>)> = names
        .iter()
        .map(|name| (*name, fs::read(opt.join(name)).unwrap()))
        .collect();
    let run = |damage: &dyn Fn(&mut Vec<u8>)| {
        for (name, bytes) in &good {
            let mut bytes = bytes.clone();
            damage(&mut bytes);
            fs::write(opt.join(name), bytes).unwrap();
        }
        with_build_ids(&path, None, Select::All, Some(&folder.path().join("root")));
    };
    for len in [0, 3, 4, 16, 40, 51, 52, 63, 64, 100, 180, 200] {
        run(&|bytes| bytes.truncate(len));
    }
    for at in (0..512).step_by(4) {
        for value in [0, 0x7f, 0xff] {
            run(&|bytes| {
                bytes
                    .iter_mut()
                    .skip(at)
                    .take(4)
                    .for_each(|byte| *byte = value)
            });
        }
    }
}

/// Many distributions compress modules of the kernel.
#[test]
fn compressed_objects() {
    const NAMES: [&str; 3] = ["module.ko.gz", "module.ko.xz", "module.ko.zst"];
    let damaged = NAMES.map(|name| format!("damaged-{name}"));
    let (folder, path) = machine(&[&NAMES[..], &damaged.each_ref().map(String::as_str)].concat());
    let opt = folder.path().join("root/opt");
    let plain = fs::read(opt.join("little64")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&plain).unwrap();
    let packed = [
        gzip.finish().unwrap(),
        fs::read(opt.join("little64.xz")).unwrap(),
        zstd::encode_all(&*plain, 1).unwrap(),
    ];
    for (at, packed) in packed.iter().enumerate() {
        fs::write(opt.join(NAMES[at]), packed).unwrap();
        fs::write(opt.join(&damaged[at]), &packed[..packed.len() / 2]).unwrap();
    }
    let made = with_build_ids(&path, None, Select::Hit, Some(&folder.path().join("root")));
    assert_eq!(
        table(&made.path()),
        expected(&NAMES.map(|name| (LITTLE64, name)))
    );
    let notes = made.summary.notes.join("\n");
    for (how, name) in ["gzip", "xz", "zstd"].iter().zip(&damaged) {
        assert!(
            notes.contains(&format!("{name}: corrupt {how} data: ")),
            "{notes}"
        );
    }
}

/// The vDSO of a 32-bit process is a different DSO than that of a 64-bit process.
#[test]
fn the_vdso_of_a_process() {
    let attr = Attr::new(
        IP | TID | TIME,
        "sample_id_all mmap mmap2 comm task comm_exec",
    );
    let event = Event {
        name: "cpu-clock".into(),
        attr: attr.clone(),
        ids: vec![1],
    };
    for (start, id, missing) in [
        (0xf7f0_0000, LITTLE32, "vdso32.so"),
        (0x7ffe_1234_5000, LITTLE64, "vdso64.so"),
    ] {
        let mut s = Scribe::new(false, attr.clone(), Stamp::SOME);
        let task = s.stamp.task();
        let none = Object::Inode(0, 0, 0, 0);
        s.kernel("", kind::MMAP2, misc::USER, |b| {
            mmap2(b, task, [start, 0x2000, 0], none, [5, 2], "[vdso]")
        });
        let (folder, path) = machine(&[]);
        let mut file = File::new(false, vec![event.clone()]);
        file.data = stream(&s.cases);
        file.set_feature(
            4,
            HeaderString::new(b"6.1.0-old")
                .encode(Endian::Little)
                .unwrap(),
        );
        fs::write(&path, file.bytes()).unwrap();
        let root = folder.path().join("root");
        let places = root.join("lib/modules/6.1.0-old/vdso");
        fs::create_dir_all(&places).unwrap();
        for (name, object) in [("vdso32.so", "little32"), ("vdso64.so", "little64")] {
            fs::copy(root.join("opt").join(object), places.join(name)).unwrap();
        }
        let made = with_build_ids(&path, None, Select::Hit, Some(&root));
        assert_eq!(table(&made.path()), Table::from([row(id, "[vdso]")]));
        fs::remove_file(places.join(missing)).unwrap();
        let made = with_build_ids(&path, None, Select::Hit, Some(&root));
        assert_eq!(table(&made.path()), Table::new());
        let bits = if missing == "vdso32.so" {
            "32-bit vDSO"
        } else {
            "64-bit vDSO"
        };
        assert!(
            made.summary.notes[0].contains(bits),
            "{:?}",
            made.summary.notes
        );
    }
}

#[test]
fn an_object_that_is_no_file() {
    let (folder, path) = machine(&["folder", "device"]);
    let opt = folder.path().join("root/opt");
    fs::create_dir(opt.join("folder")).unwrap();
    std::os::unix::fs::symlink("/dev/null", opt.join("device")).unwrap();
    let made = with_build_ids(&path, None, Select::Hit, Some(&folder.path().join("root")));
    assert_eq!(
        (table(&made.path()), made.summary.notes.len()),
        (Table::new(), 2)
    );
    assert!(!Path::new("/opt/folder").exists());
}
