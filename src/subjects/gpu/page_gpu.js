// GPU: how long devices were busy, what they waited for, and which kernels took the time. The
// numbers of `stave report gpu`.

import { Bars, figures, ns, percent, strip } from './charts.js';
import { el, link } from './dom.js';
import { CLASSES, leading, legend, numbers, Page, section, share, tableSection,
  words } from './page_parts.js';
import { formatCount, formatExact, formatSeconds } from './time.js';

// of the waits of the host those of all pages
const CAUSES = { ...CLASSES, launch: 0, sync: 5, wait: 7, copy: 'neutral', comm: 'muted',
  device: 'idle' };
const PARTS = [['compute_ns', 'computing', 2], ['communication_ns', 'communicating', 4],
  ['copy_ns', 'copying', 3], ['host_ns', 'host only', 1],
    ['idle_ns', 'idle', 'idle']].map(([key, name, colour]) => ({ key, name, colour }));
const ODD = { work_without_launch: 'without a launch',
  launches_without_work: 'launches without work', work_before_launch: 'before its launch',
    unfinished: 'without an end' };
const TIMES = 'count, total:total_ns, mean:mean_ns, p50:p50_ns, p99:p99_ns, max:max_ns';

export class GpuPage extends Page {
  load() {
    return this.pages.report('gpu');
  }

  go(from, dur) {
    return this.pages.jump({ from: BigInt(from), to: BigInt(from) + BigInt(dur) });
  }

  build({ summary, device, stream, gap, kernel, copy, memory, step }) {
    const { app } = this, sum = (key) => device.reduce((all, d) => all + d[key], 0),
      odd = Object.keys(ODD).filter((key) => summary[key] > 0);
    const used = memory.filter((m) => m.allocations || m.releases), several = device.length > 1;
    return [figures('gpu-figures', [
      ['Devices', formatCount(summary.devices)],
      ['Busy', percent(sum('busy_ns') / (sum('span_ns') || 1)), `of ${ns(sum('span_ns'))}`],
      ['Kernels', formatCount(sum('kernels')), kernel.length < 500
        ? `${kernel.length} ${kernel.length === 1 ? 'name' : 'names'}` : ''],
      ['Copies and fills', formatCount(sum('copies') + sum('fills'))],
      device[0]?.launch_p50_ns !== undefined && ['Launch to start', ns(device[0].launch_p50_ns),
        `p99 ${ns(device[0].launch_p99_ns)}`],
      odd.length && ['Work', odd.map((key) => `${formatCount(summary[key])} ${ODD[key]}`)
        .join(', ')],
    ]), this.devices(device, gap),
    gap.length && tableSection(app, 'Idle time by cause', 'gpu-gaps',
      [...(several ? [words('device', (g) => g.device)] : []), this.cause(device),
        ...numbers('gaps, total:total_ns'), share(app, 'of the span', (g) => g.share, 1),
          ...numbers('longest:max_ns'), words('meaning', (g) => g.meaning)], gap,
          { sort: several ? 3 : 2, aside: 'A cause leads to its longest gap' }),
    tableSection(app, 'Kernels by time', 'gpu-kernels',
      [leading('kernel', (k) => k.kernel, (k) => this.longest(k.kernel)),
        share(app, 'of all kernels', (k) => k.share, 2), ...numbers(TIMES)], kernel,
          {
            sort: 3,
            aside: `${kernel.length >= 500 ? 'The first 500; a' : 'A'} `
              + 'name leads to its longest run',
          }),
    step.length && this.steps(step),
    copy.length && tableSection(app, 'Copies and fills', 'gpu-copies',
      [words('direction', (c) => c.direction),
        ...numbers(`bytes, bandwidth:bytes_per_second, ${TIMES}`)], copy, { sort: 4 }),
    tableSection(app, 'Streams', 'gpu-streams',
      [leading('stream', (s) => `${s.device}, stream ${s.stream}`,
        (s) => this.go(s.first_ns, BigInt(s.last_ns) - BigInt(s.first_ns))),
          ...numbers('work, busy for:busy_ns'),
            share(app, "of the device's span", (s) => s.utilisation, 2)], stream, { sort: 2 }),
    used.length && tableSection(app, 'Memory', 'gpu-memory',
      [words('device', (m) => m.device),
        ...numbers('allocations, releases, released without allocation:unknown_releases, '
          + 'peak:peak_bytes, never released:live, their bytes:live_bytes')],
            used)].filter(Boolean);
  }

