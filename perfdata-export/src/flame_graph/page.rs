//! The page of a flame graph: its data as JSON, and a script that draws them.

use std::io::Write;

use indexmap::set::Slice;

use super::{FlameGraph, NamedThread, Side};
use crate::counts::Sums;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::flame_graph::rows::{Key, NONE, Rows};
use crate::json::{self, Writer};
use crate::shown::{Code, Interned, Shown};
use crate::tree::Tree;

/// The page without the data.
const TEMPLATE: &str = include_str!("page.html");
/// The style sheet of all pages.
const LOOK: &str = include_str!("look.css");
/// The placeholders for the style sheet and the data.
const PLACES: [&str; 2] = ["{{look}}", "{{data}}"];

/// Returns a name as a JSON string. An escape represents `<`, so that no tag can end the data.
fn string(name: &[u8]) -> String {
    json::string(name).replace('<', "\\u003c")
}

/// Returns a number, or -1 if it is unknown.
fn or_none(value: u32) -> String {
    match value {
        NONE => "-1".into(),
        value => value.to_string(),
    }
}

fn write_tables<W: Write>(
    json: &mut Writer<'_, W>,
    events: &Events,
    threads: &Interned<NamedThread>,
    frames: &Slice<Shown>,
    tree: &Tree,
) -> Result<()> {
    json.list("events", events.list(), |event| {
        let (is_time, is_off_cpu) = (event.is_time, event.is_off_cpu);
        format!("[{},{is_time},{is_off_cpu}]", string(&event.name))
    })?;
    json.list("threads", &threads.list, |thread| {
        let ids = thread.ids.map(|(pid, tid)| {
            let (pid, tid) = (pid.cast_signed(), tid.cast_signed());
            format!(",{pid},{tid}")
        });
        format!("[{}{}]", string(&thread.comm), ids.unwrap_or_default())
    })?;
    let mut modules = Interned::default();
    let numbers: Vec<u32> = frames
        .iter()
        .map(|frame| modules.number(frame.module.clone()))
        .collect();
    json.list("modules", &modules.list, |module| string(module))?;
    json.list("frames", frames.iter().zip(numbers), |(frame, module)| {
        let code = match frame.code {
            Code::User => 0,
            Code::Kernel => 1,
            Code::Generated => 2,
            Code::Unknown => 3,
        };
        format!("[{},{module},{code}]", string(&frame.name))
    })?;
    // A node is close to its parent: the difference needs fewer digits.
    let nodes = || (1_u32..).zip(tree.nodes().iter().skip(1));
    json.list("parents", nodes(), |(at, node)| {
        at.saturating_sub(node.parent).to_string()
    })?;
    json.list("functions", nodes(), |(_, node)| node.frame.to_string())
}

fn write_rows<W: Write>(json: &mut Writer<'_, W>, rows: &Rows) -> Result<()> {
    let sorted = rows.sorted();
    type Column = (&'static str, fn(&(Key, Sums)) -> String);
    let columns: [Column; 8] = [
        ("side", |row| row.0.side.to_string()),
        ("event", |row| row.0.event.to_string()),
        ("thread", |row| or_none(row.0.thread)),
        ("cpu", |row| or_none(row.0.cpu)),
        ("part", |row| or_none(row.0.part)),
        ("node", |row| row.0.node.to_string()),
        ("samples", |row| row.1.samples.to_string()),
        ("weight", |row| row.1.weight.to_string()),
    ];
    for (key, text) in columns {
        json.list(key, &sorted, text)?;
    }
    Ok(())
}

impl<W: Write> FlameGraph<W> {
    /// Writes the page.
    pub(super) fn write_page(&mut self) -> Result<()> {
        let [look_place, data_place] = PLACES;
        let page = TEMPLATE.replacen(look_place, LOOK, 1);
        let (before, after) = page.split_once(data_place).unwrap_or((&page, ""));
        let mut json = Writer::new(&mut self.out, ",\n");
        json.put(before)?;
        json.open("{")?;
        json.list("recordings", &self.sides, |side: &Side| {
            format!("[{},{},{}]", string(&side.name), side.samples, side.length)
        })?;
        let (has_cpus, has_times) = self.rows.details();
        json.value("partLength", self.rows.part_length())?;
        json.value("hasCpus", has_cpus)?;
        json.value("hasTimes", has_times)?;
        json.value("hasThreads", !self.given_up.threads)?;
        json.value("leastSamples", self.given_up.least)?;
        write_tables(
            &mut json,
            &self.events,
            &self.threads,
            self.frames.list.as_slice(),
            &self.tree,
        )?;
        let unmapped = self.unmapped.iter().map(|(&node, &len)| (node, len));
        let mut unmapped: Vec<(u32, u32)> = unmapped.collect();
        unmapped.sort_unstable();
        json.list("unmapped", &unmapped, |(node, len)| {
            format!("[{node},{len}]")
        })?;
        write_rows(&mut json, &self.rows)?;
        json.put("}")?;
        json.put(after)?;
        self.out.flush().map_err(Error::Output)
    }
}
