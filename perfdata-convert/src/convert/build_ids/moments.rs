//! What changes mappings, and what samples say, in the order of the stream.

use perfdata_core::read::Waiting;
use perfdata_core::record::CpuMode;

use perfdata_session::Change;

use super::objects::ObjectId;

/// Something that happens.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// A mapping changes.
    Change(Change<Option<ObjectId>>),
    /// A sample is taken, of which addresses are kept.
    Sample {
        /// Where the CPU was.
        mode: CpuMode,
        /// The process.
        pid: u32,
        /// The first of its words and the one behind the last.
        words: (usize, usize),
    },
    /// A round ends.
    EndOfRound,
}

/// Moments of a part of the stream. Of a sample only the addresses are kept.
#[derive(Debug, Default)]
pub struct Moments {
    /// With their times; what was there before the recording began has none.
    list: Vec<(Option<u64>, Moment)>,
    /// Of each sample the instruction pointer, then the callchain with its markers.
    words: Vec<u64>,
}

impl Moments {
    /// Words, 8 bytes each, and moments that are a part large enough to be worth handing over.
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
        self.list.push((time, Moment::Sample { mode, pid, words: (first, self.words.len()) }));
    }

    /// The moment of number `at`, with its time.
    pub fn get(&self, at: usize) -> Option<(Option<u64>, Moment)> {
        self.list.get(at).copied()
    }

    /// Words of a sample.
    pub fn words(&self, (first, end): (usize, usize)) -> &[u64] {
        self.words.get(first..end).unwrap_or_default()
    }

    /// Whether it is time to hand them over.
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
