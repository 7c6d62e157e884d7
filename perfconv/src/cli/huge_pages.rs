//! The option for code on huge pages.

use clap::Args;

use super::convert::CONVERSIONS;

/// Whether the files of code on huge pages are found.
#[derive(Debug, Clone, Args)]
pub struct HugePageArgs {
    /// Take executable memory in the place of a file's mapping for the file
    ///
    /// Chrome, node, MySQL, libhugetlbfs and BOLT copy the code of a file to memory with huge pages,
    /// whose functions have no names then. Do not use this if a JIT compiler can have code where a
    /// file was mapped before. The records are sorted. A stream is stored until it ends.
    #[arg(long, hide_short_help = true, help_heading = CONVERSIONS)]
    pub deduce_huge_pages: bool,
}
