//! The encoder of zstd streams; without the cargo feature `zstd`, an encoder that is an error.

#[cfg(feature = "zstd")]
mod zstd_encoder {
    use std::io;

    use zstd::stream::raw::{CParameter, InBuffer, Operation, OutBuffer};

    use super::EncoderStep;

    /// The highest level for which zstd chooses the sizes of its tables. Above this level, it would
    /// use up to 700 MB, and the level may be an arbitrary number in a recording.
    const FREE_LEVEL: i32 = 8;

    /// Table sizes above this level, as powers of two: the window in bytes, the others in words.
    const TABLES: [CParameter; 3] = [
        CParameter::WindowLog(21),
        CParameter::HashLog(22),
        CParameter::ChainLog(22),
    ];

    /// The state of a stream.
    pub struct Encoder(zstd::stream::raw::Encoder<'static>);

    impl Encoder {
        /// Returns an encoder for frames of a known size. zstd adapts its tables to this size.
        pub fn of_frames(level: i32) -> io::Result<Self> {
            zstd::stream::raw::Encoder::new(level).map(Encoder)
        }

        /// Returns an encoder for one stream, with tables of a limited size.
        pub fn new(level: i32) -> io::Result<Self> {
            let mut new = Self::of_frames(level)?;
            if level > FREE_LEVEL {
                let mut set = |table| new.0.set_parameter(table);
                TABLES.into_iter().try_for_each(&mut set)?;
            }
            Ok(new)
        }

        /// Starts a frame of `size` bytes.
        pub fn begin_frame(&mut self, size: u64) -> io::Result<()> {
            self.0.reinit()?;
            self.0.set_pledged_src_size(Some(size))
        }

        /// Encodes from `input` to `output`. At the end of the input, writes what zstd still
        /// buffers as far as the output has space for it, and with `is_last` the end of the frame.
        pub fn run(
            &mut self,
            input: &[u8],
            output: &mut [u8],
            is_last: bool,
        ) -> io::Result<EncoderStep> {
            let mut input = InBuffer::around(input);
            let mut output = OutBuffer::around(output);
            while input.pos() < input.src.len() && output.pos() < output.capacity() {
                self.0.run(&mut input, &mut output)?;
            }
            let held = match (input.pos() == input.src.len(), is_last) {
                (true, true) => self.0.finish(&mut output, true)?,
                (true, false) => self.0.flush(&mut output)?,
                (false, _) => 1,
            };
            Ok(EncoderStep {
                read: input.pos(),
                written: output.pos(),
                is_complete: held == 0,
            })
        }
    }
}

#[cfg(not(feature = "zstd"))]
mod zstd_encoder {
    use std::io;

    use super::EncoderStep;

    /// An encoder that does not exist.
    pub enum Encoder {}

    impl Encoder {
        pub fn of_frames(_: i32) -> io::Result<Self> {
            let what = "perfdata-write was built without its feature zstd";
            Err(io::Error::new(io::ErrorKind::Unsupported, what))
        }

        pub fn new(level: i32) -> io::Result<Self> {
            Self::of_frames(level)
        }

        pub fn begin_frame(&mut self, _: u64) -> io::Result<()> {
            match *self {}
        }

        pub fn run(&mut self, _: &[u8], _: &mut [u8], _: bool) -> io::Result<EncoderStep> {
            match *self {}
        }
    }
}

pub(crate) use zstd_encoder::Encoder;

/// The result of one call of the encoder.
pub(crate) struct EncoderStep {
    /// Number of input bytes that were consumed.
    pub(crate) read: usize,
    /// Number of bytes that were written to the output.
    pub(crate) written: usize,
    /// Whether zstd holds no more bytes.
    pub(crate) is_complete: bool,
}
