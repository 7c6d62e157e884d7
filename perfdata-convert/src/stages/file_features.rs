//! The feature sections that every file of perf has, and that readers rely on.
//!
//! The driver adds this stage to every conversion to a file except an exact copy: killed recordings
//! have no sections at all, because perf writes them at the end, and streams may have none. If the
//! input is an undamaged file, this stage adds only what the conversion removed, and HOSTNAME if the
//! byte order changes: nothing else of a file changes that was not requested.
//!
//! - perf finds the width of the words of the feature bitmap in a file of the other byte order by
//!   the bit of HOSTNAME (tools/perf/util/header.c, `perf_file_header__read`), and the parser of
//!   hotspot finds the byte order of the bitmap by it.
//! - hotspot shows only events that EVENT_DESC names.
//! - Without ARCH, readers take the machine for their own one.
//! - perf refuses a file with a tracepoint whose format it does not find in TRACING_DATA.

use perfdata_core::{Endian, Recording};

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{ElfMachine, EventDescs, Feature, FeatureId, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::names::EventNames;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::wire::HeaderString;
use perfdata_tracepoint::{Formats, Like};

use super::tracepoint_formats::common_formats;
use crate::error::Result;
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage};
use crate::verify::{has_raw_data, lacks_tracing_data, wrong_end};

/// Adds the sections that readers rely on.
pub(crate) struct FileFeatures {
    /// The sections of the input.
    before: Vec<FeatureId>,
    /// The byte order of the input.
    endian: Endian,
    /// Whether the input is an undamaged file.
    is_file: bool,
    /// Whether an architecture is added.
    adds_arch: bool,
    /// Whether the output contains nothing of the input's container.
    is_new: bool,
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
    /// Returns the stage. `recording` is the model of the input, and `from` its container, or a
    /// pipe if sections may be missing that the input had.
    pub(crate) fn of(recording: &Recording, from: ContainerKind) -> Self {
        let is_file = from == ContainerKind::File;
        FileFeatures {
            before: recording.features.keys().copied().collect(),
            endian: recording.endian,
            is_file,
            // A section that was dropped is not found again in the records.
            adds_arch: !is_file && !recording.features.contains_key(&FeatureId::ARCH),
            is_new: false,
            is_full: false,
            lost: Vec::new(),
            names: EventNames::default(),
            reads_names: false,
            arch: None,
            reads_mappings: false,
            added: Vec::new(),
            has_common_formats: false,
        }
    }

    /// Returns the stage for an output that contains nothing of the input's container, and is
    /// checked: the check knows nothing of an architecture that the input did not name.
    pub(crate) fn of_checked(recording: &Recording, from: ContainerKind) -> Self {
        FileFeatures {
            adds_arch: false,
            is_new: true,
            ..FileFeatures::of(recording, from)
        }
    }

    fn lacks(&self, recording: &Recording, id: FeatureId) -> bool {
        let is_due = match id {
            FeatureId::ARCH => self.adds_arch,
            FeatureId::HOSTNAME if self.endian != recording.endian => true,
            id => !self.is_file || self.before.contains(&id),
        };
        is_due && !self.is_full && !recording.features.contains_key(&id) && !self.lost.contains(&id)
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
            let name = Formats::event_name(formats.as_ref(), recording, &self.names, at);
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
        if let ContainerLayout::File(file) = container_layout
            && !self.is_new
        {
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
        // Records of other types arrive here, too, if they come one by one.
        if !self.wants(raw.kind) {
            return next.record(raw);
        }
        if raw.kind == RecordType::EVENT_UPDATE {
            self.names.see(raw);
        } else {
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

/// The architectures, as shown by `uname -m`. Those of 32-bit machines are not among them: their
/// programs also run on 64-bit ones.
const ARCHITECTURES: [Architecture; 5] = [
    Architecture {
        name: "x86_64",
        machine: Some(ElfMachine::X86_64),
        release: &[".x86_64", "-amd64"],
        libraries: &["/x86_64-linux-gnu/", "/ld-linux-x86-64.so.2"],
    },
    Architecture {
        name: "aarch64",
        machine: Some(ElfMachine::AARCH64),
        release: &[".aarch64", "-arm64"],
        libraries: &["/aarch64-linux-gnu/", "/ld-linux-aarch64.so.1"],
    },
    Architecture {
        name: "s390x",
        machine: Some(ElfMachine::S390),
        release: &[".s390x", "-s390x"],
        libraries: &["/s390x-linux-gnu/"],
    },
    Architecture {
        name: "ppc64le",
        machine: None,
        release: &[".ppc64le", "-powerpc64le"],
        libraries: &["/powerpc64le-linux-gnu/"],
    },
    Architecture {
        name: "riscv64",
        machine: None,
        release: &[".riscv64", "-riscv64"],
        libraries: &["/riscv64-linux-gnu/"],
    },
];

/// What tells an architecture.
struct Architecture {
    name: &'static str,
    /// The number in E_MACHINE, if only machines of this architecture have it.
    machine: Option<ElfMachine>,
    /// The ends of kernel releases of distributions.
    release: &'static [&'static str],
    /// Parts of the paths of mapped libraries.
    libraries: &'static [&'static str],
}

impl Architecture {
    fn find(is_it: impl Fn(&Architecture) -> bool) -> Option<&'static str> {
        let mut all = ARCHITECTURES.iter();
        all.find(|arch| is_it(arch)).map(|arch| arch.name)
    }
}

/// Returns the architecture that other features tell, as shown by `uname -m`.
fn arch_of(recording: &Recording) -> Option<&'static str> {
    let section = |id| recording.feature(id).and_then(|section| section.ok());
    let machine = match section(FeatureId::E_MACHINE).map(|section| section.value) {
        Some(Feature::EMachine(machine)) => {
            Architecture::find(|arch| arch.machine == Some(machine.e_machine))
        }
        _ => None,
    };
    let release = || match section(FeatureId::OSRELEASE) {
        Some(Section {
            value: Feature::OsRelease(release),
            ..
        }) => Architecture::find(|arch| {
            let mut ends = arch.release.iter();
            ends.any(|end| release.text().ends_with(end.as_bytes()))
        }),
        _ => None,
    };
    machine.or_else(release)
}

/// Returns the architecture of a machine on which a file in a folder of libraries is mapped.
fn arch_of_path(path: &[u8]) -> Option<&'static str> {
    let contains = |part: &str| {
        let mut windows = path.windows(part.len());
        windows.any(|window| window == part.as_bytes())
    };
    Architecture::find(|arch| arch.libraries.iter().copied().any(contains))
}
