//! Folded stacks: a line `COMM;OUTERMOST;…;INNERMOST COUNT` for each different stack, sorted by
//! bytes, as `stackcollapse-perf.pl` (FlameGraph) and `inferno-collapse-perf` make of the text of
//! `perf script`.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::{self, Write};

use foldhash::fast::RandomState;
use perfdata_core::record::CpuMode;
use perfdata_session::{CommId, DsoKind};

use crate::counts::{Counts, Sums};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::parts::numbers::renumbered;
use crate::parts::{Made, MadeOf, SinkPart};
use crate::places::Places;
use crate::resolve::{Needs, ResolvedFrame, ResolvedSample, Sink};
use crate::shown::Interned;
use crate::tables::{FunctionId, ModuleId, Tables, UNKNOWN};
use crate::text::push_text;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Count {
    /// The weights of the samples in units of the event: their periods.
    #[default]
    Period,
    /// The samples.
    Samples,
}

/// What the first frame of each stack names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Root {
    /// The thread: `COMM`.
    #[default]
    Comm,
    /// The process: `COMM-PID`.
    Pid,
    /// The process and thread: `COMM-PID/TID`.
    Tid,
}

/// A frame as text: its function, its module, and whether it belongs to a Java program, to the kernel,
/// or to an inlined function.
type FrameKey = (Option<FunctionId>, Option<ModuleId>, bool, bool, bool);

/// Counts folded stacks.
///
/// Only the samples of one event are counted, because the sum of different events means nothing: the
/// first event of the command line of `perf record` that has samples, except dummy events. Of a group
/// whose counters are read with each sample (`perf record -e '{a,b}:S'`), this is the leader.
///
/// Names follow the rules of `inferno-collapse-perf`: blanks in the name of a thread become `_`,
/// semicolons become `:`, lists of arguments are removed, frames without a name are `[MODULE]`, or
/// `[unknown]` without a mapping. A sample without frames is counted for its thread, as
/// `stackcollapse-perf.pl` does. Control characters and bytes that are not UTF-8 become U+FFFD and
/// two hexadecimal digits.
///
/// Stacks need up to 64 MiB of memory, twice as much in several threads; further ones are stored in
/// temporary files.
#[derive(Debug)]
pub struct Folded<W> {
    out: W,
    count: Count,
    root: Root,
    marks_kernel: bool,
    marks_jit: bool,
    marks_inlined: bool,
    counts: Counts,
    texts: Texts,
    roots: HashMap<(CommId, i64, i64), u32, RandomState>,
    keys: HashMap<FrameKey, u32, RandomState>,
    /// The texts at places, except in Java programs.
    places: Places,
    /// The text of frames about which nothing is known.
    unknown: Option<u32>,
    events: Events,
    /// The number of the event that is counted: the first one so far.
    event: Option<u32>,
    stack: Vec<u32>,
}

/// The texts of frames, without duplicates.
#[derive(Debug, Default)]
struct Texts(Interned<Box<str>>);

impl Texts {
    fn intern(&mut self, text: &str) -> u32 {
        self.0.number_of(text)
    }

    fn text(&self, number: u32) -> &str {
        self.0.get(number).map_or("", |text| text)
    }

    /// Returns what appends bytes that have the order of the lines of stacks; `None` if a text has
    /// several frames.
    fn keys(&self) -> Option<impl Fn(&[u32], &mut Vec<u8>) + use<>> {
        if self.0.list.iter().any(|text| text.contains(';')) {
            return None;
        }
        // A text is followed by a semicolon, which no text contains, or by nothing.
        let numbers = (0..).take(self.0.list.len());
        let mut texts: Vec<(u32, bool)> = numbers
            .flat_map(|number| [(number, false), (number, true)])
            .collect();
        texts.sort_unstable_by(|&one, &other| self.compare(one, other));
        let mut ranks = vec![[[0; 4]; 2]; self.0.list.len()];
        for (rank, (number, is_last)) in (0_u32..).zip(texts) {
            let number = usize::try_from(number).ok();
            let ranks = number.and_then(|number| ranks.get_mut(number));
            if let Some(place) = ranks.and_then(|ranks| ranks.get_mut(usize::from(is_last))) {
                *place = rank.to_be_bytes();
            }
        }
        Some(move |stack: &[u32], key: &mut Vec<u8>| {
            let of = |number: u32| {
                let number = usize::try_from(number).ok();
                let ranks = number.and_then(|number| ranks.get(number)).copied();
                ranks.unwrap_or_default()
            };
            if let Some((&last, others)) = stack.split_last() {
                let others = others.iter().map(|&number| of(number)[0]);
                key.extend(others.flatten());
                key.extend(of(last)[1]);
            }
        })
    }

