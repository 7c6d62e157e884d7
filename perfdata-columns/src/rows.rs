//! The rows of a side table.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Int32Builder, Int64Builder, ListBuilder,
    StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, SchemaRef};

use crate::dictionary::{NameColumn, NameId, NameTable, constant};
use crate::error::Result;
use crate::schema::{Column, ELEMENT, Kind, schema_of};

/// A value in a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell<'a> {
    Null,
    Int(i64),
    Bool(bool),
    /// Text, or a name.
    Text(&'a str),
    /// A name or text as bytes.
    Name(&'a [u8]),
    Bytes(&'a [u8]),
    Ints(&'a [i64]),
    Texts(&'a [String]),
}

impl From<Option<u64>> for Cell<'_> {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Cell::Null, |value| Cell::Int(value.cast_signed()))
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(value: Option<i64>) -> Self {
        value.map_or(Cell::Null, Cell::Int)
    }
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Cell::Int(value.cast_signed())
    }
}

/// A process, thread or CPU: all ones are -1.
impl From<Option<u32>> for Cell<'_> {
    fn from(value: Option<u32>) -> Self {
        value.map_or(Cell::Null, |value| Cell::Int(value.cast_signed().into()))
    }
}

impl From<u32> for Cell<'_> {
    fn from(value: u32) -> Self {
        Some(value).into()
    }
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(value: Option<&'a str>) -> Self {
        value.map_or(Cell::Null, Cell::Text)
    }
}

/// The values of a column.
#[derive(Debug)]
enum Values {
    Int64(Int64Builder),
    Int32(Int32Builder),
    Bool(BooleanBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Name(NameColumn),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Ints(ListBuilder<Int64Builder>),
    Texts(ListBuilder<StringBuilder>),
}

impl Values {
    /// Returns an empty column. Side tables have no other lists.
    fn new(kind: Kind) -> Self {
        let element = |kind: Kind, is_nullable| Field::new(ELEMENT, kind.data_type(), is_nullable);
        match kind {
            Kind::Int64 => Values::Int64(Int64Builder::new()),
            Kind::Int32 => Values::Int32(Int32Builder::new()),
            Kind::Bool => Values::Bool(BooleanBuilder::new()),
            Kind::Timestamp => {
                Values::Timestamp(TimestampMicrosecondBuilder::new().with_timezone("UTC"))
            }
            Kind::Name => Values::Name(NameColumn::new(true)),
            Kind::Text => Values::Text(StringBuilder::new()),
            Kind::Bytes => Values::Bytes(BinaryBuilder::new()),
            Kind::Int64List | Kind::Int32List | Kind::BoolList => {
                let list = ListBuilder::new(Int64Builder::new());
                Values::Ints(list.with_field(element(Kind::Int64, true)))
            }
            Kind::TextList | Kind::NameList => {
                let list = ListBuilder::new(StringBuilder::new());
                Values::Texts(list.with_field(element(Kind::Text, false)))
            }
        }
    }

    /// Appends a value. A value of another type than that of the column is null.
    fn push(&mut self, cell: Cell<'_>, names: &mut NameTable, text: &mut String) {
        match (self, cell) {
            (Values::Int64(values), Cell::Int(value)) => values.append_value(value),
            (Values::Int64(values), _) => values.append_null(),
            (Values::Int32(values), Cell::Int(value)) => {
                values.append_option(i32::try_from(value).ok());
            }
            (Values::Int32(values), _) => values.append_null(),
            (Values::Bool(values), Cell::Bool(value)) => values.append_value(value),
            (Values::Bool(values), _) => values.append_null(),
            (Values::Timestamp(values), Cell::Int(value)) => values.append_value(value),
            (Values::Timestamp(values), _) => values.append_null(),
            (Values::Name(values), Cell::Text(value)) => {
                values.push(Some(names.intern(value.as_bytes())));
            }
            (Values::Name(values), Cell::Name(value)) => values.push(Some(names.intern(value))),
            (Values::Name(values), _) => values.push(None::<NameId>),
            (Values::Text(values), Cell::Text(value)) => values.append_value(value),
            (Values::Text(values), Cell::Name(value)) => {
                text.clear();
                perfdata_export::push_text(text, value);
                values.append_value(&text);
            }
            (Values::Text(values), _) => values.append_null(),
            (Values::Bytes(values), Cell::Bytes(value)) => values.append_value(value),
            (Values::Bytes(values), _) => values.append_null(),
            (Values::Ints(values), Cell::Ints(list)) => {
                values.values().append_slice(list);
                values.append(true);
            }
            (Values::Ints(values), _) => values.append(false),
            (Values::Texts(values), Cell::Texts(list)) => {
                list.iter()
                    .for_each(|text| values.values().append_value(text));
                values.append(true);
            }
            (Values::Texts(values), _) => values.append(false),
        }
    }

