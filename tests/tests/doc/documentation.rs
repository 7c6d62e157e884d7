//! Runs the commands in the documentation, and compares their output with the documented output.
//!
//! In README.md, those of the crates, CONTRIBUTING.md and docs/*.md, a code block marked `sh` is
//! run by a shell in an empty folder that looks like a clone (it contains `fixtures/`), with
//! `perfconv` on the PATH. A block marked `sh perf` needs perf and is skipped if there is none; one
//! marked `sh perf next` continues the block before it, in the same folder. A `text` or `json` block directly after it is the output of the commands, including errors and
//! summaries. In this block, a line `…` matches any lines, and a `…` within a line matches any
//! text. Numbers in the output of a `sh perf` block differ each time, and are not compared.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use clap::CommandFactory;
use perfconv::cli::Cli;
use perfdata_tests::skipped;
use perfdata_tests::{convert, perf, recordings};

/// Commands of cargo build the project, so the tests do not run them again: `run` runs the program
/// directly, the others are skipped. .ci/run runs them.
const PRELUDE: &str = r#"exec 2>&1
cargo() {
    case "$1 $2 $3" in
        "run --release --") shift 3; perfconv "$@" ;;
        *) ;;
    esac
}
"#;

/// A block of commands and its expected output.
#[derive(Debug, PartialEq)]
struct Example {
    /// Line of the file where the commands start.
    line: usize,
    needs_perf: bool,
    /// The commands of the blocks that it continues.
    before: String,
    commands: String,
    output: Option<String>,
}

/// Returns the blocks of a Markdown file with their marks and first lines.
fn blocks(markdown: &str) -> Vec<(usize, &str, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str, String)> = None;
    for (at, line) in markdown.lines().enumerate() {
        match (open.take(), line.strip_prefix("```")) {
            (Some(block), Some("")) => blocks.push(block),
            (Some((first, mark, text)), _) => open = Some((first, mark, text + line + "\n")),
            (None, Some(mark)) => open = Some((at + 2, mark, String::new())),
            (None, None) => {}
        }
    }
    assert_eq!(open, None, "a block without end");
    blocks
}

fn examples(markdown: &str) -> Vec<Example> {
    let blocks = blocks(markdown);
    let lines: Vec<&str> = markdown.lines().collect();
    let follows = |(first, _, text): &(usize, &str, String), next: &(usize, &str, String)| {
        let end = first + text.lines().count();
        lines[end..next.0 - 2]
            .iter()
            .all(|line| line.trim().is_empty())
    };
    let mut examples = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let (needs_perf, is_next) = match block.1 {
            "sh" => (false, false),
            "sh perf" => (true, false),
            "sh perf next" => (true, true),
            _ => continue,
        };
        let last = examples.last().filter(|_| is_next);
        let before = last.map(|last: &Example| format!("{}{}", last.before, last.commands));
        let output = blocks
            .get(at + 1)
            .filter(|next| matches!(next.1, "text" | "json") && follows(block, next));
        examples.push(Example {
            line: block.0,
            needs_perf,
            before: before.unwrap_or_default(),
            commands: block.2.clone(),
            output: output.map(|next| next.2.clone()),
        });
    }
    examples
}

/// Returns whether `actual` matches `expected`, where `…` matches anything.
fn matches<T: AsRef<str>>(expected: &[T], actual: &[T]) -> bool {
    match (expected.split_first(), actual.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first.as_ref() == "…" => {
            (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..]))
        }
        (Some((expected, more)), Some((actual, rest))) => {
            line_matches(expected.as_ref(), actual.as_ref()) && matches(more, rest)
        }
        _ => false,
    }
}

fn line_matches(expected: &str, actual: &str) -> bool {
    match expected.split_once('…') {
        None => expected == actual,
        Some((start, rest)) => actual.strip_prefix(start).is_some_and(|behind| {
            behind
                .char_indices()
                .map(|(at, _)| at)
                .chain([behind.len()])
                .any(|at| line_matches(rest, &behind[at..]))
        }),
    }
}

/// Replaces every sequence of digits by one `0`.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if out.ends_with('0') => {}
            '0'..='9' => out.push('0'),
            other => out.push(other),
        }
    }
    out
}

