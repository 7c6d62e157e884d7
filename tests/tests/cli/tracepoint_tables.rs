//! The tables of a tracepoint whose fields differ between kernels, in a directory of many
//! recordings.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use perfdata_tests::convert::in_shell;
use perfdata_tests::synth::attr::{Attr, Stamp, sample_type};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::file;
use perfdata_tests::synth::record::{Scribe, stream};
use perfdata_tests::synth::tracing::{Version, data_with};
use perfdata_tests::{perf, recordings, skipped};

use crate::columns::{files, judged};

/// The table of the tracepoint.
const TABLE: &str = "demo__wakeup";

/// The fields that are in all formats.
const COMMON: &str = "\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

";

/// The fields of an older kernel: declaration, offset, size and sign.
const OLD: &[(&str, u32, u32, u32)] = &[
    ("char name[16]", 8, 16, 0),
    ("pid_t target", 24, 4, 1),
    ("int prio", 28, 4, 1),
    ("unsigned int mask", 32, 4, 0),
    ("unsigned char date", 36, 1, 0),
    ("void * queue", 40, 8, 0),
];

/// Those of a newer one: in another order, of other sizes and types, one is new, and one is no
/// longer there.
const NEW: &[(&str, u32, u32, u32)] = &[
    ("unsigned long mask", 8, 8, 0),
    ("long prio", 16, 8, 1),
    ("__data_loc char[] name", 24, 4, 0),
    ("__data_loc char[] queue", 28, 4, 0),
    ("s16 added", 32, 2, 1),
    ("u8 address[4]", 34, 4, 0),
    ("pid_t target", 40, 4, 1),
];

const OLD_PRINT: &str = r#""name=%s target=%d prio=%d mask=%u field_date=%u queue=%llu", REC->name, REC->target, REC->prio, REC->mask, REC->date, REC->queue"#;
const NEW_PRINT: &str = r#""name=%s target=%d prio=%ld mask=%lu added=%hd queue=%s", __get_str(name), REC->target, REC->prio, REC->mask, REC->added, __get_str(queue)"#;

/// Values of the samples: name, target, prio and mask.
const OLD_ROWS: [(&str, i32, i32, u32); 3] = [
    ("bash", 41, -7, 0xffff_fffe),
    ("fifteen-letters", 42, 120, 1),
    ("", i32::MIN, i32::MIN, 0),
];
const NEW_ROWS: [(&str, i32, i64, u64); 3] = [
    ("a name that is longer than 16", 43, -8, 0xffff_ffff_fffe),
    ("sh", 44, i64::MIN, 2),
    ("", -1, 120, 0),
];

/// Returns a recording of the tracepoint, which has the number `id` in this kernel.
fn recording(
    host: &str,
    id: u16,
    fields: &[(&str, u32, u32, u32)],
    print: &str,
    first: u64,
    raws: &[Vec<u8>],
) -> Vec<u8> {
    let attr = Attr {
        kind: 2,
        config: id.into(),
        sample_period: 1,
        size: 112,
        ..Attr::new(
            sample_type::TID | sample_type::TIME | sample_type::CPU | sample_type::RAW,
            "sample_id_all mmap comm",
        )
    };
    let stamp = Stamp {
        time: first,
        ..Stamp::SOME
    };
    let mut scribe = Scribe::new(false, attr.clone(), stamp);
    for raw in raws {
        scribe.sample("SAMPLE", |sample| {
            let raw = Buf::new(false).u16(id).u16(0).u32(7).bytes(raw);
            // The size, of 4 bytes, and the data fill whole words.
            let padding = (raw.len() + 4).next_multiple_of(8) - raw.len() - 4;
            sample.raw = raw.zeros(padding).bytes;
        });
    }
    let event = Event {
        name: "demo:wakeup".into(),
        attr,
        ids: vec![],
    };
    let mut file = file::File::new(false, vec![event]);
    file.data = stream(&scribe.cases);
    let lines = fields.iter().map(|(declared, offset, size, signed)| {
        format!("\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
    });
    let lines: String = lines.collect();
    let format = format!("name: wakeup\nID: {id}\nformat:\n{COMMON}{lines}\nprint fmt: {print}\n");
    file.set_feature(1, data_with(Version::V0_6, false, &[("demo", format)], ""));
    file.set_feature(3, Buf::new(false).str(host).bytes);
    file.set_feature(6, Buf::new(false).str("x86_64").bytes);
    let described = feature_events::event_desc(Buf::new(false), &file.events).bytes;
    file.set_feature(feature_events::EVENT_DESC, described);
    file.bytes()
}

/// Writes old.data and new.data, recordings of the two kernels.
fn make(folder: &Path) {
    let old = OLD_ROWS.map(|(name, target, prio, mask)| {
        let raw = Buf::new(false).room(name.as_bytes(), 16);
        let raw = raw.u32(target.cast_unsigned());
        let raw = raw.u32(prio.cast_unsigned()).u32(mask).u8(200).zeros(3);
        raw.u64(0xffff_8880_0000_1000).bytes
    });
    let new = NEW_ROWS.map(|(name, target, prio, mask)| {
        let raw = Buf::new(false).u64(mask).u64(prio.cast_unsigned());
        let place = |len: usize, at: usize| ((len as u32) << 16) | at as u32;
        let raw = raw.u32(place(name.len() + 1, 44));
        let raw = raw.u32(place(7, 44 + name.len() + 1)).u16(0xfffd);
        let raw = raw.bytes(&[10, 0, 0, 1]).zeros(2);
        let raw = raw.u32(target.cast_unsigned());
        raw.bytes(name.as_bytes()).u8(0).bytes(b"events\0").bytes
    });
    let old = recording("web5", 314, OLD, OLD_PRINT, 1_000_000_000, &old);
    let new = recording("web6", 420, NEW, NEW_PRINT, 2_000_000_000, &new);
    fs::write(folder.join("old.data"), old).expect("a file");
    fs::write(folder.join("new.data"), new).expect("a file");
}

/// Returns the columns in the schema of a Parquet file, with their types in Parquet.
fn columns_of(path: &Path) -> Vec<String> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let columns = schema.columns().iter();
    let columns = columns.map(|column| {
        let kind = match column.logical_type_ref() {
            Some(kind) => format!("{kind:?}"),
            None => column.physical_type().to_string(),
        };
        format!("{} {kind}", column.name())
    });
    columns.collect()
}

