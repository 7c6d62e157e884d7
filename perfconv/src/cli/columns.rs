//! The options of exports to columns.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};
use perfdata_columns::SampleColumn;

use super::recorded_at::{NamePattern, TimeOfDay};
use super::recording_label::RecordingLabel;

/// Heading of these options.
pub(super) const COLUMNS: &str = "Columns";

/// Options of Parquet and Arrow.
#[derive(Debug, Args)]
pub struct ColumnArgs {
    /// Add Parquet tables of all INPUTs to DIR, for queries over many recordings
    ///
    /// Recordings that are there are skipped, unless --force is given. Several processes may add to
    /// one directory. Recordings that cannot be exported are reported and skipped.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["output", "diff"])]
    pub append_to: Option<PathBuf>,
    /// Columns of the samples: a list, or changes, such as +offsets,-stack
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true, help_heading = COLUMNS)]
    #[arg(hide_short_help = true)]
    pub columns: Option<ColumnList>,
    /// Recordings without CLOCK_DATA were made at TIME, such as 2026-11-27T10:00:00Z or 2026-11-27
    ///
    /// --append-to divides recordings by their date. That of a recording without CLOCK_DATA is
    /// otherwise the date on which the file was changed last, which copies often lose.
    #[arg(
        long,
        value_name = "TIME",
        requires = "append_to",
        hide_short_help = true
    )]
    #[arg(conflicts_with_all = ["recorded_at_name", "output"], help_heading = COLUMNS)]
    pub recorded_at: Option<TimeOfDay>,
    /// Take the time of recordings without CLOCK_DATA from their names, such as %Y%m%d-%H%M%S
    ///
    /// The name of the file contains PATTERN somewhere: %Y (4 digits), %m, %d, %H, %M, %S (2 digits
    /// each) or %s (seconds since 1970), and %z (Z or +0100); without it, the time is UTC. A name
    /// without such a time is noted.
    #[arg(
        long,
        value_name = "PATTERN",
        requires = "append_to",
        hide_short_help = true
    )]
    #[arg(conflicts_with = "output", help_heading = COLUMNS)]
    pub recorded_at_name: Option<NamePattern>,
    /// Add a column KEY with the text VALUE to the table recordings, such as service=checkout
    ///
    /// The label is that of all recordings that the command adds. KEY consists of lower-case
    /// letters, digits and _. The option may be repeated with other keys.
    #[arg(
        long = "recording-label",
        value_name = "KEY=VALUE",
        requires = "append_to"
    )]
    #[arg(conflicts_with = "output", hide_short_help = true, help_heading = COLUMNS)]
    pub labels: Vec<RecordingLabel>,
}

/// A choice of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnList {
    /// The columns.
    pub columns: Vec<SampleColumn>,
    /// Whether the column `offsets` is named.
    pub offsets: bool,
}

impl FromStr for ColumnList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let is_change = |word: &&str| word.starts_with(['+', '-']);
        let changes = words.iter().filter(|word| is_change(word)).count();
        if changes != 0 && changes != words.len() {
            return Err("either all columns have + or -, or none".into());
        }
        let mut chosen = match changes {
            0 => Vec::new(),
            _ => SampleColumn::ALL.to_vec(),
        };
        let mut offsets = false;
        for word in words {
            let name = word.strip_prefix(['+', '-']).unwrap_or(word);
            let column = SampleColumn::by_name(name).ok_or_else(|| unknown(name))?;
            if column == SampleColumn::Offsets {
                offsets = !word.starts_with('-');
            }
            match word.starts_with('-') {
                true => chosen.retain(|known| *known != column),
                false if !chosen.contains(&column) => chosen.push(column),
                false => {}
            }
        }
        if chosen.is_empty() {
            return Err("no column is left".into());
        }
        Ok(ColumnList {
            columns: chosen,
            offsets,
        })
    }
}

fn unknown(name: &str) -> String {
    let all = SampleColumn::ALL.iter().map(|column| column.column().name);
    let all: Vec<&str> = all.collect();
    format!("{name} is not a column; these are: {}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_listed_or_changed() {
        let parse = |text: &str| text.parse::<ColumnList>();
        let of = |text: &str| parse(text).map(|list| list.columns);
        assert_eq!(
            of("time, comm,time"),
            Ok(vec![SampleColumn::Time, SampleColumn::Comm])
        );
        let changed = of("-stack,+offsets").expect("columns");
        assert!(!changed.contains(&SampleColumn::Stack));
        assert!(changed.contains(&SampleColumn::Offsets));
        assert!(changed.contains(&SampleColumn::Time));
        let offsets = |text| parse(text).expect("columns").offsets;
        assert!(offsets("+offsets") && offsets("offsets"));
        assert!(!offsets("-offsets") && !offsets("-stack"));
        assert!(of("time,-stack").is_err());
        assert!(of("").is_err());
        assert!(
            of("nothing")
                .expect_err("an unknown name")
                .contains("callchain")
        );
        let all = SampleColumn::ALL
            .iter()
            .map(|column| format!("-{}", column.column().name));
        let all: Vec<String> = all.collect();
        assert!(of(&all.join(",")).is_err());
    }
}
