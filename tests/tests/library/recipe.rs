//! Conversions as data: in any combination that has no conflict, and as the command runs them.

use std::fs;
use std::path::Path;

use perfdata_convert::error::Error;
use perfdata_convert::io::{Input, Output};
use perfdata_convert::stages::edit::Change;
use perfdata_convert::stages::swap::{Target, Unknown};
use perfdata_core::header::ContainerKind;
use perfdata_edit::slice::{Patterns, Select};
use perfdata_edit::thin::part;
use perfdata_export::{Folded, Sources};
use perfdata_inject::build_ids::{Select as Objects, Storage};
use perfdata_inject::jit::Images;
use perfdata_recipe::{
    AddBuildIds, Conflict, Dumps, Export, FeatureSource, GeneratedCode, Part, Recipe, Sanitizing,
    Traces, UserStacks,
};
use perfdata_sanitize::{Audience, Key, Policy};
use perfdata_tests::convert::perfconv;
use perfdata_tests::generate::random::Random;
use perfdata_tests::recordings::{Recording, fixture, fixtures, in_parallel};

/// A part of recipes: the words of the command line, and what they mean.
struct Step {
    words: &'static str,
    add: fn(&mut Recipe),
}

/// All steps whose outputs depend on nothing but the input.
const STEPS: [Step; 15] = [
    Step {
        words: "--sort",
        add: |recipe| recipe.sort = true,
    },
    Step {
        words: "--decompress",
        add: |recipe| recipe.decompress = true,
    },
    Step {
        words: "--compress=3",
        add: |recipe| recipe.compress = Some(3),
    },
    Step {
        words: "--endian=big",
        add: |recipe| recipe.byte_order = Some(Target::Order(perfdata_core::Endian::Big)),
    },
    Step {
        words: "--to=pipe",
        add: |recipe| recipe.to = Some(ContainerKind::Pipe),
    },
    Step {
        words: "--to=file",
        add: |recipe| recipe.to = Some(ContainerKind::File),
    },
    Step {
        words: "--compat=5.10",
        add: |recipe| recipe.compat = "5.10".parse().ok(),
    },
    Step {
        words: "--unknown=drop",
        add: |recipe| recipe.unknown = Unknown::Drop,
    },
    Step {
        words: "--max-stack=4",
        add: |recipe| recipe.thin.max_stack = Some(4),
    },
    Step {
        words: "--omit=raw",
        add: |recipe| recipe.thin.omit = part("raw").expect("a part"),
    },
    Step {
        words: "--drop-stacks",
        add: |recipe| recipe.user_stacks = Some(UserStacks::Drop),
    },
    Step {
        words: "--merge-deferred",
        add: |recipe| recipe.merge_deferred = true,
    },
    Step {
        words: "--expand-off-cpu",
        add: |recipe| recipe.expand_off_cpu = true,
    },
    Step {
        words: "--set=HOSTNAME=elsewhere",
        add: |recipe| {
            let value = Change::Set("elsewhere".into());
            recipe.changes.push(("HOSTNAME".into(), value));
        },
    },
    Step {
        words: "--every=3",
        add: |recipe| {
            let select = recipe.select.get_or_insert_default();
            select.every = 3.try_into().ok();
        },
    },
];

/// Returns some of the steps, at most one for each option.
fn some_of(random: &mut Random) -> Vec<&'static Step> {
    let mut steps: Vec<&Step> = Vec::new();
    for _ in 0..1 + random.below(5) {
        let step = &STEPS[random.below(STEPS.len() as u64) as usize];
        let option = |step: &Step| step.words.split('=').next();
        let is_new = steps.iter().all(|other| option(other) != option(step));
        let both = ["--decompress", "--compress=3"];
        let excludes =
            both.contains(&step.words) && steps.iter().any(|other| both.contains(&other.words));
        if is_new && !excludes {
            steps.push(step);
        }
    }
    steps
}

/// Returns the output, or the error.
fn run(recipe: &Recipe, input: &Path, output: &Path) -> Result<Vec<u8>, Error> {
    let file = Output::create(output, input, true)?;
    recipe.convert(Input::open(input)?, file)?;
    Ok(fs::read(output).expect("the output"))
}

