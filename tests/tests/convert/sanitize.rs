//! What a sanitized recording no longer contains, and what stays in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use perfdata_convert::inspect::verify::Report;
use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::build_ids::{
    BuildIds, KnownBuildIds, Resolver, Select as Objects, Storage, Sysroot,
};
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::sanitize::{Audience, Kept, Key, Policy, Sanitize};
use perfdata_convert::stages::slice::{Select, Slice};
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::DecodeContext;
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType, Sample};
use perfdata_tests::convert::{Whole, convert, into_memory};
use perfdata_tests::recordings::{self, Recording};
use perfdata_tests::synth::{kind, sink};

const AUDIENCES: [Audience; 2] = [Audience::Public, Audience::Vendor];

fn key() -> Key {
    Key::of_secret(b"the secret of these tests").expect("long enough")
}

fn stages(policy: Policy) -> Vec<Box<dyn Stage>> {
    vec![Box::new(Sanitize::new(policy, key()))]
}

fn sanitized(input: Vec<u8>, policy: Policy) -> Vec<u8> {
    let input = Input::from_source(input);
    into_memory(input, None, stages(policy)).expect("it can be sanitized")
}

/// Returns the recording without compression.
fn plain(recording: Vec<u8>) -> Vec<u8> {
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
    into_memory(Input::from_source(recording), None, stages).expect("it can be decompressed")
}

fn records(whole: &Whole) -> Vec<Record> {
    let decode = |(at, _): &(usize, RecordType)| {
        let raw =
            RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record");
        Record::decode(&raw, &whole.recording.events.layout_of(&raw)).expect("a record")
    };
    whole.records.iter().map(decode).collect()
}

fn samples(records: &[Record]) -> Vec<&Sample> {
    let sample = |record: &'_ Record| matches!(record.body, Body::Sample(_));
    let all = records.iter().filter(|record| sample(record));
    all.map(|record| match &record.body {
        Body::Sample(sample) => sample,
        _ => unreachable!("only samples were selected"),
    })
    .collect()
}

/// Checks that old and new values correspond to each other, one to one.
#[derive(Default)]
struct Pairs<T>(HashMap<T, T>, HashMap<T, T>);

impl<T: Eq + std::hash::Hash + Clone + std::fmt::Debug> Pairs<T> {
    fn add(&mut self, old: T, new: T, what: &str) -> Result<(), String> {
        let there = self.0.entry(old.clone()).or_insert(new.clone()).clone();
        let back = self.1.entry(new.clone()).or_insert(old.clone()).clone();
        if there == new && back == old {
            return Ok(());
        }
        Err(format!(
            "{what}: {old:?} became {there:?} and {new:?}, which was {back:?}"
        ))
    }
}