    /// Compares texts with what follows them in a line: nothing if they are the last ones, or a
    /// semicolon.
    fn compare(&self, one: (u32, bool), other: (u32, bool)) -> Ordering {
        let (bytes, other_bytes) = (self.text(one.0).as_bytes(), self.text(other.0).as_bytes());
        let len = bytes.len().min(other_bytes.len());
        let next = |bytes: &[u8], is_last: bool| match bytes.get(len) {
            Some(&byte) => Some(byte),
            None => (!is_last).then_some(b';'),
        };
        let start = bytes.get(..len).unwrap_or_default();
        let same = start.cmp(other_bytes.get(..len).unwrap_or_default());
        same.then_with(|| next(bytes, one.1).cmp(&next(other_bytes, other.1)))
    }

    /// Appends the line of a stack.
    fn line(&self, stack: &[u32], line: &mut Vec<u8>) {
        for (at, &number) in stack.iter().enumerate() {
            if at > 0 {
                line.push(b';');
            }
            line.extend_from_slice(self.text(number).as_bytes());
        }
    }
}

impl<W: Write> Folded<W> {
    /// Returns a sink that writes to `out` at the end.
    pub fn new(out: W) -> Self {
        Folded {
            out,
            count: Count::default(),
            root: Root::default(),
            marks_kernel: false,
            marks_jit: false,
            marks_inlined: false,
            counts: Counts::default(),
            texts: Texts::default(),
            roots: HashMap::default(),
            keys: HashMap::default(),
            places: Places::default(),
            unknown: None,
            events: Events::default(),
            event: None,
            stack: Vec::new(),
        }
    }

    /// Returns the sink with what is counted. The default is the period.
    #[must_use]
    pub fn with_count(self, count: Count) -> Self {
        Folded { count, ..self }
    }

    /// Returns the sink with what the first frame names. The default is the thread's name.
    #[must_use]
    pub fn with_root(self, root: Root) -> Self {
        Folded { root, ..self }
    }

    /// Returns the sink with marks: whether `_[k]` follows the functions of the kernel, and `_[j]`
    /// those of generated code. By default, neither does.
    #[must_use]
    pub fn with_marks(self, kernel: bool, jit: bool) -> Self {
        Folded {
            marks_kernel: kernel,
            marks_jit: jit,
            ..self
        }
    }

    /// Returns the sink with whether `_[i]` follows inlined functions, as it always does in the names
    /// of JIT compilers. By default, it does not.
    #[must_use]
    pub fn with_inline_marks(self, marks_inlined: bool) -> Self {
        Folded {
            marks_inlined,
            ..self
        }
    }

    /// Returns the names of the events that have samples, and their numbers of samples, in the order
    /// of the command line of `perf record`: only the first one is counted.
    pub fn events(&self) -> Vec<(&[u8], u64)> {
        self.events.with_samples()
    }

    /// Returns the weight of a sample; `None` if another event than that of the sample is counted.
    /// Forgets what was counted if its event precedes that of the samples before.
    fn weight(&mut self, sample: &ResolvedSample<'_>) -> Option<u64> {
        let counted = self.events.counted(sample);
        let events = &self.events;
        let (event, weight) =
            counted.reduce(|first, next| match events.precedes(next.0, first.0) {
                true => next,
                false => first,
            })?;
        if let Some(known) = self.event.replace(event)
            && known != event
        {
            if self.events.precedes(known, event) {
                self.event = Some(known);
                return None;
            }
            self.counts = Counts::default();
        }
        Some(weight)
    }

