//! Parsing of the functions that `print fmt` may contain (`process_function`).

use crate::evaluate;
use crate::expression::{Arg, Array, Atom, Choice, Hex, Named};
use crate::like::Like;
use crate::number;
use crate::parse::Parser;
use crate::problem::Parsed;
use crate::token::{Kind, Token};

/// Names of numbers that kernels leave in their formats.
const KNOWN: [(&[u8], i64); 12] = [
    (b"HI_SOFTIRQ", 0),
    (b"TIMER_SOFTIRQ", 1),
    (b"NET_TX_SOFTIRQ", 2),
    (b"NET_RX_SOFTIRQ", 3),
    (b"BLOCK_SOFTIRQ", 4),
    (b"IRQ_POLL_SOFTIRQ", 5),
    (b"TASKLET_SOFTIRQ", 6),
    (b"SCHED_SOFTIRQ", 7),
    (b"HRTIMER_SOFTIRQ", 8),
    (b"RCU_SOFTIRQ", 9),
    (b"HRTIMER_NORESTART", 0),
    (b"HRTIMER_RESTART", 1),
];

/// Returns the number that a text is, or -1 (`eval_flag`).
fn flag(text: &[u8]) -> i64 {
    if text.first().is_some_and(u8::is_ascii_digit) {
        return number::unsigned(text).cast_signed();
    }
    let known = KNOWN.iter().find(|(name, _)| *name == text);
    known.map_or(-1, |(_, value)| *value)
}

