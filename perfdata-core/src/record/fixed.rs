//! Records whose numbers are at fixed places: mappings, comms, tasks, context switches. They are
//! converted to the other byte order, and checked, without decoding them.
//!
//! The places follow from the declaration of the body: it is decoded once from zeros, and its
//! fields are visited. The trailer consists of words, whose places follow from the attribute.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "places in a record, which has less than 64 KiB"
)]

use std::ops::Range;
use std::sync::LazyLock;

use binrw::Endian;

use super::{Body, EventIds, Inode, Mmap, Mmap2, RawRecord, RecordHeader, RecordType, SampleId};
use crate::attr::SampleType;
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::recording::Events;
use crate::wire::{Wire, until_nul};

/// Bytes of a word.
const WORD: usize = 8;

/// A record that consists of numbers at fixed places, one text at most, and a trailer, with nothing
/// between them. Decoding it and encoding it gives the same bytes.
#[derive(Debug, Clone, Copy)]
pub struct FixedRecord<'a> {
    record: RawRecord<'a>,
    places: &'static NumberPlaces,
    trailer: TrailerForm,
}

/// A mapping in an MMAP or MMAP2 record that is not decoded. See [`Mmap`](super::Mmap) and
/// [`Mmap2`](super::Mmap2).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MappingView<'a> {
    /// Process ID; -1 for the kernel.
    pub pid: u32,
    /// First address.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file in bytes; for the kernel the address of the symbol in the name.
    pub pgoff: u64,
    /// Inode of the file, if the record contains it.
    pub inode: Option<Inode>,
    /// Build ID of the file, if the record contains it.
    pub build_id: Option<&'a [u8]>,
    /// `PROT_*` and `MAP_*` of the recording machine, if the record contains them.
    pub prot_flags: Option<(u32, u32)>,
    /// File, or a name in brackets.
    pub filename: &'a [u8],
}

impl<'a> MappingView<'a> {
    /// Returns the mapping of a decoded record.
    pub fn of_mmap(map: &'a Mmap) -> Self {
        MappingView {
            pid: map.pid,
            addr: map.addr,
            len: map.len,
            pgoff: map.pgoff,
            inode: None,
            build_id: None,
            prot_flags: None,
            filename: map.filename.text(),
        }
    }

    /// Returns the mapping of a decoded record.
    pub fn of_mmap2(map: &'a Mmap2) -> Self {
        let id = map.build_id.as_ref();
        MappingView {
            pid: map.pid,
            addr: map.addr,
            len: map.len,
            pgoff: map.pgoff,
            inode: map.inode.clone(),
            build_id: id.and_then(|id| id.build_id.get(..usize::from(id.build_id_size))),
            prot_flags: map.prot.zip(map.flags),
            filename: map.filename.text(),
        }
    }
}

impl<'a> FixedRecord<'a> {
    /// Returns a record that belongs to an event with `layout`, if it has this form.
    pub fn of(raw: &RawRecord<'a>, layout: &DecodeContext) -> Option<Self> {
        let trailer = TrailerForm::of(layout);
        Self::with_trailer(raw, trailer, layout.requests_build_ids)
    }

    /// Returns the record with the trailer of its event, if it has this form. `requests_build_ids`
    /// if the event requests build IDs of mapped files.
    #[inline]
    pub(crate) fn with_trailer(
        raw: &RawRecord<'a>,
        trailer: TrailerForm,
        requests_build_ids: bool,
    ) -> Option<Self> {
        let body = raw.bytes.len().checked_sub(trailer.len)?;
        let has_build_id = Mmap2::has_build_id(raw, requests_build_ids);
        let places = NumberPlaces::of(raw, body, has_build_id)?;
        let is_whole = match places.has_text {
            true => body >= places.end,
            false => body == places.end,
        };
        is_whole.then_some(FixedRecord {
            record: *raw,
            places,
            trailer,
        })
    }

