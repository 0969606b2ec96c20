// Explain: what slows the run down, as `stave explain` says it. Each finding leads to its worst
// units on the time line, with the rows of those who are concerned pinned.

import { figures, ns, percent, strip } from './charts.js';
import { btn, el, link } from './dom.js';
import { CLASSES, legend, Page, section } from './page_parts.js';
import { formatSeconds } from './time.js';

const OBSERVED = {
  stacks: 'stacks of waits', flows: 'flows', gpu: 'GPU work', ranks: 'ranks', requests: 'requests',
};
const PARTS = { states: 'states of threads', calls: 'system calls', slices: 'slices' };

// where more is said of a cause that has no worst unit
const PLACES = [['queue', 'serving'], ['queue', 'llm'], ['gpu', 'gpu'], ['rank', 'ranks'],
  ['', 'waits'], ['', 'serving'], ['', 'llm'], ['', 'gpu'], ['', 'steps']];
const MOST_LINES = 3; // above the time line

/** Why there is no finding. */
function summary({ not_observed: missing }) {
  return missing.length
    ? `Cannot say what slows this run down: ${missing[0].what} were not observed.`
    : 'Nothing slows this run down: no wait takes a twentieth of the time.';
}

function covered(coverage) {
  const is = Object.keys(PARTS).filter((key) => coverage[key] > 0)
    .map((key) => `${PARTS[key]} ${percent(coverage[key], 0)}`),
    also = Object.keys(OBSERVED).filter((key) => coverage[key]).map((key) => OBSERVED[key]);
  return [...is, ...also].join(', ') || 'nothing';
}

/** The findings as lines, or why there is none; then what was observed, and what was not. */
export function lines(data) {
  const { findings, coverage, not_observed: missing } = data;
  const said = findings.slice(0, MOST_LINES).map((f) => f.sentence);
  const more = findings.length + data.left_off - said.length;
  const not = missing.length ? `; not observed: ${missing.map((m) => m.what).join(', ')}` : '';
  const rest = more > 0 ? `${more} more ${more === 1 ? 'finding' : 'findings'}. ` : '';
  return [...(said.length ? said : [summary(data)]),
    `${rest}Observed: ${covered(coverage)}${not}.`];
}

const unitsText = (units) =>
  (units.kind === 'thread' ? 'the main thread'
  : `${units.n} ${units.kind === 'loop' ? 'turns of a loop' : `${units.kind}s`}`);

function culpritText({ name, function: at, file, line, path, lock, rank, host, device }) {
  const place = file ? ` (${file}${line ? `:${line}` : ''})` : '';
  return [name, at && `${at}()${place}`, path, lock && `lock ${lock}`,
    rank !== undefined && `rank ${rank}`, host, device].filter(Boolean).join(' · ');
}

export class ExplainPage extends Page {
  load() {
    return this.pages.report('explain');
  }

  build(data) {
    const { units, findings, coverage, not_observed: missing } = data;
    this.number = 0;
    return [
      figures('explain-figures', [
        ['Explained', ns(units.dur_ns), unitsText(units)],
        units.marked === false && ['Units', 'found', 'by what repeats'],
        findings.length > 0 && ['Largest cause', percent(findings[0].share, 0),
          findings[0].cause.replace(/_/g, ' ')],
        findings.length > 0 && ['Findings', String(findings.length + data.left_off)],
      ]),
      ...(findings.length ? []
        : [section('What slows this run down', '', [], el('p', { text: summary(data) }))]),
      ...this.kind(data),
      ...(data.also ? [
        el('h2', { class: 'also',
          text: `Also explained: ${ns(data.also.units.dur_ns)}, ${unitsText(data.also.units)}` }),
            ...this.kind(data.also)] : []),
      this.coverage(coverage, missing),
    ].filter(Boolean);
  }

