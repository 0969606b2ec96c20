// Selecting: a slice, its neighbours, parents and arrows, or an area.

import { formatExact, formatSeconds, maxTime, minTime } from './time.js';

const EDGE = 5; // CSS pixels about an edge of the area

/** A short slice of the protocol as the overlay wants it. */
function interval(slice, last) {
  const ts = BigInt(slice.ts), dur = BigInt(slice.dur);
  return { slice: slice.slice, row: slice.row, line: slice.line, from: ts,
    to: dur < 0n ? maxTime(last, ts) : ts + dur };
}

export class Selecting {
  constructor() {
    this.selected = null;
    this.area = null;
    this.selectTurn = 0;
    this.fitted = '';
  }

  /** The selected interval, for the axis. */
  interval() {
    if (this.area) return this.area;
    return this.selected;
  }

  /** Asks for a slice and selects it; `show` moves the view to it, `tab` opens its pane. True if
   * it exists. */
  async select(slice, { show = true, tab = true } = {}) {
    return this.selectBy(`slice=${slice}`, { show, tab });
  }

  async selectBy(query, { show, tab }) {
    const turn = ++this.selectTurn;
    try {
      const detail = await this.wait(this.transport.json('GET', `/api/slice?${query}`));
      if (turn !== this.selectTurn) return true;
      this.setSelected(detail, show, tab);
      return true;
    } catch (error) {
      if (turn === this.selectTurn && error.status !== undefined && error.status !== 404
        && error.status !== 400) this.panes.slice.fail(error.message);
      return false;
    }
  }

  /** A slice by SQL's id; when that is of another table, the time is shown. */
  async selectId(id, ts) {
    if (await this.selectBy(`id=${encodeURIComponent(id)}`, { show: true, tab: false })) {
      if (ts === null || (this.selected && this.selected.from === ts)) return true;
    }
    if (ts !== null) this.showTime(ts, ts);
    return ts !== null;
  }

  /** After another generation of the trace: the same slice has another number there. */
  async reselect() {
    const { selected, area } = this;
    if (area) this.setArea({ ...area, rows: area.all ? this.rows.allRequests()
      : area.rows.filter((r) => this.rows.byId.has(r[0])) }, false);
    if (!selected) return;
    try {
      const answer =
        await this.wait(this.transport.json('POST', '/api/search',
          { text: selected.detail.name, limit: 1, at: selected.detail.ts }));
      const hit = answer.hits[0];
      if (this.selected !== selected) return;
      if (hit && hit.ts === selected.detail.ts
        && hit.name === selected.detail.name) await this.select(hit.slice,
          { show: false, tab: false });
      else this.clearSelection();
    } catch {
      this.clearSelection();
    }
  }

  setSelected(detail, show, tab) {
    const own = interval(detail, this.last);
    if (detail.unfinished) own.to = this.last;
    const flows = [];
    for (const flow of detail.in || []) flows.push(
      { from: interval(flow.slice, this.last), to: own });
    for (const flow of detail.out
      || []) flows.push({ from: own, to: interval(flow.slice, this.last) });
    const { by, at, woke = [] } = detail.wait || {}, wakes = [];
    if (by) wakes.push({ from: { ...interval(by, this.last), to: BigInt(at) },
      to: { ...own, from: BigInt(at) } });
    for (const slice of woke) wakes.push({ from: { ...own, to: BigInt(slice.ts) },
      to: interval(slice, this.last) });
    this.selected = { ...own, detail, flows: [...flows, ...wakes] };
    this.area = null;
    this.panes.area.clear();
    this.panes.slice.show(detail);
    if (tab) this.details.open('slice');
    if (show) {
      this.view.show(own.from, own.to);
      this.timeline.reveal(own.row, own.line);
    }
    const length = detail.instant ? 'an instant' : detail.unfinished ? 'unfinished'
      : formatExact(BigInt(detail.dur));
    this.announce(`${detail.name || 'unnamed slice'}, ${length}, at `
      + `${formatSeconds(own.from - this.zero)}, row ${this.rowName(own.row)}`);
    this.changed();
  }

  async near(to, by) {
    if (!this.selected) return this.firstVisible();
    const turn = this.selectTurn;
    try {
      const answer =
        await this.wait(this.transport.json('GET',
          `/api/near?slice=${this.selected.slice}&to=${to}&by=${by}`));
      if (turn !== this.selectTurn) return undefined;
      if (!answer.slice) return this.announce(`No ${to} slice`);
      return await this.select(answer.slice.slice, { tab: this.details.tab === 'slice' });
    } catch (error) {
      return this.announce(error.message);
    }
  }

  /** Without a selection the first slice on screen is taken, so that the keyboard alone
   * suffices. */
  firstVisible() {
    for (const place of this.timeline.places) {
      if (place.node.type !== 'row' || place.node.counter || place.node.local) continue;
      const y = Math.max(place.y, place.clipTop) + 8;
      for (let x = 0; x < this.timeline.width; x++) {
        const found = this.timeline.pick(x, y);
        if (found && found.slice !== null) return this.select(found.slice, { show: false });
      }
    }
    return this.announce('No slice is on screen');
  }

  parent() {
    const parents = this.selected ? this.selected.detail.parents : [];
    if (parents && parents.length) this.select(parents[0].slice); else this.announce('No parent');
  }

  /** The first slice on the next line below the selected one, as far as it is on screen. */
  child() {
    const { selected, timeline, view } = this;
    if (!selected) return this.firstVisible();
    const line = timeline.lineOf(selected.row, selected.line + 1);
    if (line) {
      const first = Math.max(0, Math.floor(view.pixel(selected.from))),
        last = Math.min(view.width, Math.ceil(view.pixel(selected.to)));
      for (let x = first; x < last; x++) {
        const found = timeline.pick(x / this.dpr, line.y + 4);
        if (found && found.slice !== null) return this.select(found.slice);
      }
    }
    return this.announce('No slice below it');
  }

