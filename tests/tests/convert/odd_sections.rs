//! Sections that only some recorders write, or that nobody can read: they do not stop work that
//! does not need them.

use std::fs;
use std::path::Path;

use perfdata_convert::io::Input;
use perfdata_convert::verify::{Report, Severity};
use perfdata_core::feature::{Feature, FeatureId, TABLE};
use perfdata_core::header::ContainerKind;
use perfdata_tests::convert::{Whole, convert, in_shell};
use perfdata_tests::recordings::{Endian, fixtures_dir};
use perfdata_tests::synth::attr::{Attr, Stamp, sample_type};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::build_id::{Entry, HOST, Room};
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::{kernel, kind};
use perfdata_tests::{perf, skipped};
use tempfile::TempDir;

/// Returns a folder with a recording `in.data`.
fn folder_with(bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in.data"), bytes).expect("a file");
    folder
}

/// Runs `perfconv` with these arguments in a folder, and returns its messages.
fn perfconv(folder: &TempDir, arguments: &str) -> String {
    let said = in_shell(folder.path(), &format!("perfconv {arguments}"));
    assert!(said.success(), "perfconv {arguments}: {}", said.stderr);
    said.stderr
}

fn report(path: &Path) -> Report {
    Report::of(Input::open(path).expect("it opens")).expect("it is read")
}

/// Returns the build IDs in the section with their names, and the bytes after them.
fn build_ids(path: &Path) -> (Vec<(String, String)>, Vec<u8>) {
    let recording = Whole::read_file(path).expect("a recording").recording;
    let section = recording.feature(FeatureId::BUILD_ID).expect("a section");
    let section = section.expect("it can be read");
    let Feature::BuildIds(ids) = section.value else {
        panic!("another section");
    };
    let id = |entry: &perfdata_core::feature::BuildIdEntry| {
        let id = entry.build_id.id(entry.header.misc).iter();
        let hex = id.map(|byte| format!("{byte:02x}")).collect();
        (hex, entry.build_id.filename.to_string())
    };
    (ids.0.iter().map(id).collect(), section.tail)
}

/// The work that a user can do with a recording `in.data`: name of the output and arguments.
const WORK: [(&str, &str); 9] = [
    ("folded.txt", "export in.data -o folded.txt --to folded"),
    ("text.txt", "export in.data -o text.txt --to perf-script"),
    ("time.data", "in.data -o time.data --time 0%-100%"),
    ("parts", "split in.data -o parts --by pid"),
    ("injected.data", "inject in.data -o injected.data -b"),
    ("pipe.data", "file2pipe in.data -o pipe.data"),
    ("swapped.data", "in.data -o swapped.data --swap-endian"),
    ("sanitized.data", "in.data -o sanitized.data --sanitize"),
    ("recovered.data", "recover in.data -o recovered.data"),
];

/// perf 6.12.0 wrote zeros after each entry, which the size of the entry does not include. perf
/// reads the entries before them.
#[test]
fn build_ids_of_perf_6_12_0_are_those_that_perf_reads() {
    let path = fixtures_dir().join("defects/perf-6.12.0-build-id-table.data");
    let original = fs::read(&path).expect("a fixture");
    let folder = folder_with(&original);
    let (ids, rest) = build_ids(&path);
    let vdso = "a599807156a2a62fe956a82e388aeeabc874119c";
    assert_eq!(ids, [(vdso.to_owned(), "[vdso]".to_owned())]);
    assert_eq!(rest.len(), 320);
    let copy = convert(&path, None, vec![]).expect("it is copied");
    assert_eq!(copy.bytes(), original);
    let note = "BUILD_ID: the last 320 bytes, after 1 build ID, are no entry";
    let report_of_all = report(&path);
    let mut findings = report_of_all.findings.iter();
    let finding = findings.find(|finding| finding.meaning.starts_with("BUILD_ID"));
    let finding = finding.expect("a finding");
    assert_eq!(
        (finding.severity, finding.offset),
        (Severity::Warning, 7324)
    );
    assert_eq!(report_of_all.count(Severity::Error), 0);
    assert!(finding.meaning.starts_with(note), "{}", finding.meaning);

    for (output, arguments) in WORK {
        let said = perfconv(&folder, arguments);
        let is_copy = matches!(output, "recovered.data" | "folded.txt" | "text.txt");
        let expected = usize::from(!is_copy);
        assert_eq!(said.matches(note).count(), expected, "{arguments}: {said}");
    }
    let made = |name: &str| folder.path().join(name);
    assert_eq!(fs::read(made("recovered.data")).expect("a file"), original);
    assert_eq!(
        build_ids(&made("swapped.data")),
        (ids.clone(), rest.clone())
    );
    let (injected, after) = build_ids(&made("injected.data"));
    assert_eq!((&injected[0], after), (&ids[0], rest));
    for name in ["pipe.data", "swapped.data", "injected.data", "time.data"] {
        assert_eq!(report(&made(name)).count(Severity::Error), 0, "{name}");
    }

    // Older perfs refuse the longer attributes of perf 6.12.
    let first = "6.12".parse().expect("a version");
    let is_judge = |perf: &&perf::Perf| perf.endian == Endian::Little && perf.version >= first;
    let mut perfs = perf::all().iter().filter(is_judge);
    let Some(perf) = perfs.next() else {
        return skipped::note("a newer perf");
    };
    let listed = |name: &str| {
        let said = perf
            .ask(perf::Question::BuildIds, &made(name))
            .expect("perf runs");
        assert!(said.success(), "{perf}, {name}: {}", said.stderr);
        said.stdout
    };
    assert_eq!(listed("in.data"), format!("{vdso} [vdso]\n"));
    assert_eq!(listed("recovered.data"), listed("in.data"));
    assert_eq!(listed("time.data"), listed("in.data"));
}

