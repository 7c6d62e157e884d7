//! ELF files: headers, build ID, and the symbols that perf takes from them
//! (tools/perf/util/symbol-elf.c, Linux 7.2).
//!
//! All offsets and sizes are compared with the file before they are used.

mod plt;
mod relocation;
mod symbols;

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use object::elf::{
    ELF_NOTE_GNU, ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, EM_AARCH64, EM_ARM, EM_RISCV, ET_REL,
    FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PF_W, PF_X, PT_LOAD, PT_NOTE, SHF_ALLOC,
    SHF_COMPRESSED, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_RELA, SHT_SYMTAB,
};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endian as _, Endianness, FileKind, ReadCache, ReadRef};
use perfdata_core::read::zstd_reader;
use perfdata_session::BuildId;

use self::symbols::offset_in;
use crate::bytes::{Bytes, MOST_WINDOW_LOG, unpack_exactly, unpack_xz};
use crate::table::Builder;

pub(crate) use self::symbols::FileSymbols;

/// Maximum number of sections and segments that are considered.
const MOST_SECTIONS: usize = 1 << 20;
const MOST_SEGMENTS: usize = 1 << 16;

/// Maximum size in bytes of a table of symbols, and of its names. The largest real ones have some
/// hundred megabytes.
const MOST_SYMBOLS: u64 = 1 << 29;

/// Size of names, and of a table of symbols, in bytes from which on they stay in the file until they
/// are needed.
const LARGE: u64 = 1 << 18;

/// Maximum size of notes, links and names of sections in bytes.
const MOST_NOTES: u64 = 1 << 20;

/// Maximum size of compressed mini debug information in bytes.
const MOST_MINI: u64 = 1 << 26;

/// What the addresses of a table of symbols are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addresses {
    /// Offsets in the file, as in mappings of processes.
    Offsets,
    /// Virtual addresses, as in a kernel.
    Virtual,
    /// Offsets in the section `.text`, as in a kernel module.
    Text,
}

/// A loaded segment of an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// Its address in the object.
    pub address: u64,
    /// Its size in memory, in bytes.
    pub size: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its size in the file, in bytes.
    pub file_size: u64,
    /// Whether processes can change it, so that the file need not have its content.
    pub is_writable: bool,
    /// Whether it contains code.
    pub is_executable: bool,
}

/// The link to a file with debug information.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DebugLink {
    /// Name of the file, without its folder.
    pub name: Vec<u8>,
    /// CRC-32 of its whole content.
    pub crc32: u32,
}

/// A section.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub name: Box<[u8]>,
    is_symtab: bool,
    is_dynsym: bool,
    is_nobits: bool,
    is_note: bool,
    is_allocated: bool,
    is_compressed: bool,
    /// Whether perf takes symbols without a type from it, by its name.
    has_labels: bool,
    pub address: u64,
    pub offset: u64,
    pub size: u64,
    entry_size: u64,
    alignment: u64,
    link: usize,
    info: usize,
    is_rela: bool,
}

/// An ELF file whose headers were read. Its content is read on request, and every size is compared
/// with the file before.
#[derive(Debug)]
pub struct Elf {
    bytes: Bytes,
    endian: Endianness,
    is_64: bool,
    machine: u16,
    loads: Vec<Segment>,
    /// Offsets and sizes in the file of the segments with notes.
    notes: Vec<(u64, u64)>,
    sections: Vec<Section>,
    build_id: Option<BuildId>,
    /// Whether it is not linked.
    is_relocatable: bool,
    /// Where it was opened.
    path: Option<PathBuf>,
}

