// The viewer: its parts, the frame loop, and what the commands do.

import { AreaPane } from './areapane.js';
import { Axis } from './axis.js';
import { ComparePane } from './comparepane.js';
import { WindowData } from './data.js';
import { Details } from './details.js';
import { el, onDrag, openMenu } from './dom.js';
import { Exporter } from './exporter.js';
import { Hover } from './hover.js';
import { Input } from './input.js';
import { Marks } from './marks.js';
import { Names } from './names.js';
import { Overview } from './overview.js';
import { Theme } from './palette.js';
import { PathRow } from './pathrow.js';
import { RowNames } from './rownames.js';
import { Rows } from './rows.js';
import { Search } from './search.js';
import { Selecting } from './selection.js';
import { SlicePane } from './slicepane.js';
import { SqlPane } from './sqlpane.js';
import { UrlState } from './state.js';
import { formatCount, formatSeconds, formatShort } from './time.js';
import { Timeline } from './timeline.js';
import { Tooltip } from './tooltip.js';
import { View } from './view.js';

const sameRows = (a, b) => a.length === b.length
  && a.every((row, i) => row.id === b[i].id && row.name === b[i].name && row.kind === b[i].kind);
const byId = (id) => document.getElementById(id);

export class App extends Selecting {
  constructor(transport) {
    super();
    this.transport = transport;
    this.ready = false;
    this.trace = null;
    this.first = 0n;
    this.zero = 0n; // where times begin that people read
    this.last = 1n;
    this.losses = [];
    this.waiting = 0;
    this.scheduled = false;
    this.resized = true;
    this.after = [];
    this.frames = 0;
    this.turn = 0;
    this.texts = 0;
    this.thumb = '';
    this.names = new Names();
    this.rows = new Rows();
    this.view = new View(() => this.changed());
    this.data = new WindowData(transport, this, () => this.invalidate());
    this.theme = new Theme(() => this.themed());
    this.tooltip = new Tooltip(byId('tooltip'));
    this.url = new UrlState(this);
    this.timeline = new Timeline(this, byId('timeline'));
    this.axis = new Axis(byId('axis'));
    this.overview = new Overview(byId('overview'), this);
    this.rowNames = new RowNames(this, byId('names'));
    this.filterInput = byId('filter');
    this.details = new Details(this);
    this.marks = new Marks(this, byId('pane-marks'));
    this.panes = { slice: new SlicePane(this, byId('pane-slice')),
      area: new AreaPane(this, byId('pane-area')), sql: new SqlPane(this, byId('pane-sql')),
        compare: new ComparePane(this, byId('pane-compare')) };
    this.search = new Search(this, byId('search'), byId('search-count'), byId('pane-search'));
    this.exporter = new Exporter(this);
    this.pointer = new Hover(this);
    this.path = new PathRow(this);
    this.input = new Input(this, byId('timeline'), byId('axis'));
    this.listen();
  }

  get palette() {
    return this.theme.palette;
  }

  get dpr() {
    return this.timeline.dpr || 1;
  }

  get pointerX() {
    return this.pointer.x === null ? null : this.pointer.x * this.dpr;
  }

  listen() {
    new ResizeObserver(() => { this.resized = true; this.invalidate(); }).observe(byId('timeline'));
    matchMedia('(resolution: 1dppx)').addEventListener('change',
      () => { this.resized = true; this.invalidate(); });
    this.filterInput.addEventListener('input', () => {
      this.rows.setFilter(this.filterInput.value);
      this.timeline.scrollTo(0);
      this.changed();
    });
    byId('fit').addEventListener('click', () => this.fit());
    byId('theme').addEventListener('click', () => this.theme.toggle());
    byId('help').addEventListener('click',
      () => this.input.commands.find((c) => c.key === '?').act());
    byId('export').addEventListener('click', (event) => this.exportMenu(event.currentTarget));
    byId('rows-menu').addEventListener('click', (event) => this.rowsMenu(event.currentTarget));
    const { timeline } = this;
    onDrag(byId('thumb'), (event) => ({ y: event.clientY, top: timeline.scrollTop }),
      (event, start) => {
      timeline.scrollTo(start.top + (event.clientY - start.y) * this.rows.height / Math.max(1,
        timeline.height));
    });
    document.addEventListener('visibilitychange', () => { if (this.scheduled) this.schedule(); });
    addEventListener('pointerdown', () => document.body.classList.remove('by-keys'), true);
    addEventListener('keydown', (event) => {
      if (event.key === 'Tab') document.body.classList.add('by-keys');
      this.pointer.hush();
    }, true);
  }

