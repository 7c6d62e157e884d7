//! A section with call frame information: finding the entry of an address, and its row.

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry,
    RunTimeEndian, UnwindContext, UnwindSection, Vendor,
};

use crate::augmentation::{undeclare_data, with_absent_data};
use crate::row::{Row, RowOf};

/// The bytes of a section.
pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Maximum size in bytes of an entry and of the instructions that all entries share, so that one
/// address cannot cost much time. Entries of compilers have some hundred bytes.
const MOST_ENTRY: usize = 1 << 16;

/// Maximum number of entries of an index. The largest programs have some hundred thousand.
const MOST_ENTRIES: usize = 1 << 22;

/// The kind of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionKind {
    EhFrame,
    DebugFrame,
}

/// What all sections of an object have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SectionForm {
    pub is_big_endian: bool,
    /// Size of an address in bytes.
    pub address_size: u8,
    pub is_aarch64: bool,
}

impl SectionForm {
    pub fn endian(self) -> RunTimeEndian {
        match self.is_big_endian {
            true => RunTimeEndian::Big,
            false => RunTimeEndian::Little,
        }
    }

    fn vendor(self) -> Vendor {
        match self.is_aarch64 {
            true => Vendor::AArch64,
            false => Vendor::Default,
        }
    }
}

/// A section with call frame information, and how entries are found in it.
#[derive(Debug)]
pub(crate) struct FrameSection {
    kind: SectionKind,
    form: SectionForm,
    bytes: Vec<u8>,
    bases: BaseAddresses,
    address: u64,
    index: Index,
}

/// How entries are found.
#[derive(Debug)]
enum Index {
    /// `.eh_frame_hdr`: its address, and the sorted table in it.
    Header(u64, Vec<u8>),
    /// First address, the address after the last one, and the offset of each entry, by address.
    Scanned(Vec<(u64, u64, usize)>),
}

/// Addresses of sections that pointers in entries may be relative to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PointerBases {
    pub text: u64,
    pub got: u64,
}

impl FrameSection {
    /// Returns the section at `address` of the object, with its `.eh_frame_hdr`, if
    /// there is one: its address and content.
    pub fn new(
        kind: SectionKind,
        form: SectionForm,
        (address, bytes): (u64, Vec<u8>),
        header: Option<(u64, Vec<u8>)>,
        pointers: PointerBases,
    ) -> Self {
        let mut bases = BaseAddresses::default()
            .set_text(pointers.text)
            .set_got(pointers.got);
        if kind == SectionKind::EhFrame {
            bases = bases.set_eh_frame(address);
        }
        let mut section = FrameSection {
            kind,
            form,
            bytes,
            bases,
            address,
            index: Index::Scanned(Vec::new()),
        };
        if kind == SectionKind::EhFrame {
            for offset in with_absent_data(&section.eh_frame(), &section.bases) {
                undeclare_data(&mut section.bytes, offset);
            }
        }
        section.index = match header.filter(|(_, bytes)| has_table(bytes, form)) {
            Some((address, bytes)) => Index::Header(address, bytes),
            None => Index::Scanned(match kind {
                SectionKind::EhFrame => scan(&section.eh_frame(), &section.bases),
                SectionKind::DebugFrame => scan(&section.debug_frame(), &section.bases),
            }),
        };
        section
    }

    /// Returns the size in bytes.
    pub fn held(&self) -> usize {
        let index = match &self.index {
            Index::Header(_, bytes) => bytes.len(),
            Index::Scanned(list) => size_of_val(list.as_slice()),
        };
        self.bytes.len().saturating_add(index)
    }

