//! What happens at the address of the next FUP packet.

use super::{Activity, Decoder};
use crate::blocks::{BasicBlocks, Stopped};
use crate::event::{BlockItems, EventKinds};
use crate::instruction::InstructionKind;
use crate::packet::{Cfe, Evd, ModeTsx};
use crate::source::CodeSource;

/// Maximum number of data of an event.
const MAX_EVDS: usize = 64;

/// Packets that the next FUP packet belongs to.
#[derive(Debug, Default)]
pub(super) struct Updates {
    pub(super) tsx: Option<ModeTsx>,
    pub(super) ptwrite: Option<u64>,
    pub(super) mwait: Option<u64>,
    pub(super) power_entry: Option<u64>,
    pub(super) execution_stop: bool,
    pub(super) block_end: bool,
    /// The event, and whether the FUP packet is only for it.
    pub(super) cfe: Option<(Cfe, bool)>,
    pub(super) evds: Vec<Evd>,
    /// MODE.Exec.
    pub(super) mode: bool,
    /// Type of the open block; `None` if it is not known.
    pub(super) block_type: Option<u8>,
}

impl Updates {
    /// Adds data of an event. Returns whether there are not too many.
    pub(super) fn add(&mut self, evd: Evd) -> bool {
        let fits = self.evds.len() < MAX_EVDS;
        if fits {
            self.evds.push(evd);
        }
        fits
    }
}

impl Decoder {
    /// Forgets what the next FUP packet would belong to.
    pub(super) fn clear_updates(&mut self) {
        self.updates = Updates {
            block_type: self.updates.block_type,
            ..Updates::default()
        };
        self.interrupts = self.next_interrupts;
    }

    /// Reports what belongs to a FUP packet, at the current address. `no_tip` says that no branch
    /// follows. Returns whether there is anything.
    pub(super) fn update<C: CodeSource>(
        &mut self,
        no_tip: bool,
        code: Option<(&mut C, &mut BasicBlocks)>,
    ) -> bool {
        let before = self.event.kinds;
        let mut kinds = before.without(EventKinds::BRANCH);
        let mut is_found = false;
        let mut samples_instruction = false;
        self.event.instruction = None;
        if let Some((cfe, has_ip)) = self.updates.cfe.take() {
            kinds = kinds.with(EventKinds::EVENT);
            if !has_ip && self.is_on {
                kinds = kinds.with(EventKinds::BRANCH);
            }
            self.event.cfe = (cfe.event, cfe.vector);
            self.event.evds.clear();
            self.event.evds.append(&mut self.updates.evds);
            self.event.has_fup_ip |= has_ip || self.is_on;
            is_found = true;
        }
        if std::mem::take(&mut self.updates.mode) {
            self.event.kinds = kinds;
            self.report_interrupts();
            kinds = self.event.kinds;
            samples_instruction = no_tip;
            is_found = true;
        }
        if let Some(tsx) = self.updates.tsx.take() {
            (self.in_tx, self.is_abort) = (tsx.in_tx, tsx.is_abort);
            kinds = kinds.with(EventKinds::TRANSACTION);
            if tsx.is_abort {
                kinds = kinds.with(EventKinds::BRANCH);
            }
            let event = &mut self.event;
            (event.in_tx, event.is_abort) = (tsx.in_tx, tsx.is_abort);
            (event.is_asynchronous, event.has_fup_ip) = (false, false);
            is_found = true;
        }
        if let Some(operand) = self.updates.ptwrite.take() {
            kinds = kinds.with(EventKinds::PTWRITE);
            self.event.has_fup_ip = true;
            self.event.ptwrite = operand;
            is_found = true;
        }
        if let Some(mwait) = self.updates.mwait.take() {
            kinds = kinds.with(EventKinds::MWAIT);
            self.event.mwait = mwait;
            is_found = true;
        }
        if let Some(entry) = self.updates.power_entry.take() {
            kinds = kinds.with(EventKinds::POWER_ENTRY);
            self.event.power_entry = entry;
            is_found = true;
        }
        if std::mem::take(&mut self.updates.execution_stop) {
            kinds = kinds.with(EventKinds::EXECUTION_STOP);
            self.event.has_fup_ip = true;
            is_found = true;
        }
        if std::mem::take(&mut self.updates.block_end) {
            kinds = kinds.with(EventKinds::BLOCK);
            is_found = true;
        }
        self.event.kinds = kinds;
        if std::mem::take(&mut self.has_overflowed) && !is_found && !self.is_on {
            if self.hops() {
                self.event.kinds = EventKinds::NONE;
                self.task = Activity::Report;
            }
            self.is_on = true;
            self.event
                .add(EventKinds::BRANCH.with(EventKinds::TRACE_BEGIN));
            (self.event.from, self.event.to) = (0, self.ip);
            return true;
        }
        if !is_found {
            self.event.kinds = before;
            return false;
        }
        (self.event.from, self.event.to) = (self.ip, 0);
        if let Some((code, blocks)) = code.filter(|_| samples_instruction) {
            self.sample_at_update(code, blocks);
        }
        true
    }

    /// Counts the instruction at a FUP packet, if a period ends there: its sample then has the flags
    /// of the event.
    fn sample_at_update<C: CodeSource>(&mut self, code: &mut C, blocks: &mut BasicBlocks) {
        let walks = self.config.has_branches && self.is_on && !self.hops();
        if !walks || self.ip != self.last_ip {
            return;
        }
        self.counter.has_instruction = true;
        if self.counter.left(&self.clock) != 1 {
            return;
        }
        let mut place = self.place(code);
        // What is wrong is found again by the next walk.
        let (count, Ok(Stopped::Limit(last))) = blocks.walk(code, &mut place, None, 1) else {
            return;
        };
        if last.instruction.kind != InstructionKind::Sequential {
            return;
        }
        self.counter.add(count, &mut self.clock);
        self.counter.end_period(&self.clock);
        self.event.add(EventKinds::INSTRUCTION);
        self.ip = place.ip.wrapping_add(last.instruction.size as u64);
        place.ip = self.ip;
        blocks.pass(place, last.instruction.size);
    }

    /// Processes the start of a block of items.
    pub(super) fn begin_block(&mut self, block_type: u8, has_4_bytes: bool) {
        let items = self.event.items.get_or_insert_default();
        if self.reader.begins_block() {
            items.items.clear();
            items.has_4_bytes = false;
        }
        let is_known = matches!(
            block_type,
            BlockItems::REGISTERS | BlockItems::BASIC | BlockItems::MEMORY | BlockItems::XMM | 8
                ..=10
        );
        self.updates.block_type = is_known.then_some(block_type);
        if block_type == BlockItems::REGISTERS {
            items.has_4_bytes = has_4_bytes;
        }
    }

    /// Processes an item of a block.
    pub(super) fn add_item(&mut self, id: u8, value: u64) {
        let Some(block_type) = self.updates.block_type else {
            return;
        };
        let items = self.event.items.get_or_insert_default();
        let same = |item: &&mut (u8, u8, u64)| (item.0, item.1) == (block_type, id);
        match items.items.iter_mut().find(same) {
            Some(item) => item.2 = value,
            None => items.items.push((block_type, id, value)),
        }
    }
}
