//! Writing bundles.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use perfdata_core::spool::{HAS_OS, temporary_file};
use tar::{Builder, EntryType, Header};

use crate::error::{Error, Result};
use crate::member::Member;

/// The level of compression.
#[cfg(feature = "zstd")]
const LEVEL: i32 = 3;

/// Writes a bundle from start to end.
pub struct BundleWriter<W: Write> {
    archive: Builder<W>,
}

impl<W: Write> fmt::Debug for BundleWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundleWriter").finish_non_exhaustive()
    }
}

impl<W: Write> BundleWriter<W> {
    /// Begins a bundle with its index, and the build IDs of objects: lines `BUILD-ID PATH`.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(out: W, index: &str, build_ids: &[u8]) -> Result<Self> {
        let mut writer = BundleWriter {
            archive: Builder::new(out),
        };
        let now = HAS_OS.then(SystemTime::now);
        let size = |content: &[u8]| content.len() as u64;
        writer.append(
            &Member::Index,
            size(index.as_bytes()),
            now,
            index.as_bytes(),
        )?;
        writer.append(&Member::BuildIds, size(build_ids), now, build_ids)?;
        Ok(writer)
    }

    /// Compresses `content` and adds it. Returns the number of bytes after compression.
    ///
    /// # Errors
    /// The content cannot be read, or the output cannot be written.
    pub fn add(
        &mut self,
        member: &Member,
        content: &mut dyn Read,
        modified: Option<SystemTime>,
    ) -> Result<u64> {
        self.add_written(member, modified, |out| io::copy(content, out).map(|_| ()))
    }

    /// Compresses what `write` writes and adds it, like [`add`](Self::add).
    ///
    /// # Errors
    /// Those of `write`, or the output cannot be written.
    pub fn add_written(
        &mut self,
        member: &Member,
        modified: Option<SystemTime>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<u64> {
        let mut packed = temporary_file(tempfile::tempfile).map_err(Error::Temporary)?;
        compress(&mut packed, write)?;
        let size = packed.stream_position().map_err(Error::Temporary)?;
        packed.rewind().map_err(Error::Temporary)?;
        self.append(member, size, modified, packed)?;
        Ok(size)
    }

    /// Ends the bundle, and returns the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self) -> Result<W> {
        Ok(self.archive.into_inner()?)
    }

    fn append(
        &mut self,
        member: &Member,
        size: u64,
        modified: Option<SystemTime>,
        content: impl Read,
    ) -> Result<()> {
        let unnamed = || Error::Name(member.name().escape_ascii().to_string());
        let (folders, last) = member.split_name().ok_or_else(unnamed)?;
        let mut header = Header::new_ustar();
        let fields = header.as_ustar_mut().ok_or_else(unnamed)?;
        let set = |field: &mut [u8], value: &[u8]| {
            let place = field.get_mut(..value.len());
            place.map(|place| place.copy_from_slice(value))
        };
        set(&mut fields.prefix, &folders).ok_or_else(unnamed)?;
        set(&mut fields.name, &last).ok_or_else(unnamed)?;
        let seconds = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        header.set_mtime(seconds.map_or(0, |time| time.as_secs()));
        header.set_mode(0o600);
        header.set_uid(0);
        header.set_gid(0);
        header.set_entry_type(EntryType::Regular);
        header.set_size(size);
        header.set_cksum();
        Ok(self.archive.append(&header, content)?)
    }
}

/// Writes what `write` writes to `packed`, compressed.
#[cfg(feature = "zstd")]
fn compress(packed: &mut File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut encoder = zstd::stream::write::Encoder::new(packed, LEVEL).map_err(Error::Temporary)?;
    encoder.include_checksum(true).map_err(Error::Temporary)?;
    write(&mut encoder)?;
    encoder.finish().map_err(Error::Temporary)?;
    Ok(())
}

/// Returns an error: the crate was built without the feature `zstd`.
#[cfg(not(feature = "zstd"))]
fn compress(_: &mut File, _: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let what = "perfdata-bundle was built without its feature zstd";
    Err(Error::Io(io::Error::new(io::ErrorKind::Unsupported, what)))
}
