// LLM: requests, steps and tokens of an engine with continuous batching. The numbers of `stave
// report llm`.

import { amount, Bars, chip, colourOf, figures, ns, percent, strip } from './charts.js';
import { btn, el, link } from './dom.js';
import { leading, number, numbers, Page, section, tableSection, words } from './page_parts.js';
import { formatCount, formatSeconds } from './time.js';

const PHASES = { queue: 1, prefill: 3, decode: 2, preempted: 5, transfer: 4, respond: 7 };
const NAMES = { ttft: 'Time to first token', tpot: 'Time per output token',
  itl: 'Time between tokens', e2e: 'End to end' };
const MOST = 500;
const PARTS = 120; // bars over time
const REQUESTS =
  `select request_id, ts, dur, outcome, ttft_ns, tpot_ns, `
    + `${Object.keys(PHASES).map((name) => `${name}_ns`).join(', ')}, `
  + 'prompt_tokens, output_tokens, steps, share_ns from engine_request where is_warmup = 0';
const columns = ['request', 'ts', 'dur', 'outcome', 'ttft_ns', 'tpot_ns',
  ...Object.keys(PHASES).map((name) => `${name}_ns`), 'prompt_tokens', 'output_tokens', 'steps',
    'share_ns'];
const request = (row) => Object.fromEntries(columns.map((name, i) => [name, row[i]]));

export class LlmPage extends Page {
  async load() {
    const { pages } = this, data = { report: await pages.report('llm'), requests: [], bins: [] };
    try {
      data.requests = (await pages.sql(`${REQUESTS} order by ttft_ns desc limit ${MOST}`))
        .map(request);
      const [[first, last]] = await pages.sql('select min(ts), max(ts + dur) from engine_step');
      if (first !== null) {
        Object.assign(data,
          { first: BigInt(first), width: (BigInt(last) - BigInt(first)) / BigInt(PARTS) + 1n });
        data.bins = await pages.sql(
          `select (ts - ${data.first}) / ${data.width} as part, count(*), `
            + 'max(requests), max(waiting), sum(tokens_out), max(kv_used), '
            + 'max(kv_total), max(dur), max(ts + dur) from engine_step group by 1');
      }
    } catch (error) {
      data.why = error.message;
    }
    return data;
  }

  build(data) {
    const { app } = this, { summary, latency, phase, size, load, why } = data.report,
      { requests } = data;
    const trouble = ['rejected', 'failed', 'cancelled', 'open'].filter((key) => summary[key] > 0)
      .map((key) => `${formatCount(summary[key])} ${key}`).join(', ');
    const measure = (name) => latency.find((row) => row.figure === name && row.n > 0),
      p50 = (name) => { const row = measure(name);
      return row && [`${name.toUpperCase()} p50`, ns(row.p50_ns), `p99 ${ns(row.p99_ns)}`]; };
    this.place = el('div');
    if (requests.length) this.choose(requests[0]);
    return [figures('llm-figures', [
      ['Requests answered', formatCount(summary.requests), trouble],
      summary.output_tokens_per_s !== undefined
        && ['Output tokens', `${amount(summary.output_tokens_per_s)} /s`,
        `${formatCount(summary.output_tokens)} in ${ns(summary.span_ns)}`],
      p50('ttft'), p50('tpot'), p50('itl'), p50('e2e'),
      summary.steps > 0
        && ['Steps', formatCount(summary.steps),
        `${amount(summary.members_mean)} requests on average`],
      summary.kv_peak !== undefined && ['KV cache, peak', percent(summary.kv_peak),
        summary.preemptions > 0 ? `${formatCount(summary.preemptions)} preemptions` : ''],
    ].filter(Boolean)),
    tableSection(app, 'Latency of answered requests', 'llm-latency',
      [words('figure', (row) => NAMES[row.figure] || row.figure),
        ...numbers('count:n, mean:mean_ns, p50:p50_ns, p90:p90_ns, '
          + 'p95:p95_ns, p99:p99_ns, max:max_ns')],
          latency),
    tableSection(app, 'Where the time of a request goes', 'llm-phases',
      [words('phase', (p) => p.phase,
        { cell: (p, cell) => cell.append(chip(app, PHASES[p.phase]), p.phase) }),
          ...numbers('share, mean:mean_ns, p50:p50_ns, p90:p90_ns, '
            + 'p95:p95_ns, p99:p99_ns, max:max_ns')],
        phase,
      { aside: 'Phases do not overlap and sum to the time of a request',
        above: strip(app, 'Phases of a request',
          phase.map((p) =>
            ({ name: p.phase, value: p.mean_ns, colour: PHASES[p.phase],
              text: `${ns(p.mean_ns)} on average · ${percent(p.share || 0)}` }))) }),
    data.why && el('p', { class: 'hint', text: `Single requests are not shown: ${data.why}` }),
    data.bins.length && this.overTime(data), why.length && this.slow(why),
    size.length && tableSection(app, 'By step size', 'llm-sizes',
      [words('requests in step', (g) => g.requests),
        ...numbers('steps, step p50:dur_p50_ns, p99:dur_p99_ns, '
          + 'tokens/step:tokens_per_step, tokens/s in them:tokens_per_s, ITL '
            + 'p50:itl_p50_ns, ITL p99:itl_p99_ns')], size),
    load.length && tableSection(app, 'By load', 'llm-loads',
      [words('open at arrival', (g) => g.open),
        ...numbers('requests, TTFT p50:ttft_p50_ns, TTFT p99:ttft_p99_ns, TPOT '
          + 'p50:tpot_p50_ns, TPOT p99:tpot_p99_ns, E2E p50:e2e_p50_ns, E2E p99:e2e_p99_ns')],
            load),
    requests.length && section('One request', '', [], this.place),
    requests.length && tableSection(app, 'Requests', 'llm-requests', [
      words('request', (q) => String(q.request),
        { cell: (q, cell) =>
          cell.append(link(String(q.request), () => this.pick(q), 'Show its phases')) }),
          words('outcome', (q) => q.outcome),
      number('arrives', (q) => (q.ts === null ? null : BigInt(q.ts) - app.zero), formatSeconds),
      number('TTFT', (q) => q.ttft_ns, ns), number('TPOT', (q) => q.tpot_ns, ns),
      number('E2E', (q) => q.dur, ns),
      ...numbers('prompt:prompt_tokens, output:output_tokens, steps, share of steps:share_ns'),
    ], requests, { aside: requests.length >= MOST
      ? `The ${MOST} with the longest time to first token` : '' })].filter(Boolean);
  }

