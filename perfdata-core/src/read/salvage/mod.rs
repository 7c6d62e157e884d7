//! Reading truncated, unfinished or corrupt recordings: only plausible records are returned.
//!
//! A record is accepted at once if it contains the ID of an event or a time close to that of other
//! records, and all of its bytes are accounted for. Other records are accepted if their size leads
//! to another record. If it does not, the next offset is searched from which on records follow; the
//! bytes between are skipped and reported.
//!
//! `rules.rs` is the table of rules by which a record is judged, and `STARTS` in `search.rs` that
//! of the evidence that records start at an offset. The decision about an offset (`step`) is no
//! table: most of its conditions are searches, which read and use up a common effort, so that each
//! is made only if the ones before have not decided. Rows could not be understood or moved
//! separately, and would hide this order.

mod block;
mod evidence;
mod inner;
mod open;
mod report;
mod rules;
mod search;

pub use report::{CompressedData, Foreknown, Ids, Left, Losses, Salvaging, Skipped, Survey};

use std::io::{self, Read};

use crate::decode_context::DecodeContext;
use crate::error::{Error, Problem, Result};
use crate::feature::FeatureId;
use crate::header::FileSection;
use crate::read::file_rest::TableSearch;
use crate::read::limits::Limits;
use crate::read::pipe::Collector;
use crate::read::records::StreamItem;
use crate::read::source::Source;
use crate::record::{Body, RawRecord, Record, RecordHeader, RecordType};
use crate::recording::Recording;

use block::{BLOCK, SalvageBlocks};
use evidence::{Evidence, Judgement, Verdict};
use inner::Zstd;
use search::Searched;

/// The plausible records of a file or pipe, as a stream.
#[derive(Debug)]
pub struct Salvaged<S> {
    source: S,
    blocks: SalvageBlocks,
    /// The last offset known to be the start of a record, where the last search began.
    base: u64,
    /// Whether the record there seems to be truncated by the end of the input.
    is_cut: bool,
    /// Whether records may have sizes that are not a multiple of 8, so that nothing is known about
    /// the alignment of offsets.
    has_odd_sizes: bool,
    /// End of the records, as far as known.
    end: u64,
    /// Offset of the next byte of the stream; the `ready` bytes from there on are accepted.
    here: u64,
    ready: u64,
    /// Offset at which the stream continues after them.
    jump: Option<u64>,
    searched: Option<Searched>,
    /// Start of the records, the offset that a search has reached, and the number of bytes examined
    /// so far.
    start: u64,
    floor: u64,
    effort: u64,
    model: Recording,
    /// Present for a pipe, where metadata are records.
    collector: Option<Collector>,
    evidence: Evidence,
    table: Option<TableSearch>,
    zstd: Zstd,
    salvaging: Salvaging,
}

/// Returns an attribute's record without the IDs in it; `None` if it cannot be decoded.
fn attr_without_ids(raw: &RawRecord<'_>) -> Option<Vec<u8>> {
    let mut record = Record::decode(raw, &DecodeContext::default()).ok()?;
    let Body::HeaderAttr(attr) = &mut record.body else {
        return None;
    };
    attr.ids.0.clear();
    record.encode(raw.endian).ok()
}

/// The record at an offset.
struct Look {
    kind: RecordType,
    /// Size of the record in bytes, without and with its payload.
    size: usize,
    total: u64,
    judgement: Judgement,
}

/// The reason why there is no record at an offset.
enum NoRecord {
    /// The input ends within the record.
    Cut(Error),
    /// No record starts like this.
    Not(Error),
}

/// Decision about the bytes at an offset.
enum Step {
    Keep(u64),
    Skip(u64, Error),
    End,
}

/// Number of accepted bytes that are collected before any are returned.
const BATCH: u64 = 64 << 10;

/// Maximum size of a record in bytes.
const LARGEST: u64 = u16::MAX as u64;

