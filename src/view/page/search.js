// Search: the field at the top, the list of hits, and steps from hit to hit.

import { btn, el, link } from './dom.js';
import { Table } from './table.js';
import { formatCount, formatExact, formatSeconds } from './time.js';

const LIMIT = 200;
const PAUSE_MS = 150;

export class Search {
  constructor(app, input, count, box) {
    this.app = app;
    this.input = input;
    this.count = count;
    this.box = box;
    this.text = '';
    this.timer = null;
    this.turn = 0;
    box.classList.add('columns');
    this.clear();
    input.addEventListener('input', () => this.typed());
    input.addEventListener('keydown', (event) => this.key(event));
  }

  get busy() {
    return this.timer !== null;
  }

  clear() {
    this.hits = null;
    this.hit = null;
    this.count.textContent = '';
    this.box.replaceChildren(
      el('p', { class: 'hint',
        text: 'Type a part of a name or of an argument, or a pattern with * and ?. '
          + 'Enter goes to the next hit, Shift+Enter to the one before.' }));
  }

  key(event) {
    if (event.key === 'Enter') {
      event.preventDefault();
      this.step(event.shiftKey ? 'previous' : 'next');
    } else if (event.key === 'Escape') {
      event.stopPropagation();
      this.app.focusTimeline();
    }
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.list();
    }, PAUSE_MS);
  }

  set(text) {
    this.input.value = text;
    return this.list();
  }

  /** The list of hits for the text in the field. */
  async list() {
    clearTimeout(this.timer);
    this.timer = null;
    const text = this.input.value.trim(), turn = ++this.turn;
    this.text = text;
    this.hit = null;
    if (!text) return this.clear();
    this.args = 0;
    try {
      const ask = (more) =>
        this.app.wait(this.app.transport.json('POST', '/api/search',
          { text, limit: LIMIT, ...more }));
      const answer = await ask({});
      if (turn !== this.turn) return undefined;
      this.args = 0;
      this.show(answer, true);
      const all = await ask({ args: 1 });
      if (turn !== this.turn) return undefined;
      this.args = all.total === answer.total ? 0 : 1;
      this.show(all, false);
    } catch (error) {
      if (turn === this.turn) this.fail(error);
    }
    return undefined;
  }

  fail(error) {
    this.box.replaceChildren(el('p', { class: 'error', text: error.message }));
    this.app.details.open('search');
  }

  /** Rows and processes with the text in their names, at most so many. */
  places() {
    const { app } = this, words = this.text.toLowerCase(), most = 12;
    const nodes = [...app.rows.nodes()].filter((n) => n.name.toLowerCase().includes(words)
      || [n.source?.tid, n.source?.pid].includes(this.text));
    if (!nodes.length) return null;
    const go = (node) => app.goToRow(node);
    return el('p', { class: 'bar', 'data-testid': 'search-rows' },
      el('span', { class: 'title', text: `${formatCount(nodes.length)} rows` }),
      ...nodes.slice(0, most).map((node) => link(node.name, () => go(node), 'Show this row')),
      nodes.length > most
        ? el('span', { class: 'aside', text: `and ${formatCount(nodes.length - most)} more` })
        : '');
  }

  /** `busy`: arguments are still being looked at. */
  show(answer, busy) {
    const { app } = this;
    this.hits = answer;
    this.count.textContent = answer.total !== '0' ? formatCount(answer.total) : busy ? '…' : 'none';
    const found = answer.total === '0' ? `No slice matches “${this.text}”`
      : `${formatCount(answer.total)} slices match “${this.text}”`;
    const title = busy ? `${found} by name; arguments are being searched …` : found;
    const bar = el('div', { class: 'bar' }, el('span', { class: 'title', text: title }));
    const parts = [bar, this.places()].filter(Boolean);
    const hits = answer.hits.map((hit, i) =>
      ({ ...hit, match: answer.matches ? answer.matches[i] : '' }));
    if (hits.length) {
      const table = new Table(this.columns(hits), hits, { label: 'Hits', testid: 'search-table' });
      if (BigInt(answer.total) > BigInt(answer.hits.length)) bar.append(
        el('span', { class: 'aside', text: `the first ${answer.hits.length} are listed` }));
      bar.append(btn('‹ previous', () => this.step('previous'), { class: 'plain push' }),
        btn('next ›', () => this.step('next')), table.copyButton(app));
      parts.push(table.box);
    }
    this.box.replaceChildren(...parts);
    app.details.open('search');
    app.announce(title);
  }

  columns(hits) {
    const { app } = this, matches = hits.some((h) => h.match)
      ? [{ title: 'Argument', key: (h) => h.match, text: (h) => h.match }] : [];
    return [
      { title: 'Name', key: (h) => h.name, text: (h) => h.name,
        cell: (h, cell) =>
          cell.append(link(h.name,
            () => { this.hit = h.slice; app.select(h.slice, { tab: false }); })) },
      ...matches,
      { title: 'Begins', number: true, key: (h) => BigInt(h.ts),
        text: (h) => formatSeconds(BigInt(h.ts) - app.zero), csv: (h) => h.ts },
      { title: 'Duration', number: true, key: (h) => BigInt(h.dur),
        text: (h) => (h.dur === '-1' ? 'unfinished' : formatExact(BigInt(h.dur))),
          csv: (h) => h.dur },
      { title: 'Row', key: (h) => app.rowName(h.row), text: (h) => app.rowName(h.row) },
    ];
  }

  /** The hit after or before the one at hand; the first is the one at or after the beginning of
   * the window. */
  async step(to) {
    const { app } = this, text = this.input.value.trim();
    if (!text) return;
    if (text !== this.text || this.timer !== null) this.list();
    const ask = { text, limit: 1, args: this.args ?? 0 };
    if (this.hit !== null) Object.assign(ask, { slice: this.hit, to });
    else ask.at = (app.selected ? app.selected.from : app.view.from).toString();
    const turn = this.turn;
    try {
      const find = () => app.wait(app.transport.json('POST', '/api/search', ask));
      let answer = await find();
      if (answer.total === '0' && !ask.args && turn === this.turn) {
        this.args = ask.args = 1; // Enter came before the arguments had been looked at
        answer = await find();
      }
      if (!answer.hits.length && answer.total !== '0') answer = await this.wrap(text, to);
      if (turn !== this.turn || !answer.hits.length) return;
      this.hit = answer.hits[0].slice;
      const index = answer.index === undefined ? ''
        : formatCount(BigInt(answer.index) + 1n) + ' of ';
      this.count.textContent = index + formatCount(answer.total);
      await app.select(this.hit, { tab: false });
    } catch (error) {
      this.fail(error);
    }
  }

  /** Past the last hit comes the first one. */
  wrap(text, to) {
    const at = to === 'next' ? this.app.first : null;
    if (at === null) return { total: '1', hits: [] };
    return this.app.wait(this.app.transport.json('POST', '/api/search',
      { text, limit: 1, at: at.toString(), args: this.args ?? 0 }));
  }
}
