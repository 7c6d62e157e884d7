//! Bundles as inputs: a recording, and the objects that came with it.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use perfdata_bundle::{Bundle, Gathered};
use perfdata_core::read::{InputFile, Source};
use perfdata_session::BuildId;
use perfdata_symbols::{BundleFolder, CarriedContent};

use super::input::{Input, OpenInput, Written};
use super::spool::{annotated, failed, spool};
use crate::error::{Error, Result};
use crate::interrupt::TemporaryFolder;
use crate::json::Json;

/// The bundle from which an input was read.
#[derive(Debug, Clone)]
pub struct InputBundle(Arc<Extracted>);

#[derive(Debug)]
struct Extracted {
    bundle: Bundle,
    /// The folder with its objects, once they were needed.
    folder: OnceLock<Arc<Folder>>,
}

/// A temporary folder, which is removed with its last user.
#[derive(Debug)]
struct Folder(TemporaryFolder);

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self.0.path()
    }
}

impl InputBundle {
    /// Returns the bundle.
    pub fn bundle(&self) -> &Bundle {
        &self.0.bundle
    }

    /// Returns a folder with the objects of the bundle. They are written to a temporary folder at the
    /// first call.
    ///
    /// # Errors
    /// The bundle is corrupt, or the folder cannot be written.
    pub fn folder(&self) -> Result<BundleFolder> {
        if let Some(known) = self.0.folder.get() {
            return Ok(known.clone());
        }
        let make = || tempfile::Builder::new().prefix("perfconv-").tempdir();
        let folder = Folder(TemporaryFolder::make(make).map_err(failed())?);
        let extracted = self.0.bundle.extract_objects(folder.as_ref());
        extracted.map_err(of_bundle)?;
        Ok(self.0.folder.get_or_init(|| Arc::new(folder)).clone())
    }

    /// Returns the names of objects and their build IDs.
    ///
    /// # Errors
    /// The bundle is corrupt.
    pub fn build_ids(&self) -> Result<Vec<(Vec<u8>, BuildId)>> {
        let list = self.0.bundle.build_ids().map_err(of_bundle)?;
        let pairs = list.into_iter();
        Ok(pairs
            .filter_map(|(name, digits)| Some((name, BuildId::from_hex(&digits)?)))
            .collect())
    }
}

/// Returns the index of a bundle, which is JSON: the files that were found, and the objects that were
/// not.
pub fn bundle_index(gathered: &Gathered) -> String {
    let mut json = Json::pretty();
    json.object("");
    json.number("version", 1);
    json.list("objects");
    for carried in &gathered.files {
        json.on_line(|json| {
            json.object("");
            json.text("name", &carried.name);
            if let Some(id) = carried.file.build_id {
                json.text("build_id", id.to_string().as_bytes());
            }
            json.text("member", &carried.member.name());
            if let CarriedContent::File(path) = &carried.file.content {
                json.text("from", path.as_os_str().as_encoded_bytes());
            }
            if let Some(size) = carried.size() {
                json.number("size", size);
            }
            json.text("evidence", carried.file.evidence.to_string().as_bytes());
            json.close();
        });
    }
    json.close();
    json.list("missing");
    for absent in &gathered.absent {
        json.on_line(|json| {
            json.object("");
            json.text("name", &absent.name);
            if let Some(id) = absent.build_id {
                json.text("build_id", id.to_string().as_bytes());
            }
            json.text("reason", absent.reason.as_bytes());
            json.close();
        });
    }
    json.close();
    json.close();
    json.end_line();
    json.into_text()
}

/// Unpacks what `perf archive` packed to a temporary folder, whose folder `debug` is a build ID cache then.
///
/// # Errors
/// The file cannot be read, or is no such archive; or the folder cannot be written.
pub fn unpack_archive(path: &Path) -> Result<BundleFolder> {
    let archive = File::open(path).map_err(Error::io(path))?;
    let make = || tempfile::Builder::new().prefix("perfconv-").tempdir();
    let folder = Folder(TemporaryFolder::make(make).map_err(failed())?);
    match perfdata_bundle::unpack_archive(archive, folder.as_ref()) {
        Ok(_) => Ok(Arc::new(folder)),
        Err(perfdata_bundle::Error::Temporary(error)) => Err(failed()(error)),
        Err(error) => Err(Error::Refused(format!("{}: {error}", path.display()))),
    }
}

/// Opens the recording in a bundle. It is written to a temporary file, so that it can be read at any
/// offset.
pub(super) fn open(source: Arc<dyn Source + Send + Sync>) -> Result<Input> {
    let bundle = Bundle::open(source).map_err(of_bundle)?;
    let recording = bundle.recording().map_err(of_bundle)?;
    let file = spool(&mut NamedObject(recording))?;
    let file = InputFile::new(file).map_err(Error::io("temporary file"))?;
    let written = bundle.recorded_until().map(|modified| Written {
        modified,
        is_new: false,
    });
    Ok(Input {
        written,
        bundle: Some(InputBundle(Arc::new(Extracted {
            bundle,
            folder: OnceLock::new(),
        }))),
        ..OpenInput::File(Arc::new(file)).into()
    })
}

/// Opens a bundle that arrives as a stream, after the bytes in `first`.
pub(super) fn open_stream(first: Vec<u8>, rest: impl Read) -> Result<Input> {
    let file = spool(&mut Cursor::new(first).chain(rest))?;
    let file = InputFile::new(file).map_err(Error::io("temporary file"))?;
    open(Arc::new(file))
}

/// A reader of a member, whose errors are those of the bundle.
struct NamedObject<R>(R);

impl<R: Read> Read for NamedObject<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(bytes);
        read.map_err(|error| annotated(error, " (the recording in the bundle)"))
    }
}

/// Returns the error of an input that is a bundle.
fn of_bundle(error: perfdata_bundle::Error) -> Error {
    match error {
        perfdata_bundle::Error::Temporary(error) => failed()(error),
        perfdata_bundle::Error::Io(error) => Error::Refused(format!("bundle: {error}")),
        other => Error::Refused(other.to_string()),
    }
}
