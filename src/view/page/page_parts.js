// What the pages have in common: sections, tables with tools, columns of reports, legends, a
// choice.

import { amount, bytes, chip, colourOf, ns, percent } from './charts.js';
import { el, link } from './dom.js';
import { Table } from './table.js';

/** The colours of what time goes to, in words of the reports; as far as a state of a thread means
 * the same, they are its colours. */
export const CLASSES = {
  compute: 2, data: 1, gpu: 0, copy: 0, lock: 4, gil: 4, disk: 3, page: 3, cpu: 6, rank: 7, comm: 7,
  peer: 5, pipe: 5, socket: 5, child: 5, queue: 5, sleep: 'neutral', other: 'idle', unknown: 'idle',
};

export class Page {
  constructor(pages) {
    this.pages = pages;
    this.app = pages.app;
  }
}

/** A section with a title, words beside it, tools at the right, and content. */
export function section(title, aside, tools, ...content) {
  return el('section', { class: 'card', 'aria-label': title },
    el('header', {}, el('h2', { text: title }), el('p', { class: 'aside', text: aside }),
      el('span', { class: 'push' }), ...tools), ...content);
}

export function tableSection(app, title, testid, columns, rows,
  { aside = '', sort = -1, above = null } = {}) {
  const table = new Table(columns, rows, { label: title, testid, sort });
  return section(title, aside, [table.copyButton(app)], ...(above ? [above] : []), table.box);
}

/** A column of numbers: what cannot be known is a dash; CSV has the value itself. */
export function number(title, value, format, more) {
  const known = (row) => { const v = value(row); return v === undefined ? null : v; },
    show = (none, act) => (row) => (known(row) === null ? none : act(known(row)));
  return { title, number: true, key: known, text: show('–', (v) => format(v)),
    csv: show('', String), ...more };
}

const FORMATS = [[/_ns$/, ns], [/per_second$/, (v) => `${(v / 1e9).toFixed(2)} GB/s`],
  [/bytes/, bytes], [/share|utilisation|cached|within|busy/, percent], [/./, amount]];

/** Columns of a report: "title:key, key …"; the key says how its values are shown. */
export function numbers(spec) {
  return spec.split(', ').map((entry) => {
    const [title, key = title] = entry.split(':');
    return number(title, (row) => row[key], FORMATS.find(([pattern]) => pattern.test(key))[1]);
  });
}

export function words(title, value, more) {
  return { title, text: (row) => String(value(row) ?? ''), ...more };
}

/** A text that leads somewhere: `act(row)` is what it does. */
export function leading(title, value, act, more) {
  return words(title, value,
    { cell: (row, cell) =>
      cell.append(link(value(row), () => act(row), value(row).length > 60
        ? value(row).slice(0, 2000) : 'Show on the time line')), ...more });
}

/** A share with a bar behind it. */
export function share(app, title, value, colour) {
  return number(title, value, percent, {
    cell: (row, cell) => {
      const bar = el('span', { class: 'share' });
      bar.style.setProperty('--part', String(Math.min(1, value(row) || 0)));
      bar.style.background = colourOf(app.palette, colour);
      cell.classList.add('shared');
      cell.append(bar, el('span', { text: value(row) === undefined ? '–' : percent(value(row)) }));
    },
  });
}

/** Names and colours; with `toggle` they can be switched off. */
export function legend(app, entries, toggle) {
  return el('div', { class: 'legend', role: 'group', 'aria-label': 'Legend' },
    ...entries.map((entry, i) => {
    const box = el(toggle ? 'button' : 'span',
      { class: 'entry', type: toggle ? 'button' : null, 'aria-pressed': toggle ? 'true' : null },
        entry.box || chip(app, entry.colour), entry.name,
        entry.aside ? el('span', { class: 'aside', text: entry.aside }) : null);
    if (toggle) box.addEventListener('click', () => toggle(i, press(box)));
    return box;
  }));
}

/** Presses or releases a button; is it pressed now? */
export function press(button) {
  const on = button.getAttribute('aria-pressed') !== 'true';
  button.setAttribute('aria-pressed', String(on));
  return on;
}

/** An arrow key on the i-th of some buttons: acts for its neighbour and goes there. */
export function arrow(event, i, buttons, act) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key],
    next = (i + by + buttons.length) % buttons.length;
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  act(next);
  buttons[next].focus();
}

/** One of several: [{name, content()}] → the buttons and the place of what is chosen. */
export function choice(label, options) {
  const place = el('div'), pick = (i) => {
    buttons.forEach((b, k) => { b.setAttribute('aria-checked', String(k === i));
      b.tabIndex = k === i ? 0 : -1; });
    place.replaceChildren(options[i].content());
  };
  const buttons =
    options.map((option, i) =>
    el('button', { type: 'button', role: 'radio', text: option.name, onclick: () => pick(i),
      onkeydown: (event) => arrow(event, i, buttons, pick) }));
  pick(0);
  return [el('div', { class: 'choice', role: 'radiogroup', 'aria-label': label }, ...buttons),
    place];
}