/// Every sample stays, with its place, its group and its time relative to the others; `verify` finds
/// nothing new; every other record stays unless the mode removes its type.
fn check(recording: &Recording, audience: Audience) -> Result<(), String> {
    let read = |path: &Path| -> Result<Whole, String> {
        let opened = convert(path, None, vec![Box::new(Decompress::default())]);
        Whole::read_file(&opened.map_err(|error| error.to_string())?.path())
    };
    let made = convert(&recording.path, None, stages(Policy::new(audience)))
        .map_err(|error| error.to_string())?;
    let report = |path: &Path| Input::open(path).and_then(Report::of);
    let is_clean = report(&recording.path).is_ok_and(|report| report.is_clean());
    let after = report(&made.path()).map_err(|error| error.to_string())?;
    if is_clean && !after.is_clean() {
        return Err(after.text());
    }
    let (before, after) = (read(&recording.path)?, read(&made.path())?);
    if before.recording.events.len() != after.recording.events.len() {
        return Err("the number of events changed".into());
    }
    let count = |whole: &Whole| {
        let mut counts: BTreeMap<RecordType, u64> = BTreeMap::new();
        for (_, kind) in &whole.records {
            // Their position in the stream and in the head of a pipe is the same to readers.
            if !kind.is_metadata() {
                *counts.entry(*kind).or_default() += 1;
            }
        }
        counts
    };
    let (mut old, new) = (count(&before), count(&after));
    let is_removed = |kind: &RecordType| {
        let content = kind.info().map_or(Content::Unknown, |info| info.content);
        matches!(
            content,
            Content::Trace | Content::Code | Content::Clock | Content::Bpf | Content::Unknown
        )
    };
    old.retain(|kind, _| !is_removed(kind));
    if old != new {
        return Err(format!("{old:?} became {new:?}"));
    }
    let (old, new) = (records(&before), records(&after));
    let (old, new) = (samples(&old), samples(&new));
    let (mut pids, mut tids, mut ids) = (Pairs::default(), Pairs::default(), Pairs::default());
    let mut shift = None;
    for (old, new) in old.iter().zip(&new) {
        if let (Some(old), Some(new)) = (&old.tid, &new.tid) {
            pids.add(old.pid, new.pid, "pid")?;
            tids.add(old.tid, new.tid, "tid")?;
        }
        if let (Some(old), Some(new)) = (old.identifier.or(old.id), new.identifier.or(new.id)) {
            ids.add(old, new, "id")?;
        }
        if let (Some(old), Some(new)) = (old.time, new.time)
            && perfdata_core::record::is_moment(old)
        {
            let by = old.wrapping_sub(new);
            if *shift.get_or_insert(by) != by {
                return Err(format!(
                    "the time {old} became {new}, others differ by {shift:?}"
                ));
            }
        }
        let same = (old.cpu, old.period, old.weight, old.data_src)
            == (new.cpu, new.period, new.weight, new.data_src);
        let chain = |sample: &Sample| sample.callchain.as_ref().map(|chain| chain.len());
        let branches = |sample: &Sample| {
            sample
                .branch_stack
                .as_ref()
                .map(|stack| stack.entries.len())
        };
        if !same || chain(old) != chain(new) || branches(old) != branches(new) {
            return Err(format!("{old:?} became {new:?}"));
        }
    }
    Ok(())
}

#[test]
fn every_sample_of_every_fixture_stays() {
    recordings::check_all(&recordings::fixtures(), |recording| {
        AUDIENCES
            .iter()
            .try_for_each(|&audience| check(recording, audience))
    });
}

#[test]
fn every_sample_of_other_recordings_stays() {
    let recordings: Vec<Recording> = recordings::shared()
        .into_iter()
        .filter(|recording| {
            recording
                .path
                .metadata()
                .is_ok_and(|meta| meta.is_dir() || meta.len() < 1 << 20)
        })
        .collect();
    recordings::check_all(&recordings, |recording| check(recording, Audience::Public));
}

/// The recordings of the independent writer that contain every record and feature.
fn sinks() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for big in [false, true] {
        let order = if big { "big" } else { "little" };
        all.push((format!("{order} file"), sink::file(big).bytes()));
        all.push((format!("{order} pipe"), sink::pipe(big).bytes));
        all.push((
            format!("{order} compressed file"),
            sink::compressed_file(big, kind::COMPRESSED2).bytes(),
        ));
        all.push((
            format!("{order} compressed pipe"),
            sink::compressed_pipe(big, kind::COMPRESSED).bytes,
        ));
    }
    all
}

/// Returns the printable texts of at least `least` bytes.
fn texts(bytes: &[u8], least: usize) -> BTreeSet<String> {
    bytes
        .split(|byte| !(b' '..=b'~').contains(byte))
        .filter(|text| text.len() >= least)
        // The size of a text may be a letter.
        .map(|text| {
            String::from_utf8_lossy(text)
                .trim_start_matches(['@', '"', '('])
                .to_owned()
        })
        .collect()
}

