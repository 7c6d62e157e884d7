//! New addresses: every mapped address range moves as a whole.
//!
//! The ranges of all mappings of the recording are joined where they touch or overlap. Each of the
//! resulting islands gets a new place, so that offsets in a mapping, and with them symbols, stay.
//! The islands of one address space follow each other in an order that depends on the key: the
//! order of the original addresses would reveal a part of them. Addresses that nothing maps become
//! 0.
//!
//! The places do not depend on the process or the time, so an address can be converted without
//! knowing whose it is. The kernel's image has a fixed place.

use std::ops::Range;

use perfdata_core::record::CallchainContext;

use super::key::{Domain, Key};

/// An address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// That of a kernel or hypervisor.
    Kernel,
    /// That of the processes.
    User,
    /// It is not known which.
    Any,
}

/// Islands of this size cannot be moved elsewhere as a whole: they are rotated.
const HUGE: u64 = 1 << 62;

/// Distance between islands, so that they do not touch, and alignment of their places in bytes.
const GAP: u64 = 1 << 16;
const PAGE: u64 = 1 << 12;

/// An address range that moves as a whole: its first address, its last one, and what is added to
/// each (modulo 2^64).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Island {
    first: u64,
    last: u64,
    delta: u64,
}

/// The ranges of one address space.
#[derive(Debug, Default)]
struct Map {
    /// Ranges, first and last address; sorted and separate after [`settle`](Self::settle).
    ranges: Vec<(u64, u64)>,
    /// Number of settled ranges.
    settled: usize,
    islands: Vec<Island>,
}

impl Map {
    fn add(&mut self, first: u64, last: u64) {
        if let Some((from, to)) = self.ranges.last()
            && (*from..=*to).contains(&first)
            && last <= *to
        {
            return;
        }
        self.ranges.push((first, last.max(first)));
        if self.ranges.len() > self.settled.saturating_mul(2).saturating_add(1 << 16) {
            self.settle();
        }
    }

    /// Joins ranges that touch or overlap.
    fn settle(&mut self) {
        self.ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(self.ranges.len());
        for &(first, last) in &self.ranges {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last)
                }
                _ => joined.push((first, last)),
            }
        }
        self.settled = joined.len();
        self.ranges = joined;
    }

    fn find(&self, address: u64) -> Option<&Island> {
        let after = self
            .islands
            .partition_point(|island| island.first <= address);
        let island = self.islands.get(after.checked_sub(1)?)?;
        (address <= island.last).then_some(island)
    }

    fn new_address(&self, address: u64) -> Option<u64> {
        self.find(address)
            .map(|island| address.wrapping_add(island.delta))
    }
}

/// The new addresses.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    user: Map,
    kernel: Map,
    /// First address of a kernel's image.
    image: Option<u64>,
    /// The ranges of the new addresses, sorted.
    new: Vec<(u64, u64)>,
}

impl Addresses {
    /// Adds a mapping: its first address, and the address after the last one.
    pub(super) fn add(&mut self, space: Space, range: Range<u64>) {
        let last = range.end.saturating_sub(1).max(range.start);
        match space {
            Space::Kernel => self.kernel.add(range.start, last),
            _ => self.user.add(range.start, last),
        }
    }

