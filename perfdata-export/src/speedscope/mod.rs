//! Files of [speedscope](https://www.speedscope.app/file-format-schema.json).

mod numbered;

use std::collections::HashMap;
use std::io::Write;

use foldhash::fast::RandomState;
use perfdata_session::ThreadId;

use crate::error::{Error, Result};
use crate::events::{Event, Events};
use crate::json;
use crate::parts::numbers::{of_part, renumbered};
use crate::parts::{Made, MadeOf, SinkPart};
use crate::resolve::{ResolvedSample, Sink};
use crate::script::numbers::push_number;
use crate::shown::Interned;
use crate::spool::Spool;
use crate::table_entries::TableNumbers;
use crate::tables::{FunctionId, ModuleId, Tables};
pub(crate) use numbered::SpeedscopeSamples;
use numbered::{Numbering, SpeedscopePart};

/// Writes a JSON file for speedscope.
///
/// For each event, there is a profile of all samples and one of each thread, with the samples in
/// their order of time. The weights are the periods of the samples: nanoseconds for clock events,
/// otherwise the unit of the event. Frames have the name of their function, or `[MODULE]`, and the
/// name of their source file, if it is known, or of their module as file. speedscope shows the order
/// of the samples, but not their times.
///
/// Control characters and bytes that are not UTF-8 become U+FFFD and two hexadecimal digits.
///
/// The stacks of the samples need up to 32 MiB of memory; further ones are stored in a temporary
/// file.
#[derive(Debug)]
pub struct Speedscope<W> {
    out: W,
    name: Box<[u8]>,
    events: Events,
    /// The profile of all threads and those of each thread, by event.
    profiles: Vec<Profile>,
    numbers: HashMap<(u32, Option<ThreadId>), usize, RandomState>,
    /// The names of threads that have no profile yet, by event.
    names: HashMap<(u32, ThreadId), Vec<u8>, RandomState>,
    frames: Interned<FrameKey>,
    /// The numbers that the frames have, if all samples come here, and what is known about those of each
    /// part.
    numbering: Numbering,
    parts: Vec<FrameNumbers>,
    /// The functions and modules of all parts; `None` if there are none.
    tables: Option<Tables>,
    spool: Spool,
    text: Vec<u8>,
}

/// The numbers of frames, functions and modules by those of a part.
#[derive(Debug, Default)]
struct FrameNumbers {
    tables: TableNumbers,
    frames: Vec<u32>,
}

/// The function, the module and the line of a frame.
type FrameKey = (Option<FunctionId>, Option<ModuleId>, u32);

/// A profile.
#[derive(Debug)]
struct Profile {
    event: u32,
    name: Box<[u8]>,
    is_all: bool,
    total: u64,
    samples: usize,
    weights: usize,
}

impl<W: Write> Speedscope<W> {
    /// Returns a sink that writes to `out` at the end. `name` is shown as the name of the file.
    pub fn new(out: W, name: &[u8]) -> Self {
        Speedscope {
            out,
            name: name.into(),
            events: Events::default(),
            profiles: Vec::new(),
            numbers: HashMap::default(),
            names: HashMap::default(),
            frames: Interned::default(),
            numbering: Numbering::default(),
            parts: Vec::new(),
            tables: None,
            spool: Spool::default(),
            text: Vec::new(),
        }
    }

    /// Adds samples of a part.
    fn add_samples(&mut self, part: usize, new: SpeedscopeSamples) -> Result<()> {
        let Some(numbers) = of_part(&mut self.parts, part) else {
            return Ok(());
        };
        if let Some(tables) = &mut self.tables {
            tables.join(&new.entries, &mut numbers.tables);
        }
        let is_part = self.tables.is_some();
        for (function, module, line) in new.frames {
            let key = match is_part {
                true => (
                    function.and_then(|id| numbers.tables.function(id)),
                    module.and_then(|id| numbers.tables.module(id)),
                    line,
                ),
                false => (function, module, line),
            };
            numbers.frames.push(self.frames.number(key));
        }
        let events = self.events.join(new.events);
        let event_of = |event: u32| renumbered(&events, event).unwrap_or(event);
        for (event, thread, name) in new.threads {
            let event = event_of(event);
            if !self.numbers.contains_key(&(event, Some(thread))) {
                self.names.entry((event, thread)).or_insert(name);
            }
        }
        let (mut stack, mut last) = (Vec::new(), None);
        for sample in new.samples {
            if last.replace(sample.stack) != Some(sample.stack) {
                stack.clear();
                for &number in new.stacks.get(sample.stack) {
                    if !stack.is_empty() {
                        stack.push(b',');
                    }
                    let numbers = self.parts.get(part);
                    let number = numbers.and_then(|part| renumbered(&part.frames, number));
                    push_number(&mut stack, number.unwrap_or(0).into(), 0);
                }
            }
            let event = event_of(sample.event);
            self.push(event, None, &stack, sample.weight)?;
            self.push(event, Some(sample.thread), &stack, sample.weight)?;
        }
        Ok(())
    }

