//! Benchmarks: `cargo bench -p perfdata-benches --bench compare` times commands, `--bench records`
//! structures.
