//! Runtimes that write jitdumps, recorded here: perf shows of the result what it shows of that of
//! perf inject --jit, also without the dump.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use perfdata_convert::io::Output;
use perfdata_convert::pipeline::Conversion;
use perfdata_inject::callchains::Callchains;
use perfdata_inject::jit::{Images, Jit};
use perfdata_symbols::Sources;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::skipped;

use super::jit_perf::{judges, script, with_code};

/// A runtime: its name, the file with its program, the shell command that runs it, and a part of
/// the names of its functions.
struct Runtime {
    name: &'static str,
    file: &'static str,
    program: &'static str,
    command: &'static str,
    shown: &'static str,
}

const FIB_JS: &str = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
let sum = 0;
for (let i = 0; i < 15; i++) sum += fib(24);
console.log(sum);";

const FIB_PY: &str = "def inner(n):
    return sum(i * i for i in range(n))
def outer():
    return [inner(300) for _ in range(200)]
for _ in range(30): outer()";

const NODE: Runtime = Runtime {
    name: "node",
    file: "fib.js",
    program: FIB_JS,
    // Two processes at once.
    command: "node --perf-prof fib.js & node --perf-prof fib.js; wait",
    shown: "fib",
};

const NODE_UNWINDING: Runtime = Runtime {
    name: "node with unwinding information",
    command: "node --perf-prof --perf-prof-unwinding-info fib.js",
    ..NODE
};

/// Writes its dump to /tmp.
const PYTHON: Runtime = Runtime {
    name: "CPython 3.13 or newer, as python3.13",
    file: "fib.py",
    program: FIB_PY,
    command: "python3.13 -X perf_jit fib.py",
    shown: "py::",
};

/// A recording of a runtime.
struct Recorded {
    recorder: &'static Perf,
    folder: tempfile::TempDir,
    /// The dumps of its processes.
    dumps: Vec<PathBuf>,
}

impl Recorded {
    /// Records a runtime with these words. Returns `None` if there is no such runtime, or no perf
    /// that may record it.
    fn new(runtime: &Runtime, words: &[&str]) -> Option<Self> {
        let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
            skipped::note("perf");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(runtime.file), runtime.program).expect("a file");
        let mut command = recorder.command();
        command
            .args(["record", "-q", "-e", "cpu-clock", "-k", "mono", "-F", "500"])
            .args(words)
            .args(["-o", "perf.data", "--", "sh", "-c", runtime.command])
            .current_dir(folder.path())
            .stdin(Stdio::null());
        let is_recorded = perf::run(command).is_ok_and(|said| said.success());
        let mut recorded = Recorded {
            recorder,
            folder,
            dumps: Vec::new(),
        };
        if is_recorded {
            recorded.dumps = recorded.dumps();
            // A recording of the whole system may name those of other processes.
            if words.contains(&"-a") {
                let folder = recorded.folder.path();
                recorded.dumps.retain(|dump| dump.starts_with(folder));
            }
        }
        if recorded.dumps.is_empty() {
            skipped::note(format!(
                "{}, and a perf that may record cpu-clock",
                runtime.name
            ));
            return None;
        }
        Some(recorded)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the jitdumps that the recording names.
    fn dumps(&self) -> Vec<PathBuf> {
        let mut command = self.recorder.command();
        command.args(["script", "--show-mmap-events", "-F", "pid", "-i"]);
        command.arg(self.path("perf.data"));
        let said = perf::run(command).expect("perf can be started");
        let words = said.stdout.split_whitespace().map(PathBuf::from);
        let mut dumps: Vec<PathBuf> = words
            .filter(|word| word.extension().is_some_and(|ending| ending == "dump"))
            .filter(|word| word.exists())
            .collect();
        dumps.sort();
        dumps.dedup();
        dumps
    }

    /// Adds the code as perf inject does, and returns the path of the result.
    fn injected(&self, perf: &Perf) -> PathBuf {
        let to = self.path("injected.data");
        let mut command = perf.command();
        command
            .args(["inject", "--jit", "-i"])
            .arg(self.path("perf.data"));
        command.arg("-o").arg(&to);
        let said = perf::run(command).expect("perf can be started");
        assert!(said.success(), "{perf}: {}", said.stderr);
        to
    }