    fn finish(&mut self, names: &NameTable) -> Result<ArrayRef> {
        Ok(match self {
            Values::Int64(values) => Arc::new(values.finish()),
            Values::Int32(values) => Arc::new(values.finish()),
            Values::Bool(values) => Arc::new(values.finish()),
            Values::Timestamp(values) => Arc::new(values.finish()),
            Values::Name(values) => values.finish(names)?,
            Values::Text(values) => ArrayBuilder::finish(values),
            Values::Bytes(values) => ArrayBuilder::finish(values),
            Values::Ints(values) => ArrayBuilder::finish(values),
            Values::Texts(values) => ArrayBuilder::finish(values),
        })
    }
}

/// Collects the rows of a table, and returns them as record batches. The first two columns of all
/// tables are the ID of the recording and its host.
#[derive(Debug)]
pub(crate) struct Rows {
    schema: SchemaRef,
    values: Vec<Values>,
    names: NameTable,
    text: String,
    rows: usize,
    /// Approximate size of the rows in bytes.
    held: usize,
}

/// Approximate size of a value in bytes.
const VALUE: usize = 8;

impl Rows {
    /// Returns an empty table with these columns.
    pub fn new(columns: &[Column]) -> Self {
        Rows::of(columns.iter().map(|column| (column.name, column.kind)))
    }

    /// Returns an empty table with columns of these names and types.
    pub fn of<'a>(columns: impl Iterator<Item = (&'a str, Kind)> + Clone) -> Self {
        Rows {
            schema: schema_of(columns.clone()),
            values: columns.skip(2).map(|(_, kind)| Values::new(kind)).collect(),
            names: NameTable::default(),
            text: String::new(),
            rows: 0,
            held: 0,
        }
    }

    /// Appends a row: the values of the columns after the first two.
    pub fn push(&mut self, cells: &[Cell<'_>]) {
        debug_assert_eq!(cells.len(), self.values.len(), "{:?}", self.schema);
        let missing = std::iter::repeat(&Cell::Null);
        for (values, cell) in self.values.iter_mut().zip(cells.iter().chain(missing)) {
            let more = match cell {
                Cell::Text(text) => text.len(),
                Cell::Name(bytes) | Cell::Bytes(bytes) => bytes.len(),
                Cell::Ints(list) => list.len().saturating_mul(VALUE),
                Cell::Texts(list) => list.iter().map(String::len).sum(),
                _ => 0,
            };
            self.held = self.held.saturating_add(more).saturating_add(VALUE);
            values.push(*cell, &mut self.names, &mut self.text);
        }
        self.rows = self.rows.saturating_add(1);
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns the approximate size of the rows in bytes.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the rows as a batch, and starts the next one.
    ///
    /// # Errors
    /// None are expected.
    pub fn finish(&mut self, recording: Option<&str>, host: Option<&str>) -> Result<RecordBatch> {
        let rows = std::mem::take(&mut self.rows);
        self.held = 0;
        let mut arrays = vec![constant(recording, rows)?, constant(host, rows)?];
        for values in &mut self.values {
            arrays.push(values.finish(&self.names)?);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }
}
