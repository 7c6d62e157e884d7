//! Reading recordings that are cut, were never finished, or are damaged: only what can be believed comes through.
//!
//! A record is believed at once if it bears the id of an event or a time near that of others, and all of its bytes are
//! accounted for. Others are believed if their size leads to another record. Where that fails, the next place is looked
//! for from which on there are records again; what lies between is skipped, and remembered.

use std::io::{self, Read};

use binrw::Endian;

use crate::error::{Error, Problem, Result};
use crate::feature::FeatureId;
use crate::header::FileSection;
use crate::read::decompress::{Decompressor, is_compressed};
use crate::read::evidence::{Evidence, Verdict, find_header};
use crate::read::file::TableSearch;
use crate::read::pipe::{Collector, is_metadata};
use crate::read::records::Piece;
use crate::read::source::Source;
use crate::record::{RawRecord, RecordHeader, RecordType};
use crate::recording::Recording;

/// Bytes that are no records, or records that cannot be used.
#[derive(Debug)]
pub struct Skipped {
    /// Where they are.
    pub place: FileSection,
    /// What is wrong with the first of them.
    pub why: Error,
}

/// What a file lost outside of its records.
#[derive(Debug, Default)]
pub struct Losses {
    /// Features that the header announces, and whose sections are not there, are cut, or cannot be read.
    pub features: Vec<FeatureId>,
    /// Attributes of which only a part is there, or nothing.
    pub attrs: u64,
    /// Events, by place in the list, whose ids are not in the file.
    pub ids: Vec<usize>,
    /// Whether the names of events (before 3.12) are lost.
    pub event_types: bool,
    /// Whether the header did not say, or not rightly, where the records end.
    pub end_of_records: bool,
}

/// What was found in the records.
#[derive(Debug, Default)]
pub struct Mending {
    /// What was skipped, ascending; the first of them, if there are many.
    pub skipped: Vec<Skipped>,
    /// Number of skipped ranges that are not in the list.
    pub more: u64,
    /// Bytes skipped.
    pub bytes: u64,
    /// Number of skipped ranges with records behind them.
    pub inside: u64,
    /// What is lost outside of the records.
    pub losses: Losses,
    /// Whether the last range may turn out to have records behind it.
    open: bool,
}

/// Skipped ranges that are remembered with place and reason.
const MOST: usize = 1000;

