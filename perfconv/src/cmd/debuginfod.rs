//! Objects from debuginfod servers: what fetches them, and the report about it.

#[cfg(not(feature = "debuginfod"))]
pub(super) use without::{fetcher, tell};

#[cfg(feature = "debuginfod")]
pub(super) use with::{fetcher, tell};

/// Without HTTP.
#[cfg(not(feature = "debuginfod"))]
mod without {
    use std::sync::Arc;

    use perfdata_convert::error::Result;
    use perfdata_export::ObjectFetcher;

    use crate::cli::DebuginfodArgs;
    use crate::messages::Messages;

    /// Returns nothing: there is no option.
    #[allow(clippy::unnecessary_wraps, reason = "as with HTTP")]
    pub fn fetcher(_: &DebuginfodArgs) -> Result<Option<Arc<dyn ObjectFetcher>>> {
        Ok(None)
    }

    /// Reports nothing.
    pub fn tell(_: &DebuginfodArgs, _: Messages) {}
}

#[cfg(feature = "debuginfod")]
mod with {
    use std::collections::BTreeSet;
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    use indicatif::HumanBytes;
    use perfdata_convert::error::{Error, Result};
    use perfdata_convert::interrupt::Temporary;
    use perfdata_debuginfod::{
        ClientSettings, DebuginfodClient, FetchFailure, FetchObserver, FetchReport, NotFetched,
        TemporaryFile,
    };
    use perfdata_export::ObjectFetcher;

    use crate::cli::DebuginfodArgs;
    use crate::messages::Messages;
    use crate::progress;
    use crate::suggestions::count;

    /// Maximum number of files that are listed because they were not fetched.
    const MOST_LISTED: usize = 5;

    /// Returns what fetches objects, if the option is given: the same for all inputs of a command.
    ///
    /// # Errors
    /// No server is named, or the name of one is not an URL, or there is no cache.
    pub fn fetcher(args: &DebuginfodArgs) -> Result<Option<Arc<dyn ObjectFetcher>>> {
        let Some(named) = &args.debuginfod else {
            return Ok(None);
        };
        if let Some(known) = args.client.get() {
            return Ok(Some(known.clone()));
        }
        let mut servers: Vec<String> = named.split_whitespace().map(str::to_owned).collect();
        if servers.is_empty() {
            servers = ClientSettings::servers_of_env();
        }
        if servers.is_empty() {
            let what = "--debuginfod needs a server: use --debuginfod=URL, or set DEBUGINFOD_URLS";
            return Err(Error::Usage(what.into()));
        }
        let settings = ClientSettings::from_env()
            .with_servers(servers.iter().map(String::as_str))
            .map_err(|error| Error::Usage(error.to_string()))?;
        let observer = Box::new(FetchProgress::default());
        let client = DebuginfodClient::new(settings, observer)
            .map_err(|error| Error::Usage(error.to_string()))?;
        let client = args.client.get_or_init(|| Arc::new(client)).clone();
        Ok(Some(client))
    }

    /// Reports what was fetched, and what was not.
    pub fn tell(args: &DebuginfodArgs, messages: Messages) {
        let Some(client) = args.client.get() else {
            return;
        };
        let report = client.report();
        for (server, failure) in &report.unreachable {
            messages.note(format_args!("{server}: {failure}; not asked again"));
        }
        let (absent, failed) = not_fetched(&report);
        for object in &absent {
            messages.detail(format_args!("{object}: no debuginfod server has it"));
        }
        for (at, text) in failed.iter().enumerate() {
            match at < MOST_LISTED {
                true => messages.note(text),
                false => messages.detail(text),
            }
        }
        if let Some(more) = failed.len().checked_sub(MOST_LISTED)
            && more > 0
        {
            let more = count(more as u64, "other object");
            messages.note(format_args!("{more} not fetched; -v lists them"));
        }
        messages.summary(format_args!("debuginfod: {}", summary(&report)));
    }

    /// Returns the objects of which no server has a file, and why those of others were not fetched.
    fn not_fetched(report: &FetchReport) -> (BTreeSet<String>, Vec<String>) {
        let (mut absent, mut failed) = (BTreeSet::new(), Vec::new());
        for NotFetched { name, failure, .. } in &report.not_fetched {
            let name = String::from_utf8_lossy(name);
            match failure {
                FetchFailure::NotFound => {
                    absent.insert(name.into_owned());
                }
                // The reason is that of the server.
                FetchFailure::NoServer => {}
                failure => {
                    let text = format!("{name}: not fetched from debuginfod: {failure}");
                    if !failed.contains(&text) {
                        failed.push(text);
                    }
                }
            }
        }
        (absent, failed)
    }

    fn summary(report: &FetchReport) -> String {
        let number = |is_meant: &dyn Fn(&FetchFailure) -> bool| {
            let all = report.not_fetched.iter();
            all.filter(|file| is_meant(&file.failure)).count() as u64
        };
        let absent = number(&|failure| *failure == FetchFailure::NotFound);
        let unasked = number(&|failure| *failure == FetchFailure::NoServer);
        let others = report.not_fetched.len() as u64;
        let failed = others.saturating_sub(absent).saturating_sub(unasked);
        let mut text = format!("{} fetched", count(report.fetched, "file"));
        if report.bytes > 0 {
            text += &format!(" ({})", HumanBytes(report.bytes));
        }
        for (number, what) in [
            (absent, "not on the servers"),
            (unasked, "without a server"),
            (failed, "failed"),
        ] {
            if number > 0 {
                text += &format!(", {number} {what}");
            }
        }
        text
    }

    /// Shows what is fetched at the end of the progress bar, and has files removed if a signal ends the
    /// process.
    #[derive(Debug, Default)]
    struct FetchProgress {
        bytes: AtomicU64,
        /// The names of the objects that are being fetched.
        names: Mutex<Vec<String>>,
    }

    impl FetchProgress {
        fn names(&self, change: impl FnOnce(&mut Vec<String>)) {
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut names);
            let bytes = HumanBytes(self.bytes.load(Ordering::Relaxed));
            progress::show_other_work(match names.first() {
                Some(name) => format!("  debuginfod: {name}, {bytes}"),
                None => String::new(),
            });
        }
    }

    /// Returns the name of a file without its folder and control characters.
    fn shown(name: &[u8]) -> String {
        let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        let name = String::from_utf8_lossy(name);
        name.escape_debug().take(40).collect()
    }

    impl FetchObserver for FetchProgress {
        fn started(&self, name: &[u8]) {
            self.names(|names| names.push(shown(name)));
        }

        fn arrived(&self, bytes: u64) {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.names(|_| ());
        }

        fn finished(&self, name: &[u8]) {
            let name = shown(name);
            self.names(|names| {
                let at = names.iter().position(|known| *known == name);
                at.map(|at| names.remove(at));
            });
        }

        fn create(
            &self,
            make: &mut dyn FnMut() -> io::Result<tempfile::NamedTempFile>,
        ) -> io::Result<TemporaryFile> {
            let (file, guard) = Temporary::make(make, |file| file.path())?;
            Ok((file, Box::new(guard)))
        }
    }
}
