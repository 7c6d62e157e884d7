//! The time of what is decoded, from packets TSC, TMA, MTC, CYC and CBR.
//!
//! TSC packets have the time stamp counter, but are rare. MTC packets count clocks of the crystal,
//! whose relation to the time stamp counter a TMA packet says. CYC packets count cycles of the core
//! between them. The ratio of cycles to the time stamp counter follows from the next MTC packet, or
//! else from the core bus ratio. All is calculated as perf does, also the rounding
//! (tools/perf/util/intel-pt-decoder/intel-pt-decoder.c, Linux 7.1).

use crate::config::Config;
use crate::packet::{Cbr, Packet, Tma, Tsc};

/// The times of two processors, or of one with another clock, can go backwards by so many ticks.
const SLIP: u64 = 0x10000;

/// Bits 56 to 63, which TSC packets do not have.
const HIGH: u64 = 0xff << 56;

/// Number of ticks after which the bits of TSC packets repeat.
const WRAP: u64 = 1 << 56;

/// Cycles are traced (IA32_RTIT_CTL.CYCEn).
const CYC_ENABLE: u64 = 1 << 1;

/// The ratio of the time stamp counter to the crystal clock, and the frequency of MTC packets.
#[derive(Debug, Clone, Copy)]
struct Crystal {
    numerator: u32,
    /// 0 if the ratio is not known.
    denominator: u32,
    mtc_shift: u32,
}

impl Crystal {
    /// Returns the number of ticks in so many crystal clocks.
    fn ticks(self, clocks: u64) -> u64 {
        let (n, d) = (u64::from(self.numerator), u64::from(self.denominator));
        let (Some(whole), Some(rest)) = (clocks.checked_div(d), clocks.checked_rem(d)) else {
            return 0;
        };
        let rest = rest.wrapping_mul(n).checked_div(d).unwrap_or(0);
        whole.wrapping_mul(n).wrapping_add(rest)
    }

    /// Returns the clocks of the crystal since the last MTC packet, whose counter was `last`.
    fn clocks_between(self, last: u32, now: u32) -> u64 {
        let passed = match now > last {
            true => now.wrapping_sub(last),
            false => now.wrapping_add(256).wrapping_sub(last),
        };
        u64::from(passed.wrapping_shl(self.mtc_shift))
    }

    /// Returns the counter of the last MTC packet from CTC.
    fn counter(self, ctc: u32) -> u32 {
        ctc.wrapping_shr(self.mtc_shift) & 0xff
    }

    /// Completes the counter from a TMA packet, which lacks bits if the shift is larger than 8, from
    /// the first MTC packet after it.
    fn complete(self, last: u32, now: u32) -> u32 {
        let missing = 1_u32.wrapping_shl(16_u32.wrapping_sub(self.mtc_shift));
        let last = last | now & !missing.wrapping_sub(1);
        match last >= now {
            true => last.wrapping_sub(missing) & 0xff,
            false => last,
        }
    }

    /// Returns the tick at which CTC changed last.
    fn start(self, tsc: u64, tma: &Tma) -> u64 {
        let behind =
            u64::from(tma.ctc) & u64::from(1_u32.wrapping_shl(self.mtc_shift).wrapping_sub(1));
        tsc.wrapping_sub(tma.fast_counter.into())
            .wrapping_sub(self.ticks(behind))
    }
}

/// MTC packets since the last TMA packet.
#[derive(Debug, Clone, Copy, Default)]
struct CrystalTime {
    /// Whether there was a TMA packet.
    is_known: bool,
    /// The tick of the TMA packet.
    start: u64,
    /// Crystal clocks since then.
    clocks: u64,
    /// Counter of the last MTC packet.
    last: u32,
    /// Whether `last` is to be completed.
    is_incomplete: bool,
}

impl CrystalTime {
    /// Processes an MTC packet. Returns its time.
    fn advance(&mut self, crystal: Crystal, ctc: u8) -> u64 {
        let now = u32::from(ctc);
        if crystal.mtc_shift > 8 && self.is_incomplete {
            self.is_incomplete = false;
            self.last = crystal.complete(self.last, now);
        }
        let passed = crystal.clocks_between(self.last, now);
        self.clocks = self.clocks.wrapping_add(passed);
        self.last = now;
        self.start.wrapping_add(crystal.ticks(self.clocks))
    }
}