    /// Adds the stacks of a part of the samples.
    fn add(&mut self, part: Folded<io::Sink>) -> Result<()> {
        let events = self.events.join(part.events);
        let Some(event) = part.event.and_then(|event| renumbered(&events, event)) else {
            return Ok(());
        };
        match self.event {
            Some(known) if known == event => {}
            Some(known) if self.events.precedes(known, event) => return Ok(()),
            _ => (self.event, self.counts) = (Some(event), Counts::default()),
        }
        let texts = part.texts.0.list.iter();
        let numbers: Vec<u32> = texts.map(|text| self.texts.intern(text)).collect();
        let number = |of_part: u32| renumbered(&numbers, of_part).unwrap_or(of_part);
        let texts = &self.texts;
        let text = |stack: &[u32], line: &mut Vec<u8>| texts.line(stack, line);
        self.counts.join(part.counts, number, text)
    }

    /// Returns the text of the first frame.
    fn root_of(&mut self, sample: &ResolvedSample<'_>) -> u32 {
        let sample = &sample.sample;
        let id = |id: u32| i64::from(id.cast_signed());
        let (pid, tid) = sample
            .tid()
            .map_or((-1, -1), |tid| (id(tid.pid), id(tid.tid)));
        let key = match self.root {
            Root::Comm => (sample.comm_id(), 0, 0),
            Root::Pid => (sample.comm_id(), pid, 0),
            Root::Tid => (sample.comm_id(), pid, tid),
        };
        if let Some(&known) = self.roots.get(&key) {
            return known;
        }
        let mut text = String::new();
        push_name(&mut text, sample.comm());
        let mut text = text.replace(' ', "_");
        match self.root {
            Root::Comm => {}
            Root::Pid => text.push_str(&format!("-{pid}")),
            Root::Tid => text.push_str(&format!("-{pid}/{tid}")),
        }
        let number = self.texts.intern(&text);
        self.roots.insert(key, number);
        number
    }

    /// Returns the text of a frame. The inlined functions in a name of Java become frames of their
    /// own.
    fn frame(&mut self, frame: &ResolvedFrame, is_java: bool, tables: &Tables) -> u32 {
        if frame.module.is_none() && frame.function.is_none() {
            return match self.unknown {
                Some(known) => known,
                None => *self.unknown.insert(self.texts.intern(UNKNOWN)),
            };
        }
        let is_kernel = matches!(frame.mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL);
        let key = (
            frame.function,
            frame.module,
            is_java,
            is_kernel,
            frame.is_inlined,
        );
        if let Some(&known) = self.keys.get(&key) {
            return known;
        }
        let module = frame.module.and_then(|id| tables.module(id));
        let module_name = module.map(|module| &*module.name);
        let mut text = String::new();
        let function = frame.function.and_then(|id| tables.function(id));
        match (function, module_name) {
            (Some(function), _) => {
                let is_generated = module.is_some_and(|module| module.kind == DsoKind::Anonymous);
                let mut whole = String::new();
                push_name(&mut whole, &function.short_name());
                let is_demangled = function.name != function.system_name;
                let mut rest = Some(&*whole);
                while let Some(part) = rest {
                    let (function, inner) = match part.split_once("->").filter(|_| is_generated) {
                        Some((function, inner)) => (function, Some(inner)),
                        None => (part, None),
                    };
                    let is_inner = !text.is_empty();
                    if is_inner {
                        text.push(';');
                    }
                    text.push_str(match is_demangled {
                        true => function,
                        false => tidy(function, is_java),
                    });
                    match is_inner || frame.is_inlined && self.marks_inlined {
                        true => text.push_str("_[i]"),
                        false => self.mark(&mut text, module_name, is_kernel),
                    }
                    rest = inner;
                }
            }
            (None, Some(module)) => {
                text.push('[');
                push_name(
                    &mut text,
                    module.rsplit(|&byte| byte == b'/').next().unwrap_or(module),
                );
                text.push(']');
                self.mark(&mut text, Some(module), is_kernel);
            }
            (None, None) => text.push_str(UNKNOWN),
        }
        let number = self.texts.intern(&text);
        self.keys.insert(key, number);
        number
    }

