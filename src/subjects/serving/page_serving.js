// Serving: requests, the batches that they shared and the workers that computed them. The numbers
// of `stave report batch`.

import { amount, Bars, chip, colourOf, figures, ns, percent, strip } from './charts.js';
import { btn, el, link } from './dom.js';
import { leading, number, numbers, Page, section, share, tableSection,
  words } from './page_parts.js';
import { formatCount, formatExact, formatSeconds, maxTime, minTime, parseWhole } from './time.js';

const PHASES = { queue: 1, batch: 3, submit: 4, scheduling: 5, run: 2, callback: 0, respond: 7 };
const NAMES = Object.keys(PHASES);
const MOST = 500;
const FINE = 8; // bars of the histogram per power of two
const LATENCIES = 'batches, requests, run mean:run_mean_ns, run per sample:run_per_sample_ns, '
  + 'latency p50:latency_p50_ns, p90:latency_p90_ns, p95:latency_p95_ns, '
  + 'p99:latency_p99_ns, max:latency_max_ns';
const arg = (...keys) =>
  `coalesce(${keys.map((key) => `extract_arg(arg_set_id, '${key}')`).join(', ')}, null)`;
const REQUESTS = `select id, ts, dur, ${arg('request_id', 'request')} as request, `
  + `${arg('batch_id', 'batch')} as batch from slice where name = 'request' and `
  + `category in ('serving', 'request') and dur >= 0`;
const ARRIVAL = `select min(ts) from slice where name in ('request', 'request_enqueued', `
  + `'request_rejected', 'enqueued', 'rejected') and category in ('serving', `
  + `'request', 'batching', 'serving.life') and coalesce(${arg('flags')}, 0) = 0`;
const CALLS = ['enqueued', 'dequeued', 'collected', 'submitted', 'started', 'finished', 'callback',
  'responded'];

// Arguments of a trace may be anything: only whole numbers are numbers of requests.
const request = ([id, ts, dur, name, batch]) =>
  ({ id, ts: BigInt(ts), dur: BigInt(dur), request: String(parseWhole(name) ?? -1),
    batch: parseWhole(batch) });

export class ServingPage extends Page {
  async load() {
    const { pages } = this, data = { report: await pages.report('batch'), base: null, slowest: [],
      bins: [], batchOf: new Map() };
    for (const b of data.report.batch) for (const id of (b.requests || '')
      .split(' ')) data.batchOf.set(id, b);
    try {
      const [[base]] = await pages.sql(ARRIVAL);
      data.base = base === null ? null : BigInt(base);
      data.slowest = (await pages.sql(`${REQUESTS} order by dur desc limit ${MOST}`)).map(request);
      data.bins = await pages.sql(
        `select log2_bucket(dur) as power, (dur - log2_bucket(dur)) * ${FINE} `
          + `/ max(1, log2_bucket(dur)) as part, count(*) from (${REQUESTS} and `
          + 'dur > 0) group by 1, 2');
    } catch (error) {
      data.why = error.message;
    }
    return data;
  }

