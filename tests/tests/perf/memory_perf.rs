//! The memory of processes in profiles for the Firefox Profiler, compared with the text of
//! `perf script` for `kmem:rss_stat`.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::GzDecoder;
use perfdata_export::{Firefox, export};
use perfdata_session::Samples;
use perfdata_tests::perf;
use perfdata_tests::skipped;
use serde_json::Value;

/// Returns the largest sum of each process: its resident memory in bytes. Memory belongs to the
/// first process that uses it, until it ends or has other memory.
fn largest(text: &str) -> HashMap<String, i64> {
    // For each memory its process and the sizes by kind.
    let mut memory: HashMap<&str, (&str, HashMap<&str, i64>)> = HashMap::new();
    let mut largest = HashMap::new();
    for line in text.lines() {
        let (pid, event) = line.trim().split_once(' ').expect("a process ID");
        if event.contains("PERF_RECORD_EXIT") {
            let (_, task) = event.split_once("EXIT(").expect("a task");
            let (task, _) = task.split_once(')').expect("a task");
            let (pid, tid) = task.split_once(':').expect("a thread");
            memory.retain(|_, (owner, _)| *owner != pid || pid != tid);
            continue;
        }
        let Some((_, event)) = event.split_once("mm_id=") else {
            continue;
        };
        let (mm, fields) = event.split_once(' ').expect("fields");
        let fields: HashMap<&str, &str> = fields
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .collect();
        if fields["type"] == "MM_SWAPENTS" {
            continue;
        }
        if !memory.contains_key(mm) {
            if fields["curr"] != "1" {
                continue;
            }
            memory.retain(|_, (owner, _)| *owner != pid);
        }
        let (owner, sizes) = memory.entry(mm).or_insert((pid, HashMap::new()));
        let size = fields["size"].trim_end_matches('B').parse::<i64>();
        sizes.insert(fields["type"], size.expect("a size").max(0));
        let most = largest.entry((*owner).to_owned()).or_default();
        *most = sizes.values().sum::<i64>().max(*most);
    }
    largest
}

#[test]
fn counters_have_the_sizes_that_perf_shows() {
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    let mut command = recorder.command();
    command.args(["record", "-q", "-m", "512", "-e", "kmem:rss_stat", "-o"]);
    command.arg(&path);
    command.args([
        "--",
        "sh",
        "-c",
        "ls -R /usr/share > /dev/null; sort /etc/passwd | tail -1",
    ]);
    let recorded = perf::run(command).expect("perf starts");
    if !recorded.success() {
        return skipped::note("the permission to record tracepoints");
    }
    let mut command = recorder.command();
    command.args(["script", "--show-task-events", "-F", "pid,trace", "-i"]);
    command.arg(&path);
    let script = perf::run(command).expect("perf starts");
    assert!(script.success(), "{}", script.stderr);
    let expected = largest(&script.stdout);

    let mut out = Vec::new();
    let mut samples = Samples::open(&path).expect("a recording");
    export(&mut samples, None, &mut Firefox::new(&mut out, b"name")).expect("an export");
    let mut text = String::new();
    GzDecoder::new(&*out)
        .read_to_string(&mut text)
        .expect("compressed text");
    let profile: Value = serde_json::from_str(&text).expect("JSON");
    let counters = profile["counters"].as_array().expect("counters");
    let mut found = HashMap::new();
    for counter in counters {
        let samples = &counter["samples"];
        let of = |key: &str| samples[key].as_array().expect("a column").clone();
        let changes = of("count").into_iter();
        let mut sum = 0;
        let sums: Vec<i64> = changes
            .map(|change| {
                sum += change.as_i64().expect("a number");
                sum
            })
            .collect();
        let times: Vec<f64> = of("time").iter().filter_map(Value::as_f64).collect();
        assert!(times.is_sorted() && times.len() == sums.len());
        assert_eq!(samples["length"].as_u64(), Some(sums.len() as u64));
        let pid = counter["pid"].as_str().expect("a process ID").to_owned();
        let thread = counter["mainThreadIndex"].as_u64().expect("a number") as usize;
        assert_eq!(profile["threads"][thread]["pid"], *pid);
        found.insert(pid, *sums.iter().max().expect("a sum"));
    }
    assert!(!found.is_empty());
    assert_eq!(found, expected);
}
