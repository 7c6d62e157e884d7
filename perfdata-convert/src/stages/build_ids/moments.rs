//! Changes of mappings, and addresses of samples, in the order of the stream.

use perfdata_core::read::Waiting;
use perfdata_core::record::CpuMode;

use perfdata_session::Change;

use super::objects::ObjectId;

/// An event in the stream.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// A change of mappings.
    Change(Change<Option<ObjectId>>),
    /// A sample, with some of its addresses.
    Sample {
        /// The CPU mode.
        mode: CpuMode,
        /// The process ID.
        pid: u32,
        /// The indexes of its first word, and after its last word.
        words: (usize, usize),
    },
    /// The end of a round.
    EndOfRound,
}

/// The moments of a part of the stream. Only the addresses of samples are kept.
#[derive(Debug, Default)]
pub struct Moments {
    /// The moments and their times; those before the recording have no time.
    list: Vec<(Option<u64>, Moment)>,
    /// The instruction pointer of each sample, followed by its callchain with the context markers.
    words: Vec<u64>,
}

impl Moments {
    /// Numbers of words (8 bytes each) and of moments in a part that is large enough to pass on.
    const ENOUGH: (usize, usize) = (64 << 10, 8 << 10);

    /// Adds a moment.
    pub fn push(&mut self, time: Option<u64>, moment: Moment) {
        self.list.push((time, moment));
    }

    /// Adds a sample.
    #[inline]
    pub fn push_sample(
        &mut self,
        time: Option<u64>,
        (mode, pid): (CpuMode, u32),
        ip: Option<u64>,
        callchain: impl Iterator<Item = u64>,
    ) {
        let first = self.words.len();
        self.words.extend(ip);
        self.words.extend(callchain);
        self.list.push((
            time,
            Moment::Sample {
                mode,
                pid,
                words: (first, self.words.len()),
            },
        ));
    }

    /// Returns moment number `at` and its time.
    pub fn get(&self, at: usize) -> Option<(Option<u64>, Moment)> {
        self.list.get(at).copied()
    }

    /// Returns the words of a sample.
    pub fn words(&self, (first, end): (usize, usize)) -> &[u64] {
        self.words.get(first..end).unwrap_or_default()
    }

    /// Returns whether the part is large enough to pass on.
    #[inline]
    pub fn is_enough(&self) -> bool {
        self.words.len() >= Self::ENOUGH.0 || self.list.len() >= Self::ENOUGH.1
    }
}

impl Waiting for Moments {
    fn len(&self) -> usize {
        self.list.len()
    }

    fn weight(&self) -> usize {
        size_of_val(self.list.as_slice()) + size_of_val(self.words.as_slice())
    }

    fn push_from(&mut self, other: &Self, at: usize) {
        match other.get(at) {
            Some((time, Moment::Sample { mode, pid, words })) => {
                self.push_sample(time, (mode, pid), None, other.words(words).iter().copied());
            }
            Some((time, moment)) => self.push(time, moment),
            None => {}
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.words.clear();
    }
}
