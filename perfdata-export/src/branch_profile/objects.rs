//! Where an address is: in which object of the recordings, and at which offset.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use perfdata_core::record::CpuMode;
use perfdata_session::{BuildId, Dso, DsoId, DsoKind, FileId, Mapping, Sample};

use super::binary::Binary;

/// Number of bits of the offset in a [`Place`].
const OFFSET_BITS: u32 = 48;

/// Maximum number of ranges of addresses that are remembered. Branches stay in few objects.
const MOST_RANGES: usize = 8;

/// The first address of kernels.
const KERNEL: u64 = 1 << 63;

/// A place in the code of an object: the number of the object, from 1, and the offset in it, both in
/// one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Place(pub u64);

impl Place {
    /// A place in no object, or in none that is searched for.
    pub const OUTSIDE: Place = Place(0);

    /// In place of the source of a branch: the sampled address, not a target.
    pub const SAMPLED: Place = Place(u64::MAX);

    fn new(object: u16, offset: u64) -> Self {
        Place(u64::from(object) << OFFSET_BITS | offset & (u64::MAX >> (64 - OFFSET_BITS)))
    }

    /// Returns the number of the object; 0 outside of all objects.
    #[inline]
    pub fn object(self) -> u16 {
        u16::try_from(self.0 >> OFFSET_BITS).unwrap_or_default()
    }

    /// Returns the offset in the object: [`Mapping::offset`]. It can be before the relocation symbol
    /// of a kernel.
    pub fn offset(self) -> u64 {
        let high = 64 - OFFSET_BITS;
        ((self.0 << high).cast_signed() >> high).cast_unsigned()
    }

    /// Returns the place `distance` bytes behind.
    #[inline]
    fn behind(self, distance: u64) -> Self {
        const OFFSET: u64 = u64::MAX >> (64 - OFFSET_BITS);
        match self {
            Place::OUTSIDE => Place::OUTSIDE,
            Place(word) => Place(word & !OFFSET | word.wrapping_add(distance) & OFFSET),
        }
    }
}

/// What makes an object of one recording the same as one of another recording.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    BuildId(BuildId),
    File(Box<[u8]>, Option<FileId>),
}

/// An object with branches.
#[derive(Debug)]
pub(super) struct Object {
    pub dso: Dso,
    pub build_id: Option<BuildId>,
    /// The relocation symbol of a kernel.
    pub symbol: Box<[u8]>,
    /// The number of the first recording in which it was hit.
    recording: usize,
    /// When it was hit first, in the time of that recording.
    pub time: Option<u64>,
}

/// The objects of all recordings, which all threads number alike.
#[derive(Debug, Default)]
pub(super) struct KnownObjects {
    list: Vec<Object>,
    /// The number of each object; `None` if it has none, since there are too many.
    numbers: HashMap<Identity, Option<u16>, RandomState>,
}

impl KnownObjects {
    /// Returns an object.
    pub fn get(&self, number: u16) -> Option<&Object> {
        self.list.get(usize::from(number.checked_sub(1)?))
    }

    /// Returns how many objects were not counted, since there were too many.
    pub fn unnumbered(&self) -> u64 {
        let all = self.numbers.values();
        all.filter(|number| number.is_none()).count() as u64
    }

    /// Returns the number of an object. Of objects that are the same, that of the first recording is
    /// kept, at its first time.
    fn number(&mut self, identity: Identity, object: Object) -> Option<u16> {
        if let Some(&known) = self.numbers.get(&identity) {
            let list = &mut self.list;
            let kept = known.and_then(|number| list.get_mut(usize::from(number.checked_sub(1)?)));
            if let Some(kept) = kept
                && (object.recording, object.time) < (kept.recording, kept.time)
            {
                *kept = object;
            }
            return known;
        }
        // The last number is that of `Place::SAMPLED`.
        let number = u16::try_from(self.list.len().saturating_add(1)).ok();
        let number = number.filter(|&number| number != u16::MAX);
        if number.is_some() {
            self.list.push(object);
        }
        self.numbers.insert(identity, number);
        number
    }
}

/// Where the addresses of recordings are.
#[derive(Debug, Default)]
pub(super) struct Objects {
    known: Arc<Mutex<KnownObjects>>,
    /// The number of the current recording, in the order of the inputs.
    recording: usize,
    /// The number of each DSO of the current recording; 0 if its branches are not counted.
    of_dsos: Vec<Option<u16>>,
    /// The process whose addresses are remembered.
    pid: Option<u32>,
    /// Addresses that are mapped alike until the next record that is not a sample: those of the last
    /// branch, and others.
    last: PlacedRange,
    ranges: Vec<PlacedRange>,
}

/// Addresses that are next to each other in one object, or outside of all.
#[derive(Debug, Clone, Default)]
struct PlacedRange {
    addresses: Range<u64>,
    first: Place,
}