    /// Adds the image of a kernel.
    pub(super) fn add_image(&mut self, range: Range<u64>) {
        self.image.get_or_insert(range.start);
        self.add(Space::Kernel, range);
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn held(&self) -> usize {
        let ranges = self
            .user
            .ranges
            .len()
            .saturating_add(self.kernel.ranges.len());
        ranges.saturating_mul(64)
    }

    /// Finds a place for every island.
    pub(super) fn settle(&mut self, key: &Key) {
        self.user.settle();
        self.kernel.settle();
        let old: Vec<(u64, u64)> = self
            .user
            .ranges
            .iter()
            .chain(&self.kernel.ranges)
            .copied()
            .collect();
        let mut user = ordered(&self.user.ranges, key);
        let low = user
            .extract_if(.., |(_, last)| *last < 1 << 32)
            .collect::<Vec<_>>();
        let mut kernel = ordered(&self.kernel.ranges, key);
        if let Some(image) = self.image
            && let Some(at) = kernel
                .iter()
                .position(|(first, last)| (*first..=*last).contains(&image))
        {
            let island = kernel.remove(at);
            kernel.insert(0, island);
        }
        let high = kernel
            .extract_if(.., |(first, _)| *first >= 1 << 63)
            .collect::<Vec<_>>();
        // Addresses of 32-bit processes remain below 4 GiB, and those of kernels in the upper half:
        // readers tell them apart in this way.
        let user_islands = [
            placed(&low, 0x20_0000, 0, &[], key),
            placed(&user, 0x1000_0000_0000, 0x800_0000_0000, &old, key),
        ];
        let kernel_islands = [
            placed(&high, 0xffff_8000_1000_0000, 0x100_0000_0000, &old, key),
            placed(&kernel, 0x2000_0000_0000, 0x800_0000_0000, &old, key),
        ];
        self.user.islands = user_islands.concat();
        self.kernel.islands = kernel_islands.concat();
        for map in [&mut self.user, &mut self.kernel] {
            map.islands.sort_unstable_by_key(|island| island.first);
        }
        let islands = self.user.islands.iter().chain(&self.kernel.islands);
        let mut new: Vec<(u64, u64)> = islands
            .map(|island| {
                (
                    island.first.wrapping_add(island.delta),
                    island.last.wrapping_add(island.delta),
                )
            })
            .collect();
        new.sort_unstable();
        self.new = new;
    }

    /// Returns the new address for `address`; nothing if nothing maps it.
    pub(super) fn of(&self, space: Space, address: u64) -> Option<u64> {
        match space {
            Space::Kernel => self.kernel.new_address(address),
            Space::User => self.user.new_address(address),
            Space::Any => {
                let (first, other) = match address >= 1 << 63 {
                    true => (&self.kernel, &self.user),
                    false => (&self.user, &self.kernel),
                };
                first
                    .new_address(address)
                    .or_else(|| other.new_address(address))
            }
        }
    }

    /// Returns whether the stage writes this address: a mapped one, the one after a mapping, or 0.
    pub(super) fn is_new(&self, address: u64) -> bool {
        let is_in = |(first, last): &(u64, u64)| match first <= last {
            true => (*first..=last.saturating_add(1)).contains(&address),
            // Rotated.
            false => true,
        };
        let after = self.new.partition_point(|(first, _)| *first <= address);
        address == 0
            || CallchainContext::of(address).is_some()
            || self
                .new
                .get(..after)
                .unwrap_or_default()
                .iter()
                .rev()
                .take(2)
                .any(is_in)
            || self.new.iter().any(|(first, last)| last < first)
    }

    /// Returns whether the address was mapped in the original, is large enough not to be any other
    /// number, and is no new address.
    pub(super) fn is_original(&self, address: u64) -> bool {
        let is_mapped = || self.user.find(address).is_some() || self.kernel.find(address).is_some();
        address >= 1 << 32
            && CallchainContext::of(address).is_none()
            && is_mapped()
            && !self.is_new(address)
    }

    /// Returns the first addresses of all islands of the original.
    pub(super) fn originals(&self) -> impl Iterator<Item = u64> + '_ {
        let islands = self.user.islands.iter().chain(&self.kernel.islands);
        islands
            .map(|island| island.first)
            .filter(|&first| self.is_original(first))
    }
}

/// Returns whether an address does not occur by chance where other numbers touch: enough of its
/// bytes are neither those of small numbers nor those of -1.
pub(super) fn is_distinct(address: u64) -> bool {
    distinct_bytes(address) >= 4
}

/// Returns whether an address does not occur by chance in the other byte order. That of a kernel
/// does: its first bytes are those of a callchain's markers, and only 4 follow.
pub(super) fn is_distinct_reversed(address: u64) -> bool {
    distinct_bytes(address) >= 5
}

fn distinct_bytes(address: u64) -> usize {
    let bytes = address.to_le_bytes();
    let distinct = bytes.iter().filter(|byte| !matches!(byte, 0 | 0xff));
    distinct.count()
}

/// Returns the ranges in an order that depends only on the key and the ranges.
fn ordered(ranges: &[(u64, u64)], key: &Key) -> Vec<(u64, u64)> {
    let mut keyed: Vec<(u64, (u64, u64))> = ranges
        .iter()
        .map(|&range| (key.number(Domain::Order, range.0), range))
        .collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, range)| range).collect()
}

