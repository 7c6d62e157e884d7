//! Merging recordings: events, IDs, times and what existed before each.

mod aux_data;
mod features;
mod order;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use perfdata_convert::error::Step;
use perfdata_convert::inspect::verify::{Report, Severity};
use perfdata_convert::io::Input;
use perfdata_convert::merge::{Align, Merge, Merged};
use perfdata_core::Endian;
use perfdata_core::attr::SampleType;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_tests::convert::{Whole, convert, into_memory};
use perfdata_tests::recordings::{fixture, fixtures, in_parallel};
use perfdata_tests::synth::attr::{Attr, Stamp, sample_type::*};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::sample::Sample;
use perfdata_tests::synth::{kernel, kind, user};

/// Merges into memory; also returns the notes.
fn merge_noting(
    merge: Merge,
    inputs: Vec<Input>,
    to: Option<ContainerKind>,
) -> Result<(Vec<u8>, Vec<String>), perfdata_convert::Error> {
    let names = ('a'..).map(String::from);
    let Merged { input, notes, .. } = merge.open(names.zip(inputs).collect())?;
    Ok((into_memory(input, to, Vec::new())?, notes))
}

fn merge_with(merge: Merge, inputs: &[&[u8]]) -> Result<Vec<u8>, String> {
    let inputs = inputs
        .iter()
        .map(|bytes| Input::from_source(bytes.to_vec()))
        .collect();
    match merge_noting(merge, inputs, Some(ContainerKind::File)) {
        Ok((bytes, _)) => {
            assert_eq!(errors(&bytes), Vec::<String>::new());
            Ok(bytes)
        }
        Err(error) => {
            assert!(error.is_refusal(), "{error}");
            Err(error.to_string())
        }
    }
}

fn merge(inputs: &[&[u8]]) -> Vec<u8> {
    merge_with(Merge::default(), inputs).expect("they can be merged")
}

/// Returns a recording with its records decompressed.
fn plain(bytes: Vec<u8>) -> Vec<u8> {
    let decompress = perfdata_convert::stages::decompress::Decompress::default();
    let input = Input::from_source(bytes);
    into_memory(input, None, vec![Box::new(decompress)]).expect("it can be decompressed")
}

/// Returns what `verify` finds wrong.
fn errors(bytes: &[u8]) -> Vec<String> {
    let report = Report::of(Input::from_source(bytes.to_vec())).expect("a recording");
    let errors = report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    errors
        .map(|finding| format!("{:#x}: {}", finding.offset, finding.meaning))
        .collect()
}

/// The records of a recording that are about its content, each with its event's place and its time.
fn records(bytes: &[u8]) -> Vec<(Option<usize>, Option<u64>, Record)> {
    let whole = Whole::read(bytes.to_vec()).expect("a recording");
    let events = &whole.recording.events;
    let kept = |kind: &RecordType| *kind != RecordType::FINISHED_ROUND && !kind.is_metadata();
    whole
        .records
        .iter()
        .filter(|(_, kind)| kept(kind))
        .map(|&(at, _)| {
            let raw =
                RawRecord::first(&whole.stream[at..], whole.recording.endian, 0).expect("a record");
            let record = Record::decode(&raw, &events.layout_of(&raw)).expect("it can be read");
            let event = (raw.kind == RecordType::SAMPLE)
                .then(|| events.of_record(&raw).expect("its event is known"));
            (event, events.time(&raw), record)
        })
        .collect()
}

