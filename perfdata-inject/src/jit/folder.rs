//! The files with the images of functions.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use perfdata_core::Events;
use perfdata_core::record::{Body, Inode, MISC_MMAP_BUILD_ID, MappedBuildId, Record};

use super::image::Written;
use crate::device::device;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::interrupt::Temporary;
use perfdata_convert::support::files::{NewFile, sync_file_system};
use perfdata_convert::support::os;

/// Where to write images.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Images {
    /// In this folder. It is created if it does not exist, when the first image is written.
    In(PathBuf),
    /// In the folder of each dump, like those of perf, and of each perf map.
    BesideDump,
}

/// The identity of a file in a mapping record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Device and inode.
    Inode {
        /// Major number of the device.
        maj: u32,
        /// Minor number of the device.
        min: u32,
        /// Inode number.
        ino: u64,
    },
    /// Build ID.
    BuildId([u8; super::image::BUILD_ID_SIZE]),
}

impl Identity {
    /// Returns the identity as a part of an MMAP2 record: bits of its `misc`, the inode, and the
    /// build ID.
    pub fn in_mmap2(self) -> (u16, Option<Inode>, Option<MappedBuildId>) {
        match self {
            Identity::Inode { maj, min, ino } => {
                let inode = Inode {
                    maj,
                    min,
                    ino,
                    // As perf.
                    ino_generation: 1,
                };
                (0, Some(inode), None)
            }
            Identity::BuildId(build_id) => {
                let id = MappedBuildId {
                    build_id_size: build_id.len() as u8,
                    reserved_1: 0,
                    reserved_2: 0,
                    build_id,
                };
                (MISC_MMAP_BUILD_ID, None, Some(id))
            }
        }
    }
}

/// The folders that receive images.
#[derive(Debug)]
pub struct ImageFolders {
    place: Images,
    /// The folder that this conversion has created. It is removed again if the conversion fails
    /// before the end of the recording.
    created: Option<Created>,
    /// The absolute path of each folder in use, with its name in the options or of the dump.
    known: Vec<(PathBuf, PathBuf)>,
    syncs: bool,
    /// Whether mapping records contain the build IDs of images in any case.
    adds_build_ids: bool,
    /// Whether they do because the recording does.
    has_build_ids: bool,
}

#[derive(Debug)]
struct Created {
    path: PathBuf,
    guard: Temporary,
}

impl ImageFolders {
    /// Returns folders without images.
    pub fn new(place: Images) -> Self {
        ImageFolders {
            place,
            created: None,
            known: Vec::new(),
            syncs: true,
            adds_build_ids: false,
            has_build_ids: false,
        }
    }

    /// Sets whether images survive a crash of the machine. The default is true.
    pub fn set_synced(&mut self, syncs: bool) {
        self.syncs = syncs;
    }

    /// Sets whether mapping records contain the build IDs of images instead of inodes. Otherwise,
    /// they do so if the recording contains such records.
    pub fn set_build_ids(&mut self, adds: bool) {
        self.adds_build_ids = adds;
    }

    /// Learns from its events whether the recording contains mapping records with build IDs.
    pub fn see_events(&mut self, events: &Events) {
        let mut events = events.iter();
        self.has_build_ids = events.any(|event| event.attr.flags.build_id() == 1);
    }

    /// Learns the same from a mapping record.
    pub fn see_mapping(&mut self, record: &Record) {
        self.has_build_ids |= matches!(&record.body, Body::Mmap2(map) if map.build_id.is_some());
    }

    /// Returns the absolute path of the folder for the images of the dump or perf map at `source`,
    /// and creates it.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn beside(&mut self, source: &Path) -> Result<PathBuf> {
        let folder = match &self.place {
            Images::In(folder) => folder.clone(),
            Images::BesideDump => match source.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            },
        };
        if let Some((_, path)) = self.known.iter().find(|(name, _)| *name == folder) {
            return Ok(path.clone());
        }
        if matches!(self.place, Images::In(_)) {
            self.create(&folder)?;
        }
        let path = fs::canonicalize(&folder).map_err(Error::io(&folder))?;
        self.known.push((folder, path.clone()));
        Ok(path)
    }

    fn create(&mut self, folder: &Path) -> Result<()> {
        // Readers of the recording need the images, who need not be its owner.
        let make = || {
            os::create_shared(folder)?;
            Ok::<_, io::Error>(folder.to_owned())
        };
        match Temporary::make(make, |made| made) {
            Ok((path, guard)) => {
                self.created = Some(Created { path, guard });
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(error) => Err(Error::io(folder)(error)),
        }
    }

    /// Writes an image to the file `path`, which gets its name when it is complete. Replaces a file
    /// or a link of this name, but never writes through a link. Returns what identifies the image
    /// in mapping records.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn write(&self, path: &Path, image: &Written) -> Result<Identity> {
        let mut new = NewFile::beside(path.to_owned())?;
        let file = new.file();
        let done = file
            .write_all(&image.bytes)
            .and_then(|()| os::share(file))
            .and_then(|()| file.metadata());
        let meta = done.map_err(Error::io(path))?;
        new.publish(true).map_err(Error::io(path))?;
        if self.adds_build_ids || self.has_build_ids {
            return Ok(Identity::BuildId(image.build_id));
        }
        // A system without unnamed files may have copied it.
        let meta = fs::symlink_metadata(path).unwrap_or(meta);
        let Some((dev, ino)) = os::identity(&meta) else {
            return Ok(Identity::BuildId(image.build_id));
        };
        let (maj, min) = device(dev);
        Ok(Identity::Inode { maj, min, ino })
    }

    /// Keeps the images: all records are converted.
    ///
    /// # Errors
    /// The operating system reports an error while it writes them to the disk.
    pub fn keep(&mut self) -> Result<()> {
        if self.syncs {
            for (_, path) in &self.known {
                sync_file_system(path)?;
            }
        }
        self.created = None;
        Ok(())
    }
}

impl Drop for ImageFolders {
    /// Removes the new folder of a conversion that failed.
    fn drop(&mut self) {
        if let Some(Created { path, guard }) = self.created.take() {
            // If it cannot be removed, there is nothing else to do.
            let _ = fs::remove_dir_all(path);
            drop(guard);
        }
    }
}

/// Returns the name of an image, like those of perf: `jitted-PID-INDEX.so`. `copy` is 0 for the
/// first function of this index.
pub fn image_name(pid: u32, index: u64, copy: u32) -> OsString {
    match copy {
        0 => format!("jitted-{pid}-{index}.so"),
        _ => format!("jitted-{pid}-{index}-{copy}.so"),
    }
    .into()
}

/// Returns the alignment of the segment of the image at `path`: see
/// [`Image::p_align`](super::image::Image::p_align).
pub fn p_align(path: &Path) -> u64 {
    if path
        .as_os_str()
        .as_encoded_bytes()
        .starts_with(b"/tmp/jitted-")
    {
        8
    } else {
        0x1000
    }
}
