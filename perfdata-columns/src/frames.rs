//! The columns of frames in the table `samples`.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, ListArray, new_null_array};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use perfdata_core::record::CpuMode;
use perfdata_export::{ResolvedFrame, ResolvedSample};
use perfdata_session::Session;
use twox_hash::XxHash3_64;

use crate::dictionary::{Known, NameColumn, NameTable, NamesByIndex};
use crate::error::Result;
use crate::numbers::Numbers;
use crate::options::Options;
use crate::schema::{ColumnGroup, ELEMENT, OfFrames, SampleColumn};

/// What is known about a mapping.
#[derive(Debug, Clone, Copy, Default)]
struct MappingColumns {
    /// What to add to an address for the offset in the object.
    bias: u64,
    /// Hash of the object.
    object: u64,
    is_known: bool,
}

/// Collects the columns of frames.
#[derive(Debug)]
pub(crate) struct FrameColumns {
    is_wanted: bool,
    has_symbols: bool,
    module_names: NamesByIndex,
    functions: NamesByIndex,
    labels: NamesByIndex,
    file_names: NamesByIndex,
    unknown: Option<Known>,
    places: Vec<MappingColumns>,
    hashed: Vec<u8>,
    kernel_frames: Numbers<Int32Type>,
    stack: Numbers<Int64Type>,
    /// The end of each row's frames in the columns of lists.
    ends: Vec<i32>,
    callchain: Numbers<Int64Type>,
    modules: NameColumn,
    offsets: Numbers<Int64Type>,
    frames: NameColumn,
    inlined: Option<BooleanBufferBuilder>,
    files: NameColumn,
    lines: Numbers<Int32Type>,
}

impl FrameColumns {
    /// Returns empty columns: those that `options` chooses, as far as they are known.
    pub fn new(options: &Options, has_symbols: bool) -> Self {
        let has = |column| options.columns().contains(&column);
        let inlined = has(SampleColumn::Inlined) && options.inlines;
        FrameColumns {
            is_wanted: options.columns().iter().any(is_of_frames),
            has_symbols,
            module_names: NamesByIndex::default(),
            functions: NamesByIndex::default(),
            labels: NamesByIndex::default(),
            file_names: NamesByIndex::default(),
            unknown: None,
            places: Vec::new(),
            hashed: Vec::new(),
            kernel_frames: Numbers::new(has(SampleColumn::KernelFrames)),
            stack: Numbers::new(has(SampleColumn::Stack)),
            ends: vec![0],
            callchain: Numbers::new(has(SampleColumn::Callchain)),
            modules: NameColumn::new(has(SampleColumn::Modules)),
            offsets: Numbers::new(has(SampleColumn::Offsets) && (options.offsets || !has_symbols)),
            frames: NameColumn::new(has(SampleColumn::Frames) && has_symbols),
            inlined: inlined.then(|| BooleanBufferBuilder::new(0)),
            files: NameColumn::new(has(SampleColumn::Files) && options.lines),
            lines: Numbers::new(has(SampleColumn::Lines) && options.lines),
        }
    }

    /// Returns whether a column needs the frames.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Returns the number of frames in the batch.
    pub fn len(&self) -> usize {
        let end = self.ends.last().copied().unwrap_or(0);
        usize::try_from(end).unwrap_or(0)
    }

    /// Appends the frames of a sample.
    pub fn push(&mut self, resolved: &ResolvedSample<'_>, names: &mut NameTable) {
        if !self.is_wanted {
            return;
        }
        let frames = resolved.frames;
        let end = self.len().saturating_add(frames.len());
        self.ends.push(i32::try_from(end).unwrap_or(i32::MAX));
        let is_kernel =
            |frame: &&ResolvedFrame| matches!(frame.mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL);
        let kernel = frames.iter().take_while(is_kernel).count();
        self.kernel_frames.push(i32::try_from(kernel).ok());
        let addresses = frames.iter().map(|frame| frame.address.cast_signed());
        self.callchain.extend(addresses.map(Some));
        if self.modules.is_wanted() {
            self.push_modules(resolved, names);
        }
        let needs_places = self.stack.is_wanted() && !self.has_symbols;
        if self.offsets.is_wanted() || needs_places {
            self.push_offsets(resolved);
        }
        if self.frames.is_wanted() || (self.stack.is_wanted() && self.has_symbols) {
            self.push_names(resolved, names);
        }
        if self.stack.is_wanted() {
            let hash = XxHash3_64::oneshot(&self.hashed);
            self.stack.push(Some(hash.cast_signed()));
        }
        if let Some(inlined) = &mut self.inlined {
            frames
                .iter()
                .for_each(|frame| inlined.append(frame.is_inlined));
        }
        if self.files.is_wanted() {
            self.push_files(resolved, names);
        }
        let lines = frames.iter().map(|frame| frame.line.cast_signed());
        self.lines.extend(lines.map(Some));
    }

    fn push_modules(&mut self, resolved: &ResolvedSample<'_>, names: &mut NameTable) {
        for frame in resolved.frames {
            let Some(id) = frame.module else {
                self.modules.push(None);
                continue;
            };
            let name = || {
                resolved
                    .tables
                    .module(id)
                    .map_or(&b""[..], |module| &module.name)
            };
            let make = || names.know(name());
            self.module_names.push(&mut self.modules, index(id.0), make);
        }
    }