/// The samples of a recording with the attribute of each, without their event IDs: instruction
/// pointer, process, time, and the attribute without the flag for the ID.
fn samples(bytes: &[u8]) -> Vec<(u64, u64, u32, String)> {
    let whole = Whole::read(bytes.to_vec()).expect("a recording");
    let mut samples: Vec<_> = records(bytes)
        .into_iter()
        .filter_map(|(event, _, record)| {
            let Body::Sample(sample) = record.body else {
                return None;
            };
            let mut attr = whole.recording.events[event?].attr.clone();
            attr.sample_type.0 &= !SampleType::IDENTIFIER.0;
            Some((
                sample.time.unwrap_or(0),
                sample.ip.unwrap_or(0),
                sample.tid.map_or(0, |tid| tid.pid),
                format!("{attr:?}"),
            ))
        })
        .collect();
    samples.sort();
    samples
}

const FLAGS: &str = "mmap comm task sample_id_all";
const BASE: u64 = IP | TID | TIME | PERIOD;

fn event(parts: u64, period: u64, ids: &[u64]) -> Event {
    Event {
        name: format!("every-{period}"),
        attr: Attr {
            kind: 1,
            size: 128,
            sample_period: period,
            ..Attr::new(parts, FLAGS)
        },
        ids: ids.to_vec(),
    }
}

/// A small recording: what existed before it, and one sample each at `times`.
struct Small {
    big: bool,
    events: Vec<Event>,
    pid: u32,
    comm: &'static str,
    times: Vec<u64>,
    /// Address of the kernel's mapping.
    kernel: u64,
}

impl Small {
    fn new(event: Event, comm: &'static str, times: &[u64]) -> Self {
        Small {
            big: false,
            events: vec![event],
            pid: 1000,
            comm,
            times: times.to_vec(),
            kernel: 0xffff_ffff_8100_0000,
        }
    }

    fn file(&self) -> File {
        let task = (self.pid, self.pid);
        let mut cases = Vec::new();
        for (at, event) in self.events.iter().enumerate() {
            let mut s = Scribe::new(self.big, event.attr.clone(), Stamp::ZERO);
            s.tick = 0;
            if at == 0 {
                let name = "[kernel.kallsyms]_text";
                let place = [self.kernel, 0x100_0000, self.kernel];
                s.kernel("MMAP", kind::MMAP, misc::KERNEL, |b| {
                    kernel::mmap(b, (u32::MAX, 0), place, name)
                });
                s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, task, self.comm));
                s.kernel("MMAP", kind::MMAP, misc::USER, |b| {
                    kernel::mmap(b, task, [0x40_0000, 0x1000, 0], self.comm)
                });
            }
            s.stamp = Stamp {
                pid: self.pid,
                tid: self.pid,
                ..Stamp::ZERO
            };
            for &time in self.times.iter().skip(at).step_by(self.events.len()) {
                s.stamp.time = time;
                s.stamp.id = event.ids.first().copied().unwrap_or(0);
                let (attr, stamp) = (s.attr.clone(), s.stamp);
                s.user("SAMPLE", kind::SAMPLE, misc::USER, |b| {
                    let sample = Sample {
                        ip: 0x40_0000 + time,
                        ..Sample::rich(&stamp, &attr)
                    };
                    sample.put(b, &attr)
                });
            }
            cases.extend(s.cases);
        }
        let mut file = File::new(self.big, self.events.clone());
        file.data = stream(&cases);
        file.set_feature(
            feature_events::EVENT_DESC,
            feature_events::event_desc(Buf::new(self.big), &self.events).bytes,
        );
        file
    }

    fn bytes(&self) -> Vec<u8> {
        self.file().bytes()
    }
}

#[test]
fn a_single_recording_stays_as_it_is() {
    in_parallel(&fixtures(), |recording| {
        let Ok(expected) = convert(&recording.path, None, Vec::new()) else {
            return;
        };
        let input = Input::open(&recording.path).expect("a recording");
        let (bytes, notes) =
            merge_noting(Merge::default(), vec![input], None).expect("one can be merged");
        assert!(bytes == expected.bytes(), "{}", recording.name);
        assert_eq!(notes, Vec::<String>::new());
    });
}

