// The pane of the selected area: a table by name with percentiles, counters, and the flame graph of
// the area.

import { btn, el, link } from './dom.js';
import { decodeWindow, recycle } from './codec.js';
import { Flame } from './flame.js';
import { Names } from './names.js';
import { counterRange } from './raster.js';
import { nameColumn, Table } from './table.js';
import { formatCount, formatExact, formatShort } from './time.js';

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 6 });
const CHART = { width: 160, height: 18, most: 500 }; // of a counter in the table
const FIELDS = ['total', 'self', 'min', 'p50', 'p90', 'p99', 'max'];

function prepare(names) {
  return names.map((entry) => {
    const row = { name: entry.name, text: String(entry.text), colour: entry.colour, count: BigInt(entry.count) };
    for (const field of FIELDS) row[field] = entry[field] === undefined ? null : BigInt(entry[field]);
    return row;
  });
}

const timeColumn = (title, field) => ({
  title, number: true, key: (r) => r[field], text: (r) => (r[field] === null ? null : formatShort(r[field])), csv: (r) => (r[field] === null ? null : r[field].toString()),
});

export class AreaPane {
  constructor(app, box) {
    this.app = app;
    this.box = box;
    this.loads = 0;
    box.classList.add('columns');
    this.clear();
  }

  get busy() {
    return this.loads > 0;
  }

  clear() {
    this.area = null;
    this.answer = null;
    this.box.replaceChildren(el('p', { class: 'hint', text: 'No area is selected. Drag over the time line, or press E for the visible window, Ctrl+A for everything.' }));
  }

  show(area) {
    this.area = area;
    this.part = 0; // of its tabs
    this.load(area);
  }

  async load(area) {
    const { transport } = this.app;
    this.loads++;
    try {
      const answer = await transport.json('POST', '/api/area', {
        from: area.from.toString(), to: area.to.toString(), rows: area.rows, limit: 1000, tab: transport.tab + 'a', seq: ++transport.seq,
      });
      if (this.area === area) this.fill(area, answer);
    } catch (error) {
      if (this.area === area && error.status !== 409) this.box.replaceChildren(el('p', { class: 'error', text: error.message }));
    }
    this.loads--;
  }

  columns() {
    return [
      nameColumn(this.app),
      { title: 'Count', number: true, key: (r) => r.count, text: (r) => formatCount(r.count), csv: (r) => r.count.toString() },
      timeColumn('Total', 'total'), timeColumn('Self', 'self'), timeColumn('p50', 'p50'), timeColumn('p90', 'p90'), timeColumn('p99', 'p99'), timeColumn('Max', 'max'),
      { title: 'Spread', skip: true, key: (r) => r.max, text: () => '', cell: (row, cell) => this.spread(row, cell) },
    ];
  }

  /** Durations on a logarithmic scale: a line from least to greatest, a bar from p50 to p90, a tick at p99. */
  spread(row, cell) {
    if (row.min === null || row.max === null) return;
    const canvas = el('canvas', { class: 'spread', width: '84', height: '14', 'aria-hidden': 'true' });
    const pen = canvas.getContext('2d'), { palette } = this.app;
    const log = (t) => Math.log10(Number(t) + 1);
    const { low, high } = this.scale;
    const x = (t) => 2 + 80 * (log(t) - low) / Math.max(0.1, high - low);
    pen.fillStyle = palette.muted;
    pen.fillRect(x(row.min), 6.5, Math.max(1, x(row.max) - x(row.min)), 1);
    pen.fillRect(x(row.p99), 3, 1, 8);
    pen.fillStyle = palette.accent;
    pen.fillRect(x(row.p50), 4, Math.max(2, x(row.p90) - x(row.p50)), 6);
    cell.append(canvas);
    cell.title = `least ${formatExact(row.min)}, p50 ${formatExact(row.p50)}, p90 ${formatExact(row.p90)}, p99 ${formatExact(row.p99)}, greatest ${formatExact(row.max)}`;
  }

  fill(area, answer) {
    this.answer = answer;
    const { app } = this, rows = prepare(answer.names);
    const log = (t) => Math.log10(Number(t) + 1);
    this.scale = {
      low: Math.min(...rows.map((r) => (r.max > 0n ? log(r.min) : Infinity))), high: Math.max(...rows.map((r) => (r.max === null ? 0 : log(r.max)))),
    };
    const table = new Table(this.columns(), rows, { label: 'Slices of the area by name', testid: 'area-table', sort: 2 });
    this.table = table;
    const title = `${formatCount(answer.slices)} slices in ${formatExact(area.to - area.from)}`;
    const bar = el('div', { class: 'bar' }, el('span', { class: 'title', text: title }),
      el('span', { class: 'aside', text: `${rows.length} names${answer.more ? `, ${answer.more} more` : ''} · ${area.rows.length} ${area.rows.length === 1 ? 'row' : 'rows'}` }),
      table.copyButton(app, { class: 'plain push' }), btn('Path', () => app.path.show(), { title: 'What led to the end of what ends last in it, as a row (K)' }), btn('Fit', () => app.fit()), btn('Save as trace', () => app.saveCut(area.from, area.to)));
    this.flame = new Flame(app, answer.flame || [], rows);
    const split = el('div', { class: 'split' }, table.box, this.flame.box);
    this.box.replaceChildren(bar, ...this.tabs(answer, split, bar));
    this.flame.draw();
    app.announce(title);
  }

