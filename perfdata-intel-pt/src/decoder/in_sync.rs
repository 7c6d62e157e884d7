//! Packets while it is known where the code is.

use super::clock::TraceClock;
use super::reader::Stop;
use super::{Activity, Decoder, Result, StepResult};
use crate::blocks::BasicBlocks;
use crate::config::Detail;
use crate::event::{DecodeError, EventKinds};
use crate::packet::{ModeExec, ModeTsx, Packet};
use crate::source::{CodeSource, TraceSource};

/// What is to do with a packet if only addresses are wanted.
enum Hop {
    /// The same as otherwise.
    Process,
    /// Nothing.
    Ignore,
    /// Process the packet that is the current one now.
    Again,
    Event,
}

impl Decoder {
    /// Processes packets up to the next event.
    pub(super) fn packets<T: TraceSource, C: CodeSource>(
        &mut self,
        trace: &mut T,
        code: &mut C,
        blocks: &mut BasicBlocks,
    ) -> Result<StepResult, T::Error> {
        let has_threshold = TraceClock::has_threshold(&self.config);
        let mut after_cyc = false;
        let mut packet = self.reader.next(trace)?;
        loop {
            // CYC packets that are too short are not written: only the packet after one has the
            // cycles of its moment.
            if has_threshold {
                if !after_cyc {
                    self.clock.cycles_are_new = false;
                }
                after_cyc = matches!(packet, Packet::Cyc(_));
            }
            if self.hops() {
                match self.hop(packet, trace)? {
                    Hop::Process => packet = self.reader.packet,
                    Hop::Event => return Ok(StepResult::Event),
                    Hop::Again => {
                        packet = self.reader.packet;
                        continue;
                    }
                    Hop::Ignore => {
                        packet = self.reader.next(trace)?;
                        continue;
                    }
                }
            }
            if let Some(found) = self.packet(packet, trace, code, blocks)? {
                match found {
                    Next::Event => return Ok(StepResult::Event),
                    Next::This(other) => {
                        packet = other;
                        continue;
                    }
                }
            }
            packet = self.reader.next(trace)?;
        }
    }

    /// Processes a packet. `None`: continue with the next one.
    #[inline]
    fn packet<T: TraceSource, C: CodeSource>(
        &mut self,
        packet: Packet,
        trace: &mut T,
        code: &mut C,
        blocks: &mut BasicBlocks,
    ) -> Result<Option<Next>, T::Error> {
        let event = |found: StepResult| (found == StepResult::Event).then_some(Next::Event);
        match packet {
            Packet::Tnt(tnt) => match self.begin_tnt(tnt) {
                true => self.walk_tnt(trace, code, blocks).map(event),
                false => Ok(None),
            },
            Packet::Tip(ip) | Packet::TipPgd(ip) => {
                if ip.payload_size() != 0 {
                    self.set_last_ip(ip);
                }
                self.task = match packet {
                    Packet::Tip(_) => Activity::Tip,
                    _ => Activity::TipPgd,
                };
                self.walk_tip(code, blocks).map(event)
            }
            Packet::TipPge(ip) => {
                self.is_on = true;
                self.has_overflowed = false;
                self.clock.start_tracing();
                self.set_guest();
                if ip.payload_size() == 0 {
                    return Ok(None);
                }
                self.report_interrupts_if_changed();
                self.set_ip(ip);
                (self.event.from, self.event.to) = (0, self.ip);
                self.event.add(EventKinds::TRACE_BEGIN);
                if self.hops() {
                    self.task = Activity::Report;
                }
                Ok(Some(Next::Event))
            }
            Packet::Fup(ip) => {
                if ip.payload_size() == 0 {
                    self.no_tip = false;
                    return Ok(None);
                }
                self.set_last_ip(ip);
                if !self.config.has_branches || !self.is_on {
                    self.ip = self.last_ip;
                    if self.update(self.no_tip, Some((code, blocks))) {
                        return Ok(Some(Next::Event));
                    }
                    self.no_tip = false;
                    return Ok(None);
                }
                let no_tip = self.no_tip || self.updates.mwait.is_some();
                self.no_tip = false;
                self.task = match no_tip {
                    true => Activity::Fup,
                    false => Activity::FupAndTip,
                };
                match self.walk_fup(code, blocks)? {
                    StepResult::Event => Ok(Some(Next::Event)),
                    StepResult::Nothing if no_tip => Ok(None),
                    StepResult::Nothing => self.fup_tip(trace).map(event),
                }
            }
            Packet::Psb => match self.psb(trace, code, blocks)? {
                StepResult::Event => Ok(Some(Next::Event)),
                StepResult::Nothing => Ok(Some(Next::This(self.reader.packet))),
            },
            Packet::Ovf => Err(self.overflow()),
            Packet::TraceStop => {
                self.turn_off();
                self.leave_tx();
                self.clock.lose_crystal();
                Ok(None)
            }
            Packet::Cbr(_) => {
                self.time_packet(&packet, trace)?;
                if self.clock.ratio == self.event.core_bus_ratio {
                    return Ok(None);
                }
                self.event.kinds = EventKinds::NONE;
                Ok(Some(Next::Event))
            }
            Packet::Mtc(_) => {
                self.time_packet(&packet, trace)?;
                // An instruction since the last one, and a time.
                if !self.counter.is_by_mtc() || !std::mem::take(&mut self.counter.has_instruction) {
                    return Ok(None);
                }
                if self.clock.time == 0 {
                    return Ok(None);
                }
                self.report(EventKinds::INSTRUCTION);
                Ok(Some(Next::Event))
            }
            Packet::Tsc(_) | Packet::Tma(_) | Packet::Cyc(_) => {
                self.time_packet(&packet, trace)?;
                Ok(None)
            }
            other => self.other(other, trace),
        }
    }

