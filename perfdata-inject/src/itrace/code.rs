//! The code of the traced programs.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::read::Limits;
use perfdata_core::record::{CpuMode, RawRecord, Record};
use perfdata_intel_pt::{Instruction, InstructionKind, MAX_INSTRUCTION};
use perfdata_session::{AddressSpaces, BuildIdTable, Change, DsoId, DsoKind, Dsos, Owner};
use perfdata_symbols::{Elf, ObjectFinder, Sources};

use perfdata_convert::error::Result;

/// Machines of elf.h.
const EM_386: u16 = 3;
const EM_X86_64: u16 = 62;

/// Maximum number of instructions that are kept.
const MOST_KEPT: usize = 1 << 20;

/// What a branch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BranchKind {
    /// Tracing begins.
    Begin,
    /// Tracing ends.
    End,
    Call,
    SystemCall,
    Return,
    /// An interrupt or exception.
    Asynchronous,
    /// The code is not known.
    Unknown,
    Other,
}

impl BranchKind {
    /// Returns whether `c` selects it.
    pub(super) fn is_call(self) -> bool {
        matches!(
            self,
            BranchKind::Call | BranchKind::SystemCall | BranchKind::Asynchronous | BranchKind::End
        )
    }

    /// Returns whether `r` selects it.
    pub(super) fn is_return(self) -> bool {
        matches!(self, BranchKind::Return | BranchKind::Begin)
    }

    fn of(kind: InstructionKind) -> Self {
        match kind {
            InstructionKind::Call | InstructionKind::IndirectCall | InstructionKind::Interrupt => {
                BranchKind::Call
            }
            InstructionKind::SystemCall => BranchKind::SystemCall,
            InstructionKind::Return
            | InstructionKind::InterruptReturn
            | InstructionKind::SystemReturn => BranchKind::Return,
            _ => BranchKind::Other,
        }
    }
}

/// A mapping of a file.
#[derive(Debug, Clone, Copy)]
struct MappedCode {
    dso: DsoId,
    kind: DsoKind,
    /// What is added to an address for its offset in the file.
    bias: u64,
}

/// The code that processes have mapped, up to the current record.
#[derive(Debug)]
pub(super) struct TracedCode {
    finder: ObjectFinder,
    build_ids: BuildIdTable,
    dsos: Dsos,
    spaces: AddressSpaces<MappedCode>,
    /// The files that were opened; `None` if there is none.
    files: HashMap<DsoId, Option<Elf>, RandomState>,
    /// The branches at offsets of files; `None` if there is no instruction.
    known: HashMap<(DsoId, u64), Option<BranchKind>, RandomState>,
}

impl TracedCode {
    pub(super) fn new(sources: Sources, recording: &Recording) -> Result<Self> {
        Ok(TracedCode {
            finder: ObjectFinder::new(sources, recording),
            build_ids: BuildIdTable::of(recording)?,
            dsos: Dsos::default(),
            spaces: AddressSpaces::default(),
            files: HashMap::default(),
            known: HashMap::default(),
        })
    }

    /// Processes what a record says about mappings.
    pub(super) fn see(
        &mut self,
        raw: &RawRecord<'_>,
        recording: &Recording,
        limits: Limits,
    ) -> Result<()> {
        if !Change::affects_processes(raw.kind) {
            return Ok(());
        }
        let record = Record::decode(raw, &recording.events.layout_of(raw))?;
        let Some(change) = Change::of(&record) else {
            return Ok(());
        };
        let dsos = &mut self.dsos;
        self.spaces.apply(change.with(|mapped| MappedCode {
            dso: dsos.intern(&mapped.dso),
            kind: mapped.dso.kind,
            bias: mapped.pgoff.wrapping_sub(mapped.start),
        }));
        let held = self.spaces.held().saturating_add(self.dsos.held());
        Ok(limits.check_metadata("mappings", held as u64)?)
    }

    /// Returns what the instruction at an address of a process is; `None` if its code is not known.
    pub(super) fn branch(&mut self, pid: u32, address: u64) -> Option<BranchKind> {
        let owner = Owner::of(CpuMode::USER, pid)?;
        let (_, code) = self.spaces.space(owner)?.find(address)?;
        if code.kind != DsoKind::File {
            return None;
        }
        let offset = address.wrapping_add(code.bias);
        if let Some(known) = self.known.get(&(code.dso, offset)) {
            return *known;
        }
        let found = self.read(code.dso, offset);
        if self.known.len() >= MOST_KEPT {
            self.known.clear();
        }
        self.known.insert((code.dso, offset), found);
        found
    }

    fn read(&mut self, dso: DsoId, offset: u64) -> Option<BranchKind> {
        let (finder, build_ids) = (&self.finder, &self.build_ids);
        let known = self.dsos.list().get(dso.index())?;
        let file = self.files.entry(dso).or_insert_with(|| {
            let id = known.mapped_build_id.or_else(|| build_ids.find(known));
            let files = finder.find(known, id, None, b".text");
            files.ok().map(|files| files.object)
        });
        let file = file.as_ref()?;
        let bits = match file.machine() {
            EM_X86_64 => 64,
            EM_386 => 32,
            _ => return None,
        };
        // Less at the end of the file.
        let sizes = (1..=MAX_INSTRUCTION as u64).rev();
        let code = sizes
            .into_iter()
            .find_map(|size| file.bytes_at(offset, size).ok())?;
        let found = Instruction::first(bits, &code)?;
        Some(BranchKind::of(found.kind))
    }
}
