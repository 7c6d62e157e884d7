//! perf's output for each type of record, after its name.

use serde_json::Value;

use super::perfs::Perfs;
use super::sample;

/// Returns a number, which may be in hexadecimal.
pub fn number(value: &Value) -> u64 {
    match value {
        Value::String(text) => text
            .strip_prefix("0x")
            .and_then(|hex| u64::from_str_radix(hex, 16).ok())
            .unwrap_or(0),
        // -1 means none.
        value => value
            .as_u64()
            .or(value.as_i64().map(i64::cast_unsigned))
            .unwrap_or(0),
    }
}

/// `%#lx`
pub fn hex(value: &Value) -> String {
    match number(value) {
        0 => "0".to_owned(),
        number => format!("{number:#x}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> + Clone {
    value.as_array().into_iter().flatten()
}

fn has(names: &Value, name: &str) -> bool {
    list(names).any(|other| other == name)
}

/// Returns the numbers of the fields whose names start with `start`, in file order.
fn numbers(record: &Value, start: &str, perfs: &Perfs) -> Vec<u64> {
    let spans = list(&record["spans"]).filter(|span| {
        span["field"]
            .as_str()
            .is_some_and(|name| name.starts_with(start))
    });
    spans
        .filter_map(|span| perfs.number(span["bytes"].as_str()?))
        .collect()
}

/// Returns the rest of the line with the name of the type.
pub fn title(kind: &str, record: &Value, perfs: &Perfs) -> String {
    let fields = &record["fields"];
    let [pid, tid, id] = ["pid", "tid", "id"].map(|name| fields[name].to_string());
    let [addr, len, pgoff] = ["addr", "len", "pgoff"].map(|name| hex(&fields[name]));
    match kind {
        "MMAP" => {
            let kind = if has(&record["misc"], "MMAP_DATA") {
                'r'
            } else {
                'x'
            };
            format!(
                " {pid}/{tid}: [{addr}({len}) @ {pgoff}]: {kind} {}",
                text(&fields["filename"])
            )
        }
        "MMAP2" => {
            let (file, prot) = (mapped(fields), prot(fields));
            format!(
                " {pid}/{tid}: [{addr}({len}) @ {pgoff} {file}]: {prot} {}",
                text(&fields["filename"])
            )
        }
        "COMM" => {
            let exec = if has(&record["misc"], "COMM_EXEC") {
                " exec"
            } else {
                ""
            };
            format!("{exec}: {}:{pid}/{tid}", text(&fields["comm"]))
        }
        "FORK" | "EXIT" => format!("({pid}:{tid}):({}:{})", fields["ppid"], fields["ptid"]),
        "SAMPLE" => sample::title(record, perfs),
        "CALLCHAIN_DEFERRED" => {
            let [pid, tid] =
                ["pid", "tid"].map(|name| record["sample_id"]["tid"][name].as_i64().unwrap_or(-1));
            format!(
                "(IP, {:#x}): {pid}/{tid}: {}",
                sample::misc(record),
                hex(&fields["cookie"])
            )
        }
        "CGROUP" => format!(" cgroup: {id} {}", text(&fields["path"])),
        "NAMESPACES" => format!(
            " {pid}/{tid} - nr_namespaces: {}",
            list(&fields["namespaces"]).count()
        ),
        "LOST" => format!(": id:{id}: lost:{}", fields["lost"]),
        "LOST_SAMPLES" => {
            let id = &record["sample_id"];
            let id = id["identifier"]
                .as_u64()
                .or(id["id"].as_u64())
                .unwrap_or(u64::MAX);
            let bpf = if has(&record["misc"], "LOST_SAMPLES_BPF") {
                " (BPF)"
            } else {
                ""
            };
            format!(": id:{id}: lost samples :{}{bpf}", fields["lost"])
        }
        "KSYMBOL" => {
            let kind = ["unknown", "bpf", "out-of-line"]
                .iter()
                .position(|name| fields["ksym_type"] == *name);
            let flags = u64::from(has(&fields["flags"], "UNREGISTER"));
            let (kind, name) = (kind.unwrap_or(usize::MAX), text(&fields["name"]));
            format!(
                " addr {:x} len {} type {kind} flags {flags:#x} name {name}",
                number(&fields["addr"]),
                fields["len"]
            )
        }
        "BPF_EVENT" => {
            let kind = ["unknown", "load", "unload"]
                .iter()
                .position(|name| fields["type"] == *name);
            format!(
                " type {}, flags {}, id {id}",
                kind.unwrap_or(usize::MAX),
                fields["flags"]
            )
        }
        "SWITCH" | "SWITCH_CPU_WIDE" => switch(kind, record),
        "AUX" => aux(fields),
        "ITRACE_START" => format!(" pid: {pid} tid: {tid}"),
        "AUX_OUTPUT_HW_ID" => format!(" hw_id: {}", hex(&fields["hw_id"])),
        "TEXT_POKE" => {
            let (old, new) = (&fields["old_len"], &fields["new_len"]);
            format!(" {:x} old len {old} new len {new}", number(&fields["addr"]))
        }
        "READ" => {
            let value = numbers(record, "values.", perfs)
                .first()
                .copied()
                .unwrap_or(0);
            format!(": {pid} {tid} {value}")
        }
        "ID_INDEX" => format!(" nr: {}", list(&fields["entries"]).count()),
        "AUXTRACE_INFO" => format!(" type: {}", u8::from(fields["type"] == "intel-pt")),
        "AUXTRACE" => {
            let [size, offset, reference] =
                ["size", "offset", "reference"].map(|name| hex(&fields[name]));
            let (idx, cpu) = (&fields["idx"], &fields["cpu"]);
            format!(
                " size: {size} offset: {offset} ref: {reference} idx: {idx} tid: {tid} cpu: {cpu}"
            )
        }
        "AUXTRACE_ERROR" => auxtrace_error(fields),
        "THREAD_MAP" => {
            let pids: Vec<_> = list(&fields["threads"])
                .map(|thread| thread["pid"].to_string())
                .collect();
            let s = if pids.len() == 1 { "" } else { "s" };
            format!(" nr: {} thread{s}: {}", pids.len(), pids.join(", "))
        }
        "CPU_MAP" => format!(": {}", cpus(fields)),
        "BPF_METADATA" => format!(" prog {}", text(&fields["prog_name"])),
        _ => String::new(),
    }
}

/// Returns the file of an MMAP2 record: device and inode, or build ID.
fn mapped(fields: &Value) -> String {
    let (inode, id) = (&fields["inode"], &fields["build_id"]);
    if inode.is_object() {
        let [maj, min, ino, generation] =
            ["maj", "min", "ino", "ino_generation"].map(|name| number(&inode[name]));
        return format!("{maj:02x}:{min:02x} {ino} {generation}");
    }
    let size = usize::try_from(number(&id["build_id_size"])).unwrap_or(0);
    format!("<{}>", text(&id["build_id"]).get(..2 * size).unwrap_or("?"))
}

fn prot(fields: &Value) -> String {
    let (prot, flags) = (number(&fields["prot"]), number(&fields["flags"]));
    let letter = |bit: u64, letter: char| if prot & bit != 0 { letter } else { '-' };
    [
        letter(1, 'r'),
        letter(2, 'w'),
        letter(4, 'x'),
        if flags & 1 == 1 { 's' } else { 'p' },
    ]
    .iter()
    .collect()
}

fn switch(kind: &str, record: &Value) -> String {
    let (misc, fields) = (&record["misc"], &record["fields"]);
    let (way, other) = if has(misc, "SWITCH_OUT") {
        ("OUT", "next")
    } else {
        ("IN", "prev")
    };
    let preempt = if has(misc, "SWITCH_OUT_PREEMPT") {
        " preempt"
    } else {
        ""
    };
    if kind == "SWITCH" {
        return format!(" {way}{preempt}");
    }
    format!(
        " {way}{preempt} {other} pid/tid: {}/{}",
        fields["next_prev_pid"], fields["next_prev_tid"]
    )
}

fn aux(fields: &Value) -> String {
    let letters = [
        (1, 'T', "TRUNCATED"),
        (2, 'O', "OVERWRITE"),
        (4, 'P', "PARTIAL"),
        (8, 'C', "COLLISION"),
    ];
    let flags = letters
        .iter()
        .filter(|(.., name)| has(&fields["flags"], name));
    // The second byte contains the form of the data.
    let form = if has(&fields["flags"], "FORMAT_0") {
        0x100
    } else {
        0
    };
    let word = flags.clone().map(|(bit, ..)| bit).sum::<u64>() + form;
    let [offset, size] = ["aux_offset", "aux_size"].map(|name| hex(&fields[name]));
    let letters: String = flags.map(|(_, letter, _)| letter).collect();
    format!(
        " offset: {offset} size: {size} flags: {} [{letters}]",
        hex(&word.into())
    )
}

fn auxtrace_error(fields: &Value) -> String {
    let detail = &fields["detail"];
    let time = match &detail["time"] {
        Value::Null => " time 0".to_owned(),
        time => format!(
            " time {}.{:09}",
            number(time) / 1_000_000_000,
            number(time) % 1_000_000_000
        ),
    };
    let guest = match &detail["machine_pid"] {
        Value::Null => String::new(),
        pid => format!(" machine_pid {pid} vcpu {}", detail["vcpu"]),
    };
    let [cpu, pid, tid, code] = ["cpu", "pid", "tid", "code"].map(|name| &fields[name]);
    let kind = if fields["type"] == "instruction trace" {
        1
    } else {
        0
    };
    let (ip, msg) = (
        hex(&fields["ip"]),
        detail["msg"].as_str().or(detail.as_str()).unwrap_or("?"),
    );
    let what = format!("{} error type {kind}", text(&fields["type"]));
    format!(" {what}{time}{guest} cpu {cpu} pid {pid} tid {tid} ip {ip} code {code}: {msg}")
}

/// Returns a set of CPUs as a list of ranges; -1 means any.
fn cpus(map: &Value) -> String {
    let mut found: Vec<i64> = Vec::new();
    let cpus = &map["cpus"];
    match map["type"].as_str() {
        Some("cpus") => found.extend(list(cpus).filter_map(Value::as_i64)),
        Some("mask") => {
            let bits = 8 * number(&cpus["long_size"]);
            for (word, start) in
                list(&cpus["words"]).zip((0..).step_by(usize::try_from(bits).unwrap_or(64)))
            {
                found.extend(
                    (0..bits)
                        .filter(|bit| number(word) >> bit & 1 == 1)
                        .map(|bit| start + bit.cast_signed()),
                );
            }
        }
        _ => {
            found.extend((number(&cpus["any_cpu"]) == 1).then_some(-1));
            found.extend(
                number(&cpus["start_cpu"]).cast_signed()..=number(&cpus["end_cpu"]).cast_signed(),
            );
        }
    }
    let runs = found.chunk_by(|a, b| a + 1 == *b);
    let runs = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Returns the lines below.
pub fn lines(kind: &str, record: &Value, perfs: &Perfs) -> Vec<String> {
    let fields = &record["fields"];
    match kind {
        "SAMPLE" => sample::lines(record, perfs),
        "CALLCHAIN_DEFERRED"
            if perfs
                .event_of(record)
                .is_some_and(|event| event.has("CALLCHAIN")) =>
        {
            sample::callchain(&fields["callchain"])
        }
        "ID_INDEX" => ids(fields),
        "TIME_CONV" => times(fields),
        "EVENT_UPDATE" => event_update(fields),
        "NAMESPACES" => vec![namespaces(fields)],
        "TEXT_POKE" => [("Old", &fields["old"]), ("New", &fields["new"])]
            .into_iter()
            .flat_map(|(name, bytes)| code(name, bytes.as_str().unwrap_or_default()))
            .collect(),
        "READ" => read(record, perfs),
        "AUXTRACE_INFO" if fields["type"] == "intel-pt" => intel_pt(record, perfs),
        "BPF_METADATA" => (0..)
            .zip(list(&fields["entries"]))
            .map(|(at, entry)| {
                format!(
                    "entry {at}: {} = {}",
                    text(&entry["key"]),
                    text(&entry["value"])
                )
            })
            .collect(),
        "SCHEDSTAT_CPU" => vec![counters(&format!("cpu{}", fields["cpu"]), record, perfs)],
        "SCHEDSTAT_DOMAIN" => vec![counters(
            &format!("domain{}", fields["domain"]),
            record,
            perfs,
        )],
        _ => Vec::new(),
    }
}

fn code(name: &str, bytes: &str) -> Vec<String> {
    let pairs: Vec<_> = bytes
        .as_bytes()
        .chunks(2)
        .map(String::from_utf8_lossy)
        .collect();
    pairs
        .chunks(16)
        .map(|line| format!("{name} bytes: {}", line.join(" ")))
        .collect()
}

fn counters(who: &str, record: &Value, perfs: &Perfs) -> String {
    numbers(record, "counters.", perfs)
        .into_iter()
        .fold(who.to_owned(), |line, count| format!("{line} {count}"))
}

/// Returns the words as numbers, and the filter after its length.
fn intel_pt(record: &Value, perfs: &Perfs) -> Vec<String> {
    let private = &record["fields"]["private"];
    let mut lines = Vec::new();
    for span in list(&record["spans"]) {
        let field = span["field"]
            .as_str()
            .and_then(|name| name.strip_prefix("private."));
        let Some(field) = field.filter(|field| *field != "filter") else {
            continue;
        };
        lines.push(
            perfs
                .number(text(&span["bytes"]))
                .map_or_else(String::new, |word| word.to_string()),
        );
        if field == "filter_str_len" {
            lines.push(private["filter"].as_str().unwrap_or_default().to_owned());
        }
    }
    lines
}

fn ids(fields: &Value) -> Vec<String> {
    let mut guests = list(&fields["guests"]);
    let entry = |entry: &Value| {
        let [id, idx, cpu, tid] = ["id", "idx", "cpu", "tid"].map(|name| &entry[name]);
        let guest = guests.next().map(|guest| {
            format!(
                " machine_pid: {} vcpu: {}",
                guest["machine_pid"], guest["vcpu"]
            )
        });
        format!(
            "... id: {id} idx: {idx} cpu: {cpu} tid: {tid}{}",
            guest.unwrap_or_default()
        )
    };
    list(&fields["entries"]).map(entry).collect()
}

fn times(fields: &Value) -> Vec<String> {
    let short = &fields["short"];
    let line = |name: &str, value: String| format!("... {name} {value}");
    let decimal = |value: &Value| number(value).to_string();
    let mut lines = vec![
        line("Time Shift", decimal(&fields["time_shift"])),
        line("Time Multiplier", decimal(&fields["time_mult"])),
        line("Time Zero", decimal(&fields["time_zero"])),
    ];
    if short.is_object() {
        lines.push(line("Time Cycles", decimal(&short["time_cycles"])));
        lines.push(line("Time Mask", hex(&short["time_mask"])));
        lines.push(line("Cap Time Zero", decimal(&short["cap_user_time_zero"])));
        lines.push(line(
            "Cap Time Short",
            decimal(&short["cap_user_time_short"]),
        ));
    }
    lines
}

fn event_update(fields: &Value) -> Vec<String> {
    let update = &fields["update"];
    let what = match fields["type"].as_str() {
        Some("unit") => format!("... unit: {}", text(update)),
        Some("scale") => format!("... scale: {:.6}", update.as_f64().unwrap_or(f64::NAN)),
        Some("name") => format!("... name: {}", text(update)),
        _ => format!("... {}", cpus(update)),
    };
    vec![format!("... id: {}", fields["id"]), what]
}

fn namespaces(fields: &Value) -> String {
    let names = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];
    let all: Vec<_> = (0..)
        .zip(list(&fields["namespaces"]).zip(names))
        .map(|(at, (space, name))| {
            format!(
                "{at}/{name}: {}/{}",
                number(&space["dev"]),
                hex(&space["ino"])
            )
        })
        .collect();
    if all.is_empty() {
        "[".to_owned()
    } else {
        format!("[{}]", all.join(", "))
    }
}

/// perf interprets the values of a group as those of one event, and names the numbers in this
/// order.
fn read(record: &Value, perfs: &Perfs) -> Vec<String> {
    let mut values = numbers(record, "values.", perfs).into_iter().skip(1);
    let Some(event) = perfs.event_of(record) else {
        return Vec::new();
    };
    let names = [
        ("TOTAL_TIME_ENABLED", "time enabled"),
        ("TOTAL_TIME_RUNNING", "time running"),
        ("ID", "id"),
        ("LOST", "lost"),
    ];
    let asked = names
        .into_iter()
        .filter(|(format, _)| event.read.iter().any(|name| name == format));
    asked
        .map(|(_, name)| format!("... {name} : {}", values.next().unwrap_or(0)))
        .collect()
}