/// Each fixture with itself: every sample twice, by time, and nothing wrong in the result.
#[test]
fn every_fixture_can_be_merged_with_itself() {
    let all: Vec<_> = fixtures()
        .into_iter()
        .filter(|recording| recording.path.is_file() && !recording.is_damaged())
        .collect();
    let merged = Mutex::new(0);
    let refused: Mutex<HashMap<String, usize>> = Mutex::default();
    in_parallel(&all, |recording| {
        let open = || Input::open(&recording.path).expect("a recording");
        let file = Some(ContainerKind::File);
        let once = match merge_noting(Merge::default(), vec![open()], file) {
            Ok((bytes, _)) => bytes,
            Err(_) => return,
        };
        let twice = match merge_noting(Merge::default(), vec![open(), open()], file) {
            Ok((bytes, _)) => bytes,
            Err(error) => {
                let why = error.to_string();
                let known = [
                    "counts by the numbers",
                    "no events",
                    "AUX data",
                    "have no time",
                ];
                let known = known.into_iter().find(|known| why.contains(known));
                let known = known.unwrap_or_else(|| panic!("{}: {why}", recording.name));
                let mut refused = refused.lock().expect("no thread failed");
                *refused.entry(known.to_owned()).or_default() += 1;
                return;
            }
        };
        assert_eq!(errors(&twice), Vec::<String>::new(), "{}", recording.name);
        let (once, twice) = (plain(once), plain(twice));
        let mut expected: Vec<_> = samples(&once)
            .into_iter()
            .flat_map(|one| [one.clone(), one])
            .collect();
        expected.sort();
        assert!(samples(&twice) == expected, "{}", recording.name);
        let times: Vec<u64> = records(&twice)
            .into_iter()
            .filter_map(|(_, time, _)| time.filter(|&time| time != 0 && time != u64::MAX))
            .collect();
        assert!(times.is_sorted(), "{}", recording.name);
        *merged.lock().expect("no thread failed") += 1;
    });
    let merged = merged.into_inner().expect("no thread failed");
    assert!(merged > 60, "{merged} merged, {refused:?} refused");
}

/// Attributes that are equal or not × records with and without IDs, at two places.
#[test]
fn records_of_all_kinds_of_events_find_their_event() {
    let forms = [BASE, BASE | ID, BASE | IDENTIFIER];
    for (first, a) in forms.into_iter().enumerate() {
        for (second, b) in forms.into_iter().enumerate() {
            for other_period in [4000, 5000] {
                for ids in [[7, 8], [7, 7]] {
                    let one = Small::new(event(a, 4000, &ids[..1]), "one", &[100, 300]);
                    let two = Small {
                        pid: 2000,
                        ..Small::new(event(b, other_period, &ids[1..]), "two", &[200, 400])
                    };
                    let (one, two) = (one.bytes(), two.bytes());
                    let both = merge(&[&one, &two]);
                    let mut expected = samples(&one);
                    expected.extend(samples(&two));
                    expected.sort();
                    assert_eq!(
                        samples(&both),
                        expected,
                        "{first} {second} {other_period} {ids:?}"
                    );
                    let events = Whole::read(both).expect("a recording").recording.events;
                    let is_one = other_period == 4000 && (a | IDENTIFIER) == (b | IDENTIFIER);
                    assert_eq!(events.len(), if is_one { 1 } else { 2 });
                }
            }
        }
    }
    // Events without any IDs in the tables.
    let one = Small::new(event(BASE, 4000, &[]), "one", &[100]).bytes();
    let two = Small::new(event(BASE, 5000, &[]), "two", &[200]).bytes();
    let both = Whole::read(merge(&[&one, &two])).expect("a recording");
    let ids: Vec<_> = both
        .recording
        .events
        .iter()
        .map(|event| event.ids.clone())
        .collect();
    assert_eq!(ids, [[1], [2]]);
}

