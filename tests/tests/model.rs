//! Commands answer what is true: random recordings of which every sample is known.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Mutex;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use perfdata_tests::convert::in_shell;
use perfdata_tests::generate::random::Random;
use perfdata_tests::is_thorough;
use perfdata_tests::model::{Frame, Model, Truth, model};
use perfdata_tests::recordings::in_parallel;
use serde_json::Value;

/// Runs `perfconv` with these words in a folder; returns standard output.
fn run(folder: &Path, words: &str) -> String {
    let output = in_shell(folder, &format!("perfconv {words}"));
    assert!(output.success(), "perfconv {words}: {}", output.stderr);
    output.stdout
}

fn number(value: &Value) -> u64 {
    match value {
        Value::String(text) => {
            let digits = text.strip_prefix("0x").expect("hexadecimal");
            u64::from_str_radix(digits, 16).expect("hexadecimal")
        }
        value => value.as_u64().unwrap_or_else(|| panic!("{value}")),
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .to_owned()
}

fn frame(value: &Value) -> Frame {
    Frame {
        address: number(&value["address"]),
        file: value
            .get("dso")
            .map(|dso| (text(dso), number(&value["offset"]))),
    }
}

/// Returns the samples of a recording as `dump --resolved` shows them.
fn resolved(folder: &Path, name: &str) -> Vec<Truth> {
    let lines = run(folder, &format!("dump --resolved --json {name}"));
    let sample = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("JSON");
        Truth {
            time: number(&value["time"]),
            pid: number(&value["pid"]) as u32,
            tid: number(&value["tid"]) as u32,
            cpu: number(&value["cpu"]) as u32,
            comm: text(&value["comm"]),
            event: text(&value["event"]),
            period: number(&value["weight"]),
            frames: value["frames"]
                .as_array()
                .expect("a list")
                .iter()
                .map(frame)
                .collect(),
        }
    };
    lines.lines().map(sample).collect()
}

/// Returns the number of samples for each value, without the position.
fn counts<T: Ord>(samples: &[Truth], of: impl Fn(&Truth) -> T) -> BTreeMap<T, u64> {
    let mut all = BTreeMap::new();
    for sample in samples {
        *all.entry(of(sample)).or_default() += 1;
    }
    all
}

/// `info --json`: the numbers of samples by event, CPU and comm.
fn info(folder: &Path, samples: &[Truth]) {
    let value: Value = serde_json::from_str(&run(folder, "info --json in.data")).expect("JSON");
    let summary = &value["summary"];
    assert_eq!(number(&summary["samples"]), samples.len() as u64);
    let told = |list: &str, key: &str| -> BTreeMap<String, u64> {
        let items = summary[list].as_array().expect("a list").iter();
        items
            .filter(|item| number(&item["samples"]) > 0)
            .map(|item| (item[key].to_string(), number(&item["samples"])))
            .collect()
    };
    let name = |text: &str| Value::from(text).to_string();
    assert_eq!(
        told("by_event", "name"),
        counts(samples, |sample| name(&sample.event))
    );
    assert_eq!(
        told("by_comm", "comm"),
        counts(samples, |sample| name(&sample.comm))
    );
    assert_eq!(
        told("by_cpu", "cpu"),
        counts(samples, |sample| sample.cpu.to_string())
    );
}

/// `dump --json`: every record once, and the fields of all samples.
fn dump(folder: &Path, model: &Model) {
    let lines = run(folder, "dump --json in.data");
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|value: &Value| !text(&value["type"]).starts_with("HEADER_"))
        .collect();
    assert_eq!(records.len(), model.records);
    let mut told: Vec<_> = records
        .iter()
        .filter(|value| value["type"] == "SAMPLE")
        .map(|value| {
            let fields = &value["fields"];
            let of = |part: &str, field: &str| number(&fields[part][field]) as u32;
            let chain = fields["callchain"].as_array().map_or(0, Vec::len);
            (
                number(&fields["time"]),
                of("tid", "pid"),
                of("tid", "tid"),
                of("cpu", "cpu"),
                number(&fields["period"]),
                number(&fields["ip"]),
                text(&value["event"]),
                // With the marker of the context.
                chain - 1,
            )
        })
        .collect();
    told.sort();
    let truth: Vec<_> = model
        .samples
        .iter()
        .map(|sample| {
            let Truth {
                time,
                pid,
                tid,
                cpu,
                period,
                ref frames,
                ref event,
                ..
            } = *sample;
            (
                time,
                pid,
                tid,
                cpu,
                period,
                frames[0].address,
                event.clone(),
                frames.len(),
            )
        })
        .collect();
    assert_eq!(told, truth);
}

