//! Traces of short programs, made by hand: what the decoder reports of each packet.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a panic fails the test"
)]

use perfdata_intel_pt::{
    BasicBlocks, Bbp, Bep, Bip8, Buffer, Cbr, Cfe, CodeSource, CompressedIp, Config, Cyc, Decoder,
    Detail, Evd, EventKinds, Exstop, ModeExec, ModeTsx, Mtc, Mwait, Packet, Period, Pip, Ptwrite8,
    Pwre, Pwrx, Tma, Tnt, TraceEvent, TraceSource, Tsc,
};

const START: u64 = 0x40_0000;

/// A function with a loop, which calls another one, and that.
///
/// ```text
/// 00 dec %eax
/// 02 jne 00
/// 04 call 10
/// 09 jmp *%rax
/// 0b syscall
/// 0d nop
/// 0e jmp 0e
/// 10 nop
/// 11 ret
/// 12 jmp 24 (over the mark of an emulated PTWRITE)
/// 24 jne 26
/// 26 jmp 24
/// ```
const CODE: &[u8] = b"\xff\xc8\x75\xfc\xe8\x07\x00\x00\x00\xff\xe0\x0f\x05\x90\xeb\xfe\x90\xc3\
    \xeb\x10\x0f\x0bperf,ptwrite  \x75\x00\xeb\xfc";

struct Program {
    code: &'static [u8],
    /// Whether missing code was reported.
    is_known: bool,
}

impl CodeSource for Program {
    fn space(&mut self, _: u64, _: bool) -> u64 {
        0
    }

    fn read(&mut self, ip: u64, _: bool, to: &mut [u8]) -> usize {
        let offset = usize::try_from(ip.wrapping_sub(START)).unwrap_or(usize::MAX);
        let code = self.code.get(offset..).unwrap_or_default();
        let size = code.len().min(to.len());
        to[..size].copy_from_slice(&code[..size]);
        size
    }

    fn is_known_missing(&mut self, ip: u64, _: bool) -> bool {
        ip == 0x7000 && std::mem::replace(&mut self.is_known, true)
    }

    fn is_filtered_out(&mut self, ip: u64) -> bool {
        ip == START + 0x10
    }
}

/// Parts of a trace, and whether each continues the one before.
struct Parts(Vec<(Vec<u8>, bool)>);

impl TraceSource for Parts {
    type Error = std::convert::Infallible;

    fn next_buffer(&mut self) -> Result<Option<Buffer>, Self::Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (bytes, is_consecutive) = self.0.remove(0);
        Ok(Some(Buffer {
            bytes,
            is_consecutive,
            reference_time: 1 << 40,
            number: 0,
        }))
    }
}

