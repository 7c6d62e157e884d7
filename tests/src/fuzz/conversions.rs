//! Conversion, recovery and inspection of any input either succeed or return an error.

use std::fs;
use std::path::PathBuf;

use perfdata_convert::Result;
use perfdata_convert::io::{Input, Output, OutputDirectory};
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::recover;
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::Report;
use perfdata_core::attr::SampleType;
use perfdata_core::error::Problem;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Limits, Options, RecordingReader};
use perfdata_core::record::RecordType;
use perfdata_edit::merge::{Align, Merge};
use perfdata_edit::slice;
use perfdata_edit::sort::Sort;
use perfdata_edit::split::{By, Split, is_part};
use perfdata_edit::thin::{StackSize, Thin};
use perfdata_inject::build_ids::{BuildIds, KnownBuildIds, Resolver, Select, Storage, Sysroot};
use perfdata_inject::off_cpu::{OffCpu, OffCpuOptions};
use perfdata_sanitize::{Audience, Kept, Key, Policy, Sanitize};
use perfdata_session::{Samples, Stacks};
use tempfile::TempDir;

use crate::convert::into_memory;

/// An input in a separate folder.
pub(super) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(super) fn new() -> Self {
        Bench {
            folder: tempfile::tempdir().expect("temporary folders can be made"),
        }
    }

    pub(super) fn input(&self, bytes: &[u8]) -> Input {
        let path = self.folder.path().join("input");
        fs::write(&path, bytes).expect("files can be written");
        Input::open(&path).expect("it is there")
    }

    fn output(&self) -> (PathBuf, Output) {
        let path = self.folder.path().join("output");
        let output = Output::create(&path, &self.folder.path().join("input"), true)
            .expect("a new file")
            .synced(false);
        (path, output)
    }

    /// Returns the output of a conversion, or `None` if it was refused.
    pub(super) fn convert(
        &self,
        bytes: &[u8],
        stages: Vec<Box<dyn Stage>>,
        to: Option<ContainerKind>,
    ) -> Option<Vec<u8>> {
        let (path, output) = self.output();
        let result = Conversion::new(stages)
            .to(to)
            .run_on(self.input(bytes), output);
        self.written(path, result)
    }

    /// Returns the recovered recording, if any.
    fn recover(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (path, output) = self.output();
        let result = recover::Recover::default().run(self.input(bytes), output);
        self.written(path, result)
    }

    fn written<T>(&self, path: PathBuf, result: Result<T>) -> Option<Vec<u8>> {
        match result {
            Ok(_) => Some(fs::read(path).expect("the output is there")),
            Err(error) => {
                assert!(error.is_refusal(), "{error}");
                assert!(!path.exists(), "there is an output in spite of: {error}");
                None
            }
        }
    }
}

/// Returns the conversion with number `choice`.
pub(super) fn stages(choice: u8) -> (Vec<Box<dyn Stage>>, Option<ContainerKind>) {
    let swap = |unknown| Box::new(Swap::new(Target::Other, unknown)) as Box<dyn Stage>;
    let compat = |version: &str| {
        Box::new(Compat::new(version.parse().expect("a release"))) as Box<dyn Stage>
    };
    let build_ids = |select, place| {
        let known = KnownBuildIds::parse("0123456789abcdef0123456789abcdef01234567 /bin/true")
            .expect("a list");
        let nowhere = Sysroot::new(Some(PathBuf::from("/nonexistent")));
        Box::new(BuildIds::new(
            select,
            place,
            Resolver::new(known, nowhere, None),
        )) as Box<dyn Stage>
    };
    let thin = |part| {
        let thin = Thin::new().max_stack(2).stack_size(StackSize::AtMost(64));
        Box::new(thin.omit(part)) as Box<dyn Stage>
    };
    let slice = |set: &dyn Fn(&mut slice::Select)| {
        let mut select = slice::Select::default();
        set(&mut select);
        select.allow_empty = true;
        Box::new(slice::Slice::new(select)) as Box<dyn Stage>
    };
    let stages = match choice % 10 {
        _ if (190..200).contains(&choice) => {
            vec![slice(&|select| select.times = "20%-60%".parse().ok())]
        }
        _ if (200..210).contains(&choice) => vec![
            slice(&|select| (select.first, select.last) = (Some(2), Some(3))),
            Box::new(Sort::new()),
        ],
        _ if (210..220).contains(&choice) => vec![slice(&|select| {
            select.comms = Some(slice::Patterns::between_commas("*e*"));
            (select.descendants, select.invert) = (true, choice.is_multiple_of(2));
        })],
        _ if (240..250).contains(&choice) => vec![thin(SampleType::PERIOD), swap(Unknown::Keep)],
        // With so little memory that records go to a temporary file.
        _ if (220..230).contains(&choice) => {
            vec![Box::new(Sort::with_memory(1 << 10)) as Box<dyn Stage>]
        }
        _ if (230..240).contains(&choice) => vec![thin(SampleType::default())],
        _ if (180..190).contains(&choice) => {
            let options = OffCpuOptions {
                drop_sources: choice.is_multiple_of(2),
                wakers: true,
            };
            vec![
                Box::new(Sort::new()) as Box<dyn Stage>,
                Box::new(OffCpu::new(options)),
            ]
        }
        0 => vec![],
        1 => vec![swap(Unknown::Keep)],
        2 => vec![swap(Unknown::Drop)],
        3 => vec![Box::new(Decompress::default()) as Box<dyn Stage>],
        4 => {
            vec![
                Box::new(Decompress::default()) as Box<dyn Stage>,
                Box::new(Compress::new(RecordType::COMPRESSED2, 1)),
            ]
        }
        5 => vec![compat("5.1")],
        6 => vec![compat("6.1"), swap(Unknown::Error)],
        7 => vec![build_ids(Select::Hit, Storage::Table)],
        8 => vec![build_ids(Select::All, Storage::Mmap2)],
        _ => vec![
            Box::new(Decompress::default()) as Box<dyn Stage>,
            swap(Unknown::Error),
        ],
    };
    let to = match choice / 10 % 3 {
        0 => None,
        1 => Some(ContainerKind::File),
        _ => Some(ContainerKind::Pipe),
    };
    (stages, to)
}

