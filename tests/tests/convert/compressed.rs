//! Conversions of recordings of `perf record -z` with `--decompress` and `--compress`.

use std::{fs, io::Write as _};

use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_core::{
    container_layout::ContainerLayout,
    feature::{Compression, CompressionType, Feature, FeatureId},
    header::ContainerKind,
    record::{Compressed2, RawRecord, RecordType},
};
use perfdata_tests::{
    allowed::{COMPRESSED, DIRECTORY},
    convert::{Converted, Whole, convert},
    golden::Tally,
    is_thorough, judge,
    perf::{self, Question},
    recordings::{self, Container, Endian, Form, PerfVersion, Recording},
    synth::{self, Buf, feature_system, kind, sink, user, zstd::Stream},
};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

fn decompress() -> Vec<Box<dyn Stage>> {
    vec![Box::new(Decompress::default())]
}

/// Returns the stages of `--compress`.
fn compress(kind: RecordType, level: i32) -> Vec<Box<dyn Stage>> {
    vec![
        Box::new(Decompress::default()),
        Box::new(Compress::new(kind, level)),
    ]
}

fn decompressed(recording: &Recording) -> Result<Converted, String> {
    convert(&recording.path, None, decompress()).map_err(|error| error.to_string())
}

/// Returns the recordings in files and pipes that contain compressed records.
fn compressed() -> Vec<Recording> {
    let mut all = recordings::all();
    all.retain(|recording| {
        !recording.is_damaged()
            && matches!(
                recording.form,
                Some(Form {
                    container: Container::File | Container::Pipe,
                    ..
                })
            )
            && Whole::read_file(&recording.path)
                .is_ok_and(|whole| whole.records.iter().any(|(_, k)| k.is_compressed()))
    });
    // The fixtures contain both types of compressed records, in files and pipes of both byte
    // orders.
    for container in [Container::File, Container::Pipe] {
        for endian in [Endian::Little, Endian::Big] {
            let form = Some(Form { container, endian });
            assert!(
                all.iter().any(|recording| recording.form == form),
                "no compressed {form:?}"
            );
        }
    }
    all
}

/// Returns the record stream of a recording with its zstd stream decompressed by code independent
/// of the converter.
fn opened(whole: &Whole) -> Result<Vec<u8>, String> {
    let mut decoder = Decoder::new().map_err(|error| error.to_string())?;
    let (mut plain, mut carried) = (Vec::new(), Vec::new());
    for (kind, bytes) in whole.records_with_payloads() {
        if !kind.is_compressed() {
            plain.extend_from_slice(bytes);
            continue;
        }
        let record = RawRecord::first(bytes, whole.recording.endian, 0)
            .map_err(|error| error.to_string())?;
        let payload = match record.kind {
            RecordType::COMPRESSED => record.body().to_vec(),
            _ => {
                record
                    .decode_body::<Compressed2>(Default::default())
                    .map_err(|error| error.to_string())?
                    .data
                    .0
            }
        };
        let mut room = vec![0; 4 << 20];
        let (mut input, mut output) = (
            InBuffer::around(&payload),
            OutBuffer::around(room.as_mut_slice()),
        );
        while input.pos() < payload.len() {
            decoder
                .run(&mut input, &mut output)
                .map_err(|error| error.to_string())?;
        }
        let len = output.pos();
        assert!(len < room.len());
        carried.extend_from_slice(&room[..len]);
        let mut whole_records = 0;
        while let Ok(record) =
            RawRecord::first(&carried[whole_records..], whole.recording.endian, 0)
        {
            whole_records += record.bytes.len();
        }
        plain.extend(carried.drain(..whole_records));
    }
    Ok(plain)
}

#[test]
fn the_records_come_out_in_the_order_of_the_stream() {
    recordings::check_all(&compressed(), |recording| {
        let old = Whole::read_file(&recording.path)?;
        let new = Whole::read_file(&decompressed(recording)?.path())?;
        if opened(&old)? != new.stream {
            return Err("the record streams differ".into());
        }
        if let Some((_, kind)) = new.records.iter().find(|(_, kind)| kind.is_compressed()) {
            return Err(format!("a {kind} record is left"));
        }
        let mut features = old.recording.features.clone();
        features.remove(&FeatureId::COMPRESSED);
        if features != new.recording.features {
            return Err("other features than COMPRESSED changed".into());
        }
        Ok(())
    });
}

