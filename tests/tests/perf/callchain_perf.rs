//! Unwound user stacks compared with perf: the callchains that `perf script` unwinds from the
//! original are those in the converted recording.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use perfdata_convert::pipeline::Stage;
use perfdata_core::header::ContainerKind;
use perfdata_inject::build_ids::Sysroot;
use perfdata_inject::callchains::Callchains;
use perfdata_symbols::Sources;
use perfdata_tests::convert::convert;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, PerfVersion};
use perfdata_tests::skipped;

/// Threads, recursion, signal handlers, callbacks of the C library, vDSO, procedure linkage tables.
const C: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile double sum;
__attribute__((noinline)) static void spin(int n) { for (int i = 0; i < n; i++) sum += i * 0.5; }
__attribute__((noinline)) static int deep(int n) {
    volatile char buffer[48]; buffer[0] = n;
    if (n == 0) { spin(3000); return 1; }
    int result = deep(n - 1) + buffer[0]; sum += result; return result;
}
static int compare(const void *a, const void *b) { spin(20); return *(int *)a - *(int *)b; }
__attribute__((noinline)) static void sorts(void) {
    int v[2000]; for (int i = 0; i < 2000; i++) v[i] = rand(); qsort(v, 2000, sizeof *v, compare);
}
static void on_alarm(int signal) { spin(20000); deep(5); }
static void *thread(void *unused) {
    for (int i = 0; i < 20; i++) {
        struct timespec t; deep(40); sorts();
        for (int k = 0; k < 1000; k++) clock_gettime(CLOCK_MONOTONIC, &t);
    }
    return unused;
}
int main(void) {
    struct itimerval every = {{0, 3000}, {0, 3000}};
    pthread_t threads[3]; char text[100];
    signal(SIGALRM, on_alarm); setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 20; i++) { sorts(); for (int k = 0; k < 2000; k++) snprintf(text, 100, "%d %f", k, sum); }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    if (fork() == 0) { deep(30); sorts(); execl("/bin/ls", "ls", "-lR", "/etc", NULL); }
    return 0;
}
"#;

/// Exceptions, inlined functions, templates.
const CPP: &str = r#"
#include <algorithm>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>
static volatile long sum;
struct V { std::vector<int> v; V(int n) : v(n) { for (int i = 0; i < n; i++) v[i] = i * 7919 % n; } ~V() { sum += v.size(); } };
__attribute__((noinline)) int deep(int n) { V a(50); if (n == 0) throw std::runtime_error("x"); return deep(n - 1) + a.v[3]; }
int main() {
    std::map<std::string, int> m;
    for (int i = 0; i < 8000; i++) { try { deep(i % 20); } catch (std::exception &) { sum += 1; } m[std::to_string(i)] = i; }
    V b(300000); std::sort(b.v.begin(), b.v.end(), [](int a, int c) { return a < c; });
    for (int i = 0; i < 200; i++) sum += std::regex_search(std::string(18, 'a'), std::regex("a*a*c"));
}
"#;

/// Threads, a hash table, sorting with a closure, a panic.
const RUST: &str = r#"
use std::collections::HashMap;
#[inline(never)]
fn deep(n: u32, m: &mut HashMap<String, u64>) -> u64 {
    *m.entry(format!("k{n}")).or_default() += 1;
    if n == 0 { (0..4000u64).map(|x| x * x % 7).sum() } else { deep(n - 1, m) + 1 }
}
fn main() {
    let work = || {
        let mut m = HashMap::new();
        (0..3000).map(|i| {
            let mut v: Vec<u32> = (0..500).map(|x| x * 7919 % 500).collect();
            v.sort_by(|a, b| b.cmp(a));
            let _ = std::panic::catch_unwind(|| if i % 100 == 0 { std::panic::resume_unwind(Box::new(1)) });
            deep(i % 50, &mut m) + u64::from(v[0])
        }).sum::<u64>()
    };
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(work)).collect();
    println!("{}", threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>());
}
"#;