/// IDs of different events collide: those of the later recording change everywhere.
#[test]
fn ids_that_collide_are_renumbered_everywhere() {
    let bytes = fs::read(fixture("6.1-x86_64-file-group-S").path).expect("a fixture");
    let mut other = bytes.clone();
    let attrs = u64::from_le_bytes(bytes[24..32].try_into().expect("8 bytes")) as usize;
    // The sampling period of the first event: the third word of its attribute.
    other[attrs + 16] ^= 1;
    let both = merge(&[&bytes, &other]);
    let whole = Whole::read(both.clone()).expect("a recording");
    let events = &whole.recording.events;
    let mut all: Vec<u64> = events.iter().flat_map(|event| event.ids.clone()).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "each ID is that of one event");
    let mut of_event = vec![0; events.len()];
    for (event, _, record) in records(&both) {
        assert_eq!(record.event_ids(events).unknown, None);
        if let Some(event) = event {
            of_event[event] += 1;
        }
    }
    let once = samples(&bytes).len();
    assert_eq!(samples(&both).len(), 2 * once);
    assert!(
        of_event.iter().filter(|&&count| count > 0).count() >= 2,
        "{of_event:?}"
    );
}

/// The program of a process changes between two recordings of it: the samples of the first keep
/// their names, whichever recording is named first.
#[test]
fn what_existed_before_a_recording_is_told_at_its_start() {
    let one = Small::new(event(BASE, 4000, &[7]), "perl", &[100, 200]).bytes();
    let two = Small::new(event(BASE, 4000, &[8]), "python", &[1000, 1100]).bytes();
    for inputs in [[&one, &two], [&two, &one]] {
        let both = merge(&[inputs[0], inputs[1]]);
        let mut seen = Vec::new();
        for (_, time, record) in records(&both) {
            match record.body {
                Body::Comm(comm) => seen.push((time, comm.comm.to_string())),
                Body::Exit(task) => {
                    assert_eq!((task.pid, task.tid, task.time), (1000, 1000, 999));
                    seen.push((time, "exit".to_owned()));
                }
                Body::Sample(_) => seen.push((time, String::new())),
                _ => {}
            }
        }
        let expected = [
            (0, "perl"),
            (100, ""),
            (200, ""),
            (999, "exit"),
            (999, "python"),
            (1000, ""),
            (1100, ""),
        ];
        let expected = expected.map(|(time, what)| (Some(time), what.to_owned()));
        assert_eq!(seen, expected);
    }
}

/// Recordings of one process at the same time say the same of it: it is said once. A process that
/// only one knows is kept.
#[test]
fn what_two_recordings_say_is_said_once() {
    let one = Small::new(event(BASE, 4000, &[7]), "same", &[100, 500]).bytes();
    let two = Small::new(event(BASE, 5000, &[8]), "same", &[200, 400]).bytes();
    let three = Small {
        pid: 3000,
        ..Small::new(event(BASE, 6000, &[9]), "same", &[300, 350])
    };
    let both = records(&merge(&[&one, &two, &three.bytes()]));
    let count = |kind| {
        both.iter()
            .filter(|(_, _, record)| record.kind == kind)
            .count()
    };
    assert_eq!(count(RecordType::COMM), 2);
    // One of the kernel, one of each process.
    assert_eq!(count(RecordType::MMAP), 3);
    assert_eq!(count(RecordType::SAMPLE), 6);
}

