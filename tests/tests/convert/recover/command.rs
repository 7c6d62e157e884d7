//! The command, and what others say of it.

use std::fs;
use std::path::Path;

use perfdata_tests::convert::perfconv;
use perfdata_tests::recordings::fixture;

use super::{items, run};

#[test]
fn the_command() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let whole = fs::read(&fixture("6.12-x86_64-file-tid").path).expect("the fixture is there");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).expect("it can be written")
    };
    write("early", &whole[..100]);
    let (status, said) = run(&["recover", "early", "-o", "out"], folder.path());
    assert_eq!(status, Some(1));
    assert!(said.contains("nothing can be recovered: "), "{said}");
    assert!(!folder.path().join("out").exists());

    let all = items(&whole);
    let mut damaged = whole.clone();
    let middle = &all[all.len() / 2];
    damaged[middle.start as usize + 6] = 3;
    damaged[middle.start as usize + 7] = 0;
    write("damaged", &damaged);
    let (status, said) = run(
        &["recover", "--strict", "damaged", "-o", "out"],
        folder.path(),
    );
    assert_eq!(status, Some(1));
    assert!(
        said.contains("there are intact records after corrupt bytes"),
        "{said}"
    );
    assert!(!folder.path().join("out").exists());
    let (status, said) = run(&["recover", "damaged", "-o", "out"], folder.path());
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains(&format!("skipped {:#x} to {:#x}", middle.start, middle.end)),
        "{said}"
    );
    let (status, said) = run(&["recover", "damaged", "-o", "out"], folder.path());
    assert_eq!(status, Some(2), "{said}");
}

/// Commands that refuse a recording that was never finished suggest a solution.
#[test]
fn others_point_at_it() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let killed = fixture("7.2-x86_64-file-crashed").path;
    let (status, said) = run(
        &["--compress", killed.to_str().expect("a path"), "-o", "out"],
        folder.path(),
    );
    assert_eq!(status, Some(1));
    assert!(said.contains("try: perfconv recover"), "{said}");
}

/// One run creates a readable file, for any combination of repairs.
#[test]
fn what_is_recovered_can_be_converted_at_once() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let whole = fs::read(fixture("7.2-x86_64-pipe-default").path).expect("a fixture");
    let (cut, step) = (
        folder.path().join("cut.data"),
        folder.path().join("step.data"),
    );
    fs::write(&cut, &whole[..whole.len() - 30]).expect("a temporary file");
    let run = |args: &[&str]| {
        let output = perfconv()
            .current_dir(&folder)
            .args(args)
            .output()
            .expect("perfconv runs");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    run(&["recover", "cut.data", "-o", "step.data"]);
    assert!(step.exists());
    for options in [
        &["--to", "file"] as &[&str],
        &["--swap-endian"],
        &["--compress"],
        &["--compat", "6.1", "--to", "file"],
        &["--drop", "HOSTNAME", "--set", "CPUDESC=none"],
        &["--to", "dir"],
    ] {
        run(&[options, &["step.data", "-o", "two.data"]].concat());
        let said = run(&[&["recover"], options, &["cut.data", "-o", "one.data"]].concat());
        assert!(said.contains("warning: skipped 0x"), "{options:?}: {said}");
        let (one, two) = (
            folder.path().join("one.data"),
            folder.path().join("two.data"),
        );
        let read = |path: &Path| {
            fs::read(if path.is_dir() {
                path.join("data")
            } else {
                path.to_owned()
            })
        };
        assert!(
            read(&one).expect("an output") == read(&two).expect("an output"),
            "{options:?}"
        );
        for path in [one, two] {
            if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }
            .expect("it is there");
        }
    }
    let output = perfconv()
        .current_dir(&folder)
        .args(["recover", "--set", "NOBODY=1", "cut.data", "-o", "x"])
        .output();
    assert_eq!(output.expect("perfconv runs").status.code(), Some(2));
    assert!(!folder.path().join("x").exists());
}

/// `verify` and `recover` report the same about the end of a recording.
#[test]
fn a_cut_is_told_in_the_same_words() {
    let input = fixture("7.2-x86_64-pipe-cut").path;
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let output = folder.path().join("out.data");
    let text = |command: &mut std::process::Command| {
        let output = command.output().expect("perfconv runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let verified = text(perfconv().arg("verify").arg(&input));
    let recovered = text(perfconv().arg("recover").arg(&input).arg("-o").arg(&output));
    let said =
        "SAMPLE record: 88 bytes needed, 19 available: the recording ends inside this record";
    assert!(verified.contains(&format!("0x4e18: {said}")), "{verified}");
    assert!(
        recovered.contains(&format!("skipped 0x4e18 to 0x4e2b (19 bytes): {said}")),
        "{recovered}"
    );
    assert!(
        verified.ends_with("1 error, 0 warnings, 0 notes\n"),
        "{verified}"
    );
}
