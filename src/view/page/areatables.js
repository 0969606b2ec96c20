// The tables of the selected area, one for each kind of what is in it: slices, states, samples,
// counters, arrows.

import { el, link } from './dom.js';
import { counterRange } from './raster.js';
import { nameColumn, Table } from './table.js';
import { formatCount, formatExact, formatShort, ratio } from './time.js';

export const CHART = { width: 160, height: 18 }; // of a counter
const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 6 });
const FIELDS = ['total', 'self', 'min', 'p50', 'p90', 'p99', 'max'];
const log = (t) => Math.log10(Number(t) + 1);

/** The names of an answer with whole numbers. */
export function prepare(names) {
  return names.map(({ name, text, colour, count, kind = 'slice', ...rest }) => {
    const row = { name, text: String(text), colour, kind, count: BigInt(count) };
    for (const field of FIELDS) row[field] = rest[field] === undefined ? null : BigInt(rest[field]);
    return row;
  });
}

const count = (title = 'Count') => ({
  title, number: true, key: (r) => r.count, text: (r) => formatCount(r.count),
  csv: (r) => r.count.toString(),
});

const time = (title, field) => ({
  title, number: true, key: (r) => r[field],
  text: (r) => (r[field] === null ? null : formatShort(r[field])),
  csv: (r) => (r[field] === null ? null : r[field].toString()),
});

/** A part of `whole`, with a bar behind it. */
function share(title, field, whole) {
  const part = (r) => (whole > 0n ? ratio(r[field], whole) : 0);
  return {
    title, number: true, key: (r) => r[field], text: (r) => `${(part(r) * 100).toFixed(1)} %`,
    cell: (r, cell) => {
      const bar = el('span', { class: 'share' });
      bar.style.setProperty('--part', String(Math.min(1, part(r))));
      bar.style.background = 'var(--accent)';
      cell.classList.add('shared');
      cell.append(bar, el('span', { text: `${(part(r) * 100).toFixed(1)} %` }));
    },
  };
}

/** Durations on a logarithmic scale: a line from least to greatest, a bar from p50 to p90, a tick
 * at p99. */
function spread(app, rows) {
  const low = Math.min(...rows.map((r) => (r.max > 0n ? log(r.min) : Infinity)));
  const high = Math.max(...rows.map((r) => (r.max === null ? 0 : log(r.max))));
  const x = (t) => 2 + 80 * (log(t) - low) / Math.max(0.1, high - low);
  const draw = (row, cell) => {
    if (row.min === null || row.max === null || row.p50 === null) return;
    const canvas =
      el('canvas', { class: 'spread', width: '84', height: '14', 'aria-hidden': 'true' });
    const pen = canvas.getContext('2d'), { palette } = app;
    pen.fillStyle = palette.muted;
    pen.fillRect(x(row.min), 6.5, Math.max(1, x(row.max) - x(row.min)), 1);
    pen.fillRect(x(row.p99), 3, 1, 8);
    pen.fillStyle = palette.accent;
    pen.fillRect(x(row.p50), 4, Math.max(2, x(row.p90) - x(row.p50)), 6);
    cell.append(canvas);
    cell.title = [['least', 'min'], ['p50', 'p50'], ['p90', 'p90'], ['p99', 'p99'],
      ['greatest', 'max']]
      .map(([word, field]) => `${word} ${formatExact(row[field])}`).join(', ');
  };
  return { title: 'Spread', skip: true, key: (r) => r.max, text: () => '', cell: draw };
}

export function slicesTable(app, rows) {
  return new Table([
    nameColumn(app), count(), time('Total', 'total'), time('Self', 'self'), time('p50', 'p50'),
    time('p90', 'p90'), time('p99', 'p99'), time('Max', 'max'), spread(app, rows),
  ], rows, { label: 'Slices of the area by name', testid: 'area-table', sort: 2 });
}

export function statesTable(app, rows) {
  const whole = rows.reduce((sum, r) => sum + r.total, 0n);
  return new Table([
    nameColumn(app), count(), time('Total', 'total'), share('of all', 'total', whole),
    time('p50', 'p50'), time('p99', 'p99'), time('Longest', 'max'), spread(app, rows),
  ], rows, { label: 'States of threads in the area', testid: 'area-states', sort: 2 });
}

