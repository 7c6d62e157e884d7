//! Names in perf maps: perf shows of the result, without the map, what it shows of the recording
//! with the map.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perfdata_convert::io::Output;
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_core::header::ContainerKind;
use perfdata_inject::jit::Images;
use perfdata_inject::perf_maps::PerfMaps;
use perfdata_tests::convert::convert;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{Endian, PerfVersion};
use perfdata_tests::skipped;

/// A runtime that writes a perf map: its name, the file with its program, and the command.
struct Runtime {
    name: &'static str,
    file: &'static str,
    program: &'static str,
    command: &'static [&'static str],
    /// A part of the names in generated code.
    shown: &'static str,
}

const RUNTIMES: [Runtime; 3] = [
    Runtime {
        name: "node",
        file: "fib.js",
        program: "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
let sum = 0;
for (let i = 0; i < 25; i++) sum += fib(25);
console.log(sum);",
        command: &["node", "--perf-basic-prof", "fib.js"],
        shown: "fib",
    },
    Runtime {
        name: "java 17 or newer",
        file: "Fib.java",
        program: "public class Fib {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] args) {
        long sum = 0;
        for (int i = 0; i < 20; i++) sum += fib(30);
        System.out.println(sum);
    }
}",
        command: &[
            "java",
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+DumpPerfMapAtExit",
            "Fib.java",
        ],
        shown: "Interpreter",
    },
    Runtime {
        name: "CPython 3.12 or newer",
        file: "fib.py",
        program: "def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
print(sum(fib(20) for _ in range(20)))",
        command: &["python3", "-X", "perf", "fib.py"],
        // Without frame pointers, no frame is in generated code.
        shown: "",
    },
];

/// Records a runtime with `recorder` to `perf.data` in `folder`. Returns its perf maps; none if the
/// runtime does not exist or writes none.
fn record(recorder: &Perf, runtime: &Runtime, folder: &Path) -> Vec<PathBuf> {
    fs::write(folder.join(runtime.file), runtime.program).expect("a file");
    let mut command = recorder.command();
    command
        .args(["record", "-q", "-e", "cpu-clock", "-F", "500", "-g"])
        .args(["-o", "perf.data", "--"])
        .args(runtime.command)
        .current_dir(folder)
        .stdin(Stdio::null());
    if !perf::run(command).is_ok_and(|said| said.success()) {
        return Vec::new();
    }
    let mut command = recorder.command();
    command
        .args([
            "script",
            "--show-task-events",
            "-F",
            "pid",
            "-i",
            "perf.data",
        ])
        .current_dir(folder);
    let said = perf::run(command).expect("perf can be started");
    let pids = said.stdout.split_whitespace();
    let mut pids: Vec<u32> = pids.filter_map(|word| word.parse().ok()).collect();
    pids.sort_unstable();
    pids.dedup();
    let maps = pids
        .into_iter()
        .map(|pid| PathBuf::from(format!("/tmp/perf-{pid}.map")));
    maps.filter(|map| map.exists()).collect()
}

