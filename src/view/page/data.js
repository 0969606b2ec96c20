// What the server said about windows: the last replies, the request in flight, and what is still missing.

import { decodeWindow } from './codec.js';
import { Names } from './names.js';
import { Latest } from './transport.js';

const KEEP = 3;
const MOST_PIXELS = 8192;

const sameWindow = (a, b) => a.from === b.from && a.to === b.to && a.width === b.width;

function pixelRange(width) {
  const side = Math.max(0, Math.min(Math.ceil(width / 3), (MOST_PIXELS - width) >> 1));
  return { left: -side, right: width + side };
}

/** Are all of `rows` ([row, first line, lines]) in the asked ones? */
function includes(asked, rows) {
  return rows.every(([row, first, lines]) => {
    const got = asked.get(row);
    return got && got[1] <= first && got[1] + got[2] >= first + lines;
  });
}

export class WindowData {
  /** `host.names` are the names of the trace at hand; a reply keeps those that it was read with. */
  constructor(transport, host, changed, suffix = 'w') {
    this.transport = transport;
    this.host = host;
    this.changed = changed;
    this.tab = transport.tab + suffix;
    this.replies = [];
    this.asked = null;
    this.done = null;
    this.latest = new Latest((ask) => this.run(ask));
    this.nameLatest = new Latest((names) => this.askNames(names));
    this.failure = null;
  }

  reset() {
    this.replies = [];
    this.asked = null;
    this.done = null;
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

  /** Asks for `more` rows of a window when `needed` ones are not asked for yet. */
  ensure(window, needed, more) {
    const asked = this.asked;
    if (asked && sameWindow(asked.window, window) && includes(asked.rows, needed)) return;
    if (!needed.length) return;
    const ask = { window: { ...window, ...pixelRange(window.width) }, rows: new Map(more.map((r) => [r[0], r])) };
    this.asked = ask;
    this.latest.want(ask);
  }

  /** Is everything here that `needed` wants of this window? */
  settled(window, needed) {
    if (!needed.length) return true;
    return this.done !== null && sameWindow(this.done.window, window) && includes(this.done.rows, needed) && this.latest.idle && this.nameLatest.idle;
  }

  async run(ask) {
    const w = ask.window;
    const body = {
      from: w.from.toString(), to: w.to.toString(), width: w.width, left: w.left, right: w.right,
      tab: this.tab, seq: ++this.transport.seq, rows: [...ask.rows.values()],
    };
    try {
      const buffer = await this.transport.binary('/api/window', body);
      if (this.host.names.full) this.host.names = new Names();
      this.take(decodeWindow(buffer, w, this.host.names), ask);
      this.bytes = buffer.byteLength;
    } catch (error) {
      if (this.asked === ask) this.retry(error);
      throw error;
    }
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

  take(reply, ask) {
    this.failure = null;
    this.done = ask;
    this.replies.unshift(reply);
    this.replies.length = Math.min(this.replies.length, KEEP);
    if (reply.names.unknown.size) this.nameLatest.want(reply.names);
    this.changed();
  }

  async askNames(names) {
    const numbers = names.takeUnknown();
    if (!numbers.length) return;
    const answer = await this.transport.json('POST', '/api/names', { names: numbers });
    for (const entry of answer.names) names.learn(entry.name, String(entry.text));
    names.giveUp(numbers);
    this.changed();
  }

  /** The newest reply that has a line of a row. */
  find(row, line) {
    for (const reply of this.replies) {
      const got = reply.rows.get(row);
      if (got && (got.kind === 1 || (line >= got.first && line < got.first + got.lines))) return reply;
    }
    return null;
  }
}
