//! Accepted differences between perf's output for a recording and for the result of a conversion,
//! by conversion.

use crate::{
    golden::{ANY, Allowed, Difference},
    perf::Question,
    recordings::Recording,
};

/// A directory was converted to a file.
pub const DIRECTORY: Allowed = Allowed {
    name: "directory",
    reason: "it is a file",
    question: Question::Header,
    recordings: ANY,
    applies: |difference| matches!(difference, Difference::Lost(line) if line.starts_with("# directory data version : ")),
};

/// Records were compressed or decompressed.
pub const COMPRESSION: Allowed = Allowed {
    name: "compressed",
    reason: "nothing in it is compressed any more, or it is now, or otherwise",
    question: Question::Header,
    recordings: ANY,
    applies: |difference| difference.all_lines(|line| line.starts_with("# compressed : ")),
};

/// The size of the records in a file changed.
pub const OTHER_SIZE: Allowed = Allowed {
    name: "places",
    reason: "the records take more room, or less",
    question: Question::Header,
    recordings: ANY,
    applies: |difference| {
        ["# data size ", "# feat offset "]
            .iter()
            .any(|start| difference.changed_after(start).is_some())
    },
};

/// A file has one more feature or one less.
pub const OTHER_FEATURES: Allowed = Allowed {
    name: "missing features",
    reason: "COMPRESSED or DIR_FORMAT is one more, or one less",
    question: Question::Header,
    recordings: ANY,
    applies: |difference| difference.changed_after("# missing features: ").is_some(),
};

/// Differences between compressed and decompressed recordings.
pub const COMPRESSED: &[Allowed] = &[
    COMPRESSION,
    OTHER_SIZE,
    OTHER_FEATURES,
    Allowed {
        name: "objects",
        reason: "perf buildid-list does not open compressed records, so it knows of fewer objects",
        question: Question::BuildIds,
        recordings: ANY,
        applies: |difference| !matches!(difference, Difference::Changed(..)),
    },
    Allowed {
        name: "short attributes",
        reason: "of the attribute of a pipe, perf shows what is in its memory behind the 80 bytes that it has",
        question: Question::Evlist,
        recordings: |recording| recording.name.starts_with("quipper/piped.target"),
        applies: |difference| difference.changed_after("cycles: size: 80, ").is_some(),
    },
];

/// Between a file and a pipe, in either direction: offsets of records and features.
pub const PLACES: Allowed = Allowed {
    name: "places",
    reason: "a file has places, a pipe has none",
    question: Question::Header,
    recordings: ANY,
    applies: |difference| {
        [
            "# data offset    : ",
            "# data size      : ",
            "# feat offset    : ",
        ]
        .iter()
        .any(|start| {
            difference
                .changed_after(start)
                .is_some_and(|(old, new)| (old == "0") != (new == "0"))
        })
    },
};

/// Between a file and a pipe, in either direction: the line that ends the header.
pub const FRAME: Allowed = Allowed {
    name: "frame",
    reason: "perf closes the frame of a file's header behind the features, that of a pipe's before them",
    question: Question::Header,
    recordings: ANY,
    applies: |difference| {
        let is_frame = difference.all_lines(|line| line == "# ========" || line == "#");
        is_frame && !matches!(difference, Difference::Changed(..))
    },
};

/// Between a file and a pipe, in either direction: the list of missing features.
pub const MISSING_FEATURES: Allowed = Allowed {
    name: "missing features",
    reason: "perf lists the bits that a file's header does not have; a pipe has no bits",
    question: Question::Header,
    recordings: ANY,
    applies: |difference| {
        let is_list = difference.all_lines(|line| line.starts_with("# missing features: "));
        is_list && !matches!(difference, Difference::Changed(..))
    },
};

