//! The builtin types.

/// How a literal of a type is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Literals {
    /// With the type in parentheses before it.
    WithType,
    /// As a number, with a suffix.
    Suffix(&'static str),
    /// `true` and `false`.
    Bool,
    /// With the type in parentheses, and the bytes in brackets.
    Bytes,
}

/// A builtin type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) literals: Literals,
}

const fn builtin(name: &'static str, literals: Literals) -> Builtin {
    Builtin { name, literals }
}

use Literals::{Bool, Bytes, Suffix, WithType};

static SIGNED_CHAR: Builtin = builtin("signed char", WithType);
static BOOL: Builtin = builtin("bool", Bool);
static CHAR: Builtin = builtin("char", WithType);
static DOUBLE: Builtin = builtin("double", Bytes);
static LONG_DOUBLE: Builtin = builtin("long double", Bytes);
static FLOAT: Builtin = builtin("float", Bytes);
static FLOAT128: Builtin = builtin("__float128", Bytes);
static UNSIGNED_CHAR: Builtin = builtin("unsigned char", WithType);
static INT: Builtin = builtin("int", Suffix(""));
static UNSIGNED_INT: Builtin = builtin("unsigned int", Suffix("u"));
static LONG: Builtin = builtin("long", Suffix("l"));
static UNSIGNED_LONG: Builtin = builtin("unsigned long", Suffix("ul"));
static INT128: Builtin = builtin("__int128", WithType);
static UNSIGNED_INT128: Builtin = builtin("unsigned __int128", WithType);
static SHORT: Builtin = builtin("short", WithType);
static UNSIGNED_SHORT: Builtin = builtin("unsigned short", WithType);
pub(crate) static VOID: Builtin = builtin("void", WithType);
static WCHAR: Builtin = builtin("wchar_t", WithType);
static LONG_LONG: Builtin = builtin("long long", Suffix("ll"));
static UNSIGNED_LONG_LONG: Builtin = builtin("unsigned long long", Suffix("ull"));
static ELLIPSIS: Builtin = builtin("...", WithType);
static DECIMAL32: Builtin = builtin("decimal32", WithType);
static DECIMAL64: Builtin = builtin("decimal64", WithType);
static DECIMAL128: Builtin = builtin("decimal128", WithType);
static HALF: Builtin = builtin("half", Bytes);
static CHAR8: Builtin = builtin("char8_t", WithType);
static CHAR16: Builtin = builtin("char16_t", WithType);
static CHAR32: Builtin = builtin("char32_t", WithType);
pub(crate) static NULLPTR: Builtin = builtin("decltype(nullptr)", WithType);
pub(crate) static BFLOAT16: Builtin = builtin("std::bfloat16_t", Bytes);

/// Returns the type with a code of one letter.
pub(crate) fn of_letter(code: u8) -> Option<&'static Builtin> {
    Some(match code {
        b'a' => &SIGNED_CHAR,
        b'b' => &BOOL,
        b'c' => &CHAR,
        b'd' => &DOUBLE,
        b'e' => &LONG_DOUBLE,
        b'f' => &FLOAT,
        b'g' => &FLOAT128,
        b'h' => &UNSIGNED_CHAR,
        b'i' => &INT,
        b'j' => &UNSIGNED_INT,
        b'l' => &LONG,
        b'm' => &UNSIGNED_LONG,
        b'n' => &INT128,
        b'o' => &UNSIGNED_INT128,
        b's' => &SHORT,
        b't' => &UNSIGNED_SHORT,
        b'v' => &VOID,
        b'w' => &WCHAR,
        b'x' => &LONG_LONG,
        b'y' => &UNSIGNED_LONG_LONG,
        b'z' => &ELLIPSIS,
        _ => return None,
    })
}

/// Returns the type with a code of `D` and this letter.
pub(crate) fn of_letter_after_d(code: u8) -> Option<&'static Builtin> {
    Some(match code {
        b'f' => &DECIMAL32,
        b'd' => &DECIMAL64,
        b'e' => &DECIMAL128,
        b'h' => &HALF,
        b'u' => &CHAR8,
        b's' => &CHAR16,
        b'i' => &CHAR32,
        b'n' => &NULLPTR,
        _ => return None,
    })
}
