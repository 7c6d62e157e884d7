//! The rows of the table `samples`.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBufferBuilder, Int32Builder, Int64Builder, TimestampMicrosecondBuilder,
};
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, RecordBatchOptions,
    new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, SchemaRef};
use perfdata_core::attr::SampleType;
use perfdata_core::record::{self, Body, CpuMode};
use perfdata_export::{ResolvedFrame, ResolvedSample};
use perfdata_session::Session;
use twox_hash::XxHash3_64;

use crate::clock::WallClock;
use crate::dictionary::{NameColumn, NameId, Names, NamesByIndex, constant};
use crate::error::Result;
use crate::options::Options;
use crate::schema::{ELEMENT, SampleColumn, sample_schema};

/// Maximum number of frames in a batch: with all columns, they need about 4 MB.
const MOST_FRAMES: usize = 1 << 17;

/// The parts of samples that must be decoded.
const DECODED: u64 = SampleType::WEIGHT.0
    | SampleType::WEIGHT_STRUCT.0
    | SampleType::DATA_SRC.0
    | SampleType::PHYS_ADDR.0
    | SampleType::CGROUP.0;

/// What is known about a mapping.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// What to add to an address for the offset in the object.
    bias: u64,
    /// Hash of the object.
    object: u64,
}

/// Collects rows, and returns them as record batches.
#[derive(Debug)]
pub(crate) struct SampleBuilder {
    schema: SchemaRef,
    columns: Vec<SampleColumn>,
    has: Chosen,
    batch_rows: usize,
    recording: Option<Arc<str>>,
    host: Option<String>,
    clock: Option<WallClock>,
    has_symbols: bool,
    rows: usize,
    names: Names,
    modes: [Option<NameId>; 8],
    events: Vec<(Box<[u8]>, NameId)>,
    comms: NamesByIndex,
    modules: NamesByIndex,
    functions: NamesByIndex,
    labels: NamesByIndex,
    files: NamesByIndex,
    unknown: Option<NameId>,
    places: Vec<Option<Place>>,
    /// The hash of each name in the column `frames`.
    hashes: Vec<Option<u64>>,
    hashed: Vec<u8>,
    time: Int64Builder,
    wall: TimestampMicrosecondBuilder,
    event: NameColumn,
    period: Int64Builder,
    pid: Int32Builder,
    tid: Int32Builder,
    cpu: Int32Builder,
    comm: NameColumn,
    mode: NameColumn,
    ip: Int64Builder,
    addr: Int64Builder,
    weight: Int64Builder,
    data_src: Int64Builder,
    phys_addr: Int64Builder,
    cgroup: NameColumn,
    kernel_frames: Int32Builder,
    stack: Int64Builder,
    /// The end of each row's frames in the columns of lists.
    ends: Vec<i32>,
    callchain: Vec<i64>,
    module: NameColumn,
    offset: Int64Builder,
    frame: NameColumn,
    inlined: BooleanBufferBuilder,
    file: NameColumn,
    line: Vec<i32>,
}

