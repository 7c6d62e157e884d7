//! Inlined functions and source lines compared with addr2line (binutils) and perf: every frame of a
//! recording of a program that is compiled here.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use perfdata_export::{ResolvedSample, Result, Sink, Sources, Symbolizer, export};
use perfdata_session::Samples;
use perfdata_symbols::Elf;
use perfdata_tests::convert::in_shell;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::skipped;
use serde_json::Value;

const PROGRAM: &str = r#"#include <stdint.h>
#include <stdio.h>

#define INLINED static inline __attribute__((always_inline))

INLINED uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15u;
	return x;
}

INLINED uint64_t rounds(uint64_t x, int n)
{
	for (int i = 0; i < n; i++)
		x += mix(x + i);
	return x;
}

__attribute__((noinline)) void step(void)
{
	__asm__ volatile("" ::: "memory");
}

/* It calls another function, and so has a frame pointer. */
__attribute__((noinline)) uint64_t work(uint64_t seed, int n)
{
	uint64_t sum = seed;
	for (int i = 0; i < n; i++) {
		sum += rounds(sum, 100);
		sum ^= i;
		step();
	}
	return sum;
}

INLINED uint64_t twice(int n)
{
	uint64_t a = work(1, n);
	return a + work(a, n);
}

int main(void)
{
	printf("%llu\n", (unsigned long long)twice(1000000));
	return 0;
}
"#;

/// How the debug information is stored: a name, and the commands that make `program` of
/// `program.c`. If they make `plain`, it is the same program for addr2line.
const KINDS: [(&str, &str); 6] = [
    ("DWARF 5", "gcc $FLAGS -gdwarf-5 program.c -o program"),
    (
        "compressed DWARF 4",
        "gcc $FLAGS -gdwarf-4 -gz=zlib program.c -o program",
    ),
    (
        "a debug file",
        "gcc $FLAGS -g program.c -o program && objcopy --only-keep-debug program program.debug \
         && strip --strip-debug program && objcopy --add-gnu-debuglink=program.debug program",
    ),
    (
        "a supplementary file",
        // addr2line 2.40 finds wrong names in the program.
        "gcc $FLAGS -gdwarf-4 program.c -o program && cp program plain && cp program other \
         && dwz -m shared.debug -M \"$(pwd -P)/shared.debug\" program other && rm other \
         && readelf -SW program | grep -q gnu_debugaltlink",
    ),
    (
        "a supplementary file with a relative path",
        "mkdir bin lib && gcc $FLAGS -gdwarf-5 program.c -o bin/program && cp bin/program plain \
         && cp bin/program bin/other && (cd bin && dwz -r -m ../lib/shared.debug program other) \
         && readelf -p .gnu_debugaltlink bin/program | grep -q ' ../lib/shared.debug' \
         && ln -s bin/program program",
    ),
    (
        "no position-independent code",
        "gcc $FLAGS -g -no-pie program.c -o program",
    ),
];

/// Compiles and records the program. Returns `None` if this machine cannot do it.
fn recorded(recorder: &Perf, folder: &Path, compile: &str) -> Option<PathBuf> {
    fs::write(folder.join("program.c"), PROGRAM).expect("a file");
    let flags = "export FLAGS='-O2 -fno-omit-frame-pointer -Wl,--build-id'";
    let compiled = in_shell(folder, &format!("{flags}; {compile}"));
    if !compiled.success() {
        skipped::note("gcc, binutils and dwz");
        return None;
    }
    let path = folder.join("perf.data");
    let mut command = recorder.command();
    command
        .args(["record", "-e", "cpu-clock", "-F", "1999", "-g", "-o"])
        .arg(&path)
        .arg("--")
        .arg(folder.join("program"));
    let output = perf::run(command).expect("perf runs");
    if !output.success() || !path.exists() {
        skipped::note("the permission to record");
        return None;
    }
    Some(path)
}

/// A function with its file and line.
type Line = (String, String, u32);

/// The functions at each address in the program, the innermost inlined one first.
#[derive(Default)]
struct Found {
    /// By offset in the file.
    places: BTreeMap<u64, Vec<Line>>,
    /// Those of the first frame of each sample in the program.
    leaves: Vec<Vec<String>>,
}

impl Sink for Found {
    fn sample(&mut self, sample: &ResolvedSample<'_>) -> Result<()> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let mut lines: Vec<Line> = Vec::new();
        for (at, frame) in sample.frames.iter().enumerate() {
            let function = frame.function.and_then(|id| sample.tables.function(id));
            let module = frame.module.and_then(|id| sample.tables.module(id));
            let mapping = frame
                .mapping
                .and_then(|id| sample.sample.session().mapping(id));
            let (Some(function), Some(module), Some(mapping)) = (function, module, mapping) else {
                continue;
            };
            if !module.name.ends_with(b"/program") {
                continue;
            }
            let file = function.file.as_deref().unwrap_or_default();
            lines.push((text(&function.name), text(file), frame.line));
            if frame.is_inlined {
                assert_eq!(frame.address, sample.frames[at + 1].address);
                continue;
            }
            let lines = std::mem::take(&mut lines);
            if at + 1 == lines.len() {
                let names = lines.iter().map(|line| line.0.clone());
                self.leaves.push(names.collect());
            }
            let offset = frame.address - mapping.start + mapping.pgoff;
            self.places
                .insert(offset - u64::from(frame.is_return), lines);
        }
        Ok(())
    }
}

