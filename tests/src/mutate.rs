//! Recordings that differ from real ones within the format: other values, other orders, other
//! options. Every record keeps its size and offset, so that no writer of this project is involved.

use perfdata_convert::io::Input;
use perfdata_convert::verify::Report;
use perfdata_core::DecodeContext;
use perfdata_core::attr::AttrFlags;
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::feature::FeatureId;
use perfdata_core::read::StreamItem;
use perfdata_core::record::{RawRecord, Record, RecordHeader, RecordType};
use perfdata_core::wire::Wire;

use crate::convert::{MemoryReader, open};
use crate::generate::random::Random;

/// The last addresses, which are markers of contexts in callchains.
const MARKERS: u64 = -4095_i64 as u64;

/// Flags of attributes that perf shows, and that do not change what records look like.
const SHOWN_FLAGS: [fn(AttrFlags) -> AttrFlags; 6] = [
    |flags| flags.with_exclude_idle(flags.exclude_idle() == 0),
    |flags| flags.with_exclude_hv(flags.exclude_hv() == 0),
    |flags| flags.with_enable_on_exec(flags.enable_on_exec() == 0),
    |flags| flags.with_watermark(flags.watermark() == 0),
    |flags| flags.with_pinned(flags.pinned() == 0),
    |flags| flags.with_comm_exec(flags.comm_exec() == 0),
];

/// A recording with its records.
#[derive(Debug)]
pub struct Original {
    bytes: Vec<u8>,
    records: Vec<Place>,
    values: Values,
}

/// Where a record is.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    len: usize,
    kind: RecordType,
    layout: DecodeContext,
}

/// Values of the recording that may also be at other fields of the same content.
#[derive(Debug, Default)]
struct Values {
    pids: Vec<u64>,
    times: Vec<u64>,
    ids: Vec<u64>,
    addresses: Vec<u64>,
}

