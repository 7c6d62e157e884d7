//! Records: the frame around each, and every type in every variant.

use super::attr::{Attr, Stamp, sample_type};
use super::buf::Buf;
use super::{auxtrace, kernel, sample, stat, user};

/// `PERF_RECORD_MISC_CPUMODE_*`: where the CPU was.
#[allow(missing_docs, reason = "the kernel's names")]
pub mod misc {
    pub const KERNEL: u16 = 1;
    pub const USER: u16 = 2;
    pub const HYPERVISOR: u16 = 3;
    pub const GUEST_KERNEL: u16 = 4;
    pub const GUEST_USER: u16 = 5;
}

/// One record of a known type.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kernel's or perf's name of the type, then the variant.
    pub name: String,
    /// Record type number.
    pub kind: u32,
    /// The header's misc word.
    pub misc: u16,
    /// The whole record, header included.
    pub record: Vec<u8>,
    /// The attribute that the record belongs to and by which it has to be read.
    pub attr: Attr,
    /// Bytes that follow the record without being counted in its size (AUXTRACE, tracing data).
    pub payload: Vec<u8>,
    /// Exchanging the byte order of this record gives exactly its twin of the other order. False
    /// where that cannot be asked for: compressed records, fields not yet invented.
    pub swaps: bool,
}

/// Puts a header before a record's body.
pub fn frame(big: bool, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("a record is shorter than 64 KiB");
    Buf::new(big).u32(kind).u16(misc).u16(size).bytes(body).bytes
}

/// Writes records one after the other under a current attribute, with a clock that advances.
#[derive(Clone, Debug)]
pub struct Scribe {
    /// Byte order.
    pub big: bool,
    /// The attribute that the next records belong to.
    pub attr: Attr,
    /// What the next record's trailer says.
    pub stamp: Stamp,
    /// Nanoseconds by which the time advances with every kernel record.
    pub tick: u64,
    /// The records so far.
    pub cases: Vec<Case>,
}

impl Scribe {
    /// A scribe without records.
    pub fn new(big: bool, attr: Attr, stamp: Stamp) -> Self {
        Scribe { big, attr, stamp, tick: 1_000, cases: Vec::new() }
    }

    /// A scribe whose records carry the full trailer.
    pub fn standard(big: bool) -> Self {
        let attr = Attr::new(sample_type::TRAILER | sample_type::IP, "sample_id_all mmap comm");
        Scribe::new(big, attr, Stamp::SOME)
    }

    /// Writes a record of a kernel type: body, then the trailer that the attribute asks for.
    pub fn kernel(&mut self, name: &str, kind: u32, misc: u16, body: impl FnOnce(Buf) -> Buf) -> &mut Case {
        let trailer = self.attr.trailer(self.big, &self.stamp);
        self.stamp.time += self.tick;
        self.user(name, kind, misc, |buf| body(buf).bytes(&trailer))
    }

    /// Writes a record without a trailer: those of the perf tool, and samples.
    pub fn user(&mut self, name: &str, kind: u32, misc: u16, body: impl FnOnce(Buf) -> Buf) -> &mut Case {
        let body = body(Buf::new(self.big)).bytes;
        self.cases.push(Case {
            name: name.to_owned(),
            kind,
            misc,
            record: frame(self.big, kind, misc, &body),
            attr: self.attr.clone(),
            payload: Vec::new(),
            swaps: true,
        });
        self.cases.last_mut().expect("just pushed")
    }
}

/// The bytes of several records, each followed by its payload.
pub fn stream(cases: &[Case]) -> Vec<u8> {
    cases.iter().flat_map(|case| [&case.record[..], &case.payload]).flatten().copied().collect()
}

/// Every record type that perf 7.2 knows, every variant of each.
pub fn cases(big: bool) -> Vec<Case> {
    let mut scribe = Scribe::standard(big);
    kernel::plain(&mut scribe);
    kernel::variants(&mut scribe);
    sample::cases(&mut scribe);
    scribe.attr = Scribe::standard(big).attr;
    user::cases(&mut scribe);
    stat::cases(&mut scribe);
    auxtrace::cases(&mut scribe);
    scribe.cases
}

/// Records of types that nobody has defined yet; only their bytes can be kept.
pub fn unknown_cases(big: bool) -> Vec<Case> {
    let mut scribe = Scribe::standard(big);
    for kind in [0, 23, 63, 87, 1_000_000] {
        let name = format!("unknown type {kind}");
        scribe.user(&name, kind, 0x8001, |b| b.bytes(&super::buf::island(24))).swaps = false;
    }
    scribe.user("unknown type 88, header only", 88, 0, |b| b).swaps = false;
    scribe.cases
}
