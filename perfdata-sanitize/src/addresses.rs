//! New addresses: every mapped address range moves as a whole.
//!
//! The ranges of all mappings of the recording are joined where they touch or overlap. Each of the
//! resulting islands gets a new place, so that offsets in a mapping, and with them symbols, stay.
//! The place depends on the key and on the file and the offset at the start of the island, not on
//! the original address: the order of the islands would reveal a part of it. The same file is at
//! the same place in other recordings with the same key, as long as the place is free. Addresses
//! that nothing maps become 0.
//!
//! The places do not depend on the process or the time, so an address can be converted without
//! knowing whose it is. The kernel's image has a fixed place. Below 4 GiB there is not enough
//! space: there, the islands follow each other.

use std::ops::Range;

use perfdata_core::record::CallchainContext;

pub(super) use super::area::Identity;
use super::area::{Area, Island, MappedRange, in_a_row};
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

/// The ranges of one address space.
#[derive(Debug, Default)]
struct Map {
    /// Sorted and separate after [`settle`](Self::settle).
    ranges: Vec<MappedRange>,
    /// Number of settled ranges.
    settled: usize,
    islands: Vec<Island>,
}

impl Map {
    fn add(&mut self, first: u64, last: u64, what: impl FnOnce() -> Identity) {
        if let Some(before) = self.ranges.last()
            && (before.first..=before.last).contains(&first)
            && last <= before.last
        {
            return;
        }
        let (last, what) = (last.max(first), what());
        self.ranges.push(MappedRange { first, last, what });
        if self.ranges.len() > self.settled.saturating_mul(2).saturating_add(1 << 16) {
            self.settle();
        }
    }

