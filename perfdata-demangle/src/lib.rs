//! C++ names of the [Itanium ABI], as binutils and perf write them.
//!
//! ```
//! use perfdata_demangle::{Style, demangle};
//!
//! let name = b"_ZN5mozil3BoxIiE4callEPKc.cold";
//! let text = |style| demangle(name, style).map(|text| String::from_utf8_lossy(&text).into_owned());
//! assert_eq!(text(Style::new()).unwrap(), "mozil::Box<int>::call(char const*) [clone .cold]");
//! assert_eq!(text(Style::new().without_parameters()).unwrap(), "mozil::Box<int>::call");
//! assert_eq!(demangle(b"main", Style::new()), None);
//! ```
//!
//! The text is that of `c++filt` of binutils (libiberty), byte for byte: spaces, parentheses,
//! references that collapse, packs of parameters, and what is left out. [`Style`] has its options.
//!
//! # Why another demangler
//!
//! Tools compare and merge profiles by the text of names, so that they must be equal in all of them.
//! Measured with the names that libraries export, against `c++filt --no-verbose` (x86-64, one core,
//! release builds of 2026-11-27):
//!
//! | library | names | `cpp_demangle` 0.5.1 differs | this crate differs | time of both |
//! |---|---|---|---|---|
//! | libstdc++ 12 | 5,864 | 422 (7 %) | 0 | 17 and 4 ms |
//! | LLVM 15 | 39,391 | 5,349 (14 %) | 0 | 138 and 45 ms |
//! | Qt 5.15 Gui | 8,781 | 317 (4 %) | 0 | 22 and 4 ms |
//!
//! Some differences are only spellings: `(unsigned int)8` for `8u`, `{vtable(A)}` for `vtable for A`.
//! Others are wrong names, which no correction of the text can repair: a parameter whose type repeats
//! a template argument is lost (`basic_string<char const*>(char const*, allocator)` for the one with
//! two pointers), and an empty pack leaves a comma. `itanium-demangle` writes names without parameters
//! only, and 3 % of them differ.
//!
//! # Guarantees
//!
//! Names are not trusted: nothing panics, and the depth of recursion, the number of steps and the
//! length of the text are limited ([`MAX_MANGLED`], [`MAX_TEXT`]). A few bytes of a name can stand for
//! gigabytes of text; such a name is not demangled.
//!
//! [Itanium ABI]: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod builtin;
mod node;
mod operators;
mod parse;
mod print;

/// Maximum length of a mangled name in bytes.
pub const MAX_MANGLED: usize = 1 << 16;

/// Maximum length of a text in bytes.
pub const MAX_TEXT: usize = 1 << 16;

/// How names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    has_parameters: bool,
    is_verbose: bool,
}

impl Style {
    /// With parameters, and `std::string` where the name abbreviates it: `c++filt --no-verbose`.
    pub const fn new() -> Style {
        Style {
            has_parameters: true,
            is_verbose: false,
        }
    }

    /// Without the parameters, the result and the qualifiers of the function, and without what
    /// compilers append to the names of copies: `c++filt --no-params`.
    #[must_use]
    pub const fn without_parameters(mut self) -> Style {
        self.has_parameters = false;
        self
    }

    /// With `std::basic_string<char, std::char_traits<char>, std::allocator<char> >` for
    /// `std::string`: `c++filt` without `--no-verbose`.
    #[must_use]
    pub const fn verbose(mut self) -> Style {
        self.is_verbose = true;
        self
    }
}

impl Default for Style {
    fn default() -> Style {
        Style::new()
    }
}

/// Returns the text of a mangled name: `_Z…`, or `_GLOBAL__I_…` for the constructors of a file. `None`
/// for other names, and for those whose text would be too long.
///
/// A [`Demangler`] is faster for many names.
pub fn demangle(name: &[u8], style: Style) -> Option<Vec<u8>> {
    let mut demangler = Demangler::new();
    demangler.demangle(name, style)?;
    Some(demangler.text.out)
}

/// The memory that demangling needs, for many names. It holds at most a few megabytes.
#[derive(Debug, Default)]
pub struct Demangler {
    parsed: parse::Buffers,
    text: print::Buffers,
}

impl Demangler {
    /// Returns a demangler.
    pub fn new() -> Demangler {
        Demangler::default()
    }

    /// Does the same as [`demangle`].
    pub fn demangle(&mut self, name: &[u8], style: Style) -> Option<&[u8]> {
        if name.len() > MAX_MANGLED || !name.starts_with(b"_") {
            return None;
        }
        let parsed = &mut self.parsed;
        let root = parse::symbol(name, parsed, style.has_parameters, style.is_verbose)?;
        print::text(name, &parsed.tree, root, &mut self.text, MAX_TEXT)?;
        Some(&self.text.out)
    }
}
