// From a sum to what it is made of: a bar above the time line that leads through the instances of
// something (a cause, a kernel, a file, a lock, a step …), by length or by time. A statement gives
// them: id of a slice (or null), ts, dur, and the length that counts, if it is another one.

import { btn, el } from './dom.js';
import { formatCount, formatExact, formatSeconds } from './time.js';

const MOST = 10000;
const ORDERS = { length: 'by length', time: 'by time' };
const first = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

export class Instances {
  constructor(app, pages) {
    Object.assign(this, { app, pages, box: document.getElementById('instances'), all: [], at: 0 });
    this.order = 'length';
  }

  /** `source`: a statement with the columns id, ts, dur and weight, or a list of {id or slice,
   * from, dur}; an id may be a function that finds it. The one that `isChosen` is shown, else the
   * longest. */
  async open(title, source, isChosen = () => false) {
    const { app } = this;
    try {
      const list = typeof source === 'string' ? await app.wait(this.ask(source)) : source;
      if (!list.length) return app.announce('It is not on the time line');
      this.longest = list.map((one) => ({ weight: one.dur, ...one }))
        .sort((a, b) => first(b.weight, a.weight) || first(a.from, b.from)).slice(0, MOST);
    } catch (error) {
      return app.say(error.message);
    }
    this.longest.forEach((one, rank) => { one.rank = rank; });
    Object.assign(this, { title, order: 'length', all: this.longest });
    return this.go(Math.max(0, this.longest.findIndex(isChosen)));
  }

  async ask(sql) {
    const rows = await this.pages.sql(
      `select id, ts, dur, weight from (${sql}) order by weight desc, ts limit ${MOST}`,
    );
    return rows.map(([id, ts, dur, weight]) => ({
      id: id ?? undefined, from: BigInt(ts), dur: BigInt(dur), weight: BigInt(weight),
    }));
  }

  /** In the other order, at the same instance. */
  sortBy(order) {
    const now = this.all[this.at];
    this.order = order;
    this.all = order === 'length' ? this.longest
      : [...this.longest].sort((a, b) => first(a.from, b.from));
    this.at = this.all.indexOf(now);
    this.draw();
  }

  step(by) {
    const next = this.at + by;
    if (next >= 0 && next < this.all.length) return this.go(next);
    return this.app.announce(this.all.length ? 'There are no more'
      : 'Choose a name on a page first');
  }

  async go(i) {
    const { id, slice, from, dur } = this.all[i];
    this.at = i;
    this.draw();
    const found = typeof id === 'function' ? await this.app.wait(id()) : id;
    await this.pages.jump({ id: found, slice, from, to: from + dur });
  }

  close() {
    this.all = [];
    this.draw();
  }

  draw() {
    const { all, at, box, app } = this, now = all[at];
    box.hidden = !now;
    app.changed();
    if (!now) return box.replaceChildren();
    const n = formatCount(all.length), which = this.order === 'length'
      ? `${at === 0 ? 'the longest' : `${formatCount(at + 1)}.`} of ${n}`
      : `${formatCount(at + 1)}. of ${n} in time, ${formatCount(now.rank + 1)}. by length`;
    const more = all.length === MOST ? ` (the ${n} longest)` : '';
    const button = (text, by, title) => {
      const made = btn(text, () => this.step(by), { title, 'data-testid': `instances-${text}` });
      made.disabled = !all[at + by];
      return made;
    };
    return box.replaceChildren(
      el('strong', { text: this.title, title: this.title }),
      el('span', { 'data-testid': 'instances-text',
        text: `${which}${more} · ${formatExact(now.weight)} at `
          + `${formatSeconds(now.from - app.zero)}` }),
      button('Previous', -1, 'Previous (<)'), button('Next', 1, 'Next (>)'),
      el('span', { class: 'choice', role: 'radiogroup', 'aria-label': 'Order' },
        ...Object.keys(ORDERS).map((order) => el('button', {
          type: 'button', role: 'radio', text: ORDERS[order],
          'aria-checked': String(order === this.order), onclick: () => this.sortBy(order),
        }))),
      el('span', { class: 'push' }), btn('Close', () => this.close()),
    );
  }
}