/// Puts `ranges` one after the other from `base` on; from a higher place, in steps of `step`, if the
/// new addresses would be among those of the original, `old`.
fn placed(
    ranges: &[(u64, u64)],
    base: u64,
    step: u64,
    old: &[(u64, u64)],
    key: &Key,
) -> Vec<Island> {
    const TRIES: u64 = 16;
    let size = |range: &(u64, u64)| (range.1 - range.0).saturating_add(2 * GAP);
    let total = ranges.iter().filter(|range| size(range) < HUGE).map(size);
    let total = total.fold(0, u64::saturating_add);
    let is_free = |base: &u64| {
        let end = base.saturating_add(total);
        old.iter().all(|(first, last)| end < *first || last < base)
    };
    let bases = (0..TRIES).map(|at| base.saturating_add(at.saturating_mul(step)));
    let mut next = bases.into_iter().find(is_free).unwrap_or(base);
    ranges
        .iter()
        .map(|&(first, last)| {
            if size(&(first, last)) >= HUGE {
                // It cannot be anywhere else: rotate it by an unknown number of pages.
                let by = key.number(Domain::Order, !first) % (1 << 40) * PAGE;
                let (first, last, delta) = (first, last, by.max(PAGE));
                return Island { first, last, delta };
            }
            // The offset in the page stays.
            let place = next.saturating_add(first % PAGE);
            let end = place.saturating_add(last - first);
            next = end.saturating_add(GAP) / PAGE * PAGE;
            let delta = place.wrapping_sub(first);
            Island { first, last, delta }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::of_secret(b"a secret of some length").unwrap()
    }

    #[test]
    fn ranges_move_as_a_whole() {
        let mut addresses = Addresses::default();
        let maps = [
            0x5555_5555_4000..0x5555_5556_0000,
            0x7fff_f7dd_5000..0x7fff_f7f4_d000,
            0x7fff_f7f4_d000..0x7fff_f7fa_0000,
            0x40_0000..0x41_0000,
        ];
        for map in maps.clone() {
            addresses.add(Space::User, map);
        }
        addresses.add_image(0xffff_ffff_9560_0000..0xffff_ffff_96a0_0000);
        addresses.add(Space::Kernel, 0xffff_ffff_c012_3000..0xffff_ffff_c012_5000);
        addresses.settle(&key());
        let of = |address| addresses.of(Space::User, address);
        for map in &maps {
            let start = of(map.start).unwrap();
            assert_eq!(of(map.start + 0x123), Some(start + 0x123));
            assert_eq!(of(map.end - 1), Some(start + (map.end - 1 - map.start)));
            assert_eq!(start % PAGE, 0);
            assert!(addresses.is_new(start) && !addresses.is_original(start));
            assert!(map.start < 1 << 32 || addresses.is_original(map.start));
        }
        // Touching mappings still touch; others do not.
        assert_eq!(
            of(0x7fff_f7f4_d000),
            of(0x7fff_f7f4_cfff).map(|address| address + 1)
        );
        assert_eq!(
            (of(0x5555_5556_0000), of(0), of(0x1234)),
            (None, None, None)
        );
        assert!(of(0x40_0000).unwrap() < 1 << 32);
        assert_eq!(
            addresses.of(Space::Kernel, 0xffff_ffff_9560_0010),
            Some(0xffff_8000_1000_0010)
        );
        assert_eq!(
            addresses.of(Space::Any, 0xffff_ffff_9560_0010),
            Some(0xffff_8000_1000_0010)
        );
        assert_eq!(addresses.of(Space::User, 0xffff_ffff_9560_0010), None);
        assert_eq!(addresses.originals().count(), 4);
    }

    /// Ranges that overlap, wrap or cover everything are no reason to fail.
    #[test]
    fn hostile_ranges_are_moved_somewhere() {
        let mut addresses = Addresses::default();
        let wrong = Range {
            start: u64::MAX,
            end: 3,
        };
        for range in [0..u64::MAX, 5..5, wrong, 1 << 63..u64::MAX] {
            addresses.add(Space::User, range.clone());
            addresses.add_image(range);
        }
        addresses.settle(&key());
        for address in [0, 1, 1 << 32, 1 << 63, u64::MAX - 1] {
            let new = addresses.of(Space::User, address).unwrap();
            assert_ne!(new, address);
            assert!(addresses.is_new(new));
        }
    }

    #[test]
    fn the_order_depends_on_the_key() {
        let places = |secret: &[u8]| {
            let mut addresses = Addresses::default();
            for at in 0..32 {
                addresses.add(
                    Space::User,
                    (0x5000_0000_0000 + (at << 32))..(0x5000_0000_1000 + (at << 32)),
                );
            }
            addresses.settle(&Key::of_secret(secret).unwrap());
            (0..32)
                .map(|at| {
                    addresses
                        .of(Space::User, 0x5000_0000_0000 + (at << 32))
                        .unwrap()
                })
                .collect::<Vec<_>>()
        };
        let (one, other) = (places(b"0123456789abcdef"), places(b"0123456789abcdeg"));
        assert_ne!(one, other);
        assert_eq!(one, places(b"0123456789abcdef"));
        assert!(!one.is_sorted());
    }
}
