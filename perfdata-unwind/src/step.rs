//! From the registers of a frame to those of its caller.

use crate::expression::evaluate;
use crate::frame::FrameRegisters;
use crate::machine::Machine;
use crate::memory::{Memory, Unknown};
use crate::row::{Cfa, MOST_PACKED, Packed, PackedKind, Row, Rule};
use crate::section::SectionForm;
use crate::unwinder::{End, Maps};

/// The CFA, and the return address, if it is defined.
pub(crate) type Stepped = (u64, Option<u64>);

/// Changes a frame to that of the caller, before any rule is applied: with the preserved registers,
/// and the CFA as its stack pointer.
fn enter_caller(frame: &mut FrameRegisters, machine: Machine, cfa: u64) {
    frame.keep(machine.preserved());
    frame.set(machine.stack_pointer(), Some(machine.callers_stack(cfa)));
}

/// Returns what an error of reading means for a callchain.
fn ended(unknown: Unknown) -> End {
    match unknown {
        Unknown::Stack => End::StackCopy,
        Unknown::Other => End::Other,
    }
}

/// Changes a frame to that of the caller. If this is not possible, the frame does not change.
pub(crate) fn packed_step<M: Maps>(
    row: &Packed,
    frame: &mut FrameRegisters,
    memory: &Memory<'_, M>,
) -> Result<Stepped, End> {
    let machine = memory.task.machine;
    let base = frame.get(row.cfa_register).ok_or(End::Other)?;
    let cfa = machine.truncated(base.wrapping_add_signed(row.cfa_offset.into()));
    if row.is_saved {
        return saved_step(row, cfa, frame, memory);
    }
    // Without a rule, the return address is still in its register.
    let mut pc = Some(frame.get(row.return_register));
    // All values are those of the function, so that no rule sees the result of another.
    let mut values = [None; MOST_PACKED];
    for (to, rule) in values.iter_mut().zip(row.rules()) {
        let at = || machine.truncated(cfa.wrapping_add_signed(rule.value.into()));
        let is_return = rule.register == row.return_register;
        *to = match rule.kind {
            PackedKind::Undefined => None,
            PackedKind::Same => frame.get(rule.register),
            PackedKind::ValOffset => Some(at()),
            PackedKind::Register => u8::try_from(rule.value).ok().and_then(|at| frame.get(at)),
            PackedKind::Offset => match memory.read(at(), machine.word()) {
                Ok(value) => Some(value),
                Err(unknown) if is_return => return Err(ended(unknown)),
                // Only frames that need this register cannot be unwound.
                Err(_) => None,
            },
        };
        if is_return {
            pc = match rule.kind {
                PackedKind::Undefined => None,
                _ => Some(*to),
            };
        }
    }
    let pc = known(pc)?;
    enter_caller(frame, machine, cfa);
    for (value, rule) in values.into_iter().zip(row.rules()) {
        frame.set(rule.register, value);
    }
    Ok((cfa, pc))
}

/// As [`packed_step`], for a row whose rules are all words in memory. None of them needs a
/// register, so the values go into the frame at once.
#[inline]
fn saved_step<M: Maps>(
    row: &Packed,
    cfa: u64,
    frame: &mut FrameRegisters,
    memory: &Memory<'_, M>,
) -> Result<Stepped, End> {
    let machine = memory.task.machine;
    let mut pc = frame.get(row.return_register);
    enter_caller(frame, machine, cfa);
    for rule in row.rules() {
        let address = machine.truncated(cfa.wrapping_add_signed(rule.value.into()));
        let value = memory.word(address);
        if rule.register == row.return_register {
            pc = Some(value.map_err(ended)?);
        }
        frame.set(rule.register, value.ok());
    }
    Ok((cfa, known(Some(pc))?))
}

/// As [`packed_step`], for a row with any rules.
pub(crate) fn full_step<M: Maps>(
    row: &Row,
    frame: &mut FrameRegisters,
    memory: &Memory<'_, M>,
) -> Result<Stepped, End> {
    let machine = memory.task.machine;
    let form = SectionForm {
        is_big_endian: memory.is_big_endian,
        address_size: machine.word(),
        is_aarch64: machine == Machine::Aarch64,
    };
    let before = &*frame;
    let value_of = |code: &[u8], initial| {
        evaluate(code, initial, form, &(before, memory)).map(|value| machine.truncated(value))
    };
    let cfa = match &row.cfa {
        Cfa::Register(register, offset) => {
            let base = before.get(*register).ok_or(End::Other)?;
            machine.truncated(base.wrapping_add_signed(*offset))
        }
        Cfa::Expression(code) => value_of(code, None).ok_or(End::Other)?,
    };
    let mut next = before.clone();
    enter_caller(&mut next, machine, cfa);
    let mut pc = Some(before.get(row.return_register));
    for (register, rule) in &row.rules {
        let is_return = *register == row.return_register;
        let read = |address| memory.read(address, machine.word());
        let at = |offset: &i64| machine.truncated(cfa.wrapping_add_signed(*offset));
        let value = match rule {
            Rule::Undefined => Ok(None),
            Rule::Same => Ok(before.get(*register)),
            Rule::Register(other) => Ok(before.get(*other)),
            Rule::ValOffset(offset) => Ok(Some(at(offset))),
            Rule::ValExpression(code) => Ok(value_of(code, Some(cfa))),
            Rule::Offset(offset) => read(at(offset)).map(Some),
            Rule::Expression(code) => match value_of(code, Some(cfa)) {
                Some(address) => read(address).map(Some),
                None => Ok(None),
            },
        };
        let value = match value {
            Ok(value) => value,
            Err(unknown) if is_return => return Err(ended(unknown)),
            Err(_) => None,
        };
        next.set(*register, value);
        if is_return {
            pc = match rule {
                Rule::Undefined => None,
                _ => Some(value),
            };
        }
    }
    let pc = known(pc)?;
    *frame = next;
    Ok((cfa, pc))
}

/// Returns the return address; `None` if there is no caller. `pc` contains no value if the return
/// address is not known.
fn known(pc: Option<Option<u64>>) -> Result<Option<u64>, End> {
    match pc {
        None => Ok(None),
        Some(Some(pc)) => Ok(Some(pc)),
        Some(None) => Err(End::Other),
    }
}

/// Changes a frame to that of the caller by the chain of frame pointers.
pub(crate) fn pointer_step<M: Maps>(
    frame: &mut FrameRegisters,
    memory: &Memory<'_, M>,
) -> Option<Stepped> {
    let machine = memory.task.machine;
    let (register, to_pointer, to_return, to_stack) = machine.frame_pointer()?;
    let (pointer, stack) = (frame.get(register)?, frame.get(machine.stack_pointer())?);
    if pointer < stack {
        return None;
    }
    let read = |offset| {
        let address = machine.truncated(pointer.wrapping_add_signed(offset));
        memory.read(address, machine.word()).ok()
    };
    let (callers_pointer, pc) = (read(to_pointer)?, read(to_return)?);
    let cfa = pointer.wrapping_add_signed(to_stack);
    enter_caller(frame, machine, cfa);
    frame.set(register, Some(callers_pointer));
    Some((cfa, Some(pc)))
}
