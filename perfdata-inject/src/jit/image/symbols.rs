//! Images with names of functions, without their code.

use std::collections::HashMap;

use object::elf::{
    SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SHT_NOTE, SHT_STRTAB, SHT_SYMTAB, STB_GLOBAL,
};

use super::{
    Bytes, NOTE, SHSTRTAB, STRTAB, SYMTAB, Section, Segment, TEXT, Target, Written, build_id, file,
    note, section_names,
};

/// Alignment of the segment: a page of the smallest size. Images begin at a page.
const ALIGN: u64 = 0x1000;

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Offset in the image in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Name, without a NUL.
    pub name: &'a [u8],
}

/// The functions in a part of the memory of a process.
///
/// The segment begins at offset 0, like the addresses: a reader that subtracts the offset from the
/// address of the mapping, as libdwfl does, then knows where the image begins and ends. The file
/// contains nothing of the segment.
#[derive(Debug, Clone, Copy)]
pub struct SymbolImage<'a> {
    /// The machine.
    pub target: Target,
    /// Size of the memory in bytes.
    pub size: u64,
    /// The functions. Those whose names are the same slice share it.
    pub symbols: &'a [Symbol<'a>],
}

impl SymbolImage<'_> {
    /// Returns the image; `None` if its tables have more than 4 GiB.
    pub fn write(&self) -> Option<Written> {
        let target = self.target;
        let (symbols, strings) = self.tables()?;
        u32::try_from(symbols.len()).ok()?;
        let build_id = build_id::build_id(target.endian, &[], &symbols, &strings);
        let (note, names) = (note(target, &build_id), section_names());
        let text = Section::new(TEXT, SHT_NOBITS.0, 16, &[]);
        let sections = [
            Section {
                no_bits: Some(self.size),
                ..text.mapped((SHF_ALLOC | SHF_EXECINSTR).0)
            },
            Section::new(SHSTRTAB, SHT_STRTAB.0, 1, &names),
            Section {
                link: 4,
                // The first symbol that is not local.
                info: 1,
                entry_size: target.symbol(),
                ..Section::new(SYMTAB, SHT_SYMTAB.0, target.word(), &symbols)
            },
            Section::new(STRTAB, SHT_STRTAB.0, 1, &strings),
            Section {
                flags: SHF_ALLOC.0,
                ..Section::new(NOTE, SHT_NOTE.0, 4, &note)
            },
        ];
        let segment = Segment {
            start: 0,
            file_size: 0,
            size: self.size,
            align: ALIGN,
        };
        let bytes = file(target, &segment, &sections, 2);
        Some(Written { bytes, build_id })
    }

    /// Returns the symbol table and the string table.
    fn tables(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut table = Bytes::new(self.target);
        table.bytes.resize(self.target.symbol(), 0);
        let mut strings = vec![0];
        let mut known: HashMap<(usize, usize), u32> = HashMap::new();
        for Symbol { offset, size, name } in self.symbols {
            let end = u32::try_from(strings.len()).ok()?;
            let at = *known
                .entry((name.as_ptr().addr(), name.len()))
                .or_insert_with(|| {
                    strings.extend_from_slice(name);
                    strings.push(0);
                    end
                });
            table.function(at, STB_GLOBAL, *offset, *size);
        }
        Some((table.bytes, strings))
    }
}
