//! `perfconv export` on the command line.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::{perf, recordings};

/// Runs commands in a folder with the recording in.data, which another machine made.
fn run(folder: &Path, commands: &str) -> perf::Output {
    let input = folder.join("in.data");
    if !input.exists() {
        let fixture = recordings::fixture("6.1-x86_64-file-g").path;
        fs::copy(fixture, &input).expect("a fixture");
    }
    in_shell(folder, commands)
}

fn status(output: &perf::Output) -> Option<i32> {
    output.status.and_then(|status| status.code())
}

fn sum(text: &str) -> u64 {
    let counts = text.lines().map(|line| {
        let (_, count) = line.rsplit_once(' ').expect("a count");
        count.parse::<u64>().expect("a number")
    });
    counts.sum()
}

#[test]
fn the_name_of_the_output_tells_the_format() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, start) in [
        ("a.folded", &b""[..]),
        ("a.speedscope.json", b"{\"$schema\":"),
        ("a.pb.gz", b"\x1f\x8b"),
        ("a.json.gz", b"\x1f\x8b"),
        ("a.html", b"<!doctype html>"),
        ("a.svg", b"<?xml"),
        ("a.otlp", b"\x0a"),
        ("a.txt", b"perf"),
    ] {
        let output = run(
            folder.path(),
            &format!("perfconv export -q in.data -o {name}"),
        );
        assert!(output.success(), "{}", output.stderr);
        let bytes = fs::read(folder.path().join(name)).expect("an output");
        assert!(bytes.starts_with(start) && bytes.len() > 100, "{name}");
    }
    let unknown = run(folder.path(), "perfconv export in.data -o a.other");
    assert_eq!(status(&unknown), Some(2));
    assert!(unknown.stderr.contains("--to folded"), "{}", unknown.stderr);
    assert!(!folder.path().join("a.other").exists());
    // An existing file remains.
    let again = run(folder.path(), "perfconv export in.data -o a.folded");
    assert_eq!(status(&again), Some(2));
    assert!(again.stderr.contains("exists"), "{}", again.stderr);
}

#[test]
fn selections_and_counts_are_those_of_conversions() {
    let folder = tempfile::tempdir().expect("a folder");
    let export = |words: &str| {
        let command = format!("perfconv export -q --no-symbols --to folded in.data -o - {words}");
        let output = run(folder.path(), &command);
        assert!(output.success(), "{}", output.stderr);
        output.stdout
    };
    let all = sum(&export("--count samples"));
    let first = sum(&export("--count samples --time 0%-50%"));
    let rest = sum(&export("--count samples --time 0%-50% --invert"));
    assert!(first > 0 && rest > 0);
    assert_eq!(first + rest, all);
    assert_eq!(sum(&export("--count samples --first 3")), 3);
    assert!(sum(&export("")) > all, "periods are larger than 1");
    // The same samples by way of a recording.
    let slice = "perfconv -q in.data --time 0%-50% -o half.data && \
                 perfconv export -q --no-symbols half.data --to folded -o -";
    let slice = run(folder.path(), slice);
    assert_eq!(slice.stdout, export("--time 0%-50%"));
    // A pipe and compressed records contain the same samples.
    let pipe = "perfconv -q file2pipe --compress in.data -o - | perfconv export -q --no-symbols --to folded -o -";
    assert_eq!(run(folder.path(), pipe).stdout, export(""));
    let roots = export("--root tid");
    let root = roots.lines().next().and_then(|line| line.split(';').next());
    let (_, ids) = root.and_then(|root| root.rsplit_once('-')).expect("IDs");
    assert!(ids.split('/').all(|id| id.parse::<u32>().is_ok()), "{ids}");
    assert!(export("--mark kernel").contains("_[k]"));
}