  /** Along an arrow: the first one that leaves ("out") or arrives ("in"). Of a wait: to who
   * ended it; of a thread that runs: to whom it woke. */
  follow(direction) {
    const { in: before = [], out: after = [], wait = {} } = this.selected
      ? this.selected.detail : {};
    const list = direction === 'in' ? [...before.map((flow) => flow.slice), wait.by].filter(Boolean)
      : [...after.map((flow) => flow.slice), ...(wait.woke || [])];
    if (list.length) this.select(list[0].slice, { tab: this.details.tab === 'slice' });
    else this.announce(direction === 'out' ? 'No arrow leaves this slice'
      : 'No arrow arrives at this slice');
  }

  setArea(area, tab) {
    this.area = area;
    this.selected = null;
    this.selectTurn++;
    this.panes.slice.clear();
    this.panes.area.show(area);
    if (tab) this.details.open('area');
    this.changed();
  }

  clearArea() {
    if (!this.area) return;
    this.area = null;
    this.panes.area.clear();
    this.changed();
  }

  /** The area between two points of a drag; on the axis it has all rows. */
  dragArea(drag, point, done) {
    const { view, timeline } = this;
    const pixel = (x) => Math.max(0, Math.min(view.width, Math.round(x * this.dpr)));
    const a = Math.min(pixel(drag.x), pixel(point.x)), b = Math.max(pixel(drag.x), pixel(point.x));
    const top = Math.min(drag.y, point.y), bottom = Math.max(drag.y, point.y);
    const from = view.edge(a), to = view.edge(Math.max(a + 1, b));
    let rows = this.rows.allRequests();
    if (!drag.whole) {
      const touched = new Set(timeline.places.filter((p) => p.y + p.height > top && p.y <= bottom)
        .flatMap((p) => this.rowsOf(p.node)));
      rows = rows.filter((r) => touched.has(r[0]));
    }
    if (!rows.length) return;
    this.area = { from, to, rows, all: drag.whole };
    this.selected = null;
    if (done) this.setArea(this.area, true);
    this.invalidate();
  }

  /** "from" or "to": the edge of the area that is near x (CSS pixels); "": none. */
  areaEdge(x) {
    const { area, view, dpr } = this;
    if (!area) return '';
    const far = (t) => Math.abs(view.pixel(t) / dpr - x);
    const edge = far(area.from) <= far(area.to) ? 'from' : 'to';
    return far(area[edge]) <= EDGE ? edge : '';
  }

  /** Moves an edge; past the other one it becomes that one. */
  dragEdge(drag, point, done) {
    const { view, area } = this, other = area[drag.edge === 'from' ? 'to' : 'from'];
    const at = view.edge(Math.max(0, Math.min(view.width, Math.round(point.x * this.dpr))));
    if (at === other) return;
    const from = minTime(at, other), to = maxTime(at, other);
    drag.edge = at === from ? 'from' : 'to';
    this.area = { ...area, from, to };
    if (done) this.setArea(this.area, true);
    this.invalidate();
  }

  /** A row by itself; of a folded group or row everything below it. */
  rowsOf(node) {
    if (node.type === 'row' && !node.folded) return [node.id];
    if (node.type === 'group' && !node.folded) return [];
    return [...this.rows.nodes([node])].filter((n) => n.type === 'row').map((n) => n.id);
  }

  areaOfView() {
    const slice = this.selected;
    const from = slice ? slice.from : maxTime(this.view.from, this.first), to = slice ? slice.to
      : minTime(this.view.to, this.last + 1n);
    if (to > from) this.setArea({ from, to, rows: this.rows.allRequests(), all: true }, true);
  }

  areaOfAll() {
    this.setArea({ from: this.first, to: this.last + 1n, rows: this.rows.allRequests(), all: true },
      true);
  }

  clearSelection() {
    this.selected = null;
    this.selectTurn++;
    this.panes.slice.clear();
    this.clearArea();
    this.changed();
  }

  /** F: the selection, or everything when it is fitted already. */
  fit() {
    const target = this.interval();
    const key = target ? `${target.from} ${target.to}` : '';
    if (!target || this.fitted === key) {
      this.fitted = '';
      this.view.fitAll();
      return;
    }
    this.view.fit(target.from, target.to);
    if (this.selected) this.timeline.reveal(this.selected.row, this.selected.line);
    this.fitted = key;
  }

  /** Scrolls to a row or group, which opens what is above it. */
  goToRow(node) {
    this.pages.show('timeline');
    const { rows, timeline } = this;
    if (node.type === 'row') rows.reveal(node.id);
      else for (let up = node.parent; up; up = up.parent) up.folded = false;
    rows.layout();
    const entry = rows.entries.find((e) => e.node === node);
    if (entry) timeline.scrollTo(entry.y);
    this.invalidate();
    this.announce(node.name);
  }

  /** Shows a time that no slice may be at. */
  showTime(from, to) {
    this.pages.show('timeline');
    if (to > from) this.view.show(from, to);
    else {
      const span = this.view.span;
      this.view.go(from - span / 2n, from - span / 2n + span);
    }
  }

  mark() {
    const target = this.interval();
    let ts = target ? target.from : null, to = target ? target.to : null;
    if (!target) ts = this.pointerX !== null ? this.view.edge(Math.floor(this.pointerX))
      : this.view.from + this.view.span / 2n;
    const mark = this.marks.add(ts, to);
    this.details.open('marks');
    this.marks.focus(mark);
  }
}
