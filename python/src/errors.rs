//! Errors of the libraries as Python exceptions.

use std::io;
use std::path::Path;

use perfdata_convert::Error;
use perfdata_convert::error::Step;
use perfdata_core::error::Problem;
use pyo3::exceptions::{PyFileExistsError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// The module with the classes.
const CLASSES: &str = "perfconv._errors";

/// Returns the class `perfconv.Error`.
fn base(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, CLASSES, "Error")
}

/// Returns the class `perfconv.FormatError`.
fn format_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, CLASSES, "FormatError")
}

/// Returns the exception for use after `close`.
pub fn closed() -> PyErr {
    PyValueError::new_err("the recording is closed")
}

/// Returns `perfconv.Error` with a message.
pub fn error(py: Python<'_>, text: &str) -> PyErr {
    match base(py) {
        Ok(class) => PyErr::from_type(class.clone(), (text.to_owned(),)),
        Err(error) => error,
    }
}

/// Issues the warning `perfconv.DamageWarning`.
pub fn warn_of_damage(py: Python<'_>, text: &str) -> PyResult<()> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, CLASSES, "DamageWarning")?;
    let warn = py.import("warnings")?.getattr("warn")?;
    warn.call1((text, class, 2))?;
    Ok(())
}

/// Returns the exception for an error of the core.
pub fn of_core(py: Python<'_>, error: &perfdata_core::Error) -> PyErr {
    match error.problem() {
        Problem::Io(source) => of_io(py, source, Some(Path::new(error.structure_name()))),
        _ => detailed(py, error, &error.to_string()),
    }
}

/// Returns the exception for an error of a conversion; `text` is the message.
pub fn of(py: Python<'_>, error: &Error, text: &str) -> PyErr {
    if let Some(Step::Overwrite) = error.step() {
        return PyFileExistsError::new_err(text.to_owned());
    }
    match error {
        Error::Io { source, path } => of_io(py, source, Some(path)),
        Error::Write(perfdata_write::Error::Io { source, .. }) => of_io(py, source, None),
        Error::Usage(_) => PyValueError::new_err(text.to_owned()),
        Error::Avoidable { source, .. } if matches!(**source, Error::Usage(_)) => {
            PyValueError::new_err(text.to_owned())
        }
        Error::Merged { source, .. } | Error::Compared { source, .. } => of(py, source, text),
        _ => match error.of_input().map(|input| (input, input.problem())) {
            Some((input, Problem::Io(source))) => {
                of_io(py, source, Some(Path::new(input.structure_name())))
            }
            Some((input, _)) => detailed(py, input, text),
            None => self::error(py, text),
        },
    }
}

/// Returns the exception for an error whose text needs no more context.
pub fn of_convert(py: Python<'_>, error: &Error) -> PyErr {
    of(py, error, &error.to_string())
}

/// Returns `OSError`, or the exception that a Python file object raised.
pub fn of_io(py: Python<'_>, error: &io::Error, path: Option<&Path>) -> PyErr {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<PyErr>());
    match (inner, error.raw_os_error()) {
        (Some(raised), _) => raised.clone_ref(py),
        (None, Some(number)) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
            match path {
                Some(path) => PyOSError::new_err((number, text, path.as_os_str().to_owned())),
                None => PyOSError::new_err((number, text)),
            }
        }
        (None, None) => PyOSError::new_err(match path {
            Some(path) => format!("{}: {error}", path.display()),
            None => error.to_string(),
        }),
    }
}

/// Returns `perfconv.FormatError` with the parts of an error.
fn detailed(py: Python<'_>, error: &perfdata_core::Error, text: &str) -> PyErr {
    let details = || -> PyResult<PyErr> {
        let parts = PyDict::new(py);
        parts.set_item("offset", error.offset())?;
        parts.set_item("structure", error.structure_name())?;
        parts.set_item("field", error.field_name())?;
        let (found, expected) = match error.problem() {
            Problem::Truncated { needed, available } => (
                Some(format!("{available} bytes")),
                Some(format!("{needed} bytes")),
            ),
            Problem::Invalid { found, expected } => {
                let expected = (!expected.is_empty()).then(|| expected.to_string());
                (Some(found.to_string()), expected)
            }
            Problem::Limit { found, limit, .. } => (
                found.map(|found| found.to_string()),
                Some(format!("at most {limit}")),
            ),
            _ => (None, None),
        };
        parts.set_item("found", found)?;
        parts.set_item("expected", expected)?;
        let raised = format_error(py)?.call((text,), Some(&parts))?;
        Ok(PyErr::from_value(raised))
    };
    details().unwrap_or_else(|error| error)
}
