//! Which mappings no sample has fallen into yet: soon there are few in each address space, so that most addresses need
//! no search.

use super::maps::{Maps, Owner, Space};
use super::objects::{ObjectId, Wanted};

/// Address spaces that are remembered, mappings without a hit in each, and mappings of a space that are looked through:
/// in larger ones every address is searched.
const SPACES: usize = 1024;
const MOST_UNHIT: usize = 512;
const MOST_MAPPINGS: usize = 4096;

/// The mappings without a hit of the address spaces that were looked at last.
#[derive(Debug)]
pub struct Unhit {
    spaces: Vec<Known>,
}

/// What is known of a state of an address space.
#[derive(Debug, Clone, Default)]
struct Known {
    version: u64,
    /// First address and the one behind the last, by address; `None` where there are too many.
    unhit: Option<Vec<(u64, u64, ObjectId)>>,
}

impl Default for Unhit {
    fn default() -> Self {
        Unhit { spaces: vec![Known::default(); SPACES] }
    }
}

impl Unhit {
    /// Notes the objects in the address space of `owner` that `addresses` fall into.
    pub fn hit(&mut self, addresses: &[u64], owner: Owner, maps: &Maps, wanted: &mut Wanted) {
        let Some(space) = maps.space(owner) else { return };
        let slot = usize::try_from(space.version()).unwrap_or(0) % SPACES;
        let Some(known) = self.spaces.get_mut(slot) else { return };
        if known.version != space.version() {
            *known = Known { version: space.version(), unhit: unhit(space, wanted) };
        }
        let Some(unhit) = &mut known.unhit else {
            let found = addresses.iter().filter_map(|&address| space.find(address)?.1);
            return found.for_each(|object| wanted.add(object));
        };
        for &address in addresses {
            if unhit.is_empty() {
                return;
            }
            let before = unhit.partition_point(|mapping| mapping.0 <= address).checked_sub(1);
            if let Some(&(_, end, object)) = before.and_then(|at| unhit.get(at))
                && address < end
            {
                wanted.add(object);
                unhit.retain(|mapping| mapping.2 != object);
            }
        }
    }
}

fn unhit(space: &Space, wanted: &Wanted) -> Option<Vec<(u64, u64, ObjectId)>> {
    if space.len() > MOST_MAPPINGS {
        return None;
    }
    let mapped = space.iter().filter_map(|(start, end, object)| Some((start, end, object?)));
    let unhit: Vec<_> = mapped.filter(|mapping| !wanted.has(mapping.2)).take(MOST_UNHIT + 1).collect();
    (unhit.len() <= MOST_UNHIT).then_some(unhit)
}

#[cfg(test)]
mod tests {
    use super::super::maps::Change;
    use super::super::objects::{Kind, Machine, Object, Objects};
    use super::*;

    /// Few mappings, and so many that every address is searched: each hit is noted, and nothing else.
    #[test]
    fn every_hit_is_noted() {
        for count in [5, MOST_UNHIT as u64 + 5, MOST_MAPPINGS as u64 + 5] {
            let (mut objects, mut wanted) = (Objects::default(), Wanted::default());
            let (mut maps, mut unhit) = (Maps::default(), Unhit::default());
            let owner = Owner::Process(1);
            for at in 0..count {
                let name = at.to_string().into_bytes();
                let object =
                    Object { machine: Machine::HOST, kind: Kind::File, name, id: None, inode: None, wanted: false };
                let object = Some(objects.intern(object)).filter(|_| at != 3);
                maps.apply(Change::Map { owner, range: (at * 0x2000, at * 0x2000 + 0x1000), object });
            }
            unhit.hit(&[0x1000, 0x2fff, 0x4000, 0x2000, 0x6000, 0x3000, u64::MAX], owner, &maps, &mut wanted);
            unhit.hit(&[0x8000], owner, &maps, &mut wanted);
            unhit.hit(&[0], Owner::Process(2), &maps, &mut wanted);
            let wanted = objects.into_vec(&wanted).into_iter().filter(|object| object.wanted);
            assert!(wanted.map(|object| object.name).eq([b"1", b"2", b"4"]), "of {count}");
        }
    }

    /// A new mapping may be hit, though all that were there before have been.
    #[test]
    fn a_change_is_seen() {
        let (mut objects, mut wanted) = (Objects::default(), Wanted::default());
        let (mut maps, mut unhit) = (Maps::default(), Unhit::default());
        let owner = Owner::Process(1);
        for name in [b"a", b"b"] {
            let name = name.to_vec();
            let object =
                Object { machine: Machine::HOST, kind: Kind::File, name, id: None, inode: None, wanted: false };
            let object = Some(objects.intern(object));
            maps.apply(Change::Map { owner, range: (0, 0x1000), object });
            unhit.hit(&[0x10], owner, &maps, &mut wanted);
        }
        assert!(objects.into_vec(&wanted).iter().all(|object| object.wanted));
    }
}
