//! Writes a large recording for measurements:
//!
//!     cargo run --release -p perfdata-tests --example generate -- callchains 500M /tmp/large.data

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Parser;
use perfdata_core::Endian;
use perfdata_tests::generate::{Generator, Mix};

/// Writes a large recording for measurements: the same one for the same options.
#[derive(Parser)]
struct Options {
    /// Main content: callchains, events, tracepoints, system, compressed or stacks.
    #[arg(value_parser = |name: &str| Mix::by_name(name).ok_or("no such mix"))]
    mix: Mix,
    /// Size of the records in bytes; K, M and G mean 10^3, 10^6 and 10^9.
    #[arg(value_parser = bytes)]
    size: u64,
    /// File to write; - means standard output, in pipe mode.
    output: PathBuf,
    /// Writes pipe mode.
    #[arg(long)]
    pipe: bool,
    /// Writes big-endian byte order.
    #[arg(long)]
    big_endian: bool,
    /// Seed: another value generates another recording of the same kind.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn bytes(text: &str) -> Result<u64, String> {
    let unit = |letter: char| match letter {
        'K' => Some(1_000),
        'M' => Some(1_000_000),
        'G' => Some(1_000_000_000),
        _ => None,
    };
    let (digits, unit) = match text.chars().last().and_then(unit) {
        Some(unit) => (&text[..text.len() - 1], unit),
        None => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|e| format!("{e}"))?;
    number.checked_mul(unit).ok_or_else(|| "too large".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let endian = if options.big_endian {
        Endian::Big
    } else {
        Endian::Little
    };
    let generator = Generator {
        mix: options.mix,
        size: options.size,
        endian,
        seed: options.seed,
    };
    if options.output.as_os_str() == "-" {
        generator.pipe(std::io::stdout().lock())?.flush()?;
    } else if options.pipe {
        generator
            .pipe(BufWriter::new(File::create(&options.output)?))?
            .flush()?;
    } else {
        generator.file(File::create(&options.output)?)?;
    }
    Ok(())
}
