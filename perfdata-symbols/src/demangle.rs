//! Names of functions as their source code spells them: C++, Rust, OCaml and Java.

mod java;
mod ocaml;
mod rust_hash;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::{self, Write};

use perfdata_demangle::{Demangler, Style};

/// Maximum length of a demangled Rust name in bytes. A few bytes of a mangled name can stand for
/// gigabytes.
const MAX_RUST_TEXT: usize = 1 << 16;

/// Maximum length of a mangled Rust name in bytes. Parsing takes time and stack for each byte.
const MAX_MANGLED_RUST: usize = 1 << 14;

/// What follows the name of a function in that of its entry in a procedure linkage table.
const PLT: &[u8] = b"@plt";

/// Returns the demangled form of a C++, Rust, OCaml or Java symbol, with parameters and without the
/// hash of a Rust symbol; other names unchanged.
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
    /// C++ names without parameters, types of results, and what compilers append; Rust names without
    /// what compilers append. perf 6.1.
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

/// Returns the demangled form of a C++, Rust, OCaml or Java symbol in one of its spellings; other
/// names unchanged.
///
/// ```
/// use perfdata_symbols::{Spelling, demangled_as};
/// let name = b"_ZNK4llvm5Value7getTypeEv";
/// assert_eq!(&*demangled_as(name, Spelling::WithoutParameters), b"llvm::Value::getType");
/// ```
pub fn demangled_as(name: &[u8], spelling: Spelling) -> Cow<'_, [u8]> {
    // The names of entries of procedure linkage tables are made of those of functions.
    let Some(stem) = name.strip_suffix(PLT) else {
        return of_function(name, spelling);
    };
    match of_function(stem, spelling) {
        Cow::Owned(mut text) => {
            text.extend_from_slice(PLT);
            Cow::Owned(text)
        }
        Cow::Borrowed(_) => Cow::Borrowed(name),
    }
}

fn of_function(name: &[u8], spelling: Spelling) -> Cow<'_, [u8]> {
    let text = match (name.first(), spelling) {
        (Some(b'c'), _) => ocaml::demangled(name),
        (Some(b'L'), _) => java::demangled(name),
        (Some(b'_'), Spelling::RustAsCpp) => cpp(name, spelling).map(|text| {
            let rust = std::str::from_utf8(&text).ok().and_then(rust_hash::spelled);
            rust.map_or(text, String::into_bytes)
        }),
        (Some(b'_'), _) => rust(name, spelling).or_else(|| cpp(name, spelling)),
        _ => None,
    };
    match text {
        Some(text) => Cow::Owned(text),
        None => Cow::Borrowed(name),
    }
}

/// Returns the demangled form of a symbol without parameters in every language, for displays of many
/// names; other names unchanged. C++ names are those of `c++filt --no-verbose --no-params`.
///
/// ```
/// use perfdata_symbols::demangled_without_parameters;
/// let short = |name| String::from_utf8_lossy(&demangled_without_parameters(name)).into_owned();
/// assert_eq!(short(b"_ZNK7FunctorclEl.cold"), "Functor::operator()");
/// assert_eq!(short(b"Ljava/lang/String;hashCode(I[B)V"), "java.lang.String.hashCode");
/// ```
pub fn demangled_without_parameters(name: &[u8]) -> Cow<'_, [u8]> {
    let text = demangled_as(name, Spelling::WithoutParameters);
    match text {
        Cow::Owned(mut text) if name.starts_with(b"L") => {
            let parameters = memchr::memchr(b'(', &text);
            text.truncate(parameters.unwrap_or(text.len()));
            Cow::Owned(text)
        }
        text => text,
    }
}

fn rust(name: &[u8], spelling: Spelling) -> Option<Vec<u8>> {
    let is_mangled = name.starts_with(b"_R") || name.starts_with(b"_Z");
    if !is_mangled || name.len() > MAX_MANGLED_RUST {
        return None;
    }
    let mut name = std::str::from_utf8(name).ok()?;
    if spelling == Spelling::WithoutParameters && name.starts_with("_R") {
        name = name.split_once('.').map_or(name, |(name, _)| name);
    }
    let parsed = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Limited(String::with_capacity(name.len()));
    // The alternate form has no hash.
    write!(out, "{parsed:#}").ok()?;
    Some(out.0.into_bytes())
}

fn cpp(name: &[u8], spelling: Spelling) -> Option<Vec<u8>> {
    thread_local! {
        static DEMANGLER: RefCell<Demangler> = RefCell::default();
    }
    let style = match spelling {
        Spelling::Full | Spelling::RustAsCpp => Style::new(),
        Spelling::WithoutParameters => Style::new().without_parameters(),
    };
    DEMANGLER.with_borrow_mut(|demangler| Some(demangler.demangle(name, style)?.to_vec()))
}

/// Text up to [`MAX_RUST_TEXT`] bytes.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len().saturating_add(text.len()) > MAX_RUST_TEXT {
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
            of("_ZdlPvm@plt"),
            "operator delete(void*, unsigned long)@plt"
        );
        assert_eq!(of("_Z@plt"), "_Z@plt");
        assert_eq!(of("memcpy@plt"), "memcpy@plt");
        assert_eq!(
            of("_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE"),
            "core::ptr::drop_in_place<alloc::string::String>"
        );
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
}
