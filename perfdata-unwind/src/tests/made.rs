//! ELF files and call frame information, written byte by byte.

use crate::{Machine, Object};

/// A machine's form of numbers.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub machine: u16,
    pub is_big_endian: bool,
    pub is_64: bool,
}

pub const X86_64: Form = Form {
    machine: 62,
    is_big_endian: false,
    is_64: true,
};

impl Form {
    pub fn number(self, value: u64, size: usize) -> Vec<u8> {
        match self.is_big_endian {
            true => value.to_be_bytes()[8 - size..].to_vec(),
            false => value.to_le_bytes()[..size].to_vec(),
        }
    }

    pub fn word(self, value: u64) -> Vec<u8> {
        self.number(value, if self.is_64 { 8 } else { 4 })
    }

    /// Returns an ELF file with a segment of 0x4000 bytes at 0 that contains everything, and
    /// sections.
    pub fn elf(self, sections: &[(&str, u64, &[u8])]) -> Vec<u8> {
        let (header, segment, section) = if self.is_64 {
            (64, 56, 64)
        } else {
            (52, 32, 40)
        };
        let mut names = vec![0];
        let mut body = Vec::new();
        let mut table: Vec<[u64; 5]> = vec![[0; 5]];
        let start = header + segment;
        for (name, address, content) in sections {
            let offset = start + body.len();
            // SHT_ARM_EXIDX, or SHT_PROGBITS.
            let kind = if *name == ".ARM.exidx" {
                0x7000_0001
            } else {
                1
            };
            table.push([
                names.len() as u64,
                kind,
                *address,
                offset as u64,
                content.len() as u64,
            ]);
            names.extend(name.bytes().chain([0]));
            body.extend_from_slice(content);
        }
        let strings = start + body.len();
        table.push([
            names.len() as u64,
            3,
            0,
            strings as u64,
            names.len() as u64 + 10,
        ]);
        names.extend(b".shstrtab\0");
        body.extend(&names);
        let sections_at = start + body.len();
        let mut out = b"\x7fELF".to_vec();
        out.extend([
            1 + u8::from(self.is_64),
            1 + u8::from(self.is_big_endian),
            1,
        ]);
        out.resize(16, 0);
        out.extend(self.number(3, 2));
        out.extend(self.number(self.machine.into(), 2));
        out.extend(self.number(1, 4));
        out.extend(self.word(0));
        out.extend(self.word(header as u64));
        out.extend(self.word(sections_at as u64));
        out.extend(self.number(0, 4));
        for value in [header, segment, 1, section, table.len(), table.len() - 1] {
            out.extend(self.number(value as u64, 2));
        }
        // PT_LOAD, readable and executable.
        let size = 0x4000;
        out.extend(self.number(1, 4));
        if self.is_64 {
            out.extend(self.number(5, 4));
            [0, 0, 0, size, size, 0x1000]
                .into_iter()
                .for_each(|value| out.extend(self.word(value)));
        } else {
            [0, 0, 0, size, size, 5, 0x1000]
                .into_iter()
                .for_each(|value| out.extend(self.word(value)));
        }
        out.extend(body);
        for [name, kind, address, offset, size] in table {
            out.extend(self.number(name, 4));
            out.extend(self.number(kind, 4));
            out.extend(self.word(2));
            [address, offset, size]
                .into_iter()
                .for_each(|value| out.extend(self.word(value)));
            out.extend(self.number(0, 4));
            out.extend(self.number(0, 4));
            out.extend(self.word(1));
            out.extend(self.word(0));
        }
        out.resize(out.len().max(0x4000), 0x90);
        out
    }

    /// Returns `.debug_frame`: for each function its address, size and instructions, after those
    /// that all have. The register for the return address and the data alignment are those of the
    /// machine.
    pub fn debug_frame(
        self,
        machine: Machine,
        common: &[u8],
        functions: &[(u64, u64, Vec<u8>)],
    ) -> Vec<u8> {
        let entry = |out: &mut Vec<u8>, mut content: Vec<u8>| {
            while content.len() % 8 != 4 {
                content.push(0);
            }
            out.extend(self.number(content.len() as u64, 4));
            out.extend(content);
        };
        let mut out = Vec::new();
        let mut content = self.number(u64::from(u32::MAX), 4);
        // Version 1, no augmentation, code alignment 1, data alignment -8 or -4.
        content.extend([
            1,
            0,
            1,
            if self.is_64 { 0x78 } else { 0x7c },
            return_register(machine),
        ]);
        content.extend(common);
        entry(&mut out, content);
        for (start, size, instructions) in functions {
            let mut content = self.number(0, 4);
            content.extend(self.word(*start));
            content.extend(self.word(*size));
            content.extend(instructions);
            entry(&mut out, content);
        }
        out
    }

    pub fn object(
        self,
        machine: Machine,
        common: &[u8],
        functions: &[(u64, u64, Vec<u8>)],
    ) -> Object {
        let frames = self.debug_frame(machine, common, functions);
        super::object(self.elf(&[(".debug_frame", 0, &frames)]))
    }
}

/// Returns the DWARF number of the register for the return address.
pub fn return_register(machine: Machine) -> u8 {
    match machine {
        Machine::X86_64 => 16,
        Machine::I386 => 8,
        Machine::Aarch64 => 30,
        Machine::Arm | Machine::S390x => 14,
        Machine::Riscv64 => 1,
        Machine::Ppc64 => 65,
    }
}

/// x86-64: DW_CFA_def_cfa rsp 8, DW_CFA_offset RA at CFA-8.
pub const COMMON: [u8; 5] = [0x0c, 7, 8, 0x90, 1];

/// Returns `.eh_frame` and its table. The augmentation is `z`, `R` for relative addresses, and
/// perhaps `S` for the return of a signal handler, or `L` for pointers that are always absent.
pub fn eh_frame(
    augmentation: &str,
    functions: &[(u64, u64, Vec<u8>)],
    address: u64,
) -> (Vec<u8>, Vec<u8>) {
    let mut out = Vec::new();
    let mut table = Vec::new();
    let entry = |out: &mut Vec<u8>, mut content: Vec<u8>| {
        while content.len() % 8 != 4 {
            content.push(0);
        }
        out.extend((content.len() as u32).to_le_bytes());
        out.extend(content);
    };
    let mut content = vec![0, 0, 0, 0, 1];
    content.extend(augmentation.bytes().chain([0]));
    let data: Vec<u8> = augmentation
        .bytes()
        .filter_map(|letter| match letter {
            b'R' => Some(0x1b),
            b'L' => Some(0xff),
            _ => None,
        })
        .collect();
    content.extend([1, 0x78, 16, data.len() as u8]);
    content.extend(data);
    content.extend(COMMON);
    entry(&mut out, content);
    for (start, size, instructions) in functions {
        table.push((*start, address + out.len() as u64));
        let here = address + out.len() as u64 + 8;
        let mut content = (out.len() as u32 + 4).to_le_bytes().to_vec();
        content.extend((start.wrapping_sub(here) as u32).to_le_bytes());
        content.extend((*size as u32).to_le_bytes());
        content.push(0);
        content.extend(instructions);
        entry(&mut out, content);
    }
    // The table follows the section.
    let at = address + out.len() as u64;
    let mut header = vec![1, 0x1b, 3, 0x3b, 0, 0, 0, 0];
    header.extend((table.len() as u32).to_le_bytes());
    for (start, entry) in table {
        header.extend((start.wrapping_sub(at) as u32).to_le_bytes());
        header.extend((entry.wrapping_sub(at) as u32).to_le_bytes());
    }
    (out, header)
}
