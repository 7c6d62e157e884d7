//! Small ELF files with call frame information, for x86-64.

/// Appends an entry of call frame information after its size, filled up to a multiple of 8 bytes.
fn entry(out: &mut Vec<u8>, mut content: Vec<u8>) {
    while content.len() % 8 != 4 {
        content.push(0);
    }
    out.extend((content.len() as u32).to_le_bytes());
    out.extend(content);
}

/// Returns `.debug_frame` with functions of 16 bytes from 0x1000 on, each with these instructions,
/// after those that all have.
fn debug_frame(functions: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    // Version 1, no augmentation, alignments 1 and -8, return address in column 16; the CFA is
    // rsp + 8, and the return address is below.
    let common = [1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];
    entry(&mut out, [[0xff; 4].as_slice(), &common].concat());
    for (number, instructions) in functions.iter().enumerate() {
        let start = 0x1000 + 16 * number as u64;
        let head = [&[0; 4][..], &start.to_le_bytes(), &16_u64.to_le_bytes()];
        entry(&mut out, [&head.concat(), *instructions].concat());
    }
    out
}

/// Returns `.eh_frame` at an address with one function of a signal handler's return, and its
/// `.eh_frame_hdr` behind it.
fn eh_frame(address: u64) -> (Vec<u8>, Vec<u8>) {
    let mut out = Vec::new();
    let common = b"\0\0\0\0\x01zRS\0\x01\x78\x10\x01\x1b\x0c\x07\x20\x90\x02";
    entry(&mut out, common.to_vec());
    let at = out.len() as u32;
    let start = (0x1800 - (address as i64 + i64::from(at) + 8)) as i32;
    let head = [&(at + 4).to_le_bytes()[..], &start.to_le_bytes()];
    entry(&mut out, [&head.concat()[..], &[16, 0, 0, 0, 0]].concat());
    let behind = address as i32 + out.len() as i32;
    let mut header = b"\x01\x1b\x03\x3b\0\0\0\0\x01\0\0\0".to_vec();
    header.extend((0x1800 - behind).to_le_bytes());
    header.extend((address as i32 + at as i32 - behind).to_le_bytes());
    (out, header)
}

/// Returns an ELF file whose functions have rules of all kinds.
pub fn object() -> Vec<u8> {
    let frames = debug_frame(&[
        // A saved register, the CFA by another register, an undefined return address.
        &[0x41, 0x0e, 24, 0x83, 2],
        &[0x0c, 3, 16],
        &[0x07, 16],
        // The CFA and a register by expressions, a register in another one.
        &[0x0f, 3, 0x77, 16, 0x06, 0x10, 3, 2, 0x77, 16, 0x09, 6, 12],
        &[0x16, 16, 3, 0x0a, 0x10, 0x10, 0x14, 6, 1],
        // An expression without end, remembered and restored states.
        &[0x0f, 3, 0x2f, 0xfd, 0xff],
        &[0x0a, 0x0e, 32, 0x44, 0x0b],
    ]);
    let (eh_frame, header) = eh_frame(0x2000);
    let sections: [(&str, u64, &[u8]); 3] = [
        (".eh_frame", 0x2000, &eh_frame),
        (".eh_frame_hdr", 0x2000 + eh_frame.len() as u64, &header),
        (".debug_frame", 0, &frames),
    ];
    let mut body = Vec::new();
    let mut names = vec![0];
    let mut table = vec![0; 64];
    let mut add = |body: &mut Vec<u8>, name: &str, kind: u32, address: u64, content: &[u8]| {
        let numbers = [
            2,
            address,
            120 + body.len() as u64,
            content.len() as u64,
            0,
            1,
            0,
        ];
        table.extend((names.len() as u32).to_le_bytes());
        table.extend(kind.to_le_bytes());
        table.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        names.extend(name.bytes().chain([0]));
        body.extend(content);
        names.clone()
    };
    for (name, address, content) in sections {
        add(&mut body, name, 1, address, content);
    }
    let strings = add(&mut Vec::new(), ".shstrtab", 3, 0, b"");
    let at = 120 + body.len() as u64;
    let last = table.len() - 64;
    table[last + 24..last + 32].copy_from_slice(&at.to_le_bytes());
    table[last + 32..last + 40].copy_from_slice(&(strings.len() as u64).to_le_bytes());
    body.extend(&strings);
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    let table_at = 120 + body.len() as u64;
    [0, 64, table_at]
        .into_iter()
        .for_each(|number: u64| out.extend(number.to_le_bytes()));
    out.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 5, 0, 4, 0]);
    // One readable and executable segment with the offsets of the addresses.
    out.extend(b"\x01\0\0\0\x05\0\0\0");
    [0, 0, 0, 0x4000, 0x4000, 0x1000]
        .into_iter()
        .for_each(|number: u64| out.extend(number.to_le_bytes()));
    out.extend(body);
    out.extend(table);
    out
}

