// The pages beside the time line: which ones the trace has data for, the bar that switches, and the ways back to the time line.

import { el } from './dom.js';
import { GpuPage } from './page_gpu.js';
import { IoPage } from './page_io.js';
import { RanksPage } from './page_ranks.js';
import { ServingPage } from './page_serving.js';
import { StepsPage } from './page_steps.js';

const PAGES = [
  { id: 'steps', name: 'Steps', make: StepsPage }, { id: 'gpu', name: 'GPU', make: GpuPage }, { id: 'io', name: 'I/O', make: IoPage },
  { id: 'serving', name: 'Serving', make: ServingPage }, { id: 'ranks', name: 'Ranks', make: RanksPage },
];
const CATEGORIES = {
  gpu: ['kernel', 'gpu_kernel', 'Kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_memory'], io: ['io', 'vfs', 'block', 'syscall', 'io_uring'], serving: ['serving.life', 'batching'],
};
const MARKERS = ['ProfilerStep*', '[Tt]rain_step*', '[Tt]raining step*', '[Ss]tep', '[Ss]tep[ _#:0-9]*', '[Ii]ter', '[Ii]ter[ _#:0-9]*', '[Ii]teration*', 'train_batch*', '[Bb]atch[ _#:]*', '*block_start', '*epoch_start', '[Ee]poch*'];
// In a large trace only the beginning of each track is looked at: reading all of it would take longer than opening it.
const MANY = 2000000;
const SAMPLE = '(select s.category, s.name from track t join slice s on s.id in (select id from slice where track_id = t.id limit 200))';
const RELOAD_MS = 3000;
const byId = (id) => document.getElementById(id);

export class Pages {
  constructor(app) {
    this.app = app;
    this.nav = byId('pages');
    this.box = byId('page');
    this.current = 'timeline';
    this.wanted = null;
    this.found = [];
    this.made = new Map();
    this.stale = null;
    new MutationObserver(() => this.themed()).observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    byId('search').addEventListener('focus', () => this.show('timeline'));
  }

  /** A trace is there, or another generation of it. */
  open(trace) {
    this.trace = trace;
    if (this.stale === null) this.look(trace);
    else this.stale = true;
  }

  async look(trace) {
    this.stale = false;
    const { app } = this;
    try {
      if (Number(trace.slices) > MANY) await this.calm();
      this.found = await (this.wanted ? app.wait(this.ask(trace)) : this.ask(trace));
    } catch {
      this.found = []; // no answer: the time line says so
    }
    this.bar();
    if (this.wanted && this.found.includes(this.wanted)) this.show(this.wanted);
    else if (this.current !== 'timeline') this.reload();
    if (!trace.live) return;
    setTimeout(() => { if (this.stale) this.look(this.trace); else this.stale = null; }, RELOAD_MS);
  }

  /** The first picture comes first. */
  calm() {
    return new Promise((resolve) => {
      const check = () => (this.app.idle ? resolve() : setTimeout(check, 100));
      setTimeout(check, 100);
    });
  }

  async ask(trace) {
    if (Array.isArray(trace.pages)) return PAGES.map((p) => p.id).filter((id) => trace.pages.includes(id));
    const large = Number(trace.slices) > MANY, found = [];
    const categories = new Set((await this.sql(large ? `select distinct category from ${SAMPLE}` : 'select distinct category from slice')).map((row) => row[0]));
    const marker = MARKERS.map((glob) => `name glob '${glob}'`).join(' or ');
    const [[steps]] = await this.sql(large ? `select exists(select 1 from ${SAMPLE} where ${marker})` : 'select exists(select 1 from step)');
    if (steps === '1') found.push('steps');
    for (const id of ['gpu', 'io', 'serving']) if (CATEGORIES[id].some((c) => categories.has(c))) found.push(id);
    if (steps !== '1') return found;
    const [[ranks]] = await this.sql("select count(*) from metadata where name glob '*/rank'");
    if (Number(ranks) < 2) return found;
    const [[processes]] = await this.sql('select count(distinct t.owner_upid) from step s join track t on s.track_id = t.id');
    if (Number(processes) > 1) found.push('ranks');
    return found;
  }

  async sql(sql, limit = 10000) {
    const answer = await this.app.transport.json('POST', '/api/sql', { sql, limit });
    if (answer.error) throw new Error(answer.error);
    return answer.rows;
  }

