//! Sanitizing together with other conversions.

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::DecodeContext;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::header::ContainerKind;
use perfdata_edit::slice::{Select, Slice};
use perfdata_inject::build_ids::{
    BuildIds, KnownBuildIds, Resolver, Select as Objects, Storage, Sysroot,
};
use perfdata_sanitize::{Audience, Kept, Policy, Sanitize};
use perfdata_tests::convert::{Whole, into_memory};

use super::{fs_bytes, key, plain, records, samples, stages};

/// Conversions before or after give the same recording.
#[test]
fn the_order_of_conversions_does_not_matter() {
    for name in [
        "6.1-x86_64-file-g",
        "6.1-x86_64-file-z",
        "6.1-s390x-file-g",
        "7.2-x86_64-pipe-g",
    ] {
        let input = fs_bytes(name);
        let sanitize =
            || Box::new(Sanitize::new(Policy::new(Audience::Public), key())) as Box<dyn Stage>;
        let swap = || Box::new(Swap::new(Target::Other, Unknown::Keep)) as Box<dyn Stage>;
        let open = || Box::new(Decompress::default()) as Box<dyn Stage>;
        let run = |input: &[u8], stages| {
            into_memory(Input::from_source(input.to_vec()), None, stages)
                .expect("it can be converted")
        };
        let swapped_first = run(&run(&input, vec![swap()]), vec![sanitize()]);
        let swapped_last = run(&run(&input, vec![sanitize()]), vec![swap()]);
        let in_one = run(&input, vec![sanitize(), swap()]);
        assert_eq!(
            model(&plain(swapped_last.clone())),
            model(&plain(in_one)),
            "{name}"
        );
        assert_eq!(
            model(&plain(swapped_first)),
            model(&plain(swapped_last)),
            "{name}"
        );
        let opened_first = run(&run(&input, vec![open()]), vec![sanitize()]);
        let opened_last = run(&run(&input, vec![sanitize()]), vec![open()]);
        assert_eq!(model(&opened_first), model(&opened_last), "{name}");
        // A sanitized recording can be sanitized again: the names are new, the form is the same.
        let again = run(&run(&input, vec![sanitize()]), vec![sanitize()]);
        let once = run(&input, vec![sanitize()]);
        let form = |bytes: &[u8]| {
            let whole = Whole::read(plain(bytes.to_vec())).expect("a recording");
            (
                whole
                    .records
                    .iter()
                    .map(|(_, kind)| *kind)
                    .collect::<Vec<_>>(),
                whole.recording.features.keys().copied().collect::<Vec<_>>(),
            )
        };
        assert_eq!(form(&again), form(&once), "{name}");
    }
}

/// Returns all records and features as text, without their containers.
fn model(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let whole = Whole::read(bytes.to_vec()).expect("a recording");
    let layout =
        DecodeContext::default().with_nr_cpus_available(whole.recording.nr_cpus_available());
    let features = whole.recording.features.iter().map(|(&id, bytes)| {
        let section =
            Section::decode(id, bytes, whole.recording.endian, &layout).expect("a section");
        format!("{:?}", section.value)
    });
    let records = records(&whole);
    (
        records.iter().map(|record| format!("{record:?}")).collect(),
        features.collect(),
    )
}

/// Two stages would each check an output that only the second one knows.
#[test]
fn a_conversion_sanitizes_once() {
    let twice = || -> Vec<Box<dyn Stage>> {
        let stage = || Sanitize::new(Policy::new(Audience::Public), key());
        vec![Box::new(stage()), Box::new(stage())]
    };
    for to in [ContainerKind::File, ContainerKind::Pipe] {
        let input = Input::from_source(fs_bytes("6.1-x86_64-file-g"));
        let error = into_memory(input, Some(to), twice()).expect_err("it is refused");
        let error = error.to_string();
        assert!(
            error.contains("one stage") && !error.contains("internal"),
            "{error}"
        );
    }
}

/// What cannot be sanitized is refused, and words are checked.
#[test]
fn words_to_keep_are_checked() {
    let policy = || Policy::new(Audience::Public);
    let error = policy()
        .keep_named("coms")
        .expect_err("no such word")
        .to_string();
    assert!(error.contains("did you mean comms"), "{error}");
    for (word, ..) in Kept::ALL {
        policy().keep_named(word).expect("a word");
    }
    let field = policy()
        .keep_named("sched:sched_switch:no_such_field")
        .expect("a form");
    let input = Input::from_source(fs_bytes("6.1-x86_64-file-g"));
    let made = into_memory(input, None, stages(field));
    let error = made.expect_err("no tracepoint").to_string();
    assert!(error.contains("has no such tracepoint"), "{error}");
}

/// Sections that stages before it add at the end, build IDs and the times of the samples that are
/// left, are sanitized, too.
#[test]
fn what_other_stages_add_is_sanitized() {
    const OBJECT: &str = "/usr/local/bin/perf-workload";
    let known = KnownBuildIds::parse(&format!(
        "0123456789abcdef0123456789abcdef01234567 {OBJECT}"
    ));
    let resolver = Resolver::new(
        known.expect("a list"),
        Sysroot::new(Some("/nonexistent".into())),
        None,
    );
    let mut select = Select::default();
    select.times = "20%-60%".parse().ok();
    let stages: Vec<Box<dyn Stage>> = vec![
        Box::new(Slice::new(select)),
        Box::new(BuildIds::new(Objects::All, Storage::Table, resolver)),
        Box::new(Sanitize::new(Policy::new(Audience::Vendor), key())),
    ];
    let input = Input::from_source(fs_bytes("6.1-x86_64-file-g"));
    let made = into_memory(input, None, stages).expect("it can be sanitized");
    let whole = Whole::read(made).expect("a recording");
    let Some(Ok(Section {
        value: Feature::BuildIds(ids),
        ..
    })) = whole.recording.feature(FeatureId::BUILD_ID)
    else {
        panic!("there are build IDs");
    };
    let names: Vec<String> = ids
        .0
        .iter()
        .map(|id| id.build_id.filename.to_string())
        .collect();
    assert!(
        names.iter().any(|name| name.ends_with("/perf-workload")),
        "{names:?}"
    );
    let records = records(&whole);
    let times: Vec<u64> = samples(&records)
        .iter()
        .filter_map(|sample| sample.time)
        .collect();
    let Some(Ok(Section {
        value: Feature::SampleTime(range),
        ..
    })) = whole.recording.feature(FeatureId::SAMPLE_TIME)
    else {
        panic!("there are times");
    };
    assert_eq!(
        (Some(&range.first), Some(&range.last)),
        (times.iter().min(), times.iter().max())
    );
}
