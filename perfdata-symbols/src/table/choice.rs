//! perf's choice between symbols at the same address (tools/perf/util/symbol.c,
//! `choose_best_symbol`, Linux 7.2).

use std::borrow::Cow;

use super::list::New;
use crate::names::Names;

/// The properties of a symbol on which the choice between symbols at the same address depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Properties {
    /// Whether the symbol has no type: `STT_NOTYPE`.
    pub is_untyped: bool,
    /// Whether its binding is `STB_WEAK`.
    pub is_weak: bool,
    /// Whether its binding is `STB_GLOBAL`.
    pub is_global: bool,
}

/// Returns the shown form of a name.
pub(crate) type Demangle = for<'a> fn(&'a [u8]) -> Cow<'a, [u8]>;

/// The best of several symbols at an address.
pub(super) enum Best<T> {
    One(T),
    /// The names decide.
    Tie(Vec<T>),
}

/// Returns the best of symbols at the same address, which are in the order of insertion.
pub(super) fn best_of<T: Copy>(
    same: &[T],
    new: impl Fn(&T) -> &New,
    names: &Names,
    demangled: Demangle,
) -> Option<Best<T>> {
    if let [one] = same {
        return Some(Best::One(*one));
    }
    let best = same.iter().map(|one| rank(new(one))).max()?;
    let mut tied = same.iter().copied().filter(|one| rank(new(one)) == best);
    let first = tied.next()?;
    let Some(second) = tied.next() else {
        return Some(Best::One(first));
    };
    let tied: Vec<T> = [first, second].into_iter().chain(tied).collect();
    if tied.iter().all(|one| new(one).end == new(&first).end) {
        return Some(Best::Tie(tied));
    }
    best_named(tied.into_iter(), |one| new(one).name, names, demangled).map(Best::One)
}

/// Returns what perf compares before the names: the larger one is preferred.
fn rank(new: &New) -> (bool, bool, bool, bool) {
    let Properties {
        is_untyped,
        is_weak,
        is_global,
    } = new.properties;
    (new.end > new.start, !is_untyped, !is_weak, is_global)
}

/// What the choice between symbols with the same properties depends on in their demangled names.
#[derive(Debug, Clone, Copy)]
struct Shape {
    underscores: usize,
    len: usize,
    /// Whether this is an alias of a system call in old kernels.
    is_alias: bool,
}

impl Shape {
    fn of(name: &[u8]) -> Self {
        Shape {
            underscores: name.iter().take_while(|&&byte| byte == b'_').count(),
            len: name.len(),
            is_alias: name.starts_with(b"SyS") || name.starts_with(b"compat_SyS"),
        }
    }

    /// Returns whether perf prefers this symbol to the one before it (`choose_best_symbol`).
    fn is_better_than(self, before: Shape) -> bool {
        if self.underscores != before.underscores {
            return self.underscores < before.underscores;
        }
        if self.len != before.len {
            return self.len > before.len;
        }
        before.is_alias
    }
}

/// Returns the symbol whose name perf prefers. `name` returns the offset of a symbol's name.
pub(super) fn best_named<T>(
    symbols: impl Iterator<Item = T>,
    name: impl Fn(&T) -> u32,
    names: &Names,
    demangled: Demangle,
) -> Option<T> {
    let mut best: Option<(T, Cow<'_, [u8]>, Shape)> = None;
    for symbol in symbols {
        let new = names.get(name(&symbol));
        // Most of them are the same symbol in a table of all symbols and in that of the dynamic ones.
        let shape = match &best {
            Some((_, known, shape)) if *known == new => *shape,
            _ => Shape::of(&demangled(&new)),
        };
        if best
            .as_ref()
            .is_none_or(|(_, _, before)| shape.is_better_than(*before))
        {
            best = Some((symbol, new, shape));
        }
    }
    best.map(|(symbol, ..)| symbol)
}
