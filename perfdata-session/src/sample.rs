//! Resolved samples: threads, names, and frames.

use std::slice;

use perfdata_core::attr::{Attr, BranchSampleType, SampleType};
use perfdata_core::error::Error;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{
    BranchFlags, CallchainContext, CpuMode, SampleView, Tid, Words, deferred_cookie,
};
use perfdata_core::{Recording, Result};

use crate::dso::{BuildId, Dso, DsoKind};
use crate::ids::{CommId, DsoId, MappingId, ThreadId};
use crate::mapping::Mapping;
use crate::session::{Session, Taken};
use crate::space::Space;
use crate::thread::Thread;

/// A sample, resolved at its time. It borrows all data. Its methods allocate only for an address
/// that was not looked up recently.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    session: &'a Session,
    record: RecordRef<'a>,
    sample_view: SampleView<'a>,
    taken: Taken,
    /// The deferred user callchain, and the kernel's mappings at the time of the sample.
    later: Option<(&'a [u64], &'a Space<Mapping>)>,
}

impl<'a> Sample<'a> {
    /// Returns `None` if the event is unknown: then the sample cannot be parsed.
    #[inline]
    pub(crate) fn new(session: &'a Session, record: RecordRef<'a>, taken: Taken) -> Option<Self> {
        Some(Sample {
            session,
            record,
            sample_view: record.sample_view()?,
            taken,
            later: None,
        })
    }

    /// Returns the same sample with its deferred user callchain.
    pub(crate) fn with_later(self, user: &'a [u64], kernel: &'a Space<Mapping>) -> Self {
        Sample {
            later: Some((user, kernel)),
            ..self
        }
    }

