//! An older perf reads converted recordings of a newer one, and a newer perf those of an older one.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use perfdata_convert::error::Step;
use perfdata_convert::inspect::verify::Report;
use perfdata_convert::io::Input;
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::Unknown;
use perfdata_core::attr::{
    Attr, AttrFlags, AuxAction, BranchSampleType, EventType, ReadFormat, SIZES, SampleType,
    SoftwareEvent,
};
use perfdata_core::describe::Field;
use perfdata_core::feature::{self, EventDescs, Feature, FeatureId, Section};
use perfdata_core::record::{
    self, Body, BranchEntry, BranchFlags, BranchStack, CallchainContext, Comm, Cpu, CpuMapType,
    CpuSet, GroupValue, MISC_COMM_EXEC, MISC_MMAP_DATA, Mmap2, RawRecord, ReadValue, Record,
    RecordType, Sample, SampleId, Tid, Weights,
};
use perfdata_core::wire::{ContextList, HeaderString, List, Text};
use perfdata_core::{Endian as Order, Event, Events, Version};
use perfdata_tests::convert::{Whole, convert, perfconv};
use perfdata_tests::is_thorough;
use perfdata_tests::judge::{self, Texts};
use perfdata_tests::perf::{self, Perf, Question};
use perfdata_tests::recordings::{self, Container, Endian, Form, PerfVersion, Recording};
use perfdata_tests::skipped;
use perfdata_write::{FilePlan, FileWriter};

fn version(text: &str) -> Version {
    text.parse().expect("a release")
}

fn perf_of(major: u16, minor: u16, endian: Endian) -> Option<&'static Perf> {
    let wanted = PerfVersion { major, minor };
    let found = perf::all()
        .iter()
        .find(|perf| perf.version == wanted && perf.endian == endian);
    if found.is_none() {
        skipped::note(format_args!("a {endian:?}-endian perf {wanted}"));
    }
    found
}

fn all_recordings() -> Vec<Recording> {
    let mut all = recordings::fixtures();
    all.extend(recordings::shared());
    all
}

fn single_recordings() -> Vec<Recording> {
    let mut all = all_recordings();
    all.retain(|r| {
        matches!(
            r.form,
            Some(Form {
                container: Container::File | Container::Pipe,
                endian: Endian::Little
            })
        )
    });
    all
}

/// Converts recordings of other releases for perf `major`.`minor`, and checks that this perf shows
/// the events.
fn check_other_release(major: u16, minor: u16, is_other: impl Fn(&PerfVersion) -> bool) {
    let perfs = [Endian::Little, Endian::Big].map(|endian| perf_of(major, minor, endian));
    let release = version(&format!("{major}.{minor}"));
    let mut others = all_recordings();
    others.retain(|recording| {
        recording
            .recorder
            .as_ref()
            .is_some_and(|recorder| is_other(&recorder.perf))
    });
    recordings::check_all(&others, |recording| {
        let endian = recording.form.map(|form| form.endian);
        let Some(perf) = perfs
            .iter()
            .flatten()
            .find(|perf| Some(perf.endian) == endian)
        else {
            return Ok(());
        };
        let converted = match convert(&recording.path, None, vec![Box::new(Compat::new(release))]) {
            // No records would remain, or no callchain.
            Err(error)
                if error
                    .to_string()
                    .contains("knows none of the recording's data records") =>
            {
                return Ok(());
            }
            Err(error) if error.to_string().contains("CALLCHAIN_DEFERRED") => {
                let dropping = Box::new(Compat::new(release).deciding(Unknown::Drop));
                convert(&recording.path, None, vec![dropping])
            }
            other => other,
        };
        let converted = converted.map_err(|error| error.to_string())?;
        judge::compare_events(recording, &Texts::new(&converted.path(), perf))
    });
}

#[test]
fn perf_6_1_reads_what_later_ones_recorded() {
    check_other_release(6, 1, |perf| *perf > PerfVersion { major: 6, minor: 1 });
}

#[test]
fn perf_6_12_reads_what_later_ones_recorded() {
    check_other_release(6, 12, |perf| {
        *perf
            > PerfVersion {
                major: 6,
                minor: 12,
            }
    });
}

