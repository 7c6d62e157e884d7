//! The names of the parts of samples, in the words of `perf script -F`.

use perfdata_core::attr::SampleType;

use perfdata_convert::error::{Error, Result};
use perfdata_convert::support::suggest;

/// The words of `perf script -F` that differ from the bits in lower case (tools/perf/
/// builtin-script.c, `all_output_options`, 7.2; `ustack` continues them).
const WORDS: [(SampleType, &str); 5] = [
    (SampleType::RAW, "raw"),
    (SampleType::BRANCH_STACK, "brstack"),
    (SampleType::REGS_USER, "uregs"),
    (SampleType::STACK_USER, "ustack"),
    (SampleType::REGS_INTR, "iregs"),
];

/// Other words of `perf script -F` for the same parts.
const OTHERS: [(SampleType, &str); 4] = [
    (SampleType::RAW, "trace"),
    (SampleType::RAW, "bpf-output"),
    (SampleType::WEIGHT_STRUCT, "ins_lat"),
    (SampleType::WEIGHT_STRUCT, "retire_lat"),
];

/// The two forms of one part: a sample has at most one of them.
const WEIGHTS: SampleType = SampleType(SampleType::WEIGHT.0 | SampleType::WEIGHT_STRUCT.0);

/// Returns the part of a sample that `word` names, in upper or lower case: a field of `perf script
/// -F` (`brstack`, `uregs`), or the name of a bit of `sample_type` (`BRANCH_STACK`).
///
/// # Errors
/// There is no such part.
pub fn part(word: &str) -> Result<SampleType> {
    let is_it = |name: &str| name.eq_ignore_ascii_case(word);
    let by_word = WORDS.iter().chain(&OTHERS).find(|(_, name)| is_it(name));
    let by_bit = || SampleType::FIELDS.iter().find(|field| is_it(field.name));
    match by_word {
        Some((part, _)) => Ok(whole(*part)),
        None => by_bit()
            .map(|field| whole(SampleType(1 << field.bit)))
            .ok_or_else(|| {
                let all: Vec<String> = words(SampleType::KNOWN).collect();
                Error::Usage(format!(
                    "samples have no part {word}{}; the parts are {}",
                    suggest::hint(word, all.iter().map(String::as_str)),
                    all.join(", ")
                ))
            }),
    }
}

/// Returns `parts` with both forms of the weights, if it has one of them.
pub(super) fn whole(parts: SampleType) -> SampleType {
    if parts.0 & WEIGHTS.0 == 0 {
        parts
    } else {
        parts | WEIGHTS
    }
}

/// Returns the words for `parts`, in the order of their bits.
pub fn words(parts: SampleType) -> impl Iterator<Item = String> {
    let is_second =
        move |part: SampleType| part == SampleType::WEIGHT_STRUCT && parts.has(SampleType::WEIGHT);
    SampleType::FIELDS
        .iter()
        .map(|field| (SampleType(1 << field.bit), field.name))
        .filter(move |(part, _)| parts.has(*part) && !is_second(*part))
        .map(|(part, name)| {
            let word = WORDS.iter().find(|(other, _)| *other == part);
            word.map_or_else(|| name.to_ascii_lowercase(), |(_, word)| (*word).to_owned())
        })
}

/// Returns the words for `parts` as a list.
pub(super) fn list(parts: SampleType) -> String {
    words(parts).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_a_word_and_is_found_by_it() {
        for field in SampleType::FIELDS {
            let bit = SampleType(1 << field.bit);
            assert_eq!(part(field.name).unwrap(), whole(bit));
            for word in words(bit) {
                assert_eq!(part(&word).unwrap(), whole(bit), "{word}");
                assert_eq!(part(&word.to_uppercase()).unwrap(), whole(bit), "{word}");
            }
        }
        assert_eq!(
            list(SampleType::RAW | SampleType::REGS_USER | WEIGHTS),
            "raw, uregs, weight"
        );
    }

    #[test]
    fn unknown_words_are_answered_with_the_nearest() {
        let said = part("brstak").unwrap_err().to_string();
        assert!(said.contains("did you mean brstack?"), "{said}");
        assert!(said.contains("callchain"), "{said}");
    }
}
