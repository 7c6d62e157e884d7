//! Records in the order of time, in bounded memory: those that do not fit are in temporary files.

mod runs;
mod waiting;

pub(crate) use runs::Runs;
pub(crate) use waiting::Waiting;