    /// Returns the session, which resolves the IDs.
    pub fn session(&self) -> &'a Session {
        self.session
    }

    /// Returns the record.
    pub fn record(&self) -> RecordRef<'a> {
        self.record
    }

    /// Returns the model.
    pub fn recording(&self) -> &'a Recording {
        self.record.recording()
    }

    /// Returns a view of the sample's fields, which are read without copying.
    pub fn sample_view(&self) -> SampleView<'a> {
        self.sample_view
    }

    /// Returns the event: its index in [`Recording::events`].
    pub fn event(&self) -> usize {
        self.taken.event
    }

    /// Returns the event's name: the name in the recording, otherwise the name that perf would use.
    pub fn event_name(&self) -> &'a [u8] {
        self.session.event_name(self.taken.event)
    }

    /// Returns the event's attribute.
    pub fn attr(&self) -> Option<&'a Attr> {
        self.recording()
            .events
            .get(self.taken.event)
            .map(|event| &event.attr)
    }

    /// Returns the time in nanoseconds on the recording's clock; `None` if samples of the event
    /// have no time.
    pub fn time(&self) -> Option<u64> {
        self.sample_view.time()
    }

    /// Returns the CPU of the sample; `None` if samples of the event do not contain it.
    pub fn cpu(&self) -> Option<u32> {
        self.sample_view.cpu()
    }

    /// Returns the process and thread ID in the sample; `None` if samples of the event do not
    /// contain them.
    pub fn tid(&self) -> Option<Tid> {
        self.sample_view.tid()
    }

    /// Returns the thread. If the sample does not contain it, this is the thread that ran on the
    /// sample's CPU.
    pub fn thread_id(&self) -> ThreadId {
        self.taken.thread
    }

    /// Returns the thread as it is known now. For a sample with a deferred user callchain, this is
    /// later than the sample.
    pub fn thread(&self) -> Option<&'a Thread> {
        self.session.thread(self.taken.thread)
    }

    /// Returns the ID of the name that the thread had.
    pub fn comm_id(&self) -> CommId {
        self.taken.comm
    }

    /// Returns the name that the thread had: any bytes except NUL; a colon and the thread ID if no
    /// record contains a name.
    pub fn comm(&self) -> &'a [u8] {
        self.session.comm(self.taken.comm)
    }

    /// Returns whether the deferred user callchain is missing.
    pub fn is_incomplete(&self) -> bool {
        self.later.is_none_or(|(user, _)| user.is_empty())
            && deferred_cookie(self.sample_view.callchain()).is_some()
    }

    /// Returns the weight of the sample in units of its event: its period, otherwise the period set
    /// for the event, otherwise 1.
    pub fn weight(&self) -> u64 {
        let set = || {
            self.attr()
                .and_then(Attr::period)
                .filter(|&period| period > 0)
        };
        self.sample_view.period().or_else(set).unwrap_or(1)
    }

    /// Returns the CPU mode.
    pub fn mode(&self) -> CpuMode {
        CpuMode::of(self.record.misc)
    }

    /// Returns the frame of the instruction pointer; `None` if the sample has no instruction
    /// pointer.
    pub fn leaf(&self) -> Option<Frame<'a>> {
        let address = self.sample_view.ip()?;
        Some(self.frame(address, self.mode(), false))
    }

    /// Returns the data address as a frame; `None` if the sample contains no data address.
    pub fn data_address(&self) -> Option<Frame<'a>> {
        let address = self.sample_view.addr()?;
        let frame = self.address(address, self.mode());
        if frame.mapping.is_some() {
            return Some(frame);
        }
        Some(self.address(address, mode_of_address(address)))
    }

    /// Returns an address as a frame, in the mappings for a CPU mode at the time of the sample.
    pub fn address(&self, address: u64, mode: CpuMode) -> Frame<'a> {
        self.frame(address, mode, false)
    }

    /// Returns a frame of the kernel without a mapping as one in the mapping of its image, if the
    /// address is behind that; otherwise `None`. Records map the kernel up to its last code
    /// (`_etext`); the code for booting, which the idle tasks return to, is behind that.
    pub fn behind_kernel(&self, frame: &Frame<'a>) -> Option<Frame<'a>> {
        if frame.mapping.is_some() || frame.mode != CpuMode::KERNEL {
            return None;
        }
        let session = self.session;
        let space = self.spaces(frame.mode).0?;
        let is_kernel = |mapping: &Mapping| {
            let dso = session.dso(mapping.dso);
            dso.is_some_and(|dso| dso.kind == DsoKind::Kernel)
        };
        let (range, _) = space.iter().find(|(_, mapping)| is_kernel(mapping))?;
        (frame.address >= range.start).then(|| Frame {
            mapping: session.find(space, range.start),
            ..*frame
        })
    }

    /// Returns the frames, from the sampled function to its outermost caller. These are the frames
    /// of the callchain, or the instruction pointer if there is no callchain. A callchain starts
    /// with the instruction pointer, which is returned once.
    ///
    /// With `perf record --call-graph lbr` the user frames are those of the branch stack, as in
    /// perf.
    pub fn frames(&self) -> Frames<'a> {
        let mut words = self.sample_view.callchain();
        let later = self.later.map(|(user, _)| user).unwrap_or_default();
        if deferred_cookie(words.clone()).is_some() {
            // The last word is the cookie of the user callchain, not an address.
            words = words.without_last(2);
        }
        let leaf = self
            .sample_view
            .ip()
            .filter(|_| later.is_empty() && !words.clone().any(is_address));
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

    /// Returns what the frames depend on; `None` if they depend on more than the callchain and the
    /// mappings of the thread: those of guests, of deferred user callchains, and of
    /// `perf record --call-graph lbr`.
    pub fn frames_key(&self) -> Option<FramesKey<'a>> {
        let words = self.sample_view.callchain();
        if self.later.is_some() || self.is_lbr() || deferred_cookie(words.clone()).is_some() {
            return None;
        }
        let mode = self.mode();
        let (mut has_addresses, mut has_guest) = (false, is_guest(mode));
        for word in words.clone() {
            match CallchainContext::of(word) {
                None => has_addresses = true,
                Some(marker) => has_guest |= is_guest(mode_of(marker)),
            }
        }
        let version = |space: Option<&Space<Mapping>>| space.map_or(0, Space::version);
        let (process, overlaid) = self.spaces(CpuMode::USER);
        (!has_guest).then(|| FramesKey {
            words: words.bytes(),
            state: FramesState {
                leaf: self.sample_view.ip().filter(|_| !has_addresses),
                mode,
                spaces: [Some(self.session.kernel()), process, overlaid].map(version),
            },
        })
    }

    /// Returns the branches of an LBR callchain, and the number of callchain words before them.
    fn lbr(&self, words: &Words<'_>) -> (Lbr, Option<usize>) {
        let none = (Lbr::default(), None);
        if !self.is_lbr() {
            return none;
        }
        let user = words
            .clone()
            .position(|word| word == CallchainContext::USER.0);
        match (
            user,
            self.sample_view
                .branches()
                .map_or(0, |branches| branches.len()),
        ) {
            (Some(user), len @ 1..) => (
                Lbr {
                    next: 0,
                    len: len.saturating_add(1),
                },
                Some(user),
            ),
            _ => none,
        }
    }

    /// Returns whether the branch stack contains the user callchain.
    fn is_lbr(&self) -> bool {
        let kind = self.attr().and_then(|attr| attr.branch_sample_type);
        kind.is_some_and(|kind| kind.has(BranchSampleType::CALL_STACK))
    }

    /// Returns the last branches that the CPU took, newest first: the branch stack of
    /// `perf record -b` and `-j`.
    pub fn branches(&self) -> impl ExactSizeIterator<Item = Branch<'a>> + use<'a> {
        let sample = *self;
        let mode = mode_of_address;
        let count = self
            .sample_view
            .branches()
            .map_or(0, |branches| branches.len());
        let mut branches = self.sample_view.branches();
        (0..count).map(move |_| {
            let entry = branches.as_mut().and_then(Iterator::next);
            let (from, to, flags) =
                entry.map_or((0, 0, BranchFlags::default()), |e| (e.from, e.to, e.flags));
            Branch {
                from: sample.frame(from, mode(from), false),
                to: sample.frame(to, mode(to), false),
                flags,
            }
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
    fn frame_in(
        &self,
        (space, overlaid): Spaces<'_>,
        address: u64,
        mode: CpuMode,
        is_return: bool,
    ) -> Frame<'a> {
        let session = self.session;
        let mapping = space.and_then(|space| session.find(space, address));
        let overlaid = overlaid.filter(|_| mapping.is_none());
        let before_exec = overlaid.and_then(|space| session.find_before_exec(space, address));
        Frame {
            session: self.session,
            address,
            mode,
            is_return,
            mapping,
            before_exec,
        }
    }

    /// Returns an error if the record is truncated within the callchain.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        let has_callchain = self
            .attr()
            .is_some_and(|attr| attr.sample_type.has(SampleType::CALLCHAIN));
        if has_callchain && self.sample_view.callchain_part().is_none() {
            let len = self.record.bytes.len() as u64;
            let error =
                Error::truncated("SAMPLE record", len.saturating_add(1), len).field("callchain");
            return Err(error.at(self.record.offset));
        }
        Ok(())
    }
}

