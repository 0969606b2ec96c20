// Small charts on canvas for the pages: stacked bars, lines over them, a grid of cells; and strips and figures made of elements.

import { el } from './dom.js';
import { FONT, TextFit } from './text.js';
import { formatExact, formatShort } from './time.js';

const LEFT = 68;
const RIGHT = 14;
const TOP = 22;

/** A duration that may have a fraction of a nanosecond. */
export const ns = (value) => (value === null || value === undefined ? '–' : formatShort(typeof value === 'bigint' ? value : BigInt(Math.round(Number(value)))));
export const percent = (share, digits = 1) => (share === null || share === undefined ? '–' : `${(share * 100).toFixed(digits)} %`);

/** A round duration, for axes: "1.5 ms". */
const round = (value) => formatExact(BigInt(Math.round(value)));

/** "5.0 MiB", as the reports have it. */
export function bytes(value) {
  const n = Number(value), names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let size = n, i = 0;
  while (size >= 1024 && i < names.length - 1) { size /= 1024; i++; }
  return i === 0 ? `${n} B` : `${size.toFixed(1)} ${names[i]}`;
}

/** A number with at most two digits after the point and thin spaces between thousands. */
export function amount(value) {
  const n = Number(value);
  const text = Number.isInteger(n) ? String(n) : Math.abs(n) >= 1000 ? n.toFixed(0) : n.toFixed(2);
  const [whole, rest] = text.split('.');
  return whole.replace(/\B(?=(\d{3})+$)/g, '\u2009') + (rest ? '.' + rest : '');
}

/** The colour of an entry of the palette; "idle" and "accent" are outside of it. */
export function colourOf(palette, colour) {
  if (colour === 'idle') return palette.name === 'dark' ? '#48515c' : '#dfe3e8';
  if (typeof colour === 'string') return palette[colour] || colour;
  return palette.slices[colour];
}

/** 1, 2 or 5 × a power of ten, at least `least`. */
function nice(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (power * factor >= least) return power * factor;
  return power * 10;
}

