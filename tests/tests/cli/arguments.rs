//! Arguments that users of perf or zstd type: perfconv accepts them, or its error shows the correct
//! command.

use std::{fs, os::unix::fs::symlink, path::Path};

use perfdata_tests::{convert, perf::Output, recordings};

/// Returns a folder with a file `a.data`, a stream `p.data` and a truncated file `cut.data`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, fixture) in [
        ("a.data", "6.1-x86_64-file-default"),
        ("p.data", "6.1-x86_64-pipe-default"),
        ("cut.data", "7.2-x86_64-pipe-cut"),
    ] {
        symlink(recordings::fixture(fixture).path, folder.path().join(name))
            .expect("a link can be made");
    }
    folder
}

fn status(output: &Output) -> Option<i32> {
    output.status.and_then(|status| status.code())
}

/// Returns the output of `commands`, which must succeed.
fn printed(folder: &Path, commands: &str) -> String {
    let output = convert::in_shell(folder, commands);
    assert_eq!(status(&output), Some(0), "{commands}: {}", output.stderr);
    output.stdout
}

/// Returns the error for an invalid command line.
fn refused(folder: &Path, commands: &str) -> String {
    let output = convert::in_shell(folder, commands);
    assert_eq!(
        (status(&output), output.stdout.as_str()),
        (Some(2), ""),
        "{commands}: {}",
        output.stderr
    );
    output.stderr
}

/// Runs `commands` on a terminal, and returns the exit status and the output.
fn on_a_terminal(folder: &Path, commands: &str) -> Option<(Option<i32>, String)> {
    let inner = format!("cd {} && {commands}", folder.display());
    let quoted = format!("'{}'", inner.replace('\'', r"'\''"));
    let output = convert::in_shell(
        folder,
        &format!("script --quiet --return --command {quoted} /dev/null"),
    );
    if output.stderr.contains("command not found") {
        eprintln!("skipped: no script, which makes a terminal");
        return None;
    }
    Some((
        status(&output),
        anstream::adapter::strip_str(&output.stdout)
            .to_string()
            .replace('\r', ""),
    ))
}

#[test]
fn an_input_may_be_named_by_an_option() {
    let folder = folder();
    let said = |commands: &str| printed(folder.path(), commands);
    for command in ["info", "dump --limit 3", "verify"] {
        let by_place = said(&format!("perfconv {command} a.data"));
        for option in ["-i a.data", "-ia.data", "--input a.data", "--input=a.data"] {
            assert_eq!(
                said(&format!("perfconv {command} {option}")),
                by_place,
                "{command} {option}"
            );
        }
    }
    assert_eq!(said("perfconv -i a.data"), said("perfconv a.data"));
    for command in ["", "convert", "pipe2file", "file2pipe", "recover", "inject"] {
        let input = if command == "pipe2file" {
            "p.data"
        } else {
            "a.data"
        };
        said(&format!(
            "perfconv {command} -q {input} -o x.data; perfconv {command} -q -i {input} -o y.data; cmp x.data y.data; rm x.data y.data"
        ));
    }
    said("perfconv inject -q -b a.data -o x.data && rm x.data");
    let both = refused(folder.path(), "perfconv info a.data -i p.data");
    assert!(both.contains("cannot be used with"), "{both}");
}

/// Scripts repeat options of perf inject: the last one counts.
#[test]
fn options_of_inject_may_be_repeated() {
    let folder = folder();
    let said = printed(
        folder.path(),
        "perfconv inject -q -f -b a.data -o expected.data && \
         perfconv inject -q -f -f -b -b --force -o no.data -i a.data -o x.data && \
         cmp expected.data x.data && ls",
    );
    assert!(!said.contains("no.data"), "{said}");
    let twice = refused(folder.path(), "perfconv inject -i a.data -i p.data -i");
    assert!(twice.contains("a value is required"), "{twice}");
}

