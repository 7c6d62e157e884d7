//! Threads and their names, and the names of events.

use perfdata_core::attr::SampleType;
use perfdata_core::read::Limits;
use perfdata_core::record::{
    Body, CpuMode, EventUpdate, EventUpdateType, EventUpdateValue, MISC_SWITCH_OUT, NoBody,
    RecordType,
};
use perfdata_core::wire::Text;

use super::{Stream, USUAL};

#[test]
fn threads_have_names() {
    let mut s = Stream::new(USUAL);
    s.sample(CpuMode::KERNEL, (0, 0), &[]);
    s.sample(CpuMode::USER, (5, 5), &[]);
    s.comm(5, 5, "shell", false);
    s.sample(CpuMode::USER, (5, 5), &[]);
    s.fork(6, 6, 5, 5);
    s.sample(CpuMode::USER, (6, 6), &[]);
    s.fork(6, 7, 6, 6);
    s.comm(6, 6, "sort", true);
    s.sample(CpuMode::USER, (6, 6), &[]);
    s.sample(CpuMode::USER, (6, 7), &[]);
    s.exit(6, 7);
    s.sample(CpuMode::USER, (6, 7), &[]);
    // The thread ID is reused by a thread of another process.
    s.fork(9, 7, 8, 8);
    s.sample(CpuMode::USER, (9, 7), &[]);
    s.sample(CpuMode::USER, (u32::MAX, u32::MAX), &[]);
    let names = [
        "swapper", ":5", "shell", "shell", "sort", "shell", "shell", ":7", ":-1",
    ];
    assert_eq!(s.lines(), names.map(|name| format!("{name} 10")));
}

#[test]
fn switches_tell_threads() {
    let mut s =
        Stream::new(SampleType::IP.0 | SampleType::TID.0 | SampleType::TIME.0 | SampleType::CPU.0);
    s.add(RecordType::SWITCH, 0, Body::Switch(NoBody {}), (5, 6));
    s.sample(CpuMode::USER, (1, 1), &[]);
    let mut samples = s.samples(Limits::default());
    assert!(samples.next().expect("it is sound").is_some());
    let on_cpu = samples
        .session()
        .thread_on_cpu(1)
        .and_then(|id| samples.session().thread(id))
        .cloned();
    assert_eq!(on_cpu.map(|thread| (thread.pid, thread.tid)), Some((5, 6)));

    let mut s =
        Stream::new(SampleType::IP.0 | SampleType::TID.0 | SampleType::TIME.0 | SampleType::CPU.0);
    s.add(RecordType::SWITCH, 0, Body::Switch(NoBody {}), (5, 6));
    s.add(
        RecordType::SWITCH,
        MISC_SWITCH_OUT,
        Body::Switch(NoBody {}),
        (5, 6),
    );
    s.sample(CpuMode::USER, (1, 1), &[]);
    let mut samples = s.samples(Limits::default());
    assert!(samples.next().expect("it is sound").is_some());
    assert_eq!(samples.session().thread_on_cpu(1), None);
}

/// The name in the recording is used as soon as it is read.
#[test]
fn events_have_names() {
    let mut s = Stream::new(USUAL);
    s.sample(CpuMode::USER, (5, 5), &[]);
    let update = EventUpdateValue::Name(Text::padded(b"mine", 8));
    let update = Body::EventUpdate(EventUpdate {
        kind: EventUpdateType::NAME,
        id: 7,
        update,
    });
    s.plain(update, RecordType::EVENT_UPDATE, 0);
    s.sample(CpuMode::USER, (5, 5), &[]);
    s.sample(CpuMode::USER, (5, 5), &[]);
    let mut samples = s.samples(Limits::default());
    let mut names = Vec::new();
    while let Some(sample) = samples.next().expect("it is sound") {
        names.push(String::from_utf8_lossy(sample.event_name()).into_owned());
    }
    // Records of perf have no time, and are processed in the round that contains them.
    assert_eq!(names, ["mine"; 3]);
}
