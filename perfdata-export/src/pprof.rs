//! Profiles of [pprof](https://github.com/google/pprof/blob/main/proto/profile.proto).

use std::collections::HashMap;
use std::io::{BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use foldhash::fast::RandomState;
use perfdata_session::{MappingId, Session};

use crate::counts::{Counts, Sums};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::message::{Message, varint};
use crate::resolve::{ResolvedFrame, ResolvedSample, Sink};
use crate::tables::{FunctionId, ModuleId, Tables};
use crate::text::push_text;

/// A label of samples. Samples with different labels are not added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Label {
    /// The process ID.
    Pid,
    /// The thread ID.
    Tid,
    /// The name of the thread.
    Comm,
    /// The CPU.
    Cpu,
}

impl Label {
    /// All labels.
    pub const ALL: [Label; 4] = [Label::Pid, Label::Tid, Label::Comm, Label::Cpu];

    /// Returns the key of the label.
    pub fn key(self) -> &'static str {
        match self {
            Label::Pid => "pid",
            Label::Tid => "tid",
            Label::Comm => "comm",
            Label::Cpu => "cpu",
        }
    }
}

/// Writes a compressed profile for pprof.
///
/// Each event has two types of values: the number of samples, and the sum of their periods, in
/// nanoseconds for clock events. The names of the types are `samples` and `cpu` if there is only one
/// event and it is a clock, otherwise `EVENT_samples` and `EVENT`. The periods of the first event are
/// the default type. Dummy events are skipped.
///
/// Locations have addresses in the mappings of the recording, with build IDs. The addresses of
/// callers are those of the last byte of the call. If the functions of an object are known, pprof
/// does not search them itself.
///
/// Control characters and bytes that are not UTF-8 become U+FFFD and two hexadecimal digits.
///
/// Different stacks need up to 64 MiB of memory; further ones are stored in temporary files. The
/// tables of locations and names are in memory.
#[derive(Debug)]
pub struct Pprof<W: Write> {
    out: BufWriter<GzEncoder<W>>,
    labels: Vec<Label>,
    events: Events,
    counts: Counts,
    strings: Strings,
    locations: Vec<(Location, Vec<Line>)>,
    location_ids: HashMap<Location, u32, RandomState>,
    mappings: Vec<Mapping>,
    mapping_ids: HashMap<MappingKey, u32, RandomState>,
    period: u64,
    first_time: Option<u64>,
    last_time: u64,
    stack: Vec<u32>,
}

/// A function and the line in it, 0 if it is not known.
type Line = (FunctionId, u32);

/// An address, and what is there. Numbers of mappings count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Location {
    mapping: u32,
    address: u64,
    function: Option<FunctionId>,
}

/// A module and its mapping.
type MappingKey = (Option<ModuleId>, Option<MappingId>);

#[derive(Debug)]
struct Mapping {
    module: Option<ModuleId>,
    start: u64,
    end: u64,
    offset: u64,
    has_functions: bool,
    has_files: bool,
    has_lines: bool,
    has_inlined: bool,
}

/// The table of strings. Number 0 is the empty one.
#[derive(Debug, Default)]
struct Strings {
    list: Vec<Box<str>>,
    known: HashMap<Box<str>, u32, RandomState>,
}

impl Strings {
    fn intern(&mut self, name: &[u8]) -> u32 {
        let mut text = String::new();
        push_text(&mut text, name);
        if let Some(&number) = self.known.get(&*text) {
            return number;
        }
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(text.as_str().into());
        self.known.insert(text.into(), number);
        number
    }
}

impl<W: Write> Pprof<W> {
    /// Returns a sink that writes to `out` at the end.
    pub fn new(out: W) -> Self {
        let mut strings = Strings::default();
        strings.intern(b"");
        Pprof {
            out: BufWriter::new(GzEncoder::new(out, Compression::default())),
            labels: Vec::new(),
            events: Events::default(),
            counts: Counts::default(),
            strings,
            locations: Vec::new(),
            location_ids: HashMap::default(),
            mappings: Vec::new(),
            mapping_ids: HashMap::default(),
            period: 0,
            first_time: None,
            last_time: 0,
            stack: Vec::new(),
        }
    }

    /// Returns the sink with labels. By default, there are none.
    #[must_use]
    pub fn with_labels(self, mut labels: Vec<Label>) -> Self {
        labels.sort_unstable();
        labels.dedup();
        Pprof { labels, ..self }
    }