/// Returns the mode of an address for which the record contains none. Kernel addresses have the
/// highest bit set.
fn mode_of_address(address: u64) -> CpuMode {
    match address >> 63 {
        0 => CpuMode::USER,
        _ => CpuMode::KERNEL,
    }
}

fn is_address(word: u64) -> bool {
    CallchainContext::of(word).is_none()
}

fn is_guest(mode: CpuMode) -> bool {
    matches!(mode, CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER)
}

/// What the [frames](Sample::frames) of a sample depend on: samples of a session with equal keys
/// have equal frames, and [`Sample::behind_kernel`] returns the same for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramesKey<'a> {
    /// The words of the callchain in the byte order of the recording, with its markers.
    pub words: &'a [u8],
    /// Everything else.
    pub state: FramesState,
}

/// What the [frames](Sample::frames) of a sample depend on except for its callchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FramesState {
    /// The instruction pointer, if there is no callchain.
    leaf: Option<u64>,
    mode: CpuMode,
    /// The [versions](Space::version) of the mappings of the kernel, of the process, and of its
    /// earlier programs.
    spaces: [u64; 3],
}

/// A frame of a callchain: an address and its mapping.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    session: &'a Session,
    /// The address. For a caller, this is the return address: the call is before it.
    pub address: u64,
    /// The CPU mode: kernel, user (process), or hypervisor.
    pub mode: CpuMode,
    /// Whether the address is a return address. That of the first frame in each mode is not: there,
    /// the instruction at the address was running, or is the next one.
    pub is_return: bool,
    /// The mapping; `None` if the recording contains no mapping at this address.
    pub mapping: Option<MappingId>,
    /// The mapping that perf finds if `mapping` is `None`: a mapping of an earlier program of the
    /// process. perf keeps the mappings of a process across exec.
    pub before_exec: Option<MappingId>,
}

