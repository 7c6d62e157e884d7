//! The options for sharing, and what a recording tells.

use std::path::Path;

use perfdata_tests::{convert, perf::Output, recordings};
use serde_json::Value;

/// Returns a folder with a file `a.data`, one with user stacks, one with tracepoints, and keys.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, fixture) in [
        ("a.data", "6.1-x86_64-file-g"),
        ("stacks.data", "6.1-i386-file-dwarf"),
        ("points.data", "6.1-x86_64-file-tp"),
    ] {
        std::fs::copy(recordings::fixture(fixture).path, folder.path().join(name)).expect("a copy");
    }
    std::fs::write(folder.path().join("key"), "a secret of some length").expect("a key");
    std::fs::write(folder.path().join("short"), "short").expect("a key");
    folder
}

fn run(folder: &Path, commands: &str) -> (Option<i32>, Output) {
    let output = convert::in_shell(folder, commands);
    (output.status.and_then(|status| status.code()), output)
}

#[test]
fn combinations_without_sense_are_refused() {
    let folder = folder();
    for (options, why) in [
        ("--keep host", "--sanitize"),
        ("--key key", "--sanitize"),
        ("--sanitize=all", "public, vendor"),
        ("--sanitize --keep coms", "did you mean comms"),
        ("--sanitize --key short", "at least 16 bytes"),
        ("--sanitize --key missing", "missing"),
        (
            "--sanitize --unknown keep",
            "--unknown keep cannot be combined with --sanitize",
        ),
        ("--sanitize --set HOSTNAME=x", "--set cannot be combined"),
        (
            "--sanitize --set-raw HOSTNAME=key",
            "--set-raw cannot be combined",
        ),
        ("--sanitize --jit", "--jit cannot be combined"),
    ] {
        let (status, output) = run(
            folder.path(),
            &format!("perfconv {options} a.data -o out.data"),
        );
        assert_eq!(status, Some(2), "{options}: {}", output.stderr);
        assert!(output.stderr.contains(why), "{options}: {}", output.stderr);
        assert!(!folder.path().join("out.data").exists(), "{options}");
    }
    let (status, output) = run(
        folder.path(),
        "perfconv split --sanitize --by comm a.data -o parts",
    );
    assert_eq!(status, Some(2), "{}", output.stderr);
    assert!(
        output.stderr.contains("nothing in common"),
        "{}",
        output.stderr
    );
    let (status, output) = run(
        folder.path(),
        "perfconv --sanitize --keep sched:sched_switch:x a.data -o out.data",
    );
    assert_eq!(status, Some(1), "{}", output.stderr);
}

#[test]
fn what_a_recording_tells_is_shown() {
    let folder = folder();
    let (status, output) = run(
        folder.path(),
        "perfconv a.data; perfconv info --leaks a.data",
    );
    assert_eq!(status, Some(0), "{}", output.stderr);
    for text in [
        "perfconv info --leaks a.data",
        "Names of threads: which programs run",
        "COMM.comm ",
        "Host name\n  HOSTNAME ",
        "convert --sanitize replaces or removes all of this.",
    ] {
        assert!(output.stdout.contains(text), "{text}: {}", output.stdout);
    }
    let (_, output) = run(folder.path(), "perfconv info --leaks --json stacks.data");
    let leaks: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(leaks["file"], "stacks.data");
    let all = leaks["leaks"].as_array().expect("a list");
    let stack = all
        .iter()
        .find(|leak| leak["place"] == "SAMPLE.stack_user.data")
        .expect("user stacks");
    assert_eq!(
        (&stack["content"], &stack["sanitize"]),
        (&"memory".into(), &"remove".into())
    );
    assert!(stack["bytes"].as_u64().expect("a size") > 0, "{stack}");
    // Pseudonyms are still names, but there is nothing to remove.
    let (status, output) = run(
        folder.path(),
        "perfconv -q --sanitize stacks.data -o out.data && perfconv info --leaks --json out.data",
    );
    assert_eq!(status, Some(0), "{}", output.stderr);
    let leaks: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let all = leaks["leaks"].as_array().expect("a list");
    let left: Vec<&Value> = all
        .iter()
        .filter(|leak| leak["sanitize"] == "remove")
        .collect();
    assert_eq!(left, Vec::<&Value>::new());
}

/// The field of a tracepoint that is named stays, and no other.
#[test]
fn fields_of_tracepoints_are_kept_by_name() {
    let folder = folder();
    let (status, output) = run(
        folder.path(),
        "perfconv -q --sanitize --keep sched:sched_switch:prev_state,sched:sched_switch:prev_prio points.data -o out.data \
         && perfconv export --to perf-script points.data -o - && echo ===== && perfconv export --to perf-script out.data -o -",
    );
    assert_eq!(status, Some(0), "{}", output.stderr);
    let (before, after) = output.stdout.split_once("=====").expect("both");
    let field = |text: &str, name: &str| -> Vec<String> {
        let words = text.split_whitespace();
        words
            .filter_map(|word| word.strip_prefix(name))
            .map(str::to_owned)
            .collect()
    };
    for name in ["prev_state=", "prev_prio="] {
        assert!(!field(before, name).is_empty(), "{before}");
        assert_eq!(field(before, name), field(after, name));
    }
    assert!(
        field(after, "prev_pid=").iter().all(|pid| pid == "0"),
        "{after}"
    );
    assert!(
        field(before, "prev_comm=")
            .iter()
            .any(|comm| !after.contains(comm.as_str()))
    );
}

/// As perf inject --aslr, but every sample stays.
#[test]
fn only_addresses_move_with_aslr() {
    let folder = folder();
    let (status, output) = run(
        folder.path(),
        "perfconv inject --aslr -i a.data -o moved.data && perfconv diff a.data moved.data; \
         perfconv dump --type COMM,MMAP2 --json moved.data",
    );
    assert_eq!(status, Some(0), "{}", output.stderr);
    let note = "note: addresses moved; names, process IDs, sizes";
    assert!(output.stderr.contains(note), "{}", output.stderr);
    assert!(output.stdout.contains("perf-workload"), "{}", output.stdout);
    assert!(
        !output.stdout.contains("\"addr\":\"0x55cfd445f000\""),
        "{}",
        output.stdout
    );
    let (status, output) = run(
        folder.path(),
        "perfconv inject --aslr --sanitize -i a.data -o x.data",
    );
    assert_eq!(status, Some(2), "{}", output.stderr);
}

/// Stacks are unwound with the recorded addresses, before the addresses move. perf refuses this.
#[test]
fn callchains_of_stacks_move_with_aslr() {
    let folder = folder();
    let (status, output) = run(
        folder.path(),
        "perfconv inject --aslr --convert-callchain -i stacks.data -o one.data && \
         perfconv inject -q --convert-callchain -i stacks.data -o unwound.data && \
         perfconv inject -q --aslr -i unwound.data -o two.data && \
         perfconv dump --type SAMPLE --json unwound.data | grep -o '\"ip\":\"[^\"]*' | sort -u > old && \
         perfconv dump --type SAMPLE --json one.data > new && grep -c callchain new && \
         ! grep -qFf old new && ! grep -q stack_user new && perfconv verify one.data && \
         test $(stat -c %s one.data) = $(stat -c %s two.data)",
    );
    assert_eq!(status, Some(0), "{} {}", output.stdout, output.stderr);
    let said = &output.stderr;
    assert!(said.contains("user callchains unwound"), "{said}");
}