/// A program that puts the same steps together in any order gets what the command writes, or its
/// error.
#[test]
fn programs_get_what_the_command_writes() {
    let recordings = fixtures();
    let jobs: Vec<u64> = (0..120).collect();
    let refused = std::sync::atomic::AtomicUsize::new(0);
    in_parallel(&jobs, |&job| {
        let mut random = Random(job);
        let recording = &recordings[random.below(recordings.len() as u64) as usize];
        let mut steps = some_of(&mut random);
        let words: Vec<&str> = steps.iter().map(|step| step.words).collect();
        let what = format!("{} {}", words.join(" "), recording.path.display());
        let folder = tempfile::tempdir().expect("a folder");
        let theirs = folder.path().join("command.data");
        let mut command = perfconv();
        command.args(["convert", "-q", "--no-sync"]).args(&words);
        command.arg(&recording.path).arg("-o").arg(&theirs);
        let said = command.output().expect("perfconv runs");
        if random.below(2) == 0 {
            steps.reverse();
        }
        let mut recipe = Recipe::default();
        recipe.sync = false;
        steps.iter().for_each(|step| (step.add)(&mut recipe));
        let ours = run(
            &recipe,
            &recording.path,
            &folder.path().join("program.data"),
        );
        match ours {
            Ok(bytes) => {
                assert!(said.status.success(), "{what}");
                assert!(bytes == fs::read(&theirs).expect("an output"), "{what}");
            }
            Err(error) => {
                refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let text = String::from_utf8_lossy(&said.stderr);
                assert!(!said.status.success(), "{what}: {error}");
                let last = error.to_string();
                assert!(text.contains(&last), "{what}: {error}, {text}");
                assert!(!last.contains("please report"), "{what}: {error}");
            }
        }
    });
    let refused = refused.into_inner();
    assert!(refused > 0 && refused < jobs.len() / 2, "{refused}");
}

/// A sanitized recording with any other step is clean, or the recipe has a conflict.
#[test]
fn nothing_unsanitized_is_added() {
    let input = fixture("6.1-i386-file-g");
    let folder = tempfile::tempdir().expect("a folder");
    for step in &STEPS {
        let mut recipe = Recipe::default();
        recipe.sync = false;
        (step.add)(&mut recipe);
        let key = Key::of_secret(&[7; 32]).expect("a key");
        recipe.sanitize = Some(Sanitizing::By(Policy::new(Audience::Public), key));
        let done = run(&recipe, &input.path, &folder.path().join("out.data"));
        match recipe.check() {
            // What another step needs may be missing.
            Ok(()) => {
                assert!(done.is_ok_and(|bytes| !bytes.is_empty()) || step.words == "--omit=raw")
            }
            Err(conflict) => {
                assert!(matches!(
                    conflict,
                    Conflict::Excluded {
                        part: Part::Set,
                        ..
                    }
                ));
                let error = done.expect_err("a conflict").to_string();
                assert_eq!(error, conflict.to_string());
            }
        }
    }
}

#[test]
fn conflicts_are_values() {
    let code = |recipe: &mut Recipe, dumps: Option<Dumps>| {
        let (perf_maps, images) = (dumps.is_none().then_some(None), Images::BesideDump);
        recipe.code = Some(GeneratedCode {
            dumps,
            perf_maps,
            images,
        });
    };
    let excluded = |part, by| move |conflict: &Conflict| matches!(conflict, Conflict::Excluded { part: one, by: other, .. } if (*one, *other) == (part, by));
    let sanitized = |recipe: &mut Recipe| {
        let key = Key::of_secret(&[7; 32]).expect("a key");
        recipe.sanitize = Some(Sanitizing::By(Policy::default(), key));
    };
    type Made<'a> = &'a dyn Fn(&mut Recipe);
    type Is<'a> = &'a dyn Fn(&Conflict) -> bool;
    let cases: [(Made<'_>, Is<'_>); 6] = [
        (
            &|recipe| {
                code(recipe, Some(Dumps::default()));
                recipe.select = Some(Select::default());
            },
            &excluded(Part::Jit, Part::Select),
        ),
        (
            &|recipe| {
                sanitized(recipe);
                code(recipe, None);
            },
            &excluded(Part::PerfMaps, Part::Sanitize),
        ),
        (
            &|recipe| {
                sanitized(recipe);
                recipe.features_from = Some(FeatureSource::System);
            },
            &excluded(Part::FeaturesFrom, Part::Sanitize),
        ),
        (
            &|recipe| {
                sanitized(recipe);
                recipe.unknown = Unknown::Keep;
            },
            &excluded(Part::UnknownKeep, Part::Sanitize),
        ),
        (
            &|recipe| {
                sanitized(recipe);
                recipe.changes = vec![("HOSTNAME".into(), Change::Raw(vec![0; 8]))];
            },
            &excluded(Part::SetRaw, Part::Sanitize),
        ),
        (
            &|recipe| {
                recipe.compress = Some(1);
                recipe.compat = "5.1".parse().ok();
            },
            &|conflict| matches!(conflict, Conflict::NotCompressed(_)),
        ),
    ];
    for (at, (make, is_expected)) in cases.iter().enumerate() {
        let mut recipe = Recipe::default();
        make(&mut recipe);
        let conflict = recipe.check().expect_err("a conflict");
        assert!(is_expected(&conflict), "{at}: {conflict:?}");
        let error = recipe.stages().err().expect("an error");
        assert_eq!(error.to_string(), conflict.to_string());
    }
    // Two passes make these.
    let traces = Traces::new(Some(perfdata_inject::itrace::ItraceOptions::all()));
    let in_one_pass: [(Made<'_>, Is<'_>); 3] = [
        (
            &|recipe| {
                recipe.off_cpu = Some(Default::default());
                recipe.select = Some(Select::default());
            },
            &excluded(Part::OffCpu, Part::Select),
        ),
        (
            &|recipe| {
                recipe.traces = Some(traces);
                recipe.select = Some(Select::default());
            },
            &excluded(Part::Itrace, Part::Select),
        ),
        (
            &|recipe| {
                recipe.traces = Some(traces);
                recipe.build_ids = Some(AddBuildIds::new(Objects::Hit, Storage::Table));
                recipe.to = Some(ContainerKind::Pipe);
            },
            &excluded(Part::Itrace, Part::BuildIds),
        ),
    ];
    for (make, is_expected) in in_one_pass {
        let mut once = Recipe::default();
        make(&mut once);
        assert_eq!(once.check(), Ok(()));
        let conflict = once.check_in_one_pass().expect_err("a conflict");
        assert!(is_expected(&conflict), "{conflict:?}");
        let error = once.stages().err().expect("an error");
        assert_eq!(error.to_string(), conflict.to_string());
    }
    let mut parts = Recipe::default();
    code(&mut parts, Some(Dumps::default()));
    assert!(matches!(
        parts.check_split(),
        Err(Conflict::WholeOnly { .. })
    ));
}

