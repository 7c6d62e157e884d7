//! The check of samples while they are written.
//!
//! Most records of a recording are samples that consist of numbers, and what these may be is known
//! before the first one. It sees the bytes that the file receives, whoever made them. What else is
//! in the file is [checked](super::check) at the end.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use perfdata_core::record::{RawRecord, RecordHeader};
use perfdata_core::{Endian, Events, Recording};

use super::check::{is_checked_by_numbers, place_of, result};
use super::numbers::Numbers;
use super::places::Places;
use super::state::State;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::pipeline::WatchOutput;

/// The samples of a file that were checked.
#[derive(Debug)]
pub(super) struct Written {
    numbers: Numbers,
    events: Events,
    endian: Endian,
    /// Offset of the first record, and the end of the records, as far as they are known.
    start: Option<u64>,
    end: Option<u64>,
    /// Offset of the next record.
    next: u64,
    /// The first bytes of this record.
    partial: Vec<u8>,
    checked: Places,
    error: Option<Error>,
    /// Whether the file consists of more than records in their order, so that what was checked says
    /// nothing.
    is_void: bool,
}

impl Written {
    /// Returns a check of a file with the samples of `recording`.
    pub(super) fn new(state: &State, recording: &Recording) -> Self {
        Written {
            numbers: Numbers::new(state, None),
            events: recording.events.clone(),
            endian: recording.endian,
            start: None,
            end: None,
            next: 0,
            partial: Vec::new(),
            checked: Places::default(),
            error: None,
            is_void: false,
        }
    }

    /// Returns whether the records at `data` of a file with this `recording` are those that were
    /// written.
    pub(super) fn is_about(&self, recording: &Recording, data: Option<&Range<u64>>) -> bool {
        let place = self.start.zip(self.end).map(|(start, end)| start..end);
        !self.is_void
            && self.partial.is_empty()
            && self.end == Some(self.next)
            && place.as_ref() == data
            && self.endian == recording.endian
            && self.events[..] == recording.events[..]
            && self.numbers.is_complete()
    }

    /// Returns the first error.
    pub(super) fn result(&mut self) -> Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    pub(super) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Returns the places of the samples that were checked.
    pub(super) fn checked(&self) -> &Places {
        &self.checked
    }

    /// Receives the next bytes of the records.
    fn records(&mut self, mut bytes: &[u8]) {
        while !self.partial.is_empty() && !bytes.is_empty() && !self.is_void {
            let known = RecordHeader::parse(&self.partial, self.endian);
            let size = known.map_or(RecordHeader::SIZE, |header| usize::from(header.size));
            let missing = size.saturating_sub(self.partial.len()).min(bytes.len());
            let (more, rest) = bytes.split_at_checked(missing).unwrap_or((bytes, &[]));
            self.partial.extend_from_slice(more);
            bytes = rest;
            let mut partial = std::mem::take(&mut self.partial);
            let used = self.whole_records(&partial);
            partial.drain(..used);
            self.partial = partial;
        }
        if !self.is_void {
            let used = self.whole_records(bytes);
            self.partial
                .extend_from_slice(bytes.get(used..).unwrap_or_default());
        }
    }

    /// Checks the samples among the whole records at the start of `bytes`. Returns the number of
    /// bytes of these records.
    fn whole_records(&mut self, bytes: &[u8]) -> usize {
        let mut used = 0;
        while let Some(rest) = bytes.get(used..)
            && let Some(header) = RecordHeader::parse(rest, self.endian)
        {
            let size = usize::from(header.size);
            // Bytes that are not records follow, or the recording changes.
            let is_other = header.kind.has_payload() || header.kind.is_metadata();
            if size < RecordHeader::SIZE || is_other {
                self.is_void = true;
                break;
            }
            let Some(bytes) = rest.get(..size) else {
                break;
            };
            let raw = RawRecord {
                offset: self.next,
                kind: header.kind,
                misc: header.misc,
                bytes,
                endian: self.endian,
            };
            if is_checked_by_numbers(&raw, &self.events, &mut self.numbers) {
                self.checked.add(&raw);
                if let Err(error) = result(&mut self.numbers, || place_of(&raw)) {
                    self.error.get_or_insert(error);
                }
            }
            used = used.saturating_add(size);
            self.next = self.next.saturating_add(size as u64);
        }
        used
    }
}

