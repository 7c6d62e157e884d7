//! Writes the macro `per_fixture!`, which creates a named test for every recording in `fixtures/`.

use std::{env, fmt::Write as _, fs, io, path::Path};

fn main() -> io::Result<()> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    println!("cargo:rerun-if-changed=../fixtures");

    let mut names = Vec::new();
    for entry in fs::read_dir(&fixtures)? {
        let name = entry?.file_name();
        if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".data")) {
            names.push(name.to_owned());
        }
    }
    names.sort();

    let mut tests = String::new();
    for name in names {
        let function = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        writeln!(
            tests,
            "        #[test]\n        fn perf_{function}() {{ $crate::recordings::check_fixture({name:?}, $check) }}"
        )
        .expect("writing to a string");
    }
    let source = format!(
        "/// One `#[test]` for each recording in `fixtures/`, named after it, that calls `$check` with it.\n\
         ///\n\
         /// `$check` is a `fn(&Recording) -> Result<(), String>`. A file with several checks puts each into a\n\
         /// module of its own: `mod round_trip {{ perfdata_tests::per_fixture!(super::round_trip); }}`.\n\
         #[macro_export]\n\
         macro_rules! per_fixture {{\n    ($check:expr) => {{\n{tests}    }};\n}}\n"
    );
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("fixtures.rs"), source)
}
