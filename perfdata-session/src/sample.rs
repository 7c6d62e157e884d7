//! Samples with what they hit: threads, names, and frames.

use std::slice;

use perfdata_core::attr::{Attr, BranchSampleType, SampleType};
use perfdata_core::error::Error;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{BranchFlags, CallchainContext, CpuMode, SampleView, Tid, Words, deferred_cookie};
use perfdata_core::{Recording, Result};

use crate::dso::{BuildId, Dso, DsoKind};
use crate::ids::{CommId, DsoId, MappingId, ThreadId};
use crate::session::{Mapping, Session, Taken};
use crate::space::Space;
use crate::thread::Thread;

/// A sample with what it means at its time. It borrows everything; asking allocates only where an address was not looked up lately.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    session: &'a Session,
    record: RecordRef<'a>,
    sample_view: SampleView<'a>,
    taken: Taken,
    /// The user callchain that came later, and the kernel's mappings at the time of the sample.
    later: Option<(&'a [u64], &'a Space<Mapping>)>,
}

impl<'a> Sample<'a> {
    /// `None` where the event is unknown, which nobody takes a sample of.
    pub(crate) fn new(session: &'a Session, record: RecordRef<'a>, taken: Taken) -> Option<Self> {
        Some(Sample { session, record, sample_view: record.sample_view()?, taken, later: None })
    }

    /// The same sample with the user callchain that came later.
    pub(crate) fn with_later(self, user: &'a [u64], kernel: &'a Space<Mapping>) -> Self {
        Sample { later: Some((user, kernel)), ..self }
    }