    /// Appends the record in the other byte order: the same bytes as decoding it and encoding it in
    /// the other byte order.
    pub fn swap_into(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(self.record.bytes);
        let copy = out.get_mut(start..).unwrap_or_default();
        for &(at, width) in &self.places.numbers {
            let number = copy.get_mut(usize::from(at)..).unwrap_or_default();
            match width {
                8 => swap::<8>(number),
                4 => swap::<4>(number),
                _ => swap::<2>(number),
            }
        }
        let trailer = copy.len().saturating_sub(self.trailer.len);
        let words = copy.get_mut(trailer..).unwrap_or_default();
        for (at, word) in words.as_chunks_mut::<WORD>().0.iter_mut().enumerate() {
            let is_pair = self.trailer.pairs >> at & 1 == 1;
            let swapped = u64::from_ne_bytes(*word).swap_bytes();
            *word = swapped
                .rotate_left(if is_pair { 32 } else { 0 })
                .to_ne_bytes();
        }
    }

    /// Returns the mapping in an MMAP or MMAP2 record; `None` for other records.
    pub fn mapping(&self) -> Option<MappingView<'a>> {
        let FixedRecord { record, places, .. } = *self;
        let at = places.mapping.as_ref()?;
        let inode = |at: usize| {
            Inode::decode(
                record.bytes.get(at..)?,
                record.endian,
                DecodeContext::default(),
            )
            .ok()
        };
        let build_id = |(size, id): (usize, Range<usize>)| {
            let size = usize::from(*record.bytes.get(size)?);
            record.bytes.get(id)?.get(..size)
        };
        let text = record.bytes.len().checked_sub(self.trailer.len)?;
        Some(MappingView {
            pid: record.pair(at.pid)?.0,
            addr: record.word(at.addr)?,
            len: record.word(at.len)?,
            pgoff: record.word(at.pgoff)?,
            inode: at.inode.and_then(inode).map(|(inode, _)| inode),
            build_id: at.build_id.clone().and_then(build_id),
            prot_flags: at.prot_flags.and_then(|at| record.pair(at)),
            filename: until_nul(record.bytes.get(places.end..text)?),
        })
    }

    /// Returns which event IDs the record contains: see
    /// [`Record::event_ids`](super::Record::event_ids).
    pub fn event_ids(&self, events: &Events) -> EventIds {
        let mut found = EventIds::default();
        if events.have_ids() {
            let mut add = |at: usize| {
                if let Some(id) = self.record.word(at) {
                    found.add(id, events);
                }
            };
            self.places.ids.iter().for_each(|&at| add(usize::from(at)));
            let len = self.record.bytes.len();
            let [first, second] = self.trailer.ids;
            if let Some(end) = first {
                add(len.saturating_sub(end));
            }
            if let Some(end) = second {
                add(len.saturating_sub(end));
            }
        }
        found
    }
}

/// Reverses the first `N` bytes.
#[inline]
fn swap<const N: usize>(number: &mut [u8]) {
    if let Some(number) = number.first_chunk_mut::<N>() {
        number.reverse();
    }
}

/// The form of the trailer of one event's records.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TrailerForm {
    len: usize,
    /// Words that are pairs of numbers, one bit each.
    pairs: u8,
    /// The offsets of the words with event IDs, in bytes from the end of the record.
    ids: [Option<usize>; 2],
}

impl TrailerForm {
    /// Returns the form of the trailers with `layout`.
    pub(crate) fn of(layout: &DecodeContext) -> Self {
        let len = layout.trailer_len();
        if len == 0 {
            return TrailerForm::default();
        }
        let parts = SampleId::parts_of(layout.sample_type);
        let from_end = |part| SampleId::from_end(parts, part);
        let mut pairs = 0;
        for part in SampleId::WORDS {
            if let Some(end) = from_end(part).filter(|_| SampleId::PAIRS.has(part)) {
                pairs |= 1 << (len.saturating_sub(end) / WORD);
            }
        }
        TrailerForm {
            len,
            pairs,
            ids: [SampleType::ID, SampleType::IDENTIFIER].map(from_end),
        }
    }
}

