//! `perfconv unbundle`: a bundle as a recording and folders that perf reads, or as an archive of `perf archive`.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use perfdata_bundle::{Bundle, Member, write_archive};
use perfdata_core::read::Limits;

use super::open_unseen;
use crate::cli::{UnbundleArgs, Unbundled};
use crate::messages::Messages;
use crate::suggestions::count;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{Output, OutputDirectory};

/// What the directory contains.
const NAMES: [&str; 4] = ["perf.data", "index.json", "debug", "root"];

/// Unpacks a bundle according to `args`.
pub fn run(args: &UnbundleArgs, limits: Limits, messages: Messages) -> Result<()> {
    if args.to == Unbundled::PerfArchive {
        return archive(args, limits, messages);
    }
    let is_ours = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| NAMES.contains(&name))
    };
    let directory = OutputDirectory::create(&args.output, &args.input, args.force, is_ours)?;
    let directory = directory.synced(!args.no_sync);
    let input = open_unseen(&args.input, limits, messages)?;
    let Some(bundle) = input.bundle() else {
        return Err(not_a_bundle());
    };
    let bundle = bundle.bundle();
    directory.write(|folder| unpack(bundle, folder))?;
    directory.finish()?;
    messages.summary(format_args!(
        "{} of objects",
        count(bundle.objects().count() as u64, "file")
    ));
    Ok(())
}

/// Writes the objects of a bundle as `perf archive` packs them.
fn archive(args: &UnbundleArgs, limits: Limits, messages: Messages) -> Result<()> {
    let output = Output::create(&args.output, &args.input, args.force)?;
    let output = output.synced(!args.no_sync);
    let input = open_unseen(&args.input, limits, messages)?;
    let (Some(bundle), Some(folder)) = (input.bundle(), input.bundle_folder()?) else {
        return Err(not_a_bundle());
    };
    let objects = || bundle.bundle().objects().map(|part| &part.member);
    let folder = (*folder).as_ref();
    let files = output.write_stream(limits.threads(), |out| {
        write_archive(objects(), folder, out).map_err(|error| match error {
            perfdata_bundle::Error::Io(error) => Error::io("archive")(error),
            perfdata_bundle::Error::Temporary(error) => Error::io(folder)(error),
            other => Error::Refused(other.to_string()),
        })
    })?;
    let copied = |member: &&Member| matches!(member, Member::Copied(_));
    match objects().filter(copied).count() {
        0 => {}
        without => messages.note(format_args!(
            "{} of objects without a build ID is not in the archive",
            count(without as u64, "file")
        )),
    }
    messages.summary(format_args!("{} of objects", count(files, "file")));
    Ok(())
}

fn not_a_bundle() -> Error {
    Error::Refused("this is a recording, not a bundle".into())
}

/// Writes the recording and the objects into `folder`.
fn unpack(bundle: &Bundle, folder: &Path) -> Result<()> {
    let failed = |error: perfdata_bundle::Error| match error {
        perfdata_bundle::Error::Temporary(error) => Error::io(folder)(error),
        other => Error::Refused(other.to_string()),
    };
    let path = folder.join("perf.data");
    let mut recording = bundle.recording().map_err(failed)?;
    let mut file = File::create_new(&path).map_err(Error::io(&path))?;
    io::copy(&mut recording, &mut file).map_err(Error::io(&path))?;
    if let Some(modified) = bundle.recorded_until() {
        let _ = file.set_modified(modified);
    }
    let path = folder.join("index.json");
    fs::write(&path, bundle.index().map_err(failed)?).map_err(Error::io(&path))?;
    for name in ["debug", "root"] {
        let path = folder.join(name);
        fs::create_dir(&path).map_err(Error::io(&path))?;
    }
    bundle.extract_objects(folder).map_err(failed)?;
    // perf searches the symbols of a kernel by the name of its object (tools/perf/util/build-id.c,
    // `build_id_cache__kallsyms_path`).
    for part in bundle.objects() {
        let Member::Cached { build_id, name } = &part.member else {
            continue;
        };
        if let ("kallsyms", Some(below)) = (*name, part.member.object_path()) {
            let place = folder
                .join("debug")
                .join("[kernel.kallsyms]")
                .join(build_id);
            fs::create_dir_all(&place).map_err(Error::io(&place))?;
            let (from, to) = (folder.join(below), place.join("kallsyms"));
            fs::hard_link(&from, &to)
                .or_else(|_| fs::copy(&from, &to).map(|_| ()))
                .map_err(Error::io(&to))?;
        }
    }
    Ok(())
}
