//! Callchains: deferred ones, those of LBR, return addresses, and callchains as numbers.

use perfdata_core::attr::{Attr, AttrFlags, BranchSampleType, SampleType};
use perfdata_core::read::Limits;
use perfdata_core::record::{
    Body, BranchEntry, BranchFlags, BranchStack, CallchainDeferred, CpuMode, RecordType,
};
use perfdata_core::wire::List;
use perfdata_session::Stacks;

use super::{DEFERRED, KERNEL, Stream, USER, USUAL};

#[test]
fn callchains_that_come_later_are_joined() {
    let later = |cookie| {
        let chain = CallchainDeferred {
            cookie,
            callchain: vec![0x1010, 0x1020].into(),
        };
        Body::CallchainDeferred(chain)
    };
    let mut s = Stream::new(USUAL);
    s.map(CpuMode::USER, 5, 0x1000, 0x1000, 0, "/bin/a");
    s.comm(5, 5, "then", false);
    s.sample(CpuMode::KERNEL, (5, 5), &[KERNEL, 0xf0, DEFERRED, 1]);
    s.sample(CpuMode::KERNEL, (5, 5), &[KERNEL, 0xf1, DEFERRED, 2]);
    s.sample(CpuMode::KERNEL, (6, 6), &[KERNEL, 0xf2, DEFERRED, 2]);
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1000]);
    s.comm(5, 5, "now", false);
    s.sample(CpuMode::KERNEL, (5, 5), &[DEFERRED, 2]);
    s.add(RecordType::CALLCHAIN_DEFERRED, 2, later(2), (5, 5));
    s.add(RecordType::CALLCHAIN_DEFERRED, 2, later(2), (5, 5));
    let mut samples = s.samples(Limits::default());
    let mut found = Vec::new();
    while let Some(sample) = samples.next().expect("it is sound") {
        let addresses: Vec<u64> = sample.frames().map(|frame| frame.address).collect();
        found.push((
            String::from_utf8_lossy(sample.comm()).into_owned(),
            addresses,
            sample.is_incomplete(),
        ));
    }
    let expected = [
        ("then", vec![0x1000], false),
        ("then", vec![0xf0], true),
        ("then", vec![0xf1, 0x1010, 0x1020], false),
        ("now", vec![0x1010, 0x1020], false),
        (":6", vec![0xf2], true),
    ];
    assert_eq!(
        found,
        expected.map(|(name, addresses, incomplete)| (name.to_owned(), addresses, incomplete))
    );
    let counts = samples.session().counts();
    assert_eq!(
        (
            counts.samples,
            counts.deferred,
            counts.never_deferred,
            counts.unclaimed
        ),
        (5, 2, 2, 1)
    );
}

/// Where a program entered the kernel is not a return address.
#[test]
fn the_first_address_in_each_mode_is_no_return_address() {
    let mut s = Stream::new(USUAL);
    s.map(CpuMode::USER, 5, 0x1000, 0x1000, 0, "/bin/a");
    let callchain = [KERNEL, 0xf0, 0xf1, USER, 0x1010, 0x1020];
    s.sample(CpuMode::KERNEL, (5, 5), &callchain);
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1010, 0x1020]);
    let mut samples = s.samples(Limits::default());
    let mut found: Vec<Vec<bool>> = Vec::new();
    while let Some(sample) = samples.next().expect("it is sound") {
        found.push(sample.frames().map(|frame| frame.is_return).collect());
    }
    assert_eq!(found, [vec![false, true, false, true], vec![false, true]]);
}

/// `--call-graph lbr`: the kernel's frames are from the callchain, those of user space from the
/// branch stack.
#[test]
fn branches_are_callchains_with_lbr() {
    let stack = || {
        let branch = |from, to| BranchEntry {
            from,
            to,
            flags: BranchFlags(0),
        };
        let entries = vec![branch(0x1020, 0x1010), branch(0x1040, 0x1030)];
        BranchStack {
            nr: 2,
            hw_idx: None,
            entries: List(entries),
            counters: List(Vec::new()),
        }
    };
    for (is_lbr, expected) in [
        (true, vec![0xf0, 0x1010, 0x1020, 0x1040]),
        (false, vec![0xf0, 0x1000]),
    ] {
        let flags = AttrFlags(0).with("sample_id_all", 1).expect("a flag");
        let attr = Attr {
            size: 80,
            flags,
            sample_type: SampleType(USUAL | SampleType::BRANCH_STACK.0),
            config2: Some(0),
            branch_sample_type: Some(if is_lbr {
                BranchSampleType::CALL_STACK
            } else {
                BranchSampleType::ANY
            }),
            ..Attr::default()
        };
        let mut s = Stream::of(attr);
        s.sample_with(
            CpuMode::KERNEL,
            (5, 5),
            &[KERNEL, 0xf0, USER, 0x1000],
            Some(stack()),
        );
        let mut samples = s.samples(Limits::default());
        let sample = samples.next().expect("it is sound").expect("a sample");
        assert_eq!(
            sample
                .frames()
                .map(|frame| frame.address)
                .collect::<Vec<_>>(),
            expected
        );
        let branches: Vec<_> = sample
            .branches()
            .map(|branch| (branch.from.address, branch.to.address))
            .collect();
        assert_eq!(branches, [(0x1020, 0x1010), (0x1040, 0x1030)]);
    }
}

#[test]
fn callchains_become_numbers() {
    let mut s = Stream::new(USUAL);
    s.map(CpuMode::USER, 5, 0x1000, 0x1000, 0, "/bin/a");
    for chain in [
        &[USER, 0x1010, 0x1020, 0x1030][..],
        &[USER, 0x1011, 0x1020, 0x1030],
        &[USER, 0x1020, 0x1030],
    ] {
        s.sample(CpuMode::USER, (5, 5), chain);
        s.sample(CpuMode::USER, (5, 5), chain);
    }
    let mut samples = s.samples(Limits::default());
    let mut stacks = Stacks::new(Limits::default());
    let mut ids = Vec::new();
    while let Some(sample) = samples.next().expect("it is sound") {
        let id = stacks
            .intern(sample.frames())
            .expect("there is room")
            .expect("frames");
        assert!(
            stacks
                .frames(id)
                .map(|stack| stack.address)
                .eq(sample.frames().map(|frame| frame.address))
        );
        ids.push(id);
    }
    assert_eq!((ids[0], ids[2], ids[4]), (ids[1], ids[3], ids[5]));
    assert_eq!(
        stacks.get(ids[0]).and_then(|stack| stack.parent),
        stacks.get(ids[2]).and_then(|stack| stack.parent)
    );
    // 1030; 1020 called by it, twice: as a caller and as a leaf; 1010 and 1011.
    assert_eq!(stacks.iter().len(), 5);
}
