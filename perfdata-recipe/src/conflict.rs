//! Steps that exclude each other.

use std::fmt;

use perfdata_convert::error::Error;
use perfdata_core::version::Version;

/// A part of a [`Recipe`](crate::Recipe).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// [`select`](crate::Recipe::select).
    Select,
    /// The division of a recording: [`Recipe::split`](crate::Recipe::split).
    Split,
    /// [`dumps`](crate::GeneratedCode::dumps) of JIT compilers.
    Jit,
    /// [`perf_maps`](crate::GeneratedCode::perf_maps).
    PerfMaps,
    /// [`UserStacks::Unwind`](crate::UserStacks::Unwind).
    ConvertCallchain,
    /// [`sanitize`](crate::Recipe::sanitize).
    Sanitize,
    /// [`Unknown::Keep`](perfdata_convert::stages::swap::Unknown::Keep).
    UnknownKeep,
    /// A new value in [`changes`](crate::Recipe::changes).
    Set,
    /// New bytes in [`changes`](crate::Recipe::changes).
    SetRaw,
    /// [`features_from`](crate::Recipe::features_from).
    FeaturesFrom,
    /// [`compress`](crate::Recipe::compress).
    Compress,
    /// [`traces`](crate::Recipe::traces).
    Itrace,
    /// [`huge_pages`](crate::Recipe::huge_pages).
    HugePages,
    /// [`off_cpu`](crate::Recipe::off_cpu).
    OffCpu,
    /// [`build_ids`](crate::Recipe::build_ids) of what samples hit.
    BuildIds,
}

impl Part {
    /// Returns the name of the part.
    pub fn name(self) -> &'static str {
        match self {
            Part::Select => "select",
            Part::Split => "split",
            Part::Jit => "code.dumps",
            Part::PerfMaps => "code.perf_maps",
            Part::ConvertCallchain => "unwinding",
            Part::Sanitize => "sanitize",
            Part::UnknownKeep => "keeping unknown content",
            Part::Set | Part::SetRaw => "changes",
            Part::FeaturesFrom => "features_from",
            Part::Compress => "compress",
            Part::Itrace => "traces",
            Part::HugePages => "huge_pages",
            Part::OffCpu => "off_cpu",
            Part::BuildIds => "build_ids",
        }
    }
}

/// Why the parts of a recipe cannot be combined.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// The result of a part would contradict another one.
    Excluded {
        /// The part that is not possible.
        part: Part,
        /// The part that excludes it.
        by: Part,
        /// What to do instead.
        why: &'static str,
    },
    /// Parts that belong to a whole recording, and not to the parts that [`Part::Split`] makes.
    WholeOnly {
        /// One or several of them, of which at least one is given.
        parts: &'static [Part],
        /// What to do instead.
        why: &'static str,
    },
    /// The release of perf for which the recording is converted cannot read compressed records.
    NotCompressed(Version),
}

impl Conflict {
    /// Returns the description, with the names that `name` gives to parts.
    pub fn with_names(&self, name: impl Fn(Part) -> &'static str) -> String {
        match self {
            Conflict::Excluded { part, by, why } => format!(
                "{} cannot be combined with {}: {why}",
                name(*part),
                name(*by)
            ),
            Conflict::WholeOnly { parts, why } => {
                let names: Vec<&str> = parts.iter().map(|part| name(*part)).collect();
                let verb = if names.len() == 1 { "does" } else { "do" };
                format!(
                    "{} {verb} not apply to the parts of a recording: {why}",
                    names.join(" and ")
                )
            }
            Conflict::NotCompressed(version) => format!(
                "perf {version} cannot read compressed records: omit {}",
                name(Part::Compress)
            ),
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_names(Part::name))
    }
}

impl std::error::Error for Conflict {}

impl From<Conflict> for Error {
    fn from(conflict: Conflict) -> Self {
        Error::Usage(conflict.to_string())
    }
}
