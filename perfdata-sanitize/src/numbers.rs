//! The check of the numbers in the output.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::Endian;
use perfdata_core::content::{Content, Rewriter};
use perfdata_core::record::{CallchainContext, deferred_cookie};

use super::addresses::Addresses;
use super::cache::{Ranges, number};
use super::distinct::is_distinct;
use super::policy::Action;
use super::state::{REMEMBERED, State};

/// The maximum number of numbers that may be original addresses and wait for the end.
const SUSPECTS: usize = 1 << 16;

/// Checks numbers: which of them the stage may write. Which original addresses and process IDs
/// there are is only known at the end: [`finish`](Self::finish) compares them.
#[derive(Debug)]
pub(super) struct Numbers {
    addresses: Arc<Addresses>,
    actions: [Action; Content::ALL.len()],
    /// The last ranges of new addresses.
    new: Ranges,
    /// The process IDs, as far as there may be pseudonyms that are remembered, with a field of
    /// each, and the last of them.
    pids: HashMap<u32, &'static str, RandomState>,
    last_pids: [u32; 256],
    /// The original addresses, if all of them are known.
    originals: Option<Arc<HashSet<u64, RandomState>>>,
    /// If they are not: the numbers that are original addresses by their range, with a field of
    /// each.
    suspects: HashMap<u64, &'static str, RandomState>,
    /// The first field that is not clean.
    found: Option<(&'static str, Content)>,
}

impl Numbers {
    /// Returns a check with the original addresses, if all of them are known.
    pub(super) fn new(state: &State, originals: Option<Arc<HashSet<u64, RandomState>>>) -> Self {
        Numbers {
            originals,
            addresses: Arc::clone(&state.addresses),
            actions: state.actions(),
            new: Ranges::default(),
            pids: HashMap::default(),
            last_pids: [0; 256],
            suspects: HashMap::default(),
            found: None,
        }
    }

    #[inline]
    pub(super) fn action(&self, content: Content) -> Action {
        let action = self.actions.get(content as usize);
        action.copied().unwrap_or(Action::Remove)
    }

    /// Notes a field that is not clean.
    #[inline]
    pub(super) fn unless(&mut self, is_clean: bool, name: &'static str, content: Content) {
        if !is_clean {
            self.found.get_or_insert((name, content));
        }
    }

    /// Returns the first field since the last call that is not clean.
    #[inline]
    pub(super) fn take_found(&mut self) -> Option<(&'static str, Content)> {
        self.found.take()
    }

    /// Returns whether [`finish`](Self::finish) can decide about all numbers.
    pub(super) fn is_complete(&self) -> bool {
        self.suspects.len() < SUSPECTS
    }

    /// Compares what was seen with the original addresses and the pseudonyms of all processes.
    /// Returns what should not be there.
    pub(super) fn finish(
        &self,
        state: &State,
        originals: &HashSet<u64, RandomState>,
    ) -> Option<String> {
        let new = state.new_pids();
        let is_other = |pid: &u32| new.as_ref().is_some_and(|new| !new.contains(pid));
        if let Some((_, name)) = self.pids.iter().find(|(pid, _)| is_other(pid)) {
            return Some(format!(
                "the field {name:?}: a process ID that is no pseudonym"
            ));
        }
        let mut suspects = self.suspects.iter();
        let (_, name) = suspects.find(|(value, _)| originals.contains(value))?;
        Some(format!(
            "the field {name:?}: a number that is an original address"
        ))
    }

    #[inline]
    pub(super) fn check(&mut self, name: &'static str, value: u64, size: usize, content: Content) {
        let none = u64::MAX >> (64 - 8 * size.clamp(1, 8));
        let is_clean = match (self.action(content), content) {
            (Action::Remove, _) => value == 0,
            (Action::Replace, Content::Address) => self.is_new(value),
            (Action::Replace, Content::Pid) => {
                value == 0 || value == none || self.see_pid(name, value)
            }
            (_, Content::Time | Content::Ticks) => true,
            _ if !content.permits(value, size) => false,
            _ => value < 1 << 32 || !self.is_original(name, value),
        };
        self.unless(is_clean, name, content);
    }

