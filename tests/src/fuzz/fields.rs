//! Real recordings with changed fields are written, converted, inspected and recovered.

use std::io::Cursor;
use std::sync::{Arc, OnceLock};

use arbitrary::{Arbitrary, Unstructured};
use perfdata_core::attr::Attr;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::read::{Decompressor, Limits, RecordingReader, StreamItem};
use perfdata_core::record::{RawRecord, Record, RecordHeader};
use perfdata_core::wire::Wire;
use perfdata_core::{DecodeContext, Endian, Recording};
use perfdata_write::{Compressor, FilePlan, FileWriter, PipePlan, PipeWriter, RecordSink};

use super::{conversions, copy, recordings};

/// A change of one item.
#[derive(Debug, Arbitrary)]
enum Change {
    /// A field is set to a number.
    Field { field: u16, value: Value },
    /// The item is duplicated.
    Twice,
    /// The item is removed.
    Gone,
    /// Its type or ID is replaced.
    Kind(u8),
}

/// A number for a field.
#[derive(Debug, Arbitrary)]
enum Value {
    Zero,
    One,
    Most,
    MostSigned,
    Less,
    More,
    Any(u64),
    /// One bit of the old value is another one, for flags.
    Bit(u8),
    /// One of the values that the declaration lists, for codes.
    Listed(u8),
}

impl Value {
    fn of(&self, was: u64, listed: &[(u64, &str)]) -> u64 {
        match self {
            Value::Bit(bit) => was ^ 1 << (bit % 64),
            Value::Listed(at) => listed
                .get(usize::from(*at) % listed.len().max(1))
                .map_or(was, |(value, _)| *value),
            Value::Zero => 0,
            Value::One => 1,
            Value::Most => u64::MAX,
            Value::MostSigned => u64::MAX >> 1,
            Value::Less => was.wrapping_sub(1),
            Value::More => was.wrapping_add(1),
            Value::Any(value) => *value,
        }
    }
}

/// Selects the items to change. Indexes wrap around.
#[derive(Debug, Arbitrary)]
struct Plan {
    recording: u8,
    attrs: Vec<(u8, Change)>,
    features: Vec<(u8, Change)>,
    records: Vec<(u16, Change)>,
    /// Changes of the records in compressed records, whose data are compressed again.
    inner: Vec<(u16, Change)>,
    as_pipe: bool,
    conversion: u8,
}

/// Returns inputs that select all kinds of changes.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut numbers = super::Numbers(1);
    (0..64)
        .map(|_| (0..256).map(|_| numbers.next_number() as u8).collect())
        .collect()
}

/// Changes a recording according to `data`.
pub fn fields(data: &[u8]) {
    static ALL: OnceLock<Vec<Arc<Vec<u8>>>> = OnceLock::new();
    let all = ALL.get_or_init(|| recordings().into_iter().map(Arc::new).collect());
    let Ok(plan) = Plan::arbitrary_take_rest(Unstructured::new(data)) else {
        return;
    };
    let Some(seed) = all.get(usize::from(plan.recording) % all.len().max(1)) else {
        return;
    };
    let Ok(mut bytes) = changed(seed.clone(), &plan) else {
        return;
    };
    check(&mut bytes, plan.conversion);
}

/// Checks all properties of a recording.
pub(super) fn check(bytes: &mut Vec<u8>, conversion: u8) {
    copy(bytes);
    bytes.push(conversion);
    conversions::convert(bytes);
    bytes.pop();
    conversions::look(bytes);
    conversions::recover(bytes);
}

