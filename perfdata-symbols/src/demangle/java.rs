//! Names of Java methods with their descriptors, as perf's agent for Java writes them and perf
//! demangles them (tools/perf/util/demangle-java.c).

/// What is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JavaState {
    /// The name of the method's class.
    Class,
    /// The name of the method.
    Method,
    /// The types of the parameters.
    Parameters,
    /// The name of a parameter's class.
    ClassOfParameter,
}

/// Returns the name of a method with the types of its parameters:
/// `java.lang.String.hashCode(int, byte[])` for `Ljava/lang/String;hashCode(I[B)V`. `None` for other
/// names.
///
/// As in perf, the brackets of an array of objects follow the next simple type.
pub(super) fn demangled(name: &[u8]) -> Option<Vec<u8>> {
    let end = memchr::memrchr(b')', name)?;
    let mut rest = name.get(..=end)?.strip_prefix(b"L")?;
    let mut text = Vec::with_capacity(name.len().saturating_mul(2));
    let mut part = JavaState::Class;
    let (mut parameters, mut dimensions) = (0_u32, 0_u32);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, part) {
            (
                b'L' | b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z',
                JavaState::Parameters,
            ) => {
                if parameters > 0 {
                    text.extend_from_slice(b", ");
                }
                parameters = parameters.saturating_add(1);
                match simple_type(byte) {
                    None => part = JavaState::ClassOfParameter,
                    Some(simple) => {
                        text.extend_from_slice(simple);
                        push_dimensions(&mut text, &mut dimensions);
                    }
                }
            }
            (b'V', JavaState::Parameters) => {
                text.extend_from_slice(b"void");
                push_dimensions(&mut text, &mut dimensions);
            }
            (b'[', JavaState::Parameters) => dimensions = dimensions.saturating_add(1),
            (b'(', JavaState::Method) => {
                text.push(byte);
                part = JavaState::Parameters;
            }
            (b')', JavaState::Parameters) => {
                text.push(byte);
                parameters = 0;
            }
            (b';', JavaState::Class) => {
                // Constructors (`<init>`) follow their class without a dot.
                if rest.first().is_some_and(u8::is_ascii_alphabetic) {
                    text.push(b'.');
                }
                part = JavaState::Method;
            }
            (b';', JavaState::ClassOfParameter) => part = JavaState::Parameters,
            (b'/', JavaState::Class | JavaState::ClassOfParameter) => text.push(b'.'),
            (b'[' | b'(' | b')' | b';' | b'/', _) => return None,
            _ => text.push(byte),
        }
    }
    Some(text)
}

/// Appends brackets for the dimensions of an array.
fn push_dimensions(text: &mut Vec<u8>, dimensions: &mut u32) {
    for _ in 0..std::mem::take(dimensions) {
        text.extend_from_slice(b"[]");
    }
}

fn simple_type(code: u8) -> Option<&'static [u8]> {
    Some(match code {
        b'B' => b"byte",
        b'C' => b"char",
        b'D' => b"double",
        b'F' => b"float",
        b'I' => b"int",
        b'J' => b"long",
        b'S' => b"short",
        b'Z' => b"boolean",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_are_those_of_perf() {
        let names = [
            (
                "Ljava/lang/String;hashCode(I[B)V",
                "java.lang.String.hashCode(int, byte[])",
            ),
            (
                "Ljava/lang/String;hashCode()I",
                "java.lang.String.hashCode()",
            ),
            ("Ljava/lang/Object;<init>()V", "java.lang.Object<init>()"),
            ("LLock;LBC(LLB;Z)V", "Lock.LBC(LB, boolean)"),
            ("La/B;c([[JLd/E;F)V", "a.B.c(long[][], d.E, float)"),
            ("La/B;c([Ld/E;I)V", "a.B.c(d.E, int[])"),
            ("La/B$C;lambda$d$0(V)V", "a.B$C.lambda$d$0(void)"),
        ];
        for (name, expected) in names {
            let text = demangled(name.as_bytes()).unwrap();
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
        for name in [
            "L",
            "Lock",
            "La/B;c",
            "La(I)V",
            "main.(*T).m",
            "La;b/c()",
            "(I)V",
        ] {
            assert_eq!(demangled(name.as_bytes()), None, "{name}");
        }
    }
}
