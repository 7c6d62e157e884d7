//! The contents of generated recordings, and their models.

use perfdata_core::attr::{Attr, AttrFlags, BranchSampleType, EventType, ReadFormat, SampleType};
use perfdata_core::feature::{
    Compression, CompressionType, EventDescs, Feature, FeatureId, NrCpus, SampleTime,
};
use perfdata_core::wire::HeaderString;
use perfdata_core::{Endian, Event, Recording, Result};

use crate::synth::tracing;

/// Number of CPUs of the machine.
pub(super) const CPUS: u32 = 8;

/// Size of the user stack in a sample, in bytes.
pub(super) const STACK: u32 = 8 << 10;

/// Mask of the user registers in a sample: those that perf samples on x86-64.
pub(super) const REGS: u64 = 0xff_0fff;

/// The main content of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Samples of one event with callchains of 8 to 40 addresses: `perf record -a -g`.
    Callchains,
    /// Samples of four events without callchains, each event with an ID for each CPU:
    /// `perf record -a -e …`.
    Events,
    /// A tracepoint with its RAW data: `perf record -a -e synth:demo`.
    Tracepoints,
    /// Processes that start, map files and end, and short samples: `perf record -a` of a build.
    System,
    /// Callchains, compressed: `perf record -a -g -z`.
    Compressed,
    /// User registers and 8 KiB of stack in each sample: `perf record --call-graph dwarf`.
    Stacks,
    /// The last 16 branches in each sample: `perf record -a -b`.
    Branches,
}

impl Mix {
    /// All mixes.
    pub const ALL: [Mix; 7] = [
        Mix::Callchains,
        Mix::Events,
        Mix::Tracepoints,
        Mix::System,
        Mix::Compressed,
        Mix::Stacks,
        Mix::Branches,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Mix::Callchains => "callchains",
            Mix::Events => "events",
            Mix::Tracepoints => "tracepoints",
            Mix::System => "system",
            Mix::Compressed => "compressed",
            Mix::Stacks => "stacks",
            Mix::Branches => "branches",
        }
    }

    /// Returns the mix with this name.
    pub fn by_name(name: &str) -> Option<Mix> {
        Self::ALL.into_iter().find(|mix| mix.name() == name)
    }

    /// Returns type, `config` and name of its events.
    fn events(self) -> &'static [(EventType, u64, &'static str)] {
        match self {
            Mix::Events => &[
                (EventType::HARDWARE, 0, "cycles"),
                (EventType::HARDWARE, 1, "instructions"),
                (EventType::HARDWARE, 3, "cache-misses"),
                (EventType::SOFTWARE, 2, "page-faults"),
            ],
            Mix::Tracepoints => &[(
                EventType::TRACEPOINT,
                tracing::EVENT_ID as u64,
                "synth:demo",
            )],
            _ => &[(EventType::HARDWARE, 0, "cycles")],
        }
    }

    fn sample_type(self) -> SampleType {
        let usual = SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::PERIOD;
        match self {
            Mix::Callchains | Mix::Compressed => usual | SampleType::CALLCHAIN,
            Mix::Events => usual | SampleType::IDENTIFIER | SampleType::READ,
            Mix::Tracepoints => usual | SampleType::RAW,
            Mix::System => usual | SampleType::IDENTIFIER,
            Mix::Branches => usual | SampleType::BRANCH_STACK,
            Mix::Stacks => {
                usual | SampleType::CALLCHAIN | SampleType::REGS_USER | SampleType::STACK_USER
            }
        }
    }
}

/// Returns the IDs of the event at `at` in the list, one for each CPU.
pub(super) fn ids(at: usize) -> Vec<u64> {
    (0..u64::from(CPUS))
        .map(|cpu| 1000 + 100 * at as u64 + cpu)
        .collect()
}

