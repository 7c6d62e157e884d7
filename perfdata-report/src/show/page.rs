//! A report as a web page, as written by `perfconv info --html`.
//!
//! The page is one file that loads nothing. It contains its data as JSON: everything that
//! `perfconv info --json` shows, and the numbers of the charts. Its script writes only text, never
//! markup.

use super::bins::Bins;
use super::survey::ChartData;
use perfdata_convert::json::Json;

/// The page without the data.
const TEMPLATE: &str = include_str!("page.html");
/// The style sheet of all pages.
const LOOK: &str = include_str!("look.css");
/// The placeholders for the style sheet and the data.
const PLACES: [&str; 2] = ["{{look}}", "{{data}}"];
/// Maximum number of mapped objects shown.
const MAPPINGS: usize = 100;

/// Returns the page about the recording called `name`.
pub fn html(survey: &ChartData, name: &[u8]) -> String {
    let mut json = Json::compact();
    json.object("");
    json.text("name", name);
    json.number("size", survey.size());
    json.boolean("split", survey.overview.is_split());
    json.list("rooms");
    for room in survey.rooms() {
        json.object("");
        json.text("name", room.name.as_bytes());
        json.boolean("records", room.is_records);
        json.number("offset", room.offset);
        json.number("size", room.size);
        json.close();
    }
    json.close();
    push_bins(&mut json, "space", &survey.space, |kind| {
        kind.to_string().into_bytes()
    });
    let names: Vec<_> = survey.overview.event_names().collect();
    push_bins(&mut json, "events", &survey.events, |event| {
        event
            .and_then(|at| names.get(at))
            .map_or(b"?".to_vec(), |name| name.to_vec())
    });
    push_bins(&mut json, "cpus", &survey.cpus, |cpu| {
        cpu.map_or("?".into(), |cpu| cpu.to_string()).into_bytes()
    });
    json.number("timeless", survey.timeless);
    json.list("mappings");
    for (name, mapping) in survey.mappings().into_iter().take(MAPPINGS) {
        json.object("");
        json.text("name", name);
        json.number("bytes", mapping.bytes);
        json.number("count", mapping.count);
        json.close();
    }
    json.close();
    json.close();
    // JSON contains `<` only in strings, where an escape may represent it. So no tag can end the
    // data.
    let data = format!(
        "{{\"info\":{},\"charts\":{}}}",
        survey.overview.json().trim_end(),
        json.into_text()
    );
    let data = data.replace('<', "\\u003c");
    // The data may contain anything, and go in last.
    let [look_place, data_place] = PLACES;
    let page = TEMPLATE.replacen(look_place, LOOK, 1);
    page.replacen(data_place, &data, 1)
}

fn push_bins<K: Ord>(
    json: &mut Json,
    name: &'static str,
    bins: &Bins<K>,
    key: impl Fn(&K) -> Vec<u8>,
) {
    json.object(name);
    json.number("start", bins.start());
    json.number("width", bins.width());
    json.number("left_out", bins.left_out());
    json.list("rows");
    for (row, numbers) in bins.rows() {
        json.object("");
        json.text("name", &key(row));
        json.list("bins");
        numbers.for_each(|number| json.number("", number));
        json.close();
        json.close();
    }
    json.close();
    json.close();
}
