//! Names of the registers in samples (REGS_USER, REGS_INTR), by architecture.
//!
//! An attribute's mask determines which registers its samples contain;
//! arch/*/include/uapi/asm/perf_regs.h declares the register of each bit. The names are those that
//! perf shows (tools/perf/util/perf-regs-arch); the few registers that perf omits have the names of
//! the declaration.

use crate::Recording;
use crate::feature::{ElfMachine, Feature, FeatureId, Section};
use crate::record::RegsAbi;

/// The registers of one architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct Registers {
    /// Architecture, named like its directory in the kernel.
    pub arch: &'static str,
    /// The bit of the instruction pointer.
    pub ip: u32,
    /// The bit of the stack pointer.
    pub sp: u32,
    /// Runs of bits that have a name: the first bit and the names.
    names: &'static [(u32, &'static [&'static str])],
}

impl Registers {
    /// All architectures with such registers.
    pub const ALL: &'static [&'static Registers] = &[
        &X86, &ARM, &ARM64, &S390, &POWERPC, &RISCV, &LOONGARCH, &MIPS, &CSKY,
    ];

    /// Returns the registers of the recording machine, if the recording contains the feature
    /// E_MACHINE or else ARCH.
    pub fn of(recording: &Recording) -> Option<&'static Self> {
        let section = |id| recording.feature(id)?.ok();
        if let Some(Section {
            value: Feature::EMachine(machine),
            ..
        }) = section(FeatureId::E_MACHINE)
            && let Some(found) = Self::of_machine(machine.e_machine)
        {
            return Some(found);
        }
        match section(FeatureId::ARCH)?.value {
            Feature::Arch(name) => Self::of_arch(std::str::from_utf8(name.text()).ok()?),
            _ => None,
        }
    }

    /// Returns the registers of an ELF machine.
    pub fn of_machine(machine: ElfMachine) -> Option<&'static Self> {
        Some(match machine {
            ElfMachine::I386 | ElfMachine::X86_64 => &X86,
            ElfMachine::ARM => &ARM,
            ElfMachine::AARCH64 => &ARM64,
            ElfMachine::S390 => &S390,
            ElfMachine::PPC | ElfMachine::PPC64 => &POWERPC,
            ElfMachine::RISCV => &RISCV,
            ElfMachine::LOONGARCH => &LOONGARCH,
            ElfMachine::MIPS => &MIPS,
            ElfMachine::CSKY => &CSKY,
            _ => return None,
        })
    }

    /// Returns the registers of a machine called `name` by `uname -m`, as in the feature ARCH.
    pub fn of_arch(name: &str) -> Option<&'static Self> {
        let is_x86 = |name: &str| matches!(name.as_bytes(), [b'i', b'3'..=b'6', b'8', b'6']);
        let known: &[(&str, &'static Self)] = &[
            ("x86", &X86),
            ("aarch64", &ARM64),
            ("arm64", &ARM64),
            ("arm", &ARM),
            ("s390", &S390),
            ("ppc", &POWERPC),
            ("powerpc", &POWERPC),
            ("riscv", &RISCV),
            ("loongarch", &LOONGARCH),
            ("mips", &MIPS),
            ("csky", &CSKY),
        ];
        if is_x86(name) {
            return Some(&X86);
        }
        known
            .iter()
            .find(|(start, _)| name.starts_with(start))
            .map(|(_, registers)| *registers)
    }

    /// Returns the name of the register at `bit` of a mask, in a sample of a task with this `abi`.
    /// In 32-bit tasks on arm64, the first 16 registers are those of arm
    /// (arch/arm64/kernel/perf_regs.c, perf_reg_value).
    pub fn name(&self, bit: u32, abi: RegsAbi) -> Option<&'static str> {
        if abi == RegsAbi::BITS_32 && self.arch == ARM64.arch {
            return ARM.at(bit).or_else(|| self.at(bit));
        }
        self.at(bit)
    }

    fn at(&self, bit: u32) -> Option<&'static str> {
        let name = |(first, names): &(u32, &'static [&'static str])| {
            let at = usize::try_from(bit.checked_sub(*first)?).ok()?;
            names.get(at).copied()
        };
        self.names.iter().find_map(name)
    }

    /// Returns the name of each register that a sample contains for a `mask`, in the order of the
    /// sample.
    pub fn names(&self, mask: u64, abi: RegsAbi) -> impl Iterator<Item = Option<&'static str>> {
        (0..u64::BITS)
            .filter(move |bit| mask >> bit & 1 == 1)
            .map(move |bit| self.name(bit, abi))
    }
}