/// perf shows the symbols of the running kernel for any recording. This machine may have the
/// recorded libraries, but not the recorded kernel.
#[test]
fn names_of_another_kernel_are_not_invented() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "perfconv export in.data --mark kernel --to folded -o -";
    let output = run(folder.path(), command);
    assert!(output.success(), "{}", output.stderr);
    let frames = output.stdout.lines().flat_map(|line| {
        let (stack, _) = line.rsplit_once(' ').expect("a count");
        stack.split(';').skip(1)
    });
    let is_kernel = |frame: &&str| frame.ends_with("_[k]") && !frame.contains("[vdso]");
    let kernel: Vec<&str> = frames.filter(is_kernel).collect();
    assert!(!kernel.is_empty(), "{}", output.stdout);
    for frame in kernel {
        assert_eq!(frame, "[[kernel.kallsyms]]_[k]");
    }
    assert!(
        output.stderr.contains("[kernel.kallsyms]: ")
            && output.stderr.contains("--vmlinux or --kallsyms"),
        "{}",
        output.stderr
    );
    // The user's own list of the recorded kernel names its addresses.
    let list = "ffffffff80000000 T whole_kernel\nffffffffffff0000 T end\n";
    fs::write(folder.path().join("kallsyms"), list).expect("it can be written");
    let output = run(
        folder.path(),
        "perfconv export -q --kallsyms kallsyms in.data --to folded -o -",
    );
    assert!(output.success(), "{}", output.stderr);
    assert!(output.stdout.contains(";whole_kernel"), "{}", output.stdout);
    let missing = run(
        folder.path(),
        "perfconv export -q --kallsyms none in.data --to folded -o -",
    );
    assert_eq!(status(&missing), Some(2));
}

/// A recording whose writer was killed ends in a part of a record.
#[test]
fn the_last_record_of_killed_recordings_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let cut = "head -c 20000 in.data > cut.data && perfconv recover -q cut.data -o whole.data && \
               perfconv file2pipe -q whole.data -o pipe.data && head -c -20 pipe.data > cut.pipe && \
               perfconv export --no-symbols cut.pipe --count samples -o cut.folded";
    let output = run(folder.path(), cut);
    assert!(output.success(), "{}", output.stderr);
    assert!(
        output.stderr.contains("the output does not contain"),
        "{}",
        output.stderr
    );
    let text = fs::read_to_string(folder.path().join("cut.folded")).expect("an output");
    assert!(sum(&text) > 10, "{text}");
}

#[test]
fn corrupt_recordings_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let corrupt = "perfconv file2pipe -q in.data -o pipe.data && size=$(stat -c %s pipe.data) && \
                   head -c $((size / 2)) pipe.data > bad.data && head -c 600 /bin/true >> bad.data && \
                   tail -c 900 pipe.data >> bad.data";
    assert!(run(folder.path(), corrupt).success());
    let output = run(folder.path(), "perfconv export bad.data -o bad.folded");
    assert_eq!(status(&output), Some(1), "{}", output.stderr);
    assert!(
        output.stderr.contains("perfconv recover"),
        "{}",
        output.stderr
    );
    assert!(!folder.path().join("bad.folded").exists());
}

