//! Older forms of what a release does not know, and what has none.

use std::path::Path;

use perfdata_convert::error::Step;
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::Unknown;
use perfdata_core::Events;
use perfdata_core::record::{
    Body, CallchainContext, CpuMapType, CpuSet, MISC_COMM_EXEC, MISC_MMAP_DATA, RawRecord, Record,
    RecordType, Sample,
};
use perfdata_tests::convert::{Whole, convert, perfconv};
use perfdata_tests::judge;
use perfdata_tests::perf;
use perfdata_tests::recordings;

use super::made::made;
use super::{check_known, version};

fn converted(input: &Path, release: &str) -> (Events, Vec<Record>) {
    let made = convert(input, None, vec![Box::new(Compat::new(version(release)))])
        .expect("it is converted");
    check_known(&made.path(), version(release)).expect("nothing is newer");
    let whole = Whole::read(made.bytes()).expect("a recording");
    let decode = |(at, _): &(usize, RecordType)| {
        let raw =
            RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record");
        Record::decode(&raw, &whole.recording.events.layout_of(&raw)).expect("a record")
    };
    (
        whole.recording.events.clone(),
        whole.records.iter().map(decode).collect(),
    )
}

fn samples(records: &[Record]) -> Vec<&Sample> {
    let sample = |record: &'_ &Record| matches!(record.body, Body::Sample(_));
    let body = |record| match record {
        &Record {
            body: Body::Sample(ref sample),
            ..
        } => sample,
        other => panic!("{other:?}"),
    };
    records.iter().filter(sample).map(body).collect()
}

/// Bits that a release does not know are cleared, and the data that they add to records is removed
/// or converted to its older form.
#[test]
fn newer_bits_and_what_they_bring() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = made(folder.path());
    let (_, before) = converted(&input, "7.2");
    let before = samples(&before);
    for release in [
        "7.2", "6.7", "6.1", "5.19", "5.11", "5.6", "4.0", "3.15", "3.11", "3.3", "2.6.37",
    ] {
        let has = |since: &str| version(release).has(since);
        let (events, records) = converted(&input, release);
        let flags = events[0].attr.flags;
        assert_eq!(
            (flags.inherit_thread() == 1, flags.sample_id_all() == 1),
            (has("5.13"), has("2.6.38")),
            "{release}"
        );
        let samples = samples(&records);
        assert_eq!(samples.len(), 10, "{release}");
        for (old, new) in before.iter().zip(samples) {
            assert_eq!(
                (old.ip, &old.tid, old.time, &old.cpu, old.period),
                (new.ip, &new.tid, new.time, &new.cpu, new.period)
            );
            assert_eq!(new.identifier.or(new.id), old.identifier, "{release}");
            assert_eq!(new.identifier.is_some(), has("3.12"), "{release}");
            assert_eq!(new.cgroup.is_some(), has("5.7"), "{release}");
            assert_eq!(new.weight_struct.is_some(), has("5.12"), "{release}");
            assert_eq!(
                new.weight,
                (has("3.10") && !has("5.12")).then_some(77),
                "{release}"
            );
            let (was, is) = (
                old.read.as_ref().expect("it has one"),
                new.read.as_ref().expect("it has one"),
            );
            for (was, is) in was.values.0.iter().zip(&is.values.0) {
                assert_eq!(
                    (was.value, was.id, was.lost.filter(|_| has("6.0"))),
                    (is.value, is.id, is.lost),
                    "{release}"
                );
            }
            assert_eq!(is.time_enabled, was.time_enabled);
            let Some(stack) = &new.branch_stack else {
                assert!(!has("3.4"), "{release}");
                continue;
            };
            assert_eq!(
                (stack.nr, stack.entries.len(), stack.hw_idx.is_some()),
                (2, 2, has("5.7")),
                "{release}"
            );
            let counters = old
                .branch_stack
                .as_ref()
                .map_or(0, |stack| stack.counters.len());
            assert_eq!(
                stack.counters.len(),
                if has("6.8") { counters } else { 0 },
                "{release}"
            );
            assert_eq!(stack.entries[0].flags.predicted(), 1);
            assert_eq!(
                stack.entries[0].flags.privilege(),
                u64::from(has("6.1")),
                "{release}"
            );
        }
        let maps: Vec<_> = records
            .iter()
            .filter(|record| record.kind == RecordType::MMAP2)
            .collect();
        let older: Vec<_> = records
            .iter()
            .filter(|record| record.kind == RecordType::MMAP)
            .collect();
        assert_eq!(
            (maps.len(), older.len()),
            if has("3.16") { (2, 0) } else { (0, 2) },
            "{release}"
        );
        for (map, (addr, name, is_data)) in older
            .iter()
            .zip([(0x1000, "/bin/code", false), (0x8000, "/bin/data", true)])
        {
            let Body::Mmap(body) = &map.body else {
                panic!("{map:?}")
            };
            assert_eq!(
                (body.addr, body.len, body.filename.text()),
                (addr, 0x1000, name.as_bytes())
            );
            assert_eq!(
                map.misc & MISC_MMAP_DATA != 0,
                is_data && has("3.10"),
                "{release}"
            );
        }
        for record in &records {
            match &record.body {
                Body::Comm(_) => {
                    assert_eq!(record.misc & MISC_COMM_EXEC != 0, has("3.16"), "{release}")
                }
                Body::Read(read) => assert!(
                    read.values
                        .values
                        .0
                        .iter()
                        .all(|v| v.lost.is_some() == has("6.0"))
                ),
                Body::CpuMap(map) if has("6.0") => assert_eq!(map.kind, CpuMapType::RANGE),
                Body::CpuMap(map) => assert_eq!(
                    map.cpus,
                    CpuSet::Cpus(vec![0xffff, 2, 3, 4].into()),
                    "{release}"
                ),
                _ => {}
            }
            let has_trailer =
                record.kind.is_kernel() && record.kind != RecordType::SAMPLE && has("2.6.38");
            assert_eq!(
                record.sample_id.is_some(),
                has_trailer,
                "{release} {record:?}"
            );
        }
    }
}

