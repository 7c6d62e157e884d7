//! `perfconv export --to bolt`, `llvm-profgen` and `autofdo`: the programs that read these tables
//! make the same profiles of them as of the recordings.
//!
//! The recordings are made of the true sequence of instructions of programs, which run step by step:
//! samples with the last 32 branches, as a processor records them.

mod kernel;
mod made;
mod newer_bolt;
mod optimised;
mod published;
mod readers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perfdata_tests::convert::in_shell;
use perfdata_tests::{perf, skipped};

use self::made::{Traced, Variant};
use self::readers::{Counted, sorted};
use crate::traces;

/// The folder of LLVM 19's programs on Debian and Ubuntu.
const LLVM: &str = "/usr/lib/llvm-19/bin";

/// Programs: the commands that build them in a folder with `program.c`, the program, and the objects
/// whose profiles are written.
const PROGRAMS: [(&str, &str, &[&str]); 3] = [
    (
        "static",
        "$CC -static -no-pie -fno-pie program.c -o static",
        &["static"],
    ),
    (
        "pie",
        "$CC -fPIE -pie program.c -o pie -Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2",
        &["pie"],
    ),
    (
        "shared",
        "$CC -DLIBRARY -fPIC -shared program.c -o libwork.so && \
         $CC -DPROGRAM -fPIE -pie program.c -o shared -L. -lwork -Wl,-rpath,$PWD -Wl,-z,lazy \
             -Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2",
        &["shared", "libwork.so"],
    ),
];

/// Copies sources to `folder`, and builds what runs programs step by step. Returns whether that is
/// possible here.
fn prepare(folder: &Path, sources: &[&str]) -> bool {
    if !cfg!(target_arch = "x86_64") {
        skipped::note("an x86-64 machine");
        return false;
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/branch_profiles");
    for name in sources.iter().chain(&["step.c"]) {
        fs::copy(own.join(name), folder.join(name)).expect("a source");
    }
    let is_built = in_shell(folder, "cc -O2 step.c -o step").success();
    if !is_built {
        skipped::note("a C compiler");
    }
    is_built
}

/// Builds the programs and runs them step by step in `folder`; `None` if that cannot be done here.
fn traced(folder: &Path) -> Option<Vec<Ran<'static>>> {
    if !prepare(folder, &["program.c"]) {
        return None;
    }
    // BOLT moves functions in programs with relocations.
    let flags = "-gdwarf-4 -O1 -nostdlib -fno-stack-protector -fcf-protection=none \
                 -Wl,--build-id,--emit-relocs";
    let build = |command: &str| {
        let script = format!("CC=\"cc {flags}\"; {command}");
        let mut run = Command::new("sh");
        run.current_dir(folder)
            .args(["-c", &script])
            .status()
            .is_ok_and(|status| status.success())
    };
    if !PROGRAMS.iter().all(|(_, command, _)| build(command)) {
        skipped::note("a C compiler that links programs without its library");
        return None;
    }
    let traced = PROGRAMS.iter().map(|&(name, _, objects)| {
        let is_traced = step(folder, name, u32::MAX);
        is_traced.then(|| (Traced::read(folder, name), objects))
    });
    let traced: Option<Vec<_>> = traced.collect();
    if traced.is_none() {
        skipped::note("ptrace");
    }
    traced
}

/// Runs a program step by step. Returns whether that is possible here.
fn step(folder: &Path, name: &str, most: u32) -> bool {
    let step = Command::new(folder.join("step"))
        .current_dir(folder)
        .args([format!("{name}.ips"), most.to_string(), format!("./{name}")])
        .stdout(Stdio::null())
        .status();
    step.is_ok_and(|status| status.success())
}

/// Programs as their compilers build them: what builds them, from a source `real.*`.
const REAL: [(&str, &str); 3] = [
    (
        "cpp",
        "g++ -O2 -gdwarf-4 -std=c++17 -static real.cpp -Wl,--build-id -o cpp",
    ),
    (
        "rust",
        "rustc -g -O -C dwarf-version=4 -C target-feature=+crt-static -C link-arg=-Wl,--build-id real.rs -o rust",
    ),
    (
        "go",
        "GOCACHE=$PWD/cache GO111MODULE=off go build -o go real.go",
    ),
];

/// Number of instructions of these programs that run: most of them start the language's library.
const MOST_STEPS: u32 = 150_000;

