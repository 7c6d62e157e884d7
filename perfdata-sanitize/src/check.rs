//! The check of the complete output, before it appears.
//!
//! Two independent checks: every field of the output is one that the stage may have written, and no
//! replaced name and no original address is in any byte of it. See docs/sharing.md for their
//! limits.
//!
//! Samples that consist of numbers are checked [while they are written](super::written), all others
//! after the end, when all names are known.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::container_layout::{ContainerLayout, Part};
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::read::{RecordSource, Records, Source};
use perfdata_core::record::{RawRecord, Record, RecordType};
use perfdata_core::{DecodeContext, Endian, Events, Recording};

use super::numbers::Numbers;
use super::places::Places;
use super::policy::Action;
use super::search::Needles;
use super::state::State;
use super::written::Written;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{Input, InputSource, each_record};

/// Size in bytes of the blocks that are searched.
const BLOCK: usize = 1 << 20;

/// All offsets.
const EVERYWHERE: Range<u64> = 0..u64::MAX;

/// Checks the complete output. `written` has checked samples in it while they were written.
///
/// # Errors
/// It contains what it should not, or cannot be read.
pub(super) fn check(state: &State, output: Input, written: Option<&mut Written>) -> Result<()> {
    let mut addresses: HashSet<u64, RandomState> = HashSet::default();
    if state.action(Content::Address) != Action::Keep {
        addresses.clone_from(&state.seen);
        addresses.extend(state.addresses.originals());
    }
    let addresses = Arc::new(addresses);
    let is_directory = output.directory().is_some();
    let (mut reader, source) = output.reader()?;
    let recording = reader.recording();
    // Records inside compressed ones, and in the files of a directory, are elsewhere.
    let is_elsewhere = is_directory || recording.features.contains_key(&FeatureId::COMPRESSED);
    let needles = Needles::new(state.names.searched()).with_numbers(&addresses, recording.endian);
    let mut check = Check {
        fields: Fields {
            state,
            numbers: Numbers::new(state, Some(Arc::clone(&addresses))),
        },
        needles: &needles,
    };
    let data = match reader.container_layout() {
        ContainerLayout::File(layout) => layout.place(Part::Data),
        ContainerLayout::Pipe(_) => None,
    };
    let data = data.and_then(|data| Some(data.offset..data.end()?));
    let is_about = |written: &&mut Written| written.is_about(recording, data.as_ref());
    let written = written.filter(|written| !is_elsewhere && is_about(written));
    let searched = match (written, data) {
        (Some(written), Some(data)) => {
            written.result()?;
            if let Some(found) = written.numbers().finish(state, &addresses) {
                return Err(wrong(&found));
            }
            let events = &recording.events;
            for place in written.checked().others(data.clone()) {
                each_record_in(&source, place, recording.endian, |raw| {
                    check.record(raw, events)
                })?;
            }
            Places::of(data)
        }
        _ => check.all(&mut *reader)?,
    };
    check.metadata(reader.recording())?;
    if let Some(found) = check.fields.numbers.finish(state, &addresses) {
        return Err(wrong(&found));
    }
    if state.policy.keeps_memory() {
        for bytes in reader.recording().features.values() {
            found_in(&needles, bytes, 0, &EVERYWHERE)?;
        }
        return Ok(());
    }
    let searched = match is_elsewhere {
        true => Places::default(),
        false => searched,
    };
    for place in searched.others(EVERYWHERE) {
        search(&source, place, &needles)?;
    }
    Ok(())
}

