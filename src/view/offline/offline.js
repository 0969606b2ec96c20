// The page without a server: answers to its requests from a trace that is in the file itself
// (`stave view --export`). docs/view_protocol.md.

const STATES = ['thread_state', 'offcpu_sample'];
const UNFINISHED = -1;

class Bytes {
  constructor() {
    this.list = [];
  }

  u8(byte) {
    this.list.push(byte);
  }

  v(value) {
    let v = BigInt(value);
    for (; v >= 128n; v >>= 7n) this.list.push(Number(v & 127n) | 128);
    this.list.push(Number(v));
  }

  z(value) {
    this.v(value < 0 ? -2 * value - 1 : 2 * value);
  }

  f32(value) {
    this.list.push(...new Uint8Array(Float32Array.of(value).buffer));
  }
}

const floorDiv = (a, b) => (a % b !== 0n && a < 0n ? a / b - 1n : a / b);

class Pixels {
  constructor({ from, to, width }) {
    this.from = BigInt(from);
    this.span = BigInt(to) - this.from;
    this.width = BigInt(width);
  }

  edge(i) {
    return this.from + floorDiv(BigInt(i) * this.span, this.width);
  }

  of(ns) {
    return Number(floorDiv((ns - this.from + 1n) * this.width - 1n, this.span));
  }
}

/** The first of the sorted items for which `before` does not hold. */
function search(n, before) {
  let low = 0, high = n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before(middle)) low = middle + 1; else high = middle;
  }
  return low;
}

class Store {
  constructor(file) {
    this.trace = file.trace;
    this.answers = file.answers;
    this.trace.pages = this.trace.pages.filter((id) => id !== 'ranks'); // it asks by SQL
    this.names = file.names;
    this.args = file.args;
    this.last = BigInt(file.trace.last);
    this.rows = file.rows;
    this.slices = []; // by number
    file.rows.forEach((row, id) => (row.ts ? this.addRow(row, id) : this.addCounter(row)));
    this.flows = file.flows;
  }

  addRow(row, id) {
    let ts = BigInt(row.first);
    row.lines = [];
    row.ts.forEach((delta, i) => {
      ts += BigInt(delta);
      const slice = { number: row.number[i], ts, dur: BigInt(row.dur[i]), name: row.name[i],
        cat: row.cat[i], line: row.line[i], parent: row.parent[i], args: row.args[i],
          instant: row.instant[i] === 1, colour: row.colour[i], row: id };
      this.slices[slice.number] = slice;
      (row.lines[slice.line] ||= []).push(slice);
    });
  }

  addCounter(row) {
    let at = BigInt(row.first);
    row.points = row.times.map((delta, i) =>
      ({ ts: at += BigInt(delta), value: Number(row.values[i]) }));
  }

  end(slice) {
    return slice.dur === BigInt(UNFINISHED) ? this.last : slice.ts + slice.dur;
  }

  length(slice) {
    return slice.dur === BigInt(UNFINISHED) ? 1n << 63n : slice.dur;
  }

  short(slice) {
    return { slice: slice.number, name: this.names[slice.name], ts: String(slice.ts),
      dur: String(slice.dur), row: slice.row, line: slice.line, colour: slice.colour };
  }

  touching(row, first, n, from, to) {
    const found = [];
    for (let line = first; line < first + n; line++) {
      for (const slice of this.rows[row].lines?.[line] || []) if (slice.ts < to
        && (slice.ts >= from || this.end(slice) > from)) found.push(slice);
    }
    return found;
  }

  /* ---- windows ---- */

  item(out, pixels, at, begun, prior, right) {
    const longest = begun.length ? begun.reduce((a, b) => (this.length(b) > this.length(a) ? b : a))
      : prior, last = begun.length ? begun[begun.length - 1] : prior;
    const from = pixels.edge(at), to = pixels.edge(at + 1), end = this.end(last);
    const tail = Math.max(0, Math.min(right - 1, pixels.of(end - 1n)) - at), differs = tail > 0
      && last !== longest;
    const clip = (s) => { const a = s.ts > from ? s.ts : from, b = this.end(s) < to ? this.end(s)
      : to; return b > a ? b - a : 0n; };
    const covered = [...begun, ...(prior ? [prior] : [])].reduce((sum, s) => sum + clip(s), 0n),
      span = to - from;
    const cover = span === 0n ? 255 : Math.max(1, Math.min(255, Number(covered * 255n / span)));
    const dur = (s) => (s.dur === BigInt(UNFINISHED) ? 0n : s.dur + 1n);
    out.v(at - out.pixel);
    out.v(begun.length);
    out.u8((longest.instant ? 1 : 0) | (tail && last.dur === BigInt(UNFINISHED) ? 2 : 0) | (differs
      ? 4 : 0) | longest.colour << 3);
    out.u8(cover);
    out.z(longest.number - out.slice);
    out.v(longest.name);
    out.v(dur(longest));
    out.v(tail);
    if (differs) {
      out.z(last.number - longest.number);
      out.v(last.name);
      out.u8(last.colour);
      out.v(dur(last));
    }
    out.pixel = at;
    out.slice = longest.number;
    out.used.add(longest.name).add(last.name);
  }

