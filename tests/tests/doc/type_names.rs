//! A name of a type has one meaning: few types of all crates have the same name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use perfdata_tests::recordings::root;

/// Every crate has its own error, as is usual for libraries.
const OF_EACH_CRATE: [&str; 2] = ["Error", "Result"];

/// Names that four types have, each in another crate or module. None may be added.
const FOUR: [&str; 17] = [
    "Ahead", "Count", "Counts", "Facts", "Fields", "Function", "Line", "Lines", "Machine",
    "Memory", "Named", "Part", "Report", "Shown", "Survey", "Value", "Written",
];

/// The same for three types.
const THREE: [&str; 53] = [
    "Addresses",
    "Batch",
    "Block",
    "Buffers",
    "BuildIds",
    "Bytes",
    "Chain",
    "Code",
    "Content",
    "Counted",
    "Entry",
    "Event",
    "Events",
    "Evidence",
    "Found",
    "Held",
    "Identity",
    "Item",
    "Job",
    "Kept",
    "Key",
    "Kind",
    "Known",
    "List",
    "Mapping",
    "Names",
    "Node",
    "Numbers",
    "Object",
    "Objects",
    "Opened",
    "Opening",
    "Place",
    "Process",
    "Queue",
    "Ranges",
    "Resolver",
    "Section",
    "Side",
    "Sink",
    "Span",
    "State",
    "Step",
    "Stream",
    "Style",
    "Summary",
    "Table",
    "Thread",
    "Threads",
    "Tracepoints",
    "Tree",
    "Unknown",
    "Waiting",
];

/// Returns the sources below a folder, without tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

/// Returns the name of the type that a line declares outside of other items.
fn declared(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let (kind, rest) = line.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&kind);
    let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
    is_type.then_some(name)
}

#[test]
fn a_name_belongs_to_few_types() {
    let mut files = Vec::new();
    for member in fs::read_dir(root()).expect("the workspace").flatten() {
        let name = member.file_name();
        if name.to_string_lossy().starts_with("perf") && member.path().join("src").is_dir() {
            sources(&member.path().join("src"), &mut files);
        }
    }
    assert!(files.len() > 400);
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a file");
        let code = text.split("#[cfg(test)]\nmod tests").next();
        for name in code.unwrap_or_default().lines().filter_map(declared) {
            let path = path.strip_prefix(root()).expect("below");
            let files = types.entry(name.to_owned()).or_default();
            files.push(path.display().to_string());
        }
    }
    let most = |name: &str| match name {
        name if OF_EACH_CRATE.contains(&name) => usize::MAX,
        name if FOUR.contains(&name) => 4,
        name if THREE.contains(&name) => 3,
        _ => 2,
    };
    let repeated: Vec<_> = types
        .iter()
        .filter(|(name, files)| files.len() > most(name))
        .collect();
    assert!(
        repeated.is_empty(),
        "one name for several types: {repeated:#?}"
    );
    let is_rare = |name: &&str, number: usize| types.get(*name).map_or(0, Vec::len) < number;
    let four = FOUR.into_iter().filter(|name| is_rare(name, 4));
    let three = THREE.into_iter().filter(|name| is_rare(name, 3));
    let gone: Vec<_> = four.chain(three).collect();
    assert!(gone.is_empty(), "shorten the lists by {gone:?}");
}

#[test]
fn declarations_are_found() {
    assert_eq!(declared("pub(crate) struct Key<T> {"), Some("Key"));
    assert_eq!(declared("pub trait Stage: Send {"), Some("Stage"));
    assert_eq!(declared("enum Kind {"), Some("Kind"));
    assert_eq!(declared("    struct Inner;"), None);
    assert_eq!(declared("pub fn record() {"), None);
}