impl<S: Source> Salvaged<S> {
    /// Returns the records at `place`. For a pipe, `model` is empty and is extended by a
    /// `collector`. For a file whose end of the records is unknown, `table` searches for the
    /// feature table.
    pub(super) fn new(
        source: S,
        place: FileSection,
        (model, collector): (Recording, Option<Collector>),
        limits: Limits,
        table: Option<TableSearch>,
        losses: Losses,
        foreknown: Foreknown,
    ) -> Result<Self> {
        let len = source.len().map_err(|e| Error::io("file", e))?;
        Ok(Salvaged {
            source,
            blocks: SalvageBlocks::new(),
            base: place.offset,
            is_cut: false,
            has_odd_sizes: model.features.contains_key(&FeatureId::COMPRESSED),
            end: place.end().unwrap_or(u64::MAX).min(len),
            here: place.offset,
            ready: 0,
            jump: None,
            searched: None,
            start: place.offset,
            floor: place.offset,
            effort: 0,
            model,
            collector,
            evidence: Evidence::new(foreknown),
            table,
            zstd: Zstd::new(limits),
            salvaging: Salvaging {
                losses,
                ..Salvaging::default()
            },
        })
    }

    /// Returns the records of a file next to the `data` of a directory; `model` is that of `data`.
    pub(super) fn beside(
        source: S,
        model: &Recording,
        limits: Limits,
        foreknown: Foreknown,
    ) -> Result<Self> {
        let whole = FileSection {
            offset: 0,
            size: u64::MAX,
        };
        Self::new(
            source,
            whole,
            (model.clone(), None),
            limits,
            None,
            Losses::default(),
            foreknown,
        )
    }

    /// Reads everything and reports what is present. `seen` is called with the number of bytes read
    /// in each step.
    pub(super) fn survey(mut self, mut seen: impl FnMut(u64)) -> Result<Survey> {
        loop {
            let from = self.here;
            self.advance()?;
            self.here = self.here.saturating_add(std::mem::take(&mut self.ready));
            seen(self.here.saturating_sub(from));
            if self.jump.is_none() && self.here >= self.end {
                break;
            }
        }
        let Self {
            model,
            evidence,
            salvaging,
            zstd,
            end,
            ..
        } = self;
        let mut foreknown = evidence.foreknown(&model);
        foreknown.end = foreknown
            .end
            .or(salvaging.losses.end_of_records.then_some(end));
        Ok(Survey {
            samples: evidence.samples(),
            has_false_build_ids: evidence.has_false_build_ids,
            compressed: zstd.data(),
            recording: model,
            salvaging,
            foreknown,
        })
    }

    /// Decides about more bytes.
    fn advance(&mut self) -> Result<()> {
        if let Some(to) = self.jump.take() {
            self.here = to;
        }
        while self.ready < BATCH && self.jump.is_none() {
            let at = self.here.saturating_add(self.ready);
            if at >= self.end {
                break;
            }
            let sure = self.sure(at)?;
            if sure > 0 {
                self.ready = self.ready.saturating_add(sure);
                continue;
            }
            match self.step(at)? {
                Step::Keep(total) => self.ready = self.ready.saturating_add(total),
                Step::Skip(to, why) => {
                    self.salvaging.skip(
                        FileSection {
                            offset: at,
                            size: to.saturating_sub(at),
                        },
                        why,
                    );
                    if self.ready == 0 {
                        self.here = to
                    } else {
                        self.jump = Some(to)
                    }
                }
                Step::End => self.end = at,
            }
        }
        Ok(())
    }

    /// Returns the size of the records from `at` on that need no detailed check, each followed by a
    /// regular record: nearly all of a recording.
    fn sure(&mut self, at: u64) -> Result<u64> {
        let Self {
            blocks,
            source,
            evidence,
            model,
            salvaging,
            here,
            end,
            ..
        } = self;
        let bytes = blocks.near.get(source, at, LARGEST, *here, *end)?;
        let (mut len, mut count) = (0_usize, 0_u64);
        // The records with a known successor, and the evidence up to there.
        let mut settled = (len, count, *evidence);
        while let Some(header) =
            RecordHeader::parse(bytes.get(len..).unwrap_or_default(), model.endian)
        {
            let next = len.saturating_add(usize::from(header.size));
            let Some(record) = bytes
                .get(len..next)
                .filter(|_| usize::from(header.size) >= RecordHeader::SIZE)
            else {
                break;
            };
            let RecordHeader { kind, misc, .. } = header;
            let offset = at.saturating_add(len as u64);
            let raw = RawRecord {
                offset,
                kind,
                misc,
                bytes: record,
                endian: model.endian,
            };
            let before = *evidence;
            if len as u64 >= BATCH {
                break;
            }
            if !evidence.is_sure(&raw, model) {
                if evidence.judge(&raw, model).verdict.is_good() {
                    settled = (len, count, before);
                }
                break;
            }
            settled = (len, count, before);
            (len, count) = (next, count.saturating_add(1));
        }
        if at.saturating_add(len as u64) == *end {
            settled = (len, count, *evidence);
        }
        (len, count, *evidence) = settled;
        if count > 0 {
            salvaging.left.records = salvaging.left.records.saturating_add(count);
            salvaging.believe();
        }
        Ok(len as u64)
    }

