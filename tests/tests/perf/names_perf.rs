//! Names of several languages: those of perf in the text, and without parameters in folded stacks.

#![cfg(target_arch = "x86_64")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use perfdata_export::{Folded, PerfScript, Sources, Symbolizer, export};
use perfdata_session::Samples;
use perfdata_tests::perf;
use perfdata_tests::skipped;

/// The name of a function in the object, the one that perf 7.2 shows, and the one without parameters.
const NAMES: [[&str; 3]; 12] = [
    [
        "_ZNK7FunctorclEl",
        "Functor::operator()(long) const",
        "Functor::operator()",
    ],
    [
        "_ZN7FunctorltEl",
        "Functor::operator<(long)",
        "Functor::operator<",
    ],
    [
        "_ZN7FunctorlsEl",
        "Functor::operator<<(long)",
        "Functor::operator<<",
    ],
    ["_Z4callIiElT_l", "long call<int>(int, long)", "call<int>"],
    [
        "_ZN12_GLOBAL__N_16hiddenEl",
        "(anonymous namespace)::hidden(long)",
        "(anonymous namespace)::hidden",
    ],
    [
        "_ZZ4mainENKUllE_clEl",
        "main::{lambda(long)#1}::operator()(long) const",
        "main::{lambda(long)#1}::operator()",
    ],
    ["_Z4coldv.cold", "cold() [clone .cold]", "cold"],
    [
        "_ZNSi3getERSs",
        "std::istream::get(std::string&)",
        "std::istream::get",
    ],
    [
        "camlStdlib__List__map$27_287",
        "Stdlib.List.map'_287",
        "Stdlib.List.map'_287",
    ],
    [
        "Ljava/lang/String;hashCode(I[B)V",
        "java.lang.String.hashCode(int, byte[])",
        "java.lang.String.hashCode",
    ],
    [
        "Ljava/lang/Object;<init>()V",
        "java.lang.Object<init>()",
        "java.lang.Object<init>",
    ],
    ["main.(*T).run", "main.(*T).run", "main.(*T).run"],
];

/// Writes a program that stays in each function for a time; false without a compiler.
fn compile(program: &Path) -> bool {
    let mut source = String::from(".text\n.globl _start\n.type _start,@function\n_start:\n");
    for [name, ..] in NAMES {
        writeln!(source, "call \"{name}\"").unwrap();
    }
    source.push_str("mov $60, %eax\nxor %edi, %edi\nsyscall\n.size _start,.-_start\n");
    for [name, ..] in NAMES {
        writeln!(
            source,
            ".globl \"{name}\"\n.type \"{name}\",@function\n\"{name}\": mov $40000000, %eax\n\
             1: dec %eax\njnz 1b\nret\n.size \"{name}\",.-\"{name}\""
        )
        .unwrap();
    }
    let assembler = program.with_extension("s");
    fs::write(&assembler, source).unwrap();
    let mut command = Command::new("cc");
    command.args(["-nostdlib", "-static", "-Wl,--build-id", "-o"]);
    command.arg(program).arg(assembler);
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn names_of_all_languages_are_those_of_perf() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("names");
    if !compile(&program) {
        return skipped::note("a compiler, cc");
    }
    let path = folder.path().join("names.data");
    let Some(judges) = perf::record_programs(&path, 997, program.to_str().unwrap()) else {
        return;
    };
    let symbols = || Some(Symbolizer::new(Sources::default().with_caches(vec![])));
    for judge in judges {
        let mut command = judge.command();
        command.args(["script", "-F", "+ip,+sym,+symoff", "-i"]);
        command.arg(&path);
        let output = perf::run(command).unwrap();
        let mut ours = Vec::new();
        let mut sink = PerfScript::new(&mut ours, judge.version.like());
        export(&mut Samples::open(&path).unwrap(), symbols(), &mut sink).unwrap();
        let ours = String::from_utf8(ours).unwrap();
        for [_, full, short] in NAMES {
            let is_java = full.starts_with("java.");
            let expected = match (judge.version.major, judge.version.minor) {
                (..6, _) | (6, ..12) if !is_java => short,
                _ => full,
            };
            let shown = format!(" {expected}+0x");
            assert!(output.stdout.contains(&shown), "{judge}: no {expected}");
            assert!(ours.contains(&shown), "{expected} in {ours}");
        }
    }
    let mut folded = Vec::new();
    let mut sink = Folded::new(&mut folded);
    export(&mut Samples::open(&path).unwrap(), symbols(), &mut sink).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    for [_, _, short] in NAMES {
        let is_frame = |line: &str| {
            let stack = line.rsplit_once(' ').map_or(line, |(stack, _)| stack);
            stack.split(';').any(|frame| frame == short)
        };
        assert!(folded.lines().any(is_frame), "{short} in {folded}");
    }
}