impl PlacedRange {
    /// Returns the place of an address, if it is one of these.
    #[inline]
    fn place(&self, address: u64) -> Option<Place> {
        let is_here = self.addresses.contains(&address);
        is_here.then(|| {
            let distance = address.wrapping_sub(self.addresses.start);
            self.first.behind(distance)
        })
    }
}

impl Objects {
    /// Returns the same objects for a recording, whose records come in another thread.
    pub fn shared(&self, recording: usize) -> Self {
        Objects {
            known: Arc::clone(&self.known),
            recording,
            ..Objects::default()
        }
    }

    /// Returns the objects of all threads.
    pub fn known(&self) -> MutexGuard<'_, KnownObjects> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the current recording.
    pub fn recording(&self) -> usize {
        self.recording
    }

    /// Ends the current recording.
    pub fn end(&mut self) {
        self.recording = self.recording.saturating_add(1);
    }

    /// Prepares for the records of a recording.
    pub fn begin(&mut self) {
        self.of_dsos.clear();
        self.forget();
    }

    /// Forgets how addresses are mapped.
    pub fn forget(&mut self) {
        self.last = PlacedRange::default();
        self.ranges.clear();
    }

    /// Prepares for the addresses of a sample.
    pub fn of_sample(&mut self, sample: &Sample<'_>) {
        let pid = sample.tid().map(|tid| tid.pid);
        if pid.is_none() || pid != self.pid {
            self.forget();
            self.pid = pid;
        }
    }

    /// Returns the place at an address. With `binary`, all other objects are outside.
    #[inline]
    pub fn place(&mut self, sample: &Sample<'_>, address: u64, binary: Option<&Binary>) -> Place {
        match self.last.place(address) {
            Some(place) => place,
            None => self.search(sample, address, binary),
        }
    }

    fn search(&mut self, sample: &Sample<'_>, address: u64, binary: Option<&Binary>) -> Place {
        for placed in &self.ranges {
            if let Some(place) = placed.place(address) {
                self.last = placed.clone();
                return place;
            }
        }
        if address >= KERNEL {
            let frame = sample.address(address, CpuMode::KERNEL);
            let mapping = frame.mapping();
            return mapping.map_or(Place::OUTSIDE, |mapping| {
                self.in_mapping(sample, &mapping, address, binary)
            });
        }
        let Some((range, mapping)) = sample.user_mapping(address) else {
            return Place::OUTSIDE;
        };
        self.last = PlacedRange {
            first: self.in_mapping(sample, &mapping, range.start, binary),
            addresses: range,
        };
        if self.ranges.len() >= MOST_RANGES {
            self.ranges.remove(0);
        }
        self.ranges.push(self.last.clone());
        self.last.place(address).unwrap_or(Place::OUTSIDE)
    }

    fn in_mapping(
        &mut self,
        sample: &Sample<'_>,
        mapping: &Mapping,
        address: u64,
        binary: Option<&Binary>,
    ) -> Place {
        let Some(dso) = sample.session().dso(mapping.dso) else {
            return Place::OUTSIDE;
        };
        match self.number(sample, mapping.dso, dso, binary) {
            0 => Place::OUTSIDE,
            number => Place::new(number, mapping.offset(dso.kind, address)),
        }
    }

    /// Returns the number of a DSO; 0 if it is none whose branches are counted.
    fn number(
        &mut self,
        sample: &Sample<'_>,
        id: DsoId,
        dso: &Dso,
        binary: Option<&Binary>,
    ) -> u16 {
        let at = id.index();
        if let Some(&Some(known)) = self.of_dsos.get(at) {
            return known;
        }
        let number = self.add(sample, id, dso, binary).unwrap_or(0);
        if self.of_dsos.len() <= at {
            self.of_dsos.resize(at.saturating_add(1), None);
        }
        if let Some(known) = self.of_dsos.get_mut(at) {
            *known = Some(number);
        }
        number
    }

    fn add(
        &mut self,
        sample: &Sample<'_>,
        id: DsoId,
        dso: &Dso,
        binary: Option<&Binary>,
    ) -> Option<u16> {
        let session = sample.session();
        let build_id = session.build_id(id);
        let is_wanted = match binary {
            Some(binary) => binary.is(dso, build_id),
            None => matches!(dso.kind, DsoKind::File | DsoKind::Kernel | DsoKind::Module),
        };
        if !is_wanted || dso.machine.is_guest() {
            return None;
        }
        let identity = match build_id {
            Some(id) => Identity::BuildId(id),
            None => Identity::File(dso.path().into(), dso.file),
        };
        let object = Object {
            dso: dso.clone(),
            build_id,
            symbol: session.relocation_symbol(id).unwrap_or_default().into(),
            recording: self.recording,
            time: sample.time(),
        };
        self.known().number(identity, object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_can_be_negative() {
        let place = Place::new(3, 0_u64.wrapping_sub(16));
        assert_eq!((place.object(), place.offset()), (3, u64::MAX - 15));
        let place = place.behind(32);
        assert_eq!((place.object(), place.offset()), (3, 16));
        assert_eq!(Place::OUTSIDE.behind(7), Place::OUTSIDE);
    }
}
