//! Follows the code that a trace is about.
//!
//! Only conditional and indirect branches have packets. Between them, the decoder walks over the
//! code, and reports branches, instructions at periods, and what other packets say. What it reports
//! when packets or code are missing or wrong, and which times events have, is what perf does
//! (tools/perf/util/intel-pt-decoder/intel-pt-decoder.c, Linux 7.1).

mod clock;
mod count;
mod in_sync;
mod reader;
mod synchronize;
mod updates;
mod walk;

use crate::address::CompressedIp;
use crate::blocks::{BasicBlocks, Return};
use crate::config::{Config, Detail};
use crate::event::{DecodeError, EventKinds, TraceEvent};
use crate::packet::Pip;
use crate::source::{CodeSource, TraceSource};
use clock::TraceClock;
use count::Counter;
use reader::{PacketReader, Stop};
use updates::Updates;
pub(crate) use walk::Loop;

/// What the decoder is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Search a PSB packet.
    FindPsb,
    /// Search a packet with an address, of which no part is known.
    FindIp,
    /// Search a packet with an address, after an error.
    FindIpAgain,
    /// Process packets.
    Packets,
    /// Walk to the conditional branches of a TNT packet.
    Tnt(TakenBranches),
    /// Walk to the indirect branch of a TIP packet.
    Tip,
    /// Walk to the indirect branch of a TIP.PGD packet.
    TipPgd,
    /// Walk to the address of a FUP packet, after which there is a branch.
    FupAndTip,
    /// Walk to the address of a FUP packet.
    Fup,
    /// Walk to the address of the FUP packet in a PSB+.
    FupInPsb,
    /// Report the instruction at the current address.
    Report,
}

impl Activity {
    /// Returns whether the last event has the time of the last packet. Before the branch that a
    /// packet is about, events are older than the packet.
    fn is_settled(self) -> bool {
        match self {
            Activity::Tnt(taken) => taken.has_begun,
            Activity::Tip
            | Activity::TipPgd
            | Activity::FupAndTip
            | Activity::Fup
            | Activity::FupInPsb => false,
            _ => true,
        }
    }
}

/// The branches of a TNT packet that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TakenBranches {
    bits: u64,
    left: u32,
    /// Whether one was followed.
    has_begun: bool,
}

impl TakenBranches {
    fn first(self) -> bool {
        let at = self.left.saturating_sub(1);
        self.bits.checked_shr(at).is_some_and(|bits| bits & 1 == 1)
    }

    /// Returns what is to do after the first branch.
    fn rest(self) -> Activity {
        match self.left {
            0 | 1 => Activity::Packets,
            left => Activity::Tnt(TakenBranches {
                left: left.saturating_sub(1),
                has_begun: true,
                ..self
            }),
        }
    }
}

/// What a step of decoding found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepResult {
    /// [`Decoder::event`].
    Event,
    /// Nothing: continue with the packets.
    Nothing,
}

type Result<T, E> = std::result::Result<T, Stop<E>>;

/// Decodes a trace: the packets of one processor or one thread.
///
/// ```
/// use perfdata_intel_pt::{
///     BasicBlocks, Buffer, CodeSource, Config, Decoder, EventKinds, ModeExec, Packet, CompressedIp, Tnt, TraceSource,
/// };
///
/// /// `1: dec %eax; jne 1b; ret` at 0x1000.
/// struct Program;
///
/// impl CodeSource for Program {
///     fn space(&mut self, _: u64, _: bool) -> u64 {
///         0
///     }
///     fn read(&mut self, ip: u64, _: bool, to: &mut [u8]) -> usize {
///         let code = [0xff, 0xc8, 0x75, 0xfc, 0xc3];
///         let Some(code) = code.get(ip.wrapping_sub(0x1000) as usize..) else { return 0 };
///         let size = code.len().min(to.len());
///         to[..size].copy_from_slice(&code[..size]);
///         size
///     }
/// }
///
/// struct Part(Option<Vec<u8>>);
///
/// impl TraceSource for Part {
///     type Error = std::convert::Infallible;
///     fn next_buffer(&mut self) -> Result<Option<Buffer>, Self::Error> {
///         Ok(self.0.take().map(|bytes| Buffer { bytes, ..Buffer::default() }))
///     }
/// }
///
/// let mut bytes = Vec::new();
/// for packet in [
///     Packet::Psb,
///     Packet::ModeExec(ModeExec { is_long: true, ..ModeExec::default() }),
///     Packet::PsbEnd,
///     Packet::TipPge(CompressedIp::SignExtended(0x1000)),
///     Packet::Tnt(Tnt::new(&[true, true, false]).expect("three branches")),
///     Packet::TipPgd(CompressedIp::Suppressed),
/// ] {
///     packet.write(&mut bytes);
/// }
/// let config = Config { wanted: EventKinds::BRANCH, ..Config::default() };
/// let (mut decoder, mut blocks) = (Decoder::new(config), BasicBlocks::default());
/// let mut trace = Part(Some(bytes));
/// let mut branches = Vec::new();
/// while let Some(event) = decoder.next(&mut trace, &mut Program, &mut blocks)? {
///     branches.push((event.from, event.to));
/// }
/// assert_eq!(branches, [(0, 0x1000), (0x1002, 0x1000), (0x1002, 0x1000), (0x1004, 0)]);
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    config: Config,
    /// The blocks' name of this decoder.
    id: u64,
    reader: PacketReader,
    clock: TraceClock,
    counter: Counter,
    updates: Updates,
    event: TraceEvent,
    task: Activity,
    /// Address of the next instruction; 0 if it is not known.
    ip: u64,
    /// Address of the last packet, from which the next one is compressed.
    last_ip: u64,
    has_last_ip: bool,
    /// Address of the FUP packet in the last PSB+; 0 if there was none.
    psb_ip: u64,
    /// 16-, 32- or 64-bit code.
    bits: u8,
    /// Whether code is traced (between TIP.PGE and TIP.PGD).
    is_on: bool,
    in_psb: bool,
    /// Addresses after calls, for compressed returns.
    returns: Vec<Return>,
    /// Where the last return leads if it is compressed.
    return_to: Option<Return>,
    /// Whether a virtual machine runs: by the last PIP packet, in the code, and after the next
    /// branch.
    pip_is_guest: bool,
    is_guest: bool,
    next_is_guest: bool,
    /// Whether interrupts are enabled, in the code and after the next branch.
    interrupts: bool,
    next_interrupts: bool,
    in_tx: bool,
    is_abort: bool,
    /// Whether packets were lost, and tracing was not seen to begin since.
    has_overflowed: bool,
    /// Whether the next FUP packet has no branch after it.
    no_tip: bool,
    /// Whether the last branch is that of an emulated PTWRITE.
    is_ptwrite: bool,
    endless: Loop,
    /// The time from which on all events are reported.
    all_from: u64,
}