/// The clock.
#[derive(Debug, Clone)]
pub(super) struct TraceClock {
    crystal: Crystal,
    max_non_turbo_ratio: f64,
    /// A time near the next TSC packet; 0 if there is none.
    pub(super) reference: u64,
    /// The time near the start of the buffer.
    pub(super) buffer_reference: u64,
    /// The time; 0 if it is not known.
    pub(super) time: u64,
    /// The time of the last TSC packet.
    pub(super) tsc: u64,
    /// Instructions since the time changed.
    pub(super) instructions: u64,
    mtc: CrystalTime,
    /// Where cycles begin to count.
    cycle_start: u64,
    /// Cycles since then.
    cycles: u64,
    /// Ticks per cycle, as found from packets.
    measured: Option<f64>,
    /// Ticks per cycle by the core bus ratio.
    by_ratio: f64,
    /// The core bus ratio; 0 if it is not known.
    pub(super) ratio: u32,
    /// The payload of its packet.
    pub(super) cbr: u64,
    /// Whether there was a CYC packet.
    pub(super) has_cyc: bool,
    /// All cycles.
    pub(super) all_cycles: u64,
    /// Whether `all_cycles` is of this moment.
    pub(super) cycles_are_new: bool,
    base_cycles: u64,
    base_time: u64,
    cycles_per_tick: f64,
}

/// What the packets after an MTC packet say about the length of a cycle.
#[derive(Debug)]
pub(super) struct CycleSearch {
    mtc: CrystalTime,
    time: u64,
    cycles: u64,
    ratio: u32,
    by_ratio: f64,
}

impl TraceClock {
    pub(super) fn new(config: &Config) -> Self {
        let (numerator, denominator) = config.tsc_ctc_ratio;
        TraceClock {
            crystal: Crystal {
                numerator,
                denominator: if numerator == 0 { 0 } else { denominator },
                mtc_shift: config.mtc_shift,
            },
            max_non_turbo_ratio: config.max_non_turbo_ratio.into(),
            reference: 0,
            buffer_reference: 0,
            time: 0,
            tsc: 0,
            instructions: 0,
            mtc: CrystalTime::default(),
            cycle_start: 0,
            cycles: 0,
            measured: None,
            by_ratio: 0.0,
            ratio: 0,
            cbr: 0,
            has_cyc: false,
            all_cycles: 0,
            cycles_are_new: false,
            base_cycles: 0,
            base_time: 0,
            cycles_per_tick: 0.0,
        }
    }

    /// Returns whether CYC packets are only written after a number of cycles.
    pub(super) fn has_threshold(config: &Config) -> bool {
        config.ctl & CYC_ENABLE != 0 && config.ctl >> 19 & 0xf != 0
    }

    /// Forgets the time: data are missing.
    pub(super) fn lose(&mut self) {
        self.time = 0;
        self.mtc.is_known = false;
    }

    /// Notes that MTC packets have no meaning up to the next TMA packet.
    pub(super) fn lose_crystal(&mut self) {
        self.mtc.is_known = false;
    }

    /// Processes a TSC packet. `after_cyc` says whether a CYC packet was before it.
    pub(super) fn tsc(&mut self, packet: Tsc, after_cyc: bool) {
        self.mtc.is_known = false;
        if self.reference != 0 {
            let time = near(packet.tsc, self.reference);
            (self.tsc, self.time) = (time, time);
            self.reference = 0;
            self.instructions = 0;
        } else if self.time != 0 {
            let mut time = packet.tsc | self.time & HIGH;
            self.tsc = time;
            if time < self.time && self.time.wrapping_sub(time) < SLIP {
                time = self.time;
            }
            if time < self.time {
                let wrapped = time.wrapping_add(WRAP);
                if self.buffer_reference == 0 || wrapped < self.buffer_reference {
                    time = wrapped;
                    self.tsc = time;
                } else {
                    time = self.time;
                }
            }
            self.time = time;
            self.instructions = 0;
        }
        if after_cyc {
            self.restart_cycles();
            self.measured = None;
        }
    }

    fn restart_cycles(&mut self) {
        self.cycle_start = self.time;
        self.cycles = 0;
    }

    /// Processes a TMA packet. `is_tracing` says whether code is traced, outside of a PSB+.
    pub(super) fn tma(&mut self, packet: &Tma, is_tracing: bool, is_on: bool) {
        if self.crystal.denominator == 0 {
            return;
        }
        if is_tracing {
            self.start_tracing();
        } else {
            self.update_cycles(is_on);
        }
        self.mtc = CrystalTime {
            is_known: true,
            start: self.crystal.start(self.tsc, packet),
            clocks: 0,
            last: self.crystal.counter(packet.ctc.into()),
            is_incomplete: true,
        };
    }

    /// Processes an MTC packet. Returns whether the length of a cycle is to be found from the
    /// packets after it.
    pub(super) fn mtc(&mut self, ctc: u8, after_cyc: bool, is_on: bool) -> bool {
        if !self.mtc.is_known {
            return false;
        }
        let time = self.mtc.advance(self.crystal, ctc);
        if time >= self.time {
            self.time = time;
        }
        self.update_cycles(is_on);
        self.instructions = 0;
        if after_cyc {
            self.restart_cycles();
            self.measured = None;
        }
        after_cyc
    }

    /// Returns a search for the length of a cycle, for the packets after an MTC packet.
    pub(super) fn search(&self) -> CycleSearch {
        CycleSearch {
            mtc: self.mtc,
            time: self.time,
            cycles: 0,
            ratio: 0,
            by_ratio: 0.0,
        }
    }

