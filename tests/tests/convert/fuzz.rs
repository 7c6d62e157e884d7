//! A short run of each fuzz target with reproducible inputs, and with the inputs that broke a
//! target in the past.

use std::fs;

use perfdata_tests::{
    fuzz::{Numbers, damage, target},
    recordings,
};

/// Runs a target on its seeds, and on `count` inputs derived from them.
fn short_run(name: &str, count: usize) {
    let target = target(name).expect("a target");
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty());
    let inputs: Vec<usize> = (0..count).collect();
    recordings::in_parallel(&inputs, |&at| {
        let mut numbers = Numbers(at as u64);
        let mut input = seeds[at % seeds.len()].clone();
        if at >= seeds.len() {
            damage(&mut input, &mut numbers);
        }
        let run = std::panic::catch_unwind(|| (target.run)(&input));
        if let Err(panic) = run {
            let path = std::env::temp_dir().join(format!("perfconv-fuzz-{name}-{at}"));
            fs::write(&path, &input).expect("it can be written");
            eprintln!("{name}: input {at} is now {}", path.display());
            std::panic::resume_unwind(panic);
        }
    });
}

/// Runs the inputs that broke a target in the past, from `tests/fuzz/<target>`.
fn regressions(name: &str) {
    let target = target(name).expect("a target");
    let folder = recordings::root().join("tests/fuzz").join(name);
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("a folder that can be read").path();
        eprintln!("{}", path.display());
        (target.run)(&fs::read(path).expect("a file that can be read"));
    }
}

macro_rules! targets {
    ($($name:ident $count:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            regressions(stringify!($name));
            short_run(stringify!($name), $count);
        })*

        #[test]
        fn no_target_is_left_out() {
            let here = [$(stringify!($name)),*];
            let all: Vec<&str> = perfdata_tests::fuzz::TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(all, here);
        }
    };
}

targets! {
    copy 5000,
    record 50000,
    section 20000,
    convert 4000,
    sanitize 2000,
    merge 2000,
    split 3000,
    fields 2000,
    splice 2000,
    exports 2000,
    columns 500,
    recover 4000,
    look 4000,
    session 4000,
    zstd 5000,
    elf 5000,
    jitdump 5000,
    bundle 2000,
    arm_spe 1000,
    intel_pt 5000,
    intel_pt_walk 20000,
    perf_map 500,
    symbols 5000,
    demangle 20000,
    tracepoint 10000,
    unwind 5000,
    known 500,
    set 500,
}
