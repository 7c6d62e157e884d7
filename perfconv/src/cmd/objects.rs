//! Where the objects of a recording are searched, and what helps if they are not found.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perfdata_convert::error::{Error, Result};
use perfdata_convert::stages::build_ids::Sysroot;
use perfdata_convert::stages::callchains::{unwinding_notes, unwound_in_total};
use perfdata_export::{HidingSetting, Reason, Sources};
use perfdata_unwind::UnwoundStacks;

/// Returns the sources in a root directory, or on this machine, and in `debug_dirs`. A named folder
/// must exist: if its name is wrong, nothing would be found.
pub fn sources(sysroot: Option<&Path>, debug_dirs: &[PathBuf]) -> Result<Sources> {
    for folder in sysroot
        .into_iter()
        .chain(debug_dirs.iter().map(AsRef::as_ref))
    {
        fs::read_dir(folder).map_err(Error::io(folder))?;
    }
    let root = sysroot.map(|folder| {
        let sysroot = Sysroot::new(Some(folder.to_owned()));
        Arc::new(move |path: &Path| sysroot.locate(path))
            as Arc<dyn Fn(&Path) -> PathBuf + Send + Sync>
    });
    Ok(Sources::default()
        .with_root(root)
        .with_debug_dirs(debug_dirs.to_vec()))
}

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
        Reason::NotFound | Reason::OtherBuildId(_) => " (--sysroot and --debug-dir name folders)",
        Reason::HiddenAddresses(HidingSetting::KptrRestrict(2)) => {
            " (set it to 1 and run as root, or use --vmlinux)"
        }
        Reason::HiddenAddresses(_) => " (run as root, or use --vmlinux)",
        _ => "",
    }
}

/// Returns notes about the user stacks that were not unwound completely; none if all were. `help`
/// returns what could help if an object cannot be used.
pub fn not_unwound(
    stacks: &UnwoundStacks,
    help: Option<fn(&Reason) -> &'static str>,
) -> Vec<String> {
    let Some(objects) = stacks.objects() else {
        return Vec::new();
    };
    let outcomes = stacks.outcomes();
    let mut notes = unwinding_notes(&outcomes, &objects, help);
    if !notes.is_empty() {
        notes.insert(0, unwound_in_total(&outcomes));
    }
    notes
}