  /** Slices and counters beside each other, where there are both. */
  tabs(answer, split, bar) {
    const counters = answer.counters || [];
    if (!counters.length) return [split];
    const table = this.counters(counters);
    this.loadCharts(counters);
    if (!answer.names.length) return [table];
    const parts = [['Slices', split], [`Counters (${counters.length})`, table]];
    const choose = (at) => {
      this.part = at;
      parts.forEach(([, other], k) => { other.hidden = k !== at; buttons[k].setAttribute('aria-checked', String(k === at)); });
    };
    const buttons = parts.map(([text, part], i) => el('button', {
      type: 'button', role: 'radio', text, 'data-testid': `area-tab-${i}`,
      onclick: () => {
        choose(i);
        if (part === split) this.flame.draw();
      },
    }));
    choose(this.part);
    bar.prepend(el('span', { class: 'choice', role: 'radiogroup', 'aria-label': 'Kind' }, ...buttons));
    return [split, table];
  }

  /** A row for each counter, with where its values of the area lie among all of them. */
  counters(list) {
    const { app } = this, rows = list.map((c) => ({ ...c, name: app.rowName(c.row), source: app.trace.rows.find((r) => r.id === c.row) || c }));
    const value = (title, key) => ({ title, number: true, key: (c) => c[key], text: (c) => number.format(c[key]), csv: (c) => String(c[key]) });
    const range = (c, cell) => {
      const low = Number(c.source.min), wide = Number(c.source.max) - low || 1, bar = el('span', { class: 'range' }, el('span', {}), el('i', {}));
      bar.firstChild.style.left = `${(c.min - low) / wide * 100}%`;
      bar.firstChild.style.width = `${Math.max(2, (c.max - c.min) / wide * 100)}%`;
      bar.lastChild.style.left = `${(c.mean - low) / wide * 100}%`;
      cell.title = `${number.format(c.min)} … ${number.format(c.max)} of ${number.format(low)} … ${number.format(low + wide)}`;
      cell.append(bar);
    };
    this.charts = new Map();
    this.counterTable = new Table([
      { title: 'Counter', key: (c) => c.name, text: (c) => c.name, cell: (c, cell) => cell.append(link(c.name, () => app.goToRow(app.rows.byId.get(c.row)), 'Show this row')) },
      { title: 'in the area', text: () => '', skip: true, cell: (c, cell) => this.chart(c, cell) },
      value('least', 'min'), value('mean', 'mean'), value('greatest', 'max'), value('last', 'last'),
      { title: 'of all its values', text: () => '', skip: true, cell: range },
      { title: 'not finite', number: true, key: (c) => Number(c.not_finite), text: (c) => (c.not_finite === '0' ? '' : c.not_finite) },
    ], rows, { label: 'Counters of the area', testid: 'area-counters' });
    return this.counterTable.box;
  }

  /** The values of the area in as many pixels as a chart has. */
  async loadCharts(counters) {
    const { area, app } = this, width = Math.round(CHART.width * app.dpr), table = this.counterTable;
    const ask = { from: area.from.toString(), to: area.to.toString(), width, left: 0, right: width };
    this.loads++;
    try {
      const buffer = await app.transport.binary('/api/window', { ...ask, tab: `${app.transport.tab}c`, seq: ++app.transport.seq, rows: counters.slice(0, CHART.most).map((c) => [c.row, 0, 0]) });
      const reply = decodeWindow(buffer, { ...ask, from: area.from, to: area.to }, new Names());
      if (table === this.counterTable) {
        this.charts = reply.rows;
        table.fill(true);
      }
      recycle(reply);
    } catch {
      // the table has the values
    }
    this.loads--;
  }

  /** A line at the last value of each pixel, the area below it, and the range where it changes within one. */
  chart(counter, cell) {
    const { app } = this, data = this.charts.get(counter.row), { dpr, palette } = app;
    const canvas = el('canvas', { class: 'chart', width: String(Math.round(CHART.width * dpr)), height: String(Math.round(CHART.height * dpr)), 'aria-hidden': 'true' });
    cell.append(canvas);
    if (!data) return;
    const pen = canvas.getContext('2d'), { min, max } = counterRange({ min: counter.min, max: counter.max });
    const y = (value) => Math.round((1 - (value - min) / (max - min)) * (canvas.height - dpr));
    let before = null;
    data.pixel.forEach((x, i) => {
      if (!Number.isFinite(data.last[i])) { before = null; return; }
      const next = i + 1 < data.pixel.length ? data.pixel[i + 1] : canvas.width, last = y(data.last[i]), top = y(data.max[i]);
      pen.globalAlpha = 0.22;
      pen.fillStyle = palette.counter;
      pen.fillRect(x, last, next - x, canvas.height - last);
      pen.globalAlpha = 0.55;
      pen.fillRect(x, top, 1, y(data.min[i]) - top);
      pen.globalAlpha = 1;
      pen.fillRect(x, last, next - x, Math.max(1, Math.round(dpr)));
      if (before !== null) pen.fillRect(x, Math.min(before, last), 1, Math.abs(before - last));
      before = last;
    });
  }

  redraw() {
    if (this.answer && this.area) this.fill(this.area, this.answer);
  }
}
