// What the pages have in common: sections, tables with tools, a choice.

import { chip, shareCell } from './charts.js';
import { btn, el, link } from './dom.js';
import { Table } from './table.js';

/** A section with a title, words beside it, tools at the right, and content. */
export function section(title, { aside, tools = [], testid, wide = true } = {}, ...content) {
  return el('section', { class: wide ? 'card wide' : 'card', 'data-testid': testid, 'aria-label': title },
    el('header', {}, el('h2', { text: title }), aside ? el('p', { class: 'aside', text: aside }) : null, el('span', { class: 'push' }), ...tools), ...content);
}

/** A section with a table and its tools. */
export function tableSection(app, title, columns, rows, { aside, testid, sort = -1, down = true, tools = [], wide } = {}) {
  const table = new Table(columns, rows, { label: title, testid, sort, down });
  const copy = btn('Copy as CSV', () => { table.copy(); app.announce('Table copied'); });
  return section(title, { aside, tools: [...tools, copy], wide }, table.box);
}

/** Columns: numbers have a key for sorting and a raw value for CSV. */
export function number(title, value, format, more = {}) {
  return {
    title, number: true, key: (row) => { const v = value(row); return v === undefined ? null : v; },
    text: (row) => { const v = value(row); return v === null || v === undefined ? '–' : format(v, row); },
    csv: (row) => { const v = value(row); return v === null || v === undefined ? '' : String(v); }, ...more,
  };
}

export function words(title, value, more = {}) {
  const text = (row) => { const v = value(row); return v === null || v === undefined ? '' : String(v); };
  return { title, text, ...more };
}

/** A text that leads to the time line when `act(row)` is something. */
export function leading(title, value, act, more = {}) {
  return words(title, value, {
    cell: (row, cell) => {
      const go = act(row), text = value(row);
      if (go) cell.append(link(text, go, text.length > 60 ? text.slice(0, 2000) : 'Show on the time line')); else cell.textContent = text;
    },
    ...more,
  });
}

/** A share with a bar behind it. */
export function share(app, title, value, format, colour) {
  return number(title, value, format, { cell: (row, cell) => shareCell(app, cell, value(row) || 0, value(row) === undefined ? '–' : format(value(row)), colour) });
}

/** Names and colours; with `toggle` they can be switched off. */
export function legend(app, entries, toggle) {
  return el('div', { class: 'legend', role: 'group', 'aria-label': 'Legend' }, ...entries.map((entry, i) => {
    const content = [entry.box || chip(app, entry.colour), el('span', { text: entry.name }), entry.aside ? el('span', { class: 'aside', text: entry.aside }) : null];
    if (!toggle) return el('span', { class: 'entry', title: entry.title }, ...content);
    const button = el('button', { type: 'button', class: 'entry', 'aria-pressed': 'true', title: `Show or hide ${entry.name}` }, ...content);
    button.addEventListener('click', () => {
      const on = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', String(on));
      toggle(i, on);
    });
    return button;
  }));
}

/** One of several: [{name, content()}] */
export function choice(label, options) {
  const place = el('div', { class: 'chosen' });
  const buttons = options.map((option, i) => el('button', { type: 'button', role: 'radio', text: option.name, onclick: () => pick(i), onkeydown: (event) => move(event, i) }));
  const pick = (i) => {
    buttons.forEach((b, k) => { b.setAttribute('aria-checked', String(k === i)); b.tabIndex = k === i ? 0 : -1; });
    place.replaceChildren(options[i].content());
  };
  const move = (event, i) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (i + by + options.length) % options.length;
    pick(next);
    buttons[next].focus();
  };
  pick(0);
  return { bar: el('div', { class: 'choice', role: 'radiogroup', 'aria-label': label }, ...buttons), place };
}