    fn mark(&self, text: &mut String, module: Option<&[u8]>, is_kernel: bool) {
        let Some(module) = module else { return };
        if self.marks_kernel && (is_kernel || is_kernel_name(module)) {
            text.push_str("_[k]");
        } else if self.marks_jit && is_jit_name(module) && !text.ends_with("_[j]") {
            text.push_str("_[j]");
        }
    }
}

impl SinkPart for Folded<io::Sink> {
    fn end(self: Box<Self>) -> Option<Made> {
        Some(Made::new(MadeOf::Folded(self)))
    }
}

impl<W: Write> Sink for Folded<W> {
    fn needs(&self) -> Needs {
        // A thread that starts a program still has the frame of the program before.
        Needs {
            before_exec: true,
            ..Needs::default()
        }
    }

    fn sample(&mut self, sample: &ResolvedSample<'_>) -> Result<()> {
        let Some(weight) = self.weight(sample) else {
            return Ok(());
        };
        let root = self.root_of(sample);
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.push(root);
        let is_java = sample.sample.comm().starts_with(b"java");
        for frame in sample.frames.iter().rev() {
            let place = frame.place.filter(|_| !is_java);
            let text = match self.places.get(sample.tables, place) {
                Some(text) => text,
                None => {
                    let text = self.frame(frame, is_java, sample.tables);
                    self.places.set(sample.tables, place, text);
                    text
                }
            };
            stack.push(text);
        }
        let texts = &self.texts;
        let text = |stack: &[u32], line: &mut Vec<u8>| texts.line(stack, line);
        self.counts.add(&stack, weight, text)?;
        self.stack = stack;
        Ok(())
    }

    fn part(&self, parts: usize) -> Option<Box<dyn SinkPart>> {
        let part = Folded {
            counts: Counts::of_part(parts),
            ..Folded::new(io::sink())
                .with_count(self.count)
                .with_root(self.root)
                .with_marks(self.marks_kernel, self.marks_jit)
                .with_inline_marks(self.marks_inlined)
        };
        Some(Box::new(part))
    }

