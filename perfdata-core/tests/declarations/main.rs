//! Headers, attributes, features and records: values against bytes, real recordings, random bytes.

mod feature_recordings;
mod feature_values;
mod from_values;
mod header_values;
mod jitdump;
mod positions;
mod records;
mod sample_view;
