//! The JSON of a profile.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_session::BuildId;

use super::threads::{Thread, Track};
use super::{CATEGORIES, Firefox};
use crate::error::{Error, Result};
use crate::json::{self, Writer};
use crate::machine::Machine;
use crate::shown::{Code, Interned};
use crate::tables::{Module, Tables};

/// The version of the format. Newer versions of the profiler read all older ones; Perfetto reads
/// this one, but not the encoding of stacks of version 66.
const VERSION: u32 = 60;

/// The version of Gecko's own format of which the profile would be made.
const GECKO_VERSION: u32 = 30;

/// The type of a resource that is a library.
const LIBRARY: u32 = 1;

/// The markers: the type, the label of its rows, and the keys, labels and formats of its fields.
type Schema = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str, &'static str)],
);
const SCHEMAS: [Schema; 6] = [
    (
        "comm",
        "{marker.data.comm}",
        &[
            ("comm", "Name", "string"),
            ("exec", "Because of exec", "string"),
        ],
    ),
    (
        "fork",
        "{marker.data.pid}/{marker.data.tid}",
        &[
            ("pid", "Process ID", "integer"),
            ("tid", "Thread ID", "integer"),
        ],
    ),
    ("exit", "", &[]),
    (
        "off-cpu",
        "{marker.data.reason}",
        &[
            ("preempted", "Preempted", "string"),
            ("reason", "Reason", "string"),
        ],
    ),
    (
        "lost",
        "{marker.data.lost}",
        &[("lost", "Number", "integer")],
    ),
    (
        "tracepoint",
        "{marker.data.text}",
        &[("text", "Text", "string"), ("cpu", "CPU", "integer")],
    ),
];

/// Writes a list of `count` equal values.
fn same<W: Write>(json: &mut Writer<'_, W>, key: &str, value: &str, count: usize) -> Result<()> {
    json.list(key, 0..count, |_| value.to_owned())
}

/// Returns a difference of times in milliseconds.
fn milliseconds(from: u64, to: u64) -> String {
    let distance = i128::from(to).saturating_sub(i128::from(from));
    let (sign, distance) = match distance < 0 {
        true => ("-", distance.unsigned_abs()),
        false => ("", distance.unsigned_abs()),
    };
    format!(
        "{sign}{}.{:06}",
        distance.checked_div(1_000_000).unwrap_or(0),
        distance.checked_rem(1_000_000).unwrap_or(0)
    )
}

/// Returns the ID by which symbol servers know an object with a build ID: the first 16 bytes as a
/// GUID, in which the first three numbers are little-endian, and a zero.
fn breakpad_id(id: Option<&BuildId>) -> String {
    let Some(id) = id else {
        return String::new();
    };
    let mut bytes: Vec<u8> = id.padded().0.iter().copied().take(16).collect();
    for range in [0..4, 4..6, 6..8] {
        if let Some(part) = bytes.get_mut(range) {
            part.reverse();
        }
    }
    let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
    digits.chain(["0".to_owned()]).collect()
}

fn library(module: &Module, arch: &[u8]) -> String {
    let file = module.name.rsplit(|&byte| byte == b'/').next();
    let name = json::string(file.unwrap_or(&module.name));
    let path = json::string(&module.name);
    let code = module
        .build_id
        .map_or("null".into(), |id| json::string(id.to_string().as_bytes()));
    format!(
        "{{\"name\":{name},\"path\":{path},\"debugName\":{name},\"debugPath\":{path},\"breakpadId\":\"{}\",\"codeId\":{code},\"arch\":{}}}",
        breakpad_id(module.build_id.as_ref()),
        json::string(arch)
    )
}

impl<W: Write> Firefox<W> {
    /// Writes the profile.
    pub(super) fn write(&mut self, tables: &Tables) -> Result<()> {
        let meta = self.meta();
        let arch = self.machine.take().map(|machine| machine.arch);
        let arch = arch.unwrap_or_default();
        let mut json = Writer::new(&mut self.out, ",");
        json.open(&format!("{{\"meta\":{meta},\n"))?;
        json.list("libs", tables.modules(), |module| library(module, &arch))?;
        json.put(",\"pages\":[],\n\"threads\":[")?;
        self.write_threads()?;
        self.write_shared(tables)?;
        self.out.flush().map_err(Error::Output)?;
        self.out.get_mut().try_finish().map_err(Error::Output)
    }

