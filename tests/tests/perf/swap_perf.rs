//! perf reads a recording converted to the other byte order as the recorder read the original.

use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_tests::{
    convert::convert,
    golden::{self, Allowed, Difference, Tally},
    is_thorough,
    judge::{self, READER, Texts},
    perf::{self, Perf, Question},
    recordings::{self, Recording},
};

/// Differences caused by the other byte order, or by the other reading machine.
pub(crate) const ALLOWED: &[Allowed] = &[
    Allowed {
        name: "size of compressed data",
        reason: "what is in the compressed records differs, so that they have other sizes",
        question: Question::Header,
        recordings: |recording| recording.name.contains("-file-z"),
        applies: |difference| {
            [
                "# data size      : ",
                "# feat offset    : ",
                "# compressed : Zstd, level = ",
            ]
            .iter()
            .any(|start| difference.changed_after(start).is_some())
        },
    },
    Allowed {
        name: "one file",
        reason: "a directory becomes a file with the records of all its files, which are not compressed then",
        question: Question::Header,
        recordings: |recording| recording.name.contains("-file-threads"),
        applies: |difference| {
            let lines = [
                "# data size  ",
                "# feat offset  ",
                "# directory data version",
                "# compressed",
                "# missing features",
            ];
            difference.all_lines(|line| lines.iter().any(|start| line.starts_with(start)))
        },
    },
    Allowed {
        name: "records taken for sections",
        reason: "in a file that was never finished perf takes records for the table of features: what it makes of \
                 their bytes is chance",
        question: Question::Header,
        recordings: |recording| recording.name.ends_with("-file-crashed"),
        applies: |difference| matches!(difference, Difference::Lost(_)),
    },
    Allowed {
        name: "frames unwound elsewhere",
        reason: "perf unwinds stacks of its own machine only, but tries it with others (7.2 also for `-g` on s390x)",
        question: Question::Script,
        recordings: |recording| {
            recording.name.contains("-dwarf") || recording.name.ends_with("7.2-s390x-pipe-g")
        },
        applies: |difference| difference.all_lines(judge::is_frame),
    },
];

/// Returns a perf of the recorder's version on a machine of the other byte order.
fn judge_of(recording: &Recording) -> Option<&'static Perf> {
    let recorder = recording.recorder.as_ref()?;
    perf::all()
        .iter()
        .find(|perf| perf.version == recorder.perf && perf.endian != recorder.endian())
}

/// perf 7.2 accesses the first event of recordings of an AMD machine, even if there is none: the
/// result is undefined, and it usually crashes.
fn is_without_events_from_amd(recording: &Recording) -> bool {
    recording.name == "7.2-x86_64-tool-schedstats"
}

/// For the fixtures, or for all available recordings if `PERFCONV_TEST_ALL` is set.
#[test]
fn swapped_recordings_read_as_the_originals() {
    let mut recordings = recordings::fixtures();
    if is_thorough() {
        recordings.extend(recordings::shared());
    }
    recordings.retain(|recording| {
        judge_of(recording).is_some() && !is_without_events_from_amd(recording)
    });
    let known = [ALLOWED, READER].concat();
    let tally = Tally::default();
    recordings::check_all(&recordings, |recording| {
        let Some(perf) = judge_of(recording) else {
            return Ok(());
        };
        let stages: Vec<Box<dyn Stage>> = vec![Box::new(Swap::new(Target::Other, Unknown::Error))];
        let swapped = match convert(&recording.path, None, stages) {
            // perf inject overwrote the section with attributes.
            Err(error) if error.to_string().contains("cannot be read") => return Ok(()),
            other => other.map_err(|error| error.to_string())?,
        };
        let texts = Texts::new(&swapped.path(), perf);
        tally.add(&judge::compare_with_golden(recording, &texts, &known)?);
        // Output that is not in a text file beside the recording.
        let Some(native) = judge::native(recording) else {
            return Ok(());
        };
        let questions: &[Question] = if is_thorough() {
            &[Question::Evlist, Question::BuildIds]
        } else {
            &[Question::Evlist]
        };
        for &question in questions {
            let original = judge::texts(recording, native);
            let (old, new) = (original.answer(question)?, texts.answer(question)?);
            tally.add(&golden::compare(
                recording,
                question,
                &old.stdout,
                &new.stdout,
                &known,
            )?);
        }
        Ok(())
    });
    eprint!("{}", tally.describe(&known));
    if perf::all().len() == 6 && (!is_thorough() || !recordings::shared().is_empty()) {
        let mut unused = tally.unused(ALLOWED);
        // Both perfs read the killed recording among the fixtures in the same way.
        unused.retain(|&name| is_thorough() || name != "records taken for sections");
        assert_eq!(unused, [""; 0], "differences that do not occur any more");
    }
}
