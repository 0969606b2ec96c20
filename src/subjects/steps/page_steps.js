// Steps: one bar per training step, divided by kind of work, for each track. The numbers of `stave
// steps`.

import { Bars, figures, ns, percent, symbolBox } from './charts.js';
import { btn, el } from './dom.js';
import { leading, legend, number, Page, press, section, tableSection,
  words } from './page_parts.js';
import { formatCount, formatExact, formatSeconds } from './time.js';

// The order and the colours of `stave plot steps`.
const WORK = { forward: 0, backward: 5, optimizer: 2, comm: 4, copy: 3, data: 1, checkpoint: 6,
  disk: 3, other: 7, idle: 'idle', untraced: 'untraced' };
const DEVICE = [2, 3, 4];
const WORDS = { comm: 'communication', untraced: 'not traced', device_kernel: 'kernels',
  device_copy: 'copies', device_comm: 'communication' };
const NOTES = { first: 'slow first step', straggler: 'straggler', outlier: 'outlier' };
const word = (name) => WORDS[name] || name;

/** /api/steps by row: doubles for drawing, exact times for texts. `kinds` are those of which
 * there is any. */
export async function loadSteps(pages) {
  const answer = await pages.app.transport.json('GET', '/api/steps'), tracks = new Map();
  if (!answer.steps.length) throw new Error('The trace has no steps.');
  const steps = answer.steps.map((s) =>
    ({ ...s, ts: BigInt(s.ts), exact: BigInt(s.dur), dur: Number(s.dur), works: s.work.map(Number),
      devices: s.device.map(Number) }));
  for (const step of steps) {
    if (!tracks.has(step.row)) tracks.set(step.row, []);
    tracks.get(step.row).push(step);
  }
  const kinds = Object.keys(WORK)
    .map((name) => ({ name: word(name), colour: WORK[name], at: answer.work.indexOf(name) }))
    .filter((k) => steps.some((s) => s.works[k.at] > 0));
  const devices =
    answer.device.map((name, at) =>
    ({ name: `${word(name)} on the device`, colour: DEVICE[at], at }))
    .filter((d) => steps.some((s) => s.devices[d.at] > 0));
  return { marker: answer.marker, median: Number(answer.median), limit: Number(answer.limit),
    more: answer.more, kinds, devices, steps, tracks };
}

/** "training (pid 1) · trainer" */
export function trackName({ trace }, id) {
  const row = trace.rows.find((r) => r.id === id),
    group = trace.groups.find((g) => row && g.id === row.group);
  return [trace.compared && row ? 'AB'[row.side] : '', group && group.name !== row.name ? group.name
    : '', row ? row.name : `row ${id}`].filter(Boolean).join(' · ');
}

export class StepsPage extends Page {
  load() {
    return loadSteps(this.pages);
  }

  build(data) {
    const { steps, tracks, limit } = data, outliers = steps.length > 3
      ? steps.filter((s) => s.dur > limit).length : 0;
    this.longest = steps.reduce((most, s) => Math.max(most, s.dur), 0);
    return [figures('steps-figures', [
      ['Steps', formatCount(steps.length), data.more ? `and ${formatCount(data.more)} more`
        : tracks.size > 1 ? `on ${tracks.size} tracks` : ''],
      ['Median', ns(data.median)], ['Longest', ns(this.longest)],
      ['Outliers', formatCount(outliers), `longer than ${ns(limit)}`], ['Marker', data.marker],
    ]), this.charts(data), this.table(data)];
  }

