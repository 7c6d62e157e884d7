//! Converts stacks in the text format of flame graph tools to a recording. Each line contains the
//! names of the functions from the outermost to the innermost, separated by `;`, and the number of
//! times that the stack occurred.
//!
//!     printf 'main;work;sort 3\nmain;print 1\n' > stacks.txt
//!     cargo run -p perfdata-write --example from_stacks -- stacks.txt stacks.data /tmp/perf-4242.map
//!     perf report -i stacks.data
//!
//! The names are written to a map file in the format that JIT compilers write for perf. perf
//! expects this file name.

#![allow(clippy::arithmetic_side_effects, reason = "numbers of an example")]

use std::{collections::BTreeMap, env, error::Error, fmt::Write as _, fs, fs::File};

use perfdata_core::attr::{Attr, AttrFlags, EventType, SampleType, SoftwareEvent};
use perfdata_core::record::{
    Body, CallchainContext, Comm, CpuMode, Mmap, Record, Sample, SampleId, Tid,
};
use perfdata_core::wire::Text;
use perfdata_core::{Endian, Event, Recording};
use perfdata_write::FileWriter;

/// The process ID of all samples.
const PID: u32 = 4242;
/// The address of the code, and the size of each function in bytes.
const CODE: u64 = 0x10_0000;
const ROOM: u64 = 0x100;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: from_stacks STACKS OUTPUT MAP";
    let mut args = env::args_os().skip(1);
    let stacks = fs::read_to_string(args.next().ok_or(usage)?)?;
    let (output, map) = (args.next().ok_or(usage)?, args.next().ok_or(usage)?);

    let mut recording = Recording::new(Endian::NATIVE);
    let attr = Attr {
        kind: EventType::SOFTWARE,
        size: Attr::MIN_SIZE,
        config: SoftwareEvent::CPU_CLOCK.0,
        sample_period: 1,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::CALLCHAIN,
        flags: AttrFlags::default().with_sample_id_all(true),
        ..Attr::default()
    };
    recording.events.push(Event { attr, ids: vec![1] });

    let mut writer = FileWriter::create(File::create(output)?, &recording)?;
    let tid = Tid { pid: PID, tid: PID };
    let trailer = SampleId {
        tid: Some(tid),
        time: Some(0),
        ..SampleId::default()
    };
    let comm = Comm {
        pid: PID,
        tid: PID,
        comm: Text::padded(b"stacks", 8),
    };
    writer.write(&Record::new(Body::Comm(comm)).with_sample_id(trailer.clone()))?;
    // perf reads the names of anonymous code from a map file of the process.
    let (len, filename) = (1 << 30, Text::padded(b"//anon", 8));
    let mmap = Mmap {
        pid: PID,
        tid: PID,
        addr: CODE,
        len,
        pgoff: CODE,
        filename,
    };
    writer.write(
        &Record::new(Body::Mmap(mmap))
            .with_misc(CpuMode::USER.0)
            .with_sample_id(trailer),
    )?;

    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    let mut time = 0;
    for line in stacks.lines().filter(|line| !line.trim().is_empty()) {
        let (names, count) = line
            .rsplit_once(' ')
            .ok_or_else(|| format!("no count: {line}"))?;
        let mut chain: Vec<u64> = names
            .split(';')
            .map(|name| {
                let next = CODE + ROOM * functions.len() as u64;
                // An address within the function, like a return address.
                *functions.entry(name).or_insert(next) + ROOM / 2
            })
            .collect();
        chain.push(CallchainContext::USER.0);
        chain.reverse();
        for _ in 0..count.parse::<u64>()? {
            time += 1_000_000;
            let sample = Sample {
                ip: chain.get(1).copied(),
                tid: Some(tid),
                time: Some(time),
                callchain: Some(chain.clone().into()),
                ..Sample::default()
            };
            writer.write(&Record::new(Body::Sample(sample)).with_misc(CpuMode::USER.0))?;
        }
    }
    writer.finish(&recording)?;

    let mut names = String::new();
    for (name, start) in functions {
        writeln!(names, "{start:x} {ROOM:x} {name}")?;
    }
    fs::write(map, names)?;
    Ok(())
}
