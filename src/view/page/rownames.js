// The column of names: a tree of elements for the rows on screen only.

import { onDrag } from './dom.js';
import { formatCount } from './time.js';

const KEY = 'stave.names', LEAST = 140, WHOLE = 8, TAIL = 10, LONGEST = 14;

const formats =
  ['standard', 'compact'].map((notation) =>
  new Intl.NumberFormat('en', { maximumSignificantDigits: 4, notation }));
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
  if (node.counter) {
    const unit = source.unit ? ' ' + source.unit : '';
    const odd = source.finite === false ? ', not always finite' : '';
    const range = [...new Set([source.min, source.max].map(number))].join(' … ');
    return `${range}${unit}${odd}`;
  }
  if (node.type === 'group') return node.total ? '' : 'nothing recorded';
  return source.note || (node.own || node.total ? formatCount(node.own || node.total) : '');
}

/** Where the end of a name begins, which is never cut off: it often says more than the middle.
 * Its words and its number in brackets stay whole, if they are short. */
function endOf(letters) {
  const n = letters.length, word = letters.indexOf(' ', Math.max(1, n - LONGEST));
  if (n <= WHOLE) return n;
  return word > 0 ? word : n - Math.min(TAIL, Math.floor(n / 2.2));
}

function cutInTheMiddle(text) {
  const letters = [...text], at = endOf(letters);
  return [['head', letters.slice(0, at)], ['tail', letters.slice(at)]].map(([part, list]) => {
    const span = document.createElement('span');
    span.className = part;
    span.textContent = list.join('');
    return span;
  });
}

/** The column of names can be widened, and keeps its width. */
function listenGrip(grip) {
  const { style } = document.documentElement;
  const set = (width) => {
    const most = Math.round(innerWidth * 0.6),
      now = Math.max(LEAST, Math.min(most, Math.round(width)));
    if (width) style.setProperty('--names', `${now}px`); else style.removeProperty('--names');
    localStorage.setItem(KEY, width ? String(now) : '');
  };
  const width = () => document.getElementById('names').getBoundingClientRect().width;
  if (Number(localStorage.getItem(KEY)) > 0) set(Number(localStorage.getItem(KEY)));
  onDrag(grip, (event) => ({ x: event.clientX, width: width() }), (event, start) => {
    if (Math.abs(event.clientX - start.x) > 2) set(start.width + event.clientX - start.x);
  });
  grip.addEventListener('dblclick', () => set(0));
  grip.addEventListener('keydown', (event) => {
    const by = { ArrowRight: 24, ArrowLeft: -24 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    set(width() + by);
  });
}

export class RowNames {
  constructor(app, box) {
    this.app = app;
    this.box = box;
    this.pinnedBox = box.querySelector('.names-pinned');
    this.scrollBox = box.querySelector('.names-scroll');
    this.elements = new Map();
    listenGrip(document.getElementById('names-grip'));
    box.addEventListener('click', (event) => this.click(event));
    box.addEventListener('keydown', (event) => this.key(event));
    box.addEventListener('wheel', (event) => {
      event.preventDefault();
      app.timeline.scrollBy(event.deltaY);
    }, { passive: false });
  }

  create(node) {
    const element = document.createElement('div');
    element.className = `name ${node.type}${node.counter && !node.flat ? ' tall' : ''}`;
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
    if (node.type === 'row' && node.source.note === undefined) tools.append(
      button('Pin to the top (P)', '⊤', 'pin'));
    tools.append(button(node.local ? 'Remove this row' : 'Hide (H)', '×', 'hide'));
    element.append(fold, label, sub, tools);
    label.append(...cutInTheMiddle(node.name));
    if (node.side !== undefined) label.dataset.side = 'AB'[node.side];
    label.title = node.type === 'row' && node.group ? `${node.name}\n${node.group.name}`
      : node.name;
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
    element.style.paddingLeft = 8 + Math.max(0, node.level - (node.type === 'row' ? 1 : 0)) * 14
      + (node.type === 'row' ? 6 : 0) + 'px';
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
      if (next.y + Math.min(next.height, room) > timeline.scrollTop + room) timeline.scrollTo(next.y
        + Math.min(next.height, room) - room);
    }
    this.app.afterFrame(() => {
      const item = this.elements.get(next.node.key);
      if (item) item.element.focus({ preventScroll: true });
    });
  }
}