fn found(path: &Path) -> Found {
    let mut samples = Samples::open(path).expect("a recording");
    let symbols = Symbolizer::new(Sources::default().with_caches(vec![]))
        .with_inlines(true)
        .with_lines(true);
    let mut found = Found::default();
    export(&mut samples, Some(symbols), &mut found).expect("intact");
    found
}

/// Returns what addr2line finds at each of these addresses; `None` if it is not installed.
fn addr2line(program: &Path, addresses: &[u64]) -> Option<BTreeMap<u64, Vec<Line>>> {
    let mut command = Command::new("addr2line");
    command.args(["-a", "-i", "-f", "-e"]).arg(program);
    command.args(addresses.iter().map(|address| format!("{address:#x}")));
    let output = perf::run(command).ok()?;
    let mut all: BTreeMap<u64, Vec<Line>> = BTreeMap::new();
    let mut address = 0;
    let mut lines = output.stdout.lines();
    while let Some(line) = lines.next() {
        if let Some(digits) = line.strip_prefix("0x") {
            address = u64::from_str_radix(digits, 16).expect("an address");
            continue;
        }
        let place = lines.next().expect("a file and a line");
        let place = place.split(" (").next().expect("a place");
        let (file, number) = place.rsplit_once(':').expect("a line");
        let number = number.parse().unwrap_or(0);
        all.entry(address)
            .or_default()
            .push((line.to_owned(), file.to_owned(), number));
    }
    Some(all)
}

/// Compares the functions and lines of all frames with those of addr2line.
fn compare_lines(kind: &str, program: &Path, found: &Found) {
    let elf = Elf::open(program).expect("an ELF file");
    let address = |offset: u64| {
        let mut segments = elf.segments().iter();
        let segment =
            segments.find(|part| (part.offset..part.offset + part.file_size).contains(&offset));
        segment.map(|part| offset - part.offset + part.address)
    };
    let ours: BTreeMap<u64, &Vec<Line>> = found
        .places
        .iter()
        .map(|(&offset, lines)| (address(offset).expect("a segment"), lines))
        .collect();
    let addresses: Vec<u64> = ours.keys().copied().collect();
    let Some(expected) = addr2line(program, &addresses) else {
        return skipped::note("addr2line");
    };
    let mut inlined = 0;
    for (address, lines) in ours {
        // Functions of the C library's start files have no debug information.
        if expected[&address].iter().any(|line| line.1 == "??") {
            continue;
        }
        assert_eq!(*lines, expected[&address], "{kind}: {address:#x}");
        inlined += usize::from(lines.len() > 1);
    }
    assert!(inlined >= 3, "{kind}: {inlined} addresses");
}

/// Compares the inlined functions of the first frames with perf's. perf 6.12 and older show none in
/// callchains that the kernel recorded. Returns the number of frames.
fn compare_with_perf(perf: &Perf, path: &Path, found: &Found) -> usize {
    let mut command = perf.command();
    command
        .args(["script", "-F", "ip,sym,dso", "--max-stack", "512", "-i"])
        .arg(path);
    let output = perf::run(command).expect("perf runs");
    let mut expected: Vec<Vec<String>> = Vec::new();
    for paragraph in output.stdout.split("\n\n") {
        let mut names = Vec::new();
        for line in paragraph.lines() {
            let mut words = line.split_whitespace();
            let (_, Some(name), Some(object)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            names.push(name.to_owned());
            if object != "(inlined)" {
                if object.ends_with("/program)") {
                    expected.push(names);
                }
                break;
            }
        }
    }
    assert_eq!(found.leaves.len(), expected.len());
    let pairs = found.leaves.iter().zip(&expected);
    let wrong: Vec<_> = pairs.filter(|(ours, perfs)| ours != perfs).collect();
    assert!(wrong.is_empty(), "{perf}: {wrong:?}");
    found.leaves.iter().filter(|names| names.len() > 1).count()
}

#[test]
fn inlined_functions_and_lines_are_those_of_addr2line_and_perf() {
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    for (kind, compile) in KINDS {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(path) = recorded(recorder, folder.path(), compile) else {
            continue;
        };
        let found = found(&path);
        let plain = folder.path().join("plain");
        if plain.exists() {
            // perf 7.2 finds no inlined functions in the program itself.
            compare_lines(kind, &plain, &found);
            continue;
        }
        compare_lines(kind, &folder.path().join("program"), &found);
        let judges = perf::all()
            .iter()
            .filter(|perf| perf.version.major >= 7 && perf.endian == recorder.endian);
        let mut is_judged = false;
        for perf in judges {
            let count = compare_with_perf(perf, &path, &found);
            eprintln!("{perf}: {kind}: {count} samples in inlined functions");
            assert!(count > 100, "{count}");
            is_judged = true;
        }
        if !is_judged {
            skipped::note("perf 7 or newer");
        }
    }
}

/// Returns the decompressed content of a file.
fn unpacked(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(fs::File::open(path).expect("a file"))
        .read_to_end(&mut content)
        .expect("gzip");
    content
}

/// Returns the fields of a protobuf message: their numbers, values and contents.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let (&byte, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut list = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        let size = if key & 7 == 2 { value as usize } else { 0 };
        let (content, rest) = bytes.split_at(size);
        list.push((key >> 3, value, content));
        bytes = rest;
    }
    list
}