/// Maximum number of open calls. Older ones are forgotten, as the processor does, which has 64.
const MAX_RETURNS: usize = 1 << 16;

impl Decoder {
    /// Returns a decoder for the start of a trace.
    pub fn new(config: Config) -> Self {
        Decoder {
            id: 0,
            reader: PacketReader::new(),
            clock: TraceClock::new(&config),
            counter: Counter::new(&config),
            updates: Updates::default(),
            event: TraceEvent::default(),
            task: Activity::FindPsb,
            ip: 0,
            last_ip: 0,
            has_last_ip: false,
            psb_ip: 0,
            bits: 64,
            is_on: false,
            in_psb: false,
            returns: Vec::new(),
            return_to: None,
            pip_is_guest: false,
            is_guest: false,
            next_is_guest: false,
            interrupts: false,
            next_interrupts: false,
            in_tx: false,
            is_abort: false,
            has_overflowed: false,
            no_tip: false,
            is_ptwrite: false,
            endless: Loop::default(),
            all_from: u64::MAX,
            config,
        }
    }

    /// Decodes up to the next event; `None` at the end of the trace. After an event with an error,
    /// decoding continues where it can.
    ///
    /// # Errors
    /// A part of the trace cannot be read.
    pub fn next<T: TraceSource, C: CodeSource>(
        &mut self,
        trace: &mut T,
        code: &mut C,
        blocks: &mut BasicBlocks,
    ) -> std::result::Result<Option<&TraceEvent>, T::Error> {
        self.id = blocks.enter(self.id);
        loop {
            self.event.begin();
            let error = match self.step(trace, code, blocks) {
                Ok(StepResult::Event) => None,
                Ok(StepResult::Nothing) | Err(Stop::Silent) => continue,
                Err(Stop::NewPart) => {
                    self.begin_part();
                    continue;
                }
                Err(Stop::End) => return Ok(None),
                Err(Stop::Source(error)) => return Err(error),
                Err(Stop::Error(error)) => Some(error),
            };
            self.complete(error);
            let event = &self.event;
            let is_wanted = event.kinds.has_any(self.config.wanted);
            let is_due = event.latest_time >= self.all_from;
            if error.is_some() || is_wanted || is_due || event.is_return_to_user() {
                return Ok(Some(&self.event));
            }
        }
    }

    /// Sets a time from which on all events are reported, also those of kinds that are not wanted:
    /// the caller knows better then which code is mapped.
    pub fn report_all_from(&mut self, time: u64) {
        self.all_from = time;
    }

    /// Returns the last event.
    pub fn event(&self) -> &TraceEvent {
        &self.event
    }

