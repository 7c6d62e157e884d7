//! The check of the complete output, before it appears.
//!
//! Two independent checks: every field of the output is one that the stage may have written, and no
//! replaced name and no original address is in any byte of it. See docs/sharing.md for their limits.

use std::collections::HashSet;
use std::ops::Range;

use foldhash::fast::RandomState;
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::read::Source;
use perfdata_core::record::{CallchainContext, RawRecord, Record, RecordType, deferred_cookie};
use perfdata_core::{DecodeContext, Endian, Events, Recording};

use super::addresses::{Space, is_distinct, is_distinct_reversed};
use super::cache::Ranges;
use super::policy::Action;
use super::search::Needles;
use super::state::State;
use crate::error::{Error, Result};
use crate::io::{Input, InputSource, each_record};

/// Size in bytes of the blocks that are searched.
const BLOCK: usize = 1 << 20;

/// Checks the complete output.
///
/// # Errors
/// It contains what it should not, or cannot be read.
pub(super) fn check(state: &State, output: Input) -> Result<()> {
    let addresses: HashSet<u64, RandomState> = match state.policy.action(Content::Address) {
        Action::Keep => HashSet::default(),
        _ => state
            .addresses
            .originals()
            .chain(state.seen.iter().copied())
            .collect(),
    };
    let is_directory = output.directory().is_some();
    let (mut reader, source) = output.reader()?;
    let features = &reader.recording().features;
    // Records inside compressed ones, and in the files of a directory, are elsewhere.
    let is_elsewhere = is_directory || features.contains_key(&FeatureId::COMPRESSED);
    let endian = reader.recording().endian;
    let words: Vec<[u8; 8]> = addresses
        .iter()
        .filter(|address| is_distinct(**address))
        .flat_map(|&address| {
            let own = match endian {
                Endian::Little => address.to_le_bytes(),
                Endian::Big => address.to_be_bytes(),
            };
            let mut reversed = own;
            reversed.reverse();
            [Some(own), is_distinct_reversed(address).then_some(reversed)]
        })
        .flatten()
        .collect();
    let needles = Needles::new(
        state
            .names
            .searched()
            .chain(words.iter().map(|word| &word[..])),
    );
    let keeps_memory = state.policy.keeps_memory();
    let mut fields = Fields::new(state, &addresses, &needles);
    let head = reader.recording().clone();
    let mut searched = Places::default();
    each_record(&mut *reader, |raw, now| {
        let now = if now.events.is_empty() { &head } else { now };
        searched.add(raw);
        fields.check(raw, &now.events)
    })?;
    fields.metadata(reader.recording())?;
    if keeps_memory {
        for bytes in reader.recording().features.values() {
            found_in(&needles, bytes, 0)?;
        }
        return Ok(());
    }
    if is_elsewhere {
        searched = Places::default();
    }
    for place in searched.others() {
        search(&source, place, &needles)?;
    }
    Ok(())
}

/// The places of records that were searched, each by itself, as ranges of offsets. Between two
/// records is a header, which has zeros, so that no name goes from one record into the next.
#[derive(Debug, Default)]
struct Places {
    /// Ranges of adjacent records, in file order.
    ranges: Vec<Range<u64>>,
}

impl Places {
    /// Ranges after this number are not noted, so that the search includes them.
    const MOST: usize = 1 << 16;

    fn add(&mut self, raw: &RawRecord<'_>) {
        let end = raw.offset.saturating_add(raw.bytes.len() as u64);
        let is_full = self.ranges.len() >= Self::MOST;
        match self.ranges.last_mut() {
            Some(last) if last.end == raw.offset => last.end = end,
            Some(last) if raw.offset < last.end => {}
            _ if is_full => {}
            _ => self.ranges.push(raw.offset..end),
        }
    }

    /// Returns all other places.
    fn others(&self) -> impl Iterator<Item = Range<u64>> {
        let starts = self.ranges.iter().map(|range| range.end);
        let ends = self.ranges.iter().map(|range| range.start);
        let all = [0].into_iter().chain(starts).zip(ends.chain([u64::MAX]));
        all.map(|(start, end)| start..end)
            .filter(|range| !range.is_empty())
    }
}