/** By function: in how many samples it is the innermost one, and in how many at all. */
export function samplesTable(app, nodes, root) {
  const found = new Map();
  const walk = (list, above) => {
    for (const node of list) {
      const entry = found.get(node.text) || { text: node.text, colour: node.colour, self: 0n,
        total: 0n };
      found.set(node.text, entry);
      entry.self += node.self;
      if (!above.has(node.text)) entry.total += node.total; // it may call itself
      walk(node.children, new Set([...above, node.text]));
    }
  };
  walk(root.children, new Set());
  const name = (row, cell) => {
    const chip = el('span', { class: 'chip' });
    chip.style.background = app.colourOf({ name: row.text, colour: row.colour });
    cell.append(chip, row.text);
    cell.title = row.text;
  };
  return new Table([
    { title: 'Function', key: (r) => r.text, text: (r) => r.text, cell: name },
    time('Self', 'self'), share('of all', 'self', root.total), time('With callees', 'total'),
  ], [...found.values()],
    { label: 'Samples of the area by function', testid: 'area-samples', sort: 1 });
}

export function flowsTable(app, flows) {
  const rows = flows.map((f) => {
    const n = BigInt(f.count), total = BigInt(f.total);
    return { ...f, count: n, min: BigInt(f.min), max: BigInt(f.max), total, mean: total / n };
  });
  const longest = (row, cell) => cell.append(
    link(formatShort(row.max), () => app.select(row.longest, { tab: false }),
      'Show the longest one'),
  );
  const name = (title, key) => ({ title, key: (r) => r[key], text: (r) => r[key] || '(no name)' });
  return new Table([
    name('From', 'from'), name('To', 'to'), count(), time('Total', 'total'),
    time('Shortest', 'min'),
    time('Mean', 'mean'), { ...time('Longest', 'max'), cell: longest },
  ], rows, { label: 'Arrows of the area by the names of their slices',
    testid: 'area-flows', sort: 2 });
}

/** A row for each counter, with where its values of the area lie among all of them. */
export function countersTable(app, list, chart) {
  const value = (title, key) => ({
    title, number: true, key: (c) => c[key], text: (c) => number.format(c[key]),
    csv: (c) => String(c[key]),
  });
  const rows = list.map((c) => ({
    ...c, name: app.rowName(c.row), source: app.trace.rows.find((r) => r.id === c.row) || c,
  }));
  const name = (c, cell) => cell.append(
    link(c.name, () => app.goToRow(app.rows.byId.get(c.row)), 'Show this row'),
  );
  const range = (c, cell) => {
    const low = Number(c.source.min), wide = Number(c.source.max) - low || 1;
    const bar = el('span', { class: 'range' }, el('span', {}), el('i', {}));
    bar.firstChild.style.left = `${(c.min - low) / wide * 100}%`;
    bar.firstChild.style.width = `${Math.max(2, (c.max - c.min) / wide * 100)}%`;
    bar.lastChild.style.left = `${(c.mean - low) / wide * 100}%`;
    const [from, to, least, most] = [c.min, c.max, low, low + wide].map((v) => number.format(v));
    cell.title = `${from} … ${to} of ${least} … ${most}`;
    cell.append(bar);
  };
  const odd = (c) => (c.not_finite === '0' ? '' : c.not_finite);
  return new Table([
    { title: 'Counter', key: (c) => c.name, text: (c) => c.name, cell: name },
    { title: 'in the area', text: () => '', skip: true, cell: chart },
    value('least', 'min'), value('mean', 'mean'), value('greatest', 'max'), value('last', 'last'),
    { title: 'of all its values', text: () => '', skip: true, cell: range },
    { title: 'not finite', number: true, key: (c) => Number(c.not_finite), text: odd },
  ], rows, { label: 'Counters of the area', testid: 'area-counters' });
}

/** A line at the last value of each pixel, the area below it, and the range where it changes
 * within one. */
export function drawChart(canvas, counter, data, { palette, dpr }) {
  const pen = canvas.getContext('2d');
  const { min, max } = counterRange({ min: counter.min, max: counter.max });
  const y = (value) => Math.round((1 - (value - min) / (max - min)) * (canvas.height - dpr));
  let before = null;
  pen.fillStyle = palette.counter;
  data.pixel.forEach((x, i) => {
    if (!Number.isFinite(data.last[i])) { before = null; return; }
    const next = i + 1 < data.pixel.length ? data.pixel[i + 1] : canvas.width;
    const last = y(data.last[i]), top = y(data.max[i]);
    pen.globalAlpha = 0.22;
    pen.fillRect(x, last, next - x, canvas.height - last);
    pen.globalAlpha = 0.55;
    pen.fillRect(x, top, 1, y(data.min[i]) - top);
    pen.globalAlpha = 1;
    pen.fillRect(x, last, next - x, Math.max(1, Math.round(dpr)));
    if (before !== null) pen.fillRect(x, Math.min(before, last), 1, Math.abs(before - last));
    before = last;
  });
}
