//! `perfconv dump`: every record, with all fields.

use std::io::Write;

use perfdata_core::read::Limits;

use crate::cli::DumpArgs;
use crate::error::Result;
use crate::io::Input;
use crate::messages::Messages;
use crate::show::dump::Dump;

/// Shows the records by `args`.
pub fn run(args: &DumpArgs, out: &mut dyn Write, limits: Limits, messages: Messages) -> Result<()> {
    let types = args.types.iter().map(|name| Dump::type_of(name)).collect::<Result<_>>()?;
    let dump = Dump { json: args.json, hex: args.hex, types, limit: args.limit };
    for damage in dump.run(Input::open(&args.input)?.limited_by(limits), out)? {
        messages.warning(damage);
    }
    Ok(())
}
