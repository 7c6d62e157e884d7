//! Exports of every recording, decoded independently of what wrote them.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use perfdata_core::attr::{EventType, SampleType, SoftwareEvent};
use perfdata_core::record::Body;
use perfdata_export::{Firefox, FlameGraph, FlameGraphForm, Folded, Sink, Speedscope, export};
use perfdata_session::{Sample, Samples};
use perfdata_tests::recordings::{self, Recording};
use serde_json::Value;

use crate::otlp::check_otlp;
use crate::pprof::check_pprof;

/// The number of samples and the sum of their weights, by event, without dummy events; and the name
/// of the first event with samples, in the order of the attributes. Samples with counters are samples of each event whose counter increased.
pub type Totals = (BTreeMap<Vec<u8>, (u64, u64)>, Option<Vec<u8>>);

fn totals(recording: &Recording) -> Option<Totals> {
    let mut samples = Samples::open(&recording.path).ok()?;
    let (mut totals, mut counters) = (Totals::default(), Counters::new());
    while let Some(sample) = samples.next().ok()? {
        let is_dummy = sample.attr().is_some_and(|attr| {
            attr.kind == EventType::SOFTWARE && attr.config == SoftwareEvent::DUMMY.0
        });
        if is_dummy {
            continue;
        }
        for (name, weight) in counted(&sample, &mut counters)? {
            let sums = totals.0.entry(name).or_default();
            sums.0 += 1;
            sums.1 += weight;
        }
    }
    let (session, recording) = (samples.session(), samples.recording());
    let names = (0..recording.events.len()).map(|at| session.name_of_event(recording, at));
    totals.1 = names
        .map(std::borrow::Cow::into_owned)
        .find(|name| totals.0.contains_key(name));
    Some(totals)
}

/// The last values of counters, by their IDs, and for inherited counters by thread.
pub type Counters = BTreeMap<(u64, Option<u32>), u64>;

/// Returns what a sample counts: its event and its weight, or the events whose counters it contains.
/// `None` if it is corrupt.
pub fn counted(sample: &Sample<'_>, counters: &mut Counters) -> Option<Vec<(Vec<u8>, u64)>> {
    if !sample.attr()?.sample_type.has(SampleType::READ) {
        return Some(vec![(sample.event_name().to_vec(), sample.weight())]);
    }
    match sample.record().decode().ok()?.body {
        Body::Sample(decoded) => Some(increases(sample, &decoded, counters)),
        _ => None,
    }
}

/// Returns the events whose counters a sample contains, and how much they increased.
fn increases(
    sample: &Sample<'_>,
    decoded: &perfdata_core::record::Sample,
    counters: &mut Counters,
) -> Vec<(Vec<u8>, u64)> {
    let Some(read) = &decoded.read else {
        return Vec::new();
    };
    let own = read.id.zip(read.value);
    let group = read
        .values
        .iter()
        .filter_map(|one| one.id.zip(Some(one.value)));
    let is_inherited = sample.attr().is_some_and(|attr| attr.flags.inherit() == 1);
    let tid = decoded.tid.filter(|_| is_inherited).map(|tid| tid.tid);
    let mut increases = Vec::new();
    for (id, value) in own.into_iter().chain(group) {
        let Some(event) = sample.recording().events.of_id_strict(id) else {
            continue;
        };
        let last = counters.insert((id, tid), value).unwrap_or(0);
        if value != last {
            let name = sample.session().name_of_event(sample.recording(), event);
            increases.push((name.into_owned(), value.wrapping_sub(last)));
        }
    }
    increases
}

pub fn run(recording: &Recording, sink: &mut dyn Sink) {
    let mut samples = Samples::open(&recording.path).expect("it was opened before");
    export(&mut samples, None, sink).expect("it was read before");
}

fn check_folded(recording: &Recording, totals: &Totals) -> Result<(), String> {
    let mut out = Vec::new();
    run(recording, &mut Folded::new(&mut out));
    let text = String::from_utf8(out).map_err(|error| error.to_string())?;
    let lines: Vec<&str> = text.lines().collect();
    let mut sum = 0;
    for line in &lines {
        let (stack, count) = line.rsplit_once(' ').ok_or("a line without a count")?;
        sum += count.parse::<u64>().map_err(|error| error.to_string())?;
        // Only the first word, the name of the thread, may be empty.
        let has_empty = stack.split(';').skip(1).any(str::is_empty);
        if has_empty || stack.contains(char::is_control) {
            return Err(format!("{line:?}"));
        }
    }
    let first = totals.1.as_ref().and_then(|name| totals.0.get(name));
    let expected = first.map_or(0, |sums| sums.1);
    match sum == expected && lines.is_sorted() {
        true => Ok(()),
        false => Err(format!("folded: {sum}, expected {expected}")),
    }
}

