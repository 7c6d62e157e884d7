//! ELF images of generated functions, with the layout of perf's (tools/perf/util/genelf.c, 7.2).
//!
//! An image of a function without source lines has the same bytes as perf's, except `p_align`: see
//! [`Image::p_align`]. [`SymbolImage`] contains no code, but the names of several functions.

mod build_id;
mod lines;
mod symbols;

use object::elf::{
    ELF_NOTE_GNU, ELFCLASS32, ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, ELFMAG, ET_DYN, EV_CURRENT,
    NT_GNU_BUILD_ID, PF_R, PF_X, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHT_NOTE, SHT_PROGBITS,
    SHT_STRTAB, SHT_SYMTAB, STB_LOCAL, STT_FUNC, SymbolBind,
};
use perfdata_core::Endian;
use perfdata_core::feature::ElfMachine;

pub use build_id::BUILD_ID_SIZE;
pub use lines::SourceLine;
pub use symbols::{Symbol, SymbolImage};

/// The machine that a function was generated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// ELF machine.
    pub machine: ElfMachine,
    /// Whether ELF files of the machine have the 64-bit class.
    pub is_64: bool,
    /// Byte order.
    pub endian: Endian,
}

impl Target {
    /// Returns the offset of the code in an image, which is also its address there.
    pub fn text_offset(self) -> u64 {
        (self.file_header() + self.program_header()).next_multiple_of(16) as u64
    }

    fn file_header(self) -> usize {
        if self.is_64 { 64 } else { 52 }
    }

    fn program_header(self) -> usize {
        if self.is_64 { 56 } else { 32 }
    }

    fn section_header(self) -> usize {
        if self.is_64 { 64 } else { 40 }
    }

    fn symbol(self) -> usize {
        if self.is_64 { 24 } else { 16 }
    }

    /// Returns the highest address.
    pub fn max_address(self) -> u64 {
        if self.is_64 {
            u64::MAX
        } else {
            u32::MAX.into()
        }
    }

    /// Returns the size of an address.
    fn word(self) -> usize {
        if self.is_64 { 8 } else { 4 }
    }
}

/// A function, for which an image is written.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// The machine.
    pub target: Target,
    /// Name, without a NUL.
    pub name: &'a [u8],
    /// The code.
    pub code: &'a [u8],
    /// The sections `.eh_frame` and `.eh_frame_hdr`.
    pub unwinding: Option<(&'a [u8], &'a [u8])>,
    /// The source lines.
    pub lines: &'a [SourceLine<'a>],
    /// Alignment of the segment. perf writes 8, and its unwinder (tools/perf/util/unwind-libdw.c)
    /// only expects that of images called `/tmp/jitted-…`. For others, it subtracts the offset of
    /// the code from the address of the mapping, and libdwfl subtracts the address of the segment,
    /// rounded down to the alignment. Only a page makes both agree.
    pub p_align: u64,
}

/// An image, and its build ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The build ID.
    pub build_id: [u8; BUILD_ID_SIZE],
}

/// The names of all sections that an image may have, in the order of the string table.
const NAMES: [&str; 10] = [
    TEXT,
    SHSTRTAB,
    SYMTAB,
    STRTAB,
    NOTE,
    DEBUG_LINE,
    DEBUG_INFO,
    DEBUG_ABBREV,
    EH_FRAME_HDR,
    EH_FRAME,
];
const TEXT: &str = ".text";
const SHSTRTAB: &str = ".shstrtab";
const SYMTAB: &str = ".symtab";
const STRTAB: &str = ".strtab";
const NOTE: &str = ".note.gnu.build-id";
const DEBUG_LINE: &str = ".debug_line";
const DEBUG_INFO: &str = ".debug_info";
const DEBUG_ABBREV: &str = ".debug_abbrev";
const EH_FRAME_HDR: &str = ".eh_frame_hdr";
const EH_FRAME: &str = ".eh_frame";

/// The string table of section names. It contains all names, also of absent sections.
fn section_names() -> Vec<u8> {
    let mut names = vec![0];
    for name in NAMES {
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    names
}

/// A section of an image.
struct Section<'a> {
    name: &'static str,
    kind: u32,
    flags: u64,
    /// Whether the address is the offset in the file; otherwise it is 0.
    is_mapped: bool,
    link: u32,
    info: u32,
    align: usize,
    entry_size: usize,
    bytes: &'a [u8],
    /// Size in memory of a section without content in the file, which begins at address 0.
    no_bits: Option<u64>,
}