  devices(device, gap) {
    const { app } = this,
      hidden = (v) => (v === undefined ? '' : `${percent(v)} hidden behind computing`);
    const boxes = device.map((d) => el('div', { class: 'device' },
      el('h3', {}, link(d.device, () => this.go(d.first_ns, d.span_ns), 'Show on the time line'),
        el('span', { class: 'aside',
          text: ` ${percent(d.utilisation)} busy in ${ns(d.span_ns)}, at most `
            + `${d.concurrency_max} `
              + `${d.concurrency_max === 1 ? 'kernel' : 'kernels'} at once` })),
      strip(app, `Time of ${d.device}`,
        [{ name: 'busy', value: d.busy_ns, colour: 2,
          text: `${ns(d.busy_ns)} · ${percent(d.utilisation)}` },
        ...gap.filter((g) => g.device === d.device)
          .map((g) => ({ name: `idle: ${g.cause}`, value: g.total_ns, colour: CAUSES[g.cause]
            ?? 'idle', text: `${ns(g.total_ns)} in ${formatCount(g.gaps)} gaps, ${g.meaning}` }))],
              'gpu-strip'),
      el('ul', { class: 'meters' },
        ...[['computing', d.compute_ns, 2, ''], ['copying', d.copy_ns, 3, hidden(d.copy_overlap)],
          ['communicating', d.communication_ns, 4, hidden(d.communication_overlap)]].filter(
            ([, v]) => v > 0).map(([name, value, colour, aside]) => {
        const bar = strip(app, name,
          [{ name: '', value, colour, text: ns(value) },
            { name: '', value: d.span_ns - value, colour: 'idle', text: ns(d.span_ns - value) }]);
        bar.classList.add('thin');
        return el('li', {}, el('span', { text: name }), bar,
          el('span', { text: `${ns(value)} · ${percent(value / (d.span_ns || 1))}` }),
            el('span', { class: 'aside', text: aside }));
      }))));
    const causes = Object.keys(CAUSES).filter((c) => gap.some((g) => g.cause === c))
      .map((c) => ({ name: `idle: ${c}`, colour: CAUSES[c] }));
    return section('Devices', 'Busy and idle add up; what it was busy with may overlap', [],
      ...boxes, legend(app, [{ name: 'busy', colour: 2 }, ...causes]));
  }

  longest(name) {
    const quoted = this.pages.quote(name);
    const sql = `select id, ts, dur, dur as weight from kernel where name = ${quoted}`;
    return this.pages.instances(name, sql);
  }

  /** Why a device was idle: leads to the gaps with such a part, the longest part first. */
  cause(device) {
    return leading('idle for', (g) => g.cause,
      (g) => this.pages.instances(`${g.device} idle: ${g.cause}`,
      'select next_id as id, ts, dur, part_ns as weight from gpu_gap where '
        + `cause = ${this.pages.quote(g.cause)} and device = `
          + `${device.findIndex((d) => d.device === g.device)}`));
  }

  steps(step) {
    const { app } = this, parts = PARTS.filter((p) => step.some((s) => s[p.key] > 0));
    const bars = new Bars(app, {
      title: 'Steps by what the GPU did', height: 230, testid: 'gpu-steps', n: step.length, parts,
      value: (i, p) => step[i][parts[p].key], label: (i) => String(step[i].step),
      act: (i) => this.go(step[i].start_ns, step[i].dur_ns),
      tip: (i) => [`Step ${step[i].step} · device busy ${percent(step[i].utilisation)}`,
        `${formatExact(BigInt(step[i].dur_ns))} from `
          + `${formatSeconds(BigInt(step[i].start_ns) - app.zero)}`,
          ...parts.map((p) => `${p.name}: ${ns(step[i][p.key])}`)],
    });
    return section('Steps', `${step.length >= 500 ? 'The first 500; p' : 'P'}arts add up; a click `
      + 'leads to the time line', [], legend(app, parts), bars.canvas);
  }
}
