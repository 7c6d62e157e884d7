//! The packets that a processor writes while a program runs.

use perfdata_intel_pt::{
    Bbp, Bep, Bip8, Cbr, Cfe, CompressedIp, Cyc, Evd, Exstop, ModeExec, ModeTsx, Mtc, Mwait,
    Packet, Ptwrite8, Pwre, Pwrx, Tma, Tnt, Tsc,
};

use super::program::{Does, Program};
use crate::generate::random::Random;

/// What is traced.
#[derive(Debug, Clone, Copy, Default)]
pub struct Features {
    /// Returns to where the processor expects them are bits of TNT packets.
    pub return_compression: bool,
    /// Times.
    pub tsc: bool,
    /// Times of the crystal clock between them.
    pub mtc: bool,
    /// Cycles between those.
    pub cyc: bool,
    /// Interrupts.
    pub interrupts: bool,
    /// Packets about power, PTWRITE, transactions, interrupts and blocks.
    pub others: bool,
    /// The processor loses packets.
    pub overflows: bool,
}

/// The crystal clock ticks twice in five ticks of the time stamp counter; an MTC packet is written
/// for each eighth tick.
pub const TSC_CTC: (u32, u32) = (5, 2);
/// The period of MTC packets, as a power of 2.
pub const MTC_SHIFT: u32 = 3;

/// Maximum number of calls that the processor notes.
const CALLS: usize = 64;

/// Writes packets.
#[derive(Debug)]
pub struct Encoder {
    /// The packets so far.
    pub bytes: Vec<u8>,
    features: Features,
    random: Random,
    taken: Vec<bool>,
    last_ip: u64,
    calls: Vec<u64>,
    /// Time stamp counter.
    pub now: u64,
    /// Time of the last CYC packet.
    cycles_from: u64,
    last_mtc: u64,
    /// Size at the last PSB packet.
    last_psb: usize,
    ratio: u8,
    interrupts: bool,
}

impl Encoder {
    /// Returns an encoder that begins at the time `now`.
    pub fn new(features: Features, seed: u64, now: u64) -> Self {
        Encoder {
            bytes: Vec::new(),
            features,
            random: Random(seed),
            taken: Vec::new(),
            last_ip: 0,
            calls: Vec::new(),
            now,
            cycles_from: now,
            last_mtc: 0,
            last_psb: 0,
            ratio: 20,
            interrupts: true,
        }
    }

    fn packet(&mut self, packet: Packet) {
        self.flush();
        packet.write(&mut self.bytes);
    }

    /// Writes the conditional branches so far.
    fn flush(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        self.cycles();
        let taken = std::mem::take(&mut self.taken);
        let tnt = Tnt::new(&taken).expect("up to 47 branches");
        Packet::Tnt(tnt).write(&mut self.bytes);
    }

    fn branch(&mut self, is_taken: bool) {
        self.taken.push(is_taken);
        let most = [6, 6, 6, 47][self.random.below(4) as usize];
        if self.taken.len() >= most {
            self.flush();
        }
    }

    /// Returns an address as it is written now.
    fn ip(&mut self, ip: u64) -> CompressedIp {
        let compressed = CompressedIp::after(self.last_ip, ip);
        self.last_ip = ip;
        compressed
    }

    fn ctc(&self) -> u64 {
        self.now * u64::from(TSC_CTC.1) / u64::from(TSC_CTC.0)
    }

    fn cycles(&mut self) {
        if self.features.cyc && self.now > self.cycles_from {
            let passed = self.now - self.cycles_from;
            self.cycles_from = self.now;
            Packet::Cyc(Cyc::new(passed * 3 / 2)).write(&mut self.bytes);
        }
    }

    /// Time passes.
    fn tick(&mut self) {
        self.now += 1 + self.random.below(4);
        let mtc = self.ctc() >> MTC_SHIFT;
        if self.features.mtc && mtc != self.last_mtc {
            self.flush();
            if self.random.below(3) > 0 {
                self.cycles();
            }
            self.last_mtc = mtc;
            self.packet(Packet::Mtc(Mtc { ctc: mtc as u8 }));
        }
    }

