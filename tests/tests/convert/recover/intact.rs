//! Recordings in which `perfconv verify` finds nothing: they are copied without a survey.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use perfdata_convert::error::Result;
use perfdata_convert::io::{Input, Output, Watch};
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::recover::{Recover, Recovery, convert_recovered};
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::Report;
use perfdata_core::read::Limits;
use perfdata_tests::fuzz::{Numbers, damage};
use perfdata_tests::recordings::{self, Container, Recording};

/// Maximum size of the recordings, in bytes, and number of damaged copies of each.
const MOST: usize = 200 << 10;
const COPIES: u64 = 12;

fn files() -> Vec<Recording> {
    let mut files = recordings::fixtures();
    files.retain(|recording| {
        recording
            .form
            .is_some_and(|form| form.container != Container::Directory)
    });
    files
}

fn recover(input: &Path, output: &Path, threads: usize) -> Result<Recovery> {
    let limits = Limits::default().with_max_threads(Some(threads));
    Recover::default().run(
        Input::open(input)?.limited_by(limits),
        Output::create(output, input, true)?.synced(false),
    )
}

/// A survey discards nothing of a recording in which `verify` finds nothing, also if its bytes were
/// changed at random.
#[test]
fn a_survey_keeps_what_verify_accepts() {
    let (accepted, rejected) = (AtomicUsize::new(0), AtomicUsize::new(0));
    recordings::in_parallel(&files(), |recording| {
        let whole = fs::read(&recording.path).expect("the fixture is there");
        if whole.len() > MOST {
            return;
        }
        let folder = tempfile::tempdir().expect("temporary folders can be made");
        let (input, output) = (
            folder.path().join("in.data"),
            folder.path().join("out.data"),
        );
        let mut numbers = Numbers(whole.len() as u64);
        for copy in 0..COPIES {
            let mut bytes = whole.clone();
            // The first copy is undamaged.
            if copy > 0 {
                damage(&mut bytes, &mut numbers);
            }
            fs::write(&input, &bytes).expect("files can be written");
            let open = || Input::open(&input);
            let report = open().and_then(Report::of);
            if !report.is_ok_and(|report| report.findings.is_empty() && report.records.records > 0)
            {
                rejected.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            accepted.fetch_add(1, Ordering::Relaxed);
            let surveys = open()
                .and_then(|input| input.survey())
                .expect("a recording");
            for (_, survey) in &surveys {
                let found = &survey.salvaging;
                assert!(found.skipped.is_empty(), "{}: {found:?}", recording.name);
            }
            for threads in [1, 2] {
                let recovery = recover(&input, &output, threads).expect("it is copied");
                assert!(recovery.skipped.is_empty() && recovery.losses.is_empty());
                assert_eq!(
                    recovery.summary.bytes_in,
                    bytes.len() as u64,
                    "{}",
                    recording.name
                );
                let copied = fs::read(&output).expect("the output is there");
                assert!(copied == bytes, "{}: {threads} threads", recording.name);
            }
        }
    });
    let (accepted, rejected) = (accepted.into_inner(), rejected.into_inner());
    assert!(
        accepted > 500 && rejected > 500,
        "{accepted} accepted, {rejected} rejected"
    );
}

/// A conversion reads an intact recording itself, and its summary is that of the input.
#[test]
fn an_intact_recording_is_converted() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let (out, direct) = (folder.path().join("out"), folder.path().join("direct"));
    let input = &files()[0].path;
    let stages = || vec![Box::new(Swap::new(Target::Other, Unknown::default())) as Box<dyn Stage>];
    let to = |path: &Path| Output::create(path, input, false).map(|output| output.synced(false));
    let recovery = Recover::default()
        .run_and(Input::open(input).expect("it exists"), |recovered| {
            convert_recovered(Conversion::new(stages()), recovered, to(&out)?)
        });
    let summary = recovery.expect("it is converted").summary;
    Conversion::new(stages())
        .run(input, to(&direct).expect("it can be created"))
        .expect("it is converted");
    let size = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
    assert_eq!(
        (summary.bytes_in, summary.bytes_out),
        (size(input), size(&out))
    );
    assert_eq!(fs::read(&out).ok(), fs::read(&direct).ok());
}

/// Truncates a file at the start of the second pass over it.
struct Truncate {
    path: PathBuf,
    passes: AtomicUsize,
}

impl Watch for Truncate {
    fn begin(&self, _: Option<u64>) {
        if self.passes.fetch_add(1, Ordering::Relaxed) == 1 {
            let file = fs::OpenOptions::new().write(true).open(&self.path);
            let file = file.expect("it exists");
            let len = file.metadata().expect("it exists").len();
            file.set_len(len - 100).expect("it can be truncated");
        }
    }

    fn advance(&self, _: u64) {}
}

/// A recording that is truncated between the check and the copy is no output.
#[test]
fn a_recording_that_is_truncated_meanwhile_is_refused() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let path = |name: &str| folder.path().join(name);
    let (input, output) = (path("in.data"), path("out.data"));
    let pipe = recordings::fixture("6.12-x86_64-pipe-default");
    fs::copy(&pipe.path, &input).expect("files can be written");
    let watch = Truncate {
        path: input.clone(),
        passes: AtomicUsize::new(0),
    };
    let opened = Input::open(&input).expect("it exists");
    let opened = opened.limited_by(Limits::default().with_max_threads(Some(1)));
    let to = Output::create(&output, &input, false).expect("it can be created");
    let recovery = Recover::default().run(opened.watched_by(Arc::new(watch)), to.synced(false));
    let error = recovery.expect_err("it was truncated").to_string();
    assert!(error.contains("truncated while it was read"), "{error}");
    assert!(!output.exists());
}

/// The copy of a recording with damage at its end is discarded: the output is the same with any
/// number of threads.
#[test]
fn the_number_of_threads_makes_no_difference() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let path = |name: &str| folder.path().join(name);
    let (input, one, two) = (path("in.data"), path("one.data"), path("two.data"));
    for recording in files().iter().filter(|recording| {
        let size = fs::metadata(&recording.path).map_or(0, |meta| meta.len());
        size < MOST as u64
    }) {
        let mut bytes = fs::read(&recording.path).expect("the fixture is there");
        bytes.truncate(bytes.len() - 1);
        fs::write(&input, &bytes).expect("files can be written");
        let told = [(&one, 1), (&two, 4)].map(|(output, threads)| {
            let recovery = recover(&input, output, threads);
            recovery
                .map(|recovery| (recovery.skipped, recovery.losses))
                .map_err(|error| error.to_string())
        });
        assert_eq!(told[0], told[1], "{}", recording.name);
        if told[0].is_ok() {
            assert_eq!(
                fs::read(&one).ok(),
                fs::read(&two).ok(),
                "{}",
                recording.name
            );
        }
    }
}
