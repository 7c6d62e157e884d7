//! What BOLT reads since LLVM 21: traces of Arm SPE, and tables of samples without branches.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::synth::arm_spe::Recipe;
use perfdata_tests::{perf, skipped};

use super::made::Variant;
use super::readers::sorted;
use super::{succeed, text, traced};

const PERF2BOLT: &str = "perf2bolt-21";

/// perf reads SPE as branches since 6.14.
const PERF: &str = "perf-7.2";

/// Returns the command of perf2bolt, which finds perf in `folder`; `None` if it is not here.
fn perf2bolt(folder: &Path) -> Option<String> {
    let programs = (perf::program(PERF2BOLT), perf::program(PERF));
    let (Some(perf2bolt), Some(perf)) = programs else {
        skipped::note(format_args!(
            "{PERF2BOLT} and {PERF}, on the PATH or in $PERF_ORACLES/bin"
        ));
        return None;
    };
    fs::create_dir(folder.join("bin")).expect("a folder");
    symlink(perf, folder.join("bin/perf")).expect("a link");
    Some(format!("PATH=$PWD/bin:$PATH {}", perf2bolt.display()))
}

/// Compares the profile of a recording with that of the table. `options` are those of perf2bolt
/// for both, `own` those of perfconv. Returns the number of lines.
fn compare(folder: &Path, perf2bolt: &str, options: [&str; 2], object: &str, own: &str) -> usize {
    let [recorded, table] = options;
    let output = succeed(
        folder,
        &format!(
            "{perf2bolt} {recorded} -p in.data --ignore-build-id -o a.fdata {object} > out 2>&1 && \
             perfconv export --to bolt {own} --binary {object} in.data -o table --force && \
             {perf2bolt} --pa {table} -p table -o b.fdata {object} > out 2>&1"
        ),
    );
    let is_told = output.stderr.contains("perf2bolt --pa --nl");
    assert_eq!(is_told, table == "--nl", "{}", output.stderr);
    let written = |name: &str| text(folder.join(name));
    // It takes the name of the event from the text of perf script, with the colon after it.
    let (a, b) = (written("a.fdata").replace(":\n", "\n"), written("b.fdata"));
    assert_eq!(sorted(&a), sorted(&b), "{object}");
    a.lines().count()
}

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
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let Some(perf2bolt) = perf2bolt(folder).filter(|_| build(folder)) else {
        return;
    };
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
        let lines = compare(folder, &perf2bolt, ["--spe", ""], "program", "--unverified");
        assert!(lines > 3, "{recipe:?}");
    }
}

#[test]
fn perf2bolt_makes_the_same_profile_of_samples_without_branches() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let Some(perf2bolt) = perf2bolt(folder) else {
        return;
    };
    let Some(all) = traced(folder) else {
        return;
    };
    for (traced, objects) in all {
        traced.record(Variant::ALL[1].1, &folder.join("all.data"));
        succeed(
            folder,
            "perfconv convert --event cpu-clock all.data -o in.data --force",
        );
        // Where a program is sampled depends on the processor: the loader takes more steps on some.
        let mut lines = 0;
        for object in objects {
            lines += compare(folder, &perf2bolt, ["--nl", "--nl"], object, "");
        }
        assert!(lines > 3, "{}", traced.name);
    }
}