/// `enum perf_event_x86_regs`, for both 32 and 64 bits. An XMM register has two bits.
static X86: Registers = Registers {
    arch: "x86",
    ip: 8,
    sp: 7,
    names: &[
        (
            0,
            &[
                "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS",
                "ES", "FS", "GS", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
            ],
        ),
        (
            32,
            &[
                "XMM0", "XMM0", "XMM1", "XMM1", "XMM2", "XMM2", "XMM3", "XMM3", "XMM4", "XMM4",
                "XMM5", "XMM5", "XMM6", "XMM6", "XMM7", "XMM7", "XMM8", "XMM8", "XMM9", "XMM9",
                "XMM10", "XMM10", "XMM11", "XMM11", "XMM12", "XMM12", "XMM13", "XMM13", "XMM14",
                "XMM14", "XMM15", "XMM15",
            ],
        ),
    ],
};

/// `enum perf_event_arm_regs` of arch/arm.
static ARM: Registers = Registers {
    arch: "arm",
    ip: 15,
    sp: 13,
    names: &[(
        0,
        &[
            "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "fp", "ip", "sp",
            "lr", "pc",
        ],
    )],
};

/// `enum perf_event_arm_regs` of arch/arm64; `vg` is the length of SVE vectors.
static ARM64: Registers = Registers {
    arch: "arm64",
    ip: 32,
    sp: 31,
    names: &[
        (
            0,
            &[
                "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24",
                "x25", "x26", "x27", "x28", "x29", "lr", "sp", "pc",
            ],
        ),
        (46, &["vg"]),
    ],
};

/// `enum perf_event_s390_regs`.
static S390: Registers = Registers {
    arch: "s390",
    ip: 33,
    sp: 15,
    names: &[(
        0,
        &[
            "R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13",
            "R14", "R15", "FP0", "FP1", "FP2", "FP3", "FP4", "FP5", "FP6", "FP7", "FP8", "FP9",
            "FP10", "FP11", "FP12", "FP13", "FP14", "FP15", "MASK", "PC",
        ],
    )],
};

/// `enum perf_event_powerpc_regs`.
static POWERPC: Registers = Registers {
    arch: "powerpc",
    ip: 32,
    sp: 1,
    names: &[(
        0,
        &[
            "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25",
            "r26", "r27", "r28", "r29", "r30", "r31", "nip", "msr", "orig_r3", "ctr", "link",
            "xer", "ccr", "softe", "trap", "dar", "dsisr", "sier", "mmcra", "mmcr0", "mmcr1",
            "mmcr2", "mmcr3", "sier2", "sier3", "pmc1", "pmc2", "pmc3", "pmc4", "pmc5", "pmc6",
            "sdar", "siar",
        ],
    )],
};

/// `enum perf_event_riscv_regs`.
static RISCV: Registers = Registers {
    arch: "riscv",
    ip: 0,
    sp: 2,
    names: &[(
        0,
        &[
            "pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3",
            "a4", "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
            "t3", "t4", "t5", "t6",
        ],
    )],
};

