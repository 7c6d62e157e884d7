//! Tracks mappings and hits over time. A background thread does this for large recordings, in
//! parallel with the conversion.

use std::panic::resume_unwind;

use perfdata_core::read::Limits;
use perfdata_core::record::{CallchainContext, CpuMode};
use perfdata_core::{Error, Result};

use perfdata_session::{AddressSpaces, Change, Machine, Owner, mode_of};

use super::moments::{Addresses, Moments};
use super::objects::{ObjectId, Wanted};
use super::timeline::{Sink, Timeline};
use super::unhit::{Unhit, UnhitMappings};
use perfdata_convert::support::background::Background;

/// Maximum number of parts of the stream that wait for the thread.
const WAITING: usize = 2;

/// Tracks the moments of a stream, and determines the objects that samples hit.
#[derive(Debug, Default)]
pub enum Follower {
    /// Before the first part of the stream.
    #[default]
    Idle,
    /// On the caller's thread, because the system could not start another one.
    Here(Box<Followed>),
    /// On a background thread.
    Away(Background<Moments, Result<Followed>>),
}

impl Follower {
    /// Takes the next part of the stream, and returns empty moments for the part after it.
    ///
    /// # Errors
    /// The mappings exceed `limits`; with a thread, in a previous part.
    pub fn take(&mut self, moments: Moments, limits: &Limits) -> Result<Moments> {
        if let Follower::Idle = self {
            let here = |()| Follower::Here(Box::new(Followed::new(*limits)));
            *self = match limits.threads() {
                1 => here(()),
                _ => start(*limits).map_or_else(|_| here(()), Follower::Away),
            };
        }
        match self {
            Follower::Idle => {}
            Follower::Here(followed) => {
                followed.take(moments)?;
                return Ok(followed.timeline.spare());
            }
            Follower::Away(thread) => {
                if thread.send(moments) {
                    return Ok(thread.spare());
                }
                // The thread has ended, and returns its error.
                std::mem::take(self).end(limits)?;
            }
        }
        Ok(Moments::default())
    }

    /// Returns the objects that samples hit, after the last part of the stream.
    ///
    /// # Errors
    /// The mappings exceed `limits`.
    pub fn finish(self, last: Moments, limits: &Limits) -> Result<Wanted> {
        let mut followed = self.end(limits)?;
        followed.take(last)?;
        let Followed { timeline, state } = &mut followed;
        timeline.finish(state);
        followed.check()?;
        Ok(followed.state.wanted)
    }

    fn end(self, limits: &Limits) -> Result<Followed> {
        match self {
            Follower::Idle => Ok(Followed::new(*limits)),
            Follower::Here(followed) => Ok(*followed),
            Follower::Away(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        }
    }
}

fn start(limits: Limits) -> std::io::Result<Background<Moments, Result<Followed>>> {
    Background::start(WAITING, move |queue, done| {
        let mut followed = Followed::new(limits);
        for moments in queue {
            followed.take(moments)?;
            // At the end, the receiver no longer exists.
            let _ = done.send(followed.timeline.spare());
        }
        Ok(followed)
    })
}

/// The state after the stream so far.
#[derive(Debug)]
pub struct Followed {
    timeline: Timeline,
    state: FollowState,
}

impl Followed {
    fn new(limits: Limits) -> Self {
        let state = FollowState {
            limits,
            ..FollowState::default()
        };
        Followed {
            timeline: Timeline::default(),
            state,
        }
    }

    fn take(&mut self, moments: Moments) -> Result<()> {
        self.timeline.take(moments, &mut self.state);
        self.check()
    }

    fn check(&mut self) -> Result<()> {
        self.state.refused.take().map_or(Ok(()), Err)
    }
}

/// The mappings at the time up to which the timeline is complete, and the objects hit until then.
#[derive(Debug, Default)]
struct FollowState {
    wanted: Wanted,
    spaces: AddressSpaces<Option<ObjectId>>,
    recent: Recent,
    unhit: Unhit,
    limits: Limits,
    /// The error after which no more changes are applied.
    refused: Option<Error>,
}

impl Sink for FollowState {
    fn change(&mut self, change: Change<Option<ObjectId>>) {
        if self.refused.is_none() {
            self.recent.forget(&change);
            self.spaces.apply(change);
            self.refused = self
                .limits
                .check_metadata("mappings of processes", self.spaces.held() as u64)
                .err();
        }
    }

