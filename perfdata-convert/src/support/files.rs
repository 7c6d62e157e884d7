//! Files that are written in steps, and those without a name.

pub use crate::io::new_file::{NewFile, sync_file_system};
pub use crate::io::output::date;
pub use crate::io::spool::{failed as temporary_file_failed, temporary_file};
