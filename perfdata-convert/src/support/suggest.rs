//! "Did you mean …?" for names with typing errors.

/// Minimum similarity of words, with the same measure as for options and commands.
const ALIKE: f64 = 0.7;

/// Returns the one of `names` that is most similar to `word`, if it is similar enough. Ignores
/// upper and lower case.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let likeness = |name: &&'a str| strsim::jaro(&word, &name.to_lowercase());
    let rated = names.into_iter().map(|name| (likeness(&name), name));
    rated
        .filter(|(rate, _)| *rate > ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Returns an addition to an error about `word`: the similar name, or nothing.
pub fn hint<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearly_right_is_found() {
        let names = ["HOSTNAME", "CMDLINE", "NRCPUS"];
        assert_eq!(nearest("hostnam", names), Some("HOSTNAME"));
        assert_eq!(nearest("CMDLNE", names), Some("CMDLINE"));
        assert_eq!(nearest("zzz", names), None);
        assert_eq!(hint("nrcpu", names), "; did you mean NRCPUS?");
        assert_eq!(hint("zzz", names), "");
    }
}
