//! Options with a fixed set of values.

use clap::ValueEnum;
use perfdata_convert::stages::swap::{Target, Unknown};
use perfdata_convert::verify::Severity;
use perfdata_core::Endian;
use perfdata_core::header::ContainerKind;
use perfdata_inject::build_ids::Select;

/// A container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Container {
    /// A seekable file, as perf record writes
    File,
    /// A stream, as perf record -o - writes
    Pipe,
    /// A directory, as perf record --threads and --kcore write
    #[value(alias = "directory")]
    Dir,
}

impl Container {
    /// Returns the container of a single output; `None` for a directory, which has several files.
    pub fn kind(self) -> Option<ContainerKind> {
        match self {
            Container::File => Some(ContainerKind::File),
            Container::Pipe => Some(ContainerKind::Pipe),
            Container::Dir => None,
        }
    }
}

/// A byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ByteOrder {
    /// Least significant byte first (x86, ARM, RISC-V, POWER with ppc64le)
    #[value(aliases = ["le", "little-endian"])]
    Little,
    /// Most significant byte first (s390x, SPARC, big-endian MIPS and POWER)
    #[value(aliases = ["be", "big-endian"])]
    Big,
    /// The byte order of this machine
    Native,
}

impl From<ByteOrder> for Target {
    fn from(order: ByteOrder) -> Self {
        Target::Order(match order {
            ByteOrder::Little => Endian::Little,
            ByteOrder::Big => Endian::Big,
            ByteOrder::Native => Endian::NATIVE,
        })
    }
}

/// How to handle unknown content: the words of [`Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UnknownContent {
    /// Keep the bytes unchanged, with a converted header
    Keep,
    /// Remove it
    Drop,
    /// Refuse the conversion
    Error,
}

impl From<UnknownContent> for Unknown {
    fn from(content: UnknownContent) -> Self {
        match content {
            UnknownContent::Keep => Unknown::Keep,
            UnknownContent::Drop => Unknown::Drop,
            UnknownContent::Error => Unknown::Error,
        }
    }
}

/// Which findings of `verify` are a failure: the words of [`Severity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Errors
    Error,
    /// Errors and warnings
    Warning,
    /// All findings
    Note,
}

impl From<FailOn> for Severity {
    fn from(least: FailOn) -> Self {
        match least {
            FailOn::Error => Severity::Error,
            FailOn::Warning => Severity::Warning,
            FailOn::Note => Severity::Note,
        }
    }
}

/// Which objects get a build ID: the words of [`Select`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Objects {
    /// Objects that a sample hits with its instruction pointer or its callchain
    Hit,
    /// All objects with an executable mapping
    All,
}

impl From<Objects> for Select {
    fn from(objects: Objects) -> Self {
        match objects {
            Objects::Hit => Select::Hit,
            Objects::All => Select::All,
        }
    }
}
