//! Traces of Arm SPE of any content.

use perfdata_convert::pipeline::Stage;
use perfdata_core::arm_spe::{RecordBuilder, Records};
use perfdata_edit::sort::Sort;
use perfdata_inject::itrace::{Itrace, ItraceOptions};

use super::conversions::Bench;
use crate::synth::arm_spe::Recipe;

/// Decodes a trace, whole and in two parts, which makes no difference. Then converts a recording
/// with this trace; the output is readable.
pub fn arm_spe(data: &[u8]) {
    let (cut, trace) = data
        .split_first()
        .map_or((0, data), |(cut, trace)| (*cut, trace));
    let whole: Vec<_> = Records::new(trace, 0).collect();
    assert!(whole.len() <= trace.len());
    let cut = usize::from(cut).min(trace.len());
    let mut parts = Vec::new();
    let mut first = Records::after(RecordBuilder::default(), &trace[..cut], 0);
    while let Some(record) = first.decode(true) {
        parts.push(record);
    }
    // The padding of an alignment packet may extend beyond the part.
    let left = first.remaining();
    let at = cut - left;
    if first.position() == at as u64 {
        let rest = Records::after(first.builder(), &trace[at..], at as u64);
        parts.extend(rest);
        assert_eq!(parts, whole);
    }
    let recipe = Recipe {
        records: 0,
        big: data.len().is_multiple_of(2),
        has_times: !data.len().is_multiple_of(3),
        ..Recipe::USUAL
    };
    let mut padded = trace.to_vec();
    padded.resize(trace.len().next_multiple_of(8), 0);
    let input = recipe.file_with(&[(0, padded)]).bytes();
    let stages: Vec<Box<dyn Stage>> = vec![
        Box::new(Sort::new()),
        Box::new(Itrace::new(ItraceOptions::all(), false)),
    ];
    let bench = Bench::new();
    let output = bench
        .convert(&input, stages, None)
        .expect("it is converted");
    let reader = bench.input(&output).reader();
    reader.expect("the output is a recording");
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let recipe = Recipe {
        has_calls: true,
        ..Recipe::USUAL
    };
    let traces = recipe.traces(4, 16).into_iter();
    let mut seeds: Vec<Vec<u8>> = traces.map(|trace| [&[40][..], &trace].concat()).collect();
    seeds.push(vec![0, 0x23, 0, 0xff, 0x20, 0xb0, 0x49, 4, 0x4b, 0, 1]);
    seeds
}
