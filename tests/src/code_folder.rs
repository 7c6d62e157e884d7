//! A folder for tests that add generated code to recordings.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_convert::error::Error;
use perfdata_convert::io::Output;
use perfdata_convert::pipeline::{Conversion, Stage, Summary};
use perfdata_core::Endian;
use perfdata_core::header::ContainerKind;
use perfdata_inject::jit::Images;
use tempfile::TempDir;

use crate::told::{MONOTONIC, Told, made, shown};

/// A temporary folder with dumps or perf maps, and with recordings and images.
#[derive(Debug)]
pub struct CodeFolder(TempDir);

impl CodeFolder {
    /// Returns an empty folder.
    pub fn new() -> Self {
        CodeFolder(tempfile::tempdir().expect("a folder"))
    }

    /// Returns its path.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of the file `name`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Returns the destination of images, which is `out.jit`.
    pub fn destination(&self) -> Images {
        Images::In(self.path("out.jit"))
    }

    /// Converts `input` with these stages to `out.data`.
    ///
    /// # Errors
    /// The errors of the conversion.
    pub fn convert(
        &self,
        input: &Path,
        to: Option<ContainerKind>,
        stages: Vec<Box<dyn Stage>>,
    ) -> Result<Summary, Error> {
        let output = Output::create(&self.path("out.data"), input, true)?.synced(false);
        Conversion::new(stages).to(to).run(input, output)
    }

    /// Converts a recording of `CLOCK_MONOTONIC` with these records; returns notes, in which this
    /// folder is `DIR`, and records.
    pub fn converted(
        &self,
        told: &[(u64, Told<'_>)],
        stage: Box<dyn Stage>,
    ) -> (Vec<String>, Vec<String>) {
        let input = self.path("in.data");
        made(&input, Endian::Little, MONOTONIC, told);
        let summary = self
            .convert(&input, None, vec![stage])
            .expect("it is converted");
        let folder = self.folder().to_str().expect("text");
        let notes = summary.notes.iter().map(|note| note.replace(folder, "DIR"));
        (notes.collect(), shown(&self.path("out.data")))
    }

    /// Returns the names of the images.
    pub fn images(&self) -> Vec<String> {
        let Ok(files) = fs::read_dir(self.path("out.jit")) else {
            return Vec::new();
        };
        let name = |file: std::io::Result<fs::DirEntry>| {
            let name = file.expect("a file").file_name();
            name.into_string().expect("text")
        };
        let mut names: Vec<String> = files.map(name).collect();
        names.sort();
        names
    }
}

impl Default for CodeFolder {
    fn default() -> Self {
        CodeFolder::new()
    }
}
