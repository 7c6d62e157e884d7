//! AUXTRACE_INFO: properties of the tracing hardware for decoders (tools/perf/util/auxtrace.h,
//! intel-pt.h, intel-bts.h, cs-etm.h, arm-spe.h, hisi-ptt.h, powerpc-vpadtl.h).
//!
//! The kernel tree declares the record's content as `u64 priv[]`, and numbers the words with one
//! enum for each type of trace. New words are appended.

use crate::codes::{bitfield, codes};
use crate::decode_context::DecodeContext;
use crate::record::NoBody;
use crate::record::choice::choice;
use crate::wire::{ContextList, Extent, List, Rest, ToEnd, wire};

codes! {
    /// Type of an AUX trace, `enum auxtrace_type`.
    pub struct AuxtraceType: u32 {
        0 UNKNOWN "unknown",
        1 INTEL_PT "intel-pt",
        2 INTEL_BTS "intel-bts",
        3 CS_ETM "cs-etm",
        4 ARM_SPE "arm-spe",
        5 S390_CPUMSF "s390-cpumsf",
        6 HISI_PTT "hisi-ptt",
        7 VPA_DTL "powerpc-vpadtl",
    }
}

wire! {
    /// The hardware that produced the AUX trace (4.1).
    pub struct AuxtraceInfo(layout) {
        /// Type of the trace.
        pub kind: AuxtraceType,
        /// Reserved.
        pub reserved: u32 as Pad,
        /// Properties for the decoder.
        #[br(args_raw = (kind, layout.part(layout.len.saturating_sub(8))))]
        pub private: AuxtracePrivate,
    }
}

impl DecodeContext {
    /// Returns this layout for a part of `len` bytes.
    fn part(self, len: u64) -> Self {
        DecodeContext { len, ..self }
    }

    /// Returns the number of whole words.
    fn words(&self) -> u64 {
        self.len / 8
    }
}

choice! {
    /// The words of an AUXTRACE_INFO, by its type.
    pub enum AuxtracePrivate(kind: AuxtraceType, layout) {
        /// Intel Processor Trace.
        AuxtraceType::INTEL_PT => IntelPt(IntelPt) with layout,
        /// Intel Branch Trace Store.
        AuxtraceType::INTEL_BTS => IntelBts(IntelBts),
        /// Arm CoreSight.
        AuxtraceType::CS_ETM => CsEtm(CsEtm) with layout,
        /// Arm Statistical Profiling Extension, before 6.13.
        AuxtraceType::ARM_SPE if layout.words() == 2 => ArmSpe1(ArmSpe1),
        /// Arm Statistical Profiling Extension.
        AuxtraceType::ARM_SPE => ArmSpe(ArmSpe) with layout,
        /// s390 CPU-measurement sampling facility: no words.
        AuxtraceType::S390_CPUMSF => S390Cpumsf(NoBody),
        /// HiSilicon PCIe Tune and Trace.
        AuxtraceType::HISI_PTT => HisiPtt(HisiPtt),
        /// PowerPC dispatch trace log.
        AuxtraceType::VPA_DTL => VpaDtl(VpaDtl),
        /// A type of trace that this version of the library does not know; probably words.
        _ => Unknown(ToEnd<u64> as Opaque) with (8,),
    }
}