    /// Returns the description of the recording.
    fn meta(&self) -> String {
        let machine = self.machine.as_ref();
        let text = |of: fn(&Machine) -> &Vec<u8>| {
            json::string(machine.map(of).map_or(&[][..], Vec::as_slice))
        };
        // The time between two samples of the thread with the most samples.
        let longest = self.threads.tracks.iter().max_by_key(|track| track.count);
        let interval =
            longest.and_then(|track| track.span.checked_div(track.count.checked_sub(1)?));
        let interval = milliseconds(0, interval.filter(|&ns| ns > 0).unwrap_or(1_000_000));
        let start = machine
            .zip(self.first_time)
            .and_then(|(machine, first)| machine.time_of_day(first))
            .map(|start| milliseconds(0, start));
        let categories = CATEGORIES.map(|(name, color)| {
            format!("{{\"name\":\"{name}\",\"color\":\"{color}\",\"subcategories\":[\"Other\"]}}")
        });
        let schemas = SCHEMAS.map(|(name, label, fields)| {
            let fields = fields.iter().map(|(key, label, format)| {
                format!("{{\"key\":\"{key}\",\"label\":\"{label}\",\"format\":\"{format}\"}}")
            });
            let fields: Vec<String> = fields.collect();
            format!(
                "{{\"name\":\"{name}\",\"tableLabel\":\"{label}\",\"chartLabel\":\"{label}\",\"display\":[\"marker-chart\",\"marker-table\"],\"fields\":[{}]}}",
                fields.join(",")
            )
        });
        format!(
            "{{\"interval\":{interval},\"startTime\":{},\"processType\":0,\"product\":{},\"importedFrom\":\"perfconv\",\"stackwalk\":1,\"version\":{GECKO_VERSION},\"preprocessedProfileVersion\":{VERSION},\"symbolicated\":true,\"oscpu\":{},\"abi\":{},\"CPUName\":{},\"logicalCPUs\":{},\"categories\":[{}],\"markerSchema\":[{}]}}",
            start.unwrap_or_else(|| "0".into()),
            json::string(&self.name),
            text(|machine| &machine.release),
            text(|machine| &machine.arch),
            text(|machine| &machine.cpu),
            machine.map_or(0, |machine| machine.cpus),
            categories.join(","),
            schemas.join(",")
        )
    }

