//! Split DWARF: units whose entries are in another file, a `.dwo` file or a package of them (`.dwp`).
//! The object has only a skeleton of such a unit, with its addresses and lines.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::convert::Infallible;

use gimli::{
    DebugAddrBase, DebugCuIndex, DebugRngListsBase, DwoId, EndianSlice, RunTimeEndian, SectionId,
};

use super::line_table::LineTable;
use super::work::Work;
use super::{Dwarf, Sections, Tables, dwarf, read_sections};
use crate::elf::Elf;
use crate::files::SplitFiles;
use crate::lines::SourceFrame;

/// The sections that are read of a `.dwo` file.
const OF_UNIT: [SectionId; 5] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The section of a package that lists its units.
const INDEX: SectionId = SectionId::DebugCuIndex;

/// What the entries of a split unit need of its skeleton.
#[derive(Debug, Clone, Copy)]
pub(super) struct Skeleton {
    pub low_pc: u64,
    pub addr_base: DebugAddrBase<usize>,
    /// The base of the ranges in DWARF 4.
    pub rnglists_base: DebugRngListsBase<usize>,
}

/// The entries of a split unit.
#[derive(Debug)]
enum State {
    Unread,
    Missing,
    /// The unit in these tables; its sections, unless they are in the package.
    Known(Box<Tables>, usize, Option<Sections>),
}

/// The rest of a unit that is in another file.
#[derive(Debug)]
pub(super) struct SplitUnit {
    id: DwoId,
    /// The path of the file from the folder in which the compiler ran, and that folder.
    name: Box<[u8]>,
    folder: Box<[u8]>,
    state: State,
}

/// Where the rest of all units of an object is.
#[derive(Debug)]
pub(super) struct Split {
    endian: RunTimeEndian,
    files: Option<SplitFiles>,
    /// The sections of the package, if it was searched and found.
    package: Option<Option<Sections>>,
    /// Number of units that were not found, and the file of the first of them.
    missing: u64,
    first_missing: Box<[u8]>,
}

impl Split {
    pub fn new(endian: RunTimeEndian, files: Option<SplitFiles>) -> Self {
        Split {
            endian,
            files,
            package: None,
            missing: 0,
            first_missing: Box::default(),
        }
    }

    /// Returns the number of units that were not found, and the file of the first of them.
    pub fn missing(&self) -> Option<(u64, &[u8])> {
        (self.missing > 0).then_some((self.missing, &*self.first_missing))
    }

    /// Reads the package, once.
    fn read_package(&mut self, work: &mut Work) {
        let Some(files) = self.files.as_ref().filter(|_| self.package.is_none()) else {
            return;
        };
        let sections = OF_UNIT.into_iter().chain([INDEX]);
        let package = files.package();
        let read = |elf: &Elf| read_sections(elf, sections, SectionId::dwo_name, work);
        self.package = Some(package.as_ref().and_then(read));
    }

    /// Returns the sections of a unit in the package.
    fn in_package<'a>(&'a self, parent: &Dwarf<'a>, id: DwoId) -> Option<Dwarf<'a>> {
        let sections = self.package.as_ref()?.as_ref()?;
        let index = DebugCuIndex::new(sections.get(INDEX.name())?, self.endian);
        let index = index.index().ok()?;
        let row = index.find(id.0)?;
        let mut ranges: HashMap<&'static str, (u32, u32)> = HashMap::new();
        for part in index.sections(row).ok()? {
            ranges.insert(part.section.section_id().name(), (part.offset, part.size));
        }
        let section = |id: SectionId| {
            let bytes = sections.get(id.name()).map(|bytes| &**bytes);
            let bytes = bytes.unwrap_or_default();
            // Strings are shared by all units.
            let part = match ranges.get(id.name()) {
                Some(&(offset, size)) => part_of(bytes, offset, size).unwrap_or_default(),
                None if id == SectionId::DebugStr => bytes,
                None => &[],
            };
            Ok::<_, Infallible>(EndianSlice::new(part, self.endian))
        };
        let mut own = match gimli::Dwarf::load(section) {
            Ok(own) => own,
            Err(never) => match never {},
        };
        own.make_dwo(parent);
        Some(own)
    }
}

/// Returns a part of a section.
fn part_of(bytes: &[u8], offset: u32, size: u32) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let size = usize::try_from(size).ok()?;
    bytes.get(start..start.checked_add(size)?)
}

