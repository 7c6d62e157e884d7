//! The rows of the table `samples`.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use perfdata_core::attr::SampleType;
use perfdata_core::record::{self, Body, CpuMode};
use perfdata_export::ResolvedSample;

use crate::clock::WallClock;
use crate::dictionary::{NameColumn, NameId, NameTable, NamesByIndex, constant};
use crate::error::Result;
use crate::frames::FrameColumns;
use crate::numbers::Numbers;
use crate::options::{EventFilter, Options};
use crate::schema::{ColumnGroup, OfSample, SampleColumn, sample_schema};

/// Maximum number of frames in a batch: with all columns, they need about 1 MB.
const MOST_FRAMES: usize = 1 << 15;

/// The parts of samples that must be decoded.
const DECODED: u64 = SampleType::WEIGHT.0
    | SampleType::WEIGHT_STRUCT.0
    | SampleType::DATA_SRC.0
    | SampleType::PHYS_ADDR.0
    | SampleType::CGROUP.0;

/// Collects rows, and returns them as record batches.
#[derive(Debug)]
pub(crate) struct SampleBuilder {
    schema: SchemaRef,
    columns: Vec<SampleColumn>,
    batch_rows: usize,
    recording: Option<Arc<str>>,
    host: Option<String>,
    clock: Option<WallClock>,
    /// Which events of groups are selected.
    selected: Option<EventFilter>,
    rows: usize,
    /// Number of rows in all batches.
    all_rows: u64,
    names: NameTable,
    modes: [Option<NameId>; 8],
    events: Vec<(Box<[u8]>, NameId)>,
    comms: NamesByIndex,
    /// Whether a column needs samples to be decoded.
    needs_decoded: bool,
    time: Numbers<Int64Type>,
    wall: Numbers<TimestampMicrosecondType>,
    event: NameColumn,
    period: Numbers<Int64Type>,
    pid: Numbers<Int32Type>,
    tid: Numbers<Int32Type>,
    cpu: Numbers<Int32Type>,
    comm: NameColumn,
    mode: NameColumn,
    ip: Numbers<Int64Type>,
    addr: Numbers<Int64Type>,
    weight: Numbers<Int64Type>,
    data_src: Numbers<Int64Type>,
    phys_addr: Numbers<Int64Type>,
    cgroup: NameColumn,
    frames: FrameColumns,
}

impl SampleBuilder {
    /// Returns an empty builder for the samples of a recording.
    pub fn new(
        options: &Options,
        host: Option<String>,
        clock: Option<WallClock>,
        has_symbols: bool,
    ) -> Self {
        let columns = options.columns().to_vec();
        let has = |column| columns.contains(&column);
        let decoded = [
            SampleColumn::Weight,
            SampleColumn::DataSrc,
            SampleColumn::PhysAddr,
            SampleColumn::Cgroup,
        ];
        SampleBuilder {
            needs_decoded: decoded.into_iter().any(has),
            time: Numbers::new(has(SampleColumn::Time)),
            wall: Numbers::new(has(SampleColumn::Wall)),
            event: NameColumn::new(has(SampleColumn::Event)),
            period: Numbers::new(has(SampleColumn::Period)),
            pid: Numbers::new(has(SampleColumn::Pid)),
            tid: Numbers::new(has(SampleColumn::Tid)),
            cpu: Numbers::new(has(SampleColumn::Cpu)),
            comm: NameColumn::new(has(SampleColumn::Comm)),
            mode: NameColumn::new(has(SampleColumn::Mode)),
            ip: Numbers::new(has(SampleColumn::Ip)),
            addr: Numbers::new(has(SampleColumn::Addr)),
            weight: Numbers::new(has(SampleColumn::Weight)),
            data_src: Numbers::new(has(SampleColumn::DataSrc)),
            phys_addr: Numbers::new(has(SampleColumn::PhysAddr)),
            cgroup: NameColumn::new(has(SampleColumn::Cgroup)),
            frames: FrameColumns::new(options, has_symbols),
            schema: sample_schema(columns.iter().copied()),
            columns,
            batch_rows: options.batch_rows,
            recording: options.recording.clone(),
            host,
            clock,
            selected: options.events.clone(),
            rows: 0,
            all_rows: 0,
            names: NameTable::default(),
            modes: [None; 8],
            events: Vec::new(),
            comms: NamesByIndex::default(),
        }
    }

