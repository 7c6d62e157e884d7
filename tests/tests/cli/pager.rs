//! Long reports on a terminal are displayed by a pager, as in git.

use std::{os::unix::fs::symlink, path::Path, process::Command};

use perfdata_tests::{convert, perf, recordings, skipped};

/// Returns the output of `commands` on a terminal, and their exit status.
fn on_a_terminal(folder: &Path, commands: &str) -> Option<(Option<i32>, String)> {
    let program = convert::perfconv().get_program().to_owned();
    let bin = Path::new(&program)
        .parent()
        .expect("it is in a folder")
        .display()
        .to_string();
    let mut script = Command::new("script");
    script
        .args([
            "--quiet",
            "--return",
            "--command",
            &format!("PATH={bin}:$PATH; {commands}"),
            "/dev/null",
        ])
        .current_dir(folder)
        .env("SHELL", "/bin/bash")
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .env("LC_ALL", "C")
        .env_remove("PAGER")
        .env_remove("LESS");
    match perf::run(script) {
        Ok(output) => {
            let text = anstream::adapter::strip_str(&output.stdout)
                .to_string()
                .replace('\r', "");
            Some((output.status.and_then(|status| status.code()), text))
        }
        Err(error) => {
            skipped::note(format_args!("script, which makes a terminal: {error}"));
            None
        }
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, fixture) in [
        ("a.data", "6.1-x86_64-file-default"),
        ("cut.data", "7.2-x86_64-pipe-cut"),
    ] {
        symlink(recordings::fixture(fixture).path, folder.path().join(name))
            .expect("a link can be made");
    }
    folder
}

const COMMANDS: [(&str, i32); 5] = [
    ("info a.data", 0),
    ("dump --type COMM a.data", 0),
    ("verify a.data", 0),
    ("verify cut.data", 1),
    ("diff a.data cut.data", 1),
];

#[test]
fn reports_go_through_the_pager() {
    let folder = folder();
    let run = |commands: &str| on_a_terminal(folder.path(), commands);
    for (command, status) in COMMANDS {
        let Some((found, said)) = run(&format!("PAGER='sed s/^/paged:/' perfconv {command}"))
        else {
            return;
        };
        assert_eq!(found, Some(status), "{command}: {said}");
        assert!(
            !said.is_empty() && said.lines().all(|line| line.starts_with("paged:")),
            "{command}: {said}"
        );
        for plain in [
            format!("PAGER='sed s/^/paged:/' perfconv --no-pager {command}"),
            format!("PAGER='sed s/^/paged:/' perfconv {command} --no-pager"),
            format!("PAGER='sed s/^/paged:/' TERM=dumb perfconv {command}"),
            format!(
                "PAGER='sed s/^/paged:/' perfconv {command} | cat; exit ${{PIPESTATUS[0]:-{status}}}"
            ),
            format!("PAGER=cat perfconv {command}"),
            format!("PAGER= perfconv {command}"),
        ] {
            let (found, plain_said) = run(&plain).expect("as before");
            assert_eq!(
                (found, plain_said),
                (Some(status), said.replace("paged:", "")),
                "{plain}"
            );
        }
    }
}

#[test]
fn the_status_is_kept_when_nobody_reads_on() {
    let folder = folder();
    for (command, status) in COMMANDS {
        let run = on_a_terminal(folder.path(), &format!("PAGER=true perfconv {command}"));
        let Some((found, said)) = run else { return };
        assert_eq!((found, said.as_str()), (Some(status), ""), "{command}");
    }
}

#[test]
fn less_is_told_what_git_tells_it() {
    let folder = folder();
    let run = |commands: &str| on_a_terminal(folder.path(), commands);
    let Some((_, said)) = run("PAGER='printenv LESS; cat' perfconv verify a.data") else {
        return;
    };
    assert!(said.starts_with("FRX\n"), "{said}");
    let (_, said) =
        run("LESS=MR PAGER='printenv LESS; cat' perfconv verify a.data").expect("as before");
    assert!(said.starts_with("MR\n"), "{said}");
    // One screen is sufficient, with less and if there is no pager.
    for path in ["$PATH", "${PATH%%:*}"] {
        let (status, said) =
            run(&format!("PATH={path} perfconv verify a.data")).expect("as before");
        assert!(
            status == Some(0) && said.contains("243 records: 0 errors"),
            "{path}: {said}"
        );
    }
}

/// The output on standard error is not mixed into the pager's display.
#[test]
fn messages_come_behind_the_report() {
    let folder = folder();
    let run = |commands: &str| on_a_terminal(folder.path(), commands);
    let Some((status, said)) =
        run("PAGER='cat; sleep 0.3; echo END' perfconv dump --type COMM cut.data")
    else {
        return;
    };
    let (report, messages) = said
        .split_once("END\n")
        .unwrap_or_else(|| panic!("no pager: {said}"));
    assert!(
        status == Some(0) && !report.contains("perfconv: "),
        "{said}"
    );
    assert!(
        messages.starts_with("perfconv: warning: the last 19 bytes"),
        "{said}"
    );
    // Without a report, no pager is started.
    let (status, said) =
        run("PAGER='cat; echo END' perfconv info nowhere.data").expect("as before");
    assert_eq!(
        (status, said.as_str()),
        (
            Some(2),
            "perfconv: error: nowhere.data: No such file or directory (os error 2)\n"
        )
    );
}

/// The pager handles Ctrl-C while it runs.
#[test]
fn a_signal_of_the_terminal_is_the_pagers() {
    let folder = folder();
    let run = |commands: &str| on_a_terminal(folder.path(), commands);
    let interrupted = "PAGER='kill -INT $PPID; sleep 0.3; cat' perfconv dump a.data";
    let Some((status, said)) = run(interrupted) else {
        return;
    };
    assert_eq!(status, Some(0), "{said:.200}");
    assert!(
        said == run("PAGER= perfconv dump a.data").expect("as before").1,
        "{said:.200}"
    );
}

#[test]
fn a_manual_page_is_shown_on_a_terminal() {
    let folder = folder();
    let run = |commands: &str| on_a_terminal(folder.path(), commands);
    let Some((status, said)) = run("MANPAGER=cat perfconv man info") else {
        return;
    };
    assert!(
        status == Some(0)
            && said.contains("Show what a recording contains")
            && !said.contains(".SH"),
        "{said}"
    );
    // Without man, the long help is shown.
    let (status, said) = run("PATH=${PATH%%:*} perfconv man info").expect("as before");
    assert!(
        status == Some(0) && said.contains("Usage: perfconv info") && !said.contains(".SH"),
        "{said}"
    );
    let (status, said) = run("perfconv man info > page; head -1 page").expect("as before");
    assert!(
        status == Some(0) && said.starts_with(".ie") || said.starts_with(".TH"),
        "{said}"
    );
}
