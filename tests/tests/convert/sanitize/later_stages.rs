//! The check of the output finds what a stage after it brings back.

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::record::{Body, RawRecord, Record, Sample};
use perfdata_sanitize::{Audience, Policy, Sanitize};
use perfdata_tests::convert::{Whole, into_memory};

use super::{fs_bytes, key, records, samples};

/// The self-check finds what a stage after it brings back.
#[test]
fn the_output_is_checked_before_it_appears() {
    #[derive(Debug)]
    struct Undo(Vec<u8>);
    impl Stage for Undo {
        fn finish(
            &mut self,
            recording: &mut perfdata_core::Recording,
            _: &mut perfdata_convert::pipeline::Link<'_>,
        ) -> perfdata_convert::Result<()> {
            let text = perfdata_core::wire::HeaderString::new(&self.0);
            Ok(recording.set_feature(FeatureId::CPUDESC, Feature::CpuDesc(text))?)
        }
    }
    let input = fs_bytes("6.1-x86_64-file-g");
    let whole = Whole::read(input.clone()).expect("a recording");
    let comm = records(&whole)
        .into_iter()
        .find_map(|record| match record.body {
            Body::Comm(comm) if comm.comm.text() == b"perf-workload" => {
                Some(comm.comm.text().to_vec())
            }
            _ => None,
        });
    let comm = comm.expect("a comm");
    for text in [comm, b"another processor".to_vec()] {
        let stages: Vec<Box<dyn Stage>> = vec![
            Box::new(Sanitize::new(Policy::new(Audience::Public), key())),
            Box::new(Undo(text.clone())),
        ];
        let made = into_memory(Input::from_source(input.clone()), None, stages);
        let error = made.expect_err("it is not clean").to_string();
        assert!(
            error.contains("internal error") && error.contains("nothing was written"),
            "{error}"
        );
    }
}

/// The self-check finds each original value that a stage after it brings back into a sample.
#[test]
fn the_samples_of_the_output_are_checked_before_it_appears() {
    type Change = fn(&mut Sample, &Sample);
    #[derive(Debug)]
    struct Undo(Sample, Change);
    impl Stage for Undo {
        fn record(
            &mut self,
            raw: &RawRecord<'_>,
            next: &mut perfdata_convert::pipeline::Link<'_>,
        ) -> perfdata_convert::Result<()> {
            let layout = next.recording().events.layout_of(raw);
            let mut record = Record::decode(raw, &layout)?;
            if let Body::Sample(sample) = &mut record.body {
                (self.1)(sample, &self.0);
            }
            let bytes = record.encode(raw.endian)?;
            next.record(&RawRecord {
                bytes: &bytes,
                ..*raw
            })
        }
    }
    let input = fs_bytes("6.1-x86_64-file-g");
    let all = records(&Whole::read(input.clone()).expect("a recording"));
    let has_chain = |sample: &&Sample| {
        sample
            .callchain
            .as_ref()
            .is_some_and(|chain| chain.len() > 2)
    };
    let old = samples(&all)
        .into_iter()
        .find(has_chain)
        .expect("a callchain")
        .clone();
    let run = |change: Change| {
        let stages: Vec<Box<dyn Stage>> = vec![
            Box::new(Sanitize::new(Policy::new(Audience::Public), key())),
            Box::new(Undo(old.clone(), change)),
        ];
        into_memory(Input::from_source(input.clone()), None, stages)
    };
    run(|_, _| {}).expect("nothing is brought back");
    let changes: [(&str, Change); 4] = [
        ("ip", |new, old| new.ip = old.ip),
        ("pid", |new, old| new.tid = old.tid),
        ("callchain", |new, old| {
            new.callchain = old.callchain.clone()
        }),
        ("period", |new, old| new.period = old.ip),
    ];
    for (field, change) in changes {
        let error = run(change).expect_err("it is not clean").to_string();
        let is_named =
            error.contains(&format!("{field:?}")) && error.contains("nothing was written");
        assert!(is_named, "{field}: {error}");
    }
}
