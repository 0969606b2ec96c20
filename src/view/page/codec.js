// The decoder of SVW1 (docs/view_protocol.md): a reply becomes a few typed arrays, no object per
// item.

import { ratio } from './time.js';

export const INSTANT = 1;
export const TAIL_UNFINISHED = 2;
export const TAIL_DIFFERS = 4;

const text = new TextDecoder();

class Reader {
  constructor(buffer) {
    this.bytes = new Uint8Array(buffer);
    this.view = new DataView(buffer);
    this.at = 0;
    this.low = 0;
    this.high = 0;
  }

  u8() {
    if (this.at >= this.bytes.length) throw new Error('the reply is cut off');
    return this.bytes[this.at++];
  }

  /** An unsigned LEB128 integer below 2^53. */
  v() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127, factor = 128;
    for (;;) {
      byte = bytes[this.at++];
      if (byte === undefined) throw new Error('the reply is cut off');
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
  }

  z() {
    const u = this.v();
    return u % 2 ? -(u + 1) / 2 : u / 2;
  }

  /** A LEB128 integer of 64 bits, left in `low` and `high`. */
  v64() {
    let low = 0, high = 0, shift = 0;
    for (;;) {
      const byte = this.u8(), bits = byte & 127;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) { low |= bits << 28; high |= bits >>> 4; }
      else if (shift < 64) high |= bits << (shift - 32);
      if (byte < 128) break;
      shift += 7;
    }
    this.low = low >>> 0;
    this.high = high >>> 0;
  }

  f32() {
    const value = this.view.getFloat32(this.at, true);
    this.at += 4;
    return value;
  }

  string() {
    const length = this.v();
    if (this.at + length > this.bytes.length) throw new Error('the reply is cut off');
    const value = text.decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return value;
  }
}

const FIELDS = {
  pixel: Int32Array, count: Uint32Array, flags: Uint8Array, cover: Uint8Array, slice: Float64Array,
  name: Int32Array, durLow: Uint32Array, durHigh: Uint32Array,
  tail: Int32Array, tailName: Int32Array, colour: Uint8Array, calm: Uint8Array,
  tailColour: Uint8Array, other: Int32Array,
};

/** Items of all lines of a reply; `pixel` is relative to the window, so it may be negative. */
class Items {
  constructor(capacity) {
    this.n = 0;
    this.grow(Math.max(256, capacity));
  }

  grow(capacity) {
    for (const [field, Type] of Object.entries(FIELDS)) {
      const next = new Type(capacity);
      if (this.n) next.set(this[field]);
      this[field] = next;
    }
    this.capacity = capacity;
  }
}

/** Arrays of replies that are no longer shown: megabytes each, so they are used again. */
const spare = [];
const MOST_SPARE = 3;

function takeItems(capacity) {
  const items = spare.pop() || new Items(capacity);
  items.n = 0;
  return items;
}

/** Nobody may look at the reply any more. */
export function recycle(reply) {
  if (spare.length < MOST_SPARE) spare.push(reply.items);
  reply.items = null;
}

/** Tails that are not the longest of their pixel: few, so they are beside the items (items.other
 * is the place here, or −1). */
class Tails {
  constructor() {
    this.slice = [];
    this.durLow = [];
    this.durHigh = [];
  }
}

/** How little the longest slice of a pixel says about it: 0 when it is alone or covers a quarter
 * of it, 3 below a 64th. */
function calmOf(count, low, high, pixelNs) {
  if (count <= 1 || high || low * 4 >= pixelNs) return 0;
  return low * 16 >= pixelNs ? 1 : low * 64 >= pixelNs ? 2 : 3;
}

function readLine(reader, left, items, tails, names, pixelNs) {
  const n = reader.v();
  let pixel = left, slice = 0;
  for (let i = 0; i < n; i++) {
    if (items.n === items.capacity) items.grow(items.capacity + (items.capacity >> 1));
    const k = items.n++;
    pixel += reader.v();
    items.pixel[k] = pixel;
    const count = items.count[k] = reader.v();
    const flags = items.flags[k] = reader.u8();
    items.cover[k] = reader.u8();
    slice += reader.z();
    items.slice[k] = slice;
    const name = items.name[k] = names.place(reader.v());
    reader.v64();
    items.durLow[k] = reader.low;
    items.durHigh[k] = reader.high;
    items.calm[k] = calmOf(count, reader.low, reader.high, pixelNs);
    items.tail[k] = reader.v();
    items.tailName[k] = name;
    items.colour[k] = items.tailColour[k] = names.colour[name] = flags >> 3 & 7;
    items.other[k] = -1;
    if (flags & TAIL_DIFFERS) {
      items.other[k] = tails.slice.length;
      tails.slice.push(slice + reader.z());
      const tailName = items.tailName[k] = names.place(reader.v());
      items.tailColour[k] = names.colour[tailName] = reader.u8() & 7;
      reader.v64();
      tails.durLow.push(reader.low);
      tails.durHigh.push(reader.high);
    }
  }
}

