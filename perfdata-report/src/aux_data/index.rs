//! The index of the AUX data, `index.json`. `docs/json.md` describes its content.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use perfdata_core::Recording;
use perfdata_core::describe::{Leaf, Style, Visitor};
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::record::{AuxFlags, Body, BuildId, RawRecord, Record, RecordType};
use perfdata_core::spool::{StoredRecord, Writer};

use super::arrange::{Offsets, Placed};
use super::piece::Origin;
use super::queue::{Queue, QueueKey};
use super::{Extraction, INDEX, Report};
use crate::show::endian_name;
use crate::show::overview::json_of_events;
use crate::show::record::Shown;
use perfdata_convert::count::number_of;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::interrupt;
use perfdata_convert::json::Json;
use perfdata_convert::support::os::private;
use perfdata_session::{BuildId as Id, EventNames, Machine, Mapped};

/// Returns whether the index contains records of this type.
pub fn is_wanted(kind: RecordType) -> bool {
    is_about_aux(kind)
        || is_mapping(kind)
        || matches!(kind, RecordType::HEADER_BUILD_ID | RecordType::EVENT_UPDATE)
}

fn is_about_aux(kind: RecordType) -> bool {
    matches!(
        kind,
        RecordType::AUX | RecordType::ITRACE_START | RecordType::AUX_OUTPUT_HW_ID
    )
}

fn is_mapping(kind: RecordType) -> bool {
    matches!(kind, RecordType::MMAP | RecordType::MMAP2)
}

/// Features that describe the machine of the trace.
const MACHINE: [FeatureId; 8] = [
    FeatureId::OSRELEASE,
    FeatureId::ARCH,
    FeatureId::NRCPUS,
    FeatureId::CPUDESC,
    FeatureId::CPUID,
    FeatureId::PMU_MAPPINGS,
    FeatureId::CLOCKID,
    FeatureId::CLOCK_DATA,
];

/// Flags of AUX records for lost or unreliable data.
const FAULTS: [(AuxFlags, &str); 3] = [
    (AuxFlags::TRUNCATED, "data was lost (TRUNCATED)"),
    (AuxFlags::PARTIAL, "there are gaps in the data (PARTIAL)"),
    (
        AuxFlags::COLLISION,
        "a sample collided with another (COLLISION)",
    ),
];

