//! Samples become smaller, and everything else stays as it is.

use std::fs;
use std::path::Path;

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::Report;
use perfdata_core::attr::SampleType;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, CallchainContext, RawRecord, Record, RecordType, Sample};
use perfdata_core::{DecodeContext, Recording as Model};
use perfdata_edit::thin::{StackSize, Thin, part, words};
use perfdata_inject::merge_deferred::MergeDeferred;
use perfdata_tests::convert::{Converted, Whole, convert, differences, in_shell};
use perfdata_tests::recordings::{self, Recording};

/// Fixtures with each part that is omitted, and these parts.
const OMITTED: [(&str, &str); 12] = [
    ("6.1-x86_64-file-g", "callchain"),
    ("6.12-x86_64-pipe-dwarf", "ustack,uregs"),
    ("6.1-i386-file-dwarf", "ustack"),
    ("6.1-s390x-file-sampleall", "addr,weight,cpu,period"),
    ("6.1-s390x-file-intr-regs", "iregs"),
    ("6.12-armhf-file-sampleall", "cpu,data_src"),
    ("6.1-i386-file-tp-mixed", "raw"),
    ("6.1-x86_64-file-group-S", "read"),
    ("6.1-s390x-file-z-tp", "cpu"),
    ("6.12-s390x-file-data-phys", "phys_addr,addr"),
    ("7.2-x86_64-file-defer", "callchain"),
    ("7.2-x86_64-pipe-g", "callchain,period"),
];

fn parts(list: &str) -> SampleType {
    list.split(',')
        .map(|word| part(word).expect("a part"))
        .fold(SampleType(0), |all, part| all | part)
}

fn omitting(list: &str) -> Thin {
    Thin::new().omit(parts(list))
}

fn all_of(thin: Thin) -> Vec<Box<dyn Stage>> {
    vec![Box::new(thin)]
}

/// Thins a recording in its own container. Nothing is wrong in the output that is not wrong in the
/// input.
fn thin(recording: &Recording, thin: Thin) -> Result<Converted, String> {
    let made = convert(&recording.path, None, all_of(thin)).map_err(|error| error.to_string())?;
    let report = |path: &Path| Input::open(path).and_then(Report::of);
    let after = report(&made.path()).map_err(|error| error.to_string())?;
    let was_clean = report(&recording.path).is_ok_and(|report| report.is_clean());
    if was_clean && !after.is_clean() {
        return Err(after.text());
    }
    Ok(made)
}

/// Returns the records without compression, and the model.
fn records(path: &Path) -> (Model, Vec<Record>) {
    let plain = convert(path, None, vec![Box::new(Decompress::default())]).expect("it is opened");
    let whole = Whole::read(plain.bytes()).expect("a recording");
    let decode = |(at, _): &(usize, RecordType)| {
        let raw =
            RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record");
        Record::decode(&raw, &whole.recording.events.layout_of(&raw)).expect("a record")
    };
    (
        whole.recording.clone(),
        whole.records.iter().map(decode).collect(),
    )
}

fn samples(path: &Path) -> Vec<Sample> {
    let sample = |record: Record| match record.body {
        Body::Sample(sample) => Some(sample),
        _ => None,
    };
    records(path).1.into_iter().filter_map(sample).collect()
}

/// The first frames of a callchain, counted independently of the stage.
fn first_frames(chain: &[u64], most: usize) -> Vec<u64> {
    let mut frames = 0;
    let mut kept = Vec::new();
    for &word in chain {
        if frames == most {
            break;
        }
        frames += usize::from(word < CallchainContext::FIRST);
        kept.push(word);
    }
    kept
}

