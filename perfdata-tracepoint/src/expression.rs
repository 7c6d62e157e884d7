//! The expressions of `print fmt`.

use crate::number;

/// An argument of a format, or a part of one (`struct tep_print_arg`).
#[derive(Debug, Default)]
pub enum Arg {
    /// Nothing: the left side of an operator with one side.
    #[default]
    Null,
    /// A number, a string or a type.
    Atom(Atom),
    /// `REC->field`: which, if there is such a field.
    Field(Option<usize>),
    /// `__print_flags`.
    Flags(Box<Choice>),
    /// `__print_symbolic`.
    Symbolic(Box<Choice>),
    /// `__print_hex` and `__print_hex_str`.
    Hex(Box<Hex>),
    /// `__print_array`.
    Array(Box<Array>),
    /// A conversion to a type.
    Cast(Box<Cast>),
    /// `__get_str`.
    Str(Option<usize>),
    /// `__get_bitmask`.
    Bitmask(Option<usize>),
    /// `__get_cpumask`.
    Cpumask(Option<usize>),
    /// `__get_dynamic_array` and `__get_sockaddr`.
    DynamicArray(usize),
    /// `__get_dynamic_array_len`.
    DynamicArrayLen(usize),
    /// `__get_stacktrace`.
    Stacktrace(Option<usize>),
    /// An operator.
    Op(Box<Op>),
    /// A string that was recorded with a binary `trace_printk`.
    Recorded(Box<[u8]>),
}

/// A number, a string or a type.
#[derive(Debug)]
pub struct Atom {
    /// As written.
    pub text: Box<[u8]>,
    /// The number at its start.
    pub number: u64,
}

impl Atom {
    /// Makes an atom of its text.
    pub fn arg(text: &[u8]) -> Arg {
        Arg::Atom(Atom {
            text: text.into(),
            number: number::unsigned(text),
        })
    }
}

/// `__print_flags` and `__print_symbolic`.
#[derive(Debug)]
pub struct Choice {
    /// What to compare with the values.
    pub value: Arg,
    /// What is between two flags.
    pub delimiter: Box<[u8]>,
    /// The values with their names, in the order of the format.
    pub names: Box<[Named]>,
}

/// A value with its name.
#[derive(Debug)]
pub struct Named {
    /// The value; -1 if it is no number.
    pub value: i64,
    /// The name.
    pub name: Box<[u8]>,
}

/// `__print_hex` and `__print_hex_str`.
#[derive(Debug)]
pub struct Hex {
    /// Where the bytes are.
    pub of: Arg,
    /// How many bytes.
    pub len: Arg,
    /// Whether there are blanks between the bytes.
    pub is_spaced: bool,
}

/// `__print_array`.
#[derive(Debug)]
pub struct Array {
    /// Where the numbers are.
    pub of: Arg,
    /// How many numbers.
    pub count: Arg,
    /// The size of a number in bytes.
    pub element_size: Arg,
    /// Whether `count` is a length in bytes (`__print_dynamic_array`).
    pub is_bytes: bool,
}

/// A conversion to a type.
#[derive(Debug)]
pub struct Cast {
    /// The bits that remain of a value.
    pub mask: u64,
    /// The bits that remain of a value to which a pointer of the type points.
    pub pointee_mask: u64,
    /// What is converted.
    pub item: Arg,
}

/// An operator with its sides.
#[derive(Debug)]
pub struct Op {
    /// Which.
    pub kind: OpKind,
    /// The left side.
    pub left: Arg,
    /// The right side.
    pub right: Arg,
    /// Operators with a higher priority are nearer to the root. 0 for operators with one side.
    pub priority: i32,
}

