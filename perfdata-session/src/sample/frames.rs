//! The frames of a sample: those of its callchain, of the branch stack, or of a user callchain that
//! is not in the record.

use std::slice;

use perfdata_core::attr::BranchSampleType;
use perfdata_core::record::{CallchainContext, CpuMode, Words, deferred_cookie};

use super::{Frame, Sample, Spaces};

impl<'a> Sample<'a> {
    /// Returns the frames, from the sampled function to its outermost caller. These are the frames
    /// of the callchain, or the instruction pointer if there is no callchain. A callchain starts
    /// with the instruction pointer, which is returned once.
    ///
    /// With `perf record --call-graph lbr` the user frames are those of the branch stack, as in
    /// perf.
    pub fn frames(&self) -> Frames<'a> {
        let mut words = self.sample_view.callchain();
        let user = self.user;
        if deferred_cookie(words.clone()).is_some() {
            // The last word is the cookie of the user callchain, not an address.
            words = words.without_last(2);
        }
        let leaf = self
            .sample_view
            .ip()
            .filter(|_| user.is_empty() && !words.clone().any(is_address));
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
            has_before_exec: true,
            leaf,
            user: user.iter(),
            is_user: false,
            lbr,
            lbr_at,
            is_first: true,
        }
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
}

fn is_address(word: u64) -> bool {
    CallchainContext::of(word).is_none()
}

/// The remaining frames of an LBR callchain.
#[derive(Debug, Clone, Copy, Default)]
struct Lbr {
    next: usize,
    len: usize,
}

/// The frames of a sample: see [`Sample::frames`].
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    sample: Sample<'a>,
    words: Words<'a>,
    mode: CpuMode,
    /// The mappings for `mode`, looked up with the first frame in this mode.
    spaces: Option<Spaces<'a>>,
    /// Whether [`Frame::before_exec`] is searched.
    has_before_exec: bool,
    /// The instruction pointer, if the sample has no callchain.
    leaf: Option<u64>,
    /// The user callchain that is not in the record.
    user: slice::Iter<'a, u64>,
    is_user: bool,
    lbr: Lbr,
    /// Number of words before the frames of an LBR callchain. These frames replace the user frames
    /// of the callchain.
    lbr_at: Option<usize>,
    is_first: bool,
}

impl<'a> Frames<'a> {
    /// Returns the frames with whether [`Frame::before_exec`] is searched; otherwise it is `None`. By
    /// default, it is.
    #[must_use]
    pub fn with_before_exec(self, has_before_exec: bool) -> Self {
        Frames {
            spaces: None,
            has_before_exec,
            ..self
        }
    }

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
            None => {
                let (space, overlaid) = self.sample.spaces(self.mode);
                let overlaid = overlaid.filter(|_| self.has_before_exec);
                *self.spaces.insert((space, overlaid))
            }
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
        if self.user.len() > 0 && !std::mem::replace(&mut self.is_user, true) {
            self.enter(CpuMode::USER);
        }
        loop {
            let &word = self.user.next()?;
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
