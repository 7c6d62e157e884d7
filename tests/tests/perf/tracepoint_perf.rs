//! The texts of tracepoints compared with perf: every sample of every recording with tracepoints,
//! new recordings of this machine, and every format of its kernel.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use perfdata_core::DecodeContext;
use perfdata_core::attr::EventType;
use perfdata_core::feature::tracing::TracingData;
use perfdata_core::wire::Wire;
use perfdata_session::Samples;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Endian, Recording};
use perfdata_tests::synth::attr::Attr;
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_events::Event;
use perfdata_tests::synth::file::Magic;
use perfdata_tests::synth::pipe::Pipe;
use perfdata_tests::synth::tracing::{self, Version};
use perfdata_tests::{is_thorough, skipped};
use perfdata_tracepoint::{Format, Formats, Function, Like, Resolver};

/// Functions as perf names them, learned from its texts: perf takes the symbols of the machine that
/// prints.
#[derive(Default)]
struct Learned {
    functions: HashMap<u64, (String, u64)>,
    /// The addresses that were looked up for the last text.
    asked: Vec<u64>,
}

impl Resolver for Learned {
    fn function(&mut self, address: u64) -> Option<Function<'_>> {
        self.asked.push(address);
        let (name, start) = self.functions.get(&address)?;
        Some(Function {
            name: Cow::Borrowed(name.as_bytes()),
            start: *start,
        })
    }
}

impl Learned {
    /// Learns the function of the first address that perf prints in another way.
    fn learn(&mut self, ours: &str, perfs: &str) -> bool {
        for address in std::mem::take(&mut self.asked) {
            if self.functions.contains_key(&address) {
                continue;
            }
            let shown = format!("{address:#x}");
            let Some(at) = ours.find(&shown) else {
                continue;
            };
            let Some(rest) = perfs.get(at..).filter(|_| perfs.starts_with(&ours[..at])) else {
                continue;
            };
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_.$".contains(c));
            let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
            let is_hex = |c: char| c.is_ascii_hexdigit();
            let offset = rest.strip_prefix("+0x").map(|offset| {
                let end = offset.find(|c| !is_hex(c)).unwrap_or(offset.len());
                u64::from_str_radix(&offset[..end], 16).expect("an offset")
            });
            if name.starts_with("0x") || name.is_empty() {
                continue;
            }
            let start = address.wrapping_sub(offset.unwrap_or(0));
            self.functions.insert(address, (name.to_owned(), start));
            return true;
        }
        false
    }
}

/// Compares all samples of tracepoints in a recording. Returns how many there are; `None` if there
/// are none, or if perf does not read the recording.
fn compare(perf: &Perf, path: &Path) -> Result<Option<usize>, String> {
    let Ok(mut samples) = Samples::open(path) else {
        return Ok(None);
    };
    let mut raws: Vec<Vec<u8>> = Vec::new();
    loop {
        let sample = match samples.next() {
            Ok(Some(sample)) => sample,
            Ok(None) => break,
            Err(_) => return Ok(None),
        };
        let kind = sample.attr().map(|attr| attr.kind);
        if kind == Some(EventType::TRACEPOINT)
            && let Some(raw) = sample.sample_view().raw()
        {
            raws.push(raw.to_vec());
        }
    }
    if raws.is_empty() {
        return Ok(None);
    }
    // In a pipe, tracing data are known only after they were read.
    let Some(formats) = Formats::of(samples.recording(), perf.version.like()) else {
        return Ok(None);
    };
    let mut command = perf.command();
    command.args(["script", "-F", "trace", "-i"]).arg(path);
    let output = perf::run(command).map_err(|error| error.to_string())?;
    if !output.success() {
        return Ok(None);
    }
    let mut rest = output.stdout.as_str();
    let mut functions = Learned::default();
    for (at, raw) in raws.iter().enumerate() {
        let mut text;
        loop {
            functions.asked.clear();
            let mut bytes = Vec::new();
            formats.print(raw, &mut functions, &mut bytes);
            text = perf::text(&bytes);
            text.push('\n');
            if rest.starts_with(&text) || !functions.learn(&text, rest) {
                break;
            }
        }
        rest = rest.strip_prefix(&text).ok_or_else(|| {
            let name = formats.of_raw(raw).map(Format::name).unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            let perfs = rest.lines().next().unwrap_or_default();
            format!("{perf}: sample {at} of {name}:\n  {perfs}\n  {text}")
        })?;
    }
    if !rest.is_empty() {
        return Err(format!("{perf}: more: {rest:.200}"));
    }
    Ok(Some(raws.len()))
}

