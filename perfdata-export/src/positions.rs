//! Where code is, as far as its functions depend on it: processes map the same file at different
//! addresses.

use perfdata_core::record::CpuMode;
use perfdata_session::{Dso, DsoId, DsoKind, Frame, Mapping, MappingId};

/// What contains code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Within {
    Mapping(MappingId),
    /// A file. Most processes map their files at addresses of their own.
    File(DsoId),
    /// A mapping of generated code in a process.
    Process(MappingId, Option<u32>),
}

impl Within {
    /// Returns what contains the code of a mapping. `pid` is the process that maps it.
    pub fn of(id: MappingId, mapping: &Mapping, dso: &Dso, pid: Option<u32>) -> Self {
        match dso.kind {
            DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => Within::File(mapping.dso),
            DsoKind::Anonymous => Within::Process(id, pid),
            _ => Within::Mapping(id),
        }
    }
}

/// How addresses in a mapping become positions in what contains their code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base {
    /// The number of what contains the code.
    within: u32,
    /// What is added to an address.
    bias: u64,
}

/// Bits of [`Place::rest`] for the mode and for whether it is a return address.
const REST_BITS: u32 = 4;

/// Maximum number of what contains code.
pub(crate) const MOST_WITHIN: u32 = u32::MAX >> REST_BITS;

impl Base {
    /// Returns the base of a mapping, whose code is `within` that with this number.
    pub fn of(number: u32, within: Within, mapping: &Mapping, dso: &Dso) -> Self {
        Base {
            within: number,
            bias: match within {
                Within::File(_) => mapping.offset(dso.kind, 0),
                Within::Mapping(_) | Within::Process(..) => 0,
            },
        }
    }

    /// Returns the place of a frame.
    #[inline]
    pub fn place(&self, frame: &Frame<'_>) -> Place {
        let mode = u32::from(frame.mode.0 & CpuMode::MASK);
        Place {
            position: frame.address.wrapping_add(self.bias),
            rest: self.within << REST_BITS | mode << 1 | u32::from(frame.is_return),
        }
    }
}

/// Code, as a frame of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The offset in the file, or the address.
    pub position: u64,
    /// The number of what contains it, the mode, and whether it is a return address.
    pub rest: u32,
}

impl Place {
    /// Returns the number of what contains it.
    #[inline]
    pub fn within(&self) -> u32 {
        self.rest >> REST_BITS
    }
}