#[test]
fn byte_orders_containers_and_attribute_sizes_are_brought_to_one() {
    let one = Small::new(event(BASE, 4000, &[7]), "one", &[100, 300]);
    let mut two = Small::new(event(BASE, 4000, &[8]), "two", &[200, 400]);
    let expected = samples(&merge(&[&one.bytes(), &two.bytes()]));
    two.big = true;
    let both = merge(&[&one.bytes(), &two.bytes()]);
    assert_eq!(samples(&both), expected);
    let whole = Whole::read(both).expect("a recording");
    assert_eq!(whole.recording.endian, Endian::Little);
    assert_eq!(whole.recording.events.len(), 1);
    let other = Whole::read(merge(&[&two.bytes(), &one.bytes()])).expect("a recording");
    assert_eq!(other.recording.endian, Endian::Big);
    two.big = false;
    two.events[0].attr.size = 144;
    let both = Whole::read(merge(&[&one.bytes(), &two.bytes()])).expect("a recording");
    let sizes: Vec<u32> = both
        .recording
        .events
        .iter()
        .map(|event| event.attr.size)
        .collect();
    assert_eq!(sizes, [144], "the attribute is the same with more zeros");
    let pipe = {
        let input = Input::from_source(two.bytes());
        let pipe = Some(ContainerKind::Pipe);
        merge_noting(Merge::default(), vec![input], pipe)
            .expect("a pipe")
            .0
    };
    assert_eq!(samples(&merge(&[&one.bytes(), &pipe])).len(), 4);
}

/// The records are in no order and there are no rounds: they are sorted in a temporary file.
#[test]
fn records_without_rounds_are_sorted() {
    let count = 150_000_u64;
    // Larger than what is sorted in memory, and the youngest first.
    let times: Vec<u64> = (0..count).rev().map(|at| 1_000 + 10 * at).collect();
    let mut parts = event(BASE | STACK_USER, 4000, &[7]);
    parts.attr.sample_stack_user = 256;
    let one = Small::new(parts, "one", &times).bytes();
    assert!(one.len() > 11 << 20, "{}", one.len());
    let two = Small::new(event(BASE, 5000, &[8]), "two", &[2_005, 300_005]).bytes();
    let both = merge(&[&one, &two]);
    let times: Vec<u64> = records(&both)
        .into_iter()
        .filter(|(event, ..)| event.is_some())
        .filter_map(|(_, time, _)| time)
        .collect();
    assert_eq!(times.len() as u64, count + 2);
    assert!(times.is_sorted());
    let rounds = Whole::read(both).expect("a recording");
    let rounds = rounds
        .records
        .iter()
        .filter(|(_, kind)| *kind == RecordType::FINISHED_ROUND);
    assert!(rounds.count() > 1);
}

#[test]
fn times_are_aligned() {
    let one = Small::new(event(BASE, 4000, &[7]), "one", &[1_000, 3_000]);
    let two = Small::new(event(BASE, 4000, &[8]), "two", &[500, 700]);
    let times = |bytes: &[u8]| -> Vec<u64> { samples(bytes).iter().map(|one| one.0).collect() };
    let after = Merge {
        align: Align::After,
        ..Merge::default()
    };
    let both = merge_with(after, &[&one.bytes(), &two.bytes()]).expect("one after the other");
    assert_eq!(times(&both), [1_000, 3_000, 3_002, 3_202]);
    let wall = Merge {
        align: Align::Wall,
        ..Merge::default()
    };
    let with_clock = |small: &Small, wall: u64, clock: u64| {
        let mut file = small.file();
        let section = Buf::new(false).u32(1).u32(1).u64(wall).u64(clock).bytes;
        file.set_feature(29, section);
        file.bytes()
    };
    let (a, b) = (
        with_clock(&one, 1_010_000, 10_000),
        with_clock(&two, 1_002_400, 2_000),
    );
    let both = merge_with(wall, &[&a, &b]).expect("both have the time of day");
    // The second clock is 400 ns behind the first.
    assert_eq!(times(&both), [900, 1_000, 1_100, 3_000]);
    // No time becomes negative.
    let early = with_clock(&two, 2_000, 2_000);
    let both = merge_with(wall, &[&a, &early]).expect("both have the time of day");
    assert_eq!(times(&both)[..2], [2, 202]);
    let error = merge_with(wall, &[&a, &two.bytes()]).expect_err("one has no time of day");
    assert!(error.starts_with("b: there is no CLOCK_DATA"), "{error}");
}

