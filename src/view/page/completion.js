// Completion of SQL: tables, columns and words that begin with what is before the caret.

import { el } from './dom.js';

const WORDS = ['select', 'from', 'where', 'group by', 'order by', 'limit', 'join', 'left join',
  'on', 'and', 'or', 'not', 'like', 'glob', 'between', 'in', 'is null', 'as',
  'desc', 'asc', 'distinct', 'having', 'with', 'union all', 'case', 'when', 'then', 'else', 'end',
    'count(*)', 'sum(', 'avg(', 'min(', 'max('];
const MOST = 30;

export class Completion {
  constructor(input, box, load) {
    this.input = input;
    this.load = load;
    this.tables = null;
    this.list = el('ul',
      { class: 'completion', role: 'listbox', id: 'completion', 'aria-label': 'Completion',
        hidden: true });
    box.append(this.list);
    input.setAttribute('aria-controls', 'completion');
    input.addEventListener('input', () => this.update());
    input.addEventListener('keydown', (event) => this.key(event));
    input.addEventListener('blur', () => setTimeout(() => this.close(), 150));
    input.addEventListener('focus', () => this.fetch());
    this.entries = [];
    this.at = 0;
  }

  async fetch() {
    if (this.tables) return;
    this.tables = [];
    try {
      this.tables = await this.load();
    } catch {
      this.tables = null;
    }
  }

  get before() {
    const text = this.input.value.slice(0, this.input.selectionStart);
    const match = /(?:([A-Za-z_]\w*)\.)?([A-Za-z_]\w*)?$/.exec(text);
    return { table: match[1] || '', word: match[2] || '' };
  }

  candidates({ table, word }) {
    const tables = this.tables || [], found = [], low = word.toLowerCase();
    const add = (text, kind) => {
      if (text.toLowerCase().startsWith(low) && text.toLowerCase() !== low
        && !found.some((f) => f.text === text)) found.push({ text, kind });
    };
    const used = tables.filter((t) => new RegExp(`\\b${t.name.replace(/\W/g, '')}\\b`, 'i')
      .test(this.input.value));
    if (table) {
      for (const t of tables.filter((t) => t.name === table)) t.columns.forEach((c) =>
        add(c, t.name));
      if (!found.length) used.forEach((t) => t.columns.forEach((c) => add(c, t.name)));
      return found.slice(0, MOST);
    }
    if (!word) return [];
    (used.length ? used : tables).forEach((t) => t.columns.forEach((c) => add(c, t.name)));
    tables.forEach((t) => add(t.name, 'table'));
    WORDS.forEach((w) => add(w, ''));
    return found.slice(0, MOST);
  }

  update() {
    const before = this.before;
    this.entries = before.word || before.table ? this.candidates(before) : [];
    this.at = 0;
    this.draw();
  }

  draw() {
    this.list.hidden = this.entries.length === 0;
    this.list.replaceChildren(...this.entries.map((entry, i) => el('li', {
      role: 'option', id: `completion-${i}`, 'aria-selected': String(i === this.at),
      onpointerdown: (event) => { event.preventDefault(); this.accept(i); },
    }, entry.text, el('span', { text: entry.kind }))));
    if (this.entries.length) {
      this.input.setAttribute('aria-activedescendant', `completion-${this.at}`);
      this.list.children[this.at].scrollIntoView({ block: 'nearest' });
    } else this.input.removeAttribute('aria-activedescendant');
  }

  close() {
    this.entries = [];
    this.draw();
  }

  key(event) {
    if (this.list.hidden) return;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') this.at =
      (this.at + (event.key === 'ArrowDown' ? 1 : -1) + this.entries.length) % this.entries.length;
    else if (event.key === 'Tab'
      || (event.key === 'Enter' && !event.ctrlKey && !event.metaKey)) this.accept(this.at);
    else if (event.key === 'Escape') this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (!this.list.hidden) this.draw();
  }

  accept(i) {
    const { word } = this.before, { input } = this, end = input.selectionStart;
    input.setRangeText(this.entries[i].text, end - word.length, end, 'end');
    this.close();
    input.focus();
  }
}
