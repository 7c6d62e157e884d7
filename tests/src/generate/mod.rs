//! Large recordings for measurements: of any size, generated as a stream, the same for the same
//! seed.
//!
//! They are synthetic, but have the properties that cost time in real recordings: ring buffers of
//! several CPUs that are written successively in rounds, callchains that repeat, processes that
//! start, map files and end, several events with IDs.

mod machine;
mod mix;
pub mod random;
mod stream;

use std::error::Error;
use std::io::{Seek, Write};

use perfdata_core::Endian;
use perfdata_write::{FilePlan, FileWriter, PipePlan, PipeWriter};

pub use mix::Mix;
use stream::Stream;

/// The options of a generated recording.
#[derive(Debug, Clone, Copy)]
pub struct Generator {
    /// The main content of the recording.
    pub mix: Mix,
    /// Approximate size of the records in bytes, before compression.
    pub size: u64,
    /// Byte order.
    pub endian: Endian,
    /// The seed of the random numbers.
    pub seed: u64,
}

impl Generator {
    /// Returns a generator of a little-endian recording with about `size` bytes of records.
    pub fn new(mix: Mix, size: u64) -> Self {
        Generator {
            mix,
            size,
            endian: Endian::Little,
            seed: 1,
        }
    }

    /// Writes the recording as a file.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn file<W: Write + Seek>(&self, out: W) -> Result<W, Box<dyn Error>> {
        let recording = mix::model(self.mix, self.endian)?;
        let no_gaps: Vec<u8> = Vec::new();
        let mut writer = FileWriter::begin(out, FilePlan::standard(), &recording, &no_gaps)?;
        Stream::new(self, &mut writer)?.run()?;
        Ok(writer.finish(&recording)?)
    }

    /// Writes the recording as a pipe.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn pipe<W: Write>(&self, out: W) -> Result<W, Box<dyn Error>> {
        let recording = mix::model(self.mix, self.endian)?;
        let plan = PipePlan::standard(&recording, PipePlan::END);
        let mut writer = PipeWriter::begin(out, plan, &recording)?;
        Stream::new(self, &mut writer)?.run()?;
        Ok(writer.finish()?)
    }
}
