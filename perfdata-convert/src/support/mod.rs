//! What the crates of this workspace share with this one.
//!
//! Not part of the interface: may change in any release.

pub mod batch;
pub mod digits;
pub mod dispatch;
pub mod json_text;
pub mod os;
pub mod shell;
pub mod suggest;
pub mod text;
pub mod values;
