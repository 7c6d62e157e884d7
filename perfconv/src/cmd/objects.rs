//! What helps if the objects of a recording are not found.

use perfdata_export::{HidingSetting, Reason};

/// Returns the option that could find an object, as a part of a note.
pub fn help(reason: &Reason) -> &'static str {
    match reason {
        Reason::NoBuildId => " (--unverified uses this machine's files nevertheless)",
        Reason::OtherFile | Reason::ModifiedFile | Reason::OtherModule => {
            " (--unverified uses it nevertheless)"
        }
        Reason::OtherBoot => {
            " (--vmlinux names its image, --unverified uses the running kernel; perf record with build IDs, or perfconv inject -b before the machine is started again, prevents this)"
        }
        Reason::OtherKernel => " (--vmlinux or --kallsyms names it)",
        Reason::NotFound | Reason::OtherBuildId(_) if cfg!(feature = "debuginfod") => {
            " (--sysroot and --debug-dir name folders, --debuginfod names servers)"
        }
        Reason::NotFound | Reason::OtherBuildId(_) => " (--sysroot and --debug-dir name folders)",
        Reason::HiddenAddresses(HidingSetting::KptrRestrict(2)) => {
            " (set it to 1 and run as root, or use --vmlinux)"
        }
        Reason::HiddenAddresses(_) => " (run as root, or use --vmlinux)",
        _ => "",
    }
}
