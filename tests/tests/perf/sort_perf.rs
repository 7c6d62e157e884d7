//! perf reads a sorted recording as the original, and finds nothing out of order in it.

use std::fs;
use std::path::Path;

use perfdata_convert::pipeline::Stage;
use perfdata_edit::sort::Sort;
use perfdata_tests::convert::convert;
use perfdata_tests::generate::{Generator, Mix};
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Recording};
use perfdata_tests::{is_thorough, judge, skipped};

/// Every record that perf prints, and the callchains of samples.
const SCRIPT: &[&str] = &[
    "script",
    "--no-inline",
    "--ns",
    "--show-task-events",
    "--show-mmap-events",
    "--show-switch-events",
    "--show-namespace-events",
    "--show-lost-events",
    "--show-cgroup-events",
    "--show-bpf-events",
    "--show-text-poke-events",
    "-F",
    "-symoff,-sym,-dso",
];

fn script(perf: &Perf, path: &Path) -> Result<perf::Output, String> {
    let mut command = perf.command();
    command.args(SCRIPT).arg("-i").arg(path);
    perf::run(command).map_err(|error| error.to_string())
}

/// Compares a recording with the sorted one. Returns whether it was out of order.
fn compare(path: &Path, perf: &Perf) -> Result<bool, String> {
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Sort::new())];
    let sorted = convert(path, None, stages).map_err(|error| error.to_string())?;
    if path.is_file() && sorted.bytes() == fs::read(path).map_err(|error| error.to_string())? {
        return Ok(false);
    }
    let (old, new) = (script(perf, path)?, script(perf, &sorted.path())?);
    if new.stderr.to_lowercase().contains("out of order") {
        return Err(format!("{perf}: {}", new.stderr));
    }
    if old.stderr.to_lowercase().contains("out of order") {
        return Ok(true);
    }
    if (old.success(), &old.stdout) != (new.success(), &new.stdout) {
        let lines = old.stdout.lines().zip(new.stdout.lines());
        let first = lines.clone().find(|(old, new)| old != new);
        return Err(format!(
            "{perf}: {} and {} lines, the first that differs: {first:?}\n{}",
            old.stdout.lines().count(),
            new.stdout.lines().count(),
            new.stderr
        ));
    }
    Ok(true)
}

/// For the fixtures, or for all available recordings if `PERFCONV_TEST_ALL` is set.
#[test]
fn sorted_recordings_read_as_the_originals() {
    let mut list = recordings::fixtures();
    if is_thorough() {
        list = recordings::all();
    }
    list.retain(|recording| !recording.is_damaged());
    let count = std::sync::atomic::AtomicUsize::new(0);
    recordings::check_all(&list, |recording: &Recording| {
        for perf in judge::panel(recording)? {
            if compare(&recording.path, perf)? {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
        Ok(())
    });
    if perf::all().is_empty() {
        skipped::note("perf");
    } else {
        assert!(count.into_inner() > 0);
    }
}

/// Recordings with several rounds.
#[test]
fn generated_recordings_read_as_the_originals() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("generated.data");
    for mix in [Mix::System, Mix::Compressed] {
        let file = fs::File::create(&path).expect("a file");
        Generator::new(mix, 3 << 20).file(file).expect("a file");
        let native = perf::all()
            .iter()
            .filter(|perf| perf.endian == recordings::Endian::Little);
        for perf in native {
            assert_eq!(compare(&path, perf), Ok(true), "{}", mix.name());
        }
    }
}