    fn join(&mut self, made: Made) -> Result<()> {
        match made.of {
            MadeOf::Folded(part) => self.add(*part),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, _: &Tables) -> Result<()> {
        let counts = std::mem::take(&mut self.counts);
        let (texts, out) = (&self.texts, &mut self.out);
        let is_period = self.count == Count::Period;
        let text = |stack: &[u32], line: &mut Vec<u8>| texts.line(stack, line);
        let put = &mut |line: &[u8], sums: Sums| {
            let sum = if is_period { sums.weight } else { sums.samples };
            out.write_all(line)
                .and_then(|()| writeln!(out, " {sum}"))
                .map_err(Error::Output)
        };
        match texts.keys() {
            Some(key) => counts.finish_by_keys(key, text, put)?,
            None => counts.finish(text, put)?,
        }
        self.out.flush().map_err(Error::Output)
    }
}

/// Appends a name. Semicolons separate frames.
fn push_name(text: &mut String, name: &[u8]) {
    let start = text.len();
    push_text(text, name);
    if let Some(new) = text.get(start..).filter(|new| new.contains(';')) {
        let new = new.replace(';', ":");
        text.truncate(start);
        text.push_str(&new);
    }
}

/// Returns the name of a function, as compilers of generated code and of Go write it, without its list
/// of arguments, but with the parentheses of Go's methods (`net/http.(*Client).Do`), of anonymous
/// namespaces, of operators and in templates. The names of Java classes start with `L`.
fn tidy(name: &str, is_java: bool) -> &str {
    let mut depth = 0_i64;
    let mut after_dot = None;
    let mut end = name.len();
    for (at, c) in name.char_indices() {
        match c {
            '<' | '{' | '[' => depth = depth.saturating_add(1),
            '>' | '}' | ']' | ')' => depth = depth.saturating_sub(1),
            '(' => {
                let rest = name.get(at..).unwrap_or_default();
                let before = name.get(..at).unwrap_or_default();
                let is_kept = after_dot == Some(at)
                    || rest.starts_with("(anonymous namespace)")
                    || before.ends_with("operator") && rest.starts_with("()");
                if depth == 0 && !is_kept {
                    end = at;
                    break;
                }
                depth = depth.saturating_add(1);
            }
            '.' => after_dot = Some(at.saturating_add(1)),
            _ => {}
        }
    }
    let name = name.get(..end).unwrap_or(name);
    match name.strip_prefix('L') {
        Some(class) if is_java && class.contains('/') => class,
        _ => name,
    }
}

/// Returns whether the name of a module is that of kernel code.
fn is_kernel_name(module: &[u8]) -> bool {
    let file = module.rsplit(|&byte| byte == b'/').next().unwrap_or(module);
    module.starts_with(b"[") || module.ends_with(b".ko") || file.starts_with(b"vmlinux")
}

/// Returns whether the name of a module is that of generated code: a list of its symbols, or an
/// object that `perf inject --jit` wrote.
pub(crate) fn is_jit_name(module: &[u8]) -> bool {
    let is_map = module.starts_with(b"/tmp/perf-") && module.ends_with(b".map");
    let file = module.rsplit(|&byte| byte == b'/').next().unwrap_or(module);
    is_map || file.starts_with(b"jitted-") && file.ends_with(b".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_arguments_are_removed() {
        for (name, expected) in [
            ("main", "main"),
            ("llvm::Value::getType() const", "llvm::Value::getType"),
            (
                "(anonymous namespace)::run(int)",
                "(anonymous namespace)::run",
            ),
            (
                "a::(anonymous namespace)::run(int)",
                "a::(anonymous namespace)::run",
            ),
            ("net/http.(*Client).Do", "net/http.(*Client).Do"),
            ("f<void (*)(int)>::g(char)", "f<void (*)(int)>::g"),
            (
                "{lambda(int)#1}::operator()(int)",
                "{lambda(int)#1}::operator()",
            ),
            ("<T as Fn(i32) -> u8>::call", "<T as Fn(i32) -> u8>::call"),
        ] {
            assert_eq!(tidy(name, false), expected);
        }
        assert_eq!(
            tidy("Lorg/mozilla/Box:.call(Lx/Y:)V", true),
            "org/mozilla/Box:.call"
        );
        assert_eq!(tidy("Lock", true), "Lock");
    }

    #[test]
    fn stacks_have_the_order_of_their_lines() {
        let mut texts = Texts::default();
        for text in ["ab", "", "a", "a!", "a<", "abc", "b", "a b"] {
            texts.intern(text);
        }
        let mut stacks: Vec<Vec<u32>> = vec![vec![]];
        for one in 0..8 {
            stacks.push(vec![one]);
            for two in 0..8 {
                stacks.push(vec![one, two]);
                stacks.push(vec![2, one, two]);
            }
        }
        let line = |stack: &[u32]| {
            let mut line = Vec::new();
            texts.line(stack, &mut line);
            line
        };
        let keys = texts.keys().unwrap();
        let key = |stack: &[u32]| {
            let mut key = Vec::new();
            keys(stack, &mut key);
            key
        };
        for one in &stacks {
            for other in &stacks {
                // Stacks without frames are not counted.
                if line(one) != line(other) {
                    assert_eq!(
                        key(one).cmp(&key(other)),
                        line(one).cmp(&line(other)),
                        "{one:?} {other:?}"
                    );
                }
            }
        }
        texts.intern("a;b");
        assert!(texts.keys().is_none());
    }

    #[test]
    fn names_of_modules_tell_marks() {
        assert!(is_kernel_name(b"[kernel.kallsyms]") && is_kernel_name(b"/boot/vmlinux-6.1"));
        assert!(is_kernel_name(b"/lib/modules/6.1/ext4.ko") && !is_kernel_name(b"/bin/true"));
        assert!(is_jit_name(b"/tmp/perf-12.map") && is_jit_name(b"/home/a/jitted-12-3.so"));
        assert!(!is_jit_name(b"/tmp/perf-12.data"));
    }
}
