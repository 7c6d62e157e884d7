//! What the decoder reports.

use std::fmt;

use crate::instruction::Instruction;
use crate::packet::Evd;

/// Kinds of events. An event can be of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EventKinds(u32);

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $name:ident = $bit:literal,)*) => {
        impl EventKinds {
            /// Nothing.
            pub const NONE: EventKinds = EventKinds(0);
            /// All kinds.
            pub const ALL: EventKinds = EventKinds($(1 << $bit)|*);
            $($(#[doc = $doc])* pub const $name: EventKinds = EventKinds(1 << $bit);)*
        }
    };
}

kinds! {
    /// A branch that was taken, from [`TraceEvent::from`] to [`TraceEvent::to`]; 0 for what is not traced.
    BRANCH = 0,
    /// The end of a period of instructions: the instruction at [`TraceEvent::from`].
    INSTRUCTION = 1,
    /// A transaction begins, ends or is aborted.
    TRANSACTION = 2,
    /// An instruction PTWRITE, or a call that emulates one.
    PTWRITE = 3,
    /// An instruction MWAIT.
    MWAIT = 4,
    /// A C-state is entered.
    POWER_ENTRY = 5,
    /// The core stops.
    EXECUTION_STOP = 6,
    /// A C-state is left.
    POWER_EXIT = 7,
    /// Another core bus ratio.
    CORE_BUS_RATIO = 8,
    /// Tracing begins.
    TRACE_BEGIN = 9,
    /// Tracing ends.
    TRACE_END = 10,
    /// A block of items, such as the registers of a PEBS record.
    BLOCK = 11,
    /// A PSB packet.
    PSB = 12,
    /// An event of event trace, with its data.
    EVENT = 13,
    /// Interrupts are enabled or disabled.
    INTERRUPT_FLAG = 14,
}

impl EventKinds {
    /// Returns whether all of `other` are in it.
    #[inline]
    pub fn has(self, other: EventKinds) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether one of `other` is in it.
    #[inline]
    pub fn has_any(self, other: EventKinds) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns it with `other`.
    #[must_use]
    #[inline]
    pub const fn with(self, other: EventKinds) -> Self {
        EventKinds(self.0 | other.0)
    }

    /// Returns it without `other`.
    #[must_use]
    #[inline]
    pub const fn without(self, other: EventKinds) -> Self {
        EventKinds(self.0 & !other.0)
    }

    /// Returns whether there are none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Why decoding was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are no packet.
    BadPacket,
    /// There is no code at the address, or it is no instruction.
    NoInstruction,
    /// A packet does not fit the instruction.
    Mismatch,
    /// The processor lost packets (OVF).
    Overflow,
    /// Trace data were lost between two buffers.
    Lost,
    /// Branches that need no packet lead nowhere.
    EndlessLoop,
    /// The code of an emulated PTWRITE is not as expected.
    BrokenPtwrite,
    /// A packet came where none of its kind can be.
    Internal,
}

impl DecodeError {
    /// The number in an AUXTRACE_ERROR record (`INTEL_PT_ERR_*`,
    /// tools/perf/util/intel-pt-decoder/intel-pt-decoder.h, Linux 7.1).
    pub fn code(self) -> u32 {
        match self {
            DecodeError::Internal => 2,
            DecodeError::BadPacket => 3,
            DecodeError::NoInstruction => 5,
            DecodeError::Mismatch => 6,
            DecodeError::Overflow => 7,
            DecodeError::Lost => 8,
            DecodeError::EndlessLoop => 10,
            DecodeError::BrokenPtwrite => 11,
        }
    }
}

/// The words of perf.
impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecodeError::Internal => "Internal error",
            DecodeError::BadPacket => "Bad packet",
            DecodeError::NoInstruction => "Failed to get instruction",
            DecodeError::Mismatch => "Trace doesn't match instruction",
            DecodeError::Overflow => "Overflow packet",
            DecodeError::Lost => "Lost trace data",
            DecodeError::EndlessLoop => "Never-ending loop (refer perf config intel-pt.max-loops)",
            DecodeError::BrokenPtwrite => "Broken emulated ptwrite",
        })
    }
}

impl std::error::Error for DecodeError {}