    /// Returns the number of a frame's location, from 1. `inlined` are the frames of the functions
    /// that are inlined there.
    fn location(
        &mut self,
        frame: &ResolvedFrame,
        inlined: &[ResolvedFrame],
        session: &Session,
    ) -> u32 {
        let key = (frame.module, frame.mapping);
        let mapping = match self.mapping_ids.get(&key) {
            Some(&known) => known,
            None if frame.module.is_none() => 0,
            None => {
                let mapping = frame.mapping.and_then(|id| session.mapping(id));
                let numbers = mapping.map(|mapping| (mapping.start, mapping.end, mapping.pgoff));
                let (start, end, offset) = numbers.unwrap_or_default();
                self.mappings.push(Mapping {
                    module: frame.module,
                    start,
                    end,
                    offset,
                    has_functions: false,
                    has_files: false,
                    has_lines: false,
                    has_inlined: false,
                });
                let number = u32::try_from(self.mappings.len()).unwrap_or(u32::MAX);
                self.mapping_ids.insert(key, number);
                number
            }
        };
        if frame.function.is_some()
            && let Some(at) = mapping.checked_sub(1)
            && let Some(mapping) = usize::try_from(at)
                .ok()
                .and_then(|at| self.mappings.get_mut(at))
        {
            mapping.has_functions = true;
            mapping.has_inlined |= !inlined.is_empty();
            let is_known = inlined.iter().chain([frame]).any(|frame| frame.line != 0);
            mapping.has_lines |= is_known;
            mapping.has_files |= is_known;
        }
        let location = Location {
            mapping,
            address: frame.address.saturating_sub(frame.is_return.into()),
            function: frame.function,
        };
        if let Some(&known) = self.location_ids.get(&location) {
            return known;
        }
        // The functions that are inlined at an address are always the same ones.
        let lines = inlined.iter().chain([frame]);
        let lines = lines.filter_map(|frame| Some((frame.function?, frame.line)));
        self.locations.push((location, lines.collect()));
        let number = u32::try_from(self.locations.len()).unwrap_or(u32::MAX);
        self.location_ids.insert(location, number);
        number
    }

    /// Writes a field of the profile that is a message.
    fn put(&mut self, field: u32, message: &Message) -> Result<()> {
        let mut whole = Message::default();
        whole.message(field, message);
        self.out.write_all(whole.bytes()).map_err(Error::Output)
    }

    /// Writes a field of the profile that is a number.
    fn put_number(&mut self, field: u32, value: u64) -> Result<()> {
        let mut whole = Message::default();
        whole.number(field, value);
        self.out.write_all(whole.bytes()).map_err(Error::Output)
    }

    /// Writes the types of values.
    fn write_types(&mut self) -> Result<()> {
        let events = self.events.list().to_vec();
        let is_single = matches!(&*events, [event] if event.is_time);
        let count = self.strings.intern(b"count");
        for (number, event) in events.iter().enumerate() {
            let unit = match event.is_time {
                true => self.strings.intern(b"nanoseconds"),
                false => count,
            };
            let (samples, sum) = match is_single {
                true => (b"samples".to_vec(), b"cpu".to_vec()),
                false => (
                    [&event.name, &b"_samples"[..]].concat(),
                    event.name.to_vec(),
                ),
            };
            let (samples, sum) = (self.strings.intern(&samples), self.strings.intern(&sum));
            for (name, unit) in [(samples, count), (sum, unit)] {
                let mut kind = Message::default();
                kind.number(1, name.into());
                kind.number(2, unit.into());
                self.put(1, &kind)?;
            }
            if number == 0 {
                let mut kind = Message::default();
                kind.number(1, sum.into());
                kind.number(2, unit.into());
                self.put(11, &kind)?;
                self.put_number(12, self.period)?;
                self.put_number(14, sum.into())?;
            }
        }
        Ok(())
    }

    /// Writes all samples.
    fn write_samples(&mut self) -> Result<()> {
        let keys: Vec<u32> = self
            .labels
            .iter()
            .map(|label| self.strings.intern(label.key().as_bytes()))
            .collect();
        let counts = std::mem::take(&mut self.counts);
        let (labels, events) = (&self.labels, self.events.list().len());
        let out = &mut self.out;
        counts.finish(line, &mut |line, sums| {
            let sample = sample(line, sums, events, labels, &keys);
            let mut whole = Message::default();
            whole.message(2, &sample);
            out.write_all(whole.bytes()).map_err(Error::Output)
        })
    }

