//! Two recordings become one: attributes, feature sections and records of the second in the first,
//! metadata in another order or present twice, and feature tables whose entries are exchanged.

use std::sync::{Arc, OnceLock};

use arbitrary::{Arbitrary, Unstructured};
use perfdata_core::container_layout::{ContainerLayout, Part};
use perfdata_core::feature::FeatureId;
use perfdata_core::read::{RecordingReader, StreamItem};
use perfdata_core::record::{RawRecord, RecordHeader};
use perfdata_core::{Endian, Recording};
use perfdata_write::RecordSink;

use super::{fields, recordings};

/// How a feature section of the second recording gets into the first.
#[derive(Debug, Arbitrary)]
enum Taken {
    /// Under its own ID.
    Same,
    /// Under another ID.
    Under(u8),
    /// After the section of the same ID.
    After,
}

/// A change of metadata where they are.
#[derive(Debug, Arbitrary)]
enum Order {
    /// Two records of metadata, or entries of the table of feature sections, are exchanged.
    Exchanged(u8, u8),
    /// One is written over another, or is present twice.
    Twice(u8, u8),
    /// The size of one becomes that of another; offsets remain.
    Size(u8, u8),
    /// A bit of the set of features is another one.
    Bit(u8),
}

/// What is spliced. Indexes wrap around.
#[derive(Debug, Arbitrary)]
struct Plan {
    first: u8,
    second: u8,
    events: Vec<u8>,
    features: Vec<(u8, Taken)>,
    /// After which record of the first, from which record of the second, and how many.
    records: Vec<(u8, u16, u8)>,
    order: Vec<Order>,
    as_pipe: bool,
    conversion: u8,
}

/// Offset of the set of features in the header of a file in bytes.
const FEATURES: usize = 72;

/// Size of the header of a pipe in bytes.
const PIPE_HEADER: usize = 16;

/// Number of records in which metadata are exchanged.
const METADATA: usize = 64;

/// Splices two recordings according to `data`.
pub fn splice(data: &[u8]) {
    static ALL: OnceLock<Vec<Arc<Vec<u8>>>> = OnceLock::new();
    let all = ALL.get_or_init(|| recordings().into_iter().map(Arc::new).collect());
    let Ok(plan) = Plan::arbitrary_take_rest(Unstructured::new(data)) else {
        return;
    };
    let pick = |at: u8| all.get(usize::from(at) % all.len().max(1)).cloned();
    let (Some(first), Some(second)) = (pick(plan.first), pick(plan.second)) else {
        return;
    };
    let Ok(mut bytes) = spliced(first, second, &plan) else {
        return;
    };
    reorder(&mut bytes, &plan.order);
    fields::check(&mut bytes, plan.conversion);
}

/// Returns the first recording with parts of the second; an error if it cannot be written.
fn spliced(source: Arc<Vec<u8>>, second: Arc<Vec<u8>>, plan: &Plan) -> Result<Vec<u8>, String> {
    let mut reader = RecordingReader::open(source.clone()).map_err(|e| e.to_string())?;
    let mut recording = reader.recording().clone();
    let layout = reader.container_layout().clone();
    let (other, records) = read(second)?;
    for at in &plan.events {
        let number = usize::from(*at) % other.events.len().max(1);
        if let Some(event) = other.events.get(number) {
            recording.events.push(event.clone());
        }
    }
    for (at, taken) in &plan.features {
        let number = usize::from(*at) % other.features.len().max(1);
        let Some((&id, bytes)) = other.features.iter().nth(number) else {
            break;
        };
        match taken {
            Taken::Same => recording.features.insert(id, bytes.clone()),
            Taken::Under(id) => {
                let id = FeatureId(u32::from(*id));
                recording.features.insert(id, bytes.clone())
            }
            Taken::After => {
                let mut both = recording.features.get(&id).cloned().unwrap_or_default();
                both.extend_from_slice(bytes);
                recording.features.insert(id, both)
            }
        };
    }
    fields::write(&recording, &layout, plan.as_pipe, &source, |writer| {
        let mut count = 0_u8;
        while let Some(item) = reader.next().map_err(|e| e.to_string())? {
            let is_record = matches!(item, StreamItem::Record(_));
            let item = item.map(|record| record.raw());
            writer.item(&item).map_err(|e| e.to_string())?;
            if is_record {
                insert(&records, other.endian, plan, count, writer)?;
                count = count.wrapping_add(1);
            }
        }
        Ok(())
    })
}

