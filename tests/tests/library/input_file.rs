//! Files that change while they are read.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
};

use perfdata_core::{
    header::FileSection,
    read::{InputFile, Source, SourceReader},
};

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .expect("a temporary file");
    file
}

#[test]
fn a_file_that_is_cut_is_an_error_from_then_on() {
    let mut other = file(b"0123456789");
    let input = InputFile::new(other.try_clone().expect("a file")).expect("a file");
    let mut bytes = [0; 6];
    assert_eq!(input.read_at(&mut bytes, 6).ok(), Some(4));
    assert_eq!(input.read_at(&mut bytes, 10).ok(), Some(0));
    other.set_len(4).expect("a file");
    assert_eq!(input.read_at(&mut bytes, 0).ok(), Some(4));
    let error = input
        .read_at(&mut bytes, 4)
        .expect_err("there were bytes")
        .to_string();
    assert!(
        error.ends_with("it had 10 bytes when it was opened, and has 4 now"),
        "{error}"
    );
    // Also at its end, and after the file has grown again.
    assert!(input.read_at(&mut bytes, 10).is_err());
    other
        .seek(SeekFrom::Start(0))
        .and_then(|_| other.write_all(b"0123456789"))
        .expect("a file");
    assert!(input.read_at(&mut bytes, 0).is_err());
}

/// The system refuses to read at such an offset.
#[test]
fn there_is_nothing_at_offsets_beyond_those_of_the_system() {
    let input = InputFile::new(file(b"0123456789")).expect("a file");
    for offset in [1 << 63, u64::MAX] {
        assert_eq!(input.read_at(&mut [0; 6], offset).ok(), Some(0));
    }
}

#[test]
fn what_a_file_grows_by_is_not_read() {
    let other = file(b"0123456789");
    let input = InputFile::new(other.try_clone().expect("a file")).expect("a file");
    other.set_len(20).expect("a file");
    let mut bytes = [0; 16];
    assert_eq!(
        (input.len().ok(), input.read_at(&mut bytes, 0).ok()),
        (Some(10), Some(10))
    );
    assert_eq!(input.read_at(&mut bytes, 10).ok(), Some(0));
}

#[test]
fn so_it_is_for_a_part_of_it() {
    let other = file(b"0123456789");
    let input = InputFile::new(other.try_clone().expect("a file")).expect("a file");
    let mut part = SourceReader::new(
        input,
        FileSection {
            offset: 2,
            size: u64::MAX,
        },
    );
    let mut bytes = [0; 4];
    assert_eq!((part.read(&mut bytes).ok(), &bytes), (Some(4), b"2345"));
    other.set_len(8).expect("a file");
    assert_eq!(part.read(&mut bytes).ok(), Some(2));
    assert!(part.read(&mut bytes).is_err());
}