    /// Removes the dumps, and the images that perf wrote beside them.
    fn remove_dumps(&self) {
        for dump in &self.dumps {
            let name = dump
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let images = format!("{}-", name.replace("jit-", "jitted-"));
            let files = fs::read_dir(dump.parent().expect("a folder")).expect("a folder");
            for file in files.filter_map(Result::ok) {
                if file.file_name().to_string_lossy().starts_with(&images) {
                    drop(fs::remove_file(file.path()));
                }
            }
            drop(fs::remove_file(dump));
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.remove_dumps();
    }
}

/// perf shows the same samples, of one process and of the whole system; and after the dump was
/// removed, `perf report` still shows the names.
#[test]
fn samples_are_those_of_perf() {
    let runtimes = [
        (NODE, ["-g"].as_slice()),
        (NODE, &["-g", "-a"]),
        (NODE_UNWINDING, &["-g"]),
        // Few of its samples are in generated code itself, so perf unwinds user stacks, with the
        // images of perf in /tmp, and with the others in another folder.
        (PYTHON, &["--call-graph", "dwarf,16384"]),
    ];
    for (runtime, words) in runtimes {
        let Some(recorded) = Recorded::new(&runtime, words) else {
            continue;
        };
        let own = with_code(&recorded.path("perf.data"), None, recorded.folder.path());
        let injected = recorded.injected(recorded.recorder);
        let what = format!("{} {words:?}", runtime.name);
        for perf in judges(recorded.recorder.version) {
            let fields = "pid,tid,time,ip,sym";
            let expected = script(perf, fields, &injected);
            assert!(
                expected.contains(runtime.shown),
                "{what}, {perf}: {expected}"
            );
            assert!(script(perf, fields, &own) == expected, "{what}, {perf}");
        }
        recorded.remove_dumps();
        let mut command = recorded.recorder.command();
        command
            .args(["report", "--stdio", "-s", "sym", "-i"])
            .arg(&own);
        let said = perf::run(command).expect("perf can be started");
        assert!(
            said.stdout.contains(runtime.shown),
            "{what}: {}",
            said.stdout
        );
    }
}

/// Returns the samples of a text of `perf script`: what identifies them, and the addresses.
fn samples(text: &str) -> Vec<(&str, Vec<&str>)> {
    let paragraphs = text.split("\n\n").filter(|text| !text.trim().is_empty());
    paragraphs
        .map(|paragraph| {
            let mut lines = paragraph.trim_matches('\n').lines();
            let first = lines.next().unwrap_or_default();
            (
                first,
                lines
                    .filter_map(|line| line.split_whitespace().next())
                    .collect(),
            )
        })
        .collect()
}

/// User stacks in generated code, unwound in the same pass, are those that perf unwinds with its
/// images. They must be in /tmp for that, so that only CPython is compared.
#[test]
fn callchains_through_generated_code_are_those_of_perf() {
    let Some(recorded) = Recorded::new(&PYTHON, &["--call-graph", "dwarf,16384"]) else {
        return;
    };
    let since = "6.12".parse().expect("a release");
    let unwinders: Vec<&Perf> = judges(since).collect();
    let Some(first) = unwinders.first() else {
        return skipped::note("perf 6.12 or 7.2");
    };
    let (input, own) = (recorded.path("perf.data"), recorded.path("own.data"));
    let sources = Sources::default().with_caches(Vec::new());
    let jit = Jit::new(Images::In(recorded.path("own.jit"))).synced(false);
    let callchains = Callchains::unwound(sources).with_generated_code(true);
    let output = Output::create(&own, &input, true).expect("a file");
    Conversion::new(vec![Box::new(jit), Box::new(callchains)])
        .run(&input, output.synced(false))
        .expect("it is converted");
    let injected = recorded.injected(first);
    let fields = "pid,tid,time,ip,sym";
    let found = script(first, fields, &own);
    assert!(found.contains(PYTHON.shown), "{found}");
    let expected: Vec<String> = unwinders
        .iter()
        .map(|perf| script(perf, fields, &injected))
        .collect();
    let expected: Vec<_> = expected.iter().map(|text| samples(text)).collect();
    let found = samples(&found);
    let is_equal = |(at, sample)| expected.iter().any(|all| all.get(at) == Some(sample));
    let equal = found
        .iter()
        .enumerate()
        .filter(|(at, sample)| is_equal((*at, *sample)));
    let equal = equal.count();
    eprintln!("{} samples, {equal} equal", found.len());
    // perf 6.12 finds wrong modules in a process that executes another program: the shell's.
    assert!(
        found.len() > 20 && equal * 100 >= found.len() * 95,
        "{equal} of {}",
        found.len()
    );
}