/// Writes the records of the second recording that follow the record `count` of the first.
fn insert(
    records: &[Vec<u8>],
    endian: Endian,
    plan: &Plan,
    count: u8,
    writer: &mut dyn RecordSink,
) -> Result<(), String> {
    for (_, from, len) in plan.records.iter().filter(|(after, ..)| *after == count) {
        let from = usize::from(*from) % records.len().max(1);
        for bytes in records.iter().skip(from).take(usize::from(*len) % 16) {
            let Ok(raw) = RawRecord::first(bytes, endian, 0) else {
                continue;
            };
            writer.record(&raw).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Returns the model of a recording and its records.
fn read(source: Arc<Vec<u8>>) -> Result<(Recording, Vec<Vec<u8>>), String> {
    let mut reader = RecordingReader::open(source).map_err(|e| e.to_string())?;
    let mut records = Vec::new();
    while let Some(item) = reader.next().map_err(|e| e.to_string())? {
        if let StreamItem::Record(record) = item {
            records.push(record.raw().bytes.to_vec());
        }
    }
    Ok((reader.recording().clone(), records))
}

/// Changes the order of metadata.
fn reorder(bytes: &mut Vec<u8>, order: &[Order]) {
    if order.is_empty() {
        return;
    }
    let Ok(reader) = RecordingReader::open(Arc::new(bytes.clone())) else {
        return;
    };
    let endian = reader.recording().endian;
    match reader.container_layout() {
        ContainerLayout::File(file) => {
            let Some(table) = file.place(Part::FeatureTable) else {
                return;
            };
            let (at, len) = (table.offset as usize, table.size as usize);
            reorder_table(bytes, at, len, order);
        }
        ContainerLayout::Pipe(_) => *bytes = reordered_pipe(bytes, endian, order),
    }
}

/// Changes the entries in the table of feature sections, which has `len` bytes at `at`.
fn reorder_table(bytes: &mut [u8], at: usize, len: usize, order: &[Order]) {
    let count = len / 16;
    let place = |entry: u8| at + usize::from(entry) % count.max(1) * 16;
    for change in order {
        let (from, to, part) = match *change {
            Order::Exchanged(one, other) => {
                for byte in 0..16 {
                    let (one, other) = (place(one) + byte, place(other) + byte);
                    if one.max(other) < bytes.len() {
                        bytes.swap(one, other);
                    }
                }
                continue;
            }
            Order::Twice(from, to) => (place(from), place(to), 16),
            Order::Size(from, to) => (place(from) + 8, place(to) + 8, 8),
            Order::Bit(bit) => {
                if let Some(byte) = bytes.get_mut(FEATURES + usize::from(bit) / 8) {
                    *byte ^= 1 << (bit % 8);
                }
                continue;
            }
        };
        if from.max(to) + part <= bytes.len() {
            bytes.copy_within(from..from + part, to);
        }
    }
}

/// Returns a pipe with other metadata at its start.
fn reordered_pipe(bytes: &[u8], endian: Endian, order: &[Order]) -> Vec<u8> {
    let (mut head, mut rest) = bytes.split_at(PIPE_HEADER.min(bytes.len()));
    let mut records = Vec::new();
    while records.len() < METADATA
        && let Some(header) = RecordHeader::parse(rest, endian)
        && let Some((record, next)) = rest.split_at_checked(usize::from(header.size).max(8))
    {
        records.push(record.to_vec());
        rest = next;
    }
    let count = records.len().max(1);
    for change in order {
        match *change {
            _ if records.is_empty() => {}
            Order::Exchanged(one, other) => {
                records.swap(usize::from(one) % count, usize::from(other) % count);
            }
            Order::Twice(from, to) | Order::Size(from, to) => {
                let again = records[usize::from(from) % count].clone();
                records.insert(usize::from(to) % count, again);
            }
            Order::Bit(bit) => records.rotate_left(usize::from(bit) % count),
        }
    }
    let mut all = Vec::with_capacity(bytes.len());
    all.append(&mut std::mem::take(&mut head).to_vec());
    records
        .iter()
        .for_each(|record| all.extend_from_slice(record));
    all.extend_from_slice(rest);
    all
}
