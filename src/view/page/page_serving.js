// Serving: requests, the batches that they shared and the workers that computed them. The numbers of `stave report batch`.

import { amount, Bars, Curves, figures, ns, percent, Plot, strip, colourOf } from './charts.js';
import { btn, el, link } from './dom.js';
import { leading, legend, number, section, share, tableSection, words } from './page_parts.js';
import { formatCount, formatExact, formatSeconds, parseWhole } from './time.js';

const PHASES = [['queue', 1], ['batch', 3], ['submit', 4], ['scheduling', 5], ['run', 2], ['callback', 0], ['respond', 7]];
const MOST = 500;
const FINE = 8; // bars of the histogram per power of two
const arg = (...keys) => `coalesce(${keys.map((key) => `extract_arg(arg_set_id, '${key}')`).join(', ')})`;
const SPANS = `select id, ts, dur, ${arg('request_id', 'request')} as request, ${arg('batch_id', 'batch')} as batch from slice where name = 'request' and category in ('serving', 'request') and dur >= 0`;
const life = (name, more) => `select ts, extract_arg(arg_set_id, 'request') as request from slice where category = 'serving.life' and name = '${name}'${more}`;
const LIFE = `select null as id, a.ts as ts, b.ts - a.ts as dur, a.request as request, null as batch from (${life('enqueued', " and extract_arg(arg_set_id, 'flags') = 0")}) a join (${life('responded', '')}) b on a.request = b.request`;
const ARRIVAL = "select min(ts) from slice where (name = 'request' and category in ('serving', 'request')) or (category = 'batching' and name in ('request_enqueued', 'request_rejected')) or (category = 'serving.life' and name in ('enqueued', 'rejected') and extract_arg(arg_set_id, 'flags') = 0)";
const EDGES = ['enqueued', 'dequeued', 'collected', 'submitted', 'started', 'finished', 'callback', 'responded'];

export class ServingPage {
  constructor(pages) {
    this.pages = pages;
    this.app = pages.app;
    this.chosen = null;
  }

  async load() {
    const report = await this.pages.report('batch');
    const [[base]] = await this.pages.sql(ARRIVAL);
    let source = SPANS, slowest = await this.pages.sql(`${SPANS} order by dur desc limit ${MOST}`);
    if (!slowest.length) {
      source = LIFE;
      slowest = await this.pages.sql(`select * from (${LIFE}) order by dur desc limit ${MOST}`);
    }
    const histogram = slowest.length ? await this.pages.sql(`select log2_bucket(dur) as power, (dur - log2_bucket(dur)) * ${FINE} / max(1, log2_bucket(dur)) as part, count(*) from (${source}) group by 1, 2 order by 1, 2`) : [];
    const batchOf = new Map();
    for (const b of report.batch) for (const id of b.requests ? b.requests.split(' ') : []) batchOf.set(id, b);
    return { report, base: base === null ? null : BigInt(base), source, slowest: slowest.map((row) => this.request(row, batchOf)), histogram, batchOf };
  }

  request([id, ts, dur, request, batch], batchOf) {
    const of = batchOf.get(String(request));
    return { id, ts: BigInt(ts), dur: BigInt(dur), request: String(request), batch: batch !== null ? String(batch) : of ? String(of.batch) : null };
  }

