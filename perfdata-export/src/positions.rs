//! Where code is, as far as its functions depend on it: processes map the same file at different
//! addresses.

use std::hash::{Hash, Hasher};

use perfdata_core::record::CpuMode;
use perfdata_session::{Dso, DsoId, DsoKind, Frame, Mapping, MappingId};

/// What contains code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    Mapping(MappingId),
    /// A file. Most processes map their files at addresses of their own.
    File(DsoId),
}

impl Within {
    fn number(self) -> u64 {
        match self {
            Within::Mapping(id) => (id.index() as u64) << 1,
            Within::File(id) => (id.index() as u64) << 1 | 1,
        }
    }
}

/// How addresses in a mapping become positions in what contains their code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base {
    within: Within,
    /// What is added to an address.
    bias: u64,
    /// Whether the code is that of a process: generated code.
    pub is_generated: bool,
}

impl Base {
    pub fn of(id: MappingId, mapping: &Mapping, dso: &Dso) -> Self {
        match dso.kind {
            DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => Base {
                within: Within::File(mapping.dso),
                bias: mapping.offset(dso.kind, 0),
                is_generated: false,
            },
            kind => Base {
                within: Within::Mapping(id),
                bias: 0,
                is_generated: kind == DsoKind::Anonymous,
            },
        }
    }

    /// Returns the place of a frame, as if its code were of no process.
    #[inline]
    pub fn place(&self, frame: &Frame<'_>) -> Place {
        Place {
            within: self.within,
            position: frame.address.wrapping_add(self.bias),
            mode: frame.mode,
            is_return: frame.is_return,
            pid: None,
        }
    }
}

/// Code, as a frame of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    within: Within,
    /// The offset in the file, or the address.
    position: u64,
    mode: CpuMode,
    is_return: bool,
    /// The process, for generated code.
    pub pid: Option<u32>,
}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Two numbers are hashed faster than each part.
        let rest = u64::from(self.mode.0) << 1 | u64::from(self.is_return);
        state.write_u64(self.position);
        state.write_u64(self.within.number() << 20 ^ rest);
        if let Some(pid) = self.pid {
            state.write_u32(pid);
        }
    }
}

impl Place {
    /// Returns its index among the recent places.
    #[inline]
    pub fn recent(&self) -> usize {
        // Multiplication by the golden ratio distributes neighbouring positions.
        let within = self.within.number().rotate_left(32);
        let hash = (self.position ^ within).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from(hash).unwrap_or_default() & (RECENT - 1)
    }
}

/// Number of recent places, a power of two.
pub(crate) const RECENT: usize = 1 << 13;
