//! Names of functions in Linux `perf.data` recordings.
//!
//! [`Symbolizer`] finds the symbol at each frame of a sample of
//! [`perfdata_session`]:
//!
//! - **the same symbol as perf**: which tables of an ELF file are read, which of several symbols at
//!   an address is shown, entries of the procedure linkage table, the ends of symbols without a
//!   size (tools/perf/util/symbol.c and symbol-elf.c, Linux 7.2);
//! - **at the same places as perf**: the object itself, debug links, build ID caches (`~/.debug`),
//!   `/usr/lib/debug` and its `.build-id` folder, mini debug information, the cache of debuginfod,
//!   `/proc/kallsyms`, images and modules of the kernel, the vDSO, and perf maps of JIT compilers;
//! - **but only of the recorded objects**: the build ID of a file must be the recorded one. perf
//!   shows the symbols of the running kernel even for the recording of another one. Objects without
//!   a recorded build ID are used if there is other [`Evidence`]: the recording was made on this
//!   machine, by its host name and kernel, and the file was not modified since, or the kernel is still
//!   running; or with [`Sources::unverified`].
//!
//! [`Symbolizer::source_frames`] returns the functions that are inlined at a frame, and source lines.
//! [`Symbolizer::unresolved`] returns for each object how many addresses have no name, and why.
//!
//! [`ObjectFinder`] finds the files of objects in the same way, for programs that read other parts of
//! them.
//!
//! Names are demangled by [`demangled`], with parameters. Files of either byte order and class are
//! read.
//!
//! Nothing is fetched from a server unless [`Sources::fetcher`] does it. This crate contains no HTTP; the
//! crate `perfdata-debuginfod` is such a fetcher.
//!
//! # Guarantees
//!
//! Recordings and objects are not trusted: nothing panics, sizes are compared with the file before
//! memory is allocated, and the memory of all tables is limited.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod bytes;
mod debug_info;
mod demangle;
mod elf;
mod evidence;
mod fetch;
mod files;
mod kallsyms;
mod kernel_list;
mod lines;
pub mod machine;
mod names;
pub mod namespace;
mod object;
mod os;
pub mod perf_map;
mod reason;
mod sources;
mod symbolizer;
mod table;

/// Parses data as every kind of file that contains symbols, for tests with arbitrary data.
#[doc(hidden)]
pub fn parse_everything(data: &[u8]) {
    use std::borrow::Cow;

    use debug_info::DebugInfo;

    if let Ok(elf) = Elf::parse(bytes::Bytes::Memory(data.to_vec())) {
        let _ = (
            elf.build_id(),
            elf.debug_link(),
            elf.has_symtab(),
            elf.has_content(),
            elf.functions(),
            elf.symbol_address(b"main"),
            elf.plt_entries(),
        );
        for addresses in [
            elf::Addresses::Offsets,
            elf::Addresses::Virtual,
            elf::Addresses::Text,
        ] {
            let mut builder = table::Builder::default();
            let _ = elf.add_symbols(&elf, addresses, &mut builder);
            let table = builder.build(demangled);
            let _ = (
                table.find(0),
                table.find(u64::MAX),
                table.address_of(b"main"),
            );
        }
        let _ = elf.mini_debug_info();
        if let Some(mut info) = DebugInfo::parse(&elf, 1 << 24) {
            for address in info.some_addresses() {
                let _ = info.find(address);
            }
        }
    }
    let _ = kallsyms::Kallsyms::parse(data.to_vec());
    let _ = perf_map::parse(data).find(0x1000);
    for name in data.split(|&byte| byte == b'\n' || byte == 0).take(64) {
        let _: Cow<'_, [u8]> = demangled(name);
    }
}

pub use bytes::decompressed;
pub use demangle::{Spelling, demangled, demangled_as, demangled_without_parameters};
pub use elf::{DebugLink, Elf, Segment};
pub use evidence::{Evidence, Verified};
pub use fetch::{FetchAhead, FetchedFile, ObjectFetcher, fetch_objects};
pub use files::{KernelMapping, ObjectFiles, ObjectFinder};
pub use lines::{NoDebugInfo, SourceFrame, WithoutDebugInfo};
pub use object::carried::{CarriedContent, CarriedFile, FrameObject, Frames};
pub use reason::{HidingSetting, Reason, SearchedSources, Unresolved};
pub use sources::{BundleFolder, Locate, Sources, debuginfod_cache};
pub use symbolizer::{Symbol, SymbolPlace, Symbolizer};
