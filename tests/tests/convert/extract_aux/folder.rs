//! The folder with the data: it appears whole or not at all.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use perfdata_tests::convert::perfconv;
use perfdata_tests::synth::auxtrace::Origin;
use perfdata_tests::synth::buf::island;
use perfdata_tests::synth::file::Magic;
use perfdata_tests::synth::pipe::Pipe;
use perfdata_tests::synth::{auxtrace, sink};
use perfdata_tests::{recordings, skipped};

use super::{Extracted, USUAL, events, file, piece, records, run};

#[test]
fn a_cut_recording_gives_what_it_has() {
    let whole = file(false, USUAL, 0, |s| piece(s, 0, 0, &island(64)));
    let extracted = Extracted::of(&whole[..whole.len() - 24]);
    assert_eq!(extracted.only(), island(64)[..40]);
    assert!(
        extracted.index["damage"][0]
            .as_str()
            .is_some_and(|text| text.contains("payload of a record"))
    );
    assert!(
        extracted.said.contains("payload of a record"),
        "{}",
        extracted.said
    );
}

/// Returns the sorted names of the files in `folder`.
fn names(folder: &Path) -> Vec<String> {
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name().into_string();
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|e| name(e).expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn the_directory_appears_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name);
    let none = recordings::fixture("6.1-x86_64-file-default").path;
    let failed = |output: &Output, status: i32, text: &str| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(status) && said.contains(text),
            "{said}"
        );
    };
    let side = place("side").display().to_string();
    failed(
        &run(&none, &place("aux"), &["--sideband", &side]),
        1,
        "no AUX data",
    );
    failed(&run(&place("nothing"), &place("aux"), &[]), 2, "nothing");
    assert_eq!(names(folder.path()), [""; 0]);

    fs::write(
        place("input"),
        file(false, USUAL, 0, |s| piece(s, 0, 0, &island(8))),
    )
    .expect("a temporary file");
    assert!(
        run(&place("input"), &place("aux"), &["-q"])
            .status
            .success()
    );
    failed(&run(&place("input"), &place("aux"), &[]), 2, "--force");
    failed(
        &run(&place("input"), &place("input"), &["-f"]),
        2,
        "is not a directory",
    );
    fs::write(place("aux/old.aux"), "").expect("a temporary file");
    assert!(
        run(&place("input"), &place("aux"), &["-f"])
            .status
            .success()
    );
    assert_eq!(names(&place("aux")), ["index.json", "intel-pt-cpu0.aux"]);
    fs::write(place("aux/mine"), "").expect("a temporary file");
    failed(
        &run(&place("input"), &place("aux"), &["-f"]),
        2,
        "mine was not written by a conversion",
    );
    // Nothing of a run that fails late is left, and the old directory stays.
    fs::remove_file(place("aux/mine")).expect("a temporary file");
    failed(&run(&none, &place("aux"), &["-f"]), 1, "no AUX data");
    assert_eq!(names(&place("aux")), ["index.json", "intel-pt-cpu0.aux"]);
    assert_eq!(names(folder.path()), ["aux", "input"]);
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // A process that a shell starts in the background ignores signals, and so do its children.
    let default_signals = "--default-signal=QUIT";
    let mut command = Command::new("env");
    let status = command.args([default_signals, "true"]).status();
    if !status.is_ok_and(|status| status.success()) {
        return skipped::note("an env with --default-signal");
    }
    let mut command = Command::new("env");
    command
        .arg(default_signals)
        .arg(perfconv().get_program())
        .args(["extract-aux", "-", "-o"])
        .arg(folder.path().join("aux"))
        .stdin(Stdio::piped());
    let mut child = command.spawn().expect("perfconv runs");
    let records = records(false, USUAL, 0, |s| piece(s, 0, 0, &island(64)));
    let pipe = Pipe::new(false, Magic::V2).event(&events(USUAL)[0]);
    let bytes = pipe.terminator(32).records(&records.cases).bytes;
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(&bytes[..bytes.len() - 8])
        .and_then(|()| stdin.flush())
        .expect("perfconv reads");
    let folders = || names(folder.path());
    for _ in 0..1000 {
        if !folders().is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(
        folders().iter().all(|name| name.starts_with(".perfconv-")),
        "{:?}",
        folders()
    );
    let killed = Command::new("kill")
        .arg("-QUIT")
        .arg(child.id().to_string())
        .status()
        .expect("kill runs");
    assert!(killed.success());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("the signal does not end it");
        }
        thread::sleep(Duration::from_millis(1));
    };
    assert!(!status.success());
    assert_eq!(folders(), [""; 0]);
}

/// More buffers than files that can be open at the same time, alternating.
#[test]
fn many_threads_have_a_file_each() {
    let bytes = file(false, USUAL, 0, |s| {
        for round in 0..3_u8 {
            for tid in 1..200 {
                let origin = Origin {
                    offset: u64::from(round) * 8,
                    reference: 0,
                    idx: tid,
                    tid,
                    cpu: u32::MAX,
                };
                auxtrace::piece(s, "AUXTRACE", origin, &[tid as u8 ^ round; 8]);
            }
        }
    });
    let extracted = Extracted::of(&bytes);
    assert_eq!(extracted.queues().len(), 199);
    for tid in 1..200 {
        let expected: Vec<u8> = (0..3).flat_map(|round| [tid as u8 ^ round; 8]).collect();
        assert_eq!(extracted.file(&format!("intel-pt-tid{tid}.aux")), expected);
    }
}

/// Other files in the directory of the data are removed with it.
#[test]
fn a_recording_in_the_directory_of_the_data() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("in"), sink::file(false).bytes()).expect("a temporary file");
    for sideband in ["aux", "aux/side", "./aux/more/side"] {
        let mut command = perfconv();
        command
            .args([
                "extract-aux",
                "in",
                "-o",
                "aux",
                "-f",
                "--sideband",
                sideband,
            ])
            .current_dir(&folder);
        let said = command.output().expect("perfconv runs");
        let error = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{error}");
        assert!(error.contains("choose another path"), "{error}");
        let names: Vec<_> = fs::read_dir(&folder)
            .expect("it is there")
            .map(|e| e.expect("a file").file_name())
            .collect();
        assert_eq!(names, ["in"]);
    }
}
