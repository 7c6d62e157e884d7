//! Pseudonyms: keyed hashes of names and numbers.

use std::fmt;

use blake2::Blake2bMac;
use blake2::digest::consts::U32;
use blake2::digest::{FixedOutput, Update};

use perfdata_convert::error::{Error, Result};

/// The secret that determines all pseudonyms. Nobody can find the original of a pseudonym without
/// it, not even with a list of all possible names.
#[derive(Clone)]
pub struct Key([u8; Key::SIZE]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// What a pseudonym replaces. Equal texts of different domains have different pseudonyms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Domain {
    Comm,
    Directory,
    File,
    Cgroup,
    Symbol,
    Event,
    Text,
    Host,
    BuildId,
    Number,
    Pid,
    Order,
    Mapping,
    Place,
}

impl Domain {
    fn personal(self) -> &'static [u8] {
        match self {
            Domain::Comm => b"perfconv comm",
            Domain::Directory => b"perfconv dir",
            Domain::File => b"perfconv file",
            Domain::Cgroup => b"perfconv cgroup",
            Domain::Symbol => b"perfconv symbol",
            Domain::Event => b"perfconv event",
            Domain::Text => b"perfconv text",
            Domain::Host => b"perfconv host",
            Domain::BuildId => b"perfconv buildid",
            Domain::Number => b"perfconv number",
            Domain::Pid => b"perfconv pid",
            Domain::Order => b"perfconv order",
            Domain::Mapping => b"perfconv mapping",
            Domain::Place => b"perfconv place",
        }
    }
}

/// The letters of pseudonyms: no digits and no vowels, so that a pseudonym is never a word or a
/// number.
const LETTERS: &[u8; 16] = b"bcdfghjklmnpqrst";

/// Number of letters of a pseudonym: 56 bits.
pub(super) const LEN: usize = 14;

impl Key {
    /// Size in bytes.
    pub const SIZE: usize = 32;

    /// The fewest bytes that a secret may have.
    pub const LEAST: usize = 16;

