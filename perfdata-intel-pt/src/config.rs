//! How a trace was made, and what is wanted of it.

use crate::event::EventKinds;

/// Where instructions are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Period {
    /// Nowhere.
    #[default]
    None,
    /// After each of so many instructions, 1 or more.
    Instructions(u64),
    /// After each of so many ticks of the time stamp counter. Reduced to a power of 2.
    Ticks(u64),
    /// At MTC packets.
    Mtc,
}

/// How much of the code is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Detail {
    /// All of it.
    #[default]
    Full,
    /// Only the addresses in packets (`q`).
    Addresses,
    /// Only PSB packets and what follows them (`qq`).
    Psb,
}

/// How a trace was made, and what is wanted of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// IA32_RTIT_CTL, as far as it is known: bits 1 (CYC), 13 (branches) and 19 to 22 (threshold of
    /// CYC packets) are used.
    pub ctl: u64,
    /// Whether the processor traces branches.
    pub has_branches: bool,
    /// Whether returns can be compressed.
    pub return_compression: bool,
    /// MTC packets: a multiple of 2 to the power of this number of crystal clocks.
    pub mtc_shift: u32,
    /// Ratio of the time stamp counter to the crystal clock: numerator and denominator; 0 if it is
    /// not known.
    pub tsc_ctc_ratio: (u32, u32),
    /// The highest ratio without turbo, from MSR_PLATFORM_INFO; 0 if it is not known.
    pub max_non_turbo_ratio: u32,
    /// Whether FUP packets can have the address of the next instruction (erratum of some
    /// processors).
    pub fup_with_next_ip: bool,
    /// Where instructions are reported.
    pub period: Period,
    /// How much of the code is followed.
    pub detail: Detail,
    /// Kinds of events to report. Others are reported if they are errors, or returns to user space,
    /// where times are estimated (see [`TraceEvent::is_return_to_user`](crate::TraceEvent::is_return_to_user)).
    /// Without [`EventKinds::BRANCH`], decoding is several times as fast.
    pub wanted: EventKinds,
    /// Whether jumps may be left out of the wanted branches: calls, returns, interrupts, and what
    /// begins or ends tracing are enough for the stack of calls. A call of the next instruction is a
    /// jump. Decoding is faster then.
    pub calls_suffice: bool,
    /// Number of branches without a packet that are regarded as an endless loop.
    pub max_loops: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            ctl: 1 << 13,
            has_branches: true,
            return_compression: false,
            mtc_shift: 0,
            tsc_ctc_ratio: (0, 0),
            max_non_turbo_ratio: 0,
            fup_with_next_ip: false,
            period: Period::None,
            detail: Detail::Full,
            wanted: EventKinds::NONE,
            calls_suffice: false,
            max_loops: 100_000,
        }
    }
}
