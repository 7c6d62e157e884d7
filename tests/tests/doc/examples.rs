//! The examples of the three crates work as documented.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use perfdata_core::feature::FeatureId;
use perfdata_core::read::RecordingReader;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_tests::{
    convert::{self, Whole},
    perf::{self, Question},
    recordings,
};

/// Returns the output of an example.
fn run<A: AsRef<OsStr>>(name: &str, args: &[A]) -> String {
    let mut command: Command = convert::example(name);
    command.args(args);
    let output = perf::run(command).expect("the example can be started");
    assert!(output.success(), "{name}: {}", output.stderr);
    output.stdout
}

fn read(path: &Path) -> Whole {
    Whole::read_file(path).expect("a recording")
}

/// A recording of callchains in every container, and with compressed records. The directory is
/// another recording, which is compared with the file made from it.
struct Forms {
    folder: tempfile::TempDir,
}

impl Forms {
    fn make() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = recordings::fixture("7.2-x86_64-file-g").path;
        let directory = recordings::fixture("7.2-x86_64-file-threads").path;
        let commands = format!(
            "perfconv -q convert {0} -o file && perfconv -q file2pipe {0} -o pipe && perfconv -q --compress {0} -o packed \
             && perfconv -q --compress --to pipe {0} -o packed-pipe && perfconv -q --to dir {1} -o directory \
             && perfconv -q {1} -o merged",
            file.display(),
            directory.display()
        );
        let output = convert::in_shell(folder.path(), &commands);
        assert!(output.success(), "{}", output.stderr);
        Forms { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The forms whose records must be the same. The first of each is an uncompressed file.
    const SAME: [&[&str]; 2] = [
        &["file", "pipe", "packed", "packed-pipe"],
        &["merged", "directory"],
    ];
}

fn count(whole: &Whole, sample: bool) -> usize {
    whole
        .records
        .iter()
        .filter(|record| (record.1 == RecordType::SAMPLE) == sample)
        .count()
}

/// Returns the times of the samples.
fn times(whole: &Whole) -> Vec<u64> {
    let samples = whole
        .records
        .iter()
        .filter(|(_, kind)| *kind == RecordType::SAMPLE);
    let time = |(at, _): &(usize, RecordType)| {
        let raw =
            RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record");
        whole.recording.events.sample_time(&raw).expect("a time")
    };
    samples.map(time).collect()
}

/// The output for an uncompressed file is complete, and the output for every other form is the
/// same.
#[test]
fn examples_read_every_form() {
    let forms = Forms::make();
    for same in Forms::SAME {
        let plain = read(&forms.path(same[0]));
        for name in ["print", "samples_by_comm", "callchains"] {
            let lines = |form: &str| -> Vec<String> {
                let text = run(name, &[forms.path(form)]);
                // Offsets of records differ, and metadata are records only in a pipe.
                let line = |line: &str| match name {
                    "print" => line.split_once(' ').map(|(_, rest)| rest.to_owned()),
                    _ => Some(line.to_owned()),
                };
                let is_left = |line: &String| {
                    !["HEADER_", "FINISHED_", "EVENT_UPDATE"]
                        .iter()
                        .any(|start| line.starts_with(start))
                };
                text.lines().filter_map(line).filter(is_left).collect()
            };
            let expected = lines(same[0]);
            assert!(!expected.is_empty(), "{name}");
            if name != "samples_by_comm" {
                let samples = expected
                    .iter()
                    .filter(|line| name == "callchains" || line.starts_with("SAMPLE"))
                    .count();
                assert_eq!(samples, count(&plain, true), "{name}");
            }
            for form in &same[1..] {
                assert_eq!(lines(form), expected, "{name} of {form}");
            }
        }
    }
}

/// A recording that ends within a record is an error, after the output of the readable part.
#[test]
fn examples_tell_of_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cut.data");
    let bytes =
        std::fs::read(recordings::fixture("6.1-x86_64-pipe-default").path).expect("a fixture");
    std::fs::write(&path, &bytes[..bytes.len() - 3]).expect("a file can be written");
    for name in ["print", "samples_by_comm", "callchains"] {
        let mut command: Command = convert::example(name);
        command.arg(&path);
        let output = perf::run(command).expect("it can be started");
        assert!(
            !output.success() && output.stderr.contains("needed"),
            "{name}: {}",
            output.stderr
        );
    }
}