/// The forms of options that perf's parser accepts: abbreviations, `=` or a word, several short
/// ones together, negations. Each with the same in full.
#[test]
fn options_of_inject_may_have_the_forms_of_perf() {
    let folder = folder();
    let all = "--buildid-all";
    for (short, full) in [
        ("--buildid-a -i a.data", all),
        ("--buildid --buildid-al --in a.data", all),
        ("--buildid --inp=a.data --unwi libdw,libunwind --f", all),
        ("-b --no-build-ids --buildid -ia.data", all),
        ("-fi a.data --buildid --no-fo --no-ka --no-vml", all),
        ("--buildid -i- < a.data", all),
        ("--threads 1 --buildid --sysr / --inp a.data", all),
        ("-b --no-build-i -i a.data", ""),
        (
            "--buildid --no-buildi -bB --no-mmap2-buildids -i a.data",
            "-b",
        ),
        (
            "--conv --no-conv --j --no-j --a --no-a --sc --no-sc -i a.data",
            "",
        ),
        (
            "--itr=b --strip --no-itrace --no-strip -i a.data",
            "--no-itrace",
        ),
        ("--vm-t --no-vm-t --guest-d=x --no-guest-d -i a.data", ""),
        (
            "--no-out --o y.data --max-de 64M --drop-s -i a.data",
            "--drop-stacks",
        ),
    ] {
        let commands = format!(
            "perfconv inject -q {full} -i a.data -o x.data && \
             perfconv inject -q -o y.data {short} && cmp x.data y.data && rm x.data y.data"
        );
        printed(folder.path(), &commands);
    }
    for (words, expected) in [
        ("--build", "it could be --build-ids or --buildid-all"),
        ("--no-bu", "it could be --no-build-ids or --no-buildid-all"),
        ("--s", "it could be --sched-stat or --strip"),
        ("--vm /", "it could be --vmlinux or --vm-time-correlation"),
        (
            "--jit-",
            "it could be --jit-dir, --jit-images, --jit-clock-offset or --jit-clock",
        ),
        ("--no", "is ambiguous: it could be --no-"),
        ("--no-itrace=x", "unexpected value 'x'"),
        ("--build-ids=1", "unexpected value '1'"),
        ("--buildids", "unexpected argument '--buildids'"),
        ("--no-no-jit", "unexpected argument '--no-no-jit'"),
    ] {
        let said = refused(folder.path(), &format!("perfconv inject -i a.data {words}"));
        assert!(said.contains(expected), "{words}: {said}");
    }
    // Other commands have options of their own.
    refused(folder.path(), "perfconv convert --drop-st a.data -o inject");
}

/// The default input is the same as perf's: standard input if it is a pipe, otherwise perf.data.
#[test]
fn without_an_input_it_is_that_of_perf() {
    let folder = folder();
    let none = refused(folder.path(), "perfconv verify");
    assert!(
        none.contains("no input: there is no perf.data in this folder"),
        "{none}"
    );
    refused(folder.path(), "perfconv");
    let of_a = printed(folder.path(), "perfconv info a.data");
    let of_p = printed(folder.path(), "perfconv info p.data | grep -v recorded:");
    symlink("a.data", folder.path().join("perf.data")).expect("a link can be made");
    assert_eq!(printed(folder.path(), "perfconv info"), of_a);
    assert!(printed(folder.path(), "perfconv").starts_with("perf.data: a recording"));
    assert_eq!(printed(folder.path(), "cat p.data | perfconv info"), of_p);
    assert_eq!(
        printed(folder.path(), "perfconv info < p.data | grep -v recorded:"),
        of_p
    );
    printed(folder.path(), "perfconv -q -o x.data && cmp x.data a.data");
    printed(
        folder.path(),
        "cat p.data | perfconv -q pipe2file -o y.data && perfconv verify y.data",
    );
    let Some((status, said)) = on_a_terminal(folder.path(), "perfconv verify") else {
        return;
    };
    assert_eq!(
        (status, said.as_str()),
        (Some(0), "243 records: 0 errors, 0 warnings, 0 notes\n")
    );
}

