//! The tables that perf creates, on the recording machines and on this one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata_convert::error::Result;
use perfdata_convert::pipeline::Stage;
use perfdata_core::Recording as Model;
use perfdata_core::attr::SampleType;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_inject::build_ids::{Select, Storage};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::perf::{self, Perf, Question};
use perfdata_tests::recordings::{self, Container, PerfVersion, Recorder, Recording};
use perfdata_tests::skipped;

use super::{Table, row, stage, table, with_build_ids};

/// The release of perf since which DSOs in callchains count as hit.
const CALLCHAINS: PerfVersion = PerfVersion {
    major: 6,
    minor: 12,
};

/// What the names of the files begin with into which perf writes the vdso of its own machine.
const VDSO_COPY: &str = "/tmp/perf-vdso";

/// A program without a build ID whose debug file has one. perf assigns no build ID to it.
const LINKED: (&str, &str) = (
    "8ae3b650a3359c4186e60bb03362d03dcd558a21",
    "/usr/local/bin/linked-workload",
);

/// Returns the rows of `perf buildid-list` without those that have no build ID.
fn rows(text: &str) -> Table {
    let pair = |line: &str| {
        let (id, name) = line.split_once(' ')?;
        (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| row(id, name.trim()))
    };
    text.lines().filter_map(pair).collect()
}

/// Removes the rows that depend on the recording machine: the kernel and its modules.
fn without_kernel(table: Table) -> Table {
    table
        .into_iter()
        .filter(|(_, name)| !name.starts_with("[kernel") && !name.starts_with("/lib/modules/"))
        .collect()
}

/// Returns the folder with the DSOs that a recording maps, if it is available. Some further
/// recordings are fixtures.
fn sysroot(recording: &Recording) -> Option<PathBuf> {
    let Recorder { perf, arch } = recording.recorder.as_ref()?;
    recordings::further(format!("recordings/{arch}-{perf}/sysroot"))
}

/// Returns the output of the commands in NAME.inject.txt on the recording machine, by option.
fn told(recording: &Recording, option: &str) -> Option<Table> {
    let text = fs::read_to_string(recording.path.with_extension("inject.txt")).ok()?;
    let mut commands = text
        .split("$ ")
        .skip_while(|part| !part.starts_with(&format!("perf inject {option} ")));
    // `perf inject -b` prints nothing: the next command prints the list.
    let first = commands.next()?;
    let said = if first.contains("buildid-list") {
        first
    } else {
        commands.next()?
    };
    Some(rows(said)).filter(|rows| !rows.is_empty())
}

fn machines() -> Vec<Recording> {
    let mut machines = recordings::fixtures();
    machines.extend(recordings::shared());
    machines.retain(|recording| sysroot(recording).is_some());
    machines
}

#[test]
fn as_perf_on_the_recorded_machine() {
    let mut compared = 0;
    for recording in machines() {
        let root = sysroot(&recording);
        for (option, select) in [("-b", Select::Hit), ("--buildid-all", Select::All)] {
            let Some(mut wanted) = told(&recording, option).map(without_kernel) else {
                continue;
            };
            if recording.name.contains("link") {
                wanted.insert(row(LINKED.0, LINKED.1));
            }
            for to in [Some(ContainerKind::Pipe), Some(ContainerKind::File)] {
                let made = with_build_ids(&recording.path, to, select, root.as_deref());
                assert_eq!(
                    table(&made.path()),
                    wanted,
                    "{} {option} {to:?}",
                    recording.name
                );
            }
            compared += 1;
        }
    }
    assert!(compared == 0 || compared >= 7, "{compared} tables compared");
}

