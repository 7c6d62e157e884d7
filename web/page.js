// The page: the given files, the runs of the command, and one view for each tab.

"use strict";

const $ = id => document.getElementById(id);
function el(tag, props = {}, ...children) {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
}
const number = value => value.toLocaleString("en").replaceAll(",", "\u202f");
function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit++; }
  return (unit ? value.toFixed(1) : value) + " " + units[unit];
}
// Numbers that JavaScript would round are kept exact where the browser can.
const exact = (key, value, context) =>
  typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;

// ---- The command, in a worker ------------------------------------------------------------------

/** Runs of the command, one after another. */
class Runner {
  constructor() {
    this.module = this.compile();
    this.given = [];
    this.waiting = [];
    this.current = null;
    this.worker = null;
    this.next = 1;
  }

  /** Unpacks and compiles the command, which this page contains. */
  async compile() {
    const packed = Uint8Array.from(atob($("program").textContent), letter => letter.charCodeAt(0));
    $("program").remove();
    return WebAssembly.compile(fzstd.decompress(packed));
  }

  /** Gives all later runs these files, as [path, Blob, time]. */
  give(given) {
    this.given = given;
    this.restart();
  }

  /** Ends the current run and those that wait. */
  cancel() {
    for (const job of this.waiting.splice(0)) job.reject(new Cancelled());
    if (this.current) this.restart();
    showStatus();
  }

  restart() {
    this.worker?.terminate();
    this.worker = null;
    const job = this.current;
    this.current = null;
    job?.reject(new Cancelled());
    this.startNext();
  }

  /**
   * Runs the command with `args`; returns { status, stdout, messages, outputs }. A run is given up when
   * another one for the same `purpose` comes.
   */
  run(args, purpose = Symbol("no other")) {
    return new Promise((resolve, reject) => {
      const outdated = this.waiting.findIndex(job => job.purpose === purpose);
      if (outdated >= 0) this.waiting.splice(outdated, 1)[0].reject(new Cancelled());
      if (this.current?.purpose === purpose) this.restart();
      this.waiting.push({ id: this.next++, args, purpose, resolve, reject, bytes: 0, started: 0 });
      this.startNext();
    });
  }

  async startNext() {
    if (this.current || !this.waiting.length) return;
    const job = this.current = this.waiting.shift();
    job.started = performance.now();
    showStatus();
    try {
      const module = await this.module;
      if (this.current !== job) return;
      if (!this.worker) this.start(module);
      this.worker.postMessage({ id: job.id, args: job.args });
    } catch (error) {
      this.end(job, () => job.reject(error));
    }
  }

  start(module) {
    const address = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
    this.worker = new Worker(address);
    this.worker.addEventListener("message", ({ data }) => {
      const job = this.current;
      if (job?.id !== data.id) return;
      if (data.status === undefined) {
        job.bytes = data.bytes;
        showStatus();
      } else {
        this.end(job, () => job.resolve({ ...data, seconds: (performance.now() - job.started) / 1000 }));
      }
    });
    this.worker.addEventListener("error", event => {
      this.worker?.terminate();
      this.worker = null;
      const job = this.current;
      if (job) this.end(job, () => job.reject(new Error(event.message)));
    });
    this.worker.postMessage({ module, given: this.given });
  }

  end(job, settle) {
    this.current = null;
    settle();
    showStatus();
    this.startNext();
  }
}
/** A run was given up. */
class Cancelled extends Error {}

const runner = new Runner();

/** Shows what runs, and how much it has read. */
function showStatus() {
  const job = runner.current;
  $("cancel").hidden = $("progress").hidden = !job;
  if (!job) return;
  const size = recordings.filter(({ name }) => job.args.includes(name)).reduce((sum, { size }) => sum + size, 0);
  const pass = size ? Math.floor(job.bytes / size) : 0;
  $("progress").max = Math.max(size, 1);
  if (size) $("progress").value = job.bytes - pass * size;
  else $("progress").removeAttribute("value");
  $("status").textContent = `perfconv ${job.args[0]}: ${bytes(job.bytes)} read${pass ? `, part ${pass + 1}` : ""}`;
}

/** Shows the messages of a run: the first one, and the others on demand. */
function showMessages({ status, messages, seconds }) {
  const [first, ...others] = messages.trimEnd().split("\n").map(line => line.replace(/^perfconv: /, ""));
  // diff and verify also say by their exit status what they have found.
  const isError = status !== 0 && messages !== "";
  $("status").textContent = `${seconds.toFixed(seconds < 10 ? 2 : 0)} s${status ? `, exit status ${status}` : ""}`;
  $("messages").hidden = !first;
  $("messages").open = isError && others.length > 0;
  $("messages").classList.toggle("bad", isError);
  $("messages").querySelector("summary").textContent = others.length ? `${first} (${others.length} more)` : first;
  $("messages").querySelector("pre").textContent = others.join("\n");
}

