//! Every sample stays, with what the mode does not remove.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use perfdata_convert::io::Input;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::verify::Report;
use perfdata_core::content::Content;
use perfdata_core::record::{RecordType, Sample};
use perfdata_sanitize::{Audience, Policy};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::recordings::{self, Recording};

use super::{AUDIENCES, records, samples, stages};

/// Checks that old and new values correspond to each other, one to one.
#[derive(Default)]
struct Pairs<T>(HashMap<T, T>, HashMap<T, T>);

impl<T: Eq + std::hash::Hash + Clone + std::fmt::Debug> Pairs<T> {
    fn add(&mut self, old: T, new: T, what: &str) -> Result<(), String> {
        let there = self.0.entry(old.clone()).or_insert(new.clone()).clone();
        let back = self.1.entry(new.clone()).or_insert(old.clone()).clone();
        if there == new && back == old {
            return Ok(());
        }
        Err(format!(
            "{what}: {old:?} became {there:?} and {new:?}, which was {back:?}"
        ))
    }
}

/// Every sample stays, with its place, its group and its time relative to the others; `verify`
/// finds nothing new; every other record stays unless the mode removes its type.
fn check(recording: &Recording, audience: Audience) -> Result<(), String> {
    let read = |path: &Path| -> Result<Whole, String> {
        let opened = convert(path, None, vec![Box::new(Decompress::default())]);
        Whole::read_file(&opened.map_err(|error| error.to_string())?.path())
    };
    let made = convert(&recording.path, None, stages(Policy::new(audience)))
        .map_err(|error| error.to_string())?;
    let report = |path: &Path| Input::open(path).and_then(Report::of);
    let is_clean = report(&recording.path).is_ok_and(|report| report.is_clean());
    let after = report(&made.path()).map_err(|error| error.to_string())?;
    if is_clean && !after.is_clean() {
        return Err(after.text());
    }
    let (before, after) = (read(&recording.path)?, read(&made.path())?);
    if before.recording.events.len() != after.recording.events.len() {
        return Err("the number of events changed".into());
    }
    let count = |whole: &Whole| {
        let mut counts: BTreeMap<RecordType, u64> = BTreeMap::new();
        for (_, kind) in &whole.records {
            // Their position in the stream and in the head of a pipe is the same to readers.
            if !kind.is_metadata() {
                *counts.entry(*kind).or_default() += 1;
            }
        }
        counts
    };
    let (mut old, new) = (count(&before), count(&after));
    let is_removed = |kind: &RecordType| {
        let content = kind.info().map_or(Content::Unknown, |info| info.content);
        matches!(
            content,
            Content::Trace | Content::Code | Content::Clock | Content::Bpf | Content::Unknown
        )
    };
    old.retain(|kind, _| !is_removed(kind));
    if old != new {
        return Err(format!("{old:?} became {new:?}"));
    }
    let (old, new) = (records(&before), records(&after));
    let (old, new) = (samples(&old), samples(&new));
    let (mut pids, mut tids, mut ids) = (Pairs::default(), Pairs::default(), Pairs::default());
    let mut shift = None;
    for (old, new) in old.iter().zip(&new) {
        if let (Some(old), Some(new)) = (&old.tid, &new.tid) {
            pids.add(old.pid, new.pid, "pid")?;
            tids.add(old.tid, new.tid, "tid")?;
        }
        if let (Some(old), Some(new)) = (old.identifier.or(old.id), new.identifier.or(new.id)) {
            ids.add(old, new, "id")?;
        }
        if let (Some(old), Some(new)) = (old.time, new.time)
            && perfdata_core::record::is_moment(old)
        {
            let by = old.wrapping_sub(new);
            if *shift.get_or_insert(by) != by {
                return Err(format!(
                    "the time {old} became {new}, others differ by {shift:?}"
                ));
            }
        }
        let same = (old.cpu, old.period, old.weight, old.data_src)
            == (new.cpu, new.period, new.weight, new.data_src);
        let chain = |sample: &Sample| sample.callchain.as_ref().map(|chain| chain.len());
        let branches = |sample: &Sample| {
            sample
                .branch_stack
                .as_ref()
                .map(|stack| stack.entries.len())
        };
        if !same || chain(old) != chain(new) || branches(old) != branches(new) {
            return Err(format!("{old:?} became {new:?}"));
        }
    }
    Ok(())
}

#[test]
fn every_sample_of_every_fixture_stays() {
    recordings::check_all(&recordings::fixtures(), |recording| {
        AUDIENCES
            .iter()
            .try_for_each(|&audience| check(recording, audience))
    });
}

#[test]
fn every_sample_of_other_recordings_stays() {
    let recordings: Vec<Recording> = recordings::shared()
        .into_iter()
        .filter(|recording| {
            recording
                .path
                .metadata()
                .is_ok_and(|meta| meta.is_dir() || meta.len() < 1 << 20)
        })
        .collect();
    recordings::check_all(&recordings, |recording| check(recording, Audience::Public));
}