/// Returns the mappings of files by their first address, with the build IDs that
/// `perf inject --mmap2-buildid-all` added.
fn told_of_mappings(recording: &Recording) -> BTreeMap<u64, String> {
    let text = fs::read_to_string(recording.path.with_extension("inject.txt")).unwrap_or_default();
    let said = text
        .split("$ ")
        .find(|part| part.starts_with("perf inject --mmap2-buildid-all "))
        .unwrap_or_default();
    let mapping = |line: &str| {
        let (_, mapping) = line.split_once(": [0x")?;
        let (start, rest) = mapping.split_once('(')?;
        let id = rest
            .split_once('<')
            .and_then(|(_, id)| id.split_once('>'))
            .map(|(id, _)| id);
        Some((
            u64::from_str_radix(start, 16).ok()?,
            id.unwrap_or_default().to_owned(),
        ))
    };
    said.lines()
        .filter(|line| line.contains("]: r-xp /"))
        .filter_map(mapping)
        .collect()
}

/// Returns all MMAP2 records.
fn mappings(whole: &Whole) -> Vec<Record> {
    let decode = |(at, _): &(usize, RecordType)| {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0)
            .expect("it was read before");
        Record::decode(&raw, &whole.recording.events.layout_of(&raw)).expect("it can be decoded")
    };
    whole
        .records
        .iter()
        .filter(|(_, kind)| *kind == RecordType::MMAP2)
        .map(decode)
        .collect()
}

/// Build IDs in mappings: those of perf, and that of the program with a debug file.
#[test]
fn mappings_as_perf_on_the_recorded_machine() {
    let mut compared = 0;
    for recording in machines() {
        let told = told_of_mappings(&recording);
        let root = sysroot(&recording);
        let stage = stage(Select::All, Storage::Mmap2, root.as_deref(), "");
        let made = convert(&recording.path, None, vec![Box::new(stage)]);
        let Ok(made) = made else { continue };
        let whole = Whole::read_file(&made.path()).expect("a recording");
        let mut ours = BTreeMap::new();
        for record in mappings(&whole) {
            if let Body::Mmap2(map) = record.body {
                let id = map
                    .build_id
                    .map(|id| id.build_id[..usize::from(id.build_id_size)].to_vec())
                    .unwrap_or_default();
                let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
                ours.insert(map.addr, (id, map.filename.to_string()));
            }
        }
        for (start, wanted) in told {
            let (id, name) = ours.get(&start).expect("no mapping is lost");
            let wanted = if name == LINKED.1 { LINKED.0 } else { &wanted };
            assert_eq!(id, wanted, "{}: {name} at {start:#x}", recording.name);
            compared += 1;
        }
    }
    assert!(
        compared == 0 || compared >= 3,
        "{compared} mappings compared"
    );
}

/// The pipes have the same tables as the files of the same workload.
#[test]
fn pipes_as_files() {
    let machines = machines();
    for (folder, pipe, file) in [
        ("6.1", "bid_none_pipe", "bid_none_file"),
        ("7.2", "bid_link_pipe", "bid_link_file"),
    ] {
        let find = |what: &str| {
            machines.iter().find(|recording| {
                let path = recording.path.to_string_lossy();
                path.ends_with(&format!("{what}.data"))
                    && path.contains(&format!("x86_64-{folder}/"))
            })
        };
        let (Some(pipe), Some(file)) = (find(pipe), find(file)) else {
            continue;
        };
        let root = sysroot(pipe);
        let of = |recording: &Recording, to| {
            table(&with_build_ids(&recording.path, to, Select::Hit, root.as_deref()).path())
        };
        assert_eq!(of(pipe, None), of(file, None));
        assert_eq!(of(pipe, Some(ContainerKind::File)), of(file, None));
    }
}

/// Removes the table from a recording.
struct Forget;

impl Stage for Forget {
    fn begin(&mut self, recording: &mut Model, _: &mut ContainerLayout) -> Result<()> {
        recording.features.remove(&FeatureId::BUILD_ID);
        Ok(())
    }
}

/// Returns the part of a table whose files exist under `root`.
fn of_root(table: Table, root: &Path) -> Table {
    table
        .into_iter()
        .filter(|(_, name)| root.join(name.trim_start_matches('/')).is_file())
        .collect()
}