impl<'a> Section<'a> {
    fn new(name: &'static str, kind: u32, align: usize, bytes: &'a [u8]) -> Self {
        Section {
            name,
            kind,
            flags: 0,
            is_mapped: false,
            link: 0,
            info: 0,
            align,
            entry_size: 0,
            bytes,
            no_bits: None,
        }
    }

    fn mapped(self, flags: u64) -> Self {
        Section {
            flags,
            is_mapped: true,
            ..self
        }
    }
}

/// Numbers in the byte order and word size of a target.
struct Bytes {
    target: Target,
    bytes: Vec<u8>,
}

impl Bytes {
    fn new(target: Target) -> Self {
        Bytes {
            target,
            bytes: Vec::new(),
        }
    }

    fn number(&mut self, number: u64, size: usize) {
        match self.target.endian {
            Endian::Little => self.bytes.extend(number.to_le_bytes().iter().take(size)),
            Endian::Big => self
                .bytes
                .extend(number.to_be_bytes().iter().skip(8 - size)),
        }
    }

    fn u16(&mut self, number: u16) {
        self.number(number.into(), 2);
    }

    fn u32(&mut self, number: u32) {
        self.number(number.into(), 4);
    }

    fn word(&mut self, number: u64) {
        self.number(number, self.target.word());
    }

    /// Appends a symbol of a function in section 1. `name` is the offset of its name.
    fn function(&mut self, name: u32, binding: SymbolBind, value: u64, size: u64) {
        self.u32(name);
        if !self.target.is_64 {
            self.word(value);
            self.word(size);
        }
        self.bytes.extend([binding.0 << 4 | STT_FUNC.0, 0]);
        self.u16(1);
        if self.target.is_64 {
            self.word(value);
            self.word(size);
        }
    }

    fn align(&mut self, align: usize) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(align), 0);
    }
}

impl Image<'_> {
    /// Returns the image.
    ///
    /// # Errors
    /// The source lines cannot be encoded.
    pub fn write(&self) -> Result<Written, String> {
        let target = self.target;
        let symbols = self.symbols();
        let mut strings = vec![0];
        strings.extend_from_slice(self.name);
        strings.push(0);
        let build_id = build_id::build_id(target.endian, self.code, &symbols, &strings);
        let note = note(target, &build_id);
        let names = section_names();
        let debug = match self.lines {
            [] => None,
            lines => Some(lines::sections(target, self.code.len() as u64, lines)?),
        };

        let mut sections = vec![
            Section::new(TEXT, SHT_PROGBITS.0, 16, self.code).mapped((SHF_ALLOC | SHF_EXECINSTR).0),
        ];
        if let Some((eh_frame, eh_frame_hdr)) = self.unwinding {
            sections.push(Section::new(EH_FRAME, SHT_PROGBITS.0, 8, eh_frame).mapped(SHF_ALLOC.0));
            let hdr = Section::new(EH_FRAME_HDR, SHT_PROGBITS.0, 4, eh_frame_hdr);
            sections.push(hdr.mapped(SHF_ALLOC.0));
        }
        // Sections are counted from 1: section 0 is null.
        let names_at = sections.len() as u32 + 1;
        sections.push(Section::new(SHSTRTAB, SHT_STRTAB.0, 1, &names));
        sections.push(Section {
            link: names_at + 2,
            // perf writes 0, of which readelf warns. Images without lines are those of perf.
            info: if debug.is_some() { 2 } else { 0 },
            entry_size: target.symbol(),
            ..Section::new(SYMTAB, SHT_SYMTAB.0, target.word(), &symbols)
        });
        sections.push(Section::new(STRTAB, SHT_STRTAB.0, 1, &strings));
        sections.push(Section {
            flags: SHF_ALLOC.0,
            ..Section::new(NOTE, SHT_NOTE.0, 4, &note)
        });
        if let Some(debug) = &debug {
            for (name, bytes) in [
                (DEBUG_LINE, &debug.line),
                (DEBUG_INFO, &debug.info),
                (DEBUG_ABBREV, &debug.abbrev),
            ] {
                sections.push(Section::new(name, SHT_PROGBITS.0, 1, bytes));
            }
        }
        let text = target.text_offset();
        let size = self.code.len() as u64;
        let segment = Segment {
            start: text,
            file_size: size,
            size,
            align: self.p_align,
        };
        let bytes = file(target, &segment, &sections, names_at);
        Ok(Written { bytes, build_id })
    }

    /// Returns the symbol table: the null symbol, and the function.
    fn symbols(&self) -> Vec<u8> {
        let target = self.target;
        let mut out = Bytes::new(target);
        out.bytes.resize(target.symbol(), 0);
        out.function(1, STB_LOCAL, target.text_offset(), self.code.len() as u64);
        out.bytes
    }
}