impl<'a> Frame<'a> {
    /// Returns the mapping.
    pub fn mapping(&self) -> Option<Mapping> {
        self.session.mapping(self.mapping?)
    }

    /// Returns the ID of the mapped DSO.
    pub fn dso_id(&self) -> Option<DsoId> {
        self.mapping().map(|mapping| mapping.dso)
    }

    /// Returns the mapped DSO.
    pub fn dso(&self) -> Option<&'a Dso> {
        self.session.dso(self.dso_id()?)
    }

    /// Returns the build ID of the mapped DSO, if the recording contains it.
    pub fn build_id(&self) -> Option<BuildId> {
        self.session.build_id(self.dso_id()?)
    }

    /// Returns the DSO that perf finds: see [`before_exec`](Self::before_exec).
    pub fn dso_before_exec(&self) -> Option<&'a Dso> {
        self.session
            .dso(self.session.mapping(self.before_exec?)?.dso)
    }

    /// Returns the offset in the mapped DSO, in bytes. Its base depends on the kind of the DSO:
    ///
    /// - files, vDSO and memory: from the beginning of the file. The program headers of an ELF file
    ///   convert it to an address in the symbol table; for a file of type `ET_EXEC` this is
    ///   [`address`](Self::address) itself;
    /// - kernels: from the relocation symbol ([`Session::relocation_symbol`]). Add the address of
    ///   this symbol in `vmlinux`; `address` is the address in `/proc/kallsyms` of that boot. If
    ///   the recording does not contain the symbol's address, the offset is `address`;
    /// - modules and kernel symbols: from the first mapped address; for modules, this is the start
    ///   of their text section.
    pub fn offset(&self) -> Option<u64> {
        let (mapping, dso) = (self.mapping()?, self.dso()?);
        Some(mapping.offset(dso.kind, self.address))
    }
}

/// A branch that the CPU took.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Branch<'a> {
    /// The branch instruction.
    pub from: Frame<'a>,
    /// The target.
    pub to: Frame<'a>,
    /// Further flags of the branch.
    pub flags: BranchFlags,
}

/// The remaining frames of an LBR callchain.
#[derive(Debug, Clone, Copy, Default)]
struct Lbr {
    next: usize,
    len: usize,
}

/// The mappings for a CPU mode at the time of a sample, and the mappings of earlier programs that
/// perf keeps.
type Spaces<'a> = (Option<&'a Space<Mapping>>, Option<&'a Space<Mapping>>);

/// The frames of a sample: see [`Sample::frames`].
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    sample: Sample<'a>,
    words: Words<'a>,
    mode: CpuMode,
    /// The mappings for `mode`, looked up with the first frame in this mode.
    spaces: Option<Spaces<'a>>,
    /// The instruction pointer, if the sample has no callchain.
    leaf: Option<u64>,
    later: slice::Iter<'a, u64>,
    is_later: bool,
    lbr: Lbr,
    /// Number of words before the frames of an LBR callchain. These frames replace the user frames
    /// of the callchain.
    lbr_at: Option<usize>,
    is_first: bool,
}

impl<'a> Frames<'a> {
    fn enter(&mut self, mode: CpuMode) {
        if self.mode != mode {
            (self.mode, self.spaces) = (mode, None);
            // Where a program entered the kernel is not a return address: an interrupt returns to
            // the instruction that it found.
            self.is_first = true;
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

    /// Returns the next address of an LBR callchain: the target of the newest branch, then the
    /// source of each branch.
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
                // The kernel writes no markers here, but the format allows them.
                Some(marker) => self.enter(mode_of(marker)),
            }
        }
    }
}

/// Returns the mode that a marker in a callchain starts; `UNKNOWN` if the words after it are not
/// code addresses.
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