/// Folded stacks, of all samples of each event.
fn folded(folder: &Path, samples: &[Truth]) {
    let event = &samples[0].event;
    for (count, of) in [
        ("period", (|sample| sample.period) as fn(&Truth) -> u64),
        ("samples", |_| 1),
    ] {
        let words =
            format!("export -q --no-symbols --to folded --count {count} -e {event} in.data -o -");
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| sample.event == *event) {
            let mut stack = sample.comm.clone();
            for frame in sample.frames.iter().rev() {
                stack += &match &frame.file {
                    Some((file, _)) => {
                        let (_, name) = file.rsplit_once('/').expect("a path");
                        format!(";[{name}]")
                    }
                    None => ";[unknown]".to_owned(),
                };
            }
            *expected.entry(stack).or_default() += of(sample);
        }
        let told: BTreeMap<String, u64> = run(folder, &words)
            .lines()
            .map(|line| {
                let (stack, count) = line.rsplit_once(' ').expect("a count");
                (stack.to_owned(), count.parse().expect("a number"))
            })
            .collect();
        assert_eq!(told, expected, "{words}");
    }
}

/// Samples as columns.
fn columns(folder: &Path, samples: &[Truth]) {
    run(folder, "export -q --no-symbols in.data -o out.parquet -f");
    let file = File::open(folder.join("out.parquet")).expect("the file");
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let mut told = Vec::new();
    for batch in batches.build().expect("a Parquet file") {
        let batch = batch.expect("rows");
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .unwrap_or_else(|| panic!("{name}"))
        };
        let long = |name: &str, row| column(name).as_primitive::<Int64Type>().value(row);
        let int = |name: &str, row| column(name).as_primitive::<Int32Type>().value(row);
        let name = |name: &str, row| {
            let names = column(name).as_dictionary::<Int32Type>();
            let key = names.keys().value(row) as usize;
            names.values().as_string::<i32>().value(key).to_owned()
        };
        for row in 0..batch.num_rows() {
            told.push((
                long("time", row).cast_unsigned(),
                int("pid", row).cast_unsigned(),
                int("tid", row).cast_unsigned(),
                int("cpu", row).cast_unsigned(),
                name("comm", row),
                name("event", row),
                long("period", row).cast_unsigned(),
                long("ip", row).cast_unsigned(),
            ));
        }
    }
    let truth: Vec<_> = samples
        .iter()
        .map(|sample| {
            (
                sample.time,
                sample.pid,
                sample.tid,
                sample.cpu,
                sample.comm.clone(),
                sample.event.clone(),
                sample.period,
                sample.frames[0].address,
            )
        })
        .collect();
    assert_eq!(told, truth);
}

/// Each condition of a slice.
fn slices(folder: &Path, samples: &[Truth], random: &mut Random) {
    let one = samples[random.below(samples.len() as u64) as usize].clone();
    let other = samples[random.below(samples.len() as u64) as usize].clone();
    let (from, to) = (one.time.min(other.time), one.time.max(other.time));
    let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    let every = 1 + random.below(5) as usize;
    let most = 1 + random.below(samples.len() as u64) as usize;
    type Keeps<'a> = Box<dyn Fn(usize, &Truth) -> bool + 'a>;
    let conditions: Vec<(String, Keeps<'_>)> = vec![
        (
            format!("--time {},{}", seconds(from), seconds(to)),
            Box::new(|_, sample| (from..=to).contains(&sample.time)),
        ),
        (
            format!("--pid {}", one.pid),
            Box::new(|_, sample| sample.pid == one.pid),
        ),
        (
            format!("--tid {}", one.tid),
            Box::new(|_, sample| sample.tid == one.tid),
        ),
        (
            format!("--comms {}", one.comm),
            Box::new(|_, sample| sample.comm == one.comm),
        ),
        (
            format!("--cpu {}", one.cpu),
            Box::new(|_, sample| sample.cpu == one.cpu),
        ),
        (
            format!("--event {}", one.event),
            Box::new(|_, sample| sample.event == one.event),
        ),
        (
            format!("--every {every}"),
            Box::new(|at, _| at % every == 0),
        ),
        (format!("--first {most}"), Box::new(|at, _| at < most)),
        (
            format!("--last {most}"),
            Box::new(|at, _| at >= samples.len() - most),
        ),
        (
            format!("--cpu {} --event {}", one.cpu, one.event),
            Box::new(|_, sample| sample.cpu == one.cpu && sample.event == one.event),
        ),
        (
            format!("--invert --tid {}", one.tid),
            Box::new(|_, sample| sample.tid != one.tid),
        ),
    ];
    for (words, keeps) in conditions {
        run(
            folder,
            &format!("-q --allow-empty {words} in.data -o slice.data -f"),
        );
        let expected: Vec<_> = samples
            .iter()
            .enumerate()
            .filter(|(at, sample)| keeps(*at, sample))
            .map(|(_, sample)| sample.clone())
            .collect();
        same(&resolved(folder, "slice.data"), &expected, &words);
    }
}

