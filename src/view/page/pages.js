// The pages beside the time line: which ones the trace has data for, the bar that switches, and the
// ways back to the time line.

import { btn, el } from './dom.js';
import { ExplainPage, lines } from './page_explain.js';
import { Instances } from './instances.js';
import { GpuPage } from './page_gpu.js';
import { IoPage } from './page_io.js';
import { LlmPage } from './page_llm.js';
import { OpsPage } from './page_ops.js';
import { arrow } from './page_parts.js';
import { RanksPage } from './page_ranks.js';
import { ServingPage } from './page_serving.js';
import { StepsPage } from './page_steps.js';
import { WaitsPage } from './page_waits.js';
import { formatCount } from './time.js';

const PAGES = {
  explain: ['Explain', ExplainPage], steps: ['Steps', StepsPage], waits: ['Waits', WaitsPage],
  gpu: ['GPU', GpuPage], ops: ['Operators', OpsPage], io: ['I/O', IoPage],
  serving: ['Serving', ServingPage], llm: ['LLM', LlmPage], ranks: ['Ranks', RanksPage],
};
const RELOAD_MS = 3000;
// slices of a trace that is explained unasked: at once, or when nothing else is to be done
const AT_ONCE_MOST = 2e6, UNASKED_MOST = 5e7;
const PER_SECOND = 2e6; // slices that are explained
const OWN_KEYS = ['t', '?', ':'], LEAVING = ['/', 'q', 'l', 'f', '0', 'Escape'];
const byId = (id) => document.getElementById(id);

export class Pages {
  constructor(app) {
    Object.assign(this, { app, nav: byId('pages'), box: byId('page'), current: 'timeline',
      wanted: null, found: [], made: new Map(), looking: false });
    new MutationObserver(() => this.put()).observe(document.documentElement,
      { attributes: true, attributeFilter: ['data-theme'] });
    byId('search').addEventListener('focus', () => this.show('timeline'));
    this.walk = new Instances(app, this);
  }

  /** A trace is there, or another generation of it. A growing one is looked at now and then. */
  open(trace) {
    this.trace = trace;
    if (this.looking) return;
    this.looking = true;
    this.found = Object.keys(PAGES).filter((id) => trace.pages.includes(id));
    for (const page of this.made.values()) page.data = page.asked = null;
    this.bar();
    this.why();
    if (this.wanted) this.show(this.wanted); else this.put();
    setTimeout(() => {
      this.looking = false;
      if (this.trace !== trace) this.open(this.trace);
    }, RELOAD_MS);
  }

  async sql(sql) {
    const answer = await this.app.transport.json('POST', '/api/sql', { sql, limit: 10000 });
    if (answer.error) throw new Error(answer.error);
    return answer.rows;
  }

  /** The longest of what a statement finds, or of a list, with a bar that leads to the others. */
  instances(title, source, isChosen) {
    return this.walk.open(title, source, isChosen);
  }

  quote(text) {
    return `'${text.replace(/'/g, "''")}'`;
  }

