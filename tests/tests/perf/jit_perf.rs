//! The code of jitdumps: images and samples are those of perf inject --jit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata_convert::io::Output;
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::compress::Compress;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::RecordType;
use perfdata_inject::jit::{Images, Jit};
use perfdata_tests::convert::convert;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Endian, PerfVersion};
use perfdata_tests::skipped;

/// A recording with dumps, and what perf made of it.
struct Set {
    name: &'static str,
    /// The release that recorded and injected.
    version: PerfVersion,
    recording: PathBuf,
    dumps: PathBuf,
    /// The folder of perf's images and texts.
    folder: PathBuf,
}

/// Name, recording and dumps.
const SETS: [(&str, &str, &str); 8] = [
    ("x86_64-6.12", "jit-recorded.data", "raw"),
    ("x86_64-6.12/pipe", "jit-pipe.data", "../raw"),
    ("x86_64-6.12/nomove", "jit.data", "."),
    ("x86_64-6.12/loads", "jit.data", "."),
    ("x86_64-7.2", "jit-recorded.data", "raw"),
    ("x86_64-7.2/pipe", "jit-pipe.data", "../raw"),
    ("x86_64-7.2/nomove", "jit.data", "."),
    ("x86_64-7.2/loads", "jit.data", "."),
];

fn sets() -> Vec<Set> {
    let Some(root) = recordings::further("recordings/jit") else {
        return Vec::new();
    };
    let set = |(name, recording, dumps): (&'static str, _, _)| {
        let folder = root.join(name);
        let release = name.split(['-', '/']).nth(1).expect("it names perf");
        Set {
            name,
            version: release.parse().expect("a release"),
            recording: folder.join(recording),
            dumps: folder.join(dumps),
            folder,
        }
    };
    SETS.into_iter().map(set).collect()
}

/// Adds the code to `input`; writes `out.data` and `out.data.jit` in `folder`.
pub fn with_code(input: &Path, dumps: Option<&Path>, folder: &Path) -> PathBuf {
    let path = folder.join("out.data");
    let mut jit = Jit::new(Images::In(folder.join("out.data.jit"))).synced(false);
    if let Some(dumps) = dumps {
        jit = jit.with_dumps(dumps.to_owned());
    }
    let output = Output::create(&path, input, true)
        .expect("a file")
        .synced(false);
    Conversion::new(vec![Box::new(jit)])
        .run(input, output)
        .expect("it is converted");
    path
}

/// Returns the file names in a folder that begin with `jitted-` and end with `.so`.
fn images(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with("jitted-") && name.ends_with(".so"))
        .collect();
    names.sort();
    names
}

/// Offset and size of the alignment of the segment.
const ALIGN: std::ops::Range<usize> = 0x70..0x78;

/// Sets the build ID in an image to zeros: perf before 7.2 of Debian writes random ones.
fn without_build_id(image: &mut [u8]) {
    let note = image.windows(4).position(|bytes| bytes == b"GNU\0");
    let at = note.expect("a note") + 4;
    image[at..at + 20].fill(0);
}

/// Returns the source lines of an image as readelf shows them, without ends of sequences, and
/// without columns and views.
fn rows(image: &Path) -> Option<Vec<String>> {
    let mut command = Command::new("readelf");
    command.arg("--debug-dump=decodedline").arg(image);
    let said = perf::run(command).ok()?;
    let rows = said.stdout.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [file, line, address, ..] = words[..] else {
            return None;
        };
        (address.starts_with("0x") && line != "-").then(|| format!("{file} {line} {address}"))
    });
    Some(rows.collect())
}