/// Every record has exactly the fields of the input, without the omitted ones.
#[test]
fn only_the_parts_are_omitted() {
    for (name, list) in OMITTED {
        let recording = recordings::fixture(name);
        let dropped = parts(list);
        let made = thin(&recording, omitting(list)).unwrap_or_else(|why| panic!("{name}: {why}"));
        let ((before, old), (after, new)) = (records(&recording.path), records(&made.path()));
        let mut expected = old;
        if dropped.has(SampleType::CALLCHAIN) {
            expected.retain(|record| record.kind != RecordType::CALLCHAIN_DEFERRED);
        }
        let kept = SampleType(!dropped.0);
        for record in &mut expected {
            if let Body::Sample(sample) = &mut record.body {
                sample.keep_parts(kept);
            }
            if let Some(trailer) = &mut record.sample_id {
                trailer.keep_parts(kept);
            }
        }
        let is_data = |record: &&Record| !record.kind.is_metadata();
        let (expected, new): (Vec<_>, Vec<_>) = (
            expected.iter().filter(is_data).collect(),
            new.iter().filter(is_data).collect(),
        );
        assert!(expected == new, "{name}");
        assert!(!new.is_empty(), "{name}");
        for (old, new) in before.events.iter().zip(after.events.iter()) {
            assert_eq!(new.attr, old.attr.without(dropped), "{name}");
            assert_eq!(
                new.attr.sample_type.0,
                old.attr.sample_type.0 & !dropped.0,
                "{name}"
            );
        }
        descs_agree(&after, name);
        assert!(
            !dropped.has(SampleType::BRANCH_STACK)
                || !after.features.contains_key(&FeatureId::BRANCH_STACK)
        );
        // Omitting the same again is refused, since no event has it.
        let again = convert(&made.path(), None, all_of(omitting(list))).expect_err("it is gone");
        assert!(again.to_string().contains("no event"), "{again}");
    }
}

/// EVENT_DESC repeats the attributes.
fn descs_agree(model: &Model, name: &str) {
    let Some(Ok(Section {
        value: Feature::EventDescs(descs),
        ..
    })) = model.feature(FeatureId::EVENT_DESC)
    else {
        return;
    };
    for (desc, event) in descs.events.0.iter().zip(model.events.iter()) {
        let layouts = [&desc.attr.0, &event.attr].map(DecodeContext::of_attr);
        assert_eq!(layouts[0], layouts[1], "{name}");
    }
}

mod callchains {
    perfdata_tests::per_fixture!(super::callchains_are_cut);
}

/// For 1 and 3 frames: each callchain starts with the same frames, and a second run changes
/// nothing.
fn callchains_are_cut(recording: &Recording) -> Result<(), String> {
    let original = fs::read(recording.main_file()).map_err(|error| error.to_string())?;
    if recording.path.is_dir()
        || recording.is_damaged()
        || Whole::read(original.clone()).is_err()
        || !Input::open(&recording.path)
            .and_then(Report::of)
            .is_ok_and(|report| report.is_clean())
    {
        return Ok(());
    }
    let all = thin(recording, Thin::new().max_stack(10_000))?;
    if all.bytes() != original && !is_compressed(&original) {
        return Err("a run that cuts nothing changes it".into());
    }
    let is_deferred = recording.name.contains("-defer");
    let before = samples(&recording.path);
    for most in [1, 3] {
        let made = thin(recording, Thin::new().max_stack(most as u32))?;
        let after = samples(&made.path());
        for (old, new) in before.iter().zip(&after) {
            let (Some(old), Some(new)) = (&old.callchain, &new.callchain) else {
                continue;
            };
            if !is_deferred && new[..] != first_frames(old, most) {
                return Err(format!("{most} frames of {old:x?}: {new:x?}"));
            }
        }
        if before.len() != after.len() {
            return Err(format!("{} of {} samples", after.len(), before.len()));
        }
        let twice = convert(
            &made.path(),
            None,
            all_of(Thin::new().max_stack(most as u32)),
        )
        .map_err(|error| error.to_string())?;
        if is_compressed(&original) {
            let differences = differences(&made.path(), &twice.path())?;
            if !differences.is_empty() {
                return Err(format!("again: {differences:?}"));
            }
        } else if twice.bytes() != made.bytes() {
            return Err("a second run changes it".into());
        }
    }
    Ok(())
}

fn is_compressed(bytes: &[u8]) -> bool {
    Whole::read(bytes.to_vec())
        .is_ok_and(|whole| whole.records.iter().any(|(_, kind)| kind.is_compressed()))
}

