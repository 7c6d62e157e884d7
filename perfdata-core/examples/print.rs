//! Prints all records of a recording with their fields, one per line, in time order. This includes
//! records compressed by `perf record -z`:
//!
//!     cargo run -p perfdata-core --example print -- perf.data

use std::{
    env,
    error::Error,
    fmt::Write as _,
    io::{self, Write as _},
};

use perfdata_core::describe::{Describe, Leaf, Style, Visitor};
use perfdata_core::wire::until_nul;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: print RECORDING")?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut records = perfdata_core::open(path)?.by_time();
    while let Some(record) = records.next()? {
        let mut line = Line(format!("{:#x} {}", record.offset, record.kind));
        record.decode()?.describe("", Style::Plain, &mut line);
        writeln!(out, "{}", line.0)?;
    }
    Ok(())
}

/// Appends the fields of a value to a line. Their declarations provide them, so it depends on no
/// particular record.
struct Line(String);

impl Visitor for Line {
    fn begin(&mut self, _: &'static str) {}

    fn begin_list(&mut self, name: &'static str, len: usize) {
        let _ = write!(self.0, " {name}[{len}]");
    }

    fn end(&mut self) {}

    fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
        // Writing to a string does not fail.
        let _ = match value {
            Leaf::Count(_) | Leaf::Pad(_) => Ok(()),
            Leaf::Uint(number, Style::Hex | Style::Address | Style::Callchain) => {
                write!(self.0, " {name}={number:#x}")
            }
            Leaf::Uint(number, _) => write!(self.0, " {name}={number}"),
            Leaf::Int(number) => write!(self.0, " {name}={number}"),
            Leaf::Float(number) => write!(self.0, " {name}={number}"),
            Leaf::Code(_, Some(code), _) => write!(self.0, " {name}={code}"),
            Leaf::Code(number, None, _) => write!(self.0, " {name}={number}"),
            Leaf::Flags { word, .. } => write!(self.0, " {name}={word:#x}"),
            Leaf::Text(text) => write!(
                self.0,
                " {name}={:?}",
                String::from_utf8_lossy(until_nul(text))
            ),
            _ => write!(self.0, " {name}=({size} bytes)"),
        };
    }
}
