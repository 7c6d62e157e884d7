//! The mappings that no sample has hit yet. Soon there are few in each address space, so most
//! addresses need no search.

use perfdata_core::record::CallchainContext;
use perfdata_session::Space;

use super::objects::{ObjectId, Wanted};

/// Maximum numbers of cached address spaces, of mappings without a hit in each, and of mappings in
/// a cached address space. In larger address spaces, every address is searched.
const SPACES: usize = 1024;
const MOST_UNHIT: usize = 512;
const MOST_MAPPINGS: usize = 4096;

/// log2 of the size of the regions that mappings without a hit are in: 1 MiB.
const REGION: u32 = 20;

/// The mappings without a hit in recently used address spaces.
#[derive(Debug)]
pub struct Unhit {
    spaces: Vec<KnownSpace>,
}

/// The cache entry for one version of an address space.
#[derive(Debug, Clone, Default)]
struct KnownSpace {
    version: u64,
    /// Number of addresses that were searched in the space, up to the number of its mappings. Then the
    /// list of mappings takes less time than the searches before it, also if the space changes often.
    searched: usize,
    /// `None` if fewer addresses were searched, or if there are too many mappings.
    mappings: Option<UnhitMappings>,
}

/// The mappings of an address space that no sample has hit yet.
#[derive(Debug, Clone, Default)]
pub struct UnhitMappings {
    /// First address and end address, sorted by address.
    list: Vec<(u64, u64, ObjectId)>,
    /// The regions of the mappings. A bit stands for all regions whose numbers have the same
    /// remainder.
    regions: u64,
}

impl Default for Unhit {
    fn default() -> Self {
        Unhit {
            spaces: vec![KnownSpace::default(); SPACES],
        }
    }
}

impl Unhit {
    /// Adds the objects in `space` that `addresses` hit to `wanted`.
    pub fn hit(&mut self, addresses: &[u64], space: &Space<Option<ObjectId>>, wanted: &mut Wanted) {
        let version = space.version();
        if let Some(known) = self.spaces.get_mut(Self::slot(version)) {
            if known.version != version {
                *known = KnownSpace {
                    version,
                    ..KnownSpace::default()
                };
            }
            if known.searched < space.len() {
                known.searched = known.searched.saturating_add(addresses.len());
                if known.searched >= space.len() {
                    known.mappings = UnhitMappings::in_space(space, wanted);
                }
            }
        }
        match self.of(version) {
            Some(unhit) => {
                unhit.hit(addresses, wanted);
            }
            None => {
                let found = addresses
                    .iter()
                    .filter_map(|&address| space.find(address)?.1);
                found.for_each(|object| wanted.add(object));
            }
        }
    }

    #[inline]
    fn slot(version: u64) -> usize {
        usize::try_from(version).unwrap_or(0) % SPACES
    }

    /// Returns the mappings without a hit in this version of an address space, if they are known.
    #[inline]
    pub fn of(&mut self, version: u64) -> Option<&mut UnhitMappings> {
        let known = self.spaces.get_mut(Self::slot(version))?;
        known.mappings.as_mut().filter(|_| known.version == version)
    }
}

impl UnhitMappings {
    fn in_space(space: &Space<Option<ObjectId>>, wanted: &Wanted) -> Option<Self> {
        if space.len() > MOST_MAPPINGS {
            return None;
        }
        let mapped = space
            .iter()
            .filter_map(|(range, object)| Some((range.start, range.end, object?)));
        let list: Vec<_> = mapped
            .filter(|mapping| !wanted.has(mapping.2))
            .take(MOST_UNHIT + 1)
            .collect();
        let mut unhit = UnhitMappings { list, regions: 0 };
        unhit.update_regions();
        (unhit.list.len() <= MOST_UNHIT).then_some(unhit)
    }

    fn update_regions(&mut self) {
        self.regions = 0;
        for &(start, end, _) in &self.list {
            let (first, last) = (start >> REGION, end.saturating_sub(1) >> REGION);
            self.regions |= match last.saturating_sub(first) {
                0..64 => (first..=last).fold(0, |bits, region| bits | Self::bit(region)),
                _ => u64::MAX,
            };
        }
    }

