//! Entries of units (DIEs), and the abbreviations that describe their attributes.

use std::sync::Arc;

use gimli::{
    Abbreviation, Abbreviations, AttributeValue, DebugAbbrevOffset, DebugAddrBase, DebugLineOffset,
    DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, DwoId, EntriesRaw, RangeListsOffset,
    Reader, Section, UnitHeader,
};

use super::spans::Span;
use super::split::Skeleton;
use super::work::Work;
use super::{Dwarf, Slice, Unit};

type Entries<'a, 'b> = EntriesRaw<'b, Slice<'a>>;

impl Work {
    /// Skips the attributes of an entry.
    pub(super) fn skip(
        &mut self,
        entries: &mut Entries<'_, '_>,
        abbreviation: &Abbreviation,
    ) -> Option<()> {
        let attributes = abbreviation.attributes();
        self.spend(attributes.len().saturating_add(1))?;
        entries.skip_attributes(attributes).ok()
    }
}

/// Reads a list of abbreviations. They are counted before, because many units can have long ones.
pub(super) fn read_abbreviations(
    dwarf: &Dwarf<'_>,
    at: DebugAbbrevOffset<usize>,
    work: &mut Work,
) -> Option<Arc<Abbreviations>> {
    let mut input = *dwarf.debug_abbrev.reader();
    input.skip(at.0).ok()?;
    while input.read_uleb128().ok()? != 0 {
        input.read_uleb128().ok()?;
        input.read_u8().ok()?;
        work.hold(64)?;
        loop {
            work.spend(1)?;
            work.hold(16)?;
            let (name, form) = (input.read_uleb128().ok()?, input.read_uleb128().ok()?);
            if form == gimli::DW_FORM_implicit_const.0.into() {
                input.read_sleb128().ok()?;
            }
            if name == 0 && form == 0 {
                break;
            }
        }
    }
    dwarf.debug_abbrev.abbreviations(at).ok().map(Arc::new)
}

pub(super) fn empty_unit<'a>(
    header: UnitHeader<Slice<'a>>,
    abbreviations: Arc<Abbreviations>,
) -> Unit<'a> {
    Unit {
        header,
        abbreviations,
        name: None,
        comp_dir: None,
        low_pc: 0,
        str_offsets_base: DebugStrOffsetsBase(0),
        addr_base: DebugAddrBase(0),
        loclists_base: DebugLocListsBase(0),
        rnglists_base: DebugRngListsBase(0),
        line_program: None,
        dwo_id: None,
    }
}

/// The first entry of a unit.
pub(super) struct Root<'a> {
    pub die: Die<'a>,
    pub line_program: Option<DebugLineOffset<usize>>,
    /// The folder in which the compiler ran.
    pub folder: Option<AttributeValue<Slice<'a>>>,
    /// The file with the rest of a skeleton, and what connects both in DWARF 4.
    pub split_name: Option<AttributeValue<Slice<'a>>>,
    pub split_id: Option<DwoId>,
}

/// Reads the first entry of a unit, on which the other ones depend.
pub(super) fn open_first<'a>(
    dwarf: &Dwarf<'a>,
    header: UnitHeader<Slice<'a>>,
    abbreviations: Arc<Abbreviations>,
    skeleton: Option<Skeleton>,
    work: &mut Work,
) -> Option<(Unit<'a>, Root<'a>)> {
    let mut unit = empty_unit(header, abbreviations);
    let mut read = empty_unit(unit.header, unit.abbreviations.clone());
    let (encoding, kind) = (header.encoding(), dwarf.file_type);
    read.str_offsets_base = DebugStrOffsetsBase::default_for_encoding_and_file(encoding, kind);
    read.rnglists_base = DebugRngListsBase::default_for_encoding_and_file(encoding, kind);
    if let Some(skeleton) = skeleton {
        read.addr_base = skeleton.addr_base;
        if encoding.version < 5 {
            read.rnglists_base = skeleton.rnglists_base;
        }
    }
    let (mut split_name, mut split_id) = (None, None);
    let (mut folder, mut low_pc, mut line_program) = (None, None, None);
    let mut entries = unit.entries_raw(None).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    work.spend(abbreviation.attributes().len())?;
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec).ok()?;
        match (attribute.name(), attribute.value()) {
            (gimli::DW_AT_comp_dir, value) => folder = Some(value),
            (gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name, value) => split_name = Some(value),
            (gimli::DW_AT_GNU_dwo_id, AttributeValue::DwoId(id)) => split_id = Some(id),
            (gimli::DW_AT_low_pc, value) => low_pc = Some(value),
            (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => {
                line_program = Some(offset);
            }
            (_, AttributeValue::DebugStrOffsetsBase(base)) => read.str_offsets_base = base,
            (_, AttributeValue::DebugAddrBase(base)) => read.addr_base = base,
            (_, AttributeValue::DebugLocListsBase(base)) => read.loclists_base = base,
            (_, AttributeValue::DebugRngListsBase(base)) => read.rnglists_base = base,
            _ => {}
        }
    }
    unit = read;
    let address = |value| dwarf.attr_address(&unit, value).ok()?;
    let low_pc = low_pc.and_then(address);
    let low_pc = low_pc
        .or(skeleton.map(|skeleton| skeleton.low_pc))
        .unwrap_or(0);
    unit.low_pc = low_pc;
    let mut entries = unit.entries_raw(None).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let die = Die::read(dwarf, &unit, &mut entries, abbreviation, work)?;
    let root = Root {
        die,
        line_program,
        folder,
        split_name,
        split_id,
    };
    Some((unit, root))
}

