//! Data that a conversion to the other byte order must not guess.

use crate::records::values;

#[test]
fn only_what_nobody_knows_is_opaque() {
    let cases = values::all();
    let found: Vec<_> = cases
        .iter()
        .filter_map(|case| Some((&case.record, case.record.opaque()?)))
        .collect();
    let found: Vec<_> = found
        .iter()
        .map(|(record, o)| (record.kind.to_string(), o.field.as_str(), o.offset))
        .collect();
    let expected = [
        ("AUXTRACE_ERROR", "detail", 40),
        ("AUXTRACE_INFO", "private", 16),
        ("AUXTRACE_INFO", "private.content.units.params", 56),
        ("AUXTRACE_INFO", "private.content", 24),
        ("AUXTRACE_INFO", "private.content", 24),
        ("40", "bytes", 8),
        ("CPU_MAP", "cpus.words", 14),
        ("CPU_MAP", "cpus", 10),
        ("EVENT_UPDATE", "update", 24),
        ("SAMPLE", "tail", 16),
        ("SCHEDSTAT_CPU", "counters", 24),
        ("SCHEDSTAT_DOMAIN", "counters", 24),
        ("HEADER_ATTR", "attr.flags", 48),
        ("HEADER_ATTR", "attr.tail", 152),
        // Other code converts these: the table of features and the decompressor.
        ("HEADER_TRACING_DATA", "data", 12),
        ("HEADER_FEATURE", "section", 16),
        ("COMPRESSED", "data", 8),
        ("COMPRESSED2", "data", 16),
        ("99", "bytes", 8),
    ];
    assert_eq!(
        found,
        expected.map(|(kind, field, offset): (&str, &str, usize)| (kind.to_owned(), field, offset))
    );
}
