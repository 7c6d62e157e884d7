//! `perfconv dump` says of every record what perf says of it.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    time::Duration,
};

use perfdata_convert::{
    io::Input,
    show::{dump::Dump, overview::Overview},
};
use perfdata_tests::{
    judge, per_fixture,
    perf::{self, Perf},
    recordings::{self, Container, Form, Recording},
    snapshot,
};
use serde_json::Value;

/// What perf needs at most for one recording, emulated and on a busy machine, several times over.
const TIMEOUT: Duration = Duration::from_secs(120);

fn dump(path: &Path, dump: &Dump) -> Result<String, String> {
    let mut out = Vec::new();
    let input = Input::open(path).map_err(|error| error.to_string())?;
    dump.run(input, &mut out).map_err(|error| error.to_string())?;
    String::from_utf8(out).map_err(|error| error.to_string())
}

fn json(path: &Path) -> Result<Vec<Value>, String> {
    let text = dump(path, &Dump { json: true, ..Dump::default() })?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))).collect()
}

/// The dump of a small recording, as it was found right: `UPDATE_SNAPSHOTS=1` writes it anew.
#[test]
fn a_small_recording_in_every_form() {
    let recording = recordings::fixture("6.1-i386-stat-record-I");
    let forms = [
        ("txt", Dump::default()),
        ("jsonl", Dump { json: true, ..Dump::default() }),
        ("hex", Dump { hex: true, ..Dump::default() }),
    ];
    for (extension, form) in forms {
        let path = recordings::root().join(format!("tests/snapshots/{}.{extension}", recording.name));
        snapshot::check(&path, &dump(&recording.path, &form).expect("a fixture is readable"));
    }
}

/// Every byte of every record, and of what is around the records, has a name.
#[test]
fn every_byte_is_shown() {
    recordings::check_all(&recordings::all(), |recording| {
        let form = Dump { json: true, hex: true, ..Dump::default() };
        let text = match dump(&recording.main_file(), &form) {
            Err(error) if recording.name.starts_with("crashers/") && error.contains("at offset") => return Ok(()),
            other => other?,
        };
        for line in text.lines() {
            let item: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            let spans = item["spans"].as_array().ok_or("no bytes")?;
            let mut here = 0;
            for span in spans {
                if span["at"] != here || span["field"] == "" {
                    return Err(format!("{here} bytes into {item:#}"));
                }
                here += span["size"].as_u64().unwrap_or(0);
            }
            if item["size"] != here {
                return Err(format!("{here} bytes of {item:#}"));
            }
        }
        Ok(())
    });
}

#[test]
fn types_and_number_are_chosen() {
    let path = recordings::fixture("7.2-x86_64-file-z").path;
    let types = ["comm", "Mmap2", "9"].map(|name| Dump::type_of(name).expect("a type"));
    let form = Dump { types: types.to_vec(), limit: Some(30), ..Dump::default() };
    let text = dump(&path, &form).expect("a fixture is readable");
    let mut found: Vec<_> = text.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(found.len(), 30);
    found.sort();
    found.dedup();
    assert_eq!(found, ["COMM", "MMAP2", "SAMPLE"]);

    let error = Dump::type_of("MMAP3").expect_err("no type").to_string();
    assert!(error.contains("MMAP3") && error.contains("MMAP2") && error.contains("SCHEDSTAT_DOMAIN"), "{error}");
}

per_fixture!(says_what_perf_says);

/// perf sorts records by their time, and does not say which compressed record one came out of.
fn says_what_perf_says(recording: &Recording) -> Result<(), String> {
    let records = json(&recording.main_file())?;
    let Some(perf) = judge::native(recording) else { return Ok(()) };
    let is_directory = matches!(recording.form, Some(Form { container: Container::Directory, .. }));
    // perf refuses some of its own recordings.
    if is_directory || recording.script_text().is_none_or(|text| text.is_empty()) {
        return Ok(());
    }
    let perfs = Perfs::new(recording, &records)?;
    let mut difference = BTreeMap::<String, i32>::new();
    // perf does not show compressed records, but what is in them.
    for record in records.iter().filter(|record| !matches!(record["type"].as_str(), Some("COMPRESSED" | "COMPRESSED2")))
    {
        *difference.entry(perfs.line(record)).or_default() += 1;
    }
    for line in asked(perf, recording)?.lines().filter_map(|line| perfs.parse(line)) {
        *difference.entry(line).or_default() -= 1;
    }
    let difference: Vec<_> = difference
        .iter()
        .filter(|(_, count)| **count != 0)
        .map(|(line, count)| format!("{} {line}", if *count > 0 { "ours" } else { "perf" }))
        .collect();
    let shown = difference.get(..20).unwrap_or(&difference);
    if difference.is_empty() { Ok(()) } else { Err(format!("{perf}:\n{}", shown.join("\n"))) }
}

