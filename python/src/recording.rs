//! An open recording.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use perfconv::cmd::embedded::recording_id;
use perfdata_convert::io::Input;
use perfdata_core::Endian;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::describe::{Describe, Style};
use perfdata_core::feature::FeatureId;
use perfdata_core::header::PipeHeader;
use perfdata_core::record::RecordType;
use perfdata_report::show::dump::Dump;
use perfdata_report::show::overview::Overview;
use perfdata_session::EventNames;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyType};

use crate::errors;
use crate::records::Records;
use crate::samples::Samples;
use crate::source::{Named, Origin};
use crate::values::{Values, namespace, text};

/// A recording. `perfconv.open` returns it.
///
/// The header, the features and the events are those at the start of the recording: those of a
/// stream may follow later.
#[pyclass(frozen, module = "perfconv")]
pub struct Recording {
    name: String,
    origin: Mutex<Option<Origin>>,
    is_closed: Arc<AtomicBool>,
    model: perfdata_core::Recording,
    names: EventNames,
    layout: ContainerLayout,
    /// The ID, once it is known.
    id: Mutex<Option<Option<String>>>,
}

/// Locks something that no other thread should hold: after a fork, a thread that held it may not
/// exist anymore.
pub fn locked<T>(value: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    match value.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
            "another thread uses this object at this moment",
        )),
    }
}

impl Recording {
    /// Returns an input for a pass over the recording.
    pub fn input(&self, py: Python<'_>) -> PyResult<Input> {
        let mut origin = locked(&self.origin)?;
        let origin = origin.as_mut().ok_or_else(errors::closed)?;
        // This reads nothing.
        origin
            .input()
            .map_err(|error| errors::of_convert(py, &error))
    }

    /// Returns the name of the source.
    pub fn name_of(&self) -> &str {
        &self.name
    }

    /// Returns whether the recording is closed, for what reads from it.
    pub fn closing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_closed)
    }

    /// Returns the ID of the recording; `None` for a stream.
    pub fn id(&self, py: Python<'_>) -> PyResult<Option<String>> {
        if let Some(id) = &*locked(&self.id)? {
            return Ok(id.clone());
        }
        let input = match locked(&self.origin)?.as_ref().ok_or_else(errors::closed)? {
            Origin::Once(_) => None,
            Origin::Again(input) => input.again(),
        };
        // Several threads may do this at the same time: none waits for another.
        let found = py.detach(move || input.as_ref().map(recording_id).transpose());
        let found = found.map_err(|error| errors::of_convert(py, &error))?;
        Ok(locked(&self.id)?.insert(found.flatten()).clone())
    }
}

