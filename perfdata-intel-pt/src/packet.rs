//! The packets (Intel SDM, volume 3, chapter "Intel Processor Trace", section "Trace Packets and
//! Data Types").

use std::fmt;

use crate::address::CompressedIp;
use crate::bits::{self, Comparison, FieldBits, Shape};
use crate::branches::Tnt;
use crate::cycles::Cyc;
use crate::declare::packets;
use crate::error::BadPacket;

/// The size of the items of a block: a BIP packet looks like a TNT packet, and is one only between
/// BBP and the end of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockItemSize {
    /// 4 bytes.
    Four,
    /// 8 bytes.
    Eight,
}

packets! {
    plain {
        /// Padding of one byte.
        Pad "PAD" [0x00],
        /// Packet stream boundary: a decoder can start here. The address before is 0, and no call
        /// is open.
        Psb "PSB" [
            0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82
        ],
        /// End of the packets of state that follow a PSB packet.
        PsbEnd "PSBEND" [0x02, 0x23],
        /// Packets were lost, because a buffer of the processor was full.
        Ovf "OVF" [0x02, 0xf3],
        /// Tracing stopped at an address of a filter.
        TraceStop "TraceSTOP" [0x02, 0x83],
    }
    addresses {
        /// Target of an indirect branch, exception or interrupt.
        Tip "TIP" 0x0d,
        /// Tracing starts: the address of the first instruction.
        TipPge "TIP.PGE" 0x11,
        /// Tracing ends: the target of the last branch.
        TipPgd "TIP.PGD" 0x01,
        /// Flow update: the address at which something happened that no instruction says.
        Fup "FUP" 0x1d,
    }
    others {
        /// Up to 47 conditional branches and compressed returns, taken or not.
        Tnt "TNT",
        /// Number of cycles since the last CYC packet.
        Cyc "CYC",
    }
    fields {
        /// Time stamp counter.
        Tsc "TSC" 8 [0x19] {
            /// The low 56 bits of the counter.
            tsc: u64 = 8..64,
        } => |tsc, f| write!(f, " {:#x}", tsc.tsc),

        /// Mini time counter: the common time copy (CTC) of the crystal clock changed.
        Mtc "MTC" 2 [0x59] {
            /// Eight bits of CTC. Their position depends on the frequency of MTC packets.
            ctc: u8 = 8..16,
        } => |mtc, f| write!(f, " {:#x}", mtc.ctc),

        /// Time alignment: what CTC was at the last TSC packet.
        Tma "TMA" 7 [0x02, 0x73] {
            /// The low 16 bits of CTC.
            ctc: u16 = 16..32,
            /// Reserved.
            reserved: u8 = 32..40,
            /// Number of cycles of TSC since CTC changed, 9 bits.
            fast_counter: u16 = 40..49,
            /// Reserved, 7 bits.
            reserved_high: u8 = 49..56,
        } => |tma, f| write!(f, " CTC {:#x} FC {:#x}", tma.ctc, tma.fast_counter),

        /// Core bus ratio: the frequency of the core.
        Cbr "CBR" 4 [0x02, 0x03] {
            /// Frequency in multiples of the bus clock (100 MHz).
            ratio: u8 = 16..24,
            /// Reserved.
            reserved: u8 = 24..32,
        } => |cbr, f| write!(f, " {:#x}", bits::bits(cbr.word(), 16, 32)),

        /// Mode of execution of the code that follows.
        ModeExec "MODE.Exec" 2 [0x99, 0x00] {
            /// CS.L of a processor in long mode: 64-bit code.
            is_long: bool = 8..9,
            /// CS.D: 32-bit code, unless it is 64-bit code.
            is_32_bit: bool = 9..10,
            /// RFLAGS.IF: interrupts are enabled. Only with event trace.
            interrupts: bool = 10..11,
            /// Reserved, 2 bits.
            reserved: u8 = 11..13,
        } if |mode| !(mode.is_long && mode.is_32_bit),
        => |mode, f| write!(f, " IF:{} {}", u8::from(mode.interrupts), mode.bits()),

        /// Transactional synchronization: a transaction begins, ends or is aborted.
        ModeTsx "MODE.TSX" 2 [0x99, 0x20] {
            /// Whether the processor is in a transaction now.
            in_tx: bool = 8..9,
            /// Whether the transaction was aborted.
            is_abort: bool = 9..10,
            /// Reserved, 3 bits.
            reserved: u8 = 10..13,
        } if |mode| !(mode.in_tx && mode.is_abort),
        => |mode, f| write!(f, " TXAbort:{} InTX:{}", u8::from(mode.is_abort), u8::from(mode.in_tx)),

        /// Paging information: another address space.
        Pip "PIP" 8 [0x02, 0x43] {
            /// Whether a virtual machine runs (VMX non-root operation).
            non_root: bool = 16..17,
            /// Bits 5 to 51 of CR3.
            cr3: u64 = 17..64,
        } => |pip, f| write!(f, " {:#x} (NR={})", pip.cr3, u8::from(pip.non_root)),

        /// Another virtual machine control structure.
        Vmcs "VMCS" 7 [0x02, 0xc8] {
            /// Bits 12 to 51 of its address.
            pointer: u64 = 16..56,
        } => |vmcs, f| write!(f, " {:#x}", vmcs.pointer),

        /// Maintenance: depends on the model of the processor.
        Mnt "MNT" 11 [0x02, 0xc3, 0x88] {
            /// What it says.
            payload: u64 = 24..88,
        } => |mnt, f| write!(f, " {:#x}", mnt.payload),

        /// The operand of an instruction PTWRITE, of 4 bytes.
        Ptwrite4 "PTWRITE" 6 [0x02, 0x12] {
            /// Whether the address of the instruction follows, in a FUP packet.
            has_ip: bool = 15..16,
            /// The operand.
            payload: u32 = 16..48,
        } => |write, f| write!(f, " {:#x} IP:{}", write.payload, u8::from(write.has_ip)),

        /// The operand of an instruction PTWRITE, of 8 bytes.
        Ptwrite8 "PTWRITE" 10 [0x02, 0x32] {
            /// Whether the address of the instruction follows, in a FUP packet.
            has_ip: bool = 15..16,
            /// The operand.
            payload: u64 = 16..80,
        } => |write, f| write!(f, " {:#x} IP:{}", write.payload, u8::from(write.has_ip)),

        /// The core stopped, because of a C-state or of a change of frequency.
        Exstop "EXSTOP" 2 [0x02, 0x62] {
            /// Whether the address of the instruction follows, in a FUP packet.
            has_ip: bool = 15..16,
        } => |stop, f| write!(f, " IP:{}", u8::from(stop.has_ip)),

        /// An instruction MWAIT asked for a C-state.
        Mwait "MWAIT" 10 [0x02, 0xc2] {
            /// The hints, in EAX.
            hints: u8 = 16..24,
            /// Reserved, 24 bits.
            reserved: u32 = 24..48,
            /// The extensions, in ECX, 2 bits.
            extensions: u8 = 48..50,
            /// Reserved, 30 bits.
            reserved_high: u32 = 50..80,
        } => |wait, f| {
            let all = bits::bits(wait.word(), 16, 80);
            write!(f, " {all:#x} Hints {:#x} Extensions {:#x}", wait.hints, wait.extensions)
        },

        /// Power entry: the processor enters a C-state.
        Pwre "PWRE" 4 [0x02, 0x22] {
            /// Reserved, 7 bits.
            reserved: u8 = 16..23,
            /// Whether the hardware did it by itself.
            is_hardware: bool = 23..24,
            /// Sub-state of the C-state, 4 bits.
            sub_c_state: u8 = 24..28,
            /// C-state of the thread, 4 bits.
            c_state: u8 = 28..32,
        } => |entry, f| {
            let all = bits::bits(entry.word(), 16, 32);
            write!(f, " {all:#x} HW:{}", u8::from(entry.is_hardware))?;
            write!(f, " CState:{} Sub-CState:{}", entry.c_state, entry.sub_c_state)
        },

        /// Power exit: the processor left a C-state.
        Pwrx "PWRX" 7 [0x02, 0xa2] {
            /// Deepest C-state of the core, 4 bits.
            deepest_c_state: u8 = 16..20,
            /// Last C-state of the core, 4 bits.
            last_c_state: u8 = 20..24,
            /// Why: bit 0 an interrupt, 2 a store to the monitored address, 3 the hardware.
            wake_reason: u8 = 24..28,
            /// Reserved, 28 bits.
            reserved: u32 = 28..56,
        } => |exit, f| {
            let all = bits::bits(exit.word(), 16, 56);
            write!(f, " {all:#x} Last CState:{}", exit.last_c_state)?;
            write!(f, " Deepest CState:{}", exit.deepest_c_state)?;
            write!(f, " Wake Reason {:#x}", exit.wake_reason)
        },

        /// Begin of a block of items, such as the registers of a PEBS record.
        Bbp "BBP" 3 [0x02, 0x63] {
            /// Type of the block, 5 bits.
            block_type: u8 = 16..21,
            /// Reserved, 2 bits.
            reserved: u8 = 21..23,
            /// Whether items have 4 bytes, not 8.
            has_4_bytes: bool = 23..24,
        } => |block, f| {
            let size = if block.has_4_bytes { 4 } else { 8 };
            write!(f, " SZ {size}-byte Type {:#x}", block.block_type)
        },

        /// An item of a block with items of 4 bytes.
        Bip4 "BIP" 5 [0x04] in Four {
            /// What it is, depending on the type of the block, 5 bits.
            id: u8 = 3..8,
            /// Its value.
            value: u32 = 8..40,
        } => |item, f| write!(f, " ID {:#04x} Value {:#x}", item.id, item.value),

        /// An item of a block with items of 8 bytes.
        Bip8 "BIP" 9 [0x04] in Eight {
            /// What it is, depending on the type of the block, 5 bits.
            id: u8 = 3..8,
            /// Its value.
            value: u64 = 8..72,
        } => |item, f| write!(f, " ID {:#04x} Value {:#x}", item.id, item.value),

        /// End of a block.
        Bep "BEP" 2 [0x02, 0x33] {
            /// Whether the address follows, in a FUP packet.
            has_ip: bool = 15..16,
        } => |end, f| write!(f, " IP:{}", u8::from(end.has_ip)),

        /// Control flow event: an interrupt, exception, return from one, …
        Cfe "CFE" 4 [0x02, 0x13] {
            /// What happened, 5 bits.
            event: u8 = 16..21,
            /// Reserved, 2 bits.
            reserved: u8 = 21..23,
            /// Whether the address follows, in a FUP packet.
            has_ip: bool = 23..24,
            /// Vector of the interrupt or exception.
            vector: u8 = 24..32,
        } => |event, f| {
            write!(f, " IP:{} Type {:#04x}", u8::from(event.has_ip), event.event)?;
            write!(f, " Vector {:#x}", event.vector)
        },

        /// Data of the control flow event that follows.
        Evd "EVD" 11 [0x02, 0x53] {
            /// What it is, 6 bits: 0 address of a page fault (CR2), 1 and 2 qualifications of a VM
            /// exit.
            kind: u8 = 16..22,
            /// Reserved, 2 bits.
            reserved: u8 = 22..24,
            /// Its value.
            payload: u64 = 24..88,
        } => |data, f| write!(f, " Type {:#04x} Payload {:#x}", data.kind, data.payload),
    }
}

