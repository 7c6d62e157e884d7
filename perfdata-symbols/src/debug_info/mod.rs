//! The debug information of an object (DWARF versions 2 to 5): the functions at an address with those
//! that are inlined there, and their source lines.
//!
//! The nesting of entries and the sizes of lists are those of the file: nothing here is recursive,
//! and [`Work`] limits how much is read and kept.

mod entry;
mod line_table;
mod names;
mod spans;
mod split;
#[cfg(test)]
mod tests;
mod work;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use gimli::{
    Abbreviations, DebugAddrBase, DebugInfoOffset, DebugLine, DebugLineOffset, DebugLocListsBase,
    DebugRngListsBase, DebugStrOffsetsBase, DwarfFileType, DwoId, EndianSlice, Reader,
    RunTimeEndian, Section, SectionId, UnitHeader, UnitOffset, UnitType,
};

use crate::elf::Elf;
use crate::files::SplitFiles;
use crate::lines::SourceFrame;
use entry::{Die, empty_unit, open_first, read_abbreviations};
use line_table::LineTable;
use names::{Named, string};
use spans::{Span, sort, spans_at};
use split::{Skeleton, Split, SplitUnit};
use work::Work;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
type Unit<'a> = gimli::Unit<Slice<'a>>;

/// The content of sections, by the names that they have in files that are not split.
type Sections = HashMap<&'static str, Vec<u8>, RandomState>;

/// The section without which there is no debug information.
pub(crate) const DEBUG_INFO: &[u8] = b".debug_info";

/// The sections that are read.
const SECTIONS: [SectionId; 9] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// Maximum size of the header of a line number program in bytes. Real ones have up to some hundred
/// kilobytes.
const MOST_LINE_HEADER: u64 = 1 << 22;

/// Maximum number of functions that are inlined into each other at an address.
const MOST_INLINED: usize = 256;

/// A unit, as far as it was read.
#[derive(Debug)]
struct KnownUnit {
    /// The offset of its header in `.debug_info`.
    offset: usize,
    abbreviations: Arc<Abbreviations>,
    low_pc: u64,
    str_offsets_base: DebugStrOffsetsBase<usize>,
    addr_base: DebugAddrBase<usize>,
    loclists_base: DebugLocListsBase<usize>,
    rnglists_base: DebugRngListsBase<usize>,
    line_program: Option<DebugLineOffset<usize>>,
    functions: Option<Vec<Span>>,
    lines: Option<LineTable>,
    /// What connects a skeleton with the rest of the unit.
    id: Option<DwoId>,
    /// The rest of a skeleton.
    split: Option<Box<SplitUnit>>,
}

/// The debug information of an object.
#[derive(Debug)]
pub(crate) struct DebugInfo {
    endian: RunTimeEndian,
    sections: Sections,
    tables: Tables,
    split: Split,
}

#[derive(Debug)]
struct Tables {
    units: Vec<KnownUnit>,
    spans: Vec<Span>,
    /// The names of functions, by the offsets of their entries in `.debug_info`.
    names: HashMap<usize, Named, RandomState>,
    work: Work,
    /// The supplementary file with entries and names that several files share.
    supplementary: Option<Box<DebugInfo>>,
    /// The skeleton of the units, if these are split.
    skeleton: Option<Skeleton>,
}

impl DebugInfo {
    /// Reads the list of units in the debug information of a file. `most` limits the memory for
    /// it, in bytes.
    pub fn parse(elf: &Elf, most: usize) -> Option<Self> {
        Self::parse_any(elf, most).filter(|info| !info.tables.spans.is_empty())
    }

    /// Returns the information with the supplementary file to which it refers.
    pub fn with_supplementary(mut self, elf: Option<&Elf>, most: usize) -> Self {
        let most = most.saturating_sub(self.held());
        let supplementary = elf.and_then(|elf| Self::parse_any(elf, most));
        self.tables.supplementary = supplementary.map(Box::new);
        self
    }

    /// Returns the information with the files of split units.
    pub fn with_split_files(mut self, files: SplitFiles) -> Self {
        self.split = Split::new(self.endian, Some(files));
        self
    }

    /// Returns the number of split units at addresses that were searched whose files were not found,
    /// and the file of the first of them.
    pub fn missing_units(&self) -> Option<(u64, &[u8])> {
        self.split.missing()
    }