fn attr(mix: Mix, at: usize, kind: EventType, config: u64) -> Attr {
    let mut flags = AttrFlags::default()
        .with_sample_id_all(true)
        .with_inherit(true)
        .with_exclude_guest(true);
    if kind != EventType::TRACEPOINT {
        flags = flags.with_freq(true);
    }
    if at == 0 {
        flags = flags
            .with_mmap(true)
            .with_mmap2(true)
            .with_comm(true)
            .with_comm_exec(true)
            .with_task(true);
    }
    if mix == Mix::System {
        flags = flags.with_context_switch(true);
    }
    let stacks = mix == Mix::Stacks;
    Attr {
        kind,
        size: 128,
        config,
        sample_period: if kind == EventType::TRACEPOINT {
            1
        } else {
            4000
        },
        sample_type: mix.sample_type(),
        read_format: if mix == Mix::Events {
            ReadFormat::ID
        } else {
            ReadFormat::default()
        },
        flags,
        config2: Some(0),
        branch_sample_type: Some(match mix {
            Mix::Branches => BranchSampleType::ANY,
            _ => BranchSampleType::default(),
        }),
        sample_regs_user: Some(if stacks { REGS } else { 0 }),
        sample_stack_user: Some(if stacks { STACK } else { 0 }),
        clockid: Some(0),
        sample_regs_intr: Some(0),
        aux_watermark: Some(0),
        sample_max_stack: Some(if mix.sample_type().has(SampleType::CALLCHAIN) {
            127
        } else {
            0
        }),
        reserved_2: Some(0),
        aux_sample_size: Some(0),
        aux_action: Some(Default::default()),
        sig_data: Some(0),
        ..Attr::default()
    }
}

/// Returns the model of a recording.
pub(super) fn model(mix: Mix, endian: Endian) -> Result<Recording> {
    let mut recording = Recording::new(endian);
    let mut descs = Vec::new();
    for (at, &(kind, config, name)) in mix.events().iter().enumerate() {
        let attr = attr(mix, at, kind, config);
        descs.push((attr.clone(), HeaderString::new(name.as_bytes()), ids(at)));
        recording.events.push(Event { attr, ids: ids(at) });
    }
    let arch = if endian == Endian::Big {
        "s390x"
    } else {
        "x86_64"
    };
    let words =
        ["/usr/bin/perf", "record", mix.name()].map(|word| HeaderString::new(word.as_bytes()));
    let mut features = vec![
        (
            FeatureId::HOSTNAME,
            Feature::Hostname(HeaderString::new(b"generated")),
        ),
        (
            FeatureId::OSRELEASE,
            Feature::OsRelease(HeaderString::new(b"6.1.0-generated")),
        ),
        (
            FeatureId::VERSION,
            Feature::Version(HeaderString::new(b"6.1.187")),
        ),
        (
            FeatureId::ARCH,
            Feature::Arch(HeaderString::new(arch.as_bytes())),
        ),
        (
            FeatureId::NRCPUS,
            Feature::NrCpus(NrCpus {
                available: CPUS,
                online: CPUS,
            }),
        ),
        (FeatureId::CMDLINE, Feature::CmdLine(words.to_vec().into())),
        (
            FeatureId::SAMPLE_TIME,
            Feature::SampleTime(SampleTime { first: 0, last: 0 }),
        ),
    ];
    features.extend(
        EventDescs::new(descs).map(|descs| (FeatureId::EVENT_DESC, Feature::EventDescs(descs))),
    );
    if mix == Mix::Compressed {
        let params = Compression {
            version: 0,
            kind: CompressionType::ZSTD,
            level: 1,
            ratio: 4,
            mmap_len: 528_384,
        };
        features.push((FeatureId::COMPRESSED, Feature::Compressed(params)));
    }
    for (id, feature) in features {
        recording.set_feature(id, feature)?;
    }
    if mix == Mix::Tracepoints {
        let data = tracing::data(tracing::Version::V0_6, endian == Endian::Big);
        recording.features.insert(FeatureId::TRACING_DATA, data);
    }
    Ok(recording)
}
