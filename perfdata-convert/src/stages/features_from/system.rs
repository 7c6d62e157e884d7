//! The sections that describe this machine, in the form in which perf writes them
//! (tools/perf/util/header.c, util/trace-event-info.c).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use perfdata_core::feature::tracing::{
    ByteOrder, EventSystem, File, TracingBody, TracingHeader, Word,
};
use perfdata_core::feature::{Feature, FeatureId, NrCpus, PmuMapping, TracingData};
use perfdata_core::wire::{CStr, HeaderString};
use perfdata_core::{Endian, Recording};
use perfdata_symbols::machine::{kernel_start, running_kernel};

use super::evidence::{Evidence, Tracepoint, refused};
use crate::error::{Error, Result};

/// The folders of tracefs.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Returns the sections of this machine, with the formats of `tracepoints`, and what its kernel is.
///
/// # Errors
/// The formats cannot be read.
pub(super) fn recording(tracepoints: &[Tracepoint]) -> Result<(Recording, Evidence)> {
    let mut recording = Recording::new(Endian::NATIVE);
    let text = |text: String| HeaderString::new(text.as_bytes());
    let mut sections = vec![
        (
            FeatureId::HOSTNAME,
            kernel("hostname").map(text).map(Feature::Hostname),
        ),
        (
            FeatureId::OSRELEASE,
            kernel("osrelease").map(text).map(Feature::OsRelease),
        ),
        (FeatureId::ARCH, arch().map(text).map(Feature::Arch)),
        (FeatureId::NRCPUS, nr_cpus().map(Feature::NrCpus)),
        (FeatureId::TOTAL_MEM, total_mem().map(Feature::TotalMem)),
        (
            FeatureId::PMU_MAPPINGS,
            pmus().map(|pmus| Feature::PmuMappings(pmus.into())),
        ),
    ];
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        let field = |name: &str| field(&cpuinfo, name);
        sections.push((
            FeatureId::CPUDESC,
            field("model name").map(text).map(Feature::CpuDesc),
        ));
        let id = || {
            let [vendor, family, model, step] =
                ["vendor_id", "cpu family", "model", "stepping"].map(field);
            let (family, model) = (number(&family?)?, number(&model?)?);
            let id = format!("{},{family},{model},{}", vendor?, number(&step?)?);
            Some(Feature::CpuId(HeaderString::new(id.as_bytes())))
        };
        sections.push((FeatureId::CPUID, id()));
    }
    for (id, section) in sections {
        if let Some(section) = section {
            recording.set_feature(id, section)?;
        }
    }
    if !tracepoints.is_empty() {
        let data = tracing_data(tracepoints)?;
        recording.set_feature(FeatureId::TRACING_DATA, Feature::TracingData(data))?;
    }
    let evidence = Evidence {
        kernel: kernel_start(),
        build_id: running_kernel(),
        ..Evidence::default()
    };
    Ok((recording, evidence))
}

/// Returns a value of `/proc/sys/kernel`.
fn kernel(name: &str) -> Option<String> {
    let path = Path::new("/proc/sys/kernel").join(name);
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the architecture as shown by `uname -m`. Linux before 6.1 has no file for it.
fn arch() -> Option<String> {
    kernel("arch").or_else(|| {
        let same = ["x86_64", "aarch64", "s390x", "riscv64"];
        let known = same.contains(&std::env::consts::ARCH);
        known.then(|| std::env::consts::ARCH.to_owned())
    })
}

/// Returns the number of CPUs: of those that exist, and of those that are online.
fn nr_cpus() -> Option<NrCpus> {
    let folder = Path::new("/sys/devices/system/cpu");
    let is_cpu = |name: &str| {
        let digits = name.strip_prefix("cpu");
        digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
    };
    let entries = fs::read_dir(folder).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let available = names.filter(|name| is_cpu(name)).count();
    let online = fs::read_to_string(folder.join("online")).ok()?;
    let ranges = online.trim_end().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    Some(NrCpus {
        available: u32::try_from(available).ok()?,
        online: ranges.sum::<Option<u32>>()?,
    })
}

/// Returns the memory in kB.
fn total_mem() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let value = field(&text, "MemTotal")?;
    value.strip_suffix("kB")?.trim_end().parse().ok()
}

/// Returns the types of events with the names of their PMUs, sorted by name.
fn pmus() -> Option<Vec<PmuMapping>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/sys/bus/event_source/devices")
        .ok()?
        .flatten()
    {
        let kind = fs::read_to_string(entry.path().join("type")).ok();
        let kind = kind.and_then(|kind| kind.trim_end().parse().ok());
        if let (Some(kind), Ok(name)) = (kind, entry.file_name().into_string()) {
            all.push((name, kind));
        }
    }
    all.sort();
    let mapping = |(name, kind): (String, u32)| PmuMapping {
        kind,
        name: HeaderString::new(name.as_bytes()),
    };
    Some(all.into_iter().map(mapping).collect())
}

