//! Feature sections: descriptions of the machine, the events and the recording, each identified by
//! a number.
//!
//! In a file they follow the data section, in the order of the feature table. In a pipe, a
//! HEADER_FEATURE record contains each section that perf can send this way. All features are lines
//! of one table, `features!` in `table.rs`. perf writes and reads them in tools/perf/util/header.c,
//! with a pair of functions `write_*` and `process_*` for each feature.

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

use crate::content::{Content, Rewrite, Rewriter};
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::error::Result;
use crate::values::Values;
use crate::version::Version;

/// One feature section with all its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// The feature, which determines the variant of `value`.
    pub id: FeatureId,
    /// The fields.
    pub value: Feature,
    /// Bytes after the last known field: padding of the pipe record that contained the section, or
    /// fields of a newer form.
    pub tail: Vec<u8>,
}

impl Section {
    /// Decodes `bytes`, the whole section of feature `id`. CPU_TOPOLOGY needs `nr_cpus_available`
    /// of `layout`, which the NRCPUS section contains.
    ///
    /// # Errors
    /// Fails if the section is too short for its fields or a count exceeds its end. Offsets are
    /// relative to `bytes`.
    pub fn decode(
        id: FeatureId,
        bytes: &[u8],
        endian: Endian,
        layout: &DecodeContext,
    ) -> Result<Self> {
        let layout = DecodeContext {
            len: bytes.len() as u64,
            ..*layout
        };
        let (value, used) = Feature::decode(id, bytes, endian, layout)?;
        Ok(Section {
            id,
            value,
            tail: bytes.get(used..).unwrap_or_default().to_vec(),
        })
    }

    /// Makes the section of feature `id` from the values of its fields; nothing for a feature that
    /// is not known. CPU_TOPOLOGY needs `nr_cpus_available` of `layout`. If the values do not make
    /// one whole section, `values` is told of it, or has noticed.
    pub fn from_values(
        id: FeatureId,
        values: &mut dyn Values,
        layout: &DecodeContext,
    ) -> Option<Self> {
        let value = Feature::from_values(id, values, *layout)?;
        let section = Section {
            id,
            value,
            tail: Vec::new(),
        };
        // What a reader gets from these bytes.
        let endian = Endian::Little;
        match section
            .encode(endian)
            .and_then(|bytes| Section::decode(id, &bytes, endian, layout))
        {
            Ok(read) if read == section => {}
            Ok(_) => values.refuse("it does not describe the whole section".into()),
            Err(error) => values.refuse(error.to_string()),
        }
        Some(section)
    }

    /// Appends the section's bytes to `out`.
    ///
    /// # Errors
    /// Fails if a list is too long for its count or a string is too long for its field.
    pub fn encode_into(&self, out: &mut Vec<u8>, endian: Endian) -> Result<()> {
        self.value
            .encode_into(out, endian)
            .map_err(|e| self.id.blame(e))?;
        out.extend_from_slice(&self.tail);
        Ok(())
    }

    /// Returns the section's bytes.
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
        self.value
            .describe(self.id.name().unwrap_or("bytes"), Style::Plain, v);
        if !self.tail.is_empty() {
            v.leaf("tail", self.tail.len(), Leaf::Opaque(&self.tail));
        }
        v.end();
    }
}

impl Rewrite for Section {
    const NEEDS_CONTENT: bool = false;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        rewriter.begin(name);
        self.value
            .rewrite(self.id.name().unwrap_or("bytes"), content, rewriter);
        if !self.tail.is_empty() {
            rewriter.bytes("tail", &mut self.tail, Content::Unknown);
        }
        rewriter.end();
    }
}

impl FeatureId {
    /// The first number without a name. perf ends the features in a pipe with an empty
    /// HEADER_FEATURE record whose `feat_id` is the first number unknown to that version of perf.
    pub const END: FeatureId = FeatureId(match TABLE.last() {
        Some(info) => info.id.0 + 1,
        None => 1,
    });

    /// Returns the number that ends the features in a pipe of perf `version`: the first that this
    /// version does not know.
    pub fn end_in(version: Version) -> Self {
        TABLE
            .iter()
            .find(|info| !version.has(info.since))
            .map_or(Self::END, |info| info.id)
    }

    /// Returns the feature's line of the table.
    pub fn info(self) -> Option<&'static FeatureInfo> {
        TABLE
            .binary_search_by_key(&self, |info| info.id)
            .ok()
            .and_then(|at| TABLE.get(at))
    }

    /// Returns the feature called `name`, regardless of case.
    pub fn by_name(name: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|info| info.name.eq_ignore_ascii_case(name))
            .map(|info| info.id)
    }

    /// Returns the length in bytes of this feature's section at the start of `bytes`, if the
    /// section's own counts determine it and only the zeros follow that pad a pipe record to a
    /// multiple of 8 bytes.
    pub fn exact_len(self, bytes: &[u8], endian: Endian, layout: &DecodeContext) -> Option<usize> {
        if self == Self::BUILD_ID {
            return None;
        }
        let Section { value, tail, .. } = Section::decode(self, bytes, endian, layout).ok()?;
        let padding = tail.len() < 8 && tail.iter().all(|&b| b == 0);
        (padding && !matches!(value, Feature::Unknown(_)))
            .then(|| bytes.len().saturating_sub(tail.len()))
    }
}