/// Every image is that of perf, except the alignment of its segment; with source lines, those are
/// the same.
#[test]
fn images_are_those_of_perf() {
    let mut compared = BTreeMap::<bool, usize>::new();
    for set in sets() {
        let folder = tempfile::tempdir().expect("a folder");
        with_code(&set.recording, Some(&set.dumps), folder.path());
        let own = folder.path().join("out.data.jit");
        for name in images(&own) {
            let Ok(mut expected) = fs::read(set.folder.join(&name)) else {
                // perf 7.2 crashed before it wrote the rest.
                continue;
            };
            let mut image = fs::read(own.join(&name)).expect("an image");
            assert_eq!(
                image[ALIGN],
                0x1000_u64.to_le_bytes(),
                "{} {name}",
                set.name
            );
            assert_eq!(expected[ALIGN], 8_u64.to_le_bytes(), "{} {name}", set.name);
            image[ALIGN].copy_from_slice(&8_u64.to_le_bytes());
            if set.version < "7.2".parse().expect("a release") {
                without_build_id(&mut image);
                without_build_id(&mut expected);
            }
            // The reserved name of the section is in every image; its header in those with lines.
            let Some(lines) = rows(&set.folder.join(&name)) else {
                skipped::note("readelf");
                continue;
            };
            *compared.entry(lines.is_empty()).or_default() += 1;
            if lines.is_empty() {
                assert!(image == expected, "{} {name}", set.name);
                continue;
            }
            assert_eq!(rows(&own.join(&name)), Some(lines), "{} {name}", set.name);
            // All before the sections of the lines, without the offset and number of sections.
            let note = expected.windows(4).position(|bytes| bytes == b"GNU\0");
            let end = note.expect("a note") + 24;
            assert!(
                image[0x40..end] == expected[0x40..end],
                "{} {name}",
                set.name
            );
        }
    }
    assert!(
        sets().is_empty() || compared.len() == 2 && compared[&true] > 20,
        "{compared:?}"
    );
}

pub fn judges(version: PerfVersion) -> impl Iterator<Item = &'static Perf> {
    let known = move |perf: &&Perf| perf.endian == Endian::Little && perf.version >= version;
    perf::all().iter().filter(known)
}

/// Returns the lines of `perf script` about samples in generated code, without folders.
fn of_code(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .filter(|line| line.contains("jitted-") && !line.contains("MMAP"));
    let lines = lines.map(|line| {
        let (start, dso) = line.rsplit_once('(').expect("a DSO");
        let dso = dso.rsplit('/').next().expect("a name");
        let words: Vec<&str> = start.split_whitespace().collect();
        format!("{} ({dso}", words.join(" "))
    });
    lines.collect()
}

pub fn script(perf: &Perf, fields: &str, path: &Path) -> String {
    let mut command = perf.command();
    command
        .args(["script", "--no-inline", "-F", fields, "-i"])
        .arg(path);
    let said = perf::run(command).expect("perf can be started");
    assert!(said.success(), "{perf}: {}", said.stderr);
    said.stdout
}

/// `perf script` of the result shows what it shows of perf's own, from files, pipes and compressed
/// records. The dumps are not where they were recorded.
#[test]
fn samples_are_those_of_perf() {
    for set in sets() {
        let text = fs::read(set.folder.join("script.txt")).expect("perf's text");
        let expected = of_code(&perf::text(&text));
        // perf 7.2 crashes on a move.
        if expected.is_empty() {
            continue;
        }
        let mut judges = judges(set.version).peekable();
        if judges.peek().is_none() {
            skipped::note(format_args!("perf {:?} or newer", set.version));
        }
        for perf in judges {
            let plain: Vec<Box<dyn Stage>> = Vec::new();
            let packed: Vec<Box<dyn Stage>> =
                vec![Box::new(Compress::new(RecordType::COMPRESSED, 1))];
            for (stages, to) in [
                (plain, None),
                (Vec::new(), Some(ContainerKind::Pipe)),
                (packed, Some(ContainerKind::File)),
            ] {
                let input = convert(&set.recording, to, stages).expect("it is converted");
                let folder = tempfile::tempdir().expect("a folder");
                let path = with_code(&input.path(), Some(&set.dumps), folder.path());
                let said = script(perf, "comm,pid,tid,time,event,ip,sym,dso", &path);
                assert_eq!(of_code(&said), expected, "{perf}, {} {to:?}", set.name);
            }
        }
    }
}
