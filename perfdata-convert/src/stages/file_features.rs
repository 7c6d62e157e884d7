//! The feature sections that every file of perf has, and that readers rely on.
//!
//! The driver adds this stage to the recovery of a damaged recording: killed recordings have no
//! sections at all, because perf writes them at the end.
//!
//! - perf finds the width of the words of the feature bitmap in a file of the other byte order by
//!   the bit of HOSTNAME (tools/perf/util/header.c, `perf_file_header__read`), and the parser of
//!   hotspot finds the byte order of the bitmap by it.
//! - hotspot shows only events that EVENT_DESC names.
//! - Without ARCH, readers take the machine for their own one.
//! - perf refuses a file with a tracepoint whose format it does not find in TRACING_DATA.

use perfdata_core::Recording;
use perfdata_core::attr::{EventType, SampleType};

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{ElfMachine, EventDescs, Feature, FeatureId, Section};
use perfdata_core::names::EventNames;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::wire::HeaderString;
use perfdata_tracepoint::{Formats, Like};

use super::tracepoint_formats::common_formats;
use crate::error::Result;
use crate::inspect::verify::{lacks_tracing_data, wrong_end};
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage};

/// Adds the sections that readers rely on.
#[derive(Default)]
pub(crate) struct FileFeatures {
    /// Whether the file cannot contain sections.
    is_full: bool,
    /// Sections that cannot be read, and keep their entries in the feature table.
    lost: Vec<FeatureId>,
    names: EventNames,
    reads_names: bool,
    /// The architecture, as far as a mapped file tells it.
    arch: Option<&'static str>,
    reads_mappings: bool,
    added: Vec<String>,
    /// Whether tracing data with only the common fields of tracepoints were added.
    has_common_formats: bool,
}

impl FileFeatures {
    fn lacks(&self, recording: &Recording, id: FeatureId) -> bool {
        !self.is_full && !recording.features.contains_key(&id) && !self.lost.contains(&id)
    }

    fn add(&mut self, recording: &mut Recording, id: FeatureId, value: Feature) -> Result<()> {
        recording.set_feature(id, value)?;
        self.added.push(id.to_string());
        Ok(())
    }

    /// Returns the events with the names that readers would show without the section.
    fn event_descs(&mut self, recording: &Recording) -> Option<EventDescs> {
        self.names.update(recording);
        let formats = Formats::of(recording, Like::Perf7_2);
        let events = recording.events.iter().enumerate();
        let entries = events.map(|(at, event)| {
            let name = self.names.get(recording, at).unwrap_or_default();
            let tracepoint = || {
                let formats = formats
                    .as_ref()
                    .filter(|_| !self.names.is_named(recording, at))?;
                let is_tracepoint = event.attr.kind == EventType::TRACEPOINT;
                formats.by_id(event.attr.config).filter(|_| is_tracepoint)
            };
            let name = match tracepoint() {
                Some(format) => [format.system(), b":", format.name()].concat(),
                None => name.into_owned(),
            };
            (
                event.attr.clone(),
                HeaderString::new(&name),
                event.ids.clone(),
            )
        });
        EventDescs::new(entries.collect()).filter(|_| !recording.events.is_empty())
    }
}

