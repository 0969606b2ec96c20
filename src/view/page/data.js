// What the server said about windows: the last answers, the requests in flight, and what is still
// missing.

import { decodeWindow, recycle } from './codec.js';
import { Names } from './names.js';
import { Latest } from './transport.js';

const MOST_PIXELS = 8192;
const IN_FLIGHT = 4;
const CELLS_NEAR = 160000; // lines × pixels of one request
const CELLS_FAR = 12000; // the same through a slow link: about 110 kB compressed at worst

const sameWindow = (a, b) => a.from === b.from && a.to === b.to && a.width === b.width;

function pixelRange(width, far) {
  const side = Math.max(0, Math.min(Math.ceil(width / (far ? 10 : 4)), (MOST_PIXELS - width) >> 1));
  return { left: -side, right: width + side };
}

/** Are all of `rows` ([row, first line, lines]) in the asked ones? */
function includes(asked, rows) {
  return rows.every(([row, first, lines]) => {
    const got = asked.get(row);
    return got && got[1] <= first && got[1] + got[2] >= first + lines;
  });
}

/** Rows in portions of at most `most` lines; a row with more lines is divided. */
function portions(rows, most) {
  const parts = [];
  let part = [], room = most;
  const close = () => {
    if (part.length) parts.push(part);
    part = [];
    room = most;
  };
  for (const [row, first, lines] of rows) {
    let at = first, left = lines;
    do {
      if (room === 0) close();
      const n = Math.min(left, room);
      part.push([row, at, n]);
      room -= Math.max(1, n);
      at += n;
      left -= n;
    } while (left > 0);
  }
  close();
  return parts;
}

/** The replies to one question; each has some of its rows or lines. */
class Layer {
  constructor(ask) {
    this.ask = ask;
    this.rows = new Map();
    this.replies = [];
  }

  add(reply) {
    this.replies.push(reply);
    for (const row of reply.rows.keys()) {
      const list = this.rows.get(row);
      if (list) list.push(reply); else this.rows.set(row, [reply]);
    }
  }

  find(row, line) {
    for (const reply of this.rows.get(row) || []) {
      const got = reply.rows.get(row);
      if (got.kind === 1 || (line >= got.first && line < got.first + got.lines)) return reply;
    }
    return null;
  }
}

export class WindowData {
  /** `host.names` are the names of the trace at hand; a reply keeps those that it was read with. */
  constructor(transport, host, changed, suffix = 'w') {
    this.transport = transport;
    this.host = host;
    this.changed = changed;
    this.tab = transport.tab + suffix;
    this.layers = [];
    this.asked = null;
    this.done = null;
    this.latest = new Latest((ask) => this.run(ask));
    this.nameLatest = new Latest((names) => this.askNames(names));
    this.failure = null;
    this.turn = 0;
  }

  reset() {
    this.layers = [];
    this.refresh();
  }

  /** Another generation of the same rows: what is at hand is drawn until the new data is there. */
  refresh() {
    this.asked = null;
    this.done = null;
  }

  /** Another try after an error or a lost connection. */
  again() {
    this.asked = this.done;
    this.failure = null;
    this.changed();
  }

  /** Asks for the rows that `more()` gives when `needed` ones are not asked for yet; false if
   * they are. */
  ensure(window, needed, more) {
    const asked = this.asked;
    if (asked && sameWindow(asked.window, window) && includes(asked.rows, needed)) return false;
    if (!needed.length) return false;
    const ask = { window: { ...window, ...pixelRange(window.width, this.transport.far) },
      rows: new Map(more().map((r) => [r[0], r])) };
    this.asked = ask;
    this.latest.want(ask);
    return true;
  }

  /** Is everything here that `needed` wants of this window? */
  settled(window, needed) {
    if (!needed.length) return true;
    return this.done !== null && sameWindow(this.done.window, window)
      && includes(this.done.rows, needed) && this.latest.idle && this.nameLatest.idle;
  }

  /** All portions of a question, some at a time; through a slow link the rest is left out when a
   * newer one is wanted. */
  async run(ask) {
    const w = ask.window, { far } = this.transport, seq = ++this.transport.seq;
    const most = Math.max(1, Math.floor((far ? CELLS_FAR : CELLS_NEAR) / (w.right - w.left)));
    const parts = portions(ask.rows.values(), most), layer = new Layer(ask);
    const first = this.turn++ % parts.length;
    let next = 0, left = false;
    const work = async () => {
      while (next < parts.length) {
        if (far && next > 0 && this.latest.next !== undefined) { left = true; return; }
        const part = parts[(first + next++) % parts.length];
        await this.fetch(ask, part, seq, layer);
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, parts.length) }, work));
      if (!left) this.done = ask;
      this.failure = null;
      this.changed();
    } catch (error) {
      if (this.asked === ask) this.retry(error);
      throw error;
    }
  }

  async fetch(ask, rows, seq, layer) {
    const w = ask.window;
    const buffer = await this.transport.binary('/api/window', {
      from: w.from.toString(), to: w.to.toString(), width: w.width, left: w.left, right: w.right,
      tab: this.tab, seq, rows,
    });
    if (this.host.names.full) this.host.names = new Names();
    this.take(decodeWindow(buffer, w, this.host.names), layer);
  }

  /** The newest request failed: dropped ones are asked for again, others are shown. */
  retry(error) {
    this.asked = this.done;
    if (error.status === 409 || error.status === 503) setTimeout(() => this.changed(), 50);
    else if (this.transport.state === 'up') {
      this.failure = error.message;
      this.asked = null;
      setTimeout(() => this.changed(), 1000);
    }
  }

  take(reply, layer) {
    layer.add(reply);
    if (this.layers[0] !== layer) this.layers.unshift(layer);
    while (this.layers.length > (this.transport.far ? 3 : 2)) this.layers.pop()
      .replies.forEach(recycle);
    if (reply.names.unknown.size) this.nameLatest.want(reply.names);
    this.changed();
  }

  async askNames(names) {
    const numbers = names.takeUnknown();
    if (!numbers.length) return;
    const answer = await this.transport.json('POST', '/api/names', { names: numbers });
    for (const entry of answer.names) names.learn(entry.name, String(entry.text));
    names.giveUp(numbers);
    if (names.unknown.size) this.nameLatest.want(names);
    this.changed();
  }

  /** The newest reply that has a line of a row. */
  find(row, line) {
    for (const layer of this.layers) {
      const reply = layer.find(row, line);
      if (reply) return reply;
    }
    return null;
  }
}
