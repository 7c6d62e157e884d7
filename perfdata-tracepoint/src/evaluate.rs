//! Values of expressions.

use crate::expression::{Arg, Atom, Op, OpKind};
use crate::format::Format;
use crate::number;

/// Replaces operators whose sides are constants with their results (`consolidate_op_arg`). `None`
/// means a division by 0.
pub fn fold(arg: &mut Arg) -> Option<()> {
    let Arg::Op(op) = arg else {
        return Some(());
    };
    fold(&mut op.left)?;
    fold(&mut op.right)?;
    let (Arg::Atom(left), Arg::Atom(right)) = (&op.left, &op.right) else {
        return Some(());
    };
    let (left, right) = (left.number, right.number);
    let result = match op.kind {
        OpKind::Not | OpKind::Complement => return Some(()),
        OpKind::Condition | OpKind::Colon | OpKind::Index => return Some(()),
        OpKind::Xor => left ^ right,
        OpKind::Div => left.checked_div(right)?,
        OpKind::Rem => left.checked_rem(right)?,
        kind => binary(kind, left, right),
    };
    *arg = Atom::arg(result.cast_signed().to_string().as_bytes());
    Some(())
}

/// Returns the result of an operator with two sides; all numbers are without sign.
fn binary(kind: OpKind, left: u64, right: u64) -> u64 {
    match kind {
        OpKind::Not => u64::from(right == 0),
        OpKind::Complement => !right,
        OpKind::Add => left.wrapping_add(right),
        OpKind::Sub => left.wrapping_sub(right),
        OpKind::Mul => left.wrapping_mul(right),
        OpKind::Div => left.checked_div(right).unwrap_or(0),
        OpKind::Rem => left.checked_rem(right).unwrap_or(0),
        // As the machines with perf do it.
        OpKind::Shl => left.wrapping_shl(right as u32),
        OpKind::Shr => left.wrapping_shr(right as u32),
        OpKind::Less => u64::from(left < right),
        OpKind::Greater => u64::from(left > right),
        OpKind::LessEqual => u64::from(left <= right),
        OpKind::GreaterEqual => u64::from(left >= right),
        OpKind::Equal => u64::from(left == right),
        OpKind::NotEqual => u64::from(left != right),
        OpKind::And => left & right,
        OpKind::Or => left | right,
        OpKind::LogicalAnd => u64::from(left != 0 && right != 0),
        OpKind::LogicalOr => u64::from(left != 0 || right != 0),
        // libtraceevent does not know `^` there.
        OpKind::Xor | OpKind::Condition | OpKind::Colon | OpKind::Index => 0,
    }
}

/// Returns the text of a constant; `None` if it is none (`arg_eval`).
pub fn constant(arg: &Arg) -> Option<Box<[u8]>> {
    match arg {
        Arg::Atom(atom) => Some(atom.text.clone()),
        Arg::Cast(cast) => constant(&cast.item),
        Arg::Op(_) => Some(constant_number(arg)?.to_string().into_bytes().into()),
        _ => None,
    }
}

/// Returns the number that a constant is; `None` if it is none (`arg_num_eval`).
fn constant_number(arg: &Arg) -> Option<i64> {
    match arg {
        Arg::Atom(atom) => Some(number::signed(&atom.text)),
        Arg::Cast(cast) => {
            let item = constant_number(&cast.item)?;
            Some((item.cast_unsigned() & cast.mask).cast_signed())
        }
        Arg::Op(op) => constant_op(op),
        _ => None,
    }
}

fn constant_op(op: &Op) -> Option<i64> {
    let left = match op.left {
        Arg::Null => match op.kind {
            OpKind::Add | OpKind::Sub | OpKind::Complement => 0,
            _ => return None,
        },
        _ => constant_number(&op.left)?,
    };
    let right = constant_number(&op.right)?;
    Some(match op.kind {
        OpKind::Less => i64::from(left < right),
        OpKind::Greater => i64::from(left > right),
        OpKind::LessEqual => i64::from(left <= right),
        OpKind::GreaterEqual => i64::from(left >= right),
        // As the machines with perf do it.
        OpKind::Shr => left.wrapping_shr(right as u32),
        OpKind::Mul | OpKind::Div | OpKind::Rem | OpKind::Not | OpKind::Xor => return None,
        OpKind::Condition | OpKind::Colon | OpKind::Index => return None,
        kind => binary(kind, left.cast_unsigned(), right.cast_unsigned()).cast_signed(),
    })
}

/// Raw data with their format.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// The raw data.
    pub raw: &'a [u8],
    /// Their format.
    pub format: &'a Format,
}

impl Data<'_> {
    /// Returns the number that an argument is; 0 if it is none (`eval_num_arg`).
    pub fn number(self, arg: &Arg) -> u64 {
        match arg {
            Arg::Atom(atom) => atom.number,
            Arg::Field(Some(field)) => match self.format.fields.get(*field) {
                Some(field) => number::read(self.raw, field.offset, field.size, field.endian),
                None => 0,
            },
            Arg::Cast(cast) => self.number(&cast.item) & cast.mask,
            Arg::Op(op) => self.op(op),
            Arg::DynamicArrayLen(field) => match self.format.fields.get(*field) {
                Some(field) => field.span(self.raw).len as u64,
                None => 0,
            },
            // perf prints the address of the data in its own memory.
            Arg::DynamicArray(field) => match self.format.fields.get(*field) {
                Some(field) => field.span(self.raw).offset as u64,
                None => 0,
            },
            Arg::Null | Arg::Field(None) | Arg::Flags(_) | Arg::Symbolic(_) => 0,
            Arg::Hex(_) | Arg::Array(_) | Arg::Recorded(_) => 0,
            Arg::Str(_) | Arg::Bitmask(_) | Arg::Cpumask(_) | Arg::Stacktrace(_) => 0,
        }
    }

    fn op(self, op: &Op) -> u64 {
        match op.kind {
            OpKind::Index => self.element(op),
            OpKind::Condition => self.number(self.chosen(op)),
            kind => binary(kind, self.number(&op.left), self.number(&op.right)),
        }
    }

    /// Returns the value that a condition chooses.
    pub fn chosen(self, condition: &Op) -> &Arg {
        let Arg::Op(values) = &condition.right else {
            return &Arg::Null;
        };
        if self.number(&condition.left) == 0 {
            &values.right
        } else {
            &values.left
        }
    }

    /// Returns an element of an array.
    fn element(self, op: &Op) -> u64 {
        let index = self.number(&op.right);
        let mut array = &op.left;
        let mut mask = None;
        while let Arg::Cast(cast) = array {
            mask.get_or_insert(cast.pointee_mask);
            array = &cast.item;
        }
        let (offset, size, endian) = match array {
            Arg::Field(Some(field)) => {
                let Some(field) = self.format.fields.get(*field) else {
                    return 0;
                };
                let distance = index.wrapping_mul(field.element_size as u64);
                let offset = (field.offset as u64).wrapping_add(distance);
                (offset, field.element_size, field.endian)
            }
            Arg::DynamicArray(field) => {
                let Some(field) = self.format.fields.get(*field) else {
                    return 0;
                };
                let size = match field.element_size {
                    0 => self.format.machine.long_size,
                    size => size,
                };
                // libtraceevent adds the index without the size of an element.
                let start = field.span(self.raw).offset as u64;
                (start.wrapping_add(index), size, field.endian)
            }
            _ => return 0,
        };
        // An `unsigned int` there.
        number::read(self.raw, offset as u32 as usize, size, endian) & mask.unwrap_or(u64::MAX)
    }
}
