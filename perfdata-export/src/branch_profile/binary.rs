//! The program or library whose profile is written.

use std::path::{Path, PathBuf};

use perfdata_session::{BuildId, Dso, DsoKind};
use perfdata_symbols::Elf;

/// Which object the profile is about.
#[derive(Debug)]
pub struct Binary {
    path: Option<PathBuf>,
    build_id: Option<BuildId>,
    elf: Option<Elf>,
}

impl Binary {
    /// Returns the object in this file. In a recording it has the same build ID; without build IDs,
    /// the same file name.
    ///
    /// # Errors
    /// The reason why it cannot be read, or is not an ELF file.
    pub fn open(path: &Path) -> Result<Self, String> {
        let elf = Elf::open(path)?;
        Ok(Binary {
            path: Some(path.to_owned()),
            build_id: elf.build_id(),
            elf: Some(elf),
        })
    }

    /// Returns the object with a build ID. Its file is searched as for names.
    pub fn with_build_id(id: BuildId) -> Self {
        Binary {
            path: None,
            build_id: Some(id),
            elf: None,
        }
    }

    /// Returns whether a DSO of a recording is the object.
    pub(super) fn is(&self, dso: &Dso, build_id: Option<BuildId>) -> bool {
        if let (Some(own), Some(other)) = (&self.build_id, &build_id) {
            return own.padded().0 == other.padded().0;
        }
        let Some(name) = self.file_name() else {
            return false;
        };
        match dso.kind {
            DsoKind::Kernel => name.starts_with(b"vmlinux"),
            DsoKind::File => dso.path().rsplit(|&byte| byte == b'/').next() == Some(name),
            _ => false,
        }
    }

    /// Returns whether the object is the image of a kernel.
    pub(super) fn is_kernel(&self) -> bool {
        self.file_name()
            .is_some_and(|name| name.starts_with(b"vmlinux"))
    }

    /// Returns the name of the file, if it was named, without its directory.
    fn file_name(&self) -> Option<&[u8]> {
        let name = self.path.as_ref()?.file_name().unwrap_or_default();
        Some(name.as_encoded_bytes())
    }

    /// Takes the file, if it was named.
    pub(super) fn take_file(&mut self) -> Option<Elf> {
        self.elf.take()
    }

    /// Returns how the object was named, for messages.
    pub(super) fn name(&self) -> String {
        match (&self.path, &self.build_id) {
            (Some(path), _) => path.display().to_string(),
            (None, Some(id)) => format!("build ID {id}"),
            (None, None) => String::new(),
        }
    }
}
