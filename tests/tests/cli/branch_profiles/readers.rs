//! The programs that read the tables.

use std::fs;
use std::path::Path;

use super::made::{KERNEL_NAME, Variant};
use super::{LLVM, Ran, are_here, succeed, text};

/// `functions` are those of the programs.
pub fn readers_make_the_same_profiles(
    folder: &Path,
    all: &[Ran<'_>],
    variants: &[(&str, Variant)],
    functions: &[&str],
) {
    let has = |program: &str| are_here(&[program]);
    let (bolt, profgen) = (format!("{LLVM}/perf2bolt"), format!("{LLVM}/llvm-profgen"));
    let has_perf = has("perf");
    let has_bolt = has_perf && has(&bolt);
    let has_profgen = has_perf && has(&profgen);
    let has_autofdo = has("create_llvm_prof");
    for (traced, objects) in all {
        for &(name, variant) in variants {
            let input = format!("{}-{name}.data", traced.name);
            traced.record(variant, &folder.join(&input));
            for object in *objects {
                let export = |to: &str| {
                    let table = format!("{object}.{to}");
                    succeed(
                        folder,
                        &format!(
                            "perfconv export --to {to} --binary {object} {input} -o {table} --force"
                        ),
                    );
                    table
                };
                let what = format!("{input}, {object}");
                let kernel = traced.image();
                let (tables, out) = (
                    ["bolt", "llvm-profgen", "autofdo"].map(export),
                    "> out 2>&1",
                );
                // BOLT reads tables of a kernel that these images do not have.
                if has_bolt && kernel.is_none() {
                    succeed(
                        folder,
                        &format!(
                            "{bolt} -p {input} --ignore-build-id -o a.fdata -w a.yaml {object} {out}"
                        ),
                    );
                    succeed(
                        folder,
                        &format!(
                            "{bolt} --pa -p {} -o b.fdata -w b.yaml {object} {out}",
                            tables[0]
                        ),
                    );
                    let (a, b) = (text(folder.join("a.fdata")), text(folder.join("b.fdata")));
                    assert!(a.lines().count() > 10, "{what}: {a}");
                    assert_eq!(sorted(&a), sorted(&b), "{what}");
                    let (a, b) = (text(folder.join("a.yaml")), text(folder.join("b.yaml")));
                    assert!(a.contains("functions:"), "{what}: {a}");
                    assert_eq!(a, b, "{what}");
                }
                if has_profgen {
                    let kernel = kernel.map_or("", |_| "--kernel");
                    let own = format!("--format=text {kernel} --binary {object} {out}");
                    succeed(
                        folder,
                        &format!(
                            "{profgen} --perfdata {input} --skip-symbolization --output a.raw {own}"
                        ),
                    );
                    let (a, b) = (text(folder.join("a.raw")), text(folder.join(&tables[1])));
                    assert_eq!(sorted(&a), sorted(&b), "{what}");
                    succeed(
                        folder,
                        &format!("{profgen} --perfdata {input} --output a.prof {own}"),
                    );
                    succeed(
                        folder,
                        &format!(
                            "{profgen} --unsymbolized-profile {} --output b.prof {own}",
                            tables[1]
                        ),
                    );
                    let (a, b) = (text(folder.join("a.prof")), text(folder.join("b.prof")));
                    assert!(a.lines().count() > 10, "{what}: {a}");
                    assert_eq!(a, b, "{what}");
                }
                if has_autofdo {
                    if kernel.is_some() {
                        name_by_file(&folder.join(&input));
                    }
                    autofdo_makes_the_same(folder, &input, object, &tables[2], functions);
                }
            }
        }
    }
}

/// create_llvm_prof makes the same profile of a table as of the recording.
pub fn autofdo_makes_the_same(
    folder: &Path,
    input: &str,
    object: &str,
    table: &str,
    functions: &[&str],
) {
    let own = format!("--format=text --binary=./{object} > out 2>&1");
    succeed(
        folder,
        &format!(
            "create_llvm_prof --profile={input} --out=a.afdo {own} && \
             create_llvm_prof --profile={table} --profiler=text --out=b.afdo {own}"
        ),
    );
    let (a, b) = (text(folder.join("a.afdo")), text(folder.join("b.afdo")));
    let what = format!("{input}, {object}");
    // It makes no profile of Go's programs.
    assert!(a.lines().count() > 10 || object == "go", "{what}: {a}");
    let known = |text| without_freed_names(text, functions);
    assert_eq!(known(&a), known(&b), "{what}");
}

/// Gives the code of the kernel a path: create_llvm_prof 0.19 finds no others.
fn name_by_file(recording: &Path) {
    let mut bytes = fs::read(recording).expect("a recording");
    let mut places = bytes.windows(KERNEL_NAME.len());
    let at = places.position(|name| name == KERNEL_NAME).expect("a name");
    bytes[at..at + KERNEL_NAME.len()].copy_from_slice(b"/lib/modules/6/vmlinux");
    fs::write(recording, bytes).expect("a recording");
}

pub fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The profile that create_llvm_prof writes names the targets of some calls by memory that it has
/// freed.
fn without_freed_names(text: &str, functions: &[&str]) -> Vec<String> {
    let is_number = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let is_known = |word: &&str| {
        // Such a name may also contain a space. Words without a character are indentation.
        let (name, counts) = word.split_once(':').unwrap_or((word, ""));
        let is_name =
            functions.contains(&name) || is_number(name) && (word.is_empty() || !name.is_empty());
        is_name && counts.split(':').all(is_number)
    };
    let lines = text.lines().map(|line| {
        let known = line.split(' ').filter(is_known).collect::<Vec<_>>();
        known.join(" ").trim_end().to_owned()
    });
    // Such a name may also contain the end of a line.
    lines
        .filter(|line| {
            line.trim_start()
                .starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        })
        .collect()
}
