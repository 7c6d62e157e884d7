//! Records: values against bytes, real recordings, random bytes.

mod check;
mod opaque;
mod random;
mod recordings;
pub mod values;
