//! Which part of a recording a sample belongs to, while the recording is read in the order of time.

use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_session::CommId;

use super::by::By;
use super::decisions::{Divided, SHARED};
use super::numbers::{Bits, Ordinals};
use perfdata_convert::count::number_of;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::pipeline::to_parts::PartNumber;

/// What the samples of a part have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    /// The number of an interval of time, from the first sample on.
    Interval(u64),
    /// The number of a part, in the order of time.
    Next(u64),
    Pid(u32),
    Tid(u32),
    Comm(CommId),
    Cpu(u32),
    Event(usize),
    /// None of these is known, or there are too many.
    Other,
}

/// What determines the part of a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) time: Option<u64>,
    /// Size of its record in bytes.
    pub(super) size: u64,
    /// Its key, if samples are divided by keys.
    pub(super) key: Key,
}

/// A part so far.
#[derive(Debug, Clone)]
pub(super) struct Building {
    pub(super) key: Key,
    pub(super) samples: u64,
    /// Times of its first and last sample.
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
    /// Size of its samples in bytes.
    size: u64,
}

/// The parts of a recording so far.
#[derive(Debug)]
pub(super) struct Parts {
    by: By,
    list: Vec<Building>,
    by_key: HashMap<Key, PartNumber, RandomState>,
    /// Time of the first sample.
    start: Option<u64>,
    samples: Vec<PartNumber>,
    /// The further parts of samples.
    also: Vec<(u64, PartNumber)>,
    /// The records that are not samples, and the time of each; 0 if it has none.
    ordinals: Ordinals,
    times: Vec<u64>,
    /// The keys of records that belong to one part, and the parts of those that belong to some, by
    /// the ordinals of the records.
    keys: Vec<(u64, Key)>,
    only: Vec<(u64, Vec<PartNumber>)>,
    /// Ordinals of the records that belong to a single part by their time, and of those of the last
    /// part.
    single: Bits,
    at_end: Vec<u64>,
    /// Size of the records so far that all further parts need, in bytes.
    lasting: u64,
    /// Size of the records of the last part that are not samples, in bytes.
    others: u64,
}

/// Maximum number of parts by keys. All are written at the same time.
pub(super) const MOST_KEYS: usize = 250;

impl Parts {
    /// Maximum number of parts.
    const MOST: usize = SHARED as usize;

    pub(super) fn new(by: By) -> Self {
        Parts {
            by,
            list: Vec::new(),
            by_key: HashMap::default(),
            start: None,
            samples: Vec::new(),
            also: Vec::new(),
            ordinals: Ordinals::default(),
            times: Vec::new(),
            keys: Vec::new(),
            only: Vec::new(),
            single: Bits::default(),
            at_end: Vec::new(),
            lasting: 0,
            others: 0,
        }
    }

    pub(super) fn by(&self) -> By {
        self.by
    }

    /// Returns the time of the first sample, where the first interval starts.
    pub(super) fn start(&self) -> u64 {
        self.start.unwrap_or(0)
    }

    /// Counts a record that is not a sample. Records must be passed in the order of the input.
    pub(super) fn count(&mut self, number: u64) {
        self.ordinals.push(number);
        self.times.push(0);
    }

    /// Returns the ordinal of a record among those that are not samples.
    pub(super) fn ordinal(&self, number: u64) -> u64 {
        self.ordinals.of(number)
    }

    /// Adds a record that is not a sample: the parts before its time do not need it. All parts
    /// after it do, if it is not about a task. Records are passed in the order of time.
    pub(super) fn record(&mut self, number: u64, time: Option<u64>, size: u64, is_of_task: bool) {
        self.others = self.others.saturating_add(size);
        if !is_of_task {
            self.lasting = self.lasting.saturating_add(size);
        }
        let at = usize::try_from(self.ordinal(number)).unwrap_or(usize::MAX);
        if let (Some(known), Some(time)) = (self.times.get_mut(at), time) {
            *known = time;
        }
    }

    /// Makes a record part of only one part, by its time or its key.
    pub(super) fn belongs_to(&mut self, number: u64, key: Option<Key>) {
        let ordinal = self.ordinal(number);
        if self.by.is_ordered() {
            self.single.insert(ordinal);
        } else if let Some(key) = key {
            self.keys.push((ordinal, key));
        }
    }

    /// Makes a record part of only the last part.
    pub(super) fn belongs_to_last(&mut self, number: u64) {
        let ordinal = self.ordinal(number);
        self.at_end.push(ordinal);
    }