    /// Processes a packet that is neither about the flow nor about the time.
    fn other<T: TraceSource>(
        &mut self,
        packet: Packet,
        trace: &mut T,
    ) -> Result<Option<Next>, T::Error> {
        match packet {
            Packet::Pip(pip) => self.pip_is_guest = pip.non_root,
            Packet::ModeExec(mode) => {
                self.mode_next(mode);
                let next = self.reader.next(trace)?;
                if matches!(next, Packet::Fup(_)) {
                    self.updates.mode = true;
                    self.no_tip = true;
                }
                return Ok(Some(Next::This(next)));
            }
            Packet::ModeTsx(mode) => {
                if !self.is_on || self.in_psb {
                    self.in_tx_now(mode);
                    return Ok(None);
                }
                let next = self.reader.next(trace)?;
                if matches!(next, Packet::Fup(_)) {
                    self.updates.tsx = Some(mode);
                    self.no_tip |= !mode.is_abort;
                } else {
                    self.in_tx_next(next);
                }
                return Ok(Some(Next::This(next)));
            }
            Packet::Ptwrite4(write) => {
                return self.ptwrite(write.payload.into(), write.has_ip, trace);
            }
            Packet::Ptwrite8(write) => return self.ptwrite(write.payload, write.has_ip, trace),
            Packet::Mwait(wait) => self.updates.mwait = Some(wait.payload()),
            Packet::Pwre(entry) => {
                if self.updates.mwait.is_some() {
                    self.updates.power_entry = Some(entry.payload());
                    return Ok(None);
                }
                // perf reports the payload of the last exit.
                self.event.power_exit = entry.payload();
                self.report(EventKinds::POWER_ENTRY);
                return Ok(Some(Next::Event));
            }
            Packet::Exstop(stop) if stop.has_ip => {
                return self.with_fup(trace, |updates| updates.execution_stop = true);
            }
            Packet::Exstop(_) => {
                self.report(EventKinds::EXECUTION_STOP);
                return Ok(Some(Next::Event));
            }
            Packet::Pwrx(exit) => {
                self.event.power_exit = exit.payload();
                self.report(EventKinds::POWER_EXIT);
                return Ok(Some(Next::Event));
            }
            Packet::Bbp(block) => self.begin_block(block.block_type, block.has_4_bytes),
            Packet::Bip4(item) => self.add_item(item.id, item.value.into()),
            Packet::Bip8(item) => self.add_item(item.id, item.value),
            Packet::Bep(end) if end.has_ip => {
                return self.with_fup(trace, |updates| updates.block_end = true);
            }
            Packet::Bep(_) => {
                self.report(EventKinds::BLOCK);
                return Ok(Some(Next::Event));
            }
            Packet::Cfe(event) if event.has_ip => {
                return self.with_fup(trace, |updates| updates.cfe = Some((event, true)));
            }
            Packet::Cfe(event) => {
                self.updates.cfe = Some((event, false));
                if !self.is_on {
                    self.update::<NoCodeHere>(true, None);
                    return Ok(Some(Next::Event));
                }
            }
            Packet::Evd(evd) if !self.updates.add(evd) => {
                return Err(Stop::Error(DecodeError::Internal));
            }
            _ => {}
        }
        Ok(None)
    }

