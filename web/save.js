// The views that write: a form for conversions and exports, and the command line itself.

"use strict";

/** The fields of the form: each is an option of the command. */
const FIELDS = [
  ["Write", [
    { id: "what", label: "What", choices: { "": "a recording", flamegraph: "flame graph (page)", svg: "flame graph (picture)", folded: "folded stacks", pprof: "pprof", firefox: "Firefox Profiler", speedscope: "speedscope", "otlp-1.10": "OpenTelemetry", "perf-script": "text of perf script" } },
  ]],
  ["Recording", [
    { label: "Container", choices: { "": "as it is", "--to=file": "file", "--to=pipe": "stream", "--to=dir": "directory" } },
    { label: "Byte order", choices: { "": "as it is", "--endian=little": "little", "--endian=big": "big" } },
    { label: "Compression", choices: { "": "as it is", "--decompress": "none", "--compress": "as perf record -z" } },
    { label: "For perf of version", option: "--compat=", hint: "6.1" },
    { label: "Sort by time", option: "--sort" },
  ]],
  ["Sharing", [
    { label: "Sanitize for", choices: { "": "nobody", "--sanitize": "everybody", "--sanitize=vendor": "who has the programs" } },
  ]],
  ["Samples", [
    { label: "Time", option: "--time=", hint: "10%-20%" },
    { label: "Processes", option: "--pid=", hint: "123,456" },
    { label: "Comms", option: "--comms=", hint: "nginx,redis*" },
    { label: "Events", option: "--event=", hint: "cycles" },
    { label: "CPUs", option: "--cpu=", hint: "0-3" },
    { label: "One of each", option: "--every=", hint: "10" },
  ]],
  ["More", [
    { id: "more", label: "Further options", hint: "--off-cpu" },
    { id: "name", label: "Name", hint: "of the file" },
  ]],
];
/** The endings of the names of exports. */
const ENDINGS = { flamegraph: "flame.html", svg: "flame.svg", folded: "folded", pprof: "pb.gz", firefox: "firefox.json.gz", speedscope: "speedscope.json", "otlp-1.10": "otlp", "perf-script": "script.txt" };

for (const [title, fields] of FIELDS) {
  $("form").append(el("fieldset", { name: title }, el("legend", {}, title), ...fields.map(field => {
    const control = field.choices ? el("select", {}, ...Object.entries(field.choices).map(([value, text]) => new Option(text, value)))
      : field.option && !field.option.endsWith("=") ? el("input", { type: "checkbox" }) : el("input", { placeholder: field.hint, spellcheck: false });
    if (field.id) control.id = field.id;
    field.control = control;
    return el("label", {}, field.label, control);
  })));
}

/** Splits a line into words as a shell does. */
function words(line) {
  const found = [];
  for (const match of line.matchAll(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/gu)) {
    found.push(match[0].replace(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gu, (_, single, double, one) => single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? one));
  }
  return found;
}
const quoted = word => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** The arguments that the form describes. */
function formArguments() {
  const what = $("what").value, { name } = selected(), args = what ? ["export", `--to=${what}`] : ["convert"];
  for (const [title, fields] of FIELDS) {
    if (what && (title === "Recording" || title === "Sharing")) continue;
    for (const { id, choices, option, control } of fields) {
      if (id) continue;
      if (choices) { if (control.value) args.push(control.value); }
      else if (control.type === "checkbox") { if (control.checked) args.push(option); }
      else if (control.value.trim()) args.push(option + control.value.trim());
    }
  }
  const stem = name.split("/").pop().replace(/\.(data|perf|bundle)$/, "");
  $("name").placeholder = `${stem}.${what ? ENDINGS[what] : "out.data"}`;
  return [...args, ...words($("more").value), name, "-o", $("name").value.trim() || $("name").placeholder];
}

views.save = {
  async show() {
    listOutputs($("written"), []);
    this.describe();
  },
  describe() {
    for (const title of ["Recording", "Sharing"]) $("form").querySelector(`[name=${title}]`).disabled = $("what").value !== "";
    $("line").textContent = ["perfconv", ...formArguments().map(quoted)].join(" ");
  },
};
$("form").addEventListener("input", () => views.save.describe());
$("form").addEventListener("submit", event => event.preventDefault());

/** Runs the command for a view that lists what it writes. */
async function perform(args, list) {
  listOutputs(list, []);
  try {
    const result = await runner.run(args);
    showMessages(result);
    listOutputs(list, result.outputs);
    return result;
  } catch (error) {
    if (!(error instanceof Cancelled)) throw error;
    return null;
  }
}
$("write").addEventListener("click", () => perform(formArguments(), $("written")));

/** Characters of an output that are shown. */
const SHOWN = 1 << 20;

views.command = {
  async show({ name }) {
    $("words").value = `info ${quoted(name)}`;
    $("said").textContent = "";
    listOutputs($("made"), []);
  },
};
$("typed").addEventListener("submit", async event => {
  event.preventDefault();
  const result = await perform(words($("words").value.replace(/^\s*perfconv\s/, "")), $("made"));
  if (!result) return;
  const text = await result.stdout.slice(0, SHOWN).text();
  $("said").textContent = text;
  if (result.stdout.size > SHOWN) listOutputs($("made"), [["standard-output.txt", result.stdout], ...result.outputs]);
});

/** For pages that contain this one, and for tests. */
window.perfconv = {
  /** Opens files, as [path, File]. */
  open: add,
  /** Runs the command; returns { status, stdout, messages, outputs }. */
  run: args => runner.run(args),
};

show(null);
