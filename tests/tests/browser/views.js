// Uses the page as its user does, and reports what each view shows.

"use strict";

const checks = [];
const check = (name, ok, detail = "") => checks.push({ name, ok: Boolean(ok), detail: String(detail) });
const pause = time => new Promise(resolve => setTimeout(resolve, time));
/** Waits until something holds, for half a minute at most. */
async function until(name, test) {
  for (let turn = 0; turn < 600; turn++) {
    if (await test()) break;
    await pause(50);
  }
  check(name, await test(), $("messages").textContent + " | " + $("status").textContent);
}
const framed = id => $(id).querySelector("iframe").srcdoc;
const click = id => document.querySelector(`[aria-controls=${id}]`).click();
const lines = () => [...document.querySelectorAll("#rows [data-row]")];
const press = (id, key) => $(id).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const change = (id, value, event = "change") => {
  $(id).value = value;
  $(id).dispatchEvent(new Event(event, { bubbles: true }));
};

async function use() {
  check("the page asks for a file", !$("start").hidden && $("tabs").hidden);
  const given = FILES.map(([name, bytes]) => new File([Uint8Array.from(bytes)], name, { lastModified: 1700000000000 }));

  // A drop, as the browser delivers it.
  const transfer = new DataTransfer();
  for (const file of given) transfer.items.add(file);
  dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  await until("both files are listed", () => $("recording").options.length === 2);
  $("recording").selectedIndex = 0;
  $("recording").dispatchEvent(new Event("change"));
  await until("the overview is a page", () => framed("overview").includes("perfconv info"));
  check("of the first file", framed("overview").includes(FILES[0][0]));
  // The script of the page inside runs, which has a policy and an origin of its own.
  const said = new Promise(resolve => addEventListener("message", event => resolve(event.data), { once: true }));
  $("overview").querySelector("iframe").srcdoc +=
    "<script>parent.postMessage(document.querySelector('main').textContent.length + ' ' + origin, '*')<\/script>";
  const answer = await Promise.race([said, pause(20000).then(() => "nothing")]);
  check("which draws itself", /^\d{4,} null$/.test(answer), answer);
  $("summary").open = true;
  await until("the text says what to do next", () => $("summary").textContent.includes("perfconv bundle"));

  // Tabs by keyboard.
  $("tabOverview").focus();
  press("tabOverview", "ArrowRight");
  check("the next tab has the focus", document.activeElement === $("tabFlames"));
  await until("the flame graph is a page", () => framed("flames").includes("Flame graph"));
  await until("its names are missing, and the page says what to ask for", () => !$("ask").hidden && $("ask").textContent.includes("perfconv bundle 6.1-x86_64-file-g.data -o 6.1-x86_64-file-g.bundle"));
  change("other", FILES[1][0]);
  await until("two recordings are compared", () => framed("flames").includes(FILES[1][0]));

  click("functions");
  const rows = () => [...$("functions").querySelectorAll("tbody tr")].map(row => [...row.cells].map(cell => cell.textContent));
  const sum = (at, list) => list.reduce((all, row) => all + Number(row[at].replace(/\D/g, "")), 0);
  await until("functions are listed", () => rows().length > 3);
  $("valueType").selectedIndex = 0;
  $("valueType").dispatchEvent(new Event("change"));
  check("all samples are in one of them", sum(0, rows()) === 100 && $("functionCount").textContent.endsWith("100 in all"), $("functionCount").textContent);
  check("in the order of what they need themselves", rows().every((row, at, all) => !at || sum(0, [all[at - 1]]) >= sum(0, [row])));
  $("functions").querySelector("[data-by=total] button").click();
  check("or with callees", rows().every((row, at, all) => !at || sum(2, [all[at - 1]]) >= sum(2, [row])));
  change("named", "libc", "input");
  check("those of one object", rows().length > 0 && rows().every(row => row.join(" ").includes("libc")), rows().length);
  change("named", "", "input");

  click("records");
  await until("records are listed", () => lines().length > 5 && lines()[0].textContent.includes("0x"));
  const info = JSON.parse(await (await perfconv.run(["info", "--json", FILES[0][0]])).stdout.text());
  const total = info.records.reduce((sum, { count }) => sum + count, 0);
  check("all of them", $("place").textContent.endsWith(` of ${total}`), $("place").textContent);
  await until("the first one in detail", () => $("detail").textContent.includes("header.type"));
  press("list", "End");
  await until("End shows the last one", () => lines().some(line => line.dataset.row === String(total - 1) && line.getAttribute("aria-selected") === "true"));
  change("type", "COMM");
  await until("one type only", () => lines().length > 0 && lines().every(line => line.textContent.includes("COMM")));
  await until("its detail", () => $("detail").textContent.includes("comm = "));

  // A long list: its scroll bar is a scale.
  const view = views.records, before = view.total;
  view.total = 10_000_000;
  $("height").style.height = MOST + "px";
  view.moveTo(9_999_999);
  check("the end of ten million records", lines().at(-1)?.dataset.row === "9999999", lines().at(-1)?.dataset.row);
  $("list").scrollTop = 0;
  await until("and their start", () => lines()[0].dataset.row === "0");
  runner.cancel();
  view.total = before;
  view.restart();

  click("findings");
  await until("no findings", () => $("verdict").textContent.includes("0 errors"));
  $("recording").selectedIndex = 1;
  $("recording").dispatchEvent(new Event("change"));
  await until("the findings of the other file", () => $("verdict").textContent.includes("2 errors"));
  check("each of them", $("findings").querySelectorAll("tbody tr").length === 4, $("findings").textContent);

  $("recording").selectedIndex = 0;
  $("recording").dispatchEvent(new Event("change"));
  click("save");
  await until("the form describes a command", () => $("line").textContent.startsWith("perfconv convert "));
  for (const value of Object.keys(FIELDS[0][1][0].choices)) {
    change("what", value, "input");
    $("write").click();
    await until(`the form writes ${value || "a recording"}`, () => $("written").querySelectorAll("a[download]").length === 1);
    runner.cancel();
    listOutputs($("written"), []);
  }
  change("what", "", "input");
  for (const [, fields] of FIELDS) {
    for (const { choices, option, control, hint } of fields) {
      for (const value of choices && control.id !== "what" ? Object.keys(choices) : [hint]) {
        if (!option && !choices) continue;
        if (control.type === "checkbox") control.checked = true;
        else control.value = choices ? value : "";
        control.dispatchEvent(new Event("input", { bubbles: true }));
        const { status, messages } = await perfconv.run(formArguments());
        check($("line").textContent, status === 0, messages);
      }
      if (choices) control.value = "";
      control.checked = false;
    }
  }

  click("command");
  $("words").value = `perfconv dump --limit 1 '${FILES[0][0]}'`;
  $("typed").requestSubmit();
  await until("a command line", () => $("said").textContent.includes("ID_INDEX") || $("said").textContent.includes("size="));
  $("words").value = "info nothing.data";
  $("typed").requestSubmit();
  await until("an error", () => $("messages").classList.contains("bad") && $("messages").textContent.includes("nothing.data"));
  $("words").value = `diff ${FILES[0][0]} ${FILES[1][0]}`;
  $("typed").requestSubmit();
  await until("no error, but an exit status", () => !$("messages").classList.contains("bad") && $("status").textContent.includes("exit status 1"));

  // Only what is selected last is shown, however fast.
  click("functions");
  for (const index of [1, 0, 1, 0, 1]) {
    $("recording").selectedIndex = index;
    $("recording").dispatchEvent(new Event("change"));
  }
  const first = $("functionCount").textContent;
  await until("the functions of another file", () => rows().length > 0 && $("functionCount").textContent !== first);
  check("and only its values", $("valueType").options.length === new Set([...$("valueType").options].map(({ text }) => text)).size);
  click("findings");
  for (const index of [0, 1, 0, 1]) {
    $("recording").selectedIndex = index;
    $("recording").dispatchEvent(new Event("change"));
  }
  await until("and its findings", () => $("verdict").textContent.includes("2 errors"));
  check("once", $("findings").querySelectorAll("tbody tr").length === 4);
  $("recording").selectedIndex = 0;
  $("recording").dispatchEvent(new Event("change"));

  // The first block is not read yet.
  const given_up = perfconv.run(["verify", FILES[0][0]]).catch(error => error);
  check("a run can be cancelled", !$("cancel").hidden);
  $("cancel").click();
  check("and ends", await given_up instanceof Cancelled && $("status").textContent === "cancelled");
  check("the next one works", (await perfconv.run(["verify", FILES[0][0]])).status === 0);

  $("close").click();
  $("close").click();
  await until("closed files are forgotten", () => !$("start").hidden && files.size === 0);
}

use().catch(error => check("the script", false, error?.stack ?? error))
  .then(() => fetch(ADDRESS + "/report", { method: "POST", mode: "no-cors", body: JSON.stringify({ checks }) }));
