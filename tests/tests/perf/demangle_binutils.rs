//! binutils as the judge of C++ names.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use perfdata_demangle::{Demangler, Style};
use perfdata_tests::skipped;

/// Libraries whose exported C++ names are compared if they are there. The first is required.
const LIBRARIES: [&str; 4] = ["libstdc++.so.6", "libLLVM", "libclang-cpp", "libboost_"];

/// The folders of libraries.
const FOLDERS: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

/// Returns the files of a library.
fn files(library: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(library) && name.contains(".so") && !name.ends_with(".py")
        });
        files.extend(named.filter_map(|entry| entry.path().canonicalize().ok()));
    }
    files.sort();
    files.dedup();
    files
}

/// Returns the C++ names that a library exports; none without `nm` of binutils.
fn names(file: &PathBuf) -> Vec<String> {
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--format=just-symbols"]);
    let Ok(output) = nm.arg(file).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text
        .lines()
        .map(|name| name.split('@').next().unwrap_or(name));
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("_Z"))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Returns what `c++filt` writes for names; `None` without this program.
fn filtered(names: &[String], options: &[&str]) -> Option<Vec<String>> {
    let mut child = Command::new("c++filt")
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take().unwrap();
    let lines = names.join("\n") + "\n";
    let writer = thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn names_of_libraries_are_those_of_binutils() {
    let style = Style::new();
    let styles: [(Style, &[&str]); 4] = [
        (style, &["--no-verbose"]),
        (style.without_parameters(), &["--no-verbose", "--no-params"]),
        (style.verbose(), &[]),
        (style.without_parameters().verbose(), &["--no-params"]),
    ];
    let mut demangler = Demangler::new();
    for library in LIBRARIES {
        let files = files(library);
        if files.is_empty() {
            skipped::note(format_args!("the library {library}"));
        }
        for file in files {
            let names = names(&file);
            for (style, options) in styles {
                let Some(texts) = filtered(&names, options) else {
                    return skipped::note("c++filt of binutils");
                };
                assert_eq!(texts.len(), names.len());
                let mut different = Vec::new();
                for (name, text) in names.iter().zip(&texts) {
                    let ours = demangler.demangle(name.as_bytes(), style);
                    if ours.unwrap_or(name.as_bytes()) != text.as_bytes() {
                        different.push(name);
                    }
                }
                // Versions of binutils know different forms.
                assert!(
                    different.len() * 1000 <= names.len(),
                    "{} of {} names of {} differ with {options:?}: {:#?}",
                    different.len(),
                    names.len(),
                    file.display(),
                    &different[..different.len().min(10)]
                );
            }
        }
    }
}