  line(out, slices, pixels, left, right) {
    const items = new Bytes(), leftEdge = pixels.edge(left), rightEdge = pixels.edge(right);
    Object.assign(items, { pixel: left, slice: 0, used: out.used });
    let n = 0, i = search(slices.length, (k) => slices[k].ts < leftEdge),
      prior = i > 0 && this.end(slices[i - 1]) > leftEdge ? slices[i - 1] : null;
    if (prior) { this.item(items, pixels, left, [], prior, right); n++; }
    while (i < slices.length && slices[i].ts < rightEdge) {
      const at = pixels.of(slices[i].ts), next = pixels.edge(at + 1), begun = [];
      while (i < slices.length && slices[i].ts < next) begun.push(slices[i++]);
      this.item(items, pixels, at, begun, prior && this.end(prior) > pixels.edge(at) ? prior
        : null, right);
      prior = begun[begun.length - 1];
      n++;
    }
    out.v(n);
    for (const byte of items.list) out.u8(byte);
  }

  counter(out, points, pixels, left, right) {
    const items = [], leftEdge = pixels.edge(left), rightEdge = pixels.edge(right);
    let i = search(points.length, (k) => points[k].ts < leftEdge);
    const before = i > 0 ? 1 : 0;
    if (before) items.push([left, points[i - 1].value, points[i - 1].value, points[i - 1].value]);
    for (; i < points.length && points[i].ts < rightEdge; i++) {
      // Finite values and others have a point each in a pixel; the last value's comes last.
      const at = pixels.of(points[i].ts), v = points[i].value, odd = !Number.isFinite(v);
      const same = items.findLastIndex((item, k) => k >= before && k + 2 >= items.length
        && item[0] === at && !Number.isFinite(item[3]) === odd);
      const [old] = same < 0 ? [] : items.splice(same, 1),
        worse = old && Number.isNaN(old[3]) ? NaN : v;
      if (odd) items.push([at, worse, worse, worse]);
      else items.push(old ? [at, Math.min(old[1], v), Math.max(old[2], v), v] : [at, v, v, v]);
    }
    out.v(items.length);
    let pixel = left;
    for (const [at, ...values] of items) {
      out.v(at - pixel);
      values.forEach((v) =>
        out.f32(Number.isFinite(v) ? Math.max(-3.4e38, Math.min(3.4e38, v)) : v));
      pixel = at;
    }
  }

  window(ask) {
    const rows = new Bytes(), head = new Bytes(), pixels = new Pixels(ask);
    rows.used = new Set();
    rows.v(ask.rows.length);
    for (const [id, first, n] of ask.rows) {
      const row = this.rows[id];
      rows.v(id);
      rows.u8(row.ts ? 0 : 1);
      if (!row.ts) { this.counter(rows, row.points, pixels, ask.left, ask.right); continue; }
      const lines = Math.max(0, Math.min(n, row.lines.length - first));
      rows.v(first);
      rows.v(lines);
      for (let line = first; line < first + lines; line++) this.line(rows, row.lines[line] || [],
        pixels, ask.left, ask.right);
    }
    const names = [...rows.used].filter((name) => name);
    [...'SVW1'].forEach((c) => head.u8(c.charCodeAt(0)));
    head.v(names.length);
    for (const name of names) {
      const text = new TextEncoder().encode(this.names[name] || '').slice(0, 96);
      head.v(name);
      head.v(text.length);
      text.forEach((byte) => head.u8(byte));
    }
    return Uint8Array.from([...head.list, ...rows.list]);
  }

  /* ---- slices ---- */

