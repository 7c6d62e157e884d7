//! perf is a judge only if its output for a recording is the same as on the recording machine.

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
        let Some(perf) = judge::native(recording) else {
            return Ok(());
        };
        tally.add(&judge::compare_with_golden(
            recording,
            &judge::texts(recording, perf),
            READER,
        )?);

        let spoke = |text: Option<Vec<u8>>| text.is_some_and(|text| !text.is_empty());
        let could_read = spoke(recording.script_text()) && spoke(recording.header_text());
        if could_read && !judge::can_judge(perf, recording)? {
            return Err(format!("{perf} read it, but is not found to be a judge"));
        }
        Ok(())
    });
    eprint!("{}", tally.describe(READER));
}