// ---- The given files ---------------------------------------------------------------------------

/** What can be shown: a file, or a folder that perf wrote: { name, size }. */
const recordings = [];
/** All files, by their paths. */
const files = new Map();
const selected = () => recordings[$("recording").selectedIndex];

/** Returns a name that no file has, and that is no option. */
function freeName(name) {
  const plain = name.replaceAll("/", "_").replace(/^-/, "_-");
  const taken = new Set([...files.keys()].map(path => path.split("/")[0]));
  if (!taken.has(plain)) return plain;
  const [, stem, ending] = /^(.+?)(\.[^.]*)?$/.exec(plain);
  for (let count = 2; ; count++) {
    const next = `${stem}-${count}${ending ?? ""}`;
    if (!taken.has(next)) return next;
  }
}

/** Whether a file begins as a recording or a bundle does. */
async function isRecording(file) {
  const start = new Uint8Array(await file.slice(0, 8).arrayBuffer());
  return /^(PERFILE2|2ELIFREP|PERFFILE|ELIFFREP)/.test(String.fromCharCode(...start)) || /\.bundle$/.test(file.name);
}

/** Adds files, as [path, File], and shows the first recording among them. */
async function add(list) {
  const before = recordings.length, folders = new Map();
  for (const [path, file] of list) {
    const [first, ...rest] = path.split("/").filter(Boolean);
    if (!rest.length) {
      const name = freeName(first);
      files.set(name, file);
      recordings.push({ name, size: file.size });
      continue;
    }
    if (!folders.has(first)) folders.set(first, { name: freeName(first), files: [] });
    folders.get(first).files.push([rest.join("/"), file]);
  }
  for (const { name, files: inside } of folders.values()) {
    for (const [path, file] of inside) files.set(`${name}/${path}`, file);
    // perf record --threads and --kcore write a folder with this file.
    if (inside.some(([path]) => path === "data")) {
      recordings.push({ name, size: inside.reduce((sum, [, file]) => sum + file.size, 0) });
      continue;
    }
    for (const [path, file] of inside) if (await isRecording(file)) recordings.push({ name: `${name}/${path}`, size: file.size });
  }
  runner.give([...files].map(([path, file]) => [path, file, file.lastModified]));
  listRecordings(recordings.length > before ? before : $("recording").selectedIndex);
}

function listRecordings(index) {
  $("recording").replaceChildren(...recordings.map(({ name, size }) => new Option(`${name} (${bytes(size)})`, name)));
  $("recording").selectedIndex = Math.min(index, recordings.length - 1);
  $("recordingLabel").hidden = $("close").hidden = $("tabs").hidden = !recordings.length;
  $("start").hidden = recordings.length > 0;
  show(recordings.length ? active : null);
}

$("close").addEventListener("click", () => {
  const [{ name }] = recordings.splice($("recording").selectedIndex, 1);
  for (const path of [...files.keys()]) if (path === name || path.startsWith(name + "/")) files.delete(path);
  runner.give([...files].map(([path, file]) => [path, file, file.lastModified]));
  listRecordings(0);
});
$("recording").addEventListener("change", () => show(active));
$("openFiles").addEventListener("click", () => $("files").click());
$("openFolder").addEventListener("click", () => $("folder").click());
for (const id of ["files", "folder"]) {
  $(id).addEventListener("change", async event => {
    await add([...event.target.files].map(file => [file.webkitRelativePath || file.name, file]));
    event.target.value = "";
  });
}

/** Lists the files of something that was dropped. */
async function* dropped(entry, before = "") {
  const path = before + entry.name;
  if (entry.isFile) {
    yield [path, await new Promise((resolve, reject) => entry.file(resolve, reject))];
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const next of some) yield* dropped(next, path + "/");
  }
}
addEventListener("dragover", event => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", event => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
addEventListener("drop", async event => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  // The list is empty as soon as the event is over.
  const items = [...event.dataTransfer.items].filter(item => item.kind === "file");
  const entries = items.map(item => item.webkitGetAsEntry?.() ?? item.getAsFile()).filter(Boolean);
  const list = [];
  for (const entry of entries) {
    if (entry instanceof File) list.push([entry.name, entry]);
    else for await (const item of dropped(entry)) list.push(item);
  }
  await add(list);
});
$("cancel").addEventListener("click", () => {
  runner.cancel();
  $("status").textContent = "cancelled";
});

const dark = matchMedia("(prefers-color-scheme: dark)");
const followColours = () => document.documentElement.classList.toggle("dark", dark.matches);
dark.addEventListener("change", followColours);
followColours();