    /// Returns a random key, which nobody knows.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn random() -> Result<Self> {
        let mut key = [0; Self::SIZE];
        getrandom::fill(&mut key).map_err(|error| Error::io("random numbers")(error.into()))?;
        Ok(Key(key))
    }

    /// Returns the key in `secret`, the content of a file.
    ///
    /// # Errors
    /// The secret has fewer than [`LEAST`](Self::LEAST) bytes.
    pub fn of_secret(secret: &[u8]) -> Result<Self> {
        if secret.len() < Self::LEAST {
            let what = format!(
                "a key needs at least {} bytes, but has {}: make one with head -c 32 /dev/urandom",
                Self::LEAST,
                secret.len()
            );
            return Err(Error::Usage(what));
        }
        let unkeyed = Key([0; Self::SIZE]);
        Ok(Key(unkeyed.hash_as(b"perfconv key", secret)))
    }

    fn hash_as(&self, personal: &[u8], data: &[u8]) -> [u8; 32] {
        // Key and personal string have valid sizes.
        let Ok(mut hash) =
            Blake2bMac::<U32>::new_with_salt_and_personal(Some(&self.0), &[], personal)
        else {
            return [0; 32];
        };
        hash.update(data);
        hash.finalize_fixed().into()
    }

    /// Returns the keyed hash of `data`.
    pub(super) fn hash(&self, domain: Domain, data: &[u8]) -> [u8; 32] {
        self.hash_as(domain.personal(), data)
    }

    /// Returns the pseudonym of `text`, in letters.
    pub(super) fn word(&self, domain: Domain, text: &[u8]) -> Vec<u8> {
        let hash = self.hash(domain, text);
        let halves = hash.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        let letters = halves.filter_map(|half| LETTERS.get(usize::from(half)).copied());
        letters.take(LEN).collect()
    }

    /// Returns the keyed hash of a number, as a number.
    pub(super) fn number(&self, domain: Domain, number: u64) -> u64 {
        self.number_of(domain, &number.to_le_bytes())
    }

    /// Returns the keyed hash of `data`, as a number.
    pub(super) fn number_of(&self, domain: Domain, data: &[u8]) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.hash(domain, data);
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Returns the pseudonym of a process or thread: another number for each number. 0 (the idle
    /// task) and all ones (none) stay. A number that Linux can assign (below 2^22) becomes another
    /// such number.
    pub(super) fn pid(&self, pid: u32) -> u32 {
        const MOST: u32 = 1 << 22;
        match pid {
            0 | u32::MAX => pid,
            1..MOST => self.walk(pid, 11, |new| new != 0),
            _ => self.walk(pid, 16, |new| (MOST..u32::MAX).contains(&new)),
        }
    }

    /// Permutes the numbers of twice `half` bits, and repeats this until the result is `valid`, as
    /// `number` is. This permutes the valid numbers.
    fn walk(&self, number: u32, half: u32, valid: impl Fn(u32) -> bool) -> u32 {
        let mut new = number;
        loop {
            new = self.feistel(new, half);
            if valid(new) {
                return new;
            }
        }
    }

    /// A Feistel network: a permutation of the numbers of twice `half` bits, for any key.
    fn feistel(&self, number: u32, half: u32) -> u32 {
        const ROUNDS: u8 = 8;
        let mask = u32::MAX >> (u32::BITS - half);
        let (mut left, mut right) = (number >> half & mask, number & mask);
        for round in 0..ROUNDS {
            let [a, b, c, d] = right.to_le_bytes();
            let [e, f, g, h, ..] = self.hash(Domain::Pid, &[round, half as u8, a, b, c, d]);
            (left, right) = (right, left ^ (u32::from_le_bytes([e, f, g, h]) & mask));
        }
        left << half | right
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn key(text: &str) -> Key {
        Key::of_secret(text.as_bytes()).unwrap()
    }

    #[test]
    fn pids_are_permuted() {
        let key = key("a secret of some length");
        let pids: Vec<u32> = (0..20_000)
            .chain([4_194_303, 4_194_304, u32::MAX - 1])
            .collect();
        let new: HashSet<u32> = pids.iter().map(|&pid| key.pid(pid)).collect();
        assert_eq!(new.len(), pids.len());
        assert_eq!((key.pid(0), key.pid(u32::MAX)), (0, u32::MAX));
        assert!((1..20_000).all(|pid| (1..1 << 22).contains(&key.pid(pid))));
        assert!(key.pid(1 << 22) >= 1 << 22);
        let moved = (1..20_000).filter(|&pid| key.pid(pid) != pid).count();
        assert!(moved > 19_900, "{moved}");
    }

    #[test]
    fn every_number_has_one_original() {
        let key = key("another secret of some length");
        let all: HashSet<u32> = (0..1 << 8).map(|number| key.feistel(number, 4)).collect();
        assert_eq!(all.len(), 1 << 8);
        assert!(all.iter().all(|&number| number < 1 << 8));
    }

    #[test]
    fn pseudonyms_depend_on_key_and_domain() {
        let (one, other) = (key("0123456789abcdef"), key("0123456789abcdeg"));
        let word = |key: &Key, domain| key.word(domain, b"nginx");
        assert_eq!(word(&one, Domain::Comm), word(&one, Domain::Comm));
        assert_ne!(word(&one, Domain::Comm), word(&one, Domain::File));
        assert_ne!(word(&one, Domain::Comm), word(&other, Domain::Comm));
        assert_eq!(word(&one, Domain::Comm).len(), LEN);
        assert_ne!(one.pid(1234), other.pid(1234));
    }

    #[test]
    fn random_keys_differ_and_short_ones_are_refused() {
        let (one, other) = (Key::random().unwrap(), Key::random().unwrap());
        assert_ne!(one.0, other.0);
        assert!(Key::of_secret(b"too short").is_err());
        assert_eq!(format!("{one:?}"), "Key");
    }
}
