//! Labels of recordings, as the command line gives them.

use std::str::FromStr;

use perfdata_columns::Table;

/// Maximum length of a key in bytes.
const MOST_KEY: usize = 63;

/// A column of the table `recordings` with a text that is the same for all recordings of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingLabel {
    /// The name of the column: lower-case letters, digits and `_`.
    pub key: String,
    /// The text.
    pub value: String,
}

impl FromStr for RecordingLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err("it is not KEY=VALUE".into());
        };
        // Engines that ignore the case, and need quotes for other characters, read such names.
        let is_letter = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'0'..=b'9' | b'_');
        let begins = key
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase());
        if !begins || !key.as_bytes().iter().all(is_letter) || key.len() > MOST_KEY {
            return Err(format!(
                "the key consists of lower-case letters, digits and _, at most {MOST_KEY}, and begins with a letter"
            ));
        }
        if Table::Recordings
            .columns()
            .iter()
            .any(|column| column.name == key)
        {
            return Err(format!(
                "the table recordings has a column {key}; choose another key"
            ));
        }
        Ok(RecordingLabel {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_names_of_new_columns() {
        let parse = |text: &str| text.parse::<RecordingLabel>();
        let label = parse("service=a=b c").expect("a label");
        assert_eq!(
            (label.key.as_str(), label.value.as_str()),
            ("service", "a=b c")
        );
        assert_eq!(parse("zone_2=").expect("a label").value, "");
        for text in [
            "",
            "service",
            "=x",
            "Service=x",
            "2nd=x",
            "a.b=x",
            "ä=x",
            "_a=x",
        ] {
            parse(text).expect_err(text);
        }
        parse(&format!("{}=x", "a".repeat(64))).expect_err("it is too long");
        for column in Table::Recordings.columns() {
            let error = parse(&format!("{}=x", column.name)).expect_err("a column");
            assert!(error.contains(column.name), "{error}");
        }
    }
}
