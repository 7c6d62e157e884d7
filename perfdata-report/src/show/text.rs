//! Values as text: on one line, or as a tree.

use std::borrow::Cow;
use std::fmt::Write as _;

use perfdata_core::describe::{Describe, Field, Leaf, Style, Visitor, set_fields};
use perfdata_core::record::CallchainContext;
use perfdata_core::wire::until_nul;

use super::seconds;
use perfdata_convert::support::text::{push_escaped, push_hex, quoted};
use perfdata_convert::support::values::{is_filling, signed};

/// Returns whether a value is zero or empty.
fn is_zero(leaf: &Leaf<'_>) -> bool {
    match leaf {
        Leaf::Uint(0, _) | Leaf::Int(0) | Leaf::Flags { word: 0, .. } => true,
        Leaf::Text(bytes) | Leaf::Bytes(bytes) | Leaf::Opaque(bytes) => bytes.is_empty(),
        _ => false,
    }
}

/// TextLimits for long values.
#[derive(Debug, Clone, Copy)]
pub struct TextLimits {
    /// Maximum number of bytes of a text or blob.
    pub bytes: usize,
    /// Maximum number of elements of a list of numbers.
    pub items: usize,
}

impl TextLimits {
    /// No limits.
    pub const NONE: TextLimits = TextLimits {
        bytes: usize::MAX,
        items: usize::MAX,
    };
    /// The limits in an overview.
    pub const BRIEF: TextLimits = TextLimits {
        bytes: 72,
        items: 64,
    };
}

/// Appends a value that has a size of `size` bytes in the recording.
pub fn push_leaf(out: &mut String, size: usize, leaf: Leaf<'_>, limits: TextLimits) {
    let cut = |bytes: usize| bytes > limits.bytes;
    let head = |bytes: &'_ [u8]| {
        bytes
            .get(..limits.bytes.min(bytes.len()))
            .unwrap_or_default()
            .to_vec()
    };
    let _ = match leaf {
        Leaf::Uint(word, style) => match (signed(word, size, style), style) {
            (Some(number), _) => write!(out, "{number}"),
            (None, Style::Callchain) => {
                match CallchainContext::of(word).and_then(CallchainContext::name) {
                    Some(name) => out.write_str(name),
                    None => write!(out, "{word:#x}"),
                }
            }
            (None, style) if style.is_hex() || style == Style::Opaque => write!(out, "{word:#x}"),
            (None, Style::Time) => {
                out.push_str(&seconds(word));
                Ok(())
            }
            _ => write!(out, "{word}"),
        },
        Leaf::Int(number) => write!(out, "{number}"),
        Leaf::Float(number) => write!(out, "{number}"),
        Leaf::Count(number) => write!(out, "{number}"),
        Leaf::Code(_, Some(name), _) => {
            out.push_str(name);
            Ok(())
        }
        Leaf::Code(number, None, _) => write!(out, "{number}"),
        Leaf::Flags { word, fields, .. } => {
            push_flags(out, word, fields);
            Ok(())
        }
        Leaf::Text(bytes) => {
            let text = until_nul(bytes);
            out.push_str(&quoted(&head(text)));
            if cut(text.len()) {
                write!(out, "… ({} bytes)", text.len())
            } else {
                Ok(())
            }
        }
        Leaf::Bytes(bytes) | Leaf::Pad(bytes) | Leaf::Opaque(bytes) => {
            push_hex(out, &head(bytes));
            if cut(bytes.len()) {
                write!(out, "… ({} bytes)", bytes.len())
            } else {
                Ok(())
            }
        }
        _ => write!(out, "? ({size} bytes)"),
    };
}

/// Appends flags as `A|B`, or as `A|B=2` if a field has several bits; 0 if no bit is set.
fn push_flags(out: &mut String, word: u64, fields: &'static [Field]) {
    let start = out.len();
    for (name, value) in set_fields(word, fields) {
        if out.len() > start {
            out.push('|');
        }
        let _ = match (name, value) {
            ("unknown", bits) => write!(out, "{bits:#x}"),
            (name, 1) => out.write_str(name),
            (name, value) => write!(out, "{name}={value}"),
        };
    }
    if out.len() == start {
        out.push('0');
    }
}

/// The position of the visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPosition {
    /// In a structure with braces.
    Struct,
    /// In a list, after this number of elements.
    List(usize),
    /// In a structure whose fields are shown as fields of the enclosing structure.
    Flat,
}

