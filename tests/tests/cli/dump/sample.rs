//! perf's output for a sample.

use serde_json::Value;

use super::details::{hex, number};
use super::perfs::{Event, Perfs};

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns `misc` of a sample from its names.
pub fn misc(record: &Value) -> usize {
    let has = |name: &str| list(&record["misc"]).any(|misc| misc == name);
    let modes = ["KERNEL", "USER", "HYPERVISOR", "GUEST_KERNEL", "GUEST_USER"];
    let mode = modes
        .iter()
        .position(|mode| has(mode))
        .map_or(0, |mode| mode + 1);
    mode | if has("EXACT_IP") { 0x4000 } else { 0 }
}

/// Returns the rest of the line with the name of the type.
pub fn title(record: &Value, perfs: &Perfs) -> String {
    let fields = &record["fields"];
    let tid = |name: &str| fields["tid"][name].as_i64().unwrap_or(-1);
    let (ip, addr) = (hex(&fields["ip"]), hex(&fields["addr"]));
    let period = fields["period"]
        .as_u64()
        .or(perfs.event_of(record).and_then(|event| event.period))
        .unwrap_or(0);
    format!(
        "(IP, {:#x}): {}/{}: {ip} period: {period} addr: {addr}",
        misc(record),
        tid("pid"),
        tid("tid")
    )
}

/// Returns the lines below, in perf's order.
pub fn lines(record: &Value, perfs: &Perfs) -> Vec<String> {
    let Some(event) = perfs.event_of(record) else {
        return Vec::new();
    };
    let fields = &record["fields"];
    let mut lines = Vec::new();
    if event.has("CALLCHAIN") {
        lines.extend(callchain(&fields["callchain"]));
    }
    if event.has("BRANCH_STACK") {
        lines.extend(branches(&fields["branch_stack"]));
    }
    lines.extend(registers("user", &fields["regs_user"], &event.masks[0]));
    lines.extend(registers("intr", &fields["regs_intr"], &event.masks[1]));
    if event.has("STACK_USER") {
        let stack = &fields["stack_user"];
        let size = number(&stack["dyn_size"]);
        lines.push(format!(
            "... ustack: size {size}, offset {:#x}",
            place_of(record, "stack_user.size")
        ));
    }
    if event.has("WEIGHT") {
        lines.push(format!("... weight: {}", number(&fields["weight"])));
    }
    if event.has("WEIGHT_STRUCT") {
        lines.push(weights(&fields["weight_struct"], perfs));
    }
    if event.has("DATA_SRC") {
        lines.push(format!(
            ". data_src: {}",
            word_of(record, "data_src", perfs)
        ));
    }
    if event.has("PHYS_ADDR") {
        lines.push(format!(
            ".. phys_addr: {}",
            hex_always(number(&fields["phys_addr"]))
        ));
    }
    for (part, name) in [("DATA_PAGE_SIZE", "data"), ("CODE_PAGE_SIZE", "code")] {
        if event.has(part) {
            lines.push(format!(
                ".. {name} page size: {}",
                page_size(number(&fields[format!("{name}_page_size")]))
            ));
        }
    }
    if event.has("TRANSACTION") {
        lines.push(format!(
            "... transaction: {:x}",
            number(&fields["transaction"])
        ));
    }
    if event.has("READ") {
        lines.extend(read(&fields["read"], event));
    }
    lines
}

/// `0x%lx`
fn hex_always(number: u64) -> String {
    format!("{number:#x}")
}

/// Returns the lines of a callchain.
pub fn callchain(chain: &Value) -> Vec<String> {
    let calls = (0..)
        .zip(list(chain))
        .map(|(at, ip)| format!("..... {at}: {:016x}", number(ip)));
    let count = format!("... FP chain: nr:{}", list(chain).count());
    std::iter::once(count).chain(calls).collect()
}

