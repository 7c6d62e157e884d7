//! Off-CPU samples of every source: which intervals there are, with which reasons and stacks, and
//! which are not invented.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::attr::{Attr, AttrFlags, EventType, SampleType, SoftwareEvent};
use perfdata_core::feature::tracing::TracingData;
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::header::ContainerKind;
use perfdata_core::names::EventNames;
use perfdata_core::record::{
    Body, Cpu, Lost, MISC_SWITCH_OUT, MISC_SWITCH_OUT_PREEMPT, NoBody, RawRecord, Record,
    RecordType, Sample, SampleId, Task, Tid,
};
use perfdata_core::wire::Wire;
use perfdata_core::{DecodeContext, Endian, Event, Recording as Model};
use perfdata_edit::sort::Sort;
use perfdata_inject::expand_off_cpu::ExpandOffCpu;
use perfdata_inject::off_cpu::{OffCpu, OffCpuOptions};
use perfdata_tests::convert::{Whole, convert, in_shell};
use perfdata_tests::off_cpu::{SAMPLES, made as off_cpu_samples, raw};
use perfdata_tests::synth::tracing::{Tracepoint, Version, data_of};
use perfdata_write::{FilePlan, FileWriter};

/// The first words of callchains.
const KERNEL: u64 = 0xffff_ffff_ffff_ff80;
const USER: u64 = 0xffff_ffff_ffff_fe00;

/// The tracepoints, with the fields that count. Their offsets are not those of any kernel.
const TRACEPOINTS: [(&str, &[&str]); 7] = [
    ("sched_switch", &["next_pid", "prev_state", "prev_pid"]),
    ("sched_waking", &["prio", "pid"]),
    ("sched_wakeup_new", &["pid"]),
    ("sched_stat_sleep", &["delay", "pid"]),
    ("sched_stat_iowait", &["delay", "pid"]),
    ("sched_stat_blocked", &["delay", "pid"]),
    ("sched_stat_wait", &["delay", "pid"]),
];

/// The number of the first tracepoint, and its ID.
const FIRST: u16 = 300;
/// The event before the tracepoints.
const CLOCK: u64 = 5;