/// Calls `see` with all records at `place`, between which nothing else may be.
fn each_record_in(
    source: &InputSource,
    place: Range<u64>,
    endian: Endian,
    mut see: impl FnMut(&RawRecord<'_>) -> Result<()>,
) -> Result<()> {
    let mut block = Vec::new();
    let mut at = place.start;
    while at < place.end {
        let left = usize::try_from(place.end - at).unwrap_or(usize::MAX);
        block.resize(left.min(BLOCK), 0);
        let got = fill(source, &mut block, at)?;
        let mut len = 0_u64;
        for raw in Records::of(block.get(..got).unwrap_or_default(), endian, at) {
            see(&raw)?;
            len = len.saturating_add(raw.bytes.len() as u64);
        }
        if len == 0 {
            return Err(wrong(&format!("bytes at offset {at:#x} are no record")));
        }
        at = at.saturating_add(len);
    }
    Ok(())
}

/// Reads as many bytes at `offset` as there are and fit into `block`. Returns their number.
fn fill(source: &InputSource, block: &mut [u8], offset: u64) -> Result<usize> {
    let mut got = 0;
    while let Some(rest) = block.get_mut(got..).filter(|rest| !rest.is_empty()) {
        let offset = offset.saturating_add(got as u64);
        match Source::read_at(source, rest, offset) {
            Ok(0) => break,
            Ok(more) => got = got.saturating_add(more),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("output")(error)),
        }
    }
    Ok(got)
}

/// Searches a part of the file, also for what begins before it or ends behind it.
fn search(output: &InputSource, place: Range<u64>, needles: &Needles<'_>) -> Result<()> {
    let overlap = needles.longest().saturating_sub(1);
    let end = place.end.saturating_add(overlap as u64);
    let mut block = vec![0; BLOCK.saturating_add(overlap)];
    let mut at = place.start.saturating_sub(overlap as u64);
    while at < end {
        let rest = usize::try_from(end - at).unwrap_or(usize::MAX);
        let size = block.len().min(rest);
        let got = fill(output, block.get_mut(..size).unwrap_or_default(), at)?;
        found_in(needles, block.get(..got).unwrap_or(&block), at, &place)?;
        if got < block.len() {
            return Ok(());
        }
        at = at.saturating_add(BLOCK as u64);
    }
    Ok(())
}

/// Searches `bytes`, which are at `offset`, for what is at least in part in `place`.
fn found_in(needles: &Needles<'_>, bytes: &[u8], offset: u64, place: &Range<u64>) -> Result<()> {
    let offset_of = |at: usize| offset.saturating_add(at as u64);
    let is_there = |at: usize, len: usize| {
        offset_of(at) < place.end && offset_of(at.saturating_add(len)) > place.start
    };
    match needles.first_in(bytes, is_there) {
        None => Ok(()),
        Some((at, len)) => Err(wrong(&format!(
            "{len} bytes of the original are at offset {:#x} of the output",
            offset_of(at)
        ))),
    }
}

pub(super) fn wrong(what: &str) -> Error {
    Error::Refused(format!(
        "internal error: the sanitized recording is not clean, and nothing was written: {what}; if the recording is \
         not damaged (perfconv verify), please report this"
    ))
}

/// What a record of the output is checked with.
struct Check<'a> {
    fields: Fields<'a>,
    needles: &'a Needles<'a>,
}