impl Elf {
    /// Reads the headers.
    ///
    /// # Errors
    /// The reason why it is not an ELF file, or its damage.
    pub(crate) fn parse(bytes: Bytes) -> Result<Self, String> {
        let damaged = |error| format!("damaged ELF file: {error}");
        let headers = {
            let cache = ReadCache::new(bytes.reader());
            match FileKind::parse(&cache) {
                Ok(FileKind::Elf32) => headers::<FileHeader32<Endianness>>(&cache, false),
                Ok(FileKind::Elf64) => headers::<FileHeader64<Endianness>>(&cache, true),
                _ => return Err("not an ELF file".into()),
            }
            .map_err(damaged)?
        };
        let mut elf = Elf { bytes, ..headers };
        elf.build_id = elf.find_build_id();
        Ok(elf)
    }

    /// Reads the headers of the file at `path`. It may be compressed with zstd, xz or gzip.
    ///
    /// # Errors
    /// The reason why it cannot be read, or is not an ELF file.
    pub fn open(path: &Path) -> Result<Self, String> {
        let elf = Self::parse(Bytes::open(path).map_err(|error| error.to_string())?)?;
        Ok(elf.at(path))
    }

    /// Returns the file, which was opened at `path`.
    pub(crate) fn at(self, path: &Path) -> Self {
        Elf {
            path: Some(path.to_owned()),
            ..self
        }
    }