    /// The session, for what the IDs stand for.
    pub fn session(&self) -> &'a Session {
        self.session
    }

    /// The record.
    pub fn record(&self) -> RecordRef<'a> {
        self.record
    }

    /// The model.
    pub fn recording(&self) -> &'a Recording {
        self.record.recording()
    }

    /// Its parts that are read where they stand.
    pub fn sample_view(&self) -> SampleView<'a> {
        self.sample_view
    }

    /// The event: its place in [`Recording::events`].
    pub fn event(&self) -> usize {
        self.taken.event
    }

    /// The event's name: what the recording calls it, else what perf would.
    pub fn event_name(&self) -> &'a [u8] {
        self.session.event_name(self.taken.event)
    }

    /// The event's attribute.
    pub fn attr(&self) -> Option<&'a Attr> {
        self.recording().events.get(self.taken.event).map(|event| &event.attr)
    }

    /// Nanoseconds on the recording's clock; `None` where samples of the event have no time.
    pub fn time(&self) -> Option<u64> {
        self.sample_view.time()
    }

    /// The CPU that it was taken on; `None` where samples of the event do not say it.
    pub fn cpu(&self) -> Option<u32> {
        self.sample_view.cpu()
    }

    /// The process and thread as the sample says it; `None` where samples of the event do not.
    pub fn tid(&self) -> Option<Tid> {
        self.sample_view.tid()
    }

    /// The thread. Where the sample does not say it, that which ran on its CPU.
    pub fn thread_id(&self) -> ThreadId {
        self.taken.thread
    }

    /// The same with all that is known of it now; for a sample whose user callchain came later, that is at a later time.
    pub fn thread(&self) -> Option<&'a Thread> {
        self.session.thread(self.taken.thread)
    }

    /// The name that the thread had.
    pub fn comm_id(&self) -> CommId {
        self.taken.comm
    }

    /// The name that the thread had: any bytes but NUL; a colon and the thread ID where no record says it.
    pub fn comm(&self) -> &'a [u8] {
        self.session.comm(self.taken.comm)
    }

    /// Whether its user callchain was to come later, and has not come.
    pub fn is_incomplete(&self) -> bool {
        self.later.is_none_or(|(user, _)| user.is_empty()) && deferred_cookie(self.sample_view.callchain()).is_some()
    }

    /// What the sample stands for, in what its event counts: its period, or the one that the event was set to, or 1.
    pub fn weight(&self) -> u64 {
        let set = || self.attr().and_then(Attr::period).filter(|&period| period > 0);
        self.sample_view.period().or_else(set).unwrap_or(1)
    }

    /// Where the CPU was.
    pub fn mode(&self) -> CpuMode {
        CpuMode::of(self.record.misc)
    }

    /// The instruction that the sample was taken at, by its instruction pointer; `None` where it has none.
    pub fn leaf(&self) -> Option<Frame<'a>> {
        let address = self.sample_view.ip()?;
        Some(self.frame(address, self.mode(), false))
    }

    /// The frames, from where the sample was taken to its outermost caller: those of its callchain or, where that has
    /// none, its instruction pointer. A callchain begins with the instruction pointer, which comes once.
    ///
    /// With `perf record --call-graph lbr` the user frames are those of the branch stack, as in perf.
    pub fn frames(&self) -> Frames<'a> {
        let mut words = self.sample_view.callchain();
        let later = self.later.map(|(user, _)| user).unwrap_or_default();
        if deferred_cookie(words.clone()).is_some() {
            // The last word is the number of the user callchain, not an address.
            words = words.without_last(2);
        }
        let leaf = self.sample_view.ip().filter(|_| later.is_empty() && !words.clone().any(is_address));
        let mode = match words.len() {
            0 if leaf.is_none() => CpuMode::USER,
            _ => self.mode(),
        };
        let (lbr, lbr_at) = self.lbr(&words);
        Frames {
            sample: *self,
            words,
            mode,
            spaces: None,
            leaf,
            later: later.iter(),
            is_later: false,
            lbr,
            lbr_at,
            is_first: true,
        }
    }

    /// The branches of an LBR callchain, and how many words of the callchain come before them.
    fn lbr(&self, words: &Words<'_>) -> (Lbr, Option<usize>) {
        let is_lbr = |attr: &Attr| attr.branch_sample_type.unwrap_or_default().has(BranchSampleType::CALL_STACK);
        let none = (Lbr::default(), None);
        if !self.attr().is_some_and(is_lbr) {
            return none;
        }
        let user = words.clone().position(|word| word == CallchainContext::USER.0);
        match (user, self.sample_view.branches().map_or(0, |branches| branches.len())) {
            (Some(user), len @ 1..) => (Lbr { next: 0, len: len.saturating_add(1) }, Some(user)),
            _ => none,
        }
    }

    /// The branches that the CPU took last, newest first: those of `perf record -b` and `-j`.
    pub fn branches(&self) -> impl ExactSizeIterator<Item = Branch<'a>> + use<'a> {
        let sample = *self;
        // No mode is recorded with an address: that of the kernel is where the kernel is.
        let mode = |address: u64| if address >> 63 == 1 { CpuMode::KERNEL } else { CpuMode::USER };
        let count = self.sample_view.branches().map_or(0, |branches| branches.len());
        let mut branches = self.sample_view.branches();
        (0..count).map(move |_| {
            let entry = branches.as_mut().and_then(Iterator::next);
            let (from, to, flags) = entry.map_or((0, 0, BranchFlags::default()), |e| (e.from, e.to, e.flags));
            Branch { from: sample.frame(from, mode(from), false), to: sample.frame(to, mode(to), false), flags }
        })
    }

    fn spaces(&self, mode: CpuMode) -> Spaces<'a> {
        match (mode, self.later) {
            (CpuMode::KERNEL, Some((_, kernel))) => (Some(kernel), None),
            _ => self.session.space(self.taken.thread, mode),
        }
    }

    fn frame(&self, address: u64, mode: CpuMode, is_return: bool) -> Frame<'a> {
        self.frame_in(self.spaces(mode), address, mode, is_return)
    }

    #[inline]
    fn frame_in(&self, (space, overlaid): Spaces<'_>, address: u64, mode: CpuMode, is_return: bool) -> Frame<'a> {
        let session = self.session;
        let mapping = space.and_then(|space| session.find(space, address));
        let overlaid = overlaid.filter(|_| mapping.is_none());
        let before_exec = overlaid.and_then(|space| session.find_before_exec(space, address));
        Frame { session: self.session, address, mode, is_return, mapping, before_exec }
    }

    /// Fails where the record ends before the callchain does.
    pub(crate) fn check(&self) -> Result<()> {
        let has_callchain = self.attr().is_some_and(|attr| attr.sample_type.has(SampleType::CALLCHAIN));
        if has_callchain && self.sample_view.callchain_part().is_none() {
            let len = self.record.bytes.len() as u64;
            let error = Error::truncated("SAMPLE record", len.saturating_add(1), len).field("callchain");
            return Err(error.at(self.record.offset));
        }
        Ok(())
    }
}

fn is_address(word: u64) -> bool {
    CallchainContext::of(word).is_none()
}

/// A frame of a callchain: an address and what is mapped there.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    session: &'a Session,
    /// The address. Of a caller it is the return address: the call stands before it.
    pub address: u64,
    /// Where the CPU was: in a kernel, in a process, or in a hypervisor.
    pub mode: CpuMode,
    /// Whether the address is a return address.
    pub is_return: bool,
    /// The mapping; `None` where nothing is mapped, as far as the recording says.
    pub mapping: Option<MappingId>,
    /// The mapping that perf finds where nothing is mapped: that of the program before the last one of the process, whose
    /// mappings perf keeps.
    pub before_exec: Option<MappingId>,
}

impl<'a> Frame<'a> {
    /// The mapping.
    pub fn mapping(&self) -> Option<Mapping> {
        self.session.mapping(self.mapping?)
    }

    /// What is mapped.
    pub fn dso_id(&self) -> Option<DsoId> {
        self.mapping().map(|mapping| mapping.dso)
    }

