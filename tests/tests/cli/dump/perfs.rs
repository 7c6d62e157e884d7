//! perf's expected output for the records that `perfconv dump` shows, and comparison with its
//! actual output.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use perfdata_convert::io::Input;
use perfdata_report::show::overview::Overview;
use perfdata_tests::{
    perf::{self, Perf},
    recordings::Endian,
};
use serde_json::Value;

use super::details;
use super::perf_text::{self, Said, spaced};

/// Compares the output of `perfconv dump` and `perf` for every record of the recording at `path`.
/// perf sorts records by time, so the order is not compared.
pub fn compare(perf: &Perf, path: &Path) -> Result<(), String> {
    compare_with(perf, path, false)
}

/// Does the same including the names of registers: those of the machine that perf was built for,
/// which must be that of the recording.
pub fn compare_with_registers(perf: &Perf, path: &Path) -> Result<(), String> {
    compare_with(perf, path, true)
}

fn compare_with(perf: &Perf, path: &Path, registers: bool) -> Result<(), String> {
    let said_of = |mut said: Said| {
        if !registers {
            said.forget_registers();
        }
        said
    };
    let records = super::records(path)?;
    let perfs = Perfs::new(perf, path)?;
    let said = perf_text::parse(&asked(perf, path)?);
    let mut difference = BTreeMap::<Said, i32>::new();
    for record in records.iter().filter(|record| perfs.shows(record)) {
        check_misc(record, perfs.is_big)?;
        *difference
            .entry(said_of(perfs.said_of(record)))
            .or_default() += 1;
    }
    for mut said in said
        .into_iter()
        .filter(|said| !perfs.is_split || said.kind() != "FINISHED_ROUND")
    {
        perfs.harmonise(&mut said);
        *difference.entry(said_of(said)).or_default() -= 1;
    }
    difference.retain(|_, count| *count != 0);
    if difference.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = difference
        .iter()
        .map(|(said, count)| {
            let who = if *count > 0 { "ours" } else { "perf" };
            format!(
                "{who} {}\n     {}\n     {}",
                said.title,
                said.bytes,
                said.details.join("\n     ")
            )
        })
        .collect();
    let shown = lines.get(..20).unwrap_or(&lines);
    Err(format!(
        "{perf}, {} differences:\n{}",
        lines.len(),
        shown.join("\n")
    ))
}

fn asked(perf: &Perf, path: &Path) -> Result<String, String> {
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    let mut command = perf.command();
    command
        .args(["script", "-D", "--no-inline", "-i"])
        .arg(path);
    let output = perf::run(command).map_err(|error| error.to_string())?;
    if output.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{perf} failed: {}", output.stderr))
    }
}

/// The properties of an event that affect the output for its records.
pub struct Event {
    name: String,
    ids: Vec<u64>,
    /// `sample_period`, which samples may omit.
    pub period: Option<u64>,
    parts: Vec<String>,
    /// `read_format`.
    pub read: Vec<String>,
    /// `sample_regs_user` and `sample_regs_intr`.
    pub masks: [String; 2],
}

impl Event {
    fn new(event: &Value) -> Self {
        let attr = &event["attr"];
        let names = |value: &Value| {
            let names = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Event {
            name: text(&event["name"]),
            ids: event["ids"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_u64)
                .collect(),
            period: attr["sample_period"].as_u64(),
            parts: names(&attr["sample_type"]),
            read: names(&attr["read_format"]),
            masks: ["sample_regs_user", "sample_regs_intr"].map(|field| text(&attr[field])),
        }
    }

    /// Returns whether its samples have a field.
    pub fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|name| name == part)
    }
}

/// perf's format for the records of one recording: `[cpu] [time] offset [size]: PERF_RECORD_…`.
pub struct Perfs {
    /// perf counts from the end of a pipe's header.
    base: u64,
    /// Whether the records are in several files with separate offsets.
    is_split: bool,
    has_cpu: bool,
    has_time: bool,
    events: Vec<Event>,
    by_id: HashMap<u64, usize>,
    /// The byte order of recording and perf.
    pub is_big: bool,
    /// Before 7.0, perf supports the three numbers in a WEIGHT_STRUCT only on some machines, not on
    /// s390x.
    pub splits_weights: bool,
}

