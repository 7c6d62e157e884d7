//! Feature sections: every section, every revision of each; tools/perf/util/header.c.

use super::buf::{Buf, island};
use super::{feature_bpf, feature_events, feature_pmu, feature_system, feature_topology, tracing};

/// A feature section.
#[derive(Clone, Debug)]
pub struct FeatureCase {
    /// perf's name of the feature, then the variant.
    pub name: String,
    /// Bit in the header's bitmap, which is also the ID in a HEADER_FEATURE record.
    pub bit: u32,
    /// The content.
    pub section: Vec<u8>,
    /// The NRCPUS section that is required for reading some sections: available, online.
    pub cpus: (u32, u32),
    /// Whether perf writes this feature in pipe mode as a HEADER_FEATURE record.
    pub pipe: bool,
    /// Whether swapping the byte order of this section produces exactly its twin of the other byte
    /// order.
    pub swaps: bool,
}

/// Number of available and online CPUs of the machine in the sections.
pub const CPUS: (u32, u32) = (4, 2);

/// Collects sections.
#[derive(Debug)]
pub struct Features {
    /// Byte order.
    pub big: bool,
    /// The sections so far.
    pub cases: Vec<FeatureCase>,
}

impl Features {
    /// Adds a section.
    pub fn add(&mut self, bit: u32, name: &str, put: impl FnOnce(Buf) -> Buf) -> &mut FeatureCase {
        self.cases.push(FeatureCase {
            name: name.to_owned(),
            bit,
            section: put(Buf::new(self.big)).bytes,
            cpus: CPUS,
            // FEAT_OPR of header.c: the features that the synthesizing code may write to a pipe.
            pipe: !matches!(bit, 1 | 2 | 15 | 18 | 19 | 20 | 24 | 30),
            swaps: true,
        });
        self.cases.last_mut().expect("just pushed")
    }
}

/// Returns every feature that perf 7.2 knows (bits 1..34), in every revision.
pub fn cases(big: bool) -> Vec<FeatureCase> {
    let mut features = Features {
        big,
        cases: Vec::new(),
    };
    tracing::cases(&mut features);
    feature_system::cases(&mut features);
    feature_topology::cases(&mut features);
    feature_events::cases(&mut features);
    feature_pmu::cases(&mut features);
    feature_bpf::cases(&mut features);
    features.cases
}

/// Returns sections of undefined features. Only their bytes can be preserved.
pub fn unknown_cases(big: bool) -> Vec<FeatureCase> {
    let mut features = Features {
        big,
        cases: Vec::new(),
    };
    for bit in [35, 60, 64, 130, 255] {
        features
            .add(bit, &format!("unknown {bit}"), |b| b.bytes(&island(20)))
            .swaps = false;
    }
    features.cases
}
