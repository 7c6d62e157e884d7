//! Writes the initial inputs of a fuzz target to a folder:
//! `cargo run --example fuzz_seeds -- TARGET FOLDER`.

use std::{env, error::Error, fs, path::Path};

use perfdata_tests::fuzz;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let (Some(name), Some(folder), None) = (words.next(), words.next(), words.next()) else {
        return Err("give a target and a folder".into());
    };
    let target = fuzz::target(&name).ok_or_else(|| format!("there is no target {name}"))?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    for (number, seed) in (target.seeds)().into_iter().enumerate() {
        fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
