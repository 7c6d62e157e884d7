//! The recordings from which inputs are made.

use std::fs;

use perfdata_tests::{
    recordings,
    synth::{self, kind, sink},
};

/// A recording that commands accept.
pub struct Seed {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Maximum size in bytes of recordings that are truncated at every byte and of which every byte is
/// flipped.
pub const SMALL: usize = 8 << 10;

/// Returns small recordings of the independent writer, with every record type and every feature.
pub fn synthetic() -> Vec<Seed> {
    let mut all = Vec::new();
    for (big, order) in [(false, "little"), (true, "big")] {
        let mut add = |name: &str, bytes| {
            all.push(Seed {
                name: format!("{name} {order}"),
                bytes,
            })
        };
        add("synthetic file", synth::file::kitchen_sink(big));
        add("synthetic pipe", synth::pipe::kitchen_sink(big));
        add(
            "compressed synthetic file",
            sink::compressed_file(big, kind::COMPRESSED).bytes(),
        );
        add(
            "compressed synthetic pipe",
            sink::compressed_pipe(big, kind::COMPRESSED2).bytes,
        );
    }
    all
}

/// Returns the recordings of the repository; for a directory its `data`.
pub fn fixtures() -> Vec<Seed> {
    let read = |recording: recordings::Recording| Seed {
        bytes: fs::read(recording.main_file()).expect("a fixture can be read"),
        name: recording.name,
    };
    recordings::fixtures().into_iter().map(read).collect()
}

/// Returns inputs that broke another parser.
pub fn crashers() -> Vec<Seed> {
    let mut all = recordings::corpus();
    all.retain(|recording| recording.name.starts_with("crashers/"));
    let read = |recording: recordings::Recording| Seed {
        bytes: fs::read(&recording.path).expect("a recording can be read"),
        name: recording.name,
    };
    all.into_iter().map(read).collect()
}

/// Returns whether the header is that of a pipe.
pub fn is_pipe(bytes: &[u8]) -> bool {
    bytes
        .get(8..16)
        .is_some_and(|size| size.iter().filter(|&&byte| byte != 0).eq([&16]))
}