impl Mending {
    fn skip(&mut self, place: FileSection, why: Error) {
        self.bytes = self.bytes.saturating_add(place.size);
        if self.open
            && self.more == 0
            && let Some(last) = self.skipped.last_mut().filter(|last| last.place.end() == Some(place.offset))
        {
            last.place.size = last.place.size.saturating_add(place.size);
            return;
        }
        self.open = true;
        if self.skipped.len() < MOST {
            self.skipped.push(Skipped { place, why });
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    fn believe(&mut self) {
        self.inside = self.inside.saturating_add(u64::from(std::mem::take(&mut self.open)));
    }
}

/// The data in the compressed records that can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressedData {
    /// There are no such records.
    None,
    /// It ends with a whole record.
    Whole,
    /// It ends within a record, which begins in the compressed record at this offset.
    Cut(u64),
}

/// The records of a file or pipe that can be believed, as a stream.
#[derive(Debug)]
pub struct Mended<S> {
    source: S,
    /// A block that holds the next bytes of the stream, and one for looks further ahead.
    near: Block,
    far: Block,
    /// The last place that is known to be the start of a record: where the last search began.
    base: u64,
    /// Whether the record there seems to be cut by the end.
    is_cut: bool,
    /// Whether records may have sizes that are no multiple of 8, so that nothing can be said of places.
    has_odd_sizes: bool,
    /// Where the records end, as far as it is known.
    end: u64,
    /// Offset of the next byte of the stream; `ready` bytes from there on are believed.
    here: u64,
    ready: u64,
    /// Where the stream goes on behind them.
    jump: Option<u64>,
    /// The result of the last search: from where, and what was found.
    found: Option<(u64, Option<u64>)>,
    model: Recording,
    collector: Collector,
    evidence: Evidence,
    table: Option<TableSearch>,
    zstd: Zstd,
    mending: Mending,
}

/// What is at a place.
struct Look {
    kind: RecordType,
    /// Bytes of the record, and with what follows it outside its size.
    size: usize,
    total: u64,
    verdict: Verdict,
}

/// Why there is no record at a place.
enum NoRecord {
    /// The bytes end within it.
    Cut(Error),
    /// No record starts like this.
    Not(Error),
}

/// What becomes of the bytes at a place.
enum Step {
    Keep(u64),
    Skip(u64, Error),
    End,
}

/// Bytes read at once, and bytes read for a look far ahead.
const NEAR_BLOCK: u64 = 1 << 20;
const FAR_BLOCK: u64 = 128 << 10;

/// Believed bytes that are gathered before some are handed out.
const BATCH: u64 = 64 << 10;

/// The most bytes that a record can have.
const LARGEST: u64 = u16::MAX as u64;

/// Records behind a doubtful one that are looked at.
const CHAIN: usize = 8;

impl<S: Source> Mended<S> {
    /// The records at `place`. Of a pipe, `model` is empty and learns; a file of which nobody knows where its records
    /// end has a `table` to be looked for.
    pub(super) fn new(
        source: S,
        place: FileSection,
        model: Recording,
        table: Option<TableSearch>,
        losses: Losses,
    ) -> Result<Self> {
        let len = source.len().map_err(|e| Error::io("file", e))?;
        Ok(Mended {
            source,
            near: Block::new(NEAR_BLOCK),
            far: Block::new(FAR_BLOCK),
            base: place.offset,
            is_cut: false,
            has_odd_sizes: model.features.contains_key(&FeatureId::COMPRESSED.0),
            end: place.end().unwrap_or(u64::MAX).min(len),
            here: place.offset,
            ready: 0,
            jump: None,
            found: None,
            model,
            collector: Collector::default(),
            evidence: Evidence::default(),
            table,
            zstd: Zstd::default(),
            mending: Mending { losses, ..Mending::default() },
        })
    }

    /// What was found so far.
    pub fn mending(&self) -> &Mending {
        &self.mending
    }

