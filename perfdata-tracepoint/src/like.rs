//! The versions of perf that differ in the text.

/// The version of perf whose text is printed.
///
/// perf prints the raw data of tracepoints with libtraceevent. Linux 6.1 has its own copy of it
/// (tools/lib/traceevent); newer versions of perf use the library of the distribution. A version
/// of perf between these prints what the older one prints, or what the newer one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Like {
    /// perf 6.1, with the copy of libtraceevent of Linux 6.1.
    Perf6_1,
    /// perf 6.12, with libtraceevent 1.8.4.
    Perf6_12,
    /// perf 7.2, with libtraceevent 1.9.0.
    #[default]
    Perf7_2,
}

impl Like {
    /// Returns whether libtraceevent is a library of its own, which is newer than the copy in
    /// Linux 6.1.
    pub(crate) fn is_library(self) -> bool {
        self >= Like::Perf6_12
    }
}
