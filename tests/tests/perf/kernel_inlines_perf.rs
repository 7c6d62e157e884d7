//! Inlined functions and source lines in kernels and modules of several machines, compared with
//! addr2line: images that are linked at kernel addresses and modules that are not linked, with their
//! debug information at the places of distributions. Every address of their code is looked up.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::skipped;
use perfdata_tests::synth::attr::sample_type::{CALLCHAIN, IDENTIFIER, IP, TID, TIME};
use perfdata_tests::synth::build_id::{self, Entry, HOST, Room};
use perfdata_tests::synth::feature_events::Event;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::kernel::mmap;
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::sample::context;
use perfdata_tests::synth::{Attr, Buf, Stamp, kind};

/// The first function of each unit has no inlined ones: GCC writes an empty list for ranges that begin
/// where a unit of DWARF 4 begins.
const FIRST: &str = r#"typedef unsigned long u64;
__asm__(".globl _text\n_text:\n.globl _stext\n_stext:");
u64 table[64];
__attribute__((noinline)) u64 notify(u64 x)
{
	return table[x & 63]++;
}
static inline __attribute__((always_inline)) u64 mix(u64 x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15u;
	return x;
}
static inline __attribute__((always_inline)) u64 rounds(u64 x, int n)
{
	for (int i = 0; i < n; i++)
		x += mix(x + i);
	return x;
}
__attribute__((noinline)) u64 first(u64 seed, int n)
{
	u64 sum = rounds(seed, n);
	table[sum & 63] += sum;
	notify(sum);
	return sum;
}
__attribute__((noinline)) u64 second(u64 seed, int n)
{
	if (n > 5)
		seed = rounds(seed, n) + table[n & 63];
	notify(seed);
	return rounds(seed ^ 1, 3);
}
"#;

const SECOND: &str = r#"typedef unsigned long u64;
extern u64 table[64];
extern u64 first(u64, int), second(u64, int);
__attribute__((noinline)) u64 start(int n)
{
	return n * table[1];
}
static inline __attribute__((always_inline)) u64 pick(int n) { return table[n & 63] * 7; }
u64 third(int n)
{
	u64 sum = 0;
	for (int i = 0; i < n; i++)
		sum += first(pick(i), i) ^ second(sum, n - i);
	return sum;
}
"#;

/// A machine: what its compiler is called, whether it is a big-endian one, its options for kernels, and
/// the address of the image.
struct Machine {
    name: &'static str,
    big: bool,
    flags: &'static str,
    text: u64,
    /// The address of the module.
    module: u64,
}

const MACHINES: [Machine; 3] = [
    Machine {
        name: "x86_64",
        big: false,
        flags: "-mcmodel=kernel -mno-red-zone",
        text: 0xffff_ffff_8100_0000,
        module: 0xffff_ffff_c040_0000,
    },
    Machine {
        name: "aarch64",
        big: false,
        flags: "",
        text: 0xffff_8000_0800_0000,
        module: 0xffff_8000_0040_0000,
    },
    Machine {
        name: "s390x",
        big: true,
        flags: "",
        text: 0x10_0000,
        module: 0x3ff_8000_0000,
    },
];

/// How far the image was moved in the recorded boot.
const MOVED: u64 = 0x1c00_0000;

/// Where the files are: the options, what is mapped as the module, and the commands that put
/// the files into `sys`. `$ID` and `$KO_ID` are the build IDs.
const PLACES: [(&str, &str, &str); 6] = [
    (
        "",
        "toy.ko",
        "cp vmlinux $DEBUG/boot/vmlinux-9.9 && cp toy.ko $MODULES",
    ),
    (
        "--vmlinux vmlinux",
        "toy.ko.xz",
        "xz -c toy.ko > $MODULES/toy.ko.xz",
    ),
    (
        "",
        "toy.ko.zst",
        "mkdir -p $DEBUG/.build-id/${ID:0:2} && cp vmlinux $DEBUG/.build-id/${ID:0:2}/${ID:2}.debug \
         && zstd -q toy.ko -o $MODULES/toy.ko.zst",
    ),
    (
        "--vmlinux vmlinux",
        "toy.ko.gz",
        "gzip -c toy.ko > $MODULES/toy.ko.gz",
    ),
    (
        "--vmlinux vmlinux",
        "toy.ko.xz",
        "$PREFIX-strip --strip-debug -o small.ko toy.ko && xz -c small.ko > $MODULES/toy.ko.xz \
         && mkdir -p $DEBUG/lib/modules/9.9/kernel \
         && $PREFIX-objcopy --only-keep-debug toy.ko $DEBUG/lib/modules/9.9/kernel/toy.ko.debug",
    ),
    (
        "--vmlinux packed",
        "toy.ko",
        "$PREFIX-objcopy --compress-debug-sections=zlib vmlinux packed \
         && mkdir -p $DEBUG/.build-id/${KO_ID:0:2} && $PREFIX-objcopy \
         --compress-debug-sections=zlib toy.ko $DEBUG/.build-id/${KO_ID:0:2}/${KO_ID:2}.debug",
    ),
];