/// Searches a part of the file.
fn search(output: &InputSource, place: Range<u64>, needles: &Needles<'_>) -> Result<()> {
    let overlap = needles.longest();
    let mut block = vec![0; BLOCK.saturating_add(overlap)];
    let mut at = place.start;
    while at < place.end {
        let rest = usize::try_from(place.end - at).unwrap_or(usize::MAX);
        let size = block.len().min(rest);
        let mut got = 0;
        while let Some(rest) = block.get_mut(got..size).filter(|rest| !rest.is_empty()) {
            let offset = at.saturating_add(got as u64);
            match Source::read_at(output, rest, offset).map_err(Error::io("output"))? {
                0 => break,
                more => got = got.saturating_add(more),
            }
        }
        found_in(needles, block.get(..got).unwrap_or(&block), at)?;
        if got < block.len() {
            return Ok(());
        }
        at = at.saturating_add(BLOCK as u64);
    }
    Ok(())
}

fn found_in(needles: &Needles<'_>, bytes: &[u8], offset: u64) -> Result<()> {
    match needles.first_in(bytes) {
        None => Ok(()),
        Some((at, needle)) => Err(wrong(&format!(
            "{} bytes of the original are at offset {:#x} of the output",
            needle.len(),
            offset.saturating_add(at as u64)
        ))),
    }
}

fn wrong(what: &str) -> Error {
    Error::Refused(format!(
        "internal error: the sanitized recording is not clean, and nothing was written: {what}; if the recording is \
         not damaged (perfconv verify), please report this"
    ))
}

/// Visits all fields of the output.
struct Fields<'a> {
    state: &'a State,
    addresses: &'a HashSet<u64, RandomState>,
    /// The new process IDs, unless there are too many.
    pids: Option<HashSet<u32, RandomState>>,
    needles: &'a Needles<'a>,
    /// The last ranges of new addresses.
    new: Ranges,
    /// Memory for a sample and its callchain.
    bytes: Vec<u8>,
    words: Vec<u64>,
    /// The first field that is not clean.
    found: Option<(&'static str, Content)>,
}

impl<'a> Fields<'a> {
    fn new(
        state: &'a State,
        addresses: &'a HashSet<u64, RandomState>,
        needles: &'a Needles<'a>,
    ) -> Self {
        Fields {
            state,
            addresses,
            pids: state.new_pids(),
            needles,
            new: Ranges::default(),
            bytes: Vec::new(),
            words: Vec::new(),
            found: None,
        }
    }

    /// Checks the fields of a record, and searches its bytes.
    fn check(&mut self, raw: &RawRecord<'_>, events: &Events) -> Result<()> {
        let is_numbers = self.record(raw, events)?;
        let is_memory = raw.kind == RecordType::SAMPLE && self.state.policy.keeps_memory();
        // Every word of the sample is a number of a field that was checked. Where two numbers touch,
        // the bytes of a name or an address only occur by chance.
        if is_numbers || is_memory {
            return Ok(());
        }
        found_in(self.needles, raw.bytes, raw.offset)
    }

    /// Checks a record. Returns whether it is a sample of which every word is a number.
    fn record(&mut self, raw: &RawRecord<'_>, events: &Events) -> Result<bool> {
        let content = raw
            .kind
            .info()
            .map_or(Content::Unknown, |info| info.content);
        let place = || format!("the {} record at offset {:#x}", raw.kind, raw.offset);
        if self.state.action(content) == Action::Remove {
            return Err(wrong(&place()));
        }
        if raw.kind == RecordType::SAMPLE
            && let Some(event) = events.of_record(raw)
        {
            let mut bytes = std::mem::take(&mut self.bytes);
            let mut words = std::mem::take(&mut self.words);
            bytes.clear();
            bytes.extend_from_slice(raw.bytes);
            let is_numbers = events.rewrite_sample(event, &mut bytes, raw.endian, &mut words, self);
            (self.bytes, self.words) = (bytes, words);
            if is_numbers {
                self.result(place)?;
                return Ok(true);
            }
        }
        let mut record = Record::decode(raw, &events.layout_of(raw))?;
        if raw.kind == RecordType::HEADER_FEATURE {
            return Ok(false);
        }
        record.rewrite("", Content::Fields, self);
        self.result(place)?;
        Ok(false)
    }

