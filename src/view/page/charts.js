// Small charts on canvas for the pages: stacked bars and a grid of cells; strips and figures made
// of elements.

import { el } from './dom.js';
import { FONT, TextFit } from './text.js';
import { formatCount, formatExact, formatShort } from './time.js';

const LEFT = 68, RIGHT = 14, TOP = 22;

/** Values as text. A duration may have a fraction of a nanosecond. */
export const ns = (v) => formatShort(typeof v === 'bigint' ? v : BigInt(Math.round(Number(v))));
export const percent = (v, digits = 1) => `${(v * 100).toFixed(digits)} %`;
export function bytes(value) {
  let size = Number(value), i = 0;
  while (size >= 1024 && i < 5) { size /= 1024; i++; }
  return `${i ? size.toFixed(1) : size} ${['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][i]}`;
}
export function amount(value) {
  const n = Number(value),
    [whole, rest] = (Number.isInteger(n) ? String(n) : n.toFixed(Math.abs(n) >= 1000 ? 0 : 2))
    .split('.');
  return formatCount(whole) + (rest ? '.' + rest : '');
}

/** The colour of a number in the palette, or of a name: "idle" is outside of it. */
export function colourOf(palette, colour) {
  if (colour === 'idle') return palette.name === 'dark' ? '#48515c' : '#dfe3e8';
  if (colour === 'untraced') return palette.name === 'dark' ? '#2b323a' : '#f1f3f5';
  return palette.slices[colour] || palette[colour];
}

/** 1, 2 or 5 × a power of ten, at least `least`. */
function nice(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => power * factor >= least) || 10);
}

/** A canvas with a description, a tooltip, and a current item that pointer and keys move. */
class Plot {
  constructor(app, { title, help, height, testid, ...more }) {
    Object.assign(this, { app, height, n: 0, at: -1, width: 0 }, more);
    this.canvas = el('canvas',
      { class: 'plot', tabindex: '0', role: 'application',
        'aria-label': `${title}. Arrow keys choose`
          + `${more.act ? `, Enter ${help || 'shows it on the time line'}` : ''}.`,
          'data-testid': testid });
    this.canvas.style.height = height + 'px';
    this.pen = this.canvas.getContext('2d');
    this.fit = new TextFit(this.pen);
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    const on = (name, act) => this.canvas.addEventListener(name, act),
      under = (event) => this.find(event.offsetX, event.offsetY);
    on('pointermove', (event) => this.go(under(event), event));
    on('pointerleave', () => this.go(-1));
    on('blur', () => this.go(-1));
    on('click', (event) => this.open(under(event)));
    on('keydown', (event) => this.key(event));
  }

  open(i) {
    if (i >= 0 && this.act) this.act(i);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.n) return;
    const next = this.step(event.key, this.n - 1);
    if (next === undefined && event.key !== 'Enter') return;
    event.preventDefault();
    event.stopPropagation();
    if (next === undefined) return this.open(this.at);
    const box = this.canvas.getBoundingClientRect(), [x, y] = this.place(next),
      tip = this.go(next, { clientX: box.left + x, clientY: box.top + y });
    return this.app.announce(tip.join(', '));
  }

  /** Where a key leads from the current item. */
  step(key, last, at = this.at) {
    return { ArrowRight: Math.min(last, at + 1), ArrowLeft: at < 0 ? last : Math.max(0, at - 1),
      Home: 0, End: last }[key];
  }

  go(i, event) {
    const tip = i >= 0 ? this.tip(i) : null;
    if (tip) this.app.tooltip.show(event.clientX, event.clientY, tip[0], tip.slice(1));
      else this.app.tooltip.hide();
    this.canvas.classList.toggle('leads', i >= 0 && Boolean(this.act));
    if (i !== this.at) {
      this.at = i;
      this.draw();
    }
    return tip;
  }

  resize() {
    this.width = this.canvas.clientWidth;
    this.dpr = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * this.dpr);
    this.canvas.height = Math.round(this.height * this.dpr);
    this.draw();
  }

  draw() {
    if (!this.width) return;
    this.pen.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    this.pen.clearRect(0, 0, this.width, this.height);
    this.paint(this.pen, this.app.palette);
  }

  text(text, x, y, colour, align = 'left') {
    this.pen.font = `11px ${FONT}`;
    this.pen.textAlign = align;
    this.pen.fillStyle = colour;
    this.pen.fillText(text, x, y);
  }

  line(colour, dash, ...points) {
    const { pen } = this;
    pen.strokeStyle = colour;
    pen.lineWidth = 1;
    pen.setLineDash(dash);
    pen.beginPath();
    for (const [x, y] of points) pen.lineTo(x, y);
    pen.stroke();
    pen.setLineDash([]);
  }

  /** Columns of equal width; where there are too many, one stands for a group of neighbours. */
  divide(n, left, most) {
    const wide = this.width - left - RIGHT;
    this.left = left;
    this.group = Math.max(1, nice(n * 3 / Math.max(3, wide)));
    this.count = Math.ceil(n / this.group);
    this.slot = Math.min(most, wide / Math.max(1, this.count));
  }

  /** Labels below them: every one, every second, every fifth …, as many as there is room for. */
  labels(palette) {
    const label = (g) => this.label(g * this.group);
    this.fit.use(11);
    let widest = 0;
    for (let g = 0; g < this.count; g++) widest = Math.max(widest, this.fit.width(label(g)));
    for (let g = 0; g < this.count; g += Math.max(1, nice((widest + 10) / this.slot))) {
      const x = this.left + (g + 0.5) * this.slot;
      if (x + this.fit.width(label(g)) / 2 <= this.width) this.text(label(g), x, this.height - 6,
        palette.muted, 'center');
    }
  }
}

