// What is drawn over the raster: names, instants, losses, selection, hover, area, marks, arrows of
// the selection.

import { LINE } from './rows.js';

const FLOW_MOST = 200;

export function drawLabels(context, raster, fit, palette) {
  const { dpr, labels } = raster;
  fit.use(11 * dpr);
  context.fillStyle = palette.label;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  const pad = 5 * dpr, middle = (LINE - 1) * dpr / 2 + 0.5 * dpr;
  for (let i = 0; i < labels.n; i++) {
    const text = labels.text[i];
    if (!text) continue;
    const x = Math.max(labels.x[i], 0), end = Math.min(labels.end[i], raster.width);
    const short = fit.fit(text, end - x - 2 * pad + 2);
    if (!short) continue;
    context.fillStyle = labels.faint[i] ? palette.muted : palette.label;
    context.fillText(short, x + pad, labels.y[i] + middle);
  }
}

export function drawMarkers(context, raster, palette) {
  const { markers, dpr } = raster;
  const half = 3 * dpr;
  context.globalAlpha = 0.85;
  for (let i = 0; i < markers.length; i += 3) {
    const x = markers[i] + 0.5, y = markers[i + 1] + (LINE - 1) * dpr;
    context.fillStyle = palette.solid[markers[i + 2]];
    context.strokeStyle = palette.muted;
    context.lineWidth = 0.75 * dpr;
    context.beginPath();
    context.moveTo(x, y - 2.2 * half);
    context.lineTo(x + half, y);
    context.lineTo(x - half, y);
    context.closePath();
    context.fill();
    context.stroke();
  }
  context.globalAlpha = 1;
}

let hatch = null;

function hatchOf(context, palette, dpr) {
  if (hatch && hatch.key === palette.name + dpr) return hatch.pattern;
  const size = Math.round(8 * dpr);
  const tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext('2d');
  pen.fillStyle = pen.strokeStyle = palette.hatch;
  pen.globalAlpha = 0.2;
  pen.fillRect(0, 0, size, size);
  pen.globalAlpha = 1;
  pen.lineWidth = 1.5 * dpr;
  pen.beginPath();
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift - 1, size + 1);
    pen.lineTo(shift + size + 1, -1);
  }
  pen.stroke();
  hatch = { key: palette.name + dpr, pattern: context.createPattern(tile, 'repeat') };
  return hatch.pattern;
}

/** Lost events: hatched over the row they are missing from, or over all rows. */
export function drawLosses(context, scene) {
  const { losses, view, dpr } = scene;
  if (!losses.length) return;
  context.fillStyle = hatchOf(context, scene.palette, dpr);
  for (const loss of losses) {
    const x = Math.max(-2, view.pixel(loss.from)),
      end = Math.min(view.width + 2,
      Math.max(view.pixel(loss.to), view.pixel(loss.from) + 7 * dpr));
    if (end <= 0 || x >= view.width) continue;
    if (loss.row === undefined || loss.row === null) {
      context.fillRect(x, 0, end - x, context.canvas.height);
      continue;
    }
    const place = scene.placeOf(loss.row);
    if (place) clipped(context, place,
      () => context.fillRect(x, place.y * dpr, end - x, place.height * dpr), dpr);
  }
}

function clipped(context, place, draw, dpr) {
  context.save();
  context.beginPath();
  context.rect(0, place.clipTop * dpr, context.canvas.width,
    (place.clipBottom - place.clipTop) * dpr);
  context.clip();
  draw();
  context.restore();
}

/** The box of a slice in device pixels, or null when its line is not on screen. */
export function sliceBox(scene, slice) {
  const line = scene.lineOf(slice.row, slice.line);
  if (!line) return null;
  const { view, dpr } = scene;
  const x = Math.max(-10, Math.min(view.width + 10, view.pixel(slice.from)));
  const end = Math.max(-10, Math.min(view.width + 10, view.pixel(slice.to)));
  return { x: Math.floor(x), end: Math.max(Math.ceil(end), Math.floor(x) + 1),
    y: Math.round(line.y * dpr), bottom: Math.round((line.y + LINE - 1) * dpr), line };
}

