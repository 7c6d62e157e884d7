//! Tracks mappings and hits over time. A background thread does this for large recordings, in
//! parallel with the conversion.

use std::panic::resume_unwind;

use perfdata_core::read::Limits;
use perfdata_core::record::CallchainContext;
use perfdata_core::{Error, Result};

use perfdata_session::{AddressSpaces, Change, Owner, mode_of};

use super::moments::{Addresses, Moments};
use super::objects::{ObjectId, Wanted};
use super::timeline::{Sink, Timeline};
use super::unhit::Unhit;
use crate::background::Background;

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
    state: State,
}

impl Followed {
    fn new(limits: Limits) -> Self {
        let state = State {
            limits,
            ..State::default()
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
struct State {
    wanted: Wanted,
    spaces: AddressSpaces<Option<ObjectId>>,
    unhit: Unhit,
    limits: Limits,
    /// The error after which no more changes are applied.
    refused: Option<Error>,
}

impl Sink for State {
    fn change(&mut self, change: Change<Option<ObjectId>>) {
        if self.refused.is_none() {
            self.spaces.apply(change);
            self.refused = self
                .limits
                .check_metadata("mappings of processes", self.spaces.held() as u64)
                .err();
        }
    }

    /// Looks up the addresses of a sample. Context markers divide a callchain into parts of
    /// different address spaces.
    fn sample(&mut self, Addresses { mode, pid, words }: Addresses<'_>) {
        let State {
            wanted,
            spaces,
            unhit,
            ..
        } = self;
        let mut mode = Some(mode);
        let mut rest = words;
        loop {
            let len = rest
                .iter()
                .position(|&word| CallchainContext::of(word).is_some())
                .unwrap_or(rest.len());
            let (addresses, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            let here = mode.filter(|_| !addresses.is_empty());
            if let Some(space) = here.and_then(|mode| spaces.space(Owner::of(mode, pid)?)) {
                unhit.hit(addresses, space, wanted);
            }
            let Some((&marker, after)) = behind.split_first() else {
                return;
            };
            mode = CallchainContext::of(marker).map(mode_of);
            rest = after;
        }
    }
}
