// Operators: which operators, modules and phases the work of devices belongs to. The numbers of
// `stave report ops`.

import { figures, ns, percent, strip } from './charts.js';
import { btn, el } from './dom.js';
import {
  choice, leading, legend, numbers, Page, section, share, tableSection, words,
} from './page_parts.js';
import { formatCount } from './time.js';

const COLOURS = { forward: 0, backward: 5, optimizer: 2, other: 'idle' };
const NONE = '(none)';
const MOST = 500;
const GROUP = 'calls, on the host:host_ns, itself:host_self_ns, work:count, of devices:total_ns';

export class OpsPage extends Page {
  load() {
    return this.pages.report('ops');
  }

  build({ summary, phase, operator, module, kernel }) {
    const all = summary.kernels_ns + summary.copies_ns;
    const none = summary.work_without_operator;
    const [bar, place] = choice('Operators, modules or kernels', [
      { name: 'Operators', content: () => this.groups('operator', operator) },
      { name: 'Modules', content: () => this.groups('module', module) },
      { name: 'Kernels', content: () => this.kernels(kernel) },
    ]);
    return [
      figures('ops-figures', [
        ['Work of devices', ns(all), 'of all kernels, copies and fills'],
        ['Kernels', formatCount(summary.kernels), ns(summary.kernels_ns)],
        ['Copies and fills', formatCount(summary.copies), ns(summary.copies_ns)],
        ['Operators', formatCount(operator.filter((o) => o.operator).length)],
        ['Modules', formatCount(module.filter((m) => m.module).length)],
        none > 0 && ['Without an operator', formatCount(none), 'pieces of work'],
      ]),
      all > 0 && this.phases(phase),
      all > 0 && kernel.length > 0 && this.tree(kernel),
      el('div', { class: 'group' }, bar, place),
    ].filter(Boolean);
  }

  phases(phase) {
    const parts = phase.map((p) => ({
      name: p.phase, value: p.total_ns, colour: COLOURS[p.phase],
      text: `${ns(p.total_ns)} · ${percent(p.share)} · ${formatCount(p.count)} pieces of work`,
    }));
    return section('Phases', 'Work by what launched it', [],
      strip(this.app, 'Time by phase', parts, 'ops-phases'),
      legend(this.app, parts.map((p) => ({ ...p, aside: p.text }))));
  }

  /** Phase, module, operator, kernel: what holds most of each comes first and can be unfolded. */
  tree(kernel) {
    const keys = [(k) => k.phase, (k) => k.module || '(no module)',
      (k) => k.operator || '(no operator)', (k) => k.kernel];
    const whole = kernel.reduce((sum, k) => sum + k.total_ns, 0);
    const box = el('div', {
      class: 'op-tree', role: 'tree', 'data-testid': 'ops-tree',
      'aria-label': 'Work by phase, module, operator and kernel',
    });
    box.append(...this.branches(kernel, keys, 0, whole));
    const left = kernel.length >= MOST ? `Of the ${MOST} largest kinds of work. ` : '';
    const aside = `${left}A name unfolds; a kernel leads to its longest run`;
    return section('From phases to kernels', aside, [], box);
  }

  branches(rows, keys, depth, whole) {
    const by = new Map();
    for (const row of rows) {
      const key = keys[depth](row);
      if (!by.has(key)) by.set(key, []);
      by.get(key).push(row);
    }
    const sum = (list) => list.reduce((total, k) => total + k.total_ns, 0);
    return [...by].sort((a, b) => sum(b[1]) - sum(a[1])).map(([name, list], i) => this.branch(
      { name, list, time: sum(list), n: list.reduce((n, k) => n + k.count, 0) },
      keys, depth, whole, i === 0 && depth < 2,
    ));
  }

