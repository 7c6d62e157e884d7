//! Address filters: where tracing is, or stops (`addr_filters__parse_bare_filter`).

use perfdata_convert::error::{Error, Result};

/// A range of a file or of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Filter {
    /// Whether only code in it is traced; otherwise, tracing stops there.
    is_traced: bool,
    /// Offset in the file, or address in the kernel.
    start: u64,
    size: u64,
    file: Option<Box<[u8]>>,
}

/// The filters of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::itrace) struct Filters(Vec<Filter>);

impl Filters {
    /// Parses the filter of an AUXTRACE_INFO record, such as `filter 0x12c0/0x40@/bin/program`.
    ///
    /// # Errors
    /// It is not known.
    pub(in crate::itrace) fn parse(text: &[u8]) -> Result<Self> {
        let end = text.iter().position(|&byte| byte == 0);
        let text = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
        let mut filters = Vec::new();
        let mut words = text
            .split(|&byte| byte == b',' || byte.is_ascii_whitespace())
            .filter(|word| !word.is_empty());
        while let Some(action) = words.next() {
            let filter = words.next().and_then(|range| Filter::of(action, range));
            filters.push(filter.ok_or_else(|| {
                let text = String::from_utf8_lossy(text);
                Error::Refused(format!(
                    "the address filter of Intel PT is not known: {text}"
                ))
            })?);
        }
        Ok(Filters(filters))
    }

    /// Returns whether there are none.
    pub(in crate::itrace) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether tracing ends at a branch to this address, which is `offset` of a file, or of
    /// the kernel without one.
    pub(in crate::itrace) fn end_at(&self, offset: u64, file: Option<&[u8]>) -> bool {
        let is_in = |filter: &&Filter| {
            filter.file.as_deref() == file && offset.wrapping_sub(filter.start) < filter.size
        };
        let has_traced = self.0.iter().any(|filter| filter.is_traced);
        let mut hits = self.0.iter().filter(is_in);
        let is_stopped = hits.clone().any(|filter| !filter.is_traced);
        is_stopped || has_traced && !hits.any(|filter| filter.is_traced)
    }
}

impl Filter {
    fn of(action: &[u8], range: &[u8]) -> Option<Self> {
        let (is_traced, has_size) = match action {
            b"filter" => (true, true),
            b"start" => (true, false),
            b"tracestop" => (false, true),
            b"stop" => (false, false),
            _ => return None,
        };
        let range = std::str::from_utf8(range).ok()?;
        let (range, file) = match range.split_once('@') {
            Some((range, file)) => (range, Some(file.as_bytes().into())),
            None => (range, None),
        };
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let (start, size) = match range.split_once('/') {
            Some((start, size)) => (number(start)?, number(size)?),
            None if has_size => return None,
            None => (number(range)?, 1),
        };
        Some(Filter {
            is_traced,
            start,
            size,
            file,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed() {
        let filters = Filters::parse(b"filter 0x10/0x20@/bin/a,tracestop 0x18/8@/bin/a\0\0")
            .expect("filters");
        assert!(filters.end_at(0xf, Some(b"/bin/a")));
        assert!(!filters.end_at(0x10, Some(b"/bin/a")));
        assert!(filters.end_at(0x18, Some(b"/bin/a")));
        assert!(filters.end_at(0x10, Some(b"/bin/b")));
        assert!(filters.end_at(0x10, None));
        assert!(Filters::parse(b"").expect("none").is_empty());
        assert!(Filters::parse(b"filter 0x10").is_err());
        assert!(Filters::parse(b"other 1/2").is_err());
    }
}