/// What happens: the time, the CPU, the thread that runs, and more.
#[derive(Clone, Copy)]
enum Told {
    /// The state of the previous thread, and the next one.
    Switch(u64, u32, u32, u64, u32),
    /// The event, and the thread that is woken up.
    Wake(u64, u32, u32, &'static str, u32),
    /// The event, the delay, and the thread.
    Stat(u64, u32, u32, &'static str, u64, u32),
    Clock(u64, u32, u32),
    /// SWITCH records.
    In(u64, u32, u32),
    Out(u64, u32, u32, u16),
    Fork(u64, u32, u32),
    Exit(u64, u32, u32),
    Lost(u64, u32, u32),
}
use Told::*;

/// Returns tracing data with the formats of these tracepoints.
fn tracing(endian: Endian, names: &[&str]) -> TracingData {
    let tracepoints: Vec<Tracepoint> = names
        .iter()
        .map(|name| Tracepoint {
            system: "sched",
            name: TRACEPOINTS
                .iter()
                .find(|known| known.0 == *name)
                .expect("known")
                .0,
            id: id_of(name) as u16,
            value: "int",
        })
        .collect();
    let bytes = data_of(Version::V0_6, endian == Endian::Big, &tracepoints);
    let decoded = TracingData::decode(&bytes, endian, DecodeContext::default());
    let mut data = decoded.expect("tracing data").0;
    let files = data
        .body
        .systems
        .iter_mut()
        .flat_map(|system| system.formats.iter_mut());
    for (file, name) in files.zip(names) {
        let mut text = format!("name: {name}\nID: {}\nformat:\n", id_of(name));
        text += "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n";
        for (at, field) in fields_of(name).iter().enumerate() {
            let offset = 8 + 8 * at;
            text += &format!("\tfield:long {field};\toffset:{offset};\tsize:8;\tsigned:1;\n");
        }
        text += match name {
            &"sched_switch" => {
                "\nprint fmt: \"prev_state=%s ==> next_pid=%d\", (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \"|\", { 0x04, \"S\" }, { 0x02, \"D\" }, { 0x10, \"X\" }) : \"R\", REC->next_pid\n"
            }
            _ => "\nprint fmt: \"%d\", REC->pid\n",
        };
        file.0 = text.into_bytes().into();
    }
    data
}

fn id_of(name: &str) -> u64 {
    let at = TRACEPOINTS.iter().position(|known| known.0 == name);
    u64::from(FIRST) + at.expect("known") as u64
}

fn fields_of(name: &str) -> &'static [&'static str] {
    TRACEPOINTS
        .iter()
        .find(|known| known.0 == name)
        .expect("known")
        .1
}

/// Writes a recording of what happens. The stack of each sample contains its time.
fn made(path: &Path, endian: Endian, names: &[&str], told: &[Told], has_ids: bool) {
    let mut recording = Model::new(endian);
    let base = SampleType::IP.0
        | SampleType::TID.0
        | SampleType::TIME.0
        | SampleType::CPU.0
        | SampleType::CALLCHAIN.0;
    let id = if has_ids { SampleType::IDENTIFIER.0 } else { 0 };
    let has_switches = told.iter().any(|told| matches!(told, In(..) | Out(..)));
    let clock = Attr {
        kind: EventType::SOFTWARE,
        config: SoftwareEvent::CPU_CLOCK.0,
        sample_period: 1,
        flags: AttrFlags::default()
            .with_sample_id_all(true)
            .with_context_switch(has_switches),
        sample_type: SampleType(base | id),
        size: 64,
        ..Attr::default()
    };
    let tracepoint = |name: &&str| Attr {
        kind: EventType::TRACEPOINT,
        config: id_of(name),
        flags: AttrFlags::default().with_sample_id_all(true),
        sample_type: SampleType(base | id | SampleType::RAW.0),
        ..clock.clone()
    };
    let attrs = names.iter().map(|name| (tracepoint(name), id_of(name)));
    let clock = has_ids.then(|| (clock.clone(), CLOCK));
    for (attr, id) in clock.into_iter().chain(attrs) {
        let ids = if has_ids { vec![id] } else { Vec::new() };
        recording.events.push(Event { attr, ids });
    }
    if !names.is_empty() {
        let data = Feature::TracingData(tracing(endian, names));
        recording
            .set_feature(FeatureId::TRACING_DATA, data)
            .expect("tracing data");
    }
    let file = File::create(path).expect("a file");
    let gaps: Vec<u8> = Vec::new();
    let mut writer =
        FileWriter::begin(file, FilePlan::standard(), &recording, &gaps).expect("a writer");
    let of_id = |id: u64| has_ids.then_some(id);
    for told in told {
        let sample = |(time, cpu, tid): (u64, u32, u32), id: u64, numbers: Option<&[u64]>| {
            let bytes = numbers.map(|numbers| {
                let words = [0].iter().chain(numbers);
                let words = words.flat_map(|word| match endian {
                    Endian::Little => word.to_le_bytes(),
                    Endian::Big => word.to_be_bytes(),
                });
                words.chain([0; 4]).collect::<Vec<u8>>().into()
            });
            Record::new(Body::Sample(Sample {
                identifier: of_id(id),
                ip: Some(time),
                tid: Some(Tid {
                    pid: tid / 10 * 10,
                    tid,
                }),
                time: Some(time),
                cpu: Some(Cpu { cpu, reserved: 0 }),
                callchain: Some(vec![KERNEL, time, USER, u64::from(tid)].into()),
                raw: bytes,
                ..Sample::default()
            }))
            .with_misc(1)
        };
        let other = |(time, cpu, tid): (u64, u32, u32), body, misc| {
            let record = Record::new(body).with_misc(misc);
            record.with_sample_id(SampleId {
                tid: Some(Tid {
                    pid: tid / 10 * 10,
                    tid,
                }),
                time: Some(time),
                cpu: Some(Cpu { cpu, reserved: 0 }),
                identifier: of_id(CLOCK),
                ..SampleId::default()
            })
        };
        let task = |time, tid: u32| Task {
            pid: tid / 10 * 10,
            ppid: 1,
            tid,
            ptid: 1,
            time,
        };
        let record = match *told {
            Switch(time, cpu, prev, state, next) => {
                let numbers = [u64::from(next), state, u64::from(prev)];
                sample((time, cpu, prev), id_of("sched_switch"), Some(&numbers))
            }
            Wake(time, cpu, tid, name, woken) => {
                let mut numbers = vec![0; fields_of(name).len()];
                *numbers.last_mut().expect("a field") = u64::from(woken);
                sample((time, cpu, tid), id_of(name), Some(&numbers))
            }
            Stat(time, cpu, tid, name, delay, of) => {
                let numbers = [delay, u64::from(of)];
                sample((time, cpu, tid), id_of(name), Some(&numbers))
            }
            Clock(time, cpu, tid) => sample((time, cpu, tid), CLOCK, None),
            In(time, cpu, tid) => other((time, cpu, tid), Body::Switch(NoBody {}), 0),
            Out(time, cpu, tid, misc) => {
                let misc = misc | MISC_SWITCH_OUT;
                other((time, cpu, tid), Body::Switch(NoBody {}), misc)
            }
            Fork(time, cpu, tid) => other((time, cpu, 1), Body::Fork(task(time, tid)), 0),
            Exit(time, cpu, tid) => other((time, cpu, tid), Body::Exit(task(time, tid)), 0),
            Lost(time, cpu, tid) => {
                let id = CLOCK;
                other((time, cpu, tid), Body::Lost(Lost { id, lost: 9 }), 0)
            }
        };
        writer.write(&record).expect("it is written");
    }
    writer.finish(&recording).expect("a file");
}

fn stages(options: OffCpuOptions) -> Vec<Box<dyn Stage>> {
    vec![
        Box::new(Sort::new()),
        Box::new(ExpandOffCpu::where_possible()),
        Box::new(OffCpu::new(options)),
    ]
}

/// Returns the samples of the new event as text, and the number of all samples.
fn shown(path: &Path) -> (Vec<String>, usize) {
    let plain: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
    let plain = convert(path, Some(ContainerKind::File), plain).expect("plain records");
    let whole = Whole::read_file(&plain.path()).expect("a recording");
    let events = &whole.recording.events;
    let mut names = EventNames::default();
    for (at, _) in &whole.records {
        names.see(
            &RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record"),
        );
    }
    names.update(&whole.recording);
    let new = (0..events.len()).find(|&at| {
        names
            .get(&whole.recording, at)
            .is_some_and(|name| *name == *b"offcpu-time")
    });
    let new = new.expect("the new event");
    let mut symbols: HashMap<u64, String> = HashMap::new();
    let (mut list, mut count) = (Vec::new(), 0);
    for (at, kind) in &whole.records {
        let raw =
            RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record");
        let record = Record::decode(&raw, &events.layout_of(&raw)).expect("a record");
        count += usize::from(*kind == RecordType::SAMPLE);
        match record.body {
            Body::Ksymbol(symbol) => {
                let name = String::from_utf8_lossy(symbol.name.text()).into_owned();
                symbols.insert(symbol.addr, name);
            }
            Body::Sample(sample) if events.of_record(&raw) == Some(new) => {
                let frame = |word: &u64| match *word {
                    KERNEL => "k".to_owned(),
                    USER => "u".to_owned(),
                    word => symbols
                        .get(&(word - 1))
                        .cloned()
                        .unwrap_or(word.to_string()),
                };
                let frames: Vec<String> = sample
                    .callchain
                    .expect("a callchain")
                    .iter()
                    .map(frame)
                    .collect();
                let (task, end) = (sample.tid.expect("a thread"), sample.time.expect("a time"));
                let begin = end.saturating_sub(sample.period.expect("a period"));
                let cpu = sample.cpu.expect("a CPU").cpu;
                list.push(format!(
                    "{}/{} cpu {cpu} {begin}-{end} {}",
                    task.pid,
                    task.tid,
                    frames.join(" ")
                ));
            }
            _ => {}
        }
    }
    (list, count)
}

/// Converts, and returns the new samples and the notes.
fn converted(path: &Path, options: OffCpuOptions) -> (Vec<String>, Vec<String>) {
    let result = convert(path, None, stages(options)).expect("it is converted");
    (shown(&result.path()).0, result.summary.notes.clone())
}

const SWITCHES: [&str; 3] = ["sched_switch", "sched_waking", "sched_wakeup_new"];

/// Thread 11 sleeps on CPU 0 and goes on on CPU 1; thread 12 is new, is preempted, waits for a disk
/// and exits; thread 13 was off the CPU before, and thread 11 is so at the end.
const TOLD: [Told; 13] = [
    Clock(900, 0, 11),
    Switch(1000, 0, 11, 4, 0),
    Fork(1010, 1, 12),
    Wake(1020, 1, 13, "sched_wakeup_new", 12),
    Switch(1050, 0, 0, 0, 12),
    Switch(1100, 0, 12, 0, 13),
    Wake(1110, 0, 13, "sched_waking", 11),
    // The records of CPU 1 come later.
    Switch(1130, 1, 0, 0, 11),
    Switch(1140, 1, 11, 4, 0),
    Switch(1120, 0, 13, 2, 12),
    Switch(1150, 0, 12, 2, 0),
    Switch(1170, 0, 0, 0, 12),
    Switch(1180, 0, 12, 0x10, 0),
];

const EXPECTED: [&str; 5] = [
    "10/12 cpu 0 1020-1050 k [runnable]",
    "10/11 cpu 0 1000-1110 k [sleep] 1000 u 11",
    "10/12 cpu 0 1100-1120 k [preempted] 1100 u 12",
    "10/11 cpu 0 1110-1130 k [runnable] 1000 u 11",
    "10/12 cpu 0 1150-1170 k [disk] 1150 u 12",
];

/// From files, streams and compressed records of both byte orders, and into the other one.
#[test]
fn switches_say_where_threads_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    for endian in [Endian::Little, Endian::Big] {
        made(&input, endian, &SWITCHES, &TOLD, true);
        let packed: Vec<Box<dyn Stage>> = vec![Box::new(Compress::new(RecordType::COMPRESSED2, 1))];
        for (before, kind) in [
            (Vec::new(), ContainerKind::File),
            (Vec::new(), ContainerKind::Pipe),
            (packed, ContainerKind::File),
        ] {
            let what = format!("{endian:?} {kind}");
            let from = convert(&input, Some(kind), before).expect("it is converted");
            let result = convert(&from.path(), None, stages(OffCpuOptions::default()));
            let result = result.expect("it is converted");
            assert_eq!(
                shown(&result.path()),
                (EXPECTED.map(String::from).to_vec(), 17),
                "{what}"
            );
            let note = "5 off-CPU samples of 0.000000200 s, of which the threads could run for \
                        0.000000070 s, from sched:sched_switch; 1 thread off the CPU before the \
                        first switch, 2 after the last one";
            assert_eq!(
                result.summary.notes.last().map(String::as_str),
                Some(note),
                "{what}"
            );
            let mut swapped = stages(OffCpuOptions::default());
            swapped.push(Box::new(Swap::new(Target::Other, Unknown::Error)));
            let swapped = convert(&from.path(), None, swapped).expect("it is converted");
            assert_eq!(shown(&swapped.path()).0, EXPECTED, "{what}");
            let options = OffCpuOptions {
                drop_sources: true,
                ..OffCpuOptions::default()
            };
            let alone = convert(&from.path(), None, stages(options)).expect("it is converted");
            assert_eq!(
                shown(&alone.path()),
                (EXPECTED.map(String::from).to_vec(), 6),
                "{what}"
            );
        }
    }
}

