//! User stacks become callchains, or are dropped, and everything else stays as it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use perfdata_convert::io::{Input, Output};
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::Report;
use perfdata_core::Recording as Model;
use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Source;
use perfdata_core::record::{Body, CallchainContext, RawRecord, Record, RecordType, Sample};
use perfdata_edit::thin::Thin;
use perfdata_inject::build_ids::Sysroot;
use perfdata_inject::callchains::Callchains;
use perfdata_symbols::Sources;
use perfdata_tests::convert::{Converted, Whole, convert, in_shell};
use perfdata_tests::recordings::{self, Recording};

const USER: u64 = CallchainContext::USER.0;

/// Returns sources in a root directory. Without one, no object is found.
fn sources(root: Option<PathBuf>) -> Sources {
    let root = Sysroot::new(Some(root.unwrap_or_else(|| "/nonexistent".into())));
    Sources::default()
        .with_caches(Vec::new())
        .with_root(Some(Arc::new(move |path: &Path| root.locate(path))))
}

fn unwound(root: Option<PathBuf>) -> Vec<Box<dyn Stage>> {
    vec![Box::new(Callchains::unwound(sources(root)))]
}

fn has_stacks(attr: &Attr) -> bool {
    let parts = [
        SampleType::CALLCHAIN,
        SampleType::REGS_USER,
        SampleType::STACK_USER,
    ];
    parts.into_iter().all(|part| attr.sample_type.has(part))
}

/// Returns the recordings of this project with user stacks and callchains.
fn with_stacks() -> Vec<Recording> {
    let has_some = |recording: &Recording| {
        let reader = Input::open(&recording.path).and_then(Input::reader);
        let events = reader.map(|(reader, _)| reader.recording().events.clone());
        events.is_ok_and(|events| events.iter().any(|event| has_stacks(&event.attr)))
    };
    let all = recordings::fixtures()
        .into_iter()
        .chain(recordings::shared());
    let found: Vec<Recording> = all
        .filter(|recording| recording.path.is_file() && !recording.is_damaged())
        .filter(has_some)
        .collect();
    assert!(found.len() >= 5, "the fixtures are among them");
    found
}

/// The recordings with their objects: name, and the directory with the objects.
fn with_objects() -> Vec<(PathBuf, PathBuf)> {
    let Some(root) = recordings::further("recordings") else {
        return Vec::new();
    };
    [
        "x86_64-7.2/file_dwarf.data",
        "x86_64-7.2/pipe_dwarf.data",
        "x86_64-6.1/file_dwarf.data",
        "x86_64-6.1/file_dwarf_u.data",
    ]
    .into_iter()
    .map(|name| {
        let path = root.join(name);
        let objects = path.parent().expect("a folder").join("sysroot");
        (path, objects)
    })
    .collect()
}

/// Returns the records without compression, and the model.
fn records(path: &Path) -> (Model, Vec<Record>) {
    let plain = convert(path, None, vec![Box::new(Decompress::default())]).expect("it is opened");
    let whole = Whole::read(plain.bytes()).expect("a recording");
    let decode = |(at, _): &(usize, RecordType)| {
        let bytes = &whole.stream[*at..];
        let raw = RawRecord::first(bytes, whole.recording.endian, 0).expect("a record");
        Record::decode(&raw, &whole.recording.events.layout_of(&raw)).expect("a record")
    };
    let all = whole.records.iter().map(decode).collect();
    (whole.recording.clone(), all)
}

fn samples(path: &Path) -> Vec<Sample> {
    let sample = |record: Record| match record.body {
        Body::Sample(sample) => Some(sample),
        _ => None,
    };
    records(path).1.into_iter().filter_map(sample).collect()
}

fn words(sample: &Sample) -> Vec<u64> {
    let words = sample.callchain.iter();
    words.flat_map(|words| words.iter().copied()).collect()
}

/// Returns the user frames of a sample.
fn user(sample: &Sample) -> Vec<u64> {
    let words = words(sample);
    let marker = words.iter().position(|word| *word == USER);
    marker.map_or(Vec::new(), |at| words[at + 1..].to_vec())
}

fn is_clean(path: &Path) -> bool {
    Input::open(path)
        .and_then(Report::of)
        .is_ok_and(|report| report.is_clean())
}

/// The parts of a sample that must not change.
fn others(sample: &Sample) -> Sample {
    let mut sample = sample.clone();
    (sample.callchain, sample.regs_user, sample.stack_user) = (None, None, None);
    sample
}