/// The table that perf wrote at the end of its recording is created again, also for compressed
/// recordings and directories. Before 6.12, perf ignored DSOs in callchains.
#[test]
fn as_recorded() {
    let mut compared = 0;
    let mut directories = 0;
    for recording in machines() {
        let Some(form) = recording
            .form
            .filter(|form| form.container != Container::Pipe)
        else {
            continue;
        };
        let root = sysroot(&recording).expect("machines have objects");
        let wanted = of_root(table(&recording.main_file()), &root);
        // The mappings of a series of files are in the first file, whose processes the recorder
        // still knew.
        if wanted.is_empty() || recording.name.contains("switchout") {
            continue;
        }
        compared += 1;
        directories += usize::from(form.container == Container::Directory);
        let stages: Vec<Box<dyn Stage>> = vec![
            Box::new(Forget),
            Box::new(stage(Select::Hit, Storage::Table, Some(&root), "")),
        ];
        let made = table(
            &convert(&recording.path, None, stages)
                .expect("it can be converted")
                .path(),
        );
        let made = of_root(made, &root);
        let is_old = recording
            .recorder
            .as_ref()
            .is_some_and(|recorder| recorder.perf < CALLCHAINS);
        let whole = Whole::read_file(&recording.main_file()).expect("a recording");
        if is_old
            && whole
                .recording
                .events
                .iter()
                .any(|event| event.attr.sample_type.has(SampleType::CALLCHAIN))
        {
            assert!(
                made.is_superset(&wanted),
                "{}: {made:?}, not {wanted:?}",
                recording.name
            );
            continue;
        }
        assert_eq!(made, wanted, "{}", recording.name);
    }
    assert!(
        compared == 0 || compared >= 20 && directories > 0,
        "{compared} tables, {directories} of directories"
    );
}

/// All recordings of a workload have the same table as the plain one.
#[test]
fn other_forms_as_the_plain_one() {
    let mut compared = 0;
    let machines = machines();
    for (perf, arch) in [("6.1", "x86_64"), ("7.2", "x86_64")] {
        let of = |form: &str| {
            let name = format!("{perf}-{arch}-{form}");
            let recording = machines.iter().find(|recording| recording.name == name)?;
            let root = sysroot(recording).expect("machines have objects");
            let stages: Vec<Box<dyn Stage>> = vec![
                Box::new(Forget),
                Box::new(stage(Select::Hit, Storage::Table, Some(&root), "")),
            ];
            let made = convert(&recording.path, Some(ContainerKind::File), stages)
                .expect("it can be converted");
            Some(of_root(table(&made.path()), &root))
        };
        let Some(plain) = of("file-default") else {
            continue;
        };
        assert!(plain.len() >= 3, "{plain:?}");
        for form in [
            "file-z",
            "file-threads",
            "file-threads-z",
            "pipe-default",
            "pipe-z",
        ] {
            let Some(other) = of(form) else { continue };
            assert_eq!(other, plain, "{perf} {arch} {form}");
            compared += 1;
        }
    }
    assert!(compared == 0 || compared >= 9, "{compared} tables compared");
}

/// The compressed and the decompressed recording have the same table.
#[test]
fn compressed_as_plain() {
    use perfdata_convert::stages::decompress::Decompress;
    for recording in machines()
        .into_iter()
        .filter(|recording| recording.name.contains("-z"))
    {
        if recording
            .form
            .is_none_or(|form| form.container == Container::Directory)
        {
            continue;
        }
        let root = sysroot(&recording);
        let of = |stages: Vec<Box<dyn Stage>>| {
            let add: Box<dyn Stage> =
                Box::new(stage(Select::Hit, Storage::Table, root.as_deref(), ""));
            let stages = std::iter::once(Box::new(Forget) as Box<dyn Stage>)
                .chain(stages)
                .chain([add])
                .collect();
            table(
                &convert(&recording.path, None, stages)
                    .expect("it can be converted")
                    .path(),
            )
        };
        let plain = of(vec![Box::new(Decompress::default())]);
        // With tracepoints, only the kernel is hit.
        assert!(!plain.is_empty(), "{}", recording.name);
        assert_eq!(of(Vec::new()), plain, "{}", recording.name);
    }
}