#[test]
fn machines_keep_their_processes_and_cpus() {
    let with_cpus = |small: &Small, name: &str| {
        let mut file = small.file();
        file.set_feature(7, Buf::new(false).u32(4).u32(4).bytes);
        file.set_feature(3, Buf::new(false).str(name).bytes);
        file.bytes()
    };
    let parts = BASE | CPU;
    let one = with_cpus(&Small::new(event(parts, 4000, &[7]), "one", &[100]), "red");
    let two = with_cpus(&Small::new(event(parts, 4000, &[7]), "two", &[200]), "blue");
    let machines = Merge {
        machines: true,
        ..Merge::default()
    };
    let error = merge_with(machines, &[&one, &two]).expect_err("two clocks");
    assert_eq!(
        error,
        "the clocks of different machines do not agree: perf's own in a, perf's own in b"
    );
    // The time of day and TAI are the same everywhere; other clocks count from the boot.
    for (clock, name) in [
        (0, None),
        (11, None),
        (1, Some("monotonic")),
        (7, Some("boottime")),
    ] {
        let mut small = Small::new(event(parts, 4000, &[7]), "one", &[100]);
        small.events[0].attr.flags += " use_clockid";
        small.events[0].attr.clockid = clock;
        let one = with_cpus(&small, "red");
        let both = merge_with(machines, &[&one, &with_cpus(&small, "blue")]);
        match name {
            None => drop(both.expect("it is the same clock")),
            Some(name) => assert_eq!(
                both.expect_err("not the same clock"),
                format!("the clocks of different machines do not agree: {name} in a, {name} in b")
            ),
        }
    }
    let machines = Merge {
        align: Align::After,
        ..machines
    };
    let three = merge_with(machines, &[&one, &two, &one]).expect("three machines");
    let of = |bytes: &[u8]| -> Vec<(u32, u32)> {
        let all = records(bytes).into_iter();
        all.filter_map(|(_, _, record)| match record.body {
            Body::Sample(sample) => Some((sample.tid?.pid, sample.cpu?.cpu)),
            _ => None,
        })
        .collect()
    };
    assert_eq!(
        of(&three),
        [(1000, 0), ((1 << 22) + 1000, 4), ((2 << 22) + 1000, 8)]
    );
    let kernel = records(&three).into_iter().filter(|(_, _, record)| {
        matches!(&record.body, Body::Mmap(map) if map.pid == u32::MAX && map.tid == 0)
    });
    assert_eq!(kernel.count(), 1, "the kernel is the same");
    let two_of_three = merge_with(
        machines,
        &[&merge_with(machines, &[&one, &two]).expect("two"), &one],
    );
    assert_eq!(of(&two_of_three.expect("three")), of(&three));
    let whole = Whole::read(three).expect("a recording").recording;
    assert_eq!(whole.nr_cpus_available(), 12);
    let host = &whole.features[&perfdata_core::feature::FeatureId::HOSTNAME];
    assert!(host.windows(13).any(|text| text == b"red,blue,red\0"));
    assert_eq!(whole.events[0].ids.len(), 3, "their IDs are apart");
}

/// Adds the build ID of the kernel to a recording.
fn with_kernel(mut file: File, id: u8) -> Vec<u8> {
    let name = b"[kernel.kallsyms]\0\0\0\0\0\0\0";
    let entry = Buf::new(false)
        .u32(0)
        .u16(1 | 1 << 15)
        .u16(8 + 28 + name.len() as u16)
        .u32(u32::MAX)
        .bytes(&[id; 20])
        .bytes(&[20, 0, 0, 0])
        .bytes(name);
    file.set_feature(2, entry.bytes);
    file.bytes()
}