/// Returns the recording with the changes of `plan`; an error if it cannot be written.
fn changed(source: Arc<Vec<u8>>, plan: &Plan) -> Result<Vec<u8>, String> {
    let mut reader = RecordingReader::open(source.clone()).map_err(|e| e.to_string())?;
    let mut recording = reader.recording().clone();
    let endian = recording.endian;
    let mut events = std::mem::take(&mut recording.events).into_vec();
    for (at, change) in &plan.attrs {
        let at = usize::from(*at) % events.len().max(1);
        let Some(event) = events.get_mut(at) else {
            break;
        };
        match change {
            Change::Field { field, value } => {
                let bytes = event.attr.encode(endian).map_err(|e| e.to_string())?;
                let bytes = with_field(&event.attr, bytes, 0, *field, value, endian);
                let layout = DecodeContext::default().with_attr_room(bytes.len() as u32);
                if let Ok((attr, _)) = Attr::decode(&bytes, endian, layout) {
                    event.attr = attr;
                }
            }
            Change::Twice => {
                let again = event.clone();
                events.push(again);
            }
            Change::Gone => drop(events.remove(at)),
            Change::Kind(id) => event.ids.push(u64::from(*id)),
        }
    }
    for (at, change) in &plan.features {
        let Some(&id) = recording
            .features
            .keys()
            .nth(usize::from(*at) % recording.features.len().max(1))
        else {
            break;
        };
        let Some(bytes) = recording.features.get(&id).cloned() else {
            break;
        };
        match change {
            Change::Field { field, value } => {
                if let Some(Ok(section)) = recording.feature(id) {
                    let bytes = with_field::<Section>(&section, bytes, 0, *field, value, endian);
                    recording.features.insert(id, bytes);
                }
            }
            // Each repetition would double the size.
            Change::Twice if bytes.len() > 1 << 20 => {}
            Change::Twice => drop(
                recording
                    .features
                    .insert(id, [bytes.clone(), bytes].concat()),
            ),
            Change::Gone => drop(recording.features.remove(&id)),
            Change::Kind(other) => drop(
                recording
                    .features
                    .insert(FeatureId(u32::from(*other)), bytes),
            ),
        }
    }
    recording.events = events.into_iter().collect();
    let layout = reader.container_layout().clone();
    write(&recording, &layout, plan.as_pipe, &source, |writer| {
        records(&mut reader, plan, writer)
    })
}

/// Writes a recording, which was found as `layout`, with the records that `records` writes.
pub(super) fn write(
    recording: &Recording,
    layout: &ContainerLayout,
    as_pipe: bool,
    source: &Arc<Vec<u8>>,
    records: impl FnOnce(&mut dyn RecordSink) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    let failed = |error: perfdata_write::Error| error.to_string();
    if as_pipe || matches!(layout, ContainerLayout::Pipe(_)) {
        let plan = match layout {
            ContainerLayout::Pipe(pipe) => PipePlan::exact(pipe),
            ContainerLayout::File(_) => PipePlan::standard(recording, PipePlan::END),
        };
        let mut writer = PipeWriter::begin(Vec::new(), plan, recording).map_err(failed)?;
        records(&mut writer)?;
        return writer.finish().map_err(failed);
    }
    let plan = match layout {
        ContainerLayout::File(file) if recording.events.len() == file.ids.len() => {
            FilePlan::exact(file)
        }
        _ => FilePlan::standard(),
    };
    let out = Cursor::new(Vec::new());
    let mut writer = FileWriter::begin(out, plan, recording, source).map_err(failed)?;
    records(&mut writer)?;
    Ok(writer.finish(recording).map_err(failed)?.into_inner())
}

/// Writes the records with their changes.
fn records(
    reader: &mut RecordingReader<impl std::io::Read>,
    plan: &Plan,
    writer: &mut dyn RecordSink,
) -> Result<(), String> {
    let mut nested = Nested::default();
    let mut count = 0_usize;
    while let Some(item) = reader.next().map_err(|e| e.to_string())? {
        let StreamItem::Record(record) = item else {
            writer
                .item(&item.map(|record| record.raw()))
                .map_err(|e| e.to_string())?;
            continue;
        };
        let (raw, recording) = (record.raw(), record.recording());
        let mut all = vec![raw.bytes.to_vec()];
        if raw.kind.is_compressed() && !plan.inner.is_empty() {
            all = nested.changed(&raw, recording, &plan.inner)?;
        }
        for bytes in all {
            let raw = RawRecord {
                bytes: &bytes,
                ..raw
            };
            write_changed(&raw, recording, &plan.records, count, writer)?;
            count += 1;
        }
    }
    Ok(())
}

