//! Parsing of the arguments after `print fmt`.
//!
//! libtraceevent builds a tree while it reads, and turns it where the priorities of two operators
//! require it. This ignores parentheses in some cases: `a * (b + c)` becomes `(a * b) + c`. The
//! tree here is the same.

use std::mem::take;

use crate::evaluate;
use crate::expression::{Arg, Atom, Cast, Op, OpKind};
use crate::field::Field;
use crate::like::Like;
use crate::machine::Machine;
use crate::problem::Parsed;
use crate::token::{Kind, Token, Tokens};

/// How deep expressions may be nested. Those of the kernel are not half as deep.
const MAX_DEPTH: u32 = 160;

/// Reads the format string and its arguments.
#[derive(Debug)]
pub struct Parser<'a, 'f> {
    pub(super) tokens: Tokens<'a>,
    pub(super) fields: &'f [Field],
    /// How many fields all events have.
    pub(super) common: usize,
    pub(super) machine: &'f Machine,
    depth: u32,
}

/// Which side of an operator was parsed last.
#[derive(Debug, Clone, Copy)]
enum Side {
    Left,
    Right,
    None,
}

impl<'a, 'f> Parser<'a, 'f> {
    /// Continues after the fields.
    pub fn new(
        tokens: Tokens<'a>,
        fields: &'f [Field],
        common: usize,
        machine: &'f Machine,
    ) -> Self {
        Parser {
            tokens,
            fields,
            common,
            machine,
            depth: 0,
        }
    }

    /// Reads `print fmt: "…", …` (`event_read_print`). Returns the format string and its arguments.
    pub fn print_fmt(&mut self) -> Parsed<(Vec<u8>, Vec<Arg>)> {
        self.tokens.expect_on_any_line(Kind::Item, "print")?;
        self.tokens.expect_text(Kind::Item, "fmt")?;
        self.tokens.expect_text(Kind::Op, ":")?;
        let mut format = self.tokens.expect(Kind::String, "a string")?.into_owned();
        loop {
            let token = self.tokens.next_on_any_line();
            match token.kind {
                Kind::None => return Ok((format, Vec::new())),
                Kind::String => format.extend_from_slice(&token.text),
                _ => {
                    self.tokens.check(&token, Kind::Delim, ",")?;
                    return Ok((format, self.args()?));
                }
            }
        }
    }

    /// Reads the arguments (`event_read_print_args`).
    fn args(&mut self) -> Parsed<Vec<Arg>> {
        let mut args = Vec::new();
        let mut end = Kind::Space;
        while end != Kind::None {
            if end == Kind::Newline {
                end = self.tokens.next_on_any_line().kind;
                continue;
            }
            let (mut arg, token) = self.arg()?;
            if token.kind == Kind::Op {
                end = self.op(&mut arg, token)?.kind;
                self.fold(&mut arg)?;
                args.push(arg);
                continue;
            }
            args.push(arg);
            if !token.is_delim(b',') {
                break;
            }
            end = token.kind;
        }
        Ok(args)
    }

    /// Computes what is known before there are data (`consolidate_op_arg`).
    fn fold(&self, arg: &mut Arg) -> Parsed<()> {
        if self.machine.like.is_library() && evaluate::fold(arg).is_none() {
            return Err(self
                .tokens
                .wrong("a division by 0".into(), "another number"));
        }
        Ok(())
    }

    /// Reads an argument up to the first operator (`process_arg`). Returns the token after it, too.
    pub(super) fn arg(&mut self) -> Parsed<(Arg, Token<'a>)> {
        let token = self.tokens.next();
        let mut arg = Arg::Null;
        let token = self.arg_at(&mut arg, token)?;
        Ok((arg, token))
    }

    /// Reads an argument that may contain operators, where libtraceevent permits these
    /// (`alloc_and_process_delim`). `end` must follow it.
    pub(super) fn whole_arg(&mut self, end: &'static str) -> Parsed<Arg> {
        let (mut arg, mut token) = self.arg()?;
        if token.kind == Kind::Op && self.machine.like.is_library() {
            token = self.op(&mut arg, token)?;
            self.fold(&mut arg)?;
        }
        self.tokens.check(&token, Kind::Delim, end)?;
        Ok(arg)
    }