    fn step<T: TraceSource, C: CodeSource>(
        &mut self,
        trace: &mut T,
        code: &mut C,
        blocks: &mut BasicBlocks,
    ) -> Result<StepResult, T::Error> {
        let found = match self.task {
            Activity::FindPsb => return self.find_psb(trace),
            Activity::FindIp => {
                (self.has_last_ip, self.last_ip, self.ip) = (false, 0, 0);
                return self.find_ip(trace);
            }
            Activity::FindIpAgain => return self.find_ip(trace),
            Activity::Packets => StepResult::Nothing,
            Activity::Tnt(_) => self.walk_tnt(trace, code, blocks)?,
            Activity::Tip | Activity::TipPgd => self.walk_tip(code, blocks)?,
            Activity::FupAndTip => match self.walk_fup(code, blocks)? {
                StepResult::Event => StepResult::Event,
                StepResult::Nothing => return self.fup_tip(trace),
            },
            Activity::Fup => self.walk_fup(code, blocks)?,
            Activity::FupInPsb => return self.fup_in_psb(trace, code, blocks),
            Activity::Report => {
                self.task = Activity::Packets;
                return Ok(self.report(EventKinds::INSTRUCTION));
            }
        };
        match found {
            StepResult::Event => Ok(found),
            StepResult::Nothing => self.packets(trace, code, blocks),
        }
    }

    /// Reports something at the current address.
    fn report(&mut self, kinds: EventKinds) -> StepResult {
        self.event.kinds = kinds;
        self.event.from = self.ip;
        self.event.to = 0;
        StepResult::Event
    }

    /// A part begins: what was before is not continued.
    fn begin_part(&mut self) {
        self.ip = 0;
        self.task = Activity::FindPsb;
        self.clock.lose();
        self.clock.reference = self.reader.reference;
        self.clock.buffer_reference = self.reader.reference;
        self.event.buffer_number = self.reader.number;
    }

    /// Completes the event: its time, its numbers, and the core bus ratio.
    #[inline]
    fn complete(&mut self, error: Option<DecodeError>) {
        self.clock.buffer_reference = self.reader.reference;
        let event = &mut self.event;
        event.error = error;
        if let Some(error) = error {
            if error != DecodeError::Overflow {
                event.from = self.ip;
            }
            if error == DecodeError::BadPacket {
                (self.in_tx, self.is_abort) = (false, false);
                self.clock.lose_crystal();
            }
            self.counter.settle(&self.clock);
            self.counter.sampled_cycles = self.clock.all_cycles;
            self.is_guest = self.pip_is_guest;
            self.next_is_guest = self.pip_is_guest;
        } else {
            // Otherwise it would have the addresses of a branch that need not be decoded.
            if event.kinds.is_empty() {
                (event.from, event.to) = (self.ip, 0);
            }
            if self.clock.ratio != event.core_bus_ratio {
                event.core_bus_ratio = self.clock.ratio;
                event.kinds = event.kinds.with(EventKinds::CORE_BUS_RATIO);
                event.cbr = self.clock.cbr;
            }
            if self.task.is_settled() {
                self.counter.settle(&self.clock);
                if self.clock.cycles_are_new {
                    self.counter.sampled_cycles = self.clock.all_cycles;
                    event.has_ipc = true;
                    self.clock.cycles_are_new = false;
                }
            }
            if !self.clock.has_cyc {
                event.has_ipc = true;
            }
        }
        if event.kinds.has(EventKinds::PSB) && self.clock.tsc != 0 {
            self.counter.sampled_time = self.clock.tsc;
        }
        event.is_from_guest = self.is_guest;
        event.is_to_guest = self.next_is_guest;
        self.is_guest = self.next_is_guest;
        event.time = self.counter.sampled_time;
        event.estimated_time = self
            .counter
            .estimate(self.clock.ratio, self.config.max_non_turbo_ratio);
        event.latest_time = match error.is_some() || event.is_return_to_user() {
            true => event.estimated_time,
            false => event.latest_time.max(event.time),
        };
        event.instructions = self.counter.all;
        event.cycles = self.counter.sampled_cycles;
        event.approximate_cycles = self.counter.settled_cycles;
    }

    fn hops(&self) -> bool {
        self.config.detail >= Detail::Addresses
    }

    /// Sets the address of the last packet.
    fn set_last_ip(&mut self, ip: CompressedIp) {
        self.last_ip = ip.resolve(self.last_ip).unwrap_or(0);
        self.has_last_ip = true;
    }

    /// Sets the current address to that of a packet.
    fn set_ip(&mut self, ip: CompressedIp) {
        self.set_last_ip(ip);
        self.ip = self.last_ip;
    }

    /// Tracing ends.
    fn turn_off(&mut self) {
        self.is_on = false;
        self.counter.interrupt();
    }

    /// The packet says whether a virtual machine runs now.
    fn guest_now(&mut self, pip: Pip) {
        self.pip_is_guest = pip.non_root;
        self.set_guest();
    }

    fn set_guest(&mut self) {
        (self.is_guest, self.next_is_guest) = (self.pip_is_guest, self.pip_is_guest);
    }

    /// Interrupts are enabled or disabled after the branch, if a packet said so.
    fn report_interrupts_if_changed(&mut self) {
        if self.interrupts != self.next_interrupts {
            self.report_interrupts();
        }
    }

    fn report_interrupts(&mut self) {
        self.event.kinds = self.event.kinds.with(EventKinds::INTERRUPT_FLAG);
        self.event.interrupts_from = self.interrupts;
        self.event.interrupts_to = self.next_interrupts;
        self.interrupts = self.next_interrupts;
    }
}