    /// Joins ranges that touch or overlap.
    fn settle(&mut self) {
        self.ranges.sort_unstable();
        let mut joined: Vec<MappedRange> = Vec::with_capacity(self.ranges.len());
        for &range in &self.ranges {
            match joined.last_mut() {
                Some(before) if range.first <= before.last.saturating_add(1) => {
                    before.last = before.last.max(range.last)
                }
                _ => joined.push(range),
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
    /// Whether one of them is rotated, so that every address may be new.
    is_rotated: bool,
    /// Whether no original address is among them.
    is_apart: bool,
}

impl Addresses {
    /// Adds a mapping: its first address, and the address after the last one.
    pub(super) fn add(&mut self, space: Space, range: Range<u64>, what: impl FnOnce() -> Identity) {
        let last = range.end.saturating_sub(1).max(range.start);
        match space {
            Space::Kernel => self.kernel.add(range.start, last, what),
            _ => self.user.add(range.start, last, what),
        }
    }

    /// Adds the image of a kernel.
    pub(super) fn add_image(&mut self, range: Range<u64>) {
        self.image.get_or_insert(range.start);
        self.add(Space::Kernel, range, Identity::default);
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

    /// Adds what follows the code of the kernel's image up to the next mapping: the record maps
    /// only the code, but there are symbols behind it, which perf uses (`maps__fixup_end`,
    /// tools/perf/util/maps.c, 7.2).
    fn extend_image(&mut self) {
        /// More than the size of an image in bytes: its code, data and the code for the start.
        const IMAGE: u64 = 128 << 20;
        // Below 4 GiB, other numbers would look like addresses.
        let Some(image) = self.image.filter(|&image| image >= 1 << 32) else {
            return;
        };
        let behind = self
            .kernel
            .ranges
            .partition_point(|range| range.first <= image);
        let next = self.kernel.ranges.get(behind).map(|range| range.first);
        let end = image.saturating_add(IMAGE).min(next.unwrap_or(u64::MAX));
        let range = behind
            .checked_sub(1)
            .and_then(|at| self.kernel.ranges.get_mut(at));
        if let Some(range) = range {
            range.last = range.last.max(end.saturating_sub(1));
        }
    }

    /// Finds a place for every island.
    pub(super) fn settle(&mut self, key: &Key) {
        self.user.settle();
        self.kernel.settle();
        self.extend_image();
        let old: Vec<MappedRange> = [&self.user.ranges[..], &self.kernel.ranges].concat();
        let mut user = ordered(&self.user.ranges, key);
        let low = user
            .extract_if(.., |range| range.last < 1 << 32)
            .collect::<Vec<_>>();
        let mut kernel = ordered(&self.kernel.ranges, key);
        let image = self.image.and_then(|image| {
            let is_image = |range: &MappedRange| (range.first..=range.last).contains(&image);
            let at = kernel.iter().position(is_image)?;
            Some(kernel.remove(at))
        });
        let high = kernel
            .extract_if(.., |range| range.first >= 1 << 63)
            .collect::<Vec<_>>();
        let (high_image, image) = match image {
            Some(image) if image.first >= 1 << 63 => (Some(image), None),
            image => (None, image),
        };
        // Addresses of 32-bit processes remain below 4 GiB, and those of kernels in the upper half:
        // readers tell them apart in this way.
        let user_islands = [
            in_a_row(&low, 0x20_0000, key),
            Area::new(0x1000_0000_0000, 0x800_0000_0000, &old).islands(None, &user, key),
        ];
        let kernel_islands = [
            Area::new(0xffff_8000_1000_0000, 0x100_0000_0000, &old).islands(high_image, &high, key),
            Area::new(0x2000_0000_0000, 0x800_0000_0000, &old).islands(image, &kernel, key),
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
        self.is_rotated = new.iter().any(|(first, last)| last < first);
        // Only islands that are larger than their area overlap there.
        new.dedup_by(|(first, last), before| {
            let overlaps = *first <= before.1;
            if overlaps {
                before.1 = before.1.max(*last);
            }
            overlaps
        });
        // The address after a range is new, too.
        let overlaps = |old: &MappedRange| {
            let behind = new.partition_point(|(first, _)| *first <= old.last);
            let before = behind.checked_sub(1).and_then(|at| new.get(at));
            before.is_some_and(|(_, last)| last.saturating_add(1) >= old.first)
        };
        self.is_apart = !self.is_rotated && !old.iter().any(overlaps);
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

    /// Returns the range with `address` of a single address space: its first and its last address,
    /// and what is added to each.
    pub(super) fn range_of(&self, space: Space, address: u64) -> Option<(u64, u64, u64)> {
        let map = match space {
            Space::Kernel => &self.kernel,
            Space::User => &self.user,
            Space::Any => return None,
        };
        map.find(address)
            .map(|island| (island.first, island.last, island.delta))
    }

    /// Returns the range of new addresses with `address`, with the one after the last.
    pub(super) fn new_range(&self, address: u64) -> Option<(u64, u64)> {
        let after = self.new.partition_point(|(first, _)| *first <= address);
        let (first, last) = *self.new.get(after.checked_sub(1)?)?;
        (first..=last.saturating_add(1))
            .contains(&address)
            .then_some((first, last.saturating_add(1)))
    }

    /// Returns whether the stage writes this address: a mapped one, the one after a mapping, or 0.
    pub(super) fn is_new(&self, address: u64) -> bool {
        address == 0
            || self.is_rotated
            || CallchainContext::of(address).is_some()
            || self.new_range(address).is_some()
    }

    /// Returns whether the address was mapped in the original, is large enough not to be any other
    /// number, and is no new address.
    pub(super) fn is_original(&self, address: u64) -> bool {
        let is_mapped = || self.user.find(address).is_some() || self.kernel.find(address).is_some();
        address >= 1 << 32 && is_mapped() && self.is_original_if_mapped(address)
    }

    /// Returns the same for an address that something maps.
    pub(super) fn is_original_if_mapped(&self, address: u64) -> bool {
        address >= 1 << 32
            && CallchainContext::of(address).is_none()
            && (self.is_apart || !self.is_new(address))
    }

    /// Returns the first addresses of all islands of the original.
    pub(super) fn originals(&self) -> impl Iterator<Item = u64> + '_ {
        let islands = self.user.islands.iter().chain(&self.kernel.islands);
        islands
            .map(|island| island.first)
            .filter(|&first| self.is_original(first))
    }
}

/// Returns the ranges in an order that depends only on the key, what they are and the ranges; what
/// becomes different for each of them.
fn ordered(ranges: &[MappedRange], key: &Key) -> Vec<MappedRange> {
    let mut keyed: Vec<(u64, MappedRange)> = ranges
        .iter()
        .map(|&range| (key.number(Domain::Order, range.first), range))
        .collect();
    keyed.sort_unstable_by_key(|(order, range)| (range.what, *order));
    let mut before = None;
    let mut number: u64 = 0;
    for (_, range) in &mut keyed {
        number = match before == Some(range.what) {
            true => number.saturating_add(1),
            false => 0,
        };
        before = Some(range.what);
        if number > 0 {
            // Another one of the same file.
            range.what.name = key.number(Domain::Order, range.what.name ^ number << 32);
        }
    }
    keyed.into_iter().map(|(_, range)| range).collect()
}

#[cfg(test)]
mod tests {
    use super::super::area::PAGE;
    use super::*;

    fn key() -> Key {
        Key::of_secret(b"a secret of some length").unwrap()
    }

    fn what(name: u64) -> Identity {
        Identity {
            name,
            offset: 0x1000,
        }
    }

    /// More of the same file is mapped, from its start on.
    #[test]
    fn files_keep_their_place() {
        let place = |range: Range<u64>, offset: u64| {
            let mut addresses = Addresses::default();
            addresses.add(Space::User, range, || Identity { name: 7, offset });
            addresses.settle(&key());
            addresses.of(Space::User, 0x7f00_0000_5000)
        };
        let all = place(0x7f00_0000_0000..0x7f00_0000_9000, 0);
        assert_eq!(place(0x7f00_0000_4000..0x7f00_0000_6000, 0x4000), all);
        assert_ne!(place(0x7f00_0000_4000..0x7f00_0000_6000, 0x5000), all);
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
            addresses.add(Space::User, map, || what(1));
        }
        addresses.add_image(0xffff_ffff_9560_0000..0xffff_ffff_96a0_0000);
        let module = 0xffff_ffff_c012_3000..0xffff_ffff_c012_5000;
        addresses.add(Space::Kernel, module, || what(2));
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
        // Data and the code for the start follow the mapped code, but not for ever.
        assert_eq!(
            addresses.of(Space::Kernel, 0xffff_ffff_97a0_0010),
            Some(0xffff_8000_1240_0010)
        );
        assert_eq!(addresses.of(Space::Kernel, 0xffff_ffff_9e60_0000), None);
        assert_eq!(addresses.originals().count(), 4);
        // Of s390x, too, where the kernel is in the lower half.
        let mut addresses = Addresses::default();
        addresses.add_image(0x3ff_fee3_f480..0x3ff_ffa0_0000);
        addresses.settle(&key());
        let place = addresses.of(Space::Kernel, 0x3ff_fee3_f480);
        assert_eq!(
            addresses.of(Space::Kernel, 0x3ff_ffe1_b192),
            place.map(|place| place + 0xfd_bd12)
        );
    }

    /// An island that is larger than the area for it overlaps others there.
    #[test]
    fn all_addresses_of_overlapping_islands_are_new() {
        let mut addresses = Addresses::default();
        addresses.add_image(0x3ff_fe8f_8000..0x500_03ff_fe8f_8000);
        let modules = (0..8).map(|at| 0x3ff_7eaa_8000 + (at << 16));
        for start in modules.clone() {
            addresses.add(Space::Kernel, start..start + 0x3000, || what(start));
        }
        addresses.settle(&key());
        for address in modules.chain([0x3ff_fe8f_8000, 0x1000_03ff_fe8f_8000]) {
            let new = addresses.of(Space::Kernel, address);
            assert!(new.is_none_or(|new| addresses.is_new(new)), "{address:#x}");
        }
        let far = addresses.of(Space::Kernel, 0x400_03ff_fe8f_8000);
        assert!(far.is_some_and(|new| addresses.is_new(new)));
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
            addresses.add(Space::User, range.clone(), || what(1));
            addresses.add_image(range);
        }
        addresses.settle(&key());
        for address in [0, 1, 1 << 32, 1 << 63, u64::MAX - 1] {
            let new = addresses.of(Space::User, address).unwrap();
            assert_ne!(new, address);
            assert!(addresses.is_new(new));
        }
    }

    /// The same files are at the same places in another recording, wherever they were, and other
    /// ones are not there.
    #[test]
    fn the_place_depends_on_what_is_mapped() {
        let places = |starts: &[(u64, u64)], secret: &[u8]| -> Vec<u64> {
            let mut addresses = Addresses::default();
            for &(start, name) in starts {
                addresses.add(Space::User, start..start + 0x20_0000, || what(name));
            }
            addresses.add_image(0xffff_ffff_9560_0000..0xffff_ffff_96a0_0000);
            addresses.settle(&Key::of_secret(secret).unwrap());
            let place = |&(start, _): &(u64, u64)| addresses.of(Space::User, start).unwrap();
            starts.iter().map(place).collect()
        };
        let one: Vec<(u64, u64)> = (0..200)
            .map(|at| (0x7f00_0000_0000 + (at << 24), at))
            .collect();
        let mut other: Vec<(u64, u64)> = one
            .iter()
            .map(|&(start, name)| (start ^ 0x1234_0000_0000, name))
            .collect();
        other.truncate(150);
        other.push((0x5555_5555_4000, 777));
        let key = b"0123456789abcdef";
        let (a, b) = (places(&one, key), places(&other, key));
        assert_eq!(a[..150], b[..150]);
        assert!(!a.contains(&b[150]));
        let c = places(&one, b"0123456789abcdeg");
        assert!(a.iter().all(|place| !c.contains(place)));
        // None overlaps with another.
        let mut sorted = a.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] > 0x20_0000));
    }

    #[test]
    fn the_order_depends_on_the_key() {
        let places = |secret: &[u8]| {
            let mut addresses = Addresses::default();
            for at in 0..32 {
                let start = 0x5000_0000_0000 + (at << 32);
                addresses.add(Space::User, start..start + 0x1000, || what(1));
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
