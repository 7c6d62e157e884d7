//! Rust names that were demangled as C++ names, as perf 6.12 recognises and spells them
//! (tools/perf/util/demangle-rust.c, 4.7 to 6.13).
//!
//! A Rust name of the older kind is a valid C++ name, whose last component is a hash, and in which
//! sequences between dollar signs stand for the characters that C++ names cannot contain.

/// Number of hexadecimal digits of a hash.
const DIGITS: usize = 16;

/// The numbers of different digits that a hash has. A component with fewer of them is probably not a
/// hash; perf takes one with all of them for another name, too.
const DIFFERENT: std::ops::RangeInclusive<u32> = 5..=15;

/// The known sequences. Braces are not among them: the names of closures remain as they are.
const ESCAPES: [(&str, char); 13] = [
    ("$C$", ','),
    ("$SP$", '@'),
    ("$BP$", '*'),
    ("$RF$", '&'),
    ("$LT$", '<'),
    ("$GT$", '>'),
    ("$LP$", '('),
    ("$RP$", ')'),
    ("$u20$", ' '),
    ("$u27$", '\''),
    ("$u5b$", '['),
    ("$u5d$", ']'),
    ("$u7e$", '~'),
];

/// Returns the name as its source code spells it, without its hash, if it is a Rust name.
pub(super) fn spelled(name: &str) -> Option<String> {
    let (mut rest, hash) = name.rsplit_once("::h")?;
    if rest.is_empty() || !is_hash(hash) || rest.contains("...") {
        return None;
    }
    let mut out = String::with_capacity(rest.len());
    // The start of a component that would not be the start of a C++ name has an underscore.
    let mut is_start = true;
    while let Some(next) = rest.chars().next() {
        let escape = ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape));
        let len = match (next, escape) {
            ('$', Some((escape, character))) => {
                out.push(*character);
                escape.len()
            }
            ('_', _) if is_start && rest.get(1..)?.starts_with('$') => 1,
            ('.', _) if rest.starts_with("..") => {
                out.push_str("::");
                2
            }
            ('.', _) => {
                out.push('-');
                1
            }
            ('a'..='z' | 'A'..='Z' | '0'..='9' | '_' | ':', _) => {
                out.push(next);
                1
            }
            _ => return None,
        };
        is_start = next == ':';
        rest = rest.get(len..)?;
    }
    Some(out)
}

fn is_hash(digits: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != DIGITS || !digits.bytes().all(is_digit) {
        return false;
    }
    let values = digits.chars().filter_map(|digit| digit.to_digit(16));
    let different = values
        .fold(0_u32, |all, value| all | 1 << value)
        .count_ones();
    DIFFERENT.contains(&different)
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn names_are_those_of_perf() {
        let names = [
            (
                "_$LT$std..fs..File$u20$as$u20$core..ops..Drop$GT$::drop::hc68340e1baa4987a",
                "<std::fs::File as core::ops::Drop>::drop",
            ),
            ("deep::rec::h0acb1408e587491b", "deep::rec"),
            ("a.b::_$RF$c::_d::h0acb1408e587491b", "a-b::&c::_d"),
        ];
        for (name, expected) in names {
            assert_eq!(spelled(name).as_deref(), Some(expected));
        }
    }

    #[test]
    fn other_names_remain() {
        for name in [
            "core::fmt::write",
            "::h0acb1408e587491b",
            "rec::h0acb1408e58749",
            "rec::h0ACB1408E587491B",
            // All digits, and too few of them.
            "core::fmt::write::h0123456789abcdef",
            "core::fmt::write::haaaaaaaabbbbcccc",
            "a::_$u7b$$u7b$closure$u7d$$u7d$::h0acb1408e587491b",
            "a...b::h0acb1408e587491b",
            "foo(int)::h0acb1408e587491b",
            "rec::h0acb1408e587491b [clone .cold]",
        ] {
            assert_eq!(spelled(name), None, "{name}");
        }
    }
}
