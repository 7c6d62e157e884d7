//! Options for opening a recording.

use crate::read::limits::Limits;
use crate::setters::setters;

/// Handling of the metadata records at the start of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Head {
    /// They are read when the recording is opened and become part of the model and the layout.
    #[default]
    Read,
    /// They are returned as records like all others, and enter the model one by one.
    Pass,
}

/// Options for opening a recording.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Options {
    /// Handling of the metadata at the start of a pipe.
    pub head: Head,
    /// Limits on what the recording may request from the reader.
    pub limits: Limits,
}

setters! {
    Options {
        head: Head => with_head,
        limits: Limits => with_limits,
    }
}
