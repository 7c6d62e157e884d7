//! Synchronization points in the packets of Intel PT.
//!
//! A decoder starts at a PSB packet, which resets the state of compression. State packets follow it
//! up to PSBEND; one of them, TSC, is the time. The packets are described in the Intel 64 and IA-32
//! Architectures Software Developer's Manual, volume 3, "Intel Processor Trace".

#![allow(
    clippy::arithmetic_side_effects,
    reason = "lengths of packets, and places in the bytes in memory"
)]

use perfdata_intel_pt::{BadPacket, Packet, find_psb};

/// Size of a PSB packet in bytes: 02 82, eight times.
const PSB: usize = 16;

/// Maximum number of bytes from PSB to the end of PSBEND. There are a few packets, of up to 11
/// bytes each.
const MOST: u64 = 1 << 10;

/// Number of bytes that are searched at once.
const BLOCK: usize = 256;

/// A PSB packet with a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyncPoint {
    /// Offset of the PSB packet in the stream.
    pub(super) start: u64,
    /// Offset of the end of its PSBEND packet.
    pub(super) end: u64,
    /// The low 56 bits of the TSC.
    pub(super) tsc: u64,
}

/// Searches a stream of packets, which arrives in parts of any size.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Offset of the next byte in the stream.
    at: u64,
    /// Number of bytes of a PSB packet that the last bytes of the stream may be.
    matched: usize,
    /// The last PSB packet, until its PSBEND arrives.
    open: Option<Open>,
}

impl Search {
    /// Returns the number of bytes so far.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Processes the next bytes of the stream, and passes the points that end in them to `found`.
    pub(super) fn push(&mut self, bytes: &[u8], mut found: impl FnMut(SyncPoint)) {
        for block in bytes.chunks(BLOCK) {
            if self.matched == 0 && self.open.is_none() && find_psb(block).is_none() {
                // The block contains no whole packet; one may start at its end.
                let tail = block.len().saturating_sub(PSB - 1);
                self.at += tail as u64;
                self.each(block.get(tail..).unwrap_or_default(), &mut found);
            } else {
                self.each(block, &mut found);
            }
        }
    }

    fn each(&mut self, bytes: &[u8], found: &mut impl FnMut(SyncPoint)) {
        for &byte in bytes {
            self.at += 1;
            if let Some(open) = &mut self.open {
                match open.push(byte) {
                    PsbState::Incomplete if self.at - open.start < MOST => {}
                    PsbState::Complete => {
                        let Open { start, tsc, .. } = *open;
                        let end = self.at;
                        if let Some(tsc) = tsc {
                            found(SyncPoint { start, end, tsc });
                        }
                        self.open = None;
                    }
                    _ => self.open = None,
                }
            }
            self.matched = match (byte, self.matched % 2) {
                (0x02, 0) | (0x82, 1) => self.matched + 1,
                (0x02, _) => 1,
                _ => 0,
            };
            if self.matched == PSB {
                self.matched = 0;
                self.open = Some(Open {
                    start: self.at - PSB as u64,
                    packet: Vec::new(),
                    tsc: None,
                });
            }
        }
    }
}

/// The packets after a PSB packet.
#[derive(Debug)]
struct Open {
    /// Offset of the PSB packet.
    start: u64,
    /// The bytes of the last packet.
    packet: Vec<u8>,
    /// The low 56 bits of the TSC.
    tsc: Option<u64>,
}

/// Whether more packets belong to a PSB packet.
enum PsbState {
    /// Yes.
    Incomplete,
    /// No: PSBEND has arrived.
    Complete,
    /// No: a decoder discards what it knows at another packet.
    Invalid,
}

impl Open {
    /// Processes the next byte.
    fn push(&mut self, byte: u8) -> PsbState {
        self.packet.push(byte);
        match Packet::first(&self.packet, None) {
            Err(BadPacket::Truncated) => return PsbState::Incomplete,
            Ok(Packet::PsbEnd) => return PsbState::Complete,
            Ok(Packet::Tsc(tsc)) => self.tsc = Some(tsc.tsc),
            Ok(packet) if is_state(&packet) => {}
            _ => return PsbState::Invalid,
        }
        self.packet.clear();
        PsbState::Incomplete
    }
}