/// Returns the error of `perfconv --compat`, and checks for an output.
fn refused(fixture: &str, options: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("old.data");
    let mut command = perfconv();
    command
        .args(options)
        .arg(recordings::fixture(fixture).path)
        .arg("-o")
        .arg(&output);
    let said = command.output().expect("perfconv runs");
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    match said.status.code() {
        Some(0) => None,
        code => {
            assert_eq!((code, output.exists()), (Some(1), false), "{text}");
            Some(text)
        }
    }
}

#[test]
fn what_has_no_older_form_is_refused() {
    let stages = || -> Vec<Box<dyn perfdata_convert::pipeline::Stage>> {
        vec![Box::new(Compat::new(version("6.1")))]
    };
    let path = recordings::fixture("7.2-x86_64-file-defer").path;
    let why = convert(&path, None, stages())
        .map(drop)
        .expect_err("it is refused");
    assert!(why.to_string().contains("CALLCHAIN_DEFERRED"), "{why}");
    assert_eq!(why.step(), Some(&Step::Decide(Unknown::Drop)));
    for release in ["6.1", "6.19"] {
        assert_eq!(
            refused("7.2-x86_64-file-defer", &["--compat", release]),
            None
        );
    }
    for unknown in ["error", "drop"] {
        let why = refused(
            "7.2-x86_64-tool-schedstats",
            &["--compat", "6.1", "--unknown", unknown],
        );
        assert!(why.is_some_and(|why| {
            why.contains("perf 6.1 knows none of the recording's data records")
        }));
    }
    assert_eq!(
        refused("7.2-x86_64-tool-schedstats", &["--compat", "7.0"]),
        None
    );
}

/// Without the deferred callchains, the remaining callchains contain no marker for them: perf 6.1
/// would discard them completely.
#[test]
fn deferred_callchains_can_be_left_out() {
    let path = recordings::fixture("7.2-x86_64-file-defer").path;
    let stage = Compat::new(version("6.1")).deciding(Unknown::Drop);
    let made = convert(&path, None, vec![Box::new(stage)]).expect("it is converted");
    let chains = |path: &Path| -> Vec<Vec<u64>> {
        let whole = Whole::read_file(path).expect("a recording");
        let chain = |(at, _): &(usize, RecordType)| {
            let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0)
                .expect("a record");
            match Record::decode(&raw, &whole.recording.events.layout_of(&raw))
                .expect("a record")
                .body
            {
                Body::Sample(sample) => sample.callchain.map(|chain| chain.to_vec()),
                _ => None,
            }
        };
        whole.records.iter().filter_map(chain).collect()
    };
    let (before, after) = (chains(&path), chains(&made.path()));
    let marker = CallchainContext::USER_DEFERRED.0;
    assert!(before.iter().any(|chain| chain.contains(&marker)) && before.len() == after.len());
    for (before, after) in before.iter().zip(&after) {
        let kept = before
            .iter()
            .position(|&word| word == marker)
            .unwrap_or(before.len());
        assert_eq!(before[..kept], after[..]);
    }
}

/// perf before 3.16 knows only MMAP records for mappings.
#[test]
fn mappings_are_kept_for_the_oldest() {
    for fixture in [
        "7.2-x86_64-file-default",
        "6.1-x86_64-file-z",
        "6.1-s390x-file-default",
        "7.2-x86_64-pipe-default",
    ] {
        let recording = recordings::fixture(fixture);
        let stage = |release| Box::new(Compat::new(version(release)));
        let plain = convert(
            &recording.path,
            None,
            vec![Box::new(Decompress::default()), stage("3.10")],
        );
        let whole = Whole::read(plain.expect("it is converted").bytes()).expect("a recording");
        let before = convert(&recording.path, None, vec![Box::new(Decompress::default())])
            .expect("it is opened");
        let before = Whole::read(before.bytes()).expect("a recording");
        let count = |whole: &Whole, kinds: &[RecordType]| {
            whole
                .records
                .iter()
                .filter(|(_, kind)| kinds.contains(kind))
                .count()
        };
        let maps = [RecordType::MMAP, RecordType::MMAP2];
        assert!(count(&before, &maps[1..]) > 0, "{fixture}");
        assert_eq!(count(&whole, &maps[1..]), 0, "{fixture}");
        assert_eq!(count(&whole, &maps), count(&before, &maps), "{fixture}");
        // The current perf finds the same files at all addresses.
        let converted =
            convert(&recording.path, None, vec![stage("3.15")]).expect("it is converted");
        for perf in judge::judges(&recording).expect("perf starts") {
            let files = |path: &Path| {
                let mut command = perf.command();
                command
                    .args(["script", "-F", "comm,time,ip,dso", "-i"])
                    .arg(path);
                let said = perf::run(command).expect("perf starts");
                // perf takes the name of the kernel from a mapping with a build ID.
                said.stdout
                    .replace("[kernel.kallsyms]_text", "[kernel.kallsyms]")
            };
            let before = files(&recording.path);
            assert!(before.lines().count() > 10, "{fixture}, {perf}");
            assert_eq!(files(&converted.path()), before, "{fixture}, {perf}");
        }
    }
}
