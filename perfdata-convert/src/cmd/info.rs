//! `perfconv info`: what is in a recording, without its records.

use crate::cli::InfoArgs;
use crate::error::Result;
use crate::io::Input;
use crate::show::overview::Overview;

/// Shows the recording by `args`.
pub fn run(args: &InfoArgs) -> Result<()> {
    let overview = Overview::of(Input::open(&args.input)?)?;
    super::print(&if args.json { overview.json() } else { overview.text() })
}