/// The records of a single event contain no ID: they get one.
#[test]
fn a_single_event_without_ids_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    let is_switch = |told: &&Told| matches!(told, Switch(..) | Fork(..));
    let told: Vec<Told> = TOLD.iter().filter(is_switch).copied().collect();
    for endian in [Endian::Little, Endian::Big] {
        made(&input, endian, &SWITCHES[..1], &told, false);
        for kind in [ContainerKind::File, ContainerKind::Pipe] {
            let from = convert(&input, Some(kind), Vec::new()).expect("it is converted");
            let (samples, _) = converted(&from.path(), OffCpuOptions::default());
            let expected = [
                "10/12 cpu 0 1010-1050 k [runnable]",
                "10/12 cpu 0 1100-1120 k [preempted] 1100 u 12",
                "10/11 cpu 0 1000-1130 k [sleep] 1000 u 11",
                "10/12 cpu 0 1150-1170 k [disk] 1150 u 12",
            ];
            assert_eq!(samples, expected, "{endian:?} {kind}");
        }
    }
}

/// The stack of the other thread is above the reason: in another process, without its user frames.
#[test]
fn wakers_are_above_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    let told = [
        Switch(10, 0, 11, 4, 0),
        Switch(20, 1, 21, 4, 12),
        Wake(30, 1, 12, "sched_waking", 11),
        Wake(40, 1, 12, "sched_waking", 21),
    ];
    made(&input, Endian::Little, &SWITCHES, &told, true);
    let options = OffCpuOptions {
        wakers: true,
        ..OffCpuOptions::default()
    };
    let expected = [
        "10/11 cpu 0 10-30 u 12 k 30 k [sleep] 10 u 11",
        "20/21 cpu 1 20-40 k 40 k [sleep] 20 u 21",
    ];
    assert_eq!(converted(&input, options).0, expected);
}