    /// Writes PSB and the packets of state after it, where `ip` is the next instruction if the
    /// program is traced.
    pub fn psb(&mut self, ip: Option<u64>) {
        self.packet(Packet::Psb);
        self.last_ip = 0;
        self.calls.clear();
        self.last_psb = self.bytes.len();
        if self.features.tsc {
            self.packet(Packet::Tsc(Tsc { tsc: self.now }));
            if self.features.mtc {
                let ctc = self.ctc();
                self.last_mtc = ctc >> MTC_SHIFT;
                let since = self.now - ctc * u64::from(TSC_CTC.0) / u64::from(TSC_CTC.1);
                self.packet(Packet::Tma(Tma {
                    ctc: ctc as u16,
                    reserved: 0,
                    fast_counter: since as u16,
                    reserved_high: 0,
                }));
            }
            self.packet(Packet::Cbr(Cbr {
                ratio: self.ratio,
                reserved: 0,
            }));
        }
        self.mode();
        if let Some(ip) = ip {
            let ip = self.ip(ip);
            self.packet(Packet::Fup(ip));
        }
        self.packet(Packet::PsbEnd);
    }

    fn mode(&mut self) {
        self.packet(Packet::ModeExec(ModeExec {
            is_long: true,
            interrupts: self.interrupts,
            ..ModeExec::default()
        }));
    }

    /// Tracing begins.
    pub fn begin(&mut self, ip: u64) {
        if self.bytes.is_empty() {
            self.psb(None);
        }
        let ip = self.ip(ip);
        self.flush();
        self.cycles();
        self.packet(Packet::TipPge(ip));
    }

    /// Tracing is interrupted before the instruction at `ip`.
    pub fn stop(&mut self, ip: u64) {
        self.flush();
        self.fup(ip);
        self.packet(Packet::TipPgd(CompressedIp::Suppressed));
    }

    /// Tracing ends.
    fn end(&mut self) {
        self.flush();
        self.cycles();
        self.packet(Packet::TipPgd(CompressedIp::Suppressed));
    }

    fn tip(&mut self, ip: u64) {
        self.flush();
        if self.random.below(2) == 0 {
            self.cycles();
        }
        let ip = self.ip(ip);
        self.packet(Packet::Tip(ip));
    }

    fn fup(&mut self, ip: u64) {
        let ip = self.ip(ip);
        self.packet(Packet::Fup(ip));
    }

    /// Writes the packets of a run. Returns the branches, with 0 for what is not traced.
    pub fn run(&mut self, program: &Program, run: &[u64]) -> Vec<(u64, u64)> {
        let mut branches = vec![(0, run[0])];
        self.begin(run[0]);
        let mut lost = 0;
        for pair in run.windows(2) {
            let (ip, to) = (pair[0], pair[1]);
            self.tick();
            if lost > 0 {
                lost -= 1;
                if lost == 0 {
                    self.fup(ip);
                } else {
                    continue;
                }
            } else {
                self.at(ip, &mut branches, &mut lost);
                if lost > 0 {
                    continue;
                }
            }
            let instruction = &program.instructions[&ip];
            let next = ip + instruction.size;
            match &instruction.does {
                Does::Nothing => continue,
                Does::Conditional(_) => {
                    self.branch(to != next);
                    if to == next {
                        continue;
                    }
                }
                Does::Jump(_) => {}
                Does::Call(_) => self.call(next),
                Does::IndirectCall(_) => {
                    self.call(next);
                    self.tip(to);
                }
                Does::IndirectJump(_) => self.tip(to),
                Does::Return => {
                    let known = self.calls.pop();
                    if self.features.return_compression && known == Some(to) {
                        self.branch(true);
                    } else {
                        self.tip(to);
                    }
                }
                Does::SystemCall => {
                    self.end();
                    if self.bytes.len() > self.last_psb + 700 {
                        self.psb(None);
                    }
                    self.begin(to);
                    branches.extend([(ip, 0), (0, to)]);
                    continue;
                }
            }
            branches.push((ip, to));
            if self.bytes.len() > self.last_psb + 900 {
                self.psb(Some(to));
            }
        }
        branches
    }