  detail(number) {
    const slice = this.slices[number], parents = [];
    if (!slice) return { error: 'no such slice' };
    for (let at = slice.parent; at >= 0 && parents.length < 64;
      at = this.slices[at].parent) parents.push(this.short(this.slices[at]));
    const children = this.slices.filter((s) => s.parent === number)
      .sort((a, b) => (a.ts < b.ts ? -1 : 1));
    let self = this.end(slice) - slice.ts, until = slice.ts;
    for (const child of children) {
      const from = child.ts > until ? child.ts : until, to = this.end(child) < this.end(slice)
        ? this.end(child) : this.end(slice);
      if (to > from) { self -= to - from; until = to; }
    }
    const row = this.trace.rows[slice.row],
      group = this.trace.groups.find((g) => g.id === row.group),
      flow = (id, other) => ({ flow: String(id), slice: this.short(this.slices[other]) });
    return {
      ...this.short(slice), id: String(slice.number), category: this.names[slice.cat],
      ends: String(this.end(slice)), self: String(self),
      unfinished: slice.dur === BigInt(UNFINISHED), instant: slice.instant,
      track: '', thread: row.name, process: group ? group.name : '', args: slice.args >= 0
        ? this.args[slice.args] : [], parents,
      in: this.flows.filter(([, , to]) => to === number).map(([id, from]) => flow(id, from)),
      more_in: 0, out: this.flows.filter(([, from]) => from === number)
        .map(([id, , to]) => flow(id, to)), more_out: 0,
    };
  }

