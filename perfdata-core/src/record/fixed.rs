//! Records whose numbers are at fixed places: mappings, comms, tasks, context switches. They are
//! converted to the other byte order, and checked, without decoding them.
//!
//! The places follow from the declaration of the body: it is decoded once from zeros, and its fields
//! are visited. The trailer consists of words, whose places follow from the attribute.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "places in a record, which has less than 64 KiB"
)]

use std::sync::LazyLock;

use binrw::Endian;

use super::{Body, EventIds, MISC_MMAP_BUILD_ID, RawRecord, RecordHeader, RecordType, SampleId};
use crate::attr::SampleType;
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::recording::Events;

/// Bytes of a word.
const WORD: usize = 8;

/// A record that consists of numbers at fixed places, one text at most, and a trailer, with nothing
/// between them. Decoding it and encoding it gives the same bytes.
#[derive(Debug, Clone, Copy)]
pub struct FixedRecord<'a> {
    bytes: &'a [u8],
    endian: Endian,
    places: &'static Places,
    trailer: TrailerForm,
}

impl<'a> FixedRecord<'a> {
    /// Returns a record that belongs to an event with `layout`, if it has this form.
    pub fn of(raw: &RawRecord<'a>, layout: &DecodeContext) -> Option<Self> {
        Self::with_trailer(raw, TrailerForm::of(layout))
    }

    /// Returns the record with the trailer of its event, if it has this form.
    #[inline]
    pub(crate) fn with_trailer(raw: &RawRecord<'a>, trailer: TrailerForm) -> Option<Self> {
        let places = Places::of(raw.kind, raw.misc)?;
        let body = raw.bytes.len().checked_sub(trailer.len)?;
        let is_whole = match places.has_text {
            true => body >= places.end,
            false => body == places.end,
        };
        is_whole.then_some(FixedRecord {
            bytes: raw.bytes,
            endian: raw.endian,
            places,
            trailer,
        })
    }

    /// Appends the record in the other byte order: the same bytes as decoding it and encoding it in
    /// the other byte order.
    pub fn swap_into(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(self.bytes);
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
            word.reverse();
            if self.trailer.pairs >> at & 1 == 1 {
                word.rotate_left(WORD / 2);
            }
        }
    }

    /// Returns which event IDs the record contains: see [`Record::event_ids`](super::Record::event_ids).
    pub fn event_ids(&self, events: &Events) -> EventIds {
        let mut found = EventIds::default();
        if events.have_ids() {
            let own = self.places.ids.iter().map(|&at| usize::from(at));
            let in_trailer = self.trailer.ids.into_iter().flatten();
            let all = own.chain(in_trailer.map(|end| self.bytes.len().saturating_sub(end)));
            let raw = all.filter_map(|at| self.bytes.get(at..)?.first_chunk::<WORD>());
            raw.for_each(|&word| {
                let id = match self.endian {
                    Endian::Little => u64::from_le_bytes(word),
                    Endian::Big => u64::from_be_bytes(word),
                };
                found.add(id, events);
            });
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
struct Places {
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
}

/// The places by type, without and with [`MISC_MMAP_BUILD_ID`], on which the form of MMAP2 depends.
static PLACES: LazyLock<Vec<[Option<Places>; 2]>> = LazyLock::new(|| {
    let types = 0..RecordType::HEADER_ATTR.0;
    let of =
        |number| [0, MISC_MMAP_BUILD_ID].map(|misc| Places::declared(RecordType(number), misc));
    types.map(of).collect()
});

impl Places {
    #[inline]
    fn of(kind: RecordType, misc: u16) -> Option<&'static Places> {
        if !kind.has_fixed_places() {
            return None;
        }
        let [without, with] = PLACES.get(usize::try_from(kind.0).ok()?)?;
        match misc & MISC_MMAP_BUILD_ID {
            0 => without.as_ref(),
            _ => with.as_ref(),
        }
    }

    /// Returns the places that the declaration of the type implies.
    fn declared(kind: RecordType, misc: u16) -> Option<Places> {
        if !kind.has_fixed_places() {
            return None;
        }
        let zeros = [0; 128];
        let layout = DecodeContext {
            misc,
            len: zeros.len() as u64,
            ..DecodeContext::default()
        };
        let (body, _) = Body::decode(kind, &zeros, Endian::Little, layout).ok()?;
        let mut places = Places {
            numbers: vec![(0, 4), (4, 2), (6, 2)],
            ids: Vec::new(),
            end: RecordHeader::SIZE,
            has_text: false,
            is_other: false,
        };
        body.describe("", Style::Plain, &mut places);
        (!places.is_other).then_some(places)
    }
}

impl Visitor for Places {
    fn begin(&mut self, _: &'static str) {}
    fn begin_list(&mut self, _: &'static str, _: usize) {
        self.is_other = true;
    }
    fn end(&mut self) {}
    fn leaf(&mut self, _: &'static str, size: usize, value: Leaf<'_>) {
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
    use crate::record::TABLE;

    /// Every type with the flag has a form, and the form of no other type was forgotten.
    #[test]
    fn places_follow_from_declarations() {
        for info in TABLE.iter().filter(|info| info.kind.has_fixed_places()) {
            assert!(Places::of(info.kind, 0).is_some(), "{}", info.name);
        }
        let mmap2 = Places::of(RecordType::MMAP2, 0).expect("a form");
        let with = Places::of(RecordType::MMAP2, MISC_MMAP_BUILD_ID).expect("a form");
        assert_eq!((mmap2.end, with.end), (72, 72));
        assert!(mmap2.numbers.len() > with.numbers.len() && mmap2.has_text);
        let lost = Places::of(RecordType::LOST, 0).expect("a form");
        assert_eq!(
            (&lost.ids[..], lost.end, lost.has_text),
            (&[8][..], 24, false)
        );
    }
}