    fn write_tables(&mut self, tables: &Tables) -> Result<()> {
        for (number, mapping) in (1_u64..).zip(std::mem::take(&mut self.mappings)) {
            let module = mapping.module.and_then(|id| tables.module(id));
            let name = module.map(|module| &*module.name).unwrap_or_default();
            let build_id = module.and_then(|module| module.build_id);
            let build_id = build_id.map_or(String::new(), |id| id.to_string());
            let mut message = Message::default();
            message.number(1, number);
            message.number(2, mapping.start);
            message.number(3, mapping.end);
            message.number(4, mapping.offset);
            message.number(5, self.strings.intern(name).into());
            message.number(6, self.strings.intern(build_id.as_bytes()).into());
            message.number(7, mapping.has_functions.into());
            message.number(8, mapping.has_files.into());
            message.number(9, mapping.has_lines.into());
            message.number(10, mapping.has_inlined.into());
            self.put(3, &message)?;
        }
        for (number, (location, lines)) in (1_u64..).zip(std::mem::take(&mut self.locations)) {
            let mut message = Message::default();
            message.number(1, number);
            message.number(2, location.mapping.into());
            message.number(3, location.address);
            for (function, number) in lines {
                let mut line = Message::default();
                line.number(1, u64::from(function.0).saturating_add(1));
                line.number(2, number.into());
                message.message(4, &line);
            }
            self.put(4, &message)?;
        }
        for (number, function) in (1_u64..).zip(tables.functions()) {
            let mut message = Message::default();
            message.number(1, number);
            message.number(2, self.strings.intern(&function.name).into());
            message.number(3, self.strings.intern(&function.system_name).into());
            let file = function.file.as_deref().unwrap_or_default();
            message.number(4, self.strings.intern(file).into());
            message.number(5, function.start_line.into());
            self.put(5, &message)?;
        }
        for string in std::mem::take(&mut self.strings.list) {
            let mut whole = Message::default();
            whole.text(6, &string);
            self.out.write_all(whole.bytes()).map_err(Error::Output)?;
        }
        if let Some(first) = self.first_time {
            self.put_number(10, self.last_time.saturating_sub(first))?;
        }
        Ok(())
    }
}

/// Returns a sample: the line of [`Counts`] consists of the event, the labels, and the locations.
fn sample(line: &[u8], sums: Sums, events: usize, labels: &[Label], keys: &[u32]) -> Message {
    let numbers: Vec<u32> = line
        .chunks_exact(4)
        .filter_map(|bytes| Some(u32::from_be_bytes(*bytes.first_chunk()?)))
        .collect();
    let (event, rest) = numbers.split_first().unwrap_or((&0, &[]));
    let (values, locations) = rest.split_at_checked(labels.len()).unwrap_or_default();
    let mut message = Message::default();
    let mut packed = Vec::new();
    for &location in locations {
        varint(&mut packed, location.into());
    }
    message.packed(1, &packed);
    let mut packed = Vec::new();
    for number in 0..events {
        let is_it = usize::try_from(*event) == Ok(number);
        let (samples, weight) = if is_it {
            (sums.samples, sums.weight)
        } else {
            (0, 0)
        };
        varint(&mut packed, samples);
        varint(&mut packed, weight.min(i64::MAX.cast_unsigned()));
    }
    message.packed(2, &packed);
    for ((label, key), &value) in labels.iter().zip(keys).zip(values) {
        let mut pair = Message::default();
        pair.number(1, (*key).into());
        match label {
            Label::Comm => pair.number(2, value.into()),
            // -1 is the ID of a thread that has ended.
            _ => pair.number(3, i64::from(value.cast_signed()).cast_unsigned()),
        }
        message.message(3, &pair);
    }
    message
}

/// Returns a list of numbers as bytes.
fn line(stack: &[u32]) -> Vec<u8> {
    stack
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect()
}

impl<W: Write> Sink for Pprof<W> {
    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        let sample = &resolved.sample;
        let Some(event) = self.events.of(sample) else {
            return Ok(());
        };
        if let Some(time) = sample.time() {
            self.first_time.get_or_insert(time);
            self.last_time = self.last_time.max(time);
        }
        if self.period == 0 {
            self.period = sample.weight();
        }
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.push(event);
        for at in 0..self.labels.len() {
            let unknown = u32::MAX;
            stack.push(match self.labels.get(at) {
                Some(Label::Pid) => sample.tid().map_or(unknown, |tid| tid.pid),
                Some(Label::Tid) => sample.tid().map_or(unknown, |tid| tid.tid),
                Some(Label::Cpu) => sample.cpu().unwrap_or(unknown),
                Some(Label::Comm) => self.strings.intern(sample.comm()),
                None => unknown,
            });
        }
        let mut rest = resolved.frames;
        while let Some(inlined) = rest.iter().position(|frame| !frame.is_inlined)
            && let Some((inlined, [frame, after @ ..])) = rest.split_at_checked(inlined)
        {
            stack.push(self.location(frame, inlined, sample.session()));
            rest = after;
        }
        self.counts.add(&stack, sample.weight(), line)?;
        self.stack = stack;
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        self.write_types()?;
        self.write_samples()?;
        self.write_tables(tables)?;
        self.out.flush().map_err(Error::Output)?;
        self.out.get_mut().try_finish().map_err(Error::Output)
    }
}
