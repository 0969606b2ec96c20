// Marks and notes: kept by the server beside the trace, else in this browser.

import { btn, el, link } from './dom.js';
import { formatExact, formatSeconds, parseWhole } from './time.js';

const PAUSE_MS = 400;
const MOST = 2000;

/** Only what is a mark is taken from the document. */
function readMarks(notes) {
  if (!notes || !Array.isArray(notes.marks)) return [];
  const list = [];
  for (const mark of notes.marks.slice(0, MOST)) {
    const ts = mark ? parseWhole(String(mark.ts)) : null;
    if (ts === null) continue;
    const to = mark.to === undefined || mark.to === null ? null : parseWhole(String(mark.to));
    list.push({ ts, to, text: typeof mark.text === 'string' ? mark.text.slice(0, 4000) : '' });
  }
  return list;
}

export class Marks {
  constructor(app, box) {
    this.app = app;
    this.box = box;
    this.list = [];
    this.note = '';
    this.timer = null;
    this.where = '';
  }

  get key() {
    return 'stave.notes ' + (this.app.trace ? this.app.trace.name : '');
  }

  async load() {
    let notes = null;
    try {
      const answer = await this.app.transport.json('GET', '/api/notes');
      notes = answer.notes;
      this.kept = answer.kept !== false;
    } catch {
      this.kept = false;
    }
    if (!notes) {
      try {
        notes = JSON.parse(localStorage.getItem(this.key));
      } catch {
        notes = null;
      }
    }
    this.list = readMarks(notes);
    this.note = notes && typeof notes.note === 'string' ? notes.note : '';
    this.show();
    this.app.invalidate();
  }

  document() {
    return { version: 1, note: this.note,
      marks: this.list.map((m) =>
        ({ ts: m.ts.toString(), to: m.to === null ? undefined : m.to.toString(), text: m.text })) };
  }

  changed() {
    this.app.invalidate();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), PAUSE_MS);
  }

  async save() {
    this.timer = null;
    const notes = this.document();
    let why = '';
    try {
      const answer = await this.app.wait(this.app.transport.json('POST', '/api/notes', { notes }));
      this.kept = answer.kept;
      why = answer.why || '';
    } catch (error) {
      this.kept = false;
      why = error.message;
    }
    if (this.kept) localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, JSON.stringify(notes));
    this.place.textContent = this.kept ? 'Kept beside the trace.'
      : `Kept in this browser only${why ? `: ${why}` : '.'}`;
  }

  add(ts, to) {
    const mark = { ts, to, text: '' };
    this.list.push(mark);
    this.list.sort((a, b) => (a.ts < b.ts ? -1 : 1));
    this.show();
    this.changed();
    this.app.announce(`Mark at ${formatSeconds(ts - this.app.zero)}`);
    return mark;
  }

  remove(mark) {
    this.list = this.list.filter((m) => m !== mark);
    this.show();
    this.changed();
  }

  focus(mark) {
    const input = this.box.querySelectorAll('.marks input')[this.list.indexOf(mark)];
    if (input) input.focus();
  }

  row(mark) {
    const { app } = this;
    const input = el('input',
      { type: 'text', placeholder: 'Note', 'aria-label': 'Note of this mark', maxlength: '4000' });
    input.value = mark.text;
    input.addEventListener('input', () => {
      mark.text = input.value;
      this.changed();
    });
    const when = formatSeconds(mark.ts - app.zero)
      + (mark.to === null ? '' : `  ·  ${formatExact(mark.to - mark.ts)}`);
    return el('li', {},
      el('span', { class: 'when' },
        link(when, () => app.showTime(mark.ts, mark.to === null ? mark.ts : mark.to))), input,
      btn('Delete', () => this.remove(mark), { 'aria-label': 'Delete this mark' }));
  }

  show() {
    this.place = el('span', { class: 'aside' });
    const note = el('textarea',
      { rows: '2', placeholder: 'Notes on this trace', 'aria-label': 'Notes on this trace',
        maxlength: '100000' });
    note.style.width = '100%';
    note.style.maxWidth = '900px';
    note.value = this.note;
    note.addEventListener('input', () => {
      this.note = note.value;
      this.changed();
    });
    const list = this.list.length
      ? el('ul', { class: 'marks' }, ...this.list.map((mark) => this.row(mark)))
      : el('p', { class: 'hint',
        text: 'M marks the selection, the area, or the time under the pointer.' });
    this.box.replaceChildren(el('div', { class: 'bar' },
      el('span', { class: 'title', text: 'Marks and notes' }), this.place), note, list);
  }
}
