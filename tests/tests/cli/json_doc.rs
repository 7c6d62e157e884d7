//! The examples in `docs/json.md` are the output of `perfconv`.
//!
//! `UPDATE_SNAPSHOTS=1` rewrites them.

use std::fmt::Write as _;

use clap::Parser;
use perfconv::{cli::Cli, cmd};
use perfdata_tests::{recordings, snapshot};

/// The text before a command of an example.
const PROMPT: &str = "$ perfconv ";

/// Returns the output of an example's command. Its files are relative to the root of the
/// repository.
fn output(command: &str) -> String {
    let root = recordings::root();
    let words = command
        .split(' ')
        .map(|word| match word.starts_with("fixtures/") {
            true => root.join(word).display().to_string(),
            false => word.to_owned(),
        });
    let cli = Cli::try_parse_from(["perfconv".to_owned()].into_iter().chain(words))
        .expect("an example can be run");
    let mut out = Vec::new();
    cmd::run(cli, &mut out).expect("an example is right");
    snapshot::without_file_times(&String::from_utf8(out).expect("reports are UTF-8"))
        .replace(&format!("{}/", root.display()), "")
}

#[test]
fn examples_are_real() {
    let path = recordings::root().join("docs/json.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let mut text = String::new();
    let mut examples = 0;
    let mut in_output = false;
    for line in page.lines() {
        if in_output && line != "```" {
            continue;
        }
        in_output = false;
        writeln!(text, "{line}").expect("writing to a string");
        if let Some(command) = line.strip_prefix(PROMPT) {
            text.push_str(&output(command));
            examples += 1;
            in_output = true;
        }
    }
    assert!(examples > 3, "{examples} examples");
    snapshot::check(&path, &text);
}