impl Check<'_> {
    /// Checks all records. Returns their places, as far as they are in the file itself.
    fn all(&mut self, reader: &mut dyn RecordSource) -> Result<Places> {
        let head = reader.recording().clone();
        let mut places = Places::default();
        let ending = each_record(reader, |raw, now| {
            let now = if now.events.is_empty() { &head } else { now };
            places.add(raw);
            self.record(raw, &now.events)
        })?;
        let others = ending.unreadable.saturating_add(ending.pending);
        if others > 0 {
            return Err(wrong(&format!("{others} bytes at the end are no records")));
        }
        Ok(places)
    }

    /// Checks the fields of a record, and searches its bytes.
    fn record(&mut self, raw: &RawRecord<'_>, events: &Events) -> Result<()> {
        let is_numbers = self.fields_of(raw, events)?;
        let is_memory = raw.kind == RecordType::SAMPLE && self.fields.state.policy.keeps_memory();
        // Every word of the sample is a number of a field that was checked. Where two numbers
        // touch, the bytes of a name or an address only occur by chance.
        if is_numbers || is_memory {
            return Ok(());
        }
        found_in(self.needles, raw.bytes, raw.offset, &EVERYWHERE)
    }

    /// Checks the fields of a record. Returns whether it is a sample of which every word is a
    /// number.
    fn fields_of(&mut self, raw: &RawRecord<'_>, events: &Events) -> Result<bool> {
        let content = raw
            .kind
            .info()
            .map_or(Content::Unknown, |info| info.content);
        let place = || place_of(raw);
        if self.fields.state.action(content) == Action::Remove {
            return Err(wrong(&place()));
        }
        if is_checked_by_numbers(raw, events, &mut self.fields.numbers) {
            self.result(place)?;
            return Ok(true);
        }
        let mut record = Record::decode(raw, &events.layout_of(raw))?;
        if raw.kind == RecordType::HEADER_FEATURE {
            return Ok(false);
        }
        record.rewrite("", Content::Fields, &mut self.fields);
        self.result(place)?;
        Ok(false)
    }

    fn metadata(&mut self, recording: &Recording) -> Result<()> {
        for (at, event) in recording.events.iter().enumerate() {
            let mut attr = event.attr.clone();
            attr.rewrite("attr", Content::Fields, &mut self.fields);
            self.result(|| format!("attribute {at}"))?;
        }
        let layout = DecodeContext::default().with_nr_cpus_available(recording.nr_cpus_available());
        for (&id, bytes) in &recording.features {
            let content = id.info().map_or(Content::Unknown, |info| info.content);
            if self.fields.state.action(content) == Action::Remove {
                return Err(wrong(&format!("feature {id}")));
            }
            let mut section = Section::decode(id, bytes, recording.endian, &layout)?;
            // Padding of a record of a pipe.
            if section.tail.iter().any(|&byte| byte != 0) {
                return Err(wrong(&format!("the end of feature {id}")));
            }
            section.tail.clear();
            section.value.rewrite("", content, &mut self.fields);
            self.result(|| format!("feature {id}"))?;
        }
        Ok(())
    }

    fn result(&mut self, place: impl FnOnce() -> String) -> Result<()> {
        result(&mut self.fields.numbers, place)
    }
}

/// Checks a sample if it consists of numbers. Returns false if it does not.
#[inline]
pub(super) fn is_checked_by_numbers(
    raw: &RawRecord<'_>,
    events: &Events,
    numbers: &mut Numbers,
) -> bool {
    raw.kind == RecordType::SAMPLE
        && events.inspect_sample(raw, numbers, |numbers, words| {
            numbers.chain(words, raw.endian)
        })
}

/// Returns the error about the last fields that are not clean.
#[inline]
pub(super) fn result(numbers: &mut Numbers, place: impl FnOnce() -> String) -> Result<()> {
    match numbers.take_found() {
        None => Ok(()),
        Some((field, content)) => Err(wrong(&format!(
            "the field {field:?} ({content:?}) of {}",
            place()
        ))),
    }
}

pub(super) fn place_of(raw: &RawRecord<'_>) -> String {
    format!("the {} record at offset {:#x}", raw.kind, raw.offset)
}

/// Visits all fields of the output.
struct Fields<'a> {
    state: &'a State,
    numbers: Numbers,
}

impl Rewriter for Fields<'_> {
    fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64 {
        self.numbers.number(name, value, size, content)
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
        self.numbers.unless(is_clean, name, content);
        None
    }

    fn bytes(&mut self, name: &'static str, bytes: &mut [u8], content: Content) {
        self.numbers.bytes(name, bytes, content);
    }

    fn words(&mut self, name: &'static str, words: &mut [u64], content: Content) {
        self.numbers.words(name, words, content);
    }
}