impl Stage for FileFeatures {
    fn requirements(&self) -> Requirements {
        Requirements {
            keeps_samples: true,
            ..Requirements::none()
        }
    }

    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        if let ContainerLayout::File(file) = container_layout {
            self.lost = file.lost_sections().map(|(id, _)| id).collect();
            self.is_full = !file.has_room_for_features() || wrong_end(file).is_some();
        }
        self.reads_names = self.lacks(recording, FeatureId::EVENT_DESC);
        self.reads_mappings = self.lacks(recording, FeatureId::ARCH);
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        match kind {
            RecordType::EVENT_UPDATE => self.reads_names,
            RecordType::MMAP | RecordType::MMAP2 => self.reads_mappings && self.arch.is_none(),
            _ => false,
        }
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if raw.kind == RecordType::EVENT_UPDATE {
            self.names.see(raw);
        } else if self.arch.is_none() {
            let mapping = next.recording().events.fixed_record(raw);
            let mapping = mapping.and_then(|fixed| fixed.mapping());
            self.arch = mapping.and_then(|mapping| arch_of_path(mapping.filename));
        }
        next.record(raw)
    }

    fn finish(&mut self, recording: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        if self.lacks(recording, FeatureId::TRACING_DATA)
            && lacks_tracing_data(recording)
            && has_raw_data(recording)
        {
            self.names.update(recording);
            let name = |at| {
                self.names
                    .get(recording, at)
                    .unwrap_or_default()
                    .into_owned()
            };
            let formats = common_formats(recording, name);
            recording.set_feature(FeatureId::TRACING_DATA, Feature::TracingData(formats))?;
            self.has_common_formats = true;
        }
        if self.lacks(recording, FeatureId::HOSTNAME) {
            let unknown = Feature::Hostname(HeaderString::new(b""));
            self.add(recording, FeatureId::HOSTNAME, unknown)?;
        }
        if self.lacks(recording, FeatureId::ARCH)
            && let Some(arch) = arch_of(recording).or(self.arch)
        {
            let arch = Feature::Arch(HeaderString::new(arch.as_bytes()));
            self.add(recording, FeatureId::ARCH, arch)?;
        }
        if self.lacks(recording, FeatureId::EVENT_DESC)
            && let Some(descs) = self.event_descs(recording)
        {
            self.add(recording, FeatureId::EVENT_DESC, Feature::EventDescs(descs))?;
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let note = || {
            format!(
                "added {}, which readers of files rely on",
                self.added.join(", ")
            )
        };
        let mut notes = Vec::new();
        if self.has_common_formats {
            notes.push(
                "added TRACING_DATA with the common fields of tracepoints: without it, perf \
                 refuses the whole file"
                    .to_owned(),
            );
        }
        notes.extend((!self.added.is_empty()).then(note));
        notes
    }
}

/// Returns whether samples of tracepoints contain data that formats describe: counts of `perf stat`
/// have none, and it writes no formats.
fn has_raw_data(recording: &Recording) -> bool {
    let mut events = recording.events.iter();
    events.any(|event| {
        event.attr.kind == EventType::TRACEPOINT && event.attr.sample_type.has(SampleType::RAW)
    })
}

/// Returns the architecture that other features tell, as shown by `uname -m`.
fn arch_of(recording: &Recording) -> Option<&'static str> {
    let section = |id| recording.feature(id).and_then(|section| section.ok());
    let machine = match section(FeatureId::E_MACHINE).map(|section| section.value) {
        Some(Feature::EMachine(machine)) => match machine.e_machine {
            ElfMachine::X86_64 => Some("x86_64"),
            ElfMachine::AARCH64 => Some("aarch64"),
            ElfMachine::S390 => Some("s390x"),
            _ => None,
        },
        _ => None,
    };
    let release = || match section(FeatureId::OSRELEASE) {
        Some(Section {
            value: Feature::OsRelease(release),
            ..
        }) => arch_of_release(release.text()),
        _ => None,
    };
    machine.or_else(release)
}

/// Returns the architecture at the end of a kernel release of a distribution.
fn arch_of_release(release: &[u8]) -> Option<&'static str> {
    let names: [(&[u8], _); 10] = [
        (b".x86_64", "x86_64"),
        (b"-amd64", "x86_64"),
        (b".aarch64", "aarch64"),
        (b"-arm64", "aarch64"),
        (b".s390x", "s390x"),
        (b"-s390x", "s390x"),
        (b".ppc64le", "ppc64le"),
        (b"-powerpc64le", "ppc64le"),
        (b".riscv64", "riscv64"),
        (b"-riscv64", "riscv64"),
    ];
    let mut names = names.into_iter();
    names.find_map(|(end, arch)| release.ends_with(end).then_some(arch))
}

/// Returns the architecture of a machine on which a file in a folder of libraries is mapped. Those of
/// 32-bit machines tell nothing: their programs also run on 64-bit ones.
fn arch_of_path(path: &[u8]) -> Option<&'static str> {
    let folders: [(&[u8], _); 7] = [
        (b"/x86_64-linux-gnu/", "x86_64"),
        (b"/ld-linux-x86-64.so.2", "x86_64"),
        (b"/aarch64-linux-gnu/", "aarch64"),
        (b"/ld-linux-aarch64.so.1", "aarch64"),
        (b"/s390x-linux-gnu/", "s390x"),
        (b"/powerpc64le-linux-gnu/", "ppc64le"),
        (b"/riscv64-linux-gnu/", "riscv64"),
    ];
    let is_in = |part: &[u8]| path.windows(part.len()).any(|window| window == part);
    let mut folders = folders.into_iter();
    folders.find_map(|(part, arch)| is_in(part).then_some(arch))
}
