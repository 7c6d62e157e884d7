//! Streams that are designed to be slow or large.

use perfdata_core::error::Problem;
use perfdata_core::read::Limits;
use perfdata_core::record::{CpuMode, KsymbolFlags};

use super::{KERNEL, Stream, USER, USUAL, walk};

/// Returns streams that are designed to be slow, with a size and four times this size: mappings
/// over mappings, forks of forks that each map a file, thread IDs that are reused, kernel symbols
/// that are added and removed.
fn hostile(number: usize, size: u64) -> Stream {
    let mut s = Stream::new(USUAL);
    for at in 0..size {
        let pid = u32::try_from(at % 50_000).expect("a small number") + 1;
        match number {
            0 => s.map(
                CpuMode::USER,
                5,
                (at * 7919) % (1 << 40),
                1 << 30,
                0,
                "/bin/a",
            ),
            1 => s.map(CpuMode::USER, 5, at << 12, 0x1000, 0, "/bin/a"),
            2 => {
                s.fork(pid + 1, pid + 1, pid, pid);
                s.map(CpuMode::USER, pid + 1, at << 12, 0x1000, 0, "/bin/a");
            }
            3 => {
                s.fork(6, 6, 5, 5);
                s.exit(6, 6);
            }
            4 => {
                s.symbol(at << 8, "bpf_prog", KsymbolFlags(0));
                s.symbol((at / 2) << 8, "bpf_prog", KsymbolFlags::UNREGISTER);
            }
            _ => {
                // Times decrease.
                s.time = (1 << 40) - 3 * at;
                s.comm(pid, pid, "x", at % 3 == 0);
            }
        }
        if at % 8 == 0 {
            s.sample(
                CpuMode::KERNEL,
                (pid, pid),
                &[KERNEL, at << 8, USER, at << 12, (at / 2) << 12, 0x10],
            );
        }
    }
    s
}

#[test]
fn hostile_streams_take_linear_time() {
    for number in 0..6 {
        let time = |size| {
            let (result, time, _) = walk(hostile(number, size), Limits::default());
            result.expect("it is within the limits");
            time
        };
        let mut ratios = Vec::new();
        // The machine may be busy with other tasks.
        for _ in 0..20 {
            let (small, large) = (time(10_000), time(40_000));
            ratios.push(large.as_secs_f64() / small.as_secs_f64().max(0.001));
            if ratios.last().is_some_and(|ratio| *ratio < 10.0) {
                break;
            }
        }
        assert!(
            ratios.last().is_some_and(|ratio| *ratio < 10.0),
            "stream {number}: {ratios:?} times as long"
        );
    }
}

/// The memory stays within the limits, and the error names the exceeded one.
#[test]
fn hostile_streams_stay_within_the_limits() {
    let limits = Limits::default().with_max_metadata(1 << 20);
    let mut refused = 0;
    for number in 0..6 {
        let (result, _, held) = walk(hostile(number, 40_000), limits);
        assert!(held < 2 << 20, "stream {number}: {held} bytes");
        if let Err(error) = result {
            assert!(
                matches!(
                    error.problem(),
                    Problem::Limit {
                        name: "max-metadata",
                        ..
                    }
                ),
                "{error}"
            );
            refused += 1;
        }
    }
    assert!(refused >= 4, "{refused} of 6");
}
