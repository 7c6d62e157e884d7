//! Packets as text (tools/perf/util/arm-spe-decoder/arm-spe-pkt-decoder.c, Linux 7.1).

use std::fmt;

use super::packet::Packet;
use super::record::SpeEvents;

impl Packet {
    /// Returns the name of the packet.
    pub const fn name(&self) -> &'static str {
        match self {
            Packet::Padding | Packet::Alignment(_) => "PAD",
            Packet::End => "END",
            Packet::Timestamp(_) => "TS",
            Packet::Events(_) => "EVENTS",
            Packet::DataSource(_) => "DATA-SOURCE",
            Packet::Context { .. } => "CONTEXT",
            Packet::Operation { .. } => "OP-TYPE",
            Packet::Address { .. } => "ADDR",
            Packet::Counter { .. } => "LAT",
        }
    }

    /// Passes each field to `visit`: its name, its value, and the maximum number of bits.
    pub fn fields(&self, visit: &mut dyn FnMut(&'static str, u64, u32)) {
        match *self {
            Packet::Padding | Packet::End => {}
            Packet::Alignment(multiple) => visit("alignment", multiple, 5),
            Packet::Timestamp(value) | Packet::Events(value) | Packet::DataSource(value) => {
                visit("value", value, 64);
            }
            Packet::Operation { class, value } => {
                visit("class", class.into(), 2);
                visit("value", value, 64);
            }
            Packet::Context { index, value }
            | Packet::Address { index, value }
            | Packet::Counter { index, value } => {
                visit("index", index.into(), 5);
                visit("value", value, 64);
            }
        }
    }
}

/// The text of `perf script -D` of perf 7.2.
impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match *self {
            Packet::Padding | Packet::Alignment(_) | Packet::End => f.write_str(name),
            Packet::Timestamp(value) | Packet::DataSource(value) => {
                write!(f, "{name} {}", value.cast_signed())
            }
            Packet::Events(value) => events(SpeEvents(value), f),
            Packet::Context { index, value } => {
                write!(
                    f,
                    "{name} {value:#x} el{}",
                    u16::from(index).saturating_add(1)
                )
            }
            Packet::Operation { class, value } => operation(class, value, f),
            Packet::Address { index, value } => address(index, value, f),
            Packet::Counter { index, value } => {
                let what = match index {
                    0 => "TOT",
                    1 => "ISSUE",
                    2 => "XLAT",
                    _ => "",
                };
                write!(f, "{name} {} {what}", value as u16)
            }
        }
    }
}

/// Writes the names of events, and the numbers of those that have none.
fn events(events: SpeEvents, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("EV")?;
    let set = || (0..u64::BITS).filter(move |bit| events.has(SpeEvents(1 << bit)));
    let name = |bit: u32| SpeEvents(1 << bit).names().next();
    set()
        .filter_map(name)
        .try_for_each(|name| write!(f, " {name}"))?;
    let mut separator = " IMPDEF:";
    for bit in set().filter(|&bit| name(bit).is_none()) {
        write!(f, "{separator}{bit}")?;
        separator = ",";
    }
    Ok(())
}

/// Writes the words whose bit is set.
fn words(value: u64, words: &[(u32, &str)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    words
        .iter()
        .filter(|(bit, _)| value >> bit & 1 == 1)
        .try_for_each(|(_, word)| write!(f, " {word}"))
}

/// Writes the number of bits of the vectors that an operation of SVE uses.
fn vector_length(value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, " EVLEN {}", 32_u64 << (value >> 4 & 7))
}

fn operation(class: u8, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match class {
        0 if value & 0x89 == 0x08 => {
            f.write_str("SVE-OTHER")?;
            vector_length(value, f)?;
            words(value, &[(1, "FP"), (2, "PRED")], f)
        }
        0 if value & 0x89 == 0x88 => {
            let size = 128_u64 << (value >> 3 & 0xe | value >> 2 & 1);
            write!(f, "SME-OTHER ETS {size}")?;
            words(value, &[(1, "FP")], f)
        }
        0 if value & 0xf8 == 0 => {
            f.write_str("OTHER")?;
            words(value, &[(2, "ASE"), (1, "FP")], f)?;
            f.write_str(match value & 1 {
                0 => " INSN-OTHER",
                _ => " COND-SELECT",
            })
        }
        0 => Ok(()),
        1 => {
            f.write_str(if value & 1 == 1 { "ST" } else { "LD" })?;
            access(value, f)
        }
        2 => {
            f.write_str("B")?;
            words(value, &[(0, "COND"), (1, "IND"), (2, "GCS")], f)?;
            f.write_str(match value >> 3 & 3 {
                1 => " CR-BL",
                2 => " CR-RET",
                3 => " CR-NON-BL-RET",
                _ => "",
            })
        }
        _ => write!(f, "OP-TYPE {value:#x} ({class})"),
    }
}

/// Writes what is accessed by a load or store.
fn access(value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let kind = match value & 0xfe {
        _ if value & 0xe2 == 0x02 => return words(value, &[(2, "AT"), (3, "EXCL"), (4, "AR")], f),
        0x04 => " SIMD-FP",
        0x00 => " GP-REG",
        0x10 => " UNSPEC-REG",
        0x30 => " NV-SYSREG",
        0x14 => " MTE-TAG",
        0x20 => " MEMCPY",
        _ if value & 0xff == 0x25 => " MEMSET",
        _ if value & 0x0a == 0x08 => {
            f.write_str(" SVE-SME-REG")?;
            vector_length(value, f)?;
            return words(value, &[(2, "PRED"), (7, "SG")], f);
        }
        _ if value & 0xfa == 0x40 => {
            f.write_str(" GCS")?;
            return words(value, &[(2, "COMM")], f);
        }
        _ => "",
    };
    f.write_str(kind)
}

fn address(index: u8, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let address = value & u64::MAX >> 8;
    let (not_secure, level) = (value >> 63, value >> 61 & 3);
    let name = match index {
        0 => "PC",
        1 => "TGT",
        2 => return write!(f, "VA {value:#x}"),
        3 => {
            let (checked, pattern) = (value >> 62 & 1, value >> 56 & 0xf);
            return write!(
                f,
                "PA {address:#x} ns={not_secure} ch={checked} pat={pattern:x}"
            );
        }
        4 => "PBT",
        _ => return write!(f, "ADDR {value:#x} ({index})"),
    };
    write!(f, "{name} {address:#x} el{level} ns={not_secure}")
}
