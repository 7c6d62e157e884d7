//! Walks over code, from one packet's branch to the next.

use super::reader::Stop;
use super::{Activity, Decoder, MAX_RETURNS, Result, StepResult, TakenBranches};
use crate::blocks::{BasicBlocks, CodePlace, LastInstruction, NoCode, Run, Stopped};
use crate::branches::Tnt;
use crate::event::{DecodeError, EventKinds, is_kernel};
use crate::instruction::InstructionKind;
use crate::packet::Packet;
use crate::source::{CodeSource, TraceSource};

/// Finds branches that lead in a circle without packets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loop {
    /// Number of branches without a packet.
    count: u32,
    /// The target that would close the circle.
    target: u64,
    /// Number of branches after which another target is watched, and those of them that are left.
    period: u32,
    left: u32,
}

impl Loop {
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.count = 0;
    }

    /// Counts a branch. Returns whether it closes a circle (Brent's algorithm, with a period that
    /// grows by one).
    #[inline]
    pub(crate) fn closes(&mut self, target: u64, max: u32) -> bool {
        let before = self.count;
        self.count = before.saturating_add(1);
        match before {
            0 => {}
            1 => (self.target, self.period, self.left) = (target, 1, 1),
            _ if before > max || target == self.target => return true,
            _ => {
                self.left = self.left.saturating_sub(1);
                if self.left == 0 {
                    self.period = self.period.saturating_add(1);
                    self.left = self.period;
                    self.target = target;
                }
            }
        }
        false
    }
}

/// How a walk ended.
enum Walked {
    /// With an event: a branch without a packet, or the end of a period; and whether that branch is
    /// that of an emulated PTWRITE.
    Event(bool),
    /// At an instruction for which a packet is needed.
    At(LastInstruction),
    /// At the wanted address.
    Reached,
}

/// Returns whether the instruction needs a TIP packet, or a FUP packet and then one.
fn is_indirect(kind: InstructionKind) -> bool {
    !matches!(
        kind,
        InstructionKind::Sequential
            | InstructionKind::ConditionalJump
            | InstructionKind::Jump
            | InstructionKind::Call
    )
}

impl Decoder {
    /// Returns where code is executed now.
    #[inline]
    pub(super) fn place<C: CodeSource>(&self, code: &mut C) -> CodePlace {
        let is_guest = self.event.is_to_guest;
        CodePlace {
            ip: self.ip,
            space: code.space(self.ip, is_guest),
            bits: self.bits,
            is_guest,
        }
    }

    #[inline]
    fn fail<T, E>(&mut self, task: Activity, error: DecodeError) -> Result<T, E> {
        self.task = task;
        Err(Stop::Error(error))
    }

    /// Walks to the next branch, the end of the period or the address `to`.
    #[inline]
    fn walk<C: CodeSource, E>(
        &mut self,
        code: &mut C,
        blocks: &mut BasicBlocks,
        to: Option<u64>,
    ) -> Result<Walked, E> {
        self.counter.has_instruction = true;
        let limit = self.counter.left(&self.clock);
        let mut place = self.place(code);
        let (count, stopped) = blocks.walk(code, &mut place, to, limit);
        self.ip = place.ip;
        self.counter.add(count, &mut self.clock);
        let stopped = match stopped {
            Ok(stopped) => stopped,
            Err(NoCode) => {
                self.endless.reset();
                self.task = Activity::FindIp;
                return match code.is_known_missing(self.ip, place.is_guest) {
                    true => Err(Stop::Silent),
                    false => Err(Stop::Error(DecodeError::NoInstruction)),
                };
            }
        };
        self.event.in_tx |= self.in_tx;
        let last = match stopped {
            Stopped::Reached => {
                self.endless.reset();
                self.event.instruction = None;
                return Ok(Walked::Reached);
            }
            Stopped::Branch(last) | Stopped::Limit(last) => last,
        };
        self.event.instruction = Some(last.instruction);
        self.event.code = last.code;
        let size = last.instruction.size as u64;
        if limit != 0 && count >= limit {
            self.counter.end_period(&self.clock);
            self.event.add(EventKinds::INSTRUCTION);
        }
        if let Stopped::Limit(_) = stopped {
            self.endless.reset();
            self.report(EventKinds::INSTRUCTION);
            self.ip = self.ip.wrapping_add(size);
            place.ip = self.ip;
            blocks.pass(place, last.instruction.size);
            return Ok(Walked::Event(false));
        }
        let next = self.ip.wrapping_add(size);
        match last.instruction.kind {
            // A call of the next instruction is not one that the processor notes.
            InstructionKind::Call if last.instruction.displacement == 0 => {}
            InstructionKind::Call | InstructionKind::IndirectCall => {
                if self.returns.len() >= MAX_RETURNS {
                    self.returns.drain(..MAX_RETURNS / 2);
                }
                self.returns.push(blocks.return_to(next));
            }
            InstructionKind::Return => self.return_to = self.returns.pop(),
            _ => {}
        }
        if !matches!(
            last.instruction.kind,
            InstructionKind::Call | InstructionKind::Jump
        ) {
            self.endless.reset();
            return Ok(Walked::At(last));
        }
        self.event.from = self.ip;
        self.ip = next.wrapping_add_signed(last.instruction.displacement);
        self.event.to = self.ip;
        blocks.follow(true);
        if self.endless.closes(self.ip, self.config.max_loops) {
            self.endless.reset();
            return self.fail(Activity::FindIpAgain, DecodeError::EndlessLoop);
        }
        Ok(Walked::Event(last.is_ptwrite))
    }