/// An option that would have no effect is an error, which names a format that has it.
#[test]
fn options_of_other_formats_are_refused() {
    const FORMATS: [&str; 13] = [
        "folded",
        "flamegraph",
        "svg",
        "pprof",
        "firefox",
        "speedscope",
        "otlp-1.10",
        "perf-script",
        "bolt",
        "llvm-profgen",
        "autofdo",
        "parquet",
        "arrow",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (options, formats) in [
        ("--diff in.data", &FORMATS[1..3]),
        ("--count samples", &FORMATS[..1]),
        ("--count period", &FORMATS[..1]),
        ("--root pid", &FORMATS[..1]),
        ("--mark kernel", &FORMATS[..1]),
        ("--label pid", &["pprof", "otlp-1.10"]),
        ("--like 6.1", &["perf-script"]),
        ("-F ip", &["perf-script"]),
        ("--ns", &["perf-script"]),
        ("--max-frames 5", &["perf-script"]),
        ("--sched-plugin", &["perf-script"]),
        ("--full-source-path", &["perf-script"]),
        ("--binary x", &FORMATS[8..11]),
        ("--columns time", &FORMATS[11..]),
    ] {
        for format in FORMATS {
            let command = format!("perfconv export in.data --to {format} -o out {options}");
            let output = run(folder.path(), &command);
            let is_refused = output.stderr.starts_with("error: '--")
                && output
                    .stderr
                    .contains(&format!(", such as --to {}\n", formats[0]));
            assert_eq!(
                is_refused,
                !formats.contains(&format),
                "{command}: {}",
                output.stderr
            );
            if is_refused {
                assert_eq!(status(&output), Some(2), "{command}");
                assert!(!folder.path().join("out").exists(), "{command}");
            }
            let _ = fs::remove_file(folder.path().join("out"));
            let _ = fs::remove_dir_all(folder.path().join("out"));
        }
    }
    // Also by the ending of the name, and for directories of tables.
    for output in ["-o a.pb.gz", "--append-to tables"] {
        let command = format!("perfconv export in.data --mark jit {output}");
        let output = run(folder.path(), &command);
        assert_eq!(status(&output), Some(2), "{command}");
        assert!(
            output.stderr.contains("'--mark' needs folded stacks"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn flame_graphs_show_differences() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "perfconv export in.data --diff in.data --first 10 -o a.svg";
    let output = run(folder.path(), command);
    assert!(output.success(), "{}", output.stderr);
    assert_eq!(output.stderr.matches("10 samples").count(), 2);
    let picture = fs::read_to_string(folder.path().join("a.svg")).expect("a picture");
    assert!(picture.contains("100.00%, +0.00%)"), "{picture}");
    // The output must not be an input.
    let command = "perfconv export -f in.data --diff other.html -o other.html";
    let output = run(
        folder.path(),
        &format!("cp in.data other.html && {command}"),
    );
    assert_eq!(status(&output), Some(2), "{}", output.stderr);
}

#[test]
fn inlined_functions_and_lines_need_a_format_that_contains_them() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, step) in [
        ("--lines -o a.txt", "-F +srcline"),
        ("-F comm,srcline -o a.txt", "'ip'"),
        ("-F ip,srccode -o a.txt", "source files are not read"),
        ("--lines -o a.folded", "--to pprof"),
        ("--lines -o a.html", "--to pprof"),
        ("--lines -o a.svg", "--to pprof"),
        ("--inlines --no-symbols -o a.folded", "--no-symbols"),
    ] {
        let refused = run(
            folder.path(),
            &format!("perfconv export in.data {arguments}"),
        );
        // The fields of events are checked when these are read.
        let expected = if arguments.contains("comm") { 1 } else { 2 };
        assert_eq!(status(&refused), Some(expected), "{arguments}");
        assert!(refused.stderr.contains(step), "{}", refused.stderr);
    }
    // Without the inlined functions, which libraries of this machine may have, the stacks are the
    // same ones.
    let stacks = |options: &str| {
        let command = format!("perfconv export -q in.data {options} --to folded -o -");
        let output = run(folder.path(), &command);
        assert!(output.success(), "{}", output.stderr);
        let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
        for line in output.stdout.lines() {
            let (stack, count) = line.rsplit_once(' ').expect("a count");
            let frames = stack.split(';').filter(|frame| !frame.ends_with("_[i]"));
            let frames: Vec<&str> = frames.collect();
            *stacks.entry(frames.join(";")).or_default() += count.parse::<u64>().expect("a number");
        }
        stacks
    };
    assert_eq!(stacks("--inlines --mark inline"), stacks(""));
}

#[test]
fn recordings_without_samples_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = recordings::fixture("6.12-x86_64-stat-record-group").path;
    let export = format!("perfconv export {} -o a.html", input.display());
    let output = run(folder.path(), &export);
    assert_eq!(status(&output), Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("no samples"), "{}", output.stderr);
    assert!(!folder.path().join("a.html").exists());
    let empty = "perfconv export in.data --pid 1 --allow-empty --to folded -o -";
    let output = run(folder.path(), empty);
    assert!(output.success() && output.stdout.is_empty());
}

/// pprof runs a program with this name.
#[test]
fn pprof_reads_recordings_by_another_name_of_perfconv() {
    let folder = tempfile::tempdir().expect("a folder");
    let commands = "ln -s \"$(command -v perfconv)\" perf_to_profile && : > a.pb.gz && \
                    exec 3< a.pb.gz && \
                    ./perf_to_profile -i in.data -o a.pb.gz -f -j && \
                    cat <&3 > read.pb.gz && perfconv export in.data -o b.pb.gz";
    let output = run(folder.path(), commands);
    assert!(output.success(), "{}", output.stderr);
    let read = |name: &str| fs::read(folder.path().join(name)).expect("a profile");
    assert!(read("a.pb.gz").len() > 100);
    // pprof opened the file before.
    assert_eq!(read("read.pb.gz"), read("a.pb.gz"));
    // The output remains if the input cannot be read.
    let bad = "./perf_to_profile -f -i a.pb.gz -o b.pb.gz";
    assert_eq!(status(&run(folder.path(), bad)), Some(1));
    assert_eq!(read("a.pb.gz"), read("b.pb.gz"));
}

#[test]
fn fields_are_those_of_perf_script() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = |words: &str| {
        let command =
            format!("perfconv export -q --no-symbols --to perf-script in.data -o - {words}");
        run(folder.path(), &command)
    };
    let line = |words: &str| script(words).stdout.lines().next().map(str::to_owned);
    let times = script("-F comm,time").stdout;
    assert!(times.lines().count() > 50, "{times}");
    assert!(
        times
            .lines()
            .all(|line| line.starts_with(' ') && line.ends_with(": "))
    );
    let nanoseconds = script("-F comm,time --ns").stdout;
    assert_eq!(nanoseconds.len(), times.len() + 3 * times.lines().count());
    let changed = line("-F +pid,-time -F -period").expect("a line");
    assert!(changed.contains('/') && !changed.contains('.'), "{changed}");
    let sizes = ["6.1", "6.12", "7.2"].map(|like| script(&format!("--like {like}")).stdout.len());
    assert!(sizes[0] < sizes[1] && sizes[1] == sizes[2], "{sizes:?}");
    assert_eq!(
        script("--max-frames 1")
            .stdout
            .lines()
            .filter(|line| line.starts_with('\t'))
            .count(),
        script("--max-frames 1")
            .stdout
            .lines()
            .filter(|line| line.contains("cpu-clock"))
            .count()
    );
    for (words, expected) in [
        ("-F comm,nothing", "unknown field 'nothing'"),
        ("-F +comm,time", "with and without a sign"),
        ("-F srccode", "'srccode' is not supported"),
        ("-F other:comm", "unknown type of event 'other'"),
        ("-F hw:trace", "no field 'trace'"),
        ("-F comm,cgroup", "have no field 'cgroup'"),
    ] {
        let refused = script(words);
        // Only the recording shows that its samples do not have a field.
        let number = if words.contains("cgroup") { 1 } else { 2 };
        assert_eq!(
            status(&refused),
            Some(number),
            "{words}: {}",
            refused.stderr
        );
        assert!(
            refused.stderr.contains(expected),
            "{words}: {}",
            refused.stderr
        );
    }
}

