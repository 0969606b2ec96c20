// Two traces: what differs by name, within the area or the visible window.

import { el } from './dom.js';
import { nameColumn, Table } from './table.js';
import { formatCount, formatShort, ratio } from './time.js';
import { Latest } from './transport.js';

const PAUSE_MS = 250;
const NONE = { count: 0n, total: 0n };
const mean = (side) => (side.count > 0n ? side.total / side.count : null);
const time = (value) => (value === null ? null : formatShort(value));

/** Rows of both tables by name: {text, colour, a, b, change}. */
function join(a, b) {
  const rows = new Map();
  const take = (answer, side) => {
    for (const entry of answer.names) {
      const text = String(entry.text);
      if (!rows.has(text)) rows.set(text, { text, colour: entry.colour, a: NONE, b: NONE });
      rows.get(text)[side] = { count: BigInt(entry.count), total: BigInt(entry.total) };
    }
  };
  take(a, 'a');
  take(b, 'b');
  return [...rows.values()].map((row) => ({ ...row, change: row.b.total - row.a.total }));
}

function percentText(row) {
  if (row.a.total === 0n) return row.b.total === 0n ? '0 %' : 'only in B';
  if (row.b.count === 0n) return 'only in A';
  const share = ratio(row.change * 1000n, row.a.total) / 10;
  return `${share > 0 ? '+' : share < 0 ? '−' : ''}${Math.abs(share).toFixed(1)} %`;
}

export class ComparePane {
  constructor(app, box) {
    this.app = app;
    this.box = box;
    this.latest = new Latest((area) => this.load(area));
    this.key = '';
    this.timer = null;
    box.classList.add('columns');
  }

  get busy() {
    return this.timer !== null || !this.latest.idle;
  }

  /** Called per frame: asks again when the interval has changed and the pane is open. */
  update() {
    const { app } = this;
    if (!app.trace.compared || !app.details.isOpen || app.details.tab !== 'compare'
      || app.view.moving) return;
    const { from, to } = app.area || app.view, key = `${from} ${to} ${app.trace.generation}`;
    if (key === this.key) return;
    this.key = key;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.latest.want({ from, to, key });
    }, PAUSE_MS);
  }

  ask({ from, to }, side) {
    const { transport, rows } = this.app;
    return transport.json('POST', '/api/area', {
      from: from.toString(), to: to.toString(), rows: rows.allRequests(side), limit: 1000,
      tab: `${transport.tab}${side ? 'B' : 'A'}`, seq: ++transport.seq,
    });
  }

  async load(area) {
    try {
      const [a, b] = await Promise.all([this.ask(area, 0), this.ask(area, 1)]);
      if (area.key === this.key) this.show(area, join(a, b));
    } catch (error) {
      if (error.status !== 409) this.box.replaceChildren(
        el('p', { class: 'error', text: error.message }));
    }
  }

  columns() {
    const count = (title, side) =>
      ({ title, number: true, key: (r) => r[side].count, text: (r) => formatCount(r[side].count),
        csv: (r) => r[side].count.toString() });
    const total = (title, side) =>
      ({ title, number: true, key: (r) => r[side].total, text: (r) => formatShort(r[side].total),
        csv: (r) => r[side].total.toString() });
    const average = (title, side) =>
      ({ title, number: true, key: (r) => mean(r[side]), text: (r) => time(mean(r[side])),
        csv: (r) => (mean(r[side]) === null ? null : mean(r[side]).toString()) });
    return [
      nameColumn(this.app),
      count('Count A', 'a'), count('Count B', 'b'), total('Total A', 'a'), total('Total B', 'b'),
      average('Mean A', 'a'), average('Mean B', 'b'),
      { title: 'Change', number: true, key: (r) => (r.change < 0n ? -r.change : r.change),
        text: (r) => (r.change > 0n ? '+' : '') + formatShort(r.change),
          csv: (r) => r.change.toString() },
      { title: '%', number: true,
        key: (r) => (r.a.total === 0n ? null : ratio(r.change * 1000n, r.a.total)),
          text: percentText },
    ];
  }

  show(area, rows) {
    const { app } = this,
      table = new Table(this.columns(), rows,
      { label: 'Differences by name', testid: 'compare-table', sort: 7 });
    const title = `${app.area ? 'Area' : 'Visible window'} of `
      + `${formatShort(area.to - area.from)}: B against A`;
    this.box.replaceChildren(el('div', { class: 'bar' },
      el('span', { class: 'title', text: title }),
        el('span', { class: 'aside', text: `${rows.length} names` }),
      table.copyButton(app, { class: 'plain push' })), table.box);
  }
}