impl<'a> Parser<'a, '_> {
    /// Reads the arguments of a function after its `(`.
    pub(super) fn function(&mut self, arg: &mut Arg, name: &Token<'a>) -> Parsed<Token<'a>> {
        let like = self.machine.like;
        match &*name.text {
            b"__print_flags" => self.choice(arg, true),
            b"__print_symbolic" => self.choice(arg, false),
            b"__print_hex" => self.hex(arg, true),
            b"__print_hex_str" => self.hex(arg, false),
            b"__print_array" => self.array(arg),
            b"__print_dynamic_array" if like >= Like::Perf7_2 => self.whole_dynamic_array(arg),
            b"__get_str" | b"__get_rel_str" => self.any_field(arg, Arg::Str),
            b"__get_bitmask" | b"__get_rel_bitmask" => self.any_field(arg, Arg::Bitmask),
            b"__get_cpumask" | b"__get_rel_cpumask" if like.is_library() => {
                self.any_field(arg, Arg::Cpumask)
            }
            b"__get_dynamic_array" | b"__get_rel_dynamic_array" => self.dynamic_array(arg),
            b"__get_sockaddr" | b"__get_sockaddr_rel" if like.is_library() => {
                self.dynamic_array(arg)
            }
            b"__get_dynamic_array_len" | b"__get_rel_dynamic_array_len" => {
                *arg = Arg::DynamicArrayLen(self.own_field_in_parentheses()?);
                Ok(self.tokens.next())
            }
            b"__get_stacktrace" if like >= Like::Perf7_2 => self.any_field(arg, Arg::Stacktrace),
            b"__builtin_expect" => self.builtin_expect(arg),
            b"sizeof" if like.is_library() => self.size_of(arg),
            _ => {
                let found = format!("the function `{}`", name.text.escape_ascii());
                Err(self.tokens.wrong(found, "a function of libtraceevent"))
            }
        }
    }

    /// Reads `value, "delimiter", { number, "name" }, …)`; `__print_symbolic` has no delimiter.
    fn choice(&mut self, arg: &mut Arg, has_delimiter: bool) -> Parsed<Token<'a>> {
        let (mut value, mut token) = self.arg()?;
        while token.kind == Kind::Op {
            token = self.op(&mut value, token)?;
        }
        self.tokens.check(&token, Kind::Delim, ",")?;
        let mut delimiter = Box::default();
        if has_delimiter {
            let mut token = self.tokens.next_on_any_line();
            if token.is_value() {
                delimiter = (*token.text).into();
                token = self.tokens.next_on_any_line();
            }
            self.tokens.check(&token, Kind::Delim, ",")?;
        }
        let (names, token) = self.names()?;
        self.tokens.check(&token, Kind::Delim, ")")?;
        let choice = Box::new(Choice {
            value,
            delimiter,
            names: names.into(),
        });
        *arg = if has_delimiter {
            Arg::Flags(choice)
        } else {
            Arg::Symbolic(choice)
        };
        Ok(self.tokens.next_on_any_line())
    }

    /// Reads `{ number, "name" }, …` (`process_fields`).
    fn names(&mut self) -> Parsed<(Vec<Named>, Token<'a>)> {
        let mut names = Vec::new();
        loop {
            let token = self.tokens.next_on_any_line();
            if !token.is_op(b"{") {
                return Ok((names, token));
            }
            let (mut value, mut token) = self.arg()?;
            if token.kind == Kind::Op {
                token = self.op(&mut value, token)?;
            }
            self.tokens.check(&token, Kind::Delim, ",")?;
            let value = self.constant(&value)?;
            let (name, token) = self.arg()?;
            self.tokens.check(&token, Kind::Op, "}")?;
            names.push(Named {
                value: flag(&value),
                name: self.constant(&name)?,
            });
            let token = self.tokens.next_on_any_line();
            if !token.is_delim(b',') {
                return Ok((names, token));
            }
        }
    }

    /// Returns the text of a constant (`arg_eval`).
    fn constant(&self, arg: &Arg) -> Parsed<Box<[u8]>> {
        evaluate::constant(arg)
            .ok_or_else(|| self.tokens.wrong("an expression".into(), "a constant"))
    }

    /// Reads `field, length)`.
    fn hex(&mut self, arg: &mut Arg, is_spaced: bool) -> Parsed<Token<'a>> {
        let of = self.whole_arg(",")?;
        let len = self.whole_arg(")")?;
        *arg = Arg::Hex(Box::new(Hex { of, len, is_spaced }));
        Ok(self.tokens.next_on_any_line())
    }

    /// Reads `field, count, size)`.
    fn array(&mut self, arg: &mut Arg) -> Parsed<Token<'a>> {
        let of = self.whole_arg(",")?;
        let count = self.whole_arg(",")?;
        let element_size = self.whole_arg(")")?;
        *arg = Arg::Array(Box::new(Array {
            of,
            count,
            element_size,
            is_bytes: false,
        }));
        Ok(self.tokens.next_on_any_line())
    }

    /// Reads `field, size)` of `__print_dynamic_array`.
    fn whole_dynamic_array(&mut self, arg: &mut Arg) -> Parsed<Token<'a>> {
        let name = self.tokens.expect(Kind::Item, "a field")?;
        let field = self.known_own_field(&name)?;
        self.tokens.expect_text(Kind::Delim, ",")?;
        let element_size = self.whole_arg(")")?;
        *arg = Arg::Array(Box::new(Array {
            of: Arg::DynamicArray(field),
            count: Arg::DynamicArrayLen(field),
            element_size,
            is_bytes: true,
        }));
        Ok(self.tokens.next_on_any_line())
    }

    /// Reads `field)`, of which libtraceevent only looks when it prints whether it exists.
    fn any_field(
        &mut self,
        arg: &mut Arg,
        make: impl FnOnce(Option<usize>) -> Arg,
    ) -> Parsed<Token<'a>> {
        let name = self.tokens.expect(Kind::Item, "a field")?;
        *arg = make(self.field(&name));
        self.tokens.expect_text(Kind::Delim, ")")?;
        Ok(self.tokens.next())
    }

    fn known_own_field(&self, name: &[u8]) -> Parsed<usize> {
        self.own_field(name).ok_or_else(|| {
            let found = format!("`{}`", name.escape_ascii());
            self.tokens.wrong(found, "a field of the event")
        })
    }

    fn own_field_in_parentheses(&mut self) -> Parsed<usize> {
        let name = self.tokens.expect(Kind::Item, "a field")?;
        let field = self.known_own_field(&name)?;
        self.tokens.expect_text(Kind::Delim, ")")?;
        Ok(field)
    }

    /// Reads `field)` of `__get_dynamic_array`.
    fn dynamic_array(&mut self, arg: &mut Arg) -> Parsed<Token<'a>> {
        *arg = Arg::DynamicArray(self.own_field_in_parentheses()?);
        let token = self.tokens.next_on_any_line();
        if !token.is_op(b"[") {
            return Ok(token);
        }
        // libtraceevent requires that something else than `]` follows.
        let (_, token) = self.arg()?;
        if token.is_op(b"]") {
            return Err(self.tokens.problem(&token, "no index without parentheses"));
        }
        Ok(self.tokens.next_on_any_line())
    }

    /// Reads `condition, number)`.
    fn builtin_expect(&mut self, arg: &mut Arg) -> Parsed<Token<'a>> {
        let (condition, token) = self.arg()?;
        *arg = condition;
        self.tokens.check(&token, Kind::Delim, ",")?;
        self.tokens.expect(Kind::Item, "a number")?;
        self.tokens.expect_text(Kind::Delim, ")")?;
        Ok(self.tokens.next_on_any_line())
    }

    /// Reads `type)` or `REC->field)` (`process_sizeof`).
    fn size_of(&mut self, arg: &mut Arg) -> Parsed<Token<'a>> {
        let mut token = self.tokens.next_on_any_line();
        let mut is_end = false;
        if *token.text == *b"unsigned" {
            token = self.tokens.next_on_any_line();
            is_end = token.kind != Kind::Item;
        }
        let size = match &*token.text {
            _ if is_end => 4,
            b"int" => 4,
            b"long" => {
                token = self.tokens.next_on_any_line();
                is_end = *token.text != *b"long";
                if is_end { self.machine.long_size } else { 8 }
            }
            b"__u64" | b"u64" | b"__s64" | b"s64" => 8,
            b"__u32" | b"u32" | b"__s32" | b"s32" => 4,
            b"__u16" | b"u16" | b"__s16" | b"s16" => 2,
            b"__u8" | b"u8" | b"__8" | b"s8" => 1,
            b"REC" => {
                let arrow = self.tokens.next_on_any_line();
                self.tokens.check(&arrow, Kind::Op, "->")?;
                let name = self.tokens.expect(Kind::Item, "a field")?;
                let field = self.field(&name).and_then(|at| self.fields.get(at));
                match field.filter(|field| !field.is_array) {
                    Some(field) => field.size,
                    None => {
                        let found = format!("`{}`", name.escape_ascii());
                        return Err(self.tokens.wrong(found, "a field that is no array"));
                    }
                }
            }
            _ => return Err(self.tokens.problem(&token, "a type of known size")),
        };
        if !is_end {
            token = self.tokens.next_on_any_line();
        }
        self.tokens.check(&token, Kind::Delim, ")")?;
        *arg = Atom::arg(size.to_string().as_bytes());
        Ok(self.tokens.next_on_any_line())
    }
}