/// A recording that ends inside a record is exported up to there; one without samples is an error,
/// unless an empty output is wanted.
#[test]
fn exports_are_complete_or_say_why_not() {
    let whole = fixture("6.1-i386-file-g");
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("cut.data");
    let mut bytes = fs::read(&whole.path).expect("a recording");
    let reader = perfdata_core::open(&whole.path).expect("it opens");
    let place = match perfdata_core::read::RecordSource::container_layout(&reader) {
        perfdata_core::container_layout::ContainerLayout::File(file) => file
            .place(perfdata_core::container_layout::Part::Data)
            .expect("records"),
        other => panic!("{other:?}"),
    };
    bytes.truncate((place.offset + place.size * 2 / 3) as usize);
    fs::write(&input, bytes).expect("a file");

    let mut export = Export::new(Sources::default());
    export.symbols = false;
    export.recipe.sync = false;
    let exported = |export: &Export, input: &Path| {
        let mut text = Vec::new();
        let mut sink = Folded::new(&mut text);
        let opened = Input::open(input).expect("it opens");
        let done = export.run(opened, &mut sink, Path::new("out"));
        drop(sink);
        (done, text)
    };
    let (done, text) = exported(&export, &input);
    let done = done.expect("it is exported");
    assert!(done.report.samples > 0 && done.leftover.is_some());
    let mut command = perfconv();
    command.args(["export", "-q", "--no-symbols", "--to=folded", "-o", "-"]);
    let said = command.arg(&input).output().expect("perfconv runs");
    assert!(said.status.success());
    assert_eq!(text, said.stdout);

    let mut select = Select::default();
    select.comms = Some(Patterns::between_commas("nobody"));
    export.recipe.select = Some(select);
    let (done, text) = exported(&export, &whole.path);
    let error = done.expect_err("no samples").to_string();
    assert!(error.contains("no sample") && text.is_empty(), "{error}");
    export.allow_empty = true;
    let (done, _) = exported(&export, &whole.path);
    assert_eq!(done.expect("it is empty").report.samples, 0);
}

/// A recipe can be used again, and recovers what it converts.
#[test]
fn a_recipe_recovers() {
    let whole: Recording = fixture("6.1-i386-file-g");
    let folder = tempfile::tempdir().expect("a folder");
    let mut recipe = Recipe::default();
    recipe.sync = false;
    recipe.sort = true;
    let converted = run(&recipe, &whole.path, &folder.path().join("a.data")).expect("sorted");
    let path = folder.path().join("b.data");
    let output = Output::create(&path, &whole.path, false).expect("an output");
    let recover = perfdata_convert::recover::Recover::default();
    let input = Input::open(&whole.path).expect("it opens");
    let recovery = recipe.recover(&recover, input, output).expect("recovered");
    assert!(recovery.skipped.is_empty());
    assert_eq!(fs::read(&path).expect("a file"), converted);
}
