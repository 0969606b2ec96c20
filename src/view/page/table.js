// A sortable table that holds elements for the rows on screen only.

import { btn, el, link, toCsv } from './dom.js';

const ROW = 24;
const EXTRA = 20;

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  if (typeof a === 'string' && typeof b === 'string') return a.localeCompare(b, 'en',
    { numeric: true });
  return a < b ? -1 : 1;
}

/** The column of names, with their colours; a click searches for one. */
export const nameColumn = (app) => ({
  title: 'Name', key: (r) => r.text, text: (r) => r.text,
  cell: (row, cell) => {
    const chip = el('span', { class: 'chip' });
    chip.style.background = app.colourOf({ name: row.text, colour: row.colour });
    cell.append(chip, link(row.text, () => app.searchFor(row.text), 'Search for this name'));
  },
});

export class Table {
  /** columns: [{title, number, text(row), key(row), cell(row, td)}]; `cell` builds what `text`
   * would be. */
  constructor(columns, rows, { label, testid, sort = -1, down = true } = {}) {
    this.columns = columns;
    this.rows = rows;
    this.sort = sort;
    this.down = down;
    this.body = el('tbody');
    this.head = el('tr');
    this.box = el('div', { class: 'table', 'data-testid': testid, tabindex: '0', role: 'region',
      'aria-label': label || 'Table' },
      el('table', { 'aria-rowcount': String(rows.length + 1) }, el('thead', {}, this.head),
        this.body));
    this.box.addEventListener('scroll', () => this.fill());
    this.range = null;
    this.order();
    this.heads();
    this.watch = new ResizeObserver(() => this.fill());
    this.watch.observe(this.box);
    this.fill(true);
  }

  order() {
    const column = this.columns[this.sort];
    this.sorted = [...this.rows];
    if (!column) return;
    const key = column.key || column.text, sign = this.down ? -1 : 1;
    this.sorted.sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === null || y === null) return compare(x, y);
      return sign * compare(x, y);
    });
  }

  heads() {
    this.head.replaceChildren(...this.columns.map((column, i) => {
      const active = i === this.sort;
      const sign = active ? (this.down ? ' ↓' : ' ↑') : '';
      return el('th',
        { scope: 'col', class: column.number ? 'number' : '', 'aria-sort': active
          ? (this.down ? 'descending' : 'ascending') : 'none' },
        el('button', { type: 'button', text: column.title + sign, onclick: () => this.sortBy(i) }));
    }));
  }

  sortBy(i) {
    this.down = this.sort === i ? !this.down : Boolean(this.columns[i].number);
    this.sort = i;
    this.order();
    this.heads();
    this.head.children[i].firstChild.focus();
    this.fill(true);
  }

  fill(force) {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - EXTRA);
    const visible = Math.ceil((this.box.clientHeight || 400) / ROW) + 2 * EXTRA;
    const last = Math.min(this.sorted.length, first + visible);
    if (!force && this.range && this.range[0] <= Math.max(0, first + EXTRA / 2)
      && this.range[1] >= Math.min(this.sorted.length, last - EXTRA / 2)) return;
    this.range = [first, last];
    const rows = this.sorted.slice(first, last).map((row, i) => this.row(row, first + i));
    this.body.replaceChildren(this.spacer(first), ...rows, this.spacer(this.sorted.length - last));
  }

  spacer(rows) {
    const cell = el('td', { colspan: String(this.columns.length) });
    cell.style.height = rows * ROW + 'px';
    const spacer = el('tr', { class: 'spacer', 'aria-hidden': 'true' }, cell);
    spacer.hidden = rows === 0;
    return spacer;
  }

  row(row, index) {
    return el('tr', { 'aria-rowindex': String(index + 2) }, ...this.columns.map((column) => {
      const cell = el('td', { class: column.number ? 'number' : '' });
      if (column.cell) column.cell(row, cell);
      else {
        const text = column.text(row);
        if (text === null) {
          cell.textContent = 'null';
          cell.classList.add('null');
        } else {
          cell.textContent = text;
          if (text.length > 60) cell.title = text.slice(0, 2000);
        }
      }
      return cell;
    }));
  }

  csv() {
    const columns = this.columns.filter((c) => !c.skip);
    return toCsv(columns.map((c) => c.title),
      this.sorted.map((row) => columns.map((c) => (c.csv || c.text)(row))));
  }

  /** A button that copies the table. */
  copyButton(app, fields) {
    return btn('Copy as CSV', () => {
      navigator.clipboard.writeText(this.csv());
      app.announce('Table copied');
    }, fields);
  }
}