/// perf 7.2 rejects stat recordings whose COMPRESSED section consists of zeros, build IDs and CPU
/// maps of unaligned size, and empty sections.
#[test]
fn perf_7_2_reads_what_it_refused() {
    let Some(perf) = perf_of(7, 2, Endian::Little) else {
        return;
    };
    let mut repaired = 0;
    let mut all = single_recordings();
    let old = [
        "quipper/piped.header_features-4.16",
        "quipper/armv7.perf_3.14-3.8",
    ];
    all.extend(
        recordings::corpus()
            .into_iter()
            .filter(|r| old.contains(&r.name.as_str())),
    );
    for recording in &all {
        let is_stat = ["stat-record", "-hw-stat"]
            .iter()
            .any(|what| recording.name.contains(what));
        // Tracepoints without their formats, and a file that ends in zeros.
        let is_hopeless =
            recording.name.contains("stat-record-group") || recording.name == "6.1-x86_64-hw-stat";
        let is_known = is_stat
            || recording.name.contains("file-injected")
            || old.contains(&recording.name.as_str());
        if !is_known
            || is_hopeless
            || Texts::new(&recording.path, perf)
                .is_readable()
                .expect("perf starts")
        {
            continue;
        }
        let stage = Box::new(Compat::new(version("7.2")));
        let converted = convert(&recording.path, None, vec![stage]).expect("a conversion");
        let script = Texts::new(&converted.path(), perf);
        let script = script.answer(Question::Script).expect("perf starts");
        assert!(
            script.success() && !script.stdout.is_empty(),
            "{}: {}",
            recording.name,
            script.stderr
        );
        repaired += 1;
    }
    assert!(repaired > 5, "only {repaired} recordings were repaired");
}

/// The header of a killed recording contains a data size of 0; this is preserved if records are
/// changed.
#[test]
fn unfinished_recordings_stay_unfinished() {
    let unfinished: Vec<_> = single_recordings()
        .into_iter()
        .filter(|recording| recording.name.contains("file-crashed"))
        .collect();
    for recording in &unfinished {
        let before = Whole::read_file(&recording.path).expect("a recording");
        let stage = Box::new(Compat::new(version("5.10")));
        let converted = convert(&recording.path, None, vec![stage]).expect("a conversion");
        let after = Whole::read(converted.bytes()).expect("a recording");
        assert!(
            after.records.len() + 9 >= before.records.len(),
            "{}: {} records",
            recording.name,
            after.records.len()
        );
    }
}

/// Sections that another option removes are not treated as damaged.
#[test]
fn sections_that_are_taken_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (fixture, options) in [
        ("7.2-x86_64-file-z", &["--decompress"][..]),
        ("7.2-x86_64-file-threads", &[]),
        ("7.2-x86_64-file-default", &["--drop", "CMDLINE"]),
    ] {
        let mut command = perfconv();
        command
            .args(["--compat", "6.1", "-f"])
            .args(options)
            .arg(recordings::fixture(fixture).path);
        let said = command
            .arg("-o")
            .arg(folder.path().join("out"))
            .output()
            .expect("perfconv runs");
        let notes = String::from_utf8_lossy(&said.stderr);
        assert!(
            said.status.success() && !notes.contains("damaged"),
            "{fixture}: {notes}"
        );
    }
}

/// Returns every release in the tables.
fn releases() -> BTreeSet<Version> {
    let words: [&[Field]; 9] = [
        SampleType::FIELDS,
        ReadFormat::FIELDS,
        BranchSampleType::FIELDS,
        AttrFlags::FIELDS,
        AuxAction::FIELDS,
        record::AuxFlags::FIELDS,
        BranchFlags::FIELDS,
        Weights::FIELDS,
        record::DataSource::FIELDS,
    ];
    let misc = record::TABLE.iter().flat_map(|info| info.misc);
    let bits = words
        .into_iter()
        .flatten()
        .chain(misc)
        .map(|field| field.since);
    let records = record::TABLE.iter().map(|info| info.since);
    let features = feature::TABLE.iter().map(|info| info.since);
    let sizes = SIZES.iter().map(|(_, since)| *since);
    bits.chain(records)
        .chain(features)
        .chain(sizes)
        .map(version)
        .collect()
}