/// Something that happened in the traced program.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TraceEvent {
    /// What it is; none if there is only an error.
    pub kinds: EventKinds,
    /// Why decoding was interrupted.
    pub error: Option<DecodeError>,
    /// Address of the instruction, or of the branch; 0 if it is not traced.
    pub from: u64,
    /// Target of the branch; 0 if it is not traced.
    pub to: u64,
    /// Whether `from` is in a virtual machine.
    pub is_from_guest: bool,
    /// Whether `to` is in a virtual machine.
    pub is_to_guest: bool,
    /// Whether interrupts were enabled.
    pub interrupts_from: bool,
    /// Whether interrupts are enabled.
    pub interrupts_to: bool,
    /// Whether it is in a transaction.
    pub in_tx: bool,
    /// Whether a transaction is aborted.
    pub is_abort: bool,
    /// Whether the branch is an interrupt or exception.
    pub is_asynchronous: bool,
    /// Whether `from` is the address in a FUP packet.
    pub has_fup_ip: bool,
    /// Whether the numbers of instructions and cycles are of the same moment (CYC packets).
    pub has_ipc: bool,
    /// The last time of the time stamp counter from packets; 0 if there is none yet.
    pub time: u64,
    /// The time, with the instructions since the last packet with a time.
    pub estimated_time: u64,
    /// The time that perf gives its samples: the latest time of all events so far, also of those
    /// that are not reported; an estimated time on return to user space, and at errors.
    pub latest_time: u64,
    /// Number of instructions since the start.
    pub instructions: u64,
    /// Number of cycles since the start, from CYC packets.
    pub cycles: u64,
    /// Number of cycles as far as they are known, also if they are not of the same moment as
    /// `instructions`.
    pub approximate_cycles: u64,
    /// The last instruction, if it is known.
    pub instruction: Option<Instruction>,
    /// The code of [`instruction`](Self::instruction); the rest is 0.
    pub code: [u8; 16],
    /// The core bus ratio; 0 if it is not known.
    pub core_bus_ratio: u32,
    /// The operand of PTWRITE.
    pub ptwrite: u64,
    /// The payload of the MWAIT packet.
    pub mwait: u64,
    /// The payload of the PWRE packet.
    pub power_entry: u64,
    /// The payload of the PWRX packet.
    pub power_exit: u64,
    /// The payload of the CBR packet.
    pub cbr: u64,
    /// Offset of the PSB packet in the trace.
    pub psb_offset: u64,
    /// Type and vector of the event of event trace.
    pub cfe: (u8, u8),
    /// Data of the event of event trace.
    pub evds: Vec<Evd>,
    /// The items of the block.
    pub items: Option<Box<BlockItems>>,
    /// The number that the source gave to the buffer.
    pub buffer_number: u64,
}

impl TraceEvent {
    /// Begins another event: kinds and flags.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.kinds = EventKinds::BRANCH;
        self.in_tx = false;
        self.is_abort = false;
        self.is_asynchronous = false;
        self.has_fup_ip = false;
        self.has_ipc = false;
    }

    /// Returns whether the kernel, or something that is not traced, continues in user space.
    pub fn is_return_to_user(&self) -> bool {
        let is_outside = self.from == 0 || is_kernel(self.from);
        is_outside && self.to != 0 && !is_kernel(self.to)
    }

    pub(crate) fn add(&mut self, kinds: EventKinds) {
        self.kinds = self.kinds.with(kinds);
    }
}

/// Returns whether an address is in the upper half, where kernels are.
pub(crate) fn is_kernel(ip: u64) -> bool {
    ip >> 63 == 1
}

/// Items of blocks, by type: the record of PEBS via PT.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockItems {
    /// Type of the block, number of the item and its value, in the order of the packets.
    pub items: Vec<(u8, u8, u64)>,
    /// Whether the items have 4 bytes.
    pub has_4_bytes: bool,
}

impl BlockItems {
    /// General registers.
    pub const REGISTERS: u8 = 1;
    /// IP, counters and time.
    pub const BASIC: u8 = 4;
    /// Memory access.
    pub const MEMORY: u8 = 5;
    /// Last branch records.
    pub const LBR: [u8; 3] = [8, 9, 10];
    /// XMM registers.
    pub const XMM: u8 = 16;

    /// Returns the last value of an item.
    pub fn get(&self, block: u8, id: u8) -> Option<u64> {
        let mut items = self.items.iter().rev();
        items
            .find(|(found_block, found, _)| (*found_block, *found) == (block, id))
            .map(|&(_, _, value)| value)
    }
}
