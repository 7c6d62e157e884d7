//! What the bytes of a Linux `perf.data` mean.

#![forbid(unsafe_code)]

pub mod attr;
mod codes;
pub mod describe;
pub mod error;
pub mod feature;
pub mod layout;
pub mod record;
pub mod wire;

pub use binrw::Endian;
pub use error::{Error, Result};
pub use layout::Layout;
