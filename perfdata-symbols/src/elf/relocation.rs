//! Relocations of files that are not linked, such as modules of a kernel: the debug information refers
//! to addresses in sections that are placed when the file is loaded.

use std::io;

use object::Endian as _;
use object::elf::{
    EM_AARCH64, EM_PPC64, EM_S390, EM_X86_64, R_390_32, R_390_64, R_390_NONE, R_AARCH64_ABS32,
    R_AARCH64_ABS64, R_AARCH64_NONE, R_PPC64_ADDR32, R_PPC64_ADDR64, R_PPC64_NONE, R_X86_64_32,
    R_X86_64_32S, R_X86_64_64, R_X86_64_NONE,
};

use super::Elf;

/// Size of an entry with an addend in bytes, and of a symbol.
const RELA: usize = 24;

/// Each section that is loaded is placed at a multiple of this address, so that none overlap.
const DISTANCE_SHIFT: u32 = 32;

impl Elf {
    /// Returns the address at which a section of a file that is not linked is placed here.
    pub(crate) fn placed(&self, name: &[u8]) -> Option<u64> {
        let number = self
            .sections
            .iter()
            .position(|section| *section.name == *name)?;
        Some(self.base(number))
    }

    fn base(&self, number: usize) -> u64 {
        match self.sections.get(number) {
            Some(section) if section.is_allocated => {
                (number as u64).saturating_add(1) << DISTANCE_SHIFT
            }
            _ => 0,
        }
    }

    /// Returns the content of a section as [`unpacked_content`](Self::unpacked_content), with its
    /// relocations if the file is not linked.
    ///
    /// # Errors
    /// Those of [`unpacked_content`](Self::unpacked_content), and relocations of other types than
    /// addresses.
    pub(crate) fn relocated_content(&self, name: &[u8], most: u64) -> io::Result<Vec<u8>> {
        let mut content = self.unpacked_content(name, most)?;
        if !self.is_relocatable || content.is_empty() {
            return Ok(content);
        }
        let Some(number) = self
            .sections
            .iter()
            .position(|section| *section.name == *name)
        else {
            return Ok(content);
        };
        let is_for = |info: usize| info == number;
        for section in self
            .sections
            .iter()
            .filter(|section| section.is_rela && is_for(section.info))
        {
            let entries = self.content(section, most)?;
            let symbols = match self.sections.get(section.link) {
                Some(table) => self.content(table, most)?,
                None => Vec::new(),
            };
            for entry in entries.chunks_exact(RELA) {
                self.relocate(entry, &symbols, &mut content)
                    .ok_or_else(|| io::Error::other("relocations of another type"))?;
            }
        }
        Ok(content)
    }

    /// Applies a relocation to the content of its section.
    fn relocate(&self, entry: &[u8], symbols: &[u8], content: &mut [u8]) -> Option<()> {
        if !self.is_64 {
            return None;
        }
        let endian = self.endian;
        let number = |at: usize| Some(endian.read_u64(*entry.get(at..)?.first_chunk()?));
        let (offset, info, addend) = (number(0)?, number(8)?, number(16)?);
        let kind = u32::try_from(info & 0xffff_ffff).ok()?;
        let size = self.relocated_size(kind)?;
        if size == 0 {
            return Some(());
        }
        let at = usize::try_from(info >> 32).ok()?.checked_mul(RELA)?;
        let symbol = self
            .form()
            .symbols(symbols.get(at..at.checked_add(RELA)?)?)
            .next()?;
        let base = self.base(usize::from(symbol.section));
        let value = base.wrapping_add(symbol.value).wrapping_add(addend);
        let offset = usize::try_from(offset).ok()?;
        let place = content.get_mut(offset..offset.checked_add(size)?)?;
        match size {
            8 => place.copy_from_slice(&endian.write_u64(value)),
            _ => place.copy_from_slice(&endian.write_u32(u32::try_from(value & 0xffff_ffff).ok()?)),
        }
        Some(())
    }

    /// Returns the size in bytes of an address that a relocation sets, 0 if it sets nothing; `None` for
    /// other types.
    fn relocated_size(&self, kind: u32) -> Option<usize> {
        let (nothing, four, eight): (u32, [u32; 2], u32) = match self.machine {
            machine if machine == EM_X86_64.0 => (
                R_X86_64_NONE.0,
                [R_X86_64_32.0, R_X86_64_32S.0],
                R_X86_64_64.0,
            ),
            machine if machine == EM_AARCH64.0 => {
                (R_AARCH64_NONE.0, [R_AARCH64_ABS32.0; 2], R_AARCH64_ABS64.0)
            }
            machine if machine == EM_S390.0 => (R_390_NONE.0, [R_390_32.0; 2], R_390_64.0),
            machine if machine == EM_PPC64.0 => {
                (R_PPC64_NONE.0, [R_PPC64_ADDR32.0; 2], R_PPC64_ADDR64.0)
            }
            _ => return None,
        };
        match kind {
            kind if kind == nothing => Some(0),
            kind if four.contains(&kind) => Some(4),
            kind if kind == eight => Some(8),
            _ => None,
        }
    }
}