    /// Counts how deep the expression is.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let found = "a deeply nested expression".to_owned();
            return Err(self.tokens.wrong(found, "a simpler one"));
        }
        self.depth = self.depth.saturating_add(1);
        let result = read(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }

    /// Reads an argument that starts with a token (`process_arg_token`).
    fn arg_at(&mut self, arg: &mut Arg, token: Token<'a>) -> Parsed<Token<'a>> {
        self.deeper(|parser| parser.arg_at_token(arg, token))
    }

    fn arg_at_token(&mut self, arg: &mut Arg, token: Token<'a>) -> Parsed<Token<'a>> {
        match token.kind {
            Kind::Item if *token.text == *b"REC" => self.entry(arg),
            Kind::Item => {
                let mut next = self.tokens.next_on_any_line();
                if next.is_delim(b'(') {
                    return self.function(arg, &token);
                }
                let mut atom = token.text;
                while next.kind == Kind::Item {
                    let atom = atom.to_mut();
                    atom.push(b' ');
                    atom.extend_from_slice(&next.text);
                    next = self.tokens.next_on_any_line();
                }
                *arg = Atom::arg(&atom);
                Ok(next)
            }
            Kind::Quote if self.machine.like.is_library() => {
                // The number of a character.
                let character = token.text.first().map_or(0, |byte| *byte as i8);
                *arg = Atom::arg(character.to_string().as_bytes());
                Ok(self.tokens.next_on_any_line())
            }
            Kind::String | Kind::Quote => {
                *arg = Atom::arg(&token.text);
                Ok(self.tokens.next_on_any_line())
            }
            Kind::Delim if token.is_delim(b'(') => self.parentheses(arg),
            Kind::Delim | Kind::Op => {
                let Some(kind) = OpKind::unary(&token.text) else {
                    return Err(self.tokens.problem(&token, "an expression"));
                };
                let (right, token) = self.arg()?;
                *arg = Arg::Op(Box::new(Op {
                    kind,
                    left: Arg::Null,
                    right,
                    priority: 0,
                }));
                self.after_op(arg, token, Side::Right)
            }
            _ => Err(self.tokens.problem(&token, "an expression")),
        }
    }

    /// Reads an operator after `arg` with its right side, and the operators after it
    /// (`process_op`).
    pub(super) fn op(&mut self, arg: &mut Arg, token: Token<'a>) -> Parsed<Token<'a>> {
        self.deeper(|parser| parser.op_at_token(arg, token))
    }

    fn op_at_token(&mut self, arg: &mut Arg, token: Token<'a>) -> Parsed<Token<'a>> {
        let mut op = Box::new(Op {
            kind: OpKind::Index,
            left: Arg::Null,
            right: Arg::Null,
            priority: 0,
        });
        match &*token.text {
            b"?" => {
                op.kind = OpKind::Condition;
                op.left = take(arg);
                let token = self.values(&mut op.right)?;
                *arg = Arg::Op(op);
                self.after_op(arg, token, Side::None)
            }
            b"[" => {
                op.left = take(arg);
                let (right, token) = self.arg()?;
                self.tokens.check(&token, Kind::Op, "]")?;
                op.right = right;
                *arg = Arg::Op(op);
                let token = self.tokens.next_on_any_line();
                self.after_op(arg, token, Side::None)
            }
            text => {
                let Some(kind) = OpKind::binary(text) else {
                    return Err(self.tokens.problem(&token, "an operator"));
                };
                op.kind = kind;
                op.left = take(arg);
                op.priority = match op.left {
                    Arg::Null => 0,
                    _ => kind.priority(),
                };
                self.right_side(arg, op)
            }
        }
    }

    /// Reads the right side of an operator with two sides.
    fn right_side(&mut self, arg: &mut Arg, mut op: Box<Op>) -> Parsed<Token<'a>> {
        let token = self.tokens.next_on_any_line();
        if op.kind == OpKind::Mul && token.is_delim(b')') {
            // The type of a pointer.
            let Arg::Atom(atom) = &op.left else {
                return Err(self.tokens.problem(&token, "a number or a field"));
            };
            *arg = Atom::arg(&[&atom.text, &b" *"[..]].concat());
            return Ok(token);
        }
        let mut right = Arg::Null;
        let token = self.arg_at(&mut right, token)?;
        match right {
            Arg::Op(mut inner) if op.kind.priority() < inner.kind.priority() => {
                op.right = take(&mut inner.left);
                inner.left = Arg::Op(op);
                *arg = Arg::Op(inner);
                self.after_op(arg, token, Side::Left)
            }
            right => {
                op.right = right;
                *arg = Arg::Op(op);
                self.after_op(arg, token, Side::Right)
            }
        }
    }

    /// Reads the operators after an operator: those with a higher priority are nearer to the root.
    fn after_op(&mut self, arg: &mut Arg, token: Token<'a>, side: Side) -> Parsed<Token<'a>> {
        if token.kind != Kind::Op || token.is_op(b":") {
            return Ok(token);
        }
        let Arg::Op(op) = arg else {
            return Ok(token);
        };
        let priority = OpKind::priority_of(&token.text);
        if priority > op.priority {
            return self.op(arg, token);
        }
        if priority < 0 && self.machine.like >= Like::Perf7_2 {
            return Err(self.tokens.problem(&token, "an operator"));
        }
        match side {
            Side::Left => self.op(&mut op.left, token),
            Side::Right => self.op(&mut op.right, token),
            Side::None => Err(self.tokens.problem(&token, "an operator")),
        }
    }

    /// Reads the two values of a condition after `?` (`process_cond`).
    fn values(&mut self, arg: &mut Arg) -> Parsed<Token<'a>> {
        let (mut left, mut token) = self.arg()?;
        while token.kind == Kind::Op && !token.is_op(b":") {
            token = self.op(&mut left, token)?;
        }
        self.tokens.check(&token, Kind::Op, ":")?;
        let (mut right, mut token) = self.arg()?;
        // Before, the operators after it belonged to the whole condition.
        while token.kind == Kind::Op && self.machine.like >= Like::Perf7_2 {
            token = self.op(&mut right, token)?;
        }
        *arg = Arg::Op(Box::new(Op {
            kind: OpKind::Colon,
            left,
            right,
            priority: 0,
        }));
        Ok(token)
    }

    /// Reads `->field` after `REC` (`process_entry`).
    fn entry(&mut self, arg: &mut Arg) -> Parsed<Token<'a>> {
        let token = self.tokens.next_on_any_line();
        if token.is_delim(b')') && self.machine.like.is_library() {
            // `(REC)->field`: the caller continues after the parenthesis.
            return Ok(Token {
                kind: Kind::Item,
                text: token.text,
            });
        }
        self.tokens.check(&token, Kind::Op, "->")?;
        let name = self.tokens.expect(Kind::Item, "a field")?;
        *arg = Arg::Field(self.field(&name));
        Ok(self.tokens.next())
    }

    /// Returns the field of a name (`tep_find_any_field`).
    pub(super) fn field(&self, name: &[u8]) -> Option<usize> {
        self.fields.iter().position(|field| *field.name == *name)
    }

    /// Returns the field of a name which other events do not have (`tep_find_field`).
    pub(super) fn own_field(&self, name: &[u8]) -> Option<usize> {
        let mut fields = self.fields.iter().enumerate().skip(self.common);
        let (at, _) = fields.find(|(_, field)| *field.name == *name)?;
        Some(at)
    }

    /// Reads what is in parentheses: an expression, or a type with what is converted to it
    /// (`process_paren`).
    fn parentheses(&mut self, arg: &mut Arg) -> Parsed<Token<'a>> {
        let (first, mut token) = self.arg()?;
        *arg = first;
        if token.kind == Kind::Op {
            token = self.op(arg, token)?;
        }
        if token.kind == Kind::Item && *token.text == *b")" {
            return self.entry(arg);
        }
        self.tokens.check(&token, Kind::Delim, ")")?;
        let token = self.tokens.next_on_any_line();
        if !token.is_value() && !token.is_delim(b'(') {
            return Ok(token);
        }
        let Arg::Atom(type_name) = take(arg) else {
            return Err(self
                .tokens
                .problem(&token, "an operator after the parenthesis"));
        };
        let mut item = Arg::Null;
        let token = self.arg_at(&mut item, token)?;
        *arg = Cast::arg(&type_name.text, item);
        Ok(token)
    }
}
