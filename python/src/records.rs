//! The records of a recording as Python objects.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use perfdata_convert::io::Input;
use perfdata_convert::json::Json;
use perfdata_core::describe::{Describe, Style, WireSize};
use perfdata_core::record::{RawRecord, RecordType, Registers};
use perfdata_report::pull::{Pull, RecordCopy};
use perfdata_report::show::misc_names;
use perfdata_report::show::record::Shown;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::errors;
use crate::recording::locked;
use crate::values::{Values, text};

/// An iterator over records. It reads as far as records are requested.
#[pyclass(frozen, module = "perfconv")]
pub struct Records {
    pull: Mutex<Option<Pull>>,
    is_closed: Arc<AtomicBool>,
    types: Option<Vec<RecordType>>,
}

impl Records {
    /// Opens `input`.
    pub fn new(
        py: Python<'_>,
        input: Input,
        is_closed: Arc<AtomicBool>,
        types: Option<Vec<RecordType>>,
    ) -> PyResult<Self> {
        let pull = py.detach(|| Pull::new(input));
        let pull = pull.map_err(|error| errors::of_convert(py, &error))?;
        Ok(Records {
            pull: Mutex::new(Some(pull)),
            is_closed,
            types,
        })
    }
}

#[pymethods]
impl Records {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let mut guard = locked(&self.pull)?;
        if self.is_closed.load(Ordering::Relaxed) {
            *guard = None;
            return Err(errors::closed());
        }
        let types = self.types.as_deref();
        let wanted = |kind| types.is_none_or(|types| types.contains(&kind));
        loop {
            let Some(pull) = guard.as_mut() else {
                return Ok(None);
            };
            // Most records are in memory: releasing the interpreter takes longer than this.
            let next = match pull.is_at_hand() {
                true => pull.next(wanted),
                false => py.detach(|| pull.next(wanted)),
            };
            match next {
                Err(error) => {
                    *guard = None;
                    return Err(errors::of_convert(py, &error));
                }
                Ok(Some(copy)) => return Record::new(py, copy, pull).map(Some),
                Ok(None) => {
                    let damage = pull.take_damage();
                    let is_finished = pull.is_finished();
                    if is_finished {
                        *guard = None;
                    }
                    for text in damage {
                        errors::warn_of_damage(py, &text)?;
                    }
                    py.check_signals()?;
                    if is_finished {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

/// A record. Its fields are attributes; `dir()` lists them.
#[pyclass(frozen, module = "perfconv")]
pub struct Record {
    copy: RecordCopy,
    /// The fields that were requested so far, so that each is made once.
    fields: PyOnceLock<Py<PyDict>>,
    /// Whether these are all fields.
    is_complete: AtomicBool,
    /// What could be made only when the record was read, because the state then changed.
    early: Option<Early>,
}

/// The parts of a record that depend on the state of the recording.
struct Early {
    json: String,
    text: String,
    time: Option<u64>,
    event: Option<Vec<u8>>,
    sample_id: Option<Py<PyAny>>,
    error: Option<PyErr>,
}

/// The attributes that all records have.
const ATTRIBUTES: [&str; 14] = [
    "data",
    "error",
    "event",
    "fields",
    "inner",
    "misc",
    "offset",
    "sample_id",
    "size",
    "time",
    "to_dict",
    "to_json",
    "type",
    "__match_args__",
];

impl Record {
    fn new(py: Python<'_>, copy: RecordCopy, pull: &Pull) -> PyResult<Self> {
        let fields = PyOnceLock::new();
        let mut early = None;
        if copy.state.is_none() {
            let recording = pull.recording();
            let shown = Shown::new(&raw(&copy)?, copy.inner, recording, pull.names())
                .with_registers(Registers::of(recording));
            let made = made_fields(py, &shown);
            early = Some(Early {
                json: json(&shown),
                text: text_of(&shown),
                time: pull.recording().events.time(&raw(&copy)?),
                event: shown.event().map(std::borrow::Cow::into_owned),
                sample_id: made_sample_id(py, &shown)?.map(Bound::unbind),
                error: made.as_ref().err().map(|error| error.clone_ref(py)),
            });
            if let Ok(made) = made {
                let _ = fields.set(py, made.unbind());
            }
        }
        Ok(Record {
            copy,
            fields,
            is_complete: AtomicBool::new(early.is_some()),
            early,
        })
    }

    fn shown(&self) -> PyResult<Shown<'_>> {
        let missing = || PyRuntimeError::new_err("internal error: a record without state");
        let state = self.copy.state.as_deref().ok_or_else(missing)?;
        let shown = Shown::new(
            &raw(&self.copy)?,
            self.copy.inner,
            &state.recording,
            &state.names,
        );
        Ok(shown.with_registers(state.registers))
    }

    /// Returns the fields that were made so far.
    fn known_fields<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        if let Some(Early {
            error: Some(error), ..
        }) = &self.early
        {
            return Err(error.clone_ref(py));
        }
        let known = self.fields.get_or_init(py, || PyDict::new(py).unbind());
        Ok(known.bind(py))
    }

    fn all_fields<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        let known = self.known_fields(py)?;
        if !self.is_complete.load(Ordering::Relaxed) {
            let all = made_fields(py, &self.shown()?)?;
            // A program may have changed a list in one of them. The order is that of all fields.
            all.update(known.as_mapping())?;
            known.clear();
            known.update(all.as_mapping())?;
            self.is_complete.store(true, Ordering::Relaxed);
        }
        Ok(known)
    }

    /// Returns a field; of the first ones that are requested, each is made by itself.
    fn field<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        /// With as many, it is faster to make all.
        const FEW: usize = 4;
        let known = self.known_fields(py)?;
        if let Some(value) = known.get_item(name)? {
            return Ok(Some(value));
        }
        if self.is_complete.load(Ordering::Relaxed) || known.len() >= FEW {
            return self.all_fields(py)?.get_item(name);
        }
        add_fields(known, &self.shown()?, Some(name))?;
        known.get_item(name)
    }
}

fn raw(copy: &RecordCopy) -> PyResult<RawRecord<'_>> {
    let missing = || PyRuntimeError::new_err("internal error: an incomplete record");
    copy.raw().ok_or_else(missing)
}