  build(data) {
    const { summary, sla } = data.report, trouble = [['rejected', summary.rejected], ['failed', summary.failed], ['cancelled', summary.cancelled], ['without an end', summary.open]].filter(([, n]) => n > 0);
    const head = figures([
      ['Requests answered', formatCount(summary.requests), trouble.map(([name, n]) => `${formatCount(n)} ${name}`).join(', ')],
      ['Throughput', `${amount(summary.throughput_per_s)} /s`, `in ${ns(summary.span_ns)}`],
      ['Latency p50', ns(summary.latency_p50_ns), `mean ${ns(summary.latency_mean_ns)}`], ['p95', ns(summary.latency_p95_ns)], ['p99', ns(summary.latency_p99_ns), `max ${ns(summary.latency_max_ns)}`],
      ['Batches', formatCount(summary.batches), `mean size ${amount(summary.batch_size_mean)}, largest ${summary.batch_size_max}`],
      ['Deepest queue', formatCount(summary.queue_max), summary.congested_ns > 0 ? `congested ${percent(summary.congested_share)} of the time` : ''],
      sla.length ? [`Within ${amount(sla[0].limit_ms)} ms`, percent(sla[0].within)] : null,
    ], 'serving-figures');
    this.place = el('div', { class: 'chosen' });
    if (data.slowest.length) this.choose(data, this.chosen || data.slowest[0]);
    return [head, this.phases(data), data.slowest.length ? this.latencies(data) : null, data.slowest.length ? this.one(data) : null, this.flows(data), this.queue(data), this.workers(data), this.batches(data),
      data.slowest.length ? this.requests(data) : null].filter(Boolean);
  }

  phases(data) {
    const { app } = this, { phase } = data.report, colour = (name) => (PHASES.find((p) => p[0] === name) || ['', 7])[1];
    const whole = strip(app, phase.map((p) => ({ name: p.phase, value: p.mean_ns, colour: colour(p.phase), text: `${ns(p.mean_ns)} on average · ${percent(p.share)}` })), { label: 'Phases of a request', testid: 'serving-phases' });
    const table = tableSection(app, 'Where the time of a request goes', [
      words('phase', (p) => p.phase, { cell: (p, cell) => { const box = el('span', { class: 'chip' }); box.style.background = colourOf(app.palette, colour(p.phase)); cell.append(box, p.phase); } }),
      number('share', (p) => p.share, percent), number('mean', (p) => p.mean_ns, ns), number('p50', (p) => p.p50_ns, ns), number('p90', (p) => p.p90_ns, ns), number('p95', (p) => p.p95_ns, ns), number('p99', (p) => p.p99_ns, ns), number('max', (p) => p.max_ns, ns),
    ], phase, { testid: 'serving-phase-table', aside: 'Phases follow each other and add up' });
    table.insertBefore(whole, table.lastChild);
    return table;
  }

  latencies(data) {
    const { app } = this, { summary } = data.report;
    const bins = new Map(data.histogram.map(([power, part, n]) => [Math.log2(Number(power)) * FINE + Number(part), Number(n)]));
    const first = Math.min(...bins.keys()), last = Math.max(...bins.keys());
    const low = (i) => { const power = 2 ** Math.floor((first + i) / FINE); return Math.ceil(power + power * ((first + i) % FINE) / FINE); };
    const at = (value) => { const power = Math.floor(Math.log2(value)); return power * FINE + (value / 2 ** power - 1) * FINE - first; };
    const bars = new Bars(app, {
      label: 'Latencies of requests', help: 'Arrow keys choose a bar, Enter shows its slowest request below', height: 210, testid: 'serving-histogram',
      bars: {
        n: last - first + 1, parts: [{ name: 'requests', colour: 0 }], value: (i) => bins.get(first + i) || 0, format: amount, label: (i) => ns(low(i)), gap: 0.12,
        uprights: [['p50', summary.latency_p50_ns], ['p95', summary.latency_p95_ns], ['p99', summary.latency_p99_ns]].map(([name, value]) => ({ at: at(value), text: `${name} ${ns(value)}` })),
        tip: (i) => ({ head: `${ns(low(i))} to ${ns(low(i + 1) - 1)}`, lines: [`${formatCount(bins.get(first + i) || 0)} requests`] }),
        act: (i) => this.slowestOf(data, low(i), low(i + 1)),
      },
    });
    return section('Latency', { testid: 'serving-latency', aside: 'Bars are an eighth of a power of two wide; a click shows the slowest request of a bar below' }, bars.canvas);
  }