    /// Where the records end: known when all of them are read.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// What is known of the compressed records when all of them are read.
    pub fn compressed(&self) -> CompressedData {
        match self.zstd {
            Zstd { is_there: false, .. } => CompressedData::None,
            Zstd { cut: Some(offset), .. } => CompressedData::Cut(offset),
            _ => CompressedData::Whole,
        }
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
            match self.step(at)? {
                Step::Keep(total) => self.ready = self.ready.saturating_add(total),
                Step::Skip(to, why) => {
                    self.mending.skip(FileSection { offset: at, size: to.saturating_sub(at) }, why);
                    if self.ready == 0 { self.here = to } else { self.jump = Some(to) }
                }
                Step::End => self.end = at,
            }
        }
        Ok(())
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
                let to = self.search(at.saturating_add(1), self.end)?.unwrap_or(self.end);
                self.zstd.is_lost = true;
                return Ok(Step::Skip(to, why));
            }
        };
        let next = at.saturating_add(look.total);
        let behind = at.saturating_add(RecordHeader::SIZE as u64);
        match look.verdict {
            Verdict::Sure => self.keep(at, look),
            Verdict::Likely if self.is_likely(next)? => self.keep(at, look),
            Verdict::Likely => match self.search(behind, self.end)? {
                Some(to) if to < next => self.skip(to, leads_nowhere(&look, at)),
                _ => self.keep(at, look),
            },
            // On big-endian machines a table looks like a record of type 0.
            Verdict::Odd | Verdict::Bad(_) if self.is_table(at)? => Ok(Step::End),
            Verdict::Odd | Verdict::Bad(_) => match self.chain(next)? {
                Some(chain) => {
                    let landing = chain.last().copied().unwrap_or(next);
                    match self.search(behind, landing)?.filter(|to| !chain.contains(to)) {
                        Some(to) => self.skip(to, leads_nowhere(&look, at)),
                        None => match look.verdict {
                            Verdict::Bad(why) => {
                                // Its neighbours are known: no other record was lost.
                                self.zstd.is_lost |= is_compressed(look.kind);
                                Ok(Step::Skip(next, why))
                            }
                            _ => self.keep(at, look),
                        },
                    }
                }
                None => {
                    let to = self.search(behind, self.end)?.unwrap_or(self.end);
                    let why = leads_nowhere(&look, at);
                    self.skip(to, if let Verdict::Bad(why) = look.verdict { why } else { why })
                }
            },
        }
    }

    fn skip(&mut self, to: u64, why: Error) -> Result<Step> {
        self.zstd.is_lost = true;
        Ok(Step::Skip(to, why))
    }

    /// Believes the record at `at`, unless it is compressed and cannot be decoded.
    fn keep(&mut self, at: u64, look: Look) -> Result<Step> {
        let Self { near, source, evidence, model, collector, zstd, here, end, .. } = self;
        let bytes = near.get(source, at, look.size as u64, *here, *end)?;
        let raw = RawRecord::first(bytes, model.endian, at)?;
        if is_compressed(raw.kind)
            && let Err(why) = zstd.take(&raw, evidence, model)
        {
            zstd.is_lost = true;
            return Ok(Step::Skip(at.saturating_add(look.total), why));
        }
        if matches!(raw.kind, RecordType::HEADER_ATTR | RecordType::HEADER_FEATURE)
            && let Err(why) = collector.piece(model, &Piece::Record(raw))
        {
            return Ok(Step::Skip(at.saturating_add(look.total), why));
        }
        evidence.learn(&raw, model, &look.verdict);
        self.has_odd_sizes |= is_compressed(look.kind) || !look.size.is_multiple_of(8);
        self.mending.believe();
        Ok(Step::Keep(look.total))
    }

    /// What is at `at`.
    fn look(&mut self, at: u64) -> Result<Result<Look, NoRecord>> {
        let Self { near, far, source, evidence, model, here, end, .. } = self;
        let bytes = if at < here.saturating_add(NEAR_BLOCK / 2) {
            near.get(source, at, LARGEST, *here, *end)?
        } else {
            far.get(source, at, LARGEST, at, *end)?
        };
        let raw = match RawRecord::first(bytes, model.endian, at) {
            Ok(raw) => raw,
            Err(why) => {
                let is_known = RecordHeader::parse(bytes, model.endian).is_none_or(|h| h.kind.info().is_some());
                let is_cut = is_known && matches!(why.problem(), Problem::Truncated { .. });
                return Ok(Err(if is_cut { NoRecord::Cut(why) } else { NoRecord::Not(why) }));
            }
        };
        let payload = match raw.payload_len() {
            Ok(payload) => payload,
            Err(why) => return Ok(Err(NoRecord::Not(why))),
        };
        let total = (raw.bytes.len() as u64).saturating_add(payload);
        let left = end.saturating_sub(at);
        if total > left {
            let why = Error::truncated(format!("{} record and what follows it", raw.kind), total, left);
            return Ok(Err(NoRecord::Cut(why.at(at))));
        }
        Ok(Ok(Look { kind: raw.kind, size: raw.bytes.len(), total, verdict: evidence.judge(&raw, model) }))
    }

    /// Whether there is a record at `at`, or the records end there.
    fn is_likely(&mut self, at: u64) -> Result<bool> {
        Ok(at == self.end
            || match self.look(at)? {
                Ok(Look { verdict: Verdict::Sure | Verdict::Likely, .. }) | Err(NoRecord::Cut(_)) => true,
                Ok(_) | Err(NoRecord::Not(_)) => self.is_table(at)?,
            })
    }

    /// The places that sizes lead to from `from` on, up to one that can be believed; nothing where they lead nowhere.
    fn chain(&mut self, from: u64) -> Result<Option<Vec<u64>>> {
        let (mut at, mut chain, mut all_read) = (from, Vec::new(), true);
        while chain.len() < CHAIN {
            chain.push(at);
            if at == self.end {
                return Ok(Some(chain));
            }
            let look = match self.look(at)? {
                Ok(look) => look,
                Err(NoRecord::Cut(_)) => return Ok(Some(chain)),
                Err(NoRecord::Not(_)) => return Ok(self.is_table(at)?.then_some(chain)),
            };
            match look.verdict {
                Verdict::Sure => return Ok(Some(chain)),
                Verdict::Likely => {}
                Verdict::Odd | Verdict::Bad(_) if self.is_table(at)? => return Ok(Some(chain)),
                Verdict::Odd => {}
                Verdict::Bad(_) => all_read = false,
            }
            at = at.saturating_add(look.total);
        }
        Ok(all_read.then_some(chain))
    }

    /// The first place from `from` on, and before `limit`, that can be believed to be the start of a record.
    fn search(&mut self, from: u64, limit: u64) -> Result<Option<u64>> {
        if let Some((start, found)) = self.found
            && start <= from
            && found.is_none_or(|found| from <= found)
        {
            return Ok(found.filter(|&found| found < limit));
        }
        let mut at = from;
        while at < limit {
            let endian = self.model.endian;
            let Self { far, source, end, .. } = self;
            let bytes = far.get(source, at, LARGEST.min(FAR_BLOCK / 2), at, *end)?;
            match find_header(bytes, endian) {
                Some(ahead) => at = at.saturating_add(ahead as u64),
                None if bytes.len() < RecordHeader::SIZE => break,
                None => {
                    at = at.saturating_add(bytes.len().saturating_sub(RecordHeader::SIZE - 1) as u64);
                    continue;
                }
            }
            if at < limit && self.is_start(at)? {
                self.found = Some((from, Some(at)));
                return Ok(Some(at));
            }
            at = at.saturating_add(1);
        }
        if limit == self.end {
            self.found = Some((from, None));
        }
        Ok(None)
    }

    /// Whether records start at `at`: one that is sure to belong to this recording, or several in a row.
    fn is_start(&mut self, at: u64) -> Result<bool> {
        let is_aligned = at.saturating_sub(self.base).is_multiple_of(8) || self.has_odd_sizes;
        let mut here = at;
        for count in 0..=CHAIN / 2 {
            if count > 0 && here == self.end {
                // What looks like the last record may be a part of one that is cut.
                return Ok(count > 1 || !self.is_cut || self.is_record(self.base, at)?);
            }
            match self.look(here)? {
                Ok(Look { verdict: Verdict::Sure, total, .. }) => {
                    return Ok(is_aligned || self.is_likely(here.saturating_add(total))?);
                }
                Ok(Look { verdict: Verdict::Likely, total, .. }) if is_aligned => here = here.saturating_add(total),
                Err(NoRecord::Cut(_)) => return Ok(false),
                Ok(_) | Err(NoRecord::Not(_)) => return Ok(count > 0 && self.is_table(here)?),
            }
        }
        Ok(true)
    }

    /// Whether the bytes up to `end` are a record, with another size than it says.
    fn is_record(&mut self, at: u64, end: u64) -> Result<bool> {
        let Self { near, source, evidence, model, here, end: limit, .. } = self;
        let Ok(size) = u16::try_from(end.saturating_sub(at)) else { return Ok(false) };
        let bytes = near.get(source, at, u64::from(size), *here, *limit)?;
        let mut bytes = bytes.get(..usize::from(size)).unwrap_or(bytes).to_vec();
        if let Some(field) = bytes.get_mut(6..8) {
            field.copy_from_slice(&if model.endian == Endian::Little {
                size.to_le_bytes()
            } else {
                size.to_be_bytes()
            });
        }
        let raw = RawRecord::first(&bytes, model.endian, at);
        // Of a metadata record any part is one.
        Ok(raw.is_ok_and(|raw| !is_metadata(raw.kind) && !matches!(evidence.judge(&raw, model), Verdict::Bad(_))))
    }

    /// Whether the feature table stands at `at`, where it is looked for.
    fn is_table(&self, at: u64) -> Result<bool> {
        self.table.as_ref().map_or(Ok(false), |table| table.is_at(&self.source, at))
    }
}

