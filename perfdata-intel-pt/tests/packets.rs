//! Values, bytes and texts of all packets, and streams of any bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a panic fails the test"
)]

use std::collections::HashSet;

use perfdata_intel_pt::{
    BadPacket, Bbp, Bep, Bip4, Bip8, BlockItemSize, Cbr, Cfe, CompressedIp, Cyc, Evd, Exstop, Mnt,
    ModeExec, ModeTsx, Mtc, Mwait, Packet, Packets, Pip, Ptwrite4, Ptwrite8, Pwre, Pwrx, Tma, Tnt,
    Tsc, Vmcs, find_psb,
};

fn tnt(branches: &str) -> Packet {
    let taken: Vec<bool> = branches.chars().map(|letter| letter == 'T').collect();
    Packet::Tnt(Tnt::new(&taken).expect("1 to 47 branches"))
}

/// Returns a packet of each kind with its bytes and the text of perf script -D (6.1, 6.12, 7.2).
fn cases() -> Vec<(Packet, &'static [u8], &'static str)> {
    use CompressedIp::{Full, Low16, Low32, Low48, SignExtended, Suppressed};
    vec![
        (Packet::Pad, &[0x00], "PAD"),
        (
            Packet::Psb,
            b"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82",
            "PSB",
        ),
        (Packet::PsbEnd, &[0x02, 0x23], "PSBEND"),
        (Packet::Ovf, &[0x02, 0xf3], "OVF"),
        (Packet::TraceStop, &[0x02, 0x83], "TraceSTOP"),
        (tnt("N"), &[0x04], "TNT N (1)"),
        (tnt("TNNTNT"), &[0xca], "TNT TNNTNT (6)"),
        (
            tnt("TNNNNNNNNNNNT"),
            &[0x02, 0xa3, 0x01, 0x30, 0, 0, 0, 0],
            "TNT TNNNNNNNNNNNT (13)",
        ),
        (Packet::Tip(Suppressed), &[0x0d], "TIP no ip"),
        (
            Packet::Tip(Low16(0x3412)),
            &[0x2d, 0x12, 0x34],
            "TIP 0x3412",
        ),
        (
            Packet::Fup(Low32(0x7856_3412)),
            &[0x5d, 0x12, 0x34, 0x56, 0x78],
            "FUP 0x78563412",
        ),
        (
            Packet::TipPge(SignExtended(0x6655_4433_2211)),
            &[0x71, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66],
            "TIP.PGE 0x665544332211",
        ),
        (
            Packet::TipPgd(Low48(0x6655_4433_2211)),
            &[0x81, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66],
            "TIP.PGD 0x665544332211",
        ),
        (
            Packet::Tip(Full(0x8877_6655_4433_2211)),
            &[0xcd, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88],
            "TIP 0x8877665544332211",
        ),
        (Packet::Cyc(Cyc::new(31)), &[0xfb], "CYC 0x1f"),
        (Packet::Cyc(Cyc::new(0x21)), &[0x0f, 0x02], "CYC 0x21"),
        (
            Packet::Cyc(Cyc::new(u64::MAX)),
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0e],
            "CYC 0xffffffffffffffff",
        ),
        (
            Packet::Tsc(Tsc {
                tsc: 0x77_6655_4433_2211,
            }),
            &[0x19, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77],
            "TSC 0x77665544332211",
        ),
        (Packet::Mtc(Mtc { ctc: 0xaa }), &[0x59, 0xaa], "MTC 0xaa"),
        (
            Packet::Tma(Tma {
                ctc: 0x2211,
                fast_counter: 0x133,
                ..Tma::default()
            }),
            &[0x02, 0x73, 0x11, 0x22, 0x00, 0x33, 0x01],
            "TMA CTC 0x2211 FC 0x133",
        ),
        (
            Packet::Cbr(Cbr {
                ratio: 10,
                reserved: 0x7f,
            }),
            &[0x02, 0x03, 0x0a, 0x7f],
            "CBR 0x7f0a",
        ),
        (
            Packet::ModeExec(ModeExec {
                is_long: true,
                ..ModeExec::default()
            }),
            &[0x99, 0x01],
            "MODE.Exec IF:0 64",
        ),
        (
            Packet::ModeExec(ModeExec {
                is_32_bit: true,
                interrupts: true,
                ..ModeExec::default()
            }),
            &[0x99, 0x06],
            "MODE.Exec IF:1 32",
        ),
        (
            Packet::ModeExec(ModeExec::default()),
            &[0x99, 0x00],
            "MODE.Exec IF:0 16",
        ),
        (
            Packet::ModeTsx(ModeTsx {
                is_abort: true,
                ..ModeTsx::default()
            }),
            &[0x99, 0x22],
            "MODE.TSX TXAbort:1 InTX:0",
        ),
        (
            Packet::Pip(Pip {
                non_root: true,
                cr3: 0x2219_9108_ff80,
            }),
            &[0x02, 0x43, 0x01, 0xff, 0x11, 0x22, 0x33, 0x44],
            "PIP 0x22199108ff80 (NR=1)",
        ),
        (
            Packet::Vmcs(Vmcs {
                pointer: 0x55_4433_2211,
            }),
            &[0x02, 0xc8, 0x11, 0x22, 0x33, 0x44, 0x55],
            "VMCS 0x5544332211",
        ),
        (
            Packet::Mnt(Mnt {
                payload: 0x8877_6655_4433_2211,
            }),
            &[
                0x02, 0xc3, 0x88, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
            ],
            "MNT 0x8877665544332211",
        ),
        (
            Packet::Ptwrite4(Ptwrite4 {
                has_ip: false,
                payload: 0x4433_2211,
            }),
            &[0x02, 0x12, 0x11, 0x22, 0x33, 0x44],
            "PTWRITE 0x44332211 IP:0",
        ),
        (
            Packet::Ptwrite8(Ptwrite8 {
                has_ip: true,
                payload: 0x8877_6655_4433_2211,
            }),
            &[0x02, 0xb2, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88],
            "PTWRITE 0x8877665544332211 IP:1",
        ),
        (
            Packet::Exstop(Exstop { has_ip: true }),
            &[0x02, 0xe2],
            "EXSTOP IP:1",
        ),
        (
            Packet::Mwait(Mwait {
                hints: 0x11,
                reserved: 0x44_3322,
                extensions: 1,
                reserved_high: 0x221d_d995,
            }),
            &[0x02, 0xc2, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88],
            "MWAIT 0x8877665544332211 Hints 0x11 Extensions 0x1",
        ),
        (
            Packet::Pwre(Pwre {
                reserved: 0x11,
                is_hardware: true,
                sub_c_state: 2,
                c_state: 4,
            }),
            &[0x02, 0x22, 0x91, 0x42],
            "PWRE 0x4291 HW:1 CState:4 Sub-CState:2",
        ),
        (
            Packet::Pwrx(Pwrx {
                deepest_c_state: 1,
                last_c_state: 3,
                wake_reason: 8,
                reserved: 0x0554_4332,
            }),
            &[0x02, 0xa2, 0x31, 0x28, 0x33, 0x44, 0x55],
            "PWRX 0x5544332831 Last CState:3 Deepest CState:1 Wake Reason 0x8",
        ),
        (
            Packet::Bbp(Bbp {
                block_type: 4,
                has_4_bytes: true,
                ..Bbp::default()
            }),
            &[0x02, 0x63, 0x84],
            "BBP SZ 4-byte Type 0x4",
        ),
        (
            Packet::Bip4(Bip4 {
                id: 1,
                value: 0x4433_2211,
            }),
            &[0x0c, 0x11, 0x22, 0x33, 0x44],
            "BIP ID 0x01 Value 0x44332211",
        ),
        (
            Packet::Bbp(Bbp {
                block_type: 0x1f,
                ..Bbp::default()
            }),
            &[0x02, 0x63, 0x1f],
            "BBP SZ 8-byte Type 0x1f",
        ),
        (
            Packet::Bip8(Bip8 {
                id: 31,
                value: 0x8877_6655_4433_2211,
            }),
            &[0xfc, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88],
            "BIP ID 0x1f Value 0x8877665544332211",
        ),
        (
            Packet::Bep(Bep { has_ip: false }),
            &[0x02, 0x33],
            "BEP IP:0",
        ),
        (
            Packet::Cfe(Cfe {
                event: 5,
                has_ip: true,
                vector: 14,
                ..Cfe::default()
            }),
            &[0x02, 0x13, 0x85, 0x0e],
            "CFE IP:1 Type 0x05 Vector 0xe",
        ),
        (
            Packet::Evd(Evd {
                kind: 1,
                payload: 0x8877_6655_4433_2211,
                ..Evd::default()
            }),
            &[
                0x02, 0x53, 0x01, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
            ],
            "EVD Type 0x01 Payload 0x8877665544332211",
        ),
    ]
}

