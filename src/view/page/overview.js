// The strip at the top: the whole trace, and where the visible window is in it.

import { WindowData } from './data.js';
import { onDrag } from './dom.js';
import { SHADES, STYLE, VARIANTS } from './palette.js';
import { maxTime, pixelOf, scale } from './time.js';

const MOST_ROWS = 12;

export class Overview {
  constructor(canvas, app) {
    this.canvas = canvas;
    this.app = app;
    this.context = canvas.getContext('2d', { alpha: false });
    this.data = new WindowData(app.transport, app, () => { this.stale = true; app.invalidate(); }, 'o');
    this.picture = null;
    this.stale = true;
    this.listen();
  }

  get window() {
    const { from, to } = this.app.view.whole;
    return { from, to: maxTime(to, from + BigInt(this.canvas.width)), width: Math.max(1, this.canvas.width) };
  }

  /** The busiest rows in the order of the time line. */
  get rows() {
    const nodes = [...this.app.rows.nodes()].filter((n) => n.type === 'row' && !n.counter && !n.local && n.lines > 0 && n.own > 0);
    const busiest = new Set([...nodes].sort((a, b) => (a.busy < b.busy ? 1 : a.busy > b.busy ? -1 : b.own - a.own)).slice(0, MOST_ROWS));
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

  paint(palette) {
    const { width, height } = this.canvas;
    const image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    pixels.fill(palette.packed.background);
    const rows = this.rows;
    const pad = Math.round(4 * this.app.dpr), stripe = Math.max(1, Math.min(8 * this.app.dpr, (height - 2 * pad) / Math.max(1, rows.length)));
    const start = (height - stripe * rows.length) / 2;
    rows.forEach(([id], i) => {
      const top = Math.round(start + i * stripe), bottom = Math.max(top + 1, Math.round(start + (i + 1) * stripe) - (stripe > 3 ? 1 : 0));
      this.stripe(pixels, id, top, bottom, palette);
    });
    this.picture = this.picture && this.picture.width === width && this.picture.height === height ? this.picture : new OffscreenCanvas(width, height);
    this.picture.getContext('2d').putImageData(image, 0, 0);
    this.stale = false;
  }

  stripe(pixels, id, top, bottom, palette) {
    const reply = this.data.find(id, 0);
    if (!reply) return;
    const width = this.canvas.width, line = new Uint32Array(width).fill(palette.packed.background);
    const row = reply.rows.get(id), items = reply.items, { variant } = reply.names;
    for (let i = row.starts[0]; i < row.starts[1]; i++) {
      const x = items.pixel[i];
      if (x >= 0 && x < width) line[x] = palette.table[(items.colour[i] * VARIANTS + variant[items.name[i]]) * STYLE + items.calm[i] * SHADES + (items.cover[i] >> 2)];
      const end = Math.min(width, x + 1 + items.tail[i]);
      if (items.tail[i]) line.fill(palette.table[(items.tailColour[i] * VARIANTS + variant[items.tailName[i]]) * STYLE + SHADES - 1], Math.max(0, x + 1), Math.max(0, end));
    }
    for (let y = top; y < bottom; y++) pixels.set(line, y * width);
  }

  draw(palette) {
    if (this.canvas.width < 2) return;
    if (this.stale || !this.picture) this.paint(palette);
    const { context, canvas } = this, dpr = this.app.dpr;
    context.drawImage(this.picture, 0, 0);
    const { x, end } = this.box();
    context.fillStyle = palette.dim;
    context.fillRect(0, 0, x, canvas.height);
    context.fillRect(end, 0, canvas.width - end, canvas.height);
    context.strokeStyle = palette.accent;
    context.lineWidth = 1.5 * dpr;
    context.strokeRect(x + dpr, dpr, Math.max(2 * dpr, end - x - 2 * dpr), canvas.height - 2 * dpr);
    context.fillStyle = palette.accent;
    for (const edge of [x, end - 3 * dpr]) context.fillRect(edge, canvas.height / 2 - 8 * dpr, 3 * dpr, 16 * dpr);
  }

  box() {
    const x = Math.max(0, Math.floor(pixelOf(this.window, this.app.view.from)));
    const end = Math.min(this.canvas.width, Math.max(x + 6 * this.app.dpr, Math.ceil(pixelOf(this.window, this.app.view.to))));
    return { x: Math.min(x, this.canvas.width - 6 * this.app.dpr), end };
  }

  timeAt(x) {
    const { from, to, width } = this.window;
    return from + scale(to - from, x / width);
  }

  listen() {
    const canvas = this.canvas;
    const position = (event) => (event.clientX - canvas.getBoundingClientRect().left) * this.app.dpr;
    onDrag(canvas, (event) => (event.button === 0 ? this.begin(position(event)) : null), (event, start) => this.move(position(event), start));
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.app.view.zoom(Math.pow(1.0016, event.deltaY), 0.5);
    }, { passive: false });
  }

  /** An edge of the window, the window, or beside it: then the window comes there. */
  begin(x) {
    const { view } = this.app, box = this.box(), near = 6 * this.app.dpr;
    const mode = Math.abs(x - box.x) <= near ? 'from' : Math.abs(x - box.end) <= near ? 'to' : 'move';
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