/// Returns the name of the event that has an ID. The name is shown after the ID.
pub type EventOfId<'a> = &'a dyn Fn(u64) -> Option<Cow<'a, [u8]>>;

/// Writes a value on one line: `name=value other={a=1 b=2} list=[1 2 3]`.
pub struct Line<'a> {
    /// The line so far.
    pub out: String,
    limits: TextLimits,
    frames: Vec<TextPosition>,
    event: Option<EventOfId<'a>>,
}

impl<'a> Line<'a> {
    /// Returns an empty line.
    pub fn new(limits: TextLimits) -> Self {
        Line {
            out: String::new(),
            limits,
            frames: Vec::new(),
            event: None,
        }
    }

    /// Returns a line that continues `out` and shows the name of the event after each ID.
    pub fn with_events(out: String, event: EventOfId<'a>) -> Self {
        Line {
            out,
            limits: TextLimits::NONE,
            frames: Vec::new(),
            event: Some(event),
        }
    }

    /// Counts an element of a list and writes the separator before it. Returns whether to show the
    /// element.
    fn element(&mut self) -> bool {
        if let Some(TextPosition::List(count)) = self.frames.last_mut() {
            *count = count.saturating_add(1);
            if *count > self.limits.items {
                return false;
            }
        }
        if !self.out.is_empty() && !self.out.ends_with(['{', '[', ' ']) {
            self.out.push(' ');
        }
        true
    }

    fn name(&mut self, name: &str) {
        if !name.is_empty() {
            self.out.push_str(name);
            self.out.push('=');
        }
    }
}

impl Visitor for Line<'_> {
    fn begin(&mut self, name: &'static str) {
        if name.is_empty() && !matches!(self.frames.last(), Some(TextPosition::List(_))) {
            self.frames.push(TextPosition::Flat);
            return;
        }
        self.element();
        self.name(name);
        self.out.push('{');
        self.frames.push(TextPosition::Struct);
    }

    fn begin_list(&mut self, name: &'static str, _: usize) {
        self.element();
        self.name(name);
        self.out.push('[');
        self.frames.push(TextPosition::List(0));
    }

    fn end(&mut self) {
        match self.frames.pop() {
            Some(TextPosition::Struct) => self.out.push('}'),
            Some(TextPosition::List(count)) if count > self.limits.items => {
                let _ = write!(self.out, " … ({count})]");
            }
            Some(TextPosition::List(_)) => self.out.push(']'),
            Some(TextPosition::Flat) | None => {}
        }
    }

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        if !is_filling(&value) && self.element() {
            self.name(name);
            push_leaf(&mut self.out, size, value, self.limits);
            if let (Leaf::Uint(id, Style::Id), Some(event)) = (value, self.event)
                && let Some(name) = event(id)
            {
                self.out.push('(');
                push_escaped(&mut self.out, &name);
                self.out.push(')');
            }
        }
    }
}

/// Writes a value as a tree: one line per field, and structures indented below their name. The
/// elements of a list follow its name on the same line; if they are structures, each has its own
/// line.
pub struct Tree {
    /// The lines so far.
    pub out: String,
    indent: usize,
    limits: TextLimits,
    /// Whether to show fields with the value 0. Fields in lists are always shown.
    pub zeros: bool,
    /// The enclosing structures; `true` if their fields are indented.
    frames: Vec<bool>,
    list: Option<List>,
}

/// A list in a tree.
struct List {
    /// Its elements, or the current element.
    line: Line<'static>,
    /// The depth within the list: 1 between elements.
    depth: usize,
    named: bool,
    /// Whether each element has its own line.
    lines: bool,
}

impl Tree {
    /// Returns a tree whose lines are indented by `indent` steps.
    pub fn new(indent: usize, limits: TextLimits) -> Self {
        Tree {
            out: String::new(),
            indent,
            limits,
            zeros: true,
            frames: Vec::new(),
            list: None,
        }
    }

    /// Returns `value` as lines.
    pub fn of(value: &(impl Describe + ?Sized), name: &'static str, indent: usize) -> String {
        let mut tree = Tree::new(indent, TextLimits::BRIEF);
        value.describe(name, Style::Plain, &mut tree);
        tree.out
    }

    fn margin(&mut self, more: usize) {
        for _ in 0..self.indent + more {
            self.out.push_str("  ");
        }
    }

    fn label(&mut self, name: &str) {
        self.margin(0);
        self.out.push_str(name);
        self.out.push(':');
    }