fn written(packet: Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.write(&mut bytes);
    bytes
}

/// Returns the block to which the packet belongs.
fn block(packet: Packet) -> Option<BlockItemSize> {
    match packet {
        Packet::Bip4(_) => Some(BlockItemSize::Four),
        Packet::Bip8(_) => Some(BlockItemSize::Eight),
        _ => None,
    }
}

#[test]
fn values_bytes_and_texts() {
    let mut kinds = HashSet::new();
    for (packet, bytes, text) in cases() {
        kinds.insert(std::mem::discriminant(&packet));
        assert_eq!(written(packet), bytes, "{text}");
        assert_eq!(packet.size(), bytes.len(), "{text}");
        assert!(bytes.len() <= Packet::MAX_SIZE);
        assert_eq!(packet.to_string(), text);
        assert!(text.starts_with(packet.name()));
        let in_block = block(packet);
        let more = [bytes, &[0xff; 16]].concat();
        assert_eq!(Packet::first(bytes, in_block), Ok(packet), "{text}");
        assert_eq!(Packet::first(&more, in_block), Ok(packet), "{text}");
        for len in 0..bytes.len() {
            let cut = Packet::first(&bytes[..len], in_block);
            assert_eq!(cut, Err(BadPacket::Truncated), "{text} {len}");
        }
    }
    assert_eq!(kinds.len(), 32, "a packet without a case");
}

