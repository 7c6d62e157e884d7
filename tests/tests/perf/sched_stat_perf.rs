//! sched_stat samples get the stacks of sched_switch samples, as by perf inject --sched-stat.

use std::path::Path;
use std::process::Stdio;

use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_edit::sort::Sort;
use perfdata_inject::sched_stat::SchedStat;
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{Endian, PerfVersion};
use perfdata_tests::skipped;

/// A program that sleeps, and one that works.
const WORK: &str = "for i in 1 2 3 4; do sleep 0.01; ls / > /dev/null; done & \
    for i in 1 2 3; do sleep 0.02; done; wait";

/// sched_stat_runtime needs no statistics of the scheduler in the kernel.
fn record(perf: &Perf, path: &Path) -> bool {
    let mut command = perf.command();
    command.args(["record", "-q", "-a", "-g"]);
    for event in ["stat_runtime", "switch", "process_exit"] {
        command.arg("-e").arg(format!("sched:sched_{event}"));
    }
    command.arg("-o").arg(path).args(["--", "sh", "-c", WORK]);
    command.stdin(Stdio::null());
    perf::run(command).is_ok_and(|said| said.success())
}

/// Returns the bytes of all records except FINISHED_ROUND.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let whole = Whole::read_file(path).expect("a recording");
    let order = whole.recording.endian;
    let known = whole.records.iter();
    let known = known.filter(|(_, kind)| *kind != RecordType::FINISHED_ROUND && kind.is_kernel());
    let bytes = known.map(|(at, _)| {
        let raw = RawRecord::first(&whole.stream[*at..], order, 0).expect("a record");
        raw.bytes.to_vec()
    });
    bytes.collect()
}

/// perf before 7.2 damages the raw data. It does nothing in pipes, and sees nothing in compressed
/// records: there, the result is that of the file.
#[test]
fn samples_are_those_of_perf() {
    let since: PerfVersion = "7.2".parse().expect("a release");
    let native = |perf: &&Perf| perf.endian == Endian::Little;
    let judge = perf::all()
        .iter()
        .filter(native)
        .find(|perf| perf.version >= since);
    let Some(judge) = judge else {
        skipped::note("perf 7.2 or newer");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let stages =
        || -> Vec<Box<dyn Stage>> { vec![Box::new(Sort::new()), Box::new(SchedStat::new())] };
    for recorder in perf::all().iter().filter(native) {
        let input = path("in.data");
        if !record(recorder, &input) {
            skipped::note(format_args!("{recorder} may not record sched:sched_switch"));
            continue;
        }
        let mut command = judge.command();
        command.args(["inject", "--sched-stat", "-i"]).arg(&input);
        command.arg("-o").arg(path("perf.data"));
        let said = perf::run(command).expect("perf can be started");
        assert!(said.success(), "{recorder}: {}", said.stderr);
        let expected = records(&path("perf.data"));
        let own = convert(&input, None, stages()).expect("it is converted");
        let found = records(&own.path());
        assert!(found.len() > 10, "{recorder}");
        assert!(found == expected, "{recorder}");

        let packed: Vec<Box<dyn Stage>> = vec![Box::new(Compress::new(RecordType::COMPRESSED, 1))];
        for (before, kind) in [
            (Vec::new(), ContainerKind::Pipe),
            (packed, ContainerKind::File),
        ] {
            let from = convert(&input, Some(kind), before).expect("it is converted");
            let own = convert(&from.path(), Some(ContainerKind::File), stages());
            let own = own.expect("it is converted");
            let plain: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
            let plain = convert(&own.path(), None, plain).expect("plain records");
            assert!(records(&plain.path()) == expected, "{recorder} {kind}");
        }
    }
}
