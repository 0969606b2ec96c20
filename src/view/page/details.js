// The details below the time line: tabs, opening and closing, the height.

import { onDrag } from './dom.js';

const TABS = ['slice', 'area', 'search', 'sql', 'compare', 'marks'];
const KEY = 'stave.details';

export class Details {
  constructor(app) {
    this.app = app;
    this.box = document.getElementById('details');
    this.toggleButton = document.getElementById('details-toggle');
    this.tab = 'slice';
    this.height = Math.max(120,
      Math.min(900, Number(localStorage.getItem(KEY))
        || Math.min(300, Math.round(innerHeight * 0.36))));
    this.box.style.height = this.height + 'px';
    for (const tab of TABS) {
      this.button(tab).addEventListener('click', () => this.click(tab));
      this.button(tab).addEventListener('keydown', (event) => this.key(event, tab));
    }
    this.toggleButton.addEventListener('click', () => this.toggle());
    this.listenSplitter(document.getElementById('splitter'));
    this.mark();
  }

  button(tab) {
    return document.getElementById('tab-' + tab);
  }

  pane(tab) {
    return document.getElementById('pane-' + tab);
  }

  get isOpen() {
    return !this.box.classList.contains('closed');
  }

  click(tab) {
    if (this.isOpen && this.tab === tab) this.close(); else this.open(tab);
  }

  key(event, tab) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const shown = TABS.filter((t) => !this.button(t).hidden);
    const next = shown[(shown.indexOf(tab) + by + shown.length) % shown.length];
    this.open(next);
    this.button(next).focus();
  }

  open(tab = this.tab) {
    this.tab = tab;
    this.box.classList.remove('closed');
    this.mark();
  }

  close() {
    this.box.classList.add('closed');
    this.mark();
  }

  toggle() {
    if (this.isOpen) this.close(); else this.open();
  }

  mark() {
    for (const tab of TABS) {
      const active = tab === this.tab;
      this.button(tab).setAttribute('aria-selected', String(active));
      this.button(tab).tabIndex = active ? 0 : -1;
      this.pane(tab).hidden = !active;
    }
    this.toggleButton.textContent = this.isOpen ? '▾' : '▴';
    this.toggleButton.setAttribute('aria-expanded', String(this.isOpen));
    this.app.changed();
  }

  setHeight(height, keep = true) {
    this.height = Math.round(Math.max(120, Math.min(innerHeight * 0.75, height)));
    this.box.style.height = this.height + 'px';
    if (keep) localStorage.setItem(KEY, String(this.height));
    if (!this.isOpen) this.open();
  }

  listenSplitter(splitter) {
    onDrag(splitter, (event) => ({ y: event.clientY, height: this.isOpen ? this.height : 38 }),
      (event, start) => {
      if (Math.abs(start.y - event.clientY) > 2) this.setHeight(start.height
        + start.y - event.clientY);
    });
    splitter.addEventListener('keydown', (event) => {
      const by = { ArrowUp: 24, ArrowDown: -24 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      this.setHeight(this.height + by);
    });
  }
}