#[test]
fn readers_make_the_same_profiles_of_real_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !prepare(folder, &["real.cpp", "real.rs", "real.go"]) {
        return;
    }
    let mut all = Vec::new();
    for (name, build) in REAL {
        if !in_shell(folder, build).success() {
            skipped::note(format_args!("what builds a program: {build}"));
            continue;
        }
        if !step(folder, name, MOST_STEPS) {
            skipped::note("ptrace");
            return;
        }
        all.push((Traced::read(folder, name), [name]));
    }
    let all: Vec<Ran> = all
        .iter()
        .map(|(traced, objects)| (traced.clone(), objects.as_slice()))
        .collect();
    readers_make_the_same_profiles(folder, &all, &Variant::ALL[..1], &[]);
}

fn succeed(folder: &Path, commands: &str) -> perf::Output {
    let output = in_shell(folder, commands);
    assert!(output.success(), "{commands}: {}", output.stderr);
    output
}

fn text(path: PathBuf) -> String {
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn tables_are_those_of_the_recordings() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(all) = traced(folder.path()) else {
        return;
    };
    tables_count_all_branches(folder.path(), &all);
    let functions = ["_start", "work", "collatz", "twice", "down"];
    readers_make_the_same_profiles(folder.path(), &all, &Variant::ALL, &functions);
}

/// A program that ran, and the objects whose profiles are written.
type Ran<'a> = (Traced, &'a [&'static str]);

/// Records the programs. `functions` are theirs.
fn readers_make_the_same_profiles(
    folder: &Path,
    all: &[Ran<'_>],
    variants: &[(&str, Variant)],
    functions: &[&str],
) {
    for (traced, objects) in all {
        for &(name, variant) in variants {
            let input = format!("{}-{name}.data", traced.name);
            traced.record(variant, &folder.join(&input));
            for object in *objects {
                let counted = Counted {
                    folder,
                    input: &input,
                    object,
                    functions,
                    is_kernel: traced.image().is_some(),
                };
                counted.readers_make_the_same();
            }
        }
    }
}

/// Without a reader: the table contains each branch of the object once, with its count.
fn tables_count_all_branches(folder: &Path, all: &[Ran<'_>]) {
    for (traced, objects) in all {
        traced.record(Variant::PLAIN, &folder.join("in.data"));
        for object in *objects {
            let output = succeed(
                folder,
                &format!("perfconv export --to bolt --binary {object} in.data -o - --force"),
            );
            let lines = output.stdout.lines().filter(|line| line.starts_with("B "));
            let counts = lines.map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                let number = |at: usize| words[at].parse::<u64>().expect("a number");
                (number(3), number(4))
            });
            let sums = counts.fold((0, 0), |(all, missed), (count, misses)| {
                (all + count, missed + misses)
            });
            let expected = traced.branches_of(Variant::PLAIN, object);
            assert_eq!(sums, expected, "{}, {object}", traced.name);
        }
    }
    // Two recordings are added up, and the object with most branches is found by itself.
    let (traced, _) = all.last().expect("programs");
    for variant in [Variant::PLAIN, Variant::ALL[1].1] {
        threads_make_no_difference(folder, traced, variant);
    }
    traced.record(Variant::PLAIN, &folder.join("in.data"));
    let both = succeed(
        folder,
        "perfconv inject -b in.data -o ids.data && perfconv export --to llvm-profgen ids.data -o one && \
         perfconv export --to llvm-profgen ids.data ids.data -o two",
    );
    assert!(
        both.stderr.contains("libwork.so (build ID "),
        "{}",
        both.stderr
    );
    let (one, two) = (text(folder.join("one")), text(folder.join("two")));
    assert_eq!(one.lines().count(), two.lines().count());
    for (line, sum) in one.lines().zip(two.lines()) {
        match (line.rsplit_once(':'), sum.rsplit_once(':')) {
            (Some((what, count)), Some((same, sum))) => {
                let number = |text: &str| text.parse::<u64>().expect("a number");
                assert_eq!((what, 2 * number(count)), (same, number(sum)));
            }
            _ => assert_eq!(line, sum),
        }
    }
}

/// Several recordings, and parts of each, are counted at the same time.
fn threads_make_no_difference(folder: &Path, traced: &Traced, variant: Variant) {
    traced.record(variant, &folder.join("a.data"));
    traced.record(Variant::PLAIN, &folder.join("b.data"));
    let object = traced.name;
    let run = |what: &str| {
        let command = format!("perfconv export --force --binary {object} -o {what}");
        let output = succeed(folder, &command);
        let written = what.split(' ').next().expect("a name");
        (text(folder.join(written)), output.stderr)
    };
    for to in ["bolt", "llvm-profgen", "autofdo"] {
        for inputs in ["a.data", "a.data b.data a.data b.data b.data"] {
            let one = run(&format!("table --to {to} {inputs} --threads 1"));
            assert!(one.0.lines().count() > 10, "{to}: {one:?}");
            for how in [
                "--threads 2",
                "--threads 8",
                "--threads 8 --jobs 1",
                "--threads 8 --jobs 3",
                "--threads 1 --jobs 4",
            ] {
                let more = run(&format!("table --to {to} {inputs} {how}"));
                assert_eq!(more, one, "{}, {to}, {inputs}, {how}", traced.name);
            }
        }
    }
}

/// Recordings without samples are nothing to add; of several errors, the first recording's is shown.
#[test]
fn some_of_several_recordings() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(all) = traced(folder.path()) else {
        return;
    };
    let folder = folder.path();
    let (traced, _) = &all[0];
    traced.record(Variant::PLAIN, &folder.join("a.data"));
    succeed(
        folder,
        "perfconv convert --time 0,0.0000001 --allow-empty a.data -o idle.data && \
         head -c 60000 a.data > cut.data && echo no recording > no.data && echo none > other.data",
    );
    let both = succeed(
        folder,
        "perfconv export --to bolt --binary static a.data idle.data -o both && \
         perfconv export --to bolt --binary static a.data -o one",
    );
    assert!(
        both.stderr
            .contains("idle.data: the recording contains no samples"),
        "{}",
        both.stderr
    );
    assert_eq!(text(folder.join("both")), text(folder.join("one")));
    let cut = succeed(
        folder,
        "perfconv export --to bolt --binary static a.data cut.data -o with-cut",
    );
    assert!(cut.stderr.contains("cut.data: "), "{}", cut.stderr);
    for jobs in [1, 4] {
        let command = format!(
            "perfconv export --to bolt --jobs {jobs} a.data no.data other.data a.data -o x"
        );
        let output = in_shell(folder, &command);
        assert!(
            !output.success() && output.stderr.contains("no.data"),
            "{}",
            output.stderr
        );
        assert!(!folder.join("x").exists());
        let output = in_shell(folder, &command.replace("a.data no.data", "no.data a.data"));
        assert!(output.stderr.contains("no.data"), "{}", output.stderr);
    }
}

