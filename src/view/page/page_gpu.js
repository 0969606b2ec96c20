// GPU: how long devices were busy, what they waited for, and which kernels took the time. The numbers of `stave report gpu`.

import { amount, Bars, bytes, figures, ns, percent, strip } from './charts.js';
import { el } from './dom.js';
import { leading, legend, number, section, share, tableSection, words } from './page_parts.js';
import { formatCount, formatExact, formatSeconds } from './time.js';

const CAUSES = { launch: 1, sync: 4, data: 6, copy: 3, device: 7 };
const PARTS = [['compute_ns', 'computing', 2], ['communication_ns', 'communicating', 4], ['copy_ns', 'copying', 3], ['host_ns', 'host only', 1], ['idle_ns', 'idle', 'idle']];
const ODD = [['work_without_launch', 'without a launch'], ['launches_without_work', 'launches without work'], ['work_before_launch', 'before its launch'], ['unfinished', 'without an end']];
const quote = (text) => `'${text.replace(/'/g, "''")}'`;
const KERNEL = "category in ('kernel', 'gpu_kernel', 'Kernel')";

export class GpuPage {
  constructor(pages) {
    this.pages = pages;
    this.app = pages.app;
  }

  load() {
    return this.pages.report('gpu');
  }

  build(report) {
    const { summary, device, kernel } = report;
    const busy = device.reduce((sum, d) => sum + d.busy_ns, 0), span = device.reduce((sum, d) => sum + d.span_ns, 0);
    const odd = ODD.filter(([key]) => summary[key] > 0).map(([key, text]) => `${formatCount(summary[key])} ${text}`);
    const head = figures([
      ['Devices', formatCount(summary.devices)], ['Busy', percent(span ? busy / span : 0), `of ${ns(span)}`],
      ['Kernels', formatCount(device.reduce((sum, d) => sum + d.kernels, 0)), kernel.length < 500 ? `${formatCount(kernel.length)} names` : ''],
      ['Copies and fills', formatCount(device.reduce((sum, d) => sum + d.copies + d.fills, 0))],
      device.length && device[0].launch_p50_ns !== undefined ? ['Launch to start', ns(device[0].launch_p50_ns), `p99 ${ns(device[0].launch_p99_ns)}`] : null,
      odd.length ? ['Inconsistent', odd.join(', ')] : null,
    ], 'gpu-figures');
    return [head, this.devices(report), this.kernels(report), report.step.length ? this.steps(report) : null, report.copy.length ? this.copies(report) : null,
      this.streams(report), ...this.memory(report)].filter(Boolean);
  }

  /** Of each device: busy and idle by cause, which add up; then what it was busy with, which may overlap. */
  devices(report) {
    const { app } = this, used = new Set();
    const boxes = report.device.map((d) => {
      const gaps = report.gap.filter((g) => g.device === d.device);
      const parts = [{ name: 'busy', value: d.busy_ns, colour: 2, text: `${ns(d.busy_ns)} · ${percent(d.utilisation)}` },
        ...gaps.map((g) => ({ name: `idle: ${g.cause}`, value: g.total_ns, colour: CAUSES[g.cause] ?? 'idle', text: `${ns(g.total_ns)} in ${formatCount(g.gaps)} gaps, ${g.meaning}` }))];
      gaps.forEach((g) => used.add(g.cause));
      const first = BigInt(d.first_ns), facts = [
        ['computing', d.compute_ns, 2], ['copying', d.copy_ns, 3, d.copy_overlap !== undefined ? `${percent(d.copy_overlap)} hidden behind computing` : ''],
        ['communicating', d.communication_ns, 4, d.communication_overlap !== undefined ? `${percent(d.communication_overlap)} hidden behind computing` : ''],
      ].filter(([, value]) => value > 0);
      return el('div', { class: 'device' },
        el('h3', {}, el('button', { type: 'button', class: 'link', text: d.device, title: 'Show on the time line', onclick: () => this.pages.jump({ from: first, to: first + BigInt(d.span_ns) }) }),
          el('span', { class: 'aside', text: ` ${percent(d.utilisation)} busy in ${ns(d.span_ns)}, at most ${d.concurrency_max} ${d.concurrency_max === 1 ? 'kernel' : 'kernels'} at once` })),
        strip(app, parts, { label: `Time of ${d.device}`, testid: 'gpu-strip' }),
        el('ul', { class: 'meters' }, ...facts.map(([name, value, colour, aside]) => this.meter(name, value, d.span_ns, colour, aside))));
    });
    const idle = tableSection(app, 'Idle time by cause', [
      ...(report.device.length > 1 ? [words('device', (g) => g.device)] : []), words('idle for', (g) => g.cause), number('gaps', (g) => g.gaps, amount), number('total', (g) => g.total_ns, ns),
      share(app, 'of the span', (g) => g.share, percent, 1), number('longest', (g) => g.max_ns, ns), words('meaning', (g) => g.meaning),
    ], report.gap, { testid: 'gpu-gaps', sort: report.device.length > 1 ? 3 : 2 });
    return el('div', { class: 'group' }, section('Devices', { testid: 'gpu-devices', aside: 'Busy and idle add up to the time from the first to the last work' }, ...boxes,
      legend(app, [{ name: 'busy', colour: 2 }, ...Object.keys(CAUSES).filter((c) => used.has(c)).map((c) => ({ name: `idle: ${c}`, colour: CAUSES[c] }))])), report.gap.length ? idle : null);
  }