fn asked(perf: &Perf, recording: &Recording) -> Result<String, String> {
    let path = recording.path.canonicalize().map_err(|error| error.to_string())?;
    let mut command = perf.command();
    command.args(["script", "-D", "-i"]).arg(path);
    let output = perf::run(command, TIMEOUT).map_err(|error| error.to_string())?;
    if output.success() { Ok(output.stdout) } else { Err(format!("{perf} failed: {}", output.stderr)) }
}

/// How perf writes the records of one recording: `[cpu] [time] offset [size]: PERF_RECORD_…`.
struct Perfs {
    /// perf counts from the end of a pipe's header.
    base: u64,
    /// Whether records are inside compressed ones.
    compressed: bool,
    has_cpu: bool,
    has_time: bool,
    /// The events' periods, which samples need not repeat.
    periods: HashMap<String, u64>,
}

impl Perfs {
    fn new(recording: &Recording, records: &[Value]) -> Result<Self, String> {
        let input = Input::open(&recording.main_file()).map_err(|error| error.to_string())?;
        let overview = Overview::of(input).map_err(|error| error.to_string())?;
        let info: Value = serde_json::from_str(&overview.json()).map_err(|error| error.to_string())?;
        let events = info["events"].as_array().ok_or("no events")?;
        let has = |part: &str| {
            let parts = events.iter().flat_map(|event| event["attr"]["sample_type"].as_array()).flatten();
            parts.into_iter().any(|name| name == part)
        };
        Ok(Perfs {
            base: if info["container"] == "pipe" { 16 } else { 0 },
            compressed: records.iter().any(|record| record.get("inner").is_some()),
            has_cpu: has("CPU"),
            has_time: has("TIME"),
            periods: events
                .iter()
                .filter_map(|event| {
                    Some((event["name"].as_str()?.to_owned(), event["attr"]["sample_period"].as_u64()?))
                })
                .collect(),
        })
    }

    /// A line of perf's dump, in the form that [`line`](Self::line) has.
    fn parse(&self, line: &str) -> Option<String> {
        let (place, what) = line.split_once("]: PERF_RECORD_")?;
        let (place, size) = place.rsplit_once(" [")?;
        let (stamp, offset) = place.rsplit_once(' ').unwrap_or(("", place));
        // Said of records that are older than all events, or whose events have no trailer.
        let none = [self.has_cpu, self.has_time].iter().filter(|has| **has).map(|_| "0").collect::<Vec<_>>().join(" ");
        let stamp = if stamp == "-1 -1" { &none } else { stamp };
        Some(self.join(stamp, offset, size, what.trim_end()))
    }

    /// What perf says of a record that `perfconv dump` says this of.
    fn line(&self, record: &Value) -> String {
        let name = record["type"].as_str().unwrap_or("?");
        let fields = &record["fields"];
        // perf does not look at the trailer of an injected build id.
        let id = match name {
            "SAMPLE" => fields,
            "HEADER_BUILD_ID" => &Value::Null,
            _ => &record["sample_id"],
        };
        let mut stamp = Vec::new();
        if self.has_cpu {
            stamp.push(id["cpu"]["cpu"].as_u64().unwrap_or(0).to_string());
        }
        if self.has_time {
            stamp.push(id["time"].as_u64().unwrap_or(0).to_string());
        }
        let offset = record["offset"].as_u64().unwrap_or(0) - self.base;
        let offset = if offset == 0 { "0".to_owned() } else { format!("{offset:#x}") };
        let size = format!("{:#x}", record["size"].as_u64().unwrap_or(0));
        let what = format!("{}{}", name.trim_start_matches("HEADER_"), self.detail(name, record, fields));
        // A name may have lines of its own.
        self.join(&stamp.join(" "), &offset, &size, what.lines().next().unwrap_or("").trim_end())
    }