  exportMenu(anchor) {
    openMenu(anchor, [
      { text: 'View as PNG', act: () => this.exporter.png() },
      { text: 'View as SVG', act: () => this.exporter.svg() },
      { text: 'Window as trace', act: () => this.saveCut(this.view.from, this.view.to) },
      { text: 'Copy the address of this view', act: () => this.copyAddress() },
    ]);
  }

  rowsMenu(anchor) {
    const entries = [{ text: 'Fold all groups', act: () => this.foldAll(true) },
      { text: 'Unfold all groups', act: () => this.foldAll(false) }];
    const { emptyRows, hidden, pins } = this.rows;
    if (emptyRows) entries.push({ text: this.rows.showEmpty ? 'Fold away empty rows'
      : `Show ${formatCount(emptyRows)} empty rows`, act: () => this.toggleEmpty() });
    if (hidden.size) entries.push({ text: `Show ${hidden.size} hidden`, act: () => this.unhide() });
    if (pins.length) entries.push({ text: 'Unpin all',
      act: () => { this.rows.pins = []; this.rows.layout(); this.changed(); } });
    openMenu(anchor, entries);
  }

  /** A trace is there (or another generation of it). */
  open(trace) {
    const again = this.trace !== null, follow = again ? this.followMode() : '';
    const same = again && sameRows(this.trace.rows, trace.rows);
    this.trace = trace;
    this.names = new Names();
    this.first = BigInt(trace.first);
    this.zero = trace.compared ? 0n : this.first; // two runs have their common event there
    this.last = BigInt(trace.last);
    this.losses = (trace.losses || [])
      .map((loss) =>
      ({ from: BigInt(loss.ts), to: BigInt(loss.ts) + BigInt(loss.dur || 0), row: loss.row,
        count: String(loss.count), cause: String(loss.cause || '') }));
    this.view.setBounds(this.first, this.last);
    if (!same) this.rows.order = null;
    this.rows.load(trace);
    for (const data of [this.data, this.overview.data]) if (same) data.refresh(); else data.reset();
    this.describe(trace);
    this.ready = true;
    this.measure();
    if (!again) {
      this.url.apply();
      this.marks.load();
    } else {
      this.reselect();
      this.growWith(follow);
    }
    this.changed();
  }

  /** What the window does when the trace grows: shows the whole, stays at the end, or stays
   * where the user put it. */
  followMode() {
    if (this.view.to < this.last) return '';
    return this.view.from <= this.first ? 'whole' : 'end';
  }

  growWith(mode) {
    if (mode === 'whole') this.view.place(this.view.whole.from, this.view.whole.to);
    else if (mode === 'end') {
      const to = this.last + this.view.span / 50n;
      this.view.place(to - this.view.span, to);
    }
  }

  describe(trace) {
    const { files = [] } = trace, several = files.length > 1 ? ` and ${files.length - 1} more` : '';
    const sides = files.slice(0, 2)
      .map((file, i) => el('span', { class: 'side', text: `${'AB'[i]} · ${file}` }));
    byId('trace-name').replaceChildren(...(trace.compared ? sides : [trace.name + several]));
    byId('trace-name').title = (trace.files || [trace.name]).join('\n');
    document.title = `${trace.name} · Stave`;
    byId('trace-facts').textContent =
      `${formatCount(trace.slices)} slices · ${formatShort(this.last - this.first)}`;
    this.badges(trace);
    this.details.button('compare').hidden = !trace.compared;
    const empty = byId('empty');
    empty.hidden = this.rows.groups.some((g) => g.total > 0);
    empty.textContent = 'This trace has no slices and no counters.';
  }