/// Runs one conversion, selected by the last byte. The output must be readable.
pub fn convert(data: &[u8]) {
    let (stages, to) = stages(data.last().copied().unwrap_or(0));
    let bench = Bench::new();
    if let Some(output) = bench.convert(data, stages, to) {
        bench
            .input(&output)
            .reader()
            .expect("the output of a conversion is a recording");
    }
}

/// Sanitizes a recording; the last byte of `data` selects how. The output is checked before it
/// appears, so a recording that is not clean panics here. What was sanitized can be sanitized
/// again.
pub fn sanitize(data: &[u8]) {
    let choice = data.last().copied().unwrap_or(0);
    let audience = match choice & 1 {
        0 => Audience::Public,
        _ => Audience::Vendor,
    };
    let kept = Kept::ALL
        .get(usize::from(choice >> 3))
        .map(|(_, kept, _)| *kept);
    let policy = kept.into_iter().fold(Policy::new(audience), Policy::keep);
    let to = match choice >> 1 & 3 {
        0 => None,
        1 => Some(ContainerKind::File),
        _ => Some(ContainerKind::Pipe),
    };
    // Another key for each input: with the pseudonyms of an input, other parts of it that stay,
    // such as build IDs, could be made to look like names.
    let secret = [b"the secret of this target", data].concat();
    let key = || Key::of_secret(&secret).expect("long enough");
    let convert = |bytes: &[u8], to| {
        let stage = Sanitize::new(policy.clone(), key());
        let input = Input::from_source(bytes.to_vec());
        match into_memory(input, to, vec![Box::new(stage)]) {
            Ok(output) => Some(output),
            Err(error) => {
                let text = error.to_string();
                assert!(error.is_refusal(), "{text}");
                // A damaged recording may contain a name where a number should be.
                let is_sound = || {
                    Report::of(Input::from_source(bytes.to_vec()))
                        .is_ok_and(|report| report.is_clean())
                };
                assert!(!text.contains("internal error") || !is_sound(), "{text}");
                None
            }
        }
    };
    if let Some(output) = convert(data, to) {
        convert(&output, None).expect("a sanitized recording");
    }
}

/// Divides a recording; the last byte of `data` selects how. The parts must be readable, sound if
/// the recording is, and have all of its samples.
pub fn split(data: &[u8]) {
    let by = match data.last().copied().unwrap_or(0) % 8 {
        0 => By::Time(10_000_000),
        1 => By::Samples(5),
        2 => By::Size(1 << 14),
        3 => By::Pid,
        4 => By::Tid,
        5 => By::Comm,
        6 => By::Cpu,
        _ => By::Event,
    };
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let target = folder.path().join("parts");
    let directory = OutputDirectory::create(&target, "-".as_ref(), false, is_part);
    let directory = directory.expect("a directory").synced(false);
    let input = |bytes: &[u8]| Input::from_source(bytes.to_vec());
    let report = match Split::new(by).run(input(data), directory, || Ok(Vec::new())) {
        Ok(report) => report,
        Err(error) => {
            assert!(error.is_refusal(), "{error}");
            assert!(!target.exists(), "there is an output in spite of: {error}");
            return;
        }
    };
    let count = |bytes: &[u8]| {
        let mut count = 0u64;
        let mut records = RecordingReader::open(bytes).expect("a recording").by_time();
        while let Ok(Some(record)) = records.next() {
            count += u64::from(record.kind == RecordType::SAMPLE);
        }
        count
    };
    let is_sound = Report::of(input(data)).is_ok_and(|report| report.is_clean());
    let mut samples = 0;
    for part in &report.parts {
        let bytes = fs::read(target.join(&part.file)).expect("a part");
        let verified = Report::of(input(&bytes)).expect("a part is a recording");
        assert!(!is_sound || verified.is_clean(), "{}", verified.text());
        assert_eq!(count(&bytes), part.samples);
        samples += part.samples;
    }
    assert_eq!(count(data), samples);
}

