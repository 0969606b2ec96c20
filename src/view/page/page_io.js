// I/O: processes and files, what came from the page cache and what from disks, and which steps waited. The numbers of `stave report io`.

import { amount, Bars, bytes, figures, ns, percent, strip } from './charts.js';
import { el } from './dom.js';
import { choice, leading, legend, number, section, tableSection, words } from './page_parts.js';
import { formatCount, formatExact, formatSeconds } from './time.js';

const MOST = 500;
const ROLES = { trainer: 'trainer', loader: 'loader', other: 'other' };
const quote = (text) => `'${text.replace(/'/g, "''")}'`;
const order = (r) => (r.sequential + r.random ? r.sequential / (r.sequential + r.random) : null);

export class IoPage {
  constructor(pages) {
    this.pages = pages;
    this.app = pages.app;
  }

  load() {
    return this.pages.report('io');
  }

  build(report) {
    const { total } = report;
    const head = figures([
      ['Read', bytes(total.bytes_read), `${formatCount(total.reads)} reads`], ['Written', bytes(total.bytes_written), `${formatCount(total.writes)} writes`],
      ['In I/O', ns(total.time_ns), `${formatCount(report.calls)} calls, all threads`],
      total.cached !== undefined ? ['From the page cache', `≥ ${percent(total.cached)}`, `${bytes(total.block_bytes_read)} from disks`] : null,
      ['Slowest call', ns(total.max_ns), `p99 ${ns(total.p99_ns)}`], total.errors ? ['Errors', formatCount(total.errors)] : null,
    ], 'io-figures');
    return [head, this.waiting(report), this.processes(report), this.places(report), this.sizes(total)].filter(Boolean);
  }

  /** Who waits: of each step or phase the time in which at least one thread was in a call. */
  waiting(report) {
    const { span } = report, names = [...new Set(span.map((s) => s.name))];
    if (!names.length) return null;
    const parts = [{ name: 'a thread is in I/O', colour: 1 }, { name: 'the rest', colour: 'idle' }];
    const all = names.map((name) => span.filter((s) => s.name === name)).sort((a, b) => b.length - a.length).slice(0, 6);
    const picked = choice('Steps or phases', all.map((spans) => ({ name: spans[0].name, content: () => this.waitingChart(spans, parts) })));
    return section('Who waits for I/O', { testid: 'io-waiting', aside: `${span.length >= MOST ? `The first ${MOST} steps and phases; a` : 'A'} click leads to the time line`, tools: all.length > 1 ? [picked.bar] : [] }, legend(this.app, parts), picked.place);
  }

  waitingChart(spans, parts) {
    const { app } = this;
    const go = (s) => { const from = BigInt(s.start_ns); return this.pages.jump({ from, to: from + BigInt(s.dur_ns) }); };
    const durations = spans.map((s) => s.dur_ns).sort((a, b) => a - b), middle = durations[durations.length >> 1], longest = durations[durations.length - 1];
    const chart = new Bars(app, {
      label: `I/O of ${spans[0].name}`, help: 'Arrow keys choose one, Enter shows it on the time line', height: 210, testid: 'io-spans',
      bars: {
        n: spans.length, parts, cap: longest > middle * 6 ? middle * 3 : 0, value: (i, p) => (p === 0 ? Math.min(spans[i].any_io_ns, spans[i].dur_ns) : Math.max(0, spans[i].dur_ns - spans[i].any_io_ns)),
        label: (i) => String(i + 1), act: (i) => go(spans[i]),
        tip: (i) => ({
          head: `${spans[i].name} · ${i + 1} of ${spans.length}`, lines: [`${formatExact(BigInt(spans[i].dur_ns))} from ${formatSeconds(BigInt(spans[i].start_ns) - app.first)}`, `any thread in I/O: ${ns(spans[i].any_io_ns)}`, `own threads, added up: ${ns(spans[i].own_io_ns)}`,
            `${spans[i].opens} opens, ${spans[i].reads} reads, ${bytes(spans[i].bytes_read)} read, ${bytes(spans[i].bytes_written)} written`],
        }),
      },
    });
    return chart.canvas;
  }

  /** Columns that every kind of row has. */
  columns(first, { role = false } = {}) {
    return [
      ...first, ...(role ? [words('role', (r) => ROLES[r.role] || '')] : []), number('opens', (r) => r.opens, amount), number('reads', (r) => r.reads, amount), number('writes', (r) => r.writes, amount),
      number('read', (r) => r.bytes_read, bytes), number('written', (r) => r.bytes_written, bytes), number('time', (r) => r.time_ns, ns), number('read p50', (r) => r.read_p50_ns, ns), number('read p99', (r) => r.read_p99_ns, ns),
      number('write p50', (r) => r.write_p50_ns, ns), number('write p99', (r) => r.write_p99_ns, ns), number('max', (r) => (r.p50_ns === undefined ? null : r.max_ns), ns), number('sequential', order, (v) => percent(v, 0)),
      number('errors', (r) => r.errors, amount),
    ];
  }

