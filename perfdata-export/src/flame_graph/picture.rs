//! The picture of a flame graph.

use std::collections::HashMap;
use std::io::Write;

use foldhash::fast::RandomState;

use super::rows::Key;
use super::{FlameGraph, number};
use crate::counts::Sums;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::shown::{Code, Interned, Shown};
use crate::text::push_text;
use crate::tree::{ROOT, Tree};

/// Width of the picture in pixels.
const WIDTH: f64 = 1200.0;
/// Height of a frame in pixels.
const ROW: u32 = 17;
/// Height of the title above the graph, and of the space below it, in pixels.
const MARGIN: u32 = 30;
/// Width of a character of the labels in pixels.
const CHARACTER: f64 = 6.6;
/// Width in pixels below which a frame is not drawn.
const LEAST: f64 = 0.1;

/// Two values of a node: of the recording, and of the one to compare with.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    own: u64,
    other: u64,
}

impl<W: Write> FlameGraph<W> {
    /// Writes the picture of the first event.
    pub(super) fn write_picture(&mut self) -> Result<()> {
        let event = 0;
        let mut rows = self.rows.sorted();
        rows.retain(|row| row.0.event == event);
        let mut frames: Vec<Shown> = self.frames.list.iter().cloned().collect();
        self.add_comms(&mut rows, &mut frames);
        let of_side = |side: u8| {
            let rows = rows.iter().filter(move |row| row.0.side == side);
            rows.map(|row| (row.0.node, row.1.weight))
        };
        let own = self.tree.sums(of_side(0));
        let other = self.tree.sums(of_side(1));
        let names: Vec<&[u8]> = frames.iter().map(|frame| &*frame.name).collect();
        let children = children(&self.tree, &own, &names);
        let picture = Picture {
            frames: &frames,
            tree: &self.tree,
            unmapped: &self.unmapped,
            own: &own,
            other: &other,
            is_difference: self.sides.len() > 1,
            children: &children,
            event: self.events.get(event),
        };
        let titles = self.sides.iter().map(|side| text(&side.name));
        let titles: Vec<String> = titles.collect();
        let svg = picture.draw(&titles.join(" compared with "));
        self.out.write_all(svg.as_bytes()).map_err(Error::Output)?;
        self.out.flush().map_err(Error::Output)
    }

    /// Makes the names of threads the outermost frames of all stacks, if there are several.
    fn add_comms(&mut self, rows: &mut [(Key, Sums)], frames: &mut Vec<Shown>) {
        let mut comms = Interned::default();
        let comm_of = |thread: u32| {
            let at = usize::try_from(thread).ok();
            let thread = at.and_then(|at| self.threads.list.get_index(at));
            thread.map(|thread| thread.comm.clone()).unwrap_or_default()
        };
        let numbers = rows.iter().map(|row| comms.number(comm_of(row.0.thread)));
        let numbers: Vec<u32> = numbers.collect();
        if comms.list.len() < 2 {
            return;
        }
        // Those that are too narrow to be drawn are not needed for each name.
        let own = rows.iter().filter(|row| row.0.side == 0);
        let sums = self.tree.sums(own.map(|row| (row.0.node, row.1.weight)));
        let total = sums.first().copied().unwrap_or_default();
        let least = (total as f64 * LEAST / WIDTH) as u64;
        let shown = self.tree.prune(&sums, least.max(1));
        self.renumber_unmapped(&shown);
        let first = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        frames.extend(comms.list.into_iter().map(Shown::of_comm));
        let old = std::mem::replace(&mut self.tree, Tree::new());
        let unmapped = std::mem::take(&mut self.unmapped);
        let mut path = Vec::new();
        for (row, comm) in rows.iter_mut().zip(numbers) {
            path.clear();
            path.extend(old.path(number(&shown, row.0.node)));
            let mut node = self.tree.child(ROOT, first.saturating_add(comm));
            for (old, frame) in path.iter().rev().copied() {
                node = self.tree.child(node, frame);
                if let Some(&len) = unmapped.get(&old) {
                    self.see_unmapped(node, len);
                }
            }
            row.0.node = node;
        }
    }
}

/// Returns the children of each node that have samples, sorted by name.
fn children(tree: &Tree, sums: &[u64], names: &[&[u8]]) -> HashMap<u32, Vec<u32>, RandomState> {
    let mut children: HashMap<u32, Vec<u32>, RandomState> = HashMap::default();
    for ((number, node), &sum) in (0_u32..).zip(tree.nodes()).zip(sums).skip(1) {
        if sum > 0 {
            children.entry(node.parent).or_default().push(number);
        }
    }
    let name = |number: &u32| {
        let node = tree.nodes().get(usize::try_from(*number).ok()?)?;
        names.get(usize::try_from(node.frame).ok()?)
    };
    for list in children.values_mut() {
        list.sort_by_key(name);
    }
    children
}

/// Returns a name as text in XML.
fn text(name: &[u8]) -> String {
    let mut text = String::new();
    push_text(&mut text, name);
    escaped(&text)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// What a picture shows.
struct Picture<'a> {
    frames: &'a [Shown],
    tree: &'a Tree,
    unmapped: &'a HashMap<u32, u32, RandomState>,
    own: &'a [u64],
    other: &'a [u64],
    is_difference: bool,
    children: &'a HashMap<u32, Vec<u32>, RandomState>,
    event: Option<&'a Event>,
}

