//! The conversions as [stages](crate::pipeline::Stage), one per file.

pub mod compat;
pub mod compress;
pub mod decompress;
pub mod edit;
pub mod features_from;
pub(crate) mod file_features;
pub(crate) mod from_directory;
mod from_json;
pub(crate) mod sample_times;
pub(crate) mod standard_layout;
pub mod swap;
pub(crate) mod to_file;
pub(crate) mod to_pipe;
mod tracepoint_formats;
pub mod without_aux;