    /// Checks the words of a callchain in a record with this byte order.
    #[inline]
    pub(super) fn chain(&mut self, words: &[[u8; 8]], endian: Endian) {
        match endian {
            Endian::Little => self.chain_of::<true>(words),
            Endian::Big => self.chain_of::<false>(words),
        }
    }

    fn chain_of<const LITTLE: bool>(&mut self, words: &[[u8; 8]]) {
        const NAME: &str = "callchain";
        if self.action(Content::Callchain) == Action::Keep {
            return;
        }
        let numbers = words.iter().map(|word| number::<LITTLE>(*word));
        let mut rest = words;
        if let Some(cookie) = deferred_cookie(numbers) {
            self.check(NAME, cookie, 8, Content::Cookie);
            rest = rest.split_last().map_or(rest, |(_, chain)| chain);
        }
        loop {
            let known = self.new.count::<LITTLE>(rest);
            let Some((word, behind)) = rest.get(known..).unwrap_or_default().split_first() else {
                return;
            };
            let is_clean = self.is_new(number::<LITTLE>(*word));
            self.unless(is_clean, NAME, Content::Callchain);
            rest = behind;
        }
    }

    /// Returns whether the stage writes this address.
    #[inline]
    fn is_new(&mut self, address: u64) -> bool {
        self.new.get(address).is_some() || self.look_up(address)
    }

    #[inline(never)]
    fn look_up(&mut self, address: u64) -> bool {
        if CallchainContext::of(address).is_some() {
            return true;
        }
        if let Some((first, last)) = self.addresses.new_range(address) {
            self.new.put(address, (first, last, 0));
            return true;
        }
        self.addresses.is_new(address)
    }

    /// Remembers a process ID. Returns false if it cannot be one.
    #[inline]
    fn see_pid(&mut self, name: &'static str, value: u64) -> bool {
        let Ok(pid) = u32::try_from(value) else {
            return false;
        };
        match self.last_pids.get_mut(pid as usize % 256) {
            Some(last) if *last == pid => {}
            last => {
                last.into_iter().for_each(|last| *last = pid);
                // One more than there may be pseudonyms.
                if self.pids.len() <= REMEMBERED {
                    self.pids.insert(pid, name);
                }
            }
        }
        true
    }

    /// Returns whether a number is an original address, as far as this is known now.
    #[inline(never)]
    fn is_original(&mut self, name: &'static str, value: u64) -> bool {
        if !is_distinct(value) || self.action(Content::Address) == Action::Keep {
            return false;
        }
        match &self.originals {
            Some(originals) => originals.contains(&value),
            None => {
                if self.is_complete() && self.addresses.is_original(value) {
                    self.suspects.insert(value, name);
                }
                false
            }
        }
    }
}

impl Rewriter for Numbers {
    #[inline]
    fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64 {
        self.check(name, value, size, content);
        value
    }

    /// Samples that consist of numbers have no texts.
    fn text(
        &mut self,
        name: &'static str,
        text: &[u8],
        _: usize,
        content: Content,
    ) -> Option<Vec<u8>> {
        self.unless(text.is_empty(), name, content);
        None
    }

    fn bytes(&mut self, name: &'static str, bytes: &mut [u8], content: Content) {
        let is_removed = self.action(content) == Action::Remove;
        let is_clean = !is_removed || bytes.iter().all(|&byte| byte == 0);
        self.unless(is_clean, name, content);
    }

    fn words(&mut self, name: &'static str, words: &mut [u64], content: Content) {
        if content != Content::Callchain {
            for word in words {
                self.check(name, *word, size_of::<u64>(), content);
            }
            return;
        }
        let chain: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
        self.chain(&chain, Endian::Little);
    }
}
