//! The kernel's list of symbols, its own and those of its modules: `/proc/kallsyms` and copies of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::kernel::running;
use super::{Host, Lookup, SymbolTable, Wanted};
use crate::bytes::read_text;
use crate::evidence::{Evidence, Running};
use crate::kallsyms::Kallsyms;
use crate::kernel_list::KernelList;
use crate::reason::Reason;
use crate::sources::Sources;

/// Maximum size of a list of symbols of a kernel in bytes.
const MOST_KALLSYMS: u64 = 1 << 28;

/// The symbols of the recorded kernel and of its modules.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(super) symbols: Arc<Kallsyms>,
    pub(super) evidence: Evidence,
    /// Whether the list is that of the running kernel.
    pub(super) is_running: bool,
    /// Where it is.
    pub(super) path: PathBuf,
}

/// Returns the symbols of the running kernel.
pub(super) fn own_kallsyms(host: &Host) -> Result<Arc<Kallsyms>, Reason> {
    let running = &host.running;
    let read = || read_kallsyms(&running.kallsyms, running).map(Arc::new);
    host.own_kallsyms.get_or_init(read).clone()
}

fn read_kallsyms(path: &Path, running: &Running) -> Result<Kallsyms, Reason> {
    let text = read_text(path, MOST_KALLSYMS)
        .map_err(|error| Reason::Unreadable(format!("{}: {error}", path.display())))?;
    let symbols = Kallsyms::parse(text);
    if symbols.are_hidden {
        return Err(Reason::HiddenAddresses(running.hiding_setting()));
    }
    if symbols.image.is_empty() && symbols.modules.is_empty() {
        return Err(Reason::Unreadable(format!(
            "{}: no symbols",
            path.display()
        )));
    }
    Ok(symbols)
}

/// Returns the symbols of the kernel and its modules at the time of the recording.
pub(super) fn recorded(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &mut Host,
) -> Result<Listed, Reason> {
    if let Some(known) = &host.kallsyms {
        return Ok(known.clone());
    }
    if let Some(path) = &sources.kallsyms {
        let named = Listed {
            symbols: Arc::new(read_kallsyms(path, &host.running)?),
            evidence: Evidence::Named,
            is_running: false,
            path: path.clone(),
        };
        return Ok(host.kallsyms.insert(named).clone());
    }
    if let Some(path) = sources.bundled_kallsyms(host.kernel.as_ref()) {
        let bundled = Listed {
            symbols: Arc::new(read_kallsyms(&path, &host.running)?),
            evidence: host.kernel.map_or(Evidence::Bundled, Evidence::BuildId),
            is_running: false,
            path,
        };
        return Ok(host.kallsyms.insert(bundled).clone());
    }
    let own = match running(sources, host, wanted.time) {
        Ok(evidence) => own_kallsyms(host).map(|symbols| Listed {
            symbols,
            evidence,
            is_running: true,
            path: host.running.kallsyms.clone(),
        }),
        Err(reason) => Err(reason),
    };
    let reason = match own {
        Ok(own) => return Ok(host.kallsyms.insert(own).clone()),
        Err(reason) => reason,
    };
    if let Some(id) = &host.kernel {
        for path in sources.in_caches(id, &["kallsyms"]) {
            if let Ok(symbols) = read_kallsyms(&path, &host.running) {
                let cached = Listed {
                    symbols: Arc::new(symbols),
                    evidence: Evidence::BuildId(*id),
                    is_running: false,
                    path,
                };
                return Ok(host.kallsyms.insert(cached).clone());
            }
        }
    }
    Err(match (reason, host.kernel) {
        (reason @ Reason::HiddenAddresses(_), _) | (reason, None) => reason,
        (_, Some(_)) => Reason::OtherKernel,
    })
}

/// Returns the symbols of the kernel's image in a copy of its list, and how they are looked up; `None`
/// if there is no copy, if it would not have been read, or if a list was read before.
///
/// The kernel takes longer to print its list than all of the rest takes. Its image is the same in
/// each boot, except for the address of all of it. Its modules are not.
pub(super) fn copied_image(sources: &Sources, host: &Host) -> Option<(SymbolTable, Lookup)> {
    if sources.kallsyms.is_some() || host.kallsyms.is_some() {
        return None;
    }
    let copies = sources.in_caches(host.kernel.as_ref()?, &["kallsyms"]);
    let is_list = |path: &PathBuf| path.ends_with("kallsyms");
    copies.into_iter().filter(is_list).find_map(|path| {
        // Without a relocation symbol, the addresses must be those of this boot.
        let (_, name) = host.relocation.as_ref().filter(|(at, _)| *at != 0)?;
        if let Some(list) = KernelList::open(&path) {
            let at = list.address_of(name)?;
            let table = SymbolTable::KernelList(Arc::new(list));
            return Some((table, Lookup::Relocated(at)));
        }
        let image = read_kallsyms(&path, &host.running).ok()?.image;
        let at = image.address_of(name)?;
        Some((SymbolTable::Table(image), Lookup::Relocated(at)))
    })
}
