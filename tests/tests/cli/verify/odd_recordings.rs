//! The recordings in `fixtures/defects`: `verify` finds what fixtures/README.md says of each, and its
//! exit status is that of the worst finding.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use perfdata_tests::convert::perfconv;
use perfdata_tests::perf::{self, Output};
use perfdata_tests::recordings::fixtures_dir;

fn verify(path: &Path, options: &[&str]) -> Output {
    let mut command = perfconv();
    command.arg("verify").args(options).arg(path);
    perf::run(command).expect("perfconv can be started")
}

/// The severities from the worst one on, as `--fail-on` takes them.
const SEVERITIES: [&str; 3] = ["error", "warning", "note"];

#[test]
fn findings_are_those_of_the_list() {
    let text = fs::read_to_string(fixtures_dir().join("README.md")).expect("the list");
    let mut expected: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [name, _, _, worst] = cells[..] else {
            panic!("{line}");
        };
        expected.insert(
            name.trim_matches(['|', ' ', '`']),
            worst.trim_matches(['|', ' ']),
        );
    }
    let folder = fixtures_dir().join("defects");
    for entry in fs::read_dir(&folder).expect("the folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("a name");
        let worst = expected
            .remove(name)
            .unwrap_or_else(|| panic!("{name}: not in the list"));
        let place = SEVERITIES.iter().position(|severity| *severity == worst);
        assert!(place.is_some() || worst == "none", "{name}: {worst}");
        let path = folder.join(name);
        let status = |options: &[&str]| {
            let said = verify(&path, options);
            let code = said.status.and_then(|status| status.code());
            (code, said.stdout)
        };
        for (least, severity) in SEVERITIES.iter().enumerate() {
            let fails = place.is_some_and(|place| place <= least);
            let (found, text) = status(&["--fail-on", severity]);
            assert_eq!(found, Some(i32::from(fails)), "{name}: {severity}: {text}");
        }
        let expected = Some(i32::from(worst == "error"));
        assert_eq!(status(&[]).0, expected, "{name}");
        assert_eq!(status(&["-q"]), (expected, String::new()), "{name}");
    }
    assert!(expected.is_empty(), "not there: {expected:?}");
}