#[test]
fn print_shows_every_record() {
    let path = recordings::root().join("fixtures/6.1-s390x-file-default.data");
    let text = run("print", &[&path]);
    assert_eq!(text.lines().count(), read(&path).records.len());
    let comm = text
        .lines()
        .find(|line| line.contains("COMM"))
        .expect("a COMM record");
    assert!(
        comm.contains(" pid=") && comm.contains(" comm=\""),
        "{comm}"
    );
}

#[test]
fn a_recording_built_from_nothing_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("built.data");
    run("build", &[&path]);
    let whole = read(&path);
    let kinds: Vec<RecordType> = whole.records.iter().map(|record| record.1).collect();
    assert_eq!(
        kinds,
        [
            RecordType::COMM,
            RecordType::SAMPLE,
            RecordType::SAMPLE,
            RecordType::SAMPLE
        ]
    );
    assert!(RecordingReader::open(std::fs::read(&path).expect("the file")).is_ok());

    for perf in perf::all()
        .iter()
        .filter(|perf| perf.endian == recordings::Endian::Little)
    {
        let script = perf
            .ask(Question::Script, &path)
            .expect("perf can be started");
        assert_eq!(
            script.stdout.matches("cpu-clock").count(),
            3,
            "{perf}: {}{}",
            script.stdout,
            script.stderr
        );
        let header = perf
            .ask(Question::Header, &path)
            .expect("perf can be started");
        assert!(
            header.stdout.contains("hostname : nowhere"),
            "{perf}: {}",
            header.stdout
        );
    }
}

#[test]
fn a_stage_of_ones_own_keeps_the_samples_of_a_range() {
    let forms = Forms::make();
    for same in Forms::SAME {
        let before = read(&forms.path(same[0]));
        let mut times = times(&before);
        times.sort_unstable();
        let range = times[3]..=times[times.len() - 4];
        let expected = times.iter().filter(|time| range.contains(time)).count();
        assert!(expected > 10 && expected < times.len());
        let [from, to] = [range.start(), range.end()].map(ToString::to_string);
        for form in same {
            let (input, output) = (forms.path(form), forms.path("between"));
            run(
                "between",
                &[
                    input.as_os_str(),
                    OsStr::new(&from),
                    OsStr::new(&to),
                    output.as_os_str(),
                ],
            );
            let plain = convert::in_shell(
                forms.folder.path(),
                "perfconv -q --decompress between -o plain -f",
            );
            assert!(plain.success(), "{}", plain.stderr);
            let after = read(&forms.path("plain"));
            assert!(
                self::times(&after).iter().all(|time| range.contains(time)),
                "{form}"
            );
            assert_eq!(count(&after, true), expected, "{form}");
            if !form.contains("pipe") {
                // perf counts the COMPRESSED feature among the features only if there are
                // compressed records.
                assert_eq!(count(&after, false), count(&before, false), "{form}");
                // The times are those of the remaining samples.
                let mut features = [&before, &after].map(|whole| whole.recording.features.clone());
                let times = features
                    .each_mut()
                    .map(|features| features.remove(&FeatureId::SAMPLE_TIME));
                assert!(features[0] == features[1] && times[0] != times[1], "{form}");
            }
            std::fs::remove_file(output).expect("it is there");
        }
    }
}