  build(data) {
    const { app } = this, { slowest, report } = data,
      { summary, phase, transport, sla, worker, model, batch, queue } = report;
    const trouble = ['rejected', 'failed', 'cancelled', 'open'].filter((key) => summary[key] > 0)
      .map((key) => `${formatCount(summary[key])} ${key}`).join(', ');
    this.place = el('div');
    if (slowest.length) this.choose(data, this.chosen || slowest[0]);
    return [figures('serving-figures', [
      ['Requests answered', formatCount(summary.requests), trouble],
      ['Throughput', `${amount(summary.throughput_per_s)} /s`, `in ${ns(summary.span_ns)}`],
      ['Latency p50', ns(summary.latency_p50_ns), `mean ${ns(summary.latency_mean_ns)}`],
      ['p95', ns(summary.latency_p95_ns)],
      ['p99', ns(summary.latency_p99_ns), `max ${ns(summary.latency_max_ns)}`],
      ['Batches', formatCount(summary.batches),
        `mean size ${amount(summary.batch_size_mean)}, largest ${summary.batch_size_max}`],
      ['Deepest queue', formatCount(summary.queue_max), summary.congested_ns > 0
        ? `congested ${percent(summary.congested_share)} of the time` : ''],
        sla.length && [`Within ${amount(sla[0].limit_ms)} ms`, percent(sla[0].within)],
    ]),
    tableSection(app, 'Where the time of a request goes', 'serving-phases',
      [words('phase', (p) => p.phase,
        { cell: (p, cell) => cell.append(chip(app, PHASES[p.phase]), p.phase) }),
          ...numbers('share, mean:mean_ns, p50:p50_ns, p90:p90_ns, '
            + 'p95:p95_ns, p99:p99_ns, max:max_ns')],
        phase,
      { aside: 'Phases follow each other and add up',
        above: strip(app, 'Phases of a request',
          phase.map((p) =>
            ({ name: p.phase, value: p.mean_ns, colour: PHASES[p.phase],
              text: `${ns(p.mean_ns)} on average · ${percent(p.share)}` }))) }),
    transport?.length && tableSection(app, 'Outside of the queue', 'serving-transport',
      [words('what', (t) => t.transport),
        ...numbers('requests, mean:mean_ns, p50:p50_ns, p90:p90_ns, p95:p95_ns, p99:p99_ns, '
          + 'max:max_ns')],
      transport, { aside: 'serialise is in respond, the others are not in the latency' }),
    data.why && el('p', { class: 'hint', text: `Single requests are not shown: ${data.why}` }),
    data.bins.length && this.latencies(data), slowest.length && this.one(data), this.flows(data),
    queue.length && this.queue(data),
    tableSection(app, 'Workers', 'serving-workers',
      [words('worker', (w) => `${w.worker} (${w.type})`), share(app, 'busy', (w) => w.busy, 2),
        ...numbers(LATENCIES)], worker),
    model.length > 1 && tableSection(app, 'Models', 'serving-models',
      [words('model', (m) => m.model), ...numbers(LATENCIES)], model),
    tableSection(app, 'Batches', 'serving-batches', [
      leading('number', (b) => String(b.batch), (b) => this.showBatch(data, b),
        { number: true, key: (b) => Number(b.batch) }), ...numbers('from:start_ns'),
        words('model', (b) => b.model),
      ...numbers(`worker, size:samples, ${NAMES.map((name) => `${name}:${name}_ns`).join(', ')}, `
        + 'total:total_ns'),
      words('note', (b) => (b.failed ? 'failed' : b.warmup ? 'warm-up' : '')),
      words('requests', (b) => b.requests),
    ], batch, {
      aside: `${batch.length >= MOST ? `The first ${MOST}; times` : 'Times'} `
        + 'from the first arrival',
    }),
    slowest.length && tableSection(app, 'Slowest requests', 'serving-requests', [
      words('request', (q) => q.request,
        { number: true, key: (q) => BigInt(q.request),
          cell: (q, cell) =>
            cell.append(link(q.request, () => this.pick(data, q), 'Show its phases')) }),
          number('batch', (q) => q.batch, String),
      leading('arrives', (q) => formatSeconds(q.ts - app.zero), (q) => this.show(q),
        { number: true, key: (q) => q.ts, csv: (q) => String(q.ts) }),
        number('latency', (q) => q.dur, ns),
    ], slowest, { sort: 3, aside: slowest.length >= MOST ? `The slowest ${MOST}` : '' })].filter(
      Boolean);
  }

  latencies(data) {
    const { summary } = data.report,
      bins = new Map(
      data.bins.map(([power, part, n]) => [Math.log2(Number(power)) * FINE + Number(part),
        Number(n)]));
    const first = Math.min(...bins.keys()), n = Math.max(...bins.keys()) - first + 1,
      count = (i) => bins.get(first + i) || 0;
    const low = (i) => { const power = 2 ** Math.floor((first + i) / FINE);
      return Math.ceil(power + power * ((first + i) % FINE) / FINE); };
    const at = (value) => { const power = Math.floor(Math.log2(value));
      return (power + value / 2 ** power - 1) * FINE - first; };
    return section('Latency', 'A click shows the slowest request of a bar below', [],
      new Bars(this.app, {
      title: 'Latencies of requests', help: 'shows its slowest request below', height: 210,
      testid: 'serving-histogram', n, parts: [{ colour: 0 }], value: count, format: amount,
      label: (i) => ns(low(i)),
      uprights: ['p50', 'p95',
        'p99'].map((name) =>
          ({ at: at(summary[`latency_${name}_ns`]),
            text: `${name} ${ns(summary[`latency_${name}_ns`])}` })),
            tip: (i) => [`${ns(low(i))} to ${ns(low(i + 1) - 1)}`,
        `${formatCount(count(i))} requests`],
      act: (i) => this.search(data, `dur >= ${low(i)} and dur < ${low(i + 1)} order by dur desc`),
    }).canvas);
  }