/// Makes a recording on this machine.
fn record(perf: &Perf, output: &Path, options: &[&str]) -> bool {
    let mut command = perf.command();
    command
        .args([
            "record",
            "-q",
            "-N",
            "-B",
            "--no-buildid-mmap",
            "-e",
            "cpu-clock:u",
            "-F",
            "4999",
        ])
        .args(options);
    command.arg("-o").arg(output).args([
        "--",
        "sh",
        "-c",
        "ls -lR /usr/lib >/dev/null; seq 100000 | sort >/dev/null",
    ]);
    command.output().is_ok_and(|done| done.status.success())
}

fn perf_says(perf: &Perf, path: &Path) -> Table {
    rows(
        &perf
            .ask(Question::BuildIds, path)
            .expect("perf runs")
            .stdout,
    )
}

fn inject(perf: &Perf, word: &str, input: &Path, output: &Path) -> bool {
    let mut command: Command = perf.command();
    command
        .args(["inject", word, "-i"])
        .arg(input)
        .arg("-o")
        .arg(output);
    command.output().is_ok_and(|done| done.status.success())
}

/// perf before 6.12 omits callchains and some mappings.
#[test]
fn as_perf_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let judges: Vec<_> = perf::all()
        .iter()
        .filter(|perf| perf.endian == recordings::Endian::Little)
        .collect();
    let Some(recorder) = judges.first() else {
        return skipped::note("perf");
    };
    for options in [&["-g"][..], &[]] {
        let input = folder.path().join("recorded");
        if !record(recorder, &input, options) {
            return skipped::note(format_args!("{} that may record here", recorder.name));
        }
        for (word, select) in [("-b", Select::Hit), ("--buildid-all", Select::All)] {
            let made = with_build_ids(&input, None, select, None);
            let ours = without_kernel(table(&made.path()));
            for perf in &judges {
                let theirs = folder.path().join("injected");
                assert!(inject(perf, word, &input, &theirs), "{} {word}", perf.name);
                let theirs = without_reader_vdso(table(&theirs));
                let ours = without_reader_vdso(ours.clone());
                if perf.version < CALLCHAINS {
                    assert!(
                        ours.is_superset(&theirs),
                        "{} {word}: {ours:?}, not {theirs:?}",
                        perf.name
                    );
                } else {
                    assert_eq!(ours, theirs, "{} {word} {options:?}", perf.name);
                }
                let read = without_reader_vdso(perf_says(perf, &made.path()));
                assert!(
                    read.is_subset(&table(&made.path())) && ours.is_subset(&read),
                    "{}: {read:?}",
                    perf.name
                );
            }
        }
    }
}

/// perf 6.1 does not have these options. With `-B`, later versions keep a mapping only when a
/// sample hits it, and insert its record before this sample, with a build ID of size 0. Therefore
/// only the selection of mappings can be compared for `-B`. A forked process has the mappings of
/// its parent, which perf repeats for it.
#[test]
fn mappings_as_perf_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let judges: Vec<_> = perf::all()
        .iter()
        .filter(|perf| perf.endian == recordings::Endian::Little)
        .collect();
    let Some(recorder) = judges.first() else {
        return skipped::note("perf");
    };
    let (input, theirs) = (
        folder.path().join("recorded"),
        folder.path().join("injected"),
    );
    if !record(recorder, &input, &["-g"]) {
        return skipped::note(format_args!("{} that may record here", recorder.name));
    }
    let ours = |select| {
        let stage = stage(select, Storage::Mmap2, None, "");
        let made = convert(&input, None, vec![Box::new(stage)]).expect("it can be converted");
        mappings(&Whole::read_file(&made.path()).expect("a recording"))
    };
    // perf writes the vdso into a temporary file to read its build ID, and `-B` writes the name of that file.
    let place = |record: &Record| match &record.body {
        Body::Mmap2(map) => {
            let name = map.filename.to_string();
            let is_copy = name.starts_with(VDSO_COPY);
            let name = if is_copy { "[vdso]".into() } else { name };
            (map.addr, map.len, name)
        }
        other => panic!("{other:?}"),
    };
    let has_id =
        |record: &Record| matches!(&record.body, Body::Mmap2(map) if map.build_id.is_some());
    for perf in judges.iter().filter(|perf| perf.version >= CALLCHAINS) {
        assert!(
            inject(perf, "--mmap2-buildid-all", &input, &theirs),
            "{}",
            perf.name
        );
        let told = mappings(&Whole::read_file(&theirs).expect("a recording"));
        assert_eq!(ours(Select::All), told, "{}", perf.name);
        assert!(told.iter().any(has_id), "{}", perf.name);

        assert!(inject(perf, "-B", &input, &theirs), "{}", perf.name);
        let kept = mappings(&Whole::read_file(&theirs).expect("a recording"));
        let chosen: BTreeSet<_> = ours(Select::Hit)
            .iter()
            .filter(|record| has_id(record))
            .map(place)
            .collect();
        let kept: BTreeSet<_> = kept.iter().map(place).collect();
        assert!(
            !kept.is_empty() && kept.is_subset(&chosen),
            "{}: {kept:?}, not of {chosen:?}",
            perf.name
        );
    }
}