/// Texts of the sink that a sanitized recording may contain: names that every machine has, the model
/// of the processor, tracepoints and their formats, and numbers that configure a processor's event.
const KEPT: &[&str] = &[
    "# compressed entry header",
    "'&%$#\"!87654321",
    "!\"#$%&'(12345678",
    "//anon",
    "//toolong",
    "/usr/bin/true",
    "/usr/lib/libc.so.6",
    "7.2.13",
    "Dtracing0.6",
    "GenuineIntel,6,142,10",
    "ID: 314",
    "Joules",
    "PERFILE2h",
    "2ELIFREP",
    "PERFILE2",
    "Synthetic CPU @ 1.00GHz",
    "[guest.kernel.kallsyms]",
    "[kernel.kallsyms]",
    "[kernel.kallsyms]_text",
    "[stack]",
    "array       :   32 bits",
    "branches",
    "branches:ppp",
    "cpu_atom",
    "cpu_core",
    "cycles:u",
    "cycles:upp",
    "data max type_len  == 28",
    "field: char data;",
    "field: int overwrite;",
    "field: local_t commit;",
    "field: u64 timestamp;",
    "field:int common_pid;",
    "field:int value;",
    "field:unsigned char common_flags;",
    "field:unsigned char common_preempt_count;",
    "field:unsigned short common_type;",
    "format:",
    "header_event",
    "header_page",
    "kprobe_insn_page",
    "max_precise",
    "name: demo",
    "offset:0;",
    "offset:16;",
    "offset:2;",
    "offset:3;",
    "offset:4;",
    "offset:8;",
    "padding     : type == 29",
    "pmu_name",
    "print fmt: \"value=%d\", REC->value",
    "record",
    "signed:0;",
    "signed:1;",
    "size:1;",
    "size:2;",
    "size:4080;",
    "size:4;",
    "size:8;",
    "skylake",
    "software",
    "synth:demo",
    "time_delta  :   27 bits",
    "time_extend : type == 30",
    "time_stamp : type == 31",
    "tracepoint",
    "type_len    :    5 bits",
    "x86_64",
    "{anon_group}",
];

/// Every record type, every part of samples, every attribute field and every feature at once: no
/// text of the original is in the output, unless it is one that every recording has.
#[test]
fn no_text_of_any_record_or_feature_survives() {
    for (name, input) in sinks() {
        let before = texts(&plain(input.clone()), 6);
        assert!(before.len() > 60, "{name}: {before:?}");
        let after = plain(sanitized(input, Policy::new(Audience::Public)));
        let left = texts(&after, 6);
        let left: Vec<&String> = before
            .intersection(&left)
            .filter(|text| !KEPT.contains(&text.as_str()))
            .collect();
        assert!(left.is_empty(), "{name}: {left:#?}");
    }
}

/// Numbers that the independent writer chose so that they are recognised anywhere.
#[test]
fn no_address_of_any_record_or_feature_survives() {
    for (name, input) in sinks() {
        let before = plain(input.clone());
        let after = plain(sanitized(input, Policy::new(Audience::Public)));
        let words = |bytes: &[u8]| -> BTreeSet<u64> {
            let all = bytes.windows(8).map(|word| {
                let word: [u8; 8] = word.try_into().expect("8 bytes");
                match name.starts_with("big") {
                    true => u64::from_be_bytes(word),
                    false => u64::from_le_bytes(word),
                }
            });
            // Addresses of programs and of the kernel; neither parts of texts nor of small numbers.
            let is_address = |word: &u64| {
                let digits = word.to_le_bytes();
                let mut digits = digits.iter().filter(|byte| !matches!(byte, 0 | 0xff));
                let is_number = digits.clone().any(|byte| !(b' '..=b'~').contains(byte));
                let count = digits.by_ref().count();
                let is_user = matches!(*word >> 40, 0x55 | 0x56 | 0x7f);
                (is_user || *word >= 0xffff_ffff_8000_0000) && is_number && count >= 3
            };
            all.filter(is_address).collect()
        };
        let (before, after) = (words(&before), words(&after));
        assert!(before.len() > 4, "{name}: {before:x?}");
        let left: Vec<&u64> = before.intersection(&after).collect();
        assert!(left.is_empty(), "{name}: {left:x?}");
    }
}

/// Puts a secret into every text and into all bytes whose form does not depend on them, and
/// remembers which secret is in which kind of content.
struct Seeds {
    next: u64,
    secrets: HashMap<Vec<u8>, Content>,
}

/// Size of a secret in bytes.
const SECRET: usize = 15;

impl Seeds {
    /// Returns the secret in `window` in any case, and what it is.
    fn find(&self, window: &[u8]) -> Option<(Content, String)> {
        let is_form = window.first() == Some(&b'Z') && window.last() == Some(&b'q');
        let content = is_form.then(|| self.secrets.get(window))??;
        Some((*content, String::from_utf8_lossy(window).into_owned()))
    }

