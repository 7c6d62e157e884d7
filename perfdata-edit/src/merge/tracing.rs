//! The tracepoint formats of several recordings as one.

use std::collections::HashMap;

use perfdata_core::Recording;
use perfdata_core::attr::EventType;
use perfdata_core::feature::tracing::{EventSystem, File, TracingBody};
use perfdata_core::feature::{Feature, FeatureId, TracingData};
use perfdata_core::wire::{CStr, Counted};

use super::checks::{CheckedInput, differ, refused};
use super::features::set_unless_equal;
use perfdata_convert::error::Result;
use perfdata_convert::leftover::without_place;

/// Unites the formats. Leaves out sections that cannot be read, with a note.
///
/// # Errors
/// Two recordings describe an event, or the head of all events, in different ways.
pub(super) fn unite(
    parts: &[CheckedInput<'_>],
    recording: &mut Recording,
    notes: &mut Vec<String>,
) -> Result<()> {
    let mut united: Option<(&str, TracingData)> = None;
    let mut is_changed = false;
    for part in parts {
        let Some(section) = part.recording.feature(FeatureId::TRACING_DATA) else {
            continue;
        };
        let own = match section.map(|section| section.value) {
            Ok(Feature::TracingData(own)) => own,
            Ok(_) => continue,
            Err(error) => {
                // The bytes in the result may be these.
                recording.features.remove(&FeatureId::TRACING_DATA);
                is_changed = true;
                let why = without_place(&error);
                notes.push(format!("left out TRACING_DATA of {}: {why}", part.name));
                continue;
            }
        };
        match &mut united {
            None => united = Some((part.name, own)),
            Some((_, known)) if *known == own => {}
            Some((name, known)) => {
                check_head(name, known, part.name, &own)?;
                is_changed |= add(name, &mut known.body, part, own.body, parts)?;
            }
        }
    }
    if let Some((_, data)) = united.filter(|_| is_changed) {
        set_unless_equal(
            recording,
            FeatureId::TRACING_DATA,
            Feature::TracingData(data),
        )?;
    }
    Ok(())
}

/// Checks what raw data of all tracepoints depend on.
fn check_head(a: &str, known: &TracingData, b: &str, own: &TracingData) -> Result<()> {
    let facts = |data: &TracingData| {
        [
            (
                "the byte order of tracepoints",
                data.header.byte_order.to_string(),
            ),
            ("the size of a long", data.header.long_size.to_string()),
            (
                "the version of TRACING_DATA",
                data.header.version.to_string(),
            ),
            ("the page size", data.body.page_size.to_string()),
            ("header_page of tracepoints", text(&data.body.header_page.0)),
            (
                "header_event of tracepoints",
                text(&data.body.header_event.0),
            ),
        ]
    };
    for ((what, one), (_, other)) in facts(known).into_iter().zip(facts(own)) {
        if one != other {
            return Err(differ(what, (a, &one), (b, &other)));
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned()
}

/// Adds the formats of a recording to those of earlier ones; returns whether there are new ones.
fn add(
    name: &str,
    known: &mut TracingBody,
    part: &CheckedInput<'_>,
    own: TracingBody,
    parts: &[CheckedInput<'_>],
) -> Result<bool> {
    let mut is_changed = false;
    let mut systems: Vec<(CStr, Vec<File<u64>>)> = std::mem::take(&mut known.systems)
        .into_inner()
        .into_iter()
        .map(|system| (system.name, system.formats.into_inner()))
        .collect();
    // The places of the systems, of the formats by name, and the names by number.
    let mut system_at = HashMap::new();
    let mut format_at = HashMap::new();
    let mut named: HashMap<String, String> = HashMap::new();
    for (at, (system, formats)) in systems.iter().enumerate() {
        let system = system.to_string();
        for (within, File(format)) in formats.iter().enumerate() {
            let event = line(format, "name:");
            named.insert(line(format, "ID:"), format!("{system}:{event}"));
            format_at.insert((system.clone(), event), (at, within));
        }
        system_at.insert(system, at);
    }
    for system in own.systems.into_inner() {
        let system_name = system.name.to_string();
        let at = *system_at.entry(system_name.clone()).or_insert_with(|| {
            systems.push((CStr::new(system.name.text()), Vec::new()));
            systems.len().saturating_sub(1)
        });
        for File(format) in system.formats.into_inner() {
            let (event, id) = (line(&format, "name:"), line(&format, "ID:"));
            let same = format_at.get(&(system_name.clone(), event.clone()));
            let same =
                same.and_then(|&(at, within): &(usize, usize)| systems.get(at)?.1.get(within));
            if let Some(File(other)) = same {
                if *other != format && is_used(parts, &[line(other, "ID:"), id.clone()]) {
                    let what = format!("the format of the tracepoint {system_name}:{event}");
                    let (a, b) = first_difference(other, &format);
                    return Err(differ(&what, (name, &a), (part.name, &b)));
                }
                continue;
            }
            if let Some(other) = named.get(&id) {
                return Err(refused(format!(
                    "the tracepoint {id} is {other} in {name}, and {system_name}:{event} in {}",
                    part.name
                )));
            }
            if let Some((_, formats)) = systems.get_mut(at) {
                named.insert(id, format!("{system_name}:{event}"));
                format_at.insert((system_name.clone(), event), (at, formats.len()));
                formats.push(File(format));
                is_changed = true;
            }
        }
    }
    let systems: Vec<EventSystem> = systems
        .into_iter()
        .map(|(name, formats)| EventSystem {
            name,
            formats: Counted::from(formats),
        })
        .collect();
    known.systems = Counted::from(systems);
    is_changed |= add_lines(&mut known.printk_formats.0, &own.printk_formats.0);
    if let (Some(known), Some(own)) = (&mut known.saved_cmdlines, &own.saved_cmdlines) {
        is_changed |= add_lines(&mut known.0, &own.0);
    }
    Ok(is_changed)
}

/// Returns the first line in which two formats differ, of each.
fn first_difference(a: &[u8], b: &[u8]) -> (String, String) {
    let lines = |format: &[u8]| -> Vec<String> {
        format
            .split(|&byte| byte == b'\n')
            .map(|line| text(line).trim().to_owned())
            .collect()
    };
    let (a, b) = (lines(a), lines(b));
    let at = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let shown = |lines: &[String]| format!("`{}`", lines.get(at).map_or("", String::as_str));
    (shown(&a), shown(&b))
}

/// Returns the rest of the line of a format that starts with `key`.
fn line(format: &[u8], key: &str) -> String {
    let mut lines = format.split(|&byte| byte == b'\n');
    let found = lines.find_map(|line| line.strip_prefix(key.as_bytes()));
    found.map(text).unwrap_or_default().trim().to_owned()
}

/// Returns whether any recording has an event with one of these numbers.
fn is_used(parts: &[CheckedInput<'_>], ids: &[String]) -> bool {
    let mut events = parts.iter().flat_map(|part| part.recording.events.iter());
    events.any(|event| {
        event.attr.kind == EventType::TRACEPOINT && ids.contains(&event.attr.config.to_string())
    })
}

/// Adds the lines that are new; of lines with the same first word, the first stays. Returns whether
/// there are any.
fn add_lines<C>(known: &mut Counted<C, u8>, own: &Counted<C, u8>) -> bool {
    let key = |line: &[u8]| {
        line.split(|&byte| byte == b' ')
            .next()
            .unwrap_or_default()
            .to_vec()
    };
    let mut all = std::mem::replace(known, Counted::from(Vec::new())).into_inner();
    let keys: std::collections::HashSet<Vec<u8>> =
        all.split(|&byte| byte == b'\n').map(key).collect();
    let before = all.len();
    // The text may end with NUL.
    while all.last() == Some(&0) {
        all.pop();
    }
    for line in own.split(|&byte| byte == b'\n' || byte == 0) {
        if !line.is_empty() && !keys.contains(&key(line)) {
            if all.last().is_some_and(|&byte| byte != b'\n') {
                all.push(b'\n');
            }
            all.extend_from_slice(line);
            all.push(b'\n');
        }
    }
    let is_changed = all.len() > before;
    if !is_changed {
        all.resize(before, 0);
    }
    *known = Counted::from(all);
    is_changed
}
