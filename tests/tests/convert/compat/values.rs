//! An older perf reads the same raw values in a converted recording as a newer perf in the
//! original.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::swap::Unknown;
use perfdata_core::Version;
use perfdata_core::record;
use perfdata_tests::convert::convert;
use perfdata_tests::is_thorough;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Recording};
use perfdata_tests::skipped;

/// Returns the output of `perf script -D` for the kernel records that perf of `release` knows: one
/// line for each value, preceded by the record's name. `None` if perf cannot read the whole
/// recording.
fn raw_values(perf: &Perf, path: &Path, release: Version) -> Option<Vec<String>> {
    let mut command = perf.command();
    command.args(["script", "-D", "-i"]).arg(path);
    let said = perf::run(command).expect("perf starts");
    if !said.success() {
        return None;
    }
    let is_known = |name: &str| {
        let info = record::TABLE.iter().find(|info| info.name == name);
        info.is_some_and(|info| info.kind.is_kernel() && release.has(info.since))
    };
    let mut values = Vec::new();
    let mut of: Option<&str> = None;
    for line in said.stdout.lines() {
        if let Some((_, rest)) = line
            .split_once("PERF_RECORD_")
            .filter(|_| !line.starts_with('.'))
        {
            let name = rest
                .split(|c: char| !c.is_ascii_uppercase() && c != '_' && !c.is_ascii_digit())
                .next();
            of = name.filter(|name| is_known(name));
            values.extend(of.map(|_| without_place(line)));
        } else if let Some(name) = of.filter(|_| is_value(line)) {
            // perf 7.2 prints the names of the contexts.
            values.push(format!(
                "{name} {}",
                line.split(" (PERF_CONTEXT").next().unwrap_or(line)
            ));
        }
    }
    Some(values)
}

/// Returns whether the line shows a value of the record, and not information about the reading
/// machine.
fn is_value(line: &str) -> bool {
    let is_of_reader = line.starts_with("... thread") || line.starts_with("...... dso");
    (line.starts_with("... ") || line.starts_with(".....")) && line.contains(": ") && !is_of_reader
}

/// Returns the line without the offset and size of the record: `0x830@file [0x30]: `; for TEXT_POKE
/// without the symbol.
fn without_place(line: &str) -> String {
    let (before, rest) = line.split_once("PERF_RECORD_").unwrap_or(("", line));
    let words: Vec<&str> = before.split(' ').collect();
    let at = words
        .iter()
        .position(|word| word.starts_with('['))
        .map_or(words.len(), |at| at.saturating_sub(1));
    let words: Vec<&str> = words[..at]
        .iter()
        .copied()
        .filter(|word| !word.is_empty())
        .collect();
    let rest = match rest.split_once(" old len") {
        Some((poke, lengths)) => {
            let address: Vec<&str> = poke.split(' ').take(2).collect();
            format!("{} old len{lengths}", address.join(" "))
        }
        None => rest.to_owned(),
    };
    format!("{} {}", words.join(" "), rest.trim_end())
}

/// Returns the values without callchains, because a part of these is in separate records that the
/// older perf does not know.
fn without_callchains(values: Vec<String>) -> Vec<String> {
    let is_callchain = |line: &String| line.contains("FP chain") || line.contains(" ..... ");
    values
        .into_iter()
        .filter(|line| !is_callchain(line))
        .collect()
}

#[test]
fn an_older_perf_reads_the_values_that_a_newer_one_does() {
    let mut all = recordings::fixtures();
    if is_thorough() {
        all.extend(recordings::shared());
    } else {
        skipped::note(skipped::TEST_ALL);
    }
    let compared = AtomicUsize::new(0);
    let check = |recording: &Recording| {
        let Some(recorder) = &recording.recorder else {
            return Ok(());
        };
        let of_order = |perf: &&'static Perf| perf.endian == recorder.endian();
        let Some(newest) = perf::all()
            .iter()
            .filter(of_order)
            .max_by_key(|perf| perf.version)
        else {
            return Ok(());
        };
        let older = perf::all()
            .iter()
            .filter(of_order)
            .filter(|perf| perf.version < recorder.perf);
        for (at, old) in older.enumerate() {
            let name: usize = recording.name.bytes().map(usize::from).sum();
            // The emulated perfs are slow.
            let step = if recorder.arch == "s390x" { 12 } else { 5 };
            if !is_thorough() && !(name + at).is_multiple_of(step) {
                continue;
            }
            if recording.crashes_perf_6_1() && old.version.to_string() == "6.1" {
                continue;
            }
            let release: Version = old.version.to_string().parse().expect("a release");
            let Some(before) = raw_values(newest, &recording.path, release) else {
                continue;
            };
            let stage = Compat::new(release).deciding(Unknown::Drop);
            let made = match convert(&recording.path, None, vec![Box::new(stage)]) {
                Err(error)
                    if error
                        .to_string()
                        .contains("knows none of the recording's data records") =>
                {
                    continue;
                }
                made => made.map_err(|error| format!("for {release}: {error}"))?,
            };
            let after = raw_values(old, &made.path(), release)
                .ok_or_else(|| format!("{old} does not read it"))?;
            let is_deferred = recording.name.contains("file-defer");
            let [before, after] = [before, after].map(|all| {
                if is_deferred {
                    without_callchains(all)
                } else {
                    all
                }
            });
            compared.fetch_add(before.len(), Ordering::Relaxed);
            if let Some((new, old)) = before.iter().zip(&after).find(|(new, old)| new != old) {
                return Err(format!("for {release}: {new} | {old}"));
            }
            if before.len() != after.len() {
                return Err(format!(
                    "for {release}: {} values | {}",
                    before.len(),
                    after.len()
                ));
            }
        }
        Ok(())
    };
    recordings::check_all(&all, check);
    let compared = compared.into_inner();
    eprintln!("{compared} values are the same");
    assert!(compared > 1000 || perf::all().len() < 2);
}