/// Returns the value of a field of a message, 0 if it is absent.
fn number(message: &[u8], field: u64) -> u64 {
    let fields = fields(message);
    let field = fields.iter().find(|one| one.0 == field);
    field.map_or(0, |field| field.1)
}

/// The line of a text in the program.
fn line_of(text: &str) -> u64 {
    let lines: Vec<&str> = PROGRAM.lines().collect();
    let at = lines.iter().position(|line| line.contains(text));
    at.expect("a line") as u64 + 1
}

#[test]
fn the_formats_contain_inlined_functions_and_lines() {
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_) = recorded(recorder, folder.path(), KINDS[0].1) else {
        return;
    };
    let run = |arguments: &str| {
        let output = in_shell(
            folder.path(),
            &format!("perfconv export -q perf.data {arguments}"),
        );
        assert!(output.success(), "{arguments}: {}", output.stderr);
    };
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a file");

    run("--inlines --mark inline -o a.folded");
    let folded = read("a.folded");
    assert!(
        folded.contains(";main;twice_[i];work;rounds_[i];mix_[i] "),
        "{folded}"
    );
    run("-o b.folded");
    assert!(!read("b.folded").contains("mix"));
    run("--inlines -o a.html");
    assert!(read("a.html").contains("\"mix\""));

    run("--inlines --lines -o a.speedscope.json");
    let speedscope: Value = serde_json::from_str(&read("a.speedscope.json")).expect("JSON");
    let frames = speedscope["shared"]["frames"].as_array().expect("frames");
    let call = line_of("a = work(");
    let is_call = |frame: &&Value| frame["name"] == "twice" && frame["line"] == call;
    let frame = frames.iter().find(is_call).expect("the first call");
    let file = frame["file"].as_str().expect("a file");
    assert!(file.ends_with("/program.c"), "{file}");

    run("--inlines --lines -o a.json.gz");
    let firefox: Value =
        serde_json::from_slice(&unpacked(&folder.path().join("a.json.gz"))).expect("JSON");
    let shared = &firefox["shared"];
    let string = |at: &Value| &shared["stringArray"][at.as_u64().expect("a number") as usize];
    let (frames, functions) = (&shared["frameTable"], &shared["funcTable"]);
    let count = frames["length"].as_u64().expect("a length") as usize;
    let mix = (0..count).find(|&at| {
        let function = frames["func"][at].as_u64().expect("a number") as usize;
        let is_mix = *string(&functions["name"][function]) == "mix";
        if is_mix {
            let source = functions["source"][function].as_u64().expect("a source") as usize;
            let file = string(&shared["sources"]["filename"][source]);
            assert!(file.as_str().expect("a name").ends_with("/program.c"));
            assert_eq!(functions["lineNumber"][function], line_of("uint64_t mix("));
        }
        is_mix && frames["line"][at] == line_of("x ^= x >> 31")
    });
    assert_eq!(frames["inlineDepth"][mix.expect("a frame")], 2);

    run("--inlines --lines -o a.pb.gz");
    let profile = unpacked(&folder.path().join("a.pb.gz"));
    let profile = fields(&profile);
    let of = |number: u64| profile.iter().filter(move |field| field.0 == number);
    let strings: Vec<&[u8]> = of(6).map(|field| field.2).collect();
    let functions: Vec<&[u8]> = of(5).map(|field| field.2).collect();
    let name = |id: u64| strings[number(functions[id as usize - 1], 2) as usize];
    let stacks: Vec<Vec<(&[u8], u64)>> = of(4)
        .map(|location| {
            let fields = fields(location.2);
            let lines = fields.iter().filter(|field| field.0 == 4);
            lines
                .map(|line| (name(number(line.2, 1)), number(line.2, 2)))
                .collect()
        })
        .collect();
    let calls = [
        (&b"mix"[..], line_of("x ^= x >> 31")),
        (b"rounds", line_of("x += mix(")),
        (b"work", line_of("sum += rounds(")),
    ];
    assert!(stacks.iter().any(|lines| **lines == calls), "{stacks:?}");
    let work = functions
        .iter()
        .find(|function| strings[number(function, 2) as usize] == b"work")
        .expect("work");
    assert_eq!(number(work, 5), line_of("uint64_t work("));
    assert!(strings[number(work, 4) as usize].ends_with(b"/program.c"));
    let mapping =
        of(3).find(|mapping| strings[number(mapping.2, 5) as usize].ends_with(b"/program"));
    let mapping = mapping.expect("the mapping of the program").2;
    assert_eq!([7, 8, 9, 10].map(|field| number(mapping, field)), [1; 4]);
}
