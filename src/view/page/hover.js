// What is under the pointer: outline, tooltip, the time.

import { formatCount, formatExact, formatSeconds } from './time.js';

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 7 });

export class Hover {
  constructor(app) {
    this.app = app;
    this.x = null;
    this.y = null;
    this.box = null;
    this.time = null;
    this.node = null;
    this.quiet = false;
  }

  /** No tooltip until the pointer moves again. */
  hush() {
    this.quiet = true;
    this.app.tooltip.hide();
  }

  move(point) {
    this.quiet = false;
    this.x = Math.max(0, point.x);
    this.y = point.y;
    this.app.invalidate();
  }

  leave() {
    this.x = this.y = this.box = this.time = this.node = null;
    this.app.tooltip.hide();
    this.app.invalidate();
  }

  /** Once per frame, with the data of that frame. */
  update() {
    this.box = null;
    this.node = null;
    const { app } = this, { timeline } = app;
    if (this.x === null) return;
    this.time = app.view.edge(Math.floor(this.x * app.dpr));
    const place = this.y < 0 ? null : timeline.placeAt(this.y);
    this.node = place ? place.node : null;
    if (!place || app.input.drag || app.view.moving
      || place.node.type !== 'row') return app.tooltip.hide();
    this.box = timeline.boxAt(this.x, this.y);
    if (this.quiet) return undefined;
    const found = timeline.pick(this.x, this.y), lines = [];
    const head = found ? this.describe(found, lines)
      : app.rows.isDense(place.node) ? this.dense(place.node, lines) : '';
    this.loss(place.node, lines);
    if (!head && !lines.length) return app.tooltip.hide();
    const canvas = timeline.canvas.getBoundingClientRect();
    return app.tooltip.show(canvas.left + this.x, canvas.top + this.y,
      head || place.node.name, lines);
  }

  /** Of a row that shows how many there are at once. */
  dense(node, lines) {
    const n = node.atOnce ? node.atOnce[Math.floor(this.x * this.app.dpr)] : 0;
    lines.push('C unfolds the row');
    return `${number.format(Math.round(n * 10) / 10)} at once`;
  }

  describe(found, lines) {
    const { app } = this, from = BigInt(found.from), to = BigInt(found.to);
    const where = `${formatSeconds(from - app.zero)} + ${formatExact(to - from)}`;
    if (found.value) {
      lines.push(found.value.here && Number.isFinite(found.value.min)
        && found.value.min !== found.value.max
          ? `from ${number.format(found.value.min)} to ${number.format(found.value.max)} `
            + 'within this pixel'
          : app.rowName(found.row), where);
      return number.format(found.value.last);
    }
    if (!found.count) return '';
    const length = found.dur === null ? '' : found.dur === '-1' ? 'unfinished' : found.dur === '0'
      ? 'instant' : formatExact(BigInt(found.dur));
    if (found.count === 1) {
      lines.push(...(length ? [length] : []), where);
      return found.name || '(no name)';
    }
    lines.push(`longest: ${found.name || '(no name)'}${length ? ', ' + length : ''}`, where);
    return `${formatCount(found.count)} slices`;
  }

  loss(node, lines) {
    for (const loss of this.app.losses) {
      const here = loss.row === undefined || loss.row === null || loss.row === node.id;
      if (here && this.time >= loss.from && this.time <= loss.to) lines.push(
        `${loss.count} events lost${loss.cause ? `: ${loss.cause}` : ''}`);
    }
  }
}