    #[inline]
    fn bit(region: u64) -> u64 {
        1 << (region & 63)
    }

    /// Adds the objects to `wanted` that the addresses before the first context marker in `words`
    /// hit. Returns the number of these addresses.
    #[inline]
    pub fn hit(&mut self, words: &[u64], wanted: &mut Wanted) -> usize {
        for (at, &word) in words.iter().enumerate() {
            if CallchainContext::of(word).is_some() {
                return at;
            }
            if self.regions & Self::bit(word >> REGION) != 0 {
                self.search(word, wanted);
            }
        }
        words.len()
    }

    fn search(&mut self, address: u64, wanted: &mut Wanted) {
        let before = self
            .list
            .partition_point(|mapping| mapping.0 <= address)
            .checked_sub(1);
        if let Some(&(_, end, object)) = before.and_then(|at| self.list.get(at))
            && address < end
        {
            wanted.add(object);
            self.list.retain(|mapping| mapping.2 != object);
            self.update_regions();
        }
    }
}

#[cfg(test)]
mod tests {
    use perfdata_core::record::{CpuMode, Mmap};
    use perfdata_core::wire::Text;
    use perfdata_session::{AddressSpaces, Change, Dsos, Machine, Mapped, Owner};

    use super::*;

    const OWNER: Owner = Owner::Process(Machine::HOST, 1);

    /// Returns the object of a mapping of a file with this name.
    fn object(dsos: &mut Dsos, name: &str) -> ObjectId {
        let filename = Text::padded(name.as_bytes(), 8);
        let map = Mmap {
            pid: 1,
            tid: 1,
            addr: 0,
            len: 0x1000,
            pgoff: 0,
            filename,
        };
        dsos.intern(&Mapped::of_mmap(&map, CpuMode::USER.0).dso)
    }

    fn hit(
        unhit: &mut Unhit,
        addresses: &[u64],
        spaces: &AddressSpaces<Option<ObjectId>>,
        wanted: &mut Wanted,
    ) {
        unhit.hit(
            addresses,
            spaces.space(OWNER).expect("it has mappings"),
            wanted,
        );
    }

    /// Few mappings, and so many that every address is searched: only objects with a hit are
    /// wanted.
    #[test]
    fn every_hit_is_noted() {
        for count in [5, MOST_UNHIT as u64 + 5, MOST_MAPPINGS as u64 + 5] {
            let (mut dsos, mut wanted) = (Dsos::default(), Wanted::default());
            let (mut spaces, mut unhit) = (AddressSpaces::default(), Unhit::default());
            for at in 0..count {
                let what = Some(object(&mut dsos, &at.to_string())).filter(|_| at != 3);
                spaces.apply(Change::Map {
                    owner: OWNER,
                    range: (at * 0x2000, at * 0x2000 + 0x1000),
                    what,
                });
            }
            let addresses = [0x1000, 0x2fff, 0x4000, 0x2000, 0x6000, 0x3000, u64::MAX];
            hit(&mut unhit, &addresses, &spaces, &mut wanted);
            hit(&mut unhit, &[0x8000], &spaces, &mut wanted);
            let wanted = (0..)
                .zip(dsos.list())
                .filter(|(at, _)| wanted.has_place(*at));
            assert!(
                wanted.map(|(_, dso)| &*dso.name).eq([b"1", b"2", b"4"]),
                "of {count}"
            );
        }
    }

    /// A new mapping may be hit, even if all previous ones already were.
    #[test]
    fn a_change_is_seen() {
        let (mut dsos, mut wanted) = (Dsos::default(), Wanted::default());
        let (mut spaces, mut unhit) = (AddressSpaces::default(), Unhit::default());
        for name in ["a", "b"] {
            let what = Some(object(&mut dsos, name));
            spaces.apply(Change::Map {
                owner: OWNER,
                range: (0, 0x1000),
                what,
            });
            hit(&mut unhit, &[0x10], &spaces, &mut wanted);
        }
        assert!((0..2).all(|at| wanted.has_place(at)));
    }
}
