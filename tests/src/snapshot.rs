//! Texts that were found right once and must stay so.

use std::{env, fs, path::Path};

/// Panics unless `text` is the content of the file at `path`; with the variable `UPDATE_SNAPSHOTS` writes it.
pub fn check(path: &Path, text: &str) {
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if let Some((number, (is, was))) = (1..).zip(text.lines().zip(expected.lines())).find(|(_, (is, was))| is != was) {
        panic!("{}, line {number}:\n- {was}\n+ {is}\nUPDATE_SNAPSHOTS=1 accepts it", path.display());
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "lines of {}", path.display());
}
