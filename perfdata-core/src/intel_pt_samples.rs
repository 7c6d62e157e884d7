//! The raw data of samples that perf synthesises from Intel PT: those of events of the type
//! [`SYNTH`](crate::attr::EventType::SYNTH) (tools/perf/util/event.h, `enum perf_synth_id` and
//! `perf_synth_intel_*`, Linux 7.1).
//!
//! The data follow the size of RAW data. All numbers are little-endian.

use std::fmt;

/// What a sample says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SynthesisedData {
    /// The operand of a PTWRITE instruction.
    Ptwrite {
        /// Whether the sample has the address of the instruction.
        has_ip: bool,
        /// The operand.
        payload: u64,
    },
    /// MWAIT: the hints in bits 0 to 7, the extensions in bits 32 and 33.
    Mwait(u64),
    /// A C-state is entered: bit 7 says whether the hardware did it, bits 8 to 11 are the substate,
    /// and bits 12 to 15 the state.
    PowerEntry(u64),
    /// Execution stops.
    ExecutionStop {
        /// Whether the sample has the address of the instruction.
        has_ip: bool,
    },
    /// A C-state is left: the deepest state in bits 0 to 3, the last one in bits 4 to 7, and the
    /// reason in bits 8 to 11.
    PowerExit(u64),
    /// A core bus ratio.
    CoreBusRatio {
        /// The ratio in bits 0 to 7; the others are reserved.
        ratio: u16,
        /// The ratio of the CPU without turbo in bits 0 to 7; 0: unknown.
        max_non_turbo: u16,
        /// The frequency in kilohertz.
        frequency: u32,
    },
    /// A PSB packet, at this offset in the trace.
    Psb(u64),
    /// An interrupt or the like.
    Event {
        /// The type of the CFE packet, 0 to 31.
        kind: u8,
        /// Whether the sample has an address.
        has_ip: bool,
        /// The number of the interrupt.
        vector: u8,
        /// Types and values of the EVD packets.
        data: Vec<(u8, u64)>,
    },
    /// The interrupt flag changed.
    InterruptFlag {
        /// Its new value.
        flag: bool,
        /// The target of the branch that changed it.
        branch: Option<u64>,
    },
}

impl SynthesisedData {
    /// The `config` of events with [`Ptwrite`](Self::Ptwrite).
    pub const PTWRITE: u64 = 0;
    /// The `config` of events with [`Mwait`](Self::Mwait).
    pub const MWAIT: u64 = 1;
    /// The `config` of events with [`PowerEntry`](Self::PowerEntry).
    pub const POWER_ENTRY: u64 = 2;
    /// The `config` of events with [`ExecutionStop`](Self::ExecutionStop).
    pub const EXECUTION_STOP: u64 = 3;
    /// The `config` of events with [`PowerExit`](Self::PowerExit).
    pub const POWER_EXIT: u64 = 4;
    /// The `config` of events with [`CoreBusRatio`](Self::CoreBusRatio).
    pub const CORE_BUS_RATIO: u64 = 5;
    /// The `config` of events with [`Psb`](Self::Psb).
    pub const PSB: u64 = 6;
    /// The `config` of events with [`Event`](Self::Event).
    pub const EVENT: u64 = 7;
    /// The `config` of events with [`InterruptFlag`](Self::InterruptFlag).
    pub const INTERRUPT_FLAG: u64 = 8;

    /// Returns the `config` of the event.
    pub fn config(&self) -> u64 {
        match self {
            SynthesisedData::Ptwrite { .. } => SynthesisedData::PTWRITE,
            SynthesisedData::Mwait(_) => SynthesisedData::MWAIT,
            SynthesisedData::PowerEntry(_) => SynthesisedData::POWER_ENTRY,
            SynthesisedData::ExecutionStop { .. } => SynthesisedData::EXECUTION_STOP,
            SynthesisedData::PowerExit(_) => SynthesisedData::POWER_EXIT,
            SynthesisedData::CoreBusRatio { .. } => SynthesisedData::CORE_BUS_RATIO,
            SynthesisedData::Psb(_) => SynthesisedData::PSB,
            SynthesisedData::Event { .. } => SynthesisedData::EVENT,
            SynthesisedData::InterruptFlag { .. } => SynthesisedData::INTERRUPT_FLAG,
        }
    }