    /// Passes the next packet to a search. Returns whether it ended.
    pub(super) fn look(
        &mut self,
        search: &mut CycleSearch,
        packet: &Packet,
        after_cyc: bool,
    ) -> bool {
        match packet {
            Packet::Mtc(mtc) => {
                if !search.mtc.is_known {
                    return false;
                }
                let time = search.mtc.advance(self.crystal, mtc.ctc);
                if time < search.time {
                    return true;
                }
                if !after_cyc {
                    search.time = time;
                    return false;
                }
                self.measure(search, time);
                true
            }
            Packet::Cyc(cyc) => {
                search.cycles = search.cycles.wrapping_add(cyc.cycles);
                false
            }
            Packet::Cbr(cbr) => {
                let ratio = u32::from(cbr.ratio) | u32::from(cbr.reserved) << 8;
                if search.ratio != 0 && search.ratio != ratio {
                    return true;
                }
                search.ratio = ratio;
                search.by_ratio = self.max_non_turbo_ratio / f64::from(ratio);
                false
            }
            Packet::Tnt(_)
            | Packet::TipPge(_)
            | Packet::Tip(_)
            | Packet::Fup(_)
            | Packet::Psb
            | Packet::Pip(_)
            | Packet::ModeExec(_)
            | Packet::ModeTsx(_)
            | Packet::PsbEnd
            | Packet::Pad
            | Packet::Vmcs(_)
            | Packet::Mnt(_)
            | Packet::Ptwrite4(_)
            | Packet::Ptwrite8(_)
            | Packet::Bbp(_)
            | Packet::Bip4(_)
            | Packet::Bip8(_)
            | Packet::Bep(_)
            | Packet::Cfe(_)
            | Packet::Evd(_) => false,
            _ => true,
        }
    }

    fn measure(&mut self, search: &mut CycleSearch, time: u64) {
        if search.ratio == 0 && self.ratio != 0 {
            (search.ratio, search.by_ratio) = (self.ratio, self.by_ratio);
        }
        if search.cycles == 0 {
            return;
        }
        let measured = time.wrapping_sub(self.time) as f64 / search.cycles as f64;
        // The processor slept, or was not traced.
        let is_too_long =
            search.ratio != 0 && measured > search.by_ratio && measured / search.by_ratio > 1.25;
        if !is_too_long {
            self.measured = Some(measured);
        }
    }

    /// Processes a CBR packet.
    pub(super) fn cbr(&mut self, packet: &Cbr, is_on: bool) {
        self.cbr = u64::from(packet.ratio) | u64::from(packet.reserved) << 8;
        let ratio = u32::from(packet.ratio);
        if self.ratio == ratio {
            return;
        }
        self.ratio = ratio;
        self.by_ratio = self.max_non_turbo_ratio / f64::from(ratio);
        self.restart_cycles();
        self.cycles_per_tick = f64::from(ratio) / self.max_non_turbo_ratio;
        if is_on {
            self.start_tracing();
        }
    }

    /// Processes a CYC packet.
    pub(super) fn cyc(&mut self, cycles: u64, is_on: bool) {
        self.has_cyc = true;
        self.cycles = self.cycles.wrapping_add(cycles);
        if is_on {
            self.all_cycles = self.all_cycles.wrapping_add(cycles);
        }
        self.cycles_are_new = true;
        if self.cycle_start == 0 {
            return;
        }
        let length = match self.measured {
            Some(measured) => measured,
            None if self.ratio != 0 => self.by_ratio,
            None => return,
        };
        let time = (self.cycle_start as f64 + self.cycles as f64 * length) as u64;
        if time >= self.time {
            self.time = time;
        }
        self.instructions = 0;
    }

    /// Without CYC packets, cycles are calculated from times while code is traced, from here on.
    pub(super) fn start_tracing(&mut self) {
        if !self.has_cyc {
            self.base_time = self.time;
            self.base_cycles = self.all_cycles;
        }
    }

    fn update_cycles(&mut self, is_on: bool) {
        if self.has_cyc {
            return;
        }
        self.cycles_are_new = true;
        if !is_on || self.time <= self.base_time {
            return;
        }
        let passed = self.time.wrapping_sub(self.base_time) as f64;
        let cycles = (passed * self.cycles_per_tick + self.base_cycles as f64) as u64;
        self.all_cycles = self.all_cycles.max(cycles);
    }
}

/// Returns the time with the low 56 bits `low` that is nearest to `reference`.
fn near(low: u64, reference: u64) -> u64 {
    let time = low | reference & HIGH;
    let half = WRAP >> 1;
    if time < reference && reference.wrapping_sub(time) > half {
        time.wrapping_add(WRAP)
    } else if time > reference && time.wrapping_sub(reference) > half {
        time.wrapping_sub(WRAP)
    } else {
        time
    }
}