  async search(data, condition) {
    const [row] = await this.app.wait(
      this.pages.sql(`select * from (${REQUESTS}) where ${condition} limit 1`));
    if (row) this.pick(data, request(row)); else this.app.announce('No such request');
  }

  pick(data, q) {
    this.choose(data, q);
    this.place.parentElement.scrollIntoView({ block: 'nearest' });
    this.app.announce(`Request ${q.request}, ${formatExact(q.dur)}`);
  }

  show(q) {
    return this.pages.instances('Requests', `select id, ts, dur, dur as weight from (${REQUESTS})`,
      (one) => String(one.id) === String(q.id));
  }

  one(data) {
    const input = el('input',
      { type: 'text', inputmode: 'numeric', placeholder: 'Number',
        'aria-label': 'Number of a request', 'data-testid': 'serving-number' });
    const find = () => this.search(data, `request = ${parseWhole(input.value.trim()) ?? -1}`);
    input.addEventListener('keydown', (event) => { if (event.key === 'Enter') find(); });
    return section('One request', '', [input, btn('Show', find)], this.place);
  }

  /** How long the phases of a request took, as the report has it: by the calls of its life
   * cycle, else by those of its batch up to the run. */
  async durations(data, q) {
    const end = q.ts + q.dur,
      calls = await this.pages.sql(
      `select name, min(ts) from slice where ts between ${q.ts} and ${end} and `
        + `category = 'serving.life' and (${arg('request')} = ${q.request} or `
        + `${arg('batch')} = ${q.batch ?? -1}) group by name`);
    const times = new Map(calls), b = data.batchOf.get(q.request);
    let edges = CALLS.slice(1).map((name) => (times.has(name) ? BigInt(times.get(name)) : end)),
      at = q.ts;
    if (!times.has('dequeued')) {
      if (!b || data.base === null) return [];
      let next = data.base + BigInt(b.start_ns);
      edges = NAMES.map((name, i) => { next += BigInt(b[`${name}_ns`]);
        return i < 5 ? next : end; });
    }
    return edges.map((edge) => {
      const from = at;
      at = minTime(maxTime(at, edge), end);
      return at - from;
    });
  }

  async choose(data, q) {
    this.chosen = q;
    const durations = await this.app.wait(this.durations(data, q));
    if (this.chosen === q) this.place.replaceChildren(...this.waterfall(data, q, durations));
  }

  waterfall(data, q, durations) {
    const whole = durations.reduce((sum, d) => sum + d, 0n) || 1n,
      of = (part) => `${Number(part * 100000n / whole) / 1000}%`,
      cell = (text, more) => el('td', { class: 'number', text, ...more });
    let from = 0n;
    const rows = durations.map((dur, i) => {
      const bar = el('span', { class: 'step', hidden: dur <= 0n });
      Object.assign(bar.style,
        { marginLeft: of(from), width: of(dur),
          background: colourOf(this.app.palette, PHASES[NAMES[i]]) });
      from += dur;
      return el('tr', {}, el('th', { scope: 'row', text: NAMES[i] }), cell(ns(from - dur)),
        cell(ns(dur), { 'data-ns': String(dur) }), el('td', { class: 'room' }, bar));
    });
    const b = data.batchOf.get(q.request),
      mates = b ? b.requests.split(' ').filter((id) => id !== q.request) : [];
    return [el('p', { class: 'bar' }, el('strong', { text: `Request ${q.request}` }),
      formatExact(q.dur),
        el('span', { class: 'aside', text: `arrives at ${formatSeconds(q.ts - this.app.zero)}` }),
          btn('Time line', () => this.show(q))),
      el('table', { class: 'waterfall', 'aria-label': `Phases of request ${q.request}`,
        'data-testid': 'serving-waterfall' },
          el('thead', {},
            el('tr', {}, ...['phase', 'from', 'takes',
              ''].map((text, i) =>
                el('th', { scope: 'col', text, class: i % 3 ? 'number' : '' })))),
                el('tbody', {}, ...rows)),
      b ? el('p', { class: 'mates' },
        el('span', {}, 'In ',
          link(`batch ${b.batch}`, () => this.showBatch(data, b), 'Show on the time line'),
            ` of ${b.samples} on worker ${b.worker ?? '–'}${mates.length ? ', with' : ''}`),
        ...mates.slice(0, 64)
          .map((id) => link(id, () => this.search(data, `request = ${id}`), `Request ${id}`)),
            mates.length > 64 ? `and ${mates.length - 64} more` : '') : ''];
  }