/// Without debug information, source lines are addresses in objects, as in perf.
#[test]
fn source_lines_follow_frames() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "perfconv export -q --no-symbols --to perf-script in.data -F ip,dso,srcline -o -";
    let text = run(folder.path(), command).stdout;
    let frames = text.lines().filter(|line| line.starts_with('\t'));
    let lines: Vec<&str> = text.lines().collect();
    let mut kinds = [0, 0, 0];
    for (at, line) in lines.iter().enumerate() {
        let Some(frame) = line.strip_prefix('\t') else {
            continue;
        };
        let (address, object) = frame.trim().split_once(" (").expect("an object");
        let object = object.strip_suffix(')').expect("an object");
        let source = lines[at + 1].strip_prefix("  ");
        let kind = match object {
            "[unknown]" => {
                assert_eq!(source, None, "{frame}");
                0
            }
            "[kernel.kallsyms]" => {
                assert_eq!(source, Some(&*format!("{object}[{address}]")));
                1
            }
            path => {
                let name = path.rsplit('/').next().expect("a name");
                let source = source.expect("a source line");
                assert!(source.starts_with(&format!("{name}[")), "{frame}: {source}");
                2
            }
        };
        kinds[kind] += 1;
    }
    assert_eq!(kinds.iter().sum::<usize>(), frames.count());
    assert!(kinds[1] > 10 && kinds[2] > 10, "{kinds:?}");
}