impl<S: Source> Read for Mended<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.ready == 0 {
            self.advance().map_err(io::Error::other)?;
        }
        let wanted = self.ready.min(buf.len() as u64).min(NEAR_BLOCK);
        let bytes = self.near.get(&self.source, self.here, wanted, self.here, self.end).map_err(io::Error::other)?;
        let mut believed = bytes.get(..bytes.len().min(usize::try_from(wanted).unwrap_or(usize::MAX))).unwrap_or(bytes);
        let got = believed.read(buf)?;
        self.here = self.here.saturating_add(got as u64);
        self.ready = self.ready.saturating_sub(got as u64);
        Ok(got)
    }
}

fn leads_nowhere(look: &Look, at: u64) -> Error {
    let expected = "one that leads to another record";
    Error::invalid(format!("{} record", look.kind), "size", look.size.to_string(), expected).at(at)
}

/// A block of a source.
#[derive(Debug)]
struct Block {
    size: u64,
    at: u64,
    bytes: Vec<u8>,
}

impl Block {
    fn new(size: u64) -> Self {
        Block { size, at: 0, bytes: Vec::new() }
    }

    /// The bytes from `at` on: `len` of them, if there are as many before `end`, or more. If they are not in the block,
    /// it is filled from `from` on.
    fn get(&mut self, source: &impl Source, at: u64, len: u64, from: u64, end: u64) -> Result<&[u8]> {
        let wanted = at.saturating_add(len).min(end);
        if at < self.at || wanted > self.at.saturating_add(self.bytes.len() as u64) {
            let size = end.saturating_sub(from).min(self.size);
            self.bytes.resize(usize::try_from(size).unwrap_or_default(), 0);
            self.at = from;
            let mut filled = 0;
            while let Some(room) = self.bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
                match source.read_at(room, from.saturating_add(filled as u64)) {
                    Ok(0) => break,
                    Ok(got) => filled = filled.saturating_add(got),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(Error::io("record stream", e).at(from)),
                }
            }
            self.bytes.truncate(filled);
        }
        let start = usize::try_from(at.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let before_end = usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX).min(self.bytes.len());
        Ok(self.bytes.get(start..before_end).unwrap_or_default())
    }
}

