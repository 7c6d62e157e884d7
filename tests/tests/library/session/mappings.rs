//! The mapping at an address, what is mapped, and its build ID.

use perfdata_core::read::Limits;
use perfdata_core::record::{
    Body, BpfEvent, BpfEventType, BuildId, CpuMode, KsymbolFlags, MISC_MMAP_BUILD_ID,
    MappedBuildId, Mmap2, RecordType,
};
use perfdata_core::wire::Text;

use super::{KERNEL, Stream, USER, USUAL, walk};

#[test]
fn addresses_have_files() {
    let mut s = Stream::new(USUAL);
    s.map(
        CpuMode::KERNEL,
        u32::MAX,
        0xffff_0000,
        0x1000,
        0xffff_0100,
        "[kernel.kallsyms]_text",
    );
    s.map(
        CpuMode::KERNEL,
        u32::MAX,
        0xffff_8000,
        0x1000,
        0,
        "/lib/modules/6.1/ext4.ko",
    );
    s.map(CpuMode::USER, 5, 0x1000, 0x3000, 0x400, "/bin/a");
    s.map(CpuMode::USER, 5, 0x7000, 0x1000, 0x9000, "[vdso]");
    s.fork(6, 6, 5, 5);
    // A part of it is replaced by another file, only in the child.
    s.map(CpuMode::USER, 6, 0x2000, 0x1000, 0, "/bin/b (deleted)");
    let chain = [
        KERNEL,
        0xffff_0180,
        0xffff_8010,
        0xfffe_0000,
        USER,
        0x1010,
        0x2010,
        0x3010,
        0x7010,
        0x4000,
    ];
    s.sample(CpuMode::KERNEL, (5, 5), &chain);
    s.sample(CpuMode::KERNEL, (6, 6), &chain);
    // Addresses are interpreted only in their context.
    s.sample(CpuMode::USER, (5, 5), &[USER, 0xffff_0180, KERNEL, 0x1010]);
    // A new program has none of these mappings, and neither has a thread of the old one.
    s.comm(5, 5, "new", true);
    s.map(CpuMode::USER, 5, 0x3000, 0x1000, 0, "/bin/c");
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1010, 0x3010]);
    let kernel = "[kernel.kallsyms]+80 /lib/modules/6.1/ext4.ko+10 fffe0000";
    assert_eq!(
        s.lines(),
        [
            format!(":5 {kernel} /bin/a+410 /bin/a+1410 /bin/a+2410 [vdso]+10 4000"),
            format!(":6 {kernel} /bin/a+410 /bin/b (deleted)+10 /bin/a+2410 [vdso]+10 4000"),
            ":5 ffff0180 1010".to_owned(),
            "new 1010 /bin/c+10".to_owned(),
        ]
    );
}

/// If perf would show another mapping, the session returns it, too.
#[test]
fn programs_before_exec_are_remembered() {
    let mut s = Stream::new(USUAL);
    s.map(CpuMode::USER, 5, 0x1000, 0x1000, 0, "/bin/a");
    s.comm(5, 5, "b", true);
    s.map(CpuMode::USER, 5, 0x8000, 0x1000, 0, "/bin/b");
    s.comm(5, 5, "c", true);
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1010, 0x8010, 0x9000]);
    let mut samples = s.samples(Limits::default());
    let sample = samples.next().expect("it is sound").expect("a sample");
    let before = sample
        .frames()
        .map(|frame| frame.dso_before_exec().map(|dso| dso.name.to_vec()));
    assert_eq!(
        before.collect::<Vec<_>>(),
        [Some(b"/bin/a".to_vec()), Some(b"/bin/b".to_vec()), None]
    );
    assert!(sample.frames().all(|frame| frame.dso().is_none()));
    assert_eq!(
        samples.session().counts().before_exec,
        4,
        "two for each time that they were asked for"
    );
}

#[test]
fn kernel_symbols_come_and_go() {
    let mut s = Stream::new(USUAL);
    let chain = [KERNEL, 0xc010];
    s.symbol(0xc000, "bpf_prog_1", KsymbolFlags(0));
    s.sample(CpuMode::KERNEL, (5, 5), &chain);
    s.symbol(0xc000, "bpf_prog_1", KsymbolFlags::UNREGISTER);
    s.sample(CpuMode::KERNEL, (5, 5), &chain);
    s.map(CpuMode::KERNEL, u32::MAX, 0xc000, 0x1000, 0, "[module]");
    s.symbol(0xc000, "bpf_prog_1", KsymbolFlags::UNREGISTER);
    s.sample(CpuMode::KERNEL, (5, 5), &chain);
    assert_eq!(s.lines(), [":5 bpf_prog_1+10", ":5 c010", ":5 [module]+10"]);
}

