//! Features about PMUs: their numbers and capabilities.

use super::buf::{Buf, count32};
use super::feature::Features;

const PMU_MAPPINGS: u32 = 16;
const CPU_PMU_CAPS: u32 = 28;
const PMU_CAPS: u32 = 31;

/// Appends PMU_MAPPINGS: type and name of each.
pub fn pmu_mappings(b: Buf, pmus: &[(u32, &str)]) -> Buf {
    b.u32(count32(pmus))
        .each(pmus, |b, (kind, name)| b.u32(*kind).str(name))
}

fn caps(b: Buf, caps: &[(&str, &str)]) -> Buf {
    b.u32(count32(caps))
        .each(caps, |b, (name, value)| b.str(name).str(value))
}

/// Adds empty sections.
pub fn cases(f: &mut Features) {
    plain(f);
    f.add(PMU_MAPPINGS, "PMU_MAPPINGS empty", |b| b.u32(0));
    f.add(CPU_PMU_CAPS, "CPU_PMU_CAPS empty", |b| b.u32(0));
    f.add(PMU_CAPS, "PMU_CAPS empty", |b| b.u32(0));
}

/// Adds every feature of this family.
pub fn plain(f: &mut Features) {
    f.add(PMU_MAPPINGS, "PMU_MAPPINGS", |b| {
        pmu_mappings(
            b,
            &[
                (4, "cpu"),
                (1, "software"),
                (2, "tracepoint"),
                (0xffff_fffe, "tool"),
            ],
        )
    });
    f.add(CPU_PMU_CAPS, "CPU_PMU_CAPS", |b| {
        caps(
            b,
            &[
                ("branches", "32"),
                ("max_precise", "3"),
                ("pmu_name", "skylake"),
            ],
        )
    });
    f.add(PMU_CAPS, "PMU_CAPS", |b| {
        let core = [("branches", "32"), ("max_precise", "3")];
        let atom = [("max_precise", "2")];
        caps(caps(b.u32(2), &core).str("cpu_core"), &atom).str("cpu_atom")
    });
}