/// The places of the numbers in the records of one type, in bytes from the start of the record.
#[derive(Debug)]
struct NumberPlaces {
    /// Numbers of more than one byte, with their sizes.
    numbers: Vec<(u8, u8)>,
    /// Event IDs.
    ids: Vec<u8>,
    /// The offset after the last number.
    end: usize,
    /// Whether a text follows, which extends to the trailer.
    has_text: bool,
    /// Whether anything else was found.
    is_other: bool,
    /// The places of all fields by name, and those of a mapping.
    fields: Vec<(&'static str, Range<usize>)>,
    mapping: Option<MappingPlaces>,
}

/// The places of the fields of a mapping. A pair of fields has the place of its first one.
#[derive(Debug)]
struct MappingPlaces {
    pid: usize,
    addr: usize,
    len: usize,
    pgoff: usize,
    inode: Option<usize>,
    /// The size of the build ID, and its bytes.
    build_id: Option<(usize, Range<usize>)>,
    prot_flags: Option<usize>,
}

impl MappingPlaces {
    /// Returns the places among those of all `fields`; `None` if these are not of a mapping.
    fn of(fields: &[(&'static str, Range<usize>)]) -> Option<Self> {
        let range = |name| Some(fields.iter().find(|field| field.0 == name)?.1.clone());
        let at = |name| Some(range(name)?.start);
        Some(MappingPlaces {
            pid: at("pid")?,
            addr: at("addr")?,
            len: at("len")?,
            pgoff: at("pgoff")?,
            inode: at("maj"),
            build_id: at("build_id_size").zip(range("build_id")),
            prot_flags: at("prot"),
        })
    }
}

/// The places by type in all forms of MMAP2: with an inode or a build ID, with `prot` and `flags`
/// or without them.
static PLACES: LazyLock<Vec<[[Option<NumberPlaces>; 2]; 2]>> = LazyLock::new(|| {
    let types = 0..RecordType::HEADER_ATTR.0;
    let of = |number| {
        [false, true].map(|mmap2_with_build_id| {
            [false, true].map(|mmap2_without_protection| {
                let layout = DecodeContext {
                    mmap2_with_build_id,
                    mmap2_without_protection,
                    ..DecodeContext::default()
                };
                NumberPlaces::declared(RecordType(number), layout)
            })
        })
    };
    types.map(of).collect()
});

impl NumberPlaces {
    /// Returns the places in `raw`, in whose bytes the trailer starts at `end`.
    #[inline]
    fn of(raw: &RawRecord<'_>, end: usize, has_build_id: bool) -> Option<&'static NumberPlaces> {
        if !raw.kind.has_fixed_places() {
            return None;
        }
        let [inode, build_id] = PLACES.get(usize::try_from(raw.kind.0).ok()?)?;
        let [with, without] = if has_build_id { build_id } else { inode };
        let body = || raw.bytes.get(RecordHeader::SIZE..end).unwrap_or_default();
        match raw.kind == RecordType::MMAP2 && Mmap2::lacks_protection(body()) {
            true => without.as_ref(),
            false => with.as_ref(),
        }
    }

    /// Returns the places that the declaration of the type implies.
    fn declared(kind: RecordType, layout: DecodeContext) -> Option<NumberPlaces> {
        if !kind.has_fixed_places() {
            return None;
        }
        let zeros = [0; 128];
        let layout = DecodeContext {
            len: zeros.len() as u64,
            ..layout
        };
        let (body, _) = Body::decode(kind, &zeros, Endian::Little, layout).ok()?;
        let mut places = NumberPlaces {
            numbers: vec![(0, 4), (4, 2), (6, 2)],
            ids: Vec::new(),
            end: RecordHeader::SIZE,
            has_text: false,
            is_other: false,
            fields: Vec::new(),
            mapping: None,
        };
        body.describe("", Style::Plain, &mut places);
        places.mapping = MappingPlaces::of(&places.fields);
        (!places.is_other).then_some(places)
    }
}

impl Visitor for NumberPlaces {
    fn begin(&mut self, _: &'static str) {}
    fn begin_list(&mut self, _: &'static str, _: usize) {
        self.is_other = true;
    }
    fn end(&mut self) {}
    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        self.fields.push((name, self.end..self.end + size));
        let at = u8::try_from(self.end).unwrap_or(u8::MAX);
        self.is_other |= self.has_text || value.is_opaque();
        match value {
            Leaf::Text(_) => return self.has_text = true,
            Leaf::Bytes(_) | Leaf::Pad(_) => {}
            Leaf::Uint(_, Style::Opaque) | Leaf::Count(_) => self.is_other = true,
            Leaf::Flags { mirrored: true, .. } => self.is_other = true,
            _ => match u8::try_from(size) {
                Ok(1) => {}
                Ok(size @ (2 | 4 | 8)) => self.numbers.push((at, size)),
                _ => self.is_other = true,
            },
        }
        if let Leaf::Uint(_, Style::Id) = value {
            self.ids.push(at);
        }
        self.end += size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{MISC_MMAP_BUILD_ID, Record, TABLE};
    use crate::wire::Wire;

    /// Every type with the flag has a form, and the form of no other type was forgotten.
    #[test]
    fn places_follow_from_declarations() {
        for info in TABLE.iter().filter(|info| info.kind.has_fixed_places()) {
            let places = NumberPlaces::declared(info.kind, DecodeContext::default());
            assert!(places.is_some(), "{}", info.name);
        }
        let layout = DecodeContext::default();
        let with_id = layout.with_mmap2_with_build_id(true);
        let without = layout.with_mmap2_without_protection(true);
        let form = |layout| NumberPlaces::declared(RecordType::MMAP2, layout).expect("a form");
        let (mmap2, with, without) = (form(layout), form(with_id), form(without));
        assert_eq!((mmap2.end, with.end, without.end), (72, 72, 64));
        assert!(mmap2.numbers.len() > with.numbers.len() && mmap2.has_text);
        let lost = NumberPlaces::declared(RecordType::LOST, layout).expect("a form");
        assert_eq!(
            (&lost.ids[..], lost.end, lost.has_text),
            (&[8][..], 24, false)
        );
    }

    /// A mapping in place is the mapping of the decoded record, for any bytes.
    #[test]
    fn mappings_are_those_of_decoded_records() {
        let (mut state, mut seen) = (0x9e37_79b9_7f4a_7c15_u64, [0; 3]);
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let layout = |sample_id_all, requests_build_ids| DecodeContext {
            sample_type: SampleType::TID | SampleType::TIME,
            sample_id_all,
            requests_build_ids,
            ..DecodeContext::default()
        };
        let mut short = 0;
        for round in 0..4000 {
            let endian = if round % 2 == 0 {
                Endian::Little
            } else {
                Endian::Big
            };
            let kind = [RecordType::MMAP, RecordType::MMAP2, RecordType::COMM];
            let kind = kind[random() as usize % 3];
            let misc = [0, MISC_MMAP_BUILD_ID][random() as usize % 2];
            let size = 8 + random() as u16 % 128;
            let header = RecordHeader { kind, misc, size };
            let mut bytes = Vec::new();
            header.encode_into(&mut bytes, endian).expect("a header");
            bytes.resize_with(usize::from(size), || (random() >> 32) as u8);
            // A build ID of 0 to 23 bytes.
            bytes
                .iter_mut()
                .skip(40)
                .take(1)
                .for_each(|byte| *byte %= 24);
            // A name in place of the protection.
            if random() % 4 == 0 && bytes.len() >= 88 {
                bytes[64..88].copy_from_slice(b"/usr/lib64/libc-2.17.so\0");
                short += 1;
            }
            let raw = RawRecord::first(&bytes, endian, 0).expect("a record");
            let layout = layout(random() % 2 == 0, random() % 2 == 0);
            let Some(fixed) = FixedRecord::of(&raw, &layout) else {
                continue;
            };
            let record = Record::decode(&raw, &layout).expect("its shape is known");
            let expected = match &record.body {
                Body::Mmap(map) => Some(MappingView::of_mmap(map)),
                Body::Mmap2(map) => Some(MappingView::of_mmap2(map)),
                _ => None,
            };
            assert_eq!(fixed.mapping(), expected, "{bytes:x?}");
            let at = [RecordType::MMAP, RecordType::MMAP2]
                .iter()
                .position(|&of| of == kind);
            seen[at.unwrap_or(2)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
        assert!(short > 100);
    }
}
