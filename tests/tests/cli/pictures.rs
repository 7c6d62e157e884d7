//! `perfconv info --map` and `--html`: they show the contents of `info --json`, and a browser can
//! display them.

use std::{collections::BTreeMap, fs, fs::File, io::BufReader, path::Path, process::Command};

use perfdata_convert::io::Input;
use perfdata_report::show::{map, page, survey::ChartData};
use perfdata_tests::skipped;
use perfdata_tests::{
    convert, per_fixture, perf,
    recordings::{self, Container, Recording},
    snapshot,
};
use serde_json::Value;

const TEMPLATE: &str = include_str!("../../../perfdata-report/src/show/page.html");

fn survey(recording: &Recording) -> Result<ChartData, String> {
    Input::open(&recording.path)
        .and_then(ChartData::of)
        .map_err(|error| error.to_string())
}

/// Returns the numbers in a page.
fn data(page: &str) -> Result<Value, String> {
    let start = page.split_once("id=\"data\">").ok_or("no data")?.1;
    let text = start.split_once("</script>").ok_or("no end of the data")?.0;
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn sum<'a>(numbers: impl IntoIterator<Item = &'a Value>) -> u64 {
    numbers.into_iter().filter_map(Value::as_u64).sum()
}

per_fixture!(the_page_says_what_info_says);

fn the_page_says_what_info_says(recording: &Recording) -> Result<(), String> {
    let survey = survey(recording)?;
    let data = data(&page::html(&survey, b"name"))?;
    let (info, charts) = (&data["info"], &data["charts"]);
    let json: Value =
        serde_json::from_str(&survey.overview.json()).map_err(|error| error.to_string())?;
    if *info != json {
        return Err("the page has other numbers than info --json".into());
    }
    let rows = |chart: &str| -> BTreeMap<String, u64> {
        let rows = list(&charts[chart], "rows").iter();
        rows.map(|row| {
            (
                row["name"].as_str().unwrap_or_default().into(),
                sum(list(row, "bins")),
            )
        })
        .collect()
    };
    let name = |kind: &Value| {
        kind.as_str()
            .map_or_else(|| kind.to_string(), str::to_owned)
    };
    let records = list(info, "records").iter();
    let bytes: BTreeMap<String, u64> = records
        .clone()
        .map(|r| (name(&r["type"]), sum([&r["bytes"]])))
        .collect();
    if rows("space") != bytes {
        return Err(format!(
            "bytes by type: {:?}, info says {bytes:?}",
            rows("space")
        ));
    }
    let samples = records
        .chain(list(info, "compressed_records"))
        .filter(|r| r["type"] == "SAMPLE")
        .map(|r| &r["count"]);
    let samples = sum(samples);
    for chart in ["events", "cpus"] {
        let shown = rows(chart).values().sum::<u64>() + sum([&charts["timeless"]]);
        if shown != samples {
            return Err(format!("{chart}: {shown} samples, info says {samples}"));
        }
    }
    let form = recording.form.ok_or("no form")?;
    let size = fs::metadata(recording.main_file())
        .map_err(|error| error.to_string())?
        .len();
    let rooms = sum(list(charts, "rooms").iter().map(|room| &room["size"]));
    if form.container != Container::Pipe && survey.overview.damage().is_empty() && rooms != size {
        return Err(format!("the parts have {rooms} bytes, the file {size}"));
    }
    if charts["size"] != size {
        return Err(format!("{} bytes, the file has {size}", charts["size"]));
    }
    Ok(())
}

#[test]
fn the_page_loads_nothing_and_obeys_nothing() {
    for word in [
        "http:",
        "https:",
        " src=",
        "@import",
        "url(",
        "fetch(",
        "innerHTML",
        "<link",
    ] {
        assert!(!TEMPLATE.contains(word), "{word}");
    }
    assert_eq!(TEMPLATE.matches("{{data}}").count(), 1);
    let evil = b"</script><img src=x onerror=alert(1)>&amp;{{data}}<!--";
    let survey = survey(&recordings::fixture("6.1-x86_64-pipe-default")).expect("a recording");
    let page = page::html(&survey, evil);
    assert_eq!(page.matches('<').count(), TEMPLATE.matches('<').count());
    let data = data(&page).expect("the data");
    assert_eq!(
        data["charts"]["name"],
        String::from_utf8_lossy(evil).as_ref()
    );
}