  /** A report, with integers that a double cannot hold as text. */
  async report(subject) {
    const { transport } = this.app,
      text = await transport.body(await transport.request('GET', `/api/report?subject=${subject}`),
      'text');
    const report =
      JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g,
        (match) => (/^-?\d{16,}$/.test(match) ? `"${match}"` : match)));
    if (report.error) throw new Error(report.error);
    return report;
  }

  get list() {
    return ['timeline',
      ...this.found].map((id) => ({ id, name: PAGES[id] ? PAGES[id][0] : 'Timeline' }));
  }

  bar() {
    this.nav.hidden = this.found.length === 0;
    this.nav.replaceChildren(...this.list.map(({ id, name }, i) => el('button', {
      type: 'button', role: 'tab', id: `page-${id}`, 'data-testid': `page-${id}`,
      title: `${name} (${i + 1})`, text: name, 'aria-controls': PAGES[id] ? 'page' : 'timeline',
      onclick: () => this.show(id),
      onkeydown: (event) => arrow(event, i, this.nav.children, (k) => this.show(this.list[k].id)),
    })));
    this.mark();
  }

  page(id) {
    if (!this.made.has(id)) this.made.set(id, new PAGES[id][1](this));
    return this.made.get(id);
  }

  /** A page asks for its data once, also if somebody opens it meanwhile. */
  async load(page) {
    const asked = page.asked ??= page.load();
    try {
      const data = await asked;
      if (page.asked === asked) page.data = data;
    } catch (error) {
      if (page.asked === asked) page.asked = null;
      throw error;
    }
  }

  /** Above the time line: what slows this run down. Its place is there at once. */
  async why() {
    const say = (text) => this.say(text);
    byId('why').hidden = !this.found.includes('explain');
    if (byId('why').hidden) return;
    say('');
    if (this.trace.live) return;
    const { app, trace } = this, { slices } = trace, page = this.page('explain');
    const took = `with ${formatCount(slices)} slices this takes about `
      + `${Math.round(slices / PER_SECOND)} s`;
    const explain = () => this.explained(page).catch((error) => say(error.message));
    if (slices <= AT_ONCE_MOST) await app.wait(explain());
    else if (slices > UNASKED_MOST) say(`Not looked at yet: ${took}`);
    else {
      say(`Looking for it: ${took}`);
      while (!app.idle) await new Promise((resolve) => setTimeout(resolve, 200));
      if (this.trace === trace) await explain();
    }
  }

  /** What is found is said above the time line, and the rows it is about come first, unless
   * somebody has moved meanwhile. */
  async explained(page) {
    const { view, timeline } = this.app, from = view.from, top = timeline.scrollTop;
    await this.load(page);
    this.say(...lines(page.data));
    if (view.from !== from || timeline.scrollTop !== top) return;
    // a page without a server keeps the order of the trace
    if (!this.trace.compared) await this.order(page.data.rows || []).catch(() => {});
  }

  /** Each text is a line; after the first one come more findings and what was observed. */
  say(...texts) {
    byId('why').replaceChildren(
      el('strong', { text: 'What slows this run down' }),
      el('div', { class: 'lines' }, ...texts.map((text) => el('span', { text, title: text }))),
      btn('Explain', () => this.show('explain')),
    );
  }

  /** What the findings are about comes first, unless somebody looks at other rows by now. */
  async order(first) {
    const { app } = this, { rows, timeline, transport, trace } = app, top = timeline.scrollTop;
    const ask = { rows: first.map((id) => [id, 0, 0]) };
    const answer = first.length ? await transport.json('POST', '/api/order', ask) : {};
    if (!answer.rows || app.trace !== trace || timeline.scrollTop !== top || rows.path) return;
    rows.order = answer;
    rows.load(trace);
    app.overview.stale = true;
    app.changed();
  }

  mark() {
    for (const tab of this.nav.children) {
      const active = tab.id === `page-${this.current}`;
      tab.setAttribute('aria-selected', String(active));
      tab.tabIndex = active ? 0 : -1;
    }
  }

  show(id) {
    const { app } = this, away = id !== 'timeline';
    this.wanted = null;
    if (id === this.current || (away && !this.found.includes(id))) return;
    this.current = id;
    byId('app').dataset.page = id;
    this.box.hidden = !away;
    for (const part of ['.middle', '.splitter', '.details']) document.querySelector(part)
      .inert = away;
    app.tooltip.hide();
    app.view.releaseAll();
    this.mark();
    if (away) {
      this.box.setAttribute('aria-labelledby', `page-${id}`);
      this.page(id);
      if (!this.nav.contains(document.activeElement)) this.box.focus({ preventScroll: true });
      this.box.scrollTop = 0;
      this.put();
    } else {
      this.box.replaceChildren();
      app.focusTimeline();
    }
    app.changed();
  }

  /** Draws the current page, with its data as soon as they are there. */
  async put() {
    const id = this.current, page = this.made.get(id),
      fill = (...content) => { if (this.current === id) this.box.replaceChildren(...content); };
    if (!page || id === 'timeline') return;
    try {
      if (!page.data) {
        if (!this.box.firstChild) fill(el('p', { class: 'hint', text: 'Loading …' }));
        await this.app.wait(this.load(page));
        if (id === 'explain') await this.explained(page);
      }
      fill(...page.build(page.data));
    } catch (error) {
      fill(el('p', { class: 'error', role: 'alert', text: error.message }));
    }
  }

  /** From the URL: a page that is not known yet is shown when it is. */
  apply(id) {
    const wanted = PAGES[id] ? id : 'timeline';
    this.show(wanted);
    if (this.current !== wanted) this.wanted = wanted;
  }

  get state() {
    const id = this.wanted || this.current;
    return id === 'timeline' ? '' : id;
  }

  commands() {
    return this.list.map(({ id, name }, i) =>
      ({ show: String(i + 1), text: `Page: ${name}`, act: () => this.show(id) }));
  }

  /** True: the key is not for the time line. */
  key(event) {
    const away = this.current !== 'timeline', page = /^[1-9]$/.test(event.key) && this.found.length
      ? this.list[event.key - 1] : null;
    if (event.ctrlKey || event.metaKey || event.altKey) return away
      && event.key.toLowerCase() !== 'k';
    if (page || (away && LEAVING.includes(event.key))) {
      this.show(page ? page.id : 'timeline');
      if (page || event.key === 'Escape') event.preventDefault();
      return Boolean(page) || event.key === 'Escape';
    }
    return away && !OWN_KEYS.includes(event.key);
  }

  /** To the time line: a slice by its number or SQL's id, and the interval that is to be seen. */
  async jump({ slice, id, from, to }) {
    const { app } = this;
    this.show('timeline');
    if (from !== undefined) app.view.fit(from, to > from ? to : from + 1n);
    if (slice === undefined && id === undefined) return;
    if (!await app.selectBy(slice === undefined ? `id=${encodeURIComponent(id)}` : `slice=${slice}`,
      { show: false, tab: false }) || !app.selected) return;
    if (from === undefined) app.view.fit(app.selected.from, app.selected.to);
    app.timeline.reveal(app.selected.row, app.selected.line);
  }
}
