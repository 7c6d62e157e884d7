//! Every perf reads the result of `pipe2file` like the pipe.
//!
//! The judges are perfs that can read the pipe. If `PERFCONV_TEST_ALL` is set, all of them judge
//! all available recordings.

use std::thread;

use perfdata_core::header::ContainerKind;
use perfdata_tests::{
    allowed::PIPE_TO_FILE,
    convert::convert,
    golden::Tally,
    is_thorough,
    judge::{self, READER, Texts},
    perf,
    recordings::{self, Container, Form},
};

#[test]
fn files_read_as_the_pipes() {
    let mut pipes = if is_thorough() {
        recordings::all()
    } else {
        recordings::fixtures()
    };
    pipes.retain(|recording| {
        matches!(
            recording.form,
            Some(Form {
                container: Container::Pipe,
                ..
            })
        )
    });
    let tally = Tally::default();
    recordings::check_all(&pipes, |pipe| {
        let file = match convert(&pipe.path, Some(ContainerKind::File), Vec::new()) {
            Ok(file) => file,
            Err(_) if pipe.is_damaged() => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let judges = judge::panel(pipe)?;
        if judges.is_empty()
            && let Some(perf) = judge::native(pipe)
        {
            let known = [PIPE_TO_FILE, READER].concat();
            tally.add(&judge::compare_with_golden(
                pipe,
                &Texts::new(&file.path(), perf),
                &known,
            )?);
        }
        judge::compare_by(judges, pipe, &file.path(), PIPE_TO_FILE, &tally)
    });
    eprint!("{}", tally.describe(PIPE_TO_FILE));
    if is_thorough()
        && perf::all().len() == 6
        && !recordings::shared().is_empty()
        && !recordings::corpus().is_empty()
    {
        // The recording machine had four CPUs.
        let has_fewer = thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 4);
        let mut unused = tally.unused(PIPE_TO_FILE);
        unused.retain(|&name| has_fewer || name != "clamped CPUs");
        assert_eq!(unused, [""; 0], "differences that do not occur any more");
    }
}
