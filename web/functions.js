// The view of the functions: the sums of a pprof profile, with the source line of each function.
// https://github.com/google/pprof/blob/main/proto/profile.proto

"use strict";

/** Rows of the table at most. */
const FUNCTIONS = 1000;

/** Reads the fields of a message of Protocol Buffers: [number, value], where a value is a number or bytes. */
function* fieldsOf(bytes) {
  let at = 0;
  const integer = () => {
    let value = 0, scale = 1;
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 0x7f) * scale;
      if (!(byte & 0x80)) return value;
      scale *= 128;
    }
  };
  while (at < bytes.length) {
    const key = integer();
    if ((key & 7) === 0) yield [key >>> 3, integer()];
    else if ((key & 7) === 2) {
      const size = integer();
      yield [key >>> 3, bytes.subarray(at, at + size)];
      at += size;
    } else throw new Error(`a field of type ${key & 7} in a profile`);
  }
}

/** Reads numbers that are packed into bytes, or that are one value each. */
function numbers(value) {
  if (typeof value === "number") return [value];
  const all = [];
  for (let at = 0, number = 0, scale = 1; at < value.length; at++) {
    number += (value[at] & 0x7f) * scale;
    scale *= 128;
    if (!(value[at] & 0x80)) { all.push(number); number = 0; scale = 1; }
  }
  return all;
}

/** Reads a profile: its types of values, and for each sample its frames and values. */
function profileOf(bytes) {
  const texts = [], functions = new Map(), locations = new Map(), objects = new Map(), types = [], samples = [];
  const numbered = (message, names) => {
    const made = { lines: [] };
    for (const [field, value] of fieldsOf(message)) {
      if (names[field] === "lines") made.lines.push(numbered(value, { 1: "function", 2: "line" }));
      else if (names[field]) made[names[field]] = value;
    }
    return made;
  };
  for (const [field, value] of fieldsOf(bytes)) {
    if (field === 1) types.push(numbered(value, { 1: "type", 2: "unit" }));
    else if (field === 2) {
      const sample = { locations: [], values: [] };
      for (const [inner, list] of fieldsOf(value)) {
        if (inner === 1) sample.locations.push(...numbers(list));
        else if (inner === 2) sample.values.push(...numbers(list));
      }
      samples.push(sample);
    } else if (field === 3) { const made = numbered(value, { 1: "id", 5: "file" }); objects.set(made.id, made); }
    else if (field === 4) { const made = numbered(value, { 1: "id", 2: "object", 4: "lines" }); locations.set(made.id, made); }
    else if (field === 5) { const made = numbered(value, { 1: "id", 2: "name", 4: "file", 5: "start" }); functions.set(made.id, made); }
    else if (field === 6) texts.push(new TextDecoder().decode(value));
  }
  return { texts, functions, locations, objects, types, samples };
}

/** Sums a value by function. A recursive function counts once for each sample. */
function sumsOf({ texts, functions, locations, objects, samples }, type) {
  const rows = new Map();
  let all = 0;
  for (const { locations: stack, values } of samples) {
    const value = values[type] ?? 0, seen = new Set();
    all += value;
    let isFirst = true;
    for (const id of stack) {
      const location = locations.get(id);
      const object = texts[objects.get(location?.object)?.file ?? 0] ?? "";
      // What has no name is one row for each object.
      for (const { function: number } of location?.lines.length ? location.lines : [{}]) {
        const made = functions.get(number);
        const name = made ? texts[made.name ?? 0] : `[${object.split("/").pop().replace(/^\[|\]$/g, "") || "unknown"}]`;
        const key = `${name}\0${object}`;
        let row = rows.get(key);
        if (!row) {
          const file = texts[made?.file ?? 0] ?? "";
          // Without source lines, the file is that of the object.
          rows.set(key, row = { name, object, line: made?.start ? `${file}:${made.start}` : "", self: 0, total: 0 });
        }
        if (isFirst) row.self += value;
        isFirst = false;
        if (!seen.has(key)) row.total += value;
        seen.add(key);
      }
    }
  }
  return { all, rows: [...rows.values()] };
}

views.functions = {
  async show({ name }) {
    const body = $("functions").querySelector("tbody");
    body.replaceChildren();
    $("valueType").replaceChildren();
    this.profile = null;
    const result = await runner.run(["export", "--to", "pprof", "--lines", "--inlines", "-o", "-", name], "functions");
    showMessages(result);
    if (result.status) return;
    const plain = result.stdout.stream().pipeThrough(new DecompressionStream("gzip"));
    this.profile = profileOf(new Uint8Array(await new Response(plain).arrayBuffer()));
    const { texts, types } = this.profile;
    $("valueType").append(...types.map(({ type, unit }, at) => new Option(`${texts[type]} (${texts[unit]})`, at)));
    // The events follow the number of samples.
    $("valueType").selectedIndex = Math.min(1, types.length - 1);
    this.draw();
  },
  draw() {
    if (!this.profile) return;
    const order = $("functions").querySelector("[aria-sort]").dataset.by, words = $("named").value.toLowerCase();
    const { all, rows } = sumsOf(this.profile, Number($("valueType").value));
    const found = rows.filter(({ name, object, line }) => `${name} ${object} ${line}`.toLowerCase().includes(words));
    found.sort((a, b) => b[order] - a[order] || b.total - a.total);
    const share = value => `${(100 * value / Math.max(all, 1)).toFixed(2)} %`;
    const cells = row => [number(row.self), share(row.self), number(row.total), share(row.total)].map(text => el("td", { className: "n" }, text));
    const lines = found.slice(0, FUNCTIONS).map(row => el("tr", {}, ...cells(row), el("td", {}, row.name), el("td", {}, row.object), el("td", {}, row.line)));
    $("functions").querySelector("tbody").replaceChildren(...lines);
    $("functionCount").textContent = `${number(found.length)} functions${found.length > FUNCTIONS ? `, the first ${number(FUNCTIONS)}` : ""}; ${number(all)} in all`;
  },
};
for (const [id, event] of [["valueType", "change"], ["named", "input"]]) $(id).addEventListener(event, () => views.functions.draw());
for (const head of $("functions").querySelectorAll("[data-by]")) {
  head.querySelector("button").addEventListener("click", () => {
    $("functions").querySelector("[aria-sort]").removeAttribute("aria-sort");
    head.setAttribute("aria-sort", "descending");
    views.functions.draw();
  });
}
