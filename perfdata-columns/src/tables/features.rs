//! The table `features`: all fields of the feature sections.

use std::fmt::Write as _;

use perfdata_core::Recording;
use perfdata_core::describe::{Describe, Leaf, Style, Visitor, field_name, set_fields};
use perfdata_core::feature::{FeatureId, Section};

use super::{SideTables, TableSink};
use crate::error::Result;
use crate::machine::text;
use crate::rows::Cell;
use crate::schema::Table;

/// The sections whose content other tables have, or that are formats of other files.
const ELSEWHERE: [FeatureId; 2] = [FeatureId::TRACING_DATA, FeatureId::AUXTRACE];

/// Adds the fields of all feature sections. Sections that cannot be decoded are bytes.
pub(super) fn push(
    recording: &Recording,
    side: &mut SideTables,
    sink: &mut dyn TableSink,
) -> Result<()> {
    let sections = recording.features.iter();
    for (&id, bytes) in sections.filter(|(id, _)| !ELSEWHERE.contains(id)) {
        let feature = id
            .name()
            .map_or_else(|| format!("feature {}", id.0), str::to_owned);
        match recording.feature(id) {
            Some(Ok(Section { value, .. })) => {
                let mut fields = Fields {
                    side: &mut *side,
                    sink: &mut *sink,
                    feature,
                    path: Vec::new(),
                    result: Ok(()),
                };
                value.describe("", Style::Plain, &mut fields);
                fields.result?;
            }
            _ => side.push(
                &Table::Features,
                &[
                    Cell::Text(&feature),
                    Cell::Text(""),
                    Cell::Null,
                    Cell::Null,
                    Cell::Bytes(bytes),
                ],
            ),
        }
        side.flush_full(sink)?;
    }
    Ok(())
}

/// A structure, or a list with the index of its next element.
enum Level {
    Structure(&'static str),
    List(&'static str, usize),
}

/// Adds the fields of a section.
struct Fields<'a> {
    side: &'a mut SideTables,
    sink: &'a mut dyn TableSink,
    feature: String,
    path: Vec<Level>,
    result: Result<()>,
}

impl Fields<'_> {
    /// Returns the path of a field: `nodes[1].cpus`.
    fn path_of(&self, name: &str) -> String {
        let mut path = String::new();
        let push_name = |path: &mut String, name: &str| {
            if !name.is_empty() {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(field_name(name));
            }
        };
        for level in &self.path {
            match level {
                Level::Structure(name) => push_name(&mut path, name),
                Level::List(name, index) => {
                    push_name(&mut path, name);
                    // Writing to a string does not fail.
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        push_name(&mut path, name);
        path
    }

    /// Counts an element of a list.
    fn next_element(&mut self) {
        if let Some(Level::List(_, index)) = self.path.last_mut() {
            *index = index.saturating_add(1);
        }
    }
}

impl Visitor for Fields<'_> {
    fn begin(&mut self, name: &'static str) {
        self.path.push(Level::Structure(name));
    }

    fn begin_list(&mut self, name: &'static str, _: usize) {
        self.path.push(Level::List(name, 0));
    }

    fn end(&mut self) {
        self.path.pop();
        self.next_element();
    }

    fn leaf(&mut self, name: &'static str, _: usize, value: Leaf<'_>) {
        let path = self.path_of(name);
        let shown = match &value {
            Leaf::Uint(number, style) if style.is_hex() => Some(format!("{number:#x}")),
            Leaf::Uint(number, _) => Some(number.to_string()),
            Leaf::Int(number) => Some(number.to_string()),
            Leaf::Float(number) => Some(number.to_string()),
            Leaf::Code(number, name, _) => {
                Some(name.map_or_else(|| number.to_string(), str::to_owned))
            }
            Leaf::Flags { word, fields, .. } => {
                let set = set_fields(*word, fields).map(|(name, value)| match value {
                    1 => name.to_owned(),
                    value => format!("{name}={value}"),
                });
                Some(set.collect::<Vec<_>>().join(" "))
            }
            Leaf::Text(bytes) => {
                let end = bytes.iter().position(|&byte| byte == 0);
                Some(text(
                    bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default(),
                ))
            }
            // Counts are the numbers of the elements that follow.
            Leaf::Count(_) | Leaf::Pad(_) => return,
            _ => None,
        };
        let (number, bytes) = match value {
            Leaf::Uint(number, _) | Leaf::Code(number, ..) => (number.into(), Cell::Null),
            Leaf::Flags { word, .. } => (word.into(), Cell::Null),
            Leaf::Int(number) => (Cell::Int(number), Cell::Null),
            Leaf::Bytes(bytes) | Leaf::Opaque(bytes) => (Cell::Null, Cell::Bytes(bytes)),
            _ => (Cell::Null, Cell::Null),
        };
        let cells = [
            Cell::Text(&self.feature),
            Cell::Text(&path),
            shown.as_deref().into(),
            number,
            bytes,
        ];
        self.side.push(&Table::Features, &cells);
        if self.result.is_ok() {
            self.result = self.side.flush_full(self.sink);
        }
        self.next_element();
    }
}