/// For the fixtures; for all available recordings if `PERFCONV_TEST_ALL` is set.
#[test]
fn perf_reads_the_same_records() {
    let tally = Tally::default();
    let mut all = compressed();
    all.retain(|recording| is_thorough() || recording.is_fixture());
    recordings::check_all(&all, |recording| {
        let plain = decompressed(recording)?;
        let panel = judge::panel(recording)?;
        judge::compare_by(panel, recording, &plain.path(), COMPRESSED, &tally)
    });
    eprint!("{}", tally.describe(COMPRESSED));
}

/// In one pass with the conversion from pipe to file.
#[test]
fn a_compressed_pipe_becomes_a_plain_file() {
    let mut pipes = compressed();
    pipes.retain(|recording| {
        matches!(
            recording.form,
            Some(Form {
                container: Container::Pipe,
                ..
            })
        )
    });
    recordings::check_all(&pipes, |pipe| {
        let whole = convert(&pipe.path, Some(ContainerKind::File), decompress())
            .map_err(|error| error.to_string())?;
        let halfway = decompressed(pipe)?;
        let twice = convert(&halfway.path(), Some(ContainerKind::File), Vec::new())
            .map_err(|e| e.to_string())?;
        if whole.bytes() == twice.bytes() {
            Ok(())
        } else {
            Err("two steps make another file than one".into())
        }
    });
}

/// A stream with one raw zstd block per compressed record, which is split at arbitrary offsets:
/// every record is decompressed completely.
#[test]
fn records_straddle_compressed_records() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("straddling.data");
    for big in [false, true] {
        for packed in [kind::COMPRESSED, kind::COMPRESSED2] {
            fs::write(&path, sink::compressed_file(big, packed).bytes()).expect("a temporary file");
            let old = Whole::read_file(&path).expect("the independent writer's recording");
            let new = convert(&path, None, decompress()).expect("it can be decompressed");
            assert_eq!(new.summary.notes, Vec::<String>::new());
            let new = Whole::read_file(&new.path()).expect("the output is a recording");
            assert!(opened(&old).expect("zstd") == new.stream);
            assert!(new.records.len() > old.records.len());
        }
    }
}

/// Returns a file of the independent writer with a compressed record for each of the zstd `pieces`.
fn file_of(pieces: &[Vec<u8>]) -> synth::file::File {
    let records: Vec<u8> = pieces
        .iter()
        .flat_map(|piece| {
            let body = user::compressed(Buf::new(false), kind::COMPRESSED2, piece);
            synth::record::frame(false, kind::COMPRESSED2, 0, &body.bytes)
        })
        .collect();
    let mut file = synth::file::basic(false);
    file.data = records;
    file.set_feature(
        FeatureId::COMPRESSED.0,
        feature_system::compressed(Buf::new(false)).bytes,
    );
    file
}

/// Decompresses the result of [`file_of`].
fn decompress_pieces(pieces: &[Vec<u8>]) -> Result<(Vec<u8>, Vec<String>), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("made.data");
    fs::write(&path, file_of(pieces).bytes()).expect("a temporary file");
    let new = convert(&path, None, decompress()).map_err(|error| error.to_string())?;
    Ok((Whole::read_file(&new.path())?.stream, new.summary.notes))
}

/// Returns a COMM record of `len` bytes.
fn comm(len: usize) -> Vec<u8> {
    synth::record::frame(false, kind::COMM, 0, &vec![b'x'; len - 8])
}

#[test]
fn a_frame_may_begin_anew() {
    let record = comm(64);
    // A writer that lost its context starts a new frame although the old one has no end.
    let lost = [
        Stream::default().pack(&record),
        Stream::default().pack(&record),
    ];
    assert_eq!(decompress_pieces(&lost), Ok((record.repeat(2), vec![])));
    // Complete frames may even follow each other in one record.
    let frame = zstd::bulk::compress(&record, 1).expect("zstd");
    assert_eq!(
        decompress_pieces(&[frame.repeat(2), frame]),
        Ok((record.repeat(3), vec![]))
    );
}

