//! The vDSO: in build ID caches, or in the memory of this process.

use perfdata_session::DsoKind;

use super::kernel::running;
use super::{Host, Lookup, Symbols, Wanted, first_with, is_same, of_elf};
use crate::bytes::Bytes;
use crate::elf::{Addresses, Elf};
use crate::evidence::Evidence;
use crate::fetch::FetchedFile;
use crate::machine::own_vdso;
use crate::reason::Reason;
use crate::sources::Sources;

/// Returns a vDSO: from the build ID cache, or from the memory of this process; and why it is the
/// recorded one.
pub(super) fn vdso_file(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
) -> Result<(Elf, Evidence), Reason> {
    let own = || Elf::parse(Bytes::Memory(own_vdso().ok()?)).ok();
    let Some(id) = wanted.build_id else {
        if let Some(copy) = sources.bundled(wanted.dso.path())
            && let Ok(elf) = Elf::open(&copy)
        {
            return Ok((elf, Evidence::Bundled));
        }
        let evidence = match running(sources, host, wanted.time)? {
            Evidence::Unverified => Evidence::Unverified,
            _ => Evidence::RunningVdso,
        };
        // This process maps only one of the kernel's images.
        let is_64 = wanted.dso.kind == DsoKind::Vdso;
        let own = own().filter(|own| own.is_64() == is_64);
        return own.map(|own| (own, evidence)).ok_or(Reason::NoBuildId);
    };
    let own = || own().filter(|own| own.build_id().is_some_and(|own| is_same(&own, &id)));
    let cached = sources.in_caches(&id, &["vdso", "elf", "debug"]);
    let fetched = || {
        let files = &[FetchedFile::Executable];
        let fetched = sources.fetched(wanted.dso.path(), Some(&id), files);
        first_with(fetched, Some(&id), Elf::has_content)
    };
    let found = first_with(cached, Some(&id), |_| true)
        .or_else(own)
        .or_else(fetched);
    found
        .map(|elf| (elf, Evidence::BuildId(id)))
        .ok_or(Reason::NotFound)
}

/// Returns the symbols of a vDSO.
pub(super) fn symbols(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
) -> Result<Symbols, Reason> {
    let (elf, evidence) = vdso_file(wanted, sources, host)?;
    let table = of_elf(&elf, &elf, Addresses::Offsets, sources)?;
    Ok(Symbols {
        table: table.into(),
        lookup: Lookup::Offset,
        is_mangled: false,
        has_symtab: false,
        evidence,
    })
}