#[test]
fn fields_have_names() {
    let fields = |packet: Packet| {
        let mut all = Vec::new();
        packet.fields(&mut |name, value, bits| {
            assert!(bits == 64 || value >> bits == 0);
            all.push((name, value));
        });
        all
    };
    assert_eq!(fields(Packet::Psb), []);
    assert_eq!(fields(tnt("TNN")), [("count", 3), ("bits", 0b100)]);
    assert_eq!(fields(Packet::Tip(CompressedIp::Suppressed)), []);
    assert_eq!(fields(Packet::Fup(CompressedIp::Low16(7))), [("ip", 7)]);
    assert_eq!(fields(Packet::Cyc(Cyc::new(40))), [("cycles", 40)]);
    let exec = ModeExec {
        is_32_bit: true,
        ..ModeExec::default()
    };
    let expected = [
        ("is_long", 0),
        ("is_32_bit", 1),
        ("interrupts", 0),
        ("reserved", 0),
    ];
    assert_eq!(fields(Packet::ModeExec(exec)), expected);
}

#[test]
fn bytes_that_are_no_packet() {
    let unknown: &[&[u8]] = &[
        &[0x02, 0x00],
        &[0x02, 0x52, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x02, 0xc3, 0x87],
        &[0x02, 0x82, 0x02, 0x83],
        &[0x99, 0x03],
        &[0x99, 0x23],
        &[0x99, 0x40],
        &[0xad, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0xed],
        &[0x05],
        &[0xff; 11],
    ];
    for bytes in unknown {
        let found = Packet::first(bytes, None);
        assert_eq!(found, Err(BadPacket::Unknown), "{bytes:x?}");
    }
    // An item of a block is a TNT packet outside of one.
    assert_eq!(Packet::first(&[0x0c, 1, 2, 3, 4], None), Ok(tnt("TN")));
    // A long TNT packet without a stop bit has no branches.
    let bytes = [0x02, 0xa3, 0, 0, 0, 0, 0, 0];
    let packet = Packet::first(&bytes, None).expect("a packet");
    assert_eq!(packet.to_string(), "TNT  (0)");
    assert_eq!(written(packet), bytes);
    assert_eq!(Tnt::new(&[]), None);
    assert_eq!(Tnt::new(&[true; 48]), None);
}