/// Returns the value of the first line `NAME : VALUE`.
fn field(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| key.trim_end() == name)?;
    Some(value.trim().to_owned())
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// Returns the size of a page in bytes: `AT_PAGESZ` of the auxiliary vector.
fn page_size() -> Option<u32> {
    const AT_PAGESZ: usize = 6;
    const WORD: usize = size_of::<usize>();
    let vector = fs::read("/proc/self/auxv").ok()?;
    let word = |bytes: &[u8]| Some(usize::from_ne_bytes(bytes.try_into().ok()?));
    let mut pairs = vector.chunks_exact(WORD.checked_mul(2)?);
    let size = pairs.find_map(|pair| {
        let (key, value) = pair.split_at_checked(WORD)?;
        (word(key)? == AT_PAGESZ).then(|| word(value))?
    })?;
    u32::try_from(size).ok()
}

/// Returns the tracing data of this machine with the formats of `tracepoints`, as `perf record`
/// writes them.
fn tracing_data(tracepoints: &[Tracepoint]) -> Result<TracingData> {
    let mut folders = TRACEFS.map(Path::new).into_iter();
    let folder = folders.find(|folder| folder.join("events/header_page").exists());
    let (Some(folder), Some(page_size)) = (folder, page_size()) else {
        let what = "tracefs, which has the formats of tracepoints, is not mounted at \
                    /sys/kernel/tracing, or this user may not read it";
        return Err(refused("this machine", what));
    };
    let file = |name: &str| {
        let path = folder.join(name);
        read(&path).map_err(Error::io(&path))
    };
    let mut systems = formats(&folder.join("events"), tracepoints)?;
    let ftrace = systems.remove("ftrace").unwrap_or_default();
    let systems: Vec<_> = systems
        .into_iter()
        .map(|(name, formats)| EventSystem {
            name: CStr::new(name.as_bytes()),
            formats: formats.into(),
        })
        .collect();
    let as_file = |bytes: Vec<u8>| File(bytes.into());
    let byte_order = match Endian::NATIVE {
        Endian::Little => ByteOrder::LITTLE,
        Endian::Big => ByteOrder::BIG,
    };
    Ok(TracingData {
        header: TracingHeader {
            magic: Word(*b"\x17\x08\x44tracing"),
            version: CStr::new(b"0.6"),
            byte_order,
            long_size: (usize::BITS / 8) as u8,
        },
        body: TracingBody {
            page_size,
            header_page_name: Word(*b"header_page\0"),
            header_page: as_file(file("events/header_page")?),
            header_event_name: Word(*b"header_event\0"),
            header_event: as_file(file("events/header_event")?),
            ftrace_formats: ftrace.into(),
            systems: systems.into(),
            // perf writes none since 4.5.
            kallsyms: File::default(),
            printk_formats: File(file("printk_formats").unwrap_or_default().into()),
            saved_cmdlines: Some(as_file(file("saved_cmdlines").unwrap_or_default())),
        },
    })
}

/// Returns the `format` files of tracepoints, by their systems.
fn formats(events: &Path, tracepoints: &[Tracepoint]) -> Result<BTreeMap<String, Vec<File<u64>>>> {
    let ids: BTreeSet<u64> = tracepoints.iter().map(|tracepoint| tracepoint.id).collect();
    let mut systems = BTreeMap::new();
    for system in names_in(events)? {
        let folder = events.join(&system);
        if !folder.is_dir() {
            continue;
        }
        let mut formats = Vec::new();
        for name in names_in(&folder)? {
            let event = folder.join(name);
            let id = fs::read_to_string(event.join("id")).ok();
            let id = id.and_then(|id| id.trim_end().parse().ok());
            if id.is_some_and(|id| ids.contains(&id)) {
                let path = event.join("format");
                let format = read(&path).map_err(Error::io(&path))?;
                formats.push(File(format.into()));
            }
        }
        if !formats.is_empty() {
            systems.insert(system, formats);
        }
    }
    Ok(systems)
}

/// Reads a file of tracefs. Some return everything at the first read, and nothing afterwards
/// (kernel/trace/trace_events.c, `show_header_page_file`).
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let mut block = vec![0; 1 << 16];
    let mut bytes = Vec::new();
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(bytes),
            Ok(len) => bytes.extend_from_slice(block.get(..len).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the names in a folder, sorted.
fn names_in(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let entry = entry.map_err(Error::io(folder))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}