/// Deferred callchains: merging first and cutting afterwards gives the same frames as cutting
/// first, with records that several samples share.
#[test]
fn both_halves_of_deferred_callchains_count() {
    for name in [
        "7.2-x86_64-file-defer",
        "7.2-x86_64-file-defer-a",
        "7.2-x86_64-file-defer-tp",
    ] {
        let recording = recordings::fixture(name);
        for most in [0, 1, 3, 4, 5, 7, 12, 100] {
            let made = thin(&recording, Thin::new().max_stack(most)).expect("it is thinned");
            let merge = || Box::new(MergeDeferred::new()) as Box<dyn Stage>;
            let cut = || Box::new(Thin::new().max_stack(most)) as Box<dyn Stage>;
            let cut_first = convert(&made.path(), None, vec![merge()]).expect("it is merged");
            let merged_first =
                convert(&recording.path, None, vec![merge(), cut()]).expect("it is merged");
            let frames = |path: &Path| -> Vec<Vec<u64>> {
                let frames = |sample: Sample| {
                    let chain = sample.callchain.expect("a callchain");
                    let is_frame = |word: &u64| *word < CallchainContext::FIRST;
                    chain.iter().copied().filter(is_frame).collect()
                };
                samples(path).into_iter().map(frames).collect()
            };
            let (one, other) = (frames(&cut_first.path()), frames(&merged_first.path()));
            assert_eq!(one.len(), other.len());
            assert!(one.iter().all(|frames| frames.len() <= most as usize));
            // Without its record, a sample in user space gets its address in place of the frames.
            let differ = one.iter().zip(&other).filter(|(one, other)| one != other);
            assert!(differ.count() == 0, "{name}, {most} frames");
        }
    }
}

/// User stacks keep what the kernel copied, up to the size, and attributes give the size.
#[test]
fn stacks_are_cut() {
    for name in [
        "6.12-x86_64-pipe-dwarf",
        "6.1-i386-file-dwarf",
        "7.2-s390x-file-dwarf",
        "6.1-x86_64-file-dwarf-u",
    ] {
        let recording = recordings::fixture(name);
        let before = samples(&recording.path);
        for size in [
            StackSize::Dumped,
            StackSize::AtMost(60_000),
            StackSize::AtMost(509),
            StackSize::AtMost(0),
        ] {
            let stage = || Thin::new().stack_size(size);
            let made = thin(&recording, stage()).expect("it is thinned");
            let (model, _) = records(&made.path());
            let after = samples(&made.path());
            let limit = match size {
                StackSize::AtMost(bytes) => u64::from(bytes).next_multiple_of(8),
                _ => u64::MAX,
            };
            for event in model.events.iter() {
                let has = event.attr.sample_type.has(SampleType::STACK_USER);
                assert!(!has || limit > 0);
                let size = event.attr.sample_stack_user.unwrap_or(0);
                assert!(u64::from(size) <= limit && size.is_multiple_of(8), "{size}");
            }
            descs_agree(&model, name);
            assert_eq!(before.len(), after.len());
            for (old, new) in before.iter().zip(&after) {
                let Some(old) = old.stack_user.as_ref().filter(|_| limit > 0) else {
                    assert!(new.stack_user.is_none());
                    continue;
                };
                let new = new.stack_user.as_ref().expect("a stack");
                let kept = old.dyn_size.unwrap_or(0).min(limit);
                assert_eq!(new.dyn_size.unwrap_or(0), kept, "{name}");
                assert_eq!(new.size, kept.next_multiple_of(8), "{name}");
                let kept = kept as usize;
                assert!(new.data.0[..kept] == old.data.0[..kept], "{name}");
                assert!(new.data.0[kept..].iter().all(|&byte| byte == 0), "{name}");
            }
            let twice = convert(&made.path(), None, all_of(stage())).expect("it is thinned");
            assert!(twice.bytes() == made.bytes(), "{name}: {size:?}");
        }
    }
}

