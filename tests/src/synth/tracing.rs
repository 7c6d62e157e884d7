//! Tracing data: the formats of tracepoints (feature 1, record 66);
//! tools/perf/util/trace-event-info.c. It contains its own byte order, and is opaque to a
//! recording.

use super::buf::Buf;
use super::feature::Features;

/// Revisions of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Until 4.16.
    V0_5,
    /// With saved command lines at the end.
    V0_6,
}

/// The tracepoint in the data.
pub const EVENT_ID: u16 = 314;

const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
";

const HEADER_EVENT: &str = "\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
";

const FIELDS: &str = "\
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:int value;\toffset:8;\tsize:4;\tsigned:1;

print fmt: \"value=%d\", REC->value
";

/// A tracepoint in tracing data.
#[derive(Clone, Copy, Debug)]
pub struct Tracepoint {
    /// Its system.
    pub system: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its number, the `config` of its events.
    pub id: u16,
    /// The type of its only field, of 4 bytes.
    pub value: &'static str,
}

impl Tracepoint {
    fn format(self) -> String {
        let Tracepoint { name, id, .. } = self;
        let fields = FIELDS.replace("int value", &format!("{} value", self.value));
        format!("name: {name}\nID: {id}\n{fields}")
    }
}

/// Returns tracing data in the given byte order.
pub fn data(version: Version, big: bool) -> Vec<u8> {
    let demo = Tracepoint {
        system: "synth",
        name: "demo",
        id: EVENT_ID,
        value: "int",
    };
    data_of(version, big, &[demo])
}

/// Returns tracing data with these tracepoints, each in a system of its own.
pub fn data_of(version: Version, big: bool, tracepoints: &[Tracepoint]) -> Vec<u8> {
    let formats: Vec<_> = tracepoints
        .iter()
        .map(|tracepoint| (tracepoint.system, tracepoint.format()))
        .collect();
    data_with(version, big, &formats, "")
}

/// Returns tracing data with these systems and formats, each in a system of its own, and with
/// `printk_formats`.
pub fn data_with(version: Version, big: bool, formats: &[(&str, String)], printk: &str) -> Vec<u8> {
    let number = if version == Version::V0_5 {
        "0.5"
    } else {
        "0.6"
    };
    let file = |b: Buf, text: &str| b.u64(text.len() as u64).bytes(text.as_bytes());
    let string = |b: Buf, text: &str| b.bytes(text.as_bytes()).u8(0);
    Buf::new(big)
        .bytes(&[0x17, 0x08, 0x44])
        .bytes(b"tracing")
        .with(|b| string(b, number))
        .u8(u8::from(big))
        .u8(8) // bytes of a long
        .u32(4096) // page size
        .with(|b| string(b, "header_page"))
        .with(|b| file(b, HEADER_PAGE))
        .with(|b| string(b, "header_event"))
        .with(|b| file(b, HEADER_EVENT))
        .u32(0) // formats of ftrace itself
        .u32(formats.len() as u32) // systems
        .each(formats, |b, (system, format)| {
            let b = string(b, system).u32(1);
            file(b, format)
        })
        .u32(0) // kallsyms
        .u32(printk.len() as u32)
        .bytes(printk.as_bytes())
        .with(|b| {
            if version == Version::V0_6 {
                file(b, "4201 synth\n")
            } else {
                b
            }
        })
        .bytes
}

/// Returns the RAW field of a sample of the tracepoint, in the byte order of the tracing data.
pub fn raw(big: bool, pid: u32, value: u32) -> Vec<u8> {
    Buf::new(big)
        .u16(EVENT_ID)
        .u8(0)
        .u8(0)
        .u32(pid)
        .u32(value)
        .bytes
}

/// Adds both revisions in both byte orders.
pub fn cases(f: &mut Features) {
    for (name, version) in [("0.5", Version::V0_5), ("0.6", Version::V0_6)] {
        for (order, big) in [("little", false), ("big", true)] {
            f.add(1, &format!("TRACING_DATA {name}, {order}"), |b| {
                b.bytes(&data(version, big))
            });
        }
    }
}