/// perf 6.1, 6.12 and 7.2 print every sample of a tracepoint as we do.
#[test]
fn recordings_have_the_texts_of_perf() {
    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    let all = match is_thorough() {
        true => recordings::all(),
        false => recordings::fixtures(),
    };
    for perf in perf::all() {
        let count = AtomicUsize::new(0);
        let check = |recording: &Recording| {
            let compared = compare(perf, &recording.main_file())?;
            count.fetch_add(compared.unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        recordings::check_all(&all, check);
        let count = count.into_inner();
        eprintln!("{perf}: {count} texts compared");
        assert!(count > 1000, "{perf}: {count} texts");
    }
}

/// Subsystems with events that occur always.
const SYSTEMS: [&str; 8] = [
    "sched",
    "timer",
    "irq",
    "kmem",
    "syscalls",
    "task",
    "workqueue",
    "signal",
];

/// perf prints what happens on this machine as we do.
#[test]
fn new_recordings_have_the_texts_of_perf() {
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.data");
    let mut command = recorder.command();
    command.args(["record", "-q", "-a", "-m", "512"]);
    for system in SYSTEMS {
        command.arg("-e").arg(format!("{system}:*"));
    }
    command
        .arg("-o")
        .arg(&path)
        .args(["--", "sh", "-c", "ls -l /usr | sort"]);
    let output = perf::run(command).expect("perf runs");
    if !output.success() || !path.exists() {
        return skipped::note("the permission to record tracepoints");
    }
    // perf takes some numbers in the byte order of its own machine.
    let same = |perf: &&Perf| perf.endian == recorder.endian;
    for perf in perf::all().iter().filter(same) {
        let compared = compare(perf, &path).expect("the same texts");
        eprintln!("{perf}: {compared:?} texts compared");
        assert!(
            compared.is_some_and(|count| count > 100),
            "{perf}: {compared:?}"
        );
    }
}

/// The fields of the events with the formats of `print_fmts.txt`.
const FIELDS: &str = "format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:u8 b;\toffset:8;\tsize:1;\tsigned:0;
\tfield:s8 sb;\toffset:9;\tsize:1;\tsigned:1;
\tfield:u16 h;\toffset:10;\tsize:2;\tsigned:0;
\tfield:int i;\toffset:12;\tsize:4;\tsigned:1;
\tfield:unsigned long l;\toffset:16;\tsize:8;\tsigned:0;
\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;
\tfield:u32 arr[4];\toffset:40;\tsize:16;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:56;\tsize:4;\tsigned:0;
\tfield:__data_loc u32[] dyn;\toffset:60;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] rname;\toffset:64;\tsize:4;\tsigned:0;
\tfield:__data_loc unsigned long[] mask;\toffset:68;\tsize:4;\tsigned:0;
\tfield:u8 mac[6];\toffset:72;\tsize:6;\tsigned:0;
\tfield:short sh;\toffset:78;\tsize:2;\tsigned:1;
\tfield:__u8 ip4[4];\toffset:80;\tsize:4;\tsigned:0;
\tfield:__u8 ip6[16];\toffset:84;\tsize:16;\tsigned:0;
\tfield:__data_loc __u8[] sa;\toffset:100;\tsize:4;\tsigned:0;
\tfield:const char * p;\toffset:104;\tsize:8;\tsigned:0;
\tfield:long sl;\toffset:112;\tsize:8;\tsigned:1;
\tfield:long a[2];\toffset:120;\tsize:16;\tsigned:1;
\tfield:bool f;\toffset:136;\tsize:1;\tsigned:0;
\tfield:u64 q;\toffset:144;\tsize:8;\tsigned:0;
\tfield:__data_loc cpumask_t cpus;\toffset:152;\tsize:4;\tsigned:0;
\tfield:u8 sab[28];\toffset:156;\tsize:28;\tsigned:0;
\tfield:__data_loc unsigned long[] stack;\toffset:184;\tsize:4;\tsigned:0;

print fmt: ";

/// Strings in the kernel.
const PRINTK: &str = "0x5 : \"five\\n\"\n0x7 : \"se:ven\"\n0x8 : plain\n";

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.0 >> 33
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn number(&mut self, is_small: bool) -> u64 {
        match self.below(10) {
            _ if is_small => self.below(12),
            0..6 => self.below(12),
            6 | 7 => self.next() << 32 | self.next(),
            8 => !self.below(8),
            _ => 1 << self.below(64),
        }
    }
}