export function drawSelected(context, scene, slice, palette) {
  const box = sliceBox(scene, slice);
  if (!box) return;
  const dpr = scene.dpr, w = 2 * dpr;
  clipped(context, box.line, () => {
    context.strokeStyle = palette.selectGlow;
    context.lineWidth = w * 2;
    context.strokeRect(box.x - w, box.y - w / 2, box.end - box.x + 2 * w, box.bottom - box.y + w);
    context.strokeStyle = palette.select;
    context.lineWidth = w;
    context.strokeRect(box.x - w / 2, box.y - w / 2, box.end - box.x + w, box.bottom - box.y + w);
  }, dpr);
}

export function drawHover(context, scene, hover, palette) {
  const dpr = scene.dpr;
  context.strokeStyle = palette.hover;
  context.lineWidth = dpr;
  const y = Math.round(hover.y * dpr) + dpr / 2;
  context.strokeRect(hover.x - dpr / 2, y - dpr, hover.end - hover.x + dpr, (LINE - 1) * dpr + dpr);
}

export function drawArea(context, scene, area, palette) {
  const { view, dpr } = scene;
  const x = Math.max(-5, view.pixel(area.from)),
    end = Math.min(view.width + 5, view.pixel(area.to));
  if (end < 0 || x > view.width) return;
  context.fillStyle = palette.area;
  const rows = new Set(area.rows.map((r) => r[0]));
  for (const place of scene.places) {
    if (rows.has(place.node.id) && place.node.type === 'row') {
      const top = Math.max(place.y, place.clipTop),
        bottom = Math.min(place.y + place.height, place.clipBottom);
      context.fillRect(x, top * dpr, end - x, (bottom - top) * dpr);
    }
  }
  context.fillStyle = palette.accent;
  context.fillRect(Math.round(x), 0, dpr, context.canvas.height);
  context.fillRect(Math.round(end) - dpr, 0, dpr, context.canvas.height);
}

export function drawMarks(context, scene, marks, palette) {
  const { view, dpr } = scene;
  context.fillStyle = palette.mark;
  for (const mark of marks) {
    for (const t of mark.to === null ? [mark.ts] : [mark.ts, mark.to]) {
      const x = Math.round(view.pixel(t));
      if (x >= 0 && x < view.width) context.fillRect(x, 0, dpr, context.canvas.height);
    }
  }
}

/** Arrows from the end of one slice to the beginning of another; they reach to the edge when an
 * end is not on screen. */
export function drawFlows(context, scene, flows, palette) {
  const dpr = scene.dpr;
  context.lineWidth = 1.75 * dpr;
  for (const flow of flows.slice(0, FLOW_MOST)) {
    const a = anchor(scene, flow.from, true), b = anchor(scene, flow.to, false);
    if (!a || !b) continue;
    const bend = Math.max(24 * dpr, Math.min(Math.abs(b.x - a.x) / 2, 160 * dpr));
    const path = new Path2D();
    path.moveTo(a.x, a.y);
    path.bezierCurveTo(a.x + bend, a.y, b.x - bend, b.y, b.x - 4 * dpr, b.y);
    context.strokeStyle = palette.selectGlow;
    context.lineWidth = 4 * dpr;
    context.stroke(path);
    context.strokeStyle = palette.select;
    context.lineWidth = 1.75 * dpr;
    context.stroke(path);
    arrowHead(context, b, palette, dpr);
  }
}

function arrowHead(context, b, palette, dpr) {
  context.fillStyle = palette.select;
  context.beginPath();
  context.moveTo(b.x + dpr, b.y);
  context.lineTo(b.x - 7 * dpr, b.y - 4 * dpr);
  context.lineTo(b.x - 7 * dpr, b.y + 4 * dpr);
  context.fill();
}

/** Where an arrow begins or ends: the end of a slice if it leaves it, else its beginning. */
function anchor(scene, slice, leaving) {
  const place = scene.anchorOf(slice.row, slice.line);
  if (!place) return null;
  const t = leaving ? slice.to : slice.from;
  const x = Math.max(-4000, Math.min(scene.view.width + 4000, scene.view.pixel(t)));
  return { x, y: place * scene.dpr };
}
