#!/bin/bash -eu
# Builds all fuzz targets and their first inputs, in the image of OSS-Fuzz: $SRC, $OUT and its cargo-fuzz.
cd "$SRC/perfconv"
cargo fuzz build -O --debug-assertions
release="fuzz/target/x86_64-unknown-linux-gnu/release"
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    cp "$release/$target" "$OUT/"
    # The inputs are made by a program of the host, without the flags of the sanitizer.
    env -u RUSTFLAGS -u CFLAGS -u CXXFLAGS cargo run --quiet -p perfdata-tests --example fuzz_seeds -- "$target" "$WORK/$target"
    [ ! -d "tests/fuzz/$target" ] || cp "tests/fuzz/$target"/* "$WORK/$target/"
    (cd "$WORK/$target" && zip -q -r "$OUT/${target}_seed_corpus.zip" .)
    printf '[libfuzzer]\nmax_len = 16384\ntimeout = 25\n' > "$OUT/$target.options"
done
