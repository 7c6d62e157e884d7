//! Reading and writing: what the libraries say of a recording is what its bytes say.

mod allocations;
mod by_time;
mod features;
mod fixtures;
mod generate;
mod identity;
mod input_file;
mod odd_forms;
mod records;
mod session;
mod synth_snippets;
mod through_the_model;
mod writers;
