//! Where records start, what their sizes lead to, and what they hide.

use std::collections::HashSet;

use binrw::Endian;

use super::evidence::{Verdict, find_header};
use super::{Judgement, Look, NoRecord, Salvaged};
use crate::error::Result;
use crate::read::pipe::is_metadata;
use crate::read::source::Source;
use crate::record::{RawRecord, Record, RecordHeader};

/// The places that sizes lead to, one after the other.
pub(super) struct Chain {
    pub(super) places: Vec<u64>,
    /// Whether the last of them is the start of a record for certain, or the end.
    pub(super) is_solid: bool,
}

/// What the last search has shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Searched {
    /// What a start depends on besides its place: how places are aligned, and whether the record there is cut.
    like: (u64, bool),
    /// From where on no record starts before `to`, and whether one starts there.
    from: u64,
    to: u64,
    is_start: bool,
}

/// Records behind a doubtful one that are looked at.
const CHAIN: usize = 8;

/// Bytes of a header behind its first one.
const LAST_OF_HEADER: u64 = RecordHeader::SIZE as u64 - 1;

/// Times that the bytes of a recording, and some mebibytes more, are looked at before it is too much.
const PATIENCE: u64 = 16;

impl<S: Source> Salvaged<S> {
    /// The first place inside of the record at `at`, which ends at `next`, where a record starts that was taken into it
    /// by a wrong size.
    pub(super) fn hidden(&mut self, at: u64, next: u64, chain: Option<&Chain>) -> Result<Option<u64>> {
        let behind = at.saturating_add(RecordHeader::SIZE as u64);
        // What a record hides is looked for in itself first: what is behind it changes when damaged bytes are left out,
        // and then the record must still be believed.
        if let Some(to) = self.leading_to(behind, next)? {
            return Ok(Some(to));
        }
        let Some(Chain { places, is_solid }) = chain else { return Ok(None) };
        let Some(&landing) = places.last().filter(|&&landing| !is_solid || landing != next) else { return Ok(None) };
        let found = if *is_solid { self.leading_to(behind, landing)? } else { self.search(behind, landing)? };
        Ok(found.filter(|to| !places.contains(to)))
    }

    /// The first place from `from` on from which good records lead to `landing`.
    fn leading_to(&mut self, from: u64, landing: u64) -> Result<Option<u64>> {
        // Places are told by what they lead to.
        let step = if self.has_odd_sizes { 1 } else { 8 };
        let mut from = from.saturating_add(landing.saturating_sub(from).checked_rem(step).unwrap_or(0));
        // Where one way has gone and not arrived, no other arrives.
        let mut gone = HashSet::new();
        while from < landing && !self.is_tired() {
            let mut here = from;
            while here < landing && !gone.contains(&here) {
                let Some(look) = self.good(here)? else { break };
                gone.insert(here);
                here = here.saturating_add(look.total);
            }
            if here == landing {
                return Ok(Some(from));
            }
            from = from.saturating_add(step);
        }
        Ok(None)
    }

    /// Whether there is a record at `at`, or the records end there.
    pub(super) fn is_likely(&mut self, at: u64) -> Result<bool> {
        Ok(at == self.end
            || match self.look(at)? {
                Ok(look) if look.judgement.verdict.is_good() => true,
                Err(NoRecord::Cut(_)) => true,
                Ok(_) | Err(NoRecord::Not(_)) => self.is_table(at)?,
            })
    }

    /// Whether a whole record is at `at` that is as it should be, or the records end there.
    pub(super) fn is_good(&mut self, at: u64) -> Result<bool> {
        Ok(at == self.end || self.good(at)?.is_some())
    }

    /// The whole record at `at`, if it is as it should be.
    fn good(&mut self, at: u64) -> Result<Option<Look>> {
        // Most places are told by the header alone.
        let Self { blocks, source, here, floor, end, model, effort, .. } = self;
        let bytes = blocks.ahead(source, at, *here, *floor, *end)?;
        *effort = effort.saturating_add(RecordHeader::SIZE as u64);
        if find_header(bytes.get(..RecordHeader::SIZE).unwrap_or_default(), model.endian).is_none() {
            return Ok(None);
        }
        Ok(self.look(at)?.ok().filter(|look| look.judgement.verdict.is_good()))
    }