/// Which of the columns that need work are wanted.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    callchain: bool,
    modules: bool,
    offsets: bool,
    frames: bool,
    inlined: bool,
    files: bool,
    lines: bool,
    stack: bool,
    decoded: bool,
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
        let schema = sample_schema(columns.iter().copied());
        let decoded = [
            SampleColumn::Weight,
            SampleColumn::DataSrc,
            SampleColumn::PhysAddr,
            SampleColumn::Cgroup,
        ];
        SampleBuilder {
            has: Chosen {
                callchain: has(SampleColumn::Callchain),
                modules: has(SampleColumn::Modules),
                offsets: has(SampleColumn::Offsets) && (options.offsets || !has_symbols),
                frames: has(SampleColumn::Frames) && has_symbols,
                inlined: has(SampleColumn::Inlined) && options.inlines,
                files: has(SampleColumn::Files) && options.lines,
                lines: has(SampleColumn::Lines) && options.lines,
                stack: has(SampleColumn::Stack),
                decoded: decoded.into_iter().any(has),
            },
            schema,
            columns,
            batch_rows: options.batch_rows,
            recording: options.recording.clone(),
            host,
            clock,
            has_symbols,
            rows: 0,
            names: Names::default(),
            modes: [None; 8],
            events: Vec::new(),
            comms: NamesByIndex::default(),
            modules: NamesByIndex::default(),
            functions: NamesByIndex::default(),
            labels: NamesByIndex::default(),
            files: NamesByIndex::default(),
            unknown: None,
            places: Vec::new(),
            hashes: Vec::new(),
            hashed: Vec::new(),
            time: Int64Builder::new(),
            wall: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            event: NameColumn::default(),
            period: Int64Builder::new(),
            pid: Int32Builder::new(),
            tid: Int32Builder::new(),
            cpu: Int32Builder::new(),
            comm: NameColumn::default(),
            mode: NameColumn::default(),
            ip: Int64Builder::new(),
            addr: Int64Builder::new(),
            weight: Int64Builder::new(),
            data_src: Int64Builder::new(),
            phys_addr: Int64Builder::new(),
            cgroup: NameColumn::default(),
            kernel_frames: Int32Builder::new(),
            stack: Int64Builder::new(),
            ends: vec![0],
            callchain: Vec::new(),
            module: NameColumn::default(),
            offset: Int64Builder::new(),
            frame: NameColumn::default(),
            inlined: BooleanBufferBuilder::new(0),
            file: NameColumn::default(),
            line: Vec::new(),
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
        let is_of_frames = |column: &SampleColumn| {
            matches!(
                column,
                SampleColumn::KernelFrames
                    | SampleColumn::Callchain
                    | SampleColumn::Modules
                    | SampleColumn::Offsets
                    | SampleColumn::Frames
                    | SampleColumn::Inlined
                    | SampleColumn::Files
                    | SampleColumn::Lines
                    | SampleColumn::Stack
            )
        };
        self.columns.iter().any(is_of_frames)
    }

    /// Returns whether there is a whole batch.
    pub fn is_full(&self) -> bool {
        let frames = self.ends.last().copied().unwrap_or(0);
        self.rows >= self.batch_rows || usize::try_from(frames).is_ok_and(|n| n >= MOST_FRAMES)
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Appends a sample.
    ///
    /// # Errors
    /// The sample is corrupt.
    pub fn push(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        let sample = &resolved.sample;
        let view = sample.sample_view();
        let time = sample.time();
        self.rows = self.rows.saturating_add(1);
        self.time.append_option(time.map(u64::cast_signed));
        let wall = time.and_then(|time| self.clock?.micros(time));
        self.wall.append_option(wall);
        let event = self.event_name(sample.event(), sample.event_name());
        self.event.push(Some(event));
        self.period.append_value(sample.weight().cast_signed());
        let tid = sample.tid();
        self.pid.append_option(tid.map(|tid| tid.pid.cast_signed()));
        self.tid.append_option(tid.map(|tid| tid.tid.cast_signed()));
        self.cpu.append_option(sample.cpu().map(u32::cast_signed));
        let names = &mut self.names;
        let comm = sample.comm_id().index();
        let comm = self.comms.get(comm, || names.intern(sample.comm()));
        self.comm.push(Some(comm));
        let mode = self.mode_name(sample.mode());
        self.mode.push(Some(mode));
        self.ip.append_option(view.ip().map(u64::cast_signed));
        self.addr.append_option(view.addr().map(u64::cast_signed));
        self.push_decoded(resolved)?;
        self.push_frames(resolved);
        Ok(())
    }

    /// Appends the parts that are behind parts of variable size.
    fn push_decoded(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        let sample = &resolved.sample;
        let has = |attr: &perfdata_core::attr::Attr| attr.sample_type.0 & DECODED != 0;
        let mut decoded: Option<record::Sample> = None;
        if self.has.decoded
            && sample.attr().is_some_and(has)
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
        self.weight.append_option(weights.map(u64::cast_signed));
        self.data_src
            .append_option(data_src.map(|source| source.0.cast_signed()));
        self.phys_addr
            .append_option(phys_addr.map(u64::cast_signed));
        let path = cgroup.and_then(|id| sample.session().cgroup(id));
        let path = path.map(|path| self.names.intern(path));
        self.cgroup.push(path);
        Ok(())
    }

    /// Appends the frames.
    fn push_frames(&mut self, resolved: &ResolvedSample<'_>) {
        let frames = resolved.frames;
        let session = resolved.sample.session();
        let is_kernel =
            |frame: &&ResolvedFrame| matches!(frame.mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL);
        let kernel = frames.iter().take_while(is_kernel).count();
        self.kernel_frames
            .append_value(i32::try_from(kernel).unwrap_or(i32::MAX));
        let end = self.ends.last().copied().unwrap_or(0);
        let len = i32::try_from(frames.len()).unwrap_or(i32::MAX);
        self.ends.push(end.saturating_add(len));
        if self.has.callchain {
            let addresses = frames.iter().map(|frame| frame.address.cast_signed());
            self.callchain.extend(addresses);
        }
        if self.has.modules {
            let tables = resolved.tables;
            for frame in frames {
                let name = frame.module.map(|id| {
                    let index = usize::try_from(id.0).unwrap_or(usize::MAX);
                    let names = &mut self.names;
                    let intern =
                        || names.intern(tables.module(id).map_or(b"", |module| &module.name));
                    self.modules.get(index, intern)
                });
                self.module.push(name);
            }
        }
        if self.has.offsets {
            for frame in frames {
                let place = self.place(session, frame);
                let offset = place.map(|place| frame.address.wrapping_add(place.bias));
                self.offset.append_option(offset.map(u64::cast_signed));
            }
        }
        if self.has.frames || (self.has.stack && self.has_symbols) {
            self.push_names(resolved);
        }
        if self.has.stack {
            if !self.has_symbols {
                self.hashed.clear();
                for frame in frames {
                    let place = self.place(session, frame);
                    let (object, bias) = place.map_or((0, 0), |place| (place.object, place.bias));
                    let offset = frame.address.wrapping_add(bias);
                    self.hashed.extend_from_slice(&object.to_le_bytes());
                    self.hashed.extend_from_slice(&offset.to_le_bytes());
                }
            }
            let hash = XxHash3_64::oneshot(&self.hashed);
            self.stack.append_value(hash.cast_signed());
        }
        if self.has.inlined {
            frames
                .iter()
                .for_each(|frame| self.inlined.append(frame.is_inlined));
        }
        if self.has.files {
            for frame in frames {
                let function = frame.function.and_then(|id| {
                    let function = resolved.tables.function(id)?;
                    Some((id, function.file.as_deref()?))
                });
                let file = function.map(|(id, file)| {
                    let index = usize::try_from(id.0).unwrap_or(usize::MAX);
                    self.files.get(index, || self.names.intern(file))
                });
                self.file.push(file);
            }
        }
        if self.has.lines {
            let lines = frames.iter().map(|frame| frame.line.cast_signed());
            self.line.extend(lines);
        }
    }

    /// Appends the names of the frames, and collects their hashes.
    fn push_names(&mut self, resolved: &ResolvedSample<'_>) {
        let tables = resolved.tables;
        self.hashed.clear();
        for frame in resolved.frames {
            let names = &mut self.names;
            let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
            let name = match (frame.function, frame.module) {
                (Some(function), _) => self.functions.get(index(function.0), || {
                    names.intern(&tables.shown_name(Some(function), None))
                }),
                (None, Some(module)) => self.labels.get(index(module.0), || {
                    names.intern(&tables.shown_name(None, Some(module)))
                }),
                (None, None) => *self
                    .unknown
                    .get_or_insert_with(|| names.intern(&tables.shown_name(None, None))),
            };
            if self.has.frames {
                self.frame.push(Some(name));
            }
            if self.has.stack {
                let hash = self.hash_of(name);
                self.hashed.extend_from_slice(&hash.to_le_bytes());
            }
        }
    }

    fn hash_of(&mut self, name: NameId) -> u64 {
        let index = name.index();
        if let Some(&Some(known)) = self.hashes.get(index) {
            return known;
        }
        let hash = XxHash3_64::oneshot(self.names.get(name).as_bytes());
        if self.hashes.len() <= index {
            self.hashes.resize(index.saturating_add(1), None);
        }
        if let Some(entry) = self.hashes.get_mut(index) {
            *entry = Some(hash);
        }
        hash
    }

    /// Returns what is known about the mapping of a frame.
    #[inline]
    fn place(&mut self, session: &Session, frame: &ResolvedFrame) -> Option<Place> {
        let id = frame.mapping?;
        if let Some(&Some(known)) = self.places.get(id.index()) {
            return Some(known);
        }
        let mapping = session.mapping(id)?;
        let dso = session.dso(mapping.dso)?;
        let build_id = session.build_id(mapping.dso);
        let object = match &build_id {
            Some(build_id) => build_id.bytes(),
            None => &dso.name,
        };
        let place = Place {
            bias: mapping.offset(dso.kind, 0),
            object: XxHash3_64::oneshot(object),
        };
        if self.places.len() <= id.index() {
            self.places.resize(id.index().saturating_add(1), None);
        }
        if let Some(entry) = self.places.get_mut(id.index()) {
            *entry = Some(place);
        }
        Some(place)
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
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
        let columns = self.columns.clone();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for &column in &columns {
            let of_names = |array| list(array, &ends, column);
            let array: ArrayRef = match column {
                SampleColumn::Recording => constant(self.recording.as_deref(), rows)?,
                SampleColumn::Host => constant(self.host.as_deref(), rows)?,
                SampleColumn::Time => Arc::new(self.time.finish()),
                SampleColumn::Wall => Arc::new(self.wall.finish()),
                SampleColumn::Event => self.event.finish(&self.names)?,
                SampleColumn::Period => Arc::new(self.period.finish()),
                SampleColumn::Pid => Arc::new(self.pid.finish()),
                SampleColumn::Tid => Arc::new(self.tid.finish()),
                SampleColumn::Cpu => Arc::new(self.cpu.finish()),
                SampleColumn::Comm => self.comm.finish(&self.names)?,
                SampleColumn::Mode => self.mode.finish(&self.names)?,
                SampleColumn::Ip => Arc::new(self.ip.finish()),
                SampleColumn::Addr => Arc::new(self.addr.finish()),
                SampleColumn::Weight => Arc::new(self.weight.finish()),
                SampleColumn::DataSrc => Arc::new(self.data_src.finish()),
                SampleColumn::PhysAddr => Arc::new(self.phys_addr.finish()),
                SampleColumn::Cgroup => self.cgroup.finish(&self.names)?,
                SampleColumn::KernelFrames => Arc::new(self.kernel_frames.finish()),
                SampleColumn::Stack => Arc::new(self.stack.finish()),
                SampleColumn::Callchain => {
                    let addresses = std::mem::take(&mut self.callchain);
                    of_names(Arc::new(Int64Array::from(addresses)))?
                }
                SampleColumn::Modules => of_names(self.module.finish(&self.names)?)?,
                SampleColumn::Offsets if self.has.offsets => {
                    of_names(Arc::new(self.offset.finish()))?
                }
                SampleColumn::Frames if self.has.frames => {
                    of_names(self.frame.finish(&self.names)?)?
                }
                SampleColumn::Inlined if self.has.inlined => {
                    of_names(Arc::new(BooleanArray::new(self.inlined.finish(), None)))?
                }
                SampleColumn::Files if self.has.files => of_names(self.file.finish(&self.names)?)?,
                SampleColumn::Lines if self.has.lines => {
                    let lines = std::mem::take(&mut self.line);
                    of_names(Arc::new(Int32Array::from(lines)))?
                }
                SampleColumn::Offsets
                | SampleColumn::Frames
                | SampleColumn::Inlined
                | SampleColumn::Files
                | SampleColumn::Lines => new_null_array(&column.column().kind.data_type(), rows),
            };
            arrays.push(array);
        }
        self.forget_unwanted();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema(), arrays, &options)?;
        Ok(batch)
    }

    /// Discards the values of columns that nobody wants.
    fn forget_unwanted(&mut self) {
        self.time.finish();
        self.wall.finish();
        self.period.finish();
        self.pid.finish();
        self.tid.finish();
        self.cpu.finish();
        self.ip.finish();
        self.addr.finish();
        self.weight.finish();
        self.data_src.finish();
        self.phys_addr.finish();
        self.kernel_frames.finish();
        for column in [
            &mut self.event,
            &mut self.comm,
            &mut self.mode,
            &mut self.cgroup,
        ] {
            column.clear();
        }
    }
}

/// Returns a column of lists that end at `ends`.
fn list(values: ArrayRef, ends: &OffsetBuffer<i32>, column: SampleColumn) -> Result<ArrayRef> {
    let field = match column.column().kind.data_type() {
        DataType::List(field) => field,
        other => Arc::new(Field::new(ELEMENT, other, true)),
    };
    let nulls: Option<NullBuffer> = None;
    Ok(Arc::new(ListArray::try_new(
        field,
        ends.clone(),
        values,
        nulls,
    )?))
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
