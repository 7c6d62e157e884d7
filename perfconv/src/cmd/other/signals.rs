//! There are no signals on Windows and in WebAssembly: Ctrl-C ends the process at once, and the files
//! that it was writing keep their temporary names.

use crate::messages::Messages;

/// Declares that the input is a stream.
pub fn stream_begins() {}

/// Does nothing.
pub fn watch(_: Messages<'static>) {}
