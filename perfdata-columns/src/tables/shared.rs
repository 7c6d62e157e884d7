//! The columns of the tables of tracepoints over many recordings.

use std::fmt;
use std::io;

use crate::error::{Error, Result};
use crate::schema::{Kind, Table};

/// Maximum number of columns of a table over all recordings.
const MOST_COLUMNS: usize = 4096;

/// Columns for the fields of a tracepoint, or for labels, with their names and types.
pub type FieldColumns = Vec<(String, Kind)>;

/// The columns that the table of a tracepoint, or `recordings`, has in other recordings, besides
/// those that all tables of tracepoints, or all tables `recordings`, have.
///
/// Kernels differ in the fields of a tracepoint, and recordings in their labels. With the columns of
/// the other recordings, each file has all of them in the same order, and a column has the same type
/// in all files.
pub trait SharedColumns: fmt::Debug + Send + Sync {
    /// Calls `change` with the names and types of the columns of `table`, and keeps the columns
    /// that it appends. It may be called more than once, the last time with those that are kept.
    ///
    /// # Errors
    /// The columns cannot be read or kept.
    fn update(&self, table: &Table, change: &mut dyn FnMut(&mut FieldColumns)) -> io::Result<()>;
}

/// Returns the columns of `table`, with those of other recordings, and for each the number of the
/// `wanted` column, if it is one.
///
/// # Errors
/// The columns of other recordings cannot be read or kept.
pub(super) fn with_wanted(
    shared: Option<&dyn SharedColumns>,
    table: &Table,
    wanted: &[(String, Kind)],
) -> Result<(FieldColumns, Vec<Option<usize>>)> {
    let mut all = Vec::new();
    let mut found = Vec::new();
    let mut change = |known: &mut FieldColumns| {
        found = positions(known, wanted);
        all.clone_from(known);
    };
    match shared {
        Some(shared) => shared.update(table, &mut change).map_err(Error::Output)?,
        None => change(&mut Vec::new()),
    }
    let numbers = (0..all.len()).map(|at| found.iter().position(|found| *found == Some(at)));
    let numbers = numbers.collect();
    Ok((all, numbers))
}

/// Returns the position among `known` of the column for each of the `wanted` ones; `None` if there
/// are too many. Missing columns are appended. If the name is that of a column with another type,
/// the column has the type in its name.
fn positions(known: &mut FieldColumns, wanted: &[(String, Kind)]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = Vec::new();
    for (name, kind) in wanted {
        let mut candidate = name.clone();
        let position = loop {
            let at = known.iter().position(|(known, _)| *known == candidate);
            match at.and_then(|at| Some((at, known.get(at)?.1))) {
                None if known.len() >= MOST_COLUMNS => break None,
                None => {
                    known.push((candidate, *kind));
                    break known.len().checked_sub(1);
                }
                Some((at, other)) if other == *kind && !found.contains(&Some(at)) => {
                    break Some(at);
                }
                Some(_) if candidate == *name => {
                    candidate.push('_');
                    candidate.push_str(&kind.to_string());
                }
                Some(_) => candidate.push('_'),
            }
        };
        found.push(position);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(list: &[(&str, Kind)]) -> FieldColumns {
        let owned = list.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
        owned.collect()
    }

    #[test]
    fn a_name_has_one_type() {
        let mut known = Vec::new();
        let old = columns(&[("comm", Kind::Text), ("prio", Kind::Int64)]);
        assert_eq!(positions(&mut known, &old), [Some(0), Some(1)]);
        let new = columns(&[
            ("prio", Kind::Int64),
            ("comm", Kind::Int64),
            ("comm_int64", Kind::Int64),
            ("cpus", Kind::Bytes),
        ]);
        let found = positions(&mut known, &new);
        assert_eq!(found, [Some(1), Some(2), Some(3), Some(4)]);
        let all = [
            ("comm", Kind::Text),
            ("prio", Kind::Int64),
            ("comm_int64", Kind::Int64),
            ("comm_int64_int64", Kind::Int64),
            ("cpus", Kind::Bytes),
        ];
        assert_eq!(known, columns(&all));
        // Nothing changes any more.
        assert_eq!(positions(&mut known, &new), found);
        assert_eq!(positions(&mut known, &old), [Some(0), Some(1)]);
        assert_eq!(known, columns(&all));
    }

    #[test]
    fn the_number_of_columns_is_limited() {
        let name = |number: usize| (format!("c{number}"), Kind::Int64);
        let wanted: Vec<_> = (0..MOST_COLUMNS + 1).map(name).collect();
        let mut known = Vec::new();
        let found = positions(&mut known, &wanted);
        assert_eq!(found.last(), Some(&None));
        assert_eq!(known.len(), MOST_COLUMNS);
    }
}