  get ordered() {
    return this.inOrder ||= this.slices.filter(Boolean)
      .sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : a.number - b.number));
  }

  near(number, to, by) {
    const slice = this.slices[number], all = by === 'row' ? this.rows[slice.row].lines[slice.line]
      : this.ordered.filter((s) => s.name === slice.name);
    const found = all[all.indexOf(slice) + (to === 'previous' ? -1 : 1)];
    return { slice: found ? this.short(found) : null };
  }

  find(ask) {
    const glob = /[*?]/.test(ask.text),
      pattern = glob
      ? new RegExp(`^${ask.text.replace(/[.+^${}()|[\]\\]/g, '\\$&')
        .replace(/\*/g, '.*').replace(/\?/g, '.')}$`,
      's') : null, lower = ask.text.toLowerCase();
    const matches =
      this.names.map((name) => (glob ? pattern.test(name) : name.toLowerCase().includes(lower))),
      hits = this.ordered.filter((s) => s.name && matches[s.name]);
    if (ask.slice === undefined && ask.at === undefined) return { total: String(hits.length),
      hits: hits.slice(0, ask.limit || 200).map((s) => this.short(s)) };
    const place = ask.slice !== undefined ? this.slices[ask.slice]
      : { ts: BigInt(ask.at) - 1n, number: Infinity };
    const after = (s) => s.ts > place.ts || (s.ts === place.ts && s.number > place.number),
      index = ask.to === 'previous' ? hits.findLastIndex((s) => s !== place && !after(s))
      : hits.findIndex(after);
    return { total: String(hits.length), ...(index >= 0 ? { index: String(index) } : {}),
      hits: index >= 0 ? [this.short(hits[index])] : [] };
  }

  /* ---- areas ---- */

  area(ask) {
    const from = BigInt(ask.from), to = BigInt(ask.to), sums = new Map(), nodes = [],
      known = new Map(), nodeOf = new Map();
    const all = ask.rows.flatMap(([row, first, n]) =>
      (this.rows[row].ts ? this.touching(row, first, n, from, to) : []))
      .sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : a.line - b.line));
    const inside = (s) => { const a = s.ts > from ? s.ts : from, b = this.end(s) < to ? this.end(s)
      : to; return b > a ? b - a : 0n; }, chosen = new Set(all);
    const isState = (s) => STATES.includes(this.names[s.cat]);
    const sum = (s) => {
      const key = isState(s) ? -s.name : s.name;
      if (!sums.has(key)) sums.set(key,
        { name: s.name, kind: isState(s) ? 'state' : undefined, colour: s.colour, total: 0n,
          self: 0n, durs: [] });
      return sums.get(key);
    };
    for (const s of all) {
      const part = inside(s), own = sum(s), parent = this.rows[s.row].nests ? this.slices[s.parent]
        : null, above = parent && chosen.has(parent) ? nodeOf.get(parent) : isState(s) ? -2 : -1,
        key = `${above} ${s.name}`;
      own.total += part;
      own.self += part;
      own.durs.push(this.end(s) - s.ts);
      if (above >= 0) sum(parent).self -= part;
      if (!known.has(key)) { known.set(key, nodes.length);
        nodes.push({ name: s.name, parent: above, total: 0n, self: 0n, count: 0 }); }
      const node = nodes[known.get(key)];
      nodeOf.set(s, known.get(key));
      node.total += part;
      node.self += part;
      node.count++;
      if (above >= 0) nodes[above].self -= part;
    }
    const at = (d, p) => { const i = p * (d.length - 1), k = Math.floor(i), a = Number(d[k]),
      b = Number(d[Math.min(k + 1, d.length - 1)]);
        return String(Math.trunc(a + (b - a) * (i - k))); };
    const names = [...sums.values()].sort((a, b) => (a.total > b.total ? -1 : 1)).map((s) => {
      const d = s.durs.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      return { name: s.name, text: this.names[s.name], kind: s.kind, colour: s.colour,
        count: String(d.length), total: String(s.total), self: String(s.self), min: String(d[0]),
          p50: at(d, 0.5), p90: at(d, 0.9), p99: at(d, 0.99), max: String(d[d.length - 1]) };
    });
    const counters = ask.rows.filter(([row]) => !this.rows[row].ts)
      .map(([row]) =>
      ({ row, v: this.rows[row].points.filter((p) => p.ts >= from && p.ts < to)
        .map((p) => p.value) })).filter(({ v }) => v.length)
          .map(({ row, v }) =>
      ({ row, v: v.filter(Number.isFinite), last: v[v.length - 1],
        odd: v.filter((x) => !Number.isFinite(x)).length }));
    const arrows = this.arrows(chosen);
    return {
      arrows: String(arrows.reduce((n, f) => n + Number(f.count), 0)), flows: arrows,
      slices: String(all.length), names, more: 0,
      flame: nodes.map((n) =>
        ({ ...n, text: this.names[n.name], total: String(n.total), self: String(n.self),
          count: String(n.count) })),
      counters: counters.map(({ row, v, last, odd }) =>
        ({ row, min: v.length ? Math.min(...v) : NaN, max: v.length ? Math.max(...v) : NaN,
          mean: v.reduce((a, b) => a + b, 0) / v.length, last, not_finite: odd })),
    };
  }

  /** Arrows that leave or reach one of these slices, by the names of both ends. */
  arrows(chosen) {
    const found = new Map();
    for (const [, out, into] of this.flows) {
      const a = this.slices[out], b = this.slices[into];
      if (!chosen.has(a) && !chosen.has(b)) continue;
      const key = `${a.name} ${b.name}`, ns = b.ts - (this.end(a) <= b.ts ? this.end(a) : a.ts);
      if (!found.has(key)) found.set(key,
        { from: this.names[a.name], to: this.names[b.name], all: [] });
      found.get(key).all.push({ ns, out });
    }
    const list = [...found.values()].sort((a, b) => b.all.length - a.all.length);
    return list.map(({ from, to, all }) => {
      const sorted = all.sort((a, b) => (a.ns < b.ns ? -1 : 1)), last = sorted[all.length - 1];
      return {
        from, to, count: String(all.length), total: String(all.reduce((n, x) => n + x.ns, 0n)),
        min: String(sorted[0].ns), max: String(last.ns), longest: last.out,
      };
    });
  }

  answer(url, body) {
    const slice = () => Number(url.searchParams.get('slice') ?? url.searchParams.get('id'));
    switch (url.pathname) {
      case '/api/trace': return this.trace;
      case '/api/window': return this.window(body);
      case '/api/names': return {
        names: body.names.map((name) => ({ name, text: this.names[name] })) };
      case '/api/slice': return this.detail(slice());
      case '/api/near': return this.near(slice(), url.searchParams.get('to'),
        url.searchParams.get('by'));
      case '/api/search': return this.find(body);
      case '/api/area': return this.area(body);
      case '/api/notes': return body ? { kept: false, why: 'this page is a file' }
        : { notes: null, kept: false };
      case '/api/steps': return this.answers.steps;
      case '/api/report': return this.answers[url.searchParams.get('subject')]
        || { error: 'the trace has nothing of this' };
      case '/api/tables': return { rows: [] };
      default: return { error: 'this page is a file: open the trace with “stave view” for this' };
    }
  }
}

/** As the server writes them: JSON would have null for all three, and null is shown as 0. */
const odd = (key, value) => (typeof value === 'number' && !Number.isFinite(value)
  ? String(value) : value);

/** Unpacks the trace and answers the page's requests from now on. */
export async function start(packed) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const file = await new Response(new Blob([bytes]).stream()
    .pipeThrough(new DecompressionStream('gzip'))).json();
  const store = new Store(file);
  window.fetch = async (path, options = {}) => {
    const answer = store.answer(new URL(path, 'http://file'),
      options.body ? JSON.parse(options.body) : null);
    return answer instanceof Uint8Array ? new Response(answer)
      : new Response(JSON.stringify(answer, odd),
      { status: answer.error && path.startsWith('/api/slice') ? 404 : 200 });
  };
}