impl Perfs {
    fn new(perf: &Perf, path: &Path) -> Result<Self, String> {
        let input = Input::open(path).map_err(|error| error.to_string())?;
        let overview = Overview::of(input).map_err(|error| error.to_string())?;
        let info: Value =
            serde_json::from_str(&overview.json()).map_err(|error| error.to_string())?;
        let events = info["events"].as_array().ok_or("no events")?;
        let events: Vec<_> = events.iter().map(Event::new).collect();
        let has = |part: &str| events.iter().any(|event| event.has(part));
        Ok(Perfs {
            base: if info["container"] == "pipe" { 16 } else { 0 },
            is_split: path.join("data.0").exists(),
            has_cpu: has("CPU"),
            has_time: has("TIME"),
            by_id: (0..)
                .zip(&events)
                .flat_map(|(at, event)| event.ids.iter().map(move |id| (*id, at)))
                .collect(),
            events,
            is_big: perf.endian == Endian::Big,
            splits_weights: perf.endian == Endian::Little || perf.version.major >= 7,
        })
    }

    /// perf shows the contents of compressed records instead of these records.
    fn shows(&self, record: &Value) -> bool {
        !matches!(record["type"].as_str(), Some("COMPRESSED" | "COMPRESSED2"))
    }

    /// Returns the event of a record.
    pub fn event_of(&self, record: &Value) -> Option<&Event> {
        let fields = if record["type"] == "SAMPLE" {
            &record["fields"]
        } else {
            &record["sample_id"]
        };
        let id = fields["identifier"].as_u64().or(fields["id"].as_u64());
        let by_id = id
            .and_then(|id| self.by_id.get(&id))
            .and_then(|at| self.events.get(*at));
        by_id.or_else(|| {
            self.events
                .iter()
                .find(|event| record["event"] == event.name.as_str())
        })
    }

    /// Converts the output of `perfconv dump` for a record to perf's output.
    fn said_of(&self, record: &Value) -> Said {
        let kind = record["type"].as_str().unwrap_or("?");
        // perf ignores the trailer of an injected build ID.
        let id = match kind {
            "SAMPLE" => &record["fields"],
            "HEADER_BUILD_ID" => &Value::Null,
            _ => &record["sample_id"],
        };
        // perf prints -1 for fields that the event's records do not have; 0 if they have no
        // trailer.
        let has_some = id.as_object().is_some_and(|id| !id.is_empty());
        let mut stamp = Vec::new();
        if self.has_cpu {
            let none = if has_some { u64::from(u32::MAX) } else { 0 };
            stamp.push(id["cpu"]["cpu"].as_u64().unwrap_or(none).to_string());
        }
        if self.has_time {
            let none = if has_some { u64::MAX } else { 0 };
            stamp.push(id["time"].as_u64().unwrap_or(none).to_string());
        }
        let offset = match record["offset"].as_u64().unwrap_or(0) - self.base {
            0 => "0".to_owned(),
            offset => format!("{offset:#x}"),
        };
        let size = record["size"].as_u64().unwrap_or(0);
        // A name may contain several lines.
        let detail = details::title(kind, record, self);
        let detail = spaced(detail.lines().next().unwrap_or_default());
        let kind = kind.trim_start_matches("HEADER_");
        Said {
            title: self.title(
                &stamp.join(" "),
                &offset,
                &format!("{size:#x}"),
                &format!("{kind}{detail}"),
            ),
            bytes: bytes_of(record).collect(),
            details: details::lines(kind, record, self),
        }
    }

