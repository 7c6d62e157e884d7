//! Reading recordings: [`RecordingReader`] opens a container, returns the model at once and the
//! records one by one.

mod by_time;
mod decompress;
mod dir;
mod file;
mod file_rest;
mod input_file;
mod limits;
mod merged;
mod options;
mod ordered_events;
mod path;
mod pipe;
mod reader;
mod record_batch;
mod record_ref;
mod record_source;
mod records;
mod salvage;
mod source;
mod stream_reader;
mod tail;
mod zstd;

pub use by_time::ByTime;
pub use decompress::Decompressor;
pub use dir::{DataFile, DataStream};
pub use input_file::InputFile;
pub use limits::Limits;
pub use options::{Head, Options};
pub use ordered_events::OrderedEvents;
pub use path::{Directory, PathReader};
pub use reader::RecordingReader;
pub use record_batch::{BatchPart, Chunk, RecordBatch, Records};
pub use record_ref::RecordRef;
pub use record_source::RecordSource;
pub use records::{RecordStream, StreamItem};
pub use salvage::{CompressedData, Ids, Losses, Salvaged, Salvaging, Skipped};
pub use source::{MemoryBytes, Source, SourceReader};
pub use stream_reader::{BytesReader, StreamReader};
pub use tail::Tail;

// What only the other crates of this workspace use: it may change in any release.
#[doc(hidden)]
pub use {
    merged::{Lane, Merged},
    ordered_events::Waiting,
    pipe::Collector,
    salvage::{Foreknown, Left, Survey},
    source::is_zero,
    zstd::zstd_reader,
};
