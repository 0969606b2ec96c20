// The row raster: one row of pixels per line of slices, copied down for the line's height; one
// putImageData per frame.

import { INSTANT, TAIL_UNFINISHED, itemAt } from './codec.js';
import { HUES, SHADES, STYLE, VARIANTS } from './palette.js';
import { LINE, PAD } from './rows.js';
import { pixelOf, ratio } from './time.js';

const LABEL_LEAST = 22;
const MOST_MARKERS = 2000;

/** Wide slices whose names are written, filled while drawing. */
class Labels {
  constructor() {
    this.n = 0;
    this.x = new Int32Array(4096);
    this.end = new Int32Array(4096);
    this.y = new Int32Array(4096);
    this.faint = new Uint8Array(4096); // on nearly the background
    this.text = [];
  }

  add(x, end, y, text, faint = false) {
    if (this.n === this.x.length) return;
    const i = this.n++;
    this.x[i] = x;
    this.end[i] = end;
    this.y[i] = y;
    this.text[i] = text;
    this.faint[i] = faint ? 1 : 0;
  }
}

export class Raster {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d', { alpha: false });
    this.labels = new Labels();
    this.markers = [];
    this.image = null;
  }

  resize(width, height, dpr) {
    this.dpr = dpr;
    if (this.image && this.width === width && this.height === height) return;
    this.width = this.canvas.width = width;
    this.height = this.canvas.height = height;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.line = new Uint32Array(width);
    this.ground = new Uint32Array(width);
  }

  /** The empty canvas: background and grid lines at the ticks. */
  clear(palette, ticks) {
    this.palette = palette;
    this.labels.n = 0;
    this.markers.length = 0;
    this.ground.fill(palette.packed.background);
    for (const x of ticks) if (x >= 0 && x < this.width) this.ground[x] = palette.packed.line;
    for (let y = 0; y < this.height; y++) this.pixels.set(this.ground, y * this.width);
  }

  band(y0, y1, colour) {
    const a = Math.max(0, y0), b = Math.min(this.height, y1);
    if (b > a) this.pixels.fill(colour, a * this.width, b * this.width);
  }

  /** Copies the current line to the rows y0 … y1. */
  copy(y0, y1) {
    for (let y = y0; y < y1; y++) this.pixels.set(this.line, y * this.width);
  }

  put() {
    this.context.putImageData(this.image, 0, 0);
  }

  /** One entry of the layout at y (CSS pixels), within clip (device pixels). */
  entry(node, y, height, scene, clip) {
    const top = Math.round(y * this.dpr), bottom = Math.round((y + height) * this.dpr);
    if (bottom <= clip.top || top >= clip.bottom) return;
    const from = Math.max(top, clip.top), to = Math.min(bottom, clip.bottom);
    if (node.type === 'group') this.band(from, to, this.palette.packed.group);
    if (node.counter) this.counterRow(node, top, bottom - 1, scene, clip);
    else if (node.type === 'row' && scene.rows.isDense(node)) this.denseRow(node, top, bottom - 1,
      scene, clip);
    else if (node.type === 'row') this.sliceRow(node, y, scene, clip);
    if (bottom <= clip.bottom) this.band(bottom - 1, bottom, this.palette.packed.line);
  }

  sliceRow(node, y, scene, clip) {
    const lines = scene.rows.linesShown(node);
    for (let line = 0; line < lines; line++) {
      const y0 = Math.round((y + PAD + line * LINE) * this.dpr),
        y1 = Math.round((y + PAD + (line + 1) * LINE - 1) * this.dpr);
      if (y1 <= clip.top || y0 >= clip.bottom) continue;
      const inside = y0 >= clip.top && y1 <= clip.bottom;
      this.line.set(this.ground);
      if (node.local) this.localLine(node.local, line, scene, inside ? y0 : -1);
      else {
        const reply = scene.data.find(node.id, line);
        if (!reply) continue;
        this.sliceLine(reply, reply.rows.get(node.id), line, scene, inside ? y0 : -1);
      }
      this.copy(Math.max(y0, clip.top), Math.min(y1, clip.bottom));
    }
  }

  /** How many slices are there at once, as the height of a curve; node.atOnce keeps the numbers. */
  denseRow(node, top, bottom, scene, clip) {
    const sums = new Float32Array(this.width), parts = scene.rows.parts(node);
    for (const { id, tops } of parts) for (const line of tops) {
      const reply = scene.data.find(id, line), row = reply && reply.rows.get(id);
      if (row) this.addLine(reply, row, line - row.first, scene, sums);
    }
    node.atOnce = sums;
    const most = parts.reduce((sum, part) => sum + part.tops.length, 0);
    const pad = Math.round(4 * this.dpr), base = bottom - pad, high = base - top - pad;
    for (let x = 0; x < this.width; x++) {
      if (sums[x] === 0) continue;
      const y = base - Math.max(1, Math.round(Math.min(1, sums[x] / most) * high));
      this.column(x, x + 1, y, y, y, base, clip);
    }
  }

  /** Adds the part of each pixel that the slices of a line cover. */
  addLine(reply, row, line, scene, sums) {
    const { x0, k } = this.project(reply, scene.view), { items } = reply;
    for (let i = row.starts[line]; i < row.starts[line + 1]; i++) {
      const x = Math.floor(x0 + items.pixel[i] * k + 1e-6);
      const next = Math.max(x + 1, Math.floor(x0 + (items.pixel[i] + 1) * k + 1e-6));
      const stop = Math.floor(x0 + (items.pixel[i] + 1 + items.tail[i]) * k + 1e-6);
      const part = items.count[i] === 0 ? 1 : items.cover[i] / 255;
      for (let p = Math.max(0, x); p < next && p < this.width; p++) sums[p] += part;
      for (let p = Math.max(0, next); p < stop && p < this.width; p++) sums[p] += 1;
    }
  }

  /** x of the reply's pixel p in the view is x0 + p × k. */
  project(reply, view) {
    const w = reply.window;
    if (w.from === view.from && w.to === view.to && w.width === view.width) return { x0: 0, k: 1 };
    return { x0: pixelOf(view, w.from),
      k: ratio(w.to - w.from, view.to - view.from) * view.width / w.width };
  }

  sliceLine(reply, row, line, scene, labelY) {
    const { x0, k } = this.project(reply, scene.view);
    const items = reply.items, names = reply.names, variants = names.variant,
      table = this.palette.table, buffer = this.line, width = this.width;
    const end = row.starts[line - row.first + 1];
    const least = LABEL_LEAST * this.dpr;
    let i = Math.max(row.starts[line - row.first], itemAt(reply, row, line, Math.floor(-x0 / k)));
    let covered = -1e9, lastX = -1e9;
    for (; i < end; i++) {
      const pixel = items.pixel[i], tail = items.tail[i];
      const x = Math.floor(x0 + pixel * k + 1e-6);
      if (x >= width) break;
      if (x === lastX && tail === 0) continue;
      lastX = x;
      const next = Math.max(x + 1, Math.floor(x0 + (pixel + 1) * k + 1e-6));
      const instant = items.flags[i] & INSTANT;
      const shade = instant || items.count[i] === 0 ? SHADES - 1 : items.cover[i] >> 2 || 1;
      const colour = table[(items.colour[i] * VARIANTS + variants[items.name[i]]) * STYLE
        + items.calm[i] * SHADES + shade];
      for (let p = x < 0 ? 0 : x; p < next && p < width; p++) buffer[p] = colour;
      if (instant && labelY >= 0) this.marker(x, labelY,
        items.colour[i] * VARIANTS + variants[items.name[i]]);
      if (tail === 0) { covered = next; continue; }
      const stop = Math.max(next, Math.floor(x0 + (pixel + 1 + tail) * k + 1e-6));
      const style = (items.tailColour[i] * VARIANTS + variants[items.tailName[i]]) * STYLE;
      if (items.flags[i] & TAIL_UNFINISHED) this.fade(next, stop, style);
      else buffer.fill(table[style + SHADES - 1], Math.max(0, next),
        Math.max(0, Math.min(stop, width)));
      if (covered >= x && x >= 0 && tail * k >= 3 && items.count[i] === 1) buffer[x] =
        table[style + (SHADES >> 3)];
      covered = stop;
      if (labelY < 0 || stop - x < least) continue;
      const place = items.tailName[i];
      const faint = items.tailColour[i] === 7 && variants[place] === HUES;
      this.labels.add(x, stop, labelY, names.text[place], faint);
    }
  }

  /** An unfinished slice: its colour fades to the right. */
  fade(from, to, style) {
    const table = this.palette.table, length = Math.max(1, to - from);
    for (let x = Math.max(0, from); x < to && x < this.width; x++) {
      this.line[x] = table[style + Math.round((SHADES - 1) * (1 - 0.9 * (x - from) / length))];
    }
  }

  marker(x, y, style) {
    if (this.markers.length < MOST_MARKERS * 3) this.markers.push(x, y, style);
  }

  /** A line of a row that the page made itself from a query's result. */
  localLine(local, line, scene, labelY) {
    const view = scene.view, table = this.palette.table;
    for (let i = local.firstFrom(line, view.from); i < local.lines[line].length; i++) {
      const at = local.lines[line][i];
      if (local.ts[at] >= view.to) break;
      const x = Math.floor(pixelOf(view, local.ts[at])),
        stop = Math.max(x + 1, Math.ceil(pixelOf(view, local.end[at])));
      const style = local.style[at] * STYLE;
      this.line.fill(table[style + SHADES - 1], Math.max(0, x),
        Math.max(0, Math.min(stop, this.width)));
      if (stop - x > 3 && x >= 0) this.line[x] = table[style + (SHADES >> 3)];
      if (labelY >= 0 && stop - x >= LABEL_LEAST * this.dpr) this.labels.add(x, stop, labelY,
        local.name[at]);
    }
  }

  /** A counter: the area below its last value, the range within a pixel, a line at the value. */
  counterRow(node, top, bottom, scene, clip) {
    const reply = node.local ? null : scene.data.find(node.id, 0);
    if (!reply && !node.local) return;
    const data = reply ? reply.rows.get(node.id) : node.local.pixels(scene.view);
    const { x0, k } = reply ? this.project(reply, scene.view) : { x0: 0, k: 1 };
    const pad = Math.round(4 * this.dpr);
    const range = counterRange(node.source);
    const height = bottom - top - 2 * pad;
    const yOf = (value) =>
      Math.round(bottom - pad - (value - range.min) / (range.max - range.min) * height);
    const n = data.pixel.length;
    let before = null;
    for (let i = 0; i < n; i++) {
      const x = Math.floor(x0 + data.pixel[i] * k + 1e-6);
      const stop = i + 1 < n ? Math.floor(x0 + data.pixel[i + 1] * k + 1e-6) : this.width;
      if (stop < 0 || x >= this.width) continue;
      if (!Number.isFinite(data.last[i])) {
        this.odd(x, Math.max(stop, x + Math.round(2 * this.dpr)), data.last[i], top, bottom, clip);
        before = null;
        continue;
      }
      const low = yOf(data.min[i]), high = yOf(data.max[i]), last = yOf(data.last[i]);
      this.column(x, Math.max(x + 1, Math.floor(x0 + (data.pixel[i] + 1) * k)), high, low, last,
        bottom - pad, clip);
      this.column(x + 1, stop, last, last, last, bottom - pad, clip);
      if (before !== null && before !== last) this.riser(x, Math.min(before, last),
        Math.max(before, last), clip);
      before = last;
    }
  }

  /** What a scale has no place for: NaN over the whole height, an infinity at the edge that it
   * lies beyond. */
  odd(x, stop, value, top, bottom, clip) {
    const edge = Math.round(4 * this.dpr), a = Math.max(0, x), b = Math.min(this.width, stop);
    const from = value === -Infinity ? bottom - edge : top + 1, to = value === Infinity
      ? top + 1 + edge : bottom;
    for (let y = Math.max(from, clip.top); y < to && y < clip.bottom && b > a;
      y++) this.pixels.fill(this.palette.packed.odd, y * this.width + a, y * this.width + b);
  }

  /** The step from one value to the next. */
  riser(x, high, low, clip) {
    if (x < 0 || x >= this.width) return;
    for (let y = Math.max(high, clip.top); y <= low && y < clip.bottom;
      y++) this.pixels[y * this.width + x] = this.palette.packed.counterLine;
  }

  column(x, stop, high, low, last, base, clip) {
    const { counterFill, counterRange: range, counterLine } = this.palette.packed;
    const thick = Math.max(1, Math.round(1.5 * this.dpr));
    const a = Math.max(0, x), b = Math.min(this.width, stop);
    if (b <= a) return;
    const span = (y0, y1, colour) => {
      for (let y = Math.max(y0, clip.top); y < y1 && y < clip.bottom; y++) this.pixels.fill(colour,
        y * this.width + a, y * this.width + b);
    };
    span(high, low, range);
    span(low, base + 1, counterFill);
    span(last - thick + 1, last + 1, counterLine);
  }
}

/** The scale of a counter: from its least to its greatest value, with 0 in it unless that would
 * flatten it. */
export function counterRange(source) {
  let min = Number(source.min), max = Number(source.max);
  if (!Number.isFinite(min) || !Number.isFinite(max)) { min = 0; max = 1; }
  if (min > 0 && min < max * 0.9) min = 0;
  if (max < 0 && max > min * 0.9) max = 0;
  if (min === max) { min = Math.min(0, min); max = Math.max(max, min + 1); }
  return { min, max };
}