    /// Makes a record part of only these parts.
    pub(super) fn belongs_to_parts(&mut self, number: u64, parts: &[PartNumber]) {
        let ordinal = self.ordinal(number);
        self.only.push((ordinal, parts.to_vec()));
    }

    /// Adds a sample, and returns its part. `living` is the size of the records about living tasks
    /// in bytes, which a part that starts now needs.
    ///
    /// # Errors
    /// There are too many parts, or a part would be too large.
    pub(super) fn sample(&mut self, number: u64, facts: &Facts, living: u64) -> Result<PartNumber> {
        let key = self.key(facts, living)?;
        let part = self.part(key)?;
        if let Some(building) = self.list.get_mut(usize::from(part)) {
            building.add(facts.time);
            building.size = building.size.saturating_add(facts.size);
        }
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        if self.samples.len() <= at {
            self.samples.resize(at.saturating_add(1), SHARED);
        }
        if let Some(known) = self.samples.get_mut(at) {
            *known = part;
        }
        Ok(part)
    }

    /// Adds a sample also to the part with this key, and returns this part.
    ///
    /// # Errors
    /// There are too many parts.
    pub(super) fn sample_also(
        &mut self,
        number: u64,
        key: Key,
        time: Option<u64>,
    ) -> Result<PartNumber> {
        let part = self.part(key)?;
        if let Some(building) = self.list.get_mut(usize::from(part)) {
            building.add(time);
        }
        self.also.push((number, part));
        Ok(part)
    }

    /// Returns the key of a sample.
    fn key(&mut self, facts: &Facts, living: u64) -> Result<Key> {
        let last = self
            .list
            .last()
            .map(|part| (part.key, part.samples, part.size));
        match self.by {
            By::Time(length) => {
                let Some(time) = facts.time else {
                    return Ok(last.map_or(Key::Interval(0), |(key, ..)| key));
                };
                let since = time.saturating_sub(*self.start.get_or_insert(time));
                Ok(Key::Interval(since.checked_div(length).unwrap_or(0)))
            }
            By::Samples(most) => Ok(match last {
                Some((key, samples, _)) if samples < most => key,
                _ => Key::Next(self.list.len() as u64),
            }),
            By::Size(most) => {
                if let Some((key, _, size)) = last
                    && size.saturating_add(self.others).saturating_add(facts.size) <= most
                {
                    return Ok(key);
                }
                self.others = self.lasting.saturating_add(living);
                if self.others.saturating_add(facts.size) > most {
                    let samples = self.list.iter().map(|part| part.samples);
                    return Err(Error::Refused(format!(
                        "a part of {most} bytes is too small: after {}, each part needs {} bytes \
                         of records about tasks and mappings",
                        number_of(samples.sum(), "sample"),
                        self.others
                    )));
                }
                Ok(Key::Next(self.list.len() as u64))
            }
            _ => Ok(facts.key),
        }
    }

    /// Returns the part of samples with this key. Adds it if there is none.
    pub(super) fn part(&mut self, mut key: Key) -> Result<PartNumber> {
        if let Some(&part) = self.by_key.get(&key) {
            return Ok(part);
        }
        // The last one is for all further keys.
        let is_full = self.list.len() >= Self::MOST.saturating_sub(1);
        if is_full && self.by.is_ordered() {
            return Err(Error::Refused(format!(
                "there would be more than {} parts",
                self.list.len()
            )));
        }
        if is_full {
            key = Key::Other;
            if let Some(&part) = self.by_key.get(&key) {
                return Ok(part);
            }
        }
        let part = PartNumber::try_from(self.list.len()).unwrap_or(SHARED);
        self.list.push(Building {
            key,
            samples: 0,
            first: None,
            last: None,
            size: 0,
        });
        self.by_key.insert(key, part);
        Ok(part)
    }

    /// Returns the memory use in bytes, except two bytes for each record.
    pub(super) fn held(&self) -> usize {
        let lists = [self.keys.len(), self.only.len(), self.at_end.len()];
        let lists = lists.into_iter().fold(0, usize::saturating_add);
        self.ordinals
            .held()
            .saturating_add(self.times.len().saturating_mul(8))
            .saturating_add(lists.saturating_mul(48))
            .saturating_add(
                self.also
                    .len()
                    .saturating_mul(size_of::<(u64, PartNumber)>()),
            )
            .saturating_add(self.list.len().saturating_mul(96))
    }