/// Adds the fields of a record to `fields`; only `wanted`, if it is given.
fn add_fields(fields: &Bound<'_, PyDict>, shown: &Shown<'_>, wanted: Option<&str>) -> PyResult<()> {
    let mut result = Ok(());
    Values::add_to(fields, wanted, |visitor| {
        result = shown
            .describe_fields(visitor)
            .map_err(|error| errors::of_core(fields.py(), error));
    })?;
    result
}

/// Returns the fields of a record.
fn made_fields<'py>(py: Python<'py>, shown: &Shown<'_>) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    add_fields(&fields, shown, None)?;
    Ok(fields)
}

/// Returns the trailer of a record.
fn made_sample_id<'py>(py: Python<'py>, shown: &Shown<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(record) = shown.record() else {
        return Ok(None);
    };
    let fields = Values::of(py, |visitor| {
        record
            .sample_id
            .describe("sample_id", Style::Plain, visitor);
    })?;
    fields.get_item("sample_id")
}

fn json(shown: &Shown<'_>) -> String {
    let mut json = Json::compact();
    shown.json(&mut json, false);
    json.into_text()
}

fn text_of(shown: &Shown<'_>) -> String {
    let mut text = String::new();
    shown.text(&mut text);
    text.trim_end().to_owned()
}