  processes(report) {
    const { app } = this, name = (p) => (p.name ? `${p.name}${p.pid !== undefined ? ` (pid ${p.pid})` : ''}` : '(no process)');
    const warm = report.process.filter((p) => p.bytes_read > 0 && p.cached !== undefined);
    const table = tableSection(app, 'Processes', [...this.columns([words('process', name)], { role: true }),
      number('from disk', (p) => p.block_bytes_read, bytes), number('to disk', (p) => p.block_bytes_written, bytes), number('cached', (p) => p.cached, (v) => `≥ ${percent(v)}`), words('why this role', (p) => p.why || '')], report.process, { testid: 'io-processes', sort: 7 });
    if (!warm.length) return table;
    const cold = (r) => Math.min(r.block_bytes_read, r.bytes_read);
    const rows = [{ name: 'whole run', r: report.total }, ...(warm.length > 1 ? warm.slice(0, 12).map((p) => ({ name: name(p), r: p })) : [])].map(({ name: text, r }) => el('li', {}, el('span', { text }), strip(app, [
      { name: 'warm', value: r.bytes_read - cold(r), colour: 1, text: bytes(r.bytes_read - cold(r)) }, { name: 'cold', value: cold(r), colour: 5, text: bytes(cold(r)) },
    ], { label: `Bytes read by ${text}` }), el('span', { class: 'value', text: `${bytes(r.bytes_read)} read` })));
    const strips = section('Cold and warm', { testid: 'io-cold', aside: 'Of the bytes read, at least so many came from the page cache (warm); disks delivered the rest (cold)' }, el('ul', { class: 'meters' }, ...rows),
      legend(app, [{ name: 'warm: page cache', colour: 1 }, { name: 'cold: disks', colour: 5 }]));
    return el('div', { class: 'group' }, strips, table);
  }

  places(report) {
    const { app } = this;
    const of = (title, rows, testid, act) => ({
      name: `${title}s`.replace(/^./, (c) => c.toUpperCase()),
      content: () => tableSection(app, `${title}s`.replace(/^./, (c) => c.toUpperCase()), this.columns([leading(title, (r) => r.name || '(unnamed)', act)]), rows, { testid, sort: 6, aside: rows.length >= MOST ? `The first ${MOST} by time` : act(rows[0]) ? 'A name leads to its longest call' : '' }),
    });
    const options = [];
    if (report.file.length) options.push(of('file', report.file, 'io-files', (r) => (r.name ? () => this.longest(r.name) : null)));
    if (report.folder.length) options.push(of('folder', report.folder, 'io-folders', () => null));
    if (report.device.length) options.push(of('device', report.device, 'io-devices', () => null));
    if (!options.length) return null;
    const picked = choice('Files, folders or devices', options);
    return el('div', { class: 'group' }, options.length > 1 ? picked.bar : null, picked.place);
  }

  async longest(path) {
    const [row] = await this.app.wait(this.pages.sql(`select id from io where path = ${quote(path)} order by dur desc limit 1`));
    if (row) await this.pages.jump({ id: row[0] });
    else this.app.announce('No call of this file is on the time line');
  }

  sizes(total) {
    const found = new Map((total.sizes || '').split(' ').filter(Boolean).map((pair) => pair.split('=').map(Number))), sizes = [];
    if (!found.size) return null;
    for (let size = Math.max(1, Math.min(...found.keys())); size <= Math.max(...found.keys()); size *= 2) sizes.push([size, found.get(size) || 0]);
    if (found.has(0)) sizes.unshift([0, found.get(0)]);
    const chart = new Bars(this.app, {
      label: 'Sizes of reads and writes', help: 'Arrow keys choose a size', height: 170, testid: 'io-sizes',
      bars: {
        n: sizes.length, parts: [{ name: 'transfers', colour: 0 }], value: (i) => sizes[i][1], label: (i) => bytes(sizes[i][0]), format: amount, most: 90,
        tip: (i) => ({ head: sizes[i][0] < 2 ? bytes(sizes[i][0]) : `${bytes(sizes[i][0])} to ${bytes(sizes[i][0] * 2 - 1)}`, lines: [`${formatCount(sizes[i][1])} transfers`] }),
      },
    });
    return section('Sizes of reads and writes', { testid: 'io-size-chart', aside: 'From each power of two up to the next' }, chart.canvas);
  }
}
