//! The machine of generated code.

use perfdata_core::feature::{ElfMachine, Feature, FeatureId};
use perfdata_core::{Endian, Recording};

use super::image::Target;

/// Returns the machine of code with this byte order: `machine`, which is that in the header of a
/// dump, or that of the recording. CPython 3.13.0 writes no machine.
pub fn target_of(machine: ElfMachine, endian: Endian, recording: &Recording) -> Target {
    let arch = arch(recording);
    let machine = match machine {
        ElfMachine::NONE => machine_of(recording).unwrap_or_else(|| named(&arch, endian)),
        machine => machine,
    };
    Target {
        machine,
        is_64: is_64(machine, &arch),
        endian,
    }
}

/// Returns the name of the architecture in the feature ARCH, `uname -m`; empty if there is none.
fn arch(recording: &Recording) -> String {
    match recording.feature(FeatureId::ARCH) {
        Some(Ok(section)) => match section.value {
            Feature::Arch(arch) => arch.to_string(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// Returns the machine in the feature E_MACHINE.
fn machine_of(recording: &Recording) -> Option<ElfMachine> {
    match recording.feature(FeatureId::E_MACHINE)?.ok()?.value {
        Feature::EMachine(machine) => Some(machine.e_machine),
        _ => None,
    }
    .filter(|machine| *machine != ElfMachine::NONE)
}

/// Returns the machine with this name.
fn named(arch: &str, endian: Endian) -> ElfMachine {
    let names = [
        ("x86_64", ElfMachine::X86_64),
        ("aarch64", ElfMachine::AARCH64),
        ("arm64", ElfMachine::AARCH64),
        ("arm", ElfMachine::ARM),
        ("s390", ElfMachine::S390),
        ("ppc64", ElfMachine::PPC64),
        ("ppc", ElfMachine::PPC),
        ("riscv", ElfMachine::RISCV),
        ("loongarch", ElfMachine::LOONGARCH),
        ("mips", ElfMachine::MIPS),
        ("sparc64", ElfMachine::SPARCV9),
        ("sparc", ElfMachine::SPARC),
        ("parisc", ElfMachine::PARISC),
    ];
    let is_i386 = |arch: &str| arch.starts_with('i') && arch.ends_with("86");
    let found = names.iter().find(|(name, _)| arch.starts_with(name));
    match found {
        Some((_, machine)) => *machine,
        None if is_i386(arch) => ElfMachine::I386,
        // Without any information: the most frequent machine of this byte order.
        None if arch.is_empty() && endian == Endian::Little => ElfMachine::X86_64,
        None => ElfMachine::NONE,
    }
}

/// Returns whether ELF files of `machine` have the 64-bit class. `arch` decides where both exist.
fn is_64(machine: ElfMachine, arch: &str) -> bool {
    match machine {
        ElfMachine::I386
        | ElfMachine::ARM
        | ElfMachine::PPC
        | ElfMachine::SPARC
        | ElfMachine::SH
        | ElfMachine::AVR
        | ElfMachine::XTENSA
        | ElfMachine::ARCV2
        | ElfMachine::CSKY => false,
        ElfMachine::MIPS | ElfMachine::PARISC => arch.contains("64"),
        ElfMachine::S390 => arch != "s390",
        ElfMachine::RISCV | ElfMachine::LOONGARCH => !arch.contains("32"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_follows_from_machine_and_architecture() {
        let of = |arch: &str| {
            let machine = named(arch, Endian::Big);
            (machine, is_64(machine, arch))
        };
        assert_eq!(of("x86_64"), (ElfMachine::X86_64, true));
        assert_eq!(of("i686"), (ElfMachine::I386, false));
        assert_eq!(of("armv7l"), (ElfMachine::ARM, false));
        assert_eq!(of("aarch64"), (ElfMachine::AARCH64, true));
        assert_eq!(of("s390x"), (ElfMachine::S390, true));
        assert_eq!(of("ppc64le"), (ElfMachine::PPC64, true));
        assert_eq!(of("mips64"), (ElfMachine::MIPS, true));
        assert_eq!(of("mips"), (ElfMachine::MIPS, false));
        assert_eq!(of("vax"), (ElfMachine::NONE, true));
        assert_eq!(named("", Endian::Little), ElfMachine::X86_64);
    }
}
