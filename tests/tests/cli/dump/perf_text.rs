//! perf's output for each record with `-D`, extracted from its text.

use super::details;

/// The output for one record by perf or by `perfconv dump`, in the same format.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// `[cpu] [time] offset [size]: TYPE`, and the rest of perf's line.
    pub title: String,
    /// All bytes, in hexadecimal.
    pub bytes: String,
    /// The following lines, without redundant spaces.
    pub details: Vec<String>,
}

impl Said {
    /// Removes the names of registers.
    pub fn forget_registers(&mut self) {
        for line in &mut self.details {
            if let Some((register, value)) = line
                .strip_prefix(".... ")
                .and_then(|line| line.split_once(' '))
                && register != "group"
            {
                *line = format!(".... {value}");
            }
        }
    }

    /// Returns the name of the type.
    pub fn kind(&self) -> &str {
        kind_of(self.title.split_once("]: ").map_or("", |(_, what)| what))
    }
}

/// Returns the name of the type at the start of a text.
pub fn kind_of(what: &str) -> &str {
    let end = what.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
    // The header of the table of counts follows without a line break.
    match what.split_at(end.unwrap_or(what.len())).0 {
        "STAT_ROUNDCPU" => "STAT_ROUND",
        kind => kind,
    }
}

/// Returns the output for all records in `text`, which may contain other lines.
pub fn parse(text: &str) -> Vec<Said> {
    let mut all = Vec::<Said>::new();
    let mut bytes = String::new();
    for line in text.lines() {
        if let Some(hex) = line.strip_prefix(".  ") {
            // `0010:  66 cc ff 92 ff ff ff ff  ........`
            if line.get(7..8) == Some(":") {
                let columns = hex.get(6..54).unwrap_or_default();
                bytes.extend(columns.split_whitespace());
            }
        } else if line.contains("]: event: ") {
            bytes.clear();
        } else if let Some((place, what)) = line.split_once("]: PERF_RECORD_") {
            let kind = kind_of(what);
            let rest = what.get(kind.len()..).unwrap_or_default();
            let title = format!("{place}]: {kind}{}", title(kind, rest.trim_end()));
            all.push(Said {
                title,
                bytes: std::mem::take(&mut bytes),
                details: Vec::new(),
            });
        } else if let Some(said) = all.last_mut()
            && let Some(detail) = detail(said.kind(), line)
        {
            // Wrapped.
            match said.details.last_mut() {
                Some(last) if said.title.contains("NAMESPACES") => {
                    *last = format!("{last} {detail}")
                }
                _ => said.details.push(detail),
            }
        }
    }
    all
}

/// Returns the part of a title line that depends on the record and not on the reader.
fn title(kind: &str, rest: &str) -> String {
    match kind {
        // The table of all counts so far; the contents of a section or an attribute.
        "STAT_ROUND" | "FEATURE" | "ATTR" | "EVENT_TYPE" => String::new(),
        // The symbol at the address.
        "TEXT_POKE" => match (rest.trim_start().split_once(' '), rest.rfind(" old len ")) {
            (Some((address, _)), Some(at)) => {
                format!(" {address}{}", rest.get(at..).unwrap_or_default())
            }
            _ => rest.to_owned(),
        },
        // The name of the event between IDs and value.
        "READ" => {
            let words: Vec<_> = rest.split_whitespace().collect();
            match words[..] {
                [_, pid, tid, .., value] => format!(": {pid} {tid} {value}"),
                _ => rest.to_owned(),
            }
        }
        _ => spaced(rest.trim_end_matches(": unhandled!")),
    }
}

/// Returns a line of details if it depends on the record.
fn detail(kind: &str, line: &str) -> Option<String> {
    let is_detail = match kind {
        "SAMPLE" | "CALLCHAIN_DEFERRED" => {
            let of_reader = [" ... thread:", " ...... dso:", "...... (deferred)", ". ..."];
            !of_reader.iter().any(|start| line.starts_with(start))
                && ["...", " . data_src", " .. "]
                    .iter()
                    .any(|start| line.starts_with(start))
        }
        "ID_INDEX" => line.starts_with(" ... "),
        "TIME_CONV" | "EVENT_UPDATE" | "READ" => line.starts_with("... "),
        "NAMESPACES" => line.starts_with("\t\t"),
        "TEXT_POKE" => line.contains(" bytes: "),
        "AUXTRACE_INFO" | "BPF_METADATA" => line.starts_with("  "),
        "SCHEDSTAT_CPU" => line.starts_with("cpu"),
        "SCHEDSTAT_DOMAIN" => line.starts_with("domain"),
        _ => false,
    };
    if !is_detail {
        return None;
    }
    if kind == "AUXTRACE_INFO" {
        return Some(auxtrace_value(line));
    }
    // After its four letters, perf prints the type of a branch.
    let branch = line
        .find(" cycles ")
        .and_then(|at| line.get(..at + " cycles ".len() + 4));
    let line = if kind == "SAMPLE" {
        branch.unwrap_or(line)
    } else {
        line
    };
    let line = spaced(line.trim_end_matches(": unhandled!"))
        .trim()
        .replace("Muliplier", "Multiplier");
    Some(match kind {
        "SAMPLE" | "CALLCHAIN_DEFERRED" => sample(line),
        _ => line,
    })
}

/// Returns the text in the second column.
fn auxtrace_value(line: &str) -> String {
    let value = line.get(22..).unwrap_or_default().trim();
    if value.starts_with("0x") {
        details::number(&value.into()).to_string()
    } else {
        value.to_owned()
    }
}

/// Returns a line about a sample without the names of callchain markers, which newer perfs add.
fn sample(line: String) -> String {
    if let Some((address, _)) = line.split_once(" (PERF_CONTEXT_") {
        return address.to_owned();
    }
    if let Some((register, value)) = line
        .strip_prefix(".... ")
        .and_then(|line| line.split_once(' '))
        && register != "group"
    {
        return format!(".... {register} {}", value.trim());
    }
    line
}

/// Replaces successive spaces in `text` by one.
pub fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !(c.is_whitespace() && out.ends_with(' ')) {
            out.push(if c.is_whitespace() { ' ' } else { c });
        }
    }
    out.truncate(out.trim_end().len());
    out
}
