//! Function types and local entities, as perf and binutils spell them (libiberty, cp-demangle.c).
//!
//! Two things differ from other demanglers. There is a space between the result and the parameters of
//! a function type (`Foo (int)`). And what is defined in a function template, such as a lambda, is
//! named without the type of the function's result: `f<int>()::{lambda()#1}`.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "offsets in a text of limited length"
)]

/// Maximum depth of brackets in a name that is changed.
const MOST_DEPTH: usize = 128;

/// The operators whose names contain brackets or commas. Longer ones are first.
const OPERATORS: [&str; 15] = [
    "()", "<=>", "<<=", ">>=", "->*", "->", "<<", ">>", "<=", ">=", "<", ">", "[]", ",", "\"\"",
];

/// Returns a demangled name in this spelling; unchanged if its brackets cannot be matched.
pub(super) fn spelled(text: String) -> String {
    if !text.contains('(') {
        return text;
    }
    let mut reader = Reader { rest: &text };
    match reader.item(0) {
        Some(name) if reader.rest.is_empty() => name.without_result_of_local(true),
        _ => text,
    }
}

/// What is between two brackets or commas.
#[derive(Default)]
struct Item {
    text: String,
    /// The first parentheses outside of other brackets.
    first: Option<(usize, usize)>,
    /// The start of the last ones.
    last: usize,
    /// The last space before the first parentheses.
    space: Option<usize>,
}

impl Item {
    /// Returns the text after the first parentheses and what belongs to the function.
    fn after_first(&self) -> Option<&str> {
        let (_, close) = self.first?;
        let mut rest = self.text.get(close..)?;
        for qualifier in [" const", " volatile", " &&", " &"] {
            rest = rest.strip_prefix(qualifier).unwrap_or(rest);
        }
        Some(rest)
    }

    /// Returns the text without the result of a function template that contains the entity.
    fn without_result_of_local(self, is_whole: bool) -> String {
        let is_local = self
            .after_first()
            .is_some_and(|rest| rest.starts_with("::"));
        let (Some((open, _)), Some(space), true) = (self.first, self.space, is_local) else {
            return self.text;
        };
        let is_template = |end: usize| self.text.get(..end).is_some_and(|text| text.ends_with('>'));
        // The result can also be that of the entity itself.
        let has_own_result = is_whole && is_template(self.last);
        if !is_template(open) || has_own_result || self.text.starts_with('&') {
            return self.text;
        }
        let name = self.text.get(space + 1..).unwrap_or_default();
        // After a comma, the text starts with a space.
        let before = match self.text.starts_with(' ') {
            true => " ",
            false => "",
        };
        format!("{before}{name}")
    }

    /// Returns the text of an argument of a template.
    fn into_argument(mut self) -> String {
        let end = self.text.trim_end_matches(' ').len();
        if let Some((open, close)) = self.first
            && close == end
            && let Some(result) = self.text.get(..open)
            && result.ends_with(|c: char| c.is_alphanumeric() || "_>*&".contains(c))
            && !result.starts_with('&')
            && !["decltype", "noexcept", "sizeof", "alignof", "operator"].contains(&result)
            && !result.contains("operator")
        {
            self.text.insert(open, ' ');
        }
        self.without_result_of_local(false)
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Reads up to a closing bracket or a comma; `None` if brackets are missing.
    fn item(&mut self, depth: usize) -> Option<Item> {
        let mut item = Item::default();
        if depth > MOST_DEPTH {
            return None;
        }
        while let Some(next) = self.rest.chars().next() {
            let start = item.text.len();
            match next {
                '>' | ')' | '}' | ',' => break,
                '<' => self.list(&mut item.text, '>', depth)?,
                '{' => self.list(&mut item.text, '}', depth)?,
                '(' if self.rest.starts_with("(anonymous namespace)") => {
                    self.take("(anonymous namespace)".len(), &mut item.text);
                }
                '(' => {
                    self.list(&mut item.text, ')', depth)?;
                    item.first = item.first.or(Some((start, item.text.len())));
                    item.last = start;
                }
                '[' => self.take(self.rest.find(']')? + 1, &mut item.text),
                '-' if self.rest.starts_with("->") => self.take(2, &mut item.text),
                'o' if self.rest.starts_with("operator") => {
                    self.take("operator".len(), &mut item.text);
                    let symbols = OPERATORS.iter();
                    let mut symbols = symbols.filter(|symbols| self.rest.starts_with(**symbols));
                    let len = symbols.next().map_or(0, |symbols| symbols.len());
                    self.take(len, &mut item.text);
                }
                ' ' => {
                    if item.first.is_none() {
                        item.space = Some(start);
                    }
                    self.take(1, &mut item.text);
                }
                _ => self.take(next.len_utf8(), &mut item.text),
            }
        }
        Some(item)
    }

    /// Reads a bracket, items with commas between them, and the closing bracket.
    fn list(&mut self, out: &mut String, close: char, depth: usize) -> Option<()> {
        self.take(1, out);
        loop {
            let item = self.item(depth + 1)?;
            out.push_str(&match close {
                '>' => item.into_argument(),
                _ => item.without_result_of_local(false),
            });
            let next = self.rest.chars().next()?;
            self.take(1, out);
            if next == close {
                return Some(());
            }
            if next != ',' {
                return None;
            }
        }
    }

    /// Copies `len` bytes.
    fn take(&mut self, len: usize, out: &mut String) {
        if let Some((taken, rest)) = self.rest.split_at_checked(len) {
            out.push_str(taken);
            self.rest = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn names_are_those_of_libiberty() {
        let names = [
            (
                "f(std::function<Foo(int, Bar<Baz(A)>)>)",
                "f(std::function<Foo (int, Bar<Baz (A)>)>)",
            ),
            (
                "f<void (int)>(X<Y*(Z)> const&)",
                "f<void (int)>(X<Y* (Z)> const&)",
            ),
            (
                "void call<unsigned long a::f<int>(char) const::{lambda(int)#1}>(int)",
                "void call<a::f<int>(char) const::{lambda(int)#1}>(int)",
            ),
            (
                "void f<int>(int)::{lambda()#1}::operator()() const",
                "f<int>(int)::{lambda()#1}::operator()() const",
            ),
            (
                "(anonymous namespace)::g<A::operator()<int>(Foo(*)(int))::B>()",
                "(anonymous namespace)::g<A::operator()<int>(Foo(*)(int))::B>()",
            ),
            (
                "a::operator< <int>(X<Y(Z)>)",
                "a::operator< <int>(X<Y (Z)>)",
            ),
            ("f(X<A>) [clone .part.0]", "f(X<A>) [clone .part.0]"),
            (
                "a<int, void b<int>()::{lambda()#1}>()",
                "a<int, b<int>()::{lambda()#1}>()",
            ),
            // The result may be that of the lambda.
            (
                "auto f<int>()::{lambda(auto)#1}::operator()<int>(int)",
                "auto f<int>()::{lambda(auto)#1}::operator()<int>(int)",
            ),
            ("f(X<Y(Z)", "f(X<Y(Z)"),
        ];
        for (name, expected) in names {
            assert_eq!(spelled(name.to_owned()), expected);
        }
        let deep = format!("f({}int{})", "X<".repeat(1000), ">".repeat(1000));
        assert_eq!(spelled(deep.clone()), deep);
    }
}
