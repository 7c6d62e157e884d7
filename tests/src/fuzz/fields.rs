//! Real recordings with changed fields are written, converted, inspected and recovered.

use std::io::Cursor;
use std::sync::{Arc, OnceLock};

use arbitrary::{Arbitrary, Unstructured};
use perfdata_core::attr::Attr;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::read::{RecordingReader, StreamItem};
use perfdata_core::record::{RawRecord, RecordHeader};
use perfdata_core::wire::Wire;
use perfdata_core::{DecodeContext, Endian};
use perfdata_write::{FilePlan, FileWriter, PipePlan, PipeWriter, RecordSink};

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
}

impl Value {
    fn of(&self, was: u64) -> u64 {
        match self {
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
pub(super) fn fields(data: &[u8]) {
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
    copy::copy(&bytes);
    bytes.push(plan.conversion);
    conversions::convert(&bytes);
    bytes.pop();
    conversions::look(&bytes);
    conversions::recover(&bytes);
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
    let container_layout = reader.container_layout().clone();
    if plan.as_pipe || matches!(container_layout, ContainerLayout::Pipe(_)) {
        let plan_of_pipe = match &container_layout {
            ContainerLayout::Pipe(pipe) => PipePlan::exact(pipe),
            ContainerLayout::File(_) => PipePlan::standard(&recording, PipePlan::END),
        };
        let mut writer =
            PipeWriter::begin(Vec::new(), plan_of_pipe, &recording).map_err(|e| e.to_string())?;
        records(&mut reader, plan, &mut writer)?;
        return writer.finish().map_err(|e| e.to_string());
    }
    let plan_of_file = match &container_layout {
        ContainerLayout::File(file) if recording.events.len() == file.ids.len() => {
            FilePlan::exact(file)
        }
        _ => FilePlan::standard(),
    };
    let out = Cursor::new(Vec::new());
    let mut writer =
        FileWriter::begin(out, plan_of_file, &recording, &source).map_err(|e| e.to_string())?;
    records(&mut reader, plan, &mut writer)?;
    Ok(writer
        .finish(&recording)
        .map_err(|e| e.to_string())?
        .into_inner())
}

/// Writes the records with their changes.
fn records(
    reader: &mut RecordingReader<impl std::io::Read>,
    plan: &Plan,
    writer: &mut dyn RecordSink,
) -> Result<(), String> {
    let mut count = 0_usize;
    while let Some(item) = reader.next().map_err(|e| e.to_string())? {
        let StreamItem::Record(raw) = item else {
            writer
                .item(&item.map(|record| record.raw()))
                .map_err(|e| e.to_string())?;
            continue;
        };
        // Recordings contain a few hundred records.
        let mine = plan
            .records
            .iter()
            .filter(|(at, _)| usize::from(*at) % 256 == count % 256)
            .map(|(_, change)| change);
        let (mut bytes, mut times) = (raw.bytes.to_vec(), 1);
        for change in mine {
            match change {
                Change::Field { field, value } => {
                    if let Ok(record) = raw.decode() {
                        bytes = with_field(
                            &record,
                            bytes,
                            RecordHeader::SIZE,
                            *field,
                            value,
                            raw.endian,
                        );
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
        count += 1;
        for _ in 0..times {
            // The changed size no longer matches. The sink writes the bytes as they are.
            let record = RawRecord {
                bytes: &bytes,
                ..*raw
            };
            writer.record(&record).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
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
    /// Offset and size of every number.
    struct Places(usize, Vec<(usize, usize)>);
    impl Visitor for Places {
        fn begin(&mut self, _: &'static str) {}
        fn begin_list(&mut self, _: &'static str, _: usize) {}
        fn end(&mut self) {}
        fn leaf(&mut self, _: &'static str, size: usize, _: Leaf<'_>) {
            if size > 0 {
                self.1.push((self.0, size.min(8)));
            }
            self.0 += size;
        }
    }
    let mut places = Places(start, Vec::new());
    value.describe("", Style::Plain, &mut places);
    let Some(&(at, size)) = places.1.get(usize::from(field) % places.1.len().max(1)) else {
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
    word = number.of(u64::from_le_bytes(word)).to_le_bytes();
    if !little {
        word[..size].reverse();
    }
    room.copy_from_slice(&word[..size]);
    bytes
}
