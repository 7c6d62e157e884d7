//! Resolved samples: threads, names, and frames.

mod frame;
mod frames;

pub use frame::{Branch, Frame};
pub use frames::{Frames, mode_of};

use std::ops::Range;

use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::error::Error;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{BranchFlags, CpuMode, SampleView, Tid, deferred_cookie};
use perfdata_core::{Recording, Result};

use crate::dso::DsoKind;
use crate::ids::{CommId, ThreadId};
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
    /// The user callchain that is not in the record: a deferred one, or that of a user stack.
    user: &'a [u64],
    /// The kernel's mappings at the time of the sample, if it waited for a deferred user callchain.
    kernel: Option<&'a Space<Mapping>>,
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
            user: &[],
            kernel: None,
        })
    }

    /// Returns the same sample with its deferred user callchain.
    pub(crate) fn with_later(self, user: &'a [u64], kernel: &'a Space<Mapping>) -> Self {
        Sample {
            user,
            kernel: Some(kernel),
            ..self
        }
    }

    /// Returns the same sample with the user callchain of its user stack, if it has none.
    pub(crate) fn with_unwound(self, unwound: &'a [u64]) -> Self {
        let user = if self.user.is_empty() {
            unwound
        } else {
            self.user
        };
        Sample { user, ..self }
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
        self.user.is_empty() && deferred_cookie(self.sample_view.callchain()).is_some()
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

    /// Returns the mapping of the process at a user address at the time of the sample, without those
    /// of earlier programs, and the addresses there that newer mappings have not replaced.
    pub fn user_mapping(&self, address: u64) -> Option<(Range<u64>, Mapping)> {
        let (space, _) = self.spaces(CpuMode::USER);
        space?.find(address)
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

    /// Returns whether the recording contains any mapping of the thread for code in `mode`. If so, an
    /// address without a [`mapping`](Frame::mapping) is probably no code: without frame pointers,
    /// callchains contain words that are none.
    pub fn has_mappings(&self, mode: CpuMode) -> bool {
        let (space, _) = self.spaces(mode);
        space.is_some_and(|space| !space.is_empty())
    }

    fn spaces(&self, mode: CpuMode) -> Spaces<'a> {
        match (mode, self.kernel) {
            (CpuMode::KERNEL, Some(kernel)) => (Some(kernel), None),
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

/// The mappings for a CPU mode at the time of a sample, and the mappings of earlier programs that
/// perf keeps.
type Spaces<'a> = (Option<&'a Space<Mapping>>, Option<&'a Space<Mapping>>);
