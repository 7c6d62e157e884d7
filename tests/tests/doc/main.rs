//! The documentation: its commands, its examples, and the examples of the libraries.

mod documentation;
mod examples;
mod type_names;
mod unsafe_code;