    /// Returns a secret of at most `most` bytes that occurs nowhere else.
    fn secret(&mut self, content: Content, most: usize) -> Option<Vec<u8>> {
        let seed = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63;
        let secret = format!("Z{:013X}q", seed >> 12).into_bytes();
        (secret.len() <= most).then(|| {
            self.next += 1;
            self.secrets.insert(secret.clone(), content);
            secret
        })
    }
}

impl Rewriter for Seeds {
    fn number(&mut self, _: &'static str, value: u64, _: usize, _: Content) -> u64 {
        value
    }

    fn text(
        &mut self,
        _: &'static str,
        text: &[u8],
        most: usize,
        content: Content,
    ) -> Option<Vec<u8>> {
        // The others stay by rule: numbers, the processor, and formats, which must be valid.
        match content {
            Content::Number | Content::Processor | Content::PmuName | Content::Format => None,
            Content::Path if text.starts_with(b"[") => None,
            Content::Path => {
                let secrets = [self.secret(content, most)?, self.secret(content, most)?];
                Some([b"/home/", &*secrets[0], b"/", &*secrets[1], b".so"].concat())
            }
            _ => self.secret(content, most),
        }
    }

    fn bytes(&mut self, _: &'static str, bytes: &mut [u8], content: Content) {
        let is_free = matches!(
            content,
            Content::Memory | Content::Raw | Content::Padding | Content::BuildId | Content::Bpf
        );
        if is_free && let Some(secret) = self.secret(content, bytes.len()) {
            bytes
                .iter_mut()
                .zip(secret)
                .for_each(|(to, from)| *to = from);
        }
    }
}

/// Returns a recording with secrets in all texts and free bytes of its records and features.
fn seeded(path: &Path, seeds: &mut Seeds) -> Option<Vec<u8>> {
    let whole = Whole::read_file(path).ok()?;
    let endian = whole.recording.endian;
    let mut recording = whole.recording.clone();
    let layout = DecodeContext::default().with_nr_cpus_available(recording.nr_cpus_available());
    for (&id, bytes) in &whole.recording.features {
        let Ok(mut section) = Section::decode(id, bytes, endian, &layout) else {
            continue;
        };
        if !matches!(
            id,
            FeatureId::BUILD_ID
                | FeatureId::TRACING_DATA
                | FeatureId::BPF_PROG_INFO
                | FeatureId::BPF_BTF
        ) {
            let content = id.info().map_or(Content::Unknown, |info| info.content);
            section.value.rewrite("", content, seeds);
        }
        recording.features.insert(id, section.encode(endian).ok()?);
    }
    let file = tempfile::tempfile().ok()?;
    let no_gaps: Vec<u8> = Vec::new();
    let mut writer = perfdata_write::FileWriter::begin(
        &file,
        perfdata_write::FilePlan::standard(),
        &recording,
        &no_gaps,
    )
    .ok()?;
    for mut record in records(&whole) {
        let is_plain = !record.kind.is_metadata()
            && !record.kind.has_payload()
            && !record.kind.is_compressed();
        if !is_plain || record.kind == RecordType::HEADER_BUILD_ID {
            continue;
        }
        record.rewrite("", Content::Fields, seeds);
        let len = record.encode(endian).ok()?.len();
        record
            .tail
            .resize(record.tail.len() + len.next_multiple_of(8) - len, 0);
        let bytes = record.encode(endian).ok()?;
        let raw = RawRecord::first(&bytes, endian, 0).ok()?;
        perfdata_write::RecordSink::record(&mut writer, &raw).ok()?;
    }
    writer.finish(&recording).ok()?;
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut &file).ok()?;
    std::io::Read::read_to_end(&mut &file, &mut bytes).ok()?;
    Some(bytes)
}

