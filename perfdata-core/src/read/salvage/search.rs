//! Search for the start of records, for the offsets to which their sizes lead, and for records that
//! a wrong size hides.

use std::collections::HashSet;

use super::evidence::{Verdict, find_header};
use super::{Look, NoRecord, Salvaged};
use crate::error::Result;
use crate::read::source::Source;
use crate::record::{RawRecord, Record, RecordHeader};

/// The offsets to which sizes lead, in order.
pub(super) struct Chain {
    pub(super) places: Vec<u64>,
    /// Whether the last of them is certainly the start of a record, or the end.
    pub(super) is_solid: bool,
}

/// Result of the last search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Searched {
    /// Conditions for a start other than its offset: the alignment of offsets, and whether the
    /// record at the base is truncated.
    like: (u64, bool),
    /// No record starts from `from` on and before `to`; and whether one starts at `to`.
    from: u64,
    to: u64,
    is_start: bool,
}

/// Number of records examined after a doubtful one.
const CHAIN: usize = 8;

/// Regular records in a row.
struct RegularRecords {
    /// Number of records that are likely, not including one that is sure.
    count: usize,
    /// The offset after them, and after one that is sure.
    behind: u64,
    follows: Follows,
}

/// What follows likely records in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// A record that is sure.
    Sure,
    /// More records than are examined.
    More,
    /// The end of the records.
    End,
    /// A record that is truncated by the end.
    Cut,
    /// No regular record.
    Other,
}

/// What is needed so that records start at an offset.
#[derive(Debug, Clone, Copy)]
enum Needed {
    /// Nothing else.
    Nothing,
    /// At least so many records.
    Records(usize),
    /// A second record if the last known one is truncated, and not just of a wrong size.
    SecondIfCut,
    /// Another regular record, or the end.
    Successor,
    /// The feature table after at least one record.
    Table,
    /// Evidence of another kind.
    OtherEvidence,
}

/// Evidence that records start at an offset.
struct Start {
    follows: Follows,
    /// What is needed at an offset with the alignment of the last known record, and at another one.
    aligned: Needed,
    misaligned: Needed,
}

/// All evidence that records start at an offset. A truncated record is none: any header with a size
/// beyond the end looks like one.
const STARTS: [Start; 4] = [
    // Other bytes rarely contain an ID or a time of this recording. At a misaligned offset they may
    // be a part of a record that does.
    Start {
        follows: Follows::Sure,
        aligned: Needed::Nothing,
        misaligned: Needed::Successor,
    },
    // Sizes that lead from header to header so often are not due to chance.
    Start {
        follows: Follows::More,
        aligned: Needed::Nothing,
        misaligned: Needed::Nothing,
    },
    // A size that leads to the end is more than chance, but the apparent last record may be a part
    // of a truncated one. At a misaligned offset it may be a part of any record.
    Start {
        follows: Follows::End,
        aligned: Needed::SecondIfCut,
        misaligned: Needed::Records(3),
    },
    // The feature table is the end of the records where this is not known. It is aligned as they
    // are.
    Start {
        follows: Follows::Other,
        aligned: Needed::Table,
        misaligned: Needed::OtherEvidence,
    },
];

/// Size of a header without its first byte.
const LAST_OF_HEADER: u64 = RecordHeader::SIZE as u64 - 1;

/// Maximum number of times that the bytes of a recording, plus a few MiB, are examined.
const PATIENCE: u64 = 16;

impl<S: Source> Salvaged<S> {
    /// Returns the first offset inside the record at `at`, which ends at `next`, where a record
    /// starts that a wrong size has included.
    pub(super) fn hidden(
        &mut self,
        at: u64,
        next: u64,
        chain: Option<&Chain>,
    ) -> Result<Option<u64>> {
        let behind = at.saturating_add(RecordHeader::SIZE as u64);
        // The record itself is searched first: the data after it changes when damaged bytes are
        // removed, and the record must then still be accepted.
        if let Some(to) = self.leading_to(behind, next)? {
            return Ok(Some(to));
        }
        let Some(Chain { places, is_solid }) = chain else {
            return Ok(None);
        };
        let Some(&landing) = places
            .last()
            .filter(|&&landing| !is_solid || landing != next)
        else {
            return Ok(None);
        };
        let found = if *is_solid {
            self.leading_to(behind, landing)?
        } else {
            self.search(behind, landing)?
        };
        Ok(found.filter(|to| !places.contains(to)))
    }