/// Checks that the first thing that a format shows is that of the first event.
fn check_first(format: &str, name: Option<&str>, totals: &Totals) -> Result<(), String> {
    let Some(first) = totals
        .1
        .as_deref()
        .and_then(|name| std::str::from_utf8(name).ok())
    else {
        return Ok(());
    };
    match name {
        Some(name) if name.starts_with(first) => Ok(()),
        _ => Err(format!("{format}: {name:?} comes first, expected {first}")),
    }
}

fn check_speedscope(recording: &Recording, totals: &Totals) -> Result<(), String> {
    let mut out = Vec::new();
    run(recording, &mut Speedscope::new(&mut out, b"a \"name\"\n"));
    let file: Value = serde_json::from_slice(&out).map_err(|error| error.to_string())?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let frames = list(&file["shared"]["frames"]);
    if frames.iter().any(|frame| !frame["name"].is_string()) || !file["$schema"].is_string() {
        return Err("a frame without a name".into());
    }
    let mut all = BTreeMap::new();
    check_first("speedscope", file["profiles"][0]["name"].as_str(), totals)?;
    let mut threads: BTreeMap<String, u64> = BTreeMap::new();
    for profile in list(&file["profiles"]) {
        let (samples, weights) = (list(&profile["samples"]), list(&profile["weights"]));
        let sum: u64 = weights.iter().filter_map(Value::as_u64).sum();
        let is_inside = |number: &Value| number.as_u64().is_some_and(|at| at < frames.len() as u64);
        let are_inside = samples
            .iter()
            .all(|stack| list(stack).iter().all(is_inside));
        let is_whole = profile["type"] == "sampled"
            && samples.len() == weights.len()
            && profile["startValue"] == 0
            && profile["endValue"] == sum;
        if !is_whole || !are_inside {
            return Err(format!("profile {}", profile["name"]));
        }
        let name = profile["name"].as_str().unwrap_or_default();
        match name.strip_suffix(": all threads") {
            Some(event) => drop(all.insert(event.to_owned(), (samples.len() as u64, sum))),
            None => *threads.entry(profile["unit"].to_string()).or_default() += sum,
        }
    }
    let sums: u64 = threads.values().sum();
    let is_equal = all.len() == totals.0.len()
        && all.values().map(|sums| sums.0).sum::<u64>()
            == totals.0.values().map(|sums| sums.0).sum::<u64>()
        && all.values().map(|sums| sums.1).sum::<u64>() == sums;
    match is_equal {
        true => Ok(()),
        false => Err(format!(
            "speedscope: {all:?}, threads {sums}, expected {:?}",
            totals.0
        )),
    }
}

/// Returns the data in the page of a flame graph.
pub fn page_data(page: &str) -> Value {
    let (_, data) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("the data");
    let (data, _) = data.split_once("</script>").expect("the end of the data");
    serde_json::from_str(data).expect("JSON")
}

fn column(data: &Value, name: &str) -> Vec<i128> {
    let list = data[name].as_array().expect("a column").iter();
    let numbers = list.map(|value| {
        let number = value.as_i64().map(i128::from);
        number.or_else(|| value.as_u64().map(i128::from))
    });
    numbers.collect::<Option<_>>().expect("numbers")
}

