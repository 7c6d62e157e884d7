//! The program or library whose profile is written.

use std::path::{Path, PathBuf};

use perfdata_session::{BuildId, Dso, DsoKind};
use perfdata_symbols::Elf;

/// Which object the profile is about.
#[derive(Debug)]
pub struct Binary {
    file: Option<(PathBuf, Elf)>,
    build_id: Option<BuildId>,
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
            build_id: elf.build_id(),
            file: Some((path.to_owned(), elf)),
        })
    }

    /// Returns the object with a build ID. Its file is searched as for names.
    pub fn with_build_id(id: BuildId) -> Self {
        Binary {
            file: None,
            build_id: Some(id),
        }
    }

    /// Returns whether a DSO of a recording is the object.
    pub(super) fn is(&self, dso: &Dso, build_id: Option<BuildId>) -> bool {
        if let (Some(own), Some(other)) = (&self.build_id, &build_id) {
            return own.padded().0 == other.padded().0;
        }
        let Some((path, _)) = &self.file else {
            return false;
        };
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        match dso.kind {
            DsoKind::Kernel => name.starts_with(b"vmlinux"),
            DsoKind::File => dso.path().rsplit(|&byte| byte == b'/').next() == Some(name),
            _ => false,
        }
    }

    /// Returns whether the object is the image of a kernel.
    pub(super) fn is_kernel(&self) -> bool {
        self.file.as_ref().is_some_and(|(path, _)| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name.starts_with(b"vmlinux")
        })
    }

    /// Returns the file, if it was named, or the build ID.
    pub(super) fn into_file(self) -> Option<Elf> {
        self.file.map(|(_, elf)| elf)
    }

    /// Returns how the object was named, for messages.
    pub(super) fn name(&self) -> String {
        match (&self.file, &self.build_id) {
            (Some((path, _)), _) => path.display().to_string(),
            (None, Some(id)) => format!("build ID {id}"),
            (None, None) => String::new(),
        }
    }
}
