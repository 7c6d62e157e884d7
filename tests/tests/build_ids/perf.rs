//! The tables that perf makes, in the machines where the recordings were made and on this one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata_convert::convert::Stage;
use perfdata_convert::convert::build_ids::{Place, Select};
use perfdata_convert::error::Result;
use perfdata_core::Recording as Model;
use perfdata_core::arrangement::Arrangement;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::perf::{self, Perf, Question};
use perfdata_tests::recordings::{self, Container, Recording};

use super::{Table, row, stage, table, with_build_ids};

/// perf gives no build id to a program that has none itself, but a debug file that has.
const LINKED: (&str, &str) = ("8ae3b650a3359c4186e60bb03362d03dcd558a21", "/usr/local/bin/linked-workload");

/// The rows of `perf buildid-list`, those without a build id left out.
fn rows(text: &str) -> Table {
    let pair = |line: &str| {
        let (id, name) = line.split_once(' ')?;
        (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| row(id, name.trim()))
    };
    text.lines().filter_map(pair).collect()
}

/// What only the machine that was recorded can tell: the kernel and its modules.
fn without_kernel(table: Table) -> Table {
    table.into_iter().filter(|(_, name)| !name.starts_with("[kernel") && !name.starts_with("/lib/modules/")).collect()
}

/// The folder with the objects that a recording maps, if it is at hand.
fn sysroot(recording: &Recording) -> Option<PathBuf> {
    Some(recording.path.parent()?.join("sysroot")).filter(|root| root.is_dir())
}

/// What the commands in NAME.inject.txt said where the recording was made, by the option.
fn told(recording: &Recording, option: &str) -> Option<Table> {
    let text = fs::read_to_string(recording.path.with_extension("inject.txt")).ok()?;
    let mut commands = text.split("$ ").skip_while(|part| !part.starts_with(&format!("perf inject {option} ")));
    // `perf inject -b` prints nothing: the list is what the next command says.
    let first = commands.next()?;
    let said = if first.contains("buildid-list") { first } else { commands.next()? };
    Some(rows(said)).filter(|rows| !rows.is_empty())
}

fn machines() -> Vec<Recording> {
    let machines: Vec<_> = recordings::shared().into_iter().filter(|recording| sysroot(recording).is_some()).collect();
    if machines.is_empty() {
        eprintln!("skipped: no recordings with their objects");
    }
    machines
}

#[test]
fn as_perf_on_the_recorded_machine() {
    let mut compared = 0;
    for recording in machines() {
        let root = sysroot(&recording);
        for (option, select) in [("-b", Select::Hit), ("--buildid-all", Select::All)] {
            let Some(mut wanted) = told(&recording, option).map(without_kernel) else { continue };
            if recording.name.contains("link") {
                wanted.insert(row(LINKED.0, LINKED.1));
            }
            for to in [Some(ContainerKind::Pipe), Some(ContainerKind::File)] {
                let made = with_build_ids(&recording.path, to, select, root.as_deref());
                assert_eq!(table(&made.path()), wanted, "{} {option} {to:?}", recording.name);
            }
            compared += 1;
        }
    }
    assert!(compared == 0 || compared >= 7, "{compared} tables compared");
}

/// The mappings of files, by their first address, with the build ids that `perf inject --mmap2-buildid-all` gave them.
fn told_of_mappings(recording: &Recording) -> BTreeMap<u64, String> {
    let text = fs::read_to_string(recording.path.with_extension("inject.txt")).unwrap_or_default();
    let said = text.split("$ ").find(|part| part.starts_with("perf inject --mmap2-buildid-all ")).unwrap_or_default();
    let mapping = |line: &str| {
        let (_, mapping) = line.split_once(": [0x")?;
        let (start, rest) = mapping.split_once('(')?;
        let id = rest.split_once('<').and_then(|(_, id)| id.split_once('>')).map(|(id, _)| id);
        Some((u64::from_str_radix(start, 16).ok()?, id.unwrap_or_default().to_owned()))
    };
    said.lines().filter(|line| line.contains("]: r-xp /")).filter_map(mapping).collect()
}

