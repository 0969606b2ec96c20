// Export of what is on screen: PNG from the canvases, SVG from the data, the window as a trace.

import { download } from './dom.js';
import { SHADES, STYLE, VARIANTS } from './palette.js';
import { LINE, PAD } from './rows.js';
import { FONT } from './text.js';
import { formatOffset } from './time.js';

const NAMES = 264;
const HEAD = 34;
const escape = (text) =>
  text.replace(/[&<>"']/g,
  (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[c])
  .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD');

function hex(packed) {
  const c = (packed & 255) << 16 | (packed & 0xff00) | (packed >> 16 & 255);
  return '#' + c.toString(16).padStart(6, '0');
}

export class Exporter {
  constructor(app) {
    this.app = app;
  }

  fileName(suffix) {
    const name = (this.app.trace ? this.app.trace.name : 'trace').replace(/[^\w.-]+/g, '_')
      .replace(/\.(pftrace|json|txt)(\.\w+)?$/, '');
    return `${name || 'trace'}${suffix}`;
  }

  /** Names, axis and time line on one canvas. */
  compose() {
    const { app } = this, { timeline, palette, dpr } = app;
    const canvas = document.createElement('canvas');
    const names = Math.round(NAMES * dpr), head = app.axis.canvas.height;
    canvas.width = names + timeline.canvas.width;
    canvas.height = head + timeline.canvas.height;
    const pen = canvas.getContext('2d');
    pen.fillStyle = palette.group;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(app.axis.canvas, names, 0);
    pen.drawImage(timeline.canvas, names, head);
    pen.textBaseline = 'top';
    for (const place of timeline.places) {
      const top = Math.max(place.y, place.clipTop);
      pen.save();
      pen.beginPath();
      pen.rect(0, head + top * dpr, names - 8 * dpr,
        (Math.min(place.y + place.height, place.clipBottom) - top) * dpr);
      pen.clip();
      pen.fillStyle = palette.text;
      pen.font = `${place.node.type === 'group' ? '600 ' : ''}${12 * dpr}px ${FONT}`;
      pen.fillText(place.node.name, (10 + place.node.level * 12) * dpr, head + (place.y + 7) * dpr);
      pen.restore();
    }
    return canvas;
  }

  png() {
    this.app.wait(new Promise((done) => this.compose().toBlob((blob) => {
      if (blob) download(blob, this.fileName('.png'));
        else this.app.say('The browser could not make the PNG. Export the view as SVG instead.');
      done();
    })));
  }

  svg() {
    download(new Blob([this.svgText()], { type: 'image/svg+xml' }), this.fileName('.svg'));
  }

  svgText() {
    const { app } = this, { timeline, palette } = app, width = NAMES + timeline.width,
      height = HEAD + timeline.height;
    const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" `
      + `height="${height}" viewBox="0 0 ${width} ${height}" `
      + 'font-family="system-ui, sans-serif" font-size="11">',
      `<rect width="${width}" height="${height}" fill="${palette.background}"/>`];
    const scene = timeline.scene();
    for (const tick of scene.ticks) {
      const x = NAMES + tick.x / app.dpr;
      out.push(`<path d="M${x} ${HEAD - 8}V${height}" stroke="${palette.line}"/><text `
        + `x="${x + 4}" y="18" `
          + `fill="${palette.muted}">`
          + `${escape(formatOffset(tick.t - scene.first, scene.step))}</text>`);
    }
    out.push(`<clipPath id="c"><rect x="${NAMES}" y="${HEAD}" `
      + `width="${timeline.width}" height="${timeline.height}"/></clipPath>`);
    for (const place of timeline.places) this.svgPlace(place, scene, out);
    out.push('</svg>');
    return out.join('\n');
  }

  svgPlace(place, scene, out) {
    const { palette } = this.app, { node } = place, y = HEAD + place.y;
    if (place.y + place.height <= place.clipTop) return;
    if (node.type === 'group') out.push(
      `<rect y="${y}" width="100%" height="${place.height}" fill="${palette.group}"/>`);
    out.push(`<text x="${10 + node.level * 12}" y="${y + 16}" `
      + `fill="${palette.text}"${node.type === 'group' ? ' font-weight="600"' : ''}>`
      + `${escape(node.name.slice(0, 40))}</text>`);
    if (node.type !== 'row' || node.local) return;
    out.push('<g clip-path="url(#c)">');
    if (node.counter) this.svgCounter(place, scene, out);
    for (let line = 0; line < this.app.rows.linesShown(node); line++) this.svgLine(node, line,
      y + PAD + line * LINE, scene, out);
    out.push('</g>');
  }

  svgLine(node, line, y, scene, out) {
    const reply = scene.data.find(node.id, line);
    if (!reply || y > HEAD + this.app.timeline.height || y < HEAD - LINE) return;
    const { x0, k } = this.app.timeline.raster.project(reply, scene.view),
      row = reply.rows.get(node.id), { items, names } = reply, { palette, dpr } = this.app;
    const limit = scene.view.width;
    for (let i = row.starts[line - row.first]; i < row.starts[line - row.first + 1]; i++) {
      const x = x0 + items.pixel[i] * k, end = x0 + (items.pixel[i] + 1 + items.tail[i]) * k;
      if (end < 0 || x > limit) continue;
      const shade = items.tail[i] || !items.count[i] ? SHADES - 1 : items.cover[i] >> 2 || 1;
      const name = items.tail[i] ? items.tailName[i] : items.name[i], colour = items.tail[i]
        ? items.tailColour[i] : items.colour[i];
      const wide = Math.max(1, end - x - (items.tail[i] > 3 ? 1 : 0)) / dpr;
      out.push(`<rect x="${(NAMES + x / dpr).toFixed(1)}" y="${y}" `
        + `width="${wide.toFixed(1)}" height="${LINE - 1}" `
          + `fill="${hex(palette.table[(colour * VARIANTS + names.variant[name]) * STYLE
            + (items.tail[i] ? 0 : items.calm[i] * SHADES) + shade])}"/>`);
      const left = Math.max(0, x) / dpr, room = Math.min(limit, end) / dpr - left - 8,
        text = room > 20 ? names.text[name].slice(0, Math.floor(room / 6)) : '';
      if (text) out.push(`<text x="${(NAMES + left + 5).toFixed(1)}" y="${y + 13}" `
        + `fill="${palette.label}">${escape(text)}</text>`);
    }
  }

  svgCounter(place, scene, out) {
    const reply = scene.data.find(place.node.id, 0);
    if (!reply) return;
    const { x0, k } = this.app.timeline.raster.project(reply, scene.view),
      data = reply.rows.get(place.node.id), { source } = place.node, { dpr, palette } = this.app;
    const low = Number(source.min), span = Number(source.max) - low || 1;
    let path = '', pen = 'M';
    const at = (i) => (i < data.pixel.length ? NAMES + (x0 + data.pixel[i] * k) / dpr
      : NAMES + this.app.timeline.width);
    for (let i = 0; i < data.pixel.length; i++) {
      const x = at(i), value = data.last[i];
      if (!Number.isFinite(value)) { // NaN over the whole height, an infinity at its edge
        const high = Number.isNaN(value) ? place.height - 2 : 4,
          top = HEAD + place.y + (value === -Infinity ? place.height - 5 : 1);
        if (pen === 'H') path += `H${x.toFixed(1)}`;
        pen = 'M';
        out.push(`<rect x="${x.toFixed(1)}" y="${top}" `
          + `width="${Math.max(2, at(i + 1) - x).toFixed(1)}" height="${high}" `
            + `fill="${palette.odd}"><title>${value}</title></rect>`);
        continue;
      }
      const y = HEAD + place.y + place.height - 5 - (data.last[i] - low) / span
        * (place.height - 10);
      path += pen === 'H' ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}`;
      pen = 'H';
    }
    if (path) out.push(
      `<path d="${path}${pen === 'H' ? `H${NAMES + this.app.timeline.width}` : ''}" `
        + `fill="none" stroke="${palette.counter}" stroke-width="1.5"/>`);
  }

  async cut(from, to) {
    const { app } = this;
    try {
      const blob = await app.wait(app.transport.blob('/api/cut',
        { from: from.toString(), to: to.toString() }));
      download(blob, this.fileName(`-${from - app.first}.pftrace`));
      app.announce('The window is saved as a trace');
    } catch (error) {
      app.say(`The window was not saved: ${error.message}`);
    }
  }
}