#[test]
fn a_second_name_is_not_taken_for_the_output() {
    let folder = folder();
    for (commands, what) in [
        ("perfconv a.data b.data", "there is no file 'b.data'"),
        (
            "perfconv --swap-endian a.data b.data",
            "unexpected 'b.data'",
        ),
        (
            "perfconv --swap-endian a.data p.data",
            "unexpected 'p.data'",
        ),
        (
            "perfconv convert a.data b.data",
            "unexpected argument 'b.data'",
        ),
        (
            "perfconv pipe2file p.data b.data",
            "unexpected argument 'b.data'",
        ),
        (
            "perfconv -q recover cut.data b.data",
            "unexpected argument 'b.data'",
        ),
    ] {
        let said = refused(folder.path(), commands);
        let name = if commands.ends_with("p.data") {
            "p.data"
        } else {
            "b.data"
        };
        assert!(
            said.contains(what) && said.contains(&format!("tip: '-o {name}' names the output")),
            "{commands}: {said}"
        );
    }
    let said = refused(
        folder.path(),
        "perfconv --swap-endian a.data p.data -o b.data",
    );
    assert!(
        said.contains("only one recording can be converted at a time") && !said.contains("tip"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 3);
}

#[test]
fn a_word_that_is_nothing_is_called_so() {
    let folder = folder();
    for commands in [
        "perfconv script",
        "perfconv script -i a.data",
        "perfconv -q script a.data",
        "perfconv script --header-only",
    ] {
        let said = refused(folder.path(), commands);
        assert!(
            said.starts_with("error: there is no command or file 'script'\n"),
            "{commands}: {said}"
        );
    }
    for commands in [
        "perfconv inof",
        "perfconv inof a.data",
        "perfconv inof --json a.data",
    ] {
        let said = refused(folder.path(), commands);
        assert!(
            said.starts_with("error: there is no command or file 'inof'\n\n  tip: a similar command exists: 'info'\n"),
            "{said}"
        );
    }
    // A name with an extension is interpreted as a file.
    let said = refused(folder.path(), "perfconv nowhere.data");
    assert_eq!(
        said,
        "perfconv: error: nowhere.data: No such file or directory (os error 2)\n"
    );
    symlink("a.data", folder.path().join("script")).expect("a link can be made");
    assert!(printed(folder.path(), "perfconv script").starts_with("script: a recording"));
}

#[test]
fn values_are_taken_as_others_write_them() {
    let folder = folder();
    let said = |commands: &str| printed(folder.path(), commands);
    said("perfconv -q --compress=7 a.data -o x.data");
    said("perfconv -q --compress 7 a.data -o y.data; cmp x.data y.data");
    said("perfconv -q a.data -o z.data --compress 7; cmp x.data z.data");
    let said = refused(folder.path(), "perfconv --compress 99 a.data -o w.data");
    assert!(said.contains("99 is not in 1..=22"), "{said}");
    // The argument may also be the name of a file.
    symlink("a.data", folder.path().join("5")).expect("a link can be made");
    for commands in [
        "perfconv --compress 5 -o w.data",
        "perfconv --compress 5 a.data -o w.data",
    ] {
        let said = refused(folder.path(), commands);
        assert!(
            said.contains("write '--compress=5' for the value, or './5' for the file"),
            "{said}"
        );
    }
    let said = |commands: &str| printed(folder.path(), commands);
    said(
        "perfconv -q --compress ./5 -o v.data; perfconv -q --compress a.data -o u.data; cmp u.data v.data",
    );
    said(
        "perfconv -q --build-ids all a.data -o b.data; perfconv -q --build-ids=all a.data -o c.data; cmp b.data c.data",
    );
    for (name, same) in [
        ("be", "big"),
        ("big-endian", "big"),
        ("le", "little"),
        ("little-endian", "little"),
    ] {
        said(&format!(
            "perfconv -q -f --endian {name} a.data -o d.data; perfconv -q -f --endian {same} a.data -o e.data; cmp d.data e.data"
        ));
    }
    said(
        "perfconv -q --compat v5.15 a.data -o f.data; perfconv -q --compat 5.15 a.data -o g.data; cmp f.data g.data",
    );
    let repeated = said("perfconv dump --type COMM --type mmap a.data");
    assert_eq!(said("perfconv dump --type COMM,mmap a.data"), repeated);
    assert!(
        repeated.contains(" COMM ")
            && repeated.contains(" MMAP ")
            && !repeated.contains(" SAMPLE "),
        "{repeated}"
    );
}

#[test]
fn standard_output_serves_where_it_is_redirected() {
    let folder = folder();
    let said = |commands: &str| printed(folder.path(), commands);
    said("perfconv -q convert a.data > x.data; cmp x.data a.data");
    said(
        "perfconv -q pipe2file p.data > f.data; perfconv -q pipe2file p.data -o g.data; cmp f.data g.data",
    );
    said("perfconv -q --swap-endian a.data | perfconv -q --swap-endian | cmp - a.data");
    said("perfconv -q recover a.data > r.data; cmp r.data a.data");
    let before = fs::read_dir(&folder).expect("the folder").count();
    let Some((status, said)) = on_a_terminal(folder.path(), "perfconv --swap-endian a.data") else {
        return;
    };
    let expected = "perfconv: error: no output: standard output is a terminal; use -o OUTPUT\n\
                    perfconv: try: perfconv --swap-endian a.data -o a.converted.data\n";
    assert_eq!((status, said.as_str()), (Some(2), expected));
    for command in ["convert", "pipe2file", "file2pipe", "recover"] {
        let (status, said) =
            on_a_terminal(folder.path(), &format!("perfconv {command} a.data")).expect("as before");
        assert!(
            status == Some(2) && said.contains("no output: standard output is a terminal"),
            "{command}: {said}"
        );
    }
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), before);
}

