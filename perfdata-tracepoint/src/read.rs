//! Reading of a `format` file up to its fields (`parse_format`, `event_read_fields`).

use std::sync::atomic::AtomicBool;

use crate::field::Field;
use crate::machine::Machine;
use crate::number;
use crate::problem::{Parsed, Problem};
use crate::token::{Kind, Token, Tokens};

/// What is before `print fmt` in a `format` file.
#[derive(Debug)]
pub struct Head {
    /// Name of the event, without its subsystem.
    pub name: Box<[u8]>,
    /// `ID`.
    pub id: i32,
    /// The fields; those of all events first.
    pub fields: Vec<Field>,
    /// How many fields all events have.
    pub common: usize,
    /// Why there are not more fields.
    pub problem: Option<Problem>,
}

/// Reads everything before `print fmt`.
///
/// # Errors
/// There is no name or no number.
pub fn head(tokens: &mut Tokens<'_>, machine: &Machine, is_ftrace: bool) -> Parsed<Head> {
    tokens.expect_text(Kind::Item, "name")?;
    tokens.expect_text(Kind::Op, ":")?;
    let name = tokens.expect(Kind::Item, "the name of the event")?;
    tokens.expect_on_any_line(Kind::Item, "ID")?;
    tokens.expect_text(Kind::Op, ":")?;
    let id = tokens.expect(Kind::Item, "the number of the event")?;
    // An `int` there.
    let id = number::unsigned(&id) as i32;
    if id < 0 {
        return Err(tokens.wrong(id.to_string(), "a number from 0 to 2147483647"));
    }
    let mut head = Head {
        name: (*name).into(),
        id,
        fields: Vec::new(),
        common: 0,
        problem: None,
    };
    head.problem = both(tokens, &mut head, machine, is_ftrace).err();
    Ok(head)
}

/// Reads the two groups of fields.
fn both(
    tokens: &mut Tokens<'_>,
    head: &mut Head,
    machine: &Machine,
    is_ftrace: bool,
) -> Parsed<()> {
    tokens.expect_on_any_line(Kind::Item, "format")?;
    tokens.expect_text(Kind::Op, ":")?;
    tokens.expect(Kind::Newline, "the end of the line")?;
    let common = group(tokens, &mut head.fields, machine, is_ftrace);
    head.common = head.fields.len();
    common?;
    group(tokens, &mut head.fields, machine, is_ftrace)
}

/// Reads fields up to an empty line.
fn group(
    tokens: &mut Tokens<'_>,
    fields: &mut Vec<Field>,
    machine: &Machine,
    is_ftrace: bool,
) -> Parsed<()> {
    loop {
        let token = tokens.next();
        if token.kind == Kind::Newline {
            return Ok(());
        }
        tokens.check(&token, Kind::Item, "field")?;
        let mut token = tokens.next();
        if is_ftrace && token.kind == Kind::Item && *token.text == *b"special" {
            token = tokens.next();
        }
        tokens.check(&token, Kind::Op, ":")?;
        fields.push(field(tokens, machine, is_ftrace)?);
    }
}

/// The type and the name of a field, as far as they are read.
#[derive(Default)]
struct Declaration {
    type_name: Vec<u8>,
    /// The last token, which is the name if no other one follows.
    last: Vec<u8>,
    is_pointer: bool,
    is_array: bool,
    /// How many elements the array has, as far as that is a number.
    len: usize,
    /// The size of an element of a dynamic array in bytes.
    dynamic_size: usize,
}

/// Reads a field after `field:`.
fn field(tokens: &mut Tokens<'_>, machine: &Machine, is_ftrace: bool) -> Parsed<Field> {
    let first = tokens.expect(Kind::Item, "the type of a field")?;
    let mut found = Declaration {
        last: first.into_owned(),
        ..Declaration::default()
    };
    let mut token = type_and_name(tokens, &mut found, is_ftrace)?;
    if found.type_name.is_empty() {
        return Err(tokens.problem(&token, "a type and a name"));
    }
    if token.kind != Kind::Op {
        return Err(tokens.problem(&token, "`;` or `[`"));
    }
    if token.is_op(b"[") {
        token = brackets(tokens, &mut found)?;
    }
    tokens.check(&token, Kind::Op, ";")?;
    let offset = labelled(tokens, "offset")?;
    let size = labelled(tokens, "size")?;
    let mut is_signed = false;
    let token = tokens.next();
    if token.kind != Kind::Newline {
        tokens.check(&token, Kind::Item, "signed")?;
        tokens.expect_text(Kind::Op, ":")?;
        let value = tokens.expect(Kind::Item, "0 or 1")?;
        is_signed = number::unsigned(&value) != 0;
        tokens.expect_text(Kind::Op, ";")?;
        tokens.expect(Kind::Newline, "the end of the line")?;
    }
    Ok(found.into_field(offset, size, is_signed, machine))
}

/// Reads `LABEL:NUMBER;`.
fn labelled(tokens: &mut Tokens<'_>, label: &'static str) -> Parsed<u32> {
    tokens.expect_text(Kind::Item, label)?;
    tokens.expect_text(Kind::Op, ":")?;
    let number = tokens.expect(Kind::Item, "a number")?;
    tokens.expect_text(Kind::Op, ";")?;
    // An `int` there.
    Ok(number::unsigned(&number) as u32)
}

