//! `--features-from`: what a killed recording of tracepoints lacks comes from another recording of
//! the machine, or from this machine, and perf shows the same text as of the uninterrupted one.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use perfdata_convert::io::{Input, Output};
use perfdata_convert::pipeline::Stage;
use perfdata_convert::recover::Recover;
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_convert::stages::features_from::FeaturesFrom;
use perfdata_core::Recording as Model;
use perfdata_core::feature::{Feature, FeatureId, TracingData};
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Limits;
use perfdata_tests::convert::{Whole, convert, perfconv};
use perfdata_tests::recordings::fixture;
use perfdata_tests::{perf, skipped};

/// Writes the recording without its sections, and with `data.size` 0, as a killed perf leaves it.
fn killed(path: &Path, folder: &Path) -> PathBuf {
    let mut bytes = fs::read(path).expect("a recording");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let end = word(40) + word(48);
    bytes.truncate(end as usize);
    bytes[48..56].fill(0);
    bytes[72..104].fill(0);
    let killed = folder.join("killed.data");
    fs::write(&killed, bytes).expect("a file");
    killed
}

fn recovered(path: &Path) -> PathBuf {
    let output = path.with_extension("recovered");
    let to = Output::create(&output, path, true).expect("an output");
    let input = Input::open(path).expect("it opens");
    Recover::default()
        .run(input, to.synced(false))
        .expect("it is recovered");
    output
}

fn from(donor: &Path) -> Vec<Box<dyn Stage>> {
    let stage = FeaturesFrom::recording(donor, Limits::default());
    vec![Box::new(stage.expect("a recording"))]
}

/// Returns the text of the samples in each perf of this byte order that reads `original`.
fn texts(original: &Path, path: &Path) -> Vec<(&'static str, String, String)> {
    let text = |perf: &perf::Perf, path: &Path| {
        let mut command = perf.command();
        command
            .args(["script", "-F", "tid,time,event,trace", "-i"])
            .arg(path);
        perf::run(command).expect("perf runs")
    };
    let both = |perf: &'static perf::Perf| {
        let (expected, found) = (text(perf, original), text(perf, path));
        expected.success().then(|| {
            assert!(found.success(), "{perf}: {}", found.stderr);
            (perf.name, expected.stdout, found.stdout)
        })
    };
    perf::all().iter().filter_map(both).collect()
}

fn model(path: &Path) -> Model {
    Whole::read_file(path).expect("a recording").recording
}

fn assert_same_sections(found: &Model, expected: &Model, ids: &[FeatureId]) {
    for id in ids {
        assert_eq!(found.features.get(id), expected.features.get(id), "{id}");
    }
}

/// A recording without sections becomes what the uninterrupted recording is.
#[test]
fn sections_come_from_another_recording() {
    let original = fixture("6.1-x86_64-file-tp").path;
    let folder = tempfile::tempdir().expect("a folder");
    let bare = recovered(&killed(&original, folder.path()));
    let made = convert(&bare, None, from(&original)).expect("it is converted");
    let note = &made.summary.notes[0];
    assert!(note.starts_with("took HOSTNAME, OSRELEASE, "), "{note}");
    let (model, expected) = (model(&made.path()), model(&original));
    let ids = [
        FeatureId::HOSTNAME,
        FeatureId::TRACING_DATA,
        FeatureId::NRCPUS,
        FeatureId::CPU_TOPOLOGY,
        FeatureId::PMU_MAPPINGS,
        FeatureId::EVENT_DESC,
    ];
    assert_same_sections(&model, &expected, &ids);
    assert!(!model.features.contains_key(&FeatureId::CMDLINE));
    // Nothing is left to take.
    let again = convert(&made.path(), None, from(&original)).expect("it is converted");
    let note = "has no section that the recording lacks";
    assert!(again.summary.notes[0].ends_with(note));
    for (name, expected, found) in texts(&original, &made.path()) {
        assert_eq!(found, expected, "{name}");
    }
}

/// A stream without features takes them, too, and stays a stream.
#[test]
fn streams_take_sections() {
    let original = fixture("6.1-x86_64-file-tp").path;
    let folder = tempfile::tempdir().expect("a folder");
    let bare = recovered(&killed(&original, folder.path()));
    let pipe = Some(ContainerKind::Pipe);
    let dropped = ["TRACING_DATA", "HOSTNAME", "ARCH"].map(|name| (name.to_owned(), Change::Drop));
    let edit = Edit::new(dropped).expect("features");
    let stream = convert(&bare, pipe, vec![Box::new(edit)]).expect("a stream");
    let expected = model(&original);
    for to in [ContainerKind::Pipe, ContainerKind::File] {
        let made = convert(&stream.path(), Some(to), from(&original)).expect("it is converted");
        let model = model(&made.path());
        let ids = [
            FeatureId::HOSTNAME,
            FeatureId::ARCH,
            FeatureId::TRACING_DATA,
        ];
        assert_same_sections(&model, &expected, &ids);
        // perf reads the fields of tracepoints of the other byte order only in files.
        let whole = convert(&original, Some(to), Vec::new()).expect("it is converted");
        for (name, expected, found) in texts(&whole.path(), &made.path()) {
            assert_eq!(found, expected, "{name} {to}");
        }
    }
}