    fn join(&self, stamp: &str, offset: &str, size: &str, what: &str) -> String {
        let offset = if self.compressed { "" } else { offset };
        // The two ways of showing bytes that are no UTF-8.
        let what = what.replace('\u{fffd}', "\\x");
        let type_end = what.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
        let (name, detail) = what.split_at(type_end.unwrap_or(what.len()));
        // The head of the table of counts follows without a line break.
        let name = if name == "STAT_ROUNDCPU" { "STAT_ROUND" } else { name };
        let detail = if KNOWN.contains(&name) { detail } else { "" };
        format!("{stamp} {offset} [{size}]: {name}{detail}")
    }

    /// What perf says of a record behind its type.
    fn detail(&self, name: &str, record: &Value, fields: &Value) -> String {
        let misc: Vec<_> = record["misc"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let text = |name: &str| fields[name].as_str().unwrap_or("?").to_owned();
        let number = |name: &str| fields[name].to_string();
        let hex = |value: &Value| match value.as_str() {
            Some("0x0") | None => "0".to_owned(),
            Some(text) => text.to_owned(),
        };
        match name {
            "MMAP" => {
                let [addr, len, pgoff] = ["addr", "len", "pgoff"].map(|name| hex(&fields[name]));
                let kind = if misc.contains(&"MMAP_DATA") { 'r' } else { 'x' };
                let (pid, tid) = (number("pid"), number("tid"));
                format!(" {pid}/{tid}: [{addr}({len}) @ {pgoff}]: {kind} {}", text("filename"))
            }
            "MMAP2" => {
                let [addr, len, pgoff] = ["addr", "len", "pgoff"].map(|name| hex(&fields[name]));
                let file = match (&fields["inode"], &fields["build_id"]) {
                    (inode @ Value::Object(_), _) => {
                        let number = |name: &str| inode[name].as_u64().unwrap_or(0);
                        let device = format!("{:02x}:{:02x}", number("maj"), number("min"));
                        format!("{device} {} {}", number("ino"), number("ino_generation"))
                    }
                    (_, id) => {
                        let size = usize::try_from(id["build_id_size"].as_u64().unwrap_or(0)).unwrap_or(0);
                        format!("<{}>", id["build_id"].as_str().and_then(|id| id.get(..2 * size)).unwrap_or("?"))
                    }
                };
                let (prot, flags) = (fields["prot"].as_u64().unwrap_or(0), hex(&fields["flags"]));
                let shared = flags.chars().last().is_some_and(|digit| digit.to_digit(16).is_some_and(|d| d & 1 == 1));
                let letter = |bit: u64, letter: char| if prot & bit != 0 { letter } else { '-' };
                let prot: String =
                    [letter(1, 'r'), letter(2, 'w'), letter(4, 'x'), if shared { 's' } else { 'p' }].iter().collect();
                let (pid, tid) = (number("pid"), number("tid"));
                format!(" {pid}/{tid}: [{addr}({len}) @ {pgoff} {file}]: {prot} {}", text("filename"))
            }
            "COMM" => {
                let exec = if misc.contains(&"COMM_EXEC") { " exec" } else { "" };
                format!("{exec}: {}:{}/{}", text("comm"), number("pid"), number("tid"))
            }
            "FORK" | "EXIT" => {
                format!("({}:{}):({}:{})", number("pid"), number("tid"), number("ppid"), number("ptid"))
            }
            "SAMPLE" => {
                let modes = ["", "KERNEL", "USER", "HYPERVISOR", "GUEST_KERNEL", "GUEST_USER"];
                let mode = modes.iter().position(|mode| misc.contains(mode)).unwrap_or(0);
                let exact = if misc.contains(&"EXACT_IP") { 0x4000 } else { 0 };
                let tid = |name: &str| fields["tid"][name].as_i64().unwrap_or(-1);
                let (ip, addr) = (hex(&fields["ip"]), hex(&fields["addr"]));
                let event = record["event"].as_str().and_then(|name| self.periods.get(name));
                let period = fields["period"].as_u64().or(event.copied()).unwrap_or(0);
                format!("(IP, {:#x}): {}/{}: {ip} period: {period} addr: {addr}", mode | exact, tid("pid"), tid("tid"))
            }
            "CGROUP" => format!(" cgroup: {} {}", number("id"), text("path")),
            "NAMESPACES" => {
                let count = fields["namespaces"].as_array().map_or(0, Vec::len);
                format!(" {}/{} - nr_namespaces: {count}", number("pid"), number("tid"))
            }
            _ => String::new(),
        }
    }
}

/// The types whose line tells more than the type.
const KNOWN: [&str; 8] = ["MMAP", "MMAP2", "COMM", "FORK", "EXIT", "SAMPLE", "CGROUP", "NAMESPACES"];