wire! {
    /// Intel Processor Trace (4.3).
    pub struct IntelPt(layout) => Trace {
        /// Type number of the PMU.
        pub pmu_type: u64,
        /// Shift of the conversion from TSC to time.
        pub time_shift: u64,
        /// Multiplier of the conversion from TSC to time.
        pub time_mult: u64,
        /// Time of TSC 0 in nanoseconds.
        pub time_zero: u64 as Hex,
        /// Whether `time_zero` is valid.
        pub cap_user_time_zero: u64,
        /// Bit in `config` that enables TSC packets.
        pub tsc_bit: u64 as Hex,
        /// Bit in `config` that disables return compression.
        pub noretcomp_bit: u64 as Hex,
        /// Recording of context switches: 0 none, 1 sched_switch, 2 to 4 SWITCH records.
        pub have_sched_switch: u64,
        /// Whether the trace consists of snapshots.
        pub snapshot_mode: u64,
        /// Whether there is one buffer for each CPU.
        pub per_cpu_mmaps: u64,
        /// Bit in `config` that enables MTC packets.
        #[br(if(layout.words() > 10))]
        pub mtc_bit: Option<u64> as Hex,
        /// Bits in `config` for the MTC frequency.
        #[br(if(layout.words() > 11))]
        pub mtc_freq_bits: Option<u64> as Hex,
        /// Numerator of the ratio of TSC to core crystal clock.
        #[br(if(layout.words() > 12))]
        pub tsc_ctc_n: Option<u64>,
        /// Denominator of that ratio.
        #[br(if(layout.words() > 13))]
        pub tsc_ctc_d: Option<u64>,
        /// Bit in `config` that enables cycle-accurate mode.
        #[br(if(layout.words() > 14))]
        pub cyc_bit: Option<u64> as Hex,
        /// Ratio of the highest frequency without turbo to the bus clock (4.14).
        #[br(if(layout.words() > 15))]
        pub max_nonturbo_ratio: Option<u64>,
        /// Size of the filter in bytes, without its NUL (4.9).
        #[br(if(layout.words() > 16))]
        pub filter_str_len: Option<u64>,
        /// Address filter, padded with zeros to a multiple of 8 bytes.
        #[br(args_raw = Extent::Bytes(filter_room(filter_str_len)))]
        pub filter: Rest as Text,
        /// Whether event trace is enabled (5.17).
        #[br(if(layout.words() > (filter_room(filter_str_len) / 8).saturating_add(17)))]
        pub event_trace: Option<u64>,
    }
}

/// Returns the size in bytes of a filter of `len` bytes with its NUL and padding.
fn filter_room(len: Option<u64>) -> u64 {
    match len {
        None | Some(0) => 0,
        Some(len) => len.saturating_add(8) & !7,
    }
}

wire! {
    /// Intel Branch Trace Store (4.3).
    pub struct IntelBts => Trace {
        /// Type number of the PMU.
        pub pmu_type: u64,
        /// Shift of the conversion from TSC to time.
        pub time_shift: u64,
        /// Multiplier of the conversion from TSC to time.
        pub time_mult: u64,
        /// Time of TSC 0 in nanoseconds.
        pub time_zero: u64 as Hex,
        /// Whether `time_zero` is valid.
        pub cap_user_time_zero: u64,
        /// Whether the trace consists of snapshots.
        pub snapshot_mode: u64,
    }
}

wire! {
    /// Arm CoreSight (4.7).
    pub struct CsEtm(layout) => Trace {
        /// Version of the content.
        pub version: u64,
        /// Content.
        #[br(args_raw = (version, layout))]
        pub content: CsEtmContent,
    }
}

choice! {
    /// The words of CoreSight, by version.
    pub enum CsEtmContent(version: u64, layout) {
        /// The first form.
        0 => V0(CsEtm0) with layout,
        /// Units contain their number of words (5.10); with version 2, AUX_OUTPUT_HW_ID records may
        /// contain trace IDs (6.2).
        1 | 2 => V1(CsEtm1) with layout,
        /// A version that this library does not know.
        _ => Unknown(ToEnd<u64> as Opaque) with (8,),
    }
}

bitfield! {
    /// Two numbers in the second word of CoreSight.
    pub struct CsEtmPmu: numeric u64 {
        /// Number of trace units.
        nr_cpus with_nr_cpus 0 32 since "4.9",
        /// Type number of the PMU.
        pmu_type with_pmu_type 32 32 since "4.9",
    }
}

wire! {
    /// CoreSight, version 0.
    pub struct CsEtm0(layout) => Trace {
        /// Number of units, type number of the PMU.
        pub pmu: CsEtmPmu,
        /// Whether the trace consists of snapshots.
        pub snapshot: u64,
        /// One unit for each CPU.
        #[br(args(pmu.nr_cpus(), layout))]
        pub units: ContextList<TraceUnit0>,
    }
}