  branch({ name, list, time, n }, keys, depth, whole, open) {
    const last = depth === keys.length - 1, inner = el('div', { role: 'group' });
    const exact = () => [...new Set(list.map((k) => k.name))].slice(0, 20).join('\n');
    const row = el('button', {
      type: 'button', class: 'op-row', role: 'treeitem', 'aria-level': String(depth + 1),
      'aria-expanded': last ? null : 'false', title: last ? exact() : name,
    },
      el('span', { class: 'fold', text: last ? '·' : '▸' }),
      el('span', { class: 'label', text: name }),
      this.meter(time / (whole || 1), list[0].phase),
      el('span', { class: 'number', text: ns(time) }),
      el('span', { class: 'number', text: percent(time / (whole || 1)) }),
      el('span', { class: 'number muted', text: `${formatCount(n)} ×` }));
    row.style.paddingLeft = `${8 + depth * 18}px`;
    const unfold = (is) => {
      row.setAttribute('aria-expanded', String(is));
      row.firstChild.textContent = is ? '▾' : '▸';
      inner.hidden = !is;
      if (is && !inner.firstChild) inner.append(...this.branches(list, keys, depth + 1, whole));
    };
    inner.hidden = true;
    row.addEventListener('click', () => {
      if (last) this.showKernel(list[0]); else unfold(row.getAttribute('aria-expanded') !== 'true');
    });
    row.addEventListener('keydown', (event) => {
      if (last || !['ArrowRight', 'ArrowLeft'].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      unfold(event.key === 'ArrowRight');
    });
    if (open) unfold(true);
    return el('div', {}, row, inner);
  }

  meter(part, phase) {
    const bar = strip(this.app, 'share', [
      { name: '', value: part, colour: COLOURS[phase], text: percent(part) },
      { name: '', value: Math.max(0, 1 - part), colour: 'idle', text: '' },
    ]);
    bar.classList.add('thin');
    bar.removeAttribute('role');
    bar.setAttribute('aria-hidden', 'true');
    return bar;
  }

  groups(key, rows) {
    const lead = leading(key, (r) => r[key] ?? NONE, (r) => this.showGroup(key, r[key]));
    return tableSection(this.app, key === 'operator' ? 'Operators' : 'Modules', `ops-${key}s`, [
      lead, ...numbers(GROUP), ...numbers('launched itself:self_ns'),
      share(this.app, 'share', (r) => r.share, 0),
    ], rows, { sort: 6,
      aside: `${rows.length >= MOST ? `The first ${MOST}. ` : ''}A name leads to the longest` });
  }

  kernels(kernel) {
    let exact = false;
    const place = el('div');
    const fill = () =>
      place.replaceChildren(tableSection(this.app, 'Kernels, copies and fills by operator',
        'ops-kernels', [
      leading('kernel', (k) => (exact ? k.name : k.kernel), (k) => this.showKernel(k)),
      ...['operator', 'module', 'phase', 'shapes'].map((key) => words(key, (k) => k[key])),
      ...numbers('count, total:total_ns, mean:mean_ns, longest:max_ns'),
      share(this.app, 'share', (k) => k.share, 2),
    ], kernel, { sort: 6, above: tools,
      aside: `${kernel.length >= MOST ? `The first ${MOST}. ` : ''}A name leads to the longest` }));
    const name = btn('Exact names', () => {
      exact = !exact;
      name.setAttribute('aria-pressed', String(exact));
      fill();
    }, { 'aria-pressed': 'false', 'data-testid': 'ops-exact' });
    const tools = el('p', { class: 'bar' }, name);
    fill();
    return place;
  }

  showKernel(k) {
    const { pages } = this,
      is = (key) => `${key} is ${k[key] === undefined ? 'null' : pages.quote(k[key])}`;
    const same = ['name', 'operator', 'module', 'phase', 'shapes', 'kind'].map(is).join(' and ');
    return pages.instances(k.kernel ?? NONE,
      `select id, ts, dur, dur as weight from gpu_work where ${same}`);
  }

  /** An operator or module: its calls on the host, where it has some, else its work. */
  async showGroup(key, name) {
    const { pages } = this, where = name === undefined ? `${key} is null`
      : `${key} = ${pages.quote(name)}`;
    const calls = key === 'operator'
      ? `category in ('cpu_op', 'Operator', 'operator') and name = ${pages.quote(name ?? '')}`
      : `(category in ('torch.forward', 'torch.backward') and name = `
        + `${pages.quote(name ?? '')} or name = ${pages.quote(`nn.Module: ${name}`)})`;
    const host = `select id, ts, dur, dur as weight from slice where ${calls}`;
    const work = `select id, ts, dur, dur as weight from gpu_work where ${where}`;
    return pages.instances(name ?? NONE,
      `${host} union all select * from (${work}) where not exists (${host})`);
  }
}