/// Checks that the recording contains nothing newer than `release`, and that every record matches
/// its event.
fn check_known(path: &Path, release: Version) -> Result<(), String> {
    let whole = Whole::read_file(path)?;
    let events = &whole.recording.events;
    for event in events.iter() {
        if event.attr != event.attr.known_in(release)
            || event
                .attr
                .self_sized()
                .is_ok_and(|a| a.size > Attr::size_in(release))
        {
            return Err(format!("{:?} for {release}", event.attr));
        }
    }
    if let Some(Ok(Section {
        value: Feature::EventDescs(descs),
        ..
    })) = whole.recording.feature(FeatureId::EVENT_DESC)
    {
        for desc in descs.events.0 {
            if *desc.attr != desc.attr.known_in(release) {
                return Err(format!("EVENT_DESC: {:?} for {release}", desc.attr));
            }
        }
    }
    for (at, kind) in &whole.records {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0)
            .map_err(|error| error.to_string())?;
        let Some(info) = kind.info() else {
            return Err(format!("{kind} for {release}"));
        };
        if !release.has(info.since) && *kind != RecordType::HEADER_ATTR {
            return Err(format!("{kind} for {release}"));
        }
        if info
            .misc
            .iter()
            .any(|flag| raw.misc >> flag.bit & 1 == 1 && !release.has(flag.since))
        {
            return Err(format!("misc {:#x} of {kind} for {release}", raw.misc));
        }
        if kind.is_compressed() {
            continue;
        }
        let record =
            Record::decode(&raw, &events.layout_of(&raw)).map_err(|error| error.to_string())?;
        if record
            .encode_for(events, raw.endian)
            .map_err(|error| error.to_string())?
            != raw.bytes
        {
            return Err(format!("{kind} is another one when it is read"));
        }
    }
    Ok(())
}

/// The result of `--compat` for any recording and any release is intact, and contains nothing that
/// the release does not know; otherwise the conversion is refused. Here, each recording is tested
/// with a few releases, and each release with some recordings; over many runs, all combinations are
/// tested.
#[test]
fn every_release_and_every_recording() {
    let releases: Vec<Version> = releases().into_iter().collect();
    assert!(releases.len() > 40, "{} releases", releases.len());
    let all = if is_thorough() {
        all_recordings()
    } else {
        recordings::fixtures()
    };
    let step = if is_thorough() { 1 } else { 13 };
    let is_clean = |path: &Path| {
        Input::open(path)
            .and_then(Report::of)
            .is_ok_and(|report| report.is_clean())
    };
    let is_single = |form| {
        matches!(
            form,
            Some(Form {
                container: Container::File | Container::Pipe,
                ..
            })
        )
    };
    let all: Vec<Recording> = all
        .into_iter()
        .filter(|recording| is_single(recording.form))
        .collect();
    recordings::check_all(&all, |recording| {
        if !is_clean(&recording.path) {
            return Ok(());
        }
        let name: usize = recording.name.bytes().map(usize::from).sum();
        for release in releases.iter().skip(name % step).step_by(step) {
            let stage = Compat::new(*release).deciding(Unknown::Drop);
            let made = match convert(&recording.path, None, vec![Box::new(stage)]) {
                Ok(made) => made,
                Err(error) => {
                    let why = error.to_string();
                    let is_known = [
                        "knows none of the recording's data records",
                        "cannot read it",
                    ]
                    .iter()
                    .any(|known| why.contains(known));
                    if is_known {
                        continue;
                    } else {
                        return Err(format!("for {release}: {why}"));
                    }
                }
            };
            let report = Input::open(&made.path())
                .and_then(Report::of)
                .map_err(|error| error.to_string())?;
            if !report.is_clean() {
                return Err(format!("for {release}: {}", report.text()));
            }
            check_known(&made.path(), *release).map_err(|why| format!("for {release}: {why}"))?;
            let again = convert(&made.path(), None, vec![Box::new(Compat::new(*release))]);
            if again
                .map_err(|error| format!("for {release}, again: {error}"))?
                .bytes()
                != made.bytes()
            {
                return Err(format!("for {release}: for it again it is another one"));
            }
            // The same with compressed records.
            let plain = convert(&made.path(), None, vec![Box::new(Decompress::default())]);
            let plain = plain.map_err(|error| error.to_string())?;
            check_known(&plain.path(), *release)
                .map_err(|why| format!("for {release}, compressed: {why}"))?;
        }
        Ok(())
    });
}

