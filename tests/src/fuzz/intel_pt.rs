//! Packets of Intel PT of any content.

use perfdata_intel_pt::{Packet, PacketAt, Packets, Tnt};

/// Decodes a trace, whole and in two parts, which makes no difference. Each byte is in one packet
/// or error, and packets are written as they were read.
pub fn intel_pt(data: &[u8]) {
    let (cut, trace) = data
        .split_first()
        .map_or((0, data), |(cut, trace)| (*cut, trace));
    let whole: Vec<PacketAt> = Packets::new(trace, 0).collect();
    let mut at = 0;
    for found in &whole {
        assert_eq!(found.offset, at as u64);
        let end = at + found.size;
        if let Ok(packet) = found.packet {
            let mut bytes = Vec::new();
            packet.write(&mut bytes);
            // The tenth byte of CYC has bits that no number of 64 bits has.
            if !matches!(packet, Packet::Cyc(_)) || found.size < 10 {
                assert_eq!(bytes, trace[at..end], "{packet}");
            }
            packet.fields(&mut |name, _, _| assert!(!name.is_empty()));
        }
        at = end;
    }
    assert_eq!(at, trace.len());
    let cut = usize::from(cut).min(trace.len());
    let mut first = Packets::new(&trace[..cut], 0);
    let mut parts = Vec::new();
    while let Some(found) = first.decode(true) {
        parts.push(found);
    }
    let at = cut - first.remaining().len();
    parts.extend(Packets::after(first.block(), &trace[at..], at as u64));
    assert_eq!(parts, whole);
    let mut packets = Packets::new(trace, 0);
    if packets.resynchronize() {
        let next = packets.next().map(|found| found.packet);
        assert_eq!(next, Some(Ok(Packet::Psb)));
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut trace = vec![20];
    let branches = Tnt::new(&[true; 20]).expect("up to 47 branches");
    for packet in [Packet::Psb, Packet::PsbEnd, Packet::Tnt(branches)] {
        packet.write(&mut trace);
    }
    let block = [0x02, 0x63, 0x84, 0x0c, 1, 2, 3, 4, 0x02, 0x33];
    let others = [
        0x02, 0x43, 0, 0, 0, 0, 0, 0, 0x19, 1, 2, 3, 4, 5, 6, 7, 0x07, 3,
    ];
    let addresses = [
        0x71, 1, 2, 3, 4, 5, 6, 0x2d, 1, 2, 0xcd, 1, 2, 3, 4, 5, 6, 7, 8,
    ];
    trace.extend(block);
    vec![
        trace,
        [&[9][..], &others, &addresses].concat(),
        vec![
            3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
        ],
    ]
}