  slow(why) {
    return tableSection(this.app, 'Slowest tokens', 'llm-why', [
      leading('request', (row) => String(row.request), (row) => this.showStep(row.step)),
      ...numbers('token, waited:gap_ns'), words('cause', (row) => row.cause),
      ...numbers('of it:cause_ns, step'), words('detail', (row) => row.detail),
    ], why, { aside: 'First tokens since the arrival, others since the token before' });
  }

  /** To the step on the time line. */
  showStep(step) {
    return this.pages.instances(`step ${step}`,
      'select slice_id as id, ts, dur, dur as weight from engine_step where '
        + `number = ${BigInt(step)}`);
  }

  overTime({ bins, first, width }) {
    const begun = new Map(bins.map((row) => [Number(row[0]), row])),
      from = (i) => first + BigInt(i) * width, at = new Map();
    // of a part in which no step begins: what still runs, of which there is nothing to count
    for (let i = 0, last = null; i < PARTS; i++) {
      const row = begun.get(i), isOn = last && BigInt(last[8]) > from(i);
      if (row) at.set(i, last = row);
      else if (isOn) at.set(i, last.map((v, k) => (k === 1 || k === 4 ? 0 : v)));
    }
    const value = (k) => (i) => Number((at.get(i) || [])[k] || 0);
    const plot = (title, aside, testid, k, colour, tip) =>
      section(title, aside, [], new Bars(this.app, {
      title, height: 150, testid, n: PARTS, parts: [{ colour }], value: value(k),
      format: k === 7 ? ns : amount, label: (i) => ns(from(i) - this.app.zero),
      act: (i) => this.pages.jump({ from: from(i), to: from(i) + width }),
      tip: (i) => [formatSeconds(from(i) - this.app.zero), tip(i),
        `${formatCount(value(1)(i))} steps`],
    }).canvas);
    const pair = [
      plot('Requests in a step', 'The most in each part of the time', 'llm-running', 2, 0,
        (i) => `at most ${value(2)(i)} requests`),
        plot('Waiting', 'The most in each part of the time', 'llm-waiting', 3, 1,
        (i) => `at most ${value(3)(i)} requests`),
      plot('Output tokens', 'In each part of the time', 'llm-tokens', 4, 2,
        (i) => `${formatCount(value(4)(i))} tokens`),
        plot('Longest step', 'In each part of the time', 'llm-steps', 7, 5, (i) => ns(value(7)(i))),
    ];
    return el('div', {}, el('div', { class: 'pair' }, pair[0], pair[1]),
      el('div', { class: 'pair' }, pair[2], pair[3]));
  }

  pick(q) {
    this.choose(q);
    this.place.parentElement.scrollIntoView({ block: 'nearest' });
    this.app.announce(`Request ${q.request}`);
  }

  choose(q) {
    const parts = Object.keys(PHASES).map((name) => [name, BigInt(q[`${name}_ns`] || 0)]),
      whole = parts.reduce((sum, [, d]) => sum + d, 0n) || 1n,
      of = (part) => `${Number(part * 100000n / whole) / 1000}%`;
    const rows = parts.map(([name, dur]) => {
      const bar = el('span', { class: 'step', hidden: dur <= 0n });
      Object.assign(bar.style,
        { width: of(dur), background: colourOf(this.app.palette, PHASES[name]) });
      return el('tr', {}, el('th', { scope: 'row', text: name }),
        el('td', { class: 'number', text: ns(dur), 'data-ns': String(dur) }),
          el('td', { class: 'room' }, bar));
    });
    this.place.replaceChildren(el('p', { class: 'bar' },
      el('strong', { text: `Request ${q.request}` }),
        `${q.outcome}${q.dur === null ? '' : ` after ${ns(q.dur)}`}`,
      el('span', { class: 'aside', text: `${formatCount(q.prompt_tokens)} prompt tokens, `
        + `${formatCount(q.output_tokens)} output tokens in ` + `${formatCount(q.steps)} steps` }),
      q.ts === null ? ''
        : btn('Time line',
          () => this.pages.jump({ from: BigInt(q.ts), to: BigInt(q.ts) + BigInt(q.dur ?? 1) }))),
    el('table', { class: 'waterfall', 'aria-label': `Phases of request ${q.request}`,
      'data-testid': 'llm-waterfall' },
        el('thead', {},
          el('tr', {}, ...['phase', 'takes',
            ''].map((text, i) =>
              el('th', { scope: 'col', text, class: i === 1 ? 'number' : '' })))),
                el('tbody', {}, ...rows)));
  }
}