#[test]
fn what_has_no_profile_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let fixture = perfdata_tests::recordings::fixture("6.1-x86_64-file-g").path;
    fs::copy(fixture, folder.join("in.data")).expect("a fixture");
    for (options, expected) in [
        (
            "--to llvm-profgen",
            "contains no branch records: record with perf record -b",
        ),
        ("--to bolt --binary nowhere", "nowhere: "),
        ("--to bolt --binary in.data", "in.data: not an ELF file"),
        (
            "--to bolt --binary 0123456789abcdef0123456789abcdef01234567",
            "no samples of build ID 0123",
        ),
        (
            "--to folded --binary x",
            "'--binary' needs a profile for compilers, such as --to bolt",
        ),
        (
            "--to folded --jobs 2",
            "'--jobs' needs --append-to, or a profile for compilers, such as --to bolt",
        ),
    ] {
        let output = in_shell(folder, &format!("perfconv export {options} in.data -o out"));
        assert!(
            !output.success() && output.stderr.contains(expected),
            "{options}: {}",
            output.stderr
        );
        assert!(!folder.join("out").exists(), "{options}");
    }
}

/// The table of a trace has the branches of the samples that `perf inject` makes of it.
#[test]
fn tables_of_traces_are_those_of_perf() {
    let bolt = format!("{LLVM}/perf2bolt");
    if !are_here(&["perf", &bolt]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    traces::made(folder);
    for letters in ["i100il", "i1000il16"] {
        succeed(
            folder,
            &format!("perf inject -f --itrace={letters} -i trace.data -o injected.data"),
        );
        let export = |input: &str| {
            let command = format!(
                "perfconv export --to bolt --unverified --binary program {input} -o - --force"
            );
            succeed(folder, &command).stdout
        };
        let (own, of_perf) = (
            export(&format!("trace.data --itrace={letters}")),
            export("injected.data"),
        );
        assert!(own.lines().count() > 10, "{letters}: {own}");
        assert_eq!(own, of_perf, "{letters}");
        fs::write(folder.join("table"), own).expect("a file");
        succeed(
            folder,
            &format!(
                "{bolt} -p injected.data --ignore-build-id -o a.fdata program > out 2>&1 && \
                 {bolt} --pa -p table -o b.fdata program > out 2>&1"
            ),
        );
        let (a, b) = (text(folder.join("a.fdata")), text(folder.join("b.fdata")));
        assert!(a.lines().count() > 10, "{letters}: {a}");
        assert_eq!(sorted(&a), sorted(&b), "{letters}");
    }
}

/// Returns whether all programs are here. If not, what is missing is noted.
fn are_here(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let is_here = Command::new(program).arg("--help").output().is_ok();
        if !is_here {
            skipped::note(program);
        }
        is_here
    })
}