/// Build ids in mappings: those of perf, and that of the program with a debug file.
#[test]
fn mappings_as_perf_on_the_recorded_machine() {
    let mut compared = 0;
    for recording in machines() {
        let told = told_of_mappings(&recording);
        let root = sysroot(&recording);
        let stage = stage(Select::All, Place::Mmap2, root.as_deref(), "");
        let made = convert(&recording.path, None, vec![Box::new(stage)]);
        let Ok(made) = made else { continue };
        let whole = Whole::read_file(&made.path()).expect("a recording");
        let mut ours = BTreeMap::new();
        for (at, _) in whole.records.iter().filter(|(_, kind)| *kind == RecordType::MMAP2) {
            let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("it was read before");
            let layout = whole.recording.events.layout_of(&raw);
            if let Body::Mmap2(map) = Record::decode(&raw, &layout).expect("it can be decoded").body {
                let id =
                    map.build_id.map(|id| id.build_id[..usize::from(id.build_id_size)].to_vec()).unwrap_or_default();
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
    assert!(compared == 0 || compared >= 3, "{compared} mappings compared");
}

/// The pipes have the tables of the files of the same workload.
#[test]
fn pipes_as_files() {
    let machines = machines();
    for (folder, pipe, file) in [("6.1", "bid_none_pipe", "bid_none_file"), ("7.2", "bid_link_pipe", "bid_link_file")] {
        let find = |what: &str| {
            machines.iter().find(|recording| {
                let path = recording.path.to_string_lossy();
                path.ends_with(&format!("{what}.data")) && path.contains(&format!("x86_64-{folder}/"))
            })
        };
        let (Some(pipe), Some(file)) = (find(pipe), find(file)) else { continue };
        let root = sysroot(pipe);
        let of = |recording: &Recording, to| {
            table(&with_build_ids(&recording.path, to, Select::Hit, root.as_deref()).path())
        };
        assert_eq!(of(pipe, None), of(file, None));
        assert_eq!(of(pipe, Some(ContainerKind::File)), of(file, None));
    }
}

/// Takes the table out of a recording.
struct Forget;

impl Stage for Forget {
    fn begin(&mut self, recording: &mut Model, _: &mut Arrangement) -> Result<()> {
        recording.features.remove(&FeatureId::BUILD_ID.0);
        Ok(())
    }
}

/// The table that perf made at the end of its recording, made again: also of compressed recordings and of directories.
#[test]
fn as_recorded() {
    let mut compared = 0;
    for recording in machines() {
        let Some(form) = recording.form.filter(|form| form.container != Container::Pipe) else { continue };
        let root = sysroot(&recording).expect("machines have objects");
        let of_root = |table: Table| -> Table {
            table.into_iter().filter(|(_, name)| root.join(name.trim_start_matches('/')).is_file()).collect()
        };
        let wanted = of_root(table(&recording.main_file()));
        if wanted.is_empty() {
            continue;
        }
        let stages: Vec<Box<dyn Stage>> =
            vec![Box::new(Forget), Box::new(stage(Select::All, Place::Table, Some(&root), ""))];
        let made = of_root(table(&convert(&recording.path, None, stages).expect("it can be converted").path()));
        assert!(made.is_superset(&wanted), "{} {form:?}: {made:?}, not {wanted:?}", recording.name);
        compared += 1;
    }
    assert!(compared == 0 || compared >= 10, "{compared} tables compared");
}

/// Compressed and decompressed, a recording has the same table.
#[test]
fn compressed_as_plain() {
    use perfdata_convert::convert::decompress::Decompress;
    for recording in machines().into_iter().filter(|recording| recording.name.contains("-z")) {
        if recording.form.is_none_or(|form| form.container == Container::Directory) {
            continue;
        }
        let root = sysroot(&recording);
        let of = |stages: Vec<Box<dyn Stage>>| {
            let add: Box<dyn Stage> = Box::new(stage(Select::Hit, Place::Table, root.as_deref(), ""));
            let stages = std::iter::once(Box::new(Forget) as Box<dyn Stage>).chain(stages).chain([add]).collect();
            table(&convert(&recording.path, None, stages).expect("it can be converted").path())
        };
        let plain = of(vec![Box::new(Decompress::default())]);
        assert!(plain.iter().any(|(_, name)| name.starts_with("/usr/local/bin/")), "{}: {plain:?}", recording.name);
        assert_eq!(of(Vec::new()), plain, "{}", recording.name);
    }
}

/// A recording of this machine, made now.
fn record(perf: &Perf, output: &Path, options: &[&str]) -> bool {
    let mut command = perf.command();
    command.args(["record", "-q", "-N", "-B", "--no-buildid-mmap", "-e", "cpu-clock:u", "-F", "4999"]).args(options);
    command.arg("-o").arg(output).args(["--", "sh", "-c", "ls -lR /usr/lib >/dev/null; seq 100000 | sort >/dev/null"]);
    command.output().is_ok_and(|done| done.status.success())
}

fn perf_says(perf: &Perf, path: &Path) -> Table {
    rows(&perf.ask(Question::BuildIds, path).expect("perf runs").stdout)
}

fn inject(perf: &Perf, word: &str, input: &Path, output: &Path) -> bool {
    let mut command: Command = perf.command();
    command.args(["inject", word, "-i"]).arg(input).arg("-o").arg(output);
    command.output().is_ok_and(|done| done.status.success())
}

/// perf before 6.12 forgets callchains, and some mappings.
#[test]
fn as_perf_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let judges: Vec<_> = perf::all().iter().filter(|perf| perf.endian == recordings::Endian::Little).collect();
    let Some(recorder) = judges.first() else { return eprintln!("skipped: no perf") };
    for options in [&["-g"][..], &[]] {
        let input = folder.path().join("recorded");
        if !record(recorder, &input, options) {
            return eprintln!("skipped: {} cannot record here", recorder.name);
        }
        for (word, select) in [("-b", Select::Hit), ("--buildid-all", Select::All)] {
            let made = with_build_ids(&input, None, select, None);
            let ours = without_kernel(table(&made.path()));
            for perf in &judges {
                let theirs = folder.path().join("injected");
                assert!(inject(perf, word, &input, &theirs), "{} {word}", perf.name);
                let theirs = without_reader_vdso(table(&theirs));
                let ours = without_reader_vdso(ours.clone());
                if perf.version.major == 6 && perf.version.minor < 12 {
                    assert!(ours.is_superset(&theirs), "{} {word}: {ours:?}, not {theirs:?}", perf.name);
                } else {
                    assert_eq!(ours, theirs, "{} {word} {options:?}", perf.name);
                }
                let read = without_reader_vdso(perf_says(perf, &made.path()));
                assert!(read.is_subset(&table(&made.path())) && ours.is_subset(&read), "{}: {read:?}", perf.name);
            }
        }
    }
}

/// The running kernel tells its own build id and those of its modules, and a file that was replaced is noticed.
#[test]
fn of_the_running_machine() {
    let folder = tempfile::tempdir().unwrap();
    let Some(perf) = perf::all().iter().find(|perf| perf.endian == recordings::Endian::Little) else {
        return eprintln!("skipped: no perf");
    };
    let (input, program) = (folder.path().join("recorded"), folder.path().join("program"));
    fs::copy("/bin/true", &program).unwrap();
    let mut command = perf.command();
    command.args(["record", "-q", "-N", "-B", "--no-buildid-mmap", "-e", "cpu-clock", "-o"]).arg(&input);
    if !command.arg("--").arg(&program).output().is_ok_and(|done| done.status.success()) {
        return eprintln!("skipped: {} cannot record here", perf.name);
    }
    let program = program.canonicalize().unwrap().display().to_string();
    let changed =
        |notes: &[String]| notes.iter().any(|note| note.starts_with(&format!("{program} is not the file recorded: ")));
    let made = with_build_ids(&input, None, Select::All, None);
    assert!(!changed(&made.summary.notes), "{:?}", made.summary.notes);

    let rows = table(&made.path());
    let mut command = perf.command();
    command.args(["buildid-list", "--kernel"]);
    let kernel = perf::run(command, std::time::Duration::from_secs(60)).expect("perf runs").stdout;
    let kernel = kernel.split_whitespace().next().unwrap_or_default();
    match rows.iter().find(|(_, name)| name == "[kernel.kallsyms]") {
        Some((id, _)) => assert_eq!(id, kernel),
        None => assert!(kernel.is_empty() || !Path::new("/sys/kernel/notes").exists(), "{kernel}: {rows:?}"),
    }
    let is_module =
        |name: &str| name.starts_with("/lib/modules/") || (name.starts_with('[') && !name.contains("[kernel"));
    for (id, name) in rows.iter().filter(|(_, name)| is_module(name) && name != "[vdso]") {
        let stem = name.rsplit('/').next().and_then(|file| file.trim_matches(['[', ']']).split('.').next());
        let notes =
            Path::new("/sys/module").join(stem.unwrap_or_default().replace('-', "_")).join("notes/.note.gnu.build-id");
        let Ok(notes) = fs::read(notes) else { continue };
        let own: String = notes[16..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(*id, own, "{name}");
    }

    fs::copy(&program, folder.path().join("other")).unwrap();
    fs::rename(folder.path().join("other"), &program).unwrap();
    let made = with_build_ids(&input, None, Select::All, None);
    assert!(changed(&made.summary.notes), "{:?}", made.summary.notes);
}

/// A reader adds the vdso of the machine that it runs on, and perf before 6.12 its copy of it.
fn without_reader_vdso(table: Table) -> Table {
    let is_reader = |name: &str| name == "[vdso]" || name.starts_with("/tmp/perf-vdso");
    without_kernel(table).into_iter().filter(|(_, name)| !is_reader(name)).collect()
}