/// Runs commands; returns their output if they succeed.
fn run(folder: &Path, commands: &str) -> Option<String> {
    let output = in_shell(folder, commands);
    output.success().then_some(output.stdout)
}

/// Compiles the image and the module.
fn compiled(folder: &Path, machine: &Machine, version: u32) -> bool {
    fs::write(folder.join("first.c"), FIRST).expect("a file");
    fs::write(folder.join("second.c"), SECOND).expect("a file");
    let Machine {
        name, flags, text, ..
    } = machine;
    let compile = format!(
        "set -e; P={name}-linux-gnu; \
         for unit in first second; do $P-gcc -c -O2 -g -gdwarf-{version} -fno-pic -fno-pie \
         -ffreestanding -fno-stack-protector {flags} $unit.c -o $unit.o; done; \
         $P-ld -Ttext={text:#x} --build-id -e third first.o second.o -o vmlinux; \
         $P-ld -r --build-id first.o second.o -o toy.ko; \
         $P-addr2line --version; xz --version; zstd --version"
    );
    run(folder, &compile).is_some()
}

/// Returns the build ID of a file.
fn build_id(folder: &Path, file: &str) -> String {
    let notes = run(folder, &format!("readelf -n {file}")).expect("notes");
    let id = notes
        .lines()
        .find_map(|line| line.trim().strip_prefix("Build ID: "));
    id.expect("a build ID").to_owned()
}

/// Returns all addresses in the functions of a file.
fn addresses(folder: &Path, file: &str) -> Vec<u64> {
    let symbols = run(folder, &format!("readelf -sW {file}")).expect("symbols");
    let functions = symbols.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_function = words.get(3) == Some(&"FUNC");
        let start = u64::from_str_radix(words.get(1)?, 16).ok()?;
        let size: u64 = words.get(2)?.parse().ok()?;
        is_function.then_some(start..start + size)
    });
    let mut all: Vec<u64> = functions.flatten().step_by(2).collect();
    all.sort_unstable();
    all
}

/// A function with its file and line.
type Line = (String, String);

/// Returns what addr2line finds at addresses, the innermost function first.
fn expected(folder: &Path, machine: &Machine, file: &str, addresses: &[u64]) -> Vec<Vec<Line>> {
    let list: String = addresses
        .iter()
        .map(|address| format!("{address:#x}\n"))
        .collect();
    fs::write(folder.join("addresses"), list).expect("a file");
    let section = if file == "toy.ko" { "-j .text" } else { "" };
    let command = format!(
        "{}-linux-gnu-addr2line {section} -a -i -f -e {file} < addresses",
        machine.name
    );
    let text = run(folder, &command).expect("addr2line");
    let mut all: Vec<Vec<Line>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().expect("a file and a line");
        let place = place.split(" (").next().expect("a place").to_owned();
        all.last_mut()
            .expect("an address")
            .push((line.to_owned(), place));
    }
    all
}

