//! The session model, compared with perf's output for each recording when it was made, on a machine
//! of its byte order.

mod callchains;
mod hostile;
mod mappings;
mod perf;
mod threads;

use std::time::{Duration, Instant};

use perfdata_core::attr::{Attr, AttrFlags, SampleType};
use perfdata_core::read::{Limits, Options, RecordSource, RecordingReader};
use perfdata_core::record::{
    Body, BranchStack, CallchainContext, Comm, Cpu, CpuMode, HeaderAttr, Ksymbol, KsymbolFlags,
    KsymbolType, MISC_COMM_EXEC, Mmap, Record, RecordType, Sample, SampleId, Task, Tid,
};
use perfdata_core::wire::{Text, ToEnd};
use perfdata_core::{Endian, Result as CoreResult};
use perfdata_session::Samples;

/// A recording in pipe mode, which is written record by record. Each record's time is one more than
/// the previous one.
pub struct Stream {
    bytes: Vec<u8>,
    attr: Attr,
    time: u64,
}

pub const USUAL: u64 = SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::CPU.0
    | SampleType::CALLCHAIN.0;
const KERNEL: u64 = CallchainContext::KERNEL.0;
pub const USER: u64 = CallchainContext::USER.0;
const DEFERRED: u64 = CallchainContext::USER_DEFERRED.0;

impl Stream {
    pub fn new(sample_type: u64) -> Self {
        let flags = AttrFlags(0).with("sample_id_all", 1).expect("a flag");
        Self::of(Attr {
            size: 64,
            flags,
            sample_period: 3,
            sample_type: SampleType(sample_type),
            ..Attr::default()
        })
    }

    fn of(attr: Attr) -> Self {
        let bytes = [&b"PERFILE2"[..], &16_u64.to_le_bytes()].concat();
        let mut stream = Stream {
            bytes,
            attr: attr.clone(),
            time: 100,
        };
        stream.plain(
            Body::HeaderAttr(HeaderAttr {
                attr,
                ids: ToEnd(vec![7]),
            }),
            RecordType::HEADER_ATTR,
            0,
        );
        stream
    }

    fn plain(&mut self, body: Body, kind: RecordType, misc: u16) {
        let record = Record {
            kind,
            misc,
            body,
            tail: Vec::new(),
            sample_id: None,
        };
        record
            .encode_into(&mut self.bytes, Endian::Little)
            .expect("a record");
    }

    /// Adds a record of the kernel, for thread `tid` of process `pid` on CPU 1.
    fn add(&mut self, kind: RecordType, misc: u16, body: Body, (pid, tid): (u32, u32)) {
        self.time += 1;
        let has = |part| self.attr.sample_type.has(part);
        let sample_id = SampleId {
            tid: has(SampleType::TID).then_some(Tid { pid, tid }),
            time: Some(self.time),
            id: None,
            stream_id: None,
            cpu: Some(Cpu {
                cpu: 1,
                reserved: 0,
            }),
            identifier: None,
        };
        let record = Record {
            kind,
            misc,
            body,
            tail: Vec::new(),
            sample_id: Some(sample_id),
        };
        record
            .encode_into(&mut self.bytes, Endian::Little)
            .expect("a record");
    }

    pub fn comm(&mut self, pid: u32, tid: u32, name: impl AsRef<[u8]>, is_exec: bool) {
        let misc = if is_exec { MISC_COMM_EXEC } else { 0 };
        let comm = Comm {
            pid,
            tid,
            comm: Text::padded(name.as_ref(), 8),
        };
        self.add(RecordType::COMM, misc, Body::Comm(comm), (pid, tid));
    }

    pub fn fork(&mut self, pid: u32, tid: u32, ppid: u32, ptid: u32) {
        let task = Task {
            pid,
            ppid,
            tid,
            ptid,
            time: self.time,
        };
        self.add(RecordType::FORK, 0, Body::Fork(task), (ppid, ptid));
    }

    fn exit(&mut self, pid: u32, tid: u32) {
        let task = Task {
            pid,
            ppid: pid,
            tid,
            ptid: tid,
            time: self.time,
        };
        self.add(RecordType::EXIT, 0, Body::Exit(task), (pid, tid));
    }

    pub fn map(
        &mut self,
        mode: CpuMode,
        pid: u32,
        addr: u64,
        len: u64,
        pgoff: u64,
        name: impl AsRef<[u8]>,
    ) {
        let filename = Text::padded(name.as_ref(), 8);
        let map = Mmap {
            pid,
            tid: pid,
            addr,
            len,
            pgoff,
            filename,
        };
        self.add(RecordType::MMAP, mode.0, Body::Mmap(map), (pid, pid));
    }

    fn symbol(&mut self, addr: u64, name: &str, flags: KsymbolFlags) {
        let name = Text::padded(name.as_bytes(), 8);
        let symbol = Ksymbol {
            addr,
            len: 0x100,
            ksym_type: KsymbolType::BPF,
            flags,
            name,
        };
        self.add(RecordType::KSYMBOL, 0, Body::Ksymbol(symbol), (0, 0));
    }

    pub fn sample(&mut self, mode: CpuMode, (pid, tid): (u32, u32), chain: &[u64]) {
        self.sample_with(mode, (pid, tid), chain, None);
    }

    fn sample_with(
        &mut self,
        mode: CpuMode,
        (pid, tid): (u32, u32),
        chain: &[u64],
        stack: Option<BranchStack>,
    ) {
        self.time += 1;
        let has = |part| self.attr.sample_type.has(part);
        let ip = chain
            .iter()
            .find(|word| CallchainContext::of(**word).is_none())
            .copied()
            .unwrap_or(0x10);
        let sample = Sample {
            ip: Some(ip),
            tid: has(SampleType::TID).then_some(Tid { pid, tid }),
            time: Some(self.time),
            cpu: Some(Cpu {
                cpu: 1,
                reserved: 0,
            }),
            callchain: has(SampleType::CALLCHAIN).then(|| chain.to_vec().into()),
            branch_stack: stack,
            ..Sample::default()
        };
        self.plain(Body::Sample(sample), RecordType::SAMPLE, mode.0);
    }

    pub fn samples(self, limits: Limits) -> Samples<impl RecordSource> {
        let reader = RecordingReader::open_with(self.bytes, Options::default().with_limits(limits));
        Samples::new(reader.expect("a recording")).expect("a session")
    }

    /// Returns each sample as `NAME frame frame`.
    fn lines(self) -> Vec<String> {
        let mut samples = self.samples(Limits::default());
        let mut lines = Vec::new();
        while let Some(sample) = samples.next().expect("it is sound") {
            let mut line = String::from_utf8_lossy(sample.comm()).into_owned();
            for frame in sample.frames() {
                line += &match frame.dso().zip(frame.offset()) {
                    Some((dso, offset)) => {
                        format!(" {}+{offset:x}", String::from_utf8_lossy(&dso.name))
                    }
                    None => format!(" {:x}", frame.address),
                };
            }
            lines.push(line);
        }
        lines
    }
}

fn walk(stream: Stream, limits: Limits) -> (CoreResult<()>, Duration, usize) {
    let mut samples = stream.samples(limits);
    let start = Instant::now();
    let mut run = || -> CoreResult<()> {
        while let Some(sample) = samples.next()? {
            assert!(sample.frames().count() < 10);
        }
        Ok(())
    };
    let result = run();
    (result, start.elapsed(), samples.session().held())
}