    fn step(&mut self, at: u64) -> Result<Step> {
        self.base = at;
        let look = self.look(at)?;
        self.is_cut = matches!(look, Err(NoRecord::Cut(_)));
        let look = match look {
            Ok(look) => look,
            Err(NoRecord::Cut(why) | NoRecord::Not(why)) => {
                if self.is_table(at)? {
                    return Ok(Step::End);
                }
                let to = self
                    .search(at.saturating_add(1), self.end)?
                    .unwrap_or(self.end);
                self.zstd.is_lost = true;
                return Ok(Step::Skip(to, why));
            }
        };
        let next = at.saturating_add(look.total);
        let is_likely = matches!(look.judgement.verdict, Verdict::Likely);
        match look.judgement.verdict {
            Verdict::Sure | Verdict::Likely if self.is_likely(next)? => return self.keep(at, look),
            Verdict::Sure => {
                return match self.overlapping(at, next)? {
                    Some(to) => self.skip(to, leads_nowhere(&look, at)),
                    None => self.keep(at, look),
                };
            }
            Verdict::Likely => {}
            // On big-endian machines a table looks like a record of type 0.
            _ if self.is_table(at)? => return Ok(Step::End),
            _ => {}
        }
        let chain = self.chain(next)?;
        if let Some(to) = self
            .hidden(at, next, chain.as_ref())?
            .filter(|&to| !is_likely || to < next)
        {
            return self.skip(to, leads_nowhere(&look, at));
        }
        let is_bad = matches!(look.judgement.verdict, Verdict::Bad(_));
        if chain.is_some() && !is_bad {
            return self.keep(at, look);
        }
        let to = match chain {
            // Both neighbours are known: no other record was lost.
            Some(_) => next,
            None => {
                let behind = at.saturating_add(RecordHeader::SIZE as u64);
                match self.search(behind, self.end)? {
                    found if is_likely && found.is_none_or(|to| to >= next) => {
                        return self.keep(at, look);
                    }
                    found => found.unwrap_or(self.end),
                }
            }
        };
        self.zstd.is_lost |= chain.is_none() || look.kind.is_compressed();
        let why = leads_nowhere(&look, at);
        Ok(Step::Skip(
            to,
            if let Verdict::Bad(why) = look.judgement.verdict {
                why
            } else {
                why
            },
        ))
    }

    fn skip(&mut self, to: u64, why: Error) -> Result<Step> {
        self.zstd.is_lost = true;
        Ok(Step::Skip(to, why))
    }