impl WatchOutput for Written {
    fn records_from(&mut self, offset: u64) {
        (self.start, self.next) = (Some(offset), offset);
    }

    fn records_until(&mut self, offset: u64) {
        self.end = Some(offset);
    }

    fn written(&mut self, offset: u64, bytes: &[u8]) {
        let Some(start) = self.start else {
            return;
        };
        let after = offset.saturating_add(bytes.len() as u64);
        let end = self.end.unwrap_or(u64::MAX);
        let (from, to) = (offset.max(start), after.min(end));
        if from >= to || self.is_void {
            return;
        }
        let expected = self.next.saturating_add(self.partial.len() as u64);
        if from != expected {
            self.is_void = true;
            return;
        }
        let place = |at: u64| usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.records(bytes.get(place(from)..place(to)).unwrap_or_default());
    }
}

/// Returns what a watch knows.
pub(super) fn locked(written: &Mutex<Written>) -> MutexGuard<'_, Written> {
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use perfdata_core::Event;
    use perfdata_core::attr::{Attr, SampleType};
    use perfdata_core::read::Limits;
    use perfdata_core::record::{CallchainContext, RecordType};

    use super::super::addresses::{Addresses, Identity, Space};
    use super::super::key::Key;
    use super::super::policy::Policy;
    use super::*;

    /// Offset of the first record.
    const START: u64 = 100;

    fn state() -> State {
        let key = Key::of_secret(b"a secret of some length").expect("long enough");
        let mut addresses = Addresses::default();
        addresses.add(
            Space::User,
            0x7f12_3456_7000..0x7f12_3466_7000,
            Identity::default,
        );
        addresses.settle(&key);
        let mut state = State::new(key, Policy::default(), Limits::default());
        state.addresses = Arc::new(addresses);
        state
    }

    fn recording(endian: Endian) -> Recording {
        let parts = SampleType::IP.0 | SampleType::CALLCHAIN.0;
        let attr = Attr {
            sample_type: SampleType(parts),
            ..Attr::default()
        };
        let ids = Vec::new();
        let mut recording = Recording::new(endian);
        recording.events.push(Event { attr, ids });
        recording
    }

    fn record(kind: RecordType, words: &[u64], endian: Endian) -> Vec<u8> {
        let size = (8 + 8 * words.len()) as u16;
        let (kind, size) = match endian {
            Endian::Little => (kind.0.to_le_bytes(), size.to_le_bytes()),
            Endian::Big => (kind.0.to_be_bytes(), size.to_be_bytes()),
        };
        let header = [&kind[..], &[0, 2], &size].concat();
        [header, perfdata_core::wire::encode_words(words, endian)].concat()
    }

    /// Two samples, another record, a sample, with the addresses `ip` and `caller` in the last one.
    fn records(state: &State, ip: Option<u64>, caller: Option<u64>, endian: Endian) -> Vec<u8> {
        let new = |address| state.addresses.of(Space::User, address).expect("mapped");
        let (a, b) = (new(0x7f12_3456_7000), new(0x7f12_3460_1234));
        let user = CallchainContext::USER.0;
        let chain = [ip.unwrap_or(a), 4, user, a, caller.unwrap_or(b), 0];
        [
            record(RecordType::SAMPLE, &[a, 2, user, b], endian),
            record(RecordType::SAMPLE, &[0, 0], endian),
            record(RecordType::COMM, &[7, 8, 9], endian),
            record(RecordType::SAMPLE, &chain, endian),
        ]
        .concat()
    }

    fn watched(state: &State, bytes: &[u8], step: usize, endian: Endian) -> Written {
        let mut written = Written::new(state, &recording(endian));
        let mut file = vec![0xff; START as usize];
        file.extend_from_slice(bytes);
        file.extend([0xff; 50]);
        written.records_from(START);
        let end = START + bytes.len() as u64;
        for (at, block) in file.chunks(step).enumerate() {
            let at = (at * step) as u64;
            if at + block.len() as u64 > end {
                written.records_until(end);
            }
            written.written(at, block);
        }
        written
    }

    fn is_about(written: &Written, bytes: &[u8], endian: Endian) -> bool {
        let data = START..START + bytes.len() as u64;
        written.is_about(&recording(endian), Some(&data))
    }

    #[test]
    fn samples_are_checked_however_they_are_written() {
        let state = state();
        for endian in [Endian::Little, Endian::Big] {
            let clean = records(&state, None, None, endian);
            let original = Some(0x7f12_3456_7008);
            let dirty = [
                records(&state, original, None, endian),
                records(&state, None, original, endian),
            ];
            for step in 1..clean.len() + 160 {
                let mut written = watched(&state, &clean, step, endian);
                assert!(is_about(&written, &clean, endian), "{step}");
                assert!(written.result().is_ok(), "{step}");
                let data = START..START + clean.len() as u64;
                let others = written.checked().others(data);
                // The other record.
                let other = START + 64..START + 96;
                assert!(others.eq(std::iter::once(other)), "{step}");
                for (dirty, field) in dirty.iter().zip(["ip", "callchain"]) {
                    let mut written = watched(&state, dirty, step, endian);
                    assert!(is_about(&written, dirty, endian));
                    let error = written.result().expect_err("not clean").to_string();
                    assert!(error.contains(&format!("{field:?}")), "{step}: {error}");
                }
            }
        }
    }

    /// What was checked is not what the file has, or it is not certain.
    #[test]
    fn other_files_are_not_believed() {
        let state = state();
        let endian = Endian::Little;
        let bytes = records(&state, None, None, endian);
        let data = START..START + bytes.len() as u64;
        let about = |written: &Written, bytes: &[u8]| is_about(written, bytes, endian);
        let is_about = |change: fn(&mut Written)| {
            let mut written = watched(&state, &bytes, 64, endian);
            change(&mut written);
            written.is_about(&recording(endian), Some(&data))
        };
        assert!(is_about(|_| {}));
        // Before and after the records.
        assert!(is_about(|written| written.written(0, &[1; START as usize])));
        assert!(is_about(|written| written.written(written.next, &[1; 9])));
        // Over records, and not where the next one is.
        assert!(!is_about(|written| written.written(START - 1, &[1; 2])));
        assert!(!is_about(|written| written.written(START + 70, &[1])));
        assert!(!is_about(|written| {
            written.records_until(1 << 20);
            written.written(written.next + 1, &[1]);
        }));
        // A record that is not complete.
        assert!(!is_about(|written| {
            written.records_until(written.next + 3);
            written.written(written.next, &[1; 3]);
        }));
        let written = watched(&state, &bytes, 64, endian);
        assert!(!written.is_about(&recording(Endian::Big), Some(&data)));
        assert!(!written.is_about(&recording(endian), Some(&(START..data.end + 8))));
        assert!(!written.is_about(&recording(endian), None));
        let mut other = recording(endian);
        other.events.push(Event {
            attr: Attr::default(),
            ids: Vec::new(),
        });
        assert!(!written.is_about(&other, Some(&data)));
        for kind in [RecordType::HEADER_ATTR, RecordType::AUXTRACE] {
            let bytes = [bytes.clone(), record(kind, &[0; 5], endian)].concat();
            let written = watched(&state, &bytes, 64, endian);
            assert!(!about(&written, &bytes), "{kind}");
        }
        let written = Written::new(&state, &recording(endian));
        assert!(!written.is_about(&recording(endian), Some(&(0..0))));
    }
}
