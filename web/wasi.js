// The system calls that the command makes: wasi_snapshot_preview1, as far as it uses them.
// https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md

"use strict";

const ERRNO = { SUCCESS: 0, BADF: 8, EXIST: 20, INVAL: 28, IO: 29, ISDIR: 31, NOENT: 44, NOTDIR: 54, NOTEMPTY: 55, NOTSUP: 58, ROFS: 69 };
const FILE_TYPE = { UNKNOWN: 0, DIRECTORY: 3, REGULAR: 4 };
const OPEN = { CREATE: 1, DIRECTORY: 2, EXCLUSIVE: 4, TRUNCATE: 8 };
const APPEND = 1;
/** The descriptor of the root folder, which is the working directory as well. */
const ROOT = 3;

/** Ends a run with an exit status. */
class Exit extends Error {
  constructor(status) {
    super(`exit status ${status}`);
    this.status = status;
  }
}

/** A system call fails. */
class Failure extends Error {
  constructor(errno) {
    super(`errno ${errno}`);
    this.errno = errno;
  }
}
const fail = errno => { throw new Failure(errno); };

/** An open file by its descriptor: opening it gives the same one again, with its position. */
class OpenFile {
  constructor(number) {
    Object.assign(this, { number, size: 0, time: 0, isWritable: false });
  }
}

/** The folder /dev/fd: the descriptors of a run. */
class OpenFiles extends Folder {
  constructor(run) {
    super();
    this.entries.get = name => run.descriptors[name] && new OpenFile(Number(name));
  }
}

/** One run of the command: its arguments, its files and its descriptors. */
class Run {
  /**
   * @param args the arguments after the name of the program
   * @param root the Folder with all files
   * @param onRead is called with the number of bytes that were read from a given file
   */
  constructor(args, root, onRead = () => {}) {
    this.args = ["perfconv", ...args].map(text => new TextEncoder().encode(text + "\0"));
    this.environment = [];
    this.root = root;
    this.onRead = onRead;
    this.stdout = new WrittenFile();
    this.stderr = new WrittenFile();
    const open = (node, isAppend = false) => ({ node, position: 0, isAppend });
    this.descriptors = [open(new WrittenFile()), open(this.stdout), open(this.stderr), open(root)];
    root.add("dev/stdout", new OpenFile(1));
    root.add("dev/fd", new OpenFiles(this));
  }

  /** Runs the module; returns its exit status. */
  start(module) {
    const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: this.calls() });
    this.memory = instance.exports.memory;
    try {
      instance.exports._start();
      return 0;
    } catch (error) {
      if (error instanceof Exit) return error.status;
      throw error;
    }
  }

  /** The functions that the module imports: each returns an errno. Addresses above 2 GiB arrive as negative numbers. */
  calls() {
    const names = Object.getOwnPropertyNames(Calls.prototype).filter(name => name !== "constructor");
    const calls = new Calls(this);
    return Object.fromEntries(names.map(name => [name, (...args) => {
      try {
        return calls[name](...args.map(value => typeof value === "number" ? value >>> 0 : value)) ?? ERRNO.SUCCESS;
      } catch (error) {
        if (error instanceof Failure) return error.errno;
        // A given file that cannot be read any more: it was changed or removed.
        if (error instanceof DOMException) return ERRNO.IO;
        throw error;
      }
    }]));
  }

  get view() {
    return new DataView(this.memory.buffer);
  }

  bytes(at, size) {
    return new Uint8Array(this.memory.buffer, at >>> 0, size >>> 0);
  }

  descriptor(number) {
    return this.descriptors[number] ?? fail(ERRNO.BADF);
  }

  file(number) {
    const open = this.descriptor(number);
    return open.node instanceof Folder ? fail(ERRNO.ISDIR) : open;
  }

  /** Returns the memory that a vector of buffers describes. */
  buffers(at, count) {
    const view = this.view;
    return Array.from({ length: count }, (_, number) => {
      const entry = (at >>> 0) + 8 * number;
      return this.bytes(view.getUint32(entry, true), view.getUint32(entry + 4, true));
    });
  }

  /** Finds a path: the folder that contains it, its last name, and what is there, if anything. */
  find(number, at, size) {
    let folder = this.descriptor(number).node;
    if (!(folder instanceof Folder)) fail(ERRNO.NOTDIR);
    const path = new TextDecoder().decode(this.bytes(at, size).slice());
    const above = [];
    let name = "", node = folder;
    for (const part of path.split("/")) {
      if (part === "" || part === ".") continue;
      if (node === undefined) fail(ERRNO.NOENT);
      if (!(node instanceof Folder)) fail(ERRNO.NOTDIR);
      if (part === "..") {
        node = above.pop() ?? fail(ERRNO.NOENT);
        [folder, name] = [node, ""];
        continue;
      }
      above.push(node);
      [folder, name, node] = [node, part, node.entries.get(part)];
    }
    return { folder, name, node };
  }

  existing(number, at, size) {
    const found = this.find(number, at, size);
    return found.node === undefined ? fail(ERRNO.NOENT) : found;
  }

  /** Writes a list of strings as arguments and environment are passed. */
  strings(list, pointers, at) {
    for (const [number, text] of list.entries()) {
      this.view.setUint32(pointers + 4 * number, at, true);
      this.bytes(at, text.length).set(text);
      at += text.length;
    }
  }

  sizes(list, count, size) {
    this.view.setUint32(count, list.length, true);
    this.view.setUint32(size, list.reduce((sum, text) => sum + text.length, 0), true);
  }

  /** Writes a `filestat`. */
  stat(node, at) {
    this.numbers ??= new Map();
    if (!this.numbers.has(node)) this.numbers.set(node, BigInt(this.numbers.size + 1));
    this.bytes(at, 64).fill(0);
    const view = this.view, time = BigInt(Math.round(node.time)) * 1000000n;
    view.setBigUint64(at + 8, this.numbers.get(node), true);
    view.setUint8(at + 16, typeOf(node));
    view.setBigUint64(at + 24, 1n, true);
    view.setBigUint64(at + 32, BigInt(node.size), true);
    for (const field of [40, 48, 56]) view.setBigUint64(at + field, time, true);
  }
}