wire! {
    /// CoreSight, versions 1 and 2.
    pub struct CsEtm1(layout) => Trace {
        /// Number of units, type number of the PMU.
        pub pmu: CsEtmPmu,
        /// Whether the trace consists of snapshots.
        pub snapshot: u64,
        /// One unit for each CPU.
        #[br(args(pmu.nr_cpus(), layout))]
        pub units: ContextList<TraceUnit>,
    }
}

codes! {
    /// Type of a CPU's trace unit.
    pub struct TraceUnitMagic: u64 {
        0x1010_1010_1010_1010 ARM_SPE "arm-spe",
        0x3030_3030_3030_3030 ETMV3 "etmv3",
        0x4040_4040_4040_4040 ETMV4 "etmv4",
        0x5050_5050_5050_5050 ETE "ete",
    }
}

wire! {
    /// One CPU's trace unit, in CoreSight version 0.
    pub struct TraceUnit0(layout) => Trace {
        /// Type of the unit.
        pub magic: TraceUnitMagic,
        /// CPU.
        pub cpu: u64,
        /// Registers.
        #[br(args_raw = (magic, layout))]
        pub params: TraceUnitParams0,
    }
}

choice! {
    /// The registers of a trace unit in CoreSight version 0. Only the magic determines their
    /// number.
    pub enum TraceUnitParams0(magic: TraceUnitMagic, layout) {
        /// Embedded Trace Macrocell, version 3.
        TraceUnitMagic::ETMV3 => Etm3(Etm3) with layout.part(4 * 8),
        /// Embedded Trace Macrocell, version 4.
        TraceUnitMagic::ETMV4 => Etm4(Etm4) with layout.part(7 * 8),
        /// A type that this version of the library does not know, with all data that follows.
        _ => Unknown(ToEnd<u64> as Opaque) with (8,),
    }
}

wire! {
    /// One CPU's trace unit, in CoreSight since version 1 and in SPE since version 2.
    pub struct TraceUnit(layout) => Trace {
        /// Type of the unit.
        pub magic: TraceUnitMagic,
        /// CPU.
        pub cpu: u64,
        /// Number of words that follow.
        pub nr_params: u64,
        /// Words.
        #[br(args_raw = (magic, layout.part(nr_params.saturating_mul(8))))]
        pub params: TraceUnitParams,
    }
}

choice! {
    /// The words of a trace unit, by its magic.
    pub enum TraceUnitParams(magic: TraceUnitMagic, layout) {
        /// Embedded Trace Macrocell, version 3.
        TraceUnitMagic::ETMV3 if layout.words() >= 4 => Etm3(Etm3) with layout,
        /// Embedded Trace Macrocell, version 4.
        TraceUnitMagic::ETMV4 if layout.words() >= 7 => Etm4(Etm4) with layout,
        /// Embedded Trace Extension (5.14).
        TraceUnitMagic::ETE if layout.words() >= 8 => Ete(Ete) with layout,
        /// Statistical Profiling Extension.
        TraceUnitMagic::ARM_SPE if layout.words() >= 3 => ArmSpe(SpeUnit) with layout,
        /// Words without names.
        _ => Words(List<u64> as Hex => Number) with (layout.words(),),
    }
}

wire! {
    /// Registers of an Embedded Trace Macrocell, version 3.
    pub struct Etm3(layout) => Trace {
        /// Main control register.
        pub etmcr: u64 as Hex,
        /// Trace ID.
        pub traceidr: u64 as Hex,
        /// Configuration code extension register.
        pub ccer: u64 as Hex,
        /// ID register.
        pub idr: u64 as Hex,
        /// Words without names.
        #[br(args(layout.words().saturating_sub(4)))]
        pub more: List<u64> as Hex,
    }
}

