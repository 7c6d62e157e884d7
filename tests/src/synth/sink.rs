//! One valid recording with all record types and features, as a file and as a pipe.
//!
//! The little-endian and the big-endian one are twins: swapping the byte order of one produces
//! exactly the other.

use super::attr::{Attr, Stamp, sample_type};
use super::buf::{Buf, count, island};
use super::build_id::{self, Room};
use super::feature::Features;
use super::feature_events::{self, Event};
use super::file::{File, Magic};
use super::kernel;
use super::kernel_cases::{self, KERNEL_TASK, KERNEL_TEXT};
use super::kind;
use super::pipe::{Pipe, TERMINATOR};
use super::record::{Case, Scribe, misc, stream};
use super::sample::{Regs, Stack, branch_sample_type, context};
use super::user;
use super::{
    auxtrace, feature_bpf, feature_pmu, feature_system, feature_topology, stat, tracing,
    user_cases, zstd,
};

/// Returns the events. Every sample field, attribute flag and attribute field is used by one of
/// them.
pub fn events() -> Vec<Event> {
    use sample_type::*;
    const USUAL: u64 = IDENTIFIER | IP | TID | TIME | CPU | PERIOD;
    let event = |n: u64, name: &str, attr| Event {
        name: name.to_owned(),
        attr,
        ids: vec![1000 * n + 1, 1000 * n + 2],
    };
    let cycles = Attr {
        read_format: 0x14,
        wakeup_events: 1,
        clockid: 1,
        sample_max_stack: 127,
        ..Attr::new(
            USUAL | ID | STREAM_ID | CALLCHAIN,
            "disabled inherit exclude_kernel exclude_hv mmap comm freq enable_on_exec task \
             precise_ip=2 sample_id_all exclude_guest mmap2 comm_exec use_clockid context_switch \
             namespaces ksymbol bpf_event cgroup text_poke build_id defer_callchain",
        )
    };
    let tracepoint = Attr {
        kind: 2,
        config: tracing::EVENT_ID.into(),
        sample_period: 1,
        read_format: 0x1f,
        clockid: 1,
        ..Attr::new(
            USUAL | ADDR | READ | RAW,
            "disabled inherit_stat watermark precise_ip=1 sample_id_all use_clockid",
        )
    };
    let branches = Attr {
        config: 4,
        read_format: 0x1f,
        branch_sample_type: branch_sample_type::USER
            | branch_sample_type::ANY
            | branch_sample_type::HW_INDEX,
        sample_regs_user: 0xff_0fff,
        sample_stack_user: 24,
        clockid: 1,
        ..Attr::new(
            USUAL | BRANCH_STACK | REGS_USER | STACK_USER | WEIGHT | DATA_SRC,
            "pinned exclusive precise_ip=3 sample_id_all exclude_callchain_kernel use_clockid",
        )
    };
    let memory = Attr {
        kind: 4,
        config: 0x1cd,
        config1: 0x2122_2324_2526_2728,
        config2: 0x3132_3334_3536_3738,
        config3: 0x7172_7374_7576_7778,
        config4: 0x8182_8384_8586_8788,
        clockid: 1,
        sample_regs_intr: 0xff_0fff,
        aux_watermark: 0x4142_4344,
        aux_sample_size: 0x5152_5354,
        aux_action: "aux_resume".to_owned(),
        sig_data: 0x6162_6364_6566_6768,
        ..Attr::new(
            USUAL
                | ADDR
                | WEIGHT_STRUCT
                | TRANSACTION
                | REGS_INTR
                | PHYS_ADDR
                | AUX
                | CGROUP
                | DATA_PAGE_SIZE
                | CODE_PAGE_SIZE,
            "exclude_user exclude_idle mmap_data sample_id_all exclude_host \
             exclude_callchain_user use_clockid aux_output inherit_thread",
        )
    };
    let breakpoint = Attr {
        kind: 5,
        bp_type: 3,
        config1: 0x7fff_0000_1234,
        config2: 4,
        sample_period: 1,
        clockid: 1,
        ..Attr::new(
            USUAL,
            "sample_id_all use_clockid write_backward remove_on_exec sigtrap defer_output",
        )
    };
    vec![
        event(1, "cycles:upp", cycles),
        event(2, "synth:demo", tracepoint),
        event(3, "branches:ppp", branches),
        event(4, "cpu/mem-loads/", memory),
        event(5, "mem:0x7fff00001234/4:rw", breakpoint),
    ]
}

/// A scribe that writes for one event after another.
struct Sink {
    scribe: Scribe,
    events: Vec<Event>,
    /// Times of the first and the last sample.
    sampled: Option<(u64, u64)>,
}

impl Sink {
    fn new(big: bool) -> Self {
        let events = events();
        let scribe = Scribe::new(big, events[0].attr.clone(), Stamp::SOME);
        Sink {
            scribe,
            events,
            sampled: None,
        }
    }