    /// Decodes the raw data of a sample of an event with this `config`; `None` if it is another one,
    /// or the data are too short. Of EVD packets, those that are complete.
    pub fn of(config: u64, raw: &[u8]) -> Option<Self> {
        let flags = u32::from_le_bytes(*raw.first_chunk()?);
        let rest = raw.get(4..)?;
        let word = || Some(u64::from_le_bytes(*rest.first_chunk()?));
        let has = |bit: u32| flags >> bit & 1 != 0;
        let byte = |shift: u32| (flags >> shift & 0xff) as u8;
        Some(match config {
            SynthesisedData::PTWRITE => SynthesisedData::Ptwrite {
                has_ip: has(0),
                payload: word()?,
            },
            SynthesisedData::MWAIT => SynthesisedData::Mwait(word()?),
            SynthesisedData::POWER_ENTRY => SynthesisedData::PowerEntry(word()?),
            SynthesisedData::EXECUTION_STOP => SynthesisedData::ExecutionStop { has_ip: has(0) },
            SynthesisedData::POWER_EXIT => SynthesisedData::PowerExit(word()?),
            SynthesisedData::CORE_BUS_RATIO => SynthesisedData::CoreBusRatio {
                ratio: flags as u16,
                max_non_turbo: (flags >> 16) as u16,
                frequency: word()? as u32,
            },
            SynthesisedData::PSB => SynthesisedData::Psb(word()?),
            SynthesisedData::EVENT => {
                let packets = rest.as_chunks::<16>().0.iter();
                let data = packets.filter_map(|packet| {
                    let (kind, value) = packet.split_first_chunk::<8>()?;
                    Some((kind[0], u64::from_le_bytes(*value.first_chunk()?)))
                });
                SynthesisedData::Event {
                    kind: byte(0) & 0x1f,
                    has_ip: has(7),
                    vector: byte(8),
                    data: data.take((flags >> 16) as usize).collect(),
                }
            }
            SynthesisedData::INTERRUPT_FLAG => {
                let to = word()?;
                SynthesisedData::InterruptFlag {
                    flag: has(0),
                    branch: has(1).then_some(to),
                }
            }
            _ => return None,
        })
    }

    /// Returns the raw data.
    pub fn raw(&self) -> Vec<u8> {
        let (flags, rest) = match *self {
            SynthesisedData::Ptwrite { has_ip, payload } => (has_ip.into(), Some(payload)),
            SynthesisedData::ExecutionStop { has_ip } => (has_ip.into(), None),
            SynthesisedData::Mwait(word)
            | SynthesisedData::PowerEntry(word)
            | SynthesisedData::PowerExit(word)
            | SynthesisedData::Psb(word) => (0, Some(word)),
            SynthesisedData::CoreBusRatio {
                ratio,
                max_non_turbo,
                frequency,
            } => (
                u32::from(ratio) | u32::from(max_non_turbo) << 16,
                Some(frequency.into()),
            ),
            SynthesisedData::Event {
                kind,
                has_ip,
                vector,
                ref data,
            } => {
                let kind = u32::from(kind & 0x1f) | u32::from(has_ip) << 7;
                let count = u16::try_from(data.len()).unwrap_or(u16::MAX);
                (kind | u32::from(vector) << 8 | u32::from(count) << 16, None)
            }
            SynthesisedData::InterruptFlag { flag, branch } => (
                u32::from(flag) | u32::from(branch.is_some()) << 1,
                Some(branch.unwrap_or(0)),
            ),
        };
        let mut bytes = flags.to_le_bytes().to_vec();
        if let Some(word) = rest {
            bytes.extend(word.to_le_bytes());
        }
        if let SynthesisedData::Event { data, .. } = self {
            for &(kind, value) in data.iter().take(u16::MAX.into()) {
                bytes.extend(u64::from(kind).to_le_bytes());
                bytes.extend(value.to_le_bytes());
            }
        }
        bytes
    }
}

/// Names of the types of CFE packets.
const EVENTS: [&str; 11] = [
    "",
    "INTR",
    "IRET",
    "SMI",
    "RSM",
    "SIPI",
    "INIT",
    "VMENTRY",
    "VMEXIT",
    "VMEXIT_INTR",
    "SHUTDOWN",
];

/// Names of the types of EVD packets.
const EVENT_DATA: [&str; 3] = ["PFA", "VMXQ", "VMXR"];