  /** A report, with integers that a double cannot hold as text. */
  async report(subject) {
    const { transport } = this.app;
    const text = await transport.body(await transport.request('GET', `/api/report?subject=${subject}`), 'text');
    const report = JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (match) => (/^-?\d{16,}$/.test(match) ? `"${match}"` : match)));
    if (report.error) throw new Error(report.error);
    return report;
  }

  get list() {
    return [{ id: 'timeline', name: 'Timeline' }, ...PAGES.filter((p) => this.found.includes(p.id))];
  }

  bar() {
    this.nav.hidden = this.found.length === 0;
    this.nav.replaceChildren(...this.list.map((page, i) => el('button', {
      type: 'button', role: 'tab', id: `page-${page.id}`, 'data-testid': `page-${page.id}`, title: `${page.name} (${i + 1})`, text: page.name,
      'aria-controls': page.id === 'timeline' ? 'timeline' : 'page', onclick: () => this.show(page.id), onkeydown: (event) => this.tabKey(event, i),
    })));
    this.mark();
  }

  tabKey(event, i) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key], { list } = this;
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next = list[(i + by + list.length) % list.length];
    this.show(next.id);
    byId(`page-${next.id}`).focus();
  }

  mark() {
    for (const page of this.list) {
      const tab = byId(`page-${page.id}`), active = page.id === this.current;
      if (!tab) continue;
      tab.setAttribute('aria-selected', String(active));
      tab.tabIndex = active ? 0 : -1;
    }
  }

  show(id) {
    this.wanted = null;
    if (id === this.current || (id !== 'timeline' && !this.found.includes(id))) return;
    const { app } = this, away = id !== 'timeline';
    this.current = id;
    byId('app').dataset.page = id;
    this.box.hidden = !away;
    for (const part of ['.middle', '.splitter', '.details']) document.querySelector(part).inert = away;
    app.tooltip.hide();
    app.view.releaseAll();
    this.mark();
    if (away) this.fill(id); else { this.box.replaceChildren(); app.focusTimeline(); }
    app.changed();
  }

  fill(id) {
    const page = PAGES.find((p) => p.id === id);
    this.box.setAttribute('aria-label', page.name);
    this.box.scrollTop = 0;
    if (!this.made.has(id)) this.made.set(id, new page.make(this));
    this.put(id);
  }

  async put(id) {
    const page = this.made.get(id);
    if (!page.data) this.box.replaceChildren(el('p', { class: 'hint', text: 'Loading …' }));
    try {
      if (!page.data) page.data = await this.app.wait(page.load());
      if (this.current === id) this.box.replaceChildren(...page.build(page.data));
    } catch (error) {
      if (this.current === id) this.box.replaceChildren(el('p', { class: 'error', role: 'alert', text: error.message }));
    }
  }

  reload() {
    for (const page of this.made.values()) page.data = null;
    if (this.current !== 'timeline') this.put(this.current);
  }

  themed() {
    if (this.current !== 'timeline') this.put(this.current);
  }

  /** From the URL: a page that is not known yet is shown when it is. */
  apply(id) {
    const wanted = PAGES.some((p) => p.id === id) ? id : 'timeline';
    this.show(wanted);
    if (this.current !== wanted) this.wanted = wanted;
  }

  /** What the URL holds. */
  get state() {
    const id = this.wanted || this.current;
    return id === 'timeline' ? '' : id;
  }

  commands() {
    return this.list.map((page, i) => ({ show: String(i + 1), text: `Page: ${page.name}`, act: () => this.show(page.id) }));
  }

  /** True: the key is not for the time line. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return this.current !== 'timeline' && event.key.toLowerCase() !== 'k';
    const page = /^[1-9]$/.test(event.key) && this.found.length ? this.list[Number(event.key) - 1] : null;
    if (page) {
      event.preventDefault();
      this.show(page.id);
      return true;
    }
    if (this.current === 'timeline') return false;
    if (['/', 'q', 'l', 'f', '0', 'Escape'].includes(event.key)) this.show('timeline');
    if (event.key === 'Escape') event.preventDefault();
    return !['/', 'q', 'l', 'f', '0', 't', '?', ':'].includes(event.key);
  }

  /** To the time line: a slice by its number or SQL's id, and the interval that is to be seen. */
  async jump({ slice, id, from, to }) {
    const { app } = this;
    this.show('timeline');
    if (from !== undefined) app.view.fit(from, to > from ? to : from + 1n);
    const query = slice !== undefined ? `slice=${slice}` : id !== undefined ? `id=${encodeURIComponent(id)}` : null;
    if (query === null || !await app.selectBy(query, { show: false, tab: false }) || !app.selected) return;
    if (from === undefined) app.view.fit(app.selected.from, app.selected.to);
    app.timeline.reveal(app.selected.row, app.selected.line);
  }
}