fn check_flame_graph(recording: &Recording, totals: &Totals) -> Result<(), String> {
    let mut out = Vec::new();
    let name = b"<b>&\"name\"\n</script>";
    run(
        recording,
        &mut FlameGraph::new(&mut out, FlameGraphForm::Page, name),
    );
    let page = String::from_utf8(out).map_err(|error| error.to_string())?;
    let data = page_data(&page);
    let len = |name: &str| data[name].as_array().map_or(0, Vec::len) as i128;
    let parents = column(&data, "parents");
    let nodes = parents.len() as i128 + 1;
    // Each node has a parent before it.
    let are_before = (1..)
        .zip(&parents)
        .all(|(at, &back)| 0 < back && back <= at);
    let is_in = |name: &str, least: i128, most: i128| {
        column(&data, name)
            .iter()
            .all(|&number| least <= number && number < most)
    };
    let are_inside = is_in("functions", 0, len("frames"))
        && is_in("node", 0, nodes)
        && is_in("thread", 0, len("threads"))
        && is_in("event", 0, len("events"))
        && is_in("side", 0, 1)
        && is_in("part", -1, 512);
    if !are_before || !are_inside || len("functions") + 1 != nodes {
        return Err("flame graph: wrong numbers".into());
    }
    let mut sums: BTreeMap<Vec<u8>, (u64, u64)> = BTreeMap::new();
    let rows = column(&data, "event").into_iter();
    let values = column(&data, "samples")
        .into_iter()
        .zip(column(&data, "weight"));
    for (event, (samples, weight)) in rows.zip(values) {
        let name = data["events"][event as usize][0].as_str().expect("a name");
        let sum = sums.entry(name.into()).or_default();
        sum.0 += samples as u64;
        sum.1 += weight as u64;
    }
    let of = |totals: &BTreeMap<Vec<u8>, (u64, u64)>| {
        let mut values: Vec<(u64, u64)> = totals.values().copied().collect();
        values.sort_unstable();
        values
    };
    if of(&sums) != of(&totals.0) {
        return Err(format!("flame graph: {sums:?}, expected {:?}", totals.0));
    }
    check_first("flame graph", data["events"][0][0].as_str(), totals)?;
    let mut out = Vec::new();
    run(
        recording,
        &mut FlameGraph::new(&mut out, FlameGraphForm::Picture, name),
    );
    let picture = String::from_utf8(out).map_err(|error| error.to_string())?;
    let (opened, closed) = (
        picture.matches("<g>").count(),
        picture.matches("</g>").count(),
    );
    let has_controls = picture.contains(|c: char| c.is_control() && c != '\n');
    match opened == closed && opened > 0 && !has_controls && !picture.contains("<b>") {
        true => Ok(()),
        false => Err("flame graph: the picture".into()),
    }
}

/// Each event of a group that is read with its samples has its own sums, those of `perf script`.
#[test]
fn events_of_groups_are_counted() {
    let recording = recordings::fixture("6.1-x86_64-file-group-S");
    let totals = totals(&recording).expect("a fixture");
    let expected = [
        (b"cpu-clock".to_vec(), (43, 241_638_338)),
        (b"task-clock".to_vec(), (43, 234_730_246)),
    ];
    assert_eq!(totals.0, BTreeMap::from(expected));
    check_pprof(&recording, &totals).expect("the same sums");
    check_folded(&recording, &totals).expect("the first event");
}

fn check_firefox(recording: &Recording, totals: &Totals) -> Result<(), String> {
    let mut out = Vec::new();
    run(recording, &mut Firefox::new(&mut out, b"a \"name\"\n"));
    let mut text = String::new();
    GzDecoder::new(&*out)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    let profile: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let length = |table: &Value| table["length"].as_u64().unwrap_or(u64::MAX);
    let shared = &profile["shared"];
    // All columns of a table have its length.
    let is_even = |table: &Value| {
        let columns = table.as_object().expect("a table").values();
        let mut columns = columns.filter_map(Value::as_array);
        columns.all(|column| column.len() as u64 == length(table))
    };
    let names = [
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "sources",
    ];
    let are_even = names.iter().all(|name| is_even(&shared[name]));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let strings = list(&shared["stringArray"]).len() as u64;
    let is_in = |column: &Value, most: u64| {
        let column = list(column);
        let mut numbers = column.iter();
        numbers.all(|value| {
            value.is_null() || value.as_i64() == Some(-1) || value.as_u64() < Some(most)
        })
    };
    let stacks = length(&shared["stackTable"]);
    let are_inside = is_in(&shared["stackTable"]["prefix"], stacks)
        && is_in(
            &shared["stackTable"]["frame"],
            length(&shared["frameTable"]),
        )
        && is_in(&shared["frameTable"]["func"], length(&shared["funcTable"]))
        && is_in(&shared["funcTable"]["name"], strings)
        && is_in(
            &shared["funcTable"]["resource"],
            length(&shared["resourceTable"]),
        )
        && is_in(&shared["resourceTable"]["name"], strings)
        && is_in(
            &shared["resourceTable"]["lib"],
            list(&profile["libs"]).len() as u64,
        );
    if !are_even || !are_inside {
        return Err("firefox: wrong numbers".into());
    }
    let mut samples = 0;
    for thread in list(&profile["threads"]) {
        let (own, markers) = (&thread["samples"], &thread["markers"]);
        let times: Vec<f64> = list(&own["time"])
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        let is_whole = is_even(own)
            && is_even(markers)
            && is_in(&own["stack"], stacks)
            && is_in(&markers["name"], strings)
            && times.is_sorted()
            && times.len() as u64 == length(own)
            && thread["pid"].is_string();
        if !is_whole {
            return Err(format!("firefox: thread {}", thread["name"]));
        }
        samples += length(own);
    }
    let expected = totals.0.values().map(|sums| sums.0).sum::<u64>();
    match samples == expected {
        true => Ok(()),
        false => Err(format!("firefox: {samples} samples, expected {expected}")),
    }
}