/// The order and number of all records, times, IDs, and the frames of the kernel do not change, and
/// nothing is wrong in the output.
#[test]
fn everything_else_stays() {
    let all = with_stacks();
    recordings::check_all(&all, |recording| {
        let (before, old) = records(&recording.path);
        let was_clean = is_clean(&recording.path);
        for unwinds in [true, false] {
            let stages = match unwinds {
                true => unwound(None),
                false => vec![Box::new(Callchains::without_stacks()) as Box<dyn Stage>],
            };
            let made = convert(&recording.path, None, stages).map_err(|error| error.to_string())?;
            assert!(!was_clean || is_clean(&made.path()), "{}", recording.name);
            let (after, new) = records(&made.path());
            for (before, after) in before.events.iter().zip(after.events.iter()) {
                let expected = match has_stacks(&before.attr) {
                    false => before.attr.clone(),
                    true => {
                        let parts = SampleType::REGS_USER | SampleType::STACK_USER;
                        let mut attr = before.attr.without(parts);
                        if unwinds {
                            attr.flags = attr.flags.with_exclude_callchain_user(false);
                        }
                        attr
                    }
                };
                assert_eq!(after.attr, expected, "{}", recording.name);
            }
            assert_eq!(old.len(), new.len(), "{}", recording.name);
            for (old, new) in old.iter().zip(&new) {
                let (Body::Sample(old), Body::Sample(new)) = (&old.body, &new.body) else {
                    let is_attribute =
                        matches!(old.body, Body::HeaderAttr(_) | Body::HeaderFeature(_));
                    assert!(old == new || is_attribute, "{}: {old:?}", recording.name);
                    continue;
                };
                assert_eq!(others(old), others(new), "{}", recording.name);
                let (old_words, new_words) = (words(old), words(new));
                let Some(registers) = old.regs_user.as_ref().filter(|_| old.stack_user.is_some())
                else {
                    assert_eq!(old, new, "{}: another event", recording.name);
                    continue;
                };
                if unwinds && !registers.regs.0.is_empty() {
                    let kernel = old_words
                        .split(|word| *word == USER)
                        .next()
                        .unwrap_or_default();
                    let mut expected = kernel.to_vec();
                    expected.push(USER);
                    assert_eq!(new_words[..expected.len()], expected, "{}", recording.name);
                    assert_eq!(
                        new_words.len(),
                        expected.len() + 1,
                        "only the instruction pointer"
                    );
                    assert!(registers.regs.0.contains(&new_words[expected.len()]));
                } else {
                    assert_eq!(old_words, new_words, "{}", recording.name);
                }
            }
        }
        Ok(())
    });
}

/// The byte order of the recording makes no difference, neither to the registers nor to the copy of
/// the stack, which is in the order of the machine.
#[test]
fn the_order_of_swapping_and_unwinding_makes_no_difference() {
    let swap = || Box::new(Swap::new(Target::Other, Unknown::Error)) as Box<dyn Stage>;
    let mut all: Vec<(PathBuf, Option<PathBuf>)> = with_objects()
        .into_iter()
        .map(|(path, objects)| (path, Some(objects)))
        .collect();
    all.extend(
        with_stacks()
            .into_iter()
            .map(|recording| (recording.path, None)),
    );
    for (path, objects) in all {
        let stage = || unwound(objects.clone()).remove(0);
        let name = path.display();
        let once = |first, second| -> Vec<u8> {
            let made = convert(&path, None, vec![first]).expect("converted");
            convert(&made.path(), None, vec![second])
                .expect("converted")
                .bytes()
        };
        let expected = once(swap(), stage());
        assert!(once(stage(), swap()) == expected, "{name}");
        let together = convert(&path, None, vec![stage(), swap()]).expect("converted");
        assert!(together.bytes() == expected, "{name}");
    }
}

#[test]
fn the_number_of_threads_makes_no_difference() {
    for (path, objects) in with_objects() {
        let with = |threads| {
            let stage = Callchains::unwound(sources(Some(objects.clone()))).with_threads(threads);
            let made = convert(&path, None, vec![Box::new(stage)]).expect("converted");
            (made.bytes(), made.summary.notes)
        };
        let expected = with(1);
        assert_eq!(with(2), expected, "{}", path.display());
        assert_eq!(with(7), expected, "{}", path.display());
    }
}

