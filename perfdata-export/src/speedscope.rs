//! Files of [speedscope](https://www.speedscope.app/file-format-schema.json).

use std::collections::HashMap;
use std::io::Write;

use foldhash::fast::RandomState;
use perfdata_session::ThreadId;

use crate::error::{Error, Result};
use crate::events::{Event, Events};
use crate::json;
use crate::resolve::{ResolvedFrame, ResolvedSample, Sink};
use crate::shown::Interned;
use crate::spool::Spool;
use crate::tables::{FunctionId, ModuleId, Tables};

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
    frames: Interned<FrameKey>,
    spool: Spool,
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
            frames: Interned::default(),
            spool: Spool::default(),
        }
    }

    fn frame(&mut self, frame: &ResolvedFrame) -> u32 {
        let key = (frame.function, frame.module, frame.line);
        self.frames.number(key)
    }

    /// Appends a sample to a profile.
    fn push(
        &mut self,
        event: u32,
        thread: Option<ThreadId>,
        name: impl FnOnce() -> Vec<u8>,
        stack: &str,
        weight: u64,
    ) -> Result<()> {
        let number = match self.numbers.get(&(event, thread)) {
            Some(&number) => number,
            None => {
                let number = self.profiles.len();
                self.profiles.push(Profile {
                    event,
                    name: name().into(),
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
        let is_first = profile.total == 0;
        // A sample without weight would not be shown.
        let weight = weight.max(1);
        profile.total = profile.total.saturating_add(weight);
        let comma = if is_first { "" } else { "," };
        let (samples, weights) = (profile.samples, profile.weights);
        self.spool
            .write(samples, format!("{comma}[{stack}]").as_bytes())?;
        self.spool
            .write(weights, format!("{comma}{weight}").as_bytes())
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
        let sample = &resolved.sample;
        let counted = self.events.counted(resolved);
        let mut stack = String::new();
        for frame in resolved.frames.iter().rev() {
            if !stack.is_empty() {
                stack.push(',');
            }
            stack.push_str(&self.frame(frame).to_string());
        }
        for (event, weight) in counted {
            let name = self.events.name(event).to_vec();
            let all = || [&*name, b": all threads"].concat();
            self.push(event, None, all, &stack, weight)?;
            let thread = || {
                let ids = sample.tid().map_or(String::new(), |tid| {
                    let (pid, tid) = (tid.pid.cast_signed(), tid.tid.cast_signed());
                    format!(" {pid}/{tid}")
                });
                [&*name, b": ", sample.comm(), ids.as_bytes()].concat()
            };
            self.push(event, Some(sample.thread_id()), thread, &stack, weight)?;
        }
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        self.write(tables)
    }
}
