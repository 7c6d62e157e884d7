//! Differences between two recordings in numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use perfdata_core::Endian;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::RecordType;

use super::model::Side;
use super::{Found, Part};
use crate::show::endian_name;
use crate::show::tallies::Tallies;
use perfdata_convert::count::Counts;
use perfdata_convert::json::Json;
use perfdata_convert::support::text::escaped;

/// One of the two compared recordings.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recording {
    /// Its path.
    pub path: PathBuf,
    /// Its container.
    pub container: ContainerKind,
    /// Its byte order.
    pub endian: Endian,
    /// Its numbers of records.
    pub counts: Counts,
    /// The numbers of compared records, by type.
    pub compared: Tallies,
}

impl Recording {
    fn new(path: &Path, side: Side) -> Self {
        Recording {
            path: path.to_owned(),
            container: side.container.unwrap_or(ContainerKind::File),
            endian: side
                .recording
                .map_or(Endian::Little, |recording| recording.endian),
            counts: side.counts,
            compared: side.compared,
        }
    }
}

/// The records that differ, by type.
#[derive(Debug, Default)]
pub(super) struct RecordDifferences {
    changed: Tallies,
    only: [Tallies; 2],
}

impl RecordDifferences {
    pub(super) fn changed(&mut self, kind: RecordType) {
        self.changed.add(kind, 0);
    }

    pub(super) fn only(&mut self, kind: RecordType, in_a: bool) {
        let [a, b] = &mut self.only;
        if in_a { a } else { b }.add(kind, 0);
    }
}

/// The number of differences in each event and feature section.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    all: Vec<(Part, String, u64)>,
    at: BTreeMap<String, usize>,
}

impl Metadata {
    /// Maximum number of separate rows. No recording has as many features, and more events are not
    /// useful in a report.
    const MOST: usize = 1000;

    pub(super) fn add(&mut self, part: Part, what: &str) {
        if let Some(&at) = self.at.get(what) {
            if let Some((.., count)) = self.all.get_mut(at) {
                *count = count.saturating_add(1);
            }
        } else if self.all.len() < Self::MOST {
            self.at.insert(what.to_owned(), self.all.len());
            self.all.push((part, what.to_owned(), 1));
        }
    }
}

/// The numbers of one record type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct TypeRow {
    a: u64,
    b: u64,
    changed: u64,
    only_a: u64,
    only_b: u64,
}

impl TypeRow {
    fn differs(&self) -> bool {
        self.changed > 0 || self.only_a > 0 || self.only_b > 0
    }

    fn numbers(&self) -> [u64; 5] {
        [self.a, self.b, self.changed, self.only_a, self.only_b]
    }
}

/// The differences in numbers.
#[derive(Debug)]
#[non_exhaustive]
pub struct Summary {
    /// The recordings.
    pub recordings: [Recording; 2],
    /// Whether the recordings differ.
    pub differs: bool,
    records: RecordDifferences,
    metadata: Vec<(Part, String, u64)>,
}

impl Summary {
    pub(super) fn new(sides: [(&Path, Side); 2], found: Found<'_>) -> Self {
        let (records, mut metadata) = (found.records, found.metadata.all);
        // Features first, as in the report.
        metadata.sort_by_key(|(part, ..)| *part != Part::Feature);
        Summary {
            recordings: sides.map(|(path, side)| Recording::new(path, side)),
            differs: found.told > 0,
            records,
            metadata,
        }
    }