/// Merges two recordings: `data` is both, then the length of the first in 4 bytes, and a byte that
/// selects how. The result must be readable, and sound if both recordings are.
pub fn merge(data: &[u8]) {
    let Some((rest, [a, b, c, d, how])) = data.split_last_chunk() else {
        return;
    };
    let len = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
    let (one, other) = rest.split_at(len.min(rest.len()));
    let input = |bytes: &[u8]| Input::from_source(bytes.to_vec());
    let are_sound = [one, other]
        .iter()
        .all(|bytes| Report::of(input(bytes)).is_ok_and(|report| report.is_clean()));
    let merge = Merge {
        align: [Align::Boot, Align::After, Align::Wall][usize::from(how % 3)],
        rebase_kernel: how & 8 != 0,
        machines: how & 16 != 0,
        unknown: Unknown::Keep,
    };
    let inputs = [("one", one), ("other", other)];
    let inputs = inputs.map(|(name, bytes)| (name.to_owned(), input(bytes)));
    let to = [ContainerKind::File, ContainerKind::Pipe][usize::from(how >> 7)];
    let merged = merge
        .open(inputs.into())
        .and_then(|merged| into_memory(merged.input, Some(to), Vec::new()));
    match merged {
        Ok(bytes) => {
            let report = Report::of(input(&bytes)).expect("what was merged is a recording");
            assert!(!are_sound || report.is_clean(), "{}", report.text());
        }
        Err(error) => assert!(error.is_refusal(), "{error}"),
    }
}

/// Returns pairs of recordings for [`merge`].
pub(super) fn pairs() -> Vec<Vec<u8>> {
    let all = super::recordings();
    let pair = |(at, one): (usize, &Vec<u8>)| {
        let other = all.get(at * 7 % all.len()).unwrap_or(one);
        let len = (one.len() as u32).to_le_bytes();
        [one, other.as_slice(), &len, &[(at * 37) as u8]].concat()
    };
    all.iter().enumerate().map(pair).collect()
}

/// Recovers `data`. The result must be intact, and must not change when it is recovered again.
pub fn recover(data: &[u8]) {
    let bench = Bench::new();
    let Some(first) = bench.recover(data) else {
        return;
    };
    let report = Report::of(bench.input(&first)).expect("what was recovered is a recording");
    assert!(
        report.is_clean(),
        "what was recovered is not sound:\n{}",
        report.text()
    );
    let second = bench
        .recover(&first)
        .expect("what was recovered is a recording");
    assert!(
        second == first,
        "what was recovered changes when it is recovered again"
    );
}

/// Runs the commands that only read.
pub fn look(data: &[u8]) {
    let bench = Bench::new();
    if let Ok(report) = Report::of(bench.input(data)) {
        assert!(!report.text().is_empty() && !report.json().is_empty());
    }
}

/// Resolves the samples of `data`: threads, mappings, frames.
pub fn session(data: &[u8]) {
    let limits = Limits::default().with_max_metadata(1 << 20);
    let Ok(reader) = RecordingReader::open_with(data, Options::default().with_limits(limits))
    else {
        return;
    };
    let Ok(mut samples) = Samples::new(reader) else {
        return;
    };
    let mut stacks = Stacks::new(limits);
    loop {
        match samples.next() {
            Ok(Some(sample)) => {
                let _ = (sample.comm(), sample.weight(), sample.leaf(), sample.attr());
                for frame in sample.frames() {
                    assert_eq!(frame.mapping().is_some(), frame.dso().is_some());
                    assert_eq!(frame.offset().is_some(), frame.mapping.is_some());
                    let _ = frame.build_id();
                }
                sample.branches().for_each(|branch| {
                    assert!(branch.from.mapping.is_none() || branch.from.dso().is_some())
                });
                let Ok(id) = stacks.intern(sample.frames()) else {
                    continue;
                };
                let addresses = id
                    .into_iter()
                    .flat_map(|id| stacks.frames(id))
                    .map(|stack| stack.address);
                assert!(addresses.eq(sample.frames().map(|frame| frame.address)));
            }
            Ok(None) => break,
            // The session's memory is limited. Corrupt records are reported, and reading continues
            // after them.
            Err(error) if matches!(error.problem(), Problem::Limit { .. }) => break,
            Err(_) => {}
        }
    }
    assert!(
        samples.session().held() < 4 << 20,
        "{} bytes",
        samples.session().held()
    );
}
