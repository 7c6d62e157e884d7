//! Why addresses have no names.

use std::fmt;

use perfdata_session::{BuildId, DsoKind};

/// Why the symbols of an object are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No file with the object's build ID was found.
    NotFound,
    /// A file with the object's name exists, but its build ID is another one.
    OtherBuildId(BuildId),
    /// The recording contains no build ID of the object, so that no file can be verified.
    NoBuildId,
    /// The recording contains no build ID of the object, and there is no file with its name.
    NeitherIdNorFile,
    /// The object belongs to another kernel than the running one, and no image of it was found.
    OtherKernel,
    /// The kernel of this machine was started again after the recording, and the recording contains no
    /// build ID of its kernel that could be compared.
    OtherBoot,
    /// The kernel hides the addresses of its symbols from this process.
    HiddenAddresses(HidingSetting),
    /// The recording contains no build ID, and the file on this machine has another device or inode.
    OtherFile,
    /// The recording contains no build ID, and the file was modified after the recording.
    ModifiedFile,
    /// The recording contains no build ID of the module, and it is not loaded at the recorded address.
    OtherModule,
    /// The object has no symbols.
    Stripped,
    /// There is no `/tmp/perf-PID.map` of the process, or it may be one of another process.
    NoPerfMap,
    /// The object belongs to a guest.
    Guest,
    /// The object cannot be read, or is damaged.
    Unreadable(String),
    /// The symbol table was removed, and no symbol that is known nevertheless contains the address.
    NoRemainingSymbol,
    /// The symbols are known, but none of them contains the address.
    NoSymbol,
}

/// A setting of the kernel that hides the addresses of its symbols, and its value
/// (Documentation/admin-guide/sysctl/kernel.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HidingSetting {
    /// `kernel.kptr_restrict`: 1 hides them from processes without `CAP_SYSLOG`, 2 from all.
    KptrRestrict(i64),
    /// `kernel.perf_event_paranoid`, if `kernel.kptr_restrict` is 0: above 1, they are hidden from
    /// processes without `CAP_SYSLOG`.
    PerfEventParanoid(i64),
}

impl fmt::Display for HidingSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HidingSetting::KptrRestrict(value) => write!(f, "kernel.kptr_restrict is {value}"),
            HidingSetting::PerfEventParanoid(value) => {
                write!(f, "kernel.perf_event_paranoid is {value}")
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NotFound => f.write_str("no file with its build ID was found"),
            Reason::OtherBuildId(id) => write!(f, "the file on this machine has the build ID {id}"),
            Reason::NoBuildId => f.write_str("the recording does not contain its build ID"),
            Reason::NeitherIdNorFile => f.write_str(
                "the recording does not contain its build ID, and there is no file with its name",
            ),
            Reason::OtherKernel => {
                f.write_str("it is not the running kernel, and no image of it was found")
            }
            Reason::OtherBoot => f.write_str(
                "the recording does not contain its build ID, and the kernel was started again after it",
            ),
            Reason::HiddenAddresses(setting) => {
                write!(f, "the kernel hides its addresses ({setting})")
            }
            Reason::OtherFile => f.write_str(
                "the recording does not contain its build ID, and the file has another device or inode",
            ),
            Reason::ModifiedFile => f.write_str(
                "the recording does not contain its build ID, and the file was modified after it",
            ),
            Reason::OtherModule => f.write_str(
                "the recording does not contain its build ID, and it is not loaded at its address",
            ),
            Reason::Stripped => f.write_str("it has no symbols"),
            Reason::NoPerfMap => f.write_str("there is no perf map of the process"),
            Reason::Guest => f.write_str("it belongs to a guest"),
            Reason::Unreadable(error) => f.write_str(error),
            Reason::NoRemainingSymbol => f.write_str(
                "its symbol table was removed, and no other symbol of it contains the address",
            ),
            Reason::NoSymbol => f.write_str("no symbol contains the address"),
        }
    }
}

/// An object with addresses that have no names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unresolved {
    /// The name of the object in the recording.
    pub name: Box<[u8]>,
    /// Its kind.
    pub kind: DsoKind,
    /// Its build ID, if the recording contains it.
    pub build_id: Option<BuildId>,
    /// Number of addresses without a name. Up to 1,048,576 of all objects are counted once, further ones at
    /// each lookup.
    pub lookups: u64,
    /// The reason.
    pub reason: Reason,
}

/// Where symbols were searched, as far as it decides what else could find more of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SearchedSources {
    /// Whether this machine made the recording, by its host name and kernel release.
    pub is_own_machine: bool,
    /// Whether files were searched in another root directory ([`Sources::root`](crate::Sources::root)).
    pub has_root: bool,
    /// Whether files came with the recording ([`Sources::bundle`](crate::Sources::bundle)).
    pub has_bundle: bool,
    /// Whether files were fetched ([`Sources::fetcher`](crate::Sources::fetcher)).
    pub has_fetcher: bool,
}