    /// Converts a title of perf to the form of [`said_of`](Self::said_of).
    fn harmonise(&self, said: &mut Said) {
        let Some((place, what)) = said.title.split_once("]: ") else {
            return;
        };
        let Some((place, size)) = place.rsplit_once(" [") else {
            return;
        };
        let (stamp, offset) = place.rsplit_once(' ').unwrap_or(("", place));
        // For records that are older than all events, or whose events have no trailer.
        let none = [self.has_cpu, self.has_time]
            .iter()
            .filter(|has| **has)
            .map(|_| "0")
            .collect::<Vec<_>>()
            .join(" ");
        let stamp = if stamp == "-1 -1" { &none } else { stamp };
        said.title = self.title(stamp, offset, size, what);
        if said.title.contains("AUXTRACE_INFO type: ") && !said.title.ends_with("type: 1") {
            said.details.clear();
        }
    }

    /// Returns the number in these bytes.
    pub fn number(&self, bytes: &str) -> Option<u64> {
        let number = u64::from_str_radix(bytes, 16).ok()?;
        let unused = 64_u32.checked_sub(u32::try_from(4 * bytes.len()).ok()?)?;
        Some(if self.is_big {
            number
        } else {
            number.swap_bytes() >> unused
        })
    }

    fn title(&self, stamp: &str, offset: &str, size: &str, what: &str) -> String {
        let offset = if self.is_split { "" } else { offset };
        // The two ways of displaying bytes that are not UTF-8.
        format!(
            "{stamp} {offset} [{size}]: {}",
            what.replace('\u{fffd}', "\\x")
        )
    }
}

fn bytes_of(record: &Value) -> impl Iterator<Item = &str> {
    record["spans"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|span| span["bytes"].as_str())
}

/// Checks the names of the bits of `misc`, from `include/uapi/linux/perf_event.h` and perf's
/// `util/event.h`.
fn check_misc(record: &Value, is_big: bool) -> Result<(), String> {
    let bytes: String = bytes_of(record).collect();
    let misc = bytes
        .get(8..12)
        .and_then(|misc| u16::from_str_radix(misc, 16).ok())
        .ok_or("no header")?;
    let misc = if is_big { misc } else { misc.swap_bytes() };
    let kind = record["type"].as_str().unwrap_or("?");
    let modes = [
        "",
        "KERNEL",
        "USER",
        "HYPERVISOR",
        "GUEST_KERNEL",
        "GUEST_USER",
    ];
    let mode = modes
        .get(usize::from(misc & 7))
        .map_or_else(|| format!("{:#x}", misc & 7), |name| (*name).to_owned());
    let mut names = vec![mode];
    let mut unknown = 0;
    for bit in (3..16).filter(|bit| misc & 1 << bit != 0) {
        let name = match (bit, kind) {
            (12, "MMAP" | "MMAP2") => "PROC_MAP_PARSE_TIMEOUT",
            (13, "MMAP" | "MMAP2") => "MMAP_DATA",
            (13, "COMM") => "COMM_EXEC",
            (13, "FORK") => "FORK_EXEC",
            (13, "SWITCH" | "SWITCH_CPU_WIDE") => "SWITCH_OUT",
            (14, "SWITCH" | "SWITCH_CPU_WIDE") => "SWITCH_OUT_PREEMPT",
            (14, "SAMPLE") => "EXACT_IP",
            (14, "MMAP2") => "MMAP_BUILD_ID",
            (15, "LOST_SAMPLES") => "LOST_SAMPLES_BPF",
            (15, "HEADER_BUILD_ID") => "BUILD_ID_SIZE",
            _ => {
                unknown |= 1 << bit;
                continue;
            }
        };
        names.push(name.to_owned());
    }
    names.extend((unknown != 0).then(|| format!("{unknown:#x}")));
    names.retain(|name| !name.is_empty());
    let found = record["misc"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let found: Vec<_> = found.collect();
    if names == found {
        Ok(())
    } else {
        Err(format!(
            "misc {misc:#x} of {kind} is {found:?}, not {names:?}"
        ))
    }
}
