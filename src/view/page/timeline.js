// The time line: what is where on its canvas, which data it needs, drawing it, and what is at a
// pixel.

import { ticksOf } from './axis.js';
import { itemAt, touching } from './codec.js';
import * as overlay from './overlay.js';
import { Raster } from './raster.js';
import { LINE, PAD } from './rows.js';
import { TextFit } from './text.js';
import { edge } from './time.js';

const MARGIN_FAR = 90;
const MARGIN = 360; // CSS pixels above and below the canvas whose rows are asked for too
const LINE_MARGIN = 16;
const MOVING_MS = 60; // while the view moves: from one request to the next, at least

export class Timeline {
  constructor(app, canvas) {
    this.app = app;
    this.canvas = canvas;
    this.raster = new Raster(canvas);
    this.fit = new TextFit(this.raster.context);
    this.scrollTop = 0;
    this.width = 0;
    this.height = 0;
    this.places = [];
    this.lastAsk = 0;
  }

  resize(width, height, dpr) {
    this.width = width;
    this.height = height;
    this.dpr = dpr;
    this.fit.size = 0;
    this.raster.resize(Math.max(1, Math.round(width * dpr)),
      Math.max(1, Math.round(height * dpr)), dpr);
    this.app.view.resize(this.raster.width);
  }

  get pinnedHeight() {
    return Math.min(this.app.rows.pinnedHeight, Math.floor(this.height / 2));
  }

  get most() {
    return Math.max(0, this.app.rows.height + 40 - (this.height - this.pinnedHeight));
  }

  scrollTo(y) {
    const top = Math.max(0, Math.min(this.most, y));
    if (top === this.scrollTop) return;
    this.scrollTop = top;
    this.app.invalidate();
  }

  scrollBy(px) {
    this.scrollTo(this.scrollTop + px);
  }

  /** Where the entries on screen are: y is relative to the canvas. */
  place(margin = 0) {
    const { rows } = this.app, pinned = this.pinnedHeight;
    this.scrollTop = Math.max(0, Math.min(this.most, this.scrollTop));
    const places = [];
    for (const entry of rows.pinned) {
      if (entry.y < pinned) places.push({ node: entry.node, y: entry.y, height: entry.height,
        clipTop: 0, clipBottom: pinned, pinned: true });
    }
    const shift = pinned - this.scrollTop;
    for (let i = rows.entryFrom(this.scrollTop - margin); i < rows.entries.length; i++) {
      const entry = rows.entries[i];
      if (entry.y + shift >= this.height + margin) break;
      places.push({ node: entry.node, y: entry.y + shift, height: entry.height, clipTop: pinned,
        clipBottom: this.height, pinned: false });
    }
    return places;
  }

  /** [row, first line, lines] of what is between the clip edges, widened by some lines. */
  requestOf(place, extra) {
    const node = place.node, shown = this.app.rows.linesShown(node);
    if (node.counter) return [node.id, 0, 0];
    const top = place.y + PAD;
    const first = Math.max(0, Math.floor((place.clipTop - top) / LINE) - extra);
    const last = Math.min(shown, Math.ceil((Math.max(place.clipBottom, 0) - top) / LINE) + extra);
    return last > first ? [node.id, first, last - first] : null;
  }

  requests(places, extra) {
    const list = [];
    for (const place of places) {
      const node = place.node;
      if (this.app.rows.isDense(node)) {
        for (const { id, lines } of this.app.rows.parts(node)) list.push([id, 0, lines]);
        continue;
      }
      if (node.type !== 'row' || node.local || !node.own) continue;
      const request = this.requestOf(place, extra);
      if (request) list.push(request);
    }
    return list;
  }

  get needed() {
    return this.requests(this.places, 0);
  }

  get more() {
    const { far } = this.app.transport, margin = far ? MARGIN_FAR : MARGIN;
    const places = this.place(margin)
      .map((p) => (p.pinned ? p
        : { ...p, clipTop: p.clipTop - margin, clipBottom: p.clipBottom + margin }));
    return this.requests(places, far ? 0 : LINE_MARGIN);
  }

  ask() {
    this.places = this.place();
    const { data, view } = this.app, now = performance.now();
    if (view.moving && now - this.lastAsk < MOVING_MS) return;
    if (data.ensure(view.window, this.needed, () => this.more)) this.lastAsk = now;
  }