  async slowestOf(data, from, to) {
    const [row] = await this.app.wait(this.pages.sql(`select * from (${data.source}) where dur >= ${from} and dur < ${to} order by dur desc limit 1`));
    if (row) this.pick(data, this.request(row, data.batchOf));
  }

  async byNumber(data, text) {
    const id = parseWhole(text.trim());
    const [row] = id === null ? [] : await this.app.wait(this.pages.sql(`select * from (${data.source}) where request = ${id} limit 1`));
    if (row) this.pick(data, this.request(row, data.batchOf)); else this.app.announce(`No request ${text}`);
  }

  pick(data, request) {
    this.choose(data, request);
    this.place.scrollIntoView({ block: 'nearest' });
    this.app.announce(`Request ${request.request}, ${formatExact(request.dur)}`);
  }

  one(data) {
    const input = el('input', { type: 'text', inputmode: 'numeric', placeholder: 'Number', 'aria-label': 'Number of a request', 'data-testid': 'serving-number' });
    input.addEventListener('keydown', (event) => { if (event.key === 'Enter') this.byNumber(data, input.value); });
    return section('One request', { testid: 'serving-request', tools: [input, btn('Show', () => this.byNumber(data, input.value))] }, this.place);
  }

  /** The durations of a request's phases: from its arguments, else from the calls of its life cycle, else from its batch. */
  async durations(data, q) {
    if (q.id !== null) {
      const [row] = await this.pages.sql(`select ${PHASES.map((_, i) => `extract_arg(arg_set_id, 'phases_ns[${i}]')`).join(', ')} from slice where id = ${q.id}`);
      if (row && row[0] !== null) return row.map((v) => BigInt(v || 0));
    }
    const calls = await this.pages.sql(`select name, min(ts) from slice where ts >= ${q.ts} and ts <= ${q.ts + q.dur} and category = 'serving.life' and (extract_arg(arg_set_id, 'request') = ${q.request} or extract_arg(arg_set_id, 'batch') = ${q.batch === null ? -1 : q.batch}) group by name`);
    const times = new Map(calls.map(([name, ts]) => [name, BigInt(ts)]));
    if (EDGES.every((name) => times.has(name))) return PHASES.map((_, i) => times.get(EDGES[i + 1]) - times.get(EDGES[i]));
    const b = data.batchOf.get(q.request);
    return b ? PHASES.map(([name]) => BigInt(b[`${name}_ns`])) : [];
  }

  async choose(data, q) {
    this.chosen = q;
    const durations = await this.app.wait(this.durations(data, q));
    if (this.chosen === q) this.place.replaceChildren(...this.waterfall(data, q, durations));
  }

