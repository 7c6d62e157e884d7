//! Fetches the objects and the debug information of recordings from debuginfod servers, by build ID
//! (elfutils, debuginfod(8)).
//!
//! [`DebuginfodClient`] is an [`ObjectFetcher`](perfdata_symbols::ObjectFetcher):
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use perfdata_debuginfod::{ClientSettings, DebuginfodClient, NoObserver};
//! use perfdata_symbols::{Sources, Symbolizer};
//!
//! let servers = ["https://debuginfod.debian.net"];
//! let settings = ClientSettings::from_env().with_servers(servers)?;
//! let client = Arc::new(DebuginfodClient::new(settings, Box::new(NoObserver))?);
//! let symbols = Symbolizer::new(Sources::default().with_fetcher(Some(client.clone())));
//! // After the symbols of all samples were resolved:
//! println!("{} files", client.report().fetched);
//! # Ok(())
//! # }
//! ```
//!
//! # The cache
//!
//! Files are stored where elfutils' client stores them: `BUILD-ID/debuginfo` and `BUILD-ID/executable` in
//! [`debuginfod_cache`](perfdata_symbols::debuginfod_cache), readable by the user only. A file that no
//! server has is an empty one, and is not asked for again within 10 minutes (`cache_miss_s`). This client
//! removes no old files; elfutils' client does when it runs.
//!
//! # Guarantees
//!
//! Servers are not trusted. A file gets its name in the cache only when it is complete, is an ELF file and
//! has the build ID for which it was fetched. The sizes of a transfer and of the unpacked file are
//! limited, and so are the time without progress, redirects and headers. A server that cannot be reached
//! is not asked again by the same client.

#![forbid(unsafe_code)]

mod cache;
mod client;
mod failure;
mod settings;
mod transfer;

pub use client::{
    DebuginfodClient, FetchObserver, FetchReport, NoObserver, NotFetched, TemporaryFile,
};
pub use failure::FetchFailure;
pub use settings::{ClientSettings, InvalidServer};
