//! Recordings in directory mode: `perf record --threads`.

use super::feature::Features;
use super::feature_system;
use super::file::{self, File};
use super::kind;
use super::record::{Case, stream};
use super::sink;

/// Returns the names and contents of the files of a directory with two data files beside `data`.
/// With `compressed`, each of them is a separate zstd stream.
pub fn files(big: bool, compressed: bool) -> Vec<(&'static str, Vec<u8>)> {
    let File {
        events,
        data,
        features,
        ..
    } = file::basic(big);
    let mut main = File {
        data,
        features,
        ..File::new(big, events)
    };
    let mut more = Features {
        big,
        cases: Vec::new(),
    };
    feature_system::dir_format(&mut more);
    main.set_feature(24, more.cases.remove(0).section);
    if compressed {
        main.set_feature(27, feature_system::compressed(super::Buf::new(big)).bytes);
    }
    let records = |cpu: u32| {
        let mut event = main.events[0].clone();
        event.ids = vec![1];
        // The bare streams contain no FINISHED_ROUND.
        let mut cases: Vec<Case> = file::basic_records(big, &event);
        cases.retain(|case| case.kind != kind::FINISHED_ROUND);
        cases.rotate_left(cpu as usize);
        if compressed {
            cases = sink::compress(big, &cases, kind::COMPRESSED2, 100);
        }
        stream(&cases)
    };
    vec![
        ("data", main.bytes()),
        ("data.0", records(0)),
        ("data.1", records(1)),
    ]
}
