// Ranks: the same step on every rank, how far apart they begin and end, and who is late.

import { Bars, Cells, figures, ns, percent } from './charts.js';
import { el } from './dom.js';
import { leading, legend, number, section, share, tableSection, words } from './page_parts.js';
import { loadSteps, trackName, WORDS } from './page_steps.js';
import { formatCount, formatExact } from './time.js';

const FULL = 0.5; // so much longer or shorter than the middle is the strongest colour

function median(list) {
  const sorted = [...list].sort((a, b) => a - b), n = sorted.length;
  return n ? (n % 2 ? sorted[n >> 1] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2) : 0;
}

export class RanksPage {
  constructor(pages) {
    this.pages = pages;
    this.app = pages.app;
  }

  async load() {
    const steps = await loadSteps(this.pages);
    const numbers = (await this.pages.sql("select str_value from metadata where name glob '*/rank' order by id")).map((row) => row[0]);
    return this.arrange(steps, numbers);
  }

  /** Steps by number and rank. A file has one rank; files are merged in the order of their ranks, so are their rows. */
  arrange(steps, numbers) {
    const rows = [...steps.tracks.keys()], known = numbers.length === rows.length;
    const ranks = rows.map((row, i) => ({ row, name: known ? `rank ${numbers[i]} · ${trackName(this.app, row)}` : trackName(this.app, row), steps: steps.tracks.get(row) }));
    const byNumber = new Map();
    ranks.forEach((rank, r) => rank.steps.forEach((step) => {
      if (!byNumber.has(step.number)) byNumber.set(step.number, []);
      byNumber.get(step.number)[r] = step;
    }));
    const shared = [...byNumber].map(([number, at]) => ({ number, at })).filter((s) => s.at.filter(Boolean).length > 1).sort((a, b) => (BigInt(a.number) < BigInt(b.number) ? -1 : 1));
    for (const s of shared) this.measure(s);
    return { steps, ranks, shared, kinds: steps.kinds };
  }

  measure(s) {
    const present = s.at.filter(Boolean);
    const span = (values) => Number(values.reduce((a, b) => (a > b ? a : b)) - values.reduce((a, b) => (a < b ? a : b)));
    s.middle = median(present.map((step) => step.dur));
    s.beginSkew = span(present.map((step) => step.ts));
    s.endSkew = span(present.map((step) => step.ts + step.exact));
    s.spread = span(present.map((step) => step.exact));
    s.slowest = present.reduce((a, b) => (b.dur > a.dur ? b : a));
    s.first = present.reduce((a, b) => (b.ts < a.ts ? b : a)).ts;
    s.last = present.reduce((a, b) => (b.ts + b.exact > a ? b.ts + b.exact : a), 0n);
  }

  build(data) {
    const { ranks, shared } = data, worst = shared.reduce((a, b) => (!a || b.spread > a.spread ? b : a), null);
    const head = figures([
      ['Ranks', formatCount(ranks.length)], ['Steps in common', formatCount(shared.length)],
      ['Begin skew', ns(median(shared.map((s) => s.beginSkew))), 'median'], ['Difference of durations', ns(median(shared.map((s) => s.spread))), 'median'],
      worst ? ['Most', ns(worst.spread), `in step ${worst.number}`] : null,
      ['Stragglers', formatCount(ranks.reduce((sum, r) => sum + r.steps.filter((s) => s.note === 'straggler').length, 0))],
    ], 'ranks-figures');
    if (!shared.length) return [head, el('p', { class: 'hint', text: 'No step occurs on two ranks.' })];
    return [head, this.grid(data), this.skew(data), this.byRank(data), this.byStep(data)];
  }