    /// Writes all threads, by process.
    fn write_threads(&mut self) -> Result<()> {
        let numbers = self.events.sort();
        let number = |event: u32| {
            let at = usize::try_from(event).ok();
            at.and_then(|at| numbers.get(at))
                .copied()
                .unwrap_or_default()
        };
        let list = &self.threads.list;
        let mut processes: HashMap<u32, &[u8], RandomState> = HashMap::default();
        for thread in list.iter().filter(|thread| thread.tid == thread.pid) {
            processes.insert(thread.pid, &thread.comm);
        }
        let mut order: Vec<(&Track, &Thread)> = self
            .threads
            .tracks
            .iter()
            .filter_map(|track| Some((track, list.get(track.thread)?)))
            .collect();
        order.sort_by_key(|(track, thread)| {
            let is_other = thread.tid != thread.pid;
            let event = number(track.event);
            (thread.pid, is_other, thread.tid, track.thread, event)
        });
        let first = self.first_time.unwrap_or(0);
        let since = |time: u64| milliseconds(first, time);
        let mut json = Writer::new(&mut self.out, ",");
        // The first thread of each process.
        let mut mains: HashMap<u32, usize, RandomState> = HashMap::default();
        for (at, (track, thread)) in order.into_iter().enumerate() {
            mains.entry(thread.pid).or_insert(at);
            let event = self.events.get(number(track.event));
            let mut name = thread.comm.to_vec();
            if let Some(cpu) = thread.cpu {
                name.extend(format!(" (CPU {cpu})").bytes());
            }
            if let Some(event) = event.filter(|_| self.events.list().len() > 1) {
                name.extend_from_slice(b": ");
                name.extend_from_slice(&event.name);
            }
            let process = processes.get(&thread.pid).copied().unwrap_or(&thread.comm);
            let (pid, tid) = (thread.pid.cast_signed(), thread.tid.cast_signed());
            let end = thread.end.map_or("null".into(), since);
            let head = format!(
                "{}\n{{\"processType\":\"default\",\"processName\":{},\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":{},\"unregisterTime\":{end},\"pausedRanges\":[],\"name\":{},\"isMainThread\":{},\"pid\":\"{pid}\",\"tid\":{tid},\"showMarkersInTimeline\":true,\n\"samples\":{{",
                if at == 0 { "" } else { "," },
                json::string(process),
                thread.start.map_or("0".into(), since),
                json::string(&name),
                pid == tid && thread.is_first(track.event),
            );
            json.open(&head)?;
            let is_time = event.is_some_and(|event| event.is_time);
            let column =
                |json: &mut Writer<'_, _>, key: &str, text: &dyn Fn(&super::Point) -> String| {
                    json.key(key)?;
                    json.open("[")?;
                    let mut last = 0;
                    self.threads.samples(track, |mut point| {
                        // Times must not decrease.
                        point.time = point.time.max(last);
                        last = point.time;
                        json.item(&text(&point))
                    })?;
                    json.close("]")
                };
            column(
                &mut json,
                "stack",
                &|point| match point.stack.checked_sub(1) {
                    Some(stack) => stack.to_string(),
                    None => "null".into(),
                },
            )?;
            column(&mut json, "time", &|point| since(point.time))?;
            column(&mut json, "weight", &|point| match is_time {
                true => milliseconds(0, point.weight),
                false => point.weight.to_string(),
            })?;
            let weights = if is_time { "tracing-ms" } else { "samples" };
            json.value("weightType", format_args!("\"{weights}\""))?;
            json.value("length", track.count)?;
            json.open("},\n\"markers\":{")?;
            let column =
                |json: &mut Writer<'_, _>, key: &str, text: &dyn Fn(&super::Marker) -> String| {
                    json.key(key)?;
                    json.open("[")?;
                    self.threads
                        .markers(track, |marker| json.item(&text(&marker)))?;
                    json.close("]")
                };
            column(&mut json, "data", &|marker| {
                String::from_utf8_lossy(&marker.data).into_owned()
            })?;
            column(&mut json, "name", &|marker| marker.name.to_string())?;
            column(&mut json, "startTime", &|marker| since(marker.start))?;
            column(&mut json, "endTime", &|marker| {
                marker.end.map_or("null".into(), since)
            })?;
            // An instant, or an interval.
            column(&mut json, "phase", &|marker| {
                u8::from(marker.end.is_some()).to_string()
            })?;
            column(&mut json, "category", &|marker| marker.category.to_string())?;
            json.value("length", track.marker_count)?;
            json.close("}}")?;
        }
        json.put("]")?;
        self.write_counters(&mains)
    }

    /// Writes the memory of all processes. `threads` are the numbers of their first threads.
    fn write_counters(&mut self, threads: &HashMap<u32, usize, RandomState>) -> Result<()> {
        let first = self.first_time.unwrap_or(0);
        let mut json = Writer::new(&mut self.out, ",");
        json.put(",\n\"counters\":[")?;
        let processes = self.memory.processes.iter();
        let processes = processes.filter_map(|(pid, process)| {
            let thread = threads.get(pid)?;
            Some((pid.cast_signed(), thread, process))
        });
        for (at, (pid, thread, process)) in processes.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            json.open(&format!(
                "{comma}\n{{\"name\":\"Resident memory\",\"category\":\"Memory\",\"description\":\"kmem:rss_stat\",\"pid\":\"{pid}\",\"mainThreadIndex\":{thread},\n\"samples\":{{"
            ))?;
            let mut column = |key: &str, text: &dyn Fn(u64, i64) -> String| {
                json.key(key)?;
                json.open("[")?;
                let memory = &self.memory;
                memory.changes(process, |time, delta| json.item(&text(time, delta)))?;
                json.close("]")
            };
            column("time", &|time, _| milliseconds(first, time))?;
            column("count", &|_, delta| delta.to_string())?;
            json.value("length", process.count)?;
            json.close("}}")?;
        }
        json.put("]")
    }

    /// Writes the tables of all threads.
    fn write_shared(&mut self, tables: &Tables) -> Result<()> {
        let mut libraries: HashMap<&[u8], usize, RandomState> = HashMap::default();
        for (at, module) in tables.modules().iter().enumerate() {
            libraries.entry(&module.name).or_insert(at);
        }
        let mut resources: Interned<Box<[u8]>> = Interned::default();
        let mut sources: Interned<Arc<[u8]>> = Interned::default();
        let mut funcs = Vec::new();
        let number =
            |number: Option<u32>| number.map_or("null".into(), |number| number.to_string());
        for frame in &self.functions.list {
            let source = frame.source.as_ref();
            let file = source.map(|(file, _)| sources.number(file.clone()));
            let line = source.map(|&(_, line)| line).filter(|&line| line != 0);
            let resource = match frame.module.is_empty() {
                true => "-1".into(),
                false => resources.number(frame.module.clone()).to_string(),
            };
            let name = self.strings.number(frame.name.clone());
            funcs.push((name, resource, number(file), number(line)));
        }
        let files: Vec<u32> = sources
            .list
            .iter()
            .map(|file| self.strings.number(file.as_ref().into()))
            .collect();
        let names: Vec<u32> = resources
            .list
            .iter()
            .map(|module| self.strings.number(module.clone()))
            .collect();
        let functions = &self.functions.list;
        let frames = &self.frames.list;
        let count = frames.len();
        let mut json = Writer::new(&mut self.out, ",");
        let nodes = || self.tree.nodes().iter().skip(1);
        json.open(",\n\"shared\":{\"stackTable\":{")?;
        json.list("frame", nodes(), |node| node.frame.to_string())?;
        json.list("prefix", nodes(), |node| match node.parent.checked_sub(1) {
            Some(parent) => parent.to_string(),
            None => "null".into(),
        })?;
        json.value("length", nodes().count())?;
        json.open("},\n\"frameTable\":{")?;
        same(&mut json, "address", "-1", count)?;
        json.list("inlineDepth", frames, |frame| frame.depth.to_string())?;
        json.list("category", frames, |frame| {
            let function = usize::try_from(frame.function).ok();
            let function = function.and_then(|at| functions.get_index(at));
            let category = match function.map(|function| function.code) {
                Some(Code::User) => 0,
                Some(Code::Kernel) => 1,
                Some(Code::Generated) => 2,
                Some(Code::Unknown) | None => super::OTHER,
            };
            category.to_string()
        })?;
        same(&mut json, "subcategory", "0", count)?;
        json.list("func", frames, |frame| frame.function.to_string())?;
        json.list("line", frames, |frame| {
            number(Some(frame.line).filter(|&line| line != 0))
        })?;
        for key in ["nativeSymbol", "innerWindowID", "column"] {
            same(&mut json, key, "null", count)?;
        }
        json.value("length", count)?;
        json.open("},\n\"funcTable\":{")?;
        json.list("name", &funcs, |func| func.0.to_string())?;
        let count = funcs.len();
        same(&mut json, "isJS", "false", count)?;
        same(&mut json, "relevantForJS", "false", count)?;
        json.list("resource", &funcs, |func| func.1.clone())?;
        json.list("source", &funcs, |func| func.2.clone())?;
        json.list("lineNumber", &funcs, |func| func.3.clone())?;
        same(&mut json, "columnNumber", "null", count)?;
        json.value("length", count)?;
        json.open("},\n\"resourceTable\":{")?;
        let count = names.len();
        same(&mut json, "type", &LIBRARY.to_string(), count)?;
        json.list("lib", &resources.list, |module| {
            let library = libraries.get(&**module);
            library.map_or("null".into(), usize::to_string)
        })?;
        json.list("name", &names, |name| name.to_string())?;
        same(&mut json, "host", "null", count)?;
        json.value("length", count)?;
        json.open("},\n\"nativeSymbols\":{")?;
        for key in ["libIndex", "address", "name", "functionSize"] {
            same(&mut json, key, "", 0)?;
        }
        json.value("length", 0)?;
        json.open("},\"sources\":{")?;
        let count = files.len();
        same(&mut json, "id", "null", count)?;
        json.list("filename", &files, |file| file.to_string())?;
        json.value("length", count)?;
        json.open("},\n")?;
        json.list("stringArray", &self.strings.list, |name| json::string(name))?;
        json.put("}}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(milliseconds(0, 1_234_567_890), "1234.567890");
        assert_eq!(milliseconds(10, 3), "-0.000007");
        assert_eq!(milliseconds(0, u64::MAX), "18446744073709.551615");
    }

    #[test]
    fn build_ids_become_guids() {
        let id: Vec<u8> = (1..=20).collect();
        let id = BuildId::new(&id);
        assert_eq!(
            breakpad_id(id.as_ref()),
            "0403020106050807090A0B0C0D0E0F100"
        );
    }
}
