// Steps: one bar per training step, divided by kind of work, for each track.

import { Bars, figures, ns, percent, symbolBox } from './charts.js';
import { btn, el } from './dom.js';
import { leading, legend, number, section, tableSection, words } from './page_parts.js';
import { formatCount, formatExact, formatSeconds } from './time.js';

// The order and the colours of `stave plot steps`.
const WORK = [
  ['forward', 0], ['backward', 5], ['optimizer', 2], ['comm', 4], ['copy', 3], ['data', 1], ['checkpoint', 6], ['other', 7], ['idle', 'idle'],
];
export const WORDS = { comm: 'communication', device_kernel: 'kernels', device_copy: 'copies', device_comm: 'communication' };
const NOTES = { first: 'slow first step', straggler: 'straggler', outlier: 'outlier' };
const CUT = 4;

/** The steps of /api/steps by row, with numbers for drawing; the texts keep the exact times. */
export async function loadSteps(pages) {
  const answer = await pages.app.transport.json('GET', '/api/steps');
  const kinds = WORK.map(([name, colour]) => ({ name, colour, at: answer.work.indexOf(name) })).filter((k) => k.at >= 0);
  const steps = answer.steps.map((s) => ({
    ...s, ts: BigInt(s.ts), exact: BigInt(s.dur), dur: Number(s.dur), works: kinds.map((k) => Number(s.work[k.at])), devices: s.device.map(Number),
  }));
  const tracks = new Map();
  for (const step of steps) {
    if (!tracks.has(step.row)) tracks.set(step.row, []);
    tracks.get(step.row).push(step);
  }
  return { marker: answer.marker, median: answer.median, limit: answer.limit, device: answer.device, more: answer.more, kinds, steps, tracks };
}

/** "training (pid 1) · trainer" */
export function trackName(app, row) {
  const group = app.trace.rows.find((r) => r.id === row), owner = group && app.trace.groups.find((g) => g.id === group.group);
  return owner && owner.name !== app.rowName(row) ? `${owner.name} · ${app.rowName(row)}` : app.rowName(row);
}

export class StepsPage {
  constructor(pages) {
    this.pages = pages;
    this.app = pages.app;
  }

  load() {
    return loadSteps(this.pages);
  }

  build(data) {
    this.longest = data.steps.reduce((most, s) => Math.max(most, s.dur), 0);
    const outliers = data.steps.filter((s) => s.note === 'outlier').length;
    const head = figures([
      ['Steps', formatCount(data.steps.length), data.more ? `and ${formatCount(data.more)} more` : data.tracks.size > 1 ? `on ${data.tracks.size} tracks` : ''],
      ['Median', ns(data.median)], ['Longest', ns(this.longest)],
      ['Outliers', formatCount(outliers), `longer than ${ns(data.limit)}`],
      ['Marker', data.marker],
    ], 'steps-figures');
    return [head, this.charts(data), this.table(data)];
  }

  charts(data) {
    const median = Number(data.median), limit = Number(data.limit), total = data.steps.reduce((sum, s) => sum + s.dur, 0) || 1;
    const kinds = data.kinds.map((k, i) => ({ ...k, i, sum: data.steps.reduce((sum, s) => sum + s.works[i], 0) })).filter((k) => k.sum > 0);
    const cap = median && this.longest > median * CUT ? Math.max(limit * 1.15, median * 2) : 0, several = data.tracks.size > 1;
    const bars = [...data.tracks].map(([row, steps]) => this.chart(data, row, steps, kinds, cap, several));
    const highest = () => Math.max(...bars.map((b) => b.highest));
    for (const b of bars) b.shared = highest;
    const entries = kinds.map((k) => ({ name: WORDS[k.name] || k.name, colour: k.colour, aside: percent(k.sum / total) }));
    const toggle = (i, on) => {
      for (const b of bars) { if (on) b.off.delete(i); else b.off.add(i); b.measure(); }
      for (const b of bars) b.draw();
    };
    const tools = [];
    if (cap) {
      const whole = btn('Whole bars', () => {
        const on = whole.getAttribute('aria-pressed') !== 'true';
        whole.setAttribute('aria-pressed', String(on));
        for (const b of bars) { b.cap = on ? 0 : cap; b.draw(); }
      }, { 'aria-pressed': 'false', title: 'Scale to the longest step, or cut bars that are far longer than the others' });
      tools.push(whole);
    }
    const marks = ['outlier', 'first', 'straggler'].filter((note) => data.steps.some((s) => s.note === note)).map((note) => ({ name: NOTES[note], box: symbolBox(this.app, note) }));
    const device = data.device.map((name, i) => ({ name: `${WORDS[name]} on the device`, colour: [2, 3, 4][i], used: data.steps.some((s) => s.devices[i] > 0) })).filter((d) => d.used);
    const below = el('div', { class: 'legends' }, legend(this.app, entries, toggle), marks.length ? legend(this.app, marks) : null, device.length ? legend(this.app, device) : null);
    const multiples = bars.map((b, i) => (several ? el('div', { class: 'multiple' }, el('h3', { text: trackName(this.app, [...data.tracks.keys()][i]) }), b.canvas) : b.canvas));
    const most = Math.max(...[...data.tracks.values()].map((s) => s.length));
    return section('Time by kind of work', { aside: [most > 450 ? 'a bar is the longest of neighbouring steps' : '', cap ? 'bars with a gap are cut, their parts in proportion' : '', 'a click leads to the time line'].filter(Boolean).join('; ').replace(/^./, (c) => c.toUpperCase()), tools, testid: 'steps-chart' }, below, ...multiples);
  }

