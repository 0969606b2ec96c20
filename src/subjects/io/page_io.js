// I/O: who waits, what came from the page cache and what from disks, processes and files. The
// numbers of `stave report io`.

import { amount, Bars, bytes, figures, ns, percent, strip } from './charts.js';
import { el } from './dom.js';
import { choice, leading, legend, number, numbers, Page, section, tableSection,
  words } from './page_parts.js';
import { formatCount, formatExact, formatSeconds } from './time.js';

const MOST = 500;
const WAIT = [{ name: 'a thread is in I/O', colour: 1 }, { name: 'the rest', colour: 'idle' }];
const COLUMNS = 'opens, reads, writes, read:bytes_read, written:bytes_written, time:time_ns, '
  + 'read p50:read_p50_ns, read p99:read_p99_ns, write p50:write_p50_ns, write '
  + 'p99:write_p99_ns, max:max_ns';
const nameOf = (p) => (p.name ? `${p.name}${p.pid === undefined ? '' : ` (pid ${p.pid})`}`
  : '(no process)');
const columns = () =>
  [...numbers(COLUMNS),
  number('sequential',
    (r) => (r.sequential + r.random ? r.sequential / (r.sequential + r.random) : null),
      (v) => percent(v, 0)), ...numbers('errors')];

export class IoPage extends Page {
  load() {
    return Promise.all([this.pages.report('io'), this.numbers()])
      .then(([report, steps]) => ({ ...report, steps }));
  }

  /** Numbers of steps by their times, as all pages have them. */
  async numbers() {
    const rows = await this.pages.sql('select ts, dur, number from step limit 10000')
      .catch(() => []);
    return new Map(rows.map(([ts, dur, number]) => [`${ts} ${dur}`, number]));
  }

  build({ calls, total, process, file, folder, device, span, steps }) {
    this.steps = steps;
    const { app } = this, places = [['Files', 'io-files', file], ['Folders', 'io-folders', folder],
      ['Devices', 'io-devices', device]].filter(([, , rows]) => rows.length);
    const [bar, place] = choice('Files, folders or devices',
      places.length ? places.map(([name, testid, rows]) =>
        ({ name, content: () => this.places(name, testid, rows) })) : [
          { name: '', content: () => '' }]);
    return [figures('io-figures', [
      ['Read', bytes(total.bytes_read), `${formatCount(total.reads)} reads`],
      ['Written', bytes(total.bytes_written), `${formatCount(total.writes)} writes`],
      ['In I/O', ns(total.time_ns), `${formatCount(calls)} calls, all threads`],
      total.cached !== undefined && ['From the page cache', `≥ ${percent(total.cached)}`,
        `${bytes(total.block_bytes_read)} from disks`],
        total.max_ns > 0 && ['Slowest call', ns(total.max_ns), `p99 ${ns(total.p99_ns)}`],
      total.errors > 0 && ['Errors', formatCount(total.errors)],
    ]), span.length && this.waiting(span), this.warmth(total, process),
    tableSection(app, 'Processes', 'io-processes',
      [words('process', nameOf), words('role', (p) => p.role), ...columns(),
        ...numbers('from disk:block_bytes_read, to disk:block_bytes_written, cached'),
          words('why this role', (p) => p.why)], process, { sort: 7 }),
    places.length && el('div', { class: 'group' }, bar, place),
      this.sizes(total.sizes)].filter(Boolean);
  }

