//! The code of the traced programs.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::read::Limits;
use perfdata_core::record::{CpuMode, RawRecord, Record};
use perfdata_intel_pt::{CodeSource, Instruction, InstructionKind, MAX_INSTRUCTION};
use perfdata_session::{AddressSpaces, BuildIdTable, Change, DsoId, DsoKind, Dsos, Owner};
use perfdata_symbols::{Elf, ObjectFinder, Reason, Sources};

use super::intel_pt::Filters;
use super::tasks::NONE;
use perfdata_convert::count::number_of;
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

/// Returns what could help if an object cannot be used.
pub(super) type Help = Option<fn(&Reason) -> &'static str>;

/// The code that processes have mapped, up to the current record.
#[derive(Debug)]
pub(super) struct TracedCode {
    finder: ObjectFinder,
    build_ids: BuildIdTable,
    dsos: Dsos,
    spaces: AddressSpaces<MappedCode>,
    /// The files that were opened, or why there is none.
    files: HashMap<DsoId, std::result::Result<Elf, Reason>, RandomState>,
    /// The branches at offsets of files; `None` if there is no instruction.
    known: HashMap<(DsoId, u64), Option<BranchKind>, RandomState>,
    /// Objects whose code could not be read, for which there was an error.
    missing: HashSet<DsoId, RandomState>,
    filters: Filters,
    /// The version of the address space that was asked for last, until a mapping changes.
    last_space: Option<(u32, u64)>,
}

/// The code of a process and of the kernel.
#[derive(Debug)]
pub(super) struct CodeOf<'a> {
    code: &'a mut TracedCode,
    pid: u32,
    /// The version of the process's address space.
    space: u64,
}

/// The space of addresses without code: of the kernel, of guests, and of unknown processes.
const NO_SPACE: u64 = u64::MAX;

impl CodeOf<'_> {
    fn mapping(&self, ip: u64, is_guest: bool) -> Option<(Range<u64>, MappedCode)> {
        let mode = match ip >> 63 {
            _ if is_guest => return None,
            0 if self.pid == NONE => return None,
            0 => CpuMode::USER,
            _ => CpuMode::KERNEL,
        };
        let owner = Owner::of(mode, self.pid)?;
        self.code.spaces.space(owner)?.find(ip)
    }
}

/// Returns whether code is read from an object of this kind: that of kernels is not.
fn has_code(kind: DsoKind) -> bool {
    matches!(kind, DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32)
}

impl CodeSource for CodeOf<'_> {
    #[inline]
    fn space(&mut self, ip: u64, is_guest: bool) -> u64 {
        match is_guest || ip >> 63 == 1 {
            true => NO_SPACE,
            false => self.space,
        }
    }

    fn read(&mut self, ip: u64, is_guest: bool, to: &mut [u8]) -> usize {
        let Some((range, mapped)) = self.mapping(ip, is_guest) else {
            return 0;
        };
        if !has_code(mapped.kind) {
            return 0;
        }
        let most = range.end.saturating_sub(ip).min(to.len() as u64);
        let offset = ip.wrapping_add(mapped.bias);
        let Some(file) = self.code.file(mapped.dso) else {
            return 0;
        };
        // The file can end before its mapping does.
        let mut size = most;
        let bytes = loop {
            match file.bytes_at(offset, size) {
                Ok(bytes) => break bytes,
                Err(_) if size > 1 => size /= 2,
                Err(_) => return 0,
            }
        };
        to.iter_mut().zip(&bytes).for_each(|(to, byte)| *to = *byte);
        bytes.len()
    }

    fn bits(&mut self, ip: u64, is_guest: bool) -> Option<u8> {
        let (_, mapped) = self.mapping(ip, is_guest)?;
        bits_of(self.code.file(mapped.dso)?)
    }

    fn is_known_missing(&mut self, ip: u64, is_guest: bool) -> bool {
        let Some((_, mapped)) = self.mapping(ip, is_guest) else {
            return false;
        };
        if has_code(mapped.kind) && self.code.file(mapped.dso).is_some() {
            return false;
        }
        // perf reports some objects twice.
        !self.code.missing.insert(mapped.dso)
    }

    fn is_filtered_out(&mut self, ip: u64) -> bool {
        if self.code.filters.is_empty() {
            return false;
        }
        if ip >> 63 == 1 {
            return self.code.filters.end_at(ip, None);
        }
        let Some((_, mapped)) = self.mapping(ip, false) else {
            return false;
        };
        let dso = self.code.dsos.list().get(mapped.dso.index());
        let offset = ip.wrapping_add(mapped.bias);
        dso.is_some_and(|dso| self.code.filters.end_at(offset, Some(&dso.name)))
    }
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
            missing: HashSet::default(),
            filters: Filters::default(),
            last_space: None,
        })
    }

    /// Sets the address filters.
    pub(super) fn with_filters(self, filters: Filters) -> Self {
        TracedCode { filters, ..self }
    }

    /// Returns the code of a process.
    pub(super) fn of(&mut self, pid: u32) -> CodeOf<'_> {
        let space = match self.last_space {
            Some((last, space)) if last == pid => space,
            _ => {
                let owner = Owner::of(CpuMode::USER, pid).filter(|_| pid != NONE);
                let space = owner.and_then(|owner| self.spaces.space(owner));
                let version = space.map_or(NO_SPACE, |space| space.version());
                self.last_space = Some((pid, version));
                version
            }
        };
        CodeOf {
            code: self,
            pid,
            space,
        }
    }

    /// Says which files were not found, and why. `help` returns what could help.
    pub(super) fn note(&self, help: Help) -> Option<String> {
        let dsos = self.missing.iter();
        let mut missing: Vec<_> = dsos
            .filter_map(|&id| Some((&*self.dsos.list().get(id.index())?.name, id)))
            .collect();
        missing.sort();
        let others = missing.len().saturating_sub(1) as u64;
        let (first, id) = missing.into_iter().next()?;
        let first = String::from_utf8_lossy(first);
        let why = match self.files.get(&id) {
            Some(Err(reason)) => {
                let help = help.map_or("", |help| help(reason));
                format!(": {reason}{help}")
            }
            _ => String::new(),
        };
        let and = match others {
            0 => String::new(),
            others => format!(" and {}", number_of(others, "other object")),
        };
        Some(format!("the code of {first}{and} was not found{why}"))
    }

    /// Returns the file of an object, if it is found.
    fn file(&mut self, dso: DsoId) -> Option<&Elf> {
        let (finder, build_ids) = (&self.finder, &self.build_ids);
        let known = self.dsos.list().get(dso.index())?;
        let file = self.files.entry(dso).or_insert_with(|| {
            let id = known.mapped_build_id.or_else(|| build_ids.find(known));
            let files = finder.find(known, id, None, b".text");
            files.map(|files| files.object)
        });
        file.as_ref().ok()
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
        self.last_space = None;
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
        let file = self.file(dso)?;
        let bits = bits_of(file)?;
        // Less at the end of the file.
        let sizes = (1..=MAX_INSTRUCTION as u64).rev();
        let code = sizes
            .into_iter()
            .find_map(|size| file.bytes_at(offset, size).ok())?;
        let found = Instruction::first(bits, &code)?;
        Some(BranchKind::of(found.kind))
    }
}

/// Returns whether the code of an object is of 32 or 64 bits; `None` if it is no code of x86.
fn bits_of(file: &Elf) -> Option<u8> {
    match file.machine() {
        EM_X86_64 => Some(64),
        EM_386 => Some(32),
        _ => None,
    }
}
