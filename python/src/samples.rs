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
use perfconv::cmd::embedded::{ExportOptions, ExportedSamples, Failure, Value, export_options};
use perfdata_columns::SampleBatches;
use perfdata_convert::pipeline::Converted;
use perfdata_recipe::Ending;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

use crate::commands::{value_of, words_of};
use crate::errors;
use crate::recording::Recording;

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
            words.extend(words_of("samples", "export", options, &["to"])?);
        }
        if !symbols {
            words.push("--no-symbols".into());
        }
        let options = export_options(words).map_err(|failure| match failure {
            Failure::CommandLine(text) => PyValueError::new_err(text),
            Failure::Command(error) => PyValueError::new_err(error.to_string()),
        })?;
        Ok(Samples {
            recording,
            options,
            symbols,
            batch_rows,
        })
    }

    /// Opens a stream.
    fn open(&self, py: Python<'_>) -> PyResult<Stream> {
        let recording = self.recording.get();
        let id = recording.id(py)?;
        let input = recording.input(py)?;
        let samples = py.detach(|| self.options.samples(input, id.as_deref(), self.batch_rows));
        let samples = samples.map_err(|error| errors::of_convert(py, &error))?;
        Ok(Stream::new(samples, recording.closing()))
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
        let stream = FFI_ArrowArrayStream::new(Box::new(self.open(py)?));
        PyCapsule::new_with_value(py, stream, NAME)
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

/// A stream of batches for other libraries.
struct Stream {
    /// A batch that was read before.
    first: Option<RecordBatch>,
    /// `None` after the end.
    batches: Option<SampleBatches<Converted>>,
    ending: Option<Ending>,
    schema: SchemaRef,
    is_closed: Arc<AtomicBool>,
}

impl Stream {
    fn new(samples: ExportedSamples, is_closed: Arc<AtomicBool>) -> Self {
        let ExportedSamples {
            first,
            batches,
            ending,
            metadata,
        } = samples;
        let fields = batches.schema().fields().clone();
        Stream {
            schema: Arc::new(Schema::new_with_metadata(
                fields,
                metadata.into_iter().collect::<HashMap<_, _>>(),
            )),
            first,
            batches: Some(batches),
            ending: Some(ending),
            is_closed,
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let failed = |text: String| ArrowError::ExternalError(text.into());
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(failed("the recording is closed".into()));
        }
        let Some(batches) = &mut self.batches else {
            return Ok(None);
        };
        let next = match self.first.take() {
            Some(first) => Some(first),
            None => batches
                .next_batch()
                .map_err(|error| failed(error.to_string()))?,
        };
        if let Some(batch) = next {
            return batch.with_schema(Arc::clone(&self.schema)).map(Some);
        }
        self.batches = None;
        let ended = self.ending.take().map(Ending::check);
        let ended = ended
            .transpose()
            .map_err(|error| failed(error.to_string()))?;
        if let Some((_, Some(leftover))) = ended {
            let text = format!("{leftover}; the samples do not contain them");
            Python::attach(|py| errors::warn_of_damage(py, &text))
                .map_err(|error| failed(error.to_string()))?;
        }
        Ok(None)
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
            self.batches = None;
        }
        next.transpose()
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