    /// Reads the list of units, which may have no code.
    fn parse_any(elf: &Elf, most: usize) -> Option<Self> {
        let mut work = Work::new(most);
        let name = |id: SectionId| Some(id.name());
        let sections = read_sections(elf, SECTIONS, name, &mut work)?;
        let endian = match elf.is_big_endian() {
            true => RunTimeEndian::Big,
            false => RunTimeEndian::Little,
        };
        let mut info = DebugInfo {
            endian,
            sections,
            tables: Tables::new(work, None),
            split: Split::new(endian, None),
        };
        let DebugInfo {
            sections, tables, ..
        } = &mut info;
        tables.add_units(&dwarf(sections, endian));
        Some(info)
    }

    /// Returns the memory for the information in bytes.
    pub fn held(&self) -> usize {
        let supplementary = self.tables.supplementary.as_ref();
        let supplementary = supplementary.map_or(0, |info| info.held());
        self.tables.work.held().saturating_add(supplementary)
    }

    /// Returns the first addresses of units, for tests.
    pub fn some_addresses(&self) -> Vec<u64> {
        let spans = self.tables.spans.iter().take(16);
        spans.map(|span| span.begin).collect()
    }

    /// Returns the functions at an address, the innermost inlined one first. There is one without a
    /// name if only the line of the address is known.
    pub fn find(&mut self, address: u64) -> Vec<SourceFrame> {
        let dwarf = dwarf(&self.sections, self.endian);
        let found = self.tables.find(&dwarf, &mut self.split, address);
        found.unwrap_or_default()
    }
}

/// Reads sections of a file, in which they are called `name`.
fn read_sections(
    elf: &Elf,
    ids: impl IntoIterator<Item = SectionId>,
    name: impl Fn(SectionId) -> Option<&'static str>,
    work: &mut Work,
) -> Option<Sections> {
    let mut sections = Sections::default();
    for id in ids {
        let content = elf.relocated_content(name(id)?.as_bytes(), work.memory() as u64);
        // Information that is damaged in part is not used: its lines could be wrong.
        let content = content.ok()?;
        work.hold(content.len())?;
        sections.insert(id.name(), content);
    }
    Some(sections)
}

fn dwarf(sections: &Sections, endian: RunTimeEndian) -> Dwarf<'_> {
    let section = |id: SectionId| {
        let bytes = sections.get(id.name()).map(|bytes| &**bytes);
        Ok::<_, std::convert::Infallible>(EndianSlice::new(bytes.unwrap_or_default(), endian))
    };
    match Dwarf::load(section) {
        Ok(dwarf) => dwarf,
        Err(never) => match never {},
    }
}

impl Tables {
    fn new(work: Work, skeleton: Option<Skeleton>) -> Self {
        Tables {
            units: Vec::new(),
            spans: Vec::new(),
            names: HashMap::default(),
            work,
            supplementary: None,
            skeleton,
        }
    }