#[test]
fn every_format_contains_all_samples() {
    let check = |recording: &Recording| {
        let Some(totals) = totals(recording) else {
            return Ok(());
        };
        check_folded(recording, &totals)?;
        check_speedscope(recording, &totals)?;
        check_flame_graph(recording, &totals)?;
        check_firefox(recording, &totals)?;
        check_otlp(recording, &totals)?;
        check_pprof(recording, &totals)
    };
    recordings::check_all(&recordings::fixtures(), check);
    recordings::check_all(&recordings::shared(), check);
}

#[test]
fn a_flame_graph_compares_two_recordings() {
    let recording = recordings::fixture("6.1-x86_64-file-g");
    let mut out = Vec::new();
    let mut sink = FlameGraph::new(&mut out, FlameGraphForm::Page, b"new").with_other(b"old");
    run(&recording, &mut sink);
    run(&recording, &mut sink);
    let data = page_data(std::str::from_utf8(&out).expect("UTF-8"));
    assert_eq!(data["recordings"][0][0], "new");
    assert_eq!(data["recordings"][1][0], "old");
    // Both have the same rows, and the same frames although their numbers are not the same.
    let half = column(&data, "side")
        .iter()
        .filter(|&&side| side == 0)
        .count();
    for name in ["node", "thread", "cpu", "part", "samples", "weight"] {
        let values = column(&data, name);
        assert_eq!(values[..half], values[half..], "{name}");
        assert!(!values.is_empty());
    }
}

/// The threads of a recording with `perf record --switch-events`, with what happened to them.
#[test]
fn firefox_profiles_show_what_happened_to_threads() {
    let with_switches = recordings::fixtures().into_iter().filter(|recording| {
        let mut samples = Samples::open(&recording.path).expect("a fixture");
        let mut has = false;
        while let Ok(Some(_)) = samples.next_with(|record| {
            has |= record.kind == perfdata_core::record::RecordType::SWITCH;
        }) {}
        has
    });
    let mut names = std::collections::BTreeSet::new();
    let mut intervals = 0;
    for recording in with_switches {
        let mut out = Vec::new();
        run(&recording, &mut Firefox::new(&mut out, b"name"));
        let profile: Value = serde_json::from_reader(GzDecoder::new(&*out)).expect("JSON");
        let strings = profile["shared"]["stringArray"]
            .as_array()
            .expect("strings");
        for thread in profile["threads"].as_array().expect("threads") {
            let markers = &thread["markers"];
            let of = |key: &str| markers[key].as_array().expect("a column").clone();
            for (number, (start, end)) in of("name")
                .iter()
                .zip(of("startTime").iter().zip(of("endTime")))
            {
                let at = number.as_u64().expect("a number") as usize;
                names.insert(strings[at].as_str().expect("a string").to_owned());
                if let Some(end) = end.as_f64() {
                    assert!(start.as_f64() <= Some(end), "{}", recording.name);
                    intervals += 1;
                }
            }
        }
    }
    for name in ["COMM", "EXIT", "FORK", "off-CPU"] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    assert!(intervals > 0);
}

#[test]
fn firefox_profiles_contain_the_text_of_tracepoints() {
    let recording = recordings::fixture("6.12-x86_64-file-tp-g");
    let mut out = Vec::new();
    run(&recording, &mut Firefox::new(&mut out, b"name"));
    let profile: Value = serde_json::from_reader(GzDecoder::new(&*out)).expect("JSON");
    let threads = profile["threads"].as_array().expect("threads");
    let data = |thread: &Value| thread["markers"]["data"].as_array().expect("data").clone();
    let texts: Vec<String> = threads
        .iter()
        .flat_map(data)
        .filter_map(|data| Some(data["text"].as_str()?.to_owned()))
        .collect();
    assert!(texts.len() > 20, "{texts:?}");
    let is_switch = |text: &String| text.starts_with("prev_comm=") && text.contains("next_prio=");
    assert!(texts.iter().all(is_switch), "{texts:?}");
}
