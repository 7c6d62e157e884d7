//! The pass over a recording that fills all tables.

mod events;
mod features;
mod records;
mod shared;
mod tracepoints;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::RecordSource;
use perfdata_export::{Report, ResolvedSamples, Symbolizer, Tables};
use perfdata_session::{DsoKind, Samples, Session};

use crate::date::{DateSource, RecordedAt};
use crate::error::Result;
use crate::machine::{RecordingFacts, exporter, symbols_text, text};
use crate::options::Options;
use crate::rows::{Cell, Rows};
use crate::samples::SampleBuilder;
use crate::schema::{Kind, Table};
use events::EventCounts;
use records::RecordTables;
pub use shared::{FieldColumns, SharedColumns};
use tracepoints::Tracepoints;

/// Number of rows of a side table after which they become a batch.
const MOST_ROWS: usize = 1 << 14;

/// Size in bytes of all rows of side tables after which the largest table becomes a batch.
const MOST_HELD: usize = 16 << 20;

/// Receives the tables of a recording.
pub trait TableSink {
    /// Receives rows of a table. The batches of a table have the same schema, and those of
    /// `samples` are in the order of time.
    ///
    /// # Errors
    /// The output cannot be written.
    fn write(&mut self, table: &Table, batch: RecordBatch) -> Result<()>;
}

/// What [`export_tables`] found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Number of rows in the table `samples`.
    pub rows: u64,
    /// The numbers of samples and frames, and the objects without names.
    pub report: Report,
    /// The metadata for files and streams, as [`metadata`](crate::metadata) returns it.
    pub metadata: Vec<(String, String)>,
    /// The host name, if the recording contains it.
    pub host: Option<String>,
    /// When the recording was made: the time of the first sample if the recording contains
    /// CLOCK_DATA, without samples that of CLOCK_DATA, and otherwise that of
    /// [`Options::with_recorded_at`].
    pub recorded: Option<RecordedAt>,
}

/// The side tables.
#[derive(Debug)]
pub(crate) struct SideTables {
    tables: BTreeMap<Table, Rows>,
    held: usize,
    recording: Option<Arc<str>>,
    host: Option<String>,
}