/// From a pipe to a file: perf shows data of the file that it does not find in a pipe, or invents
/// for a pipe.
pub const PIPE_TO_FILE: &[Allowed] = &[
    PLACES,
    FRAME,
    MISSING_FEATURES,
    Allowed {
        name: "sample times",
        reason: "a pipe's SAMPLE_TIME is sent before the first sample, and says 0",
        question: Question::Header,
        recordings: ANY,
        applies: |difference| {
            let lines = [
                "# time of first sample : 0.000000",
                "# time of last sample : 0.000000",
            ];
            match difference {
                Difference::Changed(old, _) if old.starts_with("# sample duration :") => {
                    old.ends_with(" 0.000 ms")
                }
                Difference::Changed(old, new) => {
                    lines.contains(&old) && new.get(..22) == old.get(..22)
                }
                _ => false,
            }
        },
    },
    Allowed {
        name: "stat data",
        reason: "perf stat cannot send the flag STAT through a pipe",
        question: Question::Header,
        recordings: is_stat,
        applies: |difference| matches!(difference, Difference::New("# contains stat data")),
    },
    Allowed {
        name: "no host",
        reason: "the stream has no HOSTNAME, which perfs of the other byte order need in a file",
        question: Question::Header,
        recordings: ANY,
        applies: |difference| matches!(difference, Difference::New("# hostname : ")),
    },
    Allowed {
        name: "events of stat",
        reason: "perf stat sends no EVENT_DESC: it is made from the names in EVENT_UPDATE records",
        question: Question::Header,
        recordings: is_stat,
        applies: |difference| matches!(difference, Difference::New(line) if line.starts_with("# event : name = ")),
    },
    Allowed {
        name: "AUX data",
        reason: "perf record cannot send the index of AUX data through a pipe",
        question: Question::Header,
        recordings: |recording| recording.name.ends_with("piped.intel_pt-4.14"),
        applies: |difference| {
            matches!(
                difference,
                Difference::New("# contains AUX area data (e.g. instruction trace)")
            )
        },
    },
    Allowed {
        name: "recorded names",
        reason: "perf evlist stops reading a pipe at the first feature: EVENT_DESC with the names lies behind it",
        question: Question::Evlist,
        recordings: ANY,
        applies: |difference| match difference {
            Difference::Changed(old, new) => {
                attribute(old).is_some_and(|old| attribute(new) == Some(old))
            }
            _ => false,
        },
    },
    Allowed {
        name: "recorded groups",
        reason: "likewise, GROUP_DESC lies behind the first feature",
        question: Question::Evlist,
        recordings: |recording| recording.name == "7.2-x86_64-pipe-group",
        applies: |difference| {
            matches!(
                difference,
                Difference::New("# Tip: use 'perf evlist -g' to show group information")
            )
        },
    },
    Allowed {
        name: "attributes behind the features",
        reason: "likewise, and until 4.18 perf sent the attributes behind the features",
        question: Question::Evlist,
        recordings: features_first,
        applies: |difference| matches!(difference, Difference::New(line) if attribute(line).is_some()),
    },
    Allowed {
        name: "ids taken for fields",
        reason: "before 7.2 perf reads an attribute in a pipe in its own size, even if it is smaller and ids follow",
        question: Question::Evlist,
        recordings: |recording| recording.name.ends_with("-3.4"),
        applies: |difference| match difference {
            Difference::Changed(old, new) => old.strip_prefix(new).is_some_and(|fields| {
                fields.starts_with(", sample_") || fields.starts_with(", aux_")
            }),
            _ => false,
        },
    },
    Allowed {
        name: "clamped CPUs",
        reason: "in a pipe without NRCPUS perf 7.2 takes the reader's number of CPUs for the recorder's, and shows \
                 CPUs beyond as 0",
        question: Question::Script,
        recordings: |recording| recording.name.ends_with("-3.4"),
        applies: |difference| match difference {
            Difference::Changed(old, new) => {
                let cpu = new.find('[').and_then(|at| new.get(at..at + 5));
                cpu.is_some_and(|cpu| new.replacen(cpu, "[000]", 1) == old)
            }
            _ => false,
        },
    },
    Allowed {
        name: "made-up names",
        reason: "where the features come first perf cannot match EVENT_DESC with attributes, and makes up the names",
        question: Question::Script,
        recordings: features_first,
        applies: |difference| match difference {
            Difference::Changed(old, new) => without_modifier(old) == without_modifier(new),
            _ => false,
        },
    },
    Allowed {
        name: "name of a thread that ended",
        reason: "with the index of AUX data, which only a file has, perf keeps the threads that it decodes for",
        question: Question::Script,
        recordings: |recording| recording.name.ends_with("piped.intel_pt-4.14"),
        applies: |difference| match difference {
            Difference::Changed(old, new) => {
                old.trim_start().replacen(":3587 ", "echo ", 1) == new.trim_start()
            }
            _ => false,
        },
    },
    Allowed {
        name: "objects behind what buildid-list cannot read",
        reason: "perf buildid-list does not find its way past tracing data in a pipe, nor into compressed records",
        question: Question::BuildIds,
        recordings: |recording| {
            ["-pipe-tp", "-pipe-z"]
                .iter()
                .any(|what| recording.name.contains(what))
                || recording.name.ends_with("sleep.compressed2.pipe")
        },
        applies: |difference| matches!(difference, Difference::New(_)),
    },
    Allowed {
        name: "objects without section",
        reason: "where there is a BUILD_ID section perf buildid-list shows that instead of the objects of samples",
        question: Question::BuildIds,
        recordings: |recording| {
            ["-injected", "-repiped"]
                .iter()
                .any(|end| recording.name.ends_with(end))
        },
        applies: |difference| matches!(difference, Difference::Lost(_)),
    },
];

fn is_stat(recording: &Recording) -> bool {
    recording.name.contains("-pipe-stat")
}

/// perf 4.14 to 4.18 write the features before the attributes in a pipe.
fn features_first(recording: &Recording) -> bool {
    recording.name.contains("piped.")
        && (recording.name.ends_with("-4.14") || recording.name.ends_with("-4.16"))
}

/// Returns a line of `perf evlist -v` without the name of the event.
fn attribute(line: &str) -> Option<&str> {
    line.split_once(": type: ")
        .or_else(|| line.split_once(": size: "))
        .map(|(_, attribute)| attribute)
}

/// Returns a line of `perf script` without the parts that depend on the length of the event name.
fn without_modifier(line: &str) -> String {
    line.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace(":H: ", ": ")
}
