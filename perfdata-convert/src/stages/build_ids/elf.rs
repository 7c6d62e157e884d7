//! Data of an ELF file: its build ID, and the location of its debug information.
//!
//! Only headers, notes and the link are read. All offsets and sizes are compared with the file
//! before they are used.

use std::io::{BufReader, Read};
use std::path::Path;

use object::elf::{
    ELF_NOTE_GNU, ELFCLASS64, FileHeader32, FileHeader64, NT_GNU_BUILD_ID, SHT_NOBITS,
};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endian as _, Endianness, FileKind, ReadCache, ReadRef};
use perfdata_session::BuildId as Id;
use perfdata_symbols::decompressed;

use crate::io::open_regular;

/// The section with the name of the file that contains the debug information.
const DEBUGLINK: &[u8] = b".gnu_debuglink";

/// Maximum size of notes, or of a link, in bytes. Real ones have a few hundred bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Maximum number of section headers: the limit of the format itself for files without one section
/// per function.
const MOST_SECTIONS: u32 = 1 << 20;

/// The result of a search in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Its build ID.
    Id(Id),
    /// No build ID, but a link to a debug file.
    Link(DebugLink),
    /// Neither of them.
    Nothing,
}

/// The link to a file with debug information.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugLink {
    /// Name of the file, without its folder.
    pub name: Vec<u8>,
    /// CRC-32 of its whole content.
    pub crc32: u32,
}

/// Reads the file at `path`.
///
/// # Errors
/// The reason why the file cannot be read, or is not an ELF file.
pub fn read(path: &Path) -> Result<Found, String> {
    let file = open_regular(path).map_err(|e| e.to_string())?;
    match decompressed(&file).map_err(|e| e.to_string())? {
        Some(bytes) => parse(bytes.as_slice()),
        None => parse(&ReadCache::new(BufReader::new(file))),
    }
}

/// Returns whether the ELF file at `path` is of the 64-bit class; `None` if it is not an ELF file.
pub fn is_64_bit(path: &Path) -> Option<bool> {
    let mut start = [0; 5];
    open_regular(path).ok()?.read_exact(&mut start).ok()?;
    match start {
        [0x7f, b'E', b'L', b'F', class] => Some(class == ELFCLASS64.0),
        _ => None,
    }
}

/// Searches an ELF file.
///
/// # Errors
/// The reason why it is not an ELF file, or its damage.
pub fn parse<'data>(data: impl ReadRef<'data>) -> Result<Found, String> {
    match FileKind::parse(data) {
        Ok(FileKind::Elf32) => look::<FileHeader32<Endianness>>(data),
        Ok(FileKind::Elf64) => look::<FileHeader64<Endianness>>(data),
        _ => return Err("not an ELF file".into()),
    }
    .map_err(|e| format!("damaged ELF file: {e}"))
}

/// Searches sections first: a debug file has the program headers of the original file, but not the
/// content that they refer to. Programs without sections have the notes in a segment.
fn look<'data, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'data>,
) -> object::read::Result<Found> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let mut link = None;
    if header.shnum(endian, data)? < MOST_SECTIONS {
        let sections = header.sections(endian, data)?;
        for section in sections.iter() {
            let is_small = section.sh_size(endian).into() <= MOST_BYTES;
            if !is_small || section.sh_type(endian) == SHT_NOBITS {
                continue;
            }
            if let Some(notes) = section.notes(endian, data)?
                && let Some(id) = id_in::<Elf>(notes, endian)
            {
                return Ok(Found::Id(id));
            }
            if link.is_none() && sections.section_name(endian, section) == Ok(DEBUGLINK) {
                link = debuglink(section.data(endian, data)?, endian);
            }
        }
    }
    for segment in header.program_headers(endian, data)? {
        if segment.p_filesz(endian).into() <= MOST_BYTES
            && let Ok(Some(notes)) = segment.notes(endian, data)
            && let Some(id) = id_in::<Elf>(notes, endian)
        {
            return Ok(Found::Id(id));
        }
    }
    Ok(link.map_or(Found::Nothing, Found::Link))
}

fn id_in<Elf: FileHeader>(mut notes: NoteIterator<'_, Elf>, endian: Elf::Endian) -> Option<Id> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
            return Id::new(note.desc());
        }
    }
    None
}

/// Parses name, NUL, padding to a multiple of 4, CRC-32.
fn debuglink(section: &[u8], endian: Endianness) -> Option<DebugLink> {
    let name = section.split(|&byte| byte == 0).next()?;
    let at = (name.len() + 1).next_multiple_of(4);
    let crc32 = endian.read_u32(*section.get(at..)?.first_chunk()?);
    (!name.is_empty() && !name.contains(&b'/')).then(|| DebugLink {
        name: name.to_vec(),
        crc32,
    })
}
