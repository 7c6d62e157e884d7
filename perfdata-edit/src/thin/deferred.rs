//! Deferred callchains: how many frames of each CALLCHAIN_DEFERRED record its samples show.
//!
//! The frames of a sample and of the record that it refers to count together. Several samples may
//! refer to one record: it keeps the frames that the shortest of them shows, and the others get
//! their part of it themselves.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::read::Limits;
use perfdata_core::record::{CallchainContext, CallchainDeferred, RawRecord, deferred_cookie};

use super::sample::{Kept, kept};
use perfdata_convert::error::Result;
use perfdata_convert::io::InputSource;
use perfdata_convert::support::deferred_chains::Chains;

/// Thread and cookie.
type ThreadCookie = (Option<u32>, u64);

/// The deferred callchains of a recording.
#[derive(Debug)]
pub(super) struct Deferred {
    limits: Limits,
    frames: u64,
    chains: Chains,
    /// The largest number of frames of the record that a sample shows.
    shown: HashMap<ThreadCookie, u64, RandomState>,
}

impl Deferred {
    /// Reads `source` ahead, for samples with at most `frames` frames; `None` if it cannot be read
    /// twice.
    pub(super) fn read(
        source: &InputSource,
        recording: &Recording,
        frames: u64,
    ) -> Result<Option<Self>> {
        let mut deferred = Deferred {
            limits: source.limits(),
            frames,
            chains: Chains::new(source.limits()),
            shown: HashMap::default(),
        };
        let is_read = source.each_record(recording, |raw, now| deferred.see(raw, now))?;
        Ok(is_read.then_some(deferred))
    }

    fn see(&mut self, raw: &RawRecord<'_>, now: &Recording) -> Result<()> {
        let Some(sample) = now.events.sample_view(raw) else {
            return self.chains.see(raw, now);
        };
        let chain = sample.callchain();
        if let Some(cookie) = deferred_cookie(chain.clone()) {
            let left = match kept(chain, self.frames) {
                Kept::Deferred(_, left) => left,
                Kept::Words(_) | Kept::All => 0,
            };
            let tid = sample.tid().map(|task| task.tid);
            let most = self.shown.entry((tid, cookie)).or_default();
            *most = left.max(*most);
            let held =
                (self.shown.len() as u64).saturating_mul(size_of::<(ThreadCookie, u64)>() as u64);
            self.limits.check_metadata("deferred callchains", held)?;
        }
        Ok(())
    }

    /// Returns the first `left` frames of the record for a sample of thread `tid`, if the record
    /// keeps more of them for another sample.
    pub(super) fn own_part(&self, tid: Option<u32>, cookie: u64, left: u64) -> Option<&[u64]> {
        let most = *self.shown.get(&(tid, cookie))?;
        let words = self.chains.find(tid, cookie)?;
        match kept(words.iter().copied(), left) {
            Kept::Words(end) if most > left => words.get(..end),
            _ => None,
        }
    }

    /// Shortens the callchain of a CALLCHAIN_DEFERRED record; returns the number of words less.
    pub(super) fn cut(&self, tid: Option<u32>, body: &mut CallchainDeferred) -> usize {
        // Without a sample that shows it, it is as long as a callchain may be.
        let most = match self.shown.get(&(tid, body.cookie)) {
            Some(most) => *most,
            None => self.frames,
        };
        let words: &[u64] = &body.callchain;
        let before = words.len();
        let Kept::Words(end) = kept(words.iter().copied(), most) else {
            return 0;
        };
        body.callchain = words.get(..end).unwrap_or_default().to_vec().into();
        before.saturating_sub(end)
    }
}

/// Returns a callchain with its deferred part in place of the marker and the cookie.
pub(super) fn joined(chain: &[u64], part: &[u64]) -> Vec<u64> {
    let own = chain.len().saturating_sub(2);
    let own = chain.get(..own).unwrap_or_default();
    [own, &[CallchainContext::USER.0], part].concat()
}
