//! `perfconv split` on the command line.

use std::fs;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::{perf, recordings};

/// Runs commands in a folder with the recording in.data.
fn run(folder: &Path, commands: &str) -> perf::Output {
    let input = folder.join("in.data");
    if !input.exists() {
        let fixture = recordings::fixture("6.1-x86_64-file-z").path;
        fs::copy(fixture, &input).expect("a fixture");
    }
    in_shell(folder, commands)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry.expect("an entry")))
        .collect();
    names.sort();
    names
}

#[test]
fn the_directory_appears_when_it_is_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &str| run(folder.path(), &format!("perfconv split -q {words}"));
    assert!(run("in.data -o out --by samples=100").success());
    let parts = names(&folder.path().join("out"));
    assert_eq!(parts.len(), 5);
    assert_eq!(
        (&*parts[0], &*parts[4]),
        ("00000-samples.data", "index.json")
    );

    // Another run needs --force, and only replaces what it wrote.
    let again = run("in.data -o out --by tid");
    assert_eq!(again.status.and_then(|status| status.code()), Some(2));
    assert!(run("in.data -o out --by tid --force").success());
    assert!(names(&folder.path().join("out"))[0].starts_with("00000-tid-"));
    fs::write(folder.path().join("out/notes.txt"), "mine").expect("it can be written");
    let before = names(&folder.path().join("out"));
    assert_eq!(
        run("in.data -o out --by tid --force")
            .status
            .and_then(|status| status.code()),
        Some(2)
    );
    assert_eq!(names(&folder.path().join("out")), before);

    // A refused conversion leaves nothing.
    assert_eq!(
        run("in.data -o none --by size=10")
            .status
            .and_then(|status| status.code()),
        Some(1)
    );
    assert_eq!(
        run("in.data -o none --by tid --drop NOTHING")
            .status
            .and_then(|status| status.code()),
        Some(2)
    );
    assert_eq!(names(folder.path()), ["in.data", "out"]);
}

#[test]
fn wrong_words_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |words: &str| {
        let output = run(folder.path(), &format!("perfconv split {words}"));
        assert_eq!(
            output.status.and_then(|status| status.code()),
            Some(2),
            "{words}"
        );
        output.stderr
    };
    let cases = [
        ("in.data --by tid", "--output <DIR>"),
        ("in.data -o out", "--by <WHAT>"),
        ("in.data -o out --by time=10", "a duration has a unit"),
        ("in.data -o out --by thread", "pid, tid, comm, cpu or event"),
        ("in.data -o out --by tid --to dir", "not a directory"),
        ("in.data -o - --by tid", "standard output"),
    ];
    for (words, expected) in cases {
        let said = said(words);
        assert!(said.contains(expected), "{words}: {said}");
    }
}

#[test]
fn fewer_files_are_open_if_the_system_allows_no_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |commands| run(folder.path(), commands);
    let all = run("perfconv split in.data -o all --by samples=1");
    assert!(all.success(), "{}", all.stderr);
    let parts = names(&folder.path().join("all"));
    assert!(parts.len() > 40);
    let few = run("ulimit -n 32; perfconv split in.data -o few --by samples=1");
    assert!(few.success(), "{}", few.stderr);
    assert_eq!(names(&folder.path().join("few")), parts);
    for part in &parts {
        let read = |which| fs::read(folder.path().join(which).join(part)).expect("a part");
        assert!(read("all") == read("few"), "{part}");
    }
}

#[test]
fn a_stream_is_divided_as_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let commands = "perfconv file2pipe -q in.data -o in.pipe && \
                    perfconv split -q in.data -o file --by tid && \
                    perfconv split -q - -o stream --by tid < in.pipe && ls stream";
    let output = run(folder.path(), commands);
    assert!(output.success(), "{}", output.stderr);
    let (file, stream) = (folder.path().join("file"), folder.path().join("stream"));
    assert_eq!(names(&file), names(&stream));
}
