// Waits: where the time of steps, phases or threads went, the longest waits and what happened
// meanwhile, locks. The numbers of `stave report wait`.

import { Bars, chip, colourOf, figures, ns, percent, strip } from './charts.js';
import { btn, el, link } from './dom.js';
import { choice, CLASSES, leading, legend, number, numbers, Page, section, tableSection,
  words } from './page_parts.js';
import { formatExact, formatSeconds } from './time.js';

const NAMES = { compute: 'computing', data: 'for data', gpu: 'for a GPU', lock: 'for a lock',
  disk: 'for a disk', cpu: 'for a CPU', rank: 'for another rank', peer: 'for another process',
    queue: 'for a worker', sleep: 'sleeping', other: 'not known' };
const KINDS = { step: 'Steps', request: 'Requests', turn: 'Turns of the loop',
  'between steps': 'Between steps', epoch: 'Epochs', phase: 'Phases', thread: 'Threads',
  loader: 'Loaders' };
const MOST = 500;
const KEYS = Object.keys(NAMES);
const waited = (span) => span.dur_ns - span.compute_ns;
const nameOf = (span) => (span.number !== undefined ? `${span.kind} ${span.number}` : span.name
  || span.thread || span.kind);

export class WaitsPage extends Page {
  load() {
    return this.pages.report('wait');
  }

  build(data) {
    const { app } = this, { summary, span, loader, wait, lock, pass, advice } = data,
      used = KEYS.filter((key) => [summary, ...span, ...loader].some((s) => s[`${key}_ns`] > 0));
    this.first = BigInt(summary.first_ns);
    this.place = el('div');
    if (wait.length) this.choose(wait[0], data);
    const most = used.filter((key) => key !== 'compute')
      .sort((a, b) => summary[`${b}_ns`] - summary[`${a}_ns`])[0];
    const share = (key) =>
      (summary.dur_ns > 0 ? percent(summary[`${key}_ns`] / summary.dur_ns) : '–');
    return [figures('waits-figures', [
      ['Time', ns(summary.dur_ns), summary.of],
      ['Waiting', ns(waited(summary)), summary.dur_ns > 0
        ? percent(waited(summary) / summary.dur_ns) : ''],
      most && summary[`${most}_ns`] > 0
        && [`Waiting ${NAMES[most]}`, share(most), ns(summary[`${most}_ns`])],
      wait.length > 0 && ['Longest wait', ns(wait[0].dur_ns), NAMES[wait[0].for] || wait[0].for],
      summary.gil_ns > 0 && ['Interpreter lock', ns(summary.gil_ns), 'of the waits for locks'],
    ]), summary.states !== 'recorded'
      && el('p', { class: 'hint',
    text: `States of threads are ${summary.states}. Time that neither a call nor a `
      + 'slice explains counts as computing.' }),
    section('Where the time went', summary.of, [],
    strip(app, 'Where the time went',
    used.map((key) =>
      ({ name: NAMES[key], value: summary[`${key}_ns`], colour: CLASSES[key],
        text: `${ns(summary[`${key}_ns`])} · ${share(key)}` })), 'waits-strip'),
      legend(app, used.map((key) => ({ name: NAMES[key], colour: CLASSES[key] })))),
    advice.length && tableSection(app, 'What to try', 'waits-advice',
      [words('what', (a) => a.try), words('because', (a) => a.evidence),
        words('sure', (a) => a.sure)], advice),
    span.length && this.spans([...span, ...loader], used),
    wait.length && section('What happened meanwhile',
      'The chain behind a wait, by wakers and flows', [], this.place),
      wait.length && this.longest(data),
    lock.length && this.locks(lock),
      pass.length > 1 && tableSection(app, 'Reading of the same files again', 'waits-passes',
        numbers('pass, files, read:bytes, in read:read_ns, not cached:missed_bytes'),
          pass)].filter(Boolean);
  }

  go(row) {
    const from = this.first + BigInt(row.start_ns);
    return this.pages.jump({ from, to: from + BigInt(row.dur_ns) });
  }

  begins() {
    return number('begins', (row) => this.first + BigInt(row.start_ns),
      (v) => formatSeconds(v - this.app.zero));
  }

  /** A chart and a table for each kind of span that there is. */
  spans(all, used) {
    const found = new Set(all.map((s) => s.kind)), known = Object.keys(KINDS);
    const kinds = [...known.filter((kind) => found.delete(kind)), ...found];
    const title = (kind) => KINDS[kind] ?? kind;
    const [bar, place] = choice('Steps, phases or threads',
      kinds.map((kind) =>
        ({ name: title(kind),
          content: () => this.ofKind(title(kind), all.filter((s) => s.kind === kind), used) })));
    return el('div', { class: 'group' }, kinds.length > 1 ? bar : null, place);
  }