#[test]
fn data_that_ends_inside_a_record_is_told() {
    let record = comm(64);
    let (stream, notes) =
        decompress_pieces(&[Stream::default().pack(&[&record[..], &record[..40]].concat())])
            .expect("the whole record is there");
    assert_eq!(stream, record);
    assert_eq!(
        notes,
        ["the compressed data ends inside a record: dropped its first 40 bytes"]
    );
}

/// A recording of `perf record -z` that was killed: it has no COMPRESSED feature and no size of the
/// data.
#[test]
fn a_recording_that_was_never_finished_is_decompressed() {
    let record = comm(64);
    let mut file = file_of(&[Stream::default().pack(&record.repeat(3))]);
    file.crashed = true;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = folder.path().join("killed.data");
    fs::write(&input, file.bytes()).expect("a temporary file");
    let plain = convert(&input, None, decompress()).expect("its records are whole");
    let plain = Whole::read(plain.bytes()).expect("a recording");
    assert_eq!(plain.stream, record.repeat(3));
    assert!(
        matches!(&plain.container_layout, ContainerLayout::File(file) if file.header.data.size == 0),
        "it is still unfinished"
    );
    // A size that does not match the data cannot be corrected.
    file.crashed = false;
    let cut = usize::try_from(file.data_offset()).expect("a small file") + 40;
    fs::write(&input, &file.bytes()[..cut]).expect("a temporary file");
    let error = convert(&input, None, decompress())
        .expect_err("it is cut")
        .to_string();
    assert!(error.contains("is unfinished or truncated"), "{error}");
}

/// 65,528 bytes of zstd data can contain 2 GiB.
#[test]
fn a_bomb_is_refused() {
    let record = comm(1 << 15);
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 19).expect("zstd");
    for _ in 0..1 << 13 {
        encoder.write_all(&record).expect("zstd");
    }
    let bomb = encoder.finish().expect("zstd");
    assert!(bomb.len() < 60_000, "{} bytes", bomb.len());
    let error = decompress_pieces(&[bomb]).expect_err("256 MiB in one record");
    assert!(
        error.contains("COMPRESSED2 record")
            && error.contains("exceeds the limit max-decompressed of "),
        "{error}"
    );
}

