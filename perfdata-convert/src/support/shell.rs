//! Names in commands that users paste into a shell.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

/// Returns `path` as one word for a shell, which is not an option.
pub fn word(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.starts_with(b"-") && bytes != b"-" {
        return quoted(&Path::new(".").join(path).into_os_string());
    }
    quoted(path.as_os_str())
}

/// Returns `text` as one word for a shell. Control characters are escaped in the syntax of bash.
pub fn quoted(text: &OsStr) -> String {
    quoted_bytes(text.as_encoded_bytes())
}

/// Returns `bytes` as one word, like [`quoted`].
pub fn quoted_bytes(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(byte);
    match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.is_empty() && bytes.iter().all(plain) => text.to_owned(),
        Ok(text)
            if text
                .chars()
                .all(|c| c == '\'' || c == '"' || c == '\\' || c.escape_debug().len() == 1) =>
        {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => {
            let mut out = String::from("$'");
            for &byte in bytes {
                if plain(&byte) || byte == b' ' {
                    out.push(char::from(byte));
                } else {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            out.push('\'');
            out
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    #[test]
    fn a_shell_reads_the_same_name() {
        let names: [&[u8]; 9] = [
            b"a.data",
            b"a b",
            b"it's",
            b"$(x)",
            b"\x1b[31m",
            b"\xff\xfe",
            b"-o",
            "gr\u{fc}n".as_bytes(),
            b"a\nb\\",
        ];
        for name in names {
            let word = word(Path::new(OsStr::from_bytes(name)));
            assert!(!word.contains(['\u{1b}', '\n']), "{word:?}");
            let output = Command::new("bash")
                .args(["-c", &format!("printf %s {word}")])
                .output()
                .expect("bash");
            let expected = if name == b"-o" { b"./-o" } else { name };
            assert_eq!(output.stdout, expected, "{word}");
        }
        assert_eq!(word(Path::new("-")), "-");
        assert_eq!(word(Path::new("a.data")), "a.data");
        assert_eq!(word(Path::new("it's")), r"'it'\''s'");
    }
}
