//! Secrets in every text and in all free bytes of real recordings.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::DecodeContext;
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_sanitize::{Audience, Policy, Sanitize};
use perfdata_tests::convert::{Whole, into_memory};
use perfdata_tests::recordings;

use super::{key, plain, records, sanitized, texts};

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
