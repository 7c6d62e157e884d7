//! From a PSB packet on: at the start, after missing data and after errors.

use super::reader::Stop;
use super::{Activity, Decoder, Result, StepResult};
use crate::address::CompressedIp;
use crate::blocks::BasicBlocks;
use crate::event::{DecodeError, EventKinds};
use crate::packet::Packet;
use crate::source::{CodeSource, TraceSource};

/// Number of packets after a PSB+ among which a TIP.PGE packet says that its FUP packet is not to be
/// reached.
const AFTER_PSB: u32 = 6;

impl Decoder {
    /// Searches a PSB packet, and processes the packets of state after it.
    pub(super) fn find_psb<T: TraceSource>(
        &mut self,
        trace: &mut T,
    ) -> Result<StepResult, T::Error> {
        self.turn_off();
        (self.has_last_ip, self.last_ip) = (false, 0);
        (self.psb_ip, self.ip) = (0, 0);
        self.returns.clear();
        self.reader.next_psb(trace)?;
        // perf does not, and reports an older one.
        self.event.psb_offset = self.reader.offset();
        self.has_last_ip = true;
        self.task = Activity::Packets;
        self.state_packets(trace)?;
        self.report_psb();
        if self.ip != 0 && self.hops() {
            self.task = Activity::Report;
        }
        Ok(StepResult::Event)
    }

    /// Processes the packets after a PSB packet, up to PSBEND, where nothing is known yet.
    fn state_packets<T: TraceSource>(&mut self, trace: &mut T) -> Result<(), T::Error> {
        self.in_psb = true;
        let result = self.read_state(trace);
        self.in_psb = false;
        result
    }

    fn read_state<T: TraceSource>(&mut self, trace: &mut T) -> Result<(), T::Error> {
        loop {
            let packet = self.reader.next(trace)?;
            if self.time_packet(&packet, trace)? {
                continue;
            }
            match packet {
                Packet::PsbEnd => return Ok(()),
                Packet::Fup(ip) => {
                    self.is_on = true;
                    if self.has_address(ip) {
                        self.set_ip(ip);
                        self.psb_ip = self.ip;
                    }
                }
                Packet::Pip(pip) => self.guest_now(pip),
                Packet::ModeExec(mode) => self.mode_now(mode),
                Packet::ModeTsx(mode) => self.in_tx_now(mode),
                Packet::TraceStop => {
                    self.turn_off();
                    self.leave_tx();
                    return self.no_state();
                }
                Packet::Tnt(_) => return self.no_state(),
                Packet::Ovf => return Err(self.overflow()),
                Packet::TipPgd(_) => {
                    self.counter.interrupt();
                    return Err(Stop::Error(DecodeError::Mismatch));
                }
                Packet::TipPge(_) | Packet::Tip(_) => {
                    return Err(Stop::Error(DecodeError::Mismatch));
                }
                other if is_of_program(&other) => {
                    return Err(Stop::Error(DecodeError::Mismatch));
                }
                _ => {}
            }
        }
    }

    /// A packet is not one of state.
    fn no_state<E>(&mut self) -> Result<(), E> {
        self.clock.lose_crystal();
        let task = match self.ip {
            0 => Activity::FindIpAgain,
            _ => Activity::Packets,
        };
        self.task = task;
        Err(Stop::Error(DecodeError::Mismatch))
    }

    /// Returns whether the address of a packet is known.
    fn has_address(&self, ip: CompressedIp) -> bool {
        match ip {
            CompressedIp::Suppressed => false,
            CompressedIp::SignExtended(_) | CompressedIp::Full(_) => true,
            _ => self.has_last_ip,
        }
    }

    /// Searches a packet with an address, from which on the code can be followed.
    pub(super) fn find_ip<T: TraceSource>(
        &mut self,
        trace: &mut T,
    ) -> Result<StepResult, T::Error> {
        self.clear_updates();
        self.has_overflowed = false;
        if !self.config.has_branches {
            self.task = Activity::Packets;
            self.event.kinds = EventKinds::NONE;
            return Ok(StepResult::Event);
        }
        self.search_ip(trace)?;
        if self.event.kinds.has(EventKinds::PSB) && self.ip == 0 {
            return Ok(StepResult::Event);
        }
        self.task = match self.hops() {
            true => Activity::Report,
            false => Activity::Packets,
        };
        (self.event.from, self.event.to) = (0, self.ip);
        Ok(StepResult::Event)
    }