/// The operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    /// `!`
    Not,
    /// `~`
    Complement,
    /// `+`, also before a number.
    Add,
    /// `-`, also before a number.
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessEqual,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `&`
    And,
    /// `^`
    Xor,
    /// `|`
    Or,
    /// `&&`
    LogicalAnd,
    /// `||`
    LogicalOr,
    /// `?`: its right side is a `:`.
    Condition,
    /// `:`: its sides are the two values of a condition.
    Colon,
    /// `[`: an element of an array.
    Index,
}

impl OpKind {
    /// Returns the operator with two sides that a token is.
    pub fn binary(text: &[u8]) -> Option<Self> {
        Some(match text {
            b">>" => OpKind::Shr,
            b"<<" => OpKind::Shl,
            b"&" => OpKind::And,
            b"|" => OpKind::Or,
            b"&&" => OpKind::LogicalAnd,
            b"||" => OpKind::LogicalOr,
            b"-" => OpKind::Sub,
            b"+" => OpKind::Add,
            b"*" => OpKind::Mul,
            b"^" => OpKind::Xor,
            b"/" => OpKind::Div,
            b"%" => OpKind::Rem,
            b"<" => OpKind::Less,
            b">" => OpKind::Greater,
            b"<=" => OpKind::LessEqual,
            b">=" => OpKind::GreaterEqual,
            b"==" => OpKind::Equal,
            b"!=" => OpKind::NotEqual,
            _ => return None,
        })
    }

    /// Returns the operator with one side that a token is.
    pub fn unary(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"~" => OpKind::Complement,
            b"!" => OpKind::Not,
            b"+" => OpKind::Add,
            b"-" => OpKind::Sub,
            _ => return None,
        })
    }

    /// Returns the priority (`get_op_prio`); -1 if the operator has none.
    pub fn priority(self) -> i32 {
        match self {
            OpKind::Complement | OpKind::Not => 4,
            OpKind::Mul | OpKind::Div | OpKind::Rem => 6,
            OpKind::Add | OpKind::Sub => 7,
            OpKind::Shl | OpKind::Shr => 8,
            OpKind::Less | OpKind::Greater | OpKind::LessEqual | OpKind::GreaterEqual => 9,
            OpKind::Equal | OpKind::NotEqual => 10,
            OpKind::And => 11,
            OpKind::Xor => 12,
            OpKind::Or => 13,
            OpKind::LogicalAnd => 14,
            OpKind::LogicalOr => 15,
            OpKind::Condition => 16,
            OpKind::Colon | OpKind::Index => -1,
        }
    }

    /// Returns the priority of a token after an expression.
    pub fn priority_of(text: &[u8]) -> i32 {
        match text {
            b"?" => 16,
            b"~" | b"!" => 4,
            b"++" | b"--" => 3,
            _ => OpKind::binary(text).map_or(-1, OpKind::priority),
        }
    }
}

impl Cast {
    /// Makes a conversion to a type. libtraceevent knows only few types, and no signs
    /// (`eval_type_str`).
    pub fn arg(type_name: &[u8], item: Arg) -> Arg {
        // It removes ` *`, whatever that is.
        let pointee = match type_name {
            [.., b'*'] => {
                let len = type_name.len().saturating_sub(2);
                mask(type_name.get(..len).unwrap_or_default())
            }
            _ => u64::MAX,
        };
        Arg::Cast(Box::new(Cast {
            mask: mask(type_name),
            pointee_mask: pointee,
            item,
        }))
    }
}

/// Returns the bits of a value of a type.
fn mask(type_name: &[u8]) -> u64 {
    if type_name.ends_with(b"*") || type_name.starts_with(b"struct") {
        return u64::MAX;
    }
    match type_name {
        b"u8" | b"s8" => return 0xff,
        b"u16" | b"s16" => return 0xffff,
        b"u32" | b"s32" => return 0xffff_ffff,
        _ => {}
    }
    match type_name.strip_prefix(b"unsigned ").unwrap_or(type_name) {
        b"char" => 0xff,
        b"short" => 0xffff,
        b"int" => 0xffff_ffff,
        _ => u64::MAX,
    }
}