  meter(name, value, span, colour, aside) {
    const { app } = this, bar = strip(app, [{ name: '', value, colour, text: ns(value) }, { name: '', value: Math.max(0, span - value), colour: 'idle', text: ns(span - value) }], { label: name });
    bar.classList.add('thin');
    return el('li', {}, el('span', { text: name }), bar, el('span', { class: 'value', text: `${ns(value)} · ${percent(span ? value / span : 0)}` }), el('span', { class: 'aside', text: aside || '' }));
  }

  kernels(report) {
    const { app } = this;
    return tableSection(app, 'Kernels by time', [
      leading('kernel', (k) => k.kernel, (k) => () => this.longest(k.kernel)), share(app, 'of all kernels', (k) => k.share, percent, 2), number('count', (k) => k.count, amount), number('total', (k) => k.total_ns, ns),
      number('mean', (k) => k.mean_ns, ns), number('p50', (k) => k.p50_ns, ns), number('p99', (k) => k.p99_ns, ns), number('max', (k) => k.max_ns, ns),
    ], report.kernel, { testid: 'gpu-kernels', sort: 3, aside: `${report.kernel.length >= 500 ? 'The first 500; a' : 'A'} name leads to its longest run` });
  }

  async longest(name) {
    const [row] = await this.app.wait(this.pages.sql(`select id from slice where name = ${quote(name)} and ${KERNEL} order by dur desc limit 1`));
    if (row) await this.pages.jump({ id: row[0] });
  }

  steps(report) {
    const { app } = this, { step } = report;
    const parts = PARTS.map(([key, name, colour]) => ({ key, name, colour })).filter((p) => step.some((s) => s[p.key] > 0));
    const go = (s) => { const from = BigInt(s.start_ns); return this.pages.jump({ from, to: from + BigInt(s.dur_ns) }); };
    const bars = new Bars(app, {
      label: 'Steps by what the GPU did', help: 'Arrow keys choose a step, Enter shows it on the time line', height: 230, testid: 'gpu-steps',
      bars: {
        n: step.length, parts, value: (i, p) => step[i][parts[p].key], label: (i) => String(step[i].step), act: (i) => go(step[i]),
        tip: (i) => ({
          head: `Step ${step[i].step} · device busy ${percent(step[i].utilisation)}`,
          lines: [`${formatExact(BigInt(step[i].dur_ns))} from ${formatSeconds(BigInt(step[i].start_ns) - app.first)}`, ...parts.filter((p) => step[i][p.key] > 0).map((p) => `${p.name}: ${ns(step[i][p.key])}`)],
        }),
      },
    });
    return section('Steps', { testid: 'gpu-step-chart', aside: step.length >= 500 ? 'The first 500; a click leads to the time line' : 'Parts add up; a click leads to the time line' }, legend(app, parts), bars.canvas);
  }

  copies(report) {
    return tableSection(this.app, 'Copies and fills', [
      words('direction', (c) => c.direction), number('bytes', (c) => c.bytes, bytes), number('bandwidth', (c) => c.bytes_per_second, (v) => `${(v / 1e9).toFixed(2)} GB/s`), number('count', (c) => c.count, amount),
      number('total', (c) => c.total_ns, ns), number('mean', (c) => c.mean_ns, ns), number('p50', (c) => c.p50_ns, ns), number('p99', (c) => c.p99_ns, ns), number('max', (c) => c.max_ns, ns),
    ], report.copy, { testid: 'gpu-copies', sort: 4 });
  }

  streams(report) {
    const go = (s) => () => this.pages.jump({ from: BigInt(s.first_ns), to: BigInt(s.last_ns) });
    return tableSection(this.app, 'Streams', [
      leading('stream', (s) => `${s.device}, stream ${s.stream}`, go), number('work', (s) => s.work, amount), number('busy', (s) => s.busy_ns, ns), share(this.app, "of the device's span", (s) => s.utilisation, percent, 2),
    ], report.stream, { testid: 'gpu-streams', sort: 2 });
  }

  memory(report) {
    const rows = report.memory.filter((m) => m.allocations || m.releases), parts = [];
    if (rows.length) {
      parts.push(tableSection(this.app, 'Memory', [
        words('device', (m) => m.device), number('allocations', (m) => m.allocations, amount), number('releases', (m) => m.releases, amount), number('released without allocation', (m) => m.unknown_releases, amount),
        number('peak', (m) => m.peak_bytes, bytes), number('never released', (m) => m.live, amount), number('their bytes', (m) => m.live_bytes, bytes),
      ], rows, { testid: 'gpu-memory' }));
    }
    return parts;
  }
}