/// Reads a type and a name; returns the token after them.
fn type_and_name<'a>(
    tokens: &mut Tokens<'a>,
    found: &mut Declaration,
    is_ftrace: bool,
) -> Parsed<Token<'a>> {
    let mut delimiter: &[u8] = b" ";
    loop {
        let token = tokens.next();
        let is_star = token.is_op(b"*");
        if token.kind == Kind::Item || is_star || is_ftrace && token.is_op(b".") {
            found.is_pointer |= is_star;
            if !found.type_name.is_empty() {
                found.type_name.extend_from_slice(delimiter);
            }
            found.type_name.append(&mut found.last);
            found.last = token.text.into_owned();
            delimiter = b" ";
            continue;
        }
        if token.is_delim(b'(') && found.last == b"__attribute__" {
            found.type_name.push(b' ');
            found.type_name.append(&mut found.last);
            found.type_name.push(b'(');
            delimiter = attribute(tokens, found)?;
            continue;
        }
        return Ok(token);
    }
}

/// Reads the rest of `__attribute__((user))`; returns what is between it and the next token.
fn attribute(tokens: &mut Tokens<'_>, found: &mut Declaration) -> Parsed<&'static [u8]> {
    let mut depth = 1_u32;
    let mut delimiter: &[u8] = b" ";
    loop {
        let token = tokens.next();
        match token.kind {
            Kind::None => return Err(tokens.problem(&token, "`)`")),
            Kind::Delim => {
                if token.is_delim(b'(') {
                    depth = depth.saturating_add(1);
                } else if token.is_delim(b')') {
                    depth = depth.saturating_sub(1);
                }
                if depth == 0 {
                    return Ok(delimiter);
                }
                found.type_name.extend_from_slice(&token.text);
                delimiter = b"";
            }
            _ => {
                found.type_name.extend_from_slice(delimiter);
                found.type_name.extend_from_slice(&token.text);
                delimiter = b" ";
            }
        }
        found.last = token.text.into_owned();
    }
}

/// Reads the length of an array after `[`, and the name if it is after the length; returns the
/// token after them.
fn brackets<'a>(tokens: &mut Tokens<'a>, found: &mut Declaration) -> Parsed<Token<'a>> {
    let mut text = b"[".to_vec();
    let mut last = Kind::Op;
    found.is_array = true;
    loop {
        let token = tokens.next();
        if token.kind == Kind::None {
            return Err(tokens.problem(&token, "`]`"));
        }
        if *token.text == *b"]" {
            break;
        }
        if last == Kind::Item && token.kind == Kind::Item {
            text.push(b' ');
        }
        last = token.kind;
        text.extend_from_slice(&token.text);
        // Only the last one counts. An `unsigned int` there.
        found.len = number::unsigned(&token.text) as u32 as usize;
    }
    text.push(b']');
    let token = tokens.next();
    if token.kind != Kind::Item {
        found.type_name.append(&mut text);
        return Ok(token);
    }
    // `type [] name`
    found.dynamic_size = match &*found.last {
        b"u8" | b"s8" | b"char" => 1,
        b"u16" | b"s16" => 2,
        b"u32" | b"s32" => 4,
        b"u64" | b"s64" => 8,
        _ => 0,
    };
    found.type_name.push(b' ');
    found.type_name.append(&mut found.last);
    found.type_name.append(&mut text);
    found.last = token.text.into_owned();
    Ok(tokens.next())
}

impl Declaration {
    fn into_field(self, offset: u32, size: u32, is_signed: bool, machine: &Machine) -> Field {
        let contains = |text: &[u8]| {
            let mut windows = self.type_name.windows(text.len());
            windows.any(|window| window == text)
        };
        let is_relative = self.type_name.starts_with(b"__rel_loc");
        let is_dynamic = is_relative || self.type_name.starts_with(b"__data_loc");
        let is_library = machine.like.is_library();
        // The strings of Linux before 2.6.32.
        let is_old_string = is_library && is_dynamic && size == 2;
        let is_long = contains(b"long");
        let is_array = self.is_array || is_old_string;
        let is_character = contains(b"char") || contains(b"u8") || contains(b"s8");
        let is_string = self.is_array && is_character || is_old_string;
        let size = size as usize;
        let element_size = if is_array || is_library && is_dynamic {
            match size.checked_div(self.len) {
                Some(size) => size,
                None if is_dynamic => self.dynamic_size,
                None if is_string => 1,
                None if is_long => machine.long_size,
                None => 0,
            }
        } else {
            size
        };
        Field {
            name: self.last.into(),
            type_name: self.type_name.into(),
            offset: offset as usize,
            size,
            element_size,
            is_array,
            is_pointer: self.is_pointer,
            is_signed,
            is_string,
            is_dynamic,
            is_relative,
            is_long,
            endian: machine.endian,
            like: machine.like,
            was_unprintable: AtomicBool::new(false),
        }
    }
}