#[test]
fn samples_are_counted_as_perf_counts_them() {
    // A program that starts another, names that change, hundreds of threads.
    let fixtures = [
        "file-default",
        "file-z",
        "file-g",
        "pipe-default",
        "pipe-z",
        "pipe-switch-ns-cg",
        "file-threads",
        "file-threads-z",
    ];
    for fixture in fixtures.map(|name| format!("6.1-x86_64-{name}")) {
        let path = recordings::fixture(&fixture).path;
        let text = run("samples_by_comm", &[&path]);
        let counts: Vec<(usize, &str)> = text
            .lines()
            .filter_map(|line| line.trim().split_once("  "))
            .map(|(count, name)| (count.parse().expect("a number"), name))
            .collect();
        for perf in perf::all()
            .iter()
            .filter(|perf| perf.endian == recordings::Endian::Little)
        {
            let mut command = perf.command();
            command.args(["script", "-F", "comm", "-i"]).arg(&path);
            let script = perf::run(command).expect("perf can be started");
            let comms: Vec<&str> = script
                .stdout
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect();
            assert_eq!(
                comms.len(),
                counts.iter().map(|(count, _)| count).sum::<usize>(),
                "{perf}, {fixture}"
            );
            for (count, name) in &counts {
                assert_eq!(
                    comms.iter().filter(|comm| comm == &name).count(),
                    *count,
                    "{perf}, {fixture}: {name}"
                );
            }
        }
        assert!(!counts.is_empty(), "{fixture}: {text}");
    }
}

#[test]
fn callchains_name_the_objects() {
    let path = recordings::fixture("7.2-x86_64-file-g").path;
    let text = run("callchains", &[&path]);
    let samples = read(&path)
        .records
        .iter()
        .filter(|record| record.1 == RecordType::SAMPLE)
        .count();
    assert_eq!(text.lines().count(), samples);
    assert!(
        text.lines()
            .any(|line| line.matches(';').count() > 2 && line.contains("+0x")),
        "{text}"
    );
}

#[test]
fn stacks_become_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("stacks.txt"), "main;work;sort 3\nmain;print 1\n")
        .expect("a file can be written");
    run(
        "from_stacks",
        &[
            path("stacks.txt"),
            path("stacks.data"),
            path("perf-4242.map"),
        ],
    );
    let names = std::fs::read_to_string(path("perf-4242.map")).expect("names");
    assert_eq!(
        names,
        "100000 100 main\n100300 100 print\n100200 100 sort\n100100 100 work\n"
    );
    let chains = run("callchains", &[path("stacks.data")]);
    let sort = "//anon+0x100080;//anon+0x100180;//anon+0x100280";
    let lines: Vec<&str> = chains.lines().collect();
    assert_eq!(lines, [sort, sort, sort, "//anon+0x100080;//anon+0x100380"]);
}

#[test]
fn features_are_stripped() {
    let forms = Forms::make();
    for form in Forms::SAME.concat() {
        let (input, output) = (forms.path(form), forms.path("bare"));
        let words = ["ARCH", "EVENT_DESC"].map(OsStr::new);
        let gone = run(
            "strip_features",
            &[&[input.as_os_str(), output.as_os_str()][..], &words].concat(),
        );
        assert!(
            gone.contains("HOSTNAME") && !gone.contains("ARCH"),
            "{form}: {gone}"
        );
        let after = read(&output);
        let mut left: Vec<FeatureId> = after.recording.features.keys().copied().collect();
        // A file keeps an empty one.
        left.retain(|id| *id != FeatureId::HOSTNAME);
        assert_eq!(left, [FeatureId::ARCH, FeatureId::EVENT_DESC], "{form}");
        assert!(count(&after, true) > 10, "{form}");
        std::fs::remove_file(output).expect("it is there");
    }
}

#[test]
fn recordings_are_merged_and_sliced() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("merged.data");
    let input = recordings::fixture("7.2-x86_64-file-g").path;
    let merge = |times: &str| {
        let paths = [output.as_path(), Path::new(times), &input, &input];
        run("merge", &paths);
        read(&output)
    };
    let (all, half) = (merge("all"), merge("0%-50%"));
    assert_eq!(count(&all, true), 2 * count(&read(&input), true));
    assert!(times(&all).is_sorted());
    let (all, half) = (times(&all), times(&half));
    assert!(!half.is_empty() && half.len() < all.len());
    assert!(all.starts_with(&half));
}