  ofKind(title, spans, used) {
    const { app } = this, durations = spans.map((s) => s.dur_ns).sort((a, b) => a - b),
      middle = durations[durations.length >> 1],
      parts = used.map((key) => ({ name: NAMES[key], colour: CLASSES[key] })),
      names = spans.some((s) => s.name && s.name !== nameOf(s))
      ? [words('name', (s) => s.name)] : [];
    const chart = new Bars(app, {
      title, height: 210, testid: 'waits-spans', n: spans.length, parts,
      cap: durations.at(-1) > middle * 6 ? middle * 3 : 0,
      label: (i) => String(spans[i].number ?? i + 1), value: (i, p) => spans[i][`${used[p]}_ns`],
      act: (i) => this.go(spans[i]),
      tip: (i) => [nameOf(spans[i]), `${formatExact(BigInt(spans[i].dur_ns))} from `
        + `${formatSeconds(this.first + BigInt(spans[i].start_ns) - app.zero)}`,
          ...used.filter((key) => spans[i][`${key}_ns`] > 0)
          .map((key) => `${NAMES[key]}: ${ns(spans[i][`${key}_ns`])}`)],
    });
    return el('div', {},
      section(title,
        `${spans.length >= MOST ? `The first ${MOST}; a` : 'A'} click leads to the time line`, [],
          legend(app, parts), chart.canvas),
      tableSection(app, `${title} by what they wait for`, 'waits-table', [
        leading('span', nameOf, (s) => this.go(s)), ...names, words('thread', (s) => s.thread),
        this.begins(), number('time', (s) => s.dur_ns, ns), number('waiting', waited, ns),
        ...numbers(used.map((key) => `${key}:${key}_ns`).join(', ')),
        number('longest', (s) => s.longest_ns, ns), words('longest for', (s) => s.longest_for),
      ], spans, { sort: 4 + names.length }));
  }

  longest(data) {
    return tableSection(this.app, 'The longest waits', 'waits-longest', [
      words('wait', (w) => String(w.wait),
        { number: true, key: (w) => w.wait,
          cell: (w, cell) =>
            cell.append(link(String(w.wait), () => this.pick(w, data),
              'Show what happened meanwhile')) }), leading('in', (w) => w.in, (w) => this.go(w)),
              words('thread', (w) => w.thread),
      this.begins(), number('time', (w) => w.dur_ns, ns),
      words('for', (w) => w.for,
        { cell: (w, cell) => cell.append(chip(this.app, CLASSES[w.for] ?? 'idle'), w.for) }),
        words('call', (w) => w.call), words('because', (w) => w.cause),
      words('of', (w) => w.cause_thread),
      number('so long', (w) => w.cause_ns, ns), words('file', (w) => w.path),
      words('last file before', (w) => w.last_path), words('disk request', (w) => w.request),
    ], data.wait, { aside: 'A number shows its chain, a name leads to the time line' });
  }

  locks(lock) {
    return tableSection(this.app, 'Who waits for whom', 'waits-locks', [
      words('thread', (l) => l.thread), words('waits in', (l) => l.function),
      leading('for', (l) => l.lock, (l) => this.showLock(l)),
      words('held by',
        (l) => (l.releaser_tid === undefined ? '' : `${l.releaser || ''} (tid ${l.releaser_tid})`)),
        words('released in', (l) => l.released_in),
      ...numbers('waits, time:total_ns, longest:longest_ns, then for a CPU:queued_ns'),
    ], lock, { aside: `${lock.length >= MOST ? `The first ${MOST} by time. ` : ''}A lock leads `
      + 'to its longest wait' });
  }

  /** The waits for a lock, of all threads. */
  showLock(l) {
    if (l.address === undefined) return this.app.announce('Its address is not known');
    return this.pages.instances(`Waits for ${l.lock}`, `select id, ts, dur, dur as weight
      from lock_wait where lock = ${BigInt.asIntN(64, BigInt(l.address))}`);
  }

  pick(w, data) {
    this.choose(w, data);
    this.place.parentElement.scrollIntoView({ block: 'nearest' });
    this.app.announce(`Wait ${w.wait}`);
  }

  choose(w, { chain }) {
    const rows = chain.filter((c) => c.wait === w.wait),
      of = (part) => `${Math.min(100, Math.max(0, part) / w.dur_ns * 100)}%`;
    const file = w.path || w.last_path;
    const lines = rows.map((c) => {
      const bar = el('span', { class: 'step' });
      Object.assign(bar.style, { marginLeft: of(c.start_ns - w.start_ns), width: of(c.dur_ns),
        background: colourOf(this.app.palette, c.kind === 'run' ? CLASSES.compute : CLASSES[c.for]
          ?? 'neutral') });
      return el('tr', {},
        el('th', { scope: 'row' }, link(c.thread, () => this.go(c), 'Show on the time line')),
        el('td', {
          text: `${c.kind}${c.for ? ` for ${c.for}` : ''}${c.name ? ` in ${c.name}` : ''}`,
        }),
        el('td', { class: 'number', text: ns(c.dur_ns), 'data-ns': String(c.dur_ns) }),
        el('td', { class: 'room' }, bar), el('td', { text: c.path || '', title: c.path || null }));
    });
    this.place.replaceChildren(el('p', { class: 'bar' }, el('strong', { text: `Wait ${w.wait}` }),
      `${ns(w.dur_ns)} ${NAMES[w.for] || w.for} in ${w.in}`,
      el('span', { class: 'aside',
        text: `${w.cause}${w.cause_thread ? `: ${w.cause_thread}` : ''}`
          + `${file ? `, ${w.path ? 'file' : 'last file before'} ${file}` : ''}`
          + `${w.request ? `, ${w.request}` : ''}` }),
          btn('Time line', () => this.go(w))),
    lines.length ? el('table',
      { class: 'waterfall', 'aria-label': `What happened during wait ${w.wait}`,
        'data-testid': 'waits-chain' },
          el('thead', {},
          el('tr', {}, ...['thread', 'did', 'takes', '',
            'file'].map((text, i) =>
              el('th', { scope: 'col', text, class: i === 2 ? 'number' : '' })))),
              el('tbody', {}, ...lines))
      : el('p', { class: 'hint', text: 'The trace does not show who was active meanwhile' }));
  }
}
