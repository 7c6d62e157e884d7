//! Reading and writing: the libraries return the contents of a recording's bytes.

mod allocations;
mod by_time;
mod columns;
mod export;
mod export_parts;
mod features;
mod fixtures;
mod generate;
mod identity;
mod in_memory;
mod input_file;
mod messages;
mod odd_forms;
mod odd_names;
mod otlp;
mod pprof;
mod pull;
mod recipe;
mod records;
mod repeated_stacks;
mod script;
mod session;
mod synth_snippets;
mod through_the_model;
mod writers;
