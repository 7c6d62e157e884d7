//! Programs that BOLT and clang optimise with the profiles.

use std::fs;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::skipped;

use super::made::{Traced, Variant};
use super::{LLVM, are_here, step, succeed, text, traced};

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

/// clang makes a function that is often called a part of its caller, as with the tool's own profile.
#[test]
fn clang_inlines_what_is_hot() {
    let profgen = format!("{LLVM}/llvm-profgen");
    if !cfg!(target_arch = "x86_64") || !are_here(&["perf", "clang", "objdump", &profgen]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/branch_profiles");
    for name in ["step.c", "hot.c"] {
        fs::copy(sources.join(name), folder.join(name)).expect("a source");
    }
    let flags =
        "-gdwarf-4 -O2 -nostdlib -static -fno-pie -fno-stack-protector -Wl,--build-id hot.c";
    let built = in_shell(
        folder,
        &format!("cc -O2 step.c -o step && clang -fdebug-info-for-profiling {flags} -o hot"),
    );
    if !built.success() {
        skipped::note("compilers that link programs without their library");
        return;
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
             clang {flags} -fprofile-sample-use=tool.prof -o tool && \
             clang {flags} -fprofile-sample-use=own.prof -o own"
        ),
    );
    let code = |program: &str| {
        let command = format!("objdump -d --disassemble=often {program}");
        succeed(folder, &command).stdout.replace(program, "")
    };
    assert!(code("hot").contains("call"), "{}", code("hot"));
    assert!(!code("own").contains("call"), "{}", code("own"));
    assert_eq!(code("own"), code("tool"));
    let status = |program: &str| in_shell(folder, &format!("./{program}; echo $?")).stdout;
    assert_eq!(status("own"), status("hot"));
}