/// Returns the file with the rows of a host.
fn file_of(table: &Path, host: &str) -> PathBuf {
    let found = files(table).into_iter().map(|file| table.join(file));
    let mut found = found.filter(|path| path.extension().is_some_and(|end| end == "parquet"));
    let file = found.find(|path| {
        let file = File::open(path).expect("a file");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let mut rows = reader.get_row_iter(None).expect("rows");
        let row = rows.next().expect("a row").expect("a row");
        row.to_string().contains(&format!("host: \"{host}\""))
    });
    file.unwrap_or_else(|| panic!("no file of {host} in {}", table.display()))
}

/// The columns that all tables of tracepoints have in these directories.
const FIRST: [&str; 9] = [
    "recording String",
    "host String",
    "time INT64",
    "wall Timestamp(TimestampType { is_adjusted_to_u_t_c: true, unit: MICROS })",
    "pid INT32",
    "tid INT32",
    "cpu INT32",
    "comm String",
    "period INT64",
];

/// Each column has one type, and a column is added after the others.
#[cfg_attr(target_endian = "big", ignore = "written on little-endian hosts only")]
#[test]
fn kernels_share_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    make(at);
    let old = ["name String", "target INT64", "prio INT64", "mask INT64"];
    let only_old = ["field_date INT64", "queue INT64"];
    let old: Vec<&str> = FIRST.into_iter().chain(old).chain(only_old).collect();
    let new = ["mask INT64", "prio INT64", "name String", "queue String"];
    let only_new = ["added INT64", "address BYTE_ARRAY", "target INT64"];
    let new: Vec<&str> = FIRST.into_iter().chain(new).chain(only_new).collect();
    let both = |first: &[&'static str], more: [&'static str; 2]| [first, &more[..]].concat();
    let mut after_old = both(&old, ["queue_text String", "added INT64"]);
    after_old.push("address BYTE_ARRAY");
    let after_new = both(&new, ["field_date INT64", "queue_int64 INT64"]);
    for (names, hosts, before, after) in [
        (["old", "new"], ["web5", "web6"], &old, &after_old),
        (["new", "old"], ["web6", "web5"], &new, &after_new),
    ] {
        let [first, second] = names;
        let append = "perfconv export -q --no-symbols --append-to fleet";
        let commands = format!(
            "rm -rf fleet; {append} {first}.data && cp -r fleet one && \
            {append} {second}.data && {append} -f {first}.data"
        );
        let output = in_shell(at, &format!("rm -rf one; {commands}"));
        assert!(output.success(), "{}", output.stderr);
        let [table, one] =
            ["fleet", "one"].map(|fleet| at.join(fleet).join("tracepoints/demo__wakeup"));
        assert_eq!(&columns_of(&file_of(&one, hosts[0])), before);
        assert_eq!(&columns_of(&one.join("_common_metadata")), before);
        assert_eq!(&columns_of(&table.join("_common_metadata")), after);
        // Also the first recording, which was exported again.
        for host in hosts {
            assert_eq!(&columns_of(&file_of(&table, host)), after);
        }
        // The file is made again of the others, and a corrupt one is named.
        fs::remove_file(table.join("_common_metadata")).expect("a file");
        let again = in_shell(at, &format!("{append} -f {first}.data"));
        assert!(again.success(), "{}", again.stderr);
        assert_eq!(&columns_of(&table.join("_common_metadata")), after);
        fs::write(table.join("_common_metadata"), "no Parquet").expect("a file");
        let failed = in_shell(at, &format!("{append} -f {first}.data"));
        assert!(!failed.success());
        assert!(
            failed.stderr.contains("_common_metadata"),
            "{}",
            failed.stderr
        );
    }
    // A single recording has the columns of its format.
    let single = in_shell(
        at,
        "perfconv export -q --no-symbols new.data --to parquet -o new",
    );
    assert!(single.success(), "{}", single.stderr);
    let file = at.join("new/tracepoints/demo__wakeup.parquet");
    assert_eq!(columns_of(&file), new);
}