/// Returns the lines of `perf script`. perf before 6.12 shows the offset of a frame in a file
/// instead of its address.
fn script(perf: &Perf, path: &Path) -> String {
    let mut command = perf.command();
    command
        .args([
            "script",
            "--no-inline",
            "-F",
            "comm,pid,tid,time,ip,sym",
            "-i",
        ])
        .arg(path);
    let said = perf::run(command).expect("perf can be started");
    assert!(said.success(), "{perf}: {}", said.stderr);
    let since: PerfVersion = "6.12".parse().expect("a release");
    if perf.version >= since {
        return said.stdout;
    }
    let symbol = |line: &str| match line.trim_start().split_once(' ') {
        Some((_, symbol)) if line.starts_with(char::is_whitespace) => symbol.to_owned(),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = said.stdout.lines().map(symbol).collect();
    lines.join("\n")
}

/// Hides files from perf, and puts them back.
struct Hidden<'a>(&'a Path, &'a [PathBuf]);

impl<'a> Hidden<'a> {
    fn new(folder: &'a Path, files: &'a [PathBuf]) -> Self {
        let hidden = Hidden(folder, files);
        files
            .iter()
            .for_each(|file| drop(fs::copy(file, hidden.place(file))));
        files.iter().for_each(|file| drop(fs::remove_file(file)));
        hidden
    }

    fn place(&self, file: &Path) -> PathBuf {
        self.0.join(file.file_name().expect("a name"))
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        for file in self.1 {
            drop(fs::copy(self.place(file), file));
        }
    }
}

#[test]
fn names_survive_without_the_map() {
    let native = |perf: &&Perf| perf.endian == Endian::Little;
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        skipped::note("perf");
        return;
    };
    for runtime in RUNTIMES {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let maps = record(recorder, &runtime, folder);
        if maps.is_empty() {
            skipped::note(format_args!(
                "{}, and a perf that may record cpu-clock",
                runtime.name
            ));
            continue;
        }
        let input = folder.join("perf.data");
        let expected: Vec<(&Perf, String)> = perf::all()
            .iter()
            .filter(native)
            .map(|perf| (perf, script(perf, &input)))
            .collect();
        let stream = convert(&input, Some(ContainerKind::Pipe), Vec::new()).expect("a stream");
        let hidden = Hidden::new(folder, &maps);
        for (number, from) in [&input, &stream.path()].into_iter().enumerate() {
            let output = folder.join(format!("out{number}.data"));
            let images = Images::In(output.with_extension("jit"));
            let stage = PerfMaps::new(images)
                .with_maps(folder.to_owned())
                .synced(false);
            let stages: Vec<Box<dyn Stage>> = vec![Box::new(stage)];
            let place = Output::create(&output, from, true).expect("a file");
            Conversion::new(stages)
                .to(Some(ContainerKind::File))
                .run(from, place.synced(false))
                .expect("it is converted");
            for (perf, expected) in &expected {
                let (name, found) = (runtime.name, script(perf, &output));
                assert!(found.contains(runtime.shown), "{perf} {name}: {found}");
                assert!(found == *expected, "{perf} {name}");
                if !runtime.shown.is_empty() {
                    assert!(
                        script(perf, from) != *expected,
                        "{perf} {name} needs no map"
                    );
                }
            }
        }
        drop(hidden);
        maps.iter().for_each(|map| drop(fs::remove_file(map)));
    }
}

/// readelf and nm accept an image, and nm shows its functions.
#[test]
fn images_are_elf_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(
        folder.join("perf-5.map"),
        "1000 20 first function\n1020 8 second\n",
    )
    .expect("a map");
    let input = folder.join("in.data");
    use perfdata_tests::told::{MONOTONIC, Told, made};
    let map = Told::Map(5, 0x1000, 0x1000, "//anon");
    made(
        &input,
        perfdata_core::Endian::Little,
        MONOTONIC,
        &[(1, map)],
    );
    let stage = PerfMaps::new(Images::In(folder.join("images")))
        .with_maps(folder.to_owned())
        .synced(false);
    let output = Output::create(&folder.join("out.data"), &input, true).expect("a file");
    Conversion::new(vec![Box::new(stage)])
        .run(&input, output.synced(false))
        .expect("it is converted");
    let image = folder.join("images/perf-5-1000.so");
    for (tool, options, expected) in [
        (
            "nm",
            &["-S"][..],
            "0000000000000020 0000000000000008 T second",
        ),
        (
            "readelf",
            &["-lSsWn"],
            "8 FUNC    GLOBAL DEFAULT    1 second",
        ),
    ] {
        let mut command = Command::new(tool);
        command.args(options).arg(&image);
        let Ok(said) = perf::run(command) else {
            skipped::note(tool);
            continue;
        };
        assert_eq!(said.stderr, "", "{tool}");
        assert!(said.stdout.contains(expected), "{tool}: {}", said.stdout);
    }
}
