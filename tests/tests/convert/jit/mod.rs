//! The code of jitdumps is added: where and what, for dumps as runtimes write them and for damaged
//! ones.

mod clocks;
mod dumps;
mod images;
mod lengths;
mod mappings;

use std::fs;
use std::ops::Deref;
use std::path::Path;

use perfdata_convert::error::Error;
use perfdata_convert::pipeline::{Stage, Summary};
use perfdata_core::header::ContainerKind;
use perfdata_inject::jit::Jit;
use perfdata_tests::code_folder::CodeFolder;
use perfdata_tests::synth::jitdump::{Dump, Header};
use perfdata_tests::told::Told::{self, Map, Round, Sample as At};

/// A folder with dumps.
struct Place(CodeFolder);

impl Deref for Place {
    type Target = CodeFolder;
    fn deref(&self) -> &CodeFolder {
        &self.0
    }
}

impl Place {
    fn new() -> Self {
        Place(CodeFolder::new())
    }

    /// Returns the path as text, for records.
    fn name(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    fn dump(&self, name: &str, dump: Dump) {
        fs::write(self.path(name), dump.bytes()).expect("it is written");
    }

    fn stage(&self) -> Jit {
        Jit::new(self.destination()).synced(false)
    }

    /// Converts `input` with `jit` and further stages.
    fn convert(
        &self,
        input: &Path,
        to: Option<ContainerKind>,
        jit: impl FnOnce(Jit) -> Jit,
        more: Vec<Box<dyn Stage>>,
    ) -> Result<Summary, Error> {
        let jit = Box::new(jit(self.stage())) as Box<dyn Stage>;
        self.0
            .convert(input, to, [jit].into_iter().chain(more).collect())
    }

    /// Adds the code to a recording with these records; returns notes and records.
    fn with(&self, told: &[(u64, Told<'_>)]) -> (Vec<String>, Vec<String>) {
        self.converted(told, Box::new(self.stage()))
    }
}

/// Functions, a move, the reuse of an address, and the end of a runtime; records after the end are
/// not read.
fn life(big: bool) -> Dump {
    Dump::new(big, Header::of(5))
        .load(100, 0x1000, 1, "first", &[0x90; 16])
        .load(100, 0x1100, 2, "second", &[0xc3; 5])
        .unwinding(150, &[1; 12], &[2; 20], 32)
        .load(200, 0x1200, 3, "third", &[0x90; 5])
        .load(250, 0x1300, 4, "empty", &[])
        .moved(300, 0x1200, 0x8000, 5, 3)
        .load(400, 0x1000, 5, "first again", &[0x91; 16])
        .close(500)
        .load(600, 0x1000, 6, "never", &[0x92; 16])
}

/// What `life` tells, and the samples around it.
fn told(marker: &str) -> Vec<(u64, Told<'_>)> {
    vec![
        (10, Map(5, 0x40_0000, 0x1000, "/bin/runtime")),
        // Before the dump: perf keeps it, too.
        (20, Map(5, 0x1000, 0x10000, "//anon")),
        (90, Map(5, 0x70_0000, 0x1000, marker)),
        (101, At(5, 0x1000)),
        (0, Round),
        // Not in the order of time, as from another CPU.
        (301, At(5, 0x8000)),
        (160, At(5, 0x1100)),
        (200, At(5, 0x1200)),
        (0, Round),
        // The protection of the memory changes.
        (210, Map(5, 0x1000, 0x1000, "//anon")),
        (211, Map(5, 0x1204, 0x1000, "[anon:jit]")),
        (212, Map(5, 0x8000, 8, "/memfd:code (deleted)")),
        (213, Map(5, 0x8000, 8, "/dev/shm/code")),
        // Memory elsewhere, a file, another process, and the same dump again.
        (214, Map(5, 0x90_0000, 0x1000, "//anon")),
        (215, Map(5, 0x1000, 0x100, "/lib/mapped.so")),
        (216, Map(6, 0x1000, 0x1000, "//anon")),
        (217, Map(5, 0x71_0000, 0x1000, marker)),
        (399, At(5, 0x1001)),
        (0, Round),
    ]
}
