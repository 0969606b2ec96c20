// The visible window: exact times, zoom, pan, animated jumps and movement by held keys.

import { edge, maxTime, minTime, pixelOf, scale } from './time.js';

const JUMP_MS = 180;
const TAP_MS = 90; // a key that is pressed and released at once moves as if it was held this long
const RAMP_MS = 120;
const ZOOM_PER_SECOND = 6.5; // held W: so many times closer within a second
const PAN_PER_SECOND = 0.9; // held D: so many windows within a second
const SCROLL_PER_SECOND = 900;

export class View {
  constructor(moved) {
    this.moved = moved;
    this.first = 0n;
    this.last = 1n;
    this.from = 0n;
    this.to = 1000n;
    this.width = 1000;
    this.jump = null;
    this.held = new Map();
    this.history = [];
  }

  get span() {
    return this.to - this.from;
  }

  /** {from, to, width}: a copy that does not change. */
  get window() {
    return { from: this.from, to: this.to, width: this.width };
  }

  get margin() {
    return maxTime((this.last - this.first) / 40n, BigInt(this.width) / 2n);
  }

  get whole() {
    const pad = (this.last - this.first) / 200n;
    return { from: this.first, to: this.last + pad + 1n };
  }

  setBounds(first, last) {
    this.first = first;
    this.last = maxTime(last, first + 1n);
  }

  resize(width) {
    if (width === this.width) return;
    this.width = width;
    this.place(this.from, this.to);
  }

  edge(i) {
    return edge(this, i);
  }

  pixel(t) {
    return pixelOf(this, t);
  }

  /** Takes a window as near to the wanted one as the limits allow. */
  place(from, to) {
    let span = maxTime(to - from, BigInt(this.width));
    const low = this.first - this.margin, high = this.last + this.margin;
    span = minTime(span, maxTime(high - low, BigInt(this.width)));
    let start = from + (to - from - span) / 2n;
    start = minTime(start, high - span);
    start = maxTime(start, minTime(low, high - span));
    if (start === this.from && start + span === this.to) return;
    this.from = start;
    this.to = start + span;
    this.moved();
  }

  /** Zooms by a factor (< 1: closer) about a fraction of the window. */
  zoom(factor, at) {
    const old = this.span;
    let span = maxTime(scale(old, factor), BigInt(this.width));
    span = minTime(span, this.last - this.first + 2n * this.margin);
    if (span === old && factor !== 1) return;
    const from = this.from + scale(old - span, at);
    this.place(from, from + span);
  }

  pan(fraction) {
    const by = scale(this.span, fraction);
    this.place(this.from + by, this.to + by);
  }

  /** Goes to a window, smoothly unless the user prefers less motion. */
  go(from, to, now = performance.now()) {
    this.history.push([this.from, this.to]);
    if (this.history.length > 100) this.history.shift();
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.place(from, to);
      return;
    }
    this.jump = { from: this.from, to: this.to, toFrom: from, toTo: to, begin: now };
    this.moved();
  }

  back() {
    const last = this.history.pop();
    if (!last) return;
    const length = this.history.length;
    this.go(last[0], last[1]);
    this.history.length = length;
  }

  fitAll() {
    this.go(this.whole.from, this.whole.to);
  }

  /** An interval with some room on both sides. */
  fit(from, to) {
    const pad = maxTime((to - from) / 8n, 1n);
    this.go(from - pad, to + pad);
  }

  /** Moves an interval into the window and keeps the zoom when it suits it. */
  show(from, to) {
    const inside = from >= this.from && to <= this.to;
    const pixels = pixelOf({ from: 0n, to: this.span, width: this.width }, to - from);
    if (inside && pixels >= 2) return;
    if (pixels < 2 || pixels > this.width) {
      const span = maxTime((to - from) * 20n, BigInt(this.width));
      this.go(from - span / 2n + (to - from) / 2n, from + span / 2n + (to - from) / 2n);
      return;
    }
    const start = from - (this.span - (to - from)) / 2n;
    this.go(start, start + this.span);
  }

  press(action, now) {
    this.jump = null;
    const key = this.held.get(action);
    if (key) { key.down = true; return; }
    this.held.set(action, { down: true, begin: now, until: now + TAP_MS, last: now });
    this.moved();
  }

  release(action) {
    const key = this.held.get(action);
    if (key) key.down = false;
  }

  releaseAll() {
    this.held.clear();
  }

  get moving() {
    return this.jump !== null || this.held.size > 0;
  }

  /** One frame of movement: `at` is the fraction about which keys zoom, `scroll(px)` moves the
   * rows. */
  step(now, at, scroll) {
    if (this.jump) this.stepJump(now);
    for (const [action, key] of this.held) {
      const end = key.down ? now : Math.min(now, Math.max(key.last, key.until));
      const dt = Math.max(0, Math.min(end - key.last, 100)) / 1000;
      const ramp = Math.min(1, 0.35 + 0.65 * (end - key.begin) / RAMP_MS);
      key.last = end;
      this.apply(action, dt * ramp, at, scroll);
      if (!key.down && now >= key.until) this.held.delete(action);
    }
  }

  apply(action, dt, at, scroll) {
    if (dt === 0) return;
    if (action === 'in') this.zoom(Math.pow(ZOOM_PER_SECOND, -dt), at);
    else if (action === 'out') this.zoom(Math.pow(ZOOM_PER_SECOND, dt), at);
    else if (action === 'left') this.pan(-PAN_PER_SECOND * dt);
    else if (action === 'right') this.pan(PAN_PER_SECOND * dt);
    else if (action === 'up') scroll(-SCROLL_PER_SECOND * dt);
    else if (action === 'down') scroll(SCROLL_PER_SECOND * dt);
  }

  stepJump(now) {
    const jump = this.jump;
    const t = Math.min(1, Math.max(0, (now - jump.begin) / JUMP_MS));
    if (t >= 1) {
      this.jump = null;
      this.place(jump.toFrom, jump.toTo);
      this.moved();
      return;
    }
    const eased = 1 - Math.pow(1 - t, 3);
    const from = jump.from + scale(jump.toFrom - jump.from, eased);
    const to = jump.to + scale(jump.toTo - jump.to, eased);
    this.place(from, maxTime(to, from + 1n));
    this.moved();
  }
}