  waterfall(data, q, durations) {
    const whole = durations.reduce((sum, d) => sum + d, 0n) || 1n, body = el('tbody');
    let from = 0n;
    durations.forEach((dur, i) => {
      const bar = el('span', { class: 'step' }), share = (part) => Number(part * 100000n / whole) / 1000;
      bar.style.marginLeft = `${share(from)}%`;
      bar.style.width = `${share(dur)}%`;
      bar.style.background = colourOf(this.app.palette, PHASES[i][1]);
      body.append(el('tr', {}, el('th', { scope: 'row', text: PHASES[i][0] }), el('td', { class: 'number', text: ns(from) }), el('td', { class: 'number', text: ns(dur), 'data-ns': String(dur) }), el('td', { class: 'room' }, dur > 0n ? bar : null)));
      from += dur;
    });
    const b = data.batchOf.get(q.request), mates = b ? b.requests.split(' ') : [];
    const title = el('p', { class: 'bar' }, el('strong', { text: `Request ${q.request}` }), el('span', { text: formatExact(q.dur) }), el('span', { class: 'aside', text: `arrived at ${formatSeconds(q.ts - this.app.first)}` }),
      btn('Time line', () => this.pages.jump({ id: q.id === null ? undefined : q.id, from: q.ts, to: q.ts + q.dur }), { title: 'Show on the time line' }));
    const table = el('table', { class: 'waterfall', 'aria-label': `Phases of request ${q.request}`, 'data-testid': 'serving-waterfall' },
      el('thead', {}, el('tr', {}, ...['phase', 'from', 'takes', ''].map((text, i) => el('th', { scope: 'col', text, class: i === 1 || i === 2 ? 'number' : '' })))), body);
    const shown = mates.slice(0, 64);
    const batch = b ? el('p', { class: 'mates' }, el('span', {}, 'In ', link(`batch ${b.batch}`, () => this.showBatch(data, b), 'Show on the time line'),
      ` of ${b.samples} on worker ${b.worker ?? '–'}${mates.length > 1 ? ', with ' : ''}`), ...shown.filter((id) => id !== q.request).map((id) => link(id, () => this.byNumber(data, id), `Request ${id}`)), mates.length > 64 ? ` and ${mates.length - 64} more` : '') : null;
    return [title, durations.length ? table : el('p', { class: 'hint', text: 'The trace does not have the phases of this request.' }), batch].filter(Boolean);
  }

  flows(data) {
    const batches = data.report.batch.filter((b) => !b.warmup && !b.failed);
    if (!batches.length) return null;
    const plot = new Flows(this.app, batches, { label: 'From models through batch sizes to workers', height: 210, testid: 'serving-flows' });
    const sizes = data.report.size;
    const bars = new Bars(this.app, {
      label: 'Batches by size', help: 'Arrow keys choose a size', height: 210, testid: 'serving-sizes',
      bars: {
        n: sizes.length, parts: [{ name: 'batches', colour: 3 }], value: (i) => sizes[i].batches, format: amount, label: (i) => String(sizes[i].batch_size),
        tip: (i) => ({ head: `Size ${sizes[i].batch_size}`, lines: [`${formatCount(sizes[i].batches)} batches · ${percent(sizes[i].share)}`, `run ${ns(sizes[i].run_mean_ns)}, ${ns(sizes[i].run_per_sample_ns)} per sample`, `latency p50 ${ns(sizes[i].latency_p50_ns)}, p99 ${ns(sizes[i].latency_p99_ns)}`] }),
      },
    });
    return el('div', { class: 'pair' },
      section('Requests → batches → workers', { aside: data.report.batch.length >= MOST ? `The first ${MOST} batches, by requests` : 'By requests', wide: false }, plot.canvas),
      section('Batches by size', { aside: `${percent(data.report.summary.efficiency)} of the largest on average`, wide: false }, bars.canvas));
  }

  queue(data) {
    const { app } = this, { queue } = data.report;
    if (!queue.length) return null;
    const act = data.base === null ? undefined : (i) => { const from = data.base + BigInt(queue[i].start_ns); return this.pages.jump({ from, to: from + BigInt(queue[i].dur_ns) }); };
    const make = (label, testid, series) => new Curves(app, {
      label, help: 'Arrow keys choose a part of the time, Enter shows it on the time line', height: 170, testid,
      curves: { n: queue.length, series, label: (i) => ns(queue[i].start_ns), act,
        tip: (i) => ({ head: `${ns(queue[i].start_ns)} to ${ns(queue[i].start_ns + queue[i].dur_ns)}`, lines: [`queue at most ${queue[i].depth_max}`, `${amount(queue[i].arrivals_per_s)} arrivals/s`, `${amount(queue[i].answers_per_s)} answers/s`, ...(queue[i].rejected ? [`${queue[i].rejected} rejected`] : [])] }) },
    });
    const rates = [{ name: 'arrivals/s', colour: 6, value: (i) => queue[i].arrivals_per_s }, { name: 'answers/s', colour: 2, value: (i) => queue[i].answers_per_s }];
    return el('div', { class: 'pair' },
      section('Queue', { aside: 'Deepest in each part of the time', wide: false }, make('Depth of the queue', 'serving-queue', [{ name: 'depth', colour: 1, value: (i) => queue[i].depth_max, area: true }]).canvas),
      section('Arrivals and answers', { tools: [legend(app, rates)], wide: false }, make('Arrivals and answers per second', 'serving-rates', rates).canvas));
  }