/// The segment of an image.
struct Segment {
    /// Its offset, and its address.
    start: u64,
    /// Size in the file in bytes.
    file_size: u64,
    /// Size in memory in bytes.
    size: u64,
    align: u64,
}

/// Returns the file with these sections after the null section. `names_at` is the index of the
/// section with their names.
fn file(target: Target, segment: &Segment, sections: &[Section<'_>], names_at: u32) -> Vec<u8> {
    // The content precedes the section headers, whose offset the file header contains.
    let mut content = Bytes::new(target);
    content.bytes.resize(target.text_offset() as usize, 0);
    let mut headers = Bytes::new(target);
    headers.bytes.resize(target.section_header(), 0);
    for section in sections {
        let (offset, size) = match section.no_bits {
            Some(size) => (0, size),
            None => {
                content.align(section.align);
                (content.bytes.len() as u64, section.bytes.len() as u64)
            }
        };
        content.bytes.extend_from_slice(section.bytes);
        let before = NAMES.iter().take_while(|name| **name != section.name);
        let name = before.fold(1, |at, name| at + name.len() as u32 + 1);
        headers.u32(name);
        headers.u32(section.kind);
        headers.word(section.flags);
        headers.word(if section.is_mapped { offset } else { 0 });
        headers.word(offset);
        headers.word(size);
        headers.u32(section.link);
        headers.u32(section.info);
        headers.word(section.align as u64);
        headers.word(section.entry_size as u64);
    }
    content.align(target.word());
    let headers_at = content.bytes.len() as u64;
    let counts = (sections.len() as u16 + 1, names_at as u16);
    let mut out = heads(target, segment, headers_at, counts);
    out.bytes
        .extend(content.bytes.get(out.bytes.len()..).unwrap_or_default());
    out.bytes.append(&mut headers.bytes);
    out.bytes
}

/// Returns the file header and the program header.
fn heads(
    target: Target,
    segment: &Segment,
    section_headers_at: u64,
    (sections, names_at): (u16, u16),
) -> Bytes {
    let mut out = Bytes::new(target);
    let class = if target.is_64 { ELFCLASS64 } else { ELFCLASS32 };
    let data = match target.endian {
        Endian::Little => ELFDATA2LSB,
        Endian::Big => ELFDATA2MSB,
    };
    out.bytes.extend(ELFMAG);
    out.bytes.extend([class.0, data.0, EV_CURRENT.0]);
    out.bytes.resize(16, 0);
    out.u16(ET_DYN.0);
    out.u16(target.machine.0 as u16);
    out.u32(EV_CURRENT.0.into());
    // The entry point.
    out.word(segment.start);
    out.word(target.file_header() as u64);
    out.word(section_headers_at);
    out.u32(0);
    out.u16(target.file_header() as u16);
    out.u16(target.program_header() as u16);
    out.u16(1);
    out.u16(target.section_header() as u16);
    out.u16(sections);
    out.u16(names_at);
    let flags = (PF_R | PF_X).0;
    out.u32(PT_LOAD.0);
    if target.is_64 {
        out.u32(flags);
    }
    // Offset, virtual and physical address.
    (0..3).for_each(|_| out.word(segment.start));
    out.word(segment.file_size);
    out.word(segment.size);
    if !target.is_64 {
        out.u32(flags);
    }
    out.word(segment.align);
    out
}

/// Returns the note with the build ID.
fn note(target: Target, build_id: &[u8; BUILD_ID_SIZE]) -> Vec<u8> {
    let mut out = Bytes::new(target);
    // The name includes its NUL.
    out.u32(ELF_NOTE_GNU.len() as u32 + 1);
    out.u32(BUILD_ID_SIZE as u32);
    out.u32(NT_GNU_BUILD_ID.0);
    out.bytes.extend(ELF_NOTE_GNU);
    out.bytes.push(0);
    out.bytes.extend(build_id);
    out.bytes
}

#[cfg(test)]
mod tests;