// ---- The views ---------------------------------------------------------------------------------

/** The views: each shows a recording, and is shown again for another one. */
const views = {};
let active = "overview";

const tabOf = id => document.querySelector(`[aria-controls=${id}]`);

/** Shows the view of a tab for the selected recording, or none. */
async function show(id) {
  if (id) active = id;
  for (const name of Object.keys(views)) {
    $(name).hidden = name !== id;
    tabOf(name).setAttribute("aria-selected", name === id);
    tabOf(name).tabIndex = name === active ? 0 : -1;
  }
  const recording = id && selected(), view = views[id];
  if (!recording || view.shown === recording) return;
  view.shown = recording;
  try {
    await view.show(recording);
  } catch (error) {
    // It is shown when it is asked for again.
    if (view.shown === recording) view.shown = null;
    if (!(error instanceof Cancelled)) showMessages({ status: 1, messages: String(error.message ?? error), seconds: 0 });
  }
}

for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => show(tab.getAttribute("aria-controls")));
$("tabs").addEventListener("keydown", event => {
  const tabs = [...document.querySelectorAll("[role=tab]")], at = tabs.indexOf(document.activeElement);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  const tab = tabs[(next + tabs.length) % tabs.length];
  tab.focus();
  tab.click();
});

/** Puts the page that the command writes into the frame of a view. */
async function showPage(id, args) {
  const frame = $(id).querySelector("iframe");
  frame.srcdoc = "";
  const result = await runner.run(args, id);
  showMessages(result);
  if (result.status === 0) frame.srcdoc = await result.stdout.text();
  return result;
}

views.overview = {
  async show({ name }) {
    $("summary").open = false;
    $("summary").querySelector("pre").textContent = "";
    await showPage("overview", ["info", "--html", "-", name]);
  },
};
$("summary").addEventListener("toggle", async () => {
  const text = $("summary").querySelector("pre"), recording = selected();
  if (!$("summary").open || text.textContent || !recording) return;
  const { stdout } = await runner.run([recording.name], "summary");
  if (selected() === recording) text.textContent = await stdout.text();
});

views.flames = {
  async show(recording) {
    const others = recordings.filter(other => other !== recording);
    const before = $("other").value;
    $("other").replaceChildren(new Option("nothing", ""), ...others.map(({ name }) => new Option(name, name)));
    $("other").value = others.some(({ name }) => name === before) ? before : "";
    await this.draw(recording);
  },
  async draw({ name }) {
    const args = ["export", "--to", "flamegraph", "-o", "-", name];
    if ($("offCpu").checked) args.push("--off-cpu");
    if ($("other").value) args.push("--diff", $("other").value);
    $("ask").hidden = true;
    const { messages } = await showPage("flames", args);
    const file = name.split("/").pop();
    $("ask").hidden = !/a bundle made on the recorded machine/.test(messages);
    $("ask").querySelector("code").textContent = `perfconv bundle ${quoted(file)} -o ${quoted(file.replace(/\.data$/, "") + ".bundle")}`;
  },
};
for (const id of ["offCpu", "other"]) {
  $(id).addEventListener("change", () => {
    views.flames.shown = null;
    show("flames");
  });
}

views.findings = {
  async show({ name }) {
    const body = $("findings").querySelector("tbody");
    body.replaceChildren();
    $("verdict").textContent = "";
    const result = await runner.run(["verify", "--json", name], "findings");
    const text = await result.stdout.text();
    showMessages(result);
    if (!text) return;
    const report = JSON.parse(text, exact);
    $("verdict").textContent = `${number(report.records)} records: ${number(report.errors)} errors, ${number(report.warnings)} warnings, ${number(report.notes)} notes`;
    body.append(...report.findings.map(finding => el("tr", { className: finding.severity },
      el("td", {}, finding.severity), el("td", { className: "n" }, finding.offset === undefined ? "" : "0x" + finding.offset.toString(16)),
      el("td", { className: "n" }, number(finding.count ?? 1)), el("td", {}, finding.meaning))));
    if (report.left_out) body.append(el("tr", {}, el("td", {}), el("td", {}), el("td", {}), el("td", {}, `${number(report.left_out)} further findings`)));
  },
};

/** Lists files that a run wrote, to be downloaded. */
function listOutputs(list, outputs) {
  for (const link of list.querySelectorAll("a")) URL.revokeObjectURL(link.href);
  list.replaceChildren(...outputs.map(([path, blob]) =>
    el("li", {}, el("a", { href: URL.createObjectURL(blob), download: path.split("/").pop() }, path), ` ${bytes(blob.size)}`)));
}
