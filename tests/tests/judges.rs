//! perf is a judge only if it still says of a recording what it said where the recording was made.

use perfdata_tests::{
    golden::Tally,
    judge::{self, READER},
    recordings,
};

#[test]
fn originals_read_as_where_they_were_recorded() {
    let mut recordings = recordings::fixtures();
    recordings.extend(recordings::shared());
    let tally = Tally::default();
    recordings::check_all(&recordings, |recording| {
        if let Some(perf) = judge::native(recording) {
            let uses = judge::compare_with_golden(recording, &recording.path, perf, READER)?;
            tally.add(&uses);
        }
        Ok(())
    });
    eprint!("{}", tally.describe(READER));
}