/// Goroutines, closures, a panic. The only call frame information is a compressed `.debug_frame`.
const GO: &str = r#"
package main
import ("fmt"; "sort"; "sync")
//go:noinline
func deep(n int, m map[string]int) int {
	m[fmt.Sprint("k", n)]++
	if n > 0 { return deep(n-1, m) + 1 }
	sum := 0
	for i := 0; i < 4000; i++ { sum += i * i % 7 }
	return sum
}
func work() (total int) {
	m := map[string]int{}
	for i := 0; i < 800; i++ {
		v := make([]int, 500)
		for k := range v { v[k] = k * 7919 % 500 }
		sort.Slice(v, func(a, b int) bool { return v[a] > v[b] })
		func() { defer func() { recover() }(); if i%100 == 0 { panic("x") } }()
		total += deep(i%50, m) + v[0]
	}
	return total
}
func main() {
	var group sync.WaitGroup
	for i := 0; i < 3; i++ {
		group.Add(1)
		go func() { defer group.Done(); fmt.Println(work()) }()
	}
	group.Wait()
}
"#;

/// Functions without call frame information, which keep frame pointers. perf follows them.
const CALLS: &str = r#"
static volatile double sum;
__attribute__((noinline)) static void spin(int n) { for (int i = 0; i < n; i++) sum += i * 0.5; }
__attribute__((noinline)) static void inner(int n) { spin(n); sum += 1; }
__attribute__((noinline)) static void outer(int n) { inner(n); sum += 2; }
int main(void) { for (int i = 0; i < 3000; i++) outer(20000); return 0; }
"#;

/// The name of this program, for which frame pointers are followed.
const POINTERS: &str = "c-pointers";

const SCRIPT: &str = "python3 -c \"import json
def deep(n): return sum(i * i for i in range(2000)) if n == 0 else deep(n - 1) + 1
for i in range(150): deep(i % 30); json.loads(json.dumps({str(k): [k, k * 2.5] for k in range(200)})); sorted(range(500), key=lambda v: -v)\"";

/// A sample: thread and time, and its frames.
type Shown = (String, Vec<u64>);

/// Returns what `perf script` shows of each sample.
fn script(perf: &Perf, path: &Path, symfs: Option<&Path>) -> Vec<Shown> {
    let mut command = perf.command();
    command.args(["script", "--no-inline", "-F", "pid,tid,time,ip,sym", "-i"]);
    command.arg(path);
    if let Some(symfs) = symfs {
        command.arg("--symfs").arg(symfs);
    }
    let output = perf::run(command).expect("perf runs");
    assert!(output.success(), "{perf}: {}", output.stderr);
    let paragraphs = output.stdout.split("\n\n");
    let paragraphs = paragraphs.filter(|paragraph| !paragraph.trim().is_empty());
    let shown = paragraphs.map(|paragraph| {
        let mut lines = paragraph.lines();
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let first = words(lines.next().unwrap_or_default()).join(" ");
        let frame = |line| u64::from_str_radix(words(line).first()?, 16).ok();
        (first, lines.filter_map(frame).collect())
    });
    shown.collect()
}

/// How many samples are equal, or differ for a reason.
#[derive(Debug, Default)]
struct Counts {
    equal: usize,
    /// Both have the maximum number of entries, which is not the same.
    longest: usize,
    /// perf ends earlier, for instance in the vDSO, which it only finds in its cache.
    perf_is_shorter: usize,
    wrong: Vec<String>,
}

