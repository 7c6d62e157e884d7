//! Walks over any code by any trace of Intel PT.

use perfdata_intel_pt::{
    BasicBlocks, Buffer, Cbr, CodeSource, CompressedIp, Config, Cyc, Decoder, Detail, EventKinds,
    InstructionKind, ModeExec, Mtc, Packet, Period, Tma, Tnt, TraceEvent, TraceSource, Tsc,
};

/// Address of the code.
const START: u64 = 0x40_0000;

/// More events end a run: the same code can be walked over again and again.
const MOST: usize = 2000;

/// CodeSource at [`START`], and what is read of it.
struct Program<'a>(&'a [u8]);

impl CodeSource for Program<'_> {
    fn space(&mut self, ip: u64, _: bool) -> u64 {
        ip >> 63
    }

    fn read(&mut self, ip: u64, _: bool, to: &mut [u8]) -> usize {
        let offset = usize::try_from(ip.wrapping_sub(START)).unwrap_or(usize::MAX);
        let code = self.0.get(offset..).unwrap_or_default();
        let size = code.len().min(to.len());
        to[..size].copy_from_slice(&code[..size]);
        size
    }

    fn is_filtered_out(&mut self, ip: u64) -> bool {
        ip & 0xf == 5
    }
}

/// A trace in parts of this size.
struct Parts<'a> {
    rest: &'a [u8],
    size: usize,
    is_first: bool,
}

impl TraceSource for Parts<'_> {
    type Error = std::convert::Infallible;

    fn next_buffer(&mut self) -> Result<Option<Buffer>, Self::Error> {
        let (part, rest) = self.rest.split_at(self.size.min(self.rest.len()));
        self.rest = rest;
        let is_consecutive = !std::mem::take(&mut self.is_first);
        Ok((!part.is_empty()).then(|| Buffer {
            bytes: part.to_vec(),
            is_consecutive,
            reference_time: 1 << 40,
            number: 1,
        }))
    }
}

/// How few branches may be wanted for an event to be reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    NoBranches,
    Calls,
    All,
}

impl Wanted {
    fn of(event: &TraceEvent) -> Self {
        // A branch is in the same event as what happens at it.
        let others = event.kinds.without(EventKinds::BRANCH);
        let is_other = others != EventKinds::NONE && others != EventKinds::TRACE_BEGIN;
        if is_other || event.is_return_to_user() || event.error.is_some() {
            return Wanted::NoBranches;
        }
        let is_jump = event.instruction.is_some_and(|found| match found.kind {
            InstructionKind::ConditionalJump
            | InstructionKind::Jump
            | InstructionKind::IndirectJump => true,
            // Of the next instruction: it does not return.
            InstructionKind::Call => found.displacement == 0,
            _ => false,
        });
        let is_plain = others == EventKinds::NONE
            && event.from != 0
            && !event.is_asynchronous
            && !event.is_abort;
        match is_jump && is_plain {
            true => Wanted::All,
            false => Wanted::Calls,
        }
    }
}

/// What all ways of decoding agree on.
fn all(
    config: Config,
    code: &[u8],
    trace: &[u8],
    size: usize,
    mut blocks: BasicBlocks,
) -> Vec<(Wanted, String)> {
    let wanted = match config.wanted.has(EventKinds::BRANCH) {
        false => Wanted::NoBranches,
        true if config.calls_suffice => Wanted::Calls,
        true => Wanted::All,
    };
    let mut decoder = Decoder::new(config);
    let mut parts = Parts {
        rest: trace,
        size,
        is_first: true,
    };
    let mut found = Vec::new();
    for _ in 0..MOST {
        let next = decoder.next(&mut parts, &mut Program(code), &mut blocks);
        let Some(event) = next.expect("it cannot fail") else {
            break;
        };
        let least = Wanted::of(event);
        if least <= wanted {
            found.push((least, summary(event)));
        }
    }
    found
}

fn summary(event: &TraceEvent) -> String {
    // With an error, the rest is that of the event before.
    let (kinds, to) = match event.error {
        Some(_) => (EventKinds::NONE, 0),
        None => (event.kinds, event.to),
    };
    format!(
        "{:?} {:?} {:#x} {:#x} {} {} {} {} {} {}",
        event.error,
        kinds,
        event.from,
        to,
        event.time,
        event.estimated_time,
        event.latest_time,
        event.instructions,
        event.cycles,
        event.core_bus_ratio,
    )
}