impl Original {
    /// Reads a recording; returns `None` if it has compressed records, or `verify` finds errors in
    /// it.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let mut reader = reader_of(&bytes)?;
        let (mut records, mut values) = (Vec::new(), Values::default());
        while let Some(item) = reader.next().ok()? {
            match item {
                StreamItem::Record(record) => {
                    if record.kind.is_compressed() {
                        return None;
                    }
                    let layout = record.recording().events.layout_of(&record);
                    if let Ok(mut decoded) = record.decode() {
                        decoded.rewrite("", Content::Fields, &mut values);
                    }
                    records.push(Place {
                        at: record.offset as usize,
                        len: record.bytes.len(),
                        kind: record.kind,
                        layout,
                    });
                }
                StreamItem::Payload(_) => {}
                StreamItem::Unreadable(_) => return None,
            }
        }
        let events = &reader.recording().events;
        values
            .ids
            .extend(events.iter().flat_map(|event| event.ids.iter().copied()));
        is_sound(&bytes).then_some(Original {
            bytes,
            records,
            values,
        })
    }

    /// Returns the recording with one to eight changes, and their descriptions. Changes after which
    /// `verify` finds errors are not made.
    pub fn mutated(&self, random: &mut Random) -> (Vec<u8>, Vec<String>) {
        let (mut bytes, mut changes) = (self.bytes.clone(), Vec::new());
        for _ in 0..1 + random.below(8) {
            let before = bytes.clone();
            let change = match random.below(12) {
                0 => self.swap(&mut bytes, random),
                1 => self.overwrite(&mut bytes, random),
                2 => self.attribute(&mut bytes, random),
                3 => self.feature(&mut bytes, random),
                4 => self.mode(&mut bytes, random),
                _ => self.field(&mut bytes, random),
            };
            match change {
                Some(change) if bytes != before && is_sound(&bytes) => {
                    changes.push(change);
                }
                _ => bytes = before,
            }
        }
        (bytes, changes)
    }

    /// Returns a record of the kernel.
    fn any(&self, random: &mut Random) -> Option<(usize, Place)> {
        let number = random.below(self.records.len().max(1) as u64) as usize;
        let place = *self.records.get(number)?;
        let is_movable = place.kind.0 < 64;
        is_movable.then_some((number, place))
    }

    /// Exchanges two records, one directly after the other.
    fn swap(&self, bytes: &mut [u8], random: &mut Random) -> Option<String> {
        let (number, one) = self.any(random)?;
        let other = *self.records.get(number + 1)?;
        if other.kind.0 >= 64 || one.at + one.len != other.at {
            return None;
        }
        // Later changes expect records where they were.
        if one.len != other.len {
            return None;
        }
        bytes
            .get_mut(one.at..other.at + other.len)?
            .rotate_left(one.len);
        Some(format!(
            "{} and {} at {:#x} exchanged",
            one.kind, other.kind, one.at
        ))
    }

    /// Writes one record over another one of the same size.
    fn overwrite(&self, bytes: &mut [u8], random: &mut Random) -> Option<String> {
        let (_, from) = self.any(random)?;
        let (_, to) = self.any(random)?;
        if from.len != to.len {
            return None;
        }
        bytes.copy_within(from.at..from.at + from.len, to.at);
        Some(format!(
            "{} at {:#x} again at {:#x}",
            from.kind, from.at, to.at
        ))
    }

    /// Changes the CPU mode of a sample.
    fn mode(&self, bytes: &mut [u8], random: &mut Random) -> Option<String> {
        let (_, place) = self.any(random)?;
        let endian = reader_of(bytes)?.recording().endian;
        let record = bytes.get_mut(place.at..place.at + place.len)?;
        let header = RecordHeader::parse(record, endian)?;
        if header.kind != RecordType::SAMPLE {
            return None;
        }
        let mode = 1 + random.below(2) as u16;
        RecordHeader::put_misc(record, header.misc & !7 | mode, endian);
        Some(format!("CPU mode {mode} at {:#x}", place.at))
    }

    /// Changes one field of a record, or several.
    fn field(&self, bytes: &mut [u8], random: &mut Random) -> Option<String> {
        let (_, place) = self.any(random)?;
        let endian = reader_of(bytes)?.recording().endian;
        let record = bytes.get_mut(place.at..place.at + place.len)?;
        let raw = RawRecord::first(record, endian, 0).ok()?;
        let mut decoded = Record::decode(&raw, &place.layout).ok()?;
        let mut change = Change {
            values: &self.values,
            random,
            target: 0,
            seen: 0,
            what: String::new(),
        };
        // The first pass counts the fields.
        change.target = usize::MAX;
        decoded.rewrite("", Content::Fields, &mut change);
        change.target = change.random.below(change.seen.max(1) as u64) as usize;
        change.seen = 0;
        decoded.rewrite("", Content::Fields, &mut change);
        let what = change.what;
        let new = decoded.encode(endian).ok()?;
        if new.len() != record.len() {
            return None;
        }
        record.copy_from_slice(&new);
        Some(format!("{} at {:#x}: {what}", place.kind, place.at))
    }

    /// Changes an attribute wherever it is: in the table or record of attributes, and in
    /// EVENT_DESC.
    fn attribute(&self, bytes: &mut [u8], random: &mut Random) -> Option<String> {
        let reader = reader_of(bytes)?;
        let recording = reader.recording();
        let number = random.below(recording.events.len().max(1) as u64) as usize;
        let attr = &recording.events.get(number)?.attr;
        let old = attr.encode(recording.endian).ok()?;
        let mut new = attr.clone();
        let what = match random.below(4) {
            0 => {
                new.wakeup = random.below(1 << 20) as u32;
                "wakeup"
            }
            1 => {
                new.sample_max_stack = new.sample_max_stack.map(|_| random.below(128) as u16);
                "sample_max_stack"
            }
            _ => {
                new.flags = SHOWN_FLAGS[random.below(6) as usize](new.flags);
                "flags"
            }
        };
        let new = new.encode(recording.endian).ok()?;
        (old.len() == new.len() && replace(bytes, &old, &new) > 0)
            .then(|| format!("{what} of attribute {number}"))
    }

    /// Changes texts of a feature section.
    fn feature(&self, bytes: &mut [u8], random: &mut Random) -> Option<String> {
        const TEXTS: [FeatureId; 6] = [
            FeatureId::HOSTNAME,
            FeatureId::OSRELEASE,
            FeatureId::VERSION,
            FeatureId::ARCH,
            FeatureId::CPUDESC,
            FeatureId::CMDLINE,
        ];
        let id = *random.pick(&TEXTS);
        let old = reader_of(bytes)?.recording().features.get(&id)?.clone();
        let mut new = old.clone();
        let at = 4 + random.below(new.len().saturating_sub(4).max(1) as u64) as usize;
        let byte = new
            .get_mut(at)
            .filter(|byte| byte.is_ascii_alphanumeric())?;
        *byte = b'a' + random.below(26) as u8;
        (replace(bytes, &old, &new) == 1).then(|| format!("{id}: byte {at}"))
    }
}

