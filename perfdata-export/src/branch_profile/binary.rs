//! The program or library whose profile is written.

use std::path::{Path, PathBuf};

use perfdata_session::{BuildId, Dso, DsoKind, module_name};
use perfdata_symbols::Elf;

/// Which object the profile is about.
#[derive(Debug)]
pub struct Binary {
    path: Option<PathBuf>,
    /// Whether the file is the image of a kernel, or a module of it.
    is_kernel: bool,
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
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let is_module = name.windows(3).any(|part| part == b".ko");
        Ok(Binary {
            path: Some(path.to_owned()),
            is_kernel: is_module || is_image(name),
            build_id: elf.build_id(),
            elf: Some(elf),
        })
    }

    /// Returns the object with a build ID. Its file is searched as for names.
    pub fn with_build_id(id: BuildId) -> Self {
        Binary {
            path: None,
            is_kernel: false,
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
            DsoKind::Kernel => is_image(name),
            DsoKind::Module => module_name(name) == module_name(dso.path()),
            DsoKind::File => dso.path().rsplit(|&byte| byte == b'/').next() == Some(name),
            _ => false,
        }
    }

    /// Returns whether the object is the image of a kernel, or a module of it.
    pub(super) fn is_kernel(&self) -> bool {
        self.is_kernel
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

/// Returns whether a file is the image of a kernel, by its name.
fn is_image(name: &[u8]) -> bool {
    name.starts_with(b"vmlinux")
}
