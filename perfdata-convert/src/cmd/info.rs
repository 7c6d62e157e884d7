//! `perfconv info`: what is in a recording, without its records.

use std::io::Write;

use crate::cli::InfoArgs;
use crate::error::Result;
use crate::io::Input;
use crate::show::overview::Overview;

/// Shows the recording by `args`.
pub fn run(args: &InfoArgs, out: &mut dyn Write) -> Result<()> {
    let overview = Overview::of(Input::open(&args.input)?)?;
    super::print(out, &if args.json { overview.json() } else { overview.text() })
}
