//! `perfconv info` says of a recording what perf says of it.

use perfdata_convert::{io::Input, show::overview::Overview};
use perfdata_tests::{
    per_fixture,
    perf::text,
    recordings::{self, Container, Form, Recording},
};
use serde_json::Value;

fn overview(recording: &Recording) -> Result<Overview, String> {
    Input::open(&recording.main_file()).and_then(Overview::of).map_err(|error| error.to_string())
}

fn json(recording: &Recording) -> Result<Value, String> {
    serde_json::from_str(&overview(recording)?.json()).map_err(|error| error.to_string())
}

/// What is behind `start` in the lines of perf's text that begin with it.
fn lines<'a>(header: &'a str, start: &str) -> Vec<&'a str> {
    header.lines().filter_map(|line| line.strip_prefix(start)).collect()
}

/// The content of a feature section.
fn feature<'a>(info: &'a Value, name: &str) -> Option<&'a Value> {
    let features = info["features"].as_array()?;
    features.iter().find(|feature| feature["name"] == name).map(|feature| &feature["value"])
}

per_fixture!(says_what_perf_says);

fn says_what_perf_says(recording: &Recording) -> Result<(), String> {
    let info = json(recording)?;
    let header = text(&recording.header_text().ok_or("no header text beside it")?);
    let expect = |what: &str, found: Option<String>, expected: Option<&str>| match (found, expected) {
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
        let found = feature(&info, name).and_then(Value::as_str).map(str::to_owned);
        // perf puts the machine's own in the place of what the recording lacks.
        if found.is_some() {
            expect(name, found, lines(&header, start).first().copied())?;
        }
    }
    let online = feature(&info, "NRCPUS").map(|cpus| cpus["online"].to_string());
    expect("NRCPUS", online, lines(&header, "# nrcpus online : ").first().copied())?;
    same_events(&info, &lines(&header, "# event : name = "))
}

/// Names and ids of the events, as in `cycles:u, , id = { 1, 2 }, type = …`.
fn same_events(info: &Value, described: &[&str]) -> Result<(), String> {
    if described.is_empty() {
        return Ok(());
    }
    let events = info["events"].as_array().ok_or("no events")?;
    let found: Vec<_> = events.iter().map(|event| (event["name"].as_str().unwrap_or(""), ids(&event["ids"]))).collect();
    let expected: Vec<_> = described
        .iter()
        .filter_map(|line| {
            let (name, rest) = line.split_once(", , ")?;
            let ids = rest.strip_prefix("id = { ").and_then(|rest| rest.split_once(" }")).map_or("", |ids| ids.0);
            Some((name, ids.to_owned()))
        })
        .collect();
    if found == expected { Ok(()) } else { Err(format!("events {found:?}, perf says {expected:?}")) }
}

fn ids(list: &Value) -> String {
    list.as_array().into_iter().flatten().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// Recordings that are none: their header or first attribute makes no sense.
const NO_RECORDINGS: &str = "crashers/";

#[test]
fn every_recording_is_shown() {
    recordings::check_all(&recordings::all(), |recording| {
        let info = match overview(recording) {
            Err(error) if recording.name.starts_with(NO_RECORDINGS) => {
                return if error.contains("at offset") { Ok(()) } else { Err(error) };
            }
            other => other?,
        };
        info.text();
        let info = json(recording)?;
        let count: u64 = ["records", "compressed_records"]
            .iter()
            .flat_map(|list| info[list].as_array())
            .flatten()
            .filter_map(|tally| tally["count"].as_u64())
            .sum();
        let is_pipe = matches!(recording.form, Some(Form { container: Container::Pipe, .. }));
        if is_pipe != (info["container"] == "pipe") && recording.form.is_some() {
            return Err(format!("container {}", info["container"]));
        }
        // A pipe's head is made of records, too; what broke another parser may have none that is whole.
        let is_crasher = recording.name.starts_with(NO_RECORDINGS);
        if is_pipe && count == 0 && !is_crasher { Err("no records".into()) } else { Ok(()) }
    });
}
