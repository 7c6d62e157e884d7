//! Instructions of x86: their sizes, and where execution continues.

use iced_x86::{Decoder, DecoderError, DecoderOptions, FlowControl, Mnemonic};

/// Maximum size of an instruction in bytes.
pub const MAX_INSTRUCTION: usize = 15;

/// Where execution continues after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstructionKind {
    /// At the next instruction.
    Sequential,
    /// There or at a fixed address.
    ConditionalJump,
    /// At a fixed address.
    Jump,
    /// At an address in a register or in memory.
    IndirectJump,
    /// In a function at a fixed address.
    Call,
    /// In a function at an address in a register or in memory.
    IndirectCall,
    /// In the caller.
    Return,
    /// In the handler of an interrupt: INT, INT3, INTO.
    Interrupt,
    /// In the kernel: SYSCALL, SYSENTER.
    SystemCall,
    /// In user space: SYSRET, SYSEXIT.
    SystemReturn,
    /// In the interrupted code: IRET and the like.
    InterruptReturn,
    /// In a virtual machine, or in its monitor.
    VirtualMachine,
}

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Size in bytes.
    pub size: usize,
    /// Where execution continues.
    pub kind: InstructionKind,
    /// Distance from the end of the instruction to the fixed target; 0 if it has none.
    pub displacement: i64,
}

impl Instruction {
    /// Decodes the instruction at the start of `code`, which is code of 16, 32 or 64 `bits`; `None`
    /// if it is incomplete or invalid.
    pub fn first(bits: u8, code: &[u8]) -> Option<Self> {
        let code = code.get(..MAX_INSTRUCTION).unwrap_or(code);
        Self::all(bits, code).next()?.1
    }

    /// Decodes the instructions in code of 16, 32 or 64 `bits` one after the other. Returns the
    /// offset of each; and `None` for bytes that are no instruction.
    pub fn all(bits: u8, code: &[u8]) -> impl Iterator<Item = (usize, Option<Self>)> {
        let bits = if matches!(bits, 16 | 32) { bits } else { 64 };
        let mut decoder = Decoder::new(bits.into(), code, DecoderOptions::NONE);
        std::iter::from_fn(move || {
            if !decoder.can_decode() {
                return None;
            }
            let at = decoder.position();
            let decoded = decoder.decode();
            let is_valid = decoder.last_error() == DecoderError::None && !decoded.is_invalid();
            Some((at, is_valid.then(|| Self::of(&decoded))))
        })
    }

    fn of(decoded: &iced_x86::Instruction) -> Self {
        let kind = match (decoded.mnemonic(), decoded.flow_control()) {
            (Mnemonic::Syscall | Mnemonic::Sysenter, _) => InstructionKind::SystemCall,
            (Mnemonic::Sysret | Mnemonic::Sysretq | Mnemonic::Sysexit | Mnemonic::Sysexitq, _) => {
                InstructionKind::SystemReturn
            }
            (Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq | Mnemonic::Uiret, _) => {
                InstructionKind::InterruptReturn
            }
            (
                Mnemonic::Vmlaunch
                | Mnemonic::Vmresume
                | Mnemonic::Vmcall
                | Mnemonic::Vmmcall
                | Mnemonic::Vmrun,
                _,
            ) => InstructionKind::VirtualMachine,
            (_, FlowControl::ConditionalBranch) => InstructionKind::ConditionalJump,
            (_, FlowControl::UnconditionalBranch) => InstructionKind::Jump,
            (_, FlowControl::IndirectBranch) => InstructionKind::IndirectJump,
            (_, FlowControl::Call) => InstructionKind::Call,
            (_, FlowControl::IndirectCall) => InstructionKind::IndirectCall,
            (_, FlowControl::Return) => InstructionKind::Return,
            (_, FlowControl::Interrupt) => InstructionKind::Interrupt,
            _ => InstructionKind::Sequential,
        };
        let has_target = matches!(
            kind,
            InstructionKind::ConditionalJump | InstructionKind::Jump | InstructionKind::Call
        );
        let displacement = match has_target {
            true => decoded.near_branch_target().wrapping_sub(decoded.next_ip()) as i64,
            false => 0,
        };
        Instruction {
            size: decoded.len(),
            kind,
            displacement,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_sizes() {
        use InstructionKind as Kind;
        let cases: &[(&[u8], usize, Kind)] = &[
            (&[0x31, 0xc0], 2, Kind::Sequential),
            (&[0x74, 0], 2, Kind::ConditionalJump),
            (&[0xe2, 0xfe], 2, Kind::ConditionalJump),
            (&[0xe9, 0, 0, 0, 0], 5, Kind::Jump),
            (&[0xff, 0xe0], 2, Kind::IndirectJump),
            (&[0xe8, 0, 0, 0, 0], 5, Kind::Call),
            (&[0xff, 0xd0], 2, Kind::IndirectCall),
            (&[0xc3], 1, Kind::Return),
            (&[0xf3, 0xc3], 2, Kind::Return),
            (&[0xc2, 8, 0], 3, Kind::Return),
            (&[0xcb], 1, Kind::Return),
            (&[0xff, 0x18], 2, Kind::IndirectCall),
            (&[0xe3, 0xfe], 2, Kind::ConditionalJump),
            (&[0xcc], 1, Kind::Interrupt),
            (&[0xcd, 0x80], 2, Kind::Interrupt),
            (&[0x0f, 0x05], 2, Kind::SystemCall),
            (&[0x0f, 0x34], 2, Kind::SystemCall),
            (&[0x48, 0x0f, 0x07], 3, Kind::SystemReturn),
            (&[0x48, 0xcf], 2, Kind::InterruptReturn),
            (&[0x0f, 0x01, 0xc2], 3, Kind::VirtualMachine),
        ];
        for &(code, size, kind) in cases {
            let found = |code: &[u8]| Instruction::first(64, code).map(|one| (one.size, one.kind));
            assert_eq!(found(code), Some((size, kind)), "{code:x?}");
            let more = [code, &[0x90; 20]].concat();
            assert_eq!(found(&more), Some((size, kind)), "{code:x?}");
            let cut = code.split_last().map(|(_, cut)| cut).unwrap_or_default();
            assert_eq!(Instruction::first(64, cut), None, "{code:x?}");
        }
        let displacement = |code: &[u8]| Instruction::first(64, code).map(|one| one.displacement);
        assert_eq!(displacement(&[0x74, 5]), Some(5));
        assert_eq!(displacement(&[0xeb, 0xfe]), Some(-2));
        assert_eq!(displacement(&[0xe8, 0, 0, 0, 0x80]), Some(i32::MIN.into()));
        assert_eq!(displacement(&[0xff, 0xe0]), Some(0));
        // A prefix of 64-bit code is an instruction of 32-bit code.
        let code = [0x48, 0xc3];
        let size = |bits| Instruction::first(bits, &code).map(|found| found.size);
        assert_eq!((size(64), size(32), size(16)), (Some(2), Some(1), Some(1)));
    }
}