    /// Returns where the file was opened; `None` if it was not a file of its own.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Reads the headers of a file in memory.
    ///
    /// # Errors
    /// The reason why it is not an ELF file.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, String> {
        Self::parse(Bytes::Memory(bytes))
    }

    /// Returns the build ID.
    pub fn build_id(&self) -> Option<BuildId> {
        self.build_id
    }

    /// Searches the sections that perf searches, then other sections with notes, and then segments,
    /// which programs without sections have. A debug file has the program headers of the original
    /// file, but not the content that they refer to.
    fn find_build_id(&self) -> Option<BuildId> {
        let is_named = |section: &&Section| {
            matches!(&*section.name, b".note.gnu.build-id" | b".notes" | b".note")
        };
        let named = self.sections.iter().filter(is_named);
        let others = self.sections.iter().filter(|section| section.is_note);
        let sections = named.chain(others).filter(|section| !section.is_nobits);
        let sections = sections.map(|section| (section.offset, section.size));
        let mut all = sections.chain(self.notes.iter().copied());
        all.find_map(|(offset, size)| {
            id_in_notes(
                &self.bytes.read(offset, size, MOST_NOTES).ok()?,
                self.endian,
            )
        })
    }

    /// Returns whether the numbers in the file are big-endian.
    pub fn is_big_endian(&self) -> bool {
        self.endian.is_big_endian()
    }

    /// Returns whether addresses have 64 bits.
    pub fn is_64(&self) -> bool {
        self.is_64
    }

    /// Returns the machine, one of `EM_*` of elf.h.
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// Returns the loaded segments, in the order of the file.
    pub fn segments(&self) -> &[Segment] {
        &self.loads
    }

    /// Returns the address of the section `name` in the object, if there is one.
    pub fn section_address(&self, name: &[u8]) -> Option<u64> {
        self.section(name).map(|section| section.address)
    }

    /// Returns the address of the section `name` in the object, and its content, decompressed if it
    /// is compressed, and empty if the file does not contain it; `None` if there is no such section.
    ///
    /// # Errors
    /// The content cannot be read, is not inside of the file, is larger than `most` bytes, or cannot
    /// be decompressed.
    pub fn section_content(&self, name: &[u8], most: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
        let Some(section) = self.section(name) else {
            return Ok(None);
        };
        Ok(Some((section.address, self.unpacked(section, most)?)))
    }

    /// Returns `size` bytes of the file at `offset`.
    ///
    /// # Errors
    /// They cannot be read, are not inside of the file, or are more than 1 MiB.
    pub fn bytes_at(&self, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        self.bytes.read(offset, size, MOST_NOTES)
    }

    /// Returns a section.
    pub(crate) fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| *section.name == *name)
    }

    fn content(&self, section: &Section, most: u64) -> io::Result<Vec<u8>> {
        self.part(section, most, 0..section.size)
    }

    /// Returns a part of the content of a section, as far as this reaches.
    fn part(&self, section: &Section, most: u64, part: Range<u64>) -> io::Result<Vec<u8>> {
        if section.is_nobits {
            return Ok(Vec::new());
        }
        self.bytes
            .read_part(section.offset, section.size, most, part)
    }

    /// Returns the content of the section `name`, decompressed if it is compressed; nothing if there
    /// is no such section.
    ///
    /// # Errors
    /// The content cannot be read, is not inside of the file, is larger than `most` bytes, or cannot
    /// be decompressed.
    pub(crate) fn unpacked_content(&self, name: &[u8], most: u64) -> io::Result<Vec<u8>> {
        match self.section(name) {
            Some(section) => self.unpacked(section, most),
            None => Ok(Vec::new()),
        }
    }

    fn unpacked(&self, section: &Section, most: u64) -> io::Result<Vec<u8>> {
        let content = self.content(section, most)?;
        if !section.is_compressed || section.is_nobits {
            return Ok(content);
        }
        let (kind, size, packed) = self
            .compression(&content)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        if size > most {
            return Err(io::Error::other(format!("more than {most} bytes")));
        }
        match kind {
            kind if kind == ELFCOMPRESS_ZLIB.0 => unpack_exactly(ZlibDecoder::new(packed), size),
            kind if kind == ELFCOMPRESS_ZSTD.0 => {
                unpack_exactly(zstd_reader(packed, MOST_WINDOW_LOG)?, size)
            }
            kind => Err(io::Error::other(format!("compressed by algorithm {kind}"))),
        }
    }

    /// Returns what the header of a compressed section says: the algorithm, and the decompressed
    /// size; and the compressed data after it.
    fn compression<'a>(&self, content: &'a [u8]) -> Option<(u32, u64, &'a [u8])> {
        let kind = self.endian.read_u32(*content.first_chunk()?);
        Some(if self.is_64 {
            let size = self.endian.read_u64(*content.get(8..)?.first_chunk()?);
            (kind, size, content.get(24..)?)
        } else {
            let size = self.endian.read_u32(*content.get(4..)?.first_chunk()?);
            (kind, size.into(), content.get(12..)?)
        })
    }

    /// Returns the link to the file with debug information, in the section `.gnu_debuglink`.
    pub fn debug_link(&self) -> Option<DebugLink> {
        let section = self.section(b".gnu_debuglink")?;
        let content = self.content(section, MOST_NOTES).ok()?;
        // Name, NUL, padding to a multiple of 4, CRC-32.
        let name = content.split(|&byte| byte == 0).next()?;
        let at = name.len().checked_add(1)?.next_multiple_of(4);
        let crc32 = self.endian.read_u32(*content.get(at..)?.first_chunk()?);
        let is_name = !name.is_empty() && !name.contains(&b'/') && name != b"..";
        is_name.then(|| DebugLink {
            name: name.to_vec(),
            crc32,
        })
    }

    /// Returns the path and the build ID of the supplementary file with the debug information that
    /// this file shares with others (`dwz`).
    pub(crate) fn supplementary(&self) -> Option<(Vec<u8>, BuildId)> {
        let section = self.section(b".gnu_debugaltlink")?;
        let content = self.content(section, MOST_NOTES).ok()?;
        let mut parts = content.splitn(2, |&byte| byte == 0);
        let (path, id) = (parts.next()?, parts.next()?);
        (!path.is_empty()).then_some((path.to_vec(), BuildId::new(id)?))
    }

    /// Returns the ELF file inside of this one that contains the symbols of a stripped program.
    pub fn mini_debug_info(&self) -> Option<Elf> {
        let section = self.section(b".gnu_debugdata")?;
        let packed = self.content(section, MOST_MINI).ok()?;
        Elf::parse(Bytes::Memory(unpack_xz(packed.as_slice()).ok()?)).ok()
    }

    /// Returns whether there is a table of all symbols.
    pub(crate) fn has_symtab(&self) -> bool {
        let is_symtab = |section: &Section| section.is_symtab && *section.name == *b".symtab";
        self.sections.iter().any(is_symtab)
    }

    /// Returns whether the content of the sections is present. A debug file has only their headers.
    pub(crate) fn has_content(&self) -> bool {
        let is_present = |section: &Section| section.is_allocated && !section.is_nobits;
        self.section(b".text").map_or_else(
            || self.sections.iter().any(is_present),
            |text| !text.is_nobits,
        )
    }

    /// Returns whether the file contains the content of a section.
    pub(crate) fn has_content_of(&self, name: &[u8]) -> bool {
        self.section(name)
            .is_some_and(|section| !section.is_nobits && section.size > 0)
    }

    /// Adds the symbols of this file to a table. `runtime` is the file that processes map: the
    /// headers of a debug file do not contain the offsets in it.
    ///
    /// # Errors
    /// A table of symbols is truncated or too large.
    pub(crate) fn add_symbols(
        &self,
        runtime: &Elf,
        addresses: Addresses,
        builder: &mut Builder,
    ) -> Result<(), String> {
        for section in &self.sections {
            if section.is_symtab || section.is_dynsym {
                self.add_table(section, runtime, addresses, builder)
                    .map_err(|error| format!("damaged symbols: {error}"))?;
            }
        }
        if addresses == Addresses::Offsets {
            runtime.add_plt(builder);
        }
        Ok(())
    }

    fn add_table(
        &self,
        table: &Section,
        runtime: &Elf,
        addresses: Addresses,
        builder: &mut Builder,
    ) -> io::Result<()> {
        let Some(strings) = self.sections.get(table.link) else {
            return Ok(());
        };
        if table.is_nobits || table.size == 0 {
            return Ok(());
        }
        // The names of kernels are searched, and those of Arm and RISC-V tell which symbols are kept.
        let is_lazy = addresses == Addresses::Offsets && self.mapping_symbols().is_empty();
        let file = match is_lazy && table.size >= LARGE {
            true => self
                .bytes
                .file_with(table.offset, table.size, MOST_SYMBOLS)?,
            false => None,
        };
        let symbols = match file {
            Some(_) => Vec::new(),
            None => self.content(table, MOST_SYMBOLS)?,
        };
        let Some(base) = self.add_names(strings, is_lazy, builder)? else {
            return Err(io::Error::other("the names have 4 GiB"));
        };
        let size = match strings.is_nobits {
            true => 0,
            false => strings.size,
        };
        let rules = self.rules(runtime, addresses, (base, size));
        if let Some(file) = file {
            let form = self.form();
            let symbols = FileSymbols::new(file, table.offset, table.size, form, rules);
            if let Some(symbols) = symbols {
                builder.add_symbols_of(symbols);
            }
            return Ok(());
        }
        for raw in self.form().symbols(&symbols) {
            if let Some(new) = rules.kept(&raw)
                && !self.is_mapping_symbol(|| builder.name(new.name))
            {
                builder.add_symbol(new);
            }
        }
        Ok(())
    }

    /// Adds the names of symbols, which may stay in the file if `is_lazy`. Returns the offset of the
    /// first one; `None` if the names have 4 GiB.
    fn add_names(
        &self,
        strings: &Section,
        is_lazy: bool,
        builder: &mut Builder,
    ) -> io::Result<Option<u32>> {
        if strings.size >= LARGE
            && !strings.is_nobits
            && is_lazy
            && let Some(file) = self
                .bytes
                .file_with(strings.offset, strings.size, MOST_SYMBOLS)?
        {
            return Ok(builder.add_names_of(file, strings.offset, strings.size));
        }
        Ok(builder.add_names(&self.content(strings, MOST_SYMBOLS)?))
    }

    /// Returns the letters of symbols that only tell code from data in a section.
    fn mapping_symbols(&self) -> &'static [u8] {
        match self.machine {
            machine if machine == EM_ARM.0 || machine == EM_AARCH64.0 => b"adtx",
            machine if machine == EM_RISCV.0 => b"dx",
            _ => b"",
        }
    }

    /// Returns whether a symbol only tells code from data in a section.
    fn is_mapping_symbol<'a>(&self, name: impl FnOnce() -> Cow<'a, [u8]>) -> bool {
        let kinds = self.mapping_symbols();
        if kinds.is_empty() {
            return false;
        }
        match *name() {
            [b'$', kind] | [b'$', kind, b'.', ..] => kinds.contains(&kind),
            [b'$', kind, ..] => self.machine == EM_RISCV.0 && kinds.contains(&kind),
            _ => false,
        }
    }

    /// Returns the offset in the file of a virtual address.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        offset_in(&self.loads, address)
    }
}

