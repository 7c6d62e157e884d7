//! What each word of `--keep` keeps: the values that it names are those of the original, and all
//! others are those of a sanitized recording without the word.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_core::DecodeContext;
use perfdata_core::content::{Content, Rewrite, Rewriter};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::record::{RawRecord, Record, RecordType, deferred_cookie};
use perfdata_sanitize::{Audience, Kept, Key, Policy, Sanitize};
use perfdata_tests::convert::{Whole, into_memory};
use perfdata_tests::recordings;
use perfdata_tests::synth::sink;
use perfdata_tracepoint::{Formats, Like};

use super::sanitized;

/// A value of a recording: its record, attribute or feature with its number among those of its
/// kind, the names of its field, and its number among the values of this field.
type Place = (String, String, usize);

/// All values of a recording with their contents.
#[derive(Default)]
struct Values {
    all: BTreeMap<Place, (Content, Vec<u8>)>,
    of: String,
    path: Vec<&'static str>,
    /// The content of the whole record or feature.
    whole: Option<Content>,
    counts: BTreeMap<String, usize>,
}

impl Values {
    fn of(bytes: &[u8]) -> Self {
        let whole = Whole::read(bytes.to_vec()).expect("a recording");
        let (recording, mut values) = (&whole.recording, Values::default());
        for (at, event) in recording.events.iter().enumerate() {
            values.start(format!("attribute {at}"), Content::Fields);
            event.attr.clone().rewrite("", Content::Fields, &mut values);
        }
        let layout = DecodeContext::default().with_nr_cpus_available(recording.nr_cpus_available());
        for (&id, bytes) in &recording.features {
            let content = id.info().map_or(Content::Unknown, |info| info.content);
            values.start(format!("feature {id}"), content);
            let mut section =
                Section::decode(id, bytes, recording.endian, &layout).expect("a section");
            section.value.rewrite("", content, &mut values);
        }
        let mut counts: BTreeMap<RecordType, usize> = BTreeMap::new();
        for &(at, kind) in &whole.records {
            if kind.is_metadata() {
                continue;
            }
            let raw = RawRecord::first(&whole.stream[at..], recording.endian, 0).expect("a record");
            let mut record =
                Record::decode(&raw, &recording.events.layout_of(&raw)).expect("a record");
            let count = counts.entry(kind).or_default();
            let content = kind.info().map_or(Content::Unknown, |info| info.content);
            values.start(format!("{kind} {count}"), content);
            *count += 1;
            record.rewrite("", Content::Fields, &mut values);
        }
        values
    }

    fn start(&mut self, of: String, content: Content) {
        self.of = of;
        self.path.clear();
        self.counts.clear();
        self.whole = (content != Content::Fields).then_some(content);
    }

    fn add(&mut self, name: &'static str, content: Content, value: Vec<u8>) {
        let names = self.path.iter().copied().chain([name]);
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let path = names.join(".");
        let number = self.counts.entry(path.clone()).or_default();
        let place = (self.of.clone(), path, *number);
        *number += 1;
        self.all
            .insert(place, (self.whole.unwrap_or(content), value));
    }
}

impl Rewriter for Values {
    fn begin(&mut self, name: &'static str) {
        self.path.push(name);
    }

    fn end(&mut self) {
        self.path.pop();
    }

    fn number(&mut self, name: &'static str, value: u64, _: usize, content: Content) -> u64 {
        self.add(name, content, value.to_be_bytes().to_vec());
        value
    }

    fn text(
        &mut self,
        name: &'static str,
        text: &[u8],
        _: usize,
        content: Content,
    ) -> Option<Vec<u8>> {
        self.add(name, content, text.to_vec());
        None
    }

    fn words(&mut self, name: &'static str, words: &mut [u64], content: Content) {
        let has_cookie = deferred_cookie(words.iter().copied()).is_some();
        let chain = words.len() - usize::from(content == Content::Callchain && has_cookie);
        for (at, &word) in words.iter().enumerate() {
            let content = if at < chain { content } else { Content::Cookie };
            self.number(name, word, size_of::<u64>(), content);
        }
    }

    fn bytes(&mut self, name: &'static str, bytes: &mut [u8], content: Content) {
        // The bytes after a stack or a text may be old data.
        let end = bytes
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |end| end + 1);
        self.add(name, content, bytes[..end].to_vec());
    }
}