    /// Returns the first offset at or after `from` from which good records lead to `landing`.
    fn leading_to(&mut self, from: u64, landing: u64) -> Result<Option<u64>> {
        // Offsets are aligned relative to the one to which they lead.
        let step = if self.has_odd_sizes { 1 } else { 8 };
        let mut from =
            from.saturating_add(landing.saturating_sub(from).checked_rem(step).unwrap_or(0));
        // If one path went through an offset and did not arrive, no other path through it arrives.
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

    /// Returns whether there is a record at `at`, or the records end there.
    pub(super) fn is_likely(&mut self, at: u64) -> Result<bool> {
        Ok(at == self.end
            || match self.look(at)? {
                Ok(look) if look.judgement.verdict.is_good() => true,
                Err(NoRecord::Cut(_)) => true,
                Ok(_) | Err(NoRecord::Not(_)) => self.is_table(at)?,
            })
    }

    /// Returns whether there is a complete regular record at `at`, or the records end there.
    pub(super) fn is_good(&mut self, at: u64) -> Result<bool> {
        Ok(at == self.end || self.good(at)?.is_some())
    }

    /// Returns the complete record at `at`, if it is regular.
    fn good(&mut self, at: u64) -> Result<Option<Look>> {
        // The header alone excludes most offsets.
        let Self {
            blocks,
            source,
            here,
            floor,
            end,
            model,
            effort,
            ..
        } = self;
        let bytes = blocks.ahead(source, at, *here, *floor, *end)?;
        *effort = effort.saturating_add(RecordHeader::SIZE as u64);
        if find_header(
            bytes.get(..RecordHeader::SIZE).unwrap_or_default(),
            model.endian,
        )
        .is_none()
        {
            return Ok(None);
        }
        Ok(self
            .look(at)?
            .ok()
            .filter(|look| look.judgement.verdict.is_good()))
    }

    /// Returns the offsets to which sizes lead from `from` on; `None` if they lead to no record.
    pub(super) fn chain(&mut self, from: u64) -> Result<Option<Chain>> {
        let (mut at, mut places, mut all_read) = (from, Vec::new(), true);
        while places.len() < CHAIN {
            places.push(at);
            if at == self.end {
                return Ok(Some(Chain {
                    places,
                    is_solid: true,
                }));
            }
            let look = match self.look(at)? {
                Ok(look) => look,
                Err(NoRecord::Cut(_)) => {
                    return Ok(Some(Chain {
                        places,
                        is_solid: false,
                    }));
                }
                Err(NoRecord::Not(_)) => {
                    return Ok(self.is_table(at)?.then_some(Chain {
                        places,
                        is_solid: true,
                    }));
                }
            };
            match look.judgement.verdict {
                Verdict::Sure => {
                    return Ok(Some(Chain {
                        places,
                        is_solid: true,
                    }));
                }
                // The next record may be recognisable only with the content of this one.
                Verdict::Likely if look.kind.is_metadata() => {
                    return Ok(Some(Chain {
                        places,
                        is_solid: true,
                    }));
                }
                Verdict::Likely => {}
                Verdict::Odd | Verdict::Bad(_) if self.is_table(at)? => {
                    return Ok(Some(Chain {
                        places,
                        is_solid: true,
                    }));
                }
                Verdict::Odd => {}
                Verdict::Bad(_) => all_read = false,
            }
            at = at.saturating_add(look.total);
        }
        Ok(all_read.then_some(Chain {
            places,
            is_solid: false,
        }))
    }

    /// Returns the first offset at or after `from`, and before `limit`, that is plausible as the
    /// start of a record.
    pub(super) fn search(&mut self, from: u64, limit: u64) -> Result<Option<u64>> {
        let like = (self.base % 8, self.is_cut);
        let known = self
            .searched
            .filter(|known| known.like == like && known.from <= from && from <= known.to);
        if let Some(Searched {
            to, is_start: true, ..
        }) = known
        {
            return Ok(Some(to).filter(|&to| to < limit));
        }
        let mut at = known.map_or(from, |known| known.to);
        let from = known.map_or(from, |known| known.from);
        while let Some(place) = self.header(at, limit)? {
            self.floor = place;
            let before = self.effort;
            if self.is_start(place)? && !self.is_around_others(place)? {
                self.searched = Some(Searched {
                    like,
                    from,
                    to: place,
                    is_start: true,
                });
                return Ok(Some(place));
            }
            let step = if self.is_tired() {
                self.effort.saturating_sub(before) / PATIENCE
            } else {
                0
            };
            at = place.saturating_add(step.max(1));
        }
        self.searched = Some(Searched {
            like,
            from,
            to: limit.max(at),
            is_start: false,
        });
        Ok(None)
    }

    /// Returns the first offset at or after `at`, and before `limit`, with the header of a known
    /// record.
    fn header(&mut self, mut at: u64, limit: u64) -> Result<Option<u64>> {
        let Self {
            blocks,
            source,
            here,
            floor,
            end,
            model,
            ..
        } = self;
        while at < limit {
            let bytes = blocks.ahead(source, at, *here, *floor, *end)?;
            // Headers that start before the limit.
            let wanted = limit.saturating_sub(at).saturating_add(LAST_OF_HEADER);
            let bytes = usize::try_from(wanted)
                .ok()
                .and_then(|wanted| bytes.get(..wanted))
                .unwrap_or(bytes);
            match find_header(bytes, model.endian) {
                Some(ahead) => return Ok(Some(at.saturating_add(ahead as u64))),
                None if bytes.len() < RecordHeader::SIZE => break,
                None => {
                    at =
                        at.saturating_add(bytes.len().saturating_sub(RecordHeader::SIZE - 1) as u64)
                }
            }
        }
        Ok(None)
    }

    /// Returns whether more bytes were examined than the progress so far justifies. Then some
    /// possibilities are not tried, so that the time for a corrupt recording is proportional to its
    /// size, regardless of its content.
    fn is_tired(&self) -> bool {
        let passed = self.floor.max(self.base).saturating_sub(self.start);
        self.effort.saturating_add(self.blocks.far.read)
            > passed.saturating_add(4 << 20).saturating_mul(PATIENCE)
    }

    /// Returns the first offset inside the record at `at`, which ends at `next`, where records
    /// start that extend beyond it: bytes inside the record are missing, so its size includes the
    /// first bytes of the next record.
    pub(super) fn overlapping(&mut self, at: u64, next: u64) -> Result<Option<u64>> {
        let mut from = at.saturating_add(RecordHeader::SIZE as u64);
        while let Some(place) = self.header(from, next)?.filter(|_| !self.is_tired()) {
            let mut here = place;
            let mut count = 0_usize;
            while count < CHAIN / 2 && here < self.end {
                let Some(Look { total, .. }) = self.good(here)? else {
                    break;
                };
                here = here.saturating_add(total);
                // Bytes that lead from a misaligned offset to the start of a record are not a
                // record.
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

    /// Returns whether the apparent record at `at` contains complete records, up to its end.
    fn is_around_others(&mut self, at: u64) -> Result<bool> {
        let Ok(look) = self.look(at)? else {
            return Ok(false);
        };
        let end = at.saturating_add(look.total);
        Ok(self
            .leading_to(at.saturating_add(RecordHeader::SIZE as u64), end)?
            .is_some())
    }

    /// Returns whether records start at `at`: one that certainly belongs to this recording, or
    /// several in a row. [`STARTS`] says what is sufficient.
    fn is_start(&mut self, at: u64) -> Result<bool> {
        let is_aligned = at.saturating_sub(self.base).is_multiple_of(8) || self.has_odd_sizes;
        let RegularRecords {
            count,
            behind,
            follows,
        } = self.row(at, is_aligned)?;
        let Some(start) = STARTS.iter().find(|start| start.follows == follows) else {
            return Ok(false);
        };
        let needed = match is_aligned {
            true => start.aligned,
            false => start.misaligned,
        };
        match needed {
            Needed::Nothing => Ok(true),
            Needed::Records(least) => Ok(count >= least),
            Needed::SecondIfCut => {
                Ok(count > 1 || !self.is_cut || self.is_record(self.base, at)?)
            }
            Needed::Successor => self.is_good(behind),
            Needed::Table => Ok(count > 0 && self.is_table(behind)?),
            Needed::OtherEvidence => Ok(false),
        }
    }

    /// Returns the regular records in a row from `at` on, up to one that is sure.
    fn row(&mut self, at: u64, is_aligned: bool) -> Result<RegularRecords> {
        let mut behind = at;
        for count in 0..=CHAIN / 2 {
            let found = |behind, follows| {
                Ok(RegularRecords {
                    count,
                    behind,
                    follows,
                })
            };
            if count > 0 && behind == self.end {
                return found(behind, Follows::End);
            }
            let look = match self.look(behind)? {
                Ok(look) => look,
                Err(NoRecord::Cut(_)) => return found(behind, Follows::Cut),
                Err(NoRecord::Not(_)) => return found(behind, Follows::Other),
            };
            let next = behind.saturating_add(look.total);
            match look.judgement.verdict {
                Verdict::Sure => return found(next, Follows::Sure),
                Verdict::Likely if is_aligned || look.size.is_multiple_of(8) => behind = next,
                Verdict::Likely | Verdict::Odd | Verdict::Bad(_) => {
                    return found(behind, Follows::Other);
                }
            }
        }
        Ok(RegularRecords {
            count: CHAIN / 2 + 1,
            behind,
            follows: Follows::More,
        })
    }

    /// Returns whether the bytes up to `end` are a record, although its header contains another
    /// size.
    fn is_record(&mut self, at: u64, end: u64) -> Result<bool> {
        let Self {
            blocks,
            source,
            model,
            here,
            end: limit,
            ..
        } = self;
        let Ok(size) = u16::try_from(end.saturating_sub(at)) else {
            return Ok(false);
        };
        let bytes = blocks
            .near
            .get(source, at, u64::from(size), *here, *limit)?;
        let mut bytes = bytes.get(..usize::from(size)).unwrap_or(bytes).to_vec();
        RecordHeader::put_size(&mut bytes, size, model.endian);
        let raw = RawRecord::first(&bytes, model.endian, at);
        let is_one =
            |raw: &RawRecord<'_>| Record::decode(raw, &model.events.layout_of(raw)).is_ok();
        // Any part of a metadata record can be decoded.
        Ok(raw.is_ok_and(|raw| !raw.kind.is_metadata() && is_one(&raw)))
    }

    /// Returns whether the feature table is at `at`; false if it is not searched for.
    pub(super) fn is_table(&self, at: u64) -> Result<bool> {
        self.table
            .as_ref()
            .map_or(Ok(false), |table| table.is_at(&self.source, at))
    }
}