/// Returns whether the packet can come between PSB and PSBEND.
fn is_state(packet: &Packet) -> bool {
    matches!(
        packet,
        Packet::Pad
            | Packet::Cbr(_)
            | Packet::Pip(_)
            | Packet::Tma(_)
            | Packet::Vmcs(_)
            | Packet::Mnt(_)
            | Packet::ModeExec(_)
            | Packet::ModeTsx(_)
            | Packet::Mtc(_)
            | Packet::Fup(_)
            | Packet::Cyc(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn psb() -> Vec<u8> {
        [0x02, 0x82].repeat(8)
    }

    fn tsc(time: u64) -> Vec<u8> {
        [&[0x19], time.to_le_bytes().get(..7).unwrap_or_default()].concat()
    }

    const PSBEND: [u8; 2] = [0x02, 0x23];

    /// Returns the points of a stream in parts of `size` bytes.
    fn points(bytes: &[u8], size: usize) -> Vec<SyncPoint> {
        let (mut search, mut all) = (Search::default(), Vec::new());
        for part in bytes.chunks(size) {
            search.push(part, |point| all.push(point));
        }
        assert_eq!(search.at(), bytes.len() as u64);
        all
    }

    #[test]
    fn points_are_found_in_parts_of_any_size() {
        let packets = [
            vec![0x02, 0x03, 0x18, 0x00],
            vec![0x99, 0x01],
            tsc(0xaa_1122_3344_5566),
            vec![0x02, 0x73, 1, 2, 3, 4, 5],
            vec![0x00, 0x00, 0x59, 0x07],
            vec![0x7d, 1, 2, 3, 4, 5, 6],
            vec![0x02, 0x43, 0, 0, 0, 0, 0, 0],
            vec![0x07, 0x01, 0x00, 0x03],
            vec![0x02, 0xc8, 0, 0, 0, 0, 0],
        ];
        for before in (0..40).chain([250, 255, 256, 300, 1000]) {
            let mut bytes = vec![0x02; before];
            bytes.extend(psb());
            bytes.extend(packets.concat());
            bytes.extend(PSBEND);
            let end = bytes.len() as u64;
            bytes.extend(vec![0x82; 600]);
            let start = bytes.len() as u64;
            bytes.extend([psb(), tsc(7), PSBEND.to_vec(), vec![1; 3]].concat());
            let expected = [
                SyncPoint {
                    start: before as u64,
                    end,
                    tsc: 0xaa_1122_3344_5566,
                },
                SyncPoint {
                    start,
                    end: start + 26,
                    tsc: 7,
                },
            ];
            for size in [1, 7, 8, 13, 100, 256, 300, usize::MAX] {
                assert_eq!(points(&bytes, size), expected, "{before} {size}");
            }
        }
    }

    #[test]
    fn a_point_needs_a_time_and_an_end() {
        let none = |packets: &[Vec<u8>]| {
            let bytes = [psb(), packets.concat()].concat();
            assert_eq!(points(&bytes, 5), []);
        };
        none(&[PSBEND.to_vec()]);
        none(&[tsc(7)]);
        none(&[tsc(7), vec![0x02, 0xf3], PSBEND.to_vec()]);
        none(&[tsc(7), vec![0xbd], PSBEND.to_vec()]);
        none(&[vec![0x19, 1, 2]]);
        none(&[vec![0; 2 * MOST as usize], tsc(7), PSBEND.to_vec()]);
        none(&[vec![0x07; 2 * MOST as usize]]);
        // A PSB packet among the packets of another one is the start of its own.
        let bytes = [psb(), vec![0x99], psb(), tsc(5), PSBEND.to_vec()].concat();
        let found: Vec<u64> = points(&bytes, 3).iter().map(|point| point.start).collect();
        assert_eq!(found, [17]);
    }
}