  /** From requests through batches, by size, to workers; and how often each size occurs. */
  flows({ report }) {
    const { size } = report, counts = new Map();
    for (const b of report.batch) {
      if (b.warmup || b.failed) continue;
      const low = 2 ** Math.floor(Math.log2(Math.max(1, b.samples))),
        worker = `worker ${b.worker ?? '–'}`, sizes = counts.get(worker) || new Map();
      counts.set(worker,
        sizes.set(low,
          (sizes.get(low) || 0) + (b.requests ? b.requests.split(' ').length : b.samples)));
    }
    const rows = [...counts].sort().map(([worker, sizes]) => {
      const parts = [...sizes].sort((a, b) => a[0] - b[0])
        .map(([low, n]) =>
        ({ name: low > 1 ? `${low}–${low * 2 - 1}` : '1', value: n,
          colour: [7, 4, 1, 0, 5, 2][Math.min(5, Math.log2(low))],
            text: `${formatCount(n)} requests in batches of this size` }));
      return el('li', {}, el('span', { text: worker }),
        strip(this.app, `Requests of ${worker} by size of their batch`, parts, 'serving-flows'),
          el('span', {
            text: `${formatCount(parts.reduce((sum, p) => sum + p.value, 0))} requests`,
          }));
    });
    return el('div', { class: 'pair' },
      section('Requests → batches → workers',
        `${report.batch.length >= MOST ? `Of the first ${MOST} batches: r` : 'R'}equests `
          + 'by size of their batch', [], el('ul', { class: 'meters' }, ...rows)),
      section('Batches by size', `${percent(report.summary.efficiency)} of the largest on average`,
        [], new Bars(this.app, {
        title: 'Batches by size', height: 170, testid: 'serving-sizes', n: size.length,
        parts: [{ colour: 3 }], value: (i) => size[i].batches, format: amount,
        label: (i) => String(size[i].batch_size),
        tip: (i) => [`Size ${size[i].batch_size}`,
          `${formatCount(size[i].batches)} batches · ${percent(size[i].share)}`,
            `run ${ns(size[i].run_mean_ns)}, ${ns(size[i].run_per_sample_ns)} per sample`,
            `latency p50 ${ns(size[i].latency_p50_ns)}, p99 ${ns(size[i].latency_p99_ns)}`],
      }).canvas));
  }

  queue({ report: { queue }, base }) {
    const plot = (title, aside, testid, key, colour) =>
      section(title, aside, [], new Bars(this.app, {
      title, height: 160, testid, n: queue.length, parts: [{ colour }], value: (i) => queue[i][key],
      format: amount, label: (i) => ns(queue[i].start_ns),
      act: (i) => base !== null
        && this.pages.jump({ from: base + BigInt(queue[i].start_ns),
          to: base + BigInt(queue[i].start_ns + queue[i].dur_ns) }),
      tip: (i) => [`${ns(queue[i].start_ns)} to ${ns(queue[i].start_ns + queue[i].dur_ns)}`,
        `queue at most ${queue[i].depth_max}`, `${amount(queue[i].arrivals_per_s)} arrivals/s, `
          + `${amount(queue[i].answers_per_s)} answers/s`, `${queue[i].rejected} rejected`],
    }).canvas);
    return el('div', { class: 'pair' },
      plot('Queue', 'Deepest in each part of the time', 'serving-queue', 'depth_max', 1),
        plot('Answers per second', 'In each part of the time', 'serving-rates',
          'answers_per_s', 2));
  }

  async showBatch(data, b) {
    const { base } = data;
    if (base === null) return;
    const list = data.report.batch.map((one) => ({
      batch: one, from: base + BigInt(one.start_ns), dur: BigInt(one.total_ns),
      id: () => this.idOf(one, base + BigInt(one.start_ns)),
    }));
    await this.pages.instances('Batches', list, (one) => one.batch === b);
  }

  /** SQL's id of the slice of a batch; undefined: it has none. */
  async idOf(b, from) {
    const [row] = await this.pages.sql(`select id from slice where name in ('batch', 'batch_build')
      and ts between ${from - 1000n} and ${from + BigInt(b.total_ns)}
      and ${arg('batch_id', 'batch')} = ${BigInt(b.batch)} limit 1`);
    return row && row[0];
  }
}