#[pymethods]
impl Recording {
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (named, name) = Named::of(source)?;
        let opened = py.detach(|| {
            let mut origin = named.open()?;
            let (model, layout) = origin.look(|input| {
                let (reader, _) = input.reader()?;
                Ok((
                    reader.recording().clone(),
                    reader.container_layout().clone(),
                ))
            })?;
            let names = EventNames::of(&model);
            Ok((origin, model, layout, names))
        });
        let (origin, model, layout, names) =
            opened.map_err(|error| errors::of_convert(py, &error))?;
        Ok(Recording {
            name,
            origin: Mutex::new(Some(origin)),
            is_closed: Arc::default(),
            model,
            names,
            layout,
            id: Mutex::default(),
        })
    }

    /// The name of the source.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// `"file"` or `"pipe"`.
    #[getter]
    fn container(&self) -> &'static str {
        match self.layout {
            ContainerLayout::File(_) => "file",
            ContainerLayout::Pipe(_) => "pipe",
        }
    }

    /// `"little"` or `"big"`.
    #[getter]
    fn byte_order(&self) -> &'static str {
        match self.model.endian {
            Endian::Little => "little",
            Endian::Big => "big",
        }
    }

    /// The ID of the recording: XXH3-128 of its bytes, in hexadecimal, as in exported columns.
    /// `None` for a stream.
    #[getter(id)]
    fn id_of(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.id(py)
    }

    /// The fields of the header.
    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let fields = Values::of(py, |visitor| match &self.layout {
            ContainerLayout::File(file) => file.header.describe("", Style::Plain, visitor),
            ContainerLayout::Pipe(_) => {
                let header = PipeHeader {
                    magic: self.model.magic,
                    size: PipeHeader::SIZE,
                };
                header.describe("", Style::Plain, visitor);
            }
        })?;
        namespace(&fields)
    }

    /// The feature sections by name, decoded when they are requested.
    #[getter]
    fn features<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let names = slf.get().model.features.keys().map(|id| feature_name(*id));
        let names = PyList::new(py, names)?;
        let class = py.import("perfconv._model")?.getattr("Features")?;
        class.call1((names, slf.getattr("_feature")?))
    }

    fn _feature<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let mut ids = self.model.features.keys();
        let id = ids.find(|id| feature_name(**id) == name);
        match id.and_then(|id| self.model.feature(*id)) {
            None => Err(PyKeyError::new_err(name.to_owned())),
            Some(Ok(section)) => Values::one(py, &section.value),
            Some(Err(error)) => Err(errors::of_core(py, &error)),
        }
    }

    /// The events, in the order of the recording.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let class = py.import("perfconv._model")?.getattr("Event")?;
        let events = PyList::empty(py);
        for (at, event) in self.model.events.iter().enumerate() {
            let name = self.names.get(&self.model, at).unwrap_or_default();
            let attr = Values::one(py, &event.attr)?;
            let ids = Values::one(py, &event.ids)?;
            events.append(class.call1((at, text(py, &name)?, attr, ids))?)?;
        }
        Ok(events)
    }

    /// What `perfconv info --json` shows, as a dictionary. Reads the whole recording.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let input = self.input(py)?;
        let json = py.detach(|| Overview::of(input).map(|overview| overview.json()));
        let json = json.map_err(|error| errors::of_convert(py, &error))?;
        py.import("json")?.call_method1("loads", (json,))
    }

    /// Returns an iterator over the records, in the order of the recording.
    #[pyo3(signature = (types=None))]
    fn records(&self, py: Python<'_>, types: Option<&Bound<'_, PyAny>>) -> PyResult<Records> {
        let types = types.map(record_types).transpose()?;
        Records::new(py, self.input(py)?, self.closing(), types)
    }

    /// Returns the samples as Arrow columns.
    #[pyo3(signature = (columns=None, symbols=false, batch_size=65_536, **options))]
    fn samples(
        slf: &Bound<'_, Self>,
        columns: Option<&Bound<'_, PyAny>>,
        symbols: bool,
        batch_size: usize,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Samples> {
        if slf.get().closed() {
            return Err(errors::closed());
        }
        Samples::new(slf.clone().unbind(), columns, symbols, batch_size, options)
    }

    /// Closes the recording. Iterators and streams that were made before end with an exception.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        if let Ok(mut origin) = locked(&self.origin) {
            *origin = None;
        }
    }

    /// Whether the recording is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        match slf.get().closed() {
            true => Err(errors::closed()),
            false => Ok(slf.clone()),
        }
    }

    #[pyo3(signature = (kind, value, traceback, /))]
    fn __exit__(
        &self,
        kind: Option<&Bound<'_, PyType>>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) {
        let _ = (kind, value, traceback);
        self.close();
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Records> {
        self.records(py, None)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = PyString::new(py, &self.name).repr()?;
        let closed = if self.closed() { ", closed" } else { "" };
        let events = self.model.events.len();
        Ok(format!(
            "<perfconv.Recording {name}: {}-endian {}, {events} event{}, {} features{closed}>",
            self.byte_order(),
            self.container(),
            if events == 1 { "" } else { "s" },
            self.model.features.len(),
        ))
    }
}

/// Returns the name of a feature, or its number.
fn feature_name(id: FeatureId) -> String {
    id.name().map_or_else(|| id.0.to_string(), str::to_owned)
}

/// Returns the types of records with these names or numbers.
fn record_types(types: &Bound<'_, PyAny>) -> PyResult<Vec<RecordType>> {
    let one = |kind: &Bound<'_, PyAny>| {
        let name = kind.str()?;
        Dump::type_of(name.to_string_lossy().trim())
            .map_err(|error| PyValueError::new_err(error.to_string()))
    };
    if let Ok(names) = types.cast::<PyString>() {
        let names = names.to_string_lossy();
        let names = names.split(',').map(|name| PyString::new(types.py(), name));
        return names.map(|name| one(name.as_any())).collect();
    }
    types.try_iter()?.map(|kind| one(&kind?)).collect()
}