impl SideTables {
    /// Appends a row to a table: the values after the first two columns.
    pub fn push(&mut self, table: &Table, cells: &[Cell<'_>]) {
        if !self.tables.contains_key(table) {
            self.tables
                .insert(table.clone(), Rows::new(table.columns()));
        }
        self.push_to(table, cells);
    }

    /// Adds a table with columns of its own.
    pub fn add(&mut self, table: Table, rows: Rows) {
        self.tables.entry(table).or_insert(rows);
    }

    /// Appends a row to a table that exists.
    pub fn push_to(&mut self, table: &Table, cells: &[Cell<'_>]) {
        if let Some(rows) = self.tables.get_mut(table) {
            let before = rows.held();
            rows.push(cells);
            self.held = self.held.saturating_add(rows.held()).saturating_sub(before);
        }
    }

    /// Passes the rows of a table to `sink`.
    fn flush_table(&mut self, table: &Table, sink: &mut dyn TableSink) -> Result<()> {
        if let Some(rows) = self.tables.get_mut(table) {
            self.held = self.held.saturating_sub(rows.held());
            let batch = rows.finish(self.recording.as_deref(), self.host.as_deref())?;
            sink.write(table, batch)?;
        }
        Ok(())
    }

    /// Passes the rows of tables with many rows to `sink`.
    fn flush_full(&mut self, sink: &mut dyn TableSink) -> Result<()> {
        loop {
            let largest = self.tables.iter().max_by_key(|(_, rows)| rows.held());
            let Some((table, rows)) = largest else {
                return Ok(());
            };
            if self.held < MOST_HELD && rows.len() < MOST_ROWS {
                return Ok(());
            }
            let table = table.clone();
            self.flush_table(&table, sink)?;
        }
    }
}

/// Passes all tables of a recording to `sink`. Without `symbols`, no functions are searched.
///
/// Besides the tables, which pass in batches, memory is needed for the names and the side-band data
/// of the recording, as for [`perfdata_export::export`].
///
/// # Errors
/// The recording cannot be read, or exceeds its limits; and the errors of the sink.
pub fn export_tables<S: RecordSource>(
    samples: Samples<S>,
    symbols: Option<Symbolizer>,
    options: &Options,
    sink: &mut dyn TableSink,
) -> Result<Summary> {
    let has_symbols = symbols.is_some();
    let machine = RecordingFacts::of(samples.recording());
    let mut builder = SampleBuilder::new(options, machine.host.clone(), machine.clock, has_symbols);
    let mut side = SideTables {
        tables: BTreeMap::new(),
        held: 0,
        recording: options.recording.clone(),
        host: machine.host,
    };
    let mut clock = machine.clock;
    let mut records = RecordTables::default();
    let mut tracepoints = Tracepoints::new(options.shared.clone());
    let mut counts = EventCounts::default();
    let mut times: Option<(u64, u64)> = None;
    let mut resolved = ResolvedSamples::new(samples, symbols);
    let mut failed = None;
    let mut has_begun = false;
    while let Some(sample) = resolved.next_with(|record| {
        if failed.is_none() {
            failed = records.see(&record, clock, &mut side).err();
        }
    })? {
        if let Some(error) = failed {
            return Err(error);
        }
        if !has_begun {
            // The metadata of a stream arrive before its first sample.
            let machine = RecordingFacts::of(sample.sample.recording());
            clock = machine.clock;
            side.host.clone_from(&machine.host);
            builder.describe(machine.host, clock);
            has_begun = true;
        }
        if let Some(time) = sample.sample.time() {
            let (first, last) = times.unwrap_or((time, time));
            times = Some((first.min(time), last.max(time)));
        }
        tracepoints.see(&sample.sample, clock, &mut side)?;
        builder.push(&sample, |event, weight| counts.see(event, weight))?;
        if builder.is_full() {
            sink.write(&Table::Samples, builder.finish()?)?;
        }
        side.flush_full(sink)?;
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let recording = resolved.samples().recording();
    let machine = RecordingFacts::of(recording);
    side.host.clone_from(&machine.host);
    if !builder.is_empty() {
        sink.write(&Table::Samples, builder.finish()?)?;
    }
    let layout = resolved.samples().source().container_layout();
    events::push(resolved.samples(), &counts, &mut side);
    features::push(recording, &mut side, sink)?;
    push_modules(resolved.tables(), &mut side);
    push_threads(resolved.samples().session(), &mut side);
    let metadata = machine.metadata(options.recording.as_deref(), has_symbols);
    let by_clock = machine.clock.and_then(|clock| {
        let (time, source) = match times {
            Some((first, _)) => (first, DateSource::Clock),
            None => (clock.clock, DateSource::Header),
        };
        let micros = clock.micros(time)?;
        Some(RecordedAt { micros, source })
    });
    let recorded = by_clock.or(options.recorded);
    let facts = Facts {
        container: container_name(layout),
        file: options.file.as_deref(),
        path: options.path.as_deref(),
        is_little: recording.endian == perfdata_core::Endian::Little,
        times,
        lost_records: records.lost_records,
        lost_samples: records.lost_samples,
        samples: builder.rows(),
        has_symbols,
        recorded,
    };
    let host = machine.host.clone();
    let report = resolved.finish();
    push_recording(&machine, &facts, &report, options, &mut side)?;
    // Each table has a batch, if only an empty one: the schema is known, then.
    let side_tables = Table::FIXED
        .iter()
        .filter(|table| **table != Table::Samples);
    for table in side_tables {
        let empty = || Rows::new(table.columns());
        side.tables.entry(table.clone()).or_insert_with(empty);
    }
    let all: Vec<Table> = side.tables.keys().cloned().collect();
    for table in &all {
        side.flush_table(table, sink)?;
    }
    sink.write(&Table::Samples, builder.finish()?)?;
    Ok(Summary {
        rows: builder.rows(),
        report,
        metadata,
        host,
        recorded,
    })
}

/// What the table `recordings` contains besides the features.
struct Facts<'a> {
    container: &'static str,
    file: Option<&'a str>,
    path: Option<&'a str>,
    is_little: bool,
    times: Option<(u64, u64)>,
    lost_records: u64,
    lost_samples: u64,
    samples: u64,
    has_symbols: bool,
    recorded: Option<RecordedAt>,
}

fn container_name(layout: &ContainerLayout) -> &'static str {
    match layout.container() {
        ContainerKind::File => "file",
        ContainerKind::Pipe => "pipe",
    }
}

/// Adds the row of the recording.
fn push_recording(
    machine: &RecordingFacts,
    facts: &Facts<'_>,
    report: &Report,
    options: &Options,
    side: &mut SideTables,
) -> Result<()> {
    let table = Table::Recordings;
    let labels = options.labels.iter();
    let wanted: Vec<_> = labels.map(|(key, _)| (key.clone(), Kind::Text)).collect();
    let (all, numbers) = shared::with_wanted(options.shared.as_deref(), &table, &wanted)?;
    let columns = table.columns().iter();
    let columns = columns.map(|column| (column.name, column.kind));
    let more = all.iter().map(|(name, kind)| (name.as_str(), *kind));
    side.add(table.clone(), Rows::of(columns.chain(more)));
    let of = |text: &'_ Option<String>| text.clone();
    let owned = [
        of(&machine.osrelease),
        of(&machine.arch),
        of(&machine.version),
        of(&machine.cpudesc),
        of(&machine.cpuid),
    ];
    let [osrelease, arch, version, cpudesc, cpuid] = owned.each_ref().map(Option::as_deref);
    let cmdline = machine.cmdline.as_deref();
    let clock_wall = machine.clock.and_then(|clock| clock.micros(clock.clock));
    let exporter = exporter();
    let labels = numbers.iter().map(|number| {
        let label = number.and_then(|number| options.labels.get(number));
        label.map_or(Cell::Null, |(_, value)| Cell::Text(value))
    });
    let cells = [
        facts.file.into(),
        facts.path.into(),
        Cell::Text(facts.container),
        Cell::Text(if facts.is_little { "little" } else { "big" }),
        osrelease.into(),
        arch.into(),
        version.into(),
        cpudesc.into(),
        cpuid.into(),
        machine.cpus_online.map(u64::from).into(),
        machine.cpus_available.map(u64::from).into(),
        machine.total_mem.into(),
        cmdline.map_or(Cell::Null, Cell::Texts),
        machine.clock_name.as_deref().into(),
        machine.clock_resolution.into(),
        machine.clock.map(|clock| clock.clock).into(),
        clock_wall.into(),
        facts.times.map(|(first, _)| first).into(),
        facts.times.map(|(_, last)| last).into(),
        facts.samples.into(),
        report.frames.into(),
        report.unnamed.into(),
        facts.lost_records.into(),
        facts.lost_samples.into(),
        Cell::Text(symbols_text(facts.has_symbols)),
        Cell::Text(&exporter),
        facts.recorded.map(|recorded| recorded.micros).into(),
        facts.recorded.map(|recorded| recorded.source.name()).into(),
    ];
    let cells: Vec<Cell<'_>> = cells.into_iter().chain(labels).collect();
    side.push_to(&table, &cells);
    Ok(())
}

/// Returns the name of a kind of objects.
fn kind_name(kind: DsoKind) -> &'static str {
    match kind {
        DsoKind::Kernel => "kernel",
        DsoKind::Module => "module",
        DsoKind::KernelSymbol => "kernel_symbol",
        DsoKind::Vdso => "vdso",
        DsoKind::Vdso32 => "vdso32",
        DsoKind::File => "file",
        DsoKind::Anonymous => "anonymous",
        _ => "unknown",
    }
}

