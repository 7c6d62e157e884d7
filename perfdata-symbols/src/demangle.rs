//! Names of C++ and Rust functions as their source code spells them.

mod common;
mod local;
mod rust_hash;
mod special;

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// Maximum length of a demangled name in bytes. A few bytes of a mangled name can stand for
/// gigabytes.
const MOST: usize = 1 << 16;

/// Maximum length of a mangled name in bytes. Parsing takes time and stack for each byte.
const MOST_MANGLED: usize = 1 << 14;

/// Returns the demangled form of a C++ or Rust symbol, with parameters and without the hash of a
/// Rust symbol; other names unchanged.
///
/// ```
/// use perfdata_symbols::demangled;
/// assert_eq!(&*demangled(b"_ZNK4llvm5Value7getTypeEv"), b"llvm::Value::getType() const");
/// assert_eq!(&*demangled(b"_ZN4core3fmt5write17h0123456789abcdefE"), b"core::fmt::write");
/// assert_eq!(&*demangled(b"main"), b"main");
/// ```
pub fn demangled(name: &[u8]) -> Cow<'_, [u8]> {
    demangled_as(name, Spelling::Full)
}

/// How a demangled name is spelled. Versions of perf differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Spelling {
    /// With parameters; Rust names without their hash, with what compilers append. perf 7.2.
    #[default]
    Full,
    /// Rust names as C++ names: those with a usual hash without it, others with what stands for
    /// characters that C++ names cannot contain, and newer ones (`_R`) as they are. perf 6.12.
    RustAsCpp,
    /// Without parameters and types of results; Rust names without what compilers append. perf 6.1.
    WithoutParameters,
}

impl Spelling {
    /// Returns the function that demangles symbols in this spelling.
    pub(crate) fn demangle(self) -> for<'a> fn(&'a [u8]) -> Cow<'a, [u8]> {
        match self {
            Spelling::Full => demangled,
            Spelling::RustAsCpp => |name| demangled_as(name, Spelling::RustAsCpp),
            Spelling::WithoutParameters => |name| demangled_as(name, Spelling::WithoutParameters),
        }
    }
}

/// Returns the demangled form of a C++ or Rust symbol in one of its spellings; other names
/// unchanged.
///
/// ```
/// use perfdata_symbols::{Spelling, demangled_as};
/// let name = b"_ZNK4llvm5Value7getTypeEv";
/// assert_eq!(&*demangled_as(name, Spelling::WithoutParameters), b"llvm::Value::getType");
/// ```
pub fn demangled_as(name: &[u8], spelling: Spelling) -> Cow<'_, [u8]> {
    // On some platforms, names have one more underscore.
    let is_mangled = name.starts_with(b"_Z") || name.starts_with(b"_R") || name.starts_with(b"__Z");
    if !is_mangled || name.len() > MOST_MANGLED {
        return Cow::Borrowed(name);
    }
    let text = match spelling {
        Spelling::RustAsCpp if name.starts_with(b"_R") => None,
        Spelling::RustAsCpp => {
            cpp(name, spelling).map(|text| rust_hash::spelled(&text).unwrap_or(text))
        }
        _ => rust(name, spelling).or_else(|| cpp(name, spelling)),
    };
    match text {
        Some(text) => Cow::Owned(text.into_bytes()),
        None => Cow::Borrowed(name),
    }
}

fn rust(name: &[u8], spelling: Spelling) -> Option<String> {
    let mut name = std::str::from_utf8(name).ok()?;
    if spelling == Spelling::WithoutParameters && name.starts_with("_R") {
        name = name.split_once('.').map_or(name, |(name, _)| name);
    }
    let parsed = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Limited(String::with_capacity(name.len()));
    // The alternate form has no hash.
    write!(out, "{parsed:#}").ok()?;
    Some(out.0)
}

fn cpp(name: &[u8], spelling: Spelling) -> Option<String> {
    let has_parameters = spelling != Spelling::WithoutParameters;
    common::demangled(name, has_parameters).or_else(|| any_cpp(name, spelling))
}

