// The tree of groups and rows: their order, what is folded, filtered, pinned and hidden, and where
// each one is.

export const LINE = 18;
export const PAD = 3;
const GROUP_HEIGHT = 30;
const COUNTER_HEIGHT = 44;
const BARE_HEIGHT = 24;

const PATH = -1000000; // the number of its row
const LANES = -2000000; // minus the number of the first lane: the number of what stands for them

const GATHERED = { machine: (n) => `The machine (${n} groups)`, other: (n) => `${n} others` };

function makeGroup(group) {
  return { type: 'group', key: 'g' + group.id, id: group.id, name: group.name || group.kind
    || 'trace', source: group, children: [], level: 0, folded: false };
}

function makeRow(row, source) {
  const counter = row.kind === 'counter';
  return {
    type: 'row', key: 'r' + row.id, id: row.id, name: row.name || 'unnamed', source: row,
    children: [], level: 0, folded: false,
    counter, flat: counter && row.min === row.max && row.finite !== false, lines: counter ? 0
      : row.lines, local: source || null,
    dense: Boolean(row.dense), tops: row.tops || [],
    own: counter ? Number(row.points || 0) : Number(row.slices || 0), busy: BigInt(row.busy || 0),
  };
}

function sum(node) {
  node.total = node.own || 0;
  node.time = node.busy || 0n;
  for (const child of node.children) {
    sum(child);
    node.total += child.total;
    node.time += child.time;
  }
}

/** What stands for lanes of one kind, as those of requests: how many there are at once, until it is
 * unfolded. */
function makeLanes(row, group) {
  const source = { kind: 'lanes', side: row.side };
  return { type: 'row', key: 'l' + row.id, id: LANES - row.id, name: row.lanes, source, group,
    children: [], level: 0, folded: false, counter: false, lines: 0, local: null, dense: true,
    lanes: true, stem: row.lanes, own: 0, busy: 0n };
}

/** Puts a row below its parent, a lane below what stands for its neighbours. */
function adopt(parent, node, row, group) {
  const { children } = parent, last = children[children.length - 1];
  let into = parent;
  if (row.lanes !== undefined) {
    into = last && last.lanes && last.stem === row.lanes ? last : makeLanes(row, group);
    if (into !== last) { children.push(into); into.parent = parent; }
  }
  into.children.push(node);
  if (into.lanes) into.name = `${into.stem} (${into.children.length})`;
  node.parent = into;
  node.group = group;
}

/** Threads of one process that have the same name are told apart by their numbers. */
function tellApart(nodes) {
  const seen = new Map(), named = nodes.filter((node) => node.source.tid);
  for (const node of named) seen.set(node.name, (seen.get(node.name) || 0) + 1);
  for (const node of named)
    if (seen.get(node.name) > 1) node.name += ` ${node.source.tid}`;
}

function nest(groups, rows) {
  const byId = new Map(groups.map((g) => [g.id, makeGroup(g)]));
  const stacks = new Map();
  for (const row of rows) {
    let group = byId.get(row.group);
    if (!group) byId.set(row.group, group = makeGroup({ id: row.group, name: '' }));
    const node = makeRow(row);
    let stack = stacks.get(group);
    if (!stack) stacks.set(group, stack = []);
    stack.length = Math.min(stack.length, row.depth || 0);
    const parent = stack.length ? stack[stack.length - 1] : group;
    adopt(parent, node, row, group);
    stack.push(node);
  }
  for (const group of byId.values()) tellApart(group.children);
  return [...byId.values()];
}

function summed(groups) {
  groups.forEach(sum);
  return groups;
}

/** Counters of the machine, and processes that do next to nothing, are one group each. */
function gathered(groups) {
  const made = [];
  for (const [kind, title] of Object.entries(GATHERED)) {
    const of = groups.filter((g) => g.source.gather === kind);
    if (!of.length) continue;
    const heading = makeGroup({ id: kind, name: title(of.length) });
    heading.children = of;
    heading.gathers = true;
    for (const group of of) group.parent = heading;
    sum(heading);
    made.push(heading);
  }
  return [...groups.filter((g) => !g.parent), ...made];
}

/** What says that rows or processes of two runs are the same: the name without the number of the
 * thread or process, which differs from run to run. */
function runless(name) {
  return name.replace(/ \(pid -?\d+\)/, '').replace(/^(main thread|thread) \d+/, '$1');
}

/** Nodes of two lists by what they have in common: [[a, b], [a, undefined], [undefined, b]]. */
function pairs(a, b) {
  const waiting = new Map();
  for (const node of b) {
    const key = runless(node.name);
    if (!waiting.has(key)) waiting.set(key, []);
    waiting.get(key).push(node);
  }
  const found = a.map((node) => [node, (waiting.get(runless(node.name)) || []).shift()]);
  const left = [...waiting.values()].flat(), alone = found.filter(([, node]) => !node);
  if (left.length === 1 && alone.length === 1) alone[0][1] = left.pop(); // what else could it be
  return [...found, ...b.filter((node) => left.includes(node)).map((node) => [undefined, node])];
}