/// Adds the objects that samples hit.
fn push_modules(tables: &Tables, side: &mut SideTables) {
    for module in tables.modules() {
        let build_id = module.build_id.map(|id| id.to_string());
        side.push(
            &Table::Modules,
            &[
                Cell::Name(&module.name),
                build_id.as_deref().into(),
                Cell::Text(kind_name(module.kind)),
            ],
        );
    }
}

/// Adds the threads. The idle threads, for which there are no records, are the first one.
fn push_threads(session: &Session, side: &mut SideTables) {
    for thread in session.threads() {
        let parent = thread.parent.and_then(|id| session.thread(id));
        let guest = thread.machine.is_guest().then_some(thread.machine.0);
        side.push(
            &Table::Threads,
            &[
                thread.pid.into(),
                thread.tid.into(),
                parent.map(|parent| parent.pid).into(),
                parent.map(|parent| parent.tid).into(),
                Cell::Name(session.comm(thread.comm)),
                thread.start.into(),
                thread.end.into(),
                guest.map(i64::from).into(),
            ],
        );
    }
}

/// Returns the text of the names of flags.
fn names_of(recording: &Recording, event: usize) -> Vec<String> {
    let Some(event) = recording.events.get(event) else {
        return Vec::new();
    };
    let flags = perfdata_core::describe::set_fields(
        event.attr.flags.0,
        perfdata_core::attr::AttrFlags::FIELDS,
    );
    flags
        .filter(|(name, _)| *name != "precise_ip")
        .map(|(name, _)| text(name.as_bytes()))
        .collect()
}
