//! `perfconv info` shows the same information about a recording as perf.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use perfdata_convert::io::Input;
use perfdata_report::show::overview::Overview;
use perfdata_tests::{
    convert, per_fixture,
    perf::text,
    recordings::{self, Container, Form, Recording},
};
use serde_json::Value;

fn overview(recording: &Recording) -> Result<Overview, String> {
    Input::open(&recording.main_file())
        .and_then(Overview::of)
        .map_err(|error| error.to_string())
}

fn json(recording: &Recording) -> Result<Value, String> {
    serde_json::from_str(&overview(recording)?.json()).map_err(|error| error.to_string())
}

/// Returns the text after `start` in the lines of perf's output that start with it.
fn lines<'a>(header: &'a str, start: &str) -> Vec<&'a str> {
    header
        .lines()
        .filter_map(|line| line.strip_prefix(start))
        .collect()
}

/// Returns the content of a feature section.
fn feature<'a>(info: &'a Value, name: &str) -> Option<&'a Value> {
    let features = info["features"].as_array()?;
    features
        .iter()
        .find(|feature| feature["name"] == name)
        .map(|feature| &feature["value"])
}

per_fixture!(says_what_perf_says);

fn says_what_perf_says(recording: &Recording) -> Result<(), String> {
    let info = json(recording)?;
    let header = text(&recording.header_text().ok_or("no header text beside it")?);
    let expect = |what: &str, found: Option<String>, expected: Option<&str>| match (found, expected)
    {
        (_, None) => Ok(()),
        (Some(found), Some(expected)) if found == expected => Ok(()),
        (found, expected) => Err(format!("{what}: {found:?}, perf says {expected:?}")),
    };
    for (name, start) in [
        ("HOSTNAME", "# hostname : "),
        ("OSRELEASE", "# os release : "),
        ("VERSION", "# perf version : "),
        ("ARCH", "# arch : "),
        ("CPUDESC", "# cpudesc : "),
        ("CPUID", "# cpuid : "),
    ] {
        let found = feature(&info, name)
            .and_then(Value::as_str)
            .map(str::to_owned);
        // If the recording has no value, perf shows that of the reading machine.
        if found.is_some() {
            expect(name, found, lines(&header, start).first().copied())?;
        }
    }
    let online = feature(&info, "NRCPUS").map(|cpus| cpus["online"].to_string());
    expect(
        "NRCPUS",
        online,
        lines(&header, "# nrcpus online : ").first().copied(),
    )?;
    same_events(&info, &lines(&header, "# event : name = "))
}

/// Compares names and IDs of the events, as in `cycles:u, , id = { 1, 2 }, type = …`.
fn same_events(info: &Value, described: &[&str]) -> Result<(), String> {
    if described.is_empty() {
        return Ok(());
    }
    let events = info["events"].as_array().ok_or("no events")?;
    let found: Vec<_> = events
        .iter()
        .map(|event| (event["name"].as_str().unwrap_or(""), ids(&event["ids"])))
        .collect();
    let expected: Vec<_> = described
        .iter()
        .filter_map(|line| {
            let (name, rest) = line.split_once(", , ")?;
            let ids = rest
                .strip_prefix("id = { ")
                .and_then(|rest| rest.split_once(" }"))
                .map_or("", |ids| ids.0);
            Some((name, ids.to_owned()))
        })
        .collect();
    if found == expected {
        Ok(())
    } else {
        Err(format!("events {found:?}, perf says {expected:?}"))
    }
}

fn ids(list: &Value) -> String {
    list.as_array()
        .into_iter()
        .flatten()
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the number of samples of each comm in perf's output: `comm tid [cpu] time: …`. Empty if
/// it has no times.
fn by_comm(script: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = |word: &str| {
        let parts = word.strip_suffix(':').and_then(|word| word.split_once('.'));
        parts.is_some_and(|(seconds, rest)| is_number(seconds) && is_number(rest))
    };
    for line in script.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(time) = words.iter().position(|word| is_time(word)) else {
            continue;
        };
        let is_sample = !words
            .get(time + 1)
            .is_some_and(|word| word.starts_with("PERF_RECORD_"));
        let is_thread = |word: &str| is_number(word.trim_start_matches('-'));
        let thread = words.iter().take(time).rposition(|word| is_thread(word));
        if let Some(thread) = thread.filter(|_| is_sample) {
            *counts.entry(words[..thread].join(" ")).or_default() += 1;
        }
    }
    counts
}

