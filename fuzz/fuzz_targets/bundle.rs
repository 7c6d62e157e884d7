//! See `tests/src/fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| perfdata_tests::fuzz::bundle(data));
