//! Forms of sections that few compilers write.

use super::made::{COMMON, X86_64, eh_frame};
use super::{CODE, SP, at, object, unwind};
use crate::{End, Machine, Object};

/// Unwinds a function with the caller's address at the CFA, rsp + 24, minus 8.
fn assert_unwound(object: Object) {
    let registers = [(8, at(4)), (7, SP)];
    let (frames, end) = unwind(
        object,
        X86_64,
        Machine::X86_64,
        &registers,
        &[1, 2, 0x10001],
    );
    assert_eq!((frames, end), (vec![at(4), 0x10000], End::Anonymous));
}

const CFA_24: [u8; 2] = [0x0e, 24];

/// V8 declares pointers to language-specific data, and says that they are always absent.
#[test]
fn absent_data_is_no_damage() {
    for augmentation in ["zR", "zLR", "zRL", "zLRS"] {
        for has_table in [false, true] {
            let functions = [(CODE, 0x10, CFA_24.to_vec())];
            let (frames, header) = eh_frame(augmentation, &functions, 0x3000);
            let address = 0x3000 + frames.len() as u64;
            let mut sections = vec![(".eh_frame", 0x3000, frames.as_slice())];
            if has_table {
                sections.push((".eh_frame_hdr", address, &header));
            }
            if augmentation != "zLRS" {
                assert_unwound(object(X86_64.elf(&sections)));
                continue;
            }
            let object = object(X86_64.elf(&sections));
            let registers = [(8, at(4)), (7, SP)];
            let words = [1, 2, 0x10001];
            let (frames, _) = unwind(object, X86_64, Machine::X86_64, &registers, &words);
            assert_eq!(frames, [at(4), 0x10001], "the caller was interrupted");
        }
    }
}

/// Go compresses `.debug_frame`, and writes no `.eh_frame`.
#[test]
fn sections_are_decompressed() {
    let functions = [(CODE, 0x10, CFA_24.to_vec())];
    let frames = X86_64.debug_frame(Machine::X86_64, &COMMON, &functions);
    // A header (ELFCOMPRESS_ZLIB, size, alignment), and one block of zlib that is stored.
    let size = frames.len() as u16;
    let mut packed = [1, u64::from(size), 8].map(u64::to_le_bytes).concat();
    packed.extend([0x78, 0x01, 1]);
    packed.extend(size.to_le_bytes().into_iter().chain((!size).to_le_bytes()));
    packed.extend(&frames);
    let (low, high) = frames.iter().fold((1, 0), |(low, high): (u32, u32), byte| {
        let low = (low + u32::from(*byte)) % 65521;
        (low, (high + low) % 65521)
    });
    packed.extend((high << 16 | low).to_be_bytes());
    let mut elf = X86_64.elf(&[(".debug_frame", 0, &packed)]);
    // SHF_COMPRESSED in the first section header after the empty one.
    let sections = u64::from_le_bytes(elf[40..48].try_into().expect("8 bytes")) as usize;
    elf[sections + 64 + 8..][..8].copy_from_slice(&0x800_u64.to_le_bytes());
    assert_unwound(object(elf));
}