    /// Appends the offsets, and collects the objects and offsets for the hash of the stack.
    fn push_offsets(&mut self, resolved: &ResolvedSample<'_>) {
        let frames = resolved.frames;
        let session = resolved.sample.session();
        for id in frames.iter().filter_map(|frame| frame.mapping) {
            if self
                .places
                .get(id.index())
                .is_none_or(|place| !place.is_known)
            {
                self.find_place(session, id);
            }
        }
        let places = &self.places;
        let place = |frame: &ResolvedFrame| places.get(frame.mapping?.index()).copied();
        self.offsets.extend(frames.iter().map(|frame| {
            let offset = frame.address.wrapping_add(place(frame)?.bias);
            Some(offset.cast_signed())
        }));
        if self.stack.is_wanted() && !self.has_symbols {
            self.hashed.clear();
            for frame in frames {
                let MappingColumns { bias, object, .. } = place(frame).unwrap_or_default();
                let offset = frame.address.wrapping_add(bias);
                let pair = u128::from(offset) << 64 | u128::from(object);
                self.hashed.extend_from_slice(&pair.to_le_bytes());
            }
        }
    }

    /// Finds out what has to be known about a mapping.
    #[cold]
    fn find_place(&mut self, session: &Session, id: perfdata_session::MappingId) {
        if self.places.len() <= id.index() {
            let len = id.index().saturating_add(1);
            self.places.resize(len, MappingColumns::default());
        }
        let known = session.mapping(id).and_then(|mapping| {
            let dso = session.dso(mapping.dso)?;
            let build_id = session.build_id(mapping.dso);
            let object = match &build_id {
                Some(build_id) => build_id.bytes(),
                None => &dso.name,
            };
            Some(MappingColumns {
                bias: mapping.offset(dso.kind, 0),
                object: XxHash3_64::oneshot(object),
                is_known: true,
            })
        });
        if let (Some(place), Some(known)) = (self.places.get_mut(id.index()), known) {
            *place = known;
        }
    }

    /// Appends the names of the frames, and collects their hashes.
    fn push_names(&mut self, resolved: &ResolvedSample<'_>, names: &mut NameTable) {
        let tables = resolved.tables;
        self.hashed.clear();
        for frame in resolved.frames {
            let column = &mut self.frames;
            let make = || names.know(&tables.short_shown_name(frame.function, frame.module));
            let hash = match (frame.function, frame.module) {
                (Some(id), _) => self.functions.push(column, index(id.0), make),
                (None, Some(id)) => self.labels.push(column, index(id.0), make),
                (None, None) => column.push_known(self.unknown.get_or_insert_with(make)),
            };
            self.hashed.extend_from_slice(&hash.to_le_bytes());
        }
    }

    fn push_files(&mut self, resolved: &ResolvedSample<'_>, names: &mut NameTable) {
        for frame in resolved.frames {
            let function = frame.function.and_then(|id| {
                let function = resolved.tables.function(id)?;
                Some((id, function.file.as_deref()?))
            });
            match function {
                Some((id, file)) => {
                    let make = || names.know(file);
                    self.file_names.push(&mut self.files, index(id.0), make);
                }
                None => self.files.push(None),
            }
        }
    }

    /// Returns the ends of the lists, and starts the next batch.
    pub fn finish_ends(&mut self) -> OffsetBuffer<i32> {
        let next = Vec::with_capacity(self.ends.len());
        let ends = std::mem::replace(&mut self.ends, next);
        self.ends.push(0);
        OffsetBuffer::new(ScalarBuffer::from(ends))
    }

    /// Returns a column of `rows` rows and of this type, with lists that end at `ends`. Columns
    /// that are not known are null.
    pub fn finish(
        &mut self,
        column: OfFrames,
        data_type: DataType,
        ends: &OffsetBuffer<i32>,
        rows: usize,
        names: &NameTable,
    ) -> Result<ArrayRef> {
        let values: ArrayRef = match column {
            OfFrames::KernelFrames => return self.kernel_frames.finish_array(),
            OfFrames::Stack => return self.stack.finish_array(),
            OfFrames::Callchain => self.callchain.finish_array()?,
            OfFrames::Modules => self.modules.finish(names)?,
            OfFrames::Offsets if self.offsets.is_wanted() => self.offsets.finish_array()?,
            OfFrames::Frames if self.frames.is_wanted() => self.frames.finish(names)?,
            OfFrames::Files if self.files.is_wanted() => self.files.finish(names)?,
            OfFrames::Lines if self.lines.is_wanted() => self.lines.finish_array()?,
            OfFrames::Inlined => match &mut self.inlined {
                Some(inlined) => Arc::new(BooleanArray::new(inlined.finish(), None)),
                None => return Ok(new_null_array(&data_type, rows)),
            },
            OfFrames::Offsets | OfFrames::Frames | OfFrames::Files | OfFrames::Lines => {
                return Ok(new_null_array(&data_type, rows));
            }
        };
        let field = match data_type {
            DataType::List(field) => field,
            other => Arc::new(Field::new(ELEMENT, other, true)),
        };
        let nulls: Option<NullBuffer> = None;
        let lists = ListArray::try_new(field, ends.clone(), values, nulls)?;
        Ok(Arc::new(lists))
    }
}

/// Returns whether a column is about the frames.
fn is_of_frames(column: &SampleColumn) -> bool {
    matches!(column.group(), ColumnGroup::Frames(_))
}

/// Returns the number of a function or module as an index.
fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