/// Writes a recording with a sample at each address of the image and of the module.
fn record(folder: &Path, machine: &Machine, module: &str, ids: [&str; 2], at: [&[u64]; 2]) {
    let parts = IDENTIFIER | IP | TID | TIME | CALLCHAIN;
    let attr = Attr::new(parts, "sample_id_all mmap comm task");
    let event = Event {
        name: "cpu-clock".into(),
        attr: attr.clone(),
        ids: vec![Stamp::SOME.id],
    };
    let path = format!("/lib/modules/9.9/kernel/{module}");
    let text = machine.text + MOVED;
    let mut scribe = Scribe::new(machine.big, attr, Stamp::SOME);
    for (place, name) in [
        ([text, 0x10_0000, text], "[kernel.kallsyms]_text"),
        ([machine.module, 0x1_0000, 0], &*path),
    ] {
        scribe.kernel("", kind::MMAP, misc::KERNEL, |b| {
            mmap(b, (u32::MAX, 0), place, name)
        });
    }
    let image = at[0].iter().map(|address| address + MOVED);
    let all = image.chain(at[1].iter().map(|offset| machine.module + offset));
    for ip in all {
        scribe.sample_in("", misc::KERNEL, |sample| {
            (sample.ip, sample.callchain) = (ip, vec![context::KERNEL, ip]);
        });
    }
    let bytes = |id: &str| -> Vec<u8> {
        let digits = (0..id.len()).step_by(2);
        let bytes = digits.map(|at| u8::from_str_radix(&id[at..at + 2], 16));
        bytes.map(|byte| byte.expect("digits")).collect()
    };
    let ids = ids.map(bytes);
    let entries = [("[kernel.kallsyms]", &ids[0]), (&*path, &ids[1])].map(|(name, id)| Entry {
        misc: misc::KERNEL,
        pid: HOST,
        build_id: id,
        size_byte: true,
        name,
        room: Room::Name8,
    });
    let mut file = File::new(machine.big, vec![event]);
    file.data = stream(&scribe.cases);
    let text = |text: &str| Buf::new(machine.big).str(text).bytes;
    file.features = vec![
        (2, build_id::section(machine.big, &entries)),
        (3, text("another")),
        (4, text("9.9")),
        (6, text(machine.name)),
    ];
    fs::write(folder.join("perf.data"), file.bytes()).expect("a file");
}

/// Returns the functions with their files and lines in the text of each sample.
fn found(folder: &Path, options: &str) -> Vec<Vec<Line>> {
    let command = format!(
        "perfconv export -q perf.data --sysroot sys {options} --to perf-script --inlines \
         -F ip,sym,srcline --full-source-path -o -"
    );
    let output = in_shell(folder, &command);
    assert!(output.success(), "{}", output.stderr);
    let samples = output.stdout.split("\n\n").map(str::trim);
    let samples = samples.filter(|sample| !sample.is_empty()).map(|sample| {
        let mut lines = sample.lines();
        let mut functions = Vec::new();
        while let (Some(frame), Some(place)) = (lines.next(), lines.next()) {
            let name = frame.split_whitespace().nth(1).expect("a name");
            let place = place.trim().trim_end_matches(" (inlined)");
            functions.push((name.to_owned(), place.to_owned()));
        }
        functions
    });
    samples.collect()
}

#[test]
fn lines_in_kernels_and_modules_are_those_of_addr2line() {
    for (machine, version) in MACHINES
        .iter()
        .flat_map(|machine| [(machine, 5), (machine, 4)])
    {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        if !compiled(folder, machine, version) {
            skipped::note(format_args!(
                "{0}-linux-gnu-gcc, its binutils, xz and zstd",
                machine.name
            ));
            break;
        }
        let ids = ["vmlinux", "toy.ko"].map(|file| build_id(folder, file));
        let at = ["vmlinux", "toy.ko"].map(|file| addresses(folder, file));
        let lines: Vec<Vec<Line>> = ["vmlinux", "toy.ko"]
            .into_iter()
            .zip(&at)
            .flat_map(|(file, at)| expected(folder, machine, file, at))
            .collect();
        let inlined = lines.iter().filter(|functions| functions.len() > 1).count();
        assert!(inlined > 50, "{}: {inlined}", machine.name);
        for (options, module, put) in PLACES {
            let put = format!(
                "set -e; rm -rf sys; PREFIX={}-linux-gnu; ID={}; KO_ID={}; DEBUG=sys/usr/lib/debug; \
                 MODULES=sys/lib/modules/9.9/kernel; mkdir -p $DEBUG/boot $MODULES; {put}",
                machine.name, ids[0], ids[1]
            );
            let output = in_shell(folder, &put);
            assert!(output.success(), "{put}: {}", output.stderr);
            record(
                folder,
                machine,
                module,
                [&ids[0], &ids[1]],
                [&at[0], &at[1]],
            );
            let found = found(folder, options);
            assert_eq!(found.len(), lines.len());
            let mut wrong = BTreeMap::new();
            for ((address, ours), theirs) in at.iter().flatten().zip(&found).zip(&lines) {
                if ours != theirs {
                    wrong.insert(address, (ours, theirs));
                }
            }
            assert!(
                wrong.is_empty(),
                "{}, DWARF {version}, {module}: {} of {}: {:#x?}",
                machine.name,
                wrong.len(),
                found.len(),
                wrong.first_key_value()
            );
        }
    }
}