fn reader_of(bytes: &[u8]) -> Option<MemoryReader> {
    open(bytes.to_vec()).ok()
}

/// Returns whether `verify` finds no errors.
fn is_sound(bytes: &[u8]) -> bool {
    Report::of(Input::from_source(bytes.to_vec())).is_ok_and(|report| report.is_clean())
}

/// Replaces `old` by `new` wherever it is. Returns how often.
fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) -> usize {
    let mut count = 0;
    let mut at = 0;
    while !old.is_empty() && at + old.len() <= bytes.len() {
        if bytes[at..at + old.len()] == *old {
            bytes[at..at + old.len()].copy_from_slice(new);
            count += 1;
            at += old.len();
        } else {
            at += 1;
        }
    }
    count
}

impl Rewriter for Values {
    fn number(&mut self, _: &'static str, value: u64, _: usize, content: Content) -> u64 {
        match content {
            Content::Pid => self.pids.push(value),
            Content::Time => self.times.push(value),
            Content::Address | Content::Callchain => self.addresses.push(value),
            _ => {}
        }
        value
    }

    fn text(&mut self, _: &'static str, _: &[u8], _: usize, _: Content) -> Option<Vec<u8>> {
        None
    }

    fn bytes(&mut self, _: &'static str, _: &mut [u8], _: Content) {}
}

/// Changes the field with number `target`.
struct Change<'a> {
    values: &'a Values,
    random: &'a mut Random,
    target: usize,
    seen: usize,
    what: String,
}

impl Change<'_> {
    fn is_target(&mut self) -> bool {
        self.seen += 1;
        self.seen - 1 == self.target
    }

    fn one_of(&mut self, values: &[u64]) -> Option<u64> {
        let number = self.random.below(values.len().max(1) as u64) as usize;
        values.get(number).copied()
    }
}

impl Rewriter for Change<'_> {
    fn number(&mut self, name: &'static str, value: u64, size: usize, content: Content) -> u64 {
        if !self.is_target() || matches!(content, Content::Padding | Content::Unknown) {
            return value;
        }
        let values = self.values;
        let new = match content {
            Content::Pid => self.one_of(&values.pids),
            Content::Id => self.one_of(&values.ids),
            Content::Time if self.random.below(2) == 0 => self.one_of(&values.times),
            Content::Time => Some(value.wrapping_add(self.random.below(100_000))),
            Content::Address | Content::Callchain if value >= MARKERS => None,
            Content::Address | Content::Callchain if self.random.below(2) == 0 => {
                self.one_of(&values.addresses)
            }
            Content::Address | Content::Callchain => Some(value ^ self.random.below(1 << 12)),
            Content::Number
            | Content::Cpu
            | Content::Protection
            | Content::MapFlags
            | Content::BuildIdSize => {
                let bits = 1 + self.random.below(7);
                Some(self.random.below(1 << bits))
            }
            _ => Some(self.random.word() >> self.random.below(64)),
        };
        let new = new.unwrap_or(value) & (u64::MAX >> (64 - 8 * size.clamp(1, 8)));
        self.what = format!("{name} ({content:?}) {value:#x} is {new:#x}");
        new
    }

    fn text(&mut self, name: &'static str, text: &[u8], _: usize, _: Content) -> Option<Vec<u8>> {
        if !self.is_target() || text.is_empty() {
            return None;
        }
        let mut new = text.to_vec();
        let at = self.random.below(new.len() as u64) as usize;
        new[at] = *self.random.pick(b"abcdefghijklmnopqrstuvwxyz0123456789_.-");
        self.what = format!("{name}: {}", String::from_utf8_lossy(&new));
        Some(new)
    }

    fn bytes(&mut self, name: &'static str, bytes: &mut [u8], content: Content) {
        let is_free = matches!(content, Content::Memory | Content::Raw | Content::BuildId);
        if self.is_target() && is_free && !bytes.is_empty() {
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] = self.random.word() as u8;
            self.what = format!("{name}: byte {at}");
        }
    }
}
