// The time axis: ticks at round offsets from the beginning of the trace.

import { FONT } from './text.js';
import { axisUnit, formatOffset, formatSeconds, niceStep, floorDiv, formatShort } from './time.js';

const SPACING = 120; // CSS pixels between labels, at least

/** {step, ticks: [{t, x}]}: round times in the window. */
export function ticksOf(view, first, dpr) {
  const least = view.span * BigInt(Math.round(SPACING * dpr)) / BigInt(view.width);
  const step = niceStep(least > 0n ? least : 1n);
  const ticks = [];
  for (let t = first + floorDiv(view.from - first, step) * step; t < view.to; t += step) {
    if (t >= view.from) ticks.push({ t, x: Math.floor(view.pixel(t)) });
  }
  return { step, ticks };
}

/** The part of the times that all ticks have in common, when they would have too many digits. */
function baseOf(view, first, step) {
  const unit = axisUnit(step);
  const offset = view.from - first;
  if (offset < 0n || offset / step < 100000n && (offset / unit.ns).toString()
    .length <= 4) return 0n;
  let round = step;
  while (round < view.span * 2n) round *= 10n;
  return floorDiv(offset, round) * round;
}

export class Axis {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d', { alpha: false });
  }

  draw(scene) {
    const { view, dpr, palette, first, ticks, step } = scene;
    const context = this.context, height = this.canvas.height;
    context.fillStyle = palette.background;
    context.fillRect(0, 0, this.canvas.width, height);
    const base = baseOf(view, first, step);
    this.minor(scene);
    context.font = `${11 * dpr}px ${FONT}`;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    let free = 8 * dpr;
    if (base !== 0n) {
      const text = formatSeconds(base) + ' +';
      context.fillStyle = palette.text;
      context.fillText(text, free, height * 0.3);
    }
    for (const tick of ticks) {
      context.fillStyle = palette.muted;
      context.fillRect(tick.x, height - 8 * dpr, dpr, 8 * dpr);
      context.fillText((base !== 0n ? '+' : '') + formatOffset(tick.t - first - base, step),
        tick.x + 5 * dpr, base !== 0n ? height * 0.68 : height * 0.5);
    }
    this.pointer(scene);
    this.area(scene);
    this.marks(scene);
    context.fillStyle = palette.line;
    context.fillRect(0, height - dpr, this.canvas.width, dpr);
  }

  minor({ view, dpr, palette, step, first }) {
    const small = step / 5n;
    if (small === 0n) return;
    this.context.fillStyle = palette.muted;
    this.context.globalAlpha = 0.45;
    for (let t = first + floorDiv(view.from - first, small) * small; t < view.to; t += small) {
      this.context.fillRect(Math.floor(view.pixel(t)), this.canvas.height - 4 * dpr, dpr, 4 * dpr);
    }
    this.context.globalAlpha = 1;
  }

  /** The selected interval with its length. */
  area({ view, dpr, palette, interval }) {
    if (!interval) return;
    const context = this.context, height = this.canvas.height;
    const x = Math.max(-2, view.pixel(interval.from)),
      end = Math.min(view.width + 2, view.pixel(interval.to));
    if (end < 0 || x > view.width) return;
    context.fillStyle = palette.area;
    context.fillRect(x, 0, Math.max(dpr, end - x), height);
    context.fillStyle = palette.accent;
    context.fillRect(x, height - 3 * dpr, Math.max(dpr, end - x), 3 * dpr);
    const text = formatShort(interval.to - interval.from);
    context.font = `600 ${11 * dpr}px ${FONT}`;
    const wide = context.measureText(text).width;
    if (end - x < wide + 12 * dpr) return;
    const middle = (Math.max(0, x) + Math.min(view.width, end)) / 2;
    context.fillStyle = palette.background;
    context.fillRect(middle - wide / 2 - 5 * dpr, 3 * dpr, wide + 10 * dpr, height - 10 * dpr);
    context.fillStyle = palette.accent;
    context.fillText(text, middle - wide / 2, height * 0.45);
    context.font = `${11 * dpr}px ${FONT}`;
  }

  marks({ view, dpr, palette, marks }) {
    const context = this.context;
    for (const mark of marks) {
      const x = Math.round(view.pixel(mark.ts));
      if (x < -200 * dpr || x > view.width) continue;
      const text = mark.text.length > 24 ? mark.text.slice(0, 23) + '…' : mark.text;
      const wide = text ? context.measureText(text).width + 8 * dpr : 7 * dpr;
      context.fillStyle = palette.mark;
      context.beginPath();
      context.roundRect(x, 2 * dpr, wide, 14 * dpr, [0, 3 * dpr, 3 * dpr, 0]);
      context.fill();
      context.fillRect(x, 2 * dpr, dpr, this.canvas.height);
      context.fillStyle = palette.background;
      context.fillText(text, x + 4 * dpr, 9.5 * dpr);
    }
  }

  pointer({ pointerX, dpr, palette }) {
    if (pointerX === null) return;
    this.context.fillStyle = palette.accent;
    this.context.fillRect(Math.floor(pointerX), 0, dpr, this.canvas.height);
  }
}