/// Parts by each key, and all of them merged.
fn parts(folder: &Path, samples: &[Truth]) {
    type Key = fn(&Truth) -> String;
    let keys: [(&str, Key); 5] = [
        ("pid", |sample| sample.pid.to_string()),
        ("tid", |sample| sample.tid.to_string()),
        ("comm", |sample| sample.comm.clone()),
        ("cpu", |sample| sample.cpu.to_string()),
        ("event", |sample| sample.event.clone()),
    ];
    for (by, key) in keys {
        run(folder, &format!("split -q -f --by {by} in.data -o parts"));
        let index = fs::read_to_string(folder.join("parts/index.json")).expect("an index");
        let index: Value = serde_json::from_str(&index).expect("JSON");
        let mut all = Vec::new();
        for part in index["parts"].as_array().expect("a list") {
            let told = match &part[by] {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            let file = format!("parts/{}", text(&part["file"]));
            let expected: Vec<_> = samples
                .iter()
                .filter(|sample| key(sample) == told)
                .cloned()
                .collect();
            same(&resolved(folder, &file), &expected, &format!("{by} {told}"));
            all.push(file);
        }
        assert_eq!(all.len(), counts(samples, key).len(), "{by}");
        run(
            folder,
            &format!("merge -q -f {} -o merged.data", all.join(" ")),
        );
        same(
            &resolved(folder, "merged.data"),
            samples,
            &format!("merged, by {by}"),
        );
    }
}

/// Conversions after which the samples are the same.
fn conversions(folder: &Path, samples: &[Truth]) {
    for words in [
        "--swap-endian",
        "--compress",
        "--to pipe",
        "--to file",
        "--sort",
        "--compat 6.1",
        "--swap-endian --sort --compress --to pipe",
        "--max-stack 100",
        "--time 0%-100% --to pipe",
    ] {
        // Percentages need the times of a file.
        run(folder, "-q --to file in.data -o file.data -f");
        run(folder, &format!("-q {words} file.data -o made.data -f"));
        same(&resolved(folder, "made.data"), samples, words);
    }
    run(folder, "recover -q in.data -o made.data -f");
    same(&resolved(folder, "made.data"), samples, "recover");
    run(folder, "-q --max-stack 1 in.data -o made.data -f");
    let cut: Vec<_> = samples
        .iter()
        .map(|sample| Truth {
            frames: sample.frames[..1].to_vec(),
            ..sample.clone()
        })
        .collect();
    same(&resolved(folder, "made.data"), &cut, "--max-stack 1");
    // Sorted, the records themselves are in the order of time.
    run(folder, "-q --sort in.data -o made.data -f");
    let lines = run(folder, "dump --json --type SAMPLE made.data");
    let times = lines.lines().map(|line| {
        let value: Value = serde_json::from_str(line).expect("JSON");
        number(&value["fields"]["time"])
    });
    assert!(times.eq(samples.iter().map(|sample| sample.time)));
}

#[track_caller]
fn same(told: &[Truth], truth: &[Truth], what: &str) {
    let wrong = told.iter().zip(truth).find(|(told, truth)| told != truth);
    assert!(wrong.is_none(), "{what}: {wrong:#?}");
    assert_eq!(told.len(), truth.len(), "{what}");
}

fn check(seed: u64) {
    let model = model(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("in.data"), &model.bytes).expect("a file");
    let samples = &model.samples;
    run(folder, "verify -q in.data");
    same(&resolved(folder, "in.data"), samples, "dump --resolved");
    info(folder, samples);
    dump(folder, &model);
    folded(folder, samples);
    columns(folder, samples);
    slices(folder, samples, &mut Random(seed));
    parts(folder, samples);
    conversions(folder, samples);
}

#[test]
fn commands_answer_what_is_true() {
    let first =
        std::env::var("PERFCONV_TEST_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    let count = if is_thorough() { 300 } else { 8 };
    let seeds: Vec<u64> = (first..first + count).collect();
    let wrong = Mutex::new(Vec::new());
    in_parallel(&seeds, |&seed| {
        if std::panic::catch_unwind(|| check(seed)).is_err() {
            wrong.lock().expect("no panic holds it").push(seed);
        }
    });
    let wrong = wrong.into_inner().expect("as above");
    assert!(
        wrong.is_empty(),
        "recordings {wrong:?}; PERFCONV_TEST_SEED=N starts with N"
    );
}
