//! Names in recordings without build IDs, on the machine that made them: those of perf, as long as
//! there is evidence that the objects are the recorded ones.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use perfdata_tests::convert::in_shell;
use perfdata_tests::perf::{self, Output};
use perfdata_tests::skipped;

/// Work in the kernel and in libraries.
const WORK: &str = "find /usr/share /usr/lib -name README";

/// Runs commands that must succeed, in a folder.
fn run(folder: &Path, commands: &str) -> Output {
    let output = in_shell(folder, commands);
    assert!(output.success(), "{commands}: {}", output.stderr);
    output
}

/// Returns whether perf can record here, and the kernel shows its addresses.
fn is_possible(folder: &Path) -> bool {
    if !perf::all().iter().any(|perf| perf.name == "perf") {
        skipped::note("perf");
        return false;
    }
    let record = "perf record -q -B -g -e cpu-clock -o try.data -- true > /dev/null 2>&1 && \
        perf script --show-mmap-events -i try.data | grep -q 'kernel.kallsyms._'";
    if !in_shell(folder, record).success() {
        skipped::note("the permission to record");
        return false;
    }
    let list = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if !list
        .lines()
        .any(|line| !line.starts_with("0000000000000000"))
    {
        skipped::note("addresses in /proc/kallsyms");
        return false;
    }
    true
}

/// Returns the numbers of frames, and of those with a name, in a text of `perf script`.
fn named(text: &str) -> (usize, usize) {
    let frames = text.lines().filter(|line| line.starts_with('\t'));
    frames.fold((0, 0), |(all, named), line| {
        let has_name = !line.contains("[unknown]");
        (all + 1, named + usize::from(has_name))
    })
}

/// Returns the text of `perf script` by perfconv, and its notes.
fn text(folder: &Path, recording: &str) -> Output {
    let export = format!("perfconv export -v {recording} --to perf-script --like 6.1 -o -");
    run(folder, &export)
}

#[test]
fn recordings_without_build_ids_have_the_names_of_perf() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !is_possible(folder) {
        return;
    }
    let record = "perf record -q -g -e cpu-clock -F 1999";
    run(
        folder,
        &format!("{record} -z -o z.data -- {WORK} > /dev/null"),
    );
    run(
        folder,
        &format!("{record} -B -o b.data -- {WORK} > /dev/null"),
    );
    run(
        folder,
        &format!("{record} -o - -- {WORK} 2> /dev/null > pipe.data"),
    );
    run(folder, "perfconv pipe2file -q pipe.data -o file.data");
    for recording in ["z.data", "b.data", "pipe.data", "file.data"] {
        let perfs = run(folder, &format!("perf script --no-inline -i {recording}"));
        let (all, perfs) = named(&perfs.stdout);
        let ours = text(folder, recording);
        assert_eq!(named(&ours.stdout).0, all, "{recording}");
        let ours_named = named(&ours.stdout).1;
        assert!(
            perfs > all / 2 && ours_named * 100 >= perfs * 99,
            "{recording}: {ours_named} of {all} frames have names, {perfs} in perf\n{}",
            ours.stderr
        );
        let evidence =
            "[kernel.kallsyms]: the same object by host name, kernel release, and address";
        assert!(ours.stderr.contains(evidence), "{}", ours.stderr);
        let evidence = "find: the same object by host name, kernel release, device, inode";
        assert!(ours.stderr.contains(evidence), "{}", ours.stderr);
    }
}

/// Changes a number before the name of the kernel's mapping in a recording.
fn with_kernel(recording: &Path, output: &Path, before: usize, change: impl Fn(u64) -> u64) {
    const NAME: &[u8] = b"[kernel.kallsyms]_";
    let mut bytes = fs::read(recording).expect("a recording");
    let name = bytes
        .windows(NAME.len())
        .position(|window| window == NAME)
        .expect("a kernel mapping");
    let number = &mut bytes[name - before..][..8];
    let value = u64::from_ne_bytes(number.try_into().expect("8 bytes"));
    number.copy_from_slice(&change(value).to_ne_bytes());
    fs::write(output, bytes).expect("a folder that can be written");
}

#[test]
fn each_piece_of_evidence_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !is_possible(folder) {
        return;
    }
    let record = "cp \"$(command -v perfconv)\" program; \
        perf record -q -B -g -e cpu-clock -F 4999 -o all.data -- \
        sh -c 'for n in 1 2 3 4 5 6 7 8; do ./program completions bash; done' > /dev/null";
    run(folder, record);
    let at = |name: &str| folder.join(name);
    let has = |recording: &str, reason: &str| {
        let output = text(folder, recording);
        assert!(
            output.stderr.contains(reason),
            "{recording}: {reason}: {}",
            output.stderr
        );
        let has_kernel = !output.stdout.contains("[unknown] ([kernel.kallsyms])");
        let has_file = output
            .stderr
            .contains("/program: the same object by host name");
        (has_kernel, has_file)
    };
    assert_eq!(has("all.data", "the same object by"), (true, true));
    run(
        folder,
        "perfconv -q all.data --set OSRELEASE='\"1.2.3\"' -o release.data",
    );
    let reason = "the recording does not contain its build ID (--unverified";
    assert_eq!(has("release.data", reason), (false, false));
    run(
        folder,
        "perfconv -q all.data --set HOSTNAME='\"elsewhere\"' -o host.data",
    );
    assert_eq!(has("host.data", reason), (false, false));
    // The address of the relocation symbol, and the end of the kernel's code.
    let reason = "the kernel was started again after it (--vmlinux";
    with_kernel(&at("all.data"), &at("moved.data"), 8, |at| at + 0x20_0000);
    assert_eq!(has("moved.data", reason), (false, true));
    with_kernel(&at("all.data"), &at("short.data"), 16, |len| len - 0x1000);
    assert_eq!(has("short.data", reason), (false, true));
    // The recording is older than the last start of this machine.
    run(
        folder,
        "cp all.data old.data; touch -d @1000000000 old.data",
    );
    assert_eq!(has("old.data", reason), (false, false));
    // The kernel hides its addresses from other users.
    let other_user = "setpriv --reuid 65534";
    let hidden = format!(
        "chmod -R a+rX . && {other_user} perfconv --version && \
         ! {other_user} grep -qv ^0000000000000000 /proc/kallsyms"
    );
    if in_shell(folder, &hidden).success() {
        let export =
            format!("{other_user} perfconv export all.data --to perf-script -o - > /dev/null");
        let output = run(folder, &export);
        let reason = "[kernel.kallsyms]: ";
        let told = output.stderr.lines().find(|line| line.contains(reason));
        let told = told.expect("a note of the kernel");
        assert!(
            told.contains("the kernel hides its addresses (kernel."),
            "{told}"
        );
    } else {
        skipped::note("another user from whom the kernel hides its addresses");
    }
    // Another file, and one that was modified.
    thread::sleep(Duration::from_millis(1500));
    run(
        folder,
        "cp program other; mv program kept; mv other program",
    );
    let reason = "has another device or inode (--unverified";
    assert_eq!(has("all.data", reason), (true, false));
    run(folder, "mv kept program");
    assert_eq!(has("all.data", "the same object by"), (true, true));
    run(folder, "touch program");
    let reason = "the file was modified after it (--unverified";
    assert_eq!(has("all.data", reason), (true, false));
}
