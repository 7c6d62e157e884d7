//! Programs that BOLT and compilers optimise with the profiles.

use perfdata_tests::convert::in_shell;
use perfdata_tests::skipped;

use super::made::{Traced, Variant};
use super::{LLVM, are_here, prepare, step, succeed, text, traced};

/// llvm-bolt moves the code of programs by their profiles, and they do the same as before.
#[test]
fn rewritten_programs_run() {
    let (bolt, rewriter) = (format!("{LLVM}/perf2bolt"), format!("{LLVM}/llvm-bolt"));
    if !are_here(&[&bolt, &rewriter]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(all) = traced(folder.path()) else {
        return;
    };
    let folder = folder.path();
    for (traced, objects) in &all {
        let &[object] = *objects else { continue };
        traced.record(Variant::PLAIN, &folder.join("in.data"));
        succeed(
            folder,
            &format!(
                "perfconv export --to bolt --binary {object} in.data -o table --force && \
                 {bolt} --pa -p table -o fdata {object} > said 2>&1 && \
                 {rewriter} {object} -o {object}.moved -data fdata --reorder-blocks=ext-tsp \
                     --reorder-functions=hfsort > said 2>&1"
            ),
        );
        let said = text(folder.join("said"));
        assert!(said.contains("have non-empty execution profile"), "{said}");
        let status = |program: &str| in_shell(folder, &format!("./{program}; echo $?")).stdout;
        let moved = status(&format!("{object}.moved"));
        assert_eq!(moved, status(object), "{object}: {said}");
    }
}

/// What compiles a program that calls a function often: a name for messages, the source, and the
/// command, to which an option with a profile and `-o` are added.
const COMPILERS: [(&str, &str, &str, &str); 2] = [
    (
        "clang",
        "hot.c",
        "clang -fdebug-info-for-profiling -gdwarf-4 -O2 -nostdlib -static -fno-pie \
         -fno-stack-protector -Wl,--build-id hot.c",
        "-fprofile-sample-use=",
    ),
    (
        "rustc",
        "hot.rs",
        "rustc +nightly -Zdebug-info-for-profiling -g -O -C dwarf-version=4 \
         -C target-feature=+crt-static -C link-arg=-Wl,--build-id hot.rs",
        "-Zprofile-sample-use=",
    ),
];

/// Compilers make a function that is often called a part of its caller, as with the tool's own
/// profile.
#[test]
fn compilers_inline_what_is_hot() {
    let profgen = format!("{LLVM}/llvm-profgen");
    if !are_here(&["perf", "objdump", &profgen]) {
        return;
    }
    for (compiler, source, command, option) in COMPILERS {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        if !prepare(folder, &[source]) {
            return;
        }
        if !in_shell(folder, &format!("{command} -o hot")).success() {
            skipped::note(format_args!("what builds a program: {command}"));
            continue;
        }
        if !step(folder, "hot", u32::MAX) {
            skipped::note("ptrace");
            return;
        }
        Traced::read(folder, "hot").record(Variant::PLAIN, &folder.join("in.data"));
        let profile = "--format=text --binary hot > said 2>&1";
        succeed(
            folder,
            &format!(
                "{profgen} --perfdata in.data --output tool.prof {profile} && \
                 perfconv export --to llvm-profgen --binary hot in.data -o table && \
                 {profgen} --unsymbolized-profile table --output own.prof {profile} && \
                 {command} {option}tool.prof -o tool && {command} {option}own.prof -o own"
            ),
        );
        let code = |program: &str| {
            let command = format!("objdump -d --disassemble=often --no-addresses {program}");
            succeed(folder, &command).stdout.replace(program, "")
        };
        let calls = |program: &str| code(program).matches("call").count();
        assert!(calls("hot") > 0, "{compiler}: {}", code("hot"));
        assert_eq!(calls("own"), 0, "{compiler}: {}", code("own"));
        assert_eq!(code("own"), code("tool"), "{compiler}");
        let status = |program: &str| in_shell(folder, &format!("./{program}; echo $?")).stdout;
        assert_eq!(status("own"), status("hot"), "{compiler}");
    }
}

/// Go's compiler takes a profile for pprof.
#[test]
fn go_inlines_what_is_hot() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !are_here(&["perf", "objdump"]) || !prepare(folder, &["hot.go"]) {
        return;
    }
    let go = "GOCACHE=$PWD/cache GO111MODULE=off GOTOOLCHAIN=local go build";
    if !in_shell(folder, &format!("{go} -pgo=off -o hot hot.go")).success() {
        skipped::note("Go 1.21 or newer");
        return;
    }
    let record = "perf record -q -e cpu-clock -F 999 --call-graph dwarf,1024 -o in.data ./hot";
    if !in_shell(folder, record).success() {
        skipped::note("the permission to record");
        return;
    }
    succeed(
        folder,
        &format!(
            "perfconv export --lines --inlines in.data -o profile --to pprof && \
             {go} -pgo=profile -o own hot.go"
        ),
    );
    let calls = |program: &str| {
        let command = format!("objdump -d --disassemble=main.often {program}");
        succeed(folder, &command)
            .stdout
            .matches("<main.mix>")
            .count()
    };
    assert_eq!((calls("hot"), calls("own")), (1, 0));
    assert_eq!(
        in_shell(folder, "./own").stdout,
        in_shell(folder, "./hot").stdout
    );
}
