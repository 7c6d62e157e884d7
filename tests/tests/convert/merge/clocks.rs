//! Times, machines and kernels of several recordings.

use std::fs;

use perfdata_convert::error::Step;
use perfdata_convert::io::Input;
use perfdata_core::record::{Body, Record};
use perfdata_edit::merge::{Align, Merge};
use perfdata_tests::convert::Whole;
use perfdata_tests::recordings::fixture;
use perfdata_tests::synth::attr::sample_type::*;
use perfdata_tests::synth::buf::Buf;

use super::{BASE, Small, event, merge_noting, merge_with, records, samples, with_kernel};

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
