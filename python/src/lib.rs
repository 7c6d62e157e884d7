//! The native part of the Python package `perfconv`. The package documents everything that is
//! public: see `perfconv/__init__.py`, and `docs/python.md`.
//!
//! A panic in this crate reaches Python as an exception: PyO3 catches those of methods, and
//! [`samples`] those of Arrow streams, which are called by other libraries.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod commands;
mod errors;
mod file_object;
mod recording;
mod records;
mod sample_rows;
mod samples;
mod source;
mod values;

/// The native module.
#[pyo3::pymodule]
mod _perfconv {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::commands::{main, option_names, run, selecting_options};
    #[pymodule_export]
    use crate::recording::Recording;
    #[pymodule_export]
    use crate::records::{Record, Records};
    #[pymodule_export]
    use crate::sample_rows::SampleRows;
    #[pymodule_export]
    use crate::samples::Samples;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