/// Runs an example in an empty folder. Returns its errors.
fn check(example: &Example) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let root = recordings::root();
    symlink(root.join("fixtures"), folder.path().join("fixtures")).map_err(|e| e.to_string())?;
    let program = convert::perfconv().get_program().to_owned();
    let bin = Path::new(&program)
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path)))
        .map_err(|e| e.to_string())?;

    // Nothing outside of the folder is written.
    let before = match example.before.as_str() {
        "" => String::new(),
        before => format!("{{\n{before}}} > /dev/null 2>&1\n"),
    };
    let commands = format!("{before}{}", example.commands)
        .replace("/tmp/", &format!("{}/", folder.path().display()));
    let mut shell = Command::new("bash");
    shell.args([
        "-e",
        "-o",
        "pipefail",
        "-c",
        &format!("{PRELUDE}{commands}"),
    ]);
    shell
        .current_dir(&folder)
        .env("PATH", path)
        .env("HOME", folder.path())
        .env("LC_ALL", "C")
        .env("TZ", "UTC");
    let output = perf::run(shell).map_err(|e| e.to_string())?;
    let said = format!("{}{}", output.stdout, output.stderr);
    if !output.success() {
        return Err(format!("ended with {:?}:\n{said}", output.status));
    }
    let Some(expected) = &example.output else {
        return Ok(());
    };
    let normal = |text: &str| {
        if example.needs_perf {
            without_numbers(text)
        } else {
            text.to_owned()
        }
    };
    let lines = |text: &str| -> Vec<String> {
        normal(text)
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    };
    let (expected, said) = (lines(expected), lines(&said));
    if matches(&expected, &said) {
        return Ok(());
    }
    let diff = similar::TextDiff::from_lines(expected.join("\n"), said.join("\n"))
        .unified_diff()
        .to_string();
    Err(format!("prints something else:\n{diff}"))
}

/// Returns the folders of the crates that are published.
fn crates() -> io::Result<Vec<PathBuf>> {
    let folders = fs::read_dir(recordings::root())?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    let is_published = |folder: &PathBuf| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.starts_with("[package]\n") && !manifest.contains("\npublish = false\n")
    };
    Ok(folders.into_iter().filter(is_published).collect())
}

/// Returns the pages of docs/.
fn pages() -> io::Result<Vec<PathBuf>> {
    pages_in("")
}

/// Returns the pages in a folder of `docs/`.
fn pages_in(folder: &str) -> io::Result<Vec<PathBuf>> {
    let folder = recordings::root().join("docs").join(folder);
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut pages = paths.collect::<io::Result<Vec<_>>>()?;
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    Ok(pages)
}

fn documents() -> io::Result<Vec<PathBuf>> {
    let root = recordings::root();
    let mut documents = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    documents.extend(
        crates()?
            .into_iter()
            .map(|folder| folder.join("README.md"))
            .filter(|path| path.exists()),
    );
    documents.extend(pages()?);
    documents.extend(pages_in("reference")?);
    documents.sort();
    Ok(documents)
}