  get settled() {
    return this.app.data.settled(this.app.view.window, this.needed);
  }

  /** Everything that the functions of drawing need to know. */
  scene() {
    const app = this.app;
    const { step, ticks } = ticksOf(app.view, app.zero, this.dpr);
    return {
      view: app.view, rows: app.rows, data: app.data, palette: app.palette, dpr: this.dpr,
      places: this.places,
      losses: app.losses, first: app.zero, step, ticks, marks: app.marks.list,
      interval: app.interval(), pointerX: app.pointerX,
      placeOf: (row) => this.places.find((p) => p.node.type === 'row' && p.node.id === row),
      lineOf: (row, line) => this.lineOf(row, line),
      anchorOf: (row, line) => this.anchorOf(row, line),
    };
  }

  draw(scene) {
    const { raster } = this, { palette } = scene, dpr = this.dpr;
    raster.clear(palette, scene.ticks.map((t) => t.x));
    const pinned = Math.round(this.pinnedHeight * dpr);
    for (const place of this.places) {
      const clip = place.pinned ? { top: 0, bottom: pinned }
        : { top: pinned, bottom: raster.height };
      raster.entry(place.node, place.y, place.height, scene, clip);
    }
    raster.put();
    const context = raster.context;
    overlay.drawLabels(context, raster, this.fit, palette);
    overlay.drawMarkers(context, raster, palette);
    overlay.drawLosses(context, scene);
    overlay.drawMarks(context, scene, scene.marks, palette);
    this.drawSelection(context, scene);
    if (pinned) {
      context.fillStyle = palette.muted;
      context.fillRect(0, pinned - dpr, raster.width, dpr);
    }
  }

  drawSelection(context, scene) {
    const { area, selected, pointer } = this.app, palette = scene.palette;
    if (area) overlay.drawArea(context, scene, area, palette);
    if (pointer.box) overlay.drawHover(context, scene, pointer.box, palette);
    if (selected) {
      overlay.drawFlows(context, scene, selected.flows, palette);
      overlay.drawSelected(context, scene, selected, palette);
    }
  }

  lineOf(row, line) {
    const place = this.places.find((p) => p.node.type === 'row' && p.node.id === row);
    if (!place || line >= this.app.rows.linesShown(place.node)) return null;
    return { y: place.y + PAD + line * LINE, clipTop: place.clipTop, clipBottom: place.clipBottom };
  }

  /** The middle of a line, also when it is above or below the canvas or folded away. */
  anchorOf(row, line) {
    const { rows } = this.app;
    let node = rows.byId.get(row);
    let entry = null, pinned = false;
    const found = node && rows.find(row);
    if (found) ({ entry, pinned } = found);
    for (; node && !entry; node = node.parent) entry = rows.entries.find((e) => e.node === node)
      || null;
    if (!entry) return null;
    const y = entry.y + (pinned ? 0 : this.pinnedHeight - this.scrollTop);
    const shown = entry.node.id === row && entry.node.type === 'row'
      ? Math.min(line, Math.max(0, rows.linesShown(entry.node) - 1)) : 0;
    const middle = entry.node.type === 'row' && !entry.node.counter ? y + PAD + shown * LINE
      + LINE / 2 : y + entry.height / 2;
    return Math.max(pinned ? 0 : this.pinnedHeight - 30, Math.min(this.height + 30, middle));
  }

  placeAt(y) {
    return this.places.find((p) => y >= Math.max(p.y, p.clipTop)
      && y < Math.min(p.y + p.height, p.clipBottom)) || null;
  }

  lineAt(place, y) {
    const lines = this.app.rows.linesShown(place.node);
    return Math.max(0, Math.min(lines - 1, Math.floor((y - place.y - PAD) / LINE)));
  }

  /** The pixel of a reply that is at x (CSS pixels) of the canvas. */
  pixelAt(reply, x) {
    const { x0, k } = this.raster.project(reply, this.app.view);
    return Math.floor((Math.floor(x * this.dpr + 1e-6) - x0) / k + 1e-6);
  }