/// The first byte of the code of [`named_object`].
const CODE: u64 = 0x1000;

/// Returns an ELF file with this build ID, whose 256 KiB of code are one function.
pub fn named_object(id: &[u8], function: &str) -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    out.resize(CODE as usize, 0);
    // Bytes that cannot be compressed much.
    let mut state = 1_u32;
    out.extend((0..1 << 18).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    }));
    let size = out.len() as u64 - CODE;
    let note = [
        &4_u32.to_le_bytes()[..],
        &(id.len() as u32).to_le_bytes(),
        &3_u32.to_le_bytes(),
        b"GNU\0",
        id,
    ];
    let mut symbols = vec![0; 24];
    symbols.extend(b"\x01\0\0\0\x12\0\x01\0");
    symbols.extend(CODE.to_le_bytes());
    symbols.extend(size.to_le_bytes());
    let names = b"\0.text\0.note.gnu.build-id\0.symtab\0.strtab\0.shstrtab\0";
    let mut table = vec![0; 64];
    let mut section = |numbers: [u64; 10]| {
        table.extend((numbers[0] as u32).to_le_bytes());
        table.extend((numbers[1] as u32).to_le_bytes());
        for number in &numbers[2..6] {
            table.extend(number.to_le_bytes());
        }
        table.extend((numbers[6] as u32).to_le_bytes());
        table.extend((numbers[7] as u32).to_le_bytes());
        for number in &numbers[8..] {
            table.extend(number.to_le_bytes());
        }
    };
    // Name, type, flags, address, offset, size, link, info, alignment, size of an entry.
    section([1, 1, 6, CODE, CODE, size, 0, 0, 16, 0]);
    let mut add = |numbers: [u64; 8], content: &[u8]| {
        let [name, kind, flags, link, info, alignment, entry, _] = numbers;
        let at = out.len() as u64;
        out.extend(content);
        let size = content.len() as u64;
        section([name, kind, flags, 0, at, size, link, info, alignment, entry]);
    };
    add([7, 7, 2, 0, 0, 4, 0, 0], &note.concat());
    add([26, 2, 0, 4, 1, 8, 24, 0], &symbols);
    add(
        [34, 3, 0, 0, 0, 1, 0, 0],
        &[b"\0", function.as_bytes(), b"\0"].concat(),
    );
    add([42, 3, 0, 0, 0, 1, 0, 0], names);
    let table_at = out.len() as u64;
    out.extend(table);
    let mut head = Vec::new();
    [0, 64, table_at]
        .into_iter()
        .for_each(|number: u64| head.extend(number.to_le_bytes()));
    head.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 6, 0, 5, 0]);
    head.extend(b"\x01\0\0\0\x05\0\0\0");
    [0, 0, 0, CODE + size, CODE + size, 0x1000]
        .into_iter()
        .for_each(|number: u64| head.extend(number.to_le_bytes()));
    out[24..24 + head.len()].copy_from_slice(&head);
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_functions_are_found() {
        // Each with seven machines, and most with a caller.
        assert!(perfdata_unwind::unwind_everything(&super::object()) > 8 * 7);
    }
}
