//! The option for debuginfod.

#[cfg(feature = "debuginfod")]
use std::sync::{Arc, OnceLock};

use clap::Args;
#[cfg(feature = "debuginfod")]
use perfdata_debuginfod::DebuginfodClient;

/// The name of the option, which exists only with the feature `debuginfod`.
pub(super) const DEBUGINFOD: &str = "debuginfod";

/// Where objects are fetched that are not on this machine.
#[derive(Debug, Clone, Default, Args)]
pub struct DebuginfodArgs {
    /// Fetch objects that are not here from debuginfod servers
    ///
    /// Programs, libraries and their debug files, by build ID, from these servers, or from those in
    /// $DEBUGINFOD_URLS, in their order; several are separated by spaces. Files are stored in the
    /// cache of debuginfod, which is always searched. A file that cannot be fetched is reported, and
    /// is not an error. Without this option, perfconv never uses the network.
    #[cfg(feature = "debuginfod")]
    #[arg(long, value_name = "URLS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "")]
    pub debuginfod: Option<String>,
    /// What fetches them, after the first use.
    #[cfg(feature = "debuginfod")]
    #[arg(skip)]
    pub client: Arc<OnceLock<Arc<DebuginfodClient>>>,
}
