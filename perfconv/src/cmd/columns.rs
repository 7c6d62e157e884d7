//! `perfconv export --to parquet` and `--to arrow`: samples and metadata as columns.

use std::fs;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perfdata_columns::{
    ArrowStream, ENDING, Options, ParquetFile, ParquetTables, RecordBatch, RecordedAt, RecordingId,
    SampleBatches, SharedColumns, Summary, export_tables,
};
use perfdata_core::read::Limits;
use perfdata_session::Samples;

use super::export::{of_args, tell};
use super::open;
use crate::cli::{ExportArgs, Format};
use crate::messages::Messages;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::interrupt;
use perfdata_convert::io::{Input, Output, OutputDirectory};
use perfdata_convert::pipeline::Converted;
use perfdata_convert::support::os::private;
use perfdata_edit::slice::Patterns;
use perfdata_export::Symbolizer;
use perfdata_inject::itrace::ItraceCommand;
use perfdata_recipe::{Ending, Export, Exported, OpenExport, failed};

/// The name of standard output.
pub(super) const STANDARD: &str = "-";

/// Exports the recording `input` to `path`.
pub fn export(
    args: &ExportArgs,
    format: Format,
    input: &Path,
    path: &Path,
    limits: Limits,
    messages: Messages,
) -> Result<()> {
    let exported = match format {
        Format::Parquet if is_folder(path) => {
            let force = args.output.force;
            let folder = OutputDirectory::create(path, input, force, is_table)?;
            let folder = folder.synced(!args.output.no_sync);
            let opened = open_with_id(args, input, limits, messages)?;
            let exported = folder.write(|folder| opened.write_folder(folder, path))?;
            folder.finish()?;
            exported
        }
        _ => {
            let output = Output::create(path, input, args.output.force)?;
            let output = output.synced(!args.output.no_sync);
            let opened = open_with_id(args, input, limits, messages)?;
            match format {
                Format::Parquet => output.write_seekable(|file| {
                    let out = file.try_clone().map_err(Error::io("output"))?;
                    opened.write_file(out)
                })?,
                _ => output.write_stream(limits.threads(), |out| opened.write_arrow(out))?,
            }
        }
    };
    tell(&exported, messages);
    Ok(())
}

/// Opens an input. The ID of a stream is not known.
fn open_with_id(
    args: &ExportArgs,
    path: &Path,
    limits: Limits,
    messages: Messages,
) -> Result<Opened> {
    let input = open(path, limits, messages)?;
    let id = id_of(&input)?;
    Opened::new(
        args,
        path,
        input,
        id,
        &of_args(args, ItraceCommand::Report, limits)?,
    )
}

/// Returns whether the output is a directory with all tables, instead of a file with the samples.
fn is_folder(path: &Path) -> bool {
    if path.as_os_str() == STANDARD {
        return false;
    }
    match fs::metadata(path) {
        Ok(found) => found.is_dir(),
        Err(_) => !path
            .as_os_str()
            .as_encoded_bytes()
            .ends_with(ENDING.as_bytes()),
    }
}

/// Returns whether an export writes something of this name to a directory.
fn is_table(path: &Path) -> bool {
    let is_file = |path: &Path| {
        path.is_file()
            && path
                .as_os_str()
                .as_encoded_bytes()
                .ends_with(ENDING.as_bytes())
    };
    if path.is_dir() {
        let mut files = fs::read_dir(path).into_iter().flatten();
        return path.file_name() == Some("tracepoints".as_ref())
            && files.all(|file| file.is_ok_and(|file| is_file(&file.path())));
    }
    is_file(path)
}

/// An open recording with its selected samples.
pub(super) struct Opened {
    samples: Samples<Converted>,
    symbols: Option<Symbolizer>,
    ending: Ending,
    options: Options,
    allow_empty: bool,
    id: Option<String>,
    pub threads: usize,
}

impl Opened {
    /// Opens the input called `path`, which has this ID.
    pub fn new(
        args: &ExportArgs,
        path: &Path,
        input: Input,
        id: Option<String>,
        export: &Export,
    ) -> Result<Self> {
        let OpenExport {
            samples,
            symbols,
            ending,
            ..
        } = export.open(input)?;
        let mut options = options(args, id.as_deref());
        if path.as_os_str() != STANDARD {
            let name = path.file_name().unwrap_or(path.as_os_str());
            options = options.with_file(name.as_encoded_bytes());
            if let Some(path) = absolute(path)? {
                options = options.with_path(path.as_os_str().as_encoded_bytes());
            }
        }
        Ok(Opened {
            samples,
            symbols,
            ending,
            options,
            allow_empty: export.allow_empty,
            id,
            // Without any, the calling thread encodes.
            threads: threads_of(export.recipe.limits),
        })
    }

    /// Sets the columns that the tables of tracepoints have in other recordings.
    pub fn set_shared_columns(&mut self, shared: Arc<dyn SharedColumns>) {
        self.options = std::mem::take(&mut self.options).with_shared_columns(shared);
    }

    /// Sets when the recording was made, which counts if the recording does not contain it.
    pub fn set_recorded_at(&mut self, recorded: Option<RecordedAt>) {
        self.options = std::mem::take(&mut self.options).with_recorded_at(recorded);
    }

    /// Writes the samples to a Parquet file.
    fn write_file(self, out: impl Write + Send + 'static) -> Result<Exported> {
        let (id, threads) = (self.id.clone(), self.threads);
        self.write_batches(
            |schema, _| ParquetFile::new(BufWriter::new(out), schema, threads),
            |file, batch| file.write(batch),
            |file, recording, symbols| {
                file.finish(&perfdata_columns::metadata(
                    recording,
                    id.as_deref(),
                    symbols,
                ))
            },
        )
    }

