//! Reading bundles.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use perfdata_core::header::FileSection;
use perfdata_core::read::{Source, SourceReader, zstd_reader};
use tar::{EntryType, Header};

use crate::error::{Error, Result};
use crate::member::Member;

/// Size of a block of a tar archive in bytes.
const BLOCK: u64 = 512;
/// Maximum number of members.
pub(crate) const MOST_MEMBERS: usize = 1 << 16;
/// Maximum size of the index and of the list of build IDs in bytes.
const MOST_TEXT: u64 = 1 << 26;
/// Maximum window of compressed members, as a power of 2.
const WINDOW_LOG: u32 = 27;
/// How many times its compressed size a member may have. Objects and recordings are below 100.
const MOST_RATIO: u64 = 1000;
/// Number of bytes that every member may have.
const ALWAYS: u64 = 1 << 26;

/// A member, and where its bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleMember {
    /// The member.
    pub member: Member,
    /// The place of its bytes in the bundle.
    pub place: FileSection,
    /// When the file was changed last, in whole seconds.
    pub modified: SystemTime,
}

/// An open bundle.
#[derive(Clone)]
pub struct Bundle {
    source: Arc<dyn Source + Send + Sync>,
    parts: Arc<[BundleMember]>,
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle")
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl Bundle {
    /// Opens a bundle, and reads the headers of its members.
    ///
    /// # Errors
    /// It is not a bundle, is truncated or corrupt, contains anything that does not belong into one, or
    /// lacks the recording.
    pub fn open(source: Arc<dyn Source + Send + Sync>) -> Result<Bundle> {
        let parts = headers(&*source)?;
        if !parts.iter().any(|part| part.member == Member::Recording) {
            return Err(Error::Missing("recording"));
        }
        Ok(Bundle {
            source,
            parts: parts.into(),
        })
    }

    /// Returns the members, in their order.
    pub fn parts(&self) -> &[BundleMember] {
        &self.parts
    }

    /// Returns the members with objects.
    pub fn objects(&self) -> impl Iterator<Item = &BundleMember> {
        let is_object =
            |part: &&BundleMember| matches!(part.member, Member::Cached { .. } | Member::Copied(_));
        self.parts.iter().filter(is_object)
    }

    fn part(&self, member: &Member) -> Option<&BundleMember> {
        self.parts.iter().find(|part| part.member == *member)
    }

    /// Returns when the recording was changed last.
    pub fn recorded_until(&self) -> Option<SystemTime> {
        Some(self.part(&Member::Recording)?.modified)
    }

    /// Returns a reader of the recording.
    ///
    /// # Errors
    /// The member is missing, or memory for the decompression.
    pub fn recording(&self) -> Result<impl Read + Send + use<>> {
        let part = self.part(&Member::Recording);
        self.reader(part.ok_or(Error::Missing("recording"))?)
    }

    /// Returns the index.
    ///
    /// # Errors
    /// It is missing, too large, or cannot be read.
    pub fn index(&self) -> Result<Vec<u8>> {
        self.text(&Member::Index, "index")
    }

    /// Returns the paths of objects and their build IDs, in hexadecimal digits. Lines of another form are
    /// skipped.
    ///
    /// # Errors
    /// The list is missing, too large, or cannot be read.
    pub fn build_ids(&self) -> Result<Vec<(Vec<u8>, String)>> {
        let text = self.text(&Member::BuildIds, "list of build IDs")?;
        let lines = text.split(|&byte| byte == b'\n').filter_map(|line| {
            let at = line.iter().position(|&byte| byte == b' ')?;
            let (digits, path) = line.split_at_checked(at)?;
            let digits = std::str::from_utf8(digits).ok()?;
            let path = path.get(1..).filter(|path| !<[u8]>::is_empty(path))?;
            Some((path.to_vec(), digits.to_owned()))
        });
        Ok(lines.collect())
    }

    fn text(&self, member: &Member, name: &'static str) -> Result<Vec<u8>> {
        let part = self.part(member).ok_or(Error::Missing(name))?;
        if part.place.size > MOST_TEXT {
            return Err(too_large(part, MOST_TEXT));
        }
        let mut text = Vec::new();
        self.reader(part)?.read_to_end(&mut text)?;
        Ok(text)
    }

    /// Returns a reader of the content of a member. It fails when the content is larger than a
    /// compressed member of its size may be.
    ///
    /// # Errors
    /// There is no memory for the decompression.
    pub fn reader(&self, part: &BundleMember) -> Result<impl Read + Send + use<>> {
        let raw = SourceReader::new(self.source.clone(), part.place);
        let packed: Box<dyn Read + Send> = match part.member.is_compressed() {
            false => Box::new(raw),
            true => zstd_reader(raw, WINDOW_LOG)?,
        };
        let most = most_of(part.place.size);
        Ok(Bounded {
            inner: packed,
            rest: most,
            error: too_large(part, most).to_string(),
        })
    }

    /// Writes all objects into `folder`, which must be empty: a build ID cache `debug`, and `root` with
    /// files by their paths. Returns the number of bytes.
    ///
    /// # Errors
    /// A member is corrupt or too large, or all of them are; or the folder cannot be written.
    pub fn extract_objects(&self, folder: &Path) -> Result<u64> {
        let mut total = 0_u64;
        let most = most_of(self.source.len()?);
        for part in self.objects() {
            let Some(below) = part.member.object_path() else {
                continue;
            };
            let path = folder.join(below);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(Error::Temporary)?;
            }
            // The folder contains no links: everything in it comes from here.
            let new = OpenOptions::new().write(true).create_new(true).open(&path);
            let mut file = new.map_err(Error::Temporary)?;
            let mut reader = self.reader(part)?;
            let size = copied(&mut reader, &mut file)?;
            total = total.saturating_add(size);
            if total > most {
                return Err(Error::TooLarge {
                    member: "all objects".into(),
                    most,
                });
            }
            let _ = file.set_modified(part.modified);
        }
        Ok(total)
    }
}