/// A frame may request a window of up to 2 TiB; perf's zstd accepts 128 MiB.
#[test]
fn a_huge_window_is_refused() {
    for (log, is_taken) in [(27, true), (28, false), (31, false), (41, false)] {
        // Neither content size nor checksum; one empty last block.
        let frame = [
            &0xfd2f_b528_u32.to_le_bytes()[..],
            &[0, (log - 10) << 3, 1, 0, 0],
        ]
        .concat();
        match decompress_pieces(&[frame]) {
            Ok((stream, _)) => assert!(is_taken && stream.is_empty(), "{log}"),
            Err(error) => {
                assert!(
                    !is_taken
                        && error
                            .contains("COMPRESSED2 record: exceeds the limit max-window-log of 27"),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn what_is_no_zstd_is_refused() {
    let error = decompress_pieces(&[vec![0x55; 100]]).expect_err("no zstd");
    assert!(
        error.contains("COMPRESSED2 record: zstd: Unknown frame descriptor"),
        "{error}"
    );
    let nested = synth::record::frame(
        false,
        kind::COMPRESSED,
        0,
        &Stream::default().pack(&comm(64)),
    );
    let error =
        decompress_pieces(&[Stream::default().pack(&nested)]).expect_err("compressed twice");
    assert!(error.contains("a compressed COMPRESSED record"), "{error}");
}

const KINDS: [RecordType; 2] = [RecordType::COMPRESSED, RecordType::COMPRESSED2];

/// Returns the intact recordings of all containers.
fn healthy() -> Vec<Recording> {
    let mut all = recordings::all();
    all.retain(|recording| !recording.name.starts_with("crashers/") && recording.form.is_some());
    all
}

/// Returns the COMPRESSED feature of a recording.
fn parameters(whole: &Whole) -> Option<Compression> {
    match whole
        .recording
        .feature(FeatureId::COMPRESSED)?
        .expect("a whole section")
        .value
    {
        Feature::Compressed(parameters) => Some(parameters),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_compressed_comes_out_again() {
    recordings::check_all(&healthy(), |recording| {
        let text = |error: perfdata_convert::Error| error.to_string();
        let plain = match convert(&recording.path, None, decompress()) {
            Ok(plain) => plain,
            // Published recordings may be damaged.
            Err(_) if recording.recorder.is_none() => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        if recording.name.contains("-crashed") {
            // Its header cannot contain the feature.
            return match convert(&plain.path(), None, compress(KINDS[0], 1)) {
                Err(error) if error.to_string().contains("is unfinished or truncated") => Ok(()),
                other => Err(format!("{other:?}")),
            };
        }
        for (kind, level) in KINDS.into_iter().zip([1, 9]) {
            let packed = convert(&plain.path(), None, compress(kind, level)).map_err(text)?;
            let again = convert(&packed.path(), None, decompress()).map_err(text)?;
            if again.bytes() != plain.bytes()
                && Whole::read_file(&again.path())?.stream
                    != Whole::read_file(&plain.path())?.stream
            {
                return Err(format!(
                    "{kind} at level {level}: other records come out than went in"
                ));
            }
        }
        Ok(())
    });
}

/// Compressing a recording of `perf record -z` again: the same records remain uncompressed, and all
/// others are compressed.
#[test]
fn only_what_perf_compresses_is_compressed() {
    recordings::check_all(&compressed(), |recording| {
        let old = Whole::read_file(&recording.path)?;
        let kind = old
            .records
            .iter()
            .map(|(_, kind)| *kind)
            .find(|kind| kind.is_compressed())
            .ok_or("none")?;
        let new =
            convert(&recording.path, None, compress(kind, 3)).map_err(|error| error.to_string())?;
        let new = Whole::read_file(&new.path())?;
        if opened(&old)? != opened(&new)? {
            return Err("the record streams differ".into());
        }
        let plain = |whole: &Whole| {
            let kinds = whole
                .records
                .iter()
                .map(|(_, kind)| *kind)
                .filter(|kind| !kind.is_compressed());
            kinds.collect::<Vec<_>>()
        };
        let (old_plain, new_plain) = (plain(&old), plain(&new));
        if recording.recorder.is_some() && old_plain != new_plain {
            return Err(format!(
                "other records are plain: {old_plain:?}, {new_plain:?}"
            ));
        }
        let parameters = parameters(&new).ok_or("no COMPRESSED feature")?;
        let is_pipe = matches!(
            recording.form,
            Some(Form {
                container: Container::Pipe,
                ..
            })
        );
        let truth = (0, CompressionType::ZSTD, 3, is_pipe);
        match (
            parameters.version,
            parameters.kind,
            parameters.level,
            parameters.ratio == 0,
        ) == truth
        {
            true if parameters.mmap_len.is_multiple_of(4096) => Ok(()),
            _ => Err(format!("{parameters:?}")),
        }
    });
}

/// Every perf accepts COMPRESSED, and perf since 6.15 accepts COMPRESSED2. perf judges one fixture
/// of each kind, or all available recordings if `PERFCONV_TEST_ALL` is set.
#[test]
fn perf_reads_what_is_compressed() {
    const KINDS_OF_RECORDING: [&str; 6] =
        ["-default", "-multi", "-tp", "-threads", "-z", "-odd-names"];
    let mut all = if is_thorough() {
        healthy()
    } else {
        recordings::fixtures()
    };
    if !is_thorough() {
        all.retain(|recording| {
            KINDS_OF_RECORDING
                .iter()
                .any(|kind| recording.name.ends_with(kind))
        });
    }
    // No perf can read the recordings that were killed.
    all.retain(|recording| recording.recorder.is_some() && !recording.name.contains("-crashed"));
    let allowed = [COMPRESSED, &[DIRECTORY]].concat();
    let tally = Tally::default();
    recordings::check_all(&all, |recording| {
        judge::all_of(KINDS.into_iter().map(|kind| {
            let packed = convert(&recording.path, None, compress(kind, 1))
                .map_err(|error| error.to_string())?;
            let first = PerfVersion {
                major: 6,
                minor: 15,
            };
            let mut panel = judge::panel(recording)?;
            panel.retain(|perf| kind != RecordType::COMPRESSED2 || perf.version >= first);
            judge::compare_by(panel, recording, &packed.path(), &allowed, &tally)
                .map_err(|fault| format!("{kind}: {fault}"))
        }))
    });
    eprint!("{}", tally.describe(&allowed));
}

/// A recording that is long enough for several zstd frames, which are compressed in parallel. perf
/// decodes successive frames.
#[test]
fn perf_reads_frames_one_after_the_other() {
    const TIMES: usize = 250;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = folder.path().join("long.data");
    let bytes = fs::read(recordings::fixture("6.1-x86_64-pipe-default").path).expect("a fixture");
    let mut whole = Whole::read(bytes.clone()).expect("a recording");
    let head = bytes[..bytes.len() - whole.stream.len()].to_vec();
    whole.stream.truncate(whole.records_end);
    fs::write(&input, [head, whole.stream.repeat(TIMES)].concat()).expect("a temporary file");
    let long = convert(&input, Some(ContainerKind::File), Vec::new()).expect("a sound recording");
    for kind in KINDS {
        let packed = convert(&long.path(), None, compress(kind, 3)).expect("a sound recording");
        let again = convert(&packed.path(), None, decompress()).expect("what was compressed");
        let streams = [&long, &again]
            .map(|converted| Whole::read(converted.bytes()).expect("a recording").stream);
        assert!(streams[0] == streams[1], "{kind}: other records");
        assert!(
            streams[0].len() > 2 << 20,
            "{} bytes are not several frames",
            streams[0].len()
        );
        let of_kind = perf::all().iter().filter(|perf| {
            let reads = kind == RecordType::COMPRESSED
                || perf.version
                    >= PerfVersion {
                        major: 6,
                        minor: 15,
                    };
            reads && perf.endian == Endian::Little
        });
        for perf in of_kind {
            let ask =
                |path: std::path::PathBuf| perf.ask(Question::Script, &path).expect("perf runs");
            let (old, new) = (ask(long.path()), ask(packed.path()));
            assert!(
                new.success() && new.stdout == old.stdout,
                "{kind}: {perf}: {}",
                new.stderr
            );
        }
    }
}

/// The type of compressed records depends on the target release. If no type is possible, the
/// command reports this.
#[test]
fn compressed_records_fit_the_wanted_release() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("output.data");
    let input = recordings::fixture("6.1-x86_64-file-default").main_file();
    let compress = |compat: &[&str]| {
        let mut command = perfdata_tests::convert::perfconv();
        command
            .args(["convert", "--quiet", "--force", "--compress"])
            .args(compat)
            .arg(&input)
            .arg("-o")
            .arg(&output);
        command.output().expect("perfconv runs").status.code()
    };
    for (compat, kind) in [
        (&[][..], RecordType::COMPRESSED2),
        (&["--compat", "7.2"], RecordType::COMPRESSED2),
        (&["--compat", "6.1"], RecordType::COMPRESSED),
    ] {
        assert_eq!(compress(compat), Some(0), "{compat:?}");
        let bytes = fs::read(&output).expect("the output");
        let records = Whole::read(bytes).expect("a recording").records;
        let mut kinds: Vec<RecordType> = records.into_iter().map(|(_, kind)| kind).collect();
        kinds.retain(|&kind| kind.is_compressed());
        assert!(
            !kinds.is_empty() && kinds.iter().all(|&found| found == kind),
            "{compat:?}: {kinds:?}"
        );
    }
    assert_eq!(
        compress(&["--compat", "4.19"]),
        Some(2),
        "perf 4.19 reads neither kind"
    );
}