/** A canvas with a description, a tooltip, and a current item that pointer and keys move. */
export class Plot {
  constructor(app, { label, height, testid, help }) {
    this.app = app;
    this.n = 0;
    this.at = -1;
    this.height = height;
    this.canvas = el('canvas', { class: 'plot', tabindex: '0', role: 'application', 'aria-label': help ? `${label}. ${help}` : label, 'data-testid': testid });
    this.canvas.style.height = height + 'px';
    this.pen = this.canvas.getContext('2d');
    this.fit = new TextFit(this.pen);
    this.width = 0;
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.canvas);
    this.listen();
  }

  listen() {
    const { canvas } = this;
    const point = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener('pointermove', (event) => this.go(this.find(...point(event)), event));
    canvas.addEventListener('pointerleave', () => this.go(-1));
    canvas.addEventListener('blur', () => this.go(-1));
    canvas.addEventListener('click', (event) => { const i = this.find(...point(event)); if (i >= 0) this.act(i); });
    canvas.addEventListener('keydown', (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.n) return;
    const next = this.step(event.key);
    if (next === null) {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      if (this.at >= 0) this.act(this.at);
    } else {
      this.go(next);
      this.say(next);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Where a key leads from the current item. */
  step(key) {
    const last = this.n - 1;
    if (key === 'ArrowRight') return Math.min(last, this.at + 1);
    if (key === 'ArrowLeft') return Math.max(0, this.at < 0 ? last : this.at - 1);
    if (key === 'Home') return 0;
    if (key === 'End') return last;
    return null;
  }

  say(i) {
    const tip = this.tip(i), box = this.canvas.getBoundingClientRect(), [x, y] = this.place(i);
    this.app.tooltip.show(box.left + x, box.top + y, tip.head, tip.lines);
    this.app.announce([tip.head, ...tip.lines].join(', '));
  }

  go(i, event) {
    const tip = i >= 0 ? this.tip(i) : null;
    if (tip && event) this.app.tooltip.show(event.clientX, event.clientY, tip.head, tip.lines);
    if (!tip) this.app.tooltip.hide();
    this.canvas.classList.toggle('leads', i >= 0 && Boolean(this.leads));
    if (i === this.at) return;
    this.at = i;
    this.draw();
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    if (box.width < 1) return;
    this.dpr = devicePixelRatio || 1;
    this.width = box.width;
    this.canvas.width = Math.round(box.width * this.dpr);
    this.canvas.height = Math.round(this.height * this.dpr);
    this.draw();
  }

  draw() {
    if (!this.width || !this.canvas.isConnected) return;
    const { pen } = this, { palette } = this.app;
    pen.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.textBaseline = 'alphabetic';
    this.paint(pen, palette);
  }

  text(text, x, y, colour, { align = 'left', size = 11, bold = false } = {}) {
    const { pen } = this;
    pen.font = `${bold ? '600 ' : ''}${size}px ${FONT}`;
    pen.textAlign = align;
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
  }

  tip() { return { head: '', lines: [] }; }
  find() { return -1; }
  place() { return [0, 0]; }
  act() {}
  paint() {}
}

/** Labels below places of equal width: every one, every second, every fifth …, as many as there is room for. */
function labelRow(plot, n, slot, left, label, palette) {
  plot.fit.use(11);
  let widest = 0;
  for (let i = 0; i < n; i++) widest = Math.max(widest, plot.fit.width(label(i)));
  const every = Math.max(1, nice((widest + 10) / slot));
  for (let i = 0; i < n; i += every) {
    const x = left + (i + 0.5) * slot;
    if (x + plot.fit.width(label(i)) / 2 <= plot.width) plot.text(label(i), x, plot.height - 6, palette.muted, { align: 'center' });
  }
}

/**
 * Stacked bars. With more bars than there is room, one bar is the highest of its neighbours.
 * {n, parts: [{name, colour}], value(i, part), total(i), label(i), tip(i), act(i), mark(i), format(v), limits: [{value, text, colour}], cap, axis}
 */
export class Bars extends Plot {
  constructor(app, options) {
    super(app, options);
    Object.assign(this, { cap: 0, limits: [], uprights: [], mark: () => null, format: ns, round: options.bars.format || round, gap: 0.22, most: 46, room: 22 }, options.bars);
    this.leads = Boolean(options.bars.act);
    this.off = new Set();
    this.under = this.under || [];
    this.measure();
  }

  sum(i) {
    if (!this.off.size && this.total) return this.total(i);
    let sum = 0;
    for (let p = 0; p < this.parts.length; p++) if (!this.off.has(p)) sum += this.value(i, p);
    return sum;
  }

  /** The highest value that is drawn. */
  measure() {
    let top = 0;
    for (let i = 0; i < this.n; i++) top = Math.max(top, this.sum(i));
    this.highest = top;
  }

  get scaleTop() {
    const top = this.shared ? this.shared() : this.highest;
    return (this.cap && this.cap < top ? this.cap : top) || 1;
  }

  layout() {
    const wide = this.width - LEFT - RIGHT;
    this.bottom = this.height - this.room - this.under.length * 9;
    this.group = Math.max(1, Math.ceil(this.n / Math.max(1, Math.floor(wide / 3))));
    this.count = Math.ceil(this.n / this.group);
    this.slot = Math.min(this.most, wide / Math.max(1, this.count));
    if (this.columns) this.slot = Math.min(this.most, wide / Math.max(1, Math.ceil(this.columns / this.group)));
  }

  /** The bar that stands for a group: its highest. */
  bar(g) {
    let best = g * this.group;
    for (let i = best + 1; i < Math.min(this.n, (g + 1) * this.group); i++) if (this.sum(i) > this.sum(best)) best = i;
    return best;
  }

  x(g) { return LEFT + g * this.slot; }
  y(value) { return this.bottom - (this.bottom - TOP) * Math.min(1.04, value / this.scaleTop); }

  place(i) {
    return [this.x(Math.floor(i / this.group)) + this.slot / 2, this.y(this.sum(i))];
  }

  find(x, y) {
    const g = Math.floor((x - LEFT) / this.slot);
    return this.n && g >= 0 && g < this.count && y >= 0 && y <= this.height - this.room + 4 ? this.bar(g) : -1;
  }

  paint(pen, palette) {
    this.layout();
    this.axis(pen, palette);
    const wide = Math.max(1, this.slot * (1 - (this.slot > 4 ? this.gap : 0.34)));
    const tops = [];
    for (let g = 0; g < this.count; g++) tops.push(this.column(pen, palette, this.bar(g), this.x(g) + (this.slot - wide) / 2, wide));
    this.lines(pen, palette);
    this.flags(pen, palette);
    this.marks(pen, palette, tops, wide);
    this.labels(palette);
  }

  axis(pen, palette) {
    const step = nice(this.scaleTop / Math.max(2, Math.floor((this.bottom - TOP) / 46)));
    for (let v = 0; v <= this.scaleTop * 1.001; v += step) {
      const y = Math.round(this.y(v)) + 0.5;
      pen.fillStyle = v === 0 ? palette.muted : palette.grid;
      pen.globalAlpha = v === 0 ? 0.45 : 1;
      pen.fillRect(LEFT, y - 0.5, this.width - LEFT - RIGHT, 1);
      pen.globalAlpha = 1;
      this.text(v === 0 ? '0' : this.round(v), LEFT - 8, y + 4, palette.muted, { align: 'right' });
    }
  }

  column(pen, palette, i, x, wide) {
    let y = this.bottom, height = 0;
    const sum = this.sum(i), cut = sum > this.scaleTop * 1.0001, factor = cut ? this.scaleTop * 1.04 / sum : 1;
    for (let p = 0; p < this.parts.length; p++) {
      if (this.off.has(p)) continue;
      height += this.value(i, p) * factor;
      const top = this.y(height);
      if (y - top > 0.05) {
        pen.fillStyle = colourOf(palette, this.parts[p].colour);
        pen.fillRect(x, top, wide, y - top);
      }
      y = top;
    }
    this.below(pen, palette, i, x, wide);
    if (i === this.at) {
      pen.strokeStyle = palette.select;
      pen.lineWidth = 1.5;
      pen.strokeRect(x - 1, y - 1, wide + 2, this.bottom - y + 2);
    }
    if (cut) this.break(pen, palette, x, wide);
    return { i, x, y, cut };
  }

  /** The bar is longer than it is drawn: a gap near its top; its parts are in proportion. */
  break(pen, palette, x, wide) {
    pen.fillStyle = palette.background;
    const y = TOP + 8;
    pen.beginPath();
    pen.moveTo(x - 1, y + 4);
    pen.lineTo(x + wide + 1, y - 1);
    pen.lineTo(x + wide + 1, y + 2);
    pen.lineTo(x - 1, y + 7);
    pen.fill();
  }

  /** Strips below the axis: the share of each bar that something was running. */
  below(pen, palette, i, x, wide) {
    this.under.forEach((strip, k) => {
      const y = this.bottom + 4 + k * 9;
      pen.fillStyle = colourOf(palette, 'idle');
      pen.fillRect(x, y, wide, 6);
      pen.fillStyle = colourOf(palette, strip.colour);
      pen.globalAlpha = 0.15 + 0.85 * Math.min(1, strip.share(i));
      if (strip.share(i) > 0) pen.fillRect(x, y, wide, 6);
      pen.globalAlpha = 1;
    });
  }

  lines(pen, palette) {
    for (const limit of this.limits) {
      if (limit.value > this.scaleTop) continue;
      const y = Math.round(this.y(limit.value)) + 0.5;
      pen.strokeStyle = colourOf(palette, limit.colour);
      pen.lineWidth = 1;
      pen.setLineDash([5, 4]);
      pen.beginPath();
      pen.moveTo(LEFT, y);
      pen.lineTo(this.width - RIGHT, y);
      pen.stroke();
      pen.setLineDash([]);
      this.fit.use(11);
      const w = this.fit.width(limit.text) + 8;
      pen.fillStyle = palette.background;
      pen.globalAlpha = 0.82;
      pen.fillRect(this.width - RIGHT - w, y - 15, w, 13);
      pen.globalAlpha = 1;
      this.text(limit.text, this.width - RIGHT - 4, y - 5, palette.muted, { align: 'right' });
    }
  }

  /** Upright lines at places between bars: [{at, text}] */
  flags(pen, palette) {
    let free = -1e9;
    for (const { at, text } of this.uprights) {
      const x = Math.round(LEFT + at / this.group * this.slot) + 0.5;
      this.fit.use(11);
      const w = this.fit.width(text), left = Math.max(free + 8, Math.min(x + 4, this.width - RIGHT - w));
      pen.strokeStyle = palette.muted;
      pen.lineWidth = 1;
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.moveTo(x, 4);
      pen.lineTo(x, this.bottom);
      pen.stroke();
      pen.setLineDash([]);
      this.text(text, left, 12, palette.text);
      free = left + w;
    }
  }

  marks(pen, palette, tops, wide) {
    let next = this.width - RIGHT + 12;
    for (const { i, x, y, cut } of tops.reverse()) {
      const mark = this.mark(i), middle = x + wide / 2;
      if (mark) drawSymbol(pen, mark, middle, Math.max(8, y - 8), palette);
      if (!cut) continue;
      this.fit.use(11);
      const text = this.format(this.sum(i));
      if (middle + 8 + this.fit.width(text) < next - 8) this.text(text, middle + 8, 12, palette.text);
      next = middle;
    }
  }

  labels(palette) {
    labelRow(this, this.count, this.slot, LEFT, (g) => this.label(g * this.group), palette);
  }
}

/** Marks of bars: shapes and colours, so that neither alone matters. */
export function drawSymbol(pen, mark, x, y, palette) {
  const size = 4;
  pen.fillStyle = mark === 'outlier' ? palette.slices[6] : mark === 'straggler' ? palette.mark : palette.accent;
  pen.strokeStyle = palette.text;
  pen.lineWidth = 0.8;
  pen.beginPath();
  if (mark === 'outlier') {
    pen.moveTo(x - size, y - size + 1);
    pen.lineTo(x + size, y - size + 1);
    pen.lineTo(x, y + size);
    pen.closePath();
  } else if (mark === 'straggler') {
    pen.moveTo(x, y - size);
    pen.lineTo(x + size, y);
    pen.lineTo(x, y + size);
    pen.lineTo(x - size, y);
    pen.closePath();
  } else pen.arc(x, y, size - 0.5, 0, 7);
  pen.fill();
  pen.stroke();
}

/** A mark in a legend. */
export function symbolBox(app, mark) {
  const canvas = el('canvas', { class: 'symbol', 'aria-hidden': 'true' });
  canvas.width = 24;
  canvas.height = 24;
  const pen = canvas.getContext('2d');
  pen.scale(2, 2);
  drawSymbol(pen, mark, 6, 6, app.palette);
  return canvas;
}

/** Curves over time: {times, series: [{name, colour, value(i), area}], format, tip(i), act(i)} */
export class Curves extends Plot {
  constructor(app, options) {
    super(app, options);
    Object.assign(this, { format: amount }, options.curves);
    this.leads = Boolean(options.curves.act);
    this.highest = 0;
    for (const s of this.series) for (let i = 0; i < this.n; i++) this.highest = Math.max(this.highest, s.value(i));
  }

  x(i) { return LEFT + (this.width - LEFT - RIGHT) * (i / Math.max(1, this.n)); }
  y(v) { return this.bottom - (this.bottom - TOP) * v / (this.highest || 1); }
  place(i) { return [this.x(i + 0.5), this.y(this.series[0].value(i))]; }

  find(x, y) {
    const i = Math.floor((x - LEFT) / (this.width - LEFT - RIGHT) * this.n);
    return i >= 0 && i < this.n && y < this.height ? i : -1;
  }

  paint(pen, palette) {
    this.bottom = this.height - 22;
    const step = nice((this.highest || 1) / Math.max(2, Math.floor((this.bottom - TOP) / 40)));
    for (let v = 0; v <= this.highest * 1.001; v += step) {
      const y = Math.round(this.y(v));
      pen.fillStyle = palette.grid;
      pen.fillRect(LEFT, y, this.width - LEFT - RIGHT, 1);
      this.text(v === 0 ? '0' : this.format(v), LEFT - 8, y + 4, palette.muted, { align: 'right' });
    }
    if (this.at >= 0) {
      pen.fillStyle = palette.area;
      pen.fillRect(this.x(this.at), TOP - 8, this.x(this.at + 1) - this.x(this.at), this.bottom - TOP + 8);
    }
    for (const s of this.series) this.curve(pen, colourOf(palette, s.colour), s);
    this.labels(palette);
  }

  /** Steps: each value holds for its part of the time. */
  curve(pen, colour, s) {
    pen.beginPath();
    for (let i = 0; i < this.n; i++) {
      const y = this.y(s.value(i));
      if (i === 0) pen.moveTo(this.x(0), y); else pen.lineTo(this.x(i), y);
      pen.lineTo(this.x(i + 1), y);
    }
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.lineJoin = 'round';
    pen.stroke();
    if (!s.area) return;
    pen.lineTo(this.x(this.n), this.bottom);
    pen.lineTo(this.x(0), this.bottom);
    pen.globalAlpha = 0.22;
    pen.fillStyle = colour;
    pen.fill();
    pen.globalAlpha = 1;
  }

  labels(palette) {
    this.fit.use(11);
    let free = -1e9;
    for (let i = 0; i < this.n; i++) {
      const text = this.label(i), w = this.fit.width(text), x = this.x(i);
      if (x < free + 14 || x + w > this.width - 4) continue;
      this.text(text, x, this.height - 6, palette.muted);
      free = x + w;
    }
  }
}

/** A grid of cells: {rows: [name], columns, value(row, column) → −1 … 1 or null, label(column), tip(i), act(i), mark} */
export class Cells extends Plot {
  constructor(app, options) {
    super(app, options);
    Object.assign(this, options.cells);
    this.leads = true;
    this.n = this.rows.length * this.columns;
  }

  layout() {
    this.left = Math.min(260, Math.max(LEFT, this.width * 0.2));
    this.tall = (this.height - 26) / this.rows.length;
    const wide = this.width - this.left - RIGHT;
    this.group = Math.max(1, Math.ceil(this.columns / Math.max(1, Math.floor(wide / 3))));
    this.count = Math.ceil(this.columns / this.group);
    this.slot = Math.min(34, wide / this.count);
  }

  /** The column of a group that differs most. */
  column(row, g) {
    let best = g * this.group, most = -1;
    for (let c = best; c < Math.min(this.columns, (g + 1) * this.group); c++) {
      const v = this.value(row, c);
      if (v !== null && Math.abs(v) > most) { most = Math.abs(v); best = c; }
    }
    return best;
  }

  find(x, y) {
    const g = Math.floor((x - this.left) / this.slot), row = Math.floor(y / this.tall);
    if (g < 0 || g >= this.count || row < 0 || row >= this.rows.length) return -1;
    const c = this.column(row, g);
    return this.value(row, c) === null ? -1 : row * this.columns + c;
  }

  place(i) {
    const row = Math.floor(i / this.columns), c = i % this.columns;
    return [this.left + Math.floor(c / this.group) * this.slot + this.slot / 2, row * this.tall + this.tall / 2];
  }

  step(key) {
    if (this.at < 0 && key.startsWith('Arrow')) return 0;
    const row = Math.floor(this.at / this.columns), c = this.at % this.columns, wide = this.group;
    if (key === 'ArrowDown') return Math.min(this.rows.length - 1, row + 1) * this.columns + c;
    if (key === 'ArrowUp') return Math.max(0, row - 1) * this.columns + c;
    if (key === 'ArrowRight') return row * this.columns + Math.min(this.columns - 1, c + wide);
    if (key === 'ArrowLeft') return row * this.columns + Math.max(0, c - wide);
    if (key === 'Home') return row * this.columns;
    if (key === 'End') return row * this.columns + this.columns - 1;
    return null;
  }

  paint(pen, palette) {
    this.layout();
    this.fit.use(12);
    for (let row = 0; row < this.rows.length; row++) {
      const y = row * this.tall;
      if (this.tall >= 12) this.text(this.fit.fit(this.rows[row], this.left - 16), 2, y + this.tall / 2 + 4, palette.text, { size: 12 });
      this.fit.use(12);
      for (let g = 0; g < this.count; g++) this.cell(pen, palette, row, this.column(row, g), this.left + g * this.slot, y);
    }
    labelRow(this, this.count, this.slot, this.left, (g) => this.label(g * this.group), palette);
  }

  cell(pen, palette, row, c, x, y) {
    const v = this.value(row, c);
    if (v === null) return;
    const gap = this.slot > 5 ? 1 : 0, i = row * this.columns + c;
    pen.fillStyle = colourOf(palette, 'idle');
    pen.fillRect(x, y + 1, this.slot - gap, this.tall - 2);
    pen.globalAlpha = Math.min(1, Math.abs(v));
    pen.fillStyle = colourOf(palette, v > 0 ? 6 : 0);
    if (v !== 0) pen.fillRect(x, y + 1, this.slot - gap, this.tall - 2);
    pen.globalAlpha = 1;
    if (this.mark(row, c) && this.slot > 7 && this.tall > 11) drawSymbol(pen, this.mark(row, c), x + (this.slot - gap) / 2, y + this.tall / 2, palette);
    if (i !== this.at) return;
    pen.strokeStyle = palette.select;
    pen.lineWidth = 1.5;
    pen.strokeRect(x, y + 1, this.slot - gap, this.tall - 2);
  }
}

/** A strip of parts that add up: [{name, value, colour, text, title}] */
export function strip(app, parts, { label, testid } = {}) {
  const whole = parts.reduce((sum, p) => sum + p.value, 0) || 1;
  const box = el('div', { class: 'strip', role: 'img', 'data-testid': testid, 'aria-label': `${label}: ${parts.filter((p) => p.value > 0).map((p) => `${p.name} ${percent(p.value / whole)}`).join(', ')}` });
  for (const part of parts) {
    if (part.value <= 0) continue;
    const piece = el('span', { class: 'piece', title: `${part.name}: ${part.text}` }, part.value / whole > 0.09 ? part.name : '');
    piece.style.flexGrow = String(part.value / whole);
    piece.style.background = colourOf(app.palette, part.colour);
    if (part.colour === 'idle') piece.classList.add('on-idle');
    box.append(piece);
  }
  return box;
}

export function chip(app, colour) {
  const box = el('span', { class: 'chip', 'aria-hidden': 'true' });
  box.style.background = colourOf(app.palette, colour);
  return box;
}

/** The large figures at the top of a page: [[name, value, aside]] */
export function figures(list, testid) {
  return el('dl', { class: 'figures', 'data-testid': testid }, ...list.filter(Boolean).map(([name, value, aside]) => el('div', {},
    el('dt', { text: name }), el('dd', {}, el('strong', { text: value }), aside ? el('span', { text: aside }) : null))));
}

/** A share as text and as a bar behind it. */
export function shareCell(app, cell, share, text, colour = 0) {
  const bar = el('span', { class: 'share' });
  bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  bar.style.background = colourOf(app.palette, colour);
  cell.classList.add('shared');
  cell.append(bar, el('span', { text }));
}