    fn eh_frame(&self) -> EhFrame<Slice<'_>> {
        let mut section = EhFrame::new(&self.bytes, self.form.endian());
        section.set_address_size(self.form.address_size);
        section.set_vendor(self.form.vendor());
        section
    }

    fn debug_frame(&self) -> DebugFrame<Slice<'_>> {
        let mut section = DebugFrame::new(&self.bytes, self.form.endian());
        section.set_address_size(self.form.address_size);
        section.set_vendor(self.form.vendor());
        section
    }

    /// Returns the row for an address of the object; `None` if there is none, or it is damaged.
    pub fn row(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Row> {
        let offset = self.offset_of(address)?;
        match self.kind {
            SectionKind::EhFrame => self.row_in(&self.eh_frame(), offset, address, context),
            SectionKind::DebugFrame => self.row_in(&self.debug_frame(), offset, address, context),
        }
    }

    fn row_in<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &S,
        offset: usize,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Option<Row> {
        let entry = section
            .fde_from_offset(&self.bases, offset.into(), S::cie_from_offset)
            .ok()
            .filter(|entry| is_usable(entry, address))?;
        let row = entry
            .unwind_info_for_address(section, &self.bases, context, address)
            .ok()?;
        let of = RowOf {
            return_register: entry.cie().return_address_register(),
            is_signal: entry.is_signal_trampoline(),
        };
        Row::of(row, of, |expression| {
            let code = expression.get(section).ok()?;
            Some(code.0.slice().into())
        })
    }

    /// Returns the offset of the entry that may contain an address.
    fn offset_of(&self, address: u64) -> Option<usize> {
        match &self.index {
            Index::Scanned(list) => {
                let after = list.partition_point(|entry| entry.0 <= address);
                let (_, end, offset) = *list.get(after.checked_sub(1)?)?;
                (address < end).then_some(offset)
            }
            Index::Header(at, bytes) => {
                let offset = self.in_table(bytes, *at, address)?;
                usize::try_from(offset).ok()
            }
        }
    }

    /// Returns the first addresses of all entries.
    pub fn functions(&self) -> impl Iterator<Item = u64> {
        let (list, table) = match &self.index {
            Index::Scanned(list) => (list.as_slice(), None),
            Index::Header(at, bytes) => ([].as_slice(), Some((*at, bytes))),
        };
        let in_table = table.into_iter().flat_map(move |(at, bytes)| {
            let rows = bytes.get(HEADER..).unwrap_or_default().as_chunks::<8>().0;
            let count = self.count(bytes).unwrap_or(0);
            rows.iter()
                .take(count)
                .filter_map(move |row| self.number(at, row))
        });
        list.iter().map(|entry| entry.0).chain(in_table)
    }

    /// Returns a number in the table of `.eh_frame_hdr` at an address.
    fn number(&self, at: u64, bytes: &[u8]) -> Option<u64> {
        let bytes = *bytes.first_chunk::<4>()?;
        let value = match self.form.is_big_endian {
            true => i32::from_be_bytes(bytes),
            false => i32::from_le_bytes(bytes),
        };
        let value = at.wrapping_add_signed(value.into());
        Some(match self.form.address_size {
            4 => value & 0xffff_ffff,
            _ => value,
        })
    }

    /// Searches the table in `.eh_frame_hdr`: pairs of a first address and the address of its
    /// entry, both relative to the section (LSB Core, 10.6.2).
    fn in_table(&self, bytes: &[u8], at: u64, address: u64) -> Option<u64> {
        let rows = bytes.get(HEADER..)?.as_chunks::<8>().0;
        let number = |row: &[u8]| self.number(at, row);
        let count = self.count(bytes)?.min(rows.len());
        let rows = rows.get(..count)?;
        let after = rows.partition_point(|row| number(row).is_some_and(|start| start <= address));
        let row = rows.get(after.checked_sub(1)?)?;
        number(row.get(4..)?)?.checked_sub(self.address)
    }

    fn count(&self, bytes: &[u8]) -> Option<usize> {
        count_in(bytes, self.form)
    }
}

/// Size in bytes of the beginning of `.eh_frame_hdr`, before the table.
const HEADER: usize = 12;

/// Returns whether `.eh_frame_hdr` has a table in the form that all linkers write.
fn has_table(bytes: &[u8], form: SectionForm) -> bool {
    // The version, and the encodings of the section's address, of the number of entries
    // (DW_EH_PE_udata4), and of the table (DW_EH_PE_datarel | DW_EH_PE_sdata4).
    let is_usual = matches!(bytes, [1, pointer, 0x03, 0x3b, ..] if pointer & 0x07 == 0x03);
    let fits = |count: usize| {
        count > 0
            && count
                .checked_mul(8)
                .and_then(|size| size.checked_add(HEADER))
                .is_some_and(|size| size <= bytes.len())
    };
    is_usual && count_in(bytes, form).is_some_and(fits)
}

fn count_in(bytes: &[u8], form: SectionForm) -> Option<usize> {
    let bytes = *bytes.get(8..)?.first_chunk::<4>()?;
    let count = match form.is_big_endian {
        true => u32::from_be_bytes(bytes),
        false => u32::from_le_bytes(bytes),
    };
    usize::try_from(count).ok()
}

/// Returns whether an entry describes an address, and is small enough.
fn is_usable(entry: &FrameDescriptionEntry<Slice<'_>>, address: u64) -> bool {
    entry.entry_len() <= MOST_ENTRY
        && entry.cie().entry_len() <= MOST_ENTRY
        && entry.contains(address)
}

/// Returns the addresses and offsets of all entries of a section, by address.
fn scan<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
) -> Vec<(u64, u64, usize)> {
    let mut list = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let Ok(entry) = partial.parse(S::cie_from_offset) else {
            continue;
        };
        let (start, len) = (entry.initial_address(), entry.len());
        // The linker keeps entries of removed code, with the address 0.
        if start == 0 || len == 0 || list.len() >= MOST_ENTRIES {
            continue;
        }
        list.push((start, start.saturating_add(len), entry.offset()));
    }
    list.sort_unstable();
    list
}