/// Bytes, and how many of them were read.
struct Counted {
    bytes: Vec<u8>,
    read: Arc<AtomicU64>,
}

impl Source for Counted {
    fn len(&self) -> io::Result<u64> {
        Source::len(&self.bytes)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.bytes.read_at(buf, offset)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The pass that finds the mappings does not read the copies of stacks.
#[test]
fn stacks_are_read_once() {
    for recording in with_stacks() {
        let bytes = fs::read(&recording.path).expect("a recording");
        let (model, records) = records(&recording.path);
        let is_pipe = ContainerKind::recognise(&bytes)
            .is_none_or(|(container, _)| container == ContainerKind::Pipe);
        let stack = |record: &Record| match &record.body {
            Body::Sample(sample) => sample.stack_user.as_ref().map(|stack| stack.data.0.len()),
            _ => None,
        };
        let stacks: usize = records.iter().filter_map(stack).sum();
        let is_compressed = model.features.contains_key(&FeatureId::COMPRESSED);
        if is_pipe || is_compressed || stacks < 100_000 {
            continue;
        }
        let read_by = |stage: Callchains| {
            let read = Arc::new(AtomicU64::new(0));
            let source = Counted {
                bytes: bytes.clone(),
                read: read.clone(),
            };
            let folder = tempfile::tempdir().expect("a folder");
            let to = folder.path().join("perf.data");
            let output = Output::create(&to, &recording.path, false).expect("a file");
            let conversion = Conversion::new(vec![Box::new(stage)]);
            let done = conversion.run_on(Input::from_source(source), output.synced(false));
            done.expect("converted");
            read.load(Ordering::Relaxed)
        };
        let once = read_by(Callchains::without_stacks());
        let twice = read_by(Callchains::unwound(sources(None)));
        let more = twice.saturating_sub(once);
        assert!(
            more < stacks as u64 / 2,
            "{}: {more} bytes more, {stacks} bytes of stacks",
            recording.path.display()
        );
    }
}

/// Containers and compression make no difference to the callchains, and neither does a stream.
#[test]
fn all_forms_have_the_same_callchains() {
    for (path, objects) in with_objects() {
        let stage = || unwound(Some(objects.clone())).remove(0);
        let expected = samples(
            &convert(&path, None, vec![stage()])
                .expect("converted")
                .path(),
        );
        let longest = expected.iter().map(|sample| user(sample).len()).max();
        assert!(longest > Some(3), "{}: {longest:?} frames", path.display());
        for to in [ContainerKind::File, ContainerKind::Pipe] {
            let compressed = convert(
                &path,
                Some(to),
                vec![Box::new(Compress::new(RecordType::COMPRESSED2, 1))],
            )
            .expect("compressed");
            let made = convert(&compressed.path(), None, vec![stage()]).expect("converted");
            let (_, all) = records(&made.path());
            assert!(!all.is_empty());
            assert_eq!(samples(&made.path()), expected, "{}", path.display());
            let whole = Whole::read(made.bytes()).expect("a recording");
            let kinds = whole.records.iter().map(|(_, kind)| *kind);
            assert!(
                kinds.clone().any(RecordType::is_compressed),
                "it is compressed again"
            );
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (input, objects) = (path.display(), objects.display());
        let command = format!(
            "cat {input} | perfconv pipe2file --convert-callchain --sysroot {objects} - -o file.data || \
             perfconv convert --convert-callchain --sysroot {objects} {input} -o file.data"
        );
        let output = in_shell(folder.path(), &command);
        assert!(output.success(), "{}", output.stderr);
        assert_eq!(samples(&folder.path().join("file.data")), expected);
    }
}

#[test]
fn callchains_have_at_most_the_requested_frames() {
    for (path, objects) in with_objects() {
        let all = samples(
            &convert(&path, None, unwound(Some(objects.clone())))
                .expect("converted")
                .path(),
        );
        for most in [1, 3] {
            let stages: Vec<Box<dyn Stage>> = vec![
                Box::new(Callchains::unwound(sources(Some(objects.clone()))).with_max_frames(most)),
                Box::new(Thin::new().max_stack(most)),
            ];
            let cut = convert(&path, None, stages).expect("converted");
            for (cut, all) in samples(&cut.path()).iter().zip(&all) {
                let frames = |sample| {
                    let words = words(sample).into_iter();
                    words
                        .filter(|word| CallchainContext::of(*word).is_none())
                        .collect::<Vec<_>>()
                };
                let (cut, all) = (frames(cut), frames(all));
                assert_eq!(
                    cut,
                    all[..all.len().min(most as usize)],
                    "{}",
                    path.display()
                );
            }
        }
    }
}

/// An object that is missing, or is another one, is named once, and its callchains end in it.
#[test]
fn objects_that_cannot_be_used_are_named() {
    let Some((path, objects)) = with_objects().into_iter().next() else {
        return;
    };
    let made = |root: &Path| -> Converted {
        let stages = unwound(Some(root.to_owned()));
        convert(&path, None, stages).expect("converted")
    };
    let complete = made(&objects);
    let empty = tempfile::tempdir().expect("a folder");
    let without = made(empty.path());
    for sample in samples(&without.path()) {
        assert_eq!(user(&sample).len(), 1);
    }
    let notes = without.summary.notes.join("\n");
    assert!(
        notes.contains("no file with its build ID was found"),
        "{notes}"
    );
    assert!(!complete.summary.notes.join("\n").contains("was found"));

    // Another file of this name: its build ID differs in one byte.
    let other = tempfile::tempdir().expect("a folder");
    let output = in_shell(
        other.path(),
        &format!("cp -r {}/. . && chmod -R u+w .", objects.display()),
    );
    assert!(output.success(), "{}", output.stderr);
    let libc = in_shell(other.path(), "find . -name 'libc.so*' -type f").stdout;
    let libc = other.path().join(libc.lines().next().expect("a libc"));
    let mut bytes = fs::read(&libc).expect("a file");
    let note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = bytes.windows(note.len()).position(|window| window == note);
    let at = at.expect("a build ID") + note.len();
    bytes[at] ^= 0xff;
    fs::write(&libc, bytes).expect("written");
    let made = made(other.path());
    let notes = made.summary.notes.join("\n");
    let named = notes.matches("libc.so").count();
    assert!(named == 1 && notes.contains("has the build ID"), "{notes}");
    let frames = |made: &Converted| -> usize {
        let samples = samples(&made.path());
        samples.iter().map(|sample| user(sample).len()).sum()
    };
    assert!(frames(&made) < frames(&complete));
}

#[test]
fn what_cannot_be_unwound_is_said() {
    // No event has user stacks.
    let plain = recordings::fixture("6.1-x86_64-file-g").path;
    for stage in [
        Callchains::unwound(sources(None)),
        Callchains::without_stacks(),
    ] {
        let made = convert(&plain, None, vec![Box::new(stage)]).expect("converted");
        assert_eq!(
            made.summary.notes,
            ["no event has callchains with user registers and user stacks: nothing changed"]
        );
        assert_eq!(made.bytes(), fs::read(&plain).expect("a file"));
    }
    // The architecture is not known.
    let stacks = recordings::fixture("6.1-x86_64-file-dwarf-u").path;
    let drop = |name: &str| (name.to_owned(), Change::Drop);
    let edit = Edit::new(vec![drop("ARCH")]).expect("a feature");
    let unknown = convert(&stacks, None, vec![Box::new(edit)]).expect("converted");
    let error = convert(&unknown.path(), None, unwound(None)).expect_err("refused");
    assert!(
        error
            .to_string()
            .contains("does not contain its architecture"),
        "{error}"
    );
}

#[test]
fn the_command_says_what_could_help() {
    let path = recordings::fixture("6.1-x86_64-file-dwarf-u").path;
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &str| {
        let input = path.display();
        in_shell(
            folder.path(),
            &format!("perfconv {arguments} {input} -o new.data -f"),
        )
    };
    let output = run("convert --convert-callchain --sysroot .");
    assert!(output.success(), "{}", output.stderr);
    assert!(
        output
            .stderr
            .contains("(--sysroot and --debug-dir name folders, ")
            || output.stderr.contains("(--unverified uses"),
        "{}",
        output.stderr
    );
    let output = run("convert --drop-stacks");
    assert!(
        output.stderr.contains("dropped: samples"),
        "{}",
        output.stderr
    );
    for wrong in [
        "convert --drop-stacks --convert-callchain",
        "convert --frame-pointers",
        "convert --convert-callchain --sysroot nowhere",
        "convert --convert-callchain --debug-dir nowhere",
        "split --by pid --convert-callchain",
    ] {
        let output = run(wrong);
        let status = output.status.and_then(|status| status.code());
        assert_eq!(status, Some(2), "{wrong}: {}", output.stderr);
    }
}
