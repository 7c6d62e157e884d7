//! The tables of tracepoints, whose columns come from the formats in the recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use perfdata_core::attr::EventType;
use perfdata_session::Sample;
use perfdata_tracepoint::{Field, Format, Formats, Like, Value};

use super::SideTables;
use super::shared::{SharedColumns, with_wanted};
use crate::clock::WallClock;
use crate::error::Result;
use crate::machine::text;
use crate::rows::{Cell, Rows};
use crate::schema::{Kind, Table};

/// Maximum number of tables of tracepoints. Linux has fewer tracepoints.
const MOST_TABLES: usize = 8192;

/// Maximum number of fields of a tracepoint that become columns.
const MOST_FIELDS: usize = 512;

/// Maximum length of the name of a table in bytes. The name of a file has at most 255.
const MOST_NAME: usize = 200;

/// Maximum length of the name of a column in bytes.
const MOST_COLUMN: usize = 200;

/// The prefix of a column whose name is that of a column of all tracepoints.
const PREFIX: &str = "field_";

/// The column that engines take from the path of a file.
const DATE: &str = "date";

/// Adds the samples of tracepoints to their tables.
#[derive(Debug, Default)]
pub(super) struct Tracepoints {
    /// The formats, since the first sample of a tracepoint.
    formats: Option<Option<Formats>>,
    tables: BTreeMap<u64, Option<TracepointTable>>,
    names: BTreeSet<String>,
    shared: Option<Arc<dyn SharedColumns>>,
}

/// The table of a tracepoint.
#[derive(Debug)]
struct TracepointTable {
    table: Table,
    /// The number of the field in each column after the common ones; `None` if only other
    /// recordings have it.
    fields: Vec<Option<usize>>,
}

impl Tracepoints {
    /// Returns no tables. Their columns will be among the `shared` ones.
    pub fn new(shared: Option<Arc<dyn SharedColumns>>) -> Self {
        Tracepoints {
            shared,
            ..Tracepoints::default()
        }
    }

    /// Adds a sample, if it is one of a tracepoint whose format is known.
    ///
    /// # Errors
    /// The shared columns cannot be read or kept.
    pub fn see(
        &mut self,
        sample: &Sample<'_>,
        clock: Option<WallClock>,
        side: &mut SideTables,
    ) -> Result<()> {
        let Some(attr) = sample.attr() else {
            return Ok(());
        };
        if attr.kind != EventType::TRACEPOINT {
            return Ok(());
        }
        let Some(raw) = sample.sample_view().raw() else {
            return Ok(());
        };
        let formats = self
            .formats
            .get_or_insert_with(|| Formats::of(sample.recording(), Like::default()));
        let Some(format) = formats.as_ref().and_then(|all| all.by_id(attr.config)) else {
            return Ok(());
        };
        if !self.tables.contains_key(&attr.config) {
            let table = match self.tables.len() < MOST_TABLES {
                true => {
                    let shared = self.shared.as_deref();
                    Some(new_table(format, &mut self.names, shared, side)?)
                }
                false => None,
            };
            self.tables.insert(attr.config, table);
        }
        let Some(Some(table)) = self.tables.get(&attr.config) else {
            return Ok(());
        };
        let time = sample.time();
        let tid = sample.tid();
        let common = [
            time.into(),
            time.and_then(|time| clock?.micros(time)).into(),
            tid.map(|tid| tid.pid).into(),
            tid.map(|tid| tid.tid).into(),
            sample.cpu().into(),
            Cell::Name(sample.comm()),
            sample.weight().into(),
        ];
        let fields = table.fields.iter().map(|number| {
            let field = number.and_then(|number| format.fields().get(number));
            field.map_or(Cell::Null, |field| cell_of(field, raw))
        });
        let cells: Vec<Cell<'_>> = common.into_iter().chain(fields).collect();
        side.push_to(&table.table, &cells);
        Ok(())
    }
}

/// Adds the table of a tracepoint.
fn new_table(
    format: &Format,
    names: &mut BTreeSet<String>,
    shared: Option<&dyn SharedColumns>,
    side: &mut SideTables,
) -> Result<TracepointTable> {
    let mut name = format!(
        "{}__{}",
        file_name(format.system()),
        file_name(format.name())
    );
    if name.len() > MOST_NAME || names.contains(&name) {
        // The name has only ASCII characters.
        name.truncate(MOST_NAME);
        let _ = write!(name, "__{}", format.id());
    }
    names.insert(name.clone());
    let table = Table::Tracepoint(name.into());
    let common = table.columns().iter();
    let common = common.map(|column| (column.name.to_owned(), column.kind));
    let mut columns: Vec<(String, Kind)> = common.collect();
    let mut used: BTreeSet<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    used.insert(DATE.to_owned());
    let mut wanted = Vec::new();
    for field in format.fields().iter().take(MOST_FIELDS) {
        let mut name = text(field.name());
        while name.len() > MOST_COLUMN {
            name.pop();
        }
        if used.contains(&name) || name.is_empty() {
            name.insert_str(0, PREFIX);
        }
        while used.contains(&name) {
            name.push('_');
        }
        used.insert(name.clone());
        wanted.push((name, kind_of(field)));
    }
    let (mut all, fields) = with_wanted(shared, &table, &wanted)?;
    columns.append(&mut all);
    side.add(
        table.clone(),
        Rows::of(columns.iter().map(|(name, kind)| (name.as_str(), *kind))),
    );
    Ok(TracepointTable { table, fields })
}

/// Returns a name as a part of the name of a file on all systems: other characters than letters,
/// digits, `_`, `-` and `.` are percent-encoded.
fn file_name(name: &[u8]) -> String {
    let mut shown = String::new();
    for &byte in name {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') {
            shown.push(char::from(byte));
        } else {
            let _ = write!(shown, "%{byte:02X}");
        }
    }
    shown
}

/// Returns whether a field is text: an array of `char`. Arrays of `u8` and `unsigned char`, which
/// libtraceevent takes for strings, too, are usually addresses of networks.
fn is_text(field: &Field) -> bool {
    let contains = |text: &[u8]| {
        let mut windows = field.type_name().windows(text.len());
        windows.any(|window| window == text)
    };
    field.is_string() && contains(b"char") && !contains(b"unsigned")
}

/// Returns the type of a field's column. All numbers have 64 bits, because other kernels have other
/// sizes.
fn kind_of(field: &Field) -> Kind {
    if is_text(field) {
        Kind::Text
    } else if field.is_array() || field.is_dynamic() || !matches!(field.size(), 1 | 2 | 4 | 8) {
        Kind::Bytes
    } else {
        Kind::Int64
    }
}

/// Returns the value of a field.
fn cell_of<'a>(field: &Field, raw: &'a [u8]) -> Cell<'a> {
    if field.is_string() && !is_text(field) {
        return field.bytes(raw).map_or(Cell::Null, Cell::Bytes);
    }
    match field.value(raw) {
        Some(Value::Unsigned(number)) => number.into(),
        Some(Value::Signed(number)) => Cell::Int(number),
        Some(Value::String(text)) => Cell::Name(text),
        Some(Value::Bytes(bytes)) => Cell::Bytes(bytes),
        _ => Cell::Null,
    }
}
