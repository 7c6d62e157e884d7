//! The comparison of two streams of records.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::ops::ControlFlow;
use std::sync::mpsc::Receiver;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::describe::{Describe, Style};
use perfdata_core::record::{RawRecord, Record, RecordType};
use perfdata_core::{DecodeContext, Endian};

use super::model::Side;
use super::{Difference, Found, compare_fields};
use crate::show::misc_names;
use crate::show::paths::fields;
use crate::show::text::{Line, TextLimits};
use perfdata_convert::error::Result;
use perfdata_convert::io::BoxedSource;
use perfdata_convert::leftover::without_place;
use perfdata_convert::support::text::push_hex;
use perfdata_convert::walk::{Item, walk};

/// An item in a stream that is compared.
#[derive(Debug)]
pub(super) struct Entry {
    offset: u64,
    inner: Option<usize>,
    endian: Endian,
    layout: DecodeContext,
    /// The whole record, or bytes that are not a record.
    bytes: Vec<u8>,
    /// Size in bytes, and hash, of data that follow the record and are not part of its size.
    payload: (u64, u64),
    record: OnceCell<Option<Box<Record>>>,
    /// The reason why the stream ended early.
    end: Option<String>,
}

impl Entry {
    fn new(raw: &RawRecord<'_>, inner: Option<usize>, layout: DecodeContext) -> Self {
        Entry {
            offset: raw.offset,
            inner,
            endian: raw.endian,
            layout,
            bytes: raw.bytes.to_vec(),
            payload: (0, 0),
            record: OnceCell::new(),
            end: None,
        }
    }

    fn raw(&self) -> Option<RawRecord<'_>> {
        RawRecord::first(&self.bytes, self.endian, self.offset)
            .ok()
            .filter(|_| self.end.is_none())
    }

    fn kind(&self) -> Option<RecordType> {
        Some(self.raw()?.kind)
    }

    fn record(&self) -> Option<&Record> {
        self.record
            .get_or_init(|| {
                Record::decode(&self.raw()?, &self.layout)
                    .ok()
                    .map(Box::new)
            })
            .as_deref()
    }

    /// Returns whether two entries have the same content.
    fn same(&self, other: &Entry) -> bool {
        if self.payload != other.payload || self.end != other.end {
            return false;
        }
        if self.endian == other.endian && self.bytes == other.bytes && self.layout == other.layout {
            return true;
        }
        match (self.record(), other.record()) {
            (Some(a), Some(b)) => {
                a == b || (a.kind == b.kind && a.misc == b.misc && fields(a) == fields(b))
            }
            (None, None) => self.bytes == other.bytes,
            _ => false,
        }
    }

    fn place(&self) -> String {
        match self.inner {
            Some(inner) => format!("{:#x}[{inner}]", self.offset),
            None => format!("{:#x}", self.offset),
        }
    }

    /// Returns the whole entry on one line, with its offset.
    fn text(&self) -> String {
        match (&self.end, self.record()) {
            (Some(why), _) => why.clone(),
            (None, Some(record)) => {
                let mut line = Line::new(TextLimits::BRIEF);
                record.describe("", Style::Plain, &mut line);
                format!("at {}: {}", self.place(), line.out)
            }
            (None, None) => format!("at {}: undecodable", self.place()),
        }
    }

    fn title(&self) -> String {
        self.kind().map_or("end of the records".to_owned(), |kind| {
            format!("{kind} record")
        })
    }

    /// Reports that only one of the recordings has this entry.
    fn only(self, in_a: bool, found: &mut Found<'_>) -> Result<()> {
        let text = Some(self.text());
        let (a, b) = if in_a { (text, None) } else { (None, text) };
        found.only(
            self.kind(),
            in_a,
            Difference {
                what: self.title(),
                field: String::new(),
                a,
                b,
            },
        )
    }
}

pub(super) fn is_pipe(reader: &BoxedSource) -> bool {
    matches!(reader.container_layout(), ContainerLayout::Pipe(_))
}

