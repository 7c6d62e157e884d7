//! The page of a flame graph in a browser.

use std::fs;
use std::path::Path;
use std::process::Command;

use perfdata_tests::convert::in_shell;
use perfdata_tests::{perf, recordings, skipped};

/// Returns the text of the element `id` after the script of a page has run.
fn shown(page: &Path, view: &str, id: &str) -> Option<String> {
    let mut command = Command::new("chromium");
    command
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("file://{}#{view}", page.display()));
    let output = perf::run(command).ok()?;
    let (_, rest) = output.stdout.split_once(&format!("id=\"{id}\""))?;
    let (_, rest) = rest.split_once('>')?;
    let (text, _) = rest.split_once("</")?;
    Some(text.to_owned())
}

#[test]
fn a_browser_shows_the_samples() {
    if Command::new("chromium").arg("--version").output().is_err() {
        return skipped::note("chromium");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    fs::copy(recordings::fixture("6.1-x86_64-file-g").path, &input).expect("a fixture");
    let commands = "perfconv export -q --no-symbols in.data -o page.html && \
                    perfconv export -q --no-symbols in.data --diff in.data -o diff.html";
    let output = in_shell(folder.path(), commands);
    assert!(output.success(), "{}", output.stderr);
    let page = folder.path().join("page.html");
    let summary = |view: &str| shown(&page, view, "summary").expect("a summary");
    assert_eq!(summary("value=samples"), "100 samples in this view");
    assert_eq!(
        summary("value=samples&amp;by=thread"),
        "100 samples in this view"
    );
    // The parts of the time have all samples together.
    let samples = |view: &str| {
        let summary = summary(view);
        let number = summary.split(' ').next().expect("a number");
        number.parse::<u32>().expect("a number")
    };
    let (first, rest) = (
        samples("value=samples&from=0&to=99"),
        samples("value=samples&from=100&to=511"),
    );
    assert!(
        first > 0 && rest > 0 && first + rest == 100,
        "{first} {rest}"
    );
    assert_eq!(samples("value=samples&callers=1"), 100);
    let found = shown(&page, "search=libc", "found").expect("a result");
    assert!(found.ends_with("% in 1 functions"), "{found}");
    let title = shown(&folder.path().join("diff.html"), "", "title");
    let expected = "in.data compared with in.data: cpu-clock";
    assert_eq!(title.as_deref(), Some(expected));
}
