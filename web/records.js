// The view of the records: a list of any length, of which only the visible part exists.

"use strict";

/** Height of a row in pixels. */
const ROW = 22;
/** Height of the list at most: browsers have no larger elements. Beyond it, a pixel is several rows. */
const MOST = 8e6;
/** Records that are read at once. */
const PAGE = 256;

views.records = {
  async show(recording) {
    this.recording = recording;
    Object.assign(this, { pages: new Map(), first: 0, selected: -1, total: 0, types: [] });
    $("type").replaceChildren();
    $("rows").replaceChildren();
    $("detail").textContent = $("place").textContent = "";
    const result = await runner.run(["info", "--json", recording.name], "records");
    showMessages(result);
    if (result.status) return;
    const info = JSON.parse(await result.stdout.text(), exact), counts = new Map();
    for (const { type, count } of [...info.records, ...info.compressed_records]) counts.set(String(type), (counts.get(String(type)) ?? 0) + Number(count));
    this.types = [...counts].sort((a, b) => b[1] - a[1]);
    const all = this.types.reduce((sum, [, count]) => sum + count, 0);
    $("type").append(new Option(`all (${number(all)})`, ""), ...this.types.map(([type, count]) => new Option(`${type} (${number(count)})`, type)));
    this.restart();
  },

  /** Begins with the first record of the selected type. */
  restart() {
    const type = $("type").value;
    this.total = this.types.reduce((sum, [name, count]) => sum + (type === "" || name === type ? count : 0), 0);
    this.pages.clear();
    $("height").style.height = Math.min(this.total * ROW, MOST) + "px";
    this.moveTo(0);
    this.select(0);
  },

  get visible() {
    return Math.max(Math.ceil($("list").clientHeight / ROW), 1);
  },
  get isScaled() {
    return this.total * ROW > MOST;
  },

  /** Puts a row at the top. */
  moveTo(row) {
    const last = Math.max(this.total - this.visible + 1, 0), list = $("list");
    this.first = Math.min(Math.max(row, 0), last);
    const range = list.scrollHeight - list.clientHeight;
    this.ignored = Math.round(this.isScaled ? this.first / Math.max(last, 1) * range : this.first * ROW);
    list.scrollTop = this.ignored;
    this.draw();
  },

  /** Follows the scroll bar. */
  scrolled() {
    const list = $("list");
    if (Math.abs(list.scrollTop - this.ignored) < 1) return;
    this.ignored = -1;
    const last = Math.max(this.total - this.visible + 1, 0);
    this.first = this.isScaled ? list.scrollTop / Math.max(list.scrollHeight - list.clientHeight, 1) * last : list.scrollTop / ROW;
    this.draw();
  },

  /** Returns the record of a row, if it was read. */
  row(index) {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  },

  draw() {
    const first = Math.floor(this.first), rows = [];
    for (let index = first; index < Math.min(first + this.visible + 1, this.total); index++) rows.push(this.line(index));
    $("rows").replaceChildren(...rows);
    $("place").textContent = this.total ? `${number(first + 1)} of ${number(this.total)}` : "no records";
    this.readMissing();
  },

  line(index) {
    const record = this.row(index), line = el("div", { role: "option" });
    line.dataset.row = index;
    line.setAttribute("aria-selected", index === this.selected);
    const offset = record && "0x" + record.offset.toString(16) + (record.inner === undefined ? "" : `+${record.inner}`);
    line.append(...[number(index), offset ?? "", record?.type ?? "…", record ? number(record.size) : "", record ? summaryOf(record) : ""].map(text => el("span", {}, String(text))));
    return line;
  },

  /** The options that select what the list shows. All types are named: so nothing but records is shown. */
  get filter() {
    return ["--type", $("type").value || this.types.map(([type]) => type).join(",")];
  },

  /** Reads the next missing page of the visible part. */
  async readMissing() {
    const pages = [Math.floor(this.first / PAGE), Math.floor(Math.min(this.first + this.visible, this.total - 1) / PAGE)];
    const page = pages.find(page => page >= 0 && !this.pages.has(page));
    if (page === undefined || this.isReading) return;
    const [recording, type] = [this.recording, $("type").value];
    this.isReading = true;
    try {
      const result = await runner.run(["dump", "--json", ...this.filter, "--skip", String(page * PAGE), "--limit", String(PAGE), recording.name], "page");
      if (result.status) showMessages(result);
      if (recording !== this.recording || type !== $("type").value) return;
      const lines = (await result.stdout.text()).split("\n").filter(Boolean);
      // What is kept is bounded.
      if (this.pages.size > 400) this.pages.delete(this.pages.keys().next().value);
      this.pages.set(page, lines.map(line => JSON.parse(line, exact)));
    } catch (error) {
      if (!(error instanceof Cancelled)) throw error;
      return;
    } finally {
      this.isReading = false;
    }
    this.draw();
  },

  /** Selects a row, makes it visible, and shows its fields and bytes. */
  async select(index) {
    if (!this.total) return;
    this.selected = Math.min(Math.max(index, 0), this.total - 1);
    const first = Math.ceil(this.first), last = Math.floor(this.first) + this.visible - 2;
    if (this.selected < first) this.moveTo(this.selected);
    else if (this.selected > last) this.moveTo(this.selected - Math.max(this.visible - 2, 0));
    else this.draw();
    const [recording, row] = [this.recording, this.selected];
    const result = await runner.run(["dump", "--hex", ...this.filter, "--skip", String(row), "--limit", "1", recording.name], "detail").catch(() => null);
    if (!result || recording !== this.recording || row !== this.selected) return;
    showMessages(result);
    $("detail").textContent = await result.stdout.text();
  },
};

/** The fields of a record in one line. */
function summaryOf(record) {
  const parts = [];
  const add = (name, value) => {
    if (parts.length > 12 || value === null || value === undefined) return;
    if (Array.isArray(value)) parts.push(`${name}=[${value.length}]`);
    else if (typeof value === "object") for (const [inner, item] of Object.entries(value)) add(inner, item);
    else parts.push(`${name}=${value}`);
  };
  if (record.event) parts.push(record.event);
  for (const [name, value] of Object.entries(record.fields ?? {})) add(name, value);
  return parts.join(" ").slice(0, 400);
}

$("type").addEventListener("change", () => views.records.restart());
$("goto").addEventListener("change", event => {
  const row = Number.parseInt(event.target.value.replace(/\D/g, ""), 10);
  if (Number.isNaN(row)) return;
  views.records.moveTo(row);
  views.records.select(row);
});
$("list").addEventListener("scroll", () => views.records.scrolled());
$("list").addEventListener("wheel", event => {
  // The scroll bar is too coarse for a turn of the wheel.
  if (!views.records.isScaled) return;
  event.preventDefault();
  views.records.moveTo(views.records.first + event.deltaY / (event.deltaMode ? 0.33 : ROW));
}, { passive: false });
$("list").addEventListener("click", event => {
  const line = event.target.closest("[data-row]");
  if (line) views.records.select(Number(line.dataset.row));
});
$("list").addEventListener("keydown", event => {
  const view = views.records, page = Math.max(view.visible - 2, 1);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -view.total, End: view.total };
  if (!(event.key in steps)) return;
  event.preventDefault();
  view.select(view.selected + steps[event.key]);
});
addEventListener("resize", () => { if (active === "records" && selected()) views.records.draw(); });