  grid(data) {
    const { app } = this, { ranks, shared } = data, at = (i) => [Math.floor(i / shared.length), i % shared.length];
    const step = (row, c) => shared[c].at[row];
    const cells = new Cells(app, {
      label: 'Ranks by step', help: 'Arrow keys choose a step of a rank, Enter shows it on the time line', height: Math.max(70, Math.min(640, ranks.length * (ranks.length > 24 ? 12 : 26))) + 26, testid: 'ranks-grid',
      cells: {
        rows: ranks.map((r) => r.name), columns: shared.length, label: (c) => String(shared[c].number), mark: (row, c) => (step(row, c) && step(row, c).note === 'straggler' ? 'straggler' : null),
        value: (row, c) => { const s = step(row, c); return s ? Math.max(-1, Math.min(1, (s.dur - shared[c].middle) / ((shared[c].middle || 1) * FULL))) : null; },
        tip: (i) => { const [row, c] = at(i), s = step(row, c); return s ? { head: `Step ${shared[c].number} · ${ranks[row].name}`, lines: [formatExact(s.exact), `${percent(s.dur / (shared[c].middle || 1) - 1)} against the middle rank`, `begins ${ns(s.ts - shared[c].first)} after the first rank`, ...(s.note ? [s.note] : [])] } : { head: `Step ${shared[c].number}`, lines: ['not on this rank'] }; },
        act: (i) => { const [row, c] = at(i), s = step(row, c); if (s) this.pages.jump({ slice: s.slice, from: s.ts, to: s.ts + s.exact }); },
      },
    });
    return section('Each step on each rank', { testid: 'ranks-chart', aside: 'Against the middle rank of the step; a click leads to the time line' },
      legend(app, [{ name: 'longer (full colour: by half or more)', colour: 6 }, { name: 'shorter', colour: 0 }, { name: 'as the others', colour: 'idle' }]), cells.canvas);
  }

  skew(data) {
    const { shared } = data, parts = [{ name: 'from the first to the last begin', colour: 1 }, { name: 'from the first to the last end', colour: 4 }];
    const chart = (key, part) => new Bars(this.app, {
      label: `Skew: ${part.name}`, help: 'Arrow keys choose a step, Enter shows it on all ranks', height: 140, testid: `ranks-${key}`,
      bars: { n: shared.length, parts: [part], value: (i) => shared[i][key], label: (i) => String(shared[i].number), act: (i) => this.pages.jump({ from: shared[i].first, to: shared[i].last }),
        tip: (i) => ({ head: `Step ${shared[i].number}`, lines: [`begins differ by ${ns(shared[i].beginSkew)}`, `ends differ by ${ns(shared[i].endSkew)}`, `durations differ by ${ns(shared[i].spread)}`] }) },
    });
    return el('div', { class: 'pair' }, section('Skew of begins', { aside: parts[0].name, wide: false }, chart('beginSkew', parts[0]).canvas), section('Skew of ends', { aside: parts[1].name, wide: false }, chart('endSkew', parts[1]).canvas));
  }

  byRank(data) {
    const { app } = this, { ranks, shared, kinds } = data;
    const rows = ranks.map((rank, r) => {
      const durations = rank.steps.map((s) => s.dur), total = durations.reduce((a, b) => a + b, 0);
      return { ...rank, total, median: median(durations), longest: Math.max(...durations), slowest: shared.filter((s) => s.slowest === s.at[r]).length, late: median(shared.filter((s) => s.at[r]).map((s) => Number(s.at[r].ts - s.first))), works: kinds.map((_, k) => rank.steps.reduce((sum, s) => sum + s.works[k], 0)) };
    });
    const used = kinds.map((k, i) => ({ ...k, i })).filter((k) => rows.some((r) => r.works[k.i] > 0));
    return tableSection(app, 'By rank', [
      leading('rank', (r) => r.name, (r) => () => this.pages.jump({ from: r.steps[0].ts, to: r.steps[r.steps.length - 1].ts + r.steps[r.steps.length - 1].exact })), number('steps', (r) => r.steps.length, String), number('median', (r) => r.median, ns), number('longest', (r) => r.longest, ns),
      share(app, 'slowest of its step', (r) => r.slowest / shared.length, (v) => percent(v, 0), 6), number('begins late by', (r) => r.late, ns),
      ...used.map((k) => number(WORDS[k.name] || k.name, (r) => (r.total ? r.works[k.i] / r.total : 0), percent)),
    ], rows, { testid: 'ranks-table', aside: 'Late: median against the first rank of each step' });
  }

  byStep(data) {
    const name = new Map(data.ranks.map((r) => [r.row, r.name]));
    return tableSection(this.app, 'By step', [
      leading('step', (s) => String(s.number), (s) => () => this.pages.jump({ from: s.first, to: s.last }), { number: true, key: (s) => BigInt(s.number) }), number('ranks', (s) => s.at.filter(Boolean).length, String), number('middle', (s) => s.middle, ns),
      number('begins differ by', (s) => s.beginSkew, ns), number('ends differ by', (s) => s.endSkew, ns), number('durations differ by', (s) => s.spread, ns), words('slowest', (s) => name.get(s.slowest.row)),
    ], data.shared, { testid: 'ranks-steps' });
  }
}