/// The text of `perf script`.
impl fmt::Display for SynthesisedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As printf writes them with `#`: 0 has no prefix.
        let hex = |number: u64| match number {
            0 => "0".to_owned(),
            _ => format!("{number:#x}"),
        };
        let field = |word: u64, shift: u32, bits: u32| word >> shift & !(u64::MAX << bits);
        match *self {
            SynthesisedData::Ptwrite { has_ip, payload } => {
                let bytes = payload.to_le_bytes();
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(8);
                let (text, zeros) = bytes.split_at(end);
                let is_text = !text.is_empty()
                    && text.iter().all(|byte| (b' '..=b'~').contains(byte))
                    && zeros.iter().all(|&byte| byte == 0);
                let text = std::str::from_utf8(text).unwrap_or_default();
                let text = if is_text { text } else { "" };
                write!(
                    f,
                    " IP: {} payload: {} {text} ",
                    u8::from(has_ip),
                    hex(payload)
                )
            }
            SynthesisedData::Mwait(word) => write!(
                f,
                " hints: {} extensions: {} ",
                hex(field(word, 0, 8)),
                hex(field(word, 32, 2))
            ),
            SynthesisedData::PowerEntry(word) => write!(
                f,
                " hw: {} cstate: {} sub-cstate: {} ",
                field(word, 7, 1),
                field(word, 12, 4),
                field(word, 8, 4)
            ),
            SynthesisedData::ExecutionStop { has_ip } => write!(f, " IP: {} ", u8::from(has_ip)),
            SynthesisedData::PowerExit(word) => write!(
                f,
                " deepest cstate: {} last cstate: {} wake reason: {} ",
                field(word, 0, 4),
                field(word, 4, 4),
                hex(field(word, 8, 4))
            ),
            SynthesisedData::CoreBusRatio {
                ratio,
                max_non_turbo,
                frequency,
            } => {
                let megahertz = u64::from(frequency).saturating_add(500) / 1000;
                let (ratio, max_non_turbo) =
                    (u32::from(ratio & 0xff), u32::from(max_non_turbo & 0xff));
                write!(f, " cbr: {ratio:2} freq: {megahertz:4} MHz ")?;
                let tenths = ratio.saturating_mul(1000).checked_div(max_non_turbo);
                match tenths {
                    Some(tenths) => write!(f, "({:3}%) ", tenths.saturating_add(5) / 10),
                    None => Ok(()),
                }
            }
            SynthesisedData::Psb(offset) => write!(f, " psb offs: {}", hex(offset)),
            SynthesisedData::Event {
                kind,
                has_ip,
                vector,
                ref data,
            } => {
                match EVENTS.get(usize::from(kind)).filter(|_| kind != 0) {
                    Some(name) => write!(f, " cfe: {name}")?,
                    None => write!(f, " cfe: {kind}")?,
                }
                write!(f, " IP: {} vector: {vector}", u8::from(has_ip))?;
                for &(kind, value) in data {
                    let kind = kind & 0x3f;
                    match EVENT_DATA.get(usize::from(kind)) {
                        Some(name) => write!(f, " {name}: {}", hex(value))?,
                        None => write!(f, " EVD_{kind}: {}", hex(value))?,
                    }
                }
                Ok(())
            }
            SynthesisedData::InterruptFlag { flag, branch } => {
                let how = if branch.is_some() { "via" } else { "non" };
                write!(
                    f,
                    " IFLAG: {}->{} {how} branch",
                    u8::from(!flag),
                    u8::from(flag)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_bytes_and_texts() {
        let word = |flags: u32, word: u64| {
            let mut bytes = flags.to_le_bytes().to_vec();
            bytes.extend(word.to_le_bytes());
            bytes
        };
        let mut event = word(0x2_0e_81, 1);
        event.extend(0x1000_u64.to_le_bytes());
        event.extend(9_u64.to_le_bytes());
        event.extend(0_u64.to_le_bytes());
        let all: [(SynthesisedData, Vec<u8>, &str); 11] = [
            (
                SynthesisedData::Ptwrite {
                    has_ip: true,
                    payload: 0x6968,
                },
                word(1, 0x6968),
                " IP: 1 payload: 0x6968 hi ",
            ),
            (
                SynthesisedData::Ptwrite {
                    has_ip: false,
                    payload: 0,
                },
                word(0, 0),
                " IP: 0 payload: 0  ",
            ),
            (
                SynthesisedData::Mwait(0x1_0000_0020),
                word(0, 0x1_0000_0020),
                " hints: 0x20 extensions: 0x1 ",
            ),
            (
                SynthesisedData::PowerEntry(0x2180),
                word(0, 0x2180),
                " hw: 1 cstate: 2 sub-cstate: 1 ",
            ),
            (
                SynthesisedData::ExecutionStop { has_ip: true },
                vec![1, 0, 0, 0],
                " IP: 1 ",
            ),
            (
                SynthesisedData::PowerExit(0x126),
                word(0, 0x126),
                " deepest cstate: 6 last cstate: 2 wake reason: 0x1 ",
            ),
            (
                SynthesisedData::CoreBusRatio {
                    ratio: 20,
                    max_non_turbo: 24,
                    frequency: 833_320,
                },
                word(24 << 16 | 20, 833_320),
                " cbr: 20 freq:  833 MHz ( 83%) ",
            ),
            (
                SynthesisedData::Psb(0x1a0),
                word(0, 0x1a0),
                " psb offs: 0x1a0",
            ),
            (
                SynthesisedData::Event {
                    kind: 1,
                    has_ip: true,
                    vector: 14,
                    data: vec![(1, 0x1000), (9, 0)],
                },
                event,
                " cfe: INTR IP: 1 vector: 14 VMXQ: 0x1000 EVD_9: 0",
            ),
            (
                SynthesisedData::InterruptFlag {
                    flag: true,
                    branch: Some(0x401000),
                },
                word(3, 0x401000),
                " IFLAG: 0->1 via branch",
            ),
            (
                SynthesisedData::InterruptFlag {
                    flag: false,
                    branch: None,
                },
                word(0, 0),
                " IFLAG: 1->0 non branch",
            ),
        ];
        for (value, bytes, text) in all {
            assert_eq!(value.raw(), bytes, "{value:?}");
            assert_eq!(
                SynthesisedData::of(value.config(), &bytes),
                Some(value.clone())
            );
            assert_eq!(SynthesisedData::of(value.config(), &bytes[..3]), None);
            assert_eq!(value.to_string(), text);
        }
        assert_eq!(SynthesisedData::of(9, &word(0, 0)), None);
        assert_eq!(SynthesisedData::of(6, &word(0, 0)[..11]), None);
    }
}
