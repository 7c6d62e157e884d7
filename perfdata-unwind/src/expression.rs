//! Evaluation of DWARF expressions in call frame information, with bounds.

use gimli::{EvaluationResult, Expression, Format, Location, Value};

use crate::section::{SectionForm, Slice};

/// Maximum number of operations. The longest expressions of real programs, those of the procedure
/// linkage table, have less than 20.
const MOST_OPERATIONS: u32 = 1000;

/// What an expression reads.
pub(crate) trait Surroundings {
    /// Returns the value of a register, by its DWARF number.
    fn register(&self, number: u16) -> Option<u64>;
    /// Returns `size` bytes of memory at an address, as a number.
    fn memory(&self, address: u64, size: u8) -> Option<u64>;
}

/// Returns the value that `code` computes, with `initial` on the stack; `None` if it is damaged,
/// does not end, or needs something unknown.
pub(crate) fn evaluate(
    code: &[u8],
    initial: Option<u64>,
    form: SectionForm,
    surroundings: &impl Surroundings,
) -> Option<u64> {
    let encoding = gimli::Encoding {
        address_size: form.address_size,
        format: Format::Dwarf32,
        version: 4,
    };
    let mut evaluation = Expression(Slice::new(code, form.endian())).evaluation(encoding);
    evaluation.set_max_iterations(MOST_OPERATIONS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate().ok()?;
    // Each request follows an operation, whose number is limited.
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let value = surroundings.memory(address, size)?;
                evaluation.resume_with_memory(Value::Generic(value)).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = surroundings.register(register.0)?;
                evaluation
                    .resume_with_register(Value::Generic(value))
                    .ok()?
            }
            _ => return None,
        };
    }
    let pieces = evaluation.as_result();
    match pieces.first()?.location {
        Location::Address { address } if pieces.len() == 1 => Some(address),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers;

    impl Surroundings for Numbers {
        fn register(&self, number: u16) -> Option<u64> {
            (number < 17).then_some(u64::from(number) * 0x100)
        }

        fn memory(&self, address: u64, size: u8) -> Option<u64> {
            (address < 0x1000).then_some(address + u64::from(size))
        }
    }

    fn value(code: &[u8], initial: Option<u64>) -> Option<u64> {
        let form = SectionForm {
            is_big_endian: false,
            address_size: 8,
            is_aarch64: false,
        };
        evaluate(code, initial, form, &Numbers)
    }

    #[test]
    fn expressions_have_the_values_of_the_standard() {
        // DW_OP_breg7 8
        assert_eq!(value(&[0x77, 8], None), Some(0x708));
        // DW_OP_breg6 -8 (sleb128), DW_OP_deref
        assert_eq!(value(&[0x76, 0x78, 0x06], None), Some(0x5f8 + 8));
        // DW_OP_plus_uconst 16 on the CFA
        assert_eq!(value(&[0x23, 16], Some(0x40)), Some(0x50));
        // The procedure linkage table: rsp + 8 + ((rip & 15) >= 11) << 3.
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(value(&plt, None), Some(0x708));
    }

    #[test]
    fn what_does_not_end_or_is_damaged_has_no_value() {
        // DW_OP_skip -3, for ever; DW_OP_lit0, DW_OP_dup, DW_OP_skip -4, which fills the stack.
        assert_eq!(value(&[0x2f, 0xfd, 0xff], None), None);
        assert_eq!(value(&[0x30, 0x12, 0x2f, 0xfc, 0xff], None), None);
        // An empty expression, one without operands, an unknown operation, division by 0.
        for code in [&[][..], &[0x22], &[0xff], &[0x30, 0x30, 0x1b]] {
            assert_eq!(value(code, None), None, "{code:x?}");
        }
        // An unknown register, and memory that cannot be read.
        assert_eq!(value(&[0x92, 0x40, 0], None), None);
        assert_eq!(value(&[0x0a, 0xff, 0xff, 0x06], None), None);
        // A register as a location is no value.
        assert_eq!(value(&[0x50], None), None);
    }
}