/// SWITCH records have no stack: that of the last sample is marked. With the tracepoint, they say
/// when a thread runs again if other threads are not recorded.
#[test]
fn switch_records_say_when_threads_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    let told = [
        Out(10, 0, 11, 0),
        In(20, 1, 11),
        Clock(25, 1, 11),
        Out(30, 1, 11, MISC_SWITCH_OUT_PREEMPT),
        In(35, 1, 11),
        Exit(40, 1, 11),
        Out(45, 1, 11, 0),
        Out(50, 1, 12, 0),
    ];
    made(&input, Endian::Little, &[], &told, true);
    let expected = [
        "10/11 cpu 0 10-20 k [blocked]",
        "10/11 cpu 1 30-35 k [preempted] [last sample] 25 u 11",
    ];
    let (samples, notes) = converted(&input, OffCpuOptions::default());
    assert_eq!(samples, expected);
    let end = "0 threads off the CPU before the first switch, 1 after the last one";
    assert!(notes.iter().any(|note| note.ends_with(end)), "{notes:?}");
    let both = [
        Switch(10, 0, 11, 4, 99),
        Out(11, 0, 11, 0),
        In(20, 1, 11),
        Switch(30, 1, 11, 0, 99),
        Out(31, 1, 11, MISC_SWITCH_OUT_PREEMPT),
        In(40, 1, 11),
    ];
    made(&input, Endian::Little, &SWITCHES, &both, true);
    let expected = [
        "10/11 cpu 0 10-20 k [sleep] 10 u 11",
        "10/11 cpu 1 30-40 k [preempted] 30 u 11",
    ];
    assert_eq!(converted(&input, OffCpuOptions::default()).0, expected);
}

