//! Writes a large recording for measuring:
//!
//!     cargo run --release -p perfdata-tests --example generate -- callchains 500M /tmp/large.data

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Parser;
use perfdata_core::Endian;
use perfdata_tests::generate::{Generator, Mix};

/// Writes a large recording for measuring: the same one for the same options.
#[derive(Parser)]
struct Options {
    /// What it is full of: callchains, events, tracepoints, system, compressed or stacks.
    #[arg(value_parser = |name: &str| Mix::by_name(name).ok_or("no such mix"))]
    mix: Mix,
    /// Bytes of records; K, M and G stand for thousands, millions and thousands of millions.
    #[arg(value_parser = bytes)]
    size: u64,
    /// File to write; - for standard output, then as a pipe.
    output: PathBuf,
    /// Writes pipe mode.
    #[arg(long)]
    pipe: bool,
    /// Writes the big-endian byte order.
    #[arg(long)]
    big_endian: bool,
    /// Another one of the kind.
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
    let endian = if options.big_endian { Endian::Big } else { Endian::Little };
    let generator = Generator { mix: options.mix, size: options.size, endian, seed: options.seed };
    if options.output.as_os_str() == "-" {
        generator.pipe(std::io::stdout().lock())?.flush()?;
    } else if options.pipe {
        generator.pipe(BufWriter::new(File::create(&options.output)?))?.flush()?;
    } else {
        generator.file(File::create(&options.output)?)?;
    }
    Ok(())
}