// Stacked bars; of a group of neighbours the highest is drawn. n, parts: [{colour}], value(i,
// part), label(i), tip(i), act(i), mark(i), format(v), limits: [{value, text, colour}], uprights:
// [{at, text}], cap, columns, under: [{colour, share(i)}]
export class Bars extends Plot {
  constructor(app, options) {
    super(app, { cap: 0, limits: [], uprights: [], under: [], mark: () => '', format: ns, most: 84,
      off: new Set(), ...options });
    this.round = options.format || ((v) => formatExact(BigInt(Math.round(v))));
    this.measure();
  }

  sum(i) {
    return this.parts.reduce((sum, _, p) => (this.off.has(p) ? sum : sum + this.value(i, p)), 0);
  }

  measure() {
    this.sums = Array.from({ length: this.n }, (_, i) => this.sum(i));
    this.highest = this.sums.reduce((a, b) => Math.max(a, b), 0);
  }

  /** The highest of a group. */
  bar(g) {
    let best = g * this.group;
    for (let i = best + 1; i < Math.min(this.n, (g + 1) * this.group);
      i++) if (this.sums[i] > this.sums[best]) best = i;
    return best;
  }

  y(value) {
    return this.bottom - (this.bottom - TOP) * Math.min(1.04, value / this.top);
  }

  place(i) {
    return [LEFT + (Math.floor(i / this.group) + 0.5) * this.slot, this.y(this.sums[i])];
  }

  step(key) {
    const g = super.step(key, this.count - 1, Math.floor(this.at / this.group));
    return g === undefined ? g : this.bar(g);
  }

  find(x, y) {
    const g = Math.floor((x - LEFT) / this.slot);
    return g >= 0 && g * this.group < this.n && y <= this.height - 18 ? this.bar(g) : -1;
  }