    /// Returns the schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Sets what was not known before the first record of a stream.
    pub fn describe(&mut self, host: Option<String>, clock: Option<WallClock>) {
        (self.host, self.clock) = (host, clock);
    }

    /// Returns whether a column needs the frames.
    pub fn needs_frames(&self) -> bool {
        self.frames.is_wanted()
    }

    /// Returns whether there is a whole batch.
    pub fn is_full(&self) -> bool {
        self.rows >= self.batch_rows || self.frames.len() >= MOST_FRAMES
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the number of all rows so far.
    pub fn rows(&self) -> u64 {
        self.all_rows
    }

    /// Appends the rows of a sample: one for each event that it counts. Passes the index and the
    /// weight of each to `counted`.
    ///
    /// # Errors
    /// The sample is corrupt.
    pub fn push(
        &mut self,
        resolved: &ResolvedSample<'_>,
        mut counted: impl FnMut(usize, u64),
    ) -> Result<()> {
        for (event, weight) in resolved.counted() {
            let sample = &resolved.sample;
            let name = match event == sample.event() {
                true => Cow::Borrowed(sample.event_name()),
                false => sample.session().name_of_event(sample.recording(), event),
            };
            let selects = |filter: &EventFilter| filter.selects(&name);
            if resolved.counters.is_none() || self.selected.as_ref().is_none_or(selects) {
                counted(event, weight);
                self.push_row(resolved, (event, &name), weight)?;
            }
        }
        Ok(())
    }

    /// Appends a row for an event with this weight.
    fn push_row(
        &mut self,
        resolved: &ResolvedSample<'_>,
        (event, name): (usize, &[u8]),
        weight: u64,
    ) -> Result<()> {
        let sample = &resolved.sample;
        self.all_rows = self.all_rows.saturating_add(1);
        let view = sample.sample_view();
        let time = sample.time();
        self.rows = self.rows.saturating_add(1);
        self.time.push(time.map(u64::cast_signed));
        let wall = time.and_then(|time| self.clock?.micros(time));
        self.wall.push(wall);
        let event = self.event_name(event, name);
        self.event.push(Some(event));
        self.period.push(Some(weight.cast_signed()));
        let tid = sample.tid();
        self.pid.push(tid.map(|tid| tid.pid.cast_signed()));
        self.tid.push(tid.map(|tid| tid.tid.cast_signed()));
        self.cpu.push(sample.cpu().map(u32::cast_signed));
        let make = || self.names.know(sample.comm());
        let comm = sample.comm_id().index();
        self.comms.push(&mut self.comm, comm, make);
        let mode = self.mode_name(sample.mode());
        self.mode.push(Some(mode));
        self.ip.push(view.ip().map(u64::cast_signed));
        self.addr.push(view.addr().map(u64::cast_signed));
        self.push_decoded(resolved)?;
        self.frames.push(resolved, &mut self.names);
        Ok(())
    }

    /// Appends the parts that are behind parts of variable size.
    fn push_decoded(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        if !self.needs_decoded {
            return Ok(());
        }
        let sample = &resolved.sample;
        let has = |attr: &perfdata_core::attr::Attr| attr.sample_type.0 & DECODED != 0;
        let mut decoded: Option<record::Sample> = None;
        if sample.attr().is_some_and(has)
            && let Body::Sample(body) = sample.record().decode()?.body
        {
            decoded = Some(body);
        }
        let weights = decoded.as_ref().and_then(|sample| {
            let low = || sample.weight_struct.map(|weights| weights.var1_dw());
            sample.weight.or_else(low)
        });
        let data_src = decoded.as_ref().and_then(|sample| sample.data_src);
        let phys_addr = decoded.as_ref().and_then(|sample| sample.phys_addr);
        let cgroup = decoded.as_ref().and_then(|sample| sample.cgroup);
        self.weight.push(weights.map(u64::cast_signed));
        self.data_src
            .push(data_src.map(|source| source.0.cast_signed()));
        self.phys_addr.push(phys_addr.map(u64::cast_signed));
        let path = cgroup.and_then(|id| sample.session().cgroup(id));
        let path = path.map(|path| self.names.intern(path));
        self.cgroup.push(path);
        Ok(())
    }

    /// Returns the name of an event, which later records may change.
    fn event_name(&mut self, event: usize, name: &[u8]) -> NameId {
        match self.events.get(event) {
            Some((known, id)) if **known == *name => *id,
            _ => {
                let id = self.names.intern(name);
                if self.events.len() <= event {
                    let empty = || (Box::default(), id);
                    self.events.resize_with(event.saturating_add(1), empty);
                }
                if let Some(entry) = self.events.get_mut(event) {
                    *entry = (name.into(), id);
                }
                id
            }
        }
    }

    fn mode_name(&mut self, mode: CpuMode) -> NameId {
        let names = &mut self.names;
        let index = usize::from(mode.0);
        match self.modes.get_mut(index) {
            Some(known) => *known.get_or_insert_with(|| names.intern(mode_text(mode).as_bytes())),
            None => names.intern(mode_text(mode).as_bytes()),
        }
    }

    /// Returns all rows as a batch, and starts the next one.
    ///
    /// # Errors
    /// None are expected.
    pub fn finish(&mut self) -> Result<RecordBatch> {
        let rows = std::mem::take(&mut self.rows);
        let ends = self.frames.finish_ends();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for &column in &self.columns {
            let names = &self.names;
            let array = match column.group() {
                ColumnGroup::Sample(column) => match column {
                    OfSample::Recording => constant(self.recording.as_deref(), rows)?,
                    OfSample::Host => constant(self.host.as_deref(), rows)?,
                    OfSample::Time => self.time.finish_array()?,
                    OfSample::Wall => Arc::new(self.wall.finish()?.with_timezone("UTC")),
                    OfSample::Event => self.event.finish(names)?,
                    OfSample::Period => self.period.finish_array()?,
                    OfSample::Pid => self.pid.finish_array()?,
                    OfSample::Tid => self.tid.finish_array()?,
                    OfSample::Cpu => self.cpu.finish_array()?,
                    OfSample::Comm => self.comm.finish(names)?,
                    OfSample::Mode => self.mode.finish(names)?,
                    OfSample::Ip => self.ip.finish_array()?,
                    OfSample::Addr => self.addr.finish_array()?,
                    OfSample::Weight => self.weight.finish_array()?,
                    OfSample::DataSrc => self.data_src.finish_array()?,
                    OfSample::PhysAddr => self.phys_addr.finish_array()?,
                    OfSample::Cgroup => self.cgroup.finish(names)?,
                },
                ColumnGroup::Frames(of_frames) => {
                    let data_type = column.column().kind.data_type();
                    self.frames
                        .finish(of_frames, data_type, &ends, rows, names)?
                }
            };
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema(), arrays, &options)?;
        Ok(batch)
    }
}

/// Returns the name of a CPU mode.
pub(crate) fn mode_text(mode: CpuMode) -> &'static str {
    match mode {
        CpuMode::USER => "user",
        CpuMode::KERNEL => "kernel",
        CpuMode::HYPERVISOR => "hypervisor",
        CpuMode::GUEST_KERNEL => "guest_kernel",
        CpuMode::GUEST_USER => "guest_user",
        _ => "unknown",
    }
}
