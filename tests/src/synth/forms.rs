//! Files in forms that perf does not write today: old forms, forms of rare machines and other
//! tools, and possible forms of a future perf.

use super::attr::{Attr, SIZES, sample_type};
use super::buf::island;
use super::feature_events::{self, Event};
use super::file::{File, Magic, basic, basic_records};
use super::record;

/// The size of an attribute that is larger than the current one.
pub const FUTURE_SIZE: u32 = 152;

/// Undefined features, far apart in the bitmap.
pub const UNKNOWN_FEATURES: [u32; 2] = [60, 130];

/// Returns every form with its name.
pub fn forms(big: bool) -> Vec<(String, File)> {
    let basic = || basic(big);
    let mut forms: Vec<(String, File)> = [
        ("basic", basic()),
        (
            "version 1",
            File {
                magic: Magic::V1,
                ..basic()
            },
        ),
        (
            "header of 72",
            File {
                header_size: 72,
                features: Vec::new(),
                ..basic()
            },
        ),
        (
            "version 1 with a header of 72",
            File {
                magic: Magic::V1,
                header_size: 72,
                features: Vec::new(),
                ..basic()
            },
        ),
        (
            "no features",
            File {
                features: Vec::new(),
                ..basic()
            },
        ),
        ("unknown features", unknown_features(basic())),
        (
            "gap behind the table",
            File {
                gap: vec![0xa5; 32],
                ..basic()
            },
        ),
        (
            "tail",
            File {
                tail: vec![0xa5; 7],
                ..basic()
            },
        ),
        (
            "hole before the data",
            File {
                hole: 4096,
                ..basic()
            },
        ),
        (
            "event types",
            File {
                event_types: vec![(1, "cpu-clock".into()), (7, "other".into())],
                ..basic()
            },
        ),
        (
            "no records",
            File {
                data: Vec::new(),
                ..basic()
            },
        ),
        (
            "killed",
            File {
                crashed: true,
                ..basic()
            },
        ),
        (
            "attributes behind the data",
            File {
                attrs_behind_data: true,
                features: Vec::new(),
                ..basic()
            },
        ),
        (
            "bitmap of 32-bit words",
            File {
                word: 4,
                ..unknown_features(basic())
            },
        ),
        ("no ids", without_ids(basic())),
        ("several events", several_events(basic())),
    ]
    .map(|(name, file)| (name.to_owned(), file))
    .into();
    forms.extend(
        [0].into_iter()
            .chain(SIZES)
            .chain([FUTURE_SIZE])
            .map(|size| {
                let mut file = basic();
                file.events[0].attr = Attr {
                    size,
                    tail: (144..size).map(|at| at as u8).collect(),
                    ..Attr::rich(144)
                };
                file.data = record::stream(&basic_records(big, &file.events[0]));
                file.features
                    .retain(|feature| feature.0 != feature_events::EVENT_DESC);
                (format!("attributes of {size}"), file)
            }),
    );
    forms
}

fn unknown_features(mut file: File) -> File {
    for (bit, size) in UNKNOWN_FEATURES.into_iter().zip([20, 3]) {
        file.set_feature(bit, island(size));
    }
    file
}

fn without_ids(mut file: File) -> File {
    file.events[0].ids.clear();
    file
}

/// The second event has no IDs, the third one has more than the first.
fn several_events(mut file: File) -> File {
    let first = &mut file.events[0];
    first.attr.sample_type |= sample_type::IDENTIFIER;
    let first = first.clone();
    file.data = record::stream(&basic_records(file.big, &first));
    file.features
        .retain(|feature| feature.0 != feature_events::EVENT_DESC);
    file.events.push(Event {
        name: "page-faults".into(),
        ids: Vec::new(),
        ..first.clone()
    });
    file.events.push(Event {
        name: "context-switches".into(),
        ids: vec![7, 8, 9],
        ..first
    });
    file
}