    /// Where sizes lead from `from` on; nothing where they lead nowhere.
    pub(super) fn chain(&mut self, from: u64) -> Result<Option<Chain>> {
        let (mut at, mut places, mut all_read) = (from, Vec::new(), true);
        while places.len() < CHAIN {
            places.push(at);
            if at == self.end {
                return Ok(Some(Chain { places, is_solid: true }));
            }
            let look = match self.look(at)? {
                Ok(look) => look,
                Err(NoRecord::Cut(_)) => return Ok(Some(Chain { places, is_solid: false })),
                Err(NoRecord::Not(_)) => return Ok(self.is_table(at)?.then_some(Chain { places, is_solid: true })),
            };
            match look.judgement.verdict {
                Verdict::Sure => return Ok(Some(Chain { places, is_solid: true })),
                // What comes next may be known only with what it says.
                Verdict::Likely if is_metadata(look.kind) => return Ok(Some(Chain { places, is_solid: true })),
                Verdict::Likely => {}
                Verdict::Odd | Verdict::Bad(_) if self.is_table(at)? => {
                    return Ok(Some(Chain { places, is_solid: true }));
                }
                Verdict::Odd => {}
                Verdict::Bad(_) => all_read = false,
            }
            at = at.saturating_add(look.total);
        }
        Ok(all_read.then_some(Chain { places, is_solid: false }))
    }

    /// The first place from `from` on, and before `limit`, that can be believed to be the start of a record.
    pub(super) fn search(&mut self, from: u64, limit: u64) -> Result<Option<u64>> {
        let like = (self.base % 8, self.is_cut);
        let known = self.searched.filter(|known| known.like == like && known.from <= from && from <= known.to);
        if let Some(Searched { to, is_start: true, .. }) = known {
            return Ok(Some(to).filter(|&to| to < limit));
        }
        let mut at = known.map_or(from, |known| known.to);
        let from = known.map_or(from, |known| known.from);
        while let Some(place) = self.header(at, limit)? {
            self.floor = place;
            let before = self.effort;
            if self.is_start(place)? && !self.is_around_others(place)? {
                self.searched = Some(Searched { like, from, to: place, is_start: true });
                return Ok(Some(place));
            }
            let step = if self.is_tired() { self.effort.saturating_sub(before) / PATIENCE } else { 0 };
            at = place.saturating_add(step.max(1));
        }
        self.searched = Some(Searched { like, from, to: limit.max(at), is_start: false });
        Ok(None)
    }

    /// The first place from `at` on, and before `limit`, with the header of a known record.
    fn header(&mut self, mut at: u64, limit: u64) -> Result<Option<u64>> {
        let Self { blocks, source, here, floor, end, model, .. } = self;
        while at < limit {
            let bytes = blocks.ahead(source, at, *here, *floor, *end)?;
            // Headers that begin before the limit.
            let wanted = limit.saturating_sub(at).saturating_add(LAST_OF_HEADER);
            let bytes = usize::try_from(wanted).ok().and_then(|wanted| bytes.get(..wanted)).unwrap_or(bytes);
            match find_header(bytes, model.endian) {
                Some(ahead) => return Ok(Some(at.saturating_add(ahead as u64))),
                None if bytes.len() < RecordHeader::SIZE => break,
                None => at = at.saturating_add(bytes.len().saturating_sub(RecordHeader::SIZE - 1) as u64),
            }
        }
        Ok(None)
    }

    /// Whether more was looked at than what lies behind is worth: then not all is tried that could be, so that the time
    /// that a damaged recording takes grows with its size, whatever is in it.
    fn is_tired(&self) -> bool {
        let passed = self.floor.max(self.base).saturating_sub(self.start);
        self.effort.saturating_add(self.blocks.far.read) > passed.saturating_add(4 << 20).saturating_mul(PATIENCE)
    }

