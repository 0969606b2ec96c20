// The strip at the top: the whole trace, and where the visible window is in it.

import { WindowData } from './data.js';
import { onDrag } from './dom.js';
import { Raster } from './raster.js';
import { maxTime, pixelOf, scale } from './time.js';

const MOST_ROWS = 12;

export class Overview {
  constructor(canvas, app) {
    this.canvas = canvas;
    this.app = app;
    this.context = canvas.getContext('2d', { alpha: false });
    this.data = new WindowData(app.transport, app,
      () => { this.stale = true; app.invalidate(); }, 'o');
    this.raster = new Raster(new OffscreenCanvas(1, 1));
    this.stale = true;
    this.listen();
  }

  get window() {
    const { from, to } = this.app.view.whole;
    return { from, to: maxTime(to, from + BigInt(this.canvas.width)),
      width: Math.max(1, this.canvas.width) };
  }

  /** The busiest rows in the order of the time line. */
  get rows() {
    const nodes = [...this.app.rows.nodes()].filter((n) => n.type === 'row' && !n.counter
      && !n.local && n.lines > 0 && n.own > 0);
    const busiest =
      new Set([...nodes].sort((a, b) =>
        (a.busy < b.busy ? 1 : a.busy > b.busy ? -1 : b.own - a.own)).slice(0, MOST_ROWS));
    return nodes.filter((n) => busiest.has(n)).map((n) => [n.id, 0, 1]);
  }

  resize(width, height) {
    if (this.canvas.width === width && this.canvas.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.stale = true;
  }

  ask() {
    const rows = this.rows;
    this.data.ensure(this.window, rows, () => rows);
  }

  get settled() {
    return this.data.settled(this.window, this.rows);
  }

  /** A stripe per row, in the colours of its first line. */
  paint(palette) {
    const { width, height } = this.canvas, { raster, rows } = this, { dpr } = this.app;
    raster.resize(width, height, dpr);
    raster.clear(palette, []);
    const stripe = Math.max(1, Math.min(8 * dpr, (height - 8 * dpr) / Math.max(1, rows.length))),
      start = (height - stripe * rows.length) / 2;
    rows.forEach(([id], i) => {
      const top = Math.round(start + i * stripe), reply = this.data.find(id, 0);
      if (!reply) return;
      raster.line.set(raster.ground);
      raster.sliceLine(reply, reply.rows.get(id), 0, { view: this.window }, -1);
      raster.copy(top,
        Math.max(top + 1, Math.round(start + (i + 1) * stripe) - (stripe > 3 ? 1 : 0)));
    });
    raster.put();
    this.stale = false;
  }

  draw(palette) {
    if (this.canvas.width < 2) return;
    if (this.stale) this.paint(palette);
    const { context, canvas } = this, dpr = this.app.dpr;
    context.drawImage(this.raster.canvas, 0, 0);
    const { x, end } = this.box();
    context.fillStyle = palette.dim;
    context.fillRect(0, 0, x, canvas.height);
    context.fillRect(end, 0, canvas.width - end, canvas.height);
    context.strokeStyle = palette.accent;
    context.lineWidth = 1.5 * dpr;
    context.strokeRect(x + dpr, dpr, Math.max(2 * dpr, end - x - 2 * dpr), canvas.height - 2 * dpr);
    context.fillStyle = palette.accent;
    for (const edge of [x, end - 3 * dpr]) context.fillRect(edge, canvas.height / 2 - 8 * dpr,
      3 * dpr, 16 * dpr);
  }

  box() {
    const x = Math.max(0, Math.floor(pixelOf(this.window, this.app.view.from)));
    const end = Math.min(this.canvas.width,
      Math.max(x + 6 * this.app.dpr, Math.ceil(pixelOf(this.window, this.app.view.to))));
    return { x: Math.min(x, this.canvas.width - 6 * this.app.dpr), end };
  }

  timeAt(x) {
    const { from, to, width } = this.window;
    return from + scale(to - from, x / width);
  }

  listen() {
    const canvas = this.canvas;
    const position = (event) => (event.clientX - canvas.getBoundingClientRect().left)
      * this.app.dpr;
    onDrag(canvas, (event) => (event.button === 0 ? this.begin(position(event)) : null),
      (event, start) => this.move(position(event), start));
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.app.view.zoom(Math.pow(1.0016, event.deltaY), 0.5);
    }, { passive: false });
  }

  /** An edge of the window, the window, or beside it: then the window comes there. */
  begin(x) {
    const { view } = this.app, box = this.box(), near = 6 * this.app.dpr;
    const mode = Math.abs(x - box.x) <= near ? 'from' : Math.abs(x - box.end) <= near
      ? 'to' : 'move';
    view.jump = null;
    if (mode === 'move' && (x < box.x || x > box.end)) {
      const from = this.timeAt(x) - view.span / 2n;
      view.place(from, from + view.span);
    }
    return { mode, x, from: view.from, to: view.to };
  }

  move(x, start) {
    const { mode, from, to } = start, { view } = this.app;
    const by = this.timeAt(x) - this.timeAt(start.x);
    if (mode === 'move') view.place(from + by, to + by);
    else if (mode === 'from') view.place(from + by < to ? from + by : to - 1n, to);
    else view.place(from, to + by > from ? to + by : from + 1n);
  }
}