/// Copies all bytes. An error of the writer is that of a temporary file.
pub(crate) fn copied(reader: &mut dyn Read, file: &mut dyn Write) -> Result<u64> {
    let mut block = vec![0; 1 << 17];
    let mut total = 0_u64;
    loop {
        match reader.read(&mut block) {
            Ok(0) => return Ok(total),
            Ok(read) => {
                let bytes = block.get(..read).unwrap_or_default();
                file.write_all(bytes).map_err(Error::Temporary)?;
                total = total.saturating_add(read as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Io(error)),
        }
    }
}

/// Returns the maximum number of bytes of what has this size in the bundle.
pub(crate) fn most_of(size: u64) -> u64 {
    size.saturating_mul(MOST_RATIO).max(ALWAYS)
}

fn too_large(part: &BundleMember, most: u64) -> Error {
    Error::TooLarge {
        member: part.member.name().escape_ascii().to_string(),
        most,
    }
}

/// A reader that fails after a number of bytes.
struct Bounded {
    inner: Box<dyn Read + Send>,
    rest: u64,
    error: String,
}

impl Read for Bounded {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        match self.rest.checked_sub(read as u64) {
            Some(rest) => self.rest = rest,
            None => return Err(io::Error::other(self.error.clone())),
        }
        Ok(read)
    }
}

/// Reads the headers of all members.
fn headers(source: &dyn Source) -> Result<Vec<BundleMember>> {
    let end = source.len()?;
    let mut parts = Vec::new();
    let mut names = HashSet::new();
    let mut offset = 0_u64;
    loop {
        let corrupt = |what: &str| Error::Corrupt {
            offset,
            what: what.to_owned(),
        };
        let mut block = [0; 512];
        if end.saturating_sub(offset) < BLOCK {
            return Err(corrupt("the archive is truncated"));
        }
        source.read_exact_at(&mut block, offset)?;
        // The archive ends with blocks of zeros.
        if block.iter().all(|&byte| byte == 0) {
            return Ok(parts);
        }
        let header = Header::from_byte_slice(&block);
        if header.cksum().ok() != Some(checksum(&block)) {
            return Err(corrupt("the checksum of a header is wrong"));
        }
        let Some(fields) = header.as_ustar() else {
            return Err(corrupt("not a header of a member"));
        };
        if header.entry_type() != EntryType::Regular {
            return Err(corrupt("a member is not a regular file"));
        }
        let Some(member) = Member::parse(&fields.path_bytes()) else {
            let name = fields.path_bytes().escape_ascii().to_string();
            return Err(corrupt(&format!("{name} does not belong into a bundle")));
        };
        if parts.is_empty() && member != Member::Index {
            return Err(corrupt("the index is not the first member"));
        }
        if !names.insert(member.clone()) {
            return Err(corrupt("a member is there twice"));
        }
        if parts.len() >= MOST_MEMBERS {
            return Err(corrupt("there are too many members"));
        }
        let start = offset.saturating_add(BLOCK);
        let size = header.entry_size().ok();
        let Some(size) = size.filter(|&size| size <= end.saturating_sub(start)) else {
            return Err(corrupt("a member is larger than the archive"));
        };
        let modified = header.mtime().unwrap_or(0).min(u64::from(u32::MAX));
        parts.push(BundleMember {
            member,
            place: FileSection {
                offset: start,
                size,
            },
            modified: UNIX_EPOCH
                .checked_add(Duration::from_secs(modified))
                .unwrap_or(UNIX_EPOCH),
        });
        let blocks = size.div_ceil(BLOCK).saturating_mul(BLOCK);
        offset = start.saturating_add(blocks);
    }
}

/// Returns the sum of the bytes of a header, with spaces in place of the sum.
fn checksum(block: &[u8; 512]) -> u32 {
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    let (before, rest) = block.split_at(148);
    let after = rest.get(8..).unwrap_or_default();
    [sum(before), sum(after), 8 * 32]
        .into_iter()
        .fold(0, u32::saturating_add)
}