/// Returns a recording with one sample in a kernel module and one in a program, and the sections
/// that `add` adds.
fn recording(big: bool, add: impl FnOnce(&mut File)) -> File {
    let parts = sample_type::IP | sample_type::TID | sample_type::TIME;
    let attr = Attr {
        kind: 1,
        size: 112,
        sample_period: 1,
        ..Attr::new(parts, "sample_id_all mmap comm")
    };
    let mut scribe = Scribe::new(big, attr.clone(), Stamp::SOME);
    let s = &mut scribe;
    let task = (7, 7);
    let module = (u32::MAX, 0);
    s.kernel("MMAP", kind::MMAP, misc::KERNEL, |b| {
        kernel::mmap(b, module, [0xffff_ffff_c000_0000, 0x1000, 0], MODULE)
    });
    s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, task, "true"));
    s.kernel("MMAP", kind::MMAP, misc::USER, |b| {
        kernel::mmap(b, task, [0x1000, 0x1000, 0], "/bin/true")
    });
    (s.stamp.pid, s.stamp.tid) = task;
    s.sample("SAMPLE", |sample| sample.ip = 0x1010);
    s.sample("SAMPLE", |sample| sample.ip = 0xffff_ffff_c000_0010);
    let last = s.cases.last_mut().expect("a sample");
    let at = if big { 5 } else { 4 };
    last.record[at] = misc::KERNEL as u8;
    let event = Event {
        name: "event".into(),
        attr,
        ids: vec![1],
    };
    let mut file = File::new(big, vec![event]);
    file.data = stream(&scribe.cases);
    file.set_feature(3, Buf::new(big).str("host").bytes);
    file.set_feature(6, Buf::new(big).str("x86_64").bytes);
    let described = feature_events::event_desc(Buf::new(big), &file.events).bytes;
    file.set_feature(feature_events::EVENT_DESC, described);
    add(&mut file);
    file
}

const MODULE: &str = "/lib/modules/4.4.0/kernel/arch/x86/kvm/kvm-intel.ko";

/// simpleperf leaves garbage after names, and calls their size 100. A pipe has records that every
/// reader understands, with the same build IDs.
#[test]
fn garbage_after_names_does_not_become_a_trailer() {
    let entry = |name| {
        let entry = Entry {
            misc: misc::USER,
            pid: HOST,
            build_id: &[0x5a; 20],
            size_byte: false,
            name,
            room: Room::Name64,
        };
        let mut bytes = entry.framed(false, kind::HEADER_BUILD_ID);
        bytes[32] = 0xff;
        let end = 36 + name.len() + 1;
        bytes[end + 6..].iter_mut().for_each(|byte| *byte = 0xc8);
        bytes
    };
    let section = [entry("/bin/true"), entry("/lib/ld.so")].concat();
    let file = recording(false, |file| file.set_feature(2, section));
    let folder = folder_with(&file.bytes());
    let path = folder.path().join("in.data");
    let names = |path: &Path| build_ids(path).0;
    assert_eq!(names(&path).len(), 2);
    let pipe = convert(&path, Some(ContainerKind::Pipe), vec![]).expect("it is converted");
    let report = report(&pipe.path());
    assert!(report.is_clean(), "{}", report.text());
    let back = convert(&pipe.path(), Some(ContainerKind::File), vec![]).expect("it is converted");
    assert_eq!(names(&back.path()), names(&path));
}