  charts(data) {
    const { app } = this, { steps, tracks, kinds, devices, median, limit } = data,
      total = steps.reduce((sum, s) => sum + s.dur, 0) || 1;
    const cap = median && this.longest > median * 4 ? Math.max(limit * 1.15, median * 2) : 0,
      several = tracks.size > 1;
    const most = Math.max(...[...tracks.values()].map((s) => s.length)),
      bars = [...tracks].map(([row, own]) => this.chart(data, row, own, { cap, several, most }));
    const highest = () => Math.max(...bars.map((b) => b.highest)),
      redraw = (act) => { bars.forEach(act); bars.forEach((b) => b.draw()); };
    for (const b of bars) b.shared = highest;
    const toggle = (i, on) =>
      redraw((b) => { if (on) b.off.delete(i); else b.off.add(i); b.measure(); });
    const whole = btn('Whole bars',
      () => { const on = press(whole); redraw((b) => { b.cap = on ? 0 : cap; }); },
        { 'aria-pressed': 'false', title: 'Scale to the longest step' });
    const share = (k) => percent(steps.reduce((sum, s) => sum + s.works[k.at], 0) / total);
    const legends = el('div', { class: 'legends' },
      legend(app, kinds.map((k) => ({ ...k, aside: share(k) })), toggle), legend(app, devices),
      legend(app, Object.keys(NOTES).filter((note) => steps.some((s) => s.note === note))
        .map((note) => ({ name: NOTES[note], box: symbolBox(app, note) }))));
    const words = [most > 450 ? 'a bar is the longest of neighbouring steps' : '',
      cap ? 'bars with a gap are cut, their parts in proportion' : '',
        'a click leads to the time line'].filter(Boolean).join('; ');
    return section('Time by kind of work', words[0].toUpperCase() + words.slice(1),
      cap ? [whole] : [], legends,
      ...bars.map((b) =>
        (several ? el('div', { class: 'multiple' }, el('h3', { text: b.name }), b.canvas)
          : b.canvas)));
  }

  chart({ kinds, devices, median, limit }, row, steps, { cap, several, most }) {
    const name = trackName(this.app, row),
      under = devices.map((d) =>
      ({ ...d, share: (i) => steps[i].devices[d.at] / (steps[i].dur || 1) }));
    return new Bars(this.app, {
      title: `Steps of ${name}`, name, height: (several ? 132 : 300) + under.length * 9,
      testid: 'steps-bars', n: steps.length, columns: most, parts: kinds, cap, under,
      value: (i, p) => steps[i].works[kinds[p].at], label: (i) => String(steps[i].number),
      mark: (i) => steps[i].note,
      limits: [{ value: median, text: 'median', colour: 'muted' },
        ...(limit < this.longest ? [{ value: limit, text: 'outliers', colour: 'mark' }] : [])],
      tip: (i) => this.tip(steps[i], kinds, devices, several ? name : ''),
      act: (i) => this.go(steps[i]),
    });
  }

  tip(step, kinds, devices, name) {
    return [`Step ${step.number}${step.note ? ` · ${NOTES[step.note]}` : ''}`,
      `${formatExact(step.exact)} from ${formatSeconds(step.ts - this.app.zero)}`, name,
      ...kinds.map((k) => step.works[k.at]
        && `${k.name}: ${ns(step.works[k.at])} · ${percent(step.works[k.at] / (step.dur || 1))}`),
          ...devices.map((d) => step.devices[d.at]
          && `${d.name}: ${ns(step.devices[d.at])}`)].filter(Boolean);
  }

  /** To a step, and from there to the others of its track. */
  go(step) {
    const list = this.data.steps.filter((s) => s.row === step.row)
      .map((s) => ({ slice: s.slice, from: s.ts, dur: s.exact }));
    return this.pages.instances('Steps', list, (one) => one.slice === step.slice);
  }

  table({ steps, tracks, kinds, devices }) {
    const { app } = this;
    return tableSection(app, 'Steps', 'steps-table', [
      leading('step', (s) => String(s.number), (s) => this.go(s),
        { number: true, key: (s) => BigInt(s.number) }),
        ...(tracks.size > 1 ? [words('track', (s) => trackName(app, s.row))] : []),
      number('begins', (s) => s.ts, (v) => formatSeconds(v - app.zero)),
      number('duration', (s) => s.exact, ns),
      ...kinds.map((k) => number(k.name, (s) => BigInt(s.work[k.at]), ns)),
      ...devices.map((d) => number(d.name, (s) => BigInt(s.device[d.at]), ns)),
      words('note', (s) => NOTES[s.note]),
    ], steps, { aside: 'Parts add up to the duration' });
  }
}