    /// Returns the parts in their order, those of each record, and the new number of each part that
    /// [`sample`](Self::sample) returned.
    pub(super) fn finish(self) -> (Vec<Building>, Divided, Vec<PartNumber>) {
        let Parts {
            by,
            list,
            by_key,
            start,
            mut samples,
            also,
            times,
            keys,
            only,
            single,
            at_end,
            ..
        } = self;
        let (mut list, new) = arrange(list, by.is_ordered());
        let renumber = |part: PartNumber| new.get(usize::from(part)).copied().unwrap_or(part);
        for part in samples.iter_mut().filter(|part| **part != SHARED) {
            *part = renumber(*part);
        }
        // Several keys may have become one part, which contains a sample once.
        let mut all: Vec<(u64, PartNumber)> = Vec::with_capacity(also.len());
        let mut also: Vec<_> = also
            .into_iter()
            .map(|(at, part)| (at, renumber(part)))
            .collect();
        also.sort_unstable();
        for (number, part) in also {
            let at = usize::try_from(number).unwrap_or(usize::MAX);
            let is_repeated = samples.get(at) == Some(&part) || all.last() == Some(&(number, part));
            match list.get_mut(usize::from(part)) {
                Some(part) if is_repeated => part.samples = part.samples.saturating_sub(1),
                _ => all.push((number, part)),
            }
        }
        let mut divided = Divided {
            samples,
            also: all,
            ..Divided::default()
        };
        // A record about a key without a part belongs to those of all other keys.
        let other = list
            .iter()
            .position(|part| part.key == Key::Other)
            .and_then(|at| PartNumber::try_from(at).ok());
        for (ordinal, key) in keys {
            let part = by_key.get(&key).map(|&part| renumber(part)).or(other);
            divided.only.insert(ordinal, part.into_iter().collect());
        }
        for (ordinal, parts) in only {
            let parts = parts.into_iter().map(renumber).collect();
            divided.only.insert(ordinal, parts);
        }
        let last = PartNumber::try_from(list.len().saturating_sub(1)).unwrap_or(0);
        for ordinal in at_end {
            divided.only.insert(ordinal, vec![last]);
        }
        if by.is_ordered() {
            let ends = ends(&list, by, start.unwrap_or(0));
            let first = |time: u64| ends.partition_point(|&end| end < time);
            let first = times.into_iter().map(first);
            divided.first = first
                .map(|part| PartNumber::try_from(part).unwrap_or(SHARED))
                .collect();
            divided.single = single;
        }
        (list, divided, new)
    }
}

/// Returns the last moment of each part. The last part has no end.
fn ends(list: &[Building], by: By, start: u64) -> Vec<u64> {
    let mut end = 0;
    let last = list.len().saturating_sub(1);
    let ends = list.iter().enumerate().map(|(at, part)| {
        end = match (by, part.key) {
            _ if at == last => u64::MAX,
            (By::Time(length), Key::Interval(number)) => {
                let number = number.saturating_add(1);
                start
                    .saturating_add(number.saturating_mul(length))
                    .saturating_sub(1)
            }
            _ => part.last.unwrap_or(0).max(end),
        };
        end
    });
    ends.collect()
}

/// Returns the parts in their order, and the new number of each. Only the largest of the parts by
/// keys remain, the others become one.
fn arrange(list: Vec<Building>, is_ordered: bool) -> (Vec<Building>, Vec<PartNumber>) {
    let mut order: Vec<usize> = (0..list.len()).collect();
    let part = |at: usize| list.get(at);
    let key = |at: usize| part(at).map_or(Key::Other, |part| part.key);
    let is_other = |at: usize| key(at) == Key::Other;
    if !is_ordered && order.len() > MOST_KEYS {
        order.sort_by_key(|&at| {
            (
                is_other(at),
                Reverse(part(at).map_or(0, |part| part.samples)),
            )
        });
        order.truncate(MOST_KEYS.saturating_sub(1));
        order.retain(|&at| !is_other(at));
    }
    order.sort_by_key(|&at| (is_other(at), key(at)));
    let mut arranged: Vec<Building> = order.iter().filter_map(|&at| part(at).cloned()).collect();
    let mut new = vec![None; list.len()];
    for (to, &at) in order.iter().enumerate() {
        if let Some(place) = new.get_mut(at) {
            *place = PartNumber::try_from(to).ok();
        }
    }
    let other = arranged.len();
    let rest = list.iter().zip(&new).filter(|(_, new)| new.is_none());
    if let Some(rest) = rest.map(|(part, _)| part.clone()).reduce(Building::with) {
        arranged.push(Building {
            key: Key::Other,
            ..rest
        });
    }
    let other = PartNumber::try_from(other).unwrap_or(SHARED);
    let new = new.into_iter().map(|part| part.unwrap_or(other)).collect();
    (arranged, new)
}

