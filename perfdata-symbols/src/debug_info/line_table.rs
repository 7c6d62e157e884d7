//! The line number table of a unit of DWARF.

use std::sync::Arc;

use gimli::{IncompleteLineProgram, LineProgramHeader};

use super::work::Work;
use super::{Dwarf, Slice, Unit};

/// Maximum size of the path of a source file in bytes, as that of a path of Linux (`PATH_MAX`).
const MOST_PATH: usize = 4096;

/// A row: the line of the instructions from its address to that of the next row.
#[derive(Debug, Clone, Copy)]
struct LineRow {
    address: u64,
    /// The number of the file; [`END`] after the last instruction of a sequence.
    file: u32,
    line: u32,
}

const END: u32 = u32::MAX;

/// The lines of the instructions of a unit.
#[derive(Debug, Default)]
pub(super) struct LineTable {
    /// Sorted by address.
    rows: Vec<LineRow>,
    /// The paths of the files, by their numbers.
    files: Vec<Option<Arc<[u8]>>>,
}

impl LineTable {
    /// Runs the line number program of a unit. What cannot be read is left out.
    pub fn parse(
        dwarf: &Dwarf<'_>,
        unit: &Unit<'_>,
        program: IncompleteLineProgram<Slice<'_>>,
        work: &mut Work,
    ) -> LineTable {
        let mut table = LineTable::default();
        table.add_files(dwarf, unit, program.header(), work);
        let mut sequences: Vec<Vec<LineRow>> = Vec::new();
        let mut sequence: Vec<LineRow> = Vec::new();
        let mut rows = program.rows();
        while let Ok(Some((_, row))) = rows.next_row() {
            if work.spend(1).is_none() || work.hold(size_of::<LineRow>()).is_none() {
                break;
            }
            let file = u32::try_from(row.file_index()).unwrap_or(END);
            let line = row.line().map_or(0, |line| line.get());
            let new = LineRow {
                address: row.address(),
                file: if row.end_sequence() { END } else { file },
                line: u32::try_from(line).unwrap_or(0),
            };
            match sequence.last_mut() {
                Some(last) if last.address == new.address => *last = new,
                _ => sequence.push(new),
            }
            if row.end_sequence() {
                // The linker sets the addresses of code that it removed to 0.
                let sequence = std::mem::take(&mut sequence);
                if sequence.first().is_some_and(|row| row.address != 0) {
                    sequences.push(sequence);
                }
            }
        }
        sequences.sort_by_key(|sequence| sequence.first().map(|row| row.address));
        table.rows = sequences.into_iter().flatten().collect();
        table
    }

    fn add_files(
        &mut self,
        dwarf: &Dwarf<'_>,
        unit: &Unit<'_>,
        header: &LineProgramHeader<Slice<'_>>,
        work: &mut Work,
    ) {
        // The numbers of older versions count from 1.
        if header.version() < 5 {
            self.files.push(None);
        }
        for file in header.file_names() {
            let path = || {
                let mut path = unit.comp_dir.map_or(Vec::new(), |part| part.to_vec());
                if let Some(folder) = file.directory(header) {
                    let folder = dwarf.attr_string(unit, folder).ok()?;
                    push(&mut path, folder.slice());
                }
                let name = dwarf.attr_string(unit, file.path_name()).ok()?;
                push(&mut path, name.slice());
                (path.len() <= MOST_PATH).then_some(path)
            };
            let path: Option<Arc<[u8]>> = path().map(Into::into);
            let size = path.as_ref().map_or(0, |path| path.len());
            if work.spend(1).is_none() || work.hold(size.saturating_add(32)).is_none() {
                return;
            }
            self.files.push(path);
        }
    }

    /// Returns the path of a file.
    pub fn file(&self, number: u64) -> Option<Arc<[u8]>> {
        self.files.get(usize::try_from(number).ok()?)?.clone()
    }

    /// Returns the file and line of the instruction at an address.
    pub fn find(&self, address: u64) -> Option<(Option<Arc<[u8]>>, u32)> {
        let after = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(after.checked_sub(1)?)?;
        (row.file != END).then(|| (self.file(row.file.into()), row.line))
    }
}

/// Appends a part to a path, or replaces it by an absolute one. Parts that are too long for a path
/// are cut so that the path is too long.
fn push(path: &mut Vec<u8>, part: &[u8]) {
    let part = part.get(..MOST_PATH.saturating_add(1)).unwrap_or(part);
    if part.starts_with(b"/") {
        path.clear();
    } else if !path.is_empty() && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}