    /// Selects an event.
    fn event(&mut self, index: usize) -> &mut Scribe {
        let event = &self.events[index];
        self.scribe.attr = event.attr.clone();
        self.scribe.stamp.id = event.ids[0];
        self.scribe.stamp.stream_id = event.ids[1];
        &mut self.scribe
    }

    /// Writes the records that perf writes at the start, some of them in the form of kernel records
    /// with empty trailers.
    fn preamble(&mut self) {
        let ids: Vec<[u64; 4]> = self
            .events
            .iter()
            .flat_map(|event| {
                event
                    .ids
                    .iter()
                    .zip(0..)
                    .map(|(id, n)| [*id, n, n, u64::MAX])
            })
            .collect();
        let s = self.event(0);
        user_cases::time_conv(s);
        s.user("ID_INDEX", kind::ID_INDEX, 0, |b| {
            user::id_index(b, &ids, &[])
        });
        auxtrace::info(s, "INTEL_PT", 1, auxtrace::intel_pt_with_filter);
        let stamp = std::mem::replace(&mut s.stamp, Stamp::ZERO);
        s.tick = 0;
        s.kernel("MMAP", kind::MMAP, misc::KERNEL, |b| {
            kernel::mmap(b, KERNEL_TASK, KERNEL_TEXT, "[kernel.kallsyms]_text")
        });
        let task = stamp.task();
        s.kernel("FORK", kind::FORK, 0, |b| kernel::fork(b, task, (1, 1), 0));
        s.kernel("COMM", kind::COMM, 0, |b| {
            kernel::comm(b, task, "synthesized")
        });
        s.tick = 1_000;
        s.stamp = stamp;
        user_cases::thread_map(s);
        stat::plain(s);
    }

    /// Writes every kind of kernel record, with attributes that have different trailers and read
    /// formats.
    fn kernel(&mut self) {
        for index in [0, 1, 3] {
            kernel_cases::plain(self.event(index));
            user_cases::markers(self.event(index));
        }
    }

    fn samples(&mut self) {
        let first = self.scribe.stamp.time;
        let s = self.event(0);
        s.sample("callchain", |_| ());
        s.sample_in("kernel", misc::KERNEL | 1 << 14, |sample| {
            sample.callchain.clear()
        });
        s.sample("deferred", |sample| {
            sample.callchain.truncate(2);
            sample
                .callchain
                .extend([context::USER_DEFERRED, 0x1_0000_0007]);
        });
        s.kernel(
            "CALLCHAIN_DEFERRED",
            kind::CALLCHAIN_DEFERRED,
            misc::USER,
            |b| kernel::callchain_deferred(b, 0x1_0000_0007, &[context::USER, 0x40_1234]),
        );
        let s = self.event(1);
        for value in [1, 0x0102_0304] {
            let pid = s.stamp.pid;
            // In the byte order of the tracing data, for any byte order of the recording.
            s.sample("tracepoint", |sample| {
                sample.raw = tracing::raw(false, pid, value)
            });
        }
        let s = self.event(2);
        s.sample("branches", |_| ());
        s.sample("32-bit", |sample| sample.regs_user.abi = 1);
        s.sample("nothing to give", |sample| {
            // The kernel also omits the index, but perf cannot read that.
            sample.branch_stack.entries.clear();
            sample.regs_user = Regs::default();
            sample.stack_user = Stack::default();
        });
        let s = self.event(3);
        s.sample("memory", |_| ());
        s.sample("memory, no AUX", |sample| sample.aux.clear());
        self.event(4).sample("breakpoint", |_| ());
        self.sampled = Some((first, self.scribe.stamp.time - self.scribe.tick));
    }

    fn rest(&mut self) {
        let s = self.event(0);
        auxtrace::auxtrace(s, "AUXTRACE", &island(40));
        auxtrace::auxtrace(s, "AUXTRACE", &island(8));
        auxtrace::errors(s);
        user_cases::bpf_metadata(s);
        stat::schedstat(s);
        for entry in build_id::usual(Room::Record8, true) {
            user_cases::injected_build_id(s, &entry);
        }
        user_cases::markers(s);
    }

    /// Returns all records after the header.
    fn records(&mut self) -> Vec<Case> {
        self.preamble();
        self.kernel();
        self.samples();
        self.rest();
        std::mem::take(&mut self.scribe.cases)
    }

