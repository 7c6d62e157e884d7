//! One object: its segments, and its call frame information.

use gimli::UnwindContext;
use perfdata_symbols::{Elf, ObjectFiles, Segment};

use crate::exidx::Exidx;
use crate::row::Row;
use crate::section::{FrameSection, PointerBases, SectionForm, SectionKind};

/// The section of a debug file that may be needed.
pub(crate) const DEBUG_FRAME: &[u8] = b".debug_frame";

/// Maximum size of a section in bytes. The largest real ones have some ten megabytes.
const MOST_SECTION: u64 = 1 << 28;

/// `EM_AARCH64`
const AARCH64: u16 = 183;

/// `EM_ARM`
const ARM: u16 = 40;

/// An object with call frame information.
#[derive(Debug)]
pub struct Object {
    elf: Elf,
    form: SectionForm,
    sections: Vec<FrameSection>,
    exidx: Option<Exidx>,
}

impl Object {
    /// Reads the call frame information of an object: `.eh_frame`, then `.debug_frame` of the
    /// object or of its debug file, then that of its mini debug information (`.gnu_debugdata`), and
    /// for 32-bit Arm `.ARM.exidx`.
    ///
    /// # Errors
    /// The reason why a section cannot be read.
    pub fn new(files: ObjectFiles) -> Result<Self, String> {
        let ObjectFiles { object, debug, .. } = files;
        let form = SectionForm {
            is_big_endian: object.is_big_endian(),
            address_size: if object.is_64() { 8 } else { 4 },
            is_aarch64: object.machine() == AARCH64,
        };
        let content = |elf: &Elf, name: &[u8]| {
            let content = elf.section_content(name, MOST_SECTION);
            content
                .map(|content| content.filter(|(_, bytes)| !bytes.is_empty()))
                .map_err(|error| format!("{}: {error}", String::from_utf8_lossy(name)))
        };
        let pointers = PointerBases {
            text: object.section_address(b".text").unwrap_or(0),
            got: object.section_address(b".got").unwrap_or(0),
        };
        let mut sections = Vec::new();
        if let Some(section) = content(&object, b".eh_frame")? {
            let header = content(&object, b".eh_frame_hdr")?;
            sections.push(FrameSection::new(
                SectionKind::EhFrame,
                form,
                section,
                header,
                pointers,
            ));
        }
        let mini = object.mini_debug_info();
        for elf in [Some(&object), debug.as_ref(), mini.as_ref()]
            .into_iter()
            .flatten()
        {
            // Its form must be that of the object.
            if elf.is_big_endian() == object.is_big_endian()
                && elf.is_64() == object.is_64()
                && let Some(section) = content(elf, DEBUG_FRAME)?
            {
                sections.push(FrameSection::new(
                    SectionKind::DebugFrame,
                    form,
                    section,
                    None,
                    pointers,
                ));
            }
        }
        let exidx = match content(&object, b".ARM.exidx")? {
            Some(index) if object.machine() == ARM => {
                let table = content(&object, b".ARM.extab")?;
                Some(Exidx::new(form.is_big_endian, index, table))
            }
            _ => None,
        };
        Ok(Object {
            elf: object,
            form,
            sections,
            exidx,
        })
    }

    /// Returns whether there is any call frame information.
    pub fn has_frames(&self) -> bool {
        !self.sections.is_empty() || self.exidx.is_some()
    }

    /// Returns the approximate memory use in bytes.
    pub fn held(&self) -> usize {
        let sections = self.sections.iter().map(FrameSection::held);
        let sections = sections.chain(self.exidx.as_ref().map(Exidx::held));
        sections.fold(size_of::<Self>(), usize::saturating_add)
    }

    pub(crate) fn form(&self) -> SectionForm {
        self.form
    }

    /// Returns the address in the object of a byte of its file.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let (segment, at) = self.segment_of(offset)?;
        segment.address.checked_add(at)
    }

    /// Returns the segment with a byte of the file, and the offset in it.
    fn segment_of(&self, offset: u64) -> Option<(&Segment, u64)> {
        self.elf.segments().iter().find_map(|segment| {
            let at = offset.checked_sub(segment.offset)?;
            (at < segment.file_size).then_some((segment, at))
        })
    }

    /// Returns bytes of the file that processes cannot change, as they are in memory; `None` if
    /// they are not of this kind.
    pub(crate) fn constant(&self, offset: u64, size: u8) -> Option<Vec<u8>> {
        let (segment, at) = self.segment_of(offset)?;
        let end = at.checked_add(size.into())?;
        if segment.is_writable || end > segment.file_size {
            return None;
        }
        self.elf.bytes_at(offset, size.into()).ok()
    }

    /// Returns the first addresses of functions with call frame information, for tests.
    pub(crate) fn functions(&self) -> impl Iterator<Item = u64> {
        let in_tables = self.exidx.iter().flat_map(Exidx::functions);
        let sections = self.sections.iter();
        sections.flat_map(FrameSection::functions).chain(in_tables)
    }

    /// Returns the row for an address of the object.
    pub(crate) fn row(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Row> {
        let mut sections = self.sections.iter();
        sections
            .find_map(|section| section.row(address, context))
            .or_else(|| self.exidx.as_ref()?.row(address))
    }
}
