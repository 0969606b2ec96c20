// While a trace is loaded: its busiest tracks as they come, a strip of density each.

import { FONT } from './text.js';

const WIDTH = 720, NAMES = 190, STRIP = 16, GAP = 6, MOST = 16;

export function drawSketch(canvas, sketch, palette) {
  const rows = sketch && Array.isArray(sketch.rows) ? sketch.rows.slice(0, MOST) : [];
  canvas.hidden = rows.length === 0;
  if (!rows.length) return;
  const dpr = devicePixelRatio || 1, height = rows.length * (STRIP + GAP);
  canvas.width = WIDTH * dpr;
  canvas.height = height * dpr;
  canvas.style.width = WIDTH + 'px';
  canvas.style.height = height + 'px';
  const pen = canvas.getContext('2d');
  pen.scale(dpr, dpr);
  pen.font = `12px ${FONT}`;
  pen.textBaseline = 'middle';
  rows.forEach((row, i) => strip(pen, row, i * (STRIP + GAP), palette));
}

function strip(pen, row, y, palette) {
  pen.fillStyle = palette.muted;
  pen.textAlign = 'right';
  const name = String(row.name || '');
  pen.fillText(name.length > 28 ? name.slice(0, 27) + '…' : name, NAMES - 12, y + STRIP / 2);
  const cells = Array.isArray(row.density) ? row.density : [],
    wide = (WIDTH - NAMES) / Math.max(1, cells.length);
  pen.fillStyle = palette.line;
  pen.fillRect(NAMES, y, WIDTH - NAMES, STRIP);
  pen.fillStyle = palette.counter;
  cells.forEach((value, k) => {
    if (!value) return;
    pen.globalAlpha = 0.2 + 0.8 * Math.min(255, value) / 255;
    pen.fillRect(NAMES + k * wide, y, wide + 0.5, STRIP);
  });
  pen.globalAlpha = 1;
}