#[test]
fn every_command_does_what_the_documentation_says() {
    let has_perf = perf::all().iter().any(|perf| perf.name == "perf");
    let mut wrong = Vec::new();
    let mut run = 0;
    for path in documents().expect("docs/ can be read") {
        let text = fs::read_to_string(&path).expect("a document can be read");
        let name = path
            .strip_prefix(recordings::root())
            .unwrap_or(&path)
            .display();
        for example in examples(&text) {
            if example.needs_perf && !has_perf {
                skipped::note(format_args!("perf, for {name}:{}", example.line));
                continue;
            }
            run += 1;
            if let Err(error) = check(&example) {
                wrong.push(format!("{name}:{}: {error}", example.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(run > 5, "only {run} examples");
}

#[test]
fn the_checks_of_a_clone_are_those_of_the_readme() {
    let root = recordings::root();
    let readme = fs::read_to_string(root.join("README.md")).expect("README.md");
    let script = fs::read_to_string(root.join(".ci/run")).expect(".ci/run");
    let commands = examples(&readme)
        .into_iter()
        .flat_map(|e| e.commands.lines().map(str::to_owned).collect::<Vec<_>>());
    let tests: Vec<String> = commands
        .filter(|line| line.starts_with("cargo test"))
        .collect();
    assert_eq!(tests, ["cargo test --workspace"]);
    assert!(
        script.contains("grep -E '^cargo (run|test) ' README.md"),
        ".ci/run does not run the commands of README.md"
    );
}

/// README.md or docs/ contain every subcommand and every option.
#[test]
fn every_word_of_the_command_line_is_explained() {
    let texts = documents()
        .expect("docs/ can be read")
        .into_iter()
        .map(fs::read_to_string);
    let text = texts
        .collect::<Result<Vec<_>, _>>()
        .expect("a document can be read")
        .concat();
    let mut missing = Vec::new();
    let mut command = Cli::command();
    command.build();
    for subcommand in command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set())
    {
        let name = subcommand.get_name();
        if name != "help"
            && !text.contains(&format!("perfconv {name}"))
            && !text.contains(&format!("`{name}`"))
        {
            missing.push(name.to_owned());
        }
        for option in subcommand
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
        {
            let long = option
                .get_long()
                .filter(|long| !matches!(*long, "help" | "version" | "output"));
            missing.extend(
                long.map(|long| format!("--{long}"))
                    .filter(|long| !text.contains(long)),
            );
        }
    }
    missing.sort();
    missing.dedup();
    assert!(missing.is_empty(), "not explained: {missing:?}");
}

/// Words that perf's manual pages do not use in this meaning: CONTRIBUTING.md lists replacements.
const AVOIDED: &[&str] = &[
    "behind", "stands", "room", "tells", "told", "bears", "believed", "anew", "whoever",
];

/// Number of accepted occurrences, for example in the list itself.
const TOLERATED: usize = 12;

#[test]
fn words_to_avoid_are_rare() {
    let root = recordings::root();
    let snapshots = root.join("tests/snapshots");
    let mut files = documents().expect("docs/ can be read");
    files.extend([root.join("CHANGELOG.md"), snapshots.join("errors.txt")]);
    let help = fs::read_dir(snapshots.join("help")).expect("a folder");
    files.extend(help.map(|entry| entry.expect("an entry").path()));
    let mut found = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a text");
        for (number, line) in text.lines().enumerate() {
            let words = line
                .split(|c: char| !c.is_alphabetic())
                .map(str::to_lowercase);
            let avoided = words.filter(|word| AVOIDED.contains(&word.as_str()));
            found.extend(avoided.map(|word| format!("{}:{}: {word}", file.display(), number + 1)));
        }
    }
    assert!(found.len() > 3, "CONTRIBUTING.md has them: {found:?}");
    assert!(found.len() <= TOLERATED, "{}", found.join("\n"));
}

/// The URL by which documents link to files of the project if a relative link does not work there.
const REPOSITORY: &str = "https://github.com/perfconv/perfconv/blob/main/";

/// Returns the anchor that GitHub and mdBook generate for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}

fn anchors(markdown: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut in_block = false;
    for line in markdown.lines() {
        in_block ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if !in_block && heading.len() < line.len() {
            anchors.push(anchor(heading));
        }
    }
    anchors
}

/// GitHub and crates.io show no error for a broken link. The book contains only pages and
/// pictures, and crates.io and docs.rs contain no other file of the project.
#[test]
fn links_between_documents_lead_somewhere() {
    let root = recordings::root();
    let book = root.join("docs").canonicalize().expect("docs/");
    let mut broken = Vec::new();
    for path in documents().expect("docs/ can be read") {
        let text = fs::read_to_string(&path).expect("a document can be read");
        let folder = path.parent().expect("in a folder");
        let links = ["](", "src=\"", "srcset=\""]
            .into_iter()
            .flat_map(|start| text.split(start).skip(1));
        for link in links.filter_map(|rest| rest.split([')', '"']).next()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file.strip_prefix(REPOSITORY) {
                Some(file) => root.join(file),
                None if file.contains("://") => continue,
                None if file.is_empty() => path.clone(),
                None => folder.join(file),
            };
            let is_page = Path::new(file).extension().is_none_or(|end| end == "md");
            let is_of_book = target
                .canonicalize()
                .is_ok_and(|file| file.starts_with(&book))
                && (is_page || file.starts_with("pictures/"));
            let is_inside = file.contains("://") || folder == root || is_of_book;
            let has_heading = || {
                fs::read_to_string(&target)
                    .is_ok_and(|text| anchors(&text).iter().any(|a| a == heading))
            };
            if !target.exists() || !is_inside || !heading.is_empty() && !has_heading() {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The indexes on GitHub and of the book contain every page.
#[test]
fn every_page_is_in_the_index() {
    for index in ["README.md", "SUMMARY.md"] {
        let text =
            fs::read_to_string(recordings::root().join("docs").join(index)).expect("an index");
        for page in pages().expect("docs/ can be read") {
            let name = page
                .file_name()
                .and_then(|name| name.to_str())
                .expect("a name");
            let is_index = matches!(name, "README.md" | "SUMMARY.md");
            assert!(
                is_index || text.contains(&format!("]({name})")),
                "{index} has no link to {name}"
            );
        }
    }
}

#[test]
fn each_crate_shows_a_readme_of_its_own() {
    let crates = crates().expect("the folders of the crates");
    assert!(crates.len() > 3, "{crates:?}");
    for folder in crates {
        let name = folder
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("Cargo.toml");
        let readme = manifest
            .lines()
            .find_map(|line| line.strip_prefix("readme = "))
            .expect("a README");
        let text = fs::read_to_string(folder.join(readme.trim_matches('"'))).expect("the README");
        assert!(
            text.starts_with(&format!("# {name}\n")),
            "{name} has {readme}"
        );
    }
}

#[test]
fn the_pictures_are_what_their_script_draws() {
    let folder = tempfile::tempdir().expect("a folder");
    let pictures = recordings::root().join("docs/pictures");
    let mut script = Command::new("python3");
    script.arg(pictures.join("layout.py")).arg(folder.path());
    script.env("PERFCONV", convert::perfconv().get_program());
    let output = match perf::run(script) {
        Ok(output) => output,
        Err(error) => {
            skipped::note(format_args!(
                "python3, for docs/pictures/layout.py: {error}"
            ));
            return;
        }
    };
    assert!(output.success(), "{}", output.stderr);
    for name in ["layout-light.svg", "layout-dark.svg"] {
        let [committed, drawn] =
            [&pictures, folder.path()].map(|folder| fs::read_to_string(folder.join(name)));
        let is_same = committed.expect("a picture") == drawn.expect("a picture");
        assert!(
            is_same,
            "{name} is not what python3 docs/pictures/layout.py draws"
        );
    }
}

#[test]
fn blocks_and_their_outputs_are_found() {
    let text = "a\n```sh\nx\ny\n```\n\n```text\nout\n```\n```sh perf\nz\n```\nand\n```text\nno\n```\n```sh perf next\nw\n```\n";
    let example = |line, needs_perf, before: &str, commands: &str, output: Option<&str>| Example {
        line,
        needs_perf,
        before: before.into(),
        commands: commands.into(),
        output: output.map(str::to_owned),
    };
    assert_eq!(
        examples(text),
        [
            example(3, false, "", "x\ny\n", Some("out\n")),
            example(11, true, "", "z\n", None),
            example(18, true, "z\n", "w\n", None)
        ]
    );
}

#[test]
fn headings_have_anchors() {
    let text = "# A `b`\n```sh\n# no\n```\n## Byte order: `--endian little|big`\n";
    assert_eq!(anchors(text), ["a-b", "byte-order---endian-littlebig"]);
}

#[test]
fn dots_stand_for_anything() {
    assert!(matches(&["a", "…", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["…", "b"], &["b"]));
    assert!(matches(&["x … z"], &["x y z"]));
    assert!(!matches(&["a", "…", "d"], &["a", "b"]));
    assert!(!matches(&["x … z"], &["x y"]));
    assert_eq!(without_numbers("12 a 345.6"), "0 a 0.0");
}