    fn search_ip<T: TraceSource>(&mut self, trace: &mut T) -> Result<(), T::Error> {
        loop {
            let packet = self.reader.next(trace)?;
            if self.time_packet(&packet, trace)? {
                continue;
            }
            match packet {
                Packet::TipPgd(ip) => {
                    self.turn_off();
                    if self.is_at(ip) {
                        self.event.add(EventKinds::TRACE_END);
                        return Ok(());
                    }
                }
                Packet::TipPge(ip) => {
                    self.is_on = true;
                    self.clock.start_tracing();
                    if self.is_at(ip) {
                        self.event.add(EventKinds::TRACE_BEGIN);
                        return Ok(());
                    }
                }
                Packet::Tip(ip) => {
                    self.is_on = true;
                    if self.is_at(ip) {
                        return Ok(());
                    }
                }
                Packet::Fup(ip) if self.is_at(ip) => return Ok(()),
                Packet::Pip(pip) => self.guest_now(pip),
                Packet::ModeExec(mode) => self.mode_now(mode),
                Packet::ModeTsx(mode) => self.in_tx_now(mode),
                Packet::Ovf => return Err(self.overflow()),
                Packet::TraceStop => {
                    self.turn_off();
                    self.leave_tx();
                    self.clock.lose_crystal();
                }
                Packet::Psb => {
                    self.event.psb_offset = self.reader.offset();
                    self.begin_psb();
                    self.state_packets(trace)?;
                    self.report_psb();
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    /// Sets the current address to that of a packet, if it is known. Returns whether there is one.
    fn is_at(&mut self, ip: CompressedIp) -> bool {
        if self.has_address(ip) {
            self.set_ip(ip);
        }
        self.ip != 0
    }

    /// Processes a PSB packet in the middle of what is followed.
    pub(super) fn psb<T: TraceSource, C: CodeSource>(
        &mut self,
        trace: &mut T,
        code: &mut C,
        blocks: &mut BasicBlocks,
    ) -> Result<StepResult, T::Error> {
        self.event.psb_offset = self.reader.offset();
        self.psb_ip = 0;
        if self.config.has_branches
            && let Some(ip) = self.fup_ahead(trace)?
        {
            self.set_last_ip(ip);
            self.task = Activity::FupInPsb;
            return self.fup_in_psb(trace, code, blocks);
        }
        self.psb_state(trace)
    }

    /// Returns the address of the FUP packet in a PSB+, if the code is to be followed to it: it is
    /// not if tracing begins behind it.
    fn fup_ahead<T: TraceSource>(
        &mut self,
        trace: &mut T,
    ) -> Result<Option<CompressedIp>, T::Error> {
        let mut found = None;
        let mut left = None;
        self.reader.peek(trace, |packet, _| {
            let is_behind = left.is_some();
            let mut counts = false;
            match packet {
                Packet::Mnt(_)
                | Packet::Tsc(_)
                | Packet::Tma(_)
                | Packet::ModeExec(_)
                | Packet::ModeTsx(_)
                | Packet::Mtc(_)
                | Packet::Cyc(_)
                | Packet::Vmcs(_)
                | Packet::Cbr(_)
                | Packet::Pip(_) => counts = is_behind,
                Packet::Fup(ip) => {
                    if is_behind || found.is_some() || ip.payload_size() == 0 {
                        return true;
                    }
                    found = Some(*ip);
                }
                Packet::PsbEnd => {
                    if found.is_none() {
                        return true;
                    }
                    left = Some(AFTER_PSB);
                }
                Packet::TipPge(_) => {
                    if is_behind {
                        found = None;
                    }
                    return true;
                }
                other if is_of_program(other) => {
                    if !is_behind {
                        return true;
                    }
                    counts = true;
                }
                _ => return true,
            }
            if counts {
                left = left.map(|left: u32| left.saturating_sub(1));
            }
            left == Some(0)
        })?;
        Ok(found)
    }

    /// Walks to the address of the FUP packet in a PSB+, and processes that.
    pub(super) fn fup_in_psb<T: TraceSource, C: CodeSource>(
        &mut self,
        trace: &mut T,
        code: &mut C,
        blocks: &mut BasicBlocks,
    ) -> Result<StepResult, T::Error> {
        if self.ip != self.last_ip && self.walk_fup(code, blocks)? == StepResult::Event {
            return Ok(StepResult::Event);
        }
        self.task = Activity::Packets;
        match self.psb_state(trace) {
            Err(Stop::Error(_)) | Ok(StepResult::Nothing) => {
                self.task = Activity::FindIpAgain;
                Err(Stop::Error(DecodeError::Mismatch))
            }
            other => other,
        }
    }

    /// Processes a PSB packet and those of state after it. `Nothing`: another packet is among them,
    /// which is the current one.
    pub(super) fn psb_state<T: TraceSource>(
        &mut self,
        trace: &mut T,
    ) -> Result<StepResult, T::Error> {
        self.begin_psb();
        if !self.state_in_sync(trace)? {
            return Ok(StepResult::Nothing);
        }
        self.report_psb();
        Ok(StepResult::Event)
    }

    /// Begins at a PSB packet: no address and no call is known.
    fn begin_psb(&mut self) {
        (self.has_last_ip, self.last_ip) = (true, 0);
        self.psb_ip = 0;
        self.returns.clear();
    }

    /// Reports a PSB packet.
    fn report_psb(&mut self) {
        self.event.kinds = EventKinds::PSB;
        (self.event.from, self.event.to) = (self.psb_ip, 0);
    }

    /// Processes the packets after a PSB packet. Returns whether PSBEND was reached; otherwise, the
    /// current packet is to be processed.
    pub(super) fn state_in_sync<T: TraceSource>(
        &mut self,
        trace: &mut T,
    ) -> Result<bool, T::Error> {
        self.in_psb = true;
        let result = self.read_state_in_sync(trace);
        self.in_psb = false;
        result
    }

    fn read_state_in_sync<T: TraceSource>(&mut self, trace: &mut T) -> Result<bool, T::Error> {
        loop {
            let packet = self.reader.next(trace)?;
            if self.time_packet(&packet, trace)? {
                if matches!(packet, Packet::Mtc(_)) && self.counter.is_by_mtc() {
                    self.event.add(EventKinds::INSTRUCTION);
                }
                continue;
            }
            match packet {
                Packet::PsbEnd => return Ok(true),
                Packet::Ovf => return Err(self.overflow()),
                Packet::ModeExec(mode) => self.mode_now(mode),
                Packet::ModeTsx(mode) => self.in_tx_now(mode),
                Packet::Pip(pip) => self.guest_now(pip),
                Packet::Fup(ip) => {
                    self.is_on = true;
                    if ip.payload_size() != 0 {
                        self.set_last_ip(ip);
                        self.psb_ip = self.last_ip;
                    }
                }
                Packet::Vmcs(_) | Packet::Mnt(_) => {}
                _ => {
                    self.clock.lose_crystal();
                    return Ok(false);
                }
            }
        }
    }
}

/// Returns whether a packet is about something that the program or the processor did, besides
/// branches.
fn is_of_program(packet: &Packet) -> bool {
    matches!(
        packet,
        Packet::Ptwrite4(_)
            | Packet::Ptwrite8(_)
            | Packet::Exstop(_)
            | Packet::Mwait(_)
            | Packet::Pwre(_)
            | Packet::Pwrx(_)
            | Packet::Bbp(_)
            | Packet::Bip4(_)
            | Packet::Bip8(_)
            | Packet::Bep(_)
            | Packet::Cfe(_)
            | Packet::Evd(_)
    )
}