function readSlices(reader, left, reply, names) {
  const first = reader.v(), lines = reader.v();
  if (lines > 1 << 20) throw new Error('the reply has too many lines');
  const starts = new Int32Array(lines + 1);
  for (let line = 0; line < lines; line++) {
    starts[line] = reply.items.n;
    readLine(reader, left, reply.items, reply.tails, names, reply.pixelNs);
  }
  starts[lines] = reply.items.n;
  return { kind: 0, first, lines, starts };
}

function readCounter(reader, left) {
  const n = reader.v();
  if (n > 1 << 20) throw new Error('the reply has too many points');
  const row = { kind: 1, pixel: new Int32Array(n), min: new Float32Array(n),
    max: new Float32Array(n), last: new Float32Array(n) };
  let pixel = left;
  for (let i = 0; i < n; i++) {
    pixel += reader.v();
    row.pixel[i] = pixel;
    row.min[i] = reader.f32();
    row.max[i] = reader.f32();
    row.last[i] = reader.f32();
  }
  return row;
}

function readNames(reader, names) {
  for (let n = reader.v(); n > 0; n--) {
    const name = reader.v();
    names.learn(name, reader.string());
  }
}

/** ArrayBuffer + the window that was asked for → {window, items, tails, rows: Map row → where
 * its lines are}. */
export function decodeWindow(buffer, window, names) {
  const reader = new Reader(buffer);
  if (reader.view.byteLength < 4 || reader.view.getUint32(0, true) !== 0x31575653) throw new Error(
    'the reply is not SVW1');
  reader.at = 4;
  const reply = { window, pixelNs: ratio(window.to - window.from, BigInt(window.width)), names,
    items: takeItems(buffer.byteLength >> 4), tails: new Tails(), rows: new Map() };
  readNames(reader, names);
  for (let n = reader.v(); n > 0; n--) {
    const row = reader.v(), kind = reader.u8();
    reply.rows.set(row, kind === 1 ? readCounter(reader, window.left)
      : readSlices(reader, window.left, reply, names));
  }
  return reply;
}

/** The two halves of `v dur` → BigInt ns, −1 for unfinished. */
export function durationOf(low, high) {
  return (BigInt(high) << 32n | BigInt(low)) - 1n;
}

/** The last item of a line at or before a pixel, or −1. */
export function itemAt(reply, row, line, pixel) {
  const starts = row.starts, pixels = reply.items.pixel;
  let low = starts[line - row.first], high = starts[line - row.first + 1];
  const first = low;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pixels[middle] <= pixel) low = middle + 1; else high = middle;
  }
  return low > first ? low - 1 : -1;
}

/** What touches a pixel of a line: {count, slice, name (place), dur} of the longest, by the rule
 * of the protocol. */
export function touching(reply, row, line, pixel) {
  const items = reply.items, tails = reply.tails;
  let at = itemAt(reply, row, line, pixel);
  const found = { count: 0, slice: -1, name: -1, dur: null };
  if (at < 0) return found;
  const take = (slice, name, dur) => {
    if (found.slice >= 0 && (found.dur < 0n || (dur >= 0n && dur <= found.dur))) return;
    found.slice = slice;
    found.name = name;
    found.dur = dur;
  };
  const first = row.starts[line - row.first];
  if (items.pixel[at] === pixel) {
    found.count = items.count[at] || 1;
    take(items.slice[at], items.name[at], durationOf(items.durLow[at], items.durHigh[at]));
    at--;
  }
  if (at < first || items.pixel[at] + items.tail[at] < pixel) return found;
  found.count++;
  const other = items.other[at];
  if (other < 0) take(items.slice[at], items.name[at],
    durationOf(items.durLow[at], items.durHigh[at]));
  else take(tails.slice[other], items.tailName[at],
    durationOf(tails.durLow[other], tails.durHigh[other]));
  return found;
}