  latencyColumns() {
    return [number('batches', (w) => w.batches, amount), number('requests', (w) => w.requests, amount), number('run mean', (w) => w.run_mean_ns, ns), number('run per sample', (w) => w.run_per_sample_ns, ns), number('latency p50', (w) => w.latency_p50_ns, ns),
      number('p90', (w) => w.latency_p90_ns, ns), number('p95', (w) => w.latency_p95_ns, ns), number('p99', (w) => w.latency_p99_ns, ns), number('max', (w) => w.latency_max_ns, ns)];
  }

  workers(data) {
    const { app } = this, { worker, model } = data.report;
    const workers = tableSection(app, 'Workers', [words('worker', (w) => `${w.worker} (${w.type}${w.device >= 0 ? ` ${w.device}` : ''})`), share(app, 'busy', (w) => w.busy, percent, 2), ...this.latencyColumns()], worker, { testid: 'serving-workers' });
    if (model.length < 2) return workers;
    return el('div', { class: 'group' }, workers, tableSection(app, 'Models', [words('model', (m) => m.model), ...this.latencyColumns()], model, { testid: 'serving-models' }));
  }

  async showBatch(data, b) {
    if (data.base === null) return;
    const from = data.base + BigInt(b.start_ns), to = from + BigInt(b.total_ns);
    const [row] = await this.app.wait(this.pages.sql(`select id from slice where ts >= ${from - 1000n} and ts <= ${to} and name in ('batch', 'batch_build') and ${arg('batch_id', 'batch')} = ${BigInt(b.batch)} limit 1`));
    await this.pages.jump({ id: row ? row[0] : undefined, from, to });
  }

  batches(data) {
    const { app } = this;
    return tableSection(app, 'Batches', [
      leading('batch', (b) => String(b.batch), (b) => (data.base === null ? null : () => this.showBatch(data, b)), { number: true, key: (b) => Number(b.batch) }), number('from', (b) => b.start_ns, ns), words('model', (b) => b.model),
      number('worker', (b) => b.worker, String), number('size', (b) => b.samples, amount), ...PHASES.map(([name]) => number(name, (b) => b[`${name}_ns`], ns)), number('total', (b) => b.total_ns, ns),
      words('note', (b) => [b.warmup ? 'warm-up' : '', b.failed ? 'failed' : ''].filter(Boolean).join(', ')), words('requests', (b) => b.requests || ''),
    ], data.report.batch, { testid: 'serving-batches', aside: `${data.report.batch.length >= MOST ? `The first ${MOST}; times` : 'Times'} from the first arrival` });
  }

  requests(data) {
    const { app } = this;
    return tableSection(app, 'Slowest requests', [
      words('request', (q) => q.request, { number: true, key: (q) => BigInt(q.request), cell: (q, cell) => cell.append(link(q.request, () => this.pick(data, q), 'Show its phases')) }),
      number('batch', (q) => (q.batch === null ? null : BigInt(q.batch)), String),
      leading('arrives', (q) => formatSeconds(q.ts - app.first), (q) => () => this.pages.jump({ id: q.id === null ? undefined : q.id, from: q.ts, to: q.ts + q.dur }), { number: true, key: (q) => q.ts, csv: (q) => String(q.ts) }), number('latency', (q) => q.dur, ns),
    ], data.slowest, { testid: 'serving-requests', sort: 3, aside: data.slowest.length >= MOST ? `The slowest ${MOST}` : '' });
  }
}

