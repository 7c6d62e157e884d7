//! The code of an object: its addresses, its functions and its instructions.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use perfdata_session::DsoKind;
use perfdata_symbols::{Elf, ObjectFiles};

use super::instructions::{Instructions, MOST_CODE};
use super::objects::{Object, Place};

/// Maximum number of functions that a fall-through may touch.
const MOST_TOUCHED: usize = 16;

/// Maximum number of instructions that are kept.
const MOST_KEPT: usize = 1 << 21;

/// The size of a page, to which addresses of segments are rounded.
const PAGE: u64 = 4096;

/// The code of an object.
#[derive(Debug)]
pub(super) struct Code {
    elf: Elf,
    /// What an offset is relative to, in a kernel.
    kernel_base: Option<u64>,
    /// The addresses of the functions, in their order, without overlaps.
    functions: Vec<Range<u64>>,
    /// The same of the entries of procedure linkage tables.
    stubs: Vec<Range<u64>>,
    /// The instructions of functions, by their numbers.
    instructions: HashMap<usize, Instructions, RandomState>,
    /// Number of instructions of these functions.
    kept: usize,
}

impl Code {
    /// Returns the code of an object, whose files these are.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn new(files: ObjectFiles, object: &Object) -> Result<Self, String> {
        let ObjectFiles {
            object: elf, debug, ..
        } = files;
        let symbols = debug.as_ref().unwrap_or(&elf);
        let unreadable = |error| format!("its symbols cannot be read: {error}");
        let functions = symbols.functions().map_err(unreadable)?;
        if functions.is_empty() {
            return Err("it has no symbols of functions".into());
        }
        let kernel_base =
            match object.dso.kind {
                DsoKind::Kernel => {
                    let name = &object.symbol;
                    let found = symbols.symbol_address(name).map_err(unreadable)?;
                    Some(found.ok_or_else(|| {
                        format!("it has no symbol {}", String::from_utf8_lossy(name))
                    })?)
                }
                _ => None,
            };
        let stubs = elf.plt_entries();
        Ok(Code {
            elf,
            stubs,
            kernel_base,
            functions,
            instructions: HashMap::default(),
            kept: 0,
        })
    }

    /// Returns the address of a place in the object, as it is in its file.
    pub fn address(&self, place: Place) -> Option<u64> {
        let offset = place.offset();
        if let Some(base) = self.kernel_base {
            return Some(base.wrapping_add(offset));
        }
        let contains =
            |size: u64, start: u64| offset.checked_sub(start).is_some_and(|at| at < size);
        let segments = self.elf.segments();
        let code = segments.iter().filter(|segment| segment.is_executable);
        let mut all = code.chain(segments);
        let segment = all.find(|segment| contains(segment.file_size, segment.offset))?;
        Some(
            offset
                .wrapping_sub(segment.offset)
                .wrapping_add(segment.address),
        )
    }

    /// Returns the address from which llvm-profgen counts: the first page with code.
    pub fn base(&self) -> u64 {
        let mut segments = self.elf.segments().iter();
        let code = segments.find(|segment| segment.is_executable);
        code.map_or(0, |segment| segment.address & !(PAGE - 1))
    }

    /// Returns the number of the function that contains an address.
    pub fn function(&self, address: u64) -> Option<usize> {
        find(&self.functions, address)
    }

    /// Returns the first address of the function that contains an address, or of the entry of a
    /// procedure linkage table.
    pub fn function_or_stub(&self, address: u64) -> Option<u64> {
        let in_list = |list: &[Range<u64>]| Some(list.get(find(list, address)?)?.start);
        in_list(&self.functions).or_else(|| in_list(&self.stubs))
    }

    /// Returns whether an instruction starts at an address. In code that cannot be disassembled,
    /// one does everywhere.
    pub fn is_instruction(&mut self, address: u64) -> bool {
        let Some(number) = self.function(address) else {
            return false;
        };
        let instructions = self.instructions(number);
        instructions.is_none_or(|known| known.starts_at(address))
    }

    /// Returns whether code from `start` to `end` can run without a branch: no branch that is always
    /// taken is in between.
    pub fn is_fall_through(&mut self, start: u64, end: u64) -> bool {
        let (Some(first), Some(last)) = (self.function(start), self.function(end)) else {
            return false;
        };
        if start > end || last.saturating_sub(first) > MOST_TOUCHED {
            return false;
        }
        (first..=last).all(|number| {
            let known = self.instructions(number);
            known.is_none_or(|known| !known.leaves_between(start, end))
        })
    }

    fn instructions(&mut self, number: usize) -> Option<&Instructions> {
        if !self.instructions.contains_key(&number) {
            if self.kept >= MOST_KEPT {
                self.instructions.clear();
                self.kept = 0;
            }
            let range = self.functions.get(number)?;
            let code = self.code(range)?;
            let known = Instructions::of(&self.elf, &code, range.start)?;
            self.kept = self.kept.saturating_add(known.len());
            self.instructions.insert(number, known);
        }
        self.instructions.get(&number)
    }

    /// Returns the bytes of code at addresses, if they are in the file.
    fn code(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let size = range.end.checked_sub(range.start)?;
        let mut segments = self.elf.segments().iter();
        let segment = segments.find(|segment| {
            let at = range.start.checked_sub(segment.address);
            at.is_some_and(|at| segment.file_size.checked_sub(at) >= Some(size))
        })?;
        if size > MOST_CODE {
            return None;
        }
        let at = range.start.wrapping_sub(segment.address);
        self.elf
            .bytes_at(segment.offset.checked_add(at)?, size)
            .ok()
    }
}

/// Returns the number of the range that contains an address.
fn find(ranges: &[Range<u64>], address: u64) -> Option<usize> {
    let after = ranges.partition_point(|range| range.start <= address);
    let number = after.checked_sub(1)?;
    ranges.get(number)?.contains(&address).then_some(number)
}