/// Sends everything to compare in the stream of `reader` to `send` until that returns `false`.
/// Returns the model.
pub(super) fn read(
    mut reader: BoxedSource,
    across: bool,
    mut send: impl FnMut(Entry) -> bool,
) -> Result<Side> {
    let mut side = Side::default();
    // A record waits for the payload after it.
    let mut waiting: Option<Entry> = None;
    let mut hasher = DefaultHasher::new();
    let mut unreadable = (0_u64, DefaultHasher::new());
    let mut end = None;
    let undecoded = walk(&mut reader, |item, recording| {
        let (batch, inner) = match &item {
            Item::Records(batch, inner) => (batch, *inner),
            Item::Payload(bytes) => {
                if let Some(entry) = &mut waiting {
                    hasher.write(bytes);
                    entry.payload = (entry.payload.0 + bytes.len() as u64, hasher.finish());
                }
                return Ok(ControlFlow::Continue(()));
            }
            Item::Unreadable(bytes) => {
                unreadable.0 += bytes.len() as u64;
                unreadable.1.write(bytes);
                return Ok(ControlFlow::Continue(()));
            }
            Item::Undecodable(error) => {
                end = Some(without_place(error));
                return Ok(ControlFlow::Continue(()));
            }
            Item::Pause { .. } => return Ok(ControlFlow::Continue(())),
        };
        for raw in batch.iter() {
            if let Some(entry) = waiting.take()
                && !send(entry)
            {
                return Ok(ControlFlow::Break(()));
            }
            side.names.see(&raw);
            side.counts.add_at(raw.kind, inner);
            match raw.kind {
                kind if kind.is_metadata() => {}
                kind if kind.is_compressed() => {}
                // Compared as the names of the events.
                RecordType::EVENT_UPDATE if side.is_name(&raw, recording) => {}
                RecordType::HEADER_BUILD_ID if across => side.see_build_id(&raw, recording),
                _ => {
                    side.compared.add(raw.kind, raw.bytes.len());
                    waiting = Some(Entry::new(&raw, inner, recording.events.layout_of(&raw)));
                    hasher = DefaultHasher::new();
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(entry) = waiting.take() {
        send(entry);
    }
    if unreadable.0 > 0 {
        end = Some(format!(
            "{} bytes that are not records (hash {:016x})",
            unreadable.0,
            unreadable.1.finish()
        ));
    } else if let Some(error) = reader.damage() {
        end = Some(without_place(error));
    } else if undecoded > 0 {
        end = Some(format!(
            "an incomplete record of {undecoded} bytes at the end of the compressed data"
        ));
    }
    if let Some(end) = end {
        let last = RawRecord {
            offset: 0,
            kind: RecordType(0),
            misc: 0,
            bytes: &[],
            endian: Endian::Little,
        };
        send(Entry {
            end: Some(end),
            ..Entry::new(&last, None, DecodeContext::default())
        });
    }
    if let ContainerLayout::Pipe(head) = reader.container_layout() {
        side.counts.metadata = side.counts.metadata.saturating_add(head.slots.len() as u64);
    }
    side.container = Some(reader.container_layout().container());
    side.recording = Some(reader.recording().clone());
    Ok(side)
}

/// Maximum number of entries in which to search for the point where the streams are equal again.
const REACH: usize = 32;

/// The next entries in both streams.
pub(super) struct Window {
    sources: [Receiver<Entry>; 2],
    next: [VecDeque<Entry>; 2],
}

impl Window {
    pub(super) fn new(a: Receiver<Entry>, b: Receiver<Entry>) -> Self {
        Window {
            sources: [a, b],
            next: [VecDeque::new(), VecDeque::new()],
        }
    }

    /// Reads entries until `count` of each stream are available, or the stream ends.
    fn fill(&mut self, count: usize) {
        for (source, next) in self.sources.iter().zip(&mut self.next) {
            while next.len() < count
                && let Ok(entry) = source.recv()
            {
                next.push_back(entry);
            }
        }
    }

    /// Reports the differences, up to the end of both streams.
    pub(super) fn compare(mut self, found: &mut Found<'_>) -> Result<()> {
        while !found.is_enough {
            self.fill(1);
            let [a, b] = &self.next;
            match (a.front(), b.front()) {
                (None, None) => return Ok(()),
                (Some(a), Some(b)) if a.same(b) => {
                    self.next.iter_mut().for_each(|next| drop(next.pop_front()));
                }
                _ => {
                    self.fill(REACH);
                    let (skip_a, skip_b) = self.agreement();
                    self.skip(skip_a, skip_b, found)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the numbers of entries to skip until the streams are equal again; all available ones
    /// if they are not.
    fn agreement(&self) -> (usize, usize) {
        let [a, b] = &self.next;
        let most = a.len() + b.len();
        // The nearest point first; among equally near points, the one that skips similar numbers of
        // entries.
        let places = (1..most).flat_map(|sum| {
            let (half, odd) = (sum / 2, sum % 2);
            (0..=half).flat_map(move |off| {
                [
                    (half - off, half + odd + off),
                    (half + odd + off, half - off),
                ]
            })
        });
        let same = |&(i, j): &(usize, usize)| match (a.get(i), b.get(j)) {
            (Some(a), Some(b)) => a.same(b),
            _ => false,
        };
        places
            .filter(|&(i, j)| i < a.len() && j < b.len())
            .find(same)
            .unwrap_or((a.len(), b.len()))
    }

    /// Reports the first entries of each stream as different. Two entries of the same type are
    /// reported as one changed entry.
    fn skip(&mut self, mut a: usize, mut b: usize, found: &mut Found<'_>) -> Result<()> {
        let [next_a, next_b] = &mut self.next;
        while a > 0 && b > 0 {
            let (kind_a, kind_b) = (
                next_a.front().and_then(Entry::kind),
                next_b.front().and_then(Entry::kind),
            );
            let ahead = |next: &VecDeque<Entry>, len: usize, kind| {
                next.iter().take(len).any(|entry| entry.kind() == kind)
            };
            if kind_a == kind_b {
                if let (Some(a), Some(b)) = (next_a.pop_front(), next_b.pop_front()) {
                    changed(&a, &b, found)?;
                }
                (a, b) = (a - 1, b - 1);
            } else if !ahead(next_b, b, kind_a) {
                next_a
                    .pop_front()
                    .map_or(Ok(()), |entry| entry.only(true, found))?;
                a -= 1;
            } else {
                next_b
                    .pop_front()
                    .map_or(Ok(()), |entry| entry.only(false, found))?;
                b -= 1;
            }
        }
        for _ in 0..a {
            next_a
                .pop_front()
                .map_or(Ok(()), |entry| entry.only(true, found))?;
        }
        for _ in 0..b {
            next_b
                .pop_front()
                .map_or(Ok(()), |entry| entry.only(false, found))?;
        }
        Ok(())
    }
}

/// Reports the differences between two records of the same type.
fn changed(a: &Entry, b: &Entry, found: &mut Found<'_>) -> Result<()> {
    let what = match a.end {
        Some(_) => a.title(),
        None => format!("{} at {}, {}", a.title(), a.place(), b.place()),
    };
    let described = |entry: &Entry| match (&entry.end, entry.record()) {
        (Some(end), _) => vec![(String::new(), end.clone())],
        (None, Some(record)) => {
            let mut all = vec![(
                "misc".to_owned(),
                misc_names(record.kind, record.misc).join("|"),
            )];
            all.extend(fields(record));
            if entry.payload.0 > 0 {
                all.push((
                    "payload".into(),
                    format!("{} bytes (hash {:016x})", entry.payload.0, entry.payload.1),
                ));
            }
            all
        }
        (None, None) => {
            let mut bytes = String::new();
            push_hex(&mut bytes, &entry.bytes);
            vec![("undecodable".into(), bytes)]
        }
    };
    let told = found.told;
    compare_fields(&what, &described(a), &described(b), found)?;
    if let Some(kind) = a.kind().filter(|_| found.told > told) {
        found.records.changed(kind);
    }
    Ok(())
}