/// The name of a program's symbol contains its tag, and another record contains the ID of the
/// program with this tag.
#[test]
fn bpf_programs_have_numbers() {
    let mut s = Stream::new(USUAL);
    let load = |kind| {
        let tag = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0];
        Body::BpfEvent(BpfEvent {
            kind,
            flags: 0,
            id: 77,
            tag,
        })
    };
    s.symbol(0xc000, "bpf_prog_123456789abcdef0_name", KsymbolFlags(0));
    s.add(
        RecordType::BPF_EVENT,
        0,
        load(BpfEventType::PROG_LOAD),
        (0, 0),
    );
    s.symbol(0xd000, "bpf_prog_0000000000000001_other", KsymbolFlags(0));
    s.symbol(0xe000, "bpf_trampoline_1", KsymbolFlags(0));
    s.add(
        RecordType::BPF_EVENT,
        0,
        load(BpfEventType::PROG_UNLOAD),
        (0, 0),
    );
    s.sample(CpuMode::KERNEL, (5, 5), &[KERNEL, 0xc010, 0xd010, 0xe010]);
    let mut samples = s.samples(Limits::default());
    let sample = samples.next().expect("it is sound").expect("a sample");
    let programs = sample
        .frames()
        .map(|frame| sample.session().bpf_program(frame.dso_id()?));
    assert_eq!(programs.collect::<Vec<_>>(), [Some(77), None, None]);
    assert_eq!(samples.session().counts().bpf_programs, 1);
}

/// Mappings that are never hit are discarded with their process.
#[test]
fn memory_does_not_grow_with_what_is_not_hit() {
    let held = |count: u32| {
        let mut s = Stream::new(USUAL);
        for pid in 10..10 + count {
            s.fork(pid, pid, 1, 1);
            for at in 0..10 {
                s.map(
                    CpuMode::USER,
                    pid,
                    u64::from(pid) << 24 | at << 12,
                    0x1000,
                    0,
                    "/bin/a",
                );
            }
            s.exit(pid, pid);
        }
        s.sample(CpuMode::USER, (9, 9), &[]);
        let (result, _, held) = walk(s, Limits::default());
        result.expect("it is within the limits");
        held
    };
    let (some, more) = (held(3000), held(9000));
    // The entry of a thread is never discarded.
    assert!(
        (more - some) / 6000 < 256,
        "{} bytes for each process",
        (more - some) / 6000
    );
}

/// The build ID of a mapping takes precedence over that of the table.
#[test]
fn build_ids_have_an_order() {
    let mut s = Stream::new(USUAL);
    for name in ["/bin/a", "/bin/b"] {
        let filename = Text::padded(name.as_bytes(), 64);
        let id = BuildId {
            pid: Some(-1),
            build_id: [1; 20],
            size: 20,
            reserved_1: 0,
            reserved_2: 0,
            filename,
        };
        s.plain(
            Body::HeaderBuildId(id),
            RecordType::HEADER_BUILD_ID,
            CpuMode::USER.0,
        );
    }
    let mut build_id = [0; 20];
    build_id[..4].fill(2);
    let map = Mmap2 {
        pid: 5,
        tid: 5,
        addr: 0x1000,
        len: 0x1000,
        pgoff: 0,
        inode: None,
        build_id: Some(MappedBuildId {
            build_id_size: 4,
            reserved_1: 0,
            reserved_2: 0,
            build_id,
        }),
        prot: Some(5),
        flags: Some(2),
        filename: Text::padded(b"/bin/a", 8),
    };
    s.add(
        RecordType::MMAP2,
        MISC_MMAP_BUILD_ID | CpuMode::USER.0,
        Body::Mmap2(map),
        (5, 5),
    );
    s.map(CpuMode::USER, 5, 0x2000, 0x1000, 0, "/bin/b");
    s.map(CpuMode::USER, 5, 0x3000, 0x1000, 0, "/bin/c");
    s.sample(CpuMode::USER, (5, 5), &[USER, 0x1010, 0x2010, 0x3010]);
    let mut samples = s.samples(Limits::default());
    let sample = samples.next().expect("it is sound").expect("a sample");
    let ids: Vec<_> = sample
        .frames()
        .map(|frame| frame.build_id().map(|id| id.to_string()))
        .collect();
    assert_eq!(
        ids,
        [Some("02020202".to_owned()), Some("01".repeat(20)), None]
    );
    let mapping = sample
        .frames()
        .next()
        .and_then(|frame| frame.mapping())
        .expect("a mapping");
    assert_eq!(
        (mapping.prot, mapping.flags, mapping.is_executable),
        (Some(5), Some(2), true)
    );
    assert_eq!(sample.weight(), 3);
}
