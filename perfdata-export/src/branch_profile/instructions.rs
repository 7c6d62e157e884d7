//! The instructions of a function: where each starts, and which of them always branch.

use perfdata_intel_pt::{Instruction, InstructionKind};
use perfdata_symbols::Elf;

/// Maximum size of a function in bytes: what [`Elf::bytes_at`] returns.
pub(super) const MOST_CODE: u64 = 1 << 20;

/// Machines of elf.h.
const EM_386: u16 = 3;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

/// The instructions of a function.
#[derive(Debug)]
pub(super) struct Instructions {
    /// Their addresses, in order.
    starts: Vec<u64>,
    /// The addresses of direct jumps and of returns.
    leaving: Vec<u64>,
}

impl Instructions {
    /// Returns the instructions in `code`, which is at `address` in an object; `None` if it is code
    /// of a machine that is not known.
    pub fn of(elf: &Elf, code: &[u8], address: u64) -> Option<Self> {
        match elf.machine() {
            EM_X86_64 => Some(Self::x86(64, code, address)),
            EM_386 => Some(Self::x86(32, code, address)),
            EM_AARCH64 => Some(Self::aarch64(code, address)),
            _ => None,
        }
    }

    fn x86(bits: u8, code: &[u8], address: u64) -> Self {
        let (mut starts, mut leaving) = (Vec::new(), Vec::new());
        for (offset, found) in Instruction::all(bits, code) {
            let at = address.wrapping_add(offset as u64);
            starts.push(at);
            if matches!(
                found.map(|found| found.kind),
                Some(
                    InstructionKind::Jump
                        | InstructionKind::Return
                        | InstructionKind::InterruptReturn
                        | InstructionKind::SystemReturn
                )
            ) {
                leaving.push(at);
            }
        }
        Instructions { starts, leaving }
    }

    /// Instructions have 4 bytes and are little-endian in files of either byte order.
    fn aarch64(code: &[u8], address: u64) -> Self {
        let words = code.as_chunks().0.iter();
        let words = words.map(|bytes| u32::from_le_bytes(*bytes));
        let (mut starts, mut leaving) = (Vec::new(), Vec::new());
        let mut at = address;
        for word in words {
            starts.push(at);
            let is_b = word & 0xfc00_0000 == 0x1400_0000;
            let is_ret = word & 0xffff_fc1f == 0xd65f_0000;
            let is_authenticated_ret = word & 0xffff_fbff == 0xd65f_0bff;
            if is_b || is_ret || is_authenticated_ret {
                leaving.push(at);
            }
            at = at.wrapping_add(4);
        }
        Instructions { starts, leaving }
    }

    /// Returns the number of instructions.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns whether an instruction starts at an address.
    pub fn starts_at(&self, address: u64) -> bool {
        self.starts.binary_search(&address).is_ok()
    }

    /// Returns whether a branch that is always taken is at or after `start` and before `end`.
    pub fn leaves_between(&self, start: u64, end: u64) -> bool {
        let after = self.leaving.partition_point(|&at| at < start);
        self.leaving.get(after).is_some_and(|&at| at < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_and_returns_leave() {
        // xor eax, eax; je +0; jmp rax; jmp +0; ret
        let code = [0x31, 0xc0, 0x74, 0, 0xff, 0xe0, 0xeb, 0, 0xc3];
        let known = Instructions::x86(64, &code, 0x1000);
        assert_eq!(known.starts, [0x1000, 0x1002, 0x1004, 0x1006, 0x1008]);
        assert_eq!(known.leaving, [0x1006, 0x1008]);
        assert!(!known.leaves_between(0x1000, 0x1006) && known.leaves_between(0x1000, 0x1007));
        assert!(known.starts_at(0x1004) && !known.starts_at(0x1005));
        // nop; b .; br x1; ret; retaa
        let words = [
            0xd503_201f_u32,
            0x1400_0000,
            0xd61f_0020,
            0xd65f_03c0,
            0xd65f_0bff,
        ];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let known = Instructions::aarch64(&code, 0x1000);
        assert_eq!(known.leaving, [0x1004, 0x100c, 0x1010]);
    }
}