/// The attributes of an entry that matter here.
#[derive(Debug, Default)]
pub(super) struct Die<'a> {
    low_pc: Option<u64>,
    high_pc: Option<u64>,
    size: Option<u64>,
    ranges: Option<RangeListsOffset<usize>>,
    pub name: Option<AttributeValue<Slice<'a>>>,
    pub linkage_name: Option<AttributeValue<Slice<'a>>>,
    pub origin: Option<AttributeValue<Slice<'a>>>,
    pub call_file: u64,
    pub call_line: u32,
    /// The line of the declaration.
    pub declared: u32,
}

impl<'a> Die<'a> {
    pub fn read(
        dwarf: &Dwarf<'a>,
        unit: &Unit<'a>,
        entries: &mut Entries<'a, '_>,
        abbreviation: &Abbreviation,
        work: &mut Work,
    ) -> Option<Self> {
        let attributes = abbreviation.attributes();
        work.spend(attributes.len().saturating_add(1))?;
        let mut die = Die::default();
        for spec in attributes {
            let attribute = entries.read_attribute(*spec).ok()?;
            let value = attribute.value();
            let line = || u32::try_from(attribute.udata_value().unwrap_or(0)).unwrap_or(0);
            match attribute.name() {
                gimli::DW_AT_low_pc => die.low_pc = dwarf.attr_address(unit, value).ok()?,
                gimli::DW_AT_high_pc => match value {
                    AttributeValue::Udata(size) => die.size = Some(size),
                    value => die.high_pc = dwarf.attr_address(unit, value).ok()?,
                },
                gimli::DW_AT_ranges => die.ranges = dwarf.attr_ranges_offset(unit, value).ok()?,
                gimli::DW_AT_name => die.name = Some(value),
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    die.linkage_name = Some(value);
                }
                gimli::DW_AT_abstract_origin => die.origin = Some(value),
                gimli::DW_AT_specification if die.origin.is_none() => die.origin = Some(value),
                gimli::DW_AT_call_file => match value {
                    AttributeValue::FileIndex(file) => die.call_file = file,
                    _ => die.call_file = attribute.udata_value().unwrap_or(0),
                },
                gimli::DW_AT_call_line => die.call_line = line(),
                gimli::DW_AT_decl_line => die.declared = line(),
                _ => {}
            }
        }
        Some(die)
    }

    /// Appends the ranges of addresses. The linker sets the addresses of code that it removed to 0:
    /// such ranges are left out.
    pub fn add_spans(
        &self,
        dwarf: &Dwarf<'a>,
        unit: &Unit<'a>,
        work: &mut Work,
        (spans, what): (&mut Vec<Span>, usize),
    ) -> Option<()> {
        self.ranges(dwarf, unit, work, |work, begin, end| {
            work.hold(size_of::<Span>())?;
            spans.push(Span { begin, end, what });
            Some(())
        })
    }

    /// Returns whether an address is in one of the ranges.
    pub fn contains(
        &self,
        dwarf: &Dwarf<'a>,
        unit: &Unit<'a>,
        work: &mut Work,
        address: u64,
    ) -> bool {
        let mut is_at = false;
        let _ = self.ranges(dwarf, unit, work, |_, begin, end| {
            is_at |= begin <= address && address < end;
            Some(())
        });
        is_at
    }

    /// Passes the ranges of addresses to `add`.
    fn ranges(
        &self,
        dwarf: &Dwarf<'a>,
        unit: &Unit<'a>,
        work: &mut Work,
        mut add: impl FnMut(&mut Work, u64, u64) -> Option<()>,
    ) -> Option<()> {
        let mut push = |work: &mut Work, begin: u64, end: u64| match begin != 0 && begin < end {
            true => add(work, begin, end),
            false => Some(()),
        };
        if let Some(offset) = self.ranges {
            // Not every entry of the list is a range.
            let mut entries = dwarf.raw_ranges(unit, offset).ok()?;
            while let Ok(Some(_)) = entries.next() {
                work.spend(1)?;
            }
            let mut ranges = dwarf.ranges(unit, offset).ok()?;
            while let Ok(Some(range)) = ranges.next() {
                push(work, range.begin, range.end)?;
            }
            return Some(());
        }
        let begin = self.low_pc?;
        let size = || begin.checked_add(self.size?);
        push(work, begin, self.high_pc.or_else(size)?)
    }
}