    /// Returns the numbers of each type, and of all types together.
    fn rows(&self) -> (Vec<(String, TypeRow)>, TypeRow) {
        let [a, b] = &self.recordings;
        let [only_a, only_b] = &self.records.only;
        let all = [
            &a.compared,
            &b.compared,
            &self.records.changed,
            only_a,
            only_b,
        ];
        let row = |[a, b, changed, only_a, only_b]: [u64; 5]| TypeRow {
            a,
            b,
            changed,
            only_a,
            only_b,
        };
        let kinds: BTreeSet<RecordType> = all
            .iter()
            .flat_map(|tallies| tallies.iter().map(|(kind, _)| kind))
            .collect();
        let mut rows: Vec<_> = kinds
            .into_iter()
            .map(|kind| {
                (
                    kind.to_string(),
                    row(all.map(|tallies| tallies.get(kind).count)),
                )
            })
            .collect();
        let others = row(all.map(|tallies| tallies.others().count));
        if others != TypeRow::default() {
            rows.push(("others".to_owned(), others));
        }
        (rows, row(all.map(|tallies| tallies.total().count)))
    }

    /// Returns a line for each recording: path, container, byte order, and numbers of records.
    pub(super) fn heads(&self) -> String {
        let mut out = String::new();
        for (name, recording) in ["A", "B"].into_iter().zip(&self.recordings) {
            let Recording {
                path,
                container,
                endian,
                counts,
                ..
            } = recording;
            let path = escaped(path.as_os_str().as_encoded_bytes());
            let _ = writeln!(
                out,
                "{name}: {path}: {container}, {}, {counts}",
                endian_name(*endian)
            );
        }
        out
    }

    /// Returns a line for each feature and event that differs.
    pub(super) fn metadata(&self) -> String {
        let mut out = String::new();
        for (_, what, count) in &self.metadata {
            let s = if *count == 1 { "" } else { "s" };
            let _ = writeln!(out, "{what}: {count} difference{s}");
        }
        out
    }

    /// Returns the numbers of records as a table: of all types, or only of those that differ.
    pub(super) fn table(&self, of_all: bool) -> String {
        let (rows, total) = self.rows();
        if !total.differs() && !of_all {
            let s = if total.a == 1 { "" } else { "s" };
            return format!("{} record{s} compared, none differs\n", total.a);
        }
        let mut out = String::new();
        let mut line = |name: &str, cells: [String; 5]| {
            let _ = write!(out, "{name:<20}");
            for cell in &cells {
                let _ = write!(out, " {cell:>10}");
            }
            out.push('\n');
        };
        line(
            "records compared",
            ["A", "B", "changed", "only in A", "only in B"].map(str::to_owned),
        );
        for (name, row) in rows.iter().filter(|(_, row)| of_all || row.differs()) {
            line(
                &format!("  {name}"),
                row.numbers().map(|number| number.to_string()),
            );
        }
        line(
            "  all types",
            total.numbers().map(|number| number.to_string()),
        );
        out
    }

    /// Returns the summary as one JSON object.
    pub(super) fn json(&self) -> String {
        let mut json = Json::pretty();
        json.object("");
        json.boolean("differs", self.differs);
        for (name, recording) in ["a", "b"].into_iter().zip(&self.recordings) {
            json.object(name);
            json.text("path", recording.path.as_os_str().as_encoded_bytes());
            json.text("container", recording.container.to_string().as_bytes());
            json.text("byte_order", endian_name(recording.endian).as_bytes());
            recording.counts.json(&mut json, "counts");
            json.close();
        }
        json.list("metadata");
        for (part, what, count) in &self.metadata {
            json.object("");
            json.text("part", part.name().as_bytes());
            json.text("what", what.as_bytes());
            json.number("differences", *count);
            json.close();
        }
        json.close();
        let (rows, total) = self.rows();
        json.list("records");
        for (name, row) in &rows {
            json.object("");
            json.text("type", name.as_bytes());
            push_row(&mut json, row);
            json.close();
        }
        json.close();
        json.object("total");
        push_row(&mut json, &total);
        json.close();
        json.close();
        json.end_line();
        json.into_text()
    }
}

fn push_row(json: &mut Json, row: &TypeRow) {
    for (name, number) in ["a", "b", "changed", "only_in_a", "only_in_b"]
        .into_iter()
        .zip(row.numbers())
    {
        json.number(name, number);
    }
}