/// Compares the converted recording with the original. A sample is equal if it is what one of the
/// versions of perf shows: perf 6.12 finds wrong modules in processes that execute another program,
/// and perf 7.2 in objects whose segments have other addresses than offsets, as Rust programs do.
fn compare(name: &str, original: &Path, converted: &Path, symfs: Option<&Path>) -> Option<Counts> {
    let oldest = PerfVersion {
        major: 6,
        minor: 12,
    };
    let reads = |perf: &&Perf, path: &Path| {
        let reader = perfdata_core::open(path).expect("a recording");
        let size = reader
            .recording()
            .events
            .iter()
            .map(|event| event.attr.size)
            .max();
        size.is_none_or(|size| size <= perf.attr_size())
            || reader.container_layout().container() == ContainerKind::Pipe
    };
    let native = || {
        let form = recordings::Recording::at(original).form;
        let order = form.map(|form| form.endian);
        perf::all()
            .iter()
            .filter(move |perf| Some(perf.endian) == order)
    };
    let readers: Vec<&Perf> = native().filter(|perf| reads(perf, converted)).collect();
    let unwinders: Vec<&Perf> = native()
        .filter(|perf| perf.version >= oldest && reads(perf, original))
        .collect();
    if unwinders.is_empty() {
        skipped::note("perf 6.12 or 7.2");
        return None;
    }
    let found = script(unwinders[0], converted, symfs);
    for perf in readers {
        let mut other = script(perf, converted, symfs);
        let mut found = found.clone();
        // perf 6.1 shows the offsets of user frames in their objects.
        if perf.version < oldest {
            for (_, frames) in other.iter_mut().chain(&mut found) {
                frames.iter_mut().for_each(|frame| *frame &= 0xfff);
            }
        }
        assert_eq!(other, found, "{name}: {perf} reads the same");
    }
    let expected: Vec<Vec<Shown>> = unwinders
        .iter()
        .map(|perf| script(perf, original, symfs))
        .collect();
    let mut counts = Counts::default();
    for (at, (sample, frames)) in found.iter().enumerate() {
        let perfs: Vec<&Shown> = expected.iter().filter_map(|all| all.get(at)).collect();
        assert!(
            perfs.iter().all(|(other, _)| other == sample),
            "{name}: {sample}"
        );
        // The longest callchain has 126 words, with one marker or two.
        let is_longest = frames.len() >= 124;
        if perfs.iter().any(|(_, expected)| expected == frames) {
            counts.equal += 1;
        } else if is_longest
            && perfs
                .iter()
                .any(|(_, expected)| expected.starts_with(frames))
        {
            counts.longest += 1;
        } else if perfs
            .iter()
            .any(|(_, expected)| frames.starts_with(expected))
        {
            counts.perf_is_shorter += 1;
        } else {
            counts
                .wrong
                .push(format!("{sample}: {frames:x?}, perf {perfs:x?}"));
        }
    }
    eprintln!(
        "{name}: {} samples, {} equal, {} at the maximum, {} longer than perf's, {} wrong",
        found.len(),
        counts.equal,
        counts.longest,
        counts.perf_is_shorter,
        counts.wrong.len()
    );
    Some(counts)
}

fn stages(root: Option<&Path>, follows_frame_pointers: bool) -> Vec<Box<dyn Stage>> {
    let root = root.map(|root| {
        let root = Sysroot::new(Some(root.to_owned()));
        Arc::new(move |path: &Path| root.locate(path)) as perfdata_symbols::Locate
    });
    let sources = Sources::default().with_caches(Vec::new()).with_root(root);
    let stage = Callchains::unwound(sources).with_frame_pointers(follows_frame_pointers);
    vec![Box::new(stage)]
}

#[test]
fn recordings_with_objects_have_perfs_callchains() {
    let Some(root) = recordings::further("recordings") else {
        return;
    };
    for name in [
        "x86_64-7.2/file_dwarf.data",
        "x86_64-7.2/pipe_dwarf.data",
        "x86_64-6.1/file_dwarf.data",
        "x86_64-6.1/file_dwarf_u.data",
    ] {
        let path = root.join(name);
        let objects = path.parent().expect("a folder").join("sysroot");
        let made = convert(&path, None, stages(Some(&objects), false)).expect("converted");
        if let Some(counts) = compare(name, &path, &made.path(), Some(&objects)) {
            assert!(counts.equal > 2, "{counts:?}");
            let others = counts.longest + counts.perf_is_shorter + counts.wrong.len();
            assert_eq!(others, 0, "{name}: {counts:?}");
        }
    }
}