wire! {
    /// Registers of an Embedded Trace Macrocell, version 4.
    pub struct Etm4(layout) => Trace {
        /// Configuration register.
        pub trcconfigr: u64 as Hex,
        /// Trace ID.
        pub trctraceidr: u64 as Hex,
        /// ID register 0.
        pub trcidr0: u64 as Hex,
        /// ID register 1.
        pub trcidr1: u64 as Hex,
        /// ID register 2.
        pub trcidr2: u64 as Hex,
        /// ID register 8.
        pub trcidr8: u64 as Hex,
        /// Authentication status register.
        pub trcauthstatus: u64 as Hex,
        /// Source of the timestamps (6.5); -1 if unknown.
        #[br(if(layout.words() > 7))]
        pub ts_source: Option<u64> as Optional,
        /// Words without names.
        #[br(args(layout.words().saturating_sub(8)))]
        pub more: List<u64> as Hex,
    }
}

wire! {
    /// Registers of an Embedded Trace Extension.
    pub struct Ete(layout) => Trace {
        /// Configuration register.
        pub trcconfigr: u64 as Hex,
        /// Trace ID.
        pub trctraceidr: u64 as Hex,
        /// ID register 0.
        pub trcidr0: u64 as Hex,
        /// ID register 1.
        pub trcidr1: u64 as Hex,
        /// ID register 2.
        pub trcidr2: u64 as Hex,
        /// ID register 8.
        pub trcidr8: u64 as Hex,
        /// Authentication status register.
        pub trcauthstatus: u64 as Hex,
        /// Device architecture register.
        pub trcdevarch: u64 as Hex,
        /// Source of the timestamps (6.5); -1 if unknown.
        #[br(if(layout.words() > 8))]
        pub ts_source: Option<u64> as Optional,
        /// Words without names.
        #[br(args(layout.words().saturating_sub(9)))]
        pub more: List<u64> as Hex,
    }
}

wire! {
    /// Arm Statistical Profiling Extension as recorded before 6.13, recognised by its size (4.16).
    pub struct ArmSpe1 => Trace {
        /// Type number of the PMU.
        pub pmu_type: u64,
        /// Whether there is one buffer for each CPU.
        pub per_cpu_mmaps: u64,
    }
}

wire! {
    /// Arm Statistical Profiling Extension (6.13).
    pub struct ArmSpe(layout) => Trace {
        /// Version of the content.
        pub version: u64,
        /// Content.
        #[br(args_raw = (version, layout))]
        pub content: ArmSpeContent,
    }
}

choice! {
    /// The words of SPE, by version.
    pub enum ArmSpeContent(version: u64, layout) {
        /// The form of 6.13.
        2 => V2(ArmSpe2) with layout,
        /// A version that this library does not know.
        _ => Unknown(ToEnd<u64> as Opaque) with (8,),
    }
}

wire! {
    /// SPE, version 2.
    pub struct ArmSpe2(layout) => Trace {
        /// Number of words before the first unit, including `version`.
        pub header_words: u64,
        /// Type number of the PMU.
        pub pmu_type: u64,
        /// Number of units.
        pub nr_cpus: u64,
        /// Words of the header without names.
        #[br(args(header_words.saturating_sub(4)))]
        pub more: List<u64> as Hex,
        /// One unit for each CPU.
        #[br(args(nr_cpus, layout))]
        pub units: ContextList<TraceUnit>,
    }
}

wire! {
    /// Properties of a CPU's SPE.
    pub struct SpeUnit(layout) => Trace {
        /// Main ID register of the CPU.
        pub midr: u64 as Hex,
        /// Type number of the CPU's PMU; -1 if it has none.
        pub pmu_type: u64 as Optional,
        /// Smallest interval between two samples.
        pub min_interval: u64,
        /// Events that can be filtered (6.19).
        #[br(if(layout.words() > 3))]
        pub event_filter: Option<u64> as Hex,
        /// Words without names.
        #[br(args(layout.words().saturating_sub(4)))]
        pub more: List<u64> as Hex,
    }
}

wire! {
    /// HiSilicon PCIe Tune and Trace (6.1).
    pub struct HisiPtt => Trace {
        /// Type number of the PMU.
        pub pmu_type: u64,
    }
}

wire! {
    /// PowerPC dispatch trace log (6.18).
    pub struct VpaDtl => Trace {
        /// Reserved, 0.
        pub reserved: u64,
    }
}
