//! `perfconv extract-aux`: the AUX data of a recording as files.

use std::path::Path;

use super::open;
use perfdata_core::read::Limits;

use crate::cli::ExtractAuxArgs;
use crate::messages::Messages;
use perfdata_convert::io::{Output, OutputDirectory};
use perfdata_convert::{Error, Result};
use perfdata_report::aux_data::{EXTENSION, ExtractAux, INDEX};

/// Extracts the AUX data according to `args`.
pub fn run(args: &ExtractAuxArgs, limits: Limits, messages: Messages) -> Result<()> {
    let is_ours = |path: &Path| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        path.is_file() && (name == INDEX || name.ends_with(EXTENSION))
    };
    let directory = OutputDirectory::create(&args.output, &args.input, args.force, is_ours)?;
    let directory = directory.synced(!args.no_sync);
    if let Some(sideband) = args
        .sideband
        .as_deref()
        .filter(|sideband| directory.would_replace(sideband))
    {
        let what = format!(
            "{} is inside the output directory and would be deleted: choose another path",
            sideband.display()
        );
        return Err(Error::Usage(what));
    }
    let sideband = args
        .sideband
        .as_deref()
        .map(|path| Output::create(path, &args.input, args.force))
        .transpose()?;
    let sideband = sideband.map(|sideband| sideband.synced(!args.no_sync));
    let extraction = ExtractAux::new(directory).with_sideband(sideband);
    let report = extraction.run(open(&args.input, limits, messages)?)?;
    report.notes.iter().for_each(|note| messages.note(note));
    let files = if report.queues == 1 { "file" } else { "files" };
    messages.summary(format_args!(
        "{} {files}, {} bytes of AUX data",
        report.queues, report.bytes
    ));
    Ok(())
}