impl Building {
    /// Adds a sample.
    fn add(&mut self, time: Option<u64>) {
        self.samples = self.samples.saturating_add(1);
        if let Some(time) = time {
            let first = self.first.unwrap_or(time);
            self.first = Some(first.min(time));
            self.last = self.last.max(Some(time));
        }
    }

    /// Returns this part with the samples of another one.
    fn with(self, other: Building) -> Building {
        let known = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b);
        Building {
            key: self.key,
            samples: self.samples.saturating_add(other.samples),
            first: known(self.first, other.first).min(),
            last: known(self.last, other.last).max(),
            size: self.size.saturating_add(other.size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::record::is_known_time;

    fn facts(time: u64, size: u64, key: Key) -> Facts {
        Facts {
            time: is_known_time(time).then_some(time),
            size,
            key,
        }
    }

    /// Returns the parts of samples with these times, of 10 bytes each.
    fn parts_of(by: By, times: &[u64]) -> Result<Vec<PartNumber>> {
        let mut parts = Parts::new(by);
        for (number, &time) in times.iter().enumerate() {
            parts.sample(number as u64, &facts(time, 10, Key::Other), 0)?;
        }
        Ok(parts.finish().1.samples)
    }

    #[test]
    fn intervals_are_half_open() {
        let times = [100, 109, 110, 119, 150, 0, 120, 129];
        let parts = parts_of(By::Time(10), &times).expect("parts");
        assert_eq!(parts, [0, 0, 1, 1, 3, 3, 2, 2]);
    }

    #[test]
    fn parts_have_so_many_samples_or_bytes() {
        let times = [1, 2, 3, 4, 5];
        let expected = [0, 0, 1, 1, 2];
        assert_eq!(parts_of(By::Samples(2), &times).expect("parts"), expected);
        assert_eq!(parts_of(By::Size(29), &times).expect("parts"), expected);
        assert!(parts_of(By::Size(9), &times).is_err());
    }

    #[test]
    fn other_records_take_room() {
        let mut parts = Parts::new(By::Size(50));
        parts.count(0);
        parts.record(0, Some(5), 30, false);
        let sample = facts(6, 10, Key::Other);
        let found: Vec<_> = (1..5)
            .map(|number| parts.sample(number, &sample, 0))
            .collect();
        let found: Vec<_> = found.into_iter().map(|part| part.expect("room")).collect();
        assert_eq!(found, [0, 0, 1, 1]);
    }

    #[test]
    fn records_belong_to_the_parts_from_their_time_on() {
        let mut parts = Parts::new(By::Time(10));
        for (number, time) in [(0, 100), (2, 110), (4, 140)] {
            let sample = facts(time, 10, Key::Other);
            parts.sample(number, &sample, 0).expect("a part");
        }
        for (number, time) in [(1, 109), (3, 110), (5, 200)] {
            parts.count(number);
            parts.record(number, Some(time), 8, true);
        }
        parts.belongs_to(3, None);
        let (list, divided, _) = parts.finish();
        let has = |ordinal| {
            (0..3)
                .filter(|&part| divided.has(part, ordinal))
                .collect::<Vec<_>>()
        };
        assert_eq!(list.len(), 3);
        assert_eq!((has(0), has(1), has(2)), (vec![0, 1, 2], vec![1], vec![2]));
    }

    #[test]
    fn the_largest_keys_have_parts() {
        let mut parts = Parts::new(By::Tid);
        let mut number = 0;
        let last = MOST_KEYS as u32 + 10;
        for tid in 0..last {
            for _ in 0..=u32::from(tid >= 11) {
                let sample = facts(1, 10, Key::Tid(tid));
                parts.sample(number, &sample, 0).expect("a part");
                number += 1;
            }
        }
        parts.count(number);
        parts.belongs_to(number, Some(Key::Tid(last)));
        let (list, divided, new) = parts.finish();
        assert_eq!(list.len(), MOST_KEYS);
        assert_eq!(list.last().map(|part| part.key), Some(Key::Other));
        assert!(list.iter().rev().skip(1).all(|part| part.samples == 2));
        assert_eq!(list.iter().map(|part| part.samples).sum::<u64>(), number);
        let other = (MOST_KEYS - 1) as PartNumber;
        assert_eq!((new[0], new[last as usize - 1]), (other, other - 1));
        assert!(divided.has(other, 0) && !divided.has(0, 0));
    }
}
