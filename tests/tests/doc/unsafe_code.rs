//! Unsafe code is only in named modules, each with its reason.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_tests::recordings::root;

/// The modules with unsafe code. docs/reliability.md says why.
const MODULES: [&str; 1] = ["perfconv/src/cmd/system.rs"];

/// Those of the tests: allocators that count.
const OF_TESTS: [&str; 2] = [
    "tests/tests/hostile/memory.rs",
    "tests/tests/library/allocations.rs",
];

/// Returns all Rust files below a folder, without those that cargo builds.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the numbers of the lines with unsafe code; comments and strings do not count.
fn unsafe_lines(text: &str) -> Vec<usize> {
    let is_unsafe = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        let words = [
            "unsafe {",
            "unsafe fn ",
            "unsafe impl ",
            "unsafe extern ",
            "#[unsafe(",
        ];
        let at = words.iter().filter_map(|word| code.find(word)).min();
        at.is_some_and(|at| !code.get(..at).unwrap_or_default().contains('"'))
    };
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| is_unsafe(line))
        .map(|(at, _)| at)
        .collect()
}

#[test]
fn unsafe_code_is_only_in_named_modules() {
    let mut files = Vec::new();
    sources(root(), &mut files);
    assert!(files.len() > 400);
    let mut found = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a file");
        let lines: Vec<&str> = text.lines().collect();
        let unsafe_lines = unsafe_lines(&text);
        if unsafe_lines.is_empty() {
            continue;
        }
        let name = path
            .strip_prefix(root())
            .expect("below")
            .display()
            .to_string();
        for at in unsafe_lines {
            // The functions of a trait that is unsafe to implement have its reason.
            let is_of_trait = lines[at].contains("unsafe fn ");
            let before = &lines[at.saturating_sub(4)..at];
            let has_reason = before.iter().any(|line| line.contains("SAFETY: "));
            assert!(is_of_trait || has_reason, "{name}:{}: no reason", at + 1);
        }
        found.push(name);
    }
    found.sort();
    assert_eq!(found, [&MODULES[..], &OF_TESTS].concat());
}

#[test]
fn the_compiler_forbids_it_elsewhere() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    let members = manifest.split("members = [").nth(1).expect("members");
    let members = members.split(']').next().expect("a list");
    let mut count = 0;
    for name in members.split('"').skip(1).step_by(2) {
        let library = root().join(name).join("src/lib.rs");
        if name.starts_with("tests") {
            continue;
        }
        let text = fs::read_to_string(&library).expect("a library");
        let rule = if name == "perfconv" { "deny" } else { "forbid" };
        assert!(text.contains(&format!("#![{rule}(unsafe_code)]")), "{name}");
        count += 1;
    }
    assert!(count >= 10);
}

#[test]
fn the_documentation_names_the_modules() {
    let page = fs::read_to_string(root().join("docs/reliability.md")).expect("a page");
    for name in MODULES {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
