//! For how much of the weight of samples the function is known, and what could name the rest.

use perfdata_tests::convert::in_shell;
use perfdata_tests::recordings;

/// Returns what `perfconv export WORDS` and `perfconv RECORDING` say about a fixture.
fn said(recording: &str, words: &str) -> (Option<String>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |command: String| {
        let output = in_shell(folder.path(), &command);
        assert!(output.success(), "{command}: {}", output.stderr);
        output
    };
    let path = recordings::fixture(recording).path.display().to_string();
    let exported = run(format!(
        "mkdir root; perfconv export {path} {words} -o x.folded"
    ));
    let share = |line: &str| {
        let (_, share) = line.split_once("functions are known for ")?;
        Some(share.to_owned())
    };
    let overview = run(format!("perfconv {path}")).stdout;
    (exported.stderr.lines().find_map(share), overview)
}

#[test]
fn the_best_remedy_names_most() {
    // A bundle also contains the kernel's symbols.
    let (note, overview) = said("7.2-x86_64-file-g", "");
    let note = note.expect("a note");
    let start = "0 % of the samples' weight: a bundle made on the recorded machine could name 100 % more, in ";
    assert!(note.starts_with(start), "{note}");
    assert!(
        overview.contains(&format!("  functions: known for {note}\n")),
        "{overview}"
    );
    let command = "perfconv bundle ";
    assert!(overview.contains(command), "{overview}");
    // Nothing else was found in an empty root, which was searched already.
    let (again, _) = said("7.2-x86_64-file-g", "--sysroot root");
    assert_eq!(again, Some(note));
}

#[test]
fn of_several_events_the_one_with_the_most_samples_without_a_name_counts() {
    let (note, _) = said("6.1-s390x-file-multi", "");
    let note = note.expect("a note");
    assert!(note.starts_with("0 % of the samples' weight of "), "{note}");
}

#[test]
fn nothing_is_said_where_names_are_not_searched() {
    for words in ["--no-symbols", "-q"] {
        assert_eq!(said("7.2-x86_64-file-g", words).0, None, "{words}");
    }
    // Standard input is not read twice.
    let folder = tempfile::tempdir().expect("a folder");
    let commands = format!(
        "cat {} | perfconv -",
        recordings::fixture("7.2-x86_64-file-g").path.display()
    );
    let output = in_shell(folder.path(), &commands);
    assert!(
        output.success() && !output.stdout.contains("functions:"),
        "{}",
        output.stdout
    );
}