/// The contents that a word names.
fn named(kept: Kept) -> &'static [Content] {
    match kept {
        Kept::Host => &[Content::Host],
        Kept::Cmdline => &[Content::Argument],
        Kept::Release => &[Content::Release],
        Kept::Cpu => &[Content::Topology],
        Kept::Comms => &[Content::Comm],
        Kept::Paths | Kept::Basenames => &[Content::Path],
        Kept::Cgroups => &[Content::CgroupPath],
        Kept::Symbols => &[Content::Symbol],
        Kept::Events => &[Content::EventName, Content::Format],
        Kept::Pids => &[Content::Pid],
        Kept::Addresses => &[
            Content::Address,
            Content::Callchain,
            Content::MappingOffset,
            Content::Config,
            Content::PhysicalAddress,
        ],
        Kept::BuildIds => &[Content::BuildId],
        Kept::Times => &[Content::Time, Content::Ticks, Content::Clock],
        Kept::Raw => &[Content::Raw],
        Kept::Stack => &[Content::Memory, Content::Registers],
        _ => panic!("{kept:?} is not tested"),
    }
}

fn basename(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    path.split_at(slash.map_or(0, |slash| slash + 1))
}

/// Compares the values of a recording that was sanitized with a word with those of the original and
/// of one without the word. Returns how many values are only there because of the word.
fn compare(kept: Kept, old: &Values, without: &Values, with: &Values) -> Result<usize, String> {
    let named = named(kept);
    let mut found = 0;
    for (place, (content, value)) in &with.all {
        let of = |values: &Values| values.all.get(place).map(|(_, value)| value.clone());
        let (original, usual) = (of(old), of(without));
        if usual.as_ref() == Some(value) {
            continue;
        }
        let is_original = original.as_ref() == Some(value);
        let is_allowed = match content {
            // Sizes and counts of what is kept, names of the PMUs of the machine.
            Content::Number | Content::BuildIdSize
                if place.0.ends_with("BUILD_ID") && place.1.ends_with("size") =>
            {
                true
            }
            Content::Number
            | Content::Cpu
            | Content::Protection
            | Content::MapFlags
            | Content::BuildIdSize
            | Content::PmuName => is_original,
            Content::Path if kept == Kept::Basenames => {
                let original = original.as_deref().unwrap_or_default();
                let usual = usual.as_deref().unwrap_or_default();
                basename(value).1 == basename(original).1 && basename(value).0 == basename(usual).0
            }
            // The stack was cut to the size that was copied.
            Content::Memory if named.contains(content) => original
                .as_ref()
                .is_some_and(|memory| memory.starts_with(value)),
            // The directory of modules has the release of the kernel.
            Content::Path if kept == Kept::Release => {
                let modules = |path: &[u8]| path.windows(9).any(|part| part == b"/modules/");
                modules(value) && original.as_deref().is_some_and(modules)
            }
            // The names of threads and files may contain process IDs.
            Content::Comm | Content::Path if kept == Kept::Pids => {
                value.iter().any(u8::is_ascii_digit)
            }
            _ => is_original && named.contains(content),
        };
        if !is_allowed {
            return Err(format!(
                "{place:?} ({content:?}): {original:x?} became {value:x?}, without the word {usual:x?}"
            ));
        }
        found += usize::from(named.contains(content));
    }
    // All that it names is there.
    for (place, (content, value)) in &old.all {
        let is_part = kept == Kept::Basenames || *content == Content::Memory;
        if !named.contains(content) || is_part {
            continue;
        }
        let new = with.all.get(place).map(|(_, value)| value);
        if new != Some(value) {
            return Err(format!(
                "{place:?} ({content:?}): {value:x?} became {new:x?}"
            ));
        }
    }
    Ok(found)
}

/// Recordings in which every kind of content occurs.
fn recordings() -> Vec<(String, Vec<u8>)> {
    const FIXTURES: [&str; 8] = [
        "6.1-x86_64-file-g",
        "7.2-x86_64-file-cgroup-mk",
        "6.1-i386-file-dwarf",
        "6.1-s390x-file-g",
        "6.1-i386-file-tp-mixed",
        "6.12-s390x-file-data-phys",
        "6.1-i386-pipe-tp",
        "7.2-x86_64-file-defer",
    ];
    let fixture = |name: &str| {
        let bytes = std::fs::read(recordings::fixture(name).path).expect("a fixture");
        (name.to_owned(), bytes)
    };
    let mut all: Vec<_> = FIXTURES.into_iter().map(fixture).collect();
    all.push(("little-endian sink".into(), sink::file(false).bytes()));
    all.push(("big-endian sink".into(), sink::file(true).bytes()));
    all
}

