//! The new values of fields that are addresses, and of callchains.

use perfdata_core::Endian;
use perfdata_core::content::{Content, Rewriter};
use perfdata_core::record::{CallchainContext, CpuMode, deferred_cookie};
use perfdata_session::{DsoKind, Mapped};

use super::{REMEMBERED, State};
use crate::addresses::Space;
use crate::cache::{bytes, number};
use crate::distinct::is_distinct;
use crate::policy::Action;

impl State {
    /// Notes the mode of the current record.
    pub(crate) fn enter(&mut self, mode: CpuMode) {
        self.space = match mode {
            CpuMode::KERNEL | CpuMode::GUEST_KERNEL | CpuMode::HYPERVISOR => Space::Kernel,
            CpuMode::USER | CpuMode::GUEST_USER => Space::User,
            _ => Space::Any,
        };
    }

    #[inline]
    pub(super) fn address(&mut self, space: Space, address: u64) -> u64 {
        let known = match (self.to_see, space) {
            (0, Space::Kernel) => self.kernel.get(address),
            (0, Space::User) => self.user.get(address),
            (0, Space::Any) => None,
            _ => match self.cache.get(space, address) {
                Some(new) => return new,
                None => None,
            },
        };
        match known {
            Some(delta) => address.wrapping_add(delta),
            None => self.look_up(space, address),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, space: Space, address: u64) -> u64 {
        let range = self.addresses.range_of(space, address);
        if self.to_see > 0 {
            self.see(address, range.is_some());
        }
        let new = match range {
            Some(range) => {
                match space {
                    Space::Kernel => self.kernel.put(address, range),
                    _ => self.user.put(address, range),
                }
                let (.., delta) = range;
                address.wrapping_add(delta)
            }
            None => self.addresses.of(space, address).unwrap_or(0),
        };
        self.cache.put(space, address, new);
        new
    }

    /// Gives new values to the words of a callchain in a record with this byte order.
    #[inline]
    pub(crate) fn chain(&mut self, words: &mut [[u8; 8]], endian: Endian) {
        match endian {
            Endian::Little => self.chain_of::<true>(words),
            Endian::Big => self.chain_of::<false>(words),
        }
    }

    fn chain_of<const LITTLE: bool>(&mut self, words: &mut [[u8; 8]]) {
        let numbers = words.iter().map(|word| number::<LITTLE>(*word));
        let has_cookie = deferred_cookie(numbers).is_some();
        let (mut rest, cookie) = words.split_at_mut(words.len() - usize::from(has_cookie));
        for word in cookie {
            let old = number::<LITTLE>(*word);
            *word = bytes::<LITTLE>(self.number("callchain", old, 8, Content::Cookie));
        }
        if self.action(Content::Callchain) == Action::Keep {
            return;
        }
        let mut space = self.space;
        loop {
            let moved = match (self.to_see, space) {
                (0, Space::Kernel) => self.kernel.move_all::<LITTLE>(rest),
                (0, Space::User) => self.user.move_all::<LITTLE>(rest),
                _ => 0,
            };
            let behind = rest.get_mut(moved..).unwrap_or_default();
            let Some((word, behind)) = behind.split_first_mut() else {
                return;
            };
            let old = number::<LITTLE>(*word);
            let new = match CallchainContext::of(old) {
                None => self.address(space, old),
                Some(context) => {
                    space = space_of_context(context);
                    // perf discards the whole callchain because of a marker without a meaning.
                    let has_name = context.name().is_some();
                    if has_name {
                        old
                    } else {
                        CallchainContext::FIRST
                    }
                }
            };
            *word = bytes::<LITTLE>(new);
            rest = behind;
        }
    }

    /// Remembers an original address, while there are few. `is_mapped` says whether it is known
    /// that something maps it.
    fn see(&mut self, address: u64, is_mapped: bool) {
        self.to_see = match self.seen.len() < REMEMBERED {
            true => self.to_see.saturating_sub(1),
            false => 0,
        };
        let is_original = match is_mapped {
            true => self.addresses.is_original_if_mapped(address),
            false => self.addresses.is_original(address),
        };
        if is_original {
            self.seen.insert(address);
        }
    }

    /// Returns whether a number is an original address that must not remain.
    pub(super) fn is_address(&self, number: u64) -> bool {
        number >= 1 << 32
            && is_distinct(number)
            && self.action(Content::Address) != Action::Keep
            && self.addresses.is_original(number)
    }

    /// Returns the new value of the file offset of a mapping.
    pub(super) fn offset(&mut self, mapped: &Mapped<'_>) -> u64 {
        let pgoff = mapped.pgoff;
        if self.policy.action(Content::MappingOffset) == Action::Keep || pgoff == 0 {
            return pgoff;
        }
        let space = self.space;
        let start = self.addresses.of(space, mapped.start);
        match mapped.dso.kind {
            // The address of the relocation symbol.
            DsoKind::Kernel => self.addresses.of(space, pgoff).unwrap_or_else(|| {
                let distance = pgoff.wrapping_sub(mapped.start);
                start.map_or(0, |start| start.wrapping_add(distance))
            }),
            // The address, before the memory was moved.
            DsoKind::Anonymous if pgoff == mapped.start => start.unwrap_or(0),
            DsoKind::Anonymous => match self.addresses.of(space, pgoff) {
                Some(new) if pgoff >= 1 << 32 => new,
                _ if pgoff < 1 << 32 => pgoff,
                _ => 0,
            },
            _ if self.addresses.is_original(pgoff) => 0,
            _ => pgoff,
        }
    }
}

/// Returns the address space of the addresses behind a marker.
fn space_of_context(context: CallchainContext) -> Space {
    match context {
        CallchainContext::KERNEL | CallchainContext::GUEST_KERNEL | CallchainContext::HV => {
            Space::Kernel
        }
        CallchainContext::USER | CallchainContext::USER_DEFERRED | CallchainContext::GUEST_USER => {
            Space::User
        }
        _ => Space::Any,
    }
}

/// Returns the address space of a mapping.
pub(crate) fn space_of(mode: CpuMode) -> Space {
    match mode {
        CpuMode::KERNEL | CpuMode::GUEST_KERNEL => Space::Kernel,
        _ => Space::User,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use perfdata_core::read::Limits;

    use super::super::LOOKED_UP;
    use super::*;
    use crate::addresses::{Addresses, Identity};
    use crate::key::Key;
    use crate::policy::Policy;

    /// The two ways to look up an address agree.
    #[test]
    fn addresses_move_alike_when_no_more_of_them_are_remembered() {
        let key = Key::of_secret(b"a secret of some length").unwrap();
        let mut state = State::new(key.clone(), Policy::default(), Limits::default());
        let ranges = [
            (Space::User, 0x40_0000..0x40_8000),
            (Space::User, 0x7f12_3456_7000..0x7f12_3476_7000),
            (Space::User, 0xff00_0000_0000_0000..0xff00_0000_0000_1000),
            (Space::Kernel, 0x5000..0x9000),
            (Space::Kernel, 0xffff_ffff_a123_4000..0xffff_ffff_a923_4000),
        ];
        let mut addresses = Addresses::default();
        for (space, range) in ranges.clone() {
            addresses.add(space, range, Identity::default);
        }
        addresses.settle(&key);
        state.addresses = Arc::new(addresses);
        let near = |at: u64| [at.wrapping_sub(1), at, at + 1, at + 0x7ff];
        let places: Vec<u64> = ranges
            .iter()
            .flat_map(|(_, range)| [range.start, range.end, range.start / 2 + range.end / 2])
            .flat_map(near)
            .collect();
        let mut all = |to_see| {
            state.to_see = to_see;
            let mut all = Vec::new();
            for space in [Space::User, Space::Kernel, Space::Any] {
                // The second time, all of them are in a cache.
                for &place in places.iter().chain(&places) {
                    all.push((space, place, state.address(space, place)));
                }
            }
            all
        };
        let remembered = all(LOOKED_UP);
        assert_eq!(all(0), remembered);
        for (space, place, new) in remembered {
            assert_eq!(
                state.addresses.of(space, place).unwrap_or(0),
                new,
                "{place:#x}"
            );
        }
        assert!(state.seen.contains(&0x7f12_3456_7000) && !state.seen.contains(&0x5000));
    }
}