/// Returns the demangled form of any C++ name.
fn any_cpp(name: &[u8], spelling: Spelling) -> Option<String> {
    let mut out = Limited(String::with_capacity(name.len().saturating_mul(2)));
    // A suffix of the compiler, such as `.cold`, is part of the parsed symbol.
    let parsed = Symbol::new(name).ok()?;
    let mut options = DemangleOptions::new();
    if spelling == Spelling::WithoutParameters {
        options = options.no_params().no_return_type();
    }
    parsed.structured_demangle(&mut out, &options).ok()?;
    let mut text = local::spelled(special::spelled(with_literals(out.0)));
    // Empty packs of parameters; references to arrays and functions look like them.
    let has_reference = ["(&) [", "(&)(", "(&&) [", "(&&)("]
        .iter()
        .any(|reference| text.contains(reference));
    let empty = [
        (", >", ">"),
        (", &&)", ")"),
        (", &)", ")"),
        ("(&&)", "()"),
        ("(&)", "()"),
    ];
    for (empty, without) in empty {
        if text.contains(empty) && !has_reference {
            text = text.replace(empty, without);
        }
    }
    if spelling == Spelling::WithoutParameters
        && let Some(method) = text.strip_suffix(" const")
    {
        text.truncate(method.len());
    }
    Some(with_numbered_clones(text))
}

