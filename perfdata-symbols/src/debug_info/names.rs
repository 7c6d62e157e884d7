//! The names of functions, which may be in a supplementary file (`dwz`).

use std::sync::Arc;

use gimli::{AttributeValue, SectionId, UnitOffset};

use super::entry::Die;
use super::{DebugInfo, Dwarf, Slice, Tables, Unit, dwarf};

/// Maximum number of references from an entry to the one with its name.
const MOST_REFERENCES: usize = 16;

/// Maximum length of a name in bytes.
const MOST_NAME: usize = 1 << 16;

/// The name of a function and the line of its declaration, 0 if it is not known.
pub(super) type Named = (Option<Arc<[u8]>>, u32);

impl DebugInfo {
    /// Completes the name of a function, whose entry is at an offset in `.debug_info`.
    fn add_name(&mut self, offset: usize, named: &mut Named) -> Option<()> {
        let dwarf = dwarf(&self.sections, self.endian);
        let (number, entry) = self.tables.entry_at(offset)?;
        self.tables.find_name(&dwarf, number, entry, named)
    }

    /// Returns the string at an offset in `.debug_str`.
    fn string(&self, offset: usize) -> Option<&[u8]> {
        let strings = self
            .sections
            .get(SectionId::DebugStr.name())?
            .get(offset..)?;
        let end = strings.iter().position(|&byte| byte == 0)?;
        strings.get(..end)
    }
}

impl Tables {
    /// Returns the name of the function at an entry, and the line of its declaration.
    pub(super) fn named(
        &mut self,
        dwarf: &Dwarf<'_>,
        number: usize,
        entry: UnitOffset<usize>,
    ) -> Named {
        let Some(known) = self.units.get(number) else {
            return (None, 0);
        };
        let key = known.offset.saturating_add(entry.0);
        if let Some(named) = self.names.get(&key) {
            return named.clone();
        }
        let mut named = (None, 0);
        let _ = self.find_name(dwarf, number, entry, &mut named);
        let size = named.0.as_ref().map_or(0, |name: &Arc<[u8]>| name.len());
        if self.work.hold(size.saturating_add(64)).is_some() {
            self.names.insert(key, named.clone());
        }
        named
    }

    /// Follows the references of an entry to its name: the linkage name of the first entry that has
    /// one, otherwise the name of the first one that has one.
    fn find_name(
        &mut self,
        dwarf: &Dwarf<'_>,
        mut number: usize,
        mut entry: UnitOffset<usize>,
        named: &mut Named,
    ) -> Option<()> {
        for _ in 0..MOST_REFERENCES {
            let unit = self.open(dwarf, number)?;
            let mut entries = unit.entries_raw(Some(entry)).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            let die = Die::read(dwarf, &unit, &mut entries, abbreviation, &mut self.work)?;
            if named.1 == 0 {
                named.1 = die.declared;
            }
            let name = |value: Option<AttributeValue<Slice<'_>>>| -> Option<Arc<[u8]>> {
                let name = string(self.supplementary.as_deref(), dwarf, &unit, value?)?;
                (!name.is_empty() && name.len() <= MOST_NAME).then(|| name.into())
            };
            if let Some(linkage) = name(die.linkage_name) {
                named.0 = Some(linkage);
                return Some(());
            }
            if named.0.is_none() {
                named.0 = name(die.name);
            }
            match die.origin? {
                AttributeValue::UnitRef(offset) => entry = offset,
                AttributeValue::DebugInfoRef(offset) => {
                    (number, entry) = self.entry_at(offset.0)?;
                }
                AttributeValue::DebugInfoRefSup(offset) => {
                    return self.supplementary.as_mut()?.add_name(offset.0, named);
                }
                _ => return None,
            }
        }
        None
    }

    /// Returns the unit with the entry at an offset in `.debug_info`, and the entry.
    fn entry_at(&self, offset: usize) -> Option<(usize, UnitOffset<usize>)> {
        let after = self.units.partition_point(|unit| unit.offset <= offset);
        let number = after.checked_sub(1)?;
        let unit = self.units.get(number)?;
        Some((number, UnitOffset(offset.checked_sub(unit.offset)?)))
    }
}

/// Returns the string of an attribute, which may be in the supplementary file.
pub(super) fn string<'a>(
    supplementary: Option<&'a DebugInfo>,
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    value: AttributeValue<Slice<'a>>,
) -> Option<&'a [u8]> {
    match value {
        AttributeValue::DebugStrRefSup(offset) => supplementary?.string(offset.0),
        value => Some(dwarf.attr_string(unit, value).ok()?.slice()),
    }
}