/// Several processes add recordings of both kernels at the same time.
#[cfg_attr(target_endian = "big", ignore = "written on little-endian hosts only")]
#[test]
fn columns_are_added_by_several_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    make(at);
    let commands = "for host in 1 2 3 4 5 6; do
            for name in old new; do
                perfconv -q convert $name.data --set HOSTNAME=$name$host -o $name$host.data
                perfconv export -q --no-symbols $name$host.data --append-to fleet & pids=\"$pids $!\"
            done
        done
        for pid in $pids; do wait $pid || exit 1; done";
    let output = in_shell(at, commands);
    assert!(output.success(), "{}", output.stderr);
    let table = at.join("fleet/tracepoints").join(TABLE);
    let all = columns_of(&table.join("_common_metadata"));
    assert_eq!(all.len(), FIRST.len() + 9, "{all:?}");
    for host in 1..=6 {
        for name in ["old", "new"] {
            let columns = columns_of(&file_of(&table, &format!("{name}{host}")));
            assert!(all.starts_with(&columns), "{columns:?}, {all:?}");
        }
    }
}

/// Returns the values in a line of perf script, `name=VALUE target=VALUE …`, in the order of
/// `columns`. What the line does not contain is `None`.
fn values_in(line: &str, columns: &[&str]) -> String {
    let mut values: BTreeMap<&str, String> = BTreeMap::new();
    let at = line.find("name=").expect("the first field");
    let mut last = "";
    for word in line[at..].split(' ') {
        match word.split_once('=') {
            Some((name, value)) => {
                values.insert(name, value.to_owned());
                last = name;
            }
            // The name contains spaces.
            None => {
                let value = values.entry(last).or_default();
                value.push(' ');
                value.push_str(word);
            }
        }
    }
    // A number of 64 bits has the same bits as a pointer.
    if let Some(Ok(pointer)) = values.get("queue").map(|value| value.parse::<u64>()) {
        values.insert("queue_int64", pointer.cast_signed().to_string());
    } else if let Some(text) = values.get("queue").cloned() {
        values.insert("queue_text", text);
    }
    let values = columns.iter().map(|column| match values.get(*column) {
        Some(value) => value.as_str(),
        None => "None",
    });
    values.collect::<Vec<_>>().join("\t")
}

/// The programs in docs/fleets.md read the values that perf script shows, whichever kernel came
/// first.
#[cfg_attr(target_endian = "big", ignore = "written on little-endian hosts only")]
#[test]
fn engines_read_tables_of_several_kernels() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !judged("tracepoints.py", at, &[]) {
        return;
    }
    make(at);
    let Some(perf) = perf::all().first() else {
        return skipped::note("perf");
    };
    let script = |name: &str| {
        let mut command = perf.command();
        command.current_dir(at).args(["script", "-i", name]);
        let output = perf::run(command).expect("perf");
        assert!(output.success(), "{}", output.stderr);
        output.stdout
    };
    let lines = script("old.data") + &script("new.data");
    let common = ["name", "target", "prio", "mask", "field_date", "added"];
    let kinds = [common.as_slice(), &["queue_int64", "queue_text"]].concat();
    let expected: Vec<String> = lines.lines().map(|line| values_in(line, &kinds)).collect();
    assert_eq!(expected.len(), OLD_ROWS.len() + NEW_ROWS.len(), "{lines}");
    fs::write(at.join("expected"), expected.join("\n") + "\n").expect("a file");
    let document = recordings::root().join("docs/fleets.md");
    // The first kernel determines the type of the column without a suffix.
    for (names, queue) in [
        (["old", "new"], ["queue", "queue_text"]),
        (["new", "old"], ["queue_int64", "queue"]),
    ] {
        let [first, second] = names
            .map(|name| format!("perfconv export -q --no-symbols --append-to fleet {name}.data"));
        let output = in_shell(at, &format!("rm -rf fleet; {first} && {second}"));
        assert!(output.success(), "{}", output.stderr);
        let columns = common.into_iter().chain(queue).map(OsStr::new);
        let words = [
            document.as_os_str(),
            OsStr::new("expected"),
            OsStr::new(TABLE),
        ];
        let words: Vec<&OsStr> = words.into_iter().chain(columns).collect();
        judged("tracepoints.py", at, &words);
    }
}