    /// Runs over blocks whose branches are not wanted; also over the branch of a TIP packet with the
    /// address `target`.
    #[inline]
    fn run<C: CodeSource>(&mut self, code: &mut C, blocks: &mut BasicBlocks, target: Option<u64>) {
        // The next event says that the ratio changed.
        let is_said = self.clock.ratio == self.event.core_bus_ratio;
        let has_branches = self.config.wanted.has(EventKinds::BRANCH);
        let is_wanted = has_branches && !self.config.calls_suffice;
        let is_wanted = is_wanted || self.clock.time >= self.all_from;
        if is_wanted || !is_said || !self.counter.is_steady(&self.clock) {
            return;
        }
        let (bits, left, has_begun) = match self.task {
            Activity::Tnt(taken) => (taken.bits, taken.left, taken.has_begun),
            _ => (0, 0, false),
        };
        let mut place = self.place(code);
        let mut run = Run {
            bits,
            left,
            has_begun,
            target,
            limit: self.counter.left(&self.clock),
            stops_at_calls: has_branches,
            return_compression: self.config.return_compression,
            returns: &mut self.returns,
            max_returns: MAX_RETURNS,
            endless: &mut self.endless,
            max_loops: self.config.max_loops,
        };
        let passed = blocks.run(&mut place, &mut run);
        let left = run.left;
        if passed.instructions == 0 {
            return;
        }
        self.ip = place.ip;
        self.counter.has_instruction = true;
        self.counter.add(passed.instructions, &mut self.clock);
        let is_taken = match passed.first_is_taken {
            Some(is_taken) => is_taken,
            None if passed.is_at_target => {
                self.next_is_guest = self.pip_is_guest;
                true
            }
            None => return,
        };
        if !has_begun && std::mem::take(&mut self.clock.cycles_are_new) && is_taken {
            self.counter.sampled_cycles = self.clock.all_cycles;
        }
        self.counter.settle(&self.clock);
        if passed.has_event {
            let time = self.counter.sampled_time;
            self.event.latest_time = self.event.latest_time.max(time);
        }
        self.is_guest = self.next_is_guest;
        self.task = match left {
            0 => Activity::Packets,
            left => Activity::Tnt(TakenBranches {
                bits,
                left,
                has_begun: true,
            }),
        };
    }

