//! Recordings with their objects in one file.

use std::fs;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::recordings::fixtures_dir;
use perfdata_tests::traces::flow::FlowRecipe;

fn run(folder: &Path, command: &str) -> String {
    let done = in_shell(folder, command);
    assert!(done.success(), "{command}: {}", done.stderr);
    done.stderr
}

/// Returns a folder with the bundle of a recording of another machine.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = fixtures_dir().join("6.1-x86_64-file-g.data");
    fs::copy(recording, folder.path().join("in.data")).expect("a copy");
    run(folder.path(), "perfconv bundle in.data -o in.bundle");
    folder
}

#[test]
fn a_bundle_is_read_like_its_recording() {
    let folder = folder();
    let folder = folder.path();
    let missing = run(folder, "perfconv bundle in.data -o - > other.bundle");
    assert!(missing.contains("is not in the bundle: "), "{missing}");
    run(folder, "perfconv diff in.data in.bundle");
    run(folder, "perfconv verify in.bundle");
    run(
        folder,
        "perfconv in.bundle -o out.data && cmp in.data out.data",
    );
    run(
        folder,
        "perfconv convert - -o piped.data < in.bundle && cmp in.data piped.data",
    );
    run(
        folder,
        "perfconv unbundle in.bundle -o un && cmp in.data un/perf.data",
    );
    for input in ["in.data", "in.bundle"] {
        run(
            folder,
            &format!("perfconv export {input} -o {input}.folded"),
        );
    }
    run(folder, "cmp in.data.folded in.bundle.folded");
}

#[test]
fn a_truncated_bundle_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let whole = fs::read(folder.join("in.bundle")).expect("a bundle");
    for len in [100, 512, 700, whole.len() / 2, whole.len() - 1024] {
        fs::write(folder.join("cut"), &whole[..len]).expect("a file");
        let done = in_shell(folder, "perfconv info cut");
        assert_eq!(
            done.status.and_then(|status| status.code()),
            Some(1),
            "{len}: {}",
            done.stderr
        );
    }
    let done = in_shell(folder, "perfconv unbundle in.data -o un");
    assert_eq!(
        done.status.and_then(|status| status.code()),
        Some(1),
        "{}",
        done.stderr
    );
}

/// The recording in the bundle is the file that a conversion makes of the directory.
#[test]
fn a_directory_becomes_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for name in ["7.2-x86_64-file-threads", "6.1-x86_64-file-threads-z"] {
        let recording = fixtures_dir().join(format!("{name}.data"));
        let recording = recording.display();
        run(folder, &format!("perfconv {recording} -o in.data --force"));
        run(
            folder,
            &format!("perfconv bundle {recording} -o in.bundle --force"),
        );
        run(
            folder,
            "perfconv unbundle in.bundle -o un --force && cmp in.data un/perf.data",
        );
    }
}

/// Symbols of the kernel are those in the directory, also after it became a bundle.
#[test]
fn the_kernels_symbols_in_a_directory_are_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let recording = fixtures_dir().join("7.2-x86_64-file-threads.data");
    run(folder, &format!("cp -r {} in", recording.display()));
    let folded = |words: &str| {
        run(
            folder,
            &format!("perfconv export {words} -o out --to folded --force"),
        );
        fs::read_to_string(folder.join("out")).expect("a file")
    };
    assert!(!folded("in").contains("in_the_kernel"));
    let list = folder.join("in/kcore_dir");
    fs::create_dir(&list).expect("a folder");
    let symbols =
        "ffffffff98200000 T _text\nffffffff98200000 T in_the_kernel\nffffffff99a00000 T _etext\n";
    fs::write(list.join("kallsyms"), symbols).expect("a file");
    let named = folded("in");
    assert!(named.contains("in_the_kernel"), "{named}");
    let said = run(folder, "perfconv bundle in -o in.bundle");
    let note = "kcore_dir is not in the bundle, except for its list of symbols";
    assert!(said.contains(note), "{said}");
    assert_eq!(folded("in.bundle"), named);
    // An option names another list.
    fs::write(
        folder.join("other"),
        symbols.replace("in_the_kernel", "elsewhere"),
    )
    .expect("a file");
    assert!(!folded("in --kallsyms other").contains("in_the_kernel"));
}

/// The code that a trace ran through is in the bundle, so that it is decoded without the program.
#[test]
fn traces_are_decoded_from_the_bundle() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = folder.join("program");
    let recording = FlowRecipe::USUAL.make(&program);
    fs::write(&program, recording.program.object()).expect("a file");
    fs::write(folder.join("in.data"), recording.file.bytes()).expect("a file");
    let decoded = |input: &str, command: &str| {
        run(
            folder,
            &format!("perfconv {command} {input} -o out --force"),
        );
        fs::read(folder.join("out")).expect("a file")
    };
    let branches = "convert --itrace=be";
    let commands = [branches, "export --itrace=i100ig --to folded"];
    let before = commands.map(|command| decoded("in.data", command));
    let said = run(folder, "perfconv bundle in.data -o in.bundle");
    assert!(said.contains("perfconv: 1 file of objects, "), "{said}");
    fs::remove_file(&program).expect("a file");
    assert!(before == commands.map(|command| decoded("in.bundle", command)));
    assert!(before[0] != decoded("in.data", branches));
}