const TEXTS: [&[u8]; 6] = [
    b"abc",
    b"/usr/bin/x",
    b"a b\tc",
    b"",
    b"swapper/0",
    b"a\x01b",
];

/// Returns raw data of a format, with offsets of dynamic fields that are in the data: perf reads
/// whatever follows otherwise.
fn raw_of(format: &Format, big: bool, is_small: bool, random: &mut Random) -> Vec<u8> {
    let fields = format.all_fields();
    let ends = fields.iter().map(|field| field.offset() + field.size());
    let end = ends.max().unwrap_or(0).next_multiple_of(8);
    let mut raw = vec![0; end];
    let mut tail = Vec::new();
    for field in fields {
        let place = field.offset()..field.offset() + field.size();
        let bytes = if field.name() == b"common_type" {
            Buf::new(big).u16(format.id() as u16).bytes
        } else if field.is_dynamic() {
            let is_text = field.type_name().windows(4).any(|part| part == b"char");
            let mut content = Vec::new();
            if is_text {
                content.extend_from_slice(TEXTS[random.below(6) as usize]);
                content.push(0);
            } else if field.name() == b"sa" || field.type_name().ends_with(b"sockaddr[]") {
                let family = [2, 10, 5][random.below(3) as usize];
                content = Buf::new(big).u16(family).u16(80).bytes;
                content.extend((0..24).map(|_| random.next() as u8 & 0x11));
            } else {
                let len = 8 * random.below(4);
                content.extend((0..len).map(|_| random.next() as u8));
            }
            let base = if field.is_relative() { place.end } else { 0 };
            let at = end + tail.len() - base;
            let location = Buf::new(big).u32((content.len() << 16 | at) as u32).bytes;
            tail.extend_from_slice(&content);
            tail.resize(tail.len().next_multiple_of(8), 0);
            location
        } else if field.is_array() && field.type_name().starts_with(b"char") {
            let mut text = TEXTS[random.below(6) as usize].to_vec();
            text.resize(field.size(), 0);
            text
        } else if field.is_array() {
            let byte = |_| random.next() as u8 & 0x13;
            (0..field.size()).map(byte).collect()
        } else {
            let number = random.number(is_small);
            match field.size() {
                // Some machines have a `char` without a sign.
                1 => vec![number as u8 & if big { 0x7f } else { 0xff }],
                2 => Buf::new(big).u16(number as u16).bytes,
                4 => Buf::new(big).u32(number as u32).bytes,
                8 => Buf::new(big).u64(number).bytes,
                other => vec![0; other],
            }
        };
        if bytes.len() == place.len() {
            raw[place].copy_from_slice(&bytes);
        }
    }
    raw.extend(tail);
    raw.extend([0; 128]);
    raw
}