    fn call(&mut self, next: u64) {
        if self.calls.len() == CALLS {
            self.calls.remove(0);
        }
        self.calls.push(next);
    }

    /// Writes what happens before an instruction, besides branches.
    fn at(&mut self, ip: u64, branches: &mut Vec<(u64, u64)>, lost: &mut u64) {
        let features = self.features;
        if features.interrupts && self.random.below(150) == 0 {
            self.stop(ip);
            self.now += 500 + self.random.below(1000);
            if features.tsc && !features.mtc {
                self.packet(Packet::Tsc(Tsc { tsc: self.now }));
            }
            self.calls.clear();
            self.begin(ip);
            branches.extend([(ip, 0), (0, ip)]);
        }
        if features.overflows && self.random.below(400) == 0 {
            self.taken.clear();
            self.packet(Packet::Ovf);
            self.calls.clear();
            *lost = 3 + self.random.below(40);
            return;
        }
        if features.others && self.random.below(40) == 0 {
            self.other(ip);
        }
    }

    fn other(&mut self, ip: u64) {
        let value = self.random.word();
        match self.random.below(10) {
            0 => {
                let has_ip = true;
                self.packet(Packet::Ptwrite8(Ptwrite8 {
                    has_ip,
                    payload: value,
                }));
                self.fup(ip);
            }
            1 => {
                let has_ip = false;
                self.packet(Packet::Ptwrite8(Ptwrite8 {
                    has_ip,
                    payload: value,
                }));
            }
            2 => {
                self.packet(Packet::Mwait(Mwait {
                    hints: value as u8,
                    reserved: 0,
                    extensions: 1,
                    reserved_high: 0,
                }));
                self.packet(Packet::Pwre(Pwre {
                    reserved: 0,
                    is_hardware: false,
                    sub_c_state: 1,
                    c_state: 2,
                }));
                self.packet(Packet::Exstop(Exstop { has_ip: true }));
                self.fup(ip);
                self.packet(Packet::Pwrx(Pwrx {
                    deepest_c_state: 2,
                    last_c_state: 3,
                    wake_reason: 4,
                    reserved: 0,
                }));
            }
            3 => self.packet(Packet::Exstop(Exstop { has_ip: false })),
            4 => {
                self.ratio = 16 + (value % 12) as u8;
                let (ratio, reserved) = (self.ratio, 0);
                self.packet(Packet::Cbr(Cbr { ratio, reserved }));
            }
            5 => {
                for _ in 0..value % 3 {
                    self.packet(Packet::Evd(Evd {
                        kind: 1,
                        reserved: 0,
                        payload: value,
                    }));
                }
                self.packet(Packet::Cfe(Cfe {
                    event: 3,
                    reserved: 0,
                    has_ip: true,
                    vector: value as u8,
                }));
                self.fup(ip);
            }
            6 => {
                self.interrupts = !self.interrupts;
                self.mode();
                self.fup(ip);
            }
            7 => {
                let in_tx = value & 1 == 0;
                self.packet(Packet::ModeTsx(ModeTsx {
                    in_tx,
                    is_abort: false,
                    reserved: 0,
                }));
                self.fup(ip);
            }
            8 => {
                self.packet(Packet::Bbp(Bbp {
                    block_type: 4,
                    reserved: 0,
                    has_4_bytes: false,
                }));
                self.packet(Packet::Bip8(Bip8 { id: 0, value: ip }));
                self.packet(Packet::Bep(Bep { has_ip: true }));
                self.fup(ip);
            }
            _ => self.packet(Packet::Exstop(Exstop { has_ip: false })),
        }
    }

    /// Returns the trace, padded.
    pub fn finish(mut self) -> Vec<u8> {
        self.flush();
        super::aligned(self.bytes)
    }
}
