//! Every command reports the same numbers of records for a recording.

use std::{path::Path, process::Stdio};

use perfdata_convert::count::Counts;
use perfdata_core::header::ContainerKind;
use perfdata_tests::{
    convert::{Converted, convert, perfconv},
    per_fixture,
    perf::{self, Output},
    recordings::{Container, Form, Recording},
};
use serde_json::Value;

fn run(words: &[&str], path: &Path, output: Option<&Path>) -> Output {
    let mut command = perfconv();
    command.args(words).arg(path).stdin(Stdio::null());
    if let Some(output) = output {
        command.arg("-o").arg(output);
    }
    perf::run(command).expect("perfconv can be started")
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))
}

fn counts(value: &Value) -> Option<Counts> {
    let number = |name: &str| value[name].as_u64();
    let mut counts = Counts::default();
    counts.records = number("records")?;
    counts.compressed = number("compressed")?;
    counts.metadata = number("metadata")?;
    Some(counts)
}

/// Counts the records in the output of `dump` by type.
fn counted(lines: &str) -> Result<Counts, String> {
    let mut counts = Counts::default();
    for line in lines.lines() {
        let record = json(line)?;
        let is_header = record["type"]
            .as_str()
            .is_some_and(|name| name.starts_with("HEADER_"));
        *match (record["inner"].is_null(), is_header) {
            (false, _) => &mut counts.compressed,
            (true, true) => &mut counts.metadata,
            (true, false) => &mut counts.records,
        } += 1;
    }
    Ok(counts)
}

fn says(what: &str, text: &str, expected: &str) -> Result<(), String> {
    if text.contains(expected) {
        Ok(())
    } else {
        Err(format!("{what} does not say {expected:?}: {text}"))
    }
}

per_fixture!(commands_agree);

fn commands_agree(recording: &Recording) -> Result<(), String> {
    let path = recording.path.as_path();
    let dump = run(&["-v", "dump", "--json"], path, None);
    let expected = counted(&dump.stdout)?;
    says("dump", &dump.stderr, &format!("shown of {expected}\n"))?;

    let info = json(&run(&["info", "--json"], path, None).stdout)?;
    let verify = json(&run(&["verify", "--json"], path, None).stdout)?;
    for (what, found) in [("info", &info["counts"]), ("verify", &verify["counts"])] {
        if counts(found) != Some(expected) {
            return Err(format!("{what} says {found}, dump shows {expected}"));
        }
    }
    if verify["records"] != expected.records {
        return Err(format!(
            "verify says {} records, dump shows {expected}",
            verify["records"]
        ));
    }
    says(
        "info",
        &run(&["info"], path, None).stdout,
        &format!("\n{expected}: "),
    )?;
    says(
        "verify",
        &run(&["verify"], path, None).stdout,
        &format!("{expected}: "),
    )?;
    says(
        "perfconv FILE",
        &run(&[], path, None).stdout,
        &format!("  {expected}\n"),
    )?;

    let folder = tempfile::tempdir().expect("a folder");
    let is_clean = verify["errors"] == 0;
    for words in [
        &["convert"][..],
        &["pipe2file"],
        &["file2pipe"],
        &["recover"],
    ] {
        let done = run(words, path, Some(&folder.path().join(words[0])));
        // Commands may refuse a damaged recording, and a recovered one has fewer records.
        if is_clean || (words[0] != "recover" && done.success()) {
            says(
                words[0],
                &done.stderr,
                &format!("perfconv: {}, ", expected.short()),
            )?;
        }
    }
    Ok(())
}

mod in_containers {
    perfdata_tests::per_fixture!(super::containers_agree);
}

/// A pipe, the file made from it, and conversions of this file have the same records, except for
/// names of events: a pipe contains EVENT_UPDATE records for these.
fn containers_agree(recording: &Recording) -> Result<(), String> {
    if !matches!(recording.form, Some(Form { .. })) {
        return Ok(());
    }
    let other = match recording.form {
        Some(Form {
            container: Container::Pipe,
            ..
        }) => [ContainerKind::File, ContainerKind::Pipe],
        _ => [ContainerKind::Pipe, ContainerKind::File],
    };
    let said = |path: &Path| -> Result<(u64, u64), String> {
        let info = json(&run(&["info", "--json"], path, None).stdout)?;
        let updates = info["records"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|tally| tally["type"] == "EVENT_UPDATE");
        let updates = updates
            .and_then(|tally| tally["count"].as_u64())
            .unwrap_or(0);
        Ok((
            info["counts"]["records"].as_u64().ok_or("no count")? - updates,
            info["counts"]["compressed"].as_u64().unwrap_or(0),
        ))
    };
    let convert = |path: &Path, to| -> Result<Option<Converted>, String> {
        match convert(path, Some(to), Vec::new()) {
            Ok(converted) => Ok(Some(converted)),
            Err(error) if error.is_refusal() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    };
    let first = said(&recording.path)?;
    let Some(second) = convert(&recording.path, other[0])? else {
        return Ok(());
    };
    let Some(third) = convert(&second.path(), other[1])? else {
        return Ok(());
    };
    for converted in [second, third] {
        let found = said(&converted.path())?;
        if found != first {
            return Err(format!(
                "{first:?} records and those inside compressed ones, {found:?} when converted"
            ));
        }
    }
    Ok(())
}