#[test]
fn maps_are_to_scale() {
    for name in [
        "6.1-x86_64-file-default",
        "6.1-s390x-pipe-z",
        "7.2-x86_64-file-crashed",
        "7.2-x86_64-file-threads",
    ] {
        let survey = survey(&recordings::fixture(name)).expect("a recording");
        for width in [0, 40, 80, 200] {
            let text = anstream::adapter::strip_str(&map::draw(&survey, width)).to_string();
            let bar = text.lines().nth(3).expect("the bar");
            assert_eq!(bar.chars().count(), width.max(40), "{name}: {bar}");
        }
        let text = anstream::adapter::strip_str(&map::draw(&survey, 80)).to_string();
        snapshot::check(
            &recordings::root().join(format!("tests/snapshots/map/{name}.txt")),
            &text,
        );
    }
}

#[test]
fn colours_and_width_are_those_of_the_terminal() {
    let program = convert::perfconv().get_program().display().to_string();
    let input = recordings::fixture("6.1-x86_64-file-default")
        .path
        .display()
        .to_string();
    let mut plain = convert::perfconv();
    plain.args(["info", "--map", &input]);
    let plain = perf::run(plain).expect("perfconv can be started");
    assert!(
        plain.success() && !plain.stdout.contains('\u{1b}'),
        "{}",
        plain.stdout
    );
    let mut script = Command::new("script");
    let commands = format!("stty rows 24 cols 120; {program} --no-pager info --map {input}");
    script
        .args(["--quiet", "--return", "--command", &commands, "/dev/null"])
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    let Ok(output) = perf::run(script) else {
        skipped::note("script, which makes a terminal");
        return;
    };
    let bar = output.stdout.lines().nth(3).expect("the bar");
    assert!(bar.contains('\u{1b}'), "{bar:?}");
    assert_eq!(
        anstream::adapter::strip_str(bar.trim_end())
            .to_string()
            .chars()
            .count(),
        120
    );
}

/// Displays `page` in a browser, and returns the browser's standard output.
fn browse(folder: &Path, page: &Path, options: &[&str]) -> Option<String> {
    let mut chromium = Command::new("chromium");
    chromium
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
        ])
        .args(["--window-size=1000,1600", "--force-device-scale-factor=1"])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .args(options)
        .arg(format!("file://{}", page.display()));
    match perf::run(chromium) {
        Ok(output) => Some(output.stdout),
        Err(error) => {
            skipped::note(format_args!("chromium ({error})"));
            None
        }
    }
}

/// Counts the pixels of each colour in a screenshot.
fn colors(path: &Path) -> BTreeMap<[u8; 3], usize> {
    let decoder = png::Decoder::new(BufReader::new(File::open(path).expect("a screenshot")));
    let mut reader = decoder.read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a small picture")];
    let frame = reader.next_frame(&mut pixels).expect("a picture");
    let mut colors = BTreeMap::new();
    for pixel in pixels.chunks_exact(frame.color_type.samples()) {
        *colors.entry([pixel[0], pixel[1], pixel[2]]).or_default() += 1;
    }
    colors
}

#[test]
fn a_browser_shows_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let mut command = convert::perfconv();
    let input = recordings::fixture("6.1-s390x-pipe-z").path;
    command.args(["info", "--html"]).arg(&page).arg(input);
    let output = perf::run(command).expect("perfconv can be started");
    assert!(
        output.success() && output.stdout.is_empty() && output.stderr.is_empty(),
        "{}",
        output.stderr
    );

    let Some(drawn) = browse(folder.path(), &page, &["--dump-dom"]) else {
        return;
    };
    let drawn = drawn
        .split_once("<main>")
        .expect("the page")
        .1
        .split_once("</main>")
        .expect("its end")
        .0
        .to_owned();
    for text in [
        "613 samples",
        "big-endian",
        "Samples by CPU",
        "cpu-clock",
        "COMPRESSED",
        "HOSTNAME",
        "recorder",
    ] {
        assert!(drawn.contains(text), "{text} is not shown");
    }

    // Background colour and first chart colour, in light and dark mode.
    let looks = [
        ("1", [0xfc, 0xfc, 0xfa], [0x2a, 0x78, 0xc2]),
        ("0", [0x14, 0x17, 0x1d], [0x5a, 0xa9, 0xf0]),
    ];
    for (scheme, paper, chart) in looks {
        let picture = folder.path().join("page.png");
        let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
        browse(
            folder.path(),
            &page,
            &[&scheme, &format!("--screenshot={}", picture.display())],
        )
        .expect("as before");
        let colors = colors(&picture);
        let count = |color: [u8; 3]| colors.get(&color).copied().unwrap_or(0);
        assert!(
            count(paper) > 500_000,
            "{scheme}: {} pixels of paper",
            count(paper)
        );
        assert!(
            count(chart) > 20_000,
            "{scheme}: {} pixels of charts",
            count(chart)
        );
        fs::remove_file(&picture).expect("the screenshot");
    }
}
