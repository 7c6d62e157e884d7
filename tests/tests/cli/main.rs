//! The command: its options, messages and reports, and runs that end abnormally.

mod arguments;
mod command_line;
mod counts;
mod diff;
mod dump;
mod endings;
mod errors;
mod export;
mod flame_graph;
mod info;
mod inputs;
mod json_doc;
mod limits;
mod live_pipe;
mod memory;
mod other_machine;
mod outputs;
mod pager;
mod pictures;
mod reports;
mod signals;
mod split;
mod stalled;
mod system_calls;
mod threads;
mod verify;