#[test]
fn addresses_are_compressed_and_resolved() {
    use CompressedIp::{Full, Low16, Low32, Low48, SignExtended, Suppressed};
    let last = 0x1234_5678_9abc_def0;
    assert_eq!(Suppressed.resolve(last), None);
    assert_eq!(Low16(1).resolve(last), Some(0x1234_5678_9abc_0001));
    assert_eq!(Low32(1).resolve(last), Some(0x1234_5678_0000_0001));
    assert_eq!(Low48(1).resolve(last), Some(0x1234_0000_0000_0001));
    assert_eq!(SignExtended(1).resolve(last), Some(1));
    let kernel = SignExtended(0x8000_0000_0001).resolve(last);
    assert_eq!(kernel, Some(0xffff_8000_0000_0001));
    assert_eq!(Full(1).resolve(last), Some(1));
    let cases = [
        (last, last ^ 5, Low16(0xdef5)),
        (last, last ^ 5 << 20, Low32(0x9aec_def0)),
        (last, 0x40_1000, SignExtended(0x40_1000)),
        (last, !0xfff, SignExtended(0xffff_ffff_f000)),
        (last, last ^ 5 << 40, Low48(0x5378_9abc_def0)),
        (last, 0x2234_5678_9abc_def0, Full(0x2234_5678_9abc_def0)),
    ];
    for (last, ip, expected) in cases {
        let found = CompressedIp::after(last, ip);
        assert_eq!(found, expected, "{ip:#x}");
        assert_eq!(found.resolve(last), Some(ip));
    }
}

/// Returns numbers that look random.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

/// Returns packets with damage.
fn stream(seed: u64) -> Vec<u8> {
    let (cases, mut random) = (cases(), random(seed));
    let mut bytes = Vec::new();
    for _ in 0..2000 {
        match random(8) {
            0 => bytes.push(random(256) as u8),
            1 => bytes.extend([0x02, random(256) as u8]),
            2 => bytes.extend(&cases[1].1[..random(17)]),
            _ => bytes.extend(cases[random(cases.len())].1),
        }
    }
    bytes
}

/// Each byte is in one packet or error, a packet is written as it was read, and the packets do not
/// depend on the parts in which the bytes arrive.
#[test]
fn streams_of_any_bytes() {
    for seed in 0..30 {
        let bytes = stream(seed);
        let whole: Vec<_> = Packets::new(&bytes, 7).collect();
        let mut at = 0;
        for found in &whole {
            assert_eq!(found.offset, 7 + at as u64);
            match found.packet {
                Ok(packet) => {
                    let size = packet.size();
                    assert_eq!(found.size, size);
                    assert_eq!(written(packet), bytes[at..at + size], "{packet}");
                }
                Err(_) => assert_eq!(found.size, 1),
            }
            at += found.size;
        }
        assert_eq!(at, bytes.len());
        assert!(whole.iter().any(|found| found.packet.is_err()));

        let (mut parts, mut held, mut block) = (Vec::new(), Vec::new(), None);
        let pieces: Vec<_> = bytes.chunks(1 + seed as usize).collect();
        let (mut offset, last) = (7, pieces.len() - 1);
        for (number, piece) in pieces.into_iter().enumerate() {
            held.extend(piece);
            let mut packets = Packets::after(block, &held, offset);
            while let Some(found) = packets.decode(number < last) {
                parts.push(found);
            }
            (block, offset) = (packets.block(), packets.offset());
            held = packets.remaining().to_vec();
            assert!(held.len() < Packet::MAX_SIZE);
        }
        assert_eq!(parts, whole);
    }
}

#[test]
fn psb_packets_are_found_at_any_place() {
    let psb = written(Packet::Psb);
    for before in 0..70 {
        for filler in [0x00, 0x02, 0x82] {
            let bytes = [vec![filler; before], psb.clone(), vec![filler; 30]].concat();
            let expected = bytes.windows(16).position(|window| window == psb);
            assert_eq!(find_psb(&bytes), expected, "{before} {filler}");
            assert_eq!(find_psb(&bytes[..before + 15]), None);
        }
    }
    let bytes = [vec![0x05, 0x0f, 0x02], psb, written(tnt("T"))].concat();
    let mut packets = Packets::new(&bytes, 0);
    assert!(packets.next().is_some_and(|found| found.packet.is_err()));
    assert!(packets.resynchronize());
    let found: Vec<_> = packets.clone().map(|found| found.packet).collect();
    assert_eq!(found, [Ok(Packet::Psb), Ok(tnt("T"))]);
    packets.next();
    assert!(!packets.resynchronize());
    assert!(packets.next().is_none());
}
