//! The events of all recordings: equal ones become one, and IDs stay apart.

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;

use perfdata_convert::io::Input;
use perfdata_core::header::ContainerKind;
use perfdata_edit::merge::Merge;
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::recordings::{fixture, fixtures, in_parallel};
use perfdata_tests::synth::attr::sample_type::*;

use super::{BASE, Small, errors, event, merge, merge_noting, plain, records, samples};

#[test]
fn a_single_recording_stays_as_it_is() {
    in_parallel(&fixtures(), |recording| {
        let Ok(expected) = convert(&recording.path, None, Vec::new()) else {
            return;
        };
        let input = Input::open(&recording.path).expect("a recording");
        let (bytes, notes) =
            merge_noting(Merge::default(), vec![input], None).expect("one can be merged");
        assert!(bytes == expected.bytes(), "{}", recording.name);
        assert_eq!(notes, Vec::<String>::new());
    });
}

/// Each fixture with itself: every sample twice, by time, and nothing wrong in the result.
#[test]
fn every_fixture_can_be_merged_with_itself() {
    let all: Vec<_> = fixtures()
        .into_iter()
        .filter(|recording| recording.path.is_file() && !recording.is_damaged())
        .collect();
    let merged = Mutex::new(0);
    let refused: Mutex<HashMap<String, usize>> = Mutex::default();
    in_parallel(&all, |recording| {
        let open = || Input::open(&recording.path).expect("a recording");
        let file = Some(ContainerKind::File);
        let once = match merge_noting(Merge::default(), vec![open()], file) {
            Ok((bytes, _)) => bytes,
            Err(_) => return,
        };
        let twice = match merge_noting(Merge::default(), vec![open(), open()], file) {
            Ok((bytes, _)) => bytes,
            Err(error) => {
                let why = error.to_string();
                let known = [
                    "counts by the numbers",
                    "no events",
                    "AUX data",
                    "have no time",
                ];
                let known = known.into_iter().find(|known| why.contains(known));
                let known = known.unwrap_or_else(|| panic!("{}: {why}", recording.name));
                let mut refused = refused.lock().expect("no thread failed");
                *refused.entry(known.to_owned()).or_default() += 1;
                return;
            }
        };
        assert_eq!(errors(&twice), Vec::<String>::new(), "{}", recording.name);
        let (once, twice) = (plain(once), plain(twice));
        let mut expected: Vec<_> = samples(&once)
            .into_iter()
            .flat_map(|one| [one.clone(), one])
            .collect();
        expected.sort();
        assert!(samples(&twice) == expected, "{}", recording.name);
        let times: Vec<u64> = records(&twice)
            .into_iter()
            .filter_map(|(_, time, _)| time.filter(|&time| time != 0 && time != u64::MAX))
            .collect();
        assert!(times.is_sorted(), "{}", recording.name);
        *merged.lock().expect("no thread failed") += 1;
    });
    let merged = merged.into_inner().expect("no thread failed");
    assert!(merged > 60, "{merged} merged, {refused:?} refused");
}

/// Attributes that are equal or not × records with and without IDs, at two places.
#[test]
fn records_of_all_kinds_of_events_find_their_event() {
    let forms = [BASE, BASE | ID, BASE | IDENTIFIER];
    for (first, a) in forms.into_iter().enumerate() {
        for (second, b) in forms.into_iter().enumerate() {
            for other_period in [4000, 5000] {
                for ids in [[7, 8], [7, 7]] {
                    let one = Small::new(event(a, 4000, &ids[..1]), "one", &[100, 300]);
                    let two = Small {
                        pid: 2000,
                        ..Small::new(event(b, other_period, &ids[1..]), "two", &[200, 400])
                    };
                    let (one, two) = (one.bytes(), two.bytes());
                    let both = merge(&[&one, &two]);
                    let mut expected = samples(&one);
                    expected.extend(samples(&two));
                    expected.sort();
                    assert_eq!(
                        samples(&both),
                        expected,
                        "{first} {second} {other_period} {ids:?}"
                    );
                    let events = Whole::read(both).expect("a recording").recording.events;
                    let is_one = other_period == 4000 && (a | IDENTIFIER) == (b | IDENTIFIER);
                    assert_eq!(events.len(), if is_one { 1 } else { 2 });
                }
            }
        }
    }
    // Events without any IDs in the tables.
    let one = Small::new(event(BASE, 4000, &[]), "one", &[100]).bytes();
    let two = Small::new(event(BASE, 5000, &[]), "two", &[200]).bytes();
    let both = Whole::read(merge(&[&one, &two])).expect("a recording");
    let ids: Vec<_> = both
        .recording
        .events
        .iter()
        .map(|event| event.ids.clone())
        .collect();
    assert_eq!(ids, [[1], [2]]);
}

/// IDs of different events collide: those of the later recording change everywhere.
#[test]
fn ids_that_collide_are_renumbered_everywhere() {
    let bytes = fs::read(fixture("6.1-x86_64-file-group-S").path).expect("a fixture");
    let mut other = bytes.clone();
    let attrs = u64::from_le_bytes(bytes[24..32].try_into().expect("8 bytes")) as usize;
    // The sampling period of the first event: the third word of its attribute.
    other[attrs + 16] ^= 1;
    let both = merge(&[&bytes, &other]);
    let whole = Whole::read(both.clone()).expect("a recording");
    let events = &whole.recording.events;
    let mut all: Vec<u64> = events.iter().flat_map(|event| event.ids.clone()).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "each ID is that of one event");
    let mut of_event = vec![0; events.len()];
    for (event, _, record) in records(&both) {
        assert_eq!(record.event_ids(events).unknown, None);
        if let Some(event) = event {
            of_event[event] += 1;
        }
    }
    let once = samples(&bytes).len();
    assert_eq!(samples(&both).len(), 2 * once);
    assert!(
        of_event.iter().filter(|&&count| count > 0).count() >= 2,
        "{of_event:?}"
    );
}
