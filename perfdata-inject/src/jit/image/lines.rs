//! Source lines of an image, as DWARF 4.
//!
//! perf writes DWARF 2 without columns, and without the address range of the unit, which some
//! readers need to find a line (tools/perf/util/genelf_debug.c).

use gimli::constants::{DW_AT_high_pc, DW_AT_low_pc, DW_AT_name, DW_AT_stmt_list};
use gimli::write::{
    Address, AttributeValue, DwarfUnit, EndianVec, LineProgram, LineString, Sections,
};
use gimli::{Encoding, Format, LineEncoding, RunTimeEndian};
use perfdata_core::Endian;

use super::Target;

/// The source line of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLine<'a> {
    /// Offset of the instruction in the code in bytes.
    pub offset: u64,
    /// Name of the source file; not empty, without a NUL.
    pub file: &'a [u8],
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

/// The sections with the lines.
pub struct DebugSections {
    /// `.debug_line`.
    pub line: Vec<u8>,
    /// `.debug_info`.
    pub info: Vec<u8>,
    /// `.debug_abbrev`.
    pub abbrev: Vec<u8>,
}

/// Returns the sections with `lines`, which are sorted by offset and inside the code of
/// `code_size` bytes.
///
/// # Errors
/// They cannot be encoded.
pub fn sections(
    target: Target,
    code_size: u64,
    lines: &[SourceLine<'_>],
) -> Result<DebugSections, String> {
    let encoding = Encoding {
        format: Format::Dwarf32,
        // From version 5 on, strings are in sections that perf's images do not have.
        version: 4,
        address_size: target.word() as u8,
    };
    let text = Address::Constant(target.text_offset());
    let name = |line: &SourceLine<'_>| LineString::String(line.file.to_vec());
    let empty = || LineString::String(Vec::new());
    // The working directory is not known. Neither it nor the first file is written before DWARF 5.
    let mut program = LineProgram::new(
        encoding,
        LineEncoding::default(),
        empty(),
        None,
        empty(),
        None,
    );
    let folder = program.default_directory();
    program.begin_sequence(Some(text));
    for line in lines {
        let file = program.add_file(name(line), folder, None);
        let row = program.row();
        row.address_offset = line.offset;
        row.file = file;
        row.line = line.line.into();
        row.column = line.column.into();
        program.generate_row();
    }
    program.end_sequence(code_size);

    let mut dwarf = DwarfUnit::new(encoding);
    dwarf.unit.line_program = program;
    let root = dwarf.unit.root();
    let unit = dwarf.unit.get_mut(root);
    if let Some(line) = lines.first() {
        unit.set(DW_AT_name, AttributeValue::String(line.file.to_vec()));
    }
    unit.set(DW_AT_stmt_list, AttributeValue::LineProgramRef);
    unit.set(DW_AT_low_pc, AttributeValue::Address(text));
    unit.set(DW_AT_high_pc, AttributeValue::Udata(code_size));
    let endian = match target.endian {
        Endian::Little => RunTimeEndian::Little,
        Endian::Big => RunTimeEndian::Big,
    };
    let mut sections = Sections::new(EndianVec::new(endian));
    dwarf
        .write(&mut sections)
        .map_err(|error| format!("source lines: {error}"))?;
    Ok(DebugSections {
        line: sections.debug_line.take(),
        info: sections.debug_info.take(),
        abbrev: sections.debug_abbrev.take(),
    })
}