    /// Ends a list: writes its elements if they share a line.
    fn finish_list(&mut self, list: List) {
        if list.lines {
            return;
        }
        if list.named {
            self.out.push(' ')
        } else {
            self.margin(0)
        }
        self.out.push_str(if list.line.out.is_empty() {
            "none"
        } else {
            &list.line.out
        });
        if let Some(TextPosition::List(count)) = list.line.frames.last()
            && *count > self.limits.items
        {
            let _ = write!(self.out, " … ({count})");
        }
        self.out.push('\n');
    }
}

impl Visitor for Tree {
    fn begin(&mut self, name: &'static str) {
        match self.list.take() {
            Some(mut list) if list.depth == 1 => {
                if list.named && !list.lines {
                    self.out.push('\n');
                }
                (list.lines, list.depth, list.line) = (true, 2, Line::new(self.limits));
                self.margin(usize::from(list.named));
                self.out.push_str("- ");
                self.list = Some(list);
            }
            Some(mut list) => {
                list.depth += 1;
                list.line.begin(name);
                self.list = Some(list);
            }
            None => {
                if !name.is_empty() {
                    self.label(name);
                    self.out.push('\n');
                    self.indent += 1;
                }
                self.frames.push(!name.is_empty());
            }
        }
    }

    fn begin_list(&mut self, name: &'static str, len: usize) {
        if let Some(list) = &mut self.list {
            list.depth += 1;
            list.line.begin_list(name, len);
            return;
        }
        let named = !name.is_empty();
        if named {
            self.label(name);
        }
        // The line shows a list without brackets.
        let mut line = Line::new(self.limits);
        line.frames.push(TextPosition::List(0));
        self.list = Some(List {
            line,
            depth: 1,
            named,
            lines: false,
        });
    }

    fn end(&mut self) {
        let Some(mut list) = self.list.take() else {
            if self.frames.pop() == Some(true) {
                self.indent = self.indent.saturating_sub(1);
            }
            return;
        };
        list.depth = list.depth.saturating_sub(1);
        match list.depth {
            0 => return self.finish_list(list),
            1 if list.lines => {
                self.out.push_str(&list.line.out);
                self.out.push('\n');
            }
            _ => list.line.end(),
        }
        self.list = Some(list);
    }

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        if let Some(list) = &mut self.list {
            list.line.leaf(name, size, value);
        } else if !is_filling(&value) && (self.zeros || !is_zero(&value)) {
            if name.is_empty() {
                self.margin(0)
            } else {
                self.label(name)
            }
            if !name.is_empty() {
                self.out.push(' ');
            }
            push_leaf(&mut self.out, size, value, self.limits);
            self.out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visits a structure with a list of numbers, an empty list, and a list of structures that
    /// contain a list.
    fn walk(visitor: &mut dyn Visitor) {
        let number =
            |v: &mut dyn Visitor, name, word| v.leaf(name, 4, Leaf::Uint(word, Style::Plain));
        visitor.begin("outer");
        visitor.leaf("count", 4, Leaf::Count(2));
        visitor.begin_list("numbers", 2);
        number(visitor, "", 1);
        number(visitor, "", 2);
        visitor.end();
        visitor.begin_list("empty", 0);
        visitor.end();
        visitor.begin_list("parts", 2);
        for part in 3..5 {
            visitor.begin("");
            number(visitor, "a", part);
            visitor.begin_list("b", 1);
            number(visitor, "", part);
            visitor.end();
            visitor.begin("c");
            visitor.leaf("text", 8, Leaf::Text(b"x\0stale\0"));
            visitor.end();
            visitor.end();
        }
        visitor.end();
        visitor.end();
    }

    #[test]
    fn on_one_line() {
        let mut line = Line::new(TextLimits::NONE);
        walk(&mut line);
        let parts = r#"[{a=3 b=[3] c={text="x"}} {a=4 b=[4] c={text="x"}}]"#;
        assert_eq!(
            line.out,
            format!("outer={{numbers=[1 2] empty=[] parts={parts}}}")
        );
    }

    #[test]
    fn as_a_tree() {
        let mut tree = Tree::new(1, TextLimits { bytes: 9, items: 1 });
        walk(&mut tree);
        let lines = [
            "  outer:",
            "    numbers: 1 … (2)",
            "    empty: none",
            "    parts:",
            r#"      - a=3 b=[3] c={text="x"}"#,
            r#"      - a=4 b=[4] c={text="x"}"#,
        ];
        assert_eq!(tree.out.lines().collect::<Vec<_>>(), lines);
    }
}