  badges(trace) {
    const badge = (kind, text, notes) =>
      el('button', { type: 'button', class: `badge ${kind}`, text, 'aria-haspopup': 'menu',
        onclick: (event) => openMenu(event.currentTarget, notes) });
    const list = [];
    if (trace.live) list.push(el('span', { class: 'badge', text: 'live' }));
    if (this.losses.length) {
      const lost = this.losses.reduce((sum, loss) => sum
        + BigInt(/^\d+$/.test(loss.count) ? loss.count : 0), 0n);
      list.push(badge('loss', lost > 0n ? `${formatCount(lost)} events lost` : 'events lost',
        this.losses.slice(0, 100).map((loss) => ({
        text: `${loss.count} lost at ${formatSeconds(loss.from - this.zero)}`
          + `${loss.cause ? `: ${loss.cause}` : ''}`,
        act: () => this.showTime(loss.from, loss.to),
      }))));
    }
    if (trace.notes && trace.notes.length) list.push(badge('note', trace.notes.length === 1
      ? '1 note' : `${trace.notes.length} notes`,
        trace.notes.map((note) => ({ note: String(note) }))));
    if (trace.active) {
      const [from, to, n] = trace.active, where = { title: 'Show everything (0)' };
      list.push(el('button', {
        type: 'button', class: 'badge', ...where, onclick: () => this.view.fitAll(),
        text: `${formatCount(n)} events outside ${formatShort(BigInt(to) - BigInt(from))}`,
      }));
    }
    byId('badges').replaceChildren(...list);
    this.legend(trace.states || []);
  }

  /** What the colours of states mean, in the colours of the theme. */
  legend(states) {
    const box = byId('states');
    box.hidden = states.length === 0;
    box.replaceChildren(...states.map(({ name, colour }) => {
      const chip = el('i', { class: 'chip' }), sleeps = name === 'sleeps' ? 'Sleeping' : 'Running';
      chip.style.background = this.colourOf({ name: sleeps, colour });
      return el('span', {}, chip, name);
    }));
  }

  rowName(id) {
    const node = this.rows.byId.get(id);
    if (!node) return `row ${id}`;
    const side = node.side === undefined ? '' : `${'AB'[node.side]} · `;
    if (node.parent && node.parent.type === 'row'
      && node.parent.side === node.side) return `${side}${node.parent.name} · ${node.name}`;
    return side + node.name;
  }

  colourOf({ name, colour }) {
    return this.palette.solid[this.names.styleOf(name || '', colour)];
  }

  /** Counts a promise among what idle() waits for. */
  async wait(promise) {
    this.waiting++;
    try {
      return await promise;
    } finally {
      this.waiting--;
    }
  }

  announce(text) {
    byId('live').textContent = text;
  }

  /** A message that people must see. */
  say(text, bad = true) {
    const banner = byId('banner');
    banner.textContent = text;
    banner.classList.toggle('bad', bad);
    banner.hidden = text === '';
  }

  themed() {
    this.legend(this.trace ? this.trace.states || [] : []);
    if (!this.overview) return;
    this.overview.stale = true;
    this.panes.area.redraw();
    if (this.selected) this.panes.slice.show(this.selected.detail);
    this.invalidate();
  }

  /** Something changed that the URL holds. */
  changed() {
    if (this.url) this.url.changed();
    this.invalidate();
  }

  invalidate() {
    if (this.scheduled) return;
    this.scheduled = true;
    this.schedule();
  }

  /** A tab in the background gets no animation frames; it is painted by a timer then. */
  schedule() {
    const turn = ++this.turn;
    const paint = (now) => { if (turn === this.turn) this.frame(now); };
    if (document.hidden) setTimeout(() => paint(performance.now()), 100);
      else requestAnimationFrame(paint);
  }

  afterFrame(act) {
    this.after.push(act);
    this.invalidate();
  }