/// The stream in the compressed records.
#[derive(Debug, Default)]
struct Zstd {
    stream: Option<Decompressor>,
    /// Whether a record was decoded and believed.
    is_there: bool,
    /// Whether something is missing before the next compressed record, so that it cannot be decoded.
    is_lost: bool,
    /// Whether what was believed ends so that a new frame may follow.
    may_begin: bool,
    /// Where a record begins whose end is still to come.
    cut: Option<u64>,
}

impl Zstd {
    /// Decodes a compressed record, and looks at the records in it.
    fn take(&mut self, raw: &RawRecord<'_>, evidence: &mut Evidence, model: &Recording) -> Result<()> {
        if self.is_lost {
            let begins_anew = !self.is_there || (self.may_begin && Decompressor::begins_frame(raw)?);
            if !begins_anew {
                let what = "its data continues compressed data that is lost";
                return Err(Error::new(format!("{} record", raw.kind), Problem::Unknown(what.into())).at(raw.offset));
            }
            self.stream = None;
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(Decompressor::of(model)?),
        };
        stream.push(raw)?;
        let mut has_ended = false;
        while let Some(record) = stream.next()? {
            let verdict = evidence.judge(&record, model);
            match verdict {
                Verdict::Bad(why) => return Err(why),
                Verdict::Odd if evidence.is_regular(record.kind) => {
                    let what = format!("a {} record in its data is not as others are", record.kind);
                    return Err(
                        Error::new(format!("{} record", raw.kind), Problem::Unknown(what.into())).at(raw.offset)
                    );
                }
                _ => {}
            }
            evidence.learn(&record, model, &verdict);
            has_ended = true;
        }
        self.cut = match stream.pending() {
            0 => None,
            _ => self.cut.filter(|_| !has_ended).or(Some(raw.offset)),
        };
        self.may_begin = self.cut.is_none() && stream.is_between_blocks();
        self.is_there = true;
        self.is_lost = false;
        Ok(())
    }
}