    /// Looks up the addresses of a sample. Context markers divide a callchain into parts of
    /// different address spaces.
    #[inline]
    fn sample(&mut self, Addresses { mode, pid, words }: Addresses<'_>) {
        let mut mode = Some(mode);
        let mut rest = words;
        while !rest.is_empty() {
            let looked_up = match mode.and_then(|mode| self.unhit_of(mode, pid)) {
                Some((unhit, wanted)) => unhit.hit(rest, wanted),
                None => self.look_up(mode, pid, rest),
            };
            let Some((&marker, after)) = rest.get(looked_up..).and_then(<[u64]>::split_first)
            else {
                return;
            };
            mode = CallchainContext::of(marker).map(mode_of);
            rest = after;
        }
    }
}

impl FollowState {
    /// Returns the mappings without a hit of the address space of process `pid` in `mode`, if they
    /// are known.
    #[inline]
    fn unhit_of(&mut self, mode: CpuMode, pid: u32) -> Option<(&mut UnhitMappings, &mut Wanted)> {
        let version = match mode {
            CpuMode::USER => self.recent.version(pid)?,
            CpuMode::KERNEL => self.spaces.space(Owner::Kernel(Machine::HOST))?.version(),
            _ => return None,
        };
        Some((self.unhit.of(version)?, &mut self.wanted))
    }

    /// Looks up the addresses before the first context marker in `words`, and returns their number.
    fn look_up(&mut self, mode: Option<CpuMode>, pid: u32, words: &[u64]) -> usize {
        let is_marker = |&word: &u64| CallchainContext::of(word).is_some();
        let len = words.iter().position(is_marker).unwrap_or(words.len());
        let addresses = words.get(..len).unwrap_or_default();
        let owner = mode.and_then(|mode| Owner::of(mode, pid));
        if let Some(space) = owner.and_then(|owner| self.spaces.space(owner))
            && !addresses.is_empty()
        {
            if mode == Some(CpuMode::USER) {
                self.recent.add(pid, space.version());
            }
            self.unhit.hit(addresses, space, &mut self.wanted);
        }
        len
    }
}

/// The versions of the address spaces of the host's processes with recent samples.
#[derive(Debug)]
struct Recent {
    known: [RecentSpace; Self::SIZE],
    /// Increases when all entries are forgotten.
    epoch: u64,
}

/// An entry, which is valid only in its epoch.
#[derive(Debug, Clone, Copy, Default)]
struct RecentSpace {
    epoch: u64,
    version: u64,
    pid: u32,
}

impl Default for Recent {
    fn default() -> Self {
        Recent {
            known: [RecentSpace::default(); Self::SIZE],
            epoch: 1,
        }
    }
}

impl Recent {
    /// Number of processes, a power of two.
    const SIZE: usize = 64;

    #[inline]
    fn slot(pid: u32) -> usize {
        pid as usize & (Self::SIZE - 1)
    }

    /// Returns the version of the address space of process `pid`, if it is known.
    #[inline]
    fn version(&self, pid: u32) -> Option<u64> {
        let known = self.known.get(Self::slot(pid))?;
        (known.pid == pid && known.epoch == self.epoch).then_some(known.version)
    }

    fn add(&mut self, pid: u32, version: u64) {
        let epoch = self.epoch;
        if let Some(slot) = self.known.get_mut(Self::slot(pid)) {
            *slot = RecentSpace {
                epoch,
                version,
                pid,
            };
        }
    }

    /// Forgets the address spaces that `change` may concern. A process that starts or ends may also
    /// discard another one.
    fn forget(&mut self, change: &Change<Option<ObjectId>>) {
        match *change {
            Change::Map {
                owner: Owner::Process(_, pid),
                ..
            }
            | Change::Exec(Owner::Process(_, pid)) => {
                if let Some(slot) = self.known.get_mut(Self::slot(pid)) {
                    slot.epoch = 0;
                }
            }
            Change::Fork { .. } | Change::Exit(_) => {
                self.epoch = self.epoch.saturating_add(1);
            }
            // Changes of kernels.
            _ => {}
        }
    }
}