/// Secrets in every text of real recordings, in both byte orders: none is in any sanitized one,
/// neither as it is nor in upper or lower case or as hexadecimal digits. What is kept by name is
/// there, and nothing else.
#[test]
fn no_seeded_secret_survives() {
    const RECORDINGS: [&str; 8] = [
        "6.1-x86_64-file-g",
        "7.2-x86_64-file-cgroup-mk",
        "6.1-i386-file-dwarf",
        "6.1-s390x-file-g",
        "6.1-i386-file-tp-mixed",
        "6.12-s390x-file-data-phys",
        "6.1-s390x-file-default",
        "7.2-x86_64-file-defer",
    ];
    let words: [(&str, &[Content]); 9] = [
        ("host", &[Content::Host]),
        ("cmdline", &[Content::Argument]),
        ("release", &[Content::Release]),
        ("comms", &[Content::Comm]),
        ("paths", &[Content::Path]),
        ("cgroups", &[Content::CgroupPath]),
        ("symbols", &[Content::Symbol]),
        ("events", &[Content::EventName]),
        ("build-ids", &[Content::BuildId]),
    ];
    let mut seen: BTreeSet<Content> = BTreeSet::new();
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    for name in RECORDINGS {
        let recording = recordings::fixture(name);
        let mut seeds = Seeds {
            next: 1,
            secrets: HashMap::new(),
        };
        let Some(input) = seeded(&recording.path, &mut seeds) else {
            panic!("{name}: secrets cannot be written");
        };
        assert!(seeds.secrets.len() > 8, "{name}: {:?}", seeds.secrets);
        for swap in [false, true] {
            let input = if swap {
                let stages: Vec<Box<dyn Stage>> =
                    vec![Box::new(Swap::new(Target::Other, Unknown::Keep))];
                into_memory(Input::from_source(input.clone()), None, stages)
                    .expect("it can be swapped")
            } else {
                input.clone()
            };
            let there = |bytes: &[u8]| {
                let found = bytes
                    .windows(SECRET)
                    .filter_map(|window| seeds.find(window));
                found.collect::<BTreeSet<_>>()
            };
            assert!(
                there(&input).len() * 2 > seeds.secrets.len(),
                "{name}: the secrets are in the input"
            );
            seen.extend(seeds.secrets.values().copied());
            for to in [ContainerKind::File, ContainerKind::Pipe] {
                let stages: Vec<Box<dyn Stage>> = vec![
                    Box::new(Sanitize::new(Policy::new(Audience::Public), key())),
                    Box::new(Compress::new(RecordType::COMPRESSED2, 1)),
                ];
                let output = into_memory(Input::from_source(input.clone()), Some(to), stages)
                    .expect("it can be sanitized");
                assert_eq!(there(&output), BTreeSet::new(), "{name}");
                let output = plain(output);
                assert_eq!(there(&output), BTreeSet::new(), "{name}");
                // Nor in another form.
                let digits: Vec<String> = texts(&output, 2 * SECRET)
                    .into_iter()
                    .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
                    .collect();
                assert_eq!(digits, Vec::<String>::new(), "{name}");
                assert_eq!(
                    there(&output.to_ascii_uppercase()),
                    BTreeSet::new(),
                    "{name}"
                );
            }
            if swap {
                continue;
            }
            for (word, contents) in words {
                let policy = Policy::new(Audience::Public)
                    .keep_named(word)
                    .expect("a word");
                let output = sanitized(input.clone(), policy);
                for (content, secret) in there(&output) {
                    assert!(
                        contents.contains(&content),
                        "{name}: --keep {word} keeps {secret:?} of {content:?}"
                    );
                    kept.insert(word);
                }
            }
        }
    }
    for content in [
        Content::Comm,
        Content::Path,
        Content::Host,
        Content::Argument,
        Content::Memory,
        Content::Raw,
        Content::CgroupPath,
    ] {
        assert!(
            seen.contains(&content),
            "no recording has {content:?}: {seen:?}"
        );
    }
    assert!(
        kept.is_superset(&BTreeSet::from([
            "host", "cmdline", "comms", "paths", "events"
        ])),
        "{kept:?}"
    );
}