const typeOf = node => node instanceof Folder ? FILE_TYPE.DIRECTORY : FILE_TYPE.REGULAR;

/** The system calls, by their names. What is not here, the command does not import. */
class Calls {
  constructor(run) {
    this.run = run;
  }

  args_get(pointers, at) { this.run.strings(this.run.args, pointers, at); }
  args_sizes_get(count, size) { this.run.sizes(this.run.args, count, size); }
  environ_get(pointers, at) { this.run.strings(this.run.environment, pointers, at); }
  environ_sizes_get(count, size) { this.run.sizes(this.run.environment, count, size); }

  clock_time_get(clock, _precision, at) {
    const now = clock === 0 ? BigInt(Date.now()) * 1000000n : BigInt(Math.round(performance.now() * 1000)) * 1000n;
    this.run.view.setBigUint64(at, now, true);
  }

  clock_res_get(_clock, at) { this.run.view.setBigUint64(at, 1000n, true); }

  random_get(at, size) {
    // The browser gives at most this much at once.
    for (let done = 0; done < size; done += 65536) crypto.getRandomValues(this.run.bytes(at + done, Math.min(65536, size - done)));
  }

  proc_exit(status) { throw new Exit(status); }
  sched_yield() {}

  /** Waiting: there is one thread, and nothing that it could wait for. The first event has come. */
  poll_oneoff(subscriptions, events, count, number) {
    if (!count) fail(ERRNO.INVAL);
    this.run.bytes(events, 32).fill(0);
    this.run.bytes(events, 8).set(this.run.bytes(subscriptions, 8));
    this.run.view.setUint8(events + 10, this.run.view.getUint8(subscriptions + 8));
    this.run.view.setUint32(number, 1, true);
  }

  fd_prestat_get(number, at) {
    if (number !== ROOT) fail(ERRNO.BADF);
    this.run.view.setUint32(at, 0, true);
    this.run.view.setUint32(at + 4, 1, true);
  }

  fd_prestat_dir_name(number, at) {
    if (number !== ROOT) fail(ERRNO.BADF);
    this.run.bytes(at, 1)[0] = "/".charCodeAt(0);
  }

  fd_close(number) {
    this.run.descriptor(number);
    this.run.descriptors[number] = undefined;
  }

  fd_renumber(from, to) {
    this.run.descriptors[to] = this.run.descriptor(from);
    this.run.descriptors[from] = undefined;
  }

  fd_fdstat_get(number, at) {
    const open = this.run.descriptor(number);
    this.run.bytes(at, 24).fill(0);
    const view = this.run.view;
    // Neither terminal nor file: the standard streams.
    view.setUint8(at, number < ROOT ? FILE_TYPE.UNKNOWN : typeOf(open.node));
    view.setUint16(at + 2, open.isAppend ? APPEND : 0, true);
    view.setBigUint64(at + 8, -1n, true);
    view.setBigUint64(at + 16, -1n, true);
  }

  fd_fdstat_set_flags(number, flags) { this.run.descriptor(number).isAppend = (flags & APPEND) !== 0; }
  fd_filestat_get(number, at) { this.run.stat(this.run.descriptor(number).node, at); }
  fd_filestat_set_times(number) { this.run.descriptor(number); }

  fd_filestat_set_size(number, size) {
    const { node } = this.run.file(number);
    if (!node.isWritable) fail(ERRNO.ROFS);
    node.resize(Number(size));
  }

  fd_sync(number) { this.run.descriptor(number); }
  fd_datasync(number) { this.run.descriptor(number); }

  fd_seek(number, offset, whence, at) {
    const open = this.run.file(number);
    const target = [0, open.position, open.node.size][whence] + Number(offset);
    if (!(target >= 0)) fail(ERRNO.INVAL);
    open.position = target;
    this.run.view.setBigUint64(at, BigInt(target), true);
  }

  fd_tell(number, at) { this.run.view.setBigUint64(at, BigInt(this.run.file(number).position), true); }