impl SplitUnit {
    /// Returns the unit `id` in the file that the compiler called `name` when it ran in `folder`.
    pub fn new(id: DwoId, name: &[u8], folder: &[u8]) -> Self {
        SplitUnit {
            id,
            name: name.into(),
            folder: folder.into(),
            state: State::Unread,
        }
    }

    /// Returns the functions at an address. The lines are those of the skeleton, which are taken.
    fn find(
        &mut self,
        parent: &Dwarf<'_>,
        split: &mut Split,
        (skeleton, lines): (Skeleton, &mut Option<LineTable>),
        work: &mut Work,
        address: u64,
    ) -> Option<Vec<SourceFrame>> {
        if matches!(self.state, State::Unread) {
            self.state = match self.read(parent, split, skeleton, work) {
                Some((mut tables, number, sections)) => {
                    if let Some(unit) = tables.units.get_mut(number) {
                        unit.lines = lines.take();
                    }
                    State::Known(tables, number, sections)
                }
                None => {
                    split.missing = split.missing.saturating_add(1);
                    if split.missing == 1 {
                        split.first_missing = self.name.clone();
                    }
                    State::Missing
                }
            };
        }
        let id = self.id;
        let State::Known(tables, number, sections) = &mut self.state else {
            return None;
        };
        let own = match sections {
            Some(sections) => of_file(sections, split.endian, parent),
            None => split.in_package(parent, id)?,
        };
        std::mem::swap(&mut tables.work, work);
        let frames = tables.find_in(&own, *number, address);
        std::mem::swap(&mut tables.work, work);
        frames
    }

    /// Reads the unit: from the package if it contains it, otherwise from its file.
    fn read(
        &self,
        parent: &Dwarf<'_>,
        split: &mut Split,
        skeleton: Skeleton,
        work: &mut Work,
    ) -> Option<(Box<Tables>, usize, Option<Sections>)> {
        split.read_package(work);
        if let Some(own) = split.in_package(parent, self.id)
            && let Some((tables, number)) = self.tables(&own, skeleton, work)
        {
            return Some((tables, number, None));
        }
        let files = split.files.as_ref()?.units(&self.folder, &self.name);
        for elf in files {
            let Some(sections) = read_sections(&elf, OF_UNIT, SectionId::dwo_name, work) else {
                continue;
            };
            let own = of_file(&sections, split.endian, parent);
            if let Some((tables, number)) = self.tables(&own, skeleton, work) {
                return Some((tables, number, Some(sections)));
            }
        }
        None
    }

    /// Reads the units in the sections of a file. Returns them with the number of the one with the ID,
    /// which is that of the skeleton only if both were compiled at once.
    fn tables(
        &self,
        dwarf: &Dwarf<'_>,
        skeleton: Skeleton,
        work: &mut Work,
    ) -> Option<(Box<Tables>, usize)> {
        let mut tables = Box::new(Tables::new(Work::new(0), Some(skeleton)));
        std::mem::swap(&mut tables.work, work);
        tables.add_units(dwarf);
        std::mem::swap(&mut tables.work, work);
        let units = &mut tables.units.iter();
        let number = units.position(|unit| unit.id == Some(self.id))?;
        Some((tables, number))
    }
}

/// Returns the sections of a `.dwo` file, with those of the object that contain addresses.
fn of_file<'a>(sections: &'a Sections, endian: RunTimeEndian, parent: &Dwarf<'a>) -> Dwarf<'a> {
    let mut own = dwarf(sections, endian);
    own.make_dwo(parent);
    own
}

impl Tables {
    /// Returns the functions at an address in the rest of a unit that is in another file; `None` if the
    /// unit is complete, or if the file was not found.
    pub(super) fn find_split(
        &mut self,
        dwarf: &Dwarf<'_>,
        split: &mut Split,
        number: usize,
        address: u64,
    ) -> Option<Vec<SourceFrame>> {
        let known = self.units.get_mut(number)?;
        let mut unit = known.split.take()?;
        let skeleton = Skeleton {
            low_pc: known.low_pc,
            addr_base: known.addr_base,
            rnglists_base: known.rnglists_base,
        };
        let of_skeleton = (skeleton, &mut known.lines);
        let frames = unit.find(dwarf, split, of_skeleton, &mut self.work, address);
        known.split = Some(unit);
        frames
    }
}
