//! Names with their texts, and properties that hold for every name.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a panic fails the test"
)]

use perfdata_demangle::{Demangler, MAX_MANGLED, MAX_TEXT, Style, demangle};

/// Names, and their texts with and without parameters.
const NAMES: &str = include_str!("names.txt");

const STYLES: [Style; 4] = [
    Style::new(),
    Style::new().verbose(),
    Style::new().without_parameters(),
    Style::new().without_parameters().verbose(),
];

/// The lines of [`NAMES`].
fn names() -> impl Iterator<Item = [&'static str; 3]> {
    let lines = NAMES.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        fields.try_into().unwrap()
    })
}

/// Returns the text of a name, or the name itself, as `c++filt` does.
fn text(name: &str, style: Style) -> String {
    let text = demangle(name.as_bytes(), style);
    text.map_or(name.to_owned(), |text| String::from_utf8(text).unwrap())
}

#[test]
fn texts_are_those_of_binutils() {
    assert!(names().count() > 400);
    for [name, full, short] in names() {
        assert_eq!(text(name, Style::new()), full, "{name}");
        let style = Style::new().without_parameters();
        assert_eq!(text(name, style), short, "{name}, without parameters");
    }
}

#[test]
fn verbose_names_have_no_abbreviations() {
    let name = "_ZNSi3getERSs";
    assert_eq!(text(name, Style::new()), "std::istream::get(std::string&)");
    assert_eq!(
        text(name, Style::new().verbose()),
        "std::basic_istream<char, std::char_traits<char> >::get(std::basic_string<char, \
         std::char_traits<char>, std::allocator<char> >&)"
    );
}

#[test]
fn a_demangler_can_be_used_again() {
    let mut demangler = Demangler::new();
    for [name, ..] in names() {
        for style in STYLES {
            let again = demangler.demangle(name.as_bytes(), style);
            assert_eq!(again, demangle(name.as_bytes(), style).as_deref(), "{name}");
        }
    }
}

#[test]
fn beginnings_and_changed_names_are_demangled_or_refused() {
    let mut demangler = Demangler::new();
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let below = u64::try_from(below).unwrap();
        usize::try_from((state >> 11) % below).unwrap()
    };
    let known: Vec<&[u8]> = names().map(|[name, ..]| name.as_bytes()).collect();
    for name in &known {
        all.extend((0..name.len()).map(|end| name[..end].to_vec()));
        for _ in 0..50 {
            // Bytes, and parts of other names, which are more often valid.
            let mut changed = name.to_vec();
            for _ in 0..=random(3) {
                let at = random(changed.len());
                let other = known[random(known.len())];
                let start = random(other.len());
                let end = start + random(other.len() - start + 1);
                match random(3) {
                    0 => changed[at] = other[start],
                    1 => drop(changed.splice(at..at, other[start..end].iter().copied())),
                    _ => changed.truncate(at.max(2)),
                }
            }
            all.push(changed);
        }
    }
    for name in all {
        for style in STYLES {
            let text = demangler.demangle(&name, style);
            assert!(text.is_none_or(|text| text.len() <= MAX_TEXT));
        }
    }
}

/// Returns the reference to a substitution.
fn substitution(number: usize) -> String {
    let digit = |number: usize| char::from(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[number]);
    match number {
        0 => "S_".to_owned(),
        1..=36 => format!("S{}_", digit(number - 1)),
        _ => format!("S{}{}_", digit((number - 1) / 36), digit((number - 1) % 36)),
    }
}

#[test]
fn time_and_text_are_bounded() {
    let mut bombs: Vec<String> = Vec::new();
    // Each argument has all arguments before it twice.
    let mut doubled = String::from("_Z1fI1x");
    let mut empty = String::from("_Z1fI1xIJEE");
    for level in 0..600 {
        let before = substitution(level);
        doubled.push_str(&format!("1yI{before}{before}E"));
        empty.push_str(&format!("1yIJ{before}{before}EE"));
    }
    bombs.push(doubled + "Evv");
    bombs.push(empty + "Evv");
    // Packs of packs.
    let packs = "DpT_".repeat(4000);
    bombs.push(format!("_Z1fIJ{}EEv{packs}", "i".repeat(4000)));
    // Depth.
    for unit in [
        "P", "1aI", "N1aI", "FP", "A_", "M1a", "DpP", "DTng", "Dv_1xT", "K", "U1a",
    ] {
        bombs.push(format!("_Z1f{}i", unit.repeat(20_000)));
    }
    for unit in [
        "Z",
        "Z1fI",
        "L_Z1fIX",
        "1fIXng",
        "1fIXcvT_I",
        "1fIXsrN1a",
        "1fIJ",
    ] {
        bombs.push(format!("_Z{}i", unit.repeat(9_000)));
    }
    // Attempts inside of attempts.
    for depth in [20, 100, 300] {
        bombs.push(format!("_ZN1Acv{}iEv", "T_I".repeat(depth)));
        bombs.push(format!(
            "_ZN1Acv{}i{}Ev",
            "T_IcvT_I".repeat(depth),
            "E".repeat(2 * depth)
        ));
        bombs.push(format!("_Z1fIX{}i", "sr1aIX".repeat(depth)));
        bombs.push(format!("_Z1fIX{}i", "srN1aIX".repeat(depth)));
        bombs.push(format!(
            "_Z1fIiEDT{}fp_{}ET_",
            "srNT_1aIX".repeat(depth),
            "EE1b".repeat(depth)
        ));
    }
    // References to arguments, each with a saved scope.
    bombs.push(format!("_Z1fIiEv{}", "RT_".repeat(20_000)));
    bombs.push(format!(
        "_Z1fI{}Ev{}",
        "RK1a".repeat(5_000),
        "RT4999_".repeat(5_000)
    ));
    bombs.push(format!("_Z1f{}", ["Pi", "RS_"].concat().repeat(10_000)));
    let mut demangler = Demangler::new();
    for bomb in bombs {
        for style in STYLES {
            let start = std::time::Instant::now();
            let text = demangler.demangle(bomb.as_bytes(), style);
            assert!(text.is_none_or(|text| text.len() <= MAX_TEXT));
            let time = start.elapsed();
            let name = &bomb[..bomb.len().min(60)];
            // Without a bound it takes hours; an emulated machine takes seconds.
            assert!(time.as_secs() < 60, "{name}… takes {time:?}");
        }
    }
    let long = format!("_Z{}{}", MAX_MANGLED, "a".repeat(MAX_MANGLED));
    assert_eq!(demangle(long.as_bytes(), Style::new()), None);
}