/// The kernel has another address after a boot: perf knows only one.
#[test]
fn a_kernel_at_another_address_is_refused_or_moved() {
    let one = Small::new(event(BASE, 4000, &[7]), "one", &[100]);
    let two = Small {
        kernel: 0xffff_ffff_9200_0000,
        ..Small::new(event(BASE | CALLCHAIN, 4000, &[7]), "two", &[200])
    };
    let (a, b) = (with_kernel(one.file(), 1), with_kernel(two.file(), 1));
    let inputs = || vec![Input::from_source(a.clone()), Input::from_source(b.clone())];
    let error = merge_noting(Merge::default(), inputs(), None).expect_err("two addresses");
    let text = error.to_string();
    assert!(
        text.contains("0xffffffff81000000 in a") && text.contains("0xffffffff92000000 in b"),
        "{text}"
    );
    assert_eq!(error.step(), Some(&Step::RebaseKernel));
    let error =
        merge_with(Merge::default(), &[&a, &with_kernel(two.file(), 2)]).expect_err("two kernels");
    assert!(
        error.contains("the build ID of the kernel differs"),
        "{error}"
    );
    let moving = Merge {
        rebase_kernel: true,
        align: Align::After,
        ..Merge::default()
    };
    let error = merge_with(moving, &[&one.bytes(), &two.bytes()]).expect_err("unknown kernels");
    assert!(error.contains("has no build ID of it"), "{error}");
    let both = merge_with(moving, &[&a, &b]).expect("the same kernel");
    let before = records(&b);
    let after = records(&both);
    let kernels = after
        .iter()
        .filter_map(|(_, _, record)| match &record.body {
            Body::Mmap(map) if map.pid == u32::MAX => Some((map.addr, map.pgoff)),
            _ => None,
        });
    assert_eq!(
        kernels.collect::<Vec<_>>(),
        [(0xffff_ffff_8100_0000, 0xffff_ffff_8100_0000)]
    );
    let chain = |records: &[(Option<usize>, Option<u64>, Record)]| -> Vec<u64> {
        let mut all = records
            .iter()
            .filter_map(|(_, _, record)| match &record.body {
                Body::Sample(sample) => sample.callchain.clone(),
                _ => None,
            });
        all.next().map(|chain| chain.to_vec()).unwrap_or_default()
    };
    let moved: Vec<u64> = chain(&before)
        .into_iter()
        .map(|word| match word {
            0xffff_ffff_9200_0000..0xffff_ffff_9300_0000 => word - 0x1100_0000,
            word => word,
        })
        .collect();
    assert_eq!(chain(&after), moved);
}

#[test]
fn contradictions_are_refused_with_both_values() {
    let one = Small::new(event(BASE, 4000, &[7]), "one", &[100]);
    let refuse = |change: &dyn Fn(&mut Small)| {
        let mut two = Small::new(event(BASE, 4000, &[8]), "two", &[200]);
        change(&mut two);
        merge_with(Merge::default(), &[&one.bytes(), &two.bytes()]).expect_err("a contradiction")
    };
    let clock = refuse(&|two| {
        two.events[0].attr.flags += " use_clockid";
        two.events[0].attr.clockid = 1;
    });
    assert_eq!(clock, "the clock differs: perf's own in a, monotonic in b");
    let trailers = refuse(&|two| two.events[0].attr.flags = "mmap comm".into());
    assert_eq!(trailers, "sample_id_all differs: 1 in a, 0 in b");
    let times = refuse(&|two| two.events[0].attr.sample_type &= !TIME);
    assert_eq!(
        times,
        "the time in records differs: present in a, absent in b"
    );
    let with = |bit: u32, text: &str| {
        let mut file = one.file();
        file.set_feature(bit, Buf::new(false).str(text).bytes);
        file.bytes()
    };
    for (bit, what) in [(6, "the architecture"), (4, "the kernel release")] {
        let error = merge_with(Merge::default(), &[&with(bit, "x"), &with(bit, "y")]);
        let error = error.expect_err("a contradiction");
        assert_eq!(error, format!("{what} differs: x in a, y in b"));
    }
    let stat = fs::read(fixture("6.1-x86_64-stat-record").path).expect("a fixture");
    let error = merge_with(Merge::default(), &[&one.bytes(), &stat]).expect_err("counts");
    assert!(error.starts_with("b: STAT"), "{error}");
    let damaged = &one.bytes()[..400];
    let inputs = vec![
        Input::from_source(one.bytes()),
        Input::from_source(damaged.to_vec()),
    ];
    let error = merge_noting(Merge::default(), inputs, None).expect_err("it is damaged");
    assert!(error.to_string().starts_with("b: "), "{error}");
}

