//! Feature sections: what a recording says of the machine, the events and itself, each section under a number.
//!
//! In a file they stand behind the data section, one after the other in the order of the feature table; in a pipe each
//! that perf can send so is the payload of a HEADER_FEATURE record. All are lines of one table, `features!` in
//! `table.rs`. perf writes and reads them in tools/perf/util/header.c, by a pair `write_*` and `process_*` for each.

mod bpf;
mod build_id;
mod clock;
mod compressed;
mod events;
mod pmu;
mod system;
mod table;
mod topology;
pub mod tracing;

pub use bpf::*;
pub use build_id::*;
pub use clock::*;
pub use compressed::*;
pub use events::*;
pub use pmu::*;
pub use system::*;
pub use table::{Feature, FeatureId, FeatureInfo, TABLE};
pub use topology::*;
pub use tracing::TracingData;

use binrw::Endian;

use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::error::Result;
use crate::layout::Layout;
use crate::version::Version;

/// One feature section with all its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Which feature, and so which variant of `value`.
    pub id: FeatureId,
    /// The fields.
    pub value: Feature,
    /// Bytes behind the last known field: padding of the pipe record that held the section, or a newer form of it.
    pub tail: Vec<u8>,
}

impl Section {
    /// Decodes `bytes`, the whole section of feature `id`. CPU_TOPOLOGY needs `nr_cpus_available` of `layout`, which
    /// stands in NRCPUS.
    ///
    /// # Errors
    /// A section too short for its fields, or counts beyond its end; offsets are relative to `bytes`.
    pub fn decode(id: FeatureId, bytes: &[u8], endian: Endian, layout: &Layout) -> Result<Self> {
        let layout = Layout { len: bytes.len() as u64, ..*layout };
        let (value, used) = Feature::decode(id, bytes, endian, layout)?;
        Ok(Section { id, value, tail: bytes.get(used..).unwrap_or_default().to_vec() })
    }

    /// Appends the section's bytes to `out`.
    ///
    /// # Errors
    /// A list too long for its count, a string too long for its room.
    pub fn encode_into(&self, out: &mut Vec<u8>, endian: Endian) -> Result<()> {
        self.value.encode_into(out, endian).map_err(|e| self.id.blame(e))?;
        out.extend_from_slice(&self.tail);
        Ok(())
    }

    /// The section's bytes.
    ///
    /// # Errors
    /// As [`encode_into`](Self::encode_into).
    pub fn encode(&self, endian: Endian) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.encode_into(&mut out, endian)?;
        Ok(out)
    }
}

impl Describe for Section {
    fn describe(&self, name: &'static str, _: Style, v: &mut dyn Visitor) {
        v.begin(name);
        self.value.describe(self.id.name().unwrap_or("bytes"), Style::Plain, v);
        if !self.tail.is_empty() {
            v.leaf("tail", self.tail.len(), Leaf::Opaque(&self.tail));
        }
        v.end();
    }
}

impl FeatureId {
    /// The first number without a name. perf ends the features in a pipe with an empty HEADER_FEATURE record that
    /// bears this number, as the perf that wrote it knew it.
    pub const END: FeatureId = FeatureId(match TABLE.last() {
        Some(info) => info.id.0 + 1,
        None => 1,
    });

    /// The number that ends the features in a pipe of perf `version`: the first that it does not know.
    pub fn end_in(version: Version) -> Self {
        TABLE.iter().find(|info| !version.has(info.since)).map_or(Self::END, |info| info.id)
    }

    /// The line of the table.
    pub fn info(self) -> Option<&'static FeatureInfo> {
        TABLE.binary_search_by_key(&self, |info| info.id).ok().and_then(|at| TABLE.get(at))
    }

    /// The feature called `name`, in capitals or not.
    pub fn by_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|info| info.name.eq_ignore_ascii_case(name)).map(|info| info.id)
    }

    /// Length in bytes of the section of this feature at the start of `bytes`, where the section's own counts tell it
    /// and nothing is behind it but the zeros that fill a pipe record up to a multiple of 8.
    pub fn exact_len(self, bytes: &[u8], endian: Endian, layout: &Layout) -> Option<usize> {
        if self == Self::BUILD_ID {
            return None;
        }
        let Section { value, tail, .. } = Section::decode(self, bytes, endian, layout).ok()?;
        let padding = tail.len() < 8 && tail.iter().all(|&b| b == 0);
        (padding && !matches!(value, Feature::Unknown(_))).then(|| bytes.len().saturating_sub(tail.len()))
    }
}
