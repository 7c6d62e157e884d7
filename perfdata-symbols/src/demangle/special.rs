//! What compilers generate for virtual functions and classes, as perf and binutils name it
//! (libiberty, cp-demangle.c, `d_special_name`).

/// The starts of the forms that another demangler writes, and what stands before the name instead.
/// What is between the start and the name are offsets, each followed by a comma.
const FORMS: [(&str, &str); 4] = [
    ("{virtual override thunk({offset(", "non-virtual thunk to "),
    (
        "{virtual override thunk({virtual offset(",
        "virtual thunk to ",
    ),
    ("{vtable(", "vtable for "),
    ("{vtt(", "VTT for "),
];

/// Returns the name of a special function or object; others unchanged.
pub(super) fn spelled(text: String) -> String {
    if !text.starts_with('{') {
        return text;
    }
    let form = FORMS.iter().find_map(|(start, named)| {
        let rest = text.strip_prefix(start)?;
        let is_thunk = start.contains("thunk");
        let rest = match is_thunk {
            true => rest.split_once(")}, ")?.1,
            false => rest,
        };
        // A function that returns another class has a second offset.
        let (named, rest) = match rest.strip_prefix('{').filter(|_| is_thunk) {
            Some(second) => ("covariant return thunk to ", second.split_once(")}, ")?.1),
            None => (*named, rest),
        };
        // A clone follows the brackets.
        let (name, clone) = rest.rsplit_once(")}")?;
        Some(format!("{named}{name}{clone}"))
    });
    form.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::super::demangled;

    #[test]
    fn names_are_those_of_libiberty() {
        let names = [
            ("_ZThn96_N1A1fEv", "non-virtual thunk to A::f()"),
            ("_ZTv0_n24_N1A1fEi", "virtual thunk to A::f(int)"),
            ("_ZTch0_h16_N1A1fEv", "covariant return thunk to A::f()"),
            (
                "_ZTcv0_n24_v0_n32_N1A1fEv",
                "covariant return thunk to A::f()",
            ),
            ("_ZTV1A", "vtable for A"),
            ("_ZTT1A", "VTT for A"),
            ("_ZTI1A", "typeinfo for A"),
            ("_ZTS1A", "typeinfo name for A"),
            (
                "_ZThn16_N1AD1Ev.cold",
                "non-virtual thunk to A::~A() [clone .cold]",
            ),
        ];
        for (name, expected) in names {
            assert_eq!(
                String::from_utf8_lossy(&demangled(name.as_bytes())),
                expected
            );
        }
    }
}
