//! The tables of a recording as Parquet files.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use arrow_array::RecordBatch;

use super::file::{Out, ParquetFile};
use crate::error::{Error, Result};
use crate::schema::Table;
use crate::tables::TableSink;

/// Size in bytes of the encoded rows of all side tables after which the largest is written.
const MOST_MEMORY: usize = 32 << 20;

/// Creates the output of a table.
type Create<'a> = Box<dyn FnMut(&Table) -> io::Result<Out> + 'a>;

/// Writes the tables of a recording to Parquet files.
///
/// A file is created with the first rows of its table. Tables without rows have a file if
/// [`with_empty_tables`](Self::with_empty_tables) requests it.
pub struct ParquetTables<'a> {
    create: Create<'a>,
    files: BTreeMap<Table, ParquetFile>,
    threads: usize,
    has_empty: bool,
}

impl fmt::Debug for ParquetTables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetTables").finish_non_exhaustive()
    }
}

impl<'a> ParquetTables<'a> {
    /// Returns a sink that writes each table to what `create` returns for it. `threads` other
    /// threads encode samples ([`ParquetFile::new`]).
    pub fn new(threads: usize, create: impl FnMut(&Table) -> io::Result<Out> + 'a) -> Self {
        ParquetTables {
            create: Box::new(create),
            files: BTreeMap::new(),
            threads,
            has_empty: false,
        }
    }

    /// Returns the sink with `has_empty`, which determines whether tables without rows have files,
    /// except those of tracepoints. The default is false.
    #[must_use]
    pub fn with_empty_tables(self, has_empty: bool) -> Self {
        ParquetTables { has_empty, ..self }
    }

    /// Ends all files, with the metadata in the order of `metadata`.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self, metadata: &[(String, String)]) -> Result<()> {
        for file in self.files.into_values() {
            file.finish(metadata)?;
        }
        Ok(())
    }
}

impl TableSink for ParquetTables<'_> {
    fn write(&mut self, table: &Table, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 && !self.has_empty {
            return Ok(());
        }
        let file = match self.files.get_mut(table) {
            Some(file) => file,
            None => {
                let out = (self.create)(table).map_err(Error::Output)?;
                let threads = match table {
                    Table::Samples => self.threads,
                    _ => 0,
                };
                let file = ParquetFile::new(out, batch.schema(), threads)?;
                self.files.entry(table.clone()).or_insert(file)
            }
        };
        file.write(batch)?;
        if *table == Table::Samples {
            return Ok(());
        }
        let sizes = self.files.values().map(ParquetFile::memory);
        if sizes.fold(0, usize::saturating_add) > MOST_MEMORY {
            let largest = self.files.values_mut().max_by_key(|file| file.memory());
            largest.map_or(Ok(()), ParquetFile::flush)?;
        }
        Ok(())
    }
}
