//! Names of OCaml functions, as perf demangles them (tools/perf/util/demangle-ocaml.c, since 5.13).

/// Returns the name of an OCaml function: `Stdlib.List.map'_287` for
/// `camlStdlib__List__map$27_287`. `None` for other names.
pub(super) fn demangled(name: &[u8]) -> Option<Vec<u8>> {
    let mut rest = name.strip_prefix(b"caml")?;
    rest.first().filter(|first| first.is_ascii_uppercase())?;
    let mut text = Vec::with_capacity(rest.len());
    let digit = |byte: u8| char::from(byte).to_digit(16);
    while let Some((&first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'_', [b'_', after @ ..]) => Some((b'.', after)),
            (b'$', [high, low, after @ ..]) => {
                let number = digit(*high).zip(digit(*low));
                let byte = number.and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
                byte.map(|byte| (byte, after))
            }
            _ => None,
        };
        let (byte, after) = escaped.unwrap_or((first, after));
        text.push(byte);
        rest = after;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_are_those_of_perf() {
        let names = [
            ("camlStdlib__List__map_287", "Stdlib.List.map_287"),
            ("camlStdlib__List__map$27_287", "Stdlib.List.map'_287"),
            (
                "camlStdlib__anon_fn$5bstdlib$2eml$3a334$2c0$2d$2d54$5d_1453",
                "Stdlib.anon_fn[stdlib.ml:334,0--54]_1453",
            ),
            ("camlA___b$", "A._b$"),
            ("camlA$4", "A$4"),
            ("camlA$zz_", "A$zz_"),
        ];
        for (name, expected) in names {
            let text = demangled(name.as_bytes()).unwrap();
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
        for name in ["caml_alloc", "caml", "camlinternal", "Caml", "main"] {
            assert_eq!(demangled(name.as_bytes()), None);
        }
    }
}