    fn metadata(&mut self, recording: &Recording) -> Result<()> {
        for (at, event) in recording.events.iter().enumerate() {
            event.attr.clone().rewrite("attr", Content::Fields, self);
            self.result(|| format!("attribute {at}"))?;
        }
        let layout = DecodeContext::default().with_nr_cpus_available(recording.nr_cpus_available());
        for (&id, bytes) in &recording.features {
            let content = id.info().map_or(Content::Unknown, |info| info.content);
            if self.state.action(content) == Action::Remove {
                return Err(wrong(&format!("feature {id}")));
            }
            let mut section = Section::decode(id, bytes, recording.endian, &layout)?;
            // Padding of a record of a pipe.
            if section.tail.iter().any(|&byte| byte != 0) {
                return Err(wrong(&format!("the end of feature {id}")));
            }
            section.tail.clear();
            section.value.rewrite("", content, self);
            self.result(|| format!("feature {id}"))?;
        }
        Ok(())
    }

    fn result(&mut self, place: impl FnOnce() -> String) -> Result<()> {
        match self.found.take() {
            None => Ok(()),
            Some((field, content)) => Err(wrong(&format!(
                "the field {field:?} ({content:?}) of {}",
                place()
            ))),
        }
    }

    /// Returns whether the stage writes this address.
    #[inline]
    fn is_new(&mut self, address: u64) -> bool {
        if self.new.get(Space::Any, address).is_some() {
            return true;
        }
        if let Some((first, last)) = self.state.addresses.new_range(address) {
            self.new.put(Space::Any, address, (first, last, 0));
            return true;
        }
        self.state.addresses.is_new(address)
    }

    fn unless(&mut self, is_clean: bool, name: &'static str, content: Content) {
        if !is_clean {
            self.found.get_or_insert((name, content));
        }
    }
}

impl Rewriter for Fields<'_> {
    fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64 {
        let none = u64::MAX >> (64 - 8 * size.clamp(1, 8));
        let is_clean = match (self.state.action(content), content) {
            (Action::Remove, _) => value == 0,
            (Action::Replace, Content::Address) => self.is_new(value),
            (Action::Replace, Content::Pid) => {
                let is_new = |pids: &HashSet<u32, RandomState>| {
                    u32::try_from(value).is_ok_and(|pid| pids.contains(&pid))
                };
                value == 0 || value == none || self.pids.as_ref().is_none_or(is_new)
            }
            (_, Content::Time | Content::Ticks) => true,
            _ => !is_distinct(value) || !self.addresses.contains(&value),
        };
        self.unless(is_clean, name, content);
        value
    }

    fn text(
        &mut self,
        name: &'static str,
        text: &[u8],
        _: usize,
        content: Content,
    ) -> Option<Vec<u8>> {
        // Later stages give events the names that perf would give to them.
        let is_clean =
            text.is_empty() || content == Content::EventName || self.state.names.is_issued(text);
        self.unless(is_clean, name, content);
        None
    }

    fn bytes(&mut self, name: &'static str, bytes: &mut [u8], content: Content) {
        let is_removed = self.state.action(content) == Action::Remove;
        self.unless(
            !is_removed || bytes.iter().all(|&byte| byte == 0),
            name,
            content,
        );
    }

    fn words(&mut self, name: &'static str, words: &mut [u64], content: Content) {
        if content != Content::Callchain {
            for word in words {
                self.number(name, *word, size_of::<u64>(), content);
            }
            return;
        }
        if self.state.action(content) == Action::Keep {
            return;
        }
        let is_deferred = deferred_cookie(words.iter().copied()).is_some();
        let (words, cookie) = words.split_at_mut(words.len() - usize::from(is_deferred));
        for &mut word in cookie {
            self.number(name, word, size_of::<u64>(), Content::Cookie);
        }
        for &mut word in words {
            let is_clean = CallchainContext::of(word).is_some() || self.is_new(word);
            self.unless(is_clean, name, content);
        }
    }
}
