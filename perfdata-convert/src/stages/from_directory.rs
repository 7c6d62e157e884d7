//! Directory to file: the records of all its files form one stream.

use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::FeatureId;
use perfdata_core::record::RecordType;

use crate::error::Result;
use crate::io::Directory;
use crate::pipeline::{CompressedRecords, Requirements, Stage};

/// Removes data from the model that only apply to a directory. The records arrive merged and
/// decompressed.
pub(crate) struct FromDirectory {
    is_split: bool,
    extras: Vec<String>,
}

impl FromDirectory {
    pub(crate) fn new(directory: &Directory) -> Self {
        FromDirectory {
            is_split: directory.is_split(),
            extras: directory.extras().to_vec(),
        }
    }
}

impl Stage for FromDirectory {
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn requirements(&self) -> Requirements {
        Requirements::none()
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        recording.features.remove(&FeatureId::DIR_FORMAT);
        if self.is_split {
            recording.features.remove(&FeatureId::COMPRESSED);
        }
        Ok(())
    }

    fn wants(&self, _: RecordType) -> bool {
        false
    }

    fn notes(&self) -> Vec<String> {
        let note =
            |name| format!("dropped {name}: a file cannot contain the kernel's image and symbols");
        self.extras.iter().map(note).collect()
    }
}