/// Returns the number of a clone in the same brackets as its kind: `[clone .part.0]`.
fn with_numbered_clones(text: String) -> String {
    const NEXT: &str = "] [clone .";
    if !text.contains(NEXT) {
        return text;
    }
    let mut out = String::new();
    let mut rest = &*text;
    while let Some((before, after)) = rest.split_once(NEXT) {
        out.push_str(before);
        let is_number = after.starts_with(|c: char| c.is_ascii_digit());
        out.push_str(if is_number { "." } else { NEXT });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns numbers in the arguments of templates as other demanglers write them: `32u` instead of
/// `(unsigned int)32`.
fn with_literals(text: String) -> String {
    const TYPES: [(&str, &str); 6] = [
        ("(int)", ""),
        ("(unsigned int)", "u"),
        ("(long)", "l"),
        ("(unsigned long)", "ul"),
        ("(long long)", "ll"),
        ("(unsigned long long)", "ull"),
    ];
    let is_cast = |at| {
        let rest = text.get(at..).unwrap_or_default();
        ["(bool)", "(int)", "(long", "(unsigned "]
            .iter()
            .any(|cast| rest.starts_with(cast))
    };
    if !text.match_indices('(').any(|(at, _)| is_cast(at)) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('(') {
        let (before, cast) = rest.split_at(at);
        out.push_str(before);
        let literal = TYPES.iter().find_map(|(kind, suffix)| {
            let number = cast.strip_prefix(kind)?;
            let digits = number.strip_prefix('-').unwrap_or(number);
            let end = digits.find(|c: char| !c.is_ascii_digit())?;
            let len = number
                .len()
                .saturating_sub(digits.len())
                .saturating_add(end);
            Some((number.split_at_checked(len).filter(|_| end > 0)?, suffix))
        });
        rest = match literal {
            Some(((number, rest), suffix)) => {
                out.push_str(number);
                out.push_str(suffix);
                rest
            }
            None => match cast {
                _ if cast.starts_with("(bool)0") => {
                    out.push_str("false");
                    cast.get(7..).unwrap_or_default()
                }
                _ if cast.starts_with("(bool)1") => {
                    out.push_str("true");
                    cast.get(7..).unwrap_or_default()
                }
                _ => {
                    out.push('(');
                    cast.get(1..).unwrap_or_default()
                }
            },
        };
    }
    out.push_str(rest);
    out
}

/// Text up to [`MOST`] bytes.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len().saturating_add(text.len()) > MOST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> String {
        String::from_utf8(demangled(name.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn names_of_both_languages_are_demangled() {
        assert_eq!(
            of("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(
            of("_ZN12_GLOBAL__N_13fooEi"),
            "(anonymous namespace)::foo(int)"
        );
        assert_eq!(of("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(
            of("_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE"),
            "core::ptr::drop_in_place<alloc::string::String>"
        );
    }

    #[test]
    fn literals_are_short() {
        assert_eq!(
            of("_ZN11SmallVectorIiLj32EED2Ev"),
            "SmallVector<int, 32u>::~SmallVector()"
        );
        assert_eq!(
            of("_Z1fILin5ELb1ELb0ELm7EEvv"),
            "void f<-5, true, false, 7ul>()"
        );
    }

    #[test]
    fn packs_are_written_element_by_element() {
        let names = [
            (
                "_Z1fIJiRKcEEvDpOT_",
                "void f<int, char const&>(int&&, char const&)",
            ),
            ("_Z1fIJ1AEEvDpRKT_", "void f<A>(A const&)"),
            ("_Z1fIiJEEvT_DpOT0_", "void f<int>(int)"),
            ("_Z1fIJEEviDpRKT_c", "void f<>(int, , char)"),
            (
                "_ZN1A1gISt5tupleIJiS_EEEEvOT_S1_",
                "void A::g<std::tuple<int, A> >(std::tuple<int, A>&&, std::tuple)",
            ),
            ("_Z1fI1BI1CIiEJEEEvv", "void f<B<C<int>> >()"),
            (
                "_Z1fIJRA20_KcEEvDpOT_",
                "void f<char const (&) [20]>(char const (&) [20])",
            ),
        ];
        for (name, expected) in names {
            assert_eq!(of(name), expected, "{name}");
        }
    }

    #[test]
    fn clones_have_their_numbers() {
        assert_eq!(of("_Z3foov.cold"), "foo() [clone .cold]");
        assert_eq!(
            of("_Z3foov.part.0.cold"),
            "foo() [clone .part.0] [clone .cold]"
        );
        assert_eq!(of("_Z3foov.llvm.123"), "foo() [clone .llvm.123]");
    }

    #[test]
    fn versions_of_perf_spell_names_differently() {
        let names = [
            ("_Z3fooi", "foo(int)", "foo"),
            ("_Z1fILi5EEvv", "f<5>()", "f<5>"),
            (
                "_ZN4core3fmt5write17h0123456789abcdefE",
                "core::fmt::write::h0123456789abcdef",
                "core::fmt::write",
            ),
            ("_ZN4deep3rec17h0acb1408e587491bE", "deep::rec", "deep::rec"),
            (
                "_RNvCs1234_7mycrate3foo.cold",
                "_RNvCs1234_7mycrate3foo.cold",
                "mycrate::foo",
            ),
            ("main", "main", "main"),
        ];
        for (name, middle, old) in names {
            let spelled = |spelling| {
                String::from_utf8(demangled_as(name.as_bytes(), spelling).into_owned()).unwrap()
            };
            assert_eq!(spelled(Spelling::RustAsCpp).replace("void ", ""), middle);
            assert_eq!(spelled(Spelling::WithoutParameters), old);
        }
    }

    #[test]
    fn other_names_remain() {
        for name in [
            "",
            "_Z",
            "_ZN",
            "_R",
            "__libc_start_main",
            "_ZZZZZZ",
            "Java_call",
        ] {
            assert_eq!(of(name), name);
        }
        assert_eq!(&*demangled(b"_Z\xff\xfe"), b"_Z\xff\xfe");
    }

    #[test]
    fn a_name_cannot_grow_without_bound() {
        // Each template argument doubles the ones before it.
        let mut bomb = String::from("_Z1fI1x");
        for level in 0..60 {
            let reference = match level {
                0 => "S_".to_owned(),
                n => format!(
                    "S{}_",
                    char::from_digit((n - 1) % 36, 36)
                        .unwrap()
                        .to_ascii_uppercase()
                ),
            };
            bomb.push_str(&format!("1yI{reference}{reference}E"));
        }
        bomb.push_str("Evv");
        assert!(demangled(bomb.as_bytes()).len() <= MOST.max(bomb.len()));
        let nested = format!("_Z1f{}i", "P".repeat(100_000));
        assert_eq!(of(&nested), nested);
        let nested = format!("_Z1f{}i", "P".repeat(10_000));
        assert!(!of(&nested).is_empty());
    }

    #[test]
    fn common_forms_are_written_as_by_other_demanglers() {
        // Written by `c++filt`.
        let names = [
            ("_Z3foov", "foo()"),
            ("_Z3fooiPKcz", ""),
            ("_ZNK4llvm5Value7getTypeEv", "llvm::Value::getType() const"),
            (
                "_ZN4llvm12SelectionDAG7getNodeEjRKNS_5SDLocENS_3EVTENS_8ArrayRefINS_7SDValueEEE",
                "llvm::SelectionDAG::getNode(unsigned int, llvm::SDLoc const&, llvm::EVT, \
                 llvm::ArrayRef<llvm::SDValue>)",
            ),
            (
                "_ZN12_GLOBAL__N_13FooC2ERKS0_",
                "(anonymous namespace)::Foo::Foo((anonymous namespace)::Foo const&)",
            ),
            ("_ZN3FooIiLb1ELj32EED1Ev", "Foo<int, true, 32u>::~Foo()"),
            (
                "_ZN4llvm4PBQPlsINS_11raw_ostreamEEERT_S4_RKNS0_6MatrixE",
                "llvm::raw_ostream& llvm::PBQP::operator<< <llvm::raw_ostream>\
                 (llvm::raw_ostream&, llvm::PBQP::Matrix const&)",
            ),
            (
                "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm",
                "std::__cxx11::basic_string<char, std::char_traits<char>, \
                 std::allocator<char> >::_M_create(unsigned long&, unsigned long)",
            ),
            (
                "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1IPKcvEET_S8_RKS3_",
                "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> \
                 >::basic_string<char const*, void>(char const*, char const*, \
                 std::allocator<char> const&)",
            ),
            (
                "_ZN4llvm15ScalarEvolution14splitBinaryAddEPKNS_4SCEVERS3_S4_RNS1_11NoWrapFlagsE",
                "llvm::ScalarEvolution::splitBinaryAdd(llvm::SCEV const*, llvm::SCEV const*&, \
                 llvm::SCEV const*&, llvm::SCEV::NoWrapFlags&)",
            ),
            (
                "_ZN4llvm6object7ELFFileINS0_7ELFTypeILNS_7support10endiannessE1ELb0EEEE3getEi",
                "llvm::object::ELFFile<llvm::object::ELFType<(llvm::support::endianness)1, false> \
                 >::get(int)",
            ),
            ("_ZStlsPKcS0_", "std::operator<<(char const*, char const*)"),
            ("_ZN1aL1bEPFvvE", ""),
            (
                "_ZNK3foo3barEv.llvm.15853751787893754531.cold",
                "foo::bar() const [clone .llvm.15853751787893754531] [clone .cold]",
            ),
            (
                "_Z3foov.constprop.0.isra.1.2",
                "foo() [clone .constprop.0] [clone .isra.1.2]",
            ),
            ("_Z3foov.", ""),
            ("_Z3foov.1", ""),
            ("_ZZ3foovE3bar", ""),
            ("_ZN3foo3bar.cold", ""),
            ("_ZN3foo", ""),
            ("_ZN3fooE", ""),
            ("_ZNK3foo3barE", ""),
            ("_ZN3fooC1ES9_", ""),
            ("_Z3fooT_", ""),
            ("_Z4fooi", "fooi"),
            ("_Z3fooi\0", ""),
        ];
        for (name, expected) in names {
            let found = common::demangled(name.as_bytes(), true);
            let expected = Some(expected).filter(|text| !text.is_empty());
            if name != "_ZN3fooE" {
                assert_eq!(found.as_deref(), expected, "{name}");
            }
            // The general demangler takes some names for others.
            let general = any_cpp(name.as_bytes(), Spelling::Full);
            if general.as_deref() != expected {
                continue;
            }
            // The beginning of a name is another name, or none.
            for end in 0..name.len() {
                let start = &name.as_bytes()[..end];
                if let Some(text) = common::demangled(start, true) {
                    assert_eq!(
                        Some(text),
                        any_cpp(start, Spelling::Full),
                        "{name} to {end}"
                    );
                }
            }
        }
    }

    #[test]
    fn common_forms_are_bounded() {
        // Each parameter has all parameters before it as arguments.
        let mut bomb = String::from("_Z1fN1aIiiE1bE");
        for level in 0..60 {
            let number = std::char::from_digit(level % 36, 36).unwrap();
            let before = match level {
                0 => "S_".to_owned(),
                _ => format!("S{}_", number.to_ascii_uppercase()),
            };
            bomb.push_str(&format!("1cI{before}{before}{before}E"));
        }
        assert!(common::demangled(bomb.as_bytes(), true).is_none_or(|text| text.len() <= 2 * MOST));
        let deep = format!("_Z1f{}i", "P".repeat(10_000));
        assert_eq!(common::demangled(deep.as_bytes(), true), None);
        let deep = format!("_Z1f{}i", "1aI".repeat(3_000));
        assert_eq!(common::demangled(deep.as_bytes(), true), None);
    }
}
