//! `perfconv dump --resolved` shows every sample once, in text and JSON.

use std::collections::BTreeMap;

use perfdata_convert::io::Input;
use perfdata_core::record::RecordType;
use perfdata_report::show::{dump::Dump, resolved::Resolved};
use perfdata_tests::recordings::{self, Recording};
use serde_json::Value;

fn resolved(recording: &Recording, json: bool) -> Result<String, String> {
    let mut out = Vec::new();
    let input = Input::open(&recording.path).map_err(|error| error.to_string())?;
    Resolved::default()
        .with_json(json)
        .run(input, &mut out, None)
        .map_err(|error| error.to_string())?;
    String::from_utf8(out).map_err(|error| error.to_string())
}

fn samples(recording: &Recording) -> Result<Vec<Value>, String> {
    let form = Dump::default()
        .with_json(true)
        .with_types(vec![RecordType::SAMPLE]);
    let text = super::dump(&recording.path, &form)?;
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(|error| error.to_string()))
        .collect()
}

/// The properties of a sample in both formats: number of samples with this time, event name,
/// process and thread.
type Tally = BTreeMap<[String; 4], usize>;

fn tally<'a>(samples: impl Iterator<Item = [&'a Value; 4]>) -> Tally {
    let mut all = Tally::new();
    for sample in samples {
        *all.entry(sample.map(Value::to_string)).or_default() += 1;
    }
    all
}

fn check(recording: &Recording) -> Result<(), String> {
    let plain = samples(recording)?;
    let json = resolved(recording, true)?;
    let all: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|e| e.to_string()))
        .collect::<Result<_, _>>()?;
    let before = tally(plain.iter().map(|sample| {
        let fields = &sample["fields"];
        [
            &fields["time"],
            &sample["event"],
            &fields["tid"]["pid"],
            &fields["tid"]["tid"],
        ]
    }));
    let after = tally(all.iter().map(|sample| {
        [
            &sample["time"],
            &sample["event"],
            &sample["pid"],
            &sample["tid"],
        ]
    }));
    if before != after {
        return Err(format!(
            "{} samples became {}, or others",
            plain.len(),
            all.len()
        ));
    }
    let text = resolved(recording, false)?;
    let lines = text.lines().filter(|line| line.starts_with("0x")).count();
    let frames: usize = all
        .iter()
        .map(|sample| sample["frames"].as_array().map_or(0, Vec::len))
        .sum();
    let branches: usize = all
        .iter()
        .map(|sample| sample["branches"].as_array().map_or(0, Vec::len))
        .sum();
    if lines != all.len() || text.lines().count() != lines + frames + branches {
        return Err(format!("{lines} samples in text, {} in JSON", all.len()));
    }
    Ok(())
}

#[test]
fn every_sample_is_resolved() {
    recordings::check_all(&recordings::fixtures(), check);
}