/// What contradicts the recording is refused, with both values.
#[test]
fn contradictions_are_refused() {
    let original = fixture("6.1-x86_64-file-tp").path;
    let folder = tempfile::tempdir().expect("a folder");
    let bare = recovered(&killed(&original, folder.path()));
    let refusal = |input: &Path, donor: &Path| {
        let error = convert(input, None, from(donor)).expect_err("refused");
        assert!(error.is_refusal(), "{error}");
        error.to_string()
    };
    let changed = |name: &str, change: Change| {
        let edit = Edit::new([(name.to_owned(), change)]).expect("a feature");
        let made = convert(&original, None, vec![Box::new(edit)]).expect("an edit");
        let path = folder.path().join(format!("{name}.data"));
        fs::copy(made.path(), &path).expect("a file");
        path
    };
    let set = |name: &str, value: &str| changed(name, Change::Set(value.to_owned()));
    for (donor, expected) in [
        (
            changed("TRACING_DATA", Change::Drop),
            "it has no format of tracepoint",
        ),
        (
            fixture("6.1-s390x-file-tp-mixed").path,
            "it is big-endian, and the recording little-endian",
        ),
        (
            fixture("6.1-x86_64-file-default").path,
            "it has no TRACING_DATA",
        ),
    ] {
        let found = refusal(&bare, &donor);
        let is_expected = found.contains(expected)
            // The common fields are formats, but say nothing.
            || found.contains("its formats have only the common fields");
        assert!(is_expected, "{found}");
    }
    for (name, value) in [
        ("HOSTNAME", "elsewhere"),
        ("OSRELEASE", "2.6.39"),
        ("ARCH", "aarch64"),
        ("CPUID", "GenuineIntel-6-1-1"),
    ] {
        let found = refusal(&set(name, value), &original);
        assert!(
            found.contains(value) && found.contains("no sections are taken from"),
            "{found}"
        );
    }
}

fn tracing_data(recording: &Model) -> TracingData {
    let section = recording
        .feature(FeatureId::TRACING_DATA)
        .expect("it has formats");
    match section.expect("they can be read").value {
        Feature::TracingData(data) => data,
        other => panic!("{other:?}"),
    }
}

/// Records scheduler events until they are in the file, and ends perf as a crash does.
fn killed_here(perf: &perf::Perf, folder: &Path) -> Option<PathBuf> {
    let path = folder.join("live.data");
    let mut command = perf.command();
    command
        .args([
            "record",
            "-q",
            "-a",
            "-m",
            "1",
            "-e",
            "sched:sched_process_fork",
            "-e",
            "sched:sched_process_exec",
        ])
        .arg("-o")
        .arg(&path)
        .args(["--", "sh", "-c", "while :; do /bin/true; done"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let until = Instant::now() + Duration::from_secs(20);
    // The file begins with what existed before; samples make it grow.
    let size = || fs::metadata(&path).map_or(0, |meta| meta.len());
    let mut first = 0;
    while Instant::now() < until && child.try_wait().ok()?.is_none() {
        sleep(Duration::from_millis(300));
        if first == 0 {
            first = size();
        } else if size() > first + 20_000 {
            break;
        }
    }
    // Its program ends with it.
    let _ = Command::new("pkill")
        .args(["-9", "-P"])
        .arg(child.id().to_string())
        .status();
    let _ = child.kill();
    let status = child.wait().ok()?;
    (status.signal() == Some(9) && size() > first).then_some(path)
}

/// A recording that was killed here gets its formats from this machine, and from another recording:
/// perf shows the names of programs in the fields of the tracepoints.
#[test]
fn killed_recordings_get_the_formats_of_this_machine() {
    let Some(perf) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other.data");
    let mut command = perf.command();
    command
        .args([
            "record",
            "-q",
            "-a",
            "-e",
            "sched:sched_process_fork",
            "-e",
            "sched:sched_process_exec",
            "-o",
        ])
        .arg(&other)
        .args(["--", "/bin/true"]);
    let recorded = perf::run(command).expect("perf runs");
    let Some(path) = killed_here(perf, folder.path()).filter(|_| recorded.success()) else {
        return skipped::note("permission to record tracepoints");
    };
    let lines = |donor: &Path| {
        let output = folder.path().join("recovered.data");
        let mut command = perfconv();
        command
            .args(["recover", "-f", "--no-sync"])
            .arg(&path)
            .arg("-o")
            .arg(&output);
        command.arg("--features-from").arg(donor);
        let said = perf::run(command).expect("perfconv runs");
        assert!(said.success(), "{}", said.stderr);
        assert!(said.stderr.contains("took "), "{}", said.stderr);
        let mut command = perf.command();
        command
            .args(["script", "-F", "event,trace", "-i"])
            .arg(&output);
        let said = perf::run(command).expect("perf runs");
        assert!(said.success(), "{}", said.stderr);
        let model = model(&output);
        // Names of tasks, which change.
        let mut data = tracing_data(&model);
        data.body.saved_cmdlines = None;
        let cpus = model.features.get(&FeatureId::NRCPUS).cloned();
        let cpuid = model.features.get(&FeatureId::CPUID).cloned();
        (said.stdout, data, cpus, cpuid)
    };
    let found = lines(Path::new("system"));
    let text = &found.0;
    assert!(
        text.contains("sched:sched_process_exec: filename=/bin/true pid="),
        "{text}"
    );
    assert!(text.contains("sched:sched_process_fork: comm="), "{text}");
    assert_eq!(lines(&other), found);
}

/// This machine did not make the recordings of others.
#[test]
fn recordings_of_others_take_nothing_from_this_machine() {
    let others = fixture("6.1-x86_64-file-tp").path;
    let system: Vec<Box<dyn Stage>> = vec![Box::new(FeaturesFrom::system())];
    let error = convert(&others, None, system).expect_err("refused");
    let said = error.to_string();
    assert!(
        said.starts_with("no sections are taken from this machine: "),
        "{said}"
    );
}