fn bytes(packets: &[Packet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packets.iter().for_each(|packet| packet.write(&mut bytes));
    bytes
}

fn decode<T>(
    config: Config,
    parts: Vec<(Vec<u8>, bool)>,
    show: impl Fn(&TraceEvent) -> T,
) -> Vec<T> {
    let mut decoder = Decoder::new(config);
    let (mut parts, mut blocks) = (Parts(parts), BasicBlocks::default());
    let mut program = Program {
        code: CODE,
        is_known: false,
    };
    let mut found = Vec::new();
    while let Some(event) = decoder
        .next(&mut parts, &mut program, &mut blocks)
        .expect("it cannot fail")
    {
        found.push(show(event));
        assert!(found.len() < 1000, "it does not end");
    }
    found
}

/// Offsets in the program; what is not in it as it is.
fn place(ip: u64) -> String {
    match ip.checked_sub(START) {
        Some(offset) => format!("+{offset:x}"),
        None => format!("{ip:x}"),
    }
}

fn text(event: &TraceEvent) -> String {
    if let Some(error) = event.error {
        return format!("{error} at {}", place(event.from));
    }
    let names = [
        (EventKinds::BRANCH, "branch"),
        (EventKinds::INSTRUCTION, "instruction"),
        (EventKinds::TRANSACTION, "transaction"),
        (EventKinds::PTWRITE, "ptwrite"),
        (EventKinds::MWAIT, "mwait"),
        (EventKinds::POWER_ENTRY, "pwre"),
        (EventKinds::EXECUTION_STOP, "exstop"),
        (EventKinds::POWER_EXIT, "pwrx"),
        (EventKinds::CORE_BUS_RATIO, "cbr"),
        (EventKinds::TRACE_BEGIN, "begin"),
        (EventKinds::TRACE_END, "end"),
        (EventKinds::BLOCK, "block"),
        (EventKinds::PSB, "psb"),
        (EventKinds::EVENT, "event"),
        (EventKinds::INTERRUPT_FLAG, "if"),
    ];
    let kinds: Vec<&str> = names
        .iter()
        .filter(|(kind, _)| event.kinds.has(*kind))
        .map(|(_, name)| *name)
        .collect();
    let mut text = kinds.join("+");
    let flags = [
        (event.is_asynchronous, " async"),
        (event.in_tx, " in tx"),
        (event.is_abort, " abort"),
        (event.has_fup_ip, " ip"),
    ];
    flags
        .iter()
        .filter(|(is_set, _)| *is_set)
        .for_each(|(_, flag)| text.push_str(flag));
    format!("{text} {} {}", place(event.from), place(event.to))
}

fn ip(offset: u64) -> CompressedIp {
    CompressedIp::SignExtended(START + offset)
}

fn tnt(taken: &[bool]) -> Packet {
    Packet::Tnt(Tnt::new(taken).expect("up to 47 branches"))
}

fn mode(interrupts: bool) -> Packet {
    Packet::ModeExec(ModeExec {
        is_long: true,
        interrupts,
        ..ModeExec::default()
    })
}

fn everything() -> Config {
    Config {
        wanted: EventKinds::ALL,
        return_compression: true,
        ..Config::default()
    }
}

/// The events of packets behind a PSB+ and TIP.PGE at the start of the program.
fn events_with(config: Config, packets: &[Packet]) -> Vec<String> {
    let start = [
        Packet::Psb,
        mode(false),
        Packet::PsbEnd,
        Packet::TipPge(ip(0)),
    ];
    let trace = bytes(&[&start[..], packets].concat());
    let mut events = decode(config, vec![(trace, false)], text);
    assert_eq!(
        events.drain(..2).collect::<Vec<_>>(),
        ["psb 0 0", "branch+begin 0 +0"]
    );
    events
}

#[track_caller]
fn check(packets: &[Packet], expected: &[&str]) {
    assert_eq!(events_with(everything(), packets), expected);
}

#[test]
fn branches_and_returns() {
    let end = Packet::TipPgd(CompressedIp::Suppressed);
    check(
        &[tnt(&[true, false, true]), end],
        &[
            "branch +2 +0",
            "branch +4 +10",
            "branch +11 +9",
            "branch+end +9 0",
        ],
    );
    // Not compressed; the address is compressed against the one before.
    check(
        &[
            tnt(&[false]),
            Packet::Tip(CompressedIp::Low16(9)),
            Packet::Tip(ip(0xd)),
            end,
        ],
        &[
            "branch +4 +10",
            "branch +11 +9",
            "branch +9 +d",
            "branch +e +e",
            "branch +e +e",
            "Never-ending loop (refer perf config intel-pt.max-loops) at +e",
        ],
    );
    // A return that is not taken, one without a call, and one where none are compressed.
    let mismatch = "Trace doesn't match instruction at +11";
    check(&[tnt(&[false, false])], &["branch +4 +10", mismatch]);
    check(
        &[
            tnt(&[false, true]),
            Packet::Psb,
            mode(false),
            Packet::PsbEnd,
        ],
        &["branch +4 +10", "branch +11 +9", "psb 0 0"],
    );
    let config = Config {
        return_compression: false,
        ..everything()
    };
    assert_eq!(
        events_with(config, &[tnt(&[false, true])]),
        ["branch +4 +10", mismatch]
    );
    // The TIP packet of the jump is behind the branches that follow it.
    check(
        &[tnt(&[false, true, true]), Packet::Tip(ip(0))],
        &[
            "branch +4 +10",
            "branch +11 +9",
            "branch +9 +0",
            "branch +2 +0",
        ],
    );
    check(
        &[
            tnt(&[false, true, true]),
            Packet::Mtc(Mtc { ctc: 0 }),
            Packet::TipPge(ip(0)),
        ],
        &[
            "branch +4 +10",
            "branch +11 +9",
            "Trace doesn't match instruction at +9",
            "branch+begin 0 +0",
        ],
    );
}

#[test]
fn what_does_not_fit() {
    check(
        &[Packet::Tip(ip(0))],
        &["Trace doesn't match instruction at +2"],
    );
    check(
        &[Packet::Fup(ip(0xb)), Packet::TipPgd(ip(0))],
        &["Trace doesn't match instruction at +2", "branch+end 0 +0"],
    );
    // After an error, decoding continues at the next address.
    check(
        &[Packet::Tip(ip(0)), Packet::Tip(ip(0)), tnt(&[true])],
        &[
            "Trace doesn't match instruction at +2",
            "branch 0 +0",
            "branch +2 +0",
        ],
    );
    // Without code: the first time is an error, if the object is one that cannot be read.
    let away = CompressedIp::SignExtended(0x7000);
    let jump = [tnt(&[false, true]), Packet::Tip(away), tnt(&[true])];
    let again = [
        Packet::TipPge(ip(9)),
        Packet::Tip(away),
        tnt(&[true]),
        Packet::TipPge(ip(0)),
    ];
    check(
        &[&jump[..], &again].concat(),
        &[
            "branch +4 +10",
            "branch +11 +9",
            "branch +9 7000",
            "Failed to get instruction at 7000",
            "branch+begin 0 +9",
            "branch +9 7000",
            "branch+begin 0 +0",
        ],
    );
}

#[test]
fn asynchronous_events() {
    check(
        &[
            tnt(&[false]),
            Packet::Fup(ip(0x11)),
            Packet::Tip(ip(0xd)),
            Packet::Fup(ip(0xe)),
            Packet::TipPgd(CompressedIp::Suppressed),
        ],
        &[
            "branch +4 +10",
            "branch async +11 +d",
            "branch+end async +e 0",
        ],
    );
    check(
        &[Packet::Fup(ip(2)), tnt(&[true])],
        &["Trace doesn't match instruction at +2"],
    );
    check(
        &[Packet::Ovf, Packet::Fup(ip(0)), tnt(&[true])],
        &["Overflow packet at +0", "branch+begin 0 +0", "branch +2 +0"],
    );
    check(
        &[Packet::Ovf, Packet::TipPge(ip(0)), tnt(&[true])],
        &["Overflow packet at +0", "branch+begin 0 +0", "branch +2 +0"],
    );
    let tsx = |in_tx, is_abort| {
        Packet::ModeTsx(ModeTsx {
            in_tx,
            is_abort,
            reserved: 0,
        })
    };
    check(
        &[
            tsx(true, false),
            Packet::Fup(ip(2)),
            tnt(&[true]),
            tsx(false, true),
            Packet::Fup(ip(2)),
            Packet::Tip(ip(9)),
        ],
        &[
            "transaction in tx +2 0",
            "branch in tx +2 +0",
            "branch+transaction abort +2 +9",
        ],
    );
}

#[test]
fn events_at_addresses() {
    let write = |has_ip, payload| Packet::Ptwrite8(Ptwrite8 { has_ip, payload });
    check(
        &[
            write(false, 1),
            write(true, 2),
            Packet::Fup(ip(2)),
            write(true, 3),
            tnt(&[true]),
        ],
        &["ptwrite +0 0", "ptwrite ip +2 0", "branch +2 +0"],
    );
    let wait = Packet::Mwait(Mwait {
        hints: 1,
        reserved: 0,
        extensions: 0,
        reserved_high: 0,
    });
    let entry = Packet::Pwre(Pwre {
        reserved: 0,
        is_hardware: false,
        sub_c_state: 1,
        c_state: 2,
    });
    let exit = Packet::Pwrx(Pwrx {
        deepest_c_state: 1,
        last_c_state: 2,
        wake_reason: 4,
        reserved: 0,
    });
    let stop = |has_ip| Packet::Exstop(Exstop { has_ip });
    check(
        &[
            wait,
            entry,
            stop(true),
            Packet::Fup(ip(2)),
            exit,
            stop(false),
            entry,
            tnt(&[true]),
        ],
        &[
            "mwait+pwre+exstop ip +2 0",
            "pwrx +2 0",
            "exstop +2 0",
            "pwre +2 0",
            "branch +2 +0",
        ],
    );
    let event = |has_ip| {
        Packet::Cfe(Cfe {
            event: 1,
            reserved: 0,
            has_ip,
            vector: 9,
        })
    };
    let data = Packet::Evd(Evd {
        kind: 1,
        reserved: 0,
        payload: 5,
    });
    check(
        &[
            data,
            event(true),
            Packet::Fup(ip(2)),
            event(false),
            Packet::Fup(ip(2)),
            Packet::Tip(ip(9)),
        ],
        &["event ip +2 0", "branch+event async ip +2 +9"],
    );
    check(
        &[
            mode(true),
            Packet::Fup(ip(2)),
            mode(false),
            tnt(&[false, true]),
            Packet::Tip(ip(0)),
        ],
        &[
            "if +2 0",
            "branch +4 +10",
            "branch +11 +9",
            "branch+if +9 +0",
        ],
    );
    let block = |block_type| {
        Packet::Bbp(Bbp {
            block_type,
            reserved: 0,
            has_4_bytes: false,
        })
    };
    let item = |id, value| Packet::Bip8(Bip8 { id, value });
    let end = Packet::Bep(Bep { has_ip: true });
    let trace = bytes(&[
        Packet::Psb,
        Packet::PsbEnd,
        Packet::TipPge(ip(0)),
        block(1),
        item(2, 7),
        block(4),
        item(0, 8),
        item(0, 9),
        end,
        Packet::Fup(ip(2)),
    ]);
    let items = decode(everything(), vec![(trace, false)], |event| {
        (text(event), event.items.clone())
    });
    let (text, items) = items.last().cloned().expect("an event");
    assert_eq!(text, "block +2 0");
    assert_eq!(items.expect("items").items, [(1, 2, 7), (4, 0, 9)]);
}

#[test]
fn emulated_ptwrite() {
    let bits = [true, false, true, true].repeat(16);
    let (first, rest) = bits.split_at(40);
    let jump = [tnt(&[false, true]), Packet::Tip(ip(0x12))];
    let packets = [&jump[..], &[tnt(first), tnt(rest)]].concat();
    let found = events_with(everything(), &packets);
    assert_eq!(
        found[2..5],
        ["branch +9 +12", "branch +12 +24", "ptwrite +24 0"]
    );
    let broken = events_with(everything(), &[&jump[..], &[tnt(first)]].concat());
    assert_eq!(broken[4], "Broken emulated ptwrite at +24");
}

#[test]
fn filters_and_guests() {
    // The call leaves what is traced, without a packet.
    check(
        &[tnt(&[false]), Packet::TipPgd(ip(0x10))],
        &["branch+end +4 +10"],
    );
    let pip = Packet::Pip(Pip {
        non_root: true,
        cr3: 5,
    });
    let start = [Packet::Psb, Packet::PsbEnd, Packet::TipPge(ip(0))];
    let packets = [tnt(&[false, true]), pip, Packet::Tip(ip(0)), tnt(&[true])];
    let guests = decode(
        everything(),
        vec![(bytes(&[&start[..], &packets].concat()), false)],
        |event| (event.is_from_guest, event.is_to_guest),
    );
    assert_eq!(guests[4..], [(false, true), (true, true)]);
}

#[test]
fn less_detail() {
    let packets = [
        tnt(&[false]),
        Packet::Tip(ip(9)),
        Packet::Fup(ip(9)),
        Packet::Tip(ip(0)),
        Packet::Psb,
        Packet::Fup(ip(2)),
        mode(false),
        Packet::PsbEnd,
        tnt(&[true]),
        Packet::TipPgd(ip(0xd)),
    ];
    let detail = |detail| events_with_detail(detail, &packets);
    assert_eq!(
        detail(Detail::Addresses),
        [
            "psb 0 0",
            "branch+begin 0 +0",
            "instruction +0 0",
            "instruction +9 0",
            "branch+instruction async +9 +0",
            "instruction +0 0",
            "instruction+psb +2 0",
            "branch+end 0 +d"
        ],
    );
    assert_eq!(detail(Detail::Psb), ["psb 0 0", "instruction+psb +2 0"]);
}

fn events_with_detail(detail: Detail, packets: &[Packet]) -> Vec<String> {
    let start = [
        Packet::Psb,
        mode(false),
        Packet::PsbEnd,
        Packet::TipPge(ip(0)),
    ];
    let trace = bytes(&[&start[..], packets].concat());
    decode(
        Config {
            detail,
            ..everything()
        },
        vec![(trace, false)],
        text,
    )
}

#[test]
fn periods() {
    let period = |period, packets: &[Packet]| {
        let config = Config {
            wanted: EventKinds::INSTRUCTION,
            period,
            ..everything()
        };
        let start = [Packet::Psb, Packet::PsbEnd, Packet::TipPge(ip(0))];
        let trace = bytes(&[&start[..], packets].concat());
        decode(config, vec![(trace, false)], |event| {
            (place(event.from), event.instructions)
        })
        .split_off(1)
    };
    let branches = [tnt(&[true, true, true, false, true])];
    let all = |found: &[(&str, u64)]| -> Vec<(String, u64)> {
        found
            .iter()
            .map(|(ip, count)| ((*ip).to_owned(), *count))
            .collect()
    };
    assert_eq!(
        period(Period::Instructions(3), &branches),
        all(&[("+0", 3), ("+2", 6), ("+4", 9)]),
    );
    assert_eq!(period(Period::Instructions(1), &branches).len(), 11);
    assert_eq!(period(Period::None, &branches), []);
}

#[test]
fn times() {
    let tma = Tma {
        ctc: 0x108,
        reserved: 0,
        fast_counter: 2,
        reserved_high: 0,
    };
    let cbr = Packet::Cbr(Cbr {
        ratio: 10,
        reserved: 0,
    });
    let trace = bytes(&[
        Packet::Psb,
        Packet::Tsc(Tsc {
            tsc: (1 << 40) + 1000,
        }),
        Packet::Tma(tma),
        cbr,
        Packet::PsbEnd,
        Packet::TipPge(ip(0)),
        Packet::Mtc(Mtc { ctc: 0x22 }),
        tnt(&[true]),
        Packet::Cyc(Cyc::new(10)),
        tnt(&[true]),
        Packet::Tsc(Tsc {
            tsc: (1 << 40) + 2000,
        }),
        tnt(&[true]),
    ]);
    let config = Config {
        ctl: 1 << 1 | 1 << 13,
        mtc_shift: 3,
        tsc_ctc_ratio: (4, 2),
        max_non_turbo_ratio: 20,
        ..everything()
    };
    let high = 1 << 40;
    let found = decode(config, vec![(trace, false)], |event| {
        (
            event.time - high,
            event.estimated_time - high,
            event.instructions,
            event.cycles,
        )
    });
    // MTC: 2 ticks per crystal clock, the counter is in units of 8 of them, and was 0x21 at CTC
    // 0x108: 1000 - 2 + 8 * 2. CYC: 2 ticks per cycle by the core bus ratio, from CBR on.
    // Before the first CYC packet, cycles follow from times.
    assert_eq!(
        found,
        [
            (1000, 1000, 0, 0),
            (1000, 1000, 0, 0),
            (1014, 1022, 2, 7),
            (1020, 1028, 4, 17),
            (2000, 2008, 6, 17)
        ],
    );
}

#[test]
fn parts_of_a_trace() {
    let packets = bytes(&[
        Packet::Psb,
        mode(false),
        Packet::PsbEnd,
        Packet::TipPge(ip(0)),
        tnt(&[true; 20]),
        Packet::Tsc(Tsc { tsc: 5 }),
        tnt(&[false]),
    ]);
    let whole = decode(everything(), vec![(packets.clone(), false)], text);
    for cut in 0..packets.len() {
        let (first, second) = packets.split_at(cut);
        let parts = vec![(first.to_vec(), false), (second.to_vec(), true)];
        assert_eq!(decode(everything(), parts, text), whole, "cut at {cut}");
    }
    // Something is missing: what is between the PSB packets of two parts is unknown.
    let parts = vec![
        (packets.clone(), false),
        (packets[4..].to_vec(), false),
        (packets, false),
    ];
    let found = decode(everything(), parts, text);
    assert_eq!(found, [&whole[..], &whole].concat());
    // Bytes that are no packet.
    let mut bad = bytes(&[Packet::Psb, Packet::PsbEnd, Packet::TipPge(ip(0))]);
    bad.extend([0x02, 0x02]);
    bad.extend(bytes(&[tnt(&[true])]));
    assert_eq!(
        decode(everything(), vec![(bad, false)], text)[2..],
        ["Bad packet at +0", "Bad packet at +0", "branch +2 +0"],
    );
}
