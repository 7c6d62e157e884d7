//! Exports of recordings with several events.

use std::fs;
use std::path::Path;

use perfdata_tests::convert::in_shell;
use perfdata_tests::synth::attr::{Attr, Stamp, sample_type};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::{kernel, kind};
use perfdata_tests::{perf, recordings};

/// The events in the order of the command line: name, `SOFTWARE` config, and the periods of the
/// samples.
const EVENTS: [(&str, u64, &[u64]); 3] = [
    ("context-switches", 3, &[]),
    ("cpu-clock", 0, &[2_000_000, 3_000_000]),
    ("page-faults", 2, &[1, 1, 4]),
];

/// Returns a recording in which the last event was sampled first.
fn recording() -> Vec<u8> {
    use sample_type::*;
    let event = |at: usize, name: &str, config| Event {
        name: name.to_owned(),
        attr: Attr {
            kind: 1,
            config,
            ..Attr::new(
                IDENTIFIER | IP | TID | TIME | CPU | PERIOD,
                "sample_id_all mmap comm",
            )
        },
        ids: vec![10 + at as u64],
    };
    let events = EVENTS.iter().enumerate();
    let events: Vec<Event> = events
        .map(|(at, &(name, config, _))| event(at, name, config))
        .collect();
    let mut scribe = Scribe::new(false, events[0].attr.clone(), Stamp::SOME);
    let task = scribe.stamp.task();
    scribe.stamp.id = 10;
    scribe.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, task, "true"));
    scribe.kernel("MMAP", kind::MMAP, misc::USER, |b| {
        kernel::mmap(b, task, [0x40_0000, 0x2000, 0], "/usr/bin/true")
    });
    for (event, (.., periods)) in events.iter().zip(EVENTS).rev() {
        scribe.attr = event.attr.clone();
        scribe.stamp.id = event.ids[0];
        for &period in periods {
            scribe.sample("SAMPLE", |sample| {
                (sample.ip, sample.period) = (0x40_1234, period);
            });
        }
    }
    let mut file = File::new(false, events);
    file.data = stream(&scribe.cases);
    let described = feature_events::event_desc(Buf::new(false), &file.events).bytes;
    file.set_feature(feature_events::EVENT_DESC, described);
    file.bytes()
}

fn run(folder: &Path, arguments: &str) -> perf::Output {
    let command = format!("perfconv export --no-symbols in.data {arguments}");
    let output = in_shell(folder, &command);
    assert!(output.success(), "{arguments}: {}", output.stderr);
    output
}

fn sum(text: &str) -> u64 {
    let counts = text.lines().filter_map(|line| line.rsplit_once(' '));
    counts
        .map(|(_, count)| count.parse::<u64>().expect("a number"))
        .sum()
}

/// The first event of the command line that has samples is counted, and the others are named.
#[test]
fn the_first_event_is_that_of_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("in.data"), recording()).expect("a file");
    let others =
        "only cpu-clock (2 samples) is counted, not page-faults (3 samples): --event selects";
    let folded = run(folder, "--to folded -o -");
    assert_eq!(sum(&folded.stdout), 5_000_000);
    assert!(folded.stderr.contains(others), "{}", folded.stderr);
    let folded = run(folder, "--to folded -o - --event page-faults");
    assert_eq!(sum(&folded.stdout), 6);
    assert!(!folded.stderr.contains("counted"), "{}", folded.stderr);
    let output = run(folder, "-o a.svg");
    assert!(output.stderr.contains(others), "{}", output.stderr);
    let picture = fs::read_to_string(folder.join("a.svg")).expect("a picture");
    assert!(
        picture.contains("in.data: cpu-clock, 5.00 ms<"),
        "{picture}"
    );
    assert!(picture.contains("(5.00 ms, 100.00%)"), "{picture}");
    run(folder, "-o b.svg --event page-faults");
    let picture = fs::read_to_string(folder.join("b.svg")).expect("a picture");
    assert!(picture.contains("(6 page-faults, 100.00%)"), "{picture}");
    let output = run(folder, "-o a.html");
    assert!(!output.stderr.contains("counted"), "{}", output.stderr);
    let page = fs::read_to_string(folder.join("a.html")).expect("a page");
    // The last value tells whether the event counts time off the CPU.
    let events = r#"["cpu-clock",true,false],["page-faults",false,false]]"#;
    assert!(page.replace('\n', "").contains(events), "both events");
}

/// The members of a group have no samples of their own: their counters are in those of the leader.
#[test]
fn events_of_a_group_can_be_selected() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let input = recordings::fixture("6.1-x86_64-file-group-S").path;
    fs::copy(input, folder.join("in.data")).expect("a fixture");
    let folded = run(folder, "--to folded -o -");
    assert_eq!(sum(&folded.stdout), 241_638_338);
    assert!(
        folded.stderr.contains("not task-clock (43 samples)"),
        "{}",
        folded.stderr
    );
    let selected = run(folder, "--to folded -o - --event task-clock");
    assert_eq!(sum(&selected.stdout), 234_730_246);
    let others = run(folder, "--to folded -o - --event task-clock --invert");
    assert_eq!(sum(&others.stdout), 241_638_338);
    // The text has a line for each counter in a sample, as that of perf.
    let text = run(
        folder,
        "--to perf-script -o - --event cpu-clock -F event,period",
    );
    assert_eq!(text.stdout.matches("task-clock").count(), 43);
}
