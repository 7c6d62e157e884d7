//! Tracepoints that name a selected thread: `--related`.

use std::fs;

use perfdata_tests::convert::in_shell;
use perfdata_tests::recordings;

/// Returns the lines of samples in a text of perf script.
fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(": "));
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Returns whether a tracepoint in a line names a thread, in the words of the kernel's formats.
fn names(line: &str, tid: &str) -> bool {
    let fields = line
        .split([' ', '[', ']', ','])
        .map(|word| word.trim_end_matches(','));
    fields
        .filter_map(|word| word.split_once('='))
        .any(|(name, value)| {
            (name == "pid" || name == "tid" || name.ends_with("_pid") || name.ends_with("_tid"))
                && value == tid
        })
}

#[test]
fn tracepoints_that_name_a_selected_thread_are_related() {
    let mut others = 0;
    for fixture in [
        "6.1-x86_64-file-tp",
        "6.1-x86_64-pipe-tp",
        "6.12-s390x-pipe-z-tp",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let input = folder.path().join("in.data");
        fs::copy(recordings::fixture(fixture).path, input).expect("a fixture");
        let run = |words: &str| {
            let output = in_shell(folder.path(), &format!("perfconv {words}"));
            assert!(output.success(), "{fixture}: {words}: {}", output.stderr);
            output
        };
        let script = |input: &str| {
            let text = run(&format!(
                "export -q --no-symbols --to perf-script {input} -o -"
            ))
            .stdout;
            lines(&text)
        };
        let all = script("in.data");
        let tids: std::collections::BTreeSet<&str> = all
            .iter()
            .filter_map(|line| line.split(" [").next()?.rsplit(' ').next())
            .filter(|tid| tid.parse::<u32>().is_ok_and(|tid| tid > 0))
            .collect();
        assert!(tids.len() > 1, "{fixture}");
        for tid in tids {
            let own = run(&format!("convert -f --tid {tid} in.data -o own.data"));
            run(&format!(
                "convert -f --tid {tid} --related in.data -o related.data"
            ));
            let is_own = |line: &&String| line.contains(&format!(" {tid} ["));
            let expected: Vec<&String> = all
                .iter()
                .filter(|line| is_own(line) || names(line, tid))
                .collect();
            let related = script("related.data");
            assert_eq!(
                related.iter().collect::<Vec<_>>(),
                expected,
                "{fixture}: {tid}"
            );
            let more = related.len() - script("own.data").len();
            others += more;
            let note = own.stderr.contains("--related keeps them");
            assert_eq!(note, more > 0, "{fixture}: {tid}: {}", own.stderr);
        }
    }
    assert!(others > 20, "{others} samples");
}

#[test]
fn an_option_for_threads_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    fs::copy(recordings::fixture("6.1-x86_64-file-tp").path, input).expect("a fixture");
    let output = in_shell(
        folder.path(),
        "perfconv --related --cpu 0 in.data -o out.data",
    );
    assert_eq!(output.status.and_then(|status| status.code()), Some(2));
    assert!(
        output.stderr.contains("--related requires --pid"),
        "{}",
        output.stderr
    );
}
