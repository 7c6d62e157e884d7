//! The command: its options, and `perfconv inject`, which accepts the options of `perf inject`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::{Command, Output};

use perfdata_tests::convert::perfconv;
use perfdata_tests::perf;
use perfdata_tests::recordings::{fixture, fixtures_dir};
use tempfile::TempDir;

use super::{Table, row, table};

const ID: &str = "00112233445566778899aabbccddeeff00112233";
const WORKLOAD: &str = "/usr/local/bin/perf-workload";
const LINKED: &str = "/usr/local/bin/linked-workload";

/// Recordings without build IDs: a pipe in which the kernel is hit, and a file.
const PIPE: &str = "6.1-i386-bid-none-pipe";
const FILE: &str = "6.1-x86_64-bid-link-file";

fn run(command: &mut Command) -> Output {
    command.output().expect("perfconv runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns an empty root, so that the result does not depend on this machine.
fn root() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn inject_reads_and_writes_pipes() {
    let folder = root();
    let (input, output) = (fixture(PIPE).path, folder.path().join("out"));
    let mut command = perfconv();
    command
        .args([
            "inject",
            "-b",
            "--known-build-ids",
            &format!("{ID} {WORKLOAD}"),
            "--sysroot",
        ])
        .arg(folder.path());
    let status = command
        .stdin(File::open(input).unwrap())
        .stdout(File::create(&output).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read(&output).unwrap()[8], 16, "a pipe");
    assert_eq!(table(&output), Table::from([row(ID, WORKLOAD)]));
}

#[test]
fn inject_writes_files() {
    let folder = root();
    let output = folder.path().join("out");
    fs::write(&output, "perf inject writes over this").unwrap();
    let list = folder.path().join("list");
    fs::write(
        &list,
        format!(
            "                                         [vdso]\n{ID} {WORKLOAD}\n{ID} {LINKED}\n"
        ),
    )
    .unwrap();
    for (name, workload) in [(PIPE, WORKLOAD), (FILE, LINKED)] {
        for word in ["-b", "--build-ids", "--buildid-all"] {
            let mut command = perfconv();
            command
                .args(["inject", word, "-f", "-v", "-i"])
                .arg(fixture(name).path)
                .arg("-o")
                .arg(&output);
            command
                .arg(format!("--known-build-ids=file://{}", list.display()))
                .arg("--sysroot")
                .arg(folder.path());
            let done = run(&mut command);
            assert!(done.status.success(), "{}", said(&done));
            assert!(
                said(&done).contains("no build ID for /usr/lib/"),
                "{}",
                said(&done)
            );
            assert_eq!(table(&output), Table::from([row(ID, workload)]));
        }
    }
}

#[test]
fn inject_refuses_by_name_what_it_does_not_do() {
    let words = ["--guest-data=x", "--vm-time-correlation"];
    for word in words {
        let done = run(perfconv().args(["inject", "-b", word, "-i", "/dev/null"]));
        assert_eq!(done.status.code(), Some(2), "{word}");
        assert!(
            said(&done).contains("use perf inject"),
            "{word}: {}",
            said(&done)
        );
    }
}

/// Options that do not change the output are accepted, as perf accepts them. A file that perf needs
/// to read must exist.
#[test]
fn inject_accepts_options_without_effect() {
    let folder = root();
    let (input, symbols) = (fixture(FILE).path, folder.path().join("kallsyms"));
    let inject = |words: &[&str], output: &str| {
        let output = folder.path().join(output);
        let mut command = perfconv();
        command.args(["inject", "-b", "-f", "--sysroot"]);
        command.arg(folder.path()).args(words);
        let done = run(command.arg("-i").arg(&input).arg("-o").arg(&output));
        let bytes = fs::read(output).unwrap_or_default();
        (done.status.code(), said(&done), bytes)
    };
    let symbols = symbols.to_str().expect("text");
    let (plain, kallsyms) = (inject(&[], "a"), format!("--kallsyms={symbols}"));
    assert_eq!(plain.0, Some(0), "{}", plain.1);
    let (status, said, output) = inject(&[&kallsyms], "b");
    assert_eq!((status, output.len()), (Some(2), 0), "{said}");
    assert!(said.contains("No such file"), "{said}");
    fs::write(symbols, "").unwrap();
    for words in [
        &["--kallsyms", symbols][..],
        &[&kallsyms],
        &["--unwind-style=libdw,libunwind"],
        &["--unwind-style", "libdw"],
        &["--ignore-vmlinux"],
        &["--guestmount", folder.path().to_str().expect("text")],
    ] {
        let (status, said, output) = inject(words, "c");
        assert_eq!(status, Some(0), "{words:?}: {said}");
        assert!(output == plain.2, "{words:?}");
    }
    for words in [["--unwind-style", "gdb"], ["--guestmount", "/nowhere"]] {
        assert_eq!(inject(&words, "d").0, Some(2), "{words:?}");
    }
}

/// perfconv implements every option of any release of `perf inject`, or refuses it by name.
#[test]
fn no_word_of_perf_inject_is_unknown() {
    for perf in perf::all() {
        let mut command = perf.command();
        command.args(["inject", "-h"]);
        let help = perf::run(command).expect("perf runs");
        let text = help.stdout + &help.stderr;
        let options = text
            .lines()
            .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
        let options: BTreeSet<&str> = options
            .filter_map(|option| option.split(['=', '[']).next())
            .collect();
        assert!(options.len() > 10, "{}: {text}", perf.name);
        for option in options {
            // If an option is implemented, the error is about its value, or about the input.
            let done = run(perfconv().args(["inject", "-i", "/dev/null", &format!("{option}=x")]));
            let plain = run(perfconv().args(["inject", "-i", "/dev/null", option]));
            let is_known = |said: &str| !said.contains("unexpected argument");
            assert!(
                is_known(&said(&done)) || is_known(&said(&plain)),
                "{} {option}: {}",
                perf.name,
                said(&plain)
            );
        }
    }
}

#[test]
fn inject_knows_the_kernels_image() {
    let folder = root();
    let output = folder.path().join("out");
    let image = fixtures_dir().join("elf/big64");
    let mut command = perfconv();
    command
        .args(["inject", "-b", "-k"])
        .arg(&image)
        .arg("--sysroot")
        .arg(folder.path());
    let input = fixture(PIPE).path;
    let done = run(command.arg("-i").arg(input).arg("-o").arg(&output));
    assert!(done.status.success(), "{}", said(&done));
    let kernel = row(
        "7ffa45ad556b8a0980c129f67cf152a6cb20a19d",
        "[kernel.kallsyms]",
    );
    assert_eq!(table(&output), Table::from([kernel]));
}

#[test]
fn sources_without_build_ids_are_a_mistake() {
    let folder = root();
    let input = fixture(FILE).path;
    for option in ["--sysroot=/", "--known-build-ids=", "--vmlinux=x"] {
        let done = run(perfconv()
            .arg(&input)
            .arg("-o")
            .arg(folder.path().join("out"))
            .arg(option));
        assert_eq!(done.status.code(), Some(2), "{}", said(&done));
        assert!(said(&done).contains("--build-ids"), "{}", said(&done));
    }
    let bad = [
        "--build-ids=some",
        "--known-build-ids=xyz /bin/a",
        "--known-build-ids=file:///gone",
    ];
    for option in bad {
        let mut command = perfconv();
        command
            .arg(&input)
            .arg("-o")
            .arg(folder.path().join("out"))
            .arg(option);
        let done = run(if option.starts_with("--build") {
            &mut command
        } else {
            command.arg("--build-ids")
        });
        assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    }
}

#[test]
fn compressed_mappings_cannot_be_rewritten() {
    let folder = root();
    let output = folder.path().join("out");
    let input = fixture("6.1-x86_64-file-z").path;
    let convert = |more: &[&str]| {
        let mut command = perfconv();
        command
            .arg(&input)
            .arg("-fo")
            .arg(&output)
            .args(["--mmap2-build-ids", "--sysroot"])
            .arg(folder.path());
        run(command
            .args(["--known-build-ids", &format!("{ID} {WORKLOAD}")])
            .args(more))
    };
    let refused = convert(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("--decompress"),
        "{}",
        said(&refused)
    );
    assert!(!output.exists());
    assert!(convert(&["--decompress"]).status.success());
    assert!(
        fs::read(output)
            .unwrap()
            .windows(20)
            .any(|bytes| bytes[..3] == [0, 0x11, 0x22] && bytes[19] == 0x33)
    );
}
