//! Formats with raw data, and the text that perf prints for them.

use std::sync::Arc;

use perfdata_core::Endian;

use crate::machine::Machine;
use crate::{Format, Function, Like, NoFunctions, Value};

/// Fields of all kinds, in raw data of 96 bytes.
const FIELDS: &str = "name: demo
ID: 314
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:u8 b;\toffset:8;\tsize:1;\tsigned:0;
\tfield:short sh;\toffset:10;\tsize:2;\tsigned:1;
\tfield:int i;\toffset:12;\tsize:4;\tsigned:1;
\tfield:unsigned long l;\toffset:16;\tsize:8;\tsigned:0;
\tfield:char comm[8];\toffset:24;\tsize:8;\tsigned:0;
\tfield:u32 arr[2];\toffset:32;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;
\tfield:__rel_loc u16[] rel;\toffset:44;\tsize:4;\tsigned:0;
\tfield:const char * p;\toffset:48;\tsize:8;\tsigned:0;
\tfield:u8 mac[6];\toffset:56;\tsize:6;\tsigned:0;
\tfield:__data_loc unsigned long[] mask;\toffset:64;\tsize:4;\tsigned:0;
\tfield:__data_loc u8[] sa;\toffset:68;\tsize:4;\tsigned:0;

print fmt: ";

fn machine(like: Like, endian: Endian) -> Arc<Machine> {
    Arc::new(Machine {
        endian,
        long_size: 8,
        like,
        strings: vec![(0x5000, b"a string"[..].into())],
    })
}

