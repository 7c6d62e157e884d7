//! The interface of all readers of recordings, independent of the input.

use crate::container_layout::ContainerLayout;
use crate::error::{Error, Result};
use crate::read::{Chunk, Limits, RecordingReader, Tail};
use crate::recording::Recording;

/// A recording that is read from start to end: the model at once, then the records.
///
/// [`RecordingReader`] implements it for files, pipes, directories, memory and any
/// [`Read`](std::io::Read). Other implementations can be converted and merged in the same way.
pub trait RecordSource {
    /// Returns the model. The model of a pipe grows as metadata records pass.
    fn recording(&self) -> &Recording;

    /// Returns the limits on what the recording may request from its readers: also from code that
    /// decompresses its records or holds data of them in memory.
    fn limits(&self) -> Limits;

    /// Returns the offsets and sizes of the parts of the recording in its container.
    fn container_layout(&self) -> &ContainerLayout;

    /// Reads the next records, as many as are available; `None` at the end. A chunk comes with the
    /// model, which already includes the metadata in the chunk.
    ///
    /// # Errors
    /// The input cannot be read, or a pipe contains a corrupt attribute late in the stream.
    fn next_chunk(&mut self) -> Result<Option<(Chunk<'_>, &Recording)>>;

    /// Returns whether the next item was already read, and requires no read of the input.
    fn has_more_at_hand(&self) -> bool {
        false
    }

    /// Returns why the records could not be read up to the end. Known after [`Chunk::Unreadable`]
    /// or the end.
    fn damage(&self) -> Option<&Error>;

    /// Removes and returns [`damage`](Self::damage).
    fn take_damage(&mut self) -> Option<Error>;

    /// Returns the kind of the bytes after the last complete record, if there are any. Known at the
    /// end.
    fn tail(&self) -> Option<Tail>;
}

impl<R: std::io::Read> RecordSource for RecordingReader<R> {
    fn recording(&self) -> &Recording {
        self.recording()
    }

    fn limits(&self) -> Limits {
        self.limits()
    }

    fn container_layout(&self) -> &ContainerLayout {
        self.container_layout()
    }

    fn next_chunk(&mut self) -> Result<Option<(Chunk<'_>, &Recording)>> {
        self.next_chunk()
    }

    fn has_more_at_hand(&self) -> bool {
        self.has_more_at_hand()
    }

    fn damage(&self) -> Option<&Error> {
        self.damage()
    }

    fn take_damage(&mut self) -> Option<Error> {
        self.take_damage()
    }

    fn tail(&self) -> Option<Tail> {
        self.tail()
    }
}

impl<S: RecordSource + ?Sized> RecordSource for Box<S> {
    fn recording(&self) -> &Recording {
        (**self).recording()
    }

    fn limits(&self) -> Limits {
        (**self).limits()
    }

    fn container_layout(&self) -> &ContainerLayout {
        (**self).container_layout()
    }

    fn next_chunk(&mut self) -> Result<Option<(Chunk<'_>, &Recording)>> {
        (**self).next_chunk()
    }

    fn has_more_at_hand(&self) -> bool {
        (**self).has_more_at_hand()
    }

    fn damage(&self) -> Option<&Error> {
        (**self).damage()
    }

    fn take_damage(&mut self) -> Option<Error> {
        (**self).take_damage()
    }

    fn tail(&self) -> Option<Tail> {
        (**self).tail()
    }
}
