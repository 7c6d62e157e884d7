//! Reports about recordings: their content, what is wrong with them, and how they differ.

pub mod diff;
pub mod leaks;
pub mod pull;
pub mod show;
