//! One line for each packet, as `perf script -D` prints them.

use std::fmt;
use std::io::Write;

use perfdata_core::arm_spe;
use perfdata_core::intel_bts::BtsRecord;
use perfdata_core::record::AuxtraceType;
use perfdata_intel_pt::{BlockItemSize, Packet};

use perfdata_convert::error::{Error, Result};
use perfdata_convert::json::Json;
use perfdata_convert::support::text::hex_pair;

/// The state of decoding a trace.
#[derive(Debug)]
pub(super) enum Decoder {
    /// With the size of the items of the open block.
    IntelPt(Option<BlockItemSize>),
    IntelBts,
    /// With the offset of the next packet in the AUX buffer.
    ArmSpe(u64),
}

/// A packet of any kind of trace.
#[derive(Debug, Clone, Copy)]
pub(super) enum AnyPacket {
    IntelPt(Packet),
    IntelBts(BtsRecord),
    ArmSpe(arm_spe::Packet),
}

/// A packet with the padding behind it, or bytes that are no packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacketLine {
    /// Number of bytes, with the padding.
    pub(super) size: usize,
    /// The packet, and its size without padding.
    pub(super) packet: Option<(AnyPacket, usize)>,
}

impl Decoder {
    /// Number of bytes that are enough for any line.
    pub(super) const MAX_LINE: usize = 32;

    /// Returns the decoder of a trace of this kind, whose data are at `offset` in the AUX buffer.
    ///
    /// # Errors
    /// The packets of this kind are not known.
    pub(super) fn of(kind: Option<AuxtraceType>, offset: u64) -> Result<Self> {
        Ok(match kind {
            Some(AuxtraceType::INTEL_PT) => Decoder::IntelPt(None),
            Some(AuxtraceType::INTEL_BTS) => Decoder::IntelBts,
            Some(AuxtraceType::ARM_SPE) => Decoder::ArmSpe(offset),
            other => {
                let what = match other {
                    None => "the recording has no AUXTRACE_INFO record, which says what trace its AUX data are".into(),
                    Some(kind) => format!("--aux shows the packets of Intel PT, Intel BTS and Arm SPE, and this is a trace of {kind}; perfconv extract-aux writes the raw data"),
                };
                return Err(Error::Refused(what));
            }
        })
    }

    /// Returns the name and the size of the trace.
    pub(super) fn title(&self, size: u64) -> String {
        match self {
            Decoder::IntelPt(_) => format!("Intel Processor Trace data: size {size}"),
            Decoder::IntelBts => format!("Intel BTS data: size {size}"),
            Decoder::ArmSpe(_) => format!("ARM SPE data: size {size:#x}"),
        }
    }

    /// Returns the width of the bytes of a line in bytes.
    const fn width(&self) -> usize {
        match self {
            Decoder::IntelBts => BtsRecord::SIZE,
            _ => 16,
        }
    }

    /// Returns the line at the start of `bytes`, which are more than a line, or all that is left.
    pub(super) fn next(&mut self, bytes: &[u8]) -> PacketLine {
        let (packet, size, padded) = match self {
            Decoder::IntelPt(block) => {
                let Ok(packet) = Packet::first(bytes, *block) else {
                    return PacketLine::bad(1);
                };
                *block = packet.block_after(*block);
                (AnyPacket::IntelPt(packet), packet.size(), 8)
            }
            Decoder::IntelBts => {
                let Some(record) = BtsRecord::first(bytes) else {
                    return PacketLine::bad(bytes.len());
                };
                (AnyPacket::IntelBts(record), BtsRecord::SIZE, 0)
            }
            Decoder::ArmSpe(position) => {
                let found = arm_spe::Packet::first(bytes).ok().map(|(packet, size)| {
                    let step = packet.step(size, *position);
                    (packet, usize::try_from(step).unwrap_or(usize::MAX))
                });
                let Some((packet, size)) = found.filter(|(_, size)| *size <= bytes.len()) else {
                    *position = position.wrapping_add(1);
                    return PacketLine::bad(1);
                };
                let padded = match packet {
                    arm_spe::Packet::Padding | arm_spe::Packet::Alignment(_) => 16,
                    _ => 0,
                };
                (AnyPacket::ArmSpe(packet), size, padded)
            }
        };
        let padding = bytes.iter().take(padded).skip(size);
        let line = PacketLine {
            size: size + padding.take_while(|byte| **byte == 0).count(),
            packet: Some((packet, size)),
        };
        if let Decoder::ArmSpe(position) = self {
            *position = position.wrapping_add(line.size as u64);
        }
        line
    }
}

impl PacketLine {
    fn bad(size: usize) -> Self {
        PacketLine { size, packet: None }
    }

    /// Appends the line, where `bytes` are its bytes, at `offset` in the data.
    pub(super) fn text(&self, out: &mut Vec<u8>, offset: u64, bytes: &[u8], decoder: &Decoder) {
        let _ = write!(out, ".  {offset:08x}: ");
        for byte in bytes {
            out.push(b' ');
            out.extend(hex_pair(*byte));
        }
        let missing = decoder.width().saturating_sub(bytes.len());
        out.resize(out.len() + 3 * missing, b' ');
        let _ = match (&self.packet, decoder) {
            (Some((packet, _)), _) => writeln!(out, " {packet}"),
            (None, Decoder::IntelBts) => writeln!(out, " Bad record!"),
            (None, _) => writeln!(out, " Bad packet!"),
        };
    }

    /// Writes the line as an object. `record` is the offset of the record in the input.
    pub(super) fn json(&self, json: &mut Json, record: u64, offset: u64, bytes: &[u8]) {
        json.object("");
        json.number("record", record);
        json.number("at", offset);
        json.number(
            "size",
            self.packet.map_or(self.size, |(_, size)| size) as u64,
        );
        match &self.packet {
            Some((packet, size)) => {
                if self.size > *size {
                    json.number("padding", (self.size - size) as u64);
                }
                json.text("packet", packet.name().as_bytes());
                json.text("text", packet.to_string().as_bytes());
                json.object("fields");
                packet.fields(&mut |name, value, bits| match bits {
                    // Readers of JSON often have no whole numbers of 64 bits.
                    33.. => json.hexadecimal(name, value),
                    _ => json.number(name, value),
                });
                json.close();
            }
            None => {
                json.text("error", b"no packet");
                json.bytes("bytes", bytes);
            }
        }
        json.close();
    }
}

impl AnyPacket {
    fn name(&self) -> &'static str {
        match self {
            AnyPacket::IntelPt(packet) => packet.name(),
            AnyPacket::IntelBts(_) => "branch",
            AnyPacket::ArmSpe(packet) => packet.name(),
        }
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, u64, u32)) {
        match self {
            AnyPacket::IntelPt(packet) => packet.fields(visit),
            AnyPacket::IntelBts(record) => {
                visit("from", record.from, 64);
                visit("to", record.to, 64);
                visit("flags", record.flags, 64);
            }
            AnyPacket::ArmSpe(packet) => packet.fields(visit),
        }
    }
}

impl fmt::Display for AnyPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyPacket::IntelPt(packet) => packet.fmt(f),
            AnyPacket::IntelBts(record) => record.fmt(f),
            AnyPacket::ArmSpe(packet) => packet.fmt(f),
        }
    }
}