/// Passes the record with number `count` to `writer` with the changes that apply to it.
fn write_changed(
    raw: &RawRecord<'_>,
    recording: &Recording,
    changes: &[(u16, Change)],
    count: usize,
    writer: &mut dyn RecordSink,
) -> Result<(), String> {
    let (bytes, times) = changed_record(raw, recording, changes, count);
    for _ in 0..times {
        // The changed size no longer matches. The sink writes the bytes as they are.
        let record = RawRecord {
            bytes: &bytes,
            ..*raw
        };
        writer.record(&record).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Returns the record with number `count` after the changes that apply to it, and how often it is
/// written.
fn changed_record(
    raw: &RawRecord<'_>,
    recording: &Recording,
    changes: &[(u16, Change)],
    count: usize,
) -> (Vec<u8>, usize) {
    // Recordings contain a few hundred records.
    let mine = changes
        .iter()
        .filter(|(at, _)| usize::from(*at) % 256 == count % 256);
    let (mut bytes, mut times) = (raw.bytes.to_vec(), 1);
    for (_, change) in mine {
        match change {
            Change::Field { field, value } => {
                let layout = recording.events.layout_of(raw);
                if let Ok(record) = Record::decode(raw, &layout) {
                    let start = RecordHeader::SIZE;
                    bytes = with_field(&record, bytes, start, *field, value, raw.endian);
                }
            }
            Change::Twice => times = 2,
            Change::Gone => times = 0,
            Change::Kind(kind) => {
                let at = if raw.endian == Endian::Little { 0 } else { 3 };
                bytes[at] = *kind;
            }
        }
    }
    (bytes, times)
}

/// The stream in the compressed records.
#[derive(Default)]
struct Nested {
    streams: Option<(Decompressor, Compressor)>,
    count: usize,
}

impl Nested {
    /// Returns the compressed records with the changed records of `raw`.
    fn changed(
        &mut self,
        raw: &RawRecord<'_>,
        recording: &Recording,
        changes: &[(u16, Change)],
    ) -> Result<Vec<Vec<u8>>, String> {
        let (inner, outer) = match &mut self.streams {
            Some(streams) => streams,
            none => {
                let inner = Decompressor::of(recording, Limits::default());
                let outer = Compressor::new(raw.kind, raw.endian, 1);
                none.insert((
                    inner.map_err(|e| e.to_string())?,
                    outer.map_err(|e| e.to_string())?,
                ))
            }
        };
        inner.push(raw).map_err(|e| e.to_string())?;
        let mut plain = Vec::new();
        while let Some(record) = inner.next().map_err(|e| e.to_string())? {
            let (bytes, times) = changed_record(&record, recording, changes, self.count);
            (0..times).for_each(|_| plain.extend_from_slice(&bytes));
            self.count += 1;
        }
        let mut all = Vec::new();
        let keep = |record: &RawRecord<'_>| {
            all.push(record.bytes.to_vec());
            Ok::<(), perfdata_write::Error>(())
        };
        outer.push(&plain, keep).map_err(|e| e.to_string())?;
        Ok(all)
    }
}

/// Returns the bytes of `value`, which follow `start` other bytes, with a number in one of its
/// fields.
fn with_field<T: Describe>(
    value: &T,
    mut bytes: Vec<u8>,
    start: usize,
    field: u16,
    number: &Value,
    endian: Endian,
) -> Vec<u8> {
    /// Offset and size of every number, and the values that the declaration lists.
    type Place = (usize, usize, &'static [(u64, &'static str)]);
    struct Places(usize, Vec<Place>);
    impl Visitor for Places {
        fn begin(&mut self, _: &'static str) {}
        fn begin_list(&mut self, _: &'static str, _: usize) {}
        fn end(&mut self) {}
        fn leaf(&mut self, _: &'static str, size: usize, leaf: Leaf<'_>) {
            let listed = match leaf {
                Leaf::Code(_, _, listed) => listed,
                _ => &[],
            };
            if size > 0 {
                self.1.push((self.0, size.min(8), listed));
            }
            self.0 += size;
        }
    }
    let mut places = Places(start, Vec::new());
    value.describe("", Style::Plain, &mut places);
    let Some(&(at, size, listed)) = places.1.get(usize::from(field) % places.1.len().max(1)) else {
        return bytes;
    };
    let Some(room) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..size)) else {
        return bytes;
    };
    let little = endian == Endian::Little;
    let mut word = [0; 8];
    word[..size].copy_from_slice(room);
    if !little {
        word[..size].reverse();
    }
    word = number.of(u64::from_le_bytes(word), listed).to_le_bytes();
    if !little {
        word[..size].reverse();
    }
    room.copy_from_slice(&word[..size]);
    bytes
}