    /// Walks to the branches of a TNT packet. `Nothing`: all were followed, and the last one was not
    /// taken.
    pub(super) fn walk_tnt<T: TraceSource, C: CodeSource>(
        &mut self,
        trace: &mut T,
        code: &mut C,
        blocks: &mut BasicBlocks,
    ) -> Result<StepResult, T::Error> {
        while let Activity::Tnt(taken) = self.task {
            if std::mem::take(&mut self.is_ptwrite) {
                return self.emulated_ptwrite(trace, taken.bits, taken.left);
            }
            self.run(code, blocks, None);
            let Activity::Tnt(taken) = self.task else {
                break;
            };
            let last = match self.walk(code, blocks, None)? {
                Walked::Event(is_ptwrite) => {
                    self.is_ptwrite = is_ptwrite;
                    return Ok(StepResult::Event);
                }
                // There is no address to reach.
                Walked::Reached => return self.fail(Activity::FindPsb, DecodeError::Internal),
                Walked::At(last) => last,
            };
            let instruction = last.instruction;
            let next = self.ip.wrapping_add(instruction.size as u64);
            match instruction.kind {
                InstructionKind::ConditionalJump => {
                    self.task = taken.rest();
                    self.event.from = self.ip;
                    if taken.first() {
                        self.ip = next.wrapping_add_signed(instruction.displacement);
                        self.event.to = self.ip;
                        blocks.follow(true);
                        return Ok(StepResult::Event);
                    }
                    let is_sample = self.event.kinds.has(EventKinds::INSTRUCTION);
                    if is_sample {
                        self.report(EventKinds::INSTRUCTION);
                    }
                    self.ip = next;
                    blocks.follow(false);
                    if is_sample {
                        return Ok(StepResult::Event);
                    }
                    self.clock.cycles_are_new = false;
                    if self.task == Activity::Packets {
                        self.counter.settle(&self.clock);
                    }
                }
                InstructionKind::Return => {
                    let is_compressed = self.config.return_compression && taken.first();
                    let Some(to) = self.return_to.filter(|_| is_compressed) else {
                        return self.fail(Activity::FindIpAgain, DecodeError::Mismatch);
                    };
                    self.task = taken.rest();
                    self.event.from = self.ip;
                    self.ip = to.ip;
                    self.event.to = self.ip;
                    blocks.follow_return(to);
                    return Ok(StepResult::Event);
                }
                // The TIP packet of a branch can come after TNT packets that continue behind it.
                _ => {
                    let packet = self.reader.next(trace)?;
                    let Packet::Tip(ip) = packet else {
                        self.reader.unread();
                        return self.fail(Activity::FindIpAgain, DecodeError::Mismatch);
                    };
                    if ip.payload_size() == 0 {
                        self.reader.unread();
                        return self.fail(Activity::FindIpAgain, DecodeError::Mismatch);
                    }
                    self.set_last_ip(ip);
                    self.event.from = self.ip;
                    self.event.to = self.last_ip;
                    self.ip = self.last_ip;
                    self.next_is_guest = self.pip_is_guest;
                    self.report_interrupts_if_changed();
                    return Ok(StepResult::Event);
                }
            }
        }
        Ok(StepResult::Nothing)
    }

    /// Reports the operand of an emulated PTWRITE: the next 64 branches.
    fn emulated_ptwrite<T: TraceSource>(
        &mut self,
        trace: &mut T,
        bits: u64,
        left: u32,
    ) -> Result<StepResult, T::Error> {
        let known = 1_u64.checked_shl(left).unwrap_or(0).wrapping_sub(1);
        let mut operand = bits & known;
        let mut missing = 64_u32.saturating_sub(left);
        self.reader.peek(trace, |packet, _| match packet {
            Packet::Tnt(tnt) => {
                let count = tnt.count().min(missing);
                let bits = tnt.bits() >> tnt.count().saturating_sub(count);
                operand = operand << count | bits;
                missing = missing.saturating_sub(count);
                missing == 0
            }
            Packet::Tip(_)
            | Packet::TipPge(_)
            | Packet::TipPgd(_)
            | Packet::Ovf
            | Packet::TraceStop => true,
            _ => false,
        })?;
        if missing > 0 {
            return Err(Stop::Error(DecodeError::BrokenPtwrite));
        }
        self.event.ptwrite = operand;
        Ok(self.report(EventKinds::PTWRITE))
    }