/// The same key gives the same output, and the same pseudonyms in another recording; other keys
/// give others. Without a key, every output is different.
#[test]
fn pseudonyms_depend_on_the_key() {
    let input = fs_bytes("6.1-x86_64-file-g");
    let other = fs_bytes("6.1-x86_64-file-dwarf-u");
    let with = |input: &[u8], key: Key| {
        let stage = Sanitize::new(Policy::new(Audience::Public), key);
        into_memory(
            Input::from_source(input.to_vec()),
            None,
            vec![Box::new(stage)],
        )
        .expect("it can be sanitized")
    };
    let another = || Key::of_secret(b"another secret of these tests").expect("long enough");
    assert_eq!(with(&input, key()), with(&input, key()));
    let tokens = |bytes: &[u8]| -> BTreeSet<String> {
        let is_token = |text: &&str| {
            text.len() == 14 && text.bytes().all(|byte| b"bcdfghjklmnpqrst".contains(&byte))
        };
        let all = texts(bytes, 14);
        let words = all
            .iter()
            .flat_map(|text| text.split(['/', '.', '[', ']', ' ']));
        words.filter(is_token).map(str::to_owned).collect()
    };
    let (a, b) = (tokens(&with(&input, key())), tokens(&with(&other, key())));
    assert!(a.intersection(&b).count() >= 3, "{a:?} {b:?}");
    let c = tokens(&with(&input, another()));
    assert_eq!(a.intersection(&c).count(), 0);
    let random = || tokens(&with(&input, Key::random().expect("random numbers")));
    assert_eq!(random().intersection(&random()).count(), 0);
    assert!(a.len() >= 5 && c.len() == a.len());
}

fn fs_bytes(name: &str) -> Vec<u8> {
    std::fs::read(recordings::fixture(name).path).expect("a fixture")
}

/// Ticks since boot become ticks since the first ones.
#[test]
fn ticks_do_not_tell_how_long_the_machine_runs() {
    let ticks = |bytes: Vec<u8>| -> Vec<u64> {
        let all = records(&Whole::read(bytes).expect("a recording"));
        let ticks = all.iter().filter_map(|record| match &record.body {
            Body::SchedstatCpu(cpu) => Some(cpu.timestamp),
            Body::SchedstatDomain(domain) => Some(domain.timestamp),
            _ => None,
        });
        ticks.collect()
    };
    for name in ["7.2-x86_64-tool-schedstats", "7.2-s390x-tool-schedstats"] {
        let old = ticks(fs_bytes(name));
        let first = *old.first().expect("ticks");
        assert!(first > 1 << 32 && old.iter().any(|&ticks| ticks > first));
        let expected: Vec<u64> = old.iter().map(|ticks| ticks - first + 1).collect();
        let new = ticks(sanitized(fs_bytes(name), Policy::new(Audience::Public)));
        assert_eq!(new, expected, "{name}");
    }
}

/// Conversions before or after give the same recording.
#[test]
fn the_order_of_conversions_does_not_matter() {
    for name in [
        "6.1-x86_64-file-g",
        "6.1-x86_64-file-z",
        "6.1-s390x-file-g",
        "7.2-x86_64-pipe-g",
    ] {
        let input = fs_bytes(name);
        let sanitize =
            || Box::new(Sanitize::new(Policy::new(Audience::Public), key())) as Box<dyn Stage>;
        let swap = || Box::new(Swap::new(Target::Other, Unknown::Keep)) as Box<dyn Stage>;
        let open = || Box::new(Decompress::default()) as Box<dyn Stage>;
        let run = |input: &[u8], stages| {
            into_memory(Input::from_source(input.to_vec()), None, stages)
                .expect("it can be converted")
        };
        let swapped_first = run(&run(&input, vec![swap()]), vec![sanitize()]);
        let swapped_last = run(&run(&input, vec![sanitize()]), vec![swap()]);
        let in_one = run(&input, vec![sanitize(), swap()]);
        assert_eq!(
            model(&plain(swapped_last.clone())),
            model(&plain(in_one)),
            "{name}"
        );
        assert_eq!(
            model(&plain(swapped_first)),
            model(&plain(swapped_last)),
            "{name}"
        );
        let opened_first = run(&run(&input, vec![open()]), vec![sanitize()]);
        let opened_last = run(&run(&input, vec![sanitize()]), vec![open()]);
        assert_eq!(model(&opened_first), model(&opened_last), "{name}");
        // A sanitized recording can be sanitized again: the names are new, the form is the same.
        let again = run(&run(&input, vec![sanitize()]), vec![sanitize()]);
        let once = run(&input, vec![sanitize()]);
        let form = |bytes: &[u8]| {
            let whole = Whole::read(plain(bytes.to_vec())).expect("a recording");
            (
                whole
                    .records
                    .iter()
                    .map(|(_, kind)| *kind)
                    .collect::<Vec<_>>(),
                whole.recording.features.keys().copied().collect::<Vec<_>>(),
            )
        };
        assert_eq!(form(&again), form(&once), "{name}");
    }
}

