// Runs the command, one run at a time: files.js and wasi.js come before this text.
//
// A message { module, given } brings the compiled command and the given files as [path, Blob, time],
// a message { id, args } starts a run. Answers: { id, bytes } while it reads, and at the end
// { id, status, stdout, messages, outputs } with [path, Blob] for each written file.

"use strict";

/** Milliseconds between two answers about progress. */
const STEP = 100;

let module, given;

addEventListener("message", ({ data }) => {
  if (data.module) {
    ({ module, given } = data);
    return;
  }
  const root = new Folder();
  root.entries.set("tmp", new Folder());
  for (const [path, blob, time] of given) root.add(path, new GivenFile(blob, time));
  let bytes = 0, last = performance.now();
  const run = new Run(data.args, root, count => {
    bytes += count;
    const now = performance.now();
    if (now - last < STEP) return;
    last = now;
    postMessage({ id: data.id, bytes });
  });
  let status, trap = "";
  try {
    status = run.start(module);
  } catch (error) {
    // The command stops like this if it runs out of memory: 4 GiB, or what the browser gives.
    status = 134;
    trap = `perfconv: error: the program stopped: ${error.message}\n`;
  }
  for (const name of ["tmp", "dev"]) root.entries.delete(name);
  const outputs = [...root.files()].filter(([, file]) => file.isWritable).map(([path, file]) => [path, file.toBlob()]);
  run.stderr.toBlob().text().then(messages =>
    postMessage({ id: data.id, status, stdout: run.stdout.toBlob(), messages: messages + trap, outputs }));
});
