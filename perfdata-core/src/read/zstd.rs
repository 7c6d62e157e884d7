//! The decoder of zstd streams; without the cargo feature `zstd`, a decoder that refuses them.

#[cfg(feature = "zstd")]
mod decoder {
    use std::io::{self, Read};

    use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

    use crate::error::{Error, Problem, Result};
    use crate::read::zstd::DecoderStep;

    /// zstd's error code for a stream that requires a larger window than permitted
    /// (lib/zstd_errors.h, ZSTD_error_frameParameter_windowTooLarge).
    const WINDOW_TOO_LARGE: usize = 0_usize.wrapping_sub(16);

    /// zstd's error code for memory that it did not get (ZSTD_error_memory_allocation).
    const NO_MEMORY: usize = 0_usize.wrapping_sub(64);

    /// Returns a reader of the decompressed content of zstd data, for windows of up to `window_log`
    /// bits.
    ///
    /// # Errors
    /// There is no memory, or the crate was built without the feature `zstd`.
    pub fn zstd_reader<'a>(
        data: impl Read + Send + 'a,
        window_log: u32,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        let mut decoder = zstd::Decoder::new(data)?;
        decoder.window_log_max(window_log)?;
        Ok(Box::new(decoder))
    }

    /// The state of a stream.
    pub struct Stream {
        decoder: Decoder<'static>,
        window_log: u32,
    }

    impl Stream {
        /// Returns a decoder whose window may have `window_log` bits.
        pub fn new(window_log: u32) -> Result<Self> {
            let mut decoder = Decoder::new().map_err(|e| Error::io("zstd decoder", e))?;
            decoder
                .set_parameter(DParameter::WindowLogMax(window_log))
                .map_err(|e| Error::io("zstd decoder", e))?;
            Ok(Stream {
                decoder,
                window_log,
            })
        }

        /// Decodes from `input` to `output`, starting at offset `at`.
        pub fn run(
            &mut self,
            input: &[u8],
            output: &mut [u8],
            at: usize,
        ) -> Result<DecoderStep, Problem> {
            let mut input = InBuffer::around(input);
            let mut output = OutBuffer::around_pos(output, at);
            match self.decoder.run(&mut input, &mut output) {
                Ok(hint) => Ok(DecoderStep {
                    read: input.pos(),
                    end: output.pos(),
                    hint,
                }),
                Err(error) => Err(self.problem(&error)),
            }
        }

        /// Resets the decoder to the start of a frame.
        pub fn restart(&mut self) -> Result<()> {
            self.decoder
                .reinit()
                .map_err(|e| Error::io("zstd decoder", e))
        }

        /// Returns zstd's error for data that it cannot decode, or for a lack of memory.
        fn problem(&self, error: &io::Error) -> Problem {
            let text = error.to_string();
            if text == zstd::zstd_safe::get_error_name(WINDOW_TOO_LARGE) {
                return Problem::Limit {
                    found: None,
                    name: "max-window-log",
                    limit: self.window_log.into(),
                };
            }
            if text == zstd::zstd_safe::get_error_name(NO_MEMORY) {
                let what = "not enough memory to decompress";
                return Problem::Io(io::Error::new(io::ErrorKind::OutOfMemory, what));
            }
            Problem::Unknown(format!("zstd: {text}").into())
        }
    }
}

#[cfg(not(feature = "zstd"))]
mod decoder {
    use std::io::{self, Read};

    use crate::error::{Problem, Result};
    use crate::read::zstd::DecoderStep;

    const MISSING: &str = "compressed, and perfdata-core was built without its feature zstd";

    /// Returns an error: the crate was built without the feature `zstd`.
    ///
    /// # Errors
    /// Always.
    pub fn zstd_reader<'a>(
        _: impl Read + Send + 'a,
        _: u32,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, MISSING))
    }

    /// A decoder that refuses all streams.
    pub struct Stream;

    impl Stream {
        pub fn new(_: u32) -> Result<Self> {
            Ok(Stream)
        }

        pub fn run(&mut self, _: &[u8], _: &mut [u8], _: usize) -> Result<DecoderStep, Problem> {
            Err(Problem::Unknown(MISSING.into()))
        }

        pub fn restart(&mut self) -> Result<()> {
            Ok(())
        }
    }
}

pub(super) use decoder::Stream;
pub use decoder::zstd_reader;

/// The result of one call of the decoder.
pub(super) struct DecoderStep {
    /// Number of input bytes that were consumed.
    pub(super) read: usize,
    /// The offset of the end of the output.
    pub(super) end: usize,
    /// Number of bytes that the decoder expects next; 0 at the end of a frame.
    pub(super) hint: usize,
}

#[cfg(all(test, not(feature = "zstd")))]
mod tests {
    use binrw::Endian;

    use crate::read::{Decompressor, Limits};
    use crate::record::{RawRecord, RecordType};

    #[test]
    fn compressed_records_are_refused() {
        let (bytes, kind) = ([0; 16], RecordType::COMPRESSED);
        let raw = RawRecord {
            offset: 16,
            kind,
            misc: 0,
            bytes: &bytes,
            endian: Endian::Little,
        };
        let mut decompressor = Decompressor::new(Endian::Little, Limits::default()).unwrap();
        decompressor.push(&raw).unwrap();
        let expected = "at offset 0x10: COMPRESSED record: compressed, and perfdata-core was built without its feature zstd";
        assert_eq!(decompressor.next().unwrap_err().to_string(), expected);
    }
}