    fn ptwrite<T: TraceSource>(
        &mut self,
        operand: u64,
        has_ip: bool,
        trace: &mut T,
    ) -> Result<Option<Next>, T::Error> {
        if has_ip {
            return self.with_fup(trace, |updates| updates.ptwrite = Some(operand));
        }
        self.event.ptwrite = operand;
        self.report(EventKinds::PTWRITE);
        Ok(Some(Next::Event))
    }

    /// Reads the FUP packet that a packet is followed by, and notes what belongs to it.
    fn with_fup<T: TraceSource>(
        &mut self,
        trace: &mut T,
        note: impl FnOnce(&mut super::Updates),
    ) -> Result<Option<Next>, T::Error> {
        let next = self.reader.next(trace)?;
        if matches!(next, Packet::Fup(_)) {
            note(&mut self.updates);
            self.no_tip = true;
        }
        Ok(Some(Next::This(next)))
    }

    /// Processes a packet about the time. Returns whether it is one.
    #[inline]
    pub(super) fn time_packet<T: TraceSource>(
        &mut self,
        packet: &Packet,
        trace: &mut T,
    ) -> Result<bool, T::Error> {
        let after_cyc = self.reader.after_cyc;
        match packet {
            Packet::Tsc(tsc) => self.clock.tsc(*tsc, after_cyc),
            Packet::Tma(tma) => self.clock.tma(tma, self.is_on && !self.in_psb, self.is_on),
            Packet::Cyc(cyc) => self.clock.cyc(cyc.cycles, self.is_on),
            Packet::Cbr(cbr) => self.clock.cbr(cbr, self.is_on),
            Packet::Mtc(mtc) => {
                if self.clock.mtc(mtc.ctc, after_cyc, self.is_on) {
                    let mut search = self.clock.search();
                    let clock = &mut self.clock;
                    self.reader.peek(trace, |packet, after_cyc| {
                        clock.look(&mut search, packet, after_cyc)
                    })?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Processes the packets after a FUP packet, up to that of the branch there.
    pub(super) fn fup_tip<T: TraceSource>(
        &mut self,
        trace: &mut T,
    ) -> Result<StepResult, T::Error> {
        if std::mem::take(&mut self.is_abort) {
            self.in_tx = false;
            (self.event.in_tx, self.event.is_abort) = (false, true);
        } else {
            self.event.is_asynchronous = true;
        }
        loop {
            let packet = self.reader.next(trace)?;
            match packet {
                Packet::Cbr(_) | Packet::Cyc(_) => {
                    self.time_packet(&packet, trace)?;
                }
                Packet::Mtc(_) => {
                    self.time_packet(&packet, trace)?;
                    if self.counter.is_by_mtc() {
                        self.event.add(EventKinds::INSTRUCTION);
                    }
                }
                Packet::Ovf => return Err(self.overflow()),
                Packet::TipPgd(ip) | Packet::Tip(ip) | Packet::TipPge(ip) => {
                    let begins = matches!(packet, Packet::TipPge(_));
                    self.event.from = if begins { 0 } else { self.ip };
                    self.event.to = 0;
                    if ip.payload_size() != 0 {
                        self.set_ip(ip);
                        self.event.to = self.ip;
                    }
                    match packet {
                        Packet::TipPgd(_) => {
                            self.turn_off();
                            self.event.add(EventKinds::TRACE_END);
                            self.next_is_guest = self.pip_is_guest;
                        }
                        Packet::TipPge(_) => {
                            self.is_on = true;
                            self.event.add(EventKinds::TRACE_BEGIN);
                            self.clock.start_tracing();
                            self.set_guest();
                        }
                        _ => {
                            self.next_is_guest = self.pip_is_guest;
                            self.report_interrupts_if_changed();
                        }
                    }
                    return Ok(StepResult::Event);
                }
                Packet::Pip(pip) => self.pip_is_guest = pip.non_root,
                Packet::ModeExec(mode) => self.mode_next(mode),
                Packet::Vmcs(_) | Packet::Mnt(_) => {}
                _ => {
                    self.task = Activity::FindIpAgain;
                    self.reader.unread();
                    return Err(Stop::Error(DecodeError::Mismatch));
                }
            }
        }
    }

    /// Processes an OVF packet.
    pub(super) fn overflow<E>(&mut self) -> Stop<E> {
        self.leave_tx();
        self.set_guest();
        self.clock.instructions = 0;
        self.task = Activity::Packets;
        self.event.from = self.ip;
        self.ip = 0;
        self.is_on = false;
        self.clear_updates();
        self.has_overflowed = true;
        Stop::Error(DecodeError::Overflow)
    }

    pub(super) fn leave_tx(&mut self) {
        (self.in_tx, self.is_abort) = (false, false);
    }

    /// The packet says what the mode is.
    pub(super) fn mode_now(&mut self, mode: ModeExec) {
        self.mode_next(mode);
        self.interrupts = mode.interrupts;
        self.event.interrupts_from = mode.interrupts;
        self.event.interrupts_to = mode.interrupts;
    }

    /// The packet says what the mode is after the next branch.
    fn mode_next(&mut self, mode: ModeExec) {
        self.bits = mode.bits();
        self.next_interrupts = mode.interrupts;
    }

    pub(super) fn in_tx_now(&mut self, mode: ModeTsx) {
        (self.in_tx, self.is_abort) = (mode.in_tx, false);
    }

    /// After MODE.TSX is no FUP packet: perf takes the bit from the packet that is there.
    fn in_tx_next(&mut self, next: Packet) {
        let payload = match next {
            Packet::Tip(ip) | Packet::TipPgd(ip) | Packet::TipPge(ip) => ip.payload(),
            Packet::Tsc(tsc) => tsc.tsc,
            Packet::Mtc(mtc) => mtc.ctc.into(),
            Packet::Cyc(cyc) => cyc.cycles,
            Packet::ModeTsx(mode) => mode.in_tx.into(),
            _ => 0,
        };
        (self.in_tx, self.is_abort) = (payload & 1 == 1, false);
    }

    /// Processes a packet if only addresses are wanted.
    fn hop<T: TraceSource>(&mut self, packet: Packet, trace: &mut T) -> Result<Hop, T::Error> {
        let mut packet = packet;
        let leaps = self.config.detail == Detail::Psb;
        if leaps && !self.in_psb && packet != Packet::Psb {
            packet = self.reader.next_psb(trace)?;
        }
        match packet {
            Packet::Tnt(_) => Ok(Hop::Ignore),
            Packet::TipPgd(ip) => {
                self.is_on = false;
                if ip.payload_size() == 0 {
                    self.set_guest();
                    return Ok(Hop::Ignore);
                }
                self.set_ip(ip);
                self.event.add(EventKinds::TRACE_END);
                (self.event.from, self.event.to) = (0, self.ip);
                self.next_is_guest = self.pip_is_guest;
                Ok(Hop::Event)
            }
            Packet::Tip(ip) => {
                if ip.payload_size() == 0 {
                    self.set_guest();
                    return Ok(Hop::Ignore);
                }
                self.set_ip(ip);
                self.report(EventKinds::INSTRUCTION);
                self.next_is_guest = self.pip_is_guest;
                self.report_interrupts_if_changed();
                Ok(Hop::Event)
            }
            Packet::Fup(ip) => {
                if ip.payload_size() == 0 {
                    return Ok(Hop::Ignore);
                }
                self.set_ip(ip);
                let no_tip = self.no_tip
                    || self.updates.mwait.is_some()
                    || self.updates.power_entry.is_some()
                    || !self.config.has_branches
                    || !self.is_on;
                self.no_tip = false;
                if no_tip {
                    self.report(EventKinds::INSTRUCTION);
                    self.update::<NoCodeHere>(true, None);
                    return Ok(Hop::Event);
                }
                self.update::<NoCodeHere>(false, None);
                self.event
                    .add(EventKinds::INSTRUCTION.with(EventKinds::BRANCH));
                self.fup_tip(trace)?;
                if self.event.to != 0 {
                    self.task = Activity::Report;
                }
                Ok(Hop::Event)
            }
            Packet::Psb => {
                self.event.psb_offset = self.reader.offset();
                self.psb_ip = 0;
                (self.has_last_ip, self.last_ip) = (true, 0);
                if !self.state_in_sync(trace)? {
                    return Ok(Hop::Again);
                }
                self.event.kinds = EventKinds::PSB;
                if self.psb_ip != 0 {
                    self.event.add(EventKinds::INSTRUCTION);
                    self.ip = self.psb_ip;
                }
                (self.event.from, self.event.to) = (self.psb_ip, 0);
                Ok(Hop::Event)
            }
            _ => Ok(Hop::Process),
        }
    }
}

/// What follows a packet.
enum Next {
    Event,
    /// This packet was read already.
    This(Packet),
}

/// No code, where none is read.
enum NoCodeHere {}

impl CodeSource for NoCodeHere {
    fn space(&mut self, _: u64, _: bool) -> u64 {
        0
    }

    fn read(&mut self, _: u64, _: bool, _: &mut [u8]) -> usize {
        0
    }
}
