//! The kernel: its image, and whether the running one is the recorded one.

use std::sync::Arc;

use perfdata_session::BuildId;

use super::kallsyms::{copied_image, own_kallsyms, recorded};
use super::{Host, Lookup, SymbolTable, Symbols, Wanted, first_with, is_same, of_elf};
use crate::bytes::Bytes;
use crate::elf::{Addresses, Elf};
use crate::evidence::Evidence;
use crate::fetch::FetchedFile;
use crate::machine::running_kernel;
use crate::reason::Reason;
use crate::sources::Sources;
use crate::table::Table;

/// Returns the build ID of the running kernel, if it is the recorded one.
pub(super) fn own_kernel(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
) -> Result<BuildId, Reason> {
    match running(sources, host, wanted.time)? {
        Evidence::Unverified => Err(Reason::NoBuildId),
        _ => running_kernel().ok_or(Reason::NoBuildId),
    }
}

/// Returns why the running kernel is the recorded one.
pub(super) fn running(
    sources: &Sources,
    host: &Host,
    time: Option<u64>,
) -> Result<Evidence, Reason> {
    if !sources.is_own() {
        return Err(match host.kernel {
            Some(_) => Reason::OtherKernel,
            None => Reason::NoBuildId,
        });
    }
    if let (Some(recorded), Some(own)) = (&host.kernel, running_kernel()) {
        return match is_same(recorded, &own) {
            true => Ok(Evidence::BuildId(own)),
            false => Err(Reason::OtherKernel),
        };
    }
    if !host.is_this {
        return Err(Reason::NoBuildId);
    }
    match is_this_boot(sources, host, time) {
        Ok(true) => Ok(Evidence::RunningKernel),
        Err(reason @ Reason::HiddenAddresses(_)) => Err(reason),
        _ if sources.unverified => Ok(Evidence::Unverified),
        Ok(false) => Err(Reason::OtherBoot),
        Err(reason) => Err(reason),
    }
}

/// Returns whether the image of the running kernel is where that of the recorded one was. The kernel
/// chooses another address in each boot.
fn is_this_boot(sources: &Sources, host: &Host, time: Option<u64>) -> Result<bool, Reason> {
    let own = own_kallsyms(host)?;
    let Some((at, name)) = &host.relocation else {
        return Err(Reason::NoBuildId);
    };
    let address_of = |name: &[u8]| own.image.address_of(name);
    let is_there = address_of(name) == Some(*at) && *at != 0;
    // perf records the end of the code or of the data; old versions, an address behind the image.
    let ends = [address_of(b"_etext"), address_of(b"_edata")];
    let last = ends.into_iter().chain([address_of(b"_end")]);
    let is_behind = last
        .flatten()
        .max()
        .is_none_or(|last| host.kernel_end > last);
    let is_as_long = is_behind || ends.contains(&Some(host.kernel_end));
    let is_of_another = host.times.is_of_another_boot(time, sources.recorded_until);
    Ok(is_there && is_as_long && !is_of_another)
}

/// Returns how kernel addresses are looked up in a table.
pub(super) fn relocated(table: &Table, host: &Host) -> Lookup {
    let symbol = host.relocation.as_ref().filter(|(at, _)| *at != 0);
    match symbol.and_then(|(_, name)| table.address_of(name)) {
        Some(at) => Lookup::Relocated(at),
        None => Lookup::Address,
    }
}

/// Returns the symbols of the kernel's image.
pub(super) fn symbols(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &mut Host,
) -> Result<Symbols, Reason> {
    let of_table = |table: Arc<Table>, host: &Host, evidence| Symbols {
        lookup: relocated(&table, host),
        table: SymbolTable::Table(table),
        is_mangled: false,
        has_symtab: false,
        evidence,
    };
    let of_image = |elf: &Elf, host: &Host, evidence| {
        let table = of_elf(elf, elf, Addresses::Virtual, sources)?;
        Ok(Symbols {
            has_symtab: true,
            ..of_table(Arc::new(table), host, evidence)
        })
    };
    if sources.vmlinux.is_some() && sources.kallsyms.is_none() {
        let (elf, evidence) = named_image(wanted, sources)?;
        return of_image(&elf, host, evidence);
    }
    if let Some(id) = host.kernel
        && let Some((table, lookup)) = copied_image(sources, host)
    {
        return Ok(Symbols {
            table,
            lookup,
            is_mangled: false,
            has_symtab: false,
            evidence: Evidence::BuildId(id),
        });
    }
    let reason = match recorded(wanted, sources, host) {
        Ok(list) => return Ok(of_table(list.symbols.image.clone(), host, list.evidence)),
        Err(reason) => reason,
    };
    if sources.kallsyms.is_some() {
        return Err(reason);
    }
    let Some(id) = wanted.build_id else {
        return Err(reason);
    };
    let image = found_image(&id, sources, host, Elf::has_symtab).ok_or(reason)?;
    of_image(&image, host, Evidence::BuildId(id))
}

/// Returns the image of the kernel that the caller named.
pub(super) fn named_image(
    wanted: &Wanted<'_>,
    sources: &Sources,
) -> Result<(Elf, Evidence), Reason> {
    let path = sources.vmlinux.as_ref().ok_or(Reason::NotFound)?;
    let elf = Bytes::open(path)
        .map_err(|error| error.to_string())
        .and_then(Elf::parse)
        .map_err(|error| Reason::Unreadable(format!("{}: {error}", path.display())))?
        .at(path);
    match (wanted.build_id, elf.build_id()) {
        (Some(id), Some(own)) if !is_same(&id, &own) => Err(Reason::OtherBuildId(own)),
        (Some(id), Some(_)) => Ok((elf, Evidence::BuildId(id))),
        _ => Ok((elf, Evidence::Named)),
    }
}

/// Returns an image of the kernel with this build ID that fulfils `is_fit`.
pub(super) fn found_image(
    id: &BuildId,
    sources: &Sources,
    host: &Host,
    is_fit: impl Fn(&Elf) -> bool,
) -> Option<Elf> {
    let mut images = sources.in_caches(id, &["vmlinux", "elf"]);
    images.extend(sources.kernel_images(host.release.as_deref()));
    images.extend(sources.debug_files(b"vmlinux", Some(id)));
    let fetched = sources.fetched(b"[kernel.kallsyms]", Some(id), &[FetchedFile::Debuginfo]);
    first_with(images.into_iter().chain(fetched), Some(id), is_fit)
}
