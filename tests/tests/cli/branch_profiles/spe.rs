//! Branches of Arm SPE: perf2bolt makes the same profile of the table as of the trace.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::synth::arm_spe::Recipe;
use perfdata_tests::{perf, skipped};

use super::readers::sorted;
use super::{succeed, text};

/// What reads SPE: BOLT since LLVM 21, with perf since 6.14.
const PERF2BOLT: &str = "perf2bolt-21";
const PERF: &str = "perf-7.2";

/// Builds a program at the addresses of [`Recipe`]. Returns whether that is possible here.
fn build(folder: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/branch_profiles/aarch64.S");
    fs::copy(source, folder.join("aarch64.S")).expect("a source");
    let is_built = in_shell(
        folder,
        "clang --target=aarch64-linux-gnu -c aarch64.S -o aarch64.o && \
         $(rustc --print target-libdir)/../bin/rust-lld -flavor gnu --image-base=0x400000 \
             --no-rosegment -z noseparate-code aarch64.o -o program",
    )
    .success();
    if !is_built {
        skipped::note("clang with AArch64, and rust-lld");
    }
    is_built
}

#[test]
fn perf2bolt_makes_the_same_profile_of_spe() {
    let programs = (perf::program(PERF2BOLT), perf::program(PERF));
    let (Some(perf2bolt), Some(perf)) = programs else {
        skipped::note(format_args!(
            "{PERF2BOLT} and {PERF}, on the PATH or in $PERF_ORACLES/bin"
        ));
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    if !build(folder) {
        return;
    }
    fs::create_dir(folder.join("bin")).expect("a folder");
    symlink(perf, folder.join("bin/perf")).expect("a link");
    let usual = Recipe {
        records: 8000,
        ..Recipe::USUAL
    };
    for recipe in [
        usual,
        Recipe {
            is_v2: false,
            has_calls: true,
            ..usual
        },
        Recipe {
            has_contexts: false,
            seed: 2,
            ..usual
        },
    ] {
        fs::write(folder.join("in.data"), recipe.file().bytes()).expect("a file");
        let perf2bolt = perf2bolt.display();
        succeed(
            folder,
            &format!(
                "PATH=$PWD/bin:$PATH {perf2bolt} --spe -p in.data --ignore-build-id -o a.fdata program \
                     > out 2>&1 && \
                 perfconv export --to bolt --unverified --binary program in.data -o table --force && \
                 {perf2bolt} --pa -p table -o b.fdata program > out 2>&1"
            ),
        );
        let (a, b) = (text(folder.join("a.fdata")), text(folder.join("b.fdata")));
        assert!(a.lines().count() > 1000, "{recipe:?}: {a}");
        assert_eq!(sorted(&a), sorted(&b), "{recipe:?}");
    }
}