    /// Reads the headers and ranges of all units.
    fn add_units(&mut self, dwarf: &Dwarf<'_>) {
        let mut abbreviations = HashMap::default();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if self.work.spend(16).is_none() || self.work.hold(size_of::<KnownUnit>()).is_none() {
                break;
            }
            let _ = self.add_unit(dwarf, header, &mut abbreviations);
        }
        sort(&mut self.spans);
    }

    fn add_unit(
        &mut self,
        dwarf: &Dwarf<'_>,
        header: UnitHeader<Slice<'_>>,
        known: &mut HashMap<usize, Option<Arc<Abbreviations>>, RandomState>,
    ) -> Option<()> {
        if matches!(
            header.type_(),
            UnitType::Type { .. } | UnitType::SplitType { .. }
        ) {
            return None;
        }
        let offset = header.debug_info_offset()?.0;
        let at = header.debug_abbrev_offset();
        let work = &mut self.work;
        let abbreviations = known
            .entry(at.0)
            .or_insert_with(|| read_abbreviations(dwarf, at, work));
        let abbreviations = abbreviations.clone()?;
        let skeleton = self.skeleton;
        let (unit, root) = open_first(dwarf, header, abbreviations, skeleton, &mut self.work)?;
        let id = match header.type_() {
            UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
            _ => root.split_id,
        };
        let file = root
            .split_name
            .filter(|_| dwarf.file_type == DwarfFileType::Main);
        let text = |value| string(None, dwarf, &unit, value).unwrap_or_default();
        let split = id.zip(file).map(|(id, file)| {
            let folder = root.folder.map(text).unwrap_or_default();
            Box::new(SplitUnit::new(id, text(file), folder))
        });
        let number = self.units.len();
        let spans = (&mut self.spans, number);
        let _ = root.die.add_spans(dwarf, &unit, &mut self.work, spans);
        self.units.push(KnownUnit {
            offset,
            abbreviations: unit.abbreviations.clone(),
            low_pc: unit.low_pc,
            str_offsets_base: unit.str_offsets_base,
            addr_base: unit.addr_base,
            loclists_base: unit.loclists_base,
            rnglists_base: unit.rnglists_base,
            line_program: root.line_program,
            functions: None,
            lines: None,
            id,
            split,
        });
        Some(())
    }

    /// Returns a unit, without its line number program.
    fn open<'a>(&self, dwarf: &Dwarf<'a>, number: usize) -> Option<Unit<'a>> {
        let known = self.units.get(number)?;
        let header = dwarf
            .debug_info
            .header_from_offset(DebugInfoOffset(known.offset))
            .ok()?;
        Some(Unit {
            low_pc: known.low_pc,
            str_offsets_base: known.str_offsets_base,
            addr_base: known.addr_base,
            loclists_base: known.loclists_base,
            rnglists_base: known.rnglists_base,
            ..empty_unit(header, known.abbreviations.clone())
        })
    }

    fn find(
        &mut self,
        dwarf: &Dwarf<'_>,
        split: &mut Split,
        address: u64,
    ) -> Option<Vec<SourceFrame>> {
        let numbers: Vec<usize> = spans_at(&self.spans, address).collect();
        for number in numbers {
            self.work.spend(1)?;
            let unit = self.open(dwarf, number)?;
            self.read_lines(dwarf, &unit, number);
            let rest = self.find_split(dwarf, split, number, address);
            // A skeleton may contain inlined functions, too.
            let found = rest.or_else(|| self.find_in(dwarf, number, address));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Returns the functions at an address in a unit whose lines were read.
    fn find_in(
        &mut self,
        dwarf: &Dwarf<'_>,
        number: usize,
        address: u64,
    ) -> Option<Vec<SourceFrame>> {
        let unit = self.open(dwarf, number)?;
        self.read_functions(dwarf, &unit, number);
        let known = self.units.get(number)?;
        let (file, line) = known.line(address).unwrap_or_default();
        let functions = known.functions.as_deref().unwrap_or_default();
        let function = spans_at(functions, address).next();
        match function {
            Some(function) => {
                let function = UnitOffset(function);
                self.frames(dwarf, &unit, number, function, address)
            }
            None => (line != 0).then(|| {
                vec![SourceFrame {
                    function: None,
                    start_line: 0,
                    file,
                    line,
                }]
            }),
        }
    }

    /// Reads the ranges of all functions of a unit.
    fn read_functions(&mut self, dwarf: &Dwarf<'_>, unit: &Unit<'_>, number: usize) {
        let is_read = |known: &KnownUnit| known.functions.is_some();
        if self.units.get(number).is_none_or(is_read) {
            return;
        }
        let mut functions = Vec::new();
        let _ = self.add_functions(dwarf, unit, &mut functions);
        sort(&mut functions);
        if let Some(known) = self.units.get_mut(number) {
            known.functions = Some(functions);
        }
    }

    fn add_functions(
        &mut self,
        dwarf: &Dwarf<'_>,
        unit: &Unit<'_>,
        functions: &mut Vec<Span>,
    ) -> Option<()> {
        let mut entries = unit.entries_raw(None).ok()?;
        while !entries.is_empty() {
            let what = entries.next_offset().0;
            let Some(abbreviation) = entries.read_abbreviation().ok()? else {
                self.work.spend(1)?;
                continue;
            };
            if abbreviation.tag() != gimli::DW_TAG_subprogram {
                self.work.skip(&mut entries, abbreviation)?;
                continue;
            }
            let die = Die::read(dwarf, unit, &mut entries, abbreviation, &mut self.work)?;
            let _ = die.add_spans(dwarf, unit, &mut self.work, (functions, what));
        }
        Some(())
    }

    /// Reads the lines of a unit.
    fn read_lines(&mut self, dwarf: &Dwarf<'_>, unit: &Unit<'_>, number: usize) {
        let is_read = |known: &KnownUnit| known.lines.is_some();
        if self.units.get(number).is_none_or(is_read) {
            return;
        }
        let lines = self.line_table(dwarf, unit, number).unwrap_or_default();
        if let Some(known) = self.units.get_mut(number) {
            known.lines = Some(lines);
        }
    }

    fn line_table(
        &mut self,
        dwarf: &Dwarf<'_>,
        unit: &Unit<'_>,
        number: usize,
    ) -> Option<LineTable> {
        let offset = self.units.get(number)?.line_program?;
        let mut program = *dwarf.debug_line.reader();
        program.skip(offset.0).ok()?;
        let whole = program;
        let (length, format) = program.read_initial_length().ok()?;
        self.work.spend(length.checked_div(8)?)?;
        let mut start = program.split(length).ok()?;
        if start.read_u16().ok()? >= 5 {
            start.skip(2).ok()?;
        }
        let header = start.read_length(format).ok()?;
        if header as u64 > MOST_LINE_HEADER {
            return None;
        }
        let header = unit.header;
        let abbreviations = unit.abbreviations.clone();
        let skeleton = self.skeleton;
        let (opened, root) = open_first(dwarf, header, abbreviations, skeleton, &mut self.work)?;
        let folder = root.folder;
        let folder =
            folder.and_then(|value| string(self.supplementary.as_deref(), dwarf, &opened, value));
        let unit = Unit {
            comp_dir: folder
                .map(|folder| EndianSlice::new(folder, dwarf.debug_str.reader().endian())),
            ..opened
        };
        let program = DebugLine::from(whole)
            .program(DebugLineOffset(0), unit.header.address_size(), None, None)
            .ok()?;
        Some(LineTable::parse(dwarf, &unit, program, &mut self.work))
    }

    /// Returns the function at the entry `function`, and before it those that are inlined at an
    /// address.
    fn frames(
        &mut self,
        dwarf: &Dwarf<'_>,
        unit: &Unit<'_>,
        number: usize,
        function: UnitOffset<usize>,
        address: u64,
    ) -> Option<Vec<SourceFrame>> {
        let mut chain = vec![(function, (0, 0))];
        // What is damaged in the function hides the functions that are inlined behind it.
        let _ = self.add_inlined(dwarf, unit, function, address, &mut chain);
        let known = self.units.get(number)?;
        let (mut file, mut line) = known.line(address).unwrap_or_default();
        let places: Vec<_> = chain
            .iter()
            .rev()
            .map(|&(entry, (call_file, call_line))| {
                let place = (entry, file.clone(), line);
                file = known.lines.as_ref().and_then(|lines| lines.file(call_file));
                line = call_line;
                place
            })
            .collect();
        let frames = places.into_iter().map(|(entry, file, line)| {
            let (function, start_line) = self.named(dwarf, number, entry);
            SourceFrame {
                function,
                start_line,
                file,
                line,
            }
        });
        Some(frames.collect())
    }

    /// Appends the entries of the functions that are inlined at an address, the outermost first,
    /// and the file and line of their calls.
    fn add_inlined(
        &mut self,
        dwarf: &Dwarf<'_>,
        unit: &Unit<'_>,
        function: UnitOffset<usize>,
        address: u64,
        chain: &mut Vec<(UnitOffset<usize>, (u64, u32))>,
    ) -> Option<()> {
        let mut entries = unit.entries_raw(Some(function)).ok()?;
        // The depth of the innermost entry at the address.
        let mut inside = entries.next_depth();
        // The depth of an entry that is not at the address, and whose children are skipped.
        let mut skipped = None;
        let abbreviation = entries.read_abbreviation().ok()??;
        self.work.skip(&mut entries, abbreviation)?;
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            if depth <= inside {
                break;
            }
            if skipped.is_some_and(|skipped| depth <= skipped) {
                skipped = None;
            }
            let Some(abbreviation) = entries.read_abbreviation().ok()? else {
                self.work.spend(1)?;
                continue;
            };
            let tag = abbreviation.tag();
            if skipped.is_some() || tag != gimli::DW_TAG_inlined_subroutine {
                if skipped.is_none() && tag == gimli::DW_TAG_subprogram {
                    skipped = Some(depth);
                }
                self.work.skip(&mut entries, abbreviation)?;
                continue;
            }
            let die = Die::read(dwarf, unit, &mut entries, abbreviation, &mut self.work)?;
            if !die.contains(dwarf, unit, &mut self.work, address) {
                skipped = Some(depth);
                continue;
            }
            chain.push((offset, (die.call_file, die.call_line)));
            inside = depth;
            if chain.len() > MOST_INLINED {
                break;
            }
        }
        Some(())
    }
}

impl KnownUnit {
    fn line(&self, address: u64) -> Option<(Option<Arc<[u8]>>, u32)> {
        self.lines.as_ref()?.find(address)
    }
}
