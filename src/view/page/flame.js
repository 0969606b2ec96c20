// A flame graph: the call tree of an area, widths by total time. Click a frame to make it the whole
// width; it can be inverted (who called what takes the time) and filtered by name.

import { btn, el } from './dom.js';
import { press } from './page_parts.js';
import { FONT, TextFit } from './text.js';
import { formatCount, formatShort, ratio } from './time.js';

const LINE = 19;

/** The tree from the functions that take the time to those that called them: self times add up. */
function invert(root) {
  const made = { ...root, children: [], total: 0n };
  const childOf = (parent, node) => {
    let child = parent.children.find((c) => c.name === node.name && c.text === node.text);
    if (!child) parent.children.push(child = { ...node, parent, children: [], total: 0n, self: 0n,
      count: 0n });
    return child;
  };
  const walk = (node) => {
    if (node.parent && node.self > 0n) {
      let at = made;
      made.total += node.self;
      for (let up = node; up.parent; up = up.parent) {
        at = childOf(at, up);
        at.total += node.self;
        if (up === node) at.self += node.self;
        at.count += node.count;
      }
    }
    node.children.forEach(walk);
  };
  walk(root);
  return made;
}

/** The tree of one kind (0 slices, 1 states, 2 samples) out of the nodes of an area: those of the
 * kinds have different roots, -1, -2 and -3. */
export function buildTree(nodes, rows, kind) {
  const names = new Map(rows.map((row) => [row.name, row])), list = [];
  const roots = [0, 1, 2].map(() => ({
    name: null, text: 'all', total: 0n, self: 0n, count: 0n, children: [], parent: null,
  }));
  for (const node of nodes) {
    const parent = node.parent >= 0 ? list[node.parent] : roots[-1 - node.parent];
    const known = names.get(node.name);
    const entry = {
      name: node.name, text: String(node.text), colour: known ? known.colour : node.colour,
      total: BigInt(node.total), self: BigInt(node.self), count: BigInt(node.count),
      children: [], parent,
    };
    parent.children.push(entry);
    if (!parent.parent) parent.total += entry.total;
    list.push(entry);
  }
  return roots[kind];
}

export class Flame {
  constructor(app, root) {
    this.app = app;
    this.canvas = el('canvas',
      { tabindex: '0', role: 'img',
        'aria-label': 'Flame graph; the table beside it has the same numbers' });
    this.input = el('input',
      { type: 'text', placeholder: 'Filter', 'aria-label': 'Filter the flame graph by name',
        'data-testid': 'flame-filter', oninput: () => this.setFilter() });
    this.inverter = btn('Invert', () => this.setInverted(),
      { 'aria-pressed': 'false', 'data-testid': 'flame-invert',
        title: 'Callees at the top, below them who called them' });
    this.tall = btn('Full height', () => this.setTall(),
      { 'aria-pressed': 'false', 'data-testid': 'flame-tall' });
    this.back = btn('All', () => this.zoom(this.root),
      { title: 'Back to the whole (Esc)', hidden: true });
    this.tools = el('div', { class: 'bar flame-tools' }, this.input, this.inverter, this.back,
      el('span', { class: 'push' }), this.tall);
    this.graph = el('div', { class: 'flame' }, this.canvas);
    this.box = el('div', { class: 'flame-box' }, this.tools, this.graph);
    this.words = '';
    this.fit = new TextFit(this.canvas.getContext('2d'));
    this.upright = root;
    this.root = root;
    this.top = this.root;
    this.boxes = [];
    this.canvas.addEventListener('click', (event) => this.click(event));
    this.canvas.addEventListener('pointermove', (event) => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => app.tooltip.hide());
    this.canvas.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || this.top === this.root) return;
      event.stopPropagation();
      this.zoom(this.root);
    });
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.graph);
  }

  setFilter() {
    this.words = this.input.value.trim().toLowerCase();
    this.draw();
  }

  /** Over the whole width, and most of the height of the page. */
  setTall() {
    const on = press(this.tall), { details } = this.app;
    this.box.closest('.split').classList.toggle('tall', on);
    if (on) this.before = details.height;
    details.setHeight(on ? innerHeight : this.before, false);
    this.draw();
  }

  setInverted() {
    this.root = press(this.inverter) ? invert(this.upright) : this.upright;
    this.zoom(this.root);
  }

  depth(node) {
    let deepest = 0;
    for (const child of node.children) deepest = Math.max(deepest, this.depth(child));
    return deepest + 1;
  }

  draw() {
    const width = this.graph.clientWidth;
    if (!width || !this.root.children.length) return;
    const dpr = this.app.dpr, above = [];
    for (let up = this.top; up; up = up.parent) above.unshift(up);
    const height = Math.max(this.graph.clientHeight - 4,
      (above.length + this.depth(this.top)) * LINE + 4);
    this.canvas.width = Math.round(width * dpr);
    this.canvas.height = Math.round(height * dpr);
    this.canvas.style.width = width + 'px';
    this.canvas.style.height = height + 'px';
    this.context = this.canvas.getContext('2d');
    this.context.scale(dpr, dpr);
    this.context.font = `11px ${FONT}`;
    this.fit.use(11);
    this.context.textBaseline = 'middle';
    this.boxes = [];
    above.forEach((node, i) => this.frame(node, 0, width, i, node !== this.top));
    this.children(this.top, 0, width, above.length);
  }

  children(node, x, width, level) {
    const whole = node === this.root ? node.total : node.total > 0n ? node.total : 1n;
    let at = x;
    const ordered = [...node.children].sort((a, b) => (a.total < b.total ? 1 : -1));
    for (const child of ordered) {
      const wide = whole > 0n ? ratio(child.total, whole) * width : 0;
      if (wide < 0.4) break;
      this.frame(child, at, wide, level, false);
      this.children(child, at, wide, level + 1);
      at += wide;
    }
  }

  frame(node, x, width, level, faint) {
    const { palette } = this.app, context = this.context, y = 2 + level * LINE;
    const other = this.words && node.parent && !node.text.toLowerCase().includes(this.words);
    context.globalAlpha = other ? 0.18 : faint ? 0.5 : 1;
    context.fillStyle = node.parent ? this.app.colourOf({ name: node.text, colour: node.colour })
      : palette.line;
    context.fillRect(x + 0.5, y, Math.max(0.5, width - 1), LINE - 1);
    context.globalAlpha = 1;
    const short = width > 24 ? this.fit.fit(node.text, width - 10) : '';
    context.fillStyle = node.parent ? palette.label : palette.text;
    if (short) context.fillText(short, x + 5, y + LINE / 2);
    this.boxes.push({ node, x, width, y });
  }

  at(event) {
    return this.boxes.find((b) => event.offsetX >= b.x && event.offsetX < b.x + b.width
      && event.offsetY >= b.y && event.offsetY < b.y + LINE);
  }

  click(event) {
    const box = this.at(event);
    if (box) this.zoom(box.node);
  }

  zoom(node) {
    this.top = node;
    this.back.hidden = node === this.root;
    this.draw();
  }

  hover(event) {
    const box = this.at(event);
    if (!box) return this.app.tooltip.hide();
    const { node } = box, share = this.root.total > 0n ? (ratio(node.total, this.root.total) * 100)
      .toFixed(1) : '0';
    const lines = [`${formatShort(node.total)} total (${share} %)`];
    if (node.parent) lines.push(
      `${formatShort(node.self)} self · ${formatCount(node.count)} slices`);
    return this.app.tooltip.show(event.clientX, event.clientY, node.text, lines);
  }
}
