//! Traces in AUX data: every command that reads samples makes them of traces.

use std::fs;
use std::path::Path;

use perfdata_tests::convert::{in_shell, perfconv};
use perfdata_tests::perf::{self, Output};
use perfdata_tests::traces::encoder::Features;
use perfdata_tests::traces::flow::FlowRecipe;

/// Makes `trace.data` and the traced program in a folder.
pub(crate) fn made(folder: &Path) {
    let usual = FlowRecipe::USUAL;
    let recipe = FlowRecipe {
        seed: 4,
        features: Features {
            tsc: true,
            mtc: true,
            cyc: true,
            ..usual.features
        },
        instructions: 200_000,
        ..usual
    };
    let program = folder.join("program");
    let recording = recipe.make(&program);
    fs::write(&program, recording.program.object()).expect("a file");
    fs::write(folder.join("trace.data"), recording.file.bytes()).expect("a file");
}

fn tried(folder: &Path, arguments: &str) -> Output {
    let mut command = perfconv();
    command.current_dir(folder).args(arguments.split(' '));
    perf::run(command).expect("it starts")
}

fn run(folder: &Path, arguments: &str) -> Output {
    let said = tried(folder, arguments);
    assert!(said.success(), "{arguments}: {}", said.stderr);
    said
}

/// Each format has the samples that `inject` makes first.
#[test]
fn exports_are_those_of_injected_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    made(folder);
    for (letters, format) in [
        ("i100ig", "folded"),
        ("i100ig", "perf-script"),
        ("r", "perf-script"),
        ("i1000il", "bolt"),
        ("i500ig", "speedscope"),
    ] {
        run(
            folder,
            &format!("inject --itrace={letters} --unverified -i trace.data -o injected.data"),
        );
        let two = run(
            folder,
            &format!("export injected.data --unverified --to {format} -o -"),
        );
        let one = run(
            folder,
            &format!("export trace.data --itrace={letters} --unverified --to {format} -o -"),
        );
        let name = |text: &str| text.replace("injected.data", "trace.data");
        assert!(two.stdout.len() > 20, "{letters}, {format}");
        assert_eq!(one.stdout, name(&two.stdout), "{letters}, {format}");
        fs::remove_file(folder.join("injected.data")).expect("a file");
    }
}

/// Without options, traces are decoded: of a file and of a stream.
#[test]
fn traces_are_decoded_by_default() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    made(folder);
    let folded = run(folder, "export trace.data --unverified --to folded -o -");
    let lines: Vec<&str> = folded.stdout.lines().collect();
    assert!(
        lines.iter().any(|line| line.matches(';').count() > 1),
        "{}",
        folded.stdout
    );
    let profile = run(folder, "export trace.data --unverified --to bolt -o -");
    assert!(profile.stdout.lines().count() > 10, "{}", profile.stdout);

    run(folder, "convert trace.data --to pipe -o trace.pipe");
    let said = in_shell(
        folder,
        "cat trace.pipe | perfconv export - --unverified --to folded -o -",
    );
    assert_eq!(said.stdout, folded.stdout, "{}", said.stderr);

    let without = tried(folder, "export trace.data --no-itrace --to folded -o -");
    assert!(
        without.stderr.contains("contains no samples"),
        "{without:?}"
    );
    let elsewhere = tried(folder, "export trace.data --sysroot . --to folded -o -");
    assert!(
        elsewhere.stderr.contains("program was not found: "),
        "{elsewhere:?}"
    );
    // Nothing to decode.
    let mut plain = perfconv();
    plain.args(["export", "--itrace", "--to", "folded", "-o", "-"]);
    plain.arg(perfdata_tests::recordings::fixture("6.1-i386-file-g").path);
    let said = perf::run(plain).expect("it starts");
    assert!(
        said.success() && said.stderr.contains("no AUX data"),
        "{}",
        said.stderr
    );
}

/// Conditions apply to the samples that are made.
#[test]
fn made_samples_are_selected() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    made(folder);
    let all = "--itrace=i100ib --unverified";
    run(
        folder,
        &format!("convert trace.data {all} -o injected.data"),
    );
    for select in ["--event branches:uh", "--event instructions:uh --pid 1000"] {
        run(
            folder,
            &format!("convert injected.data {select} -o two.data"),
        );
        run(
            folder,
            &format!("convert trace.data {all} {select} -o one.data"),
        );
        let text = |name: &str| run(folder, &format!("dump {name} --json")).stdout;
        let (one, two) = (text("one.data"), text("two.data"));
        assert!(one.lines().count() > 20, "{select}");
        assert_eq!(one, two, "{select}");
        let exported = |options: &str| {
            run(
                folder,
                &format!("export {options} {select} --unverified --to folded -o -"),
            )
        };
        assert_eq!(
            exported("injected.data").stdout,
            exported("trace.data --itrace=i100ib").stdout,
            "{select}"
        );
        fs::remove_file(folder.join("one.data")).expect("a file");
        fs::remove_file(folder.join("two.data")).expect("a file");
    }
    let split = tried(
        folder,
        "split trace.data --by thread --itrace=b --unverified -o parts",
    );
    assert_eq!(
        split.status.and_then(|status| status.code()),
        Some(2),
        "{split:?}"
    );
}

/// `convert` writes what `inject` writes; build IDs of what samples hit, also into a pipe.
#[test]
fn conversions_are_those_of_inject() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    made(folder);
    let letters = "--itrace=i100ibg --unverified";
    run(
        folder,
        &format!("inject {letters} -i trace.data -o inject.data"),
    );
    run(
        folder,
        &format!("convert {letters} trace.data -o convert.data"),
    );
    let bytes = |name: &str| fs::read(folder.join(name)).expect("a file");
    assert_eq!(bytes("inject.data"), bytes("convert.data"));
    run(
        folder,
        &format!("convert {letters} --strip --sort --build-ids trace.data --to pipe -o all.pipe"),
    );
    run(
        folder,
        &format!("inject {letters} --strip -b -i trace.data -o hit.data"),
    );
    let counted = |name: &str| {
        run(
            folder,
            &format!("export {name} --unverified --to folded -o -"),
        )
    };
    assert_eq!(counted("all.pipe").stdout, counted("hit.data").stdout);
}
