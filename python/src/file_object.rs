//! Python's binary file objects as readers.

use std::io::{self, Read};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// A reader that calls the method `read` of a Python object.
pub struct FileObject {
    object: Py<PyAny>,
    /// Bytes that the object returned, although fewer were requested.
    rest: Option<(PyBackedBytes, usize)>,
}

impl FileObject {
    /// Returns a reader of `object`.
    pub fn new(object: Py<PyAny>) -> Self {
        FileObject { object, rest: None }
    }
}

impl Read for FileObject {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (bytes, at) = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let read = |py: Python<'_>| -> PyResult<PyBackedBytes> {
                    let object = self.object.bind(py);
                    // A pipe should not wait until the whole buffer is full.
                    let name = match object.hasattr("read1")? {
                        true => "read1",
                        false => "read",
                    };
                    object
                        .call_method1(name, (buf.len(),))?
                        .extract()
                        .map_err(PyErr::from)
                };
                (Python::attach(read).map_err(io::Error::other)?, 0)
            }
        };
        let mut left = bytes.get(at..).unwrap_or_default();
        let read = left.read(buf)?;
        if !left.is_empty() {
            self.rest = Some((bytes, at.saturating_add(read)));
        }
        Ok(read)
    }
}
