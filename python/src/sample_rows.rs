//! The samples of a recording as Python objects, without a library for Arrow.

use std::sync::Mutex;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyTzInfo};

use crate::errors;
use crate::recording::locked;
use crate::samples::{BatchError, Batches};

/// An iterator over samples. It reads as far as samples are requested.
#[pyclass(frozen, module = "perfconv")]
pub struct SampleRows {
    /// The class of a sample: a named tuple.
    class: Py<PyAny>,
    rows: Mutex<Option<Rows>>,
}

struct Rows {
    batches: Batches,
    /// The samples of the current batch that were not returned, the next one last.
    samples: Vec<Py<PyTuple>>,
}

impl SampleRows {
    /// Returns the samples of `batches` with these columns.
    pub fn new(py: Python<'_>, batches: Batches, columns: &[&str]) -> PyResult<Self> {
        let named = py.import("collections")?.getattr("namedtuple")?;
        let options = PyDict::new(py);
        options.set_item("module", "perfconv")?;
        let class = named.call(("Sample", columns.to_vec()), Some(&options))?;
        Ok(SampleRows {
            class: class.unbind(),
            rows: Mutex::new(Some(Rows {
                batches,
                samples: Vec::new(),
            })),
        })
    }
}

#[pymethods]
impl SampleRows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut guard = locked(&self.rows)?;
        loop {
            let Some(rows) = guard.as_mut() else {
                return Ok(None);
            };
            if let Some(sample) = rows.samples.pop() {
                let class = self.class.bind(py);
                return class.call_method1("_make", (sample,)).map(Some);
            }
            let batch = match py.detach(|| rows.batches.next()) {
                Ok(Some(batch)) => batch,
                Ok(None) => {
                    *guard = None;
                    return Ok(None);
                }
                Err(error) => {
                    *guard = None;
                    return Err(match error {
                        BatchError::Closed => errors::closed(),
                        BatchError::Recording(error) => errors::of_convert(py, &error),
                        BatchError::Raised(error) => error,
                    });
                }
            };
            rows.samples = samples_of(py, &batch)?;
        }
    }
}

/// Returns the rows of a batch, the first one last.
fn samples_of(py: Python<'_>, batch: &RecordBatch) -> PyResult<Vec<Py<PyTuple>>> {
    let columns = batch.columns().iter();
    let columns = columns
        .map(|column| values_of(py, column.as_ref()))
        .collect::<PyResult<Vec<_>>>()?;
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let mut samples = Vec::with_capacity(batch.num_rows());
    for _ in 0..batch.num_rows() {
        let row = columns.iter_mut().filter_map(Iterator::next);
        samples.push(PyTuple::new(py, row.collect::<Vec<_>>())?.unbind());
    }
    samples.reverse();
    Ok(samples)
}

/// Returns the values of a column of numbers; `None` for null.
fn numbers<'py, T: ArrowPrimitiveType<Native: Into<i64>>>(
    py: Python<'py>,
    column: &PrimitiveArray<T>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let number = |number: Option<T::Native>| match number {
        Some(number) => Ok(number.into().into_pyobject(py)?.into_any()),
        None => Ok(py.None().into_bound(py)),
    };
    column.iter().map(number).collect()
}

/// Returns the values of a column; `None` for null.
fn values_of<'py>(py: Python<'py>, column: &dyn Array) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let none = || py.None().into_bound(py);
    let or_none = |value: Option<Bound<'py, PyAny>>| value.unwrap_or_else(none);
    let any = |value: PyResult<Option<Bound<'py, PyAny>>>| value.map(or_none);
    match column.data_type() {
        DataType::Int64 => numbers(py, column.as_primitive::<Int64Type>()),
        DataType::Int32 => numbers(py, column.as_primitive::<Int32Type>()),
        DataType::Boolean => {
            let truths = column.as_boolean().iter();
            truths
                .map(|truth| {
                    let truth = truth.map(|it| Ok(it.into_pyobject(py)?.to_owned().into_any()));
                    any(truth.transpose())
                })
                .collect()
        }
        DataType::Utf8 => {
            let texts = column.as_string::<i32>().iter();
            let text = |text| PyString::new(py, text).into_any();
            Ok(texts.map(|it| or_none(it.map(text))).collect())
        }
        DataType::Binary => {
            let all = column.as_binary::<i32>().iter();
            let bytes = |bytes| PyBytes::new(py, bytes).into_any();
            Ok(all.map(|it| or_none(it.map(bytes))).collect())
        }
        DataType::Dictionary(..) => {
            let column = column.as_dictionary::<Int32Type>();
            let names = values_of(py, column.values().as_ref())?;
            let name = |key: Option<usize>| or_none(key.and_then(|key| names.get(key).cloned()));
            Ok(column.keys_iter().map(name).collect())
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            let values = values_of(py, lists.values().as_ref())?;
            let mut all = Vec::with_capacity(lists.len());
            for (at, range) in lists.value_offsets().windows(2).enumerate() {
                let (Some(&start), Some(&end)) = (range.first(), range.last()) else {
                    continue;
                };
                let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
                let part = range.and_then(|(start, end)| values.get(start..end));
                all.push(match part.filter(|_| lists.is_valid(at)) {
                    Some(part) => PyList::new(py, part)?.into_any(),
                    None => none(),
                });
            }
            Ok(all)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let module = py.import("datetime")?;
            let epoch = module.getattr("datetime")?;
            let epoch = epoch.call1((1970, 1, 1, 0, 0, 0, 0, PyTzInfo::utc(py)?))?;
            let delta = module.getattr("timedelta")?;
            let times = column.as_primitive::<TimestampMicrosecondType>().iter();
            times
                .map(|time| match time {
                    Some(time) => epoch.add(delta.call1((0, 0, time))?),
                    None => Ok(none()),
                })
                .collect()
        }
        other => Err(errors::error(
            py,
            &format!("internal error: a column of the type {other}"),
        )),
    }
}