/// Returns a recording of two events in a group, with all features that change the layout of
/// records, for comparison with the output of perf 6.1.
fn made(folder: &Path) -> PathBuf {
    let parts = [
        SampleType::IDENTIFIER,
        SampleType::IP,
        SampleType::TID,
        SampleType::TIME,
        SampleType::CPU,
        SampleType::PERIOD,
        SampleType::READ,
        SampleType::BRANCH_STACK,
        SampleType::WEIGHT_STRUCT,
        SampleType::CGROUP,
    ];
    let flag = |flags: AttrFlags, name| flags.with(name, 1).expect("a flag");
    let names = [
        "sample_id_all",
        "comm",
        "mmap",
        "mmap2",
        "comm_exec",
        "inherit_thread",
    ];
    let attr = |branches: BranchSampleType| Attr {
        kind: EventType::SOFTWARE,
        size: Attr::KNOWN_SIZE,
        config: SoftwareEvent::CPU_CLOCK.0,
        sample_period: 1_000_000,
        sample_type: parts
            .into_iter()
            .fold(SampleType::default(), |all, part| all | part),
        read_format: ReadFormat::ID
            | ReadFormat::GROUP
            | ReadFormat::LOST
            | ReadFormat::TOTAL_TIME_ENABLED,
        flags: names.into_iter().fold(AttrFlags::default(), flag),
        config2: Some(0),
        branch_sample_type: Some(BranchSampleType::USER | BranchSampleType::ANY | branches),
        sample_regs_user: Some(0),
        sample_stack_user: Some(0),
        clockid: Some(0),
        sample_regs_intr: Some(0),
        aux_watermark: Some(0),
        sample_max_stack: Some(127),
        reserved_2: Some(0),
        aux_sample_size: Some(0),
        aux_action: Some(AuxAction::default()),
        sig_data: Some(0),
        config3: Some(0),
        config4: Some(0),
        ..Attr::default()
    };
    let mut recording = perfdata_core::Recording::new(Order::Little);
    recording.events.push(Event {
        attr: attr(BranchSampleType::COUNTERS | BranchSampleType::HW_INDEX),
        ids: vec![11],
    });
    recording.events.push(Event {
        attr: attr(BranchSampleType::HW_INDEX),
        ids: vec![12],
    });
    let described = recording.events.iter().zip([b"first", &b"other"[..]]);
    let described = described.map(|(event, name)| {
        (
            event.attr.clone(),
            HeaderString::new(name),
            event.ids.clone(),
        )
    });
    let section = Feature::EventDescs(EventDescs::new(described.collect()).expect("of one size"));
    recording
        .set_feature(FeatureId::EVENT_DESC, section)
        .expect("a section");
    recording
        .set_feature(FeatureId::ARCH, Feature::Arch(HeaderString::new(b"x86_64")))
        .expect("a section");

    let path = folder.join("made.data");
    let gaps: Vec<u8> = Vec::new();
    let out = File::create(&path).expect("a file");
    let mut writer =
        FileWriter::begin(out, FilePlan::standard(), &recording, &gaps).expect("it begins");
    let tid = Tid { pid: 42, tid: 42 };
    let trailer = |time| SampleId {
        tid: Some(tid),
        time: Some(time),
        id: None,
        stream_id: None,
        cpu: Some(Cpu {
            cpu: 1,
            reserved: 0,
        }),
        identifier: Some(11),
    };
    let mut write = |kind, misc, body, time: u64| {
        let sample_id = (kind != RecordType::SAMPLE).then(|| trailer(time));
        writer
            .write(&Record {
                kind,
                misc,
                body,
                tail: Vec::new(),
                sample_id,
            })
            .expect("it is written");
    };
    let comm = Comm {
        pid: 42,
        tid: 42,
        comm: Text::padded(b"example", 8),
    };
    write(RecordType::COMM, MISC_COMM_EXEC, Body::Comm(comm), 1);
    for (addr, prot, name) in [(0x1000, 5, &b"/bin/code"[..]), (0x8000, 3, b"/bin/data")] {
        let inode = Some(record::Inode {
            maj: 8,
            min: 1,
            ino: 5,
            ino_generation: 0,
        });
        let filename = Text::padded(name, 8);
        let map = Mmap2 {
            pid: 42,
            tid: 42,
            addr,
            len: 0x1000,
            pgoff: 0,
            inode,
            build_id: None,
            prot,
            flags: 2,
            filename,
        };
        write(RecordType::MMAP2, 2, Body::Mmap2(map), 2);
    }
    let value = |value, id| GroupValue {
        value,
        id: Some(id),
        lost: Some(7),
    };
    let read = |time| ReadValue {
        value: None,
        nr: Some(2),
        time_enabled: Some(time),
        time_running: None,
        id: None,
        lost: None,
        values: ContextList(vec![value(time, 11), value(time + 1, 12)]),
    };
    let branch = |from, to| {
        let flags = BranchFlags::default()
            .with("predicted", 1)
            .and_then(|flags| flags.with("privilege", 1));
        BranchEntry {
            from,
            to,
            flags: flags.expect("fields"),
        }
    };
    for time in 3..13 {
        let stack = BranchStack {
            nr: 2,
            hw_idx: Some(3),
            entries: List(vec![branch(0x1010, 0x1020), branch(0x1030, 0x1000)]),
            counters: List(if time % 2 == 1 {
                vec![0xaaaa, 0xbbbb]
            } else {
                Vec::new()
            }),
        };
        let weights = Weights::default()
            .with("var1_dw", 77)
            .and_then(|weights| weights.with("var2_w", 5));
        let sample = Sample {
            identifier: Some(11 + (time + 1) % 2),
            ip: Some(0x1000 + time),
            tid: Some(tid),
            time: Some(time * 1_000_000),
            cpu: Some(Cpu {
                cpu: 1,
                reserved: 0,
            }),
            period: Some(1_000_000),
            read: Some(read(time)),
            branch_stack: Some(stack),
            weight_struct: weights,
            cgroup: Some(5),
            ..Sample::default()
        };
        write(RecordType::SAMPLE, 2, Body::Sample(sample), time);
    }
    let task = record::Read {
        pid: 42,
        tid: 42,
        values: read(20),
    };
    write(RecordType::READ, 0, Body::Read(task), 20_000_000);
    let cpus = CpuSet::Range(record::CpuRange {
        any_cpu: 1,
        pad: 0,
        start_cpu: 2,
        end_cpu: 4,
    });
    let map = Body::CpuMap(record::CpuMap {
        kind: CpuMapType::RANGE,
        cpus,
    });
    let map = Record {
        kind: RecordType::CPU_MAP,
        misc: 0,
        body: map,
        tail: Vec::new(),
        sample_id: None,
    };
    writer.write(&map).expect("it is written");
    writer.finish(&recording).expect("a file");
    path
}

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

