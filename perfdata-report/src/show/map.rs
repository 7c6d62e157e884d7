//! The layout of a recording to scale, in characters, as shown by `perfconv info --map`.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::seconds;
use super::survey::{ChartData, Room};
use super::tallies::Tally;
use perfdata_convert::support::text::escaped;

/// Shades that distinguish the parts of a file, in addition to their colours.
const SHADES: [char; 4] = ['█', '▓', '▒', '░'];
/// Colours of the parts, in rotation.
const COLORS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Green,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::Red,
];
/// Heights of a column.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Minimum width of a readable map.
const NARROWEST: usize = 40;

/// Draws the recording in lines of at most `width` characters, with terminal colours.
pub fn draw(survey: &ChartData, width: usize) -> String {
    let width = width.max(NARROWEST);
    let mut out = String::new();
    let size = survey.size();
    let rooms = survey.rooms();
    let _ = writeln!(out, "{}, {size} bytes", survey.overview.container());
    draw_rooms(&mut out, "the whole", &rooms, width);
    let metadata: Vec<Room> = rooms
        .iter()
        .filter(|room| !room.is_records)
        .cloned()
        .collect();
    if metadata.len() > 1 && metadata.len() < rooms.len() {
        draw_rooms(&mut out, "without the records", &metadata, width);
    }
    draw_legend(&mut out, &rooms, size);
    draw_types(&mut out, survey, width);
    for damage in survey.overview.damage() {
        let _ = writeln!(out, "\ndamaged: {damage}");
    }
    out
}

fn style(at: usize) -> Style {
    let color = COLORS
        .get(at % COLORS.len())
        .copied()
        .unwrap_or(AnsiColor::White);
    Style::new().fg_color(Some(color.into()))
}

fn shade(at: usize) -> char {
    SHADES.get(at % SHADES.len()).copied().unwrap_or('█')
}

/// Draws parts to scale. A part always has the same colour and shade, which depend on its index
/// among all parts.
fn draw_rooms(out: &mut String, title: &str, rooms: &[Room], width: usize) {
    let total: u64 = rooms.iter().map(|room| room.size).sum();
    let _ = writeln!(out, "\n{title}, {total} bytes, to scale:");
    let mut here = 0_u64;
    let mut drawn = 0;
    for room in rooms {
        here = here.saturating_add(room.size);
        // Products of two sizes fit in 128 bits.
        let end = (u128::from(here) * width as u128)
            .checked_div(u128::from(total))
            .unwrap_or(0);
        let end = usize::try_from(end).unwrap_or(width).min(width);
        let look = room.look();
        let style = style(look);
        let _ = write!(out, "{style}");
        out.extend(std::iter::repeat_n(shade(look), end.saturating_sub(drawn)));
        let _ = write!(out, "{style:#}");
        drawn = drawn.max(end);
    }
    out.push('\n');
}

fn draw_legend(out: &mut String, rooms: &[Room], size: u64) {
    out.push('\n');
    for room in rooms {
        let share = 100.0 * room.size as f64 / size.max(1) as f64;
        let look = room.look();
        let style = style(look);
        let _ = writeln!(
            out,
            "{style}{}{style:#} {:>#12x} {:>14} {share:>5.1} %  {}",
            shade(look),
            room.offset,
            room.size,
            room.name
        );
    }
}

/// Draws a row for each type of record: the number of its bytes along the stream.
fn draw_types(out: &mut String, survey: &ChartData, width: usize) {
    let mut tallies: Vec<_> = survey.overview.tallies().iter().collect();
    tallies.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.bytes));
    let name = tallies
        .iter()
        .map(|(kind, _)| kind.to_string().len())
        .max()
        .unwrap_or(0);
    let columns = width.saturating_sub(name + 24).max(10);
    if survey.overview.is_split() {
        let _ = writeln!(out, "\nrecords by type (in several files):");
    } else {
        let _ = writeln!(out, "\nrecords by type, along the stream:");
    }
    for (at, (kind, Tally { count, bytes })) in tallies.iter().enumerate() {
        let strip = match survey.space.row(kind) {
            Some(row) if !survey.overview.is_split() => strip(&row.collect::<Vec<_>>(), columns),
            _ => String::new(),
        };
        let style = style(at);
        let _ = writeln!(
            out,
            "{:<name$} {style}{strip:<columns$}{style:#} {count:>9} {bytes:>12}",
            kind.to_string()
        );
    }
    if let Some(times) = survey.overview.sample_times() {
        let span = times.last.saturating_sub(times.first);
        let _ = writeln!(
            out,
            "samples from {} to {} s: {} s",
            seconds(times.first),
            seconds(times.last),
            seconds(span)
        );
    }
    let events: Vec<String> = survey
        .overview
        .event_names()
        .map(|name| escaped(&name))
        .collect();
    let _ = writeln!(out, "events: {}", events.join(", "));
}

/// Draws a row of amounts in `columns` columns. The height of a column is proportional to its
/// amount; any nonzero amount is visible.
fn strip(row: &[u64], columns: usize) -> String {
    let columns = columns.min(row.len().max(1));
    let place = |at: usize| at * row.len() / columns;
    let sums: Vec<u64> = (0..columns)
        .map(|at| {
            row.get(place(at)..place(at + 1))
                .unwrap_or_default()
                .iter()
                .fold(0, |sum, part| sum + *part)
        })
        .collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let top = LEVELS.len() - 1;
    let level = |sum: u64| {
        usize::try_from((u128::from(sum) * top as u128).div_ceil(u128::from(most))).unwrap_or(top)
    };
    sums.into_iter()
        .map(|sum| LEVELS.get(level(sum)).copied().unwrap_or('█'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_are_as_high_as_their_columns() {
        assert_eq!(strip(&[0, 1, 4, 8], 4), " ▁▄█");
        assert_eq!(strip(&[0, 0, 1000, 1], 2), " █");
        assert_eq!(strip(&[1000, 1, 0, 0], 4), "█▁  ");
        assert_eq!(strip(&[], 10), " ");
    }
}
