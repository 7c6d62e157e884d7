//! `perfconv dump`: every record with all its fields.

use std::io::Write;

use perfdata_core::read::Limits;
use perfdata_export::Sources;
use perfdata_recipe::not_unwound;
use perfdata_session::UserCallchains;
use perfdata_unwind::UserStacks;

use super::open_unseen;
use crate::cli::DumpArgs;
use crate::messages::Messages;
use perfdata_convert::Result;
use perfdata_convert::count::number_of;
use perfdata_convert::io::Input;
use perfdata_report::show::aux_packets::{AuxPackets, AuxPacketsShown};
use perfdata_report::show::dump::{Dump, Dumped};
use perfdata_report::show::resolved::Resolved;

/// Shows the records according to `args`.
pub fn run(args: &DumpArgs, out: &mut dyn Write, limits: Limits, messages: Messages) -> Result<()> {
    let types = args
        .types
        .iter()
        .map(|name| Dump::type_of(name))
        .collect::<Result<_>>()?;
    let input = open_unseen(&args.input, limits, messages)?;
    if args.aux {
        return packets(args, input, out, messages);
    }
    if args.resolved {
        let resolved = Resolved::default()
            .with_json(args.json)
            .with_skip(args.skip)
            .with_limit(args.limit);
        let sources = Sources::default().with_bundle(input.bundle_folder()?);
        let stacks = (!args.no_unwind).then(|| UserStacks::new(sources));
        let unwound = stacks.as_ref().map(UserStacks::result);
        let unwinder = stacks.map(|stacks| Box::new(stacks) as Box<dyn UserCallchains>);
        for damage in resolved.run(input, out, unwinder)? {
            messages.warning(damage);
        }
        let unwound = unwound.iter();
        unwound
            .flat_map(|unwound| not_unwound(unwound, None))
            .for_each(|note| messages.note(note));
        return Ok(());
    }
    let dump = Dump::default()
        .with_json(args.json)
        .with_hex(args.hex)
        .with_types(types)
        .with_skip(args.skip)
        .with_limit(args.limit);
    let Dumped {
        counts,
        shown,
        damage,
        ..
    } = dump.run(input, out)?;
    for damage in damage {
        messages.warning(damage);
    }
    match args.limit {
        Some(limit) if shown >= limit => {
            messages.detail(format_args!(
                "{shown} shown of {counts}; stopped at the limit"
            ));
        }
        _ => messages.detail(format_args!("{shown} shown of {counts}")),
    }
    Ok(())
}

/// Shows the packets of hardware traces.
fn packets(args: &DumpArgs, input: Input, out: &mut dyn Write, messages: Messages) -> Result<()> {
    let packets = AuxPackets::default()
        .with_json(args.json)
        .with_limit(args.limit);
    let AuxPacketsShown {
        packets,
        bad,
        damage,
        ..
    } = packets.run(input, out)?;
    for damage in damage {
        messages.warning(damage);
    }
    match (packets, bad) {
        (0, 0) if args.limit != Some(0) => messages.note("the recording has no AUX data"),
        (_, 0) => {}
        (_, bad) => messages.note(format_args!(
            "{} of the traces are no packets",
            number_of(bad, "byte")
        )),
    }
    messages.detail(format_args!("{} shown", number_of(packets, "packet")));
    Ok(())
}