    /// What is mapped.
    pub fn dso(&self) -> Option<&'a Dso> {
        self.session.dso(self.dso_id()?)
    }

    /// The build ID of what is mapped, where the recording says it.
    pub fn build_id(&self) -> Option<BuildId> {
        self.session.build_id(self.dso_id()?)
    }

    /// What perf takes for mapped: see [`before_exec`](Self::before_exec).
    pub fn dso_before_exec(&self) -> Option<&'a Dso> {
        self.session.dso(self.session.mapping(self.before_exec?)?.dso)
    }

    /// The offset in what is mapped, in bytes. What it counts from depends on the kind of the DSO:
    ///
    /// - files, vDSO and memory: from the beginning of the file. The program headers of an ELF file turn it into the
    ///   address that its symbols have; for a file of type `ET_EXEC` that is [`address`](Self::address) itself;
    /// - kernels: from the relocation symbol ([`Session::relocation_symbol`]): add what the symbol has as its address
    ///   in `vmlinux`; `address` is what `/proc/kallsyms` of that boot had. Where the recording does not say the
    ///   symbol's address, this is `address`;
    /// - modules and kernel symbols: from the first address that is mapped, of modules that of their text.
    pub fn offset(&self) -> Option<u64> {
        let (mapping, dso) = (self.mapping()?, self.dso()?);
        Some(match dso.kind {
            DsoKind::Kernel => self.address.wrapping_sub(mapping.pgoff),
            DsoKind::Module | DsoKind::KernelSymbol => self.address.wrapping_sub(mapping.start),
            _ => self.address.wrapping_sub(mapping.start).wrapping_add(mapping.pgoff),
        })
    }
}

/// A branch that the CPU took.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Branch<'a> {
    /// The branch.
    pub from: Frame<'a>,
    /// Its target.
    pub to: Frame<'a>,
    /// What else is known.
    pub flags: BranchFlags,
}

/// Frames of an LBR callchain that are still to come.
#[derive(Debug, Clone, Copy, Default)]
struct Lbr {
    next: usize,
    len: usize,
}

/// What is mapped at the time of a sample where the CPU was, and what perf keeps of the program before.
type Spaces<'a> = (Option<&'a Space<Mapping>>, Option<&'a Space<Mapping>>);

/// The frames of a sample: see [`Sample::frames`].
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    sample: Sample<'a>,
    words: Words<'a>,
    mode: CpuMode,
    /// What is mapped for the mode, found with the first frame of it.
    spaces: Option<Spaces<'a>>,
    /// An instruction pointer that stands for a callchain.
    leaf: Option<u64>,
    later: slice::Iter<'a, u64>,
    is_later: bool,
    lbr: Lbr,
    /// Words before the frames of an LBR callchain, which stand in place of the others.
    lbr_at: Option<usize>,
    is_first: bool,
}

impl<'a> Frames<'a> {
    fn enter(&mut self, mode: CpuMode) {
        if self.mode != mode {
            (self.mode, self.spaces) = (mode, None);
        }
    }

    #[inline]
    fn frame(&mut self, address: u64) -> Frame<'a> {
        let spaces = match self.spaces {
            Some(spaces) => spaces,
            None => *self.spaces.insert(self.sample.spaces(self.mode)),
        };
        let is_return = !std::mem::replace(&mut self.is_first, false);
        self.sample.frame_in(spaces, address, self.mode, is_return)
    }

    /// The next address of an LBR callchain: where the last branch went, then where each came from.
    fn lbr_address(&mut self) -> Option<u64> {
        let number = self.lbr.next;
        if number >= self.lbr.len {
            return None;
        }
        self.lbr.next = number.saturating_add(1);
        let mut branches = self.sample.sample_view.branches()?;
        match number.checked_sub(1) {
            None => branches.next().map(|branch| branch.to),
            Some(number) => branches.nth(number).map(|branch| branch.from),
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'a>> {
        loop {
            match self.lbr_at {
                Some(0) => {
                    self.enter(CpuMode::USER);
                    let address = self.lbr_address()?;
                    return Some(self.frame(address));
                }
                Some(left) => self.lbr_at = Some(left.saturating_sub(1)),
                None => {}
            }
            let Some(word) = self.words.next() else { break };
            match CallchainContext::of(word) {
                None => return Some(self.frame(word)),
                Some(marker) => self.enter(mode_of(marker)),
            }
        }
        if let Some(address) = self.leaf.take() {
            self.enter(self.sample.mode());
            return Some(self.frame(address));
        }
        if self.later.len() > 0 && !std::mem::replace(&mut self.is_later, true) {
            self.enter(CpuMode::USER);
        }
        loop {
            let &word = self.later.next()?;
            match CallchainContext::of(word) {
                None => return Some(self.frame(word)),
                // The kernel writes none; the format allows them.
                Some(marker) => self.enter(mode_of(marker)),
            }
        }
    }
}

/// The mode that a marker in a callchain announces; `UNKNOWN` where what follows is none of code.
pub fn mode_of(marker: CallchainContext) -> CpuMode {
    match marker {
        CallchainContext::HV => CpuMode::HYPERVISOR,
        CallchainContext::KERNEL => CpuMode::KERNEL,
        CallchainContext::USER => CpuMode::USER,
        CallchainContext::GUEST_KERNEL => CpuMode::GUEST_KERNEL,
        CallchainContext::GUEST_USER | CallchainContext::GUEST => CpuMode::GUEST_USER,
        _ => CpuMode::UNKNOWN,
    }
}
