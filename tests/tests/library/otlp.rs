//! Profiles of OpenTelemetry, decoded independently of what wrote them.

use std::collections::{BTreeMap, BTreeSet};

use perfdata_export::{Label, Otlp};
use perfdata_tests::recordings::{self, Recording};

use crate::export::{Totals, run};
use crate::messages::{contents, fields, number_in, packed};

/// The tables of the dictionary. The first entry of each is empty.
struct Dictionary {
    strings: Vec<String>,
    /// Key and value, as text.
    attributes: Vec<(String, String)>,
    stacks: usize,
}

/// Returns an `AnyValue` as text.
fn any_value(value: &[u8]) -> String {
    let (number, value, content) = fields(value).pop().expect("a value");
    match number {
        1 => String::from_utf8(content).expect("UTF-8"),
        3 => value.cast_signed().to_string(),
        _ => panic!("type {number}"),
    }
}

impl Dictionary {
    /// Reads the dictionary of a file, whose references must exist.
    fn of(file: &[u8]) -> Self {
        let dictionaries = contents(file, 2);
        assert_eq!(dictionaries.len(), 1);
        let table = |number| contents(&dictionaries[0], number);
        let strings: Vec<String> = table(5)
            .into_iter()
            .map(|string| String::from_utf8(string).expect("UTF-8"))
            .collect();
        let string = |at: u64| strings[usize::try_from(at).expect("small")].clone();
        let attributes: Vec<(String, String)> = table(6)
            .iter()
            .skip(1)
            .map(|entry| {
                let value = any_value(&contents(entry, 2)[0]);
                (string(number_in(entry, 1)), value)
            })
            .collect();
        let attributes = [vec![Default::default()], attributes].concat();
        let (mappings, locations, functions) = (table(1), table(2), table(3));
        let stacks = table(7);
        for entry in [&mappings, &locations, &functions, &table(6), &stacks] {
            assert!(entry[0].is_empty());
        }
        assert!(strings[0].is_empty());
        assert_eq!(strings.iter().collect::<BTreeSet<_>>().len(), strings.len());
        assert_eq!(table(4).len(), 1);
        let has = |table: &[Vec<u8>], at: u64| at < table.len() as u64;
        let refer = |entry: &[u8], number| {
            let lists = contents(entry, number);
            lists
                .iter()
                .flat_map(|list| packed(list))
                .collect::<Vec<u64>>()
        };
        let is_attribute = |at: u64| 0 < at && at < attributes.len() as u64;
        for mapping in &mappings {
            let _ = string(number_in(mapping, 4));
            assert!(refer(mapping, 5).into_iter().all(is_attribute));
        }
        for location in &locations {
            assert!(has(&mappings, number_in(location, 1)));
            assert!(refer(location, 4).into_iter().all(is_attribute));
            let lines = contents(location, 3);
            assert!(lines.iter().all(|line| has(&functions, number_in(line, 1))));
        }
        for stack in &stacks {
            let inside = |at: u64| 0 < at && has(&locations, at);
            assert!(refer(stack, 1).into_iter().all(inside));
        }
        let stacks = stacks.len();
        Dictionary {
            strings,
            attributes,
            stacks,
        }
    }

    fn string(&self, at: u64) -> &str {
        &self.strings[usize::try_from(at).expect("small")]
    }

    /// Returns the type and the unit of a `ValueType`.
    fn value_type(&self, message: &[u8]) -> (&str, &str) {
        let of = |number| self.string(number_in(message, number));
        (of(1), of(2))
    }
}

/// The sums of values by type.
type Sums = BTreeMap<String, u64>;

/// Returns the sums of all profiles, and the attributes of each resource.
fn sums(file: &[u8], dictionary: &Dictionary) -> (Sums, Vec<BTreeMap<String, String>>) {
    let mut sums = Sums::new();
    let mut resources = Vec::new();
    for process in contents(file, 1) {
        let attributes = contents(&contents(&process, 1)[0], 1);
        let attributes = attributes.iter().map(|entry| {
            let key = String::from_utf8(contents(entry, 1)[0].clone()).expect("UTF-8");
            (key, any_value(&contents(entry, 2)[0]))
        });
        resources.push(attributes.collect());
        let scopes = contents(&process, 2);
        assert_eq!(scopes.len(), 1);
        for profile in contents(&scopes[0], 2) {
            let (kind, unit) = dictionary.value_type(&contents(&profile, 1)[0]);
            let (event, period_unit) = dictionary.value_type(&contents(&profile, 5)[0]);
            let name = match kind {
                "samples" => format!("{event} samples"),
                _ => format!("{kind} {unit}"),
            };
            assert!(kind == "samples" || (kind, unit) == (event, period_unit));
            for sample in contents(&profile, 2) {
                assert!(number_in(&sample, 1) < dictionary.stacks as u64);
                let values = contents(&sample, 4);
                let [value] = packed(&values[0])[..] else {
                    panic!("{values:?}");
                };
                *sums.entry(name.clone()).or_default() += value;
                let lists = contents(&sample, 2);
                for at in lists.iter().flat_map(|list| packed(list)) {
                    let at = usize::try_from(at).expect("small");
                    let key = &dictionary.attributes[at].0;
                    let prefixes = ["thread.", "cpu.", "process.linux."];
                    assert!(prefixes.iter().any(|prefix| key.starts_with(prefix)));
                }
            }
        }
    }
    (sums, resources)
}

fn file(recording: &Recording, labels: Vec<Label>) -> Vec<u8> {
    let mut out = Vec::new();
    run(recording, &mut Otlp::new(&mut out).with_labels(labels));
    out
}

/// Compares the sums with those of the recording.
pub fn check_otlp(recording: &Recording, totals: &Totals) -> Result<(), String> {
    let file = file(recording, Label::ALL.to_vec());
    let (sums, _) = sums(&file, &Dictionary::of(&file));
    let mut found: Vec<u64> = sums.values().copied().collect();
    let sums_of = totals.0.values();
    let mut expected: Vec<u64> = sums_of.flat_map(|sums| [sums.0, sums.1]).collect();
    found.sort_unstable();
    expected.sort_unstable();
    match found == expected {
        true => Ok(()),
        false => Err(format!("otlp: {sums:?}, expected {:?}", totals.0)),
    }
}

#[test]
fn a_process_is_a_resource() {
    let recording = recordings::fixture("6.1-x86_64-file-g");
    let file = file(&recording, vec![]);
    let dictionary = Dictionary::of(&file);
    let (sums, resources) = sums(&file, &dictionary);
    assert_eq!(
        sums.keys().collect::<Vec<_>>(),
        ["cpu nanoseconds", "cpu samples"]
    );
    assert!(!resources.is_empty());
    let mut pids = BTreeSet::new();
    for resource in &resources {
        assert_eq!(resource["os.type"], "linux");
        assert_eq!(resource["host.arch"], "amd64");
        assert_eq!(
            resource["service.name"],
            resource["process.executable.name"]
        );
        pids.insert(resource["process.pid"].clone());
    }
    assert_eq!(pids.len(), resources.len());
    let has = |key: &str, value: &str| {
        let attribute = (key.to_owned(), value.to_owned());
        dictionary.attributes.contains(&attribute)
    };
    assert!(has("profile.frame.type", "kernel") && has("profile.frame.type", "native"));
    let mut keys = dictionary.attributes.iter().map(|attribute| &*attribute.0);
    assert!(keys.any(|key| key == "process.executable.build_id.gnu"));
}
