//! The check of the complete output, before it appears.
//!
//! Two independent checks: every field of the output is one that the stage may have written, and no
//! replaced name and no original address is in any byte of it. See docs/sharing.md for their limits.

use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::read::{Limits, Source};
use perfdata_core::record::{CallchainContext, RawRecord, Record, RecordType, deferred_cookie};
use perfdata_core::{DecodeContext, Endian, Recording};

use super::addresses::{is_distinct, is_distinct_reversed};
use super::policy::Action;
use super::search::Needles;
use super::state::State;
use crate::error::{Error, Result};
use crate::io::{Input, each_record};

/// Size in bytes of the blocks that are searched.
const BLOCK: usize = 1 << 20;

/// Checks the complete output.
///
/// # Errors
/// It contains what it should not, or cannot be read.
pub(super) fn check(state: &State, output: &Arc<File>, limits: Limits) -> Result<()> {
    let addresses: HashSet<u64, RandomState> = match state.policy.action(Content::Address) {
        Action::Keep => HashSet::default(),
        _ => state
            .addresses
            .originals()
            .chain(state.seen.iter().copied())
            .collect(),
    };
    let mut fields = Fields {
        state,
        addresses: &addresses,
        pids: state.new_pids(),
        found: None,
    };
    let (mut reader, _) = Input::from_source(output.clone())
        .limited_by(limits)
        .reader()?;
    let is_compressed = reader
        .recording()
        .features
        .contains_key(&FeatureId::COMPRESSED);
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
    let head = reader.recording().clone();
    each_record(&mut *reader, |raw, now| {
        let now = if now.events.is_empty() { &head } else { now };
        fields.record(raw, now)?;
        if (is_compressed || keeps_memory) && !(keeps_memory && raw.kind == RecordType::SAMPLE) {
            found_in(&needles, raw.bytes, raw.offset)?;
        }
        Ok(())
    })?;
    fields.metadata(reader.recording())?;
    if keeps_memory {
        for bytes in reader.recording().features.values() {
            found_in(&needles, bytes, 0)?;
        }
        return Ok(());
    }
    search(output, &needles)
}

/// Searches the whole file.
fn search(output: &File, needles: &Needles<'_>) -> Result<()> {
    let overlap = needles.longest();
    let mut block = vec![0; BLOCK.saturating_add(overlap)];
    let mut at = 0;
    loop {
        let mut got = 0;
        while let Some(rest) = block.get_mut(got..).filter(|rest| !rest.is_empty()) {
            let offset = at + got as u64;
            match Source::read_at(output, rest, offset).map_err(Error::io("output"))? {
                0 => break,
                more => got = got.saturating_add(more),
            }
        }
        found_in(needles, block.get(..got).unwrap_or(&block), at)?;
        if got < block.len() {
            return Ok(());
        }
        at += BLOCK as u64;
    }
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
    pids: Option<HashSet<u32, RandomState>>,
    /// The first field that is not clean.
    found: Option<(&'static str, Content)>,
}

impl Fields<'_> {
    fn record(&mut self, raw: &RawRecord<'_>, now: &Recording) -> Result<()> {
        let content = raw
            .kind
            .info()
            .map_or(Content::Unknown, |info| info.content);
        let place = || format!("the {} record at offset {:#x}", raw.kind, raw.offset);
        if self.state.policy.action(content) == Action::Remove {
            return Err(wrong(&place()));
        }
        let mut record = Record::decode(raw, &now.events.layout_of(raw))?;
        if raw.kind == RecordType::HEADER_FEATURE {
            return Ok(());
        }
        record.rewrite("", Content::Fields, self);
        self.result(&place())
    }

    fn metadata(&mut self, recording: &Recording) -> Result<()> {
        for (at, event) in recording.events.iter().enumerate() {
            event.attr.clone().rewrite("attr", Content::Fields, self);
            self.result(&format!("attribute {at}"))?;
        }
        let layout = DecodeContext::default().with_nr_cpus_available(recording.nr_cpus_available());
        for (&id, bytes) in &recording.features {
            let content = id.info().map_or(Content::Unknown, |info| info.content);
            if self.state.policy.action(content) == Action::Remove {
                return Err(wrong(&format!("feature {id}")));
            }
            let mut section = Section::decode(id, bytes, recording.endian, &layout)?;
            // Padding of a record of a pipe.
            if section.tail.iter().any(|&byte| byte != 0) {
                return Err(wrong(&format!("the end of feature {id}")));
            }
            section.tail.clear();
            section.value.rewrite("", content, self);
            self.result(&format!("feature {id}"))?;
        }
        Ok(())
    }

    fn result(&mut self, place: &str) -> Result<()> {
        match self.found.take() {
            None => Ok(()),
            Some((field, content)) => Err(wrong(&format!(
                "the field {field:?} ({content:?}) of {place}"
            ))),
        }
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
        let is_clean = match (self.state.policy.action(content), content) {
            (Action::Remove, _) => value == 0,
            (Action::Replace, Content::Address) => self.state.addresses.is_new(value),
            (Action::Replace, Content::Pid) => {
                let is_new = |pids: &HashSet<u32, RandomState>| {
                    u32::try_from(value).is_ok_and(|pid| pids.contains(&pid))
                };
                value == 0 || value == none || self.pids.as_ref().is_none_or(is_new)
            }
            (_, Content::Time) => true,
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
        let is_removed = self.state.policy.action(content) == Action::Remove;
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
        if self.state.policy.action(content) == Action::Keep {
            return;
        }
        let is_deferred = deferred_cookie(words.iter().copied()).is_some();
        let chain = words.len() - usize::from(is_deferred);
        for &word in words.iter().take(chain) {
            let is_marker = CallchainContext::of(word).is_some();
            self.unless(
                is_marker || self.state.addresses.is_new(word),
                name,
                content,
            );
        }
    }
}
