//! Which DSOs are hit depends on the mappings at the time of the sample, in time order, including
//! forks and execs.

use std::fs;
use std::path::Path;

use perfdata_inject::build_ids::{Select, Storage};
use perfdata_tests::convert::{Converted, convert};
use perfdata_tests::synth::attr::sample_type::{CALLCHAIN, CPU, IDENTIFIER, IP, TID, TIME};
use perfdata_tests::synth::feature_events::Event;
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::kernel::{callchain_deferred, comm, fork, ksymbol, mmap};
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::sample::context;
use perfdata_tests::synth::{Attr, Stamp, kind};

use super::{stage, table};

/// Writes records of processes at arbitrary times.
struct Story {
    scribe: Scribe,
}

impl Story {
    fn new(big: bool) -> Self {
        let parts = IDENTIFIER | IP | TID | TIME | CPU | CALLCHAIN;
        let attr = Attr::new(parts, "sample_id_all mmap comm task comm_exec");
        Story {
            scribe: Scribe::new(big, attr, Stamp::SOME),
        }
    }

    fn at(&mut self, time: u64, pid: u32) -> &mut Scribe {
        self.scribe.stamp = Stamp {
            time,
            pid,
            tid: pid,
            ..Stamp::SOME
        };
        &mut self.scribe
    }

    fn map(&mut self, time: u64, pid: u32, start: u64, name: &str) {
        self.at(time, pid).kernel("", kind::MMAP, misc::USER, |b| {
            mmap(b, (pid, pid), [start, 0x1000, 0], name)
        });
    }

    fn map_kernel(&mut self, mode: u16, pid: u32, [start, len]: [u64; 2], name: &str) {
        self.at(0, 0).kernel("", kind::MMAP, mode, |b| {
            mmap(b, (pid, 0), [start, len, 0], name)
        });
    }

    fn fork(&mut self, time: u64, parent: u32, child: u32) {
        self.at(time, parent).kernel("", kind::FORK, 0, |b| {
            fork(b, (child, child), (parent, parent), time)
        });
    }

    fn exec(&mut self, time: u64, pid: u32) {
        self.at(time, pid)
            .kernel("", kind::COMM, misc::USER | 1 << 13, |b| {
                comm(b, (pid, pid), "program")
            });
    }

    fn sample(&mut self, time: u64, pid: u32, mode: u16, ip: u64, callchain: &[u64]) {
        self.at(time, pid).sample_in("", mode, |sample| {
            (sample.ip, sample.callchain) = (ip, callchain.to_vec())
        });
    }

    fn hit(&mut self, time: u64, pid: u32, ip: u64) {
        self.sample(time, pid, misc::USER, ip, &[]);
    }

    fn end_round(&mut self) {
        self.scribe.user("", kind::FINISHED_ROUND, 0, |b| b);
    }

    fn convert(&self, select: Select) -> Converted {
        let event = Event {
            name: "cpu-clock".into(),
            attr: self.scribe.attr.clone(),
            ids: vec![Stamp::SOME.id],
        };
        let mut file = File::new(self.scribe.big, vec![event]);
        file.data = stream(&self.scribe.cases);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("story.data");
        fs::write(&path, file.bytes()).unwrap();
        // A build ID for every name, so that the table contains exactly the DSOs that were hit.
        let known: Vec<String> = NAMES
            .iter()
            .map(|name| format!("{} {name}", "ab".repeat(20)))
            .collect();
        let root: &Path = folder.path();
        let stage = stage(select, Storage::Table, Some(root), &known.join(","));
        convert(&path, None, vec![Box::new(stage)]).unwrap()
    }

    fn names(&self, select: Select) -> Vec<String> {
        table(&self.convert(select).path())
            .into_iter()
            .map(|(_, name)| name)
            .collect()
    }

    fn hits(&self) -> Vec<String> {
        self.names(Select::Hit)
    }
}

const NAMES: [&str; 10] = [
    "/a",
    "/b",
    "/c",
    "/d",
    "[kernel.kallsyms]",
    "[module]",
    "[guest.kernel.kallsyms]",
    "[guest.kernel.kallsyms.77]",
    "[vdso]",
    "//anon",
];

/// Checks the story in both byte orders.
fn tell(story: impl Fn(&mut Story), hits: &[&str]) {
    for big in [false, true] {
        let mut told = Story::new(big);
        story(&mut told);
        assert_eq!(told.hits(), hits);
    }
}

#[test]
fn the_mapping_at_the_time_counts() {
    tell(
        |story| {
            story.map(10, 1, 0x1000, "/a");
            story.hit(20, 1, 0x1000);
            story.map(30, 1, 0x1000, "/b");
            story.map(40, 1, 0x1000, "/c");
            story.hit(50, 1, 0x1fff);
            story.hit(60, 1, 0x2000);
            story.map(70, 1, 0x2000, "/d");
        },
        &["/a", "/c"],
    );
}

/// The buffer of one CPU is read before that of another, so the first event may be the last in a
/// round, or even be in the next round.
#[test]
fn rounds_are_put_into_the_order_of_time() {
    tell(
        |story| {
            story.map(10, 1, 0x1000, "/a");
            story.end_round();
            story.hit(50, 1, 0x1000);
            story.end_round();
            story.map(40, 1, 0x1000, "/b");
            story.hit(45, 2, 0x1000);
            story.map(60, 1, 0x1000, "/c");
            story.end_round();
        },
        &["/b"],
    );
}

