//! Times of dumps on the clock of the recording.

use std::fs;

use perfdata_convert::error::{Error, Step};
use perfdata_core::Endian as Order;
use perfdata_core::record::TimeConv;
use perfdata_inject::jit::{Jit, JitClock};
use perfdata_tests::synth::jitdump::{Dump, Header};
use perfdata_tests::told::Told::{Conv, Map, Sample as At};
use perfdata_tests::told::{MONOTONIC, made, shown};

use super::Place;

/// Times are those of the recording's clock, or are converted to it.
#[test]
fn clocks_are_compared() {
    let place = Place::new();
    let marker = place.name("jit-5.dump");
    let input = place.path("in.data");
    let conv = TimeConv {
        time_shift: 1,
        time_mult: 1,
        time_zero: 50,
        short: None,
    };
    let told = |conv: Option<TimeConv>| {
        let first = conv.map(|conv| (0, Conv(conv)));
        let rest = [(90, Map(5, 0, 1, &marker)), (1000, At(5, 0x1000))];
        first.into_iter().chain(rest).collect::<Vec<_>>()
    };
    let dump = |flags| {
        let header = Header {
            flags,
            ..Header::of(5)
        };
        place.dump(
            "jit-5.dump",
            Dump::new(false, header).load(200, 0x1000, 1, "f", &[0x90; 4]),
        );
    };
    let run = |with: &dyn Fn(Jit) -> Jit| {
        let summary = place.convert(&input, None, with, Vec::new())?;
        Ok::<_, Error>((shown(&place.path("out.data")), summary.notes))
    };
    let mapped = |time| format!("{time} 5/5 0x1000+0x4 @0x80 jitted-5-1.so");

    dump(0);
    for clock in [None, Some(4)] {
        made(&input, Order::Little, clock, &told(None));
        let _ = fs::remove_file(place.path("out.data"));
        let error = run(&|jit| jit).expect_err("another clock");
        assert!(
            error
                .to_string()
                .contains("record with perf record -k mono"),
            "{error}"
        );
        assert!(
            matches!(error.step(), Some(Step::JitClockOffset)),
            "{error:?}"
        );
        assert!(error.is_refusal() && !place.path("out.data").exists());
        let (records, _) = run(&|jit| jit.with_clock_offset(-50)).expect("it is converted");
        assert_eq!(records[0], mapped(150));
    }
    // The dump is named with the clock of the counter, which the recording converts.
    dump(1);
    made(&input, Order::Big, None, &told(Some(conv.clone())));
    assert_eq!(run(&|jit| jit).expect("it is converted").0[0], mapped(150));
    made(&input, Order::Little, None, &told(None));
    let error = run(&|jit| jit).expect_err("no conversion");
    assert!(error.to_string().contains("no usable TIME_CONV"), "{error}");
    made(&input, Order::Little, MONOTONIC, &told(None));
    let (records, notes) = run(&|jit| jit).expect("it is converted");
    assert!(notes[0].contains("no usable TIME_CONV"), "{notes:?}");
    assert_eq!(records[0], "90 5/5 0x0+0x1 @0x0 jit-5.dump");
    // Unless the header is wrong.
    let is_wrong = |jit: Jit| jit.with_clock(JitClock::Monotonic);
    let (records, _) = run(&is_wrong).expect("it is converted");
    assert_eq!(records[0], mapped(200));
    dump(0);
    made(&input, Order::Little, None, &told(Some(conv)));
    let is_wrong = |jit: Jit| jit.with_clock(JitClock::Cycles);
    assert_eq!(run(&is_wrong).expect("it is converted").0[0], mapped(150));
}
