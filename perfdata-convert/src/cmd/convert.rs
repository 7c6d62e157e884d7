//! `perfconv convert`, and the commands that are a short form of it.

use perfdata_core::header::ContainerKind;

use crate::cli::ConvertArgs;
use crate::convert::Conversion;
use crate::error::Result;
use crate::io::Output;

/// Converts by `args`; `to` is the container that the command's name asks for.
pub fn run(args: &ConvertArgs, to: Option<ContainerKind>) -> Result<()> {
    let output = Output::create(&args.output, &args.input, args.force)?;
    let summary = Conversion { stages: Vec::new(), to }.run(&args.input, output)?;
    if let Some((bytes, why)) = summary.unreadable {
        eprintln!("perfconv: warning: the last {bytes} bytes are no whole record: {why}");
    }
    if !args.quiet {
        eprintln!("perfconv: {} records", summary.records);
    }
    Ok(())
}
