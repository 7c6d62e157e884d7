//! Records: values against bytes, real recordings, random bytes.

mod check;
mod opaque;
mod recordings;
mod values;
