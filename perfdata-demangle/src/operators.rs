//! The operators.

/// What follows the code of an operator in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    None,
    One,
    /// One operand. An underscore before it makes a prefix operator of it.
    PostfixOrPrefix,
    /// A type.
    Type,
    /// The elements of a pack.
    Pack,
    Two,
    /// A type and an operand in parentheses.
    NamedCast,
    /// A function and its arguments.
    Call,
    /// An operand and the name of a member.
    Member,
    /// An operator and a pack.
    UnaryFold,
    /// An operator, and a pack and an operand.
    BinaryFold,
    /// The name of a member and its value.
    MemberInitializer,
    Three,
    /// Arguments, a type, and an initializer.
    New,
}

/// An operator.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Operator {
    pub(crate) code: [u8; 2],
    /// The text; with a space after a word.
    pub(crate) text: &'static str,
    pub(crate) operands: Operands,
}

const fn operator(code: &[u8; 2], text: &'static str, operands: Operands) -> Operator {
    let code = *code;
    Operator {
        code,
        text,
        operands,
    }
}

use Operands as Of;

/// All operators, sorted by their codes.
static OPERATORS: [Operator; 75] = [
    operator(b"aN", "&=", Of::Two),
    operator(b"aS", "=", Of::Two),
    operator(b"aa", "&&", Of::Two),
    operator(b"ad", "&", Of::One),
    operator(b"an", "&", Of::Two),
    operator(b"at", "alignof ", Of::Type),
    operator(b"aw", "co_await ", Of::One),
    operator(b"az", "alignof ", Of::One),
    operator(b"cc", "const_cast", Of::NamedCast),
    operator(b"cl", "()", Of::Call),
    operator(b"cm", ",", Of::Two),
    operator(b"co", "~", Of::One),
    operator(b"dV", "/=", Of::Two),
    operator(b"dX", "[...]=", Of::Three),
    operator(b"da", "delete[] ", Of::One),
    operator(b"dc", "dynamic_cast", Of::NamedCast),
    operator(b"de", "*", Of::One),
    operator(b"di", "=", Of::MemberInitializer),
    operator(b"dl", "delete ", Of::One),
    operator(b"ds", ".*", Of::Two),
    operator(b"dt", ".", Of::Member),
    operator(b"dv", "/", Of::Two),
    operator(b"dx", "]=", Of::Two),
    operator(b"eO", "^=", Of::Two),
    operator(b"eo", "^", Of::Two),
    operator(b"eq", "==", Of::Two),
    operator(b"fL", "...", Of::BinaryFold),
    operator(b"fR", "...", Of::BinaryFold),
    operator(b"fl", "...", Of::UnaryFold),
    operator(b"fr", "...", Of::UnaryFold),
    operator(b"ge", ">=", Of::Two),
    operator(b"gs", "::", Of::One),
    operator(b"gt", ">", Of::Two),
    operator(b"ix", "[]", Of::Two),
    operator(b"lS", "<<=", Of::Two),
    operator(b"le", "<=", Of::Two),
    operator(b"li", "operator\"\" ", Of::One),
    operator(b"ls", "<<", Of::Two),
    operator(b"lt", "<", Of::Two),
    operator(b"mI", "-=", Of::Two),
    operator(b"mL", "*=", Of::Two),
    operator(b"mi", "-", Of::Two),
    operator(b"ml", "*", Of::Two),
    operator(b"mm", "--", Of::PostfixOrPrefix),
    operator(b"na", "new[]", Of::New),
    operator(b"ne", "!=", Of::Two),
    operator(b"ng", "-", Of::One),
    operator(b"nt", "!", Of::One),
    operator(b"nw", "new", Of::New),
    operator(b"nx", "noexcept", Of::One),
    operator(b"oR", "|=", Of::Two),
    operator(b"oo", "||", Of::Two),
    operator(b"or", "|", Of::Two),
    operator(b"pL", "+=", Of::Two),
    operator(b"pl", "+", Of::Two),
    operator(b"pm", "->*", Of::Two),
    operator(b"pp", "++", Of::PostfixOrPrefix),
    operator(b"ps", "+", Of::One),
    operator(b"pt", "->", Of::Member),
    operator(b"qu", "?", Of::Three),
    operator(b"rM", "%=", Of::Two),
    operator(b"rS", ">>=", Of::Two),
    operator(b"rc", "reinterpret_cast", Of::NamedCast),
    operator(b"rm", "%", Of::Two),
    operator(b"rs", ">>", Of::Two),
    operator(b"sP", "sizeof...", Of::Pack),
    operator(b"sZ", "sizeof...", Of::One),
    operator(b"sc", "static_cast", Of::NamedCast),
    operator(b"ss", "<=>", Of::Two),
    operator(b"st", "sizeof ", Of::Type),
    operator(b"sz", "sizeof ", Of::One),
    operator(b"te", "typeid ", Of::One),
    operator(b"ti", "typeid ", Of::Type),
    operator(b"tr", "throw", Of::None),
    operator(b"tw", "throw ", Of::One),
];

/// Returns the operator with a code.
pub(crate) fn of_code(code: [u8; 2]) -> Option<&'static Operator> {
    let found = OPERATORS.binary_search_by(|operator| operator.code.cmp(&code));
    OPERATORS.get(found.ok()?)
}

#[cfg(test)]
mod tests {
    use super::OPERATORS;

    #[test]
    fn operators_are_sorted() {
        assert!(OPERATORS.is_sorted_by(|one, next| one.code < next.code));
    }
}
