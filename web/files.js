// The files that a run of the command sees: the given ones, which stay where they are, and those
// that it writes, in memory.

"use strict";

/** Bytes of a written file that are one piece of memory. */
const PIECE = 1 << 20;
/** Pieces of a written file that stay in memory; further ones are handed to the browser, which may
 * keep them on the disk. */
const PIECES = 64;
/** Bytes of a given file that are read at once. */
const BLOCK = 1 << 22;
/** Blocks of a given file that are kept. */
const BLOCKS = 4;

/** Returns the bytes of a Blob, at once: only workers have this interface. */
const bytesOf = blob => new Uint8Array(new FileReaderSync().readAsArrayBuffer(blob));

/** A file that was given: a Blob, of which parts are read when they are asked for. */
class GivenFile {
  constructor(blob, time = 0) {
    Object.assign(this, { blob, size: blob.size, time, blocks: new Map(), isWritable: false });
  }

  /** Copies bytes from `position` on into `target`; returns their number. */
  read(target, position) {
    const size = Math.max(Math.min(target.length, this.size - position), 0);
    if (size >= BLOCK) {
      target.set(bytesOf(this.blob.slice(position, position + size)));
      return size;
    }
    for (let done = 0; done < size;) {
      const at = position + done, block = this.block(Math.floor(at / BLOCK));
      const part = block.subarray(at % BLOCK, at % BLOCK + size - done);
      target.set(part, done);
      done += part.length;
    }
    return size;
  }

  block(number) {
    let block = this.blocks.get(number);
    if (block) {
      // The one that was used last is the last one.
      this.blocks.delete(number);
    } else {
      block = bytesOf(this.blob.slice(number * BLOCK, (number + 1) * BLOCK));
      if (this.blocks.size >= BLOCKS) this.blocks.delete(this.blocks.keys().next().value);
    }
    this.blocks.set(number, block);
    return block;
  }

  toBlob() {
    return this.blob;
  }
}

/** A file that the command writes. */
class WrittenFile {
  constructor(time = Date.now()) {
    Object.assign(this, { size: 0, time, pieces: [], resident: new Set(), isWritable: true });
  }

  read(target, position) {
    const size = Math.max(Math.min(target.length, this.size - position), 0);
    for (let done = 0; done < size;) {
      const at = position + done, offset = at % PIECE, part = Math.min(PIECE - offset, size - done);
      const piece = this.pieces[Math.floor(at / PIECE)];
      if (piece instanceof Blob) target.set(bytesOf(piece.slice(offset, offset + part)), done);
      // What was never written is zero.
      else if (piece === undefined) target.fill(0, done, done + part);
      else {
        const known = piece.subarray(offset, offset + part);
        target.set(known, done);
        target.fill(0, done + known.length, done + part);
      }
      done += part;
    }
    return size;
  }

  write(source, position) {
    for (let done = 0; done < source.length;) {
      const at = position + done, offset = at % PIECE, part = Math.min(PIECE - offset, source.length - done);
      this.piece(Math.floor(at / PIECE), offset + part).set(source.subarray(done, done + part), offset);
      done += part;
    }
    this.size = Math.max(this.size, position + source.length);
    return source.length;
  }

  /** Returns a piece in memory with at least `size` bytes. */
  piece(number, size) {
    let piece = this.pieces[number];
    if (piece instanceof Blob) piece = bytesOf(piece);
    if (piece === undefined || piece.length < size) {
      // Small files need little memory.
      let length = number ? PIECE : 4096;
      while (length < size) length *= 2;
      const larger = new Uint8Array(length);
      if (piece) larger.set(piece);
      piece = larger;
    }
    this.pieces[number] = piece;
    this.resident.delete(number);
    this.resident.add(number);
    if (this.resident.size > PIECES) {
      const oldest = this.resident.values().next().value;
      this.resident.delete(oldest);
      this.pieces[oldest] = new Blob([this.pieces[oldest]]);
    }
    return piece;
  }

  resize(size) {
    const last = Math.floor(size / PIECE);
    if (size < this.size) {
      this.pieces.length = Math.min(this.pieces.length, last + 1);
      for (const number of [...this.resident]) if (number > last) this.resident.delete(number);
      if (this.pieces[last]) this.piece(last, 0).fill(0, size % PIECE);
    }
    this.size = size;
  }

  toBlob() {
    const parts = [];
    for (let at = 0; at < this.size; at += PIECE) {
      const length = Math.min(PIECE, this.size - at), piece = this.pieces[at / PIECE] ?? new Uint8Array(0);
      const known = piece instanceof Blob ? piece.slice(0, length) : piece.subarray(0, length);
      parts.push(known);
      const missing = length - (piece instanceof Blob ? known.size : known.length);
      if (missing) parts.push(new Uint8Array(missing));
    }
    return new Blob(parts);
  }
}

/** A folder: names and what they stand for. */
class Folder {
  constructor() {
    Object.assign(this, { entries: new Map(), time: Date.now(), size: 0 });
  }

  /** Adds a file at a path of which folders may be missing. */
  add(path, file) {
    const names = path.split("/").filter(Boolean), last = names.pop();
    let folder = this;
    for (const name of names) {
      let next = folder.entries.get(name);
      if (!(next instanceof Folder)) folder.entries.set(name, next = new Folder());
      folder = next;
    }
    folder.entries.set(last, file);
  }

  /** Lists the files below, with their paths. */
  *files(before = "") {
    for (const [name, entry] of this.entries) {
      if (entry instanceof Folder) yield* entry.files(`${before}${name}/`);
      else yield [before + name, entry];
    }
  }
}
