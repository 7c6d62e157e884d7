//! Reports about recordings: their content, what is wrong with them, and how they differ.

mod batch;
pub mod diff;
mod dispatch;
pub mod leaks;
pub mod pull;
pub mod show;
pub mod verify;
pub mod walk;