/// Reads the headers of a file.
fn headers<'data, H: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'data>,
    is_64: bool,
) -> object::read::Result<Elf> {
    let header = H::parse(data)?;
    let endian = header.endian()?;
    let (mut loads, mut notes) = (Vec::new(), Vec::new());
    for segment in header
        .program_headers(endian, data)?
        .iter()
        .take(MOST_SEGMENTS)
    {
        let offset = segment.p_offset(endian).into();
        let file_size = segment.p_filesz(endian).into();
        match segment.p_type(endian) {
            PT_LOAD => loads.push(Segment {
                address: segment.p_vaddr(endian).into(),
                size: segment.p_memsz(endian).into(),
                offset,
                file_size,
                is_writable: segment.p_flags(endian).0 & PF_W.0 != 0,
                is_executable: segment.p_flags(endian).0 & PF_X.0 != 0,
            }),
            PT_NOTE => notes.push((offset, file_size)),
            _ => {}
        }
    }
    let table = header.sections(endian, data)?;
    let mut sections = Vec::new();
    for section in table.iter().take(MOST_SECTIONS) {
        let kind = section.sh_type(endian);
        let name = table.section_name(endian, section).unwrap_or_default();
        let flags = section.sh_flags(endian);
        let name = name.get(..64).unwrap_or(name);
        let contains = |part: &[u8; 4]| name.windows(part.len()).any(|window| window == part);
        sections.push(Section {
            name: name.into(),
            has_labels: contains(b"text") || contains(b"data"),
            is_symtab: kind == SHT_SYMTAB,
            is_dynsym: kind == SHT_DYNSYM,
            is_nobits: kind == SHT_NOBITS,
            is_note: kind == SHT_NOTE,
            entry_size: section.sh_entsize(endian).into(),
            alignment: section.sh_addralign(endian).into(),
            is_allocated: flags.0 & SHF_ALLOC.0 != 0,
            is_compressed: flags.0 & SHF_COMPRESSED.0 != 0,
            address: section.sh_addr(endian).into(),
            offset: section.sh_offset(endian).into(),
            size: section.sh_size(endian).into(),
            link: usize::try_from(section.sh_link(endian)).unwrap_or(usize::MAX),
            info: usize::try_from(section.sh_info(endian)).unwrap_or(usize::MAX),
            is_rela: kind == SHT_RELA,
        });
    }
    Ok(Elf {
        bytes: Bytes::Memory(Vec::new()),
        endian,
        is_64,
        machine: header.e_machine(endian).0,
        loads,
        notes,
        sections,
        build_id: None,
        is_relocatable: header.e_type(endian) == ET_REL,
        path: None,
    })
}

/// Returns the build ID in notes.
pub(crate) fn id_in_notes(notes: &[u8], endian: Endianness) -> Option<BuildId> {
    let mut notes = NoteIterator::<FileHeader64<Endianness>>::new(endian, 4, notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}
