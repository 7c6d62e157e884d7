//! What a recording says of its machine, and whether another one contradicts it.

use perfdata_core::Recording;
use perfdata_core::attr::{Attr, EventType};
use perfdata_core::feature::{BuildIds, Feature, FeatureId};
use perfdata_core::names::EventNames;
use perfdata_core::record::{Body, CpuMode, RawRecord, Record, RecordType};
use perfdata_session::BuildId;
use perfdata_tracepoint::Formats;

use super::super::tracepoint_formats::is_made_name;
use crate::error::{Error, Result};
use crate::io::InputSource;
use crate::support::text::escaped;

/// The start of the name of the kernel's mapping, and its name in the table of build IDs.
const KERNEL: &[u8] = b"[kernel.kallsyms]";

/// The folder of the modules of a release.
const MODULES: &[u8] = b"/lib/modules/";

/// What the records of a recording say of its machine.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The address of `_text` or `_stext` of the kernel.
    pub(super) kernel: Option<u64>,
    /// The build ID of the kernel.
    pub(super) build_id: Option<BuildId>,
    /// The kernel release in the path of a module.
    pub(super) release: Option<Vec<u8>>,
    pub(super) names: EventNames,
}

/// A tracepoint that a recording samples.
#[derive(Debug)]
pub(super) struct Tracepoint {
    pub(super) id: u64,
    /// System and name, as far as the recording knows them.
    pub(super) name: Option<(Vec<u8>, Vec<u8>)>,
}

impl Tracepoint {
    /// Returns the system and the name in the name of an event, without modifiers.
    pub(super) fn split(name: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let is_word = |word: &&[u8]| {
            let mut letters = word.iter();
            let is_part = |letter: &u8| letter.is_ascii_alphanumeric() || *letter == b'_';
            !word.is_empty() && letters.all(is_part)
        };
        let is_made = is_made_name(name);
        let mut words = name.split(|&byte| byte == b':');
        let system = words.next().filter(is_word)?;
        let name = words.next().filter(is_word)?;
        (!is_made).then(|| (system.to_vec(), name.to_vec()))
    }
}

/// Returns the number of the tracepoint that an event counts.
pub(super) fn tracepoint(attr: &Attr) -> Option<u64> {
    (attr.kind == EventType::TRACEPOINT).then_some(attr.config)
}

impl Evidence {
    /// Reads the mappings of the kernel.
    ///
    /// # Errors
    /// The input cannot be read.
    pub(super) fn of(source: &InputSource, recording: &Recording) -> Result<Self> {
        let mut evidence = Evidence {
            build_id: kernel_build_id(recording),
            ..Evidence::default()
        };
        let is_wanted = |kind| {
            matches!(
                kind,
                RecordType::MMAP | RecordType::MMAP2 | RecordType::EVENT_UPDATE
            )
        };
        let read = source.each_record_of(recording, is_wanted, |raw, now| {
            evidence.record(raw, now);
            Ok(())
        });
        match read {
            // The conversion finds corrupt data again, and knows better what to do about them.
            Err(Error::Read(error)) if !error.is_io() => Ok(evidence),
            read => read.map(|_| evidence),
        }
    }

    fn record(&mut self, raw: &RawRecord<'_>, now: &Recording) {
        if raw.kind == RecordType::EVENT_UPDATE {
            self.names.see(raw);
            return;
        }
        if CpuMode::of(raw.misc) != CpuMode::KERNEL {
            return;
        }
        let Ok(record) = Record::decode(raw, &now.events.layout_of(raw)) else {
            return;
        };
        let (name, start, build_id) = match &record.body {
            Body::Mmap(map) => (map.filename.text(), map.addr, None),
            Body::Mmap2(map) => {
                let id = map.build_id.as_ref();
                let id = id.and_then(|id| id.build_id.get(..id.build_id_size.into()));
                (map.filename.text(), map.addr, id)
            }
            _ => return,
        };
        if name.starts_with(KERNEL) {
            self.kernel = self.kernel.or(Some(start).filter(|&start| start != 0));
            self.build_id = self.build_id.or_else(|| BuildId::new(build_id?));
        } else if let Some(path) = name.strip_prefix(MODULES) {
            let release = path.split(|&byte| byte == b'/').next();
            self.release = self.release.take().or(release.map(<[u8]>::to_vec));
        }
    }

    /// Returns the tracepoints of the events.
    pub(super) fn tracepoints(&self, recording: &Recording) -> Vec<Tracepoint> {
        let mut names = self.names.clone();
        names.update(recording);
        let events = recording.events.iter().enumerate();
        let all = events.filter_map(|(at, event)| {
            Some(Tracepoint {
                id: tracepoint(&event.attr)?,
                name: Tracepoint::split(&names.get(recording, at)?),
            })
        });
        all.collect()
    }

