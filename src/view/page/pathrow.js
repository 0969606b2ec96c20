// The critical path of the selection as a row of its own at the top: each piece leads to what the
// thread did or waited for.

import { LocalRow } from './localrow.js';
import { formatCount, formatShort } from './time.js';

const FAINT = 7; // colour of what sleeps or is idle

function textOf(piece) {
  const what = piece.kind === 'run' ? piece.name || 'runs' : piece.what ? `waits for ${piece.what}`
    : piece.kind === 'wait' ? `waits for ${piece.name || 'another thread'}` : 'nothing is known';
  return piece.thread ? `${what} · ${piece.thread}, ${piece.process}` : what;
}

export class PathRow {
  constructor(app) {
    this.app = app;
    this.turn = 0;
    this.pieces = [];
  }

  /** K: of the selected slice, or of what ends last within the area. */
  async show() {
    const { app } = this, { selected, area } = app, { transport } = app, turn = ++this.turn;
    if (!selected && !area) return app.announce('Select a slice or an area first');
    const ask = selected ? ['GET', `/api/path?slice=${selected.slice}`]
      : ['POST', '/api/path',
        { from: area.from.toString(), to: area.to.toString(), rows: area.rows }];
    let answer;
    try {
      answer = await app.wait(transport.json(...ask));
    } catch (error) {
      answer = { error: error.message };
    }
    if (turn === this.turn) this.put(answer, selected ? selected.detail.name : '');
    return undefined;
  }

  put({ error, pieces = [], more = false }, name) {
    const { app } = this;
    const data = new LocalRow(pieces.map((piece) => [piece.ts, piece.dur, textOf(piece), piece]),
      { ts: 0, dur: 1, name: 2 },
      (text, [, , , piece]) => app.names.styleOf(piece.colour === FAINT ? 'Sleeping' : 'Running',
        piece.colour));
    this.pieces = data.source.map((row) => row[3]);
    data.go = (i) => this.go(this.pieces[i]);
    const note = error
      || (pieces.length ? `${formatCount(pieces.length)}${more ? ', the nearest ones' : ''}`
      : 'nothing leads to its end');
    app.rows.setPath(name ? `Critical path of ${name}` : 'Critical path of the area', note, data);
    app.changed();
    app.announce(`Critical path: ${this.said(pieces, note)}`);
  }

  /** Of what most of it is. */
  said(pieces, note) {
    const sums = new Map();
    for (const piece of pieces) sums.set(textOf(piece), (sums.get(textOf(piece)) || 0n)
      + BigInt(piece.dur));
    const most = [...sums].sort((a, b) => (a[1] < b[1] ? 1 : -1)).slice(0, 3);
    return most.length
      ? `${note} pieces; ${most.map(([text, ns]) => `${text}: ${formatShort(ns)}`).join('; ')}`
      : note;
  }

  /** To the row of a piece's thread. */
  async go(piece) {
    const { app } = this;
    if (piece.row === null) return app.announce(`${textOf(piece)} has no row`);
    if (piece.slice !== null) await app.select(piece.slice, { show: false, tab: false });
    app.timeline.reveal(piece.row, piece.line);
    app.invalidate();
    return undefined;
  }

  get isShown() {
    return this.app.rows.path !== null;
  }

  close() {
    this.turn++;
    this.pieces = [];
    this.app.rows.setPath();
    this.app.changed();
  }
}
