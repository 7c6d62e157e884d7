//! Builds a new recording: one event, one process, three samples with callchains. perf reads the
//! result:
//!
//!     cargo run -p perfdata-write --example build -- built.data && perf script -i built.data

#![allow(clippy::arithmetic_side_effects, reason = "numbers of an example")]

use std::{env, error::Error, fs::File};

use perfdata_core::attr::{Attr, AttrFlags, EventType, SampleType, SoftwareEvent};
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::record::{Body, Comm, CpuMode, Record, Sample, SampleId, Tid};
use perfdata_core::wire::{HeaderString, Text};
use perfdata_core::{Endian, Event, Recording};
use perfdata_write::FileWriter;

const PID: u32 = 42;
/// Starts the user part of a callchain.
const CONTEXT_USER: u64 = -512_i64 as u64;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: build OUTPUT")?;

    // The model: everything except the records.
    let mut recording = Recording::new(Endian::NATIVE);
    let parts = SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CALLCHAIN
        | SampleType::PERIOD;
    let attr = Attr {
        kind: EventType::SOFTWARE,
        size: Attr::MIN_SIZE,
        config: SoftwareEvent::CPU_CLOCK.0,
        sample_period: 1_000_000,
        sample_type: parts,
        flags: AttrFlags::default().with_sample_id_all(true),
        ..Attr::default()
    };
    recording.events.push(Event { attr, ids: vec![1] });
    recording.set_feature(
        FeatureId::HOSTNAME,
        Feature::Hostname(HeaderString::new(b"nowhere")),
    )?;
    recording.set_feature(FeatureId::ARCH, Feature::Arch(HeaderString::new(b"x86_64")))?;

    // The records.
    let mut writer = FileWriter::create(File::create(path)?, &recording)?;
    let tid = Tid { pid: PID, tid: PID };
    let comm = Comm {
        pid: PID,
        tid: PID,
        comm: Text::padded(b"example", 8),
    };
    let trailer = SampleId {
        tid: Some(tid),
        time: Some(0),
        ..SampleId::default()
    };
    writer.write(&Record::new(Body::Comm(comm)).with_sample_id(trailer))?;
    for (time, stack) in [[0x1010, 0x1000], [0x1020, 0x1000], [0x1010, 0x1000]]
        .into_iter()
        .enumerate()
    {
        let sample = Sample {
            ip: Some(stack[0]),
            tid: Some(tid),
            time: Some((time as u64 + 1) * 1_000_000),
            period: Some(1_000_000),
            callchain: Some(
                [CONTEXT_USER]
                    .into_iter()
                    .chain(stack)
                    .collect::<Vec<u64>>()
                    .into(),
            ),
            ..Sample::default()
        };
        writer.write(&Record::new(Body::Sample(sample)).with_misc(CpuMode::USER.0))?;
    }
    writer.finish(&recording)?;
    Ok(())
}