  paint(pen, palette) {
    const highest = this.shared ? this.shared() : this.highest,
      wide = this.width - RIGHT, tops = [];
    this.top = (this.cap && this.cap < highest ? this.cap : highest) || 1;
    this.bottom = this.height - 22 - this.under.length * 9;
    this.divide(this.columns || this.n, LEFT, this.most);
    this.count = Math.ceil(this.n / this.group);
    const least = nice(this.top / Math.max(3, Math.floor((this.bottom - TOP) / 46)));
    const step = this.top >= 1 ? Math.max(1, least) : least; // nanoseconds and counts are whole
    for (let v = 0; v <= this.top * 1.001; v += step) {
      const y = Math.round(this.y(v)) + 0.5;
      this.line(v ? palette.grid : palette.muted, [], [LEFT, y], [wide, y]);
      this.text(v ? this.round(v) : '0', LEFT - 8, y + 4, palette.muted, 'right');
    }
    const thick = Math.max(1, this.slot * (this.slot > 4 ? 0.8 : 0.66));
    for (let g = 0; g < this.count;
      g++) tops.unshift(this.column(pen, palette, this.bar(g),
        LEFT + g * this.slot + (this.slot - thick) / 2, thick));
    let above = Infinity;
    for (const { value, text, colour } of this.limits) {
      if (value > this.top) continue;
      const y = Math.round(this.y(value)) + 0.5, w = this.fit.width(text) + 8;
      this.line(colourOf(palette, colour), [5, 4], [LEFT, y], [wide, y]);
      if (above - y < 15) continue;
      above = y;
      pen.fillStyle = palette.background;
      pen.fillRect(wide - w, y - 15, w, 13);
      this.text(text, wide - 4, y - 5, palette.muted, 'right');
    }
    let free = 0;
    for (const { at, text } of this.uprights) {
      const x = Math.round(LEFT + at / this.group * this.slot) + 0.5, w = this.fit.width(text),
        left = x + 4 + w > wide ? x - 4 - w : x + 4;
      this.line(palette.muted, [3, 3], [x, 4], [x, this.bottom]);
      this.text(text, left, left < free ? 25 : 12, palette.text);
      free = left + w + 8;
    }
    this.marks(pen, palette, tops);
    this.labels(palette);
  }

  /** One bar. A longer one than there is room for has a gap near its top and its parts in
   * proportion. */
  column(pen, palette, i, x, wide) {
    const cut = this.sums[i] > this.top * 1.0001, factor = cut ? this.top * 1.04 / this.sums[i] : 1;
    let y = this.bottom, height = 0;
    this.parts.forEach((part, p) => {
      if (this.off.has(p)) return;
      height += this.value(i, p) * factor;
      pen.fillStyle = colourOf(palette, part.colour);
      pen.fillRect(x, this.y(height), wide, y - this.y(height));
      y = this.y(height);
    });
    this.under.forEach((strip, k) => {
      for (const [colour, alpha] of [['idle', 1], [strip.colour, Math.min(1, strip.share(i))]]) {
        pen.fillStyle = colourOf(palette, colour);
        pen.globalAlpha = alpha;
        pen.fillRect(x, this.bottom + 4 + k * 9, wide, 6);
      }
      pen.globalAlpha = 1;
    });
    if (i === this.at) {
      pen.strokeStyle = palette.select;
      pen.lineWidth = 1.5;
      pen.strokeRect(x - 1, y - 1, wide + 2, this.bottom - y + 2);
    }
    if (cut) {
      pen.fillStyle = palette.background;
      polygon(pen, [x - 1, TOP + 12], [x + wide + 1, TOP + 7], [x + wide + 1, TOP + 10],
        [x - 1, TOP + 15]);
    }
    return { i, x: x + wide / 2, y, cut };
  }

  marks(pen, palette, tops) {
    let next = this.width;
    for (const { i, x, y, cut } of tops) {
      if (this.mark(i)) drawSymbol(pen, this.mark(i), x, Math.max(8, y - 8), palette);
      if (!cut) continue;
      const text = this.format(this.sums[i]);
      if (x + 16 + this.fit.width(text) < next) this.text(text, x + 8, 12, palette.text);
      next = x;
    }
  }
}

function polygon(pen, ...points) {
  pen.beginPath();
  for (const [x, y] of points) pen.lineTo(x, y);
  pen.closePath();
  pen.fill();
}

/** Marks have shapes and colours, so that neither alone matters. */
function drawSymbol(pen, mark, x, y, palette) {
  const outlier = mark === 'outlier';
  pen.fillStyle = outlier ? palette.slices[6] : mark === 'straggler' ? palette.mark
    : palette.accent;
  pen.strokeStyle = palette.text;
  pen.lineWidth = 0.8;
  if (outlier) polygon(pen, [x - 4, y - 3], [x + 4, y - 3], [x, y + 4]);
  else if (mark === 'straggler') polygon(pen, [x, y - 4], [x + 4, y], [x, y + 4], [x - 4, y]);
  else {
    pen.beginPath();
    pen.arc(x, y, 3.5, 0, 7);
    pen.fill();
  }
  pen.stroke();
}

