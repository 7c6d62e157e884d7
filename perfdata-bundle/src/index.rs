//! The index as JSON.

use std::fmt::Write as _;

/// The index of a bundle, which is written as JSON:
///
/// ```text
/// {"version":1,
///  "objects":[{"name":"/usr/bin/x","build_id":"…","member":"…","from":"/usr/bin/x","size":1,"verified":"…"}],
///  "missing":[{"name":"/usr/lib/y.so","build_id":null,"reason":"…"}]}
/// ```
#[derive(Debug, Clone, Default)]
pub struct BundleIndex {
    objects: Vec<String>,
    missing: Vec<String>,
}

impl BundleIndex {
    /// Adds an object: its name in the recording, its build ID, the member, the file from which it was
    /// copied, its size if that is known, and why it is the recorded one.
    pub fn object(
        &mut self,
        name: &[u8],
        build_id: Option<&str>,
        member: &[u8],
        from: &[u8],
        size: Option<u64>,
        verified: &str,
    ) {
        let size = size.map_or("null".into(), |size| size.to_string());
        self.objects.push(format!(
            "{{\"name\":{},\"build_id\":{},\"member\":{},\"from\":{},\"size\":{size},\"verified\":{}}}",
            text(name),
            build_id.map_or("null".into(), |id| text(id.as_bytes())),
            text(member),
            text(from),
            text(verified.as_bytes()),
        ));
    }

    /// Adds an object that was not found, and why.
    pub fn missing(&mut self, name: &[u8], build_id: Option<&str>, reason: &str) {
        self.missing.push(format!(
            "{{\"name\":{},\"build_id\":{},\"reason\":{}}}",
            text(name),
            build_id.map_or("null".into(), |id| text(id.as_bytes())),
            text(reason.as_bytes()),
        ));
    }

    /// Returns the index as JSON.
    pub fn to_json(&self) -> String {
        format!(
            "{{\"version\":1,\n\"objects\":[\n{}],\n\"missing\":[\n{}]}}\n",
            self.objects.join(",\n"),
            self.missing.join(",\n")
        )
    }
}

/// Returns a string of JSON. Bytes that are not UTF-8 become U+FFFD.
fn text(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