/** Rows of both runs in turn; what is below two of them is below the second one. */
function interleave(a, b, parent, group) {
  const list = [];
  for (const pair of pairs(a, b)) {
    const both = pair.filter(Boolean), last = both[both.length - 1];
    const [below, other] = pair.map((node) => (node ? node.children : []));
    for (const node of both) Object.assign(node,
      { children: [], parent, group, side: node.source.side });
    last.children = interleave(below, other, last, group);
    list.push(...both);
  }
  return list;
}

/** Two traces: each process once, with the rows of both runs in turn. */
function sides(trace) {
  const [a, b] = [0, 1].map((side) => {
    const rows = trace.rows.filter((row) => row.side === side);
    const used = new Set(rows.map((row) => row.group));
    return nest(trace.groups.filter((g) => used.has(g.id)), rows);
  });
  return pairs(a, b).map(([one, two]) => {
    const isSame = !one || !two || one.name === two.name;
    const name = isSame ? (one || two).name
      : `${runless(one.name)} (${[one, two].map((g) => g.name).join(' and ')})`;
    const group = makeGroup({ ...(one || two).source, name });
    group.children = interleave(one ? one.children : [], two ? two.children : [], group, group);
    sum(group);
    return group;
  });
}

export class Rows {
  constructor() {
    this.groups = [];
    this.byId = new Map();
    this.pins = [];
    this.hidden = new Set();
    this.filter = '';
    this.showEmpty = false;
    this.entries = [];
    this.pinned = [];
    this.height = 0;
    this.pinnedHeight = 0;
    this.locals = 0;
    this.path = null;
    this.order = null; // {rows, gather} for the findings; null: that of the trace
  }

  load(trace) {
    const locals = this.groups.filter((g) => g.local);
    const folded = new Map([...this.nodes()].map((node) => [node.key, node.folded]));
    const groups = trace.compared ? sides(trace) : gathered(summed(this.ordered(trace)));
    this.groups = [...locals, ...groups];
    this.byId.clear();
    for (const node of this.nodes()) {
      if (node.type === 'row') this.byId.set(node.id, node);
      node.folded = folded.has(node.key) ? folded.get(node.key)
        : this.startsFolded(node);
    }
    this.pins = this.pins.filter((id) => this.byId.has(id));
    this.path = null; // its slices have other numbers now
    this.layout();
  }

  /** Groups and rows as the trace has them, or in the order that was made for the findings. */
  ordered({ groups = [], rows = [] }) {
    if (!this.order) return nest(groups, rows);
    const byId = new Map(rows.map((row) => [row.id, row]));
    const list = this.order.rows.map((id) => byId.get(id));
    const place = new Map(list.map((row, i) => [row.group, i]).reverse()); // of its first row
    const at = (group) => place.get(group.id) ?? list.length;
    const kindOf = (id) => Object.keys(GATHERED)
      .find((kind) => this.order.gather[kind].includes(id));
    const found = groups.map((group) => ({ ...group, gather: kindOf(group.id) }));
    return nest(found.sort((a, b) => at(a) - at(b)), list);
  }

  startsFolded(node) {
    const empty = node.type === 'group' && node.total === 0;
    return Boolean(node.dense || empty || (node.gathers && node.id === 'other'));
  }

  * nodes(list = this.groups) {
    for (const node of list) {
      yield node;
      yield* this.nodes(node.children);
    }
  }

  /** A row of the page itself, from the result of a query: 0 lines are a counter. */
  addLocal(name, lines, data) {
    let group = this.groups.find((g) => g.local);
    if (!group) {
      group = makeGroup({ id: -1, name: 'Query results' });
      group.local = true;
      this.groups.unshift(group);
    }
    const id = -(++this.locals);
    const what = lines ? { kind: 'slices', slices: data.n }
      : { kind: 'counter', points: data.n, min: data.min, max: data.max, finite: data.finite };
    const node = makeRow({ id, name, lines, ...what }, data);
    node.parent = node.group = group;
    group.children.push(node);
    sum(group);
    this.byId.set(id, node);
    this.layout();
    return node;
  }

  /** The row of a critical path is above all others; without arguments there is none. */
  setPath(name, note, data) {
    this.byId.delete(PATH);
    this.path = data
      ? makeRow({ id: PATH, name, note, lines: data.lines.length, kind: 'slices', slices: data.n },
      data) : null;
    if (this.path) this.byId.set(PATH, this.path);
    this.layout();
  }

  removeLocal(node) {
    node.group.children = node.group.children.filter((n) => n !== node);
    if (!node.group.children.length) this.groups = this.groups.filter((g) => g !== node.group);
    this.byId.delete(node.id);
    this.pins = this.pins.filter((id) => id !== node.id);
    this.layout();
  }

  get terms() {
    return this.filter.toLowerCase().split(/\s+/).filter(Boolean);
  }