    /// Checks that the kernel is that of `donor`, as far as both are known.
    ///
    /// # Errors
    /// They contradict each other.
    pub(super) fn check(
        &self,
        recording: &Recording,
        name: &str,
        donor: &Recording,
        of_donor: &Evidence,
    ) -> Result<()> {
        let differ = |what: &str, own: &str, other: &str| {
            Err(refused(
                name,
                &format!("{what} is {other}, in the recording {own}"),
            ))
        };
        let release = |evidence: &Evidence, recording| {
            text(recording, FeatureId::OSRELEASE).or_else(|| evidence.release.clone())
        };
        if let (Some(own), Some(other)) = (release(self, recording), release(of_donor, donor))
            && own != other
        {
            let [own, other] = [own, other].map(|release| escaped(&release).to_string());
            return differ("the kernel release", &own, &other);
        }
        if let (Some(own), Some(other)) = (self.build_id, of_donor.build_id)
            && !is_same_id(own, other)
        {
            let [own, other] = [own, other].map(|id| id.to_string());
            return differ("the build ID of the kernel", &own, &other);
        }
        Ok(())
    }

    /// Returns whether something tells that the kernel is that of `donor`.
    pub(super) fn is_same_kernel(
        &self,
        recording: &Recording,
        donor: &Recording,
        of_donor: &Evidence,
    ) -> bool {
        let release = text(recording, FeatureId::OSRELEASE).or_else(|| self.release.clone());
        let ids = self.build_id.zip(of_donor.build_id);
        (release.is_some() && release == text(donor, FeatureId::OSRELEASE))
            || ids.is_some_and(|(own, other)| is_same_id(own, other))
            || (self.kernel.is_some() && self.kernel == of_donor.kernel)
    }
}

/// Checks that the format of each tracepoint is there.
///
/// # Errors
/// It is missing, or of another tracepoint.
pub(super) fn check_formats(
    donor: &str,
    formats: &Formats,
    tracepoints: &[Tracepoint],
) -> Result<()> {
    for Tracepoint { id, name } in tracepoints {
        let Some(format) = formats.by_id(*id) else {
            let name = name.as_ref().map_or_else(String::new, |(system, name)| {
                format!(", {}:{}", escaped(system), escaped(name))
            });
            let what = format!("it has no format of tracepoint {id}{name}");
            return Err(refused(donor, &what));
        };
        if let Some((system, name)) = name
            && (&system[..], &name[..]) != (format.system(), format.name())
        {
            let what = format!(
                "tracepoint {id} is {}:{}, in the recording {}:{}",
                escaped(format.system()),
                escaped(format.name()),
                escaped(system),
                escaped(name)
            );
            return Err(refused(donor, &what));
        }
    }
    Ok(())
}

/// Checks that a section about the machine is the same, if both recordings have it and it cannot
/// change.
///
/// # Errors
/// It differs.
pub(super) fn check_equal(
    name: &str,
    id: FeatureId,
    recording: &Recording,
    donor: &Recording,
) -> Result<()> {
    let (Some(own), Some(other)) = (fact(recording, id), fact(donor, id)) else {
        return Ok(());
    };
    if own == other {
        return Ok(());
    }
    let [own, other] = [own, other].map(|fact| escaped(&fact).to_string());
    let what = format!("its {id} is {other}, that of the recording {own}");
    Err(refused(name, &what))
}

/// Returns what a section says that cannot change, except an empty text.
fn fact(recording: &Recording, id: FeatureId) -> Option<Vec<u8>> {
    match recording.feature(id)?.ok()?.value {
        Feature::NrCpus(cpus) => Some(cpus.available.to_string().into_bytes()),
        _ => text(recording, id),
    }
}

/// Returns the text of a section, unless it is empty.
fn text(recording: &Recording, id: FeatureId) -> Option<Vec<u8>> {
    let text = match recording.feature(id)?.ok()?.value {
        Feature::Hostname(text)
        | Feature::OsRelease(text)
        | Feature::Arch(text)
        | Feature::CpuDesc(text)
        | Feature::CpuId(text) => text,
        _ => return None,
    };
    Some(text.text().to_vec()).filter(|text| !text.is_empty())
}

/// Returns the build ID of the kernel in the table of build IDs.
fn kernel_build_id(recording: &Recording) -> Option<BuildId> {
    let Feature::BuildIds(BuildIds(entries)) = recording.feature(FeatureId::BUILD_ID)?.ok()?.value
    else {
        return None;
    };
    let kernel = entries.iter().find(|entry| {
        CpuMode::of(entry.header.misc) == CpuMode::KERNEL
            && entry.build_id.filename.text().starts_with(KERNEL)
    })?;
    BuildId::new(kernel.build_id.id(kernel.header.misc))
}

/// Returns whether build IDs are equal. Old versions of perf pad them with zeros.
fn is_same_id(own: BuildId, other: BuildId) -> bool {
    own.padded().0 == other.padded().0
}

/// Returns the error for a donor that contradicts the recording.
pub(super) fn refused(donor: &str, what: &str) -> Error {
    Error::Refused(format!("no sections are taken from {donor}: {what}"))
}
