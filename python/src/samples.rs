//! The samples of a recording as a stream of Arrow record batches, by Arrow's interface for Python
//! (PyCapsule).

use std::collections::HashMap;
use std::ffi::{CStr, OsString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use perfconv::cmd::embedded::{
    ExportOptions, ExportedSamples, Failure, OF_OUTPUTS, Value, export_options,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

use crate::commands::{value_of, words_of};
use crate::errors;
use crate::recording::Recording;
use crate::sample_rows::SampleRows;

/// The end of the error for an option that has no effect without symbols.
const NO_SYMBOLS: &str = " cannot be used with '--no-symbols'";

/// The samples of a recording as Arrow columns. Each call of `__arrow_c_stream__` returns a new
/// stream, which is read lazily.
#[pyclass(frozen, module = "perfconv")]
pub struct Samples {
    recording: Py<Recording>,
    options: ExportOptions,
    symbols: bool,
    batch_rows: usize,
}

impl Samples {
    /// Checks the options.
    pub fn new(
        recording: Py<Recording>,
        columns: Option<&Bound<'_, PyAny>>,
        symbols: bool,
        batch_rows: usize,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if batch_rows == 0 {
            return Err(PyValueError::new_err("batch_size must be at least 1"));
        }
        let mut words: Vec<OsString> = vec![
            "export".into(),
            "--input=recording".into(),
            "--to=arrow".into(),
        ];
        if let Some(columns) = columns.map(value_of).transpose()?.flatten() {
            let joined = match columns {
                Value::Several(names) => names.join(",".as_ref()),
                Value::One(names) => names,
                Value::Given => return Err(PyValueError::new_err("columns must be names")),
            };
            let mut word = OsString::from("--columns=");
            word.push(joined);
            words.push(word);
        }
        if let Some(options) = options {
            words.extend(words_of("samples", "export", options, &OF_OUTPUTS)?);
        }
        if !symbols {
            words.push("--no-symbols".into());
        }
        let options = export_options(words).map_err(|failure| match failure {
            Failure::CommandLine(text) => {
                PyValueError::new_err(match text.rsplit_once(NO_SYMBOLS) {
                    Some((option, "")) if !symbols => format!("{option}: it needs symbols=True"),
                    _ => text,
                })
            }
            Failure::Command(error) => PyValueError::new_err(error.to_string()),
        })?;
        Ok(Samples {
            recording,
            options,
            symbols,
            batch_rows,
        })
    }

    /// Starts reading.
    fn open(&self, py: Python<'_>) -> PyResult<Batches> {
        let recording = self.recording.get();
        let id = recording.id(py)?;
        let input = recording.input(py)?;
        let samples = py.detach(|| self.options.samples(input, id.as_deref(), self.batch_rows));
        let samples = samples.map_err(|error| errors::of_convert(py, &error))?;
        Ok(Batches {
            samples: Some(samples),
            is_closed: recording.closing(),
        })
    }
}

#[pymethods]
impl Samples {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        let columns = self.options.columns().iter();
        columns.map(|column| column.column().name).collect()
    }

    /// Returns a new stream of record batches, in a capsule of Arrow's C interface. A requested
    /// schema is ignored, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        const NAME: &CStr = c"arrow_array_stream";
        let _ = requested_schema;
        let stream = FFI_ArrowArrayStream::new(Box::new(Stream::new(self.open(py)?)));
        PyCapsule::new_with_value(py, stream, NAME)
    }

    /// Returns an iterator over the samples, as named tuples of the columns.
    fn __iter__(&self, py: Python<'_>) -> PyResult<SampleRows> {
        let batches = self.open(py)?;
        SampleRows::new(py, batches, &self.columns())
    }

    /// Returns the schema, in a capsule of Arrow's C interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        const NAME: &CStr = c"arrow_schema";
        let chosen = self.options.columns().iter().copied();
        let schema = perfdata_columns::sample_schema(chosen);
        let schema = FFI_ArrowSchema::try_from(schema.as_ref())
            .map_err(|error| errors::error(py, &error.to_string()))?;
        PyCapsule::new_with_value(py, schema, NAME)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let recording = PyString::new(py, self.recording.get().name_of()).repr()?;
        let symbols = if self.symbols { "with" } else { "without" };
        Ok(format!(
            "<perfconv.Samples of {recording}, {symbols} symbols: {}>",
            self.columns().join(", ")
        ))
    }
}

/// The batches of a recording that is open.
pub struct Batches {
    /// `None` after the end.
    samples: Option<ExportedSamples>,
    is_closed: Arc<AtomicBool>,
}

/// Why there is no next batch.
pub enum BatchError {
    /// The recording was closed.
    Closed,
    /// The recording cannot be read.
    Recording(perfdata_convert::Error),
    /// A warning was made an exception.
    Raised(PyErr),
}

impl Batches {
    /// Returns the next batch; `None` at the end.
    pub fn next(&mut self) -> Result<Option<RecordBatch>, BatchError> {
        if self.is_closed.load(Ordering::Relaxed) {
            self.samples = None;
            return Err(BatchError::Closed);
        }
        let Some(samples) = &mut self.samples else {
            return Ok(None);
        };
        let next = samples.next_batch();
        if let Ok(Some(batch)) = next {
            return Ok(Some(batch));
        }
        let ended = self.samples.take();
        next.map_err(BatchError::Recording)?;
        let ended = ended.map(|samples| samples.ending.check()).transpose();
        if let Some((_, Some(leftover))) = ended.map_err(BatchError::Recording)? {
            let text = format!("{leftover}; the samples do not contain them");
            Python::attach(|py| errors::warn_of_damage(py, &text)).map_err(BatchError::Raised)?;
        }
        Ok(None)
    }
}

/// A stream of batches for other libraries.
struct Stream {
    batches: Batches,
    schema: SchemaRef,
}

impl Stream {
    fn new(batches: Batches) -> Self {
        let schema = batches.samples.as_ref().map(|samples| {
            let metadata = samples.metadata.iter().cloned().collect::<HashMap<_, _>>();
            Schema::new_with_metadata(samples.schema().fields().clone(), metadata)
        });
        Stream {
            batches,
            schema: Arc::new(schema.unwrap_or_else(Schema::empty)),
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let failed = |error| {
            let text = match error {
                BatchError::Closed => "the recording is closed".to_owned(),
                BatchError::Recording(error) => error.to_string(),
                BatchError::Raised(error) => error.to_string(),
            };
            ArrowError::ExternalError(text.into())
        };
        let next = self.batches.next().map_err(failed)?;
        next.map(|batch| batch.with_schema(Arc::clone(&self.schema)))
            .transpose()
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // The caller is C code, through which a panic cannot pass.
        let next = catch_unwind(AssertUnwindSafe(|| self.next_batch()));
        let next = next
            .unwrap_or_else(|_| Err(ArrowError::ExternalError("internal error: a panic".into())));
        if next.is_err() {
            self.batches.samples = None;
        }
        next.transpose()
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