#[pymethods]
impl Record {
    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("type",)
    }

    /// The type of the record, such as `"SAMPLE"`; for an unknown type, its number as text.
    #[getter]
    fn r#type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let kind = raw(&self.copy)?.kind;
        Ok(match kind.name() {
            Some(name) => PyString::intern(py, name),
            None => PyString::new(py, &kind.to_string()),
        })
    }

    /// Offset of the record in the recording in bytes; for a record inside a compressed record, the
    /// offset of the compressed record.
    #[getter]
    fn offset(&self) -> PyResult<u64> {
        Ok(raw(&self.copy)?.offset)
    }

    /// Index of the record among those of its compressed record, or `None`.
    #[getter]
    fn inner(&self) -> Option<usize> {
        self.copy.inner
    }

    /// Size of the record in bytes.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(raw(&self.copy)?.bytes.len())
    }

    /// The bytes of the record, in the byte order of the recording.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, raw(&self.copy)?.bytes))
    }

    /// The CPU mode and the flags of the record's header.
    #[getter]
    fn misc(&self) -> PyResult<Vec<String>> {
        let raw = raw(&self.copy)?;
        let names = misc_names(raw.kind, raw.misc).into_iter();
        Ok(names.map(Into::into).collect())
    }

    /// Time in nanoseconds on the clock of the recording, or `None`.
    #[getter]
    fn time(&self) -> PyResult<Option<u64>> {
        match (&self.early, &self.copy.state) {
            (Some(early), _) => Ok(early.time),
            (None, Some(state)) => Ok(state.recording.events.time(&raw(&self.copy)?)),
            (None, None) => Ok(None),
        }
    }

    /// Name of the event that the record belongs to, or `None`.
    #[getter]
    fn event<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.early {
            Some(early) => early
                .event
                .as_deref()
                .map(|name| text(py, name))
                .transpose(),
            None => self
                .shown()?
                .event()
                .map(|name| text(py, &name))
                .transpose(),
        }
    }

    /// The fields by name.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.all_fields(py)?.copy()
    }

    /// The trailer of a record of the kernel, or `None`.
    #[getter]
    fn sample_id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.early {
            Some(early) => Ok(early.sample_id.as_ref().map(|id| id.bind(py).clone())),
            None => made_sample_id(py, &self.shown()?),
        }
    }

    /// The reason why the fields cannot be decoded, or `None`.
    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        if let Some(early) = &self.early {
            return Ok(early.error.as_ref().map(|error| error.clone_ref(py)));
        }
        let mut ignored = WireSize::default();
        let shown = self.shown()?;
        let error = shown.describe_fields(&mut ignored).err();
        Ok(error.map(|error| errors::of_core(py, error)))
    }

    /// Returns the object that `perfconv dump --json` writes for the record.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        LOADS.import(py, "json", "loads")?.call1((self.to_json()?,))
    }

    /// Returns the line that `perfconv dump --json` writes for the record.
    fn to_json(&self) -> PyResult<String> {
        match &self.early {
            Some(early) => Ok(early.json.clone()),
            None => self.shown().map(|shown| json(&shown)),
        }
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if name.starts_with("__") {
            return Err(PyAttributeError::new_err(name.to_owned()));
        }
        match self.field(py, name)? {
            Some(value) => Ok(value),
            None => {
                let fields = self.all_fields(py)?;
                let kind = self.r#type(py)?;
                let known: Vec<String> = fields.keys().iter().map(|key| key.to_string()).collect();
                Err(PyAttributeError::new_err(format!(
                    "this {kind} record has no field '{name}'; its fields: {}",
                    known.join(", ")
                )))
            }
        }
    }

    fn __dir__(&self, py: Python<'_>) -> Vec<String> {
        let mut names: Vec<String> = ATTRIBUTES.map(str::to_owned).into();
        if let Ok(fields) = self.all_fields(py) {
            names.extend(fields.keys().iter().map(|name| name.to_string()));
        }
        names.sort();
        names.dedup();
        names
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(match &self.early {
            Some(early) => format!("<perfconv.Record {}>", early.text),
            None => format!("<perfconv.Record {}>", text_of(&self.shown()?)),
        })
    }
}
