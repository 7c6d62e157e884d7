//! Changes of the model are in the correct part of the output, and nothing else changes.
//!
//! The independent writer makes each recording twice: the original, and the expected result of the
//! change.

use std::{fs, path::Path};

use perfdata_convert::error::Result;
use perfdata_convert::pipeline::Stage;
use perfdata_core::{
    Event, Events, Recording as Model,
    container_layout::ContainerLayout,
    feature::{Feature, FeatureId},
    header,
    wire::HeaderString,
};
use perfdata_tests::{
    convert::{Whole, convert},
    perf::{self, Question},
    recordings::Endian,
    synth::{
        Buf,
        buf::island,
        feature_events,
        file::{self, File, Magic},
        forms,
        pipe::{Pipe, TERMINATOR},
    },
};

/// A change, for the independent writer and for the model.
struct Edit {
    name: &'static str,
    file: fn(&mut File),
    model: fn(&mut Model),
    /// Text that perf prints only after the change.
    shows: Option<(Question, &'static str)>,
}

const LONG_NAME: &str =
    "a name that is so much longer than the one before that it takes more than 64 bytes";

const EDITS: &[Edit] = &[
    Edit {
        name: "nothing",
        file: |_| (),
        model: |_| (),
        shows: None,
    },
    Edit {
        name: "period of an event",
        file: |file| file.events[0].attr.sample_period = 987_654_321,
        model: |model| change_events(model, |events| events[0].attr.sample_period = 987_654_321),
        shows: Some((Question::Evlist, ": 987654321")),
    },
    Edit {
        name: "flag of an event",
        file: |file| file.events[0].attr.flags.push_str(" exclude_hv"),
        model: |model| change_events(model, |events| events[0].attr.flags.0 |= 1 << 6),
        shows: Some((Question::Evlist, "exclude_hv: 1")),
    },
    Edit {
        name: "an id",
        file: |file| file.events[0].ids = vec![77],
        model: |model| change_events(model, |events| events[0].ids = vec![77]),
        shows: None,
    },
    Edit {
        name: "more ids",
        file: |file| file.events[0].ids.extend([78, 79]),
        model: |model| change_events(model, |events| events[0].ids.extend([78, 79])),
        shows: None,
    },
    Edit {
        name: "no ids",
        file: |file| file.events[0].ids.clear(),
        model: |model| change_events(model, |events| events[0].ids.clear()),
        shows: None,
    },
    Edit {
        name: "one more event",
        file: |file| {
            file.events.push(feature_events::Event {
                ids: vec![5, 6],
                ..file.events[0].clone()
            })
        },
        model: |model| {
            change_events(model, |events| {
                events.push(Event {
                    attr: events[0].attr.clone(),
                    ids: vec![5, 6],
                })
            });
        },
        shows: None,
    },
    Edit {
        name: "longer feature",
        file: |file| file.set_feature(3, Buf::new(file.big).str(LONG_NAME).bytes),
        model: |model| {
            set(
                model,
                FeatureId::HOSTNAME,
                Feature::Hostname(HeaderString::new(LONG_NAME.as_bytes())),
            )
        },
        shows: Some((
            Question::Header,
            "# hostname : a name that is so much longer than the one before",
        )),
    },
    Edit {
        name: "shorter feature",
        file: |file| file.set_feature(3, Buf::new(file.big).str_in("b", 2).bytes),
        model: |model| {
            let section = if model.endian == perfdata_core::Endian::Big {
                [0, 0, 0, 2, b'b', 0]
            } else {
                [2, 0, 0, 0, b'b', 0]
            };
            model.features.insert(FeatureId::HOSTNAME, section.into());
        },
        shows: Some((Question::Header, "# hostname : b\n")),
    },
    Edit {
        name: "added feature",
        file: |file| file.set_feature(10, Buf::new(file.big).u64(7654).bytes),
        model: |model| set(model, FeatureId::TOTAL_MEM, Feature::TotalMem(7654)),
        shows: Some((Question::Header, "# total memory : 7654 kB")),
    },
    Edit {
        name: "added unknown feature",
        file: |file| file.set_feature(200, island(13)),
        model: |model| drop(model.features.insert(FeatureId(200), island(13))),
        shows: None,
    },
    Edit {
        name: "removed feature",
        file: |file| file.features.retain(|feature| feature.0 != 6),
        model: |model| drop(model.features.remove(&FeatureId::ARCH)),
        shows: None,
    },
    Edit {
        name: "removed feature",
        file: |file| file.features.retain(|feature| feature.0 != 7),
        model: |model| drop(model.features.remove(&FeatureId::NRCPUS)),
        shows: None,
    },
    Edit {
        name: "version",
        file: |file| file.magic = Magic::V1,
        model: |model| model.magic = header::Magic::V1,
        shows: None,
    },
];

fn change_events(model: &mut Model, change: impl FnOnce(&mut Vec<Event>)) {
    let mut events = std::mem::take(&mut model.events).into_vec();
    change(&mut events);
    model.events = Events::from_iter(events);
}

fn set(model: &mut Model, id: FeatureId, value: Feature) {
    model.set_feature(id, value).expect("it can be encoded");
}

/// A stage that changes only the model.
struct Change(fn(&mut Model));

impl Stage for Change {
    fn begin(&mut self, model: &mut Model, _: &mut ContainerLayout) -> Result<()> {
        (self.0)(model);
        Ok(())
    }
}

/// Changes `before` with `edit` and compares the result with `after`.
fn check(name: &str, before: &[u8], after: &[u8], edit: &Edit) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("before.data");
    fs::write(&path, before).expect("a temporary file");
    let name = format!("{name}, {}", edit.name);
    let result = convert(&path, None, vec![Box::new(Change(edit.model))])
        .map_err(|e| format!("{name}: {e}"))?
        .bytes();