    /// Accepts the record at `at`, unless it is compressed and cannot be decompressed.
    fn keep(&mut self, at: u64, look: Look) -> Result<Step> {
        let Self {
            blocks,
            source,
            evidence,
            model,
            collector,
            zstd,
            here,
            end,
            salvaging,
            searched,
            ..
        } = self;
        let bytes = blocks.near.get(source, at, look.size as u64, *here, *end)?;
        let raw = RawRecord::first(bytes, model.endian, at)?;
        if raw.kind.is_compressed()
            && let Err(why) = zstd.take(&raw, evidence, model)
        {
            // A lack of memory says nothing about the record.
            if why.is_io() {
                return Err(why);
            }
            zstd.is_lost = true;
            return Ok(Step::Skip(at.saturating_add(look.total), why));
        }
        if let Some(collector) = collector
            && raw.kind.is_metadata()
        {
            let without_ids = match evidence.has_lost_ids() && raw.kind == RecordType::HEADER_ATTR {
                true => attr_without_ids(&raw),
                false => None,
            };
            let taken = match &without_ids {
                Some(bytes) => RawRecord { bytes, ..raw },
                None => raw,
            };
            if let Err(why) = collector.item(model, &StreamItem::Record(taken)) {
                return Ok(Step::Skip(at.saturating_add(look.total), why));
            }
            let mut behind = at.saturating_add(look.size as u64);
            while behind < at.saturating_add(look.total) {
                let payload =
                    blocks
                        .far
                        .get(source, behind, 1, behind, at.saturating_add(look.total))?;
                if payload.is_empty() {
                    break;
                }
                behind = behind.saturating_add(<[u8]>::len(payload) as u64);
                collector.item(model, &StreamItem::Payload(payload))?;
            }
            // Removes the IDs that were present before. Checking all events for each attribute
            // would take quadratic time.
            if evidence.has_lost_ids()
                && model
                    .events
                    .first()
                    .is_some_and(|event| !event.ids.is_empty())
            {
                model.events = std::mem::take(&mut model.events).without_ids();
            }
            // Bytes that were not a record may be one now.
            *searched = None;
        }
        evidence.learn(&raw, model, &look.judgement);
        salvaging.left.records = salvaging.left.records.saturating_add(1);
        if raw.kind == RecordType::AUXTRACE {
            salvaging.left.auxtrace.push(FileSection {
                offset: at,
                size: look.size as u64,
            });
        }
        salvaging.believe();
        self.has_odd_sizes |= look.kind.is_compressed() || !look.size.is_multiple_of(8);
        Ok(Step::Keep(look.total))
    }

    /// Examines the record at `at`.
    fn look(&mut self, at: u64) -> Result<Result<Look, NoRecord>> {
        let Self {
            blocks,
            source,
            evidence,
            model,
            here,
            floor,
            end,
            effort,
            ..
        } = self;
        let bytes = blocks.ahead(source, at, *here, *floor, *end)?;
        *effort = effort.saturating_add(RecordHeader::SIZE as u64);
        let raw = match RawRecord::first(bytes, model.endian, at) {
            Ok(raw) => raw,
            Err(why) => {
                let is_known = RecordHeader::parse(bytes, model.endian)
                    .is_none_or(|h| h.kind.info().is_some());
                let is_cut = is_known && matches!(why.problem(), Problem::Truncated { .. });
                return Ok(Err(if is_cut {
                    NoRecord::Cut(why)
                } else {
                    NoRecord::Not(why)
                }));
            }
        };
        let payload = match raw.payload_len() {
            Ok(payload) => payload,
            Err(why) => return Ok(Err(NoRecord::Not(why))),
        };
        let total = (raw.bytes.len() as u64).saturating_add(payload);
        let left = end.saturating_sub(at);
        if total > left {
            let why = Error::truncated(format!("{} record and its payload", raw.kind), total, left);
            return Ok(Err(NoRecord::Cut(why.at(at))));
        }
        *effort = effort.saturating_add(raw.bytes.len() as u64);
        Ok(Ok(Look {
            kind: raw.kind,
            size: raw.bytes.len(),
            total,
            judgement: evidence.judge(&raw, model),
        }))
    }
}

impl<S: Source> Read for Salvaged<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.ready == 0 {
            self.advance().map_err(io::Error::other)?;
        }
        let wanted = self.ready.min(buf.len() as u64).min(BLOCK);
        let bytes = self
            .blocks
            .near
            .get(&self.source, self.here, wanted, self.here, self.end)
            .map_err(io::Error::other)?;
        let mut believed = bytes
            .get(
                ..bytes
                    .len()
                    .min(usize::try_from(wanted).unwrap_or(usize::MAX)),
            )
            .unwrap_or(bytes);
        let got = believed.read(buf)?;
        self.here = self.here.saturating_add(got as u64);
        self.ready = self.ready.saturating_sub(got as u64);
        Ok(got)
    }
}

fn leads_nowhere(look: &Look, at: u64) -> Error {
    let expected = "a size after which another record starts";
    Error::invalid(
        format!("{} record", look.kind),
        "size",
        look.size.to_string(),
        expected,
    )
    .at(at)
}
