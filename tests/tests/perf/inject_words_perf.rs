//! The command lines of perf's own tests of `perf inject` (tools/perf/tests/shell in Linux 7.2:
//! pipe_test.sh, inject-callchain.sh, inject_aslr.sh, jitdump-python.sh, test_java_symbol.sh,
//! record+zstd_comp_decomp.sh, record+zstd_comp_decomp_multi_record.sh, test_intel_pt.sh), with
//! `perfconv inject` in place of `perf inject`. perf finds in the result what these tests look for.
//! And the forms of options that perf accepts.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perfdata_tests::convert::perfconv;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Endian, PerfVersion};
use perfdata_tests::skipped;

/// The function that reports must show, in a program that runs for a moment.
const SYMBOL: &str = "noploop";
const PROGRAM: &str = "
#include <time.h>
__attribute__((noinline)) static unsigned noploop(unsigned n) {
    volatile unsigned sum = 0;
    for (unsigned at = 0; at < n; at++) sum += at;
    return sum;
}
int main(void) {
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    unsigned sum = 0;
    do {
        sum += noploop(100000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 40);
    return sum == 1;
}";

/// A recorder, and a program.
struct Bench {
    perf: &'static Perf,
    folder: tempfile::TempDir,
}

impl Bench {
    /// Returns `None` if there is no perf or no compiler.
    fn new() -> Option<Self> {
        let native = |perf: &&Perf| perf.endian == Endian::Little && perf.name == "perf";
        let Some(perf) = perf::all().iter().find(native) else {
            skipped::note("perf");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("program.c");
        std::fs::write(&source, PROGRAM).expect("a file");
        let mut command = Command::new("gcc");
        command.args(["-O1", "-g", "-o"]);
        command.arg(folder.path().join("program")).arg(&source);
        if !perf::run(command).is_ok_and(|said| said.success()) {
            skipped::note("the compiler gcc");
            return None;
        }
        let bench = Bench { perf, folder };
        let test = bench.path("test.data");
        if !bench.record(&["-e", "task-clock:u", "-o"], &test) {
            skipped::note("a perf that may record task-clock:u");
            return None;
        }
        Some(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `perf record WORDS OUTPUT -- program`.
    fn record(&self, words: &[&str], output: &Path) -> bool {
        let mut command = self.perf.command();
        command.args(["record", "-q"]).args(words).arg(output);
        command.arg("--").arg(self.path("program"));
        command.stdin(Stdio::null());
        perf::run(command).is_ok_and(|said| said.success())
    }

    /// Starts `perf record WORDS -o - program | perfconv inject MORE`.
    fn piped(&self, words: &[&str], more: &[&str], output: &Path) {
        let mut record = self.perf.command();
        record.args(["record", "-q"]).args(words).args(["-o", "-"]);
        record.arg("--").arg(self.path("program"));
        record.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut record = record.stderr(Stdio::null()).spawn().expect("perf starts");
        let stream = record.stdout.take().expect("a pipe");
        let mut inject = perfconv();
        inject.arg("inject").args(more).stdin(stream);
        if !more.contains(&"-o") {
            inject.stdout(File::create(output).expect("a file"));
        }
        let said = inject.output().expect("perfconv starts");
        assert!(record.wait().expect("perf ends").success());
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{more:?}: {text}");
    }

    /// Runs `perfconv inject WORDS`, with its standard output in a file.
    fn inject(&self, words: &[&str], output: &Path) {
        let mut command = perfconv();
        command.arg("inject").args(words).stdin(Stdio::null());
        command.stdout(File::create(output).expect("a file"));
        let said = command.output().expect("perfconv starts");
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{words:?}: {text}");
    }

    /// Returns the text of the recorder's `perf report WORDS`.
    fn report(&self, input: &Path, is_pipe: bool, words: &[&str]) -> String {
        report(self.perf, input, is_pipe, words)
    }
}

/// Returns the text of `perf report WORDS`. The recording is its standard input if it is a pipe.
fn report(perf: &Perf, input: &Path, is_pipe: bool, words: &[&str]) -> String {
    let mut command = perf.command();
    command.args(["report", "--stdio"]).args(words).arg("-i");
    if is_pipe {
        command.arg("-").stdin(File::open(input).expect("a file"));
    } else {
        command.arg(input).stdin(Stdio::null());
    }
    let said = command.output().expect("perf starts");
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{}: {text}", input.display());
    // perf chooses the tip at its end by chance.
    let text = perf::text(&said.stdout);
    let lines = text.lines().filter(|line| !line.starts_with("# (Tip: "));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Lines that perf accepts or refuses because of the forms of their options.
const FORMS: [&str; 66] = [
    "--build",
    "--build-",
    "--buildid",
    "--bu",
    "--mm",
    "--mmap2-buildid",
    "--no",
    "--n",
    "--s",
    "--sc",
    "--st",
    "--i",
    "--itr",
    "--ig",
    "--k",
    "--ka /proc/kallsyms",
    "--v",
    "--ve",
    "--vm",
    "--vml /none",
    "--a",
    "--u libdw",
    "--f",
    "--g",
    "--guestm /tmp",
    "--j",
    "--build-ids=1",
    "--no-itrace",
    "--itrace --no-itrace",
    "--strip --no-itrace",
    "--strip",
    "--strip --no-strip",
    "--no-itrace=x",
    "--no-s",
    "--no-sc",
    "--no-no-jit",
    "-bv",
    "-vb",
    "-fbj",
    "-bk /none",
    "-bx",
    "-b=1",
    "--",
    "--itrace i1i",
    "--it=x",
    "--itrac=xyz",
    "--no-b",
    "--no-bu",
    "--no-v",
    "--no-ve",
    "--no-f",
    "--no-m",
    "--no-k",
    "--no-g",
    "--no-i",
    "--no-it",
    "--input",
    "-k",
    "--vmlinux=",
    "--kallsyms=",
    "-vvv",
    "--verb --verb",
    "--kallsyms /none",
    "--kallsyms /none --no-kallsyms",
    "--ignore-vmlinux --no-ignore",
    "--convert-callchain --no-convert-callchain",
];

/// Options may be abbreviated, negated and joined as in perf.
#[test]
fn forms_of_options() {
    let since: PerfVersion = "7.2".parse().expect("a release");
    let is_judge = |perf: &&Perf| perf.endian == Endian::Little && perf.version >= since;
    let Some(judge) = perf::all().iter().find(is_judge) else {
        return skipped::note("perf 7.2 or newer");
    };
    let input = recordings::fixture("6.1-x86_64-file-default").path;
    let folder = tempfile::tempdir().expect("a folder");
    for line in FORMS {
        let is_accepted = |mut command: Command| {
            command.arg("inject").arg("-i").arg(&input).arg("-o");
            command.arg(folder.path().join("out"));
            command.args(line.split(' ')).stdin(Stdio::null());
            let said = command.output().expect("it starts");
            (said.status.success(), perf::text(&said.stderr))
        };
        let (expected, found) = (is_accepted(judge.command()), is_accepted(perfconv()));
        assert_eq!(expected.0, found.0, "{line}: {expected:?} {found:?}");
    }
}

/// pipe_test.sh: six ways to read and write, with each option for build IDs. test_intel_pt.sh: a
/// live stream whose result is thrown away.
#[test]
fn build_ids() {
    let Some(bench) = Bench::new() else { return };
    let [data, data2, out] = ["data", "data2", "out"].map(|name| bench.path(name));
    let event = ["-e", "task-clock:u"];
    for option in ["-B", "-b", "--buildid-all", "--mmap2-buildid-all"] {
        let shows = |input: &Path, is_pipe, number| {
            let text = bench.report(input, is_pipe, &[]);
            assert!(text.contains(SYMBOL), "{option} #{number}: {text}");
        };
        bench.piped(&event, &[option], &out);
        shows(&out, true, 1);
        bench.piped(&["-g", "-e", "task-clock:u"], &[option], &out);
        shows(&out, true, 2);
        bench.piped(&event, &[option, "-o", text(&data)], &out);
        shows(&data, false, 3);
        assert!(bench.record(&["-e", "task-clock:u", "-o"], &data));
        bench.inject(&[option, "-i", text(&data)], &out);
        shows(&out, true, 4);
        bench.piped(&event, &[], &data);
        bench.inject(&[option, "-i", text(&data)], &out);
        shows(&out, true, 5);
        bench.inject(&[option, "-i", text(&data), "-o", text(&data2)], &out);
        shows(&data2, false, 6);
    }
    bench.piped(&["-e", "task-clock:u"], &["-b"], Path::new("/dev/null"));
}

/// inject_aslr.sh: the addresses of the function move, and the reports stay the same. A pipe is
/// written twice, since it is needed for comparison.
#[test]
fn moved_addresses() {
    let Some(bench) = Bench::new() else { return };
    let [data, data2, clean, out] = ["data", "data2", "clean", "out"].map(|name| bench.path(name));
    // Addresses without a name are those of the recording.
    let reported = |input: &Path| -> Vec<String> {
        let words = [
            "-q",
            "-F",
            "overhead,sample",
            "-s",
            "comm,dso,sym",
            "-g",
            "none",
        ];
        let text = bench.report(input, false, &words);
        let is_named = |line: &&str| !line.contains("0x") && !line.contains("[unknown]");
        let lines = text.lines().filter(is_named);
        lines.map(str::to_owned).collect()
    };
    // The addresses of the function's samples.
    let addresses = |input: &Path| -> Vec<String> {
        let mut command = bench.perf.command();
        command
            .args(["script", "-G", "-F", "ip,sym", "-i"])
            .arg(input);
        let said = perf::run(command).expect("perf can be started");
        let lines = said.stdout.lines().filter(|line| line.contains(SYMBOL));
        lines.map(str::to_owned).collect()
    };
    let record = |words: &[&str]| {
        let words = [words, &["-e", "task-clock:u", "-o"]].concat();
        assert!(bench.record(&words, &data));
    };
    let check = |what: &str| {
        bench.inject(&["-b", "-i", text(&data), "-o", text(&clean)], &out);
        assert_eq!(reported(&data2), reported(&clean), "{what}");
        let [old, new] = [&clean, &data2].map(|path| addresses(path));
        assert!(!old.is_empty() && old.len() == new.len(), "{what}");
        assert_ne!(old, new, "{what}");
    };
    for line in [
        &["-v", "--aslr"][..],
        &["--aslr"],
        &["-b", "--aslr"],
        &["-v", "-b", "--aslr"],
    ] {
        for graph in [&[][..], &["-g"], &["--user-regs"]] {
            record(graph);
            let line = [line, &["-i", text(&data), "-o", text(&data2)]].concat();
            bench.inject(&line, &out);
            check(&format!("{line:?} {graph:?}"));
        }
    }
    // From and to a pipe.
    record(&[]);
    bench.inject(&["-i", text(&data)], &out);
    let mut inject = perfconv();
    inject.args(["inject", "-b", "--aslr", "-o", text(&data2)]);
    inject.stdin(File::open(&out).expect("a file"));
    assert!(inject.status().expect("perfconv starts").success());
    check("from a pipe");
    bench.inject(&["-b", "--aslr", "-i", text(&data), "-o", "-"], &out);
    let shown = bench.report(&out, true, &[]);
    assert!(shown.contains(SYMBOL), "{shown}");
}

/// inject-callchain.sh: the report of the converted recording is that of the original, except for
/// inlined functions.
#[test]
fn callchains() {
    let Some(bench) = Bench::new() else { return };
    let [data, new, out] = ["data", "data.new", "out"].map(|name| bench.path(name));
    let words = [
        "-e",
        "task-clock:u",
        "-F",
        "999",
        "--call-graph",
        "dwarf",
        "-o",
    ];
    assert!(bench.record(&words, &data));
    let line = ["-i", text(&data), "--convert-callchain", "-o", text(&new)];
    bench.inject(&line, &out);
    let words = ["--no-children", "-q", "--percent-limit=1"];
    let [old, new] = [&data, &new].map(|path| bench.report(path, false, &words));
    assert!(old.contains(SYMBOL));
    // Without the branches of the tree: an inlined function may be the first one of a callchain.
    let bare = |line: &str| line.trim_start_matches([' ', '|', '-']).to_owned();
    let known: Vec<_> = new.lines().map(bare).collect();
    for line in old.lines().filter(|line| !line.contains("(inlined)")) {
        assert!(known.contains(&bare(line)), "{line:?}: {new}");
    }
}

/// record+zstd_comp_decomp.sh: a report of the recording and of the result are the same.
#[test]
fn compressed() {
    let Some(bench) = Bench::new() else { return };
    let [data, new, out] = ["data", "data.decomp", "out"].map(|name| bench.path(name));
    let words = ["-e", "task-clock:u", "-g", "-z", "-F", "5000", "-o"];
    if !bench.record(&words, &data) {
        return skipped::note("a perf that compresses");
    }
    bench.inject(&["-i", text(&data), "-o", text(&new)], &out);
    let words = ["-F", "comm,dso,sym"];
    let [old, new] = [&data, &new].map(|path| bench.report(path, false, &words));
    // perf sorts callchains with as many samples by addresses in its own memory.
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert!(
        old.contains(SYMBOL) && sorted(&old) == sorted(&new),
        "{old}\n---- after inject:\n{new}"
    );
}

/// jitdump-python.sh, test_java_symbol.sh and test_intel_pt.sh: the words in their orders. The
/// recordings contain a JIT compiler.
#[test]
fn generated_code() {
    let Some(root) = recordings::further("recordings/jit/x86_64-6.12") else {
        return;
    };
    let input = root.join("jit-recorded.data");
    let Some(bench) = Bench::new() else { return };
    // perf reads recordings of its own release and of older ones.
    let since: PerfVersion = "6.12".parse().expect("a release");
    let is_judge = |perf: &&Perf| perf.endian == Endian::Little && perf.version >= since;
    let Some(judge) = perf::all().iter().find(is_judge) else {
        return skipped::note("perf 6.12 or newer");
    };
    let (new, out) = (bench.path("jit"), bench.path("out"));
    for line in [
        &["-i", text(&input), "-j", "-o", text(&new)][..],
        &["-i", text(&input), "-o", text(&new), "-j"],
        &["-i", text(&input), "-o", text(&new), "--jit"],
    ] {
        // The images of perf's are beside the dump, which must stay as it is.
        let images = bench.path("images");
        let more = ["--jit-dir", text(&root), "--jit-images", text(&images)];
        bench.inject(&[line, &more].concat(), &out);
        let shown = report(judge, &new, false, &["-s", "sym"]);
        let images = std::fs::read_dir(&images).expect("images").count();
        assert!(images > 0, "{line:?}");
        assert!(shown.contains("unwindable_leaf"), "{line:?}: {shown}");
    }
}