    let mut expected = Whole::read(before.to_vec())
        .map_err(|e| format!("{name}: {e}"))?
        .recording;
    (edit.model)(&mut expected);
    let read = Whole::read(result.clone())
        .map_err(|e| format!("{name}: {e}"))?
        .recording;
    if read.events[..] != expected.events[..]
        || read.features != expected.features
        || read.magic != expected.magic
    {
        return Err(format!("{name}: the output reads otherwise"));
    }
    let at = (0..after.len().max(result.len())).find(|&at| after.get(at) != result.get(at));
    at.map_or(Ok(()), |at| {
        Err(format!(
            "{name}: byte {at} differs, of {} and {}",
            after.len(),
            result.len()
        ))
    })
}

#[test]
fn files_change_where_the_model_does() {
    let mut faults = Vec::new();
    for big in [false, true] {
        for (name, before) in forms::forms(big) {
            for edit in EDITS {
                let mut after = before.clone();
                (edit.file)(&mut after);
                if has_no_place(&before, &after) {
                    continue;
                }
                faults.extend(check(&name, &before.bytes(), &after.bytes(), edit).err());
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Returns whether the file cannot contain features: it has no bitmap, is not finished, or has its
/// attributes after the records.
fn has_no_place(before: &File, after: &File) -> bool {
    let cannot_hold = before.header_size == 72 || before.crashed || before.attrs_behind_data;
    cannot_hold && before.features != after.features
}

#[test]
fn pipes_change_where_the_model_does() {
    let mut faults = Vec::new();
    for big in [false, true] {
        for edit in EDITS {
            let before = file::basic(big);
            let mut after = before.clone();
            (edit.file)(&mut after);
            faults.extend(check("pipe", &pipe(&before), &pipe(&after), edit).err());
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Returns the same recording as a pipe.
fn pipe(file: &File) -> Vec<u8> {
    let pipe = file
        .events
        .iter()
        .fold(Pipe::new(file.big, file.magic), Pipe::event);
    let mut features = file.features.clone();
    features.sort_by_key(|feature| feature.0);
    let pipe = features
        .iter()
        .fold(pipe, |pipe, (bit, section)| pipe.feature(*bit, section));
    // The ID of the record that ends the features is higher than theirs.
    let end = features.last().map_or(0, |feature| feature.0 + 1);
    let mut bytes = pipe.terminator(end.max(TERMINATOR)).bytes;
    bytes.extend_from_slice(&file.data);
    bytes
}

#[test]
fn perf_sees_the_changes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for perf in perf::all() {
        let basic = file::basic(perf.endian == Endian::Big);
        for (name, before) in [("file.data", basic.bytes()), ("pipe.data", pipe(&basic))] {
            let path = folder.path().join(name);
            fs::write(&path, before).expect("a temporary file");
            for edit in EDITS {
                let Some((question, text)) = edit.shows else {
                    continue;
                };
                let after = convert(&path, None, vec![Box::new(Change(edit.model))])
                    .expect("it can be changed");
                let says = |path: &Path| {
                    perf.ask(question, path)
                        .expect("perf starts")
                        .stdout
                        .contains(text)
                };
                assert!(
                    !says(&path) && says(&after.path()),
                    "{perf} does not see the change: {name}, {}",
                    edit.name
                );
            }
        }
    }
}
