//! Fields as Python values, made by a visitor of the declarations.

use perfdata_convert::support::values::{is_filling, signed};
use perfdata_core::describe::{Describe, Field, Leaf, Style, Visitor, set_fields};
use perfdata_core::wire::until_nul;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyType};

/// Collects the fields of a value in a dictionary. Structures are `types.SimpleNamespace`.
pub struct Values<'py, 'a> {
    py: Python<'py>,
    root: Bound<'py, PyDict>,
    /// The only field that is made; otherwise all.
    wanted: Option<&'a str>,
    frames: Vec<Frame<'py>>,
    /// How deep the visitor is inside of a field that is not made.
    skipped: usize,
    failed: Option<PyErr>,
}

enum Frame<'py> {
    Structure(&'static str, Bound<'py, PyDict>),
    List(&'static str, Bound<'py, PyList>),
    /// A structure whose fields belong to the structure around it.
    Flat,
}

/// Only unknown content has no name.
fn key(name: &str) -> &str {
    if name.is_empty() { "bytes" } else { name }
}

impl<'py, 'a> Values<'py, 'a> {
    /// Returns the fields that `describe` passes to the visitor.
    pub fn of(
        py: Python<'py>,
        describe: impl FnOnce(&mut dyn Visitor),
    ) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        Self::add_to(&fields, None, describe)?;
        Ok(fields)
    }

    /// Adds the fields that `describe` passes to the visitor to `fields`; of the outermost ones,
    /// only `wanted`, if it is given.
    pub fn add_to(
        fields: &Bound<'py, PyDict>,
        wanted: Option<&'a str>,
        describe: impl FnOnce(&mut dyn Visitor),
    ) -> PyResult<()> {
        let mut values = Values {
            py: fields.py(),
            root: fields.clone(),
            wanted,
            frames: Vec::new(),
            skipped: 0,
            failed: None,
        };
        describe(&mut values);
        values.failed.map_or(Ok(()), Err)
    }

    /// Returns the value of something that can be described.
    pub fn one(py: Python<'py>, value: &(impl Describe + ?Sized)) -> PyResult<Bound<'py, PyAny>> {
        let values = Values::of(py, |visitor| value.describe("value", Style::Plain, visitor))?;
        Ok(values
            .get_item("value")?
            .unwrap_or_else(|| py.None().into_bound(py)))
    }

    fn put(&mut self, name: &str, value: PyResult<Bound<'py, PyAny>>) {
        if self.failed.is_some() {
            return;
        }
        let put = |value: Bound<'py, PyAny>| {
            let key = key(name);
            let inner = self.frames.iter().rev();
            match inner
                .into_iter()
                .find(|frame| !matches!(frame, Frame::Flat))
            {
                None => self.root.set_item(PyString::intern(self.py, key), value),
                Some(Frame::Structure(_, dict)) => {
                    dict.set_item(PyString::intern(self.py, key), value)
                }
                Some(Frame::List(_, list)) => list.append(value),
                Some(Frame::Flat) => Ok(()),
            }
        };
        self.failed = value.and_then(put).err();
    }

    /// Returns whether this field is not made.
    fn is_skipped(&self, name: &str) -> bool {
        let Some(wanted) = self.wanted else {
            return false;
        };
        let is_outermost = self.frames.iter().all(|frame| matches!(frame, Frame::Flat));
        self.skipped > 0 || (is_outermost && key(name) != wanted)
    }

    fn is_in_list(&self) -> bool {
        let mut outer = self.frames.iter().rev();
        let outer = outer.find(|frame| !matches!(frame, Frame::Flat));
        matches!(outer, Some(Frame::List(..)))
    }

    fn number(
        &self,
        number: impl IntoPyObject<
            'py,
            Target = pyo3::types::PyInt,
            Output = Bound<'py, pyo3::types::PyInt>,
            Error = std::convert::Infallible,
        >,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(number) = number.into_pyobject(self.py);
        Ok(number.into_any())
    }

    /// Returns flags as a list of names, or as a dictionary with numbers if a field has several
    /// bits.
    fn flags(&self, word: u64, fields: &'static [Field]) -> PyResult<Bound<'py, PyAny>> {
        if fields.iter().any(|field| field.width > 1) {
            let numbers = PyDict::new(self.py);
            for (name, value) in set_fields(word, fields) {
                numbers.set_item(name, value)?;
            }
            return Ok(numbers.into_any());
        }
        let names = PyList::empty(self.py);
        for (name, value) in set_fields(word, fields) {
            match name {
                "unknown" => names.append(format!("{value:#x}"))?,
                name => names.append(PyString::intern(self.py, name))?,
            }
        }
        Ok(names.into_any())
    }
}

/// Returns text. Bytes that are not UTF-8 become surrogates, as in names of files.
pub fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogateescape")),
    }
}

/// Returns the fields as a `types.SimpleNamespace`.
pub fn namespace<'py>(fields: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = fields.py();
    CLASS
        .import(py, "types", "SimpleNamespace")?
        .call((), Some(fields))
}

impl Visitor for Values<'_, '_> {
    fn begin(&mut self, name: &'static str) {
        let is_flat = name.is_empty() && !self.is_in_list();
        if self.skipped > 0 || (!is_flat && self.is_skipped(name)) {
            self.skipped = self.skipped.saturating_add(1);
            return;
        }
        self.frames.push(match is_flat {
            true => Frame::Flat,
            false => Frame::Structure(name, PyDict::new(self.py)),
        });
    }

    fn begin_list(&mut self, name: &'static str, _: usize) {
        if self.is_skipped(name) {
            self.skipped = self.skipped.saturating_add(1);
            return;
        }
        self.frames.push(Frame::List(name, PyList::empty(self.py)));
    }

    fn end(&mut self) {
        if self.skipped > 0 {
            self.skipped = self.skipped.saturating_sub(1);
            return;
        }
        match self.frames.pop() {
            Some(Frame::Structure(name, fields)) => self.put(name, namespace(&fields)),
            Some(Frame::List(name, list)) => self.put(name, Ok(list.into_any())),
            Some(Frame::Flat) | None => {}
        }
    }

    fn words(&mut self, name: &'static str, words: &[u64], style: Style) {
        if self.is_skipped(name) {
            return;
        }
        if style.has_none() || style == Style::Pad {
            self.begin_list(name, words.len());
            for &word in words {
                self.leaf("", size_of::<u64>(), Leaf::Uint(word, style));
            }
            return self.end();
        }
        let list = PyList::new(self.py, words).map(Bound::into_any);
        self.put(name, list);
    }

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        if is_filling(&value) || self.is_skipped(name) {
            return;
        }
        let py = self.py;
        let value = match value {
            Leaf::Uint(word, style) => match signed(word, size, style) {
                Some(number) => self.number(number),
                None => self.number(word),
            },
            Leaf::Int(number) => self.number(number),
            Leaf::Float(number) => Ok(pyo3::types::PyFloat::new(py, number).into_any()),
            Leaf::Code(_, Some(code), _) => Ok(PyString::intern(py, code).into_any()),
            Leaf::Code(number, None, _) | Leaf::Count(number) => self.number(number),
            Leaf::Flags { word, fields, .. } => self.flags(word, fields),
            Leaf::Text(bytes) => text(py, until_nul(bytes)),
            Leaf::Bytes(bytes) | Leaf::Pad(bytes) | Leaf::Opaque(bytes) => {
                Ok(PyBytes::new(py, bytes).into_any())
            }
            _ => Ok(py.None().into_bound(py)),
        };
        self.put(name, value);
    }
}