#[test]
fn children_have_their_parents_mappings_until_they_exec() {
    tell(
        |story| {
            story.map(10, 1, 0x1000, "/a");
            story.map(10, 1, 0x5000, "/b");
            story.fork(20, 1, 2);
            story.hit(30, 2, 0x1000);
            story.exec(40, 2);
            story.hit(50, 2, 0x5000);
            story.map(60, 2, 0x5000, "/c");
            story.hit(70, 2, 0x5000);
            story.map(80, 1, 0x5000, "/d");
            story.hit(90, 2, 0x5000);
        },
        &["/a", "/c"],
    );
}

#[test]
fn callchains_count_and_their_markers() {
    tell(
        |story| {
            story.map_kernel(
                misc::KERNEL,
                u32::MAX,
                [1 << 63, 0x10_0000],
                "[kernel.kallsyms]_text",
            );
            story.map_kernel(
                misc::KERNEL,
                u32::MAX,
                [1 << 63 | 0x8000, 0x1000],
                "[module]",
            );
            story.map(10, 1, 0x1000, "/a");
            story.map(10, 1, 0x5000, "/b");
            let chain = [
                context::KERNEL,
                1 << 63 | 0x8010,
                0x1000,
                context::USER,
                0x5010,
                1 << 63 | 0x10,
            ];
            story.sample(20, 1, misc::KERNEL, 1 << 63 | 0x20_0000, &chain);
        },
        &["/b", "[module]"],
    );
}

/// The code of a BPF program is inside the address range of the kernel's mapping.
#[test]
fn bpf_programs_are_not_the_kernel() {
    for (address, hits) in [(0x4000, &[][..]), (0x6000, &["[kernel.kallsyms]"])] {
        tell(
            |story| {
                story.map_kernel(
                    misc::KERNEL,
                    u32::MAX,
                    [1 << 63, 0],
                    "[kernel.kallsyms]_text",
                );
                story.at(10, 1).kernel("", kind::KSYMBOL, 0, |b| {
                    ksymbol(b, 1 << 63 | 0x4000, 0x1000, 1, 0, "bpf_prog_1")
                });
                story.sample(20, 1, misc::KERNEL, 1 << 63 | address, &[]);
            },
            hits,
        );
    }
}

#[test]
fn guests_have_their_own_kernels() {
    tell(
        |story| {
            story.map_kernel(
                misc::KERNEL,
                u32::MAX,
                [1 << 63, 0x1000],
                "[kernel.kallsyms]_text",
            );
            story.map_kernel(
                misc::GUEST_KERNEL,
                77,
                [1 << 63, 0x1000],
                "[guest.kernel.kallsyms.77]_text",
            );
            story.sample(20, 77, misc::GUEST_KERNEL, 1 << 63, &[]);
        },
        &["[guest.kernel.kallsyms.77]"],
    );
    tell(
        |story| {
            story.map_kernel(
                misc::GUEST_KERNEL,
                0,
                [1 << 63, 0x1000],
                "[guest.kernel.kallsyms]_text",
            );
            story.sample(20, 5, misc::GUEST_KERNEL, 1 << 63, &[]);
        },
        &["[guest.kernel.kallsyms]"],
    );
}

#[test]
fn user_callchains_may_come_later() {
    tell(
        |story| {
            story.map(10, 1, 0x1000, "/a");
            story.map(10, 1, 0x5000, "/b");
            story.sample(
                20,
                1,
                misc::KERNEL,
                1 << 63,
                &[context::USER_DEFERRED, 0x5000],
            );
            let body = |b| callchain_deferred(b, 0x5000, &[0x1000]);
            story
                .at(30, 1)
                .kernel("", kind::CALLCHAIN_DEFERRED, misc::USER, body);
        },
        &["/a"],
    );
}

#[test]
fn memory_is_no_object_and_the_vdso_always_is() {
    tell(
        |story| {
            story.map(10, 1, 0x1000, "//anon");
            story.map(10, 1, 0x5000, "[vdso]");
            story.hit(20, 1, 0x1000);
        },
        &["[vdso]"],
    );
}

#[test]
fn all_is_what_may_be_executed() {
    let mut story = Story::new(false);
    story.map(10, 1, 0x1000, "/a");
    story
        .at(20, 1)
        .kernel("", kind::MMAP, misc::USER | 1 << 13, |b| {
            mmap(b, (1, 1), [0x9000, 0x1000, 0], "/b")
        });
    assert_eq!(story.hits(), [""; 0]);
    assert_eq!(story.names(Select::All), ["/a"]);
}

/// Samples without mappings and mappings with invalid addresses are harmless.
#[test]
fn absurd_addresses() {
    let mut story = Story::new(false);
    for (start, len) in [
        (u64::MAX, u64::MAX),
        (0, u64::MAX),
        (u64::MAX - 1, 1),
        (5, 0),
    ] {
        story.map_kernel(misc::USER, 1, [start, len], "/a");
        story.map_kernel(
            misc::KERNEL,
            u32::MAX,
            [start, len],
            "[kernel.kallsyms]_text",
        );
    }
    for ip in [0, 1, u64::MAX, u64::MAX - 1, 1 << 63] {
        story.hit(20, 1, ip);
        story.sample(
            20,
            9,
            misc::USER,
            ip,
            &[ip, context::USER, ip, context::HV, ip, context::GUEST, ip],
        );
        story.sample(u64::MAX / 2, 1, 7, ip, &[context::KERNEL, ip]);
    }
    story.fork(30, 1, 1);
    story.exec(40, 99);
    assert_eq!(story.hits(), ["/a", "[kernel.kallsyms]"]);
}
