//! The registers of each machine: perf's numbers, DWARF's numbers, and what a called function must
//! preserve.

use perfdata_core::record::{Registers, RegsAbi};

/// Number of registers that are followed, by their DWARF numbers.
pub(crate) const REGISTERS: usize = 68;

/// A machine whose stacks can be unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// i386, also as a 32-bit task of x86-64.
    I386,
    /// AArch64.
    Aarch64,
    /// 32-bit ARM, also as a 32-bit task of AArch64.
    Arm,
    /// s390x.
    S390x,
    /// 64-bit RISC-V.
    Riscv64,
    /// 64-bit PowerPC, of both byte orders.
    Ppc64,
}

/// Returns a number with the bits from `first` to `last`, below 128.
#[allow(clippy::arithmetic_side_effects, reason = "evaluated by the compiler")]
const fn bits(first: u32, last: u32) -> u128 {
    u128::MAX >> (127 - last) & u128::MAX << first
}

/// Runs of registers: the first bit in perf's mask, the first DWARF number, and their count.
type RegisterRuns = &'static [(u8, u8, u8)];

/// The DWARF number of each bit of perf's mask.
type DwarfNumbers = [Option<u8>; 64];

/// Returns the numbers in a table of runs.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler"
)]
const fn numbers(runs: RegisterRuns) -> DwarfNumbers {
    let mut numbers = [None; 64];
    let mut run = 0;
    while run < runs.len() {
        let (first, number, count) = runs[run];
        let mut at = 0;
        while at < count {
            numbers[(first + at) as usize] = Some(number + at);
            at += 1;
        }
        run += 1;
    }
    numbers
}

impl Machine {
    /// All machines.
    pub const ALL: [Machine; 7] = [
        Machine::X86_64,
        Machine::I386,
        Machine::Aarch64,
        Machine::Arm,
        Machine::S390x,
        Machine::Riscv64,
        Machine::Ppc64,
    ];

    /// Returns the machine of a task with this `abi` in a recording of an architecture with these
    /// `registers`; `None` if its stacks cannot be unwound.
    pub fn of(registers: &Registers, abi: RegsAbi) -> Option<Machine> {
        Some(match (registers.arch, abi) {
            ("x86", RegsAbi::BITS_64) => Machine::X86_64,
            ("x86", RegsAbi::BITS_32) => Machine::I386,
            ("arm64", RegsAbi::BITS_64) => Machine::Aarch64,
            ("arm64" | "arm", RegsAbi::BITS_32) => Machine::Arm,
            ("s390", RegsAbi::BITS_64) => Machine::S390x,
            ("riscv", RegsAbi::BITS_64) => Machine::Riscv64,
            ("powerpc", RegsAbi::BITS_64) => Machine::Ppc64,
            _ => return None,
        })
    }

