//! Augmentations of `.eh_frame` that declare something, and then do not contain it.

use gimli::constants::DW_EH_PE_omit;
use gimli::{BaseAddresses, CieOrFde, EhFrame, UnwindSection};

use crate::section::Slice;

/// Offset of the augmentation in a common information entry: after length, ID and version.
const AUGMENTATION: usize = 9;

/// Returns the offsets of the common information entries that declare pointers to language-specific
/// data (`L`) with the encoding `DW_EH_PE_omit`: their frame description entries contain none. V8
/// writes these (src/diagnostics/eh-frame.cc). libgcc and libdw know them, and `gimli` refuses all
/// of their frame description entries.
pub(crate) fn with_absent_data(section: &EhFrame<Slice<'_>>, bases: &BaseAddresses) -> Vec<usize> {
    let mut found = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Cie(common) = entry
            && common.lsda_encoding() == Some(DW_EH_PE_omit)
        {
            found.push(common.offset());
        }
    }
    found
}

/// Changes the common information entry at `offset` of `section` so that it declares no pointer to
/// language-specific data. Its size does not change: `L` becomes a second `R`, with the encoding
/// that applies anyway. Entries of another form stay as they are.
pub(crate) fn undeclare_data(section: &mut [u8], offset: usize) {
    if let Some(entry) = section.get_mut(offset..) {
        // An entry that is too short for its own declaration was refused before.
        let _ = change(entry);
    }
}

fn change(entry: &mut [u8]) -> Option<()> {
    // The 64-bit form has longer lengths.
    if entry.first_chunk() == Some(&[0xff; 4]) {
        return None;
    }
    let version = *entry.get(AUGMENTATION.checked_sub(1)?)?;
    let letters = entry.get(AUGMENTATION..)?;
    let letters = letters.get(..letters.iter().position(|&byte| byte == 0)?)?;
    // A personality routine is a pointer of any size.
    if !letters.starts_with(b"z") || letters.contains(&b'P') {
        return None;
    }
    let place = letters.iter().position(|&letter| letter == b'L')?;
    // Only these have a byte of data, in the order of the letters.
    let has_data = |letter: &&u8| matches!(letter, b'L' | b'R');
    let before = letters.get(..place)?.iter().filter(has_data).count();
    let other = letters
        .iter()
        .filter(has_data)
        .position(|&letter| letter == b'R');
    let place = AUGMENTATION.checked_add(place)?;
    // After the letters: code alignment, data alignment, return address register, size of the data.
    let mut at = AUGMENTATION.checked_add(letters.len())?.checked_add(1)?;
    for number in 0..4 {
        let is_byte = number == 2 && version == 1;
        let rest = entry.get(at..)?;
        let len = match is_byte {
            true => 0,
            false => rest.iter().position(|&byte| byte & 0x80 == 0)?,
        };
        at = at.checked_add(len)?.checked_add(1)?;
    }
    // DW_EH_PE_absptr applies without `R`.
    let encoding = match other {
        Some(other) => *entry.get(at.checked_add(other)?)?,
        None => 0,
    };
    *entry.get_mut(at.checked_add(before)?)? = encoding;
    *entry.get_mut(place)? = b'R';
    Some(())
}