    /// Adds the samples that came here, not to parts.
    fn take_numbered(&mut self) -> Result<()> {
        let samples = self.numbering.take();
        self.add_samples(0, samples)
    }

    /// Appends a sample to a profile.
    fn push(
        &mut self,
        event: u32,
        thread: Option<ThreadId>,
        stack: &[u8],
        weight: u64,
    ) -> Result<()> {
        let number = match self.numbers.get(&(event, thread)) {
            Some(&number) => number,
            None => {
                let name = match thread {
                    None => [self.events.name(event), b": all threads"].concat(),
                    Some(thread) => self.names.remove(&(event, thread)).unwrap_or_default(),
                };
                let number = self.profiles.len();
                self.profiles.push(Profile {
                    event,
                    name: name.into(),
                    is_all: thread.is_none(),
                    total: 0,
                    samples: self.spool.add(),
                    weights: self.spool.add(),
                });
                self.numbers.insert((event, thread), number);
                number
            }
        };
        let Some(profile) = self.profiles.get_mut(number) else {
            return Ok(());
        };
        let comma: &[u8] = if profile.total == 0 { b"" } else { b"," };
        // A sample without weight would not be shown.
        let weight = weight.max(1);
        profile.total = profile.total.saturating_add(weight);
        let (samples, weights) = (profile.samples, profile.weights);
        for part in [comma, b"[", stack, b"]"] {
            self.spool.write(samples, part)?;
        }
        self.text.clear();
        push_number(&mut self.text, weight, 0);
        self.spool.write(weights, comma)?;
        self.spool.write(weights, &self.text)
    }

    fn write(&mut self, tables: &Tables) -> Result<()> {
        let numbers = self.events.sort();
        for profile in &mut self.profiles {
            let at = usize::try_from(profile.event).ok();
            let number = at.and_then(|at| numbers.get(at)).copied();
            profile.event = number.unwrap_or_default();
        }
        self.profiles.sort_by_key(|profile| {
            (
                profile.event,
                !profile.is_all,
                std::cmp::Reverse(profile.total),
            )
        });
        let Speedscope {
            out,
            name,
            events,
            profiles,
            frames,
            spool,
            ..
        } = self;
        let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(Error::Output);
        put(b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"perfconv\",")?;
        put(format!(
            "\"name\":{},\"activeProfileIndex\":0,\"profiles\":[",
            json::string(name)
        )
        .as_bytes())?;
        for (at, profile) in profiles.iter().enumerate() {
            let unit = match events.get(profile.event) {
                Some(Event { is_time: true, .. }) => "nanoseconds",
                _ => "none",
            };
            let head = format!(
                "{}\n{{\"type\":\"sampled\",\"name\":{},\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{},\"samples\":[",
                if at == 0 { "" } else { "," },
                json::string(&profile.name),
                profile.total,
            );
            put(head.as_bytes())?;
            spool.read(profile.samples, &mut put)?;
            put(b"],\"weights\":[")?;
            spool.read(profile.weights, &mut put)?;
            put(b"]}")?;
        }
        put(b"],\n\"shared\":{\"frames\":[")?;
        for (at, (function, module, line)) in frames.list.iter().enumerate() {
            let name = tables.shown_name(*function, *module);
            let module = module.and_then(|id| tables.module(id));
            let function = function.and_then(|id| tables.function(id));
            let comma = if at == 0 { "" } else { "," };
            put(format!("{comma}\n{{\"name\":{}", json::string(&name)).as_bytes())?;
            let source = function.and_then(|function| function.file.as_deref());
            if let Some(file) = source.or(module.map(|module| &*module.name)) {
                put(format!(",\"file\":{}", json::string(file)).as_bytes())?;
            }
            if *line != 0 && source.is_some() {
                put(format!(",\"line\":{line}").as_bytes())?;
            }
            put(b"}")?;
        }
        put(b"]}}\n")?;
        self.out.flush().map_err(Error::Output)
    }
}

impl<W: Write> Sink for Speedscope<W> {
    fn sample(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        self.numbering.add(resolved);
        match self.numbering.is_full() {
            true => self.take_numbered(),
            false => Ok(()),
        }
    }

    fn part(&self, _: usize) -> Option<Box<dyn SinkPart>> {
        Some(Box::<SpeedscopePart>::default())
    }

    fn join(&mut self, made: Made) -> Result<()> {
        match made.of {
            MadeOf::Speedscope(samples) => {
                self.tables.get_or_insert_default();
                self.add_samples(made.part, *samples)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        match self.tables.take() {
            Some(of_parts) => self.write(&of_parts),
            None => {
                self.take_numbered()?;
                self.write(tables)
            }
        }
    }
}
