//! The view of a SAMPLE returns the same values as decoding all of it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use perfdata_core::Events;
use perfdata_core::read::{Decompressor, RecordingReader, StreamItem};
use perfdata_core::record::{Body, RawRecord, Record, RecordType};

use crate::{files, folders};

/// Compares the view of `record` with the decoded record; returns whether it is a SAMPLE that can
/// be decoded.
fn check(record: &RawRecord<'_>, events: &Events, path: &Path) -> bool {
    if record.kind != RecordType::SAMPLE {
        assert!(events.sample_view(record).is_none());
        return false;
    }
    let (Some(sample_view), Ok(decoded)) = (
        events.sample_view(record),
        Record::decode(record, &events.layout_of(record)),
    ) else {
        return false;
    };
    let ids = decoded.event_ids(events);
    let Body::Sample(sample) = decoded.body else {
        return false;
    };
    let chain: Vec<u64> = sample
        .callchain
        .map(|chain| chain.to_vec())
        .unwrap_or_default();
    let (glanced, whole) = (
        (sample_view.ip(), sample_view.tid(), sample_view.time()),
        (sample.ip, sample.tid, sample.time),
    );
    assert_eq!(glanced, whole, "{} at {:#x}", path.display(), record.offset);
    assert_eq!(
        sample_view.callchain().collect::<Vec<_>>(),
        chain,
        "{} at {:#x}",
        path.display(),
        record.offset
    );
    let branches = sample.branch_stack.map(|stack| stack.entries.to_vec());
    assert_eq!(
        sample_view.branches().map(Vec::from_iter),
        branches,
        "{} at {:#x}",
        path.display(),
        record.offset
    );
    assert_eq!(
        sample_view.event_ids(events),
        ids,
        "{} at {:#x}",
        path.display(),
        record.offset
    );
    true
}

fn samples(path: &Path) -> Option<usize> {
    let mut reader = RecordingReader::open(Arc::new(fs::read(path).ok()?)).ok()?;
    let mut inner = Decompressor::of(reader.recording(), reader.limits()).ok()?;
    let mut events = reader.recording().events.clone();
    let is_growing = events.is_empty();
    let mut count = 0;
    while let Some(item) = reader.next().ok()? {
        let StreamItem::Record(record) = item else {
            continue;
        };
        if record.kind.is_compressed() {
            inner.push(&record).ok()?;
            while let Ok(Some(record)) = inner.next() {
                count += usize::from(check(&record, &events, path));
            }
        } else {
            count += usize::from(check(&record, &events, path));
        }
        if is_growing {
            events = reader.recording().events.clone();
        }
    }
    Some(count)
}

#[test]
fn every_sample_of_every_recording() {
    let paths: Vec<_> = folders().iter().flat_map(|folder| files(folder)).collect();
    let seen: usize = paths.iter().filter_map(|path| samples(path)).sum();
    assert!(seen > 5_000, "{seen} samples in {} files", paths.len());
}
