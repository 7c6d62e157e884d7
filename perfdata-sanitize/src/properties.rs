//! Properties of pseudonyms, for many names and keys.

use std::collections::HashMap;

use perfdata_core::content::Content;
use perfdata_core::read::Limits;

use super::key::Key;
use super::names::Names;
use super::{Audience, Policy};

/// Numbers that are the same in each run.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) as usize % most
    }

    /// Returns a text of up to `most` bytes: words of paths, digits, and any other bytes but NUL.
    fn text(&mut self, most: usize) -> Vec<u8> {
        const PARTS: [&[u8]; 16] = [
            b"/",
            b"//",
            b"a",
            b"lib",
            b".so",
            b".so.6",
            b"usr",
            b"-",
            b"123",
            b":",
            b"[",
            b"]",
            b" ",
            b"home",
            b"kworker/0:1",
            b"perf-12.map",
        ];
        let mut text = Vec::new();
        for _ in 0..=self.below(9) {
            match self.below(20) {
                part if part < PARTS.len() => text.extend_from_slice(PARTS[part]),
                _ => text.push(1 + self.below(255) as u8),
            }
        }
        text.truncate(most);
        text
    }
}

const CONTENTS: [Content; 8] = [
    Content::Comm,
    Content::Path,
    Content::CgroupPath,
    Content::Symbol,
    Content::EventName,
    Content::Host,
    Content::Argument,
    Content::Message,
];

fn names(secret: u64, audience: Audience) -> Names {
    let key = Key::of_secret(&[secret.to_le_bytes(), [7; 8]].concat()).unwrap();
    Names::new(key, Policy::new(audience), Limits::default())
}

/// Returns the new text of at most `most` bytes.
fn new_of(names: &mut Names, content: Content, text: &[u8], most: usize) -> Vec<u8> {
    let new = names.of(content, text, most).unwrap();
    new.unwrap_or_else(|| text.to_vec())
}

#[test]
fn different_names_have_different_pseudonyms() {
    for secret in 0..4 {
        let (mut names, mut numbers) = (names(secret, Audience::Public), RandomNumbers(secret));
        for content in [
            Content::Comm,
            Content::Path,
            Content::CgroupPath,
            Content::Host,
        ] {
            let mut old_of: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
            for _ in 0..4000 {
                let text = numbers.text(40);
                let new = new_of(&mut names, content, &text, usize::MAX);
                assert_eq!(new_of(&mut names, content, &text, usize::MAX), new);
                let is_shortened = |text: &[u8]| {
                    // Names of kernel threads and of shared memory, and damaged brackets, lose what
                    // follows.
                    text.starts_with(b"kworker/")
                        || text.starts_with(b"/SYSV")
                        || text.starts_with(b"[")
                        || text.contains(&b':')
                };
                let old = old_of.entry(new).or_insert_with(|| text.clone());
                assert!(*old == text || is_shortened(&text), "{old:x?} {text:x?}");
            }
        }
    }
}

#[test]
fn the_form_of_names_stays() {
    for secret in 0..4 {
        let (mut names, mut numbers) =
            (names(secret, Audience::Public), RandomNumbers(secret + 100));
        for _ in 0..4000 {
            let comm = numbers.text(15);
            let new = new_of(&mut names, Content::Comm, &comm, 15);
            assert!(
                new.len() <= 15 && new.is_empty() == comm.is_empty(),
                "{comm:x?} {new:x?}"
            );
            assert!(!new.contains(&0));

            let path = [b"/", &*numbers.text(60)].concat();
            let new = new_of(&mut names, Content::Path, &path, 4096);
            assert!(!new.contains(&0));
            if path.contains(&b':') || path.contains(&b'[') {
                continue;
            }
            let parts = |path: &[u8]| path.split(|&byte| byte == b'/').count();
            assert_eq!(parts(&path), parts(&new), "{path:x?} {new:x?}");
            let empty = |path: &[u8]| -> Vec<bool> {
                path.split(|&byte| byte == b'/')
                    .map(<[u8]>::is_empty)
                    .collect()
            };
            assert_eq!(empty(&path), empty(&new), "{path:x?} {new:x?}");
            // A directory is the same in all paths.
            if let Some(slash) = path.iter().rposition(|&byte| byte == b'/') {
                let other = [&path[..=slash], b"another"].concat();
                let other = new_of(&mut names, Content::Path, &other, 4096);
                let head = |path: &[u8]| {
                    let slash = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                    path[..slash].to_vec()
                };
                assert_eq!(head(&new), head(&other), "{path:x?}");
            }
        }
    }
}

/// No text is longer than its field, whatever is in it.
#[test]
fn new_texts_fit() {
    for audience in [Audience::Public, Audience::Vendor] {
        let (mut names, mut numbers) = (names(9, audience), RandomNumbers(9));
        for _ in 0..4000 {
            let (text, most) = (numbers.text(80), numbers.below(40));
            for content in CONTENTS {
                if let Some(new) = names.of(content, &text, most).unwrap() {
                    assert!(new.len() <= most, "{content:?} {text:x?} {most}: {new:x?}");
                    assert!(
                        names.is_issued(&new) || new.is_empty(),
                        "{content:?} {text:x?}"
                    );
                }
            }
        }
    }
}

#[test]
fn process_ids_are_permuted_for_every_key() {
    for secret in 0..8_u64 {
        let key = Key::of_secret(&[secret.to_le_bytes(), [7; 8]].concat()).unwrap();
        let mut numbers = RandomNumbers(secret);
        let mut old_of: HashMap<u32, u32> = HashMap::new();
        for _ in 0..20_000 {
            let pid = (numbers.below(1 << 31) >> numbers.below(31)) as u32;
            let new = key.pid(pid);
            assert_eq!(new < 1 << 22, pid < 1 << 22, "{pid}");
            assert_eq!(new == 0, pid == 0);
            assert_eq!(*old_of.entry(new).or_insert(pid), pid);
        }
    }
}