impl ModeExec {
    /// Returns the number of bits of the code: 16, 32 or 64.
    pub const fn bits(&self) -> u8 {
        match (self.is_long, self.is_32_bit) {
            (true, _) => 64,
            (false, true) => 32,
            (false, false) => 16,
        }
    }
}

macro_rules! payloads {
    ($($name:ident $to:literal;)*) => {
        $(impl $name {
            /// Returns the bytes after the header as a number.
            pub fn payload(&self) -> u64 {
                bits::bits(self.word(), 16, $to)
            }
        })*
    };
}

payloads! {
    Mwait 80;
    Pwre 32;
    Pwrx 56;
}

impl Packet {
    /// Largest size of a packet in bytes.
    pub const MAX_SIZE: usize = 16;

    /// Decodes the packet at the start of `bytes`. `block` is the size of the items of the block
    /// that is open.
    ///
    /// # Errors
    /// The bytes are no packet.
    #[inline]
    pub fn first(bytes: &[u8], block: Option<BlockItemSize>) -> Result<Packet, BadPacket> {
        let first = *bytes.first().ok_or(BadPacket::Truncated)?;
        let is_item = block.is_some() && first & 7 == 4;
        if !is_item {
            if let Some(tnt) = Tnt::short(first) {
                return Ok(Packet::Tnt(tnt));
            }
            if first & 3 == 3 {
                return Cyc::read(bytes).map(Packet::Cyc);
            }
            if let Some(found) = Packet::with_address(first, bytes) {
                return found;
            }
            if let Some(found) = Tnt::long(bytes) {
                return found.map(Packet::Tnt);
            }
        }
        Packet::of_shape(bytes, block)
    }

    /// Returns the size of the items of the open block after this packet, where `block` is that
    /// before it.
    pub fn block_after(&self, block: Option<BlockItemSize>) -> Option<BlockItemSize> {
        match self {
            Packet::Bbp(begin) if begin.has_4_bytes => Some(BlockItemSize::Four),
            Packet::Bbp(_) => Some(BlockItemSize::Eight),
            // These may come between the items of a block.
            Packet::Pad
            | Packet::Tsc(_)
            | Packet::Tma(_)
            | Packet::Mtc(_)
            | Packet::Fup(_)
            | Packet::Cyc(_)
            | Packet::Cbr(_)
            | Packet::Mnt(_)
            | Packet::Exstop(_)
            | Packet::Pwre(_)
            | Packet::Pwrx(_)
            | Packet::Bip4(_)
            | Packet::Bip8(_) => block,
            _ => None,
        }
    }
}