    /// Begins with a TNT packet.
    pub(super) fn begin_tnt(&mut self, tnt: Tnt) -> bool {
        let taken = TakenBranches {
            bits: tnt.bits(),
            left: tnt.count(),
            has_begun: false,
        };
        if taken.left > 0 {
            self.task = Activity::Tnt(taken);
        }
        taken.left > 0
    }

    /// Walks to the branch of a TIP or TIP.PGD packet.
    pub(super) fn walk_tip<C: CodeSource, E>(
        &mut self,
        code: &mut C,
        blocks: &mut BasicBlocks,
    ) -> Result<StepResult, E> {
        let ends = self.task == Activity::TipPgd;
        // A branch can end tracing without a packet of its own.
        if !ends {
            let (Packet::Tip(ip) | Packet::TipPgd(ip)) = self.reader.packet else {
                return self.fail(Activity::FindPsb, DecodeError::Internal);
            };
            let is_plain = ip.payload_size() != 0
                && self.interrupts == self.next_interrupts
                && is_kernel(self.ip) == is_kernel(self.last_ip);
            self.run(code, blocks, is_plain.then_some(self.last_ip));
            if self.task == Activity::Packets {
                return Ok(StepResult::Nothing);
            }
        }
        let last = match self.walk(code, blocks, None)? {
            Walked::Reached => return self.fail(Activity::FindPsb, DecodeError::Internal),
            Walked::Event(_) => {
                let is_branch = self.event.kinds.has(EventKinds::BRANCH);
                if ends && is_branch && code.is_filtered_out(self.event.to) {
                    self.endless.reset();
                    self.turn_off();
                    self.task = Activity::Packets;
                    self.event.add(EventKinds::TRACE_END);
                    self.next_is_guest = self.pip_is_guest;
                }
                return Ok(StepResult::Event);
            }
            Walked::At(last) => last,
        };
        self.next_is_guest = self.pip_is_guest;
        self.report_interrupts_if_changed();
        let instruction = last.instruction;
        if is_indirect(instruction.kind) {
            self.task = Activity::Packets;
            self.event.from = self.ip;
            self.event.to = 0;
            blocks.follow(true);
            let (Packet::Tip(ip) | Packet::TipPgd(ip)) = self.reader.packet else {
                return self.fail(Activity::FindPsb, DecodeError::Internal);
            };
            if ip.payload_size() != 0 {
                self.event.to = self.last_ip;
                self.ip = self.last_ip;
            }
            if ends {
                self.turn_off();
                self.event.add(EventKinds::TRACE_END);
            }
            return Ok(StepResult::Event);
        }
        let target = self
            .ip
            .wrapping_add(instruction.size as u64)
            .wrapping_add_signed(instruction.displacement);
        if ends && code.is_filtered_out(target) {
            self.turn_off();
            self.task = Activity::Packets;
            self.ip = target;
            (self.event.from, self.event.to) = (target, target);
            self.event.add(EventKinds::TRACE_END);
            return Ok(StepResult::Event);
        }
        self.fail(Activity::FindIpAgain, DecodeError::Mismatch)
    }

    /// Walks to the address of a FUP packet. `Nothing`: it was reached, and there is nothing to
    /// report.
    pub(super) fn walk_fup<C: CodeSource, E>(
        &mut self,
        code: &mut C,
        blocks: &mut BasicBlocks,
    ) -> Result<StepResult, E> {
        let to = self.last_ip;
        let walked = self.walk(code, blocks, Some(to));
        if walked.is_err() {
            self.updates.tsx = None;
        }
        let is_reached = match walked? {
            Walked::Event(_) => return Ok(StepResult::Event),
            Walked::Reached => true,
            Walked::At(last) => {
                self.config.fup_with_next_ip
                    && is_indirect(last.instruction.kind)
                    && to == self.ip.wrapping_add(last.instruction.size as u64)
            }
        };
        if !is_reached {
            self.updates.tsx = None;
            return self.fail(Activity::FindIpAgain, DecodeError::Mismatch);
        }
        let no_tip = self.task != Activity::FupAndTip;
        self.task = Activity::Packets;
        let is_update = self.update(no_tip, Some((code, blocks)));
        match is_update && no_tip {
            true => Ok(StepResult::Event),
            false => Ok(StepResult::Nothing),
        }
    }
}