#[test]
fn each_word_keeps_what_it_names_and_nothing_else() {
    let mut found: BTreeSet<Kept> = BTreeSet::new();
    for (name, input) in recordings() {
        let old = Values::of(&input);
        let without = Values::of(&sanitized(input.clone(), Policy::new(Audience::Public)));
        for &(word, kept, _) in Kept::ALL {
            let policy = Policy::new(Audience::Public)
                .keep_named(word)
                .expect("a word");
            let with = Values::of(&sanitized(input.clone(), policy));
            match compare(kept, &old, &without, &with) {
                Ok(0) => {}
                Ok(_) => {
                    found.insert(kept);
                }
                Err(why) => panic!("{name}, --keep {word}: {why}"),
            }
        }
    }
    let all: BTreeSet<Kept> = Kept::ALL.iter().map(|(_, kept, _)| *kept).collect();
    assert_eq!(found, all);
}

/// Each field of a tracepoint by itself: its bytes stay, all others are zeros but for the number of
/// the tracepoint. Samples of other tracepoints have no raw data.
#[test]
fn each_field_of_a_tracepoint_is_kept_by_itself() {
    let raws = |whole: &Whole| -> Vec<(Option<usize>, Option<Vec<u8>>)> {
        let samples = whole
            .records
            .iter()
            .filter(|(_, kind)| *kind == RecordType::SAMPLE);
        samples
            .map(|&(at, _)| {
                let raw = RawRecord::first(&whole.stream[at..], whole.recording.endian, 0);
                let raw = raw.expect("a record");
                let record = Record::decode(&raw, &whole.recording.events.layout_of(&raw));
                let event = whole.recording.events.of_record(&raw);
                match record.expect("a record").body {
                    perfdata_core::record::Body::Sample(sample) => {
                        (event, sample.raw.map(|raw| raw.to_vec()))
                    }
                    _ => panic!("a sample"),
                }
            })
            .collect()
    };
    let mut fields = 0;
    for name in [
        "6.1-x86_64-file-tp",
        "6.1-i386-pipe-tp",
        "6.1-s390x-file-z-tp",
    ] {
        let input = std::fs::read(recordings::fixture(name).path).expect("a fixture");
        let input = into_memory(
            Input::from_source(input),
            None,
            vec![Box::new(
                perfdata_convert::stages::decompress::Decompress::default(),
            )],
        )
        .expect("it can be decompressed");
        let old = Whole::read(input.clone()).expect("a recording");
        let formats = Formats::of(&old.recording, Like::default()).expect("formats");
        let before = raws(&old);
        let events = old.recording.events.iter().enumerate();
        for (at, event) in events {
            let Some(format) = formats.by_id(event.attr.config) else {
                continue;
            };
            let system = String::from_utf8_lossy(format.system()).into_owned();
            let point = String::from_utf8_lossy(format.name()).into_owned();
            for field in format.fields() {
                let field_name = String::from_utf8_lossy(field.name()).into_owned();
                let policy = Policy::new(Audience::Public)
                    .keep_named(&format!("{system}:{point}:{field_name}"))
                    .expect("a word");
                let new = Whole::read(sanitized(input.clone(), policy)).expect("a recording");
                let after = raws(&new);
                assert_eq!(before.len(), after.len());
                let mut seen = 0;
                for ((of, old), (_, new)) in before.iter().zip(&after) {
                    if *of != Some(at) {
                        assert_eq!(new, &None, "{name}: {point} {field_name}");
                        continue;
                    }
                    let (Some(old), Some(new)) = (old, new) else {
                        panic!("{name}: {point} {field_name}: no raw data");
                    };
                    let dynamic = field.range(old).unwrap_or(0..0);
                    let fixed = field.offset()..field.offset() + field.size();
                    for (byte, (old, new)) in old.iter().zip(new).enumerate() {
                        let stays = byte < 2 || fixed.contains(&byte) || dynamic.contains(&byte);
                        let expected = if stays { *old } else { 0 };
                        assert_eq!(*new, expected, "{name}: {point} {field_name}, byte {byte}");
                    }
                    seen += 1;
                }
                fields += usize::from(seen > 0);
            }
        }
    }
    assert!(fields > 10, "{fields}");
}

