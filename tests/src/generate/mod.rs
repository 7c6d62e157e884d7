//! Large recordings for measuring: of any size, made as a stream, the same for the same seed.
//!
//! They are not real, but have what costs time in real ones: ring buffers of several CPUs that are written one after
//! the other in rounds, callchains that repeat, processes that begin, map files and end, several events with ids.

mod machine;
mod mix;
mod random;
mod stream;

use std::error::Error;
use std::io::{Seek, Write};

use perfdata_core::Endian;
use perfdata_write::{FilePlan, FileWriter, PipePlan, PipeWriter};

pub use mix::Mix;
use stream::Stream;

/// What to generate.
#[derive(Debug, Clone, Copy)]
pub struct Generator {
    /// What the recording is full of.
    pub mix: Mix,
    /// Bytes of records, about; before they are compressed.
    pub size: u64,
    /// Byte order.
    pub endian: Endian,
    /// Where the random numbers begin.
    pub seed: u64,
}

impl Generator {
    /// A little-endian recording with about `size` bytes of records.
    pub fn new(mix: Mix, size: u64) -> Self {
        Generator { mix, size, endian: Endian::Little, seed: 1 }
    }

    /// Writes it as a file.
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

    /// Writes it as a pipe.
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