/// The running kernel provides its own build ID and those of its modules, and a file that was
/// replaced is detected.
#[test]
fn of_the_running_machine() {
    let folder = tempfile::tempdir().unwrap();
    let Some(perf) = perf::all()
        .iter()
        .find(|perf| perf.endian == recordings::Endian::Little)
    else {
        return skipped::note("perf");
    };
    let (input, program) = (
        folder.path().join("recorded"),
        folder.path().join("program"),
    );
    fs::copy("/bin/true", &program).unwrap();
    let mut command = perf.command();
    command
        .args([
            "record",
            "-q",
            "-N",
            "-B",
            "--no-buildid-mmap",
            "-e",
            "cpu-clock",
            "-o",
        ])
        .arg(&input);
    if !command
        .arg("--")
        .arg(&program)
        .output()
        .is_ok_and(|done| done.status.success())
    {
        return skipped::note(format_args!("{} that may record here", perf.name));
    }
    let program = program.canonicalize().unwrap().display().to_string();
    let changed = |notes: &[String]| {
        notes
            .iter()
            .any(|note| note.starts_with(&format!("{program} has changed since the recording: ")))
    };
    let made = with_build_ids(&input, None, Select::All, None);
    assert!(!changed(&made.summary.notes), "{:?}", made.summary.notes);

    let rows = table(&made.path());
    let mut command = perf.command();
    command.args(["buildid-list", "--kernel"]);
    let kernel = perf::run(command).expect("perf runs").stdout;
    let kernel = kernel.split_whitespace().next().unwrap_or_default();
    match rows.iter().find(|(_, name)| name == "[kernel.kallsyms]") {
        Some((id, _)) => assert_eq!(id, kernel),
        None => assert!(
            kernel.is_empty() || !Path::new("/sys/kernel/notes").exists(),
            "{kernel}: {rows:?}"
        ),
    }
    let is_module = |name: &str| {
        name.starts_with("/lib/modules/") || (name.starts_with('[') && !name.contains("[kernel"))
    };
    for (id, name) in rows
        .iter()
        .filter(|(_, name)| is_module(name) && name != "[vdso]")
    {
        let stem = name
            .rsplit('/')
            .next()
            .and_then(|file| file.trim_matches(['[', ']']).split('.').next());
        let notes = Path::new("/sys/module")
            .join(stem.unwrap_or_default().replace('-', "_"))
            .join("notes/.note.gnu.build-id");
        let Ok(notes) = fs::read(notes) else { continue };
        let own: String = notes[16..]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(*id, own, "{name}");
    }

    fs::copy(&program, folder.path().join("other")).unwrap();
    fs::rename(folder.path().join("other"), &program).unwrap();
    let made = with_build_ids(&input, None, Select::All, None);
    assert!(changed(&made.summary.notes), "{:?}", made.summary.notes);
}

/// Removes the vdso that a reader adds from its own machine, and the copy of it that perf before
/// 6.12 adds.
fn without_reader_vdso(table: Table) -> Table {
    let is_reader = |name: &str| name == "[vdso]" || name.starts_with(VDSO_COPY);
    without_kernel(table)
        .into_iter()
        .filter(|(_, name)| !is_reader(name))
        .collect()
}