/// Recordings of s390x, whose libraries belong to the perf for s390x. Their program is not there,
/// so perf leaves out the return address in it.
#[test]
fn recordings_of_s390x_have_perfs_callchains() {
    let Some(root) = recordings::further("recordings") else {
        return;
    };
    let systems = std::env::var_os("PERF_ORACLES").map(|folder| Path::new(&folder).join("tree"));
    let mut compared = 0;
    for (name, system) in [
        ("s390x-7.2/file_dwarf.data", "sid-s390x"),
        ("s390x-6.1/file_dwarf.data", "bookworm-s390x"),
    ] {
        let path = root.join(name);
        let objects = systems.as_ref().map(|systems| systems.join(system));
        let Some(objects) = objects.filter(|objects| objects.is_dir() && path.exists()) else {
            continue;
        };
        let made = convert(&path, None, stages(Some(&objects), false)).expect("converted");
        let notes = made.summary.notes.join("\n");
        let reached = " user callchains end in /lab/work-s390x (";
        assert!(notes.contains(reached), "{notes}");
        if let Some(counts) = compare(name, &path, &made.path(), Some(&objects)) {
            compared += 1;
            assert!(counts.wrong.is_empty(), "{name}: {counts:?}");
            assert!(counts.perf_is_shorter > 20, "{name}: {counts:?}");
        }
    }
    if compared == 0 {
        skipped::note("recordings of s390x, and the perf for it with its libraries");
    }
}

/// Compiles a program; `None` if there is no compiler.
fn compiled(folder: &Path, name: &str, source: &str, compiler: &[&str]) -> Option<PathBuf> {
    let ending = match compiler[0] {
        "gcc" => "c",
        "g++" => "cpp",
        "go" => "go",
        _ => "rs",
    };
    let path = folder.join(format!("{name}.{ending}"));
    let program = folder.join(name);
    fs::write(&path, source).expect("a file");
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .arg("-o")
        .arg(&program)
        .arg(&path);
    match perf::run(command) {
        Ok(output) if output.success() => Some(program),
        _ => {
            skipped::note(format!("the compiler {}", compiler[0]));
            None
        }
    }
}

#[test]
fn programs_of_this_machine_have_perfs_callchains() {
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let compile = |name, source, compiler: &[&str]| compiled(folder.path(), name, source, compiler);
    let without_pointers = "-fomit-frame-pointer";
    let with_pointers = "-fno-omit-frame-pointer";
    let programs = [
        (
            "c",
            compile("c", C, &["gcc", "-O2", without_pointers, "-pthread"]),
        ),
        (
            "c-debug",
            compile("c-debug", C, &["gcc", "-O2", "-g", "-pthread"]),
        ),
        ("cpp", compile("cpp", CPP, &["g++", "-O2", "-g"])),
        ("rust", compile("rust", RUST, &["rustc", "-O"])),
        ("go", compile("go", GO, &["go", "build"])),
        (
            POINTERS,
            compile(
                POINTERS,
                CALLS,
                &[
                    "gcc",
                    "-O2",
                    "-fno-asynchronous-unwind-tables",
                    with_pointers,
                ],
            ),
        ),
    ];
    let mut commands: Vec<(&str, Vec<String>)> = programs
        .into_iter()
        .filter_map(|(name, path)| Some((name, vec![path?.display().to_string()])))
        .collect();
    commands.push(("script", ["sh", "-c", SCRIPT].map(str::to_owned).to_vec()));
    for (name, program) in commands {
        let path = folder.path().join(format!("{name}.data"));
        let mut command = recorder.command();
        command
            .args(["record", "-q", "-e", "cpu-clock", "-F", "997"])
            .args(["--call-graph", "dwarf,16384", "-o"])
            .arg(&path)
            .arg("--")
            .args(program);
        if let Some(home) = std::env::var_os("HOME") {
            command.env("HOME", home);
        }
        let output = perf::run(command).expect("perf runs");
        if !output.success() || !path.exists() {
            return skipped::note("the permission to record");
        }
        let made = convert(&path, None, stages(None, name == POINTERS)).expect("converted");
        made.summary
            .notes
            .iter()
            .for_each(|note| eprintln!("{name}: {note}"));
        if let Some(counts) = compare(name, &path, &made.path(), None) {
            let all = counts.equal + counts.longest + counts.perf_is_shorter;
            assert!(all >= 20, "{name}: {counts:?}");
            // Some stacks of goroutines end with an address that is not in a function, and perf
            // leaves it out.
            assert!(counts.equal * 10 >= all * 7, "{name}: {counts:?}");
            // Samples at the moment of exec, when the mappings change, and in the sections .init and
            // .fini, which have no call frame information: perf then follows frame pointers.
            assert!(
                counts.wrong.len() * 100 <= all.max(100),
                "{name}: {counts:?}"
            );
        }
    }
}