/** A mark in a legend. */
export function symbolBox(app, mark) {
  const canvas =
    el('canvas', { class: 'symbol', width: '24', height: '24', 'aria-hidden': 'true' }),
    pen = canvas.getContext('2d');
  pen.scale(2, 2);
  drawSymbol(pen, mark, 6, 6, app.palette);
  return canvas;
}

// A grid: rows: [name], columns, value(row, column) from −1 to 1 or null, label(column), mark(row,
// column); tip(i), act(i) with i = row × columns + column.
export class Cells extends Plot {
  constructor(app, options) {
    super(app, { ...options, n: options.rows.length * options.columns });
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
    if (g < 0 || g >= this.count || row >= this.rows.length) return -1;
    const c = this.column(row, g);
    return this.value(row, c) === null ? -1 : row * this.columns + c;
  }

  place(i) {
    return [this.left + (Math.floor(i % this.columns / this.group) + 0.5) * this.slot,
      (Math.floor(i / this.columns) + 0.5) * this.tall];
  }

  step(key, last) {
    const { at, columns } = this, down = at + columns, up = at - columns;
    if (key === 'ArrowDown') return at < 0 ? 0 : down > last ? at : down;
    if (key === 'ArrowUp') return at < 0 ? 0 : up < 0 ? at : up;
    return super.step(key, last);
  }

  paint(pen, palette) {
    this.tall = (this.height - 26) / this.rows.length;
    this.divide(this.columns, Math.min(260, Math.max(LEFT, this.width * 0.2)), 60);
    this.rows.forEach((name, row) => {
      const y = row * this.tall;
      this.fit.use(11);
      if (this.tall >= 12) this.text(this.fit.fit(name, this.left - 16), 2, y + this.tall / 2 + 4,
        palette.text);
      for (let g = 0; g < this.count; g++) this.cell(pen, palette, row, this.column(row, g),
        this.left + g * this.slot, y + 1);
    });
    this.labels(palette);
  }

  cell(pen, palette, row, c, x, y) {
    const v = this.value(row, c), wide = this.slot - (this.slot > 5 ? 1 : 0), tall = this.tall - 2;
    if (v === null) return;
    for (const [colour, alpha] of [['idle', 1], [v > 0 ? 6 : 0, Math.abs(v)]]) {
      pen.fillStyle = colourOf(palette, colour);
      pen.globalAlpha = alpha;
      pen.fillRect(x, y, wide, tall);
    }
    pen.globalAlpha = 1;
    if (this.mark(row, c) && wide > 7 && tall > 9) drawSymbol(pen, this.mark(row, c), x + wide / 2,
      y + tall / 2, palette);
    pen.strokeStyle = palette.select;
    pen.lineWidth = 1.5;
    if (row * this.columns + c === this.at) pen.strokeRect(x, y, wide, tall);
  }
}

export function chip(app, colour) {
  const box = el('span', { class: 'chip', 'aria-hidden': 'true' });
  box.style.background = colourOf(app.palette, colour);
  return box;
}

/** A strip of parts that add up: [{name, value, colour, text}] */
export function strip(app, label, parts, testid) {
  const shown = parts.filter((p) => p.value > 0),
    whole = shown.reduce((sum, p) => sum + p.value, 0);
  return el('div',
    { class: 'strip', role: 'img', 'data-testid': testid,
      'aria-label': `${label}: `
        + shown.map((p) => `${p.name} ${percent(p.value / whole)}`).join(', ') },
      ...shown.map((part) => {
    const piece = el('span',
      { class: ['idle', 'untraced'].includes(part.colour) ? 'piece on-idle' : 'piece',
        title: `${part.name}: ${part.text}`, text: part.value / whole > 0.09 ? part.name : '' });
    piece.style.flexGrow = String(part.value / whole);
    piece.style.background = colourOf(app.palette, part.colour);
    return piece;
  }));
}

/** The large figures at the top of a page: [[name, value, aside]] */
export function figures(testid, list) {
  return el('dl', { class: 'figures', 'data-testid': testid },
    ...list.filter(Boolean).map(([name, value, aside]) => el('div', {},
    el('dt', { text: name }),
      el('dd', {}, el('strong', { text: value, title: value }),
        aside ? el('span', { text: aside }) : null))));
}