/// Records that readers accept once, and those that name dynamic event types.
#[test]
fn maps_are_kept_once_and_event_types_are_compared_by_name() {
    let with = |name: &str, other: &str, time: u64, id: u64| {
        let mut event = event(BASE, 4000, &[id]);
        event.attr.kind = 8;
        let small = Small::new(event, "one", &[time]);
        let mut file = small.file();
        let pmus = Buf::new(false).u32(2).u32(8).str(name).u32(9).str(other);
        file.set_feature(16, pmus.bytes);
        let mut s = Scribe::standard(false);
        s.user("THREAD_MAP", kind::THREAD_MAP, 0, |b| {
            user::thread_map(b, &[(1000, "one")])
        });
        file.data.extend(stream(&s.cases));
        file.bytes()
    };
    let both = merge(&[
        &with("kprobe", "uprobe", 100, 7),
        &with("uprobe", "kprobe", 200, 8),
    ]);
    let kinds: Vec<u32> = Whole::read(both.clone())
        .expect("a recording")
        .recording
        .events
        .iter()
        .map(|event| event.attr.kind.0)
        .collect();
    assert_eq!(kinds, [8, 9]);
    let maps = records(&both);
    let maps = maps
        .iter()
        .filter(|(_, _, record)| record.kind == RecordType::THREAD_MAP);
    assert_eq!(maps.count(), 1);
}

/// A merged recording can be read as often as a conversion needs.
#[test]
fn a_merge_can_be_converted_further() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let one = Small::new(event(BASE, 4000, &[7]), "one", &[100, 300]).bytes();
    let two = Small::new(event(BASE, 5000, &[8]), "two", &[200, 400]).bytes();
    fs::write(path("one"), &one).expect("a file");
    fs::write(path("two"), &two).expect("a file");
    let run = |words: &[&str]| {
        let output = perfdata_tests::convert::perfconv()
            .args(words)
            .current_dir(folder.path())
            .output()
            .expect("perfconv runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (status, text) = run(&[
        "merge",
        "one",
        "two",
        "--compress",
        "--swap-endian",
        "--build-ids=all",
        "-o",
        "both",
    ]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = run(&[
        "convert",
        "both",
        "--decompress",
        "--endian",
        "little",
        "-o",
        "plain",
    ]);
    assert_eq!(status, Some(0), "{text}");
    let plain = fs::read(path("plain")).expect("a file");
    let mut expected = samples(&one);
    expected.extend(samples(&two));
    expected.sort();
    assert_eq!(samples(&plain), expected);
    for (words, expected) in [
        (&["merge", "one", "two", "-o", "one", "-f"][..], 2),
        (&["merge", "one", "two", "-o", "two", "-f"][..], 2),
        (&["merge", "one", "two", "-o", "both"][..], 2),
        (&["merge", "one", "none", "-o", "more"][..], 2),
        (
            &["merge", "one", "two", "--align", "wall", "-o", "more"][..],
            1,
        ),
    ] {
        let (status, text) = run(words);
        assert_eq!(status, Some(expected), "{words:?}: {text}");
        assert!(!Path::new(&path("more")).exists());
    }
    assert_eq!(fs::read(path("two")).expect("a file"), two);
}