/// A node and its place.
struct Placed {
    node: u32,
    depth: u32,
    x: f64,
    width: f64,
}

impl Picture<'_> {
    fn pair(&self, node: u32) -> Pair {
        let of = |sums: &[u64]| {
            let sum = usize::try_from(node).ok().and_then(|at| sums.get(at));
            sum.copied().unwrap_or_default()
        };
        Pair {
            own: of(self.own),
            other: of(self.other),
        }
    }

    /// Returns a sum with its unit.
    fn amount(&self, sum: u64) -> String {
        let amount = self.event.map(|event| event.amount(sum));
        escaped(&amount.unwrap_or_else(|| sum.to_string()))
    }

    /// Returns the places of all nodes that are wide enough.
    fn place(&self) -> Vec<Placed> {
        let total = self.pair(0).own.max(1);
        let mut placed = Vec::new();
        let mut rest = vec![Placed {
            node: 0,
            depth: 0,
            x: 0.0,
            width: WIDTH,
        }];
        while let Some(next) = rest.pop() {
            let mut x = next.x;
            let list = self.children.get(&next.node);
            for &node in list.into_iter().flatten() {
                let width = WIDTH * (self.pair(node).own as f64 / total as f64);
                if width >= LEAST {
                    rest.push(Placed {
                        node,
                        depth: next.depth.saturating_add(1),
                        x,
                        width,
                    });
                }
                x += width;
            }
            placed.push(next);
        }
        placed
    }

    fn draw(&self, title: &str) -> String {
        let placed = self.place();
        let depth = placed.iter().map(|place| place.depth).max().unwrap_or(0);
        let rows = depth.saturating_add(1).saturating_mul(ROW);
        let height = rows.saturating_add(MARGIN.saturating_mul(2));
        let event = text(self.event.map_or(b"", |event| &event.name));
        let total = self.amount(self.pair(0).own);
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">\n\
             <title>{title}: {event}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fcfcfa\"/>\n\
             <text x=\"{}\" y=\"19\" text-anchor=\"middle\" font-size=\"14\">{title}: {event}, {total}</text>\n",
            WIDTH / 2.0,
        );
        for place in &placed {
            let y = height
                .saturating_sub(MARGIN)
                .saturating_sub(place.depth.saturating_add(1).saturating_mul(ROW));
            self.draw_frame(&mut out, place, y);
        }
        out.push_str("</svg>\n");
        out
    }

    fn draw_frame(&self, out: &mut String, place: &Placed, y: u32) {
        let node = usize::try_from(place.node).ok();
        let node = node.and_then(|at| self.tree.nodes().get(at));
        let frame = node.and_then(|node| self.frames.get(usize::try_from(node.frame).ok()?));
        let mut name = String::new();
        push_text(&mut name, frame.map_or(b"all", |frame| &frame.name));
        if let Some(most) = self.unmapped.get(&place.node) {
            name.push_str(&format!(" (up to {most} frames)"));
        }
        let (pair, all) = (self.pair(place.node), self.pair(0));
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let own = share(pair.own, all.own);
        let difference = own - share(pair.other, all.other);
        let mut label = format!("{} ({}, {own:.2}%", escaped(&name), self.amount(pair.own));
        if self.is_difference {
            label.push_str(&format!(", {difference:+.2}%"));
        }
        let colour = match (frame, self.is_difference) {
            (None, _) => "hsl(0,0%,85%)".into(),
            (Some(_), true) => difference_colour(difference),
            (Some(frame), false) => colour(frame.code, &frame.name),
        };
        out.push_str(&format!(
            "<g><title>{label})</title><rect x=\"{:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"16\" rx=\"1\" fill=\"{colour}\"/>",
            place.x, place.width
        ));
        let most = ((place.width - 4.0) / CHARACTER) as usize;
        if most >= 3 {
            let fits = name.chars().count() <= most;
            let shown: String = match fits {
                true => name,
                false => name
                    .chars()
                    .take(most.saturating_sub(1))
                    .chain(['…'])
                    .collect(),
            };
            out.push_str(&format!(
                "<text x=\"{:.2}\" y=\"{}\">{}</text>",
                place.x + 2.0,
                y.saturating_add(12),
                escaped(&shown)
            ));
        }
        out.push_str("</g>\n");
    }
}

/// Returns the colour of a function: its hue tells the kind of code, its shade depends on the name.
fn colour(code: Code, name: &[u8]) -> String {
    let hash = name.iter().fold(7_u32, |hash, &byte| {
        hash.wrapping_mul(31).wrapping_add(byte.into())
    });
    let shade = hash % 24;
    let hue = match code {
        Code::User => 12_u32.saturating_add(shade),
        Code::Kernel => 200_u32.saturating_add(shade),
        Code::Generated => 110_u32.saturating_add(shade),
        Code::Unknown => return "hsl(0,0%,78%)".into(),
    };
    let lightness = 66_u32.saturating_add(hash.wrapping_shr(8) % 10);
    format!("hsl({hue},70%,{lightness}%)")
}

/// Returns the colour of a difference in percent: red for more, blue for less.
fn difference_colour(difference: f64) -> String {
    // A tenth of the recording has the full colour.
    let strength = (difference.abs() / 10.0).sqrt().min(1.0);
    let lightness = 96.0 - 36.0 * strength;
    let hue = if difference > 0.0 { 4 } else { 215 };
    format!("hsl({hue},75%,{lightness:.0}%)")
}
