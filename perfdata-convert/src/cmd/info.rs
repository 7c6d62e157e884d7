//! `perfconv info`: what is in a recording, without its records.

use std::io::Write;

use super::{open, print};
use crate::cli::InfoArgs;
use crate::error::Result;
use crate::messages::Messages;
use crate::show::overview::Overview;

/// Shows the recording by `args`.
pub fn run(args: &InfoArgs, out: &mut dyn Write, messages: Messages) -> Result<()> {
    let overview = Overview::of(open(&args.input, messages)?)?;
    print(out, &if args.json { overview.json() } else { overview.text() })
}