/// Returns all records and features as text, without their containers.
fn model(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let whole = Whole::read(bytes.to_vec()).expect("a recording");
    let layout =
        DecodeContext::default().with_nr_cpus_available(whole.recording.nr_cpus_available());
    let features = whole.recording.features.iter().map(|(&id, bytes)| {
        let section =
            Section::decode(id, bytes, whole.recording.endian, &layout).expect("a section");
        format!("{:?}", section.value)
    });
    let records = records(&whole);
    (
        records.iter().map(|record| format!("{record:?}")).collect(),
        features.collect(),
    )
}

/// The self-check finds what a stage after it brings back.
#[test]
fn the_output_is_checked_before_it_appears() {
    #[derive(Debug)]
    struct Undo(Vec<u8>);
    impl Stage for Undo {
        fn finish(
            &mut self,
            recording: &mut perfdata_core::Recording,
            _: &mut perfdata_convert::pipeline::Link<'_>,
        ) -> perfdata_convert::Result<()> {
            let text = perfdata_core::wire::HeaderString::new(&self.0);
            Ok(recording.set_feature(FeatureId::CPUDESC, Feature::CpuDesc(text))?)
        }
    }
    let input = fs_bytes("6.1-x86_64-file-g");
    let whole = Whole::read(input.clone()).expect("a recording");
    let comm = records(&whole)
        .into_iter()
        .find_map(|record| match record.body {
            Body::Comm(comm) if comm.comm.text() == b"perf-workload" => {
                Some(comm.comm.text().to_vec())
            }
            _ => None,
        });
    let comm = comm.expect("a comm");
    for text in [comm, b"another processor".to_vec()] {
        let stages: Vec<Box<dyn Stage>> = vec![
            Box::new(Sanitize::new(Policy::new(Audience::Public), key())),
            Box::new(Undo(text.clone())),
        ];
        let made = into_memory(Input::from_source(input.clone()), None, stages);
        let error = made.expect_err("it is not clean").to_string();
        assert!(
            error.contains("internal error") && error.contains("nothing was written"),
            "{error}"
        );
    }
}

/// Two stages would each check an output that only the second one knows.
#[test]
fn a_conversion_sanitizes_once() {
    let twice = || -> Vec<Box<dyn Stage>> {
        let stage = || Sanitize::new(Policy::new(Audience::Public), key());
        vec![Box::new(stage()), Box::new(stage())]
    };
    for to in [ContainerKind::File, ContainerKind::Pipe] {
        let input = Input::from_source(fs_bytes("6.1-x86_64-file-g"));
        let error = into_memory(input, Some(to), twice()).expect_err("it is refused");
        let error = error.to_string();
        assert!(
            error.contains("one stage") && !error.contains("internal"),
            "{error}"
        );
    }
}