/// Calls `see` with all records in a temporary file.
fn each(sideband: &mut Writer, mut see: impl FnMut(&RawRecord<'_>) -> Result<()>) -> Result<()> {
    let failed = || Error::io("temporary file");
    let mut records = sideband.read::<StoredRecord>().map_err(failed())?;
    while let Some(stored) = records.next_entry().map_err(failed())? {
        see(&stored.record()?)?;
    }
    Ok(())
}

/// Arranges the queues and writes the index.
pub fn write(
    mut extraction: Extraction,
    recording: &Recording,
    offsets: Offsets,
    queues: Vec<(Queue, String)>,
) -> Result<Report> {
    let path = extraction.dir.join(INDEX);
    let mut index = Index::create(&path)?;
    let mut names = EventNames::default();
    each(&mut extraction.sideband, |record| {
        names.see(record);
        Ok(())
    })?;
    names.update(recording);
    index.head(&extraction, recording, &names);
    let buffers: Vec<QueueKey> = queues.iter().map(|(queue, _)| queue.key).collect();
    let mut report = Report {
        queues: queues.len(),
        ..Report::default()
    };
    index.json.list("queues");
    for (queue, name) in queues {
        report.bytes = report.bytes.saturating_add(index.queue(
            &extraction,
            offsets,
            queue,
            &name,
            &mut report.notes,
        )?);
    }
    index.json.close();

    let mut faults: BTreeMap<&str, u64> = BTreeMap::new();
    index.json.list("aux_records");
    let ids = std::mem::take(&mut extraction.ids);
    each(&mut extraction.sideband, |raw| {
        if !is_about_aux(raw.kind) {
            return Ok(());
        }
        let shown = Shown::new(raw, None, recording, &names);
        let record = shown.record();
        if let Some(Body::Aux(aux)) = record.map(|record| &record.body) {
            for (_, fault) in FAULTS.iter().filter(|(flag, _)| aux.flags.has(*flag)) {
                *faults.entry(fault).or_default() += 1;
            }
        }
        let buffer = record.and_then(|record| buffer_of(record, &ids, &buffers));
        index.json.on_line(|json| {
            json.object("");
            shown.json_fields(json);
            if let Some(buffer) = buffer {
                json.number("queue", buffer as u64);
            }
            json.close();
        });
        index.flush()
    })?;
    index.json.close();

    let mut build_ids = build_ids(recording);
    each(&mut extraction.sideband, |raw| {
        if raw.kind == RecordType::HEADER_BUILD_ID
            && let Ok(record) = Record::decode(raw, &recording.events.layout_of(raw))
            && let Body::HeaderBuildId(id) = &record.body
        {
            build_ids.extend(named(id, raw.misc));
        }
        Ok(())
    })?;
    index.json.list("mmaps");
    each(&mut extraction.sideband, |raw| {
        if is_mapping(raw.kind) {
            index.mapping(raw, &Shown::new(raw, None, recording, &names), &build_ids);
        }
        index.flush()
    })?;
    index.json.close();
    index.json.texts("damage", &extraction.damage);
    index.finish()?;
    let told = |(fault, count): (&str, u64)| format!("{fault}: {}", number_of(count, "AUX record"));
    report.notes.extend(faults.into_iter().map(told));
    report.notes.append(&mut extraction.damage);
    Ok(report)
}

/// Returns the queue of a record about AUX data, according to the ID of its event, or else its CPU
/// or thread.
fn buffer_of(record: &Record, ids: &HashMap<u64, QueueKey>, buffers: &[QueueKey]) -> Option<usize> {
    let sample_id = record.sample_id.as_ref()?;
    let only = |is_it: &dyn Fn(&QueueKey) -> bool| {
        let mut all = buffers
            .iter()
            .enumerate()
            .filter(|(_, key)| is_it(key))
            .map(|(at, _)| at);
        all.next().filter(|_| all.next().is_none())
    };
    let id = sample_id.identifier.or(sample_id.id);
    if let Some(key) = id.and_then(|id| ids.get(&id)) {
        return only(&|other| other == key).or_else(|| only(&|other| other.idx == key.idx));
    }
    let cpu = sample_id
        .cpu
        .as_ref()
        .map(|cpu| cpu.cpu)
        .filter(|&cpu| cpu != u32::MAX);
    let tid = sample_id
        .tid
        .as_ref()
        .map(|tid| tid.tid)
        .filter(|&tid| tid != u32::MAX);
    cpu.and_then(|cpu| only(&|other| other.cpu == cpu))
        .or_else(|| only(&|other| Some(other.tid) == tid))
}

/// Build IDs by machine and name of the file.
type BuildIds = HashMap<(Machine, Vec<u8>), Id>;

/// Returns the build IDs in the BUILD_ID section.
fn build_ids(recording: &Recording) -> BuildIds {
    match recording.feature(FeatureId::BUILD_ID) {
        Some(Ok(Section {
            value: Feature::BuildIds(ids),
            ..
        })) => ids
            .0
            .iter()
            .filter_map(|entry| named(&entry.build_id, entry.header.misc))
            .collect(),
        _ => BuildIds::new(),
    }
}

fn named(entry: &BuildId, misc: u16) -> Option<((Machine, Vec<u8>), Id)> {
    let machine = Machine::of_build_id(entry, misc);
    Some((
        (machine, entry.filename.text().to_vec()),
        Id::new(entry.id(misc))?,
    ))
}

/// The index while it is written.
struct Index {
    json: Json,
    out: BufWriter<File>,
}

impl Index {
    fn create(path: &Path) -> Result<Self> {
        let mut options = File::options();
        private(options.write(true).create_new(true));
        let file = interrupt::open(&options, path).map_err(Error::io(path))?;
        let mut json = Json::pretty();
        json.object("");
        Ok(Index {
            json,
            out: BufWriter::new(file),
        })
    }

    /// Writes the text so far.
    fn flush(&mut self) -> Result<()> {
        self.out
            .write_all(&self.json.out)
            .map_err(Error::io(INDEX))?;
        self.json.out.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.json.close();
        self.json.end_line();
        self.flush()?;
        self.out.flush().map_err(Error::io(INDEX))
    }

    /// Writes the fields about the whole recording.
    fn head(&mut self, extraction: &Extraction, recording: &Recording, names: &EventNames) {
        let json = &mut self.json;
        json.text("byte_order", endian_name(recording.endian).as_bytes());
        if let Some(info) = &extraction.info {
            json.value("auxtrace_info", info);
        }
        if let Some(conversion) = &extraction.time_conv {
            json.value("time_conv", conversion);
        }
        json_of_events(json, recording, names);
        json.object("features");
        for id in MACHINE {
            if let (Some(Ok(section)), Some(name)) = (recording.feature(id), id.name()) {
                json.value(name, &section.value);
            }
        }
        json.close();
    }

    /// Arranges a queue and lists its pieces. Returns the size of its file in bytes.
    fn queue(
        &mut self,
        extraction: &Extraction,
        offsets: Offsets,
        queue: Queue,
        name: &str,
        notes: &mut Vec<String>,
    ) -> Result<u64> {
        let QueueKey { idx, cpu, tid } = queue.key;
        self.json.object("");
        self.json.text("file", name.as_bytes());
        for (what, number) in [("idx", idx), ("cpu", cpu), ("tid", tid)] {
            self.json.number_or_none(what, number);
        }
        self.json.list("pieces");
        let mut odd = Odd::default();
        let size = queue.finish(&extraction.dir.join(name), offsets, |placed| {
            odd.see(placed);
            self.json.on_line(|json| json_of_piece(json, placed));
            self.flush()
        })?;
        self.json.close();
        self.json.number("size", size);
        self.json.close();
        notes.extend(odd.notes(name));
        Ok(size)
    }

    fn mapping(&mut self, raw: &RawRecord<'_>, shown: &Shown<'_>, build_ids: &BuildIds) {
        let mapped = match shown.record().map(|record| &record.body) {
            Some(Body::Mmap(map)) => Some(Mapped::of_mmap(map, raw.misc)),
            Some(Body::Mmap2(map)) => Some(Mapped::of_mmap2(map, raw.misc)),
            _ => None,
        };
        let id = mapped.and_then(|Mapped { dso, .. }| {
            let told = || build_ids.get(&(dso.machine, dso.name.to_vec())).copied();
            dso.build_id.or_else(told)
        });
        self.json.on_line(|json| {
            json.object("");
            shown.json_fields(json);
            if let Some(id) = id {
                json.text("build_id", id.to_string().as_bytes());
            }
            json.close();
        });
    }
}

fn json_of_piece(json: &mut Json, placed: &Placed) {
    let piece = &placed.piece;
    json.object("");
    json.number("at", piece.at);
    json.number("size", piece.size);
    json.number("record", piece.record);
    match piece.origin {
        Origin::Buffer { offset, reference } => {
            for (name, word) in [("offset", offset), ("reference", reference)] {
                json.leaf(name, size_of_val(&word), Leaf::Uint(word, Style::Hex));
            }
        }
        Origin::Sample {
            time,
            id,
            task,
            cpu,
        } => {
            for (name, number) in [("time", time), ("id", id)] {
                number
                    .into_iter()
                    .for_each(|number| json.number(name, number));
            }
            let numbers = [
                ("pid", task.map(|task| task.0)),
                ("tid", task.map(|task| task.1)),
                ("cpu", cpu),
            ];
            for (name, number) in numbers {
                number
                    .into_iter()
                    .for_each(|number| json.number_or_none(name, number));
            }
        }
    }
    for (name, bytes) in [
        ("gap", placed.gap),
        ("overlap", placed.overlap),
        ("padding", placed.padding),
    ] {
        if bytes > 0 {
            json.number(name, bytes);
        }
    }
    if placed.restart {
        json.boolean("restart", true);
    }
    json.close();
}

/// Irregularities among the pieces of a queue.
#[derive(Debug, Default)]
struct Odd {
    gaps: (u64, u64),
    overlaps: (u64, u64),
    restarts: u64,
}

impl Odd {
    fn see(&mut self, placed: &Placed) {
        for (sum, bytes) in [
            (&mut self.gaps, placed.gap),
            (&mut self.overlaps, placed.overlap),
        ] {
            *sum = (sum.0 + u64::from(bytes > 0), sum.1.saturating_add(bytes));
        }
        self.restarts += u64::from(placed.restart);
    }

    fn notes(&self, name: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if let (gaps @ 1.., bytes) = self.gaps {
            notes.push(format!(
                "{name}: {} missing in {} between pieces",
                number_of(bytes, "byte"),
                number_of(gaps, "gap")
            ));
        }
        if let (pieces @ 1.., bytes) = self.overlaps {
            notes.push(format!(
                "{name}: dropped {} repeated in {}",
                number_of(bytes, "byte"),
                number_of(pieces, "piece")
            ));
        }
        if self.restarts > 0 {
            let what = match self.restarts {
                1 => {
                    "1 piece does not continue the previous piece: decode it separately".to_owned()
                }
                pieces => format!(
                    "{pieces} pieces do not continue the previous piece: decode them separately"
                ),
            };
            notes.push(format!("{name}: {what}"));
        }
        notes
    }
}