  /** Reads into buffers from a position on; returns the number of bytes. */
  read(node, vector, count, position) {
    let done = 0;
    for (const buffer of this.run.buffers(vector, count)) {
      const got = node.read(buffer, position + done);
      done += got;
      if (got < buffer.length) break;
    }
    if (!node.isWritable) this.run.onRead(done);
    return done;
  }

  write(node, vector, count, position) {
    if (!node.isWritable) fail(ERRNO.ROFS);
    let done = 0;
    for (const buffer of this.run.buffers(vector, count)) done += node.write(buffer, position + done);
    node.time = Date.now();
    return done;
  }

  fd_read(number, vector, count, at) {
    const open = this.run.file(number), done = this.read(open.node, vector, count, open.position);
    open.position += done;
    this.run.view.setUint32(at, done, true);
  }

  fd_pread(number, vector, count, offset, at) {
    this.run.view.setUint32(at, this.read(this.run.file(number).node, vector, count, Number(offset)), true);
  }

  fd_write(number, vector, count, at) {
    const open = this.run.file(number);
    if (open.isAppend) open.position = open.node.size;
    const done = this.write(open.node, vector, count, open.position);
    open.position += done;
    this.run.view.setUint32(at, done, true);
  }

  fd_pwrite(number, vector, count, offset, at) {
    this.run.view.setUint32(at, this.write(this.run.file(number).node, vector, count, Number(offset)), true);
  }

  fd_readdir(number, at, size, cookie, used) {
    const { node } = this.run.descriptor(number);
    if (!(node instanceof Folder)) fail(ERRNO.NOTDIR);
    let done = 0;
    for (const [index, [name, entry]] of [...node.entries].entries()) {
      if (index < Number(cookie)) continue;
      const text = new TextEncoder().encode(name), head = new DataView(new ArrayBuffer(24));
      head.setBigUint64(0, BigInt(index + 1), true);
      head.setUint32(16, text.length, true);
      head.setUint8(20, typeOf(entry));
      // An entry that does not fit is cut; the caller asks for it again.
      for (const part of [new Uint8Array(head.buffer), text]) {
        const fits = part.subarray(0, size - done);
        this.run.bytes(at + done, fits.length).set(fits);
        done += fits.length;
      }
      if (done === size) break;
    }
    this.run.view.setUint32(used, done, true);
  }

  path_open(number, _follow, at, size, how, _rights, _inherited, flags, result) {
    const { folder, name, node } = this.run.find(number, at, size);
    if (node && how & OPEN.EXCLUSIVE) fail(ERRNO.EXIST);
    let found = node;
    if (!found) {
      if (!(how & OPEN.CREATE)) fail(ERRNO.NOENT);
      found = new WrittenFile();
      folder.entries.set(name, found);
    }
    if (how & OPEN.DIRECTORY && !(found instanceof Folder)) fail(ERRNO.NOTDIR);
    if (how & OPEN.TRUNCATE) {
      if (!found.isWritable) fail(found instanceof Folder ? ERRNO.ISDIR : ERRNO.ROFS);
      found.resize(0);
    }
    const free = this.run.descriptors.indexOf(undefined, ROOT + 1);
    const opened = free < 0 ? this.run.descriptors.length : free;
    this.run.descriptors[opened] = found instanceof OpenFile
      ? this.run.descriptor(found.number)
      : { node: found, position: 0, isAppend: (flags & APPEND) !== 0 };
    this.run.view.setUint32(result, opened, true);
  }

  path_filestat_get(number, _follow, at, size, result) { this.run.stat(this.run.existing(number, at, size).node, result); }
  path_filestat_set_times(number, _follow, at, size) { this.run.existing(number, at, size); }
  path_readlink(number, at, size) { this.run.existing(number, at, size); fail(ERRNO.INVAL); }
  path_symlink() { fail(ERRNO.NOTSUP); }

  path_create_directory(number, at, size) {
    const { folder, name, node } = this.run.find(number, at, size);
    if (node) fail(ERRNO.EXIST);
    folder.entries.set(name, new Folder());
  }

  path_remove_directory(number, at, size) {
    const { folder, name, node } = this.run.existing(number, at, size);
    if (!(node instanceof Folder)) fail(ERRNO.NOTDIR);
    if (node.entries.size) fail(ERRNO.NOTEMPTY);
    folder.entries.delete(name);
  }

  path_unlink_file(number, at, size) {
    const { folder, name, node } = this.run.existing(number, at, size);
    if (node instanceof Folder) fail(ERRNO.ISDIR);
    folder.entries.delete(name);
  }

  path_rename(number, at, size, toNumber, toAt, toSize) {
    const from = this.run.existing(number, at, size), to = this.run.find(toNumber, toAt, toSize);
    if (to.node instanceof Folder && to.node.entries.size) fail(ERRNO.NOTEMPTY);
    from.folder.entries.delete(from.name);
    to.folder.entries.set(to.name, from.node);
  }

  path_link(number, _follow, at, size, toNumber, toAt, toSize) {
    const from = this.run.existing(number, at, size), to = this.run.find(toNumber, toAt, toSize);
    if (to.node) fail(ERRNO.EXIST);
    to.folder.entries.set(to.name, from.node);
  }
}
