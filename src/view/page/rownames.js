// The column of names: a tree of elements for the rows on screen only.

import { formatCount } from './time.js';

const formats = ['standard', 'compact'].map((notation) => new Intl.NumberFormat('en', { maximumSignificantDigits: 4, notation }));
const number = (value) => formats[Math.abs(value) < 1e5 ? 0 : 1].format(value + 0);

function button(label, symbol, className) {
  const element = document.createElement('button');
  element.type = 'button';
  element.className = className;
  element.tabIndex = -1;
  element.title = label;
  element.setAttribute('aria-label', label);
  element.textContent = symbol;
  return element;
}

function subtitle(node) {
  const source = node.source;
  if (node.counter) return `${number(source.min)} … ${number(source.max)}${source.unit ? ' ' + source.unit : ''}${source.finite === false ? ', not always finite' : ''}`;
  if (node.type === 'group') return node.total ? '' : 'nothing recorded';
  return node.own ? formatCount(node.own) : '';
}

export class RowNames {
  constructor(app, box) {
    this.app = app;
    this.box = box;
    this.pinnedBox = box.querySelector('.names-pinned');
    this.scrollBox = box.querySelector('.names-scroll');
    this.elements = new Map();
    box.addEventListener('click', (event) => this.click(event));
    box.addEventListener('keydown', (event) => this.key(event));
    box.addEventListener('wheel', (event) => {
      event.preventDefault();
      app.timeline.scrollBy(event.deltaY);
    }, { passive: false });
  }

  create(node) {
    const element = document.createElement('div');
    element.className = 'name ' + node.type;
    element.setAttribute('role', 'treeitem');
    element.tabIndex = 0;
    element.dataset.key = node.key;
    const fold = button('Fold or unfold', '', 'fold');
    const label = document.createElement('span');
    label.className = 'label';
    const sub = document.createElement('span');
    sub.className = 'sub';
    const tools = document.createElement('span');
    tools.className = 'tools';
    if (node.type === 'row') tools.append(button('Pin to the top (P)', '⊤', 'pin'));
    tools.append(button(node.local ? 'Remove this row' : 'Hide (H)', '×', 'hide'));
    element.append(fold, label, sub, tools);
    label.textContent = node.name;
    label.title = node.type === 'row' && node.group ? `${node.name}\n${node.group.name}` : node.name;
    sub.textContent = subtitle(node);
    return { element, fold, node };
  }

  /** Puts an element per place; those that are no longer on screen are removed. */
  update(places, pinnedHeight) {
    this.pinnedBox.style.height = pinnedHeight + 'px';
    const seen = new Set();
    for (const place of places) {
      const key = place.node.key;
      let item = this.elements.get(key);
      if (!item || item.node !== place.node) {
        if (item) item.element.remove();
        item = this.create(place.node);
        this.elements.set(key, item);
      }
      seen.add(key);
      this.put(item, place, pinnedHeight);
    }
    for (const [key, item] of this.elements) {
      if (!seen.has(key) && !item.element.contains(document.activeElement)) {
        item.element.remove();
        this.elements.delete(key);
      } else if (!seen.has(key)) item.element.style.transform = 'translateY(-200px)';
    }
  }

  put(item, place, pinnedHeight) {
    const { rows } = this.app, { node } = place, element = item.element;
    const box = place.pinned ? this.pinnedBox : this.scrollBox;
    if (element.parentNode !== box) box.append(element);
    const y = place.pinned ? place.y : place.y - pinnedHeight;
    const state = `${y} ${place.height} ${node.level} ${node.folded} ${place.pinned}`;
    if (item.state === state) return;
    item.state = state;
    element.style.transform = `translateY(${y}px)`;
    element.style.height = place.height + 'px';
    element.style.paddingLeft = 8 + Math.max(0, node.level - (node.type === 'row' ? 1 : 0)) * 14 + (node.type === 'row' ? 6 : 0) + 'px';
    element.setAttribute('aria-level', String(node.level + 1));
    element.classList.toggle('pinned', place.pinned);
    const foldable = rows.foldable(node);
    item.fold.textContent = foldable ? (node.folded ? '▸' : '▾') : '';
    item.fold.classList.toggle('none', !foldable);
    if (foldable) element.setAttribute('aria-expanded', String(!node.folded));
  }

  nodeOf(target) {
    const element = target.closest ? target.closest('.name') : null;
    const item = element ? this.elements.get(element.dataset.key) : null;
    return item ? item.node : null;
  }

  get focused() {
    return this.nodeOf(document.activeElement);
  }

  click(event) {
    const node = this.nodeOf(event.target);
    if (!node) return;
    const { app } = this;
    if (event.target.closest('.pin')) app.pin(node);
    else if (event.target.closest('.hide')) app.hide(node);
    else if (event.target.closest('.fold') || node.type === 'group') app.fold(node);
  }

  key(event) {
    const node = this.nodeOf(event.target);
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    const { app } = this;
    const acts = {
      Enter: () => app.fold(node), ' ': () => app.fold(node),
      ArrowLeft: () => app.fold(node, true), ArrowRight: () => app.fold(node, false),
      ArrowUp: () => this.focusBeside(node, -1), ArrowDown: () => this.focusBeside(node, 1),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  focusBeside(node, by) {
    const { rows, timeline } = this.app;
    const list = [...rows.pinned, ...rows.entries];
    const at = list.findIndex((entry) => entry.node === node);
    const next = list[at + by];
    if (!next) return;
    if (at + by >= rows.pinned.length) {
      if (next.y < timeline.scrollTop) timeline.scrollTo(next.y);
      const room = timeline.height - timeline.pinnedHeight;
      if (next.y + Math.min(next.height, room) > timeline.scrollTop + room) timeline.scrollTo(next.y + Math.min(next.height, room) - room);
    }
    this.app.afterFrame(() => {
      const item = this.elements.get(next.node.key);
      if (item) item.element.focus({ preventScroll: true });
    });
  }
}
