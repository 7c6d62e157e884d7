//! The user parts of deferred callchains, which are read before the samples that refer to them.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::attr::Attr;
use perfdata_core::read::Limits;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};

use crate::error::Result;

/// The user parts of callchains by thread and cookie. Most of them occur more than once, and are
/// stored once.
///
/// This is not a table of `perfdata_session::Stacks`: that one holds resolved frames, each with its
/// caller, mode and mapping, so that callchains can share their outer frames. Here, the words of a
/// record are needed as they are, and a word takes a fifth of the memory of a frame there.
#[derive(Debug)]
pub struct Chains {
    limits: Limits,
    by_key: HashMap<(Option<u32>, u64), usize, RandomState>,
    numbers: HashMap<Box<[u64]>, usize, RandomState>,
    all: Vec<Box<[u64]>>,
    /// Size of the stored data in bytes.
    held: u64,
}

impl Chains {
    /// Returns an empty table, whose memory `limits` bound.
    pub fn new(limits: Limits) -> Self {
        Chains {
            limits,
            by_key: HashMap::default(),
            numbers: HashMap::default(),
            all: Vec::new(),
            held: 0,
        }
    }

    /// Adds a record of `recording`. If several have the same key, the first one is used.
    pub fn see(&mut self, raw: &RawRecord<'_>, recording: &Recording) -> Result<()> {
        if raw.kind != RecordType::CALLCHAIN_DEFERRED {
            return Ok(());
        }
        let record = Record::decode(raw, &recording.events.layout_of(raw))?;
        let tid = record
            .sample_id
            .as_ref()
            .and_then(|trailer| trailer.tid.as_ref())
            .map(|task| task.tid);
        let Body::CallchainDeferred(deferred) = record.body else {
            return Ok(());
        };
        let words: Box<[u64]> = deferred.callchain.iter().copied().collect();
        let mut size = size_of::<((Option<u32>, u64), usize)>() as u64;
        let number = match self.numbers.get(&words) {
            Some(&number) => number,
            None => {
                let number = self.all.len();
                size = size
                    .saturating_add((words.len() as u64).saturating_mul(16))
                    .saturating_add(48);
                self.all.push(words.clone());
                self.numbers.insert(words, number);
                number
            }
        };
        self.held = self.held.saturating_add(size);
        self.limits
            .check_metadata("deferred callchains", self.held)?;
        self.by_key.entry((tid, deferred.cookie)).or_insert(number);
        Ok(())
    }

    /// Returns the user part with a cookie, of thread `tid` or of a record without a thread.
    pub fn find(&self, tid: Option<u32>, cookie: u64) -> Option<&[u64]> {
        let number = self
            .by_key
            .get(&(tid, cookie))
            .or_else(|| self.by_key.get(&(None, cookie)))?;
        self.all.get(*number).map(|words| &**words)
    }
}

/// Returns whether an event has deferred user callchains, or receives them in its buffer.
pub fn defers(attr: &Attr) -> bool {
    attr.flags.defer_callchain() | attr.flags.defer_output() != 0
}
