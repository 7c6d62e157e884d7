//! The files with debug information, and how addresses are looked up in it.

use perfdata_session::DsoKind;

use super::file::files;
use super::kernel::{found_image, named_image, own_kernel, relocated};
use super::module::{found_module, own_module};
use super::{Host, Lookup, Wanted, of_elf};
use crate::elf::{Addresses, Elf, Segment};
use crate::reason::Reason;
use crate::sources::Sources;

/// How an address is looked up in debug information.
#[derive(Debug)]
pub(crate) enum Addressing {
    /// By the segment that contains its offset in the file.
    Segments(Vec<Segment>),
    /// By its offset in the object, added to this address.
    Offset(u64),
    /// By itself.
    Address,
}

/// Returns a file of an object with the section `section`, its debug information, and how addresses are
/// looked up in it. A file of a process may lack the section.
pub(crate) fn debug_file(
    wanted: &Wanted<'_>,
    sources: &Sources,
    host: &Host,
    section: &[u8],
) -> Result<(Elf, Addressing), Reason> {
    if wanted.dso.machine.is_guest() {
        return Err(Reason::Guest);
    }
    let has_section = |elf: &Elf| elf.has_content_of(section);
    match wanted.dso.kind {
        DsoKind::Kernel => {
            let image = match &sources.vmlinux {
                Some(_) => named_image(wanted, sources)?.0,
                None => {
                    let id = match wanted.build_id {
                        Some(id) => id,
                        None => own_kernel(wanted, sources, host)?,
                    };
                    found_image(&id, sources, host, has_section).ok_or(Reason::NotFound)?
                }
            };
            let table = of_elf(&image, &image, Addresses::Virtual, sources)?;
            let addressing = match relocated(&table, host) {
                Lookup::Relocated(at) => Addressing::Offset(at),
                _ => Addressing::Address,
            };
            Ok((image, addressing))
        }
        DsoKind::Module => {
            let id = match wanted.build_id {
                Some(id) => id,
                None => own_module(wanted, sources, host)?,
            };
            let file = found_module(wanted, &id, sources, host, has_section);
            let file = file.ok_or(Reason::NotFound)?;
            let text = file.placed(b".text").ok_or(Reason::Stripped)?;
            Ok((file, Addressing::Offset(text)))
        }
        _ => {
            let (object, debug) = files(wanted, sources, host, section)?;
            let segments = object.segments().to_vec();
            Ok((debug.unwrap_or(object), Addressing::Segments(segments)))
        }
    }
}
