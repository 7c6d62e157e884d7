//! Recordings of branches that others have published. Their objects are not: files are made that have
//! functions where the branches are, at the same offsets.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::{recordings, skipped};

use super::readers::Counted;
use super::{succeed, text};

/// An object in a recording.
struct Published {
    recording: &'static str,
    object: &'static str,
    /// The symbol at the start of a kernel.
    symbol: Option<&'static str>,
    check: fn(&Counted<'_>),
}

const OBJECTS: [Published; 4] = [
    Published {
        recording: "branch-4.14",
        object: "ld-2.23.so",
        symbol: None,
        check: |counted| counted.readers_make_the_same(),
    },
    // create_llvm_prof 0.19 finds no branches of this kernel.
    Published {
        recording: "branch-4.14",
        object: "vmlinux",
        symbol: Some("_text"),
        check: |counted| counted.profgen_makes_the_same(),
    },
    // The other readers know no MMAP records, which perf wrote before 3.16.
    Published {
        recording: "callgraph_and_branch-3.4",
        object: "chrome",
        symbol: None,
        check: |counted| counted.autofdo_makes_the_same(),
    },
    Published {
        recording: "callgraph_and_branch-3.4",
        object: "libc-2.15.so",
        symbol: None,
        check: |counted| counted.autofdo_makes_the_same(),
    },
];

/// Offset of the first code in bytes, and the size to which functions are rounded.
const START: u64 = 0x1000;
const FUNCTION: u64 = 64;

/// Size of the code in each function in bytes. GCC adds an instruction that is not allowed.
const FILLED: u64 = FUNCTION - 2;

#[test]
fn readers_make_the_same_profiles_of_published_recordings() {
    if !cfg!(target_arch = "x86_64") {
        skipped::note("an x86-64 machine");
        return;
    }
    let all = recordings::corpus();
    for published in OBJECTS {
        let Published { object, symbol, .. } = published;
        let is_it = |name: &str| name.ends_with(published.recording);
        let Some(recording) = all.iter().find(|known| is_it(&known.name)) else {
            skipped::note("the further recordings");
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        fs::copy(&recording.path, folder.join("in.data")).expect("a recording");
        // What is known of the object is only its name.
        if build(folder, object, symbol, &[]).is_err() {
            skipped::note("a C compiler");
            return;
        }
        succeed(
            folder,
            &format!("perfconv export --to autofdo --binary {object} in.data -o table"),
        );
        let offsets = offsets(&text(folder.join("table")));
        build(folder, object, symbol, &offsets).expect("an object");
        let functions: Vec<String> = starts(&offsets).iter().map(|&at| function(at)).collect();
        let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
        let counted = Counted {
            folder,
            input: "in.data",
            object,
            functions: &functions,
            is_kernel: symbol.is_some(),
        };
        (published.check)(&counted);
    }
}

/// Returns all offsets in a table for AutoFDO.
fn offsets(table: &str) -> Vec<u64> {
    let lines = table.lines().filter_map(|line| line.split_once(':'));
    let numbers = lines.flat_map(|(places, _)| places.split(['-', '>']));
    let numbers = numbers.filter(|number| !number.is_empty());
    let mut offsets: Vec<u64> = numbers
        .map(|number| u64::from_str_radix(number, 16).expect("an offset"))
        .collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// Returns the first offsets of functions that contain all offsets.
fn starts(offsets: &[u64]) -> Vec<u64> {
    let mut starts: Vec<u64> = offsets.iter().map(|at| at / FUNCTION * FUNCTION).collect();
    starts.dedup();
    starts
}

fn function(start: u64) -> String {
    format!("f{start:x}")
}

/// Makes an object with functions at these offsets.
fn build(folder: &Path, object: &str, symbol: Option<&str>, offsets: &[u64]) -> Result<(), String> {
    let first = if symbol.is_some() { 0 } else { START };
    let mut code = symbol.map_or_else(String::new, |symbol| {
        format!("asm(\".text; .globl {symbol}; {symbol}:\");\n")
    });
    let default = offsets.is_empty().then_some(START);
    for start in starts(offsets).into_iter().chain(default) {
        let (name, at) = (function(start), start - first);
        writeln!(
            code,
            "asm(\".text; .org {at:#x}, 0x90\");\n\
             __attribute__((naked)) void {name}(void) {{ asm(\".fill {FILLED}, 1, 0x90\"); }}"
        )
        .expect("lines");
    }
    fs::write(folder.join("made.c"), code).expect("a source");
    let flags = match symbol {
        None => format!("-shared -Wl,-z,noseparate-code,--section-start=.text={START:#x}"),
        Some(_) => "-static -no-pie -Wl,-Ttext=0xffffffff81000000,-e,0".into(),
    };
    // The functions have the order of the source, and nothing between them but what is written there.
    let command = format!(
        "cc -gdwarf-4 -O1 -fno-toplevel-reorder -falign-functions=1 -fvisibility=hidden \
             -nostdlib {flags} -Wl,--build-id=none made.c -o {object}"
    );
    let output = in_shell(folder, &command);
    match output.success() {
        true => Ok(()),
        false => Err(output.stderr),
    }
}