/// Returns a JSON text with bytes that are not UTF-8 in the form in which the tests read them from
/// perf.
fn as_perf(text: &str) -> String {
    let mut parts = text.split('\u{fffd}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + "\\x" + part)
}

#[test]
fn samples_have_the_comms_that_perf_gives_them() {
    let compared = AtomicUsize::new(0);
    recordings::check_all(&recordings::fixtures(), |recording| {
        let Some(script) = recording.script_text() else {
            return Ok(());
        };
        let expected = by_comm(&text(&script));
        let info = json(recording)?;
        let rows = info["summary"]["by_comm"].as_array().ok_or("no comms")?;
        let found: BTreeMap<String, u64> = rows
            .iter()
            .filter_map(|row| {
                let comm = as_perf(row["comm"].as_str()?);
                // perf prints a name of several lines unchanged, and the last line precedes the
                // thread ID.
                let line = comm.rsplit('\n').next().unwrap_or_default();
                let comm = line.split_whitespace().collect::<Vec<_>>().join(" ");
                Some((comm, row["samples"].as_u64()?))
            })
            .collect();
        // perf shows no samples without a time, and for some recordings not all samples.
        if expected.values().sum::<u64>() != info["summary"]["samples"] {
            return Ok(());
        }
        compared.fetch_add(1, Ordering::Relaxed);
        // Since 6.5 perf forgets a thread that has ended, and shows its number as the name for
        // later samples.
        let is_number = |comm: &str| comm.starts_with(':');
        let forgets = expected.keys().any(|comm| is_number(comm));
        let is_less = |(comm, samples): (&String, &u64)| {
            found.get(comm).is_some_and(|found| found >= samples)
        };
        let is_same = found == expected
            || (forgets && expected.iter().filter(|row| !is_number(row.0)).all(is_less));
        if is_same {
            Ok(())
        } else {
            Err(format!("{found:?}, perf says {expected:?}"))
        }
    });
    let compared = compared.into_inner();
    println!("{compared} compared");
    assert!(compared > 100, "only {compared} could be compared");
}

/// No list of a summary omits a sample.
#[test]
fn sums_are_those_of_all_samples() {
    recordings::check_all(&recordings::fixtures(), |recording| {
        let info = json(recording)?;
        let summary = &info["summary"];
        let all = summary["samples"].as_u64().ok_or("no samples")?;
        for (list, other) in [
            ("by_event", 0),
            ("by_cpu", 0),
            ("by_comm", summary["other_comms"].as_u64().unwrap_or(0)),
        ] {
            let rows = summary[list].as_array().ok_or("no list")?;
            let sum = rows
                .iter()
                .filter_map(|row| row["samples"].as_u64())
                .sum::<u64>()
                + other;
            if sum != all && !(rows.is_empty() && list != "by_event") {
                return Err(format!("{list}: {sum} of {all} samples"));
            }
        }
        Ok(())
    });
}

/// A section that is present but empty.
#[test]
fn an_empty_version_is_not_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = recordings::fixture("6.1-x86_64-file-default").path;
    let commands = format!(
        "perfconv -q --set VERSION= --set ARCH= {} -o x.data; perfconv x.data; perfconv info x.data",
        input.display()
    );
    let output = convert::in_shell(folder.path(), &commands);
    assert!(output.success(), "{}", output.stderr);
    assert!(
        output.stdout.contains("  made on recorder\n"),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("by perf"), "{}", output.stdout);
}

#[test]
fn more_is_said_with_v() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = recordings::fixture("6.1-x86_64-file-default").path;
    let said = |option: &str| {
        let output = convert::in_shell(
            folder.path(),
            &format!("perfconv info {option} {}", input.display()),
        );
        assert!(output.success(), "{}", output.stderr);
        output.stdout
    };
    let (brief, full) = (said(""), said("-v"));
    for words in [
        "magic: PERFILE2\n",
        "\nheader:\n",
        "    config: 0x0\n",
        "    bp_type: 0\n",
    ] {
        assert!(
            !brief.contains(words) && full.contains(words),
            "{words}: {brief}"
        );
    }
    assert!(brief.contains("    sample_period: 499\n"), "{brief}");
}

/// Files that are not recordings: their header or first attribute is invalid.
const NO_RECORDINGS: &str = "crashers/";

#[test]
fn every_recording_is_shown() {
    recordings::check_all(&recordings::all(), |recording| {
        let info = match overview(recording) {
            Err(error) if recording.name.starts_with(NO_RECORDINGS) => {
                return if error.contains("at offset") {
                    Ok(())
                } else {
                    Err(error)
                };
            }
            other => other?,
        };
        info.text(true);
        let info = json(recording)?;
        let count: u64 = ["records", "compressed_records"]
            .iter()
            .flat_map(|list| info[list].as_array())
            .flatten()
            .filter_map(|tally| tally["count"].as_u64())
            .sum();
        let is_pipe = matches!(
            recording.form,
            Some(Form {
                container: Container::Pipe,
                ..
            })
        );
        if is_pipe != (info["container"] == "pipe") && recording.form.is_some() {
            return Err(format!("container {}", info["container"]));
        }
        // The head of a pipe also consists of records. A file that broke another parser may contain
        // no complete record.
        let is_crasher = recording.name.starts_with(NO_RECORDINGS);
        if is_pipe && count == 0 && !is_crasher {
            Err("no records".into())
        } else {
            Ok(())
        }
    });
}