#[test]
fn sched_stat_samples_say_how_long_threads_waited() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    let names = [
        "sched_stat_sleep",
        "sched_stat_iowait",
        "sched_stat_blocked",
        "sched_stat_wait",
    ];
    let told = [
        Clock(10, 0, 11),
        Stat(100, 1, 12, "sched_stat_sleep", 40, 11),
        Stat(110, 1, 12, "sched_stat_wait", 5, 11),
        // Both are about the same time.
        Stat(200, 1, 12, "sched_stat_iowait", 60, 13),
        Stat(200, 1, 12, "sched_stat_blocked", 60, 13),
    ];
    made(&input, Endian::Little, &names, &told, true);
    let expected = [
        "10/11 cpu 0 60-100 k [sleep] [last sample] 10 u 11",
        "10/11 cpu 0 105-110 k [runnable] [last sample] 10 u 11",
        "4294967295/13 cpu 0 140-200 k [disk]",
    ];
    assert_eq!(converted(&input, OffCpuOptions::default()).0, expected);
}

/// Samples of perf record --off-cpu stay as they are.
#[test]
fn own_off_cpu_samples_are_expanded() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    off_cpu_samples(&input, Endian::Little, |told| raw(Endian::Little, told));
    let result = convert(&input, None, stages(OffCpuOptions::default())).expect("it is converted");
    let alone: Vec<Box<dyn Stage>> = vec![Box::new(ExpandOffCpu::new())];
    let alone = convert(&input, None, alone).expect("it is converted");
    assert_eq!(shown(&result.path()).0, shown(&alone.path()).0);
    assert_eq!(shown(&result.path()).0.len(), SAMPLES.len());
}

/// Records of CPU 1 were lost between 1100 and 1200: no time that overlaps this is certain.
#[test]
fn times_with_lost_records_are_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    let told = [
        Switch(1000, 0, 11, 4, 12),
        Clock(1100, 1, 20),
        Switch(1150, 0, 12, 4, 11),
        Switch(1160, 0, 11, 4, 0),
        Lost(1200, 1, 20),
        Switch(1210, 0, 0, 0, 12),
        Switch(1220, 0, 12, 4, 0),
        Switch(1230, 0, 0, 0, 12),
        // A switch of CPU 0 is missing, although no record says so.
        Switch(1300, 0, 13, 4, 11),
        Switch(1310, 0, 11, 4, 0),
        Switch(1320, 0, 12, 4, 0),
        Switch(1330, 0, 0, 0, 12),
    ];
    made(&input, Endian::Little, &SWITCHES, &told, true);
    let (samples, notes) = converted(&input, OffCpuOptions::default());
    let expected = [
        "10/12 cpu 0 1220-1230 k [sleep] 1220 u 12",
        "10/12 cpu 0 1320-1330 k [sleep] 1320 u 12",
    ];
    assert_eq!(samples, expected);
    let lost = "3 off-CPU times dropped, because records were lost in them";
    assert!(notes.iter().any(|note| note == lost), "{notes:?}");
}