/** Requests by model, by size of their batch (powers of two) and by worker, as bands between three columns. */
class Flows extends Plot {
  constructor(app, batches, options) {
    const counts = new Map(), add = (key, n) => counts.set(key, (counts.get(key) || 0) + n);
    const range = (size) => { const low = 2 ** Math.floor(Math.log2(Math.max(1, size))); return low === 1 ? 'size 1' : `size ${low}–${low * 2 - 1}`; };
    for (const b of batches) {
      const n = b.requests ? b.requests.split(' ').length : b.samples;
      add(JSON.stringify([b.model || 'model', range(b.samples), b.worker === undefined || b.worker === null ? 'no worker' : `worker ${b.worker}`]), n);
    }
    const bands = [...counts].map(([key, n]) => ({ names: JSON.parse(key), n }));
    super(app, { ...options, help: bands.map((b) => `${b.names.join(' to ')}: ${b.n} requests`).slice(0, 40).join(', ') });
    this.bands = bands;
    this.columns = [0, 1, 2].map((c) => {
      const names = [...new Set(bands.map((b) => b.names[c]))].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
      return names.map((name) => ({ name, n: bands.filter((b) => b.names[c] === name).reduce((sum, b) => sum + b.n, 0) }));
    });
    this.canvas.tabIndex = -1;
    this.canvas.setAttribute('role', 'img');
  }

  layout() {
    const total = this.bands.reduce((sum, b) => sum + b.n, 0) || 1, most = Math.max(...this.columns.map((c) => c.length)), gap = Math.min(14, 60 / most), room = this.height - 24 - gap * (most - 1);
    this.scale = room / total;
    this.columns.forEach((column, c) => {
      let y = 12 + (this.height - 24 - (room + gap * (column.length - 1))) / 2;
      for (const node of column) {
        Object.assign(node, { y, tall: Math.max(1, node.n * this.scale), x: [90, this.width / 2 - 5, this.width - 110][c], left: y, right: y });
        y += node.tall + gap;
      }
    });
  }

  paint(pen, palette) {
    this.layout();
    const node = (c, name) => this.columns[c].find((n) => n.name === name), sorted = [...this.bands];
    sorted.sort((a, b) => this.columns[1].indexOf(node(1, a.names[1])) - this.columns[1].indexOf(node(1, b.names[1])));
    for (const [a, b] of [[0, 1], [1, 2]]) for (const band of sorted) this.band(pen, node(a, band.names[a]), node(b, band.names[b]), band.n * this.scale, colourOf(palette, 0));
    for (let c = 0; c < 3; c++) for (const n of this.columns[c]) this.node(pen, palette, n, c);
  }

  band(pen, from, to, tall, colour) {
    const x0 = from.x + 10, x1 = to.x, mid = (x0 + x1) / 2, y0 = from.right, y1 = to.left;
    from.right += tall;
    to.left += tall;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(mid, y0, mid, y1, x1, y1);
    pen.lineTo(x1, y1 + tall);
    pen.bezierCurveTo(mid, y1 + tall, mid, y0 + tall, x0, y0 + tall);
    pen.fillStyle = colour;
    pen.globalAlpha = 0.35;
    pen.fill();
    pen.globalAlpha = 1;
  }

  node(pen, palette, n, c) {
    pen.fillStyle = colourOf(palette, [7, 3, 2][c]);
    pen.fillRect(n.x, n.y, 10, n.tall);
    this.fit.use(11);
    const y = n.y + n.tall / 2 + 4;
    if (n.tall < 9 && n.n * 30 < this.bands.reduce((sum, b) => sum + b.n, 0)) return;
    if (c === 0) this.text(this.fit.fit(n.name, 80), n.x - 6, y, palette.text, { align: 'right' });
    else this.text(`${n.name} · ${formatCount(n.n)}`, n.x + 16, y, palette.text);
  }
}
