//! A recording that is read into the model and written back is byte-identical.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use perfdata_tests::{
    convert::{Converted, convert, perfconv},
    per_fixture,
    recordings::{self, Container, Form, Recording},
    synth::{self, file::Magic, kind, pipe::Pipe, sink},
};

per_fixture!(is_copied_exactly);

#[test]
fn recordings_outside_are_copied_exactly() {
    recordings::check_all(&recordings::shared(), is_copied_exactly);
}

/// Published recordings, including those that broke other readers, which may be refused.
#[test]
fn published_recordings_are_copied_exactly() {
    recordings::check_all(&recordings::corpus(), |recording| {
        if recording.name.starts_with("crashers/") {
            refused_or_exact(&recording.path)
        } else {
            is_copied_exactly(recording)
        }
    });
}

/// Recordings of the independent writer in forms that perf does not write today.
#[test]
fn odd_recordings_are_copied_exactly() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in odd() {
        let path = folder.path().join(name.replace(' ', "-"));
        fs::write(&path, &bytes).expect("a temporary file");
        let copy =
            convert(&path, None, Vec::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
        same(&bytes, &copy).unwrap_or_else(|message| panic!("{name}: {message}"));
    }
}

/// A recording that is truncated anywhere is copied up to its end, or refused.
#[test]
fn cut_recordings_are_copied_exactly() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("cut.data");
    for big in [false, true] {
        for whole in [
            synth::file::kitchen_sink(big),
            synth::pipe::kitchen_sink(big),
        ] {
            let mut copied = 0;
            for len in (0..whole.len()).step_by(101) {
                fs::write(&path, &whole[..len]).expect("a temporary file");
                if let Ok(copy) = convert(&path, None, Vec::new()) {
                    same(&whole[..len], &copy)
                        .unwrap_or_else(|message| panic!("{len} bytes: {message}"));
                    copied += 1;
                }
            }
            assert!(copied > 100, "only {copied} cut recordings are readable");
        }
    }
}

/// The command copies like the library: from file to file, and from stream to stream.
#[test]
fn the_command_copies_exactly() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for recording in recordings::fixtures()
        .iter()
        .filter(|recording| recording.name.starts_with("7.2-"))
    {
        let input = recording.main_file();
        let original = fs::read(&input).expect("a fixture");

        let output = folder.path().join(&recording.name);
        let status = perfconv()
            .arg(&input)
            .arg("-o")
            .arg(&output)
            .arg("-q")
            .status()
            .expect("perfconv runs");
        assert!(status.success(), "{}: {status}", recording.name);
        assert!(
            fs::read(&output).expect("an output") == original,
            "{}: the copy differs",
            recording.name
        );

        let stream = fs::File::open(&input).expect("a fixture");
        let mut cat = std::process::Command::new("cat")
            .stdin(stream)
            .stdout(Stdio::piped())
            .spawn()
            .expect("cat runs");
        let through = cat.stdout.take().expect("cat has a standard output");
        let output = perfconv()
            .args(["convert", "-", "-o", "-"])
            .stdin(through)
            .output()
            .expect("perfconv runs");
        assert!(cat.wait().is_ok_and(|status| status.success()));
        assert!(
            output.status.success(),
            "{}: {}",
            recording.name,
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            output.stdout == original,
            "{}: the copy of the stream differs",
            recording.name
        );
    }
}

fn is_copied_exactly(recording: &Recording) -> Result<(), String> {
    for path in files(recording) {
        let copy = convert(&path, None, Vec::new()).map_err(|error| error.to_string())?;
        same(&fs::read(&path).map_err(|error| error.to_string())?, &copy)?;
    }
    Ok(())
}

/// Returns the file-mode recordings in a directory, otherwise the recording.
fn files(recording: &Recording) -> Vec<PathBuf> {
    match recording.form {
        Some(Form {
            container: Container::Directory,
            ..
        }) => vec![recording.main_file()],
        _ => vec![recording.path.clone()],
    }
}

fn refused_or_exact(path: &Path) -> Result<(), String> {
    match convert(path, None, Vec::new()) {
        Ok(copy) => same(&fs::read(path).map_err(|error| error.to_string())?, &copy),
        Err(_) => Ok(()),
    }
}

fn same(original: &[u8], copy: &Converted) -> Result<(), String> {
    let copy = copy.bytes();
    let at = (0..original.len().max(copy.len())).find(|&at| original.get(at) != copy.get(at));
    at.map_or(Ok(()), |at| {
        Err(format!(
            "byte {at} differs, of {} and {} bytes",
            original.len(),
            copy.len()
        ))
    })
}

/// Returns complete recordings of the independent writer, in both byte orders.
fn odd() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for big in [false, true] {
        let mut add = |name: &str, bytes: Vec<u8>| {
            all.push((format!("{name} {}", ["LE", "BE"][usize::from(big)]), bytes))
        };
        add("kitchen sink", synth::file::kitchen_sink(big));
        add("kitchen sink pipe", synth::pipe::kitchen_sink(big));
        for packed in [kind::COMPRESSED, kind::COMPRESSED2] {
            add(
                &format!("file of {packed}"),
                sink::compressed_file(big, packed).bytes(),
            );
            add(
                &format!("pipe of {packed}"),
                sink::compressed_pipe(big, packed).bytes,
            );
        }
        let basic = synth::file::basic(big);
        let pipe = Pipe::new(big, Magic::V2).event(&basic.events[0]);
        let mut late = pipe
            .clone()
            .records(&synth::file::basic_records(big, &basic.events[0]));
        add(
            "empty tracing data",
            pipe.tracing_data(&[])
                .bytes
                .into_iter()
                .chain(basic.data)
                .collect(),
        );
        for (bit, section) in &basic.features {
            late = late.feature(*bit, section);
        }
        add("features behind the records", late.terminator(32).bytes);
        for (name, bytes) in synth::dir::files(big, true) {
            if name == "data" {
                add("data of a directory", bytes);
            }
        }
        for (name, file) in synth::forms::forms(big) {
            add(&name, file.bytes());
        }
    }
    all
}
