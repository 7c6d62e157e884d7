//! Records that are requested one after the other are those that `dump` shows.

use perfdata_convert::io::Input;
use perfdata_convert::json::Json;
use perfdata_core::record::{RecordType, Registers};
use perfdata_report::pull::Pull;
use perfdata_report::show::dump::Dump;
use perfdata_report::show::record::Shown;
use perfdata_tests::recordings::{self, Recording};

/// Returns the records of an input as JSON Lines, and the descriptions of damage.
fn pulled(input: Input) -> Result<(String, Vec<String>), perfdata_convert::Error> {
    let mut pull = Pull::new(input)?;
    let (mut text, mut damage) = (Vec::new(), Vec::new());
    while !pull.is_finished() {
        if let Some(copy) = pull.next(|_| true)? {
            let raw = copy.raw().expect("a complete record");
            let (recording, names) = match &copy.state {
                Some(state) => (&state.recording, &state.names),
                None => (pull.recording(), pull.names()),
            };
            let shown = Shown::new(&raw, copy.inner, recording, names)
                .with_registers(Registers::of(recording));
            let mut json = Json::compact_in(text);
            shown.json(&mut json, false);
            json.end_line();
            text = json.out;
        }
        damage.extend(pull.take_damage());
    }
    Ok((String::from_utf8(text).expect("JSON"), damage))
}

fn dumped(input: Input) -> Result<(String, Vec<String>), perfdata_convert::Error> {
    let mut text = Vec::new();
    let dumped = Dump::default().with_json(true).run(input, &mut text)?;
    Ok((String::from_utf8(text).expect("JSON"), dumped.damage))
}

fn are_those_of_dump(recording: &Recording) -> Result<(), String> {
    let open = || Input::open(&recording.path).map_err(|error| error.to_string());
    let describe = |error: perfdata_convert::Error| error.to_string();
    let expected = dumped(open()?).map_err(describe);
    let found = pulled(open()?).map_err(describe);
    match found == expected {
        true => Ok(()),
        false => Err("the records differ from those of dump".into()),
    }
}

#[test]
fn pulled_records_are_those_of_dump() {
    recordings::check_all(&recordings::all(), are_those_of_dump);
}

/// Returns a stream in which attributes and samples alternate.
fn alternating() -> Vec<u8> {
    let stream =
        std::fs::read(recordings::fixture("6.1-x86_64-pipe-default").path).expect("the recording");
    let (header, mut rest) = stream.split_at(16);
    let (mut attrs, mut samples) = (Vec::new(), Vec::new());
    while let Some(size) = rest.get(6..8) {
        let size = usize::from(u16::from_le_bytes([size[0], size[1]]));
        let (record, next) = rest.split_at(size);
        match RecordType(u32::from_le_bytes([
            record[0], record[1], record[2], record[3],
        ])) {
            RecordType::HEADER_ATTR => attrs.push(record),
            RecordType::SAMPLE => samples.push(record),
            // Tracing data follows its record.
            RecordType::HEADER_TRACING_DATA => break,
            _ => {}
        }
        rest = next;
    }
    assert!(!attrs.is_empty() && samples.len() > 10);
    let mut made = header.to_vec();
    made.extend_from_slice(attrs[0]);
    for _ in 0..200 {
        for sample in &samples[..10] {
            made.extend_from_slice(sample);
            made.extend_from_slice(attrs[0]);
        }
    }
    made
}

#[test]
fn copies_of_the_state_are_bounded() {
    let stream = alternating();
    let mut pull = Pull::new(Input::from_source(stream.clone())).expect("a recording");
    let (mut with, mut without) = (0, 0);
    while !pull.is_finished() {
        if let Some(copy) = pull
            .next(|kind| kind == RecordType::SAMPLE)
            .expect("records")
        {
            match copy.state {
                Some(_) => with += 1,
                None => without += 1,
            }
        }
    }
    assert_eq!(with + without, 2000);
    assert!(without > with, "{with} copies of the state");
    let (found, expected) = (
        pulled(Input::from_source(stream.clone())),
        dumped(Input::from_source(stream)),
    );
    assert_eq!(found.expect("records"), expected.expect("records"));
}