fn branches(stack: &Value) -> Vec<String> {
    let entries = (0..).zip(list(&stack["entries"])).map(|(at, entry)| {
        let flags = &entry["flags"];
        let letter = |name: &str, letter: &str| {
            if number(&flags[name]) == 1 {
                letter.to_owned()
            } else {
                " ".to_owned()
            }
        };
        let letters = [
            ("mispred", "M"),
            ("predicted", "P"),
            ("abort", "A"),
            ("in_tx", "T"),
        ]
        .map(|(name, text)| letter(name, text));
        let (from, to) = (number(&entry["from"]), number(&entry["to"]));
        let line = format!(
            "..... {at}: {from:016x} -> {to:016x} {} cycles {}",
            number(&flags["cycles"]),
            letters.concat()
        );
        super::perf_text::spaced(&line)
    });
    let count = format!("... branch stack: nr:{}", list(&stack["entries"]).count());
    std::iter::once(count).chain(entries).collect()
}

fn registers(name: &str, regs: &Value, mask: &str) -> Vec<String> {
    if list(&regs["regs"]).next().is_none() {
        return Vec::new();
    }
    let abi = regs["abi"].as_str().unwrap_or("?");
    let names = list(&regs["names"])
        .map(|name| name.as_str().unwrap_or("?"))
        .chain(std::iter::repeat("unknown"));
    let values = list(&regs["regs"])
        .zip(names)
        .map(|(value, name)| format!(".... {name} {:#018x}", number(value)));
    std::iter::once(format!("... {name} regs: mask {mask} ABI {abi}"))
        .chain(values)
        .collect()
}

/// Returns the three costs. Some perfs on big-endian machines show only the first, with all bits of
/// the word.
fn weights(costs: &Value, perfs: &Perfs) -> String {
    let [first, second, third] = ["var1_dw", "var2_w", "var3_w"].map(|name| number(&costs[name]));
    if !perfs.splits_weights {
        return format!("... weight: {},0x0,0x0", third << 48 | second << 32 | first);
    }
    format!("... weight: {first},{second:#x},{third:#x}")
}

fn page_size(mut size: u64) -> String {
    if size == 0 {
        return "N/A".to_owned();
    }
    let mut units = "BKMG".chars();
    let mut unit = units.next();
    while size >= 1024 {
        size /= 1024;
        unit = units.next();
    }
    format!("{size}{}", unit.unwrap_or('?'))
}

fn read(read: &Value, event: &Event) -> Vec<String> {
    let asked = |format: &str| event.read.iter().any(|name| name == format);
    let mut lines = vec!["... sample_read:".to_owned()];
    if asked("TOTAL_TIME_ENABLED") {
        lines.push(format!(
            "...... time enabled {:016x}",
            number(&read["time_enabled"])
        ));
    }
    if asked("TOTAL_TIME_RUNNING") {
        lines.push(format!(
            "...... time running {:016x}",
            number(&read["time_running"])
        ));
    }
    let value = |value: &Value| {
        let lost = if asked("LOST") {
            format!(", lost {}", number(&value["lost"]))
        } else {
            String::new()
        };
        format!(
            "..... id {:016x}, value {:016x}{lost}",
            number(&value["id"]),
            number(&value["value"])
        )
    };
    if asked("GROUP") {
        lines.push(format!(".... group nr {}", number(&read["nr"])));
        lines.extend(list(&read["values"]).map(value));
    } else {
        lines.push(value(read));
    }
    lines
}

/// Returns the offset of the field `name` in a record.
fn place_of(record: &Value, name: &str) -> u64 {
    list(&record["spans"])
        .find(|span| span["field"] == name)
        .map_or(0, |span| number(&span["at"]))
}

/// Returns the whole 64-bit number of the field `name`.
fn word_of(record: &Value, name: &str, perfs: &Perfs) -> String {
    let span = list(&record["spans"]).find(|span| span["field"] == name);
    hex_always(
        span.and_then(|span| perfs.number(span["bytes"].as_str()?))
            .unwrap_or(0),
    )
}
