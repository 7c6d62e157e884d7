//! Rows of call frame information: how the registers of the caller follow from those of a function,
//! at one address.

use std::sync::Arc;

use gimli::{CfaRule, Register, RegisterRule, UnwindExpression, UnwindTableRow};

use crate::machine::REGISTERS;

/// Maximum number of rules in a [`Packed`] row: the preserved registers of a function.
pub(crate) const MOST_PACKED: usize = 12;

/// The code of an expression.
pub(crate) type Code = Arc<[u8]>;

/// How a value is computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    Undefined,
    Same,
    /// The word at the CFA plus this offset.
    Offset(i64),
    /// The CFA plus this offset.
    ValOffset(i64),
    Register(u8),
    /// The word at the address that the code computes.
    Expression(Code),
    /// The value that the code computes.
    ValExpression(Code),
}

/// How the CFA, the canonical frame address, is computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cfa {
    /// A register plus an offset.
    Register(u8, i64),
    Expression(Code),
}

/// A row with any rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub cfa: Cfa,
    pub rules: Vec<(u8, Rule)>,
    pub return_register: u8,
    /// Whether the function is the return of a signal handler, so that the caller was interrupted
    /// at its address.
    pub is_signal: bool,
}

/// What an entry says about all of its rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowOf {
    pub return_register: Register,
    pub is_signal: bool,
}

/// Returns the number of a register, if it is followed.
fn followed(register: Register) -> Option<u8> {
    let number = usize::from(register.0);
    u8::try_from(number).ok().filter(|_| number < REGISTERS)
}

impl Row {
    /// Returns a row of a table; `None` if it depends on a register that is not followed, or on
    /// something unknown. `code` returns the code of an expression.
    pub fn of(
        row: &UnwindTableRow<usize>,
        of: RowOf,
        code: impl Fn(&UnwindExpression<usize>) -> Option<Code>,
    ) -> Option<Row> {
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Cfa::Register(followed(*register)?, *offset)
            }
            CfaRule::Expression(expression) => Cfa::Expression(code(expression)?),
        };
        let mut rules = Vec::new();
        for (register, rule) in row.registers() {
            let Some(register) = followed(*register) else {
                continue;
            };
            let rule = match rule {
                RegisterRule::Undefined => Rule::Undefined,
                RegisterRule::SameValue => Rule::Same,
                RegisterRule::Offset(offset) => Rule::Offset(*offset),
                RegisterRule::ValOffset(offset) => Rule::ValOffset(*offset),
                RegisterRule::Register(other) => match followed(*other) {
                    Some(other) => Rule::Register(other),
                    None => Rule::Undefined,
                },
                RegisterRule::Expression(expression) => Rule::Expression(code(expression)?),
                RegisterRule::ValExpression(expression) => Rule::ValExpression(code(expression)?),
                // The state of pointer authentication, which is removed from every address.
                RegisterRule::Constant(_) => continue,
                _ => Rule::Undefined,
            };
            rules.push((register, rule));
        }
        rules.sort_by_key(|(register, _)| *register);
        Some(Row {
            cfa,
            rules,
            return_register: followed(of.return_register)?,
            is_signal: of.is_signal,
        })
    }
}

/// A rule of a [`Packed`] row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PackedRule {
    pub register: u8,
    pub kind: PackedKind,
    /// The offset, or the number of the other register.
    pub value: i32,
}

/// The kind of a rule of a [`Packed`] row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PackedKind {
    #[default]
    Undefined,
    Same,
    Offset,
    ValOffset,
    Register,
}

/// A row without expressions, and with small offsets: the usual ones. It needs no memory elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packed {
    pub cfa_register: u8,
    pub return_register: u8,
    pub is_signal: bool,
    /// Whether all rules are words at the CFA plus an offset.
    pub is_saved: bool,
    count: u8,
    pub cfa_offset: i32,
    rules: [PackedRule; MOST_PACKED],
}

impl Packed {
    /// Returns the same row in this form; `None` if it does not fit.
    pub fn of(row: &Row) -> Option<Packed> {
        let Cfa::Register(cfa_register, offset) = row.cfa else {
            return None;
        };
        let mut rules = [PackedRule::default(); MOST_PACKED];
        if row.rules.len() > rules.len() {
            return None;
        }
        for (to, (register, rule)) in rules.iter_mut().zip(&row.rules) {
            let (kind, value) = match rule {
                Rule::Undefined => (PackedKind::Undefined, 0),
                Rule::Same => (PackedKind::Same, 0),
                Rule::Offset(offset) => (PackedKind::Offset, i32::try_from(*offset).ok()?),
                Rule::ValOffset(offset) => (PackedKind::ValOffset, i32::try_from(*offset).ok()?),
                Rule::Register(other) => (PackedKind::Register, i32::from(*other)),
                Rule::Expression(_) | Rule::ValExpression(_) => return None,
            };
            *to = PackedRule {
                register: *register,
                kind,
                value,
            };
        }
        Some(Packed {
            cfa_register,
            return_register: row.return_register,
            is_signal: row.is_signal,
            is_saved: row
                .rules
                .iter()
                .all(|(_, rule)| matches!(rule, Rule::Offset(_))),
            count: u8::try_from(row.rules.len()).ok()?,
            cfa_offset: i32::try_from(offset).ok()?,
            rules,
        })
    }

    /// Returns the rules.
    pub fn rules(&self) -> &[PackedRule] {
        self.rules
            .get(..usize::from(self.count))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rules: Vec<(u8, Rule)>) -> Row {
        Row {
            cfa: Cfa::Register(7, 16),
            rules,
            return_register: 16,
            is_signal: false,
        }
    }

    #[test]
    fn usual_rows_are_packed() {
        let usual = row(vec![
            (3, Rule::Undefined),
            (6, Rule::Offset(-16)),
            (7, Rule::ValOffset(0)),
            (12, Rule::Same),
            (13, Rule::Register(1)),
            (16, Rule::Offset(-8)),
        ]);
        let packed = Packed::of(&usual).expect("it is usual");
        let rules: Vec<_> = packed
            .rules()
            .iter()
            .map(|rule| (rule.register, rule.kind, rule.value))
            .collect();
        let expected = [
            (3, PackedKind::Undefined, 0),
            (6, PackedKind::Offset, -16),
            (7, PackedKind::ValOffset, 0),
            (12, PackedKind::Same, 0),
            (13, PackedKind::Register, 1),
            (16, PackedKind::Offset, -8),
        ];
        assert_eq!(rules, expected);
        assert_eq!((packed.cfa_register, packed.cfa_offset), (7, 16));

        let code: Code = [0x70, 0].as_slice().into();
        let others = [
            row(vec![(16, Rule::Expression(code.clone()))]),
            row(vec![(16, Rule::Offset(1 << 40))]),
            row((0..13).map(|register| (register, Rule::Same)).collect()),
            Row {
                cfa: Cfa::Expression(code),
                ..row(Vec::new())
            },
        ];
        assert!(others.iter().all(|row| Packed::of(row).is_none()));
    }
}