#[test]
fn several_inputs_are_looked_at_one_after_the_other() {
    let folder = folder();
    let run = |commands: &str| convert::in_shell(folder.path(), commands);
    let good = run("perfconv verify a.data p.data");
    let expected = "a.data: 243 records: 0 errors, 0 warnings, 0 notes\np.data: 260 records, 20 metadata records: 0 errors, 0 warnings, 0 notes\n";
    assert_eq!(
        (status(&good), good.stdout.as_str(), good.stderr.as_str()),
        (Some(0), expected, "")
    );
    let damaged = run("perfconv verify a.data cut.data p.data");
    assert_eq!(status(&damaged), Some(1));
    assert!(damaged.stdout.lines().all(|line| {
        ["a.data: ", "cut.data: ", "p.data: "]
            .iter()
            .any(|name| line.starts_with(name))
    }));
    let missing = run("perfconv verify cut.data nowhere.data a.data");
    assert_eq!(status(&missing), Some(2));
    assert_eq!(
        missing.stderr,
        "perfconv: error: nowhere.data: No such file or directory (os error 2)\n"
    );
    assert!(
        missing
            .stdout
            .ends_with("\na.data: 243 records: 0 errors, 0 warnings, 0 notes\n"),
        "{}",
        missing.stdout
    );
    let text = run("echo no recording > text.data; perfconv info a.data text.data p.data");
    assert_eq!(status(&text), Some(1));
    assert!(
        text.stdout.starts_with("a.data:\nfile, ") && text.stdout.contains("\n\np.data:\npipe, "),
        "{}",
        text.stdout
    );
    assert!(
        text.stderr.contains("error: text.data: ")
            && text.stderr.contains("note: text.data is text"),
        "{}",
        text.stderr
    );
    let about = printed(folder.path(), "perfconv a.data -q; perfconv a.data p.data");
    assert!(
        about.contains("a.data: a recording") && about.contains("p.data: a recording"),
        "{about}"
    );

    let json = printed(
        folder.path(),
        "perfconv info --json -i a.data -i p.data; perfconv verify --json a.data p.data",
    );
    let objects: Vec<serde_json::Value> = serde_json::Deserializer::from_str(&json)
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("JSON");
    let files: Vec<_> = objects
        .iter()
        .map(|object| object["file"].as_str())
        .collect();
    assert_eq!(
        files,
        [
            Some("a.data"),
            Some("p.data"),
            Some("a.data"),
            Some("p.data")
        ]
    );
    let said = refused(folder.path(), "perfconv info --html x.html a.data p.data");
    assert!(said.contains("--html accepts only one recording"), "{said}");
}