/// `enum perf_event_loongarch_regs`.
static LOONGARCH: Registers = Registers {
    arch: "loongarch",
    ip: 0,
    sp: 3,
    names: &[(
        0,
        &[
            "PC", "%r1", "%r2", "%r3", "%r4", "%r5", "%r6", "%r7", "%r8", "%r9", "%r10", "%r11",
            "%r12", "%r13", "%r14", "%r15", "%r16", "%r17", "%r18", "%r19", "%r20", "%r21", "%r22",
            "%r23", "%r24", "%r25", "%r26", "%r27", "%r28", "%r29", "%r30", "%r31",
        ],
    )],
};

/// `enum perf_event_mips_regs`.
static MIPS: Registers = Registers {
    arch: "mips",
    ip: 0,
    sp: 29,
    names: &[(
        0,
        &[
            "PC", "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13",
            "$14", "$15", "$16", "$17", "$18", "$19", "$20", "$21", "$22", "$23", "$24", "$25",
            "$26", "$27", "$28", "$29", "$30", "$31",
        ],
    )],
};

/// `enum perf_event_csky_regs` of ABI v2, which starts with that of v1.
static CSKY: Registers = Registers {
    arch: "csky",
    ip: 2,
    sp: 4,
    names: &[(
        0,
        &[
            "tls", "lr", "pc", "sr", "sp", "orig_a0", "a0", "a1", "a2", "a3", "regs0", "regs1",
            "regs2", "regs3", "regs4", "regs5", "regs6", "regs7", "regs8", "regs9", "exregs0",
            "exregs1", "exregs2", "exregs3", "exregs4", "exregs5", "exregs6", "exregs7", "exregs8",
            "exregs9", "exregs10", "exregs11", "exregs12", "exregs13", "exregs14", "hi", "lo",
            "dcsr",
        ],
    )],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The last register of each enumeration, and the bits of the instruction and stack pointers.
    #[test]
    fn bits_are_those_of_the_kernel() {
        let expected = [
            ("x86_64", 23, "R15", "IP", "SP"),
            ("i686", 63, "XMM15", "IP", "SP"),
            ("armv7l", 15, "pc", "pc", "sp"),
            ("aarch64", 46, "vg", "pc", "sp"),
            ("s390x", 33, "PC", "PC", "R15"),
            ("ppc64le", 58, "siar", "nip", "r1"),
            ("riscv64", 31, "t6", "pc", "sp"),
            ("loongarch64", 31, "%r31", "PC", "%r3"),
            ("mips64", 31, "$31", "PC", "$29"),
            ("csky", 37, "dcsr", "pc", "sp"),
        ];
        let name = |registers: &Registers, bit| registers.name(bit, RegsAbi::BITS_64);
        for (arch, last, last_name, ip, sp) in expected {
            let found = Registers::of_arch(arch);
            assert_eq!(
                found.and_then(|registers| name(registers, last)),
                Some(last_name),
                "{arch}"
            );
            assert_eq!(
                found.and_then(|registers| name(registers, registers.ip)),
                Some(ip),
                "{arch}"
            );
            assert_eq!(
                found.and_then(|registers| name(registers, registers.sp)),
                Some(sp),
                "{arch}"
            );
            let behind = (last.saturating_add(1)..64)
                .find_map(|bit| found.and_then(|registers| name(registers, bit)));
            assert!(behind.is_none() || arch == "x86_64", "{arch}: {behind:?}");
        }
        assert_eq!(Registers::of_arch("sparc64"), None);
        assert_eq!(name(&POWERPC, 45), Some("mmcr0"));
        assert_eq!(name(&POWERPC, 51), Some("pmc1"));
        assert_eq!(name(&X86, 24), None);
        assert_eq!(name(&X86, 33), Some("XMM0"));
    }

    #[test]
    fn tasks_of_32_bits_on_arm64_have_the_registers_of_arm() {
        let names = |abi| {
            ARM64
                .names(1 << 15 | 1 << 11 | 1 << 31 | 1 << 40, abi)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(RegsAbi::BITS_64),
            [Some("x11"), Some("x15"), Some("sp"), None]
        );
        assert_eq!(
            names(RegsAbi::BITS_32),
            [Some("fp"), Some("pc"), Some("sp"), None]
        );
    }
}