    /// Returns perf's registers of its tasks.
    fn registers(self) -> Option<&'static Registers> {
        Registers::of_arch(match self {
            Machine::X86_64 | Machine::I386 => "x86",
            Machine::Aarch64 => "arm64",
            Machine::Arm => "arm",
            Machine::S390x => "s390",
            Machine::Riscv64 => "riscv",
            Machine::Ppc64 => "powerpc",
        })
    }

    /// Returns the bits of the instruction pointer and the stack pointer in perf's mask.
    pub fn pointers(self) -> (u32, u32) {
        self.registers().map_or((u32::MAX, u32::MAX), |registers| {
            (registers.ip, registers.sp)
        })
    }

    /// The DWARF numbers of perf's registers, except for the instruction pointer
    /// (tools/perf/util/dwarf-regs-table.h, arch/*/util/unwind-libdw.c, Linux 7.2).
    const fn runs(self) -> RegisterRuns {
        match self {
            Machine::X86_64 => &[
                (0, 0, 1),
                (1, 3, 1),
                (2, 2, 1),
                (3, 1, 1),
                (4, 4, 4),
                (16, 8, 8),
            ],
            Machine::I386 => &[
                (0, 0, 1),
                (1, 3, 1),
                (2, 1, 1),
                (3, 2, 1),
                (4, 6, 2),
                (6, 5, 1),
                (7, 4, 1),
            ],
            Machine::Aarch64 => &[(0, 0, 32)],
            Machine::Arm => &[(0, 0, 15)],
            // Floating-point registers alternate between two rows of four.
            Machine::S390x => &[
                (0, 0, 16),
                (16, 16, 1),
                (17, 20, 1),
                (18, 17, 1),
                (19, 21, 1),
                (20, 18, 1),
                (21, 22, 1),
                (22, 19, 1),
                (23, 23, 1),
                (24, 24, 1),
                (25, 28, 1),
                (26, 25, 1),
                (27, 29, 1),
                (28, 26, 1),
                (29, 30, 1),
                (30, 27, 1),
                (31, 31, 1),
                (32, 64, 1),
            ],
            Machine::Riscv64 => &[(1, 1, 31)],
            Machine::Ppc64 => &[(0, 0, 32), (36, 65, 1), (35, 66, 1)],
        }
    }

    /// Returns the DWARF number of the register at `bit` of perf's mask, as .eh_frame uses it;
    /// `None` for the instruction pointer, and for registers that are not needed.
    pub fn dwarf_register(self, bit: u32) -> Option<u8> {
        let bit = usize::try_from(bit).ok()?;
        self.dwarf_registers().get(bit).copied().flatten()
    }

    /// Returns the DWARF numbers of all bits of perf's mask.
    pub(crate) fn dwarf_registers(self) -> &'static [Option<u8>; 64] {
        static X86_64: DwarfNumbers = numbers(Machine::X86_64.runs());
        static I386: DwarfNumbers = numbers(Machine::I386.runs());
        static AARCH64: DwarfNumbers = numbers(Machine::Aarch64.runs());
        static ARM: DwarfNumbers = numbers(Machine::Arm.runs());
        static S390X: DwarfNumbers = numbers(Machine::S390x.runs());
        static RISCV64: DwarfNumbers = numbers(Machine::Riscv64.runs());
        static PPC64: DwarfNumbers = numbers(Machine::Ppc64.runs());
        match self {
            Machine::X86_64 => &X86_64,
            Machine::I386 => &I386,
            Machine::Aarch64 => &AARCH64,
            Machine::Arm => &ARM,
            Machine::S390x => &S390X,
            Machine::Riscv64 => &RISCV64,
            Machine::Ppc64 => &PPC64,
        }
    }

    /// Returns the DWARF number of the stack pointer.
    pub fn stack_pointer(self) -> u8 {
        match self {
            Machine::X86_64 => 7,
            Machine::I386 => 4,
            Machine::Aarch64 => 31,
            Machine::Arm => 13,
            Machine::S390x => 15,
            Machine::Riscv64 => 2,
            Machine::Ppc64 => 1,
        }
    }

    /// Returns the DWARF number of the instruction pointer; `None` if it has none.
    pub(crate) fn instruction_pointer(self) -> Option<u8> {
        match self {
            Machine::X86_64 => Some(16),
            Machine::I386 => Some(8),
            Machine::Arm => Some(15),
            Machine::S390x => Some(65),
            Machine::Aarch64 | Machine::Riscv64 | Machine::Ppc64 => None,
        }
    }

    /// Returns the size of a word in bytes.
    pub fn word(self) -> u8 {
        match self {
            Machine::I386 | Machine::Arm => 4,
            _ => 8,
        }
    }

    /// Returns the value with the size of a word.
    pub(crate) fn truncated(self, value: u64) -> u64 {
        match self.word() {
            4 => value & 0xffff_ffff,
            _ => value,
        }
    }

    /// Returns the registers that a called function preserves, one bit for each DWARF number.
    /// Others have no known value in the caller, unless there is a rule for them.
    pub(crate) const fn preserved(self) -> u128 {
        const X86_64: u128 = bits(3, 3) | bits(6, 6) | bits(12, 15);
        const I386: u128 = bits(3, 3) | bits(5, 7);
        const AARCH64: u128 = bits(19, 29);
        const ARM: u128 = bits(4, 11);
        const S390X: u128 = bits(6, 13) | bits(24, 31);
        const RISCV64: u128 = bits(8, 9) | bits(18, 27);
        const PPC64: u128 = bits(2, 2) | bits(14, 31);
        match self {
            Machine::X86_64 => X86_64,
            Machine::I386 => I386,
            Machine::Aarch64 => AARCH64,
            Machine::Arm => ARM,
            Machine::S390x => S390X,
            Machine::Riscv64 => RISCV64,
            Machine::Ppc64 => PPC64,
        }
    }

    /// Returns the stack pointer of the caller, if there is no rule for it.
    pub(crate) fn callers_stack(self, cfa: u64) -> u64 {
        match self {
            // The CFA is above the save area of the caller's frame (s390x ELF ABI, 1.2.2).
            Machine::S390x => cfa.wrapping_sub(160),
            _ => cfa,
        }
    }

    /// Returns a code address without bits that do not belong to it: a pointer authentication code,
    /// or the flag of Thumb code.
    pub(crate) fn code_address(self, address: u64) -> u64 {
        match self {
            Machine::Aarch64 => address & 0xffff_ffff_ffff,
            Machine::Arm => address & !1,
            _ => address,
        }
    }

    /// Returns the frame pointer, and the offsets from it to the caller's frame pointer, to the
    /// return address, and to the caller's stack, for code that keeps a chain of frame pointers.
    pub(crate) fn frame_pointer(self) -> Option<(u8, i64, i64, i64)> {
        match self {
            Machine::X86_64 => Some((6, 0, 8, 16)),
            Machine::I386 => Some((5, 0, 4, 8)),
            Machine::Aarch64 => Some((29, 0, 8, 16)),
            Machine::Riscv64 => Some((8, -16, -8, 0)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of registers in DWARF's order, from the ABI of each machine, with perf's names.
    #[test]
    fn registers_have_the_numbers_of_the_abi() {
        type Names = &'static [(u8, &'static str)];
        let tables: &[(Machine, &str, Names)] = &[
            (
                Machine::X86_64,
                "x86",
                &[
                    (0, "AX"),
                    (1, "DX"),
                    (2, "CX"),
                    (3, "BX"),
                    (4, "SI"),
                    (5, "DI"),
                    (6, "BP"),
                    (7, "SP"),
                    (8, "R8"),
                    (9, "R9"),
                    (10, "R10"),
                    (11, "R11"),
                    (12, "R12"),
                    (13, "R13"),
                    (14, "R14"),
                    (15, "R15"),
                ],
            ),
            (
                Machine::I386,
                "x86",
                &[
                    (0, "AX"),
                    (1, "CX"),
                    (2, "DX"),
                    (3, "BX"),
                    (4, "SP"),
                    (5, "BP"),
                    (6, "SI"),
                    (7, "DI"),
                ],
            ),
            (
                Machine::Aarch64,
                "arm64",
                &[(0, "x0"), (29, "x29"), (30, "lr"), (31, "sp")],
            ),
            (
                Machine::Arm,
                "arm",
                &[(0, "r0"), (11, "fp"), (13, "sp"), (14, "lr")],
            ),
            (
                Machine::S390x,
                "s390",
                &[
                    (0, "R0"),
                    (14, "R14"),
                    (15, "R15"),
                    (16, "FP0"),
                    (17, "FP2"),
                    (18, "FP4"),
                    (19, "FP6"),
                    (20, "FP1"),
                    (21, "FP3"),
                    (22, "FP5"),
                    (23, "FP7"),
                    (24, "FP8"),
                    (25, "FP10"),
                    (26, "FP12"),
                    (27, "FP14"),
                    (28, "FP9"),
                    (29, "FP11"),
                    (30, "FP13"),
                    (31, "FP15"),
                    (64, "MASK"),
                ],
            ),
            (
                Machine::Riscv64,
                "riscv",
                &[(1, "ra"), (2, "sp"), (8, "s0"), (31, "t6")],
            ),
            (
                Machine::Ppc64,
                "powerpc",
                &[(0, "r0"), (1, "r1"), (31, "r31"), (65, "link"), (66, "ctr")],
            ),
        ];
        assert_eq!(tables.len(), Machine::ALL.len());
        for (machine, arch, names) in tables {
            let registers = Registers::of_arch(arch).expect("it has registers");
            for (number, name) in *names {
                let found: Vec<_> = (0..64)
                    .filter(|&bit| machine.dwarf_register(bit) == Some(*number))
                    .filter_map(|bit| registers.name(bit, RegsAbi::BITS_64))
                    .collect();
                assert_eq!(found, [*name], "{machine:?} {number}");
            }
            let (ip, sp) = machine.pointers();
            assert_eq!(machine.dwarf_register(ip), None, "{machine:?}");
            assert_eq!(
                machine.dwarf_register(sp),
                Some(machine.stack_pointer()),
                "{machine:?}"
            );
            let all = (0..64).filter_map(|bit| machine.dwarf_register(bit));
            assert!(all.clone().all(|number| usize::from(number) < REGISTERS));
            let count = all.clone().count();
            let unique: std::collections::HashSet<_> = all.collect();
            assert_eq!(unique.len(), count, "{machine:?}: no number twice");
        }
    }

    #[test]
    fn tasks_have_their_own_machine() {
        let of = |arch: &str, abi| Machine::of(Registers::of_arch(arch)?, abi);
        assert_eq!(of("x86_64", RegsAbi::BITS_64), Some(Machine::X86_64));
        assert_eq!(of("x86_64", RegsAbi::BITS_32), Some(Machine::I386));
        assert_eq!(of("aarch64", RegsAbi::BITS_32), Some(Machine::Arm));
        assert_eq!(of("armv7l", RegsAbi::BITS_32), Some(Machine::Arm));
        assert_eq!(of("mips64", RegsAbi::BITS_64), None);
        assert_eq!(of("x86_64", RegsAbi::NONE), None);
    }
}