  /** Who waits: of each step or phase the time in which at least one thread was in a call. */
  waiting(span) {
    // "ProfilerStep#7" and "step 7" are each one of many
    const kindOf = ({ name }) => name.replace(/[ _#:]*\d+$/, '');
    const all = [...new Set(span.map(kindOf))]
      .map((kind) => ({ kind, spans: span.filter((s) => kindOf(s) === kind) }))
      .sort((a, b) => b.spans.length - a.spans.length).slice(0, 6);
    const [bar, place] = choice('Steps or phases', all.map(({ kind, spans }) => ({
      name: kind, content: () => this.waitingChart(kind, spans),
    })));
    return section('Who waits for I/O',
      `${span.length >= MOST ? `The first ${MOST} steps and phases; a` : 'A'} `
        + 'click leads to the time line', all.length > 1 ? [bar] : [],
        legend(this.app, WAIT), place);
  }

  waitingChart(kind, spans) {
    const { app } = this, durations = spans.map((s) => s.dur_ns).sort((a, b) => a - b),
      middle = durations[durations.length >> 1];
    return new Bars(app, {
      title: `I/O of ${kind}`, height: 210, testid: 'io-spans', n: spans.length, parts: WAIT,
      cap: durations.at(-1) > middle * 6 ? middle * 3 : 0, label: (i) => this.numberOf(spans[i])
        ?? String(i + 1),
      value: (i, p) => (p ? Math.max(0, spans[i].dur_ns - spans[i].any_io_ns)
        : Math.min(spans[i].any_io_ns, spans[i].dur_ns)),
      act: (i) => this.pages.jump({ from: BigInt(spans[i].start_ns),
        to: BigInt(spans[i].start_ns) + BigInt(spans[i].dur_ns) }),
      tip: (i) => [`${spans[i].name} · ${this.numberOf(spans[i]) === undefined
        ? `${i + 1} of ${spans.length}` : `step ${this.numberOf(spans[i])}`}`,
        `${formatExact(BigInt(spans[i].dur_ns))} from `
        + `${formatSeconds(BigInt(spans[i].start_ns) - app.zero)}`,
        `any thread in I/O: ${ns(spans[i].any_io_ns)}`,
        `own threads, added up: ${ns(spans[i].own_io_ns)}`,
          `${spans[i].opens} opens, ${spans[i].reads} reads, `
          + `${bytes(spans[i].bytes_read)} read, ${bytes(spans[i].bytes_written)} written`],
    }).canvas;
  }

  numberOf(span) {
    return this.steps.get(`${span.start_ns} ${span.dur_ns}`);
  }

  /** Cold and warm: bytes that disks delivered, and the others that calls read. */
  warmth(total, process) {
    const warm = process.filter((p) => p.bytes_read > 0 && p.cached !== undefined).slice(0, 12);
    if (total.cached === undefined) return null;
    const rows = [['whole run', total],
      ...(warm.length > 1 ? warm.map((p) => [nameOf(p), p]) : [])].map(([name, r]) => {
      const cold = Math.min(r.block_bytes_read, r.bytes_read), part = (word, value, colour) =>
        ({ name: word, value, colour, text: bytes(value) });
      return el('li', {}, el('span', { text: name }),
        strip(this.app, `Bytes read by ${name}`,
          [part('warm', r.bytes_read - cold, 1), part('cold', cold, 5)], 'io-warmth'),
            el('span', { text: `${bytes(r.bytes_read)} read` }));
    });
    return section('Cold and warm', 'Of the bytes read, at least so many came from the page cache',
      [], el('ul', { class: 'meters' }, ...rows),
      legend(this.app,
        [{ name: 'warm: page cache', colour: 1 }, { name: 'cold: disks', colour: 5 }]));
  }

  places(name, testid, rows) {
    const files = name === 'Files', title = name.slice(0, -1).toLowerCase(), of = (r) => r.name
      || '(unnamed)';
    return tableSection(this.app, name, testid,
      [files ? leading(title, of, (r) => this.longest(r.name)) : words(title, of), ...columns()],
        rows, { sort: 6,
          aside: `${rows.length >= MOST ? `The first ${MOST} by time. ` : ''}`
            + `${files ? 'A name leads to its longest call' : ''}` });
  }

  longest(path) {
    return this.pages.instances(path || '(unnamed)',
      `select id, ts, dur, dur as weight from io where path = ${this.pages.quote(path || '')}`);
  }

  sizes(text = '') {
    const found = new Map(text.split(' ').filter(Boolean)
      .map((pair) => pair.split('=').map(Number))), sizes = found.has(0) ? [0] : [],
      keys = [...found.keys()].filter(Boolean);
    for (let size = Math.min(...keys); keys.length && size <= Math.max(...keys);
      size *= 2) sizes.push(size);
    if (!sizes.length) return null;
    const n = (i) => found.get(sizes[i]) || 0;
    return section('Sizes of reads and writes', 'From each power of two up to the next', [],
      new Bars(this.app, {
      title: 'Sizes of reads and writes', height: 170, testid: 'io-sizes', n: sizes.length,
      parts: [{ name: 'transfers', colour: 0 }], value: n, label: (i) => bytes(sizes[i]),
      format: amount,
      tip: (i) => [sizes[i] < 2 ? bytes(sizes[i])
        : `${bytes(sizes[i])} to ${bytes(sizes[i] * 2 - 1)}`, `${formatCount(n(i))} transfers`],
    }).canvas);
  }
}