/// Returns the raw data of the fields in a byte order.
fn raw(endian: Endian) -> Vec<u8> {
    let mut raw = vec![0; 72];
    let mut put = |offset: usize, little: &[u8]| {
        let mut bytes = little.to_vec();
        if endian == Endian::Big {
            bytes.reverse();
        }
        raw[offset..offset + bytes.len()].copy_from_slice(&bytes);
    };
    put(0, &314_u16.to_le_bytes());
    put(8, &[5]);
    put(10, &(-2_i16).to_le_bytes());
    put(12, &(-7_i32).to_le_bytes());
    put(16, &0x1234_5678_9abc_u64.to_le_bytes());
    put(32, &1_u32.to_le_bytes());
    put(36, &0x203_u32.to_le_bytes());
    put(40, &(5 << 16 | 72_u32).to_le_bytes());
    put(44, &(4 << 16 | 32_u32).to_le_bytes());
    put(48, &0x5000_u64.to_le_bytes());
    put(64, &(8 << 16 | 84_u32).to_le_bytes());
    put(68, &(16 << 16 | 92_u32).to_le_bytes());
    raw[24..29].copy_from_slice(b"task\0");
    raw[56..62].copy_from_slice(&[0, 0x11, 0x22, 0xaa, 0xbb, 0xcc]);
    raw.extend_from_slice(b"disk\0\0\0\0");
    let number = |number: u64, size: usize| match endian {
        Endian::Little => number.to_le_bytes()[..size].to_vec(),
        Endian::Big => number.to_be_bytes()[8 - size..].to_vec(),
    };
    for (value, size) in [(7, 2), (0x108, 2), (0x8_0000_000d, 8), (2, 2)] {
        raw.extend(number(value, size));
    }
    raw.extend_from_slice(&[0x1f, 0x90, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    raw
}

fn text_of(print_fmt: &str, like: Like, endian: Endian) -> String {
    let file = format!("{FIELDS}{print_fmt}\n");
    let format = Format::parse(file.as_bytes(), b"test", &machine(like, endian)).unwrap();
    let mut out = Vec::new();
    let mut functions = |address: u64| {
        (address == 0x5000).then(|| Function {
            name: b"vfs_read"[..].into(),
            start: 0x4ff0,
        })
    };
    format.print(&raw(endian), &mut functions, &mut out);
    String::from_utf8(out).unwrap()
}

/// Asserts the text, like every perf and in both byte orders.
#[track_caller]
fn is_printed(print_fmt: &str, expected: &str) {
    for like in [Like::Perf6_1, Like::Perf6_12, Like::Perf7_2] {
        for endian in [Endian::Little, Endian::Big] {
            let found = text_of(print_fmt, like, endian);
            assert_eq!(found, expected, "{print_fmt} {like:?} {endian:?}");
        }
    }
}

/// Asserts the texts of perf 6.1, 6.12 and 7.2.
#[track_caller]
fn are_printed(print_fmt: &str, expected: [&str; 3]) {
    let likes = [Like::Perf6_1, Like::Perf6_12, Like::Perf7_2];
    for (like, expected) in likes.into_iter().zip(expected) {
        for endian in [Endian::Little, Endian::Big] {
            let found = text_of(print_fmt, like, endian);
            let found = match expected {
                FAILED => &found[..FAILED.len()],
                _ => &found,
            };
            assert_eq!(found, expected, "{print_fmt} {like:?} {endian:?}");
        }
    }
}

const FAILED: &str = "[FAILED TO PARSE]";

#[test]
fn numbers_are_printed_with_their_conversions() {
    is_printed(
        r#""b=%d i=%d u=%u l=%lx|%5d|%-4d|%#x", REC->b, REC->i, REC->i, REC->l, REC->b, REC->b, REC->b"#,
        "b=5 i=-7 u=4294967289 l=123456789abc|    5|5   |0x5",
    );
    is_printed(r#""%d %hd %hhu", REC->sh, REC->sh, REC->i"#, "65534 -2 249");
    is_printed(r#""%d %d", REC->arr[1], ((u16 *)REC->arr)[1]"#, "515 515");
    is_printed(r#""100%%\n\t\\%d", REC->b"#, "100%\n\t\\5");
    are_printed(
        r#""%zd|%zx", REC->i, REC->l"#,
        [
            "4294967289|56789abc",
            "4294967289|123456789abc",
            "4294967289|123456789abc",
        ],
    );
    are_printed(r#""%c%+d", 65, REC->b"#, [">c<>+<d", "A+5", "A+5"]);
}

#[test]
fn operators_are_those_of_libtraceevent() {
    is_printed(r#""%d", REC->b + 2 * 3"#, "11");
    is_printed(r#""%d", REC->b << 2 | 1"#, "21");
    is_printed(r#""%d %d", !REC->b, !!REC->b"#, "0 1");
    is_printed(r#""%d", -REC->b + 4"#, "-1");
    is_printed(r#""%d", REC->i < 0"#, "0");
    // Parentheses on the right side do not count.
    is_printed(r#""%d", 2 * (REC->b + 1)"#, "11");
    is_printed(r#""%d", (REC->b + 1) * 2"#, "12");
    is_printed(r#""%x", (u8)REC->i"#, "f9");
    is_printed(r#""%lx", (unsigned long)REC->i"#, "fffffff9");
    is_printed(r#""%s", REC->b > 4 ? "big" : "small""#, "big");
    is_printed(r#""%d", __builtin_expect(!!(REC->b), 0)"#, "1");
    are_printed(r#""%d", REC->b ? 1 : 2 + 3"#, ["4", "4", "1"]);
    are_printed(r#""%d", 1 + REC->arr[0]"#, ["2", "2", FAILED]);
    are_printed(r#""%d", sizeof(REC->l)"#, [FAILED, "8", "8"]);
    are_printed(r#""%d", (REC)->b"#, [FAILED, "5", "5"]);
    are_printed(r#""%d %s", 'a', 'b'"#, ["0 b", "97 98", "97 98"]);
}

#[test]
fn texts_come_from_fields_and_from_the_kernel() {
    is_printed(
        r#""%s %s|%8s|%-6s|%.2s", REC->comm, __get_str(name), REC->comm, REC->comm, REC->comm"#,
        "task disk|    task|task  |ta",
    );
    is_printed(r#""%.*s", 3, __get_str(name)"#, "dis");
    is_printed(r#""%s %s", REC->p, REC->l"#, "a string 123456789abc");
    is_printed(r#""%s", "adjacent" " strings""#, "adjacent strings");
}

#[test]
fn flags_and_symbols_have_names() {
    is_printed(
        r#""%s", __print_flags(REC->b, "|", { 1, "a" }, { 1 << 1, "b" })"#,
        "a|0x4",
    );
    is_printed(
        r#""%s", __print_flags(REC->b & 0, "|", { 1, "a" }, { -1, "none" })"#,
        "none",
    );
    is_printed(
        r#""%s %s", __print_symbolic(REC->b, { 5, "five" }), __print_symbolic(REC->b, { 6, "six" })"#,
        "five 0x5",
    );
    is_printed(
        r#""%s", __print_symbolic(REC->b, { NET_TX_SOFTIRQ + 0, "x" }, { IRQ_POLL_SOFTIRQ, "poll" })"#,
        "poll",
    );
}

#[test]
fn arrays_and_masks_are_listed() {
    is_printed(
        r#""%s %s", __print_hex(REC->mac, 3), __print_hex_str(REC->mac, 3)"#,
        "00 11 22 001122",
    );
    is_printed(r#""%s", __get_bitmask(mask)"#, "00000008,0000000d");
    is_printed(r#""%d", __get_dynamic_array_len(name)"#, "5");
    are_printed(
        r#""%s", __print_array(REC->arr, 2, 4)"#,
        ["1 515", "{0x1,0x203}", "{0x1,0x203}"],
    );
    are_printed(
        r#""%s", __print_array(REC->mac, 2, 3)"#,
        [
            "BAD SIZE:3 0x0 17",
            "{BAD SIZE:3 0x0,0x11}",
            "{BAD SIZE:3 0x0,0x11}",
        ],
    );
    are_printed(
        r#""%s", __get_cpumask(mask)"#,
        [FAILED, "0,2-3,35", "0,2-3,35"],
    );
    are_printed(
        r#""%s", __print_dynamic_array(rel, 2)"#,
        [FAILED, FAILED, "{0x7,0x108}"],
    );
    are_printed(r#""%s", __get_stacktrace(mask)"#, [FAILED, FAILED, "\n"]);
}

#[test]
fn pointers_point_to_many_things() {
    is_printed(
        r#""%pS %ps %pS", REC->p, REC->p, REC->l"#,
        "vfs_read+0x10 vfs_read 0x123456789abc",
    );
    is_printed(
        r#""%p %px %p", REC->p, REC->l, REC->b & 0"#,
        "0x5000 0x123456789abcx (nil)",
    );
    is_printed(
        r#""%pM %pm %pMF %pMR", REC->mac, REC->mac, REC->mac, REC->mac"#,
        "00:11:22:aa:bb:cc 001122aabbcc 00-11-22-aa-bb-cc cc:bb:aa:22:11:00",
    );
    is_printed(
        r#""%pI4|%pU", REC->mac, REC->mac"#,
        "INVALIDIPv4|INVALIDUUID",
    );
    is_printed(r#""%pM", REC->b + 1"#, "ARG TYPE NOT FIELD BUT 11");
    is_printed(
        r#""%*ph|%*phN", 2, __get_dynamic_array(name), 9, __get_dynamic_array(name)"#,
        "64 69|6469736b00",
    );
    are_printed(
        r#""%pISpc", __get_sockaddr(sa)"#,
        [FAILED, "10.0.0.1:8080", "10.0.0.1:8080"],
    );
}

#[test]
fn what_cannot_be_parsed_becomes_a_list() {
    for print_fmt in [r#""%d", unknown(REC->b)"#, r#""%d %d", REC->b"#, "nothing"] {
        let found = text_of(print_fmt, Like::Perf7_2, Endian::Little);
        let expected = "[FAILED TO PARSE] b=5 sh=-2 i=-7 l=0x123456789abc comm=task \
            arr=ARRAY[01, 00, 00, 00, 03, 02, 00, 00] name=disk rel=ARRAY[07, 00, 08, 01] p=0x5000 \
            mac= mask=ARRAY[0d, 00, 00, 00, 08, 00, 00, 00] sa=ARRAY[02, 00, 1f, 90,";
        assert_eq!(&found[..expected.len()], expected, "{print_fmt}");
    }
    let file = format!("{FIELDS}\"%d\", unknown(REC->b)\n");
    let machine = machine(Like::Perf7_2, Endian::Little);
    let format = Format::parse(file.as_bytes(), b"test", &machine).unwrap();
    let problem = format.problem().unwrap();
    assert_eq!(file[problem.offset..].chars().next(), Some('('));
    assert_eq!(problem.found, "the function `unknown`");
    let file = FIELDS.replace("ID: 314", "ID: -1");
    let problem = Format::parse(file.as_bytes(), b"test", &machine).unwrap_err();
    assert_eq!(problem.found, "`-`");
}

#[test]
fn a_text_that_was_none_once_is_always_a_list_of_bytes() {
    let file = format!("{FIELDS}none\n");
    let machine = machine(Like::Perf7_2, Endian::Little);
    let format = Format::parse(file.as_bytes(), b"test", &machine).unwrap();
    let print = |raw: &[u8]| {
        let mut out = Vec::new();
        format.print(raw, &mut NoFunctions, &mut out);
        String::from_utf8(out).unwrap()
    };
    let mut raw = raw(Endian::Little);
    assert!(print(&raw).contains("comm=task "));
    raw[24] = 1;
    assert!(print(&raw).contains("comm=ARRAY[01, 61, "));
    raw[24] = b't';
    assert!(print(&raw).contains("comm=ARRAY[74, 61, "));
}

#[test]
fn fields_have_values() {
    for endian in [Endian::Little, Endian::Big] {
        let machine = machine(Like::Perf7_2, endian);
        let format = Format::parse(FIELDS.as_bytes(), b"test", &machine).unwrap();
        let raw = raw(endian);
        let value = |name: &str| format.field(name.as_bytes()).unwrap().value(&raw);
        assert_eq!(value("common_type"), Some(Value::Unsigned(314)));
        assert_eq!(value("sh"), Some(Value::Signed(-2)));
        assert_eq!(value("comm"), Some(Value::String(b"task")));
        assert_eq!(value("name"), Some(Value::String(b"disk")));
        assert_eq!(value("mac"), Some(Value::String(b"")));
        assert_eq!(value("arr"), Some(Value::Bytes(&raw[32..40])));
        assert_eq!(value("rel"), Some(Value::Bytes(&raw[80..84])));
        let field = |name: &str| format.field(name.as_bytes()).unwrap();
        assert_eq!(field("sh").number(&raw), Some(0xfffe));
        assert_eq!(field("sh").number(&raw[..11]), None);
        assert_eq!(field("rel").number(&raw), None);
        assert_eq!(field("name").bytes(&raw[..75]), None);
        assert_eq!(field("rel").type_name(), b"__rel_loc u16[]");
        assert_eq!(field("rel").element_size(), 2);
        assert_eq!(
            (field("arr").element_size(), field("arr").is_string()),
            (4, false)
        );
        assert!(field("p").is_pointer() && field("name").is_dynamic());
        assert_eq!(format.common_fields().len(), 2);
        assert_eq!(format.fields().len(), 12);
        assert_eq!((format.id(), format.name()), (314, &b"demo"[..]));
    }
}

#[test]
fn texts_have_a_limited_length() {
    let conversions = "%4000d".repeat(2000);
    let args = ", REC->b".repeat(2000);
    let text = text_of(
        &format!("\"{conversions}\"{args}"),
        Like::Perf7_2,
        Endian::Little,
    );
    assert!((65_000..80_000).contains(&text.len()), "{}", text.len());
    let deep = format!("\"%d\", {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(text_of(&deep, Like::Perf7_2, Endian::Little).starts_with(FAILED));
    for pair in ["1 + ", "!", "(int)", "1 ? 1 : ", "REC->arr["] {
        let deep = format!("\"%d\", {}1", pair.repeat(10_000));
        text_of(&deep, Like::Perf7_2, Endian::Little);
    }
    let long = format!("{FIELDS}\"{}\"", "x".repeat(300_000));
    let machine = machine(Like::Perf7_2, Endian::Little);
    assert!(Format::parse(long.as_bytes(), b"test", &machine).is_err());
}

#[test]
fn recorded_format_strings_are_used() {
    let file = "name: bprint\nID: 6\nformat:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;
\tfield:u32 buf;\toffset:24;\tsize:0;\tsigned:0;

print fmt: \"%ps: %s\", (void *)REC->ip, REC->fmt\n";
    let machine = Machine {
        endian: Endian::Little,
        long_size: 8,
        like: Like::Perf7_2,
        strings: vec![
            (0x10, b"x %d %s %lu"[..].into()),
            (0x11, b"x %c"[..].into()),
        ],
    };
    let format = Format::parse(file.as_bytes(), b"ftrace", &Arc::new(machine)).unwrap();
    let print = |address: u8, rest: &[u8]| {
        let mut raw = vec![0; 24];
        (raw[8], raw[16]) = (3, address);
        raw.extend_from_slice(rest);
        let mut out = Vec::new();
        format.print(&raw, &mut NoFunctions, &mut out);
        String::from_utf8(out).unwrap()
    };
    let args = b"\xfb\xff\xff\xffstr\0\x07\0\0\0\0\0\0\0";
    assert_eq!(print(0x10, args), "0x3: x -5 str 7");
    assert_eq!(print(0x99, b""), "0x3: (NO FORMAT FOUND at 99)\n");
    assert_eq!(print(0x11, b"A"), "0x3: x c");
    assert_eq!(print(0x10, args), "[FAILED TO PARSE] ip=0x3 fmt=0x10 buf=0");
}

/// Returns the text of libtraceevent's plugin for a format with these fields: the type and name, and
/// the value, of 4 bytes each, or 16 of text.
fn plugin_text(system: &[u8], name: &str, fields: &[(&str, i32, &[u8])]) -> Option<String> {
    let mut file = format!("name: {name}\nID: 7\nformat:\n");
    let mut raw = Vec::new();
    for (field, value, text) in fields {
        let size = if text.is_empty() { 4 } else { 16 };
        file.push_str(&format!(
            "\tfield:{field};\toffset:{};\tsize:{size};\tsigned:1;\n",
            raw.len()
        ));
        let end = raw.len() + size;
        match text.is_empty() {
            true => raw.extend(value.to_le_bytes()),
            false => raw.extend_from_slice(text),
        }
        raw.resize(end, 0);
    }
    file.push_str("\nprint fmt: \"\"\n");
    let machine = machine(Like::Perf7_2, Endian::Little);
    let format = Format::parse(file.as_bytes(), system, &machine).unwrap();
    let mut out = Vec::new();
    let printed = format.print_as_plugin(&raw, &mut out);
    assert!(printed || out.is_empty());
    printed.then(|| String::from_utf8(out).unwrap())
}

#[test]
fn events_of_the_scheduler_have_the_text_of_the_plugin() {
    let switch = |state| {
        let fields: [(&str, i32, &[u8]); 7] = [
            ("char prev_comm[16]", 0, b"perf"),
            ("pid_t prev_pid", 17253, b""),
            ("int prev_prio", 120, b""),
            ("int prev_state", state, b""),
            ("char next_comm[16]", 0, b"swapper/1"),
            ("pid_t next_pid", 0, b""),
            ("int next_prio", 98, b""),
        ];
        plugin_text(b"sched", "sched_switch", &fields).unwrap()
    };
    for (state, letters) in [(0, "R"), (1, "S"), (2, "D"), (0x81, "S|W"), (0x100, "R")] {
        let expected = format!("perf:17253 [120] {letters} ==> swapper/1:0 [98]");
        assert_eq!(switch(state), expected);
    }
    let wakeup: [(&str, i32, &[u8]); 5] = [
        ("char comm[16]", 0, b"a b"),
        ("pid_t pid", 7, b""),
        ("int prio", 5, b""),
        ("int success", 1, b""),
        ("int target_cpu", 3, b""),
    ];
    let text = |name| plugin_text(b"sched", name, &wakeup);
    let expected = Some("a b:7 [5] success=1 CPU:003".to_owned());
    assert_eq!(text("sched_wakeup"), expected);
    assert_eq!(text("sched_wakeup_new"), expected);
    assert_eq!(text("sched_waking"), None);
    assert_eq!(plugin_text(b"other", "sched_wakeup", &wakeup), None);
    let short = plugin_text(b"sched", "sched_wakeup", &wakeup[..1]);
    assert_eq!(short.as_deref(), Some("!"));
}
