//! Pseudonyms depend on the key, and ticks on the first ones.

use std::collections::BTreeSet;

use perfdata_convert::io::Input;
use perfdata_core::record::Body;
use perfdata_sanitize::{Audience, Key, Policy, Sanitize};
use perfdata_tests::convert::{Whole, into_memory};

use super::{fs_bytes, key, records, sanitized, texts};

/// The same key gives the same output, and the same pseudonyms in another recording; other keys
/// give others. Without a key, every output is different.
#[test]
fn pseudonyms_depend_on_the_key() {
    let input = fs_bytes("6.1-x86_64-file-g");
    let other = fs_bytes("6.1-x86_64-file-dwarf-u");
    let with = |input: &[u8], key: Key| {
        let stage = Sanitize::new(Policy::new(Audience::Public), key);
        into_memory(
            Input::from_source(input.to_vec()),
            None,
            vec![Box::new(stage)],
        )
        .expect("it can be sanitized")
    };
    let another = || Key::of_secret(b"another secret of these tests").expect("long enough");
    assert_eq!(with(&input, key()), with(&input, key()));
    let tokens = |bytes: &[u8]| -> BTreeSet<String> {
        let is_token = |text: &&str| {
            text.len() == 14 && text.bytes().all(|byte| b"bcdfghjklmnpqrst".contains(&byte))
        };
        let all = texts(bytes, 14);
        let words = all
            .iter()
            .flat_map(|text| text.split(['/', '.', '[', ']', ' ']));
        words.filter(is_token).map(str::to_owned).collect()
    };
    let (a, b) = (tokens(&with(&input, key())), tokens(&with(&other, key())));
    assert!(a.intersection(&b).count() >= 3, "{a:?} {b:?}");
    let c = tokens(&with(&input, another()));
    assert_eq!(a.intersection(&c).count(), 0);
    let random = || tokens(&with(&input, Key::random().expect("random numbers")));
    assert_eq!(random().intersection(&random()).count(), 0);
    assert!(a.len() >= 5 && c.len() == a.len());
}

/// Ticks since boot become ticks since the first ones.
#[test]
fn ticks_do_not_tell_how_long_the_machine_runs() {
    let ticks = |bytes: Vec<u8>| -> Vec<u64> {
        let all = records(&Whole::read(bytes).expect("a recording"));
        let ticks = all.iter().filter_map(|record| match &record.body {
            Body::SchedstatCpu(cpu) => Some(cpu.timestamp),
            Body::SchedstatDomain(domain) => Some(domain.timestamp),
            _ => None,
        });
        ticks.collect()
    };
    for name in ["7.2-x86_64-tool-schedstats", "7.2-s390x-tool-schedstats"] {
        let old = ticks(fs_bytes(name));
        let first = *old.first().expect("ticks");
        assert!(first > 1 << 32 && old.iter().any(|&ticks| ticks > first));
        let expected: Vec<u64> = old.iter().map(|ticks| ticks - first + 1).collect();
        let new = ticks(sanitized(fs_bytes(name), Policy::new(Audience::Public)));
        assert_eq!(new, expected, "{name}");
    }
}