  chart(data, row, steps, kinds, cap, several) {
    const { app } = this, name = trackName(app, row), median = Number(data.median), limit = Number(data.limit);
    const under = data.device.map((word, i) => ({ colour: [2, 3, 4][i], share: (k) => (steps[k].dur ? steps[k].devices[i] / steps[k].dur : 0), used: data.steps.some((s) => s.devices[i] > 0) })).filter((u) => u.used);
    return new Bars(app, {
      label: `Steps of ${name}`, help: 'Arrow keys choose a step, Enter shows it on the time line', height: (several ? 132 : 300) + under.length * 9, testid: 'steps-bars',
      bars: {
        n: steps.length, columns: Math.max(...[...data.tracks.values()].map((s) => s.length)), parts: kinds.map((k) => ({ name: k.name, colour: k.colour })), cap, under,
        value: (i, p) => steps[i].works[kinds[p].i], total: (i) => steps[i].dur, label: (i) => String(steps[i].number), mark: (i) => steps[i].note || null,
        limits: [{ value: median, text: 'median', colour: 'muted' }, ...(limit < this.longest ? [{ value: limit, text: 'outliers', colour: 'mark' }] : [])],
        tip: (i) => this.tip(steps[i], kinds, data, several ? name : ''), act: (i) => this.go(steps[i]),
      },
    });
  }

  tip(step, kinds, data, name) {
    const lines = [`${formatExact(step.exact)} from ${formatSeconds(step.ts - this.app.first)}`];
    if (name) lines.push(name);
    for (const k of kinds) if (step.works[k.i] > 0) lines.push(`${WORDS[k.name] || k.name}: ${ns(step.works[k.i])} · ${percent(step.works[k.i] / (step.dur || 1))}`);
    data.device.forEach((word, i) => { if (step.devices[i] > 0) lines.push(`${WORDS[word]} on the device: ${ns(step.devices[i])}`); });
    return { head: `Step ${step.number}${step.note ? ` · ${NOTES[step.note]}` : ''}`, lines };
  }

  go(step) {
    return this.pages.jump({ slice: step.slice, from: step.ts, to: step.ts + step.exact });
  }

  table(data) {
    const { app } = this, several = data.tracks.size > 1;
    const columns = [leading('step', (s) => String(s.number), (s) => () => this.go(s), { number: true, key: (s) => BigInt(s.number) })];
    if (several) columns.push(words('track', (s) => trackName(app, s.row)));
    columns.push(number('begins', (s) => s.ts, (v) => formatSeconds(v - app.first)), number('duration', (s) => s.exact, ns));
    data.kinds.forEach((k, i) => { if (data.steps.some((s) => s.works[i] > 0)) columns.push(number(WORDS[k.name] || k.name, (s) => BigInt(s.work[k.at]), ns)); });
    data.device.forEach((word, i) => { if (data.steps.some((s) => s.devices[i] > 0)) columns.push(number(`device: ${WORDS[word]}`, (s) => BigInt(s.device[i]), ns)); });
    columns.push(words('note', (s) => NOTES[s.note] || ''));
    return tableSection(app, 'Steps', columns, data.steps, { testid: 'steps-table', aside: 'Parts add up to the duration' });
  }
}