/// perf 6.1 misinterprets branch counters as the data after them, and perf before 6.0 the counts of
/// lost samples.
#[test]
fn an_older_perf_reads_the_same_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = made(folder.path());
    let (Some(newer), Some(older)) = (perf_of(7, 2, Endian::Little), perf_of(6, 1, Endian::Little))
    else {
        return;
    };
    let text = |perf: &Perf, path: &Path| {
        let mut command = perf.command();
        command
            .args([
                "script",
                "-F",
                "comm,tid,cpu,time,event,ip,period,weight,brstack",
                "-i",
            ])
            .arg(path);
        let said = perf::run(command).expect("perf starts");
        assert!(said.success(), "{}", said.stderr);
        // A newer perf prints more properties of a branch.
        let words = |line: &str| -> Vec<String> {
            line.split_whitespace()
                .map(|word| word.split("/P/").next().unwrap_or_default().to_owned())
                .collect()
        };
        said.stdout.lines().map(words).collect::<Vec<_>>()
    };
    let converted = convert(&input, None, vec![Box::new(Compat::new(version("6.1")))])
        .expect("it is converted");
    let (new, old) = (text(newer, &input), text(older, &converted.path()));
    // perf shows each sample with the counts of both events.
    assert_eq!(
        new.iter().filter(|line| !line.is_empty()).count(),
        20,
        "{new:?}"
    );
    assert_eq!(new, old);
}

/// A regression test: perf 6.1 interpreted the branch counters of samples as their weights.
#[test]
fn branch_counters_are_no_weights() {
    let bc = recordings::root().join("../shared/defects/bc.data");
    let Some(perf) = perf_of(6, 1, Endian::Little) else {
        return;
    };
    if !bc.exists() {
        return skipped::note(format_args!("../shared/defects"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("old.data");
    let mut command = perfconv();
    command
        .args(["--compat", "6.1"])
        .arg(&bc)
        .arg("-o")
        .arg(&output);
    assert!(command.output().expect("perfconv runs").status.success());
    let mut command = perf.command();
    command.args(["script", "-F", "weight", "-i"]).arg(&output);
    let said = perf::run(command).expect("perf starts");
    assert!(
        said.stdout.lines().count() > 100 && said.stdout.lines().all(|line| line.trim() == "77"),
        "{}",
        said.stderr
    );
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