/// No unreadable section stops work that does not need it.
#[test]
fn unreadable_sections_do_not_stop_other_work() {
    let unreadable = |id: FeatureId, section: &[u8]| {
        let mut recording = Whole::read(recording(false, |_| {}).bytes())
            .expect("one")
            .recording;
        recording.features.insert(id, section.to_vec());
        recording
            .feature(id)
            .is_some_and(|section| section.is_err())
    };
    let sections = TABLE.iter().filter_map(|info| {
        let contents = [&[0xff; 5][..], &[0xff; 64], &[0; 3]];
        let found = contents
            .into_iter()
            .find(|bytes| unreadable(info.id, bytes));
        // Any bytes are readable flags, or build IDs.
        found.map(|bytes| (info.id, bytes))
    });
    let sections: Vec<_> = sections.collect();
    assert!(sections.len() > 20, "{sections:?}");
    // Compression decides about the records; the other byte order needs every section.
    let sections = sections
        .iter()
        .filter(|(id, _)| *id != FeatureId::COMPRESSED);
    let work = WORK.iter().filter(|(output, _)| *output != "swapped.data");
    let work: Vec<_> = work.map(|(_, arguments)| arguments).collect();
    for (id, bytes) in sections {
        let file = recording(false, |file| file.set_feature(id.0, bytes.to_vec()));
        let folder = folder_with(&file.bytes());
        for arguments in &work {
            perfconv(&folder, arguments);
        }
        perfconv(
            &folder,
            "merge in.data in.data -o merged.data --align after",
        );
        // The error names the place in the file.
        let said = in_shell(folder.path(), "perfconv in.data -o out.data --swap-endian");
        assert!(
            !said.success() && !said.stderr.contains("offset 0x0"),
            "{id}"
        );
        let recording = Input::open(&folder.path().join("in.data")).expect("it opens");
        let (reader, _) = recording.reader().expect("it opens");
        let start = reader
            .container_layout()
            .section_offset(*id)
            .expect("a section");
        let places: Vec<_> = said
            .stderr
            .split("offset 0x")
            .skip(1)
            .filter_map(|rest| {
                u64::from_str_radix(rest.split(|c: char| !c.is_ascii_hexdigit()).next()?, 16).ok()
            })
            .collect();
        let is_inside = |at: &u64| (start..=start + bytes.len() as u64).contains(at);
        assert!(
            places.iter().any(is_inside),
            "{id} at {start:#x}: {}",
            said.stderr
        );
    }
}

/// perf shows the path of a module if the recording lists its build ID as one of the kernel, and
/// perf up to 4.x lists modules like files of processes.
#[test]
fn modules_of_old_perfs_have_their_short_name() {
    for (mode, shown) in [(misc::USER, "[kvm_intel]"), (misc::KERNEL, MODULE)] {
        let entry = Entry {
            misc: mode,
            pid: HOST,
            build_id: &[0x5a; 20],
            size_byte: false,
            name: MODULE,
            room: Room::Name64,
        };
        let file = recording(false, |file| file.set_feature(2, entry.framed(false, 0)));
        let folder = folder_with(&file.bytes());
        perfconv(&folder, "export in.data -o text.txt --to perf-script");
        let text = fs::read_to_string(folder.path().join("text.txt")).expect("a text");
        assert!(text.contains(&format!("({shown})")), "{text}");
        if perf::all().is_empty() {
            skipped::note("perf");
        }
        for perf in perf::all()
            .iter()
            .filter(|perf| perf.endian == Endian::Little)
        {
            let mut command = perf.command();
            command
                .args(["script", "-i"])
                .arg(folder.path().join("in.data"));
            let said = perf::run(command).expect("perf runs");
            assert!(
                said.stdout.contains(&format!("({shown})")),
                "{perf}: {}",
                said.stdout
            );
        }
    }
}
