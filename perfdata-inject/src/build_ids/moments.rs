//! Changes of mappings, and addresses of samples, in the order of the stream.

use std::num::NonZeroU64;

use perfdata_core::read::Waiting;
use perfdata_core::record::CpuMode;

use perfdata_session::Change;

use super::objects::ObjectId;

/// An event in the stream.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// A change of mappings.
    Change(&'a Change<Option<ObjectId>>),
    /// A sample.
    Sample(Addresses<'a>),
    /// The end of a round.
    EndOfRound,
}

/// The addresses of one sample.
#[derive(Debug, Clone, Copy)]
pub struct Addresses<'a> {
    /// The CPU mode.
    pub mode: CpuMode,
    /// The process ID.
    pub pid: u32,
    /// The instruction pointer, followed by the callchain with its context markers.
    pub words: &'a [u64],
}

/// The time of a moment.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// A sample at this time.
    Sample(u64),
    /// A change of mappings at this time.
    Change(u64),
    /// A moment before the recording.
    BeforeRecording,
    /// The end of a round.
    EndOfRound,
}

/// The moments of a part of the stream. Only the addresses of samples are kept, and nearly all
/// moments are samples: an entry has 24 bytes.
#[derive(Debug, Default)]
pub struct Moments {
    list: Vec<TimedMoment>,
    changes: Vec<Change<Option<ObjectId>>>,
    /// The words of the samples.
    words: Vec<u64>,
}

/// A moment and its time; moments before the recording have no time.
#[derive(Debug, Clone, Copy)]
struct TimedMoment {
    time: Option<NonZeroU64>,
    what: What,
}

/// A moment, whose changes and words are at indexes of [`Moments`].
#[derive(Debug, Clone, Copy)]
enum What {
    Change {
        at: u32,
    },
    Sample {
        mode: CpuMode,
        pid: u32,
        first: u32,
        len: u32,
    },
    EndOfRound,
}

impl Moments {
    /// Numbers of words (8 bytes each) and of moments in a part that is large enough to pass on.
    const ENOUGH: (usize, usize) = (64 << 10, 8 << 10);

    /// Adds a change at `time`, which is not 0.
    pub fn push_change(&mut self, time: Option<u64>, change: Change<Option<ObjectId>>) {
        let at = index(self.changes.len());
        self.changes.push(change);
        self.push(time, What::Change { at });
    }

    /// Adds the end of a round.
    pub fn end_round(&mut self) {
        self.push(None, What::EndOfRound);
    }

    /// Adds a sample at `time`, which is not 0. `words` appends its addresses.
    #[inline]
    pub fn push_sample(
        &mut self,
        time: Option<u64>,
        (mode, pid): (CpuMode, u32),
        words: impl FnOnce(&mut Vec<u64>),
    ) {
        let first = self.words.len();
        words(&mut self.words);
        let what = What::Sample {
            mode,
            pid,
            first: index(first),
            len: index(self.words.len().saturating_sub(first)),
        };
        self.push(time, what);
    }

    #[inline]
    fn push(&mut self, time: Option<u64>, what: What) {
        let time = time.and_then(NonZeroU64::new);
        self.list.push(TimedMoment { time, what });
    }

    /// Returns moment number `at` and its time.
    #[inline]
    pub fn get(&self, at: usize) -> Option<(Option<u64>, Moment<'_>)> {
        let TimedMoment { time, what } = self.list.get(at)?;
        let moment = match *what {
            What::Change { at } => Moment::Change(self.changes.get(at as usize)?),
            What::Sample {
                mode,
                pid,
                first,
                len,
            } => {
                let words = self.words.get(first as usize..)?.get(..len as usize)?;
                Moment::Sample(Addresses { mode, pid, words })
            }
            What::EndOfRound => Moment::EndOfRound,
        };
        Some((time.map(NonZeroU64::get), moment))
    }

    /// Returns when moment number `at` happens.
    #[inline]
    pub fn when(&self, at: usize) -> Option<When> {
        let TimedMoment { time, what } = self.list.get(at)?;
        Some(match (time, what) {
            (_, What::EndOfRound) => When::EndOfRound,
            (None, _) => When::BeforeRecording,
            (Some(time), What::Sample { .. }) => When::Sample(time.get()),
            (Some(time), What::Change { .. }) => When::Change(time.get()),
        })
    }

    /// Returns whether the part is large enough to pass on.
    #[inline]
    pub fn is_enough(&self) -> bool {
        self.words.len() >= Self::ENOUGH.0 || self.list.len() >= Self::ENOUGH.1
    }
}

/// Returns an index or a length in [`Moments`], whose memory is bounded.
fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl Waiting for Moments {
    fn len(&self) -> usize {
        self.list.len()
    }

    fn weight(&self) -> usize {
        size_of_val(self.list.as_slice())
            .saturating_add(size_of_val(self.changes.as_slice()))
            .saturating_add(size_of_val(self.words.as_slice()))
    }

    fn push_from(&mut self, other: &Self, at: usize) {
        match other.get(at) {
            Some((time, Moment::Sample(Addresses { mode, pid, words }))) => {
                self.push_sample(time, (mode, pid), |out| out.extend_from_slice(words));
            }
            Some((time, Moment::Change(change))) => self.push_change(time, *change),
            Some((_, Moment::EndOfRound)) => self.end_round(),
            None => {}
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.changes.clear();
        self.words.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<TimedMoment>(), 24);
    }
}