  /** One kind of units: its findings, what its slow ones have more of, where its time went. */
  kind({ units, time, findings, slow_units: slow, hot = [] }) {
    const classes = Object.keys(time).sort((a, b) => time[b] - time[a]);
    const parts = classes.map((name) => ({
      name, value: time[name], colour: CLASSES[name] ?? 'idle', text: percent(time[name]),
    }));
    return [
      ...findings.map((f) => this.finding(f)),
      slow && section('Slow ones',
        `${slow.n} of ${slow.of} take ${ns(slow.mean_ns)} on average, the `
        + `middle half ${ns(slow.usual_ns)}`, [],
        slow.findings.length ? null : el('p', { text: 'What they have more of is not known.' })),
      ...(slow ? slow.findings.map((f) => this.finding(f)) : []),
      hot.length > 0 && section('Functions that compute', 'by samples', [],
        el('ul', {}, ...hot.map((h) =>
          el('li', { text: `${h.function} ${percent(h.share, 0)}` })))),
      parts.length > 0 && section('Where the time went', unitsText(units), [],
        strip(this.app, 'Where the time went', parts, 'explain-strip'), legend(this.app, parts)),
    ].filter(Boolean);
  }

  finding(f) {
    const number = ++this.number, who = culpritText(f.culprit), own = { 'data-testid':
      `explain-go-${number}` }, { pages } = this;
    const place = PLACES.find(([word, id]) => f.cause.includes(word) && pages.found.includes(id));
    const tools = f.worst.length ? [btn('Show the worst', () => this.go(f, f.worst[0]), own)]
      : place ? [btn('Show the page', () => pages.show(place[1]), own)] : [];
    return section(`${number}. ${percent(f.share, 0)} ${f.cause.replace(/_/g, ' ')}`, who, tools,
      el('p', { class: 'sentence', 'data-testid': 'explain-sentence', text: f.sentence }),
      f.chain.length > 1 ? el('ol', { class: 'chain', 'aria-label': 'Chain' },
        ...f.chain.map((text) => el('li', { text }))) : null,
      el('dl', { class: 'facts-list' }, ...this.facts(f)));
  }

  facts(f) {
    const rows = [
      ['Try', [f.advice]],
      ['Sure', [f.sure]],
      f.gain !== f.share && ['Would save', [percent(f.gain, 0)]],
      f.worst.length > 0 && ['Worst', f.worst.flatMap((w, i) => [i ? ', ' : '', this.unit(f, w)])],
      ['Look closer', [el('code', { text: f.command })]],
    ];
    return rows.filter(Boolean)
      .flatMap(([name, content]) => [el('dt', { text: name }), el('dd', {}, ...content)]);
  }

  unit(f, w) {
    const at = formatSeconds(BigInt(w.ts) - this.app.zero), name = w.unit === undefined ? at
      : `${w.unit}`;
    return link(`${name} (${ns(w.dur)})`, () => this.go(f, w), `Show on the time line, at ${at}`);
  }

  coverage(coverage, missing) {
    return section('What was observed', 'of the time that is explained', [],
      el('p', { 'data-testid': 'explain-coverage', text: `${covered(coverage)}.` }),
      ...missing.map((m) =>
        el('p', { class: 'hint',
          text: `Not observed: ${m.what}. To see it, ${m.how}`
            + `${m.record ? `: ${m.record}` : '.'}` })));
  }

  /** The row of a thread, or the first one of a process. */
  rowOf({ pid, tid }) {
    const { rows, groups } = this.app.trace, pids = new Map(groups.map((g) => [g.id, g.pid]));
    const isOf = (r) => r.lines > 0 && pid !== undefined && pids.get(r.group) === String(pid);
    if (tid === undefined) return rows.find(isOf);
    // of several processes or hosts
    const threads = rows.filter((r) => r.tid === String(tid) && r.lines > 0);
    return threads.find(isOf) || threads[0];
  }

  /** To the window of a unit: its slice selected, the rows of the culprit pinned. */
  async go(f, w) {
    const from = BigInt(w.ts), to = from + BigInt(w.dur), { app } = this;
    const row = this.rowOf(f.culprit);
    if (row && !app.rows.pins.includes(row.id)) app.rows.pin(app.rows.byId.get(row.id));
    const id = await this.idOf(w);
    await this.pages.jump(id === undefined ? { from, to } : { id });
  }

  /** SQL's id of the unit's slice, which lasts at least as long as what the finding is about;
   * undefined: it has none, or there is no SQL. */
  async idOf(w) {
    try {
      const rows = await this.pages.sql(
        `select id from slice where ts = ${w.ts} and dur >= ${w.dur} order by dur limit 1`);
      return rows.length ? rows[0][0] : undefined;
    } catch {
      return undefined;
    }
  }
}
