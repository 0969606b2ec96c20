// Ranks: each step on every rank, how far apart they begin and end, who is late; and their
// collectives.

import { Bars, Cells, figures, ns, percent } from './charts.js';
import { el } from './dom.js';
import { commSections, LATE } from './page_comm.js';
import { leading, legend, number, numbers, Page, section, share, tableSection,
  words } from './page_parts.js';
import { loadSteps, trackName } from './page_steps.js';
import { formatCount, formatExact } from './time.js';

const FULL = 0.5; // so much longer or shorter than the middle is the strongest colour

function median(list) {
  const sorted = [...list].sort((a, b) => a - b), n = sorted.length;
  return n ? (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2 : 0;
}
const least = (list) => list.reduce((a, b) => (b < a ? b : a));
const greatest = (list) => list.reduce((a, b) => (b > a ? b : a));

/** A step of several ranks: `at[rank]` is its part. */
function measure(number, at) {
  const parts = at.filter(Boolean), begins = parts.map((s) => s.ts),
    ends = parts.map((s) => s.ts + s.exact), durations = parts.map((s) => s.dur),
    longest = greatest(durations);
  return {
    number, at, ranks: parts.length, first: least(begins), last: greatest(ends),
    slowest: parts.find((s) => s.dur === longest), middle_ns: median(durations),
    begin_ns: Number(greatest(begins) - least(begins)),
    end_ns: Number(greatest(ends) - least(ends)), spread_ns: longest - least(durations),
  };
}

export class RanksPage extends Page {
  /** A file has one rank; files are merged in the order of their ranks, so are their rows. */
  async load() {
    // a trace may have no collectives, or no steps
    const comm = await this.pages.report('comm').catch(() => null);
    const { tracks, kinds } = await loadSteps(this.pages)
      .catch((error) => { if (comm) return { tracks: new Map(), kinds: [] }; throw error; }),
      numbered = await this.pages.sql(
      "select str_value from metadata where name glob '*/rank' order by id"), byNumber = new Map();
    const ranks = [...tracks].map(([row, steps], i) =>
      ({ row, steps,
        name: (numbered.length === tracks.size && !trackName(this.app, row).startsWith('rank ')
          ? `rank ${numbered[i][0]} · ` : '') + trackName(this.app, row) }));
    ranks.forEach((rank, r) => rank.steps.forEach((step) => {
      if (!byNumber.has(step.number)) byNumber.set(step.number, []);
      byNumber.get(step.number)[r] = step;
    }));
    const shared = [...byNumber].map(([n, at]) => measure(n, at)).filter((s) => s.ranks > 1)
      .sort((a, b) => (BigInt(a.number) < BigInt(b.number) ? -1 : 1));
    return { ranks, shared, kinds, comm, late: await this.lateness(numbered, ranks, comm) };
  }

  /** By "rank in the order of rows, step": how much later than the first one it came to a
   * collective of that step, at most. Empty: arrivals cannot be compared. */
  async lateness(numbered, ranks, comm) {
    const found = new Map();
    if (!comm || numbered.length !== ranks.length) return found;
    const order = new Map(numbered.map(([rank], i) => [String(rank), i]));
    const rows = await this.pages.sql(`select l.rank, s.number, max(l.weight) from (${LATE}) l
      join (select step.*, track.rank from step join track on track.id = step.track_id) s
      on s.rank = l.rank and l.ts >= s.ts and l.ts < s.ts + s.dur group by 1, 2`).catch(() => []);
    for (const [rank, number, late] of rows) found.set(`${order.get(String(rank))},${number}`,
      Number(late));
    return found;
  }

  build({ ranks, shared, kinds, comm, late: arrived }) {
    const collectives = commSections(this.pages, comm), equal = arrived.size > 0;
    if (comm && !ranks.length) return collectives;
    this.judge(ranks, shared, arrived);
    const worst = greatest([0, ...shared.map((s) => s.spread_ns)]),
      late = shared.find((s) => s.spread_ns === worst),
      middle = (key) => ns(median(shared.map((s) => s[key])));
    const head = figures('ranks-figures', [
      ['Ranks', formatCount(ranks.length)], ['Steps in common', formatCount(shared.length)],
      equal && ['Slow ranks', comm.summary.slow ?? 'none', 'by their arrivals'],
      ['Begins differ by', middle('begin_ns'), 'median'],
      ['Durations differ by', middle('spread_ns'), 'median'],
      late && worst > 0 && ['At most', ns(worst), `in step ${late.number}`],
      ['Stragglers',
        formatCount(ranks.reduce((sum, r) => sum + r.steps.filter((s) => s.note === 'straggler')
          .length, 0))],
    ]);
    if (!shared.length) return [head,
      el('p', { class: 'hint', text: 'No step occurs on two ranks.' }), ...collectives];
    const skews = [['begin', 1], ['end', 4]].filter(([what]) =>
      shared.some((s) => s[`${what}_ns`] > 0));
    const tables = [skews.length && el('div', { class: 'pair' },
      ...skews.map(([what, colour]) => this.skew(shared, what, colour))),
    this.byRank(ranks, shared, kinds)].filter(Boolean);
    return equal
      ? [head, this.arrivals(ranks, shared, arrived), ...collectives, ...tables,
        this.byStep(ranks, shared)]
      : [head, this.grid(ranks, shared), ...tables, ...collectives, this.byStep(ranks, shared)];
  }

  /** Of each step the rank that the others wait for: the last one to arrive at its collectives, as
   * far as that is known, else the slowest one. */
  judge(ranks, shared, arrived) {
    for (const step of shared) {
      const late = ranks.map((_, r) => arrived.get(`${r},${step.number}`));
      const most = greatest([0, ...late.filter((ns_) => ns_ !== undefined)]);
      step.worst = arrived.size ? (most > 0 ? step.at[late.indexOf(most)] : undefined)
        : step.spread_ns > 0 ? step.slowest : undefined;
      step.late_ns = arrived.size && late.some((ns_) => ns_ !== undefined) ? most : undefined;
    }
    this.word = arrived.size ? 'last to arrive' : 'slowest';
  }

  grid(ranks, shared) {
    const step = (row, c) => shared[c].at[row],
      item = (i) => [Math.floor(i / shared.length), i % shared.length];
    const cells = new Cells(this.app, {
      title: 'Ranks by step',
      height: Math.max(70, Math.min(640, ranks.length * (ranks.length > 24 ? 12 : 26))) + 26,
      testid: 'ranks-grid', rows: ranks.map((r) => r.name), columns: shared.length,
      label: (c) => String(shared[c].number),
      mark: (row, c) => (step(row, c)?.note === 'straggler' ? 'straggler' : ''),
      value: (row, c) =>
        (step(row, c) ? Math.max(-1,
          Math.min(1, (step(row, c).dur / (shared[c].middle_ns || 1) - 1) / FULL)) : null),
      tip: (i) => {
        const [row, c] = item(i), s = step(row, c),
          head = `Step ${shared[c].number} · ${ranks[row].name}`;
        return s ? [head, formatExact(s.exact),
          `${percent(s.dur / (shared[c].middle_ns || 1) - 1)} against the middle rank`,
            `begins ${ns(s.ts - shared[c].first)} after the first rank`,
            ...(s.note ? [s.note] : [])] : [head, 'not on this rank'];
      },
      act: (i) => { const s = step(...item(i));
        if (s) this.pages.jump({ slice: s.slice, from: s.ts, to: s.ts + s.exact }); },
    });
    return section('Each step on each rank',
      'Against the middle rank of the step; a click leads to the time line', [],
      legend(this.app, [{ name: 'longer (full colour: by half or more)', colour: 6 },
        { name: 'shorter', colour: 0 }, { name: 'as the others', colour: 'idle' }]), cells.canvas);
  }

  /** Who the others wait for: collectives end together, so steps of slow ranks are not longer. */
  arrivals(ranks, shared, late) {
    const at = (row, c) => late.get(`${row},${shared[c].number}`),
      most = greatest([1, ...late.values()]);
    const item = (i) => [Math.floor(i / shared.length), i % shared.length];
    const cells = new Cells(this.app, {
      title: 'Ranks by step', testid: 'ranks-grid', rows: ranks.map((r) => r.name),
      height: Math.max(70, Math.min(640, ranks.length * (ranks.length > 24 ? 12 : 26))) + 26,
      columns: shared.length, label: (c) => String(shared[c].number), mark: () => '',
      value: (row, c) => (at(row, c) === undefined ? null : Math.sqrt(at(row, c) / most)),
      tip: (i) => {
        const [row, c] = item(i), part = shared[c].at[row];
        return [`Step ${shared[c].number} · ${ranks[row].name}`,
          at(row, c) === undefined ? 'no collective that can be compared'
            : `arrives up to ${ns(at(row, c))} after the first rank`,
          part ? `the step takes ${formatExact(part.exact)}` : 'not on this rank'];
      },
      act: (i) => {
        const [row, c] = item(i), part = shared[c].at[row];
        if (part) this.pages.jump({ slice: part.slice, from: part.ts, to: part.ts + part.exact });
      },
    });
    return section('Who the others wait for',
      'How much later than the first rank each one comes to the collectives of '
      + 'a step; a click leads to the time line', [],
      legend(this.app,
        [{ name: `later (full colour: ${ns(most)})`, colour: 6 },
          { name: 'with the first', colour: 'idle' },
          { name: 'blank: what can be compared differs by less than the error', colour: 'line' }]),
      cells.canvas);
  }

  skew(shared, what, colour) {
    return section(`Skew of ${what}s`, `From the first ${what} of a step to the last`, [],
      new Bars(this.app, {
      title: `Skew of ${what}s`, height: 140, testid: `ranks-${what}`, n: shared.length,
      parts: [{ colour }], value: (i) => shared[i][`${what}_ns`],
      label: (i) => String(shared[i].number),
      act: (i) => this.pages.jump({ from: shared[i].first, to: shared[i].last }),
      tip: (i) => [`Step ${shared[i].number}`, `begins differ by ${ns(shared[i].begin_ns)}`,
        `ends differ by ${ns(shared[i].end_ns)}`, `durations differ by ${ns(shared[i].spread_ns)}`],
    }).canvas);
  }

  byRank(ranks, shared, kinds) {
    const rows = ranks.map((rank, r) => {
      const durations = rank.steps.map((s) => s.dur), total = durations.reduce((a, b) => a + b, 0)
        || 1, end = rank.steps.at(-1);
      return {
        ...rank, from: rank.steps[0].ts, to: end.ts + end.exact, count: durations.length,
        median_ns: median(durations), max_ns: greatest(durations),
        slowest: shared.filter((s) => s.worst && s.worst === s.at[r]).length / shared.length,
        late_ns: median(shared.filter((s) => s.at[r]).map((s) => Number(s.at[r].ts - s.first))),
        works: kinds.map((k) => rank.steps.reduce((sum, s) => sum + s.works[k.at], 0) / total),
      };
    });
    return tableSection(this.app, 'By rank', 'ranks-table',
      [leading('rank', (r) => r.name, (r) => this.pages.jump(r)),
        ...numbers('steps:count, median:median_ns, longest:max_ns'),
        share(this.app, `${this.word} of its step`, (r) => r.slowest, 6),
        ...numbers('begins late by:late_ns'),
      ...kinds.map((k, i) => number(k.name, (r) => r.works[i], percent))], rows,
        { aside: 'Late: median against the first rank of each step' });
  }

  byStep(ranks, shared) {
    const name = new Map(ranks.map((r) => [r.row, r.name]));
    return tableSection(this.app, 'By step', 'ranks-steps',
      [leading('step', (s) => String(s.number),
        (s) => this.pages.jump({ from: s.first, to: s.last }),
          { number: true, key: (s) => BigInt(s.number) }),
      ...numbers('ranks, middle:middle_ns, begins differ by:begin_ns, ends differ '
        + 'by:end_ns, durations differ by:spread_ns'),
        ...(shared.some((s) => s.late_ns !== undefined) ? numbers('arrives late by:late_ns') : []),
          words(this.word, (s) => (s.worst ? name.get(s.worst.row) : ''))], shared);
  }
}