    /// The first place inside of the record at `at`, which ends at `next`, where records start that reach beyond it:
    /// bytes in it were taken out, and it took the first ones of the next.
    pub(super) fn overlapping(&mut self, at: u64, next: u64) -> Result<Option<u64>> {
        let mut from = at.saturating_add(RecordHeader::SIZE as u64);
        while let Some(place) = self.header(from, next)?.filter(|_| !self.is_tired()) {
            let mut here = place;
            let mut count = 0_usize;
            while count < CHAIN / 2 && here < self.end {
                let Some(Look { total, .. }) = self.good(here)? else { break };
                here = here.saturating_add(total);
                // What leads from an odd place to the start of a record is no record.
                if here <= next || !(self.has_odd_sizes || total.is_multiple_of(8)) {
                    count = 0;
                    break;
                }
                count = count.saturating_add(1);
            }
            if count == CHAIN / 2 || (count > 0 && here == self.end) {
                return Ok(Some(place));
            }
            from = place.saturating_add(1);
        }
        Ok(None)
    }

    /// Whether what looks like a record at `at` takes in whole ones, up to its end.
    fn is_around_others(&mut self, at: u64) -> Result<bool> {
        let Ok(look) = self.look(at)? else { return Ok(false) };
        let end = at.saturating_add(look.total);
        Ok(self.leading_to(at.saturating_add(RecordHeader::SIZE as u64), end)?.is_some())
    }

    /// Whether records start at `at`: one that is sure to belong to this recording, or several in a row.
    fn is_start(&mut self, at: u64) -> Result<bool> {
        let is_aligned = at.saturating_sub(self.base).is_multiple_of(8) || self.has_odd_sizes;
        let mut here = at;
        for count in 0..=CHAIN / 2 {
            if count > 0 && here == self.end {
                if !is_aligned {
                    return Ok(count > 2);
                }
                // What looks like the last record may be a part of one that is cut.
                return Ok(count > 1 || !self.is_cut || self.is_record(self.base, at)?);
            }
            match self.look(here)? {
                Ok(Look { judgement: Judgement { verdict: Verdict::Sure, .. }, total, .. }) => {
                    return Ok(is_aligned || self.is_good(here.saturating_add(total))?);
                }
                Ok(look) if look.judgement.verdict.is_good() && (is_aligned || look.size.is_multiple_of(8)) => {
                    here = here.saturating_add(look.total);
                }
                Err(NoRecord::Cut(_)) => return Ok(false),
                Ok(_) | Err(NoRecord::Not(_)) => return Ok(count > 0 && is_aligned && self.is_table(here)?),
            }
        }
        Ok(true)
    }

    /// Whether the bytes up to `end` are a record, with another size than it says.
    fn is_record(&mut self, at: u64, end: u64) -> Result<bool> {
        let Self { blocks, source, model, here, end: limit, .. } = self;
        let Ok(size) = u16::try_from(end.saturating_sub(at)) else { return Ok(false) };
        let bytes = blocks.near.get(source, at, u64::from(size), *here, *limit)?;
        let mut bytes = bytes.get(..usize::from(size)).unwrap_or(bytes).to_vec();
        if let Some(field) = bytes.get_mut(6..8) {
            field.copy_from_slice(&if model.endian == Endian::Little {
                size.to_le_bytes()
            } else {
                size.to_be_bytes()
            });
        }
        let raw = RawRecord::first(&bytes, model.endian, at);
        let is_one = |raw: &RawRecord<'_>| Record::decode(raw, &model.events.layout_of(raw)).is_ok();
        // Of a metadata record any part is one.
        Ok(raw.is_ok_and(|raw| !is_metadata(raw.kind) && is_one(&raw)))
    }

    /// Whether the feature table stands at `at`, where it is looked for.
    pub(super) fn is_table(&self, at: u64) -> Result<bool> {
        self.table.as_ref().map_or(Ok(false), |table| table.is_at(&self.source, at))
    }
}
