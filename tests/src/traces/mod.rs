//! Traces of hardware with packets of all kinds, and with damage.

pub mod encoder;
pub mod flow;
pub mod program;

use perfdata_core::arm_spe;
use perfdata_core::intel_bts::BtsRecord;
use perfdata_intel_pt::{
    Bbp, Bep, Bip4, Bip8, Cbr, Cfe, CompressedIp, Cyc, Evd, Exstop, Mnt, ModeExec, ModeTsx, Mtc,
    Mwait, Packet, Pip, Ptwrite4, Ptwrite8, Pwre, Pwrx, Tma, Tnt, Tsc, Vmcs,
};

use crate::generate::random::Random;

/// Returns a packet of Intel PT of each kind, with random fields.
pub fn intel_pt_packets(random: &mut Random) -> Vec<Packet> {
    let mut byte = || random.word() as u8;
    let (ratio, ctc, is_set, few) = (byte(), byte(), byte() & 1 == 1, byte() & 0x0f);
    let mut word = || random.word();
    let taken: Vec<bool> = (0..1 + word() % 47).map(|_| word() % 2 == 0).collect();
    let ips = [
        CompressedIp::Suppressed,
        CompressedIp::Low16(word() as u16),
        CompressedIp::Low32(word() as u32),
        CompressedIp::SignExtended(word() >> 16),
        CompressedIp::Low48(word() >> 16),
        CompressedIp::Full(word()),
    ];
    let mut packets: Vec<Packet> = ips
        .into_iter()
        .flat_map(|ip| {
            [
                Packet::Tip(ip),
                Packet::TipPge(ip),
                Packet::TipPgd(ip),
                Packet::Fup(ip),
            ]
        })
        .collect();
    packets.extend([
        Packet::Pad,
        Packet::Psb,
        Packet::PsbEnd,
        Packet::Ovf,
        Packet::TraceStop,
        Packet::Tnt(Tnt::new(&taken).expect("up to 47 branches")),
        Packet::Tnt(Tnt::new(&taken[..1 + taken.len() % 6.min(taken.len())]).expect("a branch")),
        Packet::Cyc(Cyc::new(word() >> (word() % 64))),
        Packet::Tsc(Tsc { tsc: word() >> 8 }),
        Packet::Mtc(Mtc { ctc }),
        Packet::Tma(Tma {
            ctc: word() as u16,
            reserved: ratio,
            fast_counter: word() as u16 & 0x1ff,
            reserved_high: 0,
        }),
        Packet::Cbr(Cbr { ratio, reserved: 0 }),
        Packet::ModeExec(ModeExec {
            is_long: is_set,
            is_32_bit: !is_set,
            interrupts: is_set,
            reserved: few & 3,
        }),
        Packet::ModeTsx(ModeTsx {
            in_tx: is_set,
            is_abort: !is_set,
            reserved: 0,
        }),
        Packet::Pip(Pip {
            non_root: is_set,
            cr3: word() >> 17,
        }),
        Packet::Vmcs(Vmcs {
            pointer: word() >> 24,
        }),
        Packet::Mnt(Mnt { payload: word() }),
        Packet::Ptwrite4(Ptwrite4 {
            has_ip: is_set,
            payload: word() as u32,
        }),
        Packet::Ptwrite8(Ptwrite8 {
            has_ip: is_set,
            payload: word(),
        }),
        Packet::Exstop(Exstop { has_ip: is_set }),
        Packet::Mwait(Mwait {
            hints: ratio,
            reserved: 5,
            extensions: few & 3,
            reserved_high: 7,
        }),
        Packet::Pwre(Pwre {
            reserved: 1,
            is_hardware: is_set,
            sub_c_state: few,
            c_state: 15 - few,
        }),
        Packet::Pwrx(Pwrx {
            deepest_c_state: few,
            last_c_state: 15 - few,
            wake_reason: few,
            reserved: 3,
        }),
        Packet::Bbp(Bbp {
            block_type: few,
            reserved: few & 3,
            has_4_bytes: true,
        }),
        Packet::Bip4(Bip4 {
            id: few,
            value: word() as u32,
        }),
        Packet::Cyc(Cyc::new(3)),
        Packet::Bip4(Bip4 { id: 31, value: 0 }),
        Packet::Bep(Bep { has_ip: is_set }),
        Packet::Bbp(Bbp {
            block_type: few,
            reserved: 0,
            has_4_bytes: false,
        }),
        Packet::Bip8(Bip8 {
            id: few,
            value: word(),
        }),
        Packet::Bep(Bep { has_ip: is_set }),
        Packet::Cfe(Cfe {
            event: few,
            reserved: 0,
            has_ip: is_set,
            vector: ratio,
        }),
        Packet::Evd(Evd {
            kind: few,
            reserved: 0,
            payload: word(),
        }),
    ]);
    packets
}

/// Returns bytes of packets, and between them random ones if `damaged`, of about `size` bytes.
pub fn intel_pt(random: &mut Random, size: usize, damaged: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < size {
        for packet in intel_pt_packets(random) {
            match random.below(8) {
                0 if damaged => bytes.extend((random.word() as u16).to_le_bytes()),
                1 if damaged => bytes.extend([0x02, random.word() as u8]),
                2 => bytes.resize(bytes.len() + random.below(12) as usize, 0),
                _ => {}
            }
            packet.write(&mut bytes);
            if damaged && random.below(20) == 0 {
                bytes.pop();
            }
        }
    }
    aligned(bytes)
}

/// Returns branches of Intel BTS.
pub fn intel_bts(random: &mut Random, count: usize) -> Vec<u8> {
    let record = |_| BtsRecord {
        from: random.word() >> random.below(64),
        to: random.word() >> random.below(64),
        flags: random.word(),
    };
    (0..count)
        .map(record)
        .flat_map(|record| record.bytes())
        .collect()
}

/// Returns bytes that are often packets of Arm SPE, without packets of alignment: where perf
/// regards them as complete depends on the address at which it reads them; and without operations
/// that have no name, for which it prints any text.
pub fn arm_spe(random: &mut Random, size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < size {
        let mut packet = vec![*random.pick(&[
            0x00, 0x01, 0x42, 0x43, 0x48, 0x49, 0x4a, 0x4b, 0x52, 0x53, 0x62, 0x64, 0x65, 0x71,
            0x72, 0x98, 0x99, 0x9a, 0x9b, 0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0x06, 0xff,
        ])];
        while let Err(arm_spe::Unreadable::Truncated) = arm_spe::Packet::first(&packet) {
            packet.push(random.word() as u8);
        }
        let is_named = match arm_spe::Packet::first(&packet) {
            Ok((packet, _)) => !packet.to_string().is_empty(),
            Err(_) => true,
        };
        if is_named {
            bytes.extend(packet);
        }
    }
    aligned(bytes)
}

pub(crate) fn aligned(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}