    /// Writes the samples to an Arrow stream.
    fn write_arrow(self, out: &mut dyn Write) -> Result<Exported> {
        let id = self.id.clone();
        let symbols = self.symbols.is_some();
        self.write_batches(
            |schema, recording| {
                let stream = ArrowStream::new(BufWriter::new(out), schema);
                Ok(stream.with_metadata(recording, id.as_deref(), symbols))
            },
            |stream, batch| stream.write(&batch),
            |stream, _, _| stream.finish(),
        )
    }

    /// Passes the batches of samples to an output that `begin` starts with the first batch, `write`
    /// writes, and `finish` ends if the recording was read completely.
    fn write_batches<T>(
        self,
        begin: impl FnOnce(
            perfdata_columns::SchemaRef,
            &perfdata_core::Recording,
        ) -> perfdata_columns::Result<T>,
        write: impl Fn(&mut T, RecordBatch) -> perfdata_columns::Result<()>,
        finish: impl FnOnce(T, &perfdata_core::Recording, bool) -> perfdata_columns::Result<()>,
    ) -> Result<Exported> {
        let path = Path::new("output");
        let failed = |error| columns_failed(error, path);
        let symbols = self.symbols.is_some();
        let mut batches = SampleBatches::new(self.samples, self.symbols, &self.options);
        let first = batches.next_batch().map_err(failed)?;
        let recording = batches.samples().recording();
        let mut out = begin(batches.schema(), recording).map_err(failed)?;
        let mut next = first;
        let is_empty = next.is_none();
        while let Some(batch) = next {
            write(&mut out, batch).map_err(failed)?;
            next = batches.next_batch().map_err(failed)?;
        }
        let (notes, leftover) = self.ending.check()?;
        if is_empty && !self.allow_empty {
            return Err(Error::Refused(Ending::NO_SAMPLES.into()));
        }
        finish(out, batches.samples().recording(), symbols).map_err(failed)?;
        Ok(Exported::new(batches.finish(), notes, leftover))
    }

    /// Writes all tables to files in `folder`, which will be called `path`.
    fn write_folder(self, folder: &Path, path: &Path) -> Result<Exported> {
        let tables = ParquetTables::new(self.threads, |table| {
            let name = folder.join(format!("{}{ENDING}", table.name()));
            if let Some(parent) = name.parent() {
                interrupt::undisturbed(|| fs::create_dir_all(parent))?;
            }
            let mut options = fs::File::options();
            private(options.write(true).create_new(true));
            let file = interrupt::open(&options, &name)?;
            Ok(Box::new(BufWriter::new(file)))
        });
        let (exported, _) = self.write_tables(tables.with_empty_tables(true), path)?;
        Ok(exported)
    }

    /// Writes all tables, and ends their files.
    pub fn write_tables(
        self,
        mut tables: ParquetTables<'_>,
        path: &Path,
    ) -> Result<(Exported, Summary)> {
        let failed = |error| columns_failed(error, path);
        let exported = export_tables(self.samples, self.symbols, &self.options, &mut tables);
        let mut summary = exported.map_err(failed)?;
        let (notes, leftover) = self.ending.check()?;
        if summary.rows == 0 && !self.allow_empty {
            return Err(Error::Refused(Ending::NO_SAMPLES.into()));
        }
        tables.finish(&summary.metadata).map_err(failed)?;
        let report = std::mem::take(&mut summary.report);
        Ok((Exported::new(report, notes, leftover), summary))
    }
}

/// Returns the absolute path of a recording; `None` for a pipe such as `/dev/fd/63`.
fn absolute(path: &Path) -> Result<Option<PathBuf>> {
    match fs::canonicalize(path) {
        Ok(path) => Ok(Some(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path)(error)),
    }
}

/// Returns the error of an export to `path`.
fn columns_failed(error: perfdata_columns::Error, path: &Path) -> Error {
    match error {
        perfdata_columns::Error::Recording(error) => Error::Read(error),
        perfdata_columns::Error::Output(error) => Error::io(path)(error),
        perfdata_columns::Error::Samples(error) => failed(error, path),
        other => Error::Refused(other.to_string()),
    }
}

/// Returns the next batch of samples; `None` at the end.
pub(super) fn next_batch(batches: &mut SampleBatches<Converted>) -> Result<Option<RecordBatch>> {
    let batch = batches.next_batch();
    batch.map_err(|error| columns_failed(error, Path::new("output")))
}

/// Returns what the batches of the samples contain.
pub(super) fn options(args: &ExportArgs, id: Option<&str>) -> Options {
    let labels = args.columns.labels.iter();
    let options = Options::default()
        .with_recording(id)
        .with_labels(labels.map(|label| (label.key.as_str(), label.value.as_str())))
        .with_debug_info(args.inlines, args.lines);
    let events = args.slice.event.as_deref().filter(|_| !args.slice.invert);
    let options = match events.map(Patterns::between_commas) {
        Some(events) => options.with_events(move |name| events.contains(name)),
        None => options,
    };
    match &args.columns.columns {
        Some(columns) => options
            .with_columns(columns.columns.iter().copied())
            .with_offsets(columns.offsets),
        None => options,
    }
}

/// Returns the ID of a recording; `None` for a stream.
pub(super) fn id_of(input: &Input) -> Result<Option<String>> {
    let mut id = RecordingId::new();
    let is_known = input.each_block(|block| id.update(block))?;
    Ok(is_known.then(|| id.finish()))
}

/// Returns the number of threads that encode one recording; 0 if the calling thread does.
pub(super) fn threads_of(limits: Limits) -> usize {
    match limits.threads() {
        1 => 0,
        threads => threads,
    }
}