  matches(node, terms) {
    const source = node.source;
    const group = node.group ? node.group.name : '';
    const text = [node.name, group, source.tid ? 'tid ' + source.tid : '',
      source.pid ? 'pid ' + source.pid : ''].join(' ').toLowerCase();
    return terms.every((term) => text.includes(term));
  }

  /** Marks what is shown: node.shown. True if the node or something below it is. */
  mark(node, terms) {
    let below = false;
    for (const child of node.children) below = this.mark(child, terms) || below;
    let self = node.type === 'row' && (node.own > 0 || this.showEmpty);
    if (terms.length) self = self && this.matches(node, terms);
    if (node.type === 'group' && !terms.length && node.total === 0) self = true;
    node.shown = (self || below) && !this.hidden.has(node.key);
    return node.shown;
  }

  heightOf(node) {
    if (node.type === 'group') return GROUP_HEIGHT;
    if (node.counter) return node.flat ? BARE_HEIGHT : COUNTER_HEIGHT;
    if (this.isDense(node)) return COUNTER_HEIGHT;
    return node.lines ? PAD * 2 + LINE * this.linesShown(node) : BARE_HEIGHT;
  }

  /** Very many at once are shown as their number. */
  isDense(node) {
    return Boolean(node.dense && node.folded && !(node.lanes && this.terms.length));
  }

  /** The rows that a row is drawn from. */
  parts(node) {
    return node.lanes ? node.children : [node];
  }

  linesShown(node) {
    if (node.counter) return 0;
    return node.folded && node.lines > 1 ? 1 : node.lines;
  }

  foldable(node) {
    return node.type === 'group' || node.lines > 1 || node.children.length > 0;
  }

  place(node, level, y) {
    if (!node.shown) return y;
    node.level = level;
    const pinned = node.type === 'row' && this.pins.includes(node.id);
    if (!pinned) {
      this.entries.push({ node, y, height: this.heightOf(node) });
      y += this.heightOf(node);
    }
    if (node.folded && !this.terms.length) return y;
    for (const child of node.children) y = this.place(child, level + 1, y);
    return y;
  }

  layout() {
    const terms = this.terms;
    this.entries = [];
    this.pinned = [];
    this.pinnedHeight = 0;
    for (const group of this.groups) this.mark(group, terms);
    for (const node of [this.path, ...this.pins.map((id) => this.byId.get(id))]) {
      if (!node) continue;
      node.level = 0;
      this.pinned.push({ node, y: this.pinnedHeight, height: this.heightOf(node) });
      this.pinnedHeight += this.heightOf(node);
    }
    let y = 0;
    for (const group of this.groups) y = this.place(group, 0, y);
    this.height = y;
  }

  /** The first entry whose end is below y. */
  entryFrom(y) {
    let low = 0, high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const entry = this.entries[middle];
      if (entry.y + entry.height <= y) low = middle + 1; else high = middle;
    }
    return low;
  }

  fold(node, folded = !node.folded) {
    if (!this.foldable(node)) return;
    node.folded = folded;
    this.layout();
  }

  foldAll(folded) {
    for (const node of this.nodes()) if (node.type === 'group') node.folded = folded;
    this.layout();
  }

  pin(node) {
    if (node.type !== 'row' || node === this.path) return;
    const at = this.pins.indexOf(node.id);
    if (at >= 0) this.pins.splice(at, 1); else this.pins.push(node.id);
    this.layout();
  }

  hide(node) {
    this.hidden.add(node.key);
    this.layout();
  }

  unhide() {
    this.hidden.clear();
    this.layout();
  }

  setFilter(text) {
    this.filter = text;
    this.layout();
  }

  /** Opens everything above a row, so that it can be seen. */
  reveal(id) {
    const node = this.byId.get(id);
    if (!node) return null;
    let changed = this.hidden.delete(node.key);
    for (let up = node.parent; up; up = up.parent) {
      if (up.folded || this.hidden.has(up.key)) changed = true;
      up.folded = false;
      this.hidden.delete(up.key);
    }
    if (changed) this.layout();
    if (!this.find(id) && this.filter) this.setFilter('');
    return node;
  }

  /** {entry, pinned} of a row, or null when it is not laid out. */
  find(id) {
    const pinned = this.pinned.find((entry) => entry.node.id === id && entry.node.type === 'row');
    if (pinned) return { entry: pinned, pinned: true };
    const entry = this.entries.find((e) => e.node.type === 'row' && e.node.id === id);
    return entry ? { entry, pinned: false } : null;
  }

  /** All rows that hold something, as [row, first line, lines]: for areas of everything, or of
   * one side of two. */
  allRequests(side) {
    const list = [];
    for (const node of this.nodes()) if (node.type === 'row' && node.own > 0 && !node.local
      && (side === undefined || node.source.side === side)) list.push([node.id, 0, node.lines]);
    return list;
  }

  get emptyRows() {
    let n = 0;
    for (const node of this.nodes()) if (node.type === 'row' && node.total === 0) n++;
    return n;
  }
}