  measure() {
    if (!this.resized) return;
    this.resized = false;
    const dpr = devicePixelRatio || 1, box = this.timeline.canvas.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) { this.resized = true; return; }
    this.timeline.resize(box.width, box.height, dpr);
    this.axis.canvas.width = this.timeline.canvas.width;
    this.axis.canvas.height = Math.round(34 * dpr);
    this.overview.resize(this.timeline.canvas.width, Math.round(45 * dpr));
  }

  frame(now) {
    this.scheduled = false;
    if (!this.ready) return;
    this.measure();
    if (!this.timeline.dpr) return;
    this.view.step(now, this.pointer.x === null ? 0.5 : this.pointer.x / this.timeline.width,
      (px) => this.timeline.scrollBy(px));
    this.timeline.ask();
    this.overview.ask();
    this.pointer.update();
    const scene = this.timeline.scene();
    this.timeline.draw(scene);
    this.axis.draw(scene);
    this.overview.draw(this.palette);
    this.rowNames.update(this.timeline.places, this.timeline.pinnedHeight);
    this.drawTexts(now);
    this.panes.compare.update();
    this.frames++;
    for (const act of this.after.splice(0)) act();
    if (this.view.moving) this.invalidate();
  }

  /** Texts beside the canvases; ten times a second are enough while the view moves, because each
   * is a layout of the page. */
  drawTexts(now) {
    this.drawThumb();
    if (this.view.moving && now - this.texts < 100) return;
    this.texts = now;
    const set = (id, text) => { const box = byId(id);
      if (box.textContent !== text) box.textContent = text; };
    set('span', `${formatShort(this.view.span)} visible`);
    set('from', `from ${formatSeconds(this.view.from - this.zero)}`);
    set('status', this.data.failure ? `No data: ${this.data.failure}` : this.pointer.time === null
      ? '' : formatSeconds(this.pointer.time - this.zero));
  }

  drawThumb() {
    const { timeline, rows } = this, room = timeline.height - timeline.pinnedHeight,
      whole = Math.max(1, rows.height + 40), thumb = byId('thumb');
    const key = `${timeline.scrollTop} ${room} ${whole}`;
    if (key === this.thumb) return;
    this.thumb = key;
    thumb.hidden = whole <= room;
    thumb.style.top = timeline.pinnedHeight + timeline.scrollTop / whole * room + 'px';
    thumb.style.height = Math.max(24, room * room / whole) + 'px';
  }

  get idle() {
    return this.ready && !this.scheduled && !this.view.moving && this.waiting === 0
      && !this.search.busy && !this.panes.area.busy && !this.panes.compare.busy
      && this.marks.timer === null
      && this.after.length === 0 && this.timeline.settled && this.overview.settled;
  }

  /** The connection is back: ask again for what is missing. */
  reconnected() {
    this.data.again();
    this.overview.data.again();
  }

  hold(action, event) {
    this.tooltip.hide();
    this.view.press(action, event.timeStamp);
    this.invalidate();
  }

  click(point) {
    const found = this.timeline.pick(point.x, point.y);
    this.fitted = '';
    if (found && found.local >= 0) {
      const { local } = this.rows.byId.get(found.row);
      if (local.go) local.go(found.local);
        else this.view.show(local.ts[found.local], local.end[found.local]);
    } else if (found && found.slice !== null && found.slice !== undefined) this.select(found.slice,
      { show: false });
    else this.clearSelection();
  }

  escape() {
    this.tooltip.hide();
    if (this.path.isShown) this.path.close();
    else if (this.selected || this.area) this.clearSelection();
    else if (this.details.isOpen) this.details.close();
    else if (this.rows.filter) {
      this.filterInput.value = '';
      this.rows.setFilter('');
      this.changed();
    }
    this.focusTimeline();
  }

  /** The row that keys act on: the focused one, the one under the pointer, the selection's. */
  get currentRow() {
    return this.rowNames.focused || this.pointer.node
      || (this.selected ? this.rows.byId.get(this.selected.row) : null);
  }

  pin(node) {
    this.rows.pin(node);
    this.announce(this.rows.pins.includes(node.id) ? `${node.name} is pinned`
      : `${node.name} is not pinned`);
    this.changed();
  }

  hide(node) {
    if (node === this.rows.path) this.path.close();
    else if (node.local) this.rows.removeLocal(node); else this.rows.hide(node);
    this.announce(`${node.name} is hidden`);
    this.changed();
  }

  fold(node, folded) {
    this.rows.fold(node, folded);
    this.changed();
  }

  /** Pins, hides or folds it. */
  current(act) {
    const node = this.currentRow;
    if (node && (act !== 'pin' || node.type === 'row')) this[act](node);
  }

  foldAll(folded) {
    this.rows.foldAll(folded);
    this.changed();
  }

  unhide() {
    this.rows.unhide();
    this.changed();
  }

  toggleEmpty() {
    this.rows.showEmpty = !this.rows.showEmpty;
    this.rows.layout();
    this.changed();
  }

  focusTimeline() {
    this.timeline.canvas.focus({ preventScroll: true });
  }

  focusSearch() {
    this.search.input.focus();
    this.search.input.select();
  }

  focusFilter() {
    this.filterInput.focus();
    this.filterInput.select();
  }

  focusSql() {
    this.details.open('sql');
    this.panes.sql.input.focus();
  }

  searchFor(text) {
    this.search.set(text);
  }

  copyAddress() {
    this.url.write();
    navigator.clipboard.writeText(location.href);
    this.announce('The address is copied; it needs the token of a running viewer');
  }

  saveCut(from, to) {
    return this.exporter.cut(from, to);
  }
}