/// The self-check finds each original value that a stage after it brings back into a sample.
#[test]
fn the_samples_of_the_output_are_checked_before_it_appears() {
    type Change = fn(&mut Sample, &Sample);
    #[derive(Debug)]
    struct Undo(Sample, Change);
    impl Stage for Undo {
        fn record(
            &mut self,
            raw: &RawRecord<'_>,
            next: &mut perfdata_convert::pipeline::Link<'_>,
        ) -> perfdata_convert::Result<()> {
            let layout = next.recording().events.layout_of(raw);
            let mut record = Record::decode(raw, &layout)?;
            if let Body::Sample(sample) = &mut record.body {
                (self.1)(sample, &self.0);
            }
            let bytes = record.encode(raw.endian)?;
            next.record(&RawRecord {
                bytes: &bytes,
                ..*raw
            })
        }
    }
    let input = fs_bytes("6.1-x86_64-file-g");
    let all = records(&Whole::read(input.clone()).expect("a recording"));
    let has_chain = |sample: &&Sample| {
        sample
            .callchain
            .as_ref()
            .is_some_and(|chain| chain.len() > 2)
    };
    let old = samples(&all)
        .into_iter()
        .find(has_chain)
        .expect("a callchain")
        .clone();
    let run = |change: Change| {
        let stages: Vec<Box<dyn Stage>> = vec![
            Box::new(Sanitize::new(Policy::new(Audience::Public), key())),
            Box::new(Undo(old.clone(), change)),
        ];
        into_memory(Input::from_source(input.clone()), None, stages)
    };
    run(|_, _| {}).expect("nothing is brought back");
    let changes: [(&str, Change); 4] = [
        ("ip", |new, old| new.ip = old.ip),
        ("pid", |new, old| new.tid = old.tid),
        ("callchain", |new, old| {
            new.callchain = old.callchain.clone()
        }),
        ("period", |new, old| new.period = old.ip),
    ];
    for (field, change) in changes {
        let error = run(change).expect_err("it is not clean").to_string();
        let is_named =
            error.contains(&format!("{field:?}")) && error.contains("nothing was written");
        assert!(is_named, "{field}: {error}");
    }
}

/// What cannot be sanitized is refused, and words are checked.
#[test]
fn words_to_keep_are_checked() {
    let policy = || Policy::new(Audience::Public);
    let error = policy()
        .keep_named("coms")
        .expect_err("no such word")
        .to_string();
    assert!(error.contains("did you mean comms"), "{error}");
    for (word, ..) in Kept::ALL {
        policy().keep_named(word).expect("a word");
    }
    let field = policy()
        .keep_named("sched:sched_switch:no_such_field")
        .expect("a form");
    let input = Input::from_source(fs_bytes("6.1-x86_64-file-g"));
    let made = into_memory(input, None, stages(field));
    let error = made.expect_err("no tracepoint").to_string();
    assert!(error.contains("has no such tracepoint"), "{error}");
}

/// Sections that stages before it add at the end, build IDs and the times of the samples that are
/// left, are sanitized, too.
#[test]
fn what_other_stages_add_is_sanitized() {
    const OBJECT: &str = "/usr/local/bin/perf-workload";
    let known = KnownBuildIds::parse(&format!(
        "0123456789abcdef0123456789abcdef01234567 {OBJECT}"
    ));
    let resolver = Resolver::new(
        known.expect("a list"),
        Sysroot::new(Some("/nonexistent".into())),
        None,
    );
    let mut select = Select::default();
    select.times = "20%-60%".parse().ok();
    let stages: Vec<Box<dyn Stage>> = vec![
        Box::new(Slice::new(select)),
        Box::new(BuildIds::new(Objects::All, Storage::Table, resolver)),
        Box::new(Sanitize::new(Policy::new(Audience::Vendor), key())),
    ];
    let input = Input::from_source(fs_bytes("6.1-x86_64-file-g"));
    let made = into_memory(input, None, stages).expect("it can be sanitized");
    let whole = Whole::read(made).expect("a recording");
    let Some(Ok(Section {
        value: Feature::BuildIds(ids),
        ..
    })) = whole.recording.feature(FeatureId::BUILD_ID)
    else {
        panic!("there are build IDs");
    };
    let names: Vec<String> = ids
        .0
        .iter()
        .map(|id| id.build_id.filename.to_string())
        .collect();
    assert!(
        names.iter().any(|name| name.ends_with("/perf-workload")),
        "{names:?}"
    );
    let records = records(&whole);
    let times: Vec<u64> = samples(&records)
        .iter()
        .filter_map(|sample| sample.time)
        .collect();
    let Some(Ok(Section {
        value: Feature::SampleTime(range),
        ..
    })) = whole.recording.feature(FeatureId::SAMPLE_TIME)
    else {
        panic!("there are times");
    };
    assert_eq!(
        (Some(&range.first), Some(&range.last)),
        (times.iter().min(), times.iter().max())
    );
}