/// A run together with other conversions gives the same as one after the other, in every container
/// and byte order.
#[test]
fn all_forms_agree() {
    let stage = |list: &str| {
        omitting(list)
            .max_stack(2)
            .stack_size(StackSize::AtMost(256))
    };
    for (name, list) in [
        ("6.12-x86_64-pipe-dwarf", "uregs,ustack"),
        ("6.1-s390x-file-sampleall", "addr,data_src"),
        ("6.12-s390x-file-z-g", "period"),
        ("6.1-x86_64-file-group-S", "read"),
    ] {
        let path = recordings::fixture(name).path;
        let swap = || Box::new(Swap::new(Target::Other, Unknown::Error)) as Box<dyn Stage>;
        let thin = || Box::new(stage(list)) as Box<dyn Stage>;
        let open = || Box::new(Decompress::default()) as Box<dyn Stage>;
        let plain = convert(&path, None, vec![open(), thin()]).expect("it is thinned");
        for to in [ContainerKind::File, ContainerKind::Pipe] {
            let first = convert(&path, Some(to), vec![open(), swap()]).expect("it is converted");
            let later = convert(&first.path(), None, vec![thin()]).expect("it is thinned");
            let at_once =
                convert(&path, Some(to), vec![open(), thin(), swap()]).expect("it is converted");
            assert!(later.bytes() == at_once.bytes(), "{name} {to}");
            let packed = Box::new(Compress::new(RecordType::COMPRESSED2, 1)) as Box<dyn Stage>;
            let packed =
                convert(&path, Some(to), vec![open(), thin(), packed]).expect("compressed");
            for other in [&at_once, &packed] {
                assert!(
                    samples(&other.path()) == samples(&plain.path()),
                    "{name} {to}"
                );
            }
        }
        // Compressed records are compressed again.
        let again = convert(&path, None, vec![thin()]).expect("it is thinned");
        assert!(samples(&again.path()) == samples(&plain.path()), "{name}");
    }
}

/// What readers need is refused by name, and what no event has with the parts that there are.
#[test]
fn what_readers_need_is_refused() {
    let refused = |name: &str, thin: Thin| {
        convert(&recordings::fixture(name).path, None, all_of(thin))
            .expect_err("it is refused")
            .to_string()
    };
    for (name, list, expected) in [
        ("6.1-x86_64-file-g", "time", "time cannot be omitted"),
        ("6.1-x86_64-file-g", "ip", "ip cannot be omitted"),
        (
            "6.1-x86_64-file-g",
            "callchain,tid",
            "tid cannot be omitted",
        ),
        ("6.1-x86_64-file-tp", "raw", "raw cannot be omitted"),
        ("6.1-i386-file-dwarf", "uregs", "uregs cannot be omitted"),
        ("6.1-i386-file-tp-mixed", "id", "id cannot be omitted"),
        (
            "6.1-s390x-file-multi",
            "identifier",
            "no event have the part identifier; did you mean id?",
        ),
        (
            "6.1-x86_64-file-g",
            "raw",
            "ip, tid, time, callchain, period",
        ),
    ] {
        let said = refused(name, omitting(list));
        assert!(said.contains(expected), "{name}: {said}");
    }
    let said = part("callchan").expect_err("no part").to_string();
    assert!(said.contains("did you mean callchain?"), "{said}");
    assert_eq!(words(parts("brstack,WEIGHT")).count(), 2);
}

/// The command: the forms of its options, its notes, and a directory.
#[test]
fn options_have_the_forms_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |options: &str, name: &str| {
        let input = recordings::fixture(name).path;
        let line = format!("perfconv {options} {} -o out -f --no-sync", input.display());
        let said = in_shell(folder.path(), &line);
        (said.status.and_then(|status| status.code()), said.stderr)
    };
    for options in ["--stack-size", "--stack-size=512", "--stack-size 512"] {
        let (status, said) = run(options, "6.1-i386-file-dwarf");
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains("user stacks cut to"), "{said}");
    }
    let (status, said) = run("--omit uregs,ustack --max-stack 1", "6.1-i386-file-dwarf");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("omitted uregs, ustack from"), "{said}");
    for (options, expected) in [
        ("--stack-size=70000", 2),
        ("--omit nothing", 2),
        ("--omit raw", 1),
    ] {
        let (status, said) = run(options, "6.1-i386-file-dwarf");
        assert_eq!(status, Some(expected), "{said}");
    }
    fs::remove_file(folder.path().join("out")).expect("the last output");
    let (status, said) = run("--to dir --omit period", "7.2-x86_64-file-threads");
    assert_eq!(status, Some(0), "{said}");
    let out = folder.path().join("out");
    let whole = samples_of_directory(&out);
    assert!(!whole.is_empty() && whole.iter().all(|sample| sample.period.is_none()));
}

fn samples_of_directory(path: &Path) -> Vec<Sample> {
    let file = convert(path, Some(ContainerKind::File), Vec::new()).expect("it is merged");
    samples(&file.path())
}
