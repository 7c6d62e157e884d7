//! Expanded off-CPU samples: perf shows them as it shows the original ones, and older versions show
//! them, too.

use std::path::Path;

use perfdata_convert::pipeline::Stage;
use perfdata_core::Endian;
use perfdata_core::header::ContainerKind;
use perfdata_inject::expand_off_cpu::ExpandOffCpu;
use perfdata_tests::convert::convert;
use perfdata_tests::off_cpu::{SAMPLES, made, raw};
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, PerfVersion};
use perfdata_tests::skipped;

fn script(perf: &Perf, path: &Path) -> String {
    let mut command = perf.command();
    let fields = "comm,pid,tid,time,event,period,ip,sym";
    command.args(["script", "--no-inline", "--ns", "-F", fields, "-i"]);
    command.arg(path);
    let said = perf::run(command).expect("perf can be started");
    assert!(said.success(), "{perf}: {}", said.stderr);
    said.stdout
}

/// Returns the words of each line. perf before 6.12 shows the offset of a frame in its file instead
/// of its address: `has_addresses` says whether addresses remain.
fn words(text: &str, has_addresses: bool) -> Vec<String> {
    let words = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if !has_addresses && words.len() == 2 {
            words.remove(0);
        }
        words.join(" ")
    };
    text.lines().map(words).collect()
}

#[test]
fn samples_are_those_that_perf_expands() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    made(&input, Endian::Little, |told| raw(Endian::Little, told));
    let since: PerfVersion = "6.16".parse().expect("a release");
    let judges = perf::all()
        .iter()
        .filter(|perf| perf.endian == recordings::Endian::Little);
    let mut expected = None;
    for perf in judges.clone().filter(|perf| perf.version >= since) {
        let text = script(perf, &input);
        let periods = SAMPLES.map(|(_, _, _, period, ..)| period.to_string());
        assert!(
            periods.iter().all(|period| text.contains(period)),
            "{perf}: {text}"
        );
        expected = Some(text);
    }
    let Some(expected) = expected else {
        skipped::note("perf 6.16 or newer");
        return;
    };
    for kind in [ContainerKind::File, ContainerKind::Pipe] {
        let stages: Vec<Box<dyn Stage>> = vec![Box::new(ExpandOffCpu::new())];
        let output = convert(&input, Some(kind), stages).expect("it is converted");
        for perf in judges.clone() {
            let has_addresses = perf.version >= "6.12".parse().expect("a release");
            let found = words(&script(perf, &output.path()), has_addresses);
            assert_eq!(found, words(&expected, has_addresses), "{perf} {kind}");
        }
    }
}