/// With one key, what is the same is the same in recordings of one machine: pseudonyms of names,
/// process IDs, build IDs, and the addresses of files that each of them maps once. With another
/// key, nothing is.
#[test]
fn recordings_with_one_key_agree() {
    const NAMES: [&str; 3] = [
        "6.1-x86_64-file-g",
        "6.1-x86_64-file-group-S",
        "6.1-x86_64-file-default",
    ];
    let policy = || Policy::new(Audience::Public);
    let with = |name: &str, secret: &[u8]| {
        let input = std::fs::read(recordings::fixture(name).path).expect("a fixture");
        let key = Key::of_secret(secret).expect("long enough");
        let stages: Vec<Box<dyn Stage>> = vec![Box::new(Sanitize::new(policy(), key))];
        let made = into_memory(Input::from_source(input.clone()), None, stages);
        (
            Values::of(&input),
            Values::of(&made.expect("it can be sanitized")),
        )
    };
    // The old and the new value of each field.
    type Pairs = BTreeMap<(Content, Vec<u8>), Vec<u8>>;
    let pairs = |(old, new): &(Values, Values), contents: &[Content]| -> Pairs {
        let fields = new.all.iter();
        let chosen = fields.filter(|(_, (content, _))| contents.contains(content));
        chosen
            .filter_map(|(place, (content, value))| {
                let (_, old) = old.all.get(place)?;
                let is_replaced =
                    old != value && !value.is_empty() && value.iter().any(|byte| *byte != 0);
                is_replaced.then(|| ((*content, old.clone()), value.clone()))
            })
            .collect()
    };
    // The new addresses of mappings that occur once, by name and file offset.
    let mappings = |(old, new): &(Values, Values)| -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut all: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        for ((of, path, _), (_, value)) in &new.all {
            if !of.starts_with("MMAP2 ") || path != "addr" {
                continue;
            }
            let of = |name: &str| {
                let place = (of.clone(), name.to_owned(), 0);
                old.all
                    .get(&place)
                    .map(|(_, value)| value.clone())
                    .unwrap_or_default()
            };
            let file = [of("filename"), of("pgoff")].concat();
            if file.starts_with(b"/") && !file.starts_with(b"//") {
                all.entry(file).or_default().push(value.clone());
            }
        }
        all.into_iter()
            .filter_map(|(file, places)| match &places[..] {
                [place] => Some((file, place.clone())),
                _ => None,
            })
            .collect()
    };
    const SAME: [Content; 5] = [
        Content::Comm,
        Content::Path,
        Content::Pid,
        Content::BuildId,
        Content::CgroupPath,
    ];
    const SECRET: &[u8] = b"one secret of these tests";
    let all: Vec<_> = NAMES.iter().map(|name| with(name, SECRET)).collect();
    let others: Vec<_> = NAMES
        .iter()
        .map(|name| with(name, b"another secret of these tests"))
        .collect();
    let (mut common, mut places) = (0, 0);
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            let (a, b) = (pairs(one, &SAME), pairs(other, &SAME));
            for (old, new) in &a {
                if let Some(there) = b.get(old) {
                    assert_eq!(new, there, "{old:?}");
                    common += 1;
                }
            }
            let (a, b) = (mappings(one), mappings(other));
            for (file, place) in &a {
                if let Some(there) = b.get(file) {
                    assert_eq!(place, there, "{}", String::from_utf8_lossy(file));
                    places += 1;
                }
            }
        }
        // Another key.
        let contents = [
            &SAME[..],
            &[Content::Address, Content::Callchain, Content::Namespace],
        ]
        .concat();
        let new = |values: &(Values, Values)| -> HashSet<(Content, Vec<u8>)> {
            let is_free = |value: &[u8]| {
                // The image of the kernel has a fixed place.
                !value.starts_with(&[0xff, 0xff, 0x80, 0])
                    && !value.starts_with(&[0xff, 0xff, 0xff, 0xff])
            };
            let pairs = pairs(values, &contents).into_iter();
            pairs
                .map(|((content, _), value)| (content, value))
                .filter(|(_, value)| is_free(value))
                .collect()
        };
        for other in &others {
            let (a, b) = (new(one), new(other));
            assert!(a.len() > 10, "{a:?}");
            let shared: Vec<_> = a.intersection(&b).collect();
            assert!(shared.is_empty(), "{shared:x?}");
        }
    }
    assert!(common >= 5 && places >= 6, "{common} {places}");
}

/// The features that `cpu` keeps are removed otherwise.
#[test]
fn machines_are_not_described() {
    let input = sink::file(false).bytes();
    let sizes = |policy| {
        let whole = Whole::read(sanitized(input.clone(), policy)).expect("a recording");
        let has = |id: &&FeatureId| whole.recording.features.contains_key(id);
        [
            FeatureId::TOTAL_MEM,
            FeatureId::CPU_TOPOLOGY,
            FeatureId::CACHE,
        ]
        .iter()
        .filter(has)
        .count()
    };
    assert_eq!(sizes(Policy::new(Audience::Vendor)), 0);
    assert_eq!(sizes(Policy::new(Audience::Vendor).keep(Kept::Cpu)), 3);
}