    /// Returns the features that do not depend on offsets in a file.
    fn features(&self) -> Features {
        let mut f = Features {
            big: self.scribe.big,
            cases: Vec::new(),
        };
        feature_system::plain(&mut f);
        feature_topology::plain(&mut f);
        feature_pmu::plain(&mut f);
        feature_bpf::plain(&mut f);
        let (first, last) = self.sampled.unwrap_or_default();
        f.cases.retain(|case| case.bit != SAMPLE_TIME);
        f.add(SAMPLE_TIME, "SAMPLE_TIME", |b| b.u64(first).u64(last));
        f.add(feature_events::EVENT_DESC, "EVENT_DESC", |b| {
            feature_events::event_desc(b, &self.events)
        });
        f.add(feature_events::GROUP_DESC, "GROUP_DESC", |b| {
            feature_events::group_desc(b, &[("{anon_group}", 1, 2)])
        });
        f.cases.sort_by_key(|case| case.bit);
        f
    }
}

const SAMPLE_TIME: u32 = 21;

/// Returns the recording as a file. Records that only a pipe needs are replaced by the header and
/// the features.
pub fn file(big: bool) -> File {
    let mut sink = Sink::new(big);
    let cases = sink.records();
    sink.file(&cases)
}

/// Returns the file with its kernel records in records of type COMPRESSED or COMPRESSED2.
pub fn compressed_file(big: bool, kind: u32) -> File {
    let mut sink = Sink::new(big);
    let cases = compress(big, &sink.records(), kind, CHUNK);
    sink.file(&cases)
}

/// Returns the recording as a pipe.
pub fn pipe(big: bool) -> Pipe {
    let mut sink = Sink::new(big);
    let cases = sink.records();
    sink.pipe(&cases)
}

/// Returns the pipe with its kernel records in records of type COMPRESSED or COMPRESSED2.
pub fn compressed_pipe(big: bool, kind: u32) -> Pipe {
    let mut sink = Sink::new(big);
    let cases = compress(big, &sink.records(), kind, CHUNK);
    sink.pipe(&cases)
}

impl Sink {
    fn file(self, cases: &[Case]) -> File {
        let mut features = self.features();
        let big = features.big;
        features.add(1, "TRACING_DATA", |b| {
            b.bytes(&tracing::data(tracing::Version::V0_6, false))
        });
        let entries = build_id::section(big, &build_id::usual(Room::Name8, true));
        features.add(feature_events::BUILD_ID, "BUILD_ID", |b| b.bytes(&entries));
        features.add(feature_events::BRANCH_STACK, "BRANCH_STACK", |b| b);
        let mut file = File::new(big, self.events);
        let offsets = offsets_of(cases, kind::AUXTRACE, file.data_offset());
        features.add(feature_events::AUXTRACE, "AUXTRACE", |b| {
            feature_events::auxtrace_index(b, &offsets)
        });
        file.data = stream(cases);
        file.features = features
            .cases
            .into_iter()
            .map(|case| (case.bit, case.section))
            .collect();
        file
    }

    fn pipe(self, cases: &[Case]) -> Pipe {
        let big = self.scribe.big;
        let pipe = self
            .events
            .iter()
            .fold(Pipe::new(big, Magic::V2), Pipe::event);
        let features = self.features().cases;
        let features = features.iter().filter(|case| case.pipe);
        features
            .fold(pipe, |pipe, case| pipe.feature(case.bit, &case.section))
            .terminator(TERMINATOR)
            .tracing_data(&tracing::data(tracing::Version::V0_6, false))
            .record(
                kind::HEADER_EVENT_TYPE,
                0,
                user::event_type(Buf::new(big), 0, "cycles:upp"),
            )
            .records(cases)
    }
}

/// Returns the offsets of the records of a type, where `start` is the offset of the first record.
fn offsets_of(cases: &[Case], kind: u32, start: u64) -> Vec<u64> {
    let places = cases.iter().scan(start, |end, case| {
        let begin = *end;
        *end += count(&case.record) + count(&case.payload);
        Some((case.kind, begin))
    });
    places
        .filter(|place| place.0 == kind)
        .map(|place| place.1)
        .collect()
}

/// Size of the records in one compressed record of the sink, in bytes.
const CHUNK: usize = 1_000;

/// Packs every sequence of kernel records into records of type `kind`, each of which contains
/// `chunk` bytes of them. Many of the inner records start in one and end in the next.
pub fn compress(big: bool, cases: &[Case], kind: u32, chunk: usize) -> Vec<Case> {
    let mut zstd = zstd::Stream::default();
    let mut out = Scribe::new(big, cases[0].attr.clone(), Stamp::ZERO);
    for run in cases.chunk_by(|a, b| (a.kind < 64) == (b.kind < 64)) {
        if run[0].kind >= 64 {
            out.cases.extend_from_slice(run);
            continue;
        }
        for part in stream(run).chunks(chunk) {
            let packed = zstd.pack(part);
            out.user("COMPRESSED", kind, 0, |b| {
                user::compressed(b, kind, &packed)
            })
            .swaps = false;
        }
    }
    out.cases
}