/// Writes a recording with samples of all formats. Formats whose numbers may be the lengths of
/// arrays get small ones.
fn write(path: &Path, files: &[(&str, String)], big: bool) {
    let data = tracing::data_with(Version::V0_6, big, files, PRINTK);
    let order = perfdata_core::Endian::Little;
    let decoded = TracingData::decode(&data, order, DecodeContext::default());
    let (decoded, _) = decoded.expect("tracing data");
    let formats = Formats::new(&decoded);
    let mut attr = Attr::new(0x402, "");
    attr.kind = 2;
    attr.size = 64;
    attr.config = formats.iter().next().expect("a format").id();
    let event = Event {
        name: "x:y".to_owned(),
        attr,
        ids: vec![1],
    };
    let mut pipe = Pipe::new(big, Magic::V2).event(&event).tracing_data(&data);
    let mut random = Random(1);
    for format in formats.iter() {
        let file = files.iter().find(|(_, file)| {
            let id = file.lines().find_map(|line| line.strip_prefix("ID: "));
            id.and_then(|id| id.parse().ok()) == Some(format.id())
        });
        let is_small = file.is_none_or(|(_, file)| {
            ["__print_hex", "__print_array", "__print_dyn", "*"]
                .iter()
                .any(|text| {
                    file.split("print fmt")
                        .last()
                        .is_some_and(|f| f.contains(text))
                })
        });
        for _ in 0..4 {
            let raw = raw_of(format, big, is_small, &mut random);
            let body = Buf::new(big).u32(1).u32(1).u32(raw.len() as u32);
            let body = body.bytes(&raw).pad(8);
            pipe = pipe.record(9, 2, body);
        }
    }
    fs::write(path, pipe.bytes).expect("the recording is written");
}

/// Compares recordings of all formats, in the byte order of each perf: perf takes some numbers as
/// those of its own machine.
fn judge(files: &[(&str, String)]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("formats.data");
    for perf in perf::all() {
        let big = perf.endian == Endian::Big;
        // perf 6.1 takes half of a number there, as its machine passes arguments.
        let depends =
            |file: &str| big && perf.version.like() == Like::Perf6_1 && file.contains("%z");
        let files: Vec<_> = files
            .iter()
            .filter(|(_, file)| !depends(file))
            .cloned()
            .collect();
        let mut count = 0;
        for files in files.chunks(200) {
            write(&path, files, big);
            let compared = compare(perf, &path).unwrap_or_else(|error| panic!("{error}"));
            count += compared.expect("perf reads the recording");
        }
        eprintln!("{perf}: {count} texts of {} formats compared", files.len());
        assert!(count >= files.len(), "{perf}");
    }
}

/// perf parses and prints formats as we do, whether or not it should.
#[test]
fn formats_are_parsed_as_by_perf() {
    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    // perf crashes if one of those without their field follows one with certain flags.
    let formats = include_str!("print_fmts.txt").lines().enumerate();
    let formats: Vec<_> = formats
        .map(|(at, format)| {
            let id = 100 + at;
            let file = format!("name: event{id}\nID: {id}\n{FIELDS}{format}\n");
            ("test", file)
        })
        .collect();
    judge(&formats);
}

/// All formats of the kernel of this machine are parsed and printed as by perf.
#[test]
fn kernels_formats_are_parsed_as_by_perf() {
    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    let mut files = Vec::new();
    let systems = fs::read_dir("/sys/kernel/tracing/events")
        .into_iter()
        .flatten();
    for system in systems.flatten() {
        let name = system.file_name().into_string().unwrap_or_default();
        for event in fs::read_dir(system.path()).into_iter().flatten().flatten() {
            let file = fs::read_to_string(event.path().join("format"));
            // perf prints binary texts of ftrace with strings of the kernel.
            if let Ok(file) = file.as_ref()
                && name != "ftrace"
            {
                files.push((name.clone(), file.clone()));
            }
        }
    }
    if files.len() < 100 {
        return skipped::note("the formats of the kernel in /sys/kernel/tracing");
    }
    let files: Vec<_> = files
        .iter()
        .map(|(system, file)| (system.as_str(), file.clone()))
        .collect();
    judge(&files);
}