/// Decodes a trace of code in several ways: with its branches, its calls or neither, in one part or
/// in several, with all blocks or few. The events are the same.
pub fn intel_pt_walk(data: &[u8]) {
    let Some((&[options, period, split, code_size], rest)) = data.split_first_chunk::<4>() else {
        return;
    };
    let (code, trace) = rest.split_at(usize::from(code_size).min(rest.len()));
    let config = Config {
        ctl: 1 << 13 | u64::from(options & 1) << 1 | u64::from(options & 2) << 18,
        has_branches: options & 4 == 0,
        return_compression: options & 8 == 0,
        mtc_shift: u32::from(options >> 6) * 3,
        tsc_ctc_ratio: (u32::from(split), u32::from(options & 3)),
        max_non_turbo_ratio: u32::from(period),
        fup_with_next_ip: options & 16 != 0,
        period: match period % 4 {
            0 => Period::None,
            1 => Period::Instructions(u64::from(period / 4).max(1)),
            2 => Period::Ticks(u64::from(period / 4).max(1)),
            _ => Period::Mtc,
        },
        detail: match options >> 4 & 3 {
            3 => Detail::Addresses,
            2 if split % 2 == 0 => Detail::Psb,
            _ => Detail::Full,
        },
        wanted: EventKinds::ALL,
        calls_suffice: false,
        max_loops: 50,
    };
    let whole = all(
        config.clone(),
        code,
        trace,
        trace.len(),
        BasicBlocks::default(),
    );
    let size = usize::from(split).max(1);
    let parts = all(config.clone(), code, trace, size, BasicBlocks::new(1));
    assert_eq!(whole, parts);
    if whole.len() == MOST {
        return;
    }
    let of_calls = Config {
        calls_suffice: true,
        ..config.clone()
    };
    let wanted = EventKinds::ALL.without(EventKinds::BRANCH);
    let without = Config { wanted, ..config };
    for (config, wanted) in [(of_calls, Wanted::Calls), (without, Wanted::NoBranches)] {
        let fewer = all(config, code, trace, trace.len(), BasicBlocks::default());
        let expected = whole.iter().filter(|(least, _)| *least <= wanted);
        assert_eq!(
            expected.collect::<Vec<_>>(),
            fewer.iter().collect::<Vec<_>>()
        );
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    // 0: dec %eax; jne 0; call 8; jmp 0; ret at 8
    let code = [
        0xff, 0xc8, 0x75, 0xfc, 0xe8, 2, 0, 0, 0, 0xeb, 0xf5, 0xc3, 0xff, 0xe0,
    ];
    let tnt = |taken: &[bool]| Packet::Tnt(Tnt::new(taken).expect("up to 47 branches"));
    let ip = |offset| CompressedIp::SignExtended(START + offset);
    let packets = [
        Packet::Psb,
        Packet::Tsc(Tsc { tsc: 1000 }),
        Packet::Tma(Tma {
            ctc: 7,
            reserved: 0,
            fast_counter: 3,
            reserved_high: 0,
        }),
        Packet::Cbr(Cbr {
            ratio: 20,
            reserved: 0,
        }),
        Packet::ModeExec(ModeExec {
            is_long: true,
            ..ModeExec::default()
        }),
        Packet::PsbEnd,
        Packet::TipPge(ip(0)),
        tnt(&[true, true, false, true, true]),
        Packet::Cyc(Cyc::new(90)),
        tnt(&[false, true, false]),
        Packet::Mtc(Mtc { ctc: 9 }),
        Packet::Tip(ip(9)),
        tnt(&[true; 20]),
        Packet::Fup(ip(0)),
        Packet::TipPgd(CompressedIp::Suppressed),
        Packet::TipPge(ip(12)),
        Packet::Tip(ip(0)),
        Packet::Ovf,
        Packet::Fup(ip(2)),
        tnt(&[false]),
    ];
    let mut trace = Vec::new();
    packets.iter().for_each(|packet| packet.write(&mut trace));
    let size = code.len() as u8;
    [
        [0, 4, 9, size],
        [1, 5, 7, size],
        [9, 10, 40, size],
        [0x43, 7, 200, size],
        [48, 4, 3, size],
    ]
    .map(|header| [&header[..], &code, &trace].concat())
    .into()
}
