//! The columns of the tables of tracepoints and of `recordings` in a directory of many recordings.

use std::fs;
use std::io::{self, BufWriter, ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use perfdata_columns::{
    ENDING, Error, FieldColumns, Kind, SharedColumns, Table, read_field_columns,
    write_field_columns,
};
use perfdata_convert::interrupt::undisturbed;
use perfdata_convert::support::os;

use super::append::folders;

/// The file in the folder of a table whose schema has all columns of the table. This is its usual
/// name for Parquet: engines do not take it for a file with rows.
pub(super) const SCHEMA_FILE: &str = "_common_metadata";

/// Keeps the columns of tables in their schema files.
#[derive(Debug)]
pub(super) struct SchemaFiles {
    pub folder: PathBuf,
    /// Whether they survive a crash of the machine.
    pub syncs: bool,
}

impl SharedColumns for SchemaFiles {
    fn update(&self, table: &Table, change: &mut dyn FnMut(&mut FieldColumns)) -> io::Result<()> {
        let folder = self.folder.join(table.name());
        // Usually, all columns are there. The file appears complete, so that reading needs no lock.
        // A table without labels or fields has no schema file.
        let mut known = read(&folder, table)?.unwrap_or_default();
        let count = known.len();
        change(&mut known);
        if known.len() == count {
            return Ok(());
        }
        os::create_folders(&folder)?;
        undisturbed(|| {
            // It is that of the files of a recording: `compact` replaces the folder of `recordings`.
            // The lock ends with the file. Without it, as in some network file systems, another
            // process may append the same columns in another order.
            let lock = os::open(&self.folder)?;
            let _ = lock.lock();
            let found = read(&folder, table)?;
            let exists = found.is_some();
            let mut known = match found {
                Some(known) => known,
                None => of_files(&folder, table)?,
            };
            let count = known.len();
            change(&mut known);
            match exists && known.len() == count {
                true => Ok(()),
                false => self.write(&folder, table, &known),
            }
        })
    }
}

impl SchemaFiles {
    fn write(&self, folder: &Path, table: &Table, columns: &[(String, Kind)]) -> io::Result<()> {
        let mut draft = tempfile::tempfile_in(folder)?;
        let out = BufWriter::new(draft.try_clone()?);
        write_field_columns(Box::new(out), table, columns).map_err(io_error)?;
        let mut bytes = Vec::new();
        draft.rewind()?;
        draft.read_to_end(&mut bytes)?;
        let path = folder.join(SCHEMA_FILE);
        // What needs memory precedes this file: a failed allocation ends the process and leaves it.
        let mut builder = tempfile::Builder::new();
        builder.prefix(".perfconv-").suffix(".tmp");
        let mut new = builder.tempfile_in(folder)?;
        new.write_all(&bytes)?;
        if self.syncs {
            new.as_file().sync_all()?;
        }
        new.persist(path)?;
        Ok(())
    }
}

/// Returns the columns in the schema file of a table; `None` if there is none.
fn read(folder: &Path, table: &Table) -> io::Result<Option<FieldColumns>> {
    let path = folder.join(SCHEMA_FILE);
    match read_field_columns(&path, table).map_err(io_error) {
        Ok(columns) => Ok(Some(columns)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let what = "it can be removed: the next run makes it again";
            let text = format!("{}: {error}; {what}", path.display());
            Err(io::Error::new(error.kind(), text))
        }
    }
}

/// Returns the columns of the files of a table.
fn of_files(folder: &Path, table: &Table) -> io::Result<FieldColumns> {
    let mut files = Vec::new();
    add_files(folder, &mut files)?;
    files.sort();
    let mut all = FieldColumns::new();
    for file in files {
        // A file that cannot be read is not a reason against adding others.
        for column in read_field_columns(&file, table).unwrap_or_default() {
            if all.iter().all(|(name, _)| *name != column.0) {
                all.push(column);
            }
        }
    }
    Ok(all)
}

/// Adds the Parquet files in a folder and in the folders of its dates.
fn add_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .as_os_str()
            .as_encoded_bytes()
            .ends_with(ENDING.as_bytes())
        {
            files.push(path);
        }
    }
    for folder in folders(folder)? {
        add_files(&folder, files)?;
    }
    Ok(())
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Output(error) => error,
        other => io::Error::new(ErrorKind::InvalidData, other.to_string()),
    }
}