#[test]
fn recordings_without_switches_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    made(&input, Endian::Little, &[], &[Clock(10, 0, 11)], true);
    let result = convert(&input, None, stages(OffCpuOptions::default()));
    let error = result.map(|_| ()).expect_err("an error").to_string();
    assert!(
        error.contains("perf record --switch-events -e sched:sched_switch"),
        "{error}"
    );
    let input = folder.path().join("some.data");
    made(&input, Endian::Little, &SWITCHES, &TOLD, true);
    let mut whole = std::fs::read(&input).expect("a recording");
    // The period of sched:sched_switch, which is the second event.
    let attrs = u64::from_le_bytes(whole[24..32].try_into().expect("8 bytes")) as usize;
    let size = u64::from_le_bytes(whole[16..24].try_into().expect("8 bytes")) as usize;
    whole[attrs + size + 16] = 2;
    std::fs::write(&input, whole).expect("a file");
    let result = convert(&input, None, stages(OffCpuOptions::default()));
    let error = result.map(|_| ()).expect_err("an error").to_string();
    assert!(error.contains("samples of some switches only"), "{error}");
}

/// The switches of all threads say when a selected one runs.
#[test]
fn a_selection_applies_to_the_new_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    made(&input, Endian::Little, &SWITCHES, &TOLD, true);
    let run = |command: &str| {
        let command = command.replace("PERFCONV", "perfconv convert --off-cpu --tid 11");
        in_shell(folder.path(), &command)
    };
    let own: Vec<&str> = EXPECTED
        .into_iter()
        .filter(|text| text.starts_with("10/11 "))
        .collect();
    for command in [
        "PERFCONV in.data -o out.data",
        "perfconv file2pipe -q in.data -o - | PERFCONV - --to file -o out.data",
        "perfconv convert -q --compress in.data -o z.data && PERFCONV z.data -o out.data",
    ] {
        let said = run(&format!("rm -f out.data; {command}"));
        assert!(said.success(), "{command}: {}", said.stderr);
        let (samples, others) = shown(&folder.path().join("out.data"));
        assert_eq!(samples, own, "{command}");
        assert!(others < 17, "{command}: {others}");
        // The notes are about both steps, and the numbers about the input.
        assert!(
            said.stderr.contains("note: 5 off-CPU samples"),
            "{}",
            said.stderr
        );
        assert!(said.stderr.contains("note: selected "), "{}", said.stderr);
    }
    let together = "--off-cpu cannot be combined with options that select samples: add the";
    for (command, status, expected) in [
        ("PERFCONV --to dir in.data -o out.dir", 2, together),
        (
            "perfconv recover --off-cpu --tid 11 in.data -o recovered.data",
            2,
            together,
        ),
        // As without off-CPU samples.
        (
            "perfconv file2pipe -q in.data -o - | head -c -20 > cut.data; PERFCONV cut.data -o -",
            1,
            "cut.data: at offset 0xc50: SAMPLE record: 128 bytes needed, 108 available\n",
        ),
    ] {
        let said = run(command);
        let code = said.status.and_then(|status| status.code());
        assert_eq!(code, Some(status), "{command}: {}", said.stderr);
        assert!(said.stderr.contains(expected), "{command}: {}", said.stderr);
    }
}

/// Threads that move from a CPU to another one, which was recorded apart.
#[test]
fn recordings_of_one_machine_are_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, of) in [("0.data", 0), ("1.data", 1)] {
        let is_here = |told: &&Told| match **told {
            Switch(_, cpu, ..) | Wake(_, cpu, ..) => cpu == of,
            _ => of == 0,
        };
        let told: Vec<Told> = TOLD.iter().filter(is_here).copied().collect();
        assert!(!told.is_empty());
        made(
            &folder.path().join(name),
            Endian::Little,
            &SWITCHES,
            &told,
            true,
        );
    }
    for to in ["file", "pipe"] {
        let command = format!("perfconv merge --off-cpu --to {to} 0.data 1.data -o out.{to}");
        let said = in_shell(folder.path(), &command);
        assert!(said.success(), "{}", said.stderr);
        let (samples, others) = shown(&folder.path().join(format!("out.{to}")));
        assert_eq!(samples, EXPECTED, "{to}");
        assert_eq!(others, 17, "{to}");
    }
}
