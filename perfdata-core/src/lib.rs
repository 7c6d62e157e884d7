//! What the bytes of a Linux `perf.data` mean.

#![forbid(unsafe_code)]

pub mod arrangement;
pub mod attr;
mod codes;
pub mod describe;
pub mod error;
pub mod feature;
pub mod header;
pub mod layout;
pub mod read;
pub mod record;
pub mod recording;
pub mod wire;

pub use binrw::Endian;
pub use error::{Error, Result};
pub use layout::Layout;
pub use recording::{Event, Events, Recording};