/// Every export unwinds user stacks: it gives what `--convert-callchain` before it gives.
#[test]
fn user_stacks_are_unwound() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = recordings::fixture("6.1-x86_64-file-dwarf-u").path;
    let input = input.display();
    let unwind = "perfconv convert -q --convert-callchain --frame-pointers";
    let convert = format!("{unwind} {input} -o a.data");
    assert!(run(folder.path(), &convert).success());
    for format in [
        "folded",
        "pprof",
        "firefox",
        "speedscope",
        "otlp-1.10",
        "svg",
        "perf-script",
        "arrow",
    ] {
        let more = match format {
            "folded" => "--count samples",
            "perf-script" => "-F comm,tid,time,event,ip,dso",
            _ => "",
        };
        let export = format!("perfconv export --no-symbols {more} --to {format} -o");
        for words in [
            format!("cat {input} | {export} unwound -"),
            format!("cat {input} | {export} recorded --no-unwind -"),
            format!("cat a.data | {export} steps -"),
        ] {
            let output = run(folder.path(), &words);
            assert!(output.success(), "{words}: {}", output.stderr);
        }
        let read = |name| {
            let path = folder.path().join(name);
            let bytes = fs::read(&path).expect("an output");
            fs::remove_file(path).expect("an output");
            bytes
        };
        let (unwound, recorded, steps) = (read("unwound"), read("recorded"), read("steps"));
        assert!(unwound != recorded, "{format}");
        // A stream of columns contains the attributes, which differ.
        assert!(unwound == steps || format == "arrow", "{format}");
        if format == "folded" {
            let texts = [unwound, recorded].map(|text| String::from_utf8(text).expect("text"));
            assert_eq!(texts.map(|text| sum(&text)), [3, 3]);
        }
    }
    let frames = |words: &str| -> Vec<String> {
        let output = run(folder.path(), &format!("perfconv dump --resolved {words}"));
        assert!(output.success(), "{}", output.stderr);
        let lines = output.stdout.lines();
        let frames = lines.filter(|line| line.starts_with("    "));
        frames.map(str::to_owned).collect()
    };
    let unwound = frames(&format!("{input}"));
    assert_eq!(unwound, frames("a.data"));
    assert!(frames(&format!("--no-unwind {input}")).len() < unwound.len());
}

/// A note says why user callchains end early, by object.
#[test]
fn notes_say_which_user_stacks_are_not_unwound() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = recordings::fixture("6.1-x86_64-file-dwarf-u").path;
    let input = input.display();
    let export = "perfconv export --no-symbols --to folded";
    let said = |words: &str| {
        let output = run(
            folder.path(),
            &format!("{export} {words} -f -o out {input}"),
        );
        assert!(output.success(), "{}", output.stderr);
        output.stderr
    };
    let default = said("");
    assert!(default.contains("user callchains unwound, "), "{default}");
    assert!(default.contains("(--sysroot"), "{default}");
    assert!(!said("--no-unwind").contains("unwound"));
}