  /** What is at a point of the canvas (CSS pixels), from the data at hand: exact for the pixel
   * that it names. */
  pick(x, y) {
    const place = this.placeAt(y);
    if (!place || place.node.type !== 'row') return null;
    const node = place.node;
    if (node.local && node.counter) return this.pickLocalCounter(node, x);
    if (node.local) return this.pickLocal(node, x, this.lineAt(place, y));
    if (this.app.rows.isDense(node)) return null;
    const line = node.counter ? 0 : this.lineAt(place, y);
    const reply = this.app.data.find(node.id, line);
    if (!reply) return node.own ? null
      : this.result(node, line, this.app.view, Math.floor(x * this.dpr), null);
    const pixel = this.pixelAt(reply, x);
    if (node.counter) return this.pickCounter(node, reply, pixel);
    if (line < 0) return this.result(node, 0, reply.window, pixel, null);
    const found = touching(reply, reply.rows.get(node.id), line, pixel);
    found.text = found.count > 0 ? reply.names.text[found.name] : null;
    return this.result(node, line, reply.window, pixel, found);
  }

  result(node, line, window, pixel, found) {
    const from = edge(window, pixel), to = edge(window, pixel + 1), some = found !== null
      && found.count > 0;
    return {
      row: node.id, depth: line, from: from.toString(), to: to.toString(),
      count: found ? found.count : 0,
      name: some ? found.text : null, dur: some && found.dur !== null ? found.dur.toString() : null,
      slice: some ? found.slice : null,
      sql: `select count(*) from slice where view_row = ${node.id} and view_line `
        + `= ${line} and ts < ${to} and (ts >= ${from} or (dur = -1 and `
        + `${this.app.trace.last} > ${from}) or ts + dur > ${from})`,
    };
  }

  pickCounter(node, reply, pixel) {
    return this.valueAt(reply.rows.get(node.id), pixel,
      this.result(node, 0, reply.window, pixel, null));
  }

  pickLocalCounter(node, x) {
    const { view } = this.app, pixel = Math.floor(x * this.dpr);
    const found = { ...this.result(node, 0, view, pixel, null), sql: null, local: -1 };
    return this.valueAt(node.local.pixels(view), pixel, found);
  }

  /** Adds the value that a counter has in a pixel. */
  valueAt({ pixel, min, max, last }, x, found) {
    let at = -1;
    for (let i = 0; i < pixel.length && pixel[i] <= x; i++) at = i;
    if (at >= 0) found.value = { min: min[at], max: max[at], last: last[at],
      here: pixel[at] === x };
    return found;
  }

  pickLocal(node, x, line) {
    const view = this.app.view, pixel = Math.floor(x * this.dpr);
    const from = view.edge(pixel), to = view.edge(pixel + 1);
    const found = node.local.touching(line, from, to);
    return {
      row: node.id, depth: line, from: from.toString(), to: to.toString(), count: found.count,
      name: found.name, dur: found.dur,
      slice: null, sql: null, local: found.at,
    };
  }

  /** The box of the slice at a point, for the outline under the pointer. */
  boxAt(x, y) {
    const place = this.placeAt(y);
    if (!place || place.node.type !== 'row' || place.node.counter || place.node.local) return null;
    if (this.app.rows.isDense(place.node)) return null;
    const line = this.lineAt(place, y), reply = line < 0 ? null
      : this.app.data.find(place.node.id, line);
    if (!reply) return null;
    const row = reply.rows.get(place.node.id), pixel = this.pixelAt(reply, x),
      at = itemAt(reply, row, line, pixel);
    if (at < 0 || reply.items.pixel[at] + reply.items.tail[at] < pixel) return null;
    const { x0, k } = this.raster.project(reply, this.app.view);
    const start = Math.floor(x0 + reply.items.pixel[at] * k),
      end = Math.ceil(x0 + (reply.items.pixel[at] + 1 + reply.items.tail[at]) * k);
    return { x: start, end: Math.max(start + 1, end), y: place.y + PAD + line * LINE };
  }

  /** Scrolls so that a line of a row can be seen. */
  reveal(row, line) {
    const { rows } = this.app, node = rows.reveal(row);
    if (node && rows.isDense(node)) rows.fold(node, false);
    if (!node) return;
    if (line > 0 && node.folded) rows.fold(node, false);
    const found = rows.find(row);
    if (!found || found.pinned) return;
    const top = found.entry.y + PAD + Math.max(0, line) * LINE,
      room = this.height - this.pinnedHeight;
    if (top < this.scrollTop + 10) this.scrollTo(Math.min(found.entry.y - 30, top - room / 3));
    else if (top + LINE > this.scrollTop + room - 10) this.scrollTo(top - room * 0.6);
  }
}
